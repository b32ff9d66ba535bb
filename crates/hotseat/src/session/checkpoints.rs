//! How far the checkpoints of a case have been reached.

use hotseat_trace::Scope;

use super::Checked;
use crate::cases::Checkpoint;

/// A checkpoint, and in which turn it was reached.
#[derive(Debug, Clone)]
pub struct Reached {
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// The turn, from 1.
    pub at: Option<usize>,
    /// Why it was not reached in the last turn that was looked at, in words.
    pub missing: Option<String>,
}

/// Checkpoints of which none is reached.
pub fn begin(checkpoints: &[Checkpoint]) -> Vec<Reached> {
    let none = |checkpoint: &Checkpoint| Reached { checkpoint: checkpoint.clone(), at: None, missing: None };
    checkpoints.iter().map(none).collect()
}

/// The next one to look at in a turn: not reached and not looked at yet, and all that it comes after are reached, in this
/// turn at the latest.
pub fn next(all: &[Reached], looked_at: &[bool]) -> Option<usize> {
    let is_free = |reached: &Reached| {
        reached.at.is_none() && reached.checkpoint.after.iter().all(|&before| all[before].at.is_some())
    };
    (0..all.len()).find(|&place| !looked_at[place] && is_free(&all[place]))
}

impl Reached {
    /// Takes note of what its checks came to in a turn. All of them hold of one turn, or it is not reached there.
    pub fn take(&mut self, decided: &[Checked], turn: usize) {
        let failed = decided.iter().filter(|checked| !checked.verdict.passed);
        let words: Vec<String> = failed
            .map(|checked| format!("expected {}; found {}", checked.verdict.expected, checked.verdict.actual))
            .collect();
        match words.is_empty() {
            true => (self.at, self.missing) = (Some(turn), None),
            false => self.missing = Some(format!("in turn {turn}: {}", words.join("; "))),
        }
    }
}

/// Takes note that one could not be reached in a turn because it comes after others.
pub fn wait(all: &mut [Reached], place: usize, turn: usize, scope: Scope<'_>) {
    let Some(&before) = all[place].checkpoint.after.iter().find(|&&before| all[before].at.is_none()) else {
        return;
    };
    // What a judge would say is not asked before its time.
    let checks = &all[place].checkpoint.checks;
    let holds = checks.iter().all(|check| check.judged().is_none() && check.decide(scope).passed);
    let before = &all[before].checkpoint.id;
    all[place].missing = Some(match holds {
        true => format!("in turn {turn} it held, but `{before}` was not reached before"),
        false => format!("`{before}` was not reached before"),
    });
}

/// The required ones that are not reached.
pub fn missing(all: &[Reached]) -> impl Iterator<Item = &Reached> {
    all.iter().filter(|reached| reached.checkpoint.required && reached.at.is_none())
}

/// Whether nothing is left to be reached: all that are required, or, where none is, all.
pub fn all_reached(all: &[Reached]) -> bool {
    let some_required = all.iter().any(|reached| reached.checkpoint.required);
    !all.is_empty()
        && all.iter().all(|reached| reached.at.is_some() || (some_required && !reached.checkpoint.required))
}
