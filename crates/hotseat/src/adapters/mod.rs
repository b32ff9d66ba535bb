//! How an agent is reached: one module per protocol.
//!
//! An adapter opens a conversation, sends one input at a time, and emits trace events until the agent is
//! done with the turn. Everything an agent did is in the events; nobody behind an adapter knows which one it is.

pub mod ag_ui;
pub mod arrivals;
mod client_tools;
pub mod command;
pub mod embedded;
pub mod http;
pub mod http_agent;
pub mod in_code;
pub(crate) mod json_text;
mod lines;
pub mod openai;
pub mod replay;
pub mod sse;
mod telling;
pub mod template;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::{ErrorInfo, Failure, FailureKind};
use serde_json::Value;
use tokio::time::Instant;

use crate::session::{AskedInterrupt, Message, Part, Recorder, TrafficMeter, TurnScript};

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
    ///
    /// # Errors
    /// When something in them has no form in the protocol.
    fn remember(&mut self, messages: &[Message]) -> Result<(), Failure> {
        let _ = messages;
        Ok(())
    }

    /// Whether the trace of its conversation tells how long things took. Asked after `remember`.
    fn keeps_time(&self) -> bool {
        true
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

    /// The last turn is over. What the agent still says without being asked is waited for, for a short time.
    ///
    /// # Errors
    /// When it says something.
    fn settle(&mut self) -> Pending<'_, Result<(), Failure>> {
        Box::pin(async { Ok(()) })
    }

    /// Ends the conversation in order. What is only dropped ends at once.
    fn close(&mut self) -> Pending<'_, ()> {
        Box::pin(async {})
    }

    /// What else the agent has left that helps to understand why its conversation failed: its last error output.
    fn last_words(&self) -> Option<String> {
        None
    }
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
    /// How long the agent may take, and how much it may send.
    pub limits: Limits<'a>,
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

/// Which part of the conversation an agent is told with what the user says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// All of it.
    Full,
    /// What it has not been told yet.
    Delta,
}

/// How often an agent may ask the client for something in one turn, so that one that asks for ever is stopped.
const MOST_REQUESTS: usize = 25;
/// How long is waited for more after an agent has said that it is done, should it keep the connection open.
const GRACE: Duration = Duration::from_millis(200);

/// How long an agent may take, and how much it may send.
#[derive(Debug, Clone, Copy)]
pub struct Limits<'a> {
    /// When the turn is given up.
    pub deadline: Instant,
    /// How long nothing at all may be received.
    pub idle: Duration,
    /// Counts what is received; none for what is no agent.
    traffic: Option<&'a TrafficMeter>,
}

impl<'a> Limits<'a> {
    /// Limits on time alone.
    pub fn within(deadline: Instant, idle: Duration) -> Self {
        Limits { deadline, idle, traffic: None }
    }

    /// The same limits, and those of a meter.
    #[must_use]
    pub fn counting(self, traffic: &'a TrafficMeter) -> Self {
        Limits { traffic: Some(traffic), ..self }
    }

    /// The same limits on time for somebody who is not the agent.
    fn uncounted(self) -> Self {
        Limits { traffic: None, ..self }
    }

    /// The limits for what an agent that is done may still send.
    fn in_grace(self) -> Self {
        Limits { deadline: self.deadline.min(Instant::now() + GRACE), idle: GRACE, ..self }
    }

    /// Counts bytes that were received.
    fn receive(self, bytes: usize) {
        if let Some(traffic) = self.traffic {
            traffic.receive(bytes);
        }
    }

    /// Why nothing more is taken in of what was received. It is asked before every event: many may have come at once.
    fn over_within(self) -> Option<Failure> {
        self.traffic?.recorded_too_much()
    }

    /// Why nothing more is read; whether the time is over is said by the times of arrivals. It is asked before every read.
    fn over(self) -> Option<Failure> {
        self.traffic?.passed()
    }
}

/// The failure of an agent that asks for ever.
fn asked_too_often() -> Failure {
    let message =
        format!("the agent asked the client for something {MOST_REQUESTS} times in one turn; given up");
    Failure::new(FailureKind::AgentError, message)
}

/// The failure of a turn whose test has no answer to what the agent asks a person.
fn unanswered_interrupt(asked: &AskedInterrupt<'_>, value: &Value) -> Failure {
    let mut words =
        "the agent paused and asked for an answer that the turn does not script (`resume`)".to_string();
    for (what, said) in [("reason", asked.reason), ("message", asked.message), ("tool", asked.tool)] {
        if let Some(said) = said {
            words.push_str(&format!("; {what}: {}", excerpt(said, 200)));
        }
    }
    Failure::new(FailureKind::TestError, words)
        .with_detail(serde_json::to_string_pretty(value).unwrap_or_default())
}

/// What an agent has begun to send after it said that it is done, and has not sent whole in the time for that.
fn unread(unfinished: &str) -> String {
    let shown = excerpt(unfinished, 200);
    format!("{} ms after its end the answer was in the middle of an event: {shown}", GRACE.as_millis())
}

/// What becomes of a call whose result the agent waits for and whose tool the test does not offer. A tool that asks the
/// user leaves the agent awaiting what the user says next; a result of any other tool is missing.
fn not_offered(tool: &str, script: &TurnScript) -> Result<(), Failure> {
    if script.asks_user(tool) {
        return Ok(());
    }
    let message = format!(
        "the agent called tool {tool} and waits for its result; the test does not offer such a tool (`tools`)"
    );
    Err(Failure::new(FailureKind::TestError, message))
}

/// The failure of a turn whose test has no answer to a call of a tool that its client offers.
fn unanswered_call(tool: &str, arguments: &Value) -> Failure {
    let message = format!("client tool {tool} was called with {arguments} and no scripted answer fits");
    Failure::new(FailureKind::TestError, message)
}

/// The beginning of a text, cut between characters, with a mark where it goes on.
fn excerpt(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
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
