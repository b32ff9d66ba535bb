//! Environment of a test file. The only place in this library that reads arguments, environment variables and
//! the terminal, since it implements a main function.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;

use super::output::HarnessOutput;
use hotseat_engine::cases::Environment;

/// Default output width in columns.
const DEFAULT_WIDTH: usize = 100;

/// Environment, working directory and output of a test file.
#[derive(Debug, Clone)]
pub struct HarnessContext {
    /// Environment variables with UTF-8 values, for `${ENV.NAME}` in `hotseat.yaml`.
    pub environment: Environment,
    /// Working directory; the project file is searched from here upwards. `cargo test` starts programs in the
    /// package directory.
    pub folder: PathBuf,
    /// True if output may have colours.
    pub color: bool,
    /// Output width in columns.
    pub width: usize,
    /// Destination of output.
    pub output: HarnessOutput,
}

impl HarnessContext {
    /// Returns the arguments of the process, without the program name, and its environment.
    pub(in crate::dsl) fn from_process() -> (Vec<String>, HarnessContext) {
        let arguments = env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let environment: Environment = Arc::new(env::vars_os().filter_map(text).collect());
        let width = environment.get("COLUMNS").and_then(|columns| columns.parse().ok());
        let world = HarnessContext {
            folder: env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            color: hotseat_report::reporters::uses_color(&environment, io::stdout().is_terminal()),
            width: width.unwrap_or(DEFAULT_WIDTH).clamp(40, 200),
            environment,
            output: HarnessOutput::Standard,
        };
        (arguments.collect(), world)
    }

    /// Aborts the process because an example ended it, so that its exit code says so.
    pub(in crate::dsl) fn abort(example: &str) -> ! {
        let words =
            format!("error: the example `{example}` ended the test program, by `exit` or a similar function");
        let _ = writeln!(HarnessOutput::Standard.remarks(), "{words}");
        std::process::abort()
    }

    /// Exits the process.
    pub(in crate::dsl) fn exit(code: u8) -> ! {
        std::process::exit(code.into())
    }
}
