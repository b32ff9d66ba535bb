//! The interface between a server and the code that answers its calls.

use std::future::Future;
use std::pin::Pin;

use hotseat_document::json::read_bytes;
use hotseat_schema::JsonSchema;
use hotseat_trace::{json_equal, plain_text};
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use crate::frame::RpcError;
use crate::revision::ProtocolRevision;

/// Maximum number of schema violations in a message.
pub(crate) const MAX_VIOLATIONS: usize = 8;

/// Future of an answer.
pub type AnswerFuture<'a> = Pin<Box<dyn Future<Output = McpAnswer> + Send + 'a>>;

/// Answers the calls of mocked tools in one conversation.
///
/// Calls arrive in parallel. The future is dropped if the client cancels its call or the conversation is closed. It runs on the thread
/// of the servers, so it must not block.
pub trait ToolAnswerer: Send + Sync {
    /// Answers one call.
    fn answer<'a>(&'a self, call: &'a McpCall) -> AnswerFuture<'a>;
}

/// A call of a tool.
#[derive(Debug, Clone)]
pub struct McpCall {
    /// Number of the call in its conversation, from 1, over all servers. Events refer to it.
    pub number: u64,
    /// Number of the call among those of the same tool of the same server, from 1.
    pub tool_number: u64,
    /// Name of the server.
    pub server: String,
    /// Name of the tool.
    pub tool: String,
    /// Arguments, an object.
    pub arguments: Value,
    /// Revision that the client speaks.
    pub revision: ProtocolRevision,
    /// Capabilities of the client, such as `elicitation`.
    pub capabilities: Map<String, Value>,
    /// The client's answers to the input requests of an earlier answer; empty in the first round.
    pub input_responses: Map<String, Value>,
    /// Value of [`InputRequired::state`] of the previous round.
    pub input_state: Option<Value>,
    /// Sends notifications to the client while the call runs.
    pub notifier: CallNotifier,
}

/// Answer to a call.
#[derive(Debug, Clone, PartialEq)]
pub enum McpAnswer {
    /// A result, which may report an error of the tool.
    Result(McpToolResult),
    /// A JSON-RPC error.
    Error(RpcError),
    /// The client must ask its user or its model before the call is completed.
    InputRequired(InputRequired),
    /// The code that answers failed. The client gets a JSON-RPC error, and the server reports an event.
    Failed {
        /// What went wrong.
        message: String,
        /// Details, for example an excerpt of the code.
        detail: Option<String>,
    },
    /// No answer fits the call. The server tells the client so as its definition demands, and reports an event.
    Unmatched {
        /// The nearest answer, and why it does not fit.
        nearest: Option<String>,
    },
}

/// Questions of a tool to the client, by names that the answers refer to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InputRequired {
    /// Requests such as `{"method": "elicitation/create", "params": {…}}`.
    pub requests: Map<String, Value>,
    /// State that the next round receives. The client sees it signed, and cannot change it.
    pub state: Option<Value>,
}

/// Result of a call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct McpToolResult {
    /// Blocks of content.
    pub content: Vec<Value>,
    /// `structuredContent`.
    pub structured: Option<Value>,
    /// Whether the tool reports an error.
    pub is_error: bool,
    /// `_meta` of the result.
    pub meta: Map<String, Value>,
}

/// What is wrong with the result of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidResult(&'static str);

impl McpToolResult {
    /// A result with one block of text.
    pub fn from_text(text: impl Into<String>) -> McpToolResult {
        McpToolResult { content: vec![json!({"type": "text", "text": text.into()})], ..Self::default() }
    }

    /// A result with a JSON value: as `structuredContent`, and as text for clients that read only text.
    pub fn from_value(value: Value) -> McpToolResult {
        match value {
            Value::String(text) => Self::from_text(text),
            value => McpToolResult { structured: Some(value.clone()), ..Self::from_text(value.to_string()) },
        }
    }

    /// An error of the tool.
    pub fn error(text: impl Into<String>) -> McpToolResult {
        McpToolResult { is_error: true, ..Self::from_text(text) }
    }

    /// Returns what clients refuse about the result, by the `outputSchema` of its tool. Errors need no structured content.
    pub fn output_violations(&self, schema: &JsonSchema) -> Vec<String> {
        match &self.structured {
            _ if self.is_error => Vec::new(),
            None => vec!["it has no structured content".to_string()],
            Some(value) => {
                schema.violations(value, MAX_VIOLATIONS).unwrap_or_else(|error| vec![error.to_string()])
            }
        }
    }

    /// Reads the result of `tools/call`. Content that is missing is empty, and members that are null are absent.
    ///
    /// # Errors
    /// What is wrong with a result that violates the protocol. Clients read such results differently.
    pub fn from_json(result: &Value) -> Result<McpToolResult, InvalidResult> {
        let members = result.as_object().ok_or(InvalidResult("it is no object"))?;
        let content = match members.get("content") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(blocks)) if blocks.iter().all(|block| block["type"].is_string()) => {
                blocks.clone()
            }
            Some(_) => return Err(InvalidResult("`content` is no list of objects with a `type`")),
        };
        let is_error = match members.get("isError") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(is_error)) => *is_error,
            Some(_) => return Err(InvalidResult("`isError` is neither true nor false")),
        };
        if members.get("resultType").is_some_and(|kind| !kind.is_null() && kind != "complete") {
            return Err(InvalidResult("its `resultType` is not known"));
        }
        Ok(McpToolResult {
            content,
            structured: members.get("structuredContent").filter(|value| !value.is_null()).cloned(),
            is_error,
            meta: members.get("_meta").and_then(Value::as_object).cloned().unwrap_or_default(),
        })
    }

    /// Writes the result of `tools/call`. `structuredContent` that is no object is omitted for revisions
    /// that allow only objects.
    pub fn to_json(&self, revision: ProtocolRevision) -> Value {
        let mut result = json!({"content": self.content});
        if let Some(structured) = &self.structured
            && (structured.is_object() || revision.is_stateless())
        {
            result["structuredContent"] = structured.clone();
        }
        if self.is_error {
            result["isError"] = Value::Bool(true);
        }
        if !self.meta.is_empty() {
            result["_meta"] = Value::Object(self.meta.clone());
        }
        result
    }

    /// The texts of the content, one per line: those of blocks of text and of embedded resources.
    pub fn text(&self) -> String {
        self.content.iter().filter_map(block_text).collect::<Vec<_>>().join("\n")
    }

    /// The value of the result, with all that its client gets: `structuredContent` if there is one, otherwise the text. Blocks that
    /// neither of them shows are in it as they are: as a list, or as the member `content` of `structuredContent`.
    pub fn value(&self) -> Value {
        let Some(structured) = &self.structured else {
            return match self.content.iter().all(|block| block_text(block).is_some()) {
                true => Value::String(self.text()),
                false => Value::Array(self.content.clone()),
            };
        };
        if self.repeats(structured) {
            return structured.clone();
        }
        let mut value = match structured {
            Value::Object(members) if !members.contains_key("content") => structured.clone(),
            other => json!({"structuredContent": other}),
        };
        value["content"] = Value::Array(self.content.clone());
        value
    }

    /// The text of an error: that of the content, or the [value](Self::value) as JSON if it contains more.
    pub fn error_text(&self) -> String {
        match (self.value(), self.text()) {
            (value, text) if !text.is_empty() && self.structured.as_ref() == Some(&value) => text,
            (value, _) => plain_text(&value),
        }
    }

    /// Whether the blocks contain no more than a value: its JSON, or that of its only member, which servers add to values that are no
    /// objects. A list may have a block for each entry.
    fn repeats(&self, structured: &Value) -> bool {
        let is_same = |(block, value): (&Value, &Value)| match (block_text(block), value) {
            (Some(text), Value::String(value)) => text == value,
            (Some(text), value) => read_bytes(text.as_bytes()).is_ok_and(|read| json_equal(&read, value)),
            (None, _) => false,
        };
        let wrapped = structured.as_object().filter(|members| members.len() == 1);
        let wrapped = wrapped.and_then(|members| members.values().next());
        [Some(structured), wrapped].into_iter().flatten().any(|value| {
            match (self.content.as_slice(), value) {
                ([], _) => true,
                ([block], value) if is_same((block, value)) => true,
                (blocks, Value::Array(entries)) if blocks.len() == entries.len() => {
                    blocks.iter().zip(entries).all(is_same)
                }
                _ => false,
            }
        })
    }
}

/// Returns the text of a block of text or of an embedded resource. `None` for all other blocks.
fn block_text(block: &Value) -> Option<&str> {
    match block["type"].as_str()? {
        "text" => block["text"].as_str(),
        "resource" => block["resource"]["text"].as_str(),
        _ => None,
    }
}

/// Sends notifications to the client of a running call. Clones send to the same client.
#[derive(Debug, Clone)]
pub struct CallNotifier {
    pub(crate) sender: Option<tokio::sync::mpsc::Sender<Value>>,
    pub(crate) progress_token: Option<Value>,
    pub(crate) min_log_level: Option<usize>,
    pub(crate) changes: ListChanges,
}

/// Versions of the lists of a server, observed by the clients that listen for changes.
#[derive(Debug, Clone)]
pub(crate) struct ListChanges {
    pub(crate) tools: watch::Sender<u64>,
    pub(crate) prompts: watch::Sender<u64>,
    pub(crate) resources: watch::Sender<u64>,
}

/// Receivers of the changes of all lists.
pub(crate) struct ListChangeReceivers {
    pub(crate) tools: watch::Receiver<u64>,
    pub(crate) prompts: watch::Receiver<u64>,
    pub(crate) resources: watch::Receiver<u64>,
}

impl ListChanges {
    /// Receives the changes from now on.
    pub(crate) fn subscribe(&self) -> ListChangeReceivers {
        ListChangeReceivers {
            tools: self.tools.subscribe(),
            prompts: self.prompts.subscribe(),
            resources: self.resources.subscribe(),
        }
    }

    pub(crate) fn new() -> ListChanges {
        let version = || watch::Sender::new(0);
        ListChanges { tools: version(), prompts: version(), resources: version() }
    }
}

/// Levels of log messages, the least severe first.
pub(crate) const LOG_LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

impl CallNotifier {
    /// Reports progress, if the client asked for it.
    pub async fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let Some(token) = &self.progress_token else { return };
        let mut params = json!({"progressToken": token, "progress": progress});
        if let Some(total) = total {
            params["total"] = json!(total);
        }
        if let Some(message) = message {
            params["message"] = json!(message);
        }
        self.send("notifications/progress", params).await;
    }

    /// Sends a log message, if the client wants messages of this level.
    pub async fn log(&self, level: &str, data: Value) {
        let wanted = LOG_LEVELS.iter().position(|known| *known == level).zip(self.min_log_level);
        if wanted.is_some_and(|(level, min)| level >= min) {
            self.send("notifications/message", json!({"level": level, "data": data})).await;
        }
    }

    /// Notifies all clients that listen for changes of a list: `tools`, `prompts` or `resources`.
    pub fn report_change(&self, list: &str) {
        let versions = match list {
            "tools" => &self.changes.tools,
            "prompts" => &self.changes.prompts,
            "resources" => &self.changes.resources,
            _ => return,
        };
        versions.send_modify(|version| *version += 1);
    }

    async fn send(&self, method: &str, params: Value) {
        if let Some(sender) = &self.sender {
            // Clients that disconnected get no notifications.
            let _ = sender.send(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
        }
    }
}
