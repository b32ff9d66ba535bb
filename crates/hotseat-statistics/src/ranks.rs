//! Wilcoxon signed-rank test: detects whether a number such as a duration has increased, paired by case.

use super::normal::upper_tail;

/// Result of the test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SignedRankTest {
    /// Two-sided p-value.
    pub p: f64,
    /// Smallest p-value that this number of differences can yield.
    pub min_p: f64,
    /// True if increases outweigh decreases.
    pub increased: bool,
}

/// Largest number of differences for the exact test. Beyond it, the normal approximation is accurate.
const MAX_EXACT_DIFFERENCES: usize = 120;

/// Tests the differences between two runs, one for each case. Zero differences are ignored. Only ranks
/// matter, so the test is robust against outliers.
pub fn signed_rank_test(differences: &[f64]) -> SignedRankTest {
    let mut all: Vec<f64> = differences.iter().copied().filter(|difference| *difference != 0.0).collect();
    all.sort_unstable_by(|a, b| a.abs().total_cmp(&b.abs()));
    let ranks = doubled_ranks(&all);
    let total: usize = ranks.iter().sum();
    let grown: usize = all.iter().zip(&ranks).filter(|(one, _)| **one > 0.0).map(|(_, rank)| rank).sum();
    let (most, least) = (grown.max(total - grown), all.len());
    let tail =
        if least <= MAX_EXACT_DIFFERENCES { exact_tail(&ranks, most) } else { normal_tail(&ranks, most) };
    SignedRankTest {
        p: (2.0 * tail).min(1.0),
        min_p: (2.0 * 0.5_f64.powi(least.min(1_000) as i32)).min(1.0),
        increased: 2 * grown > total,
    }
}

/// Returns the probability that one side has a rank sum of at least `sum`.
fn exact_tail(ranks: &[usize], sum: usize) -> f64 {
    rank_sum_probabilities(ranks)[sum..].iter().sum()
}

/// Normal approximation of [`exact_tail`], with continuity correction.
fn normal_tail(ranks: &[usize], sum: usize) -> f64 {
    let total: usize = ranks.iter().sum();
    let variance: f64 = ranks.iter().map(|rank| (*rank as f64 / 2.0).powi(2)).sum();
    upper_tail((sum as f64 - total as f64 / 2.0 - 1.0) / variance.sqrt())
}

/// Returns twice the rank of each number by magnitude; ties share the mean of their ranks. Doubling keeps
/// them integers.
fn doubled_ranks(sorted: &[f64]) -> Vec<usize> {
    let mut ranks = Vec::with_capacity(sorted.len());
    for group in sorted.chunk_by(|a, b| a.abs() == b.abs()) {
        let first = ranks.len() + 1;
        ranks.extend(std::iter::repeat_n(2 * first + group.len() - 1, group.len()));
    }
    ranks
}

/// Returns the probability of each sum of ranks, if each rank counts with probability 1/2.
fn rank_sum_probabilities(ranks: &[usize]) -> Vec<f64> {
    let mut all = vec![1.0];
    for rank in ranks {
        let mut next = vec![0.0; all.len() + rank];
        for (sum, chance) in all.iter().enumerate() {
            next[sum] += chance / 2.0;
            next[sum + rank] += chance / 2.0;
        }
        all = next;
    }
    all
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use hotseat_testkit::SplitMix64;

    #[test]
    fn matches_textbook_values() {
        // A rank sum of at most 1 on one side of 8 differences: 2 of 256 outcomes.
        let all = [1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0, -8.0];
        let found = signed_rank_test(&all);
        assert!((found.p - 2.0 * 2.0 / 256.0).abs() < 1e-12 && !found.increased, "{found:?}");
        assert!((signed_rank_test(&[1.0; 5]).p - 2.0 / 32.0).abs() < 1e-12, "ties share their ranks");
        assert_eq!(
            (signed_rank_test(&[]).p, signed_rank_test(&[0.0; 9]).p, signed_rank_test(&[3.0]).min_p),
            (1.0, 1.0, 1.0)
        );
    }

    #[test]
    fn false_alarm_rate_stays_below_alpha() {
        let mut dice = SplitMix64::new(3);
        for count in [12, 60, 200] {
            // Durations with a heavy tail.
            let mut time = || 1.0 / (1.0 - dice.uniform());
            let times = 600;
            let alarms = (0..times).filter(|_| {
                let all: Vec<f64> = (0..count).map(|_| time() - time()).collect();
                signed_rank_test(&all).p <= 0.05
            });
            let share = alarms.count() as f64 / f64::from(times);
            assert!((0.02..0.075).contains(&share), "{count}: {share}");
        }
    }

    proptest! {
        #[test]
        fn normal_approximation_agrees_with_exact(
            sizes in prop::collection::vec(1u32..10_000, MAX_EXACT_DIFFERENCES),
            share in 0.5f64..1.0,
        ) {
            let mut sizes: Vec<f64> = sizes.into_iter().map(f64::from).collect();
            sizes.sort_unstable_by(f64::total_cmp);
            let ranks = doubled_ranks(&sizes);
            let sum = (ranks.iter().sum::<usize>() as f64 * share) as usize;
            let (exact, normal) = (exact_tail(&ranks, sum), normal_tail(&ranks, sum));
            prop_assert!((exact - normal).abs() < 0.01, "{exact} {normal}");
        }

        #[test]
        fn swapping_runs_keeps_p(all in prop::collection::vec(-50i32..50, 0..30)) {
            let all: Vec<f64> = all.into_iter().map(f64::from).collect();
            let turned: Vec<f64> = all.iter().map(|n| -n).collect();
            let (one, other) = (signed_rank_test(&all), signed_rank_test(&turned));
            prop_assert!((one.p - other.p).abs() < 1e-12 && one.min_p <= one.p + 1e-12);
            prop_assert!(!(one.increased && other.increased));
        }
    }
}
