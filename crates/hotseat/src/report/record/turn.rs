//! Turns as they are written to report files, with what was called, asked and asserted in them.

use hotseat_trace::{ErrorInfo, Interrupt, Millis, RoleAnswered, ToolCall, Turn, TurnOutcome};
use serde::Serialize;
use serde_json::Value;

use super::super::console::passed;
use super::topics::TopicReasonRecord;
use super::{SpentRecord, documented, is_false, ms};
use crate::run::{Attempt, Finding, ReachedFacts, State};
use crate::session::{Opinion, Waiting, input_hint};

/// One checkpoint.
#[derive(Debug, Serialize)]
pub struct CheckpointRecord<'a> {
    pub id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<&'a str>,
    /// The turn in which it was reached; null where it was not.
    pub reached_at_turn: Option<usize>,
    pub passed: bool,
    pub required: bool,
    /// Why it was not reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<&'a str>,
}

/// A turn, or what is said in its place.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum TurnEntry<'a> {
    /// It was held.
    Held(Box<TurnRecord<'a>>),
    /// Nobody answered the agent: the turn in which somebody should have.
    Skipped { turn: usize, status: &'static str, skip_reason: &'a str },
}

/// One turn that was held.
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
    /// What helpers said of the turn, or to begin it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<RoleRecord<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interrupts: Vec<InterruptRecord<'a>>,
    /// Why it was not held to its end, in the words that case files are documented with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How the agent says that its run ended, where that is not success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_outcome: Option<&'a str>,
    /// What the agent, or whoever gave the turn up, said of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_info: Option<&'a ErrorInfo>,
    /// Whether the agent waited for the user when the turn was over, and how that showed.
    pub awaiting_input: bool,
    pub awaiting_reason: &'static str,
    /// What it waited for, in its words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_hint: Option<String>,
    /// Why its last reply ended where it did, in the words of its protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<&'a str>,
    /// The topic that it belongs to, where topics are followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<&'a str>,
    /// Why it belongs to that topic, where anything but the topic before says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic_reason: Option<TopicReasonRecord<'a>>,
    pub assertions: Vec<AssertionRecord<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assertion_errors: Vec<String>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub notes: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub usage: &'a [Value],
    /// What it has spent, read from that or counted by models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent: Option<SpentRecord>,
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
    /// The turn ended without a result of this call.
    #[serde(skip_serializing_if = "is_false")]
    pub unanswered: bool,
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

/// What a helper said.
#[derive(Debug, Serialize)]
pub struct RoleRecord<'a> {
    /// What it was asked as: `simulator` or `judge`.
    pub role: &'a str,
    pub agent: &'a str,
    pub answer: &'a str,
    /// What was read from the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finding: Option<&'a Value>,
    /// Why the answer is of no use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<&'a Value>,
    /// Of a judge: the vote, and the attempt at it, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vote: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u64>,
    /// What a function of a script has said to `console`.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub logs: &'a [String],
    pub duration_ms: f64,
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
    /// The assertion as it was written, where it is one of its own.
    #[serde(flatten)]
    pub written: Option<&'a Value>,
    pub passed: bool,
    /// `passed`, `failed`, or `errored` where it could not be decided.
    pub state: State,
    /// Whether it is only measured.
    #[serde(skip_serializing_if = "is_false")]
    pub soft: bool,
    /// The criterion that it decides: its name, or what it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub criterion: Option<&'a str>,
    /// Why the judge judges so, in its words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<&'a str>,
    /// Who judged, and what that cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judgement: Option<JudgementRecord<'a>>,
    pub expected: &'a str,
    pub actual: &'a str,
    /// Why it could not be decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a str>,
    pub file: &'a str,
    pub line: u32,
    pub column: u32,
    /// What the function that judged said to `console`.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub logs: &'a [String],
    /// The turn that was looked at, where a topic asserts something of every turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<usize>,
}

/// Who judged a check, and what that cost.
#[derive(Debug, Serialize)]
pub struct JudgementRecord<'a> {
    pub judge: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<&'a str>,
    /// The prompt and its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The votes, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub votes: Option<VotesRecord>,
    /// How often the judge was asked.
    pub calls: usize,
    /// Null where the judge does not say.
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub duration_ms: f64,
    /// What of the conversation the judge was not shown.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub left_out: &'a [String],
    /// What the judge proposes.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub suggestions: &'a [String],
}

/// Votes of a judge.
#[derive(Debug, Serialize)]
pub struct VotesRecord {
    pub r#for: usize,
    pub against: usize,
    /// Those that were of no use.
    pub errored: usize,
}

impl<'a> JudgementRecord<'a> {
    fn of(opinion: &'a Opinion) -> Self {
        let by = &opinion.by;
        JudgementRecord {
            judge: &by.judge,
            model: by.model.as_deref(),
            prompt: by.prompt.as_deref(),
            score: opinion.score,
            votes: by.votes.map(|[r#for, against, errored]| VotesRecord { r#for, against, errored }),
            calls: by.calls,
            input_tokens: by.input_tokens,
            output_tokens: by.output_tokens,
            duration_ms: ms(by.took),
            left_out: &by.left_out,
            suggestions: &opinion.suggestions,
        }
    }
}

impl<'a> TurnRecord<'a> {
    pub(super) fn of(turn: &'a Turn, attempt: &'a Attempt) -> Self {
        let checks = &attempt.checks;
        let assertions: Vec<AssertionRecord> = checks
            .iter()
            .filter(|checked| checked.turn == Some(turn.number) && checked.topic.is_none())
            .map(AssertionRecord::of)
            .collect();
        let error_info = match (&turn.outcome, &turn.run_error) {
            (TurnOutcome::Failed(error), _) | (_, Some(error)) => Some(error),
            (TurnOutcome::Open | TurnOutcome::Completed, None) => None,
        };
        let is_good = passed(turn, attempt);
        // An error that was expected is no failure.
        let failure = attempt.verdict.failure.as_ref().filter(|_| !is_good && error_info.is_some());
        let awaiting = Waiting::of(turn, &attempt.selected.case.signs);
        TurnRecord {
            turn: turn.number,
            status: match (&turn.outcome, is_good) {
                (TurnOutcome::Completed | TurnOutcome::Failed(_), true) => "passed",
                (TurnOutcome::Completed | TurnOutcome::Failed(_), false) => "failed",
                (TurnOutcome::Open, _) => "unfinished",
            },
            input: turn.user.as_deref(),
            input_source: match &*turn.caller {
                "simulator" => "simulated",
                "person" => "interactive",
                _ => "static",
            },
            output: turn.answer(),
            messages: turn.messages.iter().map(|message| message.content.as_str()).collect(),
            reasoning: turn.reasoning.iter().map(|thought| thought.content.as_str()).collect(),
            tool_calls: turn.tool_calls.iter().map(|call| ToolCallRecord::of(call, turn)).collect(),
            roles: turn.roles.iter().map(RoleRecord::of).collect(),
            interrupts: turn.interrupts.iter().map(InterruptRecord::of).collect(),
            error: failure.map(|failure| documented(failure, attempt)),
            run_outcome: turn.run_outcome.as_deref(),
            error_info,
            awaiting_input: awaiting.is_awaiting(),
            awaiting_reason: awaiting.reason(),
            input_hint: input_hint(turn).filter(|_| awaiting.is_awaiting()),
            finish_reason: turn.finish_reason.as_deref(),
            topic: turn.topic.as_deref(),
            topic_reason: turn.topic_step.as_ref().map(TopicReasonRecord::of),
            assertions,
            assertion_errors: errors(checks.iter().filter(|checked| checked.turn == Some(turn.number))),
            notes: &turn.notes,
            usage: &turn.usage,
            spent: turn.spent.clone().map(SpentRecord::of),
            start_ts: turn.started_at,
            end_ts: turn.ended_at,
            duration_ms: ms(turn.duration()),
        }
    }
}

impl<'a> CheckpointRecord<'a> {
    pub(super) fn of(reached: &'a ReachedFacts) -> Self {
        CheckpointRecord {
            id: &reached.checkpoint.id,
            description: reached.checkpoint.description.as_deref(),
            reached_at_turn: reached.at,
            passed: reached.at.is_some(),
            required: reached.checkpoint.required,
            message: reached.missing.as_deref(),
        }
    }
}

/// What the checks that fail say, each in one line.
pub(super) fn errors<'a>(checks: impl Iterator<Item = &'a Finding>) -> Vec<String> {
    let failed = checks.filter(|checked| checked.fails());
    let words = failed.map(|checked| match &checked.check.message {
        Some(own) => own.clone(),
        None => format!("expected {}; found {}", checked.verdict.expected, checked.verdict.actual),
    });
    words.collect()
}

impl<'a> ToolCallRecord<'a> {
    pub(super) fn of(call: &'a ToolCall, turn: &Turn) -> Self {
        let result = call.result.as_ref();
        ToolCallRecord {
            id: &call.id,
            name: &call.name,
            args: &call.arguments,
            args_broken: call.arguments_broken,
            unanswered: result.is_none() && turn.outcome != TurnOutcome::Open,
            result: result.filter(|result| !result.failed).map(|result| &result.value),
            error: result.filter(|result| result.failed).map(|result| &result.value),
            subagent: call.subagent.as_deref(),
            started_ms: ms(call.started - turn.started),
            duration_ms: ms(call.ended - call.started),
            timestamp: call.completed_at,
        }
    }
}

impl<'a> RoleRecord<'a> {
    pub(super) fn of(said: &'a RoleAnswered) -> Self {
        RoleRecord {
            role: &said.role,
            agent: &said.agent,
            answer: &said.answer,
            finding: said.finding.as_ref(),
            error: said.error.as_deref(),
            model: said.model.as_deref(),
            usage: said.usage.as_ref(),
            vote: said.vote,
            attempt: said.attempt,
            logs: &said.logs,
            duration_ms: said.duration_us as f64 / 1000.0,
        }
    }
}

impl<'a> InterruptRecord<'a> {
    pub(super) fn of(interrupt: &'a Interrupt) -> Self {
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
    pub(super) fn of(checked: &'a Finding) -> Self {
        let place = &checked.check.place;
        AssertionRecord {
            written: checked.check.written.as_deref(),
            soft: !checked.check.is_hard(),
            passed: checked.verdict.passed,
            state: checked.state(),
            criterion: checked.check.criterion.as_deref(),
            reasoning: checked.opinion.as_ref().and_then(|opinion| opinion.reasoning.as_deref()),
            judgement: checked.opinion.as_ref().map(JudgementRecord::of),
            expected: &checked.verdict.expected,
            actual: &checked.verdict.actual,
            error: checked.error.as_deref(),
            file: place.file(),
            line: place.line(),
            column: place.column(),
            logs: &checked.said,
            turn: checked.topic.as_ref().and(checked.turn),
        }
    }
}
