//! Measures Hotseat against a bare client and prints a table. `bench/README.md` explains the numbers.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::process::{Command, ExitCode};

use clap::{Parser, ValueEnum};
use hotseat_bench::arena::BenchArena;
use hotseat_bench::bare_client::BenchError;
use hotseat_bench::figures::{TableRow, table_header};
use hotseat_bench::{check, memory, run_store, startup, throughput};

/// Measures Hotseat against a bare client, on a fake agent.
#[derive(Debug, Parser)]
struct BenchArgs {
    /// Run a short smoke test instead of a measurement.
    #[arg(long)]
    quick: bool,
    /// Compare processor time and peak memory with the bare client, and fail beyond a bound.
    #[arg(long, conflicts_with_all = ["quick", "only"])]
    check: bool,
    /// Factor by which `--check` allows the landed ratios to be exceeded.
    #[arg(long, value_name = "FACTOR", requires = "check", default_value_t = check::DEFAULT_TOLERANCE)]
    tolerance: f64,
    /// Measure only this part.
    #[arg(long, value_enum, value_name = "PART")]
    only: Option<BenchPart>,
    /// Number of repetitions of each comparison.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pairs: Option<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BenchPart {
    /// Conversations per second.
    Throughput,
    /// Peak memory, and the cost of reading suites.
    Memory,
    /// Duration of a run of one case.
    Startup,
    /// Cost of the run store and the reports.
    Store,
}

/// Size of the measurements.
struct BenchScale {
    /// Requests per throughput measurement.
    requests: usize,
    /// Number of repetitions of each comparison.
    pairs: usize,
    /// Case counts between which memory must not grow.
    few: usize,
    many: usize,
    /// Counts of one-line cases between which memory must not grow.
    lines: &'static [usize],
    /// Number of runs of one case.
    starts: usize,
}

const FULL_SCALE: BenchScale = BenchScale {
    requests: 6_000,
    pairs: 7,
    few: 1_000,
    many: 100_000,
    lines: &[1_000, 10_000, 100_000],
    starts: 20,
};
const QUICK_SCALE: BenchScale =
    BenchScale { requests: 300, pairs: 2, few: 200, many: 2_500, lines: &[200, 2_500], starts: 3 };

fn main() -> ExitCode {
    hotseat_bench::exit_code(run(&BenchArgs::parse()))
}

fn run(args: &BenchArgs) -> Result<(), BenchError> {
    if cfg!(debug_assertions) && !args.quick && !args.check {
        return Err("a debug build says nothing about speed: cargo run --release -p hotseat-bench".into());
    }
    build()?;
    let arena = BenchArena::open()?;
    let scale = if args.quick { QUICK_SCALE } else { FULL_SCALE };
    let pairs = args.pairs.map_or(scale.pairs, usize::from);
    let wanted = |part: BenchPart| args.only.is_none_or(|only| only == part);

    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!(
        "{pairs} pairs of runs in turn, medians; {cores} cores shared with the agent\n\n{}",
        table_header()
    );
    let mut show = |row: TableRow| println!("{row}");
    if args.check {
        return check::measure(&arena, pairs, args.tolerance, &mut show);
    }
    if wanted(BenchPart::Startup) {
        startup::measure(&arena, scale.starts, &mut show)?;
    }
    if wanted(BenchPart::Throughput) {
        throughput::measure(&arena, scale.requests, pairs, &mut show)?;
    }
    if wanted(BenchPart::Memory) {
        memory::measure(&arena, scale.few, scale.many, &mut show)?;
        memory::measure_lines(&arena, scale.lines, &mut show)?;
        memory::measure_reading(&arena, scale.many, pairs.min(3), &mut show)?;
    }
    if wanted(BenchPart::Store) {
        run_store::measure(&arena, scale.many, pairs.min(3), &mut show)?;
    }
    Ok(())
}

/// Builds the measured programs if cargo started this one, so that no outdated build is measured.
fn build() -> Result<(), BenchError> {
    let Some(cargo) = std::env::var_os("CARGO") else { return Ok(()) };
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "-p", "hotseat-cli", "-p", "hotseat-bench", "--bins"]);
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    let built = command.current_dir(env!("CARGO_MANIFEST_DIR")).status()?;
    if built.success() { Ok(()) } else { Err("cannot build the measured programs".into()) }
}
