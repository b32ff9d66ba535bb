//! `json_path`: a value inside what the agent answered.

use hotseat_trace::Scope;
use serde_json::Value;

use super::Decided;
use super::answer::{answer, shown, shown_json};
use super::calls::cut;
use super::equality::equal;
use super::json_answer::{AnswerContent, find_json};

/// A JSON path of RFC 9535.
#[derive(Debug, Clone)]
pub struct Path {
    written: String,
    path: serde_json_path::JsonPath,
}

impl Path {
    /// Reads a path. The `$` at its start may be left out.
    ///
    /// # Errors
    /// When it is none; in words, with the place in the path.
    pub fn parse(written: &str) -> Result<Path, String> {
        let whole = match written.chars().next() {
            Some('$') => written.to_string(),
            Some('[') => format!("${written}"),
            _ => format!("$.{written}"),
        };
        let added = whole.len() - written.len();
        let path = serde_json_path::JsonPath::parse(&whole).map_err(|error| {
            let at = written
                .get(..error.position().saturating_sub(added))
                .map_or(1, |before| before.chars().count() + 1);
            format!("{} at character {at}", error.message())
        })?;
        Ok(Path { written: written.to_string(), path })
    }

    /// How it was written.
    pub fn written(&self) -> &str {
        &self.written
    }

    /// Whether it selects this value in another one; and what it selects there, in words.
    pub fn is_in(&self, value: &Value, expected: &Value) -> (bool, String) {
        let found: Vec<Value> = self.path.query(value).all().into_iter().cloned().collect();
        match found.is_empty() {
            true => (false, format!("{} selects nothing in {}", self.written, shown_json(value))),
            false => (is_meant(&found, expected), in_words(&found)),
        }
    }

    /// What it selects. Looked at in this order: the answer, if it is JSON or contains one JSON value; what the agent's
    /// run returned; the state that it shares; the results of tools, the last one first. The first in which the path
    /// selects anything decides. Where the answer contains malformed JSON, nothing else stands in for it.
    pub(super) fn select(&self, scope: Scope<'_>) -> Selected {
        let answer = answer(scope);
        let answered = match find_json(answer) {
            AnswerContent::Json(value, place) => Some((place, value)),
            AnswerContent::Text => None,
            AnswerContent::Malformed(why) => {
                return Selected::NoJson(format!("the answer is not JSON: it {why}: {}", shown(answer)));
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
        let returned = returned.map(|value| ("what the run returned".to_string(), value));
        let state =
            scope.state().filter(|state| !state.is_null()).map(|state| ("the state".to_string(), state));
        let candidates: Vec<(String, &Value)> =
            of_agent.chain(returned).chain(state).chain(results).collect();
        for (name, value) in &candidates {
            let nodes: Vec<Value> = self.path.query(value).all().into_iter().cloned().collect();
            if !nodes.is_empty() {
                return Selected::Values(nodes, name.clone());
            }
        }
        match candidates.as_slice() {
            [] => Selected::NoJson(format!("the answer is not JSON: {}", shown(answer))),
            looked_at => {
                let looked_at: Vec<String> =
                    looked_at.iter().map(|(name, value)| format!("{name}: {}", shown_json(value))).collect();
                Selected::Nothing(format!(
                    "{} selects nothing in {}",
                    self.written,
                    super::listed(&looked_at)
                ))
            }
        }
    }
}

/// What a path selects.
pub(super) enum Selected {
    /// These values, and where they were found.
    Values(Vec<Value>, String),
    /// Nothing, in words.
    Nothing(String),
    /// There is no JSON to look at, in words.
    NoJson(String),
}

/// The value at a path is this one; or there is any.
#[derive(Debug, Clone)]
pub struct JsonPath {
    /// The path.
    pub path: Path,
    /// The value, if it matters. A list is also fulfilled by one of its entries.
    pub value: Option<Value>,
}

impl JsonPath {
    /// What is asserted, in words.
    pub fn describe(&self) -> String {
        match &self.value {
            Some(value @ Value::Array(_)) => {
                format!("{} is {}, or one of these", self.path.written, shown_json(value))
            }
            Some(value) => format!("{} is {}", self.path.written, shown_json(value)),
            None => format!("{} is there", self.path.written),
        }
    }

    pub(super) fn decide(&self, scope: Scope<'_>) -> Decided {
        match (self.path.select(scope), &self.value) {
            (Selected::Values(found, at), Some(value)) => {
                Decided::of(is_meant(&found, value), format!("{} in {at}", in_words(&found)))
            }
            (Selected::Values(found, at), None) => Decided::of(true, format!("{} in {at}", in_words(&found))),
            // That something is not there can be asserted, but only of something.
            (Selected::Nothing(words), None) => Decided::of(false, words),
            (Selected::Nothing(words), Some(_)) | (Selected::NoJson(words), _) => Decided::nothing(words),
        }
    }
}

/// Whether what was selected is the value. Several values are compared as a list.
fn is_meant(found: &[Value], value: &Value) -> bool {
    match (found, value) {
        ([Value::Array(found)], Value::Array(_)) => equal(&Value::Array(found.clone()), value),
        ([found], Value::Array(values)) => values.iter().any(|value| equal(found, value)),
        ([found], value) => equal(found, value),
        (found, Value::Array(values)) => {
            found.len() == values.len() && found.iter().zip(values).all(|(found, value)| equal(found, value))
        }
        _ => false,
    }
}

pub(super) fn in_words(found: &[Value]) -> String {
    match found {
        [one] => shown_json(one),
        several => cut(&Value::Array(several.to_vec()).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_may_begin_without_their_root() {
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
            assert!(Path::parse(written).is_ok(), "{written}");
        }
        for (written, at) in [("$.a[", 5), ("$.", 2), ("a..", 2), ("a b", 2), ("$[?@.a ~ 1]", 0), ("", 1)] {
            let error = Path::parse(written).unwrap_err();
            assert!(
                at == 0 || error.contains(&format!("character {at}")) || !error.is_empty(),
                "{written}: {error}"
            );
        }
    }
}
