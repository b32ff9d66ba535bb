//! Texts with decoded escapes of JSON strings and addresses.

use std::iter;

/// A text with decoded escapes, and the original offset of each byte.
pub(super) struct DecodedText {
    pub bytes: Vec<u8>,
    /// Original offset of each byte, followed by that of the end. All bytes of one escape
    /// have its offset.
    pub starts: Vec<usize>,
}

/// A decoded escape sequence.
pub(super) struct EscapeSequence {
    /// Length of the sequence in bytes.
    length: usize,
    /// Decoded bytes, of which the first `count` are used.
    bytes: [u8; 4],
    count: usize,
}

impl DecodedText {
    /// Creates a text that is not decoded yet, and begins at `offset` of the original text.
    pub fn new(part: &[u8], offset: usize) -> Self {
        DecodedText { bytes: part.to_vec(), starts: (offset..=offset + part.len()).collect() }
    }

    /// Decodes one level of escapes; `None` if there are none. `escape` parses a sequence at the start of a
    /// byte slice.
    pub fn decode(&self, escape: impl Fn(&[u8]) -> Option<EscapeSequence>) -> Option<DecodedText> {
        let mut bytes = Vec::with_capacity(self.bytes.len());
        let mut starts = Vec::with_capacity(self.starts.len());
        let mut offset = 0;
        while let Some(&byte) = self.bytes.get(offset) {
            let sequence = escape(&self.bytes[offset..]);
            let literal = EscapeSequence { length: 1, bytes: [byte, 0, 0, 0], count: 1 };
            let sequence = sequence.unwrap_or(literal);
            bytes.extend_from_slice(&sequence.bytes[..sequence.count]);
            starts.extend(iter::repeat_n(self.starts[offset], sequence.count));
            offset += sequence.length;
        }
        starts.push(*self.starts.last()?);
        (bytes.len() < self.bytes.len()).then_some(DecodedText { bytes, starts })
    }
}

/// Minimum length of a line of base64 or hex that continues on the next one. Lines of words are rarely this long.
const MIN_ENCODED_LINE_BYTES: usize = 16;

/// Returns true if a line of base64 or hex in a text may continue on the next one.
pub(super) fn has_wrapped_lines(text: &[u8]) -> bool {
    memchr::memchr_iter(b'\n', text).any(|end| {
        let line = text[..end].strip_suffix(b"\r").unwrap_or(&text[..end]);
        let end = line.len().checked_sub(MIN_ENCODED_LINE_BYTES);
        end.is_some_and(|start| line[start..].iter().copied().all(is_encoded))
    })
}

impl DecodedText {
    /// Removes the line breaks within base64 and hex, and the blanks that indent the next line; `None` if there are none.
    pub fn unwrapped(&self) -> Option<DecodedText> {
        if !has_wrapped_lines(&self.bytes) {
            return None;
        }
        let (mut bytes, mut starts) = (Vec::new(), Vec::new());
        let (mut offset, mut encoded) = (0, 0);
        while let Some(&byte) = self.bytes.get(offset) {
            if encoded >= MIN_ENCODED_LINE_BYTES
                && let Some(length) = line_break_length(&self.bytes[offset..])
            {
                offset += length;
                continue;
            }
            encoded = if is_encoded(byte) { encoded + 1 } else { 0 };
            bytes.push(byte);
            starts.push(self.starts[offset]);
            offset += 1;
        }
        starts.push(*self.starts.last()?);
        Some(DecodedText { bytes, starts })
    }
}

/// Returns the length of a line break at the start of a byte slice, with the blanks behind it.
fn line_break_length(bytes: &[u8]) -> Option<usize> {
    let next = bytes.strip_prefix(b"\r").unwrap_or(bytes).strip_prefix(b"\n")?;
    let blanks = next.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    Some(bytes.len() - next.len() + blanks)
}

/// True for the characters of base64, in both alphabets, and of hex.
fn is_encoded(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

/// Parses a JSON string escape (RFC 8259, section 7).
pub(super) fn json_escape(bytes: &[u8]) -> Option<EscapeSequence> {
    let [b'\\', kind, ..] = *bytes else { return None };
    let short = |character| Some((character, 2));
    let (character, length) = match kind {
        b'"' | b'\\' | b'/' => short(char::from(kind)),
        b'b' => short('\u{8}'),
        b'f' => short('\u{c}'),
        b'n' => short('\n'),
        b'r' => short('\r'),
        b't' => short('\t'),
        b'u' => {
            let unit =
                |bytes: &[u8]| u32::from_str_radix(std::str::from_utf8(bytes.get(2..6)?).ok()?, 16).ok();
            let first = unit(bytes)?;
            let low = || match bytes.get(6..)? {
                rest @ [b'\\', b'u', ..] => unit(rest).filter(|low| (0xDC00..0xE000).contains(low)),
                _ => None,
            };
            match first {
                0xD800..0xDC00 => {
                    let scalar = 0x10000 + ((first - 0xD800) << 10) + (low()? - 0xDC00);
                    char::from_u32(scalar).map(|character| (character, 12))
                }
                _ => char::from_u32(first).map(|character| (character, 6)),
            }
        }
        _ => None,
    }?;
    let mut bytes = [0; 4];
    let count = character.encode_utf8(&mut bytes).len();
    Some(EscapeSequence { length, bytes, count })
}

/// Parses a percent-encoded byte (RFC 3986, section 2.1).
pub(super) fn percent_escape(bytes: &[u8]) -> Option<EscapeSequence> {
    let [b'%', high, low, ..] = *bytes else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(EscapeSequence { length: 3, bytes: [digit(high)? << 4 | digit(low)?, 0, 0, 0], count: 1 })
}
