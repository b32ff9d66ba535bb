//! Output for a case with several attempts: its stability, and one line for each attempt that did not pass.

use std::fmt::Write as _;

use hotseat_trace::VerdictStatus;

use super::conversation::{RenderedCase, write_conversation, write_warnings};
use super::label::{case_label, verdict_word};
use super::options::{ConsoleOptions, TextStyle};
use super::turn::DetailLevel;
use crate::reporters::text::{columns, format_count, format_duration, format_whole_percent, one_line};
use hotseat_engine::cases::format_rate;
use hotseat_engine::run::{
    Attempt, CaseOutcome, CaseStability, ReliabilityGrade, ReliabilityResult, StabilityClass,
};

/// Largest k for which pass^k is displayed.
const MAX_PASS_K: usize = 5;
/// Maximum number of lines for attempts that did not pass.
const MAX_FAILED_LINES: usize = 5;

/// Formats a repeated case: its stability, the runs that did not pass, and the conversation of the
/// representative run. In verbose mode it contains the conversations of all runs.
pub(super) fn repeated_case(
    look: &ConsoleOptions,
    outcome: &CaseOutcome,
    stability: &CaseStability,
) -> RenderedCase {
    let told = outcome.representative();
    let mut text = headline(look, outcome, stability, "► ");
    text.push_str(&stability_lines(look, stability));
    if look.verbose {
        for attempt in &outcome.attempts {
            let _ = writeln!(text, "{}", attempt_line(look, attempt, "Run"));
            write_conversation(look, attempt, &attempt.verdict, DetailLevel::Full, &mut text);
        }
        write_warnings(look, outcome, &mut text);
        return RenderedCase { text, is_tree: true };
    }
    let not_passed =
        failed_attempt_lines(look, outcome.attempts.iter().map(|attempt| &**attempt), "Run", &mut text);
    if told.verdict.status != VerdictStatus::Passed {
        // A single failed run is described directly above.
        if not_passed > 1 {
            let _ = writeln!(text, "\n  Run {}:", told.number);
        }
        write_conversation(look, told, &told.verdict, DetailLevel::Full, &mut text);
    }
    let warned = write_warnings(look, outcome, &mut text);
    RenderedCase { text, is_tree: not_passed > 0 || warned }
}

/// Formats `[ID] 67% (2/3) Unstable avg:230ms - FAILED` after a `marker`.
pub(super) fn headline(
    look: &ConsoleOptions,
    outcome: &CaseOutcome,
    stability: &CaseStability,
    marker: &str,
) -> String {
    let case = &outcome.case_ref.case;
    let (rate, tone) = rate_label(outcome, stability);
    let label = case_label(&case.id, &case.name, case.named);
    let label = one_line(&label, look.columns_left(columns(marker) + columns(&rate) + 1));
    format!("{marker}{label} {}\n", look.paint(tone, &rate))
}

/// Formats one or two lines with the confidence interval of the pass rate, pass^k, consistency and durations.
fn stability_lines(look: &ConsoleOptions, stability: &CaseStability) -> String {
    let mut out = String::new();
    if let Some(ReliabilityResult { reliability, grade, decided_after }) = stability.promise {
        let tone = if grade == ReliabilityGrade::Pass { TextStyle::Good } else { TextStyle::Bad };
        let after = match decided_after {
            Some(runs) => format!("after {runs} of at most {} runs", reliability.max_runs),
            None => format!("undecided after {}", format_count(stability.runs, "run")),
        };
        let words = format!(
            "at least {} declared, with {} confidence: {after}",
            format_rate(reliability.rate),
            format_rate(reliability.confidence)
        );
        let words = one_line(&words, look.columns_left(columns(grade.name()) + 3));
        let _ = writeln!(out, "  {} {words}", look.paint(tone, grade.name()));
    }
    let runs = stability.runs;
    if runs == 0 {
        return out;
    }
    let (interval, confidence) = stability.interval();
    let mut parts = vec![format!(
        "rate {}–{}% ({})",
        format_whole_percent(interval.low),
        format_whole_percent(interval.high),
        format_rate(confidence)
    )];
    let k = runs.min(MAX_PASS_K);
    parts.extend(stability.pass_hat_k(k).map(|part| format!("pass^{k} {}%", format_whole_percent(part))));
    parts.extend(stability.consistency.map(|part| format!("same answer {}%", format_whole_percent(part))));
    let took = [stability.shortest, stability.median, stability.longest].map(format_duration);
    parts.push(took.join("/"));
    let line = one_line(&parts.join(" · "), look.columns_left(2));
    let _ = writeln!(out, "  {}", look.paint(TextStyle::Quiet, &line));
    out
}

/// Formats `67% (2/3) Unstable avg:230ms - FAILED` with notes about the runs. Without valid runs there is no rate.
fn rate_label(outcome: &CaseOutcome, stability: &CaseStability) -> (String, TextStyle) {
    let class = match stability.class() {
        Some(_) if stability.passed + stability.failed == 0 => "Skipped",
        // A case that never passes is not unstable.
        Some(_) if stability.never_passed() => "Consistently Failing",
        Some(StabilityClass::Stable) => "Stable",
        Some(StabilityClass::MostlyStable) => "Mostly Stable",
        Some(StabilityClass::Unstable) => "Unstable",
        Some(StabilityClass::HighlyUnstable) => "Highly Unstable",
        None if stability.missing_attempts() > 0 => "Incomplete",
        None => "Cut Short",
    };
    let CaseStability { passed, runs, not_run, .. } = stability;
    let mut words = match stability.pass_rate() {
        None => "no valid runs".to_string(),
        Some(part) => {
            let percent = format_whole_percent(part);
            format!("{percent}% ({passed}/{runs}) {class} avg:{}", format_duration(stability.average))
        }
    };
    let notes = [
        (stability.missing_attempts(), "not the agent's fault"),
        (stability.redrawn, "replaced"),
        (stability.skipped, "skipped"),
        (*not_run, "not started"),
    ];
    for (n, what) in notes.into_iter().filter(|(n, _)| *n > 0) {
        let _ = write!(words, ", {n} {what}");
    }
    let tone = match outcome.verdict.status {
        VerdictStatus::Passed if stability.is_stable() == Some(true) => TextStyle::Good,
        VerdictStatus::Passed => {
            words.push_str(" - enough to pass");
            TextStyle::Skipped
        }
        VerdictStatus::Failed => {
            let (word, tone) = verdict_word(&outcome.verdict);
            let _ = write!(words, " - {word}");
            tone
        }
        VerdictStatus::Skipped => TextStyle::Skipped,
    };
    (words, tone)
}

/// Formats the attempts of a retried case other than the displayed one.
pub(super) fn other_attempts(look: &ConsoleOptions, outcome: &CaseOutcome) -> String {
    let mut out = String::new();
    let told = outcome.representative().number;
    let rest = outcome.attempts.iter().map(|attempt| &**attempt).filter(|attempt| attempt.number != told);
    failed_attempt_lines(look, rest, "Attempt", &mut out);
    out
}

/// Writes a line for each of the first attempts that did not pass, and returns the number of all of them.
fn failed_attempt_lines<'a>(
    look: &ConsoleOptions,
    attempts: impl Iterator<Item = &'a Attempt>,
    what: &str,
    out: &mut String,
) -> usize {
    let not_passed: Vec<&Attempt> =
        attempts.filter(|attempt| attempt.verdict.status != VerdictStatus::Passed).collect();
    // One more line is shorter than a note about one more attempt.
    let shown = if not_passed.len() == MAX_FAILED_LINES + 1 {
        MAX_FAILED_LINES + 1
    } else {
        MAX_FAILED_LINES.min(not_passed.len())
    };
    for attempt in &not_passed[..shown] {
        let _ = writeln!(out, "{}", attempt_line(look, attempt, what));
    }
    if not_passed.len() > shown {
        let more = format_count(not_passed.len() - shown, &format!("more {}", what.to_lowercase()));
        let _ = writeln!(out, "  … and {more} that did not pass");
    }
    not_passed.len()
}

/// Formats `Run 2: FAILED (240ms) assertion: …`.
fn attempt_line(look: &ConsoleOptions, attempt: &Attempt, what: &str) -> String {
    let (word, tone) = verdict_word(&attempt.verdict);
    let head = format!("  {what} {}: ", attempt.number);
    let took = format!("({})", format_duration(attempt.duration));
    let why = match (&attempt.verdict.failure, &attempt.verdict.skip_reason) {
        (Some(failure), _) => format!("{}: {}", failure.kind.name(), failure.message),
        (None, Some(reason)) => reason.clone(),
        (None, None) => String::new(),
    };
    let room = look.columns_left(columns(&head) + columns(word) + super::tree::DURATION_COLUMNS + 2);
    let why = one_line(&why, room);
    let line = format!("{head}{} {} {why}", look.paint(tone, word), look.paint(TextStyle::Quiet, &took));
    line.trim_end().to_string()
}
