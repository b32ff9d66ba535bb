//! What is recorded of a call in several places is the same: invocation, work, outcome, move and what the turn was told.

use serde_json::Value;

use super::{Found, InvariantOptions};
use crate::{MoveRecorded, Outcome, Payload, ToolInvocation, ToolOutcome, Typed, View};

pub(super) fn check(view: &View<'_>, _options: &InvariantOptions, found: &mut Found) {
    for call in view.tools().calls() {
        let started = call.invocation;
        let id = &started.tool_call_id;
        let made = view
            .moves()
            .all()
            .into_iter()
            .find(|made| made.tool_call.as_ref().is_some_and(|call| call.tool_call_id == *id));
        let outcome = call.outcome.map(|outcome| match outcome {
            Outcome::Completed(p) => (p.sequence, Ok(p.payload.output.clone())),
            Outcome::Failed(p) => (p.sequence, Err(p.payload.error.clone())),
        });
        let mut wrong = |what: &str| found.add(format!("call {id}: {what}"), [started.sequence]);
        let tracked =
            count(view, |payload| matches!(payload, Payload::AsyncTracked(p) if p.operation_id == *id));
        let waited =
            count(view, |payload| matches!(payload, Payload::TurnWaiting(p) if p.operation_id == *id));
        let ended =
            count(view, |payload| matches!(payload, Payload::AsyncCompleted(p) if p.operation_id == *id));
        let results = count(
            view,
            |payload| matches!(payload, Payload::MoveResult(p) if p.tool_result.tool_call_id == *id),
        );
        let asked = view.interrupts().raised().iter().any(|asked| asked.interrupt_id == *id);
        let (own, foreign) = if started.r#async { (tracked, waited) } else { (waited, tracked) };
        if foreign != 0 || own > 1 || (own == 0 && !asked) {
            wrong("how the turn goes on is not as the call says");
        }
        let settled = usize::from(started.r#async && tracked == 1 && outcome.is_some());
        if ended != settled || results != settled {
            wrong("the turn is not told once what it came to");
        }
        work(view, &started, tracked + waited > 0, outcome.as_ref().map(|(_, result)| result), &mut wrong);
        if let Some(made) = made {
            agrees(view, &started, &made, outcome.as_ref().map(|(_, result)| result), &mut wrong);
        }
        if let Some((sequence, result)) = &outcome {
            let told = |told: &ToolOutcome, at: u64| {
                told.tool_call_id == *id && told.result == *result && at > *sequence
            };
            let mut last = *sequence;
            for record in view.records() {
                let same = match &record.payload {
                    Payload::MoveResult(p) if p.tool_result.tool_call_id == *id => {
                        let of_move = made.is_some_and(|made| made.move_id == p.move_id);
                        of_move && told(&p.tool_result, record.sequence)
                    }
                    Payload::AsyncCompleted(p) if p.operation_id == *id => told(&p.result, record.sequence),
                    _ => continue,
                };
                if !same || record.sequence < last {
                    wrong("what the turn is told is not what it came to");
                }
                last = record.sequence;
            }
        }
    }
    for record in view.records() {
        let unknown = match &record.payload {
            Payload::MoveResult(p) => view.tools().call(&p.tool_result.tool_call_id).is_none(),
            Payload::AsyncCompleted(p) => p.operation_id != p.result.tool_call_id,
            _ => false,
        };
        if unknown {
            found.add("a result is that of another call".to_string(), [record.sequence]);
        }
    }
}

fn count(view: &View<'_>, wanted: impl Fn(&Payload) -> bool) -> usize {
    view.records().filter(|record| wanted(&record.payload)).count()
}

/// Whether what ran for a call is what the call names.
fn work(
    view: &View<'_>,
    call: &Typed<'_, ToolInvocation>,
    is_made: bool,
    outcome: Option<&Result<Value, crate::ErrorInfo>>,
    wrong: &mut impl FnMut(&str),
) {
    let (id, target) = (&call.tool_call_id, call.target_id.as_ref());
    let mut ran = Vec::new();
    let mut returned = Vec::new();
    for record in view.records() {
        match &record.payload {
            Payload::TaskStarted(p) if p.run_id == *id => ran.push(("task", p.task_id.clone())),
            Payload::WorkflowStarted(p) if p.run_id == *id => ran.push(("workflow", p.workflow_id.clone())),
            Payload::AgentCallStarted(p) if p.call_id == *id => {
                ran.push(("agent", p.agent_id.clone()));
                if Some(p.mode) != call.invocation_mode {
                    wrong("the agent takes part in another way than the call says");
                }
                let contexts = view.agents().calls().len();
                let shared = view.records().filter(|record| {
                    matches!(&record.payload, Payload::AgentCallContext(c) if c.call_id == *id && c.mode == p.mode
                        && c.conversation_history.is_some() == (c.mode == crate::InvocationMode::LoopIn))
                });
                if shared.count() != 1 || contexts == 0 {
                    wrong("the called agent was not told once what it may know");
                }
            }
            Payload::TaskCompleted(p) if p.run_id == *id => returned.push(&p.output),
            Payload::WorkflowCompleted(p) if p.run_id == *id => returned.push(&p.output),
            Payload::AgentCallCompleted(p) if p.call_id == *id => returned.push(&p.output),
            _ => {}
        }
    }
    let kind = call.target_type.as_deref();
    let expected = match kind {
        Some("client") => Vec::new(),
        _ if !is_made => Vec::new(),
        _ => vec![(kind, target)],
    };
    let ran: Vec<_> = ran.iter().map(|(kind, target)| (Some(*kind), Some(target))).collect();
    // A call that was given up may have come to nothing.
    let given_up = outcome.is_none();
    if ran != expected && !(given_up && ran.is_empty()) {
        wrong("what ran is not what it names");
    }
    if kind == Some("client") && target.is_none_or(|target| *target != call.tool_name) {
        wrong("a tool of the client is called by its name");
    }
    if let (Some(Ok(output)), Some(last)) = (outcome, returned.last())
        && output != *last
    {
        wrong("it returned something else than what ran for it");
    }
}

/// Whether a move says of its call what the call says of itself.
fn agrees(
    view: &View<'_>,
    call: &Typed<'_, ToolInvocation>,
    made: &Typed<'_, MoveRecorded>,
    outcome: Option<&Result<Value, crate::ErrorInfo>>,
    wrong: &mut impl FnMut(&str),
) {
    let edited = view.records().filter_map(|record| match &record.payload {
        Payload::ToolArguments(p) if p.tool_call_id == call.tool_call_id => p.input.as_ref(),
        _ => None,
    });
    let input = edited.last().or(call.input.as_ref());
    let Some(of_move) = &made.tool_call else { return };
    if of_move.tool_id != call.tool_name || Some(&of_move.input) != input || made.turn_id != call.turn_id {
        wrong("its move says something else of it");
    }
    let told = made.tool_result.as_ref();
    if told.is_some_and(|told| told.tool_call_id != call.tool_call_id || Some(&told.result) != outcome) {
        wrong("its move has another result");
    }
    let asked = view.interrupts().raised().into_iter().find(|asked| asked.interrupt_id == call.tool_call_id);
    if let Some(asked) = asked {
        let value = serde_json::json!({"toolName": call.tool_name, "input": call.input});
        if asked.value != value || asked.reason.as_deref() != Some("tool_approval") {
            wrong("a person was asked something else");
        }
    }
}
