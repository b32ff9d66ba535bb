//! Compares the cost of Hotseat with that of the bare client, and fails if it exceeds a bound.
//!
//! Only processor time and memory are compared: other programs on the machine change them less than wall time.

use crate::arena::{BenchArena, ProcessCost};
use crate::bare_client::BenchError;
use crate::figures::{BenchGoal, BenchUnit, MeasuredPairs, TableRow, mebibytes, thousands};
use crate::workload::Workload;

/// Default factor by which a ratio may exceed the one in `COMPARISONS`: room for noise and other machines.
pub const DEFAULT_TOLERANCE: f64 = 1.3;

/// A workload, and the ratios to the bare client that were measured when this table was last changed.
struct Comparison {
    cases: usize,
    turns: usize,
    parallel: usize,
    is_saved: bool,
    /// Ratios of a release build and of a debug build.
    processor: BuildRatios,
    memory: BuildRatios,
}

/// A ratio of each kind of build.
struct BuildRatios {
    release: f64,
    debug: f64,
}

impl BuildRatios {
    const fn new(release: f64, debug: f64) -> BuildRatios {
        BuildRatios { release, debug }
    }

    fn of_this_build(&self) -> f64 {
        if cfg!(debug_assertions) { self.debug } else { self.release }
    }
}

const COMPARISONS: [Comparison; 5] = [
    Comparison {
        cases: 1,
        turns: 1,
        parallel: 1,
        is_saved: false,
        processor: BuildRatios::new(3.4, 6.8),
        memory: BuildRatios::new(4.9, 5.4),
    },
    Comparison {
        cases: 1_500,
        turns: 1,
        parallel: 16,
        is_saved: false,
        processor: BuildRatios::new(6.2, 6.5),
        memory: BuildRatios::new(8.0, 6.8),
    },
    Comparison {
        cases: 1_500,
        turns: 1,
        parallel: 16,
        is_saved: true,
        processor: BuildRatios::new(7.1, 7.7),
        memory: BuildRatios::new(8.8, 7.3),
    },
    Comparison {
        cases: 1_500,
        turns: 1,
        parallel: 64,
        is_saved: false,
        processor: BuildRatios::new(5.2, 7.0),
        memory: BuildRatios::new(7.4, 5.8),
    },
    Comparison {
        cases: 500,
        turns: 3,
        parallel: 16,
        is_saved: false,
        processor: BuildRatios::new(3.9, 5.1),
        memory: BuildRatios::new(7.2, 6.9),
    },
];

impl Comparison {
    fn label(&self) -> String {
        let Comparison { cases, turns, parallel, is_saved, .. } = self;
        let what = match (*cases, *turns) {
            (1, _) => "a run of one case".to_string(),
            (cases, 1) => format!("{} cases, {parallel} at once", thousands(cases as f64)),
            (cases, turns) => format!("{} of {turns} turns, {parallel} at once", thousands(cases as f64)),
        };
        if *is_saved { format!("{what}, saved") } else { what }
    }
}

/// Measures each comparison `pairs` times and shows it. `tolerance` is the factor by which a ratio may exceed
/// the landed one. Fails if a bound is exceeded, or a program fails or is incomplete.
pub fn measure(
    arena: &BenchArena,
    pairs: usize,
    tolerance: f64,
    show: &mut dyn FnMut(TableRow),
) -> Result<(), BenchError> {
    let mut exceeded = Vec::new();
    for comparison in &COMPARISONS {
        let [time, memory] = measure_comparison(arena, comparison, pairs, tolerance)?;
        for (row, what) in [(time, "processor time"), (memory, "peak memory")] {
            if !row.is_met() {
                exceeded.push(format!("{what} of {}", comparison.label()));
            }
            show(row);
        }
    }
    match exceeded.as_slice() {
        [] => Ok(()),
        rows => Err(format!("Hotseat has become slower or larger: {}", rows.join("; ")).into()),
    }
}

fn measure_comparison(
    arena: &BenchArena,
    comparison: &Comparison,
    pairs: usize,
    tolerance: f64,
) -> Result<[TableRow; 2], BenchError> {
    let Comparison { cases, turns, parallel, is_saved, processor, memory } = comparison;
    let workload = Workload { cases: *cases, turns: *turns, parallel: *parallel };
    let arguments: &[&str] = if *is_saved { &[] } else { &["--no-store"] };
    let suites = arena.write_suites(*cases, *turns)?;
    let (mut times, mut peaks) = (MeasuredPairs::default(), MeasuredPairs::default());
    let time = |cost: ProcessCost| cost.cpu.as_secs_f64() * 1e6 / *cases as f64;
    for _ in 0..pairs {
        let (hotseat, bare) = arena.measure_pair_with(&suites, workload, arguments)?;
        times.push(time(hotseat), time(bare));
        peaks.push(mebibytes(hotseat.peak), mebibytes(bare.peak));
    }
    let bound = |ratios: &BuildRatios| BenchGoal::RatioAtMost(ratios.of_this_build() * tolerance);
    let (what, unit) = (format!("{}: time", comparison.label()), BenchUnit::Microseconds);
    let processor = TableRow { what, unit, pairs: times, aim: bound(processor) };
    let (what, unit) = ("    peak memory".to_string(), BenchUnit::Mebibytes);
    Ok([processor, TableRow { what, unit, pairs: peaks, aim: bound(memory) }])
}
