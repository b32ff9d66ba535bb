//! `idempotent`: a tool takes effect at most once for each key.

use std::collections::BTreeMap;

use hotseat_trace::{AgentToolCall, TurnScope};

use super::call_text::format_call;
use super::calls::{self, NamedTools, value_at};
use super::{CheckBehavior, CheckDecision, format_list};

/// Calls of a tool with the same key take effect at most once, however often the agent retries them.
#[derive(Debug, Clone)]
pub struct Idempotent {
    /// Name of the tool, compared exactly.
    pub tool: String,
    /// MCP server of the test that must have received the calls.
    pub server: Option<String>,
    /// Path of the argument that identifies the intended effect.
    pub key: String,
}

impl Idempotent {
    fn is_meant(&self, call: &AgentToolCall) -> bool {
        call.is_named(&self.tool) && calls::is_at_server(call, self.server.as_deref())
    }
}

/// True if the call took effect: as its server saw it, or else if the agent reports a result.
fn has_effect(call: &AgentToolCall) -> bool {
    match &call.server_call {
        Some(server_call) => server_call.has_effect(),
        None => call.result.as_ref().is_some_and(|result| !result.failed),
    }
}

impl CheckBehavior for Idempotent {
    fn describe(&self) -> String {
        let tool = calls::describe_tool(&self.tool, self.server.as_deref());
        format!("{tool} to take effect at most once for each {}", self.key)
    }

    fn named_tools(&self) -> Vec<NamedTools<'_>> {
        vec![NamedTools { server: self.server.as_deref(), tools: vec![&self.tool] }]
    }

    fn reads_calls(&self) -> bool {
        true
    }

    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        let made: Vec<_> = scope.calls().filter(|(_, call)| self.is_meant(call)).collect();
        if made.is_empty() {
            return CheckDecision::not_applicable(format!("no call of {}", self.tool));
        }
        let mut effects: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (turn, call) in made.iter().filter(|(_, call)| has_effect(call)) {
            let Some(key) = value_at(&call.arguments, &self.key) else {
                let shown = format_call(*turn, call);
                return CheckDecision::not_applicable(format!(
                    "a call has no argument {}: {shown}",
                    self.key
                ));
            };
            effects.entry(key.to_string()).or_default().push(format_call(*turn, call));
        }
        let repeated = effects.iter().filter(|(_, calls)| calls.len() > 1);
        let repeated: Vec<String> = repeated
            .map(|(key, calls)| {
                format!("{} effects for {} {key}: {}", calls.len(), self.key, format_list(calls))
            })
            .collect();
        let actual = match repeated.is_empty() {
            true => format!("{} of {} took effect, with different keys", effects.len(), count(made.len())),
            false => format_list(&repeated),
        };
        CheckDecision::new(repeated.is_empty(), actual)
    }
}

fn count(calls: usize) -> String {
    if calls == 1 { "1 call".to_string() } else { format!("{calls} calls") }
}
