//! Measures the duration of a run of one case, as a whole process.

use crate::arena::BenchArena;
use crate::bare_client::BenchError;
use crate::figures::{BenchGoal, BenchUnit, MeasuredPairs, TableRow, milliseconds};
use crate::workload::Workload;

/// Measures a run of one case several times. Fails if a program fails or is incomplete.
pub fn measure(arena: &BenchArena, times: usize, show: &mut dyn FnMut(TableRow)) -> Result<(), BenchError> {
    let suites = arena.write_suites(1, 1)?;
    let mut pairs = MeasuredPairs::default();
    for _ in 0..times {
        let (hotseat, bare) = arena.measure_pair(&suites, Workload { cases: 1, turns: 1, parallel: 1 })?;
        pairs.push(milliseconds(hotseat.wall), milliseconds(bare.wall));
    }
    let aim = BenchGoal::Under(20.0, BenchUnit::Milliseconds);
    show(TableRow {
        what: "start-up: a run of one case".to_string(),
        unit: BenchUnit::Milliseconds,
        pairs,
        aim,
    });
    Ok(())
}
