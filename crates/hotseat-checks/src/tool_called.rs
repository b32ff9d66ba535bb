//! `tool_called`: a tool is called, optionally with given arguments.

use hotseat_trace::{AgentToolCall, TurnScope};
use serde_json::Value;

use super::answer::format_json;
use super::calls;
use super::condition::ArgumentCondition;
use super::count::CallCount;
use super::equality::{contains_value, json_equal};
use super::{CheckBehavior, CheckDecision, format_list};

/// Comparison of arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentMatch {
    /// All arguments are equal.
    Exact,
    /// The expected arguments exist and are equal; other arguments are allowed.
    Subset,
    /// Arguments are not compared.
    Ignored,
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

impl ToolCalled {
    fn has_tool_name(&self, call: &AgentToolCall) -> bool {
        self.names.iter().any(|name| call.is_named(name))
    }

    /// Returns true if a call matches.
    ///
    /// # Errors
    /// If the type of an argument does not allow the comparison that its condition needs.
    fn matches(&self, call: &AgentToolCall) -> Result<bool, String> {
        let has_arguments =
            self.arguments.as_ref().is_none_or(|(arguments, how)| how.matches(call, arguments));
        if !self.has_tool_name(call)
            || !calls::is_at_server(call, self.server.as_deref())
            || !has_arguments
            || (call.arguments_broken && !self.conditions.is_empty())
        {
            return Ok(false);
        }
        let mut unlike = None;
        for (name, condition) in &self.conditions {
            match condition.is_met(call.arguments.get(name)) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(words) => drop(unlike.get_or_insert(format!("the argument `{name}` is {words}"))),
            }
        }
        unlike.map_or(Ok(true), Err)
    }

    /// Returns the minimum and maximum number of matching calls, and the reason if they differ.
    fn count_range(&self, scope: TurnScope<'_>) -> (u64, u64, Option<String>) {
        let (mut least, mut most, mut why) = (0, 0, None);
        for (_, call) in scope.calls() {
            match self.matches(call) {
                Ok(fits) => (least, most) = (least + u64::from(fits), most + u64::from(fits)),
                Err(words) => {
                    most += 1;
                    why.get_or_insert(words);
                }
            }
        }
        (least, most, why)
    }
}

impl CheckBehavior for ToolCalled {
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
        let (least, most, why) = self.count_range(scope);
        let allowed = self.count.allows(least);
        (least..=most).any(|counted| self.count.allows(counted) != allowed).then_some(why).flatten()
    }

    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        if let Some(words) = self.undecided_reason(scope) {
            return CheckDecision::not_applicable(words);
        }
        let (counted, ..) = self.count_range(scope);
        let named: Vec<String> = scope
            .calls()
            .filter(|(_, call)| self.has_tool_name(call))
            .map(|(turn, call)| calls::format_call(turn, call))
            .collect();
        let actual = match named.is_empty() {
            true => match calls::tool_names(scope).as_slice() {
                [] => "no tool calls".to_string(),
                names => format!("no call; tools called: {}", names.join(", ")),
            },
            false => format_list(&named),
        };
        CheckDecision::new(self.count.allows(counted), actual)
    }

    fn servers(&self) -> Vec<&str> {
        self.server.as_deref().into_iter().collect()
    }

    fn reads_calls(&self) -> bool {
        true
    }

    fn expected_tool(&self) -> Option<&str> {
        self.names.first().map(String::as_str)
    }
}
