//! `--trace FILE`: every event of every conversation, one per line, to inspect the raw data of an agent.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use hotseat_trace::FORMAT_VERSION;
use serde_json::json;

use super::{CommandGuard, Reporter};
use hotseat_engine::run::CaseOutcome;

/// Reporter that writes events as JSON lines. The events of each attempt follow a line that names their case.
pub struct TraceReporter {
    out: BufWriter<CommandGuard<File>>,
}

impl TraceReporter {
    /// Creates a reporter that writes to an empty file.
    pub fn new(file: File) -> Self {
        TraceReporter { out: BufWriter::new(CommandGuard::json(file)) }
    }
}

impl Reporter for TraceReporter {
    fn report_case(&mut self, outcome: &CaseOutcome) -> io::Result<()> {
        let case = &outcome.case_ref.case;
        for attempt in &outcome.attempts {
            let head = json!({
                "type": "case",
                "formatVersion": FORMAT_VERSION,
                "index": attempt.case_ref.index,
                "id": case.id,
                "file": case.place.file(),
                "line": case.place.line(),
                "attempt": attempt.number,
                "status": attempt.verdict.status,
            });
            writeln!(self.out, "{head}")?;
            for event in &attempt.events {
                serde_json::to_writer(&mut self.out, event)?;
                self.out.write_all(b"\n")?;
            }
        }
        self.out.flush()
    }
}
