//! Runs and their cases in the form that comparisons use.

use std::collections::{BTreeMap, BTreeSet};

use hotseat_trace::{LabelCounts, VerdictStatus};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
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
    pub status: VerdictStatus,
    /// Fingerprint of the user inputs and the agent context; `None` in reports of older versions.
    pub input_fingerprint: Option<String>,
    /// Fingerprint of the checks.
    pub check_fingerprint: Option<String>,
    /// Fingerprint of the script functions that judge the case; `None` if there are none.
    pub function_fingerprint: Option<String>,
    /// Fingerprint of the settings of its judges; `None` if there are none.
    pub judge_fingerprint: Option<String>,
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
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StoppingRule {
    /// Declared pass rate.
    pub rate: f64,
    /// Confidence of the decision.
    pub confidence: f64,
    /// Maximum number of attempts.
    pub max_runs: usize,
}

/// Reads a status.
pub(super) fn read_status<'de, D: Deserializer<'de>>(deserializer: D) -> Result<VerdictStatus, D::Error> {
    let name = String::deserialize(deserializer)?;
    VerdictStatus::from_name(&name).ok_or_else(|| D::Error::custom(format!("unknown status `{name}`")))
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
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(expecting = "an object")]
pub struct ReportTurn {
    /// Input of the user.
    #[serde(rename = "input")]
    pub user: Option<String>,
    /// Tool calls in the order in which they started.
    #[serde(default, rename = "tool_calls")]
    pub calls: Vec<ReportCall>,
    /// Final answer of the agent.
    #[serde(rename = "output")]
    pub answer: Option<String>,
    /// Reason why the turn did not complete.
    pub error: Option<String>,
    /// Checks, until they are counted.
    #[serde(default, rename = "assertions")]
    pub(super) checks: Vec<CheckContent>,
    /// Duration in milliseconds.
    #[serde(default)]
    pub duration_ms: f64,
    /// Set in an entry that replaces a skipped turn.
    pub(super) skip_reason: Option<String>,
}

/// Tool call.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(expecting = "an object")]
pub struct ReportCall {
    /// Name of the tool.
    #[serde(rename = "name")]
    pub tool: String,
    /// Arguments of the call.
    #[serde(default, rename = "args")]
    pub arguments: Value,
}

/// Check. In reports its result members follow those of the test file, which may have the same names: the last one
/// counts.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "BTreeMap<String, Value>")]
pub(super) struct CheckContent {
    pub passed: bool,
    pub soft: bool,
    /// True if the check was decided.
    pub decided: bool,
    /// Name: the criterion or the text of the check.
    pub name: String,
    /// The judge with its model.
    pub judge: Option<String>,
}

pub(super) fn judge_name(judge: &str, model: Option<&str>) -> String {
    model.map_or_else(|| judge.to_string(), |model| format!("{judge} ({model})"))
}

impl From<BTreeMap<String, Value>> for CheckContent {
    fn from(members: BTreeMap<String, Value>) -> Self {
        let is = |key: &str| members.get(key).and_then(Value::as_bool) == Some(true);
        let text = |key: &str| members.get(key).and_then(Value::as_str);
        let judgement = |key: &str| members.get("judgement")?.get(key)?.as_str();
        CheckContent {
            passed: is("passed"),
            soft: is("soft"),
            decided: text("error").is_none(),
            name: text("criterion").or_else(|| text("expected")).unwrap_or_default().to_string(),
            judge: judgement("judge").map(|judge| judge_name(judge, judgement("model"))),
        }
    }
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
