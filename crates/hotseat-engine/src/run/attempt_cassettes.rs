//! Cassettes of attempts: opened before a conversation, and saved after it.

use std::sync::Arc;

use hotseat_trace::{AttemptFailure, FailureKind, format_first};

use super::cassettes::AttemptCassette;
use super::context::RunContext;
use super::plan::SelectedCase;

/// Maximum number of unused answers that a warning lists.
const MAX_LISTED_ANSWERS: usize = 5;

impl RunContext {
    /// Opens the cassette of an attempt, if the run has cassettes and the agent is contacted. Fails if the
    /// case has no cassette to replay, or it is damaged.
    pub(super) fn open_cassette(
        &self,
        selected: &SelectedCase,
        attempt: usize,
    ) -> Result<Option<Arc<AttemptCassette>>, AttemptFailure> {
        let Some(run) = self.cassettes.as_ref().filter(|_| selected.contacts_agent()) else {
            return Ok(None);
        };
        if run.is_recording() && selected.swept_fault.is_some() {
            // Broken conversations are no recordings.
            return Ok(None);
        }
        let opened = run.open(&selected.suite_name, &selected.case, attempt).map_err(|error| {
            let failure = AttemptFailure::new(FailureKind::TestError, error.to_string());
            let help = format!("record it with `--record-cassettes {}`", run.folder().display());
            failure.with_detail(help)
        });
        opened.map(|opened| Some(Arc::new(opened)))
    }

    /// Saves what an attempt recorded. Returns a warning if its cassette stays as it was, or if a complete replay did
    /// not use all answers of roles.
    pub(super) fn close_cassette(&self, selected: &SelectedCase, is_complete: bool) -> Option<String> {
        let cassette = selected.cassette.as_ref()?;
        let saved = cassette.save(&selected.case, is_complete, self.cassettes.as_ref()?);
        if let Err(reason) = saved {
            return Some(format!("the cassette of this case was not written: {reason}"));
        }
        let unused = if is_complete { cassette.roles.unused_answers() } else { Vec::new() };
        if unused.is_empty() {
            return None;
        }
        let listed = format_first(&unused, MAX_LISTED_ANSWERS);
        Some(format!("the conversation did not use these answers of its cassette: {listed}"))
    }
}
