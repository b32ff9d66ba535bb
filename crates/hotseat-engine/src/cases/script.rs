//! Decodes scripted answers of the client.

use hotseat_document::{Diagnostic, Diagnostics, MapView};
use hotseat_http::check_encryption;
use hotseat_targets::message::{
    ClientTool, InterruptAnswer, InterruptReply, ToolAnswer, ToolFunction, ToolReply, ToolReplySource,
};

use super::answer_shape::TOOL_ANSWER;
use super::patterns::{read_argument_patterns, read_pattern};
use super::shape::{CLIENT_TOOL, INTERRUPT_ANSWER};

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
            answers: entry
                .maps("answers", &TOOL_ANSWER)
                .filter_map(|answer| read_tool_answer(&answer, diagnostics))
                .collect(),
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
    let mut answers = Vec::new();
    for entry in turn.maps("resume", &INTERRUPT_ANSWER) {
        let cancelled = entry.text("status") == Some("cancelled");
        let reply = match (cancelled, entry.json("payload")) {
            (true, None) => InterruptReply::Cancelled,
            (false, Some(payload)) => InterruptReply::Resolved(payload),
            (true, Some(_)) => {
                diagnostics.report(entry.place_of("payload"), "a cancelled interrupt has no `payload`");
                continue;
            }
            (false, None) => {
                let diagnostic =
                    Diagnostic::new("an answer needs a `payload`, or `status: cancelled`").at(entry.place());
                diagnostics.push(diagnostic);
                continue;
            }
        };
        answers.push(InterruptAnswer {
            reason: entry.get("reason").and_then(|view| read_pattern(view, diagnostics)),
            message: entry.get("message").and_then(|view| read_pattern(view, diagnostics)),
            tool: entry.text("tool").map(str::to_string),
            reply,
            once: entry.bool("once").unwrap_or(false),
            place: entry.place(),
        });
    }
    answers
}
