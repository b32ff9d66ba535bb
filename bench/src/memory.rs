//! How much memory, and whether it grows with the number of cases; and what reading so many suites costs.

use crate::bare_client::Failure;
use crate::contest::Arena;
use crate::figures::{Aim, Pairs, Row, Unit, mebibytes, milliseconds, thousands};
use crate::workload::Workload;

const PARALLEL: usize = 16;

/// Measures the peak of a run of `few` cases and of one of `many`.
///
/// # Errors
/// When a contestant fails or has not done its work.
pub fn measure(arena: &Arena, few: usize, many: usize, show: &mut dyn FnMut(Row)) -> Result<(), Failure> {
    let mut peaks = Vec::new();
    for cases in [few, many] {
        let workload = Workload { cases, turns: 1, parallel: PARALLEL };
        let suites = arena.write_suites(cases, 1)?;
        let (hotseat, bare) = arena.pair(&suites, workload)?;
        let peak = [hotseat, bare].map(|cost| mebibytes(cost.peak));
        let what = format!("peak memory of {} cases, {PARALLEL} at once", thousands(cases as f64));
        show(one_pair(what, Unit::Mebibytes, peak, Aim::None));
        peaks.push(peak);
    }
    let growth = [peaks[1][0] / peaks[0][0], peaks[1][1] / peaks[0][1]];
    // A little is allowed for: of each name something is remembered while suites are read, to find those used twice.
    show(one_pair("    growth".to_string(), Unit::Times, growth, Aim::AtMost(1.25, Unit::Times)));
    Ok(())
}

/// Measures suites of one-line cases, the larger ones beside the smallest, with reports in JSON and JSON lines.
///
/// # Errors
/// When a contestant fails or has not done its work.
pub fn measure_lines(arena: &Arena, sizes: &[usize], show: &mut dyn FnMut(Row)) -> Result<(), Failure> {
    let reports = ["-o", "report.json", "-o", "report.jsonl"];
    let mut peaks = Vec::new();
    for cases in sizes.iter().copied() {
        let workload = Workload { cases, turns: 1, parallel: PARALLEL };
        let suites = arena.write_lines(cases)?;
        let (hotseat, bare) = arena.pair_with(&suites, workload, &reports)?;
        let what = format!("{} JSON lines with reports, {PARALLEL} at once", thousands(cases as f64));
        let wall = [hotseat, bare].map(|cost| milliseconds(cost.wall));
        show(one_pair(what, Unit::Milliseconds, wall, Aim::None));
        let peak = [hotseat, bare].map(|cost| mebibytes(cost.peak));
        show(one_pair("    peak memory".to_string(), Unit::Mebibytes, peak, Aim::None));
        peaks.push(peak);
    }
    if let (Some(first), Some(last)) = (peaks.first(), peaks.last()) {
        let growth = [last[0] / first[0], last[1] / first[1]];
        show(one_pair("    growth".to_string(), Unit::Times, growth, Aim::AtMost(1.25, Unit::Times)));
    }
    Ok(())
}

/// Measures reading and checking suites of so many cases, without holding a conversation, beside the parser alone.
///
/// # Errors
/// When a contestant fails or has not done its work.
pub fn measure_reading(
    arena: &Arena,
    cases: usize,
    pairs: usize,
    show: &mut dyn FnMut(Row),
) -> Result<(), Failure> {
    let suites = arena.write_suites(cases, 1)?;
    let (mut times, mut peaks) = (Pairs::default(), Pairs::default());
    for _ in 0..pairs {
        let (hotseat, parser) = (arena.dry_run(&suites)?, arena.read_yaml(&suites)?);
        times.push(milliseconds(hotseat.wall), milliseconds(parser.wall));
        peaks.push(mebibytes(hotseat.peak), mebibytes(parser.peak));
    }
    let what = format!("--dry-run of {} cases", thousands(cases as f64));
    show(Row { what, unit: Unit::Milliseconds, pairs: times, aim: Aim::None });
    show(Row { what: "    peak memory".to_string(), unit: Unit::Mebibytes, pairs: peaks, aim: Aim::None });
    Ok(())
}

fn one_pair(what: String, unit: Unit, [hotseat, yardstick]: [f64; 2], aim: Aim) -> Row {
    let mut pairs = Pairs::default();
    pairs.push(hotseat, yardstick);
    Row { what, unit, pairs, aim }
}
