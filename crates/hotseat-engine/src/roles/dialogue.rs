//! A conversation as presented to roles.

use std::collections::HashMap;

use hotseat_model::ModelMessage;
use hotseat_trace::{AgentToolCall, ConversationTurn, TracedConversation, TurnItem};
use serde_json::{Map, Value, json};

use hotseat_targets::message::{
    ContentPart, ConversationMessage, MessageCall, MessageRole as Speaker, joined_text,
};
use hotseat_targets::target::template::call_json;

/// The messages and tool calls so far.
#[derive(Debug, Clone, Copy)]
pub struct Dialogue<'a> {
    /// Messages before the first turn.
    pub opening: &'a [ConversationMessage],
    /// The turns.
    pub turns: &'a [ConversationTurn],
}

impl<'a> Dialogue<'a> {
    /// Creates the dialogue of a whole conversation.
    pub fn new(opening: &'a [ConversationMessage], conversation: &'a TracedConversation) -> Self {
        Dialogue { opening, turns: &conversation.turns }
    }

    /// Converts the dialogue to messages of the chat completions format.
    pub fn to_json(self) -> Vec<Value> {
        self.to_messages().iter().map(message_json).collect()
    }

    /// Converts the dialogue to messages: user input, tool calls with results, and agent messages.
    pub fn to_messages(self) -> Vec<ConversationMessage> {
        let mut messages = self.opening.to_vec();
        for turn in self.turns {
            messages.extend(turn.user.iter().map(|text| text_message(Speaker::User, text)));
            for item in turn.items() {
                match item {
                    TurnItem::Message(message) => {
                        messages.push(text_message(Speaker::Assistant, &message.content));
                    }
                    TurnItem::Call(call) => messages.extend(call_messages(call)),
                }
            }
        }
        messages
    }

    /// Last answer of the agent.
    pub fn last_response(self) -> &'a str {
        self.turns.last().and_then(|turn| turn.answer()).unwrap_or_default()
    }

    /// Results of the tools of the last turn, by tool name.
    pub fn tool_results(self) -> Map<String, Value> {
        let calls = self.turns.last().into_iter().flat_map(|turn| &turn.tool_calls);
        let results = calls.filter_map(|call| Some((call.name.to_string(), call.result.as_ref()?)));
        results
            .map(|(name, result)| match result.failed {
                true => (name, json!({"error": result.value})),
                false => (name, result.value.clone()),
            })
            .collect()
    }
}

/// Converts a conversation to messages for a model that plays a part in it. The model has no tools, and servers refuse calls
/// of tools that a request does not define, so calls and results are told in words.
pub(super) fn model_messages(history: &[ConversationMessage]) -> Vec<ModelMessage> {
    let mut messages = Vec::new();
    for (message, tool) in with_tools(history) {
        let text = joined_text(&message.content);
        match message.role {
            Speaker::User => messages.push(ModelMessage::user(text)),
            Speaker::System | Speaker::Developer => messages.push(ModelMessage::notice(text)),
            Speaker::Assistant => {
                if !text.is_empty() {
                    messages.push(ModelMessage::Assistant {
                        text,
                        tool_calls: Vec::new(),
                        provider_parts: None,
                    });
                }
                for call in &message.tool_calls {
                    let told = format!("The agent called the tool `{}` with {}", call.name, call.arguments);
                    messages.push(ModelMessage::notice(told));
                }
            }
            Speaker::Tool => {
                messages.push(ModelMessage::notice(format!("The tool `{tool}` returned {text}")));
            }
        }
    }
    messages
}

/// Messages, each with the name of the tool whose result it is; empty if it is none. Results name the id of their call, and
/// seldom the tool.
pub(super) fn with_tools(
    messages: &[ConversationMessage],
) -> impl Iterator<Item = (&ConversationMessage, &str)> {
    let mut names: HashMap<&str, &str> = HashMap::new();
    messages.iter().map(move |message| {
        names.extend(message.tool_calls.iter().map(|call| (&*call.id, &*call.name)));
        let of_call = message.tool_call_id.as_deref().and_then(|id| names.get(id).copied());
        (message, message.name.as_deref().or(of_call).unwrap_or_default())
    })
}

/// A call, and its result if there is one.
fn call_messages(call: &AgentToolCall) -> impl Iterator<Item = ConversationMessage> {
    let asked = ConversationMessage {
        tool_calls: vec![MessageCall {
            id: call.id.to_string(),
            name: call.name.to_string(),
            arguments: call.arguments.to_string(),
        }],
        ..text_message(Speaker::Assistant, "")
    };
    let answered = call.result.as_ref().map(|result| ConversationMessage {
        tool_call_id: Some(call.id.to_string()),
        name: Some(call.name.to_string()),
        ..text_message(Speaker::Tool, &result.text())
    });
    std::iter::once(asked).chain(answered)
}

fn text_message(role: Speaker, text: &str) -> ConversationMessage {
    let content = if text.is_empty() { Vec::new() } else { vec![ContentPart::Text(text.to_string())] };
    ConversationMessage { role, content, name: None, tool_calls: Vec::new(), tool_call_id: None }
}

/// Converts a message to JSON without attachments, which would dominate the size.
pub(super) fn message_json(message: &ConversationMessage) -> Value {
    let mut members = Map::new();
    members.insert("role".to_string(), json!(message.role.name()));
    members.insert("content".to_string(), json!(joined_text(&message.content)));
    if let Some(name) = &message.name {
        members.insert("name".to_string(), json!(name));
    }
    if let Some(id) = &message.tool_call_id {
        members.insert("tool_call_id".to_string(), json!(id));
    }
    if !message.tool_calls.is_empty() {
        let calls = message.tool_calls.iter().map(call_json);
        members.insert("tool_calls".to_string(), calls.collect());
    }
    Value::Object(members)
}
