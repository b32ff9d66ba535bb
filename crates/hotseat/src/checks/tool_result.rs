//! `tool_result`: what a tool returned.

use hotseat_trace::Scope;
use serde_json::Value;

use super::answer::shown_json;
use super::calls;
use super::equality::equal;
use super::pattern::Pattern;
use super::{Decided, listed};

/// What a result is compared with: JSON, in which a text may be a pattern.
#[derive(Debug, Clone)]
pub enum Expected {
    /// This value.
    Value(Value),
    /// A text that fits.
    Pattern(Pattern),
    /// An object with at least these members.
    Object(Vec<(String, Expected)>),
    /// A list of just these entries.
    List(Vec<Expected>),
}

impl Expected {
    /// Reads what is expected. A text that begins with `regex:` is a pattern.
    ///
    /// # Errors
    /// When a pattern does not compile.
    pub fn read(value: &Value) -> Result<Expected, String> {
        Ok(match value {
            Value::String(text) => match text.strip_prefix("regex:") {
                Some("") => return Err("`regex:` without a pattern fits everything".to_string()),
                Some(pattern) => Expected::Pattern(
                    Pattern::compile(pattern)
                        .map_err(|words| format!("{text:?} does not compile: {words}"))?,
                ),
                None => Expected::Value(value.clone()),
            },
            Value::Object(members) => Expected::Object(
                members
                    .iter()
                    .map(|(key, value)| Ok((key.clone(), Expected::read(value)?)))
                    .collect::<Result<_, String>>()?,
            ),
            Value::Array(items) => {
                Expected::List(items.iter().map(Expected::read).collect::<Result<_, _>>()?)
            }
            other => Expected::Value(other.clone()),
        })
    }

    /// Whether a value is what is expected.
    pub fn fits(&self, value: &Value) -> bool {
        match (self, value) {
            (Expected::Value(expected), value) => equal(expected, value),
            (Expected::Pattern(pattern), Value::String(text)) => pattern.fits(text),
            (Expected::Pattern(pattern), Value::Number(_) | Value::Bool(_)) => {
                pattern.fits(&value.to_string())
            }
            (Expected::Object(expected), Value::Object(members)) => expected
                .iter()
                .all(|(key, expected)| members.get(key).is_some_and(|value| expected.fits(value))),
            (Expected::List(expected), Value::Array(items)) => {
                expected.len() == items.len()
                    && expected.iter().zip(items).all(|(expected, item)| expected.fits(item))
            }
            (Expected::Pattern(_) | Expected::Object(_) | Expected::List(_), _) => false,
        }
    }
}

/// Some call of a tool succeeded, with this result if one is given.
#[derive(Debug, Clone)]
pub struct ToolResult {
    /// Name of the tool, compared exactly.
    pub name: String,
    /// The result as it was written, and what it is compared with.
    pub result: Option<(Value, Expected)>,
}

impl ToolResult {
    /// What is asserted, in words.
    pub fn describe(&self) -> String {
        match &self.result {
            Some((written, _)) => format!("a call of {} returns {}", self.name, shown_json(written)),
            None => format!("a call of {} succeeds", self.name),
        }
    }

    pub(super) fn decide(&self, scope: Scope<'_>) -> Decided {
        let made: Vec<_> = scope.calls().filter(|(_, call)| *call.name == *self.name).collect();
        let shown: Vec<String> = made.iter().map(|(turn, call)| calls::shown(*turn, call)).collect();
        let mut results = made.iter().filter_map(|(_, call)| call.result.as_ref()).peekable();
        if results.peek().is_none() {
            return Decided::nothing(match shown.is_empty() {
                true => format!("{} was not called", self.name),
                false => listed(&shown),
            });
        }
        let fits = |value: &Value| self.result.as_ref().is_none_or(|(_, expected)| expected.fits(value));
        let holds = results.any(|result| !result.failed && fits(&result.value));
        let unanswered = made.iter().filter(|(_, call)| call.result.is_none());
        let unanswered: Vec<String> = unanswered.map(|(turn, call)| calls::shown(*turn, call)).collect();
        if !holds && !unanswered.is_empty() {
            return Decided::unanswered(&unanswered);
        }
        Decided::of(holds, listed(&shown))
    }
}
