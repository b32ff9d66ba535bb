//! Counts and limits the traffic of an agent per turn, conversation and run, in one place for all adapters.
//!
//! Bytes are counted where they are read (`targets::TurnLimits`), events and calls where they are recorded
//! (`TraceRecorder`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hotseat_document::json::JsonSize;
use hotseat_trace::{AttemptFailure, FailureKind};

/// Estimated memory overhead of a JSON value beside its text, in bytes.
const VALUE_OVERHEAD_BYTES: u64 = 24;

/// Maximum traffic of one turn, conversation or run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrafficBounds {
    /// Recorded events.
    pub events: u64,
    /// Received bytes, or the memory taken by recorded events.
    pub bytes: u64,
    /// Tool calls.
    pub calls: u64,
}

/// Traffic limits of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrafficLimits {
    /// Limits of one turn.
    pub turn: TrafficBounds,
    /// Limits of one conversation.
    pub conversation: TrafficBounds,
    /// Limits of all conversations of a run together.
    pub run: TrafficBounds,
}

impl Default for TrafficLimits {
    fn default() -> Self {
        const MB: u64 = 1_000_000;
        TrafficLimits {
            turn: TrafficBounds { events: 500_000, bytes: 100 * MB, calls: 200_000 },
            conversation: TrafficBounds { events: 2_000_000, bytes: 400 * MB, calls: 500_000 },
            run: TrafficBounds { events: 1_000_000_000, bytes: 1_000_000 * MB, calls: 100_000_000 },
        }
    }
}

/// Traffic of all conversations of a run together.
#[derive(Debug, Default)]
pub struct RunTraffic {
    limits: TrafficLimits,
    totals: TrafficTotals,
}

impl RunTraffic {
    /// Creates an empty counter with these limits.
    pub fn new(limits: TrafficLimits) -> Self {
        RunTraffic { limits, totals: TrafficTotals::default() }
    }

    /// Returns the key of the limit of the run that is exceeded, if one is.
    pub fn exceeded_limit(&self) -> Option<String> {
        let name = self.totals.exceeded(&self.limits.run, None).next()?.name;
        Some(format!("limits.run.{name}"))
    }
}

/// What a limit applies to.
#[derive(Debug, Clone, Copy)]
struct LimitScope {
    /// Its key in the project file.
    key: &'static str,
    description: &'static str,
}

/// The scopes of limits, from the narrowest.
const SCOPES: [LimitScope; 3] = [
    LimitScope { key: "turn", description: "in one turn" },
    LimitScope { key: "conversation", description: "in one conversation" },
    LimitScope { key: "run", description: "in all conversations of the run" },
];

/// Counts the traffic of one conversation.
#[derive(Debug, Default)]
pub struct TrafficMeter {
    run: Arc<RunTraffic>,
    conversation: TrafficTotals,
    turn: TrafficTotals,
    is_counting: AtomicBool,
}

/// A limit of a scope.
struct NamedBound {
    /// Its key in the project file.
    name: &'static str,
    maximum: u64,
    /// What an agent did that exceeds it: the words before and after the limit.
    description: (&'static str, &'static str),
}

/// Counted traffic.
#[derive(Debug, Default)]
struct TrafficTotals {
    events: AtomicU64,
    received: AtomicU64,
    recorded: AtomicU64,
    calls: AtomicU64,
}

impl TrafficMeter {
    /// Creates a meter for a new conversation.
    pub fn new(run: Arc<RunTraffic>) -> Self {
        TrafficMeter { run, ..TrafficMeter::default() }
    }

    /// Starts a turn and resets its counts.
    pub fn begin_turn(&self) {
        self.turn.reset();
        self.is_counting.store(true, Ordering::Relaxed);
    }

    /// Ends the turn. Returns the failure if a limit was exceeded.
    pub fn end_turn(&self) -> Option<AttemptFailure> {
        let failure = self.exceeded_limit();
        self.is_counting.store(false, Ordering::Relaxed);
        failure
    }

    /// Returns the size of the conversation so far: what was received, or recorded if that is more.
    pub fn conversation_bytes(&self) -> u64 {
        self.conversation.bytes()
    }

    /// Counts received bytes.
    pub fn count_received(&self, bytes: usize) {
        if self.is_counting() {
            for (totals, _) in self.scopes() {
                totals.received.fetch_add(bytes as u64, Ordering::Relaxed);
            }
        }
    }

    /// Counts an event. Returns true if it is to be recorded: an adapter may continue for a while after a
    /// limit is exceeded, and events up to twice the limit are still recorded.
    pub(super) fn count_event(&self, size: JsonSize, is_call: bool) -> bool {
        if !self.is_counting() {
            return true;
        }
        let bytes = size.bytes + VALUE_OVERHEAD_BYTES * size.values;
        let scopes = self.scopes();
        let [(turn, _), (conversation, _), (run, _)] = scopes;
        let owners = [(turn, None), (conversation, None), (run, Some(turn))];
        let mut bounds = scopes.iter().map(|(_, bounds)| bounds.doubled()).zip(owners);
        let may = bounds.all(|(bounds, (totals, own))| {
            totals.is_within(&bounds) || totals.exceeded(&bounds, own).next().is_none()
        });
        for (totals, _) in &scopes {
            totals.events.fetch_add(1, Ordering::Relaxed);
            totals.recorded.fetch_add(bytes, Ordering::Relaxed);
            totals.calls.fetch_add(u64::from(is_call), Ordering::Relaxed);
        }
        may
    }

    /// Returns true if a limit is exceeded.
    pub fn is_exceeded(&self) -> bool {
        // This is asked for each piece of an answer, and nearly always no count is above a limit.
        let is_within = self.scopes().iter().all(|(totals, bounds)| totals.is_within(bounds));
        self.is_counting() && !is_within && self.exceeded().next().is_some()
    }

    /// Returns the failure if recorded events exceed a limit. Bytes already received are still processed.
    pub fn exceeded_record_limit(&self) -> Option<AttemptFailure> {
        // Of the run, only what this turn has added counts.
        let turn = &self.turn;
        let within = |(totals, bounds): (&TrafficTotals, &TrafficBounds)| totals.are_records_within(bounds);
        let [_, _, (run, bounds)] = self.scopes();
        let is_within_run = run.are_records_within(bounds) || turn.has_no_records();
        match !self.is_counting() || (self.scopes()[..2].iter().copied().all(within) && is_within_run) {
            true => None,
            false => self.exceeded_limit(),
        }
    }

    /// Returns the failure if any limit is exceeded.
    pub fn exceeded_limit(&self) -> Option<AttemptFailure> {
        if !self.is_exceeded() {
            return None;
        }
        let (scope, bound) = self.exceeded().next()?;
        Some(bound.failure(scope))
    }

    /// Returns the failure of a recorded turn that was stopped at a limit, by the message of then, if the limit still applies.
    pub fn recorded_failure(&self, message: &str) -> Option<AttemptFailure> {
        let bounds = SCOPES.into_iter().zip(self.scopes());
        let bounds = bounds.flat_map(|(scope, (_, bounds))| bounds.named().map(|bound| (scope, bound)));
        let mut exceeded = bounds.filter(|(scope, bound)| {
            let (before, after) = bound.message_parts(*scope);
            let limit = message.strip_prefix(&before).and_then(|rest| rest.strip_suffix(&after));
            limit.and_then(|limit| limit.parse().ok()).is_some_and(|limit: u64| bound.maximum <= limit)
        });
        exceeded.next().map(|(scope, bound)| bound.failure(scope))
    }

    /// Returns the exceeded limits, each with its scope. A turn exceeds a limit of the run only by traffic of its own: other
    /// conversations may have caused all the rest.
    fn exceeded(&self) -> impl Iterator<Item = (LimitScope, NamedBound)> {
        let [(turn, _), _, _] = self.scopes();
        let owners = [None, None, Some(turn)];
        let scopes = SCOPES.into_iter().zip(self.scopes()).zip(owners);
        scopes.flat_map(|((scope, (totals, bounds)), own)| {
            totals.exceeded(bounds, own).map(move |bound| (scope, bound))
        })
    }

    fn is_counting(&self) -> bool {
        self.is_counting.load(Ordering::Relaxed)
    }

    fn scopes(&self) -> [(&TrafficTotals, &TrafficBounds); 3] {
        let limits = &self.run.limits;
        [
            (&self.turn, &limits.turn),
            (&self.conversation, &limits.conversation),
            (&self.run.totals, &limits.run),
        ]
    }
}

impl NamedBound {
    /// Returns what precedes and what follows the limit in the message of a failure.
    fn message_parts(&self, scope: LimitScope) -> (String, String) {
        let LimitScope { key, description } = scope;
        let (before, after) = self.description;
        (format!("the agent {before} "), format!(" {after} {description} (`limits.{key}.{}`)", self.name))
    }

    fn failure(&self, scope: LimitScope) -> AttemptFailure {
        let (before, after) = self.message_parts(scope);
        AttemptFailure::new(FailureKind::Limit, format!("{before}{}{after}", self.maximum))
    }
}

impl TrafficBounds {
    fn named(&self) -> [NamedBound; 3] {
        let bound = |name, maximum, description| NamedBound { name, maximum, description };
        [
            bound("bytes", self.bytes, ("sent more than", "bytes, or data that takes as much memory,")),
            bound("calls", self.calls, ("called tools more than", "times")),
            bound("events", self.events, ("caused more than", "events")),
        ]
    }

    fn doubled(&self) -> TrafficBounds {
        TrafficBounds {
            events: self.events.saturating_mul(2),
            bytes: self.bytes.saturating_mul(2),
            calls: self.calls.saturating_mul(2),
        }
    }
}

impl TrafficTotals {
    /// Returns the limits that these counts exceed. With `own` counts, only those to which these contribute.
    fn exceeded(
        &self,
        bounds: &TrafficBounds,
        own: Option<&TrafficTotals>,
    ) -> impl Iterator<Item = NamedBound> {
        let counts = |totals: &TrafficTotals| {
            let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
            [totals.bytes(), load(&totals.calls), load(&totals.events)]
        };
        let own = own.map_or([u64::MAX; 3], counts);
        let counted = counts(self).into_iter().zip(own).zip(bounds.named());
        counted.filter(|((counted, own), bound)| *counted > bound.maximum && *own > 0).map(|(_, bound)| bound)
    }

    fn has_no_records(&self) -> bool {
        self.events.load(Ordering::Relaxed) == 0
    }

    fn is_within(&self, bounds: &TrafficBounds) -> bool {
        self.received.load(Ordering::Relaxed) <= bounds.bytes && self.are_records_within(bounds)
    }

    fn are_records_within(&self, bounds: &TrafficBounds) -> bool {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        load(&self.events) <= bounds.events
            && load(&self.recorded) <= bounds.bytes
            && load(&self.calls) <= bounds.calls
    }

    /// Received bytes, or recorded ones if there are more.
    fn bytes(&self) -> u64 {
        self.received.load(Ordering::Relaxed).max(self.recorded.load(Ordering::Relaxed))
    }

    fn reset(&self) {
        for count in [&self.events, &self.received, &self.recorded, &self.calls] {
            count.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter(change: impl FnOnce(&mut TrafficLimits)) -> TrafficMeter {
        let mut limits = TrafficLimits::default();
        change(&mut limits);
        TrafficMeter::new(Arc::new(RunTraffic::new(limits)))
    }

    #[test]
    fn names_the_exceeded_limit() {
        type Choose = fn(&mut TrafficLimits) -> &mut TrafficBounds;
        let scopes: [(&str, Choose); 3] = [
            ("turn", |limits| &mut limits.turn),
            ("conversation", |limits| &mut limits.conversation),
            ("run", |limits| &mut limits.run),
        ];
        type Narrow = fn(&mut TrafficBounds);
        let bounds: [(&str, Narrow); 3] = [
            ("events", |bounds| bounds.events = 1),
            ("bytes", |bounds| bounds.bytes = 100),
            ("calls", |bounds| bounds.calls = 1),
        ];
        for (scope, choose) in scopes {
            for (name, narrow) in bounds {
                let meter = meter(|limits| narrow(choose(limits)));
                let event = JsonSize { bytes: 26, values: 1, depth: 0 };
                meter.begin_turn();
                assert!(meter.count_event(event, true) && meter.exceeded_limit().is_none(), "{scope} {name}");
                meter.count_received(101);
                meter.count_event(event, true);
                let failure = meter.exceeded_limit().expect("the bound is passed");
                assert_eq!(failure.kind, FailureKind::Limit);
                assert!(failure.message.contains(&format!("`limits.{scope}.{name}`")), "{}", failure.message);
            }
        }
    }

    #[test]
    fn a_conversation_exceeds_limits_of_the_run_only_by_its_own_traffic() {
        let mut limits = TrafficLimits::default();
        limits.run.calls = 1;
        let run = Arc::new(RunTraffic::new(limits));
        let (caller, talker) = (TrafficMeter::new(run.clone()), TrafficMeter::new(run.clone()));
        caller.begin_turn();
        talker.begin_turn();
        for _ in 0..9 {
            assert!(run.exceeded_limit().is_none() || caller.exceeded_limit().is_some());
            caller.count_event(JsonSize::default(), true);
        }
        assert!(caller.end_turn().is_some());
        assert_eq!(run.exceeded_limit().as_deref(), Some("limits.run.calls"));
        assert!(talker.count_event(JsonSize::default(), false), "an event is lost");
        assert!(!talker.is_exceeded() && talker.exceeded_record_limit().is_none());
        assert!(talker.end_turn().is_none());
        talker.begin_turn();
        talker.count_event(JsonSize::default(), true);
        assert!(talker.exceeded_record_limit().is_some() && talker.end_turn().is_some());
    }

    #[test]
    fn resets_turn_counts_but_not_conversation_counts() {
        let meter = meter(|limits| (limits.turn.bytes, limits.conversation.bytes) = (100, 150));
        for (turn, exceeded) in [(1, false), (2, true)] {
            meter.begin_turn();
            meter.count_received(90);
            assert_eq!(meter.end_turn().is_some(), exceeded, "turn {turn}");
        }
    }

    #[test]
    fn stops_recording_beyond_twice_the_limit() {
        let meter = meter(|limits| limits.turn.events = 10);
        meter.begin_turn();
        assert_eq!((0..100).filter(|_| meter.count_event(JsonSize::default(), false)).count(), 21);
        assert!(meter.end_turn().is_some());
        assert!(meter.count_event(JsonSize::default(), false) && !meter.is_exceeded());
    }
}
