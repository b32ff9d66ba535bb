//! Notices agents behind chat completions that never show a tool call: a server that executes its tools itself need not.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::attempt_result::Attempt;
use crate::config::ProjectAgent;

/// The agents of a run that may hide their calls.
#[derive(Debug, Default)]
pub struct ShownCalls(Mutex<BTreeMap<String, CallSightings>>);

/// What the conversations with an agent contained.
#[derive(Debug, Default)]
struct CallSightings {
    has_calls: bool,
    /// True if an assertion read the calls.
    are_asserted: bool,
}

impl ShownCalls {
    /// Remembers a conversation in which nothing but the agent shows its calls.
    pub(super) fn note(&self, agent: &ProjectAgent, attempt: &Attempt) {
        if !agent.may_hide_calls() {
            return;
        }
        let mut agents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sightings = agents.entry(agent.words()).or_default();
        sightings.has_calls |= attempt.conversation.turns.iter().any(|turn| !turn.tool_calls.is_empty());
        sightings.are_asserted |= attempt.checks.iter().any(|result| result.reads_calls);
    }

    /// Warnings about agents that showed no call in the whole run although assertions read them.
    pub fn warnings(&self) -> Vec<String> {
        let agents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let silent = agents.iter().filter(|(_, seen)| seen.are_asserted && !seen.has_calls);
        let words = |(agent, _): (&String, &CallSightings)| {
            format!(
                "no reply of {agent} contained a tool call: if its server executes tools without showing them, assertions that a tool is not called pass wrongly"
            )
        };
        silent.map(words).collect()
    }
}
