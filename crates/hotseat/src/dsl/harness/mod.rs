//! The main function of a test file: arguments as in `cargo test` and nextest, runs as in `hotseat test`.

mod arguments;
mod context;
mod execute;
mod output;
#[cfg_attr(not(feature = "store"), path = "no_saving.rs")]
mod saving;
mod select;

use std::io::{self, Write};
use std::panic::Location;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use hotseat_document::{Diagnostic, Diagnostics};

use self::arguments::{HELP, HarnessArguments, ListFormat};
pub use self::context::HarnessContext;
pub use self::output::{CapturedOutput, HarnessOutput};
use self::select::{ExampleSelection, select_examples};
use super::caller_location::CallerLocation;
use super::lost_assertions::UNATTRIBUTED;
use super::tree::Group;

/// Declares examples and runs the selected ones. Call it in `main` of a test file.
///
/// Accepts the arguments of `cargo test` and nextest (filters, `--list`, `--exact`, `--ignored`,
/// `--test-threads`, …) and some of `hotseat test`; `--help` lists them. The project file is the nearest
/// `hotseat.yaml`, searched upwards from the package directory.
///
/// ```no_run
/// use hotseat::dsl::prelude::*;
///
/// fn main() -> std::process::ExitCode {
///     hotseat::dsl::run(|s| {
///         s.describe("Room Booking Agent", |g| {
///             g.it("greets", async |t| {
///                 t.user.says("Hi").await;
///                 expect!(t.agent.text(), not(is_empty()));
///             });
///         });
///     })
/// }
/// ```
#[must_use = "the exit code says if an example failed: return it from `main`"]
#[track_caller]
pub fn run(declare: impl FnOnce(&mut Group)) -> ExitCode {
    let (arguments, world) = HarnessContext::from_process();
    let harness = Harness { arguments, context: world, file: Location::caller().file() };
    let code = harness.run(declare);
    // This is the only run of the program.
    let lost = UNATTRIBUTED.take();
    harness.print_errors(&lost);
    if lost.is_empty() { code.into() } else { exit::RUN_ERROR.into() }
}

/// Like [`run`], with explicit arguments and environment.
///
/// ```
/// use std::collections::BTreeMap;
/// use std::path::PathBuf;
///
/// use hotseat::dsl::{Harness, HarnessContext, HarnessOutput, replies};
///
/// let harness = Harness {
///     arguments: vec!["--quiet".to_string()],
///     context: HarnessContext {
///         environment: BTreeMap::new().into(),
///         folder: PathBuf::from("."),
///         color: false,
///         width: 80,
///         output: HarnessOutput::Standard,
///     },
///     file: "tests/agents.rs",
/// };
/// let exit_code = harness.run(|s| {
///     s.agent(replies(async |_| "Hello!"));
///     s.it("greets", async |t| {
///         let response = t.user.says("Hi").await;
///         assert_eq!(response.text(), "Hello!");
///     });
/// });
/// assert_eq!(exit_code, 0);
/// ```
#[derive(Debug, Clone)]
pub struct Harness {
    /// Command line arguments, without the program name.
    pub arguments: Vec<String>,
    /// Environment, working directory and output.
    pub context: HarnessContext,
    /// Source file of the examples, for reports.
    pub file: &'static str,
}

/// Exit codes. Same as those of `hotseat`, except that a filter without matches is a success, since `cargo
/// test NAME` passes its filter to every test file.
pub(super) mod exit {
    pub const PASSED: u8 = 0;
    pub const FAILED: u8 = 1;
    pub const USAGE: u8 = 2;
    pub const RUN_ERROR: u8 = 3;
    pub const NOTHING_SELECTED: u8 = 4;
    pub const INTERRUPTED: u8 = 130;
}

impl Harness {
    /// Runs the selected examples and returns the exit code.
    #[must_use = "the exit code says if an example failed"]
    pub fn run(&self, declare: impl FnOnce(&mut Group)) -> u8 {
        match self.try_run(declare) {
            Ok(code) | Err(code) => code,
        }
    }

    fn try_run(&self, declare: impl FnOnce(&mut Group)) -> Result<u8, u8> {
        let arguments =
            HarnessArguments::parse(&self.arguments).map_err(|wrong| self.usage_error([wrong]))?;
        if arguments.help {
            return Ok(self.print(HELP));
        }
        let mut root = Group::root(self.context.folder.clone());
        declare(&mut root);
        let (declared, mistakes) = root.flatten();
        if !mistakes.is_empty() {
            let wrong = |(words, at): (String, CallerLocation)| Diagnostic::new(words).at(at.place());
            return Err(self.usage_error(mistakes.into_iter().map(wrong)));
        }
        let ExampleSelection { examples, total: of, emptied_by_filter: by_filter, focused, suggestion } =
            select_examples(declared, &arguments, self.file).map_err(|wrong| self.usage_error(wrong))?;
        // Which examples failed is known with the project only.
        if arguments.list && !arguments.last_failed {
            return Ok(self
                .print(&format_list(examples.iter().map(|example| &*example.facts.name), arguments.format)));
        }
        if focused {
            self.print_remark(&format!(
                "note: only {} of {of} examples are focused; the others are not run",
                examples.len()
            ));
        }
        if examples.is_empty() {
            let help = suggestion.map_or_else(String::new, |help| format!("; {help}"));
            self.print_remark(&format!("no examples selected: 0 of {of} match{help}"));
            // A filter is passed to every test file; most have no matching example.
            return Ok(if by_filter { exit::PASSED } else { exit::NOTHING_SELECTED });
        }
        self.run_selected(examples.into_iter().map(Arc::new).collect(), &arguments)
    }

    /// Prints to standard output. A broken pipe is not an error.
    fn print(&self, text: &str) -> u8 {
        let mut out = self.context.output.results();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => exit::RUN_ERROR,
            Ok(()) | Err(_) => exit::PASSED,
        }
    }

    /// Prints to standard error. Write errors are ignored; the exit code still reports the result.
    fn print_remark(&self, text: &str) {
        let _ = writeln!(self.context.output.remarks(), "{text}");
    }

    fn print_errors(&self, errors: &[String]) {
        for words in errors {
            self.print_remark(&format!("error: {words}"));
        }
    }

    fn print_diagnostics(&self, mistakes: impl IntoIterator<Item = Diagnostic>) {
        let mut all = Diagnostics::new();
        all.extend(mistakes);
        self.print_remark(&all.render(false, self.context.width));
    }

    fn usage_error(&self, mistakes: impl IntoIterator<Item = Diagnostic>) -> u8 {
        self.print_diagnostics(mistakes);
        exit::USAGE
    }

    fn resolve_path(&self, path: &str) -> PathBuf {
        self.context.folder.join(path)
    }
}

/// Formats the list of examples like the test harness of Rust.
fn format_list<'a>(names: impl ExactSizeIterator<Item = &'a str>, format: ListFormat) -> String {
    let count = names.len();
    let mut text: String = names.map(|name| format!("{name}: test\n")).collect();
    if format == ListFormat::Pretty {
        text.push_str(&format!("\n{count} tests, 0 benchmarks\n"));
    }
    text
}
