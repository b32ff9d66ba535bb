//! `intent`: the agent pursues an intent.

use crate::call_text::truncate;

/// Intent that the agent pursues with its words and actions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentIntent {
    /// Name of the intent, if any.
    pub name: Option<String>,
    /// Description of the intent.
    pub text: String,
}

impl AgentIntent {
    /// Creates an intent from its name: `gather_requirements` becomes "gather requirements".
    pub fn from_name(name: &str) -> AgentIntent {
        AgentIntent { name: Some(name.to_string()), text: name.replace('_', " ") }
    }

    pub(super) fn describe(&self) -> String {
        format!("the agent's intent to be: {}", truncate(&self.text))
    }
}
