//! `.json`: one object with the summary and all results, in the order of the cases.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use serde_json::json;

use super::record::{EnvironmentRecord, ResultRecord, SummaryRecord, VERSION, rfc3339};
use super::spool::{Piece, Spool};
use super::{Reporter, RunEvent};
use crate::session::Identity;

/// Writes one JSON object. Results end in any order, so until the end they wait in a spool.
pub struct Json {
    file: File,
    environment: EnvironmentRecord,
    spool: Spool,
    /// For each case its place in the run, and its result.
    results: Vec<(usize, Piece)>,
}

impl Json {
    /// A report to a file that is still empty, of a run that speaks to agents as `identity` says.
    ///
    /// # Errors
    /// When no temporary file can be made.
    pub fn new(file: File, identity: &Identity) -> io::Result<Self> {
        let environment = EnvironmentRecord::of(identity);
        Ok(Json { file, environment, spool: Spool::new()?, results: Vec::new() })
    }
}

impl Reporter for Json {
    fn report(&mut self, event: &RunEvent<'_>) -> io::Result<()> {
        match event {
            RunEvent::CaseEnded(attempt) => {
                let piece = self.spool.add(&serde_json::to_vec(&ResultRecord::of(attempt))?)?;
                self.results.push((attempt.selected.index, piece));
                Ok(())
            }
            RunEvent::Ended(summary) => {
                self.results.sort_unstable();
                let mut out = BufWriter::new(&self.file);
                let metadata = json!({
                    "version": VERSION,
                    "hotseat": env!("CARGO_PKG_VERSION"),
                    "started_at": rfc3339(summary.started_at),
                    "completed_at": rfc3339(summary.ended_at),
                });
                let head = serde_json::to_string(&SummaryRecord::of(summary))?;
                let environment = serde_json::to_string(&self.environment)?;
                write!(out, "{{\"summary\":{head},\n\"environment\":{environment},\n")?;
                write!(out, "\"metadata\":{metadata},\n\"results\":[")?;
                let mut spool = self.spool.read()?;
                for (number, (_, piece)) in self.results.iter().enumerate() {
                    out.write_all(if number == 0 { b"\n" } else { b",\n" })?;
                    spool.copy(*piece, &mut out)?;
                }
                out.write_all(b"\n]}\n")?;
                out.flush()
            }
            RunEvent::Started { .. } | RunEvent::CaseStarted(_) | RunEvent::Stopping(_) => Ok(()),
        }
    }
}
