//! `--record DIR`: what the agent did in each case, in a file each, to be served again.

use std::io;
use std::path::PathBuf;

use super::record::rfc3339;
use super::{Reporter, RunEvent};
use crate::recording::{self, Recording, suite_name};

/// Writes a recording of each case that was held.
pub struct Recordings {
    folder: PathBuf,
    project: PathBuf,
}

impl Recordings {
    /// Recordings into a folder, which is made if it is not there. `project` is the folder that suites are named from.
    ///
    /// # Errors
    /// When nothing can be written there.
    pub fn open(folder: PathBuf, project: PathBuf) -> io::Result<Self> {
        std::fs::create_dir_all(&folder)?;
        // What cannot be written should show before anybody is asked anything.
        tempfile::tempfile_in(&folder)?;
        Ok(Recordings { folder, project })
    }
}

impl Reporter for Recordings {
    fn report(&mut self, event: &RunEvent<'_>) -> io::Result<()> {
        let RunEvent::CaseEnded(outcome) = event else { return Ok(()) };
        let attempt = outcome.telling();
        let turns = recording::turns_of(&attempt.events, &attempt.conversation);
        // Of a case that was not run, or whose agent did nothing, what was recorded before stands.
        if turns.iter().all(|turn| turn.events.is_empty()) {
            return Ok(());
        }
        let selected = &attempt.selected;
        let recording = Recording {
            suite: Some(suite_name(&self.project, &selected.suite.path)),
            case: selected.case.id.clone(),
            agent: selected.agent.as_ref().and_then(|agent| agent.name.as_deref()).map(str::to_string),
            recorded_at: Some(rfc3339(attempt.started_at)),
            turns,
        };
        recording::write(&self.folder, &recording)
    }
}
