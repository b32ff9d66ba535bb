//! Agents that replay recordings.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::common::{ASSERTED, AWAITED, DESCRIPTION, FOLDER, TIMEOUT, TOOLS, TURN_ASSERTED};
use super::{AgentTarget, TargetCapabilities, TargetEnv, TargetInput, TargetSummary};
use crate::cases::CaseTarget;
use hotseat_document::{Diagnostic, Diagnostics, DocumentNode, Kind, document_shape};
use hotseat_targets::AgentSession;
use hotseat_targets::recording::{self, ReadRecordingError};
use hotseat_targets::replay::{CaseName, RecordingSource, ReplayMatching, ReplaySession, ReplayTarget};

document_shape! {
    /// An agent that replays recordings, without model and network.
    pub(super) static SHAPE "ReplayTarget" {
        /// Type of the target.
        required "type" = Kind::Choice(&["replay"]),
        /// Folder of the recordings, or one recording for all cases. Relative to the project file.
        required "from" = Kind::NonEmptyText,
        /// `exact`: user inputs and answers to tools and interrupts must equal the recorded ones. `position`:
        /// only the position of a turn in the conversation matters.
        optional "match" = Kind::Choice(&["exact", "position"]), shown "exact",
        ..TOOLS,
        ..TIMEOUT,
        ..DESCRIPTION,
        ..FOLDER,
        ..ASSERTED,
        ..TURN_ASSERTED,
        ..AWAITED,
    }
}

impl AgentTarget for ReplayTarget {
    fn reads_files() -> bool {
        true
    }

    /// A recorded agent received everything during the recording.
    fn capabilities(_: &DocumentNode) -> TargetCapabilities {
        TargetCapabilities::all()
    }

    fn read(input: &mut TargetInput<'_>) -> Option<Self> {
        let (map, mistakes) = (input.map, &mut *input.mistakes);
        let (shown, place) = (map.text("from")?, map.place_of("from")?);
        let from = match find(&input.root.join(shown), shown) {
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

    fn open(&self, _: &TargetEnv) -> Box<dyn AgentSession> {
        Box::new(ReplaySession::open(self.clone()))
    }

    fn summary(&self) -> TargetSummary {
        TargetSummary::at(format!("recordings in {}", self.display_path))
    }

    fn named_paths(&self) -> Vec<PathBuf> {
        match &self.source {
            RecordingSource::File(_, path) => vec![path.clone()],
            RecordingSource::Folder(folder) => {
                let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
                files.map(|entry| entry.path()).filter(|path| is_json(path)).collect()
            }
        }
    }

    fn apply_case(&mut self, case: &CaseTarget) {
        self.conversation_id.clone_from(&case.thread_id);
    }

    fn set_case_name(&mut self, name: CaseName) {
        self.case = Some(name);
    }
}

/// Finds the recordings at a path. Fails if there are none, or the recording is invalid.
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
        Ok(recording) => Ok(RecordingSource::File(Arc::new(recording), path.to_path_buf())),
        Err(ReadRecordingError::Missing) => wrong(format!("no such file or folder: {shown}")),
        Err(ReadRecordingError::Unreadable(error)) => wrong(format!("cannot read {shown}: {error}")),
        Err(ReadRecordingError::Invalid(found)) => Err(found),
    }
}

/// True if a folder contains a file that could be a recording.
fn contains_json(folder: &Path) -> std::io::Result<bool> {
    for entry in std::fs::read_dir(folder)? {
        if is_json(&entry?.path()) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json")
}
