//! End of a run: failed cases, counts, a suggestion, and the result banner.

use std::fmt::Write as _;

use hotseat_trace::{FailureKind, ResultLabel, UsageTotals};

use super::banner::{agent_names, closing_banner, section};
use super::options::{ConsoleOptions, TextStyle};
use crate::reporters::failures::{FailedCase, FailureList};
use crate::reporters::text::{
    columns, format_cost, format_count, format_duration, format_percent, one_line, wrap,
};
use hotseat_engine::run::{CheckTally, CriterionTally, RunSettings, RunSummary};

/// Totals of all conversations.
#[derive(Debug, Default)]
pub(super) struct ConversationTotals {
    /// Number of cases with a conversation.
    pub cases: usize,
    /// Number of conversations: one for each attempt.
    pub conversations: usize,
    /// Number of turns.
    pub turns: usize,
    /// Sum of the durations.
    pub duration: std::time::Duration,
}

/// Formats the list of failed cases. A run of a single case needs no list.
pub(super) fn failed_cases(
    look: &ConsoleOptions,
    failures: &mut FailureList,
    summary: &RunSummary,
) -> String {
    let mut out = String::new();
    if failures.count == 0 || summary.total == 1 {
        return out;
    }
    out.push_str(&section(look, "Failed Tests"));
    let count = failures.count;
    let first = failures.first();
    let lines: Vec<(String, String)> = first.iter().map(label_and_note).collect();
    let styles = first.iter().map(|failed| TextStyle::Result(failed.label.color()));
    // Locations are written below the cases if they do not all fit beside them.
    let taken =
        |(label, note): &(String, String)| columns(FAILED_MARKER) + columns(label) + 1 + columns(note);
    let beside = lines.iter().all(|line| taken(line) <= look.width);
    let between = if beside { " " } else { "\n    " };
    for ((label, note), style) in lines.iter().zip(styles) {
        let label = one_line(label, look.columns_left(columns(FAILED_MARKER)));
        let (mark, note) = (look.paint(style, FAILED_MARKER), look.paint(TextStyle::Quiet, note));
        let _ = writeln!(out, "{mark}{label}{between}{note}");
    }
    if count > first.len() {
        let _ = writeln!(out, "  … and {} more", count - first.len());
    }
    out.push('\n');
    out
}

/// Formats `1234 (1200 in, 34 out)`.
fn format_tokens(spent: &UsageTotals) -> String {
    match (spent.input_tokens, spent.output_tokens) {
        (Some(input), Some(output)) => format!("{} ({input} in, {output} out)", spent.total_tokens),
        _ => spent.total_tokens.to_string(),
    }
}

/// Marker before a failed case.
const FAILED_MARKER: &str = "  ✗ ";

/// Returns the name of a failed case, and a note with its location. If the reason is not a failed check, the note
/// names its label and its kind.
fn label_and_note(failed: &FailedCase) -> (String, String) {
    let place = one_line(&failed.place, 4000);
    let note = match failed.kind {
        FailureKind::Assertion => format!("({place})"),
        kind if failed.label == ResultLabel::Failed => format!("({place}, {})", kind.name()),
        kind if kind.name().replace('_', " ") == failed.label.name() => {
            format!("({place}, {})", failed.label.name())
        }
        kind => format!("({place}, {}: {})", failed.label.name(), kind.name()),
    };
    let label = super::label::case_label(&failed.id, &failed.name, failed.has_name);
    (one_line(&label, 4000), note)
}

/// Formats the counts and the paths of the reports.
pub(super) fn summary_table(
    look: &ConsoleOptions,
    setting: &RunSettings,
    summary: &RunSummary,
    totals: &ConversationTotals,
    outputs: &[&str],
) -> String {
    let mut out = section(look, "Summary");
    let mut row = |name: &str, value: &str, tone: Option<TextStyle>| {
        let head = format!("  {name:<10} ");
        let room = look.columns_left(columns(&head));
        let lines = wrap(&one_line(value, 1000), room, room);
        let lines: Vec<String> =
            lines.iter().map(|line| tone.map_or(line.clone(), |tone| look.paint(tone, line))).collect();
        let _ = writeln!(out, "{head}{}", lines.join(&format!("\n{}", " ".repeat(columns(&head)))));
    };
    row("Agent:", &agent_names(setting), None);
    let connectors = setting.connectors();
    if !connectors.is_empty() {
        row("Connector:", &connectors.join(", "), None);
    }
    let simulators = setting.simulators();
    if !simulators.is_empty() {
        row("Simulator:", &simulators.join(", "), None);
    }
    let some = |n: usize, tone: TextStyle| (n > 0).then_some(tone);
    row("Total:", &summary.total.to_string(), None);
    let without_faults = if summary.sweep_failures > 0 { " without faults" } else { "" };
    let passed = format!("{}{without_faults}", summary.passed);
    row("Passed:", &passed, some(summary.passed, TextStyle::Good));
    if summary.flaky > 0 {
        row("  Flaky:", &summary.flaky.to_string(), Some(TextStyle::Skipped));
    }
    row("Failed:", &summary.failed.to_string(), some(summary.failed, TextStyle::Bad));
    for (label, number) in failure_counts(summary) {
        row("", &label.count(number), Some(TextStyle::Result(label.color())));
    }
    if summary.sweep_failures > 0 {
        let words = format!("{} with a fault", format_count(summary.sweep_failures, "conversation"));
        row("", &words, Some(TextStyle::Bad));
    }
    if summary.timeouts > 0 {
        row("Timeouts:", &format!("{} of them", summary.timeouts), Some(TextStyle::Bad));
    }
    let failing_skips = if summary.fail_on_skip { summary.unasked_skips } else { 0 };
    if failing_skips > 0 {
        let fail = if failing_skips == 1 { "fails" } else { "fail" };
        // A repeated case with a skipped attempt need not be skipped itself.
        let cases = if failing_skips > summary.skipped { " with skipped attempts" } else { "" };
        let words = format!("{} ({failing_skips}{cases} {fail} the run: --fail-on-skip)", summary.skipped);
        row("Skipped:", &words, Some(TextStyle::Bad));
    } else if summary.skipped > 0 {
        row("Skipped:", &summary.skipped.to_string(), Some(TextStyle::Skipped));
    }
    let soft = &summary.measured.soft;
    if !soft.is_empty() {
        row("Soft:", &format!("{}; informational", format_tally(soft)), None);
    }
    if summary.measured.truncated > 0 {
        let checks = if summary.measured.truncated == 1 { "check was" } else { "checks were" };
        let words = format!(
            "{} {checks} judged on a shortened conversation (evidence.on_overflow: truncate)",
            summary.measured.truncated
        );
        row("Truncated:", &words, Some(TextStyle::Skipped));
    }
    // Estimated usage is not displayed.
    if let Some(spent) = summary.spent.as_deref().filter(|spent| !spent.estimated) {
        row("Tokens:", &format_tokens(spent), None);
        if let Some(cost) = spent.cost {
            row("Cost:", &format_cost(cost, setting.currency.as_deref()), None);
        }
    }
    let rate = summary.pass_rate().map_or_else(|| "no test ran".to_string(), format_percent);
    row("Pass Rate:", &rate, None);
    row("Duration:", &run_duration(setting, summary, totals), None);
    write_turn_totals(setting, totals, &mut out);
    out.push_str(&criteria_lines(look, summary));
    if !outputs.is_empty() {
        out.push('\n');
    }
    for output in outputs {
        let _ = writeln!(out, "  Output: {}", one_line(output, 4000));
    }
    out.push('\n');
    out
}

/// Formats the duration of a run, and the share of each test in it if tests run in parallel.
fn run_duration(setting: &RunSettings, summary: &RunSummary, totals: &ConversationTotals) -> String {
    let mut took = format_duration(summary.duration);
    let (ran, what) = match &summary.repeats {
        Some(_) => (totals.conversations, "run"),
        None => (summary.passed + summary.failed, "test"),
    };
    let ran = u32::try_from(ran).unwrap_or(u32::MAX);
    if setting.effective_parallelism() > 1 && ran > 1 {
        let effective = format_duration(summary.duration / ran);
        let _ = write!(
            took,
            " (effective: {effective}/{what} with {} parallel)",
            setting.effective_parallelism()
        );
    }
    took
}

fn write_turn_totals(setting: &RunSettings, totals: &ConversationTotals, out: &mut String) {
    if (setting.modes.multi_turn || setting.modes.dynamic) && totals.conversations > 0 {
        let average = totals.turns as f64 / totals.conversations as f64;
        let _ = writeln!(out, "\n  Total turns:    {}", totals.turns);
        let is_repeated = totals.conversations > totals.cases;
        let label = if is_repeated { "Avg turns/run: " } else { "Avg turns/test:" };
        let _ = writeln!(out, "  {label} {average:.1}");
        let _ = writeln!(out, "  Total time:     {}", format_duration(totals.duration));
    }
}

/// Returns the failed cases by their label, unless the agent is at fault in all of them.
fn failure_counts(summary: &RunSummary) -> impl Iterator<Item = (ResultLabel, usize)> {
    let is_failure = |label: ResultLabel| !matches!(label, ResultLabel::Passed | ResultLabel::Skipped);
    let of_others = |label: ResultLabel| is_failure(label) && label != ResultLabel::Failed;
    let shown = summary.labels.iter().any(|(label, _)| of_others(label));
    summary.labels.iter().filter(move |(label, _)| shown && is_failure(*label))
}

/// Formats the results of each criterion on one line: as a hard check, and as an informational one.
fn criteria_lines(look: &ConsoleOptions, summary: &RunSummary) -> String {
    let all = &summary.measured.criteria;
    let mut out = String::new();
    if all.is_empty() {
        return out;
    }
    let widest = all.keys().map(|name| columns(name)).max().unwrap_or(0).min(MAX_CRITERION_COLUMNS);
    out.push_str("\n  Criteria:\n");
    for (name, CriterionTally { hard, soft }) in all.iter().take(MAX_CRITERIA) {
        let name = one_line(name, widest);
        let parts = [(hard, "required"), (soft, "informational")];
        let parts = parts.iter().filter(|(of, _)| !of.is_empty());
        let parts: Vec<String> = parts.map(|(of, how)| format!("{how} {}", format_tally(of))).collect();
        let gap = " ".repeat(widest - columns(&name));
        let words = one_line(&format!("{name}{gap}  {}", parts.join(" · ")), look.columns_left(4));
        let _ = writeln!(out, "    {words}");
    }
    if all.len() > MAX_CRITERIA {
        let _ = writeln!(out, "    … and {} more", all.len() - MAX_CRITERIA);
    }
    out
}

/// Maximum number of displayed criteria; reports contain all of them.
const MAX_CRITERIA: usize = 30;
/// Maximum width of the name of a criterion.
const MAX_CRITERION_COLUMNS: usize = 40;

/// Formats `5 of 6 passed (83.3%), 1 errored`.
fn format_tally(tally: &CheckTally) -> String {
    let rate =
        tally.pass_rate().map_or_else(String::new, |rate| format!(" ({})", format_percent(rate * 100.0)));
    let errored = match tally.errored {
        0 => String::new(),
        n => format!(", {n} errored"),
    };
    format!("{} of {} passed{rate}{errored}", tally.passed, tally.evaluated())
}

/// Formats the suggestion for the next step. A command that does not fit is on a line of its own, so that it can be
/// copied.
pub(super) fn format_suggestion(look: &ConsoleOptions, words: &str) -> String {
    let head = "  Next: ";
    let room = look.columns_left(columns(head));
    let words = one_line(words, 1000);
    let command = words.strip_suffix('`').and_then(|words| words.rsplit_once('`'));
    let lines = match command {
        Some((before, command)) if columns(&words) > room && command.contains(' ') => {
            let mut lines = wrap(before.trim_end(), room, room);
            lines.push(command.to_string());
            lines
        }
        _ => wrap(&words, room, room),
    };
    format!(
        "{}{}\n\n",
        look.paint(TextStyle::Strong, head),
        lines.join(&format!("\n{}", " ".repeat(columns(head))))
    )
}

/// Formats the result banner.
pub(super) fn result_banner(look: &ConsoleOptions, summary: &RunSummary) -> String {
    let (words, tone) = match (summary.has_failed(), summary.interrupted) {
        (true, _) if summary.unfinished => {
            ("❌ TESTS FAILED, THE RUN HAS NOT ENDED".to_string(), TextStyle::Bad)
        }
        (false, _) if summary.unfinished => ("⚠ THE RUN HAS NOT ENDED".to_string(), TextStyle::Skipped),
        _ if summary.broken.is_some() => ("❌ THE RUN COULD NOT BE CARRIED OUT".to_string(), TextStyle::Bad),
        (true, false) if summary.failed == 0 && summary.sweep_failures > 0 => {
            ("❌ SWEEP OF FAULTS FAILED".to_string(), TextStyle::Bad)
        }
        (true, false) => ("❌ TESTS FAILED".to_string(), TextStyle::Bad),
        (true, true) => ("❌ TESTS FAILED, INTERRUPTED".to_string(), TextStyle::Bad),
        (false, true) => ("⚠ INTERRUPTED".to_string(), TextStyle::Skipped),
        (false, false) => match summary {
            RunSummary { passed: 0, .. } => ("⚠ NO TEST RAN".to_string(), TextStyle::Skipped),
            RunSummary { skipped, flaky, .. } => {
                let notes = [(*flaky, "flaky"), (*skipped, "skipped")];
                let notes = notes.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}"));
                let notes = notes.collect::<Vec<_>>().join(", ");
                let notes = if notes.is_empty() { notes } else { format!(" ({notes})") };
                (format!("✨ ALL TESTS PASSED ✨{notes}"), TextStyle::Good)
            }
        },
    };
    closing_banner(look, tone, &words)
}

/// Formats the line for cases that were not started, all for the same reason.
pub(super) fn not_run_line(look: &ConsoleOptions, n: usize, why: &str) -> String {
    let (cases, skipped) = (format_count(n, "case"), look.paint(TextStyle::Skipped, "SKIPPED"));
    let why = one_line(why, look.columns_left(columns(&cases) + 11));
    format!("► {cases} {skipped} {}\n", look.paint(TextStyle::Quiet, &why))
}
