//! Tool events.

use super::view::picks;
use super::{ConversationView, TypedRecord};
use crate::{ErrorInfo, Origin, ToolCompleted, ToolFailed, ToolInvocation, ToolRetry};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

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

    /// Returns the first call with an id, with its outcome.
    pub fn call(&self, tool_call_id: &str) -> Option<ToolCallRun<'a>> {
        self.calls().into_iter().find(|call| &*call.invocation.tool_call_id == tool_call_id)
    }

    /// Returns all calls with their outcomes.
    pub fn calls(&self) -> Vec<ToolCallRun<'a>> {
        let invocations = self.invocations();
        let outcomes = self.outcomes();
        let reported_ids: HashSet<&str> =
            invocations.iter().filter(|p| p.server.is_none()).map(|p| &*p.payload.tool_call_id).collect();
        let call = |invocation: TypedRecord<'a, ToolInvocation>| {
            let id = &*invocation.payload.tool_call_id;
            let (at_server, reported) = (outcomes.get(&(id, true)), outcomes.get(&(id, false)));
            let outcome = match invocation.server {
                None => reported,
                Some(_) if reported_ids.contains(id) => at_server,
                // Earlier versions did not record that a result comes from a server.
                Some(_) => at_server.or(reported),
            };
            ToolCallRun { invocation, outcome: outcome.copied() }
        };
        invocations.into_iter().map(call).collect()
    }

    /// Returns the first outcomes by the id of their call, and by whether the call is one at a server of the test: agents may use
    /// the ids of these. A result precedes a failure.
    fn outcomes(&self) -> HashMap<(&'a str, bool), ToolRunOutcome<'a>> {
        let completions = self.completions().into_iter().map(|p| {
            let id = (&*p.payload.tool_call_id, p.payload.origin == Origin::Server);
            (id, ToolRunOutcome::Completed(p))
        });
        let failures = self.failures().into_iter().map(|p| {
            let id = (&*p.payload.tool_call_id, p.payload.origin == Origin::Server);
            (id, ToolRunOutcome::Failed(p))
        });
        let mut outcomes = HashMap::new();
        for (id, outcome) in completions.chain(failures) {
            outcomes.entry(id).or_insert(outcome);
        }
        outcomes
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Event, EventRecord, Payload, TimeOffset, Trace};

    /// An agent may use the id that a call at a server of the test has.
    #[test]
    fn outcomes_belong_to_their_calls() {
        let invoked = |server: Option<&str>, tool: &str| {
            let invocation = ToolInvocation::new("t".into(), "c".into(), tool);
            Payload::ToolInvoked(ToolInvocation { server: server.map(Into::into), ..invocation })
        };
        let completed = |output: &str, origin| {
            let (turn_id, tool_call_id) = ("t".into(), "c".into());
            Payload::from(ToolCompleted { turn_id, tool_call_id, output: json!(output), origin })
        };
        let outputs = |payloads: Vec<Payload>| {
            let records = payloads.into_iter().zip(1..).map(|(payload, sequence)| {
                EventRecord::from(Event { sequence, offset: TimeOffset(sequence), timestamp: 0, payload })
            });
            let trace = Trace::new(records);
            let calls = trace.tools().calls();
            calls.iter().map(|call| call.output().cloned().unwrap_or_default()).collect::<Vec<_>>()
        };
        let (pay, look) = (invoked(Some("bank"), "pay"), invoked(None, "look"));
        let both = vec![
            pay.clone(),
            completed("paid", Origin::Server),
            look.clone(),
            completed("looked", Origin::Stream),
        ];
        assert_eq!(outputs(both), ["paid", "looked"]);
        assert_eq!(
            outputs(vec![pay.clone(), look, completed("looked", Origin::Stream)]),
            [json!(null), json!("looked")]
        );
        // Earlier versions recorded no other origin.
        assert_eq!(outputs(vec![pay, completed("paid", Origin::Stream)]), ["paid"]);
    }
}
