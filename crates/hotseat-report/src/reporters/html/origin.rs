//! Where a case comes from: the lines of its file with what failed, and the command that runs it again.

use std::collections::HashSet;
use std::iter;

use hotseat_checks::escape;
use hotseat_document::{SourceLine, SourceSpan};

use hotseat_engine::run::{CaseOutcome, CaseRef};

use crate::reporters::record::records;
use crate::reporters::text::{MAX_LINE_CHARS, shell_word};

/// Maximum number of excerpts of a case.
const MAX_EXCERPTS: usize = 40;
/// Extensions of test files that `hotseat test` runs.
const RUNNABLE_EXTENSIONS: [&str; 8] = ["yaml", "yml", "json", "jsonl", "ts", "mts", "js", "mjs"];

records! {
    /// The line of a location in a test file. Its neighbours are not shown, because they could contain secrets, such
    /// as values of hooks.
    pub struct SourceExcerptRecord<'a>(place: &'a SourceSpan, line: SourceLine) {
        let SourceLine { text, marked } = line;
    } => {
        file: &'a str = place.file(),
        line: u32 = place.line(),
        column: u32 = place.column(),
        text: String = text,
        /// Marked characters of the text, counted from 0.
        marked: [usize; 2] = [marked.start, marked.end],
    }
}

/// Returns the excerpts for the failed checks and checkpoints of a case: the lines that the console shows.
pub fn source_excerpts(outcome: &CaseOutcome) -> Vec<SourceExcerptRecord<'_>> {
    let checks = outcome.attempts.iter().flat_map(|attempt| &attempt.checks);
    let failed = checks.filter(|found| !found.verdict.passed);
    let failed = failed.flat_map(|found| iter::once(&found.check.place).chain(&found.check.call_site));
    let checkpoints = outcome.attempts.iter().flat_map(|attempt| &attempt.checkpoints);
    let missing = checkpoints.filter(|reached| reached.is_missing()).map(|reached| &reached.checkpoint.place);
    let mut seen = HashSet::new();
    failed
        .chain(missing)
        .filter(|place| !place.file().is_empty() && seen.insert((place.file(), place.line(), place.column())))
        .take(MAX_EXCERPTS)
        .filter_map(|place| Some(SourceExcerptRecord::new(place, place.short_line(MAX_LINE_CHARS)?)))
        .collect()
}

/// Returns the command that runs a case again. `None` if no command line can name the case.
pub fn rerun_command(selected: &CaseRef) -> Option<String> {
    let file = &*selected.suite.shown;
    let extension = file.rsplit_once('.').map_or("", |(_, extension)| extension);
    let is_file = RUNNABLE_EXTENSIONS.contains(&extension);
    let pattern = format!("^{}$", escape(&selected.case.id));
    let is_printable = |text: &str| !text.chars().any(char::is_control);
    (is_file && is_printable(file) && is_printable(&pattern))
        .then(|| format!("hotseat test {} --run {}", shell_word(file), shell_word(&pattern)))
}
