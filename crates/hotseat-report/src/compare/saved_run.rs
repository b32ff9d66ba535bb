//! Reads saved runs for a comparison.

use std::io::{self, Read as _, Seek as _};

use super::cases::ReportRun;
use super::read::read_report;
use crate::reporters::{ReportFormat, open_report};
use crate::store::{RunStore, StoredRun};

/// Reads a saved run through its JSON lines report, so saved runs and report files compare in the same way.
///
/// # Errors
/// If the run cannot be read.
pub fn read_saved_run(store: &RunStore, head: &StoredRun) -> io::Result<ReportRun> {
    let mut file = tempfile::tempfile()?;
    let shown = format!("run {}", head.short_id());
    let mut report =
        open_report(file.try_clone()?, ReportFormat::JsonLines, &shown, head.metadata.setting.clone())?;
    let mut written = Ok(());
    let told = store.replay(head, &mut |event| {
        if written.is_ok() {
            written = report.report(&event);
        }
    });
    told.map_err(io::Error::other)?;
    written?;
    let mut text = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut text)?;
    read_report(&text, &shown).map_err(io::Error::other)
}
