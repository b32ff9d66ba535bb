//! Output for one case: a single line, or a conversation tree if there is more to display.

use std::fmt::Write as _;

use hotseat_trace::{ResultLabel, Verdict, VerdictStatus};

use super::attempts;
use super::failure;
use super::options::{ConsoleOptions, TextStyle};
use super::tree::{ConversationTree, DURATION_COLUMNS};
use super::turn::DetailLevel;
use crate::reporters::text::{columns, format_count, format_duration, one_line, preview, safe_lines, wrap};
use hotseat_engine::run::{Attempt, CaseOutcome, ConversationMode, RunSettings};

/// Minimum width of a useful preview.
const MIN_PREVIEW_COLUMNS: usize = 16;

/// Rendered case.
pub(super) struct RenderedCase {
    pub text: String,
    /// True if it has several lines and needs empty lines around it.
    pub is_tree: bool,
}

/// Amount of output for a case.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CaseExtent {
    /// Only the result.
    Line,
    /// Also the conversation.
    Tree(DetailLevel),
}

/// Renders a finished case. A passed case takes one line, except in verbose mode.
pub(super) fn render_case(
    look: &ConsoleOptions,
    outcome: &CaseOutcome,
    setting: &RunSettings,
) -> RenderedCase {
    if let Some(stability) = &outcome.stability {
        return attempts::repeated_case(look, outcome, stability);
    }
    let attempt = outcome.representative();
    let mode = attempt.mode();
    let verdict = &attempt.verdict;
    let held = !attempt.conversation.turns.is_empty();
    let extent = match verdict.status {
        VerdictStatus::Failed if held => CaseExtent::Tree(DetailLevel::Full),
        VerdictStatus::Passed | VerdictStatus::Skipped if held && look.verbose => {
            CaseExtent::Tree(DetailLevel::Full)
        }
        VerdictStatus::Skipped if held => CaseExtent::Tree(DetailLevel::Brief),
        VerdictStatus::Passed | VerdictStatus::Failed | VerdictStatus::Skipped => CaseExtent::Line,
    };
    let before = attempts::other_attempts(look, outcome);
    let mut text =
        headline(look, outcome, setting, extent == CaseExtent::Line || mode == ConversationMode::Standard);
    text.push_str(&before);
    match extent {
        CaseExtent::Tree(detail) => write_conversation(look, attempt, detail, &mut text),
        CaseExtent::Line => {
            if let Some(failure) = &verdict.failure {
                failure::write_failure(look, failure, attempt, &mut text);
            }
        }
    }
    write_logs(look, attempt, &mut text);
    let warned = write_warnings(look, outcome, &mut text);
    let is_tree = extent != CaseExtent::Line || verdict.failure.is_some() || !before.is_empty() || warned;
    RenderedCase { text, is_tree }
}

/// Writes the `console` output of scripts in verbose mode.
fn write_logs(look: &ConsoleOptions, attempt: &Attempt, text: &mut String) {
    if !look.verbose {
        return;
    }
    let of_checks = attempt.checks.iter().flat_map(|checked| &checked.said);
    for line in attempt.logs.iter().chain(of_checks).flat_map(|said| said.lines()) {
        let room = if look.wraps { look.columns_left(4) } else { usize::MAX };
        let words: String = safe_lines(&format!("console: {line}")).collect();
        for (number, line) in wrap(&words, room, room).iter().enumerate() {
            let margin = if number == 0 { "  " } else { "  │ " };
            let _ = writeln!(text, "{margin}{}", look.paint(TextStyle::Quiet, line));
        }
    }
}

/// Writes each distinct warning once. Returns true if there was any.
pub(super) fn write_warnings(look: &ConsoleOptions, outcome: &CaseOutcome, text: &mut String) -> bool {
    let mut said: Vec<String> = Vec::new();
    let warnings = outcome.attempts.iter().flat_map(|attempt| {
        let ended = attempt.conversation.turns.iter().filter_map(|turn| {
            let outcome = turn.run_outcome.as_ref()?;
            Some(format!("turn {}: the agent reported that its run ended as `{outcome}`", turn.number))
        });
        attempt.warnings.iter().cloned().chain(ended)
    });
    for warning in warnings {
        if !said.contains(&warning) {
            let words = one_line(&format!("warning: {warning}"), look.columns_left(2));
            let _ = writeln!(text, "  {}", look.paint(TextStyle::Skipped, &words));
            said.push(warning);
        }
    }
    !said.is_empty()
}

/// Writes a conversation as a tree with its result below.
pub(super) fn write_conversation(
    look: &ConsoleOptions,
    attempt: &Attempt,
    detail: DetailLevel,
    text: &mut String,
) {
    let (mode, verdict) = (attempt.mode(), &attempt.verdict);
    let skipped = verdict.status == VerdictStatus::Skipped;
    if !attempt.conversation.turns.is_empty() {
        match mode {
            ConversationMode::Standard => {
                ConversationTree::new(look, attempt, detail, true).single_turn(text);
                if verdict.failure.is_none() && !skipped {
                    let _ = writeln!(
                        text,
                        "{}",
                        look.paint(TextStyle::Quiet, &format!("  └─ {}", checks_passed_note(attempt)))
                    );
                }
            }
            ConversationMode::MultiTurn | ConversationMode::Dynamic => {
                let tree = ConversationTree::new(look, attempt, detail, skipped);
                match mode {
                    ConversationMode::Dynamic => tree.dynamic(text),
                    ConversationMode::Standard | ConversationMode::MultiTurn => tree.multi_turn(text),
                }
                if !skipped {
                    let (word, tone) = verdict_word(verdict);
                    let head = 2 + columns(word) + 1;
                    let lines =
                        wrap(&tree_footer(attempt, mode), look.columns_left(head), look.columns_left(4));
                    let lines: Vec<String> =
                        lines.iter().map(|line| look.paint(TextStyle::Quiet, line)).collect();
                    let _ = writeln!(text, "  {} {}", look.paint(tone, word), lines.join("\n    "));
                }
            }
        }
        if skipped {
            ConversationTree::new(look, attempt, DetailLevel::Brief, false).missing_input(text);
        }
    }
    if let Some(failure) = &verdict.failure {
        failure::write_failure(look, failure, attempt, text);
    }
}

/// Formats the first line of a case. With `ends`, it includes the result.
fn headline(look: &ConsoleOptions, outcome: &CaseOutcome, setting: &RunSettings, ends: bool) -> String {
    let attempt = outcome.representative();
    let (case, mode) = (&attempt.case_ref.case, attempt.mode());
    let (word, tone) = verdict_word(&attempt.verdict);
    let turns = match (mode, setting.simulator_name(case)) {
        (ConversationMode::MultiTurn, Some(simulator)) => {
            format!(" (simulator: {})", one_line(&simulator, 40))
        }
        // The number of turns of a test program is unknown in advance.
        (ConversationMode::MultiTurn, None) => {
            format!(" ({})", format_count(case.turns.max(attempt.conversation.turns.len()), "turn"))
        }
        (ConversationMode::Standard | ConversationMode::Dynamic, _) => String::new(),
    };
    let turns = if ends { turns } else { turns + &retry_note(outcome) };
    let marker = "► ";
    let (status, skip_reason) = (attempt.verdict.status, attempt.verdict.skip_reason.as_deref());
    if !ends {
        let turns = look.first_fitting(columns(marker), [turns, String::new()]);
        let name =
            label_with_preview(look, attempt, false, look.columns_left(columns(marker) + columns(&turns)));
        return format!("{marker}{name}{}\n", look.paint(TextStyle::Quiet, &turns));
    }
    let taken = columns(marker) + columns(" ") + columns(word) + columns(" ");
    let (turns, name, note) = match (status, skip_reason) {
        (VerdictStatus::Skipped, Some(reason)) => {
            // The name is shortened in favour of the reason, but only up to half of the line.
            let turns = look.first_fitting(taken + 10, [turns, String::new()]);
            let room = look.columns_left(taken + columns(&turns));
            let label = columns(&label(&case.id, &case.name, case.named));
            let reason = one_line(reason, room.saturating_sub(label.min(room / 2)));
            let name = label_with_preview(look, attempt, true, room.saturating_sub(columns(&reason)));
            (turns, name, reason)
        }
        _ => {
            let taken = taken + DURATION_COLUMNS;
            let (rest, tries) = (result_note(attempt, mode), retry_note(outcome));
            let rest = look.first_fitting(taken + columns(&turns), [rest + &tries, tries]);
            let turns = look.first_fitting(taken + columns(&rest), [turns, String::new()]);
            let name = label_with_preview(
                look,
                attempt,
                true,
                look.columns_left(taken + columns(&rest) + columns(&turns)),
            );
            (turns, name, format!("({}){rest}", format_duration(attempt.duration)))
        }
    };
    let (word, note) = (look.paint(tone, word), look.paint(TextStyle::Quiet, &note));
    format!("{marker}{name}{} {word} {note}\n", look.paint(TextStyle::Quiet, &turns))
}

/// Formats the label of a case, `[id] name`, from the parts that the test file sets.
pub(super) fn label(id: &str, name: &str, named: bool) -> String {
    match named {
        true if id == name => name.to_string(),
        true => format!("[{id}] {name}"),
        false => format!("[{id}]"),
    }
}

/// Formats the label of a case. If the conversation is not displayed below (`ends`), it includes a preview of
/// the only input, or of the first input of a case without a name.
fn label_with_preview(look: &ConsoleOptions, attempt: &Attempt, ends: bool, room: usize) -> String {
    let (case, mode) = (&attempt.case_ref.case, attempt.mode());
    let label = one_line(&label(&case.id, &case.name, case.named), room);
    // Only recorded input is displayed, because recording removes secrets.
    let tells = ends && (mode == ConversationMode::Standard || !case.named);
    let said = attempt.conversation.turns.first().filter(|_| tells).and_then(|turn| turn.user.as_deref());
    let between = if case.named { " · " } else { " " };
    let room = room.saturating_sub(columns(&label) + columns(between));
    let Some(said) = said.filter(|said| !said.trim().is_empty() && room >= MIN_PREVIEW_COLUMNS) else {
        return label;
    };
    let preview = preview(said, room);
    match case.named {
        true => format!("{label}{}", look.paint(TextStyle::Quiet, &format!("{between}{preview}"))),
        false => format!("{label}{between}{preview}"),
    }
}

/// Formats the note about retries.
fn retry_note(outcome: &CaseOutcome) -> String {
    match outcome.attempts.len() {
        1 => String::new(),
        n if outcome.is_flaky() => format!(" - flaky, attempt {n}"),
        n => format!(" - attempt {n}"),
    }
}

/// Returns the word of a verdict with its style.
pub(super) fn verdict_word(verdict: &Verdict) -> (&'static str, TextStyle) {
    let label = ResultLabel::from_verdict(verdict);
    (label.capitals(), TextStyle::Result(label.color()))
}

/// Formats the text after the duration on the line of a case.
fn result_note(attempt: &Attempt, mode: ConversationMode) -> String {
    let turns = format_count(attempt.conversation.turns.len(), "turn");
    let turns = (mode == ConversationMode::Dynamic).then_some(turns);
    let nothing = asserts_nothing(attempt).then(|| NOTHING_ASSERTED.to_string());
    let parts: Vec<String> = [turns, checkpoint_count(attempt), nothing].into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { format!(" - {}", parts.join(", ")) }
}

/// Note for a passed case without hard checks and checkpoints.
const NOTHING_ASSERTED: &str = "nothing was asserted";

/// Returns true if an attempt passed without a hard check or a checkpoint.
fn asserts_nothing(attempt: &Attempt) -> bool {
    attempt.verdict.status == VerdictStatus::Passed
        && attempt.checkpoints.is_empty()
        && !attempt.checks.iter().any(|checked| checked.check.is_hard())
}

/// Formats the text after the result below a tree.
fn tree_footer(attempt: &Attempt, mode: ConversationMode) -> String {
    let turns = format_count(attempt.conversation.turns.len(), "turn");
    let hard = attempt.checks.iter().filter(|checked| checked.check.is_hard()).count();
    let mut parts = vec![turns];
    parts.extend(checkpoint_count(attempt));
    if mode == ConversationMode::MultiTurn {
        parts.extend((hard > 0).then(|| format_count(hard, "check")));
    }
    parts.extend(asserts_nothing(attempt).then(|| NOTHING_ASSERTED.to_string()));
    format!("({}) - {}", format_duration(attempt.duration), parts.join(", "))
}

/// Formats `2/3 checkpoints`: reached and total.
fn checkpoint_count(attempt: &Attempt) -> Option<String> {
    let reached = attempt.checkpoints.iter().filter(|reached| reached.at.is_some()).count();
    let all = attempt.checkpoints.len();
    (all > 0).then(|| format!("{reached}/{all} checkpoints"))
}

fn checks_passed_note(attempt: &Attempt) -> String {
    match attempt.checks.iter().filter(|checked| checked.check.is_hard()).count() {
        0 if attempt.checkpoints.is_empty() => NOTHING_ASSERTED.to_string(),
        0 => "all checkpoints reached".to_string(),
        1 => "1 check passed".to_string(),
        n => format!("{n} checks passed"),
    }
}
