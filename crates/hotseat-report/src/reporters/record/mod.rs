//! Records of report files. Their format is stable; the internal types are not.

mod fingerprint;
mod run;
mod spent;
mod topics;
mod turn;

use std::borrow::Cow;
use std::time::Duration;

use hotseat_trace::{
    AttemptFailure, ConversationTurn, FailureKind, Millis, ResultLabel, Verdict, VerdictStatus,
};
use serde::Serialize;
use serde_json::Value;

pub use run::{EnvironmentRecord, MetadataRecord, StartRecord, SummaryRecord};
pub use spent::SpentRecord;
pub use turn::{AssertionRecord, CheckpointRecord, TurnListEntry, TurnRecord};

use super::attempts::{AttemptRecord, StabilityRecord};
use fingerprint::CaseFingerprints;
use hotseat_engine::run::{Attempt, CaseOutcome, ConversationMode, RunSettings};
use topics::{CompletionRecord, ScenarioRecord, SimulationRecord, TopicsRecord};
use turn::failed_check_messages;

/// Version of the report format: `major.minor`. New members increase the minor number.
pub const VERSION: &str = "1.7";

/// Result of a case.
#[derive(Debug, Serialize)]
pub struct ResultRecord<'a> {
    /// Index of the case in the run, from 0.
    pub index: usize,
    pub id: &'a str,
    pub name: &'a str,
    pub file: &'a str,
    pub line: u32,
    /// Tested agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<&'a str>,
    pub mode: &'static str,
    #[serde(flatten)]
    pub verdict: VerdictRecord<'a>,
    /// Completion of the case, with the reason if it was not completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion: Option<CompletionRecord<'a>>,
    /// Identifier that stays the same in other runs, wherever the case is defined.
    pub stable_id: String,
    /// Scenario of the case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenario: Option<ScenarioRecord<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub tags: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<&'a Value>,
    /// Fingerprints for comparisons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprints: Option<CaseFingerprints>,
    /// If there is one input: the input of the case, or the sent input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Cow<'a, Value>>,
    /// True if the case passed only on a retry.
    #[serde(skip_serializing_if = "is_false")]
    pub flaky: bool,
    /// Conversation of the representative attempt.
    #[serde(flatten)]
    pub held: ConversationRecord<'a>,
    /// All attempts, if the case was retried.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<AttemptRecord<'a>>,
    /// Stability, if the case was repeated.
    #[serde(flatten)]
    pub stability: Option<StabilityRecord<'a>>,
}

/// Verdict of a case or an attempt.
#[derive(Debug, Serialize)]
pub struct VerdictRecord<'a> {
    pub status: VerdictStatus,
    /// The word of the result on every output; it says who is at fault.
    pub label: ResultLabel,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<&'a AttemptFailure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_reason: Option<&'a str>,
    /// Reason of the failure in one line, in the words of the documentation of case files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_kind: Option<&'static str>,
}

/// Conversation of an attempt.
#[derive(Debug, Serialize)]
pub struct ConversationRecord<'a> {
    /// If there is one input: the answer, or null.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Option<&'a str>>,
    pub started_at: String,
    pub duration_ms: f64,
    pub total_turns: usize,
    /// Usage of all turns, as far as it is reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent: Option<SpentRecord>,
    pub turns: Vec<TurnListEntry<'a>>,
    /// Topics, if they were followed.
    #[serde(flatten)]
    pub topics: Option<TopicsRecord<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub simulations: Vec<SimulationRecord<'a>>,
    /// Checks of the whole conversation; checks of a turn are in its record.
    pub assertions: Vec<AssertionRecord<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub final_assertions: Vec<AssertionRecord<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assertion_errors: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checkpoints: Vec<CheckpointRecord<'a>>,
    /// Problems that do not affect the verdict.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub warnings: &'a [String],
    /// `console` output of script functions of the case.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub logs: &'a [String],
}

pub fn is_false(value: &bool) -> bool {
    !value
}

pub fn ms(duration: Duration) -> f64 {
    (duration.as_micros() as f64) / 1000.0
}

/// Formats a wall time as RFC 3339.
pub fn rfc3339(at: Millis) -> String {
    jiff::Timestamp::from_millisecond(at).map(|at| at.to_string()).unwrap_or_default()
}

impl<'a> ResultRecord<'a> {
    pub fn new(outcome: &'a CaseOutcome, setting: &'a RunSettings) -> Self {
        let CaseOutcome { case_ref: selected, verdict, .. } = outcome;
        let (case, told) = (&selected.case, outcome.representative());
        let mode = told.mode();
        let agent = setting.agent_of_case(selected);
        let said = told.conversation.turns.first().and_then(|turn| turn.user.clone());
        let input = match (&case.input, mode) {
            (Some(written), _) => Some(Cow::Borrowed(written)),
            (None, ConversationMode::Standard) => said.map(|said| Cow::Owned(Value::String(said))),
            (None, ConversationMode::MultiTurn | ConversationMode::Dynamic) => None,
        };
        ResultRecord {
            index: selected.index,
            id: &case.id,
            name: &case.name,
            file: case.place.file(),
            line: case.place.line(),
            agent: agent.map(|agent| &*agent.id),
            mode: mode.name(),
            verdict: VerdictRecord::new(verdict, |failure| failure_line(failure, told)),
            completion: CompletionRecord::from_verdict(verdict, &told.conversation),
            stable_id: case.stable_id(),
            scenario: ScenarioRecord::from_case(case),
            tags: &case.tags,
            metadata: case.metadata.as_ref(),
            fingerprints: CaseFingerprints::for_case(case),
            flaky: outcome.is_flaky(),
            held: ConversationRecord::new(told, input.is_some()),
            attempts: match (&outcome.stability, outcome.attempts.as_slice()) {
                (None, attempts @ [_, _, ..]) => {
                    attempts.iter().map(|attempt| AttemptRecord::from_retry(attempt)).collect()
                }
                _ => Vec::new(),
            },
            stability: outcome.stability.as_ref().map(|of| StabilityRecord::new(of, &outcome.attempts)),
            input,
        }
    }
}

impl<'a> VerdictRecord<'a> {
    /// Creates a record; `describe` formats the reason of a failure in one line.
    pub fn new(verdict: &'a Verdict, describe: impl FnOnce(&AttemptFailure) -> String) -> Self {
        let failure = verdict.failure.as_ref();
        VerdictRecord {
            status: verdict.status,
            label: ResultLabel::from_verdict(verdict),
            failure,
            skip_reason: verdict.skip_reason.as_deref(),
            error: failure.map(describe),
            error_kind: failure.map(|failure| failure.kind.name()),
        }
    }
}

impl<'a> ConversationRecord<'a> {
    /// Creates a record, with the answer if there is only one input.
    pub fn new(attempt: &'a Attempt, is_one: bool) -> Self {
        let answer = || attempt.conversation.turns.last().and_then(ConversationTurn::answer);
        let whole = |is_final: bool| {
            let checks = attempt.checks.iter();
            checks.filter(move |checked| {
                checked.turn.is_none() && checked.topic.is_none() && checked.is_final == is_final
            })
        };
        let held = &attempt.conversation.turns;
        let turns = held.iter().map(|turn| TurnListEntry::Executed(Box::new(TurnRecord::new(turn, attempt))));
        let skipped =
            attempt.verdict.skip_reason.as_deref().filter(|_| !held.is_empty()).map(|skip_reason| {
                TurnListEntry::Skipped { turn: held.len() + 1, status: "skipped", skip_reason }
            });
        ConversationRecord {
            output: is_one.then(answer),
            started_at: rfc3339(attempt.started_at),
            duration_ms: ms(attempt.duration),
            total_turns: held.len(),
            spent: attempt.conversation.usage_totals().map(SpentRecord::new),
            turns: turns.chain(skipped).collect(),
            topics: TopicsRecord::from_attempt(attempt),
            simulations: attempt.conversation.simulations.iter().map(SimulationRecord::new).collect(),
            assertions: whole(false).map(AssertionRecord::new).collect(),
            final_assertions: whole(true).map(AssertionRecord::new).collect(),
            assertion_errors: failed_check_messages(attempt.checks.iter()),
            checkpoints: attempt.checkpoints.iter().map(CheckpointRecord::new).collect(),
            warnings: &attempt.warnings,
            logs: &attempt.logs,
        }
    }
}

/// Formats the reason of a failure in the words of the documentation of case files.
pub fn documented_message(failure: &AttemptFailure, attempt: &Attempt) -> String {
    match (failure.kind, attempt.limit) {
        (FailureKind::Timeout, Some(limit)) => format!("timeout after {}", format_duration(limit)),
        (FailureKind::AgentError, _) => {
            let message = &failure.message;
            format!("agent error: {}", message.strip_prefix("the agent failed: ").unwrap_or(message))
        }
        _ => failure.message.clone(),
    }
}

/// Formats the reason of a failure. The message of a repeated case starts with its number of passed runs.
fn failure_line(failure: &AttemptFailure, told: &Attempt) -> String {
    match &told.verdict.failure {
        Some(own) => match failure.message.strip_suffix(&own.message) {
            Some(before) => format!("{before}{}", documented_message(own, told)),
            None => failure.message.clone(),
        },
        None => failure.message.clone(),
    }
}

/// Formats a duration as in test files: `30s`, `5m`, `1m30s`, `150ms`.
fn format_duration(duration: Duration) -> String {
    let (minutes, seconds, millis) =
        (duration.as_secs() / 60, duration.as_secs() % 60, duration.subsec_millis());
    let parts = [(minutes, "m"), (seconds, "s"), (u64::from(millis), "ms")];
    parts.iter().filter(|(count, _)| *count > 0).map(|(count, unit)| format!("{count}{unit}")).collect()
}
