//! Whom a case refers to when it wants a helper asked.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A helper, as people refer to it: `agents:ID`, `connectors:NAME`, `scripts:path.function`, or an id alone, which is an
/// agent's.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Reference {
    /// One of the project's agents.
    Agent(String),
    /// A model of the project, asked with a built-in prompt.
    Connector(String),
    /// A function of a script.
    Script(String),
}

impl Reference {
    /// Reads a reference.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(text: &str) -> Result<Reference, String> {
        let (kind, id): (fn(String) -> Reference, &str) = match text.split_once(':') {
            None => (Reference::Agent, text),
            Some(("agents" | "agent", id)) => (Reference::Agent, id),
            Some(("connectors" | "connector", id)) => (Reference::Connector, id),
            Some(("scripts" | "script", id)) => (Reference::Script, id),
            Some((prefix, _)) => {
                return Err(format!(
                    "`{prefix}:` refers to nothing; there are `agents:`, `connectors:` and `scripts:`"
                ));
            }
        };
        match id.trim() {
            "" => Err(format!("`{text}` names nobody")),
            id => Ok(kind(id.to_string())),
        }
    }
}

impl TryFrom<String> for Reference {
    type Error = String;

    fn try_from(text: String) -> Result<Reference, String> {
        Reference::parse(&text)
    }
}

impl From<Reference> for String {
    fn from(reference: Reference) -> String {
        reference.to_string()
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reference::Agent(id) => write!(f, "agents:{id}"),
            Reference::Connector(name) => write!(f, "connectors:{name}"),
            Reference::Script(id) => write!(f, "scripts:{id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read_in_every_form_that_is_documented() {
        let agent = Ok(Reference::Agent("workers.test.sim".to_string()));
        for text in ["workers.test.sim", "agents:workers.test.sim", "agent:workers.test.sim"] {
            assert_eq!(Reference::parse(text), agent, "{text}");
        }
        assert_eq!(Reference::parse("connectors:fast"), Ok(Reference::Connector("fast".to_string())));
        assert_eq!(
            Reference::parse("scripts:tests.validate-expense"),
            Ok(Reference::Script("tests.validate-expense".to_string()))
        );
        for text in ["", "agents:", "agents: ", "agnets:x"] {
            assert!(Reference::parse(text).is_err(), "{text}");
        }
    }
}
