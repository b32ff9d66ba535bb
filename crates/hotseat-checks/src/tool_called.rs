//! `tool_called`: a tool is called, optionally with given arguments.

use hotseat_trace::{
    AgentToolCall, CallComparison, ComparedPart, DifferenceReason, NearestCall, TurnScope,
    UNREADABLE_ARGUMENTS, json_equal, named,
};
use serde_json::{Map, Value};

use super::answer::format_json;
use super::call_text::{format_calls, truncate};
use super::calls::{self, NamedTools};
use super::condition::{ArgumentCondition, ConditionError};
use super::containment::contains_value;
use super::count::CallCount;
use super::differences::{DifferenceList, ExtraMembers};
use super::nearest_call::{Similarity, compare_with_nearest};
use super::{CheckBehavior, CheckDecision, CheckOutcome, ForbiddenTexts, format_list};

named! {
    /// Comparison of arguments.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ArgumentMatch {
        /// All arguments are equal.
        Exact = "exact",
        /// The expected arguments exist and are equal; other arguments are allowed.
        Subset = "subset",
        /// Arguments are not compared.
        Ignored = "ignored",
    }
}

impl ArgumentMatch {
    /// Returns true if the arguments of a call match the expected ones.
    pub(super) fn matches(self, call: &AgentToolCall, expected: &Value) -> bool {
        match self {
            ArgumentMatch::Ignored => true,
            // Arguments that could not be parsed equal nothing.
            ArgumentMatch::Exact | ArgumentMatch::Subset if call.arguments_broken => false,
            ArgumentMatch::Exact => json_equal(&call.arguments, expected),
            ArgumentMatch::Subset => contains_value(&call.arguments, expected),
        }
    }

    /// Compares the arguments of a call with the expected ones, one by one.
    pub(super) fn similarity(self, call: &AgentToolCall, expected: &Value) -> Similarity {
        let mut similar = Similarity::default();
        for (key, expected) in expected.as_object().into_iter().flatten() {
            let Some(argument) = call.arguments.get(key) else { continue };
            similar.present += 1;
            similar.matching += usize::from(match self {
                ArgumentMatch::Ignored => true,
                ArgumentMatch::Exact => json_equal(argument, expected),
                ArgumentMatch::Subset => contains_value(argument, expected),
            });
        }
        similar
    }

    /// Adds the differences between the arguments of a call and the expected ones.
    pub(super) fn add_differences(self, call: &AgentToolCall, expected: &Value, list: &mut DifferenceList) {
        let extra = match self {
            ArgumentMatch::Ignored => return,
            ArgumentMatch::Exact => ExtraMembers::Forbidden,
            ArgumentMatch::Subset => ExtraMembers::Allowed,
        };
        let none = Value::Object(Map::new());
        match &call.arguments {
            arguments if call.arguments_broken => {
                list.push(
                    "",
                    DifferenceReason::InvalidJson,
                    Some(expected.to_string()),
                    Some(arguments),
                    None,
                );
            }
            Value::Null if *expected != none => list.compare("", expected, Some(&none), extra),
            arguments => {
                list.compare("", expected, Some(arguments), extra);
                list.explain_missing(|path, expected| {
                    calls::value_at(arguments, path).map(|_| path_note(path, expected))
                });
            }
        }
    }
}

/// Explains that an argument is not found by its path.
fn path_note(path: &str, expected: &str) -> String {
    let by_name = "`arguments` compares members by name, not by path";
    if path.split('.').any(|name| name.parse::<usize>().is_ok()) {
        return format!("{by_name}: use `where`");
    }
    let (outer, last) = path.rsplit_once('.').unwrap_or(("", path));
    let last = format!("{last}: {}", truncate(expected));
    let nested = outer.rsplit('.').fold(last, |inner, name| format!("{name}: {{ {inner} }}"));
    format!("{by_name}: write `{nested}`, or use `where`")
}

/// One of several tools is called a given number of times with given arguments.
#[derive(Debug, Clone)]
pub struct ToolCalled {
    /// Names of the tools, compared exactly.
    pub names: Vec<String>,
    /// MCP server of the test that must have received the call.
    pub server: Option<String>,
    /// Expected arguments, if any, and how to compare them.
    pub arguments: Option<(Value, ArgumentMatch)>,
    /// Conditions by the name of an argument.
    pub conditions: Vec<(String, ArgumentCondition)>,
    /// Allowed number of calls.
    pub count: CallCount,
}

/// The reason why it is unknown if a call matches.
#[derive(Debug, PartialEq, thiserror::Error)]
enum UnknownMatch {
    /// The arguments decide, and are unknown or no JSON object.
    #[error("the arguments are {UNREADABLE_ARGUMENTS}")]
    Unreadable,
    /// The type of an argument does not allow the comparison that its condition needs.
    #[error("the argument `{name}` is {source}")]
    Incomparable { name: String, source: ConditionError },
}

/// The numbers of calls that may match, by what is unknown of them.
struct CountRange<'a> {
    least: u64,
    most: u64,
    /// Calls whose arguments decide, and are unknown.
    unreadable: Vec<(usize, &'a AgentToolCall)>,
    /// The first reason why an argument cannot be compared.
    incomparable: Option<String>,
}

impl CountRange<'_> {
    /// Returns true if the calls of which something is unknown decide.
    fn is_undecided(&self, count: CallCount) -> bool {
        (self.least..=self.most).any(|counted| count.allows(counted) != count.allows(self.least))
    }
}

impl ToolCalled {
    /// Returns true if a function of the test program decides about an argument.
    pub(super) fn has_function(&self) -> bool {
        self.conditions.iter().any(|(_, condition)| matches!(condition, ArgumentCondition::Function(_)))
    }

    fn has_tool_name(&self, call: &AgentToolCall) -> bool {
        self.names.iter().any(|name| call.is_named(name))
    }

    fn is_of_tool(&self, call: &AgentToolCall) -> bool {
        self.has_tool_name(call) && calls::is_at_server(call, self.server.as_deref())
    }

    /// Returns true if the arguments decide, and are unknown or no JSON object.
    fn has_unknown_arguments(&self, call: &AgentToolCall) -> bool {
        let is_ignored = |(_, how): &(Value, ArgumentMatch)| *how == ArgumentMatch::Ignored;
        call.arguments_broken
            && (!self.conditions.is_empty() || !self.arguments.as_ref().is_none_or(is_ignored))
    }

    /// Returns true if a call matches.
    fn matches(&self, call: &AgentToolCall) -> Result<bool, UnknownMatch> {
        if !self.is_of_tool(call) {
            return Ok(false);
        }
        if self.has_unknown_arguments(call) {
            return Err(UnknownMatch::Unreadable);
        }
        if self.arguments.as_ref().is_some_and(|(arguments, how)| !how.matches(call, arguments)) {
            return Ok(false);
        }
        let mut unlike = None;
        for (name, condition) in &self.conditions {
            match condition.is_met(calls::value_at(&call.arguments, name)) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(source) => {
                    unlike.get_or_insert_with(|| UnknownMatch::Incomparable { name: name.clone(), source });
                }
            }
        }
        unlike.map_or(Ok(true), Err)
    }

    fn compare(&self, scope: TurnScope<'_>) -> Option<CallComparison> {
        compare_with_nearest(
            scope,
            |call| self.has_tool_name(call),
            |call| self.matches(call) == Ok(true),
            |call| self.similarity(call),
            |turn, call| self.differences(turn, call),
        )
    }

    fn similarity(&self, call: &AgentToolCall) -> Similarity {
        let arguments = self.arguments.as_ref();
        let mut similar =
            arguments.map_or_else(Similarity::default, |(expected, how)| how.similarity(call, expected));
        for (name, condition) in &self.conditions {
            let argument = calls::value_at(&call.arguments, name);
            similar.present += usize::from(argument.is_some());
            similar.matching += usize::from(condition.is_met(argument) == Ok(true));
        }
        similar
    }

    fn differences(&self, turn: usize, call: &AgentToolCall) -> NearestCall {
        let mut list = DifferenceList::new(ComparedPart::Arguments);
        if let Some((expected, how)) = &self.arguments {
            how.add_differences(call, expected, &mut list);
        }
        if !call.arguments_broken {
            for (name, condition) in &self.conditions {
                condition.add_differences(name, calls::value_at(&call.arguments, name), &mut list);
            }
        } else if self.arguments.is_none() {
            list.push("", DifferenceReason::InvalidJson, None, Some(&call.arguments), None);
        }
        list.of_call(turn, call)
    }

    /// Counts the calls that match, and those that may match.
    fn count_range<'a>(&self, scope: TurnScope<'a>) -> CountRange<'a> {
        let mut range = CountRange { least: 0, most: 0, unreadable: Vec::new(), incomparable: None };
        for (turn, call) in scope.calls() {
            let matches = self.matches(call);
            range.least += u64::from(matches == Ok(true));
            range.most += u64::from(matches != Ok(false));
            match matches {
                Ok(_) => {}
                Err(UnknownMatch::Unreadable) => range.unreadable.push((turn, call)),
                Err(error) => {
                    range.incomparable.get_or_insert_with(|| error.to_string());
                }
            }
        }
        range
    }
}

impl CheckBehavior for ToolCalled {
    fn forbidden_texts(&self, negated: bool) -> ForbiddenTexts {
        let forbids_calls = (negated || self.count.max.is_some())
            && (self.arguments.is_some() || !self.conditions.is_empty());
        let forbids_value = self.conditions.iter().any(|(_, condition)| condition.has_negation());
        ForbiddenTexts::in_calls(forbids_calls || forbids_value)
    }

    fn lasting_outcome(&self, scope: TurnScope<'_>) -> Option<CheckOutcome> {
        self.count.lasting_outcome(self.count_range(scope).least)
    }

    fn describe(&self) -> String {
        let mut with = match &self.arguments {
            Some((arguments, ArgumentMatch::Exact)) => format!(" with exactly {}", format_json(arguments)),
            Some((arguments, ArgumentMatch::Subset)) => format!(" with {}", format_json(arguments)),
            Some((_, ArgumentMatch::Ignored)) | None => String::new(),
        };
        let conditions =
            self.conditions.iter().map(|(name, condition)| format!("{name}: {}", condition.describe()));
        let conditions = conditions.collect::<Vec<_>>().join(", ");
        if !conditions.is_empty() {
            with.push_str(if with.is_empty() { " with " } else { " and " });
            with.push_str(&conditions);
        }
        let tools = calls::describe_tool(&self.names.join(" or "), self.server.as_deref());
        format!("{tools}{with} {}", self.count.describe())
    }

    fn undecided_reason(&self, scope: TurnScope<'_>) -> Option<String> {
        let range = self.count_range(scope);
        if range.is_undecided(self.count) { range.incomparable } else { None }
    }

    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        let range = self.count_range(scope);
        let (counted, is_undecided) = (range.least, range.is_undecided(self.count));
        if counted < self.count.min
            && let Some(comparison) = self.compare(scope)
            && !comparison.missing.is_empty()
        {
            return match is_undecided {
                true => CheckDecision::unmet(comparison, range.unreadable.len()),
                false => CheckDecision::violated(comparison),
            };
        }
        if is_undecided {
            return CheckDecision::undecided_calls(&range.unreadable);
        }
        // Other calls of the tool do not explain why there are too many matching ones.
        let is_listed = |call: &AgentToolCall| match counted {
            0 => self.has_tool_name(call),
            _ => self.matches(call) == Ok(true),
        };
        let named = format_calls(scope.calls().filter(|(_, call)| is_listed(call)));
        let actual = match named.is_empty() {
            true => match calls::called_tools(scope, &self.names) {
                names if names.is_empty() => "no tool calls".to_string(),
                names => format!("no call; tools called: {names}"),
            },
            false => format_list(&named),
        };
        CheckDecision::new(self.count.allows(counted), actual)
    }

    fn may_take_long(&self) -> bool {
        self.has_function()
    }

    fn named_tools(&self) -> Vec<NamedTools<'_>> {
        let tools = self.names.iter().map(String::as_str).collect();
        vec![NamedTools { server: self.server.as_deref(), tools }]
    }

    fn expected_tool(&self) -> Option<&str> {
        self.names.first().map(String::as_str)
    }
}
