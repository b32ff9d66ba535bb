//! How long one case takes as a person at the keyboard sees it: the whole process.

use crate::bare_client::Failure;
use crate::contest::Arena;
use crate::figures::{Aim, Pairs, Row, Unit, milliseconds};
use crate::workload::Workload;

/// Measures a run of one case, several times.
///
/// # Errors
/// When a contestant fails or has not done its work.
pub fn measure(arena: &Arena, times: usize, show: &mut dyn FnMut(Row)) -> Result<(), Failure> {
    let suites = arena.write_suites(1, 1)?;
    let mut pairs = Pairs::default();
    for _ in 0..times {
        let (hotseat, bare) = arena.pair(&suites, Workload { cases: 1, turns: 1, parallel: 1 })?;
        pairs.push(milliseconds(hotseat.wall), milliseconds(bare.wall));
    }
    let aim = Aim::Under(20.0, Unit::Milliseconds);
    show(Row { what: "start-up: a run of one case".to_string(), unit: Unit::Milliseconds, pairs, aim });
    Ok(())
}
