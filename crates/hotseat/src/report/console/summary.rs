//! The end of a run: which cases failed, the counts, what to do next, and the banner.

use std::fmt::Write as _;

use hotseat_trace::{FailureKind, Spent};

use super::frame::{agents, closing, section};
use super::look::{Look, Tone};
use crate::report::failures::{Failed, Failures};
use crate::report::words::{columns, count, duration, one_line, percent, wrap};
use crate::run::{OfCriterion, Setting, Summary, Tally};

/// What was said and done in all cases together.
#[derive(Debug, Default)]
pub(super) struct Totals {
    /// How many conversations were begun.
    pub held: usize,
    /// How many turns they have.
    pub turns: usize,
    /// How long they took, one behind the other.
    pub took: std::time::Duration,
}

/// The list of failed cases. A single case needs none: it stands right above.
pub(super) fn failed(look: &Look, failures: &mut Failures, summary: &Summary) -> String {
    let mut out = String::new();
    if failures.count == 0 || summary.total == 1 {
        return out;
    }
    out.push_str(&section(look, "Failed Tests"));
    let count = failures.count;
    let first = failures.first();
    let lines: Vec<(String, String)> = first.iter().map(label_and_note).collect();
    // Places stand below the cases where there is no room beside one of them.
    let taken = |(label, note): &(String, String)| columns(HEAD) + columns(label) + 1 + columns(note);
    let beside = lines.iter().all(|line| taken(line) <= look.width);
    let between = if beside { " " } else { "\n    " };
    for (label, note) in &lines {
        let label = one_line(label, look.left(columns(HEAD)));
        let (mark, note) = (look.paint(Tone::Bad, HEAD), look.paint(Tone::Quiet, note));
        let _ = writeln!(out, "{mark}{label}{between}{note}");
    }
    if count > first.len() {
        let _ = writeln!(out, "  … and {} more", count - first.len());
    }
    out.push('\n');
    out
}

/// `1234 (1200 in, 34 out)`
fn tokens(spent: &Spent) -> String {
    match (spent.input_tokens, spent.output_tokens) {
        (Some(input), Some(output)) => format!("{} ({input} in, {output} out)", spent.total_tokens),
        _ => spent.total_tokens.to_string(),
    }
}

/// What stands before a failed case.
const HEAD: &str = "  ✗ ";

/// What a failed case is called; where it is written, and why it failed if no check decided that.
fn label_and_note(failed: &Failed) -> (String, String) {
    let place = one_line(&failed.place, 4000);
    let note = match failed.kind {
        FailureKind::Assertion => format!("({place})"),
        kind => format!("({place}, {})", kind.name()),
    };
    let label = super::case::label(&failed.id, &failed.name, failed.named);
    (one_line(&label, 4000), note)
}

/// The counts, and where the reports are.
pub(super) fn counts(
    look: &Look,
    setting: &Setting,
    summary: &Summary,
    totals: &Totals,
    outputs: &[&str],
) -> String {
    let mut out = section(look, "Summary");
    let mut row = |name: &str, value: &str, tone: Option<Tone>| {
        let head = format!("  {name:<10} ");
        let room = look.left(columns(&head));
        let lines = wrap(&one_line(value, 1000), room, room);
        let lines: Vec<String> =
            lines.iter().map(|line| tone.map_or(line.clone(), |tone| look.paint(tone, line))).collect();
        let _ = writeln!(out, "{head}{}", lines.join(&format!("\n{}", " ".repeat(columns(&head)))));
    };
    row("Agent:", &agents(setting), None);
    let connectors = setting.connectors();
    if !connectors.is_empty() {
        row("Connector:", &connectors.join(", "), None);
    }
    let simulators = setting.simulators();
    if !simulators.is_empty() {
        row("Simulator:", &simulators.join(", "), None);
    }
    let some = |n: usize, tone: Tone| (n > 0).then_some(tone);
    row("Total:", &summary.total.to_string(), None);
    row("Passed:", &summary.passed.to_string(), some(summary.passed, Tone::Good));
    if summary.flaky > 0 {
        row("  Flaky:", &summary.flaky.to_string(), Some(Tone::Skipped));
    }
    row("Failed:", &summary.failed.to_string(), some(summary.failed, Tone::Bad));
    for (name, n) in [("Errors:", summary.errors), ("Timeouts:", summary.timeouts)] {
        if n > 0 {
            row(name, &format!("{n} of them"), Some(Tone::Bad));
        }
    }
    if summary.skipped > 0 {
        let (words, tone) = match summary.fail_on_skip && summary.unasked_skips > 0 {
            true => {
                let fail = if summary.unasked_skips == 1 { "fails" } else { "fail" };
                let counted = summary.unasked_skips;
                (format!("{} ({counted} {fail} the run: --fail-on-skip)", summary.skipped), Tone::Bad)
            }
            false => (summary.skipped.to_string(), Tone::Skipped),
        };
        row("Skipped:", &words, Some(tone));
    }
    let soft = &summary.measured.soft;
    if !soft.is_empty() {
        row("Measured:", &format!("{}; this decides nothing", tally(soft)), None);
    }
    if summary.measured.truncated > 0 {
        let checks = if summary.measured.truncated == 1 { "check was" } else { "checks were" };
        let words = format!(
            "{} {checks} judged on a shortened conversation (evidence.on_overflow: truncate)",
            summary.measured.truncated
        );
        row("Truncated:", &words, Some(Tone::Skipped));
    }
    // Estimates are not worth a line.
    if let Some(spent) = summary.spent.as_deref().filter(|spent| !spent.estimated) {
        row("Tokens:", &tokens(spent), None);
        if let Some(cost) = spent.cost {
            row("Cost:", &format!("{cost:.4}"), None);
        }
    }
    let rate = summary.pass_rate().map_or_else(|| "no test ran".to_string(), percent);
    row("Pass Rate:", &rate, None);
    let mut took = duration(summary.duration);
    let (ran, what) = match &summary.repeats {
        Some(repeats) => (repeats.total, "run"),
        None => (summary.passed + summary.failed, "test"),
    };
    let ran = u32::try_from(ran).unwrap_or(u32::MAX);
    if setting.at_once() > 1 && ran > 1 {
        let effective = duration(summary.duration / ran);
        let _ = write!(took, " (effective: {effective}/{what} with {} parallel)", setting.at_once());
    }
    row("Duration:", &took, None);
    if (setting.modes.multi_turn || setting.modes.dynamic) && totals.held > 0 {
        let average = totals.turns as f64 / totals.held as f64;
        let _ = writeln!(out, "\n  Total turns:    {}", totals.turns);
        let _ = writeln!(out, "  Avg turns/test: {average:.1}");
        let _ = writeln!(out, "  Total time:     {}", duration(totals.took));
    }
    out.push_str(&criteria(look, summary));
    if !outputs.is_empty() {
        out.push('\n');
    }
    for output in outputs {
        let _ = writeln!(out, "  Output: {}", one_line(output, 4000));
    }
    out.push('\n');
    out
}

/// The criteria and what they came to, each on a line: where they decide, and where they are only measured.
fn criteria(look: &Look, summary: &Summary) -> String {
    let all = &summary.measured.criteria;
    let mut out = String::new();
    if all.is_empty() {
        return out;
    }
    let widest = all.keys().map(|name| columns(name)).max().unwrap_or(0).min(MOST_OF_A_CRITERION);
    out.push_str("\n  Criteria:\n");
    for (name, OfCriterion { hard, soft }) in all.iter().take(MOST_CRITERIA) {
        let name = one_line(name, widest);
        let parts = [(hard, "required"), (soft, "measured")];
        let parts = parts.iter().filter(|(of, _)| !of.is_empty());
        let parts: Vec<String> = parts.map(|(of, how)| format!("{how} {}", tally(of))).collect();
        let gap = " ".repeat(widest - columns(&name));
        let words = one_line(&format!("{name}{gap}  {}", parts.join(" · ")), look.left(4));
        let _ = writeln!(out, "    {words}");
    }
    if all.len() > MOST_CRITERIA {
        let _ = writeln!(out, "    … and {} more", all.len() - MOST_CRITERIA);
    }
    out
}

/// How many criteria are shown; reports hold all.
const MOST_CRITERIA: usize = 30;
/// How many columns the name of a criterion may take.
const MOST_OF_A_CRITERION: usize = 40;

/// `5 of 6 hold (83.3%), 1 could not be judged`.
fn tally(tally: &Tally) -> String {
    let rate = tally.rate().map_or_else(String::new, |rate| format!(" ({})", percent(rate * 100.0)));
    let errored = match tally.errored {
        0 => String::new(),
        n => format!(", {n} could not be judged"),
    };
    format!("{} of {} hold{rate}{errored}", tally.passed, tally.judged())
}

/// What to do next.
pub(super) fn suggestion(look: &Look, words: &str) -> String {
    let head = "  Next: ";
    let room = look.left(columns(head));
    let lines = wrap(&one_line(words, 1000), room, room);
    format!(
        "{}{}\n\n",
        look.paint(Tone::Strong, head),
        lines.join(&format!("\n{}", " ".repeat(columns(head))))
    )
}

/// The last word.
pub(super) fn verdict(look: &Look, summary: &Summary) -> String {
    let (words, tone) = match (summary.has_failed(), summary.interrupted) {
        _ if summary.broken.is_some() => ("❌ THE RUN COULD NOT BE CARRIED OUT".to_string(), Tone::Bad),
        (true, false) => ("❌ TESTS FAILED".to_string(), Tone::Bad),
        (true, true) => ("❌ TESTS FAILED, INTERRUPTED".to_string(), Tone::Bad),
        (false, true) => ("⚠ INTERRUPTED".to_string(), Tone::Skipped),
        (false, false) => match summary {
            Summary { passed: 0, .. } => ("⚠ NO TEST RAN".to_string(), Tone::Skipped),
            Summary { skipped, flaky, .. } => {
                let notes = [(*flaky, "flaky"), (*skipped, "skipped")];
                let notes = notes.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}"));
                let notes = notes.collect::<Vec<_>>().join(", ");
                let notes = if notes.is_empty() { notes } else { format!(" ({notes})") };
                (format!("✨ ALL TESTS PASSED ✨{notes}"), Tone::Good)
            }
        },
    };
    closing(look, tone, &words)
}

/// Cases that were never begun, all for one reason.
pub(super) fn not_run(look: &Look, n: usize, why: &str) -> String {
    let (cases, skipped) = (count(n, "case"), look.paint(Tone::Skipped, "SKIPPED"));
    let why = one_line(why, look.left(columns(&cases) + 11));
    format!("► {cases} {skipped} {}\n", look.paint(Tone::Quiet, &why))
}
