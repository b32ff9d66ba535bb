//! Results as they are written to report files. The inner types are free to change; these are a promise.

use hotseat_trace::{Failure, Interrupt, Millis, Status, ToolCall, Turn, TurnOutcome};
use serde::Serialize;
use serde_json::Value;

use crate::run::{Attempt, Summary};
use crate::session::Checked;

/// Version of the report format: `major.minor`. New members raise the minor number.
pub const VERSION: &str = "1.0";

/// One result.
#[derive(Debug, Serialize)]
pub struct ResultRecord<'a> {
    /// Place of the case in the run, from 0.
    pub index: usize,
    pub id: &'a str,
    pub name: &'a str,
    pub file: &'a str,
    pub line: u32,
    pub status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<&'a Failure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_reason: Option<&'a str>,
    pub started_at: String,
    pub duration_ms: f64,
    pub total_turns: usize,
    pub turns: Vec<TurnRecord<'a>>,
    /// Checks over the whole conversation; those of a turn stand with the turn.
    pub assertions: Vec<AssertionRecord<'a>>,
}

/// One turn.
#[derive(Debug, Serialize)]
pub struct TurnRecord<'a> {
    pub turn: usize,
    pub status: &'static str,
    pub input: Option<&'a str>,
    pub input_source: &'static str,
    /// The agent's last message.
    pub output: Option<&'a str>,
    pub messages: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasoning: Vec<&'a str>,
    pub tool_calls: Vec<ToolCallRecord<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interrupts: Vec<InterruptRecord<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
    pub assertions: Vec<AssertionRecord<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub notes: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub usage: &'a [Value],
    /// When it began and ended, in Unix milliseconds as in `timestamp` of a tool call.
    pub start_ts: Millis,
    pub end_ts: Option<Millis>,
    pub duration_ms: f64,
}

/// One tool call.
#[derive(Debug, Serialize)]
pub struct ToolCallRecord<'a> {
    pub id: &'a str,
    pub name: &'a str,
    pub args: &'a Value,
    #[serde(skip_serializing_if = "is_false")]
    pub args_broken: bool,
    /// Absent when the tool gave none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subagent: Option<&'a str>,
    /// Milliseconds from the start of the turn.
    pub started_ms: f64,
    pub duration_ms: f64,
    /// When the result arrived, in Unix milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Millis>,
}

/// One interrupt.
#[derive(Debug, Serialize)]
pub struct InterruptRecord<'a> {
    pub id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<&'a Value>,
}

/// One check.
#[derive(Debug, Serialize)]
pub struct AssertionRecord<'a> {
    pub passed: bool,
    pub expected: &'a str,
    pub actual: &'a str,
    pub file: &'a str,
    pub line: u32,
    pub column: u32,
}

/// What a run came to.
#[derive(Debug, Serialize)]
pub struct SummaryRecord {
    pub total: usize,
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
    pub errors: usize,
    pub timeouts: usize,
    pub interrupted: bool,
    pub duration_ms: f64,
}

fn is_false(value: &bool) -> bool {
    !value
}

fn ms(duration: std::time::Duration) -> f64 {
    (duration.as_micros() as f64) / 1000.0
}

/// A wall time as RFC 3339.
pub fn rfc3339(at: Millis) -> String {
    jiff::Timestamp::from_millisecond(at).map(|at| at.to_string()).unwrap_or_default()
}

impl SummaryRecord {
    pub fn of(summary: &Summary) -> Self {
        SummaryRecord {
            total: summary.total,
            passed: summary.passed,
            failed: summary.failed,
            skipped: summary.skipped,
            errors: summary.errors,
            timeouts: summary.timeouts,
            interrupted: summary.interrupted,
            duration_ms: ms(summary.duration),
        }
    }
}

impl<'a> ResultRecord<'a> {
    pub fn of(attempt: &'a Attempt) -> Self {
        let case = &attempt.selected.case;
        let turns: Vec<TurnRecord> =
            attempt.conversation.turns.iter().map(|turn| TurnRecord::of(turn, &attempt.checks)).collect();
        ResultRecord {
            index: attempt.selected.index,
            id: &case.id,
            name: &case.name,
            file: case.place.file(),
            line: case.place.line(),
            status: attempt.verdict.status,
            failure: attempt.verdict.failure.as_ref(),
            skip_reason: attempt.verdict.skip_reason.as_deref(),
            started_at: rfc3339(attempt.started_at),
            duration_ms: ms(attempt.duration),
            total_turns: turns.len(),
            turns,
            assertions: attempt.checks.iter().filter(|c| c.turn.is_none()).map(AssertionRecord::of).collect(),
        }
    }
}

impl<'a> TurnRecord<'a> {
    fn of(turn: &'a Turn, checks: &'a [Checked]) -> Self {
        let assertions: Vec<AssertionRecord> = checks
            .iter()
            .filter(|checked| checked.turn == Some(turn.number))
            .map(AssertionRecord::of)
            .collect();
        let error = match (&turn.outcome, &turn.run_error) {
            (TurnOutcome::Failed(error), _) | (_, Some(error)) => serde_json::to_value(error).ok(),
            (TurnOutcome::Open | TurnOutcome::Completed, None) => None,
        };
        TurnRecord {
            turn: turn.number,
            status: match (&turn.outcome, assertions.iter().all(|assertion| assertion.passed)) {
                (TurnOutcome::Completed, true) => "passed",
                (TurnOutcome::Completed, false) => "failed",
                (TurnOutcome::Failed(_), _) => "error",
                (TurnOutcome::Open, _) => "unfinished",
            },
            input: turn.user.as_deref(),
            input_source: "static",
            output: turn.answer(),
            messages: turn.messages.iter().map(|message| message.content.as_str()).collect(),
            reasoning: turn.reasoning.iter().map(|thought| thought.content.as_str()).collect(),
            tool_calls: turn.tool_calls.iter().map(|call| ToolCallRecord::of(call, turn)).collect(),
            interrupts: turn.interrupts.iter().map(InterruptRecord::of).collect(),
            error,
            assertions,
            notes: &turn.notes,
            usage: &turn.usage,
            start_ts: turn.started_at,
            end_ts: turn.ended_at,
            duration_ms: ms(turn.duration()),
        }
    }
}

impl<'a> ToolCallRecord<'a> {
    fn of(call: &'a ToolCall, turn: &Turn) -> Self {
        let result = call.result.as_ref();
        ToolCallRecord {
            id: &call.id,
            name: &call.name,
            args: &call.arguments,
            args_broken: call.arguments_broken,
            result: result.filter(|result| !result.failed).map(|result| &result.value),
            error: result.filter(|result| result.failed).map(|result| &result.value),
            subagent: call.subagent.as_deref(),
            started_ms: ms(call.started - turn.started),
            duration_ms: ms(call.ended - call.started),
            timestamp: call.completed_at,
        }
    }
}

impl<'a> InterruptRecord<'a> {
    fn of(interrupt: &'a Interrupt) -> Self {
        InterruptRecord {
            id: &interrupt.id,
            reason: interrupt.reason.as_deref(),
            message: interrupt.message.as_deref(),
            tool_call_id: interrupt.tool_call_id.as_deref(),
            status: interrupt.answer.as_ref().map(|(status, _)| &**status),
            payload: interrupt.answer.as_ref().and_then(|(_, payload)| payload.as_ref()),
        }
    }
}

impl<'a> AssertionRecord<'a> {
    fn of(checked: &'a Checked) -> Self {
        let place = &checked.check.place;
        AssertionRecord {
            passed: checked.verdict.passed,
            expected: &checked.verdict.expected,
            actual: &checked.verdict.actual,
            file: place.file(),
            line: place.line(),
            column: place.column(),
        }
    }
}
