//! Limits of servers.

use std::time::Duration;

/// Limits of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptLimits {
    /// Maximum number of open connections. Further ones take the place of idle ones, or wait until one closes.
    pub max_connections: usize,
    /// Time limit for the head of a request, including the next one on a kept-alive connection.
    pub head_timeout: Duration,
    /// Time limit for answers in progress after the server was stopped.
    pub shutdown_timeout: Duration,
}

impl Default for AcceptLimits {
    fn default() -> Self {
        AcceptLimits {
            max_connections: 1024,
            head_timeout: Duration::from_secs(60),
            shutdown_timeout: Duration::MAX,
        }
    }
}
