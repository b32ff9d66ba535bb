//! Files that outputs must not overwrite.

use std::path::{Path, PathBuf};

use hotseat_document::Diagnostic;
use hotseat_engine::config::{ENV_FILE, Project, ProjectAgent, discover_suites};
use hotseat_engine::run::{CaseSelection, RunPlan};
use hotseat_report::store::store_path;

use crate::args::StoreArgs;
use crate::context::CliContext;
use crate::project_file::find_project_file;

/// Files that a command reads, each with what it is.
#[derive(Default)]
pub struct InputFiles(Vec<(FileIdentity, &'static str)>);

impl InputFiles {
    /// The files of a project: the project file, its `.env` file, its saved runs, and the files of its agents.
    pub fn of_project(project: &Project) -> InputFiles {
        let mut files = InputFiles::default();
        if let Some(name) = project.file.as_deref().and_then(|file| Path::new(file).file_name()) {
            files.add(&project.root.join(ENV_FILE), "the `.env` file");
            files.add(&project.root.join(name), "the project file");
        }
        files.add_store_file(&store_path(&project.root));
        let usual = project.agent_of(&project.root);
        project.agents.iter().chain(&usual).for_each(|agent| files.add_agent(project, agent));
        project.connector_files().for_each(|file| files.add(&file, "a file of a connector"));
        files
    }

    /// The files of the project that saved runs belong to, and of its suites. Reads nothing if no output exists yet.
    pub fn of_saved_runs<'a>(
        location: &StoreArgs,
        mut outputs: impl Iterator<Item = &'a PathBuf>,
        context: &CliContext,
    ) -> InputFiles {
        if !outputs.any(|path| context.folder.join(path).exists()) {
            return InputFiles::default();
        }
        let environment = context.environment.clone();
        let without_file = |root: PathBuf| Project::without_file(root, environment.clone());
        let project = match find_project_file(location.config.as_deref(), None, context) {
            Some((path, shown)) => match context.read_project(&path, &shown) {
                Ok(project) => project,
                Err(_) => {
                    let root = path.parent().unwrap_or(Path::new("")).to_path_buf();
                    let mut project = without_file(root);
                    project.file = Some(shown.into());
                    project
                }
            },
            None => without_file(context.folder.clone()),
        };
        let mut files = InputFiles::of_project(&project);
        files.add_store(location, context);
        let suites = discover_suites(&[], &context.folder, &project).suites;
        suites.iter().for_each(|suite| files.add(&suite.path, "a suite of the project"));
        if let Ok(plan) = RunPlan::load(suites, CaseSelection::default(), &project) {
            files.add_plan(&plan, &project);
        }
        files
    }

    /// Adds the files of suites, and those that their cases name.
    pub fn add_plan(&mut self, plan: &RunPlan, project: &Project) {
        plan.suites().filter_map(|suite| suite.file()).for_each(|file| self.add(file, "a suite of this run"));
        plan.contacted_agents().for_each(|agent| self.add_agent(project, agent));
        plan.case_files.iter().for_each(|(file, what)| self.add(file, what));
        project.scripts().loaded_files().iter().for_each(|file| self.add(file, "a file of a script"));
    }

    fn add_agent(&mut self, project: &Project, agent: &ProjectAgent) {
        let what = if agent.is_replayed() { "a recording" } else { "a file of an agent" };
        agent_files(project, agent).iter().for_each(|file| self.add(file, what));
    }

    /// Adds a database with its files of unfinished transactions.
    fn add_store_file(&mut self, path: &Path) {
        for suffix in ["", "-wal", "-shm", "-journal"] {
            let mut file = path.as_os_str().to_os_string();
            file.push(suffix);
            self.add(Path::new(&file), "the saved runs");
        }
    }

    /// Adds a file, if it exists.
    pub fn add(&mut self, path: &Path, what: &'static str) {
        self.0.extend(FileIdentity::read(path).map(|file| (file, what)));
    }

    /// Adds the file of `--store`.
    fn add_store(&mut self, location: &StoreArgs, context: &CliContext) {
        location.store.iter().for_each(|path| self.add_store_file(&context.folder.join(path)));
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

/// Resolves a path, whether the file exists or not.
pub fn resolve_path(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    match (path.parent().and_then(|folder| folder.canonicalize().ok()), path.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => path.to_path_buf(),
    }
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
