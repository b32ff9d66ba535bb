//! Several tests decided together, so that the chance of a false alarm among all of them stays below a limit.

/// A test among several.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Test {
    /// How likely something as extreme is where nothing has changed.
    pub p: f64,
    /// The least that could have come out, whatever the agent did.
    pub least_p: f64,
}

/// Which of the tests say that something has changed, at a chance of `alpha` that any of them does where nothing has.
/// Those that cannot tell whatever comes out take nothing away from the others (Tarone's way of Bonferroni's bound).
pub fn decided(tests: &[Test], alpha: f64) -> Vec<bool> {
    let mut least: Vec<f64> = tests.iter().map(|test| test.least_p).collect();
    least.sort_unstable_by(f64::total_cmp);
    // The smallest number of which no more tests than that can reach their share.
    let able = |share: f64| least.partition_point(|least| *least <= share);
    let shares = (1..=tests.len()).find(|count| able(alpha / *count as f64) <= *count).unwrap_or(1);
    let limit = alpha / shares as f64;
    tests.iter().map(|test| test.p <= limit && test.least_p <= limit).collect()
}

/// Whether any of the tests can say that something has changed, whatever comes out.
pub fn can_tell(tests: &[Test], alpha: f64) -> bool {
    let best =
        decided(&tests.iter().map(|test| Test { p: test.least_p, ..*test }).collect::<Vec<_>>(), alpha);
    best.contains(&true)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn test(p: f64, least_p: f64) -> Test {
        Test { p, least_p }
    }

    #[test]
    fn tests_that_cannot_tell_take_nothing_away() {
        let able = test(0.01, 0.001);
        let unable = vec![test(1.0, 1.0); 1_000];
        let all = [vec![able], unable].concat();
        assert_eq!(decided(&all, 0.05).iter().filter(|found| **found).count(), 1);
        assert_eq!(decided(&[able; 5], 0.05), [true; 5]);
        assert_eq!(decided(&[able; 6], 0.05), [false; 6], "a sixth of 0.05 is less than 0.01");
        assert_eq!(decided(&[], 0.05), Vec::<bool>::new());
        assert!(can_tell(&[able], 0.05) && !can_tell(&[test(1.0, 0.06)], 0.05) && !can_tell(&[], 0.05));
    }

    proptest! {
        #[test]
        fn never_more_is_decided_than_the_bound_allows(
            all in prop::collection::vec((0.0..=1.0f64, 0.0..=1.0f64), 1..30),
            alpha in 0.001..0.5f64,
        ) {
            let tests: Vec<Test> = all.iter().map(|(p, part)| test(*p, p * part)).collect();
            let found = decided(&tests, alpha);
            // Where nothing has changed, each able test alarms at most with the limit, and there are so many of them.
            let limit = tests.iter().zip(&found).filter(|(_, found)| **found).map(|(test, _)| test.p).fold(0.0, f64::max);
            let able = tests.iter().filter(|test| test.least_p <= limit).count();
            prop_assert!(limit * able as f64 <= alpha + 1e-12);
            // It finds at least what Bonferroni's bound finds.
            for (test, found) in tests.iter().zip(&found) {
                prop_assert!(*found || test.p > alpha / tests.len() as f64);
            }
        }
    }
}
