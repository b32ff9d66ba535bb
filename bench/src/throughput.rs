//! Measures conversations per second.

use crate::arena::{BenchArena, ProcessCost};
use crate::bare_client::BenchError;
use crate::figures::{BenchGoal, BenchUnit, MeasuredPairs, TableRow, thousands};
use crate::workload::Workload;

/// Measures one-turn conversations at several degrees of parallelism, and longer conversations at one of
/// them. Fails if a program fails or is incomplete.
pub fn measure(
    arena: &BenchArena,
    requests: usize,
    pairs: usize,
    show: &mut dyn FnMut(TableRow),
) -> Result<(), BenchError> {
    for (turns, parallel) in [(1, 1), (1, 16), (1, 64), (3, 16)] {
        let workload = Workload { cases: requests / turns, turns, parallel };
        let suites = arena.write_suites(workload.cases, workload.turns)?;
        let (mut speeds, mut processor) = (MeasuredPairs::default(), MeasuredPairs::default());
        for _ in 0..pairs {
            let (hotseat, bare) = arena.measure_pair(&suites, workload)?;
            let speed = |cost: ProcessCost| workload.cases as f64 / cost.wall.as_secs_f64();
            let time = |cost: ProcessCost| cost.cpu.as_secs_f64() * 1e6 / workload.cases as f64;
            speeds.push(speed(hotseat), speed(bare));
            processor.push(time(hotseat), time(bare));
        }
        let cases = thousands(workload.cases as f64);
        let turns = if turns == 1 { "1 turn".to_string() } else { format!("{turns} turns") };
        let what = format!("{cases} cases of {turns}, {parallel} at once");
        show(TableRow {
            what,
            unit: BenchUnit::CasesPerSecond,
            pairs: speeds,
            aim: BenchGoal::RatioAtLeast(0.6),
        });
        let what = "    processor time of a case".to_string();
        show(TableRow { what, unit: BenchUnit::Microseconds, pairs: processor, aim: BenchGoal::None });
    }
    Ok(())
}
