//! `hotseat completions`: scripts that complete commands and flags in a shell.

use clap::CommandFactory;

use crate::args::{CliArgs, CompletionsArgs};
use crate::context::CliContext;
use crate::exit::ExitStatus;

/// Prints the completion script of a shell.
pub fn run(args: &CompletionsArgs, context: &CliContext) -> ExitStatus {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut CliArgs::command(), "hotseat", &mut script);
    context.print(|out| out.write_all(&script))
}
