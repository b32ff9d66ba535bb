//! Logarithms of factorials, and what is counted with them.

/// The natural logarithm of `n!`.
pub fn ln_factorial(n: usize) -> f64 {
    if n < 16 {
        return (2..=n).map(|i| i as f64).product::<f64>().ln();
    }
    // Stirling's series; with its first four terms the error is below 1e-13 from here on.
    let x = n as f64;
    let series = 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3)) + 1.0 / (1260.0 * x.powi(5))
        - 1.0 / (1680.0 * x.powi(7));
    (x + 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series
}

/// The natural logarithm of the number of ways to choose `k` of `n`; `k` is at most `n`.
pub fn ln_choose(n: usize, k: usize) -> f64 {
    ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k)
}

/// How likely at most `most` of `tries` happen, where each happens with `rate`.
pub fn at_most(most: usize, tries: usize, rate: f64) -> f64 {
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
    fn factorials_go_on_where_the_series_begins() {
        for n in 1..200 {
            let step = ln_factorial(n) - ln_factorial(n - 1);
            assert!((step - (n as f64).ln()).abs() < 1e-10, "{n}");
        }
    }

    #[test]
    fn choices_and_tails_are_those_of_the_books() {
        assert!((ln_choose(20, 10).exp() - 184_756.0).abs() < 1e-5);
        assert!((at_most(2, 5, 0.5) - 0.5).abs() < 1e-12);
        assert!((at_most(0, 29, 0.9_f64) - 0.1_f64.powi(29)).abs() < 1e-12);
        assert_eq!((at_most(3, 3, 0.2), at_most(0, 3, 0.0), at_most(2, 3, 1.0)), (1.0, 1.0, 0.0));
    }
}
