//! The same agent behind four doors.

use std::fs;
use std::path::{Path, PathBuf};

use hotseat_testkit::{Invocation, Running};
use serde_json::{Value, json};

use crate::common::{HOTSEAT, LONG, Project, Tested};

/// How the agent is reached: the names of the project files.
pub const DOORS: [&str; 4] = ["embedded", "ag_ui", "openai", "command"];

/// The project in a folder of its own, with the agent served at a port.
pub struct House {
    pub project: Project,
    _server: Running,
    address: String,
}

/// Where the samples are.
pub fn samples(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples").join(path)
}

/// A file of the samples.
#[track_caller]
pub fn sample(path: &str) -> String {
    let path = samples(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

impl House {
    pub fn open() -> House {
        let project = Project::empty();
        copy(&samples("project"), Path::new(""), &project);
        // Who is not told of a project file finds this one.
        project.workspace.file("hotseat.yaml", &sample("project/embedded.yaml"));
        let mut server = project.command(&["serve", "agent", "--port", "0"]).timeout(LONG).spawn();
        let printed = server.wait_for_stdout("Ctrl-C stops it.");
        let address = printed.split_whitespace().nth(2).expect("an address").to_string();
        House { project, _server: server, address }
    }

    /// Puts a file into `tests/`.
    #[track_caller]
    pub fn with(self, name: &str, text: &str) -> House {
        self.project.workspace.file(&format!("tests/{name}"), text);
        self
    }

    /// Adds what project files need to know of the machine.
    pub fn command(&self, args: &[&str]) -> Invocation {
        self.knowing(self.project.command(args))
    }

    /// A command with what project files need to know.
    pub fn knowing(&self, command: Invocation) -> Invocation {
        command.env("ADDRESS", &self.address).env("HOTSEAT", HOTSEAT)
    }

    /// Runs `tests/NAME` behind a door.
    #[track_caller]
    pub fn held(&self, door: &str, name: &str, args: &[&str]) -> Tested {
        let env = [("ADDRESS", &*self.address), ("HOTSEAT", HOTSEAT)];
        let (config, file) = (format!("{door}.yaml"), format!("tests/{name}"));
        self.project.test_in(&env, &[&["--config", &config, "-i", &file], args].concat())
    }

    /// Runs `tests/NAME` behind every door; what comes of it is the same everywhere.
    #[track_caller]
    pub fn everywhere(&self, name: &str, args: &[&str]) -> Tested {
        let [first, others @ ..] = DOORS;
        let here = self.held(first, name, args);
        for door in others {
            let there = self.held(door, name, args);
            assert_eq!(there.output.code, here.output.code, "{door}: {}", there.output);
            for (one, other) in came_to(&here).iter().zip(came_to(&there)) {
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

/// What came of each case: everything of a report that must not depend on the door.
pub fn came_to(tested: &Tested) -> Vec<Value> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let turn = |turn: Value| {
        let calls: Vec<Value> = list(&turn["tool_calls"])
            .iter()
            .map(|call| {
                // Not every protocol tells that a tool failed; what it said is told by all.
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
