//! `.jsonl`: a `start` line, a `result` line as each case ends, a `summary` line.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use serde::Serialize;
use serde_json::json;

use super::record::{EnvironmentRecord, ResultRecord, SummaryRecord, VERSION, rfc3339};
use super::{Reporter, RunEvent};
use crate::session::Identity;

/// Writes one JSON value a line, each as soon as it is known.
pub struct JsonLines {
    out: BufWriter<File>,
    environment: EnvironmentRecord,
}

#[derive(Serialize)]
struct Line<T> {
    r#type: &'static str,
    #[serde(flatten)]
    body: T,
}

impl JsonLines {
    /// A report to a file that is still empty, of a run that speaks to agents as `identity` says.
    pub fn new(file: File, identity: &Identity) -> Self {
        JsonLines { out: BufWriter::new(file), environment: EnvironmentRecord::of(identity) }
    }

    fn line(&mut self, r#type: &'static str, body: impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, &Line { r#type, body })?;
        self.out.write_all(b"\n")?;
        // Whoever follows the file sees a case when it ends, and a run that is killed leaves whole lines.
        self.out.flush()
    }
}

impl Reporter for JsonLines {
    fn report(&mut self, event: &RunEvent<'_>) -> io::Result<()> {
        match event {
            RunEvent::Started { plan, parallel, at } => {
                let start = json!({
                    "version": VERSION,
                    "hotseat": env!("CARGO_PKG_VERSION"),
                    "started_at": rfc3339(*at),
                    "total": plan.selected,
                    "parallel": parallel,
                    "environment": self.environment,
                });
                self.line("start", start)
            }
            RunEvent::CaseEnded(attempt) => self.line("result", ResultRecord::of(attempt)),
            RunEvent::Ended(summary) => self.line("summary", SummaryRecord::of(summary)),
            RunEvent::CaseStarted(_) | RunEvent::Stopping(_) => Ok(()),
        }
    }
}
