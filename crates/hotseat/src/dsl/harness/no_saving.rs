//! Test files of a build without the feature `store`: no run is saved.

use std::sync::Arc;

use hotseat_document::Diagnostic;
use hotseat_engine::config::Project;
use hotseat_engine::run::{FailedCases, RunPlan, RunSettings};
use hotseat_report::runner::RunSaver;

use super::Harness;

/// Reason why no run is saved.
const NO_STORE: &str = "saved runs need the feature `store` of the crate `hotseat`";

impl Harness {
    /// Refuses `--last-failed`, since no run was saved.
    pub(super) fn last_failed(&self, _: &Project) -> Result<FailedCases, u8> {
        let help = "add the feature `store` to the dependency `hotseat` in Cargo.toml";
        Err(self.usage_error([Diagnostic::new(format!("--last-failed: {NO_STORE}")).help(help)]))
    }

    /// Returns no saver. Always fails.
    pub(super) fn run_saver(
        &self,
        _: &Project,
        _: &RunPlan,
        _: &Arc<RunSettings>,
    ) -> Result<Box<dyn RunSaver>, String> {
        Err(NO_STORE.to_string())
    }
}
