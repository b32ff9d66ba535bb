//! How far the checkpoints of a case have been reached.

use hotseat_trace::Scope;

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

/// Looks at a turn. A checkpoint is reached once: when all it asserts holds of one turn, and those it comes after are
/// reached, in that turn at the latest. In which order they are written does not matter.
pub fn look(all: &mut [Reached], number: usize, turn: Scope<'_>) {
    let wrong: Vec<Option<String>> = all
        .iter()
        .map(|reached| {
            if reached.at.is_some() {
                return None;
            }
            let verdicts = reached.checkpoint.checks.iter().map(|check| check.decide(turn));
            let failed = verdicts.filter(|verdict| !verdict.passed);
            let words: Vec<String> = failed
                .map(|verdict| format!("expected {}; found {}", verdict.expected, verdict.actual))
                .collect();
            (!words.is_empty()).then(|| words.join("; "))
        })
        .collect();
    loop {
        let is_free = |reached: &Reached| {
            reached.at.is_none() && reached.checkpoint.after.iter().all(|&before| all[before].at.is_some())
        };
        let next = (0..all.len()).find(|&place| wrong[place].is_none() && is_free(&all[place]));
        let Some(next) = next else { break };
        all[next].at = Some(number);
    }
    for place in 0..all.len() {
        if all[place].at.is_some() {
            all[place].missing = None;
            continue;
        }
        let waits = all[place].checkpoint.after.iter().find(|&&before| all[before].at.is_none());
        all[place].missing = match (&wrong[place], waits) {
            (Some(words), _) => Some(format!("in turn {number}: {words}")),
            (None, Some(&before)) => Some(format!(
                "in turn {number} it held, but `{}` was not reached before",
                all[before].checkpoint.id
            )),
            (None, None) => None,
        };
    }
}

/// The required ones that are not reached.
pub fn missing(all: &[Reached]) -> impl Iterator<Item = &Reached> {
    all.iter().filter(|reached| reached.checkpoint.required && reached.at.is_none())
}
