//! Conversations of a saved run, as the source of a recheck.

use std::collections::HashMap;
use std::error::Error;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::RunStoreError;
use super::run_store::{RunParts, RunStore};
use super::stored_run::StoredRun;
use hotseat_engine::run::{Attempt, CaseRef, SavedConversations};

/// Key of a case: the name of its suite within the project, and its id.
type CaseKey = (String, String);

/// Conversations of a saved run.
pub struct SavedRunConversations {
    store: Mutex<RunStore>,
    parts: RunParts,
    run: String,
    cases: HashMap<CaseKey, RecheckCase>,
}

/// Case of the saved run.
struct RecheckCase {
    place: i64,
    case_ref: Arc<CaseRef>,
    attempts: usize,
    /// True if the case has ended.
    ended: bool,
}

impl SavedRunConversations {
    /// Reads the cases of a run. `name` returns the name of a suite within the project folder. Fails if the
    /// cases cannot be read.
    pub fn new(
        store: RunStore,
        head: &StoredRun,
        name: impl Fn(&Path) -> String,
    ) -> Result<SavedRunConversations, RunStoreError> {
        store.verify(head)?;
        let parts = store.run_parts(head)?;
        let mut cases = HashMap::new();
        for (place, attempts, ended) in store.case_rows(&parts)? {
            let (told, _) = store.case_ref(&parts, place)?;
            let path = &told.suite.path;
            let suite = match path.strip_prefix(&head.metadata.project) {
                // A suite that is gone, or was on another machine, is named by its old path.
                Ok(within) if !path.exists() => {
                    let parts = within.components().map(|part| part.as_os_str().to_string_lossy());
                    parts.collect::<Vec<_>>().join("/")
                }
                Ok(_) | Err(_) => name(path),
            };
            let named = (suite, told.case.id.clone());
            let attempts = usize::try_from(attempts).unwrap_or(0);
            cases.insert(named, RecheckCase { place, case_ref: told, attempts, ended });
        }
        Ok(SavedRunConversations { store: Mutex::new(store), parts, run: head.short_id().to_string(), cases })
    }

    /// Returns the keys of the cases.
    pub fn cases(&self) -> impl Iterator<Item = &CaseKey> {
        self.cases.keys()
    }

    /// Names other suites that contain a case with the same id.
    fn suggest_suites(&self, suite: &str, id: &str) -> String {
        let mut others: Vec<&str> =
            self.cases.keys().filter(|(_, other)| other == id).map(|(suite, _)| &**suite).collect();
        others.sort_unstable();
        match others.as_slice() {
            [] => String::new(),
            others => format!("; it has `{id}` in {}, but this case is in {suite}", others.join(", ")),
        }
    }
}

impl SavedConversations for SavedRunConversations {
    fn run_id(&self) -> &str {
        &self.run
    }

    fn find_case(&self, suite: &str, id: &str) -> Option<(usize, Option<usize>)> {
        let kept = self.cases.get(&(suite.to_string(), id.to_string()))?;
        Some((kept.attempts, kept.case_ref.agent))
    }

    fn load_attempt(
        &self,
        suite: &str,
        id: &str,
        number: usize,
    ) -> Result<Attempt, Box<dyn Error + Send + Sync>> {
        let run = &self.run;
        let Some(kept) = self.cases.get(&(suite.to_string(), id.to_string())) else {
            let others = self.suggest_suites(suite, id);
            return Err(format!("run {run} has no conversation of this case{others}").into());
        };
        if !kept.ended {
            return Err(format!("the case was interrupted in run {run}, or never started").into());
        }
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        Ok(store.attempt(&self.parts, &kept.case_ref, kept.place, number)?)
    }
}

impl RunStore {
    /// Returns the index, the number of saved attempts and the completion of each case.
    fn case_rows(&self, parts: &RunParts) -> Result<Vec<(i64, i64, bool)>, RunStoreError> {
        let select =
            "SELECT place, (SELECT count(*) FROM attempt WHERE attempt.run = cases.run AND attempt.place = cases.place),
                    status IS NOT NULL AND left_over = 0
             FROM cases WHERE run = ?1 ORDER BY place";
        self.query_rows(select, [parts.run])
    }
}
