//! The bare client as a process.
//!
//!     bare-client talk URL CASES TURNS PARALLEL
//!     bare-client read FOLDER

use std::path::Path;

use hotseat_bench::bare_client::{BenchError, read_yaml, run_all};
use hotseat_bench::workload::Workload;

fn main() -> Result<(), BenchError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["talk", url, cases, turns, parallel] => {
            let workload =
                Workload { cases: cases.parse()?, turns: turns.parse()?, parallel: parallel.parse()? };
            // One thread, as `hotseat test` uses.
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(run_all(url, workload))
        }
        ["read", folder] => match read_yaml(Path::new(folder))? {
            0 => Err("there is nothing to read".into()),
            _ => Ok(()),
        },
        _ => Err("bare-client talk URL CASES TURNS PARALLEL, or bare-client read FOLDER".into()),
    }
}
