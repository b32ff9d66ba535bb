//! Lines of an input that may be of any length, and how much of it is held.

use std::io::{self, BufRead, BufReader, Read};
use std::thread;

use tokio::sync::mpsc::{Receiver, Sender, channel};

/// How many lines may wait for whoever answers them; then no more is read.
const WAITING: usize = 16;

/// A line of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputLine {
    /// What stands there.
    Text(String),
    /// It is longer than so many bytes; nothing of it is kept.
    TooLong(usize),
    /// It is not UTF-8.
    NotText,
}

/// The lines of an input, read by a thread that ends with it or with whoever receives them.
pub fn read_lines(input: impl Read + Send + 'static, longest: usize) -> Receiver<InputLine> {
    let (send, lines) = channel(WAITING);
    thread::spawn(move || {
        // An input that breaks off has ended.
        let _ = pass_on(BufReader::new(input), longest, &send);
    });
    lines
}

fn pass_on(mut input: impl BufRead, longest: usize, send: &Sender<InputLine>) -> io::Result<()> {
    let most = u64::try_from(longest).unwrap_or(u64::MAX).saturating_add(1);
    loop {
        let mut line = Vec::new();
        if input.by_ref().take(most).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let whole = line.last() == Some(&b'\n');
        let line = if !whole && line.len() > longest {
            input.skip_until(b'\n')?;
            InputLine::TooLong(longest)
        } else {
            let end = line.len() - usize::from(whole);
            line.truncate(end);
            String::from_utf8(line).map_or(InputLine::NotText, InputLine::Text)
        };
        if send.blocking_send(line).is_err() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of an input that comes in pieces of this size.
    fn lines(input: &[u8], piece: usize, longest: usize) -> Vec<InputLine> {
        let mut read = read_lines(InPieces(input.to_vec(), piece), longest);
        std::iter::from_fn(|| read.blocking_recv()).collect()
    }

    struct InPieces(Vec<u8>, usize);

    impl Read for InPieces {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(buffer.len()).min(self.0.len());
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0.drain(..count);
            Ok(count)
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over_and_the_next_one_read() {
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
        assert_eq!(lines(b"\xff\xfe\nok\n", 2, 5), [InputLine::NotText, InputLine::Text("ok".to_string())]);
    }

    #[test]
    fn an_endless_line_is_not_held() {
        let endless = io::repeat(b'x').take(1 << 30);
        let mut read = read_lines(endless, 1024);
        assert_eq!(read.blocking_recv(), Some(InputLine::TooLong(1024)));
        assert_eq!(read.blocking_recv(), None);
    }
}
