//! Sequential test of whether a pass rate is reached, which stops as soon as the attempts allow a decision.
//!
//! It is Wald's sequential probability ratio test against a mixture of alternatives (Robbins): half of the
//! weight is on an agent that always passes (or never does), the other half is uniform. The likelihood ratio
//! is a bet that is fair at the declared rate, so it exceeds 20 with a probability of at most 1/20, for any
//! stopping rule (Ville's inequality). Both error probabilities therefore hold for any number of attempts:
//!
//! - a case that passes less often than declared is found to reach the rate with a probability of at most 1 -
//!   confidence;
//! - a case that passes as often as declared is found to miss it with a probability of at most 1 -
//!   confidence.

use super::gamma::{binomial_cdf, ln_choose};

/// Decision about a declared rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateDecision {
    /// The rate is reached.
    Reached,
    /// The rate is missed.
    Missed,
}

/// A sequential test, updated with each attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct SequentialTest {
    rate: f64,
    confidence: f64,
    passed: usize,
    failed: usize,
    decision: Option<RateDecision>,
}

impl SequentialTest {
    /// Creates a test of whether the pass rate is at least `rate`. The error probability is at most 1 -
    /// `confidence`. Both are between 0 and 1.
    pub fn new(rate: f64, confidence: f64) -> SequentialTest {
        SequentialTest { rate, confidence, passed: 0, failed: 0, decision: None }
    }

    /// Records an attempt and returns the decision so far. A decision is final.
    pub fn record(&mut self, passed: bool) -> Option<RateDecision> {
        if self.decision.is_none() {
            if passed {
                self.passed += 1
            } else {
                self.failed += 1
            }
            self.decision = decide(self.rate, self.confidence, self.passed, self.failed);
        }
        self.decision
    }

    /// Returns the decision so far.
    pub fn decision(&self) -> Option<RateDecision> {
        self.decision
    }

    /// Returns the number of attempts after which an agent that always passes reaches the rate.
    pub fn min_attempts(rate: f64, confidence: f64) -> usize {
        // Upper bound: half of the bet is on such an agent, and that half alone is won by then.
        let latest = ((2.0 / (1.0 - confidence)).ln() / -rate.ln()).ceil() as usize + 1;
        let (mut low, mut high) = (0, latest);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            match decide(rate, confidence, middle, 0) {
                Some(RateDecision::Reached) => high = middle,
                Some(RateDecision::Missed) | None => low = middle,
            }
        }
        high
    }
}

/// Returns the decision after these attempts.
fn decide(rate: f64, confidence: f64, passed: usize, failed: usize) -> Option<RateDecision> {
    let limit = 1.0 / (1.0 - confidence);
    if bet_wealth(rate, passed, failed) >= limit {
        return Some(RateDecision::Reached);
    }
    // Missing the rate means that failures reach the complementary rate.
    (bet_wealth(1.0 - rate, failed, passed) >= limit).then_some(RateDecision::Missed)
}

/// Returns the value of a unit bet on `yes` being more frequent than `rate`.
fn bet_wealth(rate: f64, yes: usize, no: usize) -> f64 {
    let tries = yes + no;
    let fair = yes as f64 * rate.ln() + no as f64 * (1.0 - rate).ln();
    let always = if no == 0 { (-fair).exp() } else { 0.0 };
    // The integral over all rates above the declared one is an incomplete beta function, computed as a
    // binomial sum.
    let above = binomial_cdf(yes, tries + 1, rate);
    let spread = (above.ln() - ln_choose(tries, yes) - ((tries + 1) as f64).ln() - fair).exp() / (1.0 - rate);
    0.5 * always + 0.5 * spread
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use hotseat_testkit::SplitMix64;

    /// Caches decisions, since simulations repeat the same counts.
    struct CachedDecisions {
        rate: f64,
        confidence: f64,
        found: HashMap<(usize, usize), Option<RateDecision>>,
    }

    impl CachedDecisions {
        fn new(rate: f64, confidence: f64) -> CachedDecisions {
            CachedDecisions { rate, confidence, found: HashMap::new() }
        }

        fn finding(&mut self, passed: usize, failed: usize) -> Option<RateDecision> {
            let CachedDecisions { rate, confidence, .. } = *self;
            *self.found.entry((passed, failed)).or_insert_with(|| decide(rate, confidence, passed, failed))
        }

        /// Simulates a case with pass rate `true_rate`. Returns the decision and the number of attempts.
        fn simulate(
            &mut self,
            true_rate: f64,
            most: usize,
            dice: &mut SplitMix64,
        ) -> (Option<RateDecision>, usize) {
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
    fn error_rates_stay_below_limits() {
        let (times, most) = (4_000, 250);
        let mut dice = SplitMix64::new(2026);
        for (rate, confidence) in CONTRACTS {
            let mut known = CachedDecisions::new(rate, confidence);
            let alpha = 1.0 - confidence;
            // Three standard deviations of the count.
            let chance = 3.0 * (alpha * confidence / f64::from(times)).sqrt();
            // Both errors are most likely near the declared rate.
            for true_rate in [rate - 0.1, rate - 0.02, rate, rate + 0.02_f64.min((1.0 - rate) / 2.0)] {
                let found: Vec<_> =
                    (0..times).map(|_| known.simulate(true_rate, most, &mut dice).0).collect();
                let share = |what| {
                    found.iter().filter(|found| **found == Some(what)).count() as f64 / f64::from(times)
                };
                if true_rate <= rate {
                    let share = share(RateDecision::Reached);
                    assert!(share <= alpha + chance, "{rate} at {true_rate}: {share} reach it");
                }
                if true_rate >= rate {
                    let share = share(RateDecision::Missed);
                    assert!(share <= alpha + chance, "{rate} at {true_rate}: {share} miss it");
                }
            }
        }
    }

    #[test]
    fn exact_error_rates_stay_below_limits() {
        // Probability of every state of the test at the declared rate, attempt by attempt.
        for (rate, confidence) in CONTRACTS {
            let mut known = CachedDecisions::new(rate, confidence);
            let (mut open, mut reached, mut missed) = (vec![1.0], 0.0, 0.0);
            for tries in 1..=400 {
                let mut next = vec![0.0; tries + 1];
                for (passed, chance) in open.iter().enumerate() {
                    next[passed] += chance * (1.0 - rate);
                    next[passed + 1] += chance * rate;
                }
                for (passed, chance) in next.iter_mut().enumerate().filter(|(_, chance)| **chance > 1e-15) {
                    match known.finding(passed, tries - passed) {
                        Some(RateDecision::Reached) => reached += std::mem::take(chance),
                        Some(RateDecision::Missed) => missed += std::mem::take(chance),
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
    fn clear_cases_are_decided_early() {
        assert_eq!(
            CONTRACTS.map(|(rate, confidence)| SequentialTest::min_attempts(rate, confidence)),
            [33, 16, 4, 100]
        );
        let mut dice = SplitMix64::new(5);
        let mut known = CachedDecisions::new(0.9, 0.95);
        for (true_rate, what, within) in [
            (1.0, RateDecision::Reached, 33.0),
            (0.98, RateDecision::Reached, 90.0),
            (0.5, RateDecision::Missed, 12.0),
        ] {
            let runs: Vec<_> = (0..500).map(|_| known.simulate(true_rate, 400, &mut dice)).collect();
            let right = runs.iter().filter(|(found, _)| *found == Some(what)).count();
            let mean = runs.iter().map(|(_, tries)| *tries as f64).sum::<f64>() / 500.0;
            assert!(right > 460 && mean <= within, "{true_rate}: {right} of 500 in {mean}");
        }
        let mut never = SequentialTest::new(0.9, 0.95);
        assert_eq!([never.record(false), never.record(false)], [None, Some(RateDecision::Missed)]);
        assert_eq!(never.record(true), Some(RateDecision::Missed), "what was found stays");
    }

    proptest! {
        #[test]
        fn more_passes_never_lower_the_bet(rate in 0.05..0.95f64, passed in 0usize..60, failed in 0usize..60) {
            let one = bet_wealth(rate, passed, failed);
            prop_assert!(bet_wealth(rate, passed + 1, failed) >= one * (1.0 - 1e-9));
            prop_assert!(bet_wealth(rate, passed, failed + 1) <= one * (1.0 + 1e-9));
            // The bet is fair: its expected value at the declared rate is unchanged.
            let mean = rate * bet_wealth(rate, passed + 1, failed) + (1.0 - rate) * bet_wealth(rate, passed, failed + 1);
            prop_assert!((mean / one - 1.0).abs() < 1e-6, "{mean} {one}");
        }

        #[test]
        fn min_attempts_is_minimal(rate in 0.05..0.99f64, confidence in 0.5..0.999f64) {
            let fewest = SequentialTest::min_attempts(rate, confidence);
            prop_assert_eq!(decide(rate, confidence, fewest, 0), Some(RateDecision::Reached));
            prop_assert_eq!(decide(rate, confidence, fewest - 1, 0), None);
        }
    }
}
