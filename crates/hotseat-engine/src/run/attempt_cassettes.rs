//! Cassettes of attempts: opened before a conversation, and saved after it.

use std::sync::Arc;

use hotseat_trace::{AttemptFailure, FailureKind, Verdict};

use super::cassettes::AttemptCassette;
use super::context::RunContext;
use super::plan::SelectedCase;

impl RunContext {
    /// Opens the cassette of an attempt, if the run has cassettes and the agent is contacted.
    ///
    /// # Errors
    /// If the case has no cassette to replay.
    pub(super) fn open_cassette(
        &self,
        selected: &SelectedCase,
        attempt: usize,
    ) -> Result<Option<Arc<AttemptCassette>>, AttemptFailure> {
        let contacts = selected.agent.as_ref().is_some_and(|agent| !agent.is_replayed());
        let Some(run) = self.cassettes.as_ref().filter(|_| contacts) else { return Ok(None) };
        if run.is_recording() && selected.swept_fault.is_some() {
            // Broken conversations are no recordings.
            return Ok(None);
        }
        let opened = run.open(&selected.suite_name, &selected.case, attempt).map_err(|message| {
            let failure = AttemptFailure::new(FailureKind::TestError, format!("no cassette: {message}"));
            let help = format!("record it with `--record-cassettes {}`", run.folder().display());
            failure.with_detail(help)
        });
        opened.map(|opened| Some(Arc::new(opened)))
    }

    /// Saves what an attempt recorded. Returns a warning if its cassette stays as it was.
    pub(super) fn save_cassette(&self, selected: &SelectedCase, verdict: &Verdict) -> Option<String> {
        let saved = selected.cassette.as_ref()?.save(&selected.case, verdict, self.cassettes.as_ref()?);
        saved.err().map(|reason| format!("the cassette of this case was not written: {reason}"))
    }
}
