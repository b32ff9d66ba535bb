//! An input becomes its first decisions.

use hotseat_model::{ModelError, Reply, Request, Usage};
use serde_json::Value;

use super::{
    ApprovalVerdict, Caller, ContextEntry, ConversationStatus, Decision, HookAddress, HookKind, Input,
    Millis, ModelAddress, OperationAddress, OperationStatus, Phase, ReplyTo, Role, State, TimerKey,
    TimerKind, Turn, canonical, reply,
};
use crate::definition::{Definitions, Limits, Retry, schema, tool};
use crate::failure::{ErrorCode, Failure, InfrastructureKind};
use crate::ids::{AgentId, CallId, MessageId, TurnId};

pub(super) fn react(
    state: &State,
    definitions: &Definitions,
    limits: &Limits,
    now: Millis,
    input: &Input,
) -> Vec<Decision> {
    match input {
        Input::Open => vec![Decision::OpenConversation],
        Input::UserMessage { user, content, reply_to } => {
            let caller = Caller::User { user_id: user.clone() };
            let value = Value::String(content.clone());
            start(state, definitions, state.agent.clone(), caller, value, None, reply_to.clone(), 0)
        }
        Input::AgentCall { caller, agent, input, reply_to, depth } => {
            let to = Some(reply_to.clone());
            start(state, definitions, agent.clone(), caller.clone(), input.clone(), to, None, *depth)
        }
        Input::HookDone { at, result } => match at.kind {
            HookKind::ContextAssembly => context_done(state, limits, now, at, result),
            HookKind::MemoryExtraction => extraction_done(state, limits, now, at, result),
        },
        Input::ModelDone { at, result } => model_done(state, definitions, limits, now, at, result),
        Input::OperationDone { at, result } => operation_done(state, definitions, now, at, result),
        Input::ClientOffer { tools, context, state: shared } => {
            // Nothing and null are the same once an input has been written and read.
            let shared = shared.clone().filter(|shared| !shared.is_null());
            offered(state, definitions, tools, context, shared)
        }
        Input::Approval { at, verdict } => approval_done(state, definitions, limits, at, verdict),
        Input::Wake => Vec::new(),
        Input::CancelTurn { turn, reason } => match state.turn(turn).filter(|turn| turn.is_active()) {
            Some(turn) => {
                let failure = Failure::business(ErrorCode::ExecutionFailed, reason);
                fail(state, turn, "CANCELLED", &failure)
            }
            None => ignore(Some(turn), "the turn to cancel has ended or never began"),
        },
        Input::DefinitionChanged { first_difference } => {
            definition_changed(state, definitions, now, *first_difference)
        }
        Input::RemoveParticipant { participant } if state.takes_part(participant) => {
            vec![Decision::RemoveParticipant { participant: participant.clone() }]
        }
        Input::RemoveParticipant { .. } => ignore(None, "who is to leave does not take part"),
        Input::Close if state.status == ConversationStatus::Active => vec![Decision::CloseConversation],
        Input::Close => ignore(None, "the conversation is closed already"),
    }
}

fn ignore(turn: Option<&TurnId>, reason: &str) -> Vec<Decision> {
    vec![Decision::IgnoreInput { turn: turn.cloned(), reason: reason.to_string() }]
}

#[expect(clippy::too_many_arguments, reason = "they are the members of START_TURN")]
fn start(
    state: &State,
    definitions: &Definitions,
    agent: AgentId,
    caller: Caller,
    input: Value,
    reply_to: Option<ReplyTo>,
    answers: Option<MessageId>,
    depth: u32,
) -> Vec<Decision> {
    if state.status != ConversationStatus::Active {
        return ignore(None, "the conversation is closed");
    }
    if definitions.agent(&agent).is_none() {
        return ignore(None, "there is no such agent");
    }
    let turn = state.next_turn();
    let content = match &input {
        Value::String(text) => text.clone(),
        other => canonical(other),
    };
    vec![
        Decision::StartTurn { turn: turn.clone(), agent, caller, input, reply_to, answers, depth },
        Decision::AppendMessage { turn, role: Role::User, content, has_tool_use: false },
    ]
}

fn context_done(
    state: &State,
    limits: &Limits,
    now: Millis,
    at: &HookAddress,
    result: &Result<Value, Failure>,
) -> Vec<Decision> {
    let waiting = state.turn(&at.turn).filter(
        |turn| matches!(&turn.phase, Phase::Assembling { attempt, run: Some(run) } if (*attempt, run) == (at.attempt, &at.run)),
    );
    let Some(turn) = waiting else { return ignore(Some(&at.turn), "nobody waits for this request any more") };
    let failure = match result {
        Ok(output) => match output.get("llmRequest").cloned().map(serde_json::from_value::<Request>) {
            Some(Ok(request)) => {
                let tokens = Usage::estimate(&request, &Reply::default()).input_tokens;
                return vec![Decision::AcceptContext { at: at.clone(), request: Box::new(request), tokens }];
            }
            Some(Err(error)) => Failure::business(
                ErrorCode::InvalidInput,
                format!("what it returned as llmRequest is no request: {error}"),
            ),
            None => Failure::business(ErrorCode::InvalidInput, "it returned no llmRequest"),
        },
        Err(failure) => failure.clone(),
    };
    let again = retry(limits.context, at.attempt, &failure);
    let mut decisions =
        vec![Decision::FailContext { at: at.clone(), failure: failure.clone(), exhausted: again.is_none() }];
    match again {
        Some(delay) => decisions.push(timer_at(turn, TimerKind::ContextRetry, now + delay)),
        None => decisions.extend(fail(state, turn, "CONTEXT_ASSEMBLY_FAILED", &failure)),
    }
    decisions
}

fn extraction_done(
    state: &State,
    limits: &Limits,
    now: Millis,
    at: &HookAddress,
    result: &Result<Value, Failure>,
) -> Vec<Decision> {
    let waiting = state.turn(&at.turn).filter(
        |turn| matches!(&turn.phase, Phase::Extracting { attempt, run: Some(run) } if (*attempt, run) == (at.attempt, &at.run)),
    );
    let Some(turn) = waiting else {
        return ignore(Some(&at.turn), "nobody waits for this extraction any more");
    };
    let Err(failure) = result else { return vec![Decision::AcceptExtraction { at: at.clone() }] };
    let again = retry(limits.extraction, at.attempt, failure);
    let mut decisions = vec![Decision::FailExtraction {
        at: at.clone(),
        failure: failure.clone(),
        exhausted: again.is_none(),
    }];
    decisions.extend(again.map(|delay| timer_at(turn, TimerKind::ExtractionRetry, now + delay)));
    decisions
}

fn model_done(
    state: &State,
    definitions: &Definitions,
    limits: &Limits,
    now: Millis,
    at: &ModelAddress,
    result: &Result<Reply, ModelError>,
) -> Vec<Decision> {
    let turn = state.turn(&at.turn);
    let waiting = turn.and_then(|turn| match &turn.phase {
        Phase::Calling { attempt, open: true, last, .. }
            if (turn.calls, *attempt) == (at.call, at.attempt) =>
        {
            Some((turn, *last))
        }
        _ => None,
    });
    let Some((turn, last)) = waiting else {
        return ignore(Some(&at.turn), "nobody waits for this reply any more");
    };
    match result {
        Ok(reply) => {
            let (next, decisions) = reply::plan(state, definitions, limits, turn, reply, last);
            let accept = Decision::AcceptReply { at: at.clone(), reply: Box::new(reply.clone()), next };
            [vec![accept], decisions].concat()
        }
        Err(error) => {
            let again = if error.can_retry() { limits.model.delay(at.attempt) } else { None };
            let mut decisions =
                vec![Decision::FailLlm { at: at.clone(), error: error.clone(), will_retry: again.is_some() }];
            match again {
                Some(delay) => {
                    let asked = error
                        .retry_after
                        .map_or(0, |wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
                    let wake = now.saturating_add(delay.max(asked));
                    decisions.push(timer_at(turn, TimerKind::ModelRetry, wake));
                }
                None => decisions.extend(fail(state, turn, "LLM_FAILED", &of_model(error))),
            }
            decisions
        }
    }
}

fn operation_done(
    state: &State,
    definitions: &Definitions,
    now: Millis,
    at: &OperationAddress,
    result: &Result<Value, Failure>,
) -> Vec<Decision> {
    let turn = state.turn(&at.turn).filter(|turn| turn.is_active());
    let open = turn.and_then(|turn| turn.operation(&at.call).map(|operation| (turn, operation)));
    let waiting_again =
        |turn: &Turn| state.timers.contains_key(&key(turn, TimerKind::OperationRetry(at.call.clone())));
    let open = open.filter(|(turn, operation)| {
        operation.status.is_open()
            && operation.status != OperationStatus::AwaitingApproval
            && operation.attempt == at.attempt
            && !waiting_again(turn)
    });
    let Some((turn, operation)) = open else {
        return ignore(Some(&at.turn), "nobody waits for this result any more");
    };
    let (turn_id, call) = (turn.id.clone(), at.call.clone());
    // A client may have withdrawn its tool in the meantime; what it did counts all the same.
    let tool = state.tool(definitions, &turn.agent, &operation.tool);
    if let Err(failure) = result
        && failure.can_retry()
        && let Some(tool) = tool
        && operation.attempt < tool.retry.max_attempts
    {
        let delay_ms = tool.retry.backoff_ms;
        let failure = failure.clone();
        return vec![
            Decision::RetryOperation { turn: turn_id, call: call.clone(), failure, delay_ms },
            timer_at(turn, TimerKind::OperationRetry(call), now + delay_ms),
        ];
    }
    let written = match (result, tool) {
        (Ok(value), Some(tool)) => tool.written(&operation.input, value, &state.shared),
        (Ok(_), None) | (Err(_), _) => Ok(None),
    };
    let (result, written) = match written {
        Ok(written) => (result.clone(), written),
        Err(failure) => (Err(failure), None),
    };
    let outcome = outcome(&call, &result);
    let mut decisions =
        vec![Decision::CompleteOperation { turn: turn_id.clone(), call: call.clone(), result }];
    decisions.extend(written.map(|state| Decision::ChangeState { turn: turn_id.clone(), state }));
    if operation.is_async {
        decisions.push(Decision::RecordResult { turn: turn_id.clone(), outcome });
        decisions.push(Decision::AsyncOperationCompleted { turn: turn_id, call });
    } else {
        let draft = reply::draft_of(operation, &operation.input, Some(outcome));
        decisions.push(Decision::RecordMove { turn: turn_id.clone(), draft });
        decisions.push(Decision::ResumeFromTool { turn: turn_id, call });
    }
    decisions
}

/// What a client offers. A tool that cannot be used is left out, and the trace says why.
fn offered(
    state: &State,
    definitions: &Definitions,
    tools: &[hotseat_model::Tool],
    context: &[ContextEntry],
    shared: Option<Value>,
) -> Vec<Decision> {
    if state.status != ConversationStatus::Active {
        return ignore(None, "the conversation is closed");
    }
    let (mut accepted, mut left_out) = (Vec::<crate::definition::Tool>::new(), Vec::new());
    let own = definitions.agent(&state.agent).map(|agent| &agent.persona);
    for hotseat_model::Tool { name, description, input_schema } in tools {
        let is_own = own.is_some_and(|persona| {
            persona.tools.iter().any(|tool| tool.name == *name)
                || (persona.may_decline && name == reply::DECLINE)
        });
        let problem = if name.is_empty() {
            "it has no name".to_string()
        } else if is_own {
            "the agent has a tool of this name, which is used".to_string()
        } else if accepted.iter().any(|tool| tool.name == *name) {
            "the name is there twice; the first is used".to_string()
        } else if let Err(problem) = schema::check_foreign(input_schema) {
            format!("its input schema cannot be used: {problem}")
        } else {
            accepted.push(tool(name).description(description).input(input_schema.clone()).client());
            continue;
        };
        left_out.extend(ignore(None, &format!("the tool {name:?} that the client offers: {problem}")));
    }
    let mut decisions =
        vec![Decision::AcceptOffer { tools: accepted, context: context.to_vec(), state: shared }];
    decisions.extend(left_out);
    decisions
}

fn approval_done(
    state: &State,
    definitions: &Definitions,
    limits: &Limits,
    at: &OperationAddress,
    verdict: &ApprovalVerdict,
) -> Vec<Decision> {
    let turn = state.turn(&at.turn).filter(|turn| turn.is_active());
    let asked = turn.and_then(|turn| turn.operation(&at.call).map(|operation| (turn, operation)));
    let asked = asked.filter(|(_, operation)| {
        operation.status == OperationStatus::AwaitingApproval && operation.attempt == at.attempt
    });
    let Some((turn, operation)) = asked else {
        return ignore(Some(&at.turn), "nobody asks for this approval any more");
    };
    let verdict = match verdict {
        // Nothing and null are the same once an input has been written and read.
        ApprovalVerdict::Approved { input: Some(Value::Null) } => ApprovalVerdict::Approved { input: None },
        other => other.clone(),
    };
    let mut decisions = vec![Decision::AnswerApproval {
        turn: turn.id.clone(),
        call: operation.call.clone(),
        verdict: verdict.clone(),
    }];
    decisions.extend(match &verdict {
        ApprovalVerdict::Approved { input } => {
            reply::approved(state, definitions, limits, turn, operation, input.as_ref())
        }
        ApprovalVerdict::Declined { reason } => {
            let message = match reason.as_str() {
                "" => "a person declined the call".to_string(),
                reason => format!("a person declined the call: {reason}"),
            };
            let failure = Failure::business(ErrorCode::PermissionDenied, message);
            reply::not_called(turn, operation, &operation.input, failure)
        }
    });
    decisions
}

/// Another definition of the agent holds from here on.
fn definition_changed(
    state: &State,
    definitions: &Definitions,
    now: Millis,
    first_difference: u64,
) -> Vec<Decision> {
    let mut decisions = vec![Decision::AdoptDefinitions { first_difference }];
    for turn in state.active_turns() {
        if matches!(turn.caller, super::Caller::User { .. }) && turn.awaits_only_the_client() {
            let sent = turn
                .open_operations()
                .filter(|operation| operation.status != OperationStatus::AwaitingApproval);
            decisions.extend(sent.filter_map(|operation| {
                let limit = state.tool(definitions, &turn.agent, &operation.tool)?.retry.timeout_ms?;
                let kind = TimerKind::OperationDeadline(operation.call.clone());
                Some(timer_at(turn, kind, now.saturating_add(limit)))
            }));
        } else {
            let message = "the agent was changed while this turn was at work; say it again";
            decisions.extend(fail_apart(state, turn, "AGENT_CHANGED", message));
        }
    }
    decisions
}

pub(super) fn outcome(call: &CallId, result: &Result<Value, Failure>) -> hotseat_trace::ToolOutcome {
    let result = result.clone().map_err(|failure| failure.info());
    hotseat_trace::ToolOutcome { tool_call_id: call.0.clone(), result }
}

/// What a timer leads to.
pub(super) fn timer(
    state: &State,
    definitions: &Definitions,
    limits: &Limits,
    now: Millis,
    timer: &TimerKey,
) -> Vec<Decision> {
    let done = Decision::CancelTimer { key: timer.clone() };
    let Some(turn) = state.turn(&timer.turn).filter(|turn| turn.is_active()) else { return vec![done] };
    let late = |limit: u64| {
        Failure::infrastructure(InfrastructureKind::Timeout, format!("there was no answer within {limit} ms"))
    };
    let mut decisions = vec![done];
    match (&timer.kind, &turn.phase) {
        // What is due again is found by the state: a request, a call or an extraction that nobody works at.
        (TimerKind::ContextRetry, Phase::Assembling { run: None, .. })
        | (TimerKind::ModelRetry, Phase::Calling { open: false, .. })
        | (TimerKind::ExtractionRetry, Phase::Extracting { run: None, .. }) => {}
        (TimerKind::ContextDeadline, Phase::Assembling { attempt, run: Some(run) }) => {
            let at = HookAddress {
                turn: turn.id.clone(),
                kind: HookKind::ContextAssembly,
                run: run.clone(),
                attempt: *attempt,
            };
            decisions.extend(context_done(state, limits, now, &at, &Err(late(limits.context.timeout_ms))));
        }
        (TimerKind::ExtractionDeadline, Phase::Extracting { attempt, run: Some(run) }) => {
            let at = HookAddress {
                turn: turn.id.clone(),
                kind: HookKind::MemoryExtraction,
                run: run.clone(),
                attempt: *attempt,
            };
            decisions.extend(extraction_done(
                state,
                limits,
                now,
                &at,
                &Err(late(limits.extraction.timeout_ms)),
            ));
        }
        (TimerKind::ModelDeadline, Phase::Calling { attempt, open: true, .. }) => {
            let at = ModelAddress { turn: turn.id.clone(), call: turn.calls, attempt: *attempt };
            let message = late(limits.model.timeout_ms).message().to_string();
            let error = ModelError::new(hotseat_model::ErrorKind::Timeout, message);
            let again = limits.model.delay(*attempt);
            decisions.push(Decision::FailLlm { at, error: error.clone(), will_retry: again.is_some() });
            match again {
                Some(delay) => decisions.push(timer_at(turn, TimerKind::ModelRetry, now + delay)),
                None => decisions.extend(fail(state, turn, "LLM_FAILED", &of_model(&error))),
            }
        }
        (TimerKind::OperationRetry(call), _) => {
            decisions.push(Decision::RedispatchOperation { turn: turn.id.clone(), call: call.clone() });
        }
        (TimerKind::OperationDeadline(call), _) => {
            let Some(operation) = turn.operation(call) else { return decisions };
            let tool = state.tool(definitions, &turn.agent, &operation.tool);
            let limit = tool.and_then(|tool| tool.retry.timeout_ms).unwrap_or_default();
            let at = turn.address(operation);
            decisions.extend(stop(state, turn, call));
            // That its time is over is a result like any other.
            decisions.extend(operation_done(state, definitions, now, &at, &Err(late(limit))));
        }
        // The turn has gone on in the meantime.
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

/// Stops what runs for an operation that takes too long.
fn stop(state: &State, turn: &Turn, call: &CallId) -> Vec<Decision> {
    let mut decisions = called_turns(state, call)
        .flat_map(|called| fail_apart(state, called, "CANCELLED", "the call took too long"))
        .collect::<Vec<_>>();
    decisions.push(Decision::StopOperation { turn: turn.id.clone(), call: call.clone() });
    decisions
}

/// The turns of this conversation that a call of it has started.
fn called_turns<'s>(state: &'s State, call: &CallId) -> impl Iterator<Item = &'s Turn> {
    let call = call.clone();
    state.active_turns().filter(move |turn| {
        turn.reply_to.as_ref().is_some_and(|to| match to {
            ReplyTo::Call { conversation, at } => *conversation == state.conversation && at.call == call,
            ReplyTo::Run { .. } => false,
        })
    })
}

/// A model that does not answer as a failure of whoever asked it.
fn of_model(error: &ModelError) -> Failure {
    if error.can_retry() {
        Failure::infrastructure(InfrastructureKind::Server, error.to_string())
    } else {
        Failure::business(ErrorCode::ExecutionFailed, error.to_string())
    }
}

/// Ends a turn that cannot be held to its end: gives up what runs for it, and answers whoever started it.
pub(super) fn fail(state: &State, turn: &Turn, code: &str, failure: &Failure) -> Vec<Decision> {
    let message = failure.message();
    let mut decisions = fail_apart(state, turn, code, message);
    if let Some(to) = &turn.reply_to {
        let told = || format!("the turn of the agent failed: {message}");
        // What failed for good here fails for good there; otherwise agents that ask each other would ask many times.
        let outcome = Err(match failure {
            Failure::Business { code: ErrorCode::AgentDeclined, .. } => failure.clone(),
            Failure::Business { .. } => Failure::business(ErrorCode::ExecutionFailed, told()),
            Failure::Infrastructure { kind: InfrastructureKind::Timeout, .. } => {
                Failure::infrastructure(InfrastructureKind::Server, told())
            }
            Failure::Infrastructure { kind, .. } => Failure::infrastructure(*kind, told()),
        });
        decisions.push(Decision::ReplyToCaller { turn: turn.id.clone(), to: to.clone(), outcome });
    }
    decisions
}

/// The same without an answer, for turns whose caller is not interested any more.
fn fail_apart(state: &State, turn: &Turn, code: &str, message: &str) -> Vec<Decision> {
    let mut decisions = Vec::new();
    for operation in turn.open_operations() {
        for called in called_turns(state, &operation.call) {
            decisions.extend(fail_apart(state, called, "CANCELLED", "the turn that called has ended"));
        }
        let reason = format!("the turn has failed: {code}");
        decisions.push(Decision::CancelOperation {
            turn: turn.id.clone(),
            call: operation.call.clone(),
            reason,
        });
    }
    let (code, message) = (code.to_string(), message.to_string());
    decisions.push(Decision::FailTurn { turn: turn.id.clone(), code, message });
    decisions
}

fn retry(retry: Retry, attempt: u32, failure: &Failure) -> Option<u64> {
    if failure.can_retry() { retry.delay(attempt) } else { None }
}

fn key(turn: &Turn, kind: TimerKind) -> TimerKey {
    TimerKey { turn: turn.id.clone(), kind }
}

fn timer_at(turn: &Turn, kind: TimerKind, at: Millis) -> Decision {
    Decision::ScheduleTimer { key: key(turn, kind), at }
}
