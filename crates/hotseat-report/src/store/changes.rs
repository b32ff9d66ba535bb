//! Follows a run while another process writes it: reads the changes after a given position.

use std::sync::Arc;

use rusqlite::params;

use super::RunStoreError;
use super::file_identity::FileIdentity;
use super::live::{self, LiveRun};
use super::run_lock::is_running;
use super::run_store::RunStore;
use super::run_writer::to_i64;
use super::stored_run::StoredRun;
use hotseat_engine::run::{CaseOutcome, CaseRef};

/// Change of a case.
pub enum CaseChange {
    /// The case has started, and has not ended yet.
    Started {
        /// The case.
        case: Arc<CaseRef>,
        /// Number of attempts that have ended.
        attempts: usize,
    },
    /// The case has ended.
    Ended(Box<CaseOutcome>),
}

/// Position up to which changes were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeCursor {
    /// Position of the last event that was read, counted from 1.
    pub position: i64,
    /// True if more changes can be read now.
    pub more: bool,
}

/// State of a store file. As long as it stays equal, there are no changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreStamp {
    /// SQLite data version, which changes with every write of another process.
    version: i64,
    /// Detects that the file was replaced.
    file: FileIdentity,
}

impl RunStore {
    /// Returns the running run (the last one to start if there are several), otherwise the last run. Fails if
    /// there are no runs, or the store cannot be read.
    pub fn current_run(&self) -> Result<StoredRun, RunStoreError> {
        let select = "SELECT id FROM run WHERE summary IS NULL ORDER BY number DESC";
        let ids: Vec<(String,)> = self.query_rows(select, [])?;
        let running = ids.iter().find(|(id,)| is_running(&self.path, id));
        self.find(running.map_or("last", |(id,)| id))
    }

    /// Reports up to `most` cases of a run that have started or ended after a position, in the order of these
    /// events. Fails if the cases cannot be read.
    pub fn changes(
        &self,
        head: &StoredRun,
        after: i64,
        most: usize,
        tell: &mut dyn FnMut(CaseChange),
    ) -> Result<ChangeCursor, RunStoreError> {
        // A process that resumes the run at the same time deletes cases of it.
        let _one_moment =
            self.connection.unchecked_transaction().map_err(|error| self.sqlite_error(&error))?;
        let parts = self.run_parts(head)?;
        let select = "SELECT began, 0, place FROM cases WHERE run = ?1 AND began > ?2 AND ended IS NULL
             UNION ALL SELECT max(told), 0, place FROM attempt WHERE run = ?1 AND told > ?2
                       AND place IN (SELECT place FROM cases WHERE run = ?1 AND ended IS NULL) GROUP BY place
             UNION ALL SELECT ended, 1, place FROM cases WHERE run = ?1 AND ended > ?2
             ORDER BY 1 LIMIT ?3";
        let limit = to_i64(most.saturating_add(1));
        let rows: Vec<(i64, bool, i64)> = self.query_rows(select, params![parts.run, after, limit])?;
        let mut reached = ChangeCursor { position: after, more: rows.len() > most };
        for (position, has_ended, place) in rows.into_iter().take(most) {
            tell(match has_ended {
                true => CaseChange::Ended(Box::new(self.outcome_of(&parts, place, None)?)),
                false => {
                    let (case, _) = self.case_ref(&parts, place)?;
                    let select = "SELECT count(*) FROM attempt WHERE run = ?1 AND place = ?2";
                    let attempts = self.query_numbers(select, [parts.run, place])?;
                    let attempts = attempts.first().and_then(|count| usize::try_from(*count).ok());
                    CaseChange::Started { case, attempts: attempts.unwrap_or_default() }
                }
            });
            reached.position = position;
        }
        Ok(reached)
    }

    /// Returns the outcome of the case at an index of a run, or `None` if the case has not ended. Fails if
    /// the case cannot be read.
    pub fn outcome_at(&self, head: &StoredRun, index: usize) -> Result<Option<CaseOutcome>, RunStoreError> {
        let _one_moment =
            self.connection.unchecked_transaction().map_err(|error| self.sqlite_error(&error))?;
        let parts = self.run_parts(head)?;
        let select = "SELECT place FROM cases WHERE run = ?1 AND place = ?2 AND ended IS NOT NULL";
        let found = self.query_numbers(select, params![parts.run, to_i64(index)])?;
        found.first().map(|place| self.outcome_of(&parts, *place, None)).transpose()
    }

    /// Returns the id of the run that started last, if any. Fails if the store cannot be read.
    pub fn newest_id(&self) -> Result<Option<String>, RunStoreError> {
        let ids = self.query_rows("SELECT id FROM run ORDER BY number DESC LIMIT 1", [])?;
        Ok(ids.into_iter().next().map(|(id,)| id))
    }

    /// Returns true if a process is executing this run now.
    pub fn is_running(&self, head: &StoredRun) -> bool {
        is_running(&self.path, &head.id)
    }

    /// Returns the running conversations of a run, and asks its process to write them. They are known half a
    /// second after the first call. Fails if they cannot be read.
    pub fn running_conversations(&self, head: &StoredRun) -> Result<LiveRun, RunStoreError> {
        if !self.is_running(head) {
            return Ok(LiveRun::default());
        }
        let found = live::read(&self.path, &head.id);
        if !self.is_running(head) {
            // The run has ended meanwhile, so its process does not remove the mark of this viewer.
            live::remove_files(&self.path, &head.id);
        }
        found.map_err(|error| RunStoreError::from_io(&self.path, &error))
    }

    /// Returns the current stamp of the store. Fails if the file is gone or cannot be read.
    pub fn stamp(&self) -> Result<StoreStamp, RunStoreError> {
        let file = FileIdentity::from_path(&self.path);
        let file = file.map_err(|error| RunStoreError::from_io(&self.path, &error))?;
        let version = self.connection.pragma_query_value(None, "data_version", |row| row.get(0));
        Ok(StoreStamp { version: version.map_err(|error| self.sqlite_error(&error))?, file })
    }
}
