//! `satisfy`: what the agent said satisfies a criterion.

use std::sync::Arc;

use crate::checks::calls::cut;

/// A standard that what the agent says is measured by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Criterion {
    /// What it is called; none where it is a sentence of one assertion.
    pub name: Option<Arc<str>>,
    /// What has to be so.
    pub text: String,
    /// Responses of which it is known how they are judged.
    pub examples: Vec<Example>,
}

/// A response of which it is known how it is judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// What an agent says.
    pub text: String,
    /// What it is an example of.
    pub quality: Quality,
    /// Why it is judged so.
    pub explanation: String,
}

/// What something is an example of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quality {
    /// It satisfies the criterion.
    Good,
    /// It does not.
    Bad,
    /// It is not plain to see whether it does.
    Edge {
        /// Whether it does.
        satisfied: bool,
    },
}

impl Criterion {
    /// A criterion that is a sentence.
    pub fn sentence(text: impl Into<String>) -> Criterion {
        Criterion { name: None, text: text.into(), examples: Vec::new() }
    }

    pub(super) fn describe(&self) -> String {
        match &self.name {
            Some(name) => format!("satisfies {name}: {}", cut(&self.text)),
            None => format!("satisfies: {}", cut(&self.text)),
        }
    }
}
