//! A process with its input and output.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use hotseat_trace::{Failure, FailureKind};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::Child;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

use super::Target;
use crate::adapters::arrivals::{self, Arrivals, Pipe, ReadingThread};
use crate::adapters::lines::LineBuffer;
use crate::adapters::{Limits, TurnError};
use crate::process::{Group, GroupCommand, LastOutput};

/// The longest line, and the longest reply of plain text, in bytes.
const LONGEST: usize = 16 * 1024 * 1024;
/// How long is waited for what a process that has ended has left in its pipes.
const DRAIN: Duration = Duration::from_secs(1);

/// A running program. It is killed, with all that it has started, when this value is dropped.
pub(super) struct Program {
    child: Child,
    group: Group,
    /// What is to be written to its input, which is closed when this is dropped. A task writes, so that a program
    /// which prints before it reads is never waited for by somebody who waits for it.
    input: Option<UnboundedSender<Vec<u8>>>,
    output: Arrivals,
    unread: LineBuffer,
    /// Keeps its error output; none once that has been waited for.
    errors: Option<JoinHandle<()>>,
}

/// Why nothing more can be read.
pub(super) enum ReadError {
    Deadline,
    Silent,
    Limit(Failure),
    Wrong(String),
}

impl Program {
    /// Starts a program.
    pub(super) fn start(
        target: &Target,
        mut group_command: GroupCommand,
        errors: &LastOutput,
        reading: &ReadingThread,
    ) -> Result<Program, Failure> {
        // Its pipes belong to the thread that reads.
        let reading = reading.handle()?;
        let _entered = reading.enter();
        let command = &mut group_command.command;
        command.envs(&target.env).current_dir(&target.folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (mut child, group) = group_command.spawn().map_err(|error| {
            // The template and not what it was filled with: that may be a long message.
            let shown = target.command.join(" ");
            let why = match target.folder.is_dir() {
                true => error.to_string(),
                // The system blames the program for it.
                false => format!("there is no folder {}", target.folder.display()),
            };
            Failure::new(FailureKind::Unreachable, format!("the program `{shown}` cannot be started: {why}"))
        })?;
        let (input, mut lines) = unbounded_channel::<Vec<u8>>();
        let mut stdin = child.stdin.take().expect("stdin is piped");
        tokio::spawn(async move {
            while let Some(line) = lines.recv().await {
                // A program that does not read shows it by what it says, or by ending.
                if stdin.write_all(&line).await.is_err() || stdin.flush().await.is_err() {
                    break;
                }
            }
        });
        let stdout = child.stdout.take().expect("stdout is piped");
        let (arriving, output) = arrivals::arrivals(Instant::now());
        tokio::spawn(arriving.all_of(Pipe(stdout)));
        let stderr = child.stderr.take().expect("stderr is piped");
        let errors = Some(tokio::spawn(errors.clone().keep(stderr)));
        Ok(Program { child, group, input: Some(input), output, unread: LineBuffer::default(), errors })
    }

    /// Sends a line.
    pub(super) fn send(&self, line: &Value) {
        self.write(format!("{line}\n").into_bytes());
    }

    /// Sends bytes.
    pub(super) fn write(&self, bytes: Vec<u8>) {
        if let Some(input) = &self.input {
            // If nobody writes any more the program has closed its input, which its output will tell.
            let _ = input.send(bytes);
        }
    }

    /// Tells the program that nothing more comes.
    pub(super) fn close_input(&mut self) {
        self.input = None;
    }

    /// The next line; none when the output has ended.
    pub(super) async fn line(&mut self, limits: Limits<'_>) -> Result<Option<String>, ReadError> {
        loop {
            may_go_on(limits.over_within())?;
            if let Some(line) = self.unread.next_line() {
                return text(line).map(Some);
            }
            if self.unread.waiting() > LONGEST {
                return Err(ReadError::Wrong(format!(
                    "the program printed a line longer than {LONGEST} bytes"
                )));
            }
            if !self.read_more(limits).await? {
                // A last line may lack its end.
                let rest = self.unread.rest();
                return if rest.is_empty() { Ok(None) } else { text(rest).map(Some) };
            }
        }
    }

    /// Everything up to the end of the output.
    pub(super) async fn all(&mut self, limits: Limits<'_>) -> Result<String, ReadError> {
        while self.read_more(limits).await? {
            if self.unread.waiting() > LONGEST {
                return Err(ReadError::Wrong(format!("the program printed more than {LONGEST} bytes")));
            }
        }
        text(self.unread.rest())
    }

    /// Takes in what is printed next; false at the end.
    async fn read_more(&mut self, limits: Limits<'_>) -> Result<bool, ReadError> {
        may_go_on(limits.over())?;
        match self.output.next(limits).await {
            Ok(Some(bytes)) => {
                limits.receive(bytes.len());
                self.unread.unread().extend_from_slice(&bytes);
                Ok(true)
            }
            Ok(None) => Ok(false),
            Err(arrivals::ReadError::Broken(error)) => {
                Err(ReadError::Wrong(format!("the program's output cannot be read: {error}")))
            }
            Err(arrivals::ReadError::Limit(failure)) => Err(ReadError::Limit(failure)),
            Err(arrivals::ReadError::Deadline) => Err(ReadError::Deadline),
            Err(arrivals::ReadError::Silent) => Err(ReadError::Silent),
        }
    }

    /// When what was read last was printed.
    pub(super) fn at(&self) -> Instant {
        self.output.at()
    }

    /// What was printed although nothing was asked, as far as it is there.
    pub(super) fn unasked(&mut self) -> Option<String> {
        while self.unread.waiting() <= LONGEST
            && let Some(bytes) = self.output.there()
        {
            self.unread.unread().extend_from_slice(&bytes);
        }
        let unasked = String::from_utf8_lossy(self.unread.unread()).trim().to_string();
        (!unasked.is_empty()).then_some(unasked)
    }

    /// Tells the program that nothing more comes, and returns what it prints until its output ends, for at most `wait`.
    pub(super) async fn rest(&mut self, wait: Duration) -> String {
        self.input = None;
        let until = Limits::within(Instant::now() + wait, wait);
        while self.unread.waiting() <= LONGEST
            && let Ok(Some(bytes)) = self.output.next(until).await
        {
            self.unread.unread().extend_from_slice(&bytes);
        }
        String::from_utf8_lossy(&self.unread.rest()).trim().to_string()
    }

    /// How a program whose output has ended has ended itself, in words.
    pub(super) async fn how_it_ended(&mut self) -> String {
        match timeout(DRAIN, self.child.wait()).await {
            Ok(Ok(status)) => {
                self.drain_errors().await;
                format!("the program ended ({status})")
            }
            Ok(Err(_)) | Err(_) => "the program closed its output".to_string(),
        }
    }

    /// How it ended, which is waited for.
    pub(super) async fn ended(&mut self, limits: Limits<'_>) -> Result<ExitStatus, TurnError> {
        let status = match timeout_at(limits.deadline, self.child.wait()).await {
            Err(_) => return Err(TurnError::Deadline),
            Ok(Ok(status)) => status,
            Ok(Err(error)) => {
                let message = format!("the program cannot be waited for: {error}");
                return Err(Failure::new(FailureKind::Unreachable, message).into());
            }
        };
        // Whatever it has left behind ends with it, and with that its error output.
        self.group.kill();
        self.drain_errors().await;
        Ok(status)
    }

    async fn drain_errors(&mut self) {
        if let Some(errors) = self.errors.take() {
            let _ = timeout(DRAIN, errors).await;
        }
    }

    /// Closes its input, waits `grace` for its end, and ends it with everything that it has started.
    pub(super) async fn end(mut self, grace: Duration) {
        self.input = None;
        if !grace.is_zero() && timeout(grace, self.child.wait()).await.is_err() {
            self.group.terminate();
            let _ = timeout(grace, self.child.wait()).await;
        }
        self.group.kill();
        let _ = self.child.wait().await;
        self.drain_errors().await;
    }
}

/// Whether more may be taken in.
fn may_go_on(over: Option<Failure>) -> Result<(), ReadError> {
    match over {
        None => Ok(()),
        Some(failure) => Err(ReadError::Limit(failure)),
    }
}

fn text(bytes: Vec<u8>) -> Result<String, ReadError> {
    String::from_utf8(bytes).map_err(|error| {
        let beginning = String::from_utf8_lossy(error.as_bytes()).chars().take(200).collect::<String>();
        ReadError::Wrong(format!("the program printed something that is not UTF-8: {beginning}"))
    })
}
