//! Events of recordings: the enumeration, its file format, reading and writing.

use hotseat_document::{
    Diagnostic, Diagnostics, Field, FromDocument, Kind, MapView, NodeView, Shape, TaggedShapes,
};
use hotseat_trace::Origin;
use serde_json::{Value, json};

use crate::message::ToolReply;

/// Kind of a time.
pub(super) const MILLISECONDS: Kind = Kind::Number;
const STARTED: Field = Field::optional("started_ms", MILLISECONDS, "Start time, if the event took time.");
const ENDED: Field = Field::optional(
    "ended_ms",
    MILLISECONDS,
    "Time of the last part of the arguments, if the call has no result. Default: the time of the event.",
);

/// Members of an event by key, in the order of the file.
pub(super) type EventMembers = Vec<(&'static str, Value)>;

/// Declares the kinds of events: the variants of [`RecordedEventKind`], their shapes, reading and writing.
///
/// A member has a key of its own, or is read and written by functions under several fields. A member that has the
/// value `absent`, by default that of its type, is not written.
macro_rules! recorded_events {
    ($(
        $(#[doc = $doc:literal])+
        $variant:ident $word:literal as $name:literal $([$($extra:expr),+])? {$(
            #[doc = $member_doc:literal]
            $member:ident: $type:ty = $([$($field:expr),+] $read:ident $write:ident)?
            $($presence:ident $kind:expr $(, default $default:literal)?)? $(, absent $absent:literal)?
            $(, from $from:expr)?,
        )+}
    )+) => {
        /// Kind and content of an event.
        #[derive(Debug, Clone)]
        pub enum RecordedEventKind {$(
            $(#[doc = $doc])+
            $variant {$(
                #[doc = $member_doc]
                $member: $type,
            )+},
        )+}

        /// An event of a turn.
        pub(super) static EVENT: TaggedShapes = TaggedShapes {
            key: "type",
            shapes: &[$(&Shape {
                name: $name,
                doc: concat!($($doc),+).trim_ascii(),
                fields: &[
                    Field::required("type", Kind::Choice(&[$word]), "Type of the event."),
                    Field::optional(
                        "at_ms",
                        MILLISECONDS,
                        "Time since the start of the turn. Default: that of the previous event.",
                    ),
                    $($($extra,)+)?
                    $(
                        $($($field,)+)?
                        $(Field::$presence(stringify!($member), $kind, $member_doc.trim_ascii())
                            $(.default($default))?,)?
                    )+
                ],
            }),+],
            untagged: None,
        };

        impl RecordedEventKind {
            /// Reads the kind and content of an event.
            pub(super) fn read(map: &MapView<'_>, mistakes: &mut Diagnostics) -> Option<Self> {
                match map.text("type")? {
                    $($word => Some(RecordedEventKind::$variant {$(
                        $member: recorded_events!(
                            @read map mistakes $member $($read)? $($presence)? $(absent $absent)? $(from $from)?
                        ),
                    )+}),)+
                    _ => None,
                }
            }

            /// Returns the type and the members of the event.
            pub(super) fn members(&self) -> (&'static str, EventMembers) {
                let mut members = EventMembers::new();
                let word = match self {$(
                    RecordedEventKind::$variant { $($member),+ } => {
                        $(recorded_events!(
                            @write members $member $type; $($write)? $($presence)? $(absent $absent)?
                        );)+
                        $word
                    }
                )+};
                (word, members)
            }
        }
    };
    (@read $map:ident $mistakes:ident $member:ident required) => {
        FromDocument::from_view($map.get(stringify!($member))?)?
    };
    (@read $map:ident $mistakes:ident $member:ident optional $(absent $absent:literal)? $(from $from:expr)?) => {{
        let value = $map.get(stringify!($member)).and_then(hotseat_document::document_shape!(@from $($from)?));
        value.unwrap_or_else(|| recorded_events!(@absent $($absent)?))
    }};
    (@read $map:ident $mistakes:ident $member:ident $read:ident) => { $read($map, $mistakes)? };
    (@write $members:ident $member:ident $type:ty; required) => {
        $members.push((stringify!($member), json!($member)))
    };
    (@write $members:ident $member:ident $type:ty; optional $(absent $absent:literal)?) => {
        let absent: $type = recorded_events!(@absent $($absent)?);
        if *$member != absent {
            $members.push((stringify!($member), json!($member)));
        }
    };
    (@write $members:ident $member:ident $type:ty; $write:ident) => { $members.extend($write($member)) };
    (@absent) => { Default::default() };
    (@absent $absent:literal) => { $absent.into() };
}

recorded_events! {
    /// The agent sent a message.
    Message "message" as "RecordedMessage" [STARTED] {
        /// The full text.
        text: String = required Kind::Text,
        /// True if the same message called tools. Omitted if unknown.
        calls_tools: Option<bool> = optional Kind::Bool,
        /// Sub-agent that caused the event.
        subagent: Option<String> = optional Kind::Text,
    }
    /// Reasoning of the agent; never part of its messages.
    Reasoning "reasoning" as "RecordedReasoning" {
        /// The full text.
        text: String = required Kind::Text,
    }
    /// The agent called a tool.
    ToolCall "tool_call" as "RecordedToolCall" [STARTED, ENDED] {
        /// Id of the call, unique in the recording.
        id: String = required Kind::Text,
        /// The tool.
        tool: String = required Kind::Text,
        /// The arguments.
        arguments: RecordedArguments = [
            Field::optional("arguments", Kind::Json, "The arguments."),
            Field::optional("arguments_text", Kind::Text, "The arguments, if they are not valid JSON.")
        ] read_arguments write_arguments,
        /// `snapshot`: seen only after the fact, in a snapshot or an answer that arrived as a whole. `model`: seen only in the reply of a served model.
        origin: Origin = optional Kind::Choice(&["snapshot", "model"]), from origin,
        /// Sub-agent that caused the event.
        subagent: Option<String> = optional Kind::Text,
    }
    /// A tool returned. Either `result` or `error`.
    ToolResult "tool_result" as "RecordedToolResult" {
        /// Id of the call.
        id: String = required Kind::Text,
        /// The returned value or the error message.
        result: ToolReply = [
            Field::optional("result", Kind::Json, "The returned value."),
            Field::optional("error", Kind::Text, "The error message.")
        ] read_result write_result,
        /// `client`: answered by the test, which must answer the same during replay. `snapshot`: seen only in a snapshot of the messages.
        origin: Origin = optional Kind::Choice(&["client", "snapshot"]), from origin,
    }
    /// The agent paused for an answer.
    Interrupt "interrupt" as "RecordedInterrupt" {
        /// Its id.
        id: String = required Kind::Text,
        /// Reason, as a short name.
        reason: Option<String> = optional Kind::Text,
        /// Question for a human.
        message: Option<String> = optional Kind::Text,
        /// Tool whose call is on hold.
        tool: Option<String> = optional Kind::Text,
        /// That call.
        tool_call_id: Option<String> = optional Kind::Text,
        /// Full data of the interrupt.
        value: Value = optional Kind::Json,
    }
    /// The test answered an interrupt, and must answer the same during replay.
    InterruptAnswer "interrupt_answer" as "RecordedInterruptAnswer" {
        /// Id of the interrupt.
        id: String = required Kind::Text,
        /// The answer, or `None` if cancelled.
        payload: Option<Value> = [
            Field::required(
                "status",
                Kind::Choice(&["resolved", "cancelled"]),
                "`resolved` if answered, `cancelled` if refused."
            ),
            Field::optional("payload", Kind::Json, "The answer.")
        ] read_answer write_answer,
    }
    /// The agent published its state.
    State "state" as "RecordedState" {
        /// The full state, as last seen in the turn.
        state: Value = required Kind::Json,
    }
    /// The agent declared if it waits for the user.
    AwaitingInput "awaiting_input" as "RecordedAwaitingInput" {
        /// True if it waits.
        awaiting: bool = required Kind::Bool,
        /// Requested input.
        hint: Option<String> = optional Kind::Text,
    }
    /// A note about the protocol. It affects no check.
    Note "note" as "RecordedNote" {
        /// What.
        text: String = required Kind::Text,
    }
    /// An MCP server of the test observed a call, its answer or a fault, or a served model of the test injected a
    /// fault.
    Mcp "mcp" as "RecordedMcp" {
        /// Type of the event in the trace.
        event: String = required Kind::Choice(MCP_EVENTS),
        /// Payload of the event, without the turn.
        payload: Value = required Kind::JsonMap,
    }
    /// The agent completed a run. A turn may have several runs.
    Finished "finished" as "RecordedFinish" {
        /// Outcome as reported by the agent.
        outcome: String = optional Kind::Text, default "success", absent "success",
        /// The returned value.
        result: Option<Value> = optional Kind::Json,
        /// Token usage.
        usage: Option<Value> = optional Kind::Json,
        /// Finish reason of the last reply.
        finish_reason: Option<String> = optional Kind::Text,
    }
    /// The agent reported a failure. It is the last event of its turn.
    Error "error" as "RecordedError" {
        /// Error message.
        message: String = required Kind::Text,
        /// Short error code.
        code: Option<String> = optional Kind::Text,
        /// Token usage until the failure.
        usage: Option<Value> = optional Kind::Json,
    }
}

/// Types of events that MCP servers observe.
const MCP_EVENTS: &[&str] = &[
    "mcp.connected",
    "tool.invoked",
    "mcp.arguments_invalid",
    "mcp.arguments_unchecked",
    "mcp.fault_injected",
    "interrupt.raised",
    "interrupt.answered",
    "tool.completed",
    "tool.failed",
    "mcp.answer_lost",
    "llm.fault_injected",
];

/// Arguments of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum RecordedArguments {
    /// No arguments given.
    None,
    /// JSON arguments.
    Json(Value),
    /// Text that is not valid JSON.
    Broken(String),
}

impl RecordedArguments {
    /// Returns an empty object.
    pub fn empty() -> Self {
        RecordedArguments::Json(Value::Object(serde_json::Map::new()))
    }

    /// Parses arguments that should be JSON. An empty text and `null` mean an empty object.
    pub fn parse(text: String) -> Self {
        match hotseat_model::read_arguments(&text) {
            Ok(value) => RecordedArguments::Json(value),
            Err(_) => RecordedArguments::Broken(text),
        }
    }
}

fn read_arguments(map: &MapView<'_>, mistakes: &mut Diagnostics) -> Option<RecordedArguments> {
    Some(match (map.json("arguments"), map.get("arguments_text")) {
        (Some(_), Some(text)) => {
            mistakes.push(error_at(text, "`arguments` and `arguments_text` both give the arguments"));
            return None;
        }
        (Some(Value::Null) | None, None) => RecordedArguments::None,
        (Some(value), None) => RecordedArguments::Json(value),
        (None, Some(text)) => RecordedArguments::Broken(String::from_view(text)?),
    })
}

fn write_arguments(arguments: &RecordedArguments) -> Option<(&'static str, Value)> {
    match arguments {
        RecordedArguments::None => None,
        RecordedArguments::Json(value) => Some(("arguments", value.clone())),
        RecordedArguments::Broken(text) => Some(("arguments_text", json!(text))),
    }
}

fn read_result(map: &MapView<'_>, mistakes: &mut Diagnostics) -> Option<ToolReply> {
    match (map.json("result"), map.text("error")) {
        (Some(value), None) => Some(ToolReply::Content(value)),
        (None, Some(message)) => Some(ToolReply::Error(message.to_string())),
        (Some(_), Some(_)) | (None, None) => {
            mistakes.report(map.place(), "a tool result must have either `result` or `error`");
            None
        }
    }
}

fn write_result(result: &ToolReply) -> [(&'static str, Value); 1] {
    match result {
        ToolReply::Content(value) => [("result", value.clone())],
        ToolReply::Error(message) => [("error", json!(message))],
    }
}

fn read_answer(map: &MapView<'_>, mistakes: &mut Diagnostics) -> Option<Option<Value>> {
    let cancelled = map.text("status") == Some("cancelled");
    if let (true, Some(view)) = (cancelled, map.get("payload")) {
        mistakes.push(error_at(view, "a cancelled interrupt must not have a `payload`"));
    }
    Some((!cancelled).then(|| map.json("payload").unwrap_or_default()))
}

fn write_answer(payload: &Option<Value>) -> EventMembers {
    let status = if payload.is_some() { "resolved" } else { "cancelled" };
    let answer = payload.clone().filter(|payload| !payload.is_null());
    [("status", json!(status))].into_iter().chain(answer.map(|answer| ("payload", answer))).collect()
}

fn origin(view: NodeView<'_>) -> Option<Origin> {
    serde_json::from_value(view.json()).ok()
}

/// Returns a diagnostic at a value.
pub(super) fn error_at(view: NodeView<'_>, message: &str) -> Diagnostic {
    Diagnostic::new(message).at(view.place())
}
