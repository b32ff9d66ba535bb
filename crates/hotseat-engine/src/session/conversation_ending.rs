//! The end of a conversation.

use hotseat_trace::{AttemptFailure, FailureKind, ResponsibleParty, Verdict};

#[derive(Debug)]
pub(super) enum ConversationEnding {
    /// Regular end.
    Completed,
    /// The case is skipped.
    Skipped(SkipReason),
    /// The conversation cannot continue, or a hard check failed.
    Failed(AttemptFailure),
}

/// Failure of an attempt that was cancelled.
pub(crate) fn cancelled_failure() -> AttemptFailure {
    AttemptFailure::new(FailureKind::Cancelled, "the attempt was cancelled before it finished")
}

/// Why a conversation that had started is skipped.
#[derive(Debug, Clone)]
pub(super) struct SkipReason {
    pub text: String,
    /// Party whose failure is the reason.
    pub fault: Option<ResponsibleParty>,
}

impl SkipReason {
    /// Returns the reason of a skipped attempt.
    pub(super) fn from_verdict(verdict: &Verdict) -> Option<SkipReason> {
        let fault = verdict.skip_fault;
        verdict.skip_reason.clone().map(|text| SkipReason { text, fault })
    }

    pub(super) fn into_verdict(self) -> Verdict {
        Verdict { skip_fault: self.fault, ..Verdict::skipped(self.text) }
    }
}

impl From<String> for SkipReason {
    fn from(text: String) -> SkipReason {
        SkipReason { text, fault: None }
    }
}

impl From<AttemptFailure> for SkipReason {
    fn from(failure: AttemptFailure) -> SkipReason {
        SkipReason { text: failure.message, fault: Some(failure.fault) }
    }
}
