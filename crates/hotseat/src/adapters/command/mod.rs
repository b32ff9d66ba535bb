//! An agent that is a program.
//!
//! As a speaker of JSON lines it lives as long as the conversation: it is sent a line for each message and prints a
//! line for each thing that it says or does. As a speaker of plain text it is started for each turn, and all that it
//! prints is its reply.

mod program;
mod wire;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::{ErrorInfo, Failure, FailureKind, Offset, Origin};
use serde_json::{Value, json};

use self::program::{Program, ReadError};
use self::wire::Line;
use super::client_tools::{self, ClientCall};
use super::http::{self, Http};
use super::telling::{Arguments, Telling};
use super::template::{
    Given, Placeholder, Values, attachments_as_json, fill_text, message_as_json, references, user_message,
};
use super::{
    AgentSession, Carries, History, Input, Limits, MOST_REQUESTS, Pending, TurnError, asked_too_often,
    excerpt,
};
use crate::process::{GroupCommand, LastOutput, ProjectServers};
use crate::session::{Message, Part, Recorder, ToolReply, TurnScript, media, output_of_content};

/// How much of the error output is shown with a failure.
const SHOWN: usize = 4000;
/// How long a program is given to end in order once its conversation is over.
const GRACE: Duration = Duration::from_secs(2);

/// An agent that is a program.
#[derive(Debug, Clone)]
pub struct Target {
    /// The program and its arguments; with [`Speaks::Text`] these are templates.
    pub command: Vec<String>,
    /// What it understands.
    pub speaks: Speaks,
    /// Its working folder.
    pub folder: PathBuf,
    /// Environment variables added for it.
    pub env: BTreeMap<String, String>,
    /// Which part of the conversation a message carries.
    pub history: History,
    /// What it can be told.
    pub carries: Carries,
    /// What a case gives.
    pub given: Given,
    /// Whether everything received is kept in the trace.
    pub keep_raw: bool,
}

/// What a program understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    /// A JSON object a line, one process a conversation.
    JsonLines,
    /// Plain text, one process a turn.
    Text,
}

/// A conversation with an agent that is a program.
pub struct Session {
    target: Target,
    environment: Arc<BTreeMap<String, String>>,
    servers: ProjectServers,
    http: Arc<Http>,
    id: Arc<str>,
    history: Vec<Message>,
    /// How much of it the program has been told.
    known: usize,
    turns: usize,
    /// The process that lives as long as the conversation.
    program: Option<Program>,
    /// The calls that were announced, by the program's ids.
    calls: HashMap<String, Arc<str>>,
    errors: LastOutput,
    /// A turn could not be held to its end: nothing more is expected of the program.
    broken: bool,
}

impl Session {
    /// Opens a conversation. Nothing is started before the first message.
    pub fn open(
        environment: Arc<BTreeMap<String, String>>,
        servers: ProjectServers,
        http: Arc<Http>,
        target: Target,
    ) -> Self {
        let id = target.given.conversation_id.clone().unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        Session {
            target,
            environment,
            servers,
            http,
            id: id.into(),
            history: Vec::new(),
            known: 0,
            turns: 0,
            program: None,
            calls: HashMap::new(),
            errors: LastOutput::default(),
            broken: false,
        }
    }

    async fn hold_turn(&mut self, input: Input<'_>, recorder: &mut Recorder) -> Result<(), TurnError> {
        self.turns += 1;
        let content = input.content;
        let mut telling = Telling::new(input.turn_id.clone(), recorder);
        let held = match self.target.speaks {
            Speaks::JsonLines => self.exchange_lines(input, &mut telling).await,
            Speaks::Text => self.run_once(&input, &mut telling).await,
        };
        self.broken = held.is_err();
        held?;
        let said = telling.told()?;
        self.history.push(user_message(content));
        self.history.extend(said);
        self.known = self.history.len();
        Ok(())
    }

    /// Sends a message and takes in lines until the program is done with it.
    async fn exchange_lines(&mut self, input: Input<'_>, telling: &mut Telling<'_>) -> Result<(), TurnError> {
        let Input { text, content, options, script, limits, .. } = input;
        if self.program.is_none() {
            self.program = Some(self.start(&self.target.command)?);
        }
        let message = self.message(text, content, options, script);
        let Some(program) = &mut self.program else { return Ok(()) };
        if let Some(line) = program.unasked() {
            return Err(printed_after_done(&line).into());
        }
        program.send(&message);
        let run_id: Arc<str> = format!("message-{}", self.turns).into();
        telling.run_started(&run_id);
        let mut heard = Heard::default();
        let ended = loop {
            match program.line(limits).await {
                Ok(Some(line)) if line.trim().is_empty() => {}
                Ok(Some(line)) => {
                    telling.as_of(program.at());
                    heard.lines += 1;
                    if self.target.keep_raw {
                        telling.raw(serde_json::from_str(&line).unwrap_or(Value::String(line.clone())));
                    }
                    let line = match wire::read(&line, heard.lines, self.turns) {
                        Ok(line) => line,
                        Err(failure) => break Err(failure.into()),
                    };
                    match heard.take_in(line, &mut self.calls, script, telling) {
                        Ok(Next::Done) => break Ok(()),
                        Ok(Next::More) => {}
                        Ok(Next::Answer(call)) => {
                            let asked =
                                ClientCall { id: &call.id, name: &call.name, arguments: &call.arguments };
                            telling.as_of_now();
                            let answer = client_tools::answer(asked, script, &self.http, limits).await;
                            match answer {
                                Ok(answer) => {
                                    program.send(&call.answered(&answer));
                                    telling.result(&call.trace_id, answer, Origin::Client);
                                }
                                Err(error) => break Err(error),
                            }
                        }
                        Err(error) => break Err(error),
                    }
                }
                Ok(None) => {
                    let how = program.how_it_ended().await;
                    let message = match heard.lines {
                        0 => format!("{how} without a single line"),
                        n => format!("{how} after {n} line(s), without `done`"),
                    };
                    break Err(Failure::new(FailureKind::ProtocolError, message).into());
                }
                Err(error) => break Err(reading_failed(error, limits)),
            }
        };
        // What came before a fault is kept.
        heard.end_message(telling);
        ended?;
        telling.run_finished(&run_id, heard.usage, heard.finish_reason);
        Ok(())
    }

    fn start(&self, command: &[String]) -> Result<Program, Failure> {
        let group_command = GroupCommand::new(command, &self.environment, self.servers);
        Program::start(&self.target, group_command, &self.errors, self.http.reading())
    }

    /// The line that tells the program what the user says.
    fn message(&self, text: &str, content: &[Part], options: Option<&Value>, script: &TurnScript) -> Value {
        let mut message = json!({
            "type": "message", "conversation_id": self.id, "turn": self.turns, "text": text,
        });
        let new = &self.history[self.known..];
        let told = match self.target.history {
            History::Full => Some(&self.history[..]),
            // What was said before the first turn has to be told once.
            History::Delta => Some(new).filter(|new| !new.is_empty()),
        };
        if let Some(told) = told {
            message["history"] = told.iter().map(message_as_json).collect();
        }
        if media(content).next().is_some() {
            message["attachments"] = attachments_as_json(content);
        }
        let given = &self.target.given;
        let members = [
            ("options", options),
            ("state", given.state.as_ref()),
            ("context", given.context.as_ref()),
            ("forwardedProps", given.forwarded_props.as_ref()),
            ("ctx", given.identity.given()),
        ];
        for (key, value) in members {
            if let Some(value) = value {
                message[key] = value.clone();
            }
        }
        let tools = script.tools_as_json();
        if tools.as_array().is_some_and(|tools| !tools.is_empty()) {
            message["tools"] = tools;
        }
        message
    }

    /// Starts the program for one turn; all that it prints is the reply.
    async fn run_once(&mut self, input: &Input<'_>, telling: &mut Telling<'_>) -> Result<(), TurnError> {
        let Input { text, content, options, limits, .. } = *input;
        let values = Values {
            message: text,
            content,
            history: &self.history,
            options,
            conversation_id: Some(&self.id),
            turn: self.turns,
            given: &self.target.given,
        };
        let command: Vec<String> =
            self.target.command.iter().map(|word| fill_text(word, &values, str::to_string)).collect();
        self.errors = LastOutput::default();
        let mut program = self.start(&command)?;
        let run_id: Arc<str> = format!("message-{}", self.turns).into();
        telling.run_started(&run_id);
        if !tells_message(&self.target.command) {
            program.write(text.as_bytes().to_vec());
        }
        program.close_input();
        let printed = program.all(limits).await.map_err(|error| reading_failed(error, limits))?;
        telling.as_of(program.at());
        if self.target.keep_raw {
            telling.raw(Value::String(printed.clone()));
        }
        telling.message(printed.trim_end_matches(['\r', '\n']).to_string(), None, None);
        match program.ended(limits).await? {
            status if status.success() => {}
            status => {
                let message = format!("the program failed ({status})");
                return Err(Failure::new(FailureKind::AgentError, message).into());
            }
        }
        telling.run_finished(&run_id, None, None);
        Ok(())
    }

    /// The last turn is over: a program whose input ends has nothing more to say.
    async fn hear_the_rest(&mut self) -> Result<(), Failure> {
        let Some(program) = self.program.as_mut().filter(|_| !self.broken) else { return Ok(()) };
        let rest = program.rest(GRACE).await;
        if rest.is_empty() { Ok(()) } else { Err(printed_after_done(&rest)) }
    }

    async fn end(&mut self) {
        if let Some(program) = self.program.take() {
            program.end(if self.broken { Duration::ZERO } else { GRACE }).await;
        }
    }
}

fn printed_after_done(words: &str) -> Failure {
    let message = format!("the program printed something after `done`: {}", excerpt(words, 200));
    Failure::new(FailureKind::ProtocolError, message)
}

/// Whether the arguments of a command carry what the user says.
fn tells_message(command: &[String]) -> bool {
    let mut carried = command.iter().flat_map(|word| references(word).unwrap_or_default());
    carried.any(|reference| matches!(reference.to, Placeholder::Message | Placeholder::Messages))
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

    fn settle(&mut self) -> Pending<'_, Result<(), Failure>> {
        Box::pin(self.hear_the_rest())
    }

    fn close(&mut self) -> Pending<'_, ()> {
        Box::pin(self.end())
    }

    fn last_words(&self) -> Option<String> {
        let text = self.errors.text();
        let text = text.trim_end();
        let from = text.char_indices().rev().nth(SHOWN).map_or(0, |(at, _)| at);
        let mark = if from > 0 { "…" } else { "" };
        (!text.is_empty()).then(|| format!("standard error of the program:\n{mark}{}", &text[from..]))
    }
}

/// Takes in the lines of a turn as a program would print them and returns what is recorded. For the project's own
/// fuzzing; not part of the interface.
#[doc(hidden)]
pub fn fold_lines(printed: &[u8]) -> Vec<hotseat_trace::Payload> {
    let mut recorder = Recorder::new(crate::session::Redactor::default(), true);
    let mut telling = Telling::new("turn-1".into(), &mut recorder);
    let (mut heard, mut calls, script) = (Heard::default(), HashMap::new(), TurnScript::new(Vec::new()));
    for (number, line) in String::from_utf8_lossy(printed).lines().enumerate() {
        let Ok(line) = wire::read(line, number as u64 + 1, 1) else { break };
        match heard.take_in(line, &mut calls, &script, &mut telling) {
            Ok(Next::More) => {}
            Ok(Next::Done | Next::Answer(_)) | Err(_) => break,
        }
    }
    heard.end_message(&mut telling);
    recorder.finish().1.into_iter().map(|record| record.event.payload).collect()
}

/// What was heard in a turn.
#[derive(Default)]
struct Heard {
    lines: u64,
    /// The message whose pieces are coming in.
    arriving: Option<(String, Offset)>,
    answered: usize,
    /// Calls that were announced with an id, which says that a result follows: their ids in the trace and their tools.
    announced: Vec<(Arc<str>, String)>,
    usage: Option<Value>,
    finish_reason: Option<Arc<str>>,
}

/// What follows a line.
enum Next {
    More,
    /// The program is done with the turn.
    Done,
    /// The program waits for the result of a call.
    Answer(Offered),
}

/// A call of a tool that the test offers.
struct Offered {
    id: String,
    trace_id: Arc<str>,
    name: String,
    arguments: Value,
}

impl Offered {
    /// The line that answers it.
    fn answered(&self, answer: &ToolReply) -> Value {
        match answer {
            ToolReply::Content(result) => json!({"type": "tool_result", "id": self.id, "result": result}),
            ToolReply::Error(error) => json!({"type": "tool_result", "id": self.id, "error": error}),
        }
    }
}

impl Heard {
    /// Takes in a line.
    fn take_in(
        &mut self,
        line: Line,
        calls: &mut HashMap<String, Arc<str>>,
        script: &TurnScript,
        telling: &mut Telling<'_>,
    ) -> Result<Next, TurnError> {
        if !matches!(line, Line::Delta(_)) {
            self.end_message(telling);
        }
        match line {
            Line::Delta(piece) => {
                self.arriving.get_or_insert_with(|| (String::new(), telling.now())).0.push_str(&piece);
            }
            Line::Text(text) => telling.message(text, None, None),
            Line::Reasoning(text) => telling.reasoning(text),
            Line::ToolCall { id, name, arguments, reply } => {
                let trace_id = telling.call(id.as_deref().unwrap_or(""), &name, None);
                let arguments = Arguments::of_json(arguments);
                telling.arguments(&trace_id, arguments.clone());
                let is_announced = id.is_some();
                let id = id.unwrap_or_else(|| trace_id.to_string());
                calls.insert(id.clone(), trace_id.clone());
                match reply {
                    Some(reply) => telling.result(&trace_id, with_json(reply), Origin::Stream),
                    None if script.has_tool(&name) => {
                        self.answered += 1;
                        if self.answered > MOST_REQUESTS {
                            return Err(asked_too_often().into());
                        }
                        let arguments = arguments.value();
                        return Ok(Next::Answer(Offered { id, trace_id, name, arguments }));
                    }
                    None if is_announced => self.announced.push((trace_id, name)),
                    None => {}
                }
            }
            Line::ToolResult { id, reply } => {
                let failed = |words: &str| {
                    let message = format!("a result of tool call {id}, {words}");
                    TurnError::from(Failure::new(FailureKind::ProtocolError, message))
                };
                let trace_id = calls.get(&id).ok_or_else(|| failed("which was never announced"))?;
                if telling.is_answered(trace_id) {
                    return Err(failed("which has one already"));
                }
                telling.result(trace_id, with_json(reply), Origin::Stream);
            }
            Line::AwaitingInput { awaiting, hint } => telling.awaiting(awaiting, hint),
            Line::State(state) => telling.state(state),
            Line::Usage(usage) => self.usage = Some(usage),
            Line::Error { message, code } => {
                let error = ErrorInfo { code, message, retriable: None };
                telling.run_failed(&error);
                return Err(TurnError::Run(error));
            }
            Line::Done { awaiting, hint, finish_reason } => {
                if let Some(awaiting) = awaiting {
                    telling.awaiting(awaiting, hint);
                }
                self.finish_reason = finish_reason.map(Arc::from);
                // An agent that waits for the user may go on with its call when the user has answered.
                let mut missing = self.announced.iter().filter(|(id, tool)| {
                    awaiting != Some(true) && !script.asks_user(tool) && !telling.is_answered(id)
                });
                if let Some((id, tool)) = missing.next() {
                    let message = format!(
                        "tool call {id} of {tool} was announced with an `id`, and no result came before `done`"
                    );
                    return Err(Failure::new(FailureKind::ProtocolError, message).into());
                }
                return Ok(Next::Done);
            }
        }
        Ok(Next::More)
    }

    /// Records the message whose pieces have come in.
    fn end_message(&mut self, telling: &mut Telling<'_>) {
        if let Some((text, began)) = self.arriving.take() {
            telling.message(text, Some(began), None);
        }
    }
}

/// A result as it was printed; text that is JSON is taken as that.
fn with_json(reply: ToolReply) -> ToolReply {
    match reply {
        ToolReply::Content(content) => ToolReply::Content(output_of_content(&content)),
        ToolReply::Error(_) => reply,
    }
}

fn reading_failed(error: ReadError, limits: Limits<'_>) -> TurnError {
    match error {
        ReadError::Deadline => TurnError::Deadline,
        ReadError::Silent => http::silent(limits.idle).into(),
        ReadError::Limit(failure) => failure.into(),
        ReadError::Wrong(message) => Failure::new(FailureKind::ProtocolError, message).into(),
    }
}
