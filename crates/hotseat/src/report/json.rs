//! `.json`: one object with the summary and all results, in the order of the cases.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use super::record::{EnvironmentRecord, MetadataRecord, ResultRecord, SummaryRecord};
use super::spool::{Piece, Spool};
use super::{Reporter, RunEvent};
use crate::run::Setting;

/// Writes one JSON object. Results end in any order, so until the end they wait in a spool.
pub struct Json {
    file: File,
    /// The file, as it is shown to people.
    shown: String,
    setting: Arc<Setting>,
    spool: Spool,
    /// For each case its place in the run, and its result.
    results: Vec<(usize, Piece)>,
}

impl Json {
    /// A report to a file that is still empty, of a run that is carried out as `setting` says.
    ///
    /// # Errors
    /// When no temporary file can be made.
    pub fn new(file: File, shown: String, setting: Arc<Setting>) -> io::Result<Self> {
        Ok(Json { file, shown, setting, spool: Spool::new()?, results: Vec::new() })
    }
}

impl Reporter for Json {
    fn report(&mut self, event: &RunEvent) -> io::Result<()> {
        match event {
            RunEvent::CaseEnded(outcome) => {
                let piece =
                    self.spool.add(&serde_json::to_vec(&ResultRecord::of(outcome, &self.setting))?)?;
                self.results.push((outcome.selected.index, piece));
                Ok(())
            }
            RunEvent::Ended(summary) => {
                self.results.sort_unstable();
                let mut out = BufWriter::new(&self.file);
                let metadata = MetadataRecord::of(summary, &self.setting, &self.shown);
                let metadata = serde_json::to_string(&metadata)?;
                let head = serde_json::to_string(&SummaryRecord::of(summary, &self.setting))?;
                let environment = serde_json::to_string(&EnvironmentRecord::of(&self.setting))?;
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
            RunEvent::Started { .. }
            | RunEvent::CaseStarted { .. }
            | RunEvent::AttemptEnded { .. }
            | RunEvent::Stopping(_) => Ok(()),
        }
    }
}
