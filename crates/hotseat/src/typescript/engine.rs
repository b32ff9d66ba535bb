//! Engines that know the module `hotseat`.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};

use hotseat_document::Diagnostic;
use hotseat_script::{Host, Module, Scripts};
use serde_json::{Value, json};

use crate::cases::scenario_set;
use crate::checks::{Pattern, from_javascript};

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
        host.module(MODULE, CODE, matching(hidden))
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

/// The functions by which regular expressions of tests are matched: by the engine that matches the patterns of all tests.
fn matching(hidden: Host) -> Host {
    let text = |arguments: &[Value], place: usize| {
        arguments.get(place).and_then(Value::as_str).unwrap_or_default().to_string()
    };
    let translated = move |arguments: &[Value]| {
        let pattern = from_javascript(&text(arguments, 0), &text(arguments, 1))?;
        let compiled = Pattern::compile(&pattern)?;
        Ok::<_, String>((pattern, compiled))
    };
    let told = |result: Result<Value, String>| match result {
        Ok(value) => json!({ "value": value }),
        Err(error) => json!({ "error": error }),
    };
    let last: RefCell<Option<(String, String, Pattern)>> = RefCell::new(None);
    hidden
        .function("pattern", move |arguments| {
            Ok(told(translated(&arguments).map(|(pattern, _)| pattern.into())))
        })
        .function("fits", move |arguments| {
            let key = (text(&arguments, 0), text(&arguments, 1));
            let mut last = last.borrow_mut();
            // One pattern is often tried on many texts.
            if last.as_ref().is_none_or(|(source, flags, _)| (source, flags) != (&key.0, &key.1)) {
                match translated(&arguments) {
                    Ok((_, pattern)) => *last = Some((key.0, key.1, pattern)),
                    Err(words) => return Ok(told(Err(words))),
                }
            }
            let fits = last.as_ref().is_some_and(|(_, _, pattern)| pattern.fits(&text(&arguments, 2)));
            Ok(told(Ok(fits.into())))
        })
}

/// A path with all links followed, if there is something.
fn whole(path: &Path) -> Option<PathBuf> {
    fs::canonicalize(if path.as_os_str().is_empty() { Path::new(".") } else { path }).ok()
}
