//! An event together with its execution.

use std::ops::Deref;
use std::sync::Arc;

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::Event;

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

impl<'de> Deserialize<'de> for EventRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct RecordEnvelope {
            execution_id: Option<Arc<str>>,
            execution_type: Option<ExecutionKind>,
            parent_execution_id: Option<Arc<str>>,
        }
        let line = Value::deserialize(deserializer)?;
        let envelope = RecordEnvelope::deserialize(&line).map_err(D::Error::custom)?;
        let execution = match (envelope.execution_id, envelope.execution_type) {
            (Some(id), Some(kind)) => Some(ExecutionInfo { id, kind, parent: envelope.parent_execution_id }),
            (None, None) => None,
            _ => return Err(D::Error::custom("executionId and executionType must be given together")),
        };
        let event = serde_json::from_value(line).map_err(D::Error::custom)?;
        Ok(EventRecord { event, execution })
    }
}
