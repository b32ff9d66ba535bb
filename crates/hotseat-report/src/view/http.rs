//! HTTP routes of the server and their access control.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{FromRequestParts, Path, RawQuery, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hotseat_serve::RequestSource;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use super::answers::{self, RunUpdate};
use super::{OnStoreError, RunSelector, ViewOptions};
use crate::reporters::html::{ServedPage, served_page};
use crate::store::RunStoreError;

/// Maximum time that a request waits for changes.
const MAX_WAIT: Duration = Duration::from_secs(20);
/// Interval between two checks for changes.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Default number of listed runs.
const DEFAULT_RUN_LIMIT: usize = 100;

/// Headers of every response. They forbid framing, embedding and content sniffing.
const SECURITY_HEADERS: [(HeaderName, &str); 5] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// State shared by all requests.
pub struct ViewState {
    store: PathBuf,
    selector: RunSelector,
    editor: Option<String>,
    /// Host names under which the server accepts requests.
    hosts: [String; 3],
    page: ServedPage,
    shutdown: watch::Receiver<bool>,
    on_error: OnStoreError,
    /// Last reported error, so each error is reported once.
    last_error: Mutex<Option<RunStoreError>>,
}

/// Sets the flag when it is dropped, because the client has gone away.
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

type Answer = Result<Response, ApiError>;

/// Variables in the path of a route.
#[derive(Deserialize)]
struct RunPath {
    run: String,
    #[serde(default)]
    index: String,
}

impl<S: Send + Sync> FromRequestParts<S> for RunPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = Path::<RunPath>::from_request_parts(parts, state).await;
        path.map(|Path(path)| path).map_err(|_| {
            let message = format!("the path {:?} must be UTF-8; percent-encode its bytes", parts.uri.path());
            ApiError { status: StatusCode::BAD_REQUEST, message }
        })
    }
}

/// Error response with its message.
struct ApiError {
    status: StatusCode,
    message: String,
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = json!({ "error": self.message }).to_string();
        (self.status, json_response(body.into_bytes())).into_response()
    }
}

impl ViewState {
    pub fn new(
        options: ViewOptions,
        address: SocketAddr,
        ending: watch::Receiver<bool>,
        on_trouble: OnStoreError,
    ) -> ViewState {
        let port = address.port();
        let hosts = ["127.0.0.1", "localhost", "[::1]"].map(|name| format!("{name}:{port}"));
        let ViewOptions { store, selector: meant, port: _, editor } = options;
        ViewState {
            store,
            selector: meant,
            editor,
            hosts,
            page: served_page(),
            shutdown: ending,
            on_error: on_trouble,
            last_error: Mutex::default(),
        }
    }

    /// Reads the store on a blocking thread.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&std::path::Path) -> Result<T, RunStoreError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let store = self.store.clone();
        let read = spawn_blocking(move || read(&store)).await;
        let read = read.map_err(|_| ApiError {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            message: "internal error in Hotseat".to_string(),
        })?;
        self.report_error(read.as_ref().err());
        read.map_err(|error| {
            let status = match error {
                RunStoreError::NoSuchRun(_)
                | RunStoreError::SeveralCases { .. }
                | RunStoreError::NoRuns(_) => StatusCode::NOT_FOUND,
                RunStoreError::Unusable(_) | RunStoreError::Damaged(_) => StatusCode::INTERNAL_SERVER_ERROR,
            };
            ApiError { status, message: error.to_string() }
        })
    }

    /// Reports an error of the store once.
    fn report_error(&self, error: Option<&RunStoreError>) {
        let trouble = match error {
            // An unknown run concerns only the requesting page.
            Some(RunStoreError::NoSuchRun(_) | RunStoreError::SeveralCases { .. }) => return,
            Some(RunStoreError::NoRuns(_) | RunStoreError::Unusable(_) | RunStoreError::Damaged(_)) => {
                error.cloned()
            }
            None => None,
        };
        let mut known = self.last_error.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = trouble.as_ref().filter(|_| *known != trouble) {
            (self.on_error)(error);
        }
        *known = trouble;
    }
}

pub fn routes(shared: Arc<ViewState>) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/runs/{run}", get(page))
        .route("/api/run", get(selected_run_updates))
        .route("/api/runs", get(runs))
        .route("/api/compare", get(comparison))
        .route("/api/runs/{run}", get(run_updates))
        .route("/api/runs/{run}/cases/{index}", get(case))
        .route("/api/runs/{run}/running", get(running))
        .route("/api/runs/{run}/search", get(search))
        .fallback(not_found)
        .layer(middleware::from_fn_with_state(shared.clone(), check_access))
        .with_state(shared)
}

/// Accepts requests of pages of this server, and adds the security headers to responses.
async fn check_access(State(shared): State<Arc<ViewState>>, request: Request, next: Next) -> Response {
    let mut response = match access_error(&shared, &request) {
        Some(refusal) => refusal,
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    SECURITY_HEADERS
        .into_iter()
        .for_each(|(name, value)| drop(headers.insert(name, HeaderValue::from_static(value))));
    let nothing = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(nothing);
    response
}

/// Returns the reason to reject a request, if any. A foreign page could reach this server under a host name
/// of its own (DNS rebinding).
fn access_error(shared: &ViewState, request: &Request) -> Option<Response> {
    let host = match RequestSource::from_headers(request.headers()) {
        Ok(source) => source.host.unwrap_or_default(),
        Err(error) => {
            return Some(ApiError { status: error.status(), message: error.to_string() }.into_response());
        }
    };
    if !shared.hosts.iter().any(|own| own.eq_ignore_ascii_case(host)) {
        let [own, ..] = &shared.hosts;
        let words = format!("this server is http://{own}/ and rejects requests for the host {host:?}");
        return Some(ApiError { status: StatusCode::FORBIDDEN, message: words }.into_response());
    }
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        let words = format!("the method {} is not supported; use GET or HEAD", request.method());
        let mut refusal = ApiError { status: StatusCode::METHOD_NOT_ALLOWED, message: words }.into_response();
        refusal.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
        return Some(refusal);
    }
    // Browsers send the origin of a request. A foreign page cannot read responses, but it could trigger
    // expensive searches.
    let asker = request.headers().get("sec-fetch-site").map(HeaderValue::as_bytes);
    let is_foreign = asker.is_some_and(|asker| asker != b"same-origin" && asker != b"none");
    let words = || "only pages served by this server may call this API".to_string();
    (is_foreign && request.uri().path().starts_with("/api/"))
        .then(|| ApiError { status: StatusCode::FORBIDDEN, message: words() }.into_response())
}

async fn page(State(shared): State<Arc<ViewState>>) -> Response {
    let ServedPage { html, policy } = &shared.page;
    let kind = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
    let mut response = (kind, html.clone()).into_response();
    if let Ok(policy) = HeaderValue::from_str(policy) {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

async fn not_found() -> ApiError {
    let words = "page not found; the page of a run is /runs/ID".to_string();
    ApiError { status: StatusCode::NOT_FOUND, message: words }
}

async fn selected_run_updates(State(shared): State<Arc<ViewState>>, RawQuery(query): RawQuery) -> Answer {
    let meant = shared.selector.clone();
    wait_for_updates(&shared, meant, query).await
}

async fn run_updates(
    State(shared): State<Arc<ViewState>>,
    RunPath { run, .. }: RunPath,
    RawQuery(query): RawQuery,
) -> Answer {
    wait_for_updates(&shared, RunSelector::Run(run), query).await
}

/// Returns the changes of a run after the position `after`. A request with a current `seen` waits until there
/// are changes.
async fn wait_for_updates(shared: &ViewState, meant: RunSelector, query: Option<String>) -> Answer {
    let (after, seen) = (start_position(query.as_deref())?, query_value(query.as_deref(), "seen"));
    let deadline = Instant::now() + MAX_WAIT;
    let mut ending = shared.shutdown.clone();
    loop {
        let is_last = *ending.borrow() || Instant::now() >= deadline;
        let meant = meant.clone();
        let editor = shared.editor.clone();
        let look =
            shared.read(move |store| answers::read_update(store, &meant, after, editor.as_deref())).await?;
        if is_last || look.has_cases || seen.as_ref() != Some(&look.seen) {
            return Ok(json_response(look.json));
        }
        tokio::select! {
            () = wait_until_outdated(look) => {}
            () = tokio::time::sleep_until(deadline) => {}
            _ = ending.wait_for(|ends| *ends) => {}
        }
    }
}

async fn wait_until_outdated(mut look: RunUpdate) {
    loop {
        sleep(POLL_INTERVAL).await;
        match spawn_blocking(move || (!look.is_outdated()).then_some(look)).await {
            Ok(Some(same)) => look = same,
            Ok(None) | Err(_) => return,
        }
    }
}

async fn runs(State(shared): State<Arc<ViewState>>, RawQuery(query): RawQuery) -> Answer {
    let most = query_number(query.as_deref(), "most")?.unwrap_or(DEFAULT_RUN_LIMIT);
    shared.read(move |store| answers::list_runs(store, most)).await.map(json_response)
}

/// Compares the saved runs `before` and `after`.
async fn comparison(State(shared): State<Arc<ViewState>>, RawQuery(query): RawQuery) -> Answer {
    let run = |name: &str| {
        let missing =
            || ApiError { status: StatusCode::BAD_REQUEST, message: format!("`{name}` must name a run") };
        query_value(query.as_deref(), name).ok_or_else(missing)
    };
    let (before, after) = (run("before")?, run("after")?);
    let other_inputs = query_value(query.as_deref(), "other_inputs").is_some();
    let compared =
        shared.read(move |store| answers::compare_runs(store, &before, &after, other_inputs)).await;
    compared.map(json_response)
}

async fn case(State(shared): State<Arc<ViewState>>, RunPath { run, index }: RunPath) -> Answer {
    let index = index.parse().map_err(|_| {
        let message = format!("the case must be a whole number, counted from 0; got {index:?}");
        ApiError { status: StatusCode::NOT_FOUND, message }
    })?;
    shared.read(move |store| answers::read_case(store, &run, index)).await.map(json_response)
}

async fn running(
    State(shared): State<Arc<ViewState>>,
    RunPath { run, .. }: RunPath,
    RawQuery(query): RawQuery,
) -> Answer {
    let case = query_number(query.as_deref(), "case")?;
    shared.read(move |store| answers::read_running(store, &run, case)).await.map(json_response)
}

async fn search(
    State(shared): State<Arc<ViewState>>,
    RunPath { run, .. }: RunPath,
    RawQuery(query): RawQuery,
) -> Answer {
    let after = start_position(query.as_deref())?;
    let words = query_value(query.as_deref(), "q").unwrap_or_default();
    let given_up = Arc::new(AtomicBool::new(false));
    let _gives_up = CancelOnDrop(given_up.clone());
    let found = shared.read(move |store| answers::search_cases(store, &run, &words, after, &given_up)).await;
    found.map(json_response)
}

fn query_value(query: Option<&str>, name: &str) -> Option<String> {
    let mut members = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    members.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

fn query_number<N: std::str::FromStr>(query: Option<&str>, name: &str) -> Result<Option<N>, ApiError> {
    let words = || format!("`{name}` must be a whole number");
    let wrong = |_| ApiError { status: StatusCode::BAD_REQUEST, message: words() };
    query_value(query, name).map(|text| text.parse().map_err(wrong)).transpose()
}

/// Returns the position from which to read, by default the start of the run.
fn start_position(query: Option<&str>) -> Result<i64, ApiError> {
    Ok(query_number(query, "after")?.unwrap_or(0))
}

fn json_response(body: Vec<u8>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}
