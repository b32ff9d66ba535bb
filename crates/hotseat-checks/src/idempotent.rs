//! `idempotent`: a tool takes effect at most once for each key.

use std::collections::BTreeMap;

use hotseat_trace::{AgentToolCall, TurnScope, canonical_text, format_count};

use super::call_text::{format_call, format_calls};
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

/// Calls with the same key that took effect, or may have.
#[derive(Default)]
struct KeyEffects<'a> {
    certain: Vec<(usize, &'a AgentToolCall)>,
    possible: Vec<(usize, &'a AgentToolCall)>,
}

impl Idempotent {
    fn is_meant(&self, call: &AgentToolCall) -> bool {
        call.is_named(&self.tool) && calls::is_at_server(call, self.server.as_deref())
    }
}

/// Returns whether the call took effect, as its server saw it, or else as the agent reports it. `None` if no result shows it.
fn has_effect(call: &AgentToolCall) -> Option<bool> {
    match &call.server_call {
        Some(server_call) if server_call.has_effect() => Some(true),
        Some(server_call) => server_call.has_failed().then_some(false),
        None => call.result.as_ref().map(|result| !result.failed),
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
        let mut effects: BTreeMap<String, KeyEffects<'_>> = BTreeMap::new();
        let mut keyless = None;
        for (turn, call) in all.filter(|(_, call)| self.is_meant(call)) {
            let effect = has_effect(call);
            if effect == Some(false) {
                continue;
            }
            // Arguments that are no object are unknown.
            let key = value_at(&call.arguments, &self.key).filter(|_| !call.arguments_broken);
            match key {
                Some(key) => {
                    let effects = effects.entry(canonical_text(key)).or_default();
                    let list = if effect.is_some() { &mut effects.certain } else { &mut effects.possible };
                    list.push((turn, call));
                }
                None if turn >= first => keyless = keyless.or(Some((turn, call))),
                None => {}
            }
        }
        let has_evaluated = |calls: &[(usize, &AgentToolCall)]| calls.iter().any(|(turn, _)| *turn >= first);
        effects
            .retain(|_, KeyEffects { certain, possible }| has_evaluated(certain) || has_evaluated(possible));
        let repeated = effects.iter();
        let repeated =
            repeated.filter(|(_, KeyEffects { certain, .. })| certain.len() > 1 && has_evaluated(certain));
        let repeated: Vec<String> = repeated
            .map(|(key, KeyEffects { certain, .. })| {
                let calls = format_calls(certain.iter().copied());
                format!("{} effects for {} {key}: {}", calls.len(), self.key, format_list(&calls))
            })
            .collect();
        if !repeated.is_empty() {
            return CheckDecision::new(false, format_list(&repeated));
        }
        if let Some((turn, call)) = keyless {
            let reason = format!("a call has no argument {}: {}", self.key, format_call(turn, call));
            return CheckDecision::not_applicable(reason);
        }
        let undecided = effects.values().filter(|effects| effects.certain.len() + effects.possible.len() > 1);
        let undecided: Vec<_> = undecided.flat_map(|effects| effects.possible.iter().copied()).collect();
        if !undecided.is_empty() {
            return CheckDecision::undecided_calls(&undecided);
        }
        let unknown = effects.values().filter(|effects| effects.certain.is_empty()).count();
        let may_have = if unknown > 0 { format!(", {unknown} may have") } else { String::new() };
        CheckDecision::new(
            true,
            format!(
                "{} of {} took effect{may_have}, with different keys",
                effects.len() - unknown,
                format_count(made.len(), "call")
            ),
        )
    }
}
