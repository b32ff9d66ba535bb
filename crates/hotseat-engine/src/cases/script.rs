//! Decodes scripted answers of the client.

use std::collections::HashMap;

use hotseat_document::{Diagnostic, Diagnostics, MapView, Shape, SourceSpan};
use hotseat_http::check_encryption;
use hotseat_targets::message::{
    ClientTool, InterruptAnswer, InterruptReply, ToolAnswer, ToolFunction, ToolReply, ToolReplySource,
};
use hotseat_trace::canonical_text;
use serde_json::{Map, Value};

use super::answer_shape::TOOL_ANSWER;
use super::patterns::{read_argument_patterns, read_pattern};
use super::shape::{CLIENT_TOOL, INTERRUPT_ANSWER};

/// The keys of answers that are conditions.
const CONDITIONS: [&str; 4] = ["args_match", "reason", "message", "tool"];

/// Decodes a list of client-side tools.
pub fn read_client_tools(map: &MapView<'_>, key: &str, diagnostics: &mut Diagnostics) -> Vec<ClientTool> {
    let mut tools: Vec<ClientTool> = Vec::new();
    for entry in map.maps(key, &CLIENT_TOOL) {
        let name = entry.text("name").unwrap_or_default().to_string();
        if tools.iter().any(|tool| tool.name == name) {
            diagnostics.report(entry.place_of("name"), format!("tool `{name}` is defined twice"));
        }
        tools.push(ClientTool {
            name,
            description: entry.text("description").unwrap_or_default().to_string(),
            parameters: entry.json("parameters").unwrap_or_else(|| serde_json::json!({"type": "object"})),
            answers: read_answers(&entry, "answers", &TOOL_ANSWER, diagnostics, read_tool_answer),
            url: tool_url(&entry, diagnostics),
            place: Some(entry.place_near("name")),
        });
    }
    tools
}

/// URL that answers calls of a tool. A URL with variables is validated after they are resolved.
fn tool_url(tool: &MapView<'_>, diagnostics: &mut Diagnostics) -> Option<url::Url> {
    let text = tool.text("url").filter(|text| !text.contains("${"))?;
    let url = url::Url::parse(text).ok().filter(url::Url::has_host);
    if url.is_none() {
        diagnostics.report(tool.place_of("url"), "`url` of a tool is not a valid HTTP URL");
    }
    if let Some(Err(error)) = url.as_ref().map(check_encryption) {
        diagnostics.report(tool.place_of("url"), error);
    }
    url
}

/// Decodes a list of answers, of which the first that matches is used. Refuses one that an earlier one precedes always.
pub(super) fn read_answers<T>(
    map: &MapView<'_>,
    key: &str,
    shape: &'static Shape,
    diagnostics: &mut Diagnostics,
    read: impl Fn(&MapView<'_>, &mut Diagnostics) -> Option<T>,
) -> Vec<T> {
    // The first answer that is used for each call, by its conditions.
    let mut first_used: HashMap<String, SourceSpan> = HashMap::new();
    let mut answers = Vec::new();
    for entry in map.maps(key, shape) {
        let Some(answer) = read(&entry, diagnostics) else { continue };
        answers.push(answer);
        let conditions: Map<String, Value> = CONDITIONS
            .iter()
            .filter_map(|key| Some((key.to_string(), entry.as_node().get(key)?.to_json())))
            .collect();
        let conditions = canonical_text(&Value::Object(conditions));
        if let Some(first) = first_used.get("{}").or_else(|| first_used.get(&conditions)) {
            let message =
                format!("this entry of `{key}` is never used, because the one at {first} always comes first");
            let help = "write `once: true` in the earlier entry, or give it other conditions";
            diagnostics.push(Diagnostic::new(message).at(entry.place()).help(help));
        } else if entry.bool("once") != Some(true) {
            first_used.insert(conditions, entry.place());
        }
    }
    answers
}

/// Decodes an answer of a tool.
pub(super) fn read_tool_answer(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Option<ToolAnswer> {
    let reply = match (map.json("content"), map.text("error"), map.text("use")) {
        (Some(content), None, None) => ToolReplySource::Written(ToolReply::Content(content)),
        (None, Some(error), None) => ToolReplySource::Written(ToolReply::Error(error.to_string())),
        (None, None, Some(function)) => ToolReplySource::Function(ToolFunction {
            reference: function.to_string(),
            place: map.place_near("use"),
        }),
        _ => {
            diagnostics.report(map.place(), "an answer needs one of `content`, `error` and `use`");
            return None;
        }
    };
    Some(ToolAnswer {
        arguments: read_argument_patterns(map, "args_match", diagnostics),
        reply,
        once: map.bool("once").unwrap_or(false),
    })
}

/// Decodes the answers to interrupts of a turn.
pub fn read_interrupt_answers(turn: &MapView<'_>, diagnostics: &mut Diagnostics) -> Vec<InterruptAnswer> {
    read_answers(turn, "resume", &INTERRUPT_ANSWER, diagnostics, read_interrupt_answer)
}

fn read_interrupt_answer(entry: &MapView<'_>, diagnostics: &mut Diagnostics) -> Option<InterruptAnswer> {
    let cancelled = entry.text("status") == Some("cancelled");
    let reply = match (cancelled, entry.json("payload")) {
        (true, None) => InterruptReply::Cancelled,
        (false, Some(payload)) => InterruptReply::Resolved(payload),
        (true, Some(_)) => {
            diagnostics.report(entry.place_of("payload"), "a cancelled interrupt has no `payload`");
            return None;
        }
        (false, None) => {
            diagnostics.report(entry.place(), "an answer needs a `payload`, or `status: cancelled`");
            return None;
        }
    };
    Some(InterruptAnswer {
        reason: entry.get("reason").and_then(|view| read_pattern(view, diagnostics)),
        message: entry.get("message").and_then(|view| read_pattern(view, diagnostics)),
        tool: entry.text("tool").map(str::to_string),
        reply,
        once: entry.bool("once").unwrap_or(false),
        place: entry.place(),
    })
}
