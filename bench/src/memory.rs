//! Measures memory, its growth with the number of cases, and the cost of reading suites.

use crate::arena::BenchArena;
use crate::bare_client::BenchError;
use crate::figures::{BenchGoal, BenchUnit, MeasuredPairs, TableRow, mebibytes, milliseconds, thousands};
use crate::workload::Workload;

const PARALLEL_CASES: usize = 16;

/// Measures the peak memory of a run of `few` cases and of `many` cases. Fails if a program fails or is
/// incomplete.
pub fn measure(
    arena: &BenchArena,
    few: usize,
    many: usize,
    show: &mut dyn FnMut(TableRow),
) -> Result<(), BenchError> {
    let mut peaks = Vec::new();
    for cases in [few, many] {
        let workload = Workload { cases, turns: 1, parallel: PARALLEL_CASES };
        let suites = arena.write_suites(cases, 1)?;
        let (hotseat, bare) = arena.measure_pair(&suites, workload)?;
        let peak = [hotseat, bare].map(|cost| mebibytes(cost.peak));
        let what = format!("peak memory of {} cases, {PARALLEL_CASES} at once", thousands(cases as f64));
        show(one_pair(what, BenchUnit::Mebibytes, peak, BenchGoal::None));
        peaks.push(peak);
    }
    let growth = [peaks[1][0] / peaks[0][0], peaks[1][1] / peaks[0][1]];
    // Allows for small growth: suite names are remembered to find duplicates.
    show(one_pair(
        "    growth".to_string(),
        BenchUnit::Times,
        growth,
        BenchGoal::AtMost(1.25, BenchUnit::Times),
    ));
    Ok(())
}

/// Measures suites of one-line cases in increasing sizes, with JSON and JSON lines reports. Fails if a
/// program fails or is incomplete.
pub fn measure_lines(
    arena: &BenchArena,
    sizes: &[usize],
    show: &mut dyn FnMut(TableRow),
) -> Result<(), BenchError> {
    let reports = ["-o", "report.json", "-o", "report.jsonl"];
    let mut peaks = Vec::new();
    for cases in sizes.iter().copied() {
        let workload = Workload { cases, turns: 1, parallel: PARALLEL_CASES };
        let suites = arena.write_lines(cases)?;
        let (hotseat, bare) = arena.measure_pair_with(&suites, workload, &reports)?;
        let what = format!("{} JSON lines with reports, {PARALLEL_CASES} at once", thousands(cases as f64));
        let wall = [hotseat, bare].map(|cost| milliseconds(cost.wall));
        show(one_pair(what, BenchUnit::Milliseconds, wall, BenchGoal::None));
        let peak = [hotseat, bare].map(|cost| mebibytes(cost.peak));
        show(one_pair("    peak memory".to_string(), BenchUnit::Mebibytes, peak, BenchGoal::None));
        peaks.push(peak);
    }
    if let (Some(first), Some(last)) = (peaks.first(), peaks.last()) {
        let growth = [last[0] / first[0], last[1] / first[1]];
        show(one_pair(
            "    growth".to_string(),
            BenchUnit::Times,
            growth,
            BenchGoal::AtMost(1.25, BenchUnit::Times),
        ));
    }
    Ok(())
}

/// Measures reading and validating suites, without conversations, against the parser alone. Fails if a
/// program fails or is incomplete.
pub fn measure_reading(
    arena: &BenchArena,
    cases: usize,
    pairs: usize,
    show: &mut dyn FnMut(TableRow),
) -> Result<(), BenchError> {
    let suites = arena.write_suites(cases, 1)?;
    let (mut times, mut peaks) = (MeasuredPairs::default(), MeasuredPairs::default());
    for _ in 0..pairs {
        let (hotseat, parser) = (arena.run_dry(&suites)?, arena.run_yaml_parser(&suites)?);
        times.push(milliseconds(hotseat.wall), milliseconds(parser.wall));
        peaks.push(mebibytes(hotseat.peak), mebibytes(parser.peak));
    }
    let what = format!("--dry-run of {} cases", thousands(cases as f64));
    show(TableRow { what, unit: BenchUnit::Milliseconds, pairs: times, aim: BenchGoal::None });
    show(TableRow {
        what: "    peak memory".to_string(),
        unit: BenchUnit::Mebibytes,
        pairs: peaks,
        aim: BenchGoal::None,
    });
    Ok(())
}

fn one_pair(what: String, unit: BenchUnit, [hotseat, yardstick]: [f64; 2], aim: BenchGoal) -> TableRow {
    let mut pairs = MeasuredPairs::default();
    pairs.push(hotseat, yardstick);
    TableRow { what, unit, pairs, aim }
}
