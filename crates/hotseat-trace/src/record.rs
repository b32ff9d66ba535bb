//! An event together with the execution that it is part of.

use std::ops::Deref;
use std::sync::Arc;

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::Event;

/// One line of a [`Trace`](crate::Trace).
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// What happened.
    pub event: Event,
    /// What it is part of; absent where an adapter saw it, which sees one conversation only.
    pub execution: Option<Execution>,
}

/// A conversation or a run of a workflow that has events of its own in a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    /// Its id.
    pub id: Arc<str>,
    /// What it is.
    pub kind: ExecutionKind,
    /// What it was started by; absent for the conversation that the trace is of.
    pub parent: Option<Arc<str>>,
}

/// What an execution is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionKind {
    /// A conversation.
    Conversation,
    /// A run of a workflow.
    Workflow,
}

impl Deref for Record {
    type Target = Event;

    fn deref(&self) -> &Event {
        &self.event
    }
}

impl From<Event> for Record {
    fn from(event: Event) -> Record {
        Record { event, execution: None }
    }
}

impl Serialize for Record {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.execution.is_none() {
            return self.event.serialize(serializer);
        }
        let Value::Object(event) = serde_json::to_value(&self.event).map_err(S::Error::custom)? else {
            return Err(S::Error::custom("an event is an object"));
        };
        let mut line = Map::new();
        for (key, value) in event {
            // The envelope comes before the members.
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

impl<'de> Deserialize<'de> for Record {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Envelope {
            execution_id: Option<Arc<str>>,
            execution_type: Option<ExecutionKind>,
            parent_execution_id: Option<Arc<str>>,
        }
        let line = Value::deserialize(deserializer)?;
        let envelope = Envelope::deserialize(&line).map_err(D::Error::custom)?;
        let execution = match (envelope.execution_id, envelope.execution_type) {
            (Some(id), Some(kind)) => Some(Execution { id, kind, parent: envelope.parent_execution_id }),
            (None, None) => None,
            _ => return Err(D::Error::custom("executionId and executionType stand together")),
        };
        let event = serde_json::from_value(line).map_err(D::Error::custom)?;
        Ok(Record { event, execution })
    }
}
