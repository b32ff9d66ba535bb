//! Saves the run of a test file, and finds the examples that failed in the last one.

use std::collections::BTreeSet;
use std::sync::Arc;

use hotseat_document::Diagnostic;
use hotseat_engine::config::Project;
use hotseat_engine::run::{RunPlan, RunSettings};
use hotseat_report::store::{RunMetadata, RunOrigin, RunStore, StoreLimits, store_path};
pub(super) use hotseat_report::store::{RunStoreError, RunWriter};

use super::arguments::HarnessArguments;
use super::{Harness, exit};

impl Harness {
    /// Returns the examples that failed in the last run of this test file, as pairs of suite and name.
    pub(super) fn last_failed(&self, project: &Project) -> Result<BTreeSet<(String, String)>, u8> {
        let found = RunStore::open(&store_path(&project.root)).and_then(|store| {
            let head = store.last_run_of(Some(self.file), None)?;
            Ok((store.failed_cases(&head)?, head))
        });
        let (failed, head) = found.map_err(|error| match error {
            RunStoreError::NoRuns(_) | RunStoreError::NoSuchRun(_) => {
                self.usage_error([Diagnostic::new(error.to_string())])
            }
            RunStoreError::Unusable(_) => self.run_error(error.to_string()),
        })?;
        if failed.is_empty() {
            self.print_remark(&format!(
                "no examples selected: no example failed in the last run, {}",
                head.short_id()
            ));
            return Err(exit::NOTHING_SELECTED);
        }
        Ok(failed)
    }

    /// Creates the writer that saves the run.
    ///
    /// # Errors
    /// If the store cannot be opened.
    pub(super) fn run_writer(
        &self,
        arguments: &HarnessArguments,
        project: &Project,
        plan: &RunPlan,
        setting: &Arc<RunSettings>,
    ) -> Result<Option<RunWriter>, RunStoreError> {
        let redactor = project.redactor();
        let about = RunMetadata {
            setting: setting.clone(),
            total: plan.selected,
            parallel: setting.choices.options.parallel,
            hotseat: env!("CARGO_PKG_VERSION").to_string(),
            folder: self.context.folder.clone(),
            project: project.root.clone(),
            command: self.arguments.iter().map(|argument| redactor.text(argument).into_owned()).collect(),
            cases: plan.digest.clone(),
            origin: RunOrigin::Held,
            shard: None,
            of_all: plan.selected_in_all_shards,
            only_failed: arguments.last_failed,
            program: Some(self.file.to_string()),
        };
        let limits = StoreLimits::with_defaults(project.store.max_age, project.store.max_size);
        let keeping = RunWriter::new(&store_path(&project.root), about, limits)?;
        Ok(Some(keeping.with_redactor(redactor)))
    }
}
