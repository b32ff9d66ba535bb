//! Temporary file for data that is written at the end of a run, so memory does not grow with the number of
//! cases.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};

/// Pieces of a report in the order in which their cases ended.
pub struct ReportSpool {
    file: BufWriter<File>,
    length: u64,
}

/// Position of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpoolPiece {
    start: u64,
    length: u64,
}

impl ReportSpool {
    /// Creates an empty spool. Fails if no temporary file can be created.
    pub fn new() -> io::Result<Self> {
        Ok(ReportSpool { file: BufWriter::new(tempfile::tempfile()?), length: 0 })
    }

    /// Adds a piece.
    pub fn add(&mut self, bytes: &[u8]) -> io::Result<SpoolPiece> {
        self.file.write_all(bytes)?;
        let piece = SpoolPiece { start: self.length, length: bytes.len() as u64 };
        self.length += piece.length;
        Ok(piece)
    }

    /// Returns a reader for pieces in any order.
    pub fn reader(&mut self) -> io::Result<SpoolReader<'_>> {
        self.file.flush()?;
        Ok(SpoolReader { file: BufReader::new(self.file.get_ref()) })
    }
}

/// Reader for pieces of a spool.
pub struct SpoolReader<'a> {
    file: BufReader<&'a File>,
}

impl SpoolReader<'_> {
    /// Copies a piece to `out`.
    pub fn copy(&mut self, piece: SpoolPiece, out: &mut impl Write) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(piece.start))?;
        let copied = io::copy(&mut self.file.by_ref().take(piece.length), out)?;
        if copied == piece.length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}
