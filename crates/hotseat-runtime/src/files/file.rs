//! An agent with everything that it needs, from its files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use hotseat_document::{Diagnostic, Diagnostics, Place, View};
use hotseat_model::{ErrorKind, Model, ModelError, PureModel, Reply, Request, Timed};

use super::Environment;
use super::agent::{self, WrittenAgent};
use super::connectors::{self, Connector, Connectors};
use super::loader::{Document, Loader};
use crate::definition::{Definitions, Limits};
use crate::ids::AgentId;

/// What the files of an agent are read with.
#[derive(Clone, Copy)]
pub struct Options<'o> {
    /// Looks variables of the environment up.
    pub environment: Environment<'o>,
    /// Connectors beside those of the files, for instance of a project. Those of the files go first.
    pub connectors: Option<&'o Connectors>,
}

impl Default for Options<'_> {
    /// No variables, no further connectors.
    fn default() -> Self {
        Options { environment: &|_| None, connectors: None }
    }
}

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("connectors", &self.connectors).finish_non_exhaustive()
    }
}

/// An agent with everything that it needs.
#[derive(Debug, Clone)]
pub struct AgentFile {
    /// The agent that was loaded.
    pub id: AgentId,
    /// What it is for.
    pub description: Option<String>,
    /// It, and everything that it refers to.
    pub definitions: Arc<Definitions>,
    /// The limits of conversations with it.
    pub limits: Limits,
    /// The models that speak, by the ids that the profiles of the agents name.
    pub connectors: BTreeMap<Arc<str>, Connector>,
    /// All models that it could speak with: those of its files, and those that it was loaded with.
    pub known: Connectors,
}

impl AgentFile {
    /// The models in real time, by the ids that the profiles of the agents name: new ones, which have answered
    /// nothing yet.
    ///
    /// # Errors
    /// When a connector cannot be used.
    pub fn models(&self) -> Result<BTreeMap<Arc<str>, Arc<dyn Model>>, ModelError> {
        self.connectors.iter().map(|(id, connector)| Ok((id.clone(), connector.open()?))).collect()
    }

    /// The id of the profile of the agent that was loaded: whose model speaks for it, and for those that have no
    /// other.
    pub fn profile(&self) -> Arc<str> {
        match self.definitions.agent(&self.id) {
            Some(agent) => agent.persona.profile.id.clone(),
            None => USUAL.into(),
        }
    }

    /// The same agent with another model in place of the one that speaks for it.
    #[must_use]
    pub fn speaking_with(mut self, connector: Connector) -> AgentFile {
        self.connectors.insert(self.profile(), connector);
        self
    }

    /// One model that speaks for all agents without clock and network, for the simulated driver.
    ///
    /// # Errors
    /// When a connector cannot be used, or needs a network.
    pub fn cast(&self) -> Result<Cast, ModelError> {
        let mut models = BTreeMap::new();
        for (id, connector) in &self.connectors {
            let Some(model) = connector.pure()? else {
                let message = format!("the connector `{id}` needs a network, which this driver has not");
                return Err(ModelError::new(ErrorKind::Configuration, message));
            };
            models.insert(id.clone(), model);
        }
        let parts =
            self.definitions.agents().map(|agent| (agent.id.clone(), agent.persona.profile.id.clone()));
        Ok(Cast { parts: parts.collect(), models })
    }
}

/// Who speaks for which agent: several models as one.
pub struct Cast {
    parts: BTreeMap<AgentId, Arc<str>>,
    models: BTreeMap<Arc<str>, Box<dyn PureModel>>,
}

impl PureModel for Cast {
    fn name(&self) -> &str {
        "cast"
    }

    fn answer(&mut self, request: &Request) -> Timed<Result<Reply, ModelError>> {
        let part = self.parts.get(&AgentId::from(request.position.agent.as_str()));
        match part.and_then(|profile| self.models.get_mut(profile)) {
            Some(model) => model.answer(request),
            None => {
                let message = format!("no model speaks for the agent `{}`", request.position.agent);
                Timed::now(Err(ModelError::new(ErrorKind::Configuration, message)))
            }
        }
    }
}

impl fmt::Debug for Cast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cast").field("parts", &self.parts).finish_non_exhaustive()
    }
}

/// The connector of agents that nothing else gives one.
const USUAL: &str = "default";

/// An agent that was decoded.
struct Loaded {
    id: AgentId,
    within: Option<AgentId>,
    document: Document,
    written: WrittenAgent,
}

/// Loads the agent at a path: a file, or a folder that holds `agent.yaml`.
///
/// # Errors
/// Everything that is wrong with it and with the files that it refers to.
pub fn load(path: &Path, options: &Options<'_>) -> Result<AgentFile, Diagnostics> {
    let mut loader = Loader::default();
    let root = loader.root(path);
    let mut connectors = Connectors::default();
    let mut agents: Vec<Loaded> = Vec::new();
    while let Some(found) = loader.queue.pop_front() {
        let declared = found.document.node.get("connectors");
        if let Some(view) = declared.map(|node| View::new(node, &found.document.source)) {
            connectors.add(view, &found.document.site.folder, &mut loader.mistakes);
        }
        if let Some(written) = agent::read(&mut loader, &found.document, &found.id) {
            agents.push(Loaded { id: found.id, within: found.within, document: found.document, written });
        }
    }
    if let Some(others) = options.connectors {
        connectors.add_missing(others);
    }
    let speaking = speaking(&mut agents, &connectors, options, &mut loader.mistakes);
    let personas = agents.iter().map(|agent| &agent.written.persona);
    let definitions = match loader.mistakes.is_empty() {
        true => Definitions::of_all(personas)
            .map_err(|error| loader.mistakes.push(Diagnostic::new(error.to_string())))
            .ok(),
        false => None,
    };
    match (definitions, root, agents.into_iter().next()) {
        (Some(definitions), Some(id), Some(first)) => Ok(AgentFile {
            id,
            description: first.written.description,
            definitions: Arc::new(definitions),
            limits: first.written.limits,
            connectors: speaking,
            known: connectors,
        }),
        _ => Err(loader.mistakes()),
    }
}

/// Gives every agent the model that speaks for it, and returns those models.
fn speaking(
    agents: &mut [Loaded],
    connectors: &Connectors,
    options: &Options<'_>,
    mistakes: &mut Diagnostics,
) -> BTreeMap<Arc<str>, Connector> {
    let mut speaking: BTreeMap<Arc<str>, Connector> = BTreeMap::new();
    let mut tried: BTreeSet<Arc<str>> = BTreeSet::new();
    for index in 0..agents.len() {
        let part = part(agents, index, connectors);
        let profile: Arc<str> = match &part {
            Part::Connector(name, _) => name.as_str().into(),
            Part::Script(_) => format!("{}-script", agents[index].id).into(),
            Part::Like(other) => agents[*other].written.persona.profile.id.clone(),
            Part::Nobody => {
                let document = &agents[index].document;
                let place = View::new(&document.node, &document.source).place();
                let place = document.node.get("name").map_or(place, |name| name.place(&document.source));
                let message = format!("nothing says which model speaks for `{}`", agents[index].id);
                let help =
                    "name a `connector`, or put a script beside the file (`script.yaml` beside `agent.yaml`)";
                mistakes.push(Diagnostic::new(message).at(place).help(help));
                continue;
            }
        };
        agents[index].written.persona.profile.id = profile.clone();
        if !tried.insert(profile.clone()) {
            continue;
        }
        let connector = match part {
            // What is written wrong is told already.
            Part::Connector(name, _)
                if connectors.place(&name).is_some_and(|place| mistakes.any_within(&place)) =>
            {
                continue;
            }
            Part::Connector(name, place) => connectors.get(&name, place, options.environment),
            Part::Script(path) => {
                let mut wrong = Diagnostics::new();
                connectors::script(&path, None, &mut wrong).map(Connector::Scripted).ok_or(wrong)
            }
            Part::Like(_) | Part::Nobody => continue,
        };
        match connector {
            Ok(connector) => drop(speaking.insert(profile, connector)),
            Err(wrong) => mistakes.extend(wrong),
        }
    }
    speaking
}

/// Who speaks for an agent.
enum Part {
    /// A connector, with the place where it is named.
    Connector(String, Option<Place>),
    /// The script beside its file.
    Script(std::path::PathBuf),
    /// Whoever speaks for another one, which comes before.
    Like(usize),
    Nobody,
}

fn part(agents: &[Loaded], index: usize, connectors: &Connectors) -> Part {
    let agent = &agents[index];
    if let Some((name, place)) = &agent.written.connector {
        return Part::Connector(name.clone(), Some(place.clone()));
    }
    if let Some(within) = &agent.within {
        let owner = agents[..index].iter().position(|other| other.id == *within);
        return Part::Like(owner.unwrap_or(0));
    }
    match agent.document.site.script() {
        Some(path) => Part::Script(path),
        None if index > 0 => Part::Like(0),
        None if connectors.has(USUAL) => Part::Connector(USUAL.to_owned(), None),
        None => Part::Nobody,
    }
}
