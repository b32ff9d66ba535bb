//! Runs and their cases in the form that comparisons use.

use std::collections::{BTreeMap, BTreeSet};

use hotseat_trace::LabelCounts;
use serde_json::Value;

/// Run to compare.
#[derive(Debug, Default)]
pub struct ReportRun {
    /// Name for display: a file or the id of a run.
    pub label: String,
    /// Start time, as in the report.
    pub started_at: Option<String>,
    /// Tested agents.
    pub agent: Option<String>,
    /// Language models of the agents, as configured.
    pub connector: Option<String>,
    /// True if the run was interrupted, or its report is truncated.
    pub is_incomplete: bool,
    /// Cases in order.
    pub cases: Vec<ReportCase>,
}

/// Case of a run.
#[derive(Debug, Default)]
pub struct ReportCase {
    /// Id of the case.
    pub id: String,
    /// Name of the case.
    pub name: String,
    /// Suite file.
    pub file: String,
    /// Status of the case.
    pub status: CaseStatus,
    /// Fingerprint of the user inputs and the agent context; `None` in reports of older versions.
    pub input_fingerprint: Option<String>,
    /// Fingerprint of the checks.
    pub check_fingerprint: Option<String>,
    /// Judges that were used in the case.
    pub judges: BTreeSet<String>,
    /// Valid attempts in order. Of a retried case only the first one, because the others were made only after
    /// its failure.
    pub attempts: Vec<ReportAttempt>,
    /// Number of invalid attempts.
    pub invalid: usize,
    /// Labels of the invalid attempts, as far as the report has them.
    pub invalid_labels: LabelCounts,
    /// Rule by which results decided the number of attempts; `None` if the number was fixed.
    pub stopping: Option<StoppingRule>,
}

/// Declared reliability: attempts are repeated until it is decided.
#[derive(Debug, Clone, Copy, PartialEq, serde::Deserialize)]
pub struct StoppingRule {
    /// Declared pass rate.
    pub rate: f64,
    /// Confidence of the decision.
    pub confidence: f64,
    /// Maximum number of attempts.
    pub max_runs: usize,
}

/// Status of a case or an attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CaseStatus {
    /// Passed.
    Passed,
    /// Failed.
    Failed,
    /// Not run, or without input for the agent.
    #[default]
    Skipped,
}

/// Attempt at a case.
#[derive(Debug, Default)]
pub struct ReportAttempt {
    /// Number of the attempt, from 1.
    pub number: usize,
    /// True if it passed.
    pub passed: bool,
    /// Reason of the failure in one line.
    pub error: Option<String>,
    /// Countable values of the attempt.
    pub figures: AttemptFigures,
    /// Informational checks by their text: the number of decided ones and the number of passed ones.
    pub soft: BTreeMap<String, (usize, usize)>,
    /// Turns of the conversation. Loaded only for attempts that may be displayed.
    pub turns: Vec<ReportTurn>,
}

/// Countable values of an attempt.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AttemptFigures {
    /// Duration of all turns in seconds.
    pub seconds: f64,
    /// Number of turns.
    pub turns: usize,
    /// Number of calls by tool.
    pub tools: BTreeMap<String, usize>,
    /// Number of tokens, if known.
    pub tokens: Option<f64>,
    /// Cost, if known.
    pub cost: Option<f64>,
}

/// Turn of a conversation.
#[derive(Debug, Default, PartialEq)]
pub struct ReportTurn {
    /// Input of the user.
    pub user: Option<String>,
    /// Tool calls in the order in which they started.
    pub calls: Vec<ReportCall>,
    /// Final answer of the agent.
    pub answer: Option<String>,
    /// Reason why the turn did not complete.
    pub error: Option<String>,
}

/// Tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportCall {
    /// Name of the tool.
    pub tool: String,
    /// Arguments of the call.
    pub arguments: Value,
}

impl ReportCase {
    /// Returns the number of passed attempts.
    pub fn passed_attempts(&self) -> usize {
        self.attempts.iter().filter(|attempt| attempt.passed).count()
    }

    /// Returns the name for display.
    pub fn label(&self) -> &str {
        if self.name.is_empty() { &self.id } else { &self.name }
    }
}
