//! Names of the files and folders of a project.

/// File names of the project file, in order of precedence.
pub const FILE_NAMES: [&str; 3] = ["hotseat.yaml", "hotseat.yml", "aguitest.config.yaml"];
/// Folder of the saved runs, in the project folder.
pub const STORE_FOLDER: &str = ".hotseat";
