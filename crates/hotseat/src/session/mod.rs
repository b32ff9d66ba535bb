//! One conversation being held: turns are sent, what happens is recorded, checks decide.

mod awaiting;
mod checkpoints;
mod clock;
mod content;
mod hook;
mod next;
mod recorder;
mod redact;
mod script;

use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::{
    CheckVerdict, Conversation, ErrorInfo, Failure, FailureKind, Note, Record, Scope, TurnCompleted,
    TurnFailed, TurnStarted, UserMessage, Verdict,
};
use tokio::time::Instant;

pub use awaiting::Waiting;
pub use checkpoints::{Reached, missing};
pub use clock::{Clock, wall_millis};
pub use content::{Media, MediaKind, MediaSource, Message, MessageCall, Part, Role, media, merged, words};
pub use hook::run_hook;
pub use next::{Next, OnMissingInput, Sources};
pub use recorder::Recorder;
pub use redact::Redactor;
pub use script::{
    AskedInterrupt, ClientTool, InterruptAnswer, InterruptReply, ToolAnswer, ToolReply, TurnScript,
};

use crate::adapters::{AgentSession, Input, Limits, TurnError};
use crate::cases::{Case, ExpectedError, Turn};
use crate::checks::Check;

/// How long things may take where neither case nor turn says so.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// One turn.
    pub turn: Duration,
    /// Nothing at all is received.
    pub idle: Duration,
    /// All turns together, where the run sets a limit.
    pub case: Option<Duration>,
}

/// What one check came to, and which check it was.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The check.
    pub check: Check,
    /// The turn it looked at, from 1; none for the whole conversation.
    pub turn: Option<usize>,
    /// Whether it was written under `final_assertions`.
    pub is_final: bool,
    /// What it came to.
    pub verdict: CheckVerdict,
}

impl Checked {
    /// Whether it decides that the case fails.
    pub fn fails(&self) -> bool {
        self.check.is_hard() && !self.verdict.passed
    }
}

/// A conversation that was held, or as much of it as there is.
#[derive(Debug)]
pub struct Held {
    /// What it came to.
    pub verdict: Verdict,
    /// Every check that was decided, in order.
    pub checks: Vec<Checked>,
    /// How far the checkpoints were reached.
    pub checkpoints: Vec<Reached>,
    /// The time limit that was exceeded, if the verdict is about one.
    pub limit: Option<Duration>,
    /// What was said and done.
    pub conversation: Conversation,
    /// The trace, where it was asked for.
    pub events: Vec<Record>,
    /// From the first input to the end of the last turn.
    pub duration: Duration,
}

/// Why a turn is given up when it takes too long.
#[derive(Debug, Clone, Copy, PartialEq)]
enum GivenUp {
    /// A time limit of the turn or the target.
    Turn(Duration),
    /// A time limit of the case or the run.
    Case(Duration),
    /// A check that limits the duration, which will fail by itself.
    Check,
}

/// How a conversation ended.
enum Ending {
    /// In order.
    Over,
    /// The agent waits, and nobody answers it.
    Skipped(String),
    Failed(Failure),
}

/// Holds a whole conversation and decides. `script` holds the answers of client-side tools.
pub async fn hold(
    case: &Case,
    agent: &mut dyn AgentSession,
    mut script: TurnScript,
    timeouts: Timeouts,
    mut recorder: Recorder,
) -> Held {
    let started = Instant::now();
    let mut checks = Vec::new();
    let mut checkpoints = checkpoints::begin(&case.checkpoints);
    let mut limit = None;
    let mut ending = match begin(case, agent) {
        Ok(()) => Ending::Over,
        Err(failure) => Ending::Failed(failure),
    };
    for (index, turn) in case.turns.iter().enumerate() {
        if !matches!(ending, Ending::Over) {
            break;
        }
        script.begin_turn(&turn.resume);
        let (deadline, cause) = deadline(case, turn, timeouts, started);
        let limits = Limits { deadline, idle: timeouts.idle };
        let said = say(index, turn, agent, &mut script, limits, &mut recorder).await;
        limit = cause.limit().filter(|_| matches!(said, Err(TurnError::Deadline)));
        let ended = judge_end(turn, said, cause, &script);

        // A turn that was given up because of a check is still judged, and fails by it.
        let judged = ended.is_ok() || (ended.as_ref().is_err_and(Option::is_none));
        if judged && let Some(scope) = recorder.conversation().turn_scope(index) {
            checks.extend(decide(&turn.checks, Some(index + 1), false, scope));
            checkpoints::look(&mut checkpoints, index + 1, scope);
        }
        let failure = match ended {
            Ok(()) => assertion_failure(&checks),
            Err(Some(failure)) => Some(failure),
            Err(None) => {
                // The limit may be one of the whole conversation; its other checks wait for turns that never come.
                checks.extend(
                    decide_case(case, &recorder).filter(|checked| checked.check.time_limit().is_some()),
                );
                assertion_failure(&checks).or_else(|| {
                    let message = "the turn was given up at the limit of `max_duration_ms`";
                    Some(Failure::new(FailureKind::Timeout, message))
                })
            }
        };
        ending = match failure {
            Some(failure) => Ending::Failed(failure),
            None => behind(case, index, recorder.conversation()),
        };
    }
    if matches!(ending, Ending::Over) {
        checks.extend(decide_case(case, &recorder));
        let failure = missing_checkpoints(&checkpoints).or_else(|| assertion_failure(&checks));
        ending = failure.map_or(Ending::Over, Ending::Failed);
    }

    let redactor = recorder.redactor().clone();
    let verdict = match ending {
        Ending::Over => Verdict::passed(),
        Ending::Skipped(reason) => Verdict::skipped(reason),
        Ending::Failed(failure) => Verdict::failed(redactor.failure(failure)),
    };
    for checked in &mut checks {
        checked.verdict.expected = redactor.text(&checked.verdict.expected).into_owned();
        let check = &mut checked.check;
        check.message = check.message.take().map(|message| redactor.text(&message).into_owned());
        check.written = check.written.take().map(|written| Arc::new(redactor.json((*written).clone())));
    }
    for reached in &mut checkpoints {
        reached.missing = reached.missing.take().map(|words| redactor.text(&words).into_owned());
    }
    let (conversation, events) = recorder.finish();
    let duration = conversation.scope().duration();
    Held { verdict, checks, checkpoints, limit, conversation, events, duration }
}

/// What comes before the first turn: whether there is one, and whether the agent can be told all that the case says.
fn begin(case: &Case, agent: &mut dyn AgentSession) -> Result<(), Failure> {
    if case.turns.is_empty() {
        let message = match &case.simulator {
            Some(_) => "no initial input: a simulated user begins, and this version cannot ask one",
            None => "no initial input",
        };
        let help = "a case has an `input` or `turns`";
        return Err(Failure::new(FailureKind::NoInput, message).with_detail(help));
    }
    let carries = agent.carries();
    let cannot = |what: &str| {
        let message = format!("{what} cannot be sent to an agent of this kind");
        Err(Failure::new(FailureKind::TestError, message))
    };
    let attached = case.turns.iter().any(|turn| media(&turn.content).next().is_some());
    let attached =
        attached || case.opening.messages.iter().any(|message| media(&message.content).next().is_some());
    if !case.opening.messages.is_empty() && !carries.history {
        return cannot("messages before the first turn");
    }
    if attached && !carries.attachments {
        return cannot("attachments");
    }
    if case.turns.iter().any(|turn| turn.options.is_some()) && !carries.options {
        return cannot("`options`");
    }
    agent.remember(&case.opening.messages)
}

/// What comes behind a turn that went well.
fn behind(case: &Case, index: usize, conversation: &Conversation) -> Ending {
    let last = conversation.turns.last();
    let sources = Sources {
        turn_written: index + 1 < case.turns.len(),
        awaiting: last.is_some_and(|turn| Waiting::of(turn).is_awaiting()),
        simulator: case.simulator.is_some(),
        human: case.interactive.is_some(),
        on_missing: case.on_missing_input,
    };
    let asked = last.and_then(|turn| turn.answer()).unwrap_or_default();
    let no_input = |message: &str| {
        let failure = Failure::new(FailureKind::NoInput, message);
        Ending::Failed(failure.with_detail(format!("agent asked: {asked:?}\n{MORE_INPUT}")))
    };
    match sources.next() {
        Next::Written | Next::Over => Ending::Over,
        Next::Simulator => no_input("the agent waits for a simulated user, and this version cannot ask one"),
        Next::Human => no_input("the agent waits for a person, and this version cannot ask one"),
        Next::Fail => no_input(NO_NEXT_TURN),
        Next::Skip => Ending::Skipped(NO_NEXT_TURN.to_string()),
    }
}

/// Why a conversation cannot go on.
const NO_NEXT_TURN: &str = "Agent awaiting input, no next turn defined";
/// How the note of an attachment begins; its name follows.
pub const ATTACHED: &str = "attached: ";
/// What to do about it.
pub const MORE_INPUT: &str =
    "add more turns, or say with `on_missing_input: end` that the conversation ends here";

/// The failure of a conversation that is over with checkpoints that were not reached.
fn missing_checkpoints(all: &[Reached]) -> Option<Failure> {
    let missing: Vec<&Reached> = checkpoints::missing(all).collect();
    if missing.is_empty() {
        return None;
    }
    let ids: Vec<&str> = missing.iter().map(|reached| reached.checkpoint.id.as_str()).collect();
    let detail = missing.iter().map(|reached| {
        let why = reached.missing.as_deref().unwrap_or("no turn was looked at");
        format!("{} ({}): {why}", reached.checkpoint.id, reached.checkpoint.place)
    });
    let failure =
        Failure::new(FailureKind::MissingCheckpoints, format!("missing checkpoints: {}", ids.join(", ")));
    Some(failure.with_detail(detail.collect::<Vec<_>>().join("\n")))
}

/// Decides checks over a turn or the conversation.
fn decide<'a>(
    checks: &'a [Check],
    turn: Option<usize>,
    is_final: bool,
    scope: Scope<'a>,
) -> impl Iterator<Item = Checked> + 'a {
    checks.iter().map(move |check| Checked {
        check: check.clone(),
        turn,
        is_final,
        verdict: check.decide(scope),
    })
}

/// Sends one input and records the turn from its start to its end.
async fn say(
    index: usize,
    turn: &Turn,
    agent: &mut dyn AgentSession,
    script: &mut TurnScript,
    limits: Limits,
    recorder: &mut Recorder,
) -> Result<(), TurnError> {
    let turn_id: Arc<str> = format!("turn-{}", index + 1).into();
    let message_id: Arc<str> = uuid::Uuid::new_v4().to_string().into();
    recorder.emit(TurnStarted {
        turn_id: turn_id.clone(),
        conversation_id: agent.conversation_id(),
        caller_id: "hotseat".into(),
        caller_type: "user".into(),
    });
    let text = words(&turn.content);
    let content = text.clone();
    recorder.emit(UserMessage { turn_id: turn_id.clone(), message_id: message_id.clone(), content });
    for attached in media(&turn.content) {
        let message = format!("{ATTACHED}{}", attached.shown());
        recorder.emit(Note { turn_id: turn_id.clone(), message, event: None });
    }
    let input = Input {
        turn_id: turn_id.clone(),
        message_id,
        text: &text,
        content: &turn.content,
        options: turn.options.as_ref(),
        script,
        limits,
    };
    let said = agent.say(input, recorder).await;
    match &said {
        Ok(()) => recorder.emit(TurnCompleted { turn_id }),
        Err(error) => {
            let error = match error {
                TurnError::Deadline => info("timeout", "given up at its time limit"),
                TurnError::Run(error) => error.clone(),
                TurnError::Failed(failure) => info(failure.kind.name(), &failure.message),
            };
            recorder.emit(TurnFailed { turn_id, error });
        }
    }
    said
}

fn info(code: &str, message: &str) -> ErrorInfo {
    ErrorInfo { code: Some(code.to_string()), message: message.to_string(), retriable: None }
}

/// Whether a turn ended as it should. `Err(None)` is a turn that was given up because of a check.
fn judge_end(
    turn: &Turn,
    said: Result<(), TurnError>,
    cause: GivenUp,
    script: &TurnScript,
) -> Result<(), Option<Failure>> {
    let failed = |kind, message: String| Err(Some(Failure::new(kind, message)));
    match (said, &turn.expect_error) {
        (Ok(()), None) => match script.unused().next() {
            None => Ok(()),
            Some(answer) => {
                let message = format!("the agent never paused for the answer at {}", answer.place);
                failed(FailureKind::Assertion, message)
            }
        },
        (Ok(()), Some(expected)) => failed(
            FailureKind::Assertion,
            format!("the agent ended in order; expected was {}", expected.describe()),
        ),
        (Err(TurnError::Run(error)), Some(expected)) => match expected.fits(&error) {
            true => Ok(()),
            false => {
                let message = format!(
                    "the agent failed with {}; expected was {}",
                    in_words(&error),
                    expected.describe()
                );
                failed(FailureKind::Assertion, message)
            }
        },
        (Err(TurnError::Run(error)), None) => {
            let (first, rest) = error.message.split_once('\n').unwrap_or((&error.message, ""));
            let head = ErrorInfo { message: first.to_string(), ..error.clone() };
            let message = format!("the agent failed: {}", in_words(&head));
            Err(Some(Failure::new(FailureKind::AgentError, message).with_detail(rest)))
        }
        (Err(TurnError::Failed(failure)), _) => Err(Some(failure)),
        (Err(TurnError::Deadline), _) => match cause {
            GivenUp::Turn(limit) => {
                failed(FailureKind::Timeout, format!("the turn timed out after {} ms", limit.as_millis()))
            }
            GivenUp::Case(limit) => {
                failed(FailureKind::Timeout, format!("the case timed out after {} ms", limit.as_millis()))
            }
            GivenUp::Check => Err(None),
        },
    }
}

fn in_words(error: &ErrorInfo) -> String {
    match &error.code {
        Some(code) => format!("{} ({code})", error.message),
        None => error.message.clone(),
    }
}

/// When a turn is given up, and on whose account: the nearest of all limits that concern it.
fn deadline(case: &Case, turn: &Turn, timeouts: Timeouts, started: Instant) -> (Instant, GivenUp) {
    let now = Instant::now();
    let limit = turn.timeout.unwrap_or(timeouts.turn);
    let mut nearest = (now + limit, GivenUp::Turn(limit));
    let mut consider = |at: Instant, cause: GivenUp| {
        if at < nearest.0 {
            nearest = (at, cause);
        }
    };
    if let Some(limit) = case.timeout.or(timeouts.case) {
        consider(started + limit, GivenUp::Case(limit));
    }
    // One millisecond more, so that the time that was taken is really more than the limit.
    let over = |limit: Duration| limit + Duration::from_millis(1);
    for limit in turn.checks.iter().filter_map(Check::time_limit) {
        consider(now + over(limit), GivenUp::Check);
    }
    for limit in case.checks.iter().filter_map(Check::time_limit) {
        consider(started + over(limit), GivenUp::Check);
    }
    nearest
}

fn decide_case<'a>(case: &'a Case, recorder: &'a Recorder) -> impl Iterator<Item = Checked> + 'a {
    let scope = recorder.conversation().scope();
    decide(&case.checks, None, false, scope).chain(decide(&case.final_checks, None, true, scope))
}

/// The failure of an attempt in which checks do not hold; none when all do.
fn assertion_failure(checks: &[Checked]) -> Option<Failure> {
    let failed: Vec<&Checked> = checks.iter().filter(|checked| checked.fails()).collect();
    let first = failed.first()?;
    let message = match (failed.len(), &first.check.message) {
        (1, Some(own)) => own.clone(),
        (1, None) => format!("does not hold: {}", first.verdict.expected),
        (n, own) => {
            format!("{n} checks do not hold; the first: {}", own.as_ref().unwrap_or(&first.verdict.expected))
        }
    };
    let detail = failed.iter().map(|checked| {
        format!(
            "{}: expected {}; found {}",
            checked.check.place, checked.verdict.expected, checked.verdict.actual
        )
    });
    Some(Failure::new(FailureKind::Assertion, message).with_detail(detail.collect::<Vec<_>>().join("\n")))
}

impl GivenUp {
    /// The limit, as far as it is no check's.
    fn limit(self) -> Option<Duration> {
        match self {
            GivenUp::Turn(limit) | GivenUp::Case(limit) => Some(limit),
            GivenUp::Check => None,
        }
    }
}

impl ExpectedError {
    fn fits(&self, error: &ErrorInfo) -> bool {
        let code = error.code.as_deref();
        self.message.as_ref().is_none_or(|pattern| pattern.fits(&error.message))
            && self.code.as_ref().is_none_or(|pattern| code.is_some_and(|code| pattern.fits(code)))
    }

    fn describe(&self) -> String {
        match (&self.message, &self.code) {
            (Some(message), Some(code)) => {
                format!("an error that fits {message} with a code that fits {code}")
            }
            (Some(message), None) => format!("an error that fits {message}"),
            (None, Some(code)) => format!("an error with a code that fits {code}"),
            (None, None) => "an error".to_string(),
        }
    }
}
