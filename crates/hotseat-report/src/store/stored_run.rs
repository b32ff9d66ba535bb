//! Metadata and state of stored runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotseat_trace::{LabelCounts, Millis, ResultLabel, named};
use serde::{Deserialize, Serialize};

use super::GitCommit;
use crate::reporters::record::records;
use hotseat_engine::config::Project;
use hotseat_engine::run::{RunPlan, RunSettings, RunSummary, Shard};
use hotseat_targets::recorder::SecretRedactor;

/// Metadata that is stored at the start of a run. A new member needs a default, because older runs do not
/// have it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunMetadata {
    /// Settings of the run.
    pub setting: Arc<RunSettings>,
    /// Number of cases.
    pub total: usize,
    /// Maximum number of parallel conversations.
    pub parallel: usize,
    /// Version of Hotseat.
    pub hotseat: String,
    /// Working folder of the command.
    pub folder: PathBuf,
    /// Folder of the project.
    pub project: PathBuf,
    /// Command line of the run.
    pub command: Vec<String>,
    /// Digest of the selected cases; other or changed cases have another digest.
    pub cases: String,
    /// Digests of the suites with a selected case, by name. Empty in runs that an earlier version saved.
    #[serde(default)]
    pub suites: BTreeMap<String, String>,
    /// Source of the results.
    pub origin: RunOrigin,
    /// Shard of the run, if the cases were divided.
    pub shard: Option<Shard>,
    /// Number of cases in all shards together.
    pub of_all: usize,
    /// Rust test file that made the run; `None` for `hotseat test`.
    pub program: Option<String>,
}

impl RunMetadata {
    /// Describes a run of all cases of a plan, in the folder of the project, as no command line started it.
    pub fn new(project: &Project, plan: &RunPlan, setting: &Arc<RunSettings>) -> RunMetadata {
        RunMetadata {
            setting: setting.clone(),
            total: plan.selected,
            parallel: setting.choices.options.parallel,
            hotseat: env!("CARGO_PKG_VERSION").to_string(),
            folder: project.root.clone(),
            project: project.root.clone(),
            command: Vec::new(),
            cases: plan.digest.clone(),
            suites: plan.suite_digests.clone(),
            origin: RunOrigin::Held,
            shard: None,
            of_all: plan.selected_in_all_shards,
            program: None,
        }
    }

    /// Adds the command line that started the run, without its secrets, and the folder where it was typed.
    #[must_use]
    pub fn started_by(self, command: &[String], folder: &Path, redactor: &SecretRedactor) -> RunMetadata {
        let command = command.iter().map(|argument| redactor.text(argument).into_owned()).collect();
        RunMetadata { command, folder: folder.to_path_buf(), ..self }
    }
}

/// Source of the results of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunOrigin {
    /// Conversations of the run itself.
    Held,
    /// Re-evaluated conversations of another run.
    Rechecked {
        /// Id of the run with the conversations.
        of: String,
    },
    /// Several merged runs.
    Merged {
        /// Ids of the merged runs.
        of: Vec<String>,
    },
}

/// Metadata, state and counts of a stored run.
#[derive(Debug, Clone)]
pub struct StoredRun {
    /// Row number of the run.
    pub(super) number: i64,
    /// Id of the run.
    pub id: String,
    /// Start time.
    pub started_at: Millis,
    /// Metadata from the start of the run.
    pub metadata: RunMetadata,
    /// Summary, if the run has ended.
    pub summary: Option<RunSummary>,
    /// Counts of the finished cases.
    pub counts: CaseCounts,
    /// Git commit, if known.
    pub commit: Option<GitCommit>,
    /// State of the run.
    pub state: RunState,
}

records! {
    /// JSON record of a run in the list of runs.
    pub struct StoredRunRecord<'a>(run: &'a StoredRun) {
        let RunMetadata { setting, total, hotseat, command, origin, shard, .. } = &run.metadata;
        let summary = run.summary.as_ref();
    } => {
        id: &'a str = &run.id,
        state: RunState = run.state,
        started_at: Option<String> =
            jiff::Timestamp::from_millisecond(run.started_at).map(|at| at.to_string()).ok(),
        duration_ms: Option<f64> = summary.map(|summary| summary.duration.as_micros() as f64 / 1000.0),
        total: usize = *total,
        passed: usize = run.counts.passed,
        failed: usize = run.counts.failed,
        skipped: usize = run.counts.skipped,
        /// Numbers of cases by their label, if the run has ended.
        labels?: Option<&'a LabelCounts> = run.labels(),
        unfinished: usize = run.unfinished(),
        /// Cost of the run, if known, and its currency.
        cost?: Option<f64> = summary.and_then(|summary| summary.spent.as_ref()?.cost),
        currency?: Option<&'a str> = setting.currency.as_deref(),
        inputs: &'a [Arc<str>] = &setting.inputs,
        agents: Vec<&'a str> = setting.agents().map(|agent| &*agent.id).collect(),
        commit: Option<&'a str> = run.commit.as_ref().map(|commit| commit.id.as_str()),
        dirty: Option<bool> = run.commit.as_ref().map(|commit| commit.dirty),
        hotseat: &'a str = hotseat,
        shard: Option<String> = shard.map(|shard| shard.to_string()),
        origin: &'a RunOrigin = origin,
        command: &'a [String] = command,
    }
}

/// Numbers of finished cases by status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CaseCounts {
    /// Passed cases.
    pub passed: usize,
    /// Failed cases.
    pub failed: usize,
    /// Skipped cases.
    pub skipped: usize,
    /// Cases among these that were never started or were interrupted, and still have to run.
    pub left: usize,
}

named! {
    /// State of a run.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum RunState {
        /// A process is executing the run.
        Running = "running",
        /// All cases have ended.
        Ended = "ended",
        /// The run ended by itself before all cases had run, as with `--fail-fast`.
        Incomplete = "incomplete",
        /// The run was stopped early and wrote its summary.
        Interrupted = "interrupted",
        /// The process ended without a summary.
        Killed = "killed",
    }
}

impl StoredRun {
    /// Returns the id shortened for display.
    pub fn short_id(&self) -> &str {
        short_id(&self.id)
    }

    /// Returns the numbers of cases by their label. `None` before the end of the run, and in runs that an earlier version
    /// saved.
    fn labels(&self) -> Option<&LabelCounts> {
        self.summary.as_ref().map(|summary| &*summary.labels).filter(|labels| !labels.is_empty())
    }

    /// Returns the numbers of cases with their labels: `3 passed`, `1 judge error`.
    pub fn results(&self) -> Vec<String> {
        let CaseCounts { passed, failed, skipped, .. } = self.counts;
        match self.labels() {
            Some(labels) => labels.iter().map(|(label, number)| label.count(number)).collect(),
            None => [
                (ResultLabel::Passed, passed),
                (ResultLabel::Failed, failed),
                (ResultLabel::Skipped, skipped),
            ]
            .into_iter()
            .filter(|(_, number)| *number > 0)
            .map(|(label, number)| label.count(number))
            .collect(),
        }
    }

    /// Returns the number of cases that have not ended.
    pub fn unfinished(&self) -> usize {
        let CaseCounts { passed, failed, skipped, left } = self.counts;
        (self.metadata.total + left).saturating_sub(passed + failed + skipped)
    }
}

/// Shortens an id for display.
pub(super) fn short_id(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}
