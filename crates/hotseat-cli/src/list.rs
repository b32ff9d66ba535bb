//! `hotseat list`, and opening the project for it and `hotseat test`.

use std::io::Write;
use std::path::PathBuf;

use hotseat_checks::RoleReference;
use hotseat_document::{Diagnostic, Diagnostics};
use hotseat_engine::cases::{Environment, TestCase};
use hotseat_engine::config::{CallSettings, ContextFile, Project, ScriptScope};
use hotseat_report::reporters::{format_count, one_line};
use serde_json::{Value, json};

use crate::args::{CallArgs, ListArgs, SelectionArgs};
use crate::context::CliContext;
use crate::exit::{CommandResult, ExitStatus};
use crate::project_file::find_project_file;
use crate::selection::{load_plan, restriction};

/// Lists the selected cases.
pub fn run(args: ListArgs, context: &CliContext) -> CommandResult {
    let project = open_project(&args.select, None, None, context)?;
    let restriction = restriction(&args.select, &project, None, context)?;
    let plan = load_plan(&args.select, None, &restriction, &project, context)?;
    context.print_notes(&plan.notes);
    let mut diagnostics = None;
    let write = |out: &mut dyn Write| {
        for selected in plan.cases(&project) {
            match selected {
                Ok(selected) if args.json => {
                    let suite = project.suite_name(&selected.suite.path);
                    writeln!(out, "{}", case_line(&selected.case, &suite))?;
                }
                Ok(selected) => writeln!(out, "{}", format_case(&selected.case))?,
                Err(found) => {
                    diagnostics = Some(found);
                    break;
                }
            }
        }
        Ok(())
    };
    let printed = if args.json { context.print_json(write) } else { context.print(write) };
    if let Some(diagnostics) = diagnostics {
        return Err(context.reject(diagnostics));
    }
    if !args.json && printed == ExitStatus::Passed {
        let (all, suites) = (format_count(plan.total, "case"), format_count(plan.suites().len(), "suite"));
        context.print_message(&format!("{} of {all} in {suites}", plan.selected));
    }
    Ok(printed)
}

/// A line of `--json`, which `--cases` reads again.
fn case_line(case: &TestCase, suite: &str) -> Value {
    json!({"id": case.id, "name": case.name, "suite": suite, "file": case.place.file(), "line": case.place.line(),
        "turns": case.turns.len(), "tags": case.tags, "skip": case.skip})
}

fn format_case(case: &TestCase) -> String {
    let skipped = case.skip.as_ref().map_or_else(String::new, |reason| format!(" (skipped: {reason})"));
    let line = format!("{}:{} {}{skipped}", case.place.file(), case.place.line(), case.name);
    one_line(&line, usize::MAX)
}

/// Opens the project and applies the selected agent, identity and simulator. Errors have been printed.
pub fn open_project(
    args: &SelectionArgs,
    calling: Option<&CallArgs>,
    simulator: Option<&RoleReference>,
    context: &CliContext,
) -> Result<Project, ExitStatus> {
    let complain = |diagnostics: Vec<Diagnostic>| context.reject(diagnostics);
    let mut project = load_project(args, context).map_err(complain)?;
    if let Err(wrong) = select_agent(&mut project, args.agent.as_deref(), args.endpoint.as_deref(), context) {
        let is_unknown = args.agent.as_deref().is_some_and(|name| project.find_agent_by_name(name).is_err());
        context.report_errors(wrong);
        let is_misspelt =
            is_unknown && !args.agent.as_deref().is_some_and(|name| name.starts_with("replay:"));
        return Err(if is_misspelt { ExitStatus::NothingSelected } else { ExitStatus::Usage });
    }
    if let Some(calling) = calling {
        let settings = call_settings(calling, project.environment(), context);
        project.set_call_settings(settings.map_err(|wrong| context.reject(wrong))?);
    }
    if let Some(simulator) = simulator {
        // Script functions are looked up beside each suite, when the suite is read.
        let found = match simulator {
            RoleReference::Script(_) => Ok(()),
            RoleReference::Agent(_) | RoleReference::Connector(_) => {
                let whose = ScriptScope { folder: &project.root, agent: None };
                project.find_role(simulator, None, whose).map(drop)
            }
        };
        found.map_err(|diagnostics| complain(diagnostics.into_iter().collect()))?;
        (project.simulator, project.simulator_place) = (Some(simulator.clone()), None);
        project.default_simulator = true;
    }
    Ok(project)
}

/// Applies `--agent` and `--endpoint`. Fails if the agent does not exist, has no address, or there are no
/// recordings.
pub fn select_agent(
    project: &mut Project,
    agent: Option<&str>,
    endpoint: Option<&str>,
    context: &CliContext,
) -> Result<(), Diagnostics> {
    match agent.map(|name| (name, name.strip_prefix("replay:"))) {
        Some((_, Some(from))) => project.replay_from(from, &context.folder)?,
        Some((name, None)) => project.override_with(name)?,
        None => {}
    }
    endpoint.map_or(Ok(()), |endpoint| project.override_endpoint(endpoint))
}

fn load_project(args: &SelectionArgs, context: &CliContext) -> Result<Project, Vec<Diagnostic>> {
    // Falls back to the project of the first path: `hotseat test examples/checkout`.
    let near = args.first_path(&context.folder);
    let Some((path, name)) = find_project_file(args.config.as_deref(), near, context) else {
        return Ok(Project::without_file(context.folder.clone(), context.environment.clone()));
    };
    context.read_project(&path, &name).map_err(|diagnostics| diagnostics.into_iter().collect())
}

/// Returns how the command line calls agents.
fn call_settings(
    args: &CallArgs,
    environment: &Environment,
    context: &CliContext,
) -> Result<CallSettings, Diagnostics> {
    let read =
        |path: &PathBuf| ContextFile::read(&context.folder.join(path), &path.to_string_lossy(), environment);
    let file = args.ctx.as_ref().map(read);
    Ok(CallSettings {
        user: args.user.clone(),
        team: args.team.clone(),
        locale: args.locale.clone(),
        connector: args.connector.clone(),
        context: file.transpose()?,
    })
}
