//! `hotseat resume`: what is left of a run is run, with the arguments with which the run was begun.

use std::path::Path;

use clap::Parser;
use hotseat::document::Diagnostic;
use hotseat::store::{Origin, RunHead, State, Store};

use crate::args::{Args, Command, ResumeArgs, TestArgs};
use crate::exit::Exit;
use crate::kept::{self, refuse};
use crate::test::{self, Resumed, Task};
use crate::world::World;

/// Goes on with a run.
pub fn run(args: ResumeArgs, mut world: World) -> Exit {
    match prepare(args, &mut world) {
        Ok((test, resumed)) => test::run(test, Task::Resume(resumed), &world),
        Err(exit) => exit,
    }
}

/// The arguments of the run, and the run itself. What is wrong has been said when this fails.
fn prepare(args: ResumeArgs, world: &mut World) -> Result<(TestArgs, Resumed), Exit> {
    let path = kept::place(&args.at, world)?.path;
    let store = Store::open(&path).map_err(|error| refuse(&error, world))?;
    let head = store.find(&args.run).map_err(|error| refuse(&error, world))?;
    can_go_on(&head).map_err(|mistake| world.refuse([mistake]))?;
    let arguments = arguments(&head, world).map_err(|wrong| world.refuse([wrong]))?;
    let mut test = begun_with(&head, arguments).map_err(|wrong| world.refuse([wrong]))?;
    let outputs = args.output.iter().map(|path| world.folder.join(path));
    test.output.extend(outputs);
    test.parallel = args.parallel.or(test.parallel);
    (test.verbose, test.json) = (args.verbose, args.json);
    world.folder.clone_from(&head.about.folder);
    Ok((test, Resumed { path, store, head }))
}

/// These arguments, with which a run was begun, as they are meant.
///
/// # Errors
/// When they are none that this version knows.
pub fn begun_with(head: &RunHead, arguments: Vec<String>) -> Result<TestArgs, Diagnostic> {
    let command = ["hotseat".to_string()].into_iter().chain(arguments);
    match Args::try_parse_from(command) {
        Ok(Args { command: Command::Test(test), .. }) => Ok(*test),
        Ok(_) | Err(_) => {
            let message =
                format!("run {} was begun by another version, in words that are not known", head.short());
            Err(Diagnostic::new(message))
        }
    }
}

/// The arguments with which a run was begun. Secrets of the environment were taken out of them, and are put in again.
fn arguments(head: &RunHead, world: &World) -> Result<Vec<String>, Diagnostic> {
    let cannot = |why: &str| {
        let message = format!("run {} was begun with {why}", head.short());
        Diagnostic::new(message).help("begin it anew, with all its arguments")
    };
    if head.about.command.is_empty() {
        return Err(cannot("arguments that are no text, and they are not kept"));
    }
    let filled_in = head.about.command.iter().map(|argument| {
        let mut pieces = argument.split("[redacted:");
        let mut whole = pieces.next().unwrap_or_default().to_string();
        for piece in pieces {
            let (name, rest) = piece.split_once(']').unwrap_or((piece, ""));
            let variable = name.strip_prefix("ENV.").and_then(|variable| world.environment.get(variable));
            let Some(secret) = variable else {
                return Err(cannot(&format!("a secret among its arguments, `{name}`, which is not kept")));
            };
            whole.push_str(secret);
            whole.push_str(rest);
        }
        Ok(whole)
    });
    filled_in.collect()
}

/// The mistake of asking for the tests of a program, which only that can run.
pub fn of_a_program(id: &str, program: &str) -> Diagnostic {
    let message = format!("run {id} was made by {program}, which is a program: only that can run its tests");
    Diagnostic::new(message)
        .help("`cargo test` runs them again, and `-- --last-failed` those of them that failed")
}

fn can_go_on(head: &RunHead) -> Result<(), Diagnostic> {
    let id = head.short();
    if let Some(program) = &head.about.program {
        return Err(of_a_program(id, program));
    }
    let why = match (&head.about.origin, head.state) {
        (Origin::Rechecked { .. }, _) => {
            format!("run {id} decided conversations of another run and held none")
        }
        (Origin::Merged { .. }, _) => format!("run {id} was joined from others: go on with those"),
        (Origin::Held, State::Running) => format!("run {id} goes on in another process"),
        (Origin::Held, _) if head.unfinished() == 0 => {
            format!("nothing is left of run {id}: all its cases have ended")
        }
        (Origin::Held, _) if !Path::new(&head.about.folder).is_dir() => {
            format!("run {id} was begun in {}, which is not there any more", head.about.folder.display())
        }
        (Origin::Held, _) => return Ok(()),
    };
    Err(Diagnostic::new(why))
}
