//! `agent`: another agent judges.
//!
//! Such a check is data like all others, but it does not decide by itself: a session asks the judge and takes the
//! judgement for the verdict. What nobody has judged holds neither way.

use serde_json::{Map, Value};

use super::calls::cut;
use super::{Decided, Reference};

/// What a judge is asked.
#[derive(Debug, Clone)]
pub struct Judged {
    /// Who judges; none where the project says it.
    pub judge: Option<Reference>,
    /// What has to be so, usually a sentence.
    pub criteria: Option<Value>,
    /// What else the judge is told: `metadata`, `connector`, and whatever its protocol carries.
    pub options: Map<String, Value>,
}

impl Judged {
    /// What is asserted, in words.
    pub fn describe(&self) -> String {
        match &self.criteria {
            Some(Value::String(text)) => format!("judged: {}", cut(text)),
            Some(other) => format!("judged: {}", cut(&other.to_string())),
            None => "a judge agrees".to_string(),
        }
    }

    pub(super) fn decide() -> Decided {
        Decided::nothing("no judge was asked".to_string())
    }
}
