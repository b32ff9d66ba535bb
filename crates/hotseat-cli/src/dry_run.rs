//! `hotseat test --dry-run`: everything is checked, and nobody is contacted but whoever makes cases up.

use std::io::Write;

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
    let cases = match cases(plan, project) {
        Ok(cases) => cases,
        Err(mistakes) => return complain(mistakes, world),
    };
    let files = args.output.iter().filter(|path| Format::of(path) == Some(Format::JsonLines));
    for path in files.clone() {
        let written =
            report::create(&world.folder.join(path)).and_then(|mut file| file.write_all(cases.as_bytes()));
        if let Err(error) = written {
            world.complain_of(NotWritable::new(path, error).to_string());
            return Exit::Broken;
        }
    }
    if made_up && files.count() == 0 {
        return world.print(|out| out.write_all(cases.as_bytes()));
    }
    let (cases, suites) = (count(plan.selected, "case"), count(plan.selected_suites, "suite"));
    let contacted = if made_up { "the agent was not contacted" } else { "nobody was contacted" };
    world.print(|out| writeln!(out, "nothing is wrong with {cases} in {suites}; {contacted}"))
}

/// The cases as they are written, a line each.
fn cases(plan: &Plan, project: &Project) -> Result<String, Vec<Diagnostic>> {
    let mut lines = String::new();
    for selected in plan.cases(project) {
        lines.push_str(&selected?.case.to_json().to_string());
        lines.push('\n');
    }
    Ok(lines)
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
