//! File paths of the run store.

use std::path::{Path, PathBuf};
use std::{fs, io};

use hotseat_engine::config::STORE_FOLDER;

/// Returns the path of the store of a project.
pub fn store_path(project: &Path) -> PathBuf {
    project.join(STORE_FOLDER).join("runs.db")
}

/// Creates the folder of a store. Its `.gitignore` excludes everything, because agents may have said
/// anything.
pub(super) fn create_store_folder(store: &Path) -> io::Result<()> {
    let Some(folder) = store.parent() else { return Ok(()) };
    fs::create_dir_all(folder)?;
    let ignore = folder.join(".gitignore");
    let is_own = folder.file_name().is_some_and(|name| name == STORE_FOLDER);
    if is_own && !ignore.exists() {
        fs::write(ignore, "# Saved runs: see `hotseat runs`\n*\n")?;
    }
    Ok(())
}
