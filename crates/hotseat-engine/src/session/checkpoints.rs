//! Progress of the checkpoints of a case.

use hotseat_trace::TurnScope;

use super::CheckResult;
use crate::cases::Checkpoint;

/// A checkpoint and the turn that reached it.
#[derive(Debug, Clone)]
pub struct CheckpointProgress {
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// The turn that reached it, from 1.
    pub reached_in: Option<usize>,
    /// The reason why the last evaluated turn did not reach it.
    pub missing: Option<String>,
}

/// Returns the initial progress: no checkpoint is reached.
pub fn initial_progress(checkpoints: &[Checkpoint]) -> Vec<CheckpointProgress> {
    let none = |checkpoint: &Checkpoint| CheckpointProgress {
        checkpoint: checkpoint.clone(),
        reached_in: None,
        missing: None,
    };
    checkpoints.iter().map(none).collect()
}

/// Returns the next checkpoint to evaluate in a turn: not reached, not evaluated yet, and with all its
/// predecessors reached.
pub fn next_to_evaluate(all: &[CheckpointProgress], looked_at: &[bool]) -> Option<usize> {
    let is_free = |reached: &CheckpointProgress| {
        reached.reached_in.is_none()
            && reached.checkpoint.after.iter().all(|&before| all[before].reached_in.is_some())
    };
    (0..all.len()).find(|&place| !looked_at[place] && is_free(&all[place]))
}

impl CheckpointProgress {
    /// Records the results of its checks in a turn. It is reached if all of them pass in the same turn.
    pub fn record_results(&mut self, decided: &[CheckResult], turn: usize) {
        let failed = decided.iter().filter(|checked| !checked.verdict.passed);
        let words: Vec<String> =
            failed.map(|checked| checked.verdict.describe(checked.error.is_some())).collect();
        match words.is_empty() {
            true => (self.reached_in, self.missing) = (Some(turn), None),
            false => self.missing = Some(format!("in turn {turn}: {}", words.join("; "))),
        }
    }
}

/// Records that a predecessor of a checkpoint is not reached.
pub fn record_blocked(all: &mut [CheckpointProgress], place: usize, turn: usize, scope: TurnScope<'_>) {
    let Some(&before) = all[place].checkpoint.after.iter().find(|&&before| all[before].reached_in.is_none())
    else {
        return;
    };
    // Judges are not asked before all predecessors are reached.
    let checks = &all[place].checkpoint.checks;
    let holds = checks.iter().all(|check| check.as_judged().is_none() && check.decide(scope).passed);
    let before = &all[before].checkpoint.id;
    all[place].missing = Some(match holds {
        true => format!("its checks passed in turn {turn}, but `{before}` was not reached before"),
        false => format!("`{before}` was not reached before"),
    });
}

/// Returns the required checkpoints that are not reached.
pub fn missing_required(all: &[CheckpointProgress]) -> impl Iterator<Item = &CheckpointProgress> {
    all.iter().filter(|reached| reached.checkpoint.required && reached.reached_in.is_none())
}

/// Returns true if all required checkpoints are reached; without required ones, if all are.
pub fn all_reached(all: &[CheckpointProgress]) -> bool {
    let some_required = all.iter().any(|reached| reached.checkpoint.required);
    !all.is_empty()
        && all
            .iter()
            .all(|reached| reached.reached_in.is_some() || (some_required && !reached.checkpoint.required))
}
