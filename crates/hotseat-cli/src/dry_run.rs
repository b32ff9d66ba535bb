//! `hotseat test --dry-run`: everything is checked, and nobody is contacted but whoever makes cases up.

use std::io::{self, BufWriter, Write};

use hotseat::config::Project;
use hotseat::document::Diagnostic;
use hotseat::report::{self, Format, NotWritable, count};
use hotseat::run::Plan;

use crate::args::TestArgs;
use crate::exit::Exit;
use crate::world::World;

/// Says what would be run. With `-o FILE.jsonl` the cases are written there (of other
/// reports there is nothing to write); those that were made up are printed where
/// no file is given, for they are nowhere else.
pub fn run(args: &TestArgs, made_up: bool, plan: &Plan, project: &Project, world: &World) -> Exit {
    if args.json {
        return match list_events(plan, project) {
            Ok(()) => Exit::Passed,
            Err(mistakes) => complain(mistakes, world),
        };
    }
    let files = args.output.iter().filter(|path| Format::of(path) == Some(Format::JsonLines));
    for path in files.clone() {
        let not_writable = |error| {
            world.complain_of(NotWritable::new(path, error).to_string());
            Exit::Broken
        };
        let written = match report::create(&world.folder.join(path)) {
            Ok(file) => write_cases(plan, project, &mut BufWriter::new(file)),
            Err(error) => return not_writable(error),
        };
        match written {
            Ok(Ok(())) => {}
            Ok(Err(mistakes)) => return complain(mistakes, world),
            Err(error) => return not_writable(error),
        }
    }
    if made_up && files.count() == 0 {
        let mut mistakes = None;
        let printed =
            world.print_json(|out| write_cases(plan, project, out).map(|read| mistakes = read.err()));
        return mistakes.map_or(printed, |mistakes| complain(mistakes, world));
    }
    let (cases, suites) = (count(plan.selected, "case"), count(plan.selected_suites, "suite"));
    let contacted = if made_up { "the agent was not contacted" } else { "nobody was contacted" };
    world.print(|out| writeln!(out, "nothing is wrong with {cases} in {suites}; {contacted}"))
}

/// Writes the cases as they are written, a line each.
fn write_cases(
    plan: &Plan,
    project: &Project,
    out: &mut dyn Write,
) -> io::Result<Result<(), Vec<Diagnostic>>> {
    for selected in plan.cases(project) {
        match selected {
            Ok(selected) => writeln!(out, "{}", selected.case.to_json())?,
            Err(mistakes) => return Ok(Err(mistakes)),
        }
    }
    out.flush().map(Ok)
}

/// Tells as events what would be run.
fn list_events(plan: &Plan, project: &Project) -> Result<(), Vec<Diagnostic>> {
    for selected in plan.cases(project) {
        // Who has stopped reading does not miss anything.
        let _ = report::would_run(&mut std::io::stdout(), &selected?);
    }
    Ok(())
}

fn complain(mistakes: Vec<Diagnostic>, world: &World) -> Exit {
    world.complain(mistakes);
    Exit::Usage
}
