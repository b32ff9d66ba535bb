//! Translates signals of a conversation into updates for its client, independent of protocol and network.
//!
//! A client sees the turns that its request started. Model output arrives in pieces; whole messages, calls
//! and results arrive as events. Agents that join the conversation speak under the call that invited them.
//! Of separate conversations between agents the client sees the tool calls only.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use hotseat_model::{ReplyDelta, TokenUsage};
use hotseat_trace::{
    EventRecord, ExecutionKind, InvocationMode, MoveCall, Payload, ToolOutcome, UNREADABLE_REPLY, plain_text,
};
use serde_json::Value;

use crate::conversation::{
    ConversationState, ModelAddress, OperationTarget, ReplyTo, ToolOperation, TurnCaller,
};
use crate::ids::{CallId, ConversationId, TurnId};
use crate::live::Signal;

/// Update that is sent to a client.
///
/// `message` and `call` are ids, `speaker` is who speaks or calls.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientUpdate {
    /// A model call started. The name of the step is unique among open steps.
    StepStarted { step: String },
    /// The model call finished or failed.
    StepFinished { step: String },
    /// A reasoning message started.
    ReasoningStarted { message: String },
    /// More text of a reasoning message.
    Reasoning { message: String, text: String },
    /// A reasoning message ended.
    ReasoningEnded { message: String },
    /// A text message started.
    TextStarted { message: String, speaker: Speaker },
    /// More text of a message.
    Text { message: String, speaker: Speaker, text: String },
    /// A text message ended, complete or aborted.
    TextEnded { message: String, speaker: Speaker },
    /// Everything sent of a message is void: the model's reply was interrupted and its retry differs. A message with this id may
    /// start again.
    MessageWithdrawn { message: String },
    /// A tool was called, in a message. `by_client` is true if the client must answer the call.
    ToolCalled {
        call: Arc<str>,
        tool: Arc<str>,
        arguments: String,
        message: String,
        speaker: Speaker,
        by_client: bool,
    },
    /// A human changed the arguments of a call before it was made.
    ArgumentsEdited { call: Arc<str>, arguments: String },
    /// A tool call was answered. If it failed, the content is the error message.
    ToolAnswered { call: Arc<str>, content: String, failed: bool, speaker: Speaker },
    /// Another agent was called.
    AgentStarted { call: Arc<str>, agent: Arc<str> },
    /// The called agent answered.
    AgentFinished { call: Arc<str> },
    /// The called agent failed.
    AgentFailed { call: Arc<str>, message: String },
    /// A human is asked to approve a call.
    ApprovalRequested(ApprovalPrompt),
    /// The complete shared state.
    StateReplaced(Value),
    /// A change of the shared state, as JSON Patch.
    StatePatched(Value),
    /// A turn of the client ended.
    TurnEnded { failure: Option<TurnFailure> },
}

impl ClientUpdate {
    /// Returns true if a client of AG-UI gets all its messages again, changed.
    pub fn replaces_messages(&self) -> bool {
        matches!(self, ClientUpdate::MessageWithdrawn { .. } | ClientUpdate::ArgumentsEdited { .. })
    }
}

/// Speaker of a message or call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Speaker {
    /// The agent that the client talks to.
    Agent,
    /// An agent that joined, identified by the call that invited it.
    Joined(Arc<str>),
}

/// Question to a human before a tool call is made.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalPrompt {
    /// The id of the question.
    pub id: Arc<str>,
    /// Text of the question.
    pub message: Option<String>,
    /// The call that waits for the answer.
    pub call: Option<Arc<str>>,
    /// Full details, as JSON.
    pub value: Value,
}

/// Failure of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnFailure {
    /// Short, machine-readable code.
    pub code: Option<String>,
    /// Human-readable message.
    pub message: String,
}

/// Token usage of the model calls of a request, including those of called agents, by model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageByModel {
    by_model: BTreeMap<Arc<str>, TokenUsage>,
    /// True if the usage of a call is unknown.
    is_unreported: bool,
}

impl UsageByModel {
    /// Returns the usage of each model; `None` if that of a call is unknown, because the sums would be too small.
    pub fn models(&self) -> Option<impl Iterator<Item = (&Arc<str>, &TokenUsage)>> {
        (!self.is_unreported).then(|| self.by_model.iter())
    }

    /// Returns the sum as chat completions have it; `None` if the usage of a call is unknown.
    pub fn completion_usage(&self) -> Option<Value> {
        let mut sum = TokenUsage::default();
        self.models()?.for_each(|(_, usage)| sum += *usage);
        Some(sum.to_completion())
    }
}

/// Returns the id of the message with the text and the tool calls of model call `call` (from 1) of a turn.
pub fn message_id(turn: &str, call: u32) -> String {
    format!("{turn}-r{call}")
}

/// Returns true if an execution, or a call in it, works for a call. Ids begin with the one that they come from.
pub fn is_within_call(id: &str, call: &str) -> bool {
    id.strip_prefix(call).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Returns the id of the message with the result of a call.
pub fn result_id(call: &str) -> String {
    format!("{call}-result")
}

/// Translates the signals of the turns of one request.
#[derive(Debug)]
pub struct TurnTranslator {
    conversation: ConversationId,
    turns: BTreeMap<Arc<str>, FollowedTurn>,
    /// The client's turns that have not ended.
    open: BTreeSet<Arc<str>>,
    /// Calls already sent to the client, in this run or an earlier one.
    calls: BTreeSet<Arc<str>>,
    /// Calls that the client answered itself; their answers are not sent back.
    known_answers: BTreeSet<Arc<str>>,
    /// Refused calls. Their details follow with the recorded move.
    refused: BTreeSet<Arc<str>>,
    /// Calls that invited agents whose turn has not started yet.
    joining: VecDeque<PendingJoin>,
    /// Calls of other agents.
    agent_calls: BTreeSet<Arc<str>>,
    /// Turns of called agents in conversations of their own, with the speaker of their calls.
    called_turns: BTreeMap<Arc<str>, Speaker>,
    /// Token usage so far.
    usage: UsageByModel,
    /// Running model calls, by turn and number: model and estimated input tokens.
    running_calls: BTreeMap<(Arc<str>, u32), (Arc<str>, u64)>,
    /// Stop reason of the agent's last reply.
    stop_reason: Option<Arc<str>>,
}

/// State of one followed turn.
#[derive(Debug)]
struct FollowedTurn {
    speaker: Speaker,
    reply: StreamedReply,
}

/// An agent that was invited and has not started its turn.
#[derive(Debug)]
struct PendingJoin {
    turn: Arc<str>,
    call: Arc<str>,
    agent: Arc<str>,
}

/// State of a model reply that is streamed to the client.
#[derive(Debug, Default)]
struct StreamedReply {
    /// Number of the model call in the turn, from 1.
    call: u32,
    /// Attempt of the call, from 1.
    attempt: u32,
    /// Text that the client has received.
    sent_text: String,
    /// True while the text message is open.
    open: bool,
    /// After a restart of the reply: number of bytes of `sent_text` that arrived again.
    repeated_bytes: Option<usize>,
    reasoning: ReasoningPhase,
}

/// Progress of the reasoning of a reply.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum ReasoningPhase {
    #[default]
    None,
    Open,
    /// Reasoning is sent only once; a restarted reply repeats it.
    Closed,
}

impl TurnTranslator {
    /// Creates a translator for the turns `own` of a conversation in `state`. `answered` are the calls that
    /// the client answered itself.
    pub fn new(
        state: &ConversationState,
        own: &BTreeSet<TurnId>,
        answered: &BTreeSet<CallId>,
    ) -> TurnTranslator {
        let mut translator = TurnTranslator {
            conversation: state.conversation.clone(),
            turns: BTreeMap::new(),
            open: own.iter().map(|turn| turn.0.clone()).collect(),
            calls: BTreeSet::new(),
            known_answers: answered.iter().map(|call| call.0.clone()).collect(),
            refused: BTreeSet::new(),
            joining: VecDeque::new(),
            agent_calls: BTreeSet::new(),
            called_turns: BTreeMap::new(),
            usage: UsageByModel::default(),
            running_calls: BTreeMap::new(),
            stop_reason: None,
        };
        for turn in own {
            translator.follow(turn.0.clone(), Speaker::Agent);
        }
        for turn in state.active_turns() {
            let known = translator.turns.contains_key(&turn.id.0);
            let joined = match (&turn.caller, &turn.reply_to) {
                (TurnCaller::Agent { turn_id, .. }, Some(ReplyTo::Call { at, .. }))
                    if translator.turns.contains_key(&turn_id.0) =>
                {
                    Some(Speaker::Joined(at.call.0.clone()))
                }
                _ => None,
            };
            if let (false, Some(speaker)) = (known, joined) {
                translator.follow(turn.id.0.clone(), speaker);
            }
            let Some(followed) = translator.turns.get_mut(&turn.id.0) else { continue };
            followed.reply.call = turn.calls;
            translator.calls.extend(turn.operations.iter().map(|operation| operation.call.0.clone()));
            let of_agents = |operation: &&ToolOperation| matches!(operation.work, OperationTarget::Agent(..));
            let agent_calls = turn.operations.iter().filter(of_agents);
            translator.agent_calls.extend(agent_calls.map(|operation| operation.call.0.clone()));
        }
        translator
    }

    /// Returns true if a turn is one of the client's or works for one of them in this conversation.
    pub fn follows(&self, turn: &TurnId) -> bool {
        self.turns.contains_key(&turn.0)
    }

    /// Returns true if a turn of the client has not ended.
    pub fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Returns the client's turns that have not ended.
    pub fn open_turns(&self) -> impl Iterator<Item = TurnId> {
        self.open.iter().map(|turn| TurnId(turn.clone()))
    }

    /// Returns the token usage so far.
    pub fn usage(&self) -> &UsageByModel {
        &self.usage
    }

    /// Returns the stop reason of the agent's last reply.
    pub fn stop_reason(&self) -> Option<&Arc<str>> {
        self.stop_reason.as_ref()
    }

    /// Returns the client updates for a signal.
    pub fn translate(&mut self, signal: &Signal) -> Vec<ClientUpdate> {
        let mut updates = Vec::new();
        if let Signal::Event(record) = signal {
            self.count_usage(record);
        }
        match signal {
            Signal::Delta { conversation, at, delta } if *conversation == self.conversation => {
                self.handle_delta(at, delta, &mut updates);
            }
            Signal::Event(record) if self.is_own_event(record) => {
                self.handle_event(&record.payload, &mut updates)
            }
            Signal::Event(record) => self.handle_called_agent(record, &mut updates),
            Signal::Delta { .. } => {}
        }
        updates
    }

    /// Counts the tokens of a completed model call that works for a followed turn, in this conversation or in one of a
    /// called agent. A failed attempt has no tokens, as in the traces of embedded agents.
    fn count_usage(&mut self, record: &EventRecord) {
        let Some(turn) = record.payload.turn_id() else { return };
        let is_followed = match &record.execution {
            Some(execution) if !self.is_own_event(record) => {
                self.turns.keys().any(|followed| is_within_call(&execution.id, followed))
            }
            _ => self.turns.contains_key(turn),
        };
        if !is_followed {
            return;
        }
        match &record.payload {
            Payload::LlmCallStarted(call) => {
                let started = (call.model_profile_id.clone(), call.input_tokens);
                self.running_calls.insert((turn.clone(), call.call_no), started);
            }
            Payload::LlmCallCompleted(call) => {
                let Some((model, estimate)) = self.running_calls.remove(&(turn.clone(), call.call_no)) else {
                    return;
                };
                self.usage.is_unreported |= call.usage_unreported;
                *self.usage.by_model.entry(model).or_default() += TokenUsage {
                    input_tokens: call.input_tokens.unwrap_or(estimate),
                    output_tokens: call.output_tokens,
                    cached_tokens: call.cached_tokens.unwrap_or_default(),
                    ..TokenUsage::default()
                };
            }
            Payload::LlmCallFailed(call) => {
                self.usage.is_unreported |= call.error.code.as_deref() == Some(UNREADABLE_REPLY);
            }
            _ => {}
        }
    }

    /// Handles tool calls of an agent that works in a conversation of its own: they are calls of the agent that called
    /// it, too.
    fn handle_called_agent(&mut self, record: &EventRecord, updates: &mut Vec<ClientUpdate>) {
        let Some(execution) = &record.execution else { return };
        let Some(turn) = record.payload.turn_id().filter(|_| execution.kind == ExecutionKind::Conversation)
        else {
            return;
        };
        // Calls are sorted, so the outermost one comes first.
        if let Payload::TurnStarted(_) = &record.payload
            && let Some(call) = self.calls.iter().find(|call| is_within_call(&execution.id, call))
        {
            let speaker = match self.agent_calls.contains(call) {
                true => Speaker::Joined(call.clone()),
                // An agent in a workflow: the client knows no sub-agent.
                false => Speaker::Agent,
            };
            self.called_turns.insert(turn.clone(), speaker);
        }
        self.handle_tool_event(turn, &record.payload, updates);
    }

    /// Returns true if an event belongs to this conversation and not to one that it started.
    pub fn is_own_event(&self, record: &EventRecord) -> bool {
        record.execution.as_ref().is_none_or(|execution| *execution.id == *self.conversation.0)
    }

    fn follow(&mut self, turn: Arc<str>, speaker: Speaker) {
        self.turns.insert(turn, FollowedTurn { speaker, reply: StreamedReply::default() });
    }

    fn handle_delta(&mut self, at: &ModelAddress, delta: &ReplyDelta, updates: &mut Vec<ClientUpdate>) {
        let Some(followed) = self.turns.get_mut(&at.turn.0) else { return };
        // Joined agents are shown as whole messages.
        if followed.speaker != Speaker::Agent {
            return;
        }
        let message = message_id(at.turn.as_str(), at.call);
        let reply = &mut followed.reply;
        reply.advance_to(at.call, at.attempt);
        match delta {
            ReplyDelta::Text { text } if text.is_empty() => {}
            ReplyDelta::Text { text } => {
                reply.close_reasoning(&message, updates);
                reply.append(&message, text, updates);
            }
            ReplyDelta::Reasoning { text }
                if text.is_empty() || reply.reasoning == ReasoningPhase::Closed => {}
            ReplyDelta::Reasoning { text } => {
                if reply.reasoning == ReasoningPhase::None {
                    reply.reasoning = ReasoningPhase::Open;
                    updates.push(ClientUpdate::ReasoningStarted { message: reasoning_id(&message) });
                }
                updates.push(ClientUpdate::Reasoning { message: reasoning_id(&message), text: text.clone() });
            }
            ReplyDelta::ToolCallStarted { .. } => reply.close_reasoning(&message, updates),
            // Calls are sent when they are made. Until then the reply may be withdrawn and the call refused.
            ReplyDelta::ToolCallArguments { .. } => {}
        }
    }

    fn handle_event(&mut self, payload: &Payload, updates: &mut Vec<ClientUpdate>) {
        match payload {
            Payload::TurnStarted(begun) => {
                let caller = begun.caller_turn_id.as_ref();
                let Some(agent) = &begun.agent_id else { return };
                let asked = self
                    .joining
                    .iter()
                    .position(|joining| caller == Some(&joining.turn) && joining.agent == *agent);
                if let Some(joining) = asked.and_then(|place| self.joining.remove(place)) {
                    self.follow(begun.turn_id.clone(), Speaker::Joined(joining.call));
                }
                return;
            }
            Payload::StateSnapshot(snapshot) => {
                return updates.push(ClientUpdate::StateReplaced(snapshot.state.clone()));
            }
            Payload::StateDelta(delta) => {
                return updates.push(ClientUpdate::StatePatched(delta.patch.clone()));
            }
            _ => {}
        }
        let Some(turn) = payload.turn_id() else { return };
        self.handle_model_event(turn, payload, updates);
        self.handle_tool_event(turn, payload, updates);
        self.handle_turn_event(turn, payload, updates);
    }

    /// Handles model calls and their messages.
    fn handle_model_event(&mut self, turn: &Arc<str>, payload: &Payload, updates: &mut Vec<ClientUpdate>) {
        let Some(followed) = self.turns.get_mut(turn) else { return };
        match payload {
            Payload::LlmCallStarted(call) => {
                followed.reply.advance_to(call.call_no, call.attempt);
                if followed.speaker == Speaker::Agent {
                    updates.push(ClientUpdate::StepStarted {
                        step: step_name(&self.conversation, turn, call.call_no, call.attempt),
                    });
                }
            }
            Payload::LlmCallCompleted(call) => {
                let message = message_id(turn, call.call_no);
                let reply = &mut followed.reply;
                reply.close_reasoning(&message, updates);
                reply.finish(&message, updates);
                if followed.speaker == Speaker::Agent {
                    self.stop_reason = Some(call.stop_reason.clone());
                    updates.push(ClientUpdate::StepFinished {
                        step: step_name(&self.conversation, turn, call.call_no, reply.attempt),
                    });
                }
            }
            Payload::LlmCallFailed(call) if followed.speaker == Speaker::Agent => {
                followed.reply.close_reasoning(&message_id(turn, call.call_no), updates);
                updates.push(ClientUpdate::StepFinished {
                    step: step_name(&self.conversation, turn, call.call_no, call.attempt),
                });
            }
            Payload::AssistantMessage(said) => {
                let message = message_id(turn, followed.reply.call);
                let speaker = followed.speaker.clone();
                let reply = &mut followed.reply;
                if reply.sent_text == *said.content {
                    return;
                }
                if !reply.sent_text.is_empty() {
                    updates.push(ClientUpdate::MessageWithdrawn { message: message.clone() });
                }
                reply.sent_text = said.content.to_string();
                updates
                    .push(ClientUpdate::TextStarted { message: message.clone(), speaker: speaker.clone() });
                let (to, by, text) = (message.clone(), speaker.clone(), said.content.to_string());
                updates.push(ClientUpdate::Text { message: to, speaker: by, text });
                updates.push(ClientUpdate::TextEnded { message, speaker });
            }
            _ => {}
        }
    }

    /// Handles tool calls and their results.
    fn handle_tool_event(&mut self, turn: &Arc<str>, payload: &Payload, updates: &mut Vec<ClientUpdate>) {
        let (speaker, reply) = match (self.turns.get(turn), self.called_turns.get(turn)) {
            (Some(followed), _) => (followed.speaker.clone(), followed.reply.call),
            (None, Some(speaker)) => (speaker.clone(), 1),
            (None, None) => return,
        };
        match payload {
            Payload::ToolInvoked(call) => {
                let first = self.calls.insert(call.tool_call_id.clone());
                if !first {
                    return;
                }
                updates.push(ClientUpdate::ToolCalled {
                    call: call.tool_call_id.clone(),
                    tool: call.tool_name.clone(),
                    arguments: call.input.as_ref().map_or_else(|| "{}".to_string(), arguments_text),
                    message: message_id(turn, reply),
                    speaker,
                    by_client: call.target_type.as_deref() == Some("client"),
                });
            }
            Payload::ToolArguments(edited) if self.calls.contains(&edited.tool_call_id) => {
                let call = edited.tool_call_id.clone();
                let arguments = edited.input.as_ref().map(arguments_text);
                updates.extend(arguments.map(|arguments| ClientUpdate::ArgumentsEdited { call, arguments }));
            }
            Payload::ToolCompleted(done) => {
                let content = plain_text(&done.output);
                self.push_answer(&done.tool_call_id, content, false, speaker, updates);
            }
            Payload::ToolFailed(done) if !self.calls.contains(&done.tool_call_id) => {
                self.refused.insert(done.tool_call_id.clone());
            }
            Payload::ToolFailed(done) => {
                let content = done.error.message.clone();
                self.push_answer(&done.tool_call_id, content, true, speaker, updates);
            }
            Payload::MoveRecorded(recorded) => {
                let (Some(made), Some(outcome)) = (&recorded.tool_call, &recorded.tool_result) else {
                    return;
                };
                if self.refused.remove(&made.tool_call_id) {
                    self.calls.insert(made.tool_call_id.clone());
                    let message = message_id(turn, reply);
                    updates.extend(refused_call(made, outcome, message, speaker));
                }
            }
            _ => {}
        }
    }

    /// Handles calls of other agents, questions to the user, and the end of a turn.
    fn handle_turn_event(&mut self, turn: &Arc<str>, payload: &Payload, updates: &mut Vec<ClientUpdate>) {
        let Some(followed) = self.turns.get_mut(turn) else { return };
        match payload {
            Payload::AgentCallStarted(call) => {
                if call.mode == InvocationMode::LoopIn {
                    self.joining.push_back(PendingJoin {
                        turn: turn.clone(),
                        call: call.call_id.clone(),
                        agent: call.agent_id.clone(),
                    });
                }
                self.agent_calls.insert(call.call_id.clone());
                updates.push(ClientUpdate::AgentStarted {
                    call: call.call_id.clone(),
                    agent: call.agent_id.clone(),
                });
            }
            Payload::AgentCallCompleted(call) => {
                updates.push(ClientUpdate::AgentFinished { call: call.call_id.clone() });
            }
            Payload::AgentCallFailed(call) => {
                let message = call.error.message.clone();
                updates.push(ClientUpdate::AgentFailed { call: call.call_id.clone(), message });
            }
            Payload::InterruptRaised(asked) => {
                updates.push(ClientUpdate::ApprovalRequested(ApprovalPrompt {
                    id: asked.interrupt_id.clone(),
                    message: asked.message.clone(),
                    call: asked.tool_call_id.clone(),
                    value: asked.value.clone(),
                }))
            }
            Payload::TurnCompleted(_) => self.end_turn(turn, None, updates),
            Payload::TurnFailed(failed) => {
                let message = message_id(turn, followed.reply.call);
                followed.reply.close_reasoning(&message, updates);
                followed.reply.end_message(&message, updates);
                let failure =
                    TurnFailure { code: failed.error.code.clone(), message: failed.error.message.clone() };
                self.end_turn(turn, Some(failure), updates);
            }
            _ => {}
        }
    }

    fn push_answer(
        &self,
        call: &Arc<str>,
        content: String,
        failed: bool,
        speaker: Speaker,
        updates: &mut Vec<ClientUpdate>,
    ) {
        if !self.known_answers.contains(call) {
            updates.push(ClientUpdate::ToolAnswered { call: call.clone(), content, failed, speaker });
        }
    }

    fn end_turn(&mut self, turn: &Arc<str>, failure: Option<TurnFailure>, updates: &mut Vec<ClientUpdate>) {
        if self.open.remove(turn) {
            updates.push(ClientUpdate::TurnEnded { failure });
        }
    }
}

impl StreamedReply {
    /// Switches to an attempt of a model call.
    fn advance_to(&mut self, call: u32, attempt: u32) {
        if self.call != call {
            *self = StreamedReply { call, attempt, ..StreamedReply::default() };
        } else if self.attempt != attempt {
            self.attempt = attempt;
            // New text is compared with the text that was already sent.
            self.repeated_bytes = (!self.sent_text.is_empty()).then_some(0);
        }
    }

    /// Sends more text, except text that was sent before the reply restarted.
    fn append(&mut self, message: &str, text: &str, updates: &mut Vec<ClientUpdate>) {
        let Some(confirmed) = self.repeated_bytes else { return self.send_text(message, text, updates) };
        let known = &self.sent_text[confirmed..];
        if known.starts_with(text) {
            self.repeated_bytes = Some(confirmed + text.len());
        } else if let Some(more) = text.strip_prefix(known) {
            self.repeated_bytes = None;
            self.send_text(message, more, updates);
        } else {
            let whole = format!("{}{text}", &self.sent_text[..confirmed]);
            self.withdraw(message, updates);
            self.send_text(message, &whole, updates);
        }
    }

    fn send_text(&mut self, message: &str, text: &str, updates: &mut Vec<ClientUpdate>) {
        let message = message.to_string();
        if !self.open {
            self.open = true;
            updates.push(ClientUpdate::TextStarted { message: message.clone(), speaker: Speaker::Agent });
        }
        self.sent_text.push_str(text);
        updates.push(ClientUpdate::Text { message, speaker: Speaker::Agent, text: text.to_string() });
    }

    fn withdraw(&mut self, message: &str, updates: &mut Vec<ClientUpdate>) {
        self.end_message(message, updates);
        updates.push(ClientUpdate::MessageWithdrawn { message: message.to_string() });
        self.repeated_bytes = None;
        self.sent_text.clear();
    }

    fn end_message(&mut self, message: &str, updates: &mut Vec<ClientUpdate>) {
        if std::mem::take(&mut self.open) {
            updates.push(ClientUpdate::TextEnded { message: message.to_string(), speaker: Speaker::Agent });
        }
    }

    /// Ends the reply, withdrawing sent text that a restarted reply did not repeat.
    fn finish(&mut self, message: &str, updates: &mut Vec<ClientUpdate>) {
        if let Some(confirmed) = self.repeated_bytes.filter(|confirmed| *confirmed < self.sent_text.len()) {
            let whole = self.sent_text[..confirmed].to_string();
            self.withdraw(message, updates);
            if !whole.is_empty() {
                self.send_text(message, &whole, updates);
            }
        }
        self.repeated_bytes = None;
        self.end_message(message, updates);
    }

    fn close_reasoning(&mut self, message: &str, updates: &mut Vec<ClientUpdate>) {
        if self.reasoning == ReasoningPhase::Open {
            updates.push(ClientUpdate::ReasoningEnded { message: reasoning_id(message) });
            self.reasoning = ReasoningPhase::Closed;
        }
    }
}

/// Updates for a call that was refused before it was made: the call and its answer.
fn refused_call(
    made: &MoveCall,
    outcome: &ToolOutcome,
    message: String,
    speaker: Speaker,
) -> [ClientUpdate; 2] {
    let called = ClientUpdate::ToolCalled {
        call: made.tool_call_id.clone(),
        tool: made.tool_id.clone(),
        arguments: arguments_text(&made.input),
        message,
        speaker: speaker.clone(),
        by_client: false,
    };
    let content = match &outcome.result {
        Ok(value) => plain_text(value),
        Err(error) => error.message.clone(),
    };
    let failed = outcome.result.is_err();
    [called, ClientUpdate::ToolAnswered { call: made.tool_call_id.clone(), content, failed, speaker }]
}

/// Returns arguments as a model writes them: JSON, or the raw text if it was not valid JSON.
pub fn arguments_text(input: &Value) -> String {
    let call = hotseat_model::ModelToolCall {
        id: String::new(),
        name: String::new(),
        arguments: input.clone(),
        ..hotseat_model::ModelToolCall::default()
    };
    call.arguments_text()
}

fn reasoning_id(message: &str) -> String {
    format!("{message}-reasoning")
}

/// Returns the name of one attempt at a model call, for example `turn 1, model call 2`.
fn step_name(conversation: &ConversationId, turn: &str, call: u32, attempt: u32) -> String {
    let number = turn.strip_prefix(conversation.as_str()).and_then(|rest| rest.strip_prefix("-t"));
    let turn = number.unwrap_or(turn);
    match attempt {
        0 | 1 => format!("turn {turn}, model call {call}"),
        later => format!("turn {turn}, model call {call}, attempt {later}"),
    }
}

#[cfg(test)]
mod tests {
    use hotseat_trace::{
        AssistantMessage, Event, ExecutionInfo, ExecutionKind, LlmCallCompleted, TimeOffset, TurnCompletion,
    };

    use super::*;
    use crate::conversation::{ConversationMachine, ConversationOrigin};
    use crate::definition::{Definitions, RuntimeLimits, persona};

    fn translator() -> TurnTranslator {
        let (definitions, agent) = Definitions::from_persona(&persona("Helper")).unwrap();
        let opening = ConversationOrigin { conversation: "c".into(), agent, parent: None };
        let conversation = ConversationMachine::new(Arc::new(definitions), RuntimeLimits::default(), opening);
        let own = BTreeSet::from(["c-t1".into()]);
        TurnTranslator::new(conversation.state(), &own, &BTreeSet::new())
    }

    fn delta(conversation: &str, attempt: u32, delta: ReplyDelta) -> Signal {
        let at = ModelAddress { turn: "c-t1".into(), call: 1, attempt };
        Signal::Delta { conversation: conversation.into(), at, delta }
    }

    fn text_delta(attempt: u32, text: &str) -> Signal {
        delta("c", attempt, ReplyDelta::Text { text: text.to_string() })
    }

    fn event(conversation: &str, payload: impl Into<Payload>) -> Signal {
        let event = Event { sequence: 1, offset: TimeOffset(0), timestamp: 0, payload: payload.into() };
        let execution =
            ExecutionInfo { id: conversation.into(), kind: ExecutionKind::Conversation, parent: None };
        Signal::Event(Arc::new(EventRecord { event, execution: Some(execution) }))
    }

    fn call_completed() -> Signal {
        event(
            "c",
            LlmCallCompleted {
                turn_id: "c-t1".into(),
                call_no: 1,
                input_tokens: None,
                output_tokens: 1,
                cached_tokens: None,
                usage_unreported: false,
                has_tool_use: false,
                stop_reason: "end_turn".into(),
                duration_ms: 0,
            },
        )
    }

    fn assistant_message(content: &str) -> Signal {
        event(
            "c",
            AssistantMessage {
                turn_id: "c-t1".into(),
                message_id: "c-m2".into(),
                content: content.into(),
                has_tool_use: Some(false),
                ..AssistantMessage::default()
            },
        )
    }

    /// Returns the text that a client has after these signals, and the number of withdrawn messages.
    fn replay(signals: &[Signal]) -> (String, usize) {
        let mut translator = translator();
        let (mut text, mut open, mut withdrawn) = (String::new(), false, 0);
        for told in signals.iter().flat_map(|signal| translator.translate(signal)) {
            match told {
                ClientUpdate::TextStarted { .. } => {
                    assert!(!std::mem::replace(&mut open, true), "message started twice")
                }
                ClientUpdate::Text { text: more, .. } => {
                    assert!(open, "more of a message that is not open");
                    text.push_str(&more);
                }
                ClientUpdate::TextEnded { .. } => {
                    assert!(std::mem::replace(&mut open, false), "message ended twice")
                }
                ClientUpdate::MessageWithdrawn { .. } => {
                    assert!(!open, "an open message was taken back");
                    text.clear();
                    withdrawn += 1;
                }
                _ => {}
            }
        }
        assert!(!open, "a message was left open");
        (text, withdrawn)
    }

    #[test]
    fn streamed_text_is_sent_exactly_once() {
        for (mut signals, withdrawn) in [
            (vec![text_delta(1, "Good "), text_delta(1, "day")], 0),
            // Without streaming.
            (vec![], 0),
            // Restarted by the state machine.
            (vec![text_delta(1, "Good "), text_delta(2, "Go"), text_delta(2, "od day")], 0),
            (vec![text_delta(1, "Good "), text_delta(2, "Good day")], 0),
            (vec![text_delta(1, "Good day to"), text_delta(2, "Good day")], 1),
            (vec![text_delta(1, "Hello"), text_delta(2, "Good day")], 1),
            (vec![text_delta(1, "Go away"), text_delta(2, "Go"), text_delta(2, "od day")], 1),
            (vec![text_delta(1, "Hello"), text_delta(2, "Hel"), text_delta(3, "Good day")], 1),
            // A watcher that starts in the middle.
            (vec![text_delta(1, "day")], 1),
        ] {
            signals.extend([call_completed(), assistant_message("Good day")]);
            assert_eq!(replay(&signals), ("Good day".to_string(), withdrawn), "{signals:?}");
        }
    }

    #[test]
    fn an_empty_restarted_reply_withdraws_its_text() {
        assert_eq!(
            replay(&[text_delta(1, "Hello"), text_delta(2, ""), call_completed()]),
            (String::new(), 1)
        );
    }

    #[test]
    fn ignores_other_conversations() {
        let mut translator = translator();
        let ended = |conversation: &str| {
            let ended = TurnCompletion { turn_id: "c-t1".into(), issues: None };
            event(conversation, Payload::TurnCompleted(ended))
        };
        assert_eq!(
            translator.translate(&delta("c-t1-k1", 1, ReplyDelta::Text { text: "psst".to_string() })),
            []
        );
        assert_eq!(translator.translate(&ended("c-t1-k1")), []);
        assert!(translator.is_open());
        assert_eq!(translator.translate(&ended("c")), [ClientUpdate::TurnEnded { failure: None }]);
        assert!(!translator.is_open());
    }
}
