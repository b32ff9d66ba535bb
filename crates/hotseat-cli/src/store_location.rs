//! Location of the run store, shared by all commands that read or write saved runs.

use std::path::PathBuf;

use hotseat_engine::config::{Project, StoreSettings};
use hotseat_report::store::{RunStore, RunStoreError, StoreLimits, store_path};

use crate::args::StoreArgs;
use crate::context::CliContext;
use crate::exit::ExitStatus;
use crate::list::find_project_file;

/// Location and settings of the run store.
pub struct StoreLocation {
    /// Path of the database.
    pub path: PathBuf,
    /// Settings of the project file, or the defaults if none was read.
    pub storing: StoreSettings,
}

/// Finds the run store. Errors have been printed.
pub fn locate_store(at: &StoreArgs, context: &CliContext) -> Result<StoreLocation, ExitStatus> {
    if let Some(path) = &at.store {
        return Ok(StoreLocation { path: context.folder.join(path), storing: StoreSettings::default() });
    }
    let Some((file, shown)) = find_project_file(at.config.as_deref(), None, context) else {
        return Ok(StoreLocation { path: store_path(&context.folder), storing: StoreSettings::default() });
    };
    let project = Project::read(&file, &shown, context.environment.clone());
    let project = project.map_err(|diagnostics| context.reject(diagnostics))?;
    Ok(StoreLocation { path: store_path(&project.root), storing: project.store })
}

/// Opens the run store. Errors have been printed.
pub fn open_store(at: &StoreArgs, context: &CliContext) -> Result<RunStore, ExitStatus> {
    let place = locate_store(at, context)?;
    RunStore::open(&place.path).map_err(|error| report_store_error(&error, context))
}

/// Prints an error of the run store and returns its exit status.
pub fn report_store_error(error: &RunStoreError, context: &CliContext) -> ExitStatus {
    context.report_error(error.to_string());
    match error {
        RunStoreError::NoRuns(_) | RunStoreError::NoSuchRun(_) => ExitStatus::Usage,
        RunStoreError::Unusable(_) => ExitStatus::RunError,
    }
}

/// Returns the prune limits of the project file, with defaults for missing ones.
pub fn prune_limits(storing: &StoreSettings) -> StoreLimits {
    StoreLimits::with_defaults(storing.max_age, storing.max_size)
}
