//! One conversation being held: turns are sent, what happens is recorded, checks decide.

mod clock;
mod hook;
mod recorder;
mod redact;
mod script;

use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::{
    CheckVerdict, Conversation, ErrorInfo, Failure, FailureKind, Record, TurnCompleted, TurnFailed,
    TurnStarted, UserMessage, Verdict,
};
use tokio::time::Instant;

pub use clock::{Clock, wall_millis};
pub use hook::run_hook;
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
    /// What it came to.
    pub verdict: CheckVerdict,
}

/// A conversation that was held, or as much of it as there is.
#[derive(Debug)]
pub struct Held {
    /// What it came to.
    pub verdict: Verdict,
    /// Every check that was decided, in order.
    pub checks: Vec<Checked>,
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
    let mut failure = None;
    for (index, turn) in case.turns.iter().enumerate() {
        script.begin_turn(&turn.resume);
        let (deadline, cause) = deadline(case, turn, timeouts, started);
        let limits = Limits { deadline, idle: timeouts.idle };
        let said = say(index, turn, agent, &mut script, limits, &mut recorder).await;
        let ended = judge_end(turn, said, cause, &script);

        // A turn that was given up because of a check is still judged, and fails by it.
        let judged = ended.is_ok() || (ended.as_ref().is_err_and(Option::is_none));
        if judged && let Some(scope) = recorder.conversation().turn_scope(index) {
            checks.extend(turn.checks.iter().map(|check| Checked {
                check: check.clone(),
                turn: Some(index + 1),
                verdict: check.decide(scope),
            }));
        }
        failure = match ended {
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
        if failure.is_some() {
            break;
        }
    }
    if failure.is_none() {
        checks.extend(decide_case(case, &recorder));
        failure = assertion_failure(&checks);
    }

    let redactor = recorder.redactor().clone();
    let verdict = match failure {
        Some(failure) => Verdict::failed(redactor.failure(failure)),
        None => Verdict::passed(),
    };
    for checked in &mut checks {
        checked.verdict.expected = redactor.text(&checked.verdict.expected).into_owned();
    }
    let (conversation, events) = recorder.finish();
    let duration = conversation.scope().duration();
    Held { verdict, checks, conversation, events, duration }
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
    let content = turn.user.clone();
    recorder.emit(UserMessage { turn_id: turn_id.clone(), message_id: message_id.clone(), content });
    let input = Input { turn_id: turn_id.clone(), message_id, text: &turn.user, script, limits };
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
            failed(FailureKind::AgentError, format!("the agent failed: {}", in_words(&error)))
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
    case.checks.iter().map(move |check| Checked {
        check: check.clone(),
        turn: None,
        verdict: check.decide(scope),
    })
}

/// The failure of an attempt in which checks do not hold; none when all do.
fn assertion_failure(checks: &[Checked]) -> Option<Failure> {
    let failed: Vec<&Checked> = checks.iter().filter(|checked| !checked.verdict.passed).collect();
    let first = failed.first()?;
    let message = match failed.len() {
        1 => format!("does not hold: {}", first.verdict.expected),
        n => format!("{n} checks do not hold; the first: {}", first.verdict.expected),
    };
    let detail = failed.iter().map(|checked| {
        format!(
            "{}: expected {}; found {}",
            checked.check.place, checked.verdict.expected, checked.verdict.actual
        )
    });
    Some(Failure::new(FailureKind::Assertion, message).with_detail(detail.collect::<Vec<_>>().join("\n")))
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
