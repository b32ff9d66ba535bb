//! The project file: found by walking up, read with every mistake at once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::agent::{Agent, Surroundings};
use super::context::Calling;
use super::granted::{self, Named};
use super::hooks::Hooks;
use super::limits::limits;
use super::shape::PROJECT;
use super::storing::{Storing, storing};
use super::target::{BoundTarget, Target, find_recordings, is_secret};
use crate::cases::{
    AgentsByName, Case, Declared, Decoding, Environment, Inherited, Reliability, Shared, Variables,
    interpolate, judging, no_such_agent, references, reliability,
};
use crate::checks::{Judging, Reference};
use crate::recording::suite_name;
use crate::scripts::{Grants, Library};
use crate::session::{Prices, Redactor, TrafficLimits};
use hotseat_document::{
    Diagnostic, Diagnostics, Kind, Map, Node, Place, Source, View, address_password, check, yaml,
};
use hotseat_model::Model;
use hotseat_runtime::files::Connectors;

/// The names under which a project file is looked for, in this order.
pub const FILE_NAMES: [&str; 3] = ["hotseat.yaml", "hotseat.yml", "aguitest.config.yaml"];

/// A project: where it is and what its file says.
#[derive(Debug, Clone)]
pub struct Project {
    /// Folder of the project file; without one, the folder it was looked for in.
    pub root: PathBuf,
    /// The project file as it is shown to people, if there is one.
    pub file: Option<Arc<str>>,
    /// Globs of its suites, relative to `root`.
    pub suites: Vec<String>,
    /// How many conversations are held at once, if it says so.
    pub parallel: Option<usize>,
    /// How many times each case is run, if it says so.
    pub runs: Option<usize>,
    /// How much of several runs of a case has to pass, from 0 to 1, if it says so.
    pub min_pass_rate: Option<f64>,
    /// How reliable agents have to be in cases that do not say it.
    pub reliability: Option<Reliability>,
    /// How many runs of a case are made again because somebody else has spoiled them, if it says so.
    pub redraws: Option<usize>,
    /// How often a case that fails is tried again.
    pub retries: usize,
    /// How much agents may send and do.
    pub limits: TrafficLimits,
    /// Whether runs are kept.
    pub store: Storing,
    /// Variables that it names as secrets.
    pub secrets: Vec<String>,
    /// The agents it names.
    pub agents: Vec<Arc<Agent>>,
    /// The language models it names.
    connectors: Arc<Connectors>,
    /// Commands that run around cases and runs, by name.
    pub(super) hooks: Hooks,
    /// Functions of scripts.
    pub(super) scripts: Library,
    /// What they call by names of the project file.
    pub(super) processes: Named,
    /// Who simulates users where cases do not say it.
    pub simulator: Option<Reference>,
    /// Whether a simulated user also answers in cases that have none.
    pub default_simulator: bool,
    /// Who judges, and how, where cases do not say it.
    pub judge: Judging,
    /// The agent that is tested where nothing else is said.
    target: Option<Arc<Agent>>,
    /// The agent that is tested whatever else is said.
    chosen: Option<Arc<Agent>>,
    /// What serves recordings in place of the agents that are tested.
    replayed: Option<Replayed>,
    /// On whose behalf agents are spoken to, and with which model.
    calling: Calling,
    /// What suites without an agent inherit.
    nothing: Inherited,
    /// What cases inherit that name their agent.
    inherited: Arc<AgentsByName>,
    /// What all cases have in common.
    shared: Arc<Shared>,
    environment: Environment,
    redactor: Redactor,
    header_secrets: Vec<(String, String)>,
}

/// What serves recordings.
#[derive(Debug, Clone)]
struct Replayed {
    /// In place of each agent of the project.
    instead: Vec<(Arc<Agent>, Arc<Agent>)>,
    /// For suites that have no agent.
    otherwise: Arc<Agent>,
}

impl Replayed {
    fn in_place_of(&self, agent: Option<&Arc<Agent>>) -> Arc<Agent> {
        let known = agent.and_then(|agent| self.instead.iter().find(|(own, _)| Arc::ptr_eq(own, agent)));
        known.map_or(&self.otherwise, |(_, instead)| instead).clone()
    }
}

impl Project {
    /// The project file of a folder: the nearest one, walking up.
    pub fn find(folder: &Path) -> Option<PathBuf> {
        folder
            .ancestors()
            .find_map(|folder| FILE_NAMES.iter().map(|name| folder.join(name)).find(|path| path.is_file()))
    }

    /// A folder without a project file.
    pub fn without_file(root: PathBuf, environment: Environment) -> Project {
        Project {
            file: None,
            suites: default_suites(),
            parallel: None,
            runs: None,
            min_pass_rate: None,
            reliability: None,
            redraws: None,
            retries: 0,
            limits: TrafficLimits::default(),
            store: Storing::default(),
            secrets: Vec::new(),
            agents: Vec::new(),
            connectors: Arc::default(),
            hooks: Hooks::default(),
            scripts: Library::new(Grants { root: root.clone(), ..Grants::default() }, environment.clone()),
            root,
            processes: Named::default(),
            simulator: None,
            default_simulator: false,
            judge: Judging::default(),
            target: None,
            chosen: None,
            replayed: None,
            calling: Calling::default(),
            nothing: Inherited::default(),
            inherited: Arc::default(),
            shared: Arc::default(),
            redactor: Redactor::new(named_secrets(&environment, &[])),
            header_secrets: Vec::new(),
            environment,
        }
    }

    /// Reads a project file that is shown as `shown`.
    ///
    /// # Errors
    /// Every mistake of the file.
    pub fn read(path: &Path, shown: &str, environment: Environment) -> Result<Project, Diagnostics> {
        let (source, mut node) = parsed(path, shown)?;
        let mut mistakes = Diagnostics::new();
        let root = folder_of(path);
        let written = Map::of(&node, &source, &PROJECT).expect("the shape was checked");
        let connectors = Arc::new(connectors(&written, root, &mut mistakes));
        let around = Surroundings { root, connectors: &connectors, environment: &environment };
        let mut read = |name: Option<&str>, node: &Node| {
            Arc::new(Agent::read(name, node, &source, around, &mut mistakes))
        };
        let agents: Vec<Arc<Agent>> = written
            .get("agents")
            .and_then(View::entries)
            .into_iter()
            .flatten()
            .map(|(name, _, view)| read(Some(name), view.node))
            .collect();
        let named = written.text("target");
        let target = match (named, written.node("target")) {
            (None, Some(node)) => Some(read(None, node)),
            (Some(name), _) => {
                let found = find_agent(&agents, name);
                let place = written.place_of("target").unwrap_or_else(|| written.place());
                found.map_err(|diagnostic| mistakes.push(diagnostic.at(place))).ok()
            }
            (None, None) => match agents.as_slice() {
                [only] => Some(only.clone()),
                _ => None,
            },
        };
        let header_secrets = header_variables(&node, &environment);

        // What is said beside the agents uses the variables of the environment, and those must be set.
        let given = BTreeMap::new();
        let none = Redactor::default();
        let variables =
            Variables { environment: &environment, given: &given, more_to_come: true, redactor: &none };
        if let hotseat_document::Value::Map(entries) = &mut node.value {
            // Agents and connectors look theirs up when they are used.
            let used_later = ["target", "agents", "connectors", "hooks"];
            for entry in entries.iter_mut().filter(|entry| !used_later.contains(&&*entry.key.text)) {
                if entry.key.text == "scripts" {
                    // Of what scripts call they are looked up when it is called.
                    let hotseat_document::Value::Map(granted) = &mut entry.value.value else { continue };
                    for entry in granted.iter_mut().filter(|entry| &*entry.key.text != "processes") {
                        interpolate(&mut entry.value, &Kind::Json, variables, &source, &mut mistakes);
                    }
                    continue;
                }
                if let Some(field) = PROJECT.field(&entry.key.text) {
                    interpolate(&mut entry.value, &field.kind, variables, &source, &mut mistakes);
                }
            }
        }
        let map = Map::of(&node, &source, &PROJECT).expect("the shape was checked");
        let texts = |key: &str| -> Vec<String> {
            map.list(key).into_iter().flatten().filter_map(View::text).map(str::to_string).collect()
        };
        let simulator = map.get("simulator").and_then(|view| {
            let read = Reference::parse(view.text()?);
            read.map_err(|words| mistakes.push(Diagnostic::new(words).at(view.place()))).ok()
        });
        let judge = judging(map.get("judge"), &mut mistakes);
        let suites = texts("suites");
        let whole = |key: &str| map.integer(key).and_then(|n| usize::try_from(n).ok());
        let min_pass_rate = map.number("min_pass_rate").and_then(|rate| rate.as_f64());
        if min_pass_rate.is_some_and(|rate| !(rate > 0.0 && rate <= 1.0)) {
            let place = map.place_of("min_pass_rate").unwrap_or_else(|| map.place());
            mistakes.push(
                Diagnostic::new("`min_pass_rate` is a part of all runs: more than 0, and at most 1")
                    .at(place)
                    .help("0.8: four of five runs have to pass"),
            );
        }
        let (grants, processes) = granted::read(&map, root, path, &mut mistakes);
        let reliability = match reliability(&map, &mut mistakes) {
            Declared::Here(reliability) => Some(reliability),
            Declared::Inherited | Declared::Nothing => None,
        };
        if let (Some(_), Some(place)) = (reliability, map.key_place("runs")) {
            let wrong = Diagnostic::new("`runs` and `reliability`: one of the two").at(place);
            mistakes.push(wrong.help("`max_runs` of `reliability` says how many runs there may be"));
        }
        // Its judge is for all who are not told another one, also where no case is read.
        let declared = |key: &str| (!matches!(key, "judge" | "agent")).then(|| map.get(key)).flatten();
        let shared = Shared::read(declared, &Shared::default(), &mut mistakes);
        let store = storing(&map, &mut mistakes);
        let of_agents = agents.iter().filter_map(|agent: &Arc<Agent>| {
            Some((agent.name.as_deref()?.to_string(), agent.inherited.clone()))
        });
        let inherited = Arc::new(of_agents.collect());
        let project = Project {
            root: root.to_path_buf(),
            file: Some(shown.into()),
            suites: if suites.is_empty() { default_suites() } else { suites },
            parallel: whole("parallel"),
            runs: whole("runs"),
            min_pass_rate,
            reliability,
            redraws: whole("redraws"),
            retries: whole("retries").unwrap_or(0),
            limits: limits(&map),
            store,
            redactor: Redactor::new(
                named_secrets(&environment, &texts("secrets")).chain(header_secrets.iter().cloned()),
            ),
            header_secrets,
            secrets: texts("secrets"),
            agents,
            connectors,
            hooks: Hooks::of(&map, &mut mistakes),
            scripts: Library::new(grants, environment.clone()),
            processes,
            simulator,
            default_simulator: false,
            judge,
            target,
            chosen: None,
            replayed: None,
            calling: Calling::default(),
            nothing: Inherited::default(),
            inherited,
            shared: Arc::new(shared),
            environment,
        };
        if mistakes.is_empty() { Ok(project) } else { Err(mistakes) }
    }

    /// What the models of the project's connectors cost.
    pub fn prices(&self) -> Prices {
        let mut prices = Prices::default();
        for (name, model, price) in self.connectors.prices() {
            prices.add(name, price);
            model.iter().for_each(|model| prices.add(model, price));
        }
        prices
    }

    /// The connectors of a project file, whatever is wrong with its agents.
    ///
    /// # Errors
    /// Everything that is written in no such file.
    pub fn read_connectors(path: &Path, shown: &str) -> Result<Connectors, Diagnostics> {
        let (source, node) = parsed(path, shown)?;
        let mut mistakes = Diagnostics::new();
        let written = Map::of(&node, &source, &PROJECT).expect("the shape was checked");
        let connectors = connectors(&written, folder_of(path), &mut mistakes);
        if mistakes.is_empty() { Ok(connectors) } else { Err(mistakes) }
    }

    /// The language models that it names.
    pub fn connectors(&self) -> &Arc<Connectors> {
        &self.connectors
    }

    /// The language model of a name: a new one, which has answered nothing yet.
    ///
    /// # Errors
    /// When there is none of this name, and everything that is wrong with the one there is.
    pub fn connector(&self, name: &str) -> Result<Arc<dyn Model>, Diagnostics> {
        let connector = self.connectors.get(name, None, &|name| self.environment.get(name).cloned())?;
        connector.open().map_err(|error| {
            Diagnostic::new(format!("the connector `{name}` cannot be used: {}", error.message)).into()
        })
    }

    /// The agent of a name.
    ///
    /// # Errors
    /// When there is none.
    pub fn named_agent(&self, name: &str) -> Result<Arc<Agent>, Diagnostic> {
        find_agent(&self.agents, name)
    }

    /// Tests the agent of this name, whatever else is said.
    ///
    /// # Errors
    /// When there is none.
    pub fn choose(&mut self, name: &str) -> Result<(), Diagnostic> {
        let chosen = find_agent(&self.agents, name)?;
        // It is tested also by cases that name another one.
        let names = self.inherited.keys().cloned();
        self.inherited = Arc::new(names.map(|name| (name, chosen.inherited.clone())).collect());
        self.chosen = Some(chosen);
        Ok(())
    }

    /// Serves recordings in place of the agents that suites test. What the project asserts of an agent holds still, and
    /// the tools that it is offered are there; suites without an agent are served too. Helpers stay who they are. `from`
    /// starts from `folder`.
    ///
    /// # Errors
    /// When there are no recordings.
    pub fn replay(&mut self, from: &str, folder: &Path) -> Result<(), Diagnostics> {
        find_recordings(&folder.join(from), from)?;
        let mut mistakes = Diagnostics::new();
        let around =
            Surroundings { root: folder, connectors: &self.connectors, environment: &self.environment };
        let tested = self.agents.iter().chain(&self.target);
        let instead = tested.map(|agent| {
            let replayed = agent.replayed(from, around, &mut mistakes);
            (agent.clone(), Arc::new(replayed))
        });
        let instead = instead.collect();
        let otherwise = Arc::new(Agent::of_recordings(from, around, &mut mistakes));
        self.replayed = Some(Replayed { instead, otherwise });
        if mistakes.is_empty() { Ok(()) } else { Err(mistakes) }
    }

    /// What a suite is called in recordings.
    pub fn suite_name(&self, suite: &Path) -> String {
        suite_name(&self.root, suite)
    }

    /// Speaks to agents as the command line says.
    pub fn call_as(&mut self, calling: Calling) {
        self.header_secrets.extend(calling.secrets());
        let secrets = named_secrets(&self.environment, &self.secrets).chain(self.header_secrets());
        self.redactor = Redactor::new(secrets.collect::<Vec<_>>());
        self.calling = calling;
    }

    /// Its scripts, and what they may do.
    pub fn scripts(&self) -> &Library {
        &self.scripts
    }

    /// How agents are spoken to.
    pub fn calling(&self) -> &Calling {
        &self.calling
    }

    /// What is wrong with an agent for what the command line says, and what a person may want to know of it.
    pub fn mishears(&self, agent: &Agent) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
        let mut mistakes = Vec::new();
        if let Some(name) = &self.calling.connector {
            match agent.ears().deaf_to_connector() {
                Some(mistake) => mistakes.push(mistake),
                None => mistakes.extend(self.unusable(agent, name, None)),
            }
        }
        let who = agent.name.as_ref().map_or("the agent".to_string(), |name| format!("agent `{name}`"));
        let unheard = self.calling.gives().into_iter().filter(|(key, _)| !agent.hears(key));
        let notes = unheard.map(|(_, shown)| Diagnostic::new(format!("{shown}: {who} is never told of it")));
        (mistakes, notes.collect())
    }

    /// What an agent cannot be told of a case, although the case gives it.
    pub fn deaf_to(&self, agent: &Agent, case: &Case) -> Vec<Diagnostic> {
        let mut mistakes = agent.ears().deaf_to(case);
        // The one of the command line goes before those of cases.
        if self.calling.connector.is_none() && agent.ears().hears_option("connector") {
            for (name, place) in connectors_of(case) {
                if !name.contains("${") {
                    mistakes.extend(self.unusable(agent, name, place));
                }
            }
        }
        mistakes
    }

    /// What is wrong with a connector for an agent, as far as that is known before its variables are.
    pub(super) fn unusable(&self, agent: &Agent, name: &str, place: Option<Place>) -> Vec<Diagnostic> {
        let Some(connectors) = agent.connectors() else { return Vec::new() };
        let found = agent.ears().connector(name, place, connectors, &self.environment);
        found.err().into_iter().flatten().collect()
    }

    /// A case as its agent is told of it, and the agent with the models that the case names.
    ///
    /// # Errors
    /// What is wrong with one of those.
    pub fn address(
        &self,
        agent: &Agent,
        case: &Arc<Case>,
        target: BoundTarget,
    ) -> Result<(Arc<Case>, BoundTarget), Diagnostics> {
        let case = self.calling.addressed(case, agent.hears("metadata"));
        let target = self.with_connectors(agent, target, connectors_of(&case))?;
        Ok((case, target))
    }

    /// An agent with the models of these names, which are written at these places.
    ///
    /// # Errors
    /// What is wrong with one of them.
    pub fn with_connectors<'n>(
        &self,
        agent: &Agent,
        target: BoundTarget,
        names: impl IntoIterator<Item = (&'n str, Option<Place>)>,
    ) -> Result<BoundTarget, Diagnostics> {
        let known = match &target.target {
            Target::Embedded(target) => &target.agent.known,
            Target::AgUi(_)
            | Target::OpenAi(_)
            | Target::Http(_)
            | Target::Command(_)
            | Target::Replay(_)
            | Target::InCode(_) => &*self.connectors,
        };
        let mut named = BTreeMap::new();
        for (name, place) in names {
            if let Some(connector) = agent.ears().connector(name, place, known, &self.environment)? {
                named.insert(name.to_string(), connector);
            }
        }
        Ok(target.with_connectors(named))
    }

    /// The agent that a suite tests: the chosen one, else the one in whose folder it lies, else the target; or what
    /// serves recordings in its place.
    pub fn agent_of(&self, suite: &Path) -> Option<Arc<Agent>> {
        let own = self.own_agent_of(suite);
        match &self.replayed {
            None => own,
            Some(replayed) => Some(replayed.in_place_of(own.as_ref())),
        }
    }

    fn own_agent_of(&self, suite: &Path) -> Option<Arc<Agent>> {
        if let Some(chosen) = &self.chosen {
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
                // Of several folders the nearest one is meant.
                around
                    .max_by_key(|(folder, _)| folder.components().count())
                    .map(|(_, agent)| (*agent).clone())
            }
        };
        near.or_else(|| self.target.clone())
    }

    /// The agent of this name, or what is tested in its place: the chosen one, or recordings.
    ///
    /// # Errors
    /// When there is none of this name.
    pub fn tested(&self, name: &str) -> Result<Arc<Agent>, Diagnostic> {
        let named = find_agent(&self.agents, name)?;
        let tested = self.chosen.clone().unwrap_or(named);
        Ok(self.in_place_of(&tested))
    }

    /// The agent that a case tests: the one that it names, else that of its suite.
    ///
    /// # Errors
    /// When the case names one that is not there.
    pub fn agent_tested(
        &self,
        case: &Case,
        of_suite: Option<&Arc<Agent>>,
    ) -> Result<Option<Arc<Agent>>, Diagnostic> {
        match &case.agent {
            None => Ok(of_suite.cloned()),
            Some(named) => self.tested(&named.name).map(Some).map_err(|wrong| wrong.at(named.place.clone())),
        }
    }

    /// What is tested in place of an agent: recordings, where these are served.
    fn in_place_of(&self, agent: &Arc<Agent>) -> Arc<Agent> {
        match &self.replayed {
            None => agent.clone(),
            Some(replayed) => replayed.in_place_of(Some(agent)),
        }
    }

    /// What is wrong with an agent for a case that has no hooks.
    ///
    /// # Errors
    /// Variables that only hooks could give.
    pub fn bind_without_hooks(&self, agent: &Agent) -> Result<(), Diagnostics> {
        let given = BTreeMap::new();
        let (environment, redactor) = (&*self.environment, &self.redactor);
        agent.bind(Variables { environment, given: &given, more_to_come: false, redactor }).map(drop)
    }

    /// The mistake of a project that does not say which agent is tested.
    pub fn no_target(&self) -> Diagnostic {
        let names: Vec<&str> = self.agents.iter().filter_map(|agent| agent.name.as_deref()).collect();
        let message = match (&self.file, names.as_slice()) {
            (Some(file), []) => format!("{file} names no `target`"),
            (Some(file), names) => {
                let message = format!("{file} names several agents ({}) and no `target`", names.join(", "));
                return Diagnostic::new(message)
                    .help("name one with `-n`, or write its name under `target:`");
            }
            (None, _) => format!("no project file ({}) in this folder or above it", FILE_NAMES[0]),
        };
        Diagnostic::new(message)
            .help("write the address of the agent under `target: endpoint:`, or run `hotseat init`")
    }

    /// The environment variables that headers use, with their values.
    pub fn header_secrets(&self) -> impl Iterator<Item = (String, String)> + '_ {
        self.header_secrets.iter().cloned()
    }

    /// What the cases of suites that test an agent are decoded with.
    pub fn decoding<'a>(&'a self, agent: Option<&'a Agent>) -> Decoding<'a> {
        let inherited = agent.map_or(&self.nothing, |agent| &agent.inherited);
        Decoding {
            inherited,
            agents: &self.inherited,
            shared: &self.shared,
            root: &self.root,
            environment: &self.environment,
            redactor: &self.redactor,
            default_simulator: self.default_simulator,
        }
    }

    /// What takes the secrets of the environment out.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// The environment it was read with.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }
}

/// The connectors that the options of a case name, each once.
fn connectors_of(case: &Case) -> BTreeMap<&str, Option<Place>> {
    let options = case.turns.iter().map(|turn| &turn.options).chain([&case.unwritten.options]).flatten();
    let named = options
        .filter_map(|options| Some((options.value.get("connector")?.as_str()?, options.connector.clone())));
    named.collect()
}

/// The secrets of the environment: those that the project names, those that are named like secrets, and the passwords of
/// addresses.
pub fn named_secrets<'a>(
    environment: &'a BTreeMap<String, String>,
    named: &'a [String],
) -> impl Iterator<Item = (String, String)> + 'a {
    let listed = named.iter().filter_map(|name| {
        let variable = name.strip_prefix("ENV.")?;
        Some((name.clone(), environment.get(variable)?.clone()))
    });
    let telling = environment.iter().filter(|(name, value)| is_secret(name, value));
    let passwords = environment.iter().filter_map(|(name, value)| {
        Some((format!("ENV.{name} password"), address_password(value)?.to_string()))
    });
    listed.chain(telling.map(|(name, value)| (format!("ENV.{name}"), value.clone()))).chain(passwords)
}

/// A project file and its text, whose shape is checked.
fn parsed(path: &Path, shown: &str) -> Result<(Arc<Source>, Node), Diagnostics> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Diagnostics::from(Diagnostic::new(format!("cannot read project file {shown}: {error}")))
    })?;
    let source = Source::new(shown, text, 1);
    let node = yaml::parse(&source)?;
    let mut mistakes = Diagnostics::new();
    check(&node, &Kind::Shape(&PROJECT), &source, &mut mistakes);
    if mistakes.is_empty() { Ok((source, node)) } else { Err(mistakes) }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|root| !root.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The connectors of a project file. Their paths begin at its folder.
fn connectors(project: &Map<'_>, root: &Path, mistakes: &mut Diagnostics) -> Connectors {
    let mut connectors = Connectors::default();
    if let Some(view) = project.get("connectors") {
        connectors.add(view, root, mistakes);
    }
    connectors
}

/// What headers and keys of agents, connectors and processes of scripts hold: the environment variables that they use, for that is how
/// secrets come into them, and the keys that are written out.
fn header_variables(project: &Node, environment: &BTreeMap<String, String>) -> Vec<(String, String)> {
    use hotseat_document::Value;
    let entries = |node: Option<&Node>| match node.map(|node| &node.value) {
        Some(Value::Map(entries)) => entries.iter().map(|entry| entry.value.clone()).collect::<Vec<_>>(),
        _ => Vec::new(),
    };
    let agents = project.get("target").cloned().into_iter().chain(entries(project.get("agents")));
    let agents = agents.chain(entries(project.get("scripts").and_then(|scripts| scripts.get("processes"))));
    let connectors = entries(project.get("connectors"));
    let mut secrets = Vec::new();
    for key in connectors.iter().filter_map(|connector| connector.get("api_key")) {
        if let Value::String(text) = &key.value
            && !text.contains("${")
        {
            secrets.push(("api_key".to_string(), text.clone()));
        }
    }
    let texts = agents.chain(connectors).flat_map(|agent| {
        entries(agent.get("headers")).into_iter().chain(agent.get("api_key").cloned()).collect::<Vec<_>>()
    });
    for node in texts {
        let Value::String(text) = &node.value else { continue };
        for (name, _) in references(text).into_iter().filter(|(_, of_environment)| *of_environment) {
            secrets.extend(environment.get(name).map(|value| (format!("ENV.{name}"), value.clone())));
        }
    }
    secrets
}

/// The agent of a name.
pub(super) fn find_agent(agents: &[Arc<Agent>], name: &str) -> Result<Arc<Agent>, Diagnostic> {
    if let Some(agent) = agents.iter().find(|agent| agent.name.as_deref() == Some(name)) {
        return Ok(agent.clone());
    }
    Err(no_such_agent(name, agents.iter().filter_map(|agent| agent.name.as_deref())))
}

fn default_suites() -> Vec<String> {
    ["**/*.test.{yaml,yml,json,jsonl}", "**/*_test.{ts,mts,js,mjs}"].map(str::to_string).to_vec()
}
