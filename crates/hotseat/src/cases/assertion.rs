//! Typed assertions: from the mapping that people write to a check.

use std::sync::Arc;

use serde_json::Value;

use super::assertion_shape::{EXPECTED_CALL, TOOL_CALLED_VALUE, TOOL_RESULT_VALUE};
use super::block::{budget, count, patterns};
use super::condition::conditions;
use super::criteria;
use super::judging::judging;
use super::limits::timeout;
use super::variables::mistake;
use crate::checks::{
    ArgumentMatch, Check, CheckKind, Claims, Contains, Equals, Expected, ExpectedCall, Fitting, Given, Goal,
    Grounded, HistoryOrder, InTopic, Intent, JsonPath, JsonSchema, Judged, Judging, ListIs, Matter, NumberIs,
    Open, Path, Pattern, ReachedTopic, Reference, Regex, Schema, Scripted, SequenceMatch, ToolCalled,
    ToolResult, ToolSequence, TopicHistory, TurnsRead, Type, ValueOf, ValueType,
};
use hotseat_document::{Diagnostics, Map, Place, View};

/// Reads an assertion that has the shape of its type: one check, or one for each criterion that it names. None if
/// something is wrong with it, which is said then.
pub(super) fn read(map: &Map<'_>, mistakes: &mut Diagnostics) -> Vec<Check> {
    let known = mistakes.len();
    let checks = match map.text("type") {
        Some("satisfy") => satisfy(map, mistakes),
        _ => kind(map, mistakes).map(|(kind, place)| Check::new(kind, place)).into_iter().collect(),
    };
    // A part that is wrong leaves no check behind that could pass without it.
    if mistakes.len() > known {
        return Vec::new();
    }
    let negated = map.bool("negate").unwrap_or(false);
    if negated && checks.len() > 1 {
        let wrong = mistake(
            map.key_place("negate"),
            "`negate` with several criteria says neither that none of them is satisfied nor that not all are",
        );
        mistakes.push(wrong.help("write an assertion for each criterion"));
        return Vec::new();
    }
    let message = map.text("message").map(str::to_string);
    let written = Arc::new(map.to_json());
    let common = |check: Check| Check {
        negated,
        message: message.clone(),
        written: Some(check.written.unwrap_or_else(|| written.clone())),
        ..check
    };
    checks.into_iter().map(common).collect()
}

/// `satisfy`: a check for each criterion.
fn satisfy(map: &Map<'_>, mistakes: &mut Diagnostics) -> Vec<Check> {
    let own = judging(map.get("judge"), mistakes);
    let Some(criteria) = map.get("criteria") else { return Vec::new() };
    let several: Vec<View<'_>> = criteria.one_or_many().flat_map(View::one_or_many).collect();
    let as_written = |view: View<'_>| {
        // Whichever spelling the key has, reports find one criterion under its main one.
        let mut written = map.to_json();
        if let Value::Object(members) = &mut written {
            ["criterion", "value"].iter().for_each(|alias| drop(members.shift_remove(*alias)));
            members.insert("criteria".to_string(), view.json());
        }
        Arc::new(written)
    };
    let mut checks = Vec::new();
    for view in several {
        if let Some(mut check) = criteria::used(view, &own, mistakes) {
            check.written = Some(as_written(view));
            checks.push(check);
        }
    }
    checks
}

/// What is asserted, and where the telling part of it is written.
fn kind(map: &Map<'_>, mistakes: &mut Diagnostics) -> Option<(CheckKind, Place)> {
    let place = |key: &str| map.place_of(key).unwrap_or_else(|| map.place());
    let kind = match map.text("type")? {
        word @ ("contains" | "not_contains") => {
            let text = as_text(&map.json("value")?);
            if text.is_empty() {
                let message = "an empty text is contained in every answer";
                mistakes.push(mistake(map.place_of("value"), message));
            }
            let there = word == "contains";
            (CheckKind::Contains(Contains { text, there, turns: turns_read(map) }), place("value"))
        }
        "equals" => (CheckKind::Equals(Equals { value: map.json("value")? }), place("value")),
        "regex" => {
            let patterns =
                patterns(map, "pattern", mistakes).into_iter().map(|(pattern, _)| pattern).collect();
            let fitting = if map.text("match") == Some("any") { Fitting::Any } else { Fitting::All };
            (CheckKind::Regex(regex(patterns, fitting, map, mistakes)), place("pattern"))
        }
        "json_path" => {
            let check = JsonPath { path: path(map.get("path")?, mistakes)?, value: map.json("value") };
            (CheckKind::JsonPath(check), place("path"))
        }
        "type" => {
            let wanted = Type::named(map.text("value")?)?;
            let path = optional_path(map, mistakes)?;
            (CheckKind::ValueType(ValueType { path, wanted }), place("value"))
        }
        "schema" => {
            let path = optional_path(map, mistakes)?;
            match Schema::compile(&map.json("schema")?) {
                Ok(schema) => (CheckKind::JsonSchema(JsonSchema { schema, path }), place("schema")),
                Err(words) => {
                    mistakes.push(mistake(map.place_of("schema"), words));
                    return None;
                }
            }
        }
        "tool_called" => tool_called(map, mistakes)?,
        "tool_result" => tool_result(map, mistakes)?,
        "tool_sequence" => (CheckKind::ToolSequence(tool_sequence(map, mistakes)?), place("calls")),
        "topic" => {
            let names = map.get("name")?.one_or_many().filter_map(View::text).map(str::to_string);
            (CheckKind::InTopic(InTopic { names: names.collect() }), place("name"))
        }
        "reached_topic" => {
            let name = map.text("name")?.to_string();
            (CheckKind::ReachedTopic(ReachedTopic { name }), place("name"))
        }
        "topic_history" => {
            let names = map.list("value")?.filter_map(View::text).map(str::to_string).collect();
            let order = match map.text("order") {
                Some("in_order") => HistoryOrder::InOrder,
                _ => HistoryOrder::Strict,
            };
            (CheckKind::TopicHistory(TopicHistory { names, order }), place("value"))
        }
        "value" => (CheckKind::ValueOf(value_of(map, mistakes)?), place("of")),
        name @ ("max_tokens" | "max_cost" | "max_tool_calls") => {
            (CheckKind::Budget(budget(name, map.get("value")?, mistakes)?), place("value"))
        }
        "agent" => judged(map, mistakes)?,
        "grounded" => {
            let matter = Grounded { types: texts(map, "types"), from_tools: texts(map, "from_tools") };
            asking(Matter::Grounded(matter), map, "types", mistakes)
        }
        "claims" => {
            let absolute = map.bool("absolute") == Some(true);
            let matter = Claims { forbid: texts(map, "forbid"), absolute };
            asking(Matter::Claims(matter), map, "forbid", mistakes)
        }
        "intent" => {
            let matter =
                match (map.text("intent"), map.text("described_as")) {
                    (name, Some(text)) => Intent { name: name.map(str::to_string), text: text.to_string() },
                    (Some(name), None) => Intent::named(name),
                    (None, None) => {
                        let wrong =
                            mistake(map.place_of("type"), "`intent` needs the `intent`, or `described_as`");
                        mistakes.push(wrong.help(
                            "`intent: gather_requirements`, or `described_as: asks what the user needs`",
                        ));
                        return None;
                    }
                };
            let key = if map.has("intent") { "intent" } else { "described_as" };
            asking(Matter::Intent(matter), map, key, mistakes)
        }
        "goal" => {
            let matter = Goal { text: map.text("goal").map(str::to_string) };
            let key = if map.has("goal") { "goal" } else { "type" };
            asking(Matter::Goal(matter), map, key, mistakes)
        }
        "script" => {
            let options = match map.json("options") {
                Some(Value::Object(options)) => options,
                _ => serde_json::Map::new(),
            };
            let function = map.text("use")?.to_string();
            let (expected, timeout) = (map.json("value"), timeout(map, mistakes));
            let check = Scripted { function, expected, options, timeout, given: Given::Answer, text: None };
            (CheckKind::Scripted(check), place("use"))
        }
        _ => return None,
    };
    Some(kind)
}

/// Of several turns, those whose words are read.
fn turns_read(map: &Map<'_>) -> Option<TurnsRead> {
    map.text("turns").and_then(TurnsRead::named)
}

/// `regex`: of several patterns that all have to fit, `negate` does not say which may not.
fn regex(patterns: Vec<Pattern>, fitting: Fitting, map: &Map<'_>, mistakes: &mut Diagnostics) -> Regex {
    if patterns.len() > 1 && fitting == Fitting::All && map.bool("negate") == Some(true) {
        let message =
            "`negate` with several patterns says neither that none of them fits nor that not all do";
        let wrong = mistake(map.key_place("negate"), message);
        mistakes.push(
            wrong.help(
                "`match: any` with `negate` says that none fits; or write an assertion for each pattern",
            ),
        );
    }
    if patterns.len() == 1 && map.get("pattern").is_some_and(|view| view.text().is_some()) && map.has("match")
    {
        let message = "`match` says how many of several patterns have to fit, and there is one";
        mistakes.push(mistake(map.key_place("match"), message));
    }
    Regex { patterns, fitting, turns: turns_read(map) }
}

/// Text as it is, everything else as compact JSON.
fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn path(view: View<'_>, mistakes: &mut Diagnostics) -> Option<Path> {
    match Path::parse(view.text()?) {
        Ok(path) => Some(path),
        Err(words) => {
            mistakes.push(mistake(Some(view.place()), format!("this is not a JSON path: {words}")));
            None
        }
    }
}

/// The path, if there is one; none at all if it is wrong.
fn optional_path(map: &Map<'_>, mistakes: &mut Diagnostics) -> Option<Option<Path>> {
    match map.get("path") {
        Some(view) => path(view, mistakes).map(Some),
        None => Some(None),
    }
}

fn tool_called(map: &Map<'_>, mistakes: &mut Diagnostics) -> Option<(CheckKind, Place)> {
    let value = map.get("value");
    let named = value.and_then(|value| value.map(&TOOL_CALLED_VALUE));
    let names: Vec<&str> = match (map.text("name"), value, &named) {
        (Some(name), None, _) => vec![name],
        (None, Some(_), Some(named)) => vec![named.text("name")?],
        (None, Some(value), None) => value.one_or_many().filter_map(View::text).collect(),
        (Some(_), Some(_), _) => {
            mistakes.push(mistake(map.place_of("value"), "`name` and `value` both name the tool"));
            return None;
        }
        (None, None, _) => {
            mistakes.push(mistake(Some(map.place()), "`tool_called` needs the `name` of a tool"));
            return None;
        }
    };
    let inner = named.as_ref().and_then(|named| named.json("arguments"));
    let arguments = match (map.json("arguments"), inner) {
        (Some(_), Some(_)) => {
            mistakes.push(mistake(map.place_of("arguments"), "the arguments are given twice"));
            return None;
        }
        (outer, inner) => outer.or(inner),
    };
    let how = match map.text("match") {
        Some("exact") => ArgumentMatch::Exact,
        _ => ArgumentMatch::Subset,
    };
    if map.has("match") && arguments.is_none() {
        mistakes.push(mistake(
            map.key_place("match"),
            "`match` says how `arguments` are compared, and there are none",
        ));
    }
    let check = ToolCalled {
        names: names.into_iter().map(str::to_string).collect(),
        arguments: arguments.map(|arguments| (arguments, how)),
        conditions: map.get("where").map(|view| conditions(view, mistakes)).unwrap_or_default(),
        count: count(map.map("count"), mistakes),
    };
    let place = map.place_of("name").or_else(|| map.place_of("value")).unwrap_or_else(|| map.place());
    Some((CheckKind::ToolCalled(check), place))
}

fn tool_result(map: &Map<'_>, mistakes: &mut Diagnostics) -> Option<(CheckKind, Place)> {
    let inner = map.get("value").and_then(|value| value.map(&TOOL_RESULT_VALUE));
    let written = match (&inner, map.has("tool") || map.has("result")) {
        (Some(_), true) => {
            mistakes.push(mistake(
                map.place_of("value"),
                "`value` stands for `tool` and `result`; write one or the other",
            ));
            return None;
        }
        (Some(inner), false) => inner,
        (None, _) => map,
    };
    let Some(name) = written.text("tool") else {
        mistakes.push(mistake(Some(map.place()), "`tool_result` needs the name of a `tool`"));
        return None;
    };
    let result = match written.get("result") {
        None => None,
        Some(view) => match Expected::read(&view.json()) {
            Ok(expected) => Some((view.json(), expected)),
            Err(words) => {
                mistakes.push(mistake(Some(view.place()), words));
                return None;
            }
        },
    };
    let place =
        written.place_of("result").or_else(|| written.place_of("tool")).unwrap_or_else(|| map.place());
    Some((CheckKind::ToolResult(ToolResult { name: name.to_string(), result }), place))
}

fn judged(map: &Map<'_>, mistakes: &mut Diagnostics) -> Option<(CheckKind, Place)> {
    let judge = match map.get("use") {
        Some(view) => Some(reference(view, mistakes)?),
        None => None,
    };
    let options = match map.json("options") {
        Some(Value::Object(options)) => options,
        _ => serde_json::Map::new(),
    };
    let metadata = options.get("metadata");
    let told = metadata.and_then(|metadata| metadata.get("criteria")).cloned();
    if told.is_some() && map.has("criteria") {
        let words = "`criteria` stands here and under `options.metadata`";
        mistakes.push(mistake(map.place_of("criteria"), words).help("leave one of them out"));
        return None;
    }
    let criteria = map.json("criteria").or(told);
    if criteria.is_none() && judge.is_none() {
        let words = "`agent` needs `criteria`, or a judge of its own under `use`";
        mistakes.push(mistake(map.place_of("type"), words));
        return None;
    }
    let place = map.place_of("criteria").or_else(|| map.place_of("use")).unwrap_or_else(|| map.place());
    let connector = options.get("connector").and_then(Value::as_str).map(str::to_string);
    let judging = Judging { judge, connector, ..Judging::default() };
    Some((CheckKind::Judged(Judged { matter: Matter::Open(Open { criteria, options }), judging }), place))
}

/// A check that a judge decides.
fn asking(matter: Matter, map: &Map<'_>, key: &str, mistakes: &mut Diagnostics) -> (CheckKind, Place) {
    let judging = judging(map.get("judge"), mistakes);
    let place = map.place_of(key).unwrap_or_else(|| map.place());
    (CheckKind::Judged(Judged { matter, judging }), place)
}

/// `value`: one comparison, and one that suits what is compared.
fn value_of(map: &Map<'_>, mistakes: &mut Diagnostics) -> Option<ValueOf> {
    const COMPARISONS: [&str; 4] = ["equals", "at_least", "at_most", "contains"];
    let of = map.text("of")?;
    let is_number = of == "turn_count";
    let suits =
        if is_number { "`equals`, `at_least` or `at_most` with a number" } else { "`equals` or `contains`" };
    let suits = format!("`{of}` is compared by {suits}");
    let mut written = COMPARISONS.iter().filter(|key| map.has(key));
    let (Some(key), None) = (written.next(), written.next()) else {
        mistakes.push(mistake(map.place_of("of"), "`value` needs one comparison").help(suits));
        return None;
    };
    let view = map.get(key)?;
    let number = || view.json().as_u64();
    let list = || {
        let names = view.one_or_many().filter_map(View::text).map(str::to_string).collect::<Vec<_>>();
        (view.json().as_u64().is_none()).then_some(names)
    };
    let number = match *key {
        "equals" => number().map(NumberIs::Equal),
        "at_least" => number().map(NumberIs::AtLeast),
        "at_most" => number().map(NumberIs::AtMost),
        _ => None,
    };
    let list = match *key {
        "equals" => list().map(ListIs::Equal),
        "contains" => list().map(ListIs::Containing),
        _ => None,
    };
    let compared = match of {
        "turn_count" => number.map(ValueOf::TurnCount),
        "tool_names" => list.map(ValueOf::ToolNames),
        _ => list.map(ValueOf::TopicHistory),
    };
    if compared.is_none() {
        mistakes.push(mistake(map.place_of(key), suits));
    }
    compared
}

/// One text or several.
fn texts(map: &Map<'_>, key: &str) -> Vec<String> {
    let view = map.get(key);
    view.into_iter().flat_map(View::one_or_many).filter_map(View::text).map(str::to_string).collect()
}

/// A reference to a helper.
pub(super) fn reference(view: View<'_>, mistakes: &mut Diagnostics) -> Option<Reference> {
    match Reference::parse(view.text()?) {
        Ok(reference) => Some(reference),
        Err(words) => {
            mistakes.push(mistake(Some(view.place()), words));
            None
        }
    }
}

fn tool_sequence(map: &Map<'_>, mistakes: &mut Diagnostics) -> Option<ToolSequence> {
    let calls = map.list("calls")?.filter_map(|view| {
        if let Some(name) = view.text() {
            return Some(ExpectedCall { name: name.to_string(), arguments: None });
        }
        let call = view.map(&EXPECTED_CALL)?;
        Some(ExpectedCall { name: call.text("name")?.to_string(), arguments: call.json("arguments") })
    });
    let calls: Vec<ExpectedCall> = calls.collect();
    let only = map.list("only").map(|names| names.filter_map(View::text).map(str::to_string).collect());
    if let Some(only) = &only {
        let only: &Vec<String> = only;
        for (call, view) in
            calls.iter().zip(map.list("calls")?).filter(|(call, _)| !only.contains(&call.name))
        {
            let message = format!("`{}` is expected, and `only` leaves its calls out", call.name);
            mistakes.push(mistake(Some(view.place()), message));
        }
    }
    let order = map.text("order").unwrap_or_default();
    if calls.is_empty() && matches!(order, "in_order" | "superset") {
        let message = format!("no calls with `order: {order}` asserts nothing");
        mistakes
            .push(mistake(map.place_of("calls"), message).help("`order: strict` means that there are none"));
    }
    Some(ToolSequence {
        calls,
        only,
        order: match order {
            "in_order" => SequenceMatch::InOrder,
            "unordered" => SequenceMatch::Unordered,
            "subset" => SequenceMatch::Subset,
            "superset" => SequenceMatch::Superset,
            _ => SequenceMatch::Strict,
        },
        arguments: match map.text("arguments") {
            Some("subset") => ArgumentMatch::Subset,
            Some("ignored") => ArgumentMatch::Ignored,
            _ => ArgumentMatch::Exact,
        },
    })
}
