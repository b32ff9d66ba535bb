//! `intent`: the agent pursues an intent.

use crate::checks::calls::cut;

/// What the agent is after with what it says and does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intent {
    /// Its name, where it has one.
    pub name: Option<String>,
    /// What it is, in words.
    pub text: String,
}

impl Intent {
    /// An intent that says what it is: `gather_requirements` is to gather requirements.
    pub fn named(name: &str) -> Intent {
        Intent { name: Some(name.to_string()), text: name.replace('_', " ") }
    }

    pub(super) fn describe(&self) -> String {
        format!("the agent's intent is: {}", cut(&self.text))
    }
}
