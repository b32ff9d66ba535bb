//! An HTTP server on a port of its own that plays what a test's function answers.

use std::collections::BTreeSet;
use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::{oneshot, watch};

use crate::http::{Connection, Incoming, ReadError};
use crate::reply::{Framing, Reply, Step};
use crate::request::Request;
use crate::watched::Watched;

/// A running server. It stops, and every open connection ends, when this is dropped.
///
/// The handler is called once per request, on the server's thread, in the order of arrival; the
/// replies are then sent at the same time, each on its own connection. A handler that panics (an
/// assertion about the request that does not hold) is answered with status 500, and dropping the
/// server then panics with the same words, so that the test fails.
#[derive(Debug)]
pub struct FakeAgent {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// How a server listens.
#[derive(Debug, Clone, Copy)]
pub struct Listen {
    /// The port on 127.0.0.1; 0 lets the system choose.
    pub port: u16,
    /// Whether requests are kept for [`FakeAgent::requests`]. A server that lives long does not.
    pub keep_requests: bool,
}

/// What the server's thread and the test look at together.
#[derive(Debug)]
struct Shared {
    seen: Watched<Seen>,
    open_gates: watch::Sender<BTreeSet<String>>,
}

/// What has happened so far.
#[derive(Debug, Default)]
struct Seen {
    requests: Vec<Request>,
    arrived: usize,
    in_flight: usize,
    most_in_flight: usize,
    abandoned: usize,
    gates_reached: BTreeSet<String>,
    handler_panic: Option<String>,
}

type Handler = dyn Fn(&Request) -> Reply + Send + Sync;

impl FakeAgent {
    /// Starts a server on a free port of 127.0.0.1.
    ///
    /// # Panics
    /// If no port can be opened.
    pub fn start<R: Into<Reply>>(handler: impl Fn(&Request) -> R + Send + Sync + 'static) -> FakeAgent {
        FakeAgent::listen(Listen { port: 0, keep_requests: true }, handler)
            .expect("127.0.0.1 has a free port")
    }

    /// Starts a server where and how `listen` says.
    pub fn listen<R: Into<Reply>>(
        listen: Listen,
        handler: impl Fn(&Request) -> R + Send + Sync + 'static,
    ) -> io::Result<FakeAgent> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, listen.port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let shared = Arc::new(Shared { seen: Watched::default(), open_gates: watch::Sender::default() });
        let server = Server {
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
            // Dropping the runtime drops the tasks, and with them every open connection.
        })?;
        Ok(FakeAgent { address, shared, stop: Some(stop), thread: Some(thread) })
    }

    /// `http://127.0.0.1:PORT/`
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Every request so far, in the order of arrival.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.seen.get().requests.clone()
    }

    /// Returns the requests as soon as there are at least `count`.
    ///
    /// # Panics
    /// If there are fewer after `timeout`.
    #[track_caller]
    pub fn wait_for_requests(&self, count: usize, timeout: Duration) -> Vec<Request> {
        let seen = self.shared.seen.wait(timeout, |seen| seen.arrived >= count);
        if seen.arrived < count {
            let arrived = seen.arrived;
            drop(seen);
            panic!("{arrived} requests instead of {count} after {timeout:?}");
        }
        seen.requests.clone()
    }

    /// The largest number of requests that were being answered at the same moment.
    pub fn most_in_flight(&self) -> usize {
        self.shared.seen.get().most_in_flight
    }

    /// How many replies did not get to their end because the client left.
    pub fn abandoned(&self) -> usize {
        self.shared.seen.get().abandoned
    }

    /// Waits until clients have left at least `count` replies before their end.
    ///
    /// # Panics
    /// If there are fewer after `timeout`.
    #[track_caller]
    pub fn wait_for_abandoned(&self, count: usize, timeout: Duration) {
        let abandoned = self.shared.seen.wait(timeout, |seen| seen.abandoned >= count).abandoned;
        assert!(abandoned >= count, "{abandoned} replies instead of {count} were left after {timeout:?}");
    }

    /// Opens a gate for every reply that waits there, and for those that come later.
    pub fn release(&self, gate: &str) {
        self.shared.open_gates.send_modify(|open| {
            open.insert(gate.to_owned());
        });
    }

    /// Waits until a reply has come to this gate: everything before it has been sent.
    ///
    /// # Panics
    /// If none has after `timeout`.
    #[track_caller]
    pub fn wait_at_gate(&self, gate: &str, timeout: Duration) {
        let reached = self.shared.seen.wait(timeout, |seen| seen.gates_reached.contains(gate));
        let reached = reached.gates_reached.contains(gate);
        assert!(reached, "no reply came to the gate `{gate}` in {timeout:?}");
    }
}

impl Drop for FakeAgent {
    fn drop(&mut self) {
        // Both ends may be gone already if the thread died; then there is nothing to stop.
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

/// The side of the server's thread.
#[derive(Clone)]
struct Server {
    handler: Arc<Handler>,
    keep_requests: bool,
    shared: Arc<Shared>,
}

/// How a reply came to its end.
enum Ending {
    Clean,
    Cut,
    Reset,
    ClientLeft,
}

/// What follows a step.
enum Next {
    Step,
    Ending(Ending),
}

impl From<io::Error> for Next {
    fn from(_: io::Error) -> Next {
        Next::Ending(Ending::ClientLeft)
    }
}

impl Server {
    async fn accept(self, listener: TcpListener) {
        let listener = tokio::net::TcpListener::from_std(listener).expect("the listener is non-blocking");
        loop {
            if let Ok((stream, _)) = listener.accept().await
                && let Ok(connection) = Connection::new(stream)
            {
                tokio::spawn(self.clone().serve(connection));
            } else {
                // The client has left already, or descriptors ran out: both pass.
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }

    /// Answers the requests of one connection until it ends.
    async fn serve(self, mut connection: Connection) {
        loop {
            let incoming = match connection.read_request().await {
                Ok(incoming) => incoming,
                Err(ReadError::Left) => return,
                Err(ReadError::Malformed(what)) => {
                    let reply = Reply::text(400, &format!("not HTTP/1.1: {what}"));
                    let play = Play { connection: &mut connection, shared: &self.shared };
                    play.reply(&reply, Some(Framing::UntilClose), true).await;
                    return connection.close().await;
                }
            };
            let keep_alive = incoming.keep_alive;
            let knows_chunks = incoming.knows_chunks;
            let head_only = incoming.method == "HEAD";

            let mut in_flight = InFlight::begin(&self.shared);
            let request = self.record(incoming);
            let reply = self.answer(&request);
            let framing = if knows_chunks { reply.framing } else { Framing::UntilClose };
            let has_body = !head_only && reply.status >= 200 && !matches!(reply.status, 204 | 304);
            let body = has_body.then_some(framing);
            let close = !keep_alive || body == Some(Framing::UntilClose);

            let ending =
                Play { connection: &mut connection, shared: &self.shared }.reply(&reply, body, close).await;
            // Nothing waits between the last byte and here, so that a client which has read the end
            // of this reply cannot be counted beside its own next request.
            in_flight.abandoned = matches!(ending, Ending::ClientLeft);
            drop(in_flight);
            match ending {
                Ending::Clean if !close => {}
                Ending::Clean | Ending::Cut => return connection.close().await,
                // If the option cannot be set, the client reads an end instead of a reset.
                Ending::Reset => return connection.reset().unwrap_or_default(),
                Ending::ClientLeft => return,
            }
        }
    }

    fn record(&self, incoming: Incoming) -> Request {
        let Incoming { method, path, headers, body, keep_alive: _, knows_chunks: _ } = incoming;
        let arrived = Instant::now();
        let mut request = Request { index: 0, method, path, headers, body, arrived };
        self.shared.seen.change(|seen| {
            request.index = seen.arrived;
            seen.arrived += 1;
            if self.keep_requests {
                seen.requests.push(request.clone());
            }
        });
        request
    }

    fn answer(&self, request: &Request) -> Reply {
        catch_unwind(AssertUnwindSafe(|| (self.handler)(request))).unwrap_or_else(|panic| {
            let message = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("(no message)")
                .to_owned();
            let reply = Reply::text(500, &format!("the handler panicked: {message}"));
            // The first one is the cause; later ones often follow from it.
            self.shared.seen.change(|seen| {
                seen.handler_panic.get_or_insert(message);
            });
            reply
        })
    }
}

/// Counts one request as being answered while it lives.
struct InFlight<'a> {
    shared: &'a Shared,
    abandoned: bool,
}

impl<'a> InFlight<'a> {
    fn begin(shared: &'a Shared) -> InFlight<'a> {
        shared.seen.change(|seen| {
            seen.in_flight += 1;
            seen.most_in_flight = seen.most_in_flight.max(seen.in_flight);
        });
        InFlight { shared, abandoned: false }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.shared.seen.change(|seen| {
            seen.in_flight -= 1;
            seen.abandoned += usize::from(self.abandoned);
        });
    }
}

/// Sends one reply.
struct Play<'a> {
    connection: &'a mut Connection,
    shared: &'a Shared,
}

impl Play<'_> {
    async fn reply(mut self, reply: &Reply, body: Option<Framing>, close: bool) -> Ending {
        for step in &reply.before {
            match self.step(step, Framing::UntilClose, None).await {
                Next::Step => {}
                // Without a head there is no clean end.
                Next::Ending(Ending::Clean) => return Ending::Cut,
                Next::Ending(ending) => return ending,
            }
        }
        if self.connection.write_head(reply, body, close).await.is_err() {
            return Ending::ClientLeft;
        }
        let Some(framing) = body else { return Ending::Clean };
        for step in &reply.body {
            match self.step(step, framing, reply.piece.map(usize::from)).await {
                Next::Step => {}
                Next::Ending(Ending::Clean) => break,
                Next::Ending(ending) => return ending,
            }
        }
        match self.connection.write_end(framing).await {
            Ok(()) => Ending::Clean,
            Err(_) => Ending::ClientLeft,
        }
    }

    async fn step(&mut self, step: &Step, framing: Framing, piece: Option<usize>) -> Next {
        match step {
            Step::Bytes(bytes) => self.send(bytes, framing, piece).await,
            Step::Event(event) => self.send(format!("data: {event}\n\n").as_bytes(), framing, piece).await,
            Step::Pause(time) => self.wait(tokio::time::sleep(*time)).await,
            Step::Gate(name) => {
                self.shared.seen.change(|seen| {
                    seen.gates_reached.insert(name.clone());
                });
                let mut open_gates = self.shared.open_gates.subscribe();
                self.wait(async {
                    // The sender lives as long as the server, so this ends only with the gate.
                    let _ = open_gates.wait_for(|open| open.contains(name)).await;
                })
                .await
            }
            Step::Hang => self.wait(std::future::pending()).await,
            Step::Cut => Next::Ending(Ending::Cut),
            Step::Reset => Next::Ending(Ending::Reset),
            Step::End => Next::Ending(Ending::Clean),
        }
    }

    async fn send(&mut self, bytes: &[u8], framing: Framing, piece: Option<usize>) -> Next {
        for part in bytes.chunks(piece.unwrap_or(bytes.len()).max(1)) {
            if let Err(error) = self.connection.write_piece(framing, part).await {
                return error.into();
            }
        }
        Next::Step
    }

    /// Waits, and notices when the client does not.
    async fn wait(&mut self, until: impl Future<Output = ()>) -> Next {
        tokio::select! {
            biased;
            () = until => Next::Step,
            () = self.connection.client_left() => Next::Ending(Ending::ClientLeft),
        }
    }
}
