//! The conversations of a run, for cases to be decided again.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Row;

use super::StoreError;
use super::head::RunHead;
use super::reading::{Parts, Store};
use crate::run::{Attempt, Conversations, Told};

/// A case: the name of its suite within the project, and its id.
type Named = (String, String);

/// The conversations of a run.
pub struct KeptRun {
    store: Mutex<Store>,
    parts: Parts,
    run: String,
    cases: HashMap<Named, KeptCase>,
}

/// A case of a run.
struct KeptCase {
    place: i64,
    told: Arc<Told>,
    attempts: usize,
    /// Whether it came to its end.
    ended: bool,
}

impl KeptRun {
    /// Reads which cases a run has. Suites are called by `name`, within the folder of the project.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn of(store: Store, head: &RunHead, name: impl Fn(&Path) -> String) -> Result<KeptRun, StoreError> {
        store.verify(head)?;
        let parts = store.parts(head)?;
        let mut cases = HashMap::new();
        for (place, attempts, ended) in store.places(&parts)? {
            let (told, _) = store.told(&parts, place)?;
            let path = &told.suite.path;
            let suite = match path.strip_prefix(&head.about.project) {
                // A suite that is gone, or lay on another machine, is called by where it was.
                Ok(within) if !path.exists() => {
                    let parts = within.components().map(|part| part.as_os_str().to_string_lossy());
                    parts.collect::<Vec<_>>().join("/")
                }
                Ok(_) | Err(_) => name(path),
            };
            let named = (suite, told.case.id.clone());
            cases.insert(named, KeptCase { place, told, attempts, ended });
        }
        Ok(KeptRun { store: Mutex::new(store), parts, run: head.short().to_string(), cases })
    }

    /// The cases, by the names of their suites and by their ids.
    pub fn cases(&self) -> impl Iterator<Item = &Named> {
        self.cases.keys()
    }

    /// What may have been meant by a case that is not there.
    fn elsewhere(&self, suite: &str, id: &str) -> String {
        let mut others: Vec<&str> =
            self.cases.keys().filter(|(_, other)| other == id).map(|(suite, _)| &**suite).collect();
        others.sort_unstable();
        match others.as_slice() {
            [] => String::new(),
            others => format!("; it holds `{id}` of {}, and this is {suite}", others.join(", ")),
        }
    }
}

impl Conversations for KeptRun {
    fn run(&self) -> &str {
        &self.run
    }

    fn known(&self, suite: &str, id: &str) -> Option<(usize, Option<usize>)> {
        let kept = self.cases.get(&(suite.to_string(), id.to_string()))?;
        Some((kept.attempts, kept.told.agent))
    }

    fn attempt(&self, suite: &str, id: &str, number: usize) -> Result<Attempt, String> {
        let run = &self.run;
        let Some(kept) = self.cases.get(&(suite.to_string(), id.to_string())) else {
            return Err(format!("run {run} holds no conversation of this case{}", self.elsewhere(suite, id)));
        };
        if !kept.ended {
            return Err(format!("the case was broken off in run {run}, or never begun"));
        }
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        store.attempt(&self.parts, &kept.told, kept.place, number).map_err(|error| error.to_string())
    }
}

impl Store {
    /// The places of the cases of a run, how many attempts are kept of each, and whether it came to its end.
    fn places(&self, parts: &Parts) -> Result<Vec<(i64, usize, bool)>, StoreError> {
        let mut select = self.prepare(
            "SELECT place, (SELECT count(*) FROM attempt WHERE attempt.run = cases.run AND attempt.place = cases.place),
                    status IS NOT NULL AND left_over = 0
             FROM cases WHERE run = ?1 ORDER BY place",
        )?;
        let read = |row: &Row<'_>| {
            let attempts: i64 = row.get(1)?;
            Ok((row.get(0)?, usize::try_from(attempts).unwrap_or(0), row.get(2)?))
        };
        let rows = select.query_map([parts.run], read).map_err(|error| self.fail(&error))?;
        rows.collect::<Result<_, _>>().map_err(|error| self.fail(&error))
    }
}
