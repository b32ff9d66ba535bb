//! The binary under test in a project folder of its own, and its output.

pub mod http_agents;
pub mod letters;
pub mod records;
pub mod typescript;

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use hotseat::dsl::{Harness, HarnessContext, HarnessOutput};
use hotseat_testkit::agui::FakeRun;
use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest, ProgramInvocation, ProgramOutput, TestWorkspace};
use serde_json::Value;

/// Tests fail after waiting this long.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// The binary under test.
pub const HOTSEAT: &str = env!("CARGO_BIN_EXE_hotseat");

/// A folder with a project file in which `hotseat` runs.
pub struct Project {
    pub workspace: TestWorkspace,
}

/// Result of `hotseat test`: output and report.
pub struct TestRun {
    pub output: ProgramOutput,
    pub report: Value,
}

impl Project {
    /// An empty folder.
    pub fn empty() -> Project {
        Project { workspace: TestWorkspace::new() }
    }

    /// A project whose target is a local agent.
    pub fn with_agent(agent: &FakeAgent) -> Project {
        Project::with_config(&format!("target:\n  endpoint: {agent}\n"))
    }

    /// A project with the given project file.
    pub fn with_config(text: &str) -> Project {
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

    /// Writes `a.test.jsonl`, with one case per line.
    #[track_caller]
    pub fn cases(self, cases: &[Value]) -> Project {
        let lines: Vec<String> = cases.iter().map(Value::to_string).collect();
        self.file("a.test.jsonl", &lines.join("\n"))
    }

    /// Writes any file.
    #[track_caller]
    pub fn file(self, path: &str, text: &str) -> Project {
        self.workspace.file(path, text);
        self
    }

    /// `hotseat ARGS…`, not started yet.
    pub fn command(&self, args: &[&str]) -> ProgramInvocation {
        self.workspace.command(HOTSEAT, args).timeout(TEST_TIMEOUT)
    }

    /// Runs `hotseat ARGS…` to its end.
    #[track_caller]
    pub fn hotseat(&self, args: &[&str]) -> ProgramOutput {
        let output = self.command(args).run();
        assert_no_panic(&output);
        output
    }

    /// A Rust test program in this folder, and what it prints.
    pub fn harness(&self, file: &'static str, arguments: &[&str]) -> (Harness, HarnessOutput) {
        let output = HarnessOutput::captured();
        let context = HarnessContext {
            environment: Arc::default(),
            folder: self.workspace.path("."),
            color: false,
            width: 100,
            output: output.clone(),
        };
        let arguments = arguments.iter().map(|argument| argument.to_string()).collect();
        (Harness { arguments, context, file }, output)
    }

    /// Runs `hotseat test` with a report.
    #[track_caller]
    pub fn test(&self, args: &[&str]) -> TestRun {
        self.test_with(args, |command| command)
    }

    /// Runs `hotseat test` with a report and environment variables.
    #[track_caller]
    pub fn test_in(&self, env: &[(&str, &str)], args: &[&str]) -> TestRun {
        self.test_with(args, |command| {
            env.iter().fold(command, |command, (name, value)| command.env(name, value))
        })
    }

    /// Runs `hotseat test` with a report, for example with a standard input.
    #[track_caller]
    pub fn test_with(
        &self,
        args: &[&str],
        prepare: impl FnOnce(ProgramInvocation) -> ProgramInvocation,
    ) -> TestRun {
        // Removes the report of an earlier run.
        let _ = std::fs::remove_file(self.workspace.path(REPORT));
        let output = prepare(self.command(&[&["test", "-o", REPORT], args].concat())).run();
        assert_no_panic(&output);
        assert!(exists(&self.workspace, REPORT), "no report was written\n{output}");
        TestRun { output, report: self.workspace.read_json(REPORT) }
    }
}

/// Path of the report.
const REPORT: &str = "out/report.json";

impl TestRun {
    /// The results of all cases.
    #[track_caller]
    pub fn results(&self) -> &[Value] {
        self.report["results"].as_array().expect("a list of results")
    }

    /// The result of a case.
    #[track_caller]
    pub fn case(&self, name: &str) -> &Value {
        self.results()
            .iter()
            .find(|result| result["name"] == name)
            .unwrap_or_else(|| panic!("no case {name}\n{}", self.output))
    }

    /// The failure of a case. Panics if it passed.
    #[track_caller]
    pub fn failure(&self, name: &str) -> &Value {
        let case = self.case(name);
        assert_eq!(case["status"], "failed", "{name}: {case:#}\n{}", self.output);
        assert_ne!(self.output.code, 0, "{}", self.output);
        &case["failure"]
    }

    /// Asserts the kind and the fault of the failure of a case, and returns it.
    #[track_caller]
    pub fn assert_fault(&self, name: &str, kind: &str, fault: &str) -> &Value {
        let failure = self.failure(name);
        assert!(failure["kind"] == kind && failure["fault"] == fault, "{kind} of {fault}: {failure:#}");
        failure
    }

    /// Asserts the kind of failure of a case, and that its message or detail contains these words.
    #[track_caller]
    pub fn assert_failure(&self, name: &str, kind: &str, words: &[&str]) {
        let failure = self.failure(name);
        assert_eq!(failure["kind"], kind, "{failure:#}");
        let text = format!("{} {}", failure["message"], failure["detail"]);
        for words in words {
            assert!(text.contains(words), "{words:?} is not in {failure:#}");
        }
    }

    /// Asserts the exit code, and the kind and words of the failure of case `a`.
    #[track_caller]
    pub fn assert_failed(&self, code: i32, kind: &str, words: &str) {
        let failure = self.failure("a");
        assert_eq!(failure["kind"], kind, "{failure:#}");
        let message = failure["message"].as_str().unwrap_or_default();
        assert!(message.contains(words), "{words:?} is not in {message:?}");
        assert_eq!(self.output.code, code, "{}", self.output);
    }

    /// Asserts that every case passed and the exit code is 0.
    #[track_caller]
    pub fn assert_all_passed(&self) {
        let all = self.results();
        let passed = !all.is_empty() && all.iter().all(|result| result["status"] == "passed");
        assert!(passed && self.output.code == 0, "{}", self.output);
    }

    /// A number of the summary.
    #[track_caller]
    pub fn count(&self, what: &str) -> u64 {
        self.report["summary"][what]
            .as_u64()
            .unwrap_or_else(|| panic!("no count {what}: {}", self.report["summary"]))
    }
}

/// Copies a folder of `examples` into a project.
pub fn example(name: &str) -> Project {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    let project = Project::empty();
    let mut folders = vec![from.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            match path.is_dir() {
                // Files of earlier runs do not belong to the example.
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

/// Asserts that the output contains no panic.
#[track_caller]
pub fn assert_no_panic(output: &ProgramOutput) {
    let panicked = output.stderr.contains("panicked at") || output.stdout.contains("a fault of Hotseat");
    assert!(!panicked, "{output}");
}

/// Answers with the user text.
pub fn echo(request: &FakeRequest) -> FakeReply {
    let said = request.last_user_text();
    FakeRun::for_request(request).started().text(&format!("You said: {said}")).finished().into()
}

/// An agent that repeats the user text.
pub fn echo_agent() -> FakeAgent {
    FakeAgent::start(echo)
}

/// The address of a port where nothing listens. No test gets it for a listener of its own: operating systems choose free
/// ports above 32,767, and each address is given out once.
pub fn unreachable_address() -> String {
    static NEXT_OFFSET: AtomicU32 = AtomicU32::new(0);
    const FIRST_PORT: u32 = 10_000;
    const PORTS: u32 = 22_000;
    loop {
        let offset =
            std::process::id().wrapping_mul(97).wrapping_add(NEXT_OFFSET.fetch_add(1, Ordering::Relaxed));
        let port = (FIRST_PORT + offset % PORTS) as u16;
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return format!("http://127.0.0.1:{port}/");
        }
    }
}

/// A named pipe that processes keep open while they live; end of file means that all have ended.
pub struct Lifeline {
    seen: mpsc::Receiver<Seen>,
}

#[derive(Debug, PartialEq)]
enum Seen {
    Start,
    End,
}

impl Lifeline {
    /// Creates the pipe `name` in the workspace. It is held by every process that opens it for writing, and
    /// by its children.
    pub fn new(workspace: &TestWorkspace, name: &str) -> Lifeline {
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

    /// Waits until a process holds the pipe.
    #[track_caller]
    pub fn wait_for_start(&self) {
        assert_eq!(self.seen.recv_timeout(TEST_TIMEOUT), Ok(Seen::Start), "no process opened the pipe");
    }

    /// Waits until all holders have ended.
    #[track_caller]
    pub fn wait_for_end(&self) {
        while self.seen.recv_timeout(TEST_TIMEOUT).expect("what held the pipe should have ended") != Seen::End
        {
        }
    }

    /// Returns true if all holders have ended, and resets the state.
    pub fn has_ended(&self) -> bool {
        self.seen.try_iter().any(|seen| seen == Seen::End)
    }
}

/// Returns true if the file exists.
pub fn exists(workspace: &TestWorkspace, path: &str) -> bool {
    Path::exists(&workspace.path(path))
}

/// Peak memory of this process, which a program inherits from the process that starts it.
#[cfg(target_os = "linux")]
pub fn inherited_peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("the status of this process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the peak memory");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}
