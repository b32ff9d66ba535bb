//! Proxied servers that are programs: messages on lines of standard input and output.

use std::any::Any;
use std::collections::HashMap;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::BytesMut;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin};
use tokio::sync::mpsc;

use crate::definition::{LaunchedUpstream, UpstreamCommand, UpstreamLauncher};
use crate::frame::{Frame, RpcError};
use crate::lock;
use crate::revision::{error_code, meta};

/// Time for a program to end after its input is closed.
const END_GRACE: Duration = Duration::from_secs(2);
/// Number of lines that wait for the program, and of messages that wait for a request.
const MAX_WAITING_MESSAGES: usize = 64;
/// Number of bytes for which there is room before each read.
const READ_BYTES: usize = 8 * 1024;
/// Maximum number of open requests to one program.
const MAX_OPEN_REQUESTS: usize = 1024;

/// A message of the program that belongs to a request.
pub(super) enum LinkMessage {
    /// A notification or a request before the answer.
    Interim(Value),
    /// The answer.
    Answer(Result<Value, RpcError>),
}

/// A running program. It ends when the link is dropped.
pub(super) struct StdioLink {
    lines: mpsc::Sender<Vec<u8>>,
    requests: Arc<LinkRequests>,
}

/// Open requests to a program, by the identifiers of the link.
#[derive(Default)]
struct LinkRequests {
    open: Mutex<HashMap<u64, OpenLinkRequest>>,
    next_id: AtomicU64,
    /// Receives messages that belong to no request.
    listener: Mutex<Option<mpsc::Sender<Value>>>,
    is_ended: std::sync::atomic::AtomicBool,
}

struct OpenLinkRequest {
    client_id: Value,
    progress_token: Option<Value>,
    messages: mpsc::Sender<LinkMessage>,
}

/// The program of a proxied server cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum LaunchError {
    #[error("the program `{program}` cannot be started: {source}")]
    Start { program: String, source: std::io::Error },
    #[error("the program `{0}` has no standard input and output")]
    NoPipes(String),
}

impl StdioLink {
    /// Starts a program.
    ///
    /// # Errors
    /// If the system cannot start it.
    pub(super) fn start(
        command: &UpstreamCommand,
        launcher: Option<&dyn UpstreamLauncher>,
        max_line_bytes: usize,
    ) -> Result<StdioLink, LaunchError> {
        let launched = match launcher {
            Some(launcher) => launcher.launch(command),
            None => launch(command),
        };
        let program = || command.argv.first().cloned().unwrap_or_default();
        let LaunchedUpstream { mut child, guard } =
            launched.map_err(|source| LaunchError::Start { program: program(), source })?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(LaunchError::NoPipes(program()));
        };
        let (lines, waiting) = mpsc::channel(MAX_WAITING_MESSAGES);
        let requests = Arc::new(LinkRequests::default());
        tokio::spawn(write_lines(child, guard, stdin, waiting));
        tokio::spawn(read_messages(stdout, requests.clone(), max_line_bytes));
        Ok(StdioLink { lines, requests })
    }

    /// Sends a request. Its messages arrive at the receiver.
    ///
    /// # Errors
    /// If the program has ended, or too many requests are open.
    pub(super) async fn request(
        &self,
        client_id: &Value,
        method: &str,
        params: &Map<String, Value>,
    ) -> Result<mpsc::Receiver<LinkMessage>, RpcError> {
        let internal = |message: &str| RpcError::new(error_code::INTERNAL_ERROR, message);
        let id = self.requests.next_id.fetch_add(1, Ordering::Relaxed) + 1;
        let mut params = params.clone();
        let token = params.get_mut("_meta").and_then(Value::as_object_mut).and_then(|meta| {
            let token = meta.get_mut("progressToken")?;
            Some(std::mem::replace(token, json!(id)))
        });
        let (messages, receiver) = mpsc::channel(MAX_WAITING_MESSAGES);
        {
            let mut open = lock(&self.requests.open);
            if self.requests.is_ended.load(Ordering::Acquire) {
                return Err(internal("the program of the server has ended"));
            }
            open.retain(|_, request| !request.messages.is_closed());
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
        Ok(receiver)
    }

    /// Whether the program has ended.
    pub(super) fn is_ended(&self) -> bool {
        self.requests.is_ended.load(Ordering::Acquire)
    }

    /// Sends a message without an answer.
    pub(super) async fn send(&self, message: &Value) {
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        // A program that ended answers all its requests with an error.
        let _ = self.lines.send(line).await;
    }

    /// Cancels the request that the client knows by this identifier.
    pub(super) async fn cancel(&self, client_id: &Value) {
        let id = {
            let open = lock(&self.requests.open);
            open.iter().find(|(_, request)| request.client_id == *client_id).map(|(id, _)| *id)
        };
        if let Some(id) = id {
            lock(&self.requests.open).remove(&id);
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
    process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    if let Some(folder) = &command.folder {
        process.current_dir(folder);
    }
    #[cfg(unix)]
    process.process_group(0);
    Ok(LaunchedUpstream { child: process.spawn()?, guard: Box::new(()) })
}

/// Writes lines until the link is dropped, then closes the input and ends the program.
async fn write_lines(
    mut child: Child,
    guard: Box<dyn Any + Send>,
    mut stdin: ChildStdin,
    mut lines: mpsc::Receiver<Vec<u8>>,
) {
    while let Some(line) = lines.recv().await {
        if stdin.write_all(&line).await.is_err() || stdin.flush().await.is_err() {
            break;
        }
    }
    drop(stdin);
    if tokio::time::timeout(END_GRACE, child.wait()).await.is_err() {
        // The process may have ended meanwhile.
        let _ = child.kill().await;
    }
    drop(guard);
}

/// Reads messages until the program ends. Lines that are too long or no JSON-RPC end it, too: the order of its messages
/// is lost.
async fn read_messages(stdout: impl AsyncRead + Unpin, requests: Arc<LinkRequests>, max_line_bytes: usize) {
    let mut lines = BoundedLines { stdout, buffer: BytesMut::new(), start: 0, max_line_bytes };
    while let Some(line) = lines.next().await {
        if let Ok(frame) = Frame::parse(&line) {
            requests.route(frame).await;
        }
    }
    requests.is_ended.store(true, Ordering::Release);
    let open: Vec<_> = lock(&requests.open).drain().map(|(_, request)| request).collect();
    for request in open {
        let error = RpcError::new(error_code::INTERNAL_ERROR, "the program of the server has ended");
        let _ = request.messages.send(LinkMessage::Answer(Err(error))).await;
    }
    lock(&requests.listener).take();
}

impl LinkRequests {
    /// Passes a message to the request that it belongs to.
    async fn route(&self, frame: Frame) {
        match frame {
            Frame::Response { id, outcome } => {
                let request = id.as_u64().and_then(|id| lock(&self.open).remove(&id));
                if let Some(request) = request {
                    let outcome = outcome.map(|result| restore_subscription(result, &request.client_id));
                    // The client may have cancelled the request.
                    let _ = request.messages.send(LinkMessage::Answer(outcome)).await;
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
    /// Returns the next line, or `None` at the end or after a line that is too long.
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
