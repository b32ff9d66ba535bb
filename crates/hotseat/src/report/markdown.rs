//! `.md`: a short summary for a comment or for the page of a CI job: failures first, everything long folded.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use hotseat_trace::{Status, Turn};

use super::words::{count, duration, lines, one_line};
use super::{Reporter, RunEvent};
use crate::run::{Finding, Outcome, Setting, Summary};

/// GitHub takes comments of up to 65,536 characters; what stands around the failures needs some of it.
const ROOM: usize = 56_000;
/// The longest text of one message, in columns.
const LONGEST: usize = 1_500;

/// Writes Markdown when the run has ended. It keeps the sections of failures that fit, those of the first cases before
/// those of later ones.
pub struct Markdown {
    file: File,
    setting: Arc<Setting>,
    sections: BTreeMap<usize, String>,
    room: usize,
}

impl Markdown {
    /// A summary that is added to a file.
    pub fn new(file: File, setting: Arc<Setting>) -> Self {
        Markdown { file, setting, sections: BTreeMap::new(), room: ROOM }
    }

    fn keep(&mut self, outcome: &Outcome) {
        if outcome.verdict.status != Status::Failed && !outcome.is_flaky() {
            return;
        }
        let section = section(outcome);
        if section.len() > ROOM {
            return;
        }
        let index = outcome.selected.index;
        while section.len() > self.room {
            let Some(last) = self.sections.last_entry().filter(|last| *last.key() > index) else { return };
            self.room += last.remove().len();
        }
        self.room -= section.len();
        self.sections.insert(index, section);
    }

    fn text(&self, summary: &Summary) -> String {
        let agents: Vec<&str> = self.setting.agents().map(|agent| &*agent.id).collect();
        let mark = match summary {
            _ if summary.has_failed() || summary.interrupted || summary.broken.is_some() => "❌",
            Summary { passed: 0, .. } => "⚠️",
            Summary { .. } => "✅",
        };
        let mut out = format!("## {mark} {}\n\n", inline(&agents.join(", ")));
        let mut parts = vec![format!("**{} passed**", summary.passed)];
        for (n, what) in [(summary.failed, "failed"), (summary.flaky, "flaky"), (summary.skipped, "skipped")]
        {
            if n > 0 {
                parts.push(format!("**{n} {what}**"));
            }
        }
        let _ = write!(
            out,
            "{} of {} in {}",
            parts.join(", "),
            count(summary.total, "case"),
            duration(summary.duration)
        );
        if let Some(of) = &self.setting.rechecked {
            let _ = write!(out, ", a recheck of run {of}");
        }
        if let Some(spent) = summary.spent.as_deref() {
            let _ = write!(out, ", {} tokens", spent.total_tokens);
            if let Some(cost) = spent.cost {
                let _ = write!(out, ", cost {cost:.4}");
            }
        }
        out.push('\n');
        if summary.interrupted {
            out.push_str("\nThe run was interrupted.\n");
        }
        if let Some(why) = &summary.broken {
            let _ = writeln!(out, "\nThe run could not be carried out: {}", inline(why));
        }
        self.sections.values().for_each(|section| out.push_str(section));
        let missing = (summary.failed + summary.flaky).saturating_sub(self.sections.len());
        if missing > 0 {
            let _ = write!(out, "\n… and {missing} more, for which there is no room here.\n");
        }
        out
    }
}

impl Reporter for Markdown {
    fn report(&mut self, event: &RunEvent) -> io::Result<()> {
        match event {
            RunEvent::CaseEnded(outcome) => {
                self.keep(outcome);
                Ok(())
            }
            RunEvent::Ended(summary) => {
                let text = self.text(summary);
                self.file.write_all(text.as_bytes())?;
                self.file.flush()
            }
            RunEvent::Started { .. }
            | RunEvent::CaseStarted { .. }
            | RunEvent::AttemptEnded { .. }
            | RunEvent::Stopping(_) => Ok(()),
        }
    }
}

/// A case that failed, or passed only when it was tried again.
fn section(outcome: &Outcome) -> String {
    let (case, told) = (&outcome.selected.case, outcome.telling());
    let mark = if outcome.is_flaky() { "≈" } else { "✗" };
    let place = format!("{}:{}", case.place.file(), case.place.line());
    let mut out = format!("\n### {mark} {}\n\n{}", inline(&case.name), code(&place));
    if let Some(failure) = &outcome.verdict.failure {
        let _ = write!(out, " · {} · {}", code(failure.kind.name()), inline(&failure.message));
    } else {
        let _ = write!(out, " · passed at attempt {}", outcome.attempts.len());
    }
    out.push('\n');
    let failed: Vec<&Finding> = told.checks.iter().filter(|checked| checked.fails()).collect();
    if !failed.is_empty() {
        out.push('\n');
    }
    for checked in failed {
        let turn = checked.turn.map_or_else(String::new, |turn| format!("turn {turn}: "));
        let (expected, actual) = (inline(&checked.verdict.expected), inline(&checked.verdict.actual));
        let _ = writeln!(out, "- {turn}{expected}<br>found: {actual}");
    }
    if !told.conversation.turns.is_empty() {
        let turns = count(told.conversation.turns.len(), "turn");
        let _ = write!(out, "\n<details><summary>Conversation, {turns}</summary>\n\n");
        told.conversation.turns.iter().for_each(|turn| out.push_str(&fence(&talk(turn))));
        out.push_str("</details>\n");
    }
    out
}

/// What was said and called in a turn, as lines of text.
fn talk(turn: &Turn) -> String {
    let mut out = format!("Turn {}\n", turn.number);
    let mut say = |who: &str, text: &str| {
        let mut shown: String = lines(text).collect::<Vec<_>>().join("\n  ");
        if shown.len() > LONGEST {
            shown.truncate(shown.floor_char_boundary(LONGEST));
            shown.push_str(" …");
        }
        let _ = writeln!(out, "{who}: {shown}");
    };
    if let Some(user) = &turn.user {
        say("User", user);
    }
    for call in &turn.tool_calls {
        let result = match &call.result {
            Some(result) if result.failed => format!("failed: {}", result.text()),
            Some(result) => result.text(),
            None => "no result".to_string(),
        };
        say("Tool", &format!("{}({}) → {result}", call.name, call.arguments));
    }
    turn.messages.iter().for_each(|message| say("Agent", &message.content));
    out
}

/// Lines that Markdown leaves alone: the fence is longer than any run of backticks within.
fn fence(text: &str) -> String {
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}text\n{}\n{fence}\n", text.trim_end())
}

/// A text within a line that is nothing but text: no markup, no HTML, no mention of anybody, no link.
fn inline(text: &str) -> String {
    let mut out = String::new();
    for c in one_line(text, 400).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // Mentions and references are looked for once entities are what they stand for, so a blank of no width breaks
            // them.
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

/// A text that is shown as code.
fn code(text: &str) -> String {
    let text = one_line(text, 200).replace('&', "&amp;").replace('<', "&lt;").replace('`', "&#96;");
    format!("<code>{}</code>", text.replace('@', "&#64;").replace('*', "&#42;").replace('_', "&#95;"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_others_are_text() {
        assert_eq!(inline("<b>@me **x** [a](b)"), "&lt;b&gt;&#64;&#8203;me \\*\\*x\\*\\* \\[a\\]\\(b\\)");
        assert_eq!(inline("a\n# b"), "a⏎&#35;&#8203; b");
        assert_eq!(fence("a ```` b\n"), "`````text\na ```` b\n`````\n");
        assert_eq!(code("a_b`<"), "<code>a&#95;b&#96;&lt;</code>");
    }
}
