//! The agent calls match the expected ones, in order.

use super::mismatch::{Mismatch, find_difference};
use crate::{ConversationView, InvocationMode};

/// An expected agent call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentCallSpec {
    /// How the agent participates.
    pub mode: InvocationMode,
    /// True if the call completed, false if it failed.
    pub completed: bool,
    /// True if the agent saw the earlier history.
    pub saw_history: bool,
}

pub(super) fn find(view: &ConversationView<'_>, specs: &[AgentCallSpec]) -> Vec<Mismatch> {
    let agents = view.agents();
    let calls = agents.calls().into_iter().map(|call| AgentCallSpec {
        mode: call.mode,
        completed: agents.completions().iter().any(|end| end.call_id == call.call_id),
        saw_history: agents
            .context_for(&call.call_id)
            .is_some_and(|context| context.conversation_history.is_some()),
    });
    find_difference("calls of agents", specs.to_vec(), calls.collect()).into_iter().collect()
}
