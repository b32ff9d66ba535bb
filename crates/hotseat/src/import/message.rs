//! One message of OpenAI's, read from data of which nobody promises anything.

use hotseat_document::{Diagnostic, Diagnostics, Place, View};
use serde_json::Value;

use super::transcript::member;
use crate::recording::Arguments;
use crate::session::Role;

/// A message, and where it stands.
pub(super) struct Message {
    pub(super) said: Said,
    pub(super) place: Place,
}

/// What a message is.
pub(super) enum Said {
    /// The agent is told what to do.
    Instruction,
    /// The user says something.
    User(String),
    /// The agent says something, calls tools, or both.
    Agent { text: Option<String>, reasoning: Option<String>, calls: Vec<Call> },
    /// A tool answers.
    Tool { id: String, content: Value },
}

/// A call in a message.
pub(super) struct Call {
    /// Its id in the data; empty where it has none.
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) arguments: Arguments,
}

impl Message {
    /// Reads a message. None if something is wrong with it, which is said then.
    pub(super) fn read(view: View<'_>, mistakes: &mut Diagnostics) -> Option<Message> {
        let place = view.place();
        let mut wrong = |place: Place, message: String| {
            mistakes.push(Diagnostic::new(message).at(place));
            None
        };
        if view.entries().is_none() {
            return wrong(place, "a message is an object with a `role`".to_string());
        }
        let Some(written) = member(view, "role") else {
            return wrong(place, "this message has no `role`".to_string());
        };
        let Some(role) = written.text().and_then(Role::named) else {
            let message = format!("a message has one of the roles {}", Role::NAMES.join(", "));
            return wrong(written.place(), message);
        };
        // What a tool returned may be JSON of any shape; what others say is text.
        let text = if role == Role::Tool { None } else { text(member(view, "content"), mistakes)? };
        let said = match role {
            Role::System | Role::Developer => Said::Instruction,
            Role::User => match text {
                Some(text) => Said::User(text),
                None => {
                    mistakes.push(Diagnostic::new("this message of the user has no `content`").at(place));
                    return None;
                }
            },
            Role::Assistant => {
                let short = |key: &str| {
                    let said = member(view, key).and_then(View::text);
                    said.filter(|text| !text.is_empty()).map(str::to_string)
                };
                Said::Agent {
                    // Who refuses says so in another place.
                    text: text.filter(|text| !text.is_empty()).or_else(|| short("refusal")),
                    reasoning: short("reasoning_content").or_else(|| short("reasoning")),
                    calls: calls(view, mistakes)?,
                }
            }
            Role::Tool => match member(view, "tool_call_id").and_then(View::text) {
                Some(id) => {
                    let content =
                        member(view, "content").map_or_else(|| Value::String(String::new()), View::json);
                    Said::Tool { id: id.to_string(), content }
                }
                None => {
                    let message = "this result of a tool has no `tool_call_id`";
                    mistakes.push(Diagnostic::new(message).at(place));
                    return None;
                }
            },
        };
        Some(Message { said, place })
    }
}

/// The text of a content: text, or parts that are text. The outer none is a mistake.
#[allow(clippy::option_option, reason = "a mistake is not the same as nothing")]
fn text(content: Option<View<'_>>, mistakes: &mut Diagnostics) -> Option<Option<String>> {
    let Some(content) = content else { return Some(None) };
    if let Some(text) = content.text() {
        return Some(Some(text.to_string()));
    }
    let Some(parts) = content.list() else {
        mistakes.push(Diagnostic::new("the `content` of a message is text or parts").at(content.place()));
        return None;
    };
    let mut texts = Vec::new();
    for part in parts {
        let kind = member(part, "type").and_then(View::text).unwrap_or("text");
        match (kind, member(part, "text").and_then(View::text)) {
            ("text" | "input_text" | "output_text", Some(text)) => texts.push(text),
            _ => {
                let help = "leave such conversations out with `--skip-invalid`";
                let wrong = Diagnostic::new("only text can be imported, and this part is none");
                mistakes.push(wrong.at(part.place()).help(help));
                return None;
            }
        }
    }
    Some(Some(texts.join("\n")))
}

/// The calls of a message: `function` with name and arguments, or both in the call itself.
fn calls(view: View<'_>, mistakes: &mut Diagnostics) -> Option<Vec<Call>> {
    if let Some(old) = member(view, "function_call") {
        let message = "`function_call` is of a time before calls had ids: write `tool_calls`";
        mistakes.push(Diagnostic::new(message).at(old.place()));
        return None;
    }
    let Some(written) = member(view, "tool_calls") else { return Some(Vec::new()) };
    let Some(list) = written.list() else {
        mistakes.push(Diagnostic::new("`tool_calls` is a list").at(written.place()));
        return None;
    };
    let mut calls = Vec::new();
    for call in list {
        let of = member(call, "function").unwrap_or(call);
        let Some(tool) = member(of, "name").and_then(View::text).filter(|name| !name.is_empty()) else {
            mistakes.push(Diagnostic::new("this call names no tool").at(call.place()));
            return None;
        };
        let arguments = match member(of, "arguments").map(View::json) {
            None => Arguments::empty(),
            Some(Value::String(text)) if text.trim().is_empty() => Arguments::empty(),
            Some(Value::String(text)) => Arguments::of_text(text),
            Some(value) => Arguments::Json(value),
        };
        let id = member(call, "id").and_then(View::text).unwrap_or_default().to_string();
        calls.push(Call { id, tool: tool.to_string(), arguments });
    }
    Some(calls)
}
