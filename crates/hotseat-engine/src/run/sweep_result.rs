//! Results of a sweep of faults: what the agent did after each fault, read from the traces.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use hotseat_mcp::FaultKind;
use hotseat_trace::{FailureKind, ServerCall, TracedConversation, VerdictStatus, canonical_arguments};
use serde::{Deserialize, Serialize};

use super::attempt_result::Attempt;
use super::results::CaseRef;

/// A tool call of a conversation without faults.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SweptCall {
    /// Name of the server.
    pub server: String,
    /// Name of the tool.
    pub tool: String,
    /// Number among the calls of this tool, from 1.
    pub nth: u64,
}

/// A conversation without faults.
#[derive(Debug)]
pub(super) struct CleanRun {
    /// Calls in the order in which they started.
    pub(super) calls: Vec<SweptCall>,
    /// Number of later calls, which get no fault.
    pub(super) calls_left_out: usize,
    /// True if the case injects faults itself.
    pub(super) has_faults: bool,
    /// Tools that took effect, with their arguments.
    effects: Vec<(String, String)>,
    /// Number of calls of each tool with valid arguments.
    counts: HashMap<String, usize>,
    text: String,
}

/// Behaviour of the agent after a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SweepOutcome {
    /// The tool took effect as without the fault, with no further call, and the checks passed.
    Recovered,
    /// The tool took effect as without the fault, after further calls, and the checks passed.
    CalledAgain,
    /// The tool took no effect, or a check failed, and the agent wrote another text than without the fault.
    ToldUser,
    /// The tool took no effect, and the agent wrote the same text as with the effect.
    DidNotNotice,
    /// The tool took effect more often than without the fault.
    ActedTwice,
    /// The agent failed, or a check failed although the agent did the same.
    Failed,
    /// The agent exceeded its time limit.
    Hung,
    /// The agent did not make the call.
    NotReached,
    /// The test could not decide: an answer or a role is missing.
    Error,
}

/// One conversation of a sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweepRow {
    #[serde(skip)]
    order: (usize, usize),
    /// Path of the suite.
    pub suite: String,
    /// Name of the case.
    pub case: String,
    /// Name of the server.
    pub server: String,
    /// Name of the tool.
    pub tool: String,
    /// Number among the calls of this tool.
    pub nth: u64,
    /// Name of the fault.
    pub fault: Cow<'static, str>,
    /// Behaviour of the agent.
    pub outcome: SweepOutcome,
    /// Number of calls of the tool beyond those without the fault.
    pub calls_again: usize,
    /// True if the checks of the case passed.
    pub passed: bool,
    /// Why the case failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Details of the failure, for example the answer of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// A case that was not swept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweepSkip {
    /// Path of the suite.
    pub suite: String,
    /// Name of the case.
    pub case: String,
    /// The reason.
    pub reason: Cow<'static, str>,
}

/// Result of a sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweepReport {
    /// Number of selected conversations.
    pub runs: usize,
    /// Number of combinations of calls and faults.
    pub combinations: usize,
    /// Seed of the selection.
    pub seed: u64,
    /// Number of conversations without a result, because the run was interrupted.
    pub missing: usize,
    /// The conversations: by case, then by call, then by fault.
    pub rows: Vec<SweepRow>,
    /// Cases that were not swept.
    pub skipped: Vec<SweepSkip>,
    /// Number of calls that got no fault, because their case has too many.
    #[serde(default, skip_serializing_if = "super::summary::is_zero")]
    pub calls_left_out: usize,
}

impl SweepOutcome {
    /// Reads the behaviour of the agent from a conversation with a fault. Further effects of a `harmless` tool do
    /// not count. Returns the number of further calls as well.
    pub(super) fn new(
        clean: &CleanRun,
        call: &SweptCall,
        harmless: bool,
        attempt: &Attempt,
    ) -> (SweepOutcome, usize) {
        let broken = CleanRun::new(&attempt.conversation, usize::MAX);
        // An agent may do the work again with the same tool of another server.
        let count = |run: &CleanRun| run.counts.get(&call.tool).copied().unwrap_or_default();
        let calls_again = count(&broken).saturating_sub(count(clean));
        let (before, after) = (clean.effects_of(call), broken.effects_of(call));
        let has_same_text = clean.text == broken.text;
        let passed = attempt.verdict.status == VerdictStatus::Passed;
        let outcome = match attempt.verdict.failure.as_ref().map(|failure| failure.kind) {
            _ if broken.has_faults
                && !harmless
                && (after > before || broken.repeats_effect_of(clean, call)) =>
            {
                SweepOutcome::ActedTwice
            }
            Some(FailureKind::Timeout) => SweepOutcome::Hung,
            Some(
                FailureKind::AgentError
                | FailureKind::ProtocolError
                | FailureKind::Unreachable
                | FailureKind::Limit,
            ) => SweepOutcome::Failed,
            None
            | Some(
                FailureKind::Assertion
                | FailureKind::MissingCheckpoints
                | FailureKind::MaxTurns
                | FailureKind::NoInput,
            ) => match after < before {
                _ if !broken.has_faults => SweepOutcome::NotReached,
                true if has_same_text => SweepOutcome::DidNotNotice,
                true => SweepOutcome::ToldUser,
                false if passed && calls_again > 0 => SweepOutcome::CalledAgain,
                false if passed => SweepOutcome::Recovered,
                false if has_same_text => SweepOutcome::Failed,
                false => SweepOutcome::ToldUser,
            },
            Some(_) => SweepOutcome::Error,
        };
        (outcome, calls_again)
    }

    /// True if the fault shows a defect of the agent, or the test cannot decide.
    pub fn is_bad(self) -> bool {
        match self {
            SweepOutcome::Recovered
            | SweepOutcome::CalledAgain
            | SweepOutcome::ToldUser
            | SweepOutcome::NotReached => false,
            SweepOutcome::DidNotNotice
            | SweepOutcome::ActedTwice
            | SweepOutcome::Failed
            | SweepOutcome::Hung
            | SweepOutcome::Error => true,
        }
    }
}

impl fmt::Display for SweepOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SweepOutcome::Recovered => "recovered",
            SweepOutcome::CalledAgain => "called again",
            SweepOutcome::ToldUser => "told the user",
            SweepOutcome::DidNotNotice => "did not notice",
            SweepOutcome::ActedTwice => "acted twice",
            SweepOutcome::Failed => "failed",
            SweepOutcome::Hung => "hung",
            SweepOutcome::NotReached => "not reached",
            SweepOutcome::Error => "error of the test",
        })
    }
}

impl CleanRun {
    /// Reads a conversation; of its calls the first ones.
    pub(super) fn new(conversation: &TracedConversation, max_calls: usize) -> CleanRun {
        let mut seen: Vec<&ServerCall> = conversation
            .turns
            .iter()
            .flat_map(|turn| &turn.tool_calls)
            .filter_map(|call| call.server_call.as_ref())
            .collect();
        seen.sort_by_key(|call| call.sequence);
        let mut calls: Vec<SweptCall> = Vec::new();
        let mut numbers: HashMap<(&str, &str), u64> = HashMap::new();
        // Calls with invalid arguments get no fault.
        let valid = || seen.iter().filter(|call| call.argument_errors.is_empty());
        for call in valid().take(max_calls) {
            let nth = numbers.entry((&*call.server, &*call.tool)).or_default();
            *nth += 1;
            calls.push(SweptCall { server: call.server.to_string(), tool: call.tool.to_string(), nth: *nth });
        }
        let effects = seen.iter().filter(|call| call.has_effect());
        let effects = effects.map(|call| (call.tool.to_string(), canonical_arguments(&call.arguments)));
        let mut counts: HashMap<String, usize> = HashMap::new();
        for call in valid() {
            *counts.entry(call.tool.to_string()).or_default() += 1;
        }
        let messages = conversation.turns.iter().flat_map(|turn| &turn.messages);
        CleanRun {
            calls_left_out: valid().count().saturating_sub(calls.len()),
            calls,
            has_faults: seen.iter().any(|call| !call.faults.is_empty()),
            effects: effects.collect(),
            counts,
            text: messages.map(|message| &*message.content).collect::<Vec<_>>().join("\n"),
        }
    }

    /// Number of effects of the tool of a call, at all servers.
    fn effects_of(&self, call: &SweptCall) -> usize {
        self.effects.iter().filter(|(tool, _)| *tool == call.tool).count()
    }

    /// True if the tool of a call took an effect of another conversation, with the same arguments, more often than there.
    fn repeats_effect_of(&self, other: &CleanRun, call: &SweptCall) -> bool {
        let count = |run: &CleanRun| {
            let mut counts: HashMap<String, usize> = HashMap::new();
            for (_, arguments) in run.effects.iter().filter(|(tool, _)| *tool == call.tool) {
                *counts.entry(arguments.clone()).or_default() += 1;
            }
            counts
        };
        let (before, after) = (count(other), count(self));
        before.iter().any(|(arguments, times)| after.get(arguments).is_some_and(|again| again > times))
    }
}

impl SweepSkip {
    pub(super) fn new(case: &CaseRef, reason: &'static str) -> SweepSkip {
        SweepSkip { suite: case.suite.shown.to_string(), case: case.case.name.clone(), reason: reason.into() }
    }
}

impl SweepRow {
    pub(super) fn new(
        case: &CaseRef,
        call: SweptCall,
        fault: &FaultKind,
        (outcome, calls_again): (SweepOutcome, usize),
        attempt: &Attempt,
        place: usize,
    ) -> SweepRow {
        let failure = attempt.verdict.failure.as_ref();
        SweepRow {
            order: (case.index, place),
            suite: case.suite.shown.to_string(),
            case: case.case.name.clone(),
            server: call.server,
            tool: call.tool,
            nth: call.nth,
            fault: fault.name().into(),
            outcome,
            calls_again,
            passed: attempt.verdict.status == VerdictStatus::Passed,
            message: failure.map(|failure| failure.message.clone()),
            detail: failure.and_then(|failure| failure.detail.clone()),
        }
    }

    /// The message of a failure; if the agent failed, with the last line of its details.
    pub fn failure_text(&self) -> Option<String> {
        let detail = self.detail.as_deref().filter(|_| self.outcome == SweepOutcome::Failed);
        let last = detail.and_then(|detail| detail.lines().rev().find(|line| !line.trim().is_empty()));
        let last = last.map_or_else(String::new, |line| format!(": {}", line.trim()));
        self.message.as_ref().map(|message| message.clone() + &last)
    }

    /// Position in the report: index of the case, and place among its conversations.
    pub(super) fn order(&self) -> (usize, usize) {
        self.order
    }
}

impl SweepReport {
    /// Joins the sweeps of several parts of the cases.
    pub fn joined<'a>(parts: impl Iterator<Item = &'a SweepReport>) -> Option<SweepReport> {
        parts.fold(None, |joined: Option<SweepReport>, part| {
            let Some(mut joined) = joined else { return Some(part.clone()) };
            joined.runs += part.runs;
            joined.combinations += part.combinations;
            joined.missing += part.missing;
            joined.calls_left_out += part.calls_left_out;
            joined.rows.extend_from_slice(&part.rows);
            joined.skipped.extend_from_slice(&part.skipped);
            Some(joined)
        })
    }

    /// The number of conversations with each outcome, in the order of their first appearance.
    pub fn totals(&self) -> String {
        let mut counts: Vec<(SweepOutcome, usize)> = Vec::new();
        for row in &self.rows {
            match counts.iter_mut().find(|(outcome, _)| *outcome == row.outcome) {
                Some((_, count)) => *count += 1,
                None => counts.push((row.outcome, 1)),
            }
        }
        let counts: Vec<String> =
            counts.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
        counts.join(" · ")
    }

    /// Names of the tools of the rows, with their servers if there are several.
    pub fn tool_labels(&self) -> Vec<String> {
        let has_several = self.rows.windows(2).any(|pair| pair[0].server != pair[1].server);
        let label = |row: &SweepRow| match has_several {
            true => format!("{} at {}", row.tool, row.server),
            false => row.tool.clone(),
        };
        self.rows.iter().map(label).collect()
    }

    /// Number of conversations that show a defect, or have no result.
    pub fn failures(&self) -> usize {
        self.rows.iter().filter(|row| row.outcome.is_bad()).count() + self.missing
    }
}
