//! Agents with a custom HTTP interface: one request per turn, built from a template; the response is read by
//! JSONPath.

mod mapping;

use std::sync::Arc;

use ::http::Method;
use ::http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hotseat_http::{MAX_EVENT_BYTES, SseDecoder, SseEvent, check_encoding, decode_utf8};
use hotseat_trace::{AttemptFailure, FailureKind, named};
use serde_json::Value;
use url::Url;

pub use self::mapping::{
    AwaitingRule, CallPaths, LastEventRule, MappingPath, MappingPathError, ResponseMapping,
};
use self::mapping::{EarlierCalls, MappedResponse};
use crate::connection::cookies::ConversationCookies;
use crate::connection::http::{
    self, HttpClient, HttpPeer, HttpRequest, HttpResponse, ReadError, StreamBeginning,
};
use crate::connection::lines::LineBuffer;
use crate::connection::{TurnError, TurnLimits};
use crate::message::{ContentPart, ConversationMessage, unique_id};
use crate::target::template::{
    CaseInputs, TemplateValues, fill_json, fill_text, percent_encode, user_message,
};
use crate::target::{
    AgentInput, AgentSession, HistoryMode, ProtocolCapabilities, TurnFuture, TurnRecorder, protocol_error,
    read_failure,
};

/// Maximum size of a response in bytes.
const MAX_RESPONSE_BYTES: usize = 64 * 1024 * 1024;

/// A target with a custom HTTP interface.
#[derive(Debug, Clone)]
pub struct HttpTarget {
    /// Template of the URL.
    pub endpoint: String,
    /// HTTP method.
    pub method: Method,
    /// Headers of every request; the values are templates.
    pub headers: Vec<(HeaderName, String)>,
    /// Template of the body; `None` for requests without a body.
    pub body: Option<Value>,
    /// Mapping of the response; `None` if the whole body is the reply.
    pub mapping: Option<Arc<ResponseMapping>>,
    /// Form of the response.
    pub stream: ResponseStream,
    /// The part of the conversation in the placeholders.
    pub history: HistoryMode,
    /// Capabilities: the parts of a case for which the template has placeholders.
    pub capabilities: ProtocolCapabilities,
    /// Values defined by the case.
    pub given: CaseInputs,
    /// True if all received data is kept in the trace.
    pub keep_raw: bool,
}

named! {
    /// Form of a response.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ResponseStream {
        /// One document.
        None = "none",
        /// Server-sent events.
        Sse = "sse",
        /// One JSON document per line.
        Ndjson = "ndjson",
    }
}

/// A session with a custom HTTP interface.
pub struct HttpSession {
    http: Arc<HttpClient>,
    cookies: ConversationCookies,
    target: HttpTarget,
    id: Arc<str>,
    /// The conversation id in requests: generated here, or the server's once known.
    sent_id: Option<Value>,
    history: Vec<ConversationMessage>,
    /// Number of history messages that the agent has received.
    sent: usize,
    turns: usize,
    earlier_calls: EarlierCalls,
}

impl HttpSession {
    /// Opens a session. Nothing is sent yet.
    pub fn open(http: Arc<HttpClient>, target: HttpTarget) -> Self {
        let id: Arc<str> = target.given.conversation_id.clone().unwrap_or_else(unique_id).into();
        // A server that assigns ids gets no generated one.
        let gives = target.mapping.as_ref().is_some_and(|mapping| mapping.conversation_id.is_some());
        let sent_id = match (&target.given.conversation_id, gives) {
            (None, true) => None,
            (Some(_), _) | (None, false) => Some(Value::from(&*id)),
        };
        HttpSession {
            http,
            cookies: ConversationCookies::default(),
            target,
            id,
            sent_id,
            history: Vec::new(),
            sent: 0,
            turns: 0,
            earlier_calls: EarlierCalls::default(),
        }
    }

    async fn run_turn(&mut self, input: AgentInput<'_>) -> Result<(), TurnError> {
        let AgentInput { turn_id, text, content, options, limits, recorder, .. } = input;
        self.turns += 1;
        let mut telling = TurnRecorder::new(turn_id, recorder);
        let mut heard = MappedResponse::default();
        let ended = self.exchange(text, content, options, limits, &mut heard, &mut telling).await;
        // Also if the turn ended with an error: the conversation may continue.
        self.sent_id = heard.conversation_id.or(self.sent_id.take());
        let (said, ended) = telling.end(ended);
        self.history.push(user_message(content));
        self.history.extend(said);
        self.sent = self.history.len();
        ended
    }

    /// Sends the message of a turn and records the response.
    async fn exchange(
        &mut self,
        text: &str,
        content: &[ContentPart],
        options: Option<&Value>,
        limits: TurnLimits<'_>,
        heard: &mut MappedResponse,
        telling: &mut TurnRecorder<'_>,
    ) -> Result<(), TurnError> {
        let run_id: Arc<str> = format!("request-{}", self.turns).into();
        let mut response = self.send_request(text, content, options, limits).await?;
        telling.set_arrival(response.last_arrival());
        telling.run_started(&run_id);
        let read = self.read_answer(&mut response, limits, heard, telling).await;
        let repeated = self.earlier_calls.add(heard, self.turns, telling);
        read?;
        repeated?;
        let finish_reason = std::mem::take(&mut heard.finish_reason).into_name();
        let has_calls = telling.has_calls();
        telling.check_finish_reason(finish_reason.as_deref(), has_calls)?;
        telling.run_finished(&run_id, finish_reason);
        Ok(())
    }

    /// Reads the response of a turn.
    async fn read_answer(
        &self,
        response: &mut HttpResponse,
        limits: TurnLimits<'_>,
        heard: &mut MappedResponse,
        telling: &mut TurnRecorder<'_>,
    ) -> Result<(), TurnError> {
        let keep_raw = self.target.keep_raw;
        let has_id = self.sent_id.is_some();
        match (&self.target.mapping, self.target.stream) {
            (Some(mapping), ResponseStream::None) => {
                let body = read_whole(response, limits).await?;
                telling.set_arrival(response.last_arrival());
                mapping.read_response(&body, has_id, keep_raw, heard, telling)
            }
            (Some(mapping), form) => {
                let read = read_events(response, form, limits, mapping, heard, telling).await;
                // Data before an error is kept.
                heard.end_message(telling);
                read?;
                mapping.finish(heard, has_id, None, telling)
            }
            (None, _) => {
                let body = read_whole(response, limits).await?;
                telling.set_arrival(response.last_arrival());
                if keep_raw {
                    telling.record_raw(Value::String(body.clone()));
                }
                telling.record_message(body, None, None);
                Ok(())
            }
        }
    }

    /// Sends the request of a turn.
    async fn send_request(
        &mut self,
        message: &str,
        content: &[ContentPart],
        options: Option<&Value>,
        limits: TurnLimits<'_>,
    ) -> Result<HttpResponse, TurnError> {
        let values = TemplateValues {
            message,
            content,
            history: match self.target.history {
                HistoryMode::Full => &self.history,
                HistoryMode::Delta => &self.history[self.sent..],
            },
            options,
            conversation_id: self.sent_id.as_ref(),
            turn: self.turns,
            case_inputs: &self.target.given,
        };
        let unfit = |words: String| TurnError::from(AttemptFailure::new(FailureKind::TestError, words));
        let filled = fill_text(&self.target.endpoint, &values, percent_encode);
        let url = Url::parse(&filled).map_err(|error| {
            unfit(format!("`endpoint` of the agent expands to {filled}, which is not a URL: {error}"))
        })?;
        // A path segment `.` or `..` would change the path.
        let path = filled.split(['?', '#']).next().unwrap_or_default();
        if path.split('/').any(|part| matches!(part, "." | "..")) {
            let words = format!(
                "`endpoint` of the agent expands to {filled}, whose `.` or `..` segments change the path"
            );
            return Err(unfit(words));
        }
        let outgoing = HttpRequest {
            method: self.target.method.clone(),
            url: &url,
            headers: self.headers(&values)?,
            body: self.target.body.as_ref().map(|body| fill_json(body, &values).to_string().into_bytes()),
            peer: HttpPeer::Agent,
        };
        let response = self.cookies.send(&self.http, outgoing, limits).await?;
        check_encoding(response.headers()).map_err(|error| protocol_error(format!("the answer {error}")))?;
        Ok(response)
    }

    fn headers(&self, values: &TemplateValues<'_>) -> Result<HeaderMap, AttemptFailure> {
        let mut headers = HeaderMap::new();
        if self.target.body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        for (name, template) in &self.target.headers {
            let mut value =
                HeaderValue::try_from(fill_text(template, values, str::to_string)).map_err(|_| {
                    let message = format!(
                        "header `{name}` expands to a value with a line end or control character, which is not allowed in headers"
                    );
                    AttemptFailure::new(FailureKind::TestError, message)
                })?;
            value.set_sensitive(true);
            headers.insert(name.clone(), value);
        }
        Ok(headers)
    }
}

impl AgentSession for HttpSession {
    fn conversation_id(&self) -> Arc<str> {
        self.id.clone()
    }

    fn capabilities(&self) -> ProtocolCapabilities {
        self.target.capabilities
    }

    fn seed_history(&mut self, messages: &[ConversationMessage]) -> Result<(), AttemptFailure> {
        self.history.extend_from_slice(messages);
        Ok(())
    }

    fn send_input<'a>(&'a mut self, input: AgentInput<'a>) -> TurnFuture<'a> {
        Box::pin(self.run_turn(input))
    }
}

/// Reads the whole response as text.
async fn read_whole(response: &mut HttpResponse, limits: TurnLimits<'_>) -> Result<String, TurnError> {
    let body = http::rest_of_body(response, MAX_RESPONSE_BYTES, limits)
        .await
        .map_err(|error| broken_response(error, limits, "before the answer was complete"))?;
    if body.len() > MAX_RESPONSE_BYTES {
        return Err(protocol_error(format!("the answer is longer than {MAX_RESPONSE_BYTES} bytes")));
    }
    if body.trim_ascii().is_empty() {
        return Err(protocol_error(format!("HTTP {} with an empty body", response.status())));
    }
    decode_utf8(body).map_err(|error| protocol_error(format!("the answer is {error}")))
}

/// Reads the events of a response up to the last one.
async fn read_events(
    response: &mut HttpResponse,
    form: ResponseStream,
    limits: TurnLimits<'_>,
    mapping: &ResponseMapping,
    heard: &mut MappedResponse,
    telling: &mut TurnRecorder<'_>,
) -> Result<(), TurnError> {
    let (mut decoder, mut lines) = (SseDecoder::default(), LineBuffer::default());
    let (mut number, mut is_last) = (0, false);
    let mut beginning = StreamBeginning::default();
    // Reading to the end lets the connection be reused; the time for trailing data is limited.
    let mut grace: Option<TurnLimits<'_>> = None;
    loop {
        if is_last {
            grace.get_or_insert_with(|| limits.for_trailing_data());
        }
        let received = match http::next_bytes(response, grace.unwrap_or(limits)).await {
            Ok(received) => received,
            // After the last event, no regular end is required.
            Err(_) if grace.is_some() => None,
            Err(error) => return Err(broken_response(error, limits, &format!("after {number} event(s)"))),
        };
        telling.set_arrival(response.last_arrival());
        if let (0, Some(bytes)) = (number, &received) {
            beginning.add(bytes);
        }
        let mut wrong = None;
        let mut take = |event: SseEvent<'_>| {
            let data = event.data.trim();
            if wrong.is_some() || (data.is_empty() && !event.is_error) {
                return;
            }
            number += 1;
            if is_last {
                telling.record_note(format!("event {number} arrived after the last one; it is included"));
            }
            let read = match (limits.exceeded_record_limit(), data) {
                (Some(failure), _) => Err(failure.into()),
                (None, data) if event.is_error => Err(mapping.read_error(data, heard, telling)),
                (None, "[DONE]") if form == ResponseStream::Sse => Ok(true),
                (None, data) => mapping.read_event(data, number, heard, telling),
            };
            match read {
                Ok(last) => is_last |= last,
                Err(error) => wrong = Some(error),
            }
        };
        let ended = received.is_none();
        match (form, received) {
            (ResponseStream::Sse, Some(bytes)) => {
                if let Err(error) = decoder.feed(&bytes, &mut take) {
                    return Err(
                        wrong.unwrap_or_else(|| protocol_error(format!("event {} {error}", number + 1)))
                    );
                }
            }
            (_, Some(bytes)) => {
                lines.buffer_mut().extend_from_slice(&bytes);
                while let Some(line) = lines.next_line() {
                    take_line(line, &mut take)?;
                }
                if lines.pending_len() > MAX_EVENT_BYTES {
                    return Err(protocol_error(format!("a line is longer than {} bytes", MAX_EVENT_BYTES)));
                }
            }
            (ResponseStream::Ndjson, None) => take_line(lines.take_rest(), &mut take)?,
            (_, None) => decoder.finish(&mut take),
        }
        if let Some(error) = wrong {
            return Err(error);
        }
        if ended && is_last {
            return Ok(());
        }
        if ended {
            return Err(match number {
                0 => {
                    let advice = "remove `stream` from `target`, or set `stream: ndjson` if each line is a JSON document";
                    beginning.failure(response, "the stream ended without a single event", advice).into()
                }
                n => protocol_error(format!(
                    "the stream ended after {n} event(s), none of which is the last one by `map.done`"
                )),
            });
        }
    }
}

/// Passes on a line of JSON.
fn take_line(line: Vec<u8>, take: &mut impl FnMut(SseEvent<'_>)) -> Result<(), TurnError> {
    let line = decode_utf8(line).map_err(|error| protocol_error(format!("a line is {error}")))?;
    take(SseEvent { data: &line, is_error: false });
    Ok(())
}

fn broken_response(error: ReadError, limits: TurnLimits<'_>, when: &str) -> TurnError {
    read_failure(error, limits, |error| format!("the connection broke {when} ({error})"))
}
