//! Test files of a build without the feature `store`: no run is saved.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use hotseat_document::Diagnostic;
use hotseat_engine::config::Project;
use hotseat_engine::run::{RunEvent, RunPlan, RunSettings};

use super::Harness;
use super::arguments::HarnessArguments;

/// A writer of runs; there is none.
pub(super) enum RunWriter {}

/// An error of a writer; there is none.
pub(super) enum RunStoreError {}

impl RunWriter {
    pub(super) fn write_events(&mut self, _: &[RunEvent]) -> Result<(), RunStoreError> {
        match *self {}
    }
}

impl fmt::Display for RunStoreError {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

impl Harness {
    /// Refuses `--last-failed`, since no run was saved.
    pub(super) fn last_failed(&self, _: &Project) -> Result<BTreeSet<(String, String)>, u8> {
        let message = "--last-failed needs saved runs, and this test program was built without them";
        let help = "add the feature `store` to the dependency `hotseat` in Cargo.toml";
        Err(self.usage_error([Diagnostic::new(message).help(help)]))
    }

    /// Returns no writer.
    pub(super) fn run_writer(
        &self,
        _: &HarnessArguments,
        _: &Project,
        _: &RunPlan,
        _: &Arc<RunSettings>,
    ) -> Result<Option<RunWriter>, RunStoreError> {
        Ok(None)
    }
}
