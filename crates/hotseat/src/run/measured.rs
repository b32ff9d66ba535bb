//! What checks and criteria came to over a run: what decides and what is only measured, never mixed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::told::{Finding, State};

/// Of how many criteria figures are kept; free texts could be as many as there are cases.
const MOST: usize = 1_000;
/// The name under which all others are counted together.
const OTHERS: &str = "(all others)";
/// How much of a criterion that is a sentence stands for it.
const LONGEST: usize = 120;

/// What some checks came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// How many hold.
    pub passed: usize,
    /// How many do not.
    pub failed: usize,
    /// How many could not be decided.
    pub errored: usize,
}

/// What one criterion came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfCriterion {
    /// Where it decides.
    pub hard: Tally,
    /// Where it is only measured.
    pub soft: Tally,
}

/// What all checks and all criteria came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// The checks that decide.
    pub hard: Tally,
    /// The checks that are only measured.
    pub soft: Tally,
    /// The criteria, by their names or what they say.
    pub criteria: BTreeMap<String, OfCriterion>,
    /// How many checks were decided by a judge that was not shown all of the conversation.
    #[serde(default)]
    pub truncated: usize,
}

impl Tally {
    fn count(&mut self, state: State) {
        match state {
            State::Passed => self.passed += 1,
            State::Failed => self.failed += 1,
            State::Errored => self.errored += 1,
        }
    }

    /// How many were decided.
    pub fn judged(&self) -> usize {
        self.passed + self.failed
    }

    /// Whether there are any.
    pub fn is_empty(&self) -> bool {
        self.judged() + self.errored == 0
    }

    /// The part of those that were decided that hold, from 0 to 1; none where none was.
    pub fn rate(&self) -> Option<f64> {
        (self.judged() > 0).then(|| self.passed as f64 / self.judged() as f64)
    }
}

impl Measured {
    /// Counts what was decided in an attempt.
    pub(super) fn count(&mut self, findings: &[Finding]) {
        findings.iter().for_each(|finding| self.count_one(finding));
    }

    fn count_one(&mut self, finding: &Finding) {
        let (state, is_hard) = (finding.state(), finding.check.is_hard());
        let all = if is_hard { &mut self.hard } else { &mut self.soft };
        all.count(state);
        let is_truncated = finding.opinion.as_ref().is_some_and(|opinion| !opinion.by.left_out.is_empty());
        self.truncated += usize::from(is_truncated);
        let Some(criterion) = &finding.check.criterion else { return };
        let name: String = match criterion.char_indices().nth(LONGEST) {
            Some((end, _)) => format!("{}…", &criterion[..end]),
            None => criterion.to_string(),
        };
        let has_room = self.criteria.len() < MOST || self.criteria.contains_key(&name);
        let of = self.criteria.entry(if has_room { name } else { OTHERS.to_string() }).or_default();
        let tally = if is_hard { &mut of.hard } else { &mut of.soft };
        tally.count(state);
    }
}
