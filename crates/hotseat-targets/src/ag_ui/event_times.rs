//! Times of events: their arrival, or the timestamps of the agent.

use hotseat_trace::{Millis, Note, TimeOffset};
use serde::Deserialize;
use serde_json::Value;

use crate::recorder::TraceRecorder;

/// Source of event times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TimingSource {
    /// Arrival time.
    #[default]
    Arrival,
    /// The `timestamp` of an event if it is plausible, otherwise the arrival time.
    Events,
}

/// Maximum difference between the clocks of agent and runner in milliseconds.
const MAX_CLOCK_DIFFERENCE_MS: i128 = 1000;

/// Maximum time by which a timestamp may be earlier than that of an event before it, in milliseconds.
const MAX_STEP_BACK_MS: i128 = 10;

/// Times of the events of one request.
#[derive(Debug)]
pub(super) struct EventTimes {
    /// Wall time of the request.
    sent_at: Millis,
    /// Time of the last event.
    last: TimeOffset,
    /// Latest timestamp of an event, in Unix milliseconds.
    latest_stamp: i128,
    /// True after an implausible timestamp; from then on arrival times are used.
    uses_arrival: bool,
}

#[derive(Deserialize)]
struct EventTimestamp {
    timestamp: Option<Value>,
}

impl EventTimes {
    /// Starts timing a request that is sent now.
    pub(super) fn since(recorder: &TraceRecorder) -> Self {
        let (last, asked) = recorder.time();
        EventTimes { sent_at: asked, last, latest_stamp: i128::MIN, uses_arrival: false }
    }

    /// Returns the time of an event that has just arrived. Never earlier than the previous event, never later
    /// than now.
    pub(super) fn time_of(
        &mut self,
        data: &str,
        source: &TimingSource,
        recorder: &mut TraceRecorder,
    ) -> TimeOffset {
        let (now, wall) = recorder.time();
        if *source == TimingSource::Arrival || self.uses_arrival {
            return now;
        }
        let stamped: Option<Value> =
            serde_json::from_str(data).ok().and_then(|stamped: EventTimestamp| stamped.timestamp);
        let Some(stamp) = stamped.filter(|stamp| !stamp.is_null()) else { return now };
        let (millis, wall) = (stamp.as_f64().map_or(i128::MIN, |millis| millis as i128), i128::from(wall));
        let earliest = i128::from(self.sent_at) - MAX_CLOCK_DIFFERENCE_MS;
        let problem = if millis < earliest || millis > wall + MAX_CLOCK_DIFFERENCE_MS {
            Some("not between the request and the arrival of its event in Unix milliseconds")
        } else if millis < self.latest_stamp.saturating_sub(MAX_STEP_BACK_MS) {
            Some("earlier than that of an event before it")
        } else {
            None
        };
        if let Some(problem) = problem {
            self.uses_arrival = true;
            let message = format!("timestamp {stamp} is {problem}; arrival times are used from here on");
            if let Some(turn) = recorder.conversation().turns.last() {
                let turn_id = turn.id.clone();
                recorder.emit(Note { turn_id, message, event: None });
            }
            return now;
        }
        self.latest_stamp = self.latest_stamp.max(millis);
        let age = u64::try_from((wall - millis).max(0)).unwrap_or(u64::MAX).saturating_mul(1000);
        self.last = self.last.max(TimeOffset(now.0.saturating_sub(age))).min(now);
        self.last
    }
}
