//! Why a case failed: the reason, and each check that does not hold with the place where it is written.

use std::fmt::Write as _;

use hotseat_document::{Diagnostic, Place};
use hotseat_trace::{Failure, FailureKind};

use super::look::{Look, Tone};
use crate::report::words::{columns, count, lines, one_line, wrap};
use crate::run::{Attempt, Finding, ReachedFacts, State};

/// How many lines of what a check found are shown.
const FOUND: usize = 12;
/// What stands before the lines of a failure, where there is room for that.
const MARGIN: &str = "     ";
/// With fewer columns there is none.
const ROOMY: usize = 45;

fn margin(look: &Look) -> &'static str {
    if look.width < ROOMY { "" } else { MARGIN }
}

/// Why a case failed: the checks that do not hold, or whatever else there is to say.
pub(super) fn reason(look: &Look, failure: &Failure, attempt: &Attempt, out: &mut String) {
    let margin = margin(look);
    let kind = failure.kind.name();
    let hard = attempt.checks.iter().filter(|checked| checked.check.is_hard());
    let (all, failed): (usize, Vec<&Finding>) =
        (hard.clone().count(), hard.filter(|checked| checked.fails()).collect());
    let by_checks = failure.kind == FailureKind::Assertion && !failed.is_empty();
    // What could not be decided is shown with the others, and has not failed.
    let undecided = failed.iter().filter(|checked| checked.state() == State::Errored).count();
    let rest = match undecided {
        0 => String::new(),
        n => format!(", {n} could not be decided"),
    };
    let message = match (failed.len() - undecided, all) {
        (1, 1) if by_checks => "a check does not hold".to_string(),
        (n, all) if by_checks => {
            format!("{n} of {all} checks {} not hold{rest}", if n == 1 { "does" } else { "do" })
        }
        _ => one_line(&failure.message, 4000),
    };
    // What says its kind by itself does not need to be told it twice.
    let said = kind.replace('_', " ");
    let head =
        if message.starts_with(&said) { "  └─ ".to_string() } else { format!("  └─ {kind}: ") };
    let quoted = format!("{margin}│ ");
    let mut message = wrap(&message, look.left(columns(&head)), look.left(columns(&quoted))).into_iter();
    let first = message.next().unwrap_or_default();
    let stem = look.paint(Tone::Quiet, "  └─ ");
    let _ = match head.ends_with(": ") {
        true => writeln!(out, "{stem}{}: {first}", look.paint(Tone::Bad, kind)),
        false => writeln!(out, "{stem}{}", look.paint(Tone::Bad, &first)),
    };
    message.for_each(|line| {
        let _ = writeln!(out, "{quoted}{line}");
    });
    out.push('\n');

    if by_checks {
        failed.into_iter().for_each(|checked| failed_check(look, checked, out));
        return;
    }
    let by_checkpoints = matches!(failure.kind, FailureKind::MissingCheckpoints | FailureKind::MaxTurns);
    if by_checkpoints && attempt.checkpoints.iter().any(ReachedFacts::is_missing) {
        attempt
            .checkpoints
            .iter()
            .filter(|reached| reached.is_missing())
            .for_each(|reached| missing_checkpoint(look, reached, out));
        return;
    }
    if let Some(detail) = &failure.detail {
        let room = look.left(columns(&quoted));
        for line in lines(detail) {
            // What is indented stays so.
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
    let place = attempt.selected.case.place.to_string();
    let _ = writeln!(out, "{margin}{} {}\n", look.paint(Tone::Frame, "-->"), one_line(&place, 4000));
}

/// A failed check: what was expected, where that is written, and what was found.
fn failed_check(look: &Look, checked: &Finding, out: &mut String) {
    let words = checked.check.message.as_ref().unwrap_or(&checked.verdict.expected);
    let expected = match checked.turn {
        Some(turn) => format!("turn {turn}: {words}"),
        None => words.clone(),
    };
    snippet(look, &expected, &checked.check.place, &checked.verdict.actual, out);
}

/// A checkpoint that was not reached, where it is written, and why not.
fn missing_checkpoint(look: &Look, reached: &ReachedFacts, out: &mut String) {
    let checkpoint = &reached.checkpoint;
    let title = match &checkpoint.description {
        Some(description) => format!("checkpoint: {} ({description})", checkpoint.id),
        None => format!("checkpoint: {}", checkpoint.id),
    };
    let why = reached.missing.as_deref().unwrap_or("no turn was looked at");
    snippet(look, &title, &checkpoint.place, why, out);
}

/// What was to be, the line where that is written, and what was found instead.
fn snippet(look: &Look, expected: &str, place: &Place, actual: &str, out: &mut String) {
    let margin = margin(look);
    let left = look.left(columns(margin) + 2);
    for (number, line) in wrap(&one_line(expected, 4000), left, left).iter().enumerate() {
        let mark = if number == 0 { look.paint(Tone::Bad, "✗") } else { " ".to_string() };
        let _ = writeln!(out, "{margin}{mark} {}", look.paint(Tone::Strong, line));
    }
    // The title of a rendered mistake is its first line; ours stands above already.
    let rendered = Diagnostic::new("").at(place.clone()).render(look.color, look.left(columns(margin)));
    for line in rendered.lines().skip(1) {
        let _ = writeln!(out, "{margin}{line}");
    }

    let gutter = format!("{margin}{}", " ".repeat(place.line().to_string().len() + 1));
    let bar = format!("{gutter}{}", look.paint(Tone::Frame, "|"));
    let mut found = lines(actual);
    let first = found.next().unwrap_or_default();
    let room = look.left(columns(&gutter) + 4);
    let mut shown = wrap(&first, room.saturating_sub(columns("found: ") - 2), room);
    for line in found {
        let hang = if line.starts_with("- ") { "  " } else { "" };
        let broken = wrap(&line, room, room - hang.len());
        let hung = |(number, line): (usize, String)| if number == 0 { line } else { format!("{hang}{line}") };
        shown.extend(broken.into_iter().enumerate().map(hung));
    }
    let more = shown.len().saturating_sub(FOUND);
    shown.truncate(FOUND);
    let first = if shown[0].is_empty() { String::new() } else { format!(" {}", shown[0]) };
    let (equals, title) = (look.paint(Tone::Frame, "="), look.paint(Tone::Strong, "found:"));
    let _ = writeln!(out, "{bar}\n{gutter}{equals} {title}{first}");
    for line in &shown[1..] {
        let _ = writeln!(out, "{bar}   {line}");
    }
    if more > 0 {
        let _ = writeln!(out, "{bar}   … and {} more", count(more, "line"));
    }
    out.push('\n');
}
