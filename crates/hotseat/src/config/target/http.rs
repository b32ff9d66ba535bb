//! An agent behind an HTTP interface of its own.

use std::sync::Arc;

use reqwest::Method;
use reqwest::header::HeaderValue;

use super::hears::node_references;
use super::parts::{check_placeholders, header_texts, parse_address, unfit_header};
use crate::adapters::http_agent::{Awaits, CallPaths, Done, Mapping, Path, Stream, Target};
use crate::adapters::template::{Given, Placeholder};
use crate::adapters::{Carries, History};
use crate::config::shape::{HTTP_AWAITING, HTTP_CALLS};
use hotseat_document::{Diagnostic, Diagnostics, Map, View};

pub(super) fn read(map: &Map<'_>, carries: Carries, mistakes: &mut Diagnostics) -> Option<Target> {
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
        mistakes.push(Diagnostic::new("a request by `GET` has no `body`").at(place));
    }
    let tells = [map.node("endpoint"), map.node("headers"), map.node("body")].into_iter().flatten();
    let mut told = tells.flat_map(node_references);
    if !told.any(|reference| matches!(reference.to, Placeholder::Message | Placeholder::Messages)) {
        let mistake = Diagnostic::new("the agent is never told what the user says");
        let help = "write `{{message}}`, or `{{messages}}` for the whole conversation, into the `body`";
        mistakes.push(mistake.at(map.place()).help(help));
    }
    let headers =
        header_texts(map, mistakes).into_iter().filter_map(|(name, text, view)| match HeaderValue::try_from(
            text,
        ) {
            Ok(_) => Some((name, text.to_string())),
            Err(_) => {
                mistakes.push(unfit_header(&name, view.place()));
                None
            }
        });
    let headers = headers.collect();
    let mapping = map.map("map").and_then(|map| mapping(&map, mistakes)).map(Arc::new);
    let stream = match map.text("stream") {
        Some("sse") => Stream::Sse,
        Some("ndjson") => Stream::Ndjson,
        _ => Stream::None,
    };
    let done = mapping.as_ref().is_some_and(|mapping| mapping.done.is_some());
    if let Some(place) = map.place_of("stream").filter(|_| stream != Stream::None) {
        if !map.has("map") {
            let mistake =
                Diagnostic::new("`stream` needs a `map` that says where things stand in its events");
            mistakes.push(mistake.at(place));
        } else if stream == Stream::Ndjson && !done && mapping.is_some() {
            let mistake = Diagnostic::new("`stream: ndjson` needs `map.done`");
            let help =
                "it says which event is the last one; without it nobody can tell a stream that was cut";
            mistakes.push(mistake.at(place).help(help));
        }
    } else if done {
        let place = map.place_of("map").unwrap_or_else(|| map.place());
        mistakes.push(Diagnostic::new("`done` goes with `stream`").at(place));
    }
    Some(Target {
        endpoint: endpoint(map, mistakes)?,
        method,
        headers,
        body,
        mapping,
        stream,
        history: match map.text("history") {
            Some("delta") => History::Delta,
            _ => History::Full,
        },
        carries,
        given: Given::default(),
        keep_raw: false,
    })
}

/// The address: placeholders may stand in its path and its query, and not where they would choose the server.
fn endpoint(map: &Map<'_>, mistakes: &mut Diagnostics) -> Option<String> {
    let (text, place) = (map.text("endpoint")?, map.place_of("endpoint")?);
    let begins = text.find("://").map_or(0, |at| at + 3);
    let server = text[begins..].find(['/', '?', '#']).map_or(text, |at| &text[..begins + at]);
    if server.contains("{{") {
        let mistake = Diagnostic::new("a placeholder cannot stand where the server is named");
        mistakes.push(mistake.at(place).help("it may stand in the path and after `?`"));
        return None;
    }
    // Braces are no part of an address, but what takes their place is encoded.
    let plain = text.replace("{{", "").replace("}}", "");
    parse_address(&plain, "endpoint", place, mistakes)?;
    Some(text.to_string())
}

fn mapping(map: &Map<'_>, mistakes: &mut Diagnostics) -> Option<Mapping> {
    let mut path = |key: &'static str, shown: &'static str| {
        map.get(key).and_then(|view| compiled(shown, view, mistakes))
    };
    let reply = path("reply", "map.reply");
    let hint = path("hint", "map.hint");
    let conversation_id = path("conversation_id", "map.conversation_id");
    let usage = path("usage", "map.usage");
    let finish_reason = path("finish_reason", "map.finish_reason");
    let error = path("error", "map.error");
    let calls = map.get("tool_calls").and_then(|view| call_paths(view, mistakes));
    let awaiting =
        map.get("awaiting").and_then(|view| awaits("map.awaiting", "map.awaiting.path", view, mistakes));
    let done = map.get("done").and_then(|view| awaits("map.done", "map.done.path", view, mistakes));
    let done = done.map(|Awaits { path, equals }| Done { path, equals });
    if hint.is_some() && awaiting.is_none() {
        let place = map.key_place("hint").unwrap_or_else(|| map.place());
        mistakes.push(Diagnostic::new("`hint` goes with `awaiting`").at(place));
    }
    Some(Mapping { reply: reply?, calls, awaiting, hint, conversation_id, usage, finish_reason, error, done })
}

fn compiled(key: &'static str, view: View<'_>, mistakes: &mut Diagnostics) -> Option<Path> {
    match Path::compile(key, view.text()?) {
        Ok(path) => Some(path),
        Err(words) => {
            let help = "a JSONPath begins with `$`, for instance `$.messages[0].text`";
            mistakes.push(Diagnostic::new(words).at(view.place()).help(help));
            None
        }
    }
}

fn call_paths(view: View<'_>, mistakes: &mut Diagnostics) -> Option<CallPaths> {
    let map = view.map(&HTTP_CALLS);
    let calls = match &map {
        None => compiled("map.tool_calls", view, mistakes),
        Some(map) => map.get("path").and_then(|view| compiled("map.tool_calls.path", view, mistakes)),
    };
    let mut part =
        |key: &str, shown: &'static str, default: &str| match map.as_ref().and_then(|map| map.get(key)) {
            Some(view) => compiled(shown, view, mistakes),
            None => Path::compile(shown, default).ok(),
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

/// A path to a value, alone or with what the value is to be equal to.
fn awaits(
    short: &'static str,
    long: &'static str,
    view: View<'_>,
    mistakes: &mut Diagnostics,
) -> Option<Awaits> {
    match view.map(&HTTP_AWAITING) {
        None => Some(Awaits { path: compiled(short, view, mistakes)?, equals: None }),
        Some(map) => {
            let path = map.get("path").and_then(|view| compiled(long, view, mistakes));
            Some(Awaits { path: path?, equals: map.json("equals") })
        }
    }
}
