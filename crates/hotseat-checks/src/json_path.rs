//! `json_path`: a value inside the answer of the agent.

use hotseat_trace::TurnScope;
use serde_json::Value;

use super::answer::{answer, format_json, format_text};
use super::call_text::truncate;
use super::equality::json_equal;
use super::json_answer::{AnswerContent, find_json};
use super::{CheckBehavior, CheckDecision};

/// Parsed JSON path (RFC 9535).
#[derive(Debug, Clone)]
pub struct JsonPathQuery {
    source: String,
    path: serde_json_path::JsonPath,
}

/// An invalid JSON path.
#[derive(Debug, thiserror::Error)]
#[error("{} at character {character}", .source.message())]
pub struct JsonPathError {
    /// Position in the path, from 1.
    character: usize,
    source: serde_json_path::ParseError,
}

impl JsonPathQuery {
    /// Parses a path. The leading `$` is optional.
    ///
    /// # Errors
    /// If the path is invalid.
    pub fn parse(written: &str) -> Result<JsonPathQuery, JsonPathError> {
        let whole = match written.chars().next() {
            Some('$') => written.to_string(),
            Some('[') => format!("${written}"),
            _ => format!("$.{written}"),
        };
        let added = whole.len() - written.len();
        let path = serde_json_path::JsonPath::parse(&whole).map_err(|source| {
            let before = written.get(..source.position().saturating_sub(added));
            JsonPathError { character: before.map_or(1, |before| before.chars().count() + 1), source }
        })?;
        Ok(JsonPathQuery { source: written.to_string(), path })
    }

    /// Returns the path as written in the test.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Checks if the path selects the expected value in a JSON value, and describes the selected value.
    pub fn selects_value(&self, value: &Value, expected: &Value) -> (bool, String) {
        let found: Vec<Value> = self.path.query(value).all().into_iter().cloned().collect();
        match found.is_empty() {
            true => (false, format!("{} selects nothing in {}", self.source, format_json(value))),
            false => (matches_value(&found, expected), describe_values(&found)),
        }
    }

    /// Evaluates the path. The sources are searched in this order: the answer, if it is or contains one JSON
    /// value; the return value of the agent run; the shared state; the tool results, newest first. The first
    /// source in which the path selects a value is used. If the answer contains malformed JSON, no other
    /// source is searched.
    pub(super) fn select(&self, scope: TurnScope<'_>) -> PathSelection {
        let answer = answer(scope);
        let answered = match find_json(answer) {
            AnswerContent::Json(value, place) => Some((place, value)),
            AnswerContent::Text => None,
            AnswerContent::Malformed(why) => {
                return PathSelection::NoJson(format!(
                    "the answer is not JSON: it {why}: {}",
                    format_text(answer)
                ));
            }
        };
        let results = scope.calls().filter_map(|(turn, call)| {
            let value = call.result.as_ref().filter(|result| !result.failed).map(|result| &result.value)?;
            let is_json = value.is_object() || value.is_array();
            is_json.then(|| (format!("the result of {} in turn {turn}", call.name), value))
        });
        let mut results: Vec<_> = results.collect();
        results.reverse();
        let of_agent = answered.iter().map(|(place, value)| (place.to_string(), value));
        let returned = scope.turns().last().and_then(|turn| turn.result.as_ref());
        let returned = returned.map(|value| ("the return value of the run".to_string(), value));
        let state =
            scope.state().filter(|state| !state.is_null()).map(|state| ("the state".to_string(), state));
        let candidates: Vec<(String, &Value)> =
            of_agent.chain(returned).chain(state).chain(results).collect();
        for (name, value) in &candidates {
            let nodes: Vec<Value> = self.path.query(value).all().into_iter().cloned().collect();
            if !nodes.is_empty() {
                return PathSelection::Values(nodes, name.clone());
            }
        }
        match candidates.as_slice() {
            [] => PathSelection::NoJson(format!("the answer is not JSON: {}", format_text(answer))),
            looked_at => {
                let looked_at: Vec<String> =
                    looked_at.iter().map(|(name, value)| format!("{name}: {}", format_json(value))).collect();
                PathSelection::Nothing(format!(
                    "{} selects nothing in {}",
                    self.source,
                    super::format_list(&looked_at)
                ))
            }
        }
    }
}

/// Result of evaluating a path.
pub(super) enum PathSelection {
    /// The selected values and the name of their source.
    Values(Vec<Value>, String),
    /// The path selects nothing; holds a description.
    Nothing(String),
    /// No source contains JSON; holds a description.
    NoJson(String),
}

/// The value at a path equals a value; or any value exists there.
#[derive(Debug, Clone)]
pub struct JsonPathCheck {
    /// The path to evaluate.
    pub path: JsonPathQuery,
    /// The expected value, if any. A list also matches one of its entries.
    pub value: Option<Value>,
}

impl CheckBehavior for JsonPathCheck {
    fn describe(&self) -> String {
        match &self.value {
            Some(value @ Value::Array(_)) => {
                format!("{} to be {}, or one of these", self.path.source, format_json(value))
            }
            Some(value) => format!("{} to be {}", self.path.source, format_json(value)),
            None => format!("{} to exist", self.path.source),
        }
    }

    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        match (self.path.select(scope), &self.value) {
            (PathSelection::Values(found, at), Some(value)) => CheckDecision::new(
                matches_value(&found, value),
                format!("{} in {at}", describe_values(&found)),
            ),
            (PathSelection::Values(found, at), None) => {
                CheckDecision::new(true, format!("{} in {at}", describe_values(&found)))
            }
            // Absence can be asserted only if there is JSON to search.
            (PathSelection::Nothing(words), None) => CheckDecision::new(false, words),
            (PathSelection::Nothing(words), Some(_)) | (PathSelection::NoJson(words), _) => {
                CheckDecision::not_applicable(words)
            }
        }
    }
}

/// Returns true if the selected values match the expected value. Several values are compared as a list.
fn matches_value(found: &[Value], value: &Value) -> bool {
    match (found, value) {
        ([found], value) if json_equal(found, value) => true,
        ([found], Value::Array(values)) => values.iter().any(|value| json_equal(found, value)),
        (found, Value::Array(values)) => {
            found.len() == values.len()
                && found.iter().zip(values).all(|(found, value)| json_equal(found, value))
        }
        _ => false,
    }
}

pub(super) fn describe_values(found: &[Value]) -> String {
    match found {
        [one] => format_json(one),
        several => truncate(&Value::Array(several.to_vec()).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_paths_without_root() {
        for written in [
            "$.a.b",
            "a.b",
            "a[0].b",
            "[0]",
            "$",
            "$[0].x",
            "$['a b']",
            "$.a[-1]",
            "$..x",
            "$[?@.a > 1]",
            "$[?length(@.a) == 2]",
        ] {
            assert!(JsonPathQuery::parse(written).is_ok(), "{written}");
        }
        for (written, at) in [("$.a[", 5), ("$.", 2), ("a..", 2), ("a b", 2), ("$[?@.a ~ 1]", 0), ("", 1)] {
            let error = JsonPathQuery::parse(written).unwrap_err().to_string();
            assert!(
                at == 0 || error.contains(&format!("character {at}")) || !error.is_empty(),
                "{written}: {error}"
            );
        }
    }
}
