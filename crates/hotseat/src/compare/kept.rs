//! Runs that are kept.

use std::io::{self, Read as _, Seek as _};

use super::cases::Run;
use super::read::read_report;
use crate::report::{Format, open};
use crate::store::{RunHead, Store};

/// Reads a run that is kept, by the report that it would write: so a run compares the same in both ways.
///
/// # Errors
/// When it cannot be read.
pub fn read_kept(store: &Store, head: &RunHead) -> io::Result<Run> {
    let mut file = tempfile::tempfile()?;
    let shown = format!("run {}", head.short());
    let mut report = open(file.try_clone()?, Format::JsonLines, &shown, head.about.setting.clone())?;
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
