//! The outside world, read once: environment, working folder, terminal.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;

use hotseat::cases::Environment;
use hotseat::document::{Diagnostic, Diagnostics};

use crate::args::ColorChoice;

/// How wide output is where no terminal says so.
const DEFAULT_WIDTH: usize = 100;

/// What there is outside the program.
pub struct World {
    /// Environment variables that are text.
    pub environment: Environment,
    /// The working folder.
    pub folder: PathBuf,
    stdout_terminal: bool,
    stderr_terminal: bool,
    width: usize,
}

impl World {
    /// Reads it.
    pub fn read() -> World {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let environment: BTreeMap<String, String> = std::env::vars_os().filter_map(text).collect();
        let stdout_terminal = std::io::stdout().is_terminal();
        let width = if stdout_terminal { terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)) } else { None };
        World {
            environment: Arc::new(environment),
            folder: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            stdout_terminal,
            stderr_terminal: std::io::stderr().is_terminal(),
            width: width.unwrap_or(DEFAULT_WIDTH).clamp(40, 200),
        }
    }

    /// Whether an environment variable is set to something.
    pub fn is_set(&self, name: &str) -> bool {
        self.environment.get(name).is_some_and(|value| !value.is_empty())
    }

    /// Whether output has colours.
    pub fn color(&self, choice: ColorChoice) -> bool {
        self.color_on(choice, self.stdout_terminal)
    }

    /// How many columns there are.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Whether a line at the bottom can be drawn again and again.
    pub fn progress(&self) -> bool {
        self.stdout_terminal && !self.is_dumb() && !self.is_set("CI")
    }

    /// Says what is wrong.
    pub fn complain(&self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        let mut all = Diagnostics::new();
        all.extend(diagnostics);
        eprintln!("{}", all.render(self.color_on(ColorChoice::Auto, self.stderr_terminal), self.width));
    }

    /// Says what a person may want to know before the run; at most a few of many.
    pub fn note(&self, notes: &[Diagnostic]) {
        const SHOWN: usize = 5;
        for note in notes.iter().take(SHOWN) {
            let place = note.place.as_ref().map_or_else(String::new, |place| format!(" ({place})"));
            eprintln!("note: {}{place}", note.message);
        }
        if notes.len() > SHOWN {
            eprintln!("note: … and {} more like it", notes.len() - SHOWN);
        }
    }

    /// Says what is wrong in one sentence.
    pub fn complain_of(&self, message: impl Into<String>) {
        self.complain([Diagnostic::new(message)]);
    }

    fn color_on(&self, choice: ColorChoice, terminal: bool) -> bool {
        match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => terminal && !self.is_set("NO_COLOR") && !self.is_dumb(),
        }
    }

    fn is_dumb(&self) -> bool {
        self.environment.get("TERM").is_some_and(|term| term == "dumb")
    }
}
