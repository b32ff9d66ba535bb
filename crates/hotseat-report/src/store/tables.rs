//! Tables of the store and their migrations.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::paths::create_store_folder;
use super::{RunStoreError, seal};

/// Migrations from each version of the tables to the next. Released migrations must never change: databases
/// created with them exist.
const MIGRATIONS: [&str; 6] = [
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
    "
    -- Texts of cases may be compressed with a sample of their run, which is its source with the number 0.
",
    "
    -- Events may be stored apart from their times, outcomes and cases without the members that have their usual values,
    -- and compressed texts with shorter lengths.
",
    "
    -- Texts of cases may be compressed with the sample of their run alone.
",
    "
    -- Samples may be divided by zero bytes, and texts of cases compressed with one part of the sample.
",
];

/// SQLite application id of a run store: `Hot1` as a number.
const APPLICATION_ID: i64 = 0x486f_7431;

/// Maximum wait for another process that is writing.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Access mode of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenMode {
    /// Read only: writes nothing to the file, and nothing beside it if possible.
    Read,
    /// Write to an existing store.
    Write,
    /// Write; creates the store if it does not exist.
    Create,
}

pub(super) fn open(path: &Path, purpose: OpenMode) -> Result<Connection, RunStoreError> {
    let fail = |error: rusqlite::Error| match purpose {
        OpenMode::Read if is_write_refused(&error) && has_unmerged_changes(path) => {
            RunStoreError::Unusable(format!(
                "{} cannot be read: a run was killed, and reading what it saved last needs a folder that can be written \
                 ({error}): copy the folder to another place, and name the copy with --store",
                path.display()
            ))
        }
        _ => RunStoreError::from_sqlite(path, &error),
    };
    if purpose == OpenMode::Create {
        create_store_folder(path).map_err(|error| RunStoreError::from_io(path, &error))?;
        if !path.exists() {
            // If this fails, the store is created in place below, or the error is reported there.
            let _ = create(path);
        }
    } else if let Some(other) = occupied_path(path) {
        let words = format!(
            "there can be no saved runs in {}, because {other}: move it away, or name another file with --store",
            path.display()
        );
        return Err(RunStoreError::Unusable(words));
    } else if !path.is_file() {
        let words = format!("there are no saved runs in {}: `hotseat test` saves them there", path.display());
        return Err(RunStoreError::NoRuns(words));
    }
    let mut connection = connect(path, purpose).map_err(fail)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(fail)?;
    connection.set_prepared_statement_cache_capacity(32);
    seal::register_seal_function(&connection).map_err(fail)?;
    // The order matters: another process may create the tables, and with them the ids, in the meantime.
    let is_empty = is_empty(&connection).map_err(fail)?;
    let (application, version) = ids(&connection).map_err(fail)?;
    let is_new = is_empty && application == 0 && version == 0;
    if is_new && purpose != OpenMode::Create {
        let words = format!("{} is empty: it contains no saved runs", path.display());
        return Err(RunStoreError::NoRuns(words));
    }
    if is_new {
        prepare_new(&connection).map_err(fail)?;
    } else if application != APPLICATION_ID {
        let words = format!("{} is a database, but not a run store of Hotseat", path.display());
        return Err(RunStoreError::Unusable(words));
    }
    if purpose != OpenMode::Read {
        enable_wal(&connection).map_err(fail)?;
        connection.pragma_update(None, "synchronous", "NORMAL").map_err(fail)?;
        // Secrets that become known later are replaced in the rows; nothing of them may stay in the file.
        connection.pragma_update(None, "secure_delete", "ON").map_err(fail)?;
    }
    if version > latest_version() {
        let words = format!(
            "{} was made by a later version of Hotseat (tables {version}; this version supports {}): update Hotseat, \
             or use another store",
            path.display(),
            latest_version()
        );
        return Err(RunStoreError::Unusable(words));
    }
    // Read-only access changes nothing and supports all versions of the tables.
    if version < 1 && !is_new {
        return Err(RunStoreError::damaged(path, format!("its tables have version {version}")));
    }
    if purpose != OpenMode::Read && version < latest_version() {
        migrate(&mut connection).map_err(fail)?;
    }
    Ok(connection)
}

/// Says what is in the place of a store or of its folder, if that is something else.
fn occupied_path(path: &Path) -> Option<String> {
    let folder = path.parent().filter(|folder| folder.is_file());
    match folder {
        Some(folder) => Some(format!("{} is a file", folder.display())),
        None => path.is_dir().then(|| "this is a folder".to_string()),
    }
}

/// Creates an empty store. It is made in a file beside it, which gets its name once it is complete: so no process sees a
/// part of it, and its content has to reach the disk only once.
fn create(path: &Path) -> io::Result<()> {
    let unfinished = unfinished_path(path);
    let created = write_tables(&unfinished)
        .map_err(io::Error::other)
        .and_then(|()| File::open(&unfinished)?.sync_all())
        // Fails if another process has created the store in the meantime.
        .and_then(|()| fs::hard_link(&unfinished, path));
    let _ = fs::remove_file(&unfinished);
    created
}

/// Path of a store that this process is creating.
fn unfinished_path(path: &Path) -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}-{}.new", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    name.into()
}

/// Writes the tables into a new file, without waiting for the disk.
fn write_tables(path: &Path) -> rusqlite::Result<()> {
    let mut connection = connect(path, OpenMode::Create)?;
    connection.pragma_update(None, "synchronous", "OFF")?;
    connection.pragma_update(None, "journal_mode", "MEMORY")?;
    prepare_new(&connection)?;
    migrate(&mut connection)?;
    enable_wal(&connection)?;
    connection.close().map_err(|(_, error)| error)
}

/// Sets what must be set before the first table is created: with auto-vacuum, pruning shrinks the file.
fn prepare_new(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")
}

fn connect(path: &Path, purpose: OpenMode) -> rusqlite::Result<Connection> {
    let flags = match purpose {
        OpenMode::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
        OpenMode::Write => OpenFlags::SQLITE_OPEN_READ_WRITE,
        OpenMode::Create => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
    };
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    let cannot_write_beside =
        purpose == OpenMode::Read && is_empty(&connection).is_err_and(|error| is_write_refused(&error));
    if !cannot_write_beside || has_unmerged_changes(path) {
        return Ok(connection);
    }
    // If nothing can be written there, no other process writes either, and the file contains everything.
    let escaped = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    Connection::open_with_flags(format!("file:{escaped}?immutable=1"), flags)
}

/// Returns true if SQLite could not create its files beside the store: the folder, or the file system, is read-only.
fn is_write_refused(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly))
}

/// Returns true if the store has changes that are not in its file yet, as after a killed run.
fn has_unmerged_changes(path: &Path) -> bool {
    let mut beside = path.as_os_str().to_owned();
    beside.push("-wal");
    fs::metadata(beside).is_ok_and(|changes| changes.len() > 0)
}

/// Enables write-ahead logging. This needs exclusive access, for which SQLite does not wait by itself.
fn enable_wal(connection: &Connection) -> rusqlite::Result<()> {
    let since = Instant::now();
    loop {
        match connection.pragma_update(None, "journal_mode", "WAL") {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && since.elapsed() < BUSY_TIMEOUT =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            set => return set,
        }
    }
}

/// Returns the latest version of the tables.
fn latest_version() -> i64 {
    MIGRATIONS.len() as i64
}

fn ids(connection: &Connection) -> rusqlite::Result<(i64, i64)> {
    let application = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let version = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok((application, version))
}

fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)", [], |row| row.get(0))
}

/// Migrates the tables to the latest version. Another process may migrate at the same moment; then its
/// migration counts.
fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let (_, version) = ids(&transaction)?;
    for step in MIGRATIONS.iter().skip(usize::try_from(version).unwrap_or(usize::MAX)) {
        transaction.execute_batch(step)?;
    }
    if version < latest_version() {
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", latest_version())?;
    }
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_store_is_complete_and_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/runs.db");
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let path = path.clone();
                std::thread::spawn(move || drop(open(&path, OpenMode::Create).unwrap()))
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let beside = fs::read_dir(path.parent().unwrap()).unwrap().flatten().map(|entry| entry.file_name());
        let others: Vec<_> = beside.filter(|name| name != "runs.db" && name != ".gitignore").collect();
        assert!(others.is_empty(), "{others:?}");
        let store = open(&path, OpenMode::Read).unwrap();
        assert_eq!(ids(&store).unwrap(), (APPLICATION_ID, latest_version()));
        let vacuum: i64 = store.pragma_query_value(None, "auto_vacuum", |row| row.get(0)).unwrap();
        let journal: String = store.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        assert_eq!((vacuum, journal.as_str()), (2, "wal"));
    }

    #[test]
    fn rejects_later_versions_and_foreign_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.db");
        drop(open(&path, OpenMode::Create).unwrap());
        let later = Connection::open(&path).unwrap();
        later.pragma_update(None, "user_version", 99).unwrap();
        drop(later);
        let words = open(&path, OpenMode::Create).unwrap_err().to_string();
        assert!(words.contains("later version of Hotseat (tables 99"), "{words}");

        let other = folder.path().join("other.db");
        Connection::open(&other).unwrap().execute_batch("CREATE TABLE mine (n)").unwrap();
        let words = open(&other, OpenMode::Create).unwrap_err().to_string();
        assert!(words.contains("not a run store of Hotseat"), "{words}");

        let text = folder.path().join("text.db");
        std::fs::write(&text, "no database at all, but long enough to be taken for one".repeat(100)).unwrap();
        let words = open(&text, OpenMode::Create).unwrap_err().to_string();
        assert!(words.contains("not a database"), "{words}");
    }
}
