//! `hotseat resume`: runs the remaining cases of an interrupted run with its original arguments.

use std::path::Path;

use clap::Parser;
use hotseat_document::Diagnostic;
use hotseat_report::store::{RunOrigin, RunState, RunStore, StoredRun};

use crate::args::{CliArgs, CliCommand, ResumeArgs, TestArgs};
use crate::context::{CliContext, end_unprepared};
use crate::exit::{CommandResult, ExitStatus};
use crate::store_location::{self, report_store_error};
use crate::test::{self, ResumedRun, TestTask};

/// Beginning of the mark of a redacted secret.
const REDACTED: &str = "[redacted:";

/// Runs the command.
pub fn run(args: ResumeArgs, mut context: CliContext) -> CommandResult {
    let json = args.json;
    let (test, resumed) = prepare(args, &mut context).map_err(|exit| end_unprepared(json, exit))?;
    Ok(test::run(test, TestTask::Resume(resumed), &context))
}

/// Returns the original arguments and the run. Errors have been printed.
fn prepare(args: ResumeArgs, context: &mut CliContext) -> Result<(TestArgs, ResumedRun), ExitStatus> {
    let path = store_location::locate_store(&args.location, context)?.path;
    let store = RunStore::open(&path).map_err(|error| report_store_error(&error, context))?;
    let head = store.find(&args.run).map_err(|error| report_store_error(&error, context))?;
    check_resumable(&head).map_err(|mistake| context.reject([mistake]))?;
    let arguments = restore_arguments(&head, context).map_err(|wrong| context.reject([wrong]))?;
    let mut test = parse_run_arguments(&head, arguments).map_err(|wrong| context.reject([wrong]))?;
    test.parallel = args.parallel.or(test.parallel);
    (test.verbose, test.json) = (args.verbose, args.json);
    let command = &head.metadata.command;
    let is_repeatable =
        context.folder == head.metadata.folder && !command.iter().any(|argument| argument.contains(REDACTED));
    let repeatable = is_repeatable.then(|| command.clone());
    test.output.extend(context.move_to(&head.metadata.folder, args.output));
    Ok((test, ResumedRun { path, store, head, repeatable }))
}

/// Parses the arguments that a run was started with. Fails if this version does not know one of them.
pub fn parse_run_arguments(head: &StoredRun, arguments: Vec<String>) -> Result<TestArgs, Diagnostic> {
    let command = ["hotseat".to_string()].into_iter().chain(arguments);
    match CliArgs::try_parse_from(command) {
        Ok(CliArgs { command: CliCommand::Test(test), .. }) => Ok(*test),
        Ok(_) | Err(_) => {
            let message = format!(
                "run {} was started by another version of Hotseat, with unknown arguments",
                head.short_id()
            );
            Err(Diagnostic::new(message))
        }
    }
}

/// Returns the arguments of the run, with redacted secrets restored from the environment.
fn restore_arguments(head: &StoredRun, context: &CliContext) -> Result<Vec<String>, Diagnostic> {
    let cannot = |why: &str| {
        let message = format!("run {} was started with {why}", head.short_id());
        Diagnostic::new(message).help("start a new run with `hotseat test`")
    };
    if head.metadata.command.is_empty() {
        return Err(cannot("arguments that are not valid UTF-8, which are not saved"));
    }
    let environment = context.project_environment(&head.metadata.project)?;
    let filled_in = head.metadata.command.iter().map(|argument| {
        let mut pieces = argument.split(REDACTED);
        let mut whole = pieces.next().unwrap_or_default().to_string();
        for piece in pieces {
            let (name, rest) = piece.split_once(']').unwrap_or((piece, ""));
            let variable = name.strip_prefix("ENV.").and_then(|variable| environment.get(variable));
            let Some(secret) = variable else {
                return Err(cannot(&format!("the secret `{name}` as an argument, which is not saved")));
            };
            whole.push_str(secret);
            whole.push_str(rest);
        }
        Ok(whole)
    });
    filled_in.collect()
}

/// Error for runs of Rust test binaries, which only the binary itself can repeat.
pub fn rust_test_error(id: &str, program: &str) -> Diagnostic {
    let message = format!("run {id} was made by the Rust tests of {program}");
    Diagnostic::new(message)
        .help("run them again with `cargo test`, or only the failed ones with `cargo test -- --last-failed`")
}

/// True if the run ended during or before its sweep of faults, which follows the cases.
fn lacks_sweep(head: &StoredRun) -> bool {
    let sweeps = |argument: &String| argument == "--faults" || argument.starts_with("--faults=");
    let has_ended = head.summary.as_ref().is_some_and(|summary| !summary.interrupted);
    !has_ended && head.metadata.command.iter().any(sweeps)
}

fn check_resumable(head: &StoredRun) -> Result<(), Diagnostic> {
    let id = head.short_id();
    if let Some(program) = &head.metadata.program {
        return Err(rust_test_error(id, program));
    }
    let why = match (&head.metadata.origin, head.state) {
        (RunOrigin::Rechecked { .. }, _) => {
            format!("run {id} is a recheck of another run; resume that run instead")
        }
        (RunOrigin::Merged { .. }, _) => format!("run {id} was merged from other runs; resume those instead"),
        (RunOrigin::Held, RunState::Running) => format!("run {id} is still running in another process"),
        (RunOrigin::Held, _) if head.unfinished() == 0 && !lacks_sweep(head) => {
            format!("run {id} is complete: all its cases have ended")
        }
        (RunOrigin::Held, _) if !Path::new(&head.metadata.folder).is_dir() => {
            format!("the folder of run {id}, {}, no longer exists", head.metadata.folder.display())
        }
        (RunOrigin::Held, _) => return Ok(()),
    };
    Err(Diagnostic::new(why))
}
