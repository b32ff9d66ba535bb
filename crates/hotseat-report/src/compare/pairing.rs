//! Pairs the cases of two runs, and finds cases that cannot be compared.

use std::collections::{BTreeMap, BTreeSet};

use super::cases::{ReportAttempt, ReportCase, ReportRun};
use hotseat_statistics::PairedCounts;
use hotseat_trace::{ResultLabel, format_count};

/// Case of both runs that cannot be compared.
#[derive(Debug)]
pub struct ExcludedCase<'a> {
    /// Case in the first run.
    pub before: &'a ReportCase,
    /// Case in the second run.
    pub after: &'a ReportCase,
    /// Reason of the exclusion.
    pub reason: &'static str,
}

/// Cases of two runs, paired.
pub(super) struct CasePairs<'a> {
    pub pairs: Vec<(&'a ReportCase, &'a ReportCase)>,
    pub removed: Vec<&'a ReportCase>,
    pub added: Vec<String>,
}

/// Pairs cases by suite and id, or by id alone if it is unique, because a suite may have moved.
pub(super) fn pair_cases<'a>(before: &'a ReportRun, after: &'a ReportRun) -> CasePairs<'a> {
    let mut by_both: BTreeMap<(&str, &str), &ReportCase> = BTreeMap::new();
    let mut by_id: BTreeMap<&str, Vec<&ReportCase>> = BTreeMap::new();
    for case in &before.cases {
        by_both.entry((&case.file, &case.id)).or_insert(case);
        by_id.entry(&case.id).or_default().push(case);
    }
    let mut ids_after: BTreeMap<&str, usize> = BTreeMap::new();
    for case in &after.cases {
        *ids_after.entry(&case.id).or_default() += 1;
    }
    let mut taken: BTreeSet<*const ReportCase> = BTreeSet::new();
    let (mut pairs, mut added) = (Vec::new(), Vec::new());
    for case in &after.cases {
        let alone = || match by_id.get(&*case.id).map(Vec::as_slice) {
            Some([one]) if ids_after[&*case.id] == 1 => Some(*one),
            _ => None,
        };
        match by_both.get(&(&*case.file, &*case.id)).copied().or_else(alone) {
            Some(one) if taken.insert(std::ptr::from_ref(one)) => pairs.push((one, case)),
            _ => added.push(case.label().to_string()),
        }
    }
    let removed = before.cases.iter().filter(|case| !taken.contains(&std::ptr::from_ref(*case)));
    CasePairs { removed: removed.collect(), pairs, added }
}

/// The reason that `--other-inputs` ignores.
pub(super) const DIFFERENT_INPUTS: &str = "the user inputs or the agent context differ";

/// Returns the reason why two cases with the same id cannot be compared, if any.
pub(super) fn exclusion_reason(
    before: &ReportCase,
    after: &ReportCase,
    other_inputs: bool,
) -> Option<&'static str> {
    match () {
        () if differ(&before.check_fingerprint, &after.check_fingerprint) => Some("different checks"),
        () if differ(&before.input_fingerprint, &after.input_fingerprint) && !other_inputs => {
            Some(DIFFERENT_INPUTS)
        }
        // Checks after a failed one are not judged, so a run may lack a judge of the other run.
        () if !before.judges.is_subset(&after.judges) && !after.judges.is_subset(&before.judges) => {
            Some("different judges")
        }
        () if before.attempts.is_empty() && after.attempts.is_empty() => {
            Some("no valid attempt in either run")
        }
        () if before.attempts.is_empty() => Some("no valid attempt in the first run"),
        () if after.attempts.is_empty() => Some("no valid attempt in the second run"),
        () => None,
    }
}

/// Weighting of the attempts at a case in two runs.
///
/// If results decide the number of attempts, pass rates are biased: the counts do not follow the distribution
/// that a test of counts assumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AttemptWeighting {
    /// Use all attempts: their number was fixed in both runs.
    Counts,
    /// Both runs used one rule to decide the number of attempts. Without a change the runs are exchangeable,
    /// so only the direction of the difference counts, not its size.
    Direction,
    /// Results decided the number of attempts in one run only, or by different rules. Only the first attempt
    /// is unconditional, so only it counts.
    FirstAttempt,
}

impl AttemptWeighting {
    /// Returns the weighting for two cases with the same id.
    pub fn for_cases(before: &ReportCase, after: &ReportCase) -> AttemptWeighting {
        match (before.stopping, after.stopping) {
            (None, None) => AttemptWeighting::Counts,
            (Some(one), Some(other)) if one == other => AttemptWeighting::Direction,
            (Some(_), _) | (None, Some(_)) => AttemptWeighting::FirstAttempt,
        }
    }

    /// Returns the attempts that count.
    pub fn attempts(self, case: &ReportCase) -> &[ReportAttempt] {
        match self {
            AttemptWeighting::Counts | AttemptWeighting::Direction => &case.attempts,
            AttemptWeighting::FirstAttempt => &case.attempts[..case.attempts.len().min(1)],
        }
    }

    /// Converts the counts of passed attempts for the statistical test.
    pub fn sample(self, sample: PairedCounts) -> PairedCounts {
        let AttemptWeighting::Direction = self else { return sample };
        let by = sample.difference().unwrap_or(0.0);
        PairedCounts {
            passed_before: usize::from(by <= 0.0),
            attempts_before: 1,
            passed_after: usize::from(by >= 0.0),
            attempts_after: 1,
        }
    }
}

/// Formats the labels of the invalid attempts of a run: `: 2 judge errors, 1 test error`.
fn invalid_reasons(run: &ReportRun) -> String {
    let mut labels: BTreeMap<ResultLabel, usize> = BTreeMap::new();
    for (label, number) in run.cases.iter().flat_map(|case| case.invalid_labels.iter()) {
        *labels.entry(label).or_default() += number;
    }
    let parts: Vec<String> = labels.into_iter().map(|(label, number)| label.count(number)).collect();
    if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) }
}

/// Returns true if both fingerprints are known and differ.
fn differ(one: &Option<String>, other: &Option<String>) -> bool {
    matches!((one, other), (Some(one), Some(other)) if one != other)
}

/// Describes other limits of the comparison.
pub(super) fn comparison_notes(
    before: &ReportRun,
    after: &ReportRun,
    both: &[(&ReportCase, &ReportCase)],
) -> Vec<String> {
    let mut all = Vec::new();
    let mut other = |what: &str, one: &Option<String>, other: &Option<String>| {
        if let (Some(one), Some(other)) = (one, other)
            && one != other
        {
            all.push(format!("{what}: {one} and {other}"));
        }
    };
    other("different agents", &before.agent, &after.agent);
    other("different connectors", &before.connector, &after.connector);
    for (run, which) in [(before, "first"), (after, "second")] {
        if run.is_incomplete {
            all.push(format!("the {which} run is incomplete"));
        }
        let invalid: usize = run.cases.iter().map(|case| case.invalid).sum();
        if invalid > 0 {
            let attempts = format_count(invalid, "invalid attempt");
            let reasons = invalid_reasons(run);
            all.push(format!("{attempts} in the {which} run, not counted{reasons}"));
        }
    }
    for (weighing, why, counts) in [
        (
            AttemptWeighting::Direction,
            "results decided how many attempts were made (`reliability`)",
            "the direction of change, over all cases together",
        ),
        (
            AttemptWeighting::FirstAttempt,
            "results decided in one run only, or by different rules, how many attempts were made (`reliability`)",
            "the first attempt",
        ),
    ] {
        let count =
            both.iter().filter(|(one, other)| AttemptWeighting::for_cases(one, other) == weighing).count();
        if count > 0 {
            let cases = format_count(count, "case");
            all.push(format!(
                "in {cases} {why}: only {counts} counts, and no single case is tested; use `--runs N` in both runs to test single cases"
            ));
        }
    }
    let otherwise =
        both.iter().filter(|(one, other)| differ(&one.input_fingerprint, &other.input_fingerprint)).count();
    if otherwise > 0 {
        let cases = format_count(otherwise, "case");
        all.push(format!("in {cases} the user inputs or the agent context differ"));
    }
    type Fingerprint = fn(&ReportCase) -> &Option<String>;
    let judging: [(Fingerprint, &str); 2] = [
        (|case| &case.function_fingerprint, "script functions that judge them"),
        (|case| &case.judge_fingerprint, "settings of their judges"),
    ];
    for (fingerprint, what) in judging {
        let changed = both.iter().filter(|(one, other)| differ(fingerprint(one), fingerprint(other))).count();
        if changed > 0 {
            let cases = format_count(changed, "case");
            all.push(format!("in {cases} the {what} have changed"));
        }
    }
    let unmarked = both
        .iter()
        .filter(|(one, other)| one.check_fingerprint.is_none() || other.check_fingerprint.is_none());
    let unmarked = unmarked.count();
    if unmarked > 0 {
        let cases = format_count(unmarked, "case");
        all.push(format!(
            "it is unknown if the checks of {cases} are the same: a report has no fingerprints"
        ));
    }
    all
}
