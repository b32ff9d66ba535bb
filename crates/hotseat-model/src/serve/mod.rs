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
pub use faults::{FaultKind, ModelFault};
pub use hotseat_serve::{FaultTrigger, TextCleaner};
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
///
/// `call` is the number of a call, and `position` its place in the conversation, as far as the request shows it.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the documentation of the variants names the members")]
pub enum ServedModelEventKind {
    /// A call arrived for the model that the agent names. The tokens are estimated from the request; `messages` and `tools` are their
    /// numbers. `results` are those of the tool calls after the last reply of the model, and `answered` the ids and tools of the
    /// calls with a result after the last user message.
    CallReceived {
        call: u64,
        dialect: Dialect,
        requested: String,
        position: CallPosition,
        input_tokens: u64,
        messages: usize,
        tools: usize,
        results: Vec<ModelToolResult>,
        answered: Vec<(String, String)>,
    },
    /// A call was answered: the reply before any fault, and the time since the call arrived.
    CallAnswered { call: u64, reply: Box<ModelReply>, duration: Duration },
    /// The reply to a call, which follows, calls a tool that the request does not offer.
    UnofferedTool { tool: String, offered: Vec<String> },
    /// A call failed: by the script, by a fault, or because the client disconnected. `may_be_accepted` is true if the client
    /// received the whole answer of a provider, which only lacks its end: some clients use the calls in it.
    CallFailed { call: u64, error: ModelError, may_be_accepted: bool },
    /// A provider answered a request whose protocol is not read, so its answer may contain tool calls.
    UnreadAnswer { path: String },
    /// A fault was injected into a call. `rule` is its index among the faults of the model.
    FaultInjected { call: u64, rule: usize, fault: FaultKind },
    /// A request was refused: its protocol does not allow it, or a limit is reached.
    Refused { message: String },
}
