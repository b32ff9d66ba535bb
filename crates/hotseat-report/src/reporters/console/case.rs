//! Output for one case: a single line, or a conversation tree if there is more to display.

use std::fmt::Write as _;

use hotseat_trace::VerdictStatus;

use super::conversation::{
    NOTHING_ASSERTED, RenderedCase, asserts_nothing, checkpoint_count, write_conversation, write_warnings,
};
use super::label::{case_label, verdict_word};
use super::options::{ConsoleOptions, TextStyle};
use super::tree::DURATION_COLUMNS;
use super::turn::DetailLevel;
use super::{attempts, failure};
use crate::reporters::text::{
    columns, format_count, format_duration, not_run_turns, one_line, preview, safe_lines, wrap,
};
use hotseat_engine::run::{Attempt, CaseOutcome, ConversationMode, RunSettings};

/// Minimum width of a useful preview.
const MIN_PREVIEW_COLUMNS: usize = 16;

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
    // The reason why a retry did not run is not below the tree.
    let has_result =
        extent == CaseExtent::Line || mode == ConversationMode::Standard || outcome.retry_pending;
    let mut text = headline(look, outcome, setting, has_result);
    text.push_str(&before);
    match extent {
        CaseExtent::Tree(detail) => write_conversation(look, attempt, &outcome.verdict, detail, &mut text),
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

/// Formats the first line of a case. With `ends`, it includes the result.
fn headline(look: &ConsoleOptions, outcome: &CaseOutcome, setting: &RunSettings, ends: bool) -> String {
    let attempt = outcome.representative();
    let (case, mode) = (&attempt.case_ref.case, attempt.mode());
    let (word, tone) = verdict_word(&outcome.verdict);
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
    let (status, skip_reason) = (outcome.verdict.status, outcome.verdict.skip_reason.as_deref());
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
            let label = columns(&case_label(&case.id, &case.name, case.named));
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

/// Formats the label of a case. If the conversation is not displayed below (`ends`), it includes a preview of
/// the only input, or of the first input of a case without a name.
fn label_with_preview(look: &ConsoleOptions, attempt: &Attempt, ends: bool, room: usize) -> String {
    let (case, mode) = (&attempt.case_ref.case, attempt.mode());
    let label = one_line(&case_label(&case.id, &case.name, case.named), room);
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

/// Formats the note about retries, with the number of the attempt that is shown.
fn retry_note(outcome: &CaseOutcome) -> String {
    let shown = outcome.representative().number;
    match outcome.attempts.len() {
        1 => String::new(),
        _ if outcome.is_flaky() => format!(" - flaky, attempt {shown}"),
        _ => format!(" - attempt {shown}"),
    }
}

/// Formats the text after the duration on the line of a case.
fn result_note(attempt: &Attempt, mode: ConversationMode) -> String {
    let turns = format_count(attempt.conversation.turns.len(), "turn");
    let turns = (mode == ConversationMode::Dynamic).then_some(turns);
    let nothing = asserts_nothing(attempt).then(|| NOTHING_ASSERTED.to_string());
    let is_short = attempt.verdict.status == VerdictStatus::Passed;
    let not_run = if is_short { not_run_turns(attempt, "turn") } else { None };
    let parts = [turns, checkpoint_count(attempt), not_run, nothing];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { format!(" - {}", parts.join(", ")) }
}
