//! Filters for tool calls, and how calls are formatted in check results.

use std::collections::HashSet;
use std::fmt;

use hotseat_trace::{
    AgentToolCall, CallComparison, ComparedPart, DifferenceReason, NearestCall, TurnScope, json_equal,
};
use serde_json::Value;

use super::call_text::format_calls;
use super::differences::{DifferenceList, ExtraMembers, overlooked_part};
use super::nearest_call::{Similarity, compare_with_nearest};
use super::pattern::Pattern;

/// Selects calls of one tool, optionally by arguments and results.
#[derive(Debug, Clone)]
pub struct CallFilter {
    /// Name of the tool, compared exactly.
    pub name: String,
    /// MCP server of the test that must have received the call.
    pub server: Option<String>,
    /// Patterns for arguments; all of them must match.
    pub arguments: ArgumentPatterns,
    /// Patterns for the result; all of them must match. With patterns, a call without a result does not
    /// match.
    pub result: Vec<Pattern>,
}

impl CallFilter {
    /// Selects every call of a tool.
    pub fn for_tool(name: impl Into<String>) -> Self {
        CallFilter {
            name: name.into(),
            server: None,
            arguments: ArgumentPatterns::default(),
            result: Vec::new(),
        }
    }

    /// Returns the tool, and the server if one is required.
    pub(super) fn named_tools(&self) -> NamedTools<'_> {
        NamedTools { server: self.server.as_deref(), tools: vec![&self.name] }
    }

    /// Returns true if the filter reads arguments or results.
    pub(super) fn reads_texts(&self) -> bool {
        !self.arguments.0.is_empty() || !self.result.is_empty()
    }

    /// Returns true if the call matches.
    pub fn matches(&self, call: &AgentToolCall) -> bool {
        self.is_of_tool(call) && self.arguments_match(call) && self.result_matches(call)
    }

    /// Returns true if the call matches, or would match with other arguments or a result: arguments that are
    /// no JSON object and a missing result are unknown.
    pub fn may_match(&self, call: &AgentToolCall) -> bool {
        self.is_of_tool(call)
            && (call.arguments_broken || self.arguments_match(call))
            && (call.result.is_none() || self.result_matches(call))
    }

    /// Returns true if only the unknown result or arguments of the call would decide whether it matches.
    pub fn is_undecided(&self, call: &AgentToolCall) -> bool {
        self.may_match(call) && !self.matches(call)
    }

    /// Lists the calls that match or not depending on what is unknown of them.
    pub fn undecided_calls<'a>(&self, scope: TurnScope<'a>) -> Vec<(usize, &'a AgentToolCall)> {
        scope.calls().filter(|(_, call)| self.is_undecided(call)).collect()
    }

    /// Returns true if the call is one of the tool at the server.
    fn is_of_tool(&self, call: &AgentToolCall) -> bool {
        call.is_named(&self.name) && is_at_server(call, self.server.as_deref())
    }

    /// Arguments that are no object are unknown, so they match no pattern.
    fn arguments_match(&self, call: &AgentToolCall) -> bool {
        self.arguments.0.is_empty() || (!call.arguments_broken && self.arguments.all_match(&call.arguments))
    }

    fn result_matches(&self, call: &AgentToolCall) -> bool {
        if self.result.is_empty() {
            return true;
        }
        let Some(result) = &call.result else { return false };
        self.result.iter().all(|pattern| pattern.matches_result(&result.value))
    }

    /// Describes the filter: the name of the tool and the patterns.
    pub fn describe(&self) -> String {
        let mut words = describe_tool(&self.name, self.server.as_deref());
        if !self.arguments.0.is_empty() {
            words.push_str(&format!(" with {}", self.arguments.describe()));
        }
        if !self.result.is_empty() {
            let patterns: Vec<String> = self.result.iter().map(Pattern::to_string).collect();
            words.push_str(&format!(" with a result that matches {}", patterns.join(" and ")));
        }
        words
    }

    /// Compares the filter with the most similar call that does not match. Returns `None` without a call of
    /// the tool.
    pub(super) fn compare(&self, scope: TurnScope<'_>) -> Option<CallComparison> {
        compare_with_nearest(
            scope,
            |call| call.is_named(&self.name),
            |call| self.matches(call),
            |call| {
                let arguments = &self.arguments.0;
                let present = arguments.iter().filter(|(path, _)| value_at(&call.arguments, path).is_some());
                let result = usize::from(!self.result.is_empty() && self.result_matches(call));
                Similarity {
                    matching: self.arguments.count_matches(&call.arguments) + result,
                    present: present.count(),
                }
            },
            |turn, call| self.differences(turn, call),
        )
    }

    fn differences(&self, turn: usize, call: &AgentToolCall) -> NearestCall {
        let mut list = DifferenceList::new(ComparedPart::Arguments);
        if call.arguments_broken && !self.arguments.0.is_empty() {
            list.push("", DifferenceReason::InvalidJson, None, Some(&call.arguments), None);
        } else {
            self.arguments.add_differences(&call.arguments, &mut list);
        }
        let mut result = DifferenceList::new(ComparedPart::Result);
        for pattern in &self.result {
            let (expected, value) = (Some(pattern.to_string()), call.result.as_ref());
            match value {
                None => result.push("", DifferenceReason::Missing, expected, None, None),
                Some(value) if pattern.matches_result(&value.value) => {}
                Some(value) => {
                    let note = value.failed.then(|| "the call failed".to_string());
                    result.push("", DifferenceReason::Pattern, expected, Some(&value.value), note);
                }
            }
        }
        list.append(result);
        list.of_call(turn, call)
    }

    /// Lists the matching calls in a scope, for the result of a failed check.
    pub(super) fn list_matching(&self, scope: TurnScope<'_>) -> Vec<String> {
        format_calls(scope.calls().filter(|(_, call)| self.matches(call)))
    }

    /// Lists all calls of the tool in a scope, for the result of a failed check.
    pub(super) fn list_calls(&self, scope: TurnScope<'_>) -> Vec<String> {
        format_calls(scope.calls().filter(|(_, call)| call.is_named(&self.name)))
    }
}

/// Expected arguments, keyed by the path of the argument.
#[derive(Debug, Clone, Default)]
pub struct ArgumentPatterns(pub Vec<(String, ArgumentPattern)>);

/// Expectation on one argument.
#[derive(Debug, Clone)]
pub enum ArgumentPattern {
    /// The argument matches a pattern.
    Matches(Pattern),
    /// The argument equals a number or a boolean.
    Equals(Value),
}

impl ArgumentPattern {
    fn is_met(&self, argument: &Value) -> bool {
        match self {
            ArgumentPattern::Matches(pattern) => pattern.matches_value(argument),
            ArgumentPattern::Equals(value) => json_equal(argument, value),
        }
    }
}

impl fmt::Display for ArgumentPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArgumentPattern::Matches(pattern) => pattern.fmt(f),
            ArgumentPattern::Equals(value) => value.fmt(f),
        }
    }
}

impl ArgumentPatterns {
    /// Returns true if every argument exists and matches its pattern.
    pub fn all_match(&self, arguments: &Value) -> bool {
        self.count_matches(arguments) == self.0.len()
    }

    /// Returns the first path whose argument exists and matches its pattern.
    pub fn first_match(&self, arguments: &Value) -> Option<&str> {
        self.0
            .iter()
            .find(|(path, pattern)| matches_at(arguments, path, pattern))
            .map(|(path, _)| path.as_str())
    }

    /// Describes the patterns.
    pub fn describe(&self) -> String {
        let parts: Vec<String> = self.0.iter().map(|(path, pattern)| format!("{path} {pattern}")).collect();
        parts.join(", ")
    }

    fn count_matches(&self, arguments: &Value) -> usize {
        self.0.iter().filter(|(path, pattern)| matches_at(arguments, path, pattern)).count()
    }

    fn add_differences(&self, arguments: &Value, list: &mut DifferenceList) {
        for (path, expected) in &self.0 {
            let found = value_at(arguments, path);
            match (expected, found) {
                (ArgumentPattern::Equals(value), _) => {
                    list.compare(path, value, found, ExtraMembers::Forbidden);
                }
                (ArgumentPattern::Matches(pattern), Some(value)) if pattern.matches_value(value) => {}
                (ArgumentPattern::Matches(pattern), found) => {
                    let reason = match found {
                        Some(_) => DifferenceReason::Pattern,
                        None => DifferenceReason::Missing,
                    };
                    list.push(path, reason, Some(pattern.to_string()), found, None);
                }
            }
        }
    }
}

fn matches_at(arguments: &Value, path: &str, pattern: &ArgumentPattern) -> bool {
    value_at(arguments, path).is_some_and(|value| pattern.is_met(value))
}

/// Returns the value at a dotted path. A key that contains dots takes precedence over a nested path; a number
/// is an index into a list.
pub fn value_at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    if path.is_empty() {
        return Some(value);
    }
    match value {
        Value::Object(members) => {
            if let Some(found) = members.get(path) {
                return Some(found);
            }
            // Try the longest matching key first.
            let dots = path.rmatch_indices('.').map(|(at, _)| at);
            dots.filter_map(|at| value_at(members.get(&path[..at])?, &path[at + 1..])).next()
        }
        Value::Array(items) => {
            let (head, rest) = path.split_once('.').unwrap_or((path, ""));
            value_at(items.get(head.parse::<usize>().ok()?)?, rest)
        }
        _ => None,
    }
}

/// Tools that a check names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedTools<'a> {
    /// Name of the MCP server that must have received the calls; `None` if any may have.
    pub server: Option<&'a str>,
    /// Names of the tools, as the server or the agent calls them.
    pub tools: Vec<&'a str>,
}

/// Returns true if an MCP server of the test received the call, or if none is required.
pub fn is_at_server(call: &AgentToolCall, server: Option<&str>) -> bool {
    server.is_none_or(|server| call.server() == Some(server))
}

/// Describes a tool and the server that its calls must reach.
pub fn describe_tool(name: &str, server: Option<&str>) -> String {
    match server {
        Some(server) => format!("{name} at server {server}"),
        None => name.to_string(),
    }
}

/// Lists the names of the called tools without duplicates; empty if none was called. A name that is easily taken for an expected
/// one says in what it differs.
pub fn called_tools(scope: TurnScope<'_>, expected: &[String]) -> String {
    let mut seen = HashSet::new();
    let names = scope.calls().map(|(_, call)| &*call.name).filter(|name| seen.insert(*name));
    let described = names.map(|name| {
        let alike = |expected: &String| Some((expected.clone(), overlooked_part(expected, name)?));
        match expected.iter().find_map(alike) {
            Some((expected, part)) => format!("{name} (differs from {expected} only in {part})"),
            None => name.to_string(),
        }
    });
    described.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn resolves_paths_in_objects_and_lists() {
        let value = json!({"cart": {"items": [{"sku": "A"}, {"sku": "B"}]}, "a.b": 1, "a": {"b": 2, "c.d": {"e": 3}}, "n": null});
        for (path, expected) in [
            ("cart.items.1.sku", Some(json!("B"))),
            ("cart.items.2.sku", None),
            ("cart.items", Some(json!([{"sku": "A"}, {"sku": "B"}]))),
            ("a.b", Some(json!(1))),
            ("a.c.d.e", Some(json!(3))),
            ("n", Some(json!(null))),
            ("n.x", None),
            ("missing", None),
        ] {
            assert_eq!(value_at(&value, path).cloned(), expected, "{path}");
        }
    }
}
