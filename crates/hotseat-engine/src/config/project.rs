//! The project file: found in parent folders, read with all diagnostics at once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::agent::ProjectAgent;
use super::agent_targets::{AgentReadContext, BoundTarget, connector_prices, find_recordings};
use super::context::CallSettings;
use super::env_file::{ENV_FILE, EnvFile};
use super::hooks::ProjectHooks;
use super::limits::read_limits;
use super::project_files::FILE_NAMES;
use super::script_settings::{self, ProcessDefinitions};
use super::shape::PROJECT;
use super::store_settings::{StoreSettings, read_store_settings};
use crate::cases::{
    AgentsByName, DecodeSettings, Environment, InheritedSettings, MODEL_PREFIX, McpAddresses, PassRate,
    Reliability, ReliabilitySetting, SharedSettings, TestCase, VariableScope, explain_project_words,
    interpolate, is_variable_name, read_judging, read_rate, read_reliability, references, unknown_agent,
};
use crate::scripts::{ScriptGrants, ScriptLibrary};
use hotseat_checks::{JudgeSettings, RoleReference};
use hotseat_document::{
    Diagnostic, Diagnostics, DocumentNode, Kind, MapView, NodeValue, SourceSpan, SourceText, check,
    source_from_bytes, yaml,
};
use hotseat_model::Model;
use hotseat_runtime::files::ConnectorSet;
use hotseat_targets::recorder::{
    ModelPrices, SecretRedactor, TrafficLimits, address_secrets, header_secrets, is_secret,
};
use hotseat_targets::recording::suite_name;

/// A project and its settings.
#[derive(Debug, Clone, Default)]
pub struct Project {
    /// Folder of the project file, or the searched folder if there is none.
    pub root: PathBuf,
    /// Displayable path of the project file, if there is one.
    pub file: Option<Arc<str>>,
    /// Globs of its suites, relative to `root`.
    pub suites: Vec<String>,
    /// Maximum number of concurrent conversations, if set.
    pub parallel: Option<usize>,
    /// Attempts per case, if set.
    pub runs: Option<usize>,
    /// Minimum pass rate of repeated cases, from 0 to 1, if set.
    pub min_pass_rate: Option<PassRate>,
    /// Reliability of cases that declare none.
    pub reliability: Option<Reliability>,
    /// Maximum number of replaced invalid attempts per case, if set.
    pub max_invalid: Option<usize>,
    /// Retries of failed cases.
    pub retries: usize,
    /// Traffic limits of agents.
    pub limits: TrafficLimits,
    /// Currency of prices and costs, if named.
    pub currency: Option<String>,
    /// Settings of the run store.
    pub store: StoreSettings,
    /// Variables marked as secrets.
    pub secrets: Vec<String>,
    /// Agents of the project.
    pub agents: Vec<Arc<ProjectAgent>>,
    /// Language models of the project.
    connectors: Arc<ConnectorSet>,
    /// Hooks by name.
    pub(super) hooks: ProjectHooks,
    /// Script functions.
    pub(super) scripts: ScriptLibrary,
    /// Processes that scripts can call.
    pub(super) processes: ProcessDefinitions,
    /// Default simulator.
    pub simulator: Option<RoleReference>,
    /// Position of the default simulator in the project file.
    pub simulator_place: Option<SourceSpan>,
    /// True if cases without a simulator use the default one.
    pub default_simulator: bool,
    /// Default judge settings.
    pub judge: JudgeSettings,
    /// Default agent to test.
    target: Option<Arc<ProjectAgent>>,
    /// Agent that is tested regardless of suites and cases.
    override_agent: Option<Arc<ProjectAgent>>,
    /// Agent that is contacted at another address than its own.
    moved_agent: Option<Arc<ProjectAgent>>,
    /// Agents that replay recordings in place of the tested ones.
    replay_agents: Option<ReplayAgents>,
    /// Call settings of the command line.
    call_settings: CallSettings,
    /// Settings inherited by suites without an agent.
    no_inherited: InheritedSettings,
    /// Inherited settings by agent name.
    inherited_by_agent: Arc<AgentsByName>,
    /// Settings shared by all cases.
    shared: Arc<SharedSettings>,
    environment: Environment,
    redactor: SecretRedactor,
    header_secrets: Vec<(String, String)>,
}

/// Agents that replay recordings.
#[derive(Debug, Clone)]
struct ReplayAgents {
    replacements: Vec<(Arc<ProjectAgent>, Arc<ProjectAgent>)>,
    /// For suites without an agent.
    fallback: Arc<ProjectAgent>,
}

impl ReplayAgents {
    fn replacement(&self, agent: Option<&Arc<ProjectAgent>>) -> Arc<ProjectAgent> {
        let known = agent.and_then(|agent| self.replacements.iter().find(|(own, _)| Arc::ptr_eq(own, agent)));
        known.map_or(&self.fallback, |(_, instead)| instead).clone()
    }
}

impl Project {
    /// Finds the nearest project file in a folder or its parents.
    pub fn find(folder: &Path) -> Option<PathBuf> {
        // `a/..` is not in `a`.
        let mut left = 0_usize;
        let is_around = |folder: &&Path| {
            let is_around = left == 0;
            left = if folder.ends_with("..") { left + 1 } else { left.saturating_sub(1) };
            is_around
        };
        folder
            .ancestors()
            .filter(is_around)
            .find_map(|folder| FILE_NAMES.iter().map(|name| folder.join(name)).find(|path| path.is_file()))
    }

    /// Creates a project without a project file.
    pub fn without_file(root: PathBuf, environment: Environment) -> Project {
        Project {
            suites: default_suites(),
            scripts: ScriptLibrary::new(
                ScriptGrants { root: root.clone(), ..ScriptGrants::default() },
                environment.clone(),
            ),
            root,
            redactor: SecretRedactor::new(named_secrets(&environment, &[])),
            environment,
            ..Project::default()
        }
    }

    /// Reads a project file, displayed as `shown`, with the variables of the `.env` file beside it.
    ///
    /// # Errors
    /// All diagnostics of one of the files, without values of the `.env` file.
    pub fn read_with_env_file(
        path: &Path,
        shown: &str,
        environment: Environment,
    ) -> Result<Project, Diagnostics> {
        let beside = Path::new(shown).with_file_name(ENV_FILE).to_string_lossy().into_owned();
        let Some(file) = EnvFile::read(folder_of(path), &beside)? else {
            return Project::read(path, shown, environment);
        };
        let redactor = SecretRedactor::new(file.secrets());
        let clean = |mistake: Diagnostic| redact_diagnostic(mistake, &redactor);
        let environment = file.merge_into(&environment);
        Project::read_with_secrets(path, shown, environment, file.secrets().collect()).map_err(|mistakes| {
            let mut cleaned = Diagnostics::new();
            cleaned.extend(mistakes.into_iter().map(clean));
            cleaned
        })
    }

    /// Reads a project file, displayed as `shown`.
    ///
    /// # Errors
    /// All diagnostics of the file.
    pub fn read(path: &Path, shown: &str, environment: Environment) -> Result<Project, Diagnostics> {
        Project::read_with_secrets(path, shown, environment, Vec::new())
    }

    /// Like [`Project::read`], with names and values of further secrets.
    fn read_with_secrets(
        path: &Path,
        shown: &str,
        environment: Environment,
        mut further_secrets: Vec<(String, String)>,
    ) -> Result<Project, Diagnostics> {
        let (source, mut node) = parse_project(path, shown)?;
        let mut mistakes = Diagnostics::new();
        let root = folder_of(path);
        let written = MapView::from_node(&node, &source, &PROJECT).expect("the shape was checked");
        let secrets = read_secret_names(&written, &mut mistakes);
        let mut header_secrets = collect_header_secrets(&node, &environment);
        header_secrets.append(&mut further_secrets);
        let redactor =
            SecretRedactor::new(named_secrets(&environment, &secrets).chain(header_secrets.iter().cloned()));
        let connectors = Arc::new(read_connectors(&written, root, &mut mistakes));
        let around = AgentReadContext {
            root,
            connectors: &connectors,
            environment: &environment,
            redactor: &redactor,
        };
        let mut read = |name: Option<&str>, node: &DocumentNode| {
            Arc::new(ProjectAgent::read(name, node, &source, around, &mut mistakes))
        };
        let agents = written.entries("agents").map(|(name, _, view)| read(Some(name), view.node));
        let agents: Vec<Arc<ProjectAgent>> = agents.collect();
        let target = match (written.text("target"), written.node("target")) {
            (None, Some(node)) => Some(read(None, node)),
            (Some(name), _) => {
                let place = written.place_near("target");
                find_agent(&agents, name).map_err(|diagnostic| mistakes.push(diagnostic.at(place))).ok()
            }
            (None, None) => match agents.as_slice() {
                [only] => Some(only.clone()),
                _ => None,
            },
        };

        resolve_variables(&mut node, &source, &environment, &redactor, &mut mistakes);
        let map = MapView::from_node(&node, &source, &PROJECT).expect("the shape was checked");
        let texts = |key: &str| -> Vec<String> { map.texts(key).map(str::to_string).collect() };
        let simulator = map.get("simulator").and_then(|view| {
            let read = RoleReference::parse(view.text()?);
            read.map_err(|words| mistakes.report(view.place(), words)).ok()
        });
        let judge = read_judging(map.get("judge"), &mut mistakes);
        let suites = texts("suites");
        let min_pass_rate = read_min_pass_rate(&map, &mut mistakes);
        let (grants, processes) = script_settings::read_script_settings(&map, root, path, &mut mistakes);
        let reliability = read_project_reliability(&map, &mut mistakes);
        // Its judge is a default that applies even where no case is read.
        let declared = |key: &str| (!matches!(key, "judge" | "agent")).then(|| map.get(key)).flatten();
        let shared = SharedSettings::read(declared, &SharedSettings::default(), &mut mistakes);
        shared.mcp.load_files(&[root.to_path_buf()], &mut mistakes);
        let store = read_store_settings(&map, &mut mistakes);
        let of_agents = agents.iter().filter_map(|agent: &Arc<ProjectAgent>| {
            Some((agent.name.as_deref()?.to_string(), agent.inherited.clone()))
        });
        let inherited = Arc::new(of_agents.collect());
        let project = Project {
            root: root.to_path_buf(),
            file: Some(shown.into()),
            suites: if suites.is_empty() { default_suites() } else { suites },
            parallel: map.size("parallel"),
            runs: map.size("runs"),
            min_pass_rate,
            reliability,
            max_invalid: map.size("max_invalid"),
            retries: map.size("retries").unwrap_or(0),
            limits: read_limits(&map),
            currency: map.text("currency").map(str::to_string),
            store,
            redactor,
            header_secrets,
            secrets,
            agents,
            connectors,
            hooks: ProjectHooks::read(&map, &mut mistakes),
            scripts: ScriptLibrary::new(grants, environment.clone()),
            processes,
            simulator,
            simulator_place: map.place_of("simulator"),
            judge,
            target,
            inherited_by_agent: inherited,
            shared: Arc::new(shared),
            environment,
            ..Project::default()
        };
        if mistakes.is_empty() { Ok(project) } else { Err(mistakes) }
    }

    /// Files of the connectors: scripts and recordings of language models.
    pub fn connector_files(&self) -> impl Iterator<Item = PathBuf> {
        self.connectors.names().filter_map(|name| self.connectors.file(name))
    }

    /// Token prices of the project's connectors.
    pub fn prices(&self) -> ModelPrices {
        connector_prices(&self.connectors)
    }

    /// Reads the connectors of a project file, ignoring errors of its agents. Fails if the file or its
    /// connectors are invalid.
    pub fn read_connectors(path: &Path, shown: &str) -> Result<ConnectorSet, Diagnostics> {
        let (source, node) = parse_project(path, shown)?;
        let mut mistakes = Diagnostics::new();
        let written = MapView::from_node(&node, &source, &PROJECT).expect("the shape was checked");
        let connectors = read_connectors(&written, folder_of(path), &mut mistakes);
        if mistakes.is_empty() { Ok(connectors) } else { Err(mistakes) }
    }

    /// Language models of the project.
    pub fn connectors(&self) -> &Arc<ConnectorSet> {
        &self.connectors
    }

    /// Opens a language model by connector name, without any state. Fails if the connector is unknown or
    /// misconfigured.
    pub fn open_connector(&self, name: &str) -> Result<Arc<dyn Model>, Diagnostics> {
        let connector = self.connectors.get(name, None, &|name| self.environment.get(name).cloned())?;
        connector.open().map_err(|error| {
            Diagnostic::new(format!("the connector `{name}` cannot be used: {}", error.message)).into()
        })
    }

    /// Finds an agent by name. Fails if it does not exist.
    pub fn find_agent_by_name(&self, name: &str) -> Result<Arc<ProjectAgent>, Diagnostic> {
        find_agent(&self.agents, name)
    }

    /// Tests this agent regardless of suites and cases. Fails if it does not exist.
    pub fn override_with(&mut self, name: &str) -> Result<(), Diagnostic> {
        let chosen = find_agent(&self.agents, name)?;
        // It also replaces agents that cases name.
        let names = self.inherited_by_agent.keys().cloned();
        self.inherited_by_agent = Arc::new(names.map(|name| (name, chosen.inherited.clone())).collect());
        self.override_agent = Some(chosen);
        Ok(())
    }

    /// Contacts the tested agent at another address: the selected one, or the target of the project. Without
    /// a target, an AG-UI agent at this address is tested. An agent that Hotseat would start is not started.
    /// Fails if it is no HTTP URL, several agents could be meant, or the agent has no address.
    pub fn override_endpoint(&mut self, endpoint: &str) -> Result<(), Diagnostics> {
        self.header_secrets.extend(endpoint_secrets("endpoint", endpoint));
        self.renew_redactor();
        if !hotseat_document::is_http_url(endpoint) {
            let shown = self.redactor.text(endpoint);
            return Err(Diagnostic::new(format!("--endpoint {shown}: expected an HTTP URL")).into());
        }
        let around = AgentReadContext {
            root: &self.root,
            connectors: &self.connectors,
            environment: &self.environment,
            redactor: &self.redactor,
        };
        let mut mistakes = Diagnostics::new();
        let chosen = self.override_agent.clone().or_else(|| self.target.clone());
        let moved = match &chosen {
            Some(agent) => agent.at_endpoint(endpoint, around, &mut mistakes),
            None if self.agents.is_empty() => Some(ProjectAgent::ag_ui(endpoint, around, &mut mistakes)),
            None => return Err(self.missing_target().into()),
        };
        let Some(moved) = moved.map(Arc::new).filter(|_| mistakes.is_empty()) else { return Err(mistakes) };
        let is_chosen =
            |agent: &Arc<ProjectAgent>| chosen.as_ref().is_some_and(|one| Arc::ptr_eq(one, agent));
        for agent in self.agents.iter_mut().chain(&mut self.target).chain(&mut self.override_agent) {
            if is_chosen(agent) {
                *agent = moved.clone();
            }
        }
        self.target.get_or_insert_with(|| moved.clone());
        self.moved_agent = Some(moved);
        Ok(())
    }

    /// Fails if a tested agent has another address in the command line, but is not the one that gets it: the old one would
    /// be tested.
    pub fn check_endpoint<'a>(
        &self,
        tested: impl Iterator<Item = &'a Arc<ProjectAgent>>,
    ) -> Result<(), Diagnostic> {
        let Some(moved) = &self.moved_agent else { return Ok(()) };
        let mut others = tested.filter(|agent| !Arc::ptr_eq(agent, moved) && !agent.is_replayed());
        let Some(other) = others.next() else { return Ok(()) };
        let message =
            format!("--endpoint is the address of {}, but cases test {}", moved.words(), other.words());
        Err(Diagnostic::new(message).help("name the agent with `-n`, or select only its cases"))
    }

    /// Replays recordings in place of the tested agents. Assertions and tools of the agents still apply, and
    /// suites without an agent are replayed too. Agents used for roles are not replaced. `from` is relative
    /// to `folder`. Fails if there are no recordings.
    pub fn replay_from(&mut self, from: &str, folder: &Path) -> Result<(), Diagnostics> {
        if from.is_empty() {
            let wrong = Diagnostic::new("`-n replay:` names no recordings");
            return Err(wrong
                .help("write their folder, or one recording, behind it: `-n replay:recordings`")
                .into());
        }
        find_recordings(&folder.join(from), from)?;
        let mut mistakes = Diagnostics::new();
        let around = AgentReadContext {
            root: folder,
            connectors: &self.connectors,
            environment: &self.environment,
            redactor: &self.redactor,
        };
        let tested = self.agents.iter().chain(&self.target);
        let instead = tested.map(|agent| {
            let replayed = agent.to_replay_agent(from, around, &mut mistakes);
            (agent.clone(), Arc::new(replayed))
        });
        let instead = instead.collect();
        let otherwise = Arc::new(ProjectAgent::from_recordings(from, around, &mut mistakes));
        self.replay_agents = Some(ReplayAgents { replacements: instead, fallback: otherwise });
        if mistakes.is_empty() { Ok(()) } else { Err(mistakes) }
    }

    /// Name of a suite in recordings.
    pub fn suite_name(&self, suite: &Path) -> String {
        suite_name(&self.root, suite)
    }

    /// Applies the call settings of the command line.
    pub fn set_call_settings(&mut self, calling: CallSettings) {
        self.header_secrets.extend(calling.secrets());
        self.renew_redactor();
        self.call_settings = calling;
    }

    fn renew_redactor(&mut self) {
        let secrets = named_secrets(&self.environment, &self.secrets).chain(self.header_secrets());
        self.redactor = SecretRedactor::new(secrets.collect::<Vec<_>>());
    }

    /// Script functions and their permissions.
    pub fn scripts(&self) -> &ScriptLibrary {
        &self.scripts
    }

    /// Call settings of the command line.
    pub fn call_settings(&self) -> &CallSettings {
        &self.call_settings
    }

    /// Returns errors and notes about call settings that an agent does not support.
    pub fn check_call_settings(&self, agent: &ProjectAgent) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
        let mut mistakes = Vec::new();
        if let Some(name) = &self.call_settings.connector {
            match agent.capabilities().unsupported_connector() {
                Some(mistake) => mistakes.push(mistake),
                None => mistakes.extend(self.check_connector(agent, name, None)),
            }
        }
        let who = agent.name.as_ref().map_or("the agent".to_string(), |name| format!("agent `{name}`"));
        let unheard = self.call_settings.given_keys().into_iter().filter(|(key, _)| !agent.supports(key));
        let notes = unheard.map(|(_, shown)| Diagnostic::new(format!("{shown}: not supported by {who}")));
        (mistakes, notes.collect())
    }

    /// Diagnostics of case parts that do not reach the agent.
    pub fn unsupported_parts(&self, agent: &ProjectAgent, case: &TestCase) -> Vec<Diagnostic> {
        let mut mistakes = agent.capabilities().unsupported_parts(case);
        mistakes.extend(agent.capabilities().hidden_calls(case));
        mistakes.extend(unknown_servers(agent, case));
        mistakes.extend(agent.tool_errors(&case.target.tools));
        // A connector of the command line overrides those of cases.
        if self.call_settings.connector.is_none() && agent.capabilities().supports_option("connector") {
            for (name, place) in case_connectors(case) {
                if !name.contains("${") {
                    mistakes.extend(self.check_connector(agent, name, place));
                }
            }
        }
        mistakes
    }

    /// Diagnostics of a connector for an agent, as far as variables are known.
    pub(super) fn check_connector(
        &self,
        agent: &ProjectAgent,
        name: &str,
        place: Option<SourceSpan>,
    ) -> Vec<Diagnostic> {
        let Some(connectors) = agent.connectors() else { return Vec::new() };
        let found = agent.capabilities().resolve_connector(name, place, connectors, &self.environment);
        found.err().into_iter().flatten().collect()
    }

    /// Applies the call settings to a case, and resolves the connectors that it names. Fails if a connector
    /// is unknown or misconfigured.
    pub fn apply_call_settings(
        &self,
        (agent, attempt): (&ProjectAgent, usize),
        case: &Arc<TestCase>,
        target: BoundTarget,
    ) -> Result<(Arc<TestCase>, BoundTarget), Diagnostics> {
        let case = self.call_settings.apply_to_case(case, attempt, agent.supports("metadata"));
        let target = self.with_connectors(agent, target, case_connectors(&case))?;
        Ok((case, target))
    }

    /// Adds the connectors with these names and positions to a target. Fails if a connector is unknown or
    /// misconfigured.
    pub fn with_connectors<'n>(
        &self,
        agent: &ProjectAgent,
        target: BoundTarget,
        names: impl IntoIterator<Item = (&'n str, Option<SourceSpan>)>,
    ) -> Result<BoundTarget, Diagnostics> {
        let known = target.own_connectors().unwrap_or(&self.connectors);
        let mut named = BTreeMap::new();
        for (name, place) in names {
            if let Some(connector) =
                agent.capabilities().resolve_connector(name, place, known, &self.environment)?
            {
                named.insert(name.to_string(), connector);
            }
        }
        Ok(target.with_connectors(named))
    }

    /// Returns the agent that a suite tests: the override, else the agent whose folder contains the suite,
    /// else the target; or its replay agent.
    pub fn agent_of(&self, suite: &Path) -> Option<Arc<ProjectAgent>> {
        let own = self.configured_agent_of(suite);
        match &self.replay_agents {
            None => own,
            Some(replayed) => Some(replayed.replacement(own.as_ref())),
        }
    }

    fn configured_agent_of(&self, suite: &Path) -> Option<Arc<ProjectAgent>> {
        if let Some(chosen) = &self.override_agent {
            return Some(chosen.clone());
        }
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let placed = self.agents.iter().filter_map(|agent| Some((real(agent.folder.as_deref()?), agent)));
        let placed: Vec<_> = placed.collect();
        let near = match placed.as_slice() {
            [] => None,
            placed => {
                let suite = real(suite);
                let around = placed.iter().filter(|(folder, _)| suite.starts_with(folder));
                // The most deeply nested folder takes precedence.
                around
                    .max_by_key(|(folder, _)| folder.components().count())
                    .map(|(_, agent)| (*agent).clone())
            }
        };
        near.or_else(|| self.target.clone())
    }

    /// Returns the agent with this name, or the override or replay agent in its place. Fails if it does not
    /// exist.
    pub fn tested_agent(&self, name: &str) -> Result<Arc<ProjectAgent>, Diagnostic> {
        let named = find_agent(&self.agents, name)?;
        let tested = self.override_agent.clone().unwrap_or(named);
        Ok(self.replay_agent_for(&tested))
    }

    /// Returns the agent that a case tests: the one that it names, else that of its suite. Fails if the named
    /// agent does not exist.
    pub fn agent_of_case(
        &self,
        case: &TestCase,
        of_suite: Option<&Arc<ProjectAgent>>,
    ) -> Result<Option<Arc<ProjectAgent>>, Diagnostic> {
        match &case.agent {
            None => Ok(of_suite.cloned()),
            Some(named) => {
                self.tested_agent(&named.name).map(Some).map_err(|wrong| wrong.at(named.place.clone()))
            }
        }
    }

    /// Returns the replay agent in place of an agent, if recordings are replayed.
    fn replay_agent_for(&self, agent: &Arc<ProjectAgent>) -> Arc<ProjectAgent> {
        match &self.replay_agents {
            None => agent.clone(),
            Some(replayed) => replayed.replacement(Some(agent)),
        }
    }

    /// Resolves an agent for a case without hooks. Fails if it uses variables set by hooks, or is invalid.
    pub fn bind_without_hooks(&self, agent: &ProjectAgent) -> Result<BoundTarget, Diagnostics> {
        agent.bind(VariableScope { mcp: McpAddresses::Example, ..self.variables() })
    }

    /// Returns the variables of a place that no hook precedes.
    pub(crate) fn variables(&self) -> VariableScope<'_> {
        VariableScope::new(&self.environment, &self.redactor)
    }

    /// Diagnostic for a project without an agent to test.
    pub fn missing_target(&self) -> Diagnostic {
        let names: Vec<&str> = self.agents.iter().filter_map(|agent| agent.name.as_deref()).collect();
        let message = match (&self.file, names.as_slice()) {
            (Some(file), []) => format!("{file} has no `target`"),
            (Some(file), names) => {
                let message = format!("{file} has several agents ({}) and no `target`", names.join(", "));
                return Diagnostic::new(message)
                    .help("select one with `-n`, or set its name under `target:`");
            }
            (None, _) => format!("no project file ({}) in this folder or above it", FILE_NAMES[0]),
        };
        Diagnostic::new(message)
            .help("set the URL of the agent under `target: endpoint:`, or run `hotseat init`")
    }

    /// Environment variables used in headers, with their values.
    pub fn header_secrets(&self) -> impl Iterator<Item = (String, String)> + '_ {
        self.header_secrets.iter().cloned()
    }

    /// Settings for decoding the cases of suites that test an agent.
    pub fn decode_settings<'a>(&'a self, agent: Option<&'a ProjectAgent>) -> DecodeSettings<'a> {
        let inherited = agent.map_or(&self.no_inherited, |agent| &agent.inherited);
        DecodeSettings {
            inherited,
            agents: &self.inherited_by_agent,
            shared: &self.shared,
            root: &self.root,
            environment: &self.environment,
            redactor: &self.redactor,
            default_simulator: self.default_simulator,
        }
    }

    /// Redactor for secrets of the environment.
    pub fn redactor(&self) -> &SecretRedactor {
        &self.redactor
    }

    /// Environment variables that the project was read with.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }
}

/// Diagnostics of addresses of MCP servers that the case does not have.
fn unknown_servers(agent: &ProjectAgent, case: &TestCase) -> Vec<Diagnostic> {
    let mut references = case.mcp_references();
    for name in agent.mcp_references.iter().chain(&agent.start_mcp_references) {
        references.entry(name.clone()).or_insert_with(|| case.place.clone());
    }
    let unknown = references.into_iter().filter_map(|(name, place)| {
        let wrong = match name.strip_prefix(MODEL_PREFIX) {
            Some(model) => (!case.models.contains(model)).then(|| case.models.unknown(model)),
            None => (!case.mcp.contains(&name)).then(|| case.mcp.unknown(&name)),
        };
        Some(wrong?.at(place))
    });
    unknown.collect()
}

/// Returns a diagnostic without secrets.
pub fn redact_diagnostic(mistake: Diagnostic, redactor: &SecretRedactor) -> Diagnostic {
    let clean = |text: &str| redactor.text(text).into_owned();
    Diagnostic { message: clean(&mistake.message), help: mistake.help.as_deref().map(clean), ..mistake }
}

/// Connectors named by the options of a case, without duplicates.
fn case_connectors(case: &TestCase) -> BTreeMap<&str, Option<SourceSpan>> {
    let options = case.turns.iter().map(|turn| &turn.options).chain([&case.turn_defaults.options]).flatten();
    let named = options
        .filter_map(|options| Some((options.value.get("connector")?.as_str()?, options.connector.clone())));
    named.collect()
}

/// Reads the names of variables with secrets: `ENV.NAME` for one of the environment, `NAME` for one of a hook or the environment.
/// Another word would name nothing, and the secret would be shown.
fn read_secret_names(project: &MapView<'_>, mistakes: &mut Diagnostics) -> Vec<String> {
    let mut names = Vec::new();
    for entry in project.items("secrets") {
        let Some(written) = entry.text() else { continue };
        let variable = written.strip_prefix("ENV.").unwrap_or(written);
        let plain = written.trim_start_matches(['$', '{']).trim_end_matches('}');
        let plain = plain.rsplit('.').next().unwrap_or_default();
        if is_variable_name(variable) {
            names.push(written.to_string());
        } else {
            let message = format!("`{written}` is no name of a variable");
            let help = match is_variable_name(plain) {
                true => format!(
                    "write `ENV.{plain}` for a variable of the environment, `{plain}` for one of a hook"
                ),
                false => {
                    "write `ENV.NAME` for a variable of the environment, `NAME` for one of a hook".to_string()
                }
            };
            mistakes.push(Diagnostic::new(message).at(entry.place()).help(help));
        }
    }
    names
}

/// Secrets of the environment: variables that the project marks, variables with names of secrets, and
/// passwords and keys in URLs.
pub fn named_secrets<'a>(
    environment: &'a BTreeMap<String, String>,
    named: &'a [String],
) -> impl Iterator<Item = (String, String)> + 'a {
    let listed = named.iter().filter_map(|name| {
        let variable = name.strip_prefix("ENV.").unwrap_or(name);
        Some((name.clone(), environment.get(variable)?.clone()))
    });
    let telling = environment.iter().filter(|(name, value)| is_secret(name, value));
    let of_addresses = environment.iter().flat_map(|(name, value)| {
        let secrets = address_secrets(value).into_iter();
        secrets.map(move |(part, secret)| (format!("ENV.{name} {part}"), secret))
    });
    listed.chain(telling.map(|(name, value)| (format!("ENV.{name}"), value.clone()))).chain(of_addresses)
}

/// Parses a project file and validates its shape.
fn parse_project(path: &Path, shown: &str) -> Result<(Arc<SourceText>, DocumentNode), Diagnostics> {
    let text = hotseat_document::read_file(path).map_err(|error| {
        let unread = Diagnostic::new(format!("cannot read project file {shown}: {error}"));
        Diagnostics::from(match path.is_dir() {
            true => unread.help(format!("name its file: {}", Path::new(shown).join(FILE_NAMES[0]).display())),
            false => unread,
        })
    })?;
    let source = source_from_bytes(shown, text).map_err(|mistake| Diagnostics::from(*mistake))?;
    let node = yaml::parse(&source)?;
    let mut mistakes = Diagnostics::new();
    check(&node, &Kind::Shape(&PROJECT), &source, &mut mistakes);
    if mistakes.is_empty() { Ok((source, node)) } else { Err(explain_project_words(mistakes)) }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|root| !root.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Decodes the connectors of a project file. Their paths are relative to its folder.
fn read_connectors(project: &MapView<'_>, root: &Path, mistakes: &mut Diagnostics) -> ConnectorSet {
    let mut connectors = ConnectorSet::default();
    if let Some(view) = project.get("connectors") {
        connectors.add(view, root, mistakes);
    }
    connectors
}

/// Secret values in headers, keys, addresses and environments of agents, connectors, servers, models and processes: the
/// environment variables that they use, and literal values.
fn collect_header_secrets(
    project: &DocumentNode,
    environment: &BTreeMap<String, String>,
) -> Vec<(String, String)> {
    let processes = project.get("scripts").and_then(|scripts| scripts.get("processes"));
    let groups = ["agents", "mcp", "models", "connectors"].map(|group| project.get(group));
    let members =
        groups.into_iter().chain([processes]).flatten().flat_map(text_members).map(|(_, member)| member);
    let mut secrets = Vec::new();
    let mut add = |name: &str, written: &str, literal: Vec<String>| {
        if !written.contains("${") {
            secrets.extend(literal.into_iter().map(|secret| (name.to_string(), secret)));
        }
        for (name, _) in references(written).into_iter().filter(|(_, of_environment)| *of_environment) {
            secrets.extend(environment.get(name).map(|value| (format!("ENV.{name}"), value.clone())));
        }
    };
    for member in project.get("target").into_iter().chain(members) {
        let headers = member.get("headers").into_iter().flat_map(text_members);
        let key = member.get("api_key").map(|key| ("api_key", key));
        for (name, node) in headers.chain(key) {
            let NodeValue::String(text) = &node.value else { continue };
            add(name, text, if name == "api_key" { vec![text.clone()] } else { header_secrets(name, text) });
        }
        for (key, node) in
            ["endpoint", "base_url", "url"].iter().filter_map(|key| Some((key, member.get(key)?)))
        {
            let NodeValue::String(address) = &node.value else { continue };
            for (name, secret) in endpoint_secrets(key, address) {
                add(&name, &secret, vec![secret.clone()]);
            }
        }
        let environments = [member.get("env"), member.get("start").and_then(|start| start.get("env"))];
        for (name, node) in environments.into_iter().flatten().flat_map(text_members) {
            let NodeValue::String(value) = &node.value else { continue };
            if is_secret(name, value) {
                add(name, value, vec![value.clone()]);
            }
        }
    }
    secrets
}

/// Returns the secrets in an address under a key, each with the key and its part of the address as its name.
fn endpoint_secrets(key: &str, address: &str) -> impl Iterator<Item = (String, String)> {
    address_secrets(address).into_iter().map(move |(part, secret)| (format!("{key} {part}"), secret))
}

/// Returns the entries of a mapping.
fn text_members(node: &DocumentNode) -> impl Iterator<Item = (&str, &DocumentNode)> {
    let entries = match &node.value {
        NodeValue::Map(entries) => entries.as_slice(),
        _ => &[],
    };
    entries.iter().map(|entry| (&*entry.key.text, &entry.value))
}

pub(super) fn find_agent(agents: &[Arc<ProjectAgent>], name: &str) -> Result<Arc<ProjectAgent>, Diagnostic> {
    if let Some(agent) = agents.iter().find(|agent| agent.name.as_deref() == Some(name)) {
        return Ok(agent.clone());
    }
    Err(unknown_agent(name, agents.iter().filter_map(|agent| agent.name.as_deref())))
}

/// Returns the globs of suites of a project that names none.
pub(super) fn default_suites() -> Vec<String> {
    ["**/*.test.{yaml,yml,json,jsonl}", "**/*_test.{ts,mts,js,mjs}"].map(str::to_string).to_vec()
}

/// Resolves the variables of settings outside of agents. They must be defined.
fn resolve_variables(
    node: &mut DocumentNode,
    source: &Arc<SourceText>,
    environment: &Environment,
    redactor: &SecretRedactor,
    mistakes: &mut Diagnostics,
) {
    let variables = VariableScope { allow_undefined: true, ..VariableScope::new(environment, redactor) };
    if let hotseat_document::NodeValue::Map(entries) = &mut node.value {
        // Agents and connectors resolve their variables when they are used.
        let used_later = ["target", "agents", "connectors", "hooks"];
        let shared_texts = ["criteria", "topics", "graph", "simulate", "judge", "mcp", "models"];
        for entry in entries.iter_mut().filter(|entry| !used_later.contains(&&*entry.key.text)) {
            if entry.key.text == "scripts" {
                // Processes resolve their variables when they are called.
                let hotseat_document::NodeValue::Map(granted) = &mut entry.value.value else { continue };
                for entry in granted.iter_mut().filter(|entry| &*entry.key.text != "processes") {
                    interpolate(&mut entry.value, &Kind::Json, variables, source, mistakes);
                }
                continue;
            }
            // No case fills in the variables of its hooks here.
            let is_shared = shared_texts.contains(&&*entry.key.text);
            let variables = VariableScope { allow_undefined: !is_shared, ..variables };
            if let Some(field) = PROJECT.field(&entry.key.text) {
                interpolate(&mut entry.value, &field.kind, variables, source, mistakes);
            }
        }
    }
}

fn read_min_pass_rate(map: &MapView<'_>, mistakes: &mut Diagnostics) -> Option<PassRate> {
    let written = read_rate(map, "min_pass_rate")?;
    let rate = PassRate::new(written);
    if rate.is_none() {
        let place = map.place_near("min_pass_rate");
        mistakes.push(
            Diagnostic::new("`min_pass_rate` must be more than 0 and at most 1")
                .at(place)
                .help("0.8 or 80%: four of five runs must pass"),
        );
    }
    rate
}

fn read_project_reliability(map: &MapView<'_>, mistakes: &mut Diagnostics) -> Option<Reliability> {
    let reliability = match read_reliability(map, mistakes) {
        ReliabilitySetting::Here(reliability) => Some(reliability),
        ReliabilitySetting::Inherited | ReliabilitySetting::Nothing => None,
    };
    if let (Some(_), Some(place)) = (reliability, map.key_place("runs")) {
        let wrong = Diagnostic::new("`runs` and `reliability` cannot be combined").at(place);
        mistakes.push(wrong.help("use `max_runs` of `reliability` to limit the number of runs"));
    }
    reliability
}
