//! Splits received bytes into lines, and limits the number of JSON values in a text.

use bytes::BytesMut;
use hotseat_document::json::may_have_more_values;

/// Maximum number of JSON values in one event, line or response: values take far more memory than their text.
const MAX_JSON_VALUES: usize = 2_000_000;

/// Splits bytes into lines. Each byte is searched once.
#[derive(Debug, Default)]
pub(crate) struct LineBuffer {
    bytes: BytesMut,
    /// Number of leading bytes known to contain no line end.
    searched: usize,
}

impl LineBuffer {
    /// Returns the buffer to which received bytes are appended.
    pub(crate) fn buffer_mut(&mut self) -> &mut BytesMut {
        &mut self.bytes
    }

    /// Returns the number of bytes that are not yet part of a complete line.
    pub(crate) fn pending_len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the next line without its line end.
    pub(crate) fn next_line(&mut self) -> Option<Vec<u8>> {
        match memchr::memchr(b'\n', &self.bytes[self.searched..]) {
            Some(end) => {
                let mut line = self.bytes.split_to(self.searched + end + 1);
                line.truncate(line.len() - 1);
                self.searched = 0;
                Some(line.to_vec())
            }
            None => {
                self.searched = self.bytes.len();
                None
            }
        }
    }

    /// Returns all remaining bytes.
    pub(crate) fn take_rest(&mut self) -> Vec<u8> {
        self.searched = 0;
        self.bytes.split().to_vec()
    }
}

/// A JSON text with too many values. The message follows the name of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("holds more than {MAX_JSON_VALUES} JSON values")]
pub(crate) struct TooManyValues;

/// Checks that a JSON text does not contain too many values. Fails if it does.
pub(crate) fn check_value_count(text: &str) -> Result<(), TooManyValues> {
    match may_have_more_values(text.as_bytes(), MAX_JSON_VALUES) {
        true => Err(TooManyValues),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Lines do not depend on how the bytes are chunked.
        #[test]
        fn lines_do_not_depend_on_chunks(text in "[a\n]{0,40}", cut in 1_usize..7) {
            let mut buffer = LineBuffer::default();
            let mut lines = Vec::new();
            for portion in text.as_bytes().chunks(cut) {
                buffer.buffer_mut().extend_from_slice(portion);
                while let Some(line) = buffer.next_line() {
                    lines.push(String::from_utf8(line).unwrap());
                }
            }
            lines.push(String::from_utf8(buffer.take_rest()).unwrap());
            let expected: Vec<&str> = text.split('\n').collect();
            prop_assert_eq!(lines, expected);
        }
    }

    #[test]
    fn rejects_too_many_values() {
        assert_eq!(check_value_count(&"1,".repeat(MAX_JSON_VALUES - 1)), Ok(()));
        assert!(check_value_count(&"1,".repeat(MAX_JSON_VALUES + 1)).is_err());
        assert_eq!(check_value_count(&"x".repeat(3 * MAX_JSON_VALUES)), Ok(()));
    }
}
