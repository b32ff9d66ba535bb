//! `json_path`: a value inside the answer of the agent.

use hotseat_trace::{TurnScope, json_equal};
use serde_json::Value;

use super::answer::{answer, format_json, format_text};
use super::bounded_path::{BoundedPath, PathTooCostly};
use super::call_text::truncate;
use super::json_answer::{AnswerContent, find_json};
use super::{CheckBehavior, CheckDecision, ForbiddenTexts};

/// Parsed JSON path (RFC 9535).
#[derive(Debug, Clone)]
pub struct JsonPathQuery {
    source: String,
    path: BoundedPath,
    /// Whether the path selects at most one value in every document.
    is_singular: bool,
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
        let path = BoundedPath::parse(&whole).map_err(|source| {
            let before = written.get(..source.position().saturating_sub(added));
            JsonPathError { character: before.map_or(1, |before| before.chars().count() + 1), source }
        })?;
        Ok(JsonPathQuery { source: written.to_string(), path, is_singular: is_singular(&whole) })
    }

    /// Returns the path as written in the test.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns true if the path selects values by what is in them.
    pub(super) fn has_filter(&self) -> bool {
        self.path.has_filter()
    }

    /// Checks if the path selects the expected value in a JSON value, and describes the selected value.
    ///
    /// # Errors
    /// If the path costs too much for this value.
    pub fn selects_value(&self, value: &Value, expected: &Value) -> Result<(bool, String), PathTooCostly> {
        let found: Vec<Value> = self.path.query(value)?.into_iter().cloned().collect();
        Ok(match found.is_empty() {
            true => (false, format!("{} selects nothing in {}", self.source, format_json(value))),
            false => (self.is_equal(&found, expected), describe_values(&found)),
        })
    }

    /// Returns true if the selected values equal the expected value. The value of a path to one value may equal
    /// an entry of a list instead. The values of other paths are one list, however many there are, so that a
    /// missing one is noticed.
    fn is_equal(&self, found: &[Value], expected: &Value) -> bool {
        match (found, expected) {
            ([found], expected) if json_equal(found, expected) => true,
            ([found], Value::Array(entries)) if self.is_singular => {
                entries.iter().any(|entry| json_equal(found, entry))
            }
            (found, Value::Array(entries)) => {
                found.len() == entries.len()
                    && found.iter().zip(entries).all(|(found, entry)| json_equal(found, entry))
            }
            _ => false,
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
                    "the answer cannot be read as JSON: it {why}: {}",
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
            let nodes: Vec<Value> = match self.path.query(value) {
                Ok(nodes) => nodes.into_iter().cloned().collect(),
                Err(error) => return PathSelection::TooCostly(format!("{}: {error}: {name}", self.source)),
            };
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
    /// The path costs too much for a source; holds a description.
    TooCostly(String),
}

/// The value at a path equals a value; or any value exists there.
#[derive(Debug, Clone)]
pub struct JsonPathCheck {
    /// The path to evaluate.
    pub path: JsonPathQuery,
    /// The expected value, if any. A list also matches a value that equals one of its entries.
    pub value: Option<Value>,
}

impl CheckBehavior for JsonPathCheck {
    fn forbidden_texts(&self, negated: bool) -> ForbiddenTexts {
        // A filter may select values for what is not in them.
        ForbiddenTexts::in_json((negated && self.value.is_some()) || self.path.has_filter())
    }

    fn describe(&self) -> String {
        match &self.value {
            Some(value @ Value::Array(_)) if self.path.is_singular => {
                format!("{} to be {}, or one of these", self.path.source, format_json(value))
            }
            Some(value) => format!("{} to be {}", self.path.source, format_json(value)),
            None => format!("{} to exist", self.path.source),
        }
    }

    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        match (self.path.select(scope), &self.value) {
            // Neither equality nor difference is what a comparison of several values with one asserts.
            (PathSelection::Values(found, at), Some(value)) if found.len() > 1 && !value.is_array() => {
                let found = format!("{} values: {} in {at}", found.len(), describe_values(&found));
                CheckDecision::not_applicable(format!("{found}; compare them with a list"))
            }
            (PathSelection::Values(found, at), Some(value)) => CheckDecision::new(
                self.path.is_equal(&found, value),
                format!("{} in {at}", describe_values(&found)),
            ),
            (PathSelection::Values(found, at), None) => {
                CheckDecision::new(true, format!("{} in {at}", describe_values(&found)))
            }
            // Absence can be asserted only if there is JSON to search.
            (PathSelection::Nothing(words), None) => CheckDecision::new(false, words),
            (PathSelection::Nothing(words), Some(_))
            | (PathSelection::NoJson(words) | PathSelection::TooCostly(words), _) => {
                CheckDecision::not_applicable(words)
            }
        }
    }
}

/// Returns true if a path selects at most one value: it has only names and indices. The library does not show the
/// parts of a path, but it checks that the argument of `length` is such a query.
fn is_singular(path: &str) -> bool {
    serde_json_path::JsonPath::parse(&format!("$[?length({path}) == 0]")).is_ok()
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
    fn paths_of_names_and_indices_select_one_value() {
        for path in [
            "$",
            "a.b",
            "a[0].b",
            "[-1]",
            "$['a*?,:..']",
            r#"$["\"*"].x"#,
            r"$['\\'].x",
            "$['it\\'s']",
            "$ ['a'] [ 0 ]",
        ] {
            assert!(JsonPathQuery::parse(path).unwrap().is_singular, "{path}");
        }
        for path in [
            "$.*",
            "a[*]",
            "$..a",
            "a[0,1]",
            "a[1:]",
            "a[?@.b]",
            r"$['\\'][*]",
            "$['a']['b','c']",
            "$['a'] [ * ]",
        ] {
            assert!(!JsonPathQuery::parse(path).unwrap().is_singular, "{path}");
        }
    }

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
