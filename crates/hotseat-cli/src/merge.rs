//! `hotseat merge`.

use hotseat::store::{RunStore, StoredRun, merge};

use crate::args::{MergeArgs, ShowArgs};
use crate::context::CliContext;
use crate::exit::ExitStatus;
use crate::show;
use crate::store_location::{self, prune_limits, report_store_error};

/// Merges runs and shows the result. Returns the exit status of the merged run.
pub fn run(args: MergeArgs, world: &CliContext) -> ExitStatus {
    match try_run(args, world) {
        Ok(exit) | Err(exit) => exit,
    }
}

fn try_run(args: MergeArgs, world: &CliContext) -> Result<ExitStatus, ExitStatus> {
    show::check_formats(&args.output).map_err(|wrong| world.reject(wrong))?;
    let place = store_location::locate_store(&args.location, world)?;
    let mut runs: Vec<(RunStore, StoredRun)> = Vec::new();
    for named in &args.runs {
        let file = world.folder.join(named);
        let (path, run) =
            if file.is_file() { (file.as_path(), "last") } else { (&*place.path, named.as_str()) };
        let store = RunStore::open(path).map_err(|error| report_store_error(&error, world))?;
        let head = store.find(run).map_err(|error| report_store_error(&error, world))?;
        runs.push((store, head));
    }
    let id = merge(&runs, &place.path, prune_limits(&place.storing))
        .map_err(|error| report_store_error(&error, world))?;
    let shown = ShowArgs {
        run: id.clone(),
        case: None,
        location: args.location,
        output: args.output,
        trace: None,
        export: None,
        verbose: false,
        json: false,
    };
    match show::run(shown, world) {
        ExitStatus::Passed => {}
        wrong => return Err(wrong),
    }
    let store = RunStore::open(&place.path).map_err(|error| report_store_error(&error, world))?;
    let head = store.find(&id).map_err(|error| report_store_error(&error, world))?;
    world.print_message(&format!("note: saved as run {}", head.short_id()));
    Ok(head.summary.as_ref().map_or(ExitStatus::RunError, ExitStatus::from_summary))
}
