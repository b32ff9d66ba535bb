//! Progress of the checkpoints of a case.

use hotseat_checks::Check;
use hotseat_document::SourceSpan;
use hotseat_trace::{FailureKind, TurnScope};
use serde::{Deserialize, Serialize};

use super::CheckResult;
use crate::cases::Checkpoint;

/// Serialisable result of a checkpoint, updated after every turn.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CheckpointResult {
    /// The checkpoint.
    pub checkpoint: CheckpointInfo,
    /// The turn that reached it, from 1.
    pub at: Option<usize>,
    /// Reason why the last evaluated turn did not reach it.
    pub missing: Option<String>,
    /// Reason why an evaluated turn may have reached it, if its checks cannot be decided there, and the kind of this failure.
    #[serde(skip)]
    pub undecided: Option<(FailureKind, String)>,
}

/// Serialisable description of a checkpoint.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CheckpointInfo {
    /// Name.
    pub id: String,
    /// Description.
    pub description: Option<String>,
    /// True if the case fails without it.
    pub required: bool,
    /// Tool that it waits for, if any.
    pub tool: Option<String>,
    /// Position of the name in the file.
    #[serde(skip)]
    pub place: SourceSpan,
}

/// Returns the next checkpoint to evaluate in a turn: not reached, not evaluated yet, and with all its
/// predecessors reached.
pub fn next_to_evaluate(
    checkpoints: &[Checkpoint],
    results: &[CheckpointResult],
    looked_at: &[bool],
) -> Option<usize> {
    let is_reached = |place: usize| results[place].at.is_some();
    (0..results.len()).find(|&place| {
        let mut before = checkpoints[place].after.iter();
        !looked_at[place] && !is_reached(place) && before.all(|&before| is_reached(before))
    })
}

impl CheckpointResult {
    /// Creates the result of a checkpoint that is not reached.
    pub fn new(checkpoint: &Checkpoint) -> Self {
        let checkpoint = CheckpointInfo {
            id: checkpoint.id.clone(),
            description: checkpoint.description.clone(),
            required: checkpoint.required,
            tool: checkpoint.checks.iter().find_map(Check::expected_tool).map(str::to_string),
            place: checkpoint.place.clone(),
        };
        CheckpointResult { checkpoint, at: None, missing: None, undecided: None }
    }

    /// True if the case fails because of this checkpoint.
    pub fn is_missing(&self) -> bool {
        self.checkpoint.required && self.at.is_none()
    }

    /// Records the results of its checks in a turn. It is reached if all of them pass in the same turn.
    pub fn record_results(&mut self, decided: &[CheckResult], turn: usize) {
        let failed = decided.iter().filter(|checked| !checked.verdict.passed);
        let words: Vec<String> =
            failed.clone().map(|checked| checked.verdict.describe(checked.error.is_some())).collect();
        // A check that fails decides, whatever the others would say.
        if failed.clone().all(|checked| checked.error.is_some()) {
            let error = failed.clone().find_map(CheckResult::evaluation_error);
            let error = error.map(|(kind, why)| (kind, why.to_string()));
            self.undecided = self.undecided.take().or(error);
        }
        match words.is_empty() {
            true => (self.at, self.missing) = (Some(turn), None),
            false => self.missing = Some(format!("in turn {turn}: {}", words.join("; "))),
        }
    }
}

/// Records that a predecessor of a checkpoint is not reached.
pub fn record_blocked(
    checkpoint: &Checkpoint,
    results: &mut [CheckpointResult],
    place: usize,
    turn: usize,
    scope: TurnScope<'_>,
) {
    let Some(&before) = checkpoint.after.iter().find(|&&before| results[before].at.is_none()) else {
        return;
    };
    // Judges are not asked before all predecessors are reached.
    let holds =
        checkpoint.checks.iter().all(|check| check.as_judged().is_none() && check.decide(scope).passed);
    if holds && results[place].undecided.is_none() {
        results[place].undecided = results[before].undecided.clone();
    }
    let before = &results[before].checkpoint.id;
    results[place].missing = Some(match holds {
        true => format!("its checks passed in turn {turn}, but `{before}` was not reached before"),
        false => format!("`{before}` was not reached before"),
    });
}

/// Returns true if all required checkpoints are reached; without required ones, if all are.
pub fn all_reached(results: &[CheckpointResult]) -> bool {
    let some_required = results.iter().any(|reached| reached.checkpoint.required);
    let is_enough =
        |reached: &CheckpointResult| reached.at.is_some() || (some_required && !reached.checkpoint.required);
    !results.is_empty() && results.iter().all(is_enough)
}
