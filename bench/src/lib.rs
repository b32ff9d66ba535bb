//! Benchmarks of Hotseat against a bare client, as separate processes, on a fake agent in a third process.
//!
//! [`workload`] defines the messages; [`fake_agent`] answers them; [`bare_client`] and the [`suites`] for
//! Hotseat send them. [`arena`] runs and observes the programs, [`figures`] compares the results, and
//! [`throughput`], [`memory`], [`startup`] and [`run_store`] are the benchmarks; [`check`] compares with bounds.
//! [`flood`] has agents that send without end.

pub mod arena;
pub mod bare_client;
pub mod check;
pub mod fake_agent;
pub mod figures;
pub mod flood;
pub mod memory;
pub mod run_store;
pub mod runtime;
pub mod serving;
pub mod startup;
pub mod suites;
pub mod throughput;
pub mod workload;

use std::process::ExitCode;

/// Prints the error of a benchmark, if there is one.
#[expect(clippy::print_stderr, reason = "only benchmarks call it")]
pub fn exit_code(measured: Result<(), bare_client::BenchError>) -> ExitCode {
    match measured {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
