//! Ids of the calls in a reply.

use crate::ModelRequest;

/// How the calls of a reply get their ids.
pub(in crate::providers) enum CallIds<'r> {
    /// Results refer to calls by id, so a call without an id of its own gets one by its place in the conversation.
    Unique(&'r ModelRequest),
    /// As the provider sent them: another client receives the reply, and sends the results.
    #[cfg(any(test, feature = "serve"))]
    AsSent,
}

impl CallIds<'_> {
    /// Returns the id of the call at `index` in its reply. `is_used` is true if an earlier call of the reply has the sent id.
    pub(in crate::providers) fn choose(&self, sent: &str, is_used: bool, index: usize) -> String {
        match self {
            CallIds::Unique(request) if is_used || sent.is_empty() => request.call_id(index),
            CallIds::Unique(_) => sent.to_owned(),
            #[cfg(any(test, feature = "serve"))]
            CallIds::AsSent => sent.to_owned(),
        }
    }
}
