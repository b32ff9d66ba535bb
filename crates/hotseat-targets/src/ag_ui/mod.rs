//! AG-UI: one POST per run, answered by server-sent events.
//!
//! Implements protocol version 1.0 and accepts all earlier forms still in use. A turn may take several runs:
//! client-side tools are answered and interrupts are resumed by the script of the turn until nothing is
//! pending.

mod answers;
mod chunks;
mod content;
mod event_times;
mod fold;
mod history;
mod id_map;
mod known_call;
mod recorded_texts;
mod reply_order;
mod request;
mod sequence;
mod thread;
mod wire;

use std::sync::Arc;

use ::http::HeaderMap;
use ::http::Method;
use hotseat_document::excerpt;
use hotseat_http::{SseDecoder, SseEvent, check_encoding};
use hotseat_trace::{AttemptFailure, FailureKind, Note};
use serde_json::Value;
use url::Url;

use self::event_times::EventTimes;
pub use self::event_times::TimingSource;
pub use self::fold::ProtocolStrictness;
use self::fold::{FinishedRun, FoldOptions, RunEnd, RunFold, RunRequest};
use self::thread::ConversationThread;
use self::thread::ResumeAnswers;
use crate::connection::cookies::ConversationCookies;
use crate::connection::http;
use crate::connection::http::{HttpClient, HttpPeer, HttpRequest, ReadError};
use crate::connection::{
    AG_UI_ADVICE, AI_SDK_ADVICE, AI_SDK_HEADER, OWN_API_ADVICE, TurnError, TurnLimits, other_protocol_advice,
    trailing_partial_event,
};
use crate::message::{ConversationMessage, ScriptedAnswers, media_parts, unique_id};
use crate::recorder::TraceRecorder;
use crate::target::{
    AgentInput, AgentSession, MAX_CLIENT_REQUESTS, ProtocolCapabilities, TurnFuture, too_many_requests,
};

/// An AG-UI target and the settings of its requests.
#[derive(Debug, Clone)]
pub struct AgUiTarget {
    /// URL of the runs.
    pub endpoint: Url,
    /// Headers of every request.
    pub headers: HeaderMap,
    /// Wrapper around the run input.
    pub envelope: RequestEnvelope,
    /// Id of the conversation; generated if absent.
    pub thread_id: Option<String>,
    /// The state before the first turn.
    pub state: Value,
    /// Entries `{description, value}`.
    pub context: Value,
    /// Properties forwarded to the agent.
    pub forwarded_props: Value,
    /// Strictness of the protocol rules.
    pub strictness: ProtocolStrictness,
    /// Source of event times.
    pub timing: TimingSource,
    /// True if every event is kept in the trace as received.
    pub keep_raw: bool,
}

/// Wrapper around the run input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestEnvelope {
    /// Nothing: the run input is the body.
    None,
    /// The single route of the CopilotKit runtime, with the id of one of its agents.
    CopilotKit {
        /// Id of the agent.
        agent_id: Option<String>,
    },
}

/// A session with an AG-UI agent.
pub struct AgUiSession {
    http: Arc<HttpClient>,
    cookies: ConversationCookies,
    target: AgUiTarget,
    thread: ConversationThread,
    requests: usize,
    /// Options of the current turn.
    options: Option<Value>,
}

impl AgUiSession {
    /// Opens a session. Nothing is sent yet.
    pub fn open(http: Arc<HttpClient>, target: AgUiTarget) -> Self {
        let id = target.thread_id.clone().unwrap_or_else(unique_id);
        let thread = ConversationThread::new(id.into(), target.state.clone());
        AgUiSession {
            http,
            cookies: ConversationCookies::default(),
            target,
            thread,
            requests: 0,
            options: None,
        }
    }

    async fn run_turn(&mut self, input: AgentInput<'_>) -> Result<(), TurnError> {
        let AgentInput { turn_id, message_id, text, content, options, script, limits, recorder } = input;
        self.thread.begin_turn(turn_id, message_id, text);
        self.options = options.cloned();
        if media_parts(content).next().is_some() {
            self.thread.set_user_content(content::content_parts(content));
        }
        let mut answers = ResumeAnswers::default();
        for _ in 0..=MAX_CLIENT_REQUESTS {
            let finished = self.send_run(&answers, script, limits, recorder).await?;
            answers = self.answer_interrupts(&finished.interrupts, script, recorder)?;
            let answered = self.answer_calls(&finished.unanswered, script, limits, recorder).await?;
            if finished.interrupts.is_empty() && !answered {
                return Ok(());
            }
        }
        Err(too_many_requests().into())
    }

    /// Sends one request and reads its stream to the end.
    async fn send_run(
        &mut self,
        answers: &ResumeAnswers,
        script: &ScriptedAnswers,
        limits: TurnLimits<'_>,
        recorder: &mut TraceRecorder,
    ) -> Result<FinishedRun, TurnError> {
        self.requests += 1;
        let asked = RunRequest { number: self.requests, run_id: unique_id() };
        let body = self.request_body(&asked.run_id, script, answers);
        let headers = http::event_stream_headers(&self.target.headers);
        let outgoing = HttpRequest {
            method: Method::POST,
            url: &self.target.endpoint,
            headers,
            body: Some(body),
            peer: HttpPeer::Agent,
        };
        recorder.clear_arrival();
        let mut times = EventTimes::since(recorder);
        let mut response = self.cookies.send(&self.http, outgoing, limits).await?;
        if let Some(failure) = not_a_stream(&mut response, limits).await {
            return Err(failure.into());
        }

        let options = FoldOptions { strictness: self.target.strictness, keep_raw: self.target.keep_raw };
        let turn_id = self.thread.turn.id.clone();
        let mut run = RunFold::new(&mut self.thread, asked, options);
        let mut decoder = SseDecoder::default();
        let mut given_up = None;
        // After the agent is done, the time for trailing data is limited; pings do not extend it.
        let mut grace: Option<TurnLimits<'_>> = None;
        loop {
            grace = run.has_ended().then(|| grace.unwrap_or_else(|| limits.for_trailing_data()));
            let received = http::next_bytes(&mut response, grace.unwrap_or(limits)).await;
            if received.is_ok() {
                recorder.set_arrival(response.last_arrival());
            }
            let mut broken = None;
            let mut take = |event: SseEvent<'_>| {
                if broken.is_none() && limits.exceeded_record_limit().is_none() {
                    let at = times.time_of(event.data, &self.target.timing, recorder);
                    broken = run.receive(event, at).err();
                    run.take_payloads().for_each(|payload| recorder.emit_at(at, payload));
                }
            };
            let (fed, ended) = match received {
                Ok(Some(bytes)) => (decoder.feed(&bytes, take), false),
                Ok(None) => {
                    decoder.finish(&mut take);
                    (Ok(()), true)
                }
                // After the terminal event, no regular end is required.
                Err(_) if run.has_ended() => (Ok(()), true),
                Err(error) => {
                    run.abandon();
                    given_up = Some(error);
                    (Ok(()), true)
                }
            };
            let undecodable = fed.err().map(|error| format!("event {} {error}", run.received() + 1));
            if let Some(message) = broken.map(|error| error.to_string()).or(undecodable) {
                // Data before the error is kept; further problems at the end are ignored.
                let _ = run.finish(recorder.now());
                run.take_payloads().for_each(|payload| recorder.emit(payload));
                return Err(AttemptFailure::new(FailureKind::ProtocolError, message).into());
            }
            if ended {
                break;
            }
        }
        if let Some(unfinished) = decoder.unfinished().filter(|_| !run.is_running()) {
            let (turn_id, message) = (turn_id, trailing_partial_event(&unfinished));
            recorder.emit(Note { turn_id, message, event: None });
        }

        let (received, open) = (run.received(), run.open_items());
        let end = run.finish(recorder.now());
        run.take_payloads().for_each(|payload| recorder.emit(payload));
        // Assertions would read a state that the agent has changed.
        if given_up.is_none()
            && let Some(problem) = self.thread.patching.exceeded()
        {
            let message = format!("a JSON Patch exceeds a limit of Hotseat: {problem}");
            return Err(AttemptFailure::new(FailureKind::Limit, message).into());
        }
        match (given_up, end) {
            (Some(ReadError::Deadline), _) => Err(TurnError::Deadline),
            (Some(ReadError::Idle), _) => Err(http::idle_timeout(limits.idle).into()),
            (Some(ReadError::Limit(failure)), _) => Err(failure.into()),
            (Some(ReadError::Broken(words)), _) => {
                Err(truncated_stream(received, &decoder, &open, Some(&words.to_string())).into())
            }
            (None, Ok(RunEnd::Truncated)) => Err(truncated_stream(received, &decoder, &open, None).into()),
            (None, Ok(RunEnd::Failed(error))) => Err(TurnError::Run(error)),
            (None, Ok(RunEnd::Finished(finished))) => Ok(finished),
            (None, Err(error)) => Err(AttemptFailure::new(FailureKind::ProtocolError, error).into()),
        }
    }
}

impl AgentSession for AgUiSession {
    fn conversation_id(&self) -> Arc<str> {
        self.thread.id.clone()
    }

    fn capabilities(&self) -> ProtocolCapabilities {
        ProtocolCapabilities::ALL
    }

    fn seed_history(&mut self, messages: &[ConversationMessage]) -> Result<(), AttemptFailure> {
        self.thread.seed_history(messages.iter().map(content::message_json).collect());
        Ok(())
    }

    fn send_input<'a>(&'a mut self, input: AgentInput<'a>) -> TurnFuture<'a> {
        Box::pin(self.run_turn(input))
    }
}

/// Returns the failure of a response that is not an event stream, regardless of its status.
async fn not_a_stream(response: &mut http::HttpResponse, limits: TurnLimits<'_>) -> Option<AttemptFailure> {
    if let Err(error) = check_encoding(response.headers()) {
        return Some(AttemptFailure::new(FailureKind::ProtocolError, format!("the answer {error}")));
    }
    if response.headers().contains_key(AI_SDK_HEADER) {
        return Some(AttemptFailure::new(FailureKind::ProtocolError, AI_SDK_ADVICE));
    }
    let media_type = http::bare_header(response, "content-type");
    // Some servers send no type or `text/plain` for a stream.
    let streams = ["text/event-stream", "text/plain", "application/octet-stream", ""];
    if streams.iter().any(|stream| media_type.eq_ignore_ascii_case(stream)) {
        return None;
    }
    let mut message =
        format!("HTTP {} with content type {media_type} is not a stream of events", response.status());
    let mut body = Vec::new();
    while body.len() < 4096
        && let Ok(Some(bytes)) = http::next_bytes(response, limits.for_trailing_data()).await
    {
        body.extend_from_slice(&bytes);
    }
    let own_api = matches!(body.trim_ascii().first(), Some(b'{' | b'[')).then_some(OWN_API_ADVICE);
    let advice = match other_protocol_advice(&String::from_utf8_lossy(&body)).or(own_api) {
        Some(AG_UI_ADVICE) => Some("the body is AG-UI: the server must send it as `text/event-stream`"),
        advice => advice,
    };
    if let Some(advice) = advice {
        message.push_str(&format!("; {advice}"));
    }
    Some(AttemptFailure::new(FailureKind::ProtocolError, message).with_detail(http::display_body(&body)))
}

/// Returns the failure of a stream that ended before its run.
fn truncated_stream(
    received: u64,
    decoder: &SseDecoder,
    open: &[String],
    broken: Option<&str>,
) -> AttemptFailure {
    let how = match broken {
        Some(words) => format!("the connection broke ({words})"),
        None => "the stream ended".to_string(),
    };
    let message = match received {
        0 if decoder.unfinished().is_none() => format!("{how} without a single event"),
        0 => format!("{how} in the middle of its first event"),
        1 => format!("{how} after 1 event, without RUN_FINISHED or RUN_ERROR"),
        n => format!("{how} after {n} events, without RUN_FINISHED or RUN_ERROR"),
    };
    let mut detail = Vec::new();
    if let Some(unfinished) = decoder.unfinished() {
        detail.push(format!("incomplete event: {}", excerpt(&unfinished, 200)));
    }
    if !open.is_empty() {
        detail.push(format!("still open: {}", open.join(", ")));
    }
    AttemptFailure::new(FailureKind::ProtocolError, message).with_detail(detail.join("\n"))
}

/// Folds the streams of each turn into trace payloads and the state of the next request; ignores the rest of
/// a stream after an error. For fuzzing only; not part of the public API.
#[doc(hidden)]
pub fn fold_streams(
    turns: &[Vec<Vec<u8>>],
    strictness: ProtocolStrictness,
) -> (Vec<hotseat_trace::Payload>, Value) {
    let (mut recorded, mut requests) = (Vec::new(), 0);
    let mut thread = ConversationThread::new("thread".into(), Value::Null);
    for (number, streams) in turns.iter().enumerate() {
        thread.begin_turn(format!("turn-{number}").into(), format!("user-{number}").into(), "hello");
        for stream in streams {
            requests += 1;
            let asked = RunRequest { number: requests, run_id: "run".to_string() };
            let mut run = RunFold::new(&mut thread, asked, FoldOptions { strictness, keep_raw: false });
            let (mut decoder, mut broken) = (SseDecoder::default(), false);
            let _ = decoder.feed(stream, |event| {
                let at = hotseat_trace::TimeOffset(recorded.len() as u64);
                broken = broken || run.receive(event, at).is_err();
                recorded.extend(run.take_payloads());
            });
            let at = hotseat_trace::TimeOffset(recorded.len() as u64);
            let _ = run.finish(at);
            recorded.extend(run.take_payloads());
        }
    }
    (recorded, thread.state)
}
