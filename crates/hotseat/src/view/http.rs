//! Who may ask, what is asked, and how it is answered.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::json;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use super::answers::{self, Look};
use super::{Meant, OnTrouble, Options};
use crate::report::html::{Page, served};
use crate::store::StoreError;

/// How long a page waits for news before it is told that there are none.
const LONGEST: Duration = Duration::from_secs(20);
/// How long it takes until somebody looks again whether there is something new.
const PAUSE: Duration = Duration::from_millis(100);
/// How many runs are listed where nobody says.
const LISTED: usize = 100;

/// What is said with every answer. Others may neither frame nor embed it, and nothing is taken for what it is not.
const ALWAYS: [(HeaderName, &str); 5] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// What all requests share.
pub struct Shared {
    store: PathBuf,
    meant: Meant,
    /// The names under which this server is asked.
    hosts: [String; 3],
    page: Page,
    ending: watch::Receiver<bool>,
    on_trouble: OnTrouble,
    /// What was last told of: it is told once.
    trouble: Mutex<Option<StoreError>>,
}

/// Nobody waits for the answer any more when this is dropped.
struct GivesUp(Arc<AtomicBool>);

impl Drop for GivesUp {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

type Answer = Result<Response, Refusal>;

/// Why something is not answered, in words.
struct Refusal {
    status: StatusCode,
    words: String,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = json!({ "error": self.words }).to_string();
        (self.status, of_json(body.into_bytes())).into_response()
    }
}

impl Shared {
    pub fn new(
        options: Options,
        address: SocketAddr,
        ending: watch::Receiver<bool>,
        on_trouble: OnTrouble,
    ) -> Shared {
        let port = address.port();
        let hosts = ["127.0.0.1", "localhost", "[::1]"].map(|name| format!("{name}:{port}"));
        let Options { store, meant, port: _ } = options;
        Shared { store, meant, hosts, page: served(), ending, on_trouble, trouble: Mutex::default() }
    }

    /// Reads the store where that keeps nobody waiting.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&std::path::Path) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Refusal> {
        let store = self.store.clone();
        let read = spawn_blocking(move || read(&store)).await;
        let read = read.map_err(|_| Refusal {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            words: "this is a fault of Hotseat".to_string(),
        })?;
        self.note(read.as_ref().err());
        read.map_err(|error| {
            let status = match error {
                StoreError::NoSuchRun(_) | StoreError::NothingKept(_) => StatusCode::NOT_FOUND,
                StoreError::Unusable(_) => StatusCode::INTERNAL_SERVER_ERROR,
            };
            Refusal { status, words: error.to_string() }
        })
    }

    /// Tells of what keeps runs from being read, once.
    fn note(&self, error: Option<&StoreError>) {
        let trouble = match error {
            // That is a matter of the page alone.
            Some(StoreError::NoSuchRun(_)) => return,
            Some(StoreError::NothingKept(_) | StoreError::Unusable(_)) => error.cloned(),
            None => None,
        };
        let mut known = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = trouble.as_ref().filter(|_| *known != trouble) {
            (self.on_trouble)(error);
        }
        *known = trouble;
    }
}

pub fn routes(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/runs/{run}", get(page))
        .route("/api/run", get(news_of_meant))
        .route("/api/runs", get(runs))
        .route("/api/runs/{run}", get(news_of))
        .route("/api/runs/{run}/cases/{index}", get(case))
        .route("/api/runs/{run}/search", get(search))
        .fallback(unknown)
        .layer(middleware::from_fn_with_state(shared.clone(), admit))
        .with_state(shared)
}

/// Lets requests through that a page of this server may make, and says what a browser may do with the answers.
async fn admit(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let mut response = match refusal(&shared, &request) {
        Some(refusal) => refusal,
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    ALWAYS.into_iter().for_each(|(name, value)| drop(headers.insert(name, HeaderValue::from_static(value))));
    let nothing = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(nothing);
    response
}

/// Why a request is not answered, if it is not. A page of others could reach this server by a name of its own.
fn refusal(shared: &Shared, request: &Request) -> Option<Response> {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if !shared.hosts.iter().any(|own| own.eq_ignore_ascii_case(host)) {
        let [own, ..] = &shared.hosts;
        let words = format!("this server is http://{own}/, and answers nobody who calls it {host:?}");
        return Some(Refusal { status: StatusCode::FORBIDDEN, words }.into_response());
    }
    if request.method() != Method::GET {
        let words = format!("there is nothing to {} here", request.method());
        let mut refusal = Refusal { status: StatusCode::METHOD_NOT_ALLOWED, words }.into_response();
        refusal.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET"));
        return Some(refusal);
    }
    // Browsers say from where they ask. What another site cannot read it could still have us search for.
    let asker = request.headers().get("sec-fetch-site").map(HeaderValue::as_bytes);
    let is_foreign = asker.is_some_and(|asker| asker != b"same-origin" && asker != b"none");
    let words = || "this is told to pages of this server only".to_string();
    (is_foreign && request.uri().path().starts_with("/api/"))
        .then(|| Refusal { status: StatusCode::FORBIDDEN, words: words() }.into_response())
}

async fn page(State(shared): State<Arc<Shared>>) -> Response {
    let Page { html, policy } = &shared.page;
    let kind = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
    let mut response = (kind, html.clone()).into_response();
    if let Ok(policy) = HeaderValue::from_str(policy) {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

async fn unknown() -> Refusal {
    let words = "there is nothing here; the page of a run is /runs/ID".to_string();
    Refusal { status: StatusCode::NOT_FOUND, words }
}

async fn news_of_meant(State(shared): State<Arc<Shared>>, RawQuery(query): RawQuery) -> Answer {
    let meant = shared.meant.clone();
    news(&shared, meant, query).await
}

async fn news_of(
    State(shared): State<Arc<Shared>>,
    Path(run): Path<String>,
    RawQuery(query): RawQuery,
) -> Answer {
    news(&shared, Meant::Run(run), query).await
}

/// What is new in a run behind the place `after`. Who says what was `seen` waits until there is something.
async fn news(shared: &Shared, meant: Meant, query: Option<String>) -> Answer {
    let (after, seen) = (place(query.as_deref())?, member(query.as_deref(), "seen"));
    let deadline = Instant::now() + LONGEST;
    let mut ending = shared.ending.clone();
    loop {
        let is_last = *ending.borrow() || Instant::now() >= deadline;
        let meant = meant.clone();
        let look = shared.read(move |store| answers::look(store, &meant, after)).await?;
        if is_last || look.has_cases || seen.as_ref() != Some(&look.seen) {
            return Ok(of_json(look.json));
        }
        tokio::select! {
            () = wait_until_old(look) => {}
            () = tokio::time::sleep_until(deadline) => {}
            _ = ending.wait_for(|ends| *ends) => {}
        }
    }
}

async fn wait_until_old(mut look: Look) {
    loop {
        sleep(PAUSE).await;
        match spawn_blocking(move || (!look.is_old()).then_some(look)).await {
            Ok(Some(same)) => look = same,
            Ok(None) | Err(_) => return,
        }
    }
}

async fn runs(State(shared): State<Arc<Shared>>, RawQuery(query): RawQuery) -> Answer {
    let most = number(query.as_deref(), "most")?.unwrap_or(LISTED);
    shared.read(move |store| answers::runs(store, most)).await.map(of_json)
}

async fn case(State(shared): State<Arc<Shared>>, Path((run, index)): Path<(String, usize)>) -> Answer {
    shared.read(move |store| answers::case(store, &run, index)).await.map(of_json)
}

async fn search(
    State(shared): State<Arc<Shared>>,
    Path(run): Path<String>,
    RawQuery(query): RawQuery,
) -> Answer {
    let after = place(query.as_deref())?;
    let words = member(query.as_deref(), "q").unwrap_or_default();
    let given_up = Arc::new(AtomicBool::new(false));
    let _gives_up = GivesUp(given_up.clone());
    let found = shared.read(move |store| answers::search(store, &run, &words, after, &given_up)).await;
    found.map(of_json)
}

fn member(query: Option<&str>, name: &str) -> Option<String> {
    let mut members = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    members.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

fn number<N: std::str::FromStr>(query: Option<&str>, name: &str) -> Result<Option<N>, Refusal> {
    let words = || format!("`{name}` is a whole number");
    let wrong = |_| Refusal { status: StatusCode::BAD_REQUEST, words: words() };
    member(query, name).map(|text| text.parse().map_err(wrong)).transpose()
}

/// Behind which place of a run something is asked for; the whole of it where nobody says.
fn place(query: Option<&str>) -> Result<i64, Refusal> {
    Ok(number(query, "after")?.unwrap_or(0))
}

fn of_json(body: Vec<u8>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}
