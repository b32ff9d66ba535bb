//! Events that are observed beside the agent's protocol while a turn runs, such as calls at MCP servers.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use hotseat_document::json::JsonSize;
use hotseat_trace::{AttemptFailure, Payload};

use super::traffic::TrafficMeter;

/// Events on their way to the recorder, with their arrival times. Clones share the same events.
#[derive(Debug, Clone, Default)]
pub struct EventInbox {
    events: Arc<Mutex<VecDeque<(Instant, Payload)>>>,
    has_events: Arc<AtomicBool>,
}

impl EventInbox {
    /// Adds an event that arrived at `at`, and counts it for the agent. Fails if the agent exceeds a limit.
    pub fn push(&self, at: Instant, payload: Payload, traffic: &TrafficMeter) -> Result<(), AttemptFailure> {
        let size = JsonSize { bytes: JsonSize::measure(&payload).bytes, ..JsonSize::default() };
        if traffic.count_event(size, matches!(payload, Payload::ToolInvoked(_))) {
            self.events.lock().unwrap_or_else(PoisonError::into_inner).push_back((at, payload));
            self.has_events.store(true, Ordering::Release);
        }
        traffic.exceeded_limit().map_or(Ok(()), Err)
    }

    /// Removes the next event, if it arrived until `latest`.
    pub(super) fn pop_until(&self, latest: Option<Instant>) -> Option<(Instant, Payload)> {
        if !self.has_events.load(Ordering::Acquire) {
            return None;
        }
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = events.front().is_some_and(|(at, _)| latest.is_none_or(|latest| *at <= latest));
        let event = if is_due { events.pop_front() } else { None };
        self.has_events.store(!events.is_empty(), Ordering::Release);
        event
    }
}
