//! The recorder numbers what happens, stamps it, takes secrets out and keeps the conversation up to date.

use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::{Conversation, Event, Execution, Millis, Offset, Payload, Record, TurnSpent};

use super::clock::Clock;
use super::nesting::flat;
use super::redact::Redactor;
use super::spending::{Meter, Prices};
use super::traffic::{EventSize, TrafficMeter};

/// Writes the trace of one conversation.
#[derive(Debug)]
pub struct Recorder {
    clock: Clock,
    redactor: Redactor,
    sequence: u64,
    /// When the last event happened.
    latest: Offset,
    conversation: Conversation,
    /// The events, where somebody wants them after the conversation.
    records: Option<Vec<Record>>,
    meter: Meter,
    traffic: Arc<TrafficMeter>,
}

impl Recorder {
    /// A recorder with an empty trace. `keep_events` keeps the events themselves and not only what they amount to.
    pub fn new(redactor: Redactor, keep_events: bool) -> Self {
        let records = keep_events.then(Vec::new);
        Recorder {
            clock: Clock::start(),
            redactor,
            sequence: 0,
            latest: Offset::default(),
            conversation: Conversation::default(),
            records,
            meter: Meter::default(),
            traffic: Arc::default(),
        }
    }

    /// The same, which knows what tokens cost.
    #[must_use]
    pub fn with_prices(mut self, prices: Prices) -> Self {
        self.meter = Meter::new(prices);
        self
    }

    /// The same, which counts what the agent sends and does with this meter.
    #[must_use]
    pub fn with_traffic(mut self, traffic: TrafficMeter) -> Self {
        self.traffic = Arc::new(traffic);
        self
    }

    /// What the agent sends and does, as it is counted.
    pub fn traffic(&self) -> &Arc<TrafficMeter> {
        &self.traffic
    }

    /// Events that are added from now on arrived at `at`, however long they have waited to be taken in. An event never
    /// happens before one that was added earlier.
    pub fn as_of(&mut self, at: tokio::time::Instant) {
        self.clock.as_of(at.into_std(), self.latest);
    }

    /// Events that are added from now on happen when they are added.
    pub fn as_of_now(&mut self) {
        self.clock.as_of_now();
    }

    /// What has passed since the session was opened, up to now or to the arrival of what is taken in.
    pub fn now(&self) -> Offset {
        self.clock.now().0
    }

    /// What has passed since the session was opened, and the wall time that goes with it.
    pub fn time(&self) -> (Offset, Millis) {
        self.clock.now()
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
        let now = self.now();
        self.emit_at(now, payload);
    }

    /// Adds an event that happened at `at` and is known only now.
    pub fn emit_at(&mut self, at: Offset, payload: impl Into<Payload>) {
        let payload = payload.into();
        self.meter.see(&payload);
        // What a turn has spent is known when it ends, and is part of it.
        if let Payload::TurnCompleted(_) | Payload::TurnFailed(_) = &payload
            && let Some((turn_id, spent)) = payload.turn_id().cloned().zip(self.meter.take())
        {
            self.add(at, TurnSpent { turn_id, spent }.into());
        }
        self.add(at, payload);
    }

    /// Adds an event that happens now in something that has a trace of its own: a conversation that the agent holds
    /// with another one, or a run of a workflow. It is kept, and is no part of what was said and done here.
    pub fn emit_within(&mut self, execution: Execution, payload: impl Into<Payload>) {
        let payload = payload.into();
        self.meter.see(&payload);
        if let Some(event) = self.event(self.now(), payload) {
            self.keep(event, Some(execution));
        }
    }

    /// Adds an event that happened before, as it was and when it was. What was spent is among such events.
    pub fn emit_again(&mut self, record: Record) {
        let Record { event, execution } = record;
        self.clock.stand_at(event.offset, event.timestamp);
        let Some(event) = self.event(self.now(), event.payload) else { return };
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

    fn add(&mut self, at: Offset, payload: Payload) {
        let Some(event) = self.event(at, payload) else { return };
        self.conversation.apply(&event);
        self.keep(event, None);
    }

    /// The next event; none where the agent is far beyond one of its limits.
    fn event(&mut self, at: Offset, payload: Payload) -> Option<Event> {
        let (now, wall) = self.clock.now();
        let offset = at.min(now);
        let timestamp = wall - Millis::try_from((now.0 - offset.0) / 1000).unwrap_or(0);
        let payload = self.redactor.payload(payload);
        let is_call = matches!(payload, Payload::ToolInvoked(_));
        // What was received is kept as such only where somebody asks for it, and has been counted.
        let is_raw = matches!(payload, Payload::Raw(_));
        let (event, size) = flat(Event { sequence: self.sequence + 1, offset, timestamp, payload });
        if !self.traffic.record(if is_raw { EventSize::default() } else { size }, is_call) {
            return None;
        }
        (self.sequence, self.latest) = (self.sequence + 1, self.latest.max(offset));
        Some(event)
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

#[cfg(test)]
mod tests {
    use hotseat_trace::{TurnCompleted, TurnStarted};
    use tokio::time::Instant;

    use super::*;

    #[test]
    fn events_have_the_time_of_their_arrival_and_never_go_back() {
        let opened = Instant::now();
        let mut recorder = Recorder::new(Redactor::default(), true);
        let begins = |turn: &str| TurnStarted {
            turn_id: turn.into(),
            conversation_id: "c".into(),
            caller_id: "hotseat".into(),
            caller_type: "user".into(),
        };
        let ends = |turn: &str| TurnCompleted { turn_id: turn.into() };
        recorder.emit(begins("1"));
        // What arrived in the meantime is taken in later.
        let arrived = opened + Duration::from_secs(5);
        recorder.as_of(arrived);
        recorder.emit(ends("1"));
        assert_eq!(recorder.now(), recorder.latest);
        // Something that had arrived before is not told as if it had happened before its cause.
        recorder.as_of(opened + Duration::from_secs(2));
        recorder.emit(begins("2"));
        let (_, records) = recorder.finish();
        let at: Vec<Duration> = records.iter().map(|record| record.offset - Offset::default()).collect();
        assert!(at[0] < Duration::from_secs(1), "{at:?}");
        assert!(at[1] > Duration::from_secs(4) && at[1] <= Duration::from_secs(5), "{at:?}");
        assert_eq!(at[2], at[1], "{at:?}");
        assert!(records.windows(2).all(|pair| pair[0].timestamp <= pair[1].timestamp));
    }
}
