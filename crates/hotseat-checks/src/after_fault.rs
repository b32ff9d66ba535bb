//! `after_fault`: the agent's behaviour after a fault that the test injected.

use std::collections::{HashMap, HashSet};

use hotseat_trace::{AgentToolCall, TurnScope, canonical_arguments, canonical_text, format_count};

use super::call_text::format_call;
use super::calls::{self, NamedTools, value_at};
use super::{CheckBehavior, CheckDecision, CheckOutcome, format_list};

/// Why the check cannot be decided: the test has injected no fault that it is about.
const NO_FAULT: &str = "no such fault was injected";

/// After a fault the agent retries a limited number of times, and does not call some tools.
#[derive(Debug, Clone)]
pub struct AfterFault {
    /// Only faults in calls of this tool.
    pub tool: Option<String>,
    /// Only faults of this MCP server.
    pub server: Option<String>,
    /// Maximum number of equal calls of the same tool after a fault in it, at any server unless one is named.
    pub max_retries: Option<u64>,
    /// Path of the argument that makes two calls equal. All arguments if `None`.
    pub key: Option<String>,
    /// Tools that must not be called after the first fault.
    pub forbid: Vec<String>,
}

impl AfterFault {
    fn is_meant(&self, call: &AgentToolCall) -> bool {
        let has_fault = call.server_call.as_ref().is_some_and(|call| !call.faults.is_empty());
        has_fault
            && self.tool.as_deref().is_none_or(|tool| call.is_named(tool))
            && calls::is_at_server(call, self.server.as_deref())
    }
}

impl CheckBehavior for AfterFault {
    fn describe(&self) -> String {
        let fault = match &self.tool {
            Some(tool) => format!("after a fault in {}", calls::describe_tool(tool, self.server.as_deref())),
            None => "after a fault".to_string(),
        };
        let same = self.key.as_ref().map(|key| format!(" with the same {key}")).unwrap_or_default();
        let retries = self.max_retries.map(|max| match max {
            1 => format!("at most 1 retry{same}"),
            max => format!("at most {max} retries{same}"),
        });
        let forbidden = (!self.forbid.is_empty()).then(|| format!("no call of {}", self.forbid.join(" or ")));
        let wanted: Vec<String> = retries.into_iter().chain(forbidden).collect();
        format!("{} {fault}", wanted.join(" and "))
    }

    fn named_tools(&self) -> Vec<NamedTools<'_>> {
        let tools = self.tool.as_deref().into_iter().collect();
        let forbidden = self.forbid.iter().map(String::as_str).collect();
        vec![
            NamedTools { server: self.server.as_deref(), tools },
            NamedTools { server: None, tools: forbidden },
        ]
    }

    fn undecided_reason(&self, scope: TurnScope<'_>) -> Option<String> {
        (!scope.calls().any(|(_, call)| self.is_meant(call))).then(|| NO_FAULT.to_string())
    }

    fn lasting_outcome(&self, _: TurnScope<'_>) -> Option<CheckOutcome> {
        Some(CheckOutcome::Violated)
    }

    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        let made: Vec<(usize, &AgentToolCall)> = scope.calls().collect();
        let Some(first) = made.iter().position(|(_, call)| self.is_meant(call)) else {
            return CheckDecision::not_applicable(NO_FAULT.to_string());
        };
        let show = |(turn, call): &(usize, &AgentToolCall)| format_call(*turn, call);
        let mut broken = Vec::new();
        if let Some(max) = self.max_retries {
            // Equal calls after the first one with a fault are its retries, also at another server.
            let mut retries: HashMap<(&str, String), Vec<String>> = HashMap::new();
            let (mut order, mut tools) = (Vec::new(), HashSet::new());
            for made in &made[first..] {
                let (_, call) = made;
                if !calls::is_at_server(call, self.server.as_deref()) {
                    continue;
                }
                let tool = call.server_call.as_ref().map_or(&*call.name, |call| &*call.tool);
                let intent = match &self.key {
                    None => canonical_arguments(&call.arguments),
                    Some(key) => match value_at(&call.arguments, key) {
                        Some(value) => canonical_text(value),
                        None if self.is_meant(call) || tools.contains(tool) => {
                            let reason = format!("a call has no argument {key}: {}", show(made));
                            return CheckDecision::not_applicable(reason);
                        }
                        None => continue,
                    },
                };
                let key = (tool, intent);
                match retries.get_mut(&key) {
                    Some(known) => known.push(show(made)),
                    None if self.is_meant(made.1) => {
                        tools.insert(tool);
                        order.push(key.clone());
                        retries.insert(key, Vec::new());
                    }
                    None => {}
                }
            }
            for key in order {
                let made = &retries[&key];
                if made.len() as u64 > max {
                    let noun = if made.len() == 1 { "retry" } else { "retries" };
                    broken.push(format!("{} {noun} of {}: {}", made.len(), key.0, format_list(made)));
                }
            }
        }
        let forbidden =
            made[first + 1..].iter().filter(|(_, call)| self.forbid.iter().any(|tool| call.is_named(tool)));
        broken.extend(forbidden.map(show));
        let actual = match broken.is_empty() {
            true => format!("{} after {}", format_count(made.len() - first - 1, "call"), show(&made[first])),
            false => format_list(&broken),
        };
        CheckDecision::new(broken.is_empty(), actual)
    }
}
