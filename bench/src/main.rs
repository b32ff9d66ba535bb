//! Measures Hotseat beside a bare client and prints a table. `bench/README.md` says what the figures mean.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::path::Path;
use std::process::{Command, ExitCode};

use clap::{Parser, ValueEnum};
use hotseat_bench::bare_client::Failure;
use hotseat_bench::contest::{Arena, Programs};
use hotseat_bench::figures::{Row, head};
use hotseat_bench::{keeping, memory, startup, throughput};

/// Measures Hotseat beside a bare client, against a fake agent.
#[derive(Debug, Parser)]
struct Args {
    /// Few cases, few repetitions: shows that everything works, not how fast it is.
    #[arg(long)]
    quick: bool,
    /// Measure only this.
    #[arg(long, value_enum, value_name = "WHAT")]
    only: Option<Part>,
    /// How often each comparison is made.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pairs: Option<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Conversations a second.
    Throughput,
    /// Peak memory, and the cost of reading suites.
    Memory,
    /// The time of a run of one case.
    Startup,
    /// What the store and the reports cost.
    Store,
}

/// How much is done.
struct Scale {
    /// Requests in each measurement of throughput.
    requests: usize,
    /// How often each comparison is made.
    pairs: usize,
    /// Numbers of cases between which memory must not grow.
    few: usize,
    many: usize,
    /// Numbers of one-line cases between which it must not grow either.
    lines: &'static [usize],
    /// How often one case is run.
    starts: usize,
}

const FULL: Scale = Scale {
    requests: 6_000,
    pairs: 7,
    few: 1_000,
    many: 100_000,
    lines: &[1_000, 10_000, 100_000],
    starts: 20,
};
const QUICK: Scale =
    Scale { requests: 300, pairs: 2, few: 200, many: 2_500, lines: &[200, 2_500], starts: 3 };

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), Failure> {
    if cfg!(debug_assertions) && !args.quick {
        return Err("a debug build says nothing about speed: cargo run --release -p hotseat-bench".into());
    }
    build()?;
    let own = std::env::current_exe()?;
    let arena = Arena::open(Programs::in_folder(own.parent().unwrap_or(Path::new(".")))?)?;
    let scale = if args.quick { QUICK } else { FULL };
    let pairs = args.pairs.map_or(scale.pairs, usize::from);
    let wanted = |part: Part| args.only.is_none_or(|only| only == part);

    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("{pairs} pairs of runs in turn, medians; {cores} cores shared with the agent\n\n{}", head());
    let mut show = |row: Row| println!("{row}");
    if wanted(Part::Startup) {
        startup::measure(&arena, scale.starts, &mut show)?;
    }
    if wanted(Part::Throughput) {
        throughput::measure(&arena, scale.requests, pairs, &mut show)?;
    }
    if wanted(Part::Memory) {
        memory::measure(&arena, scale.few, scale.many, &mut show)?;
        memory::measure_lines(&arena, scale.lines, &mut show)?;
        memory::measure_reading(&arena, scale.many, pairs.min(3), &mut show)?;
    }
    if wanted(Part::Store) {
        keeping::measure(&arena, scale.many, pairs.min(3), &mut show)?;
    }
    Ok(())
}

/// Has cargo build what is measured, if it was cargo that started this: nobody should measure what was there before
/// the last change.
fn build() -> Result<(), Failure> {
    let Some(cargo) = std::env::var_os("CARGO") else { return Ok(()) };
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "-p", "hotseat-cli", "-p", "hotseat-bench", "--bins"]);
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    let built = command.current_dir(env!("CARGO_MANIFEST_DIR")).status()?;
    if built.success() { Ok(()) } else { Err("what is to be measured cannot be built".into()) }
}
