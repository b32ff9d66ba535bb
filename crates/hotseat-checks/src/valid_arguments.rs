//! `valid_arguments`: the arguments of calls satisfy the input schemas of MCP servers.

use hotseat_trace::{AgentToolCall, ServerCall, TurnScope};

use super::call_text::format_call;
use super::calls::{self, NamedTools};
use super::{CheckBehavior, CheckDecision, CheckOutcome, format_list};

/// No call that an MCP server of the test received violates the input schema of its tool.
#[derive(Debug, Clone)]
pub struct ValidArguments {
    /// Only calls of this tool.
    pub tool: Option<String>,
    /// Only calls that this MCP server received.
    pub server: Option<String>,
}

impl ValidArguments {
    /// The calls that the check is about, as their servers saw them.
    fn seen_calls<'a>(&self, scope: TurnScope<'a>) -> Vec<(usize, &'a AgentToolCall, &'a ServerCall)> {
        let made = scope.calls().filter_map(|(turn, call)| {
            let seen = call.server_call.as_ref()?;
            let is_meant = self.tool.as_deref().is_none_or(|tool| call.is_named(tool))
                && calls::is_at_server(call, self.server.as_deref());
            is_meant.then_some((turn, call, seen))
        });
        made.collect()
    }
}

impl CheckBehavior for ValidArguments {
    fn describe(&self) -> String {
        let calls = match &self.tool {
            Some(tool) => format!("calls of {}", calls::describe_tool(tool, self.server.as_deref())),
            None => "calls".to_string(),
        };
        format!("{calls} to satisfy the input schema")
    }

    fn named_tools(&self) -> Vec<NamedTools<'_>> {
        let tools = self.tool.as_deref().into_iter().collect();
        vec![NamedTools { server: self.server.as_deref(), tools }]
    }

    fn lasting_outcome(&self, _: TurnScope<'_>) -> Option<CheckOutcome> {
        Some(CheckOutcome::Violated)
    }

    fn undecided_reason(&self, scope: TurnScope<'_>) -> Option<String> {
        let made = self.seen_calls(scope);
        let is_valid = made.iter().all(|(_, _, seen)| seen.argument_errors.is_empty());
        let (turn, call, seen) =
            made.iter().find(|(_, _, seen)| seen.arguments_unchecked).filter(|_| is_valid)?;
        let shown = format_call(*turn, call);
        let server = &seen.server;
        Some(match &seen.schema_problem {
            Some(problem) => {
                format!(
                    "MCP server `{server}` lists a tool that cannot be used: {problem}; the call: {shown}"
                )
            }
            None => format!(
                "the schema of a tool is not known: the agent did not list the tools of MCP server `{server}`, or the list is too long: {shown}"
            ),
        })
    }

    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        let made = self.seen_calls(scope);
        if made.is_empty() {
            return CheckDecision::not_applicable(
                "no MCP server of the test received such a call".to_string(),
            );
        }
        let invalid = made.iter().filter(|(_, _, seen)| !seen.argument_errors.is_empty());
        let invalid: Vec<String> = invalid
            .map(|(turn, call, seen)| {
                format!("{}: {}", format_call(*turn, call), seen.argument_errors.join("; "))
            })
            .collect();
        let actual = match invalid.is_empty() {
            true => format!("{} valid", made.len()),
            false => format_list(&invalid),
        };
        CheckDecision::new(invalid.is_empty(), actual)
    }
}
