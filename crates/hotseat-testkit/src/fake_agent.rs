//! HTTP server that answers with the replies of a test's function.

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::{oneshot, watch};

use crate::http::{HttpConnection, IncomingRequest, RequestReadError};
use crate::reply::{BodyFraming, FakeReply, ReplyStep};
use crate::request::FakeRequest;
use crate::watched::SharedState;

/// A running server. Dropping it stops the server and closes all connections.
///
/// The handler is called once per request, on the server's thread, in order of arrival. Replies are sent in
/// parallel, each on its own connection. If a handler panics, for example in a failed assertion about the
/// request, the client gets status 500, and dropping the server panics with the same message, so the test
/// fails.
#[derive(Debug)]
pub struct FakeAgent {
    address: SocketAddr,
    shared: Arc<AgentState>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Listening options of a server.
#[derive(Debug, Clone, Copy)]
pub struct ListenOptions {
    /// Port on 127.0.0.1; 0 picks a free port.
    pub port: u16,
    /// True to keep requests for [`FakeAgent::requests`]. Long-lived servers do not.
    pub keep_requests: bool,
}

/// State shared by the server's thread and the test.
#[derive(Debug)]
struct AgentState {
    seen: SharedState<AgentStatistics>,
    open_gates: watch::Sender<BTreeSet<String>>,
}

/// Events observed so far.
#[derive(Debug, Default)]
struct AgentStatistics {
    requests: Vec<FakeRequest>,
    arrived: usize,
    in_flight: usize,
    most_in_flight: usize,
    abandoned: usize,
    gates_reached: BTreeSet<String>,
    handler_panic: Option<String>,
}

type RequestHandler = dyn Fn(&FakeRequest) -> FakeReply + Send + Sync;

impl FakeAgent {
    /// Starts a server on a free port of 127.0.0.1. Panics if no port can be opened.
    pub fn start<R: Into<FakeReply>>(
        handler: impl Fn(&FakeRequest) -> R + Send + Sync + 'static,
    ) -> FakeAgent {
        FakeAgent::listen(ListenOptions { port: 0, keep_requests: true }, handler)
            .expect("127.0.0.1 has a free port")
    }

    /// Starts a server with these options.
    pub fn listen<R: Into<FakeReply>>(
        listen: ListenOptions,
        handler: impl Fn(&FakeRequest) -> R + Send + Sync + 'static,
    ) -> io::Result<FakeAgent> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, listen.port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let shared =
            Arc::new(AgentState { seen: SharedState::default(), open_gates: watch::Sender::default() });
        let server = FakeServer {
            handler: Arc::new(move |request| handler(request).into()),
            keep_requests: listen.keep_requests,
            shared: Arc::clone(&shared),
        };
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("fake-agent".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    () = server.accept(listener) => {}
                }
            });
            // Dropping the runtime drops all tasks and closes their connections.
        })?;
        Ok(FakeAgent { address, shared, stop: Some(stop), thread: Some(thread) })
    }

    /// Returns `http://127.0.0.1:PORT/`.
    pub fn url(&self) -> String {
        self.to_string()
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns all requests so far, in order of arrival.
    pub fn requests(&self) -> Vec<FakeRequest> {
        self.shared.seen.get().requests.clone()
    }

    /// Waits for at least `count` requests and returns them. Panics if fewer arrive within `timeout`.
    #[track_caller]
    pub fn wait_for_requests(&self, count: usize, timeout: Duration) -> Vec<FakeRequest> {
        let seen = self.shared.seen.wait(timeout, |seen| seen.arrived >= count);
        if seen.arrived < count {
            let arrived = seen.arrived;
            drop(seen);
            panic!("{arrived} requests instead of {count} after {timeout:?}");
        }
        seen.requests.clone()
    }

    /// Returns the largest number of requests that were answered at the same time.
    pub fn most_in_flight(&self) -> usize {
        self.shared.seen.get().most_in_flight
    }

    /// Returns the number of replies that were cut short because the client left.
    pub fn abandoned(&self) -> usize {
        self.shared.seen.get().abandoned
    }

    /// Waits until clients have abandoned at least `count` replies. Panics if there are fewer after
    /// `timeout`.
    #[track_caller]
    pub fn wait_for_abandoned(&self, count: usize, timeout: Duration) {
        let abandoned = self.shared.seen.wait(timeout, |seen| seen.abandoned >= count).abandoned;
        assert!(abandoned >= count, "{abandoned} replies instead of {count} were left after {timeout:?}");
    }

    /// Opens a gate for all current and future replies.
    pub fn release(&self, gate: &str) {
        self.shared.open_gates.send_modify(|open| {
            open.insert(gate.to_owned());
        });
    }

    /// Waits until a reply has reached this gate; everything before it has been sent. Panics if none reaches
    /// it within `timeout`.
    #[track_caller]
    pub fn wait_at_gate(&self, gate: &str, timeout: Duration) {
        let reached = self.shared.seen.wait(timeout, |seen| seen.gates_reached.contains(gate));
        let reached = reached.gates_reached.contains(gate);
        assert!(reached, "no reply reached the gate `{gate}` in {timeout:?}");
    }
}

/// The address, as [`FakeAgent::url`] returns it: project files name agents with `endpoint: '{agent}'`.
impl fmt::Display for FakeAgent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "http://{}/", self.address)
    }
}

impl Drop for FakeAgent {
    fn drop(&mut self) {
        // After a panic of the thread both ends are gone.
        let _ = self.stop.take().map(|stop| stop.send(()));
        let _ = self.thread.take().map(JoinHandle::join);
        let panic = self.shared.seen.get().handler_panic.take();
        if let Some(message) = panic
            && !std::thread::panicking()
        {
            panic!("the handler of a fake agent panicked: {message}");
        }
    }
}

/// The server's side, run by its thread.
#[derive(Clone)]
struct FakeServer {
    handler: Arc<RequestHandler>,
    keep_requests: bool,
    shared: Arc<AgentState>,
}

enum ReplyEnd {
    Clean,
    Cut,
    Reset,
    ClientLeft,
}

enum StepOutcome {
    Step,
    Ending(ReplyEnd),
}

impl From<io::Error> for StepOutcome {
    fn from(_: io::Error) -> StepOutcome {
        StepOutcome::Ending(ReplyEnd::ClientLeft)
    }
}

impl FakeServer {
    async fn accept(self, listener: TcpListener) {
        let listener = tokio::net::TcpListener::from_std(listener).expect("the listener is non-blocking");
        let mut accepted = 0;
        loop {
            if let Ok((stream, _)) = listener.accept().await
                && let Ok(connection) = HttpConnection::new(stream)
            {
                tokio::spawn(self.clone().serve(connection, accepted));
                accepted += 1;
            } else {
                // The client has left, or file descriptors ran out; both are temporary.
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }

    /// Answers the requests of a connection with this index until it ends.
    async fn serve(self, mut connection: HttpConnection, index: usize) {
        loop {
            let incoming = match connection.read_request().await {
                Ok(incoming) => incoming,
                Err(RequestReadError::Closed) => return,
                Err(RequestReadError::Malformed(what)) => {
                    let reply = FakeReply::text(400, &format!("not HTTP/1.1: {what}"));
                    let play = FakeReplySender { connection: &mut connection, shared: &self.shared };
                    play.reply(&reply, Some(BodyFraming::UntilClose), true).await;
                    return connection.close().await;
                }
            };
            let keep_alive = incoming.keep_alive;
            let knows_chunks = incoming.knows_chunks;
            let head_only = incoming.method == "HEAD";

            let mut in_flight = InFlightGuard::begin(&self.shared);
            let request = self.record(incoming, index);
            let reply = self.answer(&request);
            let framing = if knows_chunks { reply.framing } else { BodyFraming::UntilClose };
            let has_body = !head_only && reply.status >= 200 && !matches!(reply.status, 204 | 304);
            let body = has_body.then_some(framing);
            let close = !keep_alive || body == Some(BodyFraming::UntilClose);

            let ending = FakeReplySender { connection: &mut connection, shared: &self.shared }
                .reply(&reply, body, close)
                .await;
            // Nothing is awaited after the last byte, so a client that has read the end of this reply is not
            // counted together with its next request.
            in_flight.abandoned = matches!(ending, ReplyEnd::ClientLeft);
            drop(in_flight);
            match ending {
                ReplyEnd::Clean if !close => {}
                ReplyEnd::Clean | ReplyEnd::Cut => return connection.close().await,
                // If the option cannot be set, the client sees a normal close.
                ReplyEnd::Reset => return connection.reset().unwrap_or_default(),
                ReplyEnd::ClientLeft => return,
            }
        }
    }

    fn record(&self, incoming: IncomingRequest, connection: usize) -> FakeRequest {
        let IncomingRequest { method, path, headers, body, keep_alive: _, knows_chunks: _ } = incoming;
        let arrived = Instant::now();
        let mut request = FakeRequest { index: 0, connection, method, path, headers, body, arrived };
        self.shared.seen.change(|seen| {
            request.index = seen.arrived;
            seen.arrived += 1;
            if self.keep_requests {
                seen.requests.push(request.clone());
            }
        });
        request
    }

    fn answer(&self, request: &FakeRequest) -> FakeReply {
        catch_unwind(AssertUnwindSafe(|| (self.handler)(request))).unwrap_or_else(|panic| {
            let message = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("(no message)")
                .to_owned();
            let reply = FakeReply::text(500, &format!("the handler panicked: {message}"));
            // The first panic is the cause; later ones often follow from it.
            self.shared.seen.change(|seen| {
                seen.handler_panic.get_or_insert(message);
            });
            reply
        })
    }
}

/// Counts a request as in flight while it lives.
struct InFlightGuard<'a> {
    shared: &'a AgentState,
    abandoned: bool,
}

impl<'a> InFlightGuard<'a> {
    fn begin(shared: &'a AgentState) -> InFlightGuard<'a> {
        shared.seen.change(|seen| {
            seen.in_flight += 1;
            seen.most_in_flight = seen.most_in_flight.max(seen.in_flight);
        });
        InFlightGuard { shared, abandoned: false }
    }
}

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        self.shared.seen.change(|seen| {
            seen.in_flight -= 1;
            seen.abandoned += usize::from(self.abandoned);
        });
    }
}

/// Sends one reply.
struct FakeReplySender<'a> {
    connection: &'a mut HttpConnection,
    shared: &'a AgentState,
}

impl FakeReplySender<'_> {
    async fn reply(mut self, reply: &FakeReply, body: Option<BodyFraming>, close: bool) -> ReplyEnd {
        for step in &reply.before {
            match self.step(step, BodyFraming::UntilClose, None).await {
                StepOutcome::Step => {}
                // Without a head, an end is a cut.
                StepOutcome::Ending(ReplyEnd::Clean) => return ReplyEnd::Cut,
                StepOutcome::Ending(ending) => return ending,
            }
        }
        if self.connection.write_head(reply, body, close).await.is_err() {
            return ReplyEnd::ClientLeft;
        }
        let Some(framing) = body else { return ReplyEnd::Clean };
        for step in &reply.body {
            match self.step(step, framing, reply.piece.map(usize::from)).await {
                StepOutcome::Step => {}
                StepOutcome::Ending(ReplyEnd::Clean) => break,
                StepOutcome::Ending(ending) => return ending,
            }
        }
        match self.connection.write_end(framing).await {
            Ok(()) => ReplyEnd::Clean,
            Err(_) => ReplyEnd::ClientLeft,
        }
    }

    async fn step(&mut self, step: &ReplyStep, framing: BodyFraming, piece: Option<usize>) -> StepOutcome {
        match step {
            ReplyStep::Bytes(bytes) => self.send(bytes, framing, piece).await,
            ReplyStep::Event(event) => {
                self.send(format!("data: {event}\n\n").as_bytes(), framing, piece).await
            }
            ReplyStep::Pause(time) => self.wait(tokio::time::sleep(*time)).await,
            ReplyStep::Gate(name) => {
                self.shared.seen.change(|seen| {
                    seen.gates_reached.insert(name.clone());
                });
                let mut open_gates = self.shared.open_gates.subscribe();
                self.wait(async {
                    // The sender lives as long as the server, so the wait ends only when the gate opens.
                    let _ = open_gates.wait_for(|open| open.contains(name)).await;
                })
                .await
            }
            ReplyStep::Hang => self.wait(std::future::pending()).await,
            ReplyStep::Cut => StepOutcome::Ending(ReplyEnd::Cut),
            ReplyStep::Reset => StepOutcome::Ending(ReplyEnd::Reset),
            ReplyStep::End => StepOutcome::Ending(ReplyEnd::Clean),
        }
    }

    async fn send(&mut self, bytes: &[u8], framing: BodyFraming, piece: Option<usize>) -> StepOutcome {
        for part in bytes.chunks(piece.unwrap_or(bytes.len()).max(1)) {
            if let Err(error) = self.connection.write_piece(framing, part).await {
                return error.into();
            }
        }
        StepOutcome::Step
    }

    /// Waits, unless the client leaves.
    async fn wait(&mut self, until: impl Future<Output = ()>) -> StepOutcome {
        tokio::select! {
            biased;
            () = until => StepOutcome::Step,
            () = self.connection.wait_for_close() => StepOutcome::Ending(ReplyEnd::ClientLeft),
        }
    }
}
