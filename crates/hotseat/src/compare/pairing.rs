//! Which cases of two runs belong together, and what cannot be compared.

use std::collections::{BTreeMap, BTreeSet};

use super::cases::{Attempt, Case, Run};
use crate::statistics::Sample;

/// A case that both runs have and that cannot be compared.
#[derive(Debug)]
pub struct NotCompared<'a> {
    /// The case in the first run.
    pub before: &'a Case,
    /// The case in the second run.
    pub case: &'a Case,
    /// Why not.
    pub why: &'static str,
}

/// The cases of two runs.
pub(super) struct Paired<'a> {
    pub pairs: Vec<(&'a Case, &'a Case)>,
    pub removed: Vec<&'a Case>,
    pub added: Vec<String>,
}

/// Cases belong together by suite and id; or by id alone where it says enough, for a suite may have moved.
pub(super) fn paired<'a>(before: &'a Run, after: &'a Run) -> Paired<'a> {
    let mut by_both: BTreeMap<(&str, &str), &Case> = BTreeMap::new();
    let mut by_id: BTreeMap<&str, Vec<&Case>> = BTreeMap::new();
    for case in &before.cases {
        by_both.entry((&case.file, &case.id)).or_insert(case);
        by_id.entry(&case.id).or_default().push(case);
    }
    let mut ids_after: BTreeMap<&str, usize> = BTreeMap::new();
    for case in &after.cases {
        *ids_after.entry(&case.id).or_default() += 1;
    }
    let mut taken: BTreeSet<*const Case> = BTreeSet::new();
    let (mut pairs, mut added) = (Vec::new(), Vec::new());
    for case in &after.cases {
        let alone = || match by_id.get(&*case.id).map(Vec::as_slice) {
            Some([one]) if ids_after[&*case.id] == 1 => Some(*one),
            _ => None,
        };
        match by_both.get(&(&*case.file, &*case.id)).copied().or_else(alone) {
            Some(one) if taken.insert(std::ptr::from_ref(one)) => pairs.push((one, case)),
            _ => added.push(case.shown().to_string()),
        }
    }
    let removed = before.cases.iter().filter(|case| !taken.contains(&std::ptr::from_ref(*case)));
    Paired { removed: removed.collect(), pairs, added }
}

/// Why two cases of the same name cannot be compared.
pub(super) fn why_not(before: &Case, after: &Case, other_inputs: bool) -> Option<&'static str> {
    match () {
        () if differ(&before.checked, &after.checked) => Some("other checks"),
        () if differ(&before.asked, &after.asked) && !other_inputs => {
            Some("the user says, or the agent is told, something else")
        }
        // Checks behind one that fails were never judged, so one run may lack a judge of the other.
        () if !before.judges.is_subset(&after.judges) && !after.judges.is_subset(&before.judges) => {
            Some("another judge")
        }
        () if before.attempts.is_empty() && after.attempts.is_empty() => {
            Some("says nothing about the agent in either run")
        }
        () if before.attempts.is_empty() => Some("says nothing about the agent in the first run"),
        () if after.attempts.is_empty() => Some("says nothing about the agent in the second run"),
        () => None,
    }
}

/// How the attempts at a case in two runs are compared.
///
/// Where results decide how many attempts are made, rates are biased: counts of passes then follow no distribution that
/// a test of counts may assume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weighing {
    /// All attempts count: their number was fixed beforehand in both runs.
    Counts,
    /// Results decided by the same rule in both runs. Where nothing has changed the runs could be exchanged for each
    /// other, so it counts whether the case passes less or more often, and not by how much.
    Direction,
    /// Results decided in one of the runs, or by different rules. Only the first attempt is made whatever comes out.
    FirstAttempt,
}

impl Weighing {
    /// How two cases of the same name are compared.
    pub fn of(before: &Case, after: &Case) -> Weighing {
        match (before.stopping, after.stopping) {
            (None, None) => Weighing::Counts,
            (Some(one), Some(other)) if one == other => Weighing::Direction,
            (Some(_), _) | (None, Some(_)) => Weighing::FirstAttempt,
        }
    }

    /// The attempts that count.
    pub fn attempts(self, case: &Case) -> &[Attempt] {
        match self {
            Weighing::Counts | Weighing::Direction => &case.attempts,
            Weighing::FirstAttempt => &case.attempts[..case.attempts.len().min(1)],
        }
    }

    /// What a test is told of the passes among the attempts that count.
    pub fn sample(self, sample: Sample) -> Sample {
        let Weighing::Direction = self else { return sample };
        let by = sample.difference().unwrap_or(0.0);
        Sample {
            passed_before: usize::from(by <= 0.0),
            tries_before: 1,
            passed_after: usize::from(by >= 0.0),
            tries_after: 1,
        }
    }
}

/// Whether two fingerprints are there and not the same.
fn differ(one: &Option<String>, other: &Option<String>) -> bool {
    matches!((one, other), (Some(one), Some(other)) if one != other)
}

/// What else makes two runs hard to compare.
pub(super) fn notes(before: &Run, after: &Run, both: &[(&Case, &Case)]) -> Vec<String> {
    let mut all = Vec::new();
    let mut other = |what: &str, one: &Option<String>, other: &Option<String>| {
        if let (Some(one), Some(other)) = (one, other)
            && one != other
        {
            all.push(format!("{what}: {one} and {other}"));
        }
    };
    other("other agents", &before.agent, &after.agent);
    other("other connectors", &before.connector, &after.connector);
    for (run, which) in [(before, "first"), (after, "second")] {
        if run.cut_short {
            all.push(format!("the {which} run did not come to its end"));
        }
        let invalid: usize = run.cases.iter().map(|case| case.invalid).sum();
        if invalid > 0 {
            let attempts = if invalid == 1 { "attempt says" } else { "attempts say" };
            all.push(format!(
                "{invalid} {attempts} nothing about the agent in the {which} run, and are left out"
            ));
        }
    }
    for (weighing, why, counts) in [
        (
            Weighing::Direction,
            "results decided how many attempts were made (`reliability`)",
            "whether each passes less or more often, over all cases together",
        ),
        (
            Weighing::FirstAttempt,
            "results decided in one run only, or by different rules, how many attempts were made (`reliability`)",
            "the first attempt",
        ),
    ] {
        let count = both.iter().filter(|(one, other)| Weighing::of(one, other) == weighing).count();
        if count > 0 {
            let cases = if count == 1 { "case" } else { "cases" };
            all.push(format!(
                "in {count} {cases} {why}: only {counts} counts, and nothing is claimed of a single one; `--runs N` in both runs lets it"
            ));
        }
    }
    let otherwise = both.iter().filter(|(one, other)| differ(&one.asked, &other.asked)).count();
    if otherwise > 0 {
        let cases = if otherwise == 1 { "case" } else { "cases" };
        all.push(format!("in {otherwise} {cases} the user says, or the agent is told, something else"));
    }
    let unmarked = both.iter().filter(|(one, other)| one.checked.is_none() || other.checked.is_none());
    let unmarked = unmarked.count();
    if unmarked > 0 {
        let cases = if unmarked == 1 { "case" } else { "cases" };
        all.push(format!(
            "whether {unmarked} {cases} have the same checks is not known: a report does not say"
        ));
    }
    all
}
