//! `.jsonl`: a `start` line, a `result` line as each case ends, a `summary` line.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use serde::Serialize;

use super::record::{ResultRecord, StartRecord, SummaryRecord};
use super::{CommandGuard, Reporter, RunEvent};
use crate::run::Setting;

/// Writes one JSON value a line, each as soon as it is known.
pub struct JsonLines {
    out: BufWriter<File>,
    setting: Arc<Setting>,
}

#[derive(Serialize)]
struct Line<T> {
    r#type: &'static str,
    #[serde(flatten)]
    body: T,
}

/// Writes a value as a line that says its type. Whoever follows the output sees it at once, and a run that is killed
/// leaves whole lines.
pub fn line(out: &mut impl Write, r#type: &'static str, body: impl Serialize) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(&Line { r#type, body })?;
    bytes.push(b'\n');
    CommandGuard::json(&mut *out).write_all(&bytes)?;
    out.flush()
}

impl JsonLines {
    /// A report to a file that is still empty.
    pub fn new(file: File, setting: Arc<Setting>) -> Self {
        JsonLines { out: BufWriter::new(file), setting }
    }
}

impl Reporter for JsonLines {
    fn report(&mut self, event: &RunEvent) -> io::Result<()> {
        let JsonLines { out, setting } = self;
        match event {
            RunEvent::Started { total, parallel, at } => {
                line(out, "start", StartRecord::of(*total, *parallel, *at, setting))
            }
            RunEvent::CaseEnded(outcome) => line(out, "result", ResultRecord::of(outcome, setting)),
            RunEvent::Ended(summary) => line(out, "summary", SummaryRecord::of(summary, setting)),
            RunEvent::CaseStarted { .. } | RunEvent::AttemptEnded { .. } | RunEvent::Stopping(_) => Ok(()),
        }
    }
}
