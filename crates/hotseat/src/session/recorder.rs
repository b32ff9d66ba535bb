//! The recorder numbers what happens, stamps it, takes secrets out and keeps the conversation up to date.

use hotseat_trace::{Conversation, Event, Offset, Payload};

use super::clock::Clock;
use super::redact::Redactor;

/// Writes the trace of one conversation.
#[derive(Debug)]
pub struct Recorder {
    clock: Clock,
    redactor: Redactor,
    sequence: u64,
    conversation: Conversation,
    /// The events, where somebody wants them after the conversation.
    events: Option<Vec<Event>>,
}

impl Recorder {
    /// A recorder with an empty trace. `keep_events` keeps the events themselves and not only what they amount to.
    pub fn new(redactor: Redactor, keep_events: bool) -> Self {
        let events = keep_events.then(Vec::new);
        Recorder {
            clock: Clock::start(),
            redactor,
            sequence: 0,
            conversation: Conversation::default(),
            events,
        }
    }

    /// What has passed since the session was opened.
    pub fn now(&self) -> Offset {
        self.clock.now().0
    }

    /// Adds an event that happens now.
    pub fn emit(&mut self, payload: impl Into<Payload>) {
        let (offset, timestamp) = self.clock.now();
        self.sequence += 1;
        let payload = self.redactor.payload(payload.into());
        let event = Event { sequence: self.sequence, offset, timestamp, payload };
        self.conversation.apply(&event);
        if let Some(events) = &mut self.events {
            events.push(event);
        }
    }

    /// What the events amount to so far.
    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// The secrets this recorder takes out.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// What the events amount to, and the events where they were kept.
    pub fn finish(self) -> (Conversation, Vec<Event>) {
        let mut events = self.events.unwrap_or_default();
        self.redactor.pieces(&mut events);
        (self.conversation, events)
    }
}
