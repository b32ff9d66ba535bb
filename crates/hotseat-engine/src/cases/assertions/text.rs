//! Assertions about the text of the agent: `contains`, `not_contains`, `equals`, `regex`.

use super::prelude::*;
use hotseat_checks::{AnswerEquals, ContainsText, MatchMode, RegexCheck, TurnSelection};

const TURNS_READ: Field = Field::optional(
    "turns",
    Kind::Choice(TurnSelection::NAMES),
    "The turns to evaluate. Default: all turns of a visit for assertions of a topic, else the last turn.",
);

assertion_type!(
    CONTAINS,
    "Contains",
    "contains",
    "The agent's text contains a text (case-sensitive).",
    [Field::required("value", Kind::Json, "The text; anything else as compact JSON."), TURNS_READ],
    |map, diagnostics| read_contains(map, true, diagnostics),
    value_label
);

assertion_type!(
    NOT_CONTAINS,
    "NotContains",
    "not_contains",
    "The agent's text does not contain a text (case-sensitive).",
    [Field::required("value", Kind::Json, "The text; anything else as compact JSON."), TURNS_READ],
    |map, diagnostics| read_contains(map, false, diagnostics),
    value_label
);

assertion_type!(
    EQUALS,
    "Equals",
    "equals",
    "The answer equals this value. The last of several messages is the answer.",
    [Field::required(
        "value",
        Kind::Json,
        "Text is compared exactly; anything else as JSON, regardless of key order, with 1 equal to 1.0.",
    )],
    |map, _| check_at(map, "value", CheckKind::AnswerEquals(AnswerEquals { value: map.json("value")? })),
    value_label
);

assertion_type!(
    REGEX,
    "Regex",
    "regex",
    "The agent's text matches a regular expression anywhere.",
    [
        Field::required(
            "pattern",
            Kind::OneOf(&[Kind::Pattern, Kind::NonEmptyList(&Kind::Pattern)]),
            "The regular expression, or several.",
        )
        .aliases(&["value"]),
        Field::optional(
            "match",
            Kind::Choice(&["all", "any"]),
            "Whether all patterns have to match or any of them. With `any` and `negate` none may match.",
        )
        .default("all"),
        TURNS_READ,
    ],
    read_regex,
    |written| Some(format!("regex /{}/", written.get("pattern")?.as_str()?))
);

/// Decodes `contains` and `not_contains`.
fn read_contains(map: &MapView<'_>, must_contain: bool, diagnostics: &mut Diagnostics) -> Option<Vec<Check>> {
    let text = match map.json("value")? {
        Value::String(text) => text,
        other => other.to_string(),
    };
    if text.is_empty() {
        let message = "an empty text is contained in every answer";
        diagnostics.push(diagnostic_at(map.place_of("value"), message));
    }
    let check = ContainsText { text, must_contain, turns: turns_read(map) };
    check_at(map, "value", CheckKind::ContainsText(check))
}

/// Decodes `regex`. `negate` is ambiguous if several patterns all have to match.
fn read_regex(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Option<Vec<Check>> {
    let patterns: Vec<_> =
        read_patterns(map, "pattern", diagnostics).into_iter().map(|(pattern, _)| pattern).collect();
    let mode = if map.text("match") == Some("any") { MatchMode::Any } else { MatchMode::All };
    if patterns.len() > 1 && mode == MatchMode::All && map.bool("negate") == Some(true) {
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
    check_at(map, "pattern", CheckKind::Regex(RegexCheck { patterns, mode, turns: turns_read(map) }))
}

/// Decodes which of several turns are evaluated.
fn turns_read(map: &MapView<'_>) -> Option<TurnSelection> {
    map.text("turns").and_then(TurnSelection::from_name)
}

/// Formats `contains "submitted"`.
fn value_label(written: &Value) -> Option<String> {
    Some(format!("{} {}", written.get("type")?.as_str()?, written.get("value")?))
}
