//! `--record DIR`: what the agent did in each case, in a file each, to be served again.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::record::rfc3339;
use super::{Reporter, RunEvent};
use crate::recording::{self, Recording, suite_name};
use crate::run::Setting;

/// Writes a recording of each case that was held.
pub struct Recordings {
    folder: PathBuf,
    project: PathBuf,
    setting: Arc<Setting>,
}

impl Recordings {
    /// Recordings into a folder, which is made if it is not there. `project` is the folder that suites are named from.
    ///
    /// # Errors
    /// When nothing can be written there.
    pub fn open(folder: PathBuf, project: PathBuf, setting: Arc<Setting>) -> io::Result<Self> {
        std::fs::create_dir_all(&folder)?;
        // What cannot be written should show before anybody is asked anything.
        tempfile::tempfile_in(&folder)?;
        Ok(Recordings { folder, project, setting })
    }
}

impl Reporter for Recordings {
    fn report(&mut self, event: &RunEvent) -> io::Result<()> {
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
            agent: self.setting.tested(selected).and_then(|agent| agent.name.clone()),
            recorded_at: Some(rfc3339(attempt.started_at)),
            turns,
        };
        recording::write(&self.folder, &recording)
    }
}
