//! Names of the files and folders of a project.

use std::path::Path;

/// File names of the project file, in order of precedence.
pub const FILE_NAMES: [&str; 3] = ["hotseat.yaml", "hotseat.yml", "aguitest.config.yaml"];
/// Folder of the saved runs, in the project folder.
pub const STORE_FOLDER: &str = ".hotseat";

/// True for a file with the name of a project file.
pub fn is_project_file(path: &Path) -> bool {
    path.file_name().is_some_and(|name| FILE_NAMES.iter().any(|known| name == *known))
}
