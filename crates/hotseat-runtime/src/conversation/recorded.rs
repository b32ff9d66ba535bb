//! Restores a conversation from its records without executing anything again.
//!
//! Used if the definitions have changed: events recorded under the old definitions are kept, and the new
//! definitions apply from then on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hotseat_model::{ModelMessage, ModelReply};
use hotseat_trace::{EventRecord, Payload, TimeOffset, ToolInvocation, ToolOutcome, TurnStart};
use serde_json::Value;

use super::state::{
    CallAnswer, OperationStatus, OperationTarget, ToolOperation, TurnEnd, TurnPhase, TurnState,
};
use super::{
    ClientOffer, ConversationEffect, ConversationInput, ConversationMachine, ConversationOrigin,
    ConversationState, Decision, DecisionBasis, ModelAddress, NextStep, OperationAddress, SpeakerRole,
    TurnCaller, TurnMessage, apply, context, react,
};
use crate::definition::{Definitions, RuntimeLimits};
use crate::ids::{AgentId, CallId, MessageId, RunId, TaskId, TurnId, WorkflowId};

/// Inputs whose content is not part of the records.
#[derive(Debug, Clone, Default)]
pub struct ReceivedInputs {
    replies: BTreeMap<(TurnId, u32), ModelReply>,
    offers: Vec<(TimeOffset, ConversationInput)>,
}

impl ReceivedInputs {
    /// Adds an input received at `offset`.
    pub fn add(&mut self, offset: TimeOffset, input: &ConversationInput) {
        match input {
            ConversationInput::ModelDone { at: ModelAddress { turn, call, .. }, result: Ok(reply) } => {
                self.replies.insert((turn.clone(), *call), reply.clone());
            }
            ConversationInput::ClientOffer { .. } => self.offers.push((offset, input.clone())),
            _ => {}
        }
    }
}

impl ConversationMachine {
    /// Restores the conversation from its records, in order. Its next input must be
    /// [`ConversationInput::DefinitionChanged`](super::ConversationInput).
    pub fn from_records<'r>(
        definitions: Arc<Definitions>,
        limits: RuntimeLimits,
        opening: ConversationOrigin,
        received: &ReceivedInputs,
        records: impl IntoIterator<Item = &'r EventRecord>,
    ) -> Self {
        let records: Vec<&EventRecord> = records.into_iter().collect();
        let made = records.iter().filter_map(|record| recorded_call(&record.payload)).collect();
        let mut reading = RecordedStateBuilder {
            state: ConversationState::new(opening),
            received,
            made,
            questions: BTreeMap::new(),
        };
        let mut offers = received.offers.iter().peekable();
        for record in records {
            while let Some((_, offer)) = offers.next_if(|(offset, _)| *offset < record.offset) {
                reading.apply_offer(&definitions, limits, offer);
            }
            reading.apply_record(&record.payload, record.offset.0 / 1000);
        }
        for (_, offer) in offers {
            reading.apply_offer(&definitions, limits, offer);
        }
        let RecordedStateBuilder { mut state, questions, .. } = reading;
        state.restore_client_effects(&questions);
        ConversationMachine { definitions, limits, state }
    }
}

/// Builds a state record by record.
struct RecordedStateBuilder<'r> {
    state: ConversationState,
    received: &'r ReceivedInputs,
    /// Calls that were made or refused.
    made: BTreeSet<&'r str>,
    /// Approval questions, by call.
    questions: BTreeMap<CallId, String>,
}

impl RecordedStateBuilder<'_> {
    fn apply_offer(&mut self, definitions: &Definitions, limits: RuntimeLimits, offer: &ConversationInput) {
        let basis = DecisionBasis { state: &self.state, definitions, limits: &limits, now: 0 };
        for decision in react::react(basis, offer) {
            if let Decision::AcceptOffer { tools, context, state: shared } = decision {
                self.state.offer = ClientOffer { tools, context };
                self.state.shared = shared.unwrap_or(std::mem::take(&mut self.state.shared));
            }
        }
    }

    fn apply_record(&mut self, payload: &Payload, now: u64) {
        match payload {
            Payload::ConversationClosed(_) => self.state.status = super::ConversationStatus::Completed,
            Payload::ParticipantAdded(p) if !self.state.has_participant(&p.participant) => {
                self.state.participants.push(p.participant.clone());
            }
            Payload::ParticipantRemoved(p) => {
                self.state.participants.retain(|other| *other != p.participant);
            }
            Payload::TurnStarted(start) => self.start_turn(start),
            Payload::StateSnapshot(p) => self.state.shared = p.state.clone(),
            Payload::UserMessage(p) => {
                self.add_message(&p.turn_id, &p.message_id, SpeakerRole::User, &p.content);
            }
            Payload::AssistantMessage(p) => {
                self.add_message(&p.turn_id, &p.message_id, SpeakerRole::Agent, &p.content);
            }
            other => {
                if let Payload::InterruptRaised(asked) = other {
                    let message = asked.message.clone().unwrap_or_default();
                    self.questions.insert(CallId(asked.interrupt_id.clone()), message);
                }
                let id = other.turn_id().map(|id| TurnId(id.clone()));
                let Some(turn) = id.and_then(|id| self.state.turn_mut(&id)) else { return };
                if let Payload::LlmCallCompleted(p) = other {
                    let key = (turn.id.clone(), p.call_no);
                    let Some(reply) = self.received.replies.get(&key) else { return };
                    // Calls of the final reply of a turn are not recorded.
                    let first = super::reply::call_id(turn, 0);
                    let last = !self.made.contains(first.as_str());
                    apply::take_reply(turn, reply, last, NextStep::Settle);
                } else {
                    turn.apply_event(other, now);
                }
            }
        }
    }

    fn start_turn(&mut self, start: &TurnStart) {
        let caller = match (&*start.caller_type, &start.caller_turn_id) {
            ("agent", Some(turn)) => TurnCaller::Agent {
                agent_id: AgentId(start.caller_id.clone()),
                turn_id: TurnId(turn.clone()),
            },
            ("workflow", _) => TurnCaller::Workflow { run_id: RunId(start.caller_id.clone()) },
            _ => TurnCaller::User { user_id: start.caller_id.clone(), message_id: None },
        };
        let agent = start.agent_id.clone().map_or_else(|| self.state.agent.clone(), AgentId);
        let turn = TurnState::new(&self.state, TurnId(start.turn_id.clone()), agent, caller);
        self.state.turns.push(Arc::new(turn));
    }

    fn add_message(&mut self, turn: &Arc<str>, id: &Arc<str>, role: SpeakerRole, content: &str) {
        let id = MessageId(id.clone());
        let turn = TurnId(turn.clone());
        let Some(entry) = self.state.turn_mut(&turn) else { return };
        let content = content.to_string();
        let agent = match role {
            SpeakerRole::User => {
                entry.user_text.clone_from(&content);
                entry.input = Value::String(content.clone());
                entry.transcript.push(ModelMessage::user(&content));
                None
            }
            SpeakerRole::Agent => {
                entry.last_text = Some(content.clone());
                Some(entry.agent.clone())
            }
        };
        self.state.messages.push(TurnMessage { id, turn, role, agent, content });
    }
}

impl TurnState {
    /// Applies an event of the turn other than messages and replies.
    fn apply_event(&mut self, payload: &Payload, now: u64) {
        match payload {
            Payload::ContextAssemblyStarted(_) => {
                self.update_transcript();
                self.runs += 1;
                self.phase = TurnPhase::Ready;
            }
            Payload::LlmCallStarted(p) => {
                if p.attempt == 1 {
                    self.update_transcript();
                }
                self.calls = p.call_no;
                self.phase = TurnPhase::Ready;
            }
            Payload::ToolInvoked(call) => self.add_operation(call, now),
            Payload::ToolArguments(p) => {
                let (call, input) = (CallId(p.tool_call_id.clone()), p.input.clone().unwrap_or_default());
                if let Some(operation) = self.operation_mut(&call) {
                    operation.input = input.clone();
                    operation.target_input = input.clone();
                    let notice = context::edited_notice(operation, &input);
                    self.notices.push(notice);
                }
            }
            Payload::InterruptRaised(p) => {
                self.wait(&CallId(p.interrupt_id.clone()), OperationStatus::AwaitingApproval);
            }
            Payload::InterruptAnswered(p) => {
                let approved = p.payload.as_ref().is_some_and(|payload| payload["approved"] == true);
                let operation = self.operation_mut(&CallId(p.interrupt_id.clone()));
                if let Some(operation) = operation.filter(|_| approved) {
                    operation.status = OperationStatus::Pending;
                }
            }
            Payload::TurnWaiting(p) => self.wait(&CallId(p.operation_id.clone()), OperationStatus::Waiting),
            Payload::TurnResumed(p) => self.stop_waiting(&CallId(p.operation_id.clone())),
            Payload::AsyncTracked(p) => {
                let call = CallId(p.operation_id.clone());
                self.set_answer(&call, CallAnswer::Started);
                self.stop_waiting(&call);
            }
            Payload::ToolCompleted(p) => self.complete_operation(&p.tool_call_id, Ok(p.output.clone()), now),
            Payload::ToolFailed(p) => self.complete_operation(&p.tool_call_id, Err(p.error.clone()), now),
            Payload::ToolRetry(p) => {
                if let Some(operation) = self.operation_mut(&CallId(p.tool_call_id.clone())) {
                    operation.attempt = p.attempt + 1;
                }
            }
            Payload::AsyncCompleted(p) => {
                if let Some(operation) = self.operation(&CallId(p.operation_id.clone())) {
                    let notice = context::ended_notice(operation, &p.result);
                    self.notices.push(notice);
                }
            }
            Payload::AsyncCancelled(p) => {
                if let Some(operation) = self.operation_mut(&CallId(p.operation_id.clone())) {
                    operation.status = OperationStatus::Cancelled;
                    operation.completed_at = Some(now);
                }
            }
            Payload::MoveRecorded(recorded) => self.moves.push(recorded.clone()),
            Payload::MoveResult(p) => {
                if let Some(recorded) = self.moves.iter_mut().find(|known| known.move_id == p.move_id) {
                    recorded.tool_result = Some(p.tool_result.clone());
                }
            }
            Payload::MemoryExtractionStarted(_) => {
                self.runs += 1;
                self.phase = TurnPhase::Ready;
            }
            Payload::TurnCompleted(p) => {
                self.issues = p.issues.clone().unwrap_or_default();
                self.end(TurnEnd::Completed, now);
            }
            Payload::TurnFailed(_) => self.end(TurnEnd::Failed, now),
            _ => {}
        }
    }

    fn end(&mut self, how: TurnEnd, now: u64) {
        self.phase = TurnPhase::Ended(how);
        self.ended_at = Some(now);
    }

    fn add_operation(&mut self, call: &ToolInvocation, now: u64) {
        let target = call.target_id.clone().unwrap_or_else(|| call.tool_name.clone());
        let work = match (call.target_type.as_deref(), call.invocation_mode) {
            (Some("task"), _) => OperationTarget::Task(TaskId(target)),
            (Some("workflow"), _) => OperationTarget::Workflow(WorkflowId(target)),
            (Some("agent"), mode) => OperationTarget::Agent(AgentId(target), mode.unwrap_or_default()),
            _ => OperationTarget::Client,
        };
        let input = call.input.clone().unwrap_or_default();
        self.operations.push(ToolOperation {
            call: CallId(call.tool_call_id.clone()),
            tool: call.tool_name.to_string(),
            work,
            target_input: input.clone(),
            input,
            is_async: call.r#async,
            reasoning: None,
            iteration: self.replies.saturating_sub(1),
            status: OperationStatus::Pending,
            attempt: 1,
            outcome: None,
            created_at: now,
            completed_at: None,
        });
    }

    fn wait(&mut self, call: &CallId, status: OperationStatus) {
        if !matches!(self.phase, TurnPhase::Waiting { .. }) {
            self.phase = TurnPhase::Waiting { open: BTreeSet::new() };
        }
        if let TurnPhase::Waiting { open } = &mut self.phase {
            open.insert(call.clone());
        }
        let is_first = self.slots.first().is_some_and(|slot| slot.call == *call);
        let text = self.transcript.iter().rev().find_map(|message| match message {
            ModelMessage::Assistant { text, .. } => Some(text.clone()),
            _ => None,
        });
        if let Some(operation) = self.operation_mut(call) {
            operation.status = status;
            operation.reasoning = text.filter(|text| is_first && !text.is_empty());
        }
    }

    fn stop_waiting(&mut self, call: &CallId) {
        let TurnPhase::Waiting { open } = &mut self.phase else { return };
        if open.remove(call) && open.is_empty() {
            self.phase = TurnPhase::Ready;
        }
    }

    fn complete_operation(
        &mut self,
        call: &Arc<str>,
        result: Result<Value, hotseat_trace::ErrorInfo>,
        now: u64,
    ) {
        self.issues.tool_failures += u32::from(result.is_err());
        let (outcome, call) = (ToolOutcome { tool_call_id: call.clone(), result }, CallId(call.clone()));
        let mut is_answer = true;
        if let Some(operation) = self.operation_mut(&call) {
            let was_approved = operation.status == OperationStatus::AwaitingApproval;
            is_answer = was_approved || !operation.is_async;
            operation.status = match outcome.is_success() {
                true => OperationStatus::Completed,
                false => OperationStatus::Failed,
            };
            operation.outcome = Some(outcome.clone());
            operation.completed_at = Some(now);
            if was_approved {
                self.stop_waiting(&call);
            }
        }
        if is_answer {
            self.set_answer(&call, CallAnswer::Ended(outcome));
        }
    }
}

impl ConversationState {
    /// Restores outstanding effects for open approvals and client calls.
    fn restore_client_effects(&mut self, questions: &BTreeMap<CallId, String>) {
        let mut restored = Vec::new();
        for turn in self.turns.iter().filter(|turn| turn.is_active()) {
            for operation in turn.open_operations() {
                let at: OperationAddress = turn.address(operation);
                let (tool, input) = (operation.tool.clone(), operation.target_input.clone());
                if operation.status == OperationStatus::AwaitingApproval {
                    let message = questions.get(&operation.call).cloned().unwrap_or_default();
                    restored.push(ConversationEffect::AskApproval { at, tool, input, message });
                } else if operation.work == OperationTarget::Client {
                    restored.push(ConversationEffect::AskClient { at, tool, input });
                }
            }
        }
        self.outstanding.extend(restored.into_iter().map(|effect| (effect.key(), effect)));
    }
}

/// Returns the call that an event shows as made or refused.
fn recorded_call(payload: &Payload) -> Option<&str> {
    match payload {
        Payload::ToolInvoked(p) => Some(&p.tool_call_id),
        Payload::ToolFailed(p) => Some(&p.tool_call_id),
        Payload::MoveRecorded(p) => p.tool_call.as_ref().map(|call| &*call.tool_call_id),
        _ => None,
    }
}
