//! What a model is told about a tool.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool that a model may call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// The name: for most providers letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// What it does and when to use it, in words for the model.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The JSON Schema of the arguments.
    pub input_schema: Value,
}
