//! How values lie: the smallest, the middle one, the largest, and how much they differ.

/// How a number of values lie.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spread {
    /// Their mean.
    pub mean: f64,
    /// The smallest.
    pub least: f64,
    /// The one in the middle; of an even number the mean of the two in the middle.
    pub median: f64,
    /// The largest.
    pub most: f64,
    /// Their standard deviation, as of all there are and not as of a sample.
    pub deviation: f64,
}

impl Spread {
    /// Of some values, in whatever order; of none all is 0.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Spread {
        let mut all: Vec<f64> = values.into_iter().collect();
        if all.is_empty() {
            return Spread::default();
        }
        all.sort_unstable_by(f64::total_cmp);
        let (count, half) = (all.len() as f64, all.len() / 2);
        let mean = all.iter().sum::<f64>() / count;
        let squares: f64 = all.iter().map(|value| (value - mean).powi(2)).sum();
        Spread {
            mean,
            least: all[0],
            median: if all.len() % 2 == 1 { all[half] } else { (all[half - 1] + all[half]) / 2.0 },
            most: all[all.len() - 1],
            deviation: (squares / count).sqrt(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_an_even_number_lies_between_two() {
        let of = |values: &[f64]| Spread::of(values.iter().copied());
        assert_eq!(
            (of(&[3.0, 1.0, 2.0]).median, of(&[4.0, 1.0, 2.0, 10.0]).median, of(&[]).median),
            (2.0, 3.0, 0.0)
        );
        let all = of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!((all.mean, all.least, all.most, all.deviation), (5.0, 2.0, 9.0, 2.0));
    }
}
