//! Statistics of repeated attempts: rates, confidence intervals and significance tests. Independent of runs
//! and cases: functions take and return numbers.

mod exact;
mod gamma;
mod multiple_tests;
mod normal;
mod ranks;
mod rates;
mod sequential;
mod summary_statistics;

pub use exact::{PairedCounts, PassRateTest, compare_pass_rates};
pub use multiple_tests::{TestPValue, can_detect_change, significant_tests};
pub use ranks::{SignedRankTest, signed_rank_test};
pub use rates::{ConfidenceInterval, all_pass_probability, wilson_interval};
pub use sequential::{RateDecision, SequentialTest};
pub use summary_statistics::SummaryStatistics;
