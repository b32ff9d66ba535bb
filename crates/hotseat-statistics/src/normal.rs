//! The normal distribution.

/// Returns the probability of a value more than `z` standard deviations above the mean.
pub fn upper_tail(z: f64) -> f64 {
    if z < 0.0 {
        return 1.0 - upper_tail(-z);
    }
    let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if z < 4.0 {
        // Series for the integral from the mean to `z`.
        let (mut term, mut sum, mut n) = (z, z, 1.0);
        while term > 1e-17 * sum {
            n += 2.0;
            term *= z * z / n;
            sum += term;
        }
        (0.5 - density * sum).max(0.0)
    } else {
        // For large `z` the series cancels; the continued fraction converges quickly.
        density / (1..=60).rev().fold(z, |below, n| z + f64::from(n) / below)
    }
}

/// Returns the number of standard deviations that contains `confidence` of the distribution around the mean:
/// 1.96 for 0.95.
pub fn two_sided_quantile(confidence: f64) -> f64 {
    let tail = (1.0 - confidence) / 2.0;
    let (mut low, mut high) = (0.0, 40.0);
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if upper_tail(middle) > tail { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_textbook_values() {
        for (z, tail) in [
            (0.0, 0.5),
            (1.0, 0.158_655_253_9),
            (-1.0, 0.841_344_746_1),
            (1.959_963_985, 0.025),
            (5.0, 2.866_515_719e-7),
        ] {
            assert!((upper_tail(z) - tail).abs() < 1e-10 + tail * 1e-8, "{z}: {}", upper_tail(z));
        }
        assert!((upper_tail(3.999_999) - upper_tail(4.000_001)).abs() < 1e-9);
        assert!(
            (two_sided_quantile(0.95) - 1.959_963_985).abs() < 1e-8
                && (two_sided_quantile(0.99) - 2.575_829_304).abs() < 1e-8
        );
    }
}
