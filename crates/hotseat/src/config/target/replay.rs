//! An agent that serves recordings.

use std::path::Path;
use std::sync::Arc;

use hotseat_document::{Diagnostic, Diagnostics, Map};

use crate::adapters::replay::{From, Matching, Target};
use crate::recording::{self, NotRead};

pub(super) fn read(map: &Map<'_>, root: &Path, mistakes: &mut Diagnostics) -> Option<Target> {
    let (shown, place) = (map.text("from")?, map.place_of("from")?);
    let from = match find(&root.join(shown), shown) {
        Ok(from) => from,
        Err(found) => {
            // What is wrong inside of a recording has a place of its own.
            let placed = found.into_iter().map(|mistake| match &mistake.place {
                None => mistake.at(place.clone()),
                Some(_) => mistake,
            });
            mistakes.extend(placed);
            return None;
        }
    };
    let matching = match map.text("match") {
        Some("position") => Matching::Position,
        _ => Matching::Exact,
    };
    Some(Target { from, shown: shown.to_string(), matching, case: None, conversation_id: None })
}

/// The recordings at a path.
///
/// # Errors
/// When there are none, or the one that is meant is wrong.
pub(in crate::config) fn find(path: &Path, shown: &str) -> Result<From, Diagnostics> {
    let wrong = |message: String| {
        let help = "make recordings with `hotseat test --record FOLDER`";
        Err(Diagnostics::from(Diagnostic::new(message).help(help)))
    };
    if path.is_dir() {
        return match holds_json(path) {
            Ok(true) => Ok(From::Folder(path.to_path_buf())),
            Ok(false) => wrong(format!("there are no recordings in {shown}")),
            Err(error) => wrong(format!("cannot read {shown}: {error}")),
        };
    }
    match recording::read(path, shown) {
        Ok(recording) => Ok(From::File(Arc::new(recording))),
        Err(NotRead::Missing) => wrong(format!("no such file or folder: {shown}")),
        Err(NotRead::Unreadable(error)) => wrong(format!("cannot read {shown}: {error}")),
        Err(NotRead::Wrong(found)) => Err(found),
    }
}

/// Whether a folder holds a file that could be a recording.
fn holds_json(folder: &Path) -> std::io::Result<bool> {
    for entry in std::fs::read_dir(folder)? {
        if entry?.path().extension().is_some_and(|ending| ending == "json") {
            return Ok(true);
        }
    }
    Ok(false)
}
