//! The tables, and how a file comes to have them.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::place::make_folder;
use super::{StoreError, seal};

/// What makes the tables of each version from those of the one before. What stands here is never changed: files that
/// were made with it are about.
const STEPS: [&str; 2] = [
    "
    -- What is told at the beginning of a run is `about`, at its end `summary`.
    CREATE TABLE run (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        began INTEGER NOT NULL,
        ended INTEGER,
        about BLOB NOT NULL,
        summary TEXT,
        git_commit TEXT,
        git_dirty INTEGER
    );
    -- Files from which something is shown, and that are no pieces of suites.
    CREATE TABLE source (
        run INTEGER NOT NULL,
        number INTEGER NOT NULL,
        name TEXT NOT NULL,
        text BLOB NOT NULL,
        first_line INTEGER NOT NULL,
        first_column INTEGER NOT NULL,
        PRIMARY KEY (run, number)
    ) WITHOUT ROWID;
    CREATE TABLE suite (
        run INTEGER NOT NULL,
        number INTEGER NOT NULL,
        path TEXT NOT NULL,
        shown TEXT NOT NULL,
        PRIMARY KEY (run, number)
    ) WITHOUT ROWID;
    -- A case with an attempt that has ended; what it came to is known when `status` is. `began`, `ended` and `told` are
    -- the places of events among those of the run.
    CREATE TABLE cases (
        run INTEGER NOT NULL,
        place INTEGER NOT NULL,
        id TEXT NOT NULL,
        suite INTEGER NOT NULL,
        began INTEGER,
        facts BLOB NOT NULL,
        ended INTEGER,
        status TEXT,
        kind TEXT,
        left_over INTEGER,
        outcome BLOB,
        PRIMARY KEY (run, place)
    );
    CREATE TABLE attempt (
        run INTEGER NOT NULL,
        place INTEGER NOT NULL,
        number INTEGER NOT NULL,
        told INTEGER,
        facts BLOB NOT NULL,
        events BLOB NOT NULL,
        PRIMARY KEY (run, place, number)
    );
    CREATE TABLE stop (
        run INTEGER NOT NULL,
        told INTEGER NOT NULL,
        wish TEXT NOT NULL
    );
",
    "
    -- A sum of all other columns of the row, and how many rows the run has in the other tables once it has ended.
    ALTER TABLE run ADD COLUMN rows INTEGER;
    ALTER TABLE run ADD COLUMN seal INTEGER;
    ALTER TABLE source ADD COLUMN seal INTEGER;
    ALTER TABLE suite ADD COLUMN seal INTEGER;
    ALTER TABLE cases ADD COLUMN seal INTEGER;
    ALTER TABLE attempt ADD COLUMN seal INTEGER;
    ALTER TABLE stop ADD COLUMN seal INTEGER;
",
];

/// `Hot1` as a number: by this a file is known to be a store.
const APPLICATION: i64 = 0x486f_7431;

/// How long another process that writes is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a store is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum For {
    /// To read what is there: nothing is written, neither in the file nor beside it where that can be.
    Reading,
    /// To write into what is there.
    Writing,
    /// To write; it is made where there is none.
    Beginning,
}

/// Opens a store.
pub(super) fn open(path: &Path, purpose: For) -> Result<Connection, StoreError> {
    let fail = |error: rusqlite::Error| StoreError::of(path, &error);
    if purpose == For::Beginning {
        make_folder(path).map_err(|error| StoreError::io(path, &error))?;
    } else if !path.is_file() {
        let words = format!("no runs are kept in {}: `hotseat test` keeps them there", path.display());
        return Err(StoreError::NothingKept(words));
    }
    let mut connection = connect(path, purpose).map_err(fail)?;
    connection.busy_timeout(PATIENCE).map_err(fail)?;
    connection.set_prepared_statement_cache_capacity(32);
    seal::register(&connection).map_err(fail)?;
    // In this order: another process may make the tables meanwhile, and with them the marks.
    let is_empty = is_empty(&connection).map_err(fail)?;
    let (application, version) = marks(&connection).map_err(fail)?;
    let is_new = is_empty && application == 0 && version == 0;
    if is_new && purpose != For::Beginning {
        let words = format!("{} is empty: no runs are kept in it", path.display());
        return Err(StoreError::NothingKept(words));
    }
    if is_new {
        // Space of runs that were pruned can be given back; that has to be said before there are tables.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL").map_err(fail)?;
    } else if application != APPLICATION {
        let words = format!("{} is a database, and not one in which runs are kept", path.display());
        return Err(StoreError::Unusable(words));
    }
    if purpose != For::Reading {
        write_ahead(&connection).map_err(fail)?;
        connection.pragma_update(None, "synchronous", "NORMAL").map_err(fail)?;
    }
    if version > known() {
        let words = format!(
            "{} was made by a later version of Hotseat (tables {version}, and this one knows {}): update it, \
             or keep runs elsewhere",
            path.display(),
            known()
        );
        return Err(StoreError::Unusable(words));
    }
    // What only reads changes nothing, and reads tables of every version.
    if version < 1 && !is_new {
        return Err(StoreError::broken(path, format!("its tables have version {version}")));
    }
    if purpose != For::Reading && version < known() {
        migrate(&mut connection).map_err(fail)?;
    }
    Ok(connection)
}

fn connect(path: &Path, purpose: For) -> rusqlite::Result<Connection> {
    let flags = match purpose {
        For::Reading => OpenFlags::SQLITE_OPEN_READ_ONLY,
        For::Writing => OpenFlags::SQLITE_OPEN_READ_WRITE,
        For::Beginning => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
    };
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    let cannot_write_beside = purpose == For::Reading
        && is_empty(&connection).is_err_and(|error| error.sqlite_error_code() == Some(ErrorCode::CannotOpen));
    let mut beside = path.as_os_str().to_owned();
    beside.push("-wal");
    if !cannot_write_beside || Path::new(&beside).exists() {
        return Ok(connection);
    }
    // Where nothing can be written nobody else writes, and all there is stands in the file.
    let escaped = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    Connection::open_with_flags(format!("file:{escaped}?immutable=1"), flags)
}

/// Has the file written ahead. Nobody else may use it at that moment, and SQLite does not wait for that by itself.
fn write_ahead(connection: &Connection) -> rusqlite::Result<()> {
    let since = Instant::now();
    loop {
        match connection.pragma_update(None, "journal_mode", "WAL") {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && since.elapsed() < PATIENCE =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            set => return set,
        }
    }
}

/// The version of the tables that are known.
fn known() -> i64 {
    STEPS.len() as i64
}

fn marks(connection: &Connection) -> rusqlite::Result<(i64, i64)> {
    let application = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let version = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok((application, version))
}

fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)", [], |row| row.get(0))
}

/// Makes the tables from those that are there. Another process may do so at the same moment: whoever is first has done
/// it for both.
fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let (_, version) = marks(&transaction)?;
    for step in STEPS.iter().skip(usize::try_from(version).unwrap_or(usize::MAX)) {
        transaction.execute_batch(step)?;
    }
    if version < known() {
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", known())?;
    }
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_a_later_version_or_of_somebody_else_is_refused_in_words() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.db");
        drop(open(&path, For::Beginning).unwrap());
        let later = Connection::open(&path).unwrap();
        later.pragma_update(None, "user_version", 99).unwrap();
        drop(later);
        let words = open(&path, For::Beginning).unwrap_err().to_string();
        assert!(words.contains("later version of Hotseat (tables 99"), "{words}");

        let other = folder.path().join("other.db");
        Connection::open(&other).unwrap().execute_batch("CREATE TABLE mine (n)").unwrap();
        let words = open(&other, For::Beginning).unwrap_err().to_string();
        assert!(words.contains("not one in which runs are kept"), "{words}");

        let text = folder.path().join("text.db");
        std::fs::write(&text, "no database at all, but long enough to be taken for one".repeat(100)).unwrap();
        let words = open(&text, For::Beginning).unwrap_err().to_string();
        assert!(words.contains("not a database"), "{words}");
    }
}
