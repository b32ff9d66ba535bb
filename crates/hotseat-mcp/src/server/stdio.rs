//! Proxied servers that are programs: messages on lines of standard input and output.

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use hotseat_document::LastOutput;
use hotseat_document::json::to_line;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::program_failure::{ProgramFailure, collect_errors};
use crate::definition::{LaunchedUpstream, UpstreamCommand, UpstreamLauncher};
use crate::event::{McpEvent, McpEventKind};
use crate::frame::{Frame, RpcError};
use crate::lock;
use crate::revision::{error_code, meta};

/// Time for a program to end after its input is closed.
const END_GRACE: Duration = Duration::from_secs(2);
/// Time for a program that closed its output to end, for its error output to end, and for which the output of a program that ended
/// is read on if another process holds it open.
const EXIT_GRACE: Duration = Duration::from_secs(1);
/// Number of lines that wait for the program, and of messages that wait for a request.
const MAX_WAITING_MESSAGES: usize = 64;
/// Number of bytes for which there is room before each read.
const READ_BYTES: usize = 8 * 1024;
/// Number of bytes of a line that a message shows.
const MAX_NOTED_LINE_BYTES: usize = 200;
/// Maximum number of open requests to one program.
const MAX_OPEN_REQUESTS: usize = 1024;

/// A message of the program that belongs to a request.
pub(super) enum LinkMessage {
    /// A notification or a request before the answer.
    Interim(Value),
    Answer(Result<Value, RpcError>),
    /// There will be no answer: the program has failed.
    Failed(ProgramFailure),
}

/// A running program. It ends when the link is dropped.
pub(super) struct StdioLink {
    lines: mpsc::Sender<Vec<u8>>,
    requests: Arc<LinkRequests>,
}

/// Requests to a program, by the identifiers of the link.
#[derive(Default)]
struct LinkRequests {
    open: Mutex<HashMap<u64, OpenLinkRequest>>,
    /// Requests that their clients have given up: the program may still answer them.
    abandoned: Mutex<AbandonedRequests>,
    next_id: AtomicU64,
    /// Receives messages that belong to no request.
    listener: Mutex<Option<mpsc::Sender<Value>>>,
    failure: OnceLock<ProgramFailure>,
    /// True after a line that was no message while a request waited.
    has_ignored: AtomicBool,
    /// True after an answer without the id of a request while a request waited.
    has_unassigned: AtomicBool,
    /// The conversation of the last request and the name of the server.
    user: Mutex<Option<LinkUser>>,
}

/// The conversation that gets failures for which no request waits.
pub(super) struct LinkUser {
    pub(super) events: mpsc::WeakSender<McpEvent>,
    pub(super) server: String,
}

/// Maximum number of requests without an answer that are remembered.
const MAX_ABANDONED_REQUESTS: usize = 100_000;

/// Requests without an answer whose clients no longer wait.
#[derive(Default)]
struct AbandonedRequests {
    ids: HashSet<u64>,
    /// True if there were too many of them.
    is_incomplete: bool,
}

impl AbandonedRequests {
    fn insert(&mut self, id: u64) {
        match self.ids.len() < MAX_ABANDONED_REQUESTS {
            true => drop(self.ids.insert(id)),
            false => self.is_incomplete = true,
        }
    }

    /// Returns true if an answer may be the first one to a request that is not open.
    fn may_answer(&mut self, id: u64) -> bool {
        self.ids.remove(&id) || self.is_incomplete
    }
}

struct OpenLinkRequest {
    client_id: Value,
    progress_token: Option<Value>,
    messages: mpsc::Sender<LinkMessage>,
}

impl StdioLink {
    /// Starts a program. Fails if the system cannot start it.
    pub(super) fn start(
        command: &UpstreamCommand,
        launcher: Option<&dyn UpstreamLauncher>,
        max_line_bytes: usize,
    ) -> Result<StdioLink, ProgramFailure> {
        let launched = match launcher {
            Some(launcher) => launcher.launch(command),
            None => launch(command),
        };
        let program = command.argv.first().cloned().unwrap_or_default();
        let LaunchedUpstream { mut child, guard } = launched.map_err(|error| {
            ProgramFailure::not_started(format!("the program `{program}` cannot be started: {error}"))
        })?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            let message = format!("the program `{program}` has no standard input and output");
            return Err(ProgramFailure::not_started(message));
        };
        let errors = LastOutput::default();
        let collected =
            child.stderr.take().map(|stderr| tokio::spawn(collect_errors(stderr, errors.clone())));
        let (lines, waiting) = mpsc::channel(MAX_WAITING_MESSAGES);
        let (exited, exit) = watch::channel(None);
        let requests = Arc::new(LinkRequests::default());
        tokio::spawn(write_lines(LinkedProgram { child, guard, exited: Some(exited) }, stdin, waiting));
        let end = ProgramEnd { program, exit, errors, collected };
        tokio::spawn(read_messages(stdout, requests.clone(), max_line_bytes, end));
        Ok(StdioLink { lines, requests })
    }

    /// Sends a request. Returns the receiver of its messages, and its number at the program if that has not
    /// failed before. Fails if too many requests are open.
    pub(super) async fn request(
        &self,
        user: LinkUser,
        client_id: &Value,
        method: &str,
        params: &Map<String, Value>,
    ) -> Result<(Option<u64>, mpsc::Receiver<LinkMessage>), RpcError> {
        *lock(&self.requests.user) = Some(user);
        let id = self.requests.next_id.fetch_add(1, Ordering::Relaxed) + 1;
        let mut params = params.clone();
        let token = params.get_mut("_meta").and_then(Value::as_object_mut).and_then(|meta| {
            let token = meta.get_mut("progressToken")?;
            Some(std::mem::replace(token, json!(id)))
        });
        let (messages, receiver) = mpsc::channel(MAX_WAITING_MESSAGES);
        {
            let mut open = lock(&self.requests.open);
            if let Some(failure) = self.requests.failure.get() {
                // The channel is empty.
                let _ = messages.try_send(LinkMessage::Failed(failure.clone()));
                return Ok((None, receiver));
            }
            open.retain(|id, request| {
                let is_awaited = !request.messages.is_closed();
                if !is_awaited {
                    lock(&self.requests.abandoned).insert(*id);
                }
                is_awaited
            });
            if open.len() >= MAX_OPEN_REQUESTS {
                return Err(RpcError::new(
                    error_code::LIMIT_REACHED,
                    "too many open requests to one program",
                ));
            }
            open.insert(
                id,
                OpenLinkRequest { client_id: client_id.clone(), progress_token: token, messages },
            );
        }
        let frame = Frame::Request { id: json!(id), method: method.to_string(), params };
        self.send(&frame.to_json()).await;
        Ok((Some(id), receiver))
    }

    /// Whether the program has ended.
    pub(super) fn is_ended(&self) -> bool {
        self.requests.failure.get().is_some()
    }

    /// Sends a message without an answer.
    pub(super) async fn send(&self, message: &Value) {
        let mut line = to_line(message).into_bytes();
        line.push(b'\n');
        // A program that ended answers all its requests with an error.
        let _ = self.lines.send(line).await;
    }

    /// Cancels a request by its number at the program: clients that share a program may use the same identifier.
    pub(super) async fn cancel(&self, id: u64) {
        let is_open = {
            let mut open = lock(&self.requests.open);
            let is_open = open.remove(&id).is_some();
            if is_open {
                lock(&self.requests.abandoned).insert(id);
            }
            is_open
        };
        if is_open {
            let params = json!({"requestId": id});
            self.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
                .await;
        }
    }

    /// Returns a receiver of the messages that belong to no request. Replaces the previous one.
    pub(super) fn listen(&self) -> mpsc::Receiver<Value> {
        let (sender, receiver) = mpsc::channel(MAX_WAITING_MESSAGES);
        *lock(&self.requests.listener) = Some(sender);
        receiver
    }
}

fn launch(command: &UpstreamCommand) -> std::io::Result<LaunchedUpstream> {
    let mut process = tokio::process::Command::new(command.argv.first().map_or("", String::as_str));
    process.args(command.argv.iter().skip(1)).env_clear().envs(&command.environment).kill_on_drop(true);
    process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(folder) = &command.folder {
        process.current_dir(folder);
    }
    #[cfg(unix)]
    process.process_group(0);
    Ok(LaunchedUpstream { child: process.spawn()?, guard: Box::new(()) })
}

/// A program with the guard of its processes.
struct LinkedProgram {
    child: Child,
    guard: Box<dyn Any + Send>,
    /// Receives the exit status once.
    exited: Option<watch::Sender<Option<ExitStatus>>>,
}

impl LinkedProgram {
    /// Waits until the program ends, and reports its exit status.
    async fn wait(&mut self) {
        let status = self.child.wait().await;
        if let (Some(exited), Ok(status)) = (self.exited.take(), status) {
            exited.send_replace(Some(status));
        }
    }
}

/// Writes lines until the link is dropped, then closes the input and ends the program.
async fn write_lines(mut program: LinkedProgram, mut stdin: ChildStdin, mut lines: mpsc::Receiver<Vec<u8>>) {
    loop {
        let is_running = program.exited.is_some();
        let line = tokio::select! {
            line = lines.recv() => line,
            // Children of the program may read on.
            () = program.wait(), if is_running => continue,
        };
        let Some(line) = line else { break };
        if stdin.write_all(&line).await.is_err() || stdin.flush().await.is_err() {
            break;
        }
    }
    drop(stdin);
    if tokio::time::timeout(END_GRACE, program.wait()).await.is_err() {
        // The process may have ended meanwhile.
        let _ = program.child.kill().await;
    }
    drop(program.guard);
}

/// Why the output of a program is read no further.
enum EndCause {
    /// The program closed it, or ended and another process holds it open.
    Closed,
    /// A line has more bytes than this.
    LineTooLong(usize),
    /// A message answers no request, and the request that it was meant for would wait for ever: the problem and the line.
    InvalidMessage(String),
}

/// What remains of a program whose output is read no further.
struct ProgramEnd {
    program: String,
    exit: watch::Receiver<Option<ExitStatus>>,
    errors: LastOutput,
    /// Reads the error output.
    collected: Option<JoinHandle<()>>,
}

impl ProgramEnd {
    /// Waits until the program has ended, and then a short time for the rest of its output.
    fn grace_after_exit(&self) -> impl Future<Output = ()> + use<> {
        let mut exit = self.exit.clone();
        async move {
            match exit_status(&mut exit).await {
                Some(_) => tokio::time::sleep(EXIT_GRACE).await,
                None => std::future::pending().await,
            }
        }
    }

    /// Waits a short time for the exit status and the rest of the error output.
    async fn describe(self, cause: EndCause) -> ProgramFailure {
        let ProgramEnd { program, mut exit, errors, collected } = self;
        match cause {
            EndCause::Closed => {}
            EndCause::LineTooLong(max_bytes) => {
                return ProgramFailure::line_too_long(&program, max_bytes, &errors);
            }
            EndCause::InvalidMessage(problem) => {
                return ProgramFailure::invalid_message(&program, &problem, &errors);
            }
        }
        let status = tokio::time::timeout(EXIT_GRACE, exit_status(&mut exit)).await.ok().flatten();
        if let Some(collected) = collected {
            // Another process may keep the error output open.
            let _ = tokio::time::timeout(EXIT_GRACE, collected).await;
        }
        ProgramFailure::ended(&program, status, &errors)
    }
}

/// Waits until a program has ended. `None` if its exit status is not known.
async fn exit_status(exit: &mut watch::Receiver<Option<ExitStatus>>) -> Option<ExitStatus> {
    *exit.wait_for(Option::is_some).await.ok()?
}

/// Reads messages until the program ends, or sends a line that is too long or an invalid message. Lines that are no messages are
/// ignored.
async fn read_messages(
    stdout: impl AsyncRead + Unpin,
    requests: Arc<LinkRequests>,
    max_line_bytes: usize,
    end: ProgramEnd,
) {
    let mut lines = BoundedLines { stdout, buffer: BytesMut::new(), start: 0, max_line_bytes };
    let grace_after_exit = end.grace_after_exit();
    tokio::pin!(grace_after_exit);
    let mut ignored_bytes = 0;
    let cause = loop {
        if ignored_bytes > MAX_IGNORED_BYTES {
            break EndCause::InvalidMessage(format!(
                "printed more than {MAX_IGNORED_BYTES} bytes of lines that are no messages; let the program write them to its standard error"
            ));
        }
        // Lines that have arrived already would keep the thread, which many programs share.
        tokio::task::coop::consume_budget().await;
        let line = tokio::select! {
            line = lines.next() => line,
            () = &mut grace_after_exit => None,
        };
        let Some(line) = line else {
            break match lines.start > max_line_bytes {
                true => EndCause::LineTooLong(max_line_bytes),
                false => EndCause::Closed,
            };
        };
        let routed = match Frame::parse(&line) {
            Ok(frame) => requests.route(frame).await,
            Err(error) if is_message(&line) => Err(LineError::Invalid(error.error)),
            Err(_) => {
                ignored_bytes += line.len() + 1;
                requests.note_ignored(&line).await;
                Ok(())
            }
        };
        if let Err(problem) = routed {
            break EndCause::InvalidMessage(format!(
                "{problem}; the line is: {}; let the program answer each request once, with JSON-RPC 2.0 and the id of the request",
                line_start(&line)
            ));
        }
    };
    let is_mistake = !matches!(cause, EndCause::Closed);
    let failure = end.describe(cause).await;
    let open: Vec<_> = {
        let mut open = lock(&requests.open);
        let _ = requests.failure.set(failure.clone());
        open.drain().map(|(_, request)| request).collect()
    };
    let mut is_reported = false;
    for request in open {
        is_reported |= request.messages.send(LinkMessage::Failed(failure.clone())).await.is_ok();
    }
    // A program may end between two requests, but not send what nobody asked for.
    if is_mistake && !is_reported {
        requests.report(&failure).await;
    }
    lock(&requests.listener).take();
}

/// Maximum size of the lines of a program that are no messages, in bytes.
const MAX_IGNORED_BYTES: usize = 16 * 1024 * 1024;
/// Errors of a request that the program could not read: its id is unknown, too.
const UNREADABLE: [i64; 2] = [error_code::PARSE_ERROR, error_code::INVALID_REQUEST];

/// True if a line is meant as a JSON-RPC message: an object with the member `jsonrpc`.
fn is_message(line: &[u8]) -> bool {
    const MEMBER: &[u8] = b"\"jsonrpc\"";
    line.trim_ascii_start().starts_with(b"{") && line.windows(MEMBER.len()).any(|part| part == MEMBER)
}

/// Returns the start of a line for a message.
fn line_start(line: &[u8]) -> String {
    let start = String::from_utf8_lossy(&line[..line.len().min(MAX_NOTED_LINE_BYTES)]);
    let ellipsis = if line.len() > MAX_NOTED_LINE_BYTES { "…" } else { "" };
    let start = start.trim().trim_end_matches('\u{FFFD}');
    let escape = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    start.chars().map(escape).collect::<String>() + ellipsis
}

/// What is wrong with a line of a program.
#[derive(Debug, thiserror::Error)]
enum LineError {
    #[error("printed an invalid message: {}", .0.message)]
    Invalid(#[source] RpcError),
    #[error("answered with the id {id}, which no request has{}", .error.as_ref().map_or_else(String::new, |error| format!(": {error}")))]
    UnknownId {
        id: Value,
        #[source]
        error: Option<RpcError>,
    },
    #[error("answered a request twice (its id is {0})")]
    AnsweredTwice(u64),
}

impl LinkRequests {
    /// Notes the first line that is no message, once a request waits: its answer may be among the ignored lines.
    async fn note_ignored(&self, line: &[u8]) {
        if !line.trim_ascii().is_empty() && !self.has_ignored.load(Ordering::Relaxed) {
            let start = line_start(line);
            let message = format!(
                "the program prints lines that are no JSON-RPC messages, which are ignored; the first is: {start}"
            );
            self.note_first(&self.has_ignored, message).await;
        }
    }

    /// Notes the first answer without the id of a request, once a request waits: it may be meant for that. Programs that do not know
    /// a notification say so.
    async fn note_unassigned(&self, outcome: &Result<Value, RpcError>) {
        let message = match outcome {
            Err(error) if error.code == error_code::METHOD_NOT_FOUND => return,
            Err(error) => {
                format!("the program sent an error without the id of a request, which is ignored: {error}")
            }
            Ok(_) => "the program sent an answer without the id of a request, which is ignored".to_string(),
        };
        self.note_first(&self.has_unassigned, message).await;
    }

    /// Notes the first message of its kind while a request waits.
    async fn note_first(&self, is_noted: &AtomicBool, message: String) {
        if lock(&self.open).is_empty() || is_noted.swap(true, Ordering::Relaxed) {
            return;
        }
        let user = lock(&self.user).as_ref().map(|user| (user.events.clone(), user.server.clone()));
        if let Some((events, server)) = user
            && let Some(events) = events.upgrade()
        {
            let kind = McpEventKind::ProtocolError { code: None, message };
            // Without a receiver there is no one to report to.
            let _ = events.send(McpEvent { at: Instant::now(), server, kind }).await;
        }
    }

    /// Reports a failure to the conversation of the last request.
    async fn report(&self, failure: &ProgramFailure) {
        let user = lock(&self.user).take();
        if let Some(LinkUser { events, server }) = user
            && let Some(events) = events.upgrade()
        {
            // Without a receiver there is no one to report to.
            let _ = events.send(McpEvent { at: Instant::now(), server, kind: failure.event() }).await;
        }
    }

    /// Passes a message to the request that it belongs to. Fails if it answers no request that was sent, or one that has its answer.
    async fn route(&self, frame: Frame) -> Result<(), LineError> {
        match frame {
            // Simple servers answer notifications, which have no id.
            Frame::Response { id: Value::Null, outcome }
                if outcome.as_ref().err().is_none_or(|error| !UNREADABLE.contains(&error.code)) =>
            {
                self.note_unassigned(&outcome).await;
            }
            Frame::Response { id, outcome } => {
                let number = id.as_u64().filter(|id| *id <= self.next_id.load(Ordering::Relaxed));
                let Some(number) = number else {
                    return Err(LineError::UnknownId { id, error: outcome.err() });
                };
                let request = lock(&self.open).remove(&number);
                match request {
                    Some(request) => {
                        let outcome = outcome.map(|result| restore_subscription(result, &request.client_id));
                        // The client may have cancelled the request.
                        let _ = request.messages.send(LinkMessage::Answer(outcome)).await;
                    }
                    None if lock(&self.abandoned).may_answer(number) => {}
                    None => return Err(LineError::AnsweredTwice(number)),
                }
            }
            frame => {
                let (receiver, message) = self.receiver_of(frame.to_json());
                match receiver {
                    Some(messages) => drop(messages.send(LinkMessage::Interim(message)).await),
                    None => {
                        let listener = lock(&self.listener).clone();
                        if let Some(listener) = listener {
                            // A listener that disconnected misses its messages.
                            let _ = listener.send(message).await;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Finds the request that a message belongs to: by its progress token or subscription; otherwise the youngest open
    /// request, if there is no listener. Restores the identifiers of the client.
    fn receiver_of(&self, mut message: Value) -> (Option<mpsc::Sender<LinkMessage>>, Value) {
        let open = lock(&self.open);
        let params = message.get_mut("params");
        let progress = params.as_ref().and_then(|params| params.get("progressToken")).and_then(Value::as_u64);
        let subscription = params
            .as_ref()
            .and_then(|params| params.get("_meta")?.get(meta::SUBSCRIPTION_ID))
            .and_then(Value::as_u64);
        if let Some((request, params)) = progress.and_then(|id| open.get(&id)).zip(message.get_mut("params"))
        {
            if let Some(token) = &request.progress_token {
                params["progressToken"] = token.clone();
            }
            return (Some(request.messages.clone()), message);
        }
        if let Some(request) = subscription.and_then(|id| open.get(&id)) {
            message["params"]["_meta"][meta::SUBSCRIPTION_ID] = request.client_id.clone();
            return (Some(request.messages.clone()), message);
        }
        let is_request = message.get("id").is_some();
        let has_listener = lock(&self.listener).as_ref().is_some_and(|listener| !listener.is_closed());
        let is_change = message["method"].as_str().is_some_and(|method| method.ends_with("list_changed"));
        if (has_listener && open.len() != 1 && !is_request) || is_change {
            return (None, message);
        }
        let youngest = open.iter().max_by_key(|(id, _)| **id);
        (youngest.map(|(_, request)| request.messages.clone()), message)
    }
}

/// Restores the identifier of the client in the answer to a subscription.
fn restore_subscription(mut result: Value, client_id: &Value) -> Value {
    if let Some(id) = result.get_mut("_meta").and_then(|meta| meta.get_mut(meta::SUBSCRIPTION_ID)) {
        *id = client_id.clone();
    }
    result
}

/// Lines of a program, up to a maximum length.
struct BoundedLines<R> {
    stdout: R,
    buffer: BytesMut,
    /// Bytes of the buffer without an end of line.
    start: usize,
    max_line_bytes: usize,
}

impl<R: AsyncRead + Unpin> BoundedLines<R> {
    /// Returns the next line, or `None` at the end or after a line that is too long. May be cancelled without loss.
    async fn next(&mut self) -> Option<BytesMut> {
        loop {
            if let Some(end) = self.buffer[self.start..].iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(self.start + end + 1);
                self.start = 0;
                return Some(line);
            }
            self.start = self.buffer.len();
            if self.start > self.max_line_bytes {
                return None;
            }
            self.buffer.reserve(READ_BYTES);
            if self.stdout.read_buf(&mut self.buffer).await.ok()? == 0 {
                return None;
            }
        }
    }
}
