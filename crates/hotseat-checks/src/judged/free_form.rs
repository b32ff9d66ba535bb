//! `agent`: the judge receives the text of the test unchanged.

use serde_json::{Map, Value};

use crate::call_text::truncate;

/// Free-form criterion in the words of the test.
#[derive(Debug, Clone)]
pub struct FreeFormCriterion {
    /// The criterion, usually a sentence.
    pub criteria: Option<Value>,
    /// Other values for the judge: `metadata`, `connector`, and any member that its protocol supports.
    pub options: Map<String, Value>,
}

impl FreeFormCriterion {
    pub(super) fn describe(&self) -> String {
        match &self.criteria {
            Some(Value::String(text)) => format!("the judge to agree: {}", truncate(text)),
            Some(other) => format!("the judge to agree: {}", truncate(&other.to_string())),
            None => "the judge to agree".to_string(),
        }
    }
}
