//! What is kept is read.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotseat_document::Source;
use hotseat_trace::{Millis, Record};
use rusqlite::{Connection, Row, params};
use serde::de::DeserializeOwned;

use super::head::{About, Counts, RunHead, State};
use super::keeping::signed;
use super::kept::{KeptAttempt, KeptCase, KeptOutcome};
use super::life::goes_on;
use super::pack::unpack;
use super::prune::{self, Limits, Pruned};
use super::tables::{self, For};
use super::{Commit, StoreError, seal};
use crate::cases::Suite;
use crate::recording::suite_name;
use crate::run::{Attempt, Outcome, Repetition, RunEvent, Summary, Told};
use crate::session::wall_millis;

/// Runs that are kept.
pub struct Store {
    pub(super) path: PathBuf,
    pub(super) connection: Connection,
}

/// What a run needs to be read: what its cases refer to.
pub(super) struct Parts {
    pub(super) run: i64,
    sources: Vec<Arc<Source>>,
    suites: Vec<Arc<Suite>>,
}

/// The cases of a run that have ended, in their order; one is in memory at a time.
pub struct Outcomes<'a> {
    store: &'a Store,
    parts: Parts,
    /// The place of the last one.
    last: i64,
    has_failed: bool,
}

/// An event of a run, by where its parts are kept.
struct Kept {
    what: i64,
    place: i64,
    number: i64,
    wish: Option<String>,
}

impl Store {
    /// Opens a store.
    ///
    /// # Errors
    /// When there is none, or it cannot be used.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        Ok(Store { path: path.to_path_buf(), connection: tables::open(path, For::Reading)? })
    }

    /// The last runs, at most so many; the very last one first.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn runs(&self, most: usize) -> Result<Vec<RunHead>, StoreError> {
        let numbers = self.numbers("SELECT number FROM run ORDER BY number DESC LIMIT ?1", [signed(most)])?;
        numbers.into_iter().map(|number| self.head(number)).collect()
    }

    /// The run that is meant: by its id or the beginning of it, `last`, or `last~2` for the second one before that.
    ///
    /// # Errors
    /// When none is meant, or several are.
    pub fn find(&self, meant: &str) -> Result<RunHead, StoreError> {
        let no_such = |words: String| Err(StoreError::NoSuchRun(words));
        let back = match meant {
            "last" => Some(0),
            _ => meant.strip_prefix("last~").and_then(|back| back.parse::<u32>().ok()),
        };
        if let Some(back) = back {
            let select = "SELECT number FROM run ORDER BY number DESC LIMIT 1 OFFSET ?1";
            return match self.numbers(select, [back])?.first() {
                Some(number) => self.head(*number),
                None if back == 0 => no_such(format!("no run is kept in {}", self.path.display())),
                None => no_such(format!("there is no run `{meant}`: not so many are kept")),
            };
        }
        let is_id = !meant.is_empty() && meant.bytes().all(|byte| byte.is_ascii_hexdigit());
        let like = format!("{}%", if is_id { meant.to_ascii_lowercase() } else { "-".to_string() });
        let found = self.numbers("SELECT number FROM run WHERE id LIKE ?1 ORDER BY number", [like])?;
        match found.as_slice() {
            [one] => self.head(*one),
            [] => no_such(format!(
                "no run is called `{meant}`: a run is named by its id, the beginning of it, or `last`; \
                 `hotseat runs` lists them"
            )),
            several => {
                let heads: Result<Vec<RunHead>, _> =
                    several.iter().take(5).map(|number| self.head(*number)).collect();
                let ids: Vec<String> = heads?.iter().map(|head| head.id.clone()).collect();
                no_such(format!("`{meant}` is the beginning of several runs: {}", ids.join(", ")))
            }
        }
    }

    /// Tells what happened in a run, in the order in which it happened.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn replay(&self, head: &RunHead, report: &mut dyn FnMut(RunEvent)) -> Result<(), StoreError> {
        self.replay_in(head, &head.about.project, report)
    }

    /// The same as if the project lay in this folder: on another machine it lay elsewhere.
    pub(super) fn replay_in(
        &self,
        head: &RunHead,
        project: &Path,
        report: &mut dyn FnMut(RunEvent),
    ) -> Result<(), StoreError> {
        self.verify(head)?;
        let parts = self.parts_in(head, project)?;
        let About { total, parallel, .. } = head.about;
        report(RunEvent::Started { total, parallel, at: head.began });
        let mut select = self.prepare(
            "SELECT began, 0, place, 0, NULL FROM cases WHERE run = ?1 AND began IS NOT NULL
             UNION ALL SELECT told, 1, place, number, NULL FROM attempt WHERE run = ?1 AND told IS NOT NULL
             UNION ALL SELECT ended, 2, place, 0, NULL FROM cases WHERE run = ?1 AND ended IS NOT NULL
             UNION ALL SELECT told, 3, 0, 0, wish FROM stop WHERE run = ?1
             ORDER BY 1",
        )?;
        let kept = |row: &Row<'_>| {
            Ok(Kept { what: row.get(1)?, place: row.get(2)?, number: row.get(3)?, wish: row.get(4)? })
        };
        let rows = select.query_map([parts.run], kept).map_err(|error| self.fail(&error))?;
        let mut open: HashMap<i64, (Repetition, Vec<Arc<Attempt>>)> = HashMap::new();
        for row in rows {
            let Kept { what, place, number, wish } = row.map_err(|error| self.fail(&error))?;
            match what {
                0 => {
                    let (case, repetition) = self.told(&parts, place)?;
                    report(RunEvent::CaseStarted { case, repetition });
                }
                1 => {
                    let (told, repetition) = match open.get(&place) {
                        Some((repetition, ended)) => (ended[0].selected.clone(), *repetition),
                        None => self.told(&parts, place)?,
                    };
                    let attempt = Arc::new(self.attempt(&parts, &told, place, number)?);
                    let ended = &mut open.entry(place).or_insert_with(|| (repetition, Vec::new())).1;
                    ended.push(attempt.clone());
                    report(RunEvent::AttemptEnded { attempt, repetition });
                }
                2 => {
                    let attempts = open.remove(&place).map(|(_, attempts)| attempts);
                    report(RunEvent::CaseEnded(Arc::new(self.ended_at(&parts, place, attempts)?)));
                }
                _ => {
                    let wish = wish.unwrap_or_default();
                    let wish = serde_json::from_str(&wish).map_err(|error| self.broken(error))?;
                    report(RunEvent::Stopping(wish));
                }
            }
        }
        if let Some(summary) = &head.summary {
            report(RunEvent::Ended(summary.clone()));
        }
        Ok(())
    }

    /// The cases of a run that have ended, in their order.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn outcomes(&self, head: &RunHead) -> Result<Outcomes<'_>, StoreError> {
        self.verify(head)?;
        Ok(Outcomes { store: self, parts: self.parts(head)?, last: -1, has_failed: false })
    }

    /// The case of a run that has this id.
    ///
    /// # Errors
    /// When there is none, or there are several.
    pub fn outcome(&self, head: &RunHead, id: &str) -> Result<Outcome, StoreError> {
        self.verify(head)?;
        let parts = self.parts(head)?;
        let select =
            "SELECT place FROM cases WHERE run = ?1 AND id = ?2 AND ended IS NOT NULL ORDER BY place";
        let found = self.numbers(select, params![parts.run, id])?;
        match found.as_slice() {
            [place] => self.ended_at(&parts, *place, None),
            [] => {
                let begun = self.numbers(
                    "SELECT place FROM cases WHERE run = ?1 AND id = ?2 LIMIT 1",
                    params![parts.run, id],
                )?;
                let run = head.short();
                Err(StoreError::NoSuchRun(match (begun.is_empty(), head.state) {
                    (false, State::Running) => format!("case `{id}` of run {run} goes on"),
                    (false, _) => format!("case `{id}` was broken off with run {run}: nothing of it is kept"),
                    (true, _) => format!("run {run} has no case `{id}`{}", self.near(parts.run, id)?),
                }))
            }
            several => {
                let of = several
                    .iter()
                    .take(5)
                    .map(|place| Ok(self.told(&parts, *place)?.0.case.place.to_string()));
                let places: Result<Vec<String>, StoreError> = of.collect();
                let places = places?.join(", ");
                let words = format!("run {} has several cases `{id}`: {places}", head.short());
                Err(StoreError::NoSuchRun(words))
            }
        }
    }

    /// Makes sure that all that is kept of a run is what was written.
    ///
    /// # Errors
    /// When it is not, or cannot be read.
    pub(super) fn verify(&self, head: &RunHead) -> Result<(), StoreError> {
        match seal::damage(&self.connection, head.number).map_err(|error| self.fail(&error))? {
            None => Ok(()),
            Some(words) => Err(StoreError::damaged(&self.path, head.short(), &words)),
        }
    }

    /// The last run of a test file in Rust, or of `hotseat test` where none is named; of those before another run.
    ///
    /// # Errors
    /// When there is none.
    pub fn last_of(&self, program: Option<&str>, before: Option<&RunHead>) -> Result<RunHead, StoreError> {
        let select = "SELECT number FROM run WHERE number < ?1 ORDER BY number DESC";
        for number in self.numbers(select, [before.map_or(i64::MAX, |head| head.number)])? {
            let head = self.head(number)?;
            if head.about.program.as_deref() == program {
                return Ok(head);
            }
        }
        let what = program.map_or("`hotseat test`".to_string(), |file| format!("the tests of {file}"));
        Err(StoreError::NoSuchRun(match before {
            Some(head) => format!("no run of {what} before {} is kept", head.short()),
            None => format!("no run of {what} is kept in {}", self.path.display()),
        }))
    }

    /// The places of the cases of a run that have ended, and are not left over.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn ended(&self, head: &RunHead) -> Result<BTreeSet<usize>, StoreError> {
        let select = "SELECT place FROM cases WHERE run = ?1 AND status IS NOT NULL AND left_over = 0";
        let places = self.numbers(select, [head.number])?;
        Ok(places.into_iter().filter_map(|place| usize::try_from(place).ok()).collect())
    }

    /// The cases that failed in a run, by the names of their suites within the project and by their ids. A run of what had
    /// failed before it that did not come to its end leaves what is left of that.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn failed(&self, head: &RunHead) -> Result<BTreeSet<(String, String)>, StoreError> {
        let of = |which: &str| {
            let mut select = self.prepare(&format!(
                "SELECT suite.path, cases.id FROM cases
                 JOIN suite ON suite.run = cases.run AND suite.number = cases.suite
                 WHERE cases.run = ?1 AND {which}"
            ))?;
            let pair = |row: &Row<'_>| Ok((PathBuf::from(row.get::<_, String>(0)?), row.get(1)?));
            let rows = select.query_map([head.number], pair).map_err(|error| self.fail(&error))?;
            let named = rows.map(|row| row.map(|(path, id)| (name_within(&head.about.project, &path), id)));
            named.collect::<Result<BTreeSet<_>, _>>().map_err(|error| self.fail(&error))
        };
        let mut failed = of("cases.status = 'failed'")?;
        if head.about.only_failed && head.state != State::Ended {
            let decided = of("cases.status IS NOT NULL AND cases.left_over = 0")?;
            let before = match self.last_of(head.about.program.as_deref(), Some(head)) {
                Ok(before) => self.failed(&before)?,
                // It was given up.
                Err(StoreError::NoSuchRun(_)) => BTreeSet::new(),
                Err(error) => return Err(error),
            };
            failed.extend(before.difference(&decided).cloned());
        }
        Ok(failed)
    }

    /// Gives up runs that do not keep to the limits.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn prune(&self, limits: Limits) -> Result<Pruned, StoreError> {
        let mut connection = tables::open(&self.path, For::Writing)?;
        prune::prune(&self.path, &mut connection, limits, None, wall_millis())
            .map_err(|error| StoreError::of(&self.path, &error))
    }

    /// What a person may have meant by an id that is not there.
    fn near(&self, run: i64, id: &str) -> Result<String, StoreError> {
        let mut select = self.prepare("SELECT id FROM cases WHERE run = ?1 LIMIT 1000")?;
        let ids =
            select.query_map([run], |row| row.get::<_, String>(0)).map_err(|error| self.fail(&error))?;
        let ids: Vec<String> = ids.collect::<Result<_, _>>().map_err(|error| self.fail(&error))?;
        let near = hotseat_document::nearest(id, ids.iter().map(String::as_str));
        Ok(near.map_or_else(String::new, |near| format!("; did you mean `{near}`?")))
    }

    pub(super) fn head(&self, number: i64) -> Result<RunHead, StoreError> {
        let select = "SELECT id, began, about, summary, git_commit, git_dirty FROM run WHERE number = ?1";
        type Columns = (String, Millis, Vec<u8>, Option<String>, Option<String>, Option<bool>);
        let columns = |row: &Row<'_>| -> rusqlite::Result<Columns> {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?))
        };
        let row = self.connection.query_row(select, [number], columns).map_err(|error| self.fail(&error))?;
        let (id, began, about, summary, commit, dirty) = row;
        let summary: Option<Summary> = match summary {
            Some(text) => Some(serde_json::from_str(&text).map_err(|error| self.broken(error))?),
            None => None,
        };
        let counts = self.counts(number)?;
        let state = match &summary {
            Some(_) if counts.left > 0 => State::Interrupted,
            Some(summary) if summary.interrupted || summary.broken.is_some() => State::Interrupted,
            Some(_) => State::Ended,
            None if goes_on(&self.path, &id) => State::Running,
            None => State::Killed,
        };
        let commit = commit.map(|id| Commit { id, dirty: dirty.unwrap_or_default() });
        Ok(RunHead { number, id, began, about: self.unpacked(&about)?, summary, counts, commit, state })
    }

    fn counts(&self, run: i64) -> Result<Counts, StoreError> {
        let mut select = self.prepare(
            "SELECT status, count(*), sum(left_over) FROM cases WHERE run = ?1 AND status IS NOT NULL GROUP BY status",
        )?;
        let count =
            |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
        let rows = select.query_map([run], count).map_err(|error| self.fail(&error))?;
        let mut counts = Counts::default();
        for row in rows {
            let (status, count, left) = row.map_err(|error| self.fail(&error))?;
            let count = usize::try_from(count).unwrap_or(0);
            match status.as_str() {
                "passed" => counts.passed = count,
                "failed" => counts.failed = count,
                "skipped" => counts.skipped = count,
                other => return Err(self.broken(format!("a case has the status `{other}`"))),
            }
            counts.left += usize::try_from(left).unwrap_or(0);
        }
        Ok(counts)
    }

    pub(super) fn parts(&self, head: &RunHead) -> Result<Parts, StoreError> {
        self.parts_in(head, &head.about.project)
    }

    fn parts_in(&self, head: &RunHead, project: &Path) -> Result<Parts, StoreError> {
        let run = head.number;
        let mut sources = Vec::new();
        let select = "SELECT name, text, first_line, first_column FROM source WHERE run = ?1 ORDER BY number";
        let mut select = self.prepare(select)?;
        let row = |row: &Row<'_>| -> rusqlite::Result<(String, Vec<u8>, u32, u32)> {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        };
        for row in select.query_map([run], row).map_err(|error| self.fail(&error))? {
            let (name, text, line, column) = row.map_err(|error| self.fail(&error))?;
            let text = unpack(&text).map_err(|error| self.broken(error))?;
            let text = String::from_utf8(text).map_err(|error| self.broken(error))?;
            sources.push(Source::starting_at(name, text, line, column));
        }
        let mut select = self.prepare("SELECT path, shown FROM suite WHERE run = ?1 ORDER BY number")?;
        let row = |row: &Row<'_>| -> rusqlite::Result<(String, String)> { Ok((row.get(0)?, row.get(1)?)) };
        let rows = select.query_map([run], row).map_err(|error| self.fail(&error))?;
        let here = |path: String| match Path::new(&path).strip_prefix(&head.about.project) {
            Ok(within) => project.join(within),
            Err(_) => PathBuf::from(path),
        };
        let suites = rows.map(|row| row.map(|(path, shown)| Arc::new(Suite::new(here(path), shown))));
        let suites = suites.collect::<Result<_, _>>().map_err(|error| self.fail(&error))?;
        Ok(Parts { run, sources, suites })
    }

    pub(super) fn told(&self, parts: &Parts, place: i64) -> Result<(Arc<Told>, Repetition), StoreError> {
        let select = "SELECT suite, facts FROM cases WHERE run = ?1 AND place = ?2";
        let row = |row: &Row<'_>| -> rusqlite::Result<(i64, Vec<u8>)> { Ok((row.get(0)?, row.get(1)?)) };
        let found = self.prepare(select)?.query_row([parts.run, place], row);
        let (suite, facts) = found.map_err(|error| self.fail(&error))?;
        let suite = usize::try_from(suite - 1).ok().and_then(|number| parts.suites.get(number));
        let suite = suite.ok_or_else(|| self.broken("a suite is missing"))?;
        let case: KeptCase = self.unpacked(&facts)?;
        let repetition = case.repetition.unwrap_or(Repetition::Retried { retries: 0 });
        Ok((case.told(usize::try_from(place).unwrap_or(0), suite.clone()), repetition))
    }

    pub(super) fn attempt(
        &self,
        parts: &Parts,
        told: &Arc<Told>,
        place: i64,
        number: i64,
    ) -> Result<Attempt, StoreError> {
        let select = "SELECT facts, events FROM attempt WHERE run = ?1 AND place = ?2 AND number = ?3";
        let row = |row: &Row<'_>| -> rusqlite::Result<(Vec<u8>, Vec<u8>)> { Ok((row.get(0)?, row.get(1)?)) };
        let found = self.prepare(select)?.query_row([parts.run, place, number], row);
        let (facts, events) = found.map_err(|error| self.fail(&error))?;
        let kept: KeptAttempt = self.unpacked(&facts)?;
        let events: Vec<Record> = self.unpacked(&events)?;
        let number = usize::try_from(number).unwrap_or(0);
        let attempt = kept.attempt(told.clone(), number, events, &parts.sources);
        attempt.ok_or_else(|| self.broken("a source is missing"))
    }

    /// A case that has ended, with these attempts if they were read already.
    pub(super) fn ended_at(
        &self,
        parts: &Parts,
        place: i64,
        attempts: Option<Vec<Arc<Attempt>>>,
    ) -> Result<Outcome, StoreError> {
        let attempts = match attempts {
            Some(mut attempts) => {
                attempts.sort_by_key(|attempt| attempt.number);
                attempts
            }
            None => {
                let (told, _) = self.told(parts, place)?;
                let select = "SELECT number FROM attempt WHERE run = ?1 AND place = ?2 ORDER BY number";
                let numbers = self.numbers(select, [parts.run, place])?;
                let read =
                    numbers.into_iter().map(|number| self.attempt(parts, &told, place, number).map(Arc::new));
                read.collect::<Result<Vec<_>, _>>()?
            }
        };
        let first = attempts.first().ok_or_else(|| self.broken("an attempt is missing"))?;
        let select = "SELECT outcome FROM cases WHERE run = ?1 AND place = ?2";
        let found = self.prepare(select)?.query_row([parts.run, place], |row| row.get::<_, Vec<u8>>(0));
        let kept: KeptOutcome = self.unpacked(&found.map_err(|error| self.fail(&error))?)?;
        kept.outcome(first.selected.clone(), attempts).ok_or_else(|| self.broken("an attempt is missing"))
    }

    pub(super) fn numbers(
        &self,
        select: &str,
        params: impl rusqlite::Params,
    ) -> Result<Vec<i64>, StoreError> {
        let mut select = self.prepare(select)?;
        let rows = select.query_map(params, |row| row.get(0)).map_err(|error| self.fail(&error))?;
        rows.collect::<Result<_, _>>().map_err(|error| self.fail(&error))
    }

    pub(super) fn prepare(&self, select: &str) -> Result<rusqlite::CachedStatement<'_>, StoreError> {
        self.connection.prepare_cached(select).map_err(|error| self.fail(&error))
    }

    fn unpacked<T: DeserializeOwned>(&self, packed: &[u8]) -> Result<T, StoreError> {
        let text = unpack(packed).map_err(|error| self.broken(error))?;
        serde_json::from_slice(&text).map_err(|error| self.broken(error))
    }

    pub(super) fn fail(&self, error: &rusqlite::Error) -> StoreError {
        StoreError::of(&self.path, error)
    }

    fn broken(&self, words: impl Display) -> StoreError {
        StoreError::broken(&self.path, words)
    }
}

/// What a suite is called within its project, which may have been on another machine.
fn name_within(project: &Path, suite: &Path) -> String {
    match suite.strip_prefix(project) {
        Ok(within) => within.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/"),
        Err(_) => suite_name(project, suite),
    }
}

impl Iterator for Outcomes<'_> {
    type Item = Result<Outcome, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let select = "SELECT place FROM cases WHERE run = ?1 AND place > ?2 AND ended IS NOT NULL ORDER BY place LIMIT 1";
        let next = match self.store.numbers(select, [self.parts.run, self.last]) {
            Ok(next) => *next.first()?,
            Err(error) => {
                self.has_failed = true;
                return Some(Err(error));
            }
        };
        self.last = next;
        let outcome = self.store.ended_at(&self.parts, next, None);
        self.has_failed = outcome.is_err();
        Some(outcome)
    }
}
