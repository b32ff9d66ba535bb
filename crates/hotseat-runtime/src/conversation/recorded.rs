//! A conversation made from its records, without carrying anything out again.
//!
//! Used where the definitions have changed since: what happened under the old ones stands as it was recorded, and the
//! new ones hold from there on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hotseat_model::{Message as ModelMessage, Reply};
use hotseat_trace::{Offset, Payload, Record, ToolInvocation, ToolOutcome, TurnStart};
use serde_json::Value;

use super::state::{Answer, Operation, OperationStatus, Phase, Turn, TurnEnd, Work};
use super::{
    Caller, Conversation, Decision, Effect, Input, Message, ModelAddress, NextStep, Offer, Opening,
    OperationAddress, Role, State, apply, context, react,
};
use crate::definition::{Definitions, Limits};
use crate::ids::{AgentId, CallId, MessageId, RunId, TaskId, TurnId, WorkflowId};

/// What a conversation was told and its records do not repeat.
#[derive(Debug, Clone, Default)]
pub struct ReceivedInputs {
    replies: BTreeMap<(TurnId, u32), Reply>,
    offers: Vec<(Offset, Input)>,
}

impl ReceivedInputs {
    /// Adds an input that came at this time.
    pub fn add(&mut self, offset: Offset, input: &Input) {
        match input {
            Input::ModelDone { at: ModelAddress { turn, call, .. }, result: Ok(reply) } => {
                self.replies.insert((turn.clone(), *call), reply.clone());
            }
            Input::ClientOffer { .. } => self.offers.push((offset, input.clone())),
            _ => {}
        }
    }
}

impl Conversation {
    /// The conversation that these records tell of, in order; its next input is
    /// [`Input::DefinitionChanged`](super::Input).
    pub fn recorded<'r>(
        definitions: Arc<Definitions>,
        limits: Limits,
        opening: Opening,
        received: &ReceivedInputs,
        records: impl IntoIterator<Item = &'r Record>,
    ) -> Self {
        let records: Vec<&Record> = records.into_iter().collect();
        let made = records.iter().filter_map(|record| call_of(&record.payload)).collect();
        let mut reading = Reading { state: State::new(opening), received, made, questions: BTreeMap::new() };
        let mut offers = received.offers.iter().peekable();
        for record in records {
            while let Some((_, offer)) = offers.next_if(|(offset, _)| *offset < record.offset) {
                reading.offer(&definitions, limits, offer);
            }
            reading.take(&record.payload, record.offset.0 / 1000);
        }
        for (_, offer) in offers {
            reading.offer(&definitions, limits, offer);
        }
        let Reading { mut state, questions, .. } = reading;
        state.await_the_client(&questions);
        Conversation { definitions, limits, state }
    }
}

/// A state that grows record by record.
struct Reading<'r> {
    state: State,
    received: &'r ReceivedInputs,
    /// The calls that were made or refused.
    made: BTreeSet<&'r str>,
    /// What a person was asked, by the call.
    questions: BTreeMap<CallId, String>,
}

impl Reading<'_> {
    fn offer(&mut self, definitions: &Definitions, limits: Limits, offer: &Input) {
        for decision in react::react(&self.state, definitions, &limits, 0, offer) {
            if let Decision::AcceptOffer { tools, context, state: shared } = decision {
                self.state.offer = Offer { tools, context };
                self.state.shared = shared.unwrap_or(std::mem::take(&mut self.state.shared));
            }
        }
    }

    fn take(&mut self, payload: &Payload, now: u64) {
        match payload {
            Payload::ConversationClosed(_) => self.state.status = super::ConversationStatus::Completed,
            Payload::ParticipantAdded(p) if !self.state.takes_part(&p.participant) => {
                self.state.participants.push(p.participant.clone());
            }
            Payload::ParticipantRemoved(p) => {
                self.state.participants.retain(|other| *other != p.participant);
            }
            Payload::TurnStarted(start) => self.begin(start),
            Payload::StateSnapshot(p) => self.state.shared = p.state.clone(),
            Payload::UserMessage(p) => {
                self.say(&p.turn_id, &p.message_id, Role::User, &p.content);
            }
            Payload::AssistantMessage(p) => {
                self.say(&p.turn_id, &p.message_id, Role::Agent, &p.content);
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
                    // Calls of a reply that could no longer make any are in no record.
                    let first = super::reply::call_id(turn, 0);
                    let last = !self.made.contains(first.as_str());
                    apply::take_reply(turn, reply, last, NextStep::Settle);
                } else {
                    turn.take(other, now);
                }
            }
        }
    }

    fn begin(&mut self, start: &TurnStart) {
        let caller = match (&*start.caller_type, &start.caller_turn_id) {
            ("agent", Some(turn)) => {
                Caller::Agent { agent_id: AgentId(start.caller_id.clone()), turn_id: TurnId(turn.clone()) }
            }
            ("workflow", _) => Caller::Workflow { run_id: RunId(start.caller_id.clone()) },
            _ => Caller::User { user_id: start.caller_id.clone() },
        };
        let agent = start.agent_id.clone().map_or_else(|| self.state.agent.clone(), AgentId);
        let turn = Turn::new(&self.state, TurnId(start.turn_id.clone()), agent, caller);
        self.state.turns.push(turn);
    }

    fn say(&mut self, turn: &Arc<str>, id: &Arc<str>, role: Role, content: &str) {
        let id = MessageId(id.clone());
        let turn = TurnId(turn.clone());
        let Some(entry) = self.state.turn_mut(&turn) else { return };
        let content = content.to_string();
        let agent = match role {
            Role::User => {
                entry.user_text.clone_from(&content);
                entry.input = Value::String(content.clone());
                entry.transcript.push(ModelMessage::user(&content));
                None
            }
            Role::Agent => {
                entry.last_text = Some(content.clone());
                Some(entry.agent.clone())
            }
        };
        self.state.messages.push(Message { id, turn, role, agent, content });
    }
}

impl Turn {
    /// Takes an event of the turn other than what was said and replied.
    fn take(&mut self, payload: &Payload, now: u64) {
        match payload {
            Payload::ContextAssemblyStarted(_) => {
                self.tell_the_model();
                self.runs += 1;
                self.phase = Phase::Ready;
            }
            Payload::LlmCallStarted(p) => {
                if p.attempt == 1 {
                    self.tell_the_model();
                }
                self.calls = p.call_no;
                self.phase = Phase::Ready;
            }
            Payload::ToolInvoked(call) => self.invoke(call, now),
            Payload::ToolArguments(p) => {
                let (call, input) = (CallId(p.tool_call_id.clone()), p.input.clone().unwrap_or_default());
                if let Some(operation) = self.operation_mut(&call) {
                    operation.input = input.clone();
                    operation.given = input.clone();
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
            Payload::TurnResumed(p) => self.no_longer_waits(&CallId(p.operation_id.clone())),
            Payload::AsyncTracked(p) => {
                let call = CallId(p.operation_id.clone());
                self.answer(&call, Answer::Started);
                self.no_longer_waits(&call);
            }
            Payload::ToolCompleted(p) => self.settle(&p.tool_call_id, Ok(p.output.clone()), now),
            Payload::ToolFailed(p) => self.settle(&p.tool_call_id, Err(p.error.clone()), now),
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
                self.phase = Phase::Ready;
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
        self.phase = Phase::Ended(how);
        self.ended_at = Some(now);
    }

    fn invoke(&mut self, call: &ToolInvocation, now: u64) {
        let target = call.target_id.clone().unwrap_or_else(|| call.tool_name.clone());
        let work = match (call.target_type.as_deref(), call.invocation_mode) {
            (Some("task"), _) => Work::Task(TaskId(target)),
            (Some("workflow"), _) => Work::Workflow(WorkflowId(target)),
            (Some("agent"), mode) => Work::Agent(AgentId(target), mode.unwrap_or_default()),
            _ => Work::Client,
        };
        let input = call.input.clone().unwrap_or_default();
        self.operations.push(Operation {
            call: CallId(call.tool_call_id.clone()),
            tool: call.tool_name.to_string(),
            work,
            given: input.clone(),
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
        if !matches!(self.phase, Phase::Waiting { .. }) {
            self.phase = Phase::Waiting { open: BTreeSet::new() };
        }
        if let Phase::Waiting { open } = &mut self.phase {
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

    fn no_longer_waits(&mut self, call: &CallId) {
        let Phase::Waiting { open } = &mut self.phase else { return };
        if open.remove(call) && open.is_empty() {
            self.phase = Phase::Ready;
        }
    }

    fn settle(&mut self, call: &Arc<str>, result: Result<Value, hotseat_trace::ErrorInfo>, now: u64) {
        self.issues.tool_failures += u32::from(result.is_err());
        let (outcome, call) = (ToolOutcome { tool_call_id: call.clone(), result }, CallId(call.clone()));
        let mut told = true;
        if let Some(operation) = self.operation_mut(&call) {
            let was_asked = operation.status == OperationStatus::AwaitingApproval;
            told = was_asked || !operation.is_async;
            operation.status = match outcome.success() {
                true => OperationStatus::Completed,
                false => OperationStatus::Failed,
            };
            operation.outcome = Some(outcome.clone());
            operation.completed_at = Some(now);
            if was_asked {
                self.no_longer_waits(&call);
            }
        }
        if told {
            self.answer(&call, Answer::Ended(outcome));
        }
    }
}

impl State {
    /// Whoever is outside still owes the answers to open questions and calls.
    fn await_the_client(&mut self, questions: &BTreeMap<CallId, String>) {
        let mut owed = Vec::new();
        for turn in self.turns.iter().filter(|turn| turn.is_active()) {
            for operation in turn.open_operations() {
                let at: OperationAddress = turn.address(operation);
                let (tool, input) = (operation.tool.clone(), operation.given.clone());
                if operation.status == OperationStatus::AwaitingApproval {
                    let message = questions.get(&operation.call).cloned().unwrap_or_default();
                    owed.push(Effect::AskApproval { at, tool, input, message });
                } else if operation.work == Work::Client {
                    owed.push(Effect::AskClient { at, tool, input });
                }
            }
        }
        self.outstanding.extend(owed.into_iter().map(|effect| (effect.key(), effect)));
    }
}

/// The call that an event shows to have been made or refused.
fn call_of(payload: &Payload) -> Option<&str> {
    match payload {
        Payload::ToolInvoked(p) => Some(&p.tool_call_id),
        Payload::ToolFailed(p) => Some(&p.tool_call_id),
        Payload::MoveRecorded(p) => p.tool_call.as_ref().map(|call| &*call.tool_call_id),
        _ => None,
    }
}
