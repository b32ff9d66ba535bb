//! Numbers in texts that contain JSON.

use std::ops::Range;

/// Ranges of a text that look like JSON numbers outside JSON strings.
pub(super) struct JsonNumbers<'t> {
    text: &'t str,
    /// Start of the part that was not read.
    start: usize,
}

impl<'t> JsonNumbers<'t> {
    pub fn new(text: &'t str) -> Self {
        JsonNumbers { text, start: 0 }
    }
}

impl Iterator for JsonNumbers<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        loop {
            let rest = &self.text[self.start..];
            let found = rest.find(|c: char| c == '"' || c.is_ascii_digit() || c == '-')?;
            let start = self.start + found;
            let found = &self.text[start..];
            if found.starts_with('"') {
                self.start = start + json_string_end(found);
                continue;
            }
            let length = found.bytes().position(|byte| !is_number_byte(byte)).unwrap_or(found.len());
            self.start = start + length;
            return Some(start..self.start);
        }
    }
}

/// True for bytes of JSON numbers.
fn is_number_byte(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E')
}

/// Returns the end of the JSON string at the beginning of a text.
fn json_string_end(text: &str) -> usize {
    let mut is_escaped = false;
    let is_end = |byte: u8| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    };
    text.bytes().skip(1).position(is_end).map_or(text.len(), |place| place + 2)
}
