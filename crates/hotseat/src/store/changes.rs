//! A run is followed while another process makes it: what is new after a place of it.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rusqlite::{Row, params};

use super::StoreError;
use super::head::RunHead;
use super::keeping::signed;
use super::life::goes_on;
use super::reading::Store;
use crate::run::{Outcome, Told};

/// A case of which there is something new.
pub enum Change {
    /// It has begun, and has not ended.
    Begun {
        /// Which one.
        case: Arc<Told>,
        /// How many of its attempts have ended.
        attempts: usize,
    },
    /// It has ended.
    Ended(Box<Outcome>),
}

/// How far a run was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reached {
    /// The place of the last event that was told of, counted from 1.
    pub position: i64,
    /// Whether there is more to tell already.
    pub more: bool,
}

/// What a store looks like from outside. As long as it stays the same, nothing is new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// Changes with everything that others write.
    version: i64,
    /// Tells a file from another one under its name.
    file: Option<u64>,
}

impl Store {
    /// The run that goes on, the last to begin where there are several; else the last one.
    ///
    /// # Errors
    /// When none is kept, or it cannot be read.
    pub fn current(&self) -> Result<RunHead, StoreError> {
        let mut select = self.prepare("SELECT id FROM run WHERE summary IS NULL ORDER BY number DESC")?;
        let ids = select.query_map([], |row| row.get::<_, String>(0)).map_err(|error| self.fail(&error))?;
        for id in ids {
            let id = id.map_err(|error| self.fail(&error))?;
            if goes_on(&self.path, &id) {
                return self.find(&id);
            }
        }
        self.find("last")
    }

    /// Tells the cases of a run that have begun or ended behind a place of it, in the order of that, at most so many.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn changes(
        &self,
        head: &RunHead,
        after: i64,
        most: usize,
        tell: &mut dyn FnMut(Change),
    ) -> Result<Reached, StoreError> {
        // Whoever goes on with the run meanwhile forgets cases of it.
        let _one_moment = self.connection.unchecked_transaction().map_err(|error| self.fail(&error))?;
        let parts = self.parts(head)?;
        let mut select = self.prepare(
            "SELECT began, 0, place FROM cases WHERE run = ?1 AND began > ?2 AND ended IS NULL
             UNION ALL SELECT max(told), 0, place FROM attempt WHERE run = ?1 AND told > ?2
                       AND place IN (SELECT place FROM cases WHERE run = ?1 AND ended IS NULL) GROUP BY place
             UNION ALL SELECT ended, 1, place FROM cases WHERE run = ?1 AND ended > ?2
             ORDER BY 1 LIMIT ?3",
        )?;
        let columns = |row: &Row<'_>| -> rusqlite::Result<(i64, bool, i64)> {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        };
        let limit = signed(most.saturating_add(1));
        let rows = select.query_map(params![parts.run, after, limit], columns);
        let rows = rows.map_err(|error| self.fail(&error))?;
        let mut reached = Reached { position: after, more: false };
        for (number, row) in rows.enumerate() {
            if number == most {
                reached.more = true;
                break;
            }
            let (position, has_ended, place) = row.map_err(|error| self.fail(&error))?;
            tell(match has_ended {
                true => Change::Ended(Box::new(self.ended_at(&parts, place, None)?)),
                false => {
                    let (case, _) = self.told(&parts, place)?;
                    let select = "SELECT count(*) FROM attempt WHERE run = ?1 AND place = ?2";
                    let attempts = self.numbers(select, [parts.run, place])?;
                    let attempts = attempts.first().and_then(|count| usize::try_from(*count).ok());
                    Change::Begun { case, attempts: attempts.unwrap_or_default() }
                }
            });
            reached.position = position;
        }
        Ok(reached)
    }

    /// What the case at a place of a run has come to; none if it has not ended.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn outcome_at(&self, head: &RunHead, index: usize) -> Result<Option<Outcome>, StoreError> {
        let _one_moment = self.connection.unchecked_transaction().map_err(|error| self.fail(&error))?;
        let parts = self.parts(head)?;
        let select = "SELECT place FROM cases WHERE run = ?1 AND place = ?2 AND ended IS NOT NULL";
        let found = self.numbers(select, params![parts.run, signed(index)])?;
        found.first().map(|place| self.ended_at(&parts, *place, None)).transpose()
    }

    /// The id of the run that was begun last, if there is one.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn newest(&self) -> Result<Option<String>, StoreError> {
        let mut select = self.prepare("SELECT id FROM run ORDER BY number DESC LIMIT 1")?;
        let mut ids = select.query_map([], |row| row.get(0)).map_err(|error| self.fail(&error))?;
        ids.next().transpose().map_err(|error| self.fail(&error))
    }

    /// Whether a process makes this run now.
    pub fn goes_on(&self, head: &RunHead) -> bool {
        goes_on(&self.path, &head.id)
    }

    /// What the store looks like now.
    ///
    /// # Errors
    /// When it is not there any more, or cannot be read.
    pub fn stamp(&self) -> Result<Stamp, StoreError> {
        let file = identity(&self.path).map_err(|error| StoreError::io(&self.path, &error))?;
        let version = self.connection.pragma_query_value(None, "data_version", |row| row.get(0));
        Ok(Stamp { version: version.map_err(|error| self.fail(&error))?, file })
    }
}

/// What a file is known by while it is open, whatever it is called.
#[cfg(unix)]
fn identity(path: &Path) -> std::io::Result<Option<u64>> {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(path).map(|metadata| Some(metadata.ino()))
}

/// Elsewhere no file can be taken away or replaced that is open.
#[cfg(not(unix))]
fn identity(path: &Path) -> std::io::Result<Option<u64>> {
    fs::metadata(path).map(|_| None)
}
