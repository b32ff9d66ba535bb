//! Identifiers, generated from counters so that the same conversation always has the same ids.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Declares distinct id types.
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
            #[serde(transparent)]
            pub struct $name(pub Arc<str>);

            impl $name {
                /// Returns the id as text.
                pub fn as_str(&self) -> &str {
                    &self.0
                }
            }

            impl<T: Into<Arc<str>>> From<T> for $name {
                fn from(text: T) -> Self {
                    $name(text.into())
                }
            }

            impl fmt::Display for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str(&self.0)
                }
            }
        )+
    };
}

ids! {
    /// Id of a conversation.
    ConversationId,
    /// Id of a turn.
    TurnId,
    /// Id of a message.
    MessageId,
    /// Id of a tool call and its operation.
    CallId,
    /// Id of a run of a workflow or task.
    RunId,
    /// Id of an agent.
    AgentId,
    /// Id of a task.
    TaskId,
    /// Id of a workflow.
    WorkflowId,
    /// Id of a memory record.
    MemoryId,
}

/// The number of a token in its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TokenId(pub u32);

impl CallId {
    /// Returns the id of the run for attempt `attempt` (from 1) of this call. The first run has the id of the
    /// call.
    pub fn run(&self, attempt: u32) -> RunId {
        match attempt {
            0 | 1 => RunId(self.0.clone()),
            later => RunId(numbered(&self.0, "a", later as usize)),
        }
    }
}

/// Returns the id of a part: `c1-t2` for number 2 of the turns (`t`) of `c1`. Faster than `format!`: each turn needs
/// ten of them.
pub(crate) fn numbered(whole: &str, kind: &str, number: usize) -> Arc<str> {
    [whole, "-", kind, &number.to_string()].concat().into()
}

/// Converts a name into an id: lower case, with `-` for all characters except letters and digits.
pub fn slug(name: &str) -> String {
    let mut id = String::with_capacity(name.len());
    for letter in name.chars() {
        if letter.is_ascii_alphanumeric() {
            id.push(letter.to_ascii_lowercase());
        } else if letter.is_alphanumeric() {
            id.extend(letter.to_lowercase());
        } else if !id.is_empty() && !id.ends_with('-') {
            id.push('-');
        }
    }
    id.truncate(id.trim_end_matches('-').len());
    id
}
