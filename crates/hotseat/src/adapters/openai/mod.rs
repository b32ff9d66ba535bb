//! OpenAI-compatible chat completions: one POST a model reply, answered by a stream of chunks or by a whole completion.
//!
//! One turn takes several requests where the agent calls tools that the test offers: they are answered from the
//! script of the turn until the agent has nothing left to wait for. Calls of other tools are the server's own affair:
//! they are recorded, never answered, and left out of the history.

mod content;
mod reading;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use hotseat_trace::{Failure, FailureKind, Origin};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, Url};
use serde_json::{Map, Number, Value, json};

pub use self::content::has_form;
use self::reading::{Call, Reading, Reply};
use super::client_tools::{self, ClientCall};
use super::http::{self, Http, Outgoing, ReadError, Response};
use super::sse::{self, Decoder};
use super::telling::{Telling, text_of_output};
use super::template::{Given, Values, fill_json};
use super::{
    AgentSession, Carries, History, Input, Limits, MOST_REQUESTS, Pending, TurnError, asked_too_often,
    excerpt, not_offered, unread,
};
use crate::session::{Message, Recorder, ToolReply, TurnScript, media, merged};

/// An agent behind chat completions, and what every request to it carries.
#[derive(Debug, Clone)]
pub struct Target {
    /// Where requests are posted.
    pub endpoint: Url,
    /// Headers of every request.
    pub headers: HeaderMap,
    /// The model, in the server's words.
    pub model: String,
    /// The system message.
    pub system: Option<String>,
    /// Whether replies are streamed.
    pub stream: bool,
    /// The temperature.
    pub temperature: Option<Number>,
    /// Further members of the body.
    pub body: Map<String, Value>,
    /// Which part of the conversation a request carries.
    pub history: History,
    /// What takes the place of the server and its model, by the names that `options.connector` can have. Any other
    /// name is that of a model of the server itself.
    pub connectors: BTreeMap<String, Backend>,
    /// What a case gives.
    pub given: Given,
    /// Whether everything received is kept in the trace.
    pub keep_raw: bool,
}

/// A language model that takes the place of the server and its model.
#[derive(Debug, Clone)]
pub struct Backend {
    /// Where requests are posted.
    pub endpoint: Url,
    /// Headers of every request. Those of the target may hold its key, so they are not sent.
    pub headers: HeaderMap,
    /// The model, in the server's words.
    pub model: String,
    /// The temperature.
    pub temperature: Option<Number>,
    /// Further members of the body, below those of the target.
    pub body: Map<String, Value>,
}

/// Members of a body that hold the conversation and how it is sent; no option takes their place.
pub const RESERVED: [&str; 4] = ["messages", "tools", "stream", "stream_options"];

/// What answers a call that asks the user for something: the protocol wants a result before the next message.
const ASKED_OF_USER: &str = "The user was asked and answers in the next message.";

/// A conversation with an agent behind chat completions.
pub struct Session {
    http: Arc<Http>,
    target: Target,
    conversation_id: Arc<str>,
    messages: Vec<Value>,
    /// How many of the messages the server knows.
    known: usize,
    requests: usize,
    turns: usize,
    /// What a case wants of the server in this turn.
    options: Option<Value>,
}

impl Session {
    /// Opens a conversation. Nothing is sent.
    pub fn open(http: Arc<Http>, target: Target) -> Self {
        let id = target.given.conversation_id.clone().unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        let system = target.system.iter().map(|system| json!({"role": "system", "content": system}));
        let messages = system.collect();
        Session {
            http,
            target,
            conversation_id: id.into(),
            messages,
            known: 0,
            requests: 0,
            turns: 0,
            options: None,
        }
    }

    async fn hold_turn(&mut self, input: Input<'_>, recorder: &mut Recorder) -> Result<(), TurnError> {
        let Input { turn_id, text, content, options, script, limits, .. } = input;
        self.turns += 1;
        self.options = options.cloned();
        let said = if media(content).next().is_some() { content::parts(content)? } else { json!(text) };
        self.messages.push(json!({"role": "user", "content": said}));
        let mut telling = Telling::new(turn_id, recorder);
        for _ in 0..MOST_REQUESTS {
            let reply = self.ask(script, limits, &mut telling).await?;
            let answered = self.answer(reply, script, limits, &mut telling).await?;
            if !answered {
                telling.told()?;
                return Ok(());
            }
        }
        Err(asked_too_often().into())
    }

    /// One request and its reply, to the end.
    async fn ask(
        &mut self,
        script: &TurnScript,
        limits: Limits<'_>,
        telling: &mut Telling<'_>,
    ) -> Result<Reply, TurnError> {
        self.requests += 1;
        let run_id: Arc<str> = format!("request-{}", self.requests).into();
        let (endpoint, headers) = match self.backend() {
            Some(backend) => (&backend.endpoint, &backend.headers),
            None => (&self.target.endpoint, &self.target.headers),
        };
        let mut headers = headers.clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let accept = if self.target.stream { "text/event-stream" } else { "application/json" };
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        let outgoing = Outgoing {
            method: Method::POST,
            url: endpoint,
            headers,
            body: Some(self.body(script)),
            address_key: "target.base_url",
        };
        telling.as_of_now();
        let mut response = self.http.send(outgoing, limits).await?;
        telling.as_of(response.at());
        telling.run_started(&run_id);

        let mut reading = Reading::new(self.target.keep_raw);
        let read = match Form::of(&response) {
            // What decides is what the server sends: some stream whatever is asked for, and some never do.
            Form::Stream => read_stream(&mut response, limits, &mut reading, telling).await,
            Form::Whole => read_whole(&mut response, limits, &mut reading, telling).await,
            Form::Other(failure) => {
                let rest = http::rest_of_body(&mut response, 4096, limits.in_grace()).await;
                let detail = rest.map(|body| http::shown_body(&body)).unwrap_or_default();
                Err(failure.with_detail(detail).into())
            }
        };
        // What came before a fault is kept, and what else is wrong at its end no longer matters.
        let reply = reading.reply(telling);
        read?;
        let reply = reply?;
        telling.run_finished(&run_id, reply.usage.clone(), reply.finish_reason.clone());
        Ok(reply)
    }

    /// What takes the place of the server in this turn.
    fn backend(&self) -> Option<&Backend> {
        let name = self.options.as_ref()?.get("connector")?.as_str()?;
        self.target.connectors.get(name)
    }

    /// The body of the next request.
    fn body(&self, script: &TurnScript) -> Vec<u8> {
        let messages = match self.target.history {
            History::Full => &self.messages[..],
            History::Delta => &self.messages[self.known..],
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
        if let Some(user) = self.target.given.identity.user.given() {
            body.insert("user".to_string(), json!(user));
        }
        body.insert("stream".to_string(), json!(self.target.stream));
        if self.target.stream {
            body.insert("stream_options".to_string(), json!({"include_usage": true}));
        }
        let values = Values {
            message: "",
            content: &[],
            history: &[],
            options: self.options.as_ref(),
            conversation_id: Some(&self.conversation_id),
            turn: self.turns,
            given: &self.target.given,
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
                // What the target says of every call stays beside what is said of this one.
                "metadata" => {
                    let below = self.target.body.get(key).map(|below| fill_json(below, &values));
                    put(key, merged(&below.unwrap_or_default(), value));
                }
                _ => drop(put(key, value.clone())),
            }
        }
        serde_json::to_vec(&body).expect("maps with text keys are JSON")
    }

    /// Puts a reply into the history and answers the calls that the test can answer. Says whether the agent goes on with
    /// what they came to; it does not where it asks the user for something.
    async fn answer(
        &mut self,
        reply: Reply,
        script: &mut TurnScript,
        limits: Limits<'_>,
        telling: &mut Telling<'_>,
    ) -> Result<bool, TurnError> {
        let (offered, others): (Vec<&Call>, Vec<&Call>) =
            reply.calls.iter().partition(|call| script.has_tool(&call.name));
        let (asking, others): (Vec<&Call>, Vec<&Call>) = others
            .into_iter()
            .filter(|call| !telling.is_answered(&call.trace_id))
            .partition(|call| script.asks_user(&call.name));
        if reply.finish_reason.as_deref() == Some("tool_calls") {
            others.iter().try_for_each(|call| not_offered(&call.name, script))?;
        }
        let mut message = json!({"role": "assistant", "content": reply.text});
        // What only the server knows of stays with it.
        let is_asked = reply.finish_reason.as_deref() == Some("tool_calls") && !asking.is_empty();
        let kept: Vec<Value> =
            offered.iter().chain(asking.iter().filter(|_| is_asked)).map(|call| call.as_sent()).collect();
        let has_calls = !kept.is_empty();
        if has_calls {
            message["tool_calls"] = kept.into();
        }
        if !reply.text.is_empty() || has_calls {
            self.messages.push(message);
        }
        self.known = self.messages.len();
        for call in &offered {
            let arguments = call.arguments.value();
            let asked = ClientCall { id: &call.id, name: &call.name, arguments: &arguments };
            telling.as_of_now();
            let answer = client_tools::answer(asked, script, &self.http, limits).await?;
            let content = match &answer {
                ToolReply::Content(output) => text_of_output(output),
                ToolReply::Error(message) => message.clone(),
            };
            self.messages.push(json!({"role": "tool", "tool_call_id": call.id, "content": content}));
            telling.result(&call.trace_id, answer, Origin::Client);
        }
        if is_asked {
            // The turn is over. What the user says next answers the calls.
            self.messages.extend(
                asking
                    .iter()
                    .map(|call| json!({"role": "tool", "tool_call_id": call.id, "content": ASKED_OF_USER})),
            );
            return Ok(false);
        }
        Ok(!offered.is_empty())
    }
}

impl AgentSession for Session {
    fn conversation_id(&self) -> Arc<str> {
        self.conversation_id.clone()
    }

    fn carries(&self) -> Carries {
        Carries { history: true, attachments: true, options: true }
    }

    fn remember(&mut self, messages: &[Message]) -> Result<(), Failure> {
        for message in messages {
            self.messages.push(content::message(message)?);
        }
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

/// Takes in a stream of chunks as a server would send it and returns what is recorded. For the project's own fuzzing; not
/// part of the interface.
#[doc(hidden)]
pub fn fold_chunks(stream: &[u8]) -> Vec<hotseat_trace::Payload> {
    let mut recorder = Recorder::new(crate::session::Redactor::default(), true);
    let mut telling = Telling::new("turn-1".into(), &mut recorder);
    let (mut reading, mut decoder, mut is_broken) = (Reading::new(false), Decoder::default(), false);
    let _ = decoder.feed(stream, |data| {
        is_broken = is_broken || reading.is_done() || reading.chunk(&data, &mut telling).is_err();
    });
    let _ = reading.reply(&mut telling);
    recorder.finish().1.into_iter().map(|record| record.event.payload).collect()
}

/// In which form a reply comes.
enum Form {
    Stream,
    Whole,
    Other(Failure),
}

impl Form {
    fn of(response: &Response) -> Form {
        let failed = |message: String| Form::Other(Failure::new(FailureKind::ProtocolError, message));
        let encoding = http::bare_header(response, "content-encoding");
        if !matches!(encoding.as_str(), "" | "identity") {
            return failed(format!("the answer is encoded as {encoding}, which was not asked for"));
        }
        match http::bare_header(response, "content-type").as_str() {
            "text/event-stream" => Form::Stream,
            "application/json" => Form::Whole,
            other => {
                let other = if other.is_empty() { "no content type" } else { other };
                failed(format!(
                    "HTTP {} with {other} is neither a completion (application/json) nor a stream of chunks (text/event-stream)",
                    response.status()
                ))
            }
        }
    }
}

/// Reads chunks until the stream says that it is done, and what else comes soon after that.
async fn read_stream(
    response: &mut Response,
    limits: Limits<'_>,
    reading: &mut Reading,
    telling: &mut Telling<'_>,
) -> Result<(), TurnError> {
    let mut decoder = Decoder::default();
    // The connection can be used again once its end was read; that must come soon, however much is sent until then.
    let mut grace: Option<Limits<'_>> = None;
    loop {
        if reading.is_done() {
            grace.get_or_insert_with(|| limits.in_grace());
        }
        let received = http::next_bytes(response, grace.unwrap_or(limits)).await;
        telling.as_of(response.at());
        let mut wrong = None;
        let mut take = |data: Cow<'_, str>| {
            if wrong.is_none() {
                let over = limits.over_within().map(TurnError::Failed);
                wrong = over.or_else(|| reading.chunk(&data, telling).err());
            }
        };
        let (fed, ended) = match received {
            Ok(Some(bytes)) => (decoder.feed(&bytes, take), false),
            Ok(None) => {
                decoder.finish(&mut take);
                (Ok(()), true)
            }
            // Nothing more is owed: not an orderly end, and not an end at all.
            Err(_) if grace.is_some() => (Ok(()), true),
            Err(ReadError::Deadline) => return Err(TurnError::Deadline),
            Err(ReadError::Silent) => return Err(http::silent(limits.idle).into()),
            Err(ReadError::Limit(failure)) => return Err(failure.into()),
            Err(ReadError::Broken(words)) => return Err(cut(reading, &decoder, Some(&words)).into()),
        };
        if let Some(error) = wrong {
            return Err(error);
        }
        if fed.is_err() {
            let message = format!("a chunk is longer than {} bytes", sse::MAX_EVENT);
            return Err(Failure::new(FailureKind::ProtocolError, message).into());
        }
        if ended && !reading.is_done() {
            return Err(cut(reading, &decoder, None).into());
        }
        if ended {
            if let Some(unfinished) = decoder.unfinished() {
                telling.note(unread(&unfinished));
            }
            return Ok(());
        }
    }
}

/// Reads a whole completion.
async fn read_whole(
    response: &mut Response,
    limits: Limits<'_>,
    reading: &mut Reading,
    telling: &mut Telling<'_>,
) -> Result<(), TurnError> {
    let body = http::rest_of_body(response, sse::MAX_EVENT, limits).await.map_err(|error| match error {
        ReadError::Deadline => TurnError::Deadline,
        ReadError::Silent => http::silent(limits.idle).into(),
        ReadError::Limit(failure) => failure.into(),
        ReadError::Broken(words) => {
            let message = format!("the connection broke before the completion was whole ({words})");
            Failure::new(FailureKind::ProtocolError, message).into()
        }
    })?;
    telling.as_of(response.at());
    if body.len() > sse::MAX_EVENT {
        let message = format!("the completion is longer than {} bytes", sse::MAX_EVENT);
        return Err(Failure::new(FailureKind::ProtocolError, message).into());
    }
    reading.whole(&String::from_utf8_lossy(&body), telling)
}

/// The failure of a stream that ended without saying so.
fn cut(reading: &Reading, decoder: &Decoder, broken: Option<&str>) -> Failure {
    let how = match broken {
        Some(words) => format!("the connection broke ({words})"),
        None => "the stream ended".to_string(),
    };
    let unfinished = decoder.unfinished();
    let message = match (reading.chunks(), reading.finish_reason()) {
        (0, _) if unfinished.is_none() => format!("{how} without a single chunk"),
        (0, _) => format!("{how} in the middle of its first chunk"),
        (n, Some(reason)) => {
            format!("{how} after {n} chunk(s), with finish_reason {reason} and without `[DONE]`")
        }
        (n, None) => format!("{how} after {n} chunk(s), without finish_reason and `[DONE]`"),
    };
    let detail = unfinished
        .map(|unfinished| format!("cut in the middle of a chunk: {}", excerpt(&unfinished, 200)))
        .unwrap_or_default();
    Failure::new(FailureKind::ProtocolError, message).with_detail(detail)
}
