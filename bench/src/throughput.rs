//! How many conversations a second.

use crate::bare_client::Failure;
use crate::contest::{Arena, Cost};
use crate::figures::{Aim, Pairs, Row, Unit, thousands};
use crate::workload::Workload;

/// Measures conversations of one turn at several degrees of parallelism, and longer ones at one of them.
///
/// # Errors
/// When a contestant fails or has not done its work.
pub fn measure(
    arena: &Arena,
    requests: usize,
    pairs: usize,
    show: &mut dyn FnMut(Row),
) -> Result<(), Failure> {
    for (turns, parallel) in [(1, 1), (1, 16), (1, 64), (3, 16)] {
        let workload = Workload { cases: requests / turns, turns, parallel };
        let suites = arena.write_suites(workload.cases, workload.turns)?;
        let (mut speeds, mut processor) = (Pairs::default(), Pairs::default());
        for _ in 0..pairs {
            let (hotseat, bare) = arena.pair(&suites, workload)?;
            let speed = |cost: Cost| workload.cases as f64 / cost.wall.as_secs_f64();
            let time = |cost: Cost| cost.cpu.as_secs_f64() * 1e6 / workload.cases as f64;
            speeds.push(speed(hotseat), speed(bare));
            processor.push(time(hotseat), time(bare));
        }
        let cases = thousands(workload.cases as f64);
        let turns = if turns == 1 { "1 turn".to_string() } else { format!("{turns} turns") };
        let what = format!("{cases} cases of {turns}, {parallel} at once");
        show(Row { what, unit: Unit::CasesPerSecond, pairs: speeds, aim: Aim::RatioAtLeast(0.6) });
        let what = "    processor time of a case".to_string();
        show(Row { what, unit: Unit::Microseconds, pairs: processor, aim: Aim::None });
    }
    Ok(())
}
