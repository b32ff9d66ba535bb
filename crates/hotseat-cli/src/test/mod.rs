//! `hotseat test`.

mod choices;
mod outputs;
mod recheck;
mod reporters;
mod saving;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotseat_document::Diagnostic;
use hotseat_engine::cases::TestCase;
use hotseat_engine::config::{Project, ScriptScope, missing_path};
use hotseat_engine::run::{EventRetention, RunChoices, RunContext, RunPlan, RunSettings, RunSummary};
use hotseat_report::runner::{FinishedRun, RunBuilder, RunHooks, RunSaver, RunnerError};
use hotseat_report::store::{RunStore, StoredRun};
use hotseat_targets::connection::http::HttpClient;

use crate::args::{SelectionArgs, TestArgs};
use crate::context::CliContext;
use crate::dry_run;
use crate::event_stream::EventStream;
use crate::exit::{CommandResult, ExitStatus};
use crate::input::TestInput;
use crate::list::open_project;
use crate::report_writer::ReportWriter;
use crate::rerun::rerun_commands;
use crate::selection::{load_plan, restriction};
use crate::store_location::report_store_error;
use crate::view::ViewServerThread;
use crate::written_cases::check_destination;
use recheck::RecheckContext;
pub use recheck::RecheckRequest;
use reporters::OpenReporters;

/// An interrupted run and its store.
pub struct ResumedRun {
    pub path: PathBuf,
    pub store: RunStore,
    pub head: StoredRun,
    /// Arguments of the run, if the user can repeat them in the current folder.
    pub repeatable: Option<Vec<String>>,
}

/// Action on the selected cases.
pub enum TestTask {
    /// Run them.
    New,
    /// Run those that an interrupted run has not completed.
    Resume(ResumedRun),
    /// Evaluate them on the conversations of a saved run.
    Recheck(RecheckRequest),
}

/// Runs or re-evaluates the selected cases.
pub fn run(args: TestArgs, task: TestTask, context: &CliContext) -> ExitStatus {
    let json = args.json;
    let mut left = RunCleanup::default();
    let mut exit = try_run(args, task, context, &mut left).unwrap_or_else(|exit| exit);
    if json {
        let ended = match left.events.as_ref().map(|events| events.end(exit.code())) {
            Some(Some(ended)) => ended,
            // The reader of standard output may be stuck.
            None | Some(None) if exit == ExitStatus::Interrupted => Ok(()),
            None | Some(None) => {
                hotseat_report::reporters::write_empty_summary(&mut io::stdout(), exit.code())
            }
        };
        if ended.is_err_and(|error| error.kind() != io::ErrorKind::BrokenPipe) {
            exit = ExitStatus::RunError;
        }
    }
    if let Some(viewing) = left.viewing {
        viewing.wait_for_interrupt(context);
    }
    exit
}

/// Work that remains after the run.
#[derive(Default)]
struct RunCleanup {
    /// Event stream that still needs its summary line.
    events: Option<EventStream>,
    /// Page that stays available until Ctrl-C.
    viewing: Option<ViewServerThread>,
}

/// The filter of a run as reports show it: a single `--run` as it is, everything else with its flags.
fn shown_filter(select: &SelectionArgs, folder: &Path) -> Option<String> {
    match (select.filter.run.as_slice(), select.describe_filter(&select.words(folder))) {
        (_, described) if described.is_empty() => None,
        ([only], described) if described == format!("--run {only:?}") => Some(only.clone()),
        (_, described) => Some(described),
    }
}

/// Returns true if unparsable arguments ask for JSON events.
pub fn wants_events(mut arguments: impl Iterator<Item = OsString>) -> bool {
    let tells = |command: OsString| ["test", "resume", "recheck"].iter().any(|name| command == *name);
    arguments.nth(1).is_some_and(tells) && arguments.any(|word| word == "--json")
}

/// Reports invalid arguments as JSON events.
pub fn report_usage_error(words: &str) {
    let words = words.trim();
    let mistake = Diagnostic::new(words.strip_prefix("error: ").unwrap_or(words));
    let _ = hotseat_report::reporters::write_error(&mut io::stdout(), &mistake).and_then(|()| {
        hotseat_report::reporters::write_empty_summary(&mut io::stdout(), ExitStatus::Usage.code())
    });
}

/// A task whose cases are selected and whose run has not started.
struct PreparedTest {
    input: Option<TestInput>,
    project: Arc<Project>,
    http: Arc<HttpClient>,
    plan: RunPlan,
    resumed: Option<ResumedRun>,
    rechecking: Option<RecheckContext>,
}

/// Opens the project and selects the cases. Errors have been printed.
fn prepare(args: &mut TestArgs, task: TestTask, context: &CliContext) -> Result<PreparedTest, ExitStatus> {
    let (resumed, rechecked) = match task {
        TestTask::New => (None, None),
        TestTask::Resume(resumed) => (Some(resumed), None),
        TestTask::Recheck(rechecked) => (None, Some(rechecked)),
    };
    let input = args.input.as_deref().map(|written| TestInput::parse(written, &context.folder));
    let input = input.transpose().map_err(|wrong| context.reject([wrong]))?;
    if matches!(input, Some(TestInput::StandardInput)) && args.skip_interactive {
        let wrong = Diagnostic::new("`-i -` reads what a human types, and --skip-interactive forbids to ask");
        return Err(context.reject([wrong.help("drop one of them")]));
    }
    if let Some(rechecked) = &rechecked {
        recheck::check_suite_exists(&rechecked.head, input.as_ref())
            .map_err(|wrong| context.reject([wrong]))?;
    }
    if let Some(TestInput::SuiteFile(path)) = &input {
        args.select.paths.push(path.clone());
    }
    let mut project = open_project(&args.select, Some(&args.call), args.simulator.as_ref(), context)?;
    if let Some(TestInput::SuiteFile(path)) = &input
        && !context.folder.join(path).exists()
    {
        context.report_errors([missing_path(path, &context.folder, &project)]);
        return Err(ExitStatus::NothingSelected);
    }
    if let Some(TestInput::ScriptTests(reference)) = &input {
        let (agent, path) = project.find_script_tests(reference).map_err(|wrong| context.reject([wrong]))?;
        if args.select.agent.is_none() {
            project.override_with(&agent).map_err(|wrong| context.reject([wrong]))?;
        }
        args.select.paths.push(path.display().to_string());
    }
    let project = Arc::new(project);
    if let Some(input) = &input {
        input.check_generator(&args.select, &project, context).map_err(|wrong| context.reject(wrong))?;
    }
    outputs::check_outputs(args, context).map_err(|wrong| context.reject(wrong))?;
    let http = Arc::new(HttpClient::default());
    let prepared = input.as_ref().map(|input| input.build_suites(&args.select, &project, &http, context));
    let prepared = prepared.transpose().map_err(|wrong| {
        context.report_errors(wrong);
        ExitStatus::RunError
    })?;
    let rechecking =
        rechecked.map(|rechecked| RecheckContext::load(rechecked, &project, context)).transpose()?;
    let restriction = match &rechecking {
        Some(rechecking) => rechecking.restriction(&args.select),
        None => restriction(&args.select, &project, resumed.as_ref().map(|resumed| &resumed.head), context)?,
    };
    let mut plan = load_plan(&args.select, prepared.flatten(), &restriction, &project, context)?;
    if let Some(resumed) = &resumed {
        saving::check_unchanged(resumed, &plan, input.as_ref()).map_err(|wrong| context.reject([wrong]))?;
    }
    if let Some(rechecking) = &rechecking {
        plan.notes.extend(rechecking.missing_cases(&plan, args.select.paths.is_empty(), &project));
        plan.notes.extend(rechecking.sweep_note());
    }
    Ok(PreparedTest { input, project, http, plan, resumed, rechecking })
}

/// Checks what the run needs besides its cases, and adds the writer of its report.
fn check_plan(
    args: &TestArgs,
    plan: &mut RunPlan,
    project: &Project,
    context: &CliContext,
) -> Result<(), ExitStatus> {
    let hooks = args.before.iter().chain(&args.after);
    let wrong: Vec<Diagnostic> =
        hooks.filter_map(|name| project.check_hook(name, &plan.script_scopes())).collect();
    if !wrong.is_empty() {
        return Err(context.reject(wrong));
    }
    if let Some(writer) = &args.reporter {
        plan.add_role(
            project
                .find_role(writer, None, ScriptScope { folder: &project.root, agent: None })
                .map_err(|wrong| context.reject(wrong))?,
        );
    }
    project.check_endpoint(plan.agents()).map_err(|wrong| context.reject([wrong]))?;
    saving::check_viewable(args, project).map_err(|wrong| context.reject([wrong]))?;
    if plan.lacks_agent() {
        return Err(context.reject([project.missing_target()]));
    }
    Ok(())
}

/// Returns the events of conversations that outputs of the run need.
fn event_retention(
    args: &TestArgs,
    is_resumed: bool,
    project: &Project,
    context: &CliContext,
) -> EventRetention {
    match (&args.trace, &args.record) {
        (Some(_), _) => EventRetention::Raw,
        (None, Some(_)) => EventRetention::Events,
        // A resumed run is saved even if the project no longer saves new runs.
        (None, None)
            if is_resumed || saving::should_save(args, project) || outputs::need_events(args, context) =>
        {
            EventRetention::Events
        }
        (None, None) => EventRetention::Nothing,
    }
}

/// Like [`run_task`]; errors that prevent the run have been printed.
fn try_run(mut args: TestArgs, task: TestTask, context: &CliContext, left: &mut RunCleanup) -> CommandResult {
    let PreparedTest { input, project, http, mut plan, resumed, rechecking } =
        prepare(&mut args, task, context)?;
    check_plan(&args, &mut plan, &project, context)?;
    if rechecking.is_none() && args.sweep.faults.is_none() && !plan.faultless_checks.is_empty() {
        return Err(context.reject(std::mem::take(&mut plan.faultless_checks)));
    }
    let keep = event_retention(&args, resumed.is_some(), &project, context);
    // A recheck needs no target, since no agent is contacted.
    let reached = plan.contacted_agents().filter(|_| rechecking.is_none());
    let outside = RunContext::new(project.clone(), reached, http.clone(), args.timeout, keep);
    let mut outside = outside.map_err(|wrong| context.reject(wrong))?;
    outside.overrides = choices::overrides(&args, input.as_ref());
    outside.human = choices::human(&args, context);
    outside.cassettes = outputs::cassettes(&args, context).map_err(|wrong| context.reject([wrong]))?;
    outside.recheck = rechecking.as_ref().map(RecheckContext::conversations);
    let mut options = match &rechecking {
        Some(rechecking) => rechecking.options(&project),
        None => choices::run_options(&args, &project, &plan, input.as_ref())
            .map_err(|wrong| context.reject([wrong]))?,
    };
    plan.notes.extend(choices::ignored_reliability_note(&plan, options));
    plan.notes.extend(choices::replayed_reliability_note(&plan, options));
    plan.notes.extend(choices::ignored_retries_note(&plan, options));
    plan.notes.extend(choices::ignored_pass_rate_note(&project, options));
    // A resumed run does not stop at failures it already has.
    options.fail_fast &= resumed.is_none();
    outputs::check_no_overwrite(&args, &plan, &project, context).map_err(|wrong| context.reject(wrong))?;
    if input.as_ref().is_some_and(TestInput::is_conversation) {
        // Its case has no assertions to warn about.
        let is_of_case =
            |note: &Diagnostic| note.place.as_ref().is_some_and(|place| place.file().starts_with("-i"));
        plan.notes.retain(|note| !is_of_case(note));
    }
    context.print_notes(&plan.notes);
    if args.dry_run {
        let made_up = matches!(input, Some(TestInput::Generated(..)));
        return dry_run::run(&args, made_up, &plan, &project, context);
    }
    if let Some(path) = &args.save {
        let asks_human = choices::may_ask_human(&args, &plan, input.as_ref());
        let is_written = |case: &TestCase| case.program.is_none() && (asks_human || case.simulator.is_some());
        check_destination(("--save", path), &plan, is_written, &project, context)
            .map_err(|wrong| context.reject(wrong))?;
    }
    let broken = |words: String| context.fail(ExitStatus::RunError, words);
    let files = outputs::open(&args, context).map_err(|error| broken(error.to_string()))?;
    let choices = RunChoices {
        options,
        parallel_asked: args.parallel.or(project.parallel).is_some(),
        run: shown_filter(&args.select, &context.folder),
        agent: args.select.agent.clone(),
        connector: args.call.connector.clone(),
        on_missing_input: outside.overrides.on_missing_input,
        skip_interactive: args.skip_interactive,
        outputs: files.iter().map(|file| file.shown.clone()).collect(),
        rerun: match (&rechecking, &resumed) {
            (None, None) => {
                let is_saved = saving::should_save(&args, &project);
                let arguments = context.arguments.as_deref().unwrap_or_default();
                rerun_commands(&args, input.as_ref(), arguments, is_saved, &context.folder)
            }
            (Some(rechecking), _) => rechecking.rerun_commands(),
            (None, Some(resumed)) => resumed.repeatable.as_deref().and_then(|arguments| {
                rerun_commands(&args, input.as_ref(), arguments, true, &context.folder)
            }),
        },
    };
    let mut setting = RunSettings::new(&plan, &outside, choices);
    if let Some(rechecking) = &rechecking {
        setting = rechecking.setting(setting);
    }
    let setting = Arc::new(setting);
    let look = reporters::OutputMode {
        is_single_message: matches!(input, Some(TestInput::Message(_))),
        is_interactive: choices::may_ask_human(&args, &plan, input.as_ref()),
    };
    let reporters = reporters::open_reporters(&args, context, &project, look, files, &setting);
    let OpenReporters { set: mut reporters, events, writer } =
        reporters.map_err(|error| broken(error.to_string()))?;
    let metadata = || match &rechecking {
        Some(rechecking) => rechecking.run_metadata(&project, &plan, &setting),
        None => saving::run_metadata(&args, &project, &plan, &setting, context),
    };
    let (keeping, earlier) = match resumed {
        None => (saving::start_saving(&args, &project, metadata(), &mut reporters.warnings), None),
        // A resumed run that cannot be saved does not start.
        Some(resumed) => {
            let (saver, earlier) = saving::resume_saving(resumed, &project)
                .map_err(|error| report_store_error(&error, context))?;
            (Some(saver), Some(earlier))
        }
    };
    let viewing = if args.view { saving::serve_page(keeping.as_ref(), &project, context)? } else { None };
    let builder = RunBuilder::new(plan, outside, options, reporters)
        .saved_by(keeping.map(|saver| -> Box<dyn RunSaver> { Box::new(saver) }))
        .with_hooks(RunHooks { before: args.before.clone(), after: args.after.clone() })
        .resuming(earlier)
        .sweeping(choices::sweep(&args.sweep))
        .then_writing(writer.map(ReportWriter::into_writing))
        .synchronous(look.is_interactive);
    let finished = builder.run().map_err(|error| match error {
        RunnerError::Start(error) => broken(format!("cannot start: {error}")),
        // The reader of the output is stuck, and the user wants to quit.
        RunnerError::OutputStuck => ExitStatus::Interrupted,
    })?;
    left.events = events;
    let makes_cases = input.as_ref().is_some_and(TestInput::makes_cases);
    let can_go_on = !args.json && rechecking.is_none() && !makes_cases;
    let resumable = can_go_on.then_some(&*project);
    conclude(finished, viewing, resumable, &args, context, left)
}

/// Prints what remains to be said after a run, and returns its exit status. `resumable` is the project of a run whose remaining
/// cases `hotseat resume` can run.
fn conclude(
    FinishedRun { ended, reporters }: FinishedRun,
    viewing: Option<ViewServerThread>,
    resumable: Option<&Project>,
    args: &TestArgs,
    context: &CliContext,
    left: &mut RunCleanup,
) -> CommandResult {
    if args.verbose {
        reporters.logs.iter().for_each(|line| context.print_console_line(line));
    }
    reporters.warnings.iter().for_each(|words| context.print_warning(words));
    if let (Ok(RunSummary { interrupted: true, .. }), Some(id), Some(project)) =
        (&ended, &reporters.saved_run, resumable)
        && saving::has_remaining_cases(id, project, args.sweep.faults.is_some())
    {
        context.print_message(&format!(
            "note: `hotseat resume {}` runs the remaining cases",
            id.get(..8).unwrap_or(id)
        ));
    }
    // After an interruption the page closes too.
    let is_whole = matches!(&ended, Ok(summary) if !summary.interrupted);
    match viewing {
        Some(viewing) if is_whole && reporters.saved_run.is_some() && context.has_live_viewer() => {
            left.viewing = Some(viewing);
        }
        Some(viewing) => viewing.end(reporters.saved_run.as_deref(), context),
        None => {}
    }
    let not_written = reporters.errors;
    match ended {
        Err(diagnostics) => {
            context.report_errors(diagnostics);
            Err(ExitStatus::RunError)
        }
        Ok(_) if !not_written.is_empty() => {
            not_written.iter().for_each(|words| context.report_error_lines(words));
            Err(ExitStatus::RunError)
        }
        Ok(summary) => Ok(ExitStatus::from_summary(&summary)),
    }
}
