//! `hotseat recheck`: re-evaluates the conversations of a saved run with the current assertions.

use std::path::Path;

use hotseat_document::Diagnostic;
use hotseat_engine::config::{display_path, is_case_word, split_part};
use hotseat_engine::run::RerunCommands;
use hotseat_report::reporters::shell_word;
use hotseat_report::store::{RunOrigin, RunState, RunStore, StoredRun};

use crate::args::{RecheckArgs, SweepArgs, TestArgs};
use crate::context::{CliContext, end_unprepared};
use crate::exit::{CommandResult, ExitStatus};
use crate::input_files::InputFiles;
use crate::resume::{parse_run_arguments, rust_test_error};
use crate::store_location::{self, report_store_error};
use crate::test::{self, RecheckRequest, TestTask};

/// Runs the command.
pub fn run(args: RecheckArgs, mut context: CliContext) -> CommandResult {
    let json = args.json;
    let (test, rechecked) = prepare(args, &mut context).map_err(|exit| end_unprepared(json, exit))?;
    Ok(test::run(test, TestTask::Recheck(rechecked), &context))
}

/// Returns the arguments to load the suites with, and the run. Errors have been printed.
fn prepare(args: RecheckArgs, context: &mut CliContext) -> Result<(TestArgs, RecheckRequest), ExitStatus> {
    if let Some(program) = args.suites.iter().find(|suite| suite.ends_with(".rs")) {
        let message =
            format!("{program} is a Rust test, and conversations of Rust tests cannot be rechecked");
        let help = "run Rust tests again with `cargo test`";
        return Err(context.reject([Diagnostic::new(message).help(help)]));
    }
    let store = store_location::open_store(&args.location, context)?;
    let inputs = InputFiles::of_saved_runs(&args.location, args.output.iter(), context);
    let conflicts = inputs.conflicts(args.output.iter().map(|path| ("-o", path)), context);
    if !conflicts.is_empty() {
        return Err(context.reject(conflicts));
    }
    let named = store.find(&args.run).map_err(|error| report_store_error(&error, context))?;
    let (mut test, replaces_filters) =
        recheck_arguments(&args, &named, context).map_err(|wrong| context.reject([wrong]))?;
    let head = original_run(&store, named);
    let rerun =
        (context.folder == head.metadata.folder).then(|| rerun_commands(&args, &head, &context.folder));
    test.output = args.output.clone();
    if head.metadata.folder.is_dir() {
        test.output = context.move_to(&head.metadata.folder, test.output);
    }
    (test.verbose, test.json) = (args.verbose, args.json);
    Ok((test, RecheckRequest { store, head, ask_judges: args.judge, replaces_filters, rerun }))
}

/// Returns the commands that recheck cases of the run.
fn rerun_commands(args: &RecheckArgs, head: &StoredRun, folder: &Path) -> RerunCommands {
    let locations = [("--config", &args.location.config), ("--store", &args.location.store)];
    let command = |name: &str| {
        let mut words = vec!["hotseat".to_string(), name.to_string(), head.short_id().to_string()];
        for (flag, path) in locations {
            words.extend(path.iter().flat_map(|path| [flag.to_string(), path.display().to_string()]));
        }
        words
    };
    let mut words = command("recheck");
    words.extend(args.judge.then(|| "--judge".to_string()));
    let join = |words: &[String]| words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ");
    let any = join(&words);
    let suites = args.suites.iter().filter(|written| !is_case_word(written, folder));
    let files = suites.map(|suite| split_part(suite).map_or(suite.as_str(), |(file, _)| file));
    words.extend(files.map(str::to_string));
    // A recheck sends nothing; the trace is that of the run.
    let trace = format!("{} --trace trace.jsonl", join(&command("show")));
    RerunCommands { any, suites: join(&words), failed: None, trace: Some(trace) }
}

/// True if the arguments select some cases of the run.
fn selects_cases(args: &RecheckArgs, folder: &Path) -> bool {
    let is_part = |written: &String| split_part(written).is_some() || is_case_word(written, folder);
    !args.filter.is_empty() || args.suites.iter().any(is_part)
}

/// Returns the run that recorded the conversations. A recheck may have ended some of them early, so it is not
/// used.
fn original_run(store: &RunStore, named: StoredRun) -> StoredRun {
    let mut original = named;
    while let RunOrigin::Rechecked { of } = &original.metadata.origin {
        match store.find(of) {
            Ok(earlier) => original = earlier,
            // The original run was pruned; the recheck is all that is left.
            Err(_) => break,
        }
    }
    original
}

/// Returns the arguments of the original run, without those that contact agents or write files, and whether other filters
/// replace those of the run: then only its cases can be selected.
fn recheck_arguments(
    args: &RecheckArgs,
    head: &StoredRun,
    context: &CliContext,
) -> Result<(TestArgs, bool), Diagnostic> {
    let (id, folder) = (head.short_id(), &head.metadata.folder);
    if let Some(program) = &head.metadata.program {
        return Err(rust_test_error(id, program));
    }
    if head.state == RunState::Running {
        return Err(Diagnostic::new(format!("run {id} is still running in another process")));
    }
    let (words, suites): (Vec<String>, Vec<String>) =
        args.suites.iter().cloned().partition(|written| is_case_word(written, &context.folder));
    if !folder.is_dir() && suites.is_empty() {
        let message = format!("the folder of run {id}, {}, no longer exists", folder.display());
        return Err(Diagnostic::new(message).help("name the suites to evaluate: `hotseat recheck RUN SUITE`"));
    }
    // A merged run has several command lines. No agent is contacted, so redacted secrets are not needed.
    let command = &head.metadata.command;
    let begun = parse_run_arguments(
        head,
        if command.is_empty() { vec!["test".to_string()] } else { command.clone() },
    )?;
    let mut select = begun.select;
    let written = match (&*suites, &head.metadata.origin) {
        ([], RunOrigin::Held) => begun.input,
        ([], RunOrigin::Merged { .. } | RunOrigin::Rechecked { .. }) => {
            select.paths = head.metadata.setting.inputs.iter().map(|input| input.to_string()).collect();
            None
        }
        (suites, _) => {
            let from = if folder.is_dir() { folder.as_path() } else { Path::new(&context.folder) };
            let here = |suite: &String| display_path(&context.folder.join(suite), from);
            select.paths = suites.iter().map(here).collect();
            None
        }
    };
    let mut replaces_filters = false;
    if selects_cases(args, &context.folder) {
        replaces_filters = !select.filter.is_empty()
            || select
                .paths
                .iter()
                .any(|written| split_part(written).is_some() || is_case_word(written, folder));
        select.paths.retain(|written| !is_case_word(written, folder));
        select.paths.extend(words);
        select.filter = args.filter.clone();
    }
    let test = TestArgs {
        select,
        input: written,
        before: None,
        after: None,
        reporter: None,
        trace: None,
        record: None,
        record_cassettes: None,
        cassettes: None,
        save: None,
        dry_run: false,
        fail_fast: false,
        sweep: SweepArgs::default(),
        ..begun
    };
    Ok((test, replaces_filters))
}
