//! Results of a conversation: evaluated checks, the opinions of judges, and the verdict.

use std::sync::Arc;
use std::time::Duration;

use hotseat_checks::Check;
use hotseat_trace::{CheckVerdict, EventRecord, TracedConversation, Verdict};
use serde::{Deserialize, Serialize};

use super::checkpoints::CheckpointProgress;
use crate::roles;

/// An evaluated check and its result.
#[derive(Debug, Clone)]
pub struct EvaluatedCheck {
    /// The check.
    pub check: Check,
    /// The evaluated turn, from 1; `None` for the whole conversation.
    pub turn: Option<usize>,
    /// True if the check is listed under `final_assertions`.
    pub is_final: bool,
    /// The verdict.
    pub verdict: CheckVerdict,
    /// The reason why the check errored. An errored check does not pass, and the agent is not at fault.
    pub error: Option<String>,
    /// Lines that the check function wrote to `console`.
    pub console_lines: Vec<String>,
    /// The topic visit that the check belongs to, for checks of topics.
    pub topic: Option<TopicVisitRef>,
    /// The opinion of the judge, for checks that ask one.
    pub opinion: Option<JudgeOpinion>,
}

/// A visit of a topic.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TopicVisitRef {
    /// The topic.
    pub topic: Arc<str>,
    /// Number of the visit among the visits of this topic, from 1.
    pub visit: usize,
}

/// Answer of a judge to one check.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct JudgeOpinion {
    /// The judge's reasoning; `None` if it gave no judgement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// The judge's score, if it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Improvements that the judge suggests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<String>,
    /// The judge and its usage.
    pub by: roles::JudgeUsage,
}

impl EvaluatedCheck {
    /// Returns the result of a check that could not be evaluated.
    pub(super) fn errored(check: Check, words: &str) -> EvaluatedCheck {
        let (expected, actual) = (check.describe(), words.to_string());
        let verdict = CheckVerdict::new(false, expected, actual);
        EvaluatedCheck {
            check,
            turn: None,
            is_final: false,
            verdict,
            error: Some(words.to_string()),
            console_lines: Vec::new(),
            topic: None,
            opinion: None,
        }
    }

    /// Returns true if this check makes the case fail: it is hard and did not pass.
    pub fn is_hard_failure(&self) -> bool {
        self.check.is_hard() && !self.verdict.passed
    }
}

/// Result of a conversation, complete or not.
#[derive(Debug)]
pub struct ConversationResult {
    /// The verdict of the case.
    pub verdict: Verdict,
    /// All evaluated checks, in order.
    pub checks: Vec<EvaluatedCheck>,
    /// Progress of the checkpoints.
    pub checkpoints: Vec<CheckpointProgress>,
    /// The time limit that was exceeded, if the verdict is about one.
    pub limit: Option<Duration>,
    /// Log lines of the test itself.
    pub logs: Vec<String>,
    /// The recorded conversation.
    pub conversation: TracedConversation,
    /// The trace, if it was requested.
    pub events: Vec<EventRecord>,
    /// Time from the first input to the end of the last turn.
    pub duration: Duration,
    /// True if the conversation reached its end. A failed check or an error ends it early.
    pub is_complete: bool,
    /// True if the times are unknown because the conversation was replayed from a recording without times.
    pub is_untimed: bool,
}
