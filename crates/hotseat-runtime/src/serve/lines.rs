//! JSON lines: a client writes what the user says, a line a message, and reads what the agent does.
//!
//! The words are those of a program that a client starts for itself: it needs no port, and its conversations end with
//! it unless they are kept. Messages are told whole, for a line that was written cannot be taken back.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::io::{self, Write};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use hotseat_model::Tool;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::sync::mpsc::Receiver;

use super::ag_ui::{check_id, member, offered, text};
use super::refusal::{Reason, Refusal};
use super::talk::{Brought, ClientCall, Ending, Next, Talk, broken, client_calls};
use super::translate::{Speaker, Told, content_of};
use super::{Agent, InputLine};
use crate::conversation::{ContextEntry, OperationAddress, State};
use crate::ids::ConversationId;
use crate::live::Handle;

/// Why an agent that asks a person is told no.
const NOBODY_TO_ASK: &str = "this client cannot ask a person";

/// Lines that a client may write.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Written {
    Message(Box<Message>),
    ToolResult {
        id: String,
        #[serde(default)]
        result: Value,
        #[serde(default)]
        error: Option<String>,
    },
}

/// The user says something.
#[derive(Deserialize)]
struct Message {
    text: String,
    #[serde(default)]
    conversation_id: Option<String>,
    /// What the client calls the turn.
    #[serde(default)]
    turn: Option<Value>,
    #[serde(default)]
    history: Vec<Value>,
    #[serde(default)]
    attachments: Vec<Value>,
    #[serde(default)]
    options: Value,
    #[serde(default)]
    ctx: Value,
    #[serde(default)]
    state: Option<Value>,
    #[serde(default)]
    context: Vec<ContextEntry>,
    #[serde(default)]
    tools: Vec<Value>,
}

#[derive(Deserialize)]
struct WrittenTool {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    parameters: Value,
}

/// Why a turn is not held to its end.
enum Stop {
    /// The client is told why, and may go on.
    Refused(Refusal),
    /// There are no more lines.
    InputOver,
    /// Nobody reads what is told.
    Unheard(io::Error),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Stop {
        Stop::Refused(refusal)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Unheard(error)
    }
}

/// How many turns may go on side by side; the next message then waits.
const MOST_TURNS: usize = 64;

/// The longest line, in bytes.
pub const LONGEST_LINE: usize = 8 * 1024 * 1024;

/// Answers lines of `input` on `output` until there are no more. A turn that has begun is held to its end.
///
/// Messages are answered one after the other, but for a turn that waits for asynchronous tools: the next message begins
/// a turn beside it.
///
/// # Errors
/// When nobody takes the answer.
pub async fn converse(
    agent: &Agent,
    input: &mut Receiver<InputLine>,
    output: &mut dyn Write,
) -> io::Result<()> {
    let desk = Desk {
        agent,
        // The conversation of messages that name none.
        fresh: ConversationId::from(format!("lines-{}", uuid::Uuid::new_v4())),
        output: RefCell::new(output),
        changed: Notify::new(),
        input_over: Cell::new(false),
    };
    let mut running: Vec<Running<'_>> = Vec::new();
    while !desk.input_over.get() || !running.is_empty() {
        let may_read = !desk.input_over.get()
            && running.len() < MOST_TURNS
            && running.iter().all(|turn| turn.status.listens());
        tokio::select! {
            ended = next_end(&mut running), if !running.is_empty() => ended?,
            () = desk.changed.notified() => {}
            line = input.recv(), if may_read => match line {
                Some(line) => desk.take(line, &mut running)?,
                None => {
                    desk.input_over.set(true);
                    running.iter().for_each(|turn| turn.status.answered.notify_one());
                }
            },
        }
    }
    Ok(())
}

/// What all turns share.
struct Desk<'a> {
    agent: &'a Agent,
    fresh: ConversationId,
    output: RefCell<&'a mut dyn Write>,
    /// A turn has come to another status.
    changed: Notify,
    input_over: Cell<bool>,
}

/// A turn that goes on.
struct Running<'d> {
    conversation: ConversationId,
    status: Rc<TurnStatus>,
    held: Pin<Box<dyn Future<Output = io::Result<()>> + 'd>>,
}

/// What a turn that goes on waits for.
#[derive(Default)]
struct TurnStatus {
    is_asynchronous: Cell<bool>,
    /// The calls that the client has not answered.
    owed: RefCell<BTreeSet<String>>,
    given: RefCell<Vec<(String, Result<String, String>)>>,
    answered: Notify,
}

impl TurnStatus {
    /// Whether something may be said or answered while the turn goes on.
    fn listens(&self) -> bool {
        self.is_asynchronous.get() || !self.owed.borrow().is_empty()
    }
}

/// Waits until a turn ends.
async fn next_end(running: &mut Vec<Running<'_>>) -> io::Result<()> {
    poll_fn(|context| {
        let ended =
            running.iter_mut().enumerate().find_map(|(place, turn)| match turn.held.as_mut().poll(context) {
                Poll::Ready(ended) => Some((place, ended)),
                Poll::Pending => None,
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

impl<'a> Desk<'a> {
    /// Takes a line that the client has written.
    fn take<'d>(&'d self, line: InputLine, running: &mut Vec<Running<'d>>) -> io::Result<()> {
        let line = match line {
            InputLine::Text(line) if line.trim().is_empty() => return Ok(()),
            InputLine::Text(line) => read(&line),
            InputLine::TooLong(longest) => Err(Refusal::of(
                Reason::TooLarge,
                format!("a line is longer than {longest} bytes; nothing of it was taken"),
            )),
            InputLine::NotText => Err(Refusal::bad("line", "a line is not UTF-8")),
        };
        let refusal = match line {
            Ok(Written::Message(message)) => {
                let id = message.conversation_id.as_deref();
                let conversation = id.map_or_else(|| self.fresh.clone(), ConversationId::from);
                // A user who says something else does not answer.
                running
                    .retain(|turn| turn.conversation != conversation || turn.status.owed.borrow().is_empty());
                let status = Rc::<TurnStatus>::default();
                let turn = LineTurn { desk: self, tag: message.turn.clone(), status: status.clone() };
                let held = Box::pin(turn.hold(conversation.clone(), message));
                running.push(Running { conversation, status, held });
                return Ok(());
            }
            Ok(Written::ToolResult { id, result, error }) => {
                let owes = |turn: &&Running<'_>| turn.status.owed.borrow().contains(&id);
                match running.iter().find(owes) {
                    Some(turn) => {
                        turn.status.owed.borrow_mut().remove(&id);
                        let result = error.map_or_else(|| Ok(content_of(&result)), Err);
                        turn.status.given.borrow_mut().push((id, result));
                        turn.status.answered.notify_one();
                        return Ok(());
                    }
                    None => Refusal::bad("id", format!("no call {id} waits for a result")),
                }
            }
            Err(refusal) => refusal,
        };
        let mut output = self.output.borrow_mut();
        writeln!(output, "{}", refused(&refusal))?;
        output.flush()
    }
}

/// One turn, with what its lines are marked by.
struct LineTurn<'d, 'a> {
    desk: &'d Desk<'a>,
    /// What the client calls the turn; its lines say it again.
    tag: Option<Value>,
    status: Rc<TurnStatus>,
}

impl LineTurn<'_, '_> {
    async fn hold(self, id: ConversationId, message: Box<Message>) -> io::Result<()> {
        match self.answer(id, *message).await {
            Ok(()) | Err(Stop::InputOver) => {}
            Err(Stop::Refused(refusal)) => self.say(refused(&refusal))?,
            Err(Stop::Unheard(error)) => return Err(error),
        }
        self.desk.output.borrow_mut().flush()
    }

    fn say(&self, mut line: Value) -> io::Result<()> {
        if let Some(tag) = &self.tag {
            line["turn"] = tag.clone();
        }
        writeln!(self.desk.output.borrow_mut(), "{line}")
    }

    async fn answer(&self, id: ConversationId, message: Message) -> Result<(), Stop> {
        if !message.attachments.is_empty() {
            let told = "the agent reads words only, and something is attached";
            return Err(Refusal::bad("attachments", told).into());
        }
        check_id("conversation_id", id.as_str())?;
        let agent = self.desk.agent;
        let handle = agent.conversation(&id).await?;
        let mut state = handle.state().await.map_err(broken)?;
        let tools = tools(&message.tools)?;
        agent.check_offer(&tools)?;
        let context = context(&message, &state)?;
        let speaker = message.ctx["authorized"]["user_id"].as_str().unwrap_or("user");
        let mut given_up: Vec<_> = client_calls(&state).map(|(at, _)| at.turn.clone()).collect();
        given_up.dedup();
        let mut brought = Brought {
            tools: tools.clone(),
            context: context.clone(),
            state: message.state,
            user: Some((speaker.into(), message.text)),
            given_up,
            ..Brought::default()
        };
        loop {
            let talk = Talk::begin(handle.clone(), &state, brought).await?;
            let ending = self.tell(talk, &handle).await?;
            if let Some(failure) = &ending.failure {
                let refusal = Refusal::of(Reason::Failed, failure.message.clone());
                return Err(Refusal { code: failure.code.clone(), ..refusal }.into());
            }
            if ending.calls.is_empty() {
                return Ok(self.end(&ending)?);
            }
            self.desk.output.borrow_mut().flush()?;
            state = handle.state().await.map_err(broken)?;
            let results = self.results(&ending.calls, &state).await?;
            brought =
                Brought { tools: tools.clone(), context: context.clone(), results, ..Brought::default() };
        }
    }

    /// Tells what happens until every turn has ended or waits for the client.
    async fn tell(&self, mut talk: Talk, handle: &Handle) -> Result<Ending, Stop> {
        // The message that is coming, which may yet be withdrawn.
        let mut coming = Coming::default();
        let mut shares_state = false;
        loop {
            let told = match talk.next().await? {
                Next::Told(told) => told,
                Next::Over(ending) if !ending.asked.is_empty() => {
                    for at in ending.asked {
                        talk.decline(at, NOBODY_TO_ASK).await?;
                    }
                    continue;
                }
                Next::Over(ending) => {
                    coming.say(self)?;
                    if shares_state {
                        let state = handle.state().await.map_err(broken)?;
                        self.say(json!({"type": "state", "state": state.shared}))?;
                    }
                    return Ok(ending);
                }
            };
            // Whether something runs beside the turn can only have changed with a call or its end.
            let may_change = told.iter().any(|told| {
                matches!(told, Told::Called { .. } | Told::Answered { .. } | Told::StepFinished { .. })
            });
            for told in told {
                match told {
                    Told::TextStarted { message, speaker: Speaker::Agent } if message != coming.message => {
                        coming.say(self)?;
                        coming.message = message;
                    }
                    Told::Text { speaker: Speaker::Agent, text, .. } => coming.text.push_str(&text),
                    Told::Withdrawn { message } if message == coming.message => coming.text.clear(),
                    Told::Withdrawn { .. } => {
                        talk.give_up("a part of the answer could not be taken back").await;
                        let message =
                            "the model's reply broke off after it was told, and its next one is another";
                        return Err(Refusal::of(Reason::Failed, message).into());
                    }
                    Told::Reasoning { text, .. } => coming.reasoning.push_str(&text),
                    Told::ReasoningEnded { .. } => {
                        let text = std::mem::take(&mut coming.reasoning);
                        self.say(json!({"type": "reasoning", "text": text}))?;
                    }
                    Told::Called { call, tool, arguments, speaker: Speaker::Agent, .. } => {
                        coming.say(self)?;
                        let arguments: Value =
                            serde_json::from_str(&arguments).unwrap_or(Value::String(arguments));
                        self.say(
                            json!({"type": "tool_call", "id": call, "name": tool, "arguments": arguments}),
                        )?;
                    }
                    Told::Answered { call, content, failed, speaker: Speaker::Agent } => {
                        coming.say(self)?;
                        let result = match failed {
                            true => json!({"type": "tool_result", "id": call, "error": content}),
                            false => json!({"type": "tool_result", "id": call, "result": content}),
                        };
                        self.say(result)?;
                    }
                    Told::State(_) | Told::StatePatched(_) => shares_state = true,
                    // Other agents are heard in what this one makes of it.
                    Told::TextStarted { .. }
                    | Told::Text { .. }
                    | Told::Called { .. }
                    | Told::Answered { .. }
                    | Told::AgentStarted { .. }
                    | Told::AgentFinished { .. }
                    | Told::AgentFailed { .. }
                    | Told::TextEnded { .. }
                    | Told::ReasoningStarted { .. }
                    | Told::StepStarted { .. }
                    | Told::StepFinished { .. }
                    | Told::Asked(_)
                    | Told::TurnEnded { .. } => {}
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
    async fn results(
        &self,
        calls: &[ClientCall],
        state: &State,
    ) -> Result<Vec<(OperationAddress, Result<String, String>)>, Stop> {
        let status = &self.status;
        *status.owed.borrow_mut() = calls.iter().map(|call| call.call.to_string()).collect();
        self.desk.changed.notify_one();
        while !status.owed.borrow().is_empty() {
            if self.desk.input_over.get() {
                return Err(Stop::InputOver);
            }
            status.answered.notified().await;
        }
        let given = status.given.take().into_iter();
        let addressed = given.filter_map(|(id, result)| {
            let (at, _) = client_calls(state).find(|(at, _)| at.call.as_str() == id)?;
            Some((at.clone(), result))
        });
        Ok(addressed.collect())
    }

    /// The last lines of a turn.
    fn end(&self, ending: &Ending) -> io::Result<()> {
        let spent = ending.spent.by_model.values();
        let (asked, replied) =
            spent.fold((0, 0), |(asked, replied), spent| (asked + spent.0, replied + spent.1));
        let usage =
            json!({"prompt_tokens": asked, "completion_tokens": replied, "total_tokens": asked + replied});
        self.say(json!({"type": "usage", "usage": usage}))?;
        let mut done = json!({"type": "done"});
        if ending.stop.as_deref() == Some("max_tokens") {
            done["finish_reason"] = json!("length");
        }
        self.say(done)
    }
}

/// What the client says of its situation.
fn context(message: &Message, state: &State) -> Result<Vec<ContextEntry>, Refusal> {
    let mut entries = message.context.clone();
    let mut tell = |description: &str, value: &Value| {
        if !value.is_null() {
            entries.push(ContextEntry { description: description.to_string(), value: content_of(value) });
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
        // What was said before the conversation came here is told again with every offer.
        let kept = [ContextEntry::EARLIER, ContextEntry::INSTRUCTIONS];
        let told = state.offer.context.iter();
        entries.extend(told.filter(|entry| kept.contains(&entry.description.as_str())).cloned());
        return Ok(entries);
    }
    let mut said = Vec::new();
    for (place, earlier) in message.history.iter().enumerate() {
        match earlier["role"].as_str() {
            Some("system" | "developer") => {
                let at = format!("history[{place}]");
                entries.push(ContextEntry::instructions(text(&at, &earlier["content"])?));
            }
            _ => said.push(earlier.clone()),
        }
    }
    if !said.is_empty() {
        entries.push(ContextEntry::earlier(said));
    }
    Ok(entries)
}

fn tools(written: &[Value]) -> Result<Vec<Tool>, Refusal> {
    let tools = written.iter().enumerate().map(|(index, value)| {
        let at = format!("tools[{index}]");
        let WrittenTool { name, description, parameters } = member(&at, value.clone())?;
        offered(&at, name, description, parameters)
    });
    tools.collect()
}

/// What is coming and was not told yet.
#[derive(Default)]
struct Coming {
    message: String,
    text: String,
    reasoning: String,
}

impl Coming {
    /// Tells the message.
    fn say(&mut self, turn: &LineTurn<'_, '_>) -> io::Result<()> {
        match std::mem::take(&mut self.text) {
            text if text.is_empty() => Ok(()),
            text => turn.say(json!({"type": "text", "text": text})),
        }
    }
}

fn read(line: &str) -> Result<Written, Refusal> {
    serde_json::from_str(line).map_err(|error| {
        Refusal::bad("line", format!("a line is neither a `message` nor a `tool_result`: {error}"))
    })
}

fn refused(refusal: &Refusal) -> Value {
    json!({"type": "error", "message": refusal.message, "code": refusal.code})
}
