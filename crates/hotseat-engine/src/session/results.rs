//! Results of a conversation: evaluated checks, the opinions of judges, and the verdict.

use std::sync::Arc;
use std::time::Duration;

use hotseat_checks::{Check, CheckKind, CheckStrength};
use hotseat_document::SourceSpan;
use hotseat_trace::{CheckVerdict, EventRecord, FailureKind, TracedConversation, Verdict, optional_members};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::checkpoints::CheckpointResult;
use crate::roles;
use hotseat_targets::recorder::SecretRedactor;

/// A visit of a topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicVisitRef {
    /// The topic.
    pub topic: Arc<str>,
    /// Number of the visit among the visits of this topic, from 1.
    pub visit: usize,
}

optional_members! {
    /// Answer of a judge to one check.
    #[derive(Debug, Clone, Serialize, Deserialize)]
    pub struct JudgeOpinion {
        /// The judge's reasoning; `None` if it gave no judgement.
        pub reasoning?: Option<String>,
        /// The judge's score, if it gave one.
        pub score?: Option<f64>,
        /// Improvements that the judge suggests.
        pub suggestions?: Vec<String>,
        /// The judge and its usage.
        pub by: roles::JudgeUsage,
    }

    /// Result of a check, as it is saved.
    #[derive(Debug, Clone, Serialize, Deserialize)]
    pub struct CheckResult {
        /// The check.
        pub check: CheckInfo,
        /// Evaluated turn, from 1. `None` for the whole conversation.
        pub turn?: Option<usize>,
        /// True if it is one of the `final_assertions`.
        #[serde(default)]
        pub is_final: bool,
        /// Verdict.
        pub verdict: CheckVerdict,
        /// Reason why the check could not be evaluated, if so. It counts as not passed, and the agent is not
        /// to blame.
        pub error?: Option<String>,
        /// True if the check needs neither a judge nor a function, and what is known does not decide it. Not saved.
        #[serde(skip)]
        pub is_undecided: bool,
        /// True if no further turn can change that the check has failed. Not saved.
        #[serde(skip)]
        pub is_failed_for_good: bool,
        /// True if the check measures time. Not saved.
        #[serde(skip)]
        pub is_timing: bool,
        /// True if the check reads tool calls. Not saved.
        #[serde(skip)]
        pub reads_calls: bool,
        /// Kind of the failure that the error is. Not saved.
        #[serde(skip)]
        pub error_kind: Option<FailureKind>,
        /// Console output of the function that evaluated the check.
        pub said?: Vec<String>,
        /// Visit of the topic that makes the assertion, if it belongs to a topic.
        pub topic?: Option<TopicVisitRef>,
        /// Opinion of the judge, if a judge was asked.
        pub opinion?: Option<JudgeOpinion>,
    }

    /// Description of a check, without what evaluates it.
    #[derive(Debug, Clone, Serialize, Deserialize)]
    pub struct CheckInfo {
        /// Position in the file.
        #[serde(skip)]
        pub place: SourceSpan,
        /// Position of the call that made it, if it is inside a helper function.
        #[serde(skip)]
        pub call_site: Option<SourceSpan>,
        /// True if the check is negated.
        #[serde(default)]
        pub negated: bool,
        /// Hard or informational (soft).
        pub strength: CheckStrength,
        /// Message for users if the check fails.
        pub message?: Option<String>,
        /// The assertion as written, if the check has its own.
        pub written?: Option<Arc<Value>>,
        /// Name or text of the criterion that the check evaluates, if any.
        pub criterion?: Option<Arc<str>>,
    }
}

impl CheckResult {
    /// Returns the result of a check with a verdict.
    pub(super) fn new(check: &Check, verdict: CheckVerdict) -> Self {
        CheckResult {
            check: CheckInfo::new(check),
            turn: None,
            is_final: false,
            verdict,
            error: None,
            is_undecided: false,
            is_failed_for_good: false,
            is_timing: check.is_timing(),
            reads_calls: check.reads_calls(),
            error_kind: None,
            said: Vec::new(),
            topic: None,
            opinion: None,
        }
    }

    /// Returns true if a hard check failed because of something that the agent did and the check forbids. Time limits forbid
    /// nothing: a fault takes time.
    pub fn shows_forbidden(&self) -> bool {
        self.is_failed_for_good && !self.is_timing && self.fails() && self.error.is_none()
    }

    /// Creates the result of a check that a judge or a function has decided.
    pub(super) fn from_decision(check: &Check, holds: bool, actual: String) -> Self {
        CheckResult::new(check, CheckVerdict::new(holds != check.negated, check.describe(), actual))
    }

    /// Returns the result of a check that could not be evaluated. It does not pass, negated or not.
    pub(super) fn errored(check: &Check, words: String) -> Self {
        let first = words.lines().next().unwrap_or_default().to_string();
        let verdict = CheckVerdict::new(false, check.describe(), first);
        CheckResult::new(check, verdict).with_error(Some((check, words)))
    }

    /// Adds the reason why the check could not be evaluated, if there is one, with the check or the part of it to which the
    /// reason belongs.
    pub(super) fn with_error(self, error: Option<(&Check, String)>) -> Self {
        let (part, error) = error.unzip();
        CheckResult { error, error_kind: part.map(error_kind), ..self }
    }

    /// Returns the reason why the check could not be evaluated, and the kind of that failure.
    pub(super) fn evaluation_error(&self) -> Option<(FailureKind, &str)> {
        Some((self.error_kind?, self.error.as_deref()?))
    }

    /// True if the result makes the case fail.
    pub fn fails(&self) -> bool {
        self.check.is_hard() && !self.verdict.passed
    }

    /// State of the check. A check that could not be evaluated has neither passed nor failed.
    pub fn state(&self) -> CheckState {
        match (&self.error, self.verdict.passed) {
            (Some(_), _) => CheckState::Errored,
            (None, true) => CheckState::Passed,
            (None, false) => CheckState::Failed,
        }
    }
}

/// State of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckState {
    /// Passed.
    Passed,
    /// Failed.
    Failed,
    /// Could not be evaluated.
    Errored,
}

impl CheckInfo {
    fn new(check: &Check) -> Self {
        CheckInfo {
            place: check.place.clone(),
            call_site: check.call_site.clone(),
            negated: check.negated,
            strength: check.strength,
            message: check.message.clone(),
            written: check.definition.clone(),
            criterion: check.criterion.clone(),
        }
    }

    /// True if the check affects the verdict.
    pub fn is_hard(&self) -> bool {
        self.strength == CheckStrength::Hard
    }
}

fn error_kind(check: &Check) -> FailureKind {
    match &check.kind {
        CheckKind::Script(_) => FailureKind::ScriptError,
        CheckKind::Judged(_) => FailureKind::JudgeError,
        CheckKind::UsageBudget(_) => FailureKind::UsageError,
        _ if check.comparison_error().is_some() => FailureKind::ScriptError,
        _ => FailureKind::TestError,
    }
}

/// Result of a conversation, complete or not.
#[derive(Debug)]
pub struct ConversationResult {
    /// The verdict of the case.
    pub verdict: Verdict,
    /// All evaluated checks, in order.
    pub checks: Vec<CheckResult>,
    /// Results of the checkpoints.
    pub checkpoints: Vec<CheckpointResult>,
    /// The time limit that was exceeded, if the verdict is about one.
    pub limit: Option<Duration>,
    /// Log lines of the test itself.
    pub logs: Vec<String>,
    /// Remarks on the conversation that do not change the verdict. Those of a re-evaluation are in the saved attempt.
    pub warnings: Vec<String>,
    /// The recorded conversation.
    pub conversation: TracedConversation,
    /// The trace, if it was requested.
    pub events: Vec<EventRecord>,
    /// Secrets that were known in the conversation.
    pub redactor: SecretRedactor,
    /// Time from the first input to the end of the last turn.
    pub duration: Duration,
    /// True if the conversation reached its end. A failed check or an error ends it early.
    pub is_complete: bool,
    /// True if the times are unknown because the conversation was replayed from a recording without times.
    pub is_untimed: bool,
}
