//! Engines that know the module `hotseat`.

use std::path::PathBuf;

use hotseat_script::{Host, Module, Scripts};
use serde_json::{Value, json};

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
            let text = |at: usize| arguments.get(at).and_then(Value::as_str).unwrap_or_default();
            Ok(match file.json(text(0)) {
                Ok(value) => json!({ "value": value }),
                Err(error) => json!({ "error": error }),
            })
        });
        host.module(MODULE, CODE, hidden)
    }

    /// A file of JSON below the folder of the scripts: beside this one, or from that folder.
    fn json(&self, path: &str) -> Result<Value, String> {
        let folder = self.module.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        let beside = if folder.is_empty() { path.to_string() } else { format!("{folder}/{path}") };
        let found = self.scripts.text(&beside).or_else(|beside| self.scripts.text(path).map_err(|_| beside));
        let text = found.map_err(|error| error.message)?;
        serde_json::from_str(&text).map_err(|error| format!("{path} is not JSON: {error}"))
    }
}
