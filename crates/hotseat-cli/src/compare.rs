//! `hotseat compare`: two runs beside each other.

use std::path::Path;

use hotseat::compare::{Rules, Run, compare, read_kept, read_report, write_json, write_words};
use hotseat::document::Diagnostic;
use hotseat::report::Format;

use crate::args::CompareArgs;
use crate::exit::Exit;
use crate::kept;
use crate::world::World;

/// Compares two runs; fails where the second one is worse.
pub fn run(args: &CompareArgs, world: &World) -> Exit {
    let read = |named: &str| read(named, args, world);
    let (before, after) = match (read(&args.before), read(&args.after)) {
        (Ok(before), Ok(after)) => (before, after),
        (one, other) => {
            let mut exit = Exit::Usage;
            let mut mistakes = Vec::new();
            for refused in one.err().into_iter().chain(other.err()) {
                match refused {
                    Refused::Report(mistake) => mistakes.push(mistake),
                    Refused::Kept(said) => exit = said,
                }
            }
            return if mistakes.is_empty() { exit } else { world.refuse(mistakes) };
        }
    };
    let rules = Rules { confidence: args.confidence, other_inputs: args.other_inputs };
    let comparison = compare(&before, &after, rules);
    let exit = match () {
        () if args.strict && comparison.newly_failing() + comparison.lost > 0 => Exit::Failed,
        () if comparison.shared == 0 => Exit::NothingSelected,
        () if comparison.is_worse() => Exit::Failed,
        () => Exit::Passed,
    };
    let printed = match args.json {
        true => world.print_json(|out| write_json(&comparison, exit.code(), out)),
        false => world.print(|out| write_words(&comparison, world.width(), out)),
    };
    if printed == Exit::Passed { exit } else { printed }
}

/// Why there is no run of a name.
enum Refused {
    Report(Diagnostic),
    /// Why has been said.
    Kept(Exit),
}

/// The run of a name: a report, where there is a file of that name, and else one that is kept.
fn read(named: &str, args: &CompareArgs, world: &World) -> Result<Run, Refused> {
    let path = world.folder.join(named);
    // What looks like a file is meant as one, also where it is missing.
    if path.is_file() || Format::of(&path).is_some() {
        return report(named, &path).map_err(Refused::Report);
    }
    let store = kept::open(&args.at, world).map_err(Refused::Kept)?;
    let head = store.find(named).map_err(|error| Refused::Kept(kept::refuse(&error, world)))?;
    read_kept(&store, &head).map_err(|error| {
        world.complain_of(format!("run {}: {error}", head.short()));
        Refused::Kept(Exit::Broken)
    })
}

fn report(named: &str, path: &Path) -> Result<Run, Diagnostic> {
    let wrong = |words: String| Diagnostic::new(format!("{named}: {words}"));
    let text = std::fs::read(path).map_err(|error| {
        let help = "a run is named by its report, a file that `hotseat test -o FILE.json` or `-o FILE.jsonl` has written, or by \
                    its id in `hotseat runs`";
        wrong(format!("cannot be read: {error}")).help(help)
    })?;
    read_report(&text, named).map_err(|error| wrong(error.to_string()))
}
