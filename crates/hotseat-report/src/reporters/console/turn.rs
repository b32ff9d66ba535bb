//! Lines for one turn, independent of the kind of tree.

use std::borrow::Cow;

use hotseat_trace::{
    AgentToolCall, ConversationTurn, FailureKind, RoleAnswered, TopicStep, TurnItem, format_count,
};
use serde_json::Value;

use super::options::TextStyle;
use hotseat_engine::run::Attempt;
use hotseat_engine::session::CheckResult;
use hotseat_targets::message::ATTACHMENT_NOTE_PREFIX;

/// How many lines of what happened in a turn are shown without `--verbose`.
const MAX_LINES: usize = 100;
/// Number of characters that no line exceeds without `--verbose`.
const MAX_LINE_CHARS: usize = 10_000;

/// Amount of detail for a turn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DetailLevel {
    /// Tool calls and the answer of the agent.
    Brief,
    /// Everything.
    Full,
}

/// Line of a tree that is not yet cut to the available width.
pub(super) struct TreeLine {
    /// Mark before the text.
    pub mark: Option<(&'static str, TextStyle)>,
    pub tone: Option<TextStyle>,
    pub text: String,
    /// True if the text may take several lines.
    pub is_wrapped: bool,
}

impl TreeLine {
    pub(super) fn plain(words: String) -> Self {
        TreeLine { mark: None, tone: None, text: words, is_wrapped: false }
    }

    fn toned(tone: TextStyle, words: String) -> Self {
        TreeLine { mark: None, tone: Some(tone), text: words, is_wrapped: false }
    }

    /// Creates a line for a check or a checkpoint.
    pub(super) fn marked(mark: &'static str, tone: TextStyle, words: String) -> Self {
        TreeLine { mark: Some((mark, tone)), tone: None, text: words, is_wrapped: false }
    }
}

/// Returns true if this turn passed on its own, regardless of the case verdict.
pub(in crate::reporters) fn passed(turn: &ConversationTurn, attempt: &Attempt) -> bool {
    if attempt.checks.iter().any(|checked| checked.turn == Some(turn.number) && checked.fails()) {
        return false;
    }
    let is_last = turn.number == attempt.conversation.turns.len();
    let Some(failure) = attempt.verdict.failure.as_ref().filter(|_| is_last) else { return true };
    match failure.kind {
        // Without a failed check, the end of the turn itself caused the failure.
        FailureKind::Assertion => attempt.checks.iter().any(CheckResult::fails),
        // These failures are detected after the turn.
        FailureKind::MissingCheckpoints
        | FailureKind::MaxTurns
        | FailureKind::NoInput
        | FailureKind::SimulatorError
        | FailureKind::JudgeError
        | FailureKind::Inconclusive
        | FailureKind::NotKept
        | FailureKind::ScriptError
        | FailureKind::UsageError => true,
        FailureKind::AgentError
        | FailureKind::ProtocolError
        | FailureKind::Unreachable
        | FailureKind::Timeout
        | FailureKind::Limit
        | FailureKind::HookError
        | FailureKind::TestError
        | FailureKind::Cancelled => false,
    }
}

/// Returns the source of an input, if the conversation mixes written and other inputs.
pub(super) fn input_label(turn: &ConversationTurn, attempt: &Attempt) -> &'static str {
    let written = &attempt.case_ref.case;
    match &*turn.caller {
        "simulator" => "[Simulated] ",
        "person" => "[Typed] ",
        _ if turn.number == 1 && (written.simulator.is_some() || written.interactive) => "[Initial] ",
        _ => "",
    }
}

/// Formats the attachments of the input: `+ [receipt.jpg]`.
pub(super) fn attachment_names(turn: &ConversationTurn) -> String {
    let names: Vec<&str> =
        turn.notes.iter().filter_map(|note| note.strip_prefix(ATTACHMENT_NOTE_PREFIX)).collect();
    if names.is_empty() { String::new() } else { format!("+ [{}]", names.join(", ")) }
}

/// Formats a call, in full detail with its result.
fn call_text(call: &AgentToolCall, detail: DetailLevel) -> String {
    let arguments = match &call.arguments {
        Value::Null => Cow::Borrowed(""),
        arguments => Cow::Owned(arguments.to_string()),
    };
    let result = match (&call.result, detail) {
        (Some(_), DetailLevel::Brief) => String::new(),
        (Some(result), DetailLevel::Full) if result.failed => format!(" → failed: {}", result.text()),
        (Some(result), DetailLevel::Full) => format!(" → {}", result.text()),
        (None, _) => " → no result".to_string(),
    };
    format!("Agent: [tool: {}({arguments}){}]{result}", call.name, call.server_label())
}

/// Returns lines for the events of a turn in their order. With `without_answer`, the last message is left
/// out. With `is_short`, the lines are those of [`shortened`], and texts are only as long as a line can be.
pub(super) fn event_lines(
    turn: &ConversationTurn,
    detail: DetailLevel,
    without_answer: bool,
    is_short: bool,
) -> Vec<TreeLine> {
    let answer = turn.messages.last().map(|message| message.sequence);
    let mut told = Vec::new();
    let items = turn.items();
    let last = items.len().saturating_sub(1);
    for (place, item) in items.into_iter().enumerate() {
        match item {
            // A line that is left out needs no text.
            TurnItem::Call(_) if is_short && told.len() >= MAX_LINES && place < last => {
                told.push(TreeLine::plain(String::new()));
            }
            TurnItem::Call(call) => told.push(TreeLine::plain(call_text(call, detail))),
            TurnItem::Message(message) if answer == Some(message.sequence) && without_answer => {}
            TurnItem::Message(message)
                if answer != Some(message.sequence) && detail == DetailLevel::Brief => {}
            TurnItem::Message(message) => {
                let content = &message.content;
                let cut = content.char_indices().nth(MAX_LINE_CHARS).filter(|_| is_short);
                let shown = cut.map_or(&**content, |(end, _)| &content[..end]);
                told.push(TreeLine::plain(format!("Agent: \"{shown}\"")));
            }
        }
    }

    for injected in &turn.model_faults {
        let words =
            format!("Model {}: fault `{}` in call {}", injected.model, injected.fault, injected.call_no);
        told.push(TreeLine::toned(TextStyle::Quiet, words));
    }
    for interrupt in &turn.interrupts {
        let asked = interrupt.message.as_deref().or(interrupt.reason.as_deref()).unwrap_or("");
        let answer = interrupt.answer.as_ref().map_or("unanswered", |(status, _)| status);
        told.push(TreeLine::toned(TextStyle::Quiet, format!("paused: {asked} → {answer}")));
    }
    if let Some(error) = &turn.run_error {
        told.push(TreeLine::toned(TextStyle::Bad, format!("error: {}", error.message)));
    }
    told.extend(turn.topic_step.as_ref().and_then(|step| topic_line(step, detail)));
    if detail == DetailLevel::Full {
        for said in &turn.roles {
            told.extend(role_line(said));
            told.extend(
                said.logs.iter().map(|line| TreeLine::toned(TextStyle::Quiet, format!("console: {line}"))),
            );
        }
        let notes = turn.notes.iter().filter(|note| !note.starts_with(ATTACHMENT_NOTE_PREFIX));
        // Notes say what is wrong with a protocol, often at their end.
        told.extend(notes.map(|note| {
            let line = TreeLine::toned(TextStyle::Quiet, format!("note: {note}"));
            TreeLine { is_wrapped: true, ..line }
        }));
    }
    if is_short { shortened(told) } else { told }
}

/// Lines of which at most so many are shown, with how many are left out before the last one.
fn shortened(mut lines: Vec<TreeLine>) -> Vec<TreeLine> {
    if lines.len() <= MAX_LINES {
        return lines;
    }
    let last = lines.pop();
    let left_out = lines.len() - (MAX_LINES - 1);
    lines.truncate(MAX_LINES - 1);
    lines.push(TreeLine::toned(TextStyle::Quiet, format!("… {left_out} more lines; `--verbose` shows all")));
    lines.extend(last);
    lines
}

/// Formats the topic change of a turn; in full detail also the reason to stay in a topic.
fn topic_line(step: &TopicStep, detail: DetailLevel) -> Option<TreeLine> {
    let from = step.from.as_ref().filter(|from| detail == DetailLevel::Full || **from != step.to)?;
    let mut words = match *from == step.to {
        true => format!("Topic: still {from}"),
        false => format!("Topic: {from} → {}", step.to),
    };
    let why = [step.trigger.as_deref(), step.confidence.as_deref(), step.reasoning.as_deref()];
    let why: Vec<&str> = why.into_iter().flatten().collect();
    words.push_str(&format!(
        " ({}{}{})",
        step.why.name(),
        if why.is_empty() { "" } else { ": " },
        why.join(", ")
    ));
    Some(TreeLine::toned(TextStyle::Quiet, words))
}

/// Describes how the simulations of users ended.
pub(super) fn simulation_summary(attempt: &Attempt) -> Option<String> {
    let ended = attempt.conversation.simulations.iter().filter_map(|simulation| simulation.ended.as_ref());
    let words: Vec<String> = ended
        .map(|ended| {
            let inputs = format_count(ended.turns, "input");
            let progress = ended.goal_progress.as_ref().map_or(String::new(), |p| format!(", goal {p}"));
            let detail = ended.detail.as_ref().map_or(String::new(), |detail| format!(": {detail}"));
            format!("Simulation: {} after {inputs}{progress}{detail}", ended.reason.name())
        })
        .collect();
    (!words.is_empty()).then(|| words.join("; "))
}

/// Formats the achieved goal of the simulated user with its reasoning.
pub(super) fn goal_line(turn: &ConversationTurn) -> Option<TreeLine> {
    let achieved =
        turn.roles.iter().filter(|said| &*said.role == "simulator").find(|said| has_achieved_goal(said))?;
    let why = finding_text(achieved, "reasoning").unwrap_or("the simulated user reached its goal");
    Some(TreeLine::plain(format!("Goal achieved: {why}")))
}

fn has_achieved_goal(said: &RoleAnswered) -> bool {
    said.finding.as_ref().is_some_and(|finding| finding["goal_achieved"] == true)
}

/// Returns a text member of a parsed answer.
fn finding_text<'a>(said: &'a RoleAnswered, key: &str) -> Option<&'a str> {
    said.finding.as_ref()?.get(key)?.as_str().filter(|text| !text.trim().is_empty())
}

/// Formats the answer of a role.
fn role_line(said: &RoleAnswered) -> Option<TreeLine> {
    let words = match (&said.error, &*said.role) {
        (Some(error), role) => format!("{role} {}: {error}", said.agent),
        (None, "judge") => {
            // Judgements of checks are displayed with the check.
            let finding = said.finding.as_ref().filter(|finding| finding.get("passed").is_some())?;
            let passed = if finding["passed"] == true { "agrees" } else { "does not agree" };
            let score = Some(&finding["score"]).filter(|score| score.is_number());
            let score = score.map_or_else(String::new, |score| format!(" (score {score})"));
            let reason =
                finding_text(said, "reason").map_or_else(String::new, |reason| format!(": {reason}"));
            format!("judge {} {passed}{score}{reason}", said.agent)
        }
        (None, "simulator") if has_achieved_goal(said) => return None,
        (None, role) => format!("{role}: {}", finding_text(said, "reasoning")?),
    };
    Some(TreeLine::toned(TextStyle::Quiet, words))
}
