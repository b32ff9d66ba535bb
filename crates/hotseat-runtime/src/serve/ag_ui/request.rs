//! AG-UI requests: the input of a run.

use hotseat_model::ModelTool;
use serde::Deserialize;
use serde_json::Value;

use super::super::client::{
    ClientToolAnswer, RequestError, check_id, client_tools, content_string, nullable, parse_body,
    parse_member,
};
use crate::conversation::{ApprovalVerdict, ContextEntry};

/// Validated input of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct AgUiRequest {
    /// The thread id, which is the id of the conversation.
    pub thread: String,
    /// The run id.
    pub run: String,
    /// The client's shared state, or `None` if it sends none.
    pub state: Option<Value>,
    /// The messages as received, for snapshots.
    pub raw: Vec<Value>,
    /// Messages of the user, the agent and tools.
    pub messages: Vec<ThreadMessage>,
    /// Tools that the client executes.
    pub tools: Vec<ModelTool>,
    /// Context of the client, including its instructions.
    pub context: Vec<ContextEntry>,
    /// Decisions of a human, by interrupt id.
    pub answers: Vec<(String, ApprovalVerdict)>,
}

/// Message of a thread.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadMessage {
    /// Index in the request.
    pub place: usize,
    /// The id of the message.
    pub id: String,
    /// Content of the message.
    pub body: MessageBody,
}

/// Content of a message, by role.
#[derive(Debug, Clone, PartialEq)]
pub enum MessageBody {
    /// Message of the user.
    User(String),
    /// Message of the agent with its calls.
    Assistant {
        /// Text of the message.
        text: String,
        /// Its calls.
        calls: Vec<ThreadCall>,
    },
    /// Answer of a client tool.
    Tool {
        /// The id of the call.
        call: String,
        /// Result or error message.
        result: ClientToolAnswer,
    },
}

/// A call in a message of the agent.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadCall {
    /// The id of the call.
    pub id: String,
    /// The name of the tool, if the client says it.
    pub tool: Option<String>,
    /// The arguments as the client says them, if it does.
    pub arguments: Option<String>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object", rename_all = "camelCase")]
struct WireThreadInput {
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
#[serde(expecting = "an object", rename_all = "camelCase")]
struct WireThreadMessage {
    id: String,
    role: String,
    #[serde(default)]
    content: Value,
    #[serde(default, deserialize_with = "nullable")]
    tool_calls: Vec<WireThreadCall>,
    tool_call_id: Option<String>,
    error: Option<String>,
    subagent_run_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct WireThreadCall {
    id: String,
    #[serde(default)]
    function: Value,
}

#[derive(Deserialize)]
#[serde(expecting = "an object", rename_all = "camelCase")]
struct WireResume {
    interrupt_id: String,
    status: String,
    #[serde(default)]
    payload: Value,
}

/// Parses the body of a request.
///
/// # Errors
/// If it is not a run input or contains something that the agent does not support.
pub fn parse_request(body: &[u8]) -> Result<AgUiRequest, RequestError> {
    let value = parse_body(body)?;
    let written: WireThreadInput = parse_member("", value)?;
    check_id("threadId", &written.thread_id)?;
    check_id("runId", &written.run_id)?;
    let mut context = Vec::new();
    for (index, entry) in written.context.into_iter().enumerate() {
        context.push(parse_member(&format!("context[{index}]"), entry)?);
    }
    let mut messages = Vec::new();
    for (place, value) in written.messages.iter().enumerate() {
        let at = format!("messages[{place}]");
        let message: WireThreadMessage = parse_member(&at, value.clone())?;
        // Messages of joined agents are sent to the client but are not part of its input.
        if message.subagent_run_id.is_some() {
            continue;
        }
        let body = match message.role.as_str() {
            "user" => MessageBody::User(content_string(&at, &message.content)?),
            "assistant" => {
                let calls = message.tool_calls.into_iter().map(|call| {
                    let member = |name: &str| {
                        call.function[name].as_str().filter(|text| !text.is_empty()).map(str::to_string)
                    };
                    let (tool, arguments) = (member("name"), member("arguments"));
                    ThreadCall { id: call.id, tool, arguments }
                });
                let calls = calls.collect();
                MessageBody::Assistant { text: content_string(&at, &message.content)?, calls }
            }
            "tool" => {
                let Some(call) = message.tool_call_id else {
                    let at = format!("{at}.toolCallId");
                    return Err(RequestError::bad_request(at, "a tool message needs `toolCallId`"));
                };
                let content = content_string(&at, &message.content)?;
                let result = match message.error {
                    Some(error) if error.is_empty() => ClientToolAnswer::Error(content),
                    Some(error) => ClientToolAnswer::Error(error),
                    None => ClientToolAnswer::Result(content),
                };
                MessageBody::Tool { call, result }
            }
            "system" | "developer" => {
                let value = content_string(&at, &message.content)?;
                context.push(ContextEntry::instructions(value));
                continue;
            }
            "reasoning" | "activity" => continue,
            other => {
                let message = format!(
                    "unknown role {other:?}; expected user, assistant, tool, system, developer, reasoning or \
                     activity"
                );
                return Err(RequestError::bad_request(format!("{at}.role"), message));
            }
        };
        messages.push(ThreadMessage { place, id: message.id, body });
    }
    let tools = client_tools(written.tools)?;
    let mut answers = Vec::new();
    for (index, value) in written.resume.into_iter().enumerate() {
        answers.push(parse_resume(&format!("resume[{index}]"), value)?);
    }
    Ok(AgUiRequest {
        thread: written.thread_id,
        run: written.run_id,
        state: non_empty_state(written.state),
        raw: written.messages,
        messages,
        tools,
        context,
        answers,
    })
}

/// Returns the state unless it is null or empty. Clients start with an empty state, so it carries no
/// information.
fn non_empty_state(state: Value) -> Option<Value> {
    match state {
        Value::Null => None,
        Value::Object(members) if members.is_empty() => None,
        said => Some(said),
    }
}

fn parse_resume(at: &str, value: Value) -> Result<(String, ApprovalVerdict), RequestError> {
    let WireResume { interrupt_id, status, payload } = parse_member(at, value)?;
    let verdict = match status.as_str() {
        "resolved" => ApprovalVerdict::parse(&payload).map_err(|wrong| {
            RequestError::bad_request(format!("{at}.payload"), format!("{at}.payload: {wrong}"))
        })?,
        "cancelled" => ApprovalVerdict::Unavailable { reason: "the user did not answer".to_string() },
        other => {
            let message = format!("unknown status {other:?}; expected `resolved` or `cancelled`");
            return Err(RequestError::bad_request(format!("{at}.status"), message));
        }
    };
    Ok((interrupt_id, verdict))
}
