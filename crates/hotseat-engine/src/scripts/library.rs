//! Script functions of a project: found when the plan is made, called during the run.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use hotseat_document::{Diagnostic, SourceSpan};
use hotseat_script::{
    ScriptContext, ScriptError, ScriptErrorKind, ScriptHost, ScriptLimits, ScriptModule, Scripts,
    TestFileOwner, TestFiles, thread,
};

use super::grants::ScriptGrants;
use super::local_functions::{Environment, inspection_host};
use crate::digest::short_digest;

/// Time limit for loading a module to list its exports.
const LOAD_TIMEOUT: Duration = Duration::from_secs(10);

/// A function exported by a script.
#[derive(Debug, Clone)]
pub struct ScriptFunction {
    pub(super) scripts: Scripts,
    pub(super) module: ScriptModule,
    pub(super) name: String,
    source_digest: Arc<OnceLock<String>>,
}

impl ScriptFunction {
    /// Returns its file.
    pub fn file(&self) -> PathBuf {
        self.scripts.root().join(self.module.path())
    }

    /// Returns the digest of its file and of all imports.
    pub fn source_digest(&self) -> &str {
        self.source_digest.get_or_init(|| {
            let sources = self.scripts.sources(&self.module);
            let all: Vec<String> = sources.iter().map(|(path, text)| format!("{path}\n{text}\0")).collect();
            short_digest(&all.concat(), 8)
        })
    }
}

/// Reason why a function was not found.
#[derive(Debug, Clone, thiserror::Error)]
pub enum FunctionError {
    /// No file matches the reference.
    #[error("{}", with_help(.0))]
    NoSuchFile(#[source] Diagnostic),
    /// The file is invalid, or has no such function.
    #[error("{}", with_help(.0))]
    Invalid(#[source] Diagnostic),
}

impl FunctionError {
    /// Returns the error, located at the reference.
    pub fn at_reference(self, place: &SourceSpan) -> Diagnostic {
        let (FunctionError::NoSuchFile(mistake) | FunctionError::Invalid(mistake)) = self;
        match mistake.place {
            Some(_) => mistake.with_related(place.clone(), "named here"),
            None => mistake.at(place.clone()),
        }
    }
}

fn with_help(mistake: &Diagnostic) -> String {
    match &mistake.help {
        Some(help) => format!("{mistake} ({help})"),
        None => mistake.to_string(),
    }
}

impl From<Diagnostic> for FunctionError {
    fn from(mistake: Diagnostic) -> Self {
        FunctionError::Invalid(mistake)
    }
}

/// Folders in which a function is searched.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ScriptSearchPath {
    /// Project folder. Only files in it are read, unless a suite lies elsewhere.
    pub root: PathBuf,
    /// Display path of the project folder.
    pub shown: PathBuf,
    /// Folder of the tested agent.
    pub agent: Option<PathBuf>,
    /// Folder of the suite.
    pub suite: Option<PathBuf>,
}

/// All scripts of a project and their permissions. Clones share the loaded files, so the planned code is the
/// code that runs.
#[derive(Debug, Clone, Default)]
pub struct ScriptLibrary {
    pub(super) grants: Arc<ScriptGrants>,
    pub(super) environment: Environment,
    cache: Arc<Mutex<LibraryCache>>,
}

#[derive(Debug, Default)]
struct LibraryCache {
    folders: HashMap<PathBuf, Scripts>,
    found: HashMap<(String, ScriptSearchPath), Result<ScriptFunction, FunctionError>>,
}

struct SearchFolder {
    scripts: Scripts,
    /// Path of the folder within the script folder, with a trailing `/` unless empty.
    within: String,
    folder: PathBuf,
    /// Display path of the folder.
    shown: PathBuf,
}

impl ScriptLibrary {
    /// Creates a library with these permissions.
    pub fn new(grants: ScriptGrants, environment: Environment) -> ScriptLibrary {
        ScriptLibrary { grants: Arc::new(grants), environment, cache: Arc::default() }
    }

    /// Returns the permissions.
    pub fn grants(&self) -> &ScriptGrants {
        &self.grants
    }

    /// Finds a function by reference: `path.name`, or `path` for a default export, optionally prefixed by
    /// `scripts:`. Fails if there is no such function, or its module is invalid.
    pub fn find(&self, reference: &str, places: &ScriptSearchPath) -> Result<ScriptFunction, FunctionError> {
        let key = (reference.to_string(), places.clone());
        if let Some(known) = self.with_cache(|shelves| shelves.found.get(&key).cloned()) {
            return known;
        }
        let found = self.search(reference, places);
        self.with_cache(|shelves| shelves.found.entry(key).or_insert(found).clone())
    }

    /// Opens a script file, and the folder from which it may import. Fails if the file cannot be read.
    pub fn open_file(
        &self,
        path: &Path,
        places: &ScriptSearchPath,
    ) -> Result<(Scripts, ScriptModule), Diagnostic> {
        let unreadable =
            |error: std::io::Error| Diagnostic::new(format!("cannot read {}: {error}", path.display()));
        let real = fs::canonicalize(path).map_err(unreadable)?;
        let folder = real.parent().unwrap_or(Path::new("/"));
        let project = fs::canonicalize(&places.root).unwrap_or_else(|_| places.root.clone());
        let (root, shown) = match real.starts_with(&project) {
            true => (project, places.shown.clone()),
            // A suite outside the project uses its own folder.
            false => (folder.to_path_buf(), path.parent().unwrap_or(Path::new("")).to_path_buf()),
        };
        let scripts = self.scripts_of(&root, &shown)?;
        let within = real.strip_prefix(&root).unwrap_or(&real).to_string_lossy().replace('\\', "/");
        let module = scripts.find(&within).map_err(|error| error.diagnostic())?;
        Ok((scripts, module))
    }

    /// Returns the host functions for loading a file only to list its exports.
    pub fn inspection_host(&self) -> ScriptHost {
        inspection_host(&self.grants, &self.environment)
    }

    fn scripts_of(&self, root: &Path, shown: &Path) -> Result<Scripts, Diagnostic> {
        self.with_cache(|shelves| match shelves.folders.get(root) {
            Some(scripts) => Ok(scripts.clone()),
            None => {
                let scripts = Scripts::open(root, shown)
                    .map_err(|error| Diagnostic::new(format!("cannot read {}: {error}", root.display())))?;
                shelves.folders.insert(root.to_path_buf(), scripts.clone());
                Ok(scripts)
            }
        })
    }

    fn with_cache<T>(&self, with: impl FnOnce(&mut LibraryCache) -> T) -> T {
        with(&mut self.cache.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn search(&self, reference: &str, places: &ScriptSearchPath) -> Result<ScriptFunction, FunctionError> {
        let path =
            ["scripts:", "script:", "scripts."].iter().find_map(|prefix| reference.strip_prefix(prefix));
        let path = path.unwrap_or(reference).trim();
        let path = path.strip_prefix("src/").or_else(|| path.strip_prefix("src.")).unwrap_or(path);
        let parts: Vec<&str> = path.split(['/', '.']).collect();
        if parts.iter().any(|part| part.trim().is_empty()) {
            let message = format!("`{reference}` is not a reference to a script function");
            let help = "write `scripts:path.function`, for example `scripts:checks.polite`";
            return Err(FunctionError::NoSuchFile(Diagnostic::new(message).help(help)));
        }
        let bases = self.search_folders(places)?;
        let mut nearest = None;
        let mut tried = Vec::new();
        let (name, module) = parts.split_last().expect("split always yields a part");
        let candidates = match module {
            [] => vec![(parts.join("/"), "default")],
            module => vec![(module.join("/"), *name), (parts.join("/"), "default")],
        };
        for (path, name) in &candidates {
            for base in &bases {
                for path in [path.clone(), format!("{path}_test")] {
                    let module = match base.scripts.find(&format!("{}{path}", base.within)) {
                        Ok(module) if module.path().ends_with(".json") => continue,
                        Ok(module) => module,
                        Err(_) => {
                            tried.push(base.shown.join(format!("{path}.ts")).display().to_string());
                            continue;
                        }
                    };
                    match self.load_function(&base.scripts, module, name)? {
                        Ok(function) => return Ok(function),
                        Err(error) => drop(nearest.get_or_insert(error)),
                    }
                }
            }
        }
        if module.is_empty()
            && let Some(function) = self.only_test_script(&bases, name, reference)?
        {
            return Ok(function);
        }
        Err(match nearest {
            Some(error) => FunctionError::Invalid(error.diagnostic()),
            None => {
                tried.dedup();
                let message = format!("no script found for `{reference}`");
                FunctionError::NoSuchFile(
                    Diagnostic::new(message).help(format!("looked for {}", tried.join(", "))),
                )
            }
        })
    }

    /// The files of scripts that were loaded so far, and those that they import or read.
    pub fn loaded_files(&self) -> Vec<PathBuf> {
        self.with_cache(|cache| cache.folders.values().flat_map(Scripts::loaded_files).collect())
    }

    /// Folders named `src` in which functions are searched. Scripts that run search them, too.
    pub fn source_folders(&self, places: &ScriptSearchPath) -> Vec<PathBuf> {
        let folders = self.search_folders(places).into_iter().flatten().map(|base| base.folder);
        folders.filter(|folder| folder.ends_with("src")).collect()
    }

    /// Returns the search folders: `src` of the agent; `src` beside the suite and in each parent folder up to
    /// the project; the suite's own folder.
    fn search_folders(&self, places: &ScriptSearchPath) -> Result<Vec<SearchFolder>, Diagnostic> {
        let mut bases: Vec<SearchFolder> = Vec::new();
        let Ok(project) = fs::canonicalize(&places.root) else { return Ok(bases) };
        let agent = places.agent.iter().map(|folder| folder.join("src"));
        let suite = places.suite.as_ref().and_then(|folder| fs::canonicalize(folder).ok());
        let above = suite.iter().flat_map(|folder| folder.ancestors());
        let above = above.take_while(|folder| folder.starts_with(&project)).map(|folder| folder.join("src"));
        // A suite outside the project has its own `src`.
        let own = suite.iter().map(|folder| folder.join("src"));
        let all = agent.chain(above).chain(own).chain([places.root.join("src")]).chain(suite.clone());
        for folder in all {
            let Ok(real) = fs::canonicalize(&folder) else { continue };
            if bases.iter().any(|base| base.folder == real) {
                continue;
            }
            // A suite outside the project uses its own folder.
            let (root, shown) = match real.starts_with(&project) {
                true => (project.clone(), places.shown.clone()),
                false => (real.clone(), folder.clone()),
            };
            let within = real.strip_prefix(&root).unwrap_or(Path::new("")).to_string_lossy().into_owned();
            let within = if within.is_empty() { within } else { format!("{within}/") };
            let scripts = self.scripts_of(&root, &shown)?;
            let shown = shown.join(&within);
            bases.push(SearchFolder { scripts, within, folder: real, shown });
        }
        Ok(bases)
    }

    /// Returns a function of a module, or the error about its name. Fails if the module itself is invalid.
    fn load_function(
        &self,
        scripts: &Scripts,
        module: ScriptModule,
        name: &str,
    ) -> Result<Result<ScriptFunction, ScriptError>, Diagnostic> {
        let function = ScriptFunction {
            scripts: scripts.clone(),
            module,
            name: name.to_string(),
            source_digest: Arc::default(),
        };
        let looked_at = function.clone();
        let limits = ScriptLimits { time: LOAD_TIMEOUT, ..ScriptLimits::default() };
        // The inspection host performs no actions, so running the module only reveals its exports.
        let library = self.clone();
        let checked = thread::run(LOAD_TIMEOUT, move |stop| {
            let ScriptFunction { scripts, module, name, .. } = looked_at;
            ScriptContext::new(&scripts, limits, library.inspection_host())?
                .with_stop(stop)
                .check_export(&module, &name)
        });
        match checked.and_then(|checked| checked) {
            Ok(()) => Ok(Ok(function)),
            Err(error)
                if matches!(error.kind, ScriptErrorKind::MissingExport | ScriptErrorKind::NotAFunction) =>
            {
                Ok(Err(error))
            }
            Err(error) => Err(error.diagnostic()),
        }
    }

    /// Finds a function given by name alone, which must be in a file that ends in `_test`.
    fn only_test_script(
        &self,
        bases: &[SearchFolder],
        name: &str,
        reference: &str,
    ) -> Result<Option<ScriptFunction>, Diagnostic> {
        let mut found: Vec<(ScriptFunction, String)> = Vec::new();
        // A file that cannot be loaded, such as a test file of other functions, matters only if no other file has the function.
        let mut broken = None;
        for base in bases {
            let entries = fs::read_dir(&base.folder).into_iter().flatten().flatten();
            let mut names: Vec<String> =
                entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
            names.sort();
            for file in names {
                let is_test = file.rsplit_once('.').is_some_and(|(stem, ending)| {
                    stem.ends_with("_test") && matches!(ending, "ts" | "mts" | "js" | "mjs")
                });
                if !is_test {
                    continue;
                }
                let Ok(module) = base.scripts.find(&format!("{}{file}", base.within)) else { continue };
                match self.load_function(&base.scripts, module, name) {
                    Ok(Ok(function)) => found.push((function, base.shown.join(file).display().to_string())),
                    Ok(Err(_)) => {}
                    Err(error) => {
                        let names_it = |text: String| text.contains(name);
                        // A suite of tests is no script.
                        if fs::read_to_string(base.folder.join(&file)).is_ok_and(names_it)
                            && !is_suite(&base.folder, Path::new(&file))
                        {
                            broken.get_or_insert(error);
                        }
                    }
                }
            }
        }
        match found.as_slice() {
            [] => broken.map_or(Ok(None), Err),
            [(function, _)] => Ok(Some(function.clone())),
            several => {
                let files: Vec<&str> = several.iter().map(|(_, file)| file.as_str()).collect();
                let message = format!("several scripts have a function `{reference}`: {}", files.join(", "));
                Err(Diagnostic::new(message).help(format!("name the file: `env_test.{reference}`")))
            }
        }
    }
}

/// True for a suite of tests. `file` is relative to the folder.
fn is_suite(folder: &Path, file: &Path) -> bool {
    TestFiles::open(folder).is_ok_and(|mut files| files.owner(file) == TestFileOwner::Hotseat)
}
