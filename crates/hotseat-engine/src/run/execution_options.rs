//! Execution options of a run.

use serde::{Deserialize, Serialize};

use crate::cases::{PassRate, Reliability};

/// Execution options of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ExecutionOptions {
    /// Maximum number of concurrent conversations.
    pub parallel: usize,
    /// If true, no new case starts after a failure.
    pub fail_fast: bool,
    /// Number of attempts per case (`--runs`).
    pub runs: usize,
    /// Minimum pass rate of repeated cases.
    pub min_pass_rate: PassRate,
    /// If true, cases with a declared reliability run until it is confirmed or refuted.
    #[serde(default)]
    pub as_declared: bool,
    /// Reliability of cases that declare none.
    pub reliability: Option<Reliability>,
    /// Maximum number of invalid attempts of a repeated case that are replaced. `None` selects a default
    /// based on the number of repeats.
    pub max_invalid: Option<usize>,
    /// Retries of a failed case that is not repeated. Overrides the value of the case.
    pub retries: Option<usize>,
    /// Retries if neither the command line nor the case sets them.
    pub default_retries: usize,
    /// If true, skipped cases without a `skip` of their own make the run fail.
    pub fail_on_skip: bool,
}
