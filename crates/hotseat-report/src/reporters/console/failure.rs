//! Output for a failure: its reason, and each failed check with its location.

use std::fmt::Write as _;

use hotseat_document::{Diagnostic, SourceSpan};
use hotseat_trace::{AttemptFailure, FailureKind};

use super::options::{ConsoleOptions, TextStyle};
use crate::reporters::text::{columns, format_count, one_line, safe_lines, wrap};
use hotseat_engine::run::{Attempt, CheckResult, CheckState, CheckpointResult};

/// Maximum number of lines of an actual value.
const MAX_ACTUAL_LINES: usize = 12;
/// Indentation of failure details.
const MARGIN: &str = "     ";
/// Below this width there is no indentation.
const MIN_MARGIN_COLUMNS: usize = 45;

fn margin(look: &ConsoleOptions) -> &'static str {
    if look.width < MIN_MARGIN_COLUMNS { "" } else { MARGIN }
}

/// Writes the reason of a failure: the failed checks, or the message and details.
pub(super) fn write_failure(
    look: &ConsoleOptions,
    failure: &AttemptFailure,
    attempt: &Attempt,
    out: &mut String,
) {
    let margin = margin(look);
    let kind = failure.kind.name();
    let hard = attempt.checks.iter().filter(|checked| checked.check.is_hard());
    let (all, failed): (usize, Vec<&CheckResult>) =
        (hard.clone().count(), hard.filter(|checked| checked.fails()).collect());
    let by_checks = failure.kind == FailureKind::Assertion && !failed.is_empty();
    // Errored checks are displayed with the failed ones but counted separately.
    let undecided = failed.iter().filter(|checked| checked.state() == CheckState::Errored).count();
    let rest = match undecided {
        0 => String::new(),
        n => format!(", {n} errored"),
    };
    let message = match (failed.len() - undecided, all) {
        (1, 1) if by_checks => "a check failed".to_string(),
        (n, all) if by_checks => {
            format!("{n} of {all} checks failed{rest}")
        }
        _ => one_line(&failure.message, 4000),
    };
    // A message that starts with its kind needs no prefix.
    let said = kind.replace('_', " ");
    let head =
        if message.starts_with(&said) { "  └─ ".to_string() } else { format!("  └─ {kind}: ") };
    let quoted = format!("{margin}│ ");
    let mut message =
        wrap(&message, look.columns_left(columns(&head)), look.columns_left(columns(&quoted))).into_iter();
    let first = message.next().unwrap_or_default();
    let stem = look.paint(TextStyle::Quiet, "  └─ ");
    let _ = match head.ends_with(": ") {
        true => writeln!(out, "{stem}{}: {first}", look.paint(TextStyle::Bad, kind)),
        false => writeln!(out, "{stem}{}", look.paint(TextStyle::Bad, &first)),
    };
    message.for_each(|line| {
        let _ = writeln!(out, "{quoted}{line}");
    });
    out.push('\n');

    if by_checks {
        failed.into_iter().for_each(|checked| write_failed_check(look, checked, out));
        return;
    }
    let by_checkpoints = matches!(failure.kind, FailureKind::MissingCheckpoints | FailureKind::MaxTurns);
    if by_checkpoints && attempt.checkpoints.iter().any(CheckpointResult::is_missing) {
        attempt
            .checkpoints
            .iter()
            .filter(|reached| reached.is_missing())
            .for_each(|reached| write_missing_checkpoint(look, reached, out));
        return;
    }
    if let Some(detail) = &failure.detail {
        let room = look.columns_left(columns(&quoted));
        for line in safe_lines(detail) {
            // Keeps the indentation of the detail.
            let blank = line.len() - line.trim_start_matches(' ').len();
            let hang = if blank < room / 2 { &line[..blank] } else { "" };
            for (number, line) in wrap(&line, room, room - hang.len()).into_iter().enumerate() {
                let line =
                    if number == 0 { format!("{quoted}{line}") } else { format!("{quoted}{hang}{line}") };
                let _ = writeln!(out, "{}", line.trim_end());
            }
        }
        out.push('\n');
    }
    let place = attempt.case_ref.case.place.to_string();
    let _ = writeln!(out, "{margin}{} {}\n", look.paint(TextStyle::Frame, "-->"), one_line(&place, 4000));
}

/// Writes a failed check: the expectation, its location, and the actual value.
fn write_failed_check(look: &ConsoleOptions, checked: &CheckResult, out: &mut String) {
    let words = match &checked.check.message {
        Some(own) => own.clone(),
        None => format!("expected {}", checked.verdict.expected),
    };
    let title = match checked.turn {
        Some(turn) => format!("turn {turn}: {words}"),
        None => words,
    };
    let label = if checked.state() == CheckState::Errored { "error:" } else { "got:" };
    write_snippet(look, &title, &checked.check.place, (label, &checked.verdict.actual), out);
}

/// Writes a missing checkpoint: its location, and the reason why it was not reached.
fn write_missing_checkpoint(look: &ConsoleOptions, reached: &CheckpointResult, out: &mut String) {
    let checkpoint = &reached.checkpoint;
    let title = match &checkpoint.description {
        Some(description) => format!("checkpoint: {} ({description})", checkpoint.id),
        None => format!("checkpoint: {}", checkpoint.id),
    };
    let why = reached.missing.as_deref().unwrap_or("no turn was checked");
    write_snippet(look, &title, &checkpoint.place, ("reason:", why), out);
}

/// Writes a title, the source line, and the actual value or reason with its label.
fn write_snippet(
    look: &ConsoleOptions,
    title: &str,
    place: &SourceSpan,
    (label, actual): (&str, &str),
    out: &mut String,
) {
    let margin = margin(look);
    let left = look.columns_left(columns(margin) + 2);
    for (number, line) in wrap(&one_line(title, 4000), left, left).iter().enumerate() {
        let mark = if number == 0 { look.paint(TextStyle::Bad, "✗") } else { " ".to_string() };
        let _ = writeln!(out, "{margin}{mark} {}", look.paint(TextStyle::Strong, line));
    }
    // The first line of a rendered diagnostic is its title, which was already written.
    let rendered =
        Diagnostic::new("").at(place.clone()).render(look.color, look.columns_left(columns(margin)));
    for line in rendered.lines().skip(1) {
        let _ = writeln!(out, "{margin}{line}");
    }

    let gutter = format!("{margin}{}", " ".repeat(place.line().to_string().len() + 1));
    let bar = format!("{gutter}{}", look.paint(TextStyle::Frame, "|"));
    let mut found = safe_lines(actual);
    let first = found.next().unwrap_or_default();
    let room = look.columns_left(columns(&gutter) + 4);
    let mut shown = wrap(&first, room.saturating_sub(columns(label) - 1), room);
    for line in found {
        let hang = if line.starts_with("- ") { "  " } else { "" };
        let broken = wrap(&line, room, room - hang.len());
        let hung = |(number, line): (usize, String)| if number == 0 { line } else { format!("{hang}{line}") };
        shown.extend(broken.into_iter().enumerate().map(hung));
    }
    let more = shown.len().saturating_sub(MAX_ACTUAL_LINES);
    shown.truncate(MAX_ACTUAL_LINES);
    let first = if shown[0].is_empty() { String::new() } else { format!(" {}", shown[0]) };
    let (equals, label) = (look.paint(TextStyle::Frame, "="), look.paint(TextStyle::Strong, label));
    let _ = writeln!(out, "{bar}\n{gutter}{equals} {label}{first}");
    for line in &shown[1..] {
        let _ = writeln!(out, "{bar}   {line}");
    }
    if more > 0 {
        let _ = writeln!(out, "{bar}   … and {} more", format_count(more, "line"));
    }
    out.push('\n');
}
