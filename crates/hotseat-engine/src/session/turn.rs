//! Runs one turn: sends the input, records events and judges how the turn ended.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::{
    AttemptFailure, ErrorInfo, FailureKind, Note, TurnCompletion, TurnFailed, TurnStart, UserMessage,
};

use crate::cases::{CaseTurn, ExpectedError};
use crate::roles::RoleExchange;
use hotseat_targets::message::{
    ATTACHMENT_NOTE_PREFIX, ContentPart, MediaAttachment, ScriptedAnswers, joined_text, media_parts,
    unique_id,
};
use hotseat_targets::recorder::TraceRecorder;
use hotseat_targets::{AgentInput, AgentSession, TurnError, TurnLimits};
use tokio::time::Instant;

/// Code and message of a turn that timed out.
pub(super) const TIMEOUT_ERROR: [&str; 2] = ["timeout", "stopped at its time limit"];

/// The limit that a turn's deadline comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum DeadlineSource {
    /// Time limit of the turn or the target.
    Turn(Duration),
    /// Time limit of the case or the run.
    Case(Duration),
    /// Check of the duration, which will fail by itself.
    Check,
}

/// An input and its source.
pub(super) struct TurnInput<'c> {
    pub turn: Cow<'c, CaseTurn>,
    /// `hotseat`, `simulator` or `person`.
    pub caller: &'static str,
    /// Exchange with the simulated user that gave the input.
    pub exchange: Option<RoleExchange>,
}

impl<'c> TurnInput<'c> {
    /// Creates an input from a turn of the case.
    pub fn from_turn(turn: &'c CaseTurn) -> Self {
        TurnInput { turn: Cow::Borrowed(turn), caller: "hotseat", exchange: None }
    }

    /// Creates an input given at run time.
    pub fn from_text(
        text: String,
        unwritten: &CaseTurn,
        caller: &'static str,
        exchange: Option<RoleExchange>,
    ) -> Self {
        let turn = CaseTurn { content: vec![ContentPart::Text(text)], ..unwritten.clone() };
        TurnInput { turn: Cow::Owned(turn), caller, exchange }
    }
}

/// Sends one input and records the turn, which starts with its input at `started`. A turn that is stopped ends exactly at its deadline, so
/// its times do not depend on how long its last data takes to process.
pub(super) async fn execute_turn(
    (index, started): (usize, Instant),
    turn_input: &mut TurnInput<'_>,
    agent: &mut dyn AgentSession,
    script: &mut ScriptedAnswers,
    limits: TurnLimits<'_>,
    recorder: &mut TraceRecorder,
) -> Result<(), TurnError> {
    let turn = &turn_input.turn;
    let turn_id: Arc<str> = format!("turn-{}", index + 1).into();
    let message_id: Arc<str> = unique_id().into();
    recorder.set_arrival(started);
    recorder.emit(TurnStart::by_user(turn_id.clone(), agent.conversation_id(), turn_input.caller));
    if let Some(exchange) = turn_input.exchange.take() {
        recorder.emit(exchange.into_payload(turn_id.clone()));
    }
    let text = joined_text(&turn.content);
    let content = text.clone();
    let attachments: Vec<String> = media_parts(&turn.content).map(MediaAttachment::display_name).collect();
    recorder.emit(UserMessage {
        turn_id: turn_id.clone(),
        message_id: message_id.clone(),
        content,
        attachments: attachments.clone(),
        options: turn.options.as_ref().map(|options| options.value.clone()),
    });
    for attached in attachments {
        let message = format!("{ATTACHMENT_NOTE_PREFIX}{attached}");
        recorder.emit(Note { turn_id: turn_id.clone(), message, event: None });
    }
    recorder.clear_arrival();
    // The agent may be a recording, which skips time.
    let deadline = recorder.offset_of(limits.deadline);
    recorder.traffic().begin_turn();
    let input = AgentInput {
        turn_id: turn_id.clone(),
        message_id,
        text: &text,
        content: &turn.content,
        options: turn.options.as_ref().map(|options| &options.value),
        script,
        limits,
        recorder: &mut *recorder,
    };
    let outcome = agent.send_input(input).await;
    let outcome = match (outcome, recorder.traffic().end_turn()) {
        (Err(TurnError::Deadline), _) => Err(TurnError::Deadline),
        (_, Some(failure)) => Err(failure.into()),
        (outcome, None) => outcome,
    };
    match outcome {
        Err(TurnError::Deadline) => recorder.set_arrival_offset(deadline),
        // Errors found by waiting happen now, not at the last arrival.
        Err(TurnError::Failed(_)) => recorder.clear_arrival(),
        Err(TurnError::Run(_)) | Ok(()) => {}
    }
    match &outcome {
        Ok(()) => recorder.emit(TurnCompletion { turn_id, issues: None }),
        Err(error) => {
            let error = match error {
                TurnError::Deadline => error_info(TIMEOUT_ERROR[0], TIMEOUT_ERROR[1]),
                TurnError::Run(error) => error.clone(),
                TurnError::Failed(failure) => failure_info(failure),
            };
            recorder.emit(TurnFailed { turn_id, error });
        }
    }
    recorder.clear_arrival();
    outcome
}

fn error_info(code: &str, message: &str) -> ErrorInfo {
    ErrorInfo { code: Some(code.to_string()), message: message.to_string(), retriable: None }
}

/// Returns the error of a turn that ended with a failure of the attempt.
pub(super) fn failure_info(failure: &AttemptFailure) -> ErrorInfo {
    error_info(failure.kind.name(), &failure.message)
}

/// Judges the end of a turn. `Err(None)` means that the turn was stopped by the limit of a check.
pub(super) fn judge_turn_end(
    turn: &CaseTurn,
    outcome: Result<(), TurnError>,
    cause: DeadlineSource,
    script: &ScriptedAnswers,
) -> Result<(), Option<AttemptFailure>> {
    let failed = |kind, message: String| Err(Some(AttemptFailure::new(kind, message)));
    let all_answers_used = || match script.unused_answers().next() {
        None => Ok(()),
        Some(answer) => {
            let message =
                format!("the agent never asked for the answer{} at {}", answer.describe(), answer.place);
            failed(FailureKind::Assertion, message)
        }
    };
    match (outcome, &turn.expect_error) {
        (Ok(()), None) => all_answers_used(),
        (Ok(()), Some(expected)) => failed(
            FailureKind::Assertion,
            format!("expected {}, got a regular end of the turn ({})", expected.describe(), expected.place),
        ),
        (Err(TurnError::Run(error)), Some(expected)) => match expected.matches(&error) {
            true => all_answers_used(),
            false => {
                let message = format!(
                    "the agent failed with {}, expected {} ({})",
                    describe_error(&error),
                    expected.describe(),
                    expected.place
                );
                failed(FailureKind::Assertion, message)
            }
        },
        (Err(TurnError::Run(error)), None) => {
            let (first, rest) = error.message.split_once('\n').unwrap_or((&error.message, ""));
            let head = ErrorInfo { message: first.to_string(), ..error.clone() };
            let message = format!("the agent failed: {}", describe_error(&head));
            Err(Some(AttemptFailure::new(FailureKind::AgentError, message).with_detail(rest)))
        }
        (Err(TurnError::Failed(failure)), _) => Err(Some(failure)),
        (Err(TurnError::Deadline), _) => match cause {
            DeadlineSource::Turn(limit) => {
                failed(FailureKind::Timeout, format!("the turn timed out after {} ms", limit.as_millis()))
            }
            DeadlineSource::Case(limit) => {
                failed(FailureKind::Timeout, format!("the case timed out after {} ms", limit.as_millis()))
            }
            DeadlineSource::Check => Err(None),
        },
    }
}

fn describe_error(error: &ErrorInfo) -> String {
    match &error.code {
        Some(code) => format!("{} ({code})", error.message),
        None => error.message.clone(),
    }
}

impl DeadlineSource {
    /// Returns the limit, unless it belongs to a check.
    pub(super) fn limit(self) -> Option<Duration> {
        match self {
            DeadlineSource::Turn(limit) | DeadlineSource::Case(limit) => Some(limit),
            DeadlineSource::Check => None,
        }
    }
}

impl ExpectedError {
    fn matches(&self, error: &ErrorInfo) -> bool {
        let code = error.code.as_deref();
        self.message.as_ref().is_none_or(|pattern| pattern.is_match(&error.message))
            && self.code.as_ref().is_none_or(|pattern| code.is_some_and(|code| pattern.is_match(code)))
    }

    fn describe(&self) -> String {
        match (&self.message, &self.code) {
            (Some(message), Some(code)) => {
                format!("an error that matches {message} with a code that matches {code}")
            }
            (Some(message), None) => format!("an error that matches {message}"),
            (None, Some(code)) => format!("an error with a code that matches {code}"),
            (None, None) => "an error".to_string(),
        }
    }
}
