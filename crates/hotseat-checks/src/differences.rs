//! Differences between expected and actual values, one by one.

use std::collections::HashSet;

use hotseat_document::{excerpt, is_hidden, quote};
use hotseat_trace::{
    AgentToolCall, ComparedPart, DifferenceReason, NearestCall, ValueDifference, format_first, json_equal,
};
use serde_json::Value;

/// Maximum number of differences of one call.
const MAX_DIFFERENCES: usize = 50;
/// Maximum length of an actual value, in characters. Reports contain the whole value with the call.
const MAX_VALUE_CHARS: usize = 4_000;
/// Maximum number of characters that a note names.
const MAX_NAMED_CHARS: usize = 3;

/// List of differences with a bounded length.
pub(super) struct DifferenceList {
    part: ComparedPart,
    differences: Vec<ValueDifference>,
    omitted: usize,
}

/// Members of objects and entries of lists that the actual value may have in addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExtraMembers {
    /// Objects may have more members on every level; lists must have the same length.
    Allowed,
    /// None.
    Forbidden,
}

impl DifferenceList {
    pub(super) fn new(part: ComparedPart) -> Self {
        DifferenceList { part, differences: Vec::new(), omitted: 0 }
    }

    /// Adds a difference. Several differences of one path with the same expectation are not detected.
    pub(super) fn push(
        &mut self,
        path: &str,
        reason: DifferenceReason,
        expected: Option<String>,
        got: Option<&Value>,
        note: Option<String>,
    ) {
        if self.differences.len() >= MAX_DIFFERENCES {
            self.omitted += 1;
            return;
        }
        let got = got.map(|value| excerpt(&value.to_string(), MAX_VALUE_CHARS).into_owned());
        let (part, path) = (self.part, path.to_string());
        self.differences.push(ValueDifference { part, path, expected, got, reason, note });
    }

    /// Adds the differences between two JSON values.
    pub(super) fn compare(&mut self, path: &str, expected: &Value, got: Option<&Value>, extra: ExtraMembers) {
        let Some(got) = got else {
            return self.push(path, DifferenceReason::Missing, Some(expected.to_string()), None, None);
        };
        match (expected, got) {
            (Value::Object(expected), Value::Object(members)) => {
                for (key, expected) in expected {
                    self.compare(&join_path(path, key), expected, members.get(key), extra);
                }
                if extra == ExtraMembers::Forbidden {
                    for (key, value) in members.iter().filter(|(key, _)| !expected.contains_key(*key)) {
                        self.push_unexpected(&join_path(path, key), value);
                    }
                }
            }
            (Value::Array(expected), Value::Array(entries)) => {
                for (index, expected) in expected.iter().enumerate() {
                    self.compare(&join_path(path, &index.to_string()), expected, entries.get(index), extra);
                }
                for (index, value) in entries.iter().enumerate().skip(expected.len()) {
                    self.push_unexpected(&join_path(path, &index.to_string()), value);
                }
            }
            _ if json_equal(expected, got) => {}
            _ => {
                let (reason, note) = explain(expected, got);
                self.push(path, reason, Some(expected.to_string()), Some(got), note);
            }
        }
    }

    pub(super) fn push_unexpected(&mut self, path: &str, got: &Value) {
        self.push(path, DifferenceReason::Unexpected, None, Some(got), None);
    }

    /// Adds explanations to missing values, from their paths and the expected values.
    pub(super) fn explain_missing(&mut self, explain: impl Fn(&str, &str) -> Option<String>) {
        for missing in self.differences.iter_mut().filter(|one| one.reason == DifferenceReason::Missing) {
            missing.note = explain(&missing.path, missing.expected.as_deref().unwrap_or_default());
        }
    }

    /// Adds the differences of another list.
    pub(super) fn append(&mut self, other: DifferenceList) {
        let room = MAX_DIFFERENCES.saturating_sub(self.differences.len());
        self.omitted += other.omitted + other.differences.len().saturating_sub(room);
        self.differences.extend(other.differences.into_iter().take(room));
    }

    /// Returns the differences as those of a call.
    pub(super) fn of_call(self, turn: usize, call: &AgentToolCall) -> NearestCall {
        NearestCall {
            tool: call.name.clone(),
            turn,
            id: call.id.clone(),
            differences: self.differences,
            omitted: self.omitted,
        }
    }
}

/// Appends a key to a dotted path.
pub(super) fn join_path(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_string() } else { format!("{path}.{key}") }
}

/// Returns the reason why two values that are not both objects or both lists differ, and an explanation if
/// the values alone do not show it.
fn explain(expected: &Value, got: &Value) -> (DifferenceReason, Option<String>) {
    if json_type(expected) != json_type(got) {
        let note = format!("expected {}, got {}", with_type(expected), with_type(got));
        return (DifferenceReason::Type, Some(note));
    }
    let note = match (expected, got) {
        (Value::String(expected), Value::String(got)) => text_note(expected, got),
        _ => None,
    };
    (DifferenceReason::Value, note)
}

/// Explains that a number and a text look the same, but are not equal.
pub(super) fn lookalike_note(expected: &Value, got: &Value) -> Option<String> {
    let is_alike = match (expected, got) {
        (Value::Number(number), Value::String(text)) | (Value::String(text), Value::Number(number)) => {
            *text == number.to_string()
        }
        _ => false,
    };
    is_alike.then(|| explain(expected, got).1).flatten()
}

/// Explains a difference between two texts that is easy to overlook.
fn text_note(expected: &str, got: &str) -> Option<String> {
    overlooked_part(expected, got).map(|part| format!("they differ only in {part}"))
}

/// Names the part in which two texts differ, if the difference is easy to overlook.
pub(super) fn overlooked_part(expected: &str, got: &str) -> Option<String> {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    match () {
        () if plain(expected) == plain(got) => Some("white space".to_string()),
        () if expected.to_lowercase() == got.to_lowercase() => Some("upper and lower case".to_string()),
        () => look_alikes(expected, got),
    }
}

/// Names the characters in which two texts differ, if these cannot be seen, or stand where the other text has a character of
/// ASCII: accents, letters of other alphabets, typographic quotes.
fn look_alikes(expected: &str, got: &str) -> Option<String> {
    let visible = |text: &str| text.chars().filter(|c| !is_hidden(*c)).collect::<Vec<_>>();
    let (expected_visible, got_visible) = (visible(expected), visible(got));
    if expected_visible.len() != got_visible.len() {
        return None;
    }
    let pairs = expected_visible.into_iter().zip(got_visible).filter(|(one, other)| one != other);
    let pairs: Vec<(char, char)> = pairs.collect();
    if pairs.iter().any(|(one, other)| one.is_ascii() == other.is_ascii()) {
        return None;
    }
    let beyond_ascii = pairs.into_iter().map(|(one, other)| if one.is_ascii() { other } else { one });
    let hidden = [expected, got].map(|text| text.chars().filter(|c| is_hidden(*c)).collect::<Vec<_>>());
    let hidden = if hidden[0] == hidden[1] { Vec::new() } else { hidden.concat() };
    let mut seen = HashSet::new();
    let distinct = beyond_ascii.chain(hidden).filter(|c| seen.insert(*c));
    let names: Vec<String> = distinct.map(|c| format!("U+{:04X}", u32::from(c))).collect();
    (!names.is_empty()).then(|| format_first(&names, MAX_NAMED_CHARS))
}

/// Names the type of a value: `a text`.
pub(super) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Names a value with its type: `the number 3500`. Lists and objects are named by their type only.
pub(super) fn with_type(value: &Value) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => format!("the text {}", quote(&excerpt(text, MAX_VALUE_CHARS))),
        Value::Null | Value::Array(_) | Value::Object(_) => json_type(value).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn compared(expected: Value, got: Value, extra: ExtraMembers) -> Vec<String> {
        let mut list = DifferenceList::new(ComparedPart::Arguments);
        list.compare("", &expected, Some(&got), extra);
        list.differences.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn names_the_path_and_the_reason() {
        let expected =
            json!({"to": "Rome", "amount": 3500, "stops": [{"at": "Linz"}, {"at": "Graz"}], "x.y": 1});
        let got = json!({"to": "rome", "amount": "3500", "stops": [{"at": "Linz", "n": 1}], "seat": null});
        let subset = [
            r#"to: expected "Rome", got "rome" (they differ only in upper and lower case)"#,
            r#"amount: expected 3500, got "3500" (expected the number 3500, got the text "3500")"#,
            r#"stops.1: expected {"at":"Graz"}, but it is missing"#,
            "x.y: expected 1, but it is missing",
        ];
        assert_eq!(compared(expected.clone(), got.clone(), ExtraMembers::Allowed), subset);
        let exact = compared(expected, got, ExtraMembers::Forbidden);
        assert_eq!(exact.len(), subset.len() + 2);
        assert!(exact.contains(&"stops.0.n: not expected, got 1".to_string()), "{exact:?}");
        assert_eq!(exact.last().map(String::as_str), Some("seat: not expected, got null"));
    }

    #[test]
    fn names_characters_that_look_alike() {
        for (expected, got, part) in [
            ("José Müller", "Jose\u{301} Mu\u{308}ller", Some("U+00E9, U+00FC, U+0301 and 1 more")),
            ("pay", "p\u{430}y", Some("U+0430")),
            ("R-12", "R-12\u{200b}", Some("U+200B")),
            ("it's", "it’s", Some("U+2019")),
            ("New York", "New\u{a0}York", Some("white space")),
            ("pay", "buy", None),
            ("дом", "том", None),
            ("pay", "paid", None),
        ] {
            assert_eq!(overlooked_part(expected, got).as_deref(), part, "{expected} {got}");
        }
    }

    #[test]
    fn equal_numbers_do_not_differ() {
        for got in [json!(3500), json!(3500.0)] {
            assert_eq!(compared(json!(3500), got, ExtraMembers::Forbidden), [""; 0]);
        }
    }

    #[test]
    fn bounds_the_number_of_differences() {
        let (expected, got) = (vec![1; 10_000], vec![2; 20_000]);
        let mut list = DifferenceList::new(ComparedPart::Result);
        list.compare("", &json!(expected), Some(&json!(got)), ExtraMembers::Allowed);
        assert_eq!((list.differences.len(), list.omitted), (MAX_DIFFERENCES, 20_000 - MAX_DIFFERENCES));
    }
}
