//! What a check and an attempt came to.

use serde::{Deserialize, Serialize};

/// What an attempt came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The conversation was held and every hard check holds.
    Passed,
    /// A hard check does not hold, or the conversation could not be held.
    Failed,
    /// Not run.
    Skipped,
}

impl Status {
    /// The name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Status::Passed => "passed",
            Status::Failed => "failed",
            Status::Skipped => "skipped",
        }
    }
}

/// Why an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// A check does not hold.
    Assertion,
    /// The agent said that it failed, or answered with an HTTP error.
    AgentError,
    /// What the agent sent is not what its protocol allows, or ended too early.
    ProtocolError,
    /// The agent could not be reached.
    Unreachable,
    /// The agent did not end in time.
    Timeout,
    /// The agent sent or did more than it may.
    Limit,
    /// A hook failed.
    HookError,
    /// The test itself is wrong in a way that shows only when it runs.
    TestError,
    /// The agent waits for an input, and there is none.
    NoInput,
    /// The conversation is over, and a checkpoint was not reached.
    MissingCheckpoints,
    /// The conversation has gone on for as many turns as it may.
    MaxTurns,
    /// Whoever simulates the user could not be asked, or said nothing of use.
    SimulatorError,
    /// A judge could not be asked, or gave no judgement.
    JudgeError,
    /// A function of a script that judges failed, or gave no judgement.
    ScriptError,
    /// The runs of the case do not tell whether it is as reliable as declared.
    Inconclusive,
    /// What was spent is not known, and a check is about it.
    UsageError,
    /// The case is to be decided again, and no conversation is kept that is one of it.
    NotKept,
    /// The run was cancelled before the case ended.
    Cancelled,
}

impl FailureKind {
    /// The name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            FailureKind::Assertion => "assertion",
            FailureKind::AgentError => "agent_error",
            FailureKind::ProtocolError => "protocol_error",
            FailureKind::Unreachable => "unreachable",
            FailureKind::Timeout => "timeout",
            FailureKind::Limit => "limit",
            FailureKind::HookError => "hook_error",
            FailureKind::TestError => "test_error",
            FailureKind::NoInput => "no_input",
            FailureKind::MissingCheckpoints => "missing_checkpoints",
            FailureKind::MaxTurns => "max_turns",
            FailureKind::SimulatorError => "simulator_error",
            FailureKind::JudgeError => "judge_error",
            FailureKind::ScriptError => "script_error",
            FailureKind::Inconclusive => "inconclusive",
            FailureKind::UsageError => "usage_error",
            FailureKind::NotKept => "not_kept",
            FailureKind::Cancelled => "cancelled",
        }
    }

    /// Whose fault such a failure is.
    pub fn fault(self) -> Fault {
        match self {
            FailureKind::Assertion
            | FailureKind::AgentError
            | FailureKind::ProtocolError
            | FailureKind::MissingCheckpoints
            | FailureKind::MaxTurns
            | FailureKind::Limit
            | FailureKind::Timeout => Fault::Agent,
            FailureKind::SimulatorError => Fault::Simulator,
            FailureKind::JudgeError => Fault::Judge,
            FailureKind::Unreachable | FailureKind::NotKept | FailureKind::Cancelled => Fault::Infrastructure,
            FailureKind::HookError
            | FailureKind::Inconclusive
            | FailureKind::NoInput
            | FailureKind::ScriptError
            | FailureKind::UsageError
            | FailureKind::TestError => Fault::Test,
        }
    }
}

/// Whose fault a failure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The agent under test.
    Agent,
    /// Whoever simulates the user.
    Simulator,
    /// A judge.
    Judge,
    /// The network, the machine, the store, the person who pressed Ctrl-C.
    Infrastructure,
    /// The test or its hooks.
    Test,
}

/// Why an attempt failed, in words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// What kind of failure it is.
    pub kind: FailureKind,
    /// Whose fault it is.
    pub fault: Fault,
    /// One line for people.
    pub message: String,
    /// More lines: the answer's body, a hook's output, the agent's last words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl Failure {
    /// A failure of this kind, with the fault that goes with it.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Failure { kind, fault: kind.fault(), message: message.into(), detail: None }
    }

    /// The same failure with more lines of detail; nothing is added when `detail` is blank.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into()).filter(|detail| !detail.trim().is_empty());
        self
    }
}

/// What one check came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckVerdict {
    /// Whether it holds.
    pub passed: bool,
    /// What was asked for, in words.
    pub expected: String,
    /// What was found, in words.
    pub actual: String,
}

/// What an attempt came to, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// What it came to.
    pub status: Status,
    /// Why it failed; present exactly when `status` is [`Status::Failed`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Why it was not run; present exactly when `status` is [`Status::Skipped`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_reason: Option<String>,
}

impl Verdict {
    /// The conversation was held and every hard check holds.
    pub fn passed() -> Self {
        Verdict { status: Status::Passed, failure: None, skip_reason: None }
    }

    /// It failed, for this reason.
    pub fn failed(failure: Failure) -> Self {
        Verdict { status: Status::Failed, failure: Some(failure), skip_reason: None }
    }

    /// It was not run, for this reason.
    pub fn skipped(reason: impl Into<String>) -> Self {
        Verdict { status: Status::Skipped, failure: None, skip_reason: Some(reason.into()) }
    }
}
