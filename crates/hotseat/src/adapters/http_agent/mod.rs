//! An agent behind an HTTP interface of its own: one request a turn, made from a template; what comes back is read by
//! JSONPath.

mod mapping;

use std::sync::Arc;

use hotseat_trace::{Failure, FailureKind};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use serde_json::Value;

use self::mapping::Heard;
pub use self::mapping::{Awaits, CallPaths, Done, Mapping, Path};
use super::http::{self, Http, Outgoing, ReadError, Response};
use super::lines::LineBuffer;
use super::sse::{self, Decoder};
use super::telling::Telling;
use super::template::{Given, Values, fill_json, fill_text, percent_encoded, user_message};
use super::{AgentSession, Carries, History, Input, Limits, Pending, TurnError, excerpt};
use crate::session::{Message, Part, Recorder};

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
    /// In which form the answer comes.
    pub stream: Stream,
    /// Which part of the conversation its placeholders stand for.
    pub history: History,
    /// What the template has a place for.
    pub carries: Carries,
    /// What a case gives.
    pub given: Given,
    /// Whether everything received is kept in the trace.
    pub keep_raw: bool,
}

/// In which form an answer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// As one document.
    None,
    /// As server-sent events.
    Sse,
    /// As one JSON document a line.
    Ndjson,
}

/// A conversation with an agent behind an HTTP interface of its own.
pub struct Session {
    http: Arc<Http>,
    target: Target,
    id: Arc<str>,
    /// The id that requests carry: our own, or the server's once it is known.
    sent_id: Option<String>,
    history: Vec<Message>,
    /// How much of it the agent has been told.
    known: usize,
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
        Session { http, target, id, sent_id, history: Vec::new(), known: 0, turns: 0 }
    }

    async fn hold_turn(&mut self, input: Input<'_>, recorder: &mut Recorder) -> Result<(), TurnError> {
        let Input { turn_id, text, content, options, limits, .. } = input;
        self.turns += 1;
        let mut telling = Telling::new(turn_id, recorder);
        let run_id: Arc<str> = format!("request-{}", self.turns).into();
        let mut response = self.ask(text, content, options, limits).await?;
        telling.as_of(response.at());
        telling.run_started(&run_id);
        let keep_raw = self.target.keep_raw;
        let has_id = self.sent_id.is_some();
        let heard = match (&self.target.mapping, self.target.stream) {
            (Some(mapping), Stream::None) => {
                let body = whole(&mut response, limits).await?;
                telling.as_of(response.at());
                mapping.read(&body, has_id, keep_raw, &mut telling)?
            }
            (Some(mapping), form) => {
                let mut heard = Heard::default();
                let read = events(&mut response, form, limits, mapping, &mut heard, &mut telling).await;
                // What came before a fault is kept.
                heard.end_message(&mut telling);
                read?;
                mapping.end(&mut heard, has_id, None, &mut telling)?;
                heard
            }
            (None, _) => {
                let body = whole(&mut response, limits).await?;
                telling.as_of(response.at());
                if keep_raw {
                    telling.raw(Value::String(body.clone()));
                }
                telling.message(body, None, None);
                Heard::default()
            }
        };
        telling.run_finished(&run_id, heard.usage, heard.finish_reason);
        self.sent_id = heard.conversation_id.or(self.sent_id.take());
        let said = telling.told()?;
        self.history.push(user_message(content));
        self.history.extend(said);
        self.known = self.history.len();
        Ok(())
    }

    /// Sends the request of a turn.
    async fn ask(
        &self,
        message: &str,
        content: &[Part],
        options: Option<&Value>,
        limits: Limits<'_>,
    ) -> Result<Response, TurnError> {
        let values = Values {
            message,
            content,
            history: match self.target.history {
                History::Full => &self.history,
                History::Delta => &self.history[self.known..],
            },
            options,
            conversation_id: self.sent_id.as_deref(),
            turn: self.turns,
            given: &self.target.given,
        };
        let unfit = |words: String| TurnError::from(Failure::new(FailureKind::TestError, words));
        let filled = fill_text(&self.target.endpoint, &values, percent_encoded);
        let url = Url::parse(&filled).map_err(|error| {
            unfit(format!("`target.endpoint` has become {filled}, which is none: {error}"))
        })?;
        // A part of the path that has become `.` or `..` would lead elsewhere.
        let path = filled.split(['?', '#']).next().unwrap_or_default();
        if path.split('/').any(|part| matches!(part, "." | "..")) {
            let words = format!("`target.endpoint` has become {filled}, which leads elsewhere than it says");
            return Err(unfit(words));
        }
        let outgoing = Outgoing {
            method: self.target.method.clone(),
            url: &url,
            headers: self.headers(&values)?,
            body: self.target.body.as_ref().map(|body| fill_json(body, &values).to_string().into_bytes()),
            address_key: "target.endpoint",
        };
        let response = self.http.send(outgoing, limits).await?;
        let encoding = http::bare_header(&response, "content-encoding");
        if !matches!(encoding.as_str(), "" | "identity") {
            return Err(failed(format!("the answer is encoded as {encoding}, which was not asked for")));
        }
        Ok(response)
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

    fn carries(&self) -> Carries {
        self.target.carries
    }

    fn remember(&mut self, messages: &[Message]) -> Result<(), Failure> {
        self.history.extend_from_slice(messages);
        Ok(())
    }

    fn say<'a>(
        &'a mut self,
        input: Input<'a>,
        recorder: &'a mut Recorder,
    ) -> Pending<'a, Result<(), TurnError>> {
        Box::pin(self.hold_turn(input, recorder))
    }
}

/// The whole answer as text.
async fn whole(response: &mut Response, limits: Limits<'_>) -> Result<String, TurnError> {
    let body = http::rest_of_body(response, LONGEST, limits)
        .await
        .map_err(|error| not_read(error, limits, "before the answer was whole"))?;
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

/// Reads the events of an answer until one says that it is the last.
async fn events(
    response: &mut Response,
    form: Stream,
    limits: Limits<'_>,
    mapping: &Mapping,
    heard: &mut Heard,
    telling: &mut Telling<'_>,
) -> Result<(), TurnError> {
    let (mut decoder, mut lines) = (Decoder::default(), LineBuffer::default());
    let mut number = 0;
    let mut is_last = false;
    // The connection can be used again once its end was read; that must come soon, however much is sent until then.
    let mut grace: Option<Limits<'_>> = None;
    loop {
        if is_last {
            grace.get_or_insert_with(|| limits.in_grace());
        }
        let received = match http::next_bytes(response, grace.unwrap_or(limits)).await {
            Ok(received) => received,
            // Nothing more is owed: not an orderly end, and not an end at all.
            Err(_) if grace.is_some() => None,
            Err(error) => return Err(not_read(error, limits, &format!("after {number} event(s)"))),
        };
        telling.as_of(response.at());
        let mut wrong = None;
        let mut take = |data: &str| {
            let data = data.trim();
            if wrong.is_some() || data.is_empty() {
                return;
            }
            number += 1;
            if is_last {
                telling.note(format!("event {number} came after the last one; it counts"));
            }
            let read = match (limits.over_within(), data) {
                (Some(failure), _) => Err(failure.into()),
                (None, "[DONE]") if form == Stream::Sse => Ok(true),
                (None, data) => mapping.read_event(data, number, heard, telling),
            };
            match read {
                Ok(last) => is_last |= last,
                Err(error) => wrong = Some(error),
            }
        };
        let ended = received.is_none();
        match (form, received) {
            (Stream::Sse, Some(bytes)) => {
                if decoder.feed(&bytes, |data| take(&data)).is_err() {
                    return Err(failed(format!("an event is longer than {} bytes", sse::MAX_EVENT)));
                }
            }
            (_, Some(bytes)) => {
                lines.unread().extend_from_slice(&bytes);
                while let Some(line) = lines.next_line() {
                    take(&String::from_utf8_lossy(&line));
                }
                if lines.waiting() > sse::MAX_EVENT {
                    return Err(failed(format!("a line is longer than {} bytes", sse::MAX_EVENT)));
                }
            }
            (Stream::Ndjson, None) => take(&String::from_utf8_lossy(&lines.rest())),
            (_, None) => decoder.finish(|data| take(&data)),
        }
        if let Some(error) = wrong {
            return Err(error);
        }
        if ended && is_last {
            return Ok(());
        }
        if ended {
            let words = match number {
                0 => "the stream ended without a single event".to_string(),
                n => format!(
                    "the stream ended after {n} event(s), none of which says that it is the last (`map.done`)"
                ),
            };
            return Err(failed(words));
        }
    }
}

fn not_read(error: ReadError, limits: Limits<'_>, when: &str) -> TurnError {
    match error {
        ReadError::Deadline => TurnError::Deadline,
        ReadError::Silent => http::silent(limits.idle).into(),
        ReadError::Limit(failure) => failure.into(),
        ReadError::Broken(words) => failed(format!("the connection broke {when} ({words})")),
    }
}

fn failed(message: String) -> TurnError {
    Failure::new(FailureKind::ProtocolError, message).into()
}
