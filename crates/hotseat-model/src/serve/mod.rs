//! Models served over HTTP: an agent under test reaches a scripted model where it expects its provider.
//!
//! [`ModelServers`] listens on the loopback interface. Each conversation has addresses of its own, with a token that
//! cannot be guessed, so that conversations at the same time do not mix. Below an address, all protocols of
//! [`Dialect`] are answered by the same [`Model`](crate::Model), by a provider behind a [`ModelRelay`], or from a recording of
//! its answers. Each request is an event of its conversation.
//!
//! The servers are the feature `serve`. Without it, [`ModelServers::start`] names the feature that is missing.

// Only servers use parts of the definitions.
#![cfg_attr(not(feature = "serve"), allow(dead_code, unused_imports))]

#[cfg(feature = "serve")]
mod answer_source;
#[cfg(feature = "serve")]
mod call;
mod cassette;
#[cfg(feature = "serve")]
mod conversation;
#[cfg(feature = "serve")]
mod exchange;
mod faults;
#[cfg(feature = "serve")]
mod http;
mod limits;
#[cfg(not(feature = "serve"))]
mod no_server;
mod relay;
#[cfg(feature = "serve")]
mod respond;
mod served_model;

pub use crate::providers::Dialect;
#[cfg(feature = "serve")]
pub use answer_source::RecordError;
pub use cassette::{
    CassetteFile, CassetteLineError, CassetteProblem, ModelCassette, RecordTarget, RelayedExchange,
    ReplaySource,
};
#[cfg(feature = "serve")]
pub use conversation::ServedConversation;
pub use faults::{FaultKind, ModelFault, UnreachedFault};
pub use hotseat_serve::FaultTrigger;
pub use hotseat_serve::TextCleaner;
#[cfg(feature = "serve")]
pub use http::ModelServers;
pub use limits::ServeLimits;
#[cfg(not(feature = "serve"))]
pub use no_server::{ModelServers, ServedConversation};
pub use relay::ModelRelay;
pub use served_model::{ServedModel, ServedSource};

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::{CallPosition, ModelError, ModelReply, ModelToolResult};

/// One event of a served model.
#[derive(Debug, Clone)]
pub struct ServedModelEvent {
    /// Time of the event.
    pub at: Instant,
    /// Name of the served model.
    pub model: Arc<str>,
    /// The event.
    pub kind: ServedModelEventKind,
}

/// The event itself. `call` is the number of a call in its conversation.
#[derive(Debug, Clone)]
pub enum ServedModelEventKind {
    /// A call arrived.
    CallReceived {
        /// Number of the call.
        call: u64,
        /// Protocol of the call.
        dialect: Dialect,
        /// Model that the agent names.
        requested: String,
        /// Position in the conversation, as far as the request shows it.
        position: CallPosition,
        /// Estimated size of the request, in tokens.
        input_tokens: u64,
        /// Number of messages.
        messages: usize,
        /// Number of tools offered.
        tools: usize,
        /// Results of tool calls that the request adds: those after the last reply of the model.
        results: Vec<ModelToolResult>,
    },
    /// A call was answered.
    CallAnswered {
        /// Number of the call.
        call: u64,
        /// Position of the call.
        position: CallPosition,
        /// The reply before any fault.
        reply: Box<ModelReply>,
        /// Time since the call arrived.
        duration: Duration,
    },
    /// A call failed: by the script, by a fault, or because the client disconnected.
    CallFailed {
        /// Number of the call.
        call: u64,
        /// Position of the call.
        position: CallPosition,
        /// The error.
        error: ModelError,
    },
    /// A fault was injected into a call.
    FaultInjected {
        /// Number of the call.
        call: u64,
        /// Index of the rule among the faults of the model.
        rule: usize,
        /// The fault.
        fault: FaultKind,
    },
    /// A request was refused: its protocol does not allow it, or a limit is reached.
    Refused {
        /// Reason.
        message: String,
    },
}
