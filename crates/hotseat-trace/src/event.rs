//! The events of a trace: one fact each, numbered in the order in which they were decided.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::{Millis, Offset, Payload};

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
        let Envelope { sequence, offset_us: offset, timestamp, r#type, payload } =
            Envelope::deserialize(deserializer)?;
        let payload = Payload::from_json(&r#type, payload).map_err(D::Error::custom)?;
        Ok(Event { sequence, offset, timestamp, payload })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Origin, ToolInvoked};

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
                message_id: None,
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
