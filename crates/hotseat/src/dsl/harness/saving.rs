//! Saves the run of a test file, and finds the examples that failed when they last ran.

use std::sync::Arc;

use hotseat_document::Diagnostic;
use hotseat_engine::config::Project;
use hotseat_engine::run::{FailedCases, RunPlan, RunSettings};
use hotseat_report::runner::RunSaver;
use hotseat_report::store::{RunMetadata, RunStore, RunStoreError, RunWriter, StoreLimits, store_path};

use super::{Harness, exit};

impl Harness {
    /// Returns the examples of this test file that failed when they last ran.
    pub(super) fn last_failed(&self, project: &Project) -> Result<FailedCases, u8> {
        let store = RunStore::open(&store_path(&project.root));
        let failed = store.and_then(|store| store.failed_cases(Some(self.file), None));
        let failed = failed.map_err(|error| match error {
            RunStoreError::NoRuns(_) | RunStoreError::NoSuchRun(_) | RunStoreError::SeveralCases { .. } => {
                self.usage_error([Diagnostic::new(error.to_string())])
            }
            RunStoreError::Unusable(_) | RunStoreError::Damaged(_) => self.run_error(error.to_string()),
        })?;
        if failed.is_empty() {
            self.print_remark("no examples selected: every example passed when it last ran");
            return Err(exit::NOTHING_SELECTED);
        }
        Ok(failed)
    }

    /// Creates the writer that saves the run. Fails if the store cannot be opened.
    pub(super) fn run_saver(
        &self,
        project: &Project,
        plan: &RunPlan,
        setting: &Arc<RunSettings>,
    ) -> Result<Box<dyn RunSaver>, String> {
        let redactor = project.redactor();
        let about =
            RunMetadata { program: Some(self.file.to_string()), ..RunMetadata::new(project, plan, setting) };
        let about = about.started_by(&self.arguments, &self.context.folder, redactor);
        let limits = StoreLimits::with_defaults(project.store.max_age, project.store.max_size);
        let writer = RunWriter::new(&store_path(&project.root), about, limits);
        let writer = writer.map(|writer| -> Box<dyn RunSaver> { Box::new(writer.with_redactor(redactor)) });
        writer.map_err(|error| error.to_string())
    }
}
