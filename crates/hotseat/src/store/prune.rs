//! Runs that are old, or too many for the room they may take, are given up.

use std::path::Path;
use std::time::Duration;

use hotseat_trace::Millis;
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};

use super::life::goes_on;

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long runs are kept; none where that does not matter.
    pub keep: Option<Duration>,
    /// How many bytes they may take; none where that does not matter.
    pub max_size: Option<u64>,
}

impl Limits {
    /// These limits; what is not said is as usual.
    pub fn or_usual(keep: Option<Duration>, max_size: Option<u64>) -> Limits {
        let usual = Limits::default();
        Limits { keep: keep.or(usual.keep), max_size: max_size.or(usual.max_size) }
    }
}

impl Default for Limits {
    /// Three months, and a gigabyte.
    fn default() -> Self {
        Limits { keep: Some(Duration::from_hours(90 * 24)), max_size: Some(1_000_000_000) }
    }
}

/// What was given up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// How many runs.
    pub runs: usize,
    /// How many bytes runs took before.
    pub before: u64,
    /// How many they take now.
    pub after: u64,
}

/// Deletes the oldest runs until the others keep to the limits. Running runs are left alone, and so are the run `own` and
/// all newer ones: what was just made is never lost. Without `own` the newest run is meant.
///
/// Ages are measured from `now` or from the start of the run `own`, whichever is earlier: a clock that is set to the
/// future for a while deletes nothing.
pub(super) fn prune(
    path: &Path,
    connection: &mut Connection,
    limits: Limits,
    own: Option<i64>,
    now: Millis,
) -> rusqlite::Result<Pruned> {
    let before = size(connection)?;
    let mut pruned = Pruned { runs: 0, before, after: before };
    let Some((own, started)) = newest_kept(connection, own)? else { return Ok(pruned) };
    let oldest_kept = limits.keep.map_or(Millis::MIN, |keep| {
        now.min(started).saturating_sub(Millis::try_from(keep.as_millis()).unwrap_or(Millis::MAX))
    });
    for Old { number, id, began, has_ended } in older_than(connection, own)? {
        let is_large = limits.max_size.is_some_and(|most| pruned.after > most);
        if began >= oldest_kept && !is_large {
            break;
        }
        if has_ended || !goes_on(path, &id) {
            remove(connection, number)?;
            pruned.runs += 1;
            pruned.after = size(connection)?;
        }
    }
    if pruned.runs > 0 {
        give_back(connection)?;
    }
    Ok(pruned)
}

/// Makes the file as small as what is in use. Each step gives back one page.
fn give_back(connection: &Connection) -> rusqlite::Result<()> {
    let mut vacuum = connection.prepare("PRAGMA incremental_vacuum")?;
    let mut pages = vacuum.query([])?;
    while pages.next()?.is_some() {}
    // What is written ahead is put into the file, which is cut then, though others may have it open.
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

/// A run that may be given up.
struct Old {
    number: i64,
    id: String,
    began: Millis,
    has_ended: bool,
}

/// The number and the start of a run; of the newest one if none is named. None if there are no runs.
fn newest_kept(connection: &Connection, own: Option<i64>) -> rusqlite::Result<Option<(i64, Millis)>> {
    let select = "SELECT number, began FROM run WHERE ?1 IS NULL OR number = ?1 ORDER BY number DESC LIMIT 1";
    connection.query_row(select, params![own], |row| Ok((row.get(0)?, row.get(1)?))).optional()
}

/// All runs before another one, the oldest first.
fn older_than(connection: &Connection, own: i64) -> rusqlite::Result<Vec<Old>> {
    let mut select = connection.prepare_cached(
        "SELECT number, id, began, ended IS NOT NULL FROM run WHERE number < ?1 ORDER BY number",
    )?;
    let old = |row: &Row<'_>| {
        Ok(Old { number: row.get(0)?, id: row.get(1)?, began: row.get(2)?, has_ended: row.get(3)? })
    };
    select.query_map([own], old)?.collect()
}

/// Removes a run with all that belongs to it.
pub(super) fn remove(connection: &mut Connection, run: i64) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for table in ["attempt", "cases", "stop", "source", "suite"] {
        transaction.execute(&format!("DELETE FROM {table} WHERE run = ?1"), params![run])?;
    }
    transaction.execute("DELETE FROM run WHERE number = ?1", params![run])?;
    transaction.commit()
}

/// How many bytes are in use.
fn size(connection: &Connection) -> rusqlite::Result<u64> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let pages = pragma("page_count")? - pragma("freelist_count")?;
    Ok(u64::try_from(pages * pragma("page_size")?).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::tables::{self, For};

    const DAY: Millis = 24 * 60 * 60 * 1_000;

    /// Numbers of the runs that are left when runs that began on these days are pruned by the run `own`.
    fn left(days: &[i64], own: i64, now: i64) -> Vec<i64> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("runs.db");
        let mut connection = tables::open(&path, For::Beginning).expect("a store");
        for (number, day) in (1_i64..).zip(days) {
            let insert = "INSERT INTO run (number, id, began, ended, about) VALUES (?1, ?2, ?3, ?3, x'')";
            connection.execute(insert, params![number, format!("{number:08x}"), day * DAY]).expect("a run");
        }
        let limits = Limits { keep: Some(Duration::from_hours(90 * 24)), max_size: None };
        prune(&path, &mut connection, limits, Some(own), now * DAY).expect("pruned");
        let mut select = connection.prepare("SELECT number FROM run ORDER BY number").expect("a query");
        select.query_map([], |row| row.get(0)).and_then(Iterator::collect).expect("numbers")
    }

    #[test]
    fn old_runs_are_deleted_and_a_clock_in_the_future_deletes_nothing() {
        assert_eq!(left(&[0, 50, 100], 3, 100), [2, 3]);
        assert_eq!(left(&[0, 50, 80], 3, 10_000), [1, 2, 3]);
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
            let left = left(&days, own, now);
            prop_assert!((own..=count).all(|number| left.contains(&number)), "{:?}", left);
        }
    }
}
