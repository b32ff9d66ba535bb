//! AG-UI: one POST a run, answered by server-sent events.
//!
//! The protocol is spoken as of version 1.0, and every earlier shape that is still seen is understood.
//! One turn may take several runs: client-side tools are answered and interrupts resumed from the script
//! of the turn until the agent has nothing left to wait for.

mod answers;
mod chunks;
mod content;
mod event_times;
mod fold;
mod history;
mod request;
mod sequence;
mod thread;
mod wire;

use std::borrow::Cow;
use std::sync::Arc;

use hotseat_trace::{Failure, FailureKind, Note};
use reqwest::header::HeaderMap;
use reqwest::{Method, Url};
use serde_json::Value;

use self::answers::Answers;
use self::event_times::EventTimes;
pub use self::event_times::TimingSource;
pub use self::fold::Strictness;
use self::fold::{Asked, Finished, Run, RunEnd, RunOptions};
use self::thread::Thread;
use super::http::{self, Http, Outgoing, ReadError};
use super::sse::{self, Decoder};
use super::{
    AgentSession, Carries, Input, Limits, MOST_REQUESTS, Pending, TurnError, asked_too_often, excerpt, unread,
};
use crate::session::{Message, Recorder, TurnScript, media};

/// An agent that speaks AG-UI, and what every request to it carries.
#[derive(Debug, Clone)]
pub struct Target {
    /// Where runs are posted.
    pub endpoint: Url,
    /// Headers of every request.
    pub headers: HeaderMap,
    /// What is put around the run input.
    pub envelope: Envelope,
    /// Id of the conversation; a fresh one where it is not given.
    pub thread_id: Option<String>,
    /// The state before the first turn.
    pub state: Value,
    /// Entries `{description, value}`.
    pub context: Value,
    /// Anything the agent wants to be told.
    pub forwarded_props: Value,
    /// How strictly the rules of the protocol are taken.
    pub strictness: Strictness,
    /// Which times count.
    pub timing: TimingSource,
    /// Whether every event is kept in the trace as received.
    pub keep_raw: bool,
}

/// What is put around the run input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Envelope {
    /// Nothing: the run input is the body.
    None,
    /// The single route of CopilotKit's runtime, with the id of one of its agents.
    CopilotKit {
        /// Which agent of the runtime is meant.
        agent_id: Option<String>,
    },
}

/// A conversation with an agent that speaks AG-UI.
pub struct Session {
    http: Arc<Http>,
    target: Target,
    thread: Thread,
    requests: usize,
    /// What the agent is told beside the conversation in this turn.
    options: Option<Value>,
}

impl Session {
    /// Opens a conversation. Nothing is sent.
    pub fn open(http: Arc<Http>, target: Target) -> Self {
        let id = target.thread_id.clone().unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        let thread = Thread::new(id.into(), target.state.clone());
        Session { http, target, thread, requests: 0, options: None }
    }

    async fn hold_turn(&mut self, input: Input<'_>, recorder: &mut Recorder) -> Result<(), TurnError> {
        let Input { turn_id, message_id, text, content, options, script, limits } = input;
        self.thread.begin_turn(turn_id, message_id, text);
        self.options = options.cloned();
        if media(content).next().is_some() {
            self.thread.set_user_content(content::parts(content));
        }
        let mut answers = Answers::default();
        for _ in 0..MOST_REQUESTS {
            let finished = self.run(&answers, script, limits, recorder).await?;
            answers = self.resume(&finished.interrupts, script, recorder)?;
            let answered = self.answer(&finished.unanswered, script, limits, recorder).await?;
            if finished.interrupts.is_empty() && !answered {
                return Ok(());
            }
        }
        Err(asked_too_often().into())
    }

    /// One request and its stream, to the end.
    async fn run(
        &mut self,
        answers: &Answers,
        script: &TurnScript,
        limits: Limits<'_>,
        recorder: &mut Recorder,
    ) -> Result<Finished, TurnError> {
        self.requests += 1;
        let asked = Asked { request: self.requests, run_id: uuid::Uuid::new_v4().to_string() };
        let body = self.body(&asked.run_id, script, answers);
        let headers = http::event_stream_headers(&self.target.headers);
        let outgoing = Outgoing {
            method: Method::POST,
            url: &self.target.endpoint,
            headers,
            body: Some(body),
            address_key: "target.endpoint",
        };
        recorder.as_of_now();
        let mut times = EventTimes::since(recorder);
        let mut response = self.http.send(outgoing, limits).await?;
        if let Some(failure) = not_a_stream(&mut response, limits).await {
            return Err(failure.into());
        }

        let options = RunOptions { strictness: self.target.strictness, keep_raw: self.target.keep_raw };
        let turn_id = self.thread.turn.id.clone();
        let mut run = Run::new(&mut self.thread, asked, options);
        let mut decoder = Decoder::default();
        let mut given_up = None;
        // Once the agent is done, what else it sends must come soon; pings do not make the wait longer.
        let mut grace: Option<Limits<'_>> = None;
        loop {
            grace = run.has_ended().then(|| grace.unwrap_or_else(|| limits.in_grace()));
            let received = http::next_bytes(&mut response, grace.unwrap_or(limits)).await;
            if received.is_ok() {
                recorder.as_of(response.at());
            }
            let mut broken = None;
            let mut take = |data: Cow<'_, str>| {
                if broken.is_none() && limits.over_within().is_none() {
                    let at = times.time_of(&data, &self.target.timing, recorder);
                    broken = run.receive(&data, at, &mut |payload| recorder.emit_at(at, payload)).err();
                }
            };
            let (fed, ended) = match received {
                Ok(Some(bytes)) => (decoder.feed(&bytes, take), false),
                Ok(None) => {
                    decoder.finish(&mut take);
                    (Ok(()), true)
                }
                // After the terminal event nothing more is owed: not an orderly end, and not an end at all.
                Err(_) if run.has_ended() => (Ok(()), true),
                Err(error) => {
                    given_up = Some(error);
                    (Ok(()), true)
                }
            };
            let too_long = fed.err().map(|_| format!("an event is longer than {} bytes", sse::MAX_EVENT));
            if let Some(message) = broken.or(too_long) {
                let at = recorder.now();
                // What came before the fault is kept; what else is wrong at its end no longer matters.
                let _ = run.finish(at, &mut |payload| recorder.emit(payload));
                return Err(Failure::new(FailureKind::ProtocolError, message).into());
            }
            if ended {
                break;
            }
        }
        if let Some(unfinished) = decoder.unfinished().filter(|_| run.has_ended()) {
            let (turn_id, message) = (turn_id, unread(&unfinished));
            recorder.emit(Note { turn_id, message, event: None });
        }

        let (received, open) = (run.received(), run.still_open());
        let at = recorder.now();
        let end = run.finish(at, &mut |payload| recorder.emit(payload));
        match (given_up, end) {
            (Some(ReadError::Deadline), _) => Err(TurnError::Deadline),
            (Some(ReadError::Silent), _) => Err(http::silent(limits.idle).into()),
            (Some(ReadError::Limit(failure)), _) => Err(failure.into()),
            (Some(ReadError::Broken(words)), _) => Err(cut(received, &decoder, &open, Some(&words)).into()),
            (None, Ok(RunEnd::Cut)) => Err(cut(received, &decoder, &open, None).into()),
            (None, Ok(RunEnd::Failed(error))) => Err(TurnError::Run(error)),
            (None, Ok(RunEnd::Finished(finished))) => Ok(finished),
            (None, Err(message)) => Err(Failure::new(FailureKind::ProtocolError, message).into()),
        }
    }
}

impl AgentSession for Session {
    fn conversation_id(&self) -> Arc<str> {
        self.thread.id.clone()
    }

    fn carries(&self) -> Carries {
        Carries { history: true, attachments: true, options: true }
    }

    fn remember(&mut self, messages: &[Message]) -> Result<(), Failure> {
        self.thread.remember(messages.iter().map(content::message).collect());
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

/// The failure of an answer that is not a stream of events, whatever its status says.
async fn not_a_stream(response: &mut http::Response, limits: Limits<'_>) -> Option<Failure> {
    let encoding = http::bare_header(response, "content-encoding");
    if !matches!(encoding.as_str(), "" | "identity") {
        let message = format!("the answer is encoded as {encoding}, which was not asked for");
        return Some(Failure::new(FailureKind::ProtocolError, message));
    }
    let media_type = http::bare_header(response, "content-type");
    // Servers that give no type, or call the stream plain text, exist; what they send decides.
    if matches!(media_type.as_str(), "text/event-stream" | "text/plain" | "application/octet-stream" | "") {
        return None;
    }
    let message =
        format!("HTTP {} with content type {media_type} is not a stream of events", response.status());
    let mut body = Vec::new();
    while body.len() < 4096
        && let Ok(Some(bytes)) = http::next_bytes(response, limits.in_grace()).await
    {
        body.extend_from_slice(&bytes);
    }
    Some(Failure::new(FailureKind::ProtocolError, message).with_detail(http::shown_body(&body)))
}

/// The failure of a stream that ended and whose run did not.
fn cut(received: u64, decoder: &Decoder, open: &[String], broken: Option<&str>) -> Failure {
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
        detail.push(format!("cut in the middle of an event: {}", excerpt(&unfinished, 200)));
    }
    if !open.is_empty() {
        detail.push(format!("still open: {}", open.join(", ")));
    }
    Failure::new(FailureKind::ProtocolError, message).with_detail(detail.join("\n"))
}

/// Takes in the streams of each turn as an agent would send them and returns what is recorded, and the state that the
/// agent would be sent next. Where a real stream
/// would be given up, the rest of it is left out. For the project's own fuzzing; not part of the interface.
#[doc(hidden)]
pub fn fold_streams(turns: &[Vec<Vec<u8>>], strictness: Strictness) -> (Vec<hotseat_trace::Payload>, Value) {
    let (mut recorded, mut requests) = (Vec::new(), 0);
    let mut thread = Thread::new("thread".into(), Value::Null);
    for (number, streams) in turns.iter().enumerate() {
        thread.begin_turn(format!("turn-{number}").into(), format!("user-{number}").into(), "hello");
        for stream in streams {
            requests += 1;
            let asked = Asked { request: requests, run_id: "run".to_string() };
            let mut run = Run::new(&mut thread, asked, RunOptions { strictness, keep_raw: false });
            let (mut decoder, mut broken) = (Decoder::default(), false);
            let _ = decoder.feed(stream, |data| {
                let at = hotseat_trace::Offset(recorded.len() as u64);
                broken = broken || run.receive(&data, at, &mut |payload| recorded.push(payload)).is_err();
            });
            let at = hotseat_trace::Offset(recorded.len() as u64);
            let _ = run.finish(at, &mut |payload| recorded.push(payload));
        }
    }
    (recorded, thread.state)
}
