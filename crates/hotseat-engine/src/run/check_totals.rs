//! Totals of checks and criteria over a run, with hard and informational (soft) checks kept apart.

use std::collections::BTreeMap;

use hotseat_document::excerpt;
use serde::{Deserialize, Serialize};

use crate::session::{CheckResult, CheckState};

/// Maximum number of criteria with their own totals. Free-text criteria are unbounded.
const MAX_CRITERIA: usize = 1_000;
/// Name under which all further criteria are counted.
const OTHER_CRITERIA: &str = "(all others)";
/// Maximum length of a criterion's text, in characters.
const MAX_CRITERION_CHARS: usize = 120;

/// Counts of check results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckTally {
    /// Passed checks.
    pub passed: usize,
    /// Failed checks.
    pub failed: usize,
    /// Checks that could not be evaluated.
    pub errored: usize,
}

/// Counts for one criterion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CriterionTally {
    /// As a hard check.
    pub hard: CheckTally,
    /// As an informational (soft) check.
    pub soft: CheckTally,
}

/// Counts of all checks and criteria of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckTotals {
    /// Hard checks.
    pub hard: CheckTally,
    /// Informational (soft) checks.
    pub soft: CheckTally,
    /// Criteria by name or text.
    pub criteria: BTreeMap<String, CriterionTally>,
    /// Number of checks whose judge saw only part of the conversation.
    #[serde(default)]
    pub truncated: usize,
}

impl CheckTally {
    fn count(&mut self, state: CheckState) {
        match state {
            CheckState::Passed => self.passed += 1,
            CheckState::Failed => self.failed += 1,
            CheckState::Errored => self.errored += 1,
        }
    }

    /// Number of checks that passed or failed.
    pub fn evaluated(&self) -> usize {
        self.passed + self.failed
    }

    /// True if no check was counted.
    pub fn is_empty(&self) -> bool {
        self.evaluated() + self.errored == 0
    }

    /// Pass rate of the evaluated checks, from 0 to 1. `None` if none was evaluated.
    pub fn pass_rate(&self) -> Option<f64> {
        (self.evaluated() > 0).then(|| self.passed as f64 / self.evaluated() as f64)
    }
}

impl CheckTotals {
    /// Counts the check results of an attempt.
    pub(super) fn count_all(&mut self, findings: &[CheckResult]) {
        findings.iter().for_each(|finding| self.count_result(finding));
    }

    fn count_result(&mut self, finding: &CheckResult) {
        let (state, is_hard) = (finding.state(), finding.check.is_hard());
        let all = if is_hard { &mut self.hard } else { &mut self.soft };
        all.count(state);
        let is_truncated = finding.opinion.as_ref().is_some_and(|opinion| !opinion.by.left_out.is_empty());
        self.truncated += usize::from(is_truncated);
        let Some(criterion) = &finding.check.criterion else { return };
        let name = excerpt(criterion, MAX_CRITERION_CHARS).into_owned();
        let has_room = self.criteria.len() < MAX_CRITERIA || self.criteria.contains_key(&name);
        let of = self.criteria.entry(if has_room { name } else { OTHER_CRITERIA.to_string() }).or_default();
        let tally = if is_hard { &mut of.hard } else { &mut of.soft };
        tally.count(state);
    }
}
