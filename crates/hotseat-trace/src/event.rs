//! The events of a trace: one fact each, numbered in the order in which they were decided.

use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::{Millis, Offset};

/// The version of the serialised form of [`Event`].
///
/// A reader refuses a newer one. New event types and new optional members do not change it.
pub const FORMAT_VERSION: u32 = 1;

/// One fact of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Place in the trace, from 1, without gaps, given at the moment of decision.
    pub sequence: u64,
    /// When it happened, on the monotonic clock of the session.
    pub offset: Offset,
    /// When it happened, on the wall clock.
    pub timestamp: Millis,
    /// What happened.
    pub payload: Payload,
}

/// Declares [`Payload`]: its variants, their dotted type names, and the way to and from JSON.
macro_rules! payloads {
    ($($(#[$doc:meta])* $variant:ident($body:ty) = $name:literal),+ $(,)?) => {
        /// What happened: the type of an event with its members.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Payload {
            $($(#[$doc])* $variant($body),)+
            /// A type that this version does not know; kept so that foreign traces load and are saved whole.
            Other(String, Value),
        }

        impl Payload {
            /// The dotted type name, for instance `tool.invoked`.
            pub fn type_name(&self) -> &str {
                match self {
                    $(Payload::$variant(_) => $name,)+
                    Payload::Other(name, _) => name,
                }
            }

            /// The members as JSON.
            ///
            /// # Errors
            /// When a member cannot be written as JSON, which no payload built here can cause.
            pub fn to_json(&self) -> serde_json::Result<Value> {
                match self {
                    $(Payload::$variant(body) => serde_json::to_value(body),)+
                    Payload::Other(_, value) => Ok(value.clone()),
                }
            }

            /// Reads the members of the event type `name`.
            ///
            /// # Errors
            /// When a known type lacks a member or has one of the wrong type.
            pub fn from_json(name: &str, value: Value) -> serde_json::Result<Payload> {
                match name {
                    $($name => serde_json::from_value(value).map(Payload::$variant),)+
                    _ => Ok(Payload::Other(name.to_string(), value)),
                }
            }

            fn serialize_members<S: serde::ser::SerializeStruct>(&self, out: &mut S) -> Result<(), S::Error> {
                match self {
                    $(Payload::$variant(body) => out.serialize_field("payload", body),)+
                    Payload::Other(_, value) => out.serialize_field("payload", value),
                }
            }
        }
    };
}

payloads! {
    /// A turn began: a user input is about to be sent.
    TurnStarted(TurnStarted) = "turn.started",
    /// The agent is done with the turn.
    TurnCompleted(TurnCompleted) = "turn.completed",
    /// The turn could not be held to its end.
    TurnFailed(TurnFailed) = "turn.failed",
    /// The user said something.
    UserMessage(UserMessage) = "message.user",
    /// The agent finished a message.
    AssistantMessage(AssistantMessage) = "message.assistant",
    /// The agent finished a piece of reasoning; never part of what it said.
    ReasoningMessage(ReasoningMessage) = "message.reasoning",
    /// A tool call began. Its arguments may follow.
    ToolInvoked(ToolInvoked) = "tool.invoked",
    /// The arguments of a call are known, or known better than before.
    ToolArguments(ToolArguments) = "tool.arguments",
    /// A tool answered.
    ToolCompleted(ToolCompleted) = "tool.completed",
    /// A tool failed.
    ToolFailed(ToolFailed) = "tool.failed",
    /// The agent's shared state was replaced.
    StateSnapshot(StateSnapshot) = "state.snapshot",
    /// The agent's shared state was patched.
    StateDelta(StateDelta) = "state.delta",
    /// One request to the agent was accepted; a turn may need several.
    AgentRunStarted(AgentRunStarted) = "agent.run.started",
    /// The agent ended a run in order.
    AgentRunFinished(AgentRunFinished) = "agent.run.finished",
    /// The agent said that its run failed.
    AgentRunFailed(AgentRunFailed) = "agent.run.failed",
    /// The agent paused and waits for an answer.
    InterruptRaised(InterruptRaised) = "interrupt.raised",
    /// An interrupt was answered.
    InterruptAnswered(InterruptAnswered) = "interrupt.answered",
    /// A named step of the agent began.
    StepStarted(Step) = "step.started",
    /// A named step of the agent ended.
    StepFinished(Step) = "step.finished",
    /// The agent handed work to another agent.
    SubagentStarted(Subagent) = "subagent.started",
    /// Another agent gave its work back.
    SubagentFinished(Subagent) = "subagent.finished",
    /// Another agent failed.
    SubagentFailed(Subagent) = "subagent.failed",
    /// An activity, or any other event that has a name of its own.
    Custom(Custom) = "custom",
    /// What the adapter received, as received; kept where asked for.
    Raw(Raw) = "raw",
    /// Something about the protocol that a person should know and that decides nothing.
    Note(Note) = "protocol.note",
}

/// For each type of members that belongs to one event type only.
macro_rules! from_members {
    ($($name:ident),+ $(,)?) => {
        $(impl From<$name> for Payload {
            fn from(members: $name) -> Payload {
                Payload::$name(members)
            }
        })+
    };
}

from_members! {
    TurnStarted, TurnCompleted, TurnFailed, UserMessage, AssistantMessage, ReasoningMessage, ToolInvoked,
    ToolArguments, ToolCompleted, ToolFailed, StateSnapshot, StateDelta, AgentRunStarted, AgentRunFinished,
    AgentRunFailed, InterruptRaised, InterruptAnswered, Custom, Raw, Note,
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut out = serializer.serialize_struct("Event", 5)?;
        out.serialize_field("sequence", &self.sequence)?;
        out.serialize_field("offsetUs", &self.offset)?;
        out.serialize_field("timestamp", &self.timestamp)?;
        out.serialize_field("type", self.payload.type_name())?;
        self.payload.serialize_members(&mut out)?;
        out.end()
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Envelope {
            sequence: u64,
            offset_us: Offset,
            timestamp: Millis,
            r#type: String,
            payload: Value,
        }
        let Envelope { sequence, offset_us: offset, timestamp, r#type, payload } = Envelope::deserialize(deserializer)?;
        let payload = Payload::from_json(&r#type, payload).map_err(D::Error::custom)?;
        Ok(Event { sequence, offset, timestamp, payload })
    }
}

/// Where a fact was seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// In the agent's stream of events, as it happened.
    #[default]
    Stream,
    /// Only in a snapshot of the messages, after it happened.
    Snapshot,
    /// The client did it: an answer of a client-side tool.
    Client,
}

impl Origin {
    fn is_stream(&self) -> bool {
        *self == Origin::Stream
    }
}

/// An error as an agent or a tool words it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrorInfo {
    /// A short name that programs compare, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What people read.
    pub message: String,
    /// Whether the same call may succeed later, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retriable: Option<bool>,
}

/// Declares the members of event types; all are written in camel case, absent options are left out.
macro_rules! members {
    ($($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident: $ty:ty),* $(,)? })+) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
            #[serde(rename_all = "camelCase")]
            pub struct $name {
                /// The turn it belongs to.
                pub turn_id: Arc<str>,
                $($(#[$fdoc])* pub $field: $ty,)*
            }
        )+
    };
}

members! {
    /// `turn.started`
    TurnStarted {
        /// The conversation; for AG-UI its thread id.
        conversation_id: Arc<str>,
        /// Who spoke: the id of a user, a run or an agent.
        caller_id: Arc<str>,
        /// What `caller_id` names: `user`, `workflow` or `agent`.
        caller_type: Arc<str>,
    }
    /// `turn.completed`
    TurnCompleted {}
    /// `turn.failed`
    TurnFailed {
        /// Why.
        error: ErrorInfo,
    }
    /// `message.user`
    UserMessage {
        /// Id of the message in the conversation.
        message_id: Arc<str>,
        /// What was said.
        content: String,
    }
    /// `message.assistant`
    AssistantMessage {
        /// Id of the message in the conversation.
        message_id: Arc<str>,
        /// The whole text of the message.
        content: String,
        /// Whether the same message called tools.
        has_tool_use: bool,
        /// When its first part arrived; the event itself marks the end of the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        started_us: Option<Offset>,
        /// Where it was seen.
        #[serde(default, skip_serializing_if = "Origin::is_stream")]
        origin: Origin,
        /// The sub-agent that said it; absent for the agent itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subagent: Option<Arc<str>>,
    }
    /// `message.reasoning`
    ReasoningMessage {
        /// Id of the message in the conversation.
        message_id: Arc<str>,
        /// The whole text.
        content: String,
        /// The sub-agent that thought it; absent for the agent itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subagent: Option<Arc<str>>,
    }
    /// `tool.invoked`
    ToolInvoked {
        /// Id of the call, unique in the trace.
        tool_call_id: Arc<str>,
        /// Name of the tool.
        tool_name: Arc<str>,
        /// What the tool is, where the agent says: `task`, `workflow`, `agent`; `client` for client-side tools.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target_type: Option<Arc<str>>,
        /// Which task, workflow or agent it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target_id: Option<Arc<str>>,
        /// Whether the agent goes on before the tool has answered.
        #[serde(default)]
        r#async: bool,
        /// The arguments, where they are known at once; otherwise `tool.arguments` follows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Value>,
        /// When it began, where that was before the event: the arrival of the snapshot that told of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        started_us: Option<Offset>,
        /// Where it was seen.
        #[serde(default, skip_serializing_if = "Origin::is_stream")]
        origin: Origin,
        /// The sub-agent that called; absent for the agent itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subagent: Option<Arc<str>>,
    }
    /// `tool.arguments`
    ToolArguments {
        /// The call.
        tool_call_id: Arc<str>,
        /// The arguments as JSON; absent when the text is not JSON.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Value>,
        /// The text as received; present only when it is not JSON.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    }
    /// `tool.completed`
    ToolCompleted {
        /// The call.
        tool_call_id: Arc<str>,
        /// What the tool returned: JSON where it is JSON, otherwise text.
        output: Value,
        /// Where it was seen.
        #[serde(default, skip_serializing_if = "Origin::is_stream")]
        origin: Origin,
    }
    /// `tool.failed`
    ToolFailed {
        /// The call.
        tool_call_id: Arc<str>,
        /// Why.
        error: ErrorInfo,
        /// Where it was seen.
        #[serde(default, skip_serializing_if = "Origin::is_stream")]
        origin: Origin,
    }
    /// `state.snapshot`
    StateSnapshot {
        /// The whole new state.
        state: Value,
    }
    /// `state.delta`
    StateDelta {
        /// A JSON Patch (RFC 6902).
        patch: Value,
        /// The state after it; absent when the patch did not apply, which changes nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<Value>,
    }
    /// `agent.run.started`
    AgentRunStarted {
        /// Id of the run.
        run_id: Arc<str>,
        /// The protocol version that the agent announced.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        protocol_version: Option<String>,
    }
    /// `agent.run.finished`
    AgentRunFinished {
        /// Id of the run.
        run_id: Arc<str>,
        /// `success`, `interrupt`, `cancelled`, or what the agent said.
        outcome: Arc<str>,
        /// What the run returned.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        /// What the run cost, as the agent reports it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Value>,
    }
    /// `agent.run.failed`
    AgentRunFailed {
        /// Why.
        error: ErrorInfo,
    }
    /// `interrupt.raised`
    InterruptRaised {
        /// Id of the interrupt.
        interrupt_id: Arc<str>,
        /// Why the agent waits, as a short name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// What a person is asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// The tool call it holds up.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_call_id: Option<Arc<str>>,
        /// Everything the agent said of it.
        value: Value,
    }
    /// `interrupt.answered`
    InterruptAnswered {
        /// Id of the interrupt.
        interrupt_id: Arc<str>,
        /// `resolved` or `cancelled`.
        status: Arc<str>,
        /// The answer; absent when cancelled.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        payload: Option<Value>,
    }
    /// `step.started`, `step.finished`
    Step {
        /// Name of the step.
        name: String,
    }
    /// `subagent.started`, `subagent.finished`, `subagent.failed`
    Subagent {
        /// Id of this piece of work.
        subagent: Arc<str>,
        /// Name of the agent, where it is said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// What it returned.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        /// Why it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ErrorInfo>,
    }
    /// `custom`
    Custom {
        /// Name of the event.
        name: String,
        /// Its value.
        value: Value,
    }
    /// `raw`
    Raw {
        /// The event as received.
        event: Value,
    }
    /// `protocol.note`
    Note {
        /// What a person should know.
        message: String,
        /// Number of the received protocol event in its run, from 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        event: Option<u64>,
    }
}

impl Payload {
    /// The turn an event belongs to; none for types this version does not know.
    pub fn turn_id(&self) -> Option<&Arc<str>> {
        Some(match self {
            Payload::TurnStarted(p) => &p.turn_id,
            Payload::TurnCompleted(p) => &p.turn_id,
            Payload::TurnFailed(p) => &p.turn_id,
            Payload::UserMessage(p) => &p.turn_id,
            Payload::AssistantMessage(p) => &p.turn_id,
            Payload::ReasoningMessage(p) => &p.turn_id,
            Payload::ToolInvoked(p) => &p.turn_id,
            Payload::ToolArguments(p) => &p.turn_id,
            Payload::ToolCompleted(p) => &p.turn_id,
            Payload::ToolFailed(p) => &p.turn_id,
            Payload::StateSnapshot(p) => &p.turn_id,
            Payload::StateDelta(p) => &p.turn_id,
            Payload::AgentRunStarted(p) => &p.turn_id,
            Payload::AgentRunFinished(p) => &p.turn_id,
            Payload::AgentRunFailed(p) => &p.turn_id,
            Payload::InterruptRaised(p) => &p.turn_id,
            Payload::InterruptAnswered(p) => &p.turn_id,
            Payload::StepStarted(p) | Payload::StepFinished(p) => &p.turn_id,
            Payload::SubagentStarted(p) | Payload::SubagentFinished(p) | Payload::SubagentFailed(p) => &p.turn_id,
            Payload::Custom(p) => &p.turn_id,
            Payload::Raw(p) => &p.turn_id,
            Payload::Note(p) => &p.turn_id,
            Payload::Other(..) => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_has_the_documented_shape_and_reads_back() {
        let event = Event {
            sequence: 4,
            offset: Offset(1500),
            timestamp: 1_700_000_000_000,
            payload: ToolInvoked {
                turn_id: "turn-1".into(),
                tool_call_id: "c1".into(),
                tool_name: "echo".into(),
                target_type: None,
                target_id: None,
                r#async: false,
                input: Some(json!({"text": "hi"})),
                started_us: None,
                origin: Origin::Stream,
                subagent: None,
            }
            .into(),
        };
        let written = serde_json::to_value(&event).unwrap();
        assert_eq!(
            written,
            json!({"sequence": 4, "offsetUs": 1500, "timestamp": 1_700_000_000_000_i64, "type": "tool.invoked",
                "payload": {"turnId": "turn-1", "toolCallId": "c1", "toolName": "echo", "async": false, "input": {"text": "hi"}}})
        );
        assert_eq!(serde_json::from_value::<Event>(written).unwrap(), event);
    }

    #[test]
    fn an_unknown_type_survives_a_round_trip() {
        let foreign = json!({"sequence": 1, "offsetUs": 0, "timestamp": 0, "type": "weather.changed", "payload": {"rain": true}});
        let event: Event = serde_json::from_value(foreign.clone()).unwrap();
        assert!(matches!(&event.payload, Payload::Other(name, _) if name == "weather.changed"));
        assert_eq!(serde_json::to_value(&event).unwrap(), foreign);
    }

    #[test]
    fn a_known_type_with_a_missing_member_is_refused() {
        let broken = json!({"sequence": 1, "offsetUs": 0, "timestamp": 0, "type": "tool.completed", "payload": {"turnId": "t"}});
        let error = serde_json::from_value::<Event>(broken).unwrap_err().to_string();
        assert!(error.contains("toolCallId"), "{error}");
    }
}
