//! Targets: one module per protocol by which agents are reached.
//!
//! A target opens a conversation, sends one input at a time, and emits trace events until the agent has
//! completed the turn. All actions of the agent are events; later code does not depend on the protocol.

pub mod ag_ui;
pub mod arrivals;
mod client_tools;
pub mod code_agent;
pub mod command;
pub mod embedded;
pub mod http;
pub mod http_agent;
pub(crate) mod json_text;
mod lines;
pub mod openai;
pub mod replay;
pub mod sse;
pub mod template;
mod turn_recorder;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::{AttemptFailure, ErrorInfo, FailureKind};
use serde_json::Value;
use tokio::time::Instant;

use crate::session::{
    ContentPart, ConversationMessage, InterruptRequest, ScriptedAnswers, TraceRecorder, TrafficMeter,
};

/// A boxed future of a target.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

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
    ///
    /// # Errors
    /// If the protocol cannot express a message.
    fn seed_history(&mut self, messages: &[ConversationMessage]) -> Result<(), AttemptFailure> {
        let _ = messages;
        Ok(())
    }

    /// Returns true if the trace has real times. Called after `seed_history`.
    fn has_timestamps(&self) -> bool {
        true
    }

    /// Sends one input and emits all events until the agent has completed the turn.
    ///
    /// # Errors
    /// If the turn cannot be completed; the first problem found is returned.
    fn send_input<'a>(
        &'a mut self,
        input: AgentInput<'a>,
        recorder: &'a mut TraceRecorder,
    ) -> BoxFuture<'a, Result<(), TurnError>>;

    /// Waits a short time for unprompted output after the last turn.
    ///
    /// # Errors
    /// If the agent sends any.
    fn check_trailing_output(&mut self) -> BoxFuture<'_, Result<(), AttemptFailure>> {
        Box::pin(async { Ok(()) })
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
}

/// The part of the conversation sent with each input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryMode {
    /// The whole conversation.
    Full,
    /// Only messages that the agent has not received yet.
    Delta,
}

/// Maximum number of requests that an agent may make to the client in one turn; stops endless loops.
const MAX_CLIENT_REQUESTS: usize = 25;
/// Time to wait for trailing data after the agent is done, if it keeps the connection open.
const TRAILING_GRACE: Duration = Duration::from_millis(200);

/// Limits of a turn on time and traffic.
#[derive(Debug, Clone, Copy)]
pub struct TurnLimits<'a> {
    /// Deadline of the turn.
    pub deadline: Instant,
    /// Maximum time without received data.
    pub idle: Duration,
    /// Counts received data; `None` for requests that do not go to the agent.
    traffic: Option<&'a TrafficMeter>,
}

impl<'a> TurnLimits<'a> {
    /// Creates limits on time only.
    pub fn new(deadline: Instant, idle: Duration) -> Self {
        TurnLimits { deadline, idle, traffic: None }
    }

    /// Adds the traffic limits of a meter.
    #[must_use]
    pub fn with_traffic(self, traffic: &'a TrafficMeter) -> Self {
        TurnLimits { traffic: Some(traffic), ..self }
    }

    /// Removes the traffic limits, for requests that do not go to the agent.
    fn without_traffic(self) -> Self {
        TurnLimits { traffic: None, ..self }
    }

    /// Returns the limits for trailing data of an agent that is done.
    fn for_trailing_data(self) -> Self {
        TurnLimits {
            deadline: self.deadline.min(Instant::now() + TRAILING_GRACE),
            idle: TRAILING_GRACE,
            ..self
        }
    }

    /// Counts received bytes.
    fn count_received(self, bytes: usize) {
        if let Some(traffic) = self.traffic {
            traffic.count_received(bytes);
        }
    }

    /// Returns the exceeded limit on recorded events. Checked before each event, since many may arrive at
    /// once.
    fn exceeded_record_limit(self) -> Option<AttemptFailure> {
        self.traffic?.exceeded_record_limit()
    }

    /// Returns the exceeded traffic limit. Checked before each read; time limits are checked by arrival
    /// times.
    fn exceeded_limit(self) -> Option<AttemptFailure> {
        self.traffic?.exceeded_limit()
    }
}

/// Returns the failure of an agent that makes too many requests to the client.
fn too_many_requests() -> AttemptFailure {
    let message =
        format!("the agent made {MAX_CLIENT_REQUESTS} requests to the client in one turn, the maximum");
    AttemptFailure::new(FailureKind::AgentError, message)
}

/// Returns the failure of a turn without a scripted answer to an interrupt.
fn unanswered_interrupt(asked: &InterruptRequest<'_>, value: &Value) -> AttemptFailure {
    let mut words =
        "the agent paused for an answer that the turn does not define (add it to `resume`)".to_string();
    for (what, said) in [("reason", asked.reason), ("message", asked.message), ("tool", asked.tool)] {
        if let Some(said) = said {
            words.push_str(&format!("; {what}: {}", excerpt(said, 200)));
        }
    }
    AttemptFailure::new(FailureKind::TestError, words)
        .with_detail(serde_json::to_string_pretty(value).unwrap_or_default())
}

/// Returns the note about an incomplete event that the agent sent after it was done.
fn trailing_partial_event(unfinished: &str) -> String {
    let shown = excerpt(unfinished, 200);
    format!(
        "{} ms after its end the answer still had an incomplete event: {shown}",
        TRAILING_GRACE.as_millis()
    )
}

/// Checks a call that awaits a result and whose tool the test does not offer. A tool that asks the user
/// leaves the agent awaiting input; any other tool is an error.
fn check_unoffered_call(tool: &str, script: &ScriptedAnswers) -> Result<(), AttemptFailure> {
    if script.asks_user(tool) {
        return Ok(());
    }
    let message = format!(
        "the agent called tool {tool} and awaits its result, but the test does not offer this tool (add it to `tools`)"
    );
    Err(AttemptFailure::new(FailureKind::TestError, message))
}

/// Returns the failure of a turn without a scripted answer to a call of an offered tool.
fn unanswered_call(tool: &str, arguments: &Value) -> AttemptFailure {
    let message = format!("client tool {tool} was called with {arguments}, but no scripted answer matches");
    AttemptFailure::new(FailureKind::TestError, message)
}

/// Returns the first characters of a text, with an ellipsis if it is longer.
fn excerpt(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}

/// Error of a turn that could not be completed.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnError {
    /// The deadline has passed.
    Deadline,
    /// The agent reported that its run failed.
    Run(ErrorInfo),
    /// Any other failure.
    Failed(AttemptFailure),
}

impl From<AttemptFailure> for TurnError {
    fn from(failure: AttemptFailure) -> Self {
        TurnError::Failed(failure)
    }
}
