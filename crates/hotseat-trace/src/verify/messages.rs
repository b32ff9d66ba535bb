//! So much was said, and this was the last answer.

use super::{Mismatch, differs};
use crate::View;

/// What is expected of messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessagesSpec {
    /// So many of users.
    pub user: Option<usize>,
    /// So many of agents.
    pub assistant: Option<usize>,
    /// The last message of an agent contains this.
    pub last_contains: Option<String>,
}

pub(super) fn find(view: &View<'_>, spec: &MessagesSpec) -> Vec<Mismatch> {
    let (user, assistant) = (view.messages().user(), view.messages().assistant());
    let mut found: Vec<Mismatch> = [
        spec.user.and_then(|count| differs("messages of users", count, user.len())),
        spec.assistant.and_then(|count| differs("messages of agents", count, assistant.len())),
    ]
    .into_iter()
    .flatten()
    .collect();
    if let Some(part) = &spec.last_contains {
        let last = assistant.last().map_or("", |said| said.payload.content.as_str());
        if !last.contains(part.as_str()) {
            found.push(Mismatch::new(format!("a last message that contains {part:?}"), format!("{last:?}")));
        }
    }
    found
}
