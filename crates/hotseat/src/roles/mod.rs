//! Helpers that are asked during a run: whoever simulates the user, judges, makes cases up, or writes a report.
//!
//! A helper is an agent like any other, reached by the same adapters, or a model that is asked with a prompt of ours.
//! Each question is a conversation of its own, so what a helper said of one case never colours what it says of
//! another. What it says is read strictly: an answer that makes no sense is the helper's error, never a verdict.

mod dialogue;
mod generator;
mod judge;
mod reporter;
mod simulator;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hotseat_model::{Discard, Message as ModelMessage, Model, Position, Request};
use hotseat_trace::{Failure, FailureKind, Payload, RoleAnswered, TurnStarted, UserMessage};
use serde_json::{Map, Value};
use tokio::time::{Instant, timeout_at};

pub use dialogue::Dialogue;
pub use generator::GeneratorQuestion;
pub use judge::{JudgeQuestion, Judgement};
pub use reporter::ReporterQuestion;
pub use simulator::{SimulatorQuestion, UserMove};

use crate::adapters::{AgentSession, Input, Limits, TurnError};
use crate::checks::Reference;
use crate::session::{Message, Part, Recorder, Redactor, TurnScript};

/// A helper.
#[derive(Clone)]
pub struct Role {
    who: Who,
    /// As it is shown to people.
    shown: Arc<str>,
    /// How long one answer may take.
    patience: Duration,
    /// How long nothing at all may be received.
    idle: Duration,
}

/// How a helper is reached.
#[derive(Clone)]
enum Who {
    /// As an agent.
    Agent(Opening),
    /// As a model, with a prompt of ours; and how often it was asked.
    Model(Arc<dyn Model>, Arc<AtomicU32>),
}

/// Opens a conversation with an agent.
pub type Opening = Arc<dyn Fn() -> (Box<dyn AgentSession>, TurnScript) + Send + Sync>;

/// What a helper is asked.
pub struct Question {
    /// What it is told, in the one message that it gets.
    pub message: Value,
    /// What its protocol carries beside the message.
    pub options: Map<String, Value>,
    /// What was said before, where it is told so as messages.
    pub history: Vec<Message>,
    /// The turn of the conversation that it is about, from 1.
    pub turn: usize,
    /// What a model is told about its part.
    pub prompt: &'static str,
    /// When the answer is given up.
    pub until: Option<Instant>,
}

/// What a helper said.
#[derive(Debug, Clone, Default)]
pub struct Said {
    /// To the letter.
    pub text: String,
    /// How long it took.
    pub took: Duration,
}

/// Why a helper said nothing.
#[derive(Debug, Clone, PartialEq)]
pub enum Unanswered {
    /// The time that the conversation has is over.
    Deadline,
    /// It could not be asked, failed, or took too long, in words.
    Failed(String),
}

impl fmt::Debug for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Role").field("shown", &self.shown).finish_non_exhaustive()
    }
}

impl Role {
    /// A helper that is an agent.
    pub fn agent(shown: &Reference, open: Opening, patience: Duration, idle: Duration) -> Role {
        Role { who: Who::Agent(open), shown: shown.to_string().into(), patience, idle }
    }

    /// A helper that is a model with a prompt of ours.
    pub fn model(shown: &Reference, model: Arc<dyn Model>, patience: Duration) -> Role {
        Role {
            who: Who::Model(model, Arc::default()),
            shown: shown.to_string().into(),
            patience,
            idle: patience,
        }
    }

    /// As it is shown to people.
    pub fn shown(&self) -> &Arc<str> {
        &self.shown
    }

    /// Asks it.
    ///
    /// # Errors
    /// When it says nothing.
    pub async fn ask(&self, question: Question) -> Result<Said, Unanswered> {
        let begun = Instant::now();
        let own = begun + self.patience;
        let (deadline, of_conversation) = match question.until {
            Some(until) if until < own => (until, true),
            _ => (own, false),
        };
        let answer = match &self.who {
            Who::Agent(open) => {
                let (agent, script) = open();
                let limits = Limits { deadline, idle: self.idle };
                ask_agent(agent, script, question, limits).await
            }
            Who::Model(model, asked) => {
                let number = asked.fetch_add(1, Ordering::Relaxed) + 1;
                ask_model(&**model, number, question, deadline).await
            }
        };
        match answer {
            Ok(text) => Ok(Said { text, took: begun.elapsed() }),
            Err(Unanswered::Deadline) if !of_conversation => {
                Err(Unanswered::Failed(format!("no answer after {} ms", self.patience.as_millis())))
            }
            Err(unanswered) => Err(unanswered),
        }
    }
}

async fn ask_agent(
    mut agent: Box<dyn AgentSession>,
    mut script: TurnScript,
    question: Question,
    limits: Limits,
) -> Result<String, Unanswered> {
    let carries = agent.carries();
    if !question.history.is_empty() {
        if !carries.history {
            let words = "it cannot be told of a conversation as messages; leave `style: transcript` out";
            return Err(Unanswered::Failed(words.to_string()));
        }
        agent.remember(&question.history).map_err(|failure| Unanswered::Failed(failure.message))?;
    }
    script.begin_turn(&[]);
    // What a helper does is nobody's trace; only what it says in the end counts.
    let mut recorder = Recorder::new(Redactor::default(), false);
    let turn_id: Arc<str> = "turn-1".into();
    let message_id: Arc<str> = "message-1".into();
    let text = question.message.to_string();
    recorder.emit(TurnStarted {
        turn_id: turn_id.clone(),
        conversation_id: agent.conversation_id(),
        caller_id: "hotseat".into(),
        caller_type: "user".into(),
    });
    let content = text.clone();
    recorder.emit(UserMessage {
        turn_id: turn_id.clone(),
        message_id: message_id.clone(),
        content,
        attachments: Vec::new(),
    });
    let options = Value::Object(question.options);
    let parts = [Part::Text(text.clone())];
    let input = Input {
        turn_id,
        message_id,
        text: &text,
        content: &parts,
        options: carries.options.then_some(&options),
        script: &mut script,
        limits,
    };
    let said = agent.say(input, &mut recorder).await;
    agent.close().await;
    match said {
        Ok(()) => {}
        Err(TurnError::Deadline) => return Err(Unanswered::Deadline),
        Err(TurnError::Run(error)) => return Err(Unanswered::Failed(error.message)),
        Err(TurnError::Failed(failure)) => return Err(Unanswered::Failed(failure.message)),
    }
    let turn = recorder.conversation().turns.first();
    let result = || turn?.result.as_ref().map(Value::to_string);
    Ok(turn.and_then(|turn| turn.answer()).map(str::to_string).or_else(result).unwrap_or_default())
}

async fn ask_model(
    model: &dyn Model,
    number: u32,
    question: Question,
    deadline: Instant,
) -> Result<String, Unanswered> {
    let request = Request {
        position: Position {
            // Each question is a conversation of its own, with a name that is the same in every run.
            conversation: format!("question-{number}"),
            turn: u32::try_from(question.turn).unwrap_or(u32::MAX),
            call: 1,
            ..Position::default()
        },
        system: Some(question.prompt.to_string()),
        messages: vec![ModelMessage::user(question.message.to_string())],
        ..Request::default()
    };
    match timeout_at(deadline, model.call(&request, &mut Discard)).await {
        Ok(Ok(reply)) => Ok(reply.text),
        Ok(Err(error)) => Err(Unanswered::Failed(error.to_string())),
        Err(_) => Err(Unanswered::Deadline),
    }
}

/// What an exchange with a helper leaves in the trace.
#[derive(Debug, Clone)]
pub struct Exchange {
    role: &'static str,
    agent: Arc<str>,
    question: Value,
    said: Said,
    finding: Option<Value>,
    error: Option<String>,
}

impl Exchange {
    /// The event of it, as one of a turn.
    pub fn of_turn(self, turn_id: Arc<str>) -> Payload {
        Payload::RoleAnswered(RoleAnswered {
            turn_id,
            role: self.role.into(),
            agent: self.agent,
            question: self.question,
            answer: self.said.text,
            finding: self.finding,
            error: self.error,
            duration_us: u64::try_from(self.said.took.as_micros()).unwrap_or(u64::MAX),
        })
    }
}

/// How an answer begins, for people who look for what is wrong with it.
fn beginning(text: &str) -> String {
    const SHOWN: usize = 200;
    match text.char_indices().nth(SHOWN) {
        _ if text.trim().is_empty() => "it said nothing".to_string(),
        Some((end, _)) => format!("it said {:?}…", &text[..end]),
        None => format!("it said {text:?}"),
    }
}

/// The options that a helper gets: what is written, and what it is told anyhow under `metadata`.
fn options(written: &Map<String, Value>, metadata: Map<String, Value>) -> Map<String, Value> {
    let mut options = written.clone();
    options.entry("skip").or_insert_with(|| serde_json::json!({"history": true}));
    let told = options.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(told) = told {
        told.extend(metadata);
    }
    options
}

/// The failure of a helper, or of a function that judges, that said nothing of use.
pub fn failure(kind: FailureKind, words: &str) -> Failure {
    let who = match kind {
        FailureKind::SimulatorError => "simulator error",
        FailureKind::JudgeError => "judge error",
        FailureKind::ScriptError => "script error",
        _ => "helper error",
    };
    let (first, rest) = words.split_once('\n').unwrap_or((words, ""));
    Failure::new(kind, format!("{who}: {first}")).with_detail(rest)
}
