//! Summary statistics: mean, minimum, median, maximum and standard deviation.

/// Summary statistics of a set of values.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SummaryStatistics {
    /// Mean.
    pub mean: f64,
    /// Smallest value.
    pub min: f64,
    /// Median; for an even count, the mean of the two middle values.
    pub median: f64,
    /// Largest value.
    pub max: f64,
    /// Population standard deviation.
    pub standard_deviation: f64,
}

impl SummaryStatistics {
    /// Computes the statistics of values in any order; all are 0 if there are none.
    pub fn from_values(values: impl IntoIterator<Item = f64>) -> SummaryStatistics {
        let mut all: Vec<f64> = values.into_iter().collect();
        if all.is_empty() {
            return SummaryStatistics::default();
        }
        all.sort_unstable_by(f64::total_cmp);
        let (count, half) = (all.len() as f64, all.len() / 2);
        let mean = all.iter().sum::<f64>() / count;
        let squares: f64 = all.iter().map(|value| (value - mean).powi(2)).sum();
        SummaryStatistics {
            mean,
            min: all[0],
            median: if all.len() % 2 == 1 { all[half] } else { (all[half - 1] + all[half]) / 2.0 },
            max: all[all.len() - 1],
            standard_deviation: (squares / count).sqrt(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_an_even_count_is_the_mean_of_the_middle_two() {
        let of = |values: &[f64]| SummaryStatistics::from_values(values.iter().copied());
        assert_eq!(
            (of(&[3.0, 1.0, 2.0]).median, of(&[4.0, 1.0, 2.0, 10.0]).median, of(&[]).median),
            (2.0, 3.0, 0.0)
        );
        let all = of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!((all.mean, all.min, all.max, all.standard_deviation), (5.0, 2.0, 9.0, 2.0));
    }
}
