//! `type`: the JSON type of the answer, or of a value inside it.

use hotseat_trace::{TurnScope, named};
use serde_json::Value;

use super::answer::{answer, format_json, format_text};
use super::json_answer::{AnswerContent, find_json, read_json};
use super::json_path::{JsonPathQuery, PathSelection, describe_values};
use super::{CheckBehavior, CheckDecision};

named! {
    /// JSON types. An integer is also a number.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum JsonValueType {
        /// A string.
        String = "string",
        /// Any number.
        Number = "number",
        /// A whole number.
        Integer = "integer",
        /// True or false.
        Boolean = "boolean",
        /// A list.
        Array = "array",
        /// An object.
        Object = "object",
        /// Null.
        Null = "null",
    }
}

impl JsonValueType {
    fn matches(self, value: &Value) -> bool {
        match (self, value) {
            (JsonValueType::Integer, Value::Number(number)) => {
                number.is_i64()
                    || number.is_u64()
                    || number.as_f64().is_some_and(|float| float.fract() == 0.0)
            }
            (JsonValueType::String, Value::String(_))
            | (JsonValueType::Number, Value::Number(_))
            | (JsonValueType::Boolean, Value::Bool(_))
            | (JsonValueType::Array, Value::Array(_))
            | (JsonValueType::Object, Value::Object(_))
            | (JsonValueType::Null, Value::Null) => true,
            _ => false,
        }
    }
}

/// The answer, or each value at a path, has a JSON type. An answer that is not JSON is a string, unless it
/// contains broken JSON.
#[derive(Debug, Clone)]
pub struct JsonTypeCheck {
    /// Path of the value to check; `None` for the whole answer.
    pub path: Option<JsonPathQuery>,
    /// Expected type.
    pub expected: JsonValueType,
}

impl CheckBehavior for JsonTypeCheck {
    fn describe(&self) -> String {
        match &self.path {
            Some(path) => format!("{} to be of type {}", path.source(), self.expected.name()),
            None => format!("the answer to be of type {}", self.expected.name()),
        }
    }

    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        let Some(path) = &self.path else {
            let answer = answer(scope);
            return match (read_json(answer), find_json(answer)) {
                _ if answer.is_empty() => CheckDecision::not_applicable(format_text(answer)),
                (Ok(value), _) => CheckDecision::new(self.expected.matches(&value), format_json(&value)),
                (Err(_), AnswerContent::Malformed(why)) => CheckDecision::not_applicable(format!(
                    "the answer cannot be read as JSON: it {why}: {}",
                    format_text(answer)
                )),
                (Err(_), AnswerContent::Text | AnswerContent::Json(..)) => CheckDecision::new(
                    self.expected == JsonValueType::String,
                    format!("the text {}", format_text(answer)),
                ),
            };
        };
        match path.select(scope) {
            PathSelection::Values(found, at) => {
                let all = found.iter().all(|value| self.expected.matches(value));
                CheckDecision::new(all, format!("{} in {at}", describe_values(&found)))
            }
            PathSelection::Nothing(words)
            | PathSelection::NoJson(words)
            | PathSelection::TooCostly(words) => CheckDecision::not_applicable(words),
        }
    }
}
