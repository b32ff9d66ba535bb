//! The servers of a build without them: they cannot be started.

#![expect(missing_docs, reason = "the methods are those of the other file, and nothing can call them")]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;

use super::{ServeLimits, ServedModel, ServedModelEvent};

/// Reason why no server starts.
const NO_SERVER: &str = "served models need the feature `models` of the crate `hotseat`";

/// Servers that cannot be started, because this build has none.
pub struct ModelServers(Infallible);

impl ModelServers {
    pub fn start(_: ServeLimits) -> io::Result<ModelServers> {
        Err(io::Error::new(io::ErrorKind::Unsupported, NO_SERVER))
    }

    pub fn open_conversation(&self, _: &str, _: BTreeMap<String, ServedModel>) -> ServedConversation {
        match self.0 {}
    }
}

/// A conversation that cannot be opened, because this build has no servers.
pub struct ServedConversation(Infallible);

impl ServedConversation {
    pub fn reopen(self, _: &str, _: BTreeMap<String, ServedModel>) -> ServedConversation {
        match self.0 {}
    }

    pub fn models(&self) -> impl Iterator<Item = &str> {
        match self.0 {}
        #[expect(unreachable_code, reason = "it names the type")]
        std::iter::empty()
    }

    pub fn url(&self, _: &str) -> Option<String> {
        match self.0 {}
    }

    pub async fn next_event(&mut self) -> Option<ServedModelEvent> {
        match self.0 {}
    }

    pub fn try_next_event(&mut self) -> Option<ServedModelEvent> {
        match self.0 {}
    }

    pub fn close(&self) {
        match self.0 {}
    }

    pub fn unused_answers(&self) -> impl Iterator<Item = (&str, Vec<String>)> {
        match self.0 {}
        #[expect(unreachable_code, reason = "it names the type")]
        std::iter::empty()
    }

    pub fn is_replay(&self, _: &str) -> bool {
        match self.0 {}
    }

    pub fn save_recordings(&self) -> Result<(), Infallible> {
        match self.0 {}
    }
}
