//! Limits of a server of models.

use std::time::Duration;

use hotseat_serve::AcceptLimits;

/// Limits of a server of models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeLimits {
    /// Limits of connections.
    pub accept: AcceptLimits,
    /// Maximum size of a request body, in bytes.
    pub max_body_bytes: usize,
    /// Time limit for the body of a request.
    pub body_timeout: Duration,
    /// Maximum number of open requests of a conversation.
    pub max_open_requests: usize,
    /// Maximum number of events of a conversation that wait for their reader. Further requests wait, too.
    pub max_waiting_events: usize,
    /// Maximum size of the responses that a conversation can continue by their ids, in bytes of their requests.
    pub max_stored_bytes: usize,
    /// Maximum size of the exchanges that a conversation records, in bytes.
    pub max_recorded_bytes: usize,
}

impl Default for ServeLimits {
    fn default() -> Self {
        ServeLimits {
            accept: AcceptLimits::default(),
            max_body_bytes: 32 * 1024 * 1024,
            body_timeout: Duration::from_secs(30),
            max_open_requests: 64,
            max_waiting_events: 1024,
            max_stored_bytes: 64 * 1024 * 1024,
            max_recorded_bytes: 64 * 1024 * 1024,
        }
    }
}
