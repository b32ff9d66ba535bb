//! `hotseat man`: manual pages.

use std::path::Path;
use std::{fs, io};

use clap::CommandFactory;

use crate::args::{CliArgs, ManArgs};
use crate::context::CliContext;
use crate::exit::ExitStatus;

/// Writes a page for the program and one for each command.
pub fn run(args: &ManArgs, context: &CliContext) -> ExitStatus {
    match write_pages(&context.folder.join(&args.folder)) {
        Ok(()) => ExitStatus::Passed,
        Err(error) => {
            context.report_error(format!("cannot write manual pages to {}: {error}", args.folder.display()));
            ExitStatus::RunError
        }
    }
}

fn write_pages(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    clap_mangen::generate_to(CliArgs::command().disable_help_subcommand(true), folder)
}
