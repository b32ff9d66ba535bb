//! Tool definitions in a request.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool that a model may call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelTool {
    /// Name of the tool: for most providers letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// Description for the model.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
}
