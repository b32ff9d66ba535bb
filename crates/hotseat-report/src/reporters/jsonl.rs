//! `.jsonl`: a `start` line, a `result` line for each finished case, and a `summary` line.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use serde::Serialize;

use super::record::{ResultRecord, StartRecord, SummaryRecord};
use super::{CommandGuard, Reporter, RunEvent};
use hotseat_engine::run::RunSettings;

/// Reporter that writes one JSON value per line as soon as it is available.
pub struct JsonLinesReporter {
    out: BufWriter<File>,
    setting: Arc<RunSettings>,
}

#[derive(Serialize)]
struct TypedLine<T> {
    r#type: &'static str,
    #[serde(flatten)]
    body: T,
}

/// Writes a value as a line with its type. The line is flushed at once, so readers can follow the output and
/// a killed run leaves only complete lines.
pub fn write_line(out: &mut impl Write, r#type: &'static str, body: impl Serialize) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(&TypedLine { r#type, body })?;
    bytes.push(b'\n');
    CommandGuard::json(&mut *out).write_all(&bytes)?;
    out.flush()
}

impl JsonLinesReporter {
    /// Creates a reporter that writes to an empty file.
    pub fn new(file: File, setting: Arc<RunSettings>) -> Self {
        JsonLinesReporter { out: BufWriter::new(file), setting }
    }
}

impl Reporter for JsonLinesReporter {
    fn report(&mut self, event: &RunEvent) -> io::Result<()> {
        let JsonLinesReporter { out, setting } = self;
        match event {
            RunEvent::Started { total, parallel, at } => {
                write_line(out, "start", StartRecord::new(*total, *parallel, *at, setting))
            }
            RunEvent::CaseEnded(outcome) => write_line(out, "result", ResultRecord::new(outcome, setting)),
            RunEvent::Ended(summary) => write_line(out, "summary", SummaryRecord::new(summary, setting)),
            RunEvent::SweepEnded(report) => write_line(out, "fault_sweep", &**report),
            RunEvent::CaseStarted { .. }
            | RunEvent::AttemptEnded { .. }
            | RunEvent::Stopping(_)
            | RunEvent::SweepStarted { .. } => Ok(()),
        }
    }
}
