//! Location of the project file, shared by all commands that read it.

use std::path::{Path, PathBuf};

use hotseat_engine::config::{Project, display_path};

use crate::context::CliContext;

/// Returns the project file and its display name: `config` if given, else the nearest one in or above the
/// working folder, else above `near`.
pub fn find_project_file(
    config: Option<&Path>,
    near: Option<&Path>,
    context: &CliContext,
) -> Option<(PathBuf, String)> {
    if let Some(config) = config {
        return Some((context.folder.join(config), config.to_string_lossy().into_owned()));
    }
    let above = |near: &Path| Project::find(&context.folder.join(near));
    let path = Project::find(&context.folder).or_else(|| near.and_then(above))?;
    let name = display_path(&path, &context.folder);
    Some((path, name))
}
