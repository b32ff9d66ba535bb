//! Applies one decision: changes the state, writes events and requests effects.

use std::collections::BTreeSet;
use std::sync::Arc;

use hotseat_model::{ModelError, ModelMessage, ModelReply, ModelRequest, TokenUsage};
use hotseat_trace::{
    AgentCallCompleted, AgentCallContext, AgentCallFailed, AgentCallStarted, AssistantMessage,
    AsyncCancelled, AsyncCompleted, ContextAssembled, ConversationClosed, ConversationCreated,
    DefinitionChanged, ErrorInfo, HookFailed, HookStarted, InputIgnored, InterruptAnswered, InterruptRaised,
    InvocationMode, LlmCallCompleted, LlmCallFailed, LlmCallStarted, MemoryExtracted, MoveCall, MoveRecorded,
    MoveResult, Origin, Participant, ParticipantAdded, ParticipantRemoved, Payload, StateSnapshot,
    ToolArguments, ToolCompleted, ToolFailed, ToolInvocation, ToolOutcome, ToolRetry, TurnCompletion,
    TurnFailed, TurnIssues, TurnOperation, TurnStart, UserMessage,
};
use serde_json::{Value, json};

use super::state::{
    CallAnswer, OperationStatus, OperationTarget, ReplySlot, ToolOperation, TurnEnd, TurnPhase, TurnState,
};
use super::{
    ApprovalVerdict, ClientOffer, ContextEntry, ConversationEffect, ConversationState, ConversationStatus,
    ConversationStep, Decision, EffectKey, HookAddress, HookKind, Millis, ModelAddress, MoveDraft, NextStep,
    OperationAddress, RuntimeFault, SpeakerRole, TimerKey, TimerKind, TurnCaller, TurnMessage, context,
    reply,
};
use crate::definition::{Definitions, RuntimeLimits, ToolDefinition};
use crate::failure::{InfrastructureKind, WorkFailure, WorkResult};
use crate::ids::{AgentId, CallId, ConversationId, MessageId, TurnId, WorkflowId, numbered};

/// Applies one decision.
pub(super) fn apply(
    state: &mut ConversationState,
    definitions: &Definitions,
    limits: &RuntimeLimits,
    now: Millis,
    decision: &Decision,
    step: &mut ConversationStep,
) -> Result<(), RuntimeFault> {
    DecisionApplier { state, definitions, limits, now, out: StepWriter { step } }.apply(decision)
}

/// Applies decisions at a point in time.
struct DecisionApplier<'a> {
    state: &'a mut ConversationState,
    definitions: &'a Definitions,
    limits: &'a RuntimeLimits,
    now: Millis,
    out: StepWriter<'a>,
}

impl DecisionApplier<'_> {
    fn apply(&mut self, decision: &Decision) -> Result<(), RuntimeFault> {
        match decision {
            Decision::OpenConversation => self.open_conversation(),
            Decision::CloseConversation => self.close_conversation(),
            Decision::StartTurn { turn, agent, caller, input, reply_to, answers, depth } => {
                let begun = TurnState {
                    input: input.clone(),
                    answers: answers.clone(),
                    reply_to: reply_to.clone(),
                    depth: *depth,
                    ..TurnState::new(self.state, turn.clone(), agent.clone(), caller.clone())
                };
                self.start_turn(begun)?;
            }
            Decision::AppendMessage { turn, role, content, has_tool_use } => {
                self.append_message(turn, *role, content, *has_tool_use)?
            }
            Decision::DispatchContextAssembly { at, workflow, input }
            | Decision::DispatchMemoryExtraction { at, workflow, input } => {
                self.dispatch_hook(at, workflow, input)?
            }
            Decision::AcceptContext { at, request, tokens } => self.accept_context(at, request, *tokens)?,
            Decision::FailContext { at, failure, exhausted } => self.fail_context(at, failure, *exhausted)?,
            Decision::CallLlm { at, request, last } => self.call_llm(at, request, *last)?,
            Decision::AcceptReply { at, reply, next } => self.accept_reply(at, reply, *next)?,
            Decision::FailLlm { at, error, will_retry } => self.fail_llm(at, error, *will_retry)?,
            Decision::RecordMove { turn, draft } => {
                record_move(active_turn(self.state, turn)?, draft, &mut self.out)
            }
            Decision::RecordResult { turn, outcome } => self.record_result(turn, outcome)?,
            Decision::RefuseCall { turn, call, tool, input, reasoning, failure } => {
                self.refuse_call(turn, call, tool, input, reasoning, failure)?
            }
            Decision::DispatchTask { turn, call, tool, task, input, given, is_async } => {
                let work = OperationTarget::Task(task.clone());
                self.dispatch(turn, call, (tool, work, input, given, *is_async))?;
            }
            Decision::DispatchWorkflow { turn, call, tool, workflow, input, given, is_async } => {
                let work = OperationTarget::Workflow(workflow.clone());
                self.dispatch(turn, call, (tool, work, input, given, *is_async))?;
            }
            Decision::DispatchAgent { turn, call, tool, agent, mode, input, given, is_async } => {
                let work = OperationTarget::Agent(agent.clone(), *mode);
                self.dispatch(turn, call, (tool, work, input, given, *is_async))?;
                self.start_agent_call(turn, call, agent, *mode);
            }
            Decision::DispatchClient { turn, call, tool, input, given, is_async } => {
                let made = (tool, OperationTarget::Client, input, given, *is_async);
                self.dispatch(turn, call, made)?;
            }
            Decision::AskApproval { turn, call, tool, work, input, is_async, reasoning, message } => {
                // The target's input is set on approval, because the human may change it until then.
                let made = (tool, work.clone(), input, &Value::Null, *is_async);
                self.create_operation(turn, call, made)?;
                self.ask_approval(turn, call, reasoning, message)?;
            }
            Decision::AnswerApproval { turn, call, verdict } => self.answer_approval(turn, call, verdict)?,
            Decision::LeaveApproval { turn, call } => self.stop_waiting(turn, call)?,
            Decision::AcceptOffer { tools, context, state: shared } => {
                self.accept_offer(tools, context, shared.as_ref())
            }
            Decision::AdoptDefinitions { first_difference } => self.adopt_definitions(*first_difference),
            Decision::ChangeState { turn, state } => self.change_state(turn, state),
            Decision::AddParticipant { participant, by } => self.add_participant(participant, by)?,
            Decision::RemoveParticipant { participant } => self.remove_participant(participant),
            Decision::ShareContext { turn, call, mode, input } => {
                self.share_context(turn, call, *mode, input)
            }
            Decision::MarkWaiting { turn, call, reasoning } => self.mark_waiting(turn, call, reasoning)?,
            Decision::TrackAsyncOperation { turn, call } => self.track_async_operation(turn, call)?,
            Decision::RetryOperation { turn, call, failure, delay_ms } => {
                self.retry_operation(turn, call, failure, *delay_ms)?
            }
            Decision::RedispatchOperation { turn, call } => self.redispatch_operation(turn, call)?,
            Decision::StopOperation { turn, call } => self.stop_operation(turn, call)?,
            Decision::CompleteOperation { turn, call, result } => {
                self.complete_operation(turn, call, result)?;
            }
            Decision::ResumeFromTool { turn, call } => self.resume_from_tool(turn, call)?,
            Decision::AsyncOperationCompleted { turn, call } => self.async_operation_completed(turn, call)?,
            Decision::CancelOperation { turn, call, reason } => self.cancel_operation(turn, call, reason)?,
            Decision::AcceptExtraction { at } => self.accept_extraction(at)?,
            Decision::FailExtraction { at, failure, exhausted } => {
                self.fail_extraction(at, failure, *exhausted)?
            }
            Decision::CompleteTurn { turn, issues } => self.complete_turn(turn, issues)?,
            Decision::FailTurn { turn, code, message } => self.fail_turn(turn, code, message)?,
            Decision::ReplyToCaller { to, outcome, .. } => {
                let (to, outcome) = (to.clone(), outcome.clone());
                self.out.step.effects.push(ConversationEffect::Reply { to, outcome });
            }
            Decision::ScheduleTimer { key, at } => drop(self.state.timers.insert(key.clone(), *at)),
            Decision::CancelTimer { key } => drop(self.state.timers.remove(key)),
            Decision::IgnoreInput { turn, reason } => self.ignore_input(turn.as_ref(), reason),
        }
        Ok(())
    }

    fn start_turn(&mut self, begun: TurnState) -> Result<(), RuntimeFault> {
        if self.state.turn(&begun.id).is_some() {
            return fault(format!("turn {} already exists", begun.id));
        }
        let (caller_id, caller_type) = begun.caller_info();
        let caller_turn_id = match &begun.caller {
            TurnCaller::Agent { turn_id, .. } => Some(turn_id.0.clone()),
            TurnCaller::User { .. } | TurnCaller::Workflow { .. } => None,
        };
        self.out.event(Payload::TurnStarted(TurnStart {
            turn_id: begun.id.0.clone(),
            conversation_id: self.state.conversation.0.clone(),
            caller_id,
            caller_type: caller_type.into(),
            caller_turn_id,
            agent_id: Some(begun.agent.0.clone()),
        }));
        self.state.turns.push(Arc::new(begun));
        Ok(())
    }

    fn open_conversation(&mut self) {
        self.out.event(ConversationCreated {
            conversation_id: self.state.conversation.0.clone(),
            agent_id: self.state.agent.0.clone(),
            parent: self.state.parent.clone(),
        });
    }

    fn close_conversation(&mut self) {
        self.state.status = ConversationStatus::Completed;
        self.out.event(ConversationClosed { conversation_id: self.state.conversation.0.clone() });
    }

    fn fail_context(
        &mut self,
        at: &HookAddress,
        failure: &WorkFailure,
        exhausted: bool,
    ) -> Result<(), RuntimeFault> {
        active_turn(self.state, &at.turn)?.phase = TurnPhase::Assembling { attempt: at.attempt, run: None };
        self.out.cancel_late_hook(self.state, at, failure);
        settle_hook(self.state, at);
        self.out.event(Payload::ContextAssemblyFailed(hook_failed(at, failure, exhausted)));
        Ok(())
    }

    fn accept_offer(&mut self, tools: &[ToolDefinition], context: &[ContextEntry], shared: Option<&Value>) {
        self.state.offer = ClientOffer { tools: tools.to_vec(), context: context.to_vec() };
        if let Some(shared) = shared {
            self.state.shared = shared.clone();
        }
    }

    fn adopt_definitions(&mut self, first_difference: u64) {
        self.out.event(DefinitionChanged {
            conversation_id: self.state.conversation.0.clone(),
            agent_id: self.state.agent.0.clone(),
            first_difference,
        });
    }

    fn remove_participant(&mut self, participant: &Participant) {
        self.state.participants.retain(|other| other != participant);
        let conversation_id = self.state.conversation.0.clone();
        self.out.event(ParticipantRemoved { conversation_id, participant: participant.clone() });
    }

    fn track_async_operation(&mut self, turn: &TurnId, call: &CallId) -> Result<(), RuntimeFault> {
        let entry = active_turn(self.state, turn)?;
        operation_mut(entry, call)?;
        entry.set_answer(call, CallAnswer::Started);
        self.out.event(Payload::AsyncTracked(turn_operation(turn, call)));
        Ok(())
    }

    fn complete_turn(&mut self, turn: &TurnId, issues: &TurnIssues) -> Result<(), RuntimeFault> {
        self.end_turn(turn, TurnEnd::Completed)?;
        let issues = (!issues.is_empty()).then(|| issues.clone());
        self.out.event(Payload::TurnCompleted(TurnCompletion { turn_id: turn.0.clone(), issues }));
        Ok(())
    }

    fn fail_turn(&mut self, turn: &TurnId, code: &str, message: &str) -> Result<(), RuntimeFault> {
        self.end_turn(turn, TurnEnd::Failed)?;
        let (code, message) = (Some(code.to_string()), message.to_string());
        let error = ErrorInfo { code, message, retriable: None };
        self.out.event(TurnFailed { turn_id: turn.0.clone(), error });
        Ok(())
    }

    fn start_agent_call(&mut self, turn: &TurnId, call: &CallId, agent: &AgentId, mode: InvocationMode) {
        let (turn_id, call_id, agent_id) = (turn.0.clone(), call.0.clone(), agent.0.clone());
        self.out.event(AgentCallStarted { turn_id, call_id, agent_id, mode });
    }

    fn change_state(&mut self, turn: &TurnId, state: &Value) {
        self.state.shared = state.clone();
        self.out.event(StateSnapshot { turn_id: turn.0.clone(), state: state.clone() });
    }

    fn ignore_input(&mut self, turn: Option<&TurnId>, reason: &str) {
        let turn_id = turn.map(|turn| turn.0.clone());
        self.out.event(InputIgnored { turn_id, reason: reason.to_string() });
    }

    fn redispatch_operation(&mut self, turn: &TurnId, call: &CallId) -> Result<(), RuntimeFault> {
        operation_mut(active_turn(self.state, turn)?, call)?.attempt += 1;
        self.run_operation(turn, call)
    }

    fn stop_operation(&mut self, turn: &TurnId, call: &CallId) -> Result<(), RuntimeFault> {
        let stopped = operation_mut(active_turn(self.state, turn)?, call)?;
        self.out.step.effects.push(stop_effect(turn, stopped));
        Ok(())
    }

    fn append_message(
        &mut self,
        turn: &TurnId,
        role: SpeakerRole,
        content: &str,
        has_tool_use: bool,
    ) -> Result<(), RuntimeFault> {
        let id = MessageId(numbered(self.state.conversation.as_str(), "m", self.state.messages.len() + 1));
        let root_agent = self.state.agent.clone();
        let entry = active_turn(self.state, turn)?;
        let (turn_id, message_id) = (turn.0.clone(), id.0.clone());
        let agent = match role {
            SpeakerRole::User => {
                content.clone_into(&mut entry.user_text);
                entry.transcript.push(ModelMessage::user(content));
                let content = content.to_string();
                let (attachments, options) = (Vec::new(), None);
                self.out.event(UserMessage { turn_id, message_id, content, attachments, options });
                None
            }
            SpeakerRole::Agent => {
                entry.last_text = Some(content.to_string());
                let agent = entry.agent.clone();
                self.out.event(AssistantMessage {
                    turn_id,
                    message_id,
                    content: content.into(),
                    has_tool_use: Some(has_tool_use),
                    subagent: (agent != root_agent).then(|| agent.0.clone()),
                    ..AssistantMessage::default()
                });
                Some(agent)
            }
        };
        let said = TurnMessage { id, turn: turn.clone(), role, agent, content: content.to_string() };
        self.state.messages.push(said);
        Ok(())
    }

    fn dispatch_hook(
        &mut self,
        at: &HookAddress,
        workflow: &WorkflowId,
        input: &Arc<Value>,
    ) -> Result<(), RuntimeFault> {
        let turn = active_turn(self.state, &at.turn)?;
        turn.runs += 1;
        let agent = turn.agent.clone();
        let (turn_id, run_id, workflow_id) = (at.turn.0.clone(), at.run.0.clone(), workflow.0.clone());
        let started = HookStarted { turn_id, workflow_id, run_id, attempt: at.attempt };
        let (attempt, run) = (at.attempt, Some(at.run.clone()));
        let (event, timer, limit) = match at.kind {
            HookKind::ContextAssembly => {
                turn.update_transcript();
                turn.phase = TurnPhase::Assembling { attempt, run };
                (Payload::ContextAssemblyStarted(started), TimerKind::ContextDeadline, self.limits.context)
            }
            HookKind::MemoryExtraction => {
                turn.phase = TurnPhase::Extracting { attempt, run };
                let (timer, limit) = (TimerKind::ExtractionDeadline, self.limits.extraction);
                (Payload::MemoryExtractionStarted(started), timer, limit)
            }
        };
        self.out.event(event);
        set_timer(self.state, &at.turn, timer, self.now + limit.timeout_ms);
        let (at, workflow, input) = (at.clone(), workflow.clone(), input.clone());
        self.out.effect(self.state, ConversationEffect::RunHook { at, agent, workflow, input });
        Ok(())
    }

    fn accept_context(
        &mut self,
        at: &HookAddress,
        request: &Arc<ModelRequest>,
        tokens: u64,
    ) -> Result<(), RuntimeFault> {
        let turn = active_turn(self.state, &at.turn)?;
        turn.phase = TurnPhase::Assembled { request: request.clone() };
        if turn.prefix.is_none() {
            turn.prefix = Some(request.clone());
        }
        settle_hook(self.state, at);
        self.out.event(Payload::ContextAssemblyCompleted(ContextAssembled {
            turn_id: at.turn.0.clone(),
            run_id: at.run.0.clone(),
            token_count: tokens,
        }));
        Ok(())
    }

    fn call_llm(
        &mut self,
        at: &ModelAddress,
        request: &Arc<ModelRequest>,
        last: bool,
    ) -> Result<(), RuntimeFault> {
        let profile = model_profile(self.definitions, self.state, &at.turn)?;
        let agent = active_turn(self.state, &at.turn)?.agent.clone();
        let has_tools = self.state.tools(self.definitions, &agent).next().is_some();
        let turn = active_turn(self.state, &at.turn)?;
        let offers_fewer = last && at.attempt == 1 && has_tools;
        turn.issues.move_limit_reached |= offers_fewer;
        if at.attempt == 1 {
            // With per-turn requests, pending messages become part of the transcript here.
            turn.update_transcript();
        }
        turn.calls = at.call;
        turn.phase = TurnPhase::Calling { attempt: at.attempt, request: request.clone(), open: true, last };
        self.out.event(LlmCallStarted {
            turn_id: at.turn.0.clone(),
            model_profile_id: profile.clone(),
            input_tokens: TokenUsage::estimate(request, &ModelReply::default()).input_tokens,
            call_no: at.call,
            attempt: at.attempt,
            message_count: u32::try_from(request.messages.len()).unwrap_or(u32::MAX),
            tool_count: u32::try_from(request.tools.len()).unwrap_or(u32::MAX),
        });
        set_timer(self.state, &at.turn, TimerKind::ModelDeadline, self.now + self.limits.model.timeout_ms);
        self.out.effect(
            self.state,
            ConversationEffect::CallModel { at: at.clone(), profile, request: request.clone() },
        );
        Ok(())
    }

    fn accept_reply(
        &mut self,
        at: &ModelAddress,
        reply: &ModelReply,
        next: NextStep,
    ) -> Result<(), RuntimeFault> {
        let began = self.state.timers.get(&timer_key(&at.turn, TimerKind::ModelDeadline)).copied();
        let duration_ms =
            began.map_or(0, |deadline| (self.now + self.limits.model.timeout_ms).saturating_sub(deadline));
        let turn = active_turn(self.state, &at.turn)?;
        let TurnPhase::Calling { request, last, .. } = &turn.phase else {
            return fault(format!("turn {} has no open model call", at.turn));
        };
        let last = *last;
        // Use the estimate if the provider does not report token counts.
        let counted = match reply.usage == TokenUsage::default() {
            true => TokenUsage { unreported: true, ..TokenUsage::estimate(request, reply) },
            false => reply.usage,
        };
        take_reply(turn, reply, last, next);
        settle_model(self.state, at);
        self.out.event(LlmCallCompleted {
            turn_id: at.turn.0.clone(),
            call_no: at.call,
            input_tokens: (!counted.estimated).then_some(counted.input_tokens),
            output_tokens: counted.output_tokens,
            cached_tokens: Some(counted.cached_tokens).filter(|cached| *cached > 0),
            usage_unreported: counted.unreported,
            has_tool_use: !reply.tool_calls.is_empty(),
            stop_reason: reply.stop.as_str().into(),
            duration_ms,
        });
        Ok(())
    }

    fn fail_llm(
        &mut self,
        at: &ModelAddress,
        error: &ModelError,
        will_retry: bool,
    ) -> Result<(), RuntimeFault> {
        let turn = active_turn(self.state, &at.turn)?;
        if let TurnPhase::Calling { open, .. } = &mut turn.phase {
            *open = false;
        }
        if error.kind == hotseat_model::ModelErrorKind::Timeout {
            self.out.step.effects.push(ConversationEffect::CancelModel { at: at.clone() });
        }
        settle_model(self.state, at);
        let error = ErrorInfo {
            code: Some(error.kind.name().to_string()),
            message: error.to_string(),
            retriable: Some(error.can_retry()),
        };
        let (turn_id, will_retry) = (at.turn.0.clone(), will_retry);
        self.out.event(LlmCallFailed { turn_id, call_no: at.call, attempt: at.attempt, error, will_retry });
        Ok(())
    }

    fn record_result(&mut self, turn: &TurnId, outcome: &ToolOutcome) -> Result<(), RuntimeFault> {
        let entry = active_turn(self.state, turn)?;
        let made = |recorded: &MoveRecorded| {
            recorded.tool_call.as_ref().is_some_and(|call| call.tool_call_id == outcome.tool_call_id)
        };
        let Some(recorded) = entry.moves.iter_mut().find(|recorded| made(recorded)) else {
            return fault(format!("call {} has no move", outcome.tool_call_id));
        };
        recorded.tool_result = Some(outcome.clone());
        let (turn_id, move_id) = (turn.0.clone(), recorded.move_id.clone());
        self.out.event(MoveResult { turn_id, move_id, tool_result: outcome.clone() });
        Ok(())
    }

    fn refuse_call(
        &mut self,
        turn: &TurnId,
        call: &CallId,
        tool: &str,
        input: &Value,
        reasoning: &Option<String>,
        failure: &WorkFailure,
    ) -> Result<(), RuntimeFault> {
        let entry = active_turn(self.state, turn)?;
        let outcome = reply::tool_outcome(call, &Err(failure.clone()));
        entry.issues.tool_failures += 1;
        entry.set_answer(call, CallAnswer::Ended(outcome.clone()));
        self.out.event(ToolFailed {
            turn_id: turn.0.clone(),
            tool_call_id: call.0.clone(),
            error: failure.info(),
            origin: Origin::Stream,
        });
        let made = MoveCall { tool_id: Arc::from(tool), input: input.clone(), tool_call_id: call.0.clone() };
        let draft = MoveDraft {
            iteration: entry.replies - 1,
            reasoning: reasoning.clone(),
            call: Some(made),
            outcome: Some(outcome),
        };
        record_move(entry, &draft, &mut self.out);
        Ok(())
    }

    fn ask_approval(
        &mut self,
        turn: &TurnId,
        call: &CallId,
        reasoning: &Option<String>,
        message: &str,
    ) -> Result<(), RuntimeFault> {
        let entry = active_turn(self.state, turn)?;
        if let TurnPhase::Waiting { open } = &mut entry.phase {
            open.insert(call.clone());
        }
        let operation = operation_mut(entry, call)?;
        operation.status = OperationStatus::AwaitingApproval;
        operation.reasoning.clone_from(reasoning);
        let at = OperationAddress { turn: turn.clone(), call: call.clone(), attempt: operation.attempt };
        self.out.event(InterruptRaised {
            turn_id: turn.0.clone(),
            interrupt_id: call.0.clone(),
            reason: Some("tool_approval".to_string()),
            message: Some(message.to_string()),
            tool_call_id: Some(call.0.clone()),
            server: None,
            value: json!({"toolName": operation.tool, "input": operation.input}),
        });
        let (tool, input, message) = (operation.tool.clone(), operation.input.clone(), message.to_string());
        self.out.effect(self.state, ConversationEffect::AskApproval { at, tool, input, message });
        Ok(())
    }

    fn answer_approval(
        &mut self,
        turn: &TurnId,
        call: &CallId,
        verdict: &ApprovalVerdict,
    ) -> Result<(), RuntimeFault> {
        let entry = active_turn(self.state, turn)?;
        let operation = operation_mut(entry, call)?;
        let at = OperationAddress { turn: turn.clone(), call: call.clone(), attempt: operation.attempt };
        let answer = match verdict {
            ApprovalVerdict::Approved { input: None } => json!({"approved": true}),
            ApprovalVerdict::Approved { input: Some(input) } => {
                json!({"approved": true, "input": input})
            }
            ApprovalVerdict::Declined { reason } | ApprovalVerdict::Unavailable { reason } => {
                json!({"approved": false, "reason": reason})
            }
        };
        self.out.event(interrupt_answered(turn, call, "resolved", Some(answer)));
        if let ApprovalVerdict::Approved { input: Some(input) } = verdict {
            operation.input = input.clone();
            let notice = context::edited_notice(operation, input);
            entry.notices.push(notice);
            let (turn_id, tool_call_id) = (turn.0.clone(), call.0.clone());
            self.out.event(ToolArguments {
                turn_id,
                tool_call_id,
                input: Some(input.clone()),
                text: None,
                ended_us: None,
                message_id: None,
            });
        }
        self.state.outstanding.remove(&EffectKey::Approval(at));
        Ok(())
    }

    /// Removes a call from those that a turn waits for.
    fn stop_waiting(&mut self, turn: &TurnId, call: &CallId) -> Result<(), RuntimeFault> {
        let entry = active_turn(self.state, turn)?;
        let TurnPhase::Waiting { open } = &mut entry.phase else {
            return fault(format!("turn {turn} is not waiting"));
        };
        open.remove(call);
        if open.is_empty() {
            entry.phase = TurnPhase::Ready;
        }
        Ok(())
    }

    fn add_participant(&mut self, participant: &Participant, by: &TurnId) -> Result<(), RuntimeFault> {
        if self.state.has_participant(participant) {
            return Ok(());
        }
        self.state.participants.push(participant.clone());
        self.out.event(ParticipantAdded {
            conversation_id: self.state.conversation.0.clone(),
            participant: participant.clone(),
            added_by_turn_id: by.0.clone(),
        });
        Ok(())
    }

    fn share_context(&mut self, turn: &TurnId, call: &CallId, mode: InvocationMode, input: &Value) {
        self.out.event(AgentCallContext {
            turn_id: turn.0.clone(),
            call_id: call.0.clone(),
            mode,
            input: input.clone(),
            conversation_history: (mode == InvocationMode::LoopIn).then(|| context::utterances(self.state)),
        });
    }

    fn mark_waiting(
        &mut self,
        turn: &TurnId,
        call: &CallId,
        reasoning: &Option<String>,
    ) -> Result<(), RuntimeFault> {
        let entry = active_turn(self.state, turn)?;
        if let TurnPhase::Waiting { open } = &mut entry.phase {
            open.insert(call.clone());
        }
        let operation = operation_mut(entry, call)?;
        operation.status = OperationStatus::Waiting;
        operation.reasoning.clone_from(reasoning);
        self.out.event(Payload::TurnWaiting(turn_operation(turn, call)));
        Ok(())
    }

    fn retry_operation(
        &mut self,
        turn: &TurnId,
        call: &CallId,
        failure: &WorkFailure,
        delay_ms: u64,
    ) -> Result<(), RuntimeFault> {
        let entry = active_turn(self.state, turn)?;
        let (attempt, tool) = {
            let operation = operation_mut(entry, call)?;
            (operation.attempt, operation.tool.clone())
        };
        let agent = entry.agent.clone();
        let max_attempts =
            self.state.tool(self.definitions, &agent, &tool).map_or(1, |tool| tool.retry.max_attempts);
        settle_operation(self.state, turn, call, attempt);
        self.out.event(ToolRetry {
            turn_id: turn.0.clone(),
            tool_call_id: call.0.clone(),
            attempt,
            max_attempts,
            delay_ms,
            error: failure.info(),
        });
        Ok(())
    }

    fn resume_from_tool(&mut self, turn: &TurnId, call: &CallId) -> Result<(), RuntimeFault> {
        self.stop_waiting(turn, call)?;
        self.out.event(Payload::TurnResumed(turn_operation(turn, call)));
        Ok(())
    }

    fn async_operation_completed(&mut self, turn: &TurnId, call: &CallId) -> Result<(), RuntimeFault> {
        let entry = active_turn(self.state, turn)?;
        let operation = operation_mut(entry, call)?;
        let Some(result) = operation.outcome.clone() else {
            return fault(format!("operation {call} has not ended"));
        };
        let notice = context::ended_notice(operation, &result);
        entry.notices.push(notice);
        let (turn_id, operation_id) = (turn.0.clone(), call.0.clone());
        self.out.event(AsyncCompleted { turn_id, operation_id, result });
        Ok(())
    }

    fn cancel_operation(&mut self, turn: &TurnId, call: &CallId, reason: &str) -> Result<(), RuntimeFault> {
        let entry = active_turn(self.state, turn)?;
        let operation = operation_mut(entry, call)?;
        self.out.step.effects.push(stop_effect(turn, operation));
        if operation.status == OperationStatus::AwaitingApproval {
            self.out.event(interrupt_answered(turn, call, "cancelled", None));
        }
        operation.status = OperationStatus::Cancelled;
        operation.completed_at = Some(self.now);
        let attempt = operation.attempt;
        settle_operation(self.state, turn, call, attempt);
        self.state.timers.remove(&timer_key(turn, TimerKind::OperationRetry(call.clone())));
        let (turn_id, operation_id) = (turn.0.clone(), call.0.clone());
        self.out.event(AsyncCancelled { turn_id, operation_id, reason: reason.to_string() });
        Ok(())
    }

    fn accept_extraction(&mut self, at: &HookAddress) -> Result<(), RuntimeFault> {
        active_turn(self.state, &at.turn)?.phase = TurnPhase::Closing;
        settle_hook(self.state, at);
        self.out.event(Payload::MemoryExtractionCompleted(MemoryExtracted {
            turn_id: at.turn.0.clone(),
            run_id: at.run.0.clone(),
        }));
        Ok(())
    }

    fn fail_extraction(
        &mut self,
        at: &HookAddress,
        failure: &WorkFailure,
        exhausted: bool,
    ) -> Result<(), RuntimeFault> {
        let turn = active_turn(self.state, &at.turn)?;
        turn.phase = if exhausted {
            TurnPhase::Closing
        } else {
            TurnPhase::Extracting { attempt: at.attempt, run: None }
        };
        turn.issues.memory_extraction_failed = exhausted;
        self.out.cancel_late_hook(self.state, at, failure);
        settle_hook(self.state, at);
        self.out.event(Payload::MemoryExtractionFailed(hook_failed(at, failure, exhausted)));
        Ok(())
    }

    /// Starts an operation, or continues it if it was created for an approval.
    fn dispatch(&mut self, turn: &TurnId, call: &CallId, made: CallParts<'_>) -> Result<(), RuntimeFault> {
        match active_turn(self.state, turn)?.operation_mut(call) {
            Some(approved) => {
                approved.target_input = made.3.clone();
                approved.status = OperationStatus::Pending;
            }
            None => self.create_operation(turn, call, made)?,
        }
        self.run_operation(turn, call)
    }

    /// Creates the operation of a call and records the invocation.
    fn create_operation(
        &mut self,
        turn: &TurnId,
        call: &CallId,
        (tool, work, input, given, is_async): CallParts<'_>,
    ) -> Result<(), RuntimeFault> {
        let (target_type, target_id, invocation_mode) = context::target_info(&work, tool);
        let root_agent = self.state.agent.clone();
        let entry = active_turn(self.state, turn)?;
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
            created_at: self.now,
            completed_at: None,
        });
        self.out.event(Payload::ToolInvoked(ToolInvocation {
            target_type: Some(target_type.into()),
            target_id: Some(target_id),
            r#async: is_async,
            input: Some(input.clone()),
            subagent,
            invocation_mode,
            ..ToolInvocation::new(turn.0.clone(), call.0.clone(), &**tool)
        }));
        Ok(())
    }

    /// Requests the effect that runs the current attempt of an operation.
    fn run_operation(&mut self, turn: &TurnId, call: &CallId) -> Result<(), RuntimeFault> {
        let entry = active_turn(self.state, turn)?;
        let (agent, depth) = (entry.agent.clone(), entry.depth + 1);
        let operation = operation_mut(entry, call)?;
        let (tool, work, input) =
            (operation.tool.clone(), operation.work.clone(), operation.target_input.clone());
        let at = OperationAddress { turn: turn.clone(), call: call.clone(), attempt: operation.attempt };
        let limit = self.state.tool(self.definitions, &agent, &tool).and_then(|tool| tool.retry.timeout_ms);
        if let Some(limit) = limit {
            set_timer(self.state, turn, TimerKind::OperationDeadline(call.clone()), self.now + limit);
        }
        let effect = match work {
            OperationTarget::Task(task) => {
                ConversationEffect::RunTask { at, agent, task, input: Arc::new(input) }
            }
            OperationTarget::Workflow(workflow) => {
                ConversationEffect::RunWorkflow { at, agent, workflow, input: Arc::new(input) }
            }
            OperationTarget::Agent(called, mode) => {
                let caller = TurnCaller::Agent { agent_id: agent, turn_id: turn.clone() };
                ConversationEffect::RunAgent { at, agent: called, mode, caller, input, depth }
            }
            OperationTarget::Client => ConversationEffect::AskClient { at, tool, input },
        };
        self.out.effect(self.state, effect);
        Ok(())
    }

    fn complete_operation(
        &mut self,
        turn: &TurnId,
        call: &CallId,
        result: &WorkResult,
    ) -> Result<(), RuntimeFault> {
        let entry = active_turn(self.state, turn)?;
        let outcome = reply::tool_outcome(call, result);
        let (attempt, continues_async, is_agent) = {
            let operation = operation_mut(entry, call)?;
            let was_approved = operation.status != OperationStatus::AwaitingApproval;
            operation.outcome = Some(outcome.clone());
            operation.completed_at = Some(self.now);
            operation.status =
                if result.is_ok() { OperationStatus::Completed } else { OperationStatus::Failed };
            let is_agent = matches!(operation.work, OperationTarget::Agent(..)) && was_approved;
            (operation.attempt, operation.is_async && was_approved, is_agent)
        };
        if result.is_err() {
            entry.issues.tool_failures += 1;
        }
        if !continues_async {
            entry.set_answer(call, CallAnswer::Ended(outcome));
        }
        settle_operation(self.state, turn, call, attempt);
        let (turn_id, id) = (turn.0.clone(), call.0.clone());
        match result {
            Ok(output) => {
                if is_agent {
                    let output = (**output).clone();
                    self.out.event(AgentCallCompleted {
                        turn_id: turn_id.clone(),
                        call_id: id.clone(),
                        output,
                    });
                }
                self.out.event(ToolCompleted {
                    turn_id,
                    tool_call_id: id,
                    output: (**output).clone(),
                    origin: Origin::Stream,
                });
            }
            Err(failure) => {
                let error = failure.info();
                if is_agent {
                    self.out.event(AgentCallFailed {
                        turn_id: turn_id.clone(),
                        call_id: id.clone(),
                        error: error.clone(),
                    });
                }
                self.out.event(ToolFailed { turn_id, tool_call_id: id, error, origin: Origin::Stream });
            }
        }
        Ok(())
    }

    /// Ends a turn: removes its timers and outstanding effects.
    fn end_turn(&mut self, turn: &TurnId, how: TurnEnd) -> Result<(), RuntimeFault> {
        let entry = active_turn(self.state, turn)?;
        entry.phase = TurnPhase::Ended(how);
        entry.ended_at = Some(self.now);
        self.state.timers.retain(|timer, _| timer.turn != *turn);
        let mut outstanding = std::mem::take(&mut self.state.outstanding);
        outstanding.retain(|asked, _| match asked {
            EffectKey::Hook(at) if at.turn == *turn => {
                self.out.step.effects.push(ConversationEffect::CancelRun { run: at.run.clone() });
                false
            }
            EffectKey::Model(at) if at.turn == *turn => {
                self.out.step.effects.push(ConversationEffect::CancelModel { at: at.clone() });
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
        self.state.outstanding = outstanding;
        Ok(())
    }
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
    let number = turn.moves.len();
    let recorded = MoveRecorded {
        turn_id: turn.id.0.clone(),
        move_id: numbered(turn.id.as_str(), "v", number),
        sequence: u32::try_from(number).unwrap_or(u32::MAX),
        iteration: draft.iteration,
        reasoning: draft.reasoning.clone(),
        tool_call: draft.call.clone(),
        tool_result: draft.outcome.clone(),
    };
    turn.moves.push(recorded.clone());
    out.event(recorded);
}

type CallParts<'d> = (&'d String, OperationTarget, &'d Value, &'d Value, bool);

/// Returns the id of the conversation that an attempt at an agent call opens.
pub fn child_conversation(call: &CallId, attempt: u32) -> ConversationId {
    ConversationId(call.run(attempt).0)
}
