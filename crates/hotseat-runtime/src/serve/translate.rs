//! From what a conversation tells its watchers to what a client of it is told: no protocol, no network.
//!
//! A client sees the turns that its request is about. What the model says arrives in pieces; whole messages, calls
//! and results arrive as events. Agents that join the conversation speak under the call that asked them in, and
//! conversations that other agents hold apart are not heard at all.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use hotseat_model::Delta;
use hotseat_trace::{InvocationMode, MoveCall, Payload, Record, ToolOutcome};
use serde_json::Value;

use crate::conversation::{Caller, ModelAddress, ReplyTo, State};
use crate::ids::{CallId, ConversationId, TurnId};
use crate::live::Signal;

/// Something that a client is told.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// The model is being asked.
    StepStarted {
        /// The step; no two of the same name are open.
        step: String,
    },
    /// It has answered, or failed to.
    StepFinished {
        /// The step.
        step: String,
    },
    /// The model begins to say what it thinks.
    ReasoningStarted {
        /// The id of the message.
        message: String,
    },
    /// More of it.
    Reasoning {
        /// The id of the message.
        message: String,
        /// The words.
        text: String,
    },
    /// It has thought.
    ReasoningEnded {
        /// The id of the message.
        message: String,
    },
    /// An agent begins to speak.
    TextStarted {
        /// The id of the message.
        message: String,
        /// Who.
        speaker: Speaker,
    },
    /// More words of it.
    Text {
        /// The id of the message.
        message: String,
        /// Who.
        speaker: Speaker,
        /// The words.
        text: String,
    },
    /// The message is whole, or is over.
    TextEnded {
        /// The id of the message.
        message: String,
        /// Who.
        speaker: Speaker,
    },
    /// What was told of a message was never said: the model's reply broke off, and its next one is another.
    Withdrawn {
        /// The id of the message. It may begin anew.
        message: String,
    },
    /// A tool is called.
    Called {
        /// The call.
        call: Arc<str>,
        /// The tool.
        tool: Arc<str>,
        /// What it is given.
        arguments: String,
        /// The message that makes the call.
        message: String,
        /// Who calls.
        speaker: Speaker,
        /// Whether the client is to answer.
        by_client: bool,
    },
    /// A tool has answered.
    Answered {
        /// The call.
        call: Arc<str>,
        /// What, as text.
        content: String,
        /// Whether the tool failed, and the content says how.
        failed: bool,
        /// Who called.
        speaker: Speaker,
    },
    /// Another agent was asked.
    AgentStarted {
        /// The call that asked.
        call: Arc<str>,
        /// Which agent.
        agent: Arc<str>,
    },
    /// It has answered.
    AgentFinished {
        /// The call that asked.
        call: Arc<str>,
    },
    /// It has failed.
    AgentFailed {
        /// The call that asked.
        call: Arc<str>,
        /// Why.
        message: String,
    },
    /// A person is asked something.
    Asked(Question),
    /// The shared state is this now.
    State(Value),
    /// The shared state has changed by this JSON Patch.
    StatePatched(Value),
    /// A turn of the client has ended, in order or not.
    TurnEnded {
        /// Why it could not be held to its end.
        failure: Option<Failed>,
    },
}

/// Whose words or calls they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Speaker {
    /// The agent that the client talks to.
    Agent,
    /// An agent that has joined, by the call that asked it in.
    Joined(Arc<str>),
}

/// What a person is asked before a call is made.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The id of the question.
    pub id: Arc<str>,
    /// What is asked.
    pub message: Option<String>,
    /// The call that waits.
    pub call: Option<Arc<str>>,
    /// Everything there is to say of it.
    pub value: Value,
}

/// Why a turn has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// A short name that programs compare.
    pub code: Option<String>,
    /// What people read.
    pub message: String,
}

/// The figures of the model calls that were seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spent {
    /// By model: the size of what it was asked, an estimate where nobody has counted, and of what it replied.
    pub by_model: BTreeMap<Arc<str>, (u64, u64)>,
}

/// The id of the message that a turn's model call `call`, from 1, brought: its words and its tool calls.
pub fn message_id(turn: &str, call: u32) -> String {
    format!("{turn}-r{call}")
}

/// The id of the message with the result of a call.
pub fn result_id(call: &str) -> String {
    format!("{call}-result")
}

/// What a tool returned, as text: text as it is, anything else as JSON.
pub fn content_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Follows the turns of one request.
#[derive(Debug)]
pub struct Translator {
    conversation: ConversationId,
    /// The turns that are followed.
    turns: BTreeMap<Arc<str>, Followed>,
    /// The client's turns that go on.
    open: BTreeSet<Arc<str>>,
    /// The calls that were told, now or in an earlier run.
    calls: BTreeSet<Arc<str>>,
    /// The calls whose answer the client has given, so that it need not be told.
    known_answers: BTreeSet<Arc<str>>,
    /// Calls that were refused; what they were is told by their move, which comes next.
    refused: BTreeSet<Arc<str>>,
    /// Calls that agents were asked to join by, whose turn has not begun.
    joining: VecDeque<Joining>,
    /// What the models were asked and replied.
    spent: Spent,
    /// Why the last reply of the agent ends where it does.
    stop: Option<Arc<str>>,
}

/// One turn that is followed.
#[derive(Debug)]
struct Followed {
    speaker: Speaker,
    reply: Reply,
    /// The model that is being asked, and the size of the request as it is estimated.
    model: Option<(Arc<str>, u64)>,
}

/// An agent that was asked to join.
#[derive(Debug)]
struct Joining {
    turn: Arc<str>,
    call: Arc<str>,
    agent: Arc<str>,
}

/// What has been told of a reply of the model.
#[derive(Debug, Default)]
struct Reply {
    /// The call within the turn, from 1.
    call: u32,
    /// The attempt at it, from 1.
    attempt: u32,
    /// The words that the client has.
    told: String,
    /// Whether its message is open.
    open: bool,
    /// After the reply has begun anew: how many bytes of `told` have come again.
    again: Option<usize>,
    reasoning: Reasoning,
}

/// Where the reasoning of a reply stands.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Reasoning {
    #[default]
    None,
    Open,
    /// It is told once: a reply that begins anew thinks the same again.
    Closed,
}

impl Translator {
    /// Follows the turns `own` of a conversation that stands as in `state`. The client has itself answered the calls
    /// `answered`.
    pub fn new(state: &State, own: &BTreeSet<TurnId>, answered: &BTreeSet<CallId>) -> Translator {
        let mut translator = Translator {
            conversation: state.conversation.clone(),
            turns: BTreeMap::new(),
            open: own.iter().map(|turn| turn.0.clone()).collect(),
            calls: BTreeSet::new(),
            known_answers: answered.iter().map(|call| call.0.clone()).collect(),
            refused: BTreeSet::new(),
            joining: VecDeque::new(),
            spent: Spent::default(),
            stop: None,
        };
        for turn in own {
            translator.follow(turn.0.clone(), Speaker::Agent);
        }
        for turn in state.active_turns() {
            let known = translator.turns.contains_key(&turn.id.0);
            let joined = match (&turn.caller, &turn.reply_to) {
                (Caller::Agent { turn_id, .. }, Some(ReplyTo::Call { at, .. }))
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
        }
        translator
    }

    /// Whether a turn is one of the client's, or one that works for it here.
    pub fn follows(&self, turn: &TurnId) -> bool {
        self.turns.contains_key(&turn.0)
    }

    /// Whether a turn of the client goes on.
    pub fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// The client's turns that go on.
    pub fn open_turns(&self) -> impl Iterator<Item = TurnId> {
        self.open.iter().map(|turn| TurnId(turn.clone()))
    }

    /// What the models were asked and replied so far.
    pub fn spent(&self) -> &Spent {
        &self.spent
    }

    /// Why the last reply of the agent ends where it does.
    pub fn stop(&self) -> Option<&Arc<str>> {
        self.stop.as_ref()
    }

    /// What a client is told of a signal.
    pub fn take(&mut self, signal: &Signal) -> Vec<Told> {
        let mut told = Vec::new();
        match signal {
            Signal::Delta { conversation, at, delta } if *conversation == self.conversation => {
                self.delta(at, delta, &mut told);
            }
            Signal::Event(record) if self.is_here(record) => self.event(&record.payload, &mut told),
            Signal::Delta { .. } | Signal::Event(_) => {}
        }
        told
    }

    /// Whether an event is of this conversation, and not of one that it has led to.
    pub fn is_here(&self, record: &Record) -> bool {
        record.execution.as_ref().is_none_or(|execution| *execution.id == *self.conversation.0)
    }

    fn follow(&mut self, turn: Arc<str>, speaker: Speaker) {
        self.turns.insert(turn, Followed { speaker, reply: Reply::default(), model: None });
    }

    fn delta(&mut self, at: &ModelAddress, delta: &Delta, told: &mut Vec<Told>) {
        let Some(followed) = self.turns.get_mut(&at.turn.0) else { return };
        // Who joins is told of message by message.
        if followed.speaker != Speaker::Agent {
            return;
        }
        let message = message_id(at.turn.as_str(), at.call);
        let reply = &mut followed.reply;
        reply.reach(at.call, at.attempt);
        match delta {
            Delta::Text { text } if text.is_empty() => {}
            Delta::Text { text } => {
                reply.close_reasoning(&message, told);
                reply.say(&message, text, told);
            }
            Delta::Reasoning { text } if text.is_empty() || reply.reasoning == Reasoning::Closed => {}
            Delta::Reasoning { text } => {
                if reply.reasoning == Reasoning::None {
                    reply.reasoning = Reasoning::Open;
                    told.push(Told::ReasoningStarted { message: reasoning_id(&message) });
                }
                told.push(Told::Reasoning { message: reasoning_id(&message), text: text.clone() });
            }
            Delta::ToolCallStarted { .. } => reply.close_reasoning(&message, told),
            // Calls are told when they are made: until then a reply may be taken back, and a call refused.
            Delta::ToolCallArguments { .. } => {}
            Delta::Restarted => {
                reply.close_reasoning(&message, told);
                reply.begin_again();
            }
        }
    }

    fn event(&mut self, payload: &Payload, told: &mut Vec<Told>) {
        let turn = payload.turn_id().cloned();
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
            Payload::StateSnapshot(snapshot) => return told.push(Told::State(snapshot.state.clone())),
            Payload::StateDelta(delta) => return told.push(Told::StatePatched(delta.patch.clone())),
            _ => {}
        }
        let Some(turn) = turn else { return };
        let Some(followed) = self.turns.get_mut(&turn) else { return };
        match payload {
            Payload::LlmCallStarted(call) => {
                followed.reply.reach(call.call_no, call.attempt);
                followed.model = Some((call.model_profile_id.clone(), call.input_tokens));
                let spent = self.spent.by_model.entry(call.model_profile_id.clone()).or_default();
                spent.0 = spent.0.saturating_add(call.input_tokens);
                if followed.speaker == Speaker::Agent {
                    told.push(Told::StepStarted {
                        step: step(&self.conversation, &turn, call.call_no, call.attempt),
                    });
                }
            }
            Payload::LlmCallCompleted(call) => {
                if let Some((model, estimate)) = &followed.model {
                    let spent = self.spent.by_model.entry(model.clone()).or_default();
                    let counted = call.input_tokens.unwrap_or(*estimate);
                    let asked = spent.0.saturating_sub(*estimate).saturating_add(counted);
                    *spent = (asked, spent.1.saturating_add(call.output_tokens));
                }
                let message = message_id(&turn, call.call_no);
                let reply = &mut followed.reply;
                reply.close_reasoning(&message, told);
                reply.close(&message, told);
                if followed.speaker == Speaker::Agent {
                    self.stop = Some(call.stop_reason.clone());
                    told.push(Told::StepFinished {
                        step: step(&self.conversation, &turn, call.call_no, reply.attempt),
                    });
                }
            }
            Payload::LlmCallFailed(call) if followed.speaker == Speaker::Agent => {
                followed.reply.close_reasoning(&message_id(&turn, call.call_no), told);
                told.push(Told::StepFinished {
                    step: step(&self.conversation, &turn, call.call_no, call.attempt),
                });
            }
            Payload::AssistantMessage(said) => {
                let message = message_id(&turn, followed.reply.call);
                let speaker = followed.speaker.clone();
                let reply = &mut followed.reply;
                if reply.told == said.content {
                    return;
                }
                if !reply.told.is_empty() {
                    told.push(Told::Withdrawn { message: message.clone() });
                }
                reply.told.clone_from(&said.content);
                told.push(Told::TextStarted { message: message.clone(), speaker: speaker.clone() });
                let (to, by, text) = (message.clone(), speaker.clone(), said.content.clone());
                told.push(Told::Text { message: to, speaker: by, text });
                told.push(Told::TextEnded { message, speaker });
            }
            Payload::ToolInvoked(call) => {
                let first = self.calls.insert(call.tool_call_id.clone());
                if !first {
                    return;
                }
                told.push(Told::Called {
                    call: call.tool_call_id.clone(),
                    tool: call.tool_name.clone(),
                    arguments: call.input.as_ref().map_or_else(|| "{}".to_string(), arguments_of),
                    message: message_id(&turn, followed.reply.call),
                    speaker: followed.speaker.clone(),
                    by_client: call.target_type.as_deref() == Some("client"),
                });
            }
            Payload::ToolCompleted(done) => {
                let (call, speaker) = (&done.tool_call_id, followed.speaker.clone());
                self.answer(call, content_of(&done.output), false, speaker, told);
            }
            Payload::ToolFailed(done) if !self.calls.contains(&done.tool_call_id) => {
                self.refused.insert(done.tool_call_id.clone());
            }
            Payload::ToolFailed(done) => {
                let (call, speaker) = (&done.tool_call_id, followed.speaker.clone());
                self.answer(call, done.error.message.clone(), true, speaker, told);
            }
            Payload::MoveRecorded(recorded) => {
                let (Some(made), Some(outcome)) = (&recorded.tool_call, &recorded.tool_result) else {
                    return;
                };
                if self.refused.remove(&made.tool_call_id) {
                    self.calls.insert(made.tool_call_id.clone());
                    let message = message_id(&turn, followed.reply.call);
                    let speaker = followed.speaker.clone();
                    told.extend(refusal(made, outcome, message, speaker));
                }
            }
            Payload::AgentCallStarted(call) => {
                if call.mode == InvocationMode::LoopIn {
                    self.joining.push_back(Joining {
                        turn,
                        call: call.call_id.clone(),
                        agent: call.agent_id.clone(),
                    });
                }
                told.push(Told::AgentStarted { call: call.call_id.clone(), agent: call.agent_id.clone() });
            }
            Payload::AgentCallCompleted(call) => {
                told.push(Told::AgentFinished { call: call.call_id.clone() });
            }
            Payload::AgentCallFailed(call) => {
                let message = call.error.message.clone();
                told.push(Told::AgentFailed { call: call.call_id.clone(), message });
            }
            Payload::InterruptRaised(asked) => told.push(Told::Asked(Question {
                id: asked.interrupt_id.clone(),
                message: asked.message.clone(),
                call: asked.tool_call_id.clone(),
                value: asked.value.clone(),
            })),
            Payload::TurnCompleted(_) => self.ended(&turn, None, told),
            Payload::TurnFailed(failed) => {
                let message = message_id(&turn, followed.reply.call);
                followed.reply.close_reasoning(&message, told);
                followed.reply.break_off(&message, told);
                let failure =
                    Failed { code: failed.error.code.clone(), message: failed.error.message.clone() };
                self.ended(&turn, Some(failure), told);
            }
            _ => {}
        }
    }

    fn answer(&self, call: &Arc<str>, content: String, failed: bool, speaker: Speaker, told: &mut Vec<Told>) {
        if !self.known_answers.contains(call) {
            told.push(Told::Answered { call: call.clone(), content, failed, speaker });
        }
    }

    fn ended(&mut self, turn: &Arc<str>, failure: Option<Failed>, told: &mut Vec<Told>) {
        if self.open.remove(turn) {
            told.push(Told::TurnEnded { failure });
        }
    }
}

impl Reply {
    /// Goes on to an attempt at a call.
    fn reach(&mut self, call: u32, attempt: u32) {
        if self.call != call {
            *self = Reply { call, attempt, ..Reply::default() };
        } else if self.attempt != attempt {
            self.attempt = attempt;
            self.begin_again();
        }
    }

    /// What comes now stands for what came so far.
    fn begin_again(&mut self) {
        if !self.told.is_empty() {
            self.again = Some(0);
        }
    }

    /// Tells more words, unless they were told before the reply began anew.
    fn say(&mut self, message: &str, text: &str, told: &mut Vec<Told>) {
        let Some(confirmed) = self.again else { return self.tell(message, text, told) };
        let known = &self.told[confirmed..];
        if known.starts_with(text) {
            self.again = Some(confirmed + text.len());
        } else if let Some(more) = text.strip_prefix(known) {
            self.again = None;
            self.tell(message, more, told);
        } else {
            let whole = format!("{}{text}", &self.told[..confirmed]);
            self.withdraw(message, told);
            self.tell(message, &whole, told);
        }
    }

    fn tell(&mut self, message: &str, text: &str, told: &mut Vec<Told>) {
        let message = message.to_string();
        if !self.open {
            self.open = true;
            told.push(Told::TextStarted { message: message.clone(), speaker: Speaker::Agent });
        }
        self.told.push_str(text);
        told.push(Told::Text { message, speaker: Speaker::Agent, text: text.to_string() });
    }

    fn withdraw(&mut self, message: &str, told: &mut Vec<Told>) {
        self.break_off(message, told);
        told.push(Told::Withdrawn { message: message.to_string() });
        self.again = None;
        self.told.clear();
    }

    fn break_off(&mut self, message: &str, told: &mut Vec<Told>) {
        if std::mem::take(&mut self.open) {
            told.push(Told::TextEnded { message: message.to_string(), speaker: Speaker::Agent });
        }
    }

    /// The reply is whole.
    fn close(&mut self, message: &str, told: &mut Vec<Told>) {
        if let Some(confirmed) = self.again.filter(|confirmed| *confirmed < self.told.len()) {
            let whole = self.told[..confirmed].to_string();
            self.withdraw(message, told);
            if !whole.is_empty() {
                self.tell(message, &whole, told);
            }
        }
        self.again = None;
        self.break_off(message, told);
    }

    fn close_reasoning(&mut self, message: &str, told: &mut Vec<Told>) {
        if self.reasoning == Reasoning::Open {
            told.push(Told::ReasoningEnded { message: reasoning_id(message) });
            self.reasoning = Reasoning::Closed;
        }
    }
}

/// A call that was refused before it was made: it is told with its answer.
fn refusal(made: &MoveCall, outcome: &ToolOutcome, message: String, speaker: Speaker) -> [Told; 2] {
    let called = Told::Called {
        call: made.tool_call_id.clone(),
        tool: made.tool_id.clone(),
        arguments: arguments_of(&made.input),
        message,
        speaker: speaker.clone(),
        by_client: false,
    };
    let content = match &outcome.result {
        Ok(value) => content_of(value),
        Err(error) => error.message.clone(),
    };
    let failed = outcome.result.is_err();
    [called, Told::Answered { call: made.tool_call_id.clone(), content, failed, speaker }]
}

/// Arguments as a model writes them: JSON, or the text that was not JSON.
pub fn arguments_of(input: &Value) -> String {
    let call = hotseat_model::ToolCall { id: String::new(), name: String::new(), arguments: input.clone() };
    call.arguments_text()
}

/// The id of the message with what the model thought.
fn reasoning_id(message: &str) -> String {
    format!("{message}-reasoning")
}

/// The name of one attempt at a model call, for instance `turn 1, model call 2`.
fn step(conversation: &ConversationId, turn: &str, call: u32, attempt: u32) -> String {
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
        AssistantMessage, Event, Execution, ExecutionKind, LlmCallCompleted, Offset, Origin, TurnCompletion,
    };

    use super::*;
    use crate::conversation::{Conversation, Opening};
    use crate::definition::{Definitions, Limits, persona};

    fn translator() -> Translator {
        let (definitions, agent) = Definitions::of(&persona("Helper")).unwrap();
        let opening = Opening { conversation: "c".into(), agent, parent: None };
        let conversation = Conversation::new(Arc::new(definitions), Limits::default(), opening);
        let own = BTreeSet::from(["c-t1".into()]);
        Translator::new(conversation.state(), &own, &BTreeSet::new())
    }

    fn delta(conversation: &str, attempt: u32, delta: Delta) -> Signal {
        let at = ModelAddress { turn: "c-t1".into(), call: 1, attempt };
        Signal::Delta { conversation: conversation.into(), at, delta }
    }

    fn says(attempt: u32, text: &str) -> Signal {
        delta("c", attempt, Delta::Text { text: text.to_string() })
    }

    fn event(conversation: &str, payload: impl Into<Payload>) -> Signal {
        let event = Event { sequence: 1, offset: Offset(0), timestamp: 0, payload: payload.into() };
        let execution =
            Execution { id: conversation.into(), kind: ExecutionKind::Conversation, parent: None };
        Signal::Event(Arc::new(Record { event, execution: Some(execution) }))
    }

    fn replied() -> Signal {
        event(
            "c",
            LlmCallCompleted {
                turn_id: "c-t1".into(),
                call_no: 1,
                input_tokens: None,
                output_tokens: 1,
                has_tool_use: false,
                stop_reason: "end_turn".into(),
                duration_ms: 0,
            },
        )
    }

    fn said(content: &str) -> Signal {
        event(
            "c",
            AssistantMessage {
                turn_id: "c-t1".into(),
                message_id: "c-m2".into(),
                content: content.to_string(),
                has_tool_use: Some(false),
                started_us: None,
                origin: Origin::Stream,
                subagent: None,
            },
        )
    }

    /// What a client that takes in these signals has in the end, and how often something was taken back.
    fn taken_in(signals: &[Signal]) -> (String, usize) {
        let mut translator = translator();
        let (mut text, mut open, mut withdrawn) = (String::new(), false, 0);
        for told in signals.iter().flat_map(|signal| translator.take(signal)) {
            match told {
                Told::TextStarted { .. } => assert!(!std::mem::replace(&mut open, true), "begun twice"),
                Told::Text { text: more, .. } => {
                    assert!(open, "more of a message that is not open");
                    text.push_str(&more);
                }
                Told::TextEnded { .. } => assert!(std::mem::replace(&mut open, false), "ended twice"),
                Told::Withdrawn { .. } => {
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
    fn words_are_told_once_however_they_come() {
        let restart = || delta("c", 1, Delta::Restarted);
        for (signals, withdrawn) in [
            (vec![says(1, "Good "), says(1, "day"), replied(), said("Good day")], 0),
            // Nothing was streamed.
            (vec![replied(), said("Good day")], 0),
            // The model was asked again by itself, and by the machine.
            (
                vec![
                    says(1, "Good "),
                    restart(),
                    says(1, "Go"),
                    says(1, "od day"),
                    replied(),
                    said("Good day"),
                ],
                0,
            ),
            (vec![says(1, "Good "), says(2, "Good day"), replied(), said("Good day")], 0),
            (vec![says(1, "Good day to"), says(2, "Good day"), replied(), said("Good day")], 1),
            (vec![says(1, "Hello"), says(2, "Good day"), replied(), said("Good day")], 1),
            (vec![says(1, "Go away"), says(2, "Go"), says(2, "od day"), replied(), said("Good day")], 1),
            (
                vec![
                    says(1, "Hello"),
                    restart(),
                    says(1, "Hel"),
                    restart(),
                    says(1, "Good day"),
                    replied(),
                    said("Good day"),
                ],
                1,
            ),
            // A watcher that began in the middle.
            (vec![says(1, "day"), replied(), said("Good day")], 1),
        ] {
            assert_eq!(taken_in(&signals), ("Good day".to_string(), withdrawn), "{signals:?}");
        }
    }

    #[test]
    fn a_reply_that_says_nothing_after_all_takes_its_words_back() {
        assert_eq!(
            taken_in(&[says(1, "Hello"), delta("c", 1, Delta::Restarted), replied()]),
            (String::new(), 1)
        );
    }

    #[test]
    fn other_conversations_are_not_heard() {
        let mut translator = translator();
        let ended = |conversation: &str| {
            let ended = TurnCompletion { turn_id: "c-t1".into(), issues: None };
            event(conversation, Payload::TurnCompleted(ended))
        };
        assert_eq!(translator.take(&delta("c-t1-k1", 1, Delta::Text { text: "psst".to_string() })), []);
        assert_eq!(translator.take(&ended("c-t1-k1")), []);
        assert!(translator.is_open());
        assert_eq!(translator.take(&ended("c")), [Told::TurnEnded { failure: None }]);
        assert!(!translator.is_open());
    }
}
