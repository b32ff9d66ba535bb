//! Decodes typed assertions into checks.

use std::sync::Arc;

use serde_json::Value;

use super::assertion_shape::{EXPECTED_CALL, TOOL_CALLED_VALUE, TOOL_RESULT_VALUE};
use super::block::{read_budget, read_count, read_patterns};
use super::condition::read_conditions;
use super::criteria;
use super::judging::read_judging;
use super::limits::read_timeout;
use super::variables::diagnostic_at;
use hotseat_checks::{
    AgentIntent, AnswerEquals, ArgumentMatch, Check, CheckKind, CompiledSchema, ContainsText,
    ConversationValue, CurrentTopic, ExpectedResult, ForbiddenClaims, FreeFormCriterion, GoalAchieved,
    GroundedClaims, HistoryOrder, JsonPathCheck, JsonPathQuery, JsonSchemaCheck, JsonTypeCheck,
    JsonValueType, JudgeCriterion, JudgeSettings, JudgedCheck, ListComparison, MatchMode, NumberComparison,
    Pattern, RegexCheck, RoleReference, ScriptCheck, ScriptInputKind, SequenceCall, SequenceMatch,
    ToolCalled, ToolResultCheck, ToolSequence, TopicHistory, TopicReached, TurnSelection,
};
use hotseat_document::{Diagnostics, MapView, NodeView, SourceSpan};

/// Decodes an assertion that matches its shape: one check, or one per criterion. Returns nothing after
/// reporting an error.
pub(super) fn read_assertion(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Vec<Check> {
    let known = diagnostics.len();
    let checks = match map.text("type") {
        Some("satisfy") => satisfy_checks(map, diagnostics),
        _ => check_kind(map, diagnostics).map(|(kind, place)| Check::new(kind, place)).into_iter().collect(),
    };
    // An assertion with an invalid part must not leave a check that could pass without it.
    if diagnostics.len() > known {
        return Vec::new();
    }
    let negated = map.bool("negate").unwrap_or(false);
    if negated && checks.len() > 1 {
        let wrong = diagnostic_at(
            map.key_place("negate"),
            "`negate` with several criteria is ambiguous: none satisfied, or not all",
        );
        diagnostics.push(wrong.help("write one assertion per criterion"));
        return Vec::new();
    }
    let message = map.text("message").map(str::to_string);
    let written = Arc::new(map.to_json());
    let common = |check: Check| Check {
        negated,
        message: message.clone(),
        definition: Some(check.definition.unwrap_or_else(|| written.clone())),
        ..check
    };
    checks.into_iter().map(common).collect()
}

/// Decodes `satisfy`: one check per criterion.
fn satisfy_checks(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Vec<Check> {
    let own = read_judging(map.get("judge"), diagnostics);
    let Some(criteria) = map.get("criteria") else { return Vec::new() };
    let several: Vec<NodeView<'_>> = criteria.one_or_many().flat_map(NodeView::one_or_many).collect();
    let as_written = |view: NodeView<'_>| {
        // Reports list a criterion under the main spelling of the key.
        let mut written = map.to_json();
        if let Value::Object(members) = &mut written {
            ["criterion", "value"].iter().for_each(|alias| drop(members.shift_remove(*alias)));
            members.insert("criteria".to_string(), view.json());
        }
        Arc::new(written)
    };
    let mut checks = Vec::new();
    for view in several {
        if let Some(mut check) = criteria::read_criterion_use(view, &own, diagnostics) {
            check.definition = Some(as_written(view));
            checks.push(check);
        }
    }
    checks
}

/// Decodes the kind of check, and the position of its most significant key.
fn check_kind(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Option<(CheckKind, SourceSpan)> {
    let place = |key: &str| map.place_of(key).unwrap_or_else(|| map.place());
    let kind = match map.text("type")? {
        word @ ("contains" | "not_contains") => {
            let text = value_text(&map.json("value")?);
            if text.is_empty() {
                let message = "an empty text is contained in every answer";
                diagnostics.push(diagnostic_at(map.place_of("value"), message));
            }
            let there = word == "contains";
            (
                CheckKind::ContainsText(ContainsText { text, must_contain: there, turns: turns_read(map) }),
                place("value"),
            )
        }
        "equals" => (CheckKind::AnswerEquals(AnswerEquals { value: map.json("value")? }), place("value")),
        "regex" => {
            let patterns =
                read_patterns(map, "pattern", diagnostics).into_iter().map(|(pattern, _)| pattern).collect();
            let fitting = if map.text("match") == Some("any") { MatchMode::Any } else { MatchMode::All };
            (CheckKind::Regex(regex_check(patterns, fitting, map, diagnostics)), place("pattern"))
        }
        "json_path" => {
            let check =
                JsonPathCheck { path: json_path(map.get("path")?, diagnostics)?, value: map.json("value") };
            (CheckKind::JsonPath(check), place("path"))
        }
        "type" => {
            let wanted = JsonValueType::from_name(map.text("value")?)?;
            let path = optional_path(map, diagnostics)?;
            (CheckKind::JsonType(JsonTypeCheck { path, expected: wanted }), place("value"))
        }
        "schema" => {
            let path = optional_path(map, diagnostics)?;
            match CompiledSchema::compile(&map.json("schema")?) {
                Ok(schema) => (CheckKind::JsonSchema(JsonSchemaCheck { schema, path }), place("schema")),
                Err(words) => {
                    diagnostics.push(diagnostic_at(map.place_of("schema"), words));
                    return None;
                }
            }
        }
        "tool_called" => tool_called_check(map, diagnostics)?,
        "tool_result" => tool_result_check(map, diagnostics)?,
        "tool_sequence" => (CheckKind::ToolSequence(tool_sequence_check(map, diagnostics)?), place("calls")),
        "topic" => {
            let names = map.get("name")?.one_or_many().filter_map(NodeView::text).map(str::to_string);
            (CheckKind::CurrentTopic(CurrentTopic { names: names.collect() }), place("name"))
        }
        "reached_topic" => {
            let name = map.text("name")?.to_string();
            (CheckKind::TopicReached(TopicReached { name }), place("name"))
        }
        "topic_history" => {
            let names = map.list("value")?.filter_map(NodeView::text).map(str::to_string).collect();
            let order = match map.text("order") {
                Some("in_order") => HistoryOrder::InOrder,
                _ => HistoryOrder::Strict,
            };
            (CheckKind::TopicHistory(TopicHistory { names, order }), place("value"))
        }
        "value" => (CheckKind::ConversationValue(value_check(map, diagnostics)?), place("of")),
        name @ ("max_tokens" | "max_cost" | "max_tool_calls") => {
            (CheckKind::UsageBudget(read_budget(name, map.get("value")?, diagnostics)?), place("value"))
        }
        "agent" => agent_check(map, diagnostics)?,
        "grounded" => {
            let matter =
                GroundedClaims { types: text_list(map, "types"), from_tools: text_list(map, "from_tools") };
            judged_check(JudgeCriterion::Grounded(matter), map, "types", diagnostics)
        }
        "claims" => {
            let absolute = map.bool("absolute") == Some(true);
            let matter = ForbiddenClaims { forbid: text_list(map, "forbid"), absolute };
            judged_check(JudgeCriterion::Claims(matter), map, "forbid", diagnostics)
        }
        "intent" => {
            let matter = match (map.text("intent"), map.text("described_as")) {
                (name, Some(text)) => AgentIntent { name: name.map(str::to_string), text: text.to_string() },
                (Some(name), None) => AgentIntent::from_name(name),
                (None, None) => {
                    let wrong =
                        diagnostic_at(map.place_of("type"), "`intent` needs the `intent`, or `described_as`");
                    diagnostics.push(
                        wrong.help(
                            "`intent: gather_requirements`, or `described_as: asks what the user needs`",
                        ),
                    );
                    return None;
                }
            };
            let key = if map.has("intent") { "intent" } else { "described_as" };
            judged_check(JudgeCriterion::Intent(matter), map, key, diagnostics)
        }
        "goal" => {
            let matter = GoalAchieved { text: map.text("goal").map(str::to_string) };
            let key = if map.has("goal") { "goal" } else { "type" };
            judged_check(JudgeCriterion::Goal(matter), map, key, diagnostics)
        }
        "script" => {
            let options = match map.json("options") {
                Some(Value::Object(options)) => options,
                _ => serde_json::Map::new(),
            };
            let function = map.text("use")?.to_string();
            let (expected, timeout) = (map.json("value"), read_timeout(map, diagnostics));
            let check = ScriptCheck {
                function,
                expected,
                options,
                timeout,
                input_kind: ScriptInputKind::Answer,
                text: None,
            };
            (CheckKind::Script(check), place("use"))
        }
        _ => return None,
    };
    Some(kind)
}

/// Decodes which of several turns are evaluated.
fn turns_read(map: &MapView<'_>) -> Option<TurnSelection> {
    map.text("turns").and_then(TurnSelection::from_name)
}

/// Decodes `regex`. `negate` is ambiguous if several patterns all have to match.
fn regex_check(
    patterns: Vec<Pattern>,
    fitting: MatchMode,
    map: &MapView<'_>,
    diagnostics: &mut Diagnostics,
) -> RegexCheck {
    if patterns.len() > 1 && fitting == MatchMode::All && map.bool("negate") == Some(true) {
        let message = "`negate` with several patterns is ambiguous: none matches, or not all";
        let wrong = diagnostic_at(map.key_place("negate"), message);
        diagnostics
            .push(wrong.help(
                "use `match: any` with `negate` if none may match, or write one assertion per pattern",
            ));
    }
    if patterns.len() == 1 && map.get("pattern").is_some_and(|view| view.text().is_some()) && map.has("match")
    {
        let message = "`match` applies to several patterns, and there is only one";
        diagnostics.push(diagnostic_at(map.key_place("match"), message));
    }
    RegexCheck { patterns, mode: fitting, turns: turns_read(map) }
}

/// Text unchanged, anything else as compact JSON.
fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn json_path(view: NodeView<'_>, diagnostics: &mut Diagnostics) -> Option<JsonPathQuery> {
    match JsonPathQuery::parse(view.text()?) {
        Ok(path) => Some(path),
        Err(words) => {
            diagnostics.push(diagnostic_at(Some(view.place()), format!("invalid JSON path: {words}")));
            None
        }
    }
}

/// Decodes an optional path. The outer `None` means that it is invalid.
fn optional_path(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Option<Option<JsonPathQuery>> {
    match map.get("path") {
        Some(view) => json_path(view, diagnostics).map(Some),
        None => Some(None),
    }
}

fn tool_called_check(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Option<(CheckKind, SourceSpan)> {
    let value = map.get("value");
    let named = value.and_then(|value| value.map(&TOOL_CALLED_VALUE));
    let names: Vec<&str> = match (map.text("name"), value, &named) {
        (Some(name), None, _) => vec![name],
        (None, Some(_), Some(named)) => vec![named.text("name")?],
        (None, Some(value), None) => value.one_or_many().filter_map(NodeView::text).collect(),
        (Some(_), Some(_), _) => {
            diagnostics.push(diagnostic_at(
                map.place_of("value"),
                "both `name` and `value` name the tool; remove one",
            ));
            return None;
        }
        (None, None, _) => {
            diagnostics.push(diagnostic_at(Some(map.place()), "`tool_called` needs the `name` of a tool"));
            return None;
        }
    };
    let inner = named.as_ref().and_then(|named| named.json("arguments"));
    let arguments = match (map.json("arguments"), inner) {
        (Some(_), Some(_)) => {
            diagnostics
                .push(diagnostic_at(map.place_of("arguments"), "the arguments are set twice; remove one"));
            return None;
        }
        (outer, inner) => outer.or(inner),
    };
    let match_mode = match map.text("match") {
        Some("exact") => ArgumentMatch::Exact,
        _ => ArgumentMatch::Subset,
    };
    if map.has("match") && arguments.is_none() {
        diagnostics.push(diagnostic_at(
            map.key_place("match"),
            "`match` applies to `arguments`, and there are none",
        ));
    }
    let check = ToolCalled {
        names: names.into_iter().map(str::to_string).collect(),
        arguments: arguments.map(|arguments| (arguments, match_mode)),
        conditions: map.get("where").map(|view| read_conditions(view, diagnostics)).unwrap_or_default(),
        count: read_count(map.map("count"), diagnostics),
    };
    let place = map.place_of("name").or_else(|| map.place_of("value")).unwrap_or_else(|| map.place());
    Some((CheckKind::ToolCalled(check), place))
}

fn tool_result_check(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Option<(CheckKind, SourceSpan)> {
    let inner = map.get("value").and_then(|value| value.map(&TOOL_RESULT_VALUE));
    let written = match (&inner, map.has("tool") || map.has("result")) {
        (Some(_), true) => {
            diagnostics.push(diagnostic_at(
                map.place_of("value"),
                "`value` replaces `tool` and `result`; use one or the other",
            ));
            return None;
        }
        (Some(inner), false) => inner,
        (None, _) => map,
    };
    let Some(name) = written.text("tool") else {
        diagnostics.push(diagnostic_at(Some(map.place()), "`tool_result` needs the name of a `tool`"));
        return None;
    };
    let result = match written.get("result") {
        None => None,
        Some(view) => match ExpectedResult::parse(&view.json()) {
            Ok(expected) => Some((view.json(), expected)),
            Err(words) => {
                diagnostics.push(diagnostic_at(Some(view.place()), words));
                return None;
            }
        },
    };
    let place =
        written.place_of("result").or_else(|| written.place_of("tool")).unwrap_or_else(|| map.place());
    Some((CheckKind::ToolResult(ToolResultCheck { name: name.to_string(), result }), place))
}

fn agent_check(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Option<(CheckKind, SourceSpan)> {
    let judge = match map.get("use") {
        Some(view) => Some(role_reference(view, diagnostics)?),
        None => None,
    };
    let options = match map.json("options") {
        Some(Value::Object(options)) => options,
        _ => serde_json::Map::new(),
    };
    let metadata = options.get("metadata");
    let from_metadata = metadata.and_then(|metadata| metadata.get("criteria")).cloned();
    if from_metadata.is_some() && map.has("criteria") {
        let words = "`criteria` is set here and under `options.metadata`";
        diagnostics.push(diagnostic_at(map.place_of("criteria"), words).help("remove one of them"));
        return None;
    }
    let criteria = map.json("criteria").or(from_metadata);
    if criteria.is_none() && judge.is_none() {
        let words = "`agent` needs `criteria`, or a judge of its own under `use`";
        diagnostics.push(diagnostic_at(map.place_of("type"), words));
        return None;
    }
    let place = map.place_of("criteria").or_else(|| map.place_of("use")).unwrap_or_else(|| map.place());
    let connector = options.get("connector").and_then(Value::as_str).map(str::to_string);
    let judging = JudgeSettings { judge, connector, ..JudgeSettings::default() };
    Some((
        CheckKind::Judged(JudgedCheck {
            criterion: JudgeCriterion::FreeForm(FreeFormCriterion { criteria, options }),
            settings: judging,
        }),
        place,
    ))
}

/// Creates a judged check.
fn judged_check(
    matter: JudgeCriterion,
    map: &MapView<'_>,
    key: &str,
    diagnostics: &mut Diagnostics,
) -> (CheckKind, SourceSpan) {
    let judging = read_judging(map.get("judge"), diagnostics);
    let place = map.place_of(key).unwrap_or_else(|| map.place());
    (CheckKind::Judged(JudgedCheck { criterion: matter, settings: judging }), place)
}

/// Decodes `value`: exactly one comparison, which must suit the compared value.
fn value_check(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Option<ConversationValue> {
    const COMPARISONS: [&str; 4] = ["equals", "at_least", "at_most", "contains"];
    let of = map.text("of")?;
    let is_number = of == "turn_count";
    let suits =
        if is_number { "`equals`, `at_least` or `at_most` with a number" } else { "`equals` or `contains`" };
    let suits = format!("`{of}` supports {suits}");
    let mut written = COMPARISONS.iter().filter(|key| map.has(key));
    let (Some(key), None) = (written.next(), written.next()) else {
        diagnostics
            .push(diagnostic_at(map.place_of("of"), "`value` needs exactly one comparison").help(suits));
        return None;
    };
    let view = map.get(key)?;
    let number = || view.json().as_u64();
    let list = || {
        let names = view.one_or_many().filter_map(NodeView::text).map(str::to_string).collect::<Vec<_>>();
        (view.json().as_u64().is_none()).then_some(names)
    };
    let number = match *key {
        "equals" => number().map(NumberComparison::Equal),
        "at_least" => number().map(NumberComparison::AtLeast),
        "at_most" => number().map(NumberComparison::AtMost),
        _ => None,
    };
    let list = match *key {
        "equals" => list().map(ListComparison::Equal),
        "contains" => list().map(ListComparison::Containing),
        _ => None,
    };
    let compared = match of {
        "turn_count" => number.map(ConversationValue::TurnCount),
        "tool_names" => list.map(ConversationValue::ToolNames),
        _ => list.map(ConversationValue::TopicHistory),
    };
    if compared.is_none() {
        diagnostics.push(diagnostic_at(map.place_of(key), suits));
    }
    compared
}

/// One text or several.
fn text_list(map: &MapView<'_>, key: &str) -> Vec<String> {
    let view = map.get(key);
    view.into_iter().flat_map(NodeView::one_or_many).filter_map(NodeView::text).map(str::to_string).collect()
}

/// Decodes a reference to a role.
pub(super) fn role_reference(view: NodeView<'_>, diagnostics: &mut Diagnostics) -> Option<RoleReference> {
    match RoleReference::parse(view.text()?) {
        Ok(reference) => Some(reference),
        Err(words) => {
            diagnostics.push(diagnostic_at(Some(view.place()), words));
            None
        }
    }
}

fn tool_sequence_check(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Option<ToolSequence> {
    let calls = map.list("calls")?.filter_map(|view| {
        if let Some(name) = view.text() {
            return Some(SequenceCall { name: name.to_string(), arguments: None });
        }
        let call = view.map(&EXPECTED_CALL)?;
        Some(SequenceCall { name: call.text("name")?.to_string(), arguments: call.json("arguments") })
    });
    let calls: Vec<SequenceCall> = calls.collect();
    let only = map.list("only").map(|names| names.filter_map(NodeView::text).map(str::to_string).collect());
    if let Some(only) = &only {
        let only: &Vec<String> = only;
        for (call, view) in
            calls.iter().zip(map.list("calls")?).filter(|(call, _)| !only.contains(&call.name))
        {
            let message = format!("`{}` is expected, but `only` excludes its calls", call.name);
            diagnostics.push(diagnostic_at(Some(view.place()), message));
        }
    }
    let order = map.text("order").unwrap_or_default();
    if calls.is_empty() && matches!(order, "in_order" | "superset") {
        let message = format!("no calls with `order: {order}` asserts nothing");
        diagnostics.push(
            diagnostic_at(map.place_of("calls"), message)
                .help("use `order: strict` to require that there are no calls"),
        );
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
