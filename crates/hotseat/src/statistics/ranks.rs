//! Whether a number such as a duration has grown, case by case: Wilcoxon's signed ranks.

use super::normal::above;

/// What a comparison of numbers came to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    /// How likely something as extreme is on either side, where nothing has changed.
    pub p: f64,
    /// The least that `p` could have been with so many differences.
    pub least_p: f64,
    /// Whether what grew outweighs what shrank.
    pub grown: bool,
}

/// Up to so many differences are counted out; of more the sum of ranks is as good as normal.
const COUNTED: usize = 120;

/// Compares cases by the differences between their numbers in two runs. Those that do not differ say nothing. Single
/// differences may be as large as they like: only their order matters.
pub fn shift(differences: &[f64]) -> Shift {
    let mut all: Vec<f64> = differences.iter().copied().filter(|difference| *difference != 0.0).collect();
    all.sort_unstable_by(|a, b| a.abs().total_cmp(&b.abs()));
    let ranks = doubled_ranks(&all);
    let total: usize = ranks.iter().sum();
    let grown: usize = all.iter().zip(&ranks).filter(|(one, _)| **one > 0.0).map(|(_, rank)| rank).sum();
    let (most, least) = (grown.max(total - grown), all.len());
    let tail = if least <= COUNTED {
        chances(&ranks)[most..].iter().sum()
    } else {
        let variance: f64 = ranks.iter().map(|rank| (*rank as f64 / 2.0).powi(2)).sum();
        above((most as f64 - total as f64 / 2.0 - 1.0) / variance.sqrt())
    };
    Shift {
        p: (2.0 * tail).min(1.0),
        least_p: (2.0 * 0.5_f64.powi(least.min(1_000) as i32)).min(1.0),
        grown: 2 * grown > total,
    }
}

/// Twice the rank of each number by its size: those of the same size share the mean of their ranks.
fn doubled_ranks(sorted: &[f64]) -> Vec<usize> {
    let mut ranks = Vec::with_capacity(sorted.len());
    for group in sorted.chunk_by(|a, b| a.abs() == b.abs()) {
        let first = ranks.len() + 1;
        ranks.extend(std::iter::repeat_n(2 * first + group.len() - 1, group.len()));
    }
    ranks
}

/// How likely each sum of ranks is where each of them counts or not, by chance.
fn chances(ranks: &[usize]) -> Vec<f64> {
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
    use crate::statistics::dice::Dice;

    #[test]
    fn sums_of_ranks_are_those_of_the_books() {
        // Of 8 differences a sum of 3 or less on one side: 5 of 256 ways.
        let all = [1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0, -8.0];
        let found = shift(&all);
        assert!((found.p - 2.0 * 2.0 / 256.0).abs() < 1e-12 && !found.grown, "{found:?}");
        assert!((shift(&[1.0; 5]).p - 2.0 / 32.0).abs() < 1e-12, "ties share their ranks");
        assert_eq!((shift(&[]).p, shift(&[0.0; 9]).p, shift(&[3.0]).least_p), (1.0, 1.0, 1.0));
    }

    #[test]
    fn alarms_are_as_rare_as_they_are_said_to_be() {
        let mut dice = Dice::new(3);
        for count in [12, 60, 200] {
            // Times as they are: most are short, some very long.
            let mut time = || 1.0 / (1.0 - dice.part());
            let times = 600;
            let alarms = (0..times).filter(|_| {
                let all: Vec<f64> = (0..count).map(|_| time() - time()).collect();
                shift(&all).p <= 0.05
            });
            let share = alarms.count() as f64 / f64::from(times);
            assert!((0.02..0.075).contains(&share), "{count}: {share}");
        }
    }

    proptest! {
        #[test]
        fn counting_and_the_normal_distribution_agree(all in prop::collection::vec(-9i32..9, COUNTED..=COUNTED)) {
            let all: Vec<f64> = all.into_iter().map(|n| f64::from(n) + 0.5).collect();
            let counted = shift(&all);
            // One more difference, of no weight, and it is no longer counted out.
            let many = shift(&[all.clone(), vec![0.01]].concat());
            prop_assert!((counted.p - many.p).abs() < 0.02, "{counted:?} {many:?}");
        }

        #[test]
        fn it_does_not_matter_which_run_is_first(all in prop::collection::vec(-50i32..50, 0..30)) {
            let all: Vec<f64> = all.into_iter().map(f64::from).collect();
            let turned: Vec<f64> = all.iter().map(|n| -n).collect();
            let (one, other) = (shift(&all), shift(&turned));
            prop_assert!((one.p - other.p).abs() < 1e-12 && one.least_p <= one.p + 1e-12);
            prop_assert!(!(one.grown && other.grown));
        }
    }
}
