//! Results of checks and attempts.

use serde::{Deserialize, Serialize};

use crate::CallComparison;

named! {
    /// Status of an attempt.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum VerdictStatus {
        /// The conversation was completed and every hard check passed.
        Passed = "passed",
        /// A hard check failed, or the conversation could not be completed.
        Failed = "failed",
        /// Not run.
        #[default]
        Skipped = "skipped",
    }
}

/// Declares the kinds of failures: each with its name in reports and the party responsible for it.
macro_rules! failure_kinds {
    ($($(#[$doc:meta])* $kind:ident: $name:literal, $fault:ident;)*) => {
        /// Reason for a failed attempt.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum FailureKind {
            $($(#[$doc])* #[serde(rename = $name)] $kind,)*
        }

        impl FailureKind {
            /// All kinds.
            pub const ALL: &[FailureKind] = &[$(FailureKind::$kind),*];

            /// The name used in reports.
            pub fn name(self) -> &'static str {
                match self {
                    $(FailureKind::$kind => $name,)*
                }
            }

            /// Returns the party responsible for this kind of failure.
            pub fn fault(self) -> ResponsibleParty {
                match self {
                    $(FailureKind::$kind => ResponsibleParty::$fault,)*
                }
            }
        }
    };
}

failure_kinds! {
    /// A check failed.
    Assertion: "assertion", Agent;
    /// The agent reported a failure or answered with an HTTP error.
    AgentError: "agent_error", Agent;
    /// The agent violated its protocol, or its output ended too early.
    ProtocolError: "protocol_error", Agent;
    /// The agent could not be reached.
    Unreachable: "unreachable", Infrastructure;
    /// The agent exceeded a time limit.
    Timeout: "timeout", Agent;
    /// The agent exceeded a size or count limit.
    Limit: "limit", Agent;
    /// A hook failed.
    HookError: "hook_error", Test;
    /// The test itself is invalid in a way that only shows at run time.
    TestError: "test_error", Test;
    /// The agent waits for input and none is available.
    NoInput: "no_input", Test;
    /// The conversation ended before a checkpoint was reached.
    MissingCheckpoints: "missing_checkpoints", Agent;
    /// The conversation reached its maximum number of turns.
    MaxTurns: "max_turns", Agent;
    /// The simulator failed or gave no usable answer.
    SimulatorError: "simulator_error", Simulator;
    /// A judge failed or gave no usable judgement.
    JudgeError: "judge_error", Judge;
    /// A function of a script failed, or returned nothing usable, where it checks or answers.
    ScriptError: "script_error", Test;
    /// The attempts do not show whether the case reaches its declared reliability.
    Inconclusive: "inconclusive", Test;
    /// A check needs token usage, and the usage is unknown.
    UsageError: "usage_error", Test;
    /// The case is re-evaluated, and no conversation is saved for it.
    NotKept: "not_kept", Infrastructure;
    /// The run was cancelled before the case ended.
    Cancelled: "cancelled", Infrastructure;
}

/// Party responsible for a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponsibleParty {
    /// The agent under test.
    Agent,
    /// The simulator.
    Simulator,
    /// A judge.
    Judge,
    /// The network, the machine, the store, or a cancelled run.
    Infrastructure,
    /// The test or its hooks.
    Test,
}

/// Failure of an attempt. Its text is the message with the detail lines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}{}", .detail.iter().flat_map(|detail| ["\n", detail]).collect::<String>())]
pub struct AttemptFailure {
    /// Kind of failure.
    pub kind: FailureKind,
    /// Responsible party.
    pub fault: ResponsibleParty,
    /// One-line message.
    pub message: String,
    /// Further lines: the body of a response, the output of a hook, the agent's last words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Calls of the script that failed, innermost first: `at total (tests/cart_test.ts:3:9)`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack_trace: Vec<String>,
}

impl AttemptFailure {
    /// Creates a failure with the default responsible party of its kind.
    pub fn new(kind: FailureKind, message: impl ToString) -> Self {
        let (message, stack_trace) = (message.to_string(), Vec::new());
        AttemptFailure { kind, fault: kind.fault(), message, detail: None, stack_trace }
    }

    /// Adds detail lines. A blank `detail` is ignored.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into()).filter(|detail| !detail.trim().is_empty());
        self
    }
}

/// Result of one check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckVerdict {
    /// True if the check passed.
    pub passed: bool,
    /// Expected value, as text.
    pub expected: String,
    /// Actual value, as text.
    pub actual: String,
    /// Expected and actual tool calls, value by value, if a check of calls failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Box<CallComparison>>,
}

impl CheckVerdict {
    /// Creates a verdict without a comparison of calls.
    pub fn new(passed: bool, expected: String, actual: String) -> Self {
        CheckVerdict { passed, expected, actual, comparison: None }
    }

    /// Describes a check that did not pass: `expected refund to be called, got no tool calls`. If it errored,
    /// `actual` is the reason.
    pub fn describe(&self, errored: bool) -> String {
        self.describe_with(errored, &self.actual)
    }

    /// Describes a check that did not pass in one line, without the rest of a longer actual value.
    pub fn describe_in_one_line(&self, errored: bool) -> String {
        if let Some(comparison) = self.comparison.as_deref().filter(|_| !errored) {
            return self.describe_with(errored, &comparison.one_line());
        }
        let mut lines = self.actual.lines().filter(|line| !line.trim().is_empty());
        let first = lines.next().unwrap_or_default();
        let rest = if lines.next().is_some() { " …" } else { "" };
        let first = first.strip_prefix("- ").unwrap_or(first).trim_end();
        self.describe_with(errored, &format!("{first}{rest}"))
    }

    fn describe_with(&self, errored: bool, actual: &str) -> String {
        let label = if errored { "error:" } else { "got" };
        format!("expected {}, {label} {actual}", self.expected)
    }
}

optional_members! {
    /// Result of an attempt, with the reason.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct Verdict {
        /// Status of the attempt.
        pub status: VerdictStatus,
        /// Reason for the failure; present if and only if `status` is [`VerdictStatus::Failed`].
        pub failure?: Option<AttemptFailure>,
        /// Reason for skipping; present if and only if `status` is [`VerdictStatus::Skipped`].
        pub skip_reason?: Option<String>,
        /// Party whose failure skipped the attempt. `None` if nothing failed.
        pub skip_fault?: Option<ResponsibleParty>,
    }
}

impl Verdict {
    /// Creates the verdict of a passed attempt.
    pub fn passed() -> Self {
        Verdict { status: VerdictStatus::Passed, failure: None, skip_reason: None, skip_fault: None }
    }

    /// Creates the verdict of a failed attempt.
    pub fn failed(failure: AttemptFailure) -> Self {
        Verdict { status: VerdictStatus::Failed, failure: Some(failure), skip_reason: None, skip_fault: None }
    }

    /// Creates the verdict of a skipped attempt.
    pub fn skipped(reason: impl Into<String>) -> Self {
        let skip_reason = Some(reason.into());
        Verdict { status: VerdictStatus::Skipped, failure: None, skip_reason, skip_fault: None }
    }
}
