//! Deletes old runs, and runs that exceed the size limit.

use std::path::Path;
use std::time::Duration;

use hotseat_trace::Millis;
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};

use super::run_lock::is_running;

/// Limits of the run store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreLimits {
    /// Maximum age of a run; `None` for no limit.
    pub max_age: Option<Duration>,
    /// Maximum size of all runs in bytes; `None` for no limit.
    pub max_size: Option<u64>,
}

impl StoreLimits {
    /// Creates limits; `None` selects the default value.
    pub fn with_defaults(max_age: Option<Duration>, max_size: Option<u64>) -> StoreLimits {
        let usual = StoreLimits::default();
        StoreLimits { max_age: max_age.or(usual.max_age), max_size: max_size.or(usual.max_size) }
    }
}

impl Default for StoreLimits {
    /// 90 days and one gigabyte.
    fn default() -> Self {
        StoreLimits { max_age: Some(Duration::from_hours(90 * 24)), max_size: Some(1_000_000_000) }
    }
}

/// Result of pruning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PruneResult {
    /// Number of deleted runs.
    pub runs: usize,
    /// Size of all runs before, in bytes.
    pub before: u64,
    /// Size of all runs after, in bytes.
    pub after: u64,
}

/// Deletes the oldest runs until the rest is within the limits. Running runs are not deleted, nor are the run
/// `own` and all newer ones, so a new run is never lost. Without `own` the newest run is used.
///
/// Without `own`, ages are measured from `now`. With it, they are measured from the earliest of `now`, the start of the run
/// `own` and that of the run before it, so a clock that is in the future during one run deletes nothing.
pub(super) fn prune(
    path: &Path,
    connection: &mut Connection,
    limits: StoreLimits,
    own: Option<i64>,
    now: Millis,
) -> rusqlite::Result<PruneResult> {
    let before = used_bytes(connection)?;
    let mut pruned = PruneResult { runs: 0, before, after: before };
    let Some((protected, started)) = protected_run(connection, own)? else { return Ok(pruned) };
    let candidates = runs_before(connection, protected)?;
    let present = match (own, candidates.last()) {
        (Some(_), Some(before)) => now.min(started).min(before.began),
        (Some(_), None) | (None, _) => now,
    };
    let oldest_kept = limits.max_age.map_or(Millis::MIN, |keep| {
        present.saturating_sub(Millis::try_from(keep.as_millis()).unwrap_or(Millis::MAX))
    });
    for PruneCandidate { number, id, began, has_ended } in candidates {
        let is_large = limits.max_size.is_some_and(|most| pruned.after > most);
        if began >= oldest_kept && !is_large {
            break;
        }
        if has_ended || !is_running(path, &id) {
            delete_run(connection, number)?;
            pruned.runs += 1;
            pruned.after = used_bytes(connection)?;
        }
    }
    if pruned.runs > 0 {
        shrink_file(connection)?;
    }
    Ok(pruned)
}

/// Shrinks the file to its used pages. Each step frees one page.
fn shrink_file(connection: &Connection) -> rusqlite::Result<()> {
    let mut vacuum = connection.prepare("PRAGMA incremental_vacuum")?;
    let mut pages = vacuum.query([])?;
    while pages.next()?.is_some() {}
    // The checkpoint moves the write-ahead log into the file and truncates it, even if other processes have
    // it open.
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

/// Run that may be deleted.
struct PruneCandidate {
    number: i64,
    id: String,
    began: Millis,
    has_ended: bool,
}

/// Returns the number and the start of a run, by default of the newest one. Returns `None` if there are no
/// runs.
fn protected_run(connection: &Connection, own: Option<i64>) -> rusqlite::Result<Option<(i64, Millis)>> {
    let select = "SELECT number, began FROM run WHERE ?1 IS NULL OR number = ?1 ORDER BY number DESC LIMIT 1";
    connection.query_row(select, params![own], |row| Ok((row.get(0)?, row.get(1)?))).optional()
}

/// Returns all runs before another one, oldest first.
fn runs_before(connection: &Connection, own: i64) -> rusqlite::Result<Vec<PruneCandidate>> {
    let mut select = connection.prepare_cached(
        "SELECT number, id, began, ended IS NOT NULL FROM run WHERE number < ?1 ORDER BY number",
    )?;
    let old = |row: &Row<'_>| {
        Ok(PruneCandidate {
            number: row.get(0)?,
            id: row.get(1)?,
            began: row.get(2)?,
            has_ended: row.get(3)?,
        })
    };
    select.query_map([own], old)?.collect()
}

/// Deletes a run and all its rows.
pub(super) fn delete_run(connection: &mut Connection, run: i64) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for table in ["attempt", "cases", "stop", "source", "suite"] {
        transaction.execute(&format!("DELETE FROM {table} WHERE run = ?1"), params![run])?;
    }
    transaction.execute("DELETE FROM run WHERE number = ?1", params![run])?;
    transaction.commit()
}

/// Returns the number of used bytes.
fn used_bytes(connection: &Connection) -> rusqlite::Result<u64> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let pages = pragma("page_count")? - pragma("freelist_count")?;
    Ok(u64::try_from(pages * pragma("page_size")?).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::tables::{self, OpenMode};

    const DAY: Millis = 24 * 60 * 60 * 1_000;

    /// Returns the numbers of the runs that remain after runs that started on these days are pruned by the
    /// run `own`, or on request.
    fn left(days: &[i64], own: Option<i64>, now: i64) -> Vec<i64> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("runs.db");
        let mut connection = tables::open(&path, OpenMode::Create).expect("a store");
        for (number, day) in (1_i64..).zip(days) {
            let insert = "INSERT INTO run (number, id, began, ended, about) VALUES (?1, ?2, ?3, ?3, x'')";
            connection.execute(insert, params![number, format!("{number:08x}"), day * DAY]).expect("a run");
        }
        let limits = StoreLimits { max_age: Some(Duration::from_hours(90 * 24)), max_size: None };
        prune(&path, &mut connection, limits, own, now * DAY).expect("pruned");
        let mut select = connection.prepare("SELECT number FROM run ORDER BY number").expect("a query");
        select.query_map([], |row| row.get(0)).and_then(Iterator::collect).expect("numbers")
    }

    #[test]
    fn old_runs_are_deleted_and_a_clock_in_the_future_deletes_nothing() {
        assert_eq!(left(&[0, 50, 100, 101], Some(4), 101), [2, 3, 4]);
        assert_eq!(left(&[0, 50, 80], Some(3), 10_000), [1, 2, 3]);
        assert_eq!(left(&[0, 50, 80, 10_000], Some(4), 10_000), [1, 2, 3, 4]);
        assert_eq!(left(&[0, 50, 80, 10_000, 81], Some(5), 81), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn on_request_ages_are_measured_from_now() {
        assert_eq!(left(&[0, 50, 80], None, 141), [3]);
        assert_eq!(left(&[0, 50, 80], None, 10_000), [3]);
    }

    proptest! {
        #[test]
        fn a_run_never_deletes_itself_or_newer_ones(
            days in prop::collection::vec(0..10_000_i64, 1..6),
            own in 1..6_i64,
            now in 0..20_000_i64,
        ) {
            let count = i64::try_from(days.len()).expect("a few");
            let own = own.min(count);
            let left = left(&days, Some(own), now);
            prop_assert!((own..=count).all(|number| left.contains(&number)), "{:?}", left);
        }
    }
}
