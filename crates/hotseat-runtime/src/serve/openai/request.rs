//! Requests of chat completions.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use hotseat_model::ModelTool;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::client::{
    RequestError, check_user_text, client_tool, content_string, nullable, parse_body, parse_member,
    repeated_result,
};
use crate::conversation::ContextEntry;

/// Validated request.
#[derive(Debug, Clone, PartialEq)]
pub struct CompletionRequest {
    /// The agent, given as a model name.
    pub model: String,
    /// The history, oldest message first; at least one message.
    pub messages: Vec<CompletionMessage>,
    /// Context of the client: its instructions.
    pub context: Vec<ContextEntry>,
    /// Tools that the client executes.
    pub tools: Vec<ModelTool>,
    /// Use of the tools that the client executes.
    pub tool_choice: ToolChoice,
    /// Name of the user.
    pub user: String,
    /// True if the answer is streamed.
    pub stream: bool,
    /// True if the last chunk contains the usage.
    pub include_usage: bool,
    /// True if calls of the agent's own tools are included.
    pub show_tools: bool,
}

/// Use of the tools that the client executes, in one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolChoice {
    /// The agent selects tools.
    Auto,
    /// No tool is called: calls are declined.
    None,
}

/// Message of the history, by role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompletionMessage {
    /// Message of the user.
    User(String),
    /// Message of the agent with its calls.
    Assistant {
        /// Text of the message.
        text: String,
        /// Its calls.
        calls: Vec<HistoryCall>,
    },
    /// Answer of a client tool.
    Tool {
        /// The id of the call.
        call: String,
        /// Content of the answer.
        content: String,
    },
}

/// Tool call of the agent in the history. Its id identifies it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(expecting = "an object")]
pub struct HistoryCall {
    /// The id of the call.
    pub id: String,
    /// Name of the tool and arguments, as the client has them.
    #[serde(default)]
    pub function: Value,
}

impl HistoryCall {
    /// Returns the call as member of a message.
    pub fn to_json(&self) -> Value {
        json!({"id": self.id, "type": "function", "function": self.function})
    }
}

impl Hash for HistoryCall {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

/// Of the agent's text, only what is not whitespace counts: a client that was shown calls separates the text before and after a
/// result in its own way.
impl Hash for CompletionMessage {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            CompletionMessage::User(text) => (0u8, text).hash(state),
            CompletionMessage::Assistant { text, calls } => {
                (1u8, text.split_whitespace().collect::<String>(), calls).hash(state);
            }
            CompletionMessage::Tool { call, content } => (2u8, call, content).hash(state),
        }
    }
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct WireCompletionRequest {
    model: String,
    messages: Vec<Value>,
    #[serde(default, deserialize_with = "nullable")]
    tools: Vec<Value>,
    #[serde(default)]
    tool_choice: Value,
    #[serde(default)]
    response_format: Value,
    #[serde(default)]
    functions: Value,
    n: Option<u64>,
    #[serde(default, deserialize_with = "nullable")]
    logprobs: bool,
    modalities: Option<Vec<String>>,
    user: Option<String>,
    #[serde(default, deserialize_with = "nullable")]
    stream: bool,
    #[serde(default, deserialize_with = "nullable")]
    stream_options: WireStreamOptions,
    /// Extension of the protocol: include calls of the agent's own tools and their results.
    #[serde(default, deserialize_with = "nullable")]
    show_tools: bool,
}

#[derive(Default, Deserialize)]
#[serde(expecting = "an object")]
struct WireStreamOptions {
    #[serde(default, deserialize_with = "nullable")]
    include_usage: bool,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct WireHistoryMessage {
    role: String,
    #[serde(default)]
    content: Value,
    #[serde(default, deserialize_with = "nullable")]
    tool_calls: Vec<HistoryCall>,
    tool_call_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct WireChatTool {
    r#type: String,
    function: Option<Value>,
}

/// Parses the body of a request.
///
/// # Errors
/// If it is malformed or asks for something that the agent does not support.
pub fn parse_request(body: &[u8]) -> Result<CompletionRequest, RequestError> {
    let value = parse_body(body)?;
    let written: WireCompletionRequest = parse_member("", value)?;
    reject_unsupported(&written)?;
    let mut context = Vec::new();
    let mut messages = Vec::new();
    // The calls of the agent, each with its result once it has one.
    let mut made_calls: HashMap<String, Option<String>> = HashMap::new();
    let mut last_place = 0;
    for (place, value) in written.messages.into_iter().enumerate() {
        let at = format!("messages[{place}]");
        let message: WireHistoryMessage = parse_member(&at, value)?;
        let content = content_string(&at, &message.content)?;
        if message.role == "user" {
            last_place = place;
        }
        messages.push(match message.role.as_str() {
            "user" => CompletionMessage::User(content),
            "assistant" => {
                let calls = message.tool_calls;
                made_calls.extend(calls.iter().map(|call| (call.id.clone(), None)));
                CompletionMessage::Assistant { text: content, calls }
            }
            "tool" => {
                let Some(call) = message.tool_call_id else {
                    let at = format!("{at}.tool_call_id");
                    return Err(RequestError::bad_request(at, "a tool message needs `tool_call_id`"));
                };
                if !add_result(&mut made_calls, &at, &call, &content)? {
                    continue;
                }
                CompletionMessage::Tool { call, content }
            }
            "system" | "developer" => {
                context.push(ContextEntry::instructions(content));
                continue;
            }
            other => {
                let message =
                    format!("unknown role {other:?}; expected user, assistant, tool, system or developer");
                return Err(RequestError::bad_request(format!("{at}.role"), message));
            }
        });
    }
    if !matches!(messages.last(), Some(CompletionMessage::User(_) | CompletionMessage::Tool { .. })) {
        return Err(RequestError::bad_request(
            "messages",
            "the last message must have the role user or tool",
        ));
    }
    if let Some(CompletionMessage::User(text)) = messages.last() {
        check_user_text(&format!("messages[{last_place}].content"), text)?;
    }
    let tool_choice = if written.tool_choice == "none" { ToolChoice::None } else { ToolChoice::Auto };
    let mut tools = Vec::new();
    for (index, value) in written.tools.into_iter().enumerate() {
        let at = format!("tools[{index}]");
        let WireChatTool { r#type, function } = parse_member(&at, value)?;
        let (Some(function), "function") = (function, r#type.as_str()) else {
            return Err(RequestError::bad_request(
                at,
                format!("tools must be of type `function`, got {:?}", r#type),
            ));
        };
        tools.push(client_tool(&format!("{at}.function"), function)?);
    }
    Ok(CompletionRequest {
        model: written.model,
        messages,
        context,
        tools,
        tool_choice,
        user: written.user.filter(|user| !user.is_empty()).unwrap_or_else(|| "user".to_string()),
        stream: written.stream,
        include_usage: written.stream_options.include_usage,
        show_tools: written.show_tools,
    })
}

/// Adds a result to its call. Returns false if the call has just this result already.
fn add_result(
    made_calls: &mut HashMap<String, Option<String>>,
    at: &str,
    call: &str,
    content: &str,
) -> Result<bool, RequestError> {
    let problem = match made_calls.get_mut(call) {
        Some(result @ None) => {
            *result = Some(content.to_string());
            return Ok(true);
        }
        Some(Some(known)) if known == content => return Ok(false),
        Some(Some(_)) => repeated_result(at, call),
        // A request has the whole history, also after a restart.
        None => format!("{at}: no assistant message before it has the tool call {call:?}"),
    };
    Err(RequestError::bad_request(format!("{at}.tool_call_id"), problem))
}

/// Rejects options that would change the answer and are not supported. Model settings such as the temperature
/// belong to the agent and are ignored.
fn reject_unsupported(written: &WireCompletionRequest) -> Result<(), RequestError> {
    let free = |value: &Value| value.is_null() || *value == "auto" || *value == "none";
    if written.n.is_some_and(|n| n != 1) {
        return Err(RequestError::bad_request("n", "an agent returns one answer: `n` must be 1"));
    }
    if !free(&written.tool_choice) {
        let message = "the agent selects its own tools: `tool_choice` must be `auto` or `none`";
        return Err(RequestError::bad_request("tool_choice", message));
    }
    if !written.response_format.is_null() && written.response_format["type"] != "text" {
        let message = "the agent answers in text: `response_format` must be of type `text`";
        return Err(RequestError::bad_request("response_format", message));
    }
    if !written.functions.is_null() {
        return Err(RequestError::bad_request("functions", "`functions` is not supported; use `tools`"));
    }
    if written.show_tools && !written.stream {
        let message =
            "calls of the agent's own tools are only streamed: `show_tools` requires `stream: true`";
        return Err(RequestError::bad_request("show_tools", message));
    }
    if written.logprobs {
        return Err(RequestError::bad_request("logprobs", "log probabilities are not supported"));
    }
    if written.modalities.iter().flatten().any(|kind| kind != "text") {
        return Err(RequestError::bad_request("modalities", "the agent answers in text only"));
    }
    Ok(())
}
