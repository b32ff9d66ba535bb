//! `idempotent`: a tool takes effect at most once for each key.

use std::collections::BTreeMap;

use hotseat_trace::{AgentToolCall, TurnScope, canonical_text, format_count};

use super::call_text::format_call;
use super::calls::{self, NamedTools, value_at};
use super::{CheckBehavior, CheckDecision, CheckOutcome, format_list};

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

/// Effects with the same key.
#[derive(Default)]
struct KeyEffects {
    calls: Vec<String>,
    /// Whether one of them is in the evaluated turns.
    is_evaluated: bool,
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

    fn lasting_outcome(&self, _: TurnScope<'_>) -> Option<CheckOutcome> {
        Some(CheckOutcome::Violated)
    }

    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        let made: Vec<_> = scope.calls().filter(|(_, call)| self.is_meant(call)).collect();
        if made.is_empty() {
            return CheckDecision::not_applicable(format!("no call of {}", self.tool));
        }
        let first = scope.turns().first().map_or(0, |turn| turn.number);
        // Earlier turns count, too: a user who reads of a failure may ask again.
        let all = scope.turns_up_to_end().iter();
        let all = all.flat_map(|turn| turn.tool_calls.iter().map(|call| (turn.number, call)));
        let mut effects: BTreeMap<String, KeyEffects> = BTreeMap::new();
        for (turn, call) in all.filter(|(_, call)| self.is_meant(call) && has_effect(call)) {
            let is_evaluated = turn >= first;
            match value_at(&call.arguments, &self.key) {
                Some(key) => {
                    let effects = effects.entry(canonical_text(key)).or_default();
                    effects.is_evaluated |= is_evaluated;
                    effects.calls.push(format_call(turn, call));
                }
                None if is_evaluated => {
                    let shown = format_call(turn, call);
                    let reason = format!("a call has no argument {}: {shown}", self.key);
                    return CheckDecision::not_applicable(reason);
                }
                None => {}
            }
        }
        effects.retain(|_, effects| effects.is_evaluated);
        let repeated = effects.iter().filter(|(_, effects)| effects.calls.len() > 1);
        let repeated: Vec<String> = repeated
            .map(|(key, KeyEffects { calls, .. })| {
                format!("{} effects for {} {key}: {}", calls.len(), self.key, format_list(calls))
            })
            .collect();
        let actual = match repeated.is_empty() {
            true => format!(
                "{} of {} took effect, with different keys",
                effects.len(),
                format_count(made.len(), "call")
            ),
            false => format_list(&repeated),
        };
        CheckDecision::new(repeated.is_empty(), actual)
    }
}
