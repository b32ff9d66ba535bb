//! An agent that is a part of the program that tests it.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use hotseat_trace::{ErrorInfo, Origin};
use serde_json::Value;
use tokio::time::timeout_at;

use super::telling::{Arguments, Telling};
use super::{AgentSession, Carries, Input, Pending, TurnError};
use crate::session::{Message, Part, Recorder, Role, ToolReply};

/// Opens conversations with an agent in this program.
pub trait InCode: fmt::Debug + Send + Sync {
    /// A conversation of this id. Nothing is said yet.
    fn open(&self, conversation_id: Arc<str>) -> Box<dyn Answers>;

    /// Where the agent is written, for people.
    fn place(&self) -> &'static Location<'static>;
}

/// Answers in a conversation.
pub trait Answers: Send {
    /// The answer to the last of these messages; the others were said before.
    ///
    /// # Errors
    /// What the agent says it failed with.
    fn answer<'a>(&'a mut self, messages: Vec<Heard>) -> Pending<'a, Result<Answer, ErrorInfo>>;
}

/// A message as such an agent hears it.
#[derive(Debug, Clone)]
pub struct Heard {
    /// The message.
    pub message: Message,
    /// What was told beside it.
    pub options: Option<Value>,
}

/// What such an agent answers.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// What it says; empty where it only calls tools.
    pub text: String,
    /// The tools that it has called for that, in order.
    pub calls: Vec<Call>,
    /// Whether it waits for an input of the user, where it says so.
    pub awaiting: Option<bool>,
}

/// A call that such an agent has made.
#[derive(Debug, Clone)]
pub struct Call {
    /// The tool.
    pub name: String,
    /// The arguments.
    pub arguments: Value,
    /// What the tool returned, or why it failed; none where the agent does not say.
    pub result: Option<Result<Value, String>>,
}

/// A conversation with such an agent.
pub struct Session {
    id: Arc<str>,
    agent: Box<dyn Answers>,
    history: Vec<Heard>,
    turns: usize,
}

impl Session {
    /// Opens a conversation. The agent is told nothing yet.
    pub fn open(agent: &dyn InCode) -> Session {
        let id: Arc<str> = uuid::Uuid::new_v4().to_string().into();
        Session { agent: agent.open(id.clone()), id, history: Vec::new(), turns: 0 }
    }

    async fn hold_turn(&mut self, input: Input<'_>, recorder: &mut Recorder) -> Result<(), TurnError> {
        let Input { turn_id, content, options, limits, .. } = input;
        self.turns += 1;
        let run_id: Arc<str> = format!("answer-{}", self.turns).into();
        let mut telling = Telling::new(turn_id, recorder);
        telling.run_started(&run_id);
        self.history.push(Heard { message: user(content), options: options.cloned() });
        let asked = self.agent.answer(self.history.clone());
        // It tells nothing until it is done, so there is no silence to be judged, only the time it takes.
        let answer = match timeout_at(limits.deadline, asked).await {
            Err(_) => return Err(TurnError::Deadline),
            Ok(Err(error)) => {
                telling.run_failed(&error);
                return Err(TurnError::Run(error));
            }
            Ok(Ok(answer)) => answer,
        };
        for call in answer.calls {
            let id = telling.call("", &call.name, None);
            telling.arguments(&id, Arguments::of_json(call.arguments));
            match call.result {
                Some(Ok(output)) => telling.result(&id, ToolReply::Content(output), Origin::Stream),
                Some(Err(words)) => telling.result(&id, ToolReply::Error(words), Origin::Stream),
                None => {}
            }
        }
        telling.message(answer.text, None, None);
        if let Some(awaiting) = answer.awaiting {
            telling.awaiting(awaiting, None);
        }
        telling.run_finished(&run_id, None, None);
        let told = telling.told()?;
        self.history.extend(told.into_iter().map(|message| Heard { message, options: None }));
        Ok(())
    }
}

impl AgentSession for Session {
    fn conversation_id(&self) -> Arc<str> {
        self.id.clone()
    }

    fn carries(&self) -> Carries {
        Carries { history: true, attachments: false, options: true }
    }

    fn remember(&mut self, messages: &[Message]) -> Result<(), hotseat_trace::Failure> {
        self.history.extend(messages.iter().cloned().map(|message| Heard { message, options: None }));
        Ok(())
    }

    fn say<'a>(
        &'a mut self,
        input: Input<'a>,
        recorder: &'a mut Recorder,
    ) -> Pending<'a, Result<(), TurnError>> {
        Box::pin(self.hold_turn(input, recorder))
    }
}

fn user(content: &[Part]) -> Message {
    Message {
        role: Role::User,
        content: content.to_vec(),
        name: None,
        tool_calls: Vec::new(),
        tool_call_id: None,
    }
}
