//! Digests in place of the inputs and outputs of hook runs.
//!
//! A hook run builds the request of a model call from the whole conversation, or extracts memories. What it reads and
//! returns follows from the entries, so a store that kept it would contain the conversation once more for each call. A
//! digest is enough to notice that the values are others when the entries are applied again.

use std::sync::Arc;

use hotseat_trace::{
    ActionCompleted, ActionStarted, Event, EventRecord, Payload, TaskCompleted, TaskStarted, WorkOrigin,
    WorkflowCompleted, WorkflowStarted,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Maximum size of a value that stays as it is in a store. A digest is smaller, so it stays as well.
const MAX_STORED_BYTES: usize = 256;

/// Replaces long inputs and outputs of hook runs by digests.
#[derive(Debug)]
pub struct HookDigests {
    /// Maximum size of a value that stays as it is.
    max_bytes: usize,
    /// The last value with its replacement: a run and its first task have the same input.
    last: Option<(Arc<Value>, Arc<Value>)>,
}

/// For stores.
impl Default for HookDigests {
    fn default() -> Self {
        HookDigests::new(MAX_STORED_BYTES)
    }
}

impl HookDigests {
    /// Keeps values up to this size.
    pub fn new(max_bytes: usize) -> HookDigests {
        HookDigests { max_bytes, last: None }
    }

    /// Returns the record with a digest in place of the input or output of a hook run, or `None` if it stays as it is.
    pub fn shorten(&mut self, record: &EventRecord) -> Option<EventRecord> {
        let payload = match &record.payload {
            Payload::WorkflowStarted(p) if is_hook(p.origin) => {
                Payload::WorkflowStarted(WorkflowStarted { input: self.digest(&p.input)?, ..p.clone() })
            }
            Payload::WorkflowCompleted(p) if is_hook(p.origin) => {
                Payload::WorkflowCompleted(WorkflowCompleted { output: self.digest(&p.output)?, ..p.clone() })
            }
            Payload::TaskStarted(p) if is_hook(p.origin) => {
                Payload::TaskStarted(TaskStarted { input: self.digest(&p.input)?, ..p.clone() })
            }
            Payload::TaskCompleted(p) if is_hook(p.origin) => {
                Payload::TaskCompleted(TaskCompleted { output: self.digest(&p.output)?, ..p.clone() })
            }
            Payload::ActionStarted(p) if is_hook(p.origin) => {
                Payload::ActionStarted(ActionStarted { input: self.digest(&p.input)?, ..p.clone() })
            }
            Payload::ActionCompleted(p) if is_hook(p.origin) => {
                Payload::ActionCompleted(ActionCompleted { output: self.digest(&p.output)?, ..p.clone() })
            }
            _ => return None,
        };
        let Event { sequence, offset, timestamp, .. } = record.event;
        let event = Event { sequence, offset, timestamp, payload };
        Some(EventRecord { event, execution: record.execution.clone() })
    }

    /// Returns the digest of a value, or `None` if the value is short.
    fn digest(&mut self, value: &Arc<Value>) -> Option<Arc<Value>> {
        if let Some((last, digest)) = &self.last
            && Arc::ptr_eq(last, value)
        {
            return Some(digest.clone());
        }
        let mut hash = ValueHash::default();
        hash.add_value(value);
        if hash.bytes <= self.max_bytes {
            return None;
        }
        let digest: String = hash.hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let digest = Arc::new(json!({"sha256": digest}));
        self.last = Some((value.clone(), digest.clone()));
        Some(digest)
    }
}

/// Returns true for runs that build requests or extract memories.
fn is_hook(origin: WorkOrigin) -> bool {
    match origin {
        WorkOrigin::ContextAssembly | WorkOrigin::MemoryExtraction => true,
        WorkOrigin::Tool | WorkOrigin::Workflow => false,
    }
}

/// Hash of a JSON value that does not depend on the order of members.
#[derive(Debug, Default)]
struct ValueHash {
    hash: Sha256,
    /// Number of hashed bytes, approximately the size of the JSON text.
    bytes: usize,
}

impl ValueHash {
    fn add_value(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                self.add_head(b'{', members.len());
                let mut members: Vec<_> = members.iter().collect();
                members.sort_unstable_by_key(|(name, _)| *name);
                for (name, value) in members {
                    self.add_text(b'"', name);
                    self.add_value(value);
                }
            }
            Value::Array(items) => {
                self.add_head(b'[', items.len());
                items.iter().for_each(|item| self.add_value(item));
            }
            Value::String(text) => self.add_text(b'"', text),
            Value::Number(number) => self.add_text(b'0', &number.to_string()),
            Value::Bool(true) => self.add_head(b't', 0),
            Value::Bool(false) => self.add_head(b'f', 0),
            Value::Null => self.add_head(b'n', 0),
        }
    }

    fn add_text(&mut self, kind: u8, text: &str) {
        self.add_head(kind, text.len());
        self.hash.update(text);
        self.bytes += text.len();
    }

    /// Adds the type of a value and its number of bytes, items or members, so that different values have different hashes.
    fn add_head(&mut self, kind: u8, length: usize) {
        let mut head = [kind; 9];
        head[1..].copy_from_slice(&(length as u64).to_le_bytes());
        self.hash.update(head);
        self.bytes += 3;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(origin: WorkOrigin, input: Value) -> EventRecord {
        let payload = Payload::TaskStarted(TaskStarted {
            turn_id: None,
            task_id: "t".into(),
            run_id: "r".into(),
            origin,
            step_count: 1,
            input: Arc::new(input),
        });
        EventRecord::from(Event { sequence: 1, offset: Default::default(), timestamp: 1, payload })
    }

    fn shortened(record: &EventRecord) -> Option<EventRecord> {
        HookDigests::default().shorten(record)
    }

    #[test]
    fn only_long_values_of_hooks_become_digests() {
        let long = json!({"text": "x".repeat(1000)});
        assert!(shortened(&started(WorkOrigin::ContextAssembly, long.clone())).is_some());
        assert!(shortened(&started(WorkOrigin::MemoryExtraction, long.clone())).is_some());
        assert!(shortened(&started(WorkOrigin::Tool, long)).is_none());
        assert!(shortened(&started(WorkOrigin::ContextAssembly, json!({"text": "x"}))).is_none());
    }

    #[test]
    fn a_digest_has_no_digest_of_its_own() {
        let long = started(WorkOrigin::ContextAssembly, json!([1.5, "x".repeat(1000)]));
        let short = shortened(&long).unwrap();
        assert!(serde_json::to_string(&short).unwrap().len() < 300);
        assert_eq!(shortened(&short), None);
    }

    #[test]
    fn digests_differ_for_different_values_only() {
        let pad = "x".repeat(1000);
        let digest = |value: Value| shortened(&started(WorkOrigin::ContextAssembly, value)).unwrap();
        let values = [
            json!([pad, "ab", "c"]),
            json!([pad, "a", "bc"]),
            json!([pad, ["ab", "c"]]),
            json!([pad, {"ab": "c"}]),
            json!([pad, {"ab": null}]),
            json!([pad, {"ab": false}]),
            json!([pad, 1]),
            json!([pad, "1"]),
            json!([pad, 1.0]),
        ];
        let digests: Vec<EventRecord> = values.iter().cloned().map(digest).collect();
        for (index, one) in digests.iter().enumerate() {
            assert!(!digests[..index].contains(one), "{}", values[index]);
        }
        let (one, other) = (json!({"a": 1, "b": pad}), json!({"b": pad, "a": 1}));
        assert_eq!(digest(one), digest(other));
    }
}
