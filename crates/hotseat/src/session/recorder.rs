//! The recorder numbers what happens, stamps it, takes secrets out and keeps the conversation up to date.

use std::time::Duration;

use hotseat_trace::{Conversation, Event, Execution, Millis, Offset, Payload, Record, TurnSpent};

use super::clock::Clock;
use super::nesting::flat;
use super::redact::Redactor;
use super::spending::{Meter, Prices};

/// Writes the trace of one conversation.
#[derive(Debug)]
pub struct Recorder {
    clock: Clock,
    redactor: Redactor,
    sequence: u64,
    conversation: Conversation,
    /// The events, where somebody wants them after the conversation.
    records: Option<Vec<Record>>,
    meter: Meter,
}

impl Recorder {
    /// A recorder with an empty trace. `keep_events` keeps the events themselves and not only what they amount to.
    pub fn new(redactor: Redactor, keep_events: bool) -> Self {
        let records = keep_events.then(Vec::new);
        Recorder {
            clock: Clock::start(),
            redactor,
            sequence: 0,
            conversation: Conversation::default(),
            records,
            meter: Meter::default(),
        }
    }

    /// The same, which knows what tokens cost.
    #[must_use]
    pub fn with_prices(mut self, prices: Prices) -> Self {
        self.meter = Meter::new(prices);
        self
    }

    /// What has passed since the session was opened.
    pub fn now(&self) -> Offset {
        self.clock.now().0
    }

    /// Lets time pass until `offset` without waiting for it, where that is not over yet: what is served from a
    /// recording takes as long as it once took.
    pub fn skip_to(&mut self, offset: Offset) {
        self.clock.skip_to(offset);
    }

    /// It is then, and stays so until something is added that happened later.
    pub fn stand_at(&mut self, offset: Offset, wall: Millis) {
        self.clock.stand_at(offset, wall);
    }

    /// How much time has passed that nobody has waited for.
    pub fn skipped(&self) -> Duration {
        self.clock.skipped()
    }

    /// Adds an event that happens now.
    pub fn emit(&mut self, payload: impl Into<Payload>) {
        let payload = payload.into();
        self.meter.see(&payload);
        // What a turn has spent is known when it ends, and is part of it.
        if let Payload::TurnCompleted(_) | Payload::TurnFailed(_) = &payload
            && let Some((turn_id, spent)) = payload.turn_id().cloned().zip(self.meter.take())
        {
            self.add(TurnSpent { turn_id, spent }.into());
        }
        self.add(payload);
    }

    /// Adds an event that happens now in something that has a trace of its own: a conversation that the agent holds
    /// with another one, or a run of a workflow. It is kept, and is no part of what was said and done here.
    pub fn emit_within(&mut self, execution: Execution, payload: impl Into<Payload>) {
        let payload = payload.into();
        self.meter.see(&payload);
        let event = self.event(payload);
        self.keep(event, Some(execution));
    }

    /// Adds an event that happened before, as it was and when it was. What was spent is among such events.
    pub fn emit_again(&mut self, record: Record) {
        let Record { event, execution } = record;
        self.clock.stand_at(event.offset, event.timestamp);
        let event = self.event(event.payload);
        if execution.is_none() {
            self.conversation.apply(&event);
        }
        self.keep(event, execution);
    }

    /// Adds what was recorded elsewhere meanwhile, up to now, and when it happened there; as something with a trace of its
    /// own, where it is one.
    pub fn emit_beside(&mut self, other: Recorder, within: Option<&Execution>) {
        let (now, ended) = (self.clock.now(), other.now());
        for Record { event, execution } in other.finish().1 {
            let ago = ended.0.saturating_sub(event.offset.0);
            let wall = now.1 - Millis::try_from(ago / 1000).unwrap_or(0);
            self.clock.stand_at(Offset(now.0.0.saturating_sub(ago)), wall);
            match (execution.as_ref().or(within), event.payload) {
                // Prices are known here and not there.
                (None, Payload::TurnSpent(_)) => {}
                (None, payload) => self.emit(payload),
                (Some(execution), payload) => self.emit_within(execution.clone(), payload),
            }
        }
        self.clock.go_on();
    }

    fn add(&mut self, payload: Payload) {
        let event = self.event(payload);
        self.conversation.apply(&event);
        self.keep(event, None);
    }

    fn event(&mut self, payload: Payload) -> Event {
        let (offset, timestamp) = self.clock.now();
        self.sequence += 1;
        let payload = self.redactor.payload(payload);
        flat(Event { sequence: self.sequence, offset, timestamp, payload })
    }

    fn keep(&mut self, event: Event, execution: Option<Execution>) {
        if let Some(records) = &mut self.records {
            records.push(Record { event, execution });
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
    pub fn finish(self) -> (Conversation, Vec<Record>) {
        let mut records = self.records.unwrap_or_default();
        self.redactor.pieces(&mut records);
        (self.conversation, records)
    }
}
