//! A temporary folder, and programs that run in it isolated from the machine's environment.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fmt, thread};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};
use serde_json::Value;
use wait4::Wait4;

use crate::redact::redact;
use crate::terminal::PseudoTerminal;
use crate::watched::SharedState;

/// Long enough for a slow machine, short enough when a test hangs.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// Time that child processes may keep the output open after the program has ended.
const OUTPUT_GRACE: Duration = Duration::from_secs(2);

/// A temporary folder, deleted on drop.
#[derive(Debug)]
pub struct TestWorkspace {
    root: PathBuf,
    _folder: tempfile::TempDir,
}

impl TestWorkspace {
    /// Creates an empty folder. Panics if it cannot be created. All methods panic on file system errors.
    #[expect(clippy::new_without_default, reason = "creating a folder is not a default")]
    pub fn new() -> TestWorkspace {
        let folder = tempfile::Builder::new().prefix("hotseat-test-").tempdir().expect("a temporary folder");
        // Programs print the canonical path of their working folder, so redaction must use it too.
        let root = folder.path().canonicalize().expect("a new folder has a real path");
        TestWorkspace { root, _folder: folder }
    }

    /// Returns the folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns a path in the folder.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Writes a file and its parent folders, and returns its path.
    #[track_caller]
    pub fn file(&self, path: &str, text: &str) -> PathBuf {
        let path = self.path(path);
        let folder = path.parent().expect("a file is in a folder");
        fs::create_dir_all(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path
    }

    /// Reads a file that must exist.
    #[track_caller]
    pub fn read(&self, path: &str) -> String {
        let path = self.path(path);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Reads a file that must be JSON.
    #[track_caller]
    pub fn read_json(&self, path: &str) -> Value {
        let text = self.read(path);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}: {text}"))
    }

    /// Runs a program and waits for its end.
    #[track_caller]
    pub fn run(&self, binary: impl AsRef<OsStr>, args: &[&str]) -> ProgramOutput {
        self.command(binary, args).run()
    }

    /// Prepares to run a program.
    pub fn command(&self, binary: impl AsRef<OsStr>, args: &[&str]) -> ProgramInvocation {
        ProgramInvocation {
            program: binary.as_ref().to_owned(),
            args: args.iter().map(OsString::from).collect(),
            env: Vec::new(),
            root: self.root.clone(),
            cwd: self.root.clone(),
            stdin: None,
            terminal: None,
            timeout: DEFAULT_TIMEOUT,
        }
    }
}

/// A program to run. Its environment contains only `PATH`, `HOME` (the workspace) and the variables of
/// [`ProgramInvocation::env`].
#[derive(Debug, Clone)]
#[must_use = "it has to be run"]
pub struct ProgramInvocation {
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    root: PathBuf,
    cwd: PathBuf,
    stdin: Option<Vec<u8>>,
    terminal: Option<u16>,
    timeout: Duration,
}

impl ProgramInvocation {
    /// Adds a variable to the environment.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> ProgramInvocation {
        self.env.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Sets the working folder, relative to the workspace.
    pub fn cwd(mut self, folder: &str) -> ProgramInvocation {
        self.cwd = self.root.join(folder);
        self
    }

    /// Sets the standard input; empty by default.
    pub fn stdin(mut self, input: impl AsRef<[u8]>) -> ProgramInvocation {
        self.stdin = Some(input.as_ref().to_owned());
        self
    }

    /// Runs the program on a terminal with this many columns that accepts typing. The terminal output counts
    /// as stdout.
    pub fn terminal(mut self, columns: u16) -> ProgramInvocation {
        self.terminal = Some(columns);
        self
    }

    /// Sets the time limit [default: 60 s].
    pub fn timeout(mut self, timeout: Duration) -> ProgramInvocation {
        self.timeout = timeout;
        self
    }

    /// Runs the program and waits for its end. Panics as [`ProgramInvocation::spawn`] and
    /// [`SpawnedProgram::wait`].
    #[track_caller]
    pub fn run(self) -> ProgramOutput {
        self.spawn().wait()
    }

    /// Starts the program as the leader of a new process group. Panics if it cannot be started.
    #[track_caller]
    pub fn spawn(self) -> SpawnedProgram {
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .current_dir(&self.cwd)
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .env("HOME", &self.root)
            .envs(self.env)
            .process_group(0)
            .stdin(if self.stdin.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let terminal = self.terminal.map(|columns| {
            let terminal = PseudoTerminal::open(columns).expect("the system has terminals");
            let stream = || terminal.stream().expect("a terminal can be opened more than once");
            command.stdin(stream()).stdout(stream()).stderr(stream()).env("TERM", "xterm-256color");
            terminal.human
        });
        let shown = format!("{command:?}");
        let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {shown}: {error}"));

        if let (Some(mut pipe), Some(text)) = (child.stdin.take(), self.stdin) {
            // A program need not read its input, so write errors are ignored.
            thread::spawn(move || pipe.write_all(&text));
        }
        // The command holds the program's end of the terminal open until it is dropped.
        drop(command);
        let (stdout, stderr) = match &terminal {
            Some(person) => (
                OutputCapture::start(person.try_clone().expect("it is open")),
                OutputCapture::start(io::empty()),
            ),
            None => (
                OutputCapture::start(child.stdout.take().expect("stdout is a pipe")),
                OutputCapture::start(child.stderr.take().expect("stderr is a pipe")),
            ),
        };
        let pid = Pid::from_child(&child);
        let ended = Arc::new(SharedState::<bool>::default());
        thread::spawn({
            let ended = Arc::clone(&ended);
            move || {
                // NOWAIT leaves the process to be reaped in `wait`: until then its process and group ids are
                // not reused, and signals cannot hit another process.
                let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
                while waitid(WaitId::Pid(pid), options).is_err_and(|error| error == Errno::INTR) {}
                ended.change(|ended| *ended = true);
            }
        });
        let deadline = Instant::now() + self.timeout;
        SpawnedProgram {
            child: Some(child),
            pid,
            ended,
            keyboard: terminal,
            stdout,
            stderr,
            shown,
            root: self.root,
            timeout: self.timeout,
            deadline,
        }
    }
}

/// A started program. Dropping it kills its process group.
#[derive(Debug)]
pub struct SpawnedProgram {
    /// None once it was waited for.
    child: Option<Child>,
    pid: Pid,
    ended: Arc<SharedState<bool>>,
    keyboard: Option<File>,
    stdout: Arc<SharedState<OutputCapture>>,
    stderr: Arc<SharedState<OutputCapture>>,
    shown: String,
    root: PathBuf,
    timeout: Duration,
    deadline: Instant,
}

impl SpawnedProgram {
    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Sends SIGINT to the program only, like `kill -INT`.
    #[track_caller]
    pub fn interrupt(&self) {
        kill_process(self.pid, Signal::INT).expect("the process is there until it was waited for");
    }

    /// Sends SIGINT to the process group, like a terminal on Ctrl-C.
    #[track_caller]
    pub fn press_ctrl_c(&self) {
        kill_process_group(self.pid, Signal::INT).expect("the group is there until it was waited for");
    }

    /// Types a line at the terminal. Panics if there is no terminal.
    #[track_caller]
    pub fn type_line(&mut self, line: &str) {
        self.press_keys(&format!("{line}\n"));
    }

    /// Presses keys at the terminal, without Enter. Panics if there is no terminal.
    #[track_caller]
    pub fn press_keys(&mut self, keys: &str) {
        let keyboard = self.keyboard.as_mut().expect("the program was given a terminal");
        keyboard.write_all(keys.as_bytes()).expect("a terminal takes what is typed");
    }

    /// Types end of input, like Ctrl-D at the start of a line. Panics if there is no terminal.
    #[track_caller]
    pub fn press_ctrl_d(&mut self) {
        self.press_keys("\u{4}");
    }

    /// Waits until stdout contains `text`, and returns all output of stdout so far. Panics if stdout closes
    /// or the time limit passes first.
    #[track_caller]
    pub fn wait_for_stdout(&mut self, text: &str) -> String {
        let stdout = Arc::clone(&self.stdout);
        self.wait_for_text(&stdout, "stdout", text)
    }

    /// Like [`SpawnedProgram::wait_for_stdout`], for stderr. Panics if stderr closes or the time limit passes
    /// first.
    #[track_caller]
    pub fn wait_for_stderr(&mut self, text: &str) -> String {
        let stderr = Arc::clone(&self.stderr);
        self.wait_for_text(&stderr, "stderr", text)
    }

    #[track_caller]
    fn wait_for_text(&mut self, capture: &SharedState<OutputCapture>, name: &str, text: &str) -> String {
        let captured = capture.wait(self.left(), |capture| capture.closed || capture.text().contains(text));
        let printed = captured.text();
        drop(captured);
        if !printed.contains(text) {
            self.fail(&format!("never printed {text:?} to {name}"));
        }
        printed
    }

    /// Waits for the end of the program and of its output. Panics if the program exceeds its time limit, or a
    /// child process keeps its output open. The process group is killed, and the message contains the output.
    #[track_caller]
    pub fn wait(self) -> ProgramOutput {
        self.wait_and_measure().0
    }

    /// Waits as [`SpawnedProgram::wait`] does, and says in bytes how much memory the program had at most, as the kernel counts it
    /// when the program has ended. It is never less than what this process had when it started the program.
    #[track_caller]
    pub fn wait_and_measure(mut self) -> (ProgramOutput, u64) {
        let ended = *self.ended.wait(self.left(), |ended| *ended);
        if !ended {
            self.fail(&format!("was still running after {:?}", self.timeout));
        }
        let grace = Instant::now() + OUTPUT_GRACE;
        for capture in [Arc::clone(&self.stdout), Arc::clone(&self.stderr)] {
            let left = grace.saturating_duration_since(Instant::now());
            let closed = capture.wait(left, |capture| capture.closed).closed;
            if !closed {
                self.fail("ended, but left something behind that holds its output open");
            }
        }
        let (code, peak) = self.reap();
        let output = ProgramOutput {
            code,
            stdout: self.stdout.get().text(),
            stderr: self.stderr.get().text(),
            root: self.root.clone(),
        };
        (output, peak)
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    #[track_caller]
    fn fail(&mut self, what: &str) -> ! {
        self.kill();
        let (stdout, stderr) = (self.stdout.get().text(), self.stderr.get().text());
        panic!("{} {what}\n----- stdout -----\n{stdout}\n----- stderr -----\n{stderr}", self.shown);
    }

    fn kill(&mut self) {
        // Fails only if the whole group has ended already.
        let _ = kill_process_group(self.pid, Signal::KILL);
        self.reap();
    }

    /// The exit code (128 and the signal's number if one ended it, as in a shell) and the peak of its memory in bytes.
    fn reap(&mut self) -> (i32, u64) {
        let child = self.child.take().expect("it is waited for once");
        let used = child.wait4().expect("a child can be waited for");
        let by_signal = || used.status.signal().map(|signal| 128 + signal);
        (used.status.code().or_else(by_signal).expect("it has ended"), used.rusage.maxrss)
    }
}

impl Drop for SpawnedProgram {
    fn drop(&mut self) {
        if self.child.is_some() {
            self.kill();
        }
    }
}

/// Output and exit code of a program. `Display` shows all three parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramOutput {
    /// Exit code, or 128 plus the number of the signal.
    pub code: i32,
    /// Complete stdout.
    pub stdout: String,
    /// Complete stderr.
    pub stderr: String,
    root: PathBuf,
}

impl ProgramOutput {
    /// Asserts the exit code.
    #[track_caller]
    pub fn assert_code(&self, code: i32) {
        assert_eq!(self.code, code, "{self}");
    }

    /// Asserts the exit code, and that stderr contains each of these texts.
    #[track_caller]
    pub fn assert_stderr(&self, code: i32, texts: &[&str]) {
        self.assert_contains(code, &self.stderr, texts);
    }

    /// Asserts the exit code, and that stdout contains each of these texts.
    #[track_caller]
    pub fn assert_stdout(&self, code: i32, texts: &[&str]) {
        self.assert_contains(code, &self.stdout, texts);
    }

    #[track_caller]
    fn assert_contains(&self, code: i32, printed: &str, texts: &[&str]) {
        assert_eq!(self.code, code, "{texts:?}\n{self}");
        for text in texts {
            assert!(printed.contains(text), "{text:?} is missing\n{self}");
        }
    }

    /// Replaces the parts that differ between runs, see [`REDACTIONS`](crate::REDACTIONS).
    pub fn redacted(&self) -> ProgramOutput {
        ProgramOutput {
            stdout: redact(&self.stdout, &self.root),
            stderr: redact(&self.stderr, &self.root),
            ..self.clone()
        }
    }
}

impl fmt::Display for ProgramOutput {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ProgramOutput { code, stdout, stderr, root: _ } = self;
        write!(out, "exit code: {code}\n----- stdout -----\n{stdout}\n----- stderr -----\n{stderr}")
    }
}

/// Output read from a pipe so far.
#[derive(Debug, Default)]
struct OutputCapture {
    bytes: Vec<u8>,
    closed: bool,
}

impl OutputCapture {
    fn start(mut pipe: impl Read + Send + 'static) -> Arc<SharedState<OutputCapture>> {
        let capture = Arc::new(SharedState::<OutputCapture>::default());
        thread::spawn({
            let capture = Arc::clone(&capture);
            move || {
                let mut buffer = [0; 16 * 1024];
                loop {
                    match pipe.read(&mut buffer) {
                        Ok(0) => break,
                        Ok(length) => {
                            capture.change(|capture| capture.bytes.extend_from_slice(&buffer[..length]));
                        }
                        Err(error) if error.kind() == ErrorKind::Interrupted => {}
                        Err(_) => break,
                    }
                }
                capture.change(|capture| capture.closed = true);
            }
        });
        capture
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}
