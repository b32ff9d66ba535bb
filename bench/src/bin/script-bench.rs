//! Measures the cost of script engines: contexts per second, and memory. `bench/README.md` explains the
//! numbers.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use hotseat_bench::bare_client::BenchError;
use hotseat_script::{ScriptContext, ScriptHost, ScriptLimits, ScriptModule, Scripts, thread};
use serde_json::json;

/// Measures script engines: contexts and calls per second, memory of a context.
#[derive(Debug, Parser)]
struct ScriptBenchArgs {
    /// Run a short smoke test instead of a measurement.
    #[arg(long)]
    quick: bool,
}

/// A typical check, in a module with an import.
const CHECKS: &str = "import { words } from './words';
interface Context { metadata: { most: number } }
export function short(output: string, _input: string, _expected: unknown, context: Context): { pass: boolean } {
  return { pass: words(output).length <= context.metadata.most };
}
";
const WORDS: &str = "export const words = (text: string): string[] => text.split(/\\s+/).filter(Boolean);\n";

fn main() -> ExitCode {
    hotseat_bench::exit_code(run(&ScriptBenchArgs::parse()))
}

fn run(args: &ScriptBenchArgs) -> Result<(), BenchError> {
    if cfg!(debug_assertions) && !args.quick {
        return Err("a debug build says nothing about speed: cargo run --release --bin script-bench".into());
    }
    let time = Duration::from_millis(if args.quick { 50 } else { 2_000 });
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("checks.ts"), CHECKS)?;
    std::fs::write(folder.path().join("words.ts"), WORDS)?;
    let scripts = Scripts::open(folder.path(), "".as_ref())?;
    let module = scripts.find("checks")?;

    let fresh = || ScriptContext::new(&scripts, ScriptLimits::default(), ScriptHost::new());
    show("empty contexts", per_second(time, || fresh().map(drop))?, "/s");
    show("contexts with one call", per_second(time, || call(&mut fresh()?, &module))?, "/s");
    let on_thread = || {
        let (scripts, module) = (scripts.clone(), module.clone());
        thread::run(ScriptLimits::default().time, move |_| {
            call(&mut ScriptContext::new(&scripts, ScriptLimits::default(), ScriptHost::new())?, &module)
        })?
    };
    show("the same, each on a thread", per_second(time, on_thread)?, "/s");
    let mut kept = fresh()?;
    show("calls of one context", per_second(time, || call(&mut kept, &module))?, "/s");
    show("memory of an empty context", fresh()?.memory_usage() as f64 / 1024.0, " KiB");
    show("memory after a call", kept.memory_usage() as f64 / 1024.0, " KiB");
    Ok(())
}

fn call(context: &mut ScriptContext, module: &ScriptModule) -> Result<(), hotseat_script::ScriptError> {
    let arguments =
        [json!("a few words"), json!("say something"), json!(null), json!({"metadata": {"most": 5}})];
    let returned = context.call(module, "short", &arguments)?;
    assert_eq!(returned, json!({"pass": true}), "the benchmark measures something else");
    Ok(())
}

/// Returns the number of executions per second.
fn per_second<E>(time: Duration, mut work: impl FnMut() -> Result<(), E>) -> Result<f64, E> {
    let began = Instant::now();
    let mut times = 0;
    while began.elapsed() < time {
        work()?;
        times += 1;
    }
    Ok(f64::from(times) / began.elapsed().as_secs_f64())
}

fn show(what: &str, figure: f64, unit: &str) {
    println!("{what:<28} {figure:>9.0}{unit}");
}
