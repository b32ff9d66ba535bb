//! `tool_result`: the result of a tool.

use hotseat_trace::{
    AgentToolCall, CallComparison, ComparedPart, DifferenceReason, NearestCall, TurnScope, json_equal,
};
use serde_json::Value;

use super::answer::format_json;
use super::call_text::format_calls;
use super::calls::{self, NamedTools};
use super::differences::{DifferenceList, ExtraMembers, join_path, json_type};
use super::json_answer::read_number;
use super::nearest_call::{Similarity, compare_with_nearest};
use super::pattern::{Pattern, PatternError};
use super::{CheckBehavior, CheckDecision, CheckOutcome, ForbiddenTexts, format_list};

/// Expected result: JSON in which a text may be a pattern.
#[derive(Debug, Clone)]
pub enum ExpectedResult {
    /// Equal to this value.
    Value(Value),
    /// A text that matches, or another value that matches as compact JSON.
    Pattern(Pattern),
    /// An object with at least these members.
    Object(Vec<(String, ExpectedResult)>),
    /// A list of exactly these entries.
    List(Vec<ExpectedResult>),
}

/// An invalid expectation of a result.
#[derive(Debug, Clone, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say the same")]
pub enum ExpectedResultError {
    #[error("`regex:` needs a pattern")]
    NoPattern,
    #[error("{text:?} does not compile: {source}")]
    Pattern { text: String, source: PatternError },
}

impl ExpectedResult {
    /// Parses an expected result. A text that starts with `regex:` is a pattern.
    ///
    /// # Errors
    /// If a pattern is invalid.
    pub fn parse(value: &Value) -> Result<ExpectedResult, ExpectedResultError> {
        Ok(match value {
            Value::String(text) => match text.strip_prefix("regex:") {
                Some("") => return Err(ExpectedResultError::NoPattern),
                Some(pattern) => ExpectedResult::Pattern(
                    Pattern::compile(pattern)
                        .map_err(|source| ExpectedResultError::Pattern { text: text.clone(), source })?,
                ),
                None => ExpectedResult::Value(value.clone()),
            },
            Value::Object(members) => ExpectedResult::Object(
                members
                    .iter()
                    .map(|(key, value)| Ok((key.clone(), ExpectedResult::parse(value)?)))
                    .collect::<Result<_, _>>()?,
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
            (ExpectedResult::Pattern(pattern), value) => pattern.matches_value(value),
            (ExpectedResult::Object(expected), Value::Object(members)) => expected
                .iter()
                .all(|(key, expected)| members.get(key).is_some_and(|value| expected.matches(value))),
            (ExpectedResult::List(expected), Value::Array(items)) => {
                expected.len() == items.len()
                    && expected.iter().zip(items).all(|(expected, item)| expected.matches(item))
            }
            (ExpectedResult::Object(_) | ExpectedResult::List(_), _) => false,
        }
    }
}

impl ExpectedResult {
    /// Like [`ExpectedResult::matches`], for a whole result: some protocols pass on every result as text.
    fn matches_result(&self, result: &Value) -> bool {
        match (self, result) {
            (ExpectedResult::Pattern(pattern), result) => pattern.matches_result(result),
            (ExpectedResult::Value(Value::Number(_)), Value::String(text)) => {
                read_number(text).is_some_and(|number| self.matches(&number))
            }
            (ExpectedResult::Value(Value::String(text)), Value::Number(number)) => {
                *text == number.to_string()
            }
            (expected, result) => expected.matches(result),
        }
    }

    /// Returns the number of expected members or entries that match.
    fn count_matching(&self, value: &Value) -> usize {
        match (self, value) {
            (ExpectedResult::Object(expected), Value::Object(members)) => expected
                .iter()
                .filter(|(key, expected)| members.get(key).is_some_and(|value| expected.matches(value)))
                .count(),
            (ExpectedResult::List(expected), Value::Array(items)) => {
                expected.iter().zip(items).filter(|(expected, item)| expected.matches(item)).count()
            }
            _ => usize::from(self.matches(value)),
        }
    }

    /// Adds the differences between a value and the expected one, which is `written` so in the test.
    fn add_differences(&self, path: &str, written: &Value, found: Option<&Value>, list: &mut DifferenceList) {
        let expected = || match self {
            ExpectedResult::Pattern(pattern) => Some(pattern.to_string()),
            _ => Some(written.to_string()),
        };
        let Some(found) = found else {
            return list.push(path, DifferenceReason::Missing, expected(), None, None);
        };
        match (self, found) {
            (ExpectedResult::Value(value), found) => {
                list.compare(path, value, Some(found), ExtraMembers::Forbidden);
            }
            (_, found) if self.matches(found) => {}
            (ExpectedResult::Object(members), Value::Object(object)) => {
                for (key, member) in members {
                    let path = join_path(path, key);
                    member.add_differences(&path, &written[key], object.get(key), list);
                }
            }
            (ExpectedResult::List(entries), Value::Array(items)) => {
                for (index, entry) in entries.iter().enumerate() {
                    let path = join_path(path, &index.to_string());
                    entry.add_differences(&path, &written[index], items.get(index), list);
                }
                for (index, item) in items.iter().enumerate().skip(entries.len()) {
                    list.push_unexpected(&join_path(path, &index.to_string()), item);
                }
            }
            (ExpectedResult::Pattern(_), _) => {
                list.push(path, DifferenceReason::Pattern, expected(), Some(found), None);
            }
            (ExpectedResult::Object(_) | ExpectedResult::List(_), found) => {
                let wanted = if matches!(self, ExpectedResult::List(_)) { "a list" } else { "an object" };
                let note = format!("expected {wanted}, got {}", json_type(found));
                list.push(path, DifferenceReason::Type, expected(), Some(found), Some(note));
            }
        }
    }
}

impl ToolResultCheck {
    /// Compares the expected result with the most similar one. Returns `None` without a result.
    fn compare(&self, scope: TurnScope<'_>) -> Option<CallComparison> {
        let (written, expected) = self.result.as_ref()?;
        let similarity = |call: &AgentToolCall| match &call.result {
            Some(result) if !result.failed => {
                Similarity { matching: expected.count_matching(&result.value), present: 1 }
            }
            Some(_) | None => Similarity::default(),
        };
        compare_with_nearest(
            scope,
            |call| call.is_named(&self.name),
            |_| false,
            similarity,
            |turn, call| differences(expected, written, turn, call),
        )
    }
}

fn differences(expected: &ExpectedResult, written: &Value, turn: usize, call: &AgentToolCall) -> NearestCall {
    let mut list = DifferenceList::new(ComparedPart::Result);
    match &call.result {
        Some(result) if result.failed => {
            let note = "the call failed".to_string();
            list.push(
                "",
                DifferenceReason::Value,
                Some(written.to_string()),
                Some(&result.value),
                Some(note),
            );
        }
        Some(result) => expected.add_differences("", written, Some(&result.value), &mut list),
        None => expected.add_differences("", written, None, &mut list),
    }
    list.of_call(turn, call)
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
    fn forbidden_texts(&self, negated: bool) -> ForbiddenTexts {
        ForbiddenTexts::in_calls(negated && self.result.is_some())
    }

    fn describe(&self) -> String {
        let tool = calls::describe_tool(&self.name, self.server.as_deref());
        match &self.result {
            Some((written, _)) => format!("a call of {tool} to return {}", format_json(written)),
            None => format!("a call of {tool} to succeed"),
        }
    }

    fn lasting_outcome(&self, _: TurnScope<'_>) -> Option<CheckOutcome> {
        Some(CheckOutcome::Satisfied)
    }

    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        let is_meant = |call: &AgentToolCall| {
            call.is_named(&self.name) && calls::is_at_server(call, self.server.as_deref())
        };
        let made: Vec<_> = scope.calls().filter(|(_, call)| is_meant(call)).collect();
        let shown = format_calls(made.iter().copied());
        let mut results = made.iter().filter_map(|(_, call)| call.result.as_ref()).peekable();
        if results.peek().is_none() {
            return CheckDecision::not_applicable(match shown.is_empty() {
                true => format!("no call of {}", calls::describe_tool(&self.name, self.server.as_deref())),
                false => format_list(&shown),
            });
        }
        let fits =
            |value: &Value| self.result.as_ref().is_none_or(|(_, expected)| expected.matches_result(value));
        let holds = results.any(|result| !result.failed && fits(&result.value));
        let unanswered = made.iter().filter(|(_, call)| call.result.is_none()).copied();
        let unanswered: Vec<_> = unanswered.collect();
        if !holds && !unanswered.is_empty() {
            return CheckDecision::undecided_calls(&unanswered);
        }
        match self.compare(scope).filter(|_| !holds) {
            Some(comparison) => CheckDecision::violated(comparison),
            None => CheckDecision::new(holds, format_list(&shown)),
        }
    }

    fn named_tools(&self) -> Vec<NamedTools<'_>> {
        vec![NamedTools { server: self.server.as_deref(), tools: vec![&self.name] }]
    }

    fn expected_tool(&self) -> Option<&str> {
        Some(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A protocol that passes on every result as text has the same verdicts as one that does not.
    #[test]
    fn a_number_equals_its_text_in_every_protocol() {
        for (number, expected, holds) in [
            (json!(100), json!(100), true),
            (json!(100), json!(1e2), true),
            (json!(100), json!("100"), true),
            (json!(100), json!("1e2"), false),
            (json!(100.5), json!("100.5"), true),
            (json!(100), json!(101), false),
            (json!(100), json!("101"), false),
        ] {
            let parsed = ExpectedResult::parse(&expected).expect("no pattern");
            for result in [Value::String(number.to_string()), number] {
                assert_eq!(parsed.matches_result(&result), holds, "{expected} of {result}");
            }
        }
    }
}
