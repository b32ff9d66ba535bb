//! Checksums of rows, which detect rows that were altered on disk.
//!
//! SQLite detects damage to its own structure but not to stored values. So every row has a `seal`, a checksum
//! of all its other columns, and a finished run stores its number of rows. Runs from before the introduction
//! of seals have none; a run has seals on all of its rows or on none.

use std::sync::OnceLock;

use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Transaction, params};

/// A table whose rows belong to a run.
pub(super) struct RunTable {
    name: &'static str,
    /// All columns except the seal.
    columns: &'static str,
    insertion: OnceLock<String>,
}

pub(super) static SOURCE_TABLE: RunTable =
    RunTable::new("source", "run, number, name, text, first_line, first_column");
pub(super) static SUITE_TABLE: RunTable = RunTable::new("suite", "run, number, path, shown");
pub(super) static CASE_TABLE: RunTable =
    RunTable::new("cases", "run, place, id, suite, began, facts, ended, status, kind, left_over, outcome");
pub(super) static ATTEMPT_TABLE: RunTable =
    RunTable::new("attempt", "run, place, number, told, facts, events");
pub(super) static STOP_TABLE: RunTable = RunTable::new("stop", "run, told, wish");

const RUN_TABLES: [&RunTable; 5] = [&SOURCE_TABLE, &SUITE_TABLE, &CASE_TABLE, &ATTEMPT_TABLE, &STOP_TABLE];

/// Columns of the table `run`.
const RUN_COLUMNS: &str = "number, id, began, ended, about, summary, git_commit, git_dirty, rows";

/// First version of the tables in which rows have seals.
const FIRST_SEALED_VERSION: i64 = 2;

/// Adds the SQL function `seal`, which returns the checksum of its arguments.
pub(super) fn register_seal_function(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("seal", -1, flags, |arguments| {
        let mut sum = SealHash::default();
        (0..arguments.len()).for_each(|index| sum.add(arguments.get_raw(index)));
        Ok(sum.0.cast_signed())
    })
}

/// FNV-1a hash over values with their types and lengths.
struct SealHash(u64);

impl Default for SealHash {
    fn default() -> Self {
        SealHash(0xcbf2_9ce4_8422_2325)
    }
}

impl SealHash {
    fn add(&mut self, value: ValueRef<'_>) {
        match value {
            ValueRef::Null => self.bytes(&[0]),
            ValueRef::Integer(number) => self.tagged(1, &number.to_le_bytes()),
            ValueRef::Real(number) => self.tagged(2, &number.to_bits().to_le_bytes()),
            ValueRef::Text(text) => self.tagged(3, text),
            ValueRef::Blob(blob) => self.tagged(4, blob),
        }
    }

    fn tagged(&mut self, tag: u8, bytes: &[u8]) {
        self.bytes(&[tag]);
        self.bytes(&bytes.len().to_le_bytes());
        self.bytes(bytes);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

impl RunTable {
    const fn new(name: &'static str, columns: &'static str) -> RunTable {
        RunTable { name, columns, insertion: OnceLock::new() }
    }

    /// Returns the statement that inserts a sealed row; its parameters are the values of the columns.
    pub(super) fn insertion(&self) -> &str {
        self.insertion.get_or_init(|| {
            let RunTable { name, columns, .. } = self;
            let values: Vec<String> =
                (1..=columns.split(',').count()).map(|number| format!("?{number}")).collect();
            let values = values.join(", ");
            format!("INSERT OR REPLACE INTO {name} ({columns}, seal) VALUES ({values}, seal({values}))")
        })
    }
}

/// Updates the seal of the row of a run after a change.
pub(super) fn seal_run(transaction: &Transaction<'_>, run: i64) -> rusqlite::Result<()> {
    transaction.execute(&format!("UPDATE run SET seal = seal({RUN_COLUMNS}) WHERE number = ?1"), [run])?;
    Ok(())
}

/// Seals all rows of a run that is resumed, if it was started before the introduction of seals.
pub(super) fn seal_all(transaction: &Transaction<'_>, run: i64) -> rusqlite::Result<()> {
    let has_none: bool =
        transaction.query_row("SELECT seal IS NULL FROM run WHERE number = ?1", [run], |row| row.get(0))?;
    if has_none {
        for RunTable { name: table, columns, .. } in RUN_TABLES {
            transaction
                .execute(&format!("UPDATE {table} SET seal = seal({columns}) WHERE run = ?1"), [run])?;
        }
    }
    Ok(())
}

/// Stores the number of rows of a finished run.
pub(super) fn store_row_count(transaction: &Transaction<'_>, run: i64) -> rusqlite::Result<()> {
    let rows = row_count(transaction, run)?;
    transaction.execute("UPDATE run SET rows = ?2 WHERE number = ?1", params![run, rows])?;
    Ok(())
}

fn row_count(connection: &Connection, run: i64) -> rusqlite::Result<i64> {
    RUN_TABLES.iter().try_fold(0, |sum, RunTable { name: table, .. }| {
        let count = format!("SELECT count(*) FROM {table} WHERE run = ?1");
        connection.query_row(&count, [run], |row| row.get::<_, i64>(0)).map(|rows| sum + rows)
    })
}

/// A version of a file that contradicts its tables.
#[derive(Debug, thiserror::Error)]
#[error("its tables are not those of version {0}")]
pub(super) struct VersionMismatch(i64);

/// Returns true if rows have seals, or an error if the version of the file contradicts its tables. Fails if
/// the file cannot be read.
pub(super) fn has_seals(connection: &Connection) -> rusqlite::Result<Result<bool, VersionMismatch>> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let column = "SELECT 1 FROM pragma_table_info('run') WHERE name = 'seal'";
    let has_column = connection.query_row(column, [], |_| Ok(())).optional()?.is_some();
    Ok(match (version >= FIRST_SEALED_VERSION, has_column) {
        (true, true) => Ok(true),
        (false, false) => Ok(false),
        _ => Err(VersionMismatch(version)),
    })
}

/// Describes damage to the rows of a run. Returns `None` if all rows are intact. Fails if the file cannot be
/// read.
pub(super) fn find_damage(connection: &Connection, run: i64) -> rusqlite::Result<Option<String>> {
    match has_seals(connection)? {
        Err(error) => return Ok(Some(error.to_string())),
        Ok(false) => return Ok(None),
        Ok(true) => {}
    }
    // Reads all rows in one snapshot, because another process may resume the run.
    let _moment = connection.unchecked_transaction()?;
    if let Some(words) = integrity_error(connection, "run")? {
        return Ok(Some(words));
    }
    let select = format!(
        "SELECT rows, seal IS NULL, seal IS seal({RUN_COLUMNS}), ended IS NULL FROM run WHERE number = ?1"
    );
    let (rows, has_no_seal, is_whole, goes_on): (Option<i64>, bool, bool, bool) =
        connection
            .query_row(&select, [run], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
    if !has_no_seal && !is_whole {
        return Ok(Some("the row of the run was altered".to_string()));
    }
    for RunTable { name: table, columns, .. } in RUN_TABLES {
        let is_altered = match has_no_seal {
            true => "seal IS NOT NULL".to_string(),
            false => format!("seal IS NOT seal({columns})"),
        };
        let select = format!("SELECT count(*) FROM {table} WHERE run = ?1 AND {is_altered}");
        let altered: i64 = connection.query_row(&select, [run], |row| row.get(0))?;
        if altered > 0 {
            return Ok(Some(format!("altered rows in table `{table}`: {altered}")));
        }
        // The expected number of rows is known only after the end of the run.
        if goes_on && let Some(words) = integrity_error(connection, table)? {
            return Ok(Some(words));
        }
    }
    let found = row_count(connection, run)?;
    Ok(match rows {
        Some(rows) if rows != found => Some(format!("the run has {found} rows, but {rows} were written")),
        None if !has_no_seal && !goes_on => Some("the row count of the run is missing".to_string()),
        _ => None,
    })
}

/// Returns true if the row of a run or of one of its suites was altered.
pub(super) fn is_run_altered(connection: &Connection, run: i64) -> rusqlite::Result<bool> {
    let RunTable { name: suites, columns, .. } = SUITE_TABLE;
    let select = format!(
        "SELECT EXISTS (SELECT 1 FROM run WHERE number = ?1 AND seal <> seal({RUN_COLUMNS}))
         OR EXISTS (SELECT 1 FROM {suites} WHERE run = ?1 AND seal <> seal({columns}))"
    );
    connection.prepare_cached(&select)?.query_row([run], |row| row.get(0))
}

/// Returns true if the row of a case was altered.
pub(super) fn is_case_altered(connection: &Connection, run: i64, place: i64) -> rusqlite::Result<bool> {
    let RunTable { name: cases, columns, .. } = CASE_TABLE;
    let select = format!("SELECT seal <> seal({columns}) FROM {cases} WHERE run = ?1 AND place = ?2");
    let is_altered: Option<bool> =
        connection.prepare_cached(&select)?.query_row(params![run, place], |row| row.get(0))?;
    Ok(is_altered.unwrap_or_default())
}

/// Runs the integrity check of SQLite for a table and its indexes.
fn integrity_error(connection: &Connection, table: &str) -> rusqlite::Result<Option<String>> {
    let check = format!("PRAGMA integrity_check({table})");
    let found: String = connection.query_row(&check, [], |row| row.get(0))?;
    Ok((found != "ok").then(|| format!("table `{table}`: {}", found.lines().next().unwrap_or_default())))
}
