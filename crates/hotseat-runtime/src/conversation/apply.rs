//! Applies one decision: changes the state, writes events and requests effects.

use std::collections::BTreeSet;
use std::sync::Arc;

use hotseat_model::{ModelMessage, ModelReply, TokenUsage};
use hotseat_trace::{
    AgentCallCompleted, AgentCallContext, AgentCallFailed, AgentCallStarted, AssistantMessage,
    AsyncCancelled, AsyncCompleted, ContextAssembled, ConversationClosed, ConversationCreated,
    DefinitionChanged, ErrorInfo, HookFailed, HookStarted, InputIgnored, InterruptAnswered, InterruptRaised,
    InvocationMode, LlmCallCompleted, LlmCallFailed, LlmCallStarted, MemoryExtracted, MoveCall, MoveRecorded,
    MoveResult, Origin, ParticipantAdded, ParticipantRemoved, Payload, StateSnapshot, ToolArguments,
    ToolCompleted, ToolFailed, ToolInvocation, ToolRetry, TurnCompletion, TurnFailed, TurnOperation,
    TurnStart, UserMessage,
};
use serde_json::{Value, json};

use super::state::{
    CallAnswer, OperationStatus, OperationTarget, ReplySlot, ToolOperation, TurnEnd, TurnPhase, TurnState,
};
use super::{
    ApprovalVerdict, ClientOffer, ConversationEffect, ConversationState, ConversationStatus,
    ConversationStep, Decision, EffectKey, HookAddress, HookKind, Millis, ModelAddress, MoveDraft, NextStep,
    OperationAddress, RuntimeFault, SpeakerRole, TimerKey, TimerKind, TurnCaller, TurnMessage, context,
    reply,
};
use crate::definition::{Definitions, RuntimeLimits};
use crate::failure::{InfrastructureKind, WorkFailure};
use crate::ids::{CallId, ConversationId, MessageId, MoveId, TurnId};

pub(super) fn apply(
    state: &mut ConversationState,
    definitions: &Definitions,
    limits: &RuntimeLimits,
    now: Millis,
    decision: &Decision,
    step: &mut ConversationStep,
) -> Result<(), RuntimeFault> {
    let mut out = StepWriter { step };
    match decision {
        Decision::OpenConversation => out.event(ConversationCreated {
            conversation_id: state.conversation.0.clone(),
            agent_id: state.agent.0.clone(),
            parent: state.parent.clone(),
        }),
        Decision::CloseConversation => {
            state.status = ConversationStatus::Completed;
            out.event(ConversationClosed { conversation_id: state.conversation.0.clone() });
        }
        Decision::StartTurn { turn, agent, caller, input, reply_to, answers, depth } => {
            if state.turn(turn).is_some() {
                return fault(format!("turn {turn} already exists"));
            }
            let begun = TurnState {
                input: input.clone(),
                answers: answers.clone(),
                reply_to: reply_to.clone(),
                depth: *depth,
                ..TurnState::new(state, turn.clone(), agent.clone(), caller.clone())
            };
            let (caller_id, caller_type) = begun.caller_info();
            let caller_turn_id = match caller {
                TurnCaller::Agent { turn_id, .. } => Some(turn_id.0.clone()),
                TurnCaller::User { .. } | TurnCaller::Workflow { .. } => None,
            };
            out.event(Payload::TurnStarted(TurnStart {
                turn_id: turn.0.clone(),
                conversation_id: state.conversation.0.clone(),
                caller_id,
                caller_type: caller_type.into(),
                caller_turn_id,
                agent_id: Some(agent.0.clone()),
            }));
            state.turns.push(begun);
        }
        Decision::AppendMessage { turn, role, content, has_tool_use } => {
            let id = MessageId(format!("{}-m{}", state.conversation, state.messages.len() + 1).into());
            let root_agent = state.agent.clone();
            let entry = active_turn(state, turn)?;
            let (turn_id, message_id) = (turn.0.clone(), id.0.clone());
            let agent = match role {
                SpeakerRole::User => {
                    entry.user_text.clone_from(content);
                    entry.transcript.push(ModelMessage::user(content));
                    let content = content.clone();
                    let (attachments, options) = (Vec::new(), None);
                    out.event(UserMessage { turn_id, message_id, content, attachments, options });
                    None
                }
                SpeakerRole::Agent => {
                    entry.last_text = Some(content.clone());
                    let agent = entry.agent.clone();
                    out.event(AssistantMessage {
                        turn_id,
                        message_id,
                        content: content.as_str().into(),
                        has_tool_use: Some(*has_tool_use),
                        started_us: None,
                        origin: Origin::Stream,
                        subagent: (agent != root_agent).then(|| agent.0.clone()),
                    });
                    Some(agent)
                }
            };
            let said = TurnMessage { id, turn: turn.clone(), role: *role, agent, content: content.clone() };
            state.messages.push(said);
        }
        Decision::DispatchContextAssembly { at, workflow, input } => {
            let turn = active_turn(state, &at.turn)?;
            turn.update_transcript();
            turn.runs += 1;
            turn.phase = TurnPhase::Assembling { attempt: at.attempt, run: Some(at.run.clone()) };
            let agent = turn.agent.clone();
            out.event(Payload::ContextAssemblyStarted(hook_started(at, workflow.0.clone())));
            set_timer(state, &at.turn, TimerKind::ContextDeadline, now + limits.context.timeout_ms);
            let (at, workflow, input) = (at.clone(), workflow.clone(), input.clone());
            out.effect(state, ConversationEffect::RunHook { at, agent, workflow, input });
        }
        Decision::AcceptContext { at, request, tokens } => {
            let turn = active_turn(state, &at.turn)?;
            turn.phase = TurnPhase::Assembled { request: request.clone() };
            if turn.prefix.is_none() {
                turn.prefix = Some(request.clone());
            }
            settle_hook(state, at);
            out.event(Payload::ContextAssemblyCompleted(ContextAssembled {
                turn_id: at.turn.0.clone(),
                run_id: at.run.0.clone(),
                token_count: *tokens,
            }));
        }
        Decision::FailContext { at, failure, exhausted } => {
            active_turn(state, &at.turn)?.phase = TurnPhase::Assembling { attempt: at.attempt, run: None };
            out.cancel_late_hook(state, at, failure);
            settle_hook(state, at);
            out.event(Payload::ContextAssemblyFailed(hook_failed(at, failure, *exhausted)));
        }
        Decision::CallLlm { at, request, last } => {
            let profile = model_profile(definitions, state, &at.turn)?;
            let agent = active_turn(state, &at.turn)?.agent.clone();
            let has_tools = state.tools(definitions, &agent).next().is_some();
            let turn = active_turn(state, &at.turn)?;
            let offers_fewer = *last && at.attempt == 1 && has_tools;
            turn.issues.move_limit_reached |= offers_fewer;
            if at.attempt == 1 {
                // With per-turn requests, pending messages become part of the transcript here.
                turn.update_transcript();
            }
            turn.calls = at.call;
            turn.phase =
                TurnPhase::Calling { attempt: at.attempt, request: request.clone(), open: true, last: *last };
            out.event(LlmCallStarted {
                turn_id: at.turn.0.clone(),
                model_profile_id: profile.clone(),
                input_tokens: TokenUsage::estimate(request, &ModelReply::default()).input_tokens,
                call_no: at.call,
                attempt: at.attempt,
                message_count: u32::try_from(request.messages.len()).unwrap_or(u32::MAX),
                tool_count: u32::try_from(request.tools.len()).unwrap_or(u32::MAX),
            });
            set_timer(state, &at.turn, TimerKind::ModelDeadline, now + limits.model.timeout_ms);
            out.effect(
                state,
                ConversationEffect::CallModel { at: at.clone(), profile, request: request.clone() },
            );
        }
        Decision::AcceptReply { at, reply, next } => {
            let began = state.timers.get(&timer_key(&at.turn, TimerKind::ModelDeadline)).copied();
            let duration_ms =
                began.map_or(0, |deadline| (now + limits.model.timeout_ms).saturating_sub(deadline));
            let turn = active_turn(state, &at.turn)?;
            let TurnPhase::Calling { request, last, .. } = &turn.phase else {
                return fault(format!("turn {} has no open model call", at.turn));
            };
            let last = *last;
            // Use the estimate if the provider does not report token counts.
            let counted = if reply.usage.output_tokens > 0 {
                reply.usage
            } else {
                TokenUsage::estimate(request, reply)
            };
            take_reply(turn, reply, last, *next);
            settle_model(state, at);
            out.event(LlmCallCompleted {
                turn_id: at.turn.0.clone(),
                call_no: at.call,
                input_tokens: (!counted.estimated).then_some(counted.input_tokens),
                output_tokens: counted.output_tokens,
                has_tool_use: !reply.tool_calls.is_empty(),
                stop_reason: reply.stop.as_str().into(),
                duration_ms,
            });
        }
        Decision::FailLlm { at, error, will_retry } => {
            let turn = active_turn(state, &at.turn)?;
            if let TurnPhase::Calling { open, .. } = &mut turn.phase {
                *open = false;
            }
            if error.kind == hotseat_model::ModelErrorKind::Timeout {
                out.step.effects.push(ConversationEffect::CancelModel { at: at.clone() });
            }
            settle_model(state, at);
            let error = ErrorInfo {
                code: Some(error.kind.as_str().to_string()),
                message: error.to_string(),
                retriable: Some(error.can_retry()),
            };
            let (turn_id, will_retry) = (at.turn.0.clone(), *will_retry);
            out.event(LlmCallFailed { turn_id, call_no: at.call, attempt: at.attempt, error, will_retry });
        }
        Decision::RecordMove { turn, draft } => record_move(active_turn(state, turn)?, draft, &mut out),
        Decision::RecordResult { turn, outcome } => {
            let entry = active_turn(state, turn)?;
            let made = |recorded: &MoveRecorded| {
                recorded.tool_call.as_ref().is_some_and(|call| call.tool_call_id == outcome.tool_call_id)
            };
            let Some(recorded) = entry.moves.iter_mut().find(|recorded| made(recorded)) else {
                return fault(format!("call {} has no move", outcome.tool_call_id));
            };
            recorded.tool_result = Some(outcome.clone());
            let (turn_id, move_id) = (turn.0.clone(), recorded.move_id.clone());
            out.event(MoveResult { turn_id, move_id, tool_result: outcome.clone() });
        }
        Decision::RefuseCall { turn, call, tool, input, reasoning, failure } => {
            let entry = active_turn(state, turn)?;
            let outcome = reply::tool_outcome(call, &Err(failure.clone()));
            entry.issues.tool_failures += 1;
            entry.set_answer(call, CallAnswer::Ended(outcome.clone()));
            out.event(ToolFailed {
                turn_id: turn.0.clone(),
                tool_call_id: call.0.clone(),
                error: failure.info(),
                origin: Origin::Stream,
            });
            let made =
                MoveCall { tool_id: Arc::from(&**tool), input: input.clone(), tool_call_id: call.0.clone() };
            let draft = MoveDraft {
                iteration: entry.replies - 1,
                reasoning: reasoning.clone(),
                call: Some(made),
                outcome: Some(outcome),
            };
            record_move(entry, &draft, &mut out);
        }
        Decision::DispatchTask { turn, call, tool, task, input, given, is_async } => {
            let work = OperationTarget::Task(task.clone());
            dispatch(state, definitions, now, turn, call, (tool, work, input, given, *is_async), &mut out)?;
        }
        Decision::DispatchWorkflow { turn, call, tool, workflow, input, given, is_async } => {
            let work = OperationTarget::Workflow(workflow.clone());
            dispatch(state, definitions, now, turn, call, (tool, work, input, given, *is_async), &mut out)?;
        }
        Decision::DispatchAgent { turn, call, tool, agent, mode, input, given, is_async } => {
            let work = OperationTarget::Agent(agent.clone(), *mode);
            dispatch(state, definitions, now, turn, call, (tool, work, input, given, *is_async), &mut out)?;
            let (turn_id, call_id, agent_id) = (turn.0.clone(), call.0.clone(), agent.0.clone());
            out.event(AgentCallStarted { turn_id, call_id, agent_id, mode: *mode });
        }
        Decision::DispatchClient { turn, call, tool, input, given, is_async } => {
            let made = (tool, OperationTarget::Client, input, given, *is_async);
            dispatch(state, definitions, now, turn, call, made, &mut out)?;
        }
        Decision::AskApproval { turn, call, tool, work, input, is_async, reasoning, message } => {
            // The target's input is set on approval, because the human may change it until then.
            create_operation(
                state,
                now,
                turn,
                call,
                (tool, work.clone(), input, &Value::Null, *is_async),
                &mut out,
            )?;
            let entry = active_turn(state, turn)?;
            if let TurnPhase::Waiting { open } = &mut entry.phase {
                open.insert(call.clone());
            }
            let operation = operation_mut(entry, call)?;
            operation.status = OperationStatus::AwaitingApproval;
            operation.reasoning.clone_from(reasoning);
            let at = OperationAddress { turn: turn.clone(), call: call.clone(), attempt: operation.attempt };
            out.event(InterruptRaised {
                turn_id: turn.0.clone(),
                interrupt_id: call.0.clone(),
                reason: Some("tool_approval".to_string()),
                message: Some(message.clone()),
                tool_call_id: Some(call.0.clone()),
                value: json!({"toolName": tool, "input": input}),
            });
            let (tool, input, message) = (tool.clone(), input.clone(), message.clone());
            out.effect(state, ConversationEffect::AskApproval { at, tool, input, message });
        }
        Decision::AnswerApproval { turn, call, verdict } => {
            let entry = active_turn(state, turn)?;
            let operation = operation_mut(entry, call)?;
            let at = OperationAddress { turn: turn.clone(), call: call.clone(), attempt: operation.attempt };
            let answer = match verdict {
                ApprovalVerdict::Approved { input: None } => json!({"approved": true}),
                ApprovalVerdict::Approved { input: Some(input) } => json!({"approved": true, "input": input}),
                ApprovalVerdict::Declined { reason } => json!({"approved": false, "reason": reason}),
            };
            out.event(interrupt_answered(turn, call, "resolved", Some(answer)));
            if let ApprovalVerdict::Approved { input: Some(input) } = verdict {
                operation.input = input.clone();
                let notice = context::edited_notice(operation, input);
                entry.notices.push(notice);
                let (turn_id, tool_call_id) = (turn.0.clone(), call.0.clone());
                out.event(ToolArguments { turn_id, tool_call_id, input: Some(input.clone()), text: None });
            }
            state.outstanding.remove(&EffectKey::Approval(at));
        }
        Decision::LeaveApproval { turn, call } => {
            let entry = active_turn(state, turn)?;
            let TurnPhase::Waiting { open } = &mut entry.phase else {
                return fault(format!("turn {turn} is not waiting"));
            };
            open.remove(call);
            if open.is_empty() {
                entry.phase = TurnPhase::Ready;
            }
        }
        Decision::AcceptOffer { tools, context, state: shared } => {
            state.offer = ClientOffer { tools: tools.clone(), context: context.clone() };
            if let Some(shared) = shared {
                state.shared = shared.clone();
            }
        }
        Decision::AdoptDefinitions { first_difference } => out.event(DefinitionChanged {
            conversation_id: state.conversation.0.clone(),
            agent_id: state.agent.0.clone(),
            first_difference: *first_difference,
        }),
        Decision::ChangeState { turn, state: shared } => {
            state.shared = shared.clone();
            out.event(StateSnapshot { turn_id: turn.0.clone(), state: shared.clone() });
        }
        Decision::AddParticipant { participant, by } => {
            if state.has_participant(participant) {
                return Ok(());
            }
            state.participants.push(participant.clone());
            out.event(ParticipantAdded {
                conversation_id: state.conversation.0.clone(),
                participant: participant.clone(),
                added_by_turn_id: by.0.clone(),
            });
        }
        Decision::RemoveParticipant { participant } => {
            state.participants.retain(|other| other != participant);
            let conversation_id = state.conversation.0.clone();
            out.event(ParticipantRemoved { conversation_id, participant: participant.clone() });
        }
        Decision::ShareContext { turn, call, mode, input } => out.event(AgentCallContext {
            turn_id: turn.0.clone(),
            call_id: call.0.clone(),
            mode: *mode,
            input: input.clone(),
            conversation_history: (*mode == InvocationMode::LoopIn).then(|| context::utterances(state)),
        }),
        Decision::MarkWaiting { turn, call, reasoning } => {
            let entry = active_turn(state, turn)?;
            if let TurnPhase::Waiting { open } = &mut entry.phase {
                open.insert(call.clone());
            }
            let operation = operation_mut(entry, call)?;
            operation.status = OperationStatus::Waiting;
            operation.reasoning.clone_from(reasoning);
            out.event(Payload::TurnWaiting(turn_operation(turn, call)));
        }
        Decision::TrackAsyncOperation { turn, call } => {
            let entry = active_turn(state, turn)?;
            operation_mut(entry, call)?;
            entry.set_answer(call, CallAnswer::Started);
            out.event(Payload::AsyncTracked(turn_operation(turn, call)));
        }
        Decision::RetryOperation { turn, call, failure, delay_ms } => {
            let entry = active_turn(state, turn)?;
            let (attempt, tool) = {
                let operation = operation_mut(entry, call)?;
                (operation.attempt, operation.tool.clone())
            };
            let agent = entry.agent.clone();
            let max_attempts =
                state.tool(definitions, &agent, &tool).map_or(1, |tool| tool.retry.max_attempts);
            settle_operation(state, turn, call, attempt);
            out.event(ToolRetry {
                turn_id: turn.0.clone(),
                tool_call_id: call.0.clone(),
                attempt,
                max_attempts,
                delay_ms: *delay_ms,
                error: failure.info(),
            });
        }
        Decision::RedispatchOperation { turn, call } => {
            operation_mut(active_turn(state, turn)?, call)?.attempt += 1;
            run_operation(state, definitions, now, turn, call, &mut out)?;
        }
        Decision::StopOperation { turn, call } => {
            let stopped = operation_mut(active_turn(state, turn)?, call)?;
            out.step.effects.push(stop_effect(turn, stopped));
        }
        Decision::CompleteOperation { turn, call, result } => {
            complete_operation(state, now, turn, call, result, &mut out)?;
        }
        Decision::ResumeFromTool { turn, call } => {
            let entry = active_turn(state, turn)?;
            let TurnPhase::Waiting { open } = &mut entry.phase else {
                return fault(format!("turn {turn} is not waiting"));
            };
            open.remove(call);
            if open.is_empty() {
                entry.phase = TurnPhase::Ready;
            }
            out.event(Payload::TurnResumed(turn_operation(turn, call)));
        }
        Decision::AsyncOperationCompleted { turn, call } => {
            let entry = active_turn(state, turn)?;
            let operation = operation_mut(entry, call)?;
            let Some(result) = operation.outcome.clone() else {
                return fault(format!("operation {call} has not ended"));
            };
            let notice = context::ended_notice(operation, &result);
            entry.notices.push(notice);
            let (turn_id, operation_id) = (turn.0.clone(), call.0.clone());
            out.event(AsyncCompleted { turn_id, operation_id, result });
        }
        Decision::CancelOperation { turn, call, reason } => {
            let entry = active_turn(state, turn)?;
            let operation = operation_mut(entry, call)?;
            out.step.effects.push(stop_effect(turn, operation));
            if operation.status == OperationStatus::AwaitingApproval {
                out.event(interrupt_answered(turn, call, "cancelled", None));
            }
            operation.status = OperationStatus::Cancelled;
            operation.completed_at = Some(now);
            let attempt = operation.attempt;
            settle_operation(state, turn, call, attempt);
            state.timers.remove(&timer_key(turn, TimerKind::OperationRetry(call.clone())));
            let (turn_id, operation_id) = (turn.0.clone(), call.0.clone());
            out.event(AsyncCancelled { turn_id, operation_id, reason: reason.clone() });
        }
        Decision::DispatchMemoryExtraction { at, workflow, input } => {
            let turn = active_turn(state, &at.turn)?;
            turn.runs += 1;
            turn.phase = TurnPhase::Extracting { attempt: at.attempt, run: Some(at.run.clone()) };
            let agent = turn.agent.clone();
            out.event(Payload::MemoryExtractionStarted(hook_started(at, workflow.0.clone())));
            set_timer(state, &at.turn, TimerKind::ExtractionDeadline, now + limits.extraction.timeout_ms);
            let (at, workflow, input) = (at.clone(), workflow.clone(), input.clone());
            out.effect(state, ConversationEffect::RunHook { at, agent, workflow, input });
        }
        Decision::AcceptExtraction { at } => {
            active_turn(state, &at.turn)?.phase = TurnPhase::Closing;
            settle_hook(state, at);
            out.event(Payload::MemoryExtractionCompleted(MemoryExtracted {
                turn_id: at.turn.0.clone(),
                run_id: at.run.0.clone(),
            }));
        }
        Decision::FailExtraction { at, failure, exhausted } => {
            let turn = active_turn(state, &at.turn)?;
            turn.phase = if *exhausted {
                TurnPhase::Closing
            } else {
                TurnPhase::Extracting { attempt: at.attempt, run: None }
            };
            turn.issues.memory_extraction_failed = *exhausted;
            out.cancel_late_hook(state, at, failure);
            settle_hook(state, at);
            out.event(Payload::MemoryExtractionFailed(hook_failed(at, failure, *exhausted)));
        }
        Decision::CompleteTurn { turn, issues } => {
            end_turn(state, turn, TurnEnd::Completed, now, &mut out)?;
            let issues = (!issues.is_empty()).then(|| issues.clone());
            out.event(Payload::TurnCompleted(TurnCompletion { turn_id: turn.0.clone(), issues }));
        }
        Decision::FailTurn { turn, code, message } => {
            end_turn(state, turn, TurnEnd::Failed, now, &mut out)?;
            let error = ErrorInfo { code: Some(code.clone()), message: message.clone(), retriable: None };
            out.event(TurnFailed { turn_id: turn.0.clone(), error });
        }
        Decision::ReplyToCaller { to, outcome, .. } => {
            out.step.effects.push(ConversationEffect::Reply { to: to.clone(), outcome: outcome.clone() });
        }
        Decision::ScheduleTimer { key, at } => drop(state.timers.insert(key.clone(), *at)),
        Decision::CancelTimer { key } => drop(state.timers.remove(key)),
        Decision::IgnoreInput { turn, reason } => out.event(InputIgnored {
            turn_id: turn.as_ref().map(|turn| turn.0.clone()),
            reason: reason.clone(),
        }),
    }
    Ok(())
}

/// Collects the events and effects of a step.
struct StepWriter<'s> {
    step: &'s mut ConversationStep,
}

impl StepWriter<'_> {
    fn event(&mut self, payload: impl Into<Payload>) {
        self.step.events.push(payload.into());
    }

    /// Requests an effect that will be answered, and stores it as outstanding.
    fn effect(&mut self, state: &mut ConversationState, effect: ConversationEffect) {
        state.outstanding.insert(effect.key(), effect.clone());
        self.step.effects.push(effect);
    }

    /// Cancels the run of a hook that exceeded its time limit.
    fn cancel_late_hook(&mut self, state: &ConversationState, at: &HookAddress, failure: &WorkFailure) {
        let late = matches!(failure, WorkFailure::Infrastructure { kind: InfrastructureKind::Timeout, .. });
        if late && state.outstanding.contains_key(&EffectKey::Hook(at.clone())) {
            self.step.effects.push(ConversationEffect::CancelRun { run: at.run.clone() });
        }
    }
}

fn fault<T>(message: String) -> Result<T, RuntimeFault> {
    Err(RuntimeFault { message })
}

fn active_turn<'s>(state: &'s mut ConversationState, id: &TurnId) -> Result<&'s mut TurnState, RuntimeFault> {
    match state.turn_mut(id) {
        Some(turn) if turn.is_active() => Ok(turn),
        Some(_) => fault(format!("turn {id} has ended")),
        None => fault(format!("unknown turn {id}")),
    }
}

fn operation_mut<'t>(turn: &'t mut TurnState, call: &CallId) -> Result<&'t mut ToolOperation, RuntimeFault> {
    let id = turn.id.clone();
    turn.operation_mut(call)
        .ok_or_else(|| RuntimeFault { message: format!("turn {id} has no operation {call}") })
}

fn timer_key(turn: &TurnId, kind: TimerKind) -> TimerKey {
    TimerKey { turn: turn.clone(), kind }
}

fn set_timer(state: &mut ConversationState, turn: &TurnId, kind: TimerKind, at: Millis) {
    state.timers.insert(timer_key(turn, kind), at);
}

fn settle_hook(state: &mut ConversationState, at: &HookAddress) {
    state.outstanding.remove(&EffectKey::Hook(at.clone()));
    let kind = match at.kind {
        HookKind::ContextAssembly => TimerKind::ContextDeadline,
        HookKind::MemoryExtraction => TimerKind::ExtractionDeadline,
    };
    state.timers.remove(&timer_key(&at.turn, kind));
}

fn settle_model(state: &mut ConversationState, at: &ModelAddress) {
    state.outstanding.remove(&EffectKey::Model(at.clone()));
    state.timers.remove(&timer_key(&at.turn, TimerKind::ModelDeadline));
}

fn settle_operation(state: &mut ConversationState, turn: &TurnId, call: &CallId, attempt: u32) {
    let at = OperationAddress { turn: turn.clone(), call: call.clone(), attempt };
    state.outstanding.remove(&EffectKey::Approval(at.clone()));
    state.outstanding.remove(&EffectKey::Operation(at));
    state.timers.remove(&timer_key(turn, TimerKind::OperationDeadline(call.clone())));
}

fn hook_started(at: &HookAddress, workflow_id: Arc<str>) -> HookStarted {
    HookStarted { turn_id: at.turn.0.clone(), workflow_id, run_id: at.run.0.clone(), attempt: at.attempt }
}

fn hook_failed(at: &HookAddress, failure: &WorkFailure, retries_exhausted: bool) -> HookFailed {
    HookFailed {
        turn_id: at.turn.0.clone(),
        run_id: at.run.0.clone(),
        error: failure.info(),
        attempt: at.attempt,
        retries_exhausted,
    }
}

fn turn_operation(turn: &TurnId, call: &CallId) -> TurnOperation {
    TurnOperation { turn_id: turn.0.clone(), operation_id: call.0.clone() }
}

fn model_profile(
    definitions: &Definitions,
    state: &ConversationState,
    turn: &TurnId,
) -> Result<Arc<str>, RuntimeFault> {
    let agent = state.turn(turn).and_then(|turn| definitions.agent(&turn.agent));
    agent
        .map(|agent| agent.persona.profile.id.clone())
        .ok_or_else(|| RuntimeFault { message: "the agent is not defined".to_string() })
}

/// Returns the effect that stops the work of an operation.
fn stop_effect(turn: &TurnId, operation: &ToolOperation) -> ConversationEffect {
    let (call, attempt) = (operation.call.clone(), operation.attempt);
    if operation.status == OperationStatus::AwaitingApproval || operation.work == OperationTarget::Client {
        ConversationEffect::Withdraw { at: OperationAddress { turn: turn.clone(), call, attempt } }
    } else {
        ConversationEffect::CancelRun { run: call.run(attempt) }
    }
}

fn interrupt_answered(
    turn: &TurnId,
    call: &CallId,
    status: &str,
    payload: Option<Value>,
) -> InterruptAnswered {
    let (turn_id, interrupt_id) = (turn.0.clone(), call.0.clone());
    InterruptAnswered { turn_id, interrupt_id, status: status.into(), payload }
}

/// Adds a reply to the transcript, replacing its call ids by ids that are unique in the trace.
pub(super) fn take_reply(turn: &mut TurnState, reply: &ModelReply, last: bool, next: NextStep) {
    let mut said = ModelMessage::assistant(reply);
    turn.slots.clear();
    if let ModelMessage::Assistant { tool_calls, .. } = &mut said {
        if last {
            tool_calls.clear();
        }
        for (index, call) in tool_calls.iter_mut().enumerate() {
            let id = reply::call_id(turn, index);
            turn.slots.push(ReplySlot { call: id.clone(), tool: call.name.clone(), answer: None });
            call.id = id.to_string();
        }
    }
    turn.tool_calls += u32::try_from(turn.slots.len()).unwrap_or(u32::MAX);
    turn.replies += 1;
    turn.transcript.push(said);
    turn.phase = match next {
        NextStep::Wait => TurnPhase::Waiting { open: BTreeSet::new() },
        NextStep::Again => TurnPhase::Ready,
        NextStep::Settle => TurnPhase::Idle,
    };
}

fn record_move(turn: &mut TurnState, draft: &MoveDraft, out: &mut StepWriter<'_>) {
    let sequence = u32::try_from(turn.moves.len()).unwrap_or(u32::MAX);
    let recorded = MoveRecorded {
        turn_id: turn.id.0.clone(),
        move_id: MoveId(format!("{}-v{sequence}", turn.id).into()).0,
        sequence,
        iteration: draft.iteration,
        reasoning: draft.reasoning.clone(),
        tool_call: draft.call.clone(),
        tool_result: draft.outcome.clone(),
    };
    turn.moves.push(recorded.clone());
    out.event(recorded);
}

type CallParts<'d> = (&'d String, OperationTarget, &'d Value, &'d Value, bool);

/// Starts an operation, or continues it if it was created for an approval.
fn dispatch(
    state: &mut ConversationState,
    definitions: &Definitions,
    now: Millis,
    turn: &TurnId,
    call: &CallId,
    made: CallParts<'_>,
    out: &mut StepWriter<'_>,
) -> Result<(), RuntimeFault> {
    match active_turn(state, turn)?.operation_mut(call) {
        Some(approved) => {
            approved.target_input = made.3.clone();
            approved.status = OperationStatus::Pending;
        }
        None => create_operation(state, now, turn, call, made, out)?,
    }
    run_operation(state, definitions, now, turn, call, out)
}

/// Creates the operation of a call and records the invocation.
fn create_operation(
    state: &mut ConversationState,
    now: Millis,
    turn: &TurnId,
    call: &CallId,
    (tool, work, input, given, is_async): CallParts<'_>,
    out: &mut StepWriter<'_>,
) -> Result<(), RuntimeFault> {
    let (target_type, target_id, invocation_mode) = context::target_info(&work, tool);
    let root_agent = state.agent.clone();
    let entry = active_turn(state, turn)?;
    let subagent = (entry.agent != root_agent).then(|| entry.agent.0.clone());
    entry.operations.push(ToolOperation {
        call: call.clone(),
        tool: tool.clone(),
        work,
        input: input.clone(),
        target_input: given.clone(),
        is_async,
        reasoning: None,
        iteration: entry.replies - 1,
        status: OperationStatus::Pending,
        attempt: 1,
        outcome: None,
        created_at: now,
        completed_at: None,
    });
    out.event(Payload::ToolInvoked(ToolInvocation {
        turn_id: turn.0.clone(),
        tool_call_id: call.0.clone(),
        tool_name: Arc::from(&**tool),
        target_type: Some(target_type.into()),
        target_id: Some(target_id),
        r#async: is_async,
        input: Some(input.clone()),
        started_us: None,
        origin: Origin::Stream,
        subagent,
        message_id: None,
        invocation_mode,
        server: None,
        agent_call_id: None,
    }));
    Ok(())
}

/// Requests the effect that runs the current attempt of an operation.
fn run_operation(
    state: &mut ConversationState,
    definitions: &Definitions,
    now: Millis,
    turn: &TurnId,
    call: &CallId,
    out: &mut StepWriter<'_>,
) -> Result<(), RuntimeFault> {
    let entry = active_turn(state, turn)?;
    let (agent, depth) = (entry.agent.clone(), entry.depth + 1);
    let operation = operation_mut(entry, call)?.clone();
    let at = entry.address(&operation);
    let input = operation.target_input;
    let limit = state.tool(definitions, &agent, &operation.tool).and_then(|tool| tool.retry.timeout_ms);
    if let Some(limit) = limit {
        set_timer(state, turn, TimerKind::OperationDeadline(call.clone()), now + limit);
    }
    let effect = match operation.work {
        OperationTarget::Task(task) => ConversationEffect::RunTask { at, agent, task, input },
        OperationTarget::Workflow(workflow) => ConversationEffect::RunWorkflow { at, agent, workflow, input },
        OperationTarget::Agent(called, mode) => {
            let caller = TurnCaller::Agent { agent_id: agent, turn_id: turn.clone() };
            ConversationEffect::RunAgent { at, agent: called, mode, caller, input, depth }
        }
        OperationTarget::Client => ConversationEffect::AskClient { at, tool: operation.tool, input },
    };
    out.effect(state, effect);
    Ok(())
}

fn complete_operation(
    state: &mut ConversationState,
    now: Millis,
    turn: &TurnId,
    call: &CallId,
    result: &Result<Value, WorkFailure>,
    out: &mut StepWriter<'_>,
) -> Result<(), RuntimeFault> {
    let entry = active_turn(state, turn)?;
    let outcome = reply::tool_outcome(call, result);
    let (attempt, continues_async, is_agent) = {
        let operation = operation_mut(entry, call)?;
        let was_approved = operation.status != OperationStatus::AwaitingApproval;
        operation.outcome = Some(outcome.clone());
        operation.completed_at = Some(now);
        operation.status = if result.is_ok() { OperationStatus::Completed } else { OperationStatus::Failed };
        let is_agent = matches!(operation.work, OperationTarget::Agent(..)) && was_approved;
        (operation.attempt, operation.is_async && was_approved, is_agent)
    };
    if result.is_err() {
        entry.issues.tool_failures += 1;
    }
    if !continues_async {
        entry.set_answer(call, CallAnswer::Ended(outcome));
    }
    settle_operation(state, turn, call, attempt);
    let (turn_id, id) = (turn.0.clone(), call.0.clone());
    match result {
        Ok(output) => {
            if is_agent {
                let output = output.clone();
                out.event(AgentCallCompleted { turn_id: turn_id.clone(), call_id: id.clone(), output });
            }
            out.event(ToolCompleted {
                turn_id,
                tool_call_id: id,
                output: output.clone(),
                origin: Origin::Stream,
            });
        }
        Err(failure) => {
            let error = failure.info();
            if is_agent {
                out.event(AgentCallFailed {
                    turn_id: turn_id.clone(),
                    call_id: id.clone(),
                    error: error.clone(),
                });
            }
            out.event(ToolFailed { turn_id, tool_call_id: id, error, origin: Origin::Stream });
        }
    }
    Ok(())
}

/// Ends a turn: removes its timers and outstanding effects.
fn end_turn(
    state: &mut ConversationState,
    turn: &TurnId,
    how: TurnEnd,
    now: Millis,
    out: &mut StepWriter<'_>,
) -> Result<(), RuntimeFault> {
    let entry = active_turn(state, turn)?;
    entry.phase = TurnPhase::Ended(how);
    entry.ended_at = Some(now);
    state.timers.retain(|timer, _| timer.turn != *turn);
    let mut outstanding = std::mem::take(&mut state.outstanding);
    outstanding.retain(|asked, _| match asked {
        EffectKey::Hook(at) if at.turn == *turn => {
            out.step.effects.push(ConversationEffect::CancelRun { run: at.run.clone() });
            false
        }
        EffectKey::Model(at) if at.turn == *turn => {
            out.step.effects.push(ConversationEffect::CancelModel { at: at.clone() });
            false
        }
        EffectKey::Operation(at) | EffectKey::Approval(at) => at.turn != *turn,
        EffectKey::Hook(_)
        | EffectKey::Model(_)
        | EffectKey::Reply(_)
        | EffectKey::Withdraw(_)
        | EffectKey::CancelRun(_)
        | EffectKey::CancelModel(_) => true,
    });
    state.outstanding = outstanding;
    Ok(())
}

/// Returns the id of the conversation that an attempt at an agent call opens.
pub fn child_conversation(call: &CallId, attempt: u32) -> ConversationId {
    ConversationId(call.run(attempt).0)
}
