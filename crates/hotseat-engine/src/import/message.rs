//! Reads one message in OpenAI's format from untrusted data.

use hotseat_document::{Diagnostic, Diagnostics, NodeView, SourceSpan};
use serde_json::Value;

use hotseat_targets::message::MessageRole;
use hotseat_targets::recording::RecordedArguments;

/// A message and its location.
pub(super) struct ImportedMessage {
    pub(super) content: MessageContent,
    pub(super) place: SourceSpan,
}

/// Content of a message by role.
pub(super) enum MessageContent {
    /// Instructions for the agent.
    Instruction,
    /// Text of the user.
    User(String),
    /// Text, reasoning or tool calls of the agent.
    Agent { text: Option<String>, reasoning: Option<String>, calls: Vec<ImportedToolCall> },
    /// Result of a tool.
    Tool { id: String, content: Value },
}

/// A tool call in a message.
pub(super) struct ImportedToolCall {
    /// Id in the data, or empty.
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) arguments: RecordedArguments,
}

impl ImportedMessage {
    /// Reads a message. Returns `None` and records an error if it is invalid.
    pub(super) fn read(view: NodeView<'_>, mistakes: &mut Diagnostics) -> Option<ImportedMessage> {
        let place = view.place();
        let mut wrong = |place: SourceSpan, message: String| {
            mistakes.report(place, message);
            None
        };
        if view.entries().is_none() {
            return wrong(place, "a message must be an object with a `role`".to_string());
        }
        let Some(written) = member(view, "role") else {
            return wrong(place, "this message has no `role`".to_string());
        };
        let Some(role) = written.text().and_then(MessageRole::from_name) else {
            let message = format!("unknown role, expected one of {}", MessageRole::NAMES.join(", "));
            return wrong(written.place(), message);
        };
        // Tool results may be any JSON; other messages are text.
        let text = if role == MessageRole::Tool { None } else { text(member(view, "content"), mistakes)? };
        let said = match role {
            MessageRole::System | MessageRole::Developer => MessageContent::Instruction,
            MessageRole::User => match text {
                Some(text) => MessageContent::User(text),
                None => {
                    mistakes.report(place, "this message of the user has no `content`");
                    return None;
                }
            },
            MessageRole::Assistant => {
                let short = |key: &str| {
                    let said = member(view, key).and_then(NodeView::text);
                    said.filter(|text| !text.is_empty()).map(str::to_string)
                };
                MessageContent::Agent {
                    // Refusals have their own member.
                    text: text.filter(|text| !text.is_empty()).or_else(|| short("refusal")),
                    reasoning: short("reasoning_content").or_else(|| short("reasoning")),
                    calls: calls(view, mistakes)?,
                }
            }
            MessageRole::Tool => match member(view, "tool_call_id").and_then(NodeView::text) {
                Some(id) => {
                    let content =
                        member(view, "content").map_or_else(|| Value::String(String::new()), NodeView::json);
                    MessageContent::Tool { id: id.to_string(), content }
                }
                None => {
                    mistakes.report(place, "this result of a tool has no `tool_call_id`");
                    return None;
                }
            },
        };
        Some(ImportedMessage { content: said, place })
    }
}

/// Returns the text of a content: a string, or the joined text of its parts, as the target `openai` reads it. The outer `None` is
/// an error.
#[allow(clippy::option_option, reason = "a mistake is not the same as nothing")]
fn text(content: Option<NodeView<'_>>, mistakes: &mut Diagnostics) -> Option<Option<String>> {
    let Some(content) = content else { return Some(None) };
    if let Some(text) = content.text() {
        return Some(Some(text.to_string()));
    }
    let Some(parts) = content.list() else {
        mistakes.report(content.place(), "the `content` of a message must be text or a list of parts");
        return None;
    };
    let mut texts = Vec::new();
    for part in parts {
        let kind = member(part, "type").and_then(NodeView::text).unwrap_or("text");
        match (kind, member(part, "text").and_then(NodeView::text)) {
            ("text" | "input_text" | "output_text", Some(text)) => texts.push(text),
            ("text" | "input_text" | "output_text", None) => {
                mistakes.report(part.place(), "this text part has no `text`");
                return None;
            }
            _ => {
                let help = "omit such conversations with `--skip-invalid`";
                let wrong = Diagnostic::new("only text parts can be imported");
                mistakes.push(wrong.at(part.place()).help(help));
                return None;
            }
        }
    }
    Some(Some(texts.concat()))
}

/// Keys of the arguments of a call.
const ARGUMENT_KEYS: [&str; 4] = ["kwargs", "arguments", "args", "input"];

/// Returns the arguments of a call, in its `function` or in the call itself. Data that looks like arguments under
/// another key is an error: without it, the call would have no arguments.
pub(super) fn call_arguments<'a>(
    call: NodeView<'a>,
    what: &str,
    mistakes: &mut Diagnostics,
) -> Option<NodeView<'a>> {
    let places = || member(call, "function").into_iter().chain([call]);
    let mut given = places().flat_map(|place| ARGUMENT_KEYS.iter().filter_map(move |key| member(place, key)));
    let arguments = given.next();
    if let Some(second) = given.next() {
        mistakes.report(second.place(), format!("the arguments of this {what} are given twice"));
    }
    if arguments.is_none() {
        let is_like_arguments = |value: NodeView<'_>| {
            value.entries().is_some() || value.text().is_some_and(|text| text.trim_start().starts_with('{'))
        };
        let mut others = places().flat_map(|place| place.entries().into_iter().flatten());
        if let Some((key, _, other)) =
            others.find(|(key, _, other)| *key != "function" && is_like_arguments(*other))
        {
            let message = format!("this {what} has an object `{key}`, but no arguments");
            let help = "put the arguments under `arguments`";
            mistakes.push(Diagnostic::new(message).at(other.place()).help(help));
        }
    }
    arguments
}

/// True if a message has tool calls, whether they can be read or not.
pub(super) fn has_calls(view: NodeView<'_>) -> bool {
    member(view, "tool_calls").or_else(|| member(view, "function_call")).is_some()
}

/// Returns the tool calls of a message, with name and arguments in `function` or in the call itself.
fn calls(view: NodeView<'_>, mistakes: &mut Diagnostics) -> Option<Vec<ImportedToolCall>> {
    if let Some(old) = member(view, "function_call") {
        mistakes.report(old.place(), "`function_call` is obsolete: use `tool_calls`");
        return None;
    }
    let Some(written) = member(view, "tool_calls") else { return Some(Vec::new()) };
    let Some(list) = written.list() else {
        mistakes.report(written.place(), "`tool_calls` must be a list");
        return None;
    };
    let mut calls = Vec::new();
    for call in list {
        let of = member(call, "function").unwrap_or(call);
        let Some(tool) = member(of, "name").and_then(NodeView::text).filter(|name| !name.is_empty()) else {
            let help = "write it as `name`, in the call or in its `function`";
            mistakes.push(Diagnostic::new("this call has no tool name").at(call.place()).help(help));
            return None;
        };
        let arguments = match call_arguments(call, "call", mistakes).map(NodeView::json) {
            None => RecordedArguments::empty(),
            Some(Value::String(text)) => RecordedArguments::parse(text),
            Some(value) => RecordedArguments::Json(value),
        };
        let id = member(call, "id").and_then(NodeView::text).unwrap_or_default().to_string();
        calls.push(ImportedToolCall { id, tool: tool.to_string(), arguments });
    }
    Some(calls)
}

/// Returns the value of a key. Null counts as missing.
pub(super) fn member<'a>(view: NodeView<'a>, key: &str) -> Option<NodeView<'a>> {
    view.node.get(key).map(|node| NodeView::new(node, view.source)).filter(|view| !view.is_null())
}
