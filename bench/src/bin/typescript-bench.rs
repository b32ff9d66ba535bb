//! Compares TypeScript tests with case files, and a check by a script function with a built-in one, on an
//! agent that replies immediately. `bench/README.md` explains the numbers.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::fmt::Write;
use std::process::ExitCode;

use clap::Parser;
use hotseat_bench::arena::{BenchArena, ProcessCost};
use hotseat_bench::bare_client::BenchError;
use hotseat_bench::figures::mebibytes;
use hotseat_bench::workload::{TOOL, Workload, marker, question};

/// Compares TypeScript tests with case files.
#[derive(Debug, Parser)]
struct TypeScriptBenchArgs {
    /// Run a short smoke test instead of a measurement.
    #[arg(long)]
    quick: bool,
    /// Number of measurements of each kind.
    #[arg(long, value_name = "N", default_value_t = 3)]
    times: usize,
    /// Numbers of tests in a file.
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [100, 1_000, 5_000])]
    tests: Vec<usize>,
}

fn main() -> ExitCode {
    hotseat_bench::exit_code(run(&TypeScriptBenchArgs::parse()))
}

fn run(args: &TypeScriptBenchArgs) -> Result<(), BenchError> {
    if cfg!(debug_assertions) && !args.quick {
        return Err(
            "a debug build says nothing about speed: cargo build --release -p hotseat-cli -p hotseat-bench"
                .into(),
        );
    }
    let arena = BenchArena::open()?;
    let sizes = if args.quick { vec![20] } else { args.tests.clone() };
    for cases in sizes {
        compare(&arena, cases, args.times)?;
    }
    Ok(())
}

/// Runs the same tests in each form.
fn compare(arena: &BenchArena, cases: usize, times: usize) -> Result<(), BenchError> {
    let workload = Workload { cases, turns: 1, parallel: 8 };
    let suites = [
        ("cases in JSON", arena.write_file("written/cases.test.jsonl", &written(cases, &contains))?),
        (
            "with a check by a function",
            arena.write_file("called/cases.test.jsonl", &written(cases, &by_function))?,
        ),
        ("tests in TypeScript", arena.write_file("programs/all_test.ts", &programs(cases))?),
    ];
    arena.write_file("called/checks.ts", CHECK)?;
    println!("{cases} tests of one turn, 8 at once; medians of {times}");
    for (what, suite) in suites {
        let mut costs = Vec::new();
        for _ in 0..times {
            costs.push(arena.run_hotseat(&suite, workload, &[])?);
        }
        show(what, cases, &mut costs);
    }
    Ok(())
}

const CHECK: &str =
    "export const says = (output: string, input: string, expected: string) => output.includes(expected);\n";

fn contains(case: usize) -> String {
    format!(r#"{{"type": "contains", "value": "{}?"}}"#, marker(case, 1))
}

fn by_function(case: usize) -> String {
    format!(r#"{{"type": "script", "use": "scripts:checks.says", "value": "{}?"}}"#, marker(case, 1))
}

fn written(cases: usize, check: &dyn Fn(usize) -> String) -> String {
    (0..cases).fold(String::new(), |mut text, case| {
        let (question, check) = (question(case, 1), check(case));
        let tool = format!(r#"{{"type": "tool_called", "name": "{TOOL}"}}"#);
        let _ = writeln!(
            text,
            r#"{{"id": "order {case}", "input": "{question}", "assertions": [{tool}, {check}]}}"#
        );
        text
    })
}

fn programs(cases: usize) -> String {
    let mut text = "import { agent, describe, expect, it, user } from \"hotseat\";\n".to_string();
    text.push_str("describe(\"orders\", () => {\n");
    for case in 0..cases {
        let (question, marker) = (question(case, 1), marker(case, 1));
        let _ = writeln!(
            text,
            "  it(\"order {case}\", () => {{ user.says(\"{question}\"); expect(agent).toCallTool(\"{TOOL}\"); expect(agent).toContain(\"{marker}?\"); }});"
        );
    }
    text + "});\n"
}

fn show(what: &str, cases: usize, costs: &mut [ProcessCost]) {
    costs.sort_by_key(|cost| cost.wall);
    let ProcessCost { wall, cpu, peak } = costs[costs.len() / 2];
    let each = |time: std::time::Duration| time.as_secs_f64() * 1_000.0 / cases as f64;
    println!(
        "{what:<28} {:>7.0} tests/s  {:>6.2} ms of processor each  {:>6.1} MiB at most",
        cases as f64 / wall.as_secs_f64(),
        each(cpu),
        mebibytes(peak),
    );
}
