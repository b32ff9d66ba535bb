//! `hotseat show`: a run that is kept is told to the reports once more.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use hotseat::document::Diagnostic;
use hotseat::report::{self, Console, Events, Format, Look, NotWritable, Reporter, TraceLines, conversation};
use hotseat::store::{RunHead, State, Store, export};

use crate::args::ShowArgs;
use crate::exit::Exit;
use crate::kept::{self, refuse};
use crate::world::{World, stdout};

/// Shows a run, or one of its cases.
pub fn run(args: ShowArgs, world: &World) -> Exit {
    match try_to(&args, world) {
        Ok(exit) | Err(exit) => exit,
    }
}

fn try_to(args: &ShowArgs, world: &World) -> Result<Exit, Exit> {
    formats(&args.output).map_err(|wrong| world.refuse(wrong))?;
    let store = kept::open(&args.at, world)?;
    let head = store.find(&args.run).map_err(|error| refuse(&error, world))?;
    if let Some(to) = &args.export {
        export(&store, &head, &world.folder.join(to)).map_err(|error| refuse(&error, world))?;
        return Ok(Exit::Passed);
    }
    match &args.case {
        Some(case) => show_case(args, &store, &head, case, world),
        None => show_run(args, &store, &head, world),
    }
}

/// Whether the endings of report files name formats.
///
/// # Errors
/// Those that do not.
pub fn formats(outputs: &[PathBuf]) -> Result<(), Vec<Diagnostic>> {
    let wrong = outputs.iter().filter(|path| Format::of(path).is_none());
    let wrong: Vec<Diagnostic> = wrong
        .map(|path| {
            let endings = report::ENDINGS;
            Diagnostic::new(format!("-o {}: the ending names the format, one of {endings}", path.display()))
        })
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

fn show_case(
    args: &ShowArgs,
    store: &Store,
    head: &RunHead,
    case: &str,
    world: &World,
) -> Result<Exit, Exit> {
    let outcome = store.outcome(head, case).map_err(|error| refuse(&error, world))?;
    if args.json {
        return Ok(world.print_json(|out| {
            outcome.attempts.iter().flat_map(|attempt| &attempt.events).try_for_each(|event| {
                serde_json::to_writer(&mut *out, event)?;
                out.write_all(b"\n")
            })
        }));
    }
    let look = Look { color: world.color(), width: world.width(), progress: false, verbose: true };
    let text = conversation(&look, &outcome, &head.about.setting);
    Ok(world.print(|out| out.write_all(text.as_bytes())))
}

fn show_run(args: &ShowArgs, store: &Store, head: &RunHead, world: &World) -> Result<Exit, Exit> {
    let setting = &head.about.setting;
    let not_writable = |path: &Path, error: io::Error| {
        world.complain_of(NotWritable::new(path, error).to_string());
        Exit::Broken
    };
    let mut all: Vec<(&Path, Box<dyn Reporter>)> = Vec::new();
    for path in &args.output {
        let open = |path: &Path| {
            let file = report::create(&world.folder.join(path))?;
            let format = Format::of(path).unwrap_or(Format::Json);
            report::open(file, format, &path.display().to_string(), setting.clone())
        };
        all.push((path, open(path).map_err(|error| not_writable(path, error))?));
    }
    if let Some(path) = &args.trace {
        let file = report::create(&world.folder.join(path)).map_err(|error| not_writable(path, error))?;
        all.push((path, Box::new(TraceLines::new(file))));
    }
    let out = Path::new("standard output");
    let mut events = args.json.then(|| Events::new(io::stdout(), setting.clone()));
    if !args.json && all.is_empty() {
        let look =
            Look { color: world.color(), width: world.width(), progress: false, verbose: args.verbose };
        all.push((out, Box::new(Console::new(stdout(), look, setting.clone()))));
    }
    let mut failed: Option<Exit> = None;
    let told = store.replay(head, &mut |event| {
        all.retain_mut(|(path, reporter)| match reporter.report(&event) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => false,
            Err(error) => {
                failed = Some(not_writable(path, error));
                false
            }
        });
        if let Some(Err(error)) = events.as_mut().map(|events| events.report(&event)) {
            if error.kind() != io::ErrorKind::BrokenPipe {
                failed = Some(not_writable(out, error));
            }
            events = None;
        }
    });
    told.map_err(|error| refuse(&error, world))?;
    if let Some(exit) = failed {
        return Err(exit);
    }
    let came_to = match &head.summary {
        Some(summary) => Exit::of(summary),
        None => Exit::Interrupted,
    };
    if let Some(events) = &mut events {
        let _ = events.end(came_to.code());
    }
    if let (Some(words), false) = (head.summary.as_ref().and_then(|of| of.broken.as_deref()), args.json) {
        world.say_of("note: ", words);
    }
    if matches!(head.state, State::Killed | State::Running) && !args.json {
        let _ = io::stdout().flush();
        let words = match head.state {
            State::Running => "this run goes on".to_string(),
            _ => format!(
                "this run did not come to its end; `hotseat resume {}` runs what is left",
                head.short()
            ),
        };
        world.say_of("note: ", &words);
    }
    Ok(Exit::Passed)
}
