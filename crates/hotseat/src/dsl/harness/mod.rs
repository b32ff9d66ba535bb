//! The main function of a test file: arguments as `cargo test` and nextest give them, a run as `hotseat test` makes it.

mod arguments;
mod carrying_out;
mod output;
mod select;
mod world;

use std::io::{self, Write};
use std::panic::Location;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use hotseat_document::{Diagnostic, Diagnostics};

use self::arguments::{Arguments, Format, HELP};
pub use self::output::Output;
use self::select::{Selected, select};
pub use self::world::World;
use super::place::At;
use super::tree::Group;

/// Declares examples and runs those that the arguments of the program select. For `main` of a test file.
///
/// The arguments are those of `cargo test` and nextest (filters, `--list`, `--exact`, `--ignored`, `--test-threads`, …)
/// and some of `hotseat test`; `--help` tells all. The project is the nearest `hotseat.yaml`, from the folder of the
/// package upwards.
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
#[track_caller]
pub fn run(declare: impl FnOnce(&mut Group)) -> ExitCode {
    let (arguments, world) = World::read();
    Harness { arguments, world, file: Location::caller().file() }.run(declare).into()
}

/// The same for programs that have arguments and surroundings of their own.
///
/// ```
/// use std::collections::BTreeMap;
/// use std::path::PathBuf;
///
/// use hotseat::dsl::{Harness, Output, World, replies};
///
/// let harness = Harness {
///     arguments: vec!["--quiet".to_string()],
///     world: World {
///         environment: BTreeMap::new().into(),
///         folder: PathBuf::from("."),
///         color: false,
///         width: 80,
///         output: Output::Standard,
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
    /// The arguments, without the name of the program.
    pub arguments: Vec<String>,
    /// What there is outside the program.
    pub world: World,
    /// The file that the examples are written in, as reports show it.
    pub file: &'static str,
}

/// How the program ends. As the program `hotseat` does, but for filters that fit nothing: `cargo test NAME` gives its
/// filter to every test file.
pub(super) mod exit {
    pub const PASSED: u8 = 0;
    pub const FAILED: u8 = 1;
    pub const USAGE: u8 = 2;
    pub const BROKEN: u8 = 3;
    pub const NOTHING_SELECTED: u8 = 4;
    pub const INTERRUPTED: u8 = 130;
}

impl Harness {
    /// Runs the examples that the arguments select; the exit code.
    pub fn run(&self, declare: impl FnOnce(&mut Group)) -> u8 {
        match self.try_run(declare) {
            Ok(code) | Err(code) => code,
        }
    }

    fn try_run(&self, declare: impl FnOnce(&mut Group)) -> Result<u8, u8> {
        let arguments = Arguments::read(&self.arguments).map_err(|wrong| self.refuse([wrong]))?;
        if arguments.help {
            return Ok(self.print(HELP));
        }
        let mut root = Group::root(self.world.folder.clone());
        declare(&mut root);
        let (declared, mistakes) = root.flatten();
        if !mistakes.is_empty() {
            let wrong = |(words, at): (String, At)| Diagnostic::new(words).at(at.place());
            return Err(self.refuse(mistakes.into_iter().map(wrong)));
        }
        let Selected { examples, of, by_filter, focused } =
            select(declared, &arguments).map_err(|wrong| self.refuse(wrong))?;
        if arguments.list {
            return Ok(self.print(&listed(examples.iter().map(|example| &*example.name), arguments.format)));
        }
        if focused {
            self.say(&format!(
                "note: only {} of {of} examples are focused; the others are left out",
                examples.len()
            ));
        }
        if examples.is_empty() {
            self.say(&format!("no examples: none of {of} is selected"));
            // Of several test files that are given a filter most have nothing that fits.
            return Ok(if by_filter { exit::PASSED } else { exit::NOTHING_SELECTED });
        }
        self.carry_out(examples.into_iter().map(Arc::new).collect(), &arguments)
    }

    /// Prints what was asked for. That its reader has read enough is no failure.
    fn print(&self, text: &str) -> u8 {
        let mut out = self.world.output.results();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => exit::BROKEN,
            Ok(()) | Err(_) => exit::PASSED,
        }
    }

    /// Says something beside the results. Where nobody listens, the exit code still tells.
    fn say(&self, text: &str) {
        let _ = writeln!(self.world.output.remarks(), "{text}");
    }

    fn complain(&self, mistakes: impl IntoIterator<Item = Diagnostic>) {
        let mut all = Diagnostics::new();
        all.extend(mistakes);
        self.say(&all.render(false, self.world.width));
    }

    fn refuse(&self, mistakes: impl IntoIterator<Item = Diagnostic>) -> u8 {
        self.complain(mistakes);
        exit::USAGE
    }

    fn path(&self, path: &str) -> PathBuf {
        self.world.folder.join(path)
    }
}

/// The names of examples, as the test harness of Rust lists its tests.
fn listed<'a>(names: impl ExactSizeIterator<Item = &'a str>, format: Format) -> String {
    let count = names.len();
    let mut text: String = names.map(|name| format!("{name}: test\n")).collect();
    if format == Format::Pretty {
        text.push_str(&format!("\n{count} tests, 0 benchmarks\n"));
    }
    text
}
