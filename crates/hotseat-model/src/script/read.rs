//! From the values of a file to rules as they are written.

use std::time::Duration;

use super::builder::ScriptBuilder;
use super::fields::{Fields, listed};
use super::place::Mistakes;
use super::rule::{Conditions, ResultCondition, Rule, Written, WrittenCall, WrittenError, WrittenReply};
use super::tree::{Content, Node};
use crate::{ErrorKind, StopReason, Usage};

const SCRIPT: &[&str] = &["name", "use", "rules"];
const RULE: &[&str] = &["name", "when", "expect", "use", "delay_ms", "reply", "error"];
const CONDITIONS: &[&str] = &[
    "conversation",
    "agent",
    "turn",
    "call",
    "attempt",
    "system",
    "user",
    "notice",
    "tool_result",
    "offered",
];
const RESULT: &[&str] = &["tool", "matches", "failed"];
const REPLY: &[&str] = &["text", "json", "reasoning", "tool_calls", "stop", "usage"];
const CALL: &[&str] = &["name", "arguments", "id"];
const USAGE: &[&str] = &["input_tokens", "output_tokens", "cached_tokens"];
const ERROR: &[&str] = &["kind", "message", "status", "retry_after_ms", "body", "after"];

const USES: &[(&str, bool)] = &[("once", false), ("always", true)];

/// The failures that a script can play: all that a provider can have.
const KINDS: &[(&str, ErrorKind)] = &[
    ("network", ErrorKind::Network),
    ("timeout", ErrorKind::Timeout),
    ("rate_limit", ErrorKind::RateLimit),
    ("server", ErrorKind::Server),
    ("auth", ErrorKind::Auth),
    ("bad_request", ErrorKind::BadRequest),
    ("context_too_long", ErrorKind::ContextTooLong),
    ("decode", ErrorKind::Decode),
];

/// The reasons for which a scripted reply can end.
const STOPS: &[&str] = &["end_turn", "tool_use", "max_tokens", "stop_sequence", "refusal"];

/// Reads a whole script. What is wrong is among the mistakes.
pub(super) fn script(root: &Node, file_name: &str, mistakes: &mut Mistakes) -> ScriptBuilder {
    let mut fields = Fields::of(root, "a script", SCRIPT, mistakes);
    let name = fields.name("name").map_or_else(|| file_name.to_owned(), |name| name.value);
    let mut builder = ScriptBuilder::new(name);
    builder.always = fields.choice("use", USES).unwrap_or(false);
    let nodes = match fields.get("rules").map(|node| (node, &node.content)) {
        Some((_, Content::List(nodes))) if !nodes.is_empty() => nodes.as_slice(),
        Some((node, _)) => {
            let found = node.in_words();
            mistakes.add(
                node.place.as_ref(),
                format!("`rules` must be a list with at least one rule, found {found}"),
            );
            &[]
        }
        None => {
            if matches!(root.content, Content::Map(_)) {
                mistakes.add(root.place.as_ref(), "a script needs `rules`");
            }
            &[]
        }
    };
    for (index, node) in nodes.iter().enumerate() {
        mistakes.rule = Some(index + 1);
        builder.rules.push(rule(node, mistakes));
        mistakes.rule = None;
    }
    builder
}

fn rule(node: &Node, mistakes: &mut Mistakes) -> Rule {
    let mut fields = Fields::of(node, "a rule", RULE, mistakes);
    let name = fields.name("name");
    let always = fields.choice("use", USES);
    let delay = fields.millis("delay_ms").unwrap_or(Duration::ZERO);
    let (when, expect) = (fields.get("when"), fields.get("expect"));
    let (reply_node, error_node) = (fields.get("reply"), fields.get("error"));
    Rule {
        place: node.place.clone(),
        name,
        always,
        delay,
        when: when.map(|node| conditions(node, "`when`", mistakes)).unwrap_or_default(),
        expect: expect.map(|node| conditions(node, "`expect`", mistakes)).unwrap_or_default(),
        // What cannot be read must not look as if it were not there, or a second mistake would be reported.
        reply: reply_node.map(|node| reply(node, mistakes)),
        error: error_node.map(|node| error(node, mistakes)),
    }
}

fn conditions(node: &Node, what: &str, mistakes: &mut Mistakes) -> Conditions {
    let mut fields = Fields::of(node, what, CONDITIONS, mistakes);
    let mut conditions = Conditions {
        conversation: fields.text("conversation").map(|text| text.value),
        agent: fields.text("agent").map(|text| text.value),
        turn: fields.ordinal("turn"),
        call: fields.ordinal("call"),
        attempt: fields.ordinal("attempt"),
        system: fields.text("system"),
        user: fields.text("user"),
        notice: fields.text("notice"),
        tool_result: None,
        offered: Vec::new(),
    };
    let (result, offered) = (fields.get("tool_result"), fields.get("offered"));
    conditions.tool_result = result.map(|node| result_condition(node, mistakes));
    conditions.offered = offered.map(|node| names("offered", node, mistakes)).unwrap_or_default();
    conditions
}

/// A pattern, or a mapping that says more.
fn result_condition(node: &Node, mistakes: &mut Mistakes) -> ResultCondition {
    if let Content::Text(text) = &node.content {
        let matches = Written { value: text.clone(), place: node.place.clone() };
        return ResultCondition { matches: Some(matches), ..ResultCondition::default() };
    }
    let mut fields = Fields::of_form(node, "`tool_result`", "a pattern or a mapping", RESULT, mistakes);
    ResultCondition {
        tool: fields.name("tool").map(|name| name.value),
        matches: fields.text("matches"),
        failed: fields.bool("failed"),
    }
}

/// A name, or a list of names.
fn names(key: &str, node: &Node, mistakes: &mut Mistakes) -> Vec<String> {
    let nodes = match &node.content {
        Content::List(nodes) => nodes.as_slice(),
        _ => std::slice::from_ref(node),
    };
    let mut names = Vec::new();
    for node in nodes {
        match &node.content {
            Content::Text(name) if !name.is_empty() => names.push(name.clone()),
            _ => {
                let found = node.in_words();
                mistakes.add(
                    node.place.as_ref(),
                    format!("`{key}` must be the name of a tool or a list of names, found {found}"),
                );
            }
        }
    }
    names
}

/// A text, or a mapping that says more.
fn reply(node: &Node, mistakes: &mut Mistakes) -> WrittenReply {
    if let Content::Text(text) = &node.content {
        let text = Written { value: text.clone(), place: node.place.clone() };
        return WrittenReply { text: Some(text), ..WrittenReply::default() };
    }
    let known = mistakes.count();
    let mut fields = Fields::of_form(node, "`reply`", "a text or a mapping", REPLY, mistakes);
    let mut reply = WrittenReply {
        text: fields.text("text"),
        json: fields.get("json").cloned(),
        reasoning: fields.text("reasoning"),
        tool_calls: Vec::new(),
        stop: fields.text("stop").and_then(|stop| stop_reason(&stop, fields.mistakes)),
        usage: None,
    };
    let (call_list, usage_node) = (fields.get("tool_calls"), fields.get("usage"));
    reply.tool_calls = call_list.map(|node| tool_calls(node, mistakes)).unwrap_or_default();
    reply.usage = usage_node.map(|node| usage(node, mistakes));
    let says_nothing = reply.text.is_none() && reply.json.is_none() && reply.tool_calls.is_empty();
    if says_nothing && mistakes.count() == known {
        mistakes.add(
            node.place.as_ref(),
            "`reply` says nothing: it needs `text`, `json` or `tool_calls` (an empty reply is `reply: \"\"`)",
        );
    }
    reply
}

fn stop_reason(written: &Written<String>, mistakes: &mut Mistakes) -> Option<StopReason> {
    if STOPS.contains(&written.value.as_str()) {
        return Some(StopReason::from(written.value.clone()));
    }
    mistakes.add(
        written.place.as_ref(),
        format!("`stop` must be one of {}, found {:?}", listed(STOPS), written.value),
    );
    None
}

fn tool_calls(node: &Node, mistakes: &mut Mistakes) -> Vec<WrittenCall> {
    let Content::List(nodes) = &node.content else {
        mistakes.add(node.place.as_ref(), format!("`tool_calls` must be a list, found {}", node.in_words()));
        return Vec::new();
    };
    nodes.iter().filter_map(|node| tool_call(node, mistakes)).collect()
}

/// A mapping, or the name alone of a tool without arguments.
fn tool_call(node: &Node, mistakes: &mut Mistakes) -> Option<WrittenCall> {
    let no_arguments = Node { content: Content::Map(Vec::new()), place: node.place.clone() };
    if let Content::Text(name) = &node.content
        && !name.is_empty()
    {
        return Some(WrittenCall {
            place: node.place.clone(),
            name: name.clone(),
            id: None,
            arguments: no_arguments,
        });
    }
    let mut fields = Fields::of_form(node, "a tool call", "the name of a tool or a mapping", CALL, mistakes);
    let name = fields.name("name").map(|name| name.value);
    let id = fields.name("id").map(|id| id.value);
    let arguments = fields.get("arguments").unwrap_or(&no_arguments);
    match &arguments.content {
        Content::Map(_) | Content::Text(_) => {}
        Content::Null | Content::Bool(_) | Content::Number(_) | Content::List(_) => {
            let found = arguments.in_words();
            let message = format!("`arguments` must be a mapping, or a text to send as it is, found {found}");
            fields.mistakes.add(arguments.place.as_ref(), message);
        }
    }
    if name.is_none() && fields.get("name").is_none() && matches!(node.content, Content::Map(_)) {
        fields.mistakes.add(node.place.as_ref(), "a tool call needs `name`");
    }
    Some(WrittenCall { place: node.place.clone(), name: name?, id, arguments: arguments.clone() })
}

fn usage(node: &Node, mistakes: &mut Mistakes) -> Usage {
    let mut fields = Fields::of(node, "`usage`", USAGE, mistakes);
    let mut tokens = |key| fields.integer(key, 0, u64::MAX).unwrap_or(0);
    Usage {
        input_tokens: tokens("input_tokens"),
        output_tokens: tokens("output_tokens"),
        cached_tokens: tokens("cached_tokens"),
        estimated: false,
    }
}

/// The kind alone, or a mapping that says more.
fn error(node: &Node, mistakes: &mut Mistakes) -> WrittenError {
    if let Content::Text(word) = &node.content
        && let Some((_, kind)) = KINDS.iter().find(|(known, _)| known == word)
    {
        return WrittenError::new(*kind);
    }
    let words: Vec<&str> = KINDS.iter().map(|(word, _)| *word).collect();
    let Content::Map(_) = &node.content else {
        let found = node.in_words();
        let message = format!("`error` must be a mapping or one of {}, found {found}", listed(&words));
        mistakes.add(node.place.as_ref(), message);
        return WrittenError::new(ErrorKind::Server);
    };
    let mut fields = Fields::of(node, "`error`", ERROR, mistakes);
    if fields.get("kind").is_none() {
        fields.mistakes.add(node.place.as_ref(), format!("`error` needs `kind`: one of {}", listed(&words)));
    }
    WrittenError {
        kind: fields.choice("kind", KINDS).unwrap_or(ErrorKind::Server),
        message: fields.text("message"),
        status: fields.integer("status", 100, 599).and_then(|status| u16::try_from(status).ok()),
        retry_after: fields.millis("retry_after_ms"),
        body: fields.text("body").map(|body| body.value),
        after: fields.text("after"),
    }
}
