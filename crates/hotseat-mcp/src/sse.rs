//! Events in streams of MCP servers.

use axum::http::{HeaderMap, header};
use hotseat_http::{EventError, SseDecoder, SseEvent};

/// True if a message is a stream of events.
pub(crate) fn is_event_stream(headers: &HeaderMap) -> bool {
    has_media_type(headers, "text/event-stream")
}

/// True if a message has this media type, in any case and with any parameters.
pub(crate) fn has_media_type(headers: &HeaderMap, media_type: &str) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let named = content_type.and_then(|text| text.split(';').next());
    named.is_some_and(|named| named.trim().eq_ignore_ascii_case(media_type))
}

/// Cuts a stream into the data of its events. Events without data, which only set an id, are left out, and those named
/// `error`, which clients do not read either.
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

    /// Adds bytes and returns the data of the events that they complete. `None` is the regular end of the stream, which completes a
    /// last event without its empty line.
    pub(crate) fn push(&mut self, bytes: Option<&[u8]>) -> Result<Vec<Vec<u8>>, EventError> {
        let mut events = Vec::new();
        let add = |event: SseEvent<'_>| {
            if !event.is_error {
                events.push(event.data.as_bytes().to_vec());
            }
        };
        match bytes {
            Some(bytes) => self.0.feed(bytes, add)?,
            None => self.0.finish(add),
        }
        Ok(events)
    }
}
