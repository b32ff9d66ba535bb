//! What follows from a reply of the model.

use std::sync::Arc;

use hotseat_model::{Reply, ToolCall};
use hotseat_trace::{InvocationMode, MoveCall, Participant};

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
            let outcome = call.arguments.get("reason").and_then(|reason| reason.as_str());
            let draft = move_of(turn, &id, call, reasoning);
            decisions.push(Decision::RecordMove { turn: turn.id.clone(), draft });
            decisions.extend(react::fail(
                state,
                turn,
                ErrorCode::AgentDeclined.name(),
                outcome.unwrap_or("no reason"),
            ));
            return (NextStep::Settle, decisions);
        }
        match checked(definitions, limits, &agent.persona, turn, call) {
            Err(failure) => decisions.push(Decision::RefuseCall {
                turn: turn.id.clone(),
                call: id,
                tool: call.name.clone(),
                input: call.arguments.clone(),
                reasoning,
                failure,
            }),
            Ok((tool, target)) => {
                decisions.extend(dispatch(state, turn, tool, target, call, &id, &mut joining));
                if tool.is_async {
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
            if calls.iter().all(|call| accepted(definitions, limits, &agent.persona, turn, call)) =>
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

fn accepted(
    definitions: &Definitions,
    limits: &Limits,
    persona: &Persona,
    turn: &Turn,
    call: &ToolCall,
) -> bool {
    checked(definitions, limits, persona, turn, call).is_ok()
}

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

/// The tool of a call, if the call can be made.
fn checked<'p>(
    definitions: &Definitions,
    limits: &Limits,
    persona: &'p Persona,
    turn: &Turn,
    call: &ToolCall,
) -> Result<(&'p Tool, &'p Target), Failure> {
    let missing =
        |what: &str, name: &str| Failure::business(ErrorCode::NotFound, format!("there is no {what} {name}"));
    let tool = persona.tools.iter().find(|tool| tool.name == call.name);
    let tool = tool.ok_or_else(|| missing("tool", &call.name))?;
    let target = tool.target.as_ref().ok_or_else(|| missing("tool", &call.name))?;
    let violations = schema::violations(&tool.input_schema, &call.arguments);
    if !violations.is_empty() {
        return Err(Failure::business(ErrorCode::InvalidInput, violations.join("; ")));
    }
    match target {
        Target::Task(task) => {
            let id = definitions::task_id(task);
            definitions.find_task(&id).map(drop).ok_or_else(|| missing("task", id.as_str()))?;
        }
        Target::Workflow(workflow) => {
            let id = definitions::workflow_id(workflow);
            definitions.find_workflow(&id).map(drop).ok_or_else(|| missing("workflow", id.as_str()))?;
        }
        Target::Agent(persona) => {
            let id = definitions::agent_id(persona);
            definitions.agent(&id).map(drop).ok_or_else(|| missing("agent", id.as_str()))?;
            if turn.depth >= limits.depth {
                let message = format!("agents may call each other {} deep, and no deeper", limits.depth);
                return Err(Failure::business(ErrorCode::ExecutionFailed, message));
            }
        }
    }
    Ok((tool, target))
}

fn dispatch(
    state: &State,
    turn: &Turn,
    tool: &Tool,
    target: &Target,
    call: &ToolCall,
    id: &CallId,
    joining: &mut Vec<Participant>,
) -> Vec<Decision> {
    let (turn_id, name, is_async) = (turn.id.clone(), tool.name.clone(), tool.is_async);
    let (input, given) = (call.arguments.clone(), tool.mapped(&call.arguments));
    let call = id.clone();
    match target {
        Target::Task(task) => {
            let task = definitions::task_id(task);
            vec![Decision::DispatchTask { turn: turn_id, call, tool: name, task, input, given, is_async }]
        }
        Target::Workflow(workflow) => {
            let workflow = definitions::workflow_id(workflow);
            vec![Decision::DispatchWorkflow {
                turn: turn_id,
                call,
                tool: name,
                workflow,
                input,
                given,
                is_async,
            }]
        }
        Target::Agent(persona) => {
            let (agent, mode) = (definitions::agent_id(persona), tool.mode);
            let participant = Participant::Agent { agent_id: agent.0.clone() };
            let context =
                Decision::ShareContext { turn: turn_id, call: call.clone(), mode, input: given.clone() };
            let turn_id = turn.id.clone();
            let mut decisions = vec![Decision::DispatchAgent {
                turn: turn_id,
                call,
                tool: name,
                agent,
                mode,
                input,
                given,
                is_async,
            }];
            let known = state.takes_part(&participant) || joining.contains(&participant);
            if mode == InvocationMode::LoopIn && !known {
                joining.push(participant.clone());
                decisions.push(Decision::AddParticipant { participant, by: turn.id.clone() });
            }
            decisions.push(context);
            decisions
        }
    }
}
