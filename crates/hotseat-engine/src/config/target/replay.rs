//! Decodes targets that replay recordings.

use std::path::Path;
use std::sync::Arc;

use hotseat_document::{Diagnostic, Diagnostics, MapView};

use hotseat_targets::recording;
use hotseat_targets::recording::ReadRecordingError;
use hotseat_targets::replay::{RecordingSource, ReplayMatching, ReplayTarget};

pub(super) fn read_target(
    map: &MapView<'_>,
    root: &Path,
    mistakes: &mut Diagnostics,
) -> Option<ReplayTarget> {
    let (shown, place) = (map.text("from")?, map.place_of("from")?);
    let from = match find(&root.join(shown), shown) {
        Ok(from) => from,
        Err(found) => {
            // Errors inside a recording have their own position.
            let placed = found.into_iter().map(|mistake| match &mistake.place {
                None => mistake.at(place.clone()),
                Some(_) => mistake,
            });
            mistakes.extend(placed);
            return None;
        }
    };
    let matching = match map.text("match") {
        Some("position") => ReplayMatching::Position,
        _ => ReplayMatching::Exact,
    };
    Some(ReplayTarget {
        source: from,
        display_path: shown.to_string(),
        matching,
        case: None,
        conversation_id: None,
    })
}

/// Finds the recordings at a path.
///
/// # Errors
/// If there are none, or the recording is invalid.
pub(in crate::config) fn find(path: &Path, shown: &str) -> Result<RecordingSource, Diagnostics> {
    let wrong = |message: String| {
        let help = "create recordings with `hotseat test --record FOLDER`";
        Err(Diagnostics::from(Diagnostic::new(message).help(help)))
    };
    if path.is_dir() {
        return match contains_json(path) {
            Ok(true) => Ok(RecordingSource::Folder(path.to_path_buf())),
            Ok(false) => wrong(format!("there are no recordings in {shown}")),
            Err(error) => wrong(format!("cannot read {shown}: {error}")),
        };
    }
    match recording::read(path, shown) {
        Ok(recording) => Ok(RecordingSource::File(Arc::new(recording))),
        Err(ReadRecordingError::Missing) => wrong(format!("no such file or folder: {shown}")),
        Err(ReadRecordingError::Unreadable(error)) => wrong(format!("cannot read {shown}: {error}")),
        Err(ReadRecordingError::Invalid(found)) => Err(found),
    }
}

/// True if a folder contains a file that could be a recording.
fn contains_json(folder: &Path) -> std::io::Result<bool> {
    for entry in std::fs::read_dir(folder)? {
        if entry?.path().extension().is_some_and(|ending| ending == "json") {
            return Ok(true);
        }
    }
    Ok(false)
}
