//! Reads saved runs.

use std::borrow::Borrow;
use std::collections::hash_map::{Entry, HashMap};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use hotseat_document::SourceText;
use hotseat_trace::{FailureKind, Millis, VerdictStatus};
use rusqlite::{Connection, Row, params};
use serde::de::DeserializeOwned;

use super::columns::{StoredAttempt, StoredCase, StoredOutcome, decode_events};
use super::compression::{RunDictionary, decompress, needs_sample};
use super::prune::{self, PruneResult, StoreLimits};
use super::run_dictionary::{SAMPLE_SOURCE, read_dictionary};
use super::run_lock::is_running;
use super::run_writer::to_i64;
use super::stored_run::{CaseCounts, RunMetadata, RunOrigin, RunState, StoredRun, short_id};
use super::tables::{self, OpenMode};
use super::{GitCommit, RunStoreError, seal};
use crate::reporters::shell_word;
use hotseat_engine::cases::Suite;
use hotseat_engine::config::AgentIdentity;
use hotseat_engine::config::split_part;
use hotseat_engine::run::{
    Attempt, AttemptPolicy, CaseOutcome, CaseRef, FailedCases, RunEvent, RunSummary, TestedAgent,
};
use hotseat_targets::recorder::wall_millis;
use hotseat_targets::recording::suite_name;

/// Suite name, id and agent of a case.
type CaseOfAgent = (String, String, AgentIdentity);

/// Opened run store.
pub struct RunStore {
    pub(super) path: PathBuf,
    pub(super) connection: Connection,
}

/// Rows that the cases of a run refer to.
pub(super) struct RunParts {
    pub(super) run: i64,
    sources: Vec<Arc<SourceText>>,
    suites: Vec<Arc<Suite>>,
    /// Read with the first text that needs it.
    dictionary: OnceLock<RunDictionary>,
}

/// Iterator over the finished cases of a run in order. Only one case is in memory at a time.
pub struct OutcomeIter<S> {
    store: S,
    parts: RunParts,
    /// Index of the last case.
    last_index: i64,
    has_failed: bool,
}

/// A case of a run that has begun and not ended.
struct OpenCase {
    case: Arc<CaseRef>,
    repetition: AttemptPolicy,
    attempts: Vec<Arc<Attempt>>,
}

impl RunStore {
    /// Opens a store. Fails if there is no store, or it cannot be used.
    pub fn open(path: &Path) -> Result<RunStore, RunStoreError> {
        Ok(RunStore { path: path.to_path_buf(), connection: tables::open(path, OpenMode::Read)? })
    }

    /// Returns up to `most` runs, newest first. Fails if the runs cannot be read.
    pub fn runs(&self, most: usize) -> Result<Vec<StoredRun>, RunStoreError> {
        let numbers =
            self.query_numbers("SELECT number FROM run ORDER BY number DESC LIMIT ?1", [to_i64(most)])?;
        numbers.into_iter().map(|number| self.stored_run(number)).collect()
    }

    /// Finds a run by its id, a prefix of its id, `last`, or `last~2` for the second run before the last.
    /// Fails if no run or several runs match.
    pub fn find(&self, meant: &str) -> Result<StoredRun, RunStoreError> {
        let no_such = |words: String| Err(RunStoreError::NoSuchRun(words));
        let back = match meant {
            "last" => Some(0),
            _ => meant.strip_prefix("last~").and_then(|back| back.parse::<u32>().ok()),
        };
        if let Some(back) = back {
            let select = "SELECT number FROM run ORDER BY number DESC LIMIT 1 OFFSET ?1";
            return match self.query_numbers(select, [back])?.first() {
                Some(number) => self.stored_run(*number),
                None if back == 0 => no_such(format!("there are no saved runs in {}", self.path.display())),
                None => no_such(format!("there is no run `{meant}`: fewer runs are saved")),
            };
        }
        let is_id = !meant.is_empty() && meant.bytes().all(|byte| byte.is_ascii_hexdigit());
        let like = format!("{}%", if is_id { meant.to_ascii_lowercase() } else { "-".to_string() });
        let found = self.query_numbers("SELECT number FROM run WHERE id LIKE ?1 ORDER BY number", [like])?;
        match found.as_slice() {
            [one] => self.stored_run(*one),
            [] => no_such(format!(
                "there is no run `{meant}`: name a run by its id, the start of its id, or `last`; \
                 `hotseat runs` lists them"
            )),
            several => {
                let heads: Result<Vec<StoredRun>, _> =
                    several.iter().take(5).map(|number| self.stored_run(*number)).collect();
                let ids: Vec<String> = heads?.iter().map(|head| head.id.clone()).collect();
                no_such(format!("`{meant}` is the start of several run ids: {}", ids.join(", ")))
            }
        }
    }

    /// Replays the events of a run in their original order. Fails if the events cannot be read.
    pub fn replay(&self, head: &StoredRun, report: &mut dyn FnMut(RunEvent)) -> Result<(), RunStoreError> {
        self.replay_in(head, &head.metadata.project, report)
    }

    /// Replays a run as if its project were in this folder, because it may have been elsewhere on another
    /// machine.
    pub(super) fn replay_in(
        &self,
        head: &StoredRun,
        project: &Path,
        report: &mut dyn FnMut(RunEvent),
    ) -> Result<(), RunStoreError> {
        self.verify(head)?;
        let parts = self.run_parts_in(head, project)?;
        let RunMetadata { total, parallel, .. } = head.metadata;
        report(RunEvent::Started { total, parallel, at: head.started_at });
        let mut select = self.prepare(
            "SELECT began, 0, place, 0, NULL FROM cases WHERE run = ?1 AND began IS NOT NULL
             UNION ALL SELECT told, 1, place, number, NULL FROM attempt WHERE run = ?1 AND told IS NOT NULL
             UNION ALL SELECT ended, 2, place, 0, NULL FROM cases WHERE run = ?1 AND ended IS NOT NULL
             UNION ALL SELECT told, 3, 0, 0, wish FROM stop WHERE run = ?1
             ORDER BY 1",
        )?;
        let columns = |row: &Row<'_>| <(i64, i64, i64, i64, Option<String>)>::try_from(row);
        let rows = select.query_map([parts.run], columns).map_err(|error| self.sqlite_error(&error))?;
        let mut open: HashMap<i64, OpenCase> = HashMap::new();
        let open_case = |place| {
            let (case, repetition) = self.case_ref(&parts, place)?;
            Ok::<_, RunStoreError>(OpenCase { case, repetition, attempts: Vec::new() })
        };
        for row in rows {
            let (_, what, place, number, wish) = row.map_err(|error| self.sqlite_error(&error))?;
            match what {
                0 => {
                    let OpenCase { case, repetition, .. } =
                        open.entry(place).insert_entry(open_case(place)?).into_mut();
                    report(RunEvent::CaseStarted { case: case.clone(), repetition: *repetition });
                }
                1 => {
                    let of_case = match open.entry(place) {
                        Entry::Occupied(known) => known.into_mut(),
                        Entry::Vacant(unknown) => unknown.insert(open_case(place)?),
                    };
                    let attempt = Arc::new(self.attempt(&parts, &of_case.case, place, number)?);
                    of_case.attempts.push(attempt.clone());
                    report(RunEvent::AttemptEnded { attempt, repetition: of_case.repetition });
                }
                2 => {
                    let attempts = open.remove(&place).map(|of_case| of_case.attempts);
                    let attempts = attempts.filter(|attempts| !attempts.is_empty());
                    report(RunEvent::CaseEnded(Arc::new(self.outcome_of(&parts, place, attempts)?)));
                }
                _ => {
                    let wish = wish.unwrap_or_default();
                    let wish = serde_json::from_str(&wish).map_err(|error| self.damaged(error))?;
                    report(RunEvent::Stopping(wish));
                }
            }
        }
        if let Some(summary) = &head.summary {
            if let Some(sweep) = &summary.sweep {
                report(RunEvent::SweepStarted { runs: sweep.runs, combinations: sweep.combinations });
                report(RunEvent::SweepEnded(sweep.clone()));
            }
            report(RunEvent::Ended(Box::new(summary.clone())));
        }
        Ok(())
    }

    /// Iterates over the finished cases of a run in order. Fails if the cases cannot be read.
    pub fn outcomes(&self, head: &StoredRun) -> Result<OutcomeIter<&RunStore>, RunStoreError> {
        OutcomeIter::new(self, head)
    }

    /// Like [`RunStore::outcomes`], for an iterator that owns the store. Fails if the cases cannot be read.
    pub fn into_outcomes(self, head: &StoredRun) -> Result<OutcomeIter<RunStore>, RunStoreError> {
        OutcomeIter::new(self, head)
    }

    /// Returns the outcome of the case with this id, or at this place: `FILE:LINE` or `FILE:LINE:COLUMN`. Fails if no
    /// case or several cases have it.
    pub fn outcome(&self, head: &StoredRun, id: &str) -> Result<CaseOutcome, RunStoreError> {
        self.verify(head)?;
        let parts = self.run_parts(head)?;
        let select =
            "SELECT place FROM cases WHERE run = ?1 AND id = ?2 AND ended IS NOT NULL ORDER BY place";
        let mut found = self.query_numbers(select, params![parts.run, id])?;
        if found.is_empty() && split_part(id).is_some() {
            found = self.cases_at(&parts, id)?;
        }
        match found.as_slice() {
            [place] => self.outcome_of(&parts, *place, None),
            [] => {
                let begun = self.query_numbers(
                    "SELECT place FROM cases WHERE run = ?1 AND id = ?2 LIMIT 1",
                    params![parts.run, id],
                )?;
                let run = head.short_id();
                Err(RunStoreError::NoSuchRun(match (begun.is_empty(), head.state) {
                    (false, RunState::Running) => format!("case `{id}` of run {run} is still running"),
                    (false, _) => {
                        format!("case `{id}` was interrupted with run {run}: nothing of it was saved")
                    }
                    (true, _) => format!("run {run} has no case `{id}`{}", self.suggest_id(parts.run, id)?),
                }))
            }
            several => {
                let of = several
                    .iter()
                    .take(5)
                    .map(|place| Ok(self.case_ref(&parts, *place)?.0.case.place.to_string()));
                let places: Vec<String> = of.collect::<Result<_, RunStoreError>>()?;
                let (run, all) = (head.short_id(), places.join(", "));
                let help = format!("name one by its place: `hotseat show {run} {}`", shell_word(&places[0]));
                let message = format!("run {run} has several cases `{id}`: {all}");
                Err(RunStoreError::SeveralCases { message, help })
            }
        }
    }

    /// Verifies that the stored rows of a run were not altered. Fails if they were altered, or cannot be
    /// read.
    pub(super) fn verify(&self, head: &StoredRun) -> Result<(), RunStoreError> {
        match seal::find_damage(&self.connection, head.number).map_err(|error| self.sqlite_error(&error))? {
            None => Ok(()),
            Some(words) => Err(RunStoreError::damaged_run(&self.path, head.short_id(), words)),
        }
    }

    /// Returns the indexes of the finished cases of a run, without those that still have to run. Fails if the
    /// cases cannot be read.
    pub fn finished_cases(&self, head: &StoredRun) -> Result<BTreeSet<usize>, RunStoreError> {
        let select = "SELECT place FROM cases WHERE run = ?1 AND status IS NOT NULL AND left_over = 0";
        let places = self.query_numbers(select, [head.number])?;
        Ok(places.into_iter().filter_map(|place| usize::try_from(place).ok()).collect())
    }

    /// Returns the attempts that ended of cases that still have to run, in the order of their numbers, by the index of the case.
    /// Fails if they cannot be read.
    pub fn kept_attempts(&self, head: &StoredRun) -> Result<BTreeMap<usize, Vec<Attempt>>, RunStoreError> {
        self.verify(head)?;
        let parts = self.run_parts(head)?;
        let select = "SELECT attempt.place, attempt.number FROM attempt
                      JOIN cases ON cases.run = attempt.run AND cases.place = attempt.place
                      WHERE attempt.run = ?1 AND (cases.status IS NULL OR cases.left_over <> 0)
                      ORDER BY attempt.place, attempt.number";
        let mut kept: BTreeMap<usize, Vec<Attempt>> = BTreeMap::new();
        for (place, number) in self.query_rows::<(i64, i64)>(select, [parts.run])? {
            let (case, _) = self.case_ref(&parts, place)?;
            let attempt = self.attempt(&parts, &case, place, number)?;
            let failure = attempt.verdict.failure.as_ref();
            let was_cancelled = failure.is_some_and(|failure| failure.kind == FailureKind::Cancelled);
            // An attempt that was never made is skipped.
            let was_made =
                attempt.verdict.status != VerdictStatus::Skipped || !attempt.conversation.turns.is_empty();
            if was_made && !was_cancelled {
                kept.entry(case.index).or_default().push(attempt);
            }
        }
        Ok(kept)
    }

    /// Returns the cases that failed when an agent last ran them, by suite name (relative to the project), id and agent, over
    /// all saved runs of a Rust test file, or of `hotseat test` if none is named; optionally only of runs
    /// before another one. A skipped case keeps its earlier result. A recheck runs nothing, and merged runs count at their
    /// start. Fails if there is no such run, or the cases cannot be read.
    pub fn failed_cases(
        &self,
        program: Option<&str>,
        before: Option<&StoredRun>,
    ) -> Result<FailedCases, RunStoreError> {
        let before = before.map_or(i64::MAX, |head| head.number);
        let mut runs: HashMap<i64, RunMetadata> = HashMap::new();
        for number in self.query_numbers("SELECT number FROM run WHERE number < ?1", [before])? {
            let metadata = self.metadata(number)?;
            let has_run = !matches!(metadata.origin, RunOrigin::Rechecked { .. });
            if has_run && metadata.program.as_deref() == program {
                runs.insert(number, metadata);
            }
        }
        if runs.is_empty() {
            let what = program.map_or("`hotseat test`".to_string(), |file| format!("the tests of {file}"));
            let message = format!("there is no saved run of {what} in {}", self.path.display());
            return Err(RunStoreError::NoSuchRun(message));
        }
        let is_sealed = self.has_seals()?;
        // A case that was not started is `left_over`; it failed only if it was cancelled.
        let mut select = self.prepare(
            "SELECT cases.run, cases.place, suite.path, cases.id, cases.status, cases.left_over FROM cases
             JOIN suite ON suite.run = cases.run AND suite.number = cases.suite
             JOIN run ON run.number = cases.run
             WHERE cases.status IS NOT NULL
             ORDER BY run.began, cases.run",
        )?;
        let columns = |row: &Row<'_>| <(i64, i64, String, String, String, bool)>::try_from(row);
        // The last result of each case: its row, and whether it failed.
        let mut last: HashMap<CaseOfAgent, (i64, i64, bool)> = HashMap::new();
        // Parts of the last run of several agents.
        let mut read: Option<(i64, RunParts)> = None;
        for row in select.query_map([], columns).map_err(|error| self.sqlite_error(&error))? {
            let (run, place, path, id, status, is_left) = row.map_err(|error| self.sqlite_error(&error))?;
            let Some(metadata) = runs.get(&run) else { continue };
            let has_failed = match status.as_str() {
                "failed" => true,
                "passed" if !is_left => false,
                "passed" | "skipped" => continue,
                other => return Err(self.damaged_run(run, unknown_status(other))),
            };
            let mut agents = metadata.setting.agents();
            let agent = match agents.len() {
                0 | 1 => agents.next(),
                _ => {
                    let parts = match read.take().filter(|(number, _)| *number == run) {
                        Some((_, parts)) => parts,
                        None => self.run_parts(&self.stored_run(run)?)?,
                    };
                    let (case, _) = self.case_ref(&parts, place)?;
                    read = Some((run, parts));
                    case.agent.and_then(|index| agents.nth(index))
                }
            };
            let agent = agent.map(TestedAgent::identity).unwrap_or_default();
            let case = (suite_name_within(&metadata.project, Path::new(&path)), id, agent);
            last.insert(case, (run, place, has_failed));
        }
        if is_sealed {
            self.verify_results(last.values().map(|(run, place, _)| (*run, *place)))?;
        }
        Ok(last.into_iter().filter(|(_, (.., has_failed))| *has_failed).map(|(case, _)| case).collect())
    }

    fn has_seals(&self) -> Result<bool, RunStoreError> {
        let found = seal::has_seals(&self.connection).map_err(|error| self.sqlite_error(&error))?;
        found.map_err(|error| self.damaged(error))
    }

    /// Verifies that the rows of these results, each of a run and a place, were not altered.
    fn verify_results(&self, results: impl Iterator<Item = (i64, i64)>) -> Result<(), RunStoreError> {
        let mut verified = BTreeSet::new();
        for (run, place) in results {
            let is_altered = |found: rusqlite::Result<bool>| found.map_err(|error| self.sqlite_error(&error));
            if verified.insert(run) && is_altered(seal::is_run_altered(&self.connection, run))? {
                return Err(self.damaged_run(run, "the row of the run or of a suite was altered"));
            }
            if is_altered(seal::is_case_altered(&self.connection, run, place))? {
                return Err(self.damaged_run(run, "the result of a case was altered"));
            }
        }
        Ok(())
    }

    /// Deletes runs that exceed the limits. Fails if the store cannot be written.
    pub fn prune(&self, limits: StoreLimits) -> Result<PruneResult, RunStoreError> {
        let mut connection = tables::open(&self.path, OpenMode::Write)?;
        prune::prune(&self.path, &mut connection, limits, None, wall_millis())
            .map_err(|error| RunStoreError::from_sqlite(&self.path, &error))
    }

    /// Returns the finished cases at this place.
    fn cases_at(&self, parts: &RunParts, place: &str) -> Result<Vec<i64>, RunStoreError> {
        let select = "SELECT place FROM cases WHERE run = ?1 AND ended IS NOT NULL ORDER BY place";
        let mut found = Vec::new();
        for index in self.query_numbers(select, [parts.run])? {
            let shown = self.case_ref(parts, index)?.0.case.place.to_string();
            if shown.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with(':')) {
                found.push(index);
            }
        }
        Ok(found)
    }

    /// Suggests a similar id for an unknown one.
    fn suggest_id(&self, run: i64, id: &str) -> Result<String, RunStoreError> {
        let ids: Vec<(String,)> = self.query_rows("SELECT id FROM cases WHERE run = ?1 LIMIT 1000", [run])?;
        let near = hotseat_document::nearest(id, ids.iter().map(|(id,)| id.as_str()));
        Ok(near.map_or_else(String::new, |near| format!("; did you mean `{near}`?")))
    }

    /// Reads the metadata of a run.
    fn metadata(&self, number: i64) -> Result<RunMetadata, RunStoreError> {
        let (about,): (Vec<u8>,) = self.query_row("SELECT about FROM run WHERE number = ?1", [number])?;
        self.decode(number, &about)
    }

    pub(super) fn stored_run(&self, number: i64) -> Result<StoredRun, RunStoreError> {
        let select = "SELECT id, began, about, summary, git_commit, git_dirty FROM run WHERE number = ?1";
        type Columns = (String, Millis, Vec<u8>, Option<String>, Option<String>, Option<bool>);
        let (id, began, about, summary, commit, dirty): Columns = self.query_row(select, [number])?;
        let summary: Option<RunSummary> = match summary {
            Some(text) => Some(serde_json::from_str(&text).map_err(|error| self.damaged_run(number, error))?),
            None => None,
        };
        let counts = self.case_counts(number)?;
        let state = match &summary {
            Some(summary) if summary.interrupted || summary.broken.is_some() => RunState::Interrupted,
            Some(_) if counts.left > 0 => RunState::Incomplete,
            Some(_) => RunState::Ended,
            None if is_running(&self.path, &id) => RunState::Running,
            None => RunState::Killed,
        };
        let commit = commit.map(|id| GitCommit { id, dirty: dirty.unwrap_or_default() });
        Ok(StoredRun {
            number,
            id,
            started_at: began,
            metadata: self.decode(number, &about)?,
            summary,
            counts,
            commit,
            state,
        })
    }

    fn case_counts(&self, run: i64) -> Result<CaseCounts, RunStoreError> {
        let select = "SELECT status, count(*), sum(left_over) FROM cases
                      WHERE run = ?1 AND status IS NOT NULL GROUP BY status";
        let rows: Vec<(String, i64, i64)> = self.query_rows(select, [run])?;
        let mut counts = CaseCounts::default();
        for (status, count, left) in rows {
            let count = usize::try_from(count).unwrap_or(0);
            match status.as_str() {
                "passed" => counts.passed = count,
                "failed" => counts.failed = count,
                "skipped" => counts.skipped = count,
                other => return Err(self.damaged_run(run, unknown_status(other))),
            }
            counts.left += usize::try_from(left).unwrap_or(0);
        }
        Ok(counts)
    }

    pub(super) fn run_parts(&self, head: &StoredRun) -> Result<RunParts, RunStoreError> {
        self.run_parts_in(head, &head.metadata.project)
    }

    fn run_parts_in(&self, head: &StoredRun, project: &Path) -> Result<RunParts, RunStoreError> {
        let run = head.number;
        let mut sources = Vec::new();
        let select = "SELECT name, text, first_line, first_column FROM source
                      WHERE run = ?1 AND number > ?2 ORDER BY number";
        let rows: Vec<(String, Vec<u8>, u32, u32)> = self.query_rows(select, [run, SAMPLE_SOURCE])?;
        for (name, text, line, column) in rows {
            let text = decompress(&text, None).map_err(|error| self.damaged(error))?;
            let text = String::from_utf8(text).map_err(|error| self.damaged(error))?;
            sources.push(SourceText::starting_at(name, text, line, column));
        }
        let select = "SELECT path, shown FROM suite WHERE run = ?1 ORDER BY number";
        let rows: Vec<(String, String)> = self.query_rows(select, [run])?;
        let here = |path: String| match Path::new(&path).strip_prefix(&head.metadata.project) {
            Ok(within) => project.join(within),
            Err(_) => PathBuf::from(path),
        };
        let suites = rows.into_iter().map(|(path, shown)| Arc::new(Suite::new(here(path), shown))).collect();
        Ok(RunParts { run, sources, suites, dictionary: OnceLock::new() })
    }

    pub(super) fn case_ref(
        &self,
        parts: &RunParts,
        place: i64,
    ) -> Result<(Arc<CaseRef>, AttemptPolicy), RunStoreError> {
        let select = "SELECT suite, facts FROM cases WHERE run = ?1 AND place = ?2";
        let (suite, facts): (i64, Vec<u8>) = self.query_row(select, [parts.run, place])?;
        let suite = usize::try_from(suite - 1).ok().and_then(|number| parts.suites.get(number));
        let suite = suite.ok_or_else(|| self.damaged("a suite is missing"))?;
        let case: StoredCase = self.decode_text(parts, &facts)?;
        let repetition = case.repetition.unwrap_or(AttemptPolicy::Retried { retries: 0 });
        Ok((case.into_case_ref(usize::try_from(place).unwrap_or(0), suite.clone()), repetition))
    }

    pub(super) fn attempt(
        &self,
        parts: &RunParts,
        told: &Arc<CaseRef>,
        place: i64,
        number: i64,
    ) -> Result<Attempt, RunStoreError> {
        let select = "SELECT facts, events FROM attempt WHERE run = ?1 AND place = ?2 AND number = ?3";
        let (facts, events): (Vec<u8>, Vec<u8>) = self.query_row(select, [parts.run, place, number])?;
        let kept: StoredAttempt = self.decode_text(parts, &facts)?;
        let events = decode_events(&self.unpack(parts, &events)?).map_err(|error| self.damaged(error))?;
        let number = usize::try_from(number).unwrap_or(0);
        let attempt = kept.into_attempt(told.clone(), number, events, &parts.sources);
        attempt.ok_or_else(|| self.damaged("a source is missing"))
    }

    /// Returns the outcome of a finished case, with its attempts if they were read already.
    pub(super) fn outcome_of(
        &self,
        parts: &RunParts,
        place: i64,
        attempts: Option<Vec<Arc<Attempt>>>,
    ) -> Result<CaseOutcome, RunStoreError> {
        let attempts = match attempts {
            Some(mut attempts) => {
                attempts.sort_by_key(|attempt| attempt.number);
                attempts
            }
            None => {
                let (told, _) = self.case_ref(parts, place)?;
                let select = "SELECT number FROM attempt WHERE run = ?1 AND place = ?2 ORDER BY number";
                let numbers = self.query_numbers(select, [parts.run, place])?;
                let read =
                    numbers.into_iter().map(|number| self.attempt(parts, &told, place, number).map(Arc::new));
                read.collect::<Result<Vec<_>, _>>()?
            }
        };
        let first = attempts.first().ok_or_else(|| self.damaged("an attempt is missing"))?;
        let select = "SELECT outcome FROM cases WHERE run = ?1 AND place = ?2";
        let (outcome,): (Vec<u8>,) = self.query_row(select, [parts.run, place])?;
        let kept: StoredOutcome = self.decode_text(parts, &outcome)?;
        kept.into_outcome(first.case_ref.clone(), attempts)
            .ok_or_else(|| self.damaged("an attempt is missing"))
    }

    pub(super) fn query_numbers(
        &self,
        select: &str,
        params: impl rusqlite::Params,
    ) -> Result<Vec<i64>, RunStoreError> {
        Ok(self.query_rows(select, params)?.into_iter().map(|(number,)| number).collect())
    }

    /// Returns the rows of a query, each as a tuple of its columns.
    pub(super) fn query_rows<T: for<'r> TryFrom<&'r Row<'r>, Error = rusqlite::Error>>(
        &self,
        select: &str,
        params: impl rusqlite::Params,
    ) -> Result<Vec<T>, RunStoreError> {
        let mut select = self.prepare(select)?;
        let rows =
            select.query_map(params, |row| T::try_from(row)).map_err(|error| self.sqlite_error(&error))?;
        rows.collect::<Result<_, _>>().map_err(|error| self.sqlite_error(&error))
    }

    /// Returns the only row of a query, as a tuple of its columns.
    fn query_row<T: for<'r> TryFrom<&'r Row<'r>, Error = rusqlite::Error>>(
        &self,
        select: &str,
        params: impl rusqlite::Params,
    ) -> Result<T, RunStoreError> {
        let row = self.prepare(select)?.query_row(params, |row| T::try_from(row));
        row.map_err(|error| self.sqlite_error(&error))
    }

    pub(super) fn prepare(&self, select: &str) -> Result<rusqlite::CachedStatement<'_>, RunStoreError> {
        self.connection.prepare_cached(select).map_err(|error| self.sqlite_error(&error))
    }

    /// Decodes a text of a run.
    fn decode<T: DeserializeOwned>(&self, run: i64, packed: &[u8]) -> Result<T, RunStoreError> {
        let text = decompress(packed, None).map_err(|error| self.damaged_run(run, error))?;
        serde_json::from_slice(&text).map_err(|error| self.damaged_run(run, error))
    }

    /// Decodes a text of a case.
    fn decode_text<T: DeserializeOwned>(&self, parts: &RunParts, packed: &[u8]) -> Result<T, RunStoreError> {
        serde_json::from_slice(&self.unpack(parts, packed)?).map_err(|error| self.damaged(error))
    }

    /// Decompresses a text of a case.
    fn unpack(&self, parts: &RunParts, packed: &[u8]) -> Result<Vec<u8>, RunStoreError> {
        if needs_sample(packed) && parts.dictionary.get().is_none() {
            let dictionary = read_dictionary(&self.connection, parts.run)
                .map_err(|error| self.sqlite_error(&error))?
                .ok_or_else(|| self.damaged("the sample of a run is missing"))?;
            let _ = parts.dictionary.set(dictionary.map_err(|error| self.damaged(error))?);
        }
        decompress(packed, parts.dictionary.get()).map_err(|error| self.damaged(error))
    }

    pub(super) fn sqlite_error(&self, error: &rusqlite::Error) -> RunStoreError {
        RunStoreError::from_sqlite(&self.path, error)
    }

    fn damaged(&self, words: impl Display) -> RunStoreError {
        RunStoreError::damaged(&self.path, words)
    }

    /// Error for a run whose rows are damaged, by its number.
    fn damaged_run(&self, run: i64, words: impl Display) -> RunStoreError {
        let id: Result<(String,), RunStoreError> =
            self.query_row("SELECT id FROM run WHERE number = ?1", [run]);
        match id {
            Ok((id,)) => RunStoreError::damaged_run(&self.path, short_id(&id), words),
            Err(_) => self.damaged(words),
        }
    }
}

fn unknown_status(status: &str) -> String {
    format!("a case has the unknown status `{status}`")
}

/// Returns the name of a suite within its project, which may be from another machine.
fn suite_name_within(project: &Path, suite: &Path) -> String {
    match suite.strip_prefix(project) {
        Ok(within) => within.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/"),
        Err(_) => suite_name(project, suite),
    }
}

impl<S: Borrow<RunStore>> OutcomeIter<S> {
    fn new(store: S, head: &StoredRun) -> Result<Self, RunStoreError> {
        store.borrow().verify(head)?;
        let parts = store.borrow().run_parts(head)?;
        Ok(OutcomeIter { store, parts, last_index: -1, has_failed: false })
    }
}

impl<S: Borrow<RunStore>> Iterator for OutcomeIter<S> {
    type Item = Result<CaseOutcome, RunStoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let select = "SELECT place FROM cases WHERE run = ?1 AND place > ?2 AND ended IS NOT NULL ORDER BY place LIMIT 1";
        let next = match self.store.borrow().query_numbers(select, [self.parts.run, self.last_index]) {
            Ok(next) => *next.first()?,
            Err(error) => {
                self.has_failed = true;
                return Some(Err(error));
            }
        };
        self.last_index = next;
        let outcome = self.store.borrow().outcome_of(&self.parts, next, None);
        self.has_failed = outcome.is_err();
        Some(outcome)
    }
}
