//! The result of one attempt at one case.

use std::collections::BTreeMap;
use std::ops::{Deref, Range};
use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::{
    AttemptFailure, CallVisibility, EventRecord, Millis, TracedConversation, Verdict, VerdictStatus,
    optional_members,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::mode::ConversationMode;
use super::results::CaseRef;
use crate::session::{CheckResult, CheckpointResult, ConversationResult};
use hotseat_targets::recorder::{SecretRedactor, wall_millis};

/// One attempt at a case, with its result and the recorded conversation.
#[derive(Debug)]
pub struct Attempt {
    /// The case.
    pub case_ref: Arc<CaseRef>,
    /// Number of the attempt within its case, from 1.
    pub number: usize,
    /// Everything else that is saved beside the trace.
    pub result: AttemptResult,
    /// The conversation.
    pub conversation: TracedConversation,
    /// The trace. Empty unless events are retained.
    pub events: Vec<EventRecord>,
    /// Secrets that were known during the attempt, also those of its hooks. Only digests of them are saved.
    pub redactor: SecretRedactor,
}

optional_members! {
    /// Result of an attempt, as it is saved.
    #[derive(Debug, Serialize, Deserialize)]
    pub struct AttemptResult {
        /// Verdict of the attempt.
        pub verdict: Verdict,
        /// Results of all evaluated checks, in order.
        pub checks?: Vec<CheckResult>,
        /// Results of the checkpoints.
        pub checkpoints?: Vec<CheckpointResult>,
        /// The exceeded time limit, if the verdict is a timeout.
        pub limit?: Option<Duration>,
        /// Problems that do not change the verdict, such as a failed `after` hook.
        pub warnings?: Vec<String>,
        /// Console output of script functions that ran before or after the conversation.
        pub logs?: Vec<String>,
        /// Start time.
        pub started_at: Millis,
        /// Duration, including hooks.
        pub duration: Duration,
        /// Variables returned by hooks, with secrets redacted.
        #[serde(rename = "given")]
        pub hook_variables?: BTreeMap<String, Value>,
        /// True if the conversation was replayed from a recording without timestamps.
        #[serde(rename = "timeless")]
        pub lacks_timestamps?: bool,
        /// True if nothing could show the tool calls of the agent.
        pub hides_calls?: bool,
        /// Diagnostic output of the agent, such as the end of its standard error, with secrets redacted.
        #[serde(rename = "last_words")]
        pub agent_diagnostics?: Option<String>,
    }
}

impl Deref for Attempt {
    type Target = AttemptResult;

    fn deref(&self) -> &AttemptResult {
        &self.result
    }
}

impl Attempt {
    /// Creates an attempt that never ran.
    pub(super) fn not_started(selected: Arc<CaseRef>, number: usize, verdict: Verdict) -> Self {
        let result = AttemptResult {
            verdict,
            checks: Vec::new(),
            checkpoints: Vec::new(),
            limit: None,
            warnings: Vec::new(),
            logs: Vec::new(),
            started_at: wall_millis(),
            duration: Duration::ZERO,
            hook_variables: BTreeMap::new(),
            lacks_timestamps: false,
            hides_calls: false,
            agent_diagnostics: None,
        };
        let conversation = TracedConversation::default();
        let redactor = SecretRedactor::default();
        Attempt { case_ref: selected, number, result, conversation, events: Vec::new(), redactor }
    }

    pub(super) fn failed(mut self, failure: AttemptFailure) -> Self {
        self.result.verdict = Verdict::failed(failure);
        self
    }

    /// Appends the agent's diagnostic output to the failure detail, unless it is already there.
    pub(super) fn append_agent_diagnostics(&mut self) {
        let (Some(failure), Some(words)) = (&mut self.result.verdict.failure, &self.result.agent_diagnostics)
        else {
            return;
        };
        if failure.detail.as_ref().is_some_and(|detail| detail.ends_with(words)) {
            return;
        }
        let detail = failure.detail.take().map_or_else(String::new, |detail| detail + "\n");
        failure.detail = Some(detail + words);
    }

    /// Copies the result of a conversation into the attempt.
    pub(super) fn apply_result(&mut self, result: ConversationResult) {
        let own = &mut self.result;
        own.verdict = result.verdict;
        own.checks = result.checks;
        own.checkpoints = result.checkpoints;
        own.limit = result.limit;
        own.logs.extend(result.logs);
        own.warnings.extend(result.warnings);
        own.lacks_timestamps = result.is_untimed;
        own.hides_calls = result.conversation.call_visibility == CallVisibility::Hidden;
        (self.conversation, self.events) = (result.conversation, result.events);
        self.redactor = result.redactor;
    }

    /// Numbers of the written turns that were not sent: after a failure or a limit, or with `on_complete: stop`. Empty
    /// for a case that was skipped before its first turn.
    pub fn turns_not_run(&self) -> Range<usize> {
        let (sent, written) = (self.conversation.turns.len(), self.case_ref.case.turns);
        let is_skipped = sent == 0 && self.verdict.status == VerdictStatus::Skipped;
        if is_skipped { 0..0 } else { sent + 1..written + 1 }
    }

    /// Mode of the actual conversation. Answers by a human can turn a single-turn case into a multi-turn one.
    pub fn mode(&self) -> ConversationMode {
        match self.case_ref.case.mode {
            ConversationMode::Standard if self.conversation.turns.len() > 1 => ConversationMode::MultiTurn,
            mode => mode,
        }
    }
}
