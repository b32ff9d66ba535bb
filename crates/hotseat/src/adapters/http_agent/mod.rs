//! An agent behind an HTTP interface of its own: one request a turn, made from a template; what comes back is read by
//! JSONPath.

mod mapping;

use std::sync::Arc;

use hotseat_trace::{Failure, FailureKind};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use serde_json::Value;

pub use self::mapping::{Awaits, CallPaths, Mapping, Path};
use super::http::{self, BodyError, Http, Outgoing};
use super::telling::Telling;
use super::template::{Given, Said, Values, fill_json, fill_text, percent_encoded};
use super::{AgentSession, Input, Limits, Pending, TurnError, excerpt};
use crate::session::Recorder;

/// The longest answer that is taken in, in bytes.
const LONGEST: usize = 64 * 1024 * 1024;

/// An agent behind an HTTP interface of its own.
#[derive(Debug, Clone)]
pub struct Target {
    /// Where each turn is sent, a template.
    pub endpoint: String,
    /// The method.
    pub method: Method,
    /// Headers of every request; the values are templates.
    pub headers: Vec<(HeaderName, String)>,
    /// The body, a template; none where requests have no body.
    pub body: Option<Value>,
    /// Where things stand in the answer; none where the whole body is what the agent says.
    pub mapping: Option<Arc<Mapping>>,
    /// What a case gives.
    pub given: Given,
    /// Whether everything received is kept in the trace.
    pub keep_raw: bool,
}

/// A conversation with an agent behind an HTTP interface of its own.
pub struct Session {
    http: Arc<Http>,
    target: Target,
    id: Arc<str>,
    /// The id that requests carry: our own, or the server's once it is known.
    sent_id: Option<String>,
    history: Vec<Said>,
    turns: usize,
}

impl Session {
    /// Opens a conversation. Nothing is sent.
    pub fn open(http: Arc<Http>, target: Target) -> Self {
        let id: Arc<str> =
            target.given.conversation_id.clone().unwrap_or_else(|| uuid::Uuid::new_v4().to_string()).into();
        // A server that gives ids is not told one that it has not given.
        let gives = target.mapping.as_ref().is_some_and(|mapping| mapping.conversation_id.is_some());
        let sent_id = match (&target.given.conversation_id, gives) {
            (None, true) => None,
            (Some(_), _) | (None, false) => Some(id.to_string()),
        };
        Session { http, target, id, sent_id, history: Vec::new(), turns: 0 }
    }

    async fn hold_turn(&mut self, input: Input<'_>, recorder: &mut Recorder) -> Result<(), TurnError> {
        let Input { turn_id, text, limits, .. } = input;
        self.turns += 1;
        let mut telling = Telling::new(turn_id, recorder);
        let run_id: Arc<str> = format!("request-{}", self.turns).into();
        let body = self.exchange(text, &run_id, limits, &mut telling).await?;
        let keep_raw = self.target.keep_raw;
        match &self.target.mapping {
            Some(mapping) => {
                let read = mapping.read(&body, self.sent_id.is_some(), keep_raw, &mut telling)?;
                telling.run_finished(&run_id, read.usage, read.finish_reason);
                self.sent_id = read.conversation_id.or(self.sent_id.take());
            }
            None => {
                if keep_raw {
                    telling.raw(Value::String(body.clone()));
                }
                telling.message(body, None, false);
                telling.run_finished(&run_id, None, None);
            }
        }
        let said = telling.told()?;
        self.history.push(Said { role: "user", content: text.to_string() });
        self.history.extend(said.into_iter().map(|content| Said { role: "assistant", content }));
        Ok(())
    }

    /// Sends the request of a turn and reads the whole answer.
    async fn exchange(
        &self,
        message: &str,
        run_id: &Arc<str>,
        limits: Limits,
        telling: &mut Telling<'_>,
    ) -> Result<String, TurnError> {
        let values = Values {
            message,
            history: &self.history,
            conversation_id: self.sent_id.as_deref(),
            turn: self.turns,
            given: &self.target.given,
        };
        let url = fill_text(&self.target.endpoint, &values, percent_encoded);
        let url = Url::parse(&url).map_err(|error| {
            Failure::new(
                FailureKind::TestError,
                format!("`target.endpoint` has become {url}, which is none: {error}"),
            )
        })?;
        let outgoing = Outgoing {
            method: self.target.method.clone(),
            url: &url,
            headers: self.headers(&values)?,
            body: self.target.body.as_ref().map(|body| fill_json(body, &values).to_string().into_bytes()),
            address_key: "target.endpoint",
        };
        let mut response = self.http.send(outgoing, limits).await?;
        telling.run_started(run_id);
        let failed = |message: String| TurnError::from(Failure::new(FailureKind::ProtocolError, message));
        let encoding = http::bare_header(&response, "content-encoding");
        if !matches!(encoding.as_str(), "" | "identity") {
            return Err(failed(format!("the answer is encoded as {encoding}, which was not asked for")));
        }
        let body = http::rest_of_body(&mut response, LONGEST, limits).await.map_err(|error| match error {
            BodyError::Deadline => TurnError::Deadline,
            BodyError::Silent => http::silent(limits.idle).into(),
            BodyError::Broken(words) => {
                failed(format!("the connection broke before the answer was whole ({words})"))
            }
        })?;
        if body.len() > LONGEST {
            return Err(failed(format!("the answer is longer than {LONGEST} bytes")));
        }
        if body.trim_ascii().is_empty() {
            return Err(failed(format!("HTTP {} with an empty body", response.status())));
        }
        String::from_utf8(body).map_err(|error| {
            let beginning = String::from_utf8_lossy(error.as_bytes());
            failed(format!("the answer is not UTF-8: {}", excerpt(&beginning, 200)))
        })
    }

    fn headers(&self, values: &Values<'_>) -> Result<HeaderMap, Failure> {
        let mut headers = HeaderMap::new();
        if self.target.body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        for (name, template) in &self.target.headers {
            let mut value =
                HeaderValue::try_from(fill_text(template, values, str::to_string)).map_err(|_| {
                    let message = format!(
                        "header `{name}` has become something with a line end or control character, which no header can carry"
                    );
                    Failure::new(FailureKind::TestError, message)
                })?;
            value.set_sensitive(true);
            headers.insert(name.clone(), value);
        }
        Ok(headers)
    }
}

impl AgentSession for Session {
    fn conversation_id(&self) -> Arc<str> {
        self.id.clone()
    }

    fn say<'a>(
        &'a mut self,
        input: Input<'a>,
        recorder: &'a mut Recorder,
    ) -> Pending<'a, Result<(), TurnError>> {
        Box::pin(self.hold_turn(input, recorder))
    }
}
