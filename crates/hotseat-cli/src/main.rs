//! The binary `hotseat`: reads arguments and environment, calls the library, prints the result.

mod args;
mod compare;
mod completions;
mod context;
mod doctor;
mod dry_run;
mod event_stream;
mod exit;
mod extract;
mod folders;
mod github_reporters;
mod import;
mod init;
mod input;
mod input_files;
mod keyboard;
mod list;
mod man;
mod mcp;
mod merge;
mod project_file;
mod recheck;
mod report_writer;
mod rerun;
mod resume;
mod runs;
mod schema;
mod selection;
mod serve;
mod show;
mod store_location;
mod test;
mod view;
mod watch;
mod written_cases;

use std::process::ExitCode;

use clap::Parser;

use args::{CliArgs, CliCommand, ColorChoice};
use context::{CliContext, MessageFormat};
use exit::ExitStatus;
use test::TestTask;

/// Conversations make many small allocations; mimalloc takes about half the time of the system allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = match CliArgs::try_parse() {
        Ok(args) => args,
        Err(error) => {
            let error = args::with_known_name(error, std::env::args_os());
            // Help and version exit with 0; all other parse errors are usage errors.
            let exit = if error.use_stderr() { ExitStatus::Usage } else { ExitStatus::Passed };
            if exit == ExitStatus::Usage && test::wants_events(std::env::args_os()) {
                test::report_usage_error(&error.render().to_string());
            } else {
                let color = ColorChoice::from_arguments(std::env::args_os());
                CliContext::read(color, false, MessageFormat::Text).print_help_or_error(&error);
            }
            return exit.into();
        }
    };
    let events = match &args.command {
        CliCommand::Test(args) => args.json,
        CliCommand::Resume(args) => args.json,
        CliCommand::Recheck(args) => args.json,
        CliCommand::Show(args) => args.json,
        _ => false,
    };
    let voice = if events { MessageFormat::JsonEvents } else { MessageFormat::Text };
    let mut context = CliContext::read(args.color, !args.no_env_file, voice);
    let exit = match args.command {
        CliCommand::Test(args) if args.watch => Ok(watch::run(*args, &mut context)),
        CliCommand::Test(args) => Ok(test::run(*args, TestTask::New, &context)),
        CliCommand::Merge(args) => merge::run(args, &context),
        CliCommand::Recheck(args) => recheck::run(args, context),
        CliCommand::Resume(args) => resume::run(args, context),
        CliCommand::List(args) => list::run(args, &context),
        CliCommand::Init(args) => init::run(&args, &context),
        CliCommand::Doctor(args) => Ok(doctor::run(&args, &context)),
        CliCommand::Schema(args) => Ok(schema::run(args, &context)),
        CliCommand::Serve(args) => serve::run(&args, &context),
        CliCommand::Mcp(args) => mcp::run(&args, &context),
        CliCommand::Import(args) => Ok(import::run(args, &context)),
        CliCommand::Compare(args) => Ok(compare::run(&args, &context)),
        CliCommand::Runs(args) => runs::run(&args, &context),
        CliCommand::Show(args) => show::run(args, &context),
        CliCommand::Extract(args) => extract::run(&args, &context),
        CliCommand::View(args) => view::run(&args, &context),
        CliCommand::Completions(args) => Ok(completions::run(&args, &context)),
        CliCommand::Man(args) => man::run(&args, &context),
    };
    let exit = exit.unwrap_or_else(|exit| exit);
    if exit == ExitStatus::Interrupted {
        hotseat_targets::process::kill_started();
    }
    exit.into()
}
