//! Results of a sweep of faults: what the agent did after each fault, read from the traces.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use hotseat_document::excerpt;
use hotseat_mcp::FaultKind;
use hotseat_trace::{
    FailureKind, ServerCall, TracedConversation, VerdictStatus, canonical_arguments, named, optional_members,
};
use serde::{Deserialize, Serialize};

use super::attempt_result::Attempt;
use super::results::CaseRef;
use crate::cases::RepeatHint;
use crate::session::CheckResult;

/// Maximum length of arguments in a message.
const MAX_ARGUMENTS_CHARS: usize = 200;

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
    /// Tools that took effect.
    effects: Vec<ToolEffect>,
    /// Number of calls of each tool with valid arguments.
    counts: HashMap<String, usize>,
    text: String,
}

/// An effect of a call.
#[derive(Debug)]
struct ToolEffect {
    server: String,
    tool: String,
    /// Arguments in a canonical form.
    arguments: String,
}

/// What a conversation with a fault shows.
#[derive(Debug)]
pub(super) struct SweepFinding {
    outcome: SweepOutcome,
    /// Number of calls of the tool beyond those without the fault.
    calls_again: usize,
    /// How the effects differ from those without the fault, if that matters.
    difference: Option<String>,
}

/// Effects that matter if they are repeated: how often each tool took effect with the same arguments. A server is no part
/// of it, because an agent may do the work again at another server with a tool of the same name.
type EffectCounts<'a> = BTreeMap<(&'a str, &'a str), usize>;

named! {
    /// Behaviour of the agent after a fault.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum SweepOutcome {
        /// The tools took effect as often as without the fault, with no further call of the tool, and the checks passed.
        Recovered = "recovered",
        /// The tools took effect as often as without the fault, after further calls of the tool, and the checks passed.
        CalledAgain = "called again",
        /// The tools took effect as often as without the fault, other tools more often, and the checks passed.
        UsedAnotherTool = "used another tool",
        /// A tool took no effect, or a check failed, and the agent wrote another text than without the fault.
        ToldUser = "told the user",
        /// A tool took no effect, and the agent wrote the same text as with the effect.
        DidNotNotice = "did not notice",
        /// The tool took effect more often than without the fault, or another tool with the same arguments.
        ActedTwice = "acted twice",
        /// The agent failed, a check failed although the agent did the same, or the agent did what a check forbids.
        Failed = "failed",
        /// The agent exceeded its time limit.
        Hung = "hung",
        /// The agent did not make the call.
        NotReached = "not reached",
        /// The test could not decide: an answer or a role is missing.
        Error = "error of the test",
    }
}

optional_members! {
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
        /// How the effects differ from those without the fault, or why the case failed.
        pub message?: Option<String>,
        /// Details of the failure, for example the answer of the agent.
        pub detail?: Option<String>,
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
        pub calls_left_out?: usize,
    }
}

impl SweepFinding {
    /// Reads the behaviour of the agent from a conversation with a fault. `hint` returns what a tool of a server says about
    /// repeated calls.
    pub(super) fn new(
        clean: &CleanRun,
        call: &SweptCall,
        hint: impl Fn(&str, &str) -> RepeatHint,
        attempt: &Attempt,
    ) -> SweepFinding {
        let broken = CleanRun::new(&attempt.conversation, usize::MAX);
        // An agent may do the work again with the same tool of another server.
        let count = |run: &CleanRun| run.counts.get(&call.tool).copied().unwrap_or_default();
        let calls_again = count(&broken).saturating_sub(count(clean));
        let (before, after) = (clean.effect_counts(&hint), broken.effect_counts(&hint));
        let repeated = repeated_effect(&before, &after, call);
        let further = further_effect(&before, &after);
        let outcome = match repeated {
            Some(_) if broken.has_faults => SweepOutcome::ActedTwice,
            _ => {
                let lacks_effect =
                    broken.effects_of(call) < clean.effects_of(call) || lacks_effect(&before, &after);
                let effects = match further {
                    _ if lacks_effect => EffectChange::Fewer,
                    Some(_) => EffectChange::More,
                    None => EffectChange::None,
                };
                let has_same_text = clean.text == broken.text;
                SweepOutcome::without_repeats(broken.has_faults, effects, has_same_text, calls_again, attempt)
            }
        };
        let difference = match outcome {
            SweepOutcome::ActedTwice => repeated,
            SweepOutcome::UsedAnotherTool => further,
            SweepOutcome::Recovered | SweepOutcome::CalledAgain => other_arguments(&before, &after),
            _ => None,
        };
        SweepFinding { outcome, calls_again, difference }
    }
}

/// Describes an effect that the tool of a call, or another tool with the same arguments, took more often than before.
fn repeated_effect(before: &EffectCounts<'_>, after: &EffectCounts<'_>, call: &SweptCall) -> Option<String> {
    let of_tool = |effects| count_by_tool(effects).get(&*call.tool).copied().unwrap_or_default();
    let (once, again) = (of_tool(before), of_tool(after));
    if again > once {
        return Some(format!("{} took effect {again} times, without the fault {once}", call.tool));
    }
    before.iter().find_map(|(effect @ (tool, arguments), once)| {
        let again = after.get(effect).filter(|again| *again > once)?;
        let arguments = excerpt(arguments, MAX_ARGUMENTS_CHARS);
        Some(format!("{tool}({arguments}) took effect {again} times, without the fault {once}"))
    })
}

/// Describes an effect of a tool that took effect more often than before. The tool may do the same work in another way, or only read
/// without saying so, so this is no defect by itself.
fn further_effect(before: &EffectCounts<'_>, after: &EffectCounts<'_>) -> Option<String> {
    let (once, again) = (count_by_tool(before), count_by_tool(after));
    let is_further = |tool: &str| again.get(tool) > once.get(tool);
    let (tool, arguments) =
        after.keys().find(|effect| !before.contains_key(*effect) && is_further(effect.0))?;
    let arguments = excerpt(arguments, MAX_ARGUMENTS_CHARS);
    Some(format!("{tool}({arguments}) took effect only with the fault"))
}

/// Describes an effect with other arguments than before. They may have a generated identifier, so this is no defect by itself.
fn other_arguments(before: &EffectCounts<'_>, after: &EffectCounts<'_>) -> Option<String> {
    let gone = before.keys().filter(|effect| !after.contains_key(*effect));
    let gone: BTreeMap<&str, &str> = gone.copied().collect();
    let (tool, now) =
        after.keys().find(|effect| !before.contains_key(*effect) && gone.contains_key(effect.0))?;
    let [now, then] = [*now, gone[tool]].map(|arguments| excerpt(arguments, MAX_ARGUMENTS_CHARS));
    Some(format!("{tool} took effect with {now}, without the fault with {then}"))
}

/// True if a tool took effect less often than before.
fn lacks_effect(before: &EffectCounts<'_>, after: &EffectCounts<'_>) -> bool {
    let after = count_by_tool(after);
    count_by_tool(before).iter().any(|(tool, count)| after.get(tool).is_none_or(|now| now < count))
}

fn count_by_tool<'a>(effects: &EffectCounts<'a>) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    for ((tool, _), count) in effects {
        *counts.entry(*tool).or_default() += count;
    }
    counts
}

/// How the effects with a fault differ from those without it.
#[derive(Debug, Clone, Copy)]
enum EffectChange {
    None,
    /// A tool took effect less often.
    Fewer,
    /// A tool took effect more often, and none less often.
    More,
}

impl SweepOutcome {
    /// Returns the behaviour of an agent that repeated no effect.
    fn without_repeats(
        was_reached: bool,
        effects: EffectChange,
        has_same_text: bool,
        calls_again: usize,
        attempt: &Attempt,
    ) -> SweepOutcome {
        let passed = attempt.verdict.status == VerdictStatus::Passed;
        match attempt.verdict.failure.as_ref().map(|failure| failure.kind) {
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
            ) => match effects {
                // No text excuses what a check forbids. An agent that could not act may miss what a check requires.
                _ if attempt.checks.iter().any(CheckResult::shows_forbidden) => SweepOutcome::Failed,
                _ if !was_reached => SweepOutcome::NotReached,
                EffectChange::Fewer if has_same_text => SweepOutcome::DidNotNotice,
                EffectChange::Fewer => SweepOutcome::ToldUser,
                EffectChange::More if passed => SweepOutcome::UsedAnotherTool,
                EffectChange::None if passed && calls_again > 0 => SweepOutcome::CalledAgain,
                EffectChange::None if passed => SweepOutcome::Recovered,
                EffectChange::More | EffectChange::None if has_same_text => SweepOutcome::Failed,
                EffectChange::More | EffectChange::None => SweepOutcome::ToldUser,
            },
            Some(_) => SweepOutcome::Error,
        }
    }

    /// True if the fault shows a defect of the agent, or the test cannot decide.
    pub fn is_bad(self) -> bool {
        match self {
            SweepOutcome::Recovered
            | SweepOutcome::CalledAgain
            | SweepOutcome::UsedAnotherTool
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
        let effects = seen.iter().filter(|call| call.has_effect()).map(|call| ToolEffect {
            server: call.server.to_string(),
            tool: call.tool.to_string(),
            arguments: canonical_arguments(&call.arguments),
        });
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
        self.effects.iter().filter(|effect| effect.tool == call.tool).count()
    }

    /// Counts the effects that matter if they are repeated.
    fn effect_counts(&self, hint: impl Fn(&str, &str) -> RepeatHint) -> EffectCounts<'_> {
        let mut counts = EffectCounts::new();
        let mut hints = HashMap::new();
        for ToolEffect { server, tool, arguments } in &self.effects {
            match hints.entry((server, tool)).or_insert_with(|| hint(server, tool)) {
                RepeatHint::ReadOnly => {}
                RepeatHint::Idempotent => _ = counts.insert((tool, arguments), 1),
                RepeatHint::None => *counts.entry((tool, arguments)).or_default() += 1,
            }
        }
        counts
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
        SweepFinding { outcome, calls_again, difference }: SweepFinding,
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
            message: difference.or_else(|| failure.map(|failure| failure.message.clone())),
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

    /// True if no conversation had a fault.
    pub(super) fn injected_nothing(&self) -> bool {
        self.missing == 0 && self.rows.iter().all(|row| row.outcome == SweepOutcome::NotReached)
    }

    /// Number of conversations that show a defect, or have no result.
    pub fn failures(&self) -> usize {
        self.rows.iter().filter(|row| row.outcome.is_bad()).count() + self.missing
    }
}
