//! `--trace FILE`: every event of every conversation, a line each, to look into what an agent really sent.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use hotseat_trace::FORMAT_VERSION;
use serde_json::json;

use super::{Reporter, RunEvent};

/// Writes events as JSON lines. A line before those of an attempt says which case they belong to.
pub struct TraceLines {
    out: BufWriter<File>,
}

impl TraceLines {
    /// A trace to a file that is still empty.
    pub fn new(file: File) -> Self {
        TraceLines { out: BufWriter::new(file) }
    }
}

impl Reporter for TraceLines {
    fn report(&mut self, event: &RunEvent) -> io::Result<()> {
        let RunEvent::CaseEnded(outcome) = event else { return Ok(()) };
        let case = &outcome.selected.case;
        for attempt in &outcome.attempts {
            let head = json!({
                "type": "case",
                "formatVersion": FORMAT_VERSION,
                "index": attempt.selected.index,
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
