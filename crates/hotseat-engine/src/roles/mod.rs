//! Roles used during a run: simulators, judges, generators and report writers.
//!
//! A role is performed by an agent, by a model with a built-in prompt, or by a script function. Each question
//! is a conversation of its own, so answers about one case cannot influence another. Answers are parsed
//! strictly: an invalid answer is an error of the role, never a verdict.

mod answer_json;
mod dialogue;
mod generator;
mod judge;
mod recorded_answers;
mod reporter;
mod role_cassette;
mod simulator;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hotseat_model::{
    CallPosition, DiscardSink, Model, ModelError, ModelErrorKind, ModelMessage, ModelRequest, ResponseFormat,
    StopReason,
};
use hotseat_script::ScriptErrorKind;
use hotseat_trace::{AttemptFailure, FailureKind, Payload, RoleAnswered, TurnStart, UserMessage, plain_text};
use serde_json::{Map, Value};
use tokio::time::{Instant, timeout_at};

pub use dialogue::Dialogue;
pub use generator::GeneratorQuestion;
#[doc(hidden)]
pub use judge::read_judgement;
pub use judge::{
    JudgeEvidence, JudgeQuestion, JudgeResponse, JudgeRole, JudgeUsage, Judgement, TopicCandidate,
    TopicClassification, TopicConfidence, TopicQuestion,
};
pub use recorded_answers::RecordedAnswers;
pub use reporter::ReporterQuestion;
pub use role_cassette::{RoleCassette, RoleCassetteError, RoleCassetteHandle};
pub use simulator::{SimulatorQuestion, UserAnswer, UserDecision};

use crate::scripts::{BoundFunction, ScriptOutput};
use hotseat_checks::RoleReference;
use hotseat_targets::message::{ContentPart, ConversationMessage, ScriptedAnswers};
use hotseat_targets::recorder::{SecretRedactor, TraceRecorder};
use hotseat_targets::{AgentInput, AgentSession, TurnError, TurnLimits};

/// Client for asking a role.
#[derive(Clone)]
#[must_use]
pub struct RoleClient {
    backend: RoleBackend,
    /// Displayable reference.
    label: Arc<str>,
    /// Time limit of an answer.
    timeout: Duration,
    /// Maximum time without any received data.
    idle: Duration,
    /// Records the answers, or gives recorded ones.
    cassette: Option<RoleCassetteHandle>,
    /// The connector that the settings of a judge select for its agent.
    connector: Option<Arc<str>>,
}

/// Backend that performs a role.
#[derive(Clone)]
enum RoleBackend {
    /// An agent.
    Agent(SessionOpener),
    /// A model with a built-in prompt, and the number of questions so far.
    Model(Arc<dyn Model>, Arc<AtomicU32>),
    /// A script function.
    Script(BoundFunction),
    /// Not available, for this reason: only recorded answers are used.
    Offline { is_model: bool, why: Arc<str> },
}

/// Opens a session with an agent.
pub type SessionOpener = Arc<dyn Fn() -> (Box<dyn AgentSession>, ScriptedAnswers) + Send + Sync>;

/// A question to a role.
#[derive(Clone, Default)]
pub struct RoleQuestion {
    /// The message: text is sent unchanged, anything else as JSON.
    pub message: Value,
    /// Options sent in addition to the message.
    pub options: Map<String, Value>,
    /// Preceding messages, if the conversation is passed as messages.
    pub history: Vec<ConversationMessage>,
    /// Turn of the conversation, from 1.
    pub turn: usize,
    /// System prompt for models.
    pub prompt: Cow<'static, str>,
    /// Response format for models.
    pub format: Option<ResponseFormat>,
    /// Deadline of the answer.
    pub deadline: Option<Instant>,
}

/// Reply of a role.
#[derive(Debug, Clone, Default)]
pub struct RoleReply {
    /// Text of the reply.
    pub text: String,
    /// Duration.
    pub duration: Duration,
    /// Model that replied, as named by the provider, if known.
    pub model: Option<String>,
    /// Usage, as far as known.
    pub usage: Option<Value>,
    /// True if the reply was truncated by a length limit.
    pub is_truncated: bool,
    /// Console output of a script function.
    pub logs: Vec<String>,
}

impl RoleReply {
    /// Returns the reply. Fails if it is truncated.
    fn ensure_complete(&self) -> Result<&str, RoleError> {
        let words = || format!("its answer was truncated at the length limit; {}", excerpt(&self.text));
        if self.is_truncated { Err(RoleError::InvalidAnswer(words())) } else { Ok(&self.text) }
    }
}

/// Reason why a role gave no usable answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RoleError {
    /// The deadline of the conversation has passed.
    #[error("no answer in time")]
    Deadline,
    /// The role could not be asked, failed, or timed out.
    #[error("{0}")]
    Failed(String),
    /// A replayed cassette has no answer to the question.
    #[error("{0}")]
    NotRecorded(String),
    /// A turn with the agent that performs the role failed.
    #[error("{}", .0.message)]
    Turn(#[source] AttemptFailure),
    /// The model's server limits the rate of calls, and may not be asked again in time.
    #[error("{0}")]
    RateLimited(String),
    /// The model failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The role answered something else than its question asks for.
    #[error("{0}")]
    InvalidAnswer(String),
    /// The votes of a judge decide nothing.
    #[error("{0}")]
    NoMajority(String),
    /// The same question was asked several times; the error is that of the last attempt.
    #[error("{last} (asked {attempts} times)")]
    Repeated {
        /// Number of attempts.
        attempts: usize,
        /// Error of the last attempt.
        #[source]
        last: Box<RoleError>,
    },
}

impl RoleError {
    /// True if asking a simulated user again cannot help.
    pub fn is_final(&self) -> bool {
        matches!(self, RoleError::NotRecorded(_) | RoleError::RateLimited(_))
    }

    /// True if a replayed cassette has no answer to the question, also to a repeated one.
    fn is_not_recorded(&self) -> bool {
        match self {
            RoleError::NotRecorded(_) => true,
            RoleError::Repeated { last, .. } => last.is_not_recorded(),
            _ => false,
        }
    }
}

/// Advice for repeating a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RetryAdvice {
    /// Repeat immediately.
    Now,
    /// Repeat after a pause, because of rate limiting. Pauses longer than [`MAX_RETRY_PAUSE`] are shortened.
    After(Duration),
    /// Do not repeat.
    Never,
}

/// Default pause after rate limiting.
const DEFAULT_RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Maximum pause after rate limiting.
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(30);
/// Maximum number of pauses for an answer of a role that has no retries of its own, as judges have.
const MAX_PAUSES: usize = 2;

impl fmt::Debug for RoleClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoleClient").field("shown", &self.label).finish_non_exhaustive()
    }
}

impl RoleClient {
    /// Creates a role performed by an agent.
    pub fn agent(
        shown: &RoleReference,
        open: SessionOpener,
        patience: Duration,
        idle: Duration,
    ) -> RoleClient {
        RoleClient { idle, ..RoleClient::new(shown, RoleBackend::Agent(open), patience) }
    }

    /// Creates a role performed by a model with a built-in prompt.
    pub fn model(shown: &RoleReference, model: Arc<dyn Model>, patience: Duration) -> RoleClient {
        RoleClient::new(shown, RoleBackend::Model(model, Arc::default()), patience)
    }

    /// Creates a role performed by a script function. The time limit is that of the project, else `usual`.
    pub fn script(shown: &RoleReference, function: BoundFunction, usual: Duration) -> RoleClient {
        let patience = function.time_limit_or(usual);
        RoleClient::new(shown, RoleBackend::Script(function), patience)
    }

    /// Creates a role that is not asked and uses recorded answers only.
    pub fn offline(shown: &RoleReference) -> RoleClient {
        RoleClient::unavailable(shown, recorded_answers::NOT_ASKED)
    }

    /// Creates a role that cannot be asked for this reason.
    pub fn unavailable(shown: &RoleReference, why: &str) -> RoleClient {
        let is_model = matches!(shown, RoleReference::Connector(_));
        RoleClient::new(shown, RoleBackend::Offline { is_model, why: why.into() }, Duration::ZERO)
    }

    fn new(shown: &RoleReference, backend: RoleBackend, timeout: Duration) -> RoleClient {
        let label = shown.to_string().into();
        RoleClient { backend, label, timeout, idle: timeout, cassette: None, connector: None }
    }

    /// Records the answers of the role in a cassette, or takes them from it.
    pub fn with_cassette(self, cassette: Option<RoleCassetteHandle>) -> RoleClient {
        RoleClient { cassette, ..self }
    }

    /// Sets the connector that a judge selects for its agent, unless the question has one.
    pub fn with_connector(self, connector: Option<&str>) -> RoleClient {
        RoleClient { connector: connector.map(Arc::from), ..self }
    }

    /// Displayable reference.
    pub fn label(&self) -> &Arc<str> {
        &self.label
    }

    /// Asks the role, again after a pause if the rate of calls is limited. Fails if there is no reply.
    pub async fn ask(&self, question: RoleQuestion) -> Result<RoleReply, RoleError> {
        self.try_ask(question, MAX_PAUSES).await.map_err(|(unanswered, _)| unanswered)
    }

    /// Sets the time limit of an answer.
    pub fn with_timeout(self, patience: Duration) -> RoleClient {
        RoleClient { timeout: patience, idle: self.idle.min(patience), ..self }
    }

    /// True if this is a bare model that needs a built-in system prompt.
    fn is_model(&self) -> bool {
        matches!(self.backend, RoleBackend::Model(..) | RoleBackend::Offline { is_model: true, .. })
    }

    /// Asks the role, with at most so many pauses, and with advice on repeating the question. A cassette has the answer after
    /// the pauses, so its replay has none.
    async fn try_ask(
        &self,
        question: RoleQuestion,
        pauses: usize,
    ) -> Result<RoleReply, (RoleError, RetryAdvice)> {
        let contact = |question| self.contact(question, pauses);
        match &self.cassette {
            Some(cassette) => cassette.answer(&self.label, question, contact).await,
            None => contact(question).await,
        }
    }

    /// Contacts the backend of the role until the pauses are used up. They count towards the time limit of the answer.
    async fn contact(
        &self,
        question: RoleQuestion,
        pauses: usize,
    ) -> Result<RoleReply, (RoleError, RetryAdvice)> {
        let begun = Instant::now();
        let own = begun + self.timeout;
        let (deadline, of_conversation) = match question.deadline {
            Some(until) if until < own => (until, true),
            _ => (own, false),
        };
        let mut attempts = 1;
        loop {
            let answer = self.contact_once(question.clone(), deadline).await;
            let left = deadline.saturating_duration_since(Instant::now());
            return match answer {
                Ok(said) => Ok(RoleReply { duration: begun.elapsed(), ..said }),
                Err((error, RetryAdvice::After(pause))) if pause > left => {
                    let words = format!(
                        "{error}; the next call may be made after {} ms, which exceeds the time limit of {} ms",
                        pause.as_millis(),
                        deadline.saturating_duration_since(begun).as_millis()
                    );
                    Err((RoleError::RateLimited(words), RetryAdvice::Never))
                }
                Err((_, RetryAdvice::After(pause))) if attempts <= pauses => {
                    tokio::time::sleep(pause.min(MAX_RETRY_PAUSE)).await;
                    attempts += 1;
                    continue;
                }
                Err((error, RetryAdvice::After(_))) if attempts > 1 => {
                    let words = format!("{error} (asked {attempts} times)");
                    Err((RoleError::RateLimited(words), RetryAdvice::Never))
                }
                Err((RoleError::Deadline, _)) if !of_conversation => {
                    let words = format!("no answer after {} ms", self.timeout.as_millis());
                    Err((RoleError::Failed(words), RetryAdvice::Now))
                }
                Err(unanswered) => Err(unanswered),
            };
        }
    }

    /// Contacts the backend of the role once.
    async fn contact_once(
        &self,
        question: RoleQuestion,
        deadline: Instant,
    ) -> Result<RoleReply, (RoleError, RetryAdvice)> {
        match &self.backend {
            RoleBackend::Agent(open) => {
                let (agent, script) = open();
                let limits = TurnLimits::new(deadline, self.idle);
                ask_agent(agent, script, question, limits).await
            }
            RoleBackend::Model(model, asked) => {
                let number = asked.fetch_add(1, Ordering::Relaxed) + 1;
                ask_model(&**model, number, question, deadline).await
            }
            RoleBackend::Script(function) => ask_script(function, question, deadline).await,
            RoleBackend::Offline { why, .. } => Err((RoleError::Failed(why.to_string()), RetryAdvice::Never)),
        }
    }
}

async fn ask_agent(
    mut agent: Box<dyn AgentSession>,
    script: ScriptedAnswers,
    question: RoleQuestion,
    limits: TurnLimits<'_>,
) -> Result<RoleReply, (RoleError, RetryAdvice)> {
    let carries = agent.capabilities();
    if !question.history.is_empty() {
        if !carries.history {
            let words = "it does not support a message history; remove `style: transcript`";
            return Err((RoleError::Failed(words.to_string()), RetryAdvice::Never));
        }
        let cannot = |failure: AttemptFailure| (RoleError::Turn(failure), RetryAdvice::Never);
        agent.seed_history(&question.history).map_err(cannot)?;
    }
    let text = question.message_text();
    let options = Value::Object(question.options);
    let turn_id: Arc<str> = "turn-1".into();
    let said = SingleTurnInput {
        turn_id,
        content: &[ContentPart::Text(text.clone())],
        text: &text,
        options: Some(&options),
    };
    // Actions of a role are not traced; only its final reply counts.
    let mut recorder = TraceRecorder::new(SecretRedactor::default(), false);
    run_single_turn(agent, script, said, limits, &mut recorder).await.map_err(|unanswered| {
        let is_late = unanswered == RoleError::Deadline;
        (unanswered, if is_late { RetryAdvice::Never } else { RetryAdvice::Now })
    })?;
    let Some(turn) = recorder.conversation().turns.first() else { return Ok(RoleReply::default()) };
    let unusable = |words: String| Err((RoleError::Failed(words), RetryAdvice::Now));
    let stop = turn.finish_reason.as_deref().map(StopReason::from_provider);
    if stop == Some(StopReason::Refusal) {
        return unusable(refused(turn.answer().unwrap_or_default()));
    }
    if let Some(stop) = stop.as_ref().filter(|stop| stop.is_unfinished()) {
        return unusable(unfinished(stop));
    }
    if stop == Some(StopReason::ToolUse) {
        return unusable("it called a tool and did not wait for the result".to_string());
    }
    // What it says on its way is no answer, unless it has the form of one.
    let earlier = turn.messages.iter().rev().skip(1).map(|message| &*message.content);
    if let Some(other) = earlier.into_iter().find(|text| answer_json::is_object(text)) {
        return unusable(format!("it gave several answers; {}", excerpt(other)));
    }
    let result = || turn.result.as_ref().map(Value::to_string);
    Ok(RoleReply {
        text: turn.answer().map(str::to_string).or_else(result).unwrap_or_default(),
        usage: match turn.reported_usage.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            several => Some(Value::Array(several.to_vec())),
        },
        is_truncated: stop == Some(StopReason::MaxTokens),
        ..RoleReply::default()
    })
}

/// Message of a turn.
pub struct SingleTurnInput<'a> {
    /// Id of the turn.
    pub turn_id: Arc<str>,
    /// Text.
    pub text: &'a str,
    /// Text and attachments.
    pub content: &'a [ContentPart],
    /// Options for the agent, if its protocol supports them.
    pub options: Option<&'a Value>,
}

/// Runs a conversation of one turn and records everything except its end. Fails if the turn does not
/// complete.
pub async fn run_single_turn(
    mut agent: Box<dyn AgentSession>,
    mut script: ScriptedAnswers,
    said: SingleTurnInput<'_>,
    limits: TurnLimits<'_>,
    recorder: &mut TraceRecorder,
) -> Result<(), RoleError> {
    script.begin_turn(&[]);
    let traffic = recorder.traffic().clone();
    let turn_id = said.turn_id.clone();
    let message_id: Arc<str> = format!("{turn_id}-message").into();
    recorder.emit(TurnStart::by_user(turn_id.clone(), agent.conversation_id(), "hotseat"));
    recorder.emit(UserMessage {
        turn_id: turn_id.clone(),
        message_id: message_id.clone(),
        content: said.text.to_string(),
        ..UserMessage::default()
    });
    let input = AgentInput {
        turn_id,
        message_id,
        text: said.text,
        content: said.content,
        options: said.options.filter(|_| agent.capabilities().options),
        script: &mut script,
        limits: limits.with_traffic(&traffic),
        recorder,
    };
    traffic.begin_turn();
    let held = agent.send_input(input).await;
    let held = held.and_then(|()| traffic.end_turn().map_or(Ok(()), |failure| Err(failure.into())));
    agent.close().await;
    match held {
        Ok(()) => Ok(()),
        Err(TurnError::Deadline) => Err(RoleError::Deadline),
        Err(TurnError::Run(error)) => Err(RoleError::Failed(error.message)),
        Err(TurnError::Failed(failure)) => Err(RoleError::Turn(failure)),
    }
}

impl RoleQuestion {
    /// The message as text.
    fn message_text(&self) -> String {
        match &self.message {
            Value::String(text) => text.clone(),
            other => judge::escape_unsafe(&other.to_string()),
        }
    }
}

/// Returns what to do if the server of a model refuses `response_format`.
fn refused_format_hint(error: &ModelError) -> &'static str {
    const MEMBER: &str = "response_format";
    let names_it =
        error.message.contains(MEMBER) || error.body.as_deref().unwrap_or_default().contains(MEMBER);
    match error.kind == ModelErrorKind::BadRequest && names_it {
        true => {
            "; to leave the parameter out, set `extra: { response_format: null }` on the connector of the model"
        }
        false => "",
    }
}

/// Asks a script function. It receives the message, and its return value is the reply: text unchanged,
/// anything else as JSON.
async fn ask_script(
    function: &BoundFunction,
    question: RoleQuestion,
    deadline: Instant,
) -> Result<RoleReply, (RoleError, RetryAdvice)> {
    if !question.history.is_empty() {
        let words = "functions receive the conversation under `conversation`; remove `style: transcript`";
        return Err((RoleError::Failed(words.to_string()), RetryAdvice::Never));
    }
    let within = deadline.saturating_duration_since(Instant::now());
    let ScriptOutput { result, console: logs } =
        function.call(vec![question.message], Some(within), within).await;
    match result {
        Ok(Value::Null) => Ok(RoleReply { logs, ..RoleReply::default() }),
        Ok(Value::String(text)) => Ok(RoleReply { text, logs, ..RoleReply::default() }),
        Ok(other) => Ok(RoleReply { text: other.to_string(), logs, ..RoleReply::default() }),
        Err(error) if error.kind == ScriptErrorKind::TimeLimit => {
            Err((RoleError::Deadline, RetryAdvice::Never))
        }
        Err(error) => {
            let mut words = format!("{error}\n{}", error.diagnostic().to_detail());
            if !logs.is_empty() {
                words = format!("{words}\nconsole:\n{}", logs.join("\n"));
            }
            Err((RoleError::Failed(words), RetryAdvice::Never))
        }
    }
}

async fn ask_model(
    model: &dyn Model,
    number: u32,
    question: RoleQuestion,
    deadline: Instant,
) -> Result<RoleReply, (RoleError, RetryAdvice)> {
    let has_format = question.format.is_some();
    let failed = |mut error: ModelError| {
        if has_format {
            error.message.push_str(refused_format_hint(&error));
        }
        let again = match (error.can_retry(), error.retry_after) {
            // The model may answer in another form.
            (false, _) if error.kind == ModelErrorKind::Decode => RetryAdvice::Now,
            (false, _) => RetryAdvice::Never,
            (true, None) if error.kind == ModelErrorKind::RateLimit => {
                let left = deadline.saturating_duration_since(Instant::now());
                RetryAdvice::After(DEFAULT_RETRY_PAUSE.min(left / 2))
            }
            (true, None) => RetryAdvice::Now,
            (true, Some(pause)) => RetryAdvice::After(pause),
        };
        (error.into(), again)
    };
    let mut messages = dialogue::model_messages(&question.history);
    messages.push(ModelMessage::user(question.message_text()));
    let request = ModelRequest {
        position: CallPosition {
            // Each question is a separate conversation with a name that is the same in every run.
            conversation: format!("question-{number}"),
            turn: u32::try_from(question.turn).unwrap_or(u32::MAX),
            call: 1,
            ..CallPosition::default()
        },
        messages,
        system: Some(question.prompt.into_owned()),
        response_format: question.format,
        ..ModelRequest::default()
    };
    match timeout_at(deadline, model.call(&request, &mut DiscardSink)).await {
        Ok(Ok(reply)) if reply.stop == StopReason::Refusal => {
            Err((RoleError::Failed(refused(&reply.text)), RetryAdvice::Now))
        }
        Ok(Ok(reply)) if reply.stop.is_unfinished() => {
            Err((RoleError::Failed(unfinished(&reply.stop)), RetryAdvice::Now))
        }
        // What it says beside a call is not its answer yet.
        Ok(Ok(reply)) if !reply.tool_calls.is_empty() => {
            let words = format!("it called the tool `{}`, but it has no tools", reply.tool_calls[0].name);
            Err((RoleError::Failed(words), RetryAdvice::Now))
        }
        Ok(Ok(reply)) => Ok(RoleReply {
            text: reply.text,
            duration: Duration::ZERO,
            model: Some(reply.model.unwrap_or_else(|| model.name().to_string())),
            // Estimated usage is not reported.
            usage: (!reply.usage.estimated).then(|| serde_json::to_value(reply.usage).ok()).flatten(),
            is_truncated: reply.stop == StopReason::MaxTokens,
            logs: Vec::new(),
        }),
        Ok(Err(error)) => Err(failed(error)),
        Err(_) => Err((RoleError::Deadline, RetryAdvice::Never)),
    }
}

/// An exchange with a role, as recorded in the trace.
#[derive(Debug, Clone)]
pub struct RoleExchange {
    role: &'static str,
    agent: Arc<str>,
    question: Value,
    said: RoleReply,
    finding: Option<Value>,
    error: Option<String>,
    /// Vote and attempt within the vote, from 1, for judges.
    vote_and_attempt: Option<(usize, usize)>,
}

/// Suggestions in the last valid judgement.
pub fn suggestions(exchanges: &[RoleExchange]) -> Vec<String> {
    let found = exchanges.iter().rev().find_map(|exchange| exchange.finding.as_ref());
    let proposed = found.and_then(|found| found.get("suggestions")).and_then(Value::as_array);
    proposed.into_iter().flatten().map(plain_text).collect()
}

impl RoleExchange {
    /// Restores a recorded exchange.
    fn from_record(role: &'static str, kept: &RoleAnswered) -> RoleExchange {
        let number = |number: Option<u64>| number.and_then(|number| usize::try_from(number).ok());
        RoleExchange {
            role,
            agent: kept.agent.clone(),
            question: kept.question.clone(),
            said: RoleReply {
                text: kept.answer.clone(),
                duration: Duration::from_micros(kept.duration_us),
                model: kept.model.as_deref().map(str::to_string),
                usage: kept.usage.clone(),
                is_truncated: false,
                logs: kept.logs.clone(),
            },
            finding: kept.finding.clone(),
            error: kept.error.clone(),
            vote_and_attempt: number(kept.vote).zip(number(kept.attempt)),
        }
    }

    /// Marks the exchange as failed.
    #[must_use]
    pub fn with_error(self, error: impl fmt::Display) -> RoleExchange {
        RoleExchange { error: Some(error.to_string()), ..self }
    }

    /// Converts the exchange to an event of a turn.
    pub fn into_payload(self, turn_id: Arc<str>) -> Payload {
        Payload::RoleAnswered(Box::new(RoleAnswered {
            turn_id,
            role: self.role.into(),
            agent: self.agent,
            question: self.question,
            answer: self.said.text,
            finding: self.finding,
            error: self.error,
            model: self.said.model.map(Arc::from),
            usage: self.said.usage,
            vote: self.vote_and_attempt.map(|(vote, _)| vote as u64),
            attempt: self.vote_and_attempt.map(|(_, attempt)| attempt as u64),
            logs: self.said.logs,
            duration_us: u64::try_from(self.said.duration.as_micros()).unwrap_or(u64::MAX),
        }))
    }
}

fn unfinished(stop: &StopReason) -> String {
    format!("it did not finish its answer (stop reason `{}`)", stop.as_str())
}

fn refused(text: &str) -> String {
    format!("it refused to answer; {}", excerpt(text))
}

/// Beginning of an answer, for error messages.
fn excerpt(text: &str) -> String {
    const MAX_SHOWN_CHARS: usize = 200;
    match hotseat_document::is_blank(text) {
        true => "the answer is empty".to_string(),
        false => format!("the answer was {:?}", hotseat_document::excerpt(text, MAX_SHOWN_CHARS)),
    }
}

/// Options for a role: the configured ones, with `metadata` added.
fn role_options(written: &Map<String, Value>, metadata: Map<String, Value>) -> Map<String, Value> {
    let mut options = written.clone();
    options.entry("skip").or_insert_with(|| serde_json::json!({"history": true}));
    let told = options.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(told) = told {
        told.extend(metadata);
    }
    options
}

/// Failure of a role, or of a function that evaluates a check.
pub fn role_failure(kind: FailureKind, words: &str) -> AttemptFailure {
    let who = match kind {
        FailureKind::SimulatorError => "simulator error",
        FailureKind::JudgeError => "judge error",
        FailureKind::ScriptError => "script error",
        FailureKind::UsageError => "usage is not known",
        FailureKind::TestError => "test error",
        _ => "role error",
    };
    let (first, rest) = words.split_once('\n').unwrap_or((words, ""));
    AttemptFailure::new(kind, format!("{who}: {first}")).with_detail(rest)
}
