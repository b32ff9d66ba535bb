//! `.json`: one object with the summary and all results in the order of the cases.

use std::io::{self, Write};
use std::sync::Arc;

use super::Reporter;
use super::output_file::OutputFile;
use super::record::{EnvironmentRecord, MetadataRecord, ResultRecord, SummaryRecord};
use super::spool::{ReportSpool, SpoolPiece};
use hotseat_engine::run::{CaseOutcome, RunSettings, RunSummary};

/// Reporter that writes one JSON object. Results arrive in any order, so they are spooled until the end of
/// the run.
pub struct JsonReporter {
    file: OutputFile,
    /// Display name of the file.
    label: String,
    setting: Arc<RunSettings>,
    spool: ReportSpool,
    /// Index of each case, with its result.
    results: Vec<(usize, SpoolPiece)>,
}

impl JsonReporter {
    /// Creates a reporter that writes to a file. Fails if no temporary file can be created.
    pub fn new(file: OutputFile, shown: String, setting: Arc<RunSettings>) -> io::Result<Self> {
        Ok(JsonReporter { file, label: shown, setting, spool: ReportSpool::new()?, results: Vec::new() })
    }
}

impl Reporter for JsonReporter {
    fn report_case(&mut self, outcome: &CaseOutcome) -> io::Result<()> {
        let piece = self.spool.add(&serde_json::to_vec(&ResultRecord::new(outcome, &self.setting))?)?;
        self.results.push((outcome.case_ref.index, piece));
        Ok(())
    }

    fn report_run(&mut self, summary: &RunSummary) -> io::Result<()> {
        self.results.sort_unstable();
        self.file.write(|out| {
            let metadata = MetadataRecord::new(summary, &self.setting, &self.label);
            let metadata = serde_json::to_string(&metadata)?;
            let head = serde_json::to_string(&SummaryRecord::new(summary, &self.setting))?;
            let environment = serde_json::to_string(&EnvironmentRecord::new(&self.setting))?;
            write!(out, "{{\"summary\":{head},\n\"environment\":{environment},\n")?;
            writeln!(out, "\"metadata\":{metadata},")?;
            if let Some(sweep) = &summary.sweep {
                writeln!(out, "\"fault_sweep\":{},", serde_json::to_string(&**sweep)?)?;
            }
            write!(out, "\"results\":[")?;
            let mut spool = self.spool.reader()?;
            for (number, (_, piece)) in self.results.iter().enumerate() {
                out.write_all(if number == 0 { b"\n" } else { b",\n" })?;
                spool.copy(*piece, out)?;
            }
            out.write_all(b"\n]}\n")
        })
    }
}
