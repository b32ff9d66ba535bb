//! The calls of agents are these, in this order, and no others.

use super::{Mismatch, differs};
use crate::{InvocationMode, View};

/// One expected call of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentCall {
    /// How it takes part.
    pub mode: InvocationMode,
    /// Whether it answered; otherwise it failed.
    pub completed: bool,
    /// Whether it saw what was said before.
    pub saw_history: bool,
}

pub(super) fn find(view: &View<'_>, specs: &[AgentCall]) -> Vec<Mismatch> {
    let agents = view.agents();
    let calls = agents.calls().into_iter().map(|call| AgentCall {
        mode: call.mode,
        completed: agents.completions().iter().any(|end| end.call_id == call.call_id),
        saw_history: agents
            .context_for(&call.call_id)
            .is_some_and(|context| context.conversation_history.is_some()),
    });
    differs("calls of agents", specs.to_vec(), calls.collect()).into_iter().collect()
}
