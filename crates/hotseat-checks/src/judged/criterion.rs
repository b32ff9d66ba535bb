//! `satisfy`: the response of the agent satisfies a criterion.

use std::sync::Arc;

use crate::call_text::truncate;

/// Criterion for responses of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseCriterion {
    /// Name of the criterion; `None` if it is a sentence inside one assertion.
    pub name: Option<Arc<str>>,
    /// Requirement that the response must meet.
    pub text: String,
    /// Example responses with their known judgement.
    pub examples: Vec<CriterionExample>,
}

/// Example response with its known judgement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CriterionExample {
    /// Text of the response.
    pub text: String,
    /// Judgement that the response illustrates.
    pub quality: ExampleQuality,
    /// Reason for the judgement.
    pub explanation: String,
}

/// Judgement that an example illustrates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExampleQuality {
    /// The response satisfies the criterion.
    Good,
    /// The response does not satisfy the criterion.
    Bad,
    /// The response is a borderline case.
    Edge {
        /// True if the borderline case satisfies the criterion.
        satisfied: bool,
    },
}

impl ResponseCriterion {
    /// Creates a criterion without a name from a sentence.
    pub fn from_sentence(text: impl Into<String>) -> ResponseCriterion {
        ResponseCriterion { name: None, text: text.into(), examples: Vec::new() }
    }

    pub(super) fn describe(&self) -> String {
        match &self.name {
            Some(name) => format!("the agent to satisfy {name}: {}", truncate(&self.text)),
            None => format!("the agent to satisfy: {}", truncate(&self.text)),
        }
    }
}
