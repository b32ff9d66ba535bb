//! The same agent behind four adapters.

use std::fs;
use std::path::{Path, PathBuf};

use hotseat_testkit::{ProgramInvocation, SpawnedProgram};
use serde_json::{Value, json};

use crate::common::{HOTSEAT, Project, TEST_TIMEOUT, TestRun};

/// Adapters, which are also the names of the project files.
pub const ADAPTERS: [&str; 4] = ["embedded", "ag_ui", "openai", "command"];

/// A project folder with the agent served on a port.
pub struct SampleProject {
    pub project: Project,
    _server: SpawnedProgram,
    address: String,
}

/// Folder of the samples.
pub fn samples(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/samples").join(path)
}

/// Content of a sample file.
#[track_caller]
pub fn sample(path: &str) -> String {
    let path = samples(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

impl SampleProject {
    pub fn create() -> SampleProject {
        let project = Project::empty();
        copy(&samples("project"), Path::new(""), &project);
        // Commands without `--config` find this file.
        project.workspace.file("hotseat.yaml", &sample("project/embedded.yaml"));
        let mut server = project.command(&["serve", "agent", "--port", "0"]).timeout(TEST_TIMEOUT).spawn();
        let printed = server.wait_for_stdout("Ctrl-C stops it.");
        let address = printed.split_whitespace().nth(2).expect("an address").to_string();
        SampleProject { project, _server: server, address }
    }

    /// Writes a file into `tests/`.
    #[track_caller]
    pub fn with_test_file(self, name: &str, text: &str) -> SampleProject {
        self.project.workspace.file(&format!("tests/{name}"), text);
        self
    }

    /// Adds the environment that the project files use.
    pub fn command(&self, args: &[&str]) -> ProgramInvocation {
        self.with_environment(self.project.command(args))
    }

    /// A command with the environment of the project files.
    pub fn with_environment(&self, command: ProgramInvocation) -> ProgramInvocation {
        command.env("ADDRESS", &self.address).env("HOTSEAT", HOTSEAT)
    }

    /// Runs `tests/NAME` with one adapter.
    #[track_caller]
    pub fn run_with(&self, door: &str, name: &str, args: &[&str]) -> TestRun {
        let env = [("ADDRESS", &*self.address), ("HOTSEAT", HOTSEAT)];
        let (config, file) = (format!("{door}.yaml"), format!("tests/{name}"));
        self.project.test_in(&env, &[&["--config", &config, "-i", &file], args].concat())
    }

    /// Runs `tests/NAME` with every adapter and asserts equal results.
    #[track_caller]
    pub fn run_with_every_adapter(&self, name: &str, args: &[&str]) -> TestRun {
        let [first, others @ ..] = ADAPTERS;
        let here = self.run_with(first, name, args);
        for door in others {
            let there = self.run_with(door, name, args);
            assert_eq!(there.output.code, here.output.code, "{door}: {}", there.output);
            for (one, other) in comparable_results(&here).iter().zip(comparable_results(&there)) {
                assert_eq!(*one, other, "{first} and {door} differ\n{}\n{}", here.output, there.output);
            }
        }
        here
    }
}

fn copy(from: &Path, to: &Path, project: &Project) {
    for entry in fs::read_dir(from).expect("a folder of samples") {
        let entry = entry.expect("a file of samples");
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to, project);
        } else {
            let text = fs::read_to_string(entry.path()).expect("samples are text");
            project.workspace.file(to.to_str().expect("samples have plain names"), &text);
        }
    }
}

/// Results of each case without members that depend on the adapter.
pub fn comparable_results(tested: &TestRun) -> Vec<Value> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let turn = |turn: Value| {
        let calls: Vec<Value> = list(&turn["tool_calls"])
            .iter()
            .map(|call| {
                // Not every protocol reports that a tool failed; all report its output.
                let said = if call["result"].is_null() { &call["error"] } else { &call["result"] };
                json!([call["name"], call["args"], said])
            })
            .collect();
        let asserted: Vec<Value> = list(&turn["assertions"])
            .iter()
            .map(|check| json!([check["passed"], check["expected"], check["actual"]]))
            .collect();
        json!({
            "input": turn["input"], "input_source": turn["input_source"], "output": turn["output"],
            "status": turn["status"], "error": turn["error"], "skip_reason": turn["skip_reason"],
            "awaiting_input": turn["awaiting_input"], "awaiting_reason": turn["awaiting_reason"],
            "tool_calls": calls, "assertions": asserted,
        })
    };
    let result = |result: &Value| {
        let turns: Vec<Value> = list(&result["turns"]).into_iter().map(turn).collect();
        let mut kept = json!({"turns": turns});
        for key in [
            "id",
            "name",
            "status",
            "error",
            "error_kind",
            "skip_reason",
            "assertion_errors",
            "output",
            "total_turns",
            "checkpoints",
            "final_assertions",
        ] {
            kept[key] = result[key].clone();
        }
        kept
    };
    list(&tested.report["results"]).iter().map(result).collect()
}
