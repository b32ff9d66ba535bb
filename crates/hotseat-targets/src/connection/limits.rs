//! Limits of a turn, and the error of a turn that could not be completed.

use std::time::Duration;

use hotseat_document::excerpt;
use hotseat_trace::{AttemptFailure, ErrorInfo};
use tokio::time::Instant;

use crate::recorder::TrafficMeter;

/// Time to wait for trailing data after the agent is done, if it keeps the connection open.
const TRAILING_GRACE: Duration = Duration::from_millis(200);

/// Limits of a turn on time and traffic.
#[derive(Debug, Clone, Copy)]
pub struct TurnLimits<'a> {
    /// Deadline of the turn.
    pub deadline: Instant,
    /// Maximum time without received data.
    pub idle: Duration,
    /// Counts received data; `None` for requests that do not go to the agent.
    traffic: Option<&'a TrafficMeter>,
}

impl<'a> TurnLimits<'a> {
    /// Creates limits on time only.
    pub fn new(deadline: Instant, idle: Duration) -> Self {
        TurnLimits { deadline, idle, traffic: None }
    }

    /// Adds the traffic limits of a meter.
    #[must_use]
    pub fn with_traffic(self, traffic: &'a TrafficMeter) -> Self {
        TurnLimits { traffic: Some(traffic), ..self }
    }

    /// Removes the traffic limits, for requests that do not go to the agent.
    pub(crate) fn without_traffic(self) -> Self {
        TurnLimits { traffic: None, ..self }
    }

    /// Ends the turn at this time, if it would end later.
    pub(crate) fn until(self, deadline: Instant) -> Self {
        TurnLimits { deadline: self.deadline.min(deadline), ..self }
    }

    /// Returns the limits for trailing data of an agent that is done.
    pub(crate) fn for_trailing_data(self) -> Self {
        TurnLimits { idle: TRAILING_GRACE, ..self.until(Instant::now() + TRAILING_GRACE) }
    }

    pub(crate) fn count_received(self, bytes: usize) {
        if let Some(traffic) = self.traffic {
            traffic.count_received(bytes);
        }
    }

    /// Returns the exceeded limit on recorded events. Checked before each event, since many may arrive at
    /// once.
    pub(crate) fn exceeded_record_limit(self) -> Option<AttemptFailure> {
        self.traffic?.exceeded_record_limit()
    }

    /// Returns the exceeded traffic limit. Checked before each read; time limits are checked by arrival
    /// times.
    pub(crate) fn exceeded_limit(self) -> Option<AttemptFailure> {
        self.traffic?.exceeded_limit()
    }
}

/// Returns the note about an incomplete event that the agent sent after it was done.
pub(crate) fn trailing_partial_event(unfinished: &str) -> String {
    let shown = excerpt(unfinished, 200);
    format!(
        "{} ms after its end the answer still had an incomplete event: {shown}",
        TRAILING_GRACE.as_millis()
    )
}

/// Error of a turn that could not be completed.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnError {
    /// The deadline has passed.
    Deadline,
    /// The agent reported that its run failed.
    Run(ErrorInfo),
    /// Any other failure.
    Failed(AttemptFailure),
}

impl From<AttemptFailure> for TurnError {
    fn from(failure: AttemptFailure) -> Self {
        TurnError::Failed(failure)
    }
}
