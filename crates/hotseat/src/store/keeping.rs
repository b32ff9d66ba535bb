//! A run is kept while it goes on.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotseat_document::Source;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use serde::Serialize;

use super::git::{Commit, Looking};
use super::head::{About, RunHead};
use super::kept::{self, Numbers};
use super::life::Life;
use super::pack::pack;
use super::prune::{Limits, prune};
use super::tables::{self, For};
use super::{StoreError, seal};
use crate::cases::Suite;
use crate::run::{Attempt, Outcome, Repetition, RunEvent, Summary, Told};
use crate::session::{Redactor, wall_millis};

/// Keeps a run.
pub struct Keeping {
    path: PathBuf,
    connection: Connection,
    limits: Limits,
    /// Says that the run goes on.
    life: Option<Life>,
    git: Option<Looking>,
    run: Writing,
}

/// A run as far as it is written.
struct Writing {
    id: String,
    about: About,
    /// Its number, once it has begun.
    number: Option<i64>,
    /// How many events there were.
    told: i64,
    known: Known,
    /// Attempts that are written together with what their case came to, for it takes no other.
    alone: HashMap<usize, Arc<Attempt>>,
    /// Cases that were kept before: what is told of them again is not.
    before: HashSet<usize>,
    /// What it was made with, where that is known before it begins.
    commit: Option<Commit>,
    /// What takes secrets out of what people have written.
    redactor: Redactor,
}

/// The sources and suites that have a number already.
#[derive(Default)]
struct Known {
    sources: HashMap<u64, usize>,
    /// The last number that was given to a source before.
    first_source: usize,
    suites: HashMap<u64, usize>,
}

/// Sources get their numbers in a transaction.
struct InTransaction<'a> {
    transaction: &'a Transaction<'a>,
    run: i64,
    known: &'a mut Known,
    redactor: &'a Redactor,
}

impl Keeping {
    /// Prepares to keep a run; makes the store where there is none. Nothing is kept until the run begins.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn new(path: &Path, about: About, limits: Limits) -> Result<Keeping, StoreError> {
        let git = Looking::at(about.project.clone());
        let mut keeping = Keeping::told(path, None, about, None, limits)?;
        keeping.git = Some(git);
        Ok(keeping)
    }

    /// Prepares to keep what is told of a run that was made elsewhere, under an id of its own if it has none, and what it
    /// was made with.
    pub(super) fn told(
        path: &Path,
        id: Option<String>,
        about: About,
        commit: Option<Commit>,
        limits: Limits,
    ) -> Result<Keeping, StoreError> {
        let connection = tables::open(path, For::Beginning)?;
        let id = id.unwrap_or_else(|| uuid::Uuid::new_v4().simple().to_string()[..12].to_string());
        let run = Writing {
            id,
            about,
            number: None,
            told: 0,
            known: Known::default(),
            alone: HashMap::new(),
            before: HashSet::new(),
            commit,
            redactor: Redactor::default(),
        };
        Ok(Keeping { path: path.to_path_buf(), connection, limits, life: None, git: None, run })
    }

    /// Goes on with a run that was broken off. What of it had ended stays; what was left is forgotten, and will be kept
    /// anew.
    ///
    /// # Errors
    /// When the store cannot be written, or another process goes on with the run.
    pub fn resume(path: &Path, head: RunHead, limits: Limits) -> Result<Keeping, StoreError> {
        let mut connection = tables::open(path, For::Writing)?;
        let life = Life::begin(path, &head.id).map_err(|error| StoreError::io(path, &error))?;
        let Some(life) = life else {
            return Err(StoreError::NoSuchRun(format!("run {} goes on in another process", head.short())));
        };
        let run = Writing::of(&mut connection, head).map_err(|error| StoreError::of(path, &error))?;
        Ok(Keeping { path: path.to_path_buf(), connection, limits, life: Some(life), git: None, run })
    }

    /// Keeps nothing of these secrets, wherever people have written them.
    #[must_use]
    pub fn hiding(mut self, redactor: &Redactor) -> Keeping {
        self.run.redactor = redactor.clone();
        self
    }

    /// The id of the run.
    pub fn id(&self) -> &str {
        &self.run.id
    }

    /// Keeps what happened, all of it or nothing.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub fn keep(&mut self, events: &[RunEvent]) -> Result<(), StoreError> {
        let begins = events.iter().any(|event| matches!(event, RunEvent::Started { .. }));
        if begins && self.life.is_none() {
            let life = Life::begin(&self.path, &self.run.id);
            self.life = life.map_err(|error| StoreError::io(&self.path, &error))?;
        }
        let is_over = events.iter().any(|event| matches!(event, RunEvent::Ended(_)));
        let commit = self.git.as_mut().and_then(|git| git.answer(is_over));
        let written = self.write(events, commit);
        if written.is_ok() && is_over {
            self.life = None;
            // The run is kept whether room could be made for the next one or not, which tries again.
            let _ = prune(&self.path, &mut self.connection, self.limits, self.run.number, wall_millis());
        }
        written.map_err(|error| StoreError::of(&self.path, &error))
    }

    /// Keeps of a run that has ended no more than what it came to, and why the rest is not kept.
    ///
    /// # Errors
    /// When not even that can be kept: the reason may still be there.
    pub fn end_incomplete(&mut self, summary: &Summary, why: &str) -> Result<(), StoreError> {
        let Some(run) = self.run.number else { return Ok(()) };
        let broken = format!("what happened last in this run is not kept: {why}");
        let summary = Summary { broken: Some(broken.into()), ..summary.clone() };
        let ended = (|| {
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            self.run.end(&summary, run, &transaction)?;
            transaction.commit()
        })();
        self.life = None;
        ended.map_err(|error| StoreError::of(&self.path, &error))
    }

    /// Leaves a file that is whole by itself: whoever reads it needs nothing beside it, and makes nothing there.
    pub(super) fn close_file(self) -> Result<(), StoreError> {
        let closed = self.connection.pragma_update(None, "journal_mode", "DELETE");
        closed.map_err(|error| StoreError::of(&self.path, &error))
    }

    fn write(&mut self, events: &[RunEvent], commit: Option<Commit>) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for event in events {
            self.run.event(event, &transaction)?;
        }
        if let (Some(commit), Some(run)) = (commit, self.run.number) {
            let set = "UPDATE run SET git_commit = ?2, git_dirty = ?3 WHERE number = ?1";
            transaction.execute(set, params![run, commit.id, commit.dirty])?;
            seal::seal_run(&transaction, run)?;
        }
        transaction.commit()
    }
}

impl Writing {
    /// A run that was broken off, as far as its cases have ended.
    fn of(connection: &mut Connection, head: RunHead) -> rusqlite::Result<Writing> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let run = head.number;
        // Places of events are never given twice, also not those of what is forgotten: whoever follows the run knows them.
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
        let mut known = Known::default();
        {
            let mut select = transaction.prepare("SELECT number, path, shown FROM suite WHERE run = ?1")?;
            let mut rows = select.query([run])?;
            while let Some(row) = rows.next()? {
                let (path, shown): (String, String) = (row.get(1)?, row.get(2)?);
                known.suites.insert(hash(&(PathBuf::from(path), shown)), unsigned(row.get(0)?));
            }
            // What is shown from other files gets new numbers: the old ones stay for what refers to them.
            let most: i64 = transaction.query_row(
                "SELECT coalesce(max(number), 0) FROM source WHERE run = ?1",
                [run],
                |row| row.get(0),
            )?;
            known.first_source = unsigned(most);
        }
        let before = {
            let mut select = transaction.prepare("SELECT place FROM cases WHERE run = ?1")?;
            let places = select.query_map([run], |row| row.get::<_, i64>(0).map(unsigned))?;
            places.collect::<rusqlite::Result<HashSet<usize>>>()?
        };
        transaction.commit()?;
        Ok(Writing {
            id: head.id,
            about: head.about,
            number: Some(run),
            told,
            known,
            alone: HashMap::new(),
            before,
            commit: None,
            redactor: Redactor::default(),
        })
    }

    fn event(&mut self, event: &RunEvent, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        self.told += 1;
        if let (RunEvent::Started { at, .. }, None) = (event, self.number) {
            let (commit, dirty) = self.commit.take().map(|commit| (commit.id, commit.dirty)).unzip();
            let insert =
                "INSERT INTO run (id, began, about, git_commit, git_dirty) VALUES (?1, ?2, ?3, ?4, ?5)";
            transaction.execute(insert, params![self.id, at, packed(&self.about)?, commit, dirty])?;
            let run = transaction.last_insert_rowid();
            seal::seal_run(transaction, run)?;
            self.number = Some(run);
        }
        // Of a run that ends before it has begun there is nothing to tell.
        let Some(run) = self.number else { return Ok(()) };
        match event {
            RunEvent::Started { .. } => Ok(()),
            RunEvent::CaseStarted { case, repetition } => {
                self.case(case, Some((*repetition, self.told)), run, transaction)
            }
            RunEvent::AttemptEnded { attempt, repetition } => match repetition {
                Repetition::Retried { retries: 0 } => {
                    self.alone.insert(attempt.selected.index, attempt.clone());
                    Ok(())
                }
                Repetition::Retried { .. } | Repetition::Repeated { .. } => {
                    self.attempt(attempt, run, Some(self.told), transaction)
                }
            },
            RunEvent::CaseEnded(outcome) if self.before.contains(&outcome.selected.index) => Ok(()),
            RunEvent::CaseEnded(outcome) => self.outcome(outcome, run, transaction),
            RunEvent::Stopping(wish) => {
                let insert = seal::insert("stop", "run, told, wish");
                transaction.execute(&insert, params![run, self.told, text(wish)?])?;
                Ok(())
            }
            RunEvent::Ended(summary) => self.end(summary, run, transaction),
        }
    }

    /// Keeps what a run came to.
    fn end(&self, summary: &Summary, run: i64, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        let set = "UPDATE run SET ended = ?2, summary = ?3 WHERE number = ?1";
        transaction.execute(set, params![run, summary.ended_at, text(summary)?])?;
        seal::count_rows(transaction, run)?;
        seal::seal_run(transaction, run)
    }

    /// A case of which something is kept for the first time: one that begins, with how often it is attempted and the
    /// place of that event, or one that never will.
    fn case(
        &mut self,
        told: &Told,
        begun: Option<(Repetition, i64)>,
        run: i64,
        transaction: &Transaction<'_>,
    ) -> rusqlite::Result<()> {
        let (repetition, began) = begun.unzip();
        let suite = self.suite(&told.suite, run, transaction)?;
        let facts = pack(&kept::case(told, repetition, &self.redactor).map_err(unwritable)?);
        transaction
            .prepare_cached(
                "INSERT INTO cases (run, place, id, suite, began, facts, seal) VALUES
                 (?1, ?2, ?3, ?4, ?5, ?6, seal(?1, ?2, ?3, ?4, ?5, ?6, NULL, NULL, NULL, NULL, NULL))",
            )?
            .execute(params![run, signed(told.index), told.case.id, signed(suite), began, facts])?;
        Ok(())
    }

    fn attempt(
        &mut self,
        attempt: &Attempt,
        run: i64,
        told: Option<i64>,
        transaction: &Transaction<'_>,
    ) -> rusqlite::Result<()> {
        let (known, redactor) = (&mut self.known, &self.redactor);
        let mut numbers = InTransaction { transaction, run, known, redactor };
        let facts = pack(&kept::attempt(attempt, &mut numbers)?);
        let events = packed(&attempt.events)?;
        transaction
            .prepare_cached(&seal::insert("attempt", "run, place, number, told, facts, events"))?
            .execute(params![
                run,
                signed(attempt.selected.index),
                signed(attempt.number),
                told,
                facts,
                events
            ])?;
        Ok(())
    }

    fn outcome(
        &mut self,
        outcome: &Outcome,
        run: i64,
        transaction: &Transaction<'_>,
    ) -> rusqlite::Result<()> {
        let index = outcome.selected.index;
        if let Some(attempt) = self.alone.remove(&index) {
            // The event that told of it came right before this one.
            self.attempt(&attempt, run, Some(self.told - 1), transaction)?;
        } else if outcome.never_begun {
            self.case(&outcome.selected, None, run, transaction)?;
            for attempt in &outcome.attempts {
                self.attempt(attempt, run, None, transaction)?;
            }
        }
        let kind = outcome.verdict.failure.as_ref().map(|failure| failure.kind.name());
        let status = outcome.verdict.status.name();
        let came_to = pack(&kept::outcome(outcome).map_err(unwritable)?);
        transaction
            .prepare_cached(
                "UPDATE cases SET ended = ?3, status = ?4, kind = ?5, left_over = ?6, outcome = ?7,
                     seal = seal(run, place, id, suite, began, facts, ?3, ?4, ?5, ?6, ?7)
                 WHERE run = ?1 AND place = ?2",
            )?
            .execute(params![run, signed(index), self.told, status, kind, outcome.is_left_over(), came_to])?;
        Ok(())
    }

    fn suite(
        &mut self,
        suite: &Arc<Suite>,
        run: i64,
        transaction: &Transaction<'_>,
    ) -> rusqlite::Result<usize> {
        let new = self.known.suites.len() + 1;
        let number = *self.known.suites.entry(hash(&(&suite.path, &suite.shown))).or_insert(new);
        if number == new {
            let insert = seal::insert("suite", "run, number, path, shown");
            transaction.execute(
                &insert,
                params![run, signed(number), suite.path.to_string_lossy(), &*suite.shown],
            )?;
        }
        Ok(number)
    }
}

impl Numbers for InTransaction<'_> {
    fn number(&mut self, source: &Arc<Source>) -> rusqlite::Result<usize> {
        let Source { name, text, first_line, first_column } = &**source;
        let Known { sources, first_source, .. } = &mut *self.known;
        let new = *first_source + sources.len() + 1;
        let number = *sources.entry(hash(&(name, text, first_line, first_column))).or_insert(new);
        if number == new {
            let insert = seal::insert("source", "run, number, name, text, first_line, first_column");
            let packed = pack(self.redactor.masked(text).as_bytes());
            self.transaction.execute(
                &insert,
                params![self.run, signed(number), &**name, packed, first_line, first_column],
            )?;
        }
        Ok(number)
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn packed(value: &impl Serialize) -> rusqlite::Result<Vec<u8>> {
    Ok(pack(&serde_json::to_vec(value).map_err(unwritable)?))
}

fn text(value: &impl Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(unwritable)
}

fn unwritable(error: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(error.into())
}

/// A number as it was before SQLite counted it.
fn unsigned(number: i64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

/// SQLite counts in signed numbers.
pub(super) fn signed(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
