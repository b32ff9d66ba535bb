//! AG-UI on the wire: the events of protocol 1.0 and of the versions before it.
//!
//! Own types rather than a published crate: ids are any text, unknown members and unknown types are not
//! errors, and a `null` where older producers put one is read as absent.

use std::borrow::Cow;
use std::sync::Arc;

use crate::adapters::excerpt;
use crate::adapters::json_text::{self, joined, readable};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// A message of the conversation as the protocol carries it: a JSON object with every member kept.
pub type Message = Map<String, Value>;

/// The protocol version that requests announce.
pub const PROTOCOL_VERSION: &str = "1.0";

/// Reads a member that may be absent or `null` as its default.
fn nullable<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Reads a member that should be text and decides nothing: text as it is, anything else as JSON.
fn said<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Null => None,
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    })
}

/// Declares the bodies of events. `subagentRunId` and `metadata` may stand on each of them.
macro_rules! bodies {
    ($($name:ident { $($(#[$attr:meta])* $field:ident: $ty:ty),* $(,)? })+) => {
        $(
            #[derive(Debug, Clone, Default, PartialEq, Deserialize)]
            #[serde(rename_all = "camelCase")]
            pub struct $name {
                $($(#[$attr])* pub $field: $ty,)*
                #[serde(default)]
                pub subagent_run_id: Option<Arc<str>>,
                #[serde(default)]
                pub metadata: Option<Map<String, Value>>,
            }
        )+
    };
}

bodies! {
    TextStart { message_id: Arc<str>, #[serde(default)] role: Option<String>, #[serde(default)] name: Option<String> }
    TextDelta { message_id: Arc<str>, delta: String }
    Ended { message_id: Arc<str> }
    TextChunk {
        #[serde(default)] message_id: Option<Arc<str>>,
        #[serde(default)] role: Option<String>,
        #[serde(default, deserialize_with = "nullable")] delta: String,
        #[serde(default)] name: Option<String>,
    }
    ToolStart {
        tool_call_id: Arc<str>,
        tool_call_name: Arc<str>,
        #[serde(default)] parent_message_id: Option<Arc<str>>,
    }
    ToolArgs { tool_call_id: Arc<str>, delta: String }
    ToolEnd { tool_call_id: Arc<str> }
    ToolChunk {
        #[serde(default)] tool_call_id: Option<Arc<str>>,
        #[serde(default)] tool_call_name: Option<Arc<str>>,
        #[serde(default)] parent_message_id: Option<Arc<str>>,
        #[serde(default, deserialize_with = "nullable")] delta: String,
    }
    ToolResult {
        tool_call_id: Arc<str>,
        content: Value,
        #[serde(default)] message_id: Option<Arc<str>>,
        #[serde(default, deserialize_with = "said")] error: Option<String>,
    }
    StateSnapshot { snapshot: Value }
    StateDelta { delta: Value }
    MessagesSnapshot { messages: Vec<Message> }
    ActivitySnapshot {
        message_id: Arc<str>,
        activity_type: String,
        content: Value,
        #[serde(default)] replace: Option<bool>,
    }
    ActivityDelta { message_id: Arc<str>, activity_type: String, patch: Value }
    RawEvent { event: IgnoredAny }
    CustomEvent { name: String, #[serde(default)] value: Value }
    RunStarted {
        #[serde(default)] thread_id: Option<Arc<str>>,
        #[serde(default)] run_id: Option<Arc<str>>,
        #[serde(default, deserialize_with = "said")] protocol_version: Option<String>,
    }
    RunFinished {
        #[serde(default)] thread_id: Option<Arc<str>>,
        #[serde(default)] run_id: Option<Arc<str>>,
        #[serde(default)] result: Option<Value>,
        #[serde(default)] outcome: Option<Outcome>,
        #[serde(default)] usage: Option<Value>,
    }
    RunError { message: String, #[serde(default, deserialize_with = "said")] code: Option<String> }
    Step { step_name: String }
    Span { #[serde(default)] message_id: Option<Arc<str>> }
    ReasoningDelta { #[serde(default)] message_id: Option<Arc<str>>, delta: String }
    EncryptedValue { subtype: String, entity_id: Arc<str>, encrypted_value: String }
    SubagentStarted {
        #[serde(default)] name: Option<String>,
        #[serde(default)] parent_subagent_run_id: Option<Arc<str>>,
    }
    SubagentFinished { #[serde(default)] result: Option<Value> }
    SubagentError { message: String, #[serde(default, deserialize_with = "said")] code: Option<String> }
}

/// How a run ended, where the producer says: absent means success.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "WrittenOutcome")]
pub struct Outcome {
    /// `success`, `interrupt`, `cancelled`, or a word of a later version.
    pub r#type: String,
    /// What the agent waits for, when `type` is `interrupt`.
    pub interrupts: Vec<Interrupt>,
    /// Client-side calls that wait for an answer, where the producer lists them.
    pub pending_tool_call_ids: Vec<Arc<str>>,
}

/// The outcome as it is written: drafts of the protocol had the word alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenOutcome {
    Word(String),
    #[serde(rename_all = "camelCase")]
    Members {
        r#type: String,
        #[serde(default, deserialize_with = "nullable")]
        interrupts: Vec<Interrupt>,
        #[serde(default, deserialize_with = "nullable")]
        pending_tool_call_ids: Vec<Arc<str>>,
    },
}

impl From<WrittenOutcome> for Outcome {
    fn from(written: WrittenOutcome) -> Self {
        match written {
            WrittenOutcome::Word(r#type) => {
                Outcome { r#type, interrupts: Vec::new(), pending_tool_call_ids: Vec::new() }
            }
            WrittenOutcome::Members { r#type, interrupts, pending_tool_call_ids } => {
                Outcome { r#type, interrupts, pending_tool_call_ids }
            }
        }
    }
}

/// A question of a paused run. All members are kept, those that decide something are read by the methods.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct Interrupt(pub Map<String, Value>);

impl Interrupt {
    /// A text member.
    pub fn text(&self, member: &str) -> Option<&str> {
        self.0.get(member).and_then(Value::as_str)
    }
}

/// Declares [`Event`]: its variants, the type names of the wire, and how a body is read.
macro_rules! events {
    ($($variant:ident($body:ty) = $($name:literal)|+),+ $(,)?) => {
        /// One event as received.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Event {
            $($variant($body),)+
            /// A type that this version does not know.
            Unknown(String),
        }

        /// The type names of the wire.
        const KNOWN: &[&str] = &[$($($name),+),+];

        impl Event {
            /// Reads an event.
            ///
            /// # Errors
            /// When the text is not a JSON object with a `type`, or a known type lacks a member or has one of
            /// the wrong type. The error is worded for people.
            pub fn parse(text: &str) -> Result<Received, String> {
                let text = readable(text);
                // Only a text that comes in pieces can get its other half from the next event.
                let text = &*if may_be_piece(&text) { text } else { Cow::Owned(joined(text.into_owned())) };
                let head = match Head::in_front(text) {
                    Some(head) => head,
                    None => serde_json::from_str(text).map_err(|error| not_an_event(text, &error))?,
                };
                let event = match &*head.r#type {
                    $($($name)|+ => {
                        let body = serde_json::from_str::<$body>(text).map_err(|error| match error.is_data() {
                            true => format!("{}: {}", head.r#type, without_place(&error)),
                            false => not_an_event(text, &error),
                        })?;
                        Event::$variant(body)
                    })+
                    other => Event::Unknown(other.to_string()),
                };
                Ok(Received { event, null_subagent: head.subagent_run_id == Tag::Null })
            }
        }
    };
}

events! {
    TextStart(TextStart) = "TEXT_MESSAGE_START",
    TextContent(TextDelta) = "TEXT_MESSAGE_CONTENT",
    TextEnd(Ended) = "TEXT_MESSAGE_END",
    TextChunk(TextChunk) = "TEXT_MESSAGE_CHUNK",
    ToolStart(ToolStart) = "TOOL_CALL_START",
    ToolArgs(ToolArgs) = "TOOL_CALL_ARGS",
    ToolEnd(ToolEnd) = "TOOL_CALL_END",
    ToolChunk(ToolChunk) = "TOOL_CALL_CHUNK",
    ToolResult(ToolResult) = "TOOL_CALL_RESULT",
    StateSnapshot(StateSnapshot) = "STATE_SNAPSHOT",
    StateDelta(StateDelta) = "STATE_DELTA",
    MessagesSnapshot(MessagesSnapshot) = "MESSAGES_SNAPSHOT",
    ActivitySnapshot(ActivitySnapshot) = "ACTIVITY_SNAPSHOT",
    ActivityDelta(ActivityDelta) = "ACTIVITY_DELTA",
    Raw(RawEvent) = "RAW",
    Custom(CustomEvent) = "CUSTOM",
    RunStarted(RunStarted) = "RUN_STARTED",
    RunFinished(RunFinished) = "RUN_FINISHED",
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

/// An event, and what its members do not show.
#[derive(Debug, Clone, PartialEq)]
pub struct Received {
    /// The event.
    pub event: Event,
    /// `subagentRunId` is `null`, which no version allows: it is there or it is not.
    pub null_subagent: bool,
}

/// What every event is looked at for before its type is known.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(default, rename = "subagentRunId")]
    subagent_run_id: Tag,
}

impl<'a> Head<'a> {
    /// The head of an event whose type stands in front, as nearly all producers write it: reading the whole text
    /// twice would be the better part of what an event costs. Types that are not known are read in full.
    fn in_front(text: &'a str) -> Option<Self> {
        let rest = text.strip_prefix("{\"type\":")?;
        let rest = rest.strip_prefix(' ').unwrap_or(rest).strip_prefix('"')?;
        let end = rest.find(|c: char| !(c.is_ascii_uppercase() || c == '_'))?;
        let name = &rest[..end];
        let rest = &rest[end..];
        // A second `type` is a fault, which only the whole text shows. It may be written with escapes.
        let may_repeat = rest.contains("\"type\"") || rest.contains("\\u00");
        let plain =
            rest.starts_with('"') && KNOWN.contains(&name) && !may_repeat && !rest.contains("subagentRunId");
        plain.then_some(Head { r#type: Cow::Borrowed(name), subagent_run_id: Tag::Absent })
    }
}

/// Whether a member is there.
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

/// Whether the text of an event is none of those with half a character in them, or may be continued by another event.
fn may_be_piece(text: &str) -> bool {
    !text.contains(json_text::MARK)
        || ["_CONTENT", "_ARGS", "_CHUNK"].iter().any(|kind| text.contains(&format!("{kind}\"")))
}

fn not_an_event(text: &str, error: &serde_json::Error) -> String {
    let reason = match serde_json::from_str::<Value>(text) {
        _ if error.to_string().starts_with("duplicate field") => without_place(error),
        Ok(Value::Object(object)) if object.contains_key("type") => "its `type` is not text".to_string(),
        Ok(Value::Object(_)) => "it has no `type`".to_string(),
        Ok(_) => "it is not a JSON object".to_string(),
        Err(_) => format!("it is not JSON ({error})"),
    };
    format!("not an event, {reason}: {}", excerpt(text, 200))
}

/// The words of a JSON error without its place, which means nothing to somebody who reads a stream.
fn without_place(error: &serde_json::Error) -> String {
    let words = error.to_string();
    words.split(" at line ").next().unwrap_or(&words).to_string()
}

/// The role of a message.
pub fn role(message: &Message) -> &str {
    message.get("role").and_then(Value::as_str).unwrap_or("")
}

/// The id of a message.
pub fn id(message: &Message) -> Option<&str> {
    message.get("id").and_then(Value::as_str)
}

/// The content of a message as text: text as it is, the texts of parts joined, nothing for absent or `null`.
pub fn text(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

/// A tool call inside an assistant message.
pub struct CallInMessage<'a> {
    pub id: &'a str,
    pub name: &'a str,
    /// As text; some producers write them as an object.
    pub arguments: Cow<'a, str>,
}

/// The tool calls of a message; entries that lack an id or a name are passed over.
pub fn calls(message: &Message) -> impl Iterator<Item = CallInMessage<'_>> {
    let calls = message.get("toolCalls").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    calls.iter().filter_map(|call| {
        let function = call.get("function")?;
        Some(CallInMessage {
            id: call.get("id")?.as_str()?,
            name: function.get("name")?.as_str()?,
            arguments: match function.get("arguments") {
                Some(Value::String(text)) => Cow::Borrowed(text),
                Some(Value::Null) | None => Cow::Borrowed(""),
                Some(other) => Cow::Owned(other.to_string()),
            },
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_that_are_absent_or_null_are_read_alike() {
        let with = Event::parse(
            r#"{"type":"TOOL_CALL_START","toolCallId":"1","toolCallName":"x","parentMessageId":null,"rawEvent":null,"zzz":1}"#,
        );
        let without = Event::parse(r#"{"type":"TOOL_CALL_START","toolCallId":"1","toolCallName":"x"}"#);
        assert_eq!(with, without);
        assert!(with.is_ok());
    }

    #[test]
    fn what_is_not_an_event_is_said_in_words() {
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
            let error = Event::parse(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn a_second_type_is_an_error_wherever_it_stands() {
        let first = r#"{"type":"CUSTOM","name":"x","value":{"type":"inner"}"#;
        for second in
            [r#","type":"CUSTOM"}"#, r#","\u0074ype":"TOOL_CALL_START"}"#, r#", "typ\u0065" : "RAW"}"#]
        {
            let error = Event::parse(&format!("{first}{second}")).unwrap_err();
            assert!(error.contains("duplicate field `type`"), "{second}: {error}");
        }
        let late = r#"{"name":"x","type":"CUSTOM","value":1,"type":"CUSTOM"}"#;
        assert!(Event::parse(late).unwrap_err().contains("duplicate field `type`"));
        assert!(Event::parse(&format!("{first}}}")).is_ok());
    }

    #[test]
    fn an_outcome_may_be_its_word_alone() {
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
    fn an_unknown_type_is_not_an_error() {
        let read = Event::parse(r#"{"type":"SOMETHING_NEW","x":1}"#).map(|received| received.event);
        assert_eq!(read, Ok(Event::Unknown("SOMETHING_NEW".into())));
    }
}
