//! What a page asks for, read from the store. Each answer opens the store anew: it may be another file than before.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use hotseat_trace::Millis;
use regex_automata::meta::Regex;
use regex_automata::util::syntax;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::Meant;
use crate::report::html::{CaseRecord, Row, RunRecord};
use crate::store::{self, Change, RunHead, Stamp, State, Store, StoreError};

/// How many cases are told of at once.
const AT_ONCE: usize = 500;

/// What is new in a run.
pub struct Look {
    store: Store,
    head: Option<RunHead>,
    /// What the store looked like before anything was read.
    stamp: Stamp,
    /// Stands for all that is told but the cases.
    pub seen: String,
    /// Whether there are cases that the page does not know.
    pub has_cases: bool,
    /// All of it as JSON.
    pub json: Vec<u8>,
}

/// The same as it is told.
#[derive(Serialize)]
struct News<'a> {
    /// None as long as the run has not begun.
    run: Option<Shown<'a>>,
    /// Cases that have begun or ended, in the order of that; a case that is told again is another one now.
    rows: Vec<Box<RawValue>>,
    /// Behind which place there will be more.
    position: i64,
    /// Whether there is more already.
    more: bool,
    seen: &'a str,
    /// The run that was begun last.
    newest: Option<&'a str>,
}

/// A run that is shown.
#[derive(Serialize)]
struct Shown<'a> {
    kept: store::RunRecord<'a>,
    ended: Option<Millis>,
    #[serde(flatten)]
    told: RunRecord<'a>,
}

/// Runs that are kept.
#[derive(Serialize)]
struct Runs<'a> {
    runs: Vec<store::RunRecord<'a>>,
    /// Whether there are more.
    more: bool,
}

/// Cases in which words were found, up to a place of the run.
#[derive(Serialize)]
struct Found {
    found: Vec<usize>,
    position: i64,
}

/// What is new in a run behind a place of it.
pub fn look(path: &Path, meant: &Meant, after: i64) -> Result<Look, StoreError> {
    let store = Store::open(path)?;
    let stamp = store.stamp()?;
    let head = find(&store, meant)?;
    let newest = store.newest()?;
    let mut rows = Vec::new();
    let mut reached = store::Reached { position: after, more: false };
    if let Some(head) = &head {
        let setting = &head.about.setting;
        reached = store.changes(head, after, AT_ONCE, &mut |change| {
            rows.extend(match &change {
                Change::Begun { case, attempts } => to_raw_value(&Row::begun(case, *attempts, setting)),
                Change::Ended(outcome) => to_raw_value(&Row::of(outcome, setting)),
            });
        })?;
    }
    let ended = head.as_ref().and_then(|head| head.summary.as_ref()).map(|summary| summary.ended_at);
    let state = head.as_ref().map_or("awaited", |head| head.state.name());
    let seen = format!("{state}-{}-{}", ended.unwrap_or_default(), newest.as_deref().unwrap_or_default());
    let run = head.as_ref().map(|head| Shown { kept: head.record(), ended, told: told(head) });
    let has_cases = !rows.is_empty();
    let (position, more) = (reached.position, reached.more);
    let json = json(&News { run, rows, position, more, seen: &seen, newest: newest.as_deref() });
    Ok(Look { store, head, stamp, seen, has_cases, json })
}

impl Look {
    /// Whether another look could find something new.
    pub fn is_old(&self) -> bool {
        let was_killed = |head: &RunHead| head.state == State::Running && !self.store.goes_on(head);
        // What is wrong with the store is told by whoever looks.
        self.store.stamp().map_or(true, |stamp| stamp != self.stamp)
            || self.head.as_ref().is_some_and(was_killed)
    }
}

fn told(head: &RunHead) -> RunRecord<'_> {
    let setting = &head.about.setting;
    match &head.summary {
        Some(summary) => RunRecord::ended(summary, setting, ""),
        None => RunRecord::begun(head.about.total, head.about.parallel, head.began, setting),
    }
}

/// The run that is meant; none if it has not begun yet.
fn find(store: &Store, meant: &Meant) -> Result<Option<RunHead>, StoreError> {
    match meant {
        Meant::Current => store.current().map(Some),
        Meant::Run(name) => store.find(name).map(Some),
        Meant::Awaited(id) => match store.find(id) {
            Err(StoreError::NoSuchRun(_)) => Ok(None),
            found => found.map(Some),
        },
    }
}

/// The last runs, at most so many.
pub fn runs(path: &Path, most: usize) -> Result<Vec<u8>, StoreError> {
    let found = Store::open(path)?.runs(most.saturating_add(1))?;
    let runs = found.iter().take(most).map(RunHead::record).collect();
    Ok(json(&Runs { runs, more: found.len() > most }))
}

/// All that is known of a case that has ended.
pub fn case(path: &Path, run: &str, index: usize) -> Result<Vec<u8>, StoreError> {
    let store = Store::open(path)?;
    let head = store.find(run)?;
    match store.outcome_at(&head, index)? {
        Some(outcome) => Ok(json(&CaseRecord::of(&outcome, &head.about.setting))),
        None => {
            let words = format!("no case of run {} that is number {index} has ended", head.short());
            Err(StoreError::NoSuchRun(words))
        }
    }
}

/// The cases that ended behind a place of the run, and in which these words stand anywhere. Ends early when nobody wants
/// to know any more.
pub fn search(
    path: &Path,
    run: &str,
    words: &str,
    after: i64,
    given_up: &AtomicBool,
) -> Result<Vec<u8>, StoreError> {
    let store = Store::open(path)?;
    let head = store.find(run)?;
    // Words are looked for as they stand in JSON.
    let written = serde_json::to_string(words).unwrap_or_default();
    let pattern = regex_syntax::escape(written.trim_start_matches('"').trim_end_matches('"'));
    let pattern = Regex::builder().syntax(syntax::Config::new().case_insensitive(true)).build(&pattern);
    let (mut found, mut position) = (Vec::new(), after);
    while !given_up.load(Ordering::Relaxed) {
        let reached = store.changes(&head, position, AT_ONCE, &mut |change| {
            let Change::Ended(outcome) = change else { return };
            let whole = json(&CaseRecord::of(&outcome, &head.about.setting));
            if pattern.as_ref().is_ok_and(|pattern| pattern.is_match(&whole)) {
                found.push(outcome.selected.index);
            }
        })?;
        position = reached.position;
        if !reached.more {
            break;
        }
    }
    Ok(json(&Found { found, position }))
}

/// What is written here has no keys that are no texts, and nothing else that JSON does not have.
fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}
