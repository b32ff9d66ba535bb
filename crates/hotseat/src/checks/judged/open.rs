//! `agent`: a judge is told what the test says, as it is.

use serde_json::{Map, Value};

use crate::checks::calls::cut;

/// Whether something is so, in words of the test.
#[derive(Debug, Clone)]
pub struct Open {
    /// What has to be so, usually a sentence.
    pub criteria: Option<Value>,
    /// What else the judge is told: `metadata`, `connector`, and whatever its protocol carries.
    pub options: Map<String, Value>,
}

impl Open {
    pub(super) fn describe(&self) -> String {
        match &self.criteria {
            Some(Value::String(text)) => format!("judged: {}", cut(text)),
            Some(other) => format!("judged: {}", cut(&other.to_string())),
            None => "a judge agrees".to_string(),
        }
    }
}
