//! `type`: what kind of value the answer is, or a value inside it.

use hotseat_trace::Scope;
use serde_json::Value;

use super::Decided;
use super::answer::{answer, shown, shown_json};
use super::json_answer::{AnswerContent, find_json, read_json};
use super::json_path::{Path, Selected, in_words};

/// The types of JSON; a whole number is a number too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// Text.
    String,
    /// Any number.
    Number,
    /// A whole number.
    Integer,
    /// True or false.
    Boolean,
    /// A list.
    Array,
    /// A mapping.
    Object,
    /// Nothing.
    Null,
}

impl Type {
    /// Their names.
    pub const NAMES: &'static [&'static str] =
        &["string", "number", "integer", "boolean", "array", "object", "null"];

    /// The type of this name.
    pub fn named(name: &str) -> Option<Type> {
        let all =
            [Type::String, Type::Number, Type::Integer, Type::Boolean, Type::Array, Type::Object, Type::Null];
        Type::NAMES.iter().position(|known| *known == name).map(|place| all[place])
    }

    fn name(self) -> &'static str {
        match self {
            Type::String => "string",
            Type::Number => "number",
            Type::Integer => "integer",
            Type::Boolean => "boolean",
            Type::Array => "array",
            Type::Object => "object",
            Type::Null => "null",
        }
    }

    fn is_of(self, value: &Value) -> bool {
        match (self, value) {
            (Type::Integer, Value::Number(number)) => {
                number.is_i64()
                    || number.is_u64()
                    || number.as_f64().is_some_and(|float| float.fract() == 0.0)
            }
            (Type::String, Value::String(_))
            | (Type::Number, Value::Number(_))
            | (Type::Boolean, Value::Bool(_))
            | (Type::Array, Value::Array(_))
            | (Type::Object, Value::Object(_))
            | (Type::Null, Value::Null) => true,
            _ => false,
        }
    }
}

/// The answer, or each value at a path, is of a type. An answer that is not JSON as a whole is a text, unless it contains
/// broken JSON.
#[derive(Debug, Clone)]
pub struct ValueType {
    /// Where to look.
    pub path: Option<Path>,
    /// The type.
    pub wanted: Type,
}

impl ValueType {
    /// What is asserted, in words.
    pub fn describe(&self) -> String {
        match &self.path {
            Some(path) => format!("{} is of type {}", path.written(), self.wanted.name()),
            None => format!("the answer is of type {}", self.wanted.name()),
        }
    }

    pub(super) fn decide(&self, scope: Scope<'_>) -> Decided {
        let Some(path) = &self.path else {
            let answer = answer(scope);
            return match (read_json(answer), find_json(answer)) {
                _ if answer.is_empty() => Decided::nothing(shown(answer)),
                (Ok(value), _) => Decided::of(self.wanted.is_of(&value), shown_json(&value)),
                (Err(_), AnswerContent::Malformed(why)) => {
                    Decided::nothing(format!("the answer is not JSON: it {why}: {}", shown(answer)))
                }
                (Err(_), AnswerContent::Text | AnswerContent::Json(..)) => {
                    Decided::of(self.wanted == Type::String, format!("the text {}", shown(answer)))
                }
            };
        };
        match path.select(scope) {
            Selected::Values(found, at) => {
                let all = found.iter().all(|value| self.wanted.is_of(value));
                Decided::of(all, format!("{} in {at}", in_words(&found)))
            }
            Selected::Nothing(words) | Selected::NoJson(words) => Decided::nothing(words),
        }
    }
}
