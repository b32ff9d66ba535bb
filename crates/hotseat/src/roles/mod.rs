//! Helpers that are asked during a run: whoever simulates the user, judges, makes cases up, or writes a report.
//!
//! A helper is an agent like any other, reached by the same adapters, a model that is asked with a prompt of ours, or a
//! function of a script.
//! Each question is a conversation of its own, so what a helper said of one case never colours what it says of
//! another. What it says is read strictly: an answer that makes no sense is the helper's error, never a verdict.

mod answers;
mod dialogue;
mod generator;
mod judge;
mod reading;
mod reporter;
mod simulator;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hotseat_model::{
    Discard, ErrorKind as ModelErrorKind, Message as ModelMessage, Model, ModelError, Position, Request,
    ResponseFormat, StopReason,
};
use hotseat_script::ErrorKind;
use hotseat_trace::{Failure, FailureKind, Payload, RoleAnswered, TurnStarted, UserMessage};
use serde_json::{Map, Value};
use tokio::time::{Instant, timeout_at};

pub use answers::Answers;
pub use dialogue::Dialogue;
pub use generator::GeneratorQuestion;
#[doc(hidden)]
pub use judge::read_judgement;
pub use judge::{
    Asked, By, Candidate, Classified, Confidence, Judge, JudgeQuestion, Judgement, Seen, TopicQuestion,
};
pub use reporter::ReporterQuestion;
pub use simulator::{SimulatorQuestion, UserAnswer, UserDecision};

use crate::adapters::{AgentSession, Input, Limits, TurnError};
use crate::checks::Reference;
use crate::scripts::{Callable, Called};
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
    /// As a function of a script.
    Script(Callable),
    /// Not at all: only what it said before counts. Whether it is a model.
    Nobody { is_model: bool },
}

/// Opens a conversation with an agent.
pub type Opening = Arc<dyn Fn() -> (Box<dyn AgentSession>, TurnScript) + Send + Sync>;

/// What a helper is asked.
pub struct Question {
    /// What it is told, in the one message that it gets: a text as it is, everything else as JSON.
    pub message: Value,
    /// What its protocol carries beside the message.
    pub options: Map<String, Value>,
    /// What was said before, where it is told so as messages.
    pub history: Vec<Message>,
    /// The turn of the conversation that it is about, from 1.
    pub turn: usize,
    /// What a model is told about its part.
    pub prompt: Cow<'static, str>,
    /// The form that the answer of a model must have.
    pub format: Option<ResponseFormat>,
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
    /// The model that said it, in the provider's words, where that is known.
    pub model: Option<String>,
    /// What that cost, as far as it is known.
    pub usage: Option<Value>,
    /// Whether it ends because it may not be longer.
    pub is_cut: bool,
    /// What a function of a script has said to `console` meanwhile.
    pub logs: Vec<String>,
}

impl Said {
    /// Why an answer is of no use that ends because it may not be longer.
    fn cut_off(&self) -> String {
        format!("its answer was cut at the longest that it may be; {}", beginning(&self.text))
    }
}

/// Why a helper said nothing.
#[derive(Debug, Clone, PartialEq)]
pub enum Unanswered {
    /// The time that the conversation has is over.
    Deadline,
    /// It could not be asked, failed, or took too long, in words.
    Failed(String),
}

/// Whether the same question may be answered another time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    /// It may.
    Now,
    /// It may, after a pause: whoever is asked has had too many questions.
    After(Duration),
    /// It will not.
    Never,
}

/// How long whoever has had too many questions is left alone where it does not say.
const PAUSE: Duration = Duration::from_secs(1);
/// How long it is left alone at most, whatever it says.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

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

    /// A helper that is a function of a script. It may take as long as the project says, else this long.
    pub fn script(shown: &Reference, function: Callable, usual: Duration) -> Role {
        let patience = function.patience(usual);
        Role { who: Who::Script(function), shown: shown.to_string().into(), patience, idle: patience }
    }

    /// A helper that is not asked: what it has not said before, it does not say.
    pub fn nobody(shown: &Reference) -> Role {
        let is_model = matches!(shown, Reference::Connector(_));
        let (patience, idle) = (Duration::ZERO, Duration::ZERO);
        Role { who: Who::Nobody { is_model }, shown: shown.to_string().into(), patience, idle }
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
        self.try_ask(question).await.map_err(|(unanswered, _)| unanswered)
    }

    /// The same helper, with another limit for one answer.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Role {
        Role { patience, idle: self.idle.min(patience), ..self }
    }

    /// Whether it is a model that is told of its part by a prompt of ours, and not an agent that knows its part.
    fn is_model(&self) -> bool {
        matches!(self.who, Who::Model(..) | Who::Nobody { is_model: true })
    }

    /// Asks it.
    async fn try_ask(&self, question: Question) -> Result<Said, (Unanswered, Again)> {
        let begun = Instant::now();
        let own = begun + self.patience;
        let (deadline, of_conversation) = match question.until {
            Some(until) if until < own => (until, true),
            _ => (own, false),
        };
        let answer = match &self.who {
            Who::Agent(open) => {
                let (agent, script) = open();
                let limits = Limits::within(deadline, self.idle);
                ask_agent(agent, script, question, limits).await
            }
            Who::Model(model, asked) => {
                let number = asked.fetch_add(1, Ordering::Relaxed) + 1;
                ask_model(&**model, number, question, deadline).await
            }
            Who::Script(function) => ask_script(function, question, deadline).await,
            Who::Nobody { .. } => Err((Unanswered::Failed(answers::NOT_ASKED.to_string()), Again::Never)),
        };
        match answer {
            Ok(said) => Ok(Said { took: begun.elapsed(), ..said }),
            Err((Unanswered::Deadline, _)) if !of_conversation => {
                let words = format!("no answer after {} ms", self.patience.as_millis());
                Err((Unanswered::Failed(words), Again::Now))
            }
            Err(unanswered) => Err(unanswered),
        }
    }
}

async fn ask_agent(
    mut agent: Box<dyn AgentSession>,
    script: TurnScript,
    question: Question,
    limits: Limits<'_>,
) -> Result<Said, (Unanswered, Again)> {
    let carries = agent.carries();
    if !question.history.is_empty() {
        if !carries.history {
            let words = "it cannot be told of a conversation as messages; leave `style: transcript` out";
            return Err((Unanswered::Failed(words.to_string()), Again::Never));
        }
        let cannot = |failure: Failure| (Unanswered::Failed(failure.message), Again::Never);
        agent.remember(&question.history).map_err(cannot)?;
    }
    let text = question.text();
    let options = Value::Object(question.options);
    let turn_id: Arc<str> = "turn-1".into();
    let said = Spoken { turn_id, content: &[Part::Text(text.clone())], text: &text, options: Some(&options) };
    // What a helper does is nobody's trace; only what it says in the end counts.
    let mut recorder = Recorder::new(Redactor::default(), false);
    one_turn(agent, script, said, limits, &mut recorder).await.map_err(|unanswered| {
        let again = match unanswered {
            Unanswered::Failed(_) => Again::Now,
            Unanswered::Deadline => Again::Never,
        };
        (unanswered, again)
    })?;
    let Some(turn) = recorder.conversation().turns.first() else { return Ok(Said::default()) };
    let result = || turn.result.as_ref().map(Value::to_string);
    Ok(Said {
        text: turn.answer().map(str::to_string).or_else(result).unwrap_or_default(),
        usage: match turn.usage.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            several => Some(Value::Array(several.to_vec())),
        },
        is_cut: matches!(turn.finish_reason.as_deref(), Some("length" | "max_tokens")),
        ..Said::default()
    })
}

/// What is said in a turn.
pub struct Spoken<'a> {
    /// The id of the turn.
    pub turn_id: Arc<str>,
    /// The words.
    pub text: &'a str,
    /// The words, and what is attached to them.
    pub content: &'a [Part],
    /// What the agent is told beside it, where its protocol carries that.
    pub options: Option<&'a Value>,
}

/// Holds a conversation of one turn, and records all of it but how it ends.
///
/// # Errors
/// When it is not held to its end.
pub async fn one_turn(
    mut agent: Box<dyn AgentSession>,
    mut script: TurnScript,
    said: Spoken<'_>,
    limits: Limits<'_>,
    recorder: &mut Recorder,
) -> Result<(), Unanswered> {
    script.begin_turn(&[]);
    let traffic = recorder.traffic().clone();
    let turn_id = said.turn_id.clone();
    let message_id: Arc<str> = format!("{turn_id}-message").into();
    recorder.emit(TurnStarted {
        turn_id: turn_id.clone(),
        conversation_id: agent.conversation_id(),
        caller_id: "hotseat".into(),
        caller_type: "user".into(),
    });
    recorder.emit(UserMessage {
        turn_id: turn_id.clone(),
        message_id: message_id.clone(),
        content: said.text.to_string(),
        attachments: Vec::new(),
        options: None,
    });
    let input = Input {
        turn_id,
        message_id,
        text: said.text,
        content: said.content,
        options: said.options.filter(|_| agent.carries().options),
        script: &mut script,
        limits: limits.counting(&traffic),
    };
    traffic.begin_turn();
    let held = agent.say(input, recorder).await;
    let held = held.and_then(|()| traffic.end_turn().map_or(Ok(()), |failure| Err(failure.into())));
    agent.close().await;
    match held {
        Ok(()) => Ok(()),
        Err(TurnError::Deadline) => Err(Unanswered::Deadline),
        Err(TurnError::Run(error)) => Err(Unanswered::Failed(error.message)),
        Err(TurnError::Failed(failure)) => Err(Unanswered::Failed(failure.message)),
    }
}

impl Question {
    /// The message as it is sent.
    fn text(&self) -> String {
        match &self.message {
            Value::String(text) => text.clone(),
            other => judge::escaped(&other.to_string()),
        }
    }
}

/// A function is told the message, and what it returns is its answer: a text as it is, everything else as JSON.
async fn ask_script(
    function: &Callable,
    question: Question,
    deadline: Instant,
) -> Result<Said, (Unanswered, Again)> {
    if !question.history.is_empty() {
        let words =
            "a function is told of the conversation under `conversation`; leave `style: transcript` out";
        return Err((Unanswered::Failed(words.to_string()), Again::Never));
    }
    let within = deadline.saturating_duration_since(Instant::now());
    let Called { result, said: logs } = function.call(vec![question.message], Some(within), within).await;
    match result {
        Ok(Value::Null) => Ok(Said { logs, ..Said::default() }),
        Ok(Value::String(text)) => Ok(Said { text, logs, ..Said::default() }),
        Ok(other) => Ok(Said { text: other.to_string(), logs, ..Said::default() }),
        Err(error) if error.kind == ErrorKind::TimeLimit => Err((Unanswered::Deadline, Again::Never)),
        Err(error) => {
            let mut words = format!("{error}\n{}", error.diagnostic().render(false, 100));
            if !logs.is_empty() {
                words = format!("{words}\nconsole:\n{}", logs.join("\n"));
            }
            Err((Unanswered::Failed(words), Again::Never))
        }
    }
}

async fn ask_model(
    model: &dyn Model,
    number: u32,
    question: Question,
    deadline: Instant,
) -> Result<Said, (Unanswered, Again)> {
    let failed = |error: ModelError| {
        let again = match (error.can_retry(), error.retry_after) {
            (false, _) => Again::Never,
            (true, None) if error.kind == ModelErrorKind::RateLimit => Again::After(PAUSE),
            (true, None) => Again::Now,
            (true, Some(pause)) => Again::After(pause.min(LONGEST_PAUSE)),
        };
        (Unanswered::Failed(error.to_string()), again)
    };
    let request = Request {
        position: Position {
            // Each question is a conversation of its own, with a name that is the same in every run.
            conversation: format!("question-{number}"),
            turn: u32::try_from(question.turn).unwrap_or(u32::MAX),
            call: 1,
            ..Position::default()
        },
        messages: vec![ModelMessage::user(question.text())],
        system: Some(question.prompt.into_owned()),
        response_format: question.format,
        ..Request::default()
    };
    match timeout_at(deadline, model.call(&request, &mut Discard)).await {
        Ok(Ok(reply)) if reply.stop == StopReason::Refusal => {
            let words = format!("it refused to answer; {}", beginning(&reply.text));
            Err((Unanswered::Failed(words), Again::Now))
        }
        Ok(Ok(reply)) => Ok(Said {
            text: reply.text,
            took: Duration::ZERO,
            model: Some(reply.model.unwrap_or_else(|| model.name().to_string())),
            // An estimate is no figure that the provider has given.
            usage: (!reply.usage.estimated).then(|| serde_json::to_value(reply.usage).ok()).flatten(),
            is_cut: reply.stop == StopReason::MaxTokens,
            logs: Vec::new(),
        }),
        Ok(Err(error)) => Err(failed(error)),
        Err(_) => Err((Unanswered::Deadline, Again::Never)),
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
    /// Which of several askings it is: the vote, and the attempt at it, from 1.
    asked: Option<(usize, usize)>,
}

/// What a judge proposes, by the last of its answers that was a judgement.
pub fn suggestions(exchanges: &[Exchange]) -> Vec<String> {
    let found = exchanges.iter().rev().find_map(|exchange| exchange.finding.as_ref());
    let proposed = found.and_then(|found| found.get("suggestions")).and_then(Value::as_array);
    let shown = |one: &Value| match one {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    proposed.into_iter().flatten().map(shown).collect()
}

impl Exchange {
    /// An exchange that was kept.
    fn before(role: &'static str, kept: &RoleAnswered) -> Exchange {
        let number = |number: Option<u64>| number.and_then(|number| usize::try_from(number).ok());
        Exchange {
            role,
            agent: kept.agent.clone(),
            question: kept.question.clone(),
            said: Said {
                text: kept.answer.clone(),
                took: Duration::from_micros(kept.duration_us),
                model: kept.model.as_deref().map(str::to_string),
                usage: kept.usage.clone(),
                is_cut: false,
                logs: kept.logs.clone(),
            },
            finding: kept.finding.clone(),
            error: kept.error.clone(),
            asked: number(kept.vote).zip(number(kept.attempt)),
        }
    }

    /// The same exchange, of which it turned out that it is of no use.
    #[must_use]
    pub fn wrong(self, words: String) -> Exchange {
        Exchange { error: Some(words), ..self }
    }

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
            model: self.said.model.map(Arc::from),
            usage: self.said.usage,
            vote: self.asked.map(|(vote, _)| vote as u64),
            attempt: self.asked.map(|(_, attempt)| attempt as u64),
            logs: self.said.logs,
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
        FailureKind::UsageError => "usage is not known",
        FailureKind::TestError => "the test is wrong",
        _ => "role error",
    };
    let (first, rest) = words.split_once('\n').unwrap_or((words, ""));
    Failure::new(kind, format!("{who}: {first}")).with_detail(rest)
}
