//! `hotseat show`: replays a saved run to the reporters.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hotseat_document::Diagnostic;
use hotseat_engine::run::{RunEvent, RunSummary};
use hotseat_report::reporters::{
    self, ConsoleReporter, ReportFormat, ReportWriteError, Reporter, TraceReporter, conversation,
    format_count,
};
use hotseat_report::store::{RunState, RunStore, StoredRun, export};

use crate::args::ShowArgs;
use crate::context::{CliContext, end_unprepared, stdout};
use crate::event_stream::EventStream;
use crate::exit::{CommandResult, ExitStatus};
use crate::input_files::InputFiles;
use crate::store_location::{self, report_store_error};

/// Name of the console in errors.
const STANDARD_OUTPUT: &str = "standard output";

/// A reporter with the name of its output.
pub type NamedReporter = (String, Box<dyn Reporter>);

/// Shows a run, or one of its cases.
pub fn run(args: ShowArgs, context: &CliContext) -> CommandResult {
    let found = find_run(&args, context);
    let (store, head) = found.map_err(|exit| end_unprepared(args.json && args.case.is_none(), exit))?;
    if let Some(to) = &args.export {
        export(&store, &head, &context.folder.join(to))
            .map_err(|error| report_store_error(&error, context))?;
        return Ok(ExitStatus::Passed);
    }
    match &args.case {
        Some(case) => show_case(&args, &store, &head, case, context),
        None => {
            let on_console = !args.json && args.output.is_empty() && args.trace.is_none();
            let console = on_console.then(|| console_reporter(&args, &head, context));
            show_run(&args, &store, &head, console.into_iter().collect(), context)
        }
    }
}

/// Opens the store and finds the run. Fails if it does not exist, or a file cannot be written. Errors have been printed.
fn find_run(args: &ShowArgs, context: &CliContext) -> Result<(RunStore, StoredRun), ExitStatus> {
    check_formats(&args.output).map_err(|wrong| context.reject(wrong))?;
    check_no_overwrite(args, context).map_err(|wrong| context.reject(wrong))?;
    let store = store_location::open_store(&args.location, context)?;
    let head = store.find(&args.run).map_err(|error| report_store_error(&error, context))?;
    Ok((store, head))
}

/// Checks that the extensions of the report files name formats.
///
/// # Errors
/// Lists the files with unknown extensions, or with the name of a suite.
pub fn check_formats(outputs: &[PathBuf]) -> Result<(), Vec<Diagnostic>> {
    let wrong: Vec<Diagnostic> = outputs
        .iter()
        .filter_map(|path| match ReportFormat::from_path(path) {
            Some(_) => reporters::check_report_name("-o", path).err(),
            None => {
                let endings = reporters::REPORT_EXTENSIONS;
                let message = format!("-o {}: unknown extension, expected one of {endings}", path.display());
                Some(Diagnostic::new(message))
            }
        })
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

/// Checks that no output file is one of the project, the store, a suite or its cases. Lists such files.
fn check_no_overwrite(args: &ShowArgs, context: &CliContext) -> Result<(), Vec<Diagnostic>> {
    let outputs =
        args.output.iter().map(|path| ("-o", path)).chain(args.trace.iter().map(|path| ("--trace", path)));
    let inputs = InputFiles::of_saved_runs(&args.location, args.output.iter().chain(&args.trace), context);
    let mut wrong = inputs.conflicts(outputs, context);
    wrong.extend(args.trace.iter().filter_map(|path| reporters::check_report_name("--trace", path).err()));
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

fn show_case(
    args: &ShowArgs,
    store: &RunStore,
    head: &StoredRun,
    case: &str,
    context: &CliContext,
) -> CommandResult {
    let outcome = store.outcome(head, case).map_err(|error| report_store_error(&error, context))?;
    if args.json {
        return Ok(context.print_json(|out| {
            outcome.attempts.iter().flat_map(|attempt| &attempt.events).try_for_each(|event| {
                serde_json::to_writer(&mut *out, event)?;
                out.write_all(b"\n")
            })
        }));
    }
    let look = context.console_options(true, false);
    let text = conversation(&look, &outcome, &head.metadata.setting);
    Ok(context.print(|out| out.write_all(text.as_bytes())))
}

/// Reports an event. Removes the reporters that fail, and returns their errors, except for closed pipes.
fn report_to(all: &mut Vec<NamedReporter>, event: &RunEvent) -> Vec<(String, io::Error)> {
    let mut failed = Vec::new();
    all.retain_mut(|(name, reporter)| match reporter.report(event) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => false,
        Err(error) => {
            failed.push((name.clone(), error));
            false
        }
    });
    failed
}

/// The summary of a run that has not ended, with the time from its start to its last result.
fn summarize_saved(saved: RunSummary, duration: Duration, head: &StoredRun) -> RunSummary {
    let (known, all) = (saved.total, head.metadata.total);
    let words = format!("the run has not ended: {known} of {} have a result", format_count(all, "case"));
    RunSummary {
        interrupted: true,
        unfinished: true,
        broken: Some(words.into()),
        started_at: head.started_at,
        ended_at: head.started_at + i64::try_from(duration.as_millis()).unwrap_or(0),
        duration,
        ..saved
    }
}

/// Returns the reporter that shows a run on the console.
pub fn console_reporter(args: &ShowArgs, head: &StoredRun, context: &CliContext) -> NamedReporter {
    let look = context.console_options(args.verbose, false);
    let mut setting = head.metadata.setting.clone();
    if !args.output.is_empty() {
        // The files of this command, not those of the run.
        let outputs = args.output.iter().map(|path| path.display().to_string());
        Arc::make_mut(&mut setting).choices.outputs = outputs.collect();
    }
    let console = ConsoleReporter::new(stdout(), look, setting);
    (STANDARD_OUTPUT.to_string(), Box::new(console))
}

/// Opens the files that the run is written to. Fails with the name of the file that cannot be opened.
fn open_files(
    args: &ShowArgs,
    head: &StoredRun,
    context: &CliContext,
) -> Result<Vec<NamedReporter>, (String, io::Error)> {
    let setting = &head.metadata.setting;
    let files = args.output.iter().map(|path| {
        let name = path.display().to_string();
        let format = ReportFormat::from_path(path).unwrap_or(ReportFormat::Json);
        let opened = reporters::open_output_file(&context.folder.join(path))
            .and_then(|file| reporters::open_report(file, format, &name, setting.clone()));
        opened.map(|report| (name.clone(), report)).map_err(|error| (name, error))
    });
    let trace = args.trace.iter().map(|path| {
        let name = path.display().to_string();
        match reporters::create_file(&context.folder.join(path)) {
            Ok(file) => Ok((name, Box::new(TraceReporter::new(file)) as Box<dyn Reporter>)),
            Err(error) => Err((name, error)),
        }
    });
    files.chain(trace).collect()
}

/// Writes the reports of a run, and passes it to `more` reporters.
pub fn show_run(
    args: &ShowArgs,
    store: &RunStore,
    head: &StoredRun,
    more: Vec<NamedReporter>,
    context: &CliContext,
) -> CommandResult {
    let not_writable = |name: &str, error: io::Error| {
        context.fail(ExitStatus::RunError, ReportWriteError::new(Path::new(name), error))
    };
    let mut all = open_files(args, head, context).map_err(|(name, error)| not_writable(&name, error))?;
    all.extend(more);
    let events = args.json.then(|| EventStream::new(head.metadata.setting.clone()));
    if let Some(events) = &events {
        all.push((STANDARD_OUTPUT.to_string(), Box::new(events.clone())));
    }
    let mut failed: Option<ExitStatus> = None;
    let mut report = |event: &RunEvent| {
        for (name, error) in report_to(&mut all, event) {
            failed = Some(not_writable(&name, error));
        }
    };
    let (mut saved, mut duration) = (RunSummary::default(), Duration::ZERO);
    let replayed = store.replay(head, &mut |event| {
        report(&event);
        if let RunEvent::CaseEnded(outcome) = &event {
            saved.count_outcome(outcome);
            duration = duration.max(outcome.elapsed_since(head.started_at));
        }
    });
    if head.summary.is_none() {
        // The reports of a run that was killed have what was saved.
        report(&RunEvent::Ended(Box::new(summarize_saved(saved, duration, head))));
    }
    for (name, reporter) in &mut all {
        if let Err(error) = reporter.flush()
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            failed = Some(not_writable(name, error));
        }
    }
    let shown = replayed.map_err(|error| report_store_error(&error, context));
    let shown = shown.and(failed.map_or(Ok(()), Err));
    if let Some(events) = &events {
        let came_to = head.summary.as_ref().map_or(ExitStatus::Interrupted, ExitStatus::from_summary);
        // What can no longer be written is no error of the run.
        let _ = events.end(shown.err().unwrap_or(came_to).code());
    }
    shown?;
    if let (Some(words), false) = (head.summary.as_ref().and_then(|of| of.broken.as_deref()), args.json) {
        context.print_with_prefix("note: ", words);
    }
    if matches!(head.state, RunState::Killed | RunState::Running) && !args.json {
        let _ = io::stdout().flush();
        let words = match head.state {
            RunState::Running => "this run is still running".to_string(),
            _ => format!(
                "this run is incomplete; `hotseat resume {}` runs the remaining cases",
                head.short_id()
            ),
        };
        context.print_with_prefix("note: ", &words);
    }
    Ok(ExitStatus::Passed)
}
