//! Engines that know the module `hotseat`.

use std::fs;
use std::path::{Path, PathBuf};

use hotseat_document::Diagnostic;
use hotseat_script::{Host, Module, Scripts};
use serde_json::{Value, json};

use crate::cases::scenario_set;

/// What scripts import.
pub const MODULE: &str = "hotseat";

/// A function that makes the module of the functions that only it sees.
const CODE: &str = concat!(
    "(hidden) => {\n\"use strict\";\n",
    include_str!("js/values.js"),
    include_str!("js/host.js"),
    include_str!("js/conversation.js"),
    include_str!("js/matchers.js"),
    include_str!("js/declare.js"),
    include_str!("js/testing.js"),
    include_str!("js/simulating.js"),
    include_str!("js/entries.js"),
    "}"
);

/// A file of tests.
#[derive(Debug, Clone)]
pub struct File {
    pub scripts: Scripts,
    pub module: Module,
    /// Where files are looked for that a test names: beside the suite, beside the project file, in the working folder.
    pub folders: Vec<PathBuf>,
}

impl File {
    /// What engines have besides what `host` has: the module, whose commands go through `hidden`.
    pub fn furnish(&self, host: Host, hidden: Host) -> Host {
        let file = self.clone();
        let hidden = hidden.function("scenarios", move |arguments| {
            Ok(match file.scenarios(arguments.into_iter().next().unwrap_or_default()) {
                Ok(value) => json!({ "value": value }),
                Err(error) => json!({ "error": error }),
            })
        });
        host.module(MODULE, CODE, hidden)
    }

    /// The scenarios of a set that the file declares, as data.
    ///
    /// # Errors
    /// Everything that is wrong with them, in words.
    fn scenarios(&self, written: Value) -> Result<Value, String> {
        if let Some(path) = written["from"].as_str() {
            self.within_folders(path)?;
        }
        let found = scenario_set(written, &self.folders).map_err(|wrong| {
            let words = wrong.into_iter().map(|Diagnostic { message, help, .. }| match help {
                Some(help) => format!("{message} ({help})"),
                None => message,
            });
            words.collect::<Vec<_>>().join("; ")
        })?;
        Ok(found.iter().map(|scenario| json!(**scenario)).collect())
    }

    /// A file of tests reads what lies beside it, or in the project, and nothing else.
    ///
    /// # Errors
    /// When a path leads elsewhere, in words.
    fn within_folders(&self, path: &str) -> Result<(), String> {
        let is_below = |file: &Path| {
            let mut folders = self.folders.iter().filter_map(|folder| whole(folder));
            folders.any(|folder| file.starts_with(folder))
        };
        let found = self.folders.iter().find_map(|folder| whole(&folder.join(path)));
        match found {
            Some(file) if !is_below(&file) => Err(format!("`{path}` lies outside of the project")),
            _ => Ok(()),
        }
    }
}

/// A path with all links followed, if there is something.
fn whole(path: &Path) -> Option<PathBuf> {
    fs::canonicalize(if path.as_os_str().is_empty() { Path::new(".") } else { path }).ok()
}
