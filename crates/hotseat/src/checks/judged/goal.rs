//! `goal`: a goal is achieved.

use crate::checks::calls::cut;

/// What the user wants to have in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Goal {
    /// In words; none for the goal that the case states, before it is known.
    pub text: Option<String>,
}

impl Goal {
    pub(super) fn describe(&self) -> String {
        match &self.text {
            Some(text) => format!("the goal is achieved: {}", cut(text)),
            None => "the stated goal is achieved".to_string(),
        }
    }
}
