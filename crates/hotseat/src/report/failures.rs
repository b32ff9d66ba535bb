//! What failed in a run: the first cases by their names, how many of each kind, and what to do next.

use hotseat_trace::{FailureKind, Status};

use super::words::one_line;
use crate::checks::escape;
use crate::run::Outcome;

/// The failed cases of a run. However many there are, only the first ones are kept.
#[derive(Debug)]
pub struct Failures {
    most: usize,
    /// How many there are.
    pub count: usize,
    first: Vec<Failed>,
    /// How many there are of each kind.
    kinds: Vec<(FailureKind, usize)>,
}

/// A case that failed.
#[derive(Debug)]
pub struct Failed {
    /// Its place in the run.
    pub index: usize,
    pub id: String,
    pub name: String,
    pub named: bool,
    /// Where it is written.
    pub place: String,
    pub kind: FailureKind,
}

/// A selection of more cases than this is no longer a command that somebody would paste.
const SELECTED: usize = 5;
/// Nor is a pattern that is longer than this.
const LONGEST: usize = 45;

impl Failures {
    /// None yet; at most so many will be kept.
    pub fn keeping(most: usize) -> Self {
        Failures { most, count: 0, first: Vec::new(), kinds: Vec::new() }
    }

    /// Takes note of a case that has ended.
    pub fn note(&mut self, outcome: &Outcome) {
        let (Status::Failed, Some(failure)) = (outcome.verdict.status, &outcome.verdict.failure) else {
            return;
        };
        self.count += 1;
        match self.kinds.iter_mut().find(|(kind, _)| *kind == failure.kind) {
            Some((_, count)) => *count += 1,
            None => self.kinds.push((failure.kind, 1)),
        }
        if self.first.len() < self.most {
            let case = &outcome.selected.case;
            self.first.push(Failed {
                index: outcome.selected.index,
                id: case.id.clone(),
                name: case.name.clone(),
                named: case.named,
                place: case.place.to_string(),
                kind: failure.kind,
            });
        }
    }

    /// Those that were kept, in the order of the cases.
    pub fn first(&mut self) -> &[Failed] {
        self.first.sort_by_key(|failed| failed.index);
        &self.first
    }

    /// What to do next after a run of `total` cases, in one line; none where nothing failed, or nothing can be said that
    /// is not plain to see.
    pub fn suggestion(&mut self, total: usize) -> Option<String> {
        let (kind, _) = *self.kinds.iter().rev().max_by_key(|(_, count)| *count)?;
        let run = self.selected().map(|pattern| format!("--run {pattern}"));
        // As far as it can be written down: the failed cases, and what else helps.
        let with = |rest: &str| {
            let parts: Vec<&str> =
                run.as_deref().into_iter().chain(Some(rest).filter(|rest| !rest.is_empty())).collect();
            format!("`{}`", parts.join(" "))
        };
        Some(match kind {
            FailureKind::Assertion | FailureKind::MissingCheckpoints if self.count == total => return None,
            FailureKind::Assertion | FailureKind::MissingCheckpoints => match &run {
                Some(run) => format!("when it is fixed, run only what failed: `{run}`"),
                None => "run one of the failed cases alone with `--run` and its name".to_string(),
            },
            FailureKind::AgentError | FailureKind::ProtocolError => {
                format!("see all that the agent sent: {}", with("--trace trace.jsonl"))
            }
            FailureKind::Unreachable => {
                "start the agent, or correct its address in the project file".to_string()
            }
            FailureKind::Timeout => {
                "see where the time goes in the turns above; if the agent needs longer, raise `timeout_ms` or give `--timeout`"
                    .to_string()
            }
            FailureKind::Limit => {
                "see what the agent sends in the turns above; if that is meant, raise the limit of the project file that the failure names"
                    .to_string()
            }
            FailureKind::HookError => {
                "run the command of the hook by itself; what it printed stands with the failure".to_string()
            }
            FailureKind::TestError => "correct the case; the failure says what is wrong with it".to_string(),
            FailureKind::NoInput => {
                "add turns to the case, or say with `on_missing_input: end` that the conversation ends there"
                    .to_string()
            }
            FailureKind::MaxTurns => {
                "see above whether the conversation goes in circles; if it needs longer, raise `max_turns`".to_string()
            }
            FailureKind::SimulatorError | FailureKind::JudgeError => {
                format!("see what the helper was asked and said: {}", with("--trace trace.jsonl"))
            }
            FailureKind::Inconclusive => {
                "raise `max_runs` of `reliability`, or declare what the agent keeps with room to spare".to_string()
            }
            FailureKind::ScriptError => {
                "correct the script; the failure shows the line that is wrong".to_string()
            }
            FailureKind::UsageError => {
                "have the agent report its usage, and give its model's connector a `price`; or drop the budget".to_string()
            }
            FailureKind::NotKept => match &run {
                Some(run) => format!("hold it anew: `{run}`"),
                None => "hold it anew with `hotseat test`".to_string(),
            },
            FailureKind::Cancelled => match &run {
                Some(run) => format!("run again what was cancelled: `{run}`"),
                None => "run again what was cancelled".to_string(),
            },
        })
    }

    /// The pattern that selects just the failed cases, as a shell takes it; none where it would be unwieldy.
    fn selected(&mut self) -> Option<String> {
        if self.count > SELECTED || self.count > self.most {
            return None;
        }
        // Outside of brackets these mean nothing, so they need no escape.
        let plainly =
            |id: &str| ["-", "#", "&", "~"].iter().fold(escape(id), |id, c| id.replace(&format!("\\{c}"), c));
        let ids: Vec<String> = self.first().iter().map(|failed| plainly(&failed.id)).collect();
        let pattern = match ids.as_slice() {
            [one] => format!("'^{one}$'"),
            several => format!("'^({})$'", several.join("|")),
        };
        // A quote would end it for the shell, and what is not harmless to print is not what the case is called.
        let plain = one_line(&pattern, LONGEST) == pattern && pattern.matches('\'').count() == 2;
        plain.then_some(pattern)
    }
}
