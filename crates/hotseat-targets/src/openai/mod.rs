//! OpenAI-compatible chat completions: one POST per model reply, answered by a stream of chunks or a whole
//! completion.
//!
//! A turn takes several requests if the agent calls tools that the test offers: they are answered by the
//! script of the turn until no call is left. Calls of other tools are handled by the server: they are
//! recorded, never answered, and left out of the history.

mod completion;
mod content;

use std::collections::BTreeMap;
use std::sync::Arc;

use ::http::Method;
use ::http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use hotseat_document::excerpt;
use hotseat_http::{MAX_EVENT_BYTES, SseDecoder, SseEvent, check_encoding, decode_utf8};
use hotseat_model::StopReason;
use hotseat_trace::{AttemptFailure, FailureKind, Origin, plain_text};
use serde_json::{Map, Number, Value, json};
use url::Url;

use self::completion::{CompletionCall, CompletionReader, CompletionReply};
pub use self::content::is_supported;
use crate::connection::cookies::ConversationCookies;
use crate::connection::http::{
    self, HttpClient, HttpPeer, HttpRequest, HttpResponse, ReadError, StreamBeginning,
};
use crate::connection::{TurnError, TurnLimits, trailing_partial_event};
use crate::message::{ConversationMessage, ScriptedAnswers, ToolReply, media_parts, merge_json, unique_id};
use crate::recorder::TraceRecorder;
use crate::target::client_tools::{self, ClientCall};
use crate::target::template::{CaseInputs, TemplateValues, fill_json};
use crate::target::{
    AgentInput, AgentSession, HistoryMode, MAX_CLIENT_REQUESTS, ProtocolCapabilities, TurnFuture,
    TurnRecorder, check_unoffered_call, protocol_error, read_failure, too_many_requests,
};

/// A chat-completions target and the settings of its requests.
#[derive(Debug, Clone)]
pub struct ChatTarget {
    /// URL of the requests.
    pub endpoint: Url,
    /// Headers of every request.
    pub headers: HeaderMap,
    /// Model name of the server.
    pub model: String,
    /// The system message.
    pub system: Option<String>,
    /// True if replies are requested as streams.
    pub stream: bool,
    /// The temperature.
    pub temperature: Option<Number>,
    /// Further members of the body.
    pub body: Map<String, Value>,
    /// The part of the conversation sent with each request.
    pub history: HistoryMode,
    /// Alternative servers and models, by the name used in `options.connector`. Any other name is a model of
    /// the target's own server.
    pub connectors: BTreeMap<String, ChatBackend>,
    /// Values defined by the case.
    pub given: CaseInputs,
    /// True if all received data is kept in the trace.
    pub keep_raw: bool,
}

/// An alternative server and model for a target.
#[derive(Debug, Clone)]
pub struct ChatBackend {
    /// URL of the requests.
    pub endpoint: Url,
    /// Headers of every request. The target's own headers are not sent, since they may contain its key.
    pub headers: HeaderMap,
    /// Model name of the server.
    pub model: String,
    /// The temperature.
    pub temperature: Option<Number>,
    /// Further members of the body; those of the target take precedence.
    pub body: Map<String, Value>,
}

/// Body members that options must not replace: the conversation and its transport.
pub const RESERVED_BODY_KEYS: [&str; 4] = ["messages", "tools", "stream", "stream_options"];

/// Result of a call that asks the user; the protocol requires one before the next message.
const ASKED_USER_RESULT: &str = "The user was asked and answers in the next message.";

/// A session with a chat-completions target.
pub struct ChatSession {
    http: Arc<HttpClient>,
    cookies: ConversationCookies,
    target: ChatTarget,
    conversation_id: Arc<str>,
    messages: Vec<Value>,
    /// Number of messages that were sent to the server, or received from it.
    sent: usize,
    requests: usize,
    turns: usize,
    /// Options of the current turn.
    options: Option<Value>,
}

impl ChatSession {
    /// Opens a session. Nothing is sent yet.
    pub fn open(http: Arc<HttpClient>, target: ChatTarget) -> Self {
        let id = target.given.conversation_id.clone().unwrap_or_else(unique_id);
        let system = target.system.iter().map(|system| json!({"role": "system", "content": system}));
        let messages = system.collect();
        ChatSession {
            http,
            cookies: ConversationCookies::default(),
            target,
            conversation_id: id.into(),
            messages,
            sent: 0,
            requests: 0,
            turns: 0,
            options: None,
        }
    }

    async fn run_turn(&mut self, input: AgentInput<'_>) -> Result<(), TurnError> {
        let AgentInput { turn_id, text, content, options, script, limits, recorder, .. } = input;
        self.turns += 1;
        self.options = options.cloned();
        let said = if media_parts(content).next().is_some() {
            content::content_parts(content)?
        } else {
            json!(text)
        };
        self.messages.push(json!({"role": "user", "content": said}));
        let mut telling = TurnRecorder::new(turn_id, recorder);
        for _ in 0..=MAX_CLIENT_REQUESTS {
            let reply = self.request_reply(script, limits, &mut telling).await?;
            let answered = self.answer_calls(reply, script, limits, &mut telling).await?;
            if !answered {
                telling.check_answered()?;
                return Ok(());
            }
        }
        Err(too_many_requests().into())
    }

    /// Sends one request and reads its reply.
    async fn request_reply(
        &mut self,
        script: &ScriptedAnswers,
        limits: TurnLimits<'_>,
        telling: &mut TurnRecorder<'_>,
    ) -> Result<CompletionReply, TurnError> {
        self.requests += 1;
        let body = self.request_body(script);
        // Also if the turn fails: no message is sent twice.
        self.sent = self.messages.len();
        let run_id: Arc<str> = format!("request-{}", self.requests).into();
        let (endpoint, headers) = match self.backend() {
            Some(backend) => (&backend.endpoint, &backend.headers),
            None => (&self.target.endpoint, &self.target.headers),
        };
        let (endpoint, mut headers) = (endpoint.clone(), headers.clone());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let accept = if self.target.stream { "text/event-stream" } else { "application/json" };
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        let outgoing = HttpRequest {
            method: Method::POST,
            url: &endpoint,
            headers,
            body: Some(body),
            peer: HttpPeer::ChatCompletions,
        };
        telling.clear_arrival();
        let mut response = self.cookies.send(&self.http, outgoing, limits).await?;
        telling.set_arrival(response.last_arrival());
        telling.run_started(&run_id);

        let mut reading = CompletionReader::new(self.target.keep_raw);
        let read = match ResponseForm::detect(&response) {
            // The actual response decides: some servers stream regardless of the request, others never do.
            ResponseForm::Stream => read_stream(&mut response, limits, &mut reading, telling).await,
            ResponseForm::Whole => read_whole(&mut response, limits, &mut reading, telling).await,
            ResponseForm::Other(failure) => {
                let rest = http::rest_of_body(&mut response, 4096, limits.for_trailing_data()).await;
                let detail = rest.map(|body| http::display_body(&body)).unwrap_or_default();
                Err(failure.with_detail(detail).into())
            }
        };
        // Data before an error is kept; further problems at the end are ignored.
        let reply = reading.finish(telling);
        if let (Err(_), Ok(partial)) = (&read, &reply)
            && !partial.text.is_empty()
        {
            // The conversation may continue. Calls of the reply have no results, which servers require.
            self.messages.push(json!({"role": "assistant", "content": &*partial.text}));
            self.sent = self.messages.len();
        }
        read?;
        let reply = reply?;
        telling.run_finished(&run_id, reply.finish_reason.clone());
        Ok(reply)
    }

    /// Returns the alternative backend of this turn.
    fn backend(&self) -> Option<&ChatBackend> {
        let name = self.options.as_ref()?.get("connector")?.as_str()?;
        self.target.connectors.get(name)
    }

    /// Returns the body of the next request.
    fn request_body(&self, script: &ScriptedAnswers) -> Vec<u8> {
        let messages = match self.target.history {
            HistoryMode::Full => &self.messages[..],
            HistoryMode::Delta => &self.messages[self.sent..],
        };
        let mut body = Map::new();
        let backend = self.backend();
        let option = |key: &str| self.options.as_ref().and_then(|options| options.get(key));
        let model = match (backend, option("connector")) {
            (Some(backend), _) => json!(backend.model),
            (None, Some(name)) => name.clone(),
            (None, None) => json!(self.target.model),
        };
        body.insert("model".to_string(), model);
        body.insert("messages".to_string(), json!(messages));
        if let Value::Array(tools) = script.tools_as_json()
            && !tools.is_empty()
        {
            let tools = tools.into_iter().map(|tool| json!({"type": "function", "function": tool}));
            body.insert("tools".to_string(), tools.collect());
        }
        let temperature = backend.and_then(|backend| backend.temperature.as_ref());
        if let Some(temperature) = temperature.or(self.target.temperature.as_ref()) {
            body.insert("temperature".to_string(), json!(temperature));
        }
        if let Some(user) = self.target.given.identity.user.explicit() {
            body.insert("user".to_string(), json!(user));
        }
        body.insert("stream".to_string(), json!(self.target.stream));
        if self.target.stream {
            body.insert("stream_options".to_string(), json!({"include_usage": true}));
        }
        let values = TemplateValues {
            message: "",
            content: &[],
            history: &[],
            options: self.options.as_ref(),
            conversation_id: Some(&json!(self.conversation_id)),
            turn: self.turns,
            case_inputs: &self.target.given,
        };
        let mut put = |key: &str, value: Value| match value {
            Value::Null => body.shift_remove(key),
            value => body.insert(key.to_string(), value),
        };
        for (key, value) in backend.into_iter().flat_map(|backend| &backend.body) {
            put(key, value.clone());
        }
        for (key, value) in &self.target.body {
            put(key, fill_json(value, &values));
        }
        for (key, value) in self.options.iter().filter_map(Value::as_object).flatten() {
            match key.as_str() {
                "connector" => {}
                // Metadata of the target is merged with that of the turn.
                "metadata" => {
                    let below = self.target.body.get(key).map(|below| fill_json(below, &values));
                    put(key, merge_json(&below.unwrap_or_default(), value));
                }
                _ => drop(put(key, value.clone())),
            }
        }
        serde_json::to_vec(&body).expect("maps with text keys are JSON")
    }

    /// Adds a reply to the history and answers the calls that the test can answer. Returns true if the agent
    /// continues with the results; false if it is done or asks the user.
    async fn answer_calls(
        &mut self,
        reply: CompletionReply,
        script: &mut ScriptedAnswers,
        limits: TurnLimits<'_>,
        telling: &mut TurnRecorder<'_>,
    ) -> Result<bool, TurnError> {
        let (answered, open): (Vec<&CompletionCall>, Vec<&CompletionCall>) =
            reply.calls.iter().partition(|call| telling.is_answered(&call.trace_id));
        for call in answered.iter().filter(|call| script.has_tool(&call.name)) {
            telling.record_note(format!(
                "the server reports the result of its call of `{}`, which the test offers; it counts, and the test does not answer the call",
                call.name
            ));
        }
        let (offered, others): (Vec<&CompletionCall>, Vec<&CompletionCall>) =
            open.into_iter().partition(|call| script.has_tool(&call.name));
        let (asking, others): (Vec<&CompletionCall>, Vec<&CompletionCall>) =
            others.into_iter().partition(|call| script.asks_user(&call.name));
        if reply.finish_reason.as_deref().map(StopReason::from_provider) == Some(StopReason::ToolUse) {
            others.iter().try_for_each(|call| check_unoffered_call(&call.name, script))?;
        }
        let mut message = json!({"role": "assistant", "content": &*reply.text});
        // Calls handled by the server are left out of the history. Some servers send `stop` with calls that ask the user.
        let kept: Vec<Value> = offered.iter().chain(&asking).map(|call| call.to_history_json()).collect();
        let has_calls = !kept.is_empty();
        if has_calls {
            message["tool_calls"] = kept.into();
            if reply.text.is_empty() && !reply.has_content {
                message["content"] = Value::Null;
            }
            // Providers may reject the results without the members of their own.
            message.as_object_mut().expect("it is an object").extend(reply.extra);
        }
        if !reply.text.is_empty() || has_calls {
            self.messages.push(message);
        }
        self.sent = self.messages.len();
        for call in &offered {
            let arguments = call.arguments.to_value();
            let asked = ClientCall { id: &call.id, name: &call.name, arguments: &arguments };
            telling.clear_arrival();
            let answer = client_tools::answer_call(asked, script, &self.http, limits).await?;
            let content = match &answer {
                ToolReply::Content(output) => plain_text(output),
                ToolReply::Error(message) => message.clone(),
            };
            self.messages.push(json!({"role": "tool", "tool_call_id": call.id, "content": content}));
            telling.record_result(&call.trace_id, answer, Origin::Client);
        }
        if !asking.is_empty() {
            // The turn is done; the next user message answers the calls.
            self.messages.extend(
                asking.iter().map(
                    |call| json!({"role": "tool", "tool_call_id": call.id, "content": ASKED_USER_RESULT}),
                ),
            );
            return Ok(false);
        }
        Ok(!offered.is_empty())
    }
}

impl AgentSession for ChatSession {
    fn conversation_id(&self) -> Arc<str> {
        self.conversation_id.clone()
    }

    fn capabilities(&self) -> ProtocolCapabilities {
        ProtocolCapabilities::ALL
    }

    fn seed_history(&mut self, messages: &[ConversationMessage]) -> Result<(), AttemptFailure> {
        for message in messages {
            self.messages.push(content::message_json(message)?);
        }
        Ok(())
    }

    fn send_input<'a>(&'a mut self, input: AgentInput<'a>) -> TurnFuture<'a> {
        Box::pin(self.run_turn(input))
    }
}

/// Folds a stream of chunks into trace payloads. For fuzzing only; not part of the public API.
#[doc(hidden)]
pub fn fold_chunks(stream: &[u8]) -> Vec<hotseat_trace::Payload> {
    let mut recorder = TraceRecorder::new(crate::recorder::SecretRedactor::default(), true);
    let mut telling = TurnRecorder::new("turn-1".into(), &mut recorder);
    let (mut reading, mut decoder, mut is_broken) =
        (CompletionReader::new(false), SseDecoder::default(), false);
    let _ = decoder.feed(stream, |event| {
        is_broken = is_broken || reading.is_done() || reading.read_chunk(event.data, &mut telling).is_err();
    });
    let _ = reading.finish(&mut telling);
    recorder.finish().1.into_iter().map(|record| record.event.payload).collect()
}

enum ResponseForm {
    Stream,
    Whole,
    Other(AttemptFailure),
}

impl ResponseForm {
    fn detect(response: &HttpResponse) -> ResponseForm {
        let failed =
            |message: String| ResponseForm::Other(AttemptFailure::new(FailureKind::ProtocolError, message));
        if let Err(error) = check_encoding(response.headers()) {
            return failed(format!("the answer {error}"));
        }
        let media_type = http::bare_header(response, "content-type");
        match media_type.to_ascii_lowercase().as_str() {
            "text/event-stream" => ResponseForm::Stream,
            "application/json" => ResponseForm::Whole,
            _ => {
                let other = if media_type.is_empty() { "no content type" } else { &media_type };
                failed(format!(
                    "HTTP {} with {other} is neither a completion (application/json) nor a stream of chunks (text/event-stream)",
                    response.status()
                ))
            }
        }
    }
}

/// Reads chunks until the stream is done, and trailing data for a short time.
async fn read_stream(
    response: &mut HttpResponse,
    limits: TurnLimits<'_>,
    reading: &mut CompletionReader,
    telling: &mut TurnRecorder<'_>,
) -> Result<(), TurnError> {
    let (mut decoder, mut beginning) = (SseDecoder::default(), StreamBeginning::default());
    // Reading to the end lets the connection be reused; the time for trailing data is limited.
    let mut grace: Option<TurnLimits<'_>> = None;
    loop {
        if reading.is_done() {
            grace.get_or_insert_with(|| limits.for_trailing_data());
        }
        let received = http::next_bytes(response, grace.unwrap_or(limits)).await;
        telling.set_arrival(response.last_arrival());
        if let (0, Ok(Some(bytes))) = (reading.chunks(), &received) {
            beginning.add(bytes);
        }
        let mut wrong = None;
        let mut take = |event: SseEvent<'_>| {
            if wrong.is_none() {
                let over = limits.exceeded_record_limit().map(TurnError::Failed);
                wrong = over.or_else(|| match event.is_error {
                    true => Some(reading.read_error(event.data, telling)),
                    false => reading.read_chunk(event.data, telling).err(),
                });
            }
        };
        let (fed, ended) = match received {
            Ok(Some(bytes)) => (decoder.feed(&bytes, take), false),
            Ok(None) => {
                decoder.finish(&mut take);
                (Ok(()), true)
            }
            // After the stream is done, no regular end is required.
            Err(_) if grace.is_some() => (Ok(()), true),
            Err(ReadError::Deadline) => return Err(TurnError::Deadline),
            Err(ReadError::Idle) => return Err(http::idle_timeout(limits.idle).into()),
            Err(ReadError::Limit(failure)) => return Err(failure.into()),
            Err(ReadError::Broken(words)) => {
                let words = words.to_string();
                return Err(truncated_stream(response, reading, &decoder, &beginning, Some(&words)).into());
            }
        };
        if let Some(error) = wrong {
            return Err(error);
        }
        if let Err(error) = fed {
            return Err(protocol_error(format!("chunk {} {error}", reading.chunks() + 1)));
        }
        if ended && !reading.is_done() {
            return Err(truncated_stream(response, reading, &decoder, &beginning, None).into());
        }
        if ended {
            if let Some(unfinished) = decoder.unfinished() {
                telling.record_note(trailing_partial_event(&unfinished));
            }
            return Ok(());
        }
    }
}

/// Reads a whole completion.
async fn read_whole(
    response: &mut HttpResponse,
    limits: TurnLimits<'_>,
    reading: &mut CompletionReader,
    telling: &mut TurnRecorder<'_>,
) -> Result<(), TurnError> {
    let body = http::rest_of_body(response, MAX_EVENT_BYTES, limits).await.map_err(|error| {
        read_failure(error, limits, |error| {
            format!("the connection broke before the completion was complete ({error})")
        })
    })?;
    telling.set_arrival(response.last_arrival());
    if body.len() > MAX_EVENT_BYTES {
        return Err(protocol_error(format!("the completion is longer than {MAX_EVENT_BYTES} bytes")));
    }
    let body = decode_utf8(body).map_err(|error| protocol_error(format!("the completion is {error}")))?;
    if ["data:", "event:"].iter().any(|field| body.trim_start().starts_with(field)) {
        let message = "the answer has the content type application/json, but is a stream of events: the server must send it as text/event-stream";
        let failure = AttemptFailure::new(FailureKind::ProtocolError, message);
        return Err(failure.with_detail(http::display_body(body.as_bytes())).into());
    }
    reading.read_whole(&body, telling)
}

/// Returns the failure of a stream that ended without `[DONE]`.
fn truncated_stream(
    response: &HttpResponse,
    reading: &CompletionReader,
    decoder: &SseDecoder,
    beginning: &StreamBeginning,
    broken: Option<&str>,
) -> AttemptFailure {
    let how = match broken {
        Some(words) => format!("the connection broke ({words})"),
        None => "the stream ended".to_string(),
    };
    let unfinished = decoder.unfinished();
    let message = match (reading.chunks(), reading.finish_reason()) {
        (0, _) if unfinished.is_none() => {
            let problem = format!("{how} without a single chunk");
            return beginning.failure(
                response,
                &problem,
                "a whole completion needs the content type application/json",
            );
        }
        (0, _) => format!("{how} in the middle of its first chunk"),
        (n, Some(reason)) => {
            format!("{how} after {n} chunk(s), with finish_reason {reason} and without `[DONE]`")
        }
        (n, None) => {
            let advice = reading.other_protocol_advice().unwrap_or_default();
            format!("{how} after {n} chunk(s), without finish_reason and `[DONE]`{advice}")
        }
    };
    let detail = unfinished
        .map(|unfinished| format!("incomplete chunk: {}", excerpt(&unfinished, 200)))
        .unwrap_or_default();
    AttemptFailure::new(FailureKind::ProtocolError, message).with_detail(detail)
}
