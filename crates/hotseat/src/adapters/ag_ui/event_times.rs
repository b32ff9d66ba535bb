//! When the events of a run happened: when they arrived, or when the agent says that it made them.

use hotseat_trace::{Millis, Note, Offset};
use serde::Deserialize;
use serde_json::Value;

use crate::session::Recorder;

/// Which times of events count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TimingSource {
    /// When an event arrived.
    #[default]
    Arrival,
    /// The `timestamp` of an event, where it can be trusted; otherwise when it arrived.
    Events,
}

/// How far the clocks of agent and runner may be apart, in milliseconds.
const TOLERANCE: i128 = 1000;

/// The times of the events of one request.
#[derive(Debug)]
pub(super) struct EventTimes {
    /// When the request was sent, on the wall clock.
    asked: Millis,
    /// When the last event happened.
    last: Offset,
    /// Timestamps were found to be of no use. From then on arrival counts.
    distrusted: bool,
}

#[derive(Deserialize)]
struct Stamped {
    timestamp: Option<Value>,
}

impl EventTimes {
    /// The times of the answer to a request that is sent now.
    pub(super) fn since(recorder: &Recorder) -> Self {
        let (last, asked) = recorder.time();
        EventTimes { asked, last, distrusted: false }
    }

    /// When an event happened that has arrived now. It is never before the one before it, and never after now.
    pub(super) fn time_of(&mut self, data: &str, source: &TimingSource, recorder: &mut Recorder) -> Offset {
        let (now, wall) = recorder.time();
        if *source == TimingSource::Arrival || self.distrusted {
            return now;
        }
        let stamped: Option<Value> =
            serde_json::from_str(data).ok().and_then(|stamped: Stamped| stamped.timestamp);
        let Some(stamp) = stamped.filter(|stamp| !stamp.is_null()) else { return now };
        let age = match stamp.as_f64() {
            Some(millis) => i128::from(wall) - millis as i128,
            None => i128::MAX,
        };
        let longest = i128::from(wall) - i128::from(self.asked);
        if age < -TOLERANCE || age > longest + TOLERANCE {
            self.distrusted = true;
            let message = format!(
                "timestamp {stamp} is not between the request and the arrival of its event in Unix milliseconds; from here on times of arrival count"
            );
            if let Some(turn) = recorder.conversation().turns.last() {
                let turn_id = turn.id.clone();
                recorder.emit(Note { turn_id, message, event: None });
            }
            return now;
        }
        let age = u64::try_from(age.max(0)).unwrap_or(u64::MAX).saturating_mul(1000);
        self.last = self.last.max(Offset(now.0.saturating_sub(age))).min(now);
        self.last
    }
}
