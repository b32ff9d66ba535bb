//! The finish reason of a reply.

use std::sync::Arc;

use hotseat_model::StopReason;

/// The finish reason that counts of those that a reply reports one after another, as the agent names it.
#[derive(Debug, Default)]
pub(crate) struct FinishReason {
    name: Option<Arc<str>>,
    /// One for tool calls that text follows. It counts only if no other one comes.
    step: Option<Arc<str>>,
}

impl FinishReason {
    /// Adds a later reason, if there is one.
    pub(crate) fn add(&mut self, name: Option<Arc<str>>) {
        self.name = StopReason::later_name(self.name.take(), name);
    }

    /// Notes that the reply continues with a text: a bridge that forwards each step of its model also forwards its finish reason.
    pub(crate) fn follow_with(&mut self, text: &str) {
        let is_step = |name: &mut Arc<str>| StopReason::from_provider(name) == StopReason::ToolUse;
        if !text.trim().is_empty()
            && let Some(name) = self.name.take_if(is_step)
        {
            self.step = Some(name);
        }
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref().or(self.step.as_deref())
    }

    pub(crate) fn into_name(self) -> Option<Arc<str>> {
        self.name.or(self.step)
    }
}
