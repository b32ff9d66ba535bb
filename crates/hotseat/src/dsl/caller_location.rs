//! Source locations of tests, so that reports can show the line of a declaration or assertion.

use std::collections::HashMap;
use std::fmt;
use std::panic::Location;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use hotseat_document::{SourceSpan, SourceText};

/// Source location of a call in a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallerLocation(pub &'static Location<'static>);

/// Source files that were looked up, with their content if found.
static SOURCES: LazyLock<Mutex<SourceCache>> = LazyLock::new(Mutex::default);

type SourceCache = HashMap<&'static str, Option<Arc<SourceText>>>;

impl CallerLocation {
    #[track_caller]
    pub(super) fn here() -> CallerLocation {
        CallerLocation(Location::caller())
    }

    /// Converts to the location type of reports, with the source line if the file is available.
    pub(super) fn place(self) -> SourceSpan {
        let CallerLocation(location) = self;
        let known = cached_source(location.file()).and_then(|source| {
            let line = usize::try_from(location.line()).ok()?.checked_sub(1)?;
            let before: usize = source.text.split_inclusive('\n').take(line).map(str::len).sum();
            let text = source.text.get(before..)?.lines().next()?;
            let column = usize::try_from(location.column()).ok()?.checked_sub(1)?;
            let (start, _) = text.char_indices().nth(column)?;
            Some(SourceSpan::new(&source, before + start..before + text.trim_end().len()))
        });
        let bare = || SourceText::starting_at(location.file(), "", location.line(), location.column());
        known.unwrap_or_else(|| SourceSpan::new(&bare(), 0..0))
    }
}

impl fmt::Display for CallerLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Reads a source file. The compiler's path is relative to the workspace, which is the working directory or
/// one of its ancestors.
fn cached_source(file: &'static str) -> Option<Arc<SourceText>> {
    let mut files = SOURCES.lock().unwrap_or_else(PoisonError::into_inner);
    files.entry(file).or_insert_with(|| read_source(file)).clone()
}

fn read_source(file: &'static str) -> Option<Arc<SourceText>> {
    let here = std::env::current_dir().ok()?;
    let text = here.ancestors().find_map(|folder: &Path| std::fs::read_to_string(folder.join(file)).ok())?;
    Some(SourceText::new(file, text, 1))
}
