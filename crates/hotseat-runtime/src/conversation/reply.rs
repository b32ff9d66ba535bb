//! What follows from a reply of the model.

use std::sync::Arc;

use hotseat_model::{Reply, ToolCall};
use hotseat_trace::{InvocationMode, MoveCall, Participant, ToolOutcome};
use serde_json::Value;

use super::state::{Operation, Work};
use super::{Caller, Decision, MoveDraft, NextStep, Role, State, Turn, react};
use crate::definition::{Definitions, Limits, Persona, Target, Tool, definitions, schema};
use crate::failure::{ErrorCode, Failure};
use crate::ids::CallId;

/// The name of the built-in tool with which a called agent declines.
pub(super) const DECLINE: &str = "decline";

/// The decisions that follow from a reply, and how the turn goes on after them.
pub(super) fn plan(
    state: &State,
    definitions: &Definitions,
    limits: &Limits,
    turn: &Turn,
    reply: &Reply,
    last: bool,
) -> (NextStep, Vec<Decision>) {
    let text = (!reply.text.is_empty()).then(|| reply.text.clone());
    // Tools that were no longer offered are not called.
    let calls: &[ToolCall] = if last { &[] } else { &reply.tool_calls };
    let mut decisions = Vec::new();
    let said = |has_tool_use: bool| {
        text.clone().map(|content| Decision::AppendMessage {
            turn: turn.id.clone(),
            role: Role::Agent,
            content,
            has_tool_use,
        })
    };
    if calls.is_empty() {
        decisions.extend(said(false));
        let draft = MoveDraft {
            iteration: turn.replies,
            reasoning: Some(reply.text.clone()),
            call: None,
            outcome: None,
        };
        decisions.push(Decision::RecordMove { turn: turn.id.clone(), draft });
        return (NextStep::Settle, decisions);
    }
    let Some(agent) = definitions.agent(&turn.agent) else { return (NextStep::Settle, decisions) };
    let (mut waits, mut goes_on) = (false, false);
    let mut joining = Vec::new();
    for (index, call) in calls.iter().enumerate() {
        let id = call_id(turn, index);
        let reasoning = if index == 0 { text.clone() } else { None };
        if call.name == DECLINE && may_decline(&agent.persona, turn) {
            let reason =
                call.arguments.get("reason").and_then(|reason| reason.as_str()).unwrap_or("no reason");
            let draft = move_of(turn, &id, call, reasoning);
            decisions.push(Decision::RecordMove { turn: turn.id.clone(), draft });
            let failure = Failure::business(ErrorCode::AgentDeclined, reason);
            decisions.extend(react::fail(state, turn, ErrorCode::AgentDeclined.name(), &failure));
            return (NextStep::Settle, decisions);
        }
        match checked(state, definitions, limits, turn, &call.name, &call.arguments) {
            Err(failure) => decisions.push(Decision::RefuseCall {
                turn: turn.id.clone(),
                call: id,
                tool: call.name.clone(),
                input: call.arguments.clone(),
                reasoning,
                failure,
            }),
            Ok(Checked { tool: Tool { approval: Some(approval), is_async, .. }, work, .. }) => {
                waits = true;
                decisions.push(Decision::AskApproval {
                    turn: turn.id.clone(),
                    call: id,
                    tool: call.name.clone(),
                    work,
                    input: call.arguments.clone(),
                    is_async: *is_async,
                    reasoning,
                    message: approval.worded(&call.arguments),
                });
            }
            Ok(checked) => {
                let is_async = checked.tool.is_async;
                decisions.extend(dispatch(state, turn, checked, &call.arguments, &id, &mut joining));
                if is_async {
                    goes_on = true;
                    decisions.push(Decision::TrackAsyncOperation { turn: turn.id.clone(), call: id.clone() });
                    let draft = move_of(turn, &id, call, reasoning);
                    decisions.push(Decision::RecordMove { turn: turn.id.clone(), draft });
                } else {
                    waits = true;
                    decisions.push(Decision::MarkWaiting { turn: turn.id.clone(), call: id, reasoning });
                }
            }
        }
    }
    decisions.extend(said(true));
    let next = match (waits, goes_on && text.is_some()) {
        (true, _) => NextStep::Wait,
        // Something runs and the user has been told: the model is asked again when it has ended.
        (false, true)
            if calls.iter().all(|call| {
                checked(state, definitions, limits, turn, &call.name, &call.arguments).is_ok()
            }) =>
        {
            NextStep::Settle
        }
        (false, _) => NextStep::Again,
    };
    (next, decisions)
}

/// The id of a call of the reply that is being taken.
pub(super) fn call_id(turn: &Turn, index: usize) -> CallId {
    CallId(format!("{}-k{}", turn.id, turn.tool_calls as usize + index + 1).into())
}

/// Whether the agent of a turn may decline what it was asked.
fn may_decline(persona: &Persona, turn: &Turn) -> bool {
    persona.may_decline && matches!(turn.caller, Caller::Agent { .. })
}

fn move_of(turn: &Turn, id: &CallId, call: &ToolCall, reasoning: Option<String>) -> MoveDraft {
    let call = MoveCall {
        tool_id: Arc::from(&*call.name),
        input: call.arguments.clone(),
        tool_call_id: id.0.clone(),
    };
    MoveDraft { iteration: turn.replies, reasoning, call: Some(call), outcome: None }
}

/// A call that can be made.
struct Checked<'p> {
    tool: &'p Tool,
    /// What runs.
    work: Work,
    /// What it is given.
    given: Value,
}

/// The tool of a call and what runs for it, if the call can be made.
fn checked<'p>(
    state: &'p State,
    definitions: &'p Definitions,
    limits: &Limits,
    turn: &Turn,
    name: &str,
    input: &Value,
) -> Result<Checked<'p>, Failure> {
    let missing =
        |what: &str, name: &str| Failure::business(ErrorCode::NotFound, format!("there is no {what} {name}"));
    let tool = state.tool(definitions, &turn.agent, name).ok_or_else(|| missing("tool", name))?;
    let target = tool.target.as_ref().ok_or_else(|| missing("tool", name))?;
    let violations = schema::violations(&tool.input_schema, input);
    if !violations.is_empty() {
        return Err(Failure::business(ErrorCode::InvalidInput, violations.join("; ")));
    }
    let work = match target {
        Target::Task(task) => {
            let id = definitions::task_id(task);
            definitions.find_task(&id).map(drop).ok_or_else(|| missing("task", id.as_str()))?;
            Work::Task(id)
        }
        Target::Workflow(workflow) => {
            let id = definitions::workflow_id(workflow);
            definitions.find_workflow(&id).map(drop).ok_or_else(|| missing("workflow", id.as_str()))?;
            Work::Workflow(id)
        }
        Target::Agent(persona) => {
            let id = definitions::agent_id(persona);
            definitions.agent(&id).map(drop).ok_or_else(|| missing("agent", id.as_str()))?;
            if turn.depth >= limits.depth {
                let message = format!("agents may call each other {} deep, and no deeper", limits.depth);
                return Err(Failure::business(ErrorCode::ExecutionFailed, message));
            }
            Work::Agent(id, tool.mode)
        }
        Target::Client => Work::Client,
    };
    let given = tool.given(input, &state.shared)?;
    Ok(Checked { tool, work, given })
}

/// The decisions that start what runs for a call.
fn dispatch(
    state: &State,
    turn: &Turn,
    checked: Checked<'_>,
    input: &Value,
    id: &CallId,
    joining: &mut Vec<Participant>,
) -> Vec<Decision> {
    let Checked { tool, work, given } = checked;
    let (by, name, is_async) = (turn.id.clone(), tool.name.clone(), tool.is_async);
    let (turn, input, call) = (turn.id.clone(), input.clone(), id.clone());
    match work {
        Work::Task(task) => {
            vec![Decision::DispatchTask { turn, call, tool: name, task, input, given, is_async }]
        }
        Work::Workflow(workflow) => {
            vec![Decision::DispatchWorkflow { turn, call, tool: name, workflow, input, given, is_async }]
        }
        Work::Client => vec![Decision::DispatchClient { turn, call, tool: name, input, given, is_async }],
        Work::Agent(agent, mode) => {
            let participant = Participant::Agent { agent_id: agent.0.clone() };
            let context =
                Decision::ShareContext { turn: turn.clone(), call: call.clone(), mode, input: given.clone() };
            let mut decisions =
                vec![Decision::DispatchAgent { turn, call, tool: name, agent, mode, input, given, is_async }];
            let known = state.takes_part(&participant) || joining.contains(&participant);
            if mode == InvocationMode::LoopIn && !known {
                joining.push(participant.clone());
                decisions.push(Decision::AddParticipant { participant, by });
            }
            decisions.push(context);
            decisions
        }
    }
}

/// The decisions that follow when a person has agreed to a call, perhaps with another input.
pub(super) fn approved(
    state: &State,
    definitions: &Definitions,
    limits: &Limits,
    turn: &Turn,
    operation: &Operation,
    edited: Option<&Value>,
) -> Vec<Decision> {
    let input = edited.unwrap_or(&operation.input);
    let checked = match checked(state, definitions, limits, turn, &operation.tool, input) {
        Ok(checked) => checked,
        Err(failure) => return not_called(turn, operation, input, failure),
    };
    let mut decisions = dispatch(state, turn, checked, input, &operation.call, &mut Vec::new());
    let (turn_id, call) = (turn.id.clone(), operation.call.clone());
    if operation.is_async {
        let draft = draft_of(operation, input, None);
        decisions.extend([
            Decision::TrackAsyncOperation { turn: turn_id.clone(), call: call.clone() },
            Decision::RecordMove { turn: turn_id.clone(), draft },
            Decision::LeaveApproval { turn: turn_id, call },
        ]);
    } else {
        let reasoning = operation.reasoning.clone();
        decisions.push(Decision::MarkWaiting { turn: turn_id, call, reasoning });
    }
    decisions
}

/// The decisions that end a call that a person was asked about and that is not made.
pub(super) fn not_called(
    turn: &Turn,
    operation: &Operation,
    input: &Value,
    failure: Failure,
) -> Vec<Decision> {
    let (turn_id, call) = (turn.id.clone(), operation.call.clone());
    let result = Err(failure);
    let draft = draft_of(operation, input, Some(react::outcome(&call, &result)));
    vec![
        Decision::CompleteOperation { turn: turn_id.clone(), call: call.clone(), result },
        Decision::RecordMove { turn: turn_id.clone(), draft },
        Decision::LeaveApproval { turn: turn_id, call },
    ]
}

/// The move of an operation.
pub(super) fn draft_of(operation: &Operation, input: &Value, outcome: Option<ToolOutcome>) -> MoveDraft {
    let call = MoveCall {
        tool_id: Arc::from(&*operation.tool),
        input: input.clone(),
        tool_call_id: operation.call.0.clone(),
    };
    MoveDraft {
        iteration: operation.iteration,
        reasoning: operation.reasoning.clone(),
        call: Some(call),
        outcome,
    }
}
