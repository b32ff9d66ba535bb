//! The end of a conversation.

use hotseat_trace::AttemptFailure;

#[derive(Debug)]
pub(super) enum ConversationEnding {
    /// Regular end.
    Completed,
    /// The case is skipped, for this reason.
    Skipped(String),
    /// The conversation cannot continue, or a hard check failed.
    Failed(AttemptFailure),
}
