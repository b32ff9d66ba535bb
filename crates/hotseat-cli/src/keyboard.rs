//! Input of the human at the keyboard, or of a program that pipes lines to standard input.

use std::io::{self, Write};

use hotseat_engine::session::{HumanPrompt, HumanPrompter, HumanReply, MissingHumanInput};
use hotseat_report::reporters::{CommandGuard, one_line, safe_lines};
use hotseat_runtime::serve::{InputLine, MAX_LINE_BYTES, read_lines};
use hotseat_targets::BoxFuture;
use tokio::sync::{Mutex, mpsc};
use tokio::time::{Instant, timeout_at};

use crate::context::CliContext;

/// Maximum length of a typed line in bytes. The terminal of Linux cuts off the rest of a line after 4,095 bytes.
const MAX_TYPED_BYTES: usize = if cfg!(target_os = "linux") { 4_094 } else { MAX_LINE_BYTES };

/// Reads user messages from standard input. One conversation asks at a time.
pub struct KeyboardInput {
    lines: Mutex<StdinLines>,
    /// True on a terminal: conversations and prompts are printed. False for pipes.
    prints_prompts: bool,
    width: usize,
}

/// Lines of standard input. A thread, started by the first question, reads them until the program ends.
#[derive(Default)]
struct StdinLines {
    /// Session that was printed last, and the number of its turns printed so far.
    shown: Option<(String, usize)>,
    received: Option<mpsc::Receiver<InputLine>>,
    /// True after a question at a terminal to which no answer came in time: what is typed then was meant for it.
    is_late: bool,
}

impl KeyboardInput {
    pub fn new(context: &CliContext) -> KeyboardInput {
        KeyboardInput {
            lines: Mutex::default(),
            prints_prompts: context.can_ask_human(),
            width: context.width(),
        }
    }

    async fn ask(&self, prompt: HumanPrompt<'_>) -> HumanReply {
        let mut lines = self.lines.lock().await;
        if self.prints_prompts {
            if std::mem::take(&mut lines.is_late) {
                lines.discard_typed();
            }
            self.show(&prompt, &mut lines.shown);
        }
        let until = Instant::now() + prompt.timeout;
        loop {
            let line = match timeout_at(until, lines.next(self.max_line_bytes())).await {
                Ok(Some(InputLine::Text(line))) => line,
                Ok(Some(InputLine::InvalidUtf8)) => {
                    return HumanReply::Unreadable("a line of standard input is not UTF-8");
                }
                Ok(Some(InputLine::TooLong(most))) if self.prints_prompts => {
                    self.refuse_line(most);
                    continue;
                }
                Ok(Some(InputLine::TooLong(_))) => {
                    return HumanReply::Unreadable("a line of standard input is too long");
                }
                Ok(None) => return HumanReply::Unavailable(MissingHumanInput::InputEnded),
                Err(_) => {
                    lines.is_late = self.prints_prompts;
                    return HumanReply::Unavailable(MissingHumanInput::TimedOut);
                }
            };
            match line.trim() {
                "/end" => return HumanReply::End,
                "/skip" => return HumanReply::Skip,
                // An accidental empty line is not sent to the agent.
                "" if self.prints_prompts => self.prompt(),
                "" => {}
                text => return HumanReply::Text(text.to_string()),
            }
        }
    }

    /// Prints the new turns of the conversation and the prompt, to standard error because standard output
    /// holds the report.
    fn show(&self, prompt: &HumanPrompt<'_>, shown: &mut Option<(String, usize)>) {
        let mut out = CommandGuard::text(io::stderr().lock());
        let rule = "─".repeat(self.width.min(63));
        let seen = match shown {
            Some((session, turns)) if session == prompt.session => *turns,
            _ => {
                let case = one_line(prompt.case, self.width);
                let _ = writeln!(out, "{rule}\n{case}, turn {}", prompt.turn);
                let _ = writeln!(
                    out,
                    "Type the user's message; /end ends the conversation, /skip skips the case."
                );
                0
            }
        };
        *shown = Some((prompt.session.to_string(), prompt.dialogue.turns.len()));
        for turn in prompt.dialogue.turns.iter().skip(seen) {
            // The human sees the text they typed; it is not repeated.
            let user = turn.user.as_deref().filter(|_| &*turn.caller != "person");
            for (who, text) in [("User", user), ("Agent", turn.answer())] {
                for (number, line) in safe_lines(text.unwrap_or_default()).enumerate() {
                    let who = if number == 0 { format!("{who}: ") } else { "  ".to_string() };
                    let _ = writeln!(out, "  {who}{line}");
                }
            }
        }
        if let Some(hint) = prompt.hint {
            let _ = writeln!(out, "  ({})", one_line(hint, self.width));
        }
        drop(out);
        self.prompt();
    }

    fn max_line_bytes(&self) -> usize {
        if self.prints_prompts { MAX_TYPED_BYTES } else { MAX_LINE_BYTES }
    }

    /// Says that a typed line was not sent, and asks again.
    fn refuse_line(&self, most: usize) {
        let mut out = CommandGuard::text(io::stderr().lock());
        let _ = writeln!(
            out,
            "  The terminal may cut lines of more than {most} bytes, so this one was not sent."
        );
        let _ = writeln!(out, "  Send it in parts, or from a file: hotseat test -i - < FILE");
        drop(out);
        self.prompt();
    }

    fn prompt(&self) {
        let mut out = CommandGuard::text(io::stderr().lock());
        let _ = write!(out, "You> ");
        let _ = out.flush();
    }
}

impl StdinLines {
    /// Returns the next line, or `None` at the end of standard input.
    async fn next(&mut self, max_bytes: usize) -> Option<InputLine> {
        let lines = self.received.get_or_insert_with(|| read_lines(io::stdin(), max_bytes));
        lines.recv().await
    }

    /// Discards what was typed, also a line without its end.
    fn discard_typed(&mut self) {
        // Fails if standard input is no terminal any more.
        #[cfg(unix)]
        let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
        while self.received.as_mut().is_some_and(|lines| lines.try_recv().is_ok()) {}
    }
}

impl HumanPrompter for KeyboardInput {
    fn ask<'a>(&'a self, prompt: HumanPrompt<'a>) -> BoxFuture<'a, HumanReply> {
        Box::pin(KeyboardInput::ask(self, prompt))
    }
}
