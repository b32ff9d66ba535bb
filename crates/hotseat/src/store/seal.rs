//! Seals of rows: by them a row that was altered on the disk is told from one that was written.
//!
//! SQLite notices damage of its own structure and none of what is kept in it. So every row has a `seal`, a sum of all its
//! other columns, and a run that has ended says how many rows it has. Runs that were kept before there were seals have
//! none; a run either has them on all of its rows or on none.

use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Transaction, params};

/// The tables whose rows belong to a run, and their columns but for the seal.
const TABLES: [(&str, &str); 5] = [
    ("source", "run, number, name, text, first_line, first_column"),
    ("suite", "run, number, path, shown"),
    ("cases", CASES),
    ("attempt", "run, place, number, told, facts, events"),
    ("stop", "run, told, wish"),
];
/// The columns of a case.
const CASES: &str = "run, place, id, suite, began, facts, ended, status, kind, left_over, outcome";
/// The columns of a run.
const RUN: &str = "number, id, began, ended, about, summary, git_commit, git_dirty, rows";

/// The version of the tables from which on rows have seals.
const SINCE_VERSION: i64 = 2;

/// Gives a connection the function `seal`, which sums up its arguments.
pub(super) fn register(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("seal", -1, flags, |arguments| {
        let mut sum = Sum::default();
        (0..arguments.len()).for_each(|index| sum.add(arguments.get_raw(index)));
        Ok(sum.0.cast_signed())
    })
}

/// FNV-1a over values with their types and lengths.
struct Sum(u64);

impl Default for Sum {
    fn default() -> Self {
        Sum(0xcbf2_9ce4_8422_2325)
    }
}

impl Sum {
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

/// Inserts a row of these columns with its seal; the values are the parameters of the statement.
pub(super) fn insert(table: &str, columns: &str) -> String {
    let count = columns.split(',').count();
    let values: Vec<String> = (1..=count).map(|number| format!("?{number}")).collect();
    let values = values.join(", ");
    format!("INSERT OR REPLACE INTO {table} ({columns}, seal) VALUES ({values}, seal({values}))")
}

/// Seals the row of a run, which was altered.
pub(super) fn seal_run(transaction: &Transaction<'_>, run: i64) -> rusqlite::Result<()> {
    transaction.execute(&format!("UPDATE run SET seal = seal({RUN}) WHERE number = ?1"), [run])?;
    Ok(())
}

/// Seals all rows of a run that goes on, if it was begun before there were seals.
pub(super) fn seal_all(transaction: &Transaction<'_>, run: i64) -> rusqlite::Result<()> {
    let has_none: bool =
        transaction.query_row("SELECT seal IS NULL FROM run WHERE number = ?1", [run], |row| row.get(0))?;
    if has_none {
        for (table, columns) in TABLES {
            transaction
                .execute(&format!("UPDATE {table} SET seal = seal({columns}) WHERE run = ?1"), [run])?;
        }
    }
    Ok(())
}

/// Notes how many rows a run has that has ended.
pub(super) fn count_rows(transaction: &Transaction<'_>, run: i64) -> rusqlite::Result<()> {
    let rows = rows_of(transaction, run)?;
    transaction.execute("UPDATE run SET rows = ?2 WHERE number = ?1", params![run, rows])?;
    Ok(())
}

fn rows_of(connection: &Connection, run: i64) -> rusqlite::Result<i64> {
    TABLES.iter().try_fold(0, |sum, (table, _)| {
        let count = format!("SELECT count(*) FROM {table} WHERE run = ?1");
        connection.query_row(&count, [run], |row| row.get::<_, i64>(0)).map(|rows| sum + rows)
    })
}

/// Whether rows have seals.
///
/// # Errors
/// When the file cannot be read, or its version and its tables contradict each other, in words.
pub(super) fn has_seals(connection: &Connection) -> rusqlite::Result<Result<bool, String>> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let column = "SELECT 1 FROM pragma_table_info('run') WHERE name = 'seal'";
    let has_column = connection.query_row(column, [], |_| Ok(())).optional()?.is_some();
    Ok(match (version >= SINCE_VERSION, has_column) {
        (true, true) => Ok(true),
        (false, false) => Ok(false),
        _ => Err(format!("its tables are not those of version {version}")),
    })
}

/// What is damaged of a run, in words; none if all of it is as it was written.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn damage(connection: &Connection, run: i64) -> rusqlite::Result<Option<String>> {
    match has_seals(connection)? {
        Err(words) => return Ok(Some(words)),
        Ok(false) => return Ok(None),
        Ok(true) => {}
    }
    // All is read at one moment: another process may go on with the run.
    let _moment = connection.unchecked_transaction()?;
    if let Some(words) = structure(connection, "run")? {
        return Ok(Some(words));
    }
    let select =
        format!("SELECT rows, seal IS NULL, seal IS seal({RUN}), ended IS NULL FROM run WHERE number = ?1");
    let (rows, has_no_seal, is_whole, goes_on): (Option<i64>, bool, bool, bool) =
        connection
            .query_row(&select, [run], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
    if !has_no_seal && !is_whole {
        return Ok(Some("the row of the run is not what was written".to_string()));
    }
    for (table, columns) in TABLES {
        let is_altered = match has_no_seal {
            true => "seal IS NOT NULL".to_string(),
            false => format!("seal IS NOT seal({columns})"),
        };
        let select = format!("SELECT count(*) FROM {table} WHERE run = ?1 AND {is_altered}");
        let altered: i64 = connection.query_row(&select, [run], |row| row.get(0))?;
        if altered > 0 {
            return Ok(Some(format!("rows in table `{table}` that are not what was written: {altered}")));
        }
        // How many rows there should be is known when the run has ended.
        if goes_on && let Some(words) = structure(connection, table)? {
            return Ok(Some(words));
        }
    }
    let found = rows_of(connection, run)?;
    Ok(match rows {
        Some(rows) if rows != found => Some(format!("the run has {found} rows and was written with {rows}")),
        None if !has_no_seal && !goes_on => Some("nothing says how many rows the run has".to_string()),
        _ => None,
    })
}

/// What SQLite finds wrong with a table and its indices.
fn structure(connection: &Connection, table: &str) -> rusqlite::Result<Option<String>> {
    let check = format!("PRAGMA integrity_check({table})");
    let found: String = connection.query_row(&check, [], |row| row.get(0))?;
    Ok((found != "ok").then(|| format!("table `{table}`: {}", found.lines().next().unwrap_or_default())))
}
