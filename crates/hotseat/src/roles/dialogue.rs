//! A conversation as helpers are told of it.

use hotseat_trace::{Conversation, Turn};
use serde_json::{Map, Value, json};

use crate::adapters::template::call_as_json;
use crate::session::{Message, MessageCall, Part, Role as Speaker, words};

/// What was said and done so far.
#[derive(Debug, Clone, Copy)]
pub struct Dialogue<'a> {
    /// What was said before the first turn.
    pub opening: &'a [Message],
    /// The turns.
    pub turns: &'a [Turn],
}

impl<'a> Dialogue<'a> {
    /// A whole conversation.
    pub fn of(opening: &'a [Message], conversation: &'a Conversation) -> Self {
        Dialogue { opening, turns: &conversation.turns }
    }

    /// As messages in the form of chat completions.
    pub fn json(self) -> Vec<Value> {
        self.messages().iter().map(message_json).collect()
    }

    /// As messages: what the user said, the calls with their results, what the agent said.
    pub fn messages(self) -> Vec<Message> {
        let mut messages = self.opening.to_vec();
        for turn in self.turns {
            messages.extend(turn.user.iter().map(|text| said(Speaker::User, text)));
            let mut doings: Vec<_> = turn
                .tool_calls
                .iter()
                .map(|call| {
                    let asked = Message {
                        tool_calls: vec![MessageCall {
                            id: call.id.to_string(),
                            name: call.name.to_string(),
                            arguments: call.arguments.to_string(),
                        }],
                        ..said(Speaker::Assistant, "")
                    };
                    let answered = call.result.as_ref().map(|result| Message {
                        tool_call_id: Some(call.id.to_string()),
                        name: Some(call.name.to_string()),
                        ..said(Speaker::Tool, &result.text())
                    });
                    (call.started, std::iter::once(asked).chain(answered).collect::<Vec<_>>())
                })
                .chain(turn.messages.iter().map(|message| {
                    let at = message.started.unwrap_or(message.ended);
                    (at, vec![said(Speaker::Assistant, &message.content)])
                }))
                .collect();
            doings.sort_by_key(|(at, _)| *at);
            messages.extend(doings.into_iter().flat_map(|(_, messages)| messages));
        }
        messages
    }

    /// What the agent answered last.
    pub fn last_response(self) -> &'a str {
        self.turns.last().and_then(|turn| turn.answer()).unwrap_or_default()
    }

    /// What the tools of the last turn returned, by their names.
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

fn said(role: Speaker, text: &str) -> Message {
    let content = if text.is_empty() { Vec::new() } else { vec![Part::Text(text.to_string())] };
    Message { role, content, name: None, tool_calls: Vec::new(), tool_call_id: None }
}

/// A message without what is attached to it, which would be more than all that is said.
fn message_json(message: &Message) -> Value {
    let mut members = Map::new();
    members.insert("role".to_string(), json!(message.role.name()));
    members.insert("content".to_string(), json!(words(&message.content)));
    if let Some(name) = &message.name {
        members.insert("name".to_string(), json!(name));
    }
    if let Some(id) = &message.tool_call_id {
        members.insert("tool_call_id".to_string(), json!(id));
    }
    if !message.tool_calls.is_empty() {
        let calls = message.tool_calls.iter().map(call_as_json);
        members.insert("tool_calls".to_string(), calls.collect());
    }
    Value::Object(members)
}
