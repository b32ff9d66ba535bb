//! Whether one of two runs passes more often, case by case: an exact test.
//!
//! Where nothing has changed, the passes of a case fall on the attempts of both runs by chance alone. How likely it is that
//! as many of them fall on the second run as did, or fewer, follows from counting; over all cases such counts are added
//! up. With one attempt a case in each run this is McNemar's exact test; of a single case it is Fisher's. It does not
//! matter how hard cases are, for each is only compared with itself.

use super::gamma::ln_choose;
use super::normal::above;

/// What the attempts at one case came to in two runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// How many passed in the first run.
    pub passed_before: usize,
    /// Of so many.
    pub tries_before: usize,
    /// How many passed in the second run.
    pub passed_after: usize,
    /// Of so many.
    pub tries_after: usize,
}

/// What a comparison came to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compared {
    /// How likely so few passes, or fewer, are in the second run where nothing has changed.
    pub worse: f64,
    /// How likely so many passes, or more, are in the second run where nothing has changed.
    pub better: f64,
    /// How likely something as extreme is on either side.
    pub p: f64,
    /// The least that `p` could have been, whatever fell on which run.
    pub least_p: f64,
}

/// Beyond so many possible counts the normal distribution is no less exact than floats.
const COUNTED: usize = 4_000;

impl Sample {
    /// How many passes can have fallen on the second run: the fewest and the most.
    fn range(&self) -> (usize, usize) {
        let passed = self.passed_before + self.passed_after;
        (passed.saturating_sub(self.tries_before), passed.min(self.tries_after))
    }

    /// How likely each number of passes in the second run is, from the fewest on.
    fn chances(&self) -> Vec<f64> {
        let (tries, passed) = (self.tries_before + self.tries_after, self.passed_before + self.passed_after);
        let all = ln_choose(tries, self.tries_after);
        let (fewest, most) = self.range();
        let one = |k| (ln_choose(passed, k) + ln_choose(tries - passed, self.tries_after - k) - all).exp();
        (fewest..=most).map(one).collect()
    }

    /// Mean and variance of the number of passes in the second run.
    fn moments(&self) -> (f64, f64) {
        let tries = (self.tries_before + self.tries_after) as f64;
        if tries < 2.0 {
            return (self.passed_after as f64, 0.0);
        }
        let part = (self.passed_before + self.passed_after) as f64 / tries;
        let (before, after) = (self.tries_before as f64, self.tries_after as f64);
        (after * part, after * part * (1.0 - part) * before / (tries - 1.0))
    }

    /// By how much more of the attempts passed in the second run, from -1 to 1; none where one of the runs has none.
    pub fn difference(&self) -> Option<f64> {
        let rate = |passed: usize, tries: usize| (tries > 0).then(|| passed as f64 / tries as f64);
        Some(rate(self.passed_after, self.tries_after)? - rate(self.passed_before, self.tries_before)?)
    }
}

/// Compares two runs over all cases that both have.
pub fn compared(samples: &[Sample]) -> Compared {
    let sum = |of: fn(&Sample) -> usize| samples.iter().map(of).sum::<usize>();
    let fewest = sum(|sample| sample.range().0);
    let most = sum(|sample| sample.range().1);
    let found = sum(|sample| sample.passed_after);
    let (worse, better, at_ends) = if most - fewest <= COUNTED {
        let chances = added_up(samples);
        let upto: f64 = chances[..=found - fewest].iter().sum();
        let from: f64 = chances[found - fewest..].iter().sum();
        (upto, from, chances[0].min(chances[chances.len() - 1]))
    } else {
        let moments = samples.iter().map(Sample::moments);
        let (mean, variance) = moments.fold((0.0, 0.0), |(m, v), (mean, variance)| (m + mean, v + variance));
        let beyond = |count: f64| above(count / variance.sqrt());
        let upto = beyond(mean - found as f64 - 0.5);
        let from = beyond(found as f64 - mean - 0.5);
        let ends = beyond(mean - fewest as f64 - 0.5).min(beyond(most as f64 - mean - 0.5));
        (upto, from, ends)
    };
    let both_sides = |one: f64| (2.0 * one).min(1.0);
    Compared {
        worse: worse.min(1.0),
        better: better.min(1.0),
        p: both_sides(worse.min(better)),
        least_p: both_sides(at_ends),
    }
}

/// How likely each sum over all samples is, from the smallest on.
fn added_up(samples: &[Sample]) -> Vec<f64> {
    let mut all = vec![1.0];
    for sample in samples {
        let (fewest, most) = sample.range();
        if fewest == most {
            continue;
        }
        let one = sample.chances();
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
    use crate::statistics::dice::Dice;
    use crate::statistics::gamma::at_most;

    fn sample(passed_before: usize, tries_before: usize, passed_after: usize, tries_after: usize) -> Sample {
        Sample { passed_before, tries_before, passed_after, tries_after }
    }

    #[test]
    fn with_one_attempt_a_case_it_is_the_test_of_mcnemar() {
        // 12 cases newly fail, 3 newly pass, the others came to the same twice.
        let all = [
            vec![sample(1, 1, 0, 1); 12],
            vec![sample(0, 1, 1, 1); 3],
            vec![sample(1, 1, 1, 1); 40],
            vec![sample(0, 1, 0, 1); 7],
        ]
        .concat();
        let found = compared(&all);
        assert!((found.worse - at_most(3, 15, 0.5)).abs() < 1e-12);
        assert!((found.p - 2.0 * at_most(3, 15, 0.5)).abs() < 1e-12);
        assert!((found.least_p - 2.0 * 0.5_f64.powi(15)).abs() < 1e-15);
    }

    #[test]
    fn of_one_case_it_is_the_test_of_fisher() {
        // The lady tasting tea: 3 of 4, and 1 of 4.
        let found = compared(&[sample(3, 4, 1, 4)]);
        assert!((found.worse - 17.0 / 70.0).abs() < 1e-12, "{found:?}");
        let found = compared(&[sample(10, 10, 0, 10)]);
        assert!((found.p - 2.0 / 184_756.0).abs() < 1e-12);
    }

    #[test]
    fn what_cannot_tell_says_so() {
        for nothing in [vec![], vec![sample(5, 5, 5, 5)], vec![sample(0, 0, 3, 4)], vec![sample(1, 1, 0, 1)]]
        {
            let found = compared(&nothing);
            assert_eq!((found.p, found.least_p), (1.0, 1.0), "{nothing:?}");
        }
    }

    #[test]
    fn very_many_cases_are_compared_by_the_normal_distribution_alike() {
        // Just below and just above the limit the same shares have nearly the same answer.
        for (more, few) in [(60, 1_000), (120, 1_900)] {
            let of = |times: usize| {
                let all = [vec![sample(1, 1, 0, 1); few + more], vec![sample(0, 1, 1, 1); few]].concat();
                compared(&all.repeat(times)).worse
            };
            assert!(of(1) > 0.0 && of(4) < of(1));
        }
        let exact = compared(&[vec![sample(1, 1, 0, 1); 2_040], vec![sample(0, 1, 1, 1); 1_960]].concat());
        let normal = compared(&[vec![sample(1, 1, 0, 1); 2_041], vec![sample(0, 1, 1, 1); 1_961]].concat());
        assert!((exact.p - normal.p).abs() < 1e-3, "{exact:?} {normal:?}");
    }

    #[test]
    fn alarms_are_as_rare_as_they_are_said_to_be() {
        // Runs of the same agent, of 40 cases of which each passes at a rate of its own.
        let mut dice = Dice::new(7);
        let (times, alpha) = (4_000, 0.05);
        let mut alarms = 0;
        for time in 0..times {
            let tries = 1 + time % 4;
            let all: Vec<Sample> = (0..40)
                .map(|_| {
                    let rate = dice.part();
                    sample(dice.count(tries, rate), tries, dice.count(tries, rate), tries)
                })
                .collect();
            alarms += usize::from(compared(&all).p <= alpha);
        }
        let share = f64::from(alarms as u32) / times as f64;
        assert!((0.02..=alpha + 0.005).contains(&share), "{share}");
    }

    #[test]
    fn an_agent_that_is_worse_is_found() {
        let mut dice = Dice::new(11);
        let found = (0..200).filter(|_| {
            let all: Vec<Sample> =
                (0..50).map(|_| sample(dice.count(4, 0.9), 4, dice.count(4, 0.75), 4)).collect();
            let compared = compared(&all);
            compared.p <= 0.05 && compared.worse < compared.better
        });
        let found = found.count();
        assert!(found > 190, "{found} of 200");
    }

    proptest! {
        #[test]
        fn swapping_the_runs_swaps_the_sides(all in prop::collection::vec((0usize..6, 1usize..6, 0usize..6, 1usize..6), 0..12)) {
            let all: Vec<Sample> =
                all.iter().map(|&(a, n, b, m)| sample(a.min(n), n, b.min(m), m)).collect();
            let swapped: Vec<Sample> = all
                .iter()
                .map(|s| sample(s.passed_after, s.tries_after, s.passed_before, s.tries_before))
                .collect();
            let (one, other) = (compared(&all), compared(&swapped));
            prop_assert!((one.worse - other.better).abs() < 1e-9 && (one.p - other.p).abs() < 1e-9);
            prop_assert!(one.least_p <= one.p + 1e-12 && (0.0..=1.0).contains(&one.p));
        }

        #[test]
        fn chances_are_a_distribution(before in 0usize..40, after in 0usize..40, part in 0.0..=1.0f64) {
            let passed = ((before + after) as f64 * part) as usize;
            let passed_before = passed.min(before);
            let one = sample(passed_before, before, passed - passed_before, after);
            prop_assert!((one.chances().iter().sum::<f64>() - 1.0).abs() < 1e-9);
        }
    }
}
