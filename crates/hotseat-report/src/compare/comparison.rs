//! Statistical comparison of two runs.
//!
//! A change is reported as significant only if chance alone is an unlikely cause. If nothing has changed, the
//! probability of any false claim is at most 1 - confidence: half of it is assigned to the overall pass rate,
//! and a sixth each to single cases, informational checks and figures. The share of a group that cannot reach
//! significance goes to the overall pass rate.

use std::collections::{BTreeMap, BTreeSet};

use super::cases::{ReportAttempt, ReportCase, ReportRun};
use super::divergence::{Divergence, find_divergence};
use super::figures::{ComparedFigure, UndecidedFigure, compare_figures};
use super::pairing::{
    AttemptWeighting, CasePairs, ExcludedCase, comparison_notes, exclusion_reason, pair_cases,
};
use super::significance::SignificantChange;
use hotseat_statistics::{
    ConfidenceInterval, PairedCounts, PassRateTest, SummaryStatistics, TestPValue, can_detect_change,
    compare_pass_rates, significant_tests, wilson_interval,
};
use hotseat_trace::VerdictStatus;

/// Comparison of two runs.
#[derive(Debug)]
pub struct RunComparison<'a> {
    /// First run.
    pub before: &'a ReportRun,
    /// Second run.
    pub after: &'a ReportRun,
    /// Confidence level.
    pub confidence: f64,
    /// Number of cases that both runs have and that are compared.
    pub shared: usize,
    /// Cases that only the first run has.
    pub removed: Vec<String>,
    /// Cases that only the second run has.
    pub added: Vec<String>,
    /// Number of cases that passed in the first run and no longer pass, apart from newly failing ones: they
    /// are missing, were skipped, or failed and cannot be compared.
    pub lost: usize,
    /// Cases of both runs that cannot be compared.
    pub not_compared: Vec<ExcludedCase<'a>>,
    /// Other limits of the comparison.
    pub notes: Vec<String>,
    /// Pass rate of the attempts in the first run.
    pub passed_before: PassRates,
    /// Pass rate of the attempts in the second run.
    pub passed_after: PassRates,
    /// p-value of the difference between the runs.
    pub p_value: f64,
    /// Significance of the change of the overall pass rate.
    pub significance: SignificantChange,
    /// True if any result could have been significant.
    pub can_reach_significance: bool,
    /// Compared cases.
    pub cases: Vec<ComparedCase<'a>>,
    /// Informational checks.
    pub soft: Vec<ComparedCheck>,
    /// Durations, turns, calls, tokens, cost.
    pub figures: Vec<ComparedFigure>,
}

/// Pass rate of the attempts of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PassRates {
    /// Number of passed attempts.
    pub passed: usize,
    /// Number of attempts.
    pub attempts: usize,
    /// Confidence interval of the pass rate.
    pub interval: ConfidenceInterval,
    /// If cases were repeated: spread of the pass rates of the first, second, ... attempts at all cases.
    pub by_attempt: Option<SummaryStatistics>,
}

/// Change of the result of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassChange {
    /// Passed before and fails now.
    NewlyFails,
    /// Failed before and passes now.
    NewlyPasses,
    /// Same status, but fewer attempts passed.
    PassesLess,
    /// Same status, but more attempts passed.
    PassesMore,
    /// Same pass rate as before.
    Same,
}

/// Case that both runs have.
#[derive(Debug)]
pub struct ComparedCase<'a> {
    /// Case in the first run.
    pub before: &'a ReportCase,
    /// Case in the second run.
    pub after: &'a ReportCase,
    /// Change of the result.
    pub change: PassChange,
    /// p-value of the change.
    pub p_value: f64,
    /// Significance of the change of the pass rate.
    pub significance: SignificantChange,
    /// Two attempts whose conversations are compared.
    pub attempts: Option<(&'a ReportAttempt, &'a ReportAttempt)>,
    /// First difference between the two conversations.
    pub divergence: Option<Divergence>,
}

/// Informational check over all cases that have it in both runs.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedCheck {
    /// Text of the check.
    pub text: String,
    /// In the first run: number of attempts in which the check passed every time, and number of attempts that
    /// decided it.
    pub before: (usize, usize),
    /// Corresponding numbers of the second run.
    pub after: (usize, usize),
    /// p-value of the change.
    pub p_value: f64,
    /// Significance of the change.
    pub significance: SignificantChange,
}

impl RunComparison<'_> {
    /// Returns true if a pass rate is significantly lower than before.
    pub fn is_worse(&self) -> bool {
        self.significance == SignificantChange::Less
            || self.cases.iter().any(|case| case.significance == SignificantChange::Less)
    }

    /// Returns the number of cases that passed before and fail now.
    pub fn newly_failing(&self) -> usize {
        self.cases.iter().filter(|case| case.change == PassChange::NewlyFails).count()
    }
}

/// Confidence level of a comparison that sets none.
pub const DEFAULT_CONFIDENCE: f64 = 0.95;

/// Options of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ComparisonRules {
    /// Confidence level: the probability that any claim is wrong is at most 1 minus this.
    pub confidence: f64,
    /// Compares cases although their user inputs differ, as they do with simulated users.
    pub allow_other_inputs: bool,
}

/// Compares two runs.
pub fn compare<'a>(before: &'a ReportRun, after: &'a ReportRun, rules: ComparisonRules) -> RunComparison<'a> {
    let ComparisonRules { confidence, allow_other_inputs: other_inputs } = rules;
    let CasePairs { pairs, removed, added } = pair_cases(before, after);
    let mut not_compared = Vec::new();
    let mut both = Vec::new();
    for (one, other) in pairs {
        match exclusion_reason(one, other, other_inputs) {
            Some(why) => not_compared.push(ExcludedCase { before: one, after: other, reason: why }),
            None => both.push((one, other)),
        }
    }
    let passed = |case: &&ReportCase| case.status == VerdictStatus::Passed;
    let differing = not_compared.iter().map(|not| (not.before, not.after));
    let skipped = both.iter().copied().filter(|(_, other)| other.status == VerdictStatus::Skipped);
    let lost = removed.iter().copied().filter(passed).count()
        + differing.chain(skipped).filter(|(one, other)| passed(one) && !passed(other)).count();
    let samples: Vec<PairedCounts> = both.iter().map(|(one, other)| weighted_sample(one, other)).collect();
    let overall = compare_pass_rates(&samples);
    let singly: Vec<PassRateTest> = samples.iter().map(|sample| compare_pass_rates(&[*sample])).collect();
    let soft = compare_soft_checks(&both);
    let figures = compare_figures(&both);

    // Probability of error that remains for the overall rate after the shares of the other groups.
    let alpha = 1.0 - confidence;
    let part = alpha / 6.0;
    let of_cases: Vec<TestPValue> = singly.iter().map(test).collect();
    let of_soft: Vec<TestPValue> = soft.iter().map(|(_, found)| test(found)).collect();
    let of_figures: Vec<TestPValue> = figures.iter().map(|measured| measured.test).collect();
    let families = [&of_cases, &of_soft, &of_figures];
    let able = families.iter().filter(|tests| can_detect_change(tests, part)).count();
    let share = alpha - part * able as f64;

    let cases = significant_tests(&of_cases, part);
    let soft_found = significant_tests(&of_soft, part);
    let figures_found = significant_tests(&of_figures, part);
    let found = significant_tests(&[test(&overall)], share);
    RunComparison {
        before,
        after,
        confidence,
        shared: both.len(),
        removed: removed.iter().map(|case| case.label().to_string()).collect(),
        added,
        lost,
        not_compared,
        notes: comparison_notes(before, after, &both),
        passed_before: pass_rates(both.iter().map(|(one, _)| *one), confidence),
        passed_after: pass_rates(both.iter().map(|(_, other)| *other), confidence),
        p_value: overall.p,
        significance: significance_of(&overall, found[0]),
        can_reach_significance: can_detect_change(&[test(&overall)], share)
            || can_detect_change(&of_cases, part),
        cases: both
            .iter()
            .zip(singly.iter().zip(cases))
            .map(|((one, other), (single, found))| compare_case(one, other, single, found))
            .collect(),
        soft: soft
            .into_iter()
            .zip(soft_found)
            .map(|((check, single), found)| ComparedCheck {
                p_value: single.p,
                significance: significance_of(&single, found),
                ..check
            })
            .collect(),
        figures: figures
            .into_iter()
            .zip(figures_found)
            .map(|(one, found)| UndecidedFigure::decide(one, found))
            .collect(),
    }
}

fn all_attempts_sample(before: &ReportCase, after: &ReportCase) -> PairedCounts {
    PairedCounts {
        passed_before: before.passed_attempts(),
        attempts_before: before.attempts.len(),
        passed_after: after.passed_attempts(),
        attempts_after: after.attempts.len(),
    }
}

/// Counts the attempts at a case that the statistical test uses.
fn weighted_sample(before: &ReportCase, after: &ReportCase) -> PairedCounts {
    let weighing = AttemptWeighting::for_cases(before, after);
    let count = |case| {
        let attempts = weighing.attempts(case);
        (attempts.iter().filter(|attempt| attempt.passed).count(), attempts.len())
    };
    let ((passed_before, tries_before), (passed_after, tries_after)) = (count(before), count(after));
    weighing.sample(PairedCounts {
        passed_before,
        attempts_before: tries_before,
        passed_after,
        attempts_after: tries_after,
    })
}

fn test(found: &PassRateTest) -> TestPValue {
    TestPValue { p: found.p, min_p: found.min_p }
}

fn significance_of(compared: &PassRateTest, found: bool) -> SignificantChange {
    match (found, compared.worse < compared.better) {
        (false, _) => SignificantChange::NotSignificant,
        (true, true) => SignificantChange::Less,
        (true, false) => SignificantChange::More,
    }
}

fn pass_rates<'a>(cases: impl Iterator<Item = &'a ReportCase> + Clone, confidence: f64) -> PassRates {
    let passed = cases.clone().map(ReportCase::passed_attempts).sum();
    let tries = cases.clone().map(|case| case.attempts.len()).sum();
    // A run in which not all cases had an attempt says something about the other cases only.
    let whole_runs = cases.clone().map(|case| case.attempts.len()).min().unwrap_or(0);
    let rate = |at: usize| {
        let passed = cases.clone().filter(|case| case.attempts[at].passed).count();
        passed as f64 / cases.clone().count() as f64
    };
    let by_attempt = (whole_runs > 1).then(|| SummaryStatistics::from_values((0..whole_runs).map(rate)));
    PassRates { passed, attempts: tries, interval: wilson_interval(passed, tries, confidence), by_attempt }
}

/// Collects the informational checks by their text. Their significance is not decided yet.
fn compare_soft_checks(both: &[(&ReportCase, &ReportCase)]) -> Vec<(ComparedCheck, PassRateTest)> {
    // For each check: counts of all attempts, and counts for the statistical test.
    let mut all: BTreeMap<&str, Vec<(PairedCounts, PairedCounts)>> = BTreeMap::new();
    let of = |attempts: &[ReportAttempt], words: &str| {
        // Checks within one conversation are not independent, so an attempt counts once.
        let decided = attempts.iter().filter_map(|attempt| attempt.soft.get(words));
        decided.fold((0, 0), |(tries, all), (decided, hold)| (tries + 1, all + usize::from(decided == hold)))
    };
    for (one, other) in both {
        let words: BTreeSet<&String> = one.attempts.iter().flat_map(|attempt| attempt.soft.keys()).collect();
        for words in words {
            let both = |before: &[ReportAttempt], after: &[ReportAttempt]| {
                let ((tries_before, passed_before), (tries_after, passed_after)) =
                    (of(before, words), of(after, words));
                PairedCounts {
                    passed_before,
                    attempts_before: tries_before,
                    passed_after,
                    attempts_after: tries_after,
                }
            };
            let found = both(&one.attempts, &other.attempts);
            if found.attempts_after > 0 {
                let weighing = AttemptWeighting::for_cases(one, other);
                let tested = both(weighing.attempts(one), weighing.attempts(other));
                all.entry(words).or_default().push((found, weighing.sample(tested)));
            }
        }
    }
    let check = |(words, samples): (&str, Vec<(PairedCounts, PairedCounts)>)| {
        let (samples, tested): (Vec<PairedCounts>, Vec<PairedCounts>) = samples.into_iter().unzip();
        let sum = |of: fn(&PairedCounts) -> usize| samples.iter().map(of).sum::<usize>();
        let check = ComparedCheck {
            text: words.to_string(),
            before: (sum(|one| one.passed_before), sum(|one| one.attempts_before)),
            after: (sum(|one| one.passed_after), sum(|one| one.attempts_after)),
            p_value: 1.0,
            significance: SignificantChange::NotSignificant,
        };
        (check, compare_pass_rates(&tested))
    };
    all.into_iter().map(check).collect()
}

fn compare_case<'a>(
    before: &'a ReportCase,
    after: &'a ReportCase,
    single: &PassRateTest,
    found: bool,
) -> ComparedCase<'a> {
    let by = all_attempts_sample(before, after).difference().unwrap_or(0.0);
    let change = match (before.status, after.status) {
        (VerdictStatus::Passed, VerdictStatus::Failed) => PassChange::NewlyFails,
        (VerdictStatus::Failed, VerdictStatus::Passed) => PassChange::NewlyPasses,
        _ if by < 0.0 => PassChange::PassesLess,
        _ if by > 0.0 => PassChange::PassesMore,
        _ => PassChange::Same,
    };
    // For a changed case, compare an attempt that passed with one that failed.
    let first = |case: &'a ReportCase, passed: Option<bool>| {
        let fits = |attempt: &&ReportAttempt| passed.is_none_or(|passed| attempt.passed == passed);
        case.attempts.iter().find(fits).or(case.attempts.first())
    };
    let (one, other) = match change {
        PassChange::NewlyFails | PassChange::PassesLess => (Some(true), Some(false)),
        PassChange::NewlyPasses | PassChange::PassesMore => (Some(false), Some(true)),
        PassChange::Same => (None, None),
    };
    let told = first(before, one).zip(first(after, other));
    let parting = told.and_then(|(one, other)| find_divergence(one, other));
    ComparedCase {
        before,
        after,
        change,
        p_value: single.p,
        significance: significance_of(single, found),
        attempts: told,
        divergence: parting,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::cases::{AttemptFigures, StoppingRule};
    use super::*;
    use hotseat_statistics::SequentialTest;
    use hotseat_testkit::SplitMix64;

    const RULES: ComparisonRules = ComparisonRules { confidence: 0.95, allow_other_inputs: false };

    /// Builds a run from the number of passed attempts and of all attempts of each case.
    fn run(cases: &[(&str, usize, usize)]) -> ReportRun {
        let case = |&(id, passed, tries): &(&str, usize, usize)| ReportCase {
            id: id.into(),
            status: if passed == tries { VerdictStatus::Passed } else { VerdictStatus::Failed },
            check_fingerprint: Some("same".into()),
            input_fingerprint: Some("same".into()),
            attempts: (0..tries)
                .map(|at| ReportAttempt { number: at + 1, passed: at < passed, ..ReportAttempt::default() })
                .collect(),
            ..ReportCase::default()
        };
        ReportRun { cases: cases.iter().map(case).collect(), ..ReportRun::default() }
    }

    #[test]
    fn one_failed_attempt_is_not_significant() {
        let all: Vec<(String, usize)> = (0..20).map(|n| (format!("c{n}"), 1)).collect();
        let of = |failing: usize| {
            run(&all
                .iter()
                .enumerate()
                .map(|(n, (id, _))| (&**id, usize::from(n >= failing), 1))
                .collect::<Vec<_>>())
        };
        let (before, one, many) = (of(0), of(1), of(10));
        let found = compare(&before, &one, RULES);
        assert_eq!(
            (found.significance, found.is_worse(), found.newly_failing(), found.can_reach_significance),
            (SignificantChange::NotSignificant, false, 1, false)
        );
        let found = compare(&before, &many, RULES);
        assert_eq!(
            (found.significance, found.is_worse(), found.newly_failing()),
            (SignificantChange::Less, true, 10)
        );
        let found = compare(&many, &before, RULES);
        assert_eq!((found.significance, found.is_worse()), (SignificantChange::More, false));
        assert_eq!(compare(&before, &before, RULES).p_value, 1.0);
    }

    #[test]
    fn detects_one_broken_case_among_many() {
        let before: Vec<(String, usize)> = (0..100).map(|n| (format!("c{n}"), 10)).collect();
        let of = |broken: usize| {
            let passed = |n: usize| if n < broken { 0 } else { 10 };
            run(&before.iter().enumerate().map(|(n, (id, _))| (&**id, passed(n), 10)).collect::<Vec<_>>())
        };
        let (whole, broken) = (of(0), of(1));
        let found = compare(&whole, &broken, RULES);
        let worse: Vec<&str> = found
            .cases
            .iter()
            .filter(|case| case.significance == SignificantChange::Less)
            .map(|case| &*case.before.id)
            .collect();
        assert_eq!((worse, found.is_worse()), (vec!["c0"], true));
    }

    /// Simulates runs of the same agent, in which each case is repeated until its reliability is decided.
    struct SameAgent {
        rule: StoppingRule,
        /// Decisions by number of passed and failed attempts, cached because simulations repeat them.
        known: HashMap<(usize, usize), SequentialTest>,
        dice: SplitMix64,
    }

    impl SameAgent {
        fn attempts(&mut self, rate: f64) -> Vec<ReportAttempt> {
            let (mut passed, mut failed) = (0, 0);
            let mut attempts = Vec::new();
            while attempts.len() < self.rule.max_runs {
                let test = self.known[&(passed, failed)].clone();
                if test.decision().is_some() {
                    break;
                }
                let passes = self.dice.happens(rate);
                if passes {
                    passed += 1;
                } else {
                    failed += 1;
                }
                self.known.entry((passed, failed)).or_insert_with(|| {
                    let mut test = test;
                    test.record(passes);
                    test
                });
                attempts.push(attempt(passes));
            }
            attempts
        }

        fn run(&mut self, rates: &[f64], stopping: Option<StoppingRule>) -> ReportRun {
            let case = |(number, rate): (usize, &f64)| ReportCase {
                id: format!("c{number}"),
                check_fingerprint: Some("same".into()),
                input_fingerprint: Some("same".into()),
                attempts: match stopping {
                    Some(_) => self.attempts(*rate),
                    None => (0..5).map(|_| attempt(self.dice.happens(*rate))).collect(),
                },
                stopping,
                ..ReportCase::default()
            };
            ReportRun { cases: rates.iter().enumerate().map(case).collect(), ..ReportRun::default() }
        }
    }

    /// Attempt in which every value depends on whether it passes.
    fn attempt(passed: bool) -> ReportAttempt {
        let soft = BTreeMap::from([("kind".to_string(), (1, usize::from(passed)))]);
        let figures = AttemptFigures { turns: 1 + usize::from(passed), ..AttemptFigures::default() };
        ReportAttempt { passed, soft, figures, ..ReportAttempt::default() }
    }

    /// 4,000 pairs of runs of the same agent: the limit on false claims also holds if results decide the
    /// number of attempts.
    #[test]
    fn false_claims_stay_within_the_confidence_level() {
        let rule = StoppingRule { rate: 0.8, confidence: 0.9, max_runs: 30 };
        let first = SequentialTest::new(rule.rate, rule.confidence);
        let mut agent =
            SameAgent { rule, known: HashMap::from([((0, 0), first)]), dice: SplitMix64::new(23) };
        let mut shares = Vec::new();
        for (name, other, pairs) in [("the same rule", Some(rule), 2_500), ("a fixed number", None, 1_500)] {
            let (mut claims, mut by_counts) = (0_u32, 0_u32);
            for _ in 0..pairs {
                let rates: Vec<f64> = (0..20).map(|_| 0.55 + 0.45 * agent.dice.uniform()).collect();
                let (before, after) = (agent.run(&rates, Some(rule)), agent.run(&rates, other));
                let found = compare(&before, &after, RULES);
                assert_eq!(found.notes.len(), 1, "{:?}", found.notes);
                assert!(
                    found.cases.iter().all(|case| case.significance == SignificantChange::NotSignificant)
                );
                let claimed = found.significance != SignificantChange::NotSignificant
                    || found.soft.iter().any(|check| check.significance != SignificantChange::NotSignificant)
                    || found
                        .figures
                        .iter()
                        .any(|figure| figure.significance != SignificantChange::NotSignificant);
                claims += u32::from(claimed);
                let pairs = before.cases.iter().zip(&after.cases);
                let counts: Vec<PairedCounts> =
                    pairs.map(|(one, other)| all_attempts_sample(one, other)).collect();
                by_counts += u32::from(compare_pass_rates(&counts).p <= 0.05);
            }
            shares.push((
                name,
                f64::from(claims) / f64::from(pairs),
                f64::from(by_counts) / f64::from(pairs),
            ));
        }
        assert!(shares.iter().all(|(_, claims, _)| *claims <= 0.05), "{shares:?}");
        // A test of plain counts would exceed the limit, so these runs are a meaningful sample.
        assert!(shares.iter().all(|(.., by_counts)| *by_counts > 0.05), "{shares:?}");
    }

    #[test]
    fn detects_a_worse_agent_with_adaptive_attempts() {
        let rule = StoppingRule { rate: 0.8, confidence: 0.9, max_runs: 30 };
        let first = SequentialTest::new(rule.rate, rule.confidence);
        let mut agent = SameAgent { rule, known: HashMap::from([((0, 0), first)]), dice: SplitMix64::new(5) };
        let (before, after) = (agent.run(&[0.95; 20], Some(rule)), agent.run(&[0.6; 20], Some(rule)));
        let found = compare(&before, &after, RULES);
        assert_eq!((found.significance, found.is_worse()), (SignificantChange::Less, true));
        assert_eq!(
            found.passed_before.attempts,
            before.cases.iter().map(|case| case.attempts.len()).sum::<usize>()
        );
    }

    #[test]
    fn names_cases_that_cannot_be_compared() {
        let before = run(&[("a", 1, 1), ("b", 1, 1), ("c", 1, 1), ("gone", 1, 1), ("e", 1, 1)]);
        let mut after = run(&[("a", 1, 1), ("b", 0, 1), ("c", 0, 1), ("e", 0, 0), ("new", 1, 1)]);
        after.cases[1].check_fingerprint = Some("other".into());
        after.cases[2].judges.insert("mild".into());
        after.agent = Some("b".into());
        let mut before_judged = before;
        before_judged.cases[2].judges.insert("stern".into());
        before_judged.agent = Some("a".into());
        let found = compare(&before_judged, &after, RULES);
        let why: Vec<(&str, &str)> =
            found.not_compared.iter().map(|not| (&*not.after.id, not.reason)).collect();
        assert_eq!(
            why,
            [
                ("b", "different checks"),
                ("c", "different judges"),
                ("e", "no valid attempt in the second run")
            ]
        );
        assert_eq!((found.shared, found.removed, found.added), (1, vec!["gone".into()], vec!["new".into()]));
        assert_eq!(found.notes, ["different agents: a and b"]);
    }

    #[test]
    fn pairs_cases_by_id_after_a_move() {
        let (mut before, mut after) =
            (run(&[("a", 1, 1), ("a", 1, 1), ("b", 1, 1)]), run(&[("a", 1, 1), ("b", 1, 1)]));
        before.cases[0].file = "x".into();
        before.cases[1].file = "y".into();
        after.cases[0].file = "y".into();
        after.cases[1].file = "moved".into();
        let found = compare(&before, &after, RULES);
        assert_eq!((found.shared, found.removed.len(), found.added.len()), (2, 1, 0));
    }
}
