//! The protocols of providers from the side of the server: what a request becomes, and what a reply is written as.
//!
//! The conversions are pure. Each protocol has them beside those of its client, so both directions agree.

use std::collections::HashMap;

use hotseat_document::json::read_value;
use serde_json::{Map, Value, json};

use super::Dialect;
use super::anthropic::{AnthropicReplyWriter, anthropic_error, anthropic_reply, read_anthropic_request};
use super::openai::{ChatReplyWriter, chat_reply, read_chat_request};
use super::responses::{
    ResponsesReplyWriter, read_responses_request, response_of_item, responses_reply, sent_items,
};
use crate::types::parse_arguments;
use crate::{
    ModelError, ModelErrorKind, ModelMessage, ModelReply, ModelRequest, ModelTool, ModelToolCall,
    ModelToolResult, ReplyDelta, ResponseFormat,
};

/// A request of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct ServedRequest {
    /// Model that the client names.
    pub model: String,
    /// True if the reply is to be streamed.
    pub stream: bool,
    /// True if a stream ends with the token usage, where that is optional.
    pub include_usage: bool,
    /// Earlier response that the request continues.
    pub previous: Option<String>,
    /// The request without a position.
    pub request: ModelRequest,
}

/// Error of a request that its protocol does not allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestProblem {
    /// What is wrong.
    pub message: String,
    /// The member concerned.
    pub member: Option<String>,
}

/// Members that every reply to one request repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyHead {
    /// Id of the reply, unique in its conversation.
    pub id: String,
    /// Time of the reply, in seconds since 1970.
    pub created: u64,
    /// Model that the client named.
    pub model: String,
    /// True if a stream ends with the token usage, where that is optional.
    pub include_usage: bool,
    /// Estimated size of the request, for protocols that send it before the reply.
    pub input_tokens: u64,
}

/// Writes the pieces of a reply as events of its protocol.
pub trait ReplyWriter: Send {
    /// Writes the start of the reply.
    fn start(&mut self, out: &mut Vec<u8>);

    /// Writes the next piece.
    fn delta(&mut self, delta: &ReplyDelta, out: &mut Vec<u8>);

    /// Writes the end of the reply.
    fn finish(&mut self, reply: &ModelReply, out: &mut Vec<u8>);

    /// Writes an error in place of the end.
    fn fail(&mut self, error: &ModelError, out: &mut Vec<u8>);
}

impl Dialect {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// If the protocol does not allow it.
    pub fn read_request(self, body: &Value) -> Result<ServedRequest, RequestProblem> {
        let Some(body) = body.as_object() else {
            return Err(RequestProblem::new("the body must be a JSON object"));
        };
        match self {
            Dialect::ChatCompletions => read_chat_request(body),
            Dialect::Responses => read_responses_request(body),
            Dialect::Messages => read_anthropic_request(body),
        }
    }

    /// Returns the start of the ids of replies.
    pub fn id_prefix(self) -> &'static str {
        match self {
            Dialect::ChatCompletions => "chatcmpl-",
            Dialect::Responses => "resp_",
            Dialect::Messages => "msg_",
        }
    }

    /// Writes a complete reply.
    pub fn reply(self, head: &ReplyHead, reply: &ModelReply) -> Value {
        match self {
            Dialect::ChatCompletions => chat_reply(head, reply),
            Dialect::Responses => responses_reply(head, reply),
            Dialect::Messages => anthropic_reply(head, reply),
        }
    }

    /// Creates the writer of a streamed reply.
    pub fn writer(self, head: ReplyHead) -> Box<dyn ReplyWriter> {
        match self {
            Dialect::ChatCompletions => Box::new(ChatReplyWriter::new(head)),
            Dialect::Responses => Box::new(ResponsesReplyWriter::new(head)),
            Dialect::Messages => Box::new(AnthropicReplyWriter::new(head)),
        }
    }

    /// Writes the body of an error.
    pub fn error(self, error: &ModelError, member: Option<&str>) -> Value {
        match self {
            Dialect::ChatCompletions | Dialect::Responses => {
                json!({"error": openai_error(error, member)})
            }
            Dialect::Messages => anthropic_error(error),
        }
    }
}

impl ServedRequest {
    /// Reads what all protocols have. `max_tokens` lists the keys of the maximum length, the first one counts.
    pub(super) fn read(
        body: &Map<String, Value>,
        (system, messages): (Option<String>, Vec<ModelMessage>),
        read_tool: impl Fn(&Value) -> Result<ModelTool, RequestProblem>,
        response_format: Option<ResponseFormat>,
        max_tokens: &[&str],
    ) -> Result<ServedRequest, RequestProblem> {
        let tools = list_member(body, "tools")?.iter().map(read_tool).collect::<Result<_, _>>()?;
        Ok(ServedRequest {
            model: model_member(body)?,
            stream: body.get("stream") == Some(&Value::Bool(true)),
            include_usage: true,
            previous: None,
            request: ModelRequest {
                position: Default::default(),
                system,
                messages,
                tools,
                response_format,
                temperature: body.get("temperature").and_then(Value::as_f64),
                max_tokens: max_tokens
                    .iter()
                    .find_map(|key| body.get(*key)?.as_u64())
                    .map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX)),
            },
        })
    }
}

impl RequestProblem {
    /// Creates a problem of the whole request.
    pub fn new(message: impl Into<String>) -> Self {
        RequestProblem { message: message.into(), member: None }
    }

    /// Creates the problem of a member.
    pub(super) fn at(member: impl Into<String>, message: impl Into<String>) -> Self {
        RequestProblem { message: message.into(), member: Some(member.into()) }
    }
}

impl From<RequestProblem> for ModelError {
    fn from(problem: RequestProblem) -> Self {
        ModelError::new(ModelErrorKind::BadRequest, problem.message)
    }
}

/// Puts the items to which a request of Responses refers by their ids in place of these references. `reply_of` returns the reply of a
/// response of the same conversation. Together the items have at most `max_bytes`.
///
/// # Errors
/// If an item is unknown, or the items are too large.
pub fn resolve_item_references<'r>(
    body: &mut Value,
    reply_of: impl Fn(&str) -> Option<&'r ModelReply>,
    max_bytes: usize,
) -> Result<(), RequestProblem> {
    let Some(input) = body.get_mut("input").and_then(Value::as_array_mut) else { return Ok(()) };
    let mut sent: HashMap<String, Vec<(Value, usize)>> = HashMap::new();
    let mut room = max_bytes;
    for (index, item) in input.iter_mut().enumerate() {
        if item["type"] != "item_reference" {
            continue;
        }
        let place = format!("input[{index}].id");
        let id = item["id"].as_str().unwrap_or_default();
        let unknown = || RequestProblem::at(&place, format!("Item with id '{id}' not found."));
        let response = response_of_item(id).ok_or_else(unknown)?;
        if !sent.contains_key(response) {
            let items = sent_items(response, reply_of(response).ok_or_else(unknown)?).into_iter();
            let items = items.map(|item| {
                let size = item.to_string().len();
                (item, size)
            });
            sent.insert(response.to_owned(), items.collect());
        }
        let number = id.rsplit('_').next().and_then(|number| number.parse::<usize>().ok());
        let known = number.and_then(|number| sent[response].get(number)).filter(|(item, _)| item["id"] == id);
        let (found, size) = known.ok_or_else(unknown)?;
        room = room.checked_sub(*size).ok_or_else(|| {
            RequestProblem::at(&place, format!("the items have more than {max_bytes} bytes"))
        })?;
        *item = found.clone();
    }
    Ok(())
}

/// Returns the HTTP status of an error.
pub fn error_status(error: &ModelError) -> u16 {
    error.status.unwrap_or(match error.kind {
        ModelErrorKind::RateLimit => 429,
        ModelErrorKind::Auth => 401,
        ModelErrorKind::Timeout => 408,
        ModelErrorKind::BadRequest | ModelErrorKind::ContextTooLong | ModelErrorKind::Unanswered => 400,
        ModelErrorKind::Network
        | ModelErrorKind::Server
        | ModelErrorKind::Decode
        | ModelErrorKind::Configuration => 500,
    })
}

/// Writes an error as OpenAI does.
pub(super) fn openai_error(error: &ModelError, member: Option<&str>) -> Value {
    let (kind, code) = match error.kind {
        ModelErrorKind::RateLimit => ("rate_limit_error", Some("rate_limit_exceeded")),
        ModelErrorKind::Auth => ("authentication_error", Some("invalid_api_key")),
        ModelErrorKind::ContextTooLong => ("invalid_request_error", Some("context_length_exceeded")),
        ModelErrorKind::BadRequest => ("invalid_request_error", None),
        ModelErrorKind::Unanswered => ("invalid_request_error", Some("unanswered")),
        ModelErrorKind::Timeout => ("timeout_error", None),
        ModelErrorKind::Network
        | ModelErrorKind::Server
        | ModelErrorKind::Decode
        | ModelErrorKind::Configuration => ("server_error", None),
    };
    json!({"message": error.message, "type": kind, "param": member, "code": code})
}

/// Appends an event without a name.
pub(super) fn write_data(data: &Value, out: &mut Vec<u8>) {
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(data.to_string().as_bytes());
    out.extend_from_slice(b"\n\n");
}

/// Appends an event whose name is the member `type` of its data.
pub(super) fn write_event(data: &Value, out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(data["type"].as_str().unwrap_or_default().as_bytes());
    out.extend_from_slice(b"\n");
    write_data(data, out);
}

/// Returns a text member. Absent and null are equal.
pub(super) fn text_member<'v>(
    map: &'v Map<String, Value>,
    key: &str,
) -> Result<Option<&'v str>, RequestProblem> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(RequestProblem::at(key, format!("`{key}` must be a text"))),
    }
}

/// Returns the items of a list member. Absent and null are empty.
pub(super) fn list_member<'v>(map: &'v Map<String, Value>, key: &str) -> Result<&'v [Value], RequestProblem> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(RequestProblem::at(key, format!("`{key}` must be a list"))),
    }
}

/// Returns the required name of the model.
fn model_member(map: &Map<String, Value>) -> Result<String, RequestProblem> {
    match text_member(map, "model")? {
        Some(model) if !model.is_empty() => Ok(model.to_owned()),
        _ => Err(RequestProblem::at("model", "you must provide a `model`")),
    }
}

/// Returns a tool. `schema_key` is the key of the JSON Schema of its input.
pub(super) fn named_tool(
    tool: &Value,
    name: Option<&str>,
    schema_key: &str,
    missing_name: &str,
) -> Result<ModelTool, RequestProblem> {
    Ok(ModelTool {
        name: name.ok_or_else(|| RequestProblem::at("tools", missing_name))?.to_owned(),
        description: tool["description"].as_str().unwrap_or_default().to_owned(),
        input_schema: tool.get(schema_key).cloned().unwrap_or_else(|| json!({"type": "object"})),
    })
}

/// Reads the required format of the reply as OpenAI has it. `described` has the name of a JSON Schema, and the schema.
pub(super) fn openai_format(format: &Value, described: &Value) -> Option<ResponseFormat> {
    match format["type"].as_str()? {
        "json_schema" => Some(ResponseFormat {
            name: described["name"].as_str().unwrap_or_default().to_owned(),
            schema: described["schema"].clone(),
            strict: described["strict"] == true,
        }),
        "json_object" => Some(ResponseFormat {
            name: "json_object".to_owned(),
            schema: json!({"type": "object"}),
            strict: false,
        }),
        _ => None,
    }
}

/// Returns the text of a content: a text, or a list of parts. A part without text is represented by its type, for
/// instance `[image_url]`.
pub(super) fn content_text(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts: Vec<String> = parts.iter().filter_map(part_text).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

fn part_text(part: &Value) -> Option<String> {
    let text = ["text", "refusal"].into_iter().find_map(|key| part.get(key)?.as_str());
    match (text, part["type"].as_str().unwrap_or_default()) {
        (Some(text), _) => Some(text.to_owned()),
        // The thoughts of the model are no text of the conversation.
        (None, "thinking" | "redacted_thinking" | "reasoning") => None,
        (None, kind) => Some(format!("[{kind}]")),
    }
}

/// Collects messages: system prompts, calls by id, and results that need the names of their calls.
#[derive(Default)]
pub(super) struct MessageCollector {
    system: Vec<String>,
    messages: Vec<ModelMessage>,
}

impl MessageCollector {
    /// Adds a text of the platform: a part of the system prompt before the first other message, else a notice.
    pub(super) fn add_system(&mut self, text: String) {
        match self.messages.is_empty() {
            true => self.system.push(text),
            false => self.messages.push(ModelMessage::Notice { text }),
        }
    }

    pub(super) fn add_user(&mut self, text: String) {
        self.messages.push(ModelMessage::User { text });
    }

    pub(super) fn add_assistant(&mut self, text: String, tool_calls: Vec<ModelToolCall>) {
        self.messages.push(ModelMessage::Assistant { text, tool_calls, provider_parts: None });
    }

    /// Adds to the last message if it is a reply of the model: protocols split a reply into items.
    pub(super) fn extend_assistant(&mut self, text: &str, call: Option<ModelToolCall>) {
        if !matches!(self.messages.last(), Some(ModelMessage::Assistant { .. })) {
            self.add_assistant(String::new(), Vec::new());
        }
        if let Some(ModelMessage::Assistant { text: own, tool_calls, .. }) = self.messages.last_mut() {
            own.push_str(text);
            tool_calls.extend(call);
        }
    }

    /// Adds a tool result. Its call may be part of an earlier response.
    pub(super) fn add_result(&mut self, call_id: &str, text: &str, is_error: bool) {
        self.messages.push(ModelMessage::Tool(ModelToolResult {
            call_id: call_id.to_owned(),
            name: String::new(),
            content: result_value(text),
            is_error,
        }));
    }

    /// Returns the system prompt and the messages.
    pub(super) fn finish(self) -> (Option<String>, Vec<ModelMessage>) {
        let system = (!self.system.is_empty()).then(|| self.system.join("\n\n"));
        (system, self.messages)
    }
}

/// Returns the value of a tool result: objects and lists are parsed, so that templates can use their members.
fn result_value(text: &str) -> Value {
    let looks_like_json = text.trim_start().starts_with(['{', '[']);
    match looks_like_json.then(|| read_value(text)) {
        Some(Ok(value)) => value,
        _ => Value::String(text.to_owned()),
    }
}

/// Creates a tool call from the members of a protocol. Fails if it has no id or no name.
pub(super) fn tool_call(
    id: Option<&str>,
    name: Option<&str>,
    arguments: Option<&Value>,
) -> Result<ModelToolCall, RequestProblem> {
    let (Some(id), Some(name)) = (id, name) else {
        return Err(RequestProblem::at("messages", "a tool call needs an id and a name"));
    };
    let arguments = match arguments {
        Some(Value::String(text)) => parse_arguments(text.clone()),
        Some(Value::Null) | None => parse_arguments(String::new()),
        Some(other) => other.clone(),
    };
    Ok(ModelToolCall { id: id.to_owned(), name: name.to_owned(), arguments, ..ModelToolCall::default() })
}
