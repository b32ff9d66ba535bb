//! What it costs that a run is kept, each report that it writes, and telling of it again.

use crate::bare_client::Failure;
use crate::contest::{Arena, Cost, bytes_in};
use crate::figures::{Aim, Pairs, Row, Unit, mebibytes, milliseconds, thousands};
use crate::workload::Workload;

const PARALLEL: usize = 16;

/// Reports, by the name of the file they are written to.
const REPORTS: [&str; 5] = ["report.json", "report.jsonl", "report.xml", "report.html", "report.md"];

/// Ways of telling of a kept run again, each with the reports that it writes.
const TELLINGS: [&[&str]; 4] =
    [&["runs"], &["show", "last"], &["show", "last", "-o", "again.html"], &["show", "last", "--json"]];

/// Measures a run of so many cases that is kept, beside the same run that is not; then each report, beside the run
/// without it; then telling of the kept run again, beside the run itself.
///
/// # Errors
/// When Hotseat fails or has not done its work.
pub fn measure(arena: &Arena, cases: usize, pairs: usize, show: &mut dyn FnMut(Row)) -> Result<(), Failure> {
    let workload = Workload { cases, turns: 1, parallel: PARALLEL };
    let suites = arena.write_lines(cases)?;
    let number = thousands(cases as f64);
    let unkept = |more: &[&str]| arena.hotseat(&suites, workload, &[&["--no-store"], more].concat());

    let mut kept = Compared::default();
    for _ in 0..pairs {
        arena.forget_runs()?;
        kept.push(arena.hotseat(&suites, workload, &[])?, unkept(&[])?);
    }
    kept.show(&format!("{number} cases, kept"), show);
    let mut sizes = Pairs::default();
    sizes.push(mebibytes(arena.kept_bytes()?), mebibytes(bytes_in(&suites)?));
    show(Row {
        what: "    the store beside the suites".to_string(),
        unit: Unit::Mebibytes,
        pairs: sizes,
        aim: Aim::None,
    });

    let itself = arena.hotseat(&suites, workload, &[])?;
    for telling in TELLINGS {
        let mut told = Compared::default();
        told.push(arena.command(telling)?, itself);
        told.show(&format!("    {}", telling.join(" ")), show);
    }

    for report in REPORTS {
        let mut written = Compared::default();
        for _ in 0..pairs {
            written.push(unkept(&["-o", report])?, unkept(&[])?);
        }
        written.show(&format!("{number} cases, -o {report}"), show);
    }
    Ok(())
}

/// What two ways of running cost.
#[derive(Default)]
struct Compared {
    wall: Pairs,
    processor: Pairs,
    peak: Pairs,
}

impl Compared {
    fn push(&mut self, measured: Cost, yardstick: Cost) {
        self.wall.push(milliseconds(measured.wall), milliseconds(yardstick.wall));
        self.processor.push(milliseconds(measured.cpu), milliseconds(yardstick.cpu));
        self.peak.push(mebibytes(measured.peak), mebibytes(yardstick.peak));
    }

    fn show(self, what: &str, show: &mut dyn FnMut(Row)) {
        let indented = |what: &str| format!("    {what}");
        let rows = [
            (what.to_string(), Unit::Milliseconds, self.wall),
            (indented("processor time"), Unit::Milliseconds, self.processor),
            (indented("peak memory"), Unit::Mebibytes, self.peak),
        ];
        for (what, unit, pairs) in rows {
            show(Row { what, unit, pairs, aim: Aim::None });
        }
    }
}
