//! Pieces of a streamed reply.

use serde::{Deserialize, Serialize};

/// A piece of a reply, in the order of arrival.
///
/// The pieces are for watchers: the complete [`ModelReply`](crate::ModelReply) at the end has the same text and calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ReplyDelta {
    /// More text for the user.
    Text {
        /// The text.
        text: String,
    },
    /// More reasoning.
    Reasoning {
        /// The text.
        text: String,
    },
    /// A tool call starts. Calls start in the order of their indices.
    ToolCallStarted {
        /// Index among the calls of the reply.
        index: usize,
        /// The id of the call.
        id: String,
        /// The name of the tool.
        name: String,
    },
    /// More of the arguments of a call.
    ToolCallArguments {
        /// Index among the calls of the reply; the call has started.
        index: usize,
        /// A piece of JSON text.
        text: String,
    },
}
