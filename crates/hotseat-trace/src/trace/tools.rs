//! Tool events.

use super::view::picks;
use super::{ConversationView, TypedRecord};
use crate::{ErrorInfo, ToolCompleted, ToolFailed, ToolInvocation, ToolRetry};
use serde_json::Value;

/// Tool events.
#[derive(Debug, Clone)]
pub struct ToolCallEvents<'a>(pub(super) ConversationView<'a>);

/// An invocation, completion or failure of a tool.
#[derive(Debug, Clone, Copy)]
pub enum ToolEvent<'a> {
    /// The tool was called.
    Invoked(TypedRecord<'a, ToolInvocation>),
    /// The tool returned a result.
    Completed(TypedRecord<'a, ToolCompleted>),
    /// The tool failed.
    Failed(TypedRecord<'a, ToolFailed>),
}

/// A tool call with its outcome.
#[derive(Debug, Clone, Copy)]
pub struct ToolCallRun<'a> {
    /// The call.
    pub invocation: TypedRecord<'a, ToolInvocation>,
    /// Outcome of the call. None while it is running or after a cancellation.
    pub outcome: Option<ToolRunOutcome<'a>>,
}

/// Outcome of a tool call.
#[derive(Debug, Clone, Copy)]
pub enum ToolRunOutcome<'a> {
    /// The tool returned a result.
    Completed(TypedRecord<'a, ToolCompleted>),
    /// The tool failed.
    Failed(TypedRecord<'a, ToolFailed>),
}

impl<'a> ToolCallRun<'a> {
    /// Returns the result of a completed call.
    pub fn output(&self) -> Option<&'a Value> {
        match self.outcome {
            Some(ToolRunOutcome::Completed(p)) => Some(&p.payload.output),
            Some(ToolRunOutcome::Failed(_)) | None => None,
        }
    }

    /// Returns the error of a failed call.
    pub fn error(&self) -> Option<&'a ErrorInfo> {
        match self.outcome {
            Some(ToolRunOutcome::Failed(p)) => Some(&p.payload.error),
            Some(ToolRunOutcome::Completed(_)) | None => None,
        }
    }
}

impl<'a> ToolCallEvents<'a> {
    picks! {
        /// Returns the invocations.
        invocations: ToolInvocation = ToolInvoked;
        /// Returns the completions.
        completions: ToolCompleted = ToolCompleted;
        /// Returns the failures, including rejected calls.
        failures: ToolFailed = ToolFailed;
        /// Returns the scheduled retries.
        retries: ToolRetry = ToolRetry;
    }

    /// Returns the synchronous calls.
    pub fn synchronous(&self) -> Vec<TypedRecord<'a, ToolInvocation>> {
        self.invocations().into_iter().filter(|p| !p.r#async).collect()
    }

    /// Returns the asynchronous calls.
    pub fn asynchronous(&self) -> Vec<TypedRecord<'a, ToolInvocation>> {
        self.invocations().into_iter().filter(|p| p.r#async).collect()
    }

    /// Returns the calls of a turn.
    pub fn for_turn(&self, turn_id: &str) -> Vec<TypedRecord<'a, ToolInvocation>> {
        self.invocations().into_iter().filter(|p| &*p.turn_id == turn_id).collect()
    }

    /// Returns a call with its outcome.
    pub fn call(&self, tool_call_id: &str) -> Option<ToolCallRun<'a>> {
        let invocation = self.invocations().into_iter().find(|p| &*p.tool_call_id == tool_call_id)?;
        let completed = self.completions().into_iter().find(|p| &*p.tool_call_id == tool_call_id);
        let failed = || self.failures().into_iter().find(|p| &*p.tool_call_id == tool_call_id);
        let outcome =
            completed.map(ToolRunOutcome::Completed).or_else(|| failed().map(ToolRunOutcome::Failed));
        Some(ToolCallRun { invocation, outcome })
    }

    /// Returns all calls with their outcomes.
    pub fn calls(&self) -> Vec<ToolCallRun<'a>> {
        self.invocations().iter().filter_map(|p| self.call(&p.tool_call_id)).collect()
    }

    /// Returns the invocations, completions and failures of a tool, in order.
    pub fn by_name(&self, tool_name: &str) -> Vec<ToolEvent<'a>> {
        let calls = self.calls().into_iter().filter(|call| &*call.invocation.tool_name == tool_name);
        let mut events: Vec<_> = calls
            .flat_map(|call| {
                let end = call.outcome.map(|outcome| match outcome {
                    ToolRunOutcome::Completed(p) => (p.sequence, ToolEvent::Completed(p)),
                    ToolRunOutcome::Failed(p) => (p.sequence, ToolEvent::Failed(p)),
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
