//! The normal distribution.

/// How likely a value lies more than `z` above the mean, in standard deviations.
pub fn above(z: f64) -> f64 {
    if z < 0.0 {
        return 1.0 - above(-z);
    }
    let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if z < 4.0 {
        // What lies between the mean and z, as a series.
        let (mut term, mut sum, mut n) = (z, z, 1.0);
        while term > 1e-17 * sum {
            n += 2.0;
            term *= z * z / n;
            sum += term;
        }
        (0.5 - density * sum).max(0.0)
    } else {
        // Far out the series would cancel; the continued fraction ends quickly there.
        density / (1..=60).rev().fold(z, |below, n| z + f64::from(n) / below)
    }
}

/// How far from the mean a value lies at most with this `confidence`, on both sides: 1.96 for 0.95.
pub fn within(confidence: f64) -> f64 {
    let tail = (1.0 - confidence) / 2.0;
    let (mut low, mut high) = (0.0, 40.0);
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if above(middle) > tail { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_those_of_the_books() {
        for (z, tail) in [
            (0.0, 0.5),
            (1.0, 0.158_655_253_9),
            (-1.0, 0.841_344_746_1),
            (1.959_963_985, 0.025),
            (5.0, 2.866_515_719e-7),
        ] {
            assert!((above(z) - tail).abs() < 1e-10 + tail * 1e-8, "{z}: {}", above(z));
        }
        assert!((above(3.999_999) - above(4.000_001)).abs() < 1e-9);
        assert!((within(0.95) - 1.959_963_985).abs() < 1e-8 && (within(0.99) - 2.575_829_304).abs() < 1e-8);
    }
}
