//! `fetch`: requests that scripts send to hosts of the project file.

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, COOKIE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Method, StatusCode, Url};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::grants::Grants;
use crate::adapters::http::{Http, Outgoing, ReadError, Response, rest_of_body, without_credentials};
use crate::adapters::{Limits, TurnError};

/// So many bytes are sent and received at most.
const LARGEST: usize = 8 * 1024 * 1024;
/// How long one request may take, with all its redirects.
const PATIENCE: Duration = Duration::from_secs(60);
/// So many redirects are followed.
const MOST_HOPS: usize = 10;

/// A request as a script describes it.
struct Request {
    url: Url,
    method: Method,
    headers: HeaderMap,
    body: Option<Vec<u8>>,
    redirect: Redirect,
}

#[derive(PartialEq)]
enum Redirect {
    Follow,
    Manual,
    Error,
}

/// Sends a request and reads the whole answer.
pub(super) async fn fetch(request: &Value, grants: &Grants, http: &Http) -> Result<Value, String> {
    let mut request = Request::read(request)?;
    let deadline = Instant::now() + PATIENCE;
    let limits = Limits::within(deadline, PATIENCE + PATIENCE);
    for hop in 0..=MOST_HOPS {
        let shown = without_credentials(&request.url);
        if !matches!(request.url.scheme(), "http" | "https") {
            return Err(format!("fetch {shown}: only http and https are spoken"));
        }
        if !grants.reaches(&request.url) {
            let host = request.url.host_str().unwrap_or_default();
            let by = if hop == 0 { "" } else { ", to which it is redirected," };
            return Err(format!(
                "fetch {shown}: {host}{by} may not be reached: the project file does not list it under `scripts: hosts:`"
            ));
        }
        let outgoing = Outgoing {
            method: request.method.clone(),
            url: &request.url,
            headers: request.headers.clone(),
            body: request.body.clone(),
            address_key: "the address",
        };
        let mut response = http
            .exchange(outgoing, limits)
            .await
            .map_err(|error| format!("fetch {shown}: {}", words(error)))?;
        match next_hop(&response, &request) {
            Some(_) if request.redirect == Redirect::Error => {
                return Err(format!("fetch {shown}: it redirects, and `redirect` is `error`"));
            }
            Some(next) if request.redirect == Redirect::Follow => request.go_on(next?, response.status()),
            Some(_) | None => {
                return answer(&mut response, hop > 0, limits)
                    .await
                    .map_err(|words| format!("fetch {shown}: {words}"));
            }
        }
    }
    Err(format!("fetch: more than {MOST_HOPS} redirects"))
}

impl Request {
    fn read(value: &Value) -> Result<Request, String> {
        let text = |key: &str| value[key].as_str();
        let written = text("url").unwrap_or_default();
        let url = Url::parse(written).map_err(|error| format!("fetch `{written}`: {error}"))?;
        let method = text("method").unwrap_or("GET").to_ascii_uppercase();
        let method =
            Method::from_bytes(method.as_bytes()).map_err(|_| format!("`{method}` is no method of HTTP"))?;
        let mut headers = HeaderMap::new();
        for pair in value["headers"].as_array().into_iter().flatten() {
            let (name, value) = (pair[0].as_str().unwrap_or_default(), pair[1].as_str().unwrap_or_default());
            let read = HeaderName::from_bytes(name.as_bytes()).ok().zip(HeaderValue::from_str(value).ok());
            let (name, value) = read.ok_or_else(|| format!("`{name}` is no header, or its value is none"))?;
            headers.append(name, value);
        }
        let body = text("body").map(|body| body.as_bytes().to_vec());
        if body.as_ref().is_some_and(|body| body.len() > LARGEST) {
            return Err(format!("fetch {written}: the body has more than {LARGEST} bytes"));
        }
        if body.is_some() && matches!(method, Method::GET | Method::HEAD) {
            return Err(format!("fetch {written}: {method} has no body"));
        }
        let redirect = match text("redirect").unwrap_or("follow") {
            "follow" => Redirect::Follow,
            "manual" => Redirect::Manual,
            "error" => Redirect::Error,
            other => return Err(format!("`redirect` is follow, manual or error, and not `{other}`")),
        };
        Ok(Request { url, method, headers, body, redirect })
    }

    /// The request that follows a redirect, as browsers send it.
    fn go_on(&mut self, next: Url, status: StatusCode) {
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

/// Where an answer sends on.
fn next_hop(response: &Response, request: &Request) -> Option<Result<Url, String>> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = response.headers().get(LOCATION)?.to_str().ok()?;
    let next = request.url.join(location);
    Some(next.map_err(|error| format!("fetch: it redirects to `{location}`: {error}")))
}

/// The answer as scripts see it.
async fn answer(response: &mut Response, redirected: bool, limits: Limits<'_>) -> Result<Value, String> {
    let status = response.status();
    let headers: Vec<[String; 2]> = response
        .headers()
        .iter()
        .map(|(name, value)| [name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()])
        .collect();
    let url = without_credentials(response.url());
    let body = rest_of_body(response, LARGEST, limits).await.map_err(|error| match error {
        ReadError::Broken(words) => words,
        ReadError::Deadline | ReadError::Silent => "no whole answer in time".to_string(),
        ReadError::Limit(failure) => failure.message,
    })?;
    if body.len() > LARGEST {
        return Err(format!("the answer has more than {LARGEST} bytes"));
    }
    Ok(json!({
        "status": status.as_u16(),
        "statusText": status.canonical_reason().unwrap_or_default(),
        "url": url,
        "redirected": redirected,
        "headers": headers,
        "body": String::from_utf8_lossy(&body),
    }))
}

fn words(error: TurnError) -> String {
    match error {
        TurnError::Deadline => format!("no answer within {} s", PATIENCE.as_secs()),
        TurnError::Run(error) => error.message,
        TurnError::Failed(failure) => failure.message,
    }
}
