//! The servers of a build without them: they cannot be started.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;

use super::{ServeLimits, ServedModel, ServedModelEvent, UnreachedFault};

/// Reason why no server starts.
const NO_SERVER: &str = "served models need the feature `models` of the crate `hotseat`";

/// Servers that cannot be started, because this build has none.
pub struct ModelServers(Infallible);

impl ModelServers {
    /// Returns the error that this build has no servers.
    ///
    /// # Errors
    /// Always.
    pub fn start(_: ServeLimits) -> io::Result<ModelServers> {
        Err(io::Error::new(io::ErrorKind::Unsupported, NO_SERVER))
    }

    /// Opens a conversation with these models.
    pub fn open_conversation(&self, _: &str, _: BTreeMap<String, ServedModel>) -> ServedConversation {
        match self.0 {}
    }
}

/// A conversation that cannot be opened, because this build has no servers.
pub struct ServedConversation(Infallible);

impl ServedConversation {
    /// Begins another conversation at the same addresses.
    pub fn reopen(self, _: &str, _: BTreeMap<String, ServedModel>) -> ServedConversation {
        match self.0 {}
    }

    /// Returns the names of the models.
    pub fn models(&self) -> impl Iterator<Item = &str> {
        match self.0 {}
        #[expect(unreachable_code, reason = "it names the type")]
        std::iter::empty()
    }

    /// Returns the base address of a model.
    pub fn url(&self, _: &str) -> Option<String> {
        match self.0 {}
    }

    /// Waits for the next event.
    pub async fn next_event(&mut self) -> Option<ServedModelEvent> {
        match self.0 {}
    }

    /// Returns the next event if there is one.
    pub fn try_next_event(&mut self) -> Option<ServedModelEvent> {
        match self.0 {}
    }

    /// Ends the conversation.
    pub fn close(&self) {
        match self.0 {}
    }

    /// Returns the names of the answers that no call has used, by the name of the model.
    pub fn unused_answers(&self) -> impl Iterator<Item = (&str, Vec<String>)> {
        match self.0 {}
        #[expect(unreachable_code, reason = "it names the type")]
        std::iter::empty()
    }

    /// Returns true if a model answers from a recording.
    pub fn is_replay(&self, _: &str) -> bool {
        match self.0 {}
    }

    /// Writes the exchanges of relays to their recordings.
    ///
    /// # Errors
    /// Never.
    pub fn save_recordings(&self) -> Result<(), Infallible> {
        match self.0 {}
    }

    /// Returns the fault rules that selected no call.
    pub fn unreached_faults(&self) -> Vec<UnreachedFault> {
        match self.0 {}
    }
}
