//! JSON lines: a client writes what the user says, a line a message, and reads what the agent does.
//!
//! The words are those of a program that a client starts for itself: it needs no port, and its conversations end with
//! it unless they are kept. Messages are told whole, for a line that was written cannot be taken back.

use std::io::{self, Write};

use hotseat_model::Tool;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use super::Agent;
use super::ag_ui::{member, offered, text};
use super::refusal::Refusal;
use super::talk::{Brought, ClientCall, Ending, Next, Talk, broken, client_calls};
use super::translate::{Speaker, Told, content_of};
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

/// Answers lines of `input` on `output` until there are no more. A turn that has begun is held to its end.
///
/// # Errors
/// When nobody takes the answer.
pub async fn converse(
    agent: &Agent,
    input: &mut UnboundedReceiver<String>,
    output: &mut dyn Write,
) -> io::Result<()> {
    // The conversation of messages that name none.
    let fresh = ConversationId::from(format!("lines-{}", uuid::Uuid::new_v4()));
    while let Some(line) = next(input).await {
        match turn(agent, &fresh, &line, input, output).await {
            Ok(()) => {}
            Err(Stop::Refused(refusal)) => say(output, &refused(&refusal))?,
            Err(Stop::InputOver) => return Ok(()),
            Err(Stop::Unheard(error)) => return Err(error),
        }
        output.flush()?;
    }
    Ok(())
}

/// The next line that says something.
async fn next(input: &mut UnboundedReceiver<String>) -> Option<String> {
    loop {
        let line = input.recv().await?;
        if !line.trim().is_empty() {
            return Some(line);
        }
    }
}

async fn turn(
    agent: &Agent,
    fresh: &ConversationId,
    line: &str,
    input: &mut UnboundedReceiver<String>,
    output: &mut dyn Write,
) -> Result<(), Stop> {
    let message = match read(line)? {
        Written::Message(message) => *message,
        Written::ToolResult { id, .. } => {
            return Err(Refusal::bad("id", format!("no call {id} waits for a result")).into());
        }
    };
    if !message.attachments.is_empty() {
        return Err(
            Refusal::bad("attachments", "the agent reads words only, and something is attached").into()
        );
    }
    let id = message.conversation_id.as_deref().map_or_else(|| fresh.clone(), ConversationId::from);
    let handle = agent.conversation(&id).await?;
    let mut state = handle.state().await.map_err(broken)?;
    let tools = tools(&message.tools)?;
    agent.check_offer(&tools)?;
    let context = context(&message, &state)?;
    let speaker = message.ctx["authorized"]["user_id"].as_str().unwrap_or("user");
    let mut brought = Brought {
        tools: tools.clone(),
        context: context.clone(),
        state: message.state,
        user: Some((speaker.into(), message.text)),
        // A user who says something else does not answer.
        given_up: client_calls(&state).map(|(at, _)| at.turn.clone()).collect(),
        ..Brought::default()
    };
    loop {
        let talk = Talk::begin(handle.clone(), &state, brought).await?;
        let ending = tell(talk, &handle, output).await?;
        if let Some(failure) = &ending.failure {
            let refusal = Refusal::of(super::refusal::Reason::Failed, failure.message.clone());
            return Err(Refusal { code: failure.code.clone(), ..refusal }.into());
        }
        if ending.calls.is_empty() {
            return Ok(end(&ending, output)?);
        }
        output.flush()?;
        state = handle.state().await.map_err(broken)?;
        let results = results(&ending.calls, &state, input).await?;
        brought = Brought { tools: tools.clone(), context: context.clone(), results, ..Brought::default() };
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

/// Tells what happens until every turn has ended or waits for the client.
async fn tell(mut talk: Talk, handle: &Handle, output: &mut dyn Write) -> Result<Ending, Stop> {
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
                coming.say(output)?;
                if shares_state {
                    let state = handle.state().await.map_err(broken)?;
                    say(output, &json!({"type": "state", "state": state.shared}))?;
                }
                return Ok(ending);
            }
        };
        for told in told {
            match told {
                Told::TextStarted { message, speaker: Speaker::Agent } if message != coming.message => {
                    coming.say(output)?;
                    coming.message = message;
                }
                Told::Text { speaker: Speaker::Agent, text, .. } => coming.text.push_str(&text),
                Told::Withdrawn { message } if message == coming.message => coming.text.clear(),
                Told::Withdrawn { .. } => {
                    talk.give_up("a part of the answer could not be taken back").await;
                    let message =
                        "the model's reply broke off after it was told, and its next one is another";
                    return Err(Refusal::of(super::refusal::Reason::Failed, message).into());
                }
                Told::Reasoning { text, .. } => coming.reasoning.push_str(&text),
                Told::ReasoningEnded { .. } => {
                    let text = std::mem::take(&mut coming.reasoning);
                    say(output, &json!({"type": "reasoning", "text": text}))?;
                }
                Told::Called { call, tool, arguments, speaker: Speaker::Agent, .. } => {
                    coming.say(output)?;
                    let arguments: Value =
                        serde_json::from_str(&arguments).unwrap_or(Value::String(arguments));
                    say(
                        output,
                        &json!({"type": "tool_call", "id": call, "name": tool, "arguments": arguments}),
                    )?;
                }
                Told::Answered { call, content, failed, speaker: Speaker::Agent } => {
                    coming.say(output)?;
                    let result = match failed {
                        true => json!({"type": "tool_result", "id": call, "error": content}),
                        false => json!({"type": "tool_result", "id": call, "result": content}),
                    };
                    say(output, &result)?;
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
    }
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
    fn say(&mut self, output: &mut dyn Write) -> io::Result<()> {
        match std::mem::take(&mut self.text) {
            text if text.is_empty() => Ok(()),
            text => say(output, &json!({"type": "text", "text": text})),
        }
    }
}

/// Waits until the client has answered these calls.
async fn results(
    calls: &[ClientCall],
    state: &State,
    input: &mut UnboundedReceiver<String>,
) -> Result<Vec<(OperationAddress, Result<String, String>)>, Stop> {
    let mut results: Vec<(OperationAddress, Result<String, String>)> = Vec::new();
    while results.len() < calls.len() {
        let line = next(input).await.ok_or(Stop::InputOver)?;
        let Written::ToolResult { id, result, error } = read(&line)? else {
            let message = "a call waits for its result, and this is a message";
            return Err(Refusal::bad("type", message).into());
        };
        let open = client_calls(state).map(|(at, _)| at).find(|at| at.call.as_str() == id);
        match open.filter(|at| !results.iter().any(|(known, _)| known == *at)) {
            Some(at) => results.push((at.clone(), error.map_or_else(|| Ok(content_of(&result)), Err))),
            None => return Err(Refusal::bad("id", format!("no call {id} waits for a result")).into()),
        }
    }
    Ok(results)
}

/// The last lines of a turn.
fn end(ending: &Ending, output: &mut dyn Write) -> io::Result<()> {
    let spent = ending.spent.by_model.values();
    let (asked, replied) = spent.fold((0, 0), |(asked, replied), spent| (asked + spent.0, replied + spent.1));
    let usage =
        json!({"prompt_tokens": asked, "completion_tokens": replied, "total_tokens": asked + replied});
    say(output, &json!({"type": "usage", "usage": usage}))?;
    let mut done = json!({"type": "done"});
    if ending.stop.as_deref() == Some("max_tokens") {
        done["finish_reason"] = json!("length");
    }
    say(output, &done)
}

fn read(line: &str) -> Result<Written, Refusal> {
    serde_json::from_str(line).map_err(|error| {
        Refusal::bad("line", format!("a line is neither a `message` nor a `tool_result`: {error}"))
    })
}

fn refused(refusal: &Refusal) -> Value {
    json!({"type": "error", "message": refusal.message, "code": refusal.code})
}

fn say(output: &mut dyn Write, line: &Value) -> io::Result<()> {
    writeln!(output, "{line}")
}
