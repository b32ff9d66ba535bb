//! What a comparison reads of a case and its attempts: from the outcome of a saved case, or from a report.

use std::collections::BTreeMap;

use hotseat_trace::{LabelCounts, ResponsibleParty, ResultLabel, VerdictStatus};
use serde::Deserialize;
use serde_json::Value;

use super::cases::{
    AttemptFigures, CheckContent, ReportAttempt, ReportCase, ReportTurn, StoppingRule, read_status,
};

#[derive(Default, Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct AttemptContent {
    pub run: Option<usize>,
    pub attempt: Option<usize>,
    #[serde(default)]
    pub invalid: bool,
    #[serde(deserialize_with = "read_status")]
    pub status: VerdictStatus,
    pub failure: Option<FailureContent>,
    pub error: Option<String>,
    #[serde(default)]
    pub turns: Vec<ReportTurn>,
    #[serde(default)]
    pub assertions: Vec<CheckContent>,
    #[serde(default)]
    pub final_assertions: Vec<CheckContent>,
    #[serde(default)]
    pub spent: UsageContent,
}

/// Failure of an attempt. Reports of other versions may have other kinds and faults.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct FailureContent {
    #[serde(default)]
    pub kind: String,
    #[serde(default)]
    pub fault: Value,
}

/// Usage of an attempt, if reported.
#[derive(Default, Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct UsageContent {
    pub total_tokens: Option<f64>,
    pub cost: Option<f64>,
}

/// Result of a declared reliability.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct ReliabilityContent {
    pub rate: f64,
    pub confidence: f64,
    pub max_runs: usize,
    pub decided_after: Option<usize>,
}

impl ReportCase {
    /// Adds the attempts at a case: all of a repeated case, otherwise one.
    pub(super) fn with_attempts(
        self,
        mut held: Vec<AttemptContent>,
        reliability: Option<ReliabilityContent>,
    ) -> ReportCase {
        let stopping = reliability.map(|found| {
            // Drop attempts that were still running when the result was decided; their number depends on the
            // speed of the machine.
            let last = found.decided_after.unwrap_or(usize::MAX);
            held.retain(|held| held.run.is_none_or(|run| run <= last));
            StoppingRule { rate: found.rate, confidence: found.confidence, max_runs: found.max_runs }
        });
        let judges =
            held.iter().flat_map(AttemptContent::checks).filter_map(|check| check.judge.clone()).collect();
        let all = held.len();
        let mut invalid_labels = LabelCounts::default();
        for label in held.iter().filter(|held| held.is_invalid()).filter_map(AttemptContent::label) {
            invalid_labels.add(label);
        }
        held.retain(|held| !held.is_invalid());
        let invalid = all - held.len();
        // A skipped attempt beside others counts as it does in the run: it has not passed.
        if held.iter().all(|held| held.status == VerdictStatus::Skipped) {
            held.clear();
        }
        let mut attempts: Vec<ReportAttempt> = held.into_iter().map(AttemptContent::into_attempt).collect();
        drop_unneeded_turns(&mut attempts);
        ReportCase { judges, attempts, invalid, invalid_labels, stopping, ..self }
    }
}

/// Selects the attempt that counts of a case that was retried: the first valid one, because the others were made only
/// after its failure.
pub(super) fn counted_attempt(mut tried: Vec<AttemptContent>) -> Vec<AttemptContent> {
    let first = tried.iter().position(|held| !held.is_invalid()).unwrap_or(0);
    if tried.is_empty() { tried } else { vec![tried.swap_remove(first)] }
}

/// Keeps only the conversations of the first attempt, the first passed one and the first failed one.
fn drop_unneeded_turns(attempts: &mut [ReportAttempt]) {
    let first = |passed| attempts.iter().position(|attempt| attempt.passed == passed);
    let told = [Some(0), first(true), first(false)];
    for (place, attempt) in attempts.iter_mut().enumerate() {
        if !told.contains(&Some(place)) {
            attempt.turns = Vec::new();
        }
    }
}

impl AttemptContent {
    /// Returns true if the attempt is invalid.
    fn is_invalid(&self) -> bool {
        let by_other = |failure: &FailureContent| match failure.fault.as_str().unwrap_or_default() {
            "infrastructure" | "simulator" | "judge" => true,
            "test" => failure.kind != "no_input",
            _ => false,
        };
        self.invalid || self.failure.as_ref().is_some_and(by_other)
    }

    /// Returns the label of a failed attempt, if the report names the fault.
    fn label(&self) -> Option<ResultLabel> {
        let fault = self.failure.as_ref()?.fault.clone();
        serde_json::from_value::<ResponsibleParty>(fault).ok().map(ResultLabel::from)
    }

    /// Returns all checks of the attempt.
    fn checks(&self) -> impl Iterator<Item = &CheckContent> {
        let of_turns = self.turns.iter().flat_map(|turn| &turn.checks);
        of_turns.chain(&self.assertions).chain(&self.final_assertions)
    }

    fn into_attempt(mut self) -> ReportAttempt {
        let passed = match self.status {
            VerdictStatus::Passed => true,
            VerdictStatus::Failed | VerdictStatus::Skipped => false,
        };
        let mut soft: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for one in self.checks() {
            if one.soft && one.decided {
                let (decided, holds) = soft.entry(one.name.clone()).or_default();
                *decided += 1;
                *holds += usize::from(one.passed);
            }
        }
        self.turns.retain(|turn| turn.skip_reason.is_none());
        for turn in &mut self.turns {
            turn.checks = Vec::new();
            turn.calls.shrink_to_fit();
        }
        self.turns.shrink_to_fit();
        let mut figures = AttemptFigures {
            seconds: self.turns.iter().map(|turn| turn.duration_ms).sum::<f64>() / 1000.0,
            turns: self.turns.len(),
            tokens: self.spent.total_tokens,
            cost: self.spent.cost,
            ..AttemptFigures::default()
        };
        for call in self.turns.iter().flat_map(|turn| &turn.calls) {
            *figures.tools.entry(call.tool.clone()).or_default() += 1;
        }
        let number = self.run.or(self.attempt).unwrap_or(1);
        ReportAttempt { number, passed, error: self.error, figures, soft, turns: self.turns }
    }
}
