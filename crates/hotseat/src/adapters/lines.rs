//! Lines, however the bytes arrive that they are made of, and what is too much for one of them.

use bytes::BytesMut;

/// The most JSON values in one event, line or answer: each takes far more memory than its text may have.
const MOST_VALUES: usize = 2_000_000;

/// Cuts bytes into lines. Each byte is looked at once.
#[derive(Debug, Default)]
pub(super) struct LineBuffer {
    bytes: BytesMut,
    /// How much of it is known to hold no line end.
    searched: usize,
}

impl LineBuffer {
    /// Where bytes are put that have arrived.
    pub(super) fn unread(&mut self) -> &mut BytesMut {
        &mut self.bytes
    }

    /// How many bytes belong to no line yet.
    pub(super) fn waiting(&self) -> usize {
        self.bytes.len()
    }

    /// The next line, without its end.
    pub(super) fn next_line(&mut self) -> Option<Vec<u8>> {
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

    /// Everything that is left.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        self.searched = 0;
        self.bytes.split().to_vec()
    }
}

/// Whether a JSON text holds so many values that it is not read.
///
/// # Errors
/// When it does, in words that go on from what it is.
pub(super) fn check_values(text: &str) -> Result<(), String> {
    if text.len() <= MOST_VALUES {
        return Ok(());
    }
    // Every value but the first follows a comma or begins what it stands in; those within texts do no harm.
    let values = memchr::memchr3_iter(b',', b'[', b'{', text.as_bytes()).take(MOST_VALUES + 1).count();
    match values > MOST_VALUES {
        true => Err(format!("holds more than {MOST_VALUES} JSON values")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// However bytes arrive, the lines are the same.
        #[test]
        fn lines_do_not_depend_on_portions(text in "[a\n]{0,40}", cut in 1_usize..7) {
            let mut buffer = LineBuffer::default();
            let mut lines = Vec::new();
            for portion in text.as_bytes().chunks(cut) {
                buffer.unread().extend_from_slice(portion);
                while let Some(line) = buffer.next_line() {
                    lines.push(String::from_utf8(line).unwrap());
                }
            }
            lines.push(String::from_utf8(buffer.rest()).unwrap());
            let expected: Vec<&str> = text.split('\n').collect();
            prop_assert_eq!(lines, expected);
        }
    }

    #[test]
    fn a_text_of_too_many_values_is_not_read() {
        assert_eq!(check_values(&"1,".repeat(MOST_VALUES - 1)), Ok(()));
        assert!(check_values(&"1,".repeat(MOST_VALUES + 1)).is_err());
        assert_eq!(check_values(&"x".repeat(3 * MOST_VALUES)), Ok(()));
    }
}
