//! An event together with its execution.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::{Event, Payload};

/// One line of a [`Trace`](crate::Trace).
#[derive(Debug, Clone, PartialEq)]
pub struct EventRecord {
    /// The event.
    pub event: Event,
    /// The execution. None for events from an adapter, which sees one conversation only.
    pub execution: Option<ExecutionInfo>,
}

/// A conversation or workflow run with events of its own in a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionInfo {
    /// Its id.
    pub id: Arc<str>,
    /// Kind of execution.
    pub kind: ExecutionKind,
    /// Id of the execution that started it. None for the root conversation.
    pub parent: Option<Arc<str>>,
}

/// Kind of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionKind {
    /// A conversation.
    Conversation,
    /// A workflow run.
    Workflow,
}

impl Deref for EventRecord {
    type Target = Event;

    fn deref(&self) -> &Event {
        &self.event
    }
}

impl From<Event> for EventRecord {
    fn from(event: Event) -> EventRecord {
        EventRecord { event, execution: None }
    }
}

impl Serialize for EventRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.execution.is_none() {
            return self.event.serialize(serializer);
        }
        let Value::Object(event) = serde_json::to_value(&self.event).map_err(S::Error::custom)? else {
            return Err(S::Error::custom("an event must be an object"));
        };
        let mut line = Map::new();
        for (key, value) in event {
            // The execution fields precede `type` and `payload`.
            if key == "type"
                && let Some(execution) = &self.execution
            {
                line.insert("executionId".to_string(), Value::from(&*execution.id));
                let kind = serde_json::to_value(execution.kind).map_err(S::Error::custom)?;
                line.insert("executionType".to_string(), kind);
                if let Some(parent) = &execution.parent {
                    line.insert("parentExecutionId".to_string(), Value::from(&**parent));
                }
            }
            line.insert(key, value);
        }
        line.serialize(serializer)
    }
}

/// Keys of a line.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum RecordKey {
    Sequence,
    OffsetUs,
    Timestamp,
    ExecutionId,
    ExecutionType,
    ParentExecutionId,
    Type,
    Payload,
    #[serde(other)]
    Unknown,
}

impl<'de> Deserialize<'de> for EventRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RecordVisitor)
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(EventRecord::deserialize(deserializer)?.event)
    }
}

struct RecordVisitor;

impl<'de> Visitor<'de> for RecordVisitor {
    type Value = EventRecord;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut line: A) -> Result<EventRecord, A::Error> {
        let (mut sequence, mut offset, mut timestamp) = (None, None, None);
        let (mut id, mut kind, mut parent) = (None, None, None);
        let mut type_name: Option<String> = None;
        let (mut payload, mut unread) = (None, None);
        while let Some(key) = line.next_key()? {
            match key {
                RecordKey::Sequence => sequence = Some(line.next_value()?),
                RecordKey::OffsetUs => offset = Some(line.next_value()?),
                RecordKey::Timestamp => timestamp = Some(line.next_value()?),
                RecordKey::ExecutionId => id = line.next_value()?,
                RecordKey::ExecutionType => kind = line.next_value()?,
                RecordKey::ParentExecutionId => parent = line.next_value()?,
                RecordKey::Type if type_name.is_some() => return Err(A::Error::duplicate_field("type")),
                RecordKey::Type => type_name = Some(line.next_value()?),
                // Traces have the type first, so the payload is read directly into its own form.
                RecordKey::Payload => match &type_name {
                    Some(name) => payload = Some(line.next_value_seed(PayloadSeed(name))?),
                    None => unread = Some(line.next_value::<Value>()?),
                },
                RecordKey::Unknown => drop(line.next_value::<IgnoredAny>()?),
            }
        }
        let missing = A::Error::missing_field;
        let type_name = type_name.ok_or_else(|| missing("type"))?;
        let payload = match (payload, unread) {
            (Some(payload), _) => payload,
            (None, Some(value)) => Payload::from_json(&type_name, value).map_err(A::Error::custom)?,
            (None, None) => return Err(missing("payload")),
        };
        let execution = match (id, kind) {
            (Some(id), Some(kind)) => Some(ExecutionInfo { id, kind, parent }),
            (None, None) => None,
            _ => return Err(A::Error::custom("executionId and executionType must be given together")),
        };
        let event = Event {
            sequence: sequence.ok_or_else(|| missing("sequence"))?,
            offset: offset.ok_or_else(|| missing("offsetUs"))?,
            timestamp: timestamp.ok_or_else(|| missing("timestamp"))?,
            payload,
        };
        Ok(EventRecord { event, execution })
    }
}

/// Reads the payload of an event type.
struct PayloadSeed<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for PayloadSeed<'_> {
    type Value = Payload;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Payload, D::Error> {
        Payload::deserialize_as(self.0, deserializer)
    }
}
