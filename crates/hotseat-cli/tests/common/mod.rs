//! The binary under test in a project folder of its own, and what it wrote there.
#![allow(dead_code, reason = "each test file is compiled with it and uses its own part")]

pub mod letters;
pub mod records;
pub mod typescript;

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use hotseat_testkit::agui::Run;
use hotseat_testkit::{FakeAgent, Invocation, Output, Reply, Request, Workspace};
use serde_json::Value;

/// A test that waits this long for something has failed.
pub const LONG: Duration = Duration::from_secs(30);

/// The binary under test.
pub const HOTSEAT: &str = env!("CARGO_BIN_EXE_hotseat");

/// A folder with a project file, in which `hotseat` runs.
pub struct Project {
    pub workspace: Workspace,
}

/// What `hotseat test` came to: how it ended, and the report that it wrote.
pub struct Tested {
    pub output: Output,
    pub report: Value,
}

impl Project {
    /// A folder without a file.
    pub fn empty() -> Project {
        Project { workspace: Workspace::new() }
    }

    /// A project whose target is an agent on this machine.
    pub fn of(agent: &FakeAgent) -> Project {
        Project::with(&format!("target:\n  endpoint: {}\n", agent.url()))
    }

    /// A project file that reads as given.
    pub fn with(text: &str) -> Project {
        let project = Project::empty();
        project.workspace.file("hotseat.yaml", text);
        project
    }

    /// Writes `name.test.yaml`.
    #[track_caller]
    pub fn suite(self, name: &str, text: &str) -> Project {
        self.workspace.file(&format!("{name}.test.yaml"), text);
        self
    }

    /// Writes any other file.
    #[track_caller]
    pub fn file(self, path: &str, text: &str) -> Project {
        self.workspace.file(path, text);
        self
    }

    /// `hotseat ARGS…`, still to be run.
    pub fn command(&self, args: &[&str]) -> Invocation {
        self.workspace.command(HOTSEAT, args).timeout(LONG)
    }

    /// `hotseat ARGS…` to its end.
    #[track_caller]
    pub fn hotseat(&self, args: &[&str]) -> Output {
        let output = self.command(args).run();
        never_panicked(&output);
        output
    }

    /// `hotseat test` with a report.
    #[track_caller]
    pub fn test(&self, args: &[&str]) -> Tested {
        self.test_in(&[], args)
    }

    /// `hotseat test` with a report and these environment variables.
    #[track_caller]
    pub fn test_in(&self, env: &[(&str, &str)], args: &[&str]) -> Tested {
        // One of a run before must not be taken for that of this run.
        let _ = std::fs::remove_file(self.workspace.path(REPORT));
        let command = self.command(&[&["test", "-o", REPORT], args].concat());
        let output = env.iter().fold(command, |command, (name, value)| command.env(name, value)).run();
        never_panicked(&output);
        let Ok(report) = std::fs::read_to_string(self.workspace.path(REPORT)) else {
            panic!("no report was written\n{output}")
        };
        let report =
            serde_json::from_str(&report).unwrap_or_else(|error| panic!("{error}: {report}\n{output}"));
        Tested { output, report }
    }
}

/// Where the tests put their report.
const REPORT: &str = "out/report.json";

impl Tested {
    /// The result of a case.
    #[track_caller]
    pub fn case(&self, name: &str) -> &Value {
        let results = self.report["results"].as_array().expect("a list of results");
        results
            .iter()
            .find(|result| result["name"] == name)
            .unwrap_or_else(|| panic!("no case {name}\n{}", self.output))
    }

    /// The failure of a case that must not have passed.
    #[track_caller]
    pub fn failure(&self, name: &str) -> &Value {
        let case = self.case(name);
        assert_eq!(case["status"], "failed", "{name}: {case:#}\n{}", self.output);
        &case["failure"]
    }

    /// Every case passed, and the exit code says so.
    #[track_caller]
    pub fn all_passed(&self) {
        let all = self.report["results"].as_array().expect("a list of results");
        let passed = !all.is_empty() && all.iter().all(|result| result["status"] == "passed");
        assert!(passed && self.output.code == 0, "{}", self.output);
    }

    /// How many cases `what` the summary counts.
    #[track_caller]
    pub fn count(&self, what: &str) -> u64 {
        self.report["summary"][what]
            .as_u64()
            .unwrap_or_else(|| panic!("no count {what}: {}", self.report["summary"]))
    }
}

/// A folder of `examples`, copied into a project.
pub fn example(name: &str) -> Project {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    let project = Project::empty();
    let mut folders = vec![from.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            match path.is_dir() {
                // What runs have left behind is no part of the example.
                _ if name.starts_with('.') => {}
                true => folders.push(path),
                false => {
                    let text = std::fs::read_to_string(&path).unwrap();
                    project.workspace.file(path.strip_prefix(&from).unwrap().to_str().unwrap(), &text);
                }
            }
        }
    }
    project
}

/// Whatever is wrong, it is said in words.
#[track_caller]
pub fn never_panicked(output: &Output) {
    let panicked = output.stderr.contains("panicked at") || output.stdout.contains("a fault of Hotseat");
    assert!(!panicked, "{output}");
}

/// An agent that repeats what it is told.
pub fn echo(request: &Request) -> Reply {
    let said = request.last_user_text();
    Run::of(request).started().text(&format!("You said: {said}")).finished().into()
}

/// An agent that repeats what it is told.
pub fn echo_agent() -> FakeAgent {
    FakeAgent::start(echo)
}

/// An address where nobody listens.
pub fn nobody() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("127.0.0.1 has a free port");
    let address = listener.local_addr().expect("a listener has an address");
    format!("http://{address}/")
}

/// A named pipe that processes hold open while they live: its end is theirs.
pub struct Lifeline {
    seen: mpsc::Receiver<Seen>,
}

#[derive(Debug, PartialEq)]
enum Seen {
    Start,
    End,
}

impl Lifeline {
    /// Makes the pipe `name` in the workspace. Whoever opens it for writing, and what they start, hold it.
    pub fn new(workspace: &Workspace, name: &str) -> Lifeline {
        assert_eq!(workspace.run("mkfifo", &[name]).code, 0);
        let path = workspace.path(name);
        let (sender, seen) = mpsc::channel();
        thread::spawn(move || {
            // Opening waits for the first holder, reading for the end of the last one.
            let Ok(mut pipe) = File::open(path) else { return };
            let _ = sender.send(Seen::Start);
            let _ = pipe.read_to_end(&mut Vec::new());
            let _ = sender.send(Seen::End);
        });
        Lifeline { seen }
    }

    /// Waits until somebody holds the pipe.
    #[track_caller]
    pub fn wait_for_start(&self) {
        assert_eq!(self.seen.recv_timeout(LONG), Ok(Seen::Start), "nobody took hold of the pipe");
    }

    /// Waits until every process that held the pipe has ended.
    #[track_caller]
    pub fn wait_for_end(&self) {
        while self.seen.recv_timeout(LONG).expect("what held the pipe should have ended") != Seen::End {}
    }

    /// Whether every process that held the pipe has ended already. Forgets that there was one.
    pub fn has_ended(&self) -> bool {
        self.seen.try_iter().any(|seen| seen == Seen::End)
    }
}

/// Whether a file is there.
pub fn exists(workspace: &Workspace, path: &str) -> bool {
    Path::exists(&workspace.path(path))
}
