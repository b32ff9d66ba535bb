//! Loads an agent with all of its dependencies from files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotseat_document::{Diagnostic, Diagnostics, NodeView, SourceSpan};
use hotseat_model::{Model, ModelError, ModelErrorKind, ModelReply, ModelRequest, PureModel, TimedValue};

use super::Environment;
use super::agent::{self, DecodedAgent};
use super::connectors::{self, ConnectorSet, ModelConnector};
use super::loader::{AgentLoader, LoadedDocument};
use crate::definition::{Definitions, RuntimeLimits};
use crate::ids::AgentId;

/// Options for loading an agent.
#[derive(Clone, Copy)]
pub struct LoadOptions<'o> {
    /// Lookup of environment variables.
    pub environment: Environment<'o>,
    /// Additional connectors, for example of a project. Connectors of the agent's files take precedence.
    pub connectors: Option<&'o ConnectorSet>,
}

impl Default for LoadOptions<'_> {
    /// No environment variables and no additional connectors.
    fn default() -> Self {
        LoadOptions { environment: &|_| None, connectors: None }
    }
}

impl fmt::Debug for LoadOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadOptions").field("connectors", &self.connectors).finish_non_exhaustive()
    }
}

/// Loaded agent with its definitions and models.
#[derive(Debug, Clone)]
pub struct LoadedAgent {
    /// The id of the agent.
    pub id: AgentId,
    /// Description of the agent.
    pub description: Option<String>,
    /// Definitions of the agent and everything it refers to.
    pub definitions: Arc<Definitions>,
    /// Limits of its conversations.
    pub limits: RuntimeLimits,
    /// Connectors in use, by profile id.
    pub connectors: BTreeMap<Arc<str>, ModelConnector>,
    /// All available connectors: those of the agent's files and the additional ones.
    pub available_connectors: ConnectorSet,
    /// Texts of its files, and the settings of the connectors in use.
    pub written: String,
    /// Paths of its files, and of those of the connectors in use.
    pub files: Vec<PathBuf>,
}

impl LoadedAgent {
    /// Opens the models for real time, by profile id. Each call opens new models without history.
    ///
    /// # Errors
    /// If a connector cannot be used.
    pub fn models(&self) -> Result<BTreeMap<Arc<str>, Arc<dyn Model>>, ModelError> {
        self.connectors.iter().map(|(id, connector)| Ok((id.clone(), connector.open()?))).collect()
    }

    /// Returns the profile id of the loaded agent. Agents without their own model share it.
    pub fn profile(&self) -> Arc<str> {
        match self.definitions.agent(&self.id) {
            Some(agent) => agent.persona.profile.id.clone(),
            None => DEFAULT_CONNECTOR.into(),
        }
    }

    /// Replaces the model of the loaded agent.
    #[must_use]
    pub fn with_connector(mut self, connector: ModelConnector) -> LoadedAgent {
        self.connectors.insert(self.profile(), connector);
        self
    }

    /// Combines the models of all agents into one without clock and network, for the simulated driver.
    ///
    /// # Errors
    /// If a connector needs a network.
    pub fn combined_model(&self) -> Result<CombinedModel, ModelError> {
        let mut models = BTreeMap::new();
        for (id, connector) in &self.connectors {
            let Some(model) = connector.open_pure() else {
                let message =
                    format!("the connector `{id}` needs a network, which the simulated driver does not have");
                return Err(ModelError::new(ModelErrorKind::Configuration, message));
            };
            models.insert(id.clone(), model);
        }
        let profiles =
            self.definitions.agents().map(|agent| (agent.id.clone(), agent.persona.profile.id.clone()));
        Ok(CombinedModel { profiles: profiles.collect(), models })
    }
}

/// Several models as one: selects the model by the agent that calls it.
pub struct CombinedModel {
    profiles: BTreeMap<AgentId, Arc<str>>,
    models: BTreeMap<Arc<str>, Box<dyn PureModel>>,
}

impl PureModel for CombinedModel {
    fn name(&self) -> &str {
        "cast"
    }

    fn answer(&mut self, request: &ModelRequest) -> TimedValue<Result<ModelReply, ModelError>> {
        let part = self.profiles.get(&AgentId::from(request.position.agent.as_str()));
        match part.and_then(|profile| self.models.get_mut(profile)) {
            Some(model) => model.answer(request),
            None => {
                let message = format!("the agent `{}` has no model", request.position.agent);
                TimedValue::now(Err(ModelError::new(ModelErrorKind::Configuration, message)))
            }
        }
    }
}

impl fmt::Debug for CombinedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CombinedModel").field("parts", &self.profiles).finish_non_exhaustive()
    }
}

/// Name of the connector for agents without another one.
const DEFAULT_CONNECTOR: &str = "default";

/// Decoded agent with its document.
struct AgentEntry {
    id: AgentId,
    within: Option<AgentId>,
    document: LoadedDocument,
    decoded: DecodedAgent,
}

/// Loads the agent at a path: a file, or a folder that contains `agent.yaml`.
///
/// # Errors
/// All problems of the agent's files and the files that they refer to.
pub fn load(path: &Path, options: &LoadOptions<'_>) -> Result<LoadedAgent, Diagnostics> {
    let mut loader = AgentLoader::default();
    let root = loader.load_root(path);
    let mut connectors = ConnectorSet::default();
    let mut agents: Vec<AgentEntry> = Vec::new();
    while let Some(found) = loader.queue.pop_front() {
        let declared = found.document.node.get("connectors");
        if let Some(view) = declared.map(|node| NodeView::new(node, &found.document.source)) {
            connectors.add(view, &found.document.site.folder, &mut loader.diagnostics);
        }
        if let Some(written) = agent::decode(&mut loader, &found.document, &found.id) {
            agents.push(AgentEntry {
                id: found.id,
                within: found.parent,
                document: found.document,
                decoded: written,
            });
        }
    }
    if let Some(others) = options.connectors {
        connectors.add_missing(others);
    }
    let connectors_in_use = assign_models(&mut agents, &connectors, options, &mut loader.diagnostics);
    let mut files: Vec<PathBuf> = loader.read_files.iter().map(|name| PathBuf::from(&**name)).collect();
    for script in agents.iter().filter_map(|agent| agent.document.site.script_path()) {
        loader.written += &hotseat_document::read_text_file(&script).unwrap_or_default();
        files.push(script);
    }
    files.extend(connectors_in_use.keys().filter_map(|name| connectors.file(name)));
    let personas = agents.iter().map(|agent| &agent.decoded.persona);
    let definitions = match loader.diagnostics.is_empty() {
        true => Definitions::from_personas(personas)
            .map_err(|error| loader.diagnostics.push(Diagnostic::new(error.to_string())))
            .ok(),
        false => None,
    };
    match (definitions, root, agents.into_iter().next()) {
        (Some(definitions), Some(id), Some(first)) => Ok(LoadedAgent {
            id,
            description: first.decoded.description,
            definitions: Arc::new(definitions),
            limits: first.decoded.limits,
            written: loader.written
                + &connectors_in_use
                    .keys()
                    .filter_map(|name| connectors.written_settings(name))
                    .collect::<String>(),
            files,
            connectors: connectors_in_use,
            available_connectors: connectors,
        }),
        _ => Err(loader.into_diagnostics()),
    }
}

/// Assigns a model to every agent and returns the connectors in use.
fn assign_models(
    agents: &mut [AgentEntry],
    connectors: &ConnectorSet,
    options: &LoadOptions<'_>,
    mistakes: &mut Diagnostics,
) -> BTreeMap<Arc<str>, ModelConnector> {
    let mut in_use: BTreeMap<Arc<str>, ModelConnector> = BTreeMap::new();
    let mut tried: BTreeSet<Arc<str>> = BTreeSet::new();
    for index in 0..agents.len() {
        let choice = choose_model(agents, index, connectors);
        let profile: Arc<str> = match &choice {
            ModelChoice::Connector(name, _) => name.as_str().into(),
            ModelChoice::Script(_) => format!("{}-script", agents[index].id).into(),
            ModelChoice::SameAs(other) => agents[*other].decoded.persona.profile.id.clone(),
            ModelChoice::Missing => {
                let document = &agents[index].document;
                let place = NodeView::new(&document.node, &document.source).place();
                let place = document.node.get("name").map_or(place, |name| name.place(&document.source));
                let message = format!("no model is configured for `{}`", agents[index].id);
                let help =
                    "add a `connector`, or a script beside the file (`script.yaml` beside `agent.yaml`)";
                mistakes.push(Diagnostic::new(message).at(place).help(help));
                continue;
            }
        };
        agents[index].decoded.persona.profile.id = profile.clone();
        if !tried.insert(profile.clone()) {
            continue;
        }
        let connector = match choice {
            // Problems of this connector have already been reported.
            ModelChoice::Connector(name, _)
                if connectors.place(&name).is_some_and(|place| mistakes.any_within(&place)) =>
            {
                continue;
            }
            ModelChoice::Connector(name, place) => connectors.get(&name, place, options.environment),
            ModelChoice::Script(path) => {
                let mut wrong = Diagnostics::new();
                connectors::read_script(&path, None, &mut wrong).map(ModelConnector::Scripted).ok_or(wrong)
            }
            ModelChoice::SameAs(_) | ModelChoice::Missing => continue,
        };
        match connector {
            Ok(connector) => drop(in_use.insert(profile, connector)),
            Err(wrong) => mistakes.extend(wrong),
        }
    }
    in_use
}

/// Source of an agent's model.
enum ModelChoice {
    /// A connector and the position of its name.
    Connector(String, Option<SourceSpan>),
    /// A script beside the agent's file.
    Script(std::path::PathBuf),
    /// The model of another agent, by index.
    SameAs(usize),
    Missing,
}

fn choose_model(agents: &[AgentEntry], index: usize, connectors: &ConnectorSet) -> ModelChoice {
    let agent = &agents[index];
    if let Some((name, place)) = &agent.decoded.connector {
        return ModelChoice::Connector(name.clone(), Some(place.clone()));
    }
    if let Some(within) = &agent.within {
        let owner = agents[..index].iter().position(|other| other.id == *within);
        return ModelChoice::SameAs(owner.unwrap_or(0));
    }
    match agent.document.site.script_path() {
        Some(path) => ModelChoice::Script(path),
        None if index > 0 => ModelChoice::SameAs(0),
        None if connectors.contains(DEFAULT_CONNECTOR) => {
            ModelChoice::Connector(DEFAULT_CONNECTOR.to_owned(), None)
        }
        None => ModelChoice::Missing,
    }
}
