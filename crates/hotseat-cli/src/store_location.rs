//! Location of the run store, shared by all commands that read or write saved runs.

use std::path::{Path, PathBuf};

use hotseat_engine::config::{StoreSettings, display_path, is_project_file};
use hotseat_report::store::{RunStore, RunStoreError, StoreLimits, store_path};

use crate::args::StoreArgs;
use crate::context::CliContext;
use crate::exit::ExitStatus;
use crate::folders::walk_files;
use crate::project_file::find_project_file;

/// How deep projects below the working folder are searched.
const MAX_SEARCH_DEPTH: usize = 4;
/// How many projects are listed.
const MAX_LISTED_PROJECTS: usize = 10;

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
    let found = find_project_file(at.config.as_deref(), None, context);
    let found = found.or_else(|| find_project_below(context));
    let Some((file, shown)) = found else {
        return Ok(StoreLocation { path: store_path(&context.folder), storing: StoreSettings::default() });
    };
    let project = context.read_project(&file, &shown);
    let project = project.map_err(|diagnostics| context.reject(diagnostics))?;
    Ok(StoreLocation { path: store_path(&project.root), storing: project.store })
}

/// Finds the only project below the working folder that has saved runs: `hotseat test FOLDER` uses the project of
/// the folder, too. A note says which one.
fn find_project_below(context: &CliContext) -> Option<(PathBuf, String)> {
    if store_path(&context.folder).exists() {
        return None;
    }
    let is_project = |path: &Path| {
        is_project_file(path) && path.parent().is_some_and(|folder| store_path(folder).exists())
    };
    let mut found = walk_files(&context.folder, MAX_SEARCH_DEPTH, MAX_LISTED_PROJECTS, &is_project);
    found.sort();
    let shown = |path: &PathBuf| display_path(path, &context.folder);
    match found.as_slice() {
        [only] => {
            context.print_message(&format!("note: runs of {}", shown(only)));
            Some((only.clone(), shown(only)))
        }
        [] => None,
        several => {
            let all: Vec<String> = several.iter().map(shown).collect();
            let message =
                format!("note: several projects have runs, select one with --config: {}", all.join(", "));
            context.print_message(&message);
            None
        }
    }
}

/// Opens the run store. Errors have been printed.
pub fn open_store(at: &StoreArgs, context: &CliContext) -> Result<RunStore, ExitStatus> {
    let place = locate_store(at, context)?;
    RunStore::open(&place.path).map_err(|error| report_store_error(&error, context))
}

/// Prints an error of the run store and returns its exit status.
pub fn report_store_error(error: &RunStoreError, context: &CliContext) -> ExitStatus {
    context.report_errors([error.to_diagnostic()]);
    match error {
        RunStoreError::NoRuns(_) | RunStoreError::NoSuchRun(_) | RunStoreError::SeveralCases { .. } => {
            ExitStatus::Usage
        }
        RunStoreError::Unusable(_) | RunStoreError::Damaged(_) => ExitStatus::RunError,
    }
}

/// Returns the prune limits of the project file, with defaults for missing ones.
pub fn prune_limits(storing: &StoreSettings) -> StoreLimits {
    StoreLimits::with_defaults(storing.max_age, storing.max_size)
}
