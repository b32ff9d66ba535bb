//! Files that outputs must not overwrite.

use std::path::{Path, PathBuf};

use hotseat_document::Diagnostic;
use hotseat_engine::config::{ENV_FILE, Project, ProjectAgent};

use crate::args::StoreArgs;
use crate::context::CliContext;
use crate::project_file::find_project_file;

/// Files that a command reads, each with what it is.
#[derive(Default)]
pub struct InputFiles(Vec<(FileIdentity, &'static str)>);

impl InputFiles {
    /// The project file and its `.env` file.
    pub fn of_project(config: Option<&Path>, context: &CliContext) -> InputFiles {
        let mut files = InputFiles::default();
        if let Some((path, _)) = find_project_file(config, None, context) {
            files.add(&path.with_file_name(ENV_FILE), "the `.env` file");
            files.add(&path, "the project file");
        }
        files
    }

    /// Adds a file, if it exists.
    pub fn add(&mut self, path: &Path, what: &'static str) {
        self.0.extend(FileIdentity::read(path).map(|file| (file, what)));
    }

    /// Adds the file of `--store`.
    pub fn add_store(&mut self, location: &StoreArgs, context: &CliContext) {
        location.store.iter().for_each(|path| self.add(&context.folder.join(path), "the saved runs"));
    }

    /// Says what the file at a path is, if it is one of these files.
    fn input_at(&self, path: &Path) -> Option<&'static str> {
        let output = FileIdentity::read(path)?;
        self.0.iter().find(|(input, _)| *input == output).map(|(_, what)| *what)
    }

    /// Describes each output that is one of these files, perhaps by another name.
    pub fn conflicts<'a>(
        &self,
        outputs: impl Iterator<Item = (&'a str, &'a PathBuf)>,
        context: &CliContext,
    ) -> Vec<Diagnostic> {
        let conflict = |(flag, path): (&str, &PathBuf)| {
            let output = context.folder.join(path);
            let what = self.input_at(&output).or_else(|| protected_kind(&output))?;
            let message = format!("{flag} {} would overwrite {what}", path.display());
            Some(Diagnostic::new(message).help("choose another file name"))
        };
        outputs.filter_map(conflict).collect()
    }
}

/// Extensions of programs, which may be parts of others that a run reads.
const PROGRAM_EXTENSIONS: [&str; 9] = ["cjs", "cts", "js", "mjs", "mts", "py", "rs", "sh", "ts"];

/// Says what a file is that no output is written to, whether a run reads it or not.
fn protected_kind(path: &Path) -> Option<&'static str> {
    let is_program =
        path.extension().is_some_and(|extension| PROGRAM_EXTENSIONS.iter().any(|known| extension == *known));
    match path.file_name().is_some_and(|name| name == ENV_FILE) {
        true => Some("the `.env` file"),
        false => (is_program && path.is_file()).then_some("a program"),
    }
}

/// Files of an agent: those that its definition names, and no others of its folder, where outputs may be written.
pub fn agent_files(project: &Project, agent: &ProjectAgent) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    if let Some(start) = &agent.start {
        paths.extend(start.command.iter().map(|word| start.folder.join(word)));
    }
    if let Ok(target) = project.bind_without_hooks(agent) {
        paths.extend(target.named_paths());
    }
    paths.retain(|path| path.is_file());
    paths
}

/// An existing file, the same for all its links.
#[derive(PartialEq, Eq)]
struct FileIdentity {
    #[cfg(unix)]
    number: (u64, u64),
    #[cfg(not(unix))]
    path: PathBuf,
}

impl FileIdentity {
    #[cfg(unix)]
    fn read(path: &Path) -> Option<FileIdentity> {
        use std::os::unix::fs::MetadataExt as _;
        let metadata = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
        Some(FileIdentity { number: (metadata.dev(), metadata.ino()) })
    }

    #[cfg(not(unix))]
    fn read(path: &Path) -> Option<FileIdentity> {
        Some(FileIdentity { path: path.canonicalize().ok()? })
    }
}
