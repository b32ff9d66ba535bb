//! Decodes targets with a custom HTTP interface.

use std::sync::Arc;

use reqwest::Method;
use reqwest::header::HeaderValue;

use super::capabilities::node_references;
use super::common::{check_placeholders, invalid_header, parse_http_url, read_header_texts};
use crate::config::shape::{HTTP_AWAITING, HTTP_CALLS};
use hotseat_document::{Diagnostic, Diagnostics, MapView, NodeView};
use hotseat_targets::http_agent::{
    AwaitingRule, CallPaths, HttpTarget, LastEventRule, MappingPath, ResponseMapping, ResponseStream,
};
use hotseat_targets::target::template::{CaseInputs, Placeholder};
use hotseat_targets::{HistoryMode, ProtocolCapabilities};

pub(super) fn read_target(
    map: &MapView<'_>,
    carries: ProtocolCapabilities,
    mistakes: &mut Diagnostics,
) -> Option<HttpTarget> {
    for key in ["endpoint", "headers", "body"] {
        if let Some(view) = map.get(key) {
            check_placeholders(view, &[], mistakes);
        }
    }
    let method = map.text("method").and_then(|method| method.parse().ok()).unwrap_or(Method::POST);
    let body = map.json("body");
    if let Some(place) = map.key_place("body")
        && method == Method::GET
    {
        mistakes.push(Diagnostic::new("a `GET` request cannot have a `body`").at(place));
    }
    let tells = [map.node("endpoint"), map.node("headers"), map.node("body")].into_iter().flatten();
    let mut told = tells.flat_map(node_references);
    if !told.any(|reference| matches!(reference.placeholder, Placeholder::Message | Placeholder::Messages)) {
        let mistake = Diagnostic::new("the user's message is never sent to the agent");
        let help = "add `{{message}}`, or `{{messages}}` for the whole conversation, to the `body`";
        mistakes.push(mistake.at(map.place()).help(help));
    }
    let headers = read_header_texts(map, mistakes).into_iter().filter_map(|(name, text, view)| {
        match HeaderValue::try_from(text) {
            Ok(_) => Some((name, text.to_string())),
            Err(_) => {
                mistakes.push(invalid_header(&name, view.place()));
                None
            }
        }
    });
    let headers = headers.collect();
    let mapping = map.map("map").and_then(|map| read_mapping(&map, mistakes)).map(Arc::new);
    let stream = match map.text("stream") {
        Some("sse") => ResponseStream::Sse,
        Some("ndjson") => ResponseStream::Ndjson,
        _ => ResponseStream::None,
    };
    let done = mapping.as_ref().is_some_and(|mapping| mapping.done.is_some());
    if let Some(place) = map.place_of("stream").filter(|_| stream != ResponseStream::None) {
        if !map.has("map") {
            let mistake = Diagnostic::new("`stream` needs a `map` for its events");
            mistakes.push(mistake.at(place));
        } else if stream == ResponseStream::Ndjson && !done && mapping.is_some() {
            let mistake = Diagnostic::new("`stream: ndjson` needs `map.done`");
            let help = "it marks the last event; without it a truncated stream cannot be detected";
            mistakes.push(mistake.at(place).help(help));
        }
    } else if done {
        let place = map.place_of("map").unwrap_or_else(|| map.place());
        mistakes.push(Diagnostic::new("`done` requires `stream`").at(place));
    }
    Some(HttpTarget {
        endpoint: read_endpoint(map, mistakes)?,
        method,
        headers,
        body,
        mapping,
        stream,
        history: match map.text("history") {
            Some("delta") => HistoryMode::Delta,
            _ => HistoryMode::Full,
        },
        capabilities: carries,
        given: CaseInputs::default(),
        keep_raw: false,
    })
}

/// Decodes the URL. Placeholders are allowed in path and query, but must not select the server.
fn read_endpoint(map: &MapView<'_>, mistakes: &mut Diagnostics) -> Option<String> {
    let (text, place) = (map.text("endpoint")?, map.place_of("endpoint")?);
    let begins = text.find("://").map_or(0, |at| at + 3);
    let server = text[begins..].find(['/', '?', '#']).map_or(text, |at| &text[..begins + at]);
    if server.contains("{{") {
        let mistake = Diagnostic::new("the server name cannot contain a placeholder");
        mistakes.push(mistake.at(place).help("placeholders are allowed in the path and after `?`"));
        return None;
    }
    // Placeholders are not valid in URLs, but their values are encoded.
    let plain = text.replace("{{", "").replace("}}", "");
    parse_http_url(&plain, "endpoint", place, mistakes)?;
    Some(text.to_string())
}

fn read_mapping(map: &MapView<'_>, mistakes: &mut Diagnostics) -> Option<ResponseMapping> {
    let mut path = |key: &'static str, shown: &'static str| {
        map.get(key).and_then(|view| compile_path(shown, view, mistakes))
    };
    let reply = path("reply", "map.reply");
    let hint = path("hint", "map.hint");
    let conversation_id = path("conversation_id", "map.conversation_id");
    let usage = path("usage", "map.usage");
    let finish_reason = path("finish_reason", "map.finish_reason");
    let error = path("error", "map.error");
    let calls = map.get("tool_calls").and_then(|view| read_call_paths(view, mistakes));
    let awaiting = map
        .get("awaiting")
        .and_then(|view| read_comparison("map.awaiting", "map.awaiting.path", view, mistakes));
    let done = map.get("done").and_then(|view| read_comparison("map.done", "map.done.path", view, mistakes));
    let done = done.map(|AwaitingRule { path, equals }| LastEventRule { path, equals });
    if hint.is_some() && awaiting.is_none() {
        let place = map.key_place("hint").unwrap_or_else(|| map.place());
        mistakes.push(Diagnostic::new("`hint` requires `awaiting`").at(place));
    }
    Some(ResponseMapping {
        reply: reply?,
        calls,
        awaiting,
        hint,
        conversation_id,
        usage,
        finish_reason,
        error,
        done,
    })
}

fn compile_path(key: &'static str, view: NodeView<'_>, mistakes: &mut Diagnostics) -> Option<MappingPath> {
    match MappingPath::compile(key, view.text()?) {
        Ok(path) => Some(path),
        Err(words) => {
            let help = "a JSONPath starts with `$`, for example `$.messages[0].text`";
            mistakes.push(Diagnostic::new(words).at(view.place()).help(help));
            None
        }
    }
}

fn read_call_paths(view: NodeView<'_>, mistakes: &mut Diagnostics) -> Option<CallPaths> {
    let map = view.map(&HTTP_CALLS);
    let calls = match &map {
        None => compile_path("map.tool_calls", view, mistakes),
        Some(map) => map.get("path").and_then(|view| compile_path("map.tool_calls.path", view, mistakes)),
    };
    let mut part =
        |key: &str, shown: &'static str, default: &str| match map.as_ref().and_then(|map| map.get(key)) {
            Some(view) => compile_path(shown, view, mistakes),
            None => MappingPath::compile(shown, default).ok(),
        };
    let name = part("name", "map.tool_calls.name", "$.name");
    let arguments = part("arguments", "map.tool_calls.arguments", "$.arguments");
    let result = part("result", "map.tool_calls.result", "$.result");
    let error = part("error", "map.tool_calls.error", "$.error");
    let id = part("id", "map.tool_calls.id", "$.id");
    Some(CallPaths {
        calls: calls?,
        name: name?,
        arguments: arguments?,
        result: result?,
        error: error?,
        id: id?,
    })
}

/// Decodes a path, optionally with an expected value.
fn read_comparison(
    short: &'static str,
    long: &'static str,
    view: NodeView<'_>,
    mistakes: &mut Diagnostics,
) -> Option<AwaitingRule> {
    match view.map(&HTTP_AWAITING) {
        None => Some(AwaitingRule { path: compile_path(short, view, mistakes)?, equals: None }),
        Some(map) => {
            let path = map.get("path").and_then(|view| compile_path(long, view, mistakes));
            Some(AwaitingRule { path: path?, equals: map.json("equals") })
        }
    }
}
