//! The console: a line for each case as it ends, the conversation where one failed, a summary.

use std::fmt::Write as _;
use std::io::{self, Write};

use hotseat_trace::{Failure, FailureKind, Status, Turn};

use super::words::{count, duration, lines, one_line};
use super::{Reporter, RunEvent};
use crate::document::Diagnostic;
use crate::run::{Attempt, Control, Plan, Summary};
use crate::session::Checked;

/// How things look, decided once by whoever knows the terminal.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// Whether colours are used.
    pub color: bool,
    /// How many columns there are.
    pub width: usize,
    /// Whether a line at the bottom shows what is going on.
    pub progress: bool,
    /// Whether conversations are shown that did not fail.
    pub verbose: bool,
}

/// Writes for people.
pub struct Console<W> {
    out: W,
    look: Look,
    /// The target, as it is shown at the start.
    target: String,
    running: Vec<String>,
    total: usize,
    ended: usize,
    failed: usize,
    /// Whether a progress line stands at the bottom.
    drawn: bool,
}

/// What a piece of text is, which decides its colour.
#[derive(Clone, Copy)]
enum Tone {
    Good,
    Bad,
    Skipped,
    Quiet,
    Strong,
}

impl<W: Write + Send> Console<W> {
    /// A console that writes to `out`. `target` is shown at the start.
    pub fn new(out: W, look: Look, target: String) -> Self {
        Console { out, look, target, running: Vec::new(), total: 0, ended: 0, failed: 0, drawn: false }
    }

    fn paint(&self, tone: Tone, text: &str) -> String {
        if !self.look.color {
            return text.to_string();
        }
        let code = match tone {
            Tone::Good => "32",
            Tone::Bad => "31",
            Tone::Skipped => "33",
            Tone::Quiet => "2",
            Tone::Strong => "1",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    fn started(&self, plan: &Plan, parallel: usize) -> String {
        let mut out = format!("{} {}", self.paint(Tone::Strong, "Hotseat"), env!("CARGO_PKG_VERSION"));
        let _ = write!(out, " · {} from {}", count(plan.selected, "case"), count(plan.selected_suites, "suite"));
        if plan.selected < plan.total {
            let _ = write!(out, " ({} not selected)", plan.total - plan.selected);
        }
        if plan.selected > 1 {
            let _ = write!(out, " · {parallel} at once");
        }
        let _ = writeln!(out, " · {}\n", self.target);
        out
    }

    fn case(&self, attempt: &Attempt) -> String {
        let case = &attempt.selected.case;
        let verdict = match attempt.verdict.status {
            Status::Passed => self.paint(Tone::Good, "PASSED"),
            Status::Failed => self.paint(Tone::Bad, "FAILED"),
            Status::Skipped => self.paint(Tone::Skipped, "SKIPPED"),
        };
        let turns = count(case.turns.len(), "turn");
        // What follows the name takes about thirty columns.
        let name = one_line(&case.name, self.look.width.saturating_sub(34).max(20));
        let mut out = format!("► {name} {} {verdict}", self.paint(Tone::Quiet, &format!("({turns})")));
        match (attempt.verdict.status, &attempt.verdict.skip_reason) {
            (Status::Skipped, Some(reason)) => {
                let _ = writeln!(out, " {}", self.paint(Tone::Quiet, &one_line(reason, self.look.width)));
            }
            _ => {
                let _ = writeln!(out, " {}", self.paint(Tone::Quiet, &format!("({})", duration(attempt.duration))));
            }
        }
        if attempt.verdict.status == Status::Failed || self.look.verbose {
            for turn in &attempt.conversation.turns {
                self.turn(turn, attempt, &mut out);
            }
        }
        if self.look.verbose {
            let held = attempt.checks.iter().filter(|checked| checked.turn.is_none());
            held.for_each(|checked| self.check("  ", checked, &mut out));
        }
        if let Some(failure) = &attempt.verdict.failure {
            self.failure(failure, attempt, &mut out);
        }
        out
    }

    fn turn(&self, turn: &Turn, attempt: &Attempt, out: &mut String) {
        let width = self.look.width;
        let said = one_line(turn.user.as_deref().unwrap_or(""), width.saturating_sub(30).max(20));
        let took = self.paint(Tone::Quiet, &format!("({})", duration(turn.duration())));
        let _ = writeln!(out, "  ├─ Turn {}: \"{said}\" {took}", turn.number);
        // Calls and messages in the order in which they began.
        let calls = turn.tool_calls.iter().map(|call| (call.started, 0, {
            let result = match &call.result {
                Some(result) if result.failed => format!("failed: {}", result.text()),
                Some(result) => result.text(),
                None => "no result".to_string(),
            };
            format!("{}({}) → {result}", call.name, call.arguments)
        }));
        let messages = turn.messages.iter().map(|message| {
            (message.started.unwrap_or(message.ended), 1, format!("Agent: \"{}\"", message.content))
        });
        let mut doings: Vec<_> = calls.chain(messages).collect();
        doings.sort_by_key(|(started, kind, _)| (*started, *kind));
        for (_, _, words) in doings {
            let _ = writeln!(out, "  │    {}", one_line(&words, width.saturating_sub(8).max(20)));
        }
        for interrupt in &turn.interrupts {
            let asked = interrupt.message.as_deref().or(interrupt.reason.as_deref()).unwrap_or("");
            let answer = interrupt.answer.as_ref().map_or("unanswered", |(status, _)| status);
            let words = one_line(asked, width.saturating_sub(40).max(20));
            let _ = writeln!(out, "  │    {}", self.paint(Tone::Quiet, &format!("paused: {words} → {answer}")));
        }
        if let Some(error) = &turn.run_error {
            let words = one_line(&error.message, width.saturating_sub(20).max(20));
            let _ = writeln!(out, "  │    {}", self.paint(Tone::Bad, &format!("error: {words}")));
        }
        for note in &turn.notes {
            let words = one_line(note, width.saturating_sub(14).max(20));
            let _ = writeln!(out, "  │    {}", self.paint(Tone::Quiet, &format!("note: {words}")));
        }
        let judged = attempt.checks.iter().filter(|checked| checked.turn == Some(turn.number));
        judged.for_each(|checked| self.check("  │    ", checked, out));
    }

    fn check(&self, indent: &str, checked: &Checked, out: &mut String) {
        let (mark, tone) = if checked.verdict.passed { ("✓", Tone::Good) } else { ("✗", Tone::Bad) };
        let words = one_line(&checked.verdict.expected, self.look.width.saturating_sub(10).max(20));
        let _ = writeln!(out, "{indent}{} {words}", self.paint(tone, mark));
    }

    fn failure(&self, failure: &Failure, attempt: &Attempt, out: &mut String) {
        let kind = self.paint(Tone::Bad, failure.kind.name());
        let message = one_line(&failure.message, 2000);
        let _ = writeln!(out, "  └─ {kind}: {message}\n");
        let failed: Vec<&Checked> = attempt.checks.iter().filter(|checked| !checked.verdict.passed).collect();
        if failure.kind == FailureKind::Assertion && !failed.is_empty() {
            for checked in failed {
                self.snippet(checked, out);
            }
            return;
        }
        if let Some(detail) = &failure.detail {
            for line in lines(detail) {
                let _ = writeln!(out, "     │ {line}");
            }
            out.push('\n');
        }
        let place = &attempt.selected.case.place;
        let _ = writeln!(out, "     {}\n", self.paint(Tone::Quiet, &format!("case at {place}")));
    }

    /// A failed check as a snippet of the file in which it stands.
    fn snippet(&self, checked: &Checked, out: &mut String) {
        let message = match checked.turn {
            Some(turn) => format!("turn {turn}: {}", checked.verdict.expected),
            None => checked.verdict.expected.clone(),
        };
        let diagnostic = Diagnostic::new(message).at(checked.check.place.clone());
        for line in diagnostic.render(self.look.color, self.look.width.saturating_sub(5)).lines() {
            let _ = writeln!(out, "     {line}");
        }
        let _ = write!(out, "     {}", self.paint(Tone::Strong, "found:"));
        // Two lines' worth; reports hold it whole.
        let width = (2 * self.look.width).saturating_sub(14).max(60);
        for line in lines(&checked.verdict.actual) {
            let _ = writeln!(out, " {}", one_line(&line, width));
            out.push_str("           ");
        }
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
    }

    fn summary(&self, summary: &Summary) -> String {
        let part = |n: usize, what: &str, tone: Tone| (n > 0).then(|| self.paint(tone, &format!("{n} {what}")));
        let mut parts: Vec<String> = [
            part(summary.passed, "passed", Tone::Good),
            part(summary.failed, "failed", Tone::Bad),
            part(summary.skipped, "skipped", Tone::Skipped),
        ]
        .into_iter()
        .flatten()
        .collect();
        if parts.is_empty() {
            parts.push("nothing ran".to_string());
        }
        // Of the failures, those that no check decided.
        let kinds = [(summary.errors, "error"), (summary.timeouts, "timeout")];
        let kinds: Vec<String> = kinds.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| count(n, what)).collect();
        let kinds = if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
        let interrupted = if summary.interrupted { " · interrupted" } else { "" };
        let took = duration(summary.duration);
        format!("{}: {}{kinds} in {took}{interrupted}\n", count(summary.total, "case"), parts.join(", "))
    }

    fn clear_progress(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.drawn) { self.out.write_all(b"\r\x1b[2K") } else { Ok(()) }
    }

    fn draw_progress(&mut self) -> io::Result<()> {
        if !self.look.progress {
            return Ok(());
        }
        let mut line = format!("{}/{} done", self.ended, self.total);
        if self.failed > 0 {
            let _ = write!(line, ", {} failed", self.failed);
        }
        if !self.running.is_empty() {
            let _ = write!(line, " · {} running: {}", self.running.len(), self.running.join(", "));
        }
        let line = one_line(&line, self.look.width.saturating_sub(1));
        self.drawn = true;
        write!(self.out, "\r\x1b[2K{}", self.paint(Tone::Quiet, &line))
    }
}

impl<W: Write + Send> Reporter for Console<W> {
    fn report(&mut self, event: &RunEvent<'_>) -> io::Result<()> {
        self.clear_progress()?;
        match event {
            RunEvent::Started { plan, parallel, .. } => {
                self.total = plan.selected;
                let head = self.started(plan, *parallel);
                self.out.write_all(head.as_bytes())?;
            }
            RunEvent::CaseStarted(selected) => self.running.push(selected.case.name.clone()),
            RunEvent::CaseEnded(attempt) => {
                self.ended += 1;
                self.failed += usize::from(attempt.verdict.status == Status::Failed);
                if let Some(place) = self.running.iter().position(|name| *name == attempt.selected.case.name) {
                    self.running.remove(place);
                }
                let text = self.case(attempt);
                self.out.write_all(text.as_bytes())?;
            }
            RunEvent::Stopping(Control::Cancel) => writeln!(self.out, "cancelling what runs")?,
            RunEvent::Stopping(_) => {
                let words = "no new cases; waiting for those that run (Ctrl-C again cancels them)";
                writeln!(self.out, "{words}")?;
            }
            RunEvent::Ended(summary) => {
                let text = self.summary(summary);
                self.out.write_all(b"\n")?;
                self.out.write_all(text.as_bytes())?;
                return self.out.flush();
            }
        }
        self.draw_progress()?;
        self.out.flush()
    }
}
