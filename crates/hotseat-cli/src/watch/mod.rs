//! `hotseat test --watch`: runs again what changed files affect, and what the keyboard asks for.

mod files;
mod keys;

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use hotseat_document::Diagnostic;
use hotseat_engine::run::ShutdownSignals;

use crate::args::{CliArgs, CliCommand, TestArgs};
use crate::context::CliContext;
use crate::exit::ExitStatus;
use crate::rerun::{RunSelection, can_select_failed, selected_arguments};
use crate::test::{self, TestTask};
use clap::Parser;
use files::{ChangeEffect, WatchedFiles};
use keys::{KeyboardKeys, PressedKey};

/// Time between two looks at the files.
const POLL_INTERVAL: Duration = Duration::from_millis(150);
/// Files must be unchanged for this long before a run starts: editors write several files.
const SETTLE_TIME: Duration = Duration::from_millis(100);
/// A run starts after this time even if files keep changing.
const MAX_SETTLE_TIME: Duration = Duration::from_secs(2);
/// Time between two searches for new files.
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(1);

/// Event while no test runs.
enum WatchEvent {
    /// The user pressed a key.
    Key(u8),
    /// The process was asked to end.
    Stop,
}

/// The next step of the loop.
enum WatchStep {
    Run(RunSelection, String),
    Quit,
    Stop,
}

/// Runs the selected tests, and again whenever files change or a key asks for it.
pub fn run(args: TestArgs, context: &mut CliContext) -> ExitStatus {
    let Some(original) = context.arguments.clone() else {
        return context.fail(ExitStatus::Usage, "--watch needs arguments that are valid UTF-8");
    };
    let (sender, events) = channel();
    let signals = sender.clone();
    if let Err(error) = listen_for_signals(move || drop(signals.send(WatchEvent::Stop))) {
        return context.fail(ExitStatus::RunError, format!("cannot start: {error}"));
    }
    let keyboard =
        KeyboardKeys::open(context.can_ask_human(), move |key| sender.send(WatchEvent::Key(key)).is_ok());
    let mut watch = WatchLoop {
        events,
        keyboard,
        files: WatchedFiles::collect(&args.select, context),
        args,
        last: RunSelection::All,
    };
    let (mut selection, mut reason) = (RunSelection::All, "all cases".to_string());
    let mut number = 1;
    loop {
        context.print_message(&format!("── run {number}: {reason} ──"));
        let exit = run_selection(&selection, &original, context);
        if exit == ExitStatus::Interrupted {
            return exit;
        }
        watch.last = selection;
        watch.print_status(number, context);
        number += 1;
        match watch.wait(context) {
            WatchStep::Run(next, why) => (selection, reason) = (next, why),
            WatchStep::Quit => return exit,
            WatchStep::Stop => return ExitStatus::Interrupted,
        }
    }
}

/// Runs a part of the tests.
fn run_selection(selection: &RunSelection, original: &[String], context: &mut CliContext) -> ExitStatus {
    let Some(arguments) = selected_arguments(original, selection, &context.folder) else {
        return context
            .reject([Diagnostic::new("--watch cannot take these arguments apart: write each flag alone")]);
    };
    let command = ["hotseat".to_string()].into_iter().chain(arguments.iter().cloned());
    let parsed = CliArgs::try_parse_from(command);
    // Saved runs name the arguments that run the same cases.
    context.arguments = Some(arguments);
    match parsed {
        Ok(CliArgs { command: CliCommand::Test(mut args), .. }) => {
            // The keys of the terminal belong to the watch.
            args.skip_interactive = true;
            test::run(*args, TestTask::New, context)
        }
        Ok(_) => ExitStatus::Usage,
        Err(error) => {
            let words = error.render().to_string();
            let words = words.trim().strip_prefix("error: ").unwrap_or(words.trim());
            context.reject([Diagnostic::new(words.lines().next().unwrap_or_default())])
        }
    }
}

/// State between runs.
struct WatchLoop {
    events: Receiver<WatchEvent>,
    keyboard: KeyboardKeys,
    files: WatchedFiles,
    args: TestArgs,
    last: RunSelection,
}

impl WatchLoop {
    /// Says what is watched, and which keys there are.
    fn print_status(&mut self, number: usize, context: &CliContext) {
        self.files.discover(&self.args.select, context);
        if self.keyboard.is_open() {
            let failed = if self.can_run_failed() { "f failed · " } else { "" };
            context.print_message(&format!("keys: a all · {failed}t filter · Enter again · q quit"));
        }
        context.print_message(&format!("── run {number} ended; watching {} ──", self.files.describe()));
    }

    /// True if the failed cases are known: those of saved runs.
    fn can_run_failed(&self) -> bool {
        can_select_failed(&self.args, self.files.saves_runs() && !self.args.no_store)
    }

    /// Waits for a reason to run.
    fn wait(&mut self, context: &CliContext) -> WatchStep {
        let mut discovered = Instant::now();
        loop {
            match self.events.recv_timeout(POLL_INTERVAL) {
                Ok(WatchEvent::Stop) => return WatchStep::Stop,
                Ok(WatchEvent::Key(key)) => {
                    if let Some(step) = self.handle_key(key, context) {
                        return step;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(POLL_INTERVAL),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if discovered.elapsed() >= DISCOVERY_INTERVAL {
                self.files.discover(&self.args.select, context);
                discovered = Instant::now();
            }
            let mut changed = self.files.take_changes();
            if changed.is_empty() {
                continue;
            }
            let since = Instant::now();
            loop {
                std::thread::sleep(SETTLE_TIME);
                let more = self.files.take_changes();
                if more.is_empty() || since.elapsed() > MAX_SETTLE_TIME {
                    changed.extend(more);
                    break;
                }
                changed.extend(more);
            }
            self.files.discover(&self.args.select, context);
            changed.extend(self.files.take_changes());
            let names = files::describe_changes(&changed, context);
            match self.files.effect(&changed, &self.args.select, context) {
                ChangeEffect::All => {
                    return WatchStep::Run(RunSelection::All, format!("{names} changed, all cases"));
                }
                ChangeEffect::Suites(suites) => {
                    return WatchStep::Run(RunSelection::Suites(suites), format!("{names} changed"));
                }
                ChangeEffect::Nothing => context.print_message(&format!("{names} changed, no case to run")),
            }
        }
    }

    /// Returns the step for a key. Other keys do nothing.
    fn handle_key(&mut self, key: u8, context: &CliContext) -> Option<WatchStep> {
        match PressedKey::from_byte(key) {
            PressedKey::All => Some(WatchStep::Run(RunSelection::All, "all cases".to_string())),
            PressedKey::Failed if !self.can_run_failed() => None,
            PressedKey::Failed => Some(WatchStep::Run(RunSelection::Failed, "failed cases".to_string())),
            PressedKey::Again => Some(WatchStep::Run(self.last.clone(), "again".to_string())),
            PressedKey::Filter => match self.read_filter(context) {
                Ok(Some(words)) => {
                    let reason = format!("-k {words}");
                    Some(WatchStep::Run(RunSelection::Keywords(words), reason))
                }
                Ok(None) => None,
                Err(step) => Some(step),
            },
            PressedKey::Quit => Some(WatchStep::Quit),
            PressedKey::Other => None,
        }
    }

    /// Reads a keyword expression. `None` if the user cancels.
    fn read_filter(&self, context: &CliContext) -> Result<Option<String>, WatchStep> {
        let mut typed: Vec<u8> = Vec::new();
        context.print_message("filter: words with and, or, not; Enter runs, Esc cancels");
        loop {
            let key = match self.events.recv() {
                Ok(WatchEvent::Key(key)) => key,
                Ok(WatchEvent::Stop) | Err(_) => return Err(WatchStep::Stop),
            };
            if matches!(key, keys::BACKSPACE | keys::DELETE) {
                let erased = keys::pop_char(&mut typed);
                self.keyboard.echo(&"\u{8} \u{8}".repeat(erased));
                continue;
            }
            match key {
                b'\r' | b'\n' => {
                    self.keyboard.echo("\n");
                    let words = String::from_utf8_lossy(&typed).trim().to_string();
                    return Ok(Some(words).filter(|words| !words.is_empty()));
                }
                keys::ESCAPE => {
                    self.keyboard.echo("\n");
                    return Ok(None);
                }
                printable if printable >= b' ' && typed.len() < keys::MAX_FILTER_BYTES => {
                    typed.push(printable);
                    if let Some(typed) = keys::last_char(&typed) {
                        self.keyboard.echo(typed.encode_utf8(&mut [0; 4]));
                    }
                }
                _ => {}
            }
        }
    }
}

/// Calls a function at each signal that asks the process to end, on a thread of its own.
fn listen_for_signals(stop: impl Fn() + Send + 'static) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let signals = runtime.block_on(async { ShutdownSignals::new() });
    let mut signals = signals?;
    std::thread::Builder::new().name("signals".to_string()).spawn(move || {
        runtime.block_on(async {
            loop {
                signals.next().await;
                stop();
            }
        });
    })?;
    Ok(())
}
