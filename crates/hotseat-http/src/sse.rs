//! Server-sent events as defined by the WHATWG HTML standard.
//!
//! Details that are easily missed: a byte order mark is dropped once; lines end with LF, CR or CRLF (also if
//! a read ends between the two); an empty line ends an event; several `data` lines are joined by LF; one
//! space after the colon is dropped; comments and unknown fields are ignored.
//!
//! Four rules differ. The standard discards a last event without its empty line, because a browser reconnects
//! and receives it again. Here no stream is resumed, and some servers omit the final empty line.
//! So [`SseDecoder::finish`] returns that event if it is certainly complete: its data is JSON or `[DONE]`, and
//! the stream ended regularly. And the standard replaces bytes that are not UTF-8; here they are an error,
//! because a check must not read another text than the one that was sent. And a field `error`, as llama.cpp sends it,
//! is the data of an event of that name, while any other event whose data is blank is none: servers send it to keep
//! the connection open.

use std::borrow::Cow;

/// Maximum size of an event in bytes, unless it is set; protects memory from streams without line ends.
pub const MAX_EVENT_BYTES: usize = 64 * 1024 * 1024;

/// Splits a byte stream into events, regardless of how the bytes are chunked.
#[derive(Debug)]
pub struct SseDecoder {
    max_event_bytes: usize,
    /// Part of the current line from earlier chunks.
    line: Vec<u8>,
    /// Data of the current event.
    data: Vec<u8>,
    has_data: bool,
    /// True if the current event is named `error`.
    is_error: bool,
    /// True after an event with an id.
    has_ids: bool,
    /// The last line ended with CR; a following LF belongs to it.
    after_cr: bool,
    /// True after the first line, when a byte order mark is no longer skipped.
    started: bool,
}

/// A decoded event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// Its data.
    pub data: &'a str,
    /// True if the event is named `error`. Other names repeat what the data says.
    pub is_error: bool,
}

/// An event that cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// It is longer than this many bytes.
    #[error("is longer than {0} bytes")]
    TooLong(usize),
    /// Its data is not UTF-8.
    #[error("is not UTF-8")]
    NotUtf8,
}

impl Default for SseDecoder {
    fn default() -> Self {
        SseDecoder::new(MAX_EVENT_BYTES)
    }
}

impl SseDecoder {
    /// Creates a decoder for events up to this size.
    pub fn new(max_event_bytes: usize) -> Self {
        SseDecoder {
            max_event_bytes,
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            is_error: false,
            has_ids: false,
            after_cr: false,
            started: false,
        }
    }

    /// Decodes more bytes and passes each completed event to `on_event`. Fails if an event exceeds the maximum size, or
    /// its data is not UTF-8. An event named `error` is one also without data, a field `error` is such an event, and any
    /// other event with blank data is none.
    pub fn feed(
        &mut self,
        mut bytes: &[u8],
        mut on_event: impl FnMut(SseEvent<'_>),
    ) -> Result<(), EventError> {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_cr) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) else {
                self.line.extend_from_slice(bytes);
                return self.check_length();
            };
            self.after_cr = bytes[end] == b'\r';
            if self.line.is_empty() {
                self.end_line(&bytes[..end], &mut on_event)?;
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(&bytes[..end]);
                self.end_line(&line, &mut on_event)?;
                line.clear();
                self.line = line;
            }
            self.check_length()?;
            bytes = &bytes[end + 1..];
        }
        Ok(())
    }

    /// Ends a regularly ended stream: emits the last event if only its empty line is missing. One named `error` counts
    /// whatever its data.
    pub fn finish(&mut self, mut on_event: impl FnMut(SseEvent<'_>)) {
        if !self.line.is_empty() {
            let line = std::mem::take(&mut self.line);
            // A line that is not empty ends no event.
            let _ = self.end_line(&line, &mut on_event);
        }
        let Ok(data) = std::str::from_utf8(&self.data) else { return };
        let is_whole = data.trim() == "[DONE]" || serde_json::from_str::<serde::de::IgnoredAny>(data).is_ok();
        if (self.has_data && is_whole) || self.is_error {
            on_event(SseEvent { data, is_error: self.is_error });
            (self.has_data, self.is_error) = (false, false);
            self.data.clear();
        }
    }

    /// True if an event had an id, from which a client may resume the stream.
    pub fn has_ids(&self) -> bool {
        self.has_ids
    }

    /// Returns the incomplete event, if there is one that is not blank.
    pub fn unfinished(&self) -> Option<Cow<'_, str>> {
        let pending = if self.has_data { &self.data } else { &self.line };
        (!pending.trim_ascii().is_empty()).then(|| String::from_utf8_lossy(pending))
    }

    fn check_length(&self) -> Result<(), EventError> {
        match self.line.len() + self.data.len() > self.max_event_bytes {
            true => Err(EventError::TooLong(self.max_event_bytes)),
            false => Ok(()),
        }
    }

    fn end_line(
        &mut self,
        mut line: &[u8],
        on_event: &mut impl FnMut(SseEvent<'_>),
    ) -> Result<(), EventError> {
        if !std::mem::replace(&mut self.started, true) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            let is_error = std::mem::take(&mut self.is_error);
            self.has_data = false;
            if is_error || !self.data.trim_ascii().is_empty() {
                let data = std::str::from_utf8(&self.data).map_err(|_| EventError::NotUtf8)?;
                on_event(SseEvent { data, is_error });
            }
            self.data.clear();
            return Ok(());
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(colon) => {
                (&line[..colon], line[colon + 1..].strip_prefix(b" ").unwrap_or(&line[colon + 1..]))
            }
            None => (line, &[][..]),
        };
        // `id` and `retry` are for streams that are resumed.
        self.has_ids |= field == b"id" && !value.is_empty();
        if field == b"event" {
            self.is_error = value == b"error";
        }
        let is_error = field == b"error";
        self.is_error |= is_error;
        if field == b"data" || is_error {
            if std::mem::replace(&mut self.has_data, true) {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(value);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn events(portions: &[&[u8]]) -> Vec<String> {
        decode(portions).unwrap()
    }

    fn decode(portions: &[&[u8]]) -> Result<Vec<String>, EventError> {
        let (mut decoder, mut found) = (SseDecoder::default(), Vec::new());
        for portion in portions {
            decoder.feed(portion, |event| found.push(event.data.to_string()))?;
        }
        Ok(found)
    }

    #[test]
    fn follows_the_standard() {
        let table: &[(&[u8], &[&str])] = &[
            (b"data: a\n\n", &["a"]),
            (b"data:a\n\n", &["a"]),
            (b"data:  a\n\n", &[" a"]),
            (b"data: a\r\rdata: b\r\r", &["a", "b"]),
            (b"data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]),
            (b"data: a\ndata: b\n\n", &["a\nb"]),
            (b"data\n\n", &[]),
            (b"data\ndata\n\n", &[]),
            (b"data:\n\n", &[]),
            (b"data\ndata:a\n\n", &["\na"]),
            (b": ping\n\n: ping\n\n", &[]),
            (b"event: x\nid: 1\nretry: 5\n\n", &[]),
            (b"event: x\ndata: a\nid: 1\n\n", &["a"]),
            (b"datax: a\n\n data: a\n\nDATA: a\n\n", &[]),
            (b"\xef\xbb\xbfdata: a\n\n", &["a"]),
            (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", &[]),
            (b"\n\n\ndata: a\n\n\n\n", &["a"]),
            (b"data: cut", &[]),
            (b"data: cut\n", &[]),
            (b": \xff\ndata: a\n\n", &["a"]),
            (b"data: {\"a\":\"b: c\"}\n\n", &["{\"a\":\"b: c\"}"]),
        ];
        for (bytes, expected) in table {
            assert_eq!(events(&[bytes]), *expected, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn accepts_complete_last_event_without_empty_line() {
        for (bytes, last) in [
            (&b"data: {\"a\": 1}"[..], Some("{\"a\": 1}")),
            (b"data: {\"a\": 1}\n", Some("{\"a\": 1}")),
            (b"data: {\"a\": 1}\r", Some("{\"a\": 1}")),
            (b"data: {\"a\": \"\\ud83d\"}", Some("{\"a\": \"\\ud83d\"}")),
            (
                b"data: {\"a\": 123456789012345678901234567890}",
                Some("{\"a\": 123456789012345678901234567890}"),
            ),
            (b"data: {\"a\":\ndata: 1}", Some("{\"a\":\n1}")),
            (b"id: 1\ndata: [DONE]", Some("[DONE]")),
            (b"data: {\"a\": 1", None),
            (b"data: {\"a\": 1}\ndata: {", None),
            (b"data: {\"a\": 1}\n\n", None),
            (b"dat", None),
            (b"data: ", None),
            (b"", None),
        ] {
            let (mut decoder, mut found) = (SseDecoder::default(), Vec::new());
            decoder.feed(bytes, |_| {}).unwrap();
            decoder.finish(|event| found.push(event.data.to_string()));
            assert_eq!(found.first().map(String::as_str), last, "{}", bytes.escape_ascii());
            assert!(last.is_none() || decoder.unfinished().is_none(), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn only_an_event_named_error_is_an_error() {
        let (mut decoder, mut found) = (SseDecoder::default(), Vec::new());
        let stream = b"event: error\ndata: a\n\ndata: b\n\nevent: error\nevent: x\ndata: c\n\nevent: error\n\ndata: d\n\nevent: error\ndata:\n\n";
        let mut take = |event: SseEvent<'_>| found.push((event.data.to_string(), event.is_error));
        decoder.feed(stream, &mut take).unwrap();
        decoder.feed(b"event:error\ndata: 1", &mut take).unwrap();
        decoder.finish(&mut take);
        decoder.feed(b"event: error\ndata: no JSON", &mut take).unwrap();
        decoder.finish(&mut take);
        let expected = [
            ("a", true),
            ("b", false),
            ("c", false),
            ("", true),
            ("d", false),
            ("", true),
            ("1", true),
            ("no JSON", true),
        ];
        assert_eq!(found, expected.map(|(data, is_error)| (data.to_string(), is_error)));
    }

    #[test]
    fn error_fields_are_events_and_blank_events_are_none() {
        let stream = b"error: {}\n\nerrors: a\n\ndata:\n\ndata: \ndata:\n\ndata: b\n\n";
        let (mut decoder, mut found) = (SseDecoder::default(), Vec::new());
        decoder.feed(stream, |event| found.push((event.data.to_string(), event.is_error))).unwrap();
        assert_eq!(found, [("{}".to_string(), true), ("b".to_string(), false)]);
    }

    #[test]
    fn returns_unfinished_event() {
        let mut decoder = SseDecoder::default();
        decoder.feed(b"data: {\"type\":\n", |_| {}).unwrap();
        assert_eq!(decoder.unfinished().as_deref(), Some("{\"type\":"));
    }

    #[test]
    fn rejects_endless_lines() {
        let mut decoder = SseDecoder::default();
        let megabyte = vec![b'x'; 1024 * 1024];
        let fed = (0..65).try_for_each(|_| decoder.feed(&megabyte, |_| {}));
        assert_eq!(fed, Err(EventError::TooLong(MAX_EVENT_BYTES)));
    }

    #[test]
    fn rejects_data_that_is_not_utf8() {
        for portions in [&[&b"data: a\xff\n\n"[..]][..], &[b"data: \xf0\x9f", b"\ndata: \x8c\x8d\n\n"]] {
            assert_eq!(decode(portions), Err(EventError::NotUtf8), "{portions:?}");
        }
        // A character may arrive in pieces.
        assert_eq!(events(&[b"data: \xf0\x9f", b"\x8c\x8d\n\n"]), ["🌍"]);
        let (mut decoder, mut found) = (SseDecoder::default(), Vec::new());
        decoder.feed(b"data: \"\xff\"", |_| {}).unwrap();
        decoder.finish(|event| found.push(event.data.to_string()));
        assert!(found.is_empty() && decoder.unfinished().is_some());
    }

    /// Streams of random line ends, fields and bytes.
    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            Just(b"data: ".to_vec()),
            Just(b"data".to_vec()),
            Just(b":".to_vec()),
            Just(b"\n".to_vec()),
            Just(b"\r".to_vec()),
            Just(b"\r\n".to_vec()),
            Just(b"\xef\xbb\xbf".to_vec()),
            Just("é你🌍".as_bytes().to_vec()),
            proptest::collection::vec(any::<u8>(), 0..6),
        ];
        proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn events_do_not_depend_on_chunks(bytes in stream(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8)) {
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            places.extend([0, bytes.len()]);
            places.sort_unstable();
            let portions: Vec<&[u8]> = places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            let whole = decode(&[&bytes]);
            prop_assert_eq!(&decode(&portions), &whole);
            prop_assert_eq!(&decode(&single), &whole);
        }
    }
}
