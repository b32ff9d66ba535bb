//! A running program with its input and output.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use bytes::Bytes;
use hotseat_document::LastOutput;
use hotseat_document::json::to_line;
use hotseat_trace::{AttemptFailure, FailureKind};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::Child;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

use super::settings::CommandTarget;
use super::wire::has_call_and_end;
use crate::connection::arrivals::{ArrivalReceiver, OutputPipe, ReadError, ReaderThread, arrival_channel};
use crate::connection::lines::LineBuffer;
use crate::connection::{TurnError, TurnLimits};
use crate::process::{GroupCommand, ProcessGroup, collect_output};
use crate::target::{protocol_error, read_failure};

/// Maximum size of a line, and of a plain-text reply, in bytes.
const MAX_OUTPUT_BYTES: usize = 16 * 1024 * 1024;
/// Maximum time to read the remaining output of a process that has ended.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// A running program. It is killed with all its descendants on drop.
pub(super) struct RunningProgram {
    child: Child,
    group: ProcessGroup,
    /// Bytes for its input, which is closed when this is dropped. A separate task writes them, so that a
    /// program which prints before it reads cannot cause a deadlock.
    input: Option<UnboundedSender<Vec<u8>>>,
    output: ArrivalReceiver,
    unread: LineBuffer,
    /// When the program was seen to have ended.
    ended: Option<Instant>,
    /// True if several calls and the end of their turn arrived together; `None` until it is asked.
    is_flushed_late: Option<bool>,
    /// The task that collects its error output; `None` after it was awaited.
    errors: Option<JoinHandle<()>>,
}

impl RunningProgram {
    /// Starts a program.
    pub(super) fn start(
        target: &CommandTarget,
        mut group_command: GroupCommand,
        errors: &LastOutput,
        reading: &ReaderThread,
    ) -> Result<RunningProgram, AttemptFailure> {
        // Its pipes belong to the reader thread.
        let reading = reading.handle()?;
        let _entered = reading.enter();
        let command = &mut group_command.command;
        command.envs(&target.env).current_dir(&target.folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (mut child, group) = group_command.spawn().map_err(|error| {
            // Shows the template instead of the filled-in command, which may contain a long message.
            let shown = target.command.join(" ");
            // A NUL character, or a text that is too long.
            let is_unfit = matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::ArgumentListTooLong);
            if is_unfit && target.has_message_argument() {
                let message = format!(
                    "the message cannot be an argument of the program `{shown}`: {error}; send it on standard input: remove `{{{{message}}}}` and `{{{{messages}}}}` from `command`"
                );
                return AttemptFailure::new(FailureKind::TestError, message);
            }
            let why = match target.folder.is_dir() {
                true => error.to_string(),
                // The system reports a missing folder as a missing program.
                false => format!("there is no folder {}", target.folder.display()),
            };
            AttemptFailure::new(
                FailureKind::Unreachable,
                format!("the program `{shown}` cannot be started: {why}"),
            )
        })?;
        let (input, mut lines) = unbounded_channel::<Vec<u8>>();
        let mut stdin = child.stdin.take().expect("stdin is piped");
        tokio::spawn(async move {
            while let Some(line) = lines.recv().await {
                // If the program does not read, its output or exit shows the problem.
                if stdin.write_all(&line).await.is_err() || stdin.flush().await.is_err() {
                    break;
                }
            }
        });
        let stdout = child.stdout.take().expect("stdout is piped");
        let (arriving, output) = arrival_channel(Instant::now());
        tokio::spawn(arriving.forward(OutputPipe(stdout)));
        let stderr = child.stderr.take().expect("stderr is piped");
        let errors = Some(tokio::spawn(collect_output(stderr, errors.clone())));
        Ok(RunningProgram {
            child,
            group,
            input: Some(input),
            output,
            unread: LineBuffer::default(),
            ended: None,
            is_flushed_late: None,
            errors,
        })
    }

    pub(super) fn send_line(&self, line: &Value) {
        self.write((to_line(line) + "\n").into_bytes());
    }

    /// Sends bytes.
    pub(super) fn write(&self, bytes: Vec<u8>) {
        if let Some(input) = &self.input {
            // If the task has ended, the program has closed its input, which its output will show.
            let _ = input.send(bytes);
        }
    }

    /// Closes the input of the program.
    pub(super) fn close_input(&mut self) {
        self.input = None;
    }

    /// Returns the next line; `None` at the end of the output.
    pub(super) async fn next_line(&mut self, limits: TurnLimits<'_>) -> Result<Option<String>, TurnError> {
        loop {
            limits.exceeded_record_limit().map_or(Ok(()), Err)?;
            if let Some(line) = self.unread.next_line() {
                return decode_output(line).map(Some);
            }
            if self.unread.pending_len() > MAX_OUTPUT_BYTES {
                return Err(protocol_error(format!(
                    "the program printed a line longer than {MAX_OUTPUT_BYTES} bytes"
                )));
            }
            if !self.read_more(limits).await? {
                // The last line may lack its line end.
                let rest = self.unread.take_rest();
                return if rest.is_empty() { Ok(None) } else { decode_output(rest).map(Some) };
            }
        }
    }

    /// Returns all output up to its end.
    pub(super) async fn read_all(&mut self, limits: TurnLimits<'_>) -> Result<String, TurnError> {
        while self.read_more(limits).await? {
            if self.unread.pending_len() > MAX_OUTPUT_BYTES {
                return Err(protocol_error(format!(
                    "the program printed more than {MAX_OUTPUT_BYTES} bytes"
                )));
            }
        }
        decode_output(self.unread.take_rest())
    }

    /// Reads more output; returns false at its end.
    async fn read_more(&mut self, limits: TurnLimits<'_>) -> Result<bool, TurnError> {
        limits.exceeded_limit().map_or(Ok(()), Err)?;
        match self.next_bytes(limits).await {
            Ok(Some(bytes)) => {
                limits.count_received(bytes.len());
                self.unread.buffer_mut().extend_from_slice(&bytes);
                self.is_flushed_late = None;
                Ok(true)
            }
            Ok(None) => Ok(false),
            Err(error) => Err(read_failure(error, limits, |error| {
                format!("the program's output cannot be read: {error}")
            })),
        }
    }

    /// Returns the next output; `None` at its end. Processes that a program leaves behind may keep its output open, so it is read
    /// for at most [`DRAIN_TIMEOUT`] after the program has ended.
    async fn next_bytes(&mut self, limits: TurnLimits<'_>) -> Result<Option<Bytes>, ReadError> {
        if self.ended.is_none() {
            tokio::select! {
                biased;
                received = self.output.next_bytes(limits) => return received,
                _ = self.child.wait() => {}
            }
        }
        let ended = *self.ended.get_or_insert_with(Instant::now);
        Ok(self.output.next_bytes(limits.until(ended + DRAIN_TIMEOUT)).await.unwrap_or(None))
    }

    /// Returns true if the call that was read last arrived together with others and with the end of the turn: the program does
    /// not flush its output.
    pub(super) fn is_flushed_late(&mut self) -> bool {
        *self.is_flushed_late.get_or_insert_with(|| has_call_and_end(self.unread.buffer_mut()))
    }

    /// Returns the arrival time of the output read last.
    pub(super) fn last_arrival(&self) -> Instant {
        self.output.last_arrival()
    }

    /// Returns output that was printed between turns and has already arrived.
    pub(super) fn unprompted_output(&mut self) -> Option<String> {
        while self.unread.pending_len() <= MAX_OUTPUT_BYTES
            && let Some(bytes) = self.output.try_next_bytes()
        {
            self.unread.buffer_mut().extend_from_slice(&bytes);
        }
        let unasked = String::from_utf8_lossy(self.unread.buffer_mut()).trim().to_string();
        (!unasked.is_empty()).then_some(unasked)
    }

    /// Returns output that arrives after the end of a turn, within `wait`.
    pub(super) async fn late_output(&mut self, wait: Duration) -> Option<String> {
        let limits = TurnLimits::new(Instant::now() + wait, wait);
        loop {
            let printed = self.unprompted_output();
            if printed.is_some() {
                return printed;
            }
            let Ok(Some(bytes)) = self.output.next_bytes(limits).await else { return None };
            self.unread.buffer_mut().extend_from_slice(&bytes);
        }
    }

    /// Closes the input and returns the output until its end, for at most `wait`.
    pub(super) async fn remaining_output(&mut self, wait: Duration) -> String {
        self.input = None;
        let until = TurnLimits::new(Instant::now() + wait, wait);
        while self.unread.pending_len() <= MAX_OUTPUT_BYTES
            && let Ok(Some(bytes)) = self.output.next_bytes(until).await
        {
            self.unread.buffer_mut().extend_from_slice(&bytes);
        }
        String::from_utf8_lossy(&self.unread.take_rest()).trim().to_string()
    }

    /// Describes how a program ended whose output has ended.
    pub(super) async fn describe_end(&mut self) -> String {
        match timeout(DRAIN_TIMEOUT, self.child.wait()).await {
            Ok(Ok(status)) => {
                self.drain_errors().await;
                format!("the program ended ({status})")
            }
            Ok(Err(_)) | Err(_) => "the program closed its output".to_string(),
        }
    }

    pub(super) async fn wait(&mut self, limits: TurnLimits<'_>) -> Result<ExitStatus, TurnError> {
        let status = match timeout_at(limits.deadline, self.child.wait()).await {
            Err(_) => return Err(TurnError::Deadline),
            Ok(Ok(status)) => status,
            Ok(Err(error)) => {
                let message = format!("the program cannot be waited for: {error}");
                return Err(AttemptFailure::new(FailureKind::Unreachable, message).into());
            }
        };
        // Remaining child processes are killed, which also closes the error output.
        self.group.kill();
        self.drain_errors().await;
        Ok(status)
    }

    async fn drain_errors(&mut self) {
        if let Some(errors) = self.errors.take() {
            let _ = timeout(DRAIN_TIMEOUT, errors).await;
        }
    }

    /// Closes the input, waits `grace` for the program to end, then kills it with all its descendants.
    pub(super) async fn shut_down(mut self, grace: Duration) {
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

fn decode_output(bytes: Vec<u8>) -> Result<String, TurnError> {
    hotseat_http::decode_utf8(bytes)
        .map_err(|error| protocol_error(format!("the program printed something that is {error}")))
}
