//! Connections to agents: HTTP with limits, streams of lines, and the thread that reads and stamps them.

pub mod arrivals;
pub(crate) mod cookies;
pub mod http;
mod limits;
pub(crate) mod lines;
mod other_protocol;
mod shared_connections;

pub(crate) use limits::trailing_partial_event;
pub use limits::{TurnError, TurnLimits};
pub(crate) use other_protocol::{
    AG_UI_ADVICE, AI_SDK_ADVICE, AI_SDK_HEADER, OWN_API_ADVICE, other_protocol_advice,
    refused_completion_advice,
};
