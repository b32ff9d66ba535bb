//! Options of a run as a command line asks for them.

use hotseat_document::Diagnostic;

use super::execution_options::ExecutionOptions;
use crate::cases::PassRate;
use crate::config::Project;

/// Default number of parallel conversations. They mostly wait for the network, and an agent on a developer
/// machine handles this many.
const DEFAULT_PARALLEL: usize = 8;

/// Options that a command line sets. The project file provides the others.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestedOptions {
    /// Maximum number of concurrent conversations.
    pub parallel: Option<usize>,
    /// Number of attempts per case.
    pub runs: Option<usize>,
    /// Minimum pass rate of repeated cases.
    pub min_pass_rate: Option<PassRate>,
    /// Maximum number of invalid attempts of a repeated case that are replaced.
    pub max_invalid: Option<usize>,
    /// Retries of a failed case that is not repeated.
    pub retries: Option<usize>,
    /// If true, no new case starts after a failure.
    pub fail_fast: bool,
    /// If true, skipped cases without a `skip` of their own make the run fail.
    pub fail_on_skip: bool,
    /// If true, a human may be asked, who answers one conversation at a time.
    pub may_ask_human: bool,
}

impl RequestedOptions {
    /// Adds the options of the project. Fails if two options contradict each other.
    pub fn resolve(self, project: &Project) -> Result<ExecutionOptions, Diagnostic> {
        let runs = self.runs.or(project.runs).unwrap_or(1);
        if runs == 1 && self.min_pass_rate.is_some() {
            let message = "--min-pass-rate requires repeated cases, and each case runs once";
            return Err(Diagnostic::new(message).help("pass `--runs N` to run each case N times"));
        }
        if runs > 1 && self.retries.is_some_and(|retries| retries > 0) {
            let message = format!("--retries cannot be used with {runs} runs of each case");
            let help = "repeated runs are not retried, since that would hide unreliable cases; pass `--runs 1` to retry";
            return Err(Diagnostic::new(message).help(help));
        }
        let default_parallel = if self.may_ask_human { 1 } else { DEFAULT_PARALLEL };
        Ok(ExecutionOptions {
            parallel: self.parallel.or(project.parallel).unwrap_or(default_parallel),
            fail_fast: self.fail_fast,
            runs,
            min_pass_rate: self.min_pass_rate.or(project.min_pass_rate).unwrap_or(PassRate::ALL),
            // An explicit number of runs overrides declared reliability targets.
            as_declared: self.runs.is_none(),
            reliability: project.reliability,
            max_invalid: self.max_invalid.or(project.max_invalid),
            retries: self.retries,
            default_retries: project.retries,
            fail_on_skip: self.fail_on_skip,
        })
    }
}
