//! `hotseat doctor`: says what a run would find, and what is missing with the next step.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::sync::Arc;

use hotseat_document::{Diagnostic, is_http_url};
use hotseat_engine::config::{ENV_FILE, Project, ProjectAgent, discover_suites, display_path};
use hotseat_engine::run::{CaseSelection, RunPlan};
use hotseat_http::check_proxies;
use hotseat_report::reporters::{format_count, one_line, shell_word};
use hotseat_report::store::{RunStore, RunStoreError, store_path};
use hotseat_runtime::files::ModelConnector;
use hotseat_targets::connection::http::HttpClient;
use serde_json::{Value, json};

use crate::args::DoctorArgs;
use crate::context::CliContext;
use crate::exit::ExitStatus;
use crate::init::{editor_files, has_type_definitions};
use crate::list::select_agent;
use crate::project_file::find_project_file;

/// Maximum number of variables, agents or errors that are listed.
const MAX_LISTED: usize = 20;

/// Result of one examination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FindingStatus {
    Ok,
    /// A run can start without it.
    Warning,
    /// The files or the environment prevent a run.
    Error,
    /// An agent prevents a run.
    Unreachable,
}

/// Finding about one subject.
#[derive(Debug)]
struct Finding {
    subject: String,
    status: FindingStatus,
    message: String,
    /// The next step, if something is missing.
    next: Option<String>,
}

impl Finding {
    fn to_json(&self) -> Value {
        let status = match self.status {
            FindingStatus::Ok => "ok",
            FindingStatus::Warning => "warning",
            FindingStatus::Error => "error",
            FindingStatus::Unreachable => "unreachable",
        };
        json!({"subject": self.subject, "status": status, "message": self.message, "next": self.next})
    }
}

/// Everything that was found.
#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, subject: &str, status: FindingStatus, message: impl Into<String>, next: Option<&str>) {
        let (subject, message) = (subject.to_string(), message.into());
        self.0.push(Finding { subject, status, message, next: next.map(str::to_string) });
    }

    fn ok(&mut self, subject: &str, message: impl Into<String>) {
        self.add(subject, FindingStatus::Ok, message, None);
    }

    /// Adds errors of files, each with its place.
    fn errors(&mut self, subject: &str, mistakes: impl IntoIterator<Item = Diagnostic>) {
        let mut mistakes = mistakes.into_iter();
        for mistake in mistakes.by_ref().take(MAX_LISTED) {
            let place = mistake.place.as_ref().map_or_else(String::new, |place| format!("{place}: "));
            let message = format!("{place}{}", mistake.message);
            self.add(subject, FindingStatus::Error, message, mistake.help.as_deref());
        }
        let more = mistakes.count();
        if more > 0 {
            let next = "`hotseat list` prints all of them";
            self.add(
                subject,
                FindingStatus::Error,
                format!("and {}", format_count(more, "more error")),
                Some(next),
            );
        }
    }

    fn exit(&self) -> ExitStatus {
        let has = |status| self.0.iter().any(|finding| finding.status == status);
        match (has(FindingStatus::Error), has(FindingStatus::Unreachable)) {
            (true, _) => ExitStatus::Usage,
            (false, true) => ExitStatus::RunError,
            (false, false) => ExitStatus::Passed,
        }
    }
}

/// Examines the project, the agents and the machine.
pub fn run(args: &DoctorArgs, context: &CliContext) -> ExitStatus {
    let mut findings = Findings::default();
    findings.ok("version", concat!("hotseat ", env!("CARGO_PKG_VERSION")));
    let proxies = check_proxies(&context.environment);
    if let Err(error) = &proxies {
        findings.errors("proxy", [Diagnostic::new(error)]);
    }
    if let Some(project) = find_project(args, context, &mut findings) {
        let plan = load_suites(&project, context, &mut findings);
        let contacted: Vec<Arc<ProjectAgent>> =
            plan.iter().flat_map(RunPlan::contacted_agents).cloned().collect();
        // With a proxy that cannot be used, requests would go directly to agents.
        if proxies.is_ok() {
            check_agents(&project, &contacted, &mut findings);
        }
        check_models(&project, &mut findings);
        check_store(&project, context, &mut findings);
        check_editor_files(&project, context, &mut findings);
    }
    print_findings(&findings, args.json, context)
}

fn find_project(args: &DoctorArgs, context: &CliContext, findings: &mut Findings) -> Option<Project> {
    let found = find_project_file(args.config.as_deref(), None, context);
    let folder = found.as_ref().and_then(|(path, _)| path.parent()).unwrap_or(&context.folder);
    match context.read_env_file(folder) {
        Err(mistake) => {
            findings.errors(ENV_FILE, [mistake]);
            return None;
        }
        Ok(None) => {}
        Ok(Some(file)) => {
            let names: Vec<&str> = file.names().take(MAX_LISTED).collect();
            let more = if file.names().len() > MAX_LISTED { ", …" } else { "" };
            let count = format_count(file.names().len(), "variable");
            findings.ok(ENV_FILE, format!("{count}: {}{more}", names.join(", ")));
        }
    }
    let mut project = match &found {
        None => {
            let next = "run `hotseat init`, or pass the address of an AG-UI agent with `--endpoint URL`";
            let status = if args.endpoint.is_some() { FindingStatus::Warning } else { FindingStatus::Error };
            findings.add("project file", status, "no hotseat.yaml in this folder or above it", Some(next));
            Project::without_file(context.folder.clone(), context.environment.clone())
        }
        Some((path, shown)) => match context.read_project(path, shown) {
            Ok(project) => {
                findings.ok("project file", shown.clone());
                project
            }
            Err(mistakes) => {
                findings.errors("project file", mistakes);
                return None;
            }
        },
    };
    match select_agent(&mut project, args.agent.as_deref(), args.endpoint.as_deref(), context) {
        Ok(()) => Some(project),
        Err(mistakes) => {
            findings.errors("agent", mistakes);
            None
        }
    }
}

/// Reads all suites, as a run would.
fn load_suites(project: &Project, context: &CliContext, findings: &mut Findings) -> Option<RunPlan> {
    let found = discover_suites(&[], &context.folder, project);
    let (all, scripts) = (found.suites.len(), found.suites.iter().filter(|suite| suite.is_program()).count());
    let mut mistakes: Vec<Diagnostic> = found.missing.into_iter().chain(found.mistakes).collect();
    let plan = match RunPlan::load(found.suites, CaseSelection::default(), project) {
        Ok(plan) if mistakes.is_empty() => {
            findings.ok(
                "suites",
                format!("{} in {}", format_count(plan.total, "case"), format_count(all, "suite")),
            );
            Some(plan)
        }
        Ok(_) => None,
        Err(wrong) => {
            mistakes.extend(wrong);
            None
        }
    };
    findings.errors("suites", mistakes);
    findings.ok("scripts", format!("{} in TypeScript or JavaScript", format_count(scripts, "suite")));
    if plan.as_ref().is_some_and(RunPlan::lacks_agent) {
        findings.errors("agent", [project.missing_target()]);
    }
    plan
}

/// Contacts the agents. Those that no case needs are warnings.
fn check_agents(project: &Project, contacted: &[Arc<ProjectAgent>], findings: &mut Findings) {
    let known = |agent: &&Arc<ProjectAgent>| !contacted.iter().any(|one| Arc::ptr_eq(one, agent));
    let agents = contacted.iter().chain(project.agents.iter().filter(known)).take(MAX_LISTED);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else {
        findings.add("agent", FindingStatus::Error, "cannot start a thread to contact agents", None);
        return;
    };
    let http = HttpClient::default();
    for agent in agents {
        let is_needed = contacted.iter().any(|one| Arc::ptr_eq(one, agent));
        let worse = |status: FindingStatus| if is_needed { status } else { FindingStatus::Warning };
        let name = agent.name.as_deref().map_or("agent".to_string(), |name| format!("agent {name}"));
        let protocol = agent.protocol();
        if let Some(missing) = agent.missing_variables().next() {
            let next = "set the variable in the environment or in .env";
            findings.add(&name, worse(FindingStatus::Error), missing.message.clone(), Some(next));
            continue;
        }
        if agent.uses_hook_variables {
            findings.ok(&name, format!("{protocol}, set up by hooks of each case"));
            continue;
        }
        let target = match project.bind_without_hooks(agent) {
            Ok(target) => target,
            Err(mistakes) => {
                let words: Vec<String> = mistakes.into_iter().map(|mistake| mistake.message).collect();
                findings.add(&name, worse(FindingStatus::Error), words.join("; "), None);
                continue;
            }
        };
        let path = target.summary().path;
        let shown = project.redactor().text(&path).into_owned();
        let probe = |address: &str| match address.parse() {
            Ok(url) => runtime.block_on(http.probe(&url)).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let missing = match &agent.start {
            Some(start) => start.missing_program(project.environment()),
            None => target.missing_program(project.environment()),
        };
        if let Some(missing) = missing {
            let next = "install the program, or correct `command` and `cwd` in the project file";
            let message = project.redactor().text(&format!("{protocol}, {shown}: {missing}")).into_owned();
            findings.add(&name, worse(FindingStatus::Unreachable), message, Some(next));
            continue;
        }
        match &agent.start {
            Some(start) if probe(start.ready.as_str()).is_ok() => {
                let message =
                    format!("{protocol}, {shown} is in use, but the run would start the agent there");
                let next = "end that process, or remove `start` to test the running agent";
                findings.add(&name, worse(FindingStatus::Error), message, Some(next));
            }
            Some(start) => {
                let command = start.command.join(" ");
                let command = project.redactor().text(&command).into_owned();
                findings.ok(&name, format!("{protocol}, {shown}, started by the run: {command}"));
            }
            None if !is_http_url(&path) => {
                findings.ok(&name, format!("{protocol}, {shown}"));
            }
            None => match probe(&path) {
                Ok(()) => findings.ok(&name, format!("{protocol}, {shown} answers")),
                Err(why) => {
                    let next = "start the agent, or correct its address in the project file";
                    let why = project.redactor().text(&why).into_owned();
                    let message = format!("{protocol}, {shown} does not answer: {why}");
                    findings.add(&name, worse(FindingStatus::Unreachable), message, Some(next));
                }
            },
        }
    }
}

/// Says which models could be called: whether a key is present, never its value.
fn check_models(project: &Project, findings: &mut Findings) {
    let look_up = |name: &str| project.environment().get(name).cloned();
    for name in project.connectors().names().take(MAX_LISTED) {
        let subject = format!("model {name}");
        match project.connectors().get(name, None, &look_up) {
            Ok(ModelConnector::Provider(config)) => {
                let key = if config.key.is_some() { "a key is set" } else { "no key is set" };
                findings.ok(&subject, format!("{}, {key}", config.model));
            }
            Ok(ModelConnector::Scripted(_)) => findings.ok(&subject, "scripted"),
            Err(mistakes) => {
                let words: Vec<String> = mistakes.into_iter().map(|mistake| mistake.message).collect();
                let words = project.redactor().text(&words.join("; ")).into_owned();
                let next =
                    "set what is missing in the environment or in .env; cases that use the model cannot run";
                findings.add(&subject, FindingStatus::Warning, words, Some(next));
            }
        }
    }
}

fn check_store(project: &Project, context: &CliContext, findings: &mut Findings) {
    let path = store_path(&project.root);
    let shown = display_path(&path, &context.folder);
    if !project.store.enabled {
        findings.ok("store", "disabled by `store: false`");
        return;
    }
    match RunStore::open(&path).and_then(|store| store.runs(1)) {
        _ if let Err(error) = check_writable(&path) => {
            let words = format!("{shown} cannot be written: {error}");
            let next = "make the folder writable, or set `store: false`; until then runs are not saved";
            findings.add("store", FindingStatus::Warning, words, Some(next));
        }
        Ok(runs) => {
            let last = runs.first().map_or_else(String::new, |run| format!(", last run {}", run.short_id()));
            findings.ok("store", format!("{shown}{last}"));
        }
        Err(RunStoreError::NoRuns(_) | RunStoreError::NoSuchRun(_)) => {
            findings.ok("store", format!("{shown}, no runs yet"));
        }
        Err(error) => {
            let next = "move the file away; without it runs are not saved";
            findings.add("store", FindingStatus::Warning, error.to_string(), Some(next));
        }
    }
}

/// Checks that runs can be saved, without leaving anything behind.
fn check_writable(store: &Path) -> io::Result<()> {
    if store.exists() {
        return OpenOptions::new().append(true).open(store).map(drop);
    }
    match store.ancestors().skip(1).find(|folder| folder.exists()) {
        Some(folder) => tempfile::tempfile_in(folder).map(drop),
        None => Ok(()),
    }
}

/// Checks that the files for editors exist and belong to this version.
fn check_editor_files(project: &Project, context: &CliContext, findings: &mut Findings) {
    let folder = match context.folder.starts_with(&project.root) {
        true => String::new(),
        false => format!(" {}", shell_word(&display_path(&project.root, &context.folder))),
    };
    let next = format!("run `hotseat init{folder}`, which keeps your files");
    for (name, text) in editor_files(has_type_definitions(&project.root)) {
        let path = project.root.join(name);
        let shown = display_path(&path, &context.folder);
        match hotseat_document::read_text_file(&path) {
            Ok(found) if found == text => findings.ok("editor", shown),
            Ok(_) => {
                let message = format!("{shown} belongs to another version of Hotseat");
                findings.add("editor", FindingStatus::Warning, message, Some(&next));
            }
            Err(_) => {
                findings.add("editor", FindingStatus::Warning, format!("{shown} is missing"), Some(&next));
            }
        }
    }
}

fn print_findings(findings: &Findings, as_json: bool, context: &CliContext) -> ExitStatus {
    let exit = findings.exit();
    let can_start = exit == ExitStatus::Passed;
    let printed = if as_json {
        let lines: Vec<Value> = findings.0.iter().map(Finding::to_json).collect();
        let text = json!({"can_start": can_start, "findings": lines});
        context.print_json(|out| writeln!(out, "{text}"))
    } else {
        let width = findings.0.iter().map(|finding| finding.subject.chars().count()).max().unwrap_or(0);
        context.print(|out| {
            for Finding { subject, status, message, next } in &findings.0 {
                let mark = match status {
                    FindingStatus::Ok => "✓",
                    FindingStatus::Warning => "!",
                    FindingStatus::Error | FindingStatus::Unreachable => "✗",
                };
                writeln!(out, "{mark} {subject:<width$}  {}", one_line(message, usize::MAX))?;
                if let Some(next) = next {
                    writeln!(out, "  {:<width$}  next: {}", "", one_line(next, usize::MAX))?;
                }
            }
            let verdict = if can_start { "A run can start." } else { "A run cannot start." };
            writeln!(out, "\n{verdict}")
        })
    };
    if printed == ExitStatus::Passed { exit } else { printed }
}
