//! Reads lines of unlimited input with bounded memory.

use std::io::{self, BufRead, BufReader, Read};
use std::thread;

use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Maximum number of unhandled lines; reading pauses when it is reached.
const MAX_WAITING_LINES: usize = 16;

/// One line of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputLine {
    /// Text of the line.
    Text(String),
    /// The line is longer than this limit in bytes; its content is discarded.
    TooLong(usize),
    /// The line is not UTF-8.
    InvalidUtf8,
}

/// Reads the lines of an input on a thread, which ends with the input or when the receiver is dropped.
pub fn read_lines(input: impl Read + Send + 'static, longest: usize) -> Receiver<InputLine> {
    let (send, lines) = channel(MAX_WAITING_LINES);
    thread::spawn(move || {
        // A read error counts as the end of the input.
        let _ = forward_lines(BufReader::new(input), longest, &send);
    });
    lines
}

fn forward_lines(mut input: impl BufRead, longest: usize, send: &Sender<InputLine>) -> io::Result<()> {
    let read_limit = u64::try_from(longest).unwrap_or(u64::MAX).saturating_add(1);
    loop {
        let mut line = Vec::new();
        if input.by_ref().take(read_limit).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let whole = line.last() == Some(&b'\n');
        let line = if !whole && line.len() > longest {
            input.skip_until(b'\n')?;
            InputLine::TooLong(longest)
        } else {
            let end = line.len() - usize::from(whole);
            line.truncate(end);
            String::from_utf8(line).map_or(InputLine::InvalidUtf8, InputLine::Text)
        };
        if send.blocking_send(line).is_err() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lines of an input that arrives in pieces of this size.
    fn lines(input: &[u8], piece: usize, longest: usize) -> Vec<InputLine> {
        let mut read = read_lines(ChunkedReader(input.to_vec(), piece), longest);
        std::iter::from_fn(|| read.blocking_recv()).collect()
    }

    struct ChunkedReader(Vec<u8>, usize);

    impl Read for ChunkedReader {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(buffer.len()).min(self.0.len());
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0.drain(..count);
            Ok(count)
        }
    }

    #[test]
    fn skips_a_line_that_is_too_long() {
        for piece in [1, 3, 4096] {
            for length in 0..12 {
                let input = format!("{}\nnext\n\nlast", "x".repeat(length));
                let first = match length > 5 {
                    true => InputLine::TooLong(5),
                    false => InputLine::Text("x".repeat(length)),
                };
                let rest = ["next", "", "last"].map(|line| InputLine::Text(line.to_string()));
                let expected: Vec<InputLine> = std::iter::once(first).chain(rest).collect();
                assert_eq!(lines(input.as_bytes(), piece, 5), expected, "{length} in pieces of {piece}");
            }
        }
        assert_eq!(
            lines(b"\xff\xfe\nok\n", 2, 5),
            [InputLine::InvalidUtf8, InputLine::Text("ok".to_string())]
        );
    }

    #[test]
    fn does_not_buffer_an_endless_line() {
        let endless = io::repeat(b'x').take(1 << 30);
        let mut read = read_lines(endless, 1024);
        assert_eq!(read.blocking_recv(), Some(InputLine::TooLong(1024)));
        assert_eq!(read.blocking_recv(), None);
    }
}
