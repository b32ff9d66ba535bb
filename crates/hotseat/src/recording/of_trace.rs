//! From the trace of a conversation to the turns of a recording.
//!
//! The events give the order and the times; what they came to is taken from the conversation that is folded from
//! them, so that a call has the arguments that were known of it in the end.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::{self as trace, CallingMessages, Conversation, Offset, Payload, Record, TurnOutcome};
use serde_json::Value;

use super::{Arguments, Event, Turn, What};
use crate::session::ATTACHED;

/// The turns of a conversation, from its events and what they amount to.
pub fn turns_of(events: &[Record], conversation: &Conversation) -> Vec<Turn> {
    let mut turns: Vec<Told<'_>> = conversation.turns.iter().map(Told::begin).collect();
    let mut places: HashMap<Arc<str>, usize> = HashMap::new();
    let mut known = Known::default();
    for record in events.iter().filter(|record| record.execution.is_none()) {
        if let Payload::TurnStarted(start) = &record.payload {
            // The turn of an agent that was looped in is part of the one that called.
            let place = match start.caller_turn_id.as_ref().and_then(|caller| places.get(caller)) {
                Some(&caller) => caller,
                None => places.values().max().map_or(0, |last| last + 1),
            };
            places.insert(start.turn_id.clone(), place);
        }
        let place = record.payload.turn_id().and_then(|turn| places.get(turn));
        if let Some(told) = place.and_then(|&place| turns.get_mut(place)) {
            told.take(record, conversation, &mut known);
        }
    }
    turns.into_iter().map(Told::end).collect()
}

/// The calls and interrupts that are told, to which later events may refer.
#[derive(Default)]
struct Known {
    calls: HashSet<Arc<str>>,
    interrupts: HashSet<Arc<str>>,
}

/// A turn as far as its events have told it.
struct Told<'c> {
    turn: &'c trace::Turn,
    calling: CallingMessages<'c>,
    events: Vec<Event>,
    /// How many of its messages have come.
    messages: usize,
    /// Where its state stands among the events.
    state: Option<usize>,
}

impl<'c> Told<'c> {
    fn begin(turn: &'c trace::Turn) -> Self {
        Told { turn, calling: turn.calling_messages(), events: Vec::new(), messages: 0, state: None }
    }

    fn take(&mut self, record: &Record, conversation: &Conversation, known: &mut Known) {
        let Some((what, started)) = self.what(&record.payload, conversation, known) else { return };
        let at = self.since(record.offset);
        let started = started.map(|started| self.since(started)).filter(|started| *started < at);
        // Only the state that was seen last is told, where it was seen.
        if let (What::State { .. }, Some(place)) = (&what, self.state) {
            self.events.remove(place);
        }
        if matches!(what, What::State { .. }) {
            self.state = Some(self.events.len());
        }
        self.events.push(Event { at: Some(at), started, what, place: None });
    }

    fn since(&self, offset: Offset) -> Duration {
        if offset < self.turn.started { Duration::ZERO } else { offset - self.turn.started }
    }

    /// What an event is in a recording, and when it began. Most are the inner workings of an agent or a protocol.
    fn what(
        &mut self,
        payload: &Payload,
        conversation: &Conversation,
        known: &mut Known,
    ) -> Option<(What, Option<Offset>)> {
        let text = |text: &Option<Arc<str>>| text.as_ref().map(|text| text.to_string());
        let what = match payload {
            Payload::AssistantMessage(_) => {
                let message = self.turn.messages.get(self.messages)?;
                self.messages += 1;
                let what = What::Message {
                    text: message.content.clone(),
                    calls_tools: self.calling.calls_tools(message),
                    subagent: text(&message.subagent),
                };
                return Some((what, message.started)).filter(|_| !message.content.is_empty());
            }
            Payload::ReasoningMessage(thought) if thought.content.is_empty() => return None,
            Payload::ReasoningMessage(thought) => What::Reasoning { text: thought.content.clone() },
            Payload::ToolInvoked(invoked) => {
                let call = conversation.call(&invoked.tool_call_id)?;
                if !known.calls.insert(call.id.clone()) {
                    return None;
                }
                let what = What::ToolCall {
                    id: call.id.to_string(),
                    tool: call.name.to_string(),
                    arguments: arguments(call),
                    origin: call.origin,
                    subagent: text(&call.subagent),
                };
                return Some((what, Some(call.started)));
            }
            // What belongs to nothing that is told has changed nothing.
            Payload::ToolCompleted(done) if !known.calls.contains(&done.tool_call_id) => return None,
            Payload::ToolFailed(failed) if !known.calls.contains(&failed.tool_call_id) => return None,
            Payload::InterruptAnswered(answered) if !known.interrupts.contains(&answered.interrupt_id) => {
                return None;
            }
            Payload::ToolCompleted(done) => What::ToolResult {
                id: done.tool_call_id.to_string(),
                result: Ok(done.output.clone()),
                origin: done.origin,
            },
            Payload::ToolFailed(failed) => What::ToolResult {
                id: failed.tool_call_id.to_string(),
                result: Err(failed.error.message.clone()),
                origin: failed.origin,
            },
            Payload::InterruptRaised(raised) => {
                known.interrupts.insert(raised.interrupt_id.clone());
                What::Interrupt {
                    id: raised.interrupt_id.to_string(),
                    reason: raised.reason.clone(),
                    message: raised.message.clone(),
                    tool: tool_of(raised, conversation),
                    tool_call_id: text(&raised.tool_call_id),
                    value: raised.value.clone(),
                }
            }
            Payload::InterruptAnswered(answered) => What::InterruptAnswer {
                id: answered.interrupt_id.to_string(),
                payload: match &*answered.status {
                    "cancelled" => None,
                    _ => Some(answered.payload.clone().unwrap_or_default()),
                },
            },
            // A state may be large and its changes many: the one that is kept is copied at the end.
            Payload::StateSnapshot(_) | Payload::StateDelta(_) => {
                self.turn.state.as_ref()?;
                What::State { state: Value::Null }
            }
            Payload::AwaitingInput(said) => {
                What::AwaitingInput { awaiting: said.awaiting, hint: said.hint.clone() }
            }
            // What was attached is told with what the user said.
            Payload::Note(note) if self.tells_attachment(&note.message) => return None,
            Payload::Note(note) => What::Note { text: note.message.clone() },
            Payload::AgentRunFinished(finished) => What::Finished {
                outcome: finished.outcome.to_string(),
                result: finished.result.clone(),
                usage: finished.usage.clone(),
                finish_reason: text(&finished.finish_reason),
            },
            Payload::AgentRunFailed(failed) => {
                What::Error { message: failed.error.message.clone(), code: failed.error.code.clone() }
            }
            _ => return None,
        };
        Some((what, None))
    }

    fn tells_attachment(&self, note: &str) -> bool {
        let name = note.strip_prefix(ATTACHED);
        name.is_some_and(|name| self.turn.attachments.iter().any(|attached| attached == name))
    }

    fn end(mut self) -> Turn {
        if let (Some(place), Some(state)) = (self.state, &self.turn.state) {
            self.events[place].what = What::State { state: (**state).clone() };
        }
        let last = self.events.last().and_then(|last| last.at);
        let error = self.ending_error();
        let failed = match (&self.turn.outcome, error) {
            (TurnOutcome::Completed, error) => {
                self.events.extend(error.map(noted));
                None
            }
            (TurnOutcome::Failed(_), Some(error)) => {
                // Nothing comes behind the error that ends a turn.
                self.events.push(Event { at: error.at.max(last), ..error });
                None
            }
            (TurnOutcome::Failed(error), None) if error.message.trim().is_empty() => {
                Some("it failed".to_string())
            }
            (TurnOutcome::Failed(error), None) => Some(error.message.clone()),
            (TurnOutcome::Open, error) => {
                self.events.extend(error.map(noted));
                Some("it was given up".to_string())
            }
        };
        // Why the last reply ended is known of agents in this process without an event of its own.
        let finished = |event: &Event| matches!(event.what, What::Finished { .. });
        let finish_reason = self.turn.finish_reason.as_ref().filter(|_| !self.events.iter().any(finished));
        if (self.events.is_empty() || finish_reason.is_some()) && failed.is_none() {
            let outcome = "success".to_string();
            let finish_reason = finish_reason.map(|reason| reason.to_string());
            let ended = What::Finished { outcome, result: None, usage: None, finish_reason };
            self.events.push(Event::untimed(ended));
        }
        self.events.sort_by_key(|event| event.at);
        Turn {
            user: self.turn.user.clone().unwrap_or_default(),
            attachments: self.turn.attachments.clone(),
            // What came after the turn had ended, or in one that never did, is told with it.
            duration: Some(self.turn.duration().max(last.unwrap_or_default())),
            unfinished: failed,
            events: self.events,
            place: None,
        }
    }
}

impl Told<'_> {
    /// The first error that the agent told of itself, which is taken out. Any other one becomes a note.
    fn ending_error(&mut self) -> Option<Event> {
        let place = self.events.iter().position(|event| matches!(event.what, What::Error { .. }))?;
        let error = self.events.remove(place);
        for event in &mut self.events[place..] {
            if matches!(event.what, What::Error { .. }) {
                *event = noted(event.clone());
            }
        }
        Some(error)
    }
}

/// An error that did not end its turn, as a note.
fn noted(event: Event) -> Event {
    let text = match &event.what {
        What::Error { message, code: Some(code) } => {
            format!("the agent told of an error: {message} ({code})")
        }
        What::Error { message, code: None } => format!("the agent told of an error: {message}"),
        _ => return event,
    };
    Event { what: What::Note { text }, ..event }
}

fn arguments(call: &trace::ToolCall) -> Arguments {
    match (&call.arguments, call.arguments_broken) {
        (Value::Null, _) => Arguments::None,
        (Value::String(text), true) => Arguments::Broken(text.clone()),
        (value, _) => Arguments::Json(value.clone()),
    }
}

/// The tool whose call an interrupt holds up: that of the call, or as the agent says.
fn tool_of(raised: &trace::InterruptRaised, conversation: &Conversation) -> Option<String> {
    let call = raised.tool_call_id.as_ref().and_then(|id| conversation.call(id));
    let said = raised.value.get("toolName").and_then(|name| name.as_str());
    call.map(|call| call.name.to_string()).or_else(|| said.map(str::to_string))
}
