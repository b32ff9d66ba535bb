//! Logarithms of factorials and the binomial distribution.

/// Returns the natural logarithm of `n!`.
pub fn ln_factorial(n: usize) -> f64 {
    if n < 16 {
        return (2..=n).map(|i| i as f64).product::<f64>().ln();
    }
    // Stirling's series; with four terms the error is below 1e-13 for these `n`.
    let x = n as f64;
    let series = 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3)) + 1.0 / (1260.0 * x.powi(5))
        - 1.0 / (1680.0 * x.powi(7));
    (x + 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series
}

/// Returns the natural logarithm of the binomial coefficient `n` over `k`. Requires `k <= n`.
pub fn ln_choose(n: usize, k: usize) -> f64 {
    ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k)
}

/// Returns the probability of at most `most` successes in `tries` tries with success probability `rate`.
pub fn binomial_cdf(most: usize, tries: usize, rate: f64) -> f64 {
    match rate {
        _ if most >= tries => 1.0,
        rate if rate <= 0.0 => 1.0,
        rate if rate >= 1.0 => 0.0,
        rate => {
            let (yes, no) = (rate.ln(), (1.0 - rate).ln());
            let one = |k: usize| (ln_choose(tries, k) + k as f64 * yes + (tries - k) as f64 * no).exp();
            (0..=most).map(one).sum::<f64>().min(1.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factorials_are_continuous_at_the_series_start() {
        for n in 1..200 {
            let step = ln_factorial(n) - ln_factorial(n - 1);
            assert!((step - (n as f64).ln()).abs() < 1e-10, "{n}");
        }
    }

    #[test]
    fn matches_textbook_values() {
        assert!((ln_choose(20, 10).exp() - 184_756.0).abs() < 1e-5);
        assert!((binomial_cdf(2, 5, 0.5) - 0.5).abs() < 1e-12);
        assert!((binomial_cdf(0, 29, 0.9_f64) - 0.1_f64.powi(29)).abs() < 1e-12);
        assert_eq!(
            (binomial_cdf(3, 3, 0.2), binomial_cdf(0, 3, 0.0), binomial_cdf(2, 3, 1.0)),
            (1.0, 1.0, 0.0)
        );
    }
}
