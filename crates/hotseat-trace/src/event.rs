//! Events of a trace, numbered in the order in which they were decided.

use serde::{Serialize, Serializer};

use crate::{Millis, Payload, TimeOffset};

/// Version of the serialised form of [`Event`].
///
/// Readers reject newer versions. New event types and new optional fields do not change the version.
pub const FORMAT_VERSION: u32 = 1;

/// One event of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Number in the trace, from 1 without gaps, assigned when the event is decided.
    pub sequence: u64,
    /// When it happened, on the monotonic clock of the session.
    pub offset: TimeOffset,
    /// When it happened, on the wall clock.
    pub timestamp: Millis,
    /// Type and content of the event.
    pub payload: Payload,
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut out = serializer.serialize_struct("Event", 5)?;
        out.serialize_field("sequence", &self.sequence)?;
        out.serialize_field("offsetUs", &self.offset)?;
        out.serialize_field("timestamp", &self.timestamp)?;
        out.serialize_field("type", self.payload.type_name())?;
        out.serialize_field("payload", &self.payload)?;
        out.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ToolInvocation;

    #[test]
    fn event_round_trips_in_documented_shape() {
        let event = Event {
            sequence: 4,
            offset: TimeOffset(1500),
            timestamp: 1_700_000_000_000,
            payload: ToolInvocation {
                turn_id: "turn-1".into(),
                tool_call_id: "c1".into(),
                tool_name: "echo".into(),
                input: Some(json!({"text": "hi"})),
                ..ToolInvocation::default()
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
    fn unknown_event_type_round_trips() {
        let unknown = json!({"sequence": 1, "offsetUs": 0, "timestamp": 0, "type": "weather.changed", "payload": {"rain": true}});
        let event: Event = serde_json::from_value(unknown.clone()).unwrap();
        assert!(matches!(&event.payload, Payload::Other(name, _) if name == "weather.changed"));
        assert_eq!(serde_json::to_value(&event).unwrap(), unknown);
    }

    #[test]
    fn members_may_have_any_order() {
        let line = r#"{"payload":{"turnId":"t"},"x":[1],"timestamp":2,"type":"turn.completed","offsetUs":3,"sequence":4}"#;
        let event: Event = serde_json::from_str(line).unwrap();
        assert!(matches!(&event.payload, Payload::TurnCompleted(turn) if &*turn.turn_id == "t"));
        assert_eq!((event.sequence, event.offset, event.timestamp), (4, TimeOffset(3), 2));
        let error =
            serde_json::from_str::<Event>(&line.replace("\"sequence\":4", "\"type\":\"x\"")).unwrap_err();
        assert!(error.to_string().contains("duplicate field `type`"), "{error}");
    }

    #[test]
    fn rejects_known_type_with_missing_member() {
        let broken = json!({"sequence": 1, "offsetUs": 0, "timestamp": 0, "type": "tool.completed", "payload": {"turnId": "t"}});
        let error = serde_json::from_value::<Event>(broken).unwrap_err().to_string();
        assert!(error.contains("toolCallId"), "{error}");
    }
}
