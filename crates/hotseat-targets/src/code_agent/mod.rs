//! Agents written in the test program itself.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use hotseat_trace::{AttemptFailure, FailureKind, Origin};
use serde_json::Value;
use tokio::time::timeout_at;

use crate::connection::TurnError;
use crate::message::{ConversationMessage, ToolReply, unique_id};
use crate::target::template::user_message;
use crate::target::{
    AgentInput, AgentSession, BoxFuture, CallArguments, ProtocolCapabilities, TurnFuture, TurnRecorder,
};

/// Opens conversations with an agent in the test program.
pub trait CodeAgent: fmt::Debug + Send + Sync {
    /// Opens a conversation with this id.
    fn open(&self, conversation_id: Arc<str>) -> Box<dyn CodeAgentConversation>;

    /// Returns the source location of the agent.
    fn location(&self) -> &'static Location<'static>;
}

/// A conversation with an agent in the test program.
pub trait CodeAgentConversation: Send {
    /// Answers the last of these messages; the others are the history. Fails with [`TurnError::Run`] if the agent
    /// reports an error, which a turn may expect, and with [`TurnError::Failed`] if it cannot answer.
    fn answer<'a>(
        &'a mut self,
        messages: Vec<CodeAgentMessage>,
    ) -> BoxFuture<'a, Result<CodeAgentAnswer, TurnError>>;
}

/// A message as passed to the agent.
#[derive(Debug, Clone)]
pub struct CodeAgentMessage {
    /// The message.
    pub message: ConversationMessage,
    /// Options of its turn.
    pub options: Option<Value>,
}

/// Answer of the agent.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct CodeAgentAnswer {
    /// Text; empty if the agent only calls tools.
    pub text: String,
    /// Tool calls made for this answer, in order.
    pub calls: Vec<CodeAgentCall>,
    /// True if the agent awaits input, `None` if it does not say.
    pub awaiting: Option<bool>,
    /// Message of the error with which the agent ends its turn, if it fails.
    pub error: Option<String>,
}

impl CodeAgentAnswer {
    /// Creates an answer with this text.
    ///
    /// ```
    /// use hotseat_targets::code_agent::CodeAgentAnswer;
    ///
    /// assert_eq!(CodeAgentAnswer::text("Hello!").text, "Hello!");
    /// ```
    pub fn text(text: impl Into<String>) -> CodeAgentAnswer {
        CodeAgentAnswer { text: text.into(), ..CodeAgentAnswer::default() }
    }

    /// Adds a successful tool call with its arguments and result.
    pub fn calling(mut self, tool: impl Into<String>, arguments: Value, result: Value) -> CodeAgentAnswer {
        self.calls.push(CodeAgentCall {
            name: tool.into(),
            arguments,
            result: Some(ToolReply::Content(result)),
        });
        self
    }

    /// Adds a failed tool call with its arguments and error.
    pub fn failing(
        mut self,
        tool: impl Into<String>,
        arguments: Value,
        error: impl Into<String>,
    ) -> CodeAgentAnswer {
        self.calls.push(CodeAgentCall {
            name: tool.into(),
            arguments,
            result: Some(ToolReply::Error(error.into())),
        });
        self
    }

    /// Sets whether the agent waits for user input.
    pub fn awaiting(self, awaiting: bool) -> CodeAgentAnswer {
        CodeAgentAnswer { awaiting: Some(awaiting), ..self }
    }

    /// Ends the turn with an error of the agent, after the tool calls of the answer.
    pub fn ending_with_error(self, message: impl Into<String>) -> CodeAgentAnswer {
        CodeAgentAnswer { error: Some(message.into()), ..self }
    }
}

/// A tool call of the agent.
#[derive(Debug, Clone)]
pub struct CodeAgentCall {
    /// The tool.
    pub name: String,
    /// The arguments.
    pub arguments: Value,
    /// The result or error; `None` if the agent does not report it.
    pub result: Option<ToolReply>,
}

/// A session with an agent in the test program.
pub struct CodeAgentSession {
    id: Arc<str>,
    agent: Box<dyn CodeAgentConversation>,
    history: Vec<CodeAgentMessage>,
    turns: usize,
}

impl CodeAgentSession {
    /// Opens a conversation: `open` creates it with the given id. Nothing is sent yet.
    pub fn open(open: impl FnOnce(Arc<str>) -> Box<dyn CodeAgentConversation>) -> CodeAgentSession {
        let id: Arc<str> = unique_id().into();
        CodeAgentSession { agent: open(id.clone()), id, history: Vec::new(), turns: 0 }
    }

    async fn run_turn(&mut self, input: AgentInput<'_>) -> Result<(), TurnError> {
        let AgentInput { turn_id, content, options, limits, recorder, .. } = input;
        self.turns += 1;
        let run_id: Arc<str> = format!("answer-{}", self.turns).into();
        let mut telling = TurnRecorder::new(turn_id, recorder);
        telling.run_started(&run_id);
        self.history.push(CodeAgentMessage { message: user_message(content), options: options.cloned() });
        let asked = self.agent.answer(self.history.clone());
        // The agent sends nothing until it is done, so the idle limit does not apply.
        let answer = match timeout_at(limits.deadline, asked).await {
            Err(_) => return Err(TurnError::Deadline),
            Ok(Err(error)) => {
                if let TurnError::Run(error) = &error {
                    telling.run_failed(error);
                }
                return Err(error);
            }
            Ok(Ok(answer)) => answer,
        };
        if answer.calls.iter().any(|call| call.name.trim().is_empty()) {
            let message = "the agent calls a tool without a name";
            return Err(AttemptFailure::new(FailureKind::ProtocolError, message).into());
        }
        for call in answer.calls {
            let id = telling.record_call("", &call.name, Origin::Snapshot, None);
            telling.record_arguments(&id, CallArguments::from_json(call.arguments));
            if let Some(result) = call.result {
                telling.record_result(&id, result.parsed(), Origin::Stream);
            }
        }
        telling.record_message(answer.text, None, None);
        if let Some(message) = answer.error {
            let error = telling.fail_run(message, None);
            return self.end_turn(telling, Err(error));
        }
        if let Some(awaiting) = answer.awaiting {
            telling.record_awaiting(awaiting, None);
        }
        telling.run_finished(&run_id, None);
        self.end_turn(telling, Ok(()))
    }

    fn end_turn(&mut self, telling: TurnRecorder<'_>, ended: Result<(), TurnError>) -> Result<(), TurnError> {
        let (said, ended) = telling.end(ended);
        self.remember(said);
        ended
    }

    /// Adds messages without options to the history.
    fn remember(&mut self, messages: impl IntoIterator<Item = ConversationMessage>) {
        let messages = messages.into_iter();
        self.history.extend(messages.map(|message| CodeAgentMessage { message, options: None }));
    }
}

impl AgentSession for CodeAgentSession {
    fn conversation_id(&self) -> Arc<str> {
        self.id.clone()
    }

    fn capabilities(&self) -> ProtocolCapabilities {
        ProtocolCapabilities { attachments: false, ..ProtocolCapabilities::ALL }
    }

    fn seed_history(&mut self, messages: &[ConversationMessage]) -> Result<(), AttemptFailure> {
        self.remember(messages.iter().cloned());
        Ok(())
    }

    fn send_input<'a>(&'a mut self, input: AgentInput<'a>) -> TurnFuture<'a> {
        Box::pin(self.run_turn(input))
    }
}
