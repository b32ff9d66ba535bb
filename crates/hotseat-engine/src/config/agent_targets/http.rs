//! Agents with a custom HTTP interface.

use std::sync::Arc;

use http::Method;
use url::Url;

use super::common::{
    ASSERTED, AWAITED, DESCRIPTION, FOLDER, IDLE_TIMEOUT, STARTED, TIMEOUT, TURN_ASSERTED, case_inputs,
    check_placeholders, key_references, node_references, option_help, parse_http_url, placeholder_help,
    url_password,
};
use super::{AgentTarget, TargetCapabilities, TargetEnv, TargetInput, TargetSummary};
use crate::cases::{CaseTarget, read_header_texts};
use hotseat_document::{Diagnostic, Diagnostics, DocumentNode, Kind, MapView, NodeView, document_shape};
use hotseat_targets::connection::http::without_credentials;
use hotseat_targets::http_agent::{
    AwaitingRule, CallPaths, HttpSession, HttpTarget, LastEventRule, MappingPath, ResponseMapping,
    ResponseStream,
};
use hotseat_targets::target::template::{CaseInputs, Placeholder};
use hotseat_targets::{AgentSession, HistoryMode};

document_shape! {
    /// An agent with a custom HTTP interface: a template defines the request, paths select values of the
    /// response.
    pub(super) static SHAPE "HttpTarget" {
        /// Type of the target.
        required "type" = Kind::Choice(&["http"]),
        /// URL to which each turn is sent. Placeholders are percent-encoded.
        required "endpoint" = Kind::Url, other_names &["url", "uri", "base_url", "address"],
        /// The method.
        optional "method" = Kind::Choice(&["POST", "PUT", "PATCH", "GET"]), shown "POST",
        /// Headers of every request. Placeholders are supported.
        optional "headers" = Kind::Map(&Kind::Text),
        /// The body as JSON. `{{message}}`, `{{messages}}`, `{{history}}`, `{{attachments}}`, `{{options}}`,
        /// `{{conversation_id}}`, `{{turn}}`, `{{state}}`, `{{context}}`, `{{forwardedProps}}`, `{{user}}`,
        /// `{{team}}`, `{{locale}}`, `{{ctx}}` and their members (`{{options.connector}}`) are supported; a
        /// text that consists of one placeholder becomes its value.
        optional "body" = Kind::Json,
        /// Mapping of the response. Default: the whole body is the agent's reply.
        optional "map" = Kind::Shape(&HTTP_MAP),
        /// Format of the response: `none`: one document. `sse`: server-sent events. `ndjson`: one JSON
        /// document a line. `map` then applies to each event, and the agent's text arrives in chunks.
        optional "stream" = Kind::Choice(ResponseStream::NAMES), shown "none",
        /// `full`: `{{messages}}` and `{{history}}` contain the whole conversation. `delta`: only messages
        /// not sent yet. `auto` is `full`.
        optional "history" = Kind::Choice(&["full", "delta", "auto"]), shown "auto",
        ..TIMEOUT,
        ..IDLE_TIMEOUT,
        ..DESCRIPTION,
        ..FOLDER,
        ..STARTED,
        ..ASSERTED,
        ..TURN_ASSERTED,
        ..AWAITED,
    }

    /// Mapping of an agent's JSON response, with JSONPath (RFC 9535).
    static HTTP_MAP "HttpMap" {
        /// The agent's text. A path that selects several texts yields several messages; an object or a list
        /// becomes JSON text. It must select a value unless the agent called a tool.
        required "reply" = Kind::NonEmptyText,
        /// The tool calls: a path to the calls, or to a list of them.
        optional "tool_calls" = Kind::OneOf(&[Kind::NonEmptyText, Kind::Shape(&HTTP_CALLS)]),
        /// Whether the agent waits for input: a path to `true` or `false`, or to a text.
        optional "awaiting" = Kind::OneOf(&[Kind::NonEmptyText, Kind::Shape(&HTTP_AWAITING)]),
        /// Description of the awaited input.
        optional "hint" = Kind::NonEmptyText,
        /// Conversation id assigned by the server: the first response must contain it, later requests send
        /// it.
        optional "conversation_id" = Kind::NonEmptyText,
        /// Usage of the turn.
        optional "usage" = Kind::NonEmptyText,
        /// Finish reason of the reply.
        optional "finish_reason" = Kind::NonEmptyText,
        /// An error: a text, or an object with `message` and optional `code`. `null`, `false` and empty
        /// values mean no error.
        optional "error" = Kind::NonEmptyText,
        /// With `stream`: marks the last event: the path selects a value other than `null`, `false`, 0 and empty ones, or
        /// the value given with `equals`. Server-sent events may end with `[DONE]` instead.
        optional "done" = Kind::OneOf(&[Kind::NonEmptyText, Kind::Shape(&HTTP_AWAITING)]),
    }

    /// Mapping of tool calls.
    static HTTP_CALLS "HttpToolCalls" {
        /// Path to the calls, or to a list of them.
        required "path" = Kind::NonEmptyText,
        /// Name of the tool, relative to the call. Required.
        optional "name" = Kind::NonEmptyText, shown "$.name",
        /// The arguments: JSON, or JSON in a text.
        optional "arguments" = Kind::NonEmptyText, shown "$.arguments",
        /// Result of the tool.
        optional "result" = Kind::NonEmptyText, shown "$.result",
        /// Error of the tool.
        optional "error" = Kind::NonEmptyText, shown "$.error",
        /// Id of the call.
        optional "id" = Kind::NonEmptyText, shown "$.id",
    }

    /// True if a value equals another.
    static HTTP_AWAITING "HttpComparison" {
        /// Selects the value.
        required "path" = Kind::NonEmptyText,
        /// Expected value.
        required "equals" = Kind::Json,
    }
}

impl AgentTarget for HttpTarget {
    fn capabilities(node: &DocumentNode) -> TargetCapabilities {
        let references = key_references(node, &["endpoint", "headers", "body"]);
        TargetCapabilities {
            key_help: |key| placeholder_help(key, "template"),
            option_help: |name| option_help(name, "template"),
            shows_calls: node.get("map").is_some_and(|map| map.get("tool_calls").is_some()),
            ..TargetCapabilities::from_template(&references)
        }
    }

    fn read(input: &mut TargetInput<'_>) -> Option<Self> {
        let (map, mistakes) = (input.map, &mut *input.mistakes);
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
            mistakes.report(place, "a `GET` request cannot have a `body`");
        }
        let tells = [map.node("endpoint"), map.node("headers"), map.node("body")].into_iter().flatten();
        let mut told = tells.flat_map(node_references);
        if !told
            .any(|reference| matches!(reference.placeholder, Placeholder::Message | Placeholder::Messages))
        {
            let mistake = Diagnostic::new("the user's message is never sent to the agent");
            let help = "add `{{message}}`, or `{{messages}}` for the whole conversation, to the `body`";
            mistakes.push(mistake.at(map.place()).help(help));
        }
        let headers = read_header_texts(map, mistakes).into_iter();
        let headers = headers.map(|(name, text)| (name, text.to_string())).collect();
        let mapping = map.map("map").and_then(|map| read_mapping(&map, mistakes)).map(Arc::new);
        let stream = map.text("stream").and_then(ResponseStream::from_name).unwrap_or(ResponseStream::None);
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
            mistakes.report(map.place_near("map"), "`done` requires `stream`");
        }
        let endpoint = read_endpoint(map, mistakes)?;
        input.secrets.extend(Url::parse(&endpoint).ok().as_ref().and_then(url_password));
        Some(HttpTarget {
            endpoint,
            method,
            headers,
            body,
            mapping,
            stream,
            history: map.text("history").and_then(HistoryMode::from_name).unwrap_or(HistoryMode::Full),
            capabilities: input.capabilities,
            given: CaseInputs::default(),
            keep_raw: false,
        })
    }

    fn open(&self, env: &TargetEnv) -> Box<dyn AgentSession> {
        let target = HttpTarget { keep_raw: env.keep_raw, ..self.clone() };
        Box::new(HttpSession::open(env.http.clone(), target))
    }

    fn summary(&self) -> TargetSummary {
        match Url::parse(&self.endpoint) {
            Ok(url) if url.password().is_some() => TargetSummary::at(without_credentials(&url)),
            Ok(_) | Err(_) => TargetSummary::at(self.endpoint.clone()),
        }
    }

    fn apply_case(&mut self, case: &CaseTarget) {
        self.given = case_inputs(case);
    }

    fn fixed_conversation_id(&mut self) -> Option<&mut String> {
        self.given.conversation_id.as_mut()
    }
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
        mistakes.report(map.key_place("hint").unwrap_or_else(|| map.place()), "`hint` requires `awaiting`");
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
