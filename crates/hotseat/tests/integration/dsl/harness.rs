//! Runs examples in this process and reads the report.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use hotseat::dsl::prelude::*;
use hotseat::dsl::{CapturedOutput, Harness, HarnessContext, HarnessOutput};
use hotseat_testkit::FakeAgent;
use serde_json::{Value, json};

/// Result of a run.
pub struct ExampleRun {
    /// Exit code.
    pub code: u8,
    /// Report; null if none was written.
    pub report: Value,
    /// What the run printed.
    pub output: String,
    /// Text files of the working folder.
    pub files: BTreeMap<String, String>,
}

/// The target of an agent over HTTP whose calls nothing shows.
pub fn target_without_calls(agent: &FakeAgent) -> String {
    format!(
        "target: {{ type: http, endpoint: '{agent}', body: {{ text: '{{{{message}}}}' }}, map: {{ reply: $.reply }} }}\n"
    )
}

/// An agent that repeats the user text and checks rooms that are mentioned.
pub fn echo_agent(g: &mut Group) {
    g.agent(replies(async |messages: Vec<Message>| {
        let said = messages.last().unwrap().content.clone();
        let answer = CodeAgentAnswer::text(format!("You said: {said}"));
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
pub fn run_examples(declare: impl FnOnce(&mut Group)) -> ExampleRun {
    run_examples_with(&[], declare)
}

/// Like `run_examples`, with arguments.
pub fn run_examples_with(arguments: &[&str], declare: impl FnOnce(&mut Group)) -> ExampleRun {
    run_examples_in(|_| {}, arguments, declare)
}

/// Like `run_examples_with`, in a folder prepared by `write`.
pub fn run_examples_in(
    write: impl FnOnce(&Path),
    arguments: &[&str],
    declare: impl FnOnce(&mut Group),
) -> ExampleRun {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let mut all = vec!["--quiet".to_string(), "--output=report.json".to_string()];
    all.extend(arguments.iter().map(|argument| argument.to_string()));
    let output = CapturedOutput::default();
    let world = HarnessContext {
        environment: Arc::new(BTreeMap::new()),
        folder: folder.path().to_path_buf(),
        color: false,
        width: 100,
        output: HarnessOutput::Captured(output.clone()),
    };
    let code = Harness { arguments: all, context: world, file: file!() }.run(declare);
    let files: BTreeMap<String, String> = std::fs::read_dir(folder.path())
        .unwrap()
        .filter_map(|entry| {
            let entry = entry.unwrap();
            let text = std::fs::read_to_string(entry.path()).ok()?;
            Some((entry.file_name().into_string().unwrap(), text))
        })
        .collect();
    let report = files.get("report.json").and_then(|text| serde_json::from_str(text).ok());
    ExampleRun { code, report: report.unwrap_or_default(), output: output.text(), files }
}

impl fmt::Debug for ExampleRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exit code {}: {:#}", self.code, self.report)
    }
}

impl ExampleRun {
    /// The result of a case.
    #[track_caller]
    pub fn case(&self, name: &str) -> &Value {
        let results = self.report["results"].as_array().expect("there is a report");
        results.iter().find(|result| result["name"] == name).expect("there is such a case")
    }

    /// Names and statuses of the cases.
    pub fn cases(&self) -> Vec<(&str, &str)> {
        let results = self.report["results"].as_array().into_iter().flatten();
        results.filter_map(|result| Some((result["name"].as_str()?, result["status"].as_str()?))).collect()
    }

    /// All checks of a case in report order.
    pub fn checks(&self, name: &str) -> Vec<&Value> {
        let case = self.case(name);
        let of_turns = case["turns"].as_array().into_iter().flatten();
        let of_turns = of_turns.flat_map(|turn| turn["assertions"].as_array().into_iter().flatten());
        of_turns.chain(case["assertions"].as_array().into_iter().flatten()).collect()
    }

    /// Failure of a case: kind and message.
    #[track_caller]
    pub fn failure(&self, name: &str) -> (&str, &str) {
        let failure = &self.case(name)["failure"];
        (failure["kind"].as_str().expect("it failed"), failure["message"].as_str().unwrap())
    }
}
