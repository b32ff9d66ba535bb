//! A store in one SQLite file.
//!
//! A thread owns the file. Jobs that arrive while it is busy are combined in one transaction; each job is
//! atomic. The file uses write-ahead logging (WAL): acknowledged data survives a killed process, but the last
//! moments may be lost in a power failure.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use hotseat_trace::EventRecord;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, Row, Rows, params};
use tokio::sync::oneshot;

use super::{ConversationStore, ConversationStoreError, EntryCommit, StoreFuture, StoredEntry};
use crate::ids::{AgentId, ConversationId};
use crate::memory::{self, MemoryRecord, MemoryResult, MemoryUse};

/// Version of the tables and their contents. Version 2 added entries for changed definitions; since version 3 an entry
/// and its records are one row. Version 4 has digests in records; rows of earlier versions stay as they are.
const SCHEMA_VERSION: i64 = 4;

/// Identifies the files of this store among all SQLite databases.
const APPLICATION_ID: i64 = 0x486f_7432;

/// Tables that every store has. They identify the files of versions that set no application id.
const TABLES: [&str; 4] = ["conversation", "entry", "memory", "memory_text"];

/// Moves the records of a conversation, each of which had a row of its own, to its last entry.
const RECORDS_TO_ENTRIES_SQL: &str = "
    ALTER TABLE entry ADD COLUMN records TEXT NOT NULL DEFAULT '';
    UPDATE entry SET records = coalesce((
        SELECT group_concat(record, char(10)) FROM (
            SELECT record FROM record WHERE record.conversation = entry.conversation ORDER BY sequence
        )
    ), '') WHERE number = (SELECT max(number) FROM entry AS last WHERE last.conversation = entry.conversation);
    DROP TABLE record;
";

/// `records` has one record in each line.
const SCHEMA_SQL: &str = "
    CREATE TABLE conversation (
        id TEXT PRIMARY KEY,
        began INTEGER NOT NULL
    );
    CREATE TABLE entry (
        conversation TEXT NOT NULL,
        number INTEGER NOT NULL,
        offset_us INTEGER NOT NULL,
        timestamp INTEGER NOT NULL,
        entry TEXT NOT NULL,
        records TEXT NOT NULL,
        PRIMARY KEY (conversation, number)
    );
    CREATE TABLE memory (
        number INTEGER PRIMARY KEY,
        agent TEXT NOT NULL,
        id TEXT NOT NULL,
        kind TEXT NOT NULL,
        content TEXT NOT NULL,
        significance REAL NOT NULL,
        created_at INTEGER NOT NULL,
        UNIQUE (agent, id)
    );
    CREATE VIRTUAL TABLE memory_text USING fts5 (
        content, content = 'memory', content_rowid = 'number', tokenize = 'unicode61 remove_diacritics 0'
    );
    CREATE TRIGGER memory_written AFTER INSERT ON memory BEGIN
        INSERT INTO memory_text (rowid, content) VALUES (new.number, new.content);
    END;
    CREATE TRIGGER memory_removed AFTER DELETE ON memory BEGIN
        INSERT INTO memory_text (memory_text, rowid, content) VALUES ('delete', old.number, old.content);
    END;
    CREATE TRIGGER memory_changed AFTER UPDATE ON memory BEGIN
        INSERT INTO memory_text (memory_text, rowid, content) VALUES ('delete', old.number, old.content);
        INSERT INTO memory_text (rowid, content) VALUES (new.number, new.content);
    END;
";

/// Maximum number of hits that are ranked. Among them, significance may outweigh a slightly better match.
const MAX_SEARCH_HITS: i64 = 256;

/// A store in one file.
#[derive(Debug)]
pub struct SqliteStore {
    /// `None` once the store is dropped.
    jobs: Option<Sender<StoreJob>>,
    thread: Option<JoinHandle<()>>,
}

/// Job for the thread of the file.
enum StoreJob {
    Commit(Box<EntryCommit>, ReplySender<()>),
    Entries(ConversationId, ReplySender<Vec<StoredEntry>>),
    EntryCount(ConversationId, ReplySender<u64>),
    Records(ConversationId, ReplySender<Vec<EventRecord>>),
    Conversations(ReplySender<Vec<ConversationId>>),
    Remember(AgentId, MemoryUse, u64, ReplySender<MemoryResult>),
}

type ReplySender<T> = oneshot::Sender<Result<T, ConversationStoreError>>;

/// Sends the result of a job once the transaction has ended.
type ReplyCallback = Box<dyn FnOnce(Result<(), ConversationStoreError>)>;

impl SqliteStore {
    /// Opens a file, creating it if necessary.
    ///
    /// # Errors
    /// If it cannot be opened, is in use by another process, is another database, or was created by a later version.
    pub fn open(path: &Path) -> Result<SqliteStore, ConversationStoreError> {
        let file = StoreFile::open(path)?;
        let (jobs, waiting) = channel();
        let thread = std::thread::Builder::new()
            .name("store".to_string())
            .spawn(move || file.run_jobs(&waiting))
            .map_err(|error| ConversationStoreError::new(format!("{}: {error}", path.display())))?;
        Ok(SqliteStore { jobs: Some(jobs), thread: Some(thread) })
    }

    fn submit<T: Send + 'static>(&self, job: impl FnOnce(ReplySender<T>) -> StoreJob) -> StoreFuture<T> {
        let (answer, answered) = oneshot::channel();
        // If the thread has ended, the answer is dropped, which is reported below.
        let _ = self.jobs.as_ref().map(|jobs| jobs.send(job(answer)));
        Box::pin(async move {
            answered
                .await
                .unwrap_or_else(|_| Err(ConversationStoreError::new("the store's thread has ended")))
        })
    }
}

impl ConversationStore for SqliteStore {
    fn commit(&self, commit: EntryCommit) -> StoreFuture<()> {
        self.submit(|answer| StoreJob::Commit(Box::new(commit), answer))
    }

    fn entries(&self, conversation: &ConversationId) -> StoreFuture<Vec<StoredEntry>> {
        self.submit(|answer| StoreJob::Entries(conversation.clone(), answer))
    }

    fn entry_count(&self, conversation: &ConversationId) -> StoreFuture<u64> {
        self.submit(|answer| StoreJob::EntryCount(conversation.clone(), answer))
    }

    fn records(&self, conversation: &ConversationId) -> StoreFuture<Vec<EventRecord>> {
        self.submit(|answer| StoreJob::Records(conversation.clone(), answer))
    }

    fn conversations(&self) -> StoreFuture<Vec<ConversationId>> {
        self.submit(StoreJob::Conversations)
    }

    fn remember(&self, agent: AgentId, usage: MemoryUse, timestamp: u64) -> StoreFuture<MemoryResult> {
        self.submit(|answer| StoreJob::Remember(agent, usage, timestamp, answer))
    }
}

impl Drop for SqliteStore {
    /// Waits until all jobs are stored and the file is closed, so that it can be opened again.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The open file of the thread.
struct StoreFile {
    path: PathBuf,
    connection: Connection,
}

impl StoreFile {
    fn open(path: &Path) -> Result<StoreFile, ConversationStoreError> {
        let fail = |error: rusqlite::Error| file_error(path, &error);
        let mut connection = Connection::open(path).map_err(fail)?;
        connection.busy_timeout(Duration::from_millis(200)).map_err(fail)?;
        connection.set_prepared_statement_cache_capacity(32);
        // Otherwise queries are compiled again for each conversation, as its id could change their plan.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(fail)?;
        // Two processes with the same conversations would not know of each other.
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE").map_err(fail)?;
        // A database of another program stays as it is. The lock is kept from here on.
        let transaction =
            connection.transaction_with_behavior(rusqlite::TransactionBehavior::Exclusive).map_err(fail)?;
        if !is_store(&transaction).map_err(fail)? {
            let message = format!(
                "{} is a database, but not a store of served conversations; name another file",
                path.display()
            );
            return Err(ConversationStoreError::new(message));
        }
        transaction.commit().map_err(fail)?;
        connection.pragma_update(None, "journal_mode", "WAL").map_err(fail)?;
        connection.pragma_update(None, "synchronous", "NORMAL").map_err(fail)?;
        let transaction =
            connection.transaction_with_behavior(rusqlite::TransactionBehavior::Exclusive).map_err(fail)?;
        let version: i64 =
            transaction.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(fail)?;
        match version {
            0 => {
                transaction.execute_batch(SCHEMA_SQL).map_err(fail)?;
                transaction.pragma_update(None, "user_version", SCHEMA_VERSION).map_err(fail)?;
            }
            1 | 2 => {
                transaction.execute_batch(RECORDS_TO_ENTRIES_SQL).map_err(fail)?;
                transaction.pragma_update(None, "user_version", SCHEMA_VERSION).map_err(fail)?;
            }
            3 => transaction.pragma_update(None, "user_version", SCHEMA_VERSION).map_err(fail)?,
            SCHEMA_VERSION => {}
            later => {
                let message = format!(
                    "{}: created by a later version (schema {later}, known {SCHEMA_VERSION})",
                    path.display()
                );
                return Err(ConversationStoreError::new(message));
            }
        }
        transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(fail)?;
        transaction.commit().map_err(fail)?;
        Ok(StoreFile { path: path.to_path_buf(), connection })
    }

    /// Executes jobs until the store is dropped.
    fn run_jobs(self, waiting: &Receiver<StoreJob>) {
        while let Ok(first) = waiting.recv() {
            let jobs: Vec<StoreJob> = std::iter::once(first).chain(waiting.try_iter().take(255)).collect();
            self.execute(jobs);
        }
    }

    /// Executes several jobs in one transaction, and answers once it is committed.
    fn execute(&self, jobs: Vec<StoreJob>) {
        let StoreFile { path, connection } = self;
        let mut answers: Vec<ReplyCallback> = Vec::with_capacity(jobs.len());
        let done = run_statement(connection, "BEGIN").and_then(|()| {
            for job in jobs {
                answers.push(job.execute(connection, path));
            }
            run_statement(connection, "COMMIT")
        });
        if done.is_err() && !connection.is_autocommit() {
            // The error of the transaction is reported; SQLite undoes it in any case when the file is opened again.
            let _ = run_statement(connection, "ROLLBACK");
        }
        let done = done.map_err(|error| file_error(path, &error));
        for answer in answers {
            answer(done.clone());
        }
    }
}

impl StoreJob {
    /// Executes one job. The callback sends its result once the transaction has ended.
    fn execute(self, transaction: &Connection, path: &Path) -> ReplyCallback {
        match self {
            StoreJob::Commit(job, answer) => {
                reply_later(answer, atomically(transaction, path, |part| commit(part, &job)))
            }
            StoreJob::Entries(id, answer) => {
                reply_later(answer, atomically(transaction, path, |part| entries(part, &id)))
            }
            StoreJob::EntryCount(id, answer) => {
                reply_later(answer, atomically(transaction, path, |part| entry_count(part, &id)))
            }
            StoreJob::Records(id, answer) => {
                reply_later(answer, atomically(transaction, path, |part| records(part, &id)))
            }
            StoreJob::Conversations(answer) => {
                reply_later(answer, atomically(transaction, path, conversations))
            }
            StoreJob::Remember(agent, usage, timestamp, answer) => reply_later(
                answer,
                atomically(transaction, path, |part| remember(part, &agent, &usage, timestamp)),
            ),
        }
    }
}

/// Executes a job in a savepoint, completely or not at all.
fn atomically<T>(
    transaction: &Connection,
    path: &Path,
    job: impl FnOnce(&Connection) -> Result<T, SqliteProblem>,
) -> Result<T, ConversationStoreError> {
    let fail = |error: rusqlite::Error| file_error(path, &error);
    run_statement(transaction, "SAVEPOINT job").map_err(fail)?;
    let result = job(transaction).map_err(|problem| problem.into_store_error(path));
    if result.is_err() {
        run_statement(transaction, "ROLLBACK TO job").map_err(fail)?;
    }
    run_statement(transaction, "RELEASE job").map_err(fail)?;
    result
}

/// Runs a statement without values and results, which is compiled once.
fn run_statement(connection: &Connection, statement: &'static str) -> rusqlite::Result<()> {
    connection.prepare_cached(statement)?.execute([]).map(drop)
}

fn reply_later<T: 'static>(
    answer: ReplySender<T>,
    result: Result<T, ConversationStoreError>,
) -> ReplyCallback {
    // The receiver may be gone.
    Box::new(move |kept| drop(answer.send(kept.and(result))))
}

/// Reason why a job failed.
enum SqliteProblem {
    Sqlite(rusqlite::Error),
    /// The content of a row is invalid.
    Row(String),
}

impl From<rusqlite::Error> for SqliteProblem {
    fn from(error: rusqlite::Error) -> Self {
        SqliteProblem::Sqlite(error)
    }
}

impl SqliteProblem {
    fn into_store_error(self, path: &Path) -> ConversationStoreError {
        match self {
            SqliteProblem::Sqlite(error) => file_error(path, &error),
            SqliteProblem::Row(problem) => {
                ConversationStoreError::new(format!("{}: {problem}", path.display()))
            }
        }
    }
}

/// Location of a row, for error messages.
struct RowLocation<'r> {
    table: &'static str,
    owner: &'r str,
    row: i64,
}

/// Problem of one row.
#[derive(Debug, thiserror::Error)]
enum RowProblem {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error(transparent)]
    Column(#[from] rusqlite::types::FromSqlError),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("{0} is negative")]
    Negative(i64),
    #[error("it follows row {0}, so rows are missing")]
    MissingRows(usize),
    #[error("event {found} follows event {last}, so events are missing")]
    MissingEvents { last: u64, found: u64 },
}

impl RowLocation<'_> {
    /// Reads the row; errors contain its location.
    fn read_row<T>(&self, read: impl FnOnce() -> Result<T, RowProblem>) -> Result<T, SqliteProblem> {
        let RowLocation { table, owner, row } = self;
        let kind = if *table == "memory" { "agent" } else { "conversation" };
        read().map_err(|problem| {
            SqliteProblem::Row(format!("cannot read row {row} of table {table}, {kind} {owner}: {problem}"))
        })
    }
}

/// Reads a non-negative integer.
fn read_unsigned(row: &Row<'_>, column: usize) -> Result<u64, RowProblem> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|_| RowProblem::Negative(number))
}

/// Checks that a row number follows `last`: rows are numbered from 1 without gaps.
fn check_sequence(number: i64, last: usize) -> Result<(), RowProblem> {
    match usize::try_from(number) == Ok(last + 1) {
        true => Ok(()),
        false => Err(RowProblem::MissingRows(last)),
    }
}

fn commit(part: &Connection, commit: &EntryCommit) -> Result<(), SqliteProblem> {
    let EntryCommit { conversation, number, stored: kept, records } = commit;
    let (id, timestamp) = (conversation.as_str(), kept.stamp.timestamp);
    if *number == 1 {
        part.prepare_cached("INSERT INTO conversation (id, began) VALUES (?1, ?2)")?
            .execute(params![id, timestamp])?;
    }
    let entry = to_json(&kept.entry)?;
    let records = records.iter().map(to_json).collect::<Result<Vec<_>, _>>()?.join("\n");
    part.prepare_cached(
        "INSERT INTO entry (conversation, number, offset_us, timestamp, entry, records) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![id, to_i64(*number), to_i64(kept.stamp.offset.0), timestamp, entry, records])?;
    Ok(())
}

fn entries(part: &Connection, conversation: &ConversationId) -> Result<Vec<StoredEntry>, SqliteProblem> {
    let mut query = part.prepare_cached(
        "SELECT number, offset_us, timestamp, entry FROM entry WHERE conversation = ?1 ORDER BY number",
    )?;
    let (mut rows, mut entries) = (query.query([conversation.as_str()])?, Vec::new());
    while let Some(row) = rows.next()? {
        let name = RowLocation { table: "entry", owner: conversation.as_str(), row: row.get(0)? };
        entries.push(name.read_row(|| {
            check_sequence(name.row, entries.len())?;
            let offset = hotseat_trace::TimeOffset(read_unsigned(row, 1)?);
            let stamp = crate::world::DeliveryTime { offset, timestamp: row.get(2)? };
            Ok(StoredEntry { stamp, entry: read_json(row, 3)? })
        })?);
    }
    Ok(entries)
}

fn entry_count(part: &Connection, conversation: &ConversationId) -> Result<u64, SqliteProblem> {
    let mut query = part.prepare_cached("SELECT count(*) FROM entry WHERE conversation = ?1")?;
    let count: i64 = query.query_row([conversation.as_str()], |row| row.get(0))?;
    Ok(count.unsigned_abs())
}

fn records(part: &Connection, conversation: &ConversationId) -> Result<Vec<EventRecord>, SqliteProblem> {
    let mut query =
        part.prepare_cached("SELECT number, records FROM entry WHERE conversation = ?1 ORDER BY number")?;
    let (mut rows, mut records) = (query.query([conversation.as_str()])?, Vec::<EventRecord>::new());
    while let Some(row) = rows.next()? {
        let name = RowLocation { table: "entry", owner: conversation.as_str(), row: row.get(0)? };
        name.read_row(|| {
            for line in row.get_ref(1)?.as_str()?.lines() {
                let record: EventRecord = serde_json::from_str(line)?;
                let last = records.len() as u64;
                if record.sequence != last + 1 {
                    return Err(RowProblem::MissingEvents { last, found: record.sequence });
                }
                records.push(record);
            }
            Ok(())
        })?;
    }
    Ok(records)
}

fn conversations(part: &Connection) -> Result<Vec<ConversationId>, SqliteProblem> {
    let mut rows = part.prepare_cached("SELECT id FROM conversation ORDER BY rowid")?;
    let rows = rows.query_map([], |row| row.get::<_, String>(0).map(ConversationId::from))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn remember(
    part: &Connection,
    agent: &AgentId,
    usage: &MemoryUse,
    timestamp: u64,
) -> Result<MemoryResult, SqliteProblem> {
    let owner = agent.as_str();
    Ok(match usage {
        MemoryUse::Write { id, kind, content, significance } => {
            part.prepare_cached(
                "INSERT INTO memory (agent, id, kind, content, significance, created_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT (agent, id) DO UPDATE
                 SET kind = ?3, content = ?4, significance = ?5, created_at = ?6",
            )?
            .execute(params![
                owner,
                id.as_str(),
                kind,
                content,
                significance,
                to_i64(timestamp)
            ])?;
            MemoryResult::Written { id: id.clone(), kind: kind.clone(), content: content.clone() }
        }
        MemoryUse::Read { id } => {
            let mut row = part.prepare_cached(
                "SELECT number, id, kind, content, significance, created_at FROM memory WHERE agent = ?1 AND id = ?2",
            )?;
            let record = memory_records(agent, row.query([owner, id.as_str()])?)?.pop();
            MemoryResult::Read { id: id.clone(), record }
        }
        MemoryUse::Delete { id } => {
            let mut row = part.prepare_cached("DELETE FROM memory WHERE agent = ?1 AND id = ?2")?;
            let deleted = row.execute([owner, id.as_str()])? > 0;
            MemoryResult::Deleted { id: id.clone(), deleted }
        }
        MemoryUse::List { limit } => {
            let limit = limit.and_then(|limit| i64::try_from(limit).ok()).unwrap_or(-1);
            let mut rows = part.prepare_cached(
                "SELECT number, id, kind, content, significance, created_at FROM memory
                 WHERE agent = ?1 ORDER BY number LIMIT ?2",
            )?;
            let records = memory_records(agent, rows.query(params![owner, limit])?)?;
            MemoryResult::Found { query: String::new(), records }
        }
        MemoryUse::Search { query, limit } => {
            let mut records = search_hits(part, agent, query)?;
            memory::rank(&mut records, query);
            records.truncate(*limit);
            MemoryResult::Found { query: query.clone(), records }
        }
    })
}

/// Returns the records that share a word with the query.
fn search_hits(part: &Connection, agent: &AgentId, query: &str) -> Result<Vec<MemoryRecord>, SqliteProblem> {
    // Words are quoted, so that no input is interpreted as a search operator.
    let words: Vec<String> = memory::words(query).into_iter().map(|word| format!("\"{word}\"")).collect();
    if words.is_empty() {
        return Ok(Vec::new());
    }
    let mut rows = part.prepare_cached(
        "SELECT memory.number, memory.id, memory.kind, memory.content, memory.significance, memory.created_at
         FROM memory_text JOIN memory ON memory.number = memory_text.rowid
         WHERE memory_text MATCH ?1 AND memory.agent = ?2
         ORDER BY bm25(memory_text) LIMIT ?3",
    )?;
    memory_records(agent, rows.query(params![words.join(" OR "), agent.as_str(), MAX_SEARCH_HITS])?)
}

fn memory_records(agent: &AgentId, mut rows: Rows<'_>) -> Result<Vec<MemoryRecord>, SqliteProblem> {
    let mut records = Vec::new();
    while let Some(row) = rows.next()? {
        let name = RowLocation { table: "memory", owner: agent.as_str(), row: row.get(0)? };
        records.push(name.read_row(|| {
            Ok(MemoryRecord {
                id: row.get::<_, String>(1)?.into(),
                agent: agent.clone(),
                kind: row.get(2)?,
                content: row.get(3)?,
                significance: row.get(4)?,
                created_at: read_unsigned(row, 5)?,
            })
        })?);
    }
    Ok(records)
}

fn to_json<T: serde::Serialize>(value: &T) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

fn read_json<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: usize) -> Result<T, RowProblem> {
    Ok(serde_json::from_str(row.get_ref(column)?.as_str()?)?)
}

fn to_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Returns true if a database is empty or a store of any version.
fn is_store(connection: &Connection) -> rusqlite::Result<bool> {
    let id: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let mut schema = connection.prepare("SELECT name FROM sqlite_schema")?;
    let names = schema.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
    let has_tables = TABLES.iter().all(|table| names.iter().any(|name| name == table));
    Ok(id == APPLICATION_ID || id == 0 && (names.is_empty() || has_tables))
}

fn file_error(path: &Path, error: &rusqlite::Error) -> ConversationStoreError {
    let locked = error.sqlite_error_code().is_some_and(|code| {
        matches!(code, rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked)
    });
    let help = if locked { ": another process uses this file" } else { "" };
    ConversationStoreError::new(format!("{}: {error}{help}", path.display()))
}
