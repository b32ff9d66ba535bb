//! AG-UI wire format: the events of protocol 1.0 and earlier versions.
//!
//! Uses its own types instead of a published crate: ids are any text, unknown members and types are not
//! errors, and a `null` sent by older producers is read as absent.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, LazyLock};

use crate::connection::other_protocol_advice;
use crate::message::json_text;
use crate::message::json_text::{joined, readable};
use crate::target::parse_error;
use hotseat_document::excerpt;
use hotseat_document::json::{JsonReadError, any_value, objects, optional_value};
use hotseat_model::{MisplacedCalls, StopReason, ToolCallPiece, is_call_part, reported_error};
use hotseat_trace::{ErrorInfo, plain_text};
use memchr::memmem;
use serde::de::{IgnoredAny, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

pub(super) type EventMetadata = Option<Box<Map<String, Value>>>;

/// A message of the conversation: a JSON object with all members kept.
pub type MessageObject = Map<String, Value>;

/// Protocol version announced in requests.
pub const PROTOCOL_VERSION: &str = "1.0";

/// Reads an absent or `null` member as its default.
fn nullable<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Reads an id or a name directly into shared memory. Nearly every event has one.
fn shared<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    struct SharedText;

    impl Visitor<'_> for SharedText {
        type Value = Arc<str>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a string")
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Arc<str>, E> {
            Ok(text.into())
        }
    }
    deserializer.deserialize_str(SharedText)
}

/// Reads an informational text member: text as it is, anything else as JSON.
fn said<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Null => None,
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    })
}

/// The message of a `RUN_ERROR` that has none.
fn no_message() -> String {
    "RUN_ERROR without a `message`".to_string()
}

/// Reads the message of a failed run, which has failed also without one.
fn error_message<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(said(deserializer)?.filter(|text| !text.trim().is_empty()).unwrap_or_else(no_message))
}

/// Returns the text of an error member, if it has an error.
pub fn error_text(error: &Value) -> Option<String> {
    reported_error(Some(error)).map(plain_text)
}

fn tool_error<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(error_text(&Value::deserialize(deserializer)?))
}

/// Reads a member with a name of arguments. Fails if it has some, which no client would see.
fn no_arguments<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    let place = "the arguments of a call belong in `delta` of TOOL_CALL_ARGS or of a chunk, not in `arguments`, `args`, `input` or `parameters`";
    empty(deserializer, place)
}

/// Reads a member with a name of text. Fails if it has some, which no client would see.
fn no_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    let place = "the text of a message belongs in `delta` of TEXT_MESSAGE_CONTENT or of a chunk, not in `content` or `text`";
    empty(deserializer, place)
}

fn empty<'de, D: Deserializer<'de>>(deserializer: D, place: &str) -> Result<(), D::Error> {
    match MisplacedCalls::deserialize(deserializer)?.is_present {
        true => Err(serde::de::Error::custom(place)),
        false => Ok(()),
    }
}

/// Declares event bodies. Each may have `subagentRunId` and `metadata`.
macro_rules! bodies {
    ($($name:ident { $($(#[$attr:meta])* $field:ident: $ty:ty),* $(,)? })+) => {
        $(
            #[derive(Debug, Clone, Default, PartialEq, Deserialize)]
            #[serde(rename_all = "camelCase")]
            pub struct $name {
                $($(#[$attr])* pub $field: $ty,)*
                pub subagent_run_id: Option<Arc<str>>,
                #[serde(default)]
                pub metadata: EventMetadata,
            }
        )+
    };
}

bodies! {
    TextStart {
        #[serde(deserialize_with = "shared")] message_id: Arc<str>,
        #[serde(default)] role: Option<String>,
        #[serde(default)] name: Option<String>,
        #[serde(default, rename = "content", alias = "text", deserialize_with = "no_text")] misplaced_text: (),
    }
    TextDelta { #[serde(deserialize_with = "shared")] message_id: Arc<str>, delta: String }
    Ended { #[serde(deserialize_with = "shared")] message_id: Arc<str> }
    TextChunk {
        #[serde(default)] message_id: Option<Arc<str>>,
        #[serde(default)] role: Option<String>,
        #[serde(default, deserialize_with = "nullable")] delta: String,
        #[serde(default)] name: Option<String>,
        #[serde(default, rename = "content", alias = "text", deserialize_with = "no_text")] misplaced_text: (),
    }
    ToolStart {
        #[serde(deserialize_with = "shared")] tool_call_id: Arc<str>,
        #[serde(deserialize_with = "shared")] tool_call_name: Arc<str>,
        #[serde(default)] parent_message_id: Option<Arc<str>>,
        #[serde(default, rename = "arguments", alias = "args", alias = "input", alias = "parameters")]
        #[serde(deserialize_with = "no_arguments")]
        misplaced_arguments: (),
        /// True if a chunk starts the call, or continues it after other events.
        #[serde(skip)] is_implied: bool,
    }
    ToolArgs { #[serde(deserialize_with = "shared")] tool_call_id: Arc<str>, delta: String }
    ToolEnd {
        #[serde(deserialize_with = "shared")] tool_call_id: Arc<str>,
        /// True if the agent did not mark the end: its next event implies it.
        #[serde(skip)] is_implied: bool,
    }
    ToolChunk {
        #[serde(default)] tool_call_id: Option<Arc<str>>,
        #[serde(default)] tool_call_name: Option<Arc<str>>,
        #[serde(default)] parent_message_id: Option<Arc<str>>,
        #[serde(default, deserialize_with = "nullable")] delta: String,
        #[serde(default, rename = "arguments", alias = "args", alias = "input", alias = "parameters")]
        #[serde(deserialize_with = "no_arguments")]
        misplaced_arguments: (),
    }
    ToolResult {
        #[serde(deserialize_with = "shared")] tool_call_id: Arc<str>,
        #[serde(deserialize_with = "any_value")] content: Value,
        #[serde(default)] message_id: Option<Arc<str>>,
        #[serde(default, deserialize_with = "tool_error")] error: Option<String>,
    }
    StateSnapshot { #[serde(deserialize_with = "any_value")] snapshot: Value }
    StateDelta { #[serde(deserialize_with = "any_value")] delta: Value }
    MessagesSnapshot { #[serde(deserialize_with = "objects")] messages: Vec<MessageObject> }
    ActivitySnapshot {
        message_id: Arc<str>,
        activity_type: String,
        #[serde(deserialize_with = "any_value")] content: Value,
        #[serde(default)] replace: Option<bool>,
    }
    ActivityDelta {
        message_id: Arc<str>,
        activity_type: String,
        #[serde(deserialize_with = "any_value")] patch: Value,
    }
    RawEvent { event: IgnoredAny }
    CustomEvent { name: String, #[serde(default, deserialize_with = "any_value")] value: Value }
    RunStarted {
        #[serde(default)] thread_id: Option<Arc<str>>,
        #[serde(default)] run_id: Option<Arc<str>>,
        #[serde(default, deserialize_with = "said")] protocol_version: Option<String>,
        #[serde(default, deserialize_with = "optional_value")] input: Option<Value>,
    }
    RunFinished {
        #[serde(default)] thread_id: Option<Arc<str>>,
        #[serde(default)] run_id: Option<Arc<str>>,
        #[serde(default, deserialize_with = "optional_value")] result: Option<Value>,
        #[serde(default)] outcome: Option<WireOutcome>,
        #[serde(default, deserialize_with = "optional_value")] usage: Option<Value>,
        #[serde(default, deserialize_with = "optional_value")] error: Option<Value>,
    }
    RunError {
        #[serde(default = "no_message", deserialize_with = "error_message")] message: String,
        #[serde(default, deserialize_with = "said")] code: Option<String>,
        #[serde(default, deserialize_with = "optional_value")] usage: Option<Value>,
    }
    Step { step_name: String }
    Span { #[serde(default)] message_id: Option<Arc<str>> }
    ReasoningDelta { #[serde(default)] message_id: Option<Arc<str>>, delta: String }
    EncryptedValue { subtype: String, entity_id: Arc<str>, encrypted_value: String }
    SubagentStarted {
        #[serde(default)] name: Option<String>,
        #[serde(default)] parent_subagent_run_id: Option<Arc<str>>,
    }
    SubagentFinished { #[serde(default, deserialize_with = "optional_value")] result: Option<Value> }
    SubagentError { message: String, #[serde(default, deserialize_with = "said")] code: Option<String> }
}

impl RunStarted {
    /// Removes and returns the messages on which the agent runs, as far as it tells them.
    pub fn take_messages(&mut self) -> Vec<MessageObject> {
        let messages = self.input.as_mut().and_then(|input| input.get_mut("messages")?.as_array_mut());
        let messages = messages.map(std::mem::take).into_iter().flatten();
        let objects = messages.filter_map(|message| match message {
            Value::Object(message) => Some(message),
            _ => None,
        });
        objects.filter(|message| id(message).is_some() && !role(message).is_empty()).collect()
    }
}

impl ToolResult {
    /// Returns the error of a failed call. Only messages have a member for it, so `hotseat serve` tells it in the metadata
    /// of the event.
    pub fn error(&self) -> Option<&str> {
        let in_metadata = || self.metadata.as_ref()?.get("error")?.as_str();
        self.error.as_deref().or_else(in_metadata).filter(|error| !error.is_empty())
    }
}

/// Outcome of a run, if the producer reports it; absent means success.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(from = "WrittenOutcome")]
pub struct WireOutcome {
    /// `success`, `interrupt`, `cancelled`, or a value of a later version.
    pub r#type: String,
    /// Pending interrupts, if `type` is `interrupt`.
    pub interrupts: Vec<WireInterrupt>,
    /// Pending client-side calls, if the producer lists them.
    pub pending_tool_call_ids: Vec<Arc<str>>,
    /// Message of an error.
    pub message: Option<String>,
}

impl RunFinished {
    /// Returns the error of a run that finished with one: its member `error`, or an outcome such as `error` or `failed`.
    pub fn failure(&self) -> Option<ErrorInfo> {
        let of_outcome = || {
            let WireOutcome { r#type, message, .. } = self.outcome.as_ref()?;
            let is_cancelled = matches!(r#type.as_str(), "cancelled" | "canceled");
            (!is_cancelled && StopReason::from_provider(r#type).is_failure()).then(|| {
                let message = message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
                let message = format!("the run ended with the outcome {}{message}", r#type);
                ErrorInfo { code: None, message, retriable: None }
            })
        };
        self.error.as_ref().and_then(parse_error).or_else(of_outcome)
    }
}

/// Serialised outcome: drafts of the protocol had only the type.
#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenOutcome {
    Word(String),
    #[serde(rename_all = "camelCase")]
    Members {
        r#type: String,
        #[serde(default, deserialize_with = "nullable")]
        interrupts: Vec<WireInterrupt>,
        #[serde(default, deserialize_with = "nullable")]
        pending_tool_call_ids: Vec<Arc<str>>,
        #[serde(default, deserialize_with = "said")]
        message: Option<String>,
    },
}

impl From<WrittenOutcome> for WireOutcome {
    fn from(written: WrittenOutcome) -> Self {
        match written {
            WrittenOutcome::Word(r#type) => WireOutcome { r#type, ..WireOutcome::default() },
            WrittenOutcome::Members { r#type, interrupts, pending_tool_call_ids, message } => {
                WireOutcome { r#type, interrupts, pending_tool_call_ids, message }
            }
        }
    }
}

/// An interrupt of a paused run, with all members kept.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct WireInterrupt(pub Map<String, Value>);

impl WireInterrupt {
    /// Returns a text member.
    pub fn text(&self, member: &str) -> Option<&str> {
        self.0.get(member).and_then(Value::as_str)
    }
}

/// A text that is no event.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The text is no JSON object with a `type`.
    #[error("not an event, {reason}: {text}")]
    NoEvent { reason: String, text: String },
    /// A known type lacks a member, or has one of the wrong type.
    #[error("{event}: {}", without_place(.source))]
    Member { event: String, source: serde_json::Error },
    /// A known type in another spelling. Clients ignore such an event, and with it a call.
    #[error("the type `{written}` must be written `{known}`")]
    Misspelt { written: String, known: &'static str },
}

/// Declares [`Event`]: its variants, their type names, and how bodies are parsed.
macro_rules! events {
    ($($variant:ident($body:ty) = $name:literal),+ $(,)?) => {
        /// A received event.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Event {
            $($variant($body),)+
            /// An unknown type.
            Unknown(String),
        }

        /// Type names on the wire.
        const KNOWN: &[&str] = &[$($name),+];

        impl Event {
            /// Parses an event. Fails if the text is not a JSON object with a `type`, or a known type lacks a
            /// member or has one of the wrong type.
            pub fn parse(text: &str) -> Result<Received, WireError> {
                let text = readable(text);
                // Only text sent in pieces can be continued by the next event.
                let text = &*if may_be_piece(&text) { text } else { Cow::Owned(joined(text.into_owned())) };
                let head = match Head::in_front(text) {
                    Some(head) => head,
                    None => serde_json::from_str(text).map_err(|error| not_an_event(text, &error))?,
                };
                let event = match &*head.r#type {
                    $($name => {
                        let body = serde_json::from_str::<$body>(text).map_err(|source| match source.is_data() {
                            true => WireError::Member { event: head.r#type.to_string(), source },
                            false => not_an_event(text, &source),
                        })?;
                        Event::$variant(body)
                    })+
                    other => {
                        // No body is read, so only this finds what is wrong with the text.
                        serde_json::from_str::<Head<'_>>(text).map_err(|error| not_an_event(text, &error))?;
                        match KNOWN.iter().find(|known| is_other_spelling(other, known)) {
                            Some(known) => return Err(WireError::Misspelt { written: other.to_string(), known }),
                            None => Event::Unknown(other.to_string()),
                        }
                    }
                };
                Ok(Received { event, null_subagent: head.subagent_run_id == Tag::Null })
            }

            /// Returns the type name.
            pub fn type_name(&self) -> &str {
                match self {
                    $(Event::$variant(_) => $name,)+
                    Event::Unknown(name) => name,
                }
            }

            /// Returns the sub-agent that the event belongs to; `None` for the agent itself.
            pub fn subagent(&self) -> Option<&Arc<str>> {
                match self {
                    $(Event::$variant(body) => body.subagent_run_id.as_ref(),)+
                    Event::Unknown(_) => None,
                }
            }
        }
    };
}

// Events are moved several times, so rare large ones are boxed.
events! {
    TextStart(TextStart) = "TEXT_MESSAGE_START",
    TextContent(TextDelta) = "TEXT_MESSAGE_CONTENT",
    TextEnd(Ended) = "TEXT_MESSAGE_END",
    TextChunk(TextChunk) = "TEXT_MESSAGE_CHUNK",
    ToolStart(ToolStart) = "TOOL_CALL_START",
    ToolArgs(ToolArgs) = "TOOL_CALL_ARGS",
    ToolEnd(ToolEnd) = "TOOL_CALL_END",
    ToolChunk(ToolChunk) = "TOOL_CALL_CHUNK",
    ToolResult(Box<ToolResult>) = "TOOL_CALL_RESULT",
    StateSnapshot(StateSnapshot) = "STATE_SNAPSHOT",
    StateDelta(StateDelta) = "STATE_DELTA",
    MessagesSnapshot(MessagesSnapshot) = "MESSAGES_SNAPSHOT",
    ActivitySnapshot(Box<ActivitySnapshot>) = "ACTIVITY_SNAPSHOT",
    ActivityDelta(Box<ActivityDelta>) = "ACTIVITY_DELTA",
    Raw(RawEvent) = "RAW",
    Custom(Box<CustomEvent>) = "CUSTOM",
    RunStarted(RunStarted) = "RUN_STARTED",
    RunFinished(Box<RunFinished>) = "RUN_FINISHED",
    RunError(RunError) = "RUN_ERROR",
    StepStarted(Step) = "STEP_STARTED",
    StepFinished(Step) = "STEP_FINISHED",
    ReasoningStart(Span) = "REASONING_START",
    ReasoningMessageStart(Span) = "REASONING_MESSAGE_START",
    ReasoningContent(ReasoningDelta) = "REASONING_MESSAGE_CONTENT",
    ReasoningMessageEnd(Span) = "REASONING_MESSAGE_END",
    ReasoningChunk(TextChunk) = "REASONING_MESSAGE_CHUNK",
    ReasoningEnd(Span) = "REASONING_END",
    EncryptedValue(EncryptedValue) = "REASONING_ENCRYPTED_VALUE",
    SubagentStarted(SubagentStarted) = "SUBAGENT_STARTED",
    SubagentFinished(SubagentFinished) = "SUBAGENT_FINISHED",
    SubagentError(SubagentError) = "SUBAGENT_ERROR",
    // Producers before 1.0 call reasoning thinking and give it no ids.
    ThinkingStart(Span) = "THINKING_START",
    ThinkingMessageStart(Span) = "THINKING_TEXT_MESSAGE_START",
    ThinkingContent(ReasoningDelta) = "THINKING_TEXT_MESSAGE_CONTENT",
    ThinkingMessageEnd(Span) = "THINKING_TEXT_MESSAGE_END",
    ThinkingEnd(Span) = "THINKING_END",
}

/// An event, with a detail that its members do not show.
#[derive(Debug, Clone, PartialEq)]
pub struct Received {
    /// The event.
    pub event: Event,
    /// True if `subagentRunId` is `null`, which no version allows.
    pub null_subagent: bool,
}

/// Finds keys that make [`Head::in_front`] parse an event in full.
static TYPE_KEY: LazyLock<memmem::Finder<'_>> = LazyLock::new(|| memmem::Finder::new("\"type\""));
static SUBAGENT_KEY: LazyLock<memmem::Finder<'_>> = LazyLock::new(|| memmem::Finder::new("subagentRunId"));

/// Members read before the type is known.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(default, rename = "subagentRunId")]
    subagent_run_id: Tag,
}

impl<'a> Head<'a> {
    /// Reads the head of an event whose type comes first, as nearly all producers write it; parsing the whole
    /// text twice would be slow.
    fn in_front(text: &'a str) -> Option<Self> {
        let rest = text.strip_prefix("{\"type\":")?;
        let rest = rest.strip_prefix(' ').unwrap_or(rest).strip_prefix('"')?;
        let end = rest.bytes().position(|byte| !(byte.is_ascii_uppercase() || byte == b'_'))?;
        let name = &rest[..end];
        let rest = &rest[end..];
        let has = |part: &memmem::Finder<'_>| part.find(rest.as_bytes()).is_some();
        // A second `type` is an error, found only by parsing the whole text. It may be escaped.
        let may_repeat = has(&TYPE_KEY)
            || memchr::memchr(b'\\', rest.as_bytes()).is_some_and(|at| rest[at..].contains("\\u00"));
        let plain = rest.starts_with('"') && !may_repeat && !has(&SUBAGENT_KEY);
        plain.then_some(Head { r#type: Cow::Borrowed(name), subagent_run_id: Tag::Absent })
    }
}

/// Returns true if words differ in case and separators only, such as `toolCallStart` and `TOOL_CALL_START`.
fn is_other_spelling(written: &str, known: &str) -> bool {
    fn letters(word: &str) -> impl Iterator<Item = u8> {
        word.bytes().filter(u8::is_ascii_alphanumeric).map(|letter| letter.to_ascii_uppercase())
    }
    letters(written).eq(letters(known))
}

/// Presence of a member.
#[derive(Default, PartialEq)]
enum Tag {
    #[default]
    Absent,
    Null,
    There,
}

impl<'de> Deserialize<'de> for Tag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let there: Option<IgnoredAny> = Option::deserialize(deserializer)?;
        Ok(if there.is_some() { Tag::There } else { Tag::Null })
    }
}

/// Returns true if an event has no lone surrogate, or may be continued by another event.
fn may_be_piece(text: &str) -> bool {
    // The mark is no ASCII, unlike most events.
    text.is_ascii()
        || !text.contains(json_text::MARK)
        || ["_CONTENT", "_ARGS", "_CHUNK"].iter().any(|kind| text.contains(&format!("{kind}\"")))
}

fn not_an_event(text: &str, error: &serde_json::Error) -> WireError {
    let reason = match serde_json::from_str::<Value>(text) {
        _ if error.to_string().starts_with("duplicate field") => without_place(error),
        Ok(Value::Object(object)) if object.contains_key("type") => "its `type` is not text".to_string(),
        Ok(Value::Object(_)) => match other_protocol_advice(text) {
            Some(advice) => format!("it has no `type`; {advice}"),
            None => "it has no `type`".to_string(),
        },
        Ok(_) => "it is not a JSON object".to_string(),
        Err(error) => format!("it {}", JsonReadError::from(error)),
    };
    WireError::NoEvent { reason, text: excerpt(text, 200).into_owned() }
}

/// Returns the text of a JSON error without its position, which is meaningless in a stream.
fn without_place(error: &serde_json::Error) -> String {
    let words = error.to_string();
    words.split(" at line ").next().unwrap_or(&words).to_string()
}

/// Returns the role of a message.
pub fn role(message: &MessageObject) -> &str {
    message.get("role").and_then(Value::as_str).unwrap_or("")
}

/// Roles of messages.
pub const ROLES: [&str; 7] = ["assistant", "user", "tool", "system", "developer", "reasoning", "activity"];

/// Names of the role `assistant` elsewhere.
const FOREIGN_ASSISTANT_ROLES: [&str; 4] = ["agent", "ai", "bot", "model"];

/// Returns true if a role means the agent, but is not written `assistant`.
pub fn is_misspelt_assistant(role: &str) -> bool {
    let word = role.trim().to_ascii_lowercase();
    role != "assistant" && (word == "assistant" || FOREIGN_ASSISTANT_ROLES.contains(&&*word))
}

/// Returns the id of a message.
pub fn id(message: &MessageObject) -> Option<&str> {
    message.get("id").and_then(Value::as_str)
}

/// Returns the content of a message as text: text as it is, the joined text of parts, which some producers write as plain
/// texts, empty if absent or `null`.
pub fn text(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            parts.iter().filter_map(|part| part.as_str().or_else(|| part.get("text")?.as_str())).collect()
        }
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

/// A tool call inside an assistant message.
pub struct CallInMessage<'a> {
    pub id: &'a str,
    pub name: &'a str,
    /// JSON text; some producers send an object.
    pub arguments: Cow<'a, str>,
}

/// Returns the tool calls of a message.
pub fn calls(message: &MessageObject) -> impl Iterator<Item = CallInMessage<'_>> {
    call_entries(message).iter().filter_map(call_in_message)
}

/// Names of the member `toolCalls` in other protocols.
const FOREIGN_CALL_KEYS: [&str; 3] = ["tool_calls", "function_call", "functionCall"];

/// Returns the first tool call of the agent that is not a call in `toolCalls`. No check would see it.
pub fn invalid_call(message: &MessageObject) -> Option<&Value> {
    if role(message) != "assistant" {
        return None;
    }
    let invalid = match message.get("toolCalls") {
        None | Some(Value::Null) => None,
        Some(Value::Array(calls)) => calls.iter().find(|call| !is_whole_call(call)),
        Some(other) => Some(other),
    };
    let foreign = || {
        FOREIGN_CALL_KEYS
            .iter()
            .filter_map(|key| message.get(*key))
            .find(|value| MisplacedCalls::are_in(value))
    };
    let parts = || message.get("content").and_then(Value::as_array).into_iter().flatten();
    invalid.or_else(foreign).or_else(|| parts().find(|part| is_call_part(part)))
}

/// Returns true if a call is readable, and has no arguments where none are read, which would count as none.
fn is_whole_call(call: &Value) -> bool {
    call_in_message(call).is_some() && ToolCallPiece::deserialize(call).is_ok()
}

fn call_entries(message: &MessageObject) -> &[Value] {
    message.get("toolCalls").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn call_in_message(call: &Value) -> Option<CallInMessage<'_>> {
    let function = call.get("function")?;
    Some(CallInMessage {
        id: call.get("id")?.as_str()?,
        name: function.get("name")?.as_str().filter(|name| !name.is_empty())?,
        arguments: match function.get("arguments") {
            Some(Value::String(text)) => Cow::Borrowed(text),
            Some(Value::Null) | None => Cow::Borrowed(""),
            Some(other) => Cow::Owned(other.to_string()),
        },
    })
}

/// Merges metadata member by member; later values replace earlier ones.
pub(super) fn merge_metadata(into: &mut MessageObject, metadata: EventMetadata) {
    let Some(metadata) = metadata else { return };
    match into.get_mut("metadata") {
        Some(Value::Object(known)) => known.extend(*metadata),
        _ => {
            into.insert("metadata".to_string(), Value::Object(*metadata));
        }
    }
}

/// Sets the sub-agent of a message, if it has one.
pub(super) fn set_subagent(message: &mut MessageObject, subagent: Option<&Arc<str>>) {
    if let Some(subagent) = subagent {
        message.insert("subagentRunId".to_string(), Value::String(subagent.to_string()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_null_as_absent() {
        let with = Event::parse(
            r#"{"type":"TOOL_CALL_START","toolCallId":"1","toolCallName":"x","parentMessageId":null,"rawEvent":null,"zzz":1}"#,
        );
        let without = Event::parse(r#"{"type":"TOOL_CALL_START","toolCallId":"1","toolCallName":"x"}"#);
        assert_eq!(with.unwrap(), without.unwrap());
    }

    #[test]
    fn describes_invalid_events() {
        for (text, words) in [
            ("null", "it is not a JSON object"),
            ("[1]", "it is not a JSON object"),
            ("{}", "it has no `type`"),
            (r#"{"type":5}"#, "its `type` is not text"),
            ("{not json", "it is not JSON"),
            (
                r#"{"type":"TOOL_CALL_START","toolCallName":"x"}"#,
                "TOOL_CALL_START: missing field `toolCallId`",
            ),
            (
                r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":5}"#,
                "TEXT_MESSAGE_CONTENT: invalid type: integer `5`, expected a string",
            ),
        ] {
            let error = Event::parse(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn rejects_duplicate_type() {
        let first = r#"{"type":"CUSTOM","name":"x","value":{"type":"inner"}"#;
        for second in
            [r#","type":"CUSTOM"}"#, r#","\u0074ype":"TOOL_CALL_START"}"#, r#", "typ\u0065" : "RAW"}"#]
        {
            let error = Event::parse(&format!("{first}{second}")).unwrap_err().to_string();
            assert!(error.contains("duplicate field `type`"), "{second}: {error}");
        }
        let late = r#"{"name":"x","type":"CUSTOM","value":1,"type":"CUSTOM"}"#;
        assert!(Event::parse(late).unwrap_err().to_string().contains("duplicate field `type`"));
        assert!(Event::parse(&format!("{first}}}")).is_ok());
    }

    #[test]
    fn accepts_outcome_without_members() {
        let outcome = |text: &str| match Event::parse(text).map(|received| received.event) {
            Ok(Event::RunFinished(finished)) => finished.outcome,
            other => panic!("{other:?}"),
        };
        let word = outcome(r#"{"type":"RUN_FINISHED","outcome":"success"}"#);
        assert_eq!(
            word,
            outcome(r#"{"type":"RUN_FINISHED","outcome":{"type":"success","interrupts":null}}"#)
        );
        assert_eq!(outcome(r#"{"type":"RUN_FINISHED","outcome":null}"#), None);
    }

    #[test]
    fn accepts_unknown_types() {
        let read = Event::parse(r#"{"type":"SOMETHING_NEW","x":1}"#).unwrap();
        assert_eq!(read.event, Event::Unknown("SOMETHING_NEW".into()));
        for written in ["tool_call_start", "ToolCallStart", "TOOL-CALL-START", " TOOL_CALL_START"] {
            let error = Event::parse(&json!({"type": written}).to_string()).unwrap_err();
            assert_eq!(error.to_string(), format!("the type `{written}` must be written `TOOL_CALL_START`"));
        }
    }
}
