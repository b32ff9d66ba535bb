//! Server-sent events, as the WHATWG HTML standard says how to read them.
//!
//! What matters here and is easily got wrong: a byte order mark is dropped once, lines end with LF, CR
//! or CRLF (also when a read ends between the two), an event ends with an empty line, several `data`
//! lines are joined by LF, one space after the colon is dropped, comments and unknown fields are passed
//! over.
//!
//! One rule differs. The standard throws away an event whose empty line is missing when the stream ends, for a browser
//! connects again and gets it once more. An agent is never asked twice, and some servers end their stream with the last
//! event and no empty line. So [`Decoder::finish`] hands out that event where it is certainly whole: its data is a
//! complete JSON text or `[DONE]`, and the stream ended in order. Anything else is not an event.

use std::borrow::Cow;

/// The longest event that is taken in, in bytes. A stream without line ends must not fill the memory.
pub const MAX_EVENT: usize = 64 * 1024 * 1024;

/// Cuts a byte stream into events. Bytes may be fed in any portions; the events do not depend on them.
#[derive(Debug, Default)]
pub struct Decoder {
    /// The part of the current line that came with earlier portions.
    line: Vec<u8>,
    /// The data of the current event.
    data: Vec<u8>,
    has_data: bool,
    /// The last line ended with CR: an LF that follows belongs to it.
    after_cr: bool,
    /// The first line is behind us, and with it a byte order mark.
    started: bool,
}

/// An event longer than [`MAX_EVENT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventTooLong;

impl Decoder {
    /// Takes in the next bytes and hands the data of each event that they complete to `on_event`.
    ///
    /// # Errors
    /// When an event grows longer than [`MAX_EVENT`].
    pub fn feed(
        &mut self,
        mut bytes: &[u8],
        mut on_event: impl FnMut(Cow<'_, str>),
    ) -> Result<(), EventTooLong> {
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
                self.end_line(&bytes[..end], &mut on_event);
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(&bytes[..end]);
                self.end_line(&line, &mut on_event);
                line.clear();
                self.line = line;
            }
            self.check_length()?;
            bytes = &bytes[end + 1..];
        }
        Ok(())
    }

    /// The stream has ended in order: hands out the last event if only its empty line is missing.
    pub fn finish(&mut self, mut on_event: impl FnMut(Cow<'_, str>)) {
        if !self.line.is_empty() {
            let line = std::mem::take(&mut self.line);
            self.end_line(&line, &mut on_event);
        }
        let data = String::from_utf8_lossy(&self.data);
        let is_whole = data.trim() == "[DONE]"
            || serde_json::from_str::<serde::de::IgnoredAny>(&super::json_text::readable(&data)).is_ok();
        if self.has_data && is_whole {
            on_event(data);
            self.has_data = false;
            self.data.clear();
        }
    }

    /// What has come of an event that is not complete, if anything: shown when a stream ends there.
    pub fn unfinished(&self) -> Option<Cow<'_, str>> {
        let pending = if self.has_data { &self.data } else { &self.line };
        (!pending.is_empty()).then(|| String::from_utf8_lossy(pending))
    }

    fn check_length(&self) -> Result<(), EventTooLong> {
        if self.line.len() + self.data.len() > MAX_EVENT { Err(EventTooLong) } else { Ok(()) }
    }

    fn end_line(&mut self, mut line: &[u8], on_event: &mut impl FnMut(Cow<'_, str>)) {
        if !std::mem::replace(&mut self.started, true) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            if std::mem::take(&mut self.has_data) {
                on_event(String::from_utf8_lossy(&self.data));
            }
            self.data.clear();
            return;
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(colon) => {
                (&line[..colon], line[colon + 1..].strip_prefix(b" ").unwrap_or(&line[colon + 1..]))
            }
            None => (line, &[][..]),
        };
        // The fields `event`, `id` and `retry` are for reconnecting browsers; agents are never asked twice.
        if field == b"data" {
            if std::mem::replace(&mut self.has_data, true) {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn events(portions: &[&[u8]]) -> Vec<String> {
        let (mut decoder, mut found) = (Decoder::default(), Vec::new());
        for portion in portions {
            decoder.feed(portion, |data| found.push(data.into_owned())).unwrap();
        }
        found
    }

    #[test]
    fn the_rules_of_the_standard() {
        let table: &[(&[u8], &[&str])] = &[
            (b"data: a\n\n", &["a"]),
            (b"data:a\n\n", &["a"]),
            (b"data:  a\n\n", &[" a"]),
            (b"data: a\r\rdata: b\r\r", &["a", "b"]),
            (b"data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]),
            (b"data: a\ndata: b\n\n", &["a\nb"]),
            (b"data\n\n", &[""]),
            (b"data\ndata\n\n", &["\n"]),
            (b"data:\n\n", &[""]),
            (b": ping\n\n: ping\n\n", &[]),
            (b"event: x\nid: 1\nretry: 5\n\n", &[]),
            (b"event: x\ndata: a\nid: 1\n\n", &["a"]),
            (b"datax: a\n\n data: a\n\nDATA: a\n\n", &[]),
            (b"\xef\xbb\xbfdata: a\n\n", &["a"]),
            (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", &[]),
            (b"\n\n\ndata: a\n\n\n\n", &["a"]),
            (b"data: cut", &[]),
            (b"data: cut\n", &[]),
            (b"data: \xff\n\n", &["\u{fffd}"]),
            (b"data: {\"a\":\"b: c\"}\n\n", &["{\"a\":\"b: c\"}"]),
        ];
        for (bytes, expected) in table {
            assert_eq!(events(&[bytes]), *expected, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn the_last_event_may_lack_its_empty_line_where_it_is_whole() {
        for (bytes, last) in [
            (&b"data: {\"a\": 1}"[..], Some("{\"a\": 1}")),
            (b"data: {\"a\": 1}\n", Some("{\"a\": 1}")),
            (b"data: {\"a\": 1}\r", Some("{\"a\": 1}")),
            (b"data: {\"a\":\ndata: 1}", Some("{\"a\":\n1}")),
            (b"id: 1\ndata: [DONE]", Some("[DONE]")),
            (b"data: {\"a\": 1", None),
            (b"data: {\"a\": 1}\ndata: {", None),
            (b"data: {\"a\": 1}\n\n", None),
            (b"dat", None),
            (b"data: ", None),
            (b"", None),
        ] {
            let (mut decoder, mut found) = (Decoder::default(), Vec::new());
            decoder.feed(bytes, |_| {}).unwrap();
            decoder.finish(|data| found.push(data.into_owned()));
            assert_eq!(found.first().map(String::as_str), last, "{}", bytes.escape_ascii());
            assert!(last.is_none() || decoder.unfinished().is_none(), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn what_is_unfinished_can_be_shown() {
        let mut decoder = Decoder::default();
        decoder.feed(b"data: {\"type\":\n", |_| {}).unwrap();
        assert_eq!(decoder.unfinished().as_deref(), Some("{\"type\":"));
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut decoder = Decoder::default();
        let megabyte = vec![b'x'; 1024 * 1024];
        let fed = (0..65).try_for_each(|_| decoder.feed(&megabyte, |_| {}));
        assert_eq!(fed, Err(EventTooLong));
    }

    /// Streams made of the pieces that matter, so that random ones are full of line ends and fields.
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
        fn the_events_do_not_depend_on_how_the_bytes_are_cut(bytes in stream(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8)) {
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            places.extend([0, bytes.len()]);
            places.sort_unstable();
            let portions: Vec<&[u8]> = places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            let whole = events(&[&bytes]);
            prop_assert_eq!(&events(&portions), &whole);
            prop_assert_eq!(&events(&single), &whole);
        }
    }
}
