//! `hotseat test`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotseat::adapters::http::Http;
use hotseat::config::{Calling, ContextFile, Project, StartedAgent};
use hotseat::document::{Diagnostic, Diagnostics};
use hotseat::report::{
    self, Console, Events, Format, GitHub, Look, NotWritable, Recordings, Reply, Reporter, SavedCases,
    TraceLines,
};
use hotseat::run::{
    self, AskPerson, Before, Choices, Control, Keep, Options, Outside, Overrides, PassRate, Plan, RunEvent,
    Setting, Started, Summary, execute,
};
use hotseat::session::{Asked, OnMissingInput, Person, wall_millis};
use serde_json::json;
use tokio::sync::watch;

use crate::args::{CallArgs, MissingInput, TestArgs};
use crate::dry_run;
use crate::exit::Exit;
use crate::input::Input;
use crate::keyboard::Keyboard;
use crate::list::{open, read};
use crate::signals::Signals;
use crate::world::World;
use crate::writer::Writer;

/// How many conversations are held at once where nobody says: they wait for the network most of the time, and an
/// agent on a developer's machine still copes.
const PARALLEL: usize = 8;

/// Runs the cases that are selected.
pub fn run(args: TestArgs, world: &World) -> Exit {
    let json = args.json;
    let mut events = None;
    let exit = carry_out(args, world, &mut events);
    if !json {
        return exit;
    }
    let ended = match &mut events {
        Some(events) => events.end(exit.code()),
        None => report::nothing_ran(&mut io::stdout(), exit.code()),
    };
    match ended {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Exit::Broken,
        Ok(()) | Err(_) => exit,
    }
}

/// Whether arguments that could not be read ask for events.
pub fn wants_events(mut arguments: impl Iterator<Item = OsString>) -> bool {
    arguments.nth(1).is_some_and(|command| command == "test") && arguments.any(|word| word == "--json")
}

/// Says as events that the arguments are wrong.
pub fn misused(words: &str) {
    let words = words.trim();
    let mistake = Diagnostic::new(words.strip_prefix("error: ").unwrap_or(words));
    let _ = report::mistake(&mut io::stdout(), &mistake)
        .and_then(|()| report::nothing_ran(&mut io::stdout(), Exit::Usage.code()));
}

/// Does what the arguments say. Events, where they are asked for, still lack their end.
fn carry_out(mut args: TestArgs, world: &World, events: &mut Option<Events<io::Stdout>>) -> Exit {
    let calling = match calling(&args.call, world) {
        Ok(calling) => calling,
        Err(mistakes) => {
            world.complain(mistakes);
            return Exit::Usage;
        }
    };
    let input = args.input.as_deref().map(|written| Input::read(written, &world.folder));
    let input = match input.transpose() {
        Ok(input) => input,
        Err(mistake) => {
            world.complain([mistake]);
            return Exit::Usage;
        }
    };
    if let Some(Input::File(path)) = &input {
        args.select.paths.push(path.clone());
    }
    let project = match open(&args.select, calling, args.simulator.as_ref(), world) {
        Ok(project) => Arc::new(project),
        Err(exit) => return exit,
    };
    let http = Arc::new(Http::default());
    let given = input.as_ref().map(|input| input.suites(&args.select, &project, &http, world)).transpose();
    let plan = match given {
        Ok(given) => read(&args.select, given.flatten(), &project, world),
        Err(mistakes) => {
            world.complain(mistakes);
            return Exit::Broken;
        }
    };
    let mut plan = match plan {
        Ok(plan) => plan,
        Err(exit) => return exit,
    };
    let hooks = args.before.iter().chain(&args.after);
    let wrong: Vec<Diagnostic> = hooks.filter_map(|name| project.wrong_hook(name)).collect();
    if !wrong.is_empty() {
        world.complain(wrong);
        return Exit::Usage;
    }
    if let Some(writer) = &args.reporter {
        match project.find_helper(writer, None) {
            Ok(helper) => plan.add_helper(helper),
            Err(mistakes) => {
                world.complain(mistakes);
                return Exit::Usage;
            }
        }
    }
    if plan.lacks_agent() {
        world.complain([project.no_target()]);
        return Exit::Usage;
    }
    let keep = match (&args.trace, &args.record) {
        (Some(_), _) => Keep::Raw,
        (None, Some(_)) => Keep::Events,
        (None, None) => Keep::Nothing,
    };
    let outside = Outside::new(project.clone(), plan.reached(), http.clone(), args.timeout, keep);
    let outside = match outside {
        Ok(mut outside) => {
            outside.overrides = overrides(&args, input.as_ref());
            outside.person = person(&args, world);
            Arc::new(outside)
        }
        Err(mistakes) => {
            world.complain(mistakes);
            return Exit::Usage;
        }
    };
    let options = match options(&args, &project, &plan) {
        Ok(options) => options,
        Err(mistake) => {
            world.complain([mistake]);
            return Exit::Usage;
        }
    };
    if let Err(mistakes) = check_outputs(&args, world) {
        world.complain(mistakes);
        return Exit::Usage;
    }
    // Of one message nothing is to be asserted.
    if !matches!(input, Some(Input::Message(_) | Input::Lines)) {
        world.note(&plan.notes);
    }
    if args.dry_run {
        let made_up = matches!(input, Some(Input::Generated(..)));
        return dry_run::run(&args, made_up, &plan, &project, world);
    }
    let outputs = match open_outputs(&args, world) {
        Ok(outputs) => outputs,
        Err(error) => {
            world.complain_of(error.to_string());
            return Exit::Broken;
        }
    };
    let choices = Choices {
        options,
        parallel_asked: args.parallel.or(project.parallel).is_some(),
        run: args.select.run.clone(),
        agent: args.select.agent.clone(),
        connector: args.call.connector.clone(),
        outputs: outputs.iter().map(|output| output.shown.clone()).collect(),
    };
    let setting = Arc::new(Setting::new(&plan, &outside, choices));
    let is_message = matches!(input, Some(Input::Message(_)));
    let mut reporters = match reporters(&args, world, &project, &plan, is_message, outputs, &setting) {
        Ok(reporters) => reporters,
        Err(error) => {
            world.complain_of(error.to_string());
            return Exit::Broken;
        }
    };
    let plan = Arc::new(plan);
    // One thread: a run waits for agents nearly all the time, and handing conversations from thread to thread costs
    // more than it gains until thousands of turns end each second.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            world.complain_of(format!("cannot start: {error}"));
            return Exit::Broken;
        }
    };
    let ended = runtime.block_on(async {
        let (wishes, control) = watch::channel(Control::Run);
        let signals =
            Signals::new().map_err(|error| vec![Diagnostic::new(format!("cannot start: {error}"))])?;
        tokio::select! {
            ended = hold_all(&plan, &args, outside, &http, options, control, &mut reporters) => ended,
            // The person at the keyboard has asked three times. What is dropped here ends its processes.
            () = signals.pass_on(wishes) => Ok(Summary { interrupted: true, ..Summary::default() }),
        }
    });
    reporters.warnings.iter().for_each(|words| world.say(&format!("warning: {words}")));
    let not_written = reporters.errors;
    *events = reporters.events;
    // Tasks that are stuck in something uninterruptible must not keep the program.
    runtime.shutdown_background();
    match ended {
        Err(mistakes) => {
            world.complain(mistakes);
            Exit::Broken
        }
        Ok(_) if !not_written.is_empty() => {
            not_written.into_iter().for_each(|words| world.complain_of(words));
            Exit::Broken
        }
        Ok(summary) => exit_of(&summary),
    }
}

/// Whether a person may be asked in the run.
fn asks_person(args: &TestArgs, plan: &Plan) -> bool {
    !args.skip_interactive && (args.interactive || plan.asks_person)
}

/// How the run is carried out.
fn options(args: &TestArgs, project: &Project, plan: &Plan) -> Result<Options, Diagnostic> {
    let runs = args.runs.or(project.runs).unwrap_or(1);
    if runs == 1 && args.min_pass_rate.is_some() {
        let help = "`--runs N` runs each case several times";
        return Err(
            Diagnostic::new("--min-pass-rate is a part of the runs of a case, which is run once").help(help)
        );
    }
    if runs > 1 && args.retries.is_some_and(|retries| retries > 0) {
        let message = format!("--retries and {runs} runs of each case: one of the two");
        let help =
            "runs are never tried again, for that would hide how steady a case is; `--runs 1` runs each once";
        return Err(Diagnostic::new(message).help(help));
    }
    // Who is asked by several conversations at once would not know which of them to answer.
    let unless_said = if asks_person(args, plan) { 1 } else { PARALLEL };
    Ok(Options {
        parallel: args.parallel.or(project.parallel).unwrap_or(unless_said),
        fail_fast: args.fail_fast,
        runs,
        min_pass_rate: args
            .min_pass_rate
            .or_else(|| project.min_pass_rate.and_then(PassRate::new))
            .unwrap_or(PassRate::ALL),
        retries: args.retries.map(usize::from),
        default_retries: project.retries,
        fail_on_skip: args.fail_on_skip,
    })
}

/// How the command line wants agents to be spoken to.
fn calling(args: &CallArgs, world: &World) -> Result<Calling, Diagnostics> {
    let context = args
        .ctx
        .as_ref()
        .map(|path| ContextFile::read(&world.folder.join(path), &path.to_string_lossy(), &world.environment));
    Ok(Calling {
        user: args.user.clone(),
        team: args.team.clone(),
        locale: args.locale.clone(),
        connector: args.connector.clone(),
        context: context.transpose()?,
    })
}

fn overrides(args: &TestArgs, input: Option<&Input>) -> Overrides {
    Overrides {
        on_missing_input: args.on_missing_input.map(|missing| match missing {
            MissingInput::Skip => OnMissingInput::Skip,
            MissingInput::Fail => OnMissingInput::Fail,
            MissingInput::End => OnMissingInput::End,
        }),
        person: match (input, args.skip_interactive, args.interactive) {
            // Whoever types says when the conversation is over.
            (Some(Input::Lines), ..) => Some(AskPerson::In(Asked::Always)),
            (_, true, _) => Some(AskPerson::Never),
            (_, false, true) => Some(AskPerson::In(Asked::WhenAwaited)),
            (_, false, false) => None,
        },
    }
}

/// The person at the keyboard, or whoever writes to standard input.
fn person(args: &TestArgs, world: &World) -> Option<Arc<dyn Person>> {
    (!args.skip_interactive).then(|| -> Arc<dyn Person> { Arc::new(Keyboard::new(world)) })
}

fn exit_of(summary: &Summary) -> Exit {
    match summary {
        summary if summary.interrupted => Exit::Interrupted,
        summary if summary.never_reached() => Exit::Broken,
        summary if summary.has_failed() => Exit::Failed,
        _ => Exit::Passed,
    }
}

/// Starts the agents where the project says how, holds all conversations, and stops them again.
async fn hold_all(
    plan: &Arc<Plan>,
    args: &TestArgs,
    outside: Arc<Outside>,
    http: &Http,
    options: Options,
    control: watch::Receiver<Control>,
    reporters: &mut Reporters,
) -> Result<Summary, Vec<Diagnostic>> {
    let project = outside.project.clone();
    let (started_at, clock) = (wall_millis(), std::time::Instant::now());
    // Nothing ran; the reports say so and are whole.
    let nothing_ran = |interrupted: bool| {
        let (ended_at, duration) = (wall_millis(), clock.elapsed());
        Summary { interrupted, started_at, ended_at, duration, ..Summary::default() }
    };
    let mut agents = Started::new();
    for agent in plan.reached() {
        let Some(start) = &agent.start else { continue };
        let mut interrupted = control.clone();
        let started = tokio::select! {
            started = StartedAgent::start(start, project.environment(), project.redactor(), http) => Some(started),
            // Dropping what was being started ends it.
            Ok(_) = interrupted.changed() => None,
        };
        let not_started = match started {
            Some(Ok(started)) => {
                agents.push((agent.clone(), started));
                continue;
            }
            Some(Err(failure)) => Some(failure),
            None => None,
        };
        stop(agents).await;
        let summary = nothing_ran(not_started.is_none());
        reporters.report(&RunEvent::Ended(&summary));
        return match not_started {
            Some(failure) => Err(vec![agent_not_started(failure.message, failure.detail)]),
            None => Ok(summary),
        };
    }
    let before = match run_before(plan, args, &outside).await {
        Ok(before) => before,
        Err(mistakes) => {
            stop(agents).await;
            reporters.report(&RunEvent::Ended(&nothing_ran(false)));
            return Err(mistakes);
        }
    };
    let mut results = Vec::new();
    let mut report = |event: RunEvent<'_>| {
        if let (RunEvent::CaseEnded(outcome), Some(_)) = (&event, &args.after) {
            results.push(run::result(outcome));
        }
        reporters.report(&event);
    };
    let ended = execute(plan, outside.clone(), options, control, &mut agents, &mut report).await;
    if let Some(name) = &args.after {
        let told = json!({"results": results, "before_data": before.data});
        if let Err(failure) = outside.run_around(name, told).await {
            reporters.warnings.push(format!("--after {name} failed: {}", failure.message));
        }
    }
    if let Some(writer) = reporters.writer.take() {
        reporters.errors.extend(writer.write(&outside).await.err().into_iter().flatten());
    }
    stop(agents).await;
    ended
}

/// Runs what `--before` names.
async fn run_before(plan: &Plan, args: &TestArgs, outside: &Outside) -> Result<Before, Vec<Diagnostic>> {
    let Some(name) = &args.before else { return Ok(Before::default()) };
    let mut cases = Vec::new();
    for selected in plan.cases(&outside.project) {
        cases.push(selected?.case.to_json());
    }
    let ran = outside.run_around(name, json!({"test_cases": cases})).await;
    ran.map_err(|failure| {
        let message = format!("--before {name} failed, and nothing ran: {}", failure.message);
        vec![agent_not_started(message, failure.detail)]
    })
}

async fn stop(agents: Started) {
    for (_, agent) in agents {
        agent.stop().await;
    }
}

fn agent_not_started(message: String, last_output: Option<String>) -> Diagnostic {
    let diagnostic = Diagnostic::new(message);
    match last_output {
        // No line of what the agent printed can be taken for a command to a CI server.
        Some(output) => {
            diagnostic.help(output.lines().collect::<Vec<_>>().join("\n│ ").replace("##[", "## ["))
        }
        None => diagnostic,
    }
}

/// All reporters of a run. One that cannot write is dropped; the run goes on, and its exit code tells.
struct Reporters {
    /// Those that are dropped silently if nobody reads them come last: they tell what became of the others.
    all: Vec<(String, Box<dyn Reporter>)>,
    events: Option<Events<io::Stdout>>,
    /// Who writes reports when the run is over.
    writer: Option<Writer>,
    /// What went wrong and changes nothing.
    warnings: Vec<String>,
    errors: Vec<String>,
}

impl Reporters {
    fn report(&mut self, event: &RunEvent<'_>) {
        let mut lost: Vec<String> = Vec::new();
        let errors = &mut self.errors;
        self.all.retain_mut(|(name, reporter)| {
            lost.iter().for_each(|output| reporter.lost(output));
            match reporter.report(event) {
                Ok(()) => true,
                // Whoever read our output has read enough: `hotseat test | head` is no failure.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => false,
                Err(error) => {
                    errors.push(format!("cannot write {name}: {error}"));
                    lost.push(name.clone());
                    false
                }
            }
        });
        match self.events.as_mut().map(|events| events.report(event)) {
            Some(Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => {
                errors.push(format!("cannot write standard output: {error}"));
                self.events = None;
            }
            Some(Ok(()) | Err(_)) | None => {}
        }
    }
}

/// Whether a report is asked for in a folder, under a name of our choice.
fn is_folder(path: &Path, world: &World) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/") || world.folder.join(path).is_dir()
}

/// Whether a report is one that a helper writes.
fn is_for_writer(path: &Path, args: &TestArgs, world: &World) -> bool {
    args.reporter.is_some() && Format::of(path).is_none() && !is_folder(path, world)
}

/// What is wrong with the report files that were asked for.
fn check_outputs(args: &TestArgs, world: &World) -> Result<(), Vec<Diagnostic>> {
    let mut mistakes = Vec::new();
    let mut files = BTreeSet::new();
    for path in &args.output {
        if Format::of(path).is_none() && args.reporter.is_none() && !is_folder(path, world) {
            let message =
                format!("-o {}: the ending names the format, one of {}", path.display(), report::ENDINGS);
            let help = "a folder, written with a `/` at its end, gets a file whose name is the time";
            mistakes.push(Diagnostic::new(message).help(help));
        }
        if !files.insert(world.folder.join(path)) {
            mistakes.push(Diagnostic::new(format!("-o {} is given twice", path.display())));
        }
    }
    if let Some(path) = args.trace.as_ref().filter(|path| files.contains(&world.folder.join(path))) {
        mistakes.push(Diagnostic::new(format!("--trace {} is a file that -o names already", path.display())));
    }
    if let Some(who) = args.reporter.as_ref().filter(|_| args.json)
        && !args.output.iter().any(|path| is_for_writer(path, args, world))
    {
        let message =
            format!("--reporter {who}: beside --json there is no room for what it writes on standard output");
        mistakes.push(Diagnostic::new(message).help("give it a file, for instance `-o report.md`"));
    }
    if mistakes.is_empty() { Ok(()) } else { Err(mistakes) }
}

/// A report file that is still empty.
struct Output {
    file: File,
    format: Format,
    /// The file, as it is shown to people.
    shown: String,
}

fn open_outputs(args: &TestArgs, world: &World) -> Result<Vec<Output>, NotWritable> {
    let mut outputs = Vec::new();
    for path in args.output.iter().filter(|path| !is_for_writer(path, args, world)) {
        let (path, file) = match is_folder(path, world) {
            true => create_in(path, world)?,
            false => {
                let file = report::create(&world.folder.join(path));
                (path.clone(), file.map_err(|error| NotWritable::new(path, error))?)
            }
        };
        let format = Format::of(&path).unwrap_or(Format::JsonLines);
        outputs.push(Output { file, format, shown: path.display().to_string() });
    }
    Ok(outputs)
}

/// A file of its own for this run: `output-20260131120000.jsonl`, after the time in UTC. Runs of the same second are
/// numbered.
fn create_in(folder: &Path, world: &World) -> Result<(PathBuf, File), NotWritable> {
    let time = jiff::Timestamp::now().strftime("%Y%m%d%H%M%S").to_string();
    let mut number = 1;
    loop {
        let name = match number {
            1 => format!("output-{time}.jsonl"),
            number => format!("output-{time}-{number}.jsonl"),
        };
        let path = folder.join(name);
        match report::create_new(&world.folder.join(&path)) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1_000 => number += 1,
            Err(error) => return Err(NotWritable::new(&path, error)),
        }
    }
}

fn reporters(
    args: &TestArgs,
    world: &World,
    project: &Project,
    plan: &Plan,
    is_message: bool,
    outputs: Vec<Output>,
    setting: &Arc<Setting>,
) -> Result<Reporters, NotWritable> {
    let mut all: Vec<(String, Box<dyn Reporter>)> = Vec::new();
    for Output { file, format, shown } in outputs {
        let report = report::open(file, format, &shown, setting.clone())
            .map_err(|error| NotWritable::new(Path::new(&shown), error))?;
        all.push((shown, report));
    }
    if let Some(path) = &args.trace {
        let file = report::create(&world.folder.join(path)).map_err(|error| NotWritable::new(path, error))?;
        all.push((path.display().to_string(), Box::new(TraceLines::new(file))));
    }
    if let Some(path) = &args.record {
        let folder = world.folder.join(path);
        let recordings =
            Recordings::open(folder, project.root.clone()).map_err(|error| NotWritable::new(path, error))?;
        all.push((format!("recordings in {}", path.display()), Box::new(recordings)));
    }
    if let Some(path) = &args.save {
        let file = report::create(&world.folder.join(path)).map_err(|error| NotWritable::new(path, error))?;
        all.push((path.display().to_string(), Box::new(SavedCases::new(file))));
    }
    let mut writer = None;
    if let Some(who) = &args.reporter {
        let files = args.output.iter().filter(|path| is_for_writer(path, args, world));
        let files = files.map(|path| world.folder.join(path)).collect();
        let (asked, collects) = Writer::new(who.clone(), files, args.verbose, setting.clone())
            .map_err(|error| NotWritable::new(Path::new("a temporary file"), error))?;
        all.push((format!("what {who} is told"), collects));
        writer = Some(asked);
    }
    let events = args.json.then(|| Events::new(io::stdout(), setting.clone()));
    if events.is_none() && is_message && !args.verbose {
        all.push(("standard output".to_string(), Box::new(Reply::new(io::stdout(), world.width()))));
    } else if events.is_none() {
        let look = Look {
            color: world.color(),
            width: world.width(),
            // Where somebody types nothing is drawn again and again.
            progress: world.progress() && !asks_person(args, plan),
            verbose: args.verbose,
        };
        let console = Console::new(io::stdout(), look, setting.clone());
        all.push(("standard output".to_string(), Box::new(console)));
    }
    if world.environment.get("GITHUB_ACTIONS").is_some_and(|value| value == "true") {
        let workspace = world.environment.get("GITHUB_WORKSPACE").map(Into::into);
        // They are read wherever they are printed; beside events there is room for them on standard error only.
        let annotations: Box<dyn Reporter> = match events.is_some() {
            true => Box::new(GitHub::new(io::stderr(), workspace)),
            false => Box::new(GitHub::new(io::stdout(), workspace)),
        };
        all.push(("annotations".to_string(), annotations));
    }
    Ok(Reporters { all, events, writer, warnings: Vec::new(), errors: Vec::new() })
}
