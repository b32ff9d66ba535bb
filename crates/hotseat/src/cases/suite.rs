//! Suites: files of cases, read one case at a time.

use std::collections::BTreeMap;
use std::collections::HashSet;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::case::{Case, Inherited};
use crate::document::{Diagnostic, Diagnostics, yaml};
use crate::session::Redactor;

/// A suite: a file of cases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suite {
    /// Where it is.
    pub path: PathBuf,
    /// The path as it is shown to people.
    pub shown: Arc<str>,
    /// Its folder.
    pub folder: PathBuf,
}

impl Suite {
    /// A suite at a path, shown as given.
    pub fn new(path: PathBuf, shown: impl Into<Arc<str>>) -> Self {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Suite { folder: folder.to_path_buf(), shown: shown.into(), path }
    }

    /// Reads its cases one after the other; the file is never in memory as a whole. Each entry is a case or all
    /// that is wrong with it. A file without any case is one mistake.
    pub fn cases<'a>(
        &'a self,
        inherited: &'a Inherited,
        environment: &'a BTreeMap<String, String>,
        redactor: &'a Redactor,
    ) -> impl Iterator<Item = Result<Case, Diagnostics>> + 'a {
        let unreadable = |error: std::io::Error| Diagnostic::new(format!("cannot read {}: {error}", self.shown));
        let (documents, failed) = match open(&self.path) {
            Ok(file) => (Some(yaml::documents(self.shown.clone(), BufReader::new(file))), None),
            Err(error) => (None, Some(Err(Diagnostics::from(unreadable(error))))),
        };
        let mut names = HashSet::new();
        let hasher = RandomState::new();
        let mut any = failed.is_some();
        let mut cases = documents.into_iter().flatten().map(move |source| {
            let source = source.map_err(Diagnostics::from)?;
            let node = yaml::parse(&source)?;
            let case = Case::read(&source, node, inherited, environment, redactor)?;
            // Hashes instead of names, so that a file of a hundred thousand cases costs a few megabytes at most.
            if !names.insert(hasher.hash_one(&case.id)) {
                let message = format!("another case in this file is called `{}`", case.id);
                return Err(Diagnostic::new(message).at(case.place.clone()).help("give one of them an `id`").into());
            }
            Ok(case)
        });
        let mut failed = failed;
        let shown = self.shown.clone();
        std::iter::from_fn(move || {
            if let Some(failed) = failed.take() {
                return Some(failed);
            }
            let case = cases.next();
            if case.is_none() && !std::mem::replace(&mut any, true) {
                let help = "a case has a `name` and `turns`; `hotseat init` writes a first one";
                return Some(Err(Diagnostic::new(format!("no test cases found in {shown}")).help(help).into()));
            }
            any = true;
            case
        })
    }
}

/// Opens a file; a folder is refused here and not when it is read.
fn open(path: &Path) -> std::io::Result<File> {
    let file = File::open(path)?;
    match file.metadata()?.is_dir() {
        true => Err(std::io::Error::other("it is a folder")),
        false => Ok(file),
    }
}
