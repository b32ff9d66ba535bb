//! Results as they are written to report files. The inner types are free to change; these are a promise.

mod fingerprint;
mod run;
mod spent;
mod topics;
mod turn;

use std::borrow::Cow;
use std::time::Duration;

use hotseat_trace::{Failure, FailureKind, Millis, Status, Turn, Verdict};
use serde::Serialize;
use serde_json::Value;

pub use run::{EnvironmentRecord, MetadataRecord, StartRecord, SummaryRecord};
pub use spent::SpentRecord;
pub use turn::{AssertionRecord, CheckpointRecord, TurnEntry, TurnRecord};

use super::attempts::{AttemptRecord, StabilityRecord};
use crate::run::{Attempt, Mode, Outcome, Setting};
use fingerprint::Fingerprints;
use topics::{CompletionRecord, ScenarioRecord, SimulationRecord, TopicsRecord};
use turn::errors;

/// Version of the report format: `major.minor`. New members raise the minor number.
pub const VERSION: &str = "1.5";

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
    #[serde(flatten)]
    pub verdict: VerdictRecord<'a>,
    /// Whether the case was completed, and if not, what kept it from that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion: Option<CompletionRecord<'a>>,
    /// A name by which the case is found again in other runs, wherever it stands.
    pub stable_id: String,
    /// The scenario that the case was held with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenario: Option<ScenarioRecord<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub tags: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<&'a Value>,
    /// What stands for what is asked and checked, in comparisons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprints: Option<Fingerprints>,
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

/// What a case or an attempt came to.
#[derive(Debug, Serialize)]
pub struct VerdictRecord<'a> {
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
    /// What was spent in all turns, as far as somebody says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent: Option<SpentRecord>,
    pub turns: Vec<TurnEntry<'a>>,
    /// Where topics were followed.
    #[serde(flatten)]
    pub topics: Option<TopicsRecord<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub simulations: Vec<SimulationRecord<'a>>,
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
    /// What functions of scripts around the case said to `console`.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub logs: &'a [String],
}

pub fn is_false(value: &bool) -> bool {
    !value
}

pub fn ms(duration: Duration) -> f64 {
    (duration.as_micros() as f64) / 1000.0
}

/// A wall time as RFC 3339.
pub fn rfc3339(at: Millis) -> String {
    jiff::Timestamp::from_millisecond(at).map(|at| at.to_string()).unwrap_or_default()
}

impl<'a> ResultRecord<'a> {
    pub fn of(outcome: &'a Outcome, setting: &'a Setting) -> Self {
        let Outcome { selected, verdict, .. } = outcome;
        let (case, told) = (&selected.case, outcome.telling());
        let mode = told.mode();
        let agent = setting.tested(selected);
        let said = told.conversation.turns.first().and_then(|turn| turn.user.clone());
        let input = match (&case.input, mode) {
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
            verdict: VerdictRecord::of(verdict, |failure| one_line(failure, told)),
            completion: CompletionRecord::of(verdict, &told.conversation),
            stable_id: case.stable_id(),
            scenario: ScenarioRecord::of(case),
            tags: &case.tags,
            metadata: case.metadata.as_ref(),
            fingerprints: Fingerprints::of(case),
            flaky: outcome.is_flaky(),
            held: HeldRecord::of(told, input.is_some()),
            attempts: match (&outcome.stability, outcome.attempts.as_slice()) {
                (None, attempts @ [_, _, ..]) => {
                    attempts.iter().map(|attempt| AttemptRecord::tried(attempt)).collect()
                }
                _ => Vec::new(),
            },
            stability: outcome.stability.as_ref().map(|of| StabilityRecord::of(of, &outcome.attempts)),
            input,
        }
    }
}

impl<'a> VerdictRecord<'a> {
    /// A verdict; `in_words` says in one line why something failed.
    pub fn of(verdict: &'a Verdict, in_words: impl FnOnce(&Failure) -> String) -> Self {
        let failure = verdict.failure.as_ref();
        VerdictRecord {
            status: verdict.status,
            failure,
            skip_reason: verdict.skip_reason.as_deref(),
            error: failure.map(in_words),
            error_kind: failure.map(|failure| failure.kind.name()),
        }
    }
}

impl<'a> HeldRecord<'a> {
    /// A conversation, with its answer where there `is_one` input.
    pub fn of(attempt: &'a Attempt, is_one: bool) -> Self {
        let answer = || attempt.conversation.turns.last().and_then(Turn::answer);
        let whole = |is_final: bool| {
            let checks = attempt.checks.iter();
            checks.filter(move |checked| {
                checked.turn.is_none() && checked.topic.is_none() && checked.is_final == is_final
            })
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
            spent: attempt.conversation.spent().map(SpentRecord::of),
            turns: turns.chain(skipped).collect(),
            topics: TopicsRecord::of(attempt),
            simulations: attempt.conversation.simulations.iter().map(SimulationRecord::of).collect(),
            assertions: whole(false).map(AssertionRecord::of).collect(),
            final_assertions: whole(true).map(AssertionRecord::of).collect(),
            assertion_errors: errors(attempt.checks.iter()),
            checkpoints: attempt.checkpoints.iter().map(CheckpointRecord::of).collect(),
            warnings: &attempt.warnings,
            logs: &attempt.logs,
        }
    }
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
