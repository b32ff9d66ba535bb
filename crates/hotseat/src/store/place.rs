//! Where runs are kept.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The folder, beside the project file.
pub const FOLDER: &str = ".hotseat";

/// The store of a project that lies in a folder.
pub fn store_of(project: &Path) -> PathBuf {
    project.join(FOLDER).join("runs.db")
}

/// Makes the folder of a store. Nothing in it is to be committed: what agents said may be anything.
pub(super) fn make_folder(store: &Path) -> io::Result<()> {
    let Some(folder) = store.parent() else { return Ok(()) };
    fs::create_dir_all(folder)?;
    let ignore = folder.join(".gitignore");
    let is_own = folder.file_name().is_some_and(|name| name == FOLDER);
    if is_own && !ignore.exists() {
        fs::write(ignore, "# Runs that were kept: hotseat runs\n*\n")?;
    }
    Ok(())
}
