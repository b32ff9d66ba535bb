//! The doorway of a test file to the world outside: the only place of this library that reads arguments, environment and
//! terminal, for here it is the main function of a program.

use std::env;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;

use super::output::Output;
use crate::cases::Environment;

/// How wide output is where nobody says.
const WIDTH: usize = 100;

/// What there is outside the program.
#[derive(Debug, Clone)]
pub struct World {
    /// Environment variables that are text: what `${ENV.NAME}` in `hotseat.yaml` means.
    pub environment: Environment,
    /// The working folder: from here upwards the project file is looked for. `cargo test` starts programs in the folder of
    /// their package.
    pub folder: PathBuf,
    /// Whether output may have colours.
    pub color: bool,
    /// How many columns output has.
    pub width: usize,
    /// Where output goes.
    pub output: Output,
}

impl World {
    /// The arguments of the program, without its name, and what there is outside of it.
    pub(in crate::dsl) fn read() -> (Vec<String>, World) {
        let arguments = env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let environment: Environment = Arc::new(env::vars_os().filter_map(text).collect());
        let is_set = |name: &str| environment.get(name).is_some_and(|value| !value.is_empty());
        let dumb = environment.get("TERM").is_some_and(|term| term == "dumb");
        let width = environment.get("COLUMNS").and_then(|columns| columns.parse().ok());
        let world = World {
            folder: env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            color: io::stdout().is_terminal() && !is_set("NO_COLOR") && !dumb,
            width: width.unwrap_or(WIDTH).clamp(40, 200),
            environment,
            output: Output::Standard,
        };
        (arguments.collect(), world)
    }

    /// Ends the program.
    pub(in crate::dsl) fn end(code: u8) -> ! {
        std::process::exit(code.into())
    }
}
