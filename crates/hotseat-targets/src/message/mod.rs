//! Messages between user and agent: their content, the scripted answers of the client, and JSON within them.

mod content;
mod finish_reason;
mod identity;
pub(crate) mod json_text;
mod scripted_answers;
mod service_addresses;
mod tool_output;
mod tool_reply;
mod unique_id;

pub use content::{
    AttachmentError, ContentPart, ConversationMessage, MediaAttachment, MediaKind, MediaSource, MessageCall,
    MessageRole, is_base64, joined_text, media_parts, merge_json,
};
pub(crate) use finish_reason::FinishReason;
pub use identity::{RequestIdentity, attempt_id};
pub use scripted_answers::{
    ClientTool, InterruptAnswer, InterruptReply, InterruptRequest, LateAnswer, ScriptedAnswers,
    SelectedAnswer, ToolAnswer, response_schema_errors,
};
pub use service_addresses::hide_service_addresses;
pub(crate) use tool_output::is_content_parts;
pub use tool_output::{parse_content_output, parse_json};
pub use tool_reply::{
    PendingReply, ToolFunction, ToolFunctionCall, ToolFunctionCaller, ToolReply, ToolReplyFuture,
    ToolReplySource,
};
pub use unique_id::unique_id;

/// Start of the note that an input had an attachment; its name follows.
pub const ATTACHMENT_NOTE_PREFIX: &str = "attached: ";

/// Returns the id of a tool call for a message, after `tool call`.
pub(crate) fn shown_id(id: &str) -> &str {
    if id.is_empty() { "with an empty id" } else { id }
}
