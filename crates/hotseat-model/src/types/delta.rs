//! The pieces in which a reply arrives.

use serde::{Deserialize, Serialize};

/// A piece of a reply, in the order of arrival.
///
/// The pieces are for those who watch: the whole [`Reply`](crate::Reply) comes at the end and holds the same words
/// and calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Delta {
    /// More words for the user.
    Text {
        /// The words.
        text: String,
    },
    /// More of what the model says it thinks.
    Reasoning {
        /// The words.
        text: String,
    },
    /// A tool call begins. Calls begin in the order of their indices.
    ToolCallStarted {
        /// The call among those of the reply, from 0.
        index: usize,
        /// The id of the call.
        id: String,
        /// The name of the tool.
        name: String,
    },
    /// More of the arguments of a call.
    ToolCallArguments {
        /// The call among those of the reply, from 0; it has begun.
        index: usize,
        /// A piece of JSON text.
        text: String,
    },
    /// The pieces so far are void: the call failed after they arrived and is made once more.
    Restarted,
}
