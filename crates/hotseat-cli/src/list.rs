//! `hotseat list`, and what it shares with `hotseat test`: finding and reading suites.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use hotseat::cases::{Case, Suite};
use hotseat::checks::{Pattern, Reference};
use hotseat::config::{Calling, Project, Whose, discover, shown};
use hotseat::document::Diagnostic;
use hotseat::report::{count, one_line};
use hotseat::run::{Plan, Selection, Shard};
use serde_json::json;

use crate::args::{ListArgs, SelectArgs};
use crate::exit::Exit;
use crate::world::World;

/// Lists the cases that are selected.
pub fn run(args: ListArgs, world: &World) -> Exit {
    let opened = open(&args.select, Calling::default(), None, world);
    let read = opened.and_then(|project| {
        let plan = read(&args.select, None, Few::default(), &project, world)?;
        Ok((project, plan))
    });
    let (project, plan) = match read {
        Ok(loaded) => loaded,
        Err(exit) => return exit,
    };
    let mut mistakes = None;
    let write = |out: &mut dyn Write| {
        for selected in plan.cases(&project) {
            match selected {
                Ok(selected) => writeln!(out, "{}", line(&selected.case, args.json))?,
                Err(found) => {
                    mistakes = Some(found);
                    break;
                }
            }
        }
        Ok(())
    };
    let printed = if args.json { world.print_json(write) } else { world.print(write) };
    if let Some(mistakes) = mistakes {
        world.complain(mistakes);
        return Exit::Usage;
    }
    if !args.json && printed == Exit::Passed {
        let (all, suites) = (count(plan.total, "case"), count(plan.suites().len(), "suite"));
        world.say(&format!("{} of {all} in {suites}", plan.selected));
    }
    printed
}

fn line(case: &Case, as_json: bool) -> String {
    if as_json {
        let line = json!({"id": case.id, "name": case.name, "file": case.place.file(), "line": case.place.line(),
            "turns": case.turns.len(), "skip": case.skip});
        return line.to_string();
    }
    let skipped = case.skip.as_ref().map_or_else(String::new, |reason| format!(" (skipped: {reason})"));
    let line = format!("{}:{} {}{skipped}", case.place.file(), case.place.line(), case.name);
    one_line(&line, usize::MAX)
}

/// Finds the project, to speak to its agents as `calling` says. What is wrong has been said when this fails.
pub fn open(
    args: &SelectArgs,
    calling: Calling,
    simulator: Option<&Reference>,
    world: &World,
) -> Result<Project, Exit> {
    let complain = |mistakes: Vec<Diagnostic>| {
        world.complain(mistakes);
        Exit::Usage
    };
    let mut project = find_project(args, world).map_err(complain)?;
    if let Some(name) = &args.agent {
        let chosen = match name.strip_prefix("replay:") {
            Some(from) => project.replay(from, &world.folder),
            None => project.choose(name).map_err(Into::into),
        };
        chosen.map_err(|mistakes| complain(mistakes.into_iter().collect()))?;
    }
    project.call_as(calling);
    if let Some(simulator) = simulator {
        // A function is looked for beside the suites, when these are read.
        let found = match simulator {
            Reference::Script(_) => Ok(()),
            Reference::Agent(_) | Reference::Connector(_) => {
                let whose = Whose { folder: &project.root, agent: None };
                project.find_helper(simulator, None, whose).map(drop)
            }
        };
        found.map_err(|mistakes| complain(mistakes.into_iter().collect()))?;
        project.simulator = Some(simulator.clone());
        project.default_simulator = true;
    }
    Ok(project)
}

/// Which of the cases are meant, beside what [`SelectArgs`] say.
#[derive(Debug, Default)]
pub struct Few {
    /// Only these, by the names of their suites and by their ids.
    pub among: Option<BTreeSet<(String, String)>>,
    /// Only those of one part.
    pub shard: Option<Shard>,
}

/// Reads all cases of suites: those that are given, else those that the arguments and the project name. What is wrong
/// has been said when this fails.
pub fn read(
    args: &SelectArgs,
    given: Option<Vec<Suite>>,
    few: Few,
    project: &Project,
    world: &World,
) -> Result<Plan, Exit> {
    let run = match args.run.as_deref().map(Pattern::compile).transpose() {
        Ok(run) => run,
        Err(error) => {
            let written = args.run.as_deref().unwrap_or_default();
            world.complain_of(format!("--run {written:?} does not compile: {error}"));
            return Err(Exit::Usage);
        }
    };
    let (suites, mut mistakes) = match given {
        Some(suites) => (suites, Vec::new()),
        None => {
            let found = discover(&args.paths, &world.folder, project);
            (found.suites, found.mistakes)
        }
    };
    let is_few = few.among.is_some();
    let selection = Selection { run, among: few.among, shard: few.shard, forbid_only: args.forbid_only };
    let plan = match Plan::load(suites, selection, project) {
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
    // That a part of a few cases is empty is nobody's mistake.
    if plan.of_all == 0 {
        let cases = count(plan.total, "case");
        let words = match (is_few, args.run.as_deref()) {
            (false, run) => format!("--run {:?} fits none of {cases}", run.unwrap_or_default()),
            (true, None) => format!("none of {cases} is among those that failed"),
            (true, Some(run)) => format!("--run {run:?} fits none of {cases} that failed"),
        };
        world.complain_of(format!("nothing selected: {words}"));
        return Err(Exit::NothingSelected);
    }
    Ok(plan)
}

/// The project file with the name by which it is shown: the one that `config` names, the nearest one above this
/// folder, or else above `near`.
pub fn project_file(config: Option<&Path>, near: Option<&Path>, world: &World) -> Option<(PathBuf, String)> {
    if let Some(config) = config {
        return Some((world.folder.join(config), config.to_string_lossy().into_owned()));
    }
    let above = |near: &Path| Project::find(&world.folder.join(near));
    let path = Project::find(&world.folder).or_else(|| near.and_then(above))?;
    let name = shown(&path, &world.folder);
    Some((path, name))
}

fn find_project(args: &SelectArgs, world: &World) -> Result<Project, Vec<Diagnostic>> {
    // Where nothing is found from here, the first path may lie in a project: `hotseat test examples/checkout`.
    let near = args.paths.first().map(Path::new);
    let Some((path, name)) = project_file(args.config.as_deref(), near, world) else {
        return Ok(Project::without_file(world.folder.clone(), world.environment.clone()));
    };
    Project::read(&path, &name, world.environment.clone()).map_err(|mistakes| mistakes.into_iter().collect())
}
