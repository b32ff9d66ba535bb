//! `hotseat man`: manual pages.

use std::path::Path;
use std::{fs, io};

use clap::CommandFactory;

use crate::args::{CliArgs, ManArgs};
use crate::context::CliContext;
use crate::exit::{CommandResult, ExitStatus};

/// Writes a page for the program and one for each command.
pub fn run(args: &ManArgs, context: &CliContext) -> CommandResult {
    let written = write_pages(&context.folder.join(&args.folder));
    let message = |error| format!("cannot write manual pages to {}: {error}", args.folder.display());
    written.map_err(|error| context.fail(ExitStatus::RunError, message(error))).map(|()| ExitStatus::Passed)
}

fn write_pages(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    clap_mangen::generate_to(CliArgs::command().disable_help_subcommand(true), folder)
}
