//! Environment of the process: variables, working folder, terminal.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use hotseat_document::{Diagnostic, Diagnostics, MAX_SHOWN_DIAGNOSTICS};
use hotseat_engine::cases::Environment;
use hotseat_engine::config::{ENV_FILE, EnvFile, Project, display_path, redact_diagnostic};
use hotseat_report::reporters::{self, CommandGuard, ConsoleOptions};
use hotseat_targets::recorder::SecretRedactor;

use crate::args::ColorChoice;
use crate::exit::ExitStatus;

/// Smallest and largest output width. In less, frames and marks leave no room for texts; longer lines are hard to read.
const MIN_WIDTH: usize = 30;
const MAX_WIDTH: usize = 200;
/// Output width if neither the terminal nor `COLUMNS` gives one.
const DEFAULT_WIDTH: usize = 100;

/// Format of errors and notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageFormat {
    /// Text on standard error.
    Text,
    /// JSON events on standard output.
    JsonEvents,
}

/// Returns standard output for text, guarded against CI commands.
pub fn stdout() -> CommandGuard<io::Stdout> {
    CommandGuard::text(io::stdout())
}

/// Returns standard error, guarded against CI commands.
pub fn stderr() -> CommandGuard<io::Stderr> {
    CommandGuard::text(io::stderr())
}

/// Ends the JSON events of a command that could not be prepared. Its errors have been printed.
pub fn end_unprepared(json: bool, exit: ExitStatus) -> ExitStatus {
    if json {
        let _ = reporters::write_empty_summary(&mut io::stdout(), exit.code());
    }
    exit
}

/// Environment, working folder, arguments and terminal of the process.
pub struct CliContext {
    /// Environment variables that are valid UTF-8.
    pub environment: Environment,
    /// Working folder.
    pub folder: PathBuf,
    /// Command-line arguments, or `None` if one is not valid UTF-8.
    pub arguments: Option<Vec<String>>,
    color: ColorChoice,
    reads_env_file: bool,
    /// Secrets of the project, once it is read.
    redactor: OnceLock<SecretRedactor>,
    message_format: MessageFormat,
    stdout_terminal: bool,
    stderr_terminal: bool,
    stdin_terminal: bool,
    width: usize,
    /// True if a terminal or `COLUMNS` gives the width.
    has_width: bool,
}

impl CliContext {
    /// Continues in the folder of a run, and returns paths that were given in this one. They stay as given if it is the same.
    pub fn move_to(&mut self, folder: &Path, given: Vec<PathBuf>) -> Vec<PathBuf> {
        if self.folder == folder {
            return given;
        }
        let here = std::mem::replace(&mut self.folder, folder.to_path_buf());
        given.iter().map(|path| here.join(path)).collect()
    }

    /// Reads the environment. The arguments come from the command line.
    pub fn read(color: ColorChoice, reads_env_file: bool, voice: MessageFormat) -> CliContext {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let environment: BTreeMap<String, String> = std::env::vars_os().filter_map(text).collect();
        let stdout_terminal = io::stdout().is_terminal();
        let width = match stdout_terminal {
            true => terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)),
            false => environment.get("COLUMNS").and_then(|columns| columns.parse().ok()),
        };
        // Terminals and programs that do not know their width say 0.
        let width = width.filter(|width| *width > 0);
        CliContext {
            environment: Arc::new(environment),
            arguments: std::env::args_os().skip(1).map(|argument| argument.into_string().ok()).collect(),
            color,
            reads_env_file,
            redactor: OnceLock::new(),
            message_format: voice,
            folder: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            stdout_terminal,
            stderr_terminal: io::stderr().is_terminal(),
            stdin_terminal: io::stdin().is_terminal(),
            has_width: stdout_terminal || width.is_some(),
            width: width.unwrap_or(DEFAULT_WIDTH).clamp(MIN_WIDTH, MAX_WIDTH),
        }
    }

    /// Reads a project file, displayed as `shown`, with its `.env` file unless that is disabled.
    ///
    /// # Errors
    /// All diagnostics of the files.
    pub fn read_project(&self, path: &Path, shown: &str) -> Result<Project, Diagnostics> {
        let project = match self.reads_env_file {
            true => Project::read_with_env_file(path, shown, self.environment.clone()),
            false => Project::read(path, shown, self.environment.clone()),
        }?;
        let _ = self.redactor.set(project.redactor().clone());
        Ok(project)
    }

    /// Reads the `.env` file in a folder, unless that is disabled or there is none. Fails if the file is
    /// malformed.
    pub fn read_env_file(&self, folder: &Path) -> Result<Option<EnvFile>, Diagnostic> {
        match self.reads_env_file {
            true => EnvFile::read(folder, &display_path(&folder.join(ENV_FILE), &self.folder)),
            false => Ok(None),
        }
    }

    /// Returns the variables for a project in a folder: those of the process and of its `.env` file. Fails if
    /// the file is malformed.
    pub fn project_environment(&self, folder: &Path) -> Result<Environment, Diagnostic> {
        let file = self.read_env_file(folder)?;
        Ok(file.map_or_else(|| self.environment.clone(), |file| file.merge_into(&self.environment)))
    }

    /// Returns true if an environment variable is set and not empty.
    pub fn is_set(&self, name: &str) -> bool {
        self.environment.get(name).is_some_and(|value| !value.is_empty())
    }

    /// Returns true if a human can be asked: input and prompts are on a terminal.
    pub fn can_ask_human(&self) -> bool {
        self.stdin_terminal && self.stderr_terminal
    }

    /// Returns true if standard output is colored.
    pub fn uses_color(&self) -> bool {
        self.color_enabled(self.stdout_terminal)
    }

    /// Returns true if standard error is colored.
    pub fn errors_use_color(&self) -> bool {
        self.color_enabled(self.stderr_terminal)
    }

    /// Returns true if a human sees standard error live and can end the program.
    pub fn has_live_viewer(&self) -> bool {
        self.stderr_terminal && !self.is_set("CI")
    }

    /// Returns the output width in columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns true if a progress line can be redrawn.
    pub fn shows_progress(&self) -> bool {
        self.stdout_terminal && !self.is_dumb() && !self.is_set("CI")
    }

    /// Prints requested text. A closed pipe is not an error; a full disk is.
    pub fn print(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> ExitStatus {
        self.print_to(CommandGuard::text(io::stdout().lock()), write)
    }

    /// Prints requested JSON, like [`CliContext::print`].
    pub fn print_json(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> ExitStatus {
        self.print_to(CommandGuard::json(io::stdout().lock()), write)
    }

    fn print_to(&self, out: impl Write, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> ExitStatus {
        let mut out = BufWriter::new(out);
        match write(&mut out).and_then(|()| out.flush()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                self.report_error(format!("cannot write standard output: {error}"));
                ExitStatus::RunError
            }
            Ok(()) | Err(_) => ExitStatus::Passed,
        }
    }

    /// Returns a message without secrets of the project.
    fn redact(&self, mistake: Diagnostic) -> Diagnostic {
        match self.redactor.get() {
            Some(redactor) => redact_diagnostic(mistake, redactor),
            None => mistake,
        }
    }

    /// Reports errors.
    pub fn report_errors(&self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        let diagnostics = diagnostics.into_iter().map(|mistake| self.redact(mistake));
        let mut all = Diagnostics::new();
        if self.message_format == MessageFormat::JsonEvents {
            let mut diagnostics = diagnostics;
            let mut shown: Vec<Diagnostic> = diagnostics.by_ref().take(MAX_SHOWN_DIAGNOSTICS).collect();
            let more = diagnostics.count();
            if more > 0 {
                shown.push(Diagnostic::new(format!("… and {more} more errors")));
            }
            // A full disk, for example. If the reader has closed the pipe, nobody reads the errors.
            let is_lost = |mistake: &Diagnostic| {
                let written = reporters::write_error(&mut io::stdout(), mistake);
                written.is_err_and(|error| error.kind() != ErrorKind::BrokenPipe)
            };
            all.extend(shown.into_iter().filter(is_lost));
            if all.is_empty() {
                return;
            }
        } else {
            all.extend(diagnostics);
        }
        // Rendered diagnostics are already escaped, and may be colored.
        let _ = writeln!(stderr(), "{}", all.render(self.color_enabled(self.stderr_terminal), self.width));
    }

    /// Reports errors and returns the exit status for usage errors.
    pub fn reject(&self, diagnostics: impl IntoIterator<Item = Diagnostic>) -> ExitStatus {
        self.report_errors(diagnostics);
        ExitStatus::Usage
    }

    /// Returns the options of what the console shows.
    pub fn console_options(&self, verbose: bool, progress: bool) -> ConsoleOptions {
        let (color, width, wraps) = (self.uses_color(), self.width, self.has_width);
        ConsoleOptions { color, width, progress, verbose, wraps }
    }

    /// Reports an error that is one sentence, and returns its exit status.
    pub fn fail(&self, exit: ExitStatus, message: impl ToString) -> ExitStatus {
        self.report_error(message);
        exit
    }

    /// Writes each line to stderr with a prefix, with control characters escaped. Write errors are ignored.
    pub fn print_with_prefix(&self, what: &str, text: &str) {
        for line in reporters::safe_lines(text) {
            let _ = writeln!(stderr(), "{what}{line}");
        }
    }

    /// Like [`CliContext::print_with_prefix`], without a prefix.
    pub fn print_message(&self, text: &str) {
        self.print_with_prefix("", text);
    }

    /// Prints notes about the run, at most a few of them.
    pub fn print_notes(&self, notes: &[Diagnostic]) {
        const SHOWN: usize = 5;
        if self.message_format == MessageFormat::JsonEvents {
            notes.iter().for_each(|note| drop(reporters::write_warning(&mut io::stdout(), note)));
            return;
        }
        for note in notes.iter().take(SHOWN) {
            let place = note.place.as_ref().map_or_else(String::new, |place| format!(" ({place})"));
            self.print_with_prefix("note: ", &format!("{}{place}", note.message));
        }
        if notes.len() > SHOWN {
            let more = reporters::format_count(notes.len() - SHOWN, "more note");
            self.print_message(&format!("note: … and {more}"));
        }
    }

    /// Prints a problem that does not affect the result.
    pub fn print_warning(&self, words: &str) {
        match self.message_format {
            MessageFormat::JsonEvents => {
                drop(reporters::write_warning(&mut io::stdout(), &Diagnostic::new(words)))
            }
            MessageFormat::Text => self.print_with_prefix("warning: ", words),
        }
    }

    /// Prints console output of a hook script around the run.
    pub fn print_console_line(&self, line: &str) {
        match self.message_format {
            MessageFormat::JsonEvents => drop(reporters::write_info(&mut io::stdout(), line)),
            MessageFormat::Text => self.print_with_prefix("console: ", line),
        }
    }

    /// Reports an error that is one sentence.
    pub fn report_error(&self, message: impl ToString) {
        self.report_errors([Diagnostic::new(message)]);
    }

    /// Reports an error whose first line is the message. Further lines, such as an excerpt of a script, follow below it.
    pub fn report_error_lines(&self, text: &str) {
        let text = self.redactor.get().map_or(Cow::Borrowed(text), |redactor| redactor.text(text));
        let (message, more) = text.split_once('\n').unwrap_or((&text, ""));
        let error = Diagnostic::new(message);
        match (more, self.message_format) {
            ("", _) => self.report_errors([error]),
            (more, MessageFormat::JsonEvents) => self.report_errors([error.help(more)]),
            (more, MessageFormat::Text) => {
                self.report_errors([error]);
                self.print_with_prefix("  ", more);
            }
        }
    }

    /// Prints the help, the version, or the error of the arguments.
    pub fn print_help_or_error(&self, found: &clap::Error) {
        let text = found.render();
        let (mut out, is_colored): (Box<dyn Write>, bool) = match found.use_stderr() {
            true => (Box::new(stderr()), self.errors_use_color()),
            false => (Box::new(stdout()), self.uses_color()),
        };
        let text = if is_colored { text.ansi().to_string() } else { text.to_string() };
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    fn color_enabled(&self, terminal: bool) -> bool {
        match self.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => reporters::uses_color(&self.environment, terminal),
        }
    }

    fn is_dumb(&self) -> bool {
        self.environment.get("TERM").is_some_and(|term| term == "dumb")
    }
}
