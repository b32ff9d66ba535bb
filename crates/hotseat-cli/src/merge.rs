//! `hotseat merge`.

use std::io;
use std::path::Path;

use hotseat_document::Diagnostic;
use hotseat_report::store::{RunStore, RunStoreError, StoredRun, merge};

use crate::args::{MergeArgs, ShowArgs};
use crate::context::CliContext;
use crate::exit::{CommandResult, ExitStatus};
use crate::github_reporters::github_reporters;
use crate::input_files::InputFiles;
use crate::show;
use crate::store_location::{self, prune_limits, report_store_error};

/// Merges runs and shows the result. Returns the exit status of the merged run.
pub fn run(args: MergeArgs, context: &CliContext) -> CommandResult {
    show::check_formats(&args.output).map_err(|wrong| context.reject(wrong))?;
    let place = store_location::locate_store(&args.location, context)?;
    let mut inputs = InputFiles::of_saved_runs(&args.location, args.output.iter(), context);
    args.runs.iter().for_each(|run| inputs.add(&context.folder.join(run), "a merged run"));
    let conflicts = inputs.conflicts(args.output.iter().map(|path| ("-o", path)), context);
    if !conflicts.is_empty() {
        return Err(context.reject(conflicts));
    }
    let mut runs: Vec<(RunStore, StoredRun)> = Vec::new();
    for named in &args.runs {
        let file = context.folder.join(named);
        let is_file = file.is_file();
        if !is_file && (named.contains('/') || Path::new(named).extension().is_some()) {
            let help = "`hotseat show RUN --export FILE` writes a saved run to a file; `hotseat runs` lists the saved runs";
            return Err(context.reject([Diagnostic::new(format!("no such file: {named}")).help(help)]));
        }
        let (path, run) = if is_file { (file.as_path(), "last") } else { (&*place.path, named.as_str()) };
        let store = RunStore::open(path).map_err(|error| match error {
            RunStoreError::Unusable(_) if is_file => {
                let help = "`hotseat show RUN --export FILE` writes a saved run to a file that can be merged; reports \
                            cannot be merged";
                context.reject([Diagnostic::new(error.to_string()).help(help)])
            }
            error => report_store_error(&error, context),
        })?;
        let head = store.find(run).map_err(|error| report_store_error(&error, context))?;
        runs.push((store, head));
    }
    let id = merge(&runs, &place.path, prune_limits(&place.storing))
        .map_err(|error| report_store_error(&error, context))?;
    let store = RunStore::open(&place.path).map_err(|error| report_store_error(&error, context))?;
    let head = store.find(&id).map_err(|error| report_store_error(&error, context))?;
    let shown = ShowArgs {
        run: id,
        case: None,
        location: args.location,
        output: args.output,
        trace: None,
        export: None,
        verbose: false,
        json: false,
    };
    // The console shows the run also beside reports.
    let mut more = vec![show::console_reporter(&shown, &head, context)];
    let of_job = github_reporters(context, &head.metadata.setting, io::stdout());
    more.extend(of_job.map_err(|error| context.fail(ExitStatus::RunError, error))?);
    let written = show::show_run(&shown, &store, &head, more, context)?;
    if written != ExitStatus::Passed {
        return Err(written);
    }
    context.print_message(&format!("note: saved as run {}", head.short_id()));
    Ok(head.summary.as_ref().map_or(ExitStatus::RunError, ExitStatus::from_summary))
}
