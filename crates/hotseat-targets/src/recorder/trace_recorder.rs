//! Records events: numbers, timestamps and redacts them, and updates the conversation.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hotseat_document::json::JsonSize;
use hotseat_trace::{
    CallVisibility, Event, EventRecord, ExecutionInfo, Millis, Payload, TimeOffset, TracedConversation,
    TurnIssues, TurnSpent,
};

use super::clock::SessionClock;
use super::depth_limit::limit_depth;
use super::inbox::EventInbox;
use super::redact::SecretRedactor;
use super::shared_events::SharedEvents;
use super::spending::{ModelPrices, SpendingMeter};
use super::traffic::TrafficMeter;

/// Records the trace of one conversation.
#[derive(Debug)]
#[must_use]
pub struct TraceRecorder {
    clock: SessionClock,
    redactor: SecretRedactor,
    sequence: u64,
    /// Offset of the last event.
    latest: TimeOffset,
    conversation: TracedConversation,
    /// The conversation with its secrets, if it has any. It is never written.
    original: Option<Box<TracedConversation>>,
    /// The events, if they are to be kept.
    records: Option<SharedEvents>,
    pub(crate) meter: SpendingMeter,
    /// Issues of the current turn that the agent itself reports.
    turn_issues: Option<TurnIssues>,
    traffic: Arc<TrafficMeter>,
    inbox: EventInbox,
}

impl TraceRecorder {
    /// Creates a recorder with an empty trace. `keep_events` keeps the events themselves beside the
    /// conversation.
    pub fn new(redactor: SecretRedactor, keep_events: bool) -> Self {
        let records = keep_events.then(SharedEvents::default);
        TraceRecorder {
            clock: SessionClock::start(),
            redactor,
            sequence: 0,
            latest: TimeOffset::default(),
            conversation: TracedConversation::default(),
            original: None,
            records,
            meter: SpendingMeter::default(),
            turn_issues: None,
            traffic: Arc::default(),
            inbox: EventInbox::default(),
        }
    }

    /// Sets the token prices used to compute costs.
    pub fn with_prices(mut self, prices: ModelPrices) -> Self {
        self.meter = SpendingMeter::new(prices);
        self
    }

    /// Sets what shows the tool calls of the agent.
    pub fn set_call_visibility(&mut self, calls: CallVisibility) {
        self.conversation.call_visibility = calls;
        if let Some(original) = &mut self.original {
            original.call_visibility = calls;
        }
    }

    /// Sets the names of the MCP servers of the test.
    pub fn set_test_servers(&mut self, names: Arc<[Arc<str>]>) {
        if let Some(original) = &mut self.original {
            original.test_servers = names.clone();
        }
        self.conversation.test_servers = names;
    }

    /// Sets the meter that counts the agent's traffic.
    pub fn with_traffic(mut self, traffic: TrafficMeter) -> Self {
        self.traffic = Arc::new(traffic);
        self
    }

    /// Returns the meter of the agent's traffic.
    pub fn traffic(&self) -> &Arc<TrafficMeter> {
        &self.traffic
    }

    /// Returns the inbox for events that are observed beside the agent's protocol.
    pub fn inbox(&self) -> &EventInbox {
        &self.inbox
    }

    /// Records all events of the inbox.
    pub fn flush_inbox(&mut self) {
        self.record_inbox(None);
    }

    /// Records the events of the inbox that arrived until `latest`.
    fn record_inbox(&mut self, latest: Option<TimeOffset>) {
        let latest = latest.map(|latest| self.clock.instant_of(latest));
        while let Some((at, payload)) = self.inbox.pop_until(latest) {
            let at = self.clock.offset_of(at);
            self.meter.observe(&payload);
            self.record(at, payload, None, true);
        }
    }

    /// Sets the arrival time of the following events to `at`, regardless of when they are processed. Times
    /// never decrease.
    pub fn set_arrival(&mut self, at: tokio::time::Instant) {
        self.clock.set_arrival(at.into_std(), self.latest);
    }

    /// Returns the time of the session at an instant.
    pub fn offset_of(&self, at: tokio::time::Instant) -> TimeOffset {
        self.clock.offset_of(at.into_std())
    }

    /// Sets the time of the following events, like [`TraceRecorder::set_arrival`].
    pub fn set_arrival_offset(&mut self, at: TimeOffset) {
        self.clock.set_arrival(self.clock.instant_of(at), self.latest);
    }

    /// Returns the time of the latest event.
    pub fn latest(&self) -> TimeOffset {
        self.latest
    }

    /// Makes the following events use the current time again.
    pub fn clear_arrival(&mut self) {
        self.clock.clear_arrival();
    }

    /// Returns the time since the session was opened, or the arrival time if one is set.
    pub fn now(&self) -> TimeOffset {
        self.clock.now().0
    }

    /// Returns the time since the session was opened and the matching wall time.
    pub fn time(&self) -> (TimeOffset, Millis) {
        self.clock.now()
    }

    /// Advances the clock to `offset` without waiting, if it is in the future. Replayed recordings use it to
    /// keep their durations.
    pub fn advance_to(&mut self, offset: TimeOffset) {
        self.clock.advance_to(offset);
    }

    /// Sets the clock to a recorded time; it stays there until a later event is replayed.
    pub fn set_time(&mut self, offset: TimeOffset, wall: Millis) {
        self.clock.set_time(offset, wall);
    }

    /// Returns the total time skipped by [`TraceRecorder::advance_to`].
    pub fn skipped(&self) -> Duration {
        self.clock.skipped()
    }

    /// Adds an event at the current time.
    pub fn emit(&mut self, payload: impl Into<Payload>) {
        let now = self.now();
        self.emit_at(now, payload);
    }

    /// Adds an event that happened at `at` but is known only now.
    pub fn emit_at(&mut self, at: TimeOffset, payload: impl Into<Payload>) {
        let mut payload = payload.into();
        self.meter.observe(&payload);
        match &mut payload {
            Payload::TurnCompleted(completion) => completion.issues = self.turn_issues.take(),
            Payload::TurnFailed(_) => self.turn_issues = None,
            _ => {}
        }
        // Usage of a turn is known at its end and belongs to the turn.
        if let Payload::TurnCompleted(_) | Payload::TurnFailed(_) = &payload
            && let Some((turn_id, spent)) = payload.turn_id().cloned().zip(self.meter.take())
        {
            self.append(at, TurnSpent { turn_id, spent }.into());
        }
        self.append(at, payload);
    }

    /// Sets the issues with which the current turn will complete.
    #[cfg(feature = "embedded")]
    pub(crate) fn set_turn_issues(&mut self, issues: Option<TurnIssues>) {
        self.turn_issues = issues;
    }

    /// Adds an event of an execution with its own trace: a conversation between agents, or a workflow run. It
    /// is stored, but is not part of this conversation.
    pub fn emit_within(&mut self, execution: ExecutionInfo, payload: impl Into<Payload>) {
        let payload = payload.into();
        self.meter.observe(&payload);
        self.record(self.now(), payload, Some(execution), false);
    }

    /// Replays a recorded event with its original time. Recorded usage is replayed too and not computed
    /// again.
    pub fn replay(&mut self, record: EventRecord) {
        let EventRecord { event, execution } = record;
        self.clock.set_time(event.offset, event.timestamp);
        self.record(self.now(), event.payload, execution, false);
    }

    /// Merges the events of another recorder at the times when they happened there, optionally as an
    /// execution with its own trace.
    pub fn merge(&mut self, other: TraceRecorder, within: Option<&ExecutionInfo>) {
        let (now, ended) = (self.clock.now(), other.now());
        for EventRecord { event, execution } in other.finish().1 {
            let ago = ended.0.saturating_sub(event.offset.0);
            let wall = now.1 - Millis::try_from(ago / 1000).unwrap_or(0);
            self.clock.set_time(TimeOffset(now.0.0.saturating_sub(ago)), wall);
            match (execution.as_ref().or(within), event.payload) {
                // Only this recorder has the prices.
                (None, Payload::TurnSpent(_)) => {}
                (None, payload) => self.emit(payload),
                (Some(execution), payload) => self.emit_within(execution.clone(), payload),
            }
        }
        self.clock.resume();
    }

    fn append(&mut self, at: TimeOffset, payload: Payload) {
        self.record_inbox(Some(at));
        self.record(at, payload, None, false);
    }

    /// Records the next event, unless the agent is far beyond a limit. Events of the inbox are counted already. Payloads are
    /// large, so this moves each once.
    fn record(
        &mut self,
        at: TimeOffset,
        payload: Payload,
        execution: Option<ExecutionInfo>,
        is_counted: bool,
    ) {
        let (now, wall) = self.clock.now();
        let offset = at.min(now);
        let timestamp = wall - Millis::try_from((now.0 - offset.0) / 1000).unwrap_or(0);
        let event = Event { sequence: self.sequence + 1, offset, timestamp, payload };
        let mut record = EventRecord { event, execution };
        let original = self.redactor.payload(&mut record.event.payload);
        let is_call = matches!(record.payload, Payload::ToolInvoked(_));
        // Raw events are kept only on request, and their bytes have been counted already.
        let is_raw = matches!(record.payload, Payload::Raw(_));
        let size = limit_depth(&mut record.event);
        let is_recorded =
            is_counted || self.traffic.count_event(if is_raw { JsonSize::default() } else { size }, is_call);
        if !is_recorded {
            return;
        }
        (self.sequence, self.latest) = (self.sequence + 1, self.latest.max(offset));
        if record.execution.is_none() {
            if !is_raw {
                self.apply_original(original, &record.event);
            }
            self.conversation.apply(&record.event);
        }
        if let Some(records) = &self.records {
            records.push(record);
        }
    }

    /// Adds an event to the conversation with secrets; `original` is the event before its secrets were replaced.
    fn apply_original(&mut self, original: Option<Payload>, recorded: &Event) {
        if original.is_some() && self.original.is_none() {
            self.original = Some(Box::new(self.conversation.clone()));
        }
        let Some(conversation) = &mut self.original else { return };
        let payload = original.unwrap_or_else(|| recorded.payload.clone());
        let Event { sequence, offset, timestamp, .. } = *recorded;
        let mut event = Event { sequence, offset, timestamp, payload };
        limit_depth(&mut event);
        conversation.apply(&event);
    }

    /// Returns the conversation with the secrets that its events had when they were recorded, to decide checks. Events that had
    /// been recorded before have none.
    pub fn original_conversation(&self) -> &TracedConversation {
        self.original.as_deref().unwrap_or(&self.conversation)
    }

    /// Returns true if secrets were replaced in the conversation, now or when it was recorded first.
    pub fn has_redacted(&self) -> bool {
        self.original.is_some() || !self.redactor.recorded().is_empty()
    }

    /// Returns the conversation recorded so far.
    pub fn conversation(&self) -> &TracedConversation {
        &self.conversation
    }

    /// Returns the kept events, for readers in other threads.
    pub fn shared_events(&self) -> Option<&SharedEvents> {
        self.records.as_ref()
    }

    /// Returns the redactor.
    pub fn redactor(&self) -> &SecretRedactor {
        &self.redactor
    }

    /// Sets the digests of the secrets that were replaced in the recording that is replayed.
    pub fn set_recorded_secrets(&mut self, digests: &BTreeMap<String, String>) {
        self.redactor.set_recorded(digests);
    }

    /// Returns the conversation and the kept events.
    pub fn finish(mut self) -> (TracedConversation, Vec<EventRecord>) {
        self.flush_inbox();
        self.conversation.settle();
        let mut records = self.records.as_ref().map(SharedEvents::take).unwrap_or_default();
        self.redactor.redact_pieces(&mut records);
        (self.conversation, records)
    }
}

#[cfg(test)]
mod tests {
    use hotseat_trace::{TurnCompletion, TurnStart};
    use tokio::time::Instant;

    use super::*;

    #[test]
    fn uses_arrival_times_that_never_decrease() {
        let opened = Instant::now();
        let mut recorder = TraceRecorder::new(SecretRedactor::default(), true);
        let begins = |turn: &str| TurnStart::by_user(turn.into(), "c".into(), "hotseat");
        let ends = |turn: &str| TurnCompletion { turn_id: turn.into(), issues: None };
        recorder.emit(begins("1"));
        // The second event is processed after its arrival.
        let arrived = opened + Duration::from_secs(5);
        recorder.set_arrival(arrived);
        recorder.emit(ends("1"));
        assert_eq!(recorder.now(), recorder.latest);
        // An event that arrived earlier is not recorded before its cause.
        recorder.set_arrival(opened + Duration::from_secs(2));
        recorder.emit(begins("2"));
        let (_, records) = recorder.finish();
        let at: Vec<Duration> = records.iter().map(|record| record.offset - TimeOffset::default()).collect();
        assert!(at[0] < Duration::from_secs(1), "{at:?}");
        assert!(at[1] > Duration::from_secs(4) && at[1] <= Duration::from_secs(5), "{at:?}");
        assert_eq!(at[2], at[1], "{at:?}");
        assert!(records.windows(2).all(|pair| pair[0].timestamp <= pair[1].timestamp));
    }
}
