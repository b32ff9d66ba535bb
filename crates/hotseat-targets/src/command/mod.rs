//! Agents that are programs.
//!
//! With JSON lines, the process lives as long as the conversation: it receives one line per message and
//! prints one line per event. With plain text, it is started for each turn and its whole output is the reply.

mod program;
mod settings;
mod wire;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use hotseat_document::{LastOutput, excerpt};
use hotseat_model::StopReason;
use hotseat_trace::{AttemptFailure, FailureKind, Origin, TimeOffset};
use serde_json::{Value, json};

use self::program::RunningProgram;
pub use self::settings::{CommandProtocol, CommandTarget};
use self::wire::OutputLine;
use crate::connection::http::HttpClient;
use crate::connection::{TurnError, TurnLimits};
use crate::message::json_text::append_piece;
use crate::message::{
    ContentPart, ConversationMessage, ScriptedAnswers, ToolReply, media_parts, shown_id, unique_id,
};
use crate::process::{GroupCommand, ProjectServers};
use crate::recorder::TraceRecorder;
use crate::target::client_tools::{self, ClientCall};
use crate::target::template::{TemplateValues, attachments_json, fill_text, message_json, user_message};
use crate::target::{
    AgentInput, AgentSession, BoxFuture, HistoryMode, MAX_CLIENT_REQUESTS, ProtocolCapabilities, TurnFuture,
    TurnRecorder, check_unoffered_call, protocol_error, too_many_requests,
};

/// Maximum number of characters of the error output shown with a failure.
const MAX_SHOWN_CHARS: usize = 4000;
/// Time after `done` in which more output is an error of the turn, and not a part of the next one.
const LATE_OUTPUT_WAIT: Duration = Duration::from_millis(10);
/// Grace period for the program to end after its conversation.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// A session with a program.
pub struct CommandSession {
    target: CommandTarget,
    environment: Arc<BTreeMap<String, String>>,
    servers: ProjectServers,
    http: Arc<HttpClient>,
    id: Arc<str>,
    history: Vec<ConversationMessage>,
    /// Number of history messages that the program has received.
    sent: usize,
    turns: usize,
    /// The process of the conversation.
    program: Option<RunningProgram>,
    /// The announced calls, by the program's ids.
    calls: HashMap<String, AnnouncedCalls>,
    /// The shared state: the state of the case until the program prints one.
    state: Option<Value>,
    errors: LastOutput,
    /// True if a turn failed: the program is then ended without a grace period.
    has_failed: bool,
    /// True if the last turn ended with an `error` line, which a `done` may follow.
    may_print_done: bool,
}

impl CommandSession {
    /// Opens a session. The program is started with the first message.
    pub fn open(
        environment: Arc<BTreeMap<String, String>>,
        servers: ProjectServers,
        http: Arc<HttpClient>,
        target: CommandTarget,
    ) -> Self {
        let id = target.given.conversation_id.clone().unwrap_or_else(unique_id);
        let state = target.given.state.clone();
        CommandSession {
            target,
            environment,
            servers,
            http,
            id: id.into(),
            history: Vec::new(),
            sent: 0,
            turns: 0,
            program: None,
            calls: HashMap::new(),
            state,
            errors: LastOutput::default(),
            has_failed: false,
            may_print_done: false,
        }
    }

    async fn run_turn(&mut self, input: AgentInput<'_>) -> Result<(), TurnError> {
        let AgentInput { turn_id, text, content, options, script, limits, recorder, .. } = input;
        self.turns += 1;
        let mut telling = TurnRecorder::new(turn_id, recorder);
        let ended = match self.target.protocol {
            CommandProtocol::JsonLines => {
                let message = self.message_line(text, content, options, script);
                self.exchange_lines(&message, script, limits, &mut telling).await
            }
            CommandProtocol::Text => self.run_once(text, content, options, limits, &mut telling).await,
        };
        self.has_failed = ended.is_err();
        // Also if the turn ended with an error: the conversation may continue.
        let (said, ended) = telling.end(ended);
        self.history.push(user_message(content));
        self.history.extend(said);
        self.sent = self.history.len();
        ended
    }

    /// Sends a message and reads lines until the program has completed the turn.
    async fn exchange_lines(
        &mut self,
        message: &Value,
        script: &mut ScriptedAnswers,
        limits: TurnLimits<'_>,
        telling: &mut TurnRecorder<'_>,
    ) -> Result<(), TurnError> {
        let mut may_print_done = std::mem::take(&mut self.may_print_done);
        // A program that has just started may print its reply before it reads the message: whether that arrives before or
        // after the message is chance.
        if let Some(program) = &mut self.program
            && let Some(line) = program.unprompted_output()
            && !(may_print_done && wire::is_done(&line))
        {
            return Err(printed_after_done(&line).into());
        }
        if self.program.is_none() {
            self.program = Some(self.start(&self.target.command)?);
        }
        let Some(program) = &mut self.program else { return Ok(()) };
        program.send_line(message);
        let run_id: Arc<str> = format!("message-{}", self.turns).into();
        telling.run_started(&run_id);
        let mut heard = CommandTurn::default();
        let ended = loop {
            match program.next_line(limits).await {
                Ok(Some(line)) if line.trim().is_empty() => {}
                // It belongs to the `error` line of the turn before.
                Ok(Some(line)) if std::mem::take(&mut may_print_done) && wire::is_done(&line) => {}
                Ok(Some(line)) => {
                    telling.set_arrival(program.last_arrival());
                    heard.lines += 1;
                    if self.target.keep_raw {
                        telling
                            .record_raw(serde_json::from_str(&line).unwrap_or(Value::String(line.clone())));
                    }
                    let printed = line;
                    let line = match wire::parse_line(&printed, heard.lines, self.turns) {
                        Ok(line) => line,
                        Err(failure) => break Err(failure.into()),
                    };
                    if let OutputLine::State(state) = &line {
                        self.state = Some(state.clone());
                    }
                    self.may_print_done =
                        matches!(line, OutputLine::Error { .. }) && !wire::is_done(&printed);
                    heard.is_flushed_late =
                        matches!(line, OutputLine::ToolCall { .. }) && program.is_flushed_late();
                    match heard.process_line(line, &mut self.calls, script, telling) {
                        Ok(LineAction::Done) => break Ok(()),
                        Ok(LineAction::More) => {}
                        Ok(LineAction::Answer(call)) => {
                            let asked =
                                ClientCall { id: &call.id, name: &call.name, arguments: &call.arguments };
                            telling.clear_arrival();
                            let answer = client_tools::answer_call(asked, script, &self.http, limits).await;
                            match answer {
                                Ok(answer) => {
                                    program.send_line(&call.result_line(&answer));
                                    telling.record_result(&call.trace_id, answer, Origin::Client);
                                }
                                Err(error) => break Err(error),
                            }
                        }
                        Err(error) => break Err(error),
                    }
                }
                Ok(None) => {
                    let how = program.describe_end().await;
                    let message = match heard.lines {
                        0 => format!("{how} without a single line"),
                        n => format!("{how} after {n} line(s), without `done`"),
                    };
                    break Err(protocol_error(message));
                }
                Err(error) => break Err(error),
            }
        };
        // Data before an error is kept.
        heard.end_message(telling);
        ended?;
        let has_calls = telling.has_calls();
        telling.check_finish_reason(heard.finish_reason.as_deref(), has_calls)?;
        telling.run_finished(&run_id, heard.finish_reason);
        match program.late_output(LATE_OUTPUT_WAIT).await {
            Some(printed) => Err(printed_after_done(&printed).into()),
            None => Ok(()),
        }
    }

    fn start(&self, command: &[String]) -> Result<RunningProgram, AttemptFailure> {
        let group_command = GroupCommand::new(command, &self.environment, self.servers);
        RunningProgram::start(&self.target, group_command, &self.errors, self.http.reader())
    }

    /// Returns the message line for the program.
    fn message_line(
        &self,
        text: &str,
        content: &[ContentPart],
        options: Option<&Value>,
        script: &ScriptedAnswers,
    ) -> Value {
        let mut message = json!({
            "type": "message", "conversation_id": self.id, "turn": self.turns, "text": text,
        });
        let new = &self.history[self.sent..];
        let told = match self.target.history {
            HistoryMode::Full => Some(&self.history[..]),
            // Messages before the first turn are sent once.
            HistoryMode::Delta => Some(new).filter(|new| !new.is_empty()),
        };
        if let Some(told) = told {
            message["history"] = told.iter().map(message_json).collect();
        }
        if media_parts(content).next().is_some() {
            message["attachments"] = attachments_json(content);
        }
        let given = &self.target.given;
        let members = [
            ("options", options),
            ("state", self.state.as_ref()),
            ("context", given.context.as_ref()),
            ("forwardedProps", given.forwarded_props.as_ref()),
            ("ctx", given.identity.explicit()),
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

    /// Runs the program for one turn; its whole output is the reply.
    async fn run_once(
        &mut self,
        text: &str,
        content: &[ContentPart],
        options: Option<&Value>,
        limits: TurnLimits<'_>,
        telling: &mut TurnRecorder<'_>,
    ) -> Result<(), TurnError> {
        let values = TemplateValues {
            message: text,
            content,
            history: &self.history,
            options,
            conversation_id: Some(&json!(self.id)),
            turn: self.turns,
            case_inputs: &self.target.given,
        };
        let command: Vec<String> =
            self.target.command.iter().map(|word| fill_text(word, &values, str::to_string)).collect();
        self.errors = LastOutput::default();
        let mut program = self.start(&command)?;
        let run_id: Arc<str> = format!("message-{}", self.turns).into();
        telling.run_started(&run_id);
        if !self.target.has_message_argument() {
            program.write(text.as_bytes().to_vec());
        }
        program.close_input();
        let printed = program.read_all(limits).await?;
        telling.set_arrival(program.last_arrival());
        if self.target.keep_raw {
            telling.record_raw(Value::String(printed.clone()));
        }
        telling.record_message(printed.trim_end_matches(['\r', '\n']).to_string(), None, None);
        match program.wait(limits).await? {
            status if status.success() => {}
            status => {
                let message = format!("the program failed ({status})");
                return Err(telling.fail_run(message, None));
            }
        }
        telling.run_finished(&run_id, None);
        Ok(())
    }

    /// Closes the program's input after the last turn, and fails if it prints anything else.
    async fn check_remaining_output(&mut self) -> Result<(), AttemptFailure> {
        let Some(program) = self.program.as_mut().filter(|_| !self.has_failed) else { return Ok(()) };
        let rest = program.remaining_output(SHUTDOWN_GRACE).await;
        if rest.is_empty() { Ok(()) } else { Err(printed_after_done(&rest)) }
    }

    async fn end(&mut self) {
        if let Some(program) = self.program.take() {
            program.shut_down(if self.has_failed { Duration::ZERO } else { SHUTDOWN_GRACE }).await;
        }
    }
}

fn printed_after_done(words: &str) -> AttemptFailure {
    let message = format!("the program printed something after `done`: {}", excerpt(words, 200));
    AttemptFailure::new(FailureKind::ProtocolError, message)
}

impl AgentSession for CommandSession {
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

    fn check_trailing_output(&mut self) -> BoxFuture<'_, Result<(), AttemptFailure>> {
        Box::pin(self.check_remaining_output())
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(self.end())
    }

    fn diagnostic_output(&self) -> Option<String> {
        let text = self.errors.text();
        let from = text.char_indices().rev().nth(MAX_SHOWN_CHARS).map_or(0, |(at, _)| at);
        let mark = if from > 0 { "…" } else { "" };
        (!text.is_empty()).then(|| format!("standard error of the agent:\n{mark}{}", &text[from..]))
    }
}

/// Folds the output lines of a turn into trace payloads. For fuzzing only; not part of the public API.
#[doc(hidden)]
pub fn fold_lines(printed: &[u8]) -> Vec<hotseat_trace::Payload> {
    let mut recorder = TraceRecorder::new(crate::recorder::SecretRedactor::default(), true);
    let mut telling = TurnRecorder::new("turn-1".into(), &mut recorder);
    let (mut heard, mut calls, script) =
        (CommandTurn::default(), HashMap::new(), ScriptedAnswers::new(Vec::new()));
    for (number, line) in String::from_utf8_lossy(printed).lines().enumerate() {
        let Ok(line) = wire::parse_line(line, number as u64 + 1, 1) else { break };
        match heard.process_line(line, &mut calls, &script, &mut telling) {
            Ok(LineAction::More) => {}
            Ok(LineAction::Done | LineAction::Answer(_)) | Err(_) => break,
        }
    }
    heard.end_message(&mut telling);
    recorder.finish().1.into_iter().map(|record| record.event.payload).collect()
}

/// State of a turn.
#[derive(Default)]
struct CommandTurn {
    lines: u64,
    /// True if the program shows its calls only at the end of the turn.
    is_flushed_late: bool,
    /// The message that is being received in pieces.
    open_message: Option<(String, TimeOffset)>,
    answered_calls: usize,
    /// Trace ids and tools of calls announced with an id, which means that a result follows.
    announced: Vec<(Arc<str>, String)>,
    /// The last statement whether the agent waits for input.
    awaiting: Option<bool>,
    finish_reason: Option<Arc<str>>,
}

/// The calls with one id of the program: those of the turn in which it was last announced.
#[derive(Debug, Default)]
struct AnnouncedCalls {
    trace_ids: Vec<Arc<str>>,
    /// Number of calls at the beginning that have results.
    answered: usize,
}

impl AnnouncedCalls {
    fn add(&mut self, trace_id: Arc<str>, telling: &TurnRecorder<'_>) {
        if self.trace_ids.last().is_some_and(|last| !telling.is_call_of_turn(last)) {
            *self = AnnouncedCalls::default();
        }
        self.trace_ids.push(trace_id);
    }

    /// Returns the first call without a result.
    fn first_open(&mut self, telling: &TurnRecorder<'_>) -> Option<Arc<str>> {
        let rest = &self.trace_ids[self.answered..];
        self.answered += rest.iter().take_while(|call| telling.is_answered(call)).count();
        self.trace_ids.get(self.answered).cloned()
    }
}

/// Action after a line.
enum LineAction {
    More,
    /// The program has completed the turn.
    Done,
    /// The program awaits the result of a call.
    Answer(OfferedCall),
}

/// A call of a tool that the test offers.
struct OfferedCall {
    id: String,
    trace_id: Arc<str>,
    name: String,
    arguments: Value,
}

impl OfferedCall {
    fn result_line(&self, answer: &ToolReply) -> Value {
        match answer {
            ToolReply::Content(result) => json!({"type": "tool_result", "id": self.id, "result": result}),
            ToolReply::Error(error) => json!({"type": "tool_result", "id": self.id, "error": error}),
        }
    }
}

impl CommandTurn {
    /// Processes a line.
    fn process_line(
        &mut self,
        line: OutputLine,
        calls: &mut HashMap<String, AnnouncedCalls>,
        script: &ScriptedAnswers,
        telling: &mut TurnRecorder<'_>,
    ) -> Result<LineAction, TurnError> {
        if !matches!(line, OutputLine::Delta(_)) {
            self.end_message(telling);
        }
        match line {
            OutputLine::Delta(piece) => {
                let (text, _) = self.open_message.get_or_insert_with(|| (String::new(), telling.now()));
                append_piece(text, &piece);
            }
            OutputLine::Text(text) => telling.record_message(text, None, None),
            OutputLine::Reasoning(text) => telling.record_reasoning(text),
            OutputLine::ToolCall { id, name, arguments, reply } => {
                let has_times = !self.is_flushed_late && reply.is_none();
                let origin = if has_times { Origin::Stream } else { Origin::Snapshot };
                let trace_id = telling.record_call(id.as_deref().unwrap_or(""), &name, origin, None);
                telling.record_arguments(&trace_id, arguments.clone());
                let is_announced = id.is_some();
                let id = id.unwrap_or_else(|| trace_id.to_string());
                calls.entry(id.clone()).or_default().add(trace_id.clone(), telling);
                match reply {
                    Some(reply) => telling.record_result(&trace_id, reply.parsed(), Origin::Stream),
                    None if script.has_tool(&name) => {
                        self.answered_calls += 1;
                        if self.answered_calls > MAX_CLIENT_REQUESTS {
                            return Err(too_many_requests().into());
                        }
                        let arguments = arguments.to_value();
                        return Ok(LineAction::Answer(OfferedCall { id, trace_id, name, arguments }));
                    }
                    None if is_announced => self.announced.push((trace_id, name)),
                    None => {}
                }
            }
            OutputLine::ToolResult { id, reply } => {
                let failed =
                    |words: &str| protocol_error(format!("a result of tool call {}, {words}", shown_id(&id)));
                let known = calls.get_mut(&id).ok_or_else(|| failed("which was never announced"))?;
                let trace_id = known.first_open(telling).ok_or_else(|| match known.trace_ids.len() {
                    1 => failed("which already has one"),
                    calls => failed(&format!("the id of {calls} calls that already have one each")),
                })?;
                telling.record_result(&trace_id, reply.parsed(), Origin::Stream);
            }
            OutputLine::AwaitingInput { awaiting, hint } => {
                self.awaiting = Some(awaiting);
                telling.record_awaiting(awaiting, hint);
            }
            OutputLine::State(state) => telling.record_state(state),
            // Each request of the turn may have a line of its own.
            OutputLine::Usage(usage) => telling.add_usage(usage),
            OutputLine::Error { message, code } => return Err(telling.fail_run(message, code)),
            OutputLine::Done { awaiting, hint, finish_reason } => {
                if let Some(awaiting) = awaiting {
                    telling.record_awaiting(awaiting, hint);
                }
                self.finish_reason = finish_reason.map(Arc::from);
                let stop = self.finish_reason.as_deref().map(StopReason::from_provider);
                let awaiting = awaiting.or(self.awaiting);
                // An agent that awaits input may continue its call after the user has answered.
                let mut missing = self.announced.iter().filter(|(id, tool)| {
                    awaiting != Some(true) && !script.asks_user(tool) && !telling.is_answered(id)
                });
                if let Some((id, tool)) = missing.next() {
                    if stop == Some(StopReason::ToolUse) {
                        check_unoffered_call(tool, script)?;
                    }
                    return Err(protocol_error(format!(
                        "tool call {id} of {tool} was announced with an `id`, but no result came before `done`"
                    )));
                }
                return Ok(LineAction::Done);
            }
        }
        Ok(LineAction::More)
    }

    /// Records the message received in pieces.
    fn end_message(&mut self, telling: &mut TurnRecorder<'_>) {
        if let Some((text, began)) = self.open_message.take() {
            telling.record_message(text, Some(began), None);
        }
    }
}
