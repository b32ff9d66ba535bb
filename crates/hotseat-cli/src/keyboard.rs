//! The person at the keyboard, who answers agents; or whoever writes lines to standard input.

use std::io::{self, BufRead, Write};
use std::thread;

use hotseat::adapters::Pending;
use hotseat::report::{CommandGuard, lines, one_line};
use hotseat::session::{AskedPerson, Person, Typed};
use tokio::sync::{Mutex, mpsc};
use tokio::time::{Instant, timeout_at};

use crate::world::World;

/// Whoever types. Conversations ask one after the other, so never two of them at once.
pub struct Keyboard {
    lines: Mutex<Lines>,
    /// Whether questions are shown: a person sees them, a pipe does not care.
    shows: bool,
    width: usize,
}

/// Lines of standard input. They are read from the first question on, by a thread that ends with the program.
#[derive(Default)]
struct Lines {
    /// The conversation that was shown last, and how much of it.
    shown: Option<(String, usize)>,
    received: Option<mpsc::UnboundedReceiver<String>>,
}

impl Keyboard {
    pub fn new(world: &World) -> Keyboard {
        Keyboard { lines: Mutex::default(), shows: world.is_attended(), width: world.width() }
    }

    async fn ask(&self, asked: AskedPerson<'_>) -> Typed {
        let mut lines = self.lines.lock().await;
        if self.shows {
            self.show(&asked, &mut lines.shown);
        }
        let until = Instant::now() + asked.patience;
        loop {
            let line = match timeout_at(until, lines.next()).await {
                Ok(Some(line)) => line,
                Ok(None) => return Typed::Nothing("standard input has ended"),
                Err(_) => return Typed::Nothing("nobody has typed anything in time"),
            };
            match line.trim() {
                "/end" => return Typed::End,
                "/skip" => return Typed::Skip,
                // An agent is never told nothing by a mere slip of the finger.
                "" if self.shows => self.prompt(),
                "" => {}
                said => return Typed::Said(said.to_string()),
            }
        }
    }

    /// Shows what was said since this conversation was shown last, and the question. It goes to standard error: standard output is the report.
    fn show(&self, asked: &AskedPerson<'_>, shown: &mut Option<(String, usize)>) {
        let mut out = CommandGuard::text(io::stderr().lock());
        let rule = "─".repeat(self.width.min(63));
        let seen = match shown {
            Some((session, turns)) if session == asked.session => *turns,
            _ => {
                let case = one_line(asked.case, self.width);
                let _ = writeln!(out, "{rule}\n{case}, turn {}", asked.turn);
                let _ = writeln!(
                    out,
                    "Type what the user says; /end ends the conversation, /skip skips the case."
                );
                0
            }
        };
        *shown = Some((asked.session.to_string(), asked.dialogue.turns.len()));
        for turn in asked.dialogue.turns.iter().skip(seen) {
            // What was just typed stands there already.
            let user = turn.user.as_deref().filter(|_| &*turn.caller != "person");
            for (who, text) in [("User", user), ("Agent", turn.answer())] {
                for (number, line) in lines(text.unwrap_or_default()).enumerate() {
                    let who = if number == 0 { format!("{who}: ") } else { "  ".to_string() };
                    let _ = writeln!(out, "  {who}{line}");
                }
            }
        }
        if let Some(hint) = asked.hint {
            let _ = writeln!(out, "  ({})", one_line(hint, self.width));
        }
        drop(out);
        self.prompt();
    }

    fn prompt(&self) {
        let mut out = CommandGuard::text(io::stderr().lock());
        let _ = write!(out, "You> ");
        let _ = out.flush();
    }
}

impl Lines {
    /// The next line; none when there are no more.
    async fn next(&mut self) -> Option<String> {
        let received = self.received.get_or_insert_with(|| {
            let (send, received) = mpsc::unbounded_channel();
            thread::spawn(move || {
                for line in io::stdin().lock().lines().map_while(Result::ok) {
                    if send.send(line).is_err() {
                        break;
                    }
                }
            });
            received
        });
        received.recv().await
    }
}

impl Person for Keyboard {
    fn ask<'a>(&'a self, asked: AskedPerson<'a>) -> Pending<'a, Typed> {
        Box::pin(Keyboard::ask(self, asked))
    }
}
