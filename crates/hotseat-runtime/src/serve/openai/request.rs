//! What a client of chat completions asks for.

use hotseat_model::Tool;
use serde::Deserialize;
use serde::de::Deserializer;
use serde_json::Value;

use super::super::ag_ui::{member, offered, text};
use super::super::refusal::Refusal;
use crate::conversation::ContextEntry;

/// A request, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The agent, by the name of a model.
    pub model: String,
    /// What was said so far, oldest first; at least one message.
    pub messages: Vec<Said>,
    /// What the client knows of its situation: its instructions.
    pub context: Vec<ContextEntry>,
    /// The tools that it carries out.
    pub tools: Vec<Tool>,
    /// Who speaks.
    pub user: String,
    /// Whether the answer is wanted in pieces.
    pub stream: bool,
    /// Whether the last piece is to hold the usage.
    pub include_usage: bool,
    /// Whether the agent's own tools are told of, too.
    pub show_tools: bool,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Said {
    /// The user said something.
    User(String),
    /// The agent said something, and made these calls.
    Assistant {
        /// The words.
        text: String,
        /// The ids of the calls.
        calls: Vec<String>,
    },
    /// A tool of the client answered.
    Tool {
        /// The call.
        call: String,
        /// What.
        content: String,
    },
}

#[derive(Deserialize)]
struct Written {
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
    #[serde(default)]
    n: Option<u64>,
    #[serde(default, deserialize_with = "nullable")]
    logprobs: bool,
    #[serde(default)]
    modalities: Option<Vec<String>>,
    #[serde(default)]
    user: Option<String>,
    #[serde(default, deserialize_with = "nullable")]
    stream: bool,
    #[serde(default, deserialize_with = "nullable")]
    stream_options: StreamOptions,
    /// Not of the protocol: whether the calls of the agent's own tools, and what they returned, are told.
    #[serde(default, deserialize_with = "nullable")]
    show_tools: bool,
}

#[derive(Default, Deserialize)]
struct StreamOptions {
    #[serde(default, deserialize_with = "nullable")]
    include_usage: bool,
}

#[derive(Deserialize)]
struct WrittenMessage {
    role: String,
    #[serde(default)]
    content: Value,
    #[serde(default, deserialize_with = "nullable")]
    tool_calls: Vec<WrittenCall>,
    #[serde(default)]
    tool_call_id: Option<String>,
}

#[derive(Deserialize)]
struct WrittenCall {
    id: String,
}

#[derive(Deserialize)]
struct WrittenTool {
    r#type: String,
    #[serde(default)]
    function: Option<Function>,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    #[serde(default, deserialize_with = "nullable")]
    description: String,
    #[serde(default)]
    parameters: Value,
}

/// Reads a member that may be absent or `null` as its default.
fn nullable<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(input: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(input)?.unwrap_or_default())
}

/// Reads the body of a request.
///
/// # Errors
/// When it is no such request, or asks for something that the agent cannot do.
pub fn read(body: &[u8]) -> Result<Asked, Refusal> {
    let value: Value = serde_json::from_slice(body)
        .map_err(|error| Refusal::bad("body", format!("the body is not JSON: {error}")))?;
    let written: Written = member("body", value)?;
    refuse_what_is_not_done(&written)?;
    let mut context = Vec::new();
    let mut messages = Vec::new();
    for (place, value) in written.messages.into_iter().enumerate() {
        let at = format!("messages[{place}]");
        let message: WrittenMessage = member(&at, value)?;
        let content = text(&at, &message.content)?;
        messages.push(match message.role.as_str() {
            "user" => Said::User(content),
            "assistant" => {
                let calls = message.tool_calls.into_iter().map(|call| call.id).collect();
                Said::Assistant { text: content, calls }
            }
            "tool" => {
                let Some(call) = message.tool_call_id else {
                    return Err(Refusal::bad(at, "a tool message needs `tool_call_id`"));
                };
                Said::Tool { call, content }
            }
            "system" | "developer" => {
                context.push(ContextEntry::instructions(content));
                continue;
            }
            other => {
                let message = format!(
                    "there is no role {other:?}; roles are user, assistant, tool, system and developer"
                );
                return Err(Refusal::bad(format!("{at}.role"), message));
            }
        });
    }
    if !matches!(messages.last(), Some(Said::User(_) | Said::Tool { .. })) {
        return Err(Refusal::bad("messages", "the last message must be one of the user or of a tool"));
    }
    let mut tools = Vec::new();
    // With `none` the agent is not to call them.
    let wanted = if written.tool_choice == "none" { Vec::new() } else { written.tools };
    for (index, value) in wanted.into_iter().enumerate() {
        let at = format!("tools[{index}]");
        let WrittenTool { r#type, function } = member(&at, value)?;
        let (Some(function), "function") = (function, r#type.as_str()) else {
            return Err(Refusal::bad(
                at,
                format!("tools are of type function, and this one is {:?}", r#type),
            ));
        };
        tools.push(offered(&at, function.name, function.description, function.parameters)?);
    }
    Ok(Asked {
        model: written.model,
        messages,
        context,
        tools,
        user: written.user.filter(|user| !user.is_empty()).unwrap_or_else(|| "user".to_string()),
        stream: written.stream,
        include_usage: written.stream_options.include_usage,
        show_tools: written.show_tools,
    })
}

/// Refuses what would change the answer and is not done here. How the model is set up, its temperature for instance,
/// belongs to the agent, and requests do not change it.
fn refuse_what_is_not_done(written: &Written) -> Result<(), Refusal> {
    let free = |value: &Value| value.is_null() || *value == "auto" || *value == "none";
    if written.n.is_some_and(|n| n != 1) {
        return Err(Refusal::bad("n", "an agent gives one answer: `n` must be 1"));
    }
    if !free(&written.tool_choice) {
        let message = "the agent chooses its tools by itself: `tool_choice` must be `auto` or `none`";
        return Err(Refusal::bad("tool_choice", message));
    }
    if !written.response_format.is_null() && written.response_format["type"] != "text" {
        let message = "the agent answers in words: `response_format` must be of type `text`";
        return Err(Refusal::bad("response_format", message));
    }
    if !written.functions.is_null() {
        return Err(Refusal::bad("functions", "`functions` is not understood; use `tools`"));
    }
    if written.show_tools && !written.stream {
        let message =
            "what the agent's own tools do is told as it happens: `show_tools` needs `stream: true`";
        return Err(Refusal::bad("show_tools", message));
    }
    if written.logprobs {
        return Err(Refusal::bad("logprobs", "the agent has no log probabilities to tell"));
    }
    if written.modalities.iter().flatten().any(|kind| kind != "text") {
        return Err(Refusal::bad("modalities", "the agent answers in text only"));
    }
    Ok(())
}
