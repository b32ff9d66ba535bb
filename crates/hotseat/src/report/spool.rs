//! What has to wait for the end of a run, in a temporary file: memory does not grow with the number of cases.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};

/// Pieces of a report in the order in which their cases ended.
pub struct Spool {
    file: BufWriter<File>,
    length: u64,
}

/// Where a piece lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Piece {
    start: u64,
    length: u64,
}

impl Spool {
    /// A spool without pieces.
    ///
    /// # Errors
    /// When no temporary file can be made.
    pub fn new() -> io::Result<Self> {
        Ok(Spool { file: BufWriter::new(tempfile::tempfile()?), length: 0 })
    }

    /// Adds a piece.
    pub fn add(&mut self, bytes: &[u8]) -> io::Result<Piece> {
        self.file.write_all(bytes)?;
        let piece = Piece { start: self.length, length: bytes.len() as u64 };
        self.length += piece.length;
        Ok(piece)
    }

    /// Hands out pieces in any order.
    pub fn read(&mut self) -> io::Result<SpoolReader<'_>> {
        self.file.flush()?;
        Ok(SpoolReader { file: BufReader::new(self.file.get_ref()) })
    }
}

/// Reads pieces of a spool.
pub struct SpoolReader<'a> {
    file: BufReader<&'a File>,
}

impl SpoolReader<'_> {
    /// Writes a piece to `out`.
    pub fn copy(&mut self, piece: Piece, out: &mut impl Write) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(piece.start))?;
        let copied = io::copy(&mut self.file.by_ref().take(piece.length), out)?;
        if copied == piece.length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}
