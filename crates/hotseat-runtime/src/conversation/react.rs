//! Converts an input into its first decisions.

use std::sync::Arc;

use hotseat_model::{ModelError, ModelReply, ModelRequest, TokenUsage};
use serde::Deserialize;
use serde_json::Value;

use super::context::DECLINE_TOOL;
use super::failing::{called_turns, fail, fail_without_reply};
use super::reply::tool_outcome;
use super::{
    ApprovalVerdict, ContextEntry, ConversationInput, ConversationStatus, Decision, DecisionBasis,
    HookAddress, HookKind, Millis, ModelAddress, OperationAddress, OperationStatus, ReplyTo, SpeakerRole,
    TimerKey, TimerKind, ToolOperation, TurnCaller, TurnPhase, TurnState, canonical_json, context, reply,
};
use crate::definition::{AttemptLimits, schema, tool};
use crate::failure::{ErrorCode, InfrastructureKind, WorkFailure, WorkResult};
use crate::ids::{AgentId, CallId, MessageId, TurnId};

pub(super) fn react(basis: DecisionBasis<'_>, input: &ConversationInput) -> Vec<Decision> {
    match input {
        ConversationInput::Open => vec![Decision::OpenConversation],
        ConversationInput::UserMessage { user, content, reply_to, client_id } => {
            let caller = TurnCaller::User { user_id: user.clone(), message_id: client_id.clone() };
            let value = Value::String(content.clone());
            start_turn(basis, basis.state.agent.clone(), caller, value, None, reply_to.clone(), 0)
        }
        ConversationInput::AgentCall { caller, agent, input, reply_to, depth } => {
            let to = Some(reply_to.clone());
            start_turn(basis, agent.clone(), caller.clone(), input.clone(), to, None, *depth)
        }
        ConversationInput::HookDone { at, result } => match at.kind {
            HookKind::ContextAssembly => context_done(basis, at, result),
            HookKind::MemoryExtraction => extraction_done(basis, at, result),
        },
        ConversationInput::ModelDone { at, result } => model_done(basis, at, result),
        ConversationInput::OperationDone { at, result } => operation_done(basis, at, result),
        ConversationInput::ClientOffer { tools, context, state: shared } => {
            // `None` and null are indistinguishable once an input has been serialised.
            let shared = shared.clone().filter(|shared| !shared.is_null());
            accept_offer(basis, tools, context, shared)
        }
        ConversationInput::Approval { at, verdict } => approval_done(basis, at, verdict),
        ConversationInput::Wake => Vec::new(),
        ConversationInput::CancelTurn { turn, reason } => {
            match basis.state.turn(turn).filter(|turn| turn.is_active()) {
                Some(turn) => {
                    let failure = WorkFailure::execution(reason);
                    fail(basis.state, turn, "CANCELLED", &failure)
                }
                None => ignore(Some(turn), "the turn to cancel is not active"),
            }
        }
        ConversationInput::DefinitionChanged { first_difference } => {
            definition_changed(basis, *first_difference)
        }
        ConversationInput::RemoveParticipant { participant } if basis.state.has_participant(participant) => {
            vec![Decision::RemoveParticipant { participant: participant.clone() }]
        }
        ConversationInput::RemoveParticipant { .. } => {
            ignore(None, "the participant to remove is not in the conversation")
        }
        ConversationInput::Close if basis.state.status == ConversationStatus::Active => {
            vec![Decision::CloseConversation]
        }
        ConversationInput::Close => ignore(None, "the conversation is already closed"),
    }
}

fn ignore(turn: Option<&TurnId>, reason: &str) -> Vec<Decision> {
    vec![Decision::IgnoreInput { turn: turn.cloned(), reason: reason.to_string() }]
}

fn start_turn(
    basis: DecisionBasis<'_>,
    agent: AgentId,
    caller: TurnCaller,
    input: Value,
    reply_to: Option<ReplyTo>,
    answers: Option<MessageId>,
    depth: u32,
) -> Vec<Decision> {
    if basis.state.status != ConversationStatus::Active {
        return ignore(None, "the conversation is closed");
    }
    if basis.definitions.agent(&agent).is_none() {
        return ignore(None, "the agent is unknown");
    }
    let turn = basis.state.next_turn();
    let content = match &input {
        Value::String(text) => text.clone(),
        other => canonical_json(other),
    };
    vec![
        Decision::StartTurn { turn: turn.clone(), agent, caller, input, reply_to, answers, depth },
        Decision::AppendMessage { turn, role: SpeakerRole::User, content, has_tool_use: false },
    ]
}

fn context_done(basis: DecisionBasis<'_>, at: &HookAddress, result: &WorkResult) -> Vec<Decision> {
    let waiting = basis.state.turn(&at.turn).filter(
        |turn| matches!(&turn.phase, TurnPhase::Assembling { attempt, run: Some(run) } if (*attempt, run) == (at.attempt, &at.run)),
    );
    let Some(turn) = waiting else {
        return ignore(Some(&at.turn), "the result is outdated: the turn no longer waits for this request");
    };
    let failure = match result {
        Ok(output) => match output.get("llmRequest").map(ModelRequest::deserialize) {
            Some(Ok(request)) => {
                let tokens = TokenUsage::estimate(&request, &ModelReply::default()).input_tokens;
                let request = match basis.definitions.agent(&turn.agent) {
                    Some(agent) => context::final_request(basis.state, turn, &agent.persona, request),
                    None => request,
                };
                return vec![Decision::AcceptContext { at: at.clone(), request: Arc::new(request), tokens }];
            }
            Some(Err(error)) => WorkFailure::business(
                ErrorCode::InvalidInput,
                format!("the returned llmRequest is not a valid request: {error}"),
            ),
            None => WorkFailure::business(ErrorCode::InvalidInput, "llmRequest is missing in the output"),
        },
        Err(failure) => failure.clone(),
    };
    let again = retry(basis.limits.context, at.attempt, &failure);
    let mut decisions =
        vec![Decision::FailContext { at: at.clone(), failure: failure.clone(), exhausted: again.is_none() }];
    match again {
        Some(delay) => decisions.push(timer_at(turn, TimerKind::ContextRetry, basis.now + delay)),
        None => decisions.extend(fail(basis.state, turn, "CONTEXT_ASSEMBLY_FAILED", &failure)),
    }
    decisions
}

fn extraction_done(basis: DecisionBasis<'_>, at: &HookAddress, result: &WorkResult) -> Vec<Decision> {
    let waiting = basis.state.turn(&at.turn).filter(
        |turn| matches!(&turn.phase, TurnPhase::Extracting { attempt, run: Some(run) } if (*attempt, run) == (at.attempt, &at.run)),
    );
    let Some(turn) = waiting else {
        return ignore(
            Some(&at.turn),
            "the result is outdated: the turn no longer waits for this extraction",
        );
    };
    let Err(failure) = result else { return vec![Decision::AcceptExtraction { at: at.clone() }] };
    let again = retry(basis.limits.extraction, at.attempt, failure);
    let mut decisions = vec![Decision::FailExtraction {
        at: at.clone(),
        failure: failure.clone(),
        exhausted: again.is_none(),
    }];
    decisions.extend(again.map(|delay| timer_at(turn, TimerKind::ExtractionRetry, basis.now + delay)));
    decisions
}

fn model_done(
    basis: DecisionBasis<'_>,
    at: &ModelAddress,
    result: &Result<ModelReply, ModelError>,
) -> Vec<Decision> {
    let turn = basis.state.turn(&at.turn);
    let waiting = turn.and_then(|turn| match &turn.phase {
        TurnPhase::Calling { attempt, open: true, last, .. }
            if (turn.calls, *attempt) == (at.call, at.attempt) =>
        {
            Some((turn, *last))
        }
        _ => None,
    });
    let Some((turn, last)) = waiting else {
        return ignore(Some(&at.turn), "the reply is outdated: the turn no longer waits for it");
    };
    match result {
        Ok(reply) => {
            let (next, decisions) = reply::plan(basis, turn, reply, last);
            let accept = Decision::AcceptReply { at: at.clone(), reply: Box::new(reply.clone()), next };
            [vec![accept], decisions].concat()
        }
        Err(error) => {
            let asked =
                error.retry_after.map_or(0, |wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
            // A provider may ask to wait for a day; the turn fails instead of hanging.
            let may_retry = error.can_retry() && asked <= basis.limits.model.timeout_ms;
            let again = if may_retry { basis.limits.model.delay(at.attempt) } else { None };
            let mut decisions =
                vec![Decision::FailLlm { at: at.clone(), error: error.clone(), will_retry: again.is_some() }];
            match again {
                Some(delay) => {
                    let wake = basis.now.saturating_add(delay.max(asked));
                    decisions.push(timer_at(turn, TimerKind::ModelRetry, wake));
                }
                None => decisions.extend(fail(basis.state, turn, "LLM_FAILED", &model_failure(error))),
            }
            decisions
        }
    }
}

fn operation_done(basis: DecisionBasis<'_>, at: &OperationAddress, result: &WorkResult) -> Vec<Decision> {
    let turn = basis.state.turn(&at.turn).filter(|turn| turn.is_active());
    let open = turn.and_then(|turn| turn.operation(&at.call).map(|operation| (turn, operation)));
    let has_retry_timer = |turn: &TurnState| {
        basis.state.timers.contains_key(&key(turn, TimerKind::OperationRetry(at.call.clone())))
    };
    let open = open.filter(|(turn, operation)| {
        operation.status.is_open()
            && operation.status != OperationStatus::AwaitingApproval
            && operation.attempt == at.attempt
            && !has_retry_timer(turn)
    });
    let Some((turn, operation)) = open else {
        return ignore(Some(&at.turn), "the result is outdated: the turn no longer waits for it");
    };
    let (turn_id, call) = (turn.id.clone(), at.call.clone());
    // The client may have withdrawn its tool in the meantime; the result still counts.
    let tool = basis.state.tool(basis.definitions, &turn.agent, &operation.tool);
    if let Err(failure) = result
        && failure.can_retry()
        && let Some(tool) = tool
        && operation.attempt < tool.retry.max_attempts
    {
        let delay_ms = tool.retry.backoff_ms;
        let failure = failure.clone();
        return vec![
            Decision::RetryOperation { turn: turn_id, call: call.clone(), failure, delay_ms },
            timer_at(turn, TimerKind::OperationRetry(call), basis.now + delay_ms),
        ];
    }
    let written = match (result, tool) {
        (Ok(value), Some(tool)) => tool.updated_state(&operation.input, value, &basis.state.shared),
        (Ok(_), None) | (Err(_), _) => Ok(None),
    };
    let (result, written) = match written {
        Ok(written) => (result.clone(), written),
        Err(failure) => (Err(failure), None),
    };
    let outcome = tool_outcome(&call, &result);
    let mut decisions =
        vec![Decision::CompleteOperation { turn: turn_id.clone(), call: call.clone(), result }];
    decisions.extend(written.map(|state| Decision::ChangeState { turn: turn_id.clone(), state }));
    if operation.is_async {
        decisions.push(Decision::RecordResult { turn: turn_id.clone(), outcome });
        decisions.push(Decision::AsyncOperationCompleted { turn: turn_id, call });
    } else {
        let draft = reply::operation_move(operation, &operation.input, Some(outcome));
        decisions.push(Decision::RecordMove { turn: turn_id.clone(), draft });
        decisions.push(Decision::ResumeFromTool { turn: turn_id, call });
    }
    decisions
}

/// Accepts a client's offer. Unusable tools are skipped and recorded in the trace.
fn accept_offer(
    basis: DecisionBasis<'_>,
    tools: &[hotseat_model::ModelTool],
    context: &[ContextEntry],
    shared: Option<Value>,
) -> Vec<Decision> {
    if basis.state.status != ConversationStatus::Active {
        return ignore(None, "the conversation is closed");
    }
    let (mut accepted, mut left_out) = (Vec::<crate::definition::ToolDefinition>::new(), Vec::new());
    let own = basis.definitions.agent(&basis.state.agent).map(|agent| &agent.persona);
    for hotseat_model::ModelTool { name, description, input_schema } in tools {
        let is_own = own.is_some_and(|persona| {
            persona.tools.iter().any(|tool| tool.name == *name)
                || (persona.may_decline && name == DECLINE_TOOL)
        });
        let problem = if name.is_empty() {
            "it has no name".to_string()
        } else if is_own {
            "the agent already has a tool with this name; that one is used".to_string()
        } else if accepted.iter().any(|tool| tool.name == *name) {
            "the name is used twice; the first tool is used".to_string()
        } else if let Err(problem) = schema::check_client_schema(input_schema) {
            format!("its input schema is not supported: {problem}")
        } else {
            accepted.push(tool(name).description(description).input(input_schema.clone()).client());
            continue;
        };
        left_out.extend(ignore(None, &format!("skipped the client's tool {name:?}: {problem}")));
    }
    let mut decisions =
        vec![Decision::AcceptOffer { tools: accepted, context: context.to_vec(), state: shared }];
    decisions.extend(left_out);
    decisions
}

fn approval_done(
    basis: DecisionBasis<'_>,
    at: &OperationAddress,
    verdict: &ApprovalVerdict,
) -> Vec<Decision> {
    let turn = basis.state.turn(&at.turn).filter(|turn| turn.is_active());
    let asked = turn.and_then(|turn| turn.operation(&at.call).map(|operation| (turn, operation)));
    let asked = asked.filter(|(_, operation)| {
        operation.status == OperationStatus::AwaitingApproval && operation.attempt == at.attempt
    });
    let Some((turn, operation)) = asked else {
        return ignore(Some(&at.turn), "the answer is outdated: the turn no longer waits for this approval");
    };
    let verdict = match verdict {
        // `None` and null are indistinguishable once an input has been serialised.
        ApprovalVerdict::Approved { input: Some(Value::Null) } => ApprovalVerdict::Approved { input: None },
        other => other.clone(),
    };
    let mut decisions = vec![Decision::AnswerApproval {
        turn: turn.id.clone(),
        call: operation.call.clone(),
        verdict: verdict.clone(),
    }];
    decisions.extend(match &verdict {
        ApprovalVerdict::Approved { input } => reply::approve(basis, turn, operation, input.as_ref()),
        ApprovalVerdict::Declined { reason } => {
            let message = match reason.as_str() {
                "" => "a human declined the call".to_string(),
                reason => format!("a human declined the call: {reason}"),
            };
            decline(turn, operation, message)
        }
        ApprovalVerdict::Unavailable { reason } => {
            decline(turn, operation, format!("the call needs the approval of a human: {reason}"))
        }
    });
    decisions
}

/// Ends a call that no human approved.
fn decline(turn: &TurnState, operation: &ToolOperation, message: String) -> Vec<Decision> {
    let failure = WorkFailure::business(ErrorCode::PermissionDenied, message);
    reply::reject(turn, operation, &operation.input, failure)
}

/// Switches to changed definitions. Turns that wait only for the client continue, others fail.
fn definition_changed(basis: DecisionBasis<'_>, first_difference: u64) -> Vec<Decision> {
    let mut decisions = vec![Decision::AdoptDefinitions { first_difference }];
    for turn in basis.state.active_turns() {
        if matches!(turn.caller, super::TurnCaller::User { .. }) && turn.waits_only_for_client() {
            let sent = turn
                .open_operations()
                .filter(|operation| operation.status != OperationStatus::AwaitingApproval);
            decisions.extend(sent.filter_map(|operation| {
                let limit =
                    basis.state.tool(basis.definitions, &turn.agent, &operation.tool)?.retry.timeout_ms?;
                let kind = TimerKind::OperationDeadline(operation.call.clone());
                Some(timer_at(turn, kind, basis.now.saturating_add(limit)))
            }));
        } else {
            let message = "the agent was changed while this turn was running; send the message again";
            decisions.extend(fail_without_reply(basis.state, turn, "AGENT_CHANGED", message));
        }
    }
    decisions
}

/// Converts a due timer into decisions.
pub(super) fn timer(basis: DecisionBasis<'_>, timer: &TimerKey) -> Vec<Decision> {
    let done = Decision::CancelTimer { key: timer.clone() };
    let Some(turn) = basis.state.turn(&timer.turn).filter(|turn| turn.is_active()) else { return vec![done] };
    let late = |limit: u64| {
        WorkFailure::infrastructure(InfrastructureKind::Timeout, format!("no answer within {limit} ms"))
    };
    let mut decisions = vec![done];
    match (&timer.kind, &turn.phase) {
        // `advance` continues from the basis.state, because no attempt is running.
        (TimerKind::ContextRetry, TurnPhase::Assembling { run: None, .. })
        | (TimerKind::ModelRetry, TurnPhase::Calling { open: false, .. })
        | (TimerKind::ExtractionRetry, TurnPhase::Extracting { run: None, .. }) => {}
        (TimerKind::ContextDeadline, TurnPhase::Assembling { attempt, run: Some(run) }) => {
            let at = turn.hook_address(HookKind::ContextAssembly, run.clone(), *attempt);
            decisions.extend(context_done(basis, &at, &Err(late(basis.limits.context.timeout_ms))));
        }
        (TimerKind::ExtractionDeadline, TurnPhase::Extracting { attempt, run: Some(run) }) => {
            let at = turn.hook_address(HookKind::MemoryExtraction, run.clone(), *attempt);
            decisions.extend(extraction_done(basis, &at, &Err(late(basis.limits.extraction.timeout_ms))));
        }
        (TimerKind::ModelDeadline, TurnPhase::Calling { attempt, open: true, .. }) => {
            let at = ModelAddress { turn: turn.id.clone(), call: turn.calls, attempt: *attempt };
            let message = late(basis.limits.model.timeout_ms).message().to_string();
            let error = ModelError::new(hotseat_model::ModelErrorKind::Timeout, message);
            let again = basis.limits.model.delay(*attempt);
            decisions.push(Decision::FailLlm { at, error: error.clone(), will_retry: again.is_some() });
            match again {
                Some(delay) => decisions.push(timer_at(turn, TimerKind::ModelRetry, basis.now + delay)),
                None => decisions.extend(fail(basis.state, turn, "LLM_FAILED", &model_failure(&error))),
            }
        }
        (TimerKind::OperationRetry(call), _) => {
            decisions.push(Decision::RedispatchOperation { turn: turn.id.clone(), call: call.clone() });
        }
        (TimerKind::OperationDeadline(call), _) => {
            let Some(operation) = turn.operation(call) else { return decisions };
            let tool = basis.state.tool(basis.definitions, &turn.agent, &operation.tool);
            let limit = tool.and_then(|tool| tool.retry.timeout_ms).unwrap_or_default();
            let at = turn.address(operation);
            decisions.extend(stop_operation(basis, turn, call));
            // A timeout is handled like any other result.
            decisions.extend(operation_done(basis, &at, &Err(late(limit))));
        }
        // The turn has moved on in the meantime.
        (
            TimerKind::ContextRetry
            | TimerKind::ContextDeadline
            | TimerKind::ModelRetry
            | TimerKind::ModelDeadline
            | TimerKind::ExtractionRetry
            | TimerKind::ExtractionDeadline,
            _,
        ) => {}
    }
    decisions
}

/// Stops the work of an operation that exceeded its time limit.
fn stop_operation(basis: DecisionBasis<'_>, turn: &TurnState, call: &CallId) -> Vec<Decision> {
    let mut decisions = called_turns(basis.state, call)
        .flat_map(|called| fail_without_reply(basis.state, called, "CANCELLED", "the call took too long"))
        .collect::<Vec<_>>();
    decisions.push(Decision::StopOperation { turn: turn.id.clone(), call: call.clone() });
    decisions
}

/// Converts a model error into a failure of the turn that called the model.
fn model_failure(error: &ModelError) -> WorkFailure {
    if error.can_retry() {
        WorkFailure::infrastructure(InfrastructureKind::Server, error.to_string())
    } else {
        WorkFailure::execution(error.to_string())
    }
}

fn retry(retry: AttemptLimits, attempt: u32, failure: &WorkFailure) -> Option<u64> {
    if failure.can_retry() { retry.delay(attempt) } else { None }
}

fn key(turn: &TurnState, kind: TimerKind) -> TimerKey {
    TimerKey { turn: turn.id.clone(), kind }
}

fn timer_at(turn: &TurnState, kind: TimerKind, at: Millis) -> Decision {
    Decision::ScheduleTimer { key: key(turn, kind), at }
}
