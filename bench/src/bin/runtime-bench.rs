//! Measures the reference agent and prints its cost. `bench/README.md` explains the numbers.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use clap::Parser;
use hotseat_bench::bare_client::BenchError;
use hotseat_bench::runtime::{self, StoreKind};
use hotseat_bench::serving::{self, ServerKind};

/// The allocator of `hotseat`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures the reference agent: turns of the simulated driver, added time on the tokio driver, turns of a server,
/// memory.
#[derive(Debug, Parser)]
struct RuntimeBenchArgs {
    /// Run a short smoke test instead of a measurement.
    #[arg(long)]
    quick: bool,
    /// Measure only memory, with this store. Each measurement runs in its own process, because memory freed
    /// by one is reused by the next.
    #[arg(long, hide = true)]
    idle: Option<StoreKind>,
    /// Only serve, as a measurement needs it, until killed.
    #[arg(long, hide = true)]
    serve: Option<ServerKind>,
}

fn main() -> ExitCode {
    hotseat_bench::exit_code(run(&RuntimeBenchArgs::parse()))
}

fn run(args: &RuntimeBenchArgs) -> Result<(), BenchError> {
    if cfg!(debug_assertions) && !args.quick {
        return Err("a debug build says nothing about speed: cargo run --release --bin runtime-bench".into());
    }
    let (time, turns, conversations) =
        if args.quick { (Duration::from_millis(50), 2, 100) } else { (Duration::from_secs(2), 20, 5_000) };
    if let Some(kind) = args.serve {
        return serving::serve(kind);
    }
    if let Some(kept) = args.idle {
        let measured = runtime::measure_idle(conversations, kept)?;
        println!("{:.1} {:.1}", measured.held / 1024.0, measured.left / 1024.0);
        return Ok(());
    }
    println!("simulated driver, one thread            turns/s    model alone");
    for measured in runtime::measure_simulated(time)? {
        println!("  {:<34} {:>10.0} {:>14.0}", measured.what, measured.turns, measured.model);
    }
    for (kept, name) in [(StoreKind::InMemory, "in memory"), (StoreKind::InFile, "in SQLite")] {
        println!("\ntokio driver, kept {name:<18}  turn (ms)  model (ms)  added (ms)");
        for at_once in [1, 100, if args.quick { 200 } else { 1_000 }] {
            let measured = runtime::measure_live(at_once, turns, kept)?;
            let (turn, model) = (measured.turn.as_secs_f64() * 1e3, measured.model.as_secs_f64() * 1e3);
            let at_once = measured.at_once;
            println!("  {at_once:>5} at once {turn:>28.2} {model:>11.2} {:>11.2}", turn - model);
        }
    }
    println!("\nserved over AG-UI, one turn a thread     turns/s  processor of the server (µs a turn)");
    for (kind, name) in [
        ("in-memory", "kept in memory"),
        ("in-file", "kept in SQLite"),
        ("bare", "the same answer, recorded"),
    ] {
        let mut own = Command::new(std::env::current_exe()?);
        own.args(["--serve", kind]).args(args.quick.then_some("--quick"));
        let measured = serving::measure_serving(&mut own, time)?;
        println!("  {name:<36} {:>9.0} {:>36.0}", measured.turns, measured.cpu.as_secs_f64() * 1e6);
    }
    println!("\nidle conversation after one turn         held (KiB)  not held (KiB)");
    for (kept, name) in [("in-memory", "kept in memory"), ("in-file", "kept in SQLite")] {
        let mut own = Command::new(std::env::current_exe()?);
        own.args(["--idle", kept]).args(args.quick.then_some("--quick"));
        let printed = own.stderr(Stdio::inherit()).output()?;
        let printed = String::from_utf8(printed.stdout)?;
        let Some((held, left)) = printed.trim().split_once(' ') else {
            return Err(format!("the measurement of {name} printed {printed:?}").into());
        };
        println!("  {name:<38} {held:>10} {left:>15}");
    }
    Ok(())
}
