//! What is told of one turn, whatever tree it stands in.

use std::borrow::Cow;

use hotseat_trace::{FailureKind, RoleAnswered, TopicStep, Turn};
use serde_json::Value;

use super::look::Tone;
use crate::run::{Attempt, Finding};
use crate::session::ATTACHED;

/// How many lines of what happened in a turn are shown without `--verbose`.
const MAX_LINES: usize = 100;

/// How much is told of a turn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// What the agent called and what it answered.
    Gist,
    /// Everything.
    Whole,
}

/// A line of a tree, whose words are still to be cut to the room that there is.
pub(super) struct Line {
    /// What stands before the words.
    pub mark: Option<(&'static str, Tone)>,
    pub tone: Option<Tone>,
    pub words: String,
}

impl Line {
    pub(super) fn plain(words: String) -> Self {
        Line { mark: None, tone: None, words }
    }

    fn toned(tone: Tone, words: String) -> Self {
        Line { mark: None, tone: Some(tone), words }
    }

    /// A check or a checkpoint.
    pub(super) fn marked(mark: &'static str, tone: Tone, words: String) -> Self {
        Line { mark: Some((mark, tone)), tone: None, words }
    }
}

/// Whether a turn is one that went well, as far as it is told by itself. What the whole conversation came to may be
/// another thing.
pub(in crate::report) fn passed(turn: &Turn, attempt: &Attempt) -> bool {
    if attempt.checks.iter().any(|checked| checked.turn == Some(turn.number) && checked.fails()) {
        return false;
    }
    let is_last = turn.number == attempt.conversation.turns.len();
    let Some(failure) = attempt.verdict.failure.as_ref().filter(|_| is_last) else { return true };
    match failure.kind {
        // Without a check that does not hold it is the end of the turn that was not as it should be.
        FailureKind::Assertion => attempt.checks.iter().any(Finding::fails),
        // These are found behind the turn.
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

/// Who gave the input, where that is not clear by itself: in a conversation in which not all inputs are written.
pub(super) fn source(turn: &Turn, attempt: &Attempt) -> &'static str {
    let written = &attempt.selected.case;
    match &*turn.caller {
        "simulator" => "[Simulated] ",
        "person" => "[Typed] ",
        _ if turn.number == 1 && (written.simulator.is_some() || written.interactive) => "[Initial] ",
        _ => "",
    }
}

/// What is attached to the input: `+ [receipt.jpg]`.
pub(super) fn attached(turn: &Turn) -> String {
    let names: Vec<&str> = turn.notes.iter().filter_map(|note| note.strip_prefix(ATTACHED)).collect();
    if names.is_empty() { String::new() } else { format!("+ [{}]", names.join(", ")) }
}

/// What happened in a turn, in the order in which it began. `without_answer` leaves out the last message, which is told
/// elsewhere then.
pub(super) fn doings(turn: &Turn, detail: Detail, without_answer: bool) -> Vec<Line> {
    let calls = turn.tool_calls.iter().map(|call| {
        let arguments = match &call.arguments {
            Value::Null => Cow::Borrowed(""),
            arguments => Cow::Owned(arguments.to_string()),
        };
        let result = match (&call.result, detail) {
            (Some(_), Detail::Gist) => String::new(),
            (Some(result), Detail::Whole) if result.failed => format!(" → failed: {}", result.text()),
            (Some(result), Detail::Whole) => format!(" → {}", result.text()),
            (None, _) => " → no result".to_string(),
        };
        (call.started, 0, format!("Agent: [tool: {}({arguments})]{result}", call.name))
    });
    let answer = turn.messages.len().saturating_sub(1);
    let told = turn.messages.iter().enumerate().filter(|(place, _)| match detail {
        _ if *place == answer => !without_answer,
        Detail::Gist => false,
        Detail::Whole => true,
    });
    let messages = told.map(|(_, message)| {
        (message.started.unwrap_or(message.ended), 1, format!("Agent: \"{}\"", message.content))
    });
    let mut told: Vec<_> = calls.chain(messages).collect();
    told.sort_by_key(|(started, kind, _)| (*started, *kind));
    let mut told: Vec<Line> = told.into_iter().map(|(_, _, words)| Line::plain(words)).collect();

    for interrupt in &turn.interrupts {
        let asked = interrupt.message.as_deref().or(interrupt.reason.as_deref()).unwrap_or("");
        let answer = interrupt.answer.as_ref().map_or("unanswered", |(status, _)| status);
        told.push(Line::toned(Tone::Quiet, format!("paused: {asked} → {answer}")));
    }
    if let Some(error) = &turn.run_error {
        told.push(Line::toned(Tone::Bad, format!("error: {}", error.message)));
    }
    told.extend(turn.topic_step.as_ref().and_then(|step| topic(step, detail)));
    if detail == Detail::Whole {
        for said in &turn.roles {
            told.extend(helper(said));
            told.extend(said.logs.iter().map(|line| Line::toned(Tone::Quiet, format!("console: {line}"))));
        }
        let notes = turn.notes.iter().filter(|note| !note.starts_with(ATTACHED));
        told.extend(notes.map(|note| Line::toned(Tone::Quiet, format!("note: {note}"))));
    }
    told
}

/// Lines of which at most so many are shown, with how many are left out before the last one.
pub(super) fn shortened(mut lines: Vec<Line>) -> Vec<Line> {
    if lines.len() <= MAX_LINES {
        return lines;
    }
    let last = lines.pop();
    let left_out = lines.len() - (MAX_LINES - 1);
    lines.truncate(MAX_LINES - 1);
    lines.push(Line::toned(Tone::Quiet, format!("… {left_out} more lines; `--verbose` shows all")));
    lines.extend(last);
    lines
}

/// To which topic the conversation came with a turn; or, where everything is shown, why it stayed in one.
fn topic(step: &TopicStep, detail: Detail) -> Option<Line> {
    let from = step.from.as_ref().filter(|from| detail == Detail::Whole || **from != step.to)?;
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
    Some(Line::toned(Tone::Quiet, words))
}

/// How simulated users have ended.
pub(super) fn simulated(attempt: &Attempt) -> Option<String> {
    let ended = attempt.conversation.simulations.iter().filter_map(|simulation| simulation.ended.as_ref());
    let words: Vec<String> = ended
        .map(|ended| {
            let inputs =
                if ended.turns == 1 { "1 input".to_string() } else { format!("{} inputs", ended.turns) };
            let progress = ended.goal_progress.as_ref().map_or(String::new(), |p| format!(", goal {p}"));
            let detail = ended.detail.as_ref().map_or(String::new(), |detail| format!(": {detail}"));
            format!("Simulation: {} after {inputs}{progress}{detail}", ended.reason.name())
        })
        .collect();
    (!words.is_empty()).then(|| words.join("; "))
}

/// Whether the simulated user has what it wants, and why it thinks so.
pub(super) fn goal(turn: &Turn) -> Option<Line> {
    let achieved =
        turn.roles.iter().filter(|said| &*said.role == "simulator").find(|said| has_achieved(said))?;
    let why = text_of(achieved, "reasoning").unwrap_or("the simulated user has what it wants");
    Some(Line::plain(format!("Goal achieved: {why}")))
}

fn has_achieved(said: &RoleAnswered) -> bool {
    said.finding.as_ref().is_some_and(|finding| finding["goal_achieved"] == true)
}

/// A text among what was read from an answer.
fn text_of<'a>(said: &'a RoleAnswered, key: &str) -> Option<&'a str> {
    said.finding.as_ref()?.get(key)?.as_str().filter(|text| !text.trim().is_empty())
}

/// What a helper said.
fn helper(said: &RoleAnswered) -> Option<Line> {
    let words = match (&said.error, &*said.role) {
        (Some(error), role) => format!("{role} {}: {error}", said.agent),
        (None, "judge") => {
            // What stands with the check that was judged is not said twice.
            let finding = said.finding.as_ref().filter(|finding| finding.get("passed").is_some())?;
            let passed = if finding["passed"] == true { "agrees" } else { "does not agree" };
            let score = Some(&finding["score"]).filter(|score| score.is_number());
            let score = score.map_or_else(String::new, |score| format!(" (score {score})"));
            let reason = text_of(said, "reason").map_or_else(String::new, |reason| format!(": {reason}"));
            format!("judge {} {passed}{score}{reason}", said.agent)
        }
        (None, "simulator") if has_achieved(said) => return None,
        (None, role) => format!("{role}: {}", text_of(said, "reasoning")?),
    };
    Some(Line::toned(Tone::Quiet, words))
}
