//! Connections to agents: HTTP with limits, streams of events and lines, and the thread that reads and stamps them.

pub mod arrivals;
mod error_cause;
pub mod http;
mod limits;
pub(crate) mod lines;
pub mod sse;

pub(crate) use limits::trailing_partial_event;
pub use limits::{TurnError, TurnLimits};
