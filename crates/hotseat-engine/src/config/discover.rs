//! Suite discovery: files, folders and globs of the command line, or of the project.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::{self, FileType};
use std::io;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use ignore::{DirEntry, WalkBuilder};

use super::paths::{SuitePart, display_path, is_case_word, split_part};
use super::project::{Project, default_suites};
use super::project_files::{FILE_NAMES, is_project_file};
use crate::cases::{EXAMPLE_CASE, Suite, WRITTEN_SUITES, is_program, is_suite_name, is_test_script};
use hotseat_document::{Diagnostic, nearest};
use hotseat_script::{TestFileOwner, TestFiles};
use hotseat_trace::format_count;

/// Discovered suites, sorted and without duplicates.
#[derive(Debug, Default)]
pub struct DiscoveredSuites {
    /// The suites.
    pub suites: Vec<Suite>,
    /// Lines that are named with their suites: `FILE:LINE`. Only these cases are meant, unless the suite is `whole`.
    pub lines: Vec<(PathBuf, u32)>,
    /// The same for ids or names: `FILE::NAME`.
    pub named: Vec<(PathBuf, String)>,
    /// Suites that are also named without a line or name, which are meant as a whole.
    pub whole: HashSet<PathBuf>,
    /// Words that are no paths: parts of names, as of [`is_case_word`].
    pub words: Vec<String>,
    /// Diagnostics of paths without suites.
    pub missing: Vec<Diagnostic>,
    /// Diagnostics of invalid globs.
    pub mistakes: Vec<Diagnostic>,
    /// Notes about suites that are nearer to another project file, and about test files that are left out.
    pub notes: Vec<Diagnostic>,
}

/// What a search finds beside suites.
#[derive(Debug, Default)]
struct WalkRemarks {
    /// Diagnostics of files that cannot be read.
    mistakes: Vec<Diagnostic>,
    /// Display paths of files with names of test files that have no tests of Hotseat. Tests of other tools import packages,
    /// and scripts of hooks export functions.
    without_tests: BTreeSet<String>,
    /// Display paths of suites that have other names than those that are looked for.
    misnamed: BTreeSet<String>,
}

/// How a file is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FileFit {
    /// Not at all, but its name is like those of suites.
    Misnamed,
    /// By a pattern or a folder. Files of other test tools, and helper scripts for hooks, may have matching names.
    Pattern,
    /// By its name.
    Name,
}

/// True if the name of a file is like those of suites, or is that of a test script of other tools.
fn is_misnamed(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("").to_ascii_lowercase();
    let written = name.replace(".tests.", ".test.");
    WRITTEN_SUITES.iter().any(|ending| written.ends_with(ending)) || is_test_script(path)
}

/// Returns how an entry of `suites` means the files that it matches.
fn fit_of(entry: &str) -> FileFit {
    if has_wildcard(entry) { FileFit::Pattern } else { FileFit::Name }
}

fn has_wildcard(pattern: &str) -> bool {
    pattern.contains(['*', '?', '[', '{'])
}

/// Finds suites. `written` are paths relative to `folder`, and words; without a path, the globs of the project are
/// used.
///
/// A file is accepted under any name, except that scripts must end in `_test`. Folders and project globs skip
/// hidden folders, `node_modules`, `target` and files that the repository ignores.
pub fn discover_suites(written: &[String], folder: &Path, project: &Project) -> DiscoveredSuites {
    let (words, paths): (Vec<String>, Vec<String>) =
        written.iter().cloned().partition(|written| is_case_word(written, folder));
    let mut found = DiscoveredSuites { words, ..DiscoveredSuites::default() };
    let mut remarks = WalkRemarks::default();
    if paths.is_empty() {
        find_by_patterns(folder, project, &mut found, &mut remarks);
    }
    find_written(&paths, folder, project, &mut found, &mut remarks);
    found.mistakes.append(&mut remarks.mistakes);
    found.suites.sort_by(|a, b| a.path.cmp(&b.path));
    let mut seen = HashSet::new();
    found
        .suites
        .retain(|suite| seen.insert(suite.path.canonicalize().unwrap_or_else(|_| suite.path.clone())));
    found.notes = nested_projects(&seen, folder, project);
    found.notes.extend(second_project_file(project));
    found.notes.extend(remarks.notes());
    found
}

/// Adds the suites that the patterns of the project file find.
fn find_by_patterns(
    folder: &Path,
    project: &Project,
    found: &mut DiscoveredSuites,
    remarks: &mut WalkRemarks,
) {
    let mut any = Vec::new();
    for pattern in &project.suites {
        match compile_glob(pattern) {
            Ok(glob) => any.push((glob, fit_of(pattern))),
            Err(diagnostic) => found.mistakes.push(diagnostic),
        }
    }
    let uses_default = project.suites == default_suites();
    let fits = |path: &Path| {
        let fit = any.iter().filter(|(glob, _)| glob.is_match(path)).map(|(_, fit)| *fit).max();
        fit.or_else(|| (uses_default && is_misnamed(path)).then_some(FileFit::Misnamed))
    };
    let bases = glob_bases(&project.suites);
    let suites = walk_suites(&project.root, folder, bases, fits, remarks);
    found.suites.extend(suites);
    found.mistakes.append(&mut remarks.mistakes);
    if !found.suites.is_empty() {
        found.mistakes.extend(lost_entries(&found.suites, project));
    } else if found.mistakes.is_empty() {
        let message = format!(
            "no suites found: no file under {} matches {}",
            display_path(&project.root, folder),
            project.suites.join(", ")
        );
        let bases = glob_bases(&project.suites);
        let first_note = remarks.notes().next().map(|note| note.message);
        let mut unread = WalkRemarks::default();
        let ignored =
            walk_suites_with(&project.root, folder, bases, fits, IgnoredFiles::Included, &mut unread);
        let ignored = ignored.iter().map(|suite| &suite.shown).min();
        let ignored =
            ignored.map(|shown| format!("a `.gitignore` names {shown}; pass it as an argument to run it"));
        let help = ignored.or(first_note).unwrap_or_else(|| missing_suite_help(project, uses_default));
        found.missing.push(Diagnostic::new(message).help(help));
    }
}

/// Says how to get a first suite. `hotseat init` creates one only together with the project file.
fn missing_suite_help(project: &Project, uses_default: bool) -> String {
    match (&project.file, uses_default) {
        (None, _) => "pass a file, or run `hotseat init` to create an example".to_string(),
        (Some(_), true) => format!("write a suite, such as `tests/first.test.yaml` with {EXAMPLE_CASE}"),
        (Some(_), false) => {
            format!("correct `suites` in the project file, or write a suite with {EXAMPLE_CASE}")
        }
    }
}

/// Adds the suites at the paths of the command line: files, their lines and cases, folders and globs.
fn find_written(
    paths: &[String],
    folder: &Path,
    project: &Project,
    found: &mut DiscoveredSuites,
    remarks: &mut WalkRemarks,
) {
    for written in paths {
        let path = folder.join(written);
        if !path.exists()
            && let Some((file, part)) = split_part(written)
            && folder.join(file).is_file()
        {
            let path = folder.join(file);
            match part {
                SuitePart::Line(line) => found.lines.push((path.clone(), line)),
                SuitePart::Name(name) => found.named.push((path.clone(), name.to_string())),
            }
            found.suites.push(Suite::new(path.clone(), display_path(&path, folder)));
            continue;
        }
        let suites = if path.is_dir() {
            let named = |path: &Path| match is_suite_name(path) {
                true => Some(FileFit::Pattern),
                false => is_misnamed(path).then_some(FileFit::Misnamed),
            };
            walk_suites(&path, folder, vec![PathBuf::new()], named, remarks)
        } else if path.is_file() && project.file.is_some() && is_project_file(&path) {
            let message = format!("{written} is a project file, not a suite");
            found
                .mistakes
                .push(Diagnostic::new(message).help("leave it out; its agents are tested by the suites"));
            continue;
        } else if path.is_file() {
            vec![Suite::new(path.clone(), display_path(&path, folder))]
        } else if has_wildcard(written) {
            match compile_glob(written) {
                Ok(glob) => {
                    // As if the shell had replaced the glob by the names of the files.
                    let fits = |path: &Path| {
                        (glob.is_match(path) && !is_project_file(path)).then_some(FileFit::Name)
                    };
                    walk_suites(folder, folder, glob_bases([written]), fits, remarks)
                }
                Err(diagnostic) => {
                    found.mistakes.push(diagnostic);
                    continue;
                }
            }
        } else {
            found.missing.push(missing_path(written, folder, project));
            continue;
        };
        if suites.is_empty() {
            let rule = if path.is_dir() {
                "no suites (*.test.yaml, .yml, .json or .jsonl, *_test.ts with tests) in"
            } else {
                "no files match"
            };
            let help = remarks.notes().next().map(|note| note.message);
            found.missing.push(Diagnostic { help, ..Diagnostic::new(format!("{rule} {written}")) });
        }
        found.whole.extend(suites.iter().map(|suite| suite.path.clone()));
        found.suites.extend(suites);
    }
}

impl WalkRemarks {
    /// Returns notes about the files that are left out.
    fn notes(&self) -> impl Iterator<Item = Diagnostic> {
        let without_tests = name_first(&self.without_tests).map(|names| {
            format!(
                "left out: {names}, without an import of `hotseat` and without an exported function `Test…`"
            )
        });
        let misnamed = name_first(&self.misnamed).map(|names| {
            format!("left out because of their names: {names}; names of suites end in `.test.yaml`, `.test.json`, `.test.jsonl` or `_test.ts`")
        });
        without_tests.into_iter().chain(misnamed).map(Diagnostic::new)
    }
}

/// Names the first files, and the number of the others. `None` if there are none.
fn name_first(files: &BTreeSet<String>) -> Option<String> {
    const MAX_NAMES: usize = 3;
    let more = files.len().saturating_sub(MAX_NAMES);
    let mut names: Vec<String> = files.iter().take(MAX_NAMES).cloned().collect();
    names.extend((more > 0).then(|| format!("{more} more")));
    (!names.is_empty()).then(|| names.join(", "))
}

/// Notes about project files between suites, given by their canonical paths, and the root of the project, one for each: their
/// agents are not tested.
fn nested_projects(suites: &HashSet<PathBuf>, folder: &Path, project: &Project) -> Vec<Diagnostic> {
    let Some(file) = &project.file else { return Vec::new() };
    let root = project.root.canonicalize().unwrap_or_else(|_| project.root.clone());
    let mut nested: BTreeMap<PathBuf, usize> = BTreeMap::new();
    let mut known: HashMap<PathBuf, Option<PathBuf>> = HashMap::new();
    for suite in suites {
        let Some(own) = suite.parent().filter(|own| own.starts_with(&root)) else { continue };
        let nearest = known.entry(own.to_path_buf()).or_insert_with(|| {
            let within = own.ancestors().take_while(|above| **above != *root);
            within.flat_map(|above| FILE_NAMES.map(|name| above.join(name))).find(|file| file.is_file())
        });
        if let Some(nearest) = nearest {
            *nested.entry(nearest.clone()).or_default() += 1;
        }
    }
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    let note = |(nearest, suites): (PathBuf, usize)| {
        let verb = if suites == 1 { "tests" } else { "test" };
        let (nearest, suites) = (display_path(&nearest, &folder), format_count(suites, "suite"));
        Diagnostic::new(format!(
            "{nearest} is not used: its {suites} of this run {verb} the agents of {file}; run them in the folder of that file, or leave them out of `suites`"
        ))
    };
    nested.into_iter().map(note).collect()
}

/// Note about a second project file in the folder of the project.
fn second_project_file(project: &Project) -> Option<Diagnostic> {
    let [used, second, _] = FILE_NAMES;
    let is_read = project.file.as_ref().is_some_and(|file| Path::new(&**file).ends_with(used));
    (is_read && project.root.join(second).is_file())
        .then(|| Diagnostic::new(format!("{second} is not used: {used} beside it is; remove one of them")))
}

/// Diagnostics of entries of `suites` that name a file that is no suite, or a folder that does not exist: the tests that
/// somebody looks for there would never run.
fn lost_entries(suites: &[Suite], project: &Project) -> Vec<Diagnostic> {
    let lost = project.suites.iter().zip(glob_bases(&project.suites)).filter_map(|(entry, base)| {
        let path = project.root.join(&base);
        let is_literal = path == project.root.join(entry.strip_prefix("./").unwrap_or(entry));
        if path.exists() && !(is_literal && suites.iter().all(|suite| suite.path != path)) {
            return None;
        }
        let lost =
            Diagnostic::new(format!("no suite matches `{entry}`, an entry of `suites` in the project file"));
        Some(match path.is_dir() {
            true => {
                lost.help(format!("for the suites below a folder, write `{}/**/*.test.yaml`", base.display()))
            }
            false => lost.help("correct its path, or remove it"),
        })
    });
    lost.collect()
}

/// Returns the suite of the project, or the folder with suites, whose path is most similar to a misspelt one.
pub fn nearest_suite(written: &str, folder: &Path, project: &Project) -> Option<String> {
    const MAX_SUITES: usize = 10_000;
    let globs: Vec<GlobMatcher> =
        project.suites.iter().filter_map(|pattern| compile_glob(pattern).ok()).collect();
    let fits = |path: &Path| globs.iter().any(|glob| glob.is_match(path)).then_some(FileFit::Pattern);
    let bases = glob_bases(&project.suites);
    let known = walk_suites(&project.root, folder, bases, fits, &mut WalkRemarks::default());
    let shown: Vec<&Path> = known.iter().take(MAX_SUITES).map(|suite| Path::new(&*suite.shown)).collect();
    let with_name = |path: &&Path| path.file_name().is_some_and(|name| name == written);
    // A name without its folder, or a misspelt path.
    if let Some(path) = shown.iter().copied().find(with_name) {
        return path.to_str().map(str::to_string);
    }
    let folders: BTreeSet<&Path> = shown.iter().flat_map(|path| path.ancestors().skip(1)).collect();
    let all = shown.iter().copied().chain(folders).filter_map(Path::to_str);
    nearest(written.trim_end_matches('/'), all).map(str::to_string)
}

/// Returns the error of a path that does not exist, with the most similar suite.
pub fn missing_path(written: &str, folder: &Path, project: &Project) -> Diagnostic {
    let file = split_part(written).map_or(written, |(file, _)| file);
    if folder.join(file).exists() {
        return unreadable_suite(file);
    }
    let missing = Diagnostic::new(format!("no such file or folder: {written}"));
    match nearest_suite(file, folder, project) {
        Some(near) => missing.help(format!("did you mean `{near}{}`?", &written[file.len()..])),
        None => missing,
    }
}

/// The error of a pipe or device in place of a suite.
fn unreadable_suite(shown: &str) -> Diagnostic {
    let message = format!("{shown} is neither a file nor a folder, so it cannot be read several times");
    Diagnostic::new(message).help("save it as a file")
}

fn compile_glob(pattern: &str) -> Result<GlobMatcher, Diagnostic> {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    glob.map(|glob| glob.compile_matcher())
        .map_err(|error| Diagnostic::new(format!("`{pattern}` is not a glob: {error}")))
}

/// Folders below which all files lie that match the globs.
fn glob_bases<'p>(patterns: impl IntoIterator<Item = &'p String>) -> Vec<PathBuf> {
    let base = |pattern: &String| {
        let parts = pattern.strip_prefix("./").unwrap_or(pattern).split('/');
        parts.take_while(|part| !part.contains(['*', '?', '[', '{', '\\'])).collect()
    };
    patterns.into_iter().map(base).collect()
}

/// Files that a `.gitignore` names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IgnoredFiles {
    LeftOut,
    Included,
}

/// Finds the files below the folders `bases` of `root` whose relative path matches, without those that a `.gitignore` names.
fn walk_suites(
    root: &Path,
    folder: &Path,
    bases: Vec<PathBuf>,
    fits: impl Fn(&Path) -> Option<FileFit>,
    remarks: &mut WalkRemarks,
) -> Vec<Suite> {
    walk_suites_with(root, folder, bases, fits, IgnoredFiles::LeftOut, remarks)
}

/// True if a folder is part of a git repository.
fn is_in_repository(folder: &Path) -> bool {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    folder.ancestors().any(|above| above.join(".git").exists())
}

/// Returns the type of an entry, or of what it links to.
fn followed_type(entry: &DirEntry) -> io::Result<FileType> {
    match entry.file_type() {
        Some(kind) if !kind.is_symlink() => Ok(kind),
        _ => fs::metadata(entry.path()).map(|metadata| metadata.file_type()),
    }
}

/// Like [`walk_suites`]. A link to a file is a suite, too; a link to a folder is not followed. What cannot be read is a
/// mistake: its cases would be missing without a word.
fn walk_suites_with(
    root: &Path,
    folder: &Path,
    bases: Vec<PathBuf>,
    fits: impl Fn(&Path) -> Option<FileFit>,
    ignored: IgnoredFiles,
    remarks: &mut WalkRemarks,
) -> Vec<Suite> {
    let skipped = |name: &str| matches!(name, "node_modules" | "target");
    let start = root.to_path_buf();
    let leads_to_suites = move |path: &Path| {
        let path = path.strip_prefix(&start).unwrap_or(path);
        bases.iter().any(|base| path.starts_with(base) || base.starts_with(path))
    };
    let walk = WalkBuilder::new(root)
        // In a repository, only its own files count: not those above its root.
        .require_git(is_in_repository(root))
        .git_ignore(ignored == IgnoredFiles::LeftOut)
        // Files of one machine and of other tools must not decide which cases run.
        .git_exclude(false)
        .git_global(false)
        .ignore(false)
        .filter_entry(move |entry| {
            let is_skipped = entry.file_name().to_str().is_some_and(skipped);
            entry.depth() == 0 || (!is_skipped && leads_to_suites(entry.path()))
        })
        .build();
    let mut scripts = TestFiles::open(root);
    let mut suites = Vec::new();
    for entry in walk {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                let help = "make it readable, or name it in a `.gitignore`";
                remarks
                    .mistakes
                    .push(Diagnostic::new(format!("cannot search for suites: {error}")).help(help));
                continue;
            }
        };
        let path = entry.path();
        let below_root = path.strip_prefix(root).unwrap_or(path);
        let Some(fit) = fits(below_root) else { continue };
        match followed_type(&entry) {
            Ok(kind) if kind.is_file() => {}
            Ok(kind) if kind.is_dir() => continue,
            Ok(_) => {
                remarks.mistakes.push(unreadable_suite(&display_path(path, folder)));
                continue;
            }
            Err(error) => {
                let shown = display_path(path, folder);
                let message = format!("cannot follow the link {shown}: {error}");
                remarks.mistakes.push(Diagnostic::new(message));
                continue;
            }
        }
        let shown = display_path(path, folder);
        let is_script = match fit {
            FileFit::Name => false,
            FileFit::Pattern => is_program(path),
            FileFit::Misnamed => is_test_script(path),
        };
        let owner = match &mut scripts {
            Ok(scripts) if is_script => scripts.owner(below_root),
            _ => TestFileOwner::Hotseat,
        };
        match (owner, fit) {
            (TestFileOwner::Hotseat, FileFit::Name | FileFit::Pattern) => {
                suites.push(Suite::new(path.to_path_buf(), shown));
            }
            (TestFileOwner::Hotseat, FileFit::Misnamed) => drop(remarks.misnamed.insert(shown)),
            (TestFileOwner::Unknown, FileFit::Pattern) => drop(remarks.without_tests.insert(shown)),
            (TestFileOwner::Others | TestFileOwner::Unknown, _) => {}
        }
    }
    suites
}
