//! How an agent is reached: one module per protocol.
//!
//! An adapter opens a conversation, sends one input at a time, and emits trace events until the agent is
//! done with the turn. Everything an agent did is in the events; nobody behind an adapter knows which one it is.

pub mod ag_ui;
pub mod http;
pub mod sse;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::{ErrorInfo, Failure};
use serde_json::Value;
use tokio::time::Instant;

use crate::session::{Message, Part, Recorder, TurnScript};

/// A future of an adapter.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One conversation with an agent.
pub trait AgentSession: Send {
    /// Id of the conversation at the agent.
    fn conversation_id(&self) -> Arc<str>;

    /// What its protocol can carry beside the words of the user. What it cannot is refused before anything is sent.
    fn carries(&self) -> Carries {
        Carries::default()
    }

    /// Puts messages before the first turn, as if they had been said. Called once, where `carries` says that it can.
    fn remember(&mut self, messages: &[Message]) {
        let _ = messages;
    }

    /// Sends one input and emits everything the agent does until it is done with the turn.
    ///
    /// # Errors
    /// When the turn could not be held to its end, in the order in which it showed.
    fn say<'a>(
        &'a mut self,
        input: Input<'a>,
        recorder: &'a mut Recorder,
    ) -> Pending<'a, Result<(), TurnError>>;
}

/// One user input with all that its turn needs.
pub struct Input<'a> {
    /// Id of the turn in the trace.
    pub turn_id: Arc<str>,
    /// Id of the user's message.
    pub message_id: Arc<str>,
    /// What the user says, without attachments.
    pub text: &'a str,
    /// What the user says, with attachments.
    pub content: &'a [Part],
    /// What the agent is told beside it.
    pub options: Option<&'a Value>,
    /// What the client answers when the agent asks it for something.
    pub script: &'a mut TurnScript,
    /// How long the agent may take.
    pub limits: Limits,
}

/// What a protocol can carry beside the words of the user.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Carries {
    /// Messages that were said before the first turn.
    pub history: bool,
    /// Attachments.
    pub attachments: bool,
    /// Options of a turn.
    pub options: bool,
}

/// How long an agent may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// When the turn is given up.
    pub deadline: Instant,
    /// How long nothing at all may be received.
    pub idle: Duration,
}

/// Why a turn could not be held to its end.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnError {
    /// The deadline has passed.
    Deadline,
    /// The agent itself said that its run failed.
    Run(ErrorInfo),
    /// Anything else.
    Failed(Failure),
}

impl From<Failure> for TurnError {
    fn from(failure: Failure) -> Self {
        TurnError::Failed(failure)
    }
}
