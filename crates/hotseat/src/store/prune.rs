//! Runs that are old, or too many for the room they may take, are given up.

use std::path::Path;
use std::time::Duration;

use hotseat_trace::Millis;
use rusqlite::{Connection, Row, TransactionBehavior, params};

use super::life::goes_on;
use crate::session::wall_millis;

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long runs are kept; none where that does not matter.
    pub keep: Option<Duration>,
    /// How many bytes they may take; none where that does not matter.
    pub max_size: Option<u64>,
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

/// Gives up the oldest runs until the others keep to the limits. Runs that go on are left alone, and so is the last
/// one: what was just made is never lost.
pub(super) fn prune(path: &Path, connection: &mut Connection, limits: Limits) -> rusqlite::Result<Pruned> {
    let before = size(connection)?;
    let mut pruned = Pruned { runs: 0, before, after: before };
    let oldest_kept = limits.keep.map_or(Millis::MIN, |keep| {
        wall_millis().saturating_sub(Millis::try_from(keep.as_millis()).unwrap_or(Millis::MAX))
    });
    for Old { number, id, began, has_ended } in all_but_the_last(connection)? {
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

/// All runs but the last, the oldest first.
fn all_but_the_last(connection: &Connection) -> rusqlite::Result<Vec<Old>> {
    let mut select = connection.prepare_cached(
        "SELECT number, id, began, ended IS NOT NULL FROM run
         WHERE number <> (SELECT max(number) FROM run) ORDER BY number",
    )?;
    let old = |row: &Row<'_>| {
        Ok(Old { number: row.get(0)?, id: row.get(1)?, began: row.get(2)?, has_ended: row.get(3)? })
    };
    select.query_map([], old)?.collect()
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
