//! `hotseat recheck`: the conversations of a run are decided again, by what its suites assert now.

use std::path::Path;

use hotseat::config::shown;
use hotseat::document::Diagnostic;
use hotseat::store::{Origin, RunHead, State, Store};

use crate::args::{RecheckArgs, TestArgs};
use crate::exit::Exit;
use crate::kept::{self, refuse};
use crate::resume::{begun_with, of_a_program};
use crate::test::{self, Rechecked, Task};
use crate::world::World;

/// Decides a run again.
pub fn run(args: RecheckArgs, mut world: World) -> Exit {
    match prepare(args, &mut world) {
        Ok((test, rechecked)) => test::run(test, Task::Recheck(rechecked), &world),
        Err(exit) => exit,
    }
}

/// The arguments with which the suites are read, and the run. What is wrong has been said when this fails.
fn prepare(args: RecheckArgs, world: &mut World) -> Result<(TestArgs, Rechecked), Exit> {
    if let Some(program) = args.suites.iter().find(|suite| suite.ends_with(".rs")) {
        let message = format!("{program} is a program, and its conversations are kept by no run");
        let help = "tests in Rust are run again with `cargo test`";
        return Err(world.refuse([Diagnostic::new(message).help(help)]));
    }
    let store = kept::open(&args.at, world)?;
    let named = store.find(&args.run).map_err(|error| refuse(&error, world))?;
    let mut test = arguments(&args, &named, world).map_err(|wrong| world.refuse([wrong]))?;
    test.output = args.output.iter().map(|path| world.folder.join(path)).collect();
    let head = held(&store, named);
    if head.about.folder.is_dir() {
        world.folder.clone_from(&head.about.folder);
    }
    (test.verbose, test.json) = (args.verbose, args.json);
    Ok((test, Rechecked { store, head, judge: args.judge }))
}

/// The run that held the conversations of a run: one that decided them again may have ended some of them early.
fn held(store: &Store, named: RunHead) -> RunHead {
    let mut held = named;
    while let Origin::Rechecked { of } = &held.about.origin {
        match store.find(of) {
            Ok(earlier) => held = earlier,
            // It was given up, and what was decided again is all that there is.
            Err(_) => break,
        }
    }
    held
}

/// The arguments with which the run was begun, but for what contacts somebody or writes something.
fn arguments(args: &RecheckArgs, head: &RunHead, world: &World) -> Result<TestArgs, Diagnostic> {
    let (id, folder) = (head.short(), &head.about.folder);
    if let Some(program) = &head.about.program {
        return Err(of_a_program(id, program));
    }
    if head.state == State::Running {
        return Err(Diagnostic::new(format!("run {id} goes on in another process")));
    }
    if !folder.is_dir() && args.suites.is_empty() {
        let message = format!("run {id} was begun in {}, which is not there any more", folder.display());
        return Err(Diagnostic::new(message).help("name the suites by which its conversations are decided"));
    }
    // Runs that were joined were begun with many. Nobody is contacted, so secrets that were taken out are not missed.
    let command = &head.about.command;
    let begun =
        begun_with(head, if command.is_empty() { vec!["test".to_string()] } else { command.clone() })?;
    let mut select = begun.select;
    let written = match (&*args.suites, &head.about.origin) {
        ([], Origin::Held) => begun.input,
        ([], Origin::Merged { .. } | Origin::Rechecked { .. }) => {
            select.paths = head.about.setting.inputs.iter().map(|input| input.to_string()).collect();
            None
        }
        (suites, _) => {
            let from = if folder.is_dir() { folder.as_path() } else { Path::new(&world.folder) };
            let here = |suite: &String| shown(&world.folder.join(suite), from);
            select.paths = suites.iter().map(here).collect();
            None
        }
    };
    Ok(TestArgs {
        select,
        input: written,
        before: None,
        after: None,
        reporter: None,
        trace: None,
        record: None,
        save: None,
        dry_run: false,
        fail_fast: false,
        ..begun
    })
}
