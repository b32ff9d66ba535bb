//! An event together with its execution.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::{Event, Payload, TimeOffset};

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

/// A record whose number and times are stored elsewhere: it is written without them, and read with zeros.
#[derive(Debug, Clone)]
pub struct TimelessRecord<R>(pub R);

impl EventRecord {
    /// Writes everything but the number and the times.
    fn serialize_content<M: SerializeMap>(&self, line: &mut M) -> Result<(), M::Error> {
        if let Some(execution) = &self.execution {
            line.serialize_entry("executionId", &execution.id)?;
            line.serialize_entry("executionType", &execution.kind)?;
            if let Some(parent) = &execution.parent {
                line.serialize_entry("parentExecutionId", parent)?;
            }
        }
        line.serialize_entry("type", self.payload.type_name())?;
        line.serialize_entry("payload", &self.payload)
    }
}

impl Serialize for EventRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut line = serializer.serialize_map(None)?;
        line.serialize_entry("sequence", &self.sequence)?;
        line.serialize_entry("offsetUs", &self.offset)?;
        line.serialize_entry("timestamp", &self.timestamp)?;
        self.serialize_content(&mut line)?;
        line.end()
    }
}

impl Serialize for TimelessRecord<&EventRecord> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut line = serializer.serialize_map(None)?;
        self.0.serialize_content(&mut line)?;
        line.end()
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
        deserializer.deserialize_map(RecordVisitor { is_timeless: false })
    }
}

impl<'de> Deserialize<'de> for TimelessRecord<EventRecord> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RecordVisitor { is_timeless: true }).map(TimelessRecord)
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(EventRecord::deserialize(deserializer)?.event)
    }
}

struct RecordVisitor {
    /// True if the number and the times may be missing.
    is_timeless: bool,
}

impl<'de> Visitor<'de> for RecordVisitor {
    type Value = EventRecord;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut line: A) -> Result<EventRecord, A::Error> {
        let zero = self.is_timeless;
        let (mut sequence, mut offset, mut timestamp) =
            (zero.then_some(0), zero.then(TimeOffset::default), zero.then_some(0));
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
