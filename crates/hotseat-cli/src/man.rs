//! `hotseat man`: manual pages.

use std::fs;

use clap::CommandFactory;

use crate::args::{CliArgs, ManArgs};
use crate::context::CliContext;
use crate::exit::{CommandResult, ExitStatus};

/// Writes a page for the program and one for each command.
pub fn run(args: &ManArgs, context: &CliContext) -> CommandResult {
    let folder = context.folder.join(&args.folder);
    let program = CliArgs::command().disable_help_subcommand(true);
    let written = fs::create_dir_all(&folder).and_then(|()| clap_mangen::generate_to(program, &folder));
    let message = |error| format!("cannot write manual pages to {}: {error}", args.folder.display());
    written.map_err(|error| context.fail(ExitStatus::RunError, message(error))).map(|()| ExitStatus::Passed)
}
