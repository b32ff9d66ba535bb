//! AG-UI: one POST a run, answered by server-sent events.
//!
//! The protocol is spoken as of version 1.0, and every earlier shape that is still seen is understood.
//! One turn may take several runs: client-side tools are answered and interrupts resumed from the script
//! of the turn until the agent has nothing left to wait for.

mod chunks;
mod fold;
mod sequence;
mod thread;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::{Failure, FailureKind, InterruptAnswered, Origin, Payload, ToolCompleted, ToolFailed};
use reqwest::Url;
use reqwest::header::HeaderMap;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;

pub use fold::Strictness;
use fold::{OpenInterrupt, Run, RunEnd, RunOptions, UnansweredCall};
use thread::Thread;
use wire::{Message, PROTOCOL_VERSION};

use super::http::{self, BodyError, Http};
use super::sse::Decoder;
use super::{AgentSession, Input, Limits, Pending, TurnError};
use crate::session::{InterruptReply, Recorder, ToolReply, TurnScript};

/// How many runs one turn may take, so that an agent that asks for ever is stopped.
const MOST_RUNS: usize = 25;
/// How long is waited for more after the terminal event, should the server keep the connection open.
const GRACE: Duration = Duration::from_millis(200);

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
}

/// The body of a request, as the protocol names its members. All of them are always sent: some servers
/// refuse requests that lack one, although the protocol calls it optional.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RunInput<'a> {
    protocol_version: &'a str,
    thread_id: &'a str,
    run_id: String,
    state: &'a Value,
    messages: Vec<&'a Message>,
    tools: Value,
    context: &'a Value,
    forwarded_props: &'a Value,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resume: Vec<Value>,
}

/// What the next run answers.
#[derive(Debug, Default)]
struct Answers {
    resume: Vec<Value>,
    /// The answer on the channel of producers before 1.0, which goes into `forwardedProps.command.resume`.
    command: Option<Value>,
}

impl Session {
    /// Opens a conversation. Nothing is sent.
    pub fn open(http: Arc<Http>, target: Target) -> Self {
        let id = target.thread_id.clone().unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        let thread = Thread::new(id.into(), target.state.clone());
        Session { http, target, thread, requests: 0 }
    }

    async fn hold_turn(&mut self, input: Input<'_>, recorder: &mut Recorder) -> Result<(), TurnError> {
        let Input { turn_id, message_id, text, script, limits } = input;
        self.thread.begin_turn(turn_id, message_id, text);
        let mut answers = Answers::default();
        for _ in 0..MOST_RUNS {
            let body = self.body(script, &answers);
            match self.run(body, limits, recorder).await? {
                RunEnd::Failed(error) => return Err(TurnError::Run(error)),
                // `run` has worded a cut stream as a failure.
                RunEnd::Cut => return Ok(()),
                RunEnd::Finished { interrupts, unanswered } => {
                    let resumed = self.resume(&interrupts, script, recorder)?;
                    let answered = self.answer(&unanswered, script, recorder)?;
                    if interrupts.is_empty() && !answered {
                        return Ok(());
                    }
                    answers = resumed;
                }
            }
        }
        let message = format!("the agent asked the client for something {MOST_RUNS} times in one turn; given up");
        Err(Failure::new(FailureKind::AgentError, message).into())
    }

    /// The body of the next request.
    fn body(&self, script: &TurnScript, answers: &Answers) -> Vec<u8> {
        let mut forwarded = self.target.forwarded_props.clone();
        if let (Some(answer), Value::Object(props)) = (&answers.command, &mut forwarded) {
            let command = props.entry("command").or_insert_with(|| json!({}));
            match command {
                Value::Object(command) => {
                    command.insert("resume".to_string(), answer.clone());
                }
                other => *other = json!({"resume": answer}),
            }
        }
        let input = RunInput {
            protocol_version: PROTOCOL_VERSION,
            thread_id: &self.thread.id,
            run_id: uuid::Uuid::new_v4().to_string(),
            state: &self.thread.state,
            messages: self.thread.outgoing().collect(),
            tools: script.tools_as_json(),
            context: &self.target.context,
            forwarded_props: &forwarded,
            resume: answers.resume.clone(),
        };
        let body = match &self.target.envelope {
            Envelope::None => serde_json::to_vec(&input),
            Envelope::CopilotKit { agent_id } => {
                let params = agent_id.as_ref().map_or_else(|| json!({}), |id| json!({"agentId": id}));
                serde_json::to_vec(&json!({"method": "agent/run", "params": params, "body": input}))
            }
        };
        body.expect("maps with text keys are JSON")
    }

    /// One request and its stream, to the end.
    async fn run(&mut self, body: Vec<u8>, limits: Limits, recorder: &mut Recorder) -> Result<RunEnd, TurnError> {
        self.requests += 1;
        let headers = http::event_stream_headers(&self.target.headers);
        let mut response = self.http.post(&self.target.endpoint, headers, body, limits).await?;
        if let Some(failure) = not_a_stream(&mut response, limits).await {
            return Err(failure.into());
        }

        let options = RunOptions { strictness: self.target.strictness, keep_raw: self.target.keep_raw };
        let mut run = Run::new(&mut self.thread, self.requests, options);
        let mut decoder = Decoder::default();
        let mut given_up = None;
        loop {
            let limits = if run.has_ended() { in_grace(limits) } else { limits };
            let bytes = match http::next_bytes(&mut response, limits).await {
                Ok(Some(bytes)) => bytes,
                Ok(None) => break,
                // After the terminal event nothing more is owed: not an orderly end, and not an end at all.
                Err(_) if run.has_ended() => break,
                Err(error) => {
                    given_up = Some(error);
                    break;
                }
            };
            let mut broken = None;
            let fed = decoder.feed(&bytes, |data| {
                if broken.is_none() {
                    let at = recorder.now();
                    broken = run.receive(&data, at, &mut |payload| recorder.emit(payload)).err();
                }
            });
            let too_long = fed.err().map(|_| format!("an event is longer than {} bytes", super::sse::MAX_EVENT));
            if let Some(message) = broken.or(too_long) {
                let at = recorder.now();
                // What came before the fault is kept; what else is wrong at its end no longer matters.
                let _ = run.finish(at, &mut |payload| recorder.emit(payload));
                return Err(Failure::new(FailureKind::ProtocolError, message).into());
            }
        }

        let (received, open) = (run.received(), run.still_open());
        let at = recorder.now();
        let end = run.finish(at, &mut |payload| recorder.emit(payload));
        match (given_up, end) {
            (Some(BodyError::Deadline), _) => Err(TurnError::Deadline),
            (Some(BodyError::Silent), _) => Err(http::silent(limits.idle).into()),
            (Some(BodyError::Broken(words)), _) => Err(cut(received, &decoder, &open, Some(&words)).into()),
            (None, Ok(RunEnd::Cut)) => Err(cut(received, &decoder, &open, None).into()),
            (None, Ok(end)) => Ok(end),
            (None, Err(message)) => Err(Failure::new(FailureKind::ProtocolError, message).into()),
        }
    }

    /// Answers the interrupts of a run from the script.
    fn resume(
        &mut self,
        interrupts: &[OpenInterrupt],
        script: &mut TurnScript,
        recorder: &mut Recorder,
    ) -> Result<Answers, Failure> {
        let mut answers = Answers::default();
        for interrupt in interrupts {
            let asked = crate::session::AskedInterrupt {
                reason: interrupt.reason.as_deref(),
                message: interrupt.message.as_deref(),
                tool: interrupt.tool.as_deref(),
            };
            let Some(reply) = script.interrupt_reply(&asked) else {
                return Err(unanswered_interrupt(interrupt));
            };
            if let (InterruptReply::Resolved(_), Some(expired)) = (&reply, expired(interrupt)) {
                return Err(expired);
            }
            let (status, payload) = match reply {
                InterruptReply::Resolved(payload) => ("resolved", Some(payload)),
                InterruptReply::Cancelled => ("cancelled", None),
            };
            recorder.emit(InterruptAnswered {
                turn_id: self.thread.turn.id.clone(),
                interrupt_id: interrupt.trace_id.clone(),
                status: status.into(),
                payload: payload.clone(),
            });
            match (&interrupt.id, payload) {
                (Some(id), Some(payload)) => {
                    answers.resume.push(json!({"interruptId": id, "status": status, "payload": payload}));
                }
                // The older channel has no way to refuse; producers of both kinds take it here.
                (_, None) => answers.resume.push(json!({"interruptId": interrupt.trace_id, "status": status})),
                (None, Some(payload)) => {
                    if answers.command.replace(payload).is_some() {
                        let message = "the agent asked two questions at once on a channel that takes one answer (`on_interrupt`)";
                        return Err(Failure::new(FailureKind::TestError, message));
                    }
                }
            }
        }
        Ok(answers)
    }

    /// Answers the calls of client-side tools from the script. Says whether there were any.
    fn answer(
        &mut self,
        unanswered: &[UnansweredCall],
        script: &mut TurnScript,
        recorder: &mut Recorder,
    ) -> Result<bool, Failure> {
        let mut answered = false;
        let client_tools: Vec<_> = unanswered.iter().filter(|call| script.has_tool(&call.name)).collect();
        for call in client_tools {
            let Some(reply) = script.tool_reply(&call.name, &call.arguments) else {
                let message = format!("client tool {} was called with {} and no scripted answer fits", call.name, call.arguments);
                return Err(Failure::new(FailureKind::TestError, message));
            };
            answered = true;
            let message_id = uuid::Uuid::new_v4().to_string();
            let (turn_id, tool_call_id) = (self.thread.turn.id.clone(), call.trace_id.clone());
            let event: Payload = match reply {
                ToolReply::Content(output) => {
                    let content = match &output {
                        Value::String(text) => text.clone(),
                        other => other.to_string(),
                    };
                    self.thread.put_result(&message_id, &call.id, Value::String(content), None);
                    ToolCompleted { turn_id, tool_call_id, output, origin: Origin::Client }.into()
                }
                ToolReply::Error(message) => {
                    let content = Value::String(message.clone());
                    self.thread.put_result(&message_id, &call.id, content, Some(&message));
                    let error = hotseat_trace::ErrorInfo { code: None, message, retriable: None };
                    ToolFailed { turn_id, tool_call_id, error, origin: Origin::Client }.into()
                }
            };
            if let Some(known) = self.thread.calls.get_mut(&call.id) {
                known.answered = true;
            }
            recorder.emit(event);
        }
        Ok(answered)
    }
}

impl AgentSession for Session {
    fn conversation_id(&self) -> Arc<str> {
        self.thread.id.clone()
    }

    fn say<'a>(&'a mut self, input: Input<'a>, recorder: &'a mut Recorder) -> Pending<'a, Result<(), TurnError>> {
        Box::pin(self.hold_turn(input, recorder))
    }
}

fn in_grace(limits: Limits) -> Limits {
    Limits { deadline: limits.deadline.min(Instant::now() + GRACE), idle: GRACE }
}

/// The failure of an answer that is not a stream of events, whatever its status says.
async fn not_a_stream(response: &mut reqwest::Response, limits: Limits) -> Option<Failure> {
    let content_type = response.headers().get("content-type").and_then(|value| value.to_str().ok()).unwrap_or("");
    let media_type = content_type.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    // Servers that give no type, or call the stream plain text, exist; what they send decides.
    if matches!(media_type.as_str(), "text/event-stream" | "text/plain" | "application/octet-stream" | "") {
        return None;
    }
    let message = format!("HTTP {} with content type {media_type} is not a stream of events", response.status());
    let mut body = Vec::new();
    while body.len() < 4096
        && let Ok(Some(bytes)) = http::next_bytes(response, in_grace(limits)).await
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
        detail.push(format!("cut in the middle of an event: {}", wire::excerpt(&unfinished, 200)));
    }
    if !open.is_empty() {
        detail.push(format!("still open: {}", open.join(", ")));
    }
    Failure::new(FailureKind::ProtocolError, message).with_detail(detail.join("\n"))
}

fn unanswered_interrupt(interrupt: &OpenInterrupt) -> Failure {
    let mut words = "the agent paused and asked for an answer that the turn does not script (`resume`)".to_string();
    for (what, said) in [
        ("reason", interrupt.reason.as_deref()),
        ("message", interrupt.message.as_deref()),
        ("tool", interrupt.tool.as_deref()),
    ] {
        if let Some(said) = said {
            words.push_str(&format!("; {what}: {}", wire::excerpt(said, 200)));
        }
    }
    Failure::new(FailureKind::TestError, words)
        .with_detail(serde_json::to_string_pretty(&interrupt.value).unwrap_or_default())
}

/// The failure of answering an interrupt whose time is over.
fn expired(interrupt: &OpenInterrupt) -> Option<Failure> {
    let said = interrupt.expires_at.as_deref()?;
    let expires: jiff::Timestamp = said.parse().ok()?;
    let now = jiff::Timestamp::from_millisecond(crate::session::wall_millis()).ok()?;
    (expires < now).then(|| {
        let message = format!("the interrupt expired at {said}; only `status: cancelled` can answer it");
        Failure::new(FailureKind::TestError, message)
    })
}
