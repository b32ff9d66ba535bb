//! Places in the source of tests, so that reports can show the line that something is about.

use std::collections::HashMap;
use std::fmt;
use std::panic::Location;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use hotseat_document::{Place, Source};

/// A place in the source of the test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct At(pub &'static Location<'static>);

/// The files that were looked for, with what was found.
static FILES: LazyLock<Mutex<Files>> = LazyLock::new(Mutex::default);

type Files = HashMap<&'static str, Option<Arc<Source>>>;

impl At {
    #[track_caller]
    pub(super) fn here() -> At {
        At(Location::caller())
    }

    /// The place as reports know places: with its line, where the file is there.
    pub(super) fn place(self) -> Place {
        let At(location) = self;
        let known = source(location.file()).and_then(|source| {
            let line = usize::try_from(location.line()).ok()?.checked_sub(1)?;
            let before: usize = source.text.split_inclusive('\n').take(line).map(str::len).sum();
            let text = source.text.get(before..)?.lines().next()?;
            let column = usize::try_from(location.column()).ok()?.checked_sub(1)?;
            let (start, _) = text.char_indices().nth(column)?;
            Some(Place::new(&source, before + start..before + text.trim_end().len()))
        });
        let bare = || Source::starting_at(location.file(), "", location.line(), location.column());
        known.unwrap_or_else(|| Place::new(&bare(), 0..0))
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A file as the compiler calls it: from the folder in which it ran, which is this one or one above it.
fn source(file: &'static str) -> Option<Arc<Source>> {
    let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    files.entry(file).or_insert_with(|| read(file)).clone()
}

fn read(file: &'static str) -> Option<Arc<Source>> {
    let here = std::env::current_dir().ok()?;
    let text = here.ancestors().find_map(|folder: &Path| std::fs::read_to_string(folder.join(file)).ok())?;
    Some(Source::new(file, text, 1))
}
