//! References to roles in case files.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Reference to the backend of a role: `agents:ID`, `connectors:NAME`, `scripts:path.function`, or a bare
/// agent id.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum RoleReference {
    /// An agent of the project.
    Agent(String),
    /// A model of the project, used with a built-in prompt.
    Connector(String),
    /// A script function.
    Script(String),
}

/// An invalid reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say the same")]
pub enum RoleReferenceError {
    #[error("`{0}:` is not a known prefix; use `agents:`, `connectors:` or `scripts:`")]
    UnknownPrefix(String),
    #[error("`{0}` does not name an agent, connector or script")]
    NoName(String),
}

impl RoleReference {
    /// Parses a reference.
    ///
    /// # Errors
    /// If the prefix is unknown or the name is missing.
    pub fn parse(text: &str) -> Result<RoleReference, RoleReferenceError> {
        let (kind, id): (fn(String) -> RoleReference, &str) = match text.split_once(':') {
            None => (RoleReference::Agent, text),
            Some(("agents" | "agent", id)) => (RoleReference::Agent, id),
            Some(("connectors" | "connector", id)) => (RoleReference::Connector, id),
            Some(("scripts" | "script", id)) => (RoleReference::Script, id),
            Some((prefix, _)) => return Err(RoleReferenceError::UnknownPrefix(prefix.to_string())),
        };
        match id.trim() {
            "" => Err(RoleReferenceError::NoName(text.to_string())),
            id => Ok(kind(id.to_string())),
        }
    }
}

impl TryFrom<String> for RoleReference {
    type Error = RoleReferenceError;

    fn try_from(text: String) -> Result<RoleReference, RoleReferenceError> {
        RoleReference::parse(&text)
    }
}

impl From<RoleReference> for String {
    fn from(reference: RoleReference) -> String {
        reference.to_string()
    }
}

impl fmt::Display for RoleReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RoleReference::Agent(id) => write!(f, "agents:{id}"),
            RoleReference::Connector(name) => write!(f, "connectors:{name}"),
            RoleReference::Script(id) => write!(f, "scripts:{id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_all_documented_forms() {
        let agent = Ok(RoleReference::Agent("workers.test.sim".to_string()));
        for text in ["workers.test.sim", "agents:workers.test.sim", "agent:workers.test.sim"] {
            assert_eq!(RoleReference::parse(text), agent, "{text}");
        }
        assert_eq!(RoleReference::parse("connectors:fast"), Ok(RoleReference::Connector("fast".to_string())));
        assert_eq!(
            RoleReference::parse("scripts:tests.validate-expense"),
            Ok(RoleReference::Script("tests.validate-expense".to_string()))
        );
        for text in ["", "agents:", "agents: ", "agnets:x"] {
            assert!(RoleReference::parse(text).is_err(), "{text}");
        }
    }
}
