//! Script engines with the module `hotseat`.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};

use hotseat_document::{is_blank, nearest};
use hotseat_script::{HostCallError, HostResult, ScriptHost, ScriptModule, Scripts};
use hotseat_trace::UNREADABLE_ARGUMENTS;
use serde_json::{Value, json};

use crate::cases::read_scenario_set;
use hotseat_checks::{Pattern, translate_javascript_regex};

/// Name of the imported module.
pub const MODULE_NAME: &str = "hotseat";

/// JavaScript function that creates the module from its hidden host functions: what every test needs.
const MODULE_CODE: &str = concat!(
    "(hidden) => {\n\"use strict\";\n",
    include_str!("js/host.js"),
    include_str!("js/conversation.js"),
    include_str!("js/expecting.js"),
    include_str!("js/declare.js"),
    include_str!("js/entries.js"),
    "}"
);

/// The rest of the module, in parts that a test loads when it needs them: functions of what the module shares with them.
macro_rules! parts {
    ($($name:literal: $file:literal,)*) => {
        &[$(($name, concat!("(core) => {\n\"use strict\";\n", include_str!($file), "}"))),*]
    };
}

const MODULE_PARTS: &[(&str, &str)] = parts! {
    "values": "js/values.js",
    "conversation": "js/conversation_views.js",
    "textMatchers": "js/text_matchers.js",
    "toolMatchers": "js/tool_matchers.js",
    "callComparison": "js/call_comparison.js",
    "agentMatchers": "js/agent_matchers.js",
    "valueMatchers": "js/value_matchers.js",
    "declarations": "js/declarations.js",
    "rows": "js/rows.js",
    "testing": "js/testing.js",
    "simulating": "js/simulating.js",
};

/// A file of tests.
#[derive(Debug, Clone)]
pub struct TestFile {
    pub scripts: Scripts,
    pub module: ScriptModule,
    /// Folders for files that a test names: of the suite, of the project file, and the working folder.
    pub folders: Vec<PathBuf>,
}

impl TestFile {
    /// Adds the module to a host. Its commands go through `hidden`.
    pub fn with_module(&self, host: ScriptHost, hidden: ScriptHost) -> ScriptHost {
        let file = self.clone();
        let hidden = hidden.function("scenarios", move |arguments| {
            Ok(value_or_error(file.scenarios(arguments.into_iter().next().unwrap_or_default())))
        });
        let hidden = hidden.function("unreadableArguments", |_| Ok(UNREADABLE_ARGUMENTS.into()));
        let hidden = hidden.function("isBlank", |arguments| {
            Ok(arguments.first().and_then(Value::as_str).is_none_or(is_blank).into())
        });
        let hidden = hidden.function("nearest", |arguments| {
            let [written, names] = [0, 1].map(|place| arguments.get(place).unwrap_or(&Value::Null));
            let names = names.as_array().into_iter().flatten().filter_map(Value::as_str);
            Ok(nearest(written.as_str().unwrap_or_default(), names).into())
        });
        let parts =
            MODULE_PARTS.iter().fold(with_patterns(hidden), |all, (name, code)| all.code(*name, code));
        host.with_module(MODULE_NAME, MODULE_CODE, parts)
    }

    /// Returns the scenarios of a declared set as data.
    ///
    /// # Errors
    /// Describes all errors in the scenarios.
    fn scenarios(&self, written: Value) -> HostResult {
        if let Some(path) = written["from"].as_str() {
            self.scripts.add_data(self.find_within_folders(path)?);
        }
        let found = read_scenario_set(written, &self.folders).map_err(|wrong| wrong.one_line())?;
        Ok(found.iter().map(|scenario| json!(**scenario)).collect())
    }

    /// Finds a file of the suite or project. Fails if the path leads elsewhere.
    fn find_within_folders(&self, path: &str) -> Result<PathBuf, HostCallError> {
        let is_below = |file: &Path| {
            let mut folders = self.folders.iter().filter_map(|folder| canonical_path(folder));
            folders.any(|folder| file.starts_with(folder))
        };
        let found = self.folders.iter().find_map(|folder| canonical_path(&folder.join(path)));
        match found {
            Some(file) if !is_below(&file) => Err(format!("`{path}` is outside the project").into()),
            Some(file) => Ok(file),
            None => Ok(PathBuf::from(path)),
        }
    }
}

/// Passes an error to the test library as a value, which it reports at the place of the call.
fn value_or_error(result: HostResult) -> Value {
    match result {
        Ok(value) => json!({ "value": value }),
        Err(error) => json!({ "error": error.to_string() }),
    }
}

/// Adds functions that match regular expressions of tests with the engine used for all patterns.
fn with_patterns(hidden: ScriptHost) -> ScriptHost {
    let text = |arguments: &[Value], place: usize| {
        arguments.get(place).and_then(Value::as_str).unwrap_or_default().to_string()
    };
    let translated = move |arguments: &[Value]| {
        let pattern = translate_javascript_regex(&text(arguments, 0), &text(arguments, 1));
        let pattern = pattern.map_err(|error| error.to_string())?;
        let compiled = Pattern::compile(&pattern).map_err(|error| error.to_string())?;
        Ok::<_, HostCallError>((pattern, compiled))
    };
    let last: RefCell<Option<(String, String, Pattern)>> = RefCell::new(None);
    hidden
        .function("pattern", move |arguments| {
            Ok(value_or_error(translated(&arguments).map(|(pattern, _)| pattern.into())))
        })
        .function("fits", move |arguments| {
            let key = (text(&arguments, 0), text(&arguments, 1));
            let mut last = last.borrow_mut();
            // Caches the last pattern, which is often applied to many texts.
            if last.as_ref().is_none_or(|(source, flags, _)| (source, flags) != (&key.0, &key.1)) {
                match translated(&arguments) {
                    Ok((_, pattern)) => *last = Some((key.0, key.1, pattern)),
                    Err(error) => return Ok(value_or_error(Err(error))),
                }
            }
            let fits = last.as_ref().is_some_and(|(_, _, pattern)| pattern.is_match(&text(&arguments, 2)));
            Ok(value_or_error(Ok(fits.into())))
        })
}

/// Returns the canonical path, if the file exists.
fn canonical_path(path: &Path) -> Option<PathBuf> {
    fs::canonicalize(if path.as_os_str().is_empty() { Path::new(".") } else { path }).ok()
}
