//! Which agent a case tests, where it names one.

use std::collections::BTreeMap;

use super::case::Inherited;
use hotseat_document::{Diagnostic, Place, View, nearest};

/// What cases inherit from the agents of a project, by the names of these.
pub type AgentsByName = BTreeMap<String, Inherited>;

/// The name of an agent of the project file, as a case or the head of a suite writes it.
#[derive(Debug, Clone)]
pub struct AgentName {
    /// The name.
    pub name: String,
    /// Where it is written.
    pub place: Place,
}

impl AgentName {
    /// Reads the name under a key.
    pub(super) fn read(view: View<'_>) -> Option<AgentName> {
        Some(AgentName { name: view.text()?.to_string(), place: view.place() })
    }

    /// What a case inherits from the agent of this name.
    ///
    /// # Errors
    /// When the project has no such agent.
    pub(super) fn inherited<'a>(&self, agents: &'a AgentsByName) -> Result<&'a Inherited, Diagnostic> {
        let found = agents.get(&self.name);
        found.ok_or_else(|| {
            no_such_agent(&self.name, agents.keys().map(String::as_str)).at(self.place.clone())
        })
    }

    /// Whether a variable of a hook stands in it, which is known only when the agent must have been reached.
    pub(super) fn is_open(&self) -> bool {
        self.name.contains("${")
    }
}

/// The mistake of naming an agent that the project does not have.
pub fn no_such_agent<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Diagnostic {
    let known: Vec<&str> = known.collect();
    let help = match (nearest(name, known.iter().copied()), known.as_slice()) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, []) => "the project file names agents under `agents:`, and this one names none".to_string(),
        (None, known) => format!("there are {}", known.join(", ")),
    };
    Diagnostic::new(format!("no agent is called `{name}`")).help(help)
}
