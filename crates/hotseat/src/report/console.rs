//! The console: a line for each case as it ends, the conversation where one failed, a summary.
//!
//! Nothing that an agent said may steer a terminal or a CI server: control characters are made visible, and no
//! line begins with its words.

use std::fmt::Write as _;
use std::io::{self, Write};

use hotseat_trace::{Failure, FailureKind, Status, Turn};

use super::words::{columns, count, duration, lines, one_line, wrap};
use super::{Reporter, RunEvent};
use crate::run::{Attempt, Control, Plan, Summary};
use crate::session::{Checked, MORE_INPUT};
use hotseat_document::Diagnostic;

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
    /// For the first cases that failed: their place in the run, and a line.
    failures: Vec<(usize, String)>,
    /// How many cases were never begun, and why.
    not_run: usize,
    why_not_run: String,
    /// Whether a progress line stands at the bottom.
    drawn: bool,
    /// Whether the last line that was written is an empty one.
    gap: bool,
}

/// What a piece of text is, which decides its colour.
#[derive(Clone, Copy)]
enum Tone {
    Good,
    Bad,
    Skipped,
    Quiet,
    Strong,
    /// The frame of a snippet.
    Frame,
}

/// How many cases that failed are named once more at the end.
const NAMED: usize = 30;
/// How many lines of what a check found are shown.
const FOUND: usize = 12;
/// How many columns are kept for a duration, so that texts beside it are cut alike whatever it is.
const TOOK: usize = "(12m 34s)".len();
/// What stands before everything that happened in a turn.
const TRUNK: &str = "  │    ";
/// What stands before the lines of a failure.
const MARGIN: &str = "     ";

impl<W: Write + Send> Console<W> {
    /// A console that writes to `out`. `target` is shown at the start.
    pub fn new(out: W, look: Look, target: String) -> Self {
        Console {
            out,
            look,
            target,
            running: Vec::new(),
            total: 0,
            ended: 0,
            failed: 0,
            failures: Vec::new(),
            not_run: 0,
            why_not_run: String::new(),
            drawn: false,
            gap: false,
        }
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
            Tone::Frame => "1;94",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// How many columns are left beside something that takes `taken`; never so few that nothing can be read.
    fn left(&self, taken: usize) -> usize {
        self.look.width.saturating_sub(taken).max(20)
    }

    fn started(&self, plan: &Plan, parallel: usize) -> String {
        let name = "Hotseat";
        let mut line = format!("{name} {}", env!("CARGO_PKG_VERSION"));
        let _ =
            write!(line, " · {} from {}", count(plan.selected, "case"), count(plan.selected_suites, "suite"));
        if plan.selected < plan.total {
            let _ = write!(line, " ({} not selected)", plan.total - plan.selected);
        }
        if plan.selected > 1 {
            let _ = write!(line, " · {} at once", parallel.min(plan.selected));
        }
        let _ = write!(line, " · {}", one_line(&self.target, 500));
        let lines = wrap(&line, self.look.width, self.look.width.saturating_sub(2)).join("\n  ");
        format!("{}\n\n", lines.replacen(name, &self.paint(Tone::Strong, name), 1))
    }

    fn case(&mut self, attempt: &Attempt) -> String {
        let skipped = attempt.verdict.status == Status::Skipped;
        let was_held = !attempt.conversation.turns.is_empty();
        if skipped && !was_held && attempt.selected.case.skip.is_none() && !self.look.verbose {
            // A run that ends early leaves many such cases, for one reason.
            self.not_run += 1;
            self.why_not_run = attempt.verdict.skip_reason.clone().unwrap_or_default();
            return String::new();
        }
        let mut out = self.headline(attempt);
        let turns = &attempt.conversation.turns;
        let failure = attempt.verdict.failure.as_ref();
        if failure.is_none() && (turns.is_empty() || !(self.look.verbose || skipped)) {
            return out;
        }
        for turn in turns {
            self.turn(turn, attempt, &mut out);
        }
        if self.look.verbose {
            let mut whole = attempt.checks.iter().filter(|checked| checked.turn.is_none()).peekable();
            if whole.peek().is_some() {
                out.push_str("  ├─ Whole conversation\n");
            }
            whole.for_each(|checked| self.check(checked, &mut out));
        }
        match failure {
            Some(failure) => self.failure(failure, attempt, &mut out),
            None if skipped => self.without_input(attempt, &mut out),
            None => {
                let held = match attempt.checks.iter().filter(|checked| checked.check.is_hard()).count() {
                    0 => "nothing was asserted".to_string(),
                    1 => "1 check holds".to_string(),
                    n => format!("{n} checks hold"),
                };
                let _ = writeln!(out, "  └─ {}\n", self.paint(Tone::Quiet, &held));
            }
        }
        out
    }

    /// The line that every case has.
    fn headline(&self, attempt: &Attempt) -> String {
        let case = &attempt.selected.case;
        let (verdict, tone) = match attempt.verdict.status {
            Status::Passed => ("PASSED", Tone::Good),
            Status::Failed => ("FAILED", Tone::Bad),
            Status::Skipped => ("SKIPPED", Tone::Skipped),
        };
        let turns = format!("({})", count(case.turns.len(), "turn"));
        let mut taken = columns("►    ") + columns(&turns) + columns(verdict);
        let (name, note) = match (attempt.verdict.status, &attempt.verdict.skip_reason) {
            (Status::Skipped, Some(reason)) => {
                // The name gives way to the reason, but not to all of a long one.
                let name = one_line(&case.name, self.left(taken + columns(reason).min(30)));
                taken += columns(&name);
                (name, one_line(reason, self.left(taken)))
            }
            _ => {
                let reached = attempt.checkpoints.iter().filter(|reached| reached.at.is_some()).count();
                let reached = match attempt.checkpoints.len() {
                    0 => String::new(),
                    all => format!(" - {reached}/{}", count(all, "checkpoint")),
                };
                let took = format!("({}){reached}", duration(attempt.duration));
                (one_line(&case.name, self.left(taken + TOOK + columns(&reached))), took)
            }
        };
        let (turns, note) = (self.paint(Tone::Quiet, &turns), self.paint(Tone::Quiet, &note));
        format!("► {name} {turns} {} {note}\n", self.paint(tone, verdict))
    }

    fn turn(&self, turn: &Turn, attempt: &Attempt, out: &mut String) {
        let head = format!("  ├─ Turn {}: ", turn.number);
        let took = format!("({})", duration(turn.duration()));
        let said = one_line(turn.user.as_deref().unwrap_or(""), self.left(columns(&head) + TOOK + 3));
        let _ = writeln!(out, "{head}\"{said}\" {}", self.paint(Tone::Quiet, &took));

        // Calls and messages in the order in which they began.
        let calls = turn.tool_calls.iter().map(|call| {
            let result = match &call.result {
                Some(result) if result.failed => format!("failed: {}", result.text()),
                Some(result) => result.text(),
                None => "no result".to_string(),
            };
            (call.started, 0, format!("{}({}) → {result}", call.name, call.arguments))
        });
        let messages = turn.messages.iter().map(|message| {
            (message.started.unwrap_or(message.ended), 1, format!("Agent: \"{}\"", message.content))
        });
        let mut doings: Vec<_> = calls.chain(messages).collect();
        doings.sort_by_key(|(started, kind, _)| (*started, *kind));
        for (_, _, words) in doings {
            let _ = writeln!(out, "{TRUNK}{}", one_line(&words, self.left(columns(TRUNK))));
        }

        let mut line = |tone: Tone, words: String| {
            let words = one_line(&words, self.left(columns(TRUNK)));
            let _ = writeln!(out, "{TRUNK}{}", self.paint(tone, &words));
        };
        for interrupt in &turn.interrupts {
            let asked = interrupt.message.as_deref().or(interrupt.reason.as_deref()).unwrap_or("");
            let answer = interrupt.answer.as_ref().map_or("unanswered", |(status, _)| status);
            line(Tone::Quiet, format!("paused: {asked} → {answer}"));
        }
        if let Some(error) = &turn.run_error {
            line(Tone::Bad, format!("error: {}", error.message));
        }
        for note in &turn.notes {
            line(Tone::Quiet, format!("note: {note}"));
        }
        let judged = attempt.checks.iter().filter(|checked| checked.turn == Some(turn.number));
        judged.for_each(|checked| self.check(checked, out));
        let reached = attempt.checkpoints.iter().filter(|reached| reached.at == Some(turn.number));
        for reached in reached {
            let words =
                one_line(&reached.checkpoint.id, self.left(columns(TRUNK) + columns("✓ checkpoint: ")));
            let _ = writeln!(out, "{TRUNK}{} checkpoint: {words}", self.paint(Tone::Good, "✓"));
        }
    }

    /// The end of a conversation that could not go on because nobody answers the agent.
    fn without_input(&self, attempt: &Attempt, out: &mut String) {
        let turns = &attempt.conversation.turns;
        let _ = writeln!(out, "  ├─ Turn {}: {}", turns.len() + 1, self.paint(Tone::Skipped, "SKIPPED"));
        let asked = turns.last().and_then(|turn| turn.answer()).unwrap_or_default();
        for words in [
            format!("Reason: {}", attempt.verdict.skip_reason.as_deref().unwrap_or_default()),
            format!("Agent asked: \"{asked}\""),
            format!("Hint: {MORE_INPUT}"),
        ] {
            let _ = writeln!(out, "{TRUNK}{}", one_line(&words, self.left(columns(TRUNK))));
        }
        let _ = writeln!(out, "  └─ Result: {}\n", self.paint(Tone::Skipped, "SKIPPED"));
    }

    fn check(&self, checked: &Checked, out: &mut String) {
        let (mark, tone) = match (checked.verdict.passed, checked.check.is_hard()) {
            (true, _) => ("✓", Tone::Good),
            (false, true) => ("✗", Tone::Bad),
            (false, false) => ("○", Tone::Quiet),
        };
        let note = if checked.check.is_hard() { "" } else { " (measured only)" };
        let words = one_line(&checked.verdict.expected, self.left(columns(TRUNK) + 2 + columns(note))) + note;
        let _ = writeln!(out, "{TRUNK}{} {words}", self.paint(tone, mark));
    }

    /// Why a case failed: the checks that do not hold, or whatever else there is to say.
    fn failure(&self, failure: &Failure, attempt: &Attempt, out: &mut String) {
        let kind = failure.kind.name();
        let hard = attempt.checks.iter().filter(|checked| checked.check.is_hard());
        let (all, failed): (usize, Vec<&Checked>) =
            (hard.clone().count(), hard.filter(|checked| checked.fails()).collect());
        let by_checks = failure.kind == FailureKind::Assertion && !failed.is_empty();
        let message = match (failed.len(), all) {
            (1, 1) if by_checks => "a check does not hold".to_string(),
            (n, all) if by_checks => {
                format!("{n} of {all} checks {} not hold", if n == 1 { "does" } else { "do" })
            }
            _ => one_line(&failure.message, 4000),
        };
        let head = format!("  └─ {kind}: ");
        let quoted = format!("{MARGIN}│ ");
        let mut message = wrap(&message, self.left(columns(&head)), self.left(columns(&quoted))).into_iter();
        let _ = writeln!(out, "  └─ {}: {}", self.paint(Tone::Bad, kind), message.next().unwrap_or_default());
        message.for_each(|line| {
            let _ = writeln!(out, "{quoted}{line}");
        });
        out.push('\n');

        if by_checks {
            failed.into_iter().for_each(|checked| self.snippet(checked, out));
            return;
        }
        if let Some(detail) = &failure.detail {
            let room = self.left(columns(&quoted));
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
        let _ = writeln!(out, "{MARGIN}{} {}\n", self.paint(Tone::Frame, "-->"), one_line(&place, 4000));
    }

    /// A failed check: what was expected, where that is written, and what was found.
    fn snippet(&self, checked: &Checked, out: &mut String) {
        let place = &checked.check.place;
        let words = checked.check.message.as_ref().unwrap_or(&checked.verdict.expected);
        let expected = match checked.turn {
            Some(turn) => format!("turn {turn}: {words}"),
            None => words.clone(),
        };
        let left = self.left(columns(MARGIN) + 2);
        for (number, line) in wrap(&one_line(&expected, 4000), left, left).iter().enumerate() {
            let mark = if number == 0 { self.paint(Tone::Bad, "✗") } else { " ".to_string() };
            let _ = writeln!(out, "{MARGIN}{mark} {}", self.paint(Tone::Strong, line));
        }
        // The title of a rendered mistake is its first line; ours stands above already.
        let rendered =
            Diagnostic::new("").at(place.clone()).render(self.look.color, self.left(columns(MARGIN)));
        for line in rendered.lines().skip(1) {
            let _ = writeln!(out, "{MARGIN}{line}");
        }

        let gutter = format!("{MARGIN}{}", " ".repeat(place.line().to_string().len() + 1));
        let bar = format!("{gutter}{}", self.paint(Tone::Frame, "|"));
        let mut found = lines(&checked.verdict.actual);
        let first = found.next().unwrap_or_default();
        let room = self.left(columns(&gutter) + 4);
        let mut shown = wrap(&first, room.saturating_sub(columns("found: ") - 2), room);
        for line in found {
            let hang = if line.starts_with("- ") { "  " } else { "" };
            let broken = wrap(&line, room, room - hang.len());
            let hung =
                |(number, line): (usize, String)| if number == 0 { line } else { format!("{hang}{line}") };
            shown.extend(broken.into_iter().enumerate().map(hung));
        }
        let more = shown.len().saturating_sub(FOUND);
        shown.truncate(FOUND);
        let first = if shown[0].is_empty() { String::new() } else { format!(" {}", shown[0]) };
        let (equals, title) = (self.paint(Tone::Frame, "="), self.paint(Tone::Strong, "found:"));
        let _ = writeln!(out, "{bar}\n{gutter}{equals} {title}{first}");
        for line in &shown[1..] {
            let _ = writeln!(out, "{bar}   {line}");
        }
        if more > 0 {
            let _ = writeln!(out, "{bar}   … and {} more", count(more, "line"));
        }
        out.push('\n');
    }

    /// What is said of a failure when all is over.
    fn remember(&mut self, attempt: &Attempt) {
        self.failed += 1;
        let Some(failure) = &attempt.verdict.failure else { return };
        if self.failures.len() == NAMED {
            return;
        }
        let place = one_line(&attempt.selected.case.place.to_string(), 4000);
        let note = match failure.kind {
            FailureKind::Assertion => format!("({place})"),
            kind => format!("({place}, {})", kind.name()),
        };
        let name = one_line(&attempt.selected.case.name, self.left(columns(&note) + 5));
        let line = format!("  {} {name} {}", self.paint(Tone::Bad, "✗"), self.paint(Tone::Quiet, &note));
        self.failures.push((attempt.selected.index, line));
    }

    fn summary(&mut self, summary: &Summary) -> String {
        let mut out = String::new();
        if self.not_run > 0 {
            let (cases, skipped) = (count(self.not_run, "case"), self.paint(Tone::Skipped, "SKIPPED"));
            let why = one_line(&self.why_not_run, self.left(columns(&cases) + 11));
            let _ = writeln!(out, "► {cases} {skipped} {}\n", self.paint(Tone::Quiet, &why));
        }
        // A single case stands right above.
        if !self.failures.is_empty() && summary.total > 1 {
            self.failures.sort_by_key(|(index, _)| *index);
            for (_, line) in &self.failures {
                let _ = writeln!(out, "{line}");
            }
            if self.failed > self.failures.len() {
                let _ = writeln!(out, "  … and {} more", self.failed - self.failures.len());
            }
            out.push('\n');
        }
        let part =
            |n: usize, what: &str, tone: Tone| (n > 0).then(|| self.paint(tone, &format!("{n} {what}")));
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
        let kinds: Vec<String> =
            kinds.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| count(n, what)).collect();
        let kinds = if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
        let interrupted = if summary.interrupted { " · interrupted" } else { "" };
        let took = duration(summary.duration);
        let cases = count(summary.total, "case");
        let _ = writeln!(out, "{cases}: {}{kinds} in {took}{interrupted}", parts.join(", "));
        out
    }

    fn progress(&self) -> String {
        let mut line = format!("{}/{} done", self.ended, self.total);
        if self.failed > 0 {
            let _ = write!(line, ", {} failed", self.failed);
        }
        if !self.running.is_empty() {
            // The ones that run longest; no terminal has room for more.
            let longest = &self.running[..self.running.len().min(10)];
            let _ = write!(line, " · {} running: {}", self.running.len(), longest.join(", "));
        }
        self.paint(Tone::Quiet, &one_line(&line, self.look.width.saturating_sub(1)))
    }
}

impl<W: Write + Send> Reporter for Console<W> {
    fn report(&mut self, event: &RunEvent<'_>) -> io::Result<()> {
        let mut text = match event {
            RunEvent::Started { plan, parallel, .. } => {
                self.total = plan.selected;
                self.started(plan, *parallel)
            }
            RunEvent::CaseStarted(selected) => {
                self.running.push(selected.case.name.clone());
                String::new()
            }
            RunEvent::CaseEnded(attempt) => {
                self.ended += 1;
                if attempt.verdict.status == Status::Failed {
                    self.remember(attempt);
                }
                if let Some(place) = self.running.iter().position(|name| *name == attempt.selected.case.name)
                {
                    self.running.remove(place);
                }
                self.case(attempt)
            }
            RunEvent::Stopping(Control::Cancel) => "cancelling what runs\n".to_string(),
            RunEvent::Stopping(_) => {
                "no new cases; waiting for those that run (Ctrl-C again cancels them)\n".to_string()
            }
            RunEvent::Ended(summary) => self.summary(summary),
        };
        // What is said at the end stands apart; cases that were not run belong to those above.
        if matches!(event, RunEvent::Ended(_)) && !self.gap && self.not_run == 0 {
            text.insert(0, '\n');
        }
        if !text.is_empty() {
            self.gap = text.ends_with("\n\n");
        }
        // All that is to be seen at once is written at once.
        if std::mem::take(&mut self.drawn) {
            text.insert_str(0, "\r\x1b[2K");
        }
        self.drawn = self.look.progress && !matches!(event, RunEvent::Ended(_));
        if self.drawn {
            text.push_str(&self.progress());
        }
        if text.is_empty() {
            return Ok(());
        }
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}
