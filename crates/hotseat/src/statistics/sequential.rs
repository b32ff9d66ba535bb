//! Whether a rate is reached, decided as soon as attempts allow it.
//!
//! This is Wald's sequential test of a ratio, against not one other rate but all of them at once, each with its weight
//! (Robbins' mixture): half of the weight is on an agent that always passes (or never does), the other half is spread
//! evenly. A bet that pays fairly where the rate is just the declared one grows beyond 20 with a chance of one in 20 at
//! most, however long one goes on and whenever one stops (Ville's inequality). So both errors hold for any number of
//! attempts:
//!
//! - a case that passes less often than declared is found to reach the rate at a chance of at most 1 - confidence;
//! - a case that passes as often as declared is found to miss it at a chance of at most 1 - confidence.

use super::gamma::{at_most, ln_choose};

/// What is known of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// It is reached.
    Reached,
    /// It is missed.
    Missed,
}

/// A test that is decided while attempts come in.
#[derive(Debug, Clone, PartialEq)]
pub struct Sequential {
    rate: f64,
    confidence: f64,
    passed: usize,
    failed: usize,
    finding: Option<Finding>,
}

impl Sequential {
    /// A test whether something passes with a `rate` at least, to be wrong with a chance of 1 - `confidence` at most.
    /// Both lie between 0 and 1.
    pub fn new(rate: f64, confidence: f64) -> Sequential {
        Sequential { rate, confidence, passed: 0, failed: 0, finding: None }
    }

    /// Takes note of an attempt; says what is known now. What was found stays, whatever comes behind it.
    pub fn note(&mut self, passed: bool) -> Option<Finding> {
        if self.finding.is_none() {
            if passed {
                self.passed += 1
            } else {
                self.failed += 1
            }
            self.finding = finding(self.rate, self.confidence, self.passed, self.failed);
        }
        self.finding
    }

    /// What is known.
    pub fn finding(&self) -> Option<Finding> {
        self.finding
    }

    /// How many attempts it takes to find that a rate is reached by something that always passes.
    pub fn fewest(rate: f64, confidence: f64) -> usize {
        // A bet on an agent that always passes, for half of all, is won then at the latest.
        let latest = ((2.0 / (1.0 - confidence)).ln() / -rate.ln()).ceil() as usize + 1;
        let (mut low, mut high) = (0, latest);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            match finding(rate, confidence, middle, 0) {
                Some(Finding::Reached) => high = middle,
                Some(Finding::Missed) | None => low = middle,
            }
        }
        high
    }
}

/// What follows from so many attempts.
fn finding(rate: f64, confidence: f64, passed: usize, failed: usize) -> Option<Finding> {
    let limit = 1.0 / (1.0 - confidence);
    if won(rate, passed, failed) >= limit {
        return Some(Finding::Reached);
    }
    // That a rate is missed is that failures reach what is left.
    (won(1.0 - rate, failed, passed) >= limit).then_some(Finding::Missed)
}

/// What a stake of one has become that was put on `yes` coming more often than with `rate`.
fn won(rate: f64, yes: usize, no: usize) -> f64 {
    let tries = yes + no;
    let fair = yes as f64 * rate.ln() + no as f64 * (1.0 - rate).ln();
    let always = if no == 0 { (-fair).exp() } else { 0.0 };
    // The integral over all rates above the declared one is an incomplete beta function, which is a sum of chances.
    let above = at_most(yes, tries + 1, rate);
    let spread = (above.ln() - ln_choose(tries, yes) - ((tries + 1) as f64).ln() - fair).exp() / (1.0 - rate);
    0.5 * always + 0.5 * spread
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::statistics::dice::Dice;

    /// The same questions are asked again and again in simulations.
    struct Known {
        rate: f64,
        confidence: f64,
        found: HashMap<(usize, usize), Option<Finding>>,
    }

    impl Known {
        fn of(rate: f64, confidence: f64) -> Known {
            Known { rate, confidence, found: HashMap::new() }
        }

        fn finding(&mut self, passed: usize, failed: usize) -> Option<Finding> {
            let Known { rate, confidence, .. } = *self;
            *self.found.entry((passed, failed)).or_insert_with(|| finding(rate, confidence, passed, failed))
        }

        /// What a case comes to that passes with the rate `true_rate`, and by how many attempts.
        fn simulate(&mut self, true_rate: f64, most: usize, dice: &mut Dice) -> (Option<Finding>, usize) {
            let (mut passed, mut failed) = (0, 0);
            while passed + failed < most {
                if dice.happens(true_rate) {
                    passed += 1
                } else {
                    failed += 1
                }
                if let Some(found) = self.finding(passed, failed) {
                    return (Some(found), passed + failed);
                }
            }
            (None, most)
        }
    }

    const CONTRACTS: [(f64, f64); 4] = [(0.9, 0.95), (0.8, 0.95), (0.5, 0.9), (0.95, 0.99)];

    #[test]
    fn errors_are_as_rare_as_they_are_said_to_be() {
        let (times, most) = (4_000, 250);
        let mut dice = Dice::new(2026);
        for (rate, confidence) in CONTRACTS {
            let mut known = Known::of(rate, confidence);
            let alpha = 1.0 - confidence;
            // Three standard deviations of such a count.
            let chance = 3.0 * (alpha * confidence / f64::from(times)).sqrt();
            // A rate that is just the declared one is where both errors are likeliest.
            for true_rate in [rate - 0.1, rate - 0.02, rate, rate + 0.02_f64.min((1.0 - rate) / 2.0)] {
                let found: Vec<_> =
                    (0..times).map(|_| known.simulate(true_rate, most, &mut dice).0).collect();
                let share = |what| {
                    found.iter().filter(|found| **found == Some(what)).count() as f64 / f64::from(times)
                };
                if true_rate <= rate {
                    let share = share(Finding::Reached);
                    assert!(share <= alpha + chance, "{rate} at {true_rate}: {share} reach it");
                }
                if true_rate >= rate {
                    let share = share(Finding::Missed);
                    assert!(share <= alpha + chance, "{rate} at {true_rate}: {share} miss it");
                }
            }
        }
    }

    #[test]
    fn errors_hold_exactly_where_all_is_counted_out() {
        // The chance of every state of the test, attempt by attempt, at the declared rate itself.
        for (rate, confidence) in CONTRACTS {
            let mut known = Known::of(rate, confidence);
            let (mut open, mut reached, mut missed) = (vec![1.0], 0.0, 0.0);
            for tries in 1..=400 {
                let mut next = vec![0.0; tries + 1];
                for (passed, chance) in open.iter().enumerate() {
                    next[passed] += chance * (1.0 - rate);
                    next[passed + 1] += chance * rate;
                }
                for (passed, chance) in next.iter_mut().enumerate().filter(|(_, chance)| **chance > 1e-15) {
                    match known.finding(passed, tries - passed) {
                        Some(Finding::Reached) => reached += std::mem::take(chance),
                        Some(Finding::Missed) => missed += std::mem::take(chance),
                        None => {}
                    }
                }
                open = next;
            }
            let alpha = 1.0 - confidence;
            assert!(reached <= alpha && missed <= alpha, "{rate}: {reached} {missed}");
            assert!(
                reached > alpha / 20.0 && missed > alpha / 20.0,
                "no idle test: {rate}: {reached} {missed}"
            );
        }
    }

    #[test]
    fn what_is_plain_is_found_soon() {
        assert_eq!(
            CONTRACTS.map(|(rate, confidence)| Sequential::fewest(rate, confidence)),
            [33, 16, 4, 100]
        );
        let mut dice = Dice::new(5);
        let mut known = Known::of(0.9, 0.95);
        for (true_rate, what, within) in
            [(1.0, Finding::Reached, 33.0), (0.98, Finding::Reached, 90.0), (0.5, Finding::Missed, 12.0)]
        {
            let runs: Vec<_> = (0..500).map(|_| known.simulate(true_rate, 400, &mut dice)).collect();
            let right = runs.iter().filter(|(found, _)| *found == Some(what)).count();
            let mean = runs.iter().map(|(_, tries)| *tries as f64).sum::<f64>() / 500.0;
            assert!(right > 460 && mean <= within, "{true_rate}: {right} of 500 in {mean}");
        }
        let mut never = Sequential::new(0.9, 0.95);
        assert_eq!([never.note(false), never.note(false)], [None, Some(Finding::Missed)]);
        assert_eq!(never.note(true), Some(Finding::Missed), "what was found stays");
    }

    proptest! {
        #[test]
        fn more_passes_never_speak_against_a_rate(rate in 0.05..0.95f64, passed in 0usize..60, failed in 0usize..60) {
            let one = won(rate, passed, failed);
            prop_assert!(won(rate, passed + 1, failed) >= one * (1.0 - 1e-9));
            prop_assert!(won(rate, passed, failed + 1) <= one * (1.0 + 1e-9));
            // A fair bet: what it becomes is worth on average what it was, at the declared rate.
            let mean = rate * won(rate, passed + 1, failed) + (1.0 - rate) * won(rate, passed, failed + 1);
            prop_assert!((mean / one - 1.0).abs() < 1e-6, "{mean} {one}");
        }

        #[test]
        fn fewest_is_the_fewest(rate in 0.05..0.99f64, confidence in 0.5..0.999f64) {
            let fewest = Sequential::fewest(rate, confidence);
            prop_assert_eq!(finding(rate, confidence, fewest, 0), Some(Finding::Reached));
            prop_assert_eq!(finding(rate, confidence, fewest - 1, 0), None);
        }
    }
}
