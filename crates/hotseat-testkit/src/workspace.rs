//! A temporary folder, and programs that run in it knowing nothing of the machine around them.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};
use wait4::Wait4;

use crate::redact::redact;
use crate::terminal::Terminal;
use crate::watched::Watched;

/// Long enough for a slow machine, short enough for a person who waits for a test that hangs.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// After a program has ended, how long what it started may still hold its output open.
const GRACE: Duration = Duration::from_secs(2);

/// A temporary folder. It is deleted when this is dropped.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    _folder: tempfile::TempDir,
}

impl Workspace {
    /// An empty folder.
    ///
    /// # Panics
    /// If none can be made; so does every method here when the file system refuses.
    #[expect(clippy::new_without_default, reason = "making a folder is no default")]
    pub fn new() -> Workspace {
        let folder = tempfile::Builder::new().prefix("hotseat-test-").tempdir().expect("a temporary folder");
        // Programs print the real path of their working directory; redaction has to know the same one.
        let root = folder.path().canonicalize().expect("a new folder has a real path");
        Workspace { root, _folder: folder }
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A path in the folder.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Writes a file and the folders above it; gives its path.
    #[track_caller]
    pub fn file(&self, path: &str, text: &str) -> PathBuf {
        let path = self.path(path);
        let folder = path.parent().expect("a file is in a folder");
        fs::create_dir_all(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path
    }

    /// Reads a file that must be there.
    #[track_caller]
    pub fn read(&self, path: &str) -> String {
        let path = self.path(path);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Runs a program to its end.
    #[track_caller]
    pub fn run(&self, binary: impl AsRef<OsStr>, args: &[&str]) -> Output {
        self.command(binary, args).run()
    }

    /// A program to be run, still without changes to how.
    pub fn command(&self, binary: impl AsRef<OsStr>, args: &[&str]) -> Invocation {
        Invocation {
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

/// How a program is to be run. Its environment holds `PATH`, `HOME` (the workspace) and what
/// [`Invocation::env`] adds, and nothing else.
#[derive(Debug, Clone)]
#[must_use = "it has to be run"]
pub struct Invocation {
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    root: PathBuf,
    cwd: PathBuf,
    stdin: Option<Vec<u8>>,
    terminal: Option<u16>,
    timeout: Duration,
}

impl Invocation {
    /// Adds a variable to the environment.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Invocation {
        self.env.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Runs in this folder of the workspace.
    pub fn cwd(mut self, folder: &str) -> Invocation {
        self.cwd = self.root.join(folder);
        self
    }

    /// What the program reads. Without it, its input is empty.
    pub fn stdin(mut self, text: &str) -> Invocation {
        self.stdin = Some(text.as_bytes().to_owned());
        self
    }

    /// Runs at a terminal of this many columns, at which somebody can type. What is seen there counts as stdout.
    pub fn terminal(mut self, columns: u16) -> Invocation {
        self.terminal = Some(columns);
        self
    }

    /// How long the program may take from its start [default: 60 s].
    pub fn timeout(mut self, timeout: Duration) -> Invocation {
        self.timeout = timeout;
        self
    }

    /// Runs the program to its end.
    ///
    /// # Panics
    /// As [`Invocation::spawn`] and [`Running::wait`] do.
    #[track_caller]
    pub fn run(self) -> Output {
        self.spawn().wait()
    }

    /// Starts the program as the leader of a process group of its own.
    ///
    /// # Panics
    /// If it cannot be started.
    #[track_caller]
    pub fn spawn(self) -> Running {
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
            let terminal = Terminal::open(columns).expect("the system has terminals");
            let stream = || terminal.stream().expect("a terminal can be opened more than once");
            command.stdin(stream()).stdout(stream()).stderr(stream()).env("TERM", "xterm-256color");
            terminal.person
        });
        let shown = format!("{command:?}");
        let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {shown}: {error}"));

        if let (Some(mut pipe), Some(text)) = (child.stdin.take(), self.stdin) {
            // A program need not read its input; that it did not is not for us to judge.
            thread::spawn(move || pipe.write_all(&text));
        }
        // The program's end of a terminal is open as long as somebody could start the program with it once more.
        drop(command);
        let (stdout, stderr) = match &terminal {
            Some(person) => (Capture::of(person.try_clone().expect("it is open")), Capture::of(io::empty())),
            None => (
                Capture::of(child.stdout.take().expect("stdout is a pipe")),
                Capture::of(child.stderr.take().expect("stderr is a pipe")),
            ),
        };
        let pid = Pid::from_child(&child);
        let ended = Arc::new(Watched::<bool>::default());
        thread::spawn({
            let ended = Arc::clone(&ended);
            move || {
                // NOWAIT leaves the process to be reaped in `wait`: until then its id, and the id of
                // its group, belong to nobody else, and signals cannot hit a stranger.
                let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
                while waitid(WaitId::Pid(pid), options).is_err_and(|error| error == Errno::INTR) {}
                ended.change(|ended| *ended = true);
            }
        });
        let deadline = Instant::now() + self.timeout;
        Running {
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

/// A program that was started. Dropping it kills it and what it started in its process group.
#[derive(Debug)]
pub struct Running {
    /// None once it was waited for.
    child: Option<Child>,
    pid: Pid,
    ended: Arc<Watched<bool>>,
    keyboard: Option<File>,
    stdout: Arc<Watched<Capture>>,
    stderr: Arc<Watched<Capture>>,
    shown: String,
    root: PathBuf,
    timeout: Duration,
    deadline: Instant,
}

impl Running {
    /// The id of its process.
    pub fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Sends SIGINT to the program alone, as `kill -INT` does.
    #[track_caller]
    pub fn interrupt(&self) {
        kill_process(self.pid, Signal::INT).expect("the process is there until it was waited for");
    }

    /// Sends SIGINT to the program's process group, as a terminal does for Ctrl-C.
    #[track_caller]
    pub fn press_ctrl_c(&self) {
        kill_process_group(self.pid, Signal::INT).expect("the group is there until it was waited for");
    }

    /// Types a line at its terminal.
    ///
    /// # Panics
    /// If it has none.
    #[track_caller]
    pub fn type_line(&mut self, line: &str) {
        let keyboard = self.keyboard.as_mut().expect("the program was given a terminal");
        keyboard.write_all(format!("{line}\n").as_bytes()).expect("a terminal takes what is typed");
    }

    /// Types the end of the input, as Ctrl-D does at the beginning of a line.
    ///
    /// # Panics
    /// If it has no terminal.
    #[track_caller]
    pub fn press_ctrl_d(&mut self) {
        let keyboard = self.keyboard.as_mut().expect("the program was given a terminal");
        keyboard.write_all(&[4]).expect("a terminal takes what is typed");
    }

    /// Waits until `text` has been printed to stdout; gives all that was printed there so far.
    ///
    /// # Panics
    /// If stdout closes, or the time is over, without it.
    #[track_caller]
    pub fn wait_for_stdout(&mut self, text: &str) -> String {
        let stdout = Arc::clone(&self.stdout);
        self.wait_for_text(&stdout, "stdout", text)
    }

    /// Like [`Running::wait_for_stdout`], for stderr.
    ///
    /// # Panics
    /// If stderr closes, or the time is over, without it.
    #[track_caller]
    pub fn wait_for_stderr(&mut self, text: &str) -> String {
        let stderr = Arc::clone(&self.stderr);
        self.wait_for_text(&stderr, "stderr", text)
    }

    #[track_caller]
    fn wait_for_text(&mut self, capture: &Watched<Capture>, name: &str, text: &str) -> String {
        let captured = capture.wait(self.left(), |capture| capture.closed || capture.text().contains(text));
        let printed = captured.text();
        drop(captured);
        if !printed.contains(text) {
            self.give_up(&format!("never printed {text:?} to {name}"));
        }
        printed
    }

    /// Waits for the end of the program and of its output.
    ///
    /// # Panics
    /// If the program takes longer than its timeout, or leaves something behind that holds its
    /// output open. The process group is killed, and the message shows what was printed.
    #[track_caller]
    pub fn wait(self) -> Output {
        self.wait_and_measure().0
    }

    /// Waits as [`Running::wait`] does, and says in bytes how much memory the program had at most, as the kernel counts it
    /// when the program has ended. It is never less than what this process had when it started the program.
    #[track_caller]
    pub fn wait_and_measure(mut self) -> (Output, u64) {
        let ended = *self.ended.wait(self.left(), |ended| *ended);
        if !ended {
            self.give_up(&format!("was still running after {:?}", self.timeout));
        }
        let grace = Instant::now() + GRACE;
        for capture in [Arc::clone(&self.stdout), Arc::clone(&self.stderr)] {
            let left = grace.saturating_duration_since(Instant::now());
            let closed = capture.wait(left, |capture| capture.closed).closed;
            if !closed {
                self.give_up("ended, but left something behind that holds its output open");
            }
        }
        let (code, peak) = self.reap();
        let output = Output {
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
    fn give_up(&mut self, what: &str) -> ! {
        self.kill();
        let (stdout, stderr) = (self.stdout.get().text(), self.stderr.get().text());
        panic!("{} {what}\n----- stdout -----\n{stdout}\n----- stderr -----\n{stderr}", self.shown);
    }

    fn kill(&mut self) {
        // The group is gone only if everything in it has ended, which is what we want.
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

impl Drop for Running {
    fn drop(&mut self) {
        if self.child.is_some() {
            self.kill();
        }
    }
}

/// What a program printed, and how it ended. Shown, it is all three together, as a user meets them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The exit code; 128 and the signal's number if one ended it.
    pub code: i32,
    /// All of stdout.
    pub stdout: String,
    /// All of stderr.
    pub stderr: String,
    root: PathBuf,
}

impl Output {
    /// The same without what differs from run to run: see [`REDACTIONS`](crate::REDACTIONS).
    pub fn redacted(&self) -> Output {
        Output {
            stdout: redact(&self.stdout, &self.root),
            stderr: redact(&self.stderr, &self.root),
            ..self.clone()
        }
    }
}

impl fmt::Display for Output {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Output { code, stdout, stderr, root: _ } = self;
        write!(out, "exit code: {code}\n----- stdout -----\n{stdout}\n----- stderr -----\n{stderr}")
    }
}

/// What was read from a pipe so far.
#[derive(Debug, Default)]
struct Capture {
    bytes: Vec<u8>,
    closed: bool,
}

impl Capture {
    fn of(mut pipe: impl Read + Send + 'static) -> Arc<Watched<Capture>> {
        let capture = Arc::new(Watched::<Capture>::default());
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
