//! The number of messages and the last answer match.

use super::mismatch::{Mismatch, find_difference};
use crate::ConversationView;

/// Expectations about messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessagesSpec {
    /// Number of user messages.
    pub user: Option<usize>,
    /// Number of agent messages.
    pub assistant: Option<usize>,
    /// Text that the last agent message contains.
    pub last_contains: Option<String>,
}

pub(super) fn find(view: &ConversationView<'_>, spec: &MessagesSpec) -> Vec<Mismatch> {
    let (user, assistant) = (view.messages().user(), view.messages().assistant());
    let mut found: Vec<Mismatch> = [
        spec.user.and_then(|count| find_difference("messages of users", count, user.len())),
        spec.assistant.and_then(|count| find_difference("messages of agents", count, assistant.len())),
    ]
    .into_iter()
    .flatten()
    .collect();
    if let Some(part) = &spec.last_contains {
        let last = assistant.last().map_or("", |said| &*said.payload.content);
        if !last.contains(part.as_str()) {
            found.push(Mismatch::new(format!("a last message that contains {part:?}"), format!("{last:?}")));
        }
    }
    found
}
