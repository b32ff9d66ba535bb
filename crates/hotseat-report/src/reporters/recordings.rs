//! `--record DIR`: a file with the actions of the agent for each case, for replay.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::Reporter;
use super::record::rfc3339;
use hotseat_engine::run::{CaseOutcome, RunSettings};
use hotseat_targets::recording::{self, AgentRecording, suite_name};
use hotseat_trace::ResponsibleParty;

/// Reporter that writes a recording of each executed case.
pub struct RecordingsReporter {
    folder: PathBuf,
    project: PathBuf,
    setting: Arc<RunSettings>,
}

impl RecordingsReporter {
    /// Creates a reporter that writes to a folder, which is created if needed. Names of suites are relative
    /// to the folder `project`. Fails if the folder is not writable.
    pub fn open(folder: PathBuf, project: PathBuf, setting: Arc<RunSettings>) -> io::Result<Self> {
        std::fs::create_dir_all(&folder)?;
        // Detects an unwritable folder before any agent is called.
        tempfile::tempfile_in(&folder)?;
        Ok(RecordingsReporter { folder, project, setting })
    }
}

impl Reporter for RecordingsReporter {
    fn report_case(&mut self, outcome: &CaseOutcome) -> io::Result<()> {
        let attempt = outcome.representative();
        let turns = recording::turns_of(&attempt.events, &attempt.conversation);
        // If the case did not run or the agent was not reached, an earlier recording is kept. An agent that only
        // answered with an error replaces it: a replay of the earlier one would pass.
        let failed = attempt.verdict.failure.as_ref();
        let by_agent = failed.is_some_and(|failure| failure.fault == ResponsibleParty::Agent);
        let silent = turns.iter().all(|turn| turn.events.is_empty());
        if turns.is_empty() || (silent && !by_agent) {
            return Ok(());
        }
        let selected = &attempt.case_ref;
        let recording = AgentRecording {
            suite: Some(suite_name(&self.project, &selected.suite.path)),
            case: selected.case.id.clone(),
            agent: self.setting.agent_of_case(selected).and_then(|agent| agent.name.clone()),
            recorded_at: Some(rfc3339(attempt.started_at)),
            hides_calls: attempt.conversation.unseen_calls().is_some(),
            secrets: attempt.redactor.digests(&serde_json::to_string(&attempt.events)?),
            turns,
        };
        recording::write(&self.folder, &recording)
    }
}
