//! Multiple tests with a bound on the probability of any false alarm.

/// P-value of one of several tests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TestPValue {
    /// The p-value.
    pub p: f64,
    /// Smallest p-value that the test can yield.
    pub min_p: f64,
}

/// Returns which tests are significant. The probability of any false alarm is at most `alpha`. Tests that
/// cannot reach significance do not lower the limit of the others (Tarone's modification of Bonferroni's
/// bound).
pub fn significant_tests(tests: &[TestPValue], alpha: f64) -> Vec<bool> {
    let mut least: Vec<f64> = tests.iter().map(|test| test.min_p).collect();
    least.sort_unstable_by(f64::total_cmp);
    // Smallest divisor such that no more tests than that can reach their share of `alpha`.
    let able = |share: f64| least.partition_point(|least| *least <= share);
    let shares = (1..=tests.len()).find(|count| able(alpha / *count as f64) <= *count).unwrap_or(1);
    let limit = alpha / shares as f64;
    tests.iter().map(|test| test.p <= limit && test.min_p <= limit).collect()
}

/// Returns true if at least one of the tests can be significant.
pub fn can_detect_change(tests: &[TestPValue], alpha: f64) -> bool {
    let best = significant_tests(
        &tests.iter().map(|test| TestPValue { p: test.min_p, ..*test }).collect::<Vec<_>>(),
        alpha,
    );
    best.contains(&true)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn test(p: f64, least_p: f64) -> TestPValue {
        TestPValue { p, min_p: least_p }
    }

    #[test]
    fn powerless_tests_do_not_lower_the_limit() {
        let able = test(0.01, 0.001);
        let unable = vec![test(1.0, 1.0); 1_000];
        let all = [vec![able], unable].concat();
        assert_eq!(significant_tests(&all, 0.05).iter().filter(|found| **found).count(), 1);
        assert_eq!(significant_tests(&[able; 5], 0.05), [true; 5]);
        assert_eq!(significant_tests(&[able; 6], 0.05), [false; 6], "a sixth of 0.05 is less than 0.01");
        assert_eq!(significant_tests(&[], 0.05), Vec::<bool>::new());
        assert!(
            can_detect_change(&[able], 0.05)
                && !can_detect_change(&[test(1.0, 0.06)], 0.05)
                && !can_detect_change(&[], 0.05)
        );
    }

    proptest! {
        #[test]
        fn never_exceeds_the_error_bound(
            all in prop::collection::vec((0.0..=1.0f64, 0.0..=1.0f64), 1..30),
            alpha in 0.001..0.5f64,
        ) {
            let tests: Vec<TestPValue> = all.iter().map(|(p, part)| test(*p, p * part)).collect();
            let found = significant_tests(&tests, alpha);
            // Under the null hypothesis, each test that can be significant raises a false alarm with at most
            // this probability.
            let limit = tests.iter().zip(&found).filter(|(_, found)| **found).map(|(test, _)| test.p).fold(0.0, f64::max);
            let able = tests.iter().filter(|test| test.min_p <= limit).count();
            prop_assert!(limit * able as f64 <= alpha + 1e-12);
            // At least as powerful as Bonferroni's bound.
            for (test, found) in tests.iter().zip(&found) {
                prop_assert!(*found || test.p > alpha / tests.len() as f64);
            }
        }
    }
}
