//! One turn: an input is sent, what happens is recorded, and how it ended is judged.

use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::{
    ErrorInfo, Failure, FailureKind, Note, TurnCompleted, TurnFailed, TurnStarted, UserMessage,
};

use super::{Media, Part, Recorder, TurnScript, media, words};
use crate::adapters::{AgentSession, Input, Limits, TurnError};
use crate::cases::{ExpectedError, Turn};
use crate::roles::Exchange;

/// How the note of an attachment begins; its name follows.
pub const ATTACHED: &str = "attached: ";

/// How the end of a turn is told that took too long.
pub(super) const TIMED_OUT: [&str; 2] = ["timeout", "given up at its time limit"];

/// Why a turn is given up when it takes too long.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum GivenUp {
    /// A time limit of the turn or the target.
    Turn(Duration),
    /// A time limit of the case or the run.
    Case(Duration),
    /// A check that limits the duration, which will fail by itself.
    Check,
}

/// An input, and who gives it.
pub(super) struct Given {
    pub turn: Turn,
    /// `hotseat`, `simulator` or `person`.
    pub caller: &'static str,
    /// What the simulated user was asked and said.
    pub exchange: Option<Exchange>,
}

impl Given {
    /// An input that is written in the case.
    pub fn written(turn: &Turn) -> Given {
        Given { turn: turn.clone(), caller: "hotseat", exchange: None }
    }

    /// An input that somebody gives while the conversation goes on.
    pub fn said(text: String, unwritten: &Turn, caller: &'static str, exchange: Option<Exchange>) -> Given {
        Given { turn: Turn { content: vec![Part::Text(text)], ..unwritten.clone() }, caller, exchange }
    }
}

/// Sends one input and records the turn from its start to its end.
pub(super) async fn say(
    index: usize,
    given: &mut Given,
    agent: &mut dyn AgentSession,
    script: &mut TurnScript,
    limits: Limits<'_>,
    recorder: &mut Recorder,
) -> Result<(), TurnError> {
    let turn = &given.turn;
    let turn_id: Arc<str> = format!("turn-{}", index + 1).into();
    let message_id: Arc<str> = uuid::Uuid::new_v4().to_string().into();
    recorder.emit(TurnStarted {
        turn_id: turn_id.clone(),
        conversation_id: agent.conversation_id(),
        caller_id: given.caller.into(),
        caller_type: "user".into(),
    });
    if let Some(exchange) = given.exchange.take() {
        recorder.emit(exchange.of_turn(turn_id.clone()));
    }
    let text = words(&turn.content);
    let content = text.clone();
    let attachments: Vec<String> = media(&turn.content).map(Media::shown).collect();
    recorder.emit(UserMessage {
        turn_id: turn_id.clone(),
        message_id: message_id.clone(),
        content,
        attachments: attachments.clone(),
        options: turn.options.as_ref().map(|options| options.value.clone()),
    });
    for attached in attachments {
        let message = format!("{ATTACHED}{attached}");
        recorder.emit(Note { turn_id: turn_id.clone(), message, event: None });
    }
    let input = Input {
        turn_id: turn_id.clone(),
        message_id,
        text: &text,
        content: &turn.content,
        options: turn.options.as_ref().map(|options| &options.value),
        script,
        limits,
    };
    recorder.traffic().begin_turn();
    let said = agent.say(input, recorder).await;
    let said = match (said, recorder.traffic().end_turn()) {
        (Err(TurnError::Deadline), _) => Err(TurnError::Deadline),
        (_, Some(failure)) => Err(failure.into()),
        (said, None) => said,
    };
    if matches!(said, Err(TurnError::Deadline | TurnError::Failed(_))) {
        // What is found out by nothing arriving happens now.
        recorder.as_of_now();
    }
    match &said {
        Ok(()) => recorder.emit(TurnCompleted { turn_id }),
        Err(error) => {
            let error = match error {
                TurnError::Deadline => info(TIMED_OUT[0], TIMED_OUT[1]),
                TurnError::Run(error) => error.clone(),
                TurnError::Failed(failure) => info(failure.kind.name(), &failure.message),
            };
            recorder.emit(TurnFailed { turn_id, error });
        }
    }
    recorder.as_of_now();
    said
}

fn info(code: &str, message: &str) -> ErrorInfo {
    ErrorInfo { code: Some(code.to_string()), message: message.to_string(), retriable: None }
}

/// Whether a turn ended as it should. `Err(None)` is a turn that was given up because of a check.
pub(super) fn judge_end(
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

impl GivenUp {
    /// The limit, as far as it is no check's.
    pub(super) fn limit(self) -> Option<Duration> {
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
