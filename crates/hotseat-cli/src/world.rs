//! The outside world, read once: environment, working folder, terminal.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;

use hotseat::cases::Environment;
use hotseat::document::{Diagnostic, Diagnostics, MAX_SHOWN_DIAGNOSTICS};
use hotseat::report::{self, CommandGuard};

use crate::args::ColorChoice;
use crate::exit::Exit;

/// How wide output is where neither a terminal nor `COLUMNS` says so.
const DEFAULT_WIDTH: usize = 100;

/// How what is to be said is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Voice {
    /// In words, on standard error.
    Words,
    /// As events, on standard output.
    Events,
}

/// Standard output for text, of which no CI server reads a command.
pub fn stdout() -> CommandGuard<io::Stdout> {
    CommandGuard::text(io::stdout())
}

/// Standard error, of which no CI server reads a command.
pub fn stderr() -> CommandGuard<io::Stderr> {
    CommandGuard::text(io::stderr())
}

/// What there is outside the program.
pub struct World {
    /// Environment variables that are text.
    pub environment: Environment,
    /// The working folder.
    pub folder: PathBuf,
    /// The arguments behind the command; none where some of them are no text.
    pub arguments: Option<Vec<String>>,
    color: ColorChoice,
    voice: Voice,
    stdout_terminal: bool,
    stderr_terminal: bool,
    stdin_terminal: bool,
    width: usize,
}

impl World {
    /// Reads it. `color` and `voice` are what was asked for on the command line.
    pub fn read(color: ColorChoice, voice: Voice) -> World {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let environment: BTreeMap<String, String> = std::env::vars_os().filter_map(text).collect();
        let stdout_terminal = io::stdout().is_terminal();
        let width = match stdout_terminal {
            true => terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)),
            false => environment.get("COLUMNS").and_then(|columns| columns.parse().ok()),
        };
        World {
            environment: Arc::new(environment),
            arguments: std::env::args_os().skip(1).map(|argument| argument.into_string().ok()).collect(),
            color,
            voice,
            folder: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            stdout_terminal,
            stderr_terminal: io::stderr().is_terminal(),
            stdin_terminal: io::stdin().is_terminal(),
            width: width.unwrap_or(DEFAULT_WIDTH).clamp(40, 200),
        }
    }

    /// Whether an environment variable is set to something.
    pub fn is_set(&self, name: &str) -> bool {
        self.environment.get(name).is_some_and(|value| !value.is_empty())
    }

    /// Whether a person can be asked: somebody types, and sees what is asked.
    pub fn is_attended(&self) -> bool {
        self.stdin_terminal && self.stderr_terminal
    }

    /// Whether output has colours.
    pub fn color(&self) -> bool {
        self.color_on(self.stdout_terminal)
    }

    /// Whether what is said on standard error has colours.
    pub fn color_of_errors(&self) -> bool {
        self.color_on(self.stderr_terminal)
    }

    /// Whether somebody sees what is said on standard error while it is said, and can end the program.
    pub fn is_watched(&self) -> bool {
        self.stderr_terminal && !self.is_set("CI")
    }

    /// How many columns there are.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Whether a line at the bottom can be drawn again and again.
    pub fn progress(&self) -> bool {
        self.stdout_terminal && !self.is_dumb() && !self.is_set("CI")
    }

    /// Prints text that was asked for. That its reader has read enough is no failure; a disk that is full is one.
    pub fn print(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Exit {
        self.print_to(CommandGuard::text(io::stdout().lock()), write)
    }

    /// Prints JSON that was asked for, like [`World::print`].
    pub fn print_json(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Exit {
        self.print_to(CommandGuard::json(io::stdout().lock()), write)
    }

    fn print_to(&self, out: impl Write, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Exit {
        let mut out = BufWriter::new(out);
        match write(&mut out).and_then(|()| out.flush()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                self.complain_of(format!("cannot write standard output: {error}"));
                Exit::Broken
            }
            Ok(()) | Err(_) => Exit::Passed,
        }
    }

    /// Says what is wrong.
    pub fn complain(&self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        if self.voice == Voice::Events {
            let mut diagnostics = diagnostics.into_iter();
            for mistake in diagnostics.by_ref().take(MAX_SHOWN_DIAGNOSTICS) {
                // Whoever has stopped reading does not miss anything.
                let _ = report::mistake(&mut io::stdout(), &mistake);
            }
            let more = diagnostics.count();
            if more > 0 {
                let rest = Diagnostic::new(format!("… and {more} more errors"));
                let _ = report::mistake(&mut io::stdout(), &rest);
            }
            return;
        }
        let mut all = Diagnostics::new();
        all.extend(diagnostics);
        // What is wrong is put harmlessly already, and may have colours.
        let _ = writeln!(stderr(), "{}", all.render(self.color_on(self.stderr_terminal), self.width));
    }

    /// Says what is wrong with what was asked for.
    pub fn refuse(&self, diagnostics: impl IntoIterator<Item = Diagnostic>) -> Exit {
        self.complain(diagnostics);
        Exit::Usage
    }

    /// Prints beside what was asked for, harmlessly whoever wrote it: each line behind what it is, where it is something.
    /// Where nobody listens, the exit code still tells.
    pub fn say_of(&self, what: &str, text: &str) {
        for line in report::lines(text) {
            let _ = writeln!(stderr(), "{what}{line}");
        }
    }

    /// The same of words of our own.
    pub fn say(&self, text: &str) {
        self.say_of("", text);
    }

    /// Says what a person may want to know before the run; at most a few of many.
    pub fn note(&self, notes: &[Diagnostic]) {
        const SHOWN: usize = 5;
        if self.voice == Voice::Events {
            notes.iter().for_each(|note| drop(report::note(&mut io::stdout(), note)));
            return;
        }
        for note in notes.iter().take(SHOWN) {
            let place = note.place.as_ref().map_or_else(String::new, |place| format!(" ({place})"));
            self.say_of("note: ", &format!("{}{place}", note.message));
        }
        if notes.len() > SHOWN {
            self.say(&format!("note: … and {} more like it", notes.len() - SHOWN));
        }
    }

    /// Says what went wrong and changes nothing.
    pub fn warn(&self, words: &str) {
        match self.voice {
            Voice::Events => drop(report::note(&mut io::stdout(), &Diagnostic::new(words))),
            Voice::Words => self.say_of("warning: ", words),
        }
    }

    /// Says what a function of a script around the run said.
    pub fn console(&self, line: &str) {
        match self.voice {
            Voice::Events => drop(report::said(&mut io::stdout(), line)),
            Voice::Words => self.say_of("console: ", line),
        }
    }

    /// Says what is wrong in one sentence.
    pub fn complain_of(&self, message: impl Into<String>) {
        self.complain([Diagnostic::new(message)]);
    }

    fn color_on(&self, terminal: bool) -> bool {
        match self.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => terminal && !self.is_set("NO_COLOR") && !self.is_dumb(),
        }
    }

    fn is_dumb(&self) -> bool {
        self.environment.get("TERM").is_some_and(|term| term == "dumb")
    }
}
