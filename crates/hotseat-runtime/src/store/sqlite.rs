//! A store in one file of SQLite.
//!
//! A thread of its own owns the file. Whatever has come for it while it was at work goes into one transaction; each
//! of its parts is there as a whole or not at all. The file is written ahead (WAL), so what was answered is there
//! after the process was killed; after a loss of power the last moments may be missing.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use hotseat_trace::Record;
use rusqlite::{Connection, Row, Rows, Transaction, params};
use tokio::sync::oneshot;

use super::{Commit, Kept, Pending, Store, StoreError};
use crate::ids::{AgentId, ConversationId};
use crate::memory::{self, MemoryRecord, MemoryUse, Recalled};

/// The version of the tables and of what is written in them. Version 2 knows entries that say that an agent was changed.
const VERSION: i64 = 2;

const TABLES: &str = "
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
        PRIMARY KEY (conversation, number)
    ) WITHOUT ROWID;
    CREATE TABLE record (
        conversation TEXT NOT NULL,
        sequence INTEGER NOT NULL,
        record TEXT NOT NULL,
        PRIMARY KEY (conversation, sequence)
    ) WITHOUT ROWID;
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

/// How many of the best hits of a search are looked at; what matters much is put before what fits slightly better
/// among them.
const HITS: i64 = 256;

/// A store in one file.
#[derive(Debug)]
pub struct Sqlite {
    /// None once it is dropped.
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

/// Something to be done by the thread of the file.
enum Job {
    Commit(Box<Commit>, Answer<()>),
    Entries(ConversationId, Answer<Vec<Kept>>),
    Records(ConversationId, Answer<Vec<Record>>),
    Conversations(Answer<Vec<ConversationId>>),
    Remember(AgentId, MemoryUse, u64, Answer<Recalled>),
}

type Answer<T> = oneshot::Sender<Result<T, StoreError>>;

/// Tells whoever asked what came of it, once it is known whether it is kept.
type Telling = Box<dyn FnOnce(Result<(), StoreError>)>;

impl Sqlite {
    /// Opens a file, or makes it.
    ///
    /// # Errors
    /// When it cannot be opened, another process uses it, or it is of a later version.
    pub fn open(path: &Path) -> Result<Sqlite, StoreError> {
        let file = File::open(path)?;
        let (jobs, waiting) = channel();
        let thread = std::thread::Builder::new()
            .name("store".to_string())
            .spawn(move || file.work(&waiting))
            .map_err(|error| StoreError::new(format!("{}: {error}", path.display())))?;
        Ok(Sqlite { jobs: Some(jobs), thread: Some(thread) })
    }

    fn ask<T: Send + 'static>(&self, job: impl FnOnce(Answer<T>) -> Job) -> Pending<T> {
        let (answer, answered) = oneshot::channel();
        // A thread that is gone drops the answer, which is told below.
        let _ = self.jobs.as_ref().map(|jobs| jobs.send(job(answer)));
        Box::pin(async move {
            answered.await.unwrap_or_else(|_| Err(StoreError::new("the thread of the store is gone")))
        })
    }
}

impl Store for Sqlite {
    fn commit(&self, commit: Commit) -> Pending<()> {
        self.ask(|answer| Job::Commit(Box::new(commit), answer))
    }

    fn entries(&self, conversation: &ConversationId) -> Pending<Vec<Kept>> {
        self.ask(|answer| Job::Entries(conversation.clone(), answer))
    }

    fn records(&self, conversation: &ConversationId) -> Pending<Vec<Record>> {
        self.ask(|answer| Job::Records(conversation.clone(), answer))
    }

    fn conversations(&self) -> Pending<Vec<ConversationId>> {
        self.ask(Job::Conversations)
    }

    fn remember(&self, agent: AgentId, usage: MemoryUse, timestamp: u64) -> Pending<Recalled> {
        self.ask(|answer| Job::Remember(agent, usage, timestamp, answer))
    }
}

impl Drop for Sqlite {
    /// Waits until everything is kept and the file is closed, so that it can be opened again.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The file, as its thread sees it.
struct File {
    path: PathBuf,
    connection: Connection,
}

impl File {
    fn open(path: &Path) -> Result<File, StoreError> {
        let fail = |error: rusqlite::Error| wrong(path, &error);
        let mut connection = Connection::open(path).map_err(fail)?;
        connection.busy_timeout(Duration::from_millis(200)).map_err(fail)?;
        // Two processes that hold the same conversations would not know of each other.
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE").map_err(fail)?;
        connection.pragma_update(None, "journal_mode", "WAL").map_err(fail)?;
        connection.pragma_update(None, "synchronous", "NORMAL").map_err(fail)?;
        let transaction =
            connection.transaction_with_behavior(rusqlite::TransactionBehavior::Exclusive).map_err(fail)?;
        let version: i64 =
            transaction.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(fail)?;
        match version {
            0 => {
                transaction.execute_batch(TABLES).map_err(fail)?;
                transaction.pragma_update(None, "user_version", VERSION).map_err(fail)?;
            }
            1 => transaction.pragma_update(None, "user_version", VERSION).map_err(fail)?,
            VERSION => {}
            later => {
                let message =
                    format!("{}: made by a later version (tables {later}, known {VERSION})", path.display());
                return Err(StoreError::new(message));
            }
        }
        transaction.commit().map_err(fail)?;
        Ok(File { path: path.to_path_buf(), connection })
    }

    /// Does what comes until nobody is left who could ask.
    fn work(mut self, waiting: &Receiver<Job>) {
        while let Ok(first) = waiting.recv() {
            let jobs: Vec<Job> = std::iter::once(first).chain(waiting.try_iter().take(255)).collect();
            self.carry_out(jobs);
        }
    }

    /// Does several things in one transaction, and answers when it is kept.
    fn carry_out(&mut self, jobs: Vec<Job>) {
        let path = self.path.clone();
        let mut answers: Vec<Telling> = Vec::with_capacity(jobs.len());
        let done = self.connection.transaction().and_then(|mut transaction| {
            for job in jobs {
                answers.push(job.carry_out(&mut transaction, &path));
            }
            transaction.commit()
        });
        let done = done.map_err(|error| wrong(&path, &error));
        for answer in answers {
            answer(done.clone());
        }
    }
}

impl Job {
    /// Does one thing. What it came to is told once the transaction has ended.
    fn carry_out(self, transaction: &mut Transaction<'_>, path: &Path) -> Telling {
        match self {
            Job::Commit(job, answer) => later(answer, whole(transaction, path, |part| commit(part, &job))),
            Job::Entries(id, answer) => later(answer, whole(transaction, path, |part| entries(part, &id))),
            Job::Records(id, answer) => later(answer, whole(transaction, path, |part| records(part, &id))),
            Job::Conversations(answer) => later(answer, whole(transaction, path, conversations)),
            Job::Remember(agent, usage, timestamp, answer) => {
                later(answer, whole(transaction, path, |part| remember(part, &agent, &usage, timestamp)))
            }
        }
    }
}

/// Does something whole or not at all.
fn whole<T>(
    transaction: &mut Transaction<'_>,
    path: &Path,
    job: impl FnOnce(&Connection) -> Result<T, Problem>,
) -> Result<T, StoreError> {
    let part = transaction.savepoint().map_err(|error| wrong(path, &error))?;
    let result = job(&part).map_err(|problem| problem.at(path))?;
    part.commit().map_err(|error| wrong(path, &error))?;
    Ok(result)
}

fn later<T: 'static>(answer: Answer<T>, result: Result<T, StoreError>) -> Telling {
    // Whoever asked may be gone.
    Box::new(move |kept| drop(answer.send(kept.and(result))))
}

/// Why something cannot be done with the file.
enum Problem {
    /// SQLite says so.
    Sqlite(rusqlite::Error),
    /// What stands in a row is not what was written there.
    Row(String),
}

impl From<rusqlite::Error> for Problem {
    fn from(error: rusqlite::Error) -> Self {
        Problem::Sqlite(error)
    }
}

impl Problem {
    fn at(self, path: &Path) -> StoreError {
        match self {
            Problem::Sqlite(error) => wrong(path, &error),
            Problem::Row(problem) => StoreError::new(format!("{}: {problem}", path.display())),
        }
    }
}

/// A row of a table, for the words of an error.
struct RowName<'r> {
    table: &'static str,
    owner: &'r str,
    row: i64,
}

impl RowName<'_> {
    /// What stands in this row; a row that cannot be read is named.
    fn reading<T>(&self, read: impl FnOnce() -> Result<T, String>) -> Result<T, Problem> {
        let RowName { table, owner, row } = self;
        let kind = if *table == "memory" { "agent" } else { "conversation" };
        read().map_err(|problem| {
            Problem::Row(format!("table {table}, {kind} {owner}, row {row} cannot be read: {problem}"))
        })
    }
}

/// A number that is never negative.
fn natural(row: &Row<'_>, column: usize) -> Result<u64, String> {
    let number: i64 = row.get(column).map_err(|error| error.to_string())?;
    u64::try_from(number).map_err(|_| format!("{number} is negative"))
}

/// A number of the row that follows `last`: rows are numbered from 1 without gaps.
fn following(number: i64, last: usize) -> Result<(), String> {
    match usize::try_from(number) == Ok(last + 1) {
        true => Ok(()),
        false => Err(format!("it follows row {last}, so something is missing before it")),
    }
}

fn commit(part: &Connection, commit: &Commit) -> Result<(), Problem> {
    let Commit { conversation, number, kept, records } = commit;
    let (id, timestamp) = (conversation.as_str(), kept.stamp.timestamp);
    if *number == 1 {
        part.prepare_cached("INSERT INTO conversation (id, began) VALUES (?1, ?2)")?
            .execute(params![id, timestamp])?;
    }
    let entry = written(&kept.entry)?;
    part.prepare_cached(
        "INSERT INTO entry (conversation, number, offset_us, timestamp, entry) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute(params![id, signed(*number), signed(kept.stamp.offset.0), timestamp, entry])?;
    let mut insert =
        part.prepare_cached("INSERT INTO record (conversation, sequence, record) VALUES (?1, ?2, ?3)")?;
    for record in records {
        insert.execute(params![id, signed(record.sequence), written(record)?])?;
    }
    Ok(())
}

fn entries(part: &Connection, conversation: &ConversationId) -> Result<Vec<Kept>, Problem> {
    let mut query = part.prepare_cached(
        "SELECT number, offset_us, timestamp, entry FROM entry WHERE conversation = ?1 ORDER BY number",
    )?;
    let (mut rows, mut entries) = (query.query([conversation.as_str()])?, Vec::new());
    while let Some(row) = rows.next()? {
        let name = RowName { table: "entry", owner: conversation.as_str(), row: row.get(0)? };
        entries.push(name.reading(|| {
            following(name.row, entries.len())?;
            let offset = hotseat_trace::Offset(natural(row, 1)?);
            let stamp = crate::world::Stamp { offset, timestamp: row.get(2).map_err(words)? };
            Ok(Kept { stamp, entry: read(row, 3)? })
        })?);
    }
    Ok(entries)
}

fn records(part: &Connection, conversation: &ConversationId) -> Result<Vec<Record>, Problem> {
    let mut query =
        part.prepare_cached("SELECT sequence, record FROM record WHERE conversation = ?1 ORDER BY sequence")?;
    let (mut rows, mut records) = (query.query([conversation.as_str()])?, Vec::new());
    while let Some(row) = rows.next()? {
        let name = RowName { table: "record", owner: conversation.as_str(), row: row.get(0)? };
        records.push(name.reading(|| {
            following(name.row, records.len())?;
            let record: Record = read(row, 1)?;
            match i64::try_from(record.sequence) == Ok(name.row) {
                true => Ok(record),
                false => Err(format!("it holds event {}", record.sequence)),
            }
        })?);
    }
    Ok(records)
}

fn conversations(part: &Connection) -> Result<Vec<ConversationId>, Problem> {
    let mut rows = part.prepare_cached("SELECT id FROM conversation ORDER BY rowid")?;
    let rows = rows.query_map([], |row| row.get::<_, String>(0).map(ConversationId::from))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn remember(
    part: &Connection,
    agent: &AgentId,
    usage: &MemoryUse,
    timestamp: u64,
) -> Result<Recalled, Problem> {
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
                signed(timestamp)
            ])?;
            Recalled::Written { id: id.clone(), kind: kind.clone(), content: content.clone() }
        }
        MemoryUse::Read { id } => {
            let mut row = part.prepare_cached(
                "SELECT number, id, kind, content, significance, created_at FROM memory WHERE agent = ?1 AND id = ?2",
            )?;
            let record = memory_records(agent, row.query([owner, id.as_str()])?)?.pop();
            Recalled::Read { id: id.clone(), record }
        }
        MemoryUse::Delete { id } => {
            let mut row = part.prepare_cached("DELETE FROM memory WHERE agent = ?1 AND id = ?2")?;
            let deleted = row.execute([owner, id.as_str()])? > 0;
            Recalled::Deleted { id: id.clone(), deleted }
        }
        MemoryUse::List { limit } => {
            let limit = limit.and_then(|limit| i64::try_from(limit).ok()).unwrap_or(-1);
            let mut rows = part.prepare_cached(
                "SELECT number, id, kind, content, significance, created_at FROM memory
                 WHERE agent = ?1 ORDER BY number LIMIT ?2",
            )?;
            let records = memory_records(agent, rows.query(params![owner, limit])?)?;
            Recalled::Found { query: String::new(), records }
        }
        MemoryUse::Search { query, limit } => {
            let mut records = hits(part, agent, query)?;
            memory::best_first(&mut records, query);
            records.truncate(*limit);
            Recalled::Found { query: query.clone(), records }
        }
    })
}

/// The records that share a word with the query.
fn hits(part: &Connection, agent: &AgentId, query: &str) -> Result<Vec<MemoryRecord>, Problem> {
    // Each word in quotes: nothing that anybody says is an operator of the search.
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
    memory_records(agent, rows.query(params![words.join(" OR "), agent.as_str(), HITS])?)
}

fn memory_records(agent: &AgentId, mut rows: Rows<'_>) -> Result<Vec<MemoryRecord>, Problem> {
    let mut records = Vec::new();
    while let Some(row) = rows.next()? {
        let name = RowName { table: "memory", owner: agent.as_str(), row: row.get(0)? };
        records.push(name.reading(|| {
            Ok(MemoryRecord {
                id: row.get::<_, String>(1).map_err(words)?.into(),
                agent: agent.clone(),
                kind: row.get(2).map_err(words)?,
                content: row.get(3).map_err(words)?,
                significance: row.get(4).map_err(words)?,
                created_at: natural(row, 5)?,
            })
        })?);
    }
    Ok(records)
}

fn words(error: rusqlite::Error) -> String {
    error.to_string()
}

fn written<T: serde::Serialize>(value: &T) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

fn read<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: usize) -> Result<T, String> {
    let text = row.get_ref(column).map_err(words)?;
    let text = text.as_str().map_err(|error| error.to_string())?;
    serde_json::from_str(text).map_err(|error| error.to_string())
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn wrong(path: &Path, error: &rusqlite::Error) -> StoreError {
    let locked = error.sqlite_error_code().is_some_and(|code| {
        matches!(code, rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked)
    });
    let help = if locked { ": another process uses this file" } else { "" };
    StoreError::new(format!("{}: {error}{help}", path.display()))
}
