//! The tool calls of a conversation.

use super::view::pick;
use super::{Typed, View};
use crate::{ErrorInfo, ToolCompleted, ToolFailed, ToolInvocation, ToolRetry};
use serde_json::Value;

/// Tool events.
#[derive(Debug, Clone)]
pub struct Tools<'a>(pub(super) View<'a>);

/// An event of a tool, of any of three types.
#[derive(Debug, Clone, Copy)]
pub enum ToolEvent<'a> {
    /// It was called.
    Invoked(Typed<'a, ToolInvocation>),
    /// It answered.
    Completed(Typed<'a, ToolCompleted>),
    /// It failed.
    Failed(Typed<'a, ToolFailed>),
}

/// A call together with what it came to.
#[derive(Debug, Clone, Copy)]
pub struct ToolRun<'a> {
    /// The call.
    pub invocation: Typed<'a, ToolInvocation>,
    /// What it came to; none while it runs, and when it was given up.
    pub outcome: Option<Outcome<'a>>,
}

/// What a call came to.
#[derive(Debug, Clone, Copy)]
pub enum Outcome<'a> {
    /// It answered.
    Completed(Typed<'a, ToolCompleted>),
    /// It failed.
    Failed(Typed<'a, ToolFailed>),
}

impl<'a> ToolRun<'a> {
    /// What the tool returned.
    pub fn output(&self) -> Option<&'a Value> {
        match self.outcome {
            Some(Outcome::Completed(p)) => Some(&p.payload.output),
            Some(Outcome::Failed(_)) | None => None,
        }
    }

    /// Why it failed.
    pub fn error(&self) -> Option<&'a ErrorInfo> {
        match self.outcome {
            Some(Outcome::Failed(p)) => Some(&p.payload.error),
            Some(Outcome::Completed(_)) | None => None,
        }
    }
}

impl<'a> Tools<'a> {
    /// The calls that were made.
    pub fn invocations(&self) -> Vec<Typed<'a, ToolInvocation>> {
        pick!(self.0, ToolInvoked)
    }

    /// Where tools answered.
    pub fn completions(&self) -> Vec<Typed<'a, ToolCompleted>> {
        pick!(self.0, ToolCompleted)
    }

    /// Where tools failed; calls that were refused included.
    pub fn failures(&self) -> Vec<Typed<'a, ToolFailed>> {
        pick!(self.0, ToolFailed)
    }

    /// Where tools are tried again.
    pub fn retries(&self) -> Vec<Typed<'a, ToolRetry>> {
        pick!(self.0, ToolRetry)
    }

    /// The calls that the turn waited for.
    pub fn synchronous(&self) -> Vec<Typed<'a, ToolInvocation>> {
        self.invocations().into_iter().filter(|p| !p.r#async).collect()
    }

    /// The calls that the turn did not wait for.
    pub fn asynchronous(&self) -> Vec<Typed<'a, ToolInvocation>> {
        self.invocations().into_iter().filter(|p| p.r#async).collect()
    }

    /// The calls of one turn.
    pub fn for_turn(&self, turn_id: &str) -> Vec<Typed<'a, ToolInvocation>> {
        self.invocations().into_iter().filter(|p| &*p.turn_id == turn_id).collect()
    }

    /// A call with what it came to.
    pub fn call(&self, tool_call_id: &str) -> Option<ToolRun<'a>> {
        let invocation = self.invocations().into_iter().find(|p| &*p.tool_call_id == tool_call_id)?;
        let completed = self.completions().into_iter().find(|p| &*p.tool_call_id == tool_call_id);
        let failed = || self.failures().into_iter().find(|p| &*p.tool_call_id == tool_call_id);
        let outcome = completed.map(Outcome::Completed).or_else(|| failed().map(Outcome::Failed));
        Some(ToolRun { invocation, outcome })
    }

    /// Every call with what it came to.
    pub fn calls(&self) -> Vec<ToolRun<'a>> {
        self.invocations().iter().filter_map(|p| self.call(&p.tool_call_id)).collect()
    }

    /// Calls, answers and failures of one tool, in order.
    pub fn by_name(&self, tool_name: &str) -> Vec<ToolEvent<'a>> {
        let calls = self.calls().into_iter().filter(|call| &*call.invocation.tool_name == tool_name);
        let mut events: Vec<_> = calls
            .flat_map(|call| {
                let end = call.outcome.map(|outcome| match outcome {
                    Outcome::Completed(p) => (p.sequence, ToolEvent::Completed(p)),
                    Outcome::Failed(p) => (p.sequence, ToolEvent::Failed(p)),
                });
                [Some((call.invocation.sequence, ToolEvent::Invoked(call.invocation))), end]
                    .into_iter()
                    .flatten()
            })
            .collect();
        events.sort_by_key(|(sequence, _)| *sequence);
        events.into_iter().map(|(_, event)| event).collect()
    }
}
