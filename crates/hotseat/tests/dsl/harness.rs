//! Runs examples in this program and reads the report.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use hotseat::dsl::prelude::*;
use hotseat::dsl::{Harness, Output, World};
use serde_json::{Value, json};

/// What a run came to.
pub struct Ran {
    /// Its exit code.
    pub code: u8,
    /// Its report; null where none was written.
    pub report: Value,
    /// The files of the folder that it ran in, as far as they are text.
    pub files: BTreeMap<String, String>,
}

/// An agent that says what was said, and looks rooms up when these are mentioned.
pub fn attentive(g: &mut Group) {
    g.agent(replies(async |messages: Vec<Message>| {
        let said = messages.last().unwrap().content.clone();
        let answer = Answer::text(format!("You said: {said}"));
        match said.contains("room") {
            true => answer.calling(
                "check_availability",
                json!({"room": "Blue Room", "capacity": 10, "flags": {"catering": false}, "note": null}),
                json!({"free": true}),
            ),
            false => answer,
        }
    }));
}

/// Runs examples in an empty folder.
pub fn ran(declare: impl FnOnce(&mut Group)) -> Ran {
    ran_with(&[], declare)
}

/// The same with more arguments.
pub fn ran_with(arguments: &[&str], declare: impl FnOnce(&mut Group)) -> Ran {
    ran_in(|_| {}, arguments, declare)
}

/// The same in a folder in which there is something.
pub fn ran_in(write: impl FnOnce(&Path), arguments: &[&str], declare: impl FnOnce(&mut Group)) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let mut all = vec!["--quiet".to_string(), "--output=report.json".to_string()];
    all.extend(arguments.iter().map(|argument| argument.to_string()));
    let world = World {
        environment: Arc::new(BTreeMap::new()),
        folder: folder.path().to_path_buf(),
        color: false,
        width: 100,
        output: Output::kept(),
    };
    let code = Harness { arguments: all, world, file: file!() }.run(declare);
    let files: BTreeMap<String, String> = std::fs::read_dir(folder.path())
        .unwrap()
        .filter_map(|entry| {
            let entry = entry.unwrap();
            let text = std::fs::read_to_string(entry.path()).ok()?;
            Some((entry.file_name().into_string().unwrap(), text))
        })
        .collect();
    let report = files.get("report.json").and_then(|text| serde_json::from_str(text).ok());
    Ran { code, report: report.unwrap_or_default(), files }
}

impl fmt::Debug for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exit code {}: {:#}", self.code, self.report)
    }
}

impl Ran {
    /// The result of a case.
    #[track_caller]
    pub fn case(&self, name: &str) -> &Value {
        let results = self.report["results"].as_array().expect("there is a report");
        results.iter().find(|result| result["name"] == name).expect("there is such a case")
    }

    /// The names of the cases with their results.
    pub fn cases(&self) -> Vec<(&str, &str)> {
        let results = self.report["results"].as_array().into_iter().flatten();
        results.filter_map(|result| Some((result["name"].as_str()?, result["status"].as_str()?))).collect()
    }

    /// Every check of a case, in the order of the report.
    pub fn checks(&self, name: &str) -> Vec<&Value> {
        let case = self.case(name);
        let of_turns = case["turns"].as_array().into_iter().flatten();
        let of_turns = of_turns.flat_map(|turn| turn["assertions"].as_array().into_iter().flatten());
        of_turns.chain(case["assertions"].as_array().into_iter().flatten()).collect()
    }

    /// The failure of a case: its kind and its message.
    #[track_caller]
    pub fn failure(&self, name: &str) -> (&str, &str) {
        let failure = &self.case(name)["failure"];
        (failure["kind"].as_str().expect("it failed"), failure["message"].as_str().unwrap())
    }
}
