//! From the tree of a file to rules as they are written.

use std::sync::Arc;
use std::time::Duration;

use hotseat_document::{Kind, Map, Node, Source, View, check};

use super::builder::ScriptBuilder;
use super::mistakes::Mistakes;
use super::rule::{
    Conditions, ResultCondition, Rule, Written, WrittenCall, WrittenError, WrittenReply, WrittenTree,
};
use super::shape::{CALL, RULE, SCRIPT};
use crate::{ErrorKind, StopReason, Usage};

/// Reads a whole script. What is wrong is among the mistakes.
pub(super) fn script(node: &Node, source: &Arc<Source>, mistakes: &mut Mistakes) -> ScriptBuilder {
    let mut misfits = hotseat_document::Diagnostics::new();
    check(node, &Kind::Shape(&SCRIPT), source, &mut misfits);
    mistakes.extend(misfits);
    let Some(map) = Map::of(node, source, &SCRIPT) else { return ScriptBuilder::new(&*source.name) };
    let mut builder = ScriptBuilder::new(map.text("name").unwrap_or(&source.name));
    builder.always = map.text("use").is_some_and(is_always);
    for view in map.list("rules").into_iter().flatten() {
        builder.rules.push(rule(view, mistakes));
    }
    builder
}

fn is_always(word: &str) -> bool {
    word == "always"
}

fn rule(view: View<'_>, mistakes: &mut Mistakes) -> Rule {
    let place = Some(view.place());
    let Some(map) = view.map(&RULE) else { return Rule { place, ..Rule::default() } };
    Rule {
        place,
        name: written(&map, "name"),
        always: map.text("use").map(is_always),
        delay: millis(&map, "delay_ms").unwrap_or(Duration::ZERO),
        when: map.map("when").map(|map| conditions(&map)).unwrap_or_default(),
        expect: map.map("expect").map(|map| conditions(&map)).unwrap_or_default(),
        reply: map.get("reply").map(|view| reply(view, map.map("reply").as_ref(), mistakes)),
        error: map.get("error").map(|view| error(view, map.map("error").as_ref())),
    }
}

fn conditions(map: &Map<'_>) -> Conditions {
    let text = |key: &str| map.text(key).map(str::to_owned);
    let ordinal = |key: &str| map.integer(key).and_then(|number| u32::try_from(number).ok());
    let offered = map.get("offered").into_iter().flat_map(View::one_or_many).filter_map(View::text);
    Conditions {
        conversation: text("conversation"),
        agent: text("agent"),
        turn: ordinal("turn"),
        call: ordinal("call"),
        attempt: ordinal("attempt"),
        system: written(map, "system"),
        user: written(map, "user"),
        notice: written(map, "notice"),
        tool_result: map.has("tool_result").then(|| result_condition(map)),
        offered: offered.map(str::to_owned).collect(),
    }
}

/// A pattern, or a mapping that says more.
fn result_condition(conditions: &Map<'_>) -> ResultCondition {
    match conditions.map("tool_result") {
        None => ResultCondition { matches: written(conditions, "tool_result"), ..ResultCondition::default() },
        Some(map) => ResultCondition {
            tool: map.text("tool").map(str::to_owned),
            matches: written(&map, "matches"),
            failed: map.bool("failed"),
        },
    }
}

/// A text, or a mapping that says more.
fn reply(view: View<'_>, map: Option<&Map<'_>>, mistakes: &mut Mistakes) -> WrittenReply {
    let Some(map) = map else { return WrittenReply { text: text_of(view), ..WrittenReply::default() } };
    let says_something = ["text", "json", "tool_calls"].into_iter().any(|key| map.has(key));
    if !says_something && !mistakes.within(Some(&view.place())) {
        mistakes.add(
            Some(&view.place()),
            "`reply` says nothing: it needs `text`, `json` or `tool_calls` (an empty reply is `reply: \"\"`)",
        );
    }
    WrittenReply {
        text: written(map, "text"),
        json: map.get("json").map(tree_of),
        reasoning: written(map, "reasoning"),
        tool_calls: map.list("tool_calls").into_iter().flatten().map(tool_call).collect(),
        stop: map.text("stop").map(|stop| StopReason::from(stop.to_owned())),
        usage: map.map("usage").map(|map| usage(&map)),
    }
}

/// A mapping, or the name alone of a tool without arguments.
fn tool_call(view: View<'_>) -> WrittenCall {
    let map = view.map(&CALL);
    let field = |key: &str| map.as_ref().and_then(|map| map.get(key));
    let text = |key: &str| field(key).and_then(View::text).map(str::to_owned);
    let nothing = || serde_json::Value::Object(serde_json::Map::new()).into();
    WrittenCall {
        name: view.text().map(str::to_owned).or_else(|| text("name")).unwrap_or_default(),
        id: text("id"),
        arguments: field("arguments").map_or_else(nothing, tree_of),
        place: Some(view.place()),
    }
}

fn usage(map: &Map<'_>) -> Usage {
    let tokens = |key: &str| map.integer(key).and_then(|number| u64::try_from(number).ok()).unwrap_or(0);
    Usage {
        input_tokens: tokens("input_tokens"),
        output_tokens: tokens("output_tokens"),
        cached_tokens: tokens("cached_tokens"),
        estimated: false,
    }
}

/// The kind alone, or a mapping that says more.
fn error(view: View<'_>, map: Option<&Map<'_>>) -> WrittenError {
    let Some(map) = map else { return WrittenError::new(view.text().map_or(ErrorKind::Server, kind)) };
    WrittenError {
        kind: map.text("kind").map_or(ErrorKind::Server, kind),
        message: written(map, "message"),
        status: map.integer("status").and_then(|status| u16::try_from(status).ok()),
        retry_after: millis(map, "retry_after_ms"),
        body: map.text("body").map(str::to_owned),
        after: written(map, "after"),
    }
}

/// The kind that a word of the shape stands for.
fn kind(word: &str) -> ErrorKind {
    match word {
        "network" => ErrorKind::Network,
        "timeout" => ErrorKind::Timeout,
        "rate_limit" => ErrorKind::RateLimit,
        "auth" => ErrorKind::Auth,
        "bad_request" => ErrorKind::BadRequest,
        "context_too_long" => ErrorKind::ContextTooLong,
        "decode" => ErrorKind::Decode,
        // Other words are mistakes already.
        _ => ErrorKind::Server,
    }
}

fn written(map: &Map<'_>, key: &str) -> Option<Written<String>> {
    map.get(key).and_then(text_of)
}

fn text_of(view: View<'_>) -> Option<Written<String>> {
    Some(Written { value: view.text()?.to_owned(), place: Some(view.place()) })
}

fn tree_of(view: View<'_>) -> WrittenTree {
    WrittenTree { node: view.node.clone(), source: Some(Arc::clone(view.source)) }
}

fn millis(map: &Map<'_>, key: &str) -> Option<Duration> {
    map.integer(key).and_then(|millis| u64::try_from(millis).ok()).map(Duration::from_millis)
}
