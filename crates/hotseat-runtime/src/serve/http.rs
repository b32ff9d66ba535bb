//! The HTTP server: routes, access checks, request bodies and streamed answers.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{FromRequestParts, Path, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::{StreamExt as _, stream};
use hotseat_serve::{AcceptLimits, RequestSource, TowerToHyperService, accept, is_local};
use serde::Deserialize;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};

use super::client::{ConversationLease, RequestError, RequestErrorKind, ServedAgent, host_error};
use super::events::ThreadStream;
use super::options::ServeOptions;
use super::{ag_ui, openai};
use crate::ids::ConversationId;

/// Error that prevents a server from starting.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be bound.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// Two agents have the same name, or there are no agents.
    #[error("{0}")]
    Agents(String),
}

/// Server that is bound to its address.
pub struct AgentServer {
    listener: TcpListener,
    address: SocketAddr,
    routes: Router,
    options: ServeOptions,
    stopping: watch::Sender<bool>,
}

/// State shared by all requests.
struct ServerState {
    agents: Vec<ServedAgent>,
    options: ServeOptions,
    /// Free buffer space for bodies, in units of [`BODY_UNIT_BYTES`].
    bodies: Arc<Semaphore>,
    /// True once the server is shutting down.
    stopping: watch::Receiver<bool>,
}

/// Variables in the path of a route.
#[derive(Deserialize)]
struct AgentPath {
    name: Option<String>,
    #[serde(default)]
    thread: String,
}

impl<S: Send + Sync> FromRequestParts<S> for AgentPath {
    type Rejection = RequestError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, RequestError> {
        let path = Path::<AgentPath>::from_request_parts(parts, state).await;
        path.map(|Path(path)| path).map_err(|_| {
            let path = parts.uri.path();
            let message = format!("the names in {path:?} must be UTF-8; percent-encode their bytes");
            RequestError::new(RequestErrorKind::BadRequest, message)
        })
    }
}

/// Size of one permit of the body buffer, in bytes.
const BODY_UNIT_BYTES: usize = 1024;

impl AgentServer {
    /// Binds the address. Requests are answered once [`run`](AgentServer::run) is called.
    ///
    /// # Errors
    /// If the address cannot be bound, there are no agents, or two agents share a name.
    pub async fn bind(options: ServeOptions, agents: Vec<ServedAgent>) -> Result<AgentServer, ServeError> {
        if agents.is_empty() {
            return Err(ServeError::Agents("there are no agents to serve".to_string()));
        }
        for (index, agent) in agents.iter().enumerate() {
            if agents[..index].iter().any(|earlier| earlier.name() == agent.name()) {
                return Err(ServeError::Agents(format!("two agents have the name {:?}", agent.name())));
            }
        }
        let wanted = SocketAddr::new(options.host, options.port);
        let listen = |source| ServeError::Listen { address: wanted, source };
        let listener = TcpListener::bind(wanted).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let (stopping, stops) = watch::channel(false);
        let units = (options.max_buffered_bytes / BODY_UNIT_BYTES).clamp(1, Semaphore::MAX_PERMITS);
        let bodies = Arc::new(Semaphore::new(units));
        let shared = ServerState { agents, options: options.clone(), bodies, stopping: stops };
        Ok(AgentServer { listener, address, routes: routes(Arc::new(shared)), options, stopping })
    }

    /// Returns the bound address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests until `stop` resolves. Answers in progress are completed; streams of conversations
    /// are closed.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let limits = AcceptLimits {
            max_connections: self.options.max_connections,
            head_timeout: self.options.head_timeout,
            ..AcceptLimits::default()
        };
        accept(self.listener, TowerToHyperService::new(self.routes), limits, self.stopping, stop).await;
    }
}

fn routes(shared: Arc<ServerState>) -> Router {
    Router::new()
        .route("/", get(index).post(ag_ui))
        .route("/agents/{name}", post(ag_ui))
        .route("/threads/{thread}", get(thread))
        .route("/threads/{thread}/events", get(thread_events))
        .route("/agents/{name}/threads/{thread}", get(thread))
        .route("/agents/{name}/threads/{thread}/events", get(thread_events))
        .route("/health", get(health))
        .route("/v1/models", get(models))
        .route("/v1/chat/completions", post(chat))
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(middleware::from_fn_with_state(shared.clone(), check_access))
        .with_state(shared)
}

async fn index(State(shared): State<Arc<ServerState>>) -> Json<serde_json::Value> {
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

async fn models(State(shared): State<Arc<ServerState>>) -> Json<serde_json::Value> {
    let models: Vec<_> = shared
        .agents
        .iter()
        .map(|agent| json!({"id": agent.name(), "object": "model", "created": 0, "owned_by": "hotseat"}))
        .collect();
    Json(json!({"object": "list", "data": models}))
}

async fn not_found(request: Request) -> RequestError {
    let path = request.uri().path().to_string();
    RequestError::new(
        RequestErrorKind::NotFound,
        format!(
            "nothing found at {path:?}; POST / and /agents/NAME speak AG-UI, GET /threads/THREAD and \
             /threads/THREAD/events return stored conversations, POST /v1/chat/completions and GET /v1/models serve chat completions"
        ),
    )
}

async fn method_not_allowed(request: Request) -> RequestError {
    let (method, path) = (request.method().clone(), request.uri().path().to_string());
    let supported = match path.as_str() {
        "/" => "GET or POST",
        "/v1/chat/completions" => "POST",
        path if path.starts_with("/agents/") && !path.contains("/threads/") => "POST",
        _ => "GET",
    };
    let message = format!("{path} does not support {method}; use {supported}");
    RequestError::new(RequestErrorKind::MethodNotAllowed, message)
}

impl ServerState {
    /// Returns the agent of a path; the first agent if the path names none.
    fn agent_at(&self, path: &AgentPath) -> Result<ServedAgent, RequestError> {
        path.name.as_ref().map_or_else(|| Ok(self.agents[0].clone()), |name| self.find_agent(name))
    }

    fn find_agent(&self, name: &str) -> Result<ServedAgent, RequestError> {
        self.agents.iter().find(|agent| agent.name() == name).cloned().ok_or_else(|| {
            let known: Vec<_> = self.agents.iter().map(ServedAgent::name).collect();
            let message = format!("unknown agent {name:?}; available agents: {}", known.join(", "));
            RequestError::new(RequestErrorKind::NotFound, message)
        })
    }
}

/// Returns a stored thread as AG-UI messages.
async fn thread(State(shared): State<Arc<ServerState>>, path: AgentPath) -> Result<Response, RequestError> {
    let handle = shared.agent_at(&path)?.known_conversation(&ConversationId::from(path.thread)).await?;
    let state = handle.state().await.map_err(host_error)?;
    Ok(Json(ag_ui::thread_json(&state)).into_response())
}

/// Streams the events of a thread, starting after the last event that the client has seen.
async fn thread_events(
    State(shared): State<Arc<ServerState>>,
    path: AgentPath,
    headers: HeaderMap,
) -> Result<Response, RequestError> {
    let agent = shared.agent_at(&path)?;
    let name = HeaderName::from_static("last-event-id");
    let seen = match header_text(&headers, &name).map(str::trim).filter(|id| !id.is_empty()) {
        None => 0,
        Some(id) => id.parse().map_err(|_| {
            RequestError::bad_request(
                "last-event-id",
                format!("`last-event-id` must be the number of an event, got {id:?}"),
            )
        })?,
    };
    let handle = agent.known_conversation(&ConversationId::from(path.thread)).await?;
    let stream = ThreadStream::open(&handle, seen).await?;
    let (pieces, body) = mpsc::channel(1);
    let (pace, mut stopping) = (SendTimeouts::new(&shared.options), shared.stopping.clone());
    tokio::spawn(async move {
        tokio::select! {
            () = send_thread_events(stream, pieces, pace) => {}
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
    });
    Ok(event_stream(body))
}

async fn ag_ui(
    State(shared): State<Arc<ServerState>>,
    path: AgentPath,
    request: Request,
) -> Result<Response, RequestError> {
    let agent = shared.agent_at(&path)?;
    let body = json_body(request, &shared).await?;
    let input = ag_ui::parse_request(&body.bytes)?;
    drop(body);
    let taken = agent.lease_or_join(&ConversationId::from(input.thread.as_str())).await?;
    let pace = SendTimeouts::new(&shared.options);
    let started = async move {
        let (run, first) = ag_ui::AgUiRun::start(&agent, input).await?;
        Ok((StreamedAnswer::Run(run, first), taken))
    };
    stream_answer(started, pace).await
}

async fn chat(State(shared): State<Arc<ServerState>>, request: Request) -> Result<Response, RequestError> {
    let body = json_body(request, &shared).await?;
    let asked = openai::parse_request(&body.bytes)?;
    drop(body);
    let agent = shared.find_agent(&asked.model).map_err(|error| error.with_member("model"))?;
    match asked.stream {
        true => {
            let started = async move {
                let (chat, taken) = openai::ChatAnswer::start(&agent, asked).await?;
                Ok((StreamedAnswer::Chat(chat), taken))
            };
            stream_answer(started, SendTimeouts::new(&shared.options)).await
        }
        false => complete_chat(agent, asked).await,
    }
}

/// Streams an answer. It has its own task, because this one ends when its client disconnects.
async fn stream_answer(
    started: impl Future<Output = Result<(StreamedAnswer, ConversationLease), RequestError>> + Send + 'static,
    pace: SendTimeouts,
) -> Result<Response, RequestError> {
    let (head, answered) = oneshot::channel();
    tokio::spawn(async move {
        match started.await {
            Err(refusal) => drop(head.send(Err(refusal))),
            Ok((answer, taken)) => {
                let (pieces, body) = mpsc::channel(1);
                if head.send(Ok(body)).is_err() {
                    return answer.cancel().await;
                }
                send_answer(answer, taken, pieces, pace).await;
            }
        }
    });
    answered.await.map_err(|_| answer_lost())?.map(event_stream)
}

async fn complete_chat(
    agent: ServedAgent,
    asked: openai::CompletionRequest,
) -> Result<Response, RequestError> {
    let (mut head, answered) = oneshot::channel::<Result<serde_json::Value, RequestError>>();
    tokio::spawn(async move {
        match openai::ChatAnswer::start(&agent, asked).await {
            Err(refusal) => drop(head.send(Err(refusal))),
            Ok((mut chat, taken)) => {
                let answer = tokio::select! {
                    answer = chat.complete() => answer,
                    () = head.closed() => return chat.cancel().await,
                };
                drop(taken);
                drop(head.send(answer));
            }
        }
    });
    let whole = answered.await.map_err(|_| answer_lost())??;
    Ok(Json(whole).into_response())
}

fn answer_lost() -> RequestError {
    RequestError::new(RequestErrorKind::Failed, "the answer was lost because of an internal server error")
}

/// Answer that is sent event by event.
enum StreamedAnswer {
    /// An AG-UI run with its first events.
    Run(ag_ui::AgUiRun, Vec<serde_json::Value>),
    /// A chat completion.
    Chat(openai::ChatAnswer),
}

impl StreamedAnswer {
    /// Returns the next events in wire format, and true if they are the last ones.
    async fn next(&mut self) -> (Bytes, bool) {
        match self {
            StreamedAnswer::Run(_, first) if !first.is_empty() => (sse_events(&std::mem::take(first)), false),
            StreamedAnswer::Run(run, _) => match run.next().await {
                ag_ui::AgUiBatch::Events(events) => (sse_events(&events), false),
                ag_ui::AgUiBatch::Last(events) => (sse_events(&events), true),
            },
            StreamedAnswer::Chat(chat) => match chat.next().await {
                openai::ChatBatch::Chunks(chunks) => (sse_events(&chunks), false),
                openai::ChatBatch::Last(chunks) => {
                    ([sse_events(&chunks), Bytes::from_static(b"data: [DONE]\n\n")].concat().into(), true)
                }
            },
        }
    }

    async fn cancel(self) {
        match self {
            StreamedAnswer::Run(run, _) => run.cancel().await,
            StreamedAnswer::Chat(chat) => chat.cancel().await,
        }
    }
}

/// Formats events as server-sent events.
fn sse_events(events: &[serde_json::Value]) -> Bytes {
    let mut lines = Vec::new();
    for event in events {
        lines.extend_from_slice(b"data: ");
        // JSON values and memory do not fail.
        let _ = serde_json::to_writer(&mut lines, event);
        lines.extend_from_slice(b"\n\n");
    }
    lines.into()
}

/// Sends an answer piece by piece. Cancels the request if its client disconnects.
async fn send_answer(
    mut answer: StreamedAnswer,
    taken: ConversationLease,
    pieces: mpsc::Sender<Bytes>,
    pace: SendTimeouts,
) {
    let mut taken = Some(taken);
    loop {
        let next = tokio::select! {
            next = tokio::time::timeout(pace.keep_alive, answer.next()) => next,
            () = pieces.closed() => return answer.cancel().await,
        };
        let (piece, last) = next.unwrap_or((Bytes::from_static(b": the agent is at work\n\n"), false));
        if last {
            // A client that has read the last event may send its next request immediately.
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

/// Sends the events of a thread until the client disconnects.
async fn send_thread_events(mut stream: ThreadStream, pieces: mpsc::Sender<Bytes>, pace: SendTimeouts) {
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

/// Time limits for the parts of an answer.
#[derive(Clone, Copy)]
struct SendTimeouts {
    keep_alive: Duration,
    write_timeout: Duration,
}

impl SendTimeouts {
    fn new(options: &ServeOptions) -> SendTimeouts {
        SendTimeouts { keep_alive: options.keep_alive, write_timeout: options.write_timeout }
    }

    /// Sends a piece. Returns false if the client does not read it in time.
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
    // Proxies must pass on each event immediately.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Reads the body of a request whose content type is JSON.
///
/// A page cannot send this content type to another origin without a CORS preflight, which is refused.
async fn json_body(request: Request, shared: &ServerState) -> Result<BufferedBody, RequestError> {
    let kind = header_text(request.headers(), &header::CONTENT_TYPE).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if essence != "application/json" {
        let message = format!("the body must be JSON, with `content-type: application/json`; got {kind:?}");
        return Err(RequestError::new(RequestErrorKind::MediaType, message));
    }
    let timeout = shared.options.body_timeout;
    tokio::time::timeout(timeout, read_body(request, shared)).await.map_err(|_| {
        let message = format!("the body did not arrive within {} s", timeout.as_secs_f64());
        RequestError::new(RequestErrorKind::Timeout, message)
    })?
}

/// Request body together with its share of the body buffer.
struct BufferedBody {
    bytes: Vec<u8>,
    _room: Option<OwnedSemaphorePermit>,
}

async fn read_body(request: Request, shared: &ServerState) -> Result<BufferedBody, RequestError> {
    let longest = shared.options.max_body_bytes;
    let too_large =
        || RequestError::new(RequestErrorKind::TooLarge, format!("the body is longer than {longest} bytes"));
    // A client that announces its length need not send it.
    if request.body().size_hint().lower() > longest as u64 {
        return Err(too_large());
    }
    let (mut whole, mut room) = (Vec::new(), None::<OwnedSemaphorePermit>);
    let mut pieces = request.into_body().into_data_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| {
            RequestError::new(RequestErrorKind::BadRequest, format!("the body is incomplete: {error}"))
        })?;
        if whole.len() + piece.len() > longest {
            return Err(too_large());
        }
        whole.extend_from_slice(&piece);
        let held = room.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = u32::try_from(whole.len().div_ceil(BODY_UNIT_BYTES) - held).unwrap_or(u32::MAX);
        let more = shared.bodies.clone().try_acquire_many_owned(more).map_err(|_| {
            RequestError::new(
                RequestErrorKind::Overloaded,
                "the server is receiving too much data; try again later",
            )
        })?;
        match &mut room {
            Some(room) => room.merge(more),
            None => room = Some(more),
        }
    }
    Ok(BufferedBody { bytes: whole, _room: room })
}

/// Rejects requests for other hosts and from origins that are not allowed, and adds CORS headers.
async fn check_access(State(shared): State<Arc<ServerState>>, request: Request, next: Next) -> Response {
    let options = &shared.options;
    let source = match RequestSource::from_headers(request.headers()) {
        Ok(source) => source,
        Err(error) => {
            return RequestError::new(RequestErrorKind::BadRequest, error.to_string()).into_response();
        }
    };
    if options.host.is_loopback() && !source.is_for_this_machine() {
        let host = source.host.unwrap_or_default();
        let message = format!(
            "this server answers requests for localhost only, but this request is for {host:?}: pages may not reach it \
             by another host name"
        );
        return RequestError::new(RequestErrorKind::Forbidden, message).into_response();
    }
    let Some(origin) = source.origin.map(str::to_string) else { return next.run(request).await };
    let own = source.host.is_some_and(|host| is_local(host) && origin == format!("http://{host}"));
    let allowed = options.allow_origins.iter().any(|known| known == "*" || *known == origin);
    if !own && !allowed {
        let message =
            format!("pages of {origin} may not use this server; allow them with `--allow-origin {origin}`");
        return RequestError::new(RequestErrorKind::Forbidden, message).into_response();
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

fn header_text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}
