//! What a client asks for: the input of a run.

use hotseat_model::Tool;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer};
use serde_json::Value;

use super::super::refusal::Refusal;
use crate::conversation::{ApprovalVerdict, ContextEntry};

/// The longest id of a thread.
const LONGEST_ID: usize = 256;

/// The input of a run, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct RunInput {
    /// The thread: the id of the conversation.
    pub thread: String,
    /// The run.
    pub run: String,
    /// The shared state as the client has it; none where it says nothing.
    pub state: Option<Value>,
    /// The messages as they came, for a client that has to be told them anew.
    pub raw: Vec<Value>,
    /// The messages of user, agent and tools.
    pub messages: Vec<Message>,
    /// The tools that the client carries out.
    pub tools: Vec<Tool>,
    /// What it knows of its situation, its instructions included.
    pub context: Vec<ContextEntry>,
    /// What a person has answered, by the question.
    pub answers: Vec<(String, ApprovalVerdict)>,
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Its place in the request.
    pub place: usize,
    /// Its id.
    pub id: String,
    /// What it is.
    pub body: Body,
}

/// What a message is.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// The user said something.
    User(String),
    /// The agent said something, and made these calls.
    Assistant {
        /// The words.
        text: String,
        /// The ids of the calls.
        calls: Vec<String>,
    },
    /// A tool of the client answered.
    Tool {
        /// The call.
        call: String,
        /// What, or why not.
        result: Result<String, String>,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    thread_id: String,
    run_id: String,
    #[serde(default)]
    state: Value,
    messages: Vec<Value>,
    #[serde(default, deserialize_with = "nullable")]
    tools: Vec<Value>,
    #[serde(default, deserialize_with = "nullable")]
    context: Vec<Value>,
    #[serde(default, deserialize_with = "nullable")]
    resume: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenMessage {
    id: String,
    role: String,
    #[serde(default)]
    content: Value,
    #[serde(default, deserialize_with = "nullable")]
    tool_calls: Vec<WrittenCall>,
    #[serde(default)]
    tool_call_id: Option<String>,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    subagent_run_id: Option<String>,
}

#[derive(Deserialize)]
struct WrittenCall {
    id: String,
}

#[derive(Deserialize)]
struct WrittenTool {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    parameters: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenResume {
    interrupt_id: String,
    status: String,
    #[serde(default)]
    payload: Value,
}

/// Reads a member that may be absent or `null` as its default.
fn nullable<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(input: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(input)?.unwrap_or_default())
}

/// Reads the body of a request.
///
/// # Errors
/// When it is no run input, or holds something that the agent cannot take.
pub fn read(body: &[u8]) -> Result<RunInput, Refusal> {
    let value: Value = serde_json::from_slice(body)
        .map_err(|error| Refusal::bad("body", format!("the body is not JSON: {error}")))?;
    let written: Written = member("body", value)?;
    check_id("threadId", &written.thread_id)?;
    check_id("runId", &written.run_id)?;
    let mut context = Vec::new();
    for (index, entry) in written.context.into_iter().enumerate() {
        context.push(member(&format!("context[{index}]"), entry)?);
    }
    let mut messages = Vec::new();
    for (place, value) in written.messages.iter().enumerate() {
        let at = format!("messages[{place}]");
        let message: WrittenMessage = member(&at, value.clone())?;
        // What joined agents said is told to the client and is no part of what it says.
        if message.subagent_run_id.is_some() {
            continue;
        }
        let body = match message.role.as_str() {
            "user" => Body::User(text(&at, &message.content)?),
            "assistant" => {
                let calls = message.tool_calls.into_iter().map(|call| call.id).collect();
                Body::Assistant { text: text(&at, &message.content)?, calls }
            }
            "tool" => {
                let Some(call) = message.tool_call_id else {
                    return Err(Refusal::bad(at, "a tool message needs `toolCallId`"));
                };
                let content = text(&at, &message.content)?;
                let result = match message.error {
                    Some(error) if error.is_empty() => Err(content),
                    Some(error) => Err(error),
                    None => Ok(content),
                };
                Body::Tool { call, result }
            }
            "system" | "developer" => {
                let value = text(&at, &message.content)?;
                context.push(ContextEntry::instructions(value));
                continue;
            }
            "reasoning" | "activity" => continue,
            other => {
                let message = format!(
                    "there is no role {other:?}; roles are user, assistant, tool, system, developer, reasoning and \
                     activity"
                );
                return Err(Refusal::bad(format!("{at}.role"), message));
            }
        };
        messages.push(Message { place, id: message.id, body });
    }
    let mut tools = Vec::new();
    for (index, value) in written.tools.into_iter().enumerate() {
        let at = format!("tools[{index}]");
        let WrittenTool { name, description, parameters } = member(&at, value)?;
        tools.push(offered(&at, name, description, parameters)?);
    }
    let mut answers = Vec::new();
    for (index, value) in written.resume.into_iter().enumerate() {
        answers.push(answer(&format!("resume[{index}]"), value)?);
    }
    Ok(RunInput {
        thread: written.thread_id,
        run: written.run_id,
        state: says_something(written.state),
        raw: written.messages,
        messages,
        tools,
        context,
        answers,
    })
}

/// Reads a part of a request; what is wrong with it is told with its place.
pub fn member<T: DeserializeOwned>(at: &str, value: Value) -> Result<T, Refusal> {
    serde_json::from_value(value).map_err(|error| Refusal::bad(at, format!("{at}: {error}")))
}

/// The state of a client that has one. An empty one is what clients begin with, so it says nothing.
fn says_something(state: Value) -> Option<Value> {
    match state {
        Value::Null => None,
        Value::Object(members) if members.is_empty() => None,
        said => Some(said),
    }
}

/// Checks an id that a client has chosen.
pub fn check_id(member: &str, id: &str) -> Result<(), Refusal> {
    if id.is_empty() || id.len() > LONGEST_ID || id.chars().any(char::is_control) {
        let message =
            format!("`{member}` must be a text of 1 to {LONGEST_ID} bytes without control characters");
        return Err(Refusal::bad(member, message));
    }
    Ok(())
}

/// The text of a content: a text, or parts that are texts.
pub fn text(at: &str, content: &Value) -> Result<String, Refusal> {
    let parts = match content {
        Value::Null => return Ok(String::new()),
        Value::String(text) => return Ok(text.clone()),
        Value::Array(parts) => parts,
        _ => return Err(Refusal::bad(format!("{at}.content"), "content is a text or a list of parts")),
    };
    let mut whole = String::new();
    for (index, part) in parts.iter().enumerate() {
        match (part.get("type").and_then(Value::as_str), part.get("text").and_then(Value::as_str)) {
            (Some("text"), Some(text)) => whole.push_str(text),
            (kind, _) => {
                let kind = kind.unwrap_or("without a type");
                let message = format!("the agent reads parts of type text only, and this one is {kind}");
                return Err(Refusal::bad(format!("{at}.content[{index}]"), message));
            }
        }
    }
    Ok(whole)
}

/// A tool that a client offers.
pub fn offered(at: &str, name: String, description: String, parameters: Value) -> Result<Tool, Refusal> {
    if name.is_empty() {
        return Err(Refusal::bad(format!("{at}.name"), "a tool needs a name"));
    }
    let input_schema = match parameters {
        Value::Null => serde_json::json!({"type": "object"}),
        schema @ Value::Object(_) => schema,
        _ => return Err(Refusal::bad(format!("{at}.parameters"), "parameters are a JSON Schema, an object")),
    };
    Ok(Tool { name, description, input_schema })
}

fn answer(at: &str, value: Value) -> Result<(String, ApprovalVerdict), Refusal> {
    let WrittenResume { interrupt_id, status, payload } = member(at, value)?;
    let verdict = match status.as_str() {
        "resolved" => ApprovalVerdict::read(&payload)
            .map_err(|wrong| Refusal::bad(format!("{at}.payload"), format!("{at}.payload: {wrong}")))?,
        "cancelled" => ApprovalVerdict::Declined { reason: "the user did not answer".to_string() },
        other => {
            let message = format!("there is no status {other:?}; it is `resolved` or `cancelled`");
            return Err(Refusal::bad(format!("{at}.status"), message));
        }
    };
    Ok((interrupt_id, verdict))
}
