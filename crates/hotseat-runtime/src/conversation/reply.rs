//! Decisions that follow from a model reply.

use std::sync::Arc;

use hotseat_model::{ModelReply, ModelToolCall, read_arguments};
use hotseat_trace::{InvocationMode, MoveCall, Participant, ToolOutcome};
use serde_json::Value;

use super::context::DECLINE_TOOL;
use super::failing::fail;
use super::state::{OperationTarget, ToolOperation};
use super::{Decision, DecisionBasis, MoveDraft, NextStep, SpeakerRole, TurnCaller, TurnState};
use crate::definition::{Persona, ToolDefinition, ToolTarget, definitions, schema};
use crate::failure::{ErrorCode, WorkFailure, WorkResult};
use crate::ids::{CallId, numbered};

/// Why calls at the last move of a turn fail.
const NO_MORE_CALLS: &str = "no tool is offered: the turn has reached its number of moves";

/// Returns the decisions for a reply and the next step of the turn.
pub(super) fn plan(
    basis: DecisionBasis<'_>,
    turn: &TurnState,
    reply: &ModelReply,
    last: bool,
) -> (NextStep, Vec<Decision>) {
    let text = (!reply.text.is_empty()).then(|| reply.text.clone());
    let calls = &reply.tool_calls;
    let mut decisions = Vec::new();
    let said = |has_tool_use: bool| {
        text.clone().map(|content| Decision::AppendMessage {
            turn: turn.id.clone(),
            role: SpeakerRole::Agent,
            content,
            has_tool_use,
        })
    };
    if calls.is_empty() {
        decisions.extend(said(false));
        let reasoning = Some(reply.text.clone());
        let draft = MoveDraft { iteration: turn.replies, reasoning, call: None, outcome: None };
        decisions.push(Decision::RecordMove { turn: turn.id.clone(), draft });
        return (NextStep::Settle, decisions);
    }
    let Some(agent) = basis.definitions.agent(&turn.agent) else { return (NextStep::Settle, decisions) };
    let (mut waits, mut runs_async) = (false, false);
    let mut joining = Vec::new();
    for (index, call) in calls.iter().enumerate() {
        let id = call_id(turn, index);
        let reasoning = if index == 0 { text.clone() } else { None };
        if !last && call.name == DECLINE_TOOL && may_decline(&agent.persona, turn) {
            let reason =
                call.arguments.get("reason").and_then(|reason| reason.as_str()).unwrap_or("no reason");
            let draft = call_move(turn, &id, call, reasoning);
            decisions.push(Decision::RecordMove { turn: turn.id.clone(), draft });
            let failure = WorkFailure::business(ErrorCode::AgentDeclined, reason);
            decisions.extend(fail(basis.state, turn, ErrorCode::AgentDeclined.name(), &failure));
            return (NextStep::Settle, decisions);
        }
        let resolved = match last {
            true => Err(WorkFailure::business(ErrorCode::NotFound, NO_MORE_CALLS)),
            false => resolve_call(basis, turn, &call.name, &call.arguments),
        };
        match resolved {
            Err(failure) => decisions.push(Decision::RefuseCall {
                turn: turn.id.clone(),
                call: id,
                tool: call.name.clone(),
                input: call.arguments.clone(),
                reasoning,
                failure,
            }),
            Ok(ExecutableCall {
                tool: ToolDefinition { approval: Some(approval), is_async, .. },
                work,
                ..
            }) => {
                waits = true;
                decisions.push(Decision::AskApproval {
                    turn: turn.id.clone(),
                    call: id,
                    tool: call.name.clone(),
                    work,
                    input: call.arguments.clone(),
                    is_async: *is_async,
                    reasoning,
                    message: approval.render(&call.arguments),
                });
            }
            Ok(checked) => {
                let is_async = checked.tool.is_async;
                decisions.extend(dispatch(basis, turn, checked, &call.arguments, &id, &mut joining));
                if is_async {
                    runs_async = true;
                    decisions.push(Decision::TrackAsyncOperation { turn: turn.id.clone(), call: id.clone() });
                    let draft = call_move(turn, &id, call, reasoning);
                    decisions.push(Decision::RecordMove { turn: turn.id.clone(), draft });
                } else {
                    waits = true;
                    decisions.push(Decision::MarkWaiting { turn: turn.id.clone(), call: id, reasoning });
                }
            }
        }
    }
    decisions.extend(said(true));
    if last {
        return (NextStep::Settle, decisions);
    }
    let next = match (waits, runs_async && text.is_some()) {
        (true, _) => NextStep::Wait,
        // Operations are running and the user has an answer: the model is called again when they end.
        (false, true)
            if calls.iter().all(|call| resolve_call(basis, turn, &call.name, &call.arguments).is_ok()) =>
        {
            NextStep::Settle
        }
        (false, _) => NextStep::Again,
    };
    (next, decisions)
}

/// Returns the id of a call in the current reply.
pub(super) fn call_id(turn: &TurnState, index: usize) -> CallId {
    CallId(numbered(turn.id.as_str(), "k", turn.tool_calls as usize + index + 1))
}

/// Returns true if the agent of a turn may decline the request.
fn may_decline(persona: &Persona, turn: &TurnState) -> bool {
    persona.may_decline && matches!(turn.caller, TurnCaller::Agent { .. })
}

fn call_move(turn: &TurnState, id: &CallId, call: &ModelToolCall, reasoning: Option<String>) -> MoveDraft {
    let call = MoveCall {
        tool_id: Arc::from(&*call.name),
        input: call.arguments.clone(),
        tool_call_id: id.0.clone(),
    };
    MoveDraft { iteration: turn.replies, reasoning, call: Some(call), outcome: None }
}

/// Validated tool call.
struct ExecutableCall<'p> {
    tool: &'p ToolDefinition,
    /// Target that executes the call.
    work: OperationTarget,
    target_input: Value,
}

/// Returns why arguments that a model wrote are not JSON. Such arguments are kept as their text.
fn json_error(input: &Value) -> Option<String> {
    let error = read_arguments(input.as_str()?).err()?;
    Some(format!("the text of the arguments {error}"))
}

/// Validates a call and resolves its tool and target.
fn resolve_call<'p>(
    basis: DecisionBasis<'p>,
    turn: &TurnState,
    name: &str,
    input: &Value,
) -> Result<ExecutableCall<'p>, WorkFailure> {
    let missing =
        |what: &str, name: &str| WorkFailure::business(ErrorCode::NotFound, format!("unknown {what} {name}"));
    let tool = basis.state.tool(basis.definitions, &turn.agent, name).ok_or_else(|| missing("tool", name))?;
    let target = tool.target.as_ref().ok_or_else(|| missing("tool", name))?;
    let violations = schema::violations(&tool.input_schema, input);
    if !violations.is_empty() {
        let message = json_error(input).unwrap_or_else(|| violations.join("; "));
        return Err(WorkFailure::business(ErrorCode::InvalidInput, message));
    }
    let work = match target {
        ToolTarget::Task(task) => {
            let id = definitions::task_id(task);
            basis.definitions.find_task(&id).map(drop).ok_or_else(|| missing("task", id.as_str()))?;
            OperationTarget::Task(id)
        }
        ToolTarget::Workflow(workflow) => {
            let id = definitions::workflow_id(workflow);
            basis.definitions.find_workflow(&id).map(drop).ok_or_else(|| missing("workflow", id.as_str()))?;
            OperationTarget::Workflow(id)
        }
        ToolTarget::Agent(persona) => {
            let id = definitions::agent_id(persona);
            basis.definitions.agent(&id).map(drop).ok_or_else(|| missing("agent", id.as_str()))?;
            if turn.depth >= basis.limits.depth {
                let message = format!("agent calls may be nested at most {} levels deep", basis.limits.depth);
                return Err(WorkFailure::execution(message));
            }
            OperationTarget::Agent(id, tool.mode)
        }
        ToolTarget::Client => OperationTarget::Client,
    };
    let given = tool.target_input(input, &basis.state.shared)?;
    Ok(ExecutableCall { tool, work, target_input: given })
}

/// Returns the decisions that start an operation.
fn dispatch(
    basis: DecisionBasis<'_>,
    turn: &TurnState,
    checked: ExecutableCall<'_>,
    input: &Value,
    id: &CallId,
    joining: &mut Vec<Participant>,
) -> Vec<Decision> {
    let ExecutableCall { tool, work, target_input: given } = checked;
    let (by, name, is_async) = (turn.id.clone(), tool.name.clone(), tool.is_async);
    let (turn, input, call) = (turn.id.clone(), input.clone(), id.clone());
    match work {
        OperationTarget::Task(task) => {
            vec![Decision::DispatchTask { turn, call, tool: name, task, input, given, is_async }]
        }
        OperationTarget::Workflow(workflow) => {
            vec![Decision::DispatchWorkflow { turn, call, tool: name, workflow, input, given, is_async }]
        }
        OperationTarget::Client => {
            vec![Decision::DispatchClient { turn, call, tool: name, input, given, is_async }]
        }
        OperationTarget::Agent(agent, mode) => {
            let participant = Participant::Agent { agent_id: agent.0.clone() };
            let context =
                Decision::ShareContext { turn: turn.clone(), call: call.clone(), mode, input: given.clone() };
            let mut decisions =
                vec![Decision::DispatchAgent { turn, call, tool: name, agent, mode, input, given, is_async }];
            let known = basis.state.has_participant(&participant) || joining.contains(&participant);
            if mode == InvocationMode::LoopIn && !known {
                joining.push(participant.clone());
                decisions.push(Decision::AddParticipant { participant, by });
            }
            decisions.push(context);
            decisions
        }
    }
}

/// Returns the decisions after a human approved a call, optionally with a changed input.
pub(super) fn approve(
    basis: DecisionBasis<'_>,
    turn: &TurnState,
    operation: &ToolOperation,
    edited: Option<&Value>,
) -> Vec<Decision> {
    let input = edited.unwrap_or(&operation.input);
    let checked = match resolve_call(basis, turn, &operation.tool, input) {
        Ok(checked) => checked,
        Err(failure) => return reject(turn, operation, input, failure),
    };
    let mut decisions = dispatch(basis, turn, checked, input, &operation.call, &mut Vec::new());
    let (turn_id, call) = (turn.id.clone(), operation.call.clone());
    if operation.is_async {
        let draft = operation_move(operation, input, None);
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

/// Returns the decisions that end a call awaiting approval without executing it.
pub(super) fn reject(
    turn: &TurnState,
    operation: &ToolOperation,
    input: &Value,
    failure: WorkFailure,
) -> Vec<Decision> {
    let (turn_id, call) = (turn.id.clone(), operation.call.clone());
    let result = Err(failure);
    let draft = operation_move(operation, input, Some(tool_outcome(&call, &result)));
    vec![
        Decision::CompleteOperation { turn: turn_id.clone(), call: call.clone(), result },
        Decision::RecordMove { turn: turn_id.clone(), draft },
        Decision::LeaveApproval { turn: turn_id, call },
    ]
}

pub(super) fn operation_move(
    operation: &ToolOperation,
    input: &Value,
    outcome: Option<ToolOutcome>,
) -> MoveDraft {
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

/// Returns the outcome of a call, as events show it.
pub(super) fn tool_outcome(call: &CallId, result: &WorkResult) -> ToolOutcome {
    let result = match result {
        Ok(output) => Ok((**output).clone()),
        Err(failure) => Err(failure.info()),
    };
    ToolOutcome { tool_call_id: call.0.clone(), result }
}
