//! Digests of what judges a case beside its assertions: functions of scripts and judges.

use std::fmt::Write as _;

use super::case_roles::{CaseScope, check_functions, judge_settings};
use super::results::JudgingDigests;
use crate::config::Project;
use crate::digest::short_digest;
use hotseat_checks::JudgeSettings;

/// Computes the digests of a case. Functions and judges that cannot be found are errors of the plan.
pub fn judging_digests(project: &Project, scope: CaseScope<'_>) -> JudgingDigests {
    let mut sources = String::new();
    for (reference, function) in check_functions(project, scope).into_iter().flatten() {
        let _ = writeln!(sources, "{reference} {}", function.source_digest());
    }
    let mut settings = judge_settings(project, scope).join("\n");
    if !settings.is_empty() {
        let JudgeSettings { votes, evidence, .. } = &project.judge;
        // One vote is the default.
        let votes = votes.filter(|votes| *votes > 1);
        let _ = write!(settings, "\n{votes:?} {evidence:?}");
    }
    let digest = |text: String| (!text.is_empty()).then(|| short_digest(&text, 8));
    JudgingDigests { functions: digest(sources), judges: digest(settings) }
}
