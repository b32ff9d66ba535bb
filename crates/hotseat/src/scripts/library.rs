//! Functions of scripts that people name: found when the plan is made, called while it is carried out.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hotseat_document::{Diagnostic, Place};
use hotseat_script::{Context, ErrorKind, Host, Limits, Module, ScriptError, Scripts, thread};

use super::grants::Grants;
use super::powers::host;

/// How long a module may take until it is ready, when its functions are looked for.
const LOADING: Duration = Duration::from_secs(10);

/// A function of a script that was found.
#[derive(Debug, Clone)]
pub struct Function {
    pub(super) scripts: Scripts,
    pub(super) module: Module,
    pub(super) name: String,
}

/// Why a function was not found.
#[derive(Debug, Clone)]
pub enum NotFound {
    /// No file fits its name.
    Nowhere(Diagnostic),
    /// The file is wrong, or has no such function.
    Wrong(Diagnostic),
}

impl NotFound {
    /// The mistake, for the place that names the function.
    pub fn named_at(self, place: &Place) -> Diagnostic {
        let (NotFound::Nowhere(mistake) | NotFound::Wrong(mistake)) = self;
        match mistake.place {
            Some(_) => mistake.also(place.clone(), "named here"),
            None => mistake.at(place.clone()),
        }
    }
}

impl From<Diagnostic> for NotFound {
    fn from(mistake: Diagnostic) -> Self {
        NotFound::Wrong(mistake)
    }
}

/// Folders in which a function is looked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Places {
    /// The folder of the project: what lies in it is read, and nothing else unless a suite lies elsewhere.
    pub root: PathBuf,
    /// The same as it is shown to people.
    pub shown: PathBuf,
    /// The folder of the agent that is tested.
    pub agent: Option<PathBuf>,
    /// The folder of the suite.
    pub suite: Option<PathBuf>,
}

/// All scripts of a project, and what they may do. Clones share what was read, so that what the plan has found is what
/// runs.
#[derive(Debug, Clone, Default)]
pub struct Library {
    pub(super) grants: Arc<Grants>,
    pub(super) environment: Environment,
    shelves: Arc<Mutex<Shelves>>,
}

/// The environment variables of the process.
type Environment = Arc<BTreeMap<String, String>>;

#[derive(Debug, Default)]
struct Shelves {
    folders: HashMap<PathBuf, Scripts>,
    found: HashMap<(String, Places), Result<Function, NotFound>>,
}

/// One folder in which is looked.
struct Base {
    scripts: Scripts,
    /// The folder, from the folder of the scripts, with `/` at its end if it is not that folder.
    within: String,
    folder: PathBuf,
    /// The same as it is shown to people.
    shown: PathBuf,
}

impl Library {
    /// The scripts of a project that grants them this.
    pub fn new(grants: Grants, environment: Environment) -> Library {
        Library { grants: Arc::new(grants), environment, shelves: Arc::default() }
    }

    /// What the project grants.
    pub fn grants(&self) -> &Grants {
        &self.grants
    }

    /// The function that a reference means: `path.name`, or `path` for a default export; `scripts:` may stand before it.
    ///
    /// # Errors
    /// When there is none, and what is wrong with its module.
    pub fn find(&self, reference: &str, places: &Places) -> Result<Function, NotFound> {
        let key = (reference.to_string(), places.clone());
        if let Some(known) = self.shelves(|shelves| shelves.found.get(&key).cloned()) {
            return known;
        }
        let found = self.look(reference, places);
        self.shelves(|shelves| shelves.found.entry(key).or_insert(found).clone())
    }

    /// A file of scripts, whatever it exports, with the folder in which it may import.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn file(&self, path: &Path, places: &Places) -> Result<(Scripts, Module), Diagnostic> {
        let unreadable =
            |error: std::io::Error| Diagnostic::new(format!("cannot read {}: {error}", path.display()));
        let real = fs::canonicalize(path).map_err(unreadable)?;
        let folder = real.parent().unwrap_or(Path::new("/"));
        let project = fs::canonicalize(&places.root).unwrap_or_else(|_| places.root.clone());
        let (root, shown) = match real.starts_with(&project) {
            true => (project, places.shown.clone()),
            // A suite of another place has a folder of its own.
            false => (folder.to_path_buf(), path.parent().unwrap_or(Path::new("")).to_path_buf()),
        };
        let scripts = self.scripts_of(&root, &shown)?;
        let within = real.strip_prefix(&root).unwrap_or(&real).to_string_lossy().replace('\\', "/");
        let module = scripts.find(&within).map_err(|error| error.diagnostic())?;
        Ok((scripts, module))
    }

    /// What a file may do while it is only looked at.
    pub fn looking(&self) -> Host {
        host(self, None)
    }

    fn scripts_of(&self, root: &Path, shown: &Path) -> Result<Scripts, Diagnostic> {
        self.shelves(|shelves| match shelves.folders.get(root) {
            Some(scripts) => Ok(scripts.clone()),
            None => {
                let scripts = Scripts::of(root, shown)
                    .map_err(|error| Diagnostic::new(format!("cannot read {}: {error}", root.display())))?;
                shelves.folders.insert(root.to_path_buf(), scripts.clone());
                Ok(scripts)
            }
        })
    }

    fn shelves<T>(&self, with: impl FnOnce(&mut Shelves) -> T) -> T {
        with(&mut self.shelves.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn look(&self, reference: &str, places: &Places) -> Result<Function, NotFound> {
        let path =
            ["scripts:", "script:", "scripts."].iter().find_map(|prefix| reference.strip_prefix(prefix));
        let path = path.unwrap_or(reference).trim();
        let path = path.strip_prefix("src/").or_else(|| path.strip_prefix("src.")).unwrap_or(path);
        let parts: Vec<&str> = path.split(['/', '.']).collect();
        if parts.iter().any(|part| part.trim().is_empty()) {
            let message = format!("`{reference}` names no function of a script");
            let help = "write `scripts:path.function`, for example `scripts:checks.polite`";
            return Err(NotFound::Nowhere(Diagnostic::new(message).help(help)));
        }
        let bases = self.bases(places)?;
        let mut nearest = None;
        let mut tried = Vec::new();
        let (name, module) = parts.split_last().expect("a text has parts");
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
                    match self.function(&base.scripts, module, name)? {
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
            Some(error) => NotFound::Wrong(error.diagnostic()),
            None => {
                tried.dedup();
                let message = format!("there is no script for `{reference}`");
                NotFound::Nowhere(Diagnostic::new(message).help(format!("looked for {}", tried.join(", "))))
            }
        })
    }

    /// Where is looked: `src` of the agent; `src` beside the suite and in each folder above it, up to that of the project;
    /// beside the suite itself.
    fn bases(&self, places: &Places) -> Result<Vec<Base>, Diagnostic> {
        let mut bases: Vec<Base> = Vec::new();
        let Ok(project) = fs::canonicalize(&places.root) else { return Ok(bases) };
        let agent = places.agent.iter().map(|folder| folder.join("src"));
        let suite = places.suite.as_ref().and_then(|folder| fs::canonicalize(folder).ok());
        let above = suite.iter().flat_map(|folder| folder.ancestors());
        let above = above.take_while(|folder| folder.starts_with(&project)).map(|folder| folder.join("src"));
        // A suite outside of the project has its own.
        let own = suite.iter().map(|folder| folder.join("src"));
        let all = agent.chain(above).chain(own).chain([places.root.join("src")]).chain(suite.clone());
        for folder in all {
            let Ok(real) = fs::canonicalize(&folder) else { continue };
            if bases.iter().any(|base| base.folder == real) {
                continue;
            }
            // A suite of another place has a folder of its own.
            let (root, shown) = match real.starts_with(&project) {
                true => (project.clone(), places.shown.clone()),
                false => (real.clone(), folder.clone()),
            };
            let within = real.strip_prefix(&root).unwrap_or(Path::new("")).to_string_lossy().into_owned();
            let within = if within.is_empty() { within } else { format!("{within}/") };
            let scripts = self.scripts_of(&root, &shown)?;
            let shown = shown.join(&within);
            bases.push(Base { scripts, within, folder: real, shown });
        }
        Ok(bases)
    }

    /// A function of a module, or what is wrong with the name.
    ///
    /// # Errors
    /// What is wrong with the module.
    fn function(
        &self,
        scripts: &Scripts,
        module: Module,
        name: &str,
    ) -> Result<Result<Function, ScriptError>, Diagnostic> {
        let function = Function { scripts: scripts.clone(), module, name: name.to_string() };
        let looked_at = function.clone();
        let limits = Limits { time: LOADING, ..Limits::default() };
        // Nothing is done from there, so running it does nothing but tell what it exports.
        let library = self.clone();
        let checked = thread::run(LOADING, move |stop| {
            let Function { scripts, module, name } = looked_at;
            Context::new(&scripts, limits, host(&library, None))?.until(stop).check(&module, &name)
        });
        match checked.and_then(|checked| checked) {
            Ok(()) => Ok(Ok(function)),
            Err(error) if matches!(error.kind, ErrorKind::MissingExport | ErrorKind::NotAFunction) => {
                Ok(Err(error))
            }
            Err(error) => Err(error.diagnostic()),
        }
    }

    /// The function of a name alone: it stands in a file that ends in `_test`.
    fn only_test_script(
        &self,
        bases: &[Base],
        name: &str,
        reference: &str,
    ) -> Result<Option<Function>, Diagnostic> {
        let mut found: Vec<(Function, String)> = Vec::new();
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
                if let Ok(function) = self.function(&base.scripts, module, name)? {
                    found.push((function, base.shown.join(file).display().to_string()));
                }
            }
        }
        match found.as_slice() {
            [] => Ok(None),
            [(function, _)] => Ok(Some(function.clone())),
            several => {
                let files: Vec<&str> = several.iter().map(|(_, file)| file.as_str()).collect();
                let message = format!("several scripts have a function `{reference}`: {}", files.join(", "));
                Err(Diagnostic::new(message).help(format!("name the file: `env_test.{reference}`")))
            }
        }
    }
}
