//! The binary `hotseat`: reads arguments and the world once, calls the library, says what came of it.

mod args;
mod compare;
mod dry_run;
mod exit;
mod import;
mod init;
mod input;
mod kept;
mod keyboard;
mod list;
mod merge;
mod recheck;
mod resume;
mod runs;
mod schema;
mod serve;
mod show;
mod test;
mod view;
mod world;
mod writer;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};
use exit::Exit;
use test::Task;
use world::{Voice, World};

/// A conversation is many small allocations, which this allocator does in about half the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Help and version are asked for; everything else is a usage error.
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Passed };
            if exit == Exit::Usage && test::wants_events(std::env::args_os()) {
                test::misused(&error.render().to_string());
            } else {
                let _ = error.print();
            }
            return exit.into();
        }
    };
    let events = match &args.command {
        Command::Test(args) => args.json,
        Command::Resume(args) => args.json,
        Command::Recheck(args) => args.json,
        _ => false,
    };
    let voice = if events { Voice::Events } else { Voice::Words };
    let world = World::read(args.color, voice);
    let exit = match args.command {
        Command::Test(args) => test::run(*args, Task::New, &world),
        Command::Merge(args) => merge::run(args, &world),
        Command::Recheck(args) => recheck::run(args, world),
        Command::Resume(args) => resume::run(args, world),
        Command::List(args) => list::run(args, &world),
        Command::Init(args) => init::run(&args, &world),
        Command::Schema(args) => schema::run(args, &world),
        Command::Serve(args) => serve::run(&args, &world),
        Command::Import(args) => import::run(args, &world),
        Command::Compare(args) => compare::run(&args, &world),
        Command::Runs(args) => runs::run(&args, &world),
        Command::Show(args) => show::run(args, &world),
        Command::View(args) => view::run(&args, &world),
    };
    exit.into()
}
