//! `.json`: one object with the summary and all results, in the order of the cases.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};

use serde_json::json;

use super::record::{ResultRecord, SummaryRecord, VERSION, rfc3339};
use super::{Reporter, RunEvent};

/// Writes one JSON object. Results end in any order, so until the end they wait in a temporary file.
pub struct Json {
    file: File,
    spool: BufWriter<File>,
    /// For each case: its place in the run, and where its result lies in the spool.
    places: Vec<(usize, u64, u64)>,
    length: u64,
}

impl Json {
    /// A report to a file that is still empty.
    ///
    /// # Errors
    /// When no temporary file can be made.
    pub fn new(file: File) -> io::Result<Self> {
        Ok(Json { file, spool: BufWriter::new(tempfile::tempfile()?), places: Vec::new(), length: 0 })
    }
}

impl Reporter for Json {
    fn report(&mut self, event: &RunEvent<'_>) -> io::Result<()> {
        match event {
            RunEvent::CaseEnded(attempt) => {
                let record = serde_json::to_vec(&ResultRecord::of(attempt))?;
                let length = record.len() as u64;
                self.spool.write_all(&record)?;
                self.places.push((attempt.selected.index, self.length, length));
                self.length += length;
                Ok(())
            }
            RunEvent::Ended(summary) => {
                self.spool.flush()?;
                self.places.sort_unstable();
                let mut out = BufWriter::new(&self.file);
                let metadata = json!({
                    "version": VERSION,
                    "hotseat": env!("CARGO_PKG_VERSION"),
                    "started_at": rfc3339(summary.started_at),
                    "completed_at": rfc3339(summary.ended_at),
                });
                let head = serde_json::to_string(&SummaryRecord::of(summary))?;
                write!(out, "{{\"summary\":{head},\n\"metadata\":{metadata},\n\"results\":[")?;
                let mut spool = BufReader::new(self.spool.get_ref());
                let mut record = Vec::new();
                for (number, &(_, start, length)) in self.places.iter().enumerate() {
                    spool.seek(SeekFrom::Start(start))?;
                    record.clear();
                    spool.by_ref().take(length).read_to_end(&mut record)?;
                    out.write_all(if number == 0 { b"\n" } else { b",\n" })?;
                    out.write_all(&record)?;
                }
                out.write_all(b"\n]}\n")?;
                out.flush()
            }
            RunEvent::Started { .. } | RunEvent::CaseStarted(_) | RunEvent::Stopping(_) => Ok(()),
        }
    }
}
