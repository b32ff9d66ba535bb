//! Measures the cost of saving a run, of each report, and of replaying a saved run.

use crate::arena::{BenchArena, ProcessCost, folder_bytes};
use crate::bare_client::BenchError;
use crate::figures::{BenchGoal, BenchUnit, MeasuredPairs, TableRow, mebibytes, milliseconds, thousands};
use crate::workload::Workload;

const PARALLEL_CASES: usize = 16;

/// Report files.
const REPORTS: [&str; 5] = ["report.json", "report.jsonl", "report.xml", "report.html", "report.md"];

/// Commands that replay a saved run.
const REPLAY_COMMANDS: [&[&str]; 4] =
    [&["runs"], &["show", "last"], &["show", "last", "-o", "again.html"], &["show", "last", "--json"]];

/// Measures a saved run against the same run without saving; then each report against the run without it;
/// then replays of the saved run against the run itself. Fails if Hotseat fails or is incomplete.
pub fn measure(
    arena: &BenchArena,
    cases: usize,
    pairs: usize,
    show: &mut dyn FnMut(TableRow),
) -> Result<(), BenchError> {
    let workload = Workload { cases, turns: 1, parallel: PARALLEL_CASES };
    let suites = arena.write_lines(cases)?;
    let number = thousands(cases as f64);
    let unkept = |more: &[&str]| arena.run_hotseat(&suites, workload, &[&["--no-store"], more].concat());

    let mut kept = CostComparison::default();
    for _ in 0..pairs {
        arena.delete_runs()?;
        kept.push(arena.run_hotseat(&suites, workload, &[])?, unkept(&[])?);
    }
    kept.show(&format!("{number} cases, kept"), show);
    let mut sizes = MeasuredPairs::default();
    sizes.push(mebibytes(arena.store_bytes()?), mebibytes(folder_bytes(&suites)?));
    show(TableRow {
        what: "    the store beside the suites".to_string(),
        unit: BenchUnit::Mebibytes,
        pairs: sizes,
        aim: BenchGoal::None,
    });

    let itself = arena.run_hotseat(&suites, workload, &[])?;
    for telling in REPLAY_COMMANDS {
        let mut told = CostComparison::default();
        told.push(arena.run_command(telling)?, itself);
        told.show(&format!("    {}", telling.join(" ")), show);
    }

    for report in REPORTS {
        let mut written = CostComparison::default();
        for _ in 0..pairs {
            written.push(unkept(&["-o", report])?, unkept(&[])?);
        }
        written.show(&format!("{number} cases, -o {report}"), show);
    }
    Ok(())
}

/// Cost of two variants.
#[derive(Default)]
struct CostComparison {
    wall: MeasuredPairs,
    processor: MeasuredPairs,
    peak: MeasuredPairs,
}

impl CostComparison {
    fn push(&mut self, measured: ProcessCost, yardstick: ProcessCost) {
        self.wall.push(milliseconds(measured.wall), milliseconds(yardstick.wall));
        self.processor.push(milliseconds(measured.cpu), milliseconds(yardstick.cpu));
        self.peak.push(mebibytes(measured.peak), mebibytes(yardstick.peak));
    }

    fn show(self, what: &str, show: &mut dyn FnMut(TableRow)) {
        let indented = |what: &str| format!("    {what}");
        let rows = [
            (what.to_string(), BenchUnit::Milliseconds, self.wall),
            (indented("processor time"), BenchUnit::Milliseconds, self.processor),
            (indented("peak memory"), BenchUnit::Mebibytes, self.peak),
        ];
        for (what, unit, pairs) in rows {
            show(TableRow { what, unit, pairs, aim: BenchGoal::None });
        }
    }
}
