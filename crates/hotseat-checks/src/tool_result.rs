//! `tool_result`: the result of a tool.

use hotseat_trace::{AgentToolCall, TurnScope};
use serde_json::Value;

use super::answer::format_json;
use super::calls;
use super::equality::json_equal;
use super::pattern::Pattern;
use super::{CheckBehavior, CheckDecision, format_list};

/// Expected result: JSON in which a text may be a pattern.
#[derive(Debug, Clone)]
pub enum ExpectedResult {
    /// Equal to this value.
    Value(Value),
    /// A text that matches.
    Pattern(Pattern),
    /// An object with at least these members.
    Object(Vec<(String, ExpectedResult)>),
    /// A list of exactly these entries.
    List(Vec<ExpectedResult>),
}

impl ExpectedResult {
    /// Parses an expected result. A text that starts with `regex:` is a pattern.
    ///
    /// # Errors
    /// If a pattern is invalid.
    pub fn parse(value: &Value) -> Result<ExpectedResult, String> {
        Ok(match value {
            Value::String(text) => match text.strip_prefix("regex:") {
                Some("") => return Err("`regex:` needs a pattern".to_string()),
                Some(pattern) => ExpectedResult::Pattern(
                    Pattern::compile(pattern)
                        .map_err(|words| format!("{text:?} does not compile: {words}"))?,
                ),
                None => ExpectedResult::Value(value.clone()),
            },
            Value::Object(members) => ExpectedResult::Object(
                members
                    .iter()
                    .map(|(key, value)| Ok((key.clone(), ExpectedResult::parse(value)?)))
                    .collect::<Result<_, String>>()?,
            ),
            Value::Array(items) => {
                ExpectedResult::List(items.iter().map(ExpectedResult::parse).collect::<Result<_, _>>()?)
            }
            other => ExpectedResult::Value(other.clone()),
        })
    }

    /// Returns true if a value matches.
    pub fn matches(&self, value: &Value) -> bool {
        match (self, value) {
            (ExpectedResult::Value(expected), value) => json_equal(expected, value),
            (ExpectedResult::Pattern(pattern), Value::String(text)) => pattern.is_match(text),
            (ExpectedResult::Pattern(pattern), Value::Number(_) | Value::Bool(_)) => {
                pattern.is_match(&value.to_string())
            }
            (ExpectedResult::Object(expected), Value::Object(members)) => expected
                .iter()
                .all(|(key, expected)| members.get(key).is_some_and(|value| expected.matches(value))),
            (ExpectedResult::List(expected), Value::Array(items)) => {
                expected.len() == items.len()
                    && expected.iter().zip(items).all(|(expected, item)| expected.matches(item))
            }
            (ExpectedResult::Pattern(_) | ExpectedResult::Object(_) | ExpectedResult::List(_), _) => false,
        }
    }
}

/// At least one call of a tool succeeds, with a matching result if one is given.
#[derive(Debug, Clone)]
pub struct ToolResultCheck {
    /// Name of the tool, compared exactly.
    pub name: String,
    /// MCP server of the test that must have received the call.
    pub server: Option<String>,
    /// The expected result as written, and its parsed form.
    pub result: Option<(Value, ExpectedResult)>,
}

impl CheckBehavior for ToolResultCheck {
    fn describe(&self) -> String {
        let tool = calls::describe_tool(&self.name, self.server.as_deref());
        match &self.result {
            Some((written, _)) => format!("a call of {tool} to return {}", format_json(written)),
            None => format!("a call of {tool} to succeed"),
        }
    }

    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        let is_meant = |call: &AgentToolCall| {
            call.is_named(&self.name) && calls::is_at_server(call, self.server.as_deref())
        };
        let made: Vec<_> = scope.calls().filter(|(_, call)| is_meant(call)).collect();
        let shown: Vec<String> = made.iter().map(|(turn, call)| calls::format_call(*turn, call)).collect();
        let mut results = made.iter().filter_map(|(_, call)| call.result.as_ref()).peekable();
        if results.peek().is_none() {
            return CheckDecision::not_applicable(match shown.is_empty() {
                true => format!("no call of {}", calls::describe_tool(&self.name, self.server.as_deref())),
                false => format_list(&shown),
            });
        }
        let fits = |value: &Value| self.result.as_ref().is_none_or(|(_, expected)| expected.matches(value));
        let holds = results.any(|result| !result.failed && fits(&result.value));
        let unanswered = made.iter().filter(|(_, call)| call.result.is_none());
        let unanswered: Vec<String> =
            unanswered.map(|(turn, call)| calls::format_call(*turn, call)).collect();
        if !holds && !unanswered.is_empty() {
            return CheckDecision::unanswered_calls(&unanswered);
        }
        CheckDecision::new(holds, format_list(&shown))
    }

    fn servers(&self) -> Vec<&str> {
        self.server.as_deref().into_iter().collect()
    }

    fn reads_calls(&self) -> bool {
        true
    }

    fn expected_tool(&self) -> Option<&str> {
        Some(&self.name)
    }
}
