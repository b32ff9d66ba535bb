//! All events of a call agree: invocation, work, outcome, move, and the result passed to the turn.

use serde_json::Value;

use super::violation::ViolationCollector;
use crate::{
    ConversationView, MoveRecorded, Payload, ToolInvocation, ToolOutcome, ToolRunOutcome, TypedRecord,
};

pub(super) fn check(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    for call in view.tools().calls() {
        let started = call.invocation;
        let id = &started.tool_call_id;
        let made = view
            .moves()
            .all()
            .into_iter()
            .find(|made| made.tool_call.as_ref().is_some_and(|call| call.tool_call_id == *id));
        let outcome = call.outcome.map(|outcome| match outcome {
            ToolRunOutcome::Completed(p) => (p.sequence, Ok(p.payload.output.clone())),
            ToolRunOutcome::Failed(p) => (p.sequence, Err(p.payload.error.clone())),
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
            wrong("the turn does not wait for or track the call as declared");
        }
        let settled = usize::from(started.r#async && tracked == 1 && outcome.is_some());
        if ended != settled || results != settled {
            wrong("the result was not passed to the turn exactly once");
        }
        check_work(
            view,
            &started,
            tracked + waited > 0,
            outcome.as_ref().map(|(_, result)| result),
            &mut wrong,
        );
        if let Some(made) = made {
            check_move(view, &started, &made, outcome.as_ref().map(|(_, result)| result), &mut wrong);
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
                    wrong("the result passed to the turn differs from the outcome");
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
            found.add("a result belongs to another call".to_string(), [record.sequence]);
        }
    }
}

fn count(view: &ConversationView<'_>, wanted: impl Fn(&Payload) -> bool) -> usize {
    view.records().filter(|record| wanted(&record.payload)).count()
}

/// Checks that the work run for a call matches its declared target.
fn check_work(
    view: &ConversationView<'_>,
    call: &TypedRecord<'_, ToolInvocation>,
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
                    wrong("the agent's invocation mode differs from that of the call");
                }
                let contexts = view.agents().calls().len();
                let shared = view.records().filter(|record| {
                    matches!(&record.payload, Payload::AgentCallContext(c) if c.call_id == *id && c.mode == p.mode
                        && c.conversation_history.is_some() == (c.mode == crate::InvocationMode::LoopIn))
                });
                if shared.count() != 1 || contexts == 0 {
                    wrong("the called agent did not get its context exactly once");
                }
            }
            Payload::TaskCompleted(p) if p.run_id == *id => returned.push(&*p.output),
            Payload::WorkflowCompleted(p) if p.run_id == *id => returned.push(&*p.output),
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
    // A cancelled call may have started no work.
    let given_up = outcome.is_none();
    if ran != expected && !(given_up && ran.is_empty()) {
        wrong("the work that ran is not the declared target");
    }
    if kind == Some("client") && target.is_none_or(|target| *target != call.tool_name) {
        wrong("the target of a client tool must be its name");
    }
    if let (Some(Ok(output)), Some(last)) = (outcome, returned.last())
        && output != *last
    {
        wrong("its result differs from the output of its work");
    }
}

/// Checks that a move agrees with the invocation of its call.
fn check_move(
    view: &ConversationView<'_>,
    call: &TypedRecord<'_, ToolInvocation>,
    made: &TypedRecord<'_, MoveRecorded>,
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
        wrong("its move disagrees with the invocation");
    }
    let told = made.tool_result.as_ref();
    if told.is_some_and(|told| told.tool_call_id != call.tool_call_id || Some(&told.result) != outcome) {
        wrong("its move has a different result");
    }
    let asked = view.interrupts().raised().into_iter().find(|asked| asked.interrupt_id == call.tool_call_id);
    if let Some(asked) = asked {
        let value = serde_json::json!({"toolName": call.tool_name, "input": call.input});
        if asked.value != value || asked.reason.as_deref() != Some("tool_approval") {
            wrong("the approval question differs from the call");
        }
    }
}
