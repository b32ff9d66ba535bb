//! Names of things. They are made from counters, so the same conversation always has the same ones.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Declares ids: texts that cannot be taken for each other.
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
            #[serde(transparent)]
            pub struct $name(pub Arc<str>);

            impl $name {
                /// The id as text.
                pub fn as_str(&self) -> &str {
                    &self.0
                }
            }

            impl From<&str> for $name {
                fn from(text: &str) -> Self {
                    $name(text.into())
                }
            }

            impl From<String> for $name {
                fn from(text: String) -> Self {
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
    /// A conversation.
    ConversationId,
    /// A turn of a conversation.
    TurnId,
    /// Something that was said.
    MessageId,
    /// A model step within a turn.
    MoveId,
    /// A tool call, and the operation that it started.
    CallId,
    /// One run of a workflow or task.
    RunId,
    /// An agent.
    AgentId,
    /// A task.
    TaskId,
    /// A workflow.
    WorkflowId,
    /// A record of an agent's memory.
    MemoryId,
}

impl CallId {
    /// The run that attempt `attempt` (from 1) at this call starts; the first has the name of the call.
    pub fn run(&self, attempt: u32) -> RunId {
        match attempt {
            0 | 1 => RunId(self.0.clone()),
            later => RunId(format!("{self}-a{later}").into()),
        }
    }
}

/// An id made from a name that a person chose: lower case, with `-` for everything that is no letter or digit.
pub fn slug(name: &str) -> String {
    let mut id = String::with_capacity(name.len());
    for letter in name.chars() {
        if letter.is_alphanumeric() {
            id.extend(letter.to_lowercase());
        } else if !id.is_empty() && !id.ends_with('-') {
            id.push('-');
        }
    }
    id.truncate(id.trim_end_matches('-').len());
    id
}
