//! An agent that does again what another one did: it serves recordings, in this process.
//!
//! Turn n of a case gets turn n of its recording. What the test says and answers is compared with what it said and
//! answered then, for an agent that was told something else might have done something else. Time passes as it did
//! then, without being waited for.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::{
    AgentRunFailed, AgentRunFinished, AgentRunStarted, AssistantMessage, AwaitingInput, ErrorInfo, Failure,
    FailureKind, InterruptAnswered, InterruptRaised, Note, Offset, Origin, Payload, ReasoningMessage,
    StateSnapshot, ToolArguments, ToolCompleted, ToolFailed, ToolInvoked,
};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    AgentSession, Carries, Input, Limits, Pending, TurnError, excerpt, unanswered_call, unanswered_interrupt,
};
use crate::recording::{self, Arguments, Event, NotRead, Recording, Turn, What, file_name};
use crate::session::{
    AskedInterrupt, InterruptReply, Media, Message, Recorder, ToolReply, TurnScript, media,
};

/// What to do about a recording that no longer fits.
const AGAIN: &str = "record again with `hotseat test --record`, or let a target of `type: replay` compare nothing with `match: position`";

/// An agent that serves recordings.
#[derive(Debug, Clone)]
pub struct Target {
    /// Where they are.
    pub from: From,
    /// The same as it is shown to people.
    pub shown: String,
    /// What of a conversation has to be as it was recorded.
    pub matching: Matching,
    /// The case that is tested, once that is known.
    pub case: Option<CaseName>,
    /// Id of the conversation; a fresh one where it is not given.
    pub conversation_id: Option<String>,
}

/// Where recordings are.
#[derive(Debug, Clone)]
pub enum From {
    /// In a folder, each under the name of its case.
    Folder(PathBuf),
    /// One for every case.
    File(Arc<Recording>),
}

/// What of a conversation has to be as it was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Matching {
    /// What the test says and answers.
    Exact,
    /// Nothing: the place of a turn decides.
    Position,
}

/// The case that is tested.
#[derive(Debug, Clone)]
pub struct CaseName {
    /// Its suite, as recordings call it.
    pub suite: String,
    /// Its id.
    pub id: String,
}

/// A conversation with a recording.
pub struct Session {
    target: Target,
    id: Arc<str>,
    recording: Option<Arc<Recording>>,
    turns: usize,
    runs: usize,
}

impl Session {
    /// Opens a conversation. Nothing is read yet.
    pub fn open(target: Target) -> Self {
        let id = target.conversation_id.clone().unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        Session { target, id: id.into(), recording: None, turns: 0, runs: 0 }
    }

    /// The recording of the case that is tested.
    fn find(&self) -> Result<Arc<Recording>, Failure> {
        let folder = match &self.target.from {
            From::File(recording) => return Ok(recording.clone()),
            From::Folder(folder) => folder,
        };
        let wrong = |message: String| Failure::new(FailureKind::TestError, message);
        let Some(CaseName { suite, id }) = &self.target.case else {
            return Err(wrong("a folder of recordings serves cases, and this is none".to_string()));
        };
        let shown = |name: &str| format!("{}/{name}", self.target.shown.trim_end_matches('/'));
        for suite in [Some(suite.as_str()), None] {
            let name = file_name(suite, id);
            match recording::read(&folder.join(&name), &shown(&name)) {
                Ok(found) if found.suite.as_deref() == suite && found.case == *id => {
                    return Ok(Arc::new(found));
                }
                Ok(found) => {
                    let of = found.suite.map_or_else(String::new, |suite| format!(" of {suite}"));
                    let message = format!(
                        "{} should hold the recording of `{id}`, and says that it is of `{}`{of}",
                        shown(&name),
                        found.case
                    );
                    return Err(wrong(message)
                        .with_detail("give the file the name of its own case again, or record again"));
                }
                Err(NotRead::Missing) => {}
                Err(NotRead::Unreadable(error)) => {
                    return Err(wrong(format!("cannot read {}: {error}", shown(&name))));
                }
                Err(NotRead::Wrong(mistakes)) => {
                    let mut words = mistakes.into_iter().map(|mistake| mistake.to_string());
                    let first = words.next().unwrap_or_default();
                    let message = format!("this is no recording: {first}");
                    return Err(wrong(message).with_detail(words.collect::<Vec<_>>().join("\n")));
                }
            }
        }
        let message = format!("there is no recording of `{id}` of {suite} in {}", self.target.shown);
        let help = format!(
            "record it with `hotseat test --record {}` and the agent itself; it will be {}",
            self.target.shown,
            file_name(Some(suite), id)
        );
        Err(wrong(message).with_detail(help))
    }

    fn serve(&mut self, input: Input<'_>, recorder: &mut Recorder) -> Result<(), TurnError> {
        let Some(recording) = self.recording.clone() else {
            return Err(Failure::new(FailureKind::TestError, "no recording was read").into());
        };
        self.turns += 1;
        let Some(turn) = recording.turns.get(self.turns - 1) else {
            let message = format!(
                "the recording of `{}` has {} turn(s), and this is turn {}",
                recording.case,
                recording.turns.len(),
                self.turns
            );
            return Err(Failure::new(FailureKind::TestError, message).with_detail(RECORD_AGAIN).into());
        };
        if self.target.matching == Matching::Exact {
            self.compare(turn, &input, recorder)?;
        }
        let Input { turn_id, script, limits, .. } = input;
        let began = recorder.conversation().turns.last().map_or_else(|| recorder.now(), |turn| turn.started);
        let mut serving = Serving {
            turn_id,
            began,
            left: left(limits),
            matching: self.target.matching,
            events: &turn.events,
            run: None,
            runs: &mut self.runs,
            script,
            recorder,
        };
        serving.all(turn)
    }

    /// Whether the test says what it said when the turn was recorded.
    fn compare(&self, turn: &Turn, input: &Input<'_>, recorder: &Recorder) -> Result<(), Failure> {
        let redactor = recorder.redactor();
        let said = redactor.text(input.text);
        let attached: Vec<String> =
            media(input.content).map(|media| redactor.text(&Media::shown(media)).into_owned()).collect();
        let (what, now, then) = if said != turn.user {
            ("the user says something else", format!("{said:?}"), format!("{:?}", turn.user))
        } else if attached != turn.attachments {
            ("something else is attached", attached.join(", "), turn.attachments.join(", "))
        } else {
            return Ok(());
        };
        let place = turn.place.as_ref().map_or_else(String::new, |place| format!(" ({place})"));
        let message = format!("turn {}: {what} than when it was recorded", self.turns);
        let detail = format!("now: {now}\nrecorded{place}: {then}\n{AGAIN}");
        Err(Failure::new(FailureKind::TestError, message).with_detail(detail))
    }
}

const RECORD_AGAIN: &str = "record again with `hotseat test --record`";

/// How long the turn may still take.
fn left(limits: Limits<'_>) -> Duration {
    limits.deadline.saturating_duration_since(Instant::now())
}

/// A turn that is being served.
struct Serving<'a> {
    turn_id: Arc<str>,
    began: Offset,
    left: Duration,
    matching: Matching,
    events: &'a [Event],
    /// The run that goes on.
    run: Option<Arc<str>>,
    runs: &'a mut usize,
    script: &'a mut TurnScript,
    recorder: &'a mut Recorder,
}

impl Serving<'_> {
    /// Serves a turn from its start to its end.
    fn all(&mut self, turn: &Turn) -> Result<(), TurnError> {
        let served = self.events.iter().try_for_each(|event| self.event(event));
        if let (Ok(()) | Err(TurnError::Run(_)), Some(duration)) = (&served, turn.duration) {
            self.pass(duration)?;
        }
        served?;
        match &turn.unfinished {
            None => Ok(()),
            Some(reason) => {
                let message =
                    format!("when this turn was recorded it could not be held to its end: {reason}");
                Err(Failure::new(FailureKind::TestError, message).with_detail(RECORD_AGAIN).into())
            }
        }
    }

    /// Lets the time pass until `at`, or until the turn is given up.
    fn pass(&mut self, at: Duration) -> Result<(), TurnError> {
        if at > self.left {
            let end = self.at(self.left);
            self.recorder.skip_to(end);
            return Err(TurnError::Deadline);
        }
        let at = self.at(at);
        self.recorder.skip_to(at);
        Ok(())
    }

    /// A time of the turn as one of the conversation.
    fn at(&self, at: Duration) -> Offset {
        Offset(self.began.0 + Offset::from(at).0)
    }

    /// Records an event at its time.
    fn event(&mut self, event: &Event) -> Result<(), TurnError> {
        if let Some(at) = event.at {
            self.pass(at)?;
        }
        let started_us = event.started.map(|started| self.at(started));
        let turn_id = self.turn_id.clone();
        if self.run.is_none() {
            *self.runs += 1;
            let run_id: Arc<str> = format!("run-{}", self.runs).into();
            self.run = Some(run_id.clone());
            let turn_id = turn_id.clone();
            self.recorder.emit(AgentRunStarted { turn_id, run_id, protocol_version: None });
        }
        let payload: Payload = match &event.what {
            What::Message { text, calls_tools, subagent } => AssistantMessage {
                turn_id,
                message_id: uuid::Uuid::new_v4().to_string().into(),
                content: text.clone(),
                has_tool_use: *calls_tools,
                started_us,
                origin: Origin::Stream,
                subagent: subagent.as_deref().map(Arc::from),
            }
            .into(),
            What::Reasoning { text } => {
                let message_id = uuid::Uuid::new_v4().to_string().into();
                ReasoningMessage { turn_id, message_id, content: text.clone(), subagent: None }.into()
            }
            What::ToolCall { id, tool, arguments, origin, subagent } => {
                self.recorder.emit(ToolInvoked {
                    turn_id: turn_id.clone(),
                    tool_call_id: id.as_str().into(),
                    tool_name: tool.as_str().into(),
                    target_type: None,
                    target_id: None,
                    r#async: false,
                    input: None,
                    started_us,
                    origin: *origin,
                    subagent: subagent.as_deref().map(Arc::from),
                    message_id: None,
                });
                let (input, text) = match arguments {
                    Arguments::None => return Ok(()),
                    Arguments::Json(value) => (Some(value.clone()), None),
                    Arguments::Broken(text) => (None, Some(text.clone())),
                };
                ToolArguments { turn_id, tool_call_id: id.as_str().into(), input, text }.into()
            }
            What::ToolResult { id, result, origin: Origin::Client } => {
                let reply = self.answer(id, result, event)?;
                result_of(turn_id, id, reply, Origin::Client)
            }
            What::ToolResult { id, result, origin } => {
                let reply = result.clone().map_or_else(ToolReply::Error, ToolReply::Content);
                result_of(turn_id, id, reply, *origin)
            }
            What::Interrupt { id, reason, message, tool_call_id, value, .. } => InterruptRaised {
                turn_id,
                interrupt_id: id.as_str().into(),
                reason: reason.clone(),
                message: message.clone(),
                tool_call_id: tool_call_id.as_deref().map(Arc::from),
                value: value.clone(),
            }
            .into(),
            What::InterruptAnswer { id, payload } => {
                let payload = self.resume(id, payload.as_ref(), event)?;
                let status = if payload.is_some() { "resolved" } else { "cancelled" };
                InterruptAnswered {
                    turn_id,
                    interrupt_id: id.as_str().into(),
                    status: status.into(),
                    payload,
                }
                .into()
            }
            What::State { state } => StateSnapshot { turn_id, state: state.clone() }.into(),
            What::AwaitingInput { awaiting, hint } => {
                AwaitingInput { turn_id, awaiting: *awaiting, hint: hint.clone() }.into()
            }
            What::Note { text } => Note { turn_id, message: text.clone(), event: None }.into(),
            What::Finished { outcome, result, usage, finish_reason } => AgentRunFinished {
                turn_id,
                run_id: self.run.take().unwrap_or_default(),
                outcome: outcome.as_str().into(),
                result: result.clone(),
                usage: usage.clone(),
                finish_reason: finish_reason.as_deref().map(Arc::from),
            }
            .into(),
            What::Error { message, code } => {
                let error = ErrorInfo { code: code.clone(), message: message.clone(), retriable: None };
                self.recorder.emit(AgentRunFailed { turn_id, error: error.clone() });
                return Err(TurnError::Run(error));
            }
        };
        self.recorder.emit(payload);
        Ok(())
    }
}

impl Serving<'_> {
    /// What the test answers a call of a tool that it offers. A server that would be asked for it is not.
    fn answer(
        &mut self,
        id: &str,
        then: &Result<Value, String>,
        event: &Event,
    ) -> Result<ToolReply, TurnError> {
        let call = self.recorder.conversation().call(id);
        let (tool, arguments) =
            call.map(|call| (call.name.clone(), call.arguments.clone())).unwrap_or_default();
        let then = then.clone().map_or_else(ToolReply::Error, ToolReply::Content);
        let Some(now) = self.script.tool_reply(&tool, &arguments) else {
            return match self.script.tool_url(&tool) {
                Some(_) => Ok(then),
                None => Err(unanswered_call(&tool, &arguments).into()),
            };
        };
        let redactor = self.recorder.redactor();
        let now = match now {
            ToolReply::Content(output) => ToolReply::Content(redactor.json(output)),
            ToolReply::Error(message) => ToolReply::Error(redactor.text(&message).into_owned()),
        };
        if now != then && self.matching == Matching::Exact {
            let what = format!("a call of {tool}");
            return Err(answers_differ(&what, &shown_reply(&now), &shown_reply(&then), event).into());
        }
        Ok(now)
    }

    /// What the test answers an interrupt; none where it refuses.
    fn resume(&mut self, id: &str, then: Option<&Value>, event: &Event) -> Result<Option<Value>, TurnError> {
        let raised = self.events.iter().rev().find_map(|event| match &event.what {
            What::Interrupt { id: raised, reason, message, tool, tool_call_id, value } if raised == id => {
                Some((reason, message, tool, tool_call_id, value))
            }
            _ => None,
        });
        let Some((reason, message, tool, call, value)) = raised else {
            let message =
                format!("the recording answers interrupt {id} in another turn than it was raised in");
            return Err(Failure::new(FailureKind::TestError, message).into());
        };
        let of_call = call.as_deref().and_then(|id| self.recorder.conversation().call(id));
        let tool = tool.clone().or_else(|| of_call.map(|call| call.name.to_string()));
        let asked =
            AskedInterrupt { reason: reason.as_deref(), message: message.as_deref(), tool: tool.as_deref() };
        let now = match self.script.interrupt_reply(&asked) {
            None => return Err(unanswered_interrupt(&asked, value).into()),
            Some(InterruptReply::Resolved(payload)) => Some(self.recorder.redactor().json(payload)),
            Some(InterruptReply::Cancelled) => None,
        };
        if now.as_ref() != then && self.matching == Matching::Exact {
            let shown = |payload: Option<&Value>| match payload {
                Some(payload) => excerpt(&payload.to_string(), SHOWN),
                None => "it is cancelled".to_string(),
            };
            let what = format!("interrupt {id}");
            return Err(answers_differ(&what, &shown(now.as_ref()), &shown(then), event).into());
        }
        Ok(now)
    }
}

/// How much of an answer is shown.
const SHOWN: usize = 300;

fn shown_reply(reply: &ToolReply) -> String {
    match reply {
        ToolReply::Content(output) => excerpt(&output.to_string(), SHOWN),
        ToolReply::Error(message) => format!("the error {:?}", excerpt(message, SHOWN)),
    }
}

/// The failure of a test that answers something else than it did.
fn answers_differ(what: &str, now: &str, then: &str, event: &Event) -> Failure {
    let place = event.place.as_ref().map_or_else(String::new, |place| format!(" ({place})"));
    let message = format!("the test answers {what} in another way than when it was recorded");
    let detail = format!("now: {now}\nrecorded{place}: {then}\n{AGAIN}");
    Failure::new(FailureKind::TestError, message).with_detail(detail)
}

fn result_of(turn_id: Arc<str>, id: &str, reply: ToolReply, origin: Origin) -> Payload {
    let tool_call_id: Arc<str> = id.into();
    match reply {
        ToolReply::Content(output) => ToolCompleted { turn_id, tool_call_id, output, origin }.into(),
        ToolReply::Error(message) => {
            let error = ErrorInfo { code: None, message, retriable: None };
            ToolFailed { turn_id, tool_call_id, error, origin }.into()
        }
    }
}

impl AgentSession for Session {
    fn conversation_id(&self) -> Arc<str> {
        self.id.clone()
    }

    /// Whatever a case gives, the agent was given when it was recorded.
    fn carries(&self) -> Carries {
        Carries { history: true, attachments: true, options: true }
    }

    fn remember(&mut self, _messages: &[Message]) -> Result<(), Failure> {
        self.recording = Some(self.find()?);
        Ok(())
    }

    fn keeps_time(&self) -> bool {
        self.recording.as_ref().is_none_or(|recording| recording.is_timed())
    }

    fn say<'a>(
        &'a mut self,
        input: Input<'a>,
        recorder: &'a mut Recorder,
    ) -> Pending<'a, Result<(), TurnError>> {
        Box::pin(async move { self.serve(input, recorder) })
    }
}
