//! Saves a run while it is executed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::error::Error;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotseat_document::SourceText;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use serde::Serialize;

use super::RunStoreError;
use super::columns::{self, SourceNumbers};
use super::compression::{RepeatCompressor, RunDictionary, TextKind, compress, sample};
use super::file_identity::FileIdentity;
use super::git::{CommitLookup, GitCommit};
use super::live::LiveWriter;
use super::prune::{StoreLimits, prune};
use super::run_dictionary::{read_dictionary, write_dictionary};
use super::run_lock::RunLock;
use super::seal::{self, ATTEMPT_TABLE, CASE_TABLE, SOURCE_TABLE, STOP_TABLE, SUITE_TABLE};
use super::stored_run::{RunMetadata, StoredRun};
use super::tables::{self, OpenMode};
use crate::runner::RunSaver;
use hotseat_engine::cases::Suite;
use hotseat_engine::run::{
    Attempt, AttemptPolicy, CaseOutcome, CaseRef, RunEvent, RunSummary, RunningConversations,
};
use hotseat_targets::recorder::{SecretRedactor, wall_millis};

/// Writes a run to the store.
pub struct RunWriter {
    path: PathBuf,
    connection: Connection,
    /// The file that the connection writes.
    file: FileIdentity,
    limits: StoreLimits,
    /// Lock that marks the run as running.
    lock: Option<RunLock>,
    /// Writes running conversations for viewers.
    live: Option<LiveWriter>,
    commit_lookup: Option<CommitLookup>,
    state: WriteState,
}

/// State of the run that is being written.
struct WriteState {
    id: String,
    metadata: RunMetadata,
    /// Row number of the run, once it has started.
    number: Option<i64>,
    /// Number of events so far.
    events: i64,
    known: KnownSources,
    /// Cases that have started in this transaction, with their repetition and the position of the event. Those that
    /// also end in it are written once.
    started_cases: BTreeMap<usize, (Arc<CaseRef>, StartColumns)>,
    /// Cases that are written and still running. A case whose attempts knew further secrets is written again.
    running_cases: HashMap<usize, StartColumns>,
    /// Attempts that are written together with the outcome of their case, because the case has only one
    /// attempt.
    single_attempts: HashMap<usize, Arc<Attempt>>,
    /// Compresses texts of cases, once the first attempt has ended.
    dictionary: Option<RunDictionary>,
    /// Compresses outcomes.
    outcomes: RepeatCompressor,
    /// Cases that were finished before a resume; their events are not written again.
    finished_before: HashSet<usize>,
    /// Git commit, if it is known before the start.
    commit: Option<GitCommit>,
    /// Removes secrets from texts of the test files.
    redactor: SecretRedactor,
}

/// Repetition of a case, and position of the event that it has started.
type StartColumns = (AttemptPolicy, i64);

/// Columns of a case that has ended.
struct EndColumns<'a> {
    ended: i64,
    status: &'static str,
    kind: Option<&'static str>,
    left_over: bool,
    outcome: &'a [u8],
}

/// Sources and suites that already have a row number.
#[derive(Default)]
struct KnownSources {
    sources: HashMap<u64, usize>,
    /// The source of the last place and its row number. Tests of one script share it, and reading it for each test would
    /// take time that grows with both.
    last_source: Option<(Arc<SourceText>, usize)>,
    /// Last row number of a source from before the resume.
    first_source: usize,
    suites: HashMap<u64, usize>,
}

/// Assigns row numbers to sources within a transaction.
struct TransactionSources<'a> {
    transaction: &'a Transaction<'a>,
    run: i64,
    known: &'a mut KnownSources,
    redactor: &'a SecretRedactor,
}

impl RunWriter {
    /// Creates a writer and, if needed, the store. Nothing is written before the run starts. Fails if the
    /// store cannot be written.
    pub fn new(path: &Path, about: RunMetadata, limits: StoreLimits) -> Result<RunWriter, RunStoreError> {
        let git = CommitLookup::start(about.project.clone());
        let mut keeping = RunWriter::for_replay(path, None, about, None, limits)?;
        keeping.commit_lookup = Some(git);
        Ok(keeping)
    }

    /// Creates a writer for the events of a run from elsewhere, with its id (or a new one) and its commit.
    pub(super) fn for_replay(
        path: &Path,
        id: Option<String>,
        about: RunMetadata,
        commit: Option<GitCommit>,
        limits: StoreLimits,
    ) -> Result<RunWriter, RunStoreError> {
        let connection = tables::open(path, OpenMode::Create)?;
        let file = FileIdentity::from_path(path).map_err(|error| RunStoreError::from_io(path, &error))?;
        let id = id.unwrap_or_else(|| uuid::Uuid::new_v4().simple().to_string()[..12].to_string());
        let run = WriteState { commit, ..WriteState::new(id, about) };
        Ok(RunWriter {
            path: path.to_path_buf(),
            connection,
            file,
            limits,
            lock: None,
            live: None,
            commit_lookup: None,
            state: run,
        })
    }

    /// Resumes an interrupted run: finished cases are kept, unfinished ones are deleted and run again. Returns also what `read`
    /// reads before that. Fails if it does, if the store cannot be written, or another process is executing the run.
    pub fn resume<T>(
        path: &Path,
        head: StoredRun,
        limits: StoreLimits,
        read: impl FnOnce(&StoredRun) -> Result<T, RunStoreError>,
    ) -> Result<(RunWriter, T), RunStoreError> {
        let mut connection = tables::open(path, OpenMode::Write)?;
        let file = FileIdentity::from_path(path).map_err(|error| RunStoreError::from_io(path, &error))?;
        let life = RunLock::acquire(path, &head.id).map_err(|error| RunStoreError::from_io(path, &error))?;
        let Some(life) = life else {
            return Err(RunStoreError::NoSuchRun(format!(
                "run {} is still running in another process",
                head.short_id()
            )));
        };
        let unfinished = read(&head)?;
        let run = WriteState::resume(&mut connection, head)
            .map_err(|error| RunStoreError::from_sqlite(path, &error))?;
        let writer = RunWriter {
            path: path.to_path_buf(),
            connection,
            file,
            limits,
            lock: Some(life),
            live: None,
            commit_lookup: None,
            state: run,
        };
        Ok((writer, unfinished))
    }

    /// Removes these secrets from texts of the test files.
    #[must_use]
    pub fn with_redactor(mut self, redactor: &SecretRedactor) -> RunWriter {
        self.state.redactor = redactor.clone();
        self
    }

    /// Returns the id of the run.
    pub fn id(&self) -> &str {
        &self.state.id
    }

    /// Writes events in one transaction. Fails if the events cannot be written.
    pub fn write_events(&mut self, events: &[RunEvent]) -> Result<(), RunStoreError> {
        let begins = events.iter().any(|event| matches!(event, RunEvent::Started { .. }));
        if begins && self.lock.is_none() {
            let life = RunLock::acquire(&self.path, &self.state.id);
            self.lock = life.map_err(|error| RunStoreError::from_io(&self.path, &error))?;
        }
        let is_over = events.iter().any(|event| matches!(event, RunEvent::Ended(_)));
        let commit = self.commit_lookup.as_mut().and_then(|git| git.take_commit(is_over));
        let written = self.write(events, commit);
        if is_over {
            self.live = None;
        }
        written.map_err(|error| RunStoreError::from_sqlite(&self.path, &error))?;
        // SQLite keeps writing to a deleted file, which is gone with the process.
        if !self.file.is_at(&self.path) {
            return Err(RunStoreError::file_removed(&self.path));
        }
        if is_over {
            self.lock = None;
            // The run is saved even if pruning fails; the next run prunes again.
            let _ = prune(&self.path, &mut self.connection, self.limits, self.state.number, wall_millis());
        }
        Ok(())
    }

    /// Ends a run whose last events could not be written: writes only its summary and the reason. Fails if
    /// the summary cannot be written either, because the cause may persist.
    fn write_end(&mut self, summary: &RunSummary, why: &str) -> Result<(), RunStoreError> {
        let Some(run) = self.state.number else { return Ok(()) };
        let broken = format!("the last events of this run were not saved: {why}");
        let summary = RunSummary { broken: Some(broken.into()), ..summary.clone() };
        let ended = (|| {
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            self.state.write_summary(&summary, run, &transaction)?;
            transaction.commit()
        })();
        self.lock = None;
        ended.map_err(|error| RunStoreError::from_sqlite(&self.path, &error))
    }

    /// Makes the file self-contained, so it can be read without a write-ahead log beside it.
    pub(super) fn close_file(self) -> Result<(), RunStoreError> {
        let closed = self.connection.pragma_update(None, "journal_mode", "DELETE");
        closed.map_err(|error| RunStoreError::from_sqlite(&self.path, &error))
    }

    fn write(&mut self, events: &[RunEvent], commit: Option<GitCommit>) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for event in events {
            self.state.write_event(event, &transaction)?;
        }
        self.state.write_started(&transaction)?;
        if let (Some(commit), Some(run)) = (commit, self.state.number) {
            let set = "UPDATE run SET git_commit = ?2, git_dirty = ?3 WHERE number = ?1";
            transaction.execute(set, params![run, commit.id, commit.dirty])?;
            seal::seal_run(&transaction, run)?;
        }
        transaction.commit()
    }
}

impl WriteState {
    /// Creates the state of a run of which nothing is written yet.
    fn new(id: String, metadata: RunMetadata) -> Self {
        WriteState {
            id,
            metadata,
            number: None,
            events: 0,
            known: KnownSources::default(),
            started_cases: BTreeMap::new(),
            running_cases: HashMap::new(),
            single_attempts: HashMap::new(),
            dictionary: None,
            outcomes: RepeatCompressor::default(),
            finished_before: HashSet::new(),
            commit: None,
            redactor: SecretRedactor::default(),
        }
    }

    /// Loads the state of an interrupted run: keeps its finished cases and deletes the others.
    fn resume(connection: &mut Connection, head: StoredRun) -> rusqlite::Result<WriteState> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let run = head.number;
        // Positions of events are never reused, not even those of deleted events, because followers of the
        // run know them.
        let last = "SELECT coalesce(max(told), 0) FROM (
                        SELECT began AS told FROM cases WHERE run = ?1 UNION ALL SELECT ended FROM cases WHERE run = ?1
                        UNION ALL SELECT told FROM attempt WHERE run = ?1 UNION ALL SELECT told FROM stop WHERE run = ?1)";
        let told: i64 = transaction.query_row(last, [run], |row| row.get(0))?;
        let left = "run = ?1 AND place IN
                    (SELECT place FROM cases WHERE run = ?1 AND (status IS NULL OR left_over <> 0))";
        transaction.execute(&format!("DELETE FROM attempt WHERE {left}"), [run])?;
        transaction.execute(&format!("DELETE FROM cases WHERE {left}"), [run])?;
        transaction.execute("DELETE FROM stop WHERE run = ?1", [run])?;
        seal::seal_all(&transaction, run)?;
        transaction
            .execute("UPDATE run SET ended = NULL, summary = NULL, rows = NULL WHERE number = ?1", [run])?;
        seal::seal_run(&transaction, run)?;
        let mut known = KnownSources::default();
        {
            let mut select = transaction.prepare("SELECT number, path, shown FROM suite WHERE run = ?1")?;
            let mut rows = select.query([run])?;
            while let Some(row) = rows.next()? {
                let (path, shown): (String, String) = (row.get(1)?, row.get(2)?);
                known.suites.insert(hash_value(&(PathBuf::from(path), shown)), to_usize(row.get(0)?));
            }
            // Excerpts of other files get new numbers; the old ones stay for existing references.
            let most: i64 = transaction.query_row(
                "SELECT coalesce(max(number), 0) FROM source WHERE run = ?1",
                [run],
                |row| row.get(0),
            )?;
            known.first_source = to_usize(most);
        }
        let before = {
            let mut select = transaction.prepare("SELECT place FROM cases WHERE run = ?1")?;
            let places = select.query_map([run], |row| row.get::<_, i64>(0).map(to_usize))?;
            places.collect::<rusqlite::Result<HashSet<usize>>>()?
        };
        let dictionary = read_dictionary(&transaction, run)?.transpose();
        let dictionary = dictionary.map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        transaction.commit()?;
        Ok(WriteState {
            number: Some(run),
            events: told,
            known,
            dictionary,
            finished_before: before,
            ..WriteState::new(head.id, head.metadata)
        })
    }

    fn write_event(&mut self, event: &RunEvent, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        self.events += 1;
        if let (RunEvent::Started { at, .. }, None) = (event, self.number) {
            let (commit, dirty) = self.commit.take().map(|commit| (commit.id, commit.dirty)).unzip();
            let insert =
                "INSERT INTO run (id, began, about, git_commit, git_dirty) VALUES (?1, ?2, ?3, ?4, ?5)";
            transaction
                .execute(insert, params![self.id, at, to_packed_json(&self.metadata)?, commit, dirty])?;
            let run = transaction.last_insert_rowid();
            seal::seal_run(transaction, run)?;
            self.number = Some(run);
        }
        // A run that ends before it has started leaves nothing to write.
        let Some(run) = self.number else { return Ok(()) };
        match event {
            RunEvent::Started { .. } => Ok(()),
            RunEvent::CaseStarted { case, repetition } => {
                self.started_cases.insert(case.index, (case.clone(), (*repetition, self.events)));
                Ok(())
            }
            RunEvent::AttemptEnded { attempt, repetition } => match repetition {
                AttemptPolicy::Retried { retries: 0 } => {
                    self.single_attempts.insert(attempt.case_ref.index, attempt.clone());
                    Ok(())
                }
                AttemptPolicy::Retried { .. } | AttemptPolicy::Repeated { .. } => {
                    self.insert_attempt(attempt, run, Some(self.events), transaction)
                }
            },
            RunEvent::CaseEnded(outcome) if self.finished_before.contains(&outcome.case_ref.index) => Ok(()),
            RunEvent::CaseEnded(outcome) => self.write_outcome(outcome, run, transaction),
            RunEvent::Stopping(wish) => {
                transaction
                    .execute(STOP_TABLE.insertion(), params![run, self.events, to_json_text(wish)?])?;
                Ok(())
            }
            // The summary has the sweep.
            RunEvent::SweepStarted { .. } | RunEvent::SweepEnded(_) => Ok(()),
            RunEvent::Ended(summary) => self.write_summary(summary, run, transaction),
        }
    }

    /// Writes the summary of a run.
    fn write_summary(
        &self,
        summary: &RunSummary,
        run: i64,
        transaction: &Transaction<'_>,
    ) -> rusqlite::Result<()> {
        let set = "UPDATE run SET ended = ?2, summary = ?3 WHERE number = ?1";
        transaction.execute(set, params![run, summary.ended_at, to_json_text(summary)?])?;
        seal::store_row_count(transaction, run)?;
        seal::seal_run(transaction, run)
    }

    /// Inserts the cases that have started and are still running.
    fn write_started(&mut self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        let Some(run) = self.number else { return Ok(()) };
        for (case, begun) in std::mem::take(&mut self.started_cases).into_values() {
            let source = case.case.source_text.masked([&self.redactor]);
            self.insert_case((&case, &source.text), Some(begun), None, run, transaction)?;
            self.running_cases.insert(case.index, begun);
        }
        Ok(())
    }

    /// Inserts a case that has started, ended, or both, with the text of its source without secrets.
    fn insert_case(
        &mut self,
        (told, text): (&CaseRef, &str),
        begun: Option<StartColumns>,
        end: Option<&EndColumns<'_>>,
        run: i64,
        transaction: &Transaction<'_>,
    ) -> rusqlite::Result<()> {
        let (repetition, began) = begun.unzip();
        let suite = self.suite_number(&told.suite, run, transaction)?;
        let facts = columns::encode_case(told, repetition, text).map_err(serialize_error)?;
        let facts = self.pack(TextKind::Case, &facts);
        transaction.prepare_cached(CASE_TABLE.insertion())?.execute(params![
            run,
            to_i64(told.index),
            told.case.id,
            to_i64(suite),
            began,
            facts,
            end.map(|end| end.ended),
            end.map(|end| end.status),
            end.and_then(|end| end.kind),
            end.map(|end| end.left_over),
            end.map(|end| end.outcome)
        ])?;
        Ok(())
    }

    /// Compresses a text of a case.
    fn pack(&self, kind: TextKind, text: &[u8]) -> Vec<u8> {
        match &self.dictionary {
            Some(dictionary) => dictionary.compress(kind, text),
            None => compress(text),
        }
    }

    fn insert_attempt(
        &mut self,
        attempt: &Attempt,
        run: i64,
        told: Option<i64>,
        transaction: &Transaction<'_>,
    ) -> rusqlite::Result<()> {
        let (known, redactor) = (&mut self.known, &self.redactor);
        let mut numbers = TransactionSources { transaction, run, known, redactor };
        let events = columns::encode_events(&attempt.events).map_err(serialize_error)?;
        let facts = columns::encode_attempt(attempt, &events, &mut numbers)?;
        if self.dictionary.is_none() {
            let source = attempt.case_ref.case.source_text.masked([redactor, &attempt.redactor]);
            let case =
                columns::encode_case(&attempt.case_ref, None, &source.text).map_err(serialize_error)?;
            let sample = sample([&case, &facts, &events]);
            self.dictionary = Some(write_dictionary(transaction, run, &sample)?);
        }
        let (facts, events) = (self.pack(TextKind::Attempt, &facts), self.pack(TextKind::Events, &events));
        transaction.prepare_cached(ATTEMPT_TABLE.insertion())?.execute(params![
            run,
            to_i64(attempt.case_ref.index),
            to_i64(attempt.number),
            told,
            facts,
            events
        ])?;
        Ok(())
    }

    fn write_outcome(
        &mut self,
        outcome: &CaseOutcome,
        run: i64,
        transaction: &Transaction<'_>,
    ) -> rusqlite::Result<()> {
        let index = outcome.case_ref.index;
        if let Some(attempt) = self.single_attempts.remove(&index) {
            // The event of the attempt came right before this one.
            self.insert_attempt(&attempt, run, Some(self.events - 1), transaction)?;
        } else if outcome.never_started {
            for attempt in &outcome.attempts {
                self.insert_attempt(attempt, run, None, transaction)?;
            }
        }
        let came_to = columns::encode_outcome(outcome).map_err(serialize_error)?;
        let came_to = self.outcomes.compress(came_to, self.dictionary.as_ref()).to_vec();
        let end = EndColumns {
            ended: self.events,
            status: outcome.verdict.status.name(),
            kind: outcome.verdict.failure.as_ref().map(|failure| failure.kind.name()),
            left_over: outcome.is_incomplete(),
            outcome: &came_to,
        };
        let of_attempts = outcome.attempts.iter().map(|attempt| &attempt.redactor);
        let redactors = iter::once(&self.redactor).chain(of_attempts);
        let written = &outcome.case_ref.case.source_text;
        let source = written.masked(redactors);
        let begun = self.started_cases.remove(&index).map(|(_, begun)| begun);
        let has_more_secrets = || source.text != written.masked([&self.redactor]).text;
        let running = self.running_cases.remove(&index).filter(|_| has_more_secrets());
        if begun.or(running).is_some() || outcome.never_started {
            let case = (&*outcome.case_ref, &*source.text);
            return self.insert_case(case, begun.or(running), Some(&end), run, transaction);
        }
        transaction
            .prepare_cached(
                "UPDATE cases SET ended = ?3, status = ?4, kind = ?5, left_over = ?6, outcome = ?7,
                     seal = seal(run, place, id, suite, began, facts, ?3, ?4, ?5, ?6, ?7)
                 WHERE run = ?1 AND place = ?2",
            )?
            .execute(params![
                run,
                to_i64(index),
                end.ended,
                end.status,
                end.kind,
                end.left_over,
                end.outcome
            ])?;
        Ok(())
    }

    fn suite_number(
        &mut self,
        suite: &Arc<Suite>,
        run: i64,
        transaction: &Transaction<'_>,
    ) -> rusqlite::Result<usize> {
        let new = self.known.suites.len() + 1;
        let number = *self.known.suites.entry(hash_value(&(&suite.path, &suite.shown))).or_insert(new);
        if number == new {
            transaction.execute(
                SUITE_TABLE.insertion(),
                params![run, to_i64(number), suite.path.to_string_lossy(), &*suite.shown],
            )?;
        }
        Ok(number)
    }
}

impl SourceNumbers for TransactionSources<'_> {
    fn number(&mut self, source: &Arc<SourceText>) -> rusqlite::Result<usize> {
        if let Some((last, number)) = &self.known.last_source
            && Arc::ptr_eq(last, source)
        {
            return Ok(*number);
        }
        let SourceText { name, text, first_line, first_column, .. } = &**source;
        let KnownSources { sources, first_source, .. } = &mut *self.known;
        let new = *first_source + sources.len() + 1;
        let number = *sources.entry(hash_value(&(name, text, first_line, first_column))).or_insert(new);
        if number == new {
            let packed = compress(self.redactor.mask(text).as_bytes());
            self.transaction.execute(
                SOURCE_TABLE.insertion(),
                params![self.run, to_i64(number), &**name, packed, first_line, first_column],
            )?;
        }
        self.known.last_source = Some((Arc::clone(source), number));
        Ok(number)
    }
}

fn hash_value(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn to_packed_json(value: &impl Serialize) -> rusqlite::Result<Vec<u8>> {
    Ok(compress(&serde_json::to_vec(value).map_err(serialize_error)?))
}

fn to_json_text(value: &impl Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(serialize_error)
}

fn serialize_error(error: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(error.into())
}

/// Converts a number from SQLite, which stores signed integers.
fn to_usize(number: i64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

/// Converts a number for SQLite, which stores signed integers.
pub(super) fn to_i64(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl RunSaver for RunWriter {
    fn id(&self) -> &str {
        &self.state.id
    }

    fn save_events(&mut self, events: &[RunEvent]) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(self.write_events(events)?)
    }

    fn show_live(&mut self, running: Arc<RunningConversations>) {
        self.live = Some(LiveWriter::start(&self.path, &self.state.id, running));
    }

    fn end_incomplete(&mut self, summary: &RunSummary, reason: &str) {
        // The cause may persist, and then the run stays unfinished.
        let _ = self.write_end(summary, reason);
    }
}
