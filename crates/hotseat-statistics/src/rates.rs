//! Estimates of rates from a number of tries.

use super::normal::two_sided_quantile;

/// Confidence interval of a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConfidenceInterval {
    /// Lower bound, from 0 to 1.
    pub low: f64,
    /// Upper bound, from 0 to 1.
    pub high: f64,
}

/// Returns Wilson's score interval of a rate with `happened` successes in `tries` tries. Without tries it is
/// [0, 1].
pub fn wilson_interval(happened: usize, tries: usize, confidence: f64) -> ConfidenceInterval {
    if tries == 0 {
        return ConfidenceInterval { low: 0.0, high: 1.0 };
    }
    let (n, z) = (tries as f64, two_sided_quantile(confidence));
    let rate = happened as f64 / n;
    let spread = z * (rate * (1.0 - rate) / n + z * z / (4.0 * n * n)).sqrt();
    let (middle, whole) = (rate + z * z / (2.0 * n), 1.0 + z * z / n);
    // Avoid rounding errors at the ends of the interval.
    ConfidenceInterval {
        low: if happened == 0 { 0.0 } else { ((middle - spread) / whole).max(0.0) },
        high: if happened == tries { 1.0 } else { ((middle + spread) / whole).min(1.0) },
    }
}

/// Returns the unbiased estimate of pass^k: the probability that `k` attempts in a row all pass, given
/// `happened` passes in `tries` attempts. It is the fraction of all choices of `k` attempts in which all
/// passed; none if `k > tries`.
pub fn all_pass_probability(k: usize, happened: usize, tries: usize) -> Option<f64> {
    let part = |i: usize| happened.saturating_sub(i) as f64 / (tries - i) as f64;
    (k <= tries).then(|| (0..k).map(part).product())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::gamma::ln_choose;

    fn binomial(k: usize, n: usize, rate: f64) -> f64 {
        (ln_choose(n, k) + k as f64 * rate.ln() + (n - k) as f64 * (1.0 - rate).ln()).exp()
    }

    #[test]
    fn matches_textbook_values() {
        for (happened, tries, low, high) in [
            (9, 10, 0.5958, 0.9821),
            (0, 10, 0.0, 0.2775),
            (10, 10, 0.7225, 1.0),
            (81, 263, 0.2553, 0.3662),
            (0, 0, 0.0, 1.0),
        ] {
            let found = wilson_interval(happened, tries, 0.95);
            assert!((found.low - low).abs() < 1e-4 && (found.high - high).abs() < 1e-4, "{found:?}");
        }
    }

    #[test]
    fn coverage_matches_confidence() {
        // Exact coverage over all outcomes. It may be slightly low for single rates, but not on average.
        let (mut sum, mut lowest, mut count) = (0.0, 1.0_f64, 0.0);
        for n in [5, 10, 20, 50, 100] {
            for rate in (1..40).map(|step| f64::from(step) / 40.0) {
                let holds = |k: &usize| {
                    let ConfidenceInterval { low, high } = wilson_interval(*k, n, 0.95);
                    low <= rate && rate <= high
                };
                let covered: f64 = (0..=n).filter(holds).map(|k| binomial(k, n, rate)).sum();
                (sum, lowest, count) = (sum + covered, lowest.min(covered), count + 1.0);
            }
        }
        assert!((0.948..0.96).contains(&(sum / count)), "on average {}", sum / count);
        assert!(lowest > 0.83, "at worst {lowest}");
    }

    #[test]
    fn all_pass_probability_is_unbiased() {
        // The mean of the estimate over all outcomes is `rate^k`.
        for (n, rate, k) in [(5, 0.8, 1), (5, 0.8, 3), (8, 0.6, 8), (10, 0.95, 4)] {
            let mean: f64 = (0..=n)
                .map(|c| binomial(c, n, rate) * all_pass_probability(k, c, n).expect("k is at most n"))
                .sum();
            assert!((mean - rate.powi(k as i32)).abs() < 1e-12, "{n} {rate} {k}: {mean}");
        }
        assert_eq!(
            (all_pass_probability(4, 3, 3), all_pass_probability(0, 0, 0), all_pass_probability(2, 1, 3)),
            (None, Some(1.0), Some(0.0))
        );
    }

    proptest! {
        #[test]
        fn interval_contains_observed_rate(tries in 1usize..500, part in 0.0..=1.0f64, confidence in 0.5..0.999f64) {
            let happened = (tries as f64 * part) as usize;
            let rate = happened as f64 / tries as f64;
            let ConfidenceInterval { low, high } = wilson_interval(happened, tries, confidence);
            prop_assert!(0.0 <= low && low <= rate + 1e-12 && rate <= high + 1e-12 && high <= 1.0);
            let other = wilson_interval(tries - happened, tries, confidence);
            prop_assert!((other.low - (1.0 - high)).abs() < 1e-9, "failures are the mirror of passes");
            let surer = wilson_interval(happened, tries, (1.0 + confidence) / 2.0);
            prop_assert!(surer.low <= low && high <= surer.high, "more confidence, more room");
        }

        #[test]
        fn longer_streaks_are_less_likely(tries in 1usize..60, part in 0.0..=1.0f64) {
            let happened = (tries as f64 * part) as usize;
            let all: Vec<f64> = (0..=tries).filter_map(|k| all_pass_probability(k, happened, tries)).collect();
            prop_assert!(all.windows(2).all(|pair| pair[1] <= pair[0]) && all.len() == tries + 1);
            prop_assert!(all.iter().all(|part| (0.0..=1.0).contains(part)));
        }
    }
}
