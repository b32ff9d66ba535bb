//! `hotseat list`, and what it shares with `hotseat test`: finding and reading suites.

use hotseat::config::{Project, discover, shown};
use hotseat::document::Diagnostic;
use hotseat::run::{Plan, Selection};
use serde_json::json;

use crate::args::{ListArgs, SelectArgs};
use crate::exit::Exit;
use crate::world::World;

/// Lists the cases that are selected.
pub fn run(args: ListArgs, world: &World) -> Exit {
    let (project, plan) = match load(&args.select, world) {
        Ok(loaded) => loaded,
        Err(exit) => return exit,
    };
    for selected in plan.cases(&project) {
        let selected = match selected {
            Ok(selected) => selected,
            Err(mistakes) => {
                world.complain(mistakes);
                return Exit::Usage;
            }
        };
        let case = &selected.case;
        if args.json {
            let line = json!({"id": case.id, "name": case.name, "file": case.place.file(), "line": case.place.line(),
                "turns": case.turns.len(), "skip": case.skip});
            println!("{line}");
        } else {
            let skipped = case.skip.as_ref().map_or_else(String::new, |reason| format!(" (skipped: {reason})"));
            let line = format!("{}:{} {}{skipped}", case.place.file(), case.place.line(), case.name);
            println!("{}", hotseat::report::one_line(&line, usize::MAX));
        }
    }
    if !args.json {
        eprintln!("{} of {} cases in {} suites", plan.selected, plan.total, plan.suites().len());
    }
    Exit::Passed
}

/// Finds the project and its suites and reads all cases. What is wrong has been said when this fails.
pub fn load(args: &SelectArgs, world: &World) -> Result<(Project, Plan), Exit> {
    let run = match args.run.as_deref().map(regex::Regex::new).transpose() {
        Ok(run) => run,
        Err(error) => {
            world.complain_of(format!("--run: {error}"));
            return Err(Exit::Usage);
        }
    };
    let project = find_project(args, world).map_err(|mistakes| {
        world.complain(mistakes);
        Exit::Usage
    })?;
    let found = discover(&args.paths, &world.folder, &project);
    let mut mistakes = found.mistakes;
    let plan = match Plan::load(found.suites, Selection { run }, &project) {
        Ok(plan) if mistakes.is_empty() => plan,
        Ok(_) => {
            world.complain(mistakes);
            return Err(Exit::Usage);
        }
        Err(found) => {
            mistakes.extend(found);
            world.complain(mistakes);
            return Err(Exit::Usage);
        }
    };
    if plan.selected == 0 {
        let run = args.run.as_deref().unwrap_or_default();
        let total = plan.total;
        world.complain_of(format!("nothing selected: no case matches --run {run:?} ({total} cases were looked at)"));
        return Err(Exit::NothingSelected);
    }
    Ok((project, plan))
}

fn find_project(args: &SelectArgs, world: &World) -> Result<Project, Vec<Diagnostic>> {
    let path = match &args.config {
        Some(path) => Some(world.folder.join(path)),
        // Where nothing is found from here, the first path may lie in a project: `hotseat test examples/checkout`.
        None => Project::find(&world.folder)
            .or_else(|| args.paths.first().and_then(|path| Project::find(&world.folder.join(path)))),
    };
    let Some(path) = path else {
        return Ok(Project::without_file(world.folder.clone(), world.environment.clone()));
    };
    let name = match &args.config {
        Some(path) => path.to_string_lossy().into_owned(),
        None => shown(&path, &world.folder),
    };
    Project::read(&path, &name, world.environment.clone()).map_err(|mistakes| mistakes.into_iter().collect())
}
