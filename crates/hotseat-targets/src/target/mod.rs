//! What all protocols have in common: a conversation with an agent, its inputs, and how its turns are recorded.
//!
//! A target opens a conversation, sends one input at a time, and emits trace events until the agent has
//! completed the turn. All actions of the agent are events; later code does not depend on the protocol.

mod client_requests;
pub mod client_tools;
pub mod template;
mod turn_failures;
mod turn_recorder;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use hotseat_trace::{AttemptFailure, CallVisibility, named};
use serde_json::Value;

pub(crate) use client_requests::{
    MAX_CLIENT_REQUESTS, check_unoffered_call, too_many_requests, unanswered_call, unanswered_interrupt,
};
pub(crate) use turn_failures::{
    error_event_data, parse_error, parse_error_event, protocol_error, read_failure,
};
#[cfg(feature = "embedded")]
pub(crate) use turn_recorder::empty_answer;
pub(crate) use turn_recorder::{CallArguments, TurnRecorder};

use crate::connection::{TurnError, TurnLimits};
use crate::message::{ContentPart, ConversationMessage, ScriptedAnswers};
use crate::recorder::TraceRecorder;

/// A boxed future of a target.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The end of a turn, as a future.
pub type TurnFuture<'a> = BoxFuture<'a, Result<(), TurnError>>;

/// One conversation with an agent.
pub trait AgentSession: Send {
    /// Returns the agent's id of the conversation.
    fn conversation_id(&self) -> Arc<str>;

    /// Returns the capabilities of the protocol. Unsupported parts of a case are rejected before anything is
    /// sent.
    fn capabilities(&self) -> ProtocolCapabilities {
        ProtocolCapabilities::default()
    }

    /// Sets the messages before the first turn. Called once, if [`ProtocolCapabilities::history`] is true.
    /// Fails if the protocol cannot express a message.
    fn seed_history(&mut self, messages: &[ConversationMessage]) -> Result<(), AttemptFailure> {
        let _ = messages;
        Ok(())
    }

    /// Returns true if the trace has real times. Called after `seed_history`.
    fn has_timestamps(&self) -> bool {
        true
    }

    /// Sends one input and emits all events until the agent has completed the turn. Fails if the turn cannot
    /// be completed; the first problem found is returned.
    fn send_input<'a>(&'a mut self, input: AgentInput<'a>) -> TurnFuture<'a>;

    /// Waits a short time for unprompted output after the last turn. Fails if the agent sends any.
    fn check_trailing_output(&mut self) -> BoxFuture<'_, Result<(), AttemptFailure>> {
        Box::pin(async { Ok(()) })
    }

    /// Ends a conversation that is complete: writes recordings, and records answers that were not used.
    fn complete_conversation(&mut self) -> Result<(), AttemptFailure> {
        Ok(())
    }

    /// Returns the addresses of MCP servers and served models that belong to the conversation, by name. Names of models start
    /// with `models/`.
    fn service_addresses(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// Returns the tools that MCP servers of the conversation have listed, by the name of the server. Servers whose list may
    /// change are left out.
    fn listed_tools(&self) -> BTreeMap<String, Arc<[String]>> {
        BTreeMap::new()
    }

    /// Describes the requests of the agent, other than calls, that MCP servers of the conversation had not answered at this time.
    fn awaited_requests(&self, _: Instant) -> Vec<String> {
        Vec::new()
    }

    /// Closes the session gracefully. Dropping it instead aborts it.
    fn close(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    /// Returns further output that helps to explain a failure: the last error output of the agent.
    fn diagnostic_output(&self) -> Option<String> {
        None
    }
}

/// One user input with the context of its turn.
pub struct AgentInput<'a> {
    /// Id of the turn in the trace.
    pub turn_id: Arc<str>,
    /// Id of the user message.
    pub message_id: Arc<str>,
    /// Text of the user, without attachments.
    pub text: &'a str,
    /// Content of the user message, with attachments.
    pub content: &'a [ContentPart],
    /// Options of the turn.
    pub options: Option<&'a Value>,
    /// Scripted answers of the client.
    pub script: &'a mut ScriptedAnswers,
    /// Limits of the turn.
    pub limits: TurnLimits<'a>,
    /// Recorder of the events.
    pub recorder: &'a mut TraceRecorder,
}

/// Parts of a case that a protocol can carry beside the user's text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProtocolCapabilities {
    /// Messages before the first turn.
    pub history: bool,
    /// Attachments.
    pub attachments: bool,
    /// Options of a turn.
    pub options: bool,
    /// What shows the tool calls of the agent.
    pub calls: CallVisibility,
}

impl ProtocolCapabilities {
    /// All parts, and calls that the protocol shows.
    pub const ALL: ProtocolCapabilities = ProtocolCapabilities {
        history: true,
        attachments: true,
        options: true,
        calls: CallVisibility::Protocol,
    };
}

named! {
    /// The part of the conversation sent with each input.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum HistoryMode {
        /// The whole conversation.
        Full = "full",
        /// Only messages that the agent has not received yet.
        Delta = "delta",
    }
}
