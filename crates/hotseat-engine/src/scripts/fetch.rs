//! `fetch`: HTTP requests of scripts to the hosts that the project file permits.

use std::time::Duration;

use hotseat_http::is_connection_header;
use hotseat_script::{HostCallError, HostResult};
use http::header::{
    AUTHORIZATION, COOKIE, HOST, HeaderMap, HeaderName, HeaderValue, LOCATION, PROXY_AUTHORIZATION,
};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::Instant;
use url::Url;

use super::grants::ScriptGrants;
use hotseat_targets::TurnLimits;
use hotseat_targets::connection::http::{
    ExchangeError, HttpClient, HttpPeer, HttpRequest, HttpResponse, ReadError, rest_of_body,
    without_credentials,
};

/// Maximum size of request and response bodies.
const MAX_BODY_BYTES: usize = 8 * 1024 * 1024;
/// Time limit of a request including redirects.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of redirects.
const MAX_REDIRECTS: usize = 10;

/// A request described by a script.
struct FetchRequest {
    url: Url,
    method: Method,
    headers: HeaderMap,
    body: Option<Vec<u8>>,
    redirect: RedirectMode,
}

#[derive(PartialEq)]
enum RedirectMode {
    Follow,
    Manual,
    Error,
}

/// Sends a request and reads the complete response.
pub(super) async fn fetch(request: &Value, grants: &ScriptGrants, http: &HttpClient) -> HostResult {
    let mut request = FetchRequest::from_json(request)?;
    let deadline = Instant::now() + REQUEST_TIMEOUT;
    let limits = TurnLimits::new(deadline, REQUEST_TIMEOUT + REQUEST_TIMEOUT);
    for hop in 0..=MAX_REDIRECTS {
        let shown = without_credentials(&request.url);
        if !matches!(request.url.scheme(), "http" | "https") {
            return Err(format!("fetch {shown}: unsupported scheme, expected http or https").into());
        }
        if !grants.permits_host(&request.url) {
            let host = request.url.host_str().unwrap_or_default();
            let host = match grants.unlisted_port(&request.url) {
                Some(port) => format!("{host}:{port}"),
                None => host.to_string(),
            };
            let by = if hop == 0 { "" } else { ", to which it is redirected," };
            return Err(format!(
                "fetch {shown}: {host}{by} is not permitted: add it to the project file under `scripts: hosts:`"
            )
            .into());
        }
        let outgoing = HttpRequest {
            method: request.method.clone(),
            url: &request.url,
            headers: request.headers.clone(),
            body: request.body.clone(),
            peer: HttpPeer::ScriptRequest,
        };
        let failed = |error: HostCallError| HostCallError::new(format_args!("fetch {shown}"), error);
        let sent = http.exchange(outgoing, limits).await;
        let mut response = sent.map_err(|error| failed(describe_error(error)))?;
        match redirect_target(&response, &request) {
            Some(_) if request.redirect == RedirectMode::Error => {
                return Err(format!("fetch {shown}: redirected, and `redirect` is `error`").into());
            }
            Some(next) if request.redirect == RedirectMode::Follow => {
                request.follow_redirect(next?, response.status())
            }
            Some(_) | None => {
                return response_json(&mut response, request.url, hop > 0, limits).await.map_err(failed);
            }
        }
    }
    Err(format!("fetch: more than {MAX_REDIRECTS} redirects").into())
}

impl FetchRequest {
    fn from_json(value: &Value) -> Result<FetchRequest, HostCallError> {
        let text = |key: &str| value[key].as_str();
        let written = text("url").unwrap_or_default();
        let url = Url::parse(written)
            .map_err(|error| HostCallError::new(format_args!("fetch `{written}`"), error))?;
        let method = text("method").unwrap_or("GET").to_ascii_uppercase();
        let method =
            Method::from_bytes(method.as_bytes()).map_err(|_| format!("`{method}` is not an HTTP method"))?;
        let mut headers = HeaderMap::new();
        for pair in value["headers"].as_array().into_iter().flatten() {
            let (name, value) = (pair[0].as_str().unwrap_or_default(), pair[1].as_str().unwrap_or_default());
            let read = HeaderName::from_bytes(name.as_bytes()).ok().zip(HeaderValue::from_str(value).ok());
            let (name, value) =
                read.ok_or_else(|| format!("`{name}` is not a valid header name, or its value is invalid"))?;
            // Another `host` would reach a host that is not permitted.
            if is_connection_header(&name) || [HOST, PROXY_AUTHORIZATION].contains(&name) {
                let message = format!(
                    "fetch {}: the header `{name}` belongs to the connection, so a script cannot set it",
                    without_credentials(&url)
                );
                return Err(message.into());
            }
            headers.append(name, value);
        }
        let body = text("body").map(|body| body.as_bytes().to_vec());
        if body.as_ref().is_some_and(|body| body.len() > MAX_BODY_BYTES) {
            return Err(format!("fetch {written}: the body has more than {MAX_BODY_BYTES} bytes").into());
        }
        if body.is_some() && matches!(method, Method::GET | Method::HEAD) {
            return Err(format!("fetch {written}: {method} has no body").into());
        }
        let redirect = match text("redirect").unwrap_or("follow") {
            "follow" => RedirectMode::Follow,
            "manual" => RedirectMode::Manual,
            "error" => RedirectMode::Error,
            other => return Err(format!("`redirect` must be follow, manual or error, got `{other}`").into()),
        };
        Ok(FetchRequest { url, method, headers, body, redirect })
    }

    /// Follows a redirect the way browsers do.
    fn follow_redirect(&mut self, next: Url, status: StatusCode) {
        let becomes_get = match status {
            StatusCode::SEE_OTHER => self.method != Method::HEAD,
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => self.method == Method::POST,
            _ => false,
        };
        if becomes_get {
            (self.method, self.body) = (Method::GET, None);
            self.headers.remove("content-type");
        }
        if next.origin() != self.url.origin() {
            self.headers.remove(AUTHORIZATION);
            self.headers.remove(COOKIE);
        }
        self.url = next;
    }
}

fn redirect_target(response: &HttpResponse, request: &FetchRequest) -> Option<Result<Url, HostCallError>> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = response.headers().get(LOCATION)?.to_str().ok()?;
    let next = request.url.join(location);
    Some(next.map_err(|error| HostCallError::new(format_args!("fetch: it redirects to `{location}`"), error)))
}

/// Converts the response to JSON for the script.
async fn response_json(
    response: &mut HttpResponse,
    mut url: Url,
    redirected: bool,
    limits: TurnLimits<'_>,
) -> HostResult {
    let status = response.status();
    let headers: Vec<[String; 2]> = response
        .headers()
        .iter()
        .map(|(name, value)| [name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()])
        .collect();
    // Scripts know neither the credentials nor the fragment, as in browsers.
    url.set_fragment(None);
    let _ = url.set_username("").and_then(|()| url.set_password(None));
    let body = rest_of_body(response, MAX_BODY_BYTES, limits).await.map_err(|error| match error {
        ReadError::Broken(error) => HostCallError::from_error(error),
        ReadError::Deadline | ReadError::Idle => "the response was not complete in time".into(),
        ReadError::Limit(failure) => failure.message.into(),
    })?;
    if body.len() > MAX_BODY_BYTES {
        return Err(format!("the response has more than {MAX_BODY_BYTES} bytes").into());
    }
    Ok(json!({
        "status": status.as_u16(),
        "statusText": status.canonical_reason().unwrap_or_default(),
        "url": url.as_str(),
        "redirected": redirected,
        "headers": headers,
        "body": String::from_utf8_lossy(&body),
    }))
}

fn describe_error(error: ExchangeError) -> HostCallError {
    match error {
        ExchangeError::Deadline => format!("no response within {} s", REQUEST_TIMEOUT.as_secs()).into(),
        error => HostCallError::from_error(error),
    }
}
