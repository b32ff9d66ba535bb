//! `hotseat list`, and finding and reading suites for it and `hotseat test`.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use hotseat_checks::{Pattern, RoleReference};
use hotseat_document::Diagnostic;
use hotseat_engine::cases::{Suite, TestCase};
use hotseat_engine::config::{CallSettings, Project, ScriptScope, discover_suites, display_path};
use hotseat_engine::run::{CaseSelection, RunPlan, Shard};
use hotseat_report::reporters::{format_count, one_line};
use serde_json::{Value, json};

use crate::args::{ListArgs, SelectionArgs};
use crate::context::CliContext;
use crate::exit::ExitStatus;

/// Lists the selected cases.
pub fn run(args: ListArgs, context: &CliContext) -> ExitStatus {
    let opened = open_project(&args.select, CallSettings::default(), None, context);
    let read = opened.and_then(|project| {
        let plan = load_plan(&args.select, None, CaseFilter::default(), &project, context)?;
        Ok((project, plan))
    });
    let (project, plan) = match read {
        Ok(loaded) => loaded,
        Err(exit) => return exit,
    };
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
        context.report_errors(diagnostics);
        return ExitStatus::Usage;
    }
    if !args.json && printed == ExitStatus::Passed {
        let (all, suites) = (format_count(plan.total, "case"), format_count(plan.suites().len(), "suite"));
        context.print_message(&format!("{} of {all} in {suites}", plan.selected));
    }
    printed
}

/// A line of `--json`. [`read_case_file`] reads it again.
fn case_line(case: &TestCase, suite: &str) -> Value {
    json!({"id": case.id, "name": case.name, "suite": suite, "file": case.place.file(), "line": case.place.line(),
        "turns": case.turns.len(), "tags": case.tags, "skip": case.skip})
}

/// Reads a file of lines as `hotseat list --json` prints them, as suite names and case ids.
///
/// # Errors
/// If the file cannot be read or has no line, or a line names no case.
pub fn read_case_file(path: &Path, context: &CliContext) -> Result<BTreeSet<(String, String)>, Diagnostic> {
    let shown = path.display();
    let text = fs::read_to_string(context.folder.join(path))
        .map_err(|error| Diagnostic::new(format!("cannot read --cases {shown}: {error}")))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let cases: Result<BTreeSet<_>, _> = lines
        .map(|(index, line)| {
            let case: Option<Value> = serde_json::from_str(line).ok();
            let member = |name: &str| Some(case.as_ref()?.get(name)?.as_str()?.to_string());
            member("suite").zip(member("id")).ok_or_else(|| {
                Diagnostic::new(format!("--cases {shown}: line {} is not a case", index + 1))
                    .help("write lines as `hotseat list --json` prints them")
            })
        })
        .collect();
    cases.and_then(|cases| match cases.is_empty() {
        true => Err(Diagnostic::new(format!("--cases {shown}: the file has no case"))),
        false => Ok(cases),
    })
}

/// Checks that the plan has all these cases, by suite name and case id.
///
/// # Errors
/// If one does not exist in the suites of the plan.
fn check_existence(
    required: &BTreeSet<(String, String)>,
    plan: &RunPlan,
    project: &Project,
) -> Result<(), Vec<Diagnostic>> {
    if plan.selected_in_all_shards == required.len() {
        return Ok(());
    }
    let mut missing = required.clone();
    for selected in plan.cases(project) {
        let selected = selected.map_err(Vec::from_iter)?;
        missing.remove(&(project.suite_name(&selected.suite.path), selected.case.id.clone()));
    }
    let missing = missing.into_iter();
    Err(missing.map(|(suite, id)| Diagnostic::new(format!("--cases: {suite} has no case `{id}`"))).collect())
}

fn format_case(case: &TestCase) -> String {
    let skipped = case.skip.as_ref().map_or_else(String::new, |reason| format!(" (skipped: {reason})"));
    let line = format!("{}:{} {}{skipped}", case.place.file(), case.place.line(), case.name);
    one_line(&line, usize::MAX)
}

/// Opens the project and applies the selected agent, identity and simulator. Errors have been printed.
pub fn open_project(
    args: &SelectionArgs,
    calling: CallSettings,
    simulator: Option<&RoleReference>,
    context: &CliContext,
) -> Result<Project, ExitStatus> {
    let complain = |diagnostics: Vec<Diagnostic>| {
        context.report_errors(diagnostics);
        ExitStatus::Usage
    };
    let mut project = load_project(args, context).map_err(complain)?;
    if let Some(name) = &args.agent {
        let chosen = match name.strip_prefix("replay:") {
            Some(from) => project.replay_from(from, &context.folder),
            None => project.override_with(name).map_err(Into::into),
        };
        chosen.map_err(|diagnostics| complain(diagnostics.into_iter().collect()))?;
    }
    project.set_call_settings(calling);
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
        project.simulator = Some(simulator.clone());
        project.default_simulator = true;
    }
    Ok(project)
}

/// Restricts the cases in addition to [`SelectionArgs`].
#[derive(Debug, Default)]
pub struct CaseFilter {
    /// Only these cases, as suite name and case id.
    pub only_cases: Option<BTreeSet<(String, String)>>,
    /// True if each of `only_cases` must exist.
    pub requires_all: bool,
    /// Only the cases of this shard.
    pub shard: Option<Shard>,
}

/// Loads the cases of the given suites, or of the suites named by the arguments and the project file. Errors
/// have been printed.
pub fn load_plan(
    args: &SelectionArgs,
    prepared: Option<Vec<Suite>>,
    few: CaseFilter,
    project: &Project,
    context: &CliContext,
) -> Result<RunPlan, ExitStatus> {
    let run = match args.run.as_deref().map(Pattern::compile).transpose() {
        Ok(run) => run,
        Err(error) => {
            let written = args.run.as_deref().unwrap_or_default();
            context.report_error(format!("--run {written:?} is not a valid regular expression: {error}"));
            return Err(ExitStatus::Usage);
        }
    };
    let (suites, mut diagnostics) = match prepared {
        Some(suites) => (suites, Vec::new()),
        None => {
            let found = discover_suites(&args.paths, &context.folder, project);
            (found.suites, found.mistakes)
        }
    };
    let is_few = few.only_cases.is_some();
    let required = few.only_cases.clone().filter(|_| few.requires_all);
    let selection =
        CaseSelection { run, among: few.only_cases, shard: few.shard, forbid_only: args.forbid_only };
    let plan = match RunPlan::load(suites, selection, project) {
        Ok(plan) if diagnostics.is_empty() => plan,
        Ok(_) => {
            context.report_errors(diagnostics);
            return Err(ExitStatus::Usage);
        }
        Err(found) => {
            diagnostics.extend(found);
            context.report_errors(diagnostics);
            return Err(ExitStatus::Usage);
        }
    };
    if let Some(required) = &required {
        check_existence(required, &plan, project).map_err(|missing| context.reject(missing))?;
    }
    // An empty shard is not an error.
    if plan.selected_in_all_shards == 0 {
        let cases = format_count(plan.total, "case");
        let words = match (is_few, args.run.as_deref()) {
            (false, run) => format!("--run {:?} matches none of {cases}", run.unwrap_or_default()),
            (true, None) => format!("none of {cases} failed"),
            (true, Some(run)) => format!("--run {run:?} matches none of {cases} that failed"),
        };
        context.report_error(format!("no case selected: {words}"));
        return Err(ExitStatus::NothingSelected);
    }
    Ok(plan)
}

/// Returns the project file and its display name: `config` if given, else the nearest one in or above the
/// working folder, else above `near`.
pub fn find_project_file(
    config: Option<&Path>,
    near: Option<&Path>,
    context: &CliContext,
) -> Option<(PathBuf, String)> {
    if let Some(config) = config {
        return Some((context.folder.join(config), config.to_string_lossy().into_owned()));
    }
    let above = |near: &Path| Project::find(&context.folder.join(near));
    let path = Project::find(&context.folder).or_else(|| near.and_then(above))?;
    let name = display_path(&path, &context.folder);
    Some((path, name))
}

fn load_project(args: &SelectionArgs, context: &CliContext) -> Result<Project, Vec<Diagnostic>> {
    // Falls back to the project of the first path: `hotseat test examples/checkout`.
    let near = args.paths.first().map(Path::new);
    let Some((path, name)) = find_project_file(args.config.as_deref(), near, context) else {
        return Ok(Project::without_file(context.folder.clone(), context.environment.clone()));
    };
    Project::read(&path, &name, context.environment.clone())
        .map_err(|diagnostics| diagnostics.into_iter().collect())
}
