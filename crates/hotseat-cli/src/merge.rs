//! `hotseat merge`.

use hotseat::store::{RunHead, Store, merge};

use crate::args::{MergeArgs, ShowArgs};
use crate::exit::Exit;
use crate::kept::{self, limits, refuse};
use crate::show;
use crate::world::World;

/// Joins runs, and shows what they come to together. The exit code is that of the run as a whole.
pub fn run(args: MergeArgs, world: &World) -> Exit {
    match try_to(args, world) {
        Ok(exit) | Err(exit) => exit,
    }
}

fn try_to(args: MergeArgs, world: &World) -> Result<Exit, Exit> {
    show::formats(&args.output).map_err(|wrong| world.refuse(wrong))?;
    let place = kept::place(&args.at, world)?;
    let mut runs: Vec<(Store, RunHead)> = Vec::new();
    for named in &args.runs {
        let file = world.folder.join(named);
        let (path, run) =
            if file.is_file() { (file.as_path(), "last") } else { (&*place.path, named.as_str()) };
        let store = Store::open(path).map_err(|error| refuse(&error, world))?;
        let head = store.find(run).map_err(|error| refuse(&error, world))?;
        runs.push((store, head));
    }
    let id = merge(&runs, &place.path, limits(&place.storing)).map_err(|error| refuse(&error, world))?;
    let shown = ShowArgs {
        run: id.clone(),
        case: None,
        at: args.at,
        output: args.output,
        trace: None,
        export: None,
        verbose: false,
        json: false,
    };
    match show::run(shown, world) {
        Exit::Passed => {}
        wrong => return Err(wrong),
    }
    let store = Store::open(&place.path).map_err(|error| refuse(&error, world))?;
    let head = store.find(&id).map_err(|error| refuse(&error, world))?;
    world.say(&format!("note: kept as run {}", head.short()));
    Ok(head.summary.as_ref().map_or(Exit::Broken, Exit::of))
}
