//! Output for a failure: its reason, and each failed check with its location.

use std::fmt::Write as _;

use hotseat_document::{Diagnostic, SourceSpan};
use hotseat_trace::{AttemptFailure, CallComparison, FailureKind, ResultLabel};

use super::comparison::comparison_lines;
use super::options::{ConsoleOptions, TextStyle};
use crate::reporters::text::{columns, describe_call, format_count, last_lines, one_line, safe_lines, wrap};
use hotseat_engine::run::Attempt;
use hotseat_engine::session::{CheckResult, CheckState, CheckpointResult};

/// Maximum number of lines of an actual value.
const MAX_ACTUAL_LINES: usize = 12;
/// Maximum number of lines of an agent's diagnostics beside failed checks.
const MAX_DIAGNOSTIC_LINES: usize = 12;
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
    let style = TextStyle::Result(ResultLabel::from(failure.fault).color());
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
        true => writeln!(out, "{stem}{}: {first}", look.paint(style, kind)),
        false => writeln!(out, "{stem}{}", look.paint(style, &first)),
    };
    message.for_each(|line| {
        let _ = writeln!(out, "{quoted}{line}");
    });
    out.push('\n');

    if by_checks {
        failed.into_iter().for_each(|checked| write_failed_check(look, checked, out));
        write_agent_diagnostics(look, attempt, out);
        return;
    }
    let by_checkpoints = matches!(failure.kind, FailureKind::MissingCheckpoints | FailureKind::MaxTurns);
    if by_checkpoints && attempt.checkpoints.iter().any(CheckpointResult::is_missing) {
        attempt
            .checkpoints
            .iter()
            .filter(|reached| reached.is_missing())
            .for_each(|reached| write_missing_checkpoint(look, reached, out));
        write_agent_diagnostics(look, attempt, out);
        return;
    }
    if let Some(detail) = &failure.detail {
        write_quoted(look, detail, out);
    }
    let place = attempt.case_ref.case.place.to_string();
    let _ = writeln!(out, "{margin}{} {}\n", look.paint(TextStyle::Frame, "-->"), one_line(&place, 4000));
}

/// Writes the end of what the agent wrote for its developers, such as its standard error.
fn write_agent_diagnostics(look: &ConsoleOptions, attempt: &Attempt, out: &mut String) {
    if let Some(text) = &attempt.agent_diagnostics {
        write_quoted(look, &last_lines(text, MAX_DIAGNOSTIC_LINES), out);
    }
}

/// Writes text in the margin of a failure. Keeps its indentation.
fn write_quoted(look: &ConsoleOptions, text: &str, out: &mut String) {
    let quoted = format!("{}│ ", margin(look));
    let room = look.columns_left(columns(&quoted));
    for line in safe_lines(text) {
        let blank = line.len() - line.trim_start_matches(' ').len();
        let hang = if blank < room / 2 { &line[..blank] } else { "" };
        for (number, line) in wrap(&line, room, room - hang.len()).into_iter().enumerate() {
            let line = if number == 0 { format!("{quoted}{line}") } else { format!("{quoted}{hang}{line}") };
            let _ = writeln!(out, "{}", line.trim_end());
        }
    }
    out.push('\n');
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
    let place = &checked.check.place;
    let verdict = &checked.verdict;
    let (label, shown) = match (checked.state(), &verdict.comparison) {
        (CheckState::Errored, _) => ("error:", actual_lines(look, "error:", &verdict.actual, place)),
        (_, Some(comparison)) => ("got:", compared_lines(look, "got:", comparison, place)),
        (_, None) => ("got:", actual_lines(look, "got:", &verdict.actual, place)),
    };
    write_snippet(look, &title, place, checked.check.call_site.as_ref(), (label, &shown), out);
}

/// Writes a missing checkpoint: its location, and the reason why it was not reached.
fn write_missing_checkpoint(look: &ConsoleOptions, reached: &CheckpointResult, out: &mut String) {
    let checkpoint = &reached.checkpoint;
    let title = match &checkpoint.description {
        Some(description) => format!("checkpoint: {} ({description})", checkpoint.id),
        None => format!("checkpoint: {}", checkpoint.id),
    };
    let why = reached.missing.as_deref().unwrap_or("no turn was checked");
    let shown = actual_lines(look, "reason:", why, &checkpoint.place);
    write_snippet(look, &title, &checkpoint.place, None, ("reason:", &shown), out);
}

/// Spaces below the line number of a snippet.
fn gutter(look: &ConsoleOptions, place: &SourceSpan) -> String {
    format!("{}{}", margin(look), " ".repeat(place.line().to_string().len() + 1))
}

/// Wraps an actual value or a reason, to follow its label. Several lines are cut, except in verbose mode.
fn actual_lines(look: &ConsoleOptions, label: &str, actual: &str, place: &SourceSpan) -> Vec<String> {
    let room = look.columns_left(columns(&gutter(look, place)) + 4);
    let mut found = safe_lines(actual);
    let first = found.next().unwrap_or_default();
    let mut shown = wrap(&first, room.saturating_sub(columns(label) - 1), room);
    for line in found {
        let hang = if line.starts_with("- ") { "  " } else { "" };
        let broken = wrap(&line, room, room - hang.len());
        let hung = |(number, line): (usize, String)| if number == 0 { line } else { format!("{hang}{line}") };
        shown.extend(broken.into_iter().enumerate().map(hung));
    }
    let more = shown.len().saturating_sub(MAX_ACTUAL_LINES);
    if !look.verbose && more > 0 {
        shown.truncate(MAX_ACTUAL_LINES);
        shown.push(format!("… and {} more", format_count(more, "line")));
    }
    shown
}

/// Formats a comparison of calls: its summary, the missing calls with their differences, and the other calls.
fn compared_lines(
    look: &ConsoleOptions,
    label: &str,
    comparison: &CallComparison,
    place: &SourceSpan,
) -> Vec<String> {
    let room = look.columns_left(columns(&gutter(look, place)) + 4);
    let mut shown = actual_lines(look, label, &comparison.summary, place);
    shown.extend(comparison_lines(look, comparison, room));
    let listed = comparison.lines.iter().map(|line| format!("\n- {}{}", line.label(), line.text));
    let mut listed: String = listed.collect();
    if comparison.omitted > 0 {
        let _ = write!(listed, "\n… and {} more", comparison.omitted);
    }
    if !listed.is_empty() {
        // The first line of the text belongs to the label, which is written already.
        shown.extend(actual_lines(look, label, &listed, place).into_iter().skip(1));
    }
    shown
}

/// Writes a title, the source line, the lines of an actual value or reason with their label, and the call of the helper
/// function that has the source line.
fn write_snippet(
    look: &ConsoleOptions,
    title: &str,
    place: &SourceSpan,
    call_site: Option<&SourceSpan>,
    (label, shown): (&str, &[String]),
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

    let gutter = gutter(look, place);
    let bar = format!("{gutter}{}", look.paint(TextStyle::Frame, "|"));
    let (first, rest) = shown.split_first().map_or(("", shown), |(first, rest)| (first.as_str(), rest));
    let first = if first.is_empty() { String::new() } else { format!(" {first}") };
    let (equals, label) = (look.paint(TextStyle::Frame, "="), look.paint(TextStyle::Strong, label));
    let _ = writeln!(out, "{bar}\n{gutter}{equals} {label}{first}");
    for line in rest {
        let _ = writeln!(out, "{bar}   {line}");
    }
    if let Some(call_site) = call_site {
        let words = describe_call(call_site);
        let label = look.paint(TextStyle::Strong, "called at:");
        let _ = writeln!(out, "{bar}\n{gutter}{equals} {label} {words}");
    }
    out.push('\n');
}
