//! Results as they are written to report files. The inner types are free to change; these are a promise.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::{
    ErrorInfo, Failure, FailureKind, Interrupt, Millis, RoleAnswered, Status, ToolCall, Turn, TurnOutcome,
};
use serde::Serialize;
use serde_json::Value;

use super::attempts::{AttemptRecord, RepeatsRecord, StabilityRecord};
use super::console::passed;
use crate::run::{Attempt, Mode, Outcome, Plan, Setting, Summary};
use crate::session::{Checked, Identity, Reached, Waiting};

/// Version of the report format: `major.minor`. New members raise the minor number.
pub const VERSION: &str = "1.4";

/// On whose behalf agents were spoken to, where no case says otherwise.
#[derive(Debug, Serialize)]
pub struct EnvironmentRecord<'a> {
    user_id: &'a str,
    team_id: &'a str,
    locale: &'a str,
}

impl<'a> EnvironmentRecord<'a> {
    pub fn of(setting: &'a Setting) -> Self {
        let Identity { user, team, locale, .. } = &setting.identity;
        EnvironmentRecord { user_id: &user.text, team_id: &team.text, locale: &locale.text }
    }
}

/// One result.
#[derive(Debug, Serialize)]
pub struct ResultRecord<'a> {
    /// Place of the case in the run, from 0.
    pub index: usize,
    pub id: &'a str,
    pub name: &'a str,
    pub file: &'a str,
    pub line: u32,
    /// The agent that was tested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<&'a str>,
    pub mode: &'static str,
    pub status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<&'a Failure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_reason: Option<&'a str>,
    /// Why it failed, in one line: what `failure` says, in the words that case files are documented with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_kind: Option<&'static str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub tags: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<&'a Value>,
    /// Where there is one input: as the case has it, or what was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Cow<'a, Value>>,
    /// Whether it passed only when it was tried again.
    #[serde(skip_serializing_if = "is_false")]
    pub flaky: bool,
    /// The conversation that tells most.
    #[serde(flatten)]
    pub held: HeldRecord<'a>,
    /// All attempts, where a failure was tried again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<AttemptRecord<'a>>,
    /// How steady the case is, where it was run several times.
    #[serde(flatten)]
    pub stability: Option<StabilityRecord<'a>>,
}

/// A conversation that was held.
#[derive(Debug, Serialize)]
pub struct HeldRecord<'a> {
    /// Where there is one input: the answer to it; null where there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Option<&'a str>>,
    pub started_at: String,
    pub duration_ms: f64,
    pub total_turns: usize,
    pub turns: Vec<TurnEntry<'a>>,
    /// Checks over the whole conversation; those of a turn stand with the turn.
    pub assertions: Vec<AssertionRecord<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub final_assertions: Vec<AssertionRecord<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assertion_errors: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checkpoints: Vec<CheckpointRecord<'a>>,
    /// What went wrong beside the case and changes no verdict.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub warnings: &'a [String],
}

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
    /// What the agent, or whoever gave the turn up, said of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_info: Option<&'a ErrorInfo>,
    /// Whether the agent waited for the user when the turn was over, and how that showed.
    pub awaiting_input: bool,
    pub awaiting_reason: &'static str,
    pub assertions: Vec<AssertionRecord<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assertion_errors: Vec<String>,
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
    /// Whether it is only measured.
    #[serde(skip_serializing_if = "is_false")]
    pub soft: bool,
    pub expected: &'a str,
    pub actual: &'a str,
    /// Why it could not be decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a str>,
    pub file: &'a str,
    pub line: u32,
    pub column: u32,
}

/// What a run came to.
#[derive(Debug, Serialize)]
pub struct SummaryRecord {
    pub total: usize,
    pub passed: usize,
    /// How many of those passed only when they were tried again.
    #[serde(skip_serializing_if = "is_zero")]
    pub flaky: usize,
    pub failed: usize,
    pub skipped: usize,
    /// How many of those are skipped although they do not say so.
    #[serde(skip_serializing_if = "is_zero")]
    pub unasked_skips: usize,
    pub errors: usize,
    pub timeouts: usize,
    pub interrupted: bool,
    /// How many percent of those that ran passed; null where none ran.
    pub pass_rate: Option<f64>,
    pub duration_ms: f64,
    /// The runs, where each case has several.
    #[serde(flatten)]
    pub repeats: Option<RepeatsRecord>,
    #[serde(flatten)]
    pub agent: AgentRecord,
}

/// The agents that were tested; several stand beside each other, with commas between them.
#[derive(Debug, Serialize)]
pub struct AgentRecord {
    pub agent_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connector: Option<String>,
}

/// The beginning of a run.
#[derive(Debug, Serialize)]
pub struct StartRecord<'a> {
    pub version: &'static str,
    pub hotseat: &'static str,
    pub started_at: String,
    pub total: usize,
    pub parallel: usize,
    pub environment: EnvironmentRecord<'a>,
    #[serde(flatten)]
    pub agent: AgentRecord,
    #[serde(flatten)]
    pub input: InputRecord<'a>,
    pub options: OptionsRecord<'a>,
}

/// What a report of a whole run says of itself.
#[derive(Debug, Serialize)]
pub struct MetadataRecord<'a> {
    pub version: &'static str,
    pub hotseat: &'static str,
    pub started_at: String,
    pub completed_at: String,
    #[serde(flatten)]
    pub input: InputRecord<'a>,
    pub output_file: &'a str,
    pub options: OptionsRecord<'a>,
}

/// The suites of a run.
#[derive(Debug, Serialize)]
pub struct InputRecord<'a> {
    /// The suite, where there is just one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_file: Option<&'a str>,
    pub input_files: &'a [Arc<str>],
}

/// The options that were in effect.
#[derive(Debug, Serialize)]
pub struct OptionsRecord<'a> {
    pub parallel: usize,
    /// The limit of a case, where one was set for the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<f64>,
    pub fail_fast: bool,
    pub runs: usize,
    /// Where that is several: how much of it has to pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_pass_rate: Option<f64>,
    /// How often any case is tried again, where that was set for the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<usize>,
    pub fail_on_skip: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connector: Option<&'a str>,
}

pub fn is_false(value: &bool) -> bool {
    !value
}

pub fn ms(duration: Duration) -> f64 {
    (duration.as_micros() as f64) / 1000.0
}

fn is_zero(value: &usize) -> bool {
    *value == 0
}

/// A wall time as RFC 3339.
pub fn rfc3339(at: Millis) -> String {
    jiff::Timestamp::from_millisecond(at).map(|at| at.to_string()).unwrap_or_default()
}

impl SummaryRecord {
    pub fn of(summary: &Summary, setting: &Setting) -> Self {
        SummaryRecord {
            total: summary.total,
            passed: summary.passed,
            flaky: summary.flaky,
            failed: summary.failed,
            skipped: summary.skipped,
            unasked_skips: summary.unasked_skips,
            errors: summary.errors,
            timeouts: summary.timeouts,
            interrupted: summary.interrupted,
            pass_rate: summary.pass_rate().map(|rate| (rate * 10.0).round() / 10.0),
            duration_ms: ms(summary.duration),
            repeats: summary.repeats.as_ref().map(RepeatsRecord::of),
            agent: AgentRecord::of(setting),
        }
    }
}

impl AgentRecord {
    fn of(setting: &Setting) -> Self {
        let joined = |parts: Vec<&str>| (!parts.is_empty()).then(|| parts.join(", "));
        AgentRecord {
            agent_id: joined(setting.agents().map(|agent| &*agent.id).collect()).unwrap_or_default(),
            agent_path: joined(setting.agents().filter_map(|agent| agent.path.as_deref()).collect()),
            connector: joined(setting.connectors()),
        }
    }
}

impl<'a> StartRecord<'a> {
    pub fn of(plan: &Plan, parallel: usize, at: Millis, setting: &'a Setting) -> Self {
        StartRecord {
            version: VERSION,
            hotseat: env!("CARGO_PKG_VERSION"),
            started_at: rfc3339(at),
            total: plan.selected,
            parallel,
            environment: EnvironmentRecord::of(setting),
            agent: AgentRecord::of(setting),
            input: InputRecord::of(setting),
            options: OptionsRecord::of(setting),
        }
    }
}

impl<'a> MetadataRecord<'a> {
    pub fn of(summary: &Summary, setting: &'a Setting, output_file: &'a str) -> Self {
        MetadataRecord {
            version: VERSION,
            hotseat: env!("CARGO_PKG_VERSION"),
            started_at: rfc3339(summary.started_at),
            completed_at: rfc3339(summary.ended_at),
            input: InputRecord::of(setting),
            output_file,
            options: OptionsRecord::of(setting),
        }
    }
}

impl<'a> InputRecord<'a> {
    fn of(setting: &'a Setting) -> Self {
        let input_file = match setting.inputs.as_slice() {
            [one] => Some(&**one),
            _ => None,
        };
        InputRecord { input_file, input_files: &setting.inputs }
    }
}

impl<'a> OptionsRecord<'a> {
    fn of(setting: &'a Setting) -> Self {
        let options = &setting.choices.options;
        OptionsRecord {
            parallel: options.parallel,
            timeout_ms: setting.case_timeout.map(ms),
            fail_fast: options.fail_fast,
            runs: options.runs,
            min_pass_rate: (options.runs > 1).then(|| options.min_pass_rate.part()),
            retries: options.retries.filter(|_| options.runs == 1),
            fail_on_skip: options.fail_on_skip,
            run: setting.choices.run.as_deref(),
            agent: setting.choices.agent.as_deref(),
            connector: setting.choices.connector.as_deref(),
        }
    }
}

impl<'a> ResultRecord<'a> {
    pub fn of(outcome: &'a Outcome, setting: &'a Setting) -> Self {
        let Outcome { selected, verdict, .. } = outcome;
        let (case, told) = (&selected.case, outcome.telling());
        let mode = told.mode();
        let agent = selected.agent.as_ref().and_then(|agent| setting.tested(agent));
        let said = told.conversation.turns.first().and_then(|turn| turn.user.clone());
        let input = match (&case.opening.input, mode) {
            (Some(written), _) => Some(Cow::Borrowed(written)),
            (None, Mode::Standard) => said.map(|said| Cow::Owned(Value::String(said))),
            (None, Mode::MultiTurn | Mode::Dynamic) => None,
        };
        ResultRecord {
            index: selected.index,
            id: &case.id,
            name: &case.name,
            file: case.place.file(),
            line: case.place.line(),
            agent: agent.map(|agent| &*agent.id),
            mode: mode.name(),
            status: verdict.status,
            failure: verdict.failure.as_ref(),
            skip_reason: verdict.skip_reason.as_deref(),
            error: verdict.failure.as_ref().map(|failure| one_line(failure, told)),
            error_kind: verdict.failure.as_ref().map(|failure| failure.kind.name()),
            tags: &case.tags,
            metadata: case.metadata.as_ref(),
            flaky: outcome.is_flaky(),
            held: HeldRecord::of(told, input.is_some()),
            attempts: match (&outcome.stability, outcome.attempts.as_slice()) {
                (None, attempts @ [_, _, ..]) => attempts.iter().map(AttemptRecord::tried).collect(),
                _ => Vec::new(),
            },
            stability: outcome.stability.as_ref().map(|of| StabilityRecord::of(of, &outcome.attempts)),
            input,
        }
    }
}

impl<'a> HeldRecord<'a> {
    /// A conversation, with its answer where there `is_one` input.
    pub fn of(attempt: &'a Attempt, is_one: bool) -> Self {
        let answer = || attempt.conversation.turns.last().and_then(Turn::answer);
        let whole = |is_final: bool| {
            let checks = attempt.checks.iter();
            checks.filter(move |checked| checked.turn.is_none() && checked.is_final == is_final)
        };
        let held = &attempt.conversation.turns;
        let turns = held.iter().map(|turn| TurnEntry::Held(Box::new(TurnRecord::of(turn, attempt))));
        let skipped =
            attempt.verdict.skip_reason.as_deref().filter(|_| !held.is_empty()).map(|skip_reason| {
                TurnEntry::Skipped { turn: held.len() + 1, status: "skipped", skip_reason }
            });
        HeldRecord {
            output: is_one.then(answer),
            started_at: rfc3339(attempt.started_at),
            duration_ms: ms(attempt.duration),
            total_turns: held.len(),
            turns: turns.chain(skipped).collect(),
            assertions: whole(false).map(AssertionRecord::of).collect(),
            final_assertions: whole(true).map(AssertionRecord::of).collect(),
            assertion_errors: errors(attempt.checks.iter()),
            checkpoints: attempt.checkpoints.iter().map(CheckpointRecord::of).collect(),
            warnings: &attempt.warnings,
        }
    }
}

impl<'a> TurnRecord<'a> {
    fn of(turn: &'a Turn, attempt: &'a Attempt) -> Self {
        let checks = &attempt.checks;
        let assertions: Vec<AssertionRecord> = checks
            .iter()
            .filter(|checked| checked.turn == Some(turn.number))
            .map(AssertionRecord::of)
            .collect();
        let error_info = match (&turn.outcome, &turn.run_error) {
            (TurnOutcome::Failed(error), _) | (_, Some(error)) => Some(error),
            (TurnOutcome::Open | TurnOutcome::Completed, None) => None,
        };
        let is_good = passed(turn, attempt);
        // An error that was expected is no failure.
        let failure = attempt.verdict.failure.as_ref().filter(|_| !is_good && error_info.is_some());
        let awaiting = Waiting::of(turn);
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
            error_info,
            awaiting_input: awaiting.is_awaiting(),
            awaiting_reason: awaiting.reason(),
            assertions,
            assertion_errors: errors(checks.iter().filter(|checked| checked.turn == Some(turn.number))),
            notes: &turn.notes,
            usage: &turn.usage,
            start_ts: turn.started_at,
            end_ts: turn.ended_at,
            duration_ms: ms(turn.duration()),
        }
    }
}

impl<'a> CheckpointRecord<'a> {
    fn of(reached: &'a Reached) -> Self {
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
fn errors<'a>(checks: impl Iterator<Item = &'a Checked>) -> Vec<String> {
    let failed = checks.filter(|checked| checked.fails());
    let words = failed.map(|checked| match &checked.check.message {
        Some(own) => own.clone(),
        None => format!("expected {}; found {}", checked.verdict.expected, checked.verdict.actual),
    });
    words.collect()
}

/// Why a case failed, in the words that case files are documented with.
pub fn documented(failure: &Failure, attempt: &Attempt) -> String {
    match (failure.kind, attempt.limit) {
        (FailureKind::Timeout, Some(limit)) => format!("timeout after {}", written_duration(limit)),
        (FailureKind::AgentError, _) => {
            let message = &failure.message;
            format!("agent error: {}", message.strip_prefix("the agent failed: ").unwrap_or(message))
        }
        _ => failure.message.clone(),
    }
}

/// Why a case failed. Where it was repeated, how many of its runs passed stands before why one of them did not.
fn one_line(failure: &Failure, told: &Attempt) -> String {
    match &told.verdict.failure {
        Some(own) => match failure.message.strip_suffix(&own.message) {
            Some(before) => format!("{before}{}", documented(own, told)),
            None => failure.message.clone(),
        },
        None => failure.message.clone(),
    }
}

/// A duration as people write it: `30s`, `5m`, `1m30s`, `150ms`.
fn written_duration(duration: Duration) -> String {
    let (minutes, seconds, millis) =
        (duration.as_secs() / 60, duration.as_secs() % 60, duration.subsec_millis());
    let parts = [(minutes, "m"), (seconds, "s"), (u64::from(millis), "ms")];
    parts.iter().filter(|(count, _)| *count > 0).map(|(count, unit)| format!("{count}{unit}")).collect()
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

impl<'a> RoleRecord<'a> {
    fn of(said: &'a RoleAnswered) -> Self {
        RoleRecord {
            role: &said.role,
            agent: &said.agent,
            answer: &said.answer,
            finding: said.finding.as_ref(),
            error: said.error.as_deref(),
            duration_ms: said.duration_us as f64 / 1000.0,
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
            written: checked.check.written.as_deref(),
            soft: !checked.check.is_hard(),
            passed: checked.verdict.passed,
            expected: &checked.verdict.expected,
            actual: &checked.verdict.actual,
            error: checked.error.as_deref(),
            file: place.file(),
            line: place.line(),
            column: place.column(),
        }
    }
}
