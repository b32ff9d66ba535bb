//! JSON lines protocol: the client writes one message a line and reads the events of the agent.
//!
//! The format suits a program that a client starts as a child process: it needs no port, and its
//! conversations end with it unless they are stored. Messages are sent whole, because a written line cannot
//! be withdrawn.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::io::{self, Write};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use hotseat_trace::plain_text;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::sync::mpsc::Receiver;

use super::InputLine;
use super::client::{
    ClientExchange, ClientInput, ClientToolAnswer, ClientUpdate, ExchangeEnd, ExchangeStep,
    PendingClientCall, RequestError, RequestErrorKind, ServedAgent, check_id, check_user_text, client_calls,
    client_tools, content_string, describe_problem, host_error, parse_json,
};
use crate::conversation::{ContextEntry, ConversationState, OperationAddress};
use crate::ids::ConversationId;
use crate::live::ConversationHandle;

/// Reason given to the agent when it asks for an approval.
const NO_APPROVAL_REASON: &str = "this client cannot ask for approvals";

/// Lines that a client may write.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", expecting = "an object")]
enum LineRequest {
    Message(Box<LineMessage>),
    ToolResult {
        id: String,
        #[serde(default)]
        result: Value,
        error: Option<String>,
    },
}

/// Message of the user.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct LineMessage {
    text: String,
    conversation_id: Option<String>,
    /// Label that the client gives to the turn; repeated in its output lines.
    turn: Option<Value>,
    #[serde(default)]
    history: Vec<Value>,
    #[serde(default)]
    attachments: Vec<Value>,
    #[serde(default)]
    options: Value,
    #[serde(default)]
    ctx: Value,
    state: Option<Value>,
    #[serde(default)]
    context: Vec<ContextEntry>,
    #[serde(default)]
    tools: Vec<Value>,
}

/// Reason why a turn stops early.
enum TurnAbort {
    /// The request was refused. The client receives the reason and may continue.
    Refused(RequestError),
    /// The input has ended.
    InputClosed,
    /// The output cannot be written.
    OutputClosed(io::Error),
}

impl From<RequestError> for TurnAbort {
    fn from(refusal: RequestError) -> TurnAbort {
        TurnAbort::Refused(refusal)
    }
}

impl From<io::Error> for TurnAbort {
    fn from(error: io::Error) -> TurnAbort {
        TurnAbort::OutputClosed(error)
    }
}

/// Maximum number of concurrent turns; the next message waits.
const MAX_CONCURRENT_TURNS: usize = 64;

/// Maximum length of an input line, in bytes.
pub const MAX_LINE_BYTES: usize = 8 * 1024 * 1024;

/// Answers the lines of `input` on `output` until the input ends. Turns in progress are completed.
///
/// Messages are answered one after the other. While a turn waits for asynchronous tools, the next message
/// starts a concurrent turn.
///
/// # Errors
/// If the output cannot be written.
pub async fn serve_lines(
    agent: &ServedAgent,
    input: &mut Receiver<InputLine>,
    output: &mut dyn Write,
) -> io::Result<()> {
    let desk = LineServer {
        agent,
        // The conversation of messages without an id.
        default_conversation: ConversationId::from(format!("lines-{}", uuid::Uuid::new_v4())),
        output: RefCell::new(output),
        changed: Notify::new(),
        input_over: Cell::new(false),
    };
    let mut running: Vec<RunningTurn<'_>> = Vec::new();
    while !desk.input_over.get() || !running.is_empty() {
        let may_read = !desk.input_over.get()
            && running.len() < MAX_CONCURRENT_TURNS
            && running.iter().all(|turn| turn.status.accepts_input());
        tokio::select! {
            ended = next_finished(&mut running), if !running.is_empty() => ended?,
            () = desk.changed.notified() => {}
            line = input.recv(), if may_read => match line {
                Some(line) => desk.handle_line(line, &mut running)?,
                None => {
                    desk.input_over.set(true);
                    running.iter().for_each(|turn| turn.status.answered.notify_one());
                }
            },
        }
    }
    Ok(())
}

/// State shared by all turns.
struct LineServer<'a> {
    agent: &'a ServedAgent,
    default_conversation: ConversationId,
    output: RefCell<&'a mut dyn Write>,
    /// Notified when the status of a turn changes.
    changed: Notify,
    input_over: Cell<bool>,
}

/// Turn in progress.
struct RunningTurn<'d> {
    conversation: ConversationId,
    status: Rc<LineTurnStatus>,
    future: Pin<Box<dyn Future<Output = io::Result<()>> + 'd>>,
}

/// Status of a running turn and the answers it waits for.
#[derive(Default)]
struct LineTurnStatus {
    is_asynchronous: Cell<bool>,
    /// Calls that the client has not answered yet.
    pending_calls: RefCell<BTreeSet<String>>,
    results: RefCell<Vec<(String, ClientToolAnswer)>>,
    answered: Notify,
}

impl LineTurnStatus {
    /// Returns true if the client may write further lines while the turn is running.
    fn accepts_input(&self) -> bool {
        self.is_asynchronous.get() || !self.pending_calls.borrow().is_empty()
    }
}

/// Waits until a turn ends.
async fn next_finished(running: &mut Vec<RunningTurn<'_>>) -> io::Result<()> {
    poll_fn(|context| {
        let ended = running.iter_mut().enumerate().find_map(|(place, turn)| {
            match turn.future.as_mut().poll(context) {
                Poll::Ready(ended) => Some((place, ended)),
                Poll::Pending => None,
            }
        });
        match ended {
            Some((place, ended)) => {
                running.remove(place);
                Poll::Ready(ended)
            }
            None => Poll::Pending,
        }
    })
    .await
}

impl<'a> LineServer<'a> {
    /// Handles one line of the client.
    fn handle_line<'d>(&'d self, line: InputLine, running: &mut Vec<RunningTurn<'d>>) -> io::Result<()> {
        let line = match line {
            InputLine::Text(line) if line.trim().is_empty() => return Ok(()),
            InputLine::Text(line) => parse_line(&line),
            InputLine::TooLong(longest) => Err(RequestError::new(
                RequestErrorKind::TooLarge,
                format!("a line is longer than {longest} bytes and was ignored"),
            )),
            InputLine::InvalidUtf8 => Err(RequestError::bad_request("line", "a line is not valid UTF-8")),
        };
        let refusal = match line {
            Ok(LineRequest::Message(message)) => {
                let id = message.conversation_id.as_deref();
                let conversation = id.map_or_else(|| self.default_conversation.clone(), ConversationId::from);
                // A new message abandons turns that wait for an answer.
                running.retain(|turn| {
                    turn.conversation != conversation || turn.status.pending_calls.borrow().is_empty()
                });
                let status = Rc::<LineTurnStatus>::default();
                let turn = LineTurn { desk: self, tag: message.turn.clone(), status: status.clone() };
                let held = Box::pin(turn.run(conversation.clone(), message));
                running.push(RunningTurn { conversation, status, future: held });
                return Ok(());
            }
            Ok(LineRequest::ToolResult { id, result, error }) => {
                let owes = |turn: &&RunningTurn<'_>| turn.status.pending_calls.borrow().contains(&id);
                match running.iter().find(owes) {
                    Some(turn) => {
                        turn.status.pending_calls.borrow_mut().remove(&id);
                        let answer = || ClientToolAnswer::Result(plain_text(&result));
                        let result = error.map_or_else(answer, ClientToolAnswer::Error);
                        turn.status.results.borrow_mut().push((id, result));
                        turn.status.answered.notify_one();
                        return Ok(());
                    }
                    None => {
                        RequestError::bad_request("id", format!("no call `{id}` is waiting for a result"))
                    }
                }
            }
            Err(refusal) => refusal,
        };
        let mut output = self.output.borrow_mut();
        writeln!(output, "{}", error_line(&refusal))?;
        output.flush()
    }
}

/// One turn with the label of its output lines.
struct LineTurn<'d, 'a> {
    desk: &'d LineServer<'a>,
    /// Label that the client gave to the turn; repeated in its output lines.
    tag: Option<Value>,
    status: Rc<LineTurnStatus>,
}

impl LineTurn<'_, '_> {
    async fn run(self, id: ConversationId, message: Box<LineMessage>) -> io::Result<()> {
        match self.run_turn(id, *message).await {
            Ok(()) | Err(TurnAbort::InputClosed) => {}
            Err(TurnAbort::Refused(refusal)) => self.write_line(error_line(&refusal))?,
            Err(TurnAbort::OutputClosed(error)) => return Err(error),
        }
        self.desk.output.borrow_mut().flush()
    }

    fn write_line(&self, mut line: Value) -> io::Result<()> {
        if let Some(tag) = &self.tag {
            line["turn"] = tag.clone();
        }
        writeln!(self.desk.output.borrow_mut(), "{line}")
    }

    async fn run_turn(&self, id: ConversationId, message: LineMessage) -> Result<(), TurnAbort> {
        if !message.attachments.is_empty() {
            let told = "the agent supports text only; attachments are not supported";
            return Err(RequestError::bad_request("attachments", told).into());
        }
        check_id("conversation_id", id.as_str())?;
        check_user_text("text", &message.text)?;
        let agent = self.desk.agent;
        let handle = agent.conversation(&id).await?;
        let mut state = handle.state().await.map_err(host_error)?;
        let tools = client_tools(message.tools.iter().cloned())?;
        agent.check_offer(&tools)?;
        let context = context_entries(&message, &state)?;
        let speaker = message.ctx["authorized"]["user_id"].as_str().unwrap_or("user");
        let mut given_up: Vec<_> = client_calls(&state).map(|(at, _)| at.turn.clone()).collect();
        given_up.dedup();
        let mut brought = ClientInput {
            tools: tools.clone(),
            context: context.clone(),
            state: message.state,
            user: Some((speaker.into(), message.text)),
            abandoned_turns: given_up,
            ..ClientInput::default()
        };
        loop {
            let talk = ClientExchange::start(handle.clone(), &state, brought).await?;
            let ending = self.write_updates(talk, &handle).await?;
            if let Some(failure) = &ending.failure {
                let refusal = RequestError::new(RequestErrorKind::Failed, failure.message.clone());
                return Err(RequestError { code: failure.code.clone(), ..refusal }.into());
            }
            if ending.calls.is_empty() {
                return Ok(self.write_end(&ending)?);
            }
            // The client answers the tools that it offers. Other calls may have no answer, so they end the turn.
            let (mut calls, unoffered): (Vec<&PendingClientCall>, Vec<&PendingClientCall>) =
                ending.calls.iter().partition(|call| tools.iter().any(|tool| tool.name == call.tool));
            if calls.is_empty() {
                self.write_end(&ending)?;
                calls = unoffered;
            }
            self.desk.output.borrow_mut().flush()?;
            state = handle.state().await.map_err(host_error)?;
            let results = self.wait_for_results(&calls, &state).await?;
            brought = ClientInput {
                tools: tools.clone(),
                context: context.clone(),
                results,
                ..ClientInput::default()
            };
        }
    }

    /// Writes the updates of a request until every turn has ended or waits for the client.
    async fn write_updates(
        &self,
        mut talk: ClientExchange,
        handle: &ConversationHandle,
    ) -> Result<ExchangeEnd, TurnAbort> {
        // The current message, which may still be withdrawn.
        let mut coming = PendingMessage::default();
        let mut shares_state = false;
        loop {
            let told = match talk.next().await? {
                ExchangeStep::Updates(told) => told,
                ExchangeStep::Finished(ending) if !ending.approval_addresses.is_empty() => {
                    for at in ending.approval_addresses {
                        talk.decline(at, NO_APPROVAL_REASON).await?;
                    }
                    continue;
                }
                ExchangeStep::Finished(ending) => {
                    coming.flush(self)?;
                    if shares_state {
                        let state = handle.state().await.map_err(host_error)?;
                        self.write_line(json!({"type": "state", "state": state.shared}))?;
                    }
                    return Ok(ending);
                }
            };
            // Only a call or the end of a step can change the asynchronous status.
            let may_change = told.iter().any(|told| {
                matches!(
                    told,
                    ClientUpdate::ToolCalled { .. }
                        | ClientUpdate::ToolAnswered { .. }
                        | ClientUpdate::StepFinished { .. }
                )
            });
            for told in told {
                match told {
                    ClientUpdate::TextStarted { message, .. } if message != coming.message => {
                        coming.flush(self)?;
                        coming.message = message;
                    }
                    ClientUpdate::Text { text, .. } => coming.text.push_str(&text),
                    ClientUpdate::MessageWithdrawn { message } if message == coming.message => {
                        coming.text.clear()
                    }
                    ClientUpdate::MessageWithdrawn { .. } => {
                        talk.cancel_turns("a part of the answer could not be withdrawn").await;
                        let message =
                            "the model's reply was interrupted after it was sent, and its retry differs";
                        return Err(RequestError::new(RequestErrorKind::Failed, message).into());
                    }
                    ClientUpdate::Reasoning { text, .. } => coming.reasoning.push_str(&text),
                    ClientUpdate::ReasoningEnded { .. } => {
                        let text = std::mem::take(&mut coming.reasoning);
                        self.write_line(json!({"type": "reasoning", "text": text}))?;
                    }
                    ClientUpdate::ToolCalled { call, tool, arguments, .. } => {
                        coming.flush(self)?;
                        let arguments: Value =
                            serde_json::from_str(&arguments).unwrap_or(Value::String(arguments));
                        self.write_line(
                            json!({"type": "tool_call", "id": call, "name": tool, "arguments": arguments}),
                        )?;
                    }
                    ClientUpdate::ToolAnswered { call, content, failed, .. } => {
                        coming.flush(self)?;
                        let result = match failed {
                            true => json!({"type": "tool_result", "id": call, "error": content}),
                            false => json!({"type": "tool_result", "id": call, "result": content}),
                        };
                        self.write_line(result)?;
                    }
                    ClientUpdate::StateReplaced(_) | ClientUpdate::StatePatched(_) => shares_state = true,
                    ClientUpdate::TextStarted { .. }
                    | ClientUpdate::AgentStarted { .. }
                    | ClientUpdate::AgentFinished { .. }
                    | ClientUpdate::AgentFailed { .. }
                    | ClientUpdate::TextEnded { .. }
                    | ClientUpdate::ReasoningStarted { .. }
                    | ClientUpdate::StepStarted { .. }
                    | ClientUpdate::StepFinished { .. }
                    | ClientUpdate::ApprovalRequested(_)
                    | ClientUpdate::ArgumentsEdited { .. }
                    | ClientUpdate::TurnEnded { .. } => {}
                }
            }
            if may_change {
                self.status.is_asynchronous.set(talk.is_asynchronous().await?);
                self.desk.changed.notify_one();
                self.desk.output.borrow_mut().flush()?;
            }
        }
    }

    /// Waits until the client has answered these calls.
    async fn wait_for_results(
        &self,
        calls: &[&PendingClientCall],
        state: &ConversationState,
    ) -> Result<Vec<(OperationAddress, ClientToolAnswer)>, TurnAbort> {
        let status = &self.status;
        *status.pending_calls.borrow_mut() = calls.iter().map(|call| call.at.call.to_string()).collect();
        self.desk.changed.notify_one();
        while !status.pending_calls.borrow().is_empty() {
            if self.desk.input_over.get() {
                return Err(TurnAbort::InputClosed);
            }
            status.answered.notified().await;
        }
        let given = status.results.take().into_iter();
        let addressed = given.filter_map(|(id, result)| {
            let (at, _) = client_calls(state).find(|(at, _)| at.call.as_str() == id)?;
            Some((at.clone(), result))
        });
        Ok(addressed.collect())
    }

    /// Writes the last lines of a turn, which may wait for the client.
    fn write_end(&self, ending: &ExchangeEnd) -> io::Result<()> {
        if let Some(usage) = ending.usage.completion_usage() {
            self.write_line(json!({"type": "usage", "usage": usage}))?;
        }
        let mut done = json!({"type": "done"});
        let reason = ending.finish_reason();
        if reason != "stop" {
            done["finish_reason"] = json!(reason);
        }
        self.write_line(done)
    }
}

/// Returns the context that the client sends with a message.
fn context_entries(
    message: &LineMessage,
    state: &ConversationState,
) -> Result<Vec<ContextEntry>, RequestError> {
    let mut entries = message.context.clone();
    let mut tell = |description: &str, value: &Value| {
        if !value.is_null() {
            entries.push(ContextEntry { description: description.to_string(), value: plain_text(value) });
        }
    };
    for (name, member) in [("user", "user_id"), ("team", "team_id")] {
        tell(name, &message.ctx["authorized"][member]);
    }
    tell("locale", &message.ctx["locale"]);
    for (name, value) in message.options["metadata"].as_object().into_iter().flatten() {
        tell(name, value);
    }
    if !state.turns.is_empty() {
        // Messages from before the conversation existed here are sent again with every offer.
        let told = state.offer.context.iter();
        entries.extend(told.filter(|entry| entry.is_earlier() || entry.is_instructions()).cloned());
        return Ok(entries);
    }
    let mut said = Vec::new();
    for (place, earlier) in message.history.iter().enumerate() {
        match earlier["role"].as_str() {
            Some("system" | "developer") => {
                let at = format!("history[{place}]");
                entries.push(ContextEntry::instructions(content_string(&at, &earlier["content"])?));
            }
            _ => said.push(earlier.clone()),
        }
    }
    if !said.is_empty() {
        entries.push(ContextEntry::earlier(said));
    }
    Ok(entries)
}

/// Message and reasoning that have not been written yet.
#[derive(Default)]
struct PendingMessage {
    message: String,
    text: String,
    reasoning: String,
}

impl PendingMessage {
    /// Writes the message, if there is one.
    fn flush(&mut self, turn: &LineTurn<'_, '_>) -> io::Result<()> {
        match std::mem::take(&mut self.text) {
            text if text.is_empty() => Ok(()),
            text => turn.write_line(json!({"type": "text", "text": text})),
        }
    }
}

fn parse_line(line: &str) -> Result<LineRequest, RequestError> {
    let value = parse_json("line", line.as_bytes())?;
    serde_json::from_value(value).map_err(|error| {
        RequestError::bad_request(
            "line",
            format!(
                "a line is neither a `message` nor a `tool_result`: {}",
                describe_problem(&error.to_string())
            ),
        )
    })
}

fn error_line(refusal: &RequestError) -> Value {
    json!({"type": "error", "message": refusal.message, "code": refusal.code})
}
