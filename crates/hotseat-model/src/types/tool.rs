//! Tools, their calls and results.

use hotseat_document::json::{JsonReadError, read_value, replace_surrogates};
use hotseat_trace::optional_members;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

optional_members! {
    /// A tool that a model may call.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct ModelTool {
        /// Name of the tool: for most providers letters, digits, `_` and `-`, at most 64.
        pub name: String,
        /// Description for the model.
        pub description?: String,
        /// JSON Schema of the arguments.
        pub input_schema: Value,
    }

    /// A tool call requested by a model.
    #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct ModelToolCall {
        /// Id of the call, to which the result refers.
        pub id: String,
        /// Name of the tool.
        pub name: String,
        /// The arguments: an object, `{}` if the model gave none. Invalid JSON is kept as a string, which no tool
        /// schema accepts.
        pub arguments: Value,
        /// Id that the provider gave the call. `id` may be replaced by one that is unique in a trace.
        pub provider_id?: Option<String>,
        /// Members that only the provider understands, sent back to it with the call.
        pub extra?: Map<String, Value>,
    }

    /// A tool result.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct ModelToolResult {
        /// Id of the call.
        pub call_id: String,
        /// Name of the tool.
        pub name: String,
        /// The result. Strings are sent unchanged, other values as JSON.
        pub content: Value,
        /// True if the tool failed; `content` then holds the error.
        pub is_error?: bool,
    }
}

impl ModelToolCall {
    /// Returns the arguments as a model writes them: JSON, or the original text if it was not JSON.
    pub fn arguments_text(&self) -> String {
        match &self.arguments {
            Value::String(text) if !text.trim().is_empty() && read_value(text).is_err() => text.clone(),
            arguments => arguments.to_string(),
        }
    }
}

/// Reads the arguments of a tool call as models and agents write them. An empty text and `null` are an empty object, and a lone
/// surrogate becomes U+FFFD.
///
/// # Errors
/// If the text is not one JSON value, or repeats a key.
pub fn read_arguments(text: &str) -> Result<Value, JsonReadError> {
    let arguments = match text.trim().is_empty() {
        true => Value::Null,
        false => read_value(&replace_surrogates(text))?,
    };
    Ok(if arguments.is_null() { Value::Object(Map::new()) } else { arguments })
}

/// Reads arguments as [`read_arguments`] does. Invalid JSON stays a string.
pub(crate) fn parse_arguments(text: String) -> Value {
    read_arguments(&text).unwrap_or(Value::String(text))
}

impl ModelToolResult {
    /// Returns the content as sent: strings unchanged, other values as JSON.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        match &self.content {
            Value::String(text) => text.into(),
            content => content.to_string().into(),
        }
    }
}
