//! Exact test of whether one of two runs passes more often, paired by case.
//!
//! Under the null hypothesis, the passes of a case are distributed over the attempts of both runs at random,
//! so the number of passes in the second run is hypergeometric. The test convolves these distributions over
//! all cases. With one attempt per case and run it is McNemar's exact test; with one case it is Fisher's
//! exact test. Differences in difficulty do not matter, since each case is only compared with itself.

use super::gamma::ln_choose;
use super::normal::upper_tail;

/// Attempts at one case in two runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairedCounts {
    /// Passed attempts in the first run.
    pub passed_before: usize,
    /// Attempts in the first run.
    pub attempts_before: usize,
    /// Passed attempts in the second run.
    pub passed_after: usize,
    /// Attempts in the second run.
    pub attempts_after: usize,
}

/// Result of the test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PassRateTest {
    /// Probability of this many passes or fewer in the second run, under the null hypothesis.
    pub worse: f64,
    /// Probability of this many passes or more in the second run, under the null hypothesis.
    pub better: f64,
    /// Two-sided p-value.
    pub p: f64,
    /// Smallest p-value that this number of attempts and passes can yield.
    pub min_p: f64,
}

/// Largest number of possible counts for the exact test. Beyond it, the normal approximation is as exact as
/// floats.
const MAX_EXACT_COUNT: usize = 4_000;

impl PairedCounts {
    /// Returns the smallest and largest possible number of passes in the second run.
    fn range(&self) -> (usize, usize) {
        let passed = self.passed_before + self.passed_after;
        (passed.saturating_sub(self.attempts_before), passed.min(self.attempts_after))
    }

    /// Returns the probability of each number of passes in the second run, from the smallest.
    fn probabilities(&self) -> Vec<f64> {
        let (tries, passed) =
            (self.attempts_before + self.attempts_after, self.passed_before + self.passed_after);
        let all = ln_choose(tries, self.attempts_after);
        let (fewest, most) = self.range();
        let one = |k| (ln_choose(passed, k) + ln_choose(tries - passed, self.attempts_after - k) - all).exp();
        (fewest..=most).map(one).collect()
    }

    /// Returns the mean and variance of the number of passes in the second run.
    fn moments(&self) -> (f64, f64) {
        let tries = (self.attempts_before + self.attempts_after) as f64;
        if tries < 2.0 {
            return (self.passed_after as f64, 0.0);
        }
        let part = (self.passed_before + self.passed_after) as f64 / tries;
        let (before, after) = (self.attempts_before as f64, self.attempts_after as f64);
        (after * part, after * part * (1.0 - part) * before / (tries - 1.0))
    }

    /// Returns the difference of the pass rates, from -1 to 1; none if a run has no attempts.
    pub fn difference(&self) -> Option<f64> {
        let rate = |passed: usize, tries: usize| (tries > 0).then(|| passed as f64 / tries as f64);
        Some(rate(self.passed_after, self.attempts_after)? - rate(self.passed_before, self.attempts_before)?)
    }
}

/// Compares the pass rates of two runs over all common cases.
pub fn compare_pass_rates(samples: &[PairedCounts]) -> PassRateTest {
    let sum = |of: fn(&PairedCounts) -> usize| samples.iter().map(of).sum::<usize>();
    let fewest = sum(|sample| sample.range().0);
    let most = sum(|sample| sample.range().1);
    let found = sum(|sample| sample.passed_after);
    let (worse, better, at_ends) = if most - fewest <= MAX_EXACT_COUNT {
        let chances = convolve_probabilities(samples);
        let upto: f64 = chances[..=found - fewest].iter().sum();
        let from: f64 = chances[found - fewest..].iter().sum();
        (upto, from, chances[0].min(chances[chances.len() - 1]))
    } else {
        let moments = samples.iter().map(PairedCounts::moments);
        let (mean, variance) = moments.fold((0.0, 0.0), |(m, v), (mean, variance)| (m + mean, v + variance));
        let beyond = |count: f64| upper_tail(count / variance.sqrt());
        let upto = beyond(mean - found as f64 - 0.5);
        let from = beyond(found as f64 - mean - 0.5);
        let ends = beyond(mean - fewest as f64 - 0.5).min(beyond(most as f64 - mean - 0.5));
        (upto, from, ends)
    };
    let both_sides = |one: f64| (2.0 * one).min(1.0);
    PassRateTest {
        worse: worse.min(1.0),
        better: better.min(1.0),
        p: both_sides(worse.min(better)),
        min_p: both_sides(at_ends),
    }
}

/// Returns the probability of each sum over all samples, from the smallest.
fn convolve_probabilities(samples: &[PairedCounts]) -> Vec<f64> {
    let mut all = vec![1.0];
    for sample in samples {
        let (fewest, most) = sample.range();
        if fewest == most {
            continue;
        }
        let one = sample.probabilities();
        let mut next = vec![0.0; all.len() + one.len() - 1];
        for (at, chance) in all.iter().enumerate() {
            for (more, part) in one.iter().enumerate() {
                next[at + more] += chance * part;
            }
        }
        all = next;
    }
    all
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::gamma::binomial_cdf;
    use hotseat_testkit::SplitMix64;

    fn sample(
        passed_before: usize,
        tries_before: usize,
        passed_after: usize,
        tries_after: usize,
    ) -> PairedCounts {
        PairedCounts {
            passed_before,
            attempts_before: tries_before,
            passed_after,
            attempts_after: tries_after,
        }
    }

    #[test]
    fn single_attempts_match_mcnemar() {
        // 12 cases newly fail, 3 newly pass, the others are unchanged.
        let all = [
            vec![sample(1, 1, 0, 1); 12],
            vec![sample(0, 1, 1, 1); 3],
            vec![sample(1, 1, 1, 1); 40],
            vec![sample(0, 1, 0, 1); 7],
        ]
        .concat();
        let found = compare_pass_rates(&all);
        assert!((found.worse - binomial_cdf(3, 15, 0.5)).abs() < 1e-12);
        assert!((found.p - 2.0 * binomial_cdf(3, 15, 0.5)).abs() < 1e-12);
        assert!((found.min_p - 2.0 * 0.5_f64.powi(15)).abs() < 1e-15);
    }

    #[test]
    fn single_case_matches_fisher() {
        // The lady tasting tea: 3 of 4 and 1 of 4.
        let found = compare_pass_rates(&[sample(3, 4, 1, 4)]);
        assert!((found.worse - 17.0 / 70.0).abs() < 1e-12, "{found:?}");
        let found = compare_pass_rates(&[sample(10, 10, 0, 10)]);
        assert!((found.p - 2.0 / 184_756.0).abs() < 1e-12);
    }

    #[test]
    fn uninformative_samples_have_p_one() {
        for nothing in [vec![], vec![sample(5, 5, 5, 5)], vec![sample(0, 0, 3, 4)], vec![sample(1, 1, 0, 1)]]
        {
            let found = compare_pass_rates(&nothing);
            assert_eq!((found.p, found.min_p), (1.0, 1.0), "{nothing:?}");
        }
    }

    #[test]
    fn normal_approximation_agrees_with_exact() {
        // The results just below and just above the limit of the exact test agree.
        for (more, few) in [(60, 1_000), (120, 1_900)] {
            let of = |times: usize| {
                let all = [vec![sample(1, 1, 0, 1); few + more], vec![sample(0, 1, 1, 1); few]].concat();
                compare_pass_rates(&all.repeat(times)).worse
            };
            assert!(of(1) > 0.0 && of(4) < of(1));
        }
        let exact =
            compare_pass_rates(&[vec![sample(1, 1, 0, 1); 2_040], vec![sample(0, 1, 1, 1); 1_960]].concat());
        let normal =
            compare_pass_rates(&[vec![sample(1, 1, 0, 1); 2_041], vec![sample(0, 1, 1, 1); 1_961]].concat());
        assert!((exact.p - normal.p).abs() < 1e-3, "{exact:?} {normal:?}");
    }

    #[test]
    fn false_alarm_rate_stays_below_alpha() {
        // Two runs of the same agent over 40 cases with different pass rates.
        let mut dice = SplitMix64::new(7);
        let (times, alpha) = (4_000, 0.05);
        let mut alarms = 0;
        for time in 0..times {
            let tries = 1 + time % 4;
            let all: Vec<PairedCounts> = (0..40)
                .map(|_| {
                    let rate = dice.uniform();
                    sample(dice.count(tries, rate), tries, dice.count(tries, rate), tries)
                })
                .collect();
            alarms += usize::from(compare_pass_rates(&all).p <= alpha);
        }
        let share = f64::from(alarms as u32) / times as f64;
        assert!((0.02..=alpha + 0.005).contains(&share), "{share}");
    }

    #[test]
    fn detects_a_worse_agent() {
        let mut dice = SplitMix64::new(11);
        let found = (0..200).filter(|_| {
            let all: Vec<PairedCounts> =
                (0..50).map(|_| sample(dice.count(4, 0.9), 4, dice.count(4, 0.75), 4)).collect();
            let compared = compare_pass_rates(&all);
            compared.p <= 0.05 && compared.worse < compared.better
        });
        let found = found.count();
        assert!(found > 190, "{found} of 200");
    }

    proptest! {
        #[test]
        fn swapping_the_runs_swaps_the_sides(all in prop::collection::vec((0usize..6, 1usize..6, 0usize..6, 1usize..6), 0..12)) {
            let all: Vec<PairedCounts> =
                all.iter().map(|&(a, n, b, m)| sample(a.min(n), n, b.min(m), m)).collect();
            let swapped: Vec<PairedCounts> = all
                .iter()
                .map(|s| sample(s.passed_after, s.attempts_after, s.passed_before, s.attempts_before))
                .collect();
            let (one, other) = (compare_pass_rates(&all), compare_pass_rates(&swapped));
            prop_assert!((one.worse - other.better).abs() < 1e-9 && (one.p - other.p).abs() < 1e-9);
            prop_assert!(one.min_p <= one.p + 1e-12 && (0.0..=1.0).contains(&one.p));
        }

        #[test]
        fn probabilities_sum_to_one(before in 0usize..40, after in 0usize..40, part in 0.0..=1.0f64) {
            let passed = ((before + after) as f64 * part) as usize;
            let passed_before = passed.min(before);
            let one = sample(passed_before, before, passed - passed_before, after);
            prop_assert!((one.probabilities().iter().sum::<f64>() - 1.0).abs() < 1e-9);
        }
    }
}
