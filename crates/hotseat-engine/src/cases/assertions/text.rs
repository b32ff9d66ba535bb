//! Assertions about the text of the agent: `contains`, `not_contains`, `equals`, `regex`.

use std::sync::Arc;

use super::prelude::*;
use hotseat_checks::{AnswerEquals, ContainsText, MatchMode, Pattern, RegexCheck, TurnSelection};
use hotseat_document::SourceSpan;
use hotseat_trace::{filled_text, plain_text};

document_shape! {
    /// The turns to evaluate. Default: all turns of a visit for assertions of a topic, else the last turn.
    const TURNS_READ: optional "turns" = Kind::Choice(TurnSelection::NAMES),
}

assertion_type! {
    /// The agent's text contains a text, or all of several (case-sensitive).
    CONTAINS "Contains" "contains" {
        /// The text, or a list of them. Anything else is searched as compact JSON and must be written like that.
        required "value" = Kind::Json,
        ..TURNS_READ,
    }
    |map, diagnostics| read_contains(map, true, diagnostics),
    value_label
}

assertion_type! {
    /// The agent's text does not contain a text, or any of several (case-sensitive).
    NOT_CONTAINS "NotContains" "not_contains" {
        /// The text, or a list of them. Anything else is searched as compact JSON and must be written like that.
        required "value" = Kind::Json,
        ..TURNS_READ,
    }
    |map, diagnostics| read_contains(map, false, diagnostics),
    value_label
}

assertion_type! {
    /// The answer equals this value. The last of several messages is the answer.
    EQUALS "Equals" "equals" {
        /// Text is compared exactly; anything else as JSON, regardless of key order, with 1 equal to 1.0.
        required "value" = Kind::Json,
    }
    |map, _| check_at(map, "value", CheckKind::AnswerEquals(AnswerEquals { value: map.json("value")? })),
    value_label
}

assertion_type! {
    /// The agent's text matches a regular expression anywhere.
    REGEX "Regex" "regex" {
        /// The regular expression, or several.
        required "pattern" = Kind::OneOf(&[Kind::Pattern, Kind::NonEmptyList(&Kind::Pattern)]),
            aliases &["value"],
        /// Whether all patterns have to match or any of them. With `any` and `negate` none may match.
        optional "match" = Kind::Choice(&["all", "any"]), shown "all",
        ..TURNS_READ,
    }
    read_regex,
    |written| Some(format!("regex /{}/", written.get("pattern")?.as_str()?))
}

/// Decodes `contains` and `not_contains`: one check for each text.
fn read_contains(map: &MapView<'_>, must_contain: bool, diagnostics: &mut Diagnostics) -> Option<Vec<Check>> {
    let value = map.get("value")?;
    let written = map.to_json();
    let checks: Vec<_> = value
        .one_or_many()
        .map(|view| {
            let value = view.json();
            // The number of a variable has the same text as within a message.
            let text = if view.written().is_some() { plain_text(&value) } else { filled_text(&value) };
            if text.is_empty() {
                diagnostics.report(view.place(), "an empty text is contained in every answer");
            } else if value.is_null() {
                diagnostics.report(view.place(), "null is not a text; write \"null\" for the word");
            } else if view.text().is_none()
                && let Some(literal) = view.written().filter(|literal| *literal != text)
            {
                let wrong = Diagnostic::new(format!("this searches for {text:?}, not for what is written"));
                diagnostics.push(wrong.at(view.place()).help(format!("write {literal:?} to mean text")));
            }
            let mut definition = written.clone();
            definition["value"] = value;
            let kind = CheckKind::ContainsText(ContainsText { text, must_contain, turns: turns_read(map) });
            Check { definition: Some(Arc::new(definition)), ..Check::new(kind, view.place()) }
        })
        .collect();
    if checks.is_empty() {
        diagnostics.report(value.place(), "this list is empty, so nothing is asserted");
    }
    Some(checks)
}

/// Decodes `regex`. `negate` is ambiguous if several patterns all have to match.
fn read_regex(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Option<Vec<Check>> {
    let patterns = read_patterns(map, "pattern", diagnostics);
    patterns.iter().for_each(|(pattern, place)| refuse_universal(pattern, place, diagnostics));
    let patterns: Vec<_> = patterns.into_iter().map(|(pattern, _)| pattern).collect();
    let mode = if map.text("match") == Some("any") { MatchMode::Any } else { MatchMode::All };
    if patterns.len() > 1 && mode == MatchMode::All && map.bool("negate") == Some(true) {
        let message = "`negate` with several patterns is ambiguous: none matches, or not all";
        let wrong = Diagnostic::new(message).at(map.key_place("negate"));
        diagnostics
            .push(wrong.help(
                "use `match: any` with `negate` if none may match, or write one assertion per pattern",
            ));
    }
    if patterns.len() == 1 && map.get("pattern").is_some_and(|view| view.text().is_some()) && map.has("match")
    {
        let message = "`match` applies to several patterns, and there is only one";
        diagnostics.report(map.key_place("match"), message);
    }
    check_at(map, "pattern", CheckKind::Regex(RegexCheck { patterns, mode, turns: turns_read(map) }))
}

/// Refuses a pattern that every text matches.
pub(in crate::cases) fn refuse_universal(
    pattern: &Pattern,
    place: &SourceSpan,
    diagnostics: &mut Diagnostics,
) {
    if pattern.matches_every_text() {
        let wrong = Diagnostic::new(format!("every text matches {pattern}, so nothing is asserted"));
        diagnostics.push(wrong.at(place.clone()).help("`.` matches every text that is not empty"));
    }
}

/// Decodes which of several turns are evaluated.
fn turns_read(map: &MapView<'_>) -> Option<TurnSelection> {
    map.text("turns").and_then(TurnSelection::from_name)
}

/// Formats `contains "submitted"`.
fn value_label(written: &Value) -> Option<String> {
    Some(format!("{} {}", written.get("type")?.as_str()?, written.get("value")?))
}
