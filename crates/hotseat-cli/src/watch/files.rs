//! The files that a run depends on, and what runs again after a change.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hotseat_engine::config::{ENV_FILE, Project, discover_suites, display_path};
use hotseat_report::reporters::format_count;

use crate::args::SelectionArgs;
use crate::context::CliContext;
use crate::folders::walk_files;
use crate::input_files::agent_files;
use crate::project_file::find_project_file;

/// Maximum number of watched files. Looking at more would take too long.
const MAX_WATCHED_FILES: usize = 3_000;
/// How deep scripts are searched.
const MAX_DEPTH: usize = 8;
/// Number of files that a message names.
const MAX_NAMED: usize = 5;
/// Extensions of scripts.
const SCRIPTS: [&str; 4] = ["ts", "mts", "js", "mjs"];

/// Modification time and size. `None` for a file that does not exist.
type FileStamp = Option<(SystemTime, u64)>;

/// Role of a watched file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FileRole {
    /// The project file or `.env`.
    Project,
    Agent,
    Suite,
    Script,
}

/// The watched files with their state when they were last looked at.
#[derive(Debug, Default)]
pub(super) struct WatchedFiles {
    files: BTreeMap<PathBuf, (FileRole, FileStamp)>,
    /// Files found by the latest search that were not known before.
    new: Vec<PathBuf>,
    is_truncated: bool,
    /// True if the project saves runs.
    saves_runs: bool,
}

/// Cases that run again after a change.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ChangeEffect {
    All,
    /// Paths of suites as for the command line.
    Suites(Vec<String>),
    Nothing,
}

impl WatchedFiles {
    /// Finds the files of a run.
    pub(super) fn collect(args: &SelectionArgs, context: &CliContext) -> WatchedFiles {
        let mut watched = WatchedFiles::default();
        watched.discover(args, context);
        watched.new.clear();
        watched
    }

    /// Finds files that were added. If the project cannot be read, the known files stay.
    pub(super) fn discover(&mut self, args: &SelectionArgs, context: &CliContext) {
        let mut found: BTreeMap<PathBuf, FileRole> = BTreeMap::new();
        let near = args.first_path(&context.folder);
        let file = find_project_file(args.config.as_deref(), near, context);
        let project = match &file {
            Some((path, shown)) => {
                found.insert(path.clone(), FileRole::Project);
                found.insert(path.with_file_name(ENV_FILE), FileRole::Project);
                context.read_project(path, shown).ok()
            }
            None => Some(Project::without_file(context.folder.clone(), context.environment.clone())),
        };
        let Some(project) = project else { return };
        self.saves_runs = project.store.enabled;
        for suite in discover_suites(&args.paths, &context.folder, &project).suites {
            found.insert(suite.path.clone(), FileRole::Suite);
        }
        let agents = project
            .agents
            .iter()
            .chain(project.agent_of(&project.root).as_ref())
            .cloned()
            .collect::<Vec<_>>();
        for agent in &agents {
            for path in agent_files(&project, agent) {
                found.entry(path).or_insert(FileRole::Agent);
            }
        }
        let is_script = |path: &Path| has_extension(path, &SCRIPTS);
        for path in walk_files(&project.root, MAX_DEPTH, MAX_WATCHED_FILES, &is_script) {
            found.entry(path).or_insert(FileRole::Script);
        }
        self.is_truncated = found.len() > MAX_WATCHED_FILES;
        let is_first = self.files.is_empty();
        for (path, role) in found.into_iter().take(MAX_WATCHED_FILES) {
            if !self.files.contains_key(&path) {
                let stamp = stamp_of(&path);
                if !is_first && stamp.is_some() {
                    self.new.push(path.clone());
                }
                self.files.insert(path, (role, stamp));
            }
        }
    }

    /// True if the project saves runs.
    pub(super) fn saves_runs(&self) -> bool {
        self.saves_runs
    }

    /// Returns the files that changed since the last call.
    pub(super) fn take_changes(&mut self) -> BTreeSet<PathBuf> {
        let mut changed: BTreeSet<PathBuf> = self.new.drain(..).collect();
        for (path, (_, known)) in &mut self.files {
            let stamp = stamp_of(path);
            if stamp != *known {
                *known = stamp;
                changed.insert(path.clone());
            }
        }
        changed
    }

    /// Says how many files are watched, and which decide on everything.
    pub(super) fn describe(&self) -> String {
        let count = |role: FileRole| {
            self.files.values().filter(|(known, stamp)| *known == role && stamp.is_some()).count()
        };
        let parts = [
            (FileRole::Suite, "suite"),
            (FileRole::Script, "script"),
            (FileRole::Agent, "agent file"),
            (FileRole::Project, "project file"),
        ];
        let parts = parts.iter().map(|(role, name)| (count(*role), name)).filter(|(count, _)| *count > 0);
        let parts: Vec<String> = parts.map(|(count, name)| format_count(count, name)).collect();
        let more = if self.is_truncated {
            format!("; more than {MAX_WATCHED_FILES}, the rest is not watched")
        } else {
            String::new()
        };
        format!("{}{more}", parts.join(", "))
    }

    /// Determines what runs again after a change.
    pub(super) fn effect(
        &self,
        changed: &BTreeSet<PathBuf>,
        args: &SelectionArgs,
        context: &CliContext,
    ) -> ChangeEffect {
        let role = |path: &PathBuf| self.files.get(path).map(|(role, _)| *role);
        if changed.iter().any(|path| matches!(role(path), Some(FileRole::Project | FileRole::Agent))) {
            return ChangeEffect::All;
        }
        let mut suites: BTreeSet<PathBuf> =
            changed.iter().filter(|path| role(path) == Some(FileRole::Suite)).cloned().collect();
        let scripts: Vec<&PathBuf> =
            changed.iter().filter(|path| role(path) == Some(FileRole::Script)).collect();
        if !scripts.is_empty() {
            match self.suites_with(&scripts) {
                Some(users) => suites.extend(users),
                None => return ChangeEffect::All,
            }
        }
        let paths: Vec<String> = suites
            .iter()
            .filter(|path| path.is_file())
            .flat_map(|path| named_paths(path, args, context))
            .collect();
        if paths.is_empty() { ChangeEffect::Nothing } else { ChangeEffect::Suites(paths) }
    }

    /// Suites that use one of these scripts, directly or through other scripts: those whose text names it. `None` if
    /// the project file does, or no suite.
    fn suites_with(&self, scripts: &[&PathBuf]) -> Option<BTreeSet<PathBuf>> {
        let texts: Vec<(&PathBuf, FileRole, String)> = self
            .files
            .iter()
            .filter(|(_, (role, stamp))| *role != FileRole::Agent && stamp.is_some())
            .filter_map(|(path, (role, _))| Some((path, *role, hotseat_document::read_text_file(path).ok()?)))
            .collect();
        let mut open: Vec<String> = scripts.iter().filter_map(|path| stem_of(path)).collect();
        let mut seen: BTreeSet<String> = open.iter().cloned().collect();
        let mut users = BTreeSet::new();
        while let Some(stem) = open.pop() {
            for (path, role, text) in &texts {
                if !text.contains(&stem) {
                    continue;
                }
                match role {
                    FileRole::Project => return None,
                    FileRole::Suite => {
                        users.insert((*path).clone());
                    }
                    FileRole::Script => {
                        let next = stem_of(path).filter(|next| seen.insert(next.clone()));
                        open.extend(next);
                    }
                    FileRole::Agent => {}
                }
            }
        }
        (!users.is_empty()).then_some(users)
    }
}

/// Names changed files in one line.
pub(super) fn describe_changes(changed: &BTreeSet<PathBuf>, context: &CliContext) -> String {
    let named: Vec<String> =
        changed.iter().take(MAX_NAMED).map(|path| display_path(path, &context.folder)).collect();
    match changed.len().saturating_sub(MAX_NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// How the command line names a suite: with the lines and names that the user selected in it, if there are some.
fn named_paths(suite: &Path, args: &SelectionArgs, context: &CliContext) -> Vec<String> {
    let is_part_of_suite = |written: &&String| {
        hotseat_engine::config::split_part(written).is_some_and(|(file, _)| {
            context.folder.join(file) == suite && !context.folder.join(written).exists()
        })
    };
    let parts: Vec<String> = args.paths.iter().filter(is_part_of_suite).cloned().collect();
    if parts.is_empty() { vec![display_path(suite, &context.folder)] } else { parts }
}

fn has_extension(path: &Path, known: &[&str]) -> bool {
    path.extension().and_then(OsStr::to_str).is_some_and(|extension| known.contains(&extension))
}

fn stem_of(path: &Path) -> Option<String> {
    Some(path.file_stem()?.to_str()?.to_string())
}

fn stamp_of(path: &Path) -> FileStamp {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}
