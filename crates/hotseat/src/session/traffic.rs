//! How much an agent may send and do: counted in one place for every adapter, per turn, conversation and run.
//!
//! Bytes are counted where they are read (`adapters::Limits`), events and calls where they are recorded (`Recorder`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hotseat_trace::{Failure, FailureKind};

/// What a JSON value takes in memory beside its text, in bytes, as it is counted.
const VALUE: u64 = 24;

/// The most that may come from an agent within one turn, conversation or run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrafficBounds {
    /// Events that are recorded.
    pub events: u64,
    /// Bytes that are received, or kept in memory of what was.
    pub bytes: u64,
    /// Tool calls.
    pub calls: u64,
}

/// How much an agent may send and do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrafficLimits {
    /// In one turn.
    pub turn: TrafficBounds,
    /// In one conversation.
    pub conversation: TrafficBounds,
    /// In all conversations of a run together.
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

/// What all conversations of a run have sent and done together.
#[derive(Debug, Default)]
pub struct RunTraffic {
    limits: TrafficLimits,
    totals: TrafficTotals,
}

impl RunTraffic {
    /// The traffic of a run that has not begun.
    pub fn new(limits: TrafficLimits) -> Self {
        RunTraffic { limits, totals: TrafficTotals::default() }
    }
}

/// Counts what the agent of one conversation sends and does.
#[derive(Debug, Default)]
pub struct TrafficMeter {
    run: Arc<RunTraffic>,
    conversation: TrafficTotals,
    turn: TrafficTotals,
    is_counting: AtomicBool,
}

/// What was counted.
#[derive(Debug, Default)]
struct TrafficTotals {
    events: AtomicU64,
    received: AtomicU64,
    recorded: AtomicU64,
    calls: AtomicU64,
}

/// The size of an event that is to be recorded.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EventSize {
    /// Bytes of its JSON.
    pub bytes: u64,
    /// How many values are in that.
    pub values: u64,
}

impl TrafficMeter {
    /// The meter of a conversation that has not begun.
    pub fn new(run: Arc<RunTraffic>) -> Self {
        TrafficMeter { run, ..TrafficMeter::default() }
    }

    /// A turn begins: from now on everything is counted for it.
    pub fn begin_turn(&self) {
        self.turn.reset();
        self.is_counting.store(true, Ordering::Relaxed);
    }

    /// The turn is over. Returns which limit was passed in it, if one was.
    pub fn end_turn(&self) -> Option<Failure> {
        let failure = self.passed();
        self.is_counting.store(false, Ordering::Relaxed);
        failure
    }

    /// Counts bytes that were received.
    pub fn receive(&self, bytes: usize) {
        if self.is_counting() {
            for (totals, _) in self.scopes() {
                totals.received.fetch_add(bytes as u64, Ordering::Relaxed);
            }
        }
    }

    /// Counts an event. Says whether it is to be recorded: an adapter that has not noticed that a limit is passed may go on
    /// for a while, and only what it had received until then is of use.
    pub(super) fn record(&self, size: EventSize, is_call: bool) -> bool {
        if !self.is_counting() {
            return true;
        }
        let bytes = size.bytes + VALUE * size.values;
        let scopes = self.scopes();
        let may = scopes.iter().all(|(totals, bounds)| totals.within(&bounds.doubled()));
        for (totals, _) in &scopes {
            totals.events.fetch_add(1, Ordering::Relaxed);
            totals.recorded.fetch_add(bytes, Ordering::Relaxed);
            totals.calls.fetch_add(u64::from(is_call), Ordering::Relaxed);
        }
        may
    }

    /// Whether a limit is passed.
    pub fn is_exceeded(&self) -> bool {
        self.is_counting() && !self.scopes().iter().all(|(totals, bounds)| totals.within(bounds))
    }

    /// The failure of a limit that is passed by what is recorded. What has been received is still taken in.
    pub fn recorded_too_much(&self) -> Option<Failure> {
        let within = |(totals, bounds): (&TrafficTotals, &TrafficBounds)| totals.records_within(bounds);
        if !self.is_counting() || self.scopes().into_iter().all(within) { None } else { self.passed() }
    }

    /// The failure of a limit that is passed.
    pub fn passed(&self) -> Option<Failure> {
        if !self.is_exceeded() {
            return None;
        }
        let scopes = self.scopes().into_iter().zip([
            ("turn", "in one turn"),
            ("conversation", "in one conversation"),
            ("run", "in all conversations of the run"),
        ]);
        for ((totals, bounds), (key, within)) in scopes {
            let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
            let bytes = load(&totals.received).max(load(&totals.recorded));
            for (name, counted, most, what) in [
                ("bytes", bytes, bounds.bytes, "sent more than {} bytes, or what takes as much memory,"),
                ("calls", load(&totals.calls), bounds.calls, "called tools more than {} times"),
                ("events", load(&totals.events), bounds.events, "did more than {} things"),
            ] {
                if counted > most {
                    let what = what.replace("{}", &most.to_string());
                    let message = format!("the agent {what} {within} (`limits.{key}.{name}`)");
                    return Some(Failure::new(FailureKind::Limit, message));
                }
            }
        }
        None
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

impl TrafficBounds {
    fn doubled(&self) -> TrafficBounds {
        TrafficBounds {
            events: self.events.saturating_mul(2),
            bytes: self.bytes.saturating_mul(2),
            calls: self.calls.saturating_mul(2),
        }
    }
}

impl TrafficTotals {
    fn within(&self, bounds: &TrafficBounds) -> bool {
        self.received.load(Ordering::Relaxed) <= bounds.bytes && self.records_within(bounds)
    }

    fn records_within(&self, bounds: &TrafficBounds) -> bool {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        load(&self.events) <= bounds.events
            && load(&self.recorded) <= bounds.bytes
            && load(&self.calls) <= bounds.calls
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
    fn each_bound_of_each_scope_is_named_when_it_is_passed() {
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
                let event = EventSize { bytes: 26, values: 1 };
                meter.begin_turn();
                assert!(meter.record(event, true) && meter.passed().is_none(), "{scope} {name}");
                meter.receive(101);
                meter.record(event, true);
                let failure = meter.passed().expect("the bound is passed");
                assert_eq!(failure.kind, FailureKind::Limit);
                assert!(failure.message.contains(&format!("`limits.{scope}.{name}`")), "{}", failure.message);
            }
        }
    }

    #[test]
    fn a_turn_begins_anew_and_a_conversation_does_not() {
        let meter = meter(|limits| (limits.turn.bytes, limits.conversation.bytes) = (100, 150));
        for (turn, exceeded) in [(1, false), (2, true)] {
            meter.begin_turn();
            meter.receive(90);
            assert_eq!(meter.end_turn().is_some(), exceeded, "turn {turn}");
        }
    }

    #[test]
    fn nothing_is_recorded_far_beyond_a_limit_and_nothing_is_counted_between_turns() {
        let meter = meter(|limits| limits.turn.events = 10);
        meter.begin_turn();
        assert_eq!((0..100).filter(|_| meter.record(EventSize::default(), false)).count(), 21);
        assert!(meter.end_turn().is_some());
        assert!(meter.record(EventSize::default(), false) && !meter.is_exceeded());
    }
}
