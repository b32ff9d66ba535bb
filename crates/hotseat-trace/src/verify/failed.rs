//! At least one turn failed as described.

use super::completed;
use super::mismatch::Mismatch;
use crate::ConversationView;

/// Expected failure of a turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FailureSpec {
    /// Id of the turn; any turn if None.
    pub turn: Option<String>,
    /// Expected error code.
    pub code: Option<String>,
    /// Text that the error message contains.
    pub message_contains: Option<String>,
}

pub(super) fn find(view: &ConversationView<'_>, spec: &FailureSpec) -> Vec<Mismatch> {
    if completed::find(view).is_empty() {
        let mismatch = Mismatch::new(format!("a failed conversation: {spec:?}"), "it completed");
        return vec![mismatch];
    }
    let failures = view.turns().failures();
    let fits = failures.iter().any(|failure| {
        spec.turn.as_ref().is_none_or(|turn| *turn == *failure.turn_id)
            && spec.code.as_ref().is_none_or(|code| failure.error.code.as_ref() == Some(code))
            && spec.message_contains.as_ref().is_none_or(|part| failure.error.message.contains(part))
    });
    if fits {
        return Vec::new();
    }
    let found: Vec<_> = failures.iter().map(|failure| format!("{:?}", failure.error)).collect();
    let found = if found.is_empty() { "no failed turn".to_string() } else { found.join(", ") };
    vec![Mismatch::new(format!("a failed turn: {spec:?}"), found)]
}
