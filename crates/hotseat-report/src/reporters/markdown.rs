//! `.md`: short summary for a comment or a CI job page: failures first, details folded.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::Arc;

use hotseat_trace::{CallComparison, ConversationTurn, ResultLabel, TurnItem, VerdictStatus};

use super::Reporter;
use super::output_file::OutputFile;
use super::text::{
    describe_call, format_cost, format_count, format_duration, last_lines, not_run_turns, one_line,
    safe_lines,
};
use hotseat_engine::run::{CaseOutcome, RunSettings, RunSummary, SweepReport};
use hotseat_engine::session::{CheckResult, CheckState};

/// Maximum size of the failure sections. GitHub limits comments to 65,536 characters, including the text
/// around the sections.
const MAX_SECTIONS_BYTES: usize = 56_000;
/// Maximum length of one message.
const MAX_MESSAGE_BYTES: usize = 1_500;
/// Maximum number of last lines of details.
const MAX_DETAIL_LINES: usize = 20;
/// Maximum number of defects of a sweep.
const MAX_SWEEP_ROWS: usize = 40;
/// Maximum number of differences of a call, and of unexpected calls of a check.
const MAX_DIFFERENCES: usize = 12;

/// Reporter that writes Markdown at the end of the run. If not all failure sections fit, those of the first
/// cases are kept.
pub struct MarkdownReporter {
    file: OutputFile,
    setting: Arc<RunSettings>,
    sections: BTreeMap<usize, String>,
    free_bytes: usize,
}

impl MarkdownReporter {
    /// Creates a reporter that writes to a file.
    pub fn new(file: OutputFile, setting: Arc<RunSettings>) -> Self {
        let sections = BTreeMap::new();
        MarkdownReporter { file, setting, sections, free_bytes: MAX_SECTIONS_BYTES }
    }

    fn add_section(&mut self, outcome: &CaseOutcome) {
        if outcome.verdict.status != VerdictStatus::Failed && !outcome.is_flaky() {
            return;
        }
        let section = failure_section(outcome);
        if section.len() > MAX_SECTIONS_BYTES {
            return;
        }
        let index = outcome.case_ref.index;
        while section.len() > self.free_bytes {
            let Some(last) = self.sections.last_entry().filter(|last| *last.key() > index) else { return };
            self.free_bytes += last.remove().len();
        }
        self.free_bytes -= section.len();
        self.sections.insert(index, section);
    }

    fn render(&self, summary: &RunSummary) -> String {
        let agents: Vec<&str> = self.setting.agents().map(|agent| &*agent.id).collect();
        let mark = match summary {
            _ if summary.has_failed() || summary.interrupted || summary.broken.is_some() => "❌",
            RunSummary { passed: 0, .. } => "⚠️",
            RunSummary { .. } => "✅",
        };
        let mut out = format!("## {mark} {}\n\n", escape_inline(&agents.join(", ")));
        let counts = summary.labels.iter().filter(|(label, _)| *label != ResultLabel::Passed);
        let mut parts = vec![ResultLabel::Passed.count(summary.passed)];
        if summary.flaky > 0 {
            let _ = write!(parts[0], " ({} flaky)", summary.flaky);
        }
        // Runs that an earlier version saved have no labels.
        let unlabelled = [(ResultLabel::Failed, summary.failed), (ResultLabel::Skipped, summary.skipped)];
        let unlabelled =
            unlabelled.into_iter().filter(|(_, number)| summary.labels.is_empty() && *number > 0);
        parts.extend(counts.chain(unlabelled).map(|(label, number)| label.count(number)));
        let parts: Vec<String> = parts.iter().map(|part| format!("**{part}**")).collect();
        let _ = write!(
            out,
            "{} of {} in {}",
            parts.join(", "),
            format_count(summary.total, "case"),
            format_duration(summary.duration)
        );
        if summary.sweep_failures > 0 {
            let count = format_count(summary.sweep_failures, "conversation");
            let _ = write!(out, ", **{count} with a fault failed**");
        }
        if let Some(of) = &self.setting.rechecked {
            let _ = write!(out, ", a recheck of run {of}");
        }
        if let Some(spent) = summary.spent.as_deref() {
            let _ = write!(out, ", {} tokens", spent.total_tokens);
            if let Some(cost) = spent.cost {
                let cost = format_cost(cost, self.setting.currency.as_deref());
                let _ = write!(out, ", cost {}", escape_inline(&cost));
            }
        }
        out.push('\n');
        if summary.interrupted && !summary.unfinished {
            out.push_str("\nThe run was interrupted.\n");
        }
        out.extend(summary.sweep.as_deref().filter(|sweep| !sweep.rows.is_empty()).map(sweep_section));
        if let Some(why) = &summary.broken {
            let head = if summary.unfinished { "Incomplete" } else { "The run could not be carried out" };
            let _ = writeln!(out, "\n{head}: {}", escape_inline(why));
        }
        self.sections.values().for_each(|section| out.push_str(section));
        let missing = (summary.failed + summary.flaky).saturating_sub(self.sections.len());
        if missing > 0 {
            let _ = write!(out, "\n… and {missing} more that do not fit here.\n");
        }
        out
    }
}

impl Reporter for MarkdownReporter {
    fn report_case(&mut self, outcome: &CaseOutcome) -> io::Result<()> {
        self.add_section(outcome);
        Ok(())
    }

    fn report_run(&mut self, summary: &RunSummary) -> io::Result<()> {
        let text = self.render(summary);
        self.file.write(|out| out.write_all(text.as_bytes()))
    }
}

/// Formats the outcomes of a sweep of faults: their numbers, and the defects.
fn sweep_section(report: &SweepReport) -> String {
    let mut out = format!("\n### Faults\n\n{}\n", report.totals());
    let rows = report.rows.iter().zip(report.tool_labels());
    let bad = rows.filter(|(row, _)| row.outcome.is_bad());
    let shown: Vec<String> = bad
        .clone()
        .take(MAX_SWEEP_ROWS)
        .map(|(row, tool)| {
            let (case, tool) = (escape_inline(&row.case), format_code(&tool));
            let (fault, outcome) = (format_code(&row.fault), row.outcome);
            let message = row
                .message
                .as_ref()
                .map_or_else(String::new, |message| format!(": {}", escape_inline(message)));
            format!("- {case}: {tool} #{}, {fault}: **{outcome}**{message}\n", row.nth)
        })
        .collect();
    if !shown.is_empty() {
        let _ = write!(out, "\n{}", shown.concat());
    }
    let more = bad.count() - shown.len();
    if more > 0 {
        let _ = write!(out, "\n… and {more} more\n");
    }
    out
}

/// Formats the section of a failed or flaky case.
fn failure_section(outcome: &CaseOutcome) -> String {
    let (case, told) = (&outcome.case_ref.case, outcome.representative());
    let mark = if outcome.is_flaky() { "≈" } else { "✗" };
    let place = format!("{}:{}", case.place.file(), case.place.line());
    let mut out = format!("\n### {mark} {}\n\n{}", escape_inline(&case.name), format_code(&place));
    if let Some(failure) = &outcome.verdict.failure {
        let label = ResultLabel::from(failure.fault).name();
        let (kind, message) = (format_code(failure.kind.name()), escape_inline(&failure.message));
        let _ = write!(out, " · **{label}** · {kind} · {message}");
    } else {
        let _ = write!(out, " · passed at attempt {}", outcome.attempts.len());
    }
    out.push('\n');
    let failed: Vec<&CheckResult> = told.checks.iter().filter(|checked| checked.fails()).collect();
    if !failed.is_empty() {
        out.push('\n');
    }
    // Failed checks are part of the details.
    let details = match (failed.is_empty(), &outcome.verdict.failure) {
        (true, Some(failure)) => failure.detail.as_ref(),
        _ => told.agent_diagnostics.as_ref(),
    };
    for checked in failed {
        let turn = checked.turn.map_or_else(String::new, |turn| format!("turn {turn}: "));
        let comparison = checked.verdict.comparison.as_deref();
        let actual = comparison.map_or(&checked.verdict.actual, |comparison| &comparison.summary);
        let (expected, actual) = (escape_inline(&checked.verdict.expected), escape_inline(actual));
        let label = if checked.state() == CheckState::Errored { "error:" } else { "got" };
        let _ = write!(out, "- {turn}expected {expected},<br>{label} {actual}");
        if let Some(call_site) = &checked.check.call_site {
            let (place, call) = (format_code(&checked.check.place.to_string()), describe_call(call_site));
            let _ = write!(out, ",<br>at {place}, called at {}", format_code(&call));
        }
        out.push('\n');
        if let Some(comparison) = comparison {
            write_comparison(comparison, &mut out);
        }
    }
    if let Some(details) = details {
        let lines = last_lines(details, MAX_DETAIL_LINES);
        let lines: Vec<String> = safe_lines(&lines).collect();
        let _ = write!(out, "\n{}", fence(&lines.join("\n")));
    }
    if !told.conversation.turns.is_empty() {
        let turns = format_count(told.conversation.turns.len(), "turn");
        let _ = write!(out, "\n<details><summary>Conversation, {turns}</summary>\n\n");
        told.conversation.turns.iter().for_each(|turn| out.push_str(&fence(&format_turn(turn))));
        out.extend(not_run_turns(told, "Turn").map(|words| format!("\n{words}\n")));
        out.push_str("</details>\n");
    }
    out
}

/// Writes the missing calls, their differences, and the calls that the check does not allow as a nested list.
fn write_comparison(comparison: &CallComparison, out: &mut String) {
    let mut item = |text: &str| {
        let _ = writeln!(out, "  - {}", escape_inline(text));
    };
    for missing in &comparison.missing {
        if let Some(expected) = &missing.expected {
            item(&format!("missing: {expected}"));
        }
        if let Some(nearest) = &missing.nearest {
            item(&format!("nearest: {} in turn {}", nearest.tool, nearest.turn));
            nearest
                .differences
                .iter()
                .take(MAX_DIFFERENCES)
                .for_each(|difference| item(&difference.to_string()));
        }
    }
    let unexpected = comparison.lines.iter().filter(|line| line.unexpected);
    unexpected.take(MAX_DIFFERENCES).for_each(|line| item(&format!("{}{}", line.label(), line.text)));
}

/// Formats the messages and tool calls of a turn as lines of text.
fn format_turn(turn: &ConversationTurn) -> String {
    let mut out = format!("Turn {}\n", turn.number);
    let mut say = |who: &str, text: &str| {
        let mut shown: String = safe_lines(text).collect::<Vec<_>>().join("\n  ");
        if shown.len() > MAX_MESSAGE_BYTES {
            shown.truncate(shown.floor_char_boundary(MAX_MESSAGE_BYTES));
            shown.push_str(" …");
        }
        let _ = writeln!(out, "{who}: {shown}");
    };
    if let Some(user) = &turn.user {
        say("User", user);
    }
    for item in turn.items() {
        match item {
            TurnItem::Message(message) => say("Agent", &message.content),
            TurnItem::Call(call) => {
                let result = match &call.result {
                    Some(result) if result.failed => format!("failed: {}", result.text()),
                    Some(result) => result.text(),
                    None => "no result".to_string(),
                };
                say("Tool", &format!("{}({}){} → {result}", call.name, call.arguments, call.server_label()));
            }
        }
    }
    out
}

/// Formats text as a code block, with a fence that is longer than any run of backticks in it.
pub(crate) fn fence(text: &str) -> String {
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}text\n{}\n{fence}\n", text.trim_end())
}

/// Escapes a text for use within a line: no markup, HTML, mention or link remains.
pub(crate) fn escape_inline(text: &str) -> String {
    let mut out = String::new();
    for c in one_line(text, 400).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // Mentions and references are detected after entities are decoded, so a zero-width space is
            // added.
            '@' => out.push_str("&#64;&#8203;"),
            '#' => out.push_str("&#35;&#8203;"),
            ':' => out.push_str("&#58;"),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '(' | ')' | '!' | '|' | '~' | '$' | '+'
            | '-' | '.' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// Formats a text as inline code.
pub(crate) fn format_code(text: &str) -> String {
    let text = one_line(text, 200).replace('&', "&amp;").replace('<', "&lt;").replace('`', "&#96;");
    format!("<code>{}</code>", text.replace('@', "&#64;").replace('*', "&#42;").replace('_', "&#95;"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_untrusted_text() {
        assert_eq!(
            escape_inline("<b>@me **x** [a](b)"),
            "&lt;b&gt;&#64;&#8203;me \\*\\*x\\*\\* \\[a\\]\\(b\\)"
        );
        assert_eq!(escape_inline("a\n# b"), "a⏎&#35;&#8203; b");
        assert_eq!(fence("a ```` b\n"), "`````text\na ```` b\n`````\n");
        assert_eq!(format_code("a_b`<"), "<code>a&#95;b&#96;&lt;</code>");
    }
}
