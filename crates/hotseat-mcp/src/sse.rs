//! Events in streams of MCP servers.

use hotseat_http::{EventError, SseDecoder};

/// Cuts a stream into the data of its events. Events without data, which only set an id, are left out.
pub(crate) struct EventScanner(SseDecoder);

impl EventScanner {
    /// Creates a scanner for events up to this size.
    pub(crate) fn new(max_bytes: usize) -> EventScanner {
        EventScanner(SseDecoder::new(max_bytes))
    }

    /// True if a client may resume the stream.
    pub(crate) fn is_resumable(&self) -> bool {
        self.0.has_ids()
    }

    /// Adds bytes and returns the data of the events that they complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, EventError> {
        let mut events = Vec::new();
        self.0.feed(bytes, |data| {
            if !data.is_empty() {
                events.push(data.as_bytes().to_vec());
            }
        })?;
        Ok(events)
    }
}
