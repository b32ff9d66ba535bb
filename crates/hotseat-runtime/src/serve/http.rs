//! The server: who may ask, what is asked, and how answers are sent.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::{StreamExt as _, stream};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};

use super::accept::accept;
use super::events::ThreadStream;
use super::refusal::{Reason, Refusal};
use super::{Agent, Taken, ag_ui, openai};
use crate::ids::ConversationId;

/// How a server behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Where it listens.
    pub host: IpAddr,
    /// At which port; any that is free if it is 0.
    pub port: u16,
    /// The origins of pages that may use it, as browsers name them; `*` is any.
    pub allow_origins: Vec<String>,
    /// The longest body, in bytes.
    pub longest_body: usize,
    /// How many bytes of bodies are held at once, over all requests.
    pub bodies: usize,
    /// How many connections are open at once; further ones wait until one is closed.
    pub connections: usize,
    /// How long a client may take for the head of a request, also for the next one on a connection that is kept.
    pub head_timeout: Duration,
    /// How long a client may take for the body of a request.
    pub body_timeout: Duration,
    /// How long a client may leave a piece of an answer unread.
    pub write_timeout: Duration,
    /// After how long without an event a comment is sent, so that nobody takes the connection for dead.
    pub keep_alive: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 0,
            allow_origins: Vec::new(),
            longest_body: 8 * 1024 * 1024,
            bodies: 64 * 1024 * 1024,
            connections: 1024,
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(60),
            keep_alive: Duration::from_secs(15),
        }
    }
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be had.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// Two agents have the same name, or there is none.
    #[error("{0}")]
    Agents(String),
}

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    routes: Router,
    options: Options,
    stopping: watch::Sender<bool>,
}

/// What all requests share.
struct Shared {
    agents: Vec<Agent>,
    options: Options,
    /// Room for bodies, in units of [`BODY_UNIT`].
    bodies: Arc<Semaphore>,
    /// Whether the server is about to end.
    stopping: watch::Receiver<bool>,
}

/// The unit in which room for bodies is counted, in bytes.
const BODY_UNIT: usize = 1024;

impl Server {
    /// Listens. Requests are answered from [`run`](Server::run) on.
    ///
    /// # Errors
    /// When the address cannot be had, or the agents cannot be told apart.
    pub async fn bind(options: Options, agents: Vec<Agent>) -> Result<Server, ServeError> {
        if agents.is_empty() {
            return Err(ServeError::Agents("there is no agent to serve".to_string()));
        }
        for (index, agent) in agents.iter().enumerate() {
            if agents[..index].iter().any(|earlier| earlier.name() == agent.name()) {
                return Err(ServeError::Agents(format!("two agents are called {:?}", agent.name())));
            }
        }
        let wanted = SocketAddr::new(options.host, options.port);
        let listen = |source| ServeError::Listen { address: wanted, source };
        let listener = TcpListener::bind(wanted).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let (stopping, stops) = watch::channel(false);
        let units = (options.bodies / BODY_UNIT).clamp(1, Semaphore::MAX_PERMITS);
        let bodies = Arc::new(Semaphore::new(units));
        let shared = Shared { agents, options: options.clone(), bodies, stopping: stops };
        Ok(Server { listener, address, routes: routes(Arc::new(shared)), options, stopping })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests until `stop` is over. Answers that are under way are finished, and streams of conversations
    /// ended.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        accept(self.listener, self.routes, &self.options, self.stopping, stop).await;
    }
}

fn routes(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/", get(index).post(ag_ui_first))
        .route("/agents/{name}", post(ag_ui_named))
        .route("/threads/{thread}", get(thread_first))
        .route("/threads/{thread}/events", get(events_first))
        .route("/agents/{name}/threads/{thread}", get(thread_named))
        .route("/agents/{name}/threads/{thread}/events", get(events_named))
        .route("/health", get(health))
        .route("/v1/models", get(models))
        .route("/v1/chat/completions", post(chat))
        .fallback(unknown)
        .method_not_allowed_fallback(other_method)
        .layer(middleware::from_fn_with_state(shared.clone(), admit))
        .with_state(shared)
}

async fn index(State(shared): State<Arc<Shared>>) -> Json<serde_json::Value> {
    let agents: Vec<_> = shared
        .agents
        .iter()
        .map(|agent| json!({"name": agent.name(), "agUi": format!("/agents/{}", agent.name())}))
        .collect();
    Json(json!({"agents": agents, "agUi": "/", "chatCompletions": "/v1/chat/completions"}))
}

async fn health() -> Json<serde_json::Value> {
    Json(json!({"status": "ok"}))
}

async fn models(State(shared): State<Arc<Shared>>) -> Json<serde_json::Value> {
    let models: Vec<_> = shared
        .agents
        .iter()
        .map(|agent| json!({"id": agent.name(), "object": "model", "created": 0, "owned_by": "hotseat"}))
        .collect();
    Json(json!({"object": "list", "data": models}))
}

async fn unknown(request: Request) -> Refusal {
    let path = request.uri().path().to_string();
    Refusal::of(
        Reason::NotFound,
        format!(
            "there is nothing at {path:?}; POST / and /agents/NAME speak AG-UI, GET /threads/THREAD and \
             /threads/THREAD/events tell what is kept, POST /v1/chat/completions and GET /v1/models chat completions"
        ),
    )
}

async fn other_method(request: Request) -> Refusal {
    let (method, path) = (request.method().clone(), request.uri().path().to_string());
    Refusal::of(Reason::Method, format!("{path} does not take {method}"))
}

async fn ag_ui_first(State(shared): State<Arc<Shared>>, request: Request) -> Result<Response, Refusal> {
    ag_ui(shared.agents[0].clone(), &shared, request).await
}

async fn ag_ui_named(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    ag_ui(find(&shared, &name)?, &shared, request).await
}

fn find(shared: &Shared, name: &str) -> Result<Agent, Refusal> {
    shared.agents.iter().find(|agent| agent.name() == name).cloned().ok_or_else(|| {
        let known: Vec<_> = shared.agents.iter().map(Agent::name).collect();
        Refusal {
            member: Some("model".to_string()),
            ..Refusal::of(
                Reason::NotFound,
                format!("there is no agent {name:?}; there is {}", known.join(", ")),
            )
        }
    })
}

async fn thread_first(
    State(shared): State<Arc<Shared>>,
    Path(thread): Path<String>,
) -> Result<Response, Refusal> {
    whole_thread(&shared.agents[0], thread).await
}

async fn thread_named(
    State(shared): State<Arc<Shared>>,
    Path((name, thread)): Path<(String, String)>,
) -> Result<Response, Refusal> {
    whole_thread(&find(&shared, &name)?, thread).await
}

/// What is kept of a thread, as messages of AG-UI.
async fn whole_thread(agent: &Agent, thread: String) -> Result<Response, Refusal> {
    let handle = agent.known_conversation(&ConversationId::from(thread)).await?;
    let state = handle.state().await.map_err(super::talk::broken)?;
    Ok(Json(ag_ui::thread(&state)).into_response())
}

async fn events_first(
    State(shared): State<Arc<Shared>>,
    Path(thread): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    thread_events(&shared, &shared.agents[0], thread, &headers).await
}

async fn events_named(
    State(shared): State<Arc<Shared>>,
    Path((name, thread)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    thread_events(&shared, &find(&shared, &name)?, thread, &headers).await
}

/// Everything that happens in a thread, from the event after the one that the client has seen last.
async fn thread_events(
    shared: &Shared,
    agent: &Agent,
    thread: String,
    headers: &HeaderMap,
) -> Result<Response, Refusal> {
    let name = HeaderName::from_static("last-event-id");
    let seen = match text(headers, &name).map(str::trim).filter(|id| !id.is_empty()) {
        None => 0,
        Some(id) => id.parse().map_err(|_| {
            Refusal::bad(
                "last-event-id",
                format!("`last-event-id` is the number of an event, and this is {id:?}"),
            )
        })?,
    };
    let handle = agent.known_conversation(&ConversationId::from(thread)).await?;
    let stream = ThreadStream::open(&handle, seen).await?;
    let (pieces, body) = mpsc::channel(1);
    let (pace, mut stopping) = (Pace::of(&shared.options), shared.stopping.clone());
    tokio::spawn(async move {
        tokio::select! {
            () = pump_events(stream, pieces, pace) => {}
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
    });
    Ok(event_stream(body))
}

async fn ag_ui(agent: Agent, shared: &Shared, request: Request) -> Result<Response, Refusal> {
    let body = json_body(request, shared).await?;
    let input = ag_ui::read(&body.bytes)?;
    drop(body);
    let taken = agent.take_or_join(&ConversationId::from(input.thread.as_str())).await?;
    let pace = Pace::of(&shared.options);
    let (head, answered) = oneshot::channel();
    // The run is no part of this task, which ends when its client goes away.
    tokio::spawn(async move {
        match ag_ui::Run::begin(&agent, input).await {
            Err(refusal) => {
                drop(taken);
                drop(head.send(Err(refusal)));
            }
            Ok((run, first)) => {
                let (pieces, body) = mpsc::channel(1);
                if head.send(Ok(body)).is_err() {
                    return run.cancel().await;
                }
                pump(Answer::Run(run, first), taken, pieces, pace).await;
            }
        }
    });
    answered.await.map_err(|_| gone())?.map(event_stream)
}

async fn chat(State(shared): State<Arc<Shared>>, request: Request) -> Result<Response, Refusal> {
    let body = json_body(request, &shared).await?;
    let asked = openai::read(&body.bytes)?;
    drop(body);
    let agent = find(&shared, &asked.model)?;
    match asked.stream {
        true => chat_in_pieces(agent, asked, Pace::of(&shared.options)).await,
        false => chat_as_a_whole(agent, asked).await,
    }
}

async fn chat_in_pieces(agent: Agent, asked: openai::Asked, pace: Pace) -> Result<Response, Refusal> {
    let (head, answered) = oneshot::channel();
    tokio::spawn(async move {
        match openai::Chat::begin(&agent, asked).await {
            Err(refusal) => drop(head.send(Err(refusal))),
            Ok((chat, taken)) => {
                let (pieces, body) = mpsc::channel(1);
                if head.send(Ok(body)).is_err() {
                    return chat.cancel().await;
                }
                pump(Answer::Chat(chat), taken, pieces, pace).await;
            }
        }
    });
    answered.await.map_err(|_| gone())?.map(event_stream)
}

async fn chat_as_a_whole(agent: Agent, asked: openai::Asked) -> Result<Response, Refusal> {
    let (mut head, answered) = oneshot::channel::<Result<serde_json::Value, Refusal>>();
    tokio::spawn(async move {
        match openai::Chat::begin(&agent, asked).await {
            Err(refusal) => drop(head.send(Err(refusal))),
            Ok((mut chat, taken)) => {
                let answer = tokio::select! {
                    answer = chat.whole() => answer,
                    () = head.closed() => return chat.cancel().await,
                };
                drop(taken);
                drop(head.send(answer));
            }
        }
    });
    let whole = answered.await.map_err(|_| gone())??;
    Ok(Json(whole).into_response())
}

fn gone() -> Refusal {
    Refusal::of(Reason::Failed, "the answer was given up by a fault of the server")
}

/// An answer that is sent event by event.
enum Answer {
    /// A run of AG-UI, with its first events.
    Run(ag_ui::Run, Vec<serde_json::Value>),
    /// A chat completion.
    Chat(openai::Chat),
}

impl Answer {
    /// The next events as they are sent, and whether they are the last.
    async fn next(&mut self) -> (Bytes, bool) {
        match self {
            Answer::Run(_, first) if !first.is_empty() => (lines(&std::mem::take(first)), false),
            Answer::Run(run, _) => match run.next().await {
                ag_ui::Told::Events(events) => (lines(&events), false),
                ag_ui::Told::Last(events) => (lines(&events), true),
            },
            Answer::Chat(chat) => match chat.next().await {
                openai::Told::Chunks(chunks) => (lines(&chunks), false),
                openai::Told::Last(chunks) => {
                    ([lines(&chunks), Bytes::from_static(b"data: [DONE]\n\n")].concat().into(), true)
                }
            },
        }
    }

    async fn cancel(self) {
        match self {
            Answer::Run(run, _) => run.cancel().await,
            Answer::Chat(chat) => chat.cancel().await,
        }
    }
}

/// Events as they are sent.
fn lines(events: &[serde_json::Value]) -> Bytes {
    let mut lines = Vec::new();
    for event in events {
        lines.extend_from_slice(b"data: ");
        lines.extend_from_slice(event.to_string().as_bytes());
        lines.extend_from_slice(b"\n\n");
    }
    lines.into()
}

/// Sends an answer piece by piece. If its client goes away, what it asked for is given up.
async fn pump(mut answer: Answer, taken: Taken, pieces: mpsc::Sender<Bytes>, pace: Pace) {
    let mut taken = Some(taken);
    loop {
        let next = tokio::select! {
            next = tokio::time::timeout(pace.keep_alive, answer.next()) => next,
            () = pieces.closed() => return answer.cancel().await,
        };
        let (piece, last) = next.unwrap_or((Bytes::from_static(b": the agent is at work\n\n"), false));
        if last {
            // Whoever has read the last event may ask again at once.
            taken.take();
        }
        let sent = pace.send(&pieces, piece).await;
        if last {
            return;
        }
        if !sent {
            return answer.cancel().await;
        }
    }
}

/// Sends what happens in a thread until nobody reads it.
async fn pump_events(mut stream: ThreadStream, pieces: mpsc::Sender<Bytes>, pace: Pace) {
    loop {
        let next = tokio::select! {
            next = tokio::time::timeout(pace.keep_alive, stream.next()) => next,
            () = pieces.closed() => return,
        };
        let piece = match next {
            Ok(Some(piece)) => piece,
            Ok(None) => return,
            Err(_) => Bytes::from_static(b": nothing happens\n\n"),
        };
        if !pace.send(&pieces, piece).await {
            return;
        }
    }
}

/// How long the parts of an answer may take.
#[derive(Clone, Copy)]
struct Pace {
    keep_alive: Duration,
    write_timeout: Duration,
}

impl Pace {
    fn of(options: &Options) -> Pace {
        Pace { keep_alive: options.keep_alive, write_timeout: options.write_timeout }
    }

    /// Sends a piece. Says whether the client takes it in time.
    async fn send(self, pieces: &mpsc::Sender<Bytes>, piece: Bytes) -> bool {
        matches!(tokio::time::timeout(self.write_timeout, pieces.send(piece)).await, Ok(Ok(())))
    }
}

fn event_stream(mut pieces: mpsc::Receiver<Bytes>) -> Response {
    let body = stream::poll_fn(move |context| pieces.poll_recv(context)).map(Ok::<_, Infallible>);
    let mut response = Body::from_stream(body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Proxies are to pass on each event as it comes.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// The body of a request that says it is JSON.
///
/// A page cannot send this type to another origin without asking first, which is refused.
async fn json_body(request: Request, shared: &Shared) -> Result<HeldBody, Refusal> {
    let kind = text(request.headers(), &header::CONTENT_TYPE).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if essence != "application/json" {
        let message = format!("the body must be JSON, with `content-type: application/json`; it is {kind:?}");
        return Err(Refusal::of(Reason::MediaType, message));
    }
    let timeout = shared.options.body_timeout;
    tokio::time::timeout(timeout, whole_body(request, shared)).await.map_err(|_| {
        let message = format!("the body did not come within {} s", timeout.as_secs_f64());
        Refusal::of(Reason::Slow, message)
    })?
}

/// A body, for which there is room as long as it is held.
struct HeldBody {
    bytes: Vec<u8>,
    _room: Option<OwnedSemaphorePermit>,
}

async fn whole_body(request: Request, shared: &Shared) -> Result<HeldBody, Refusal> {
    let longest = shared.options.longest_body;
    let (mut whole, mut room) = (Vec::new(), None::<OwnedSemaphorePermit>);
    let mut pieces = request.into_body().into_data_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| Refusal::bad("body", format!("the body broke off: {error}")))?;
        if whole.len() + piece.len() > longest {
            let message = format!("the body is longer than {longest} bytes");
            return Err(Refusal::of(Reason::TooLarge, message));
        }
        whole.extend_from_slice(&piece);
        let held = room.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = u32::try_from(whole.len().div_ceil(BODY_UNIT) - held).unwrap_or(u32::MAX);
        let more = shared.bodies.clone().try_acquire_many_owned(more).map_err(|_| {
            Refusal::of(Reason::Full, "too much is being sent to this server at once; try again later")
        })?;
        match &mut room {
            Some(room) => room.merge(more),
            None => room = Some(more),
        }
    }
    Ok(HeldBody { bytes: whole, _room: room })
}

/// Lets requests through that are meant for this server, and tells browsers which pages may use it.
async fn admit(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let options = &shared.options;
    let host = text(request.headers(), &header::HOST).map(str::to_string);
    if options.host.is_loopback() && !host.as_deref().is_some_and(is_local) {
        let host = host.unwrap_or_default();
        let message = format!(
            "this server answers requests for localhost only, and this one is for {host:?}: a page that got here by \
             a name of its own is not let in"
        );
        return Refusal::of(Reason::Forbidden, message).into_response();
    }
    let origin = text(request.headers(), &header::ORIGIN).map(str::to_string);
    let Some(origin) = origin else { return next.run(request).await };
    let own = host.is_some_and(|host| is_local(&host) && origin == format!("http://{host}"));
    let allowed = options.allow_origins.iter().any(|known| known == "*" || *known == origin);
    if !own && !allowed {
        let message =
            format!("pages of {origin} may not use this server; `--allow-origin {origin}` lets them");
        return Refusal::of(Reason::Forbidden, message).into_response();
    }
    let preflight = request.method() == Method::OPTIONS;
    let wanted = request.headers().get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned();
    let mut response = match preflight {
        true => StatusCode::NO_CONTENT.into_response(),
        false => next.run(request).await,
    };
    let headers = response.headers_mut();
    if let Ok(origin) = HeaderValue::from_str(&origin) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    }
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    if preflight {
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST"));
        if let Some(wanted) = wanted {
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted);
        }
    }
    response
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// Whether a `Host` header names this machine as seen from itself.
fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    match name.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::is_local;

    #[test]
    fn only_names_of_this_machine_are_let_in() {
        for host in [
            "localhost",
            "localhost:80",
            "LOCALHOST:1",
            "a.localhost:1",
            "127.0.0.1:8080",
            "127.1.2.3",
            "[::1]:80",
        ] {
            assert!(is_local(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example:80",
            "10.0.0.1:80",
            "[2001:db8::1]:80",
            "127.0.0.1.evil.example",
        ] {
            assert!(!is_local(host), "{host}");
        }
    }
}
