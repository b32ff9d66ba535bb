//! Answers of the API, read from the store. Each answer opens the store again, because the file may have been
//! replaced.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use hotseat_targets::recorder::wall_millis;
use hotseat_trace::Millis;
use regex_automata::meta::Regex;
use regex_automata::util::syntax;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::RunSelector;
use crate::compare::{ComparisonRules, DEFAULT_CONFIDENCE, compare, read_saved_run, write_json};
use crate::reporters::html::{CaseRecord, OverviewRow, RunRecord};
use crate::store::{
    self, CaseChange, LiveConversation, LiveRun, RunState, RunStore, RunStoreError, StoreStamp, StoredRun,
};

/// Maximum number of cases in one answer.
const MAX_CASES_PER_ANSWER: usize = 500;

/// Changes of a run after a position.
pub struct RunUpdate {
    store: RunStore,
    head: Option<StoredRun>,
    /// Stamp of the store from before the read.
    stamp: StoreStamp,
    /// Fingerprint of everything in the answer except the cases.
    pub seen: String,
    /// True if there are cases that the page does not have.
    pub has_cases: bool,
    /// The answer as JSON.
    pub json: Vec<u8>,
}

/// JSON form of the changes.
#[derive(Serialize)]
struct UpdateRecord<'a> {
    /// `None` until the run starts.
    run: Option<ShownRun<'a>>,
    /// Cases that have started or ended, in event order; a repeated case replaces its earlier row.
    rows: Vec<Box<RawValue>>,
    /// Position from which the next request continues.
    position: i64,
    /// True if more changes are available now.
    more: bool,
    seen: &'a str,
    /// Id of the run that started last.
    newest: Option<&'a str>,
    /// Link that opens a file in an editor, if the server was started with one.
    #[serde(skip_serializing_if = "Option::is_none")]
    editor: Option<&'a str>,
}

/// The displayed run.
#[derive(Serialize)]
struct ShownRun<'a> {
    kept: store::StoredRunRecord<'a>,
    ended: Option<Millis>,
    /// Folder that the names of files are relative to.
    folder: &'a Path,
    #[serde(flatten)]
    told: RunRecord<'a>,
}

/// List of saved runs.
#[derive(Serialize)]
struct RunList<'a> {
    runs: Vec<store::StoredRunRecord<'a>>,
    /// True if there are more runs.
    more: bool,
}

/// Running conversations.
#[derive(Serialize)]
struct RunningList<'a> {
    /// Number of all running conversations.
    total: usize,
    conversations: Vec<RunningRecord<'a>>,
}

/// Running conversation.
#[derive(Serialize)]
struct RunningRecord<'a> {
    /// Time since its start. The clock of the browser may differ from that of this machine.
    elapsed_ms: Millis,
    #[serde(flatten)]
    conversation: &'a LiveConversation,
}

/// Cases that contain the search text, up to a position of the run.
#[derive(Serialize)]
struct SearchResult {
    found: Vec<usize>,
    position: i64,
}

/// Reads the changes of a run after a position.
pub fn read_update(
    path: &Path,
    meant: &RunSelector,
    after: i64,
    editor: Option<&str>,
) -> Result<RunUpdate, RunStoreError> {
    let store = RunStore::open(path)?;
    let stamp = store.stamp()?;
    let head = find_run(&store, meant)?;
    let newest = store.newest_id()?;
    let mut rows = Vec::new();
    let mut reached = store::ChangeCursor { position: after, more: false };
    if let Some(head) = &head {
        let setting = &head.metadata.setting;
        reached = store.changes(head, after, MAX_CASES_PER_ANSWER, &mut |change| {
            rows.extend(match &change {
                CaseChange::Started { case, attempts } => {
                    to_raw_value(&OverviewRow::started(case, *attempts, setting))
                }
                CaseChange::Ended(outcome) => to_raw_value(&OverviewRow::new(outcome, setting)),
            });
        })?;
    }
    let ended = head.as_ref().and_then(|head| head.summary.as_ref()).map(|summary| summary.ended_at);
    let state = head.as_ref().map_or("awaited", |head| head.state.name());
    let seen = format!("{state}-{}-{}", ended.unwrap_or_default(), newest.as_deref().unwrap_or_default());
    let run = head.as_ref().map(|head| ShownRun {
        kept: store::StoredRunRecord::new(head),
        ended,
        folder: &head.metadata.folder,
        told: run_record(head),
    });
    let has_cases = !rows.is_empty();
    let (position, more) = (reached.position, reached.more);
    let newest = newest.as_deref();
    let json = to_json(&UpdateRecord { run, rows, position, more, seen: &seen, newest, editor });
    Ok(RunUpdate { store, head, stamp, seen, has_cases, json })
}

impl RunUpdate {
    /// Returns true if a new read could find changes.
    pub fn is_outdated(&self) -> bool {
        let was_killed = |head: &StoredRun| head.state == RunState::Running && !self.store.is_running(head);
        // Errors of the store are reported by the next read.
        self.store.stamp().map_or(true, |stamp| stamp != self.stamp)
            || self.head.as_ref().is_some_and(was_killed)
    }
}

fn run_record(head: &StoredRun) -> RunRecord<'_> {
    let setting = &head.metadata.setting;
    match &head.summary {
        Some(summary) => RunRecord::ended(summary, setting, ""),
        None => RunRecord::started(head.metadata.total, head.metadata.parallel, head.started_at, setting),
    }
}

/// Finds the selected run. Returns `None` if it has not started yet.
fn find_run(store: &RunStore, meant: &RunSelector) -> Result<Option<StoredRun>, RunStoreError> {
    match meant {
        RunSelector::Current => store.current_run().map(Some),
        RunSelector::Run(name) => store.find(name).map(Some),
        RunSelector::Awaited(id) => match store.find(id) {
            Err(RunStoreError::NoSuchRun(_)) => Ok(None),
            found => found.map(Some),
        },
    }
}

/// Returns up to `most` runs, newest first.
pub fn list_runs(path: &Path, most: usize) -> Result<Vec<u8>, RunStoreError> {
    let found = RunStore::open(path)?.runs(most.saturating_add(1))?;
    let runs = found.iter().take(most).map(store::StoredRunRecord::new).collect();
    Ok(to_json(&RunList { runs, more: found.len() > most }))
}

/// Compares two runs as `hotseat compare --json` does.
pub fn compare_runs(
    path: &Path,
    before: &str,
    after: &str,
    other_inputs: bool,
) -> Result<Vec<u8>, RunStoreError> {
    let store = RunStore::open(path)?;
    let read = |name: &str| read_saved_run(&store, &store.find(name)?);
    let (before, after) = (read(before)?, read(after)?);
    let rules = ComparisonRules { confidence: DEFAULT_CONFIDENCE, allow_other_inputs: other_inputs };
    let comparison = compare(&before, &after, rules);
    let mut json = Vec::new();
    write_json(&comparison, u8::from(comparison.is_worse()), &mut json)
        .map_err(|error| RunStoreError::from_io(path, &error))?;
    Ok(json)
}

/// Returns the running conversations of a run: of one case with their turns, or of all cases without them.
pub fn read_running(path: &Path, run: &str, case: Option<usize>) -> Result<Vec<u8>, RunStoreError> {
    let store = RunStore::open(path)?;
    let head = store.find(run)?;
    let LiveRun { total, mut conversations } = store.running_conversations(&head)?;
    match case {
        Some(index) => conversations.retain(|one| one.index == index),
        None => conversations.iter_mut().for_each(|one| one.turns.clear()),
    }
    let now = wall_millis();
    let conversations = conversations.iter().map(|conversation| RunningRecord {
        elapsed_ms: (now - conversation.started_at).max(0),
        conversation,
    });
    Ok(to_json(&RunningList { total, conversations: conversations.collect() }))
}

/// Returns all data of a finished case.
pub fn read_case(path: &Path, run: &str, index: usize) -> Result<Vec<u8>, RunStoreError> {
    let store = RunStore::open(path)?;
    let head = store.find(run)?;
    match store.outcome_at(&head, index)? {
        Some(outcome) => Ok(to_json(&CaseRecord::new(&outcome, &head.metadata.setting))),
        None => {
            let words = format!("run {} has no finished case number {index}", head.short_id());
            Err(RunStoreError::NoSuchRun(words))
        }
    }
}

/// Searches the cases that ended after a position for a text. Stops early if the request is cancelled.
pub fn search_cases(
    path: &Path,
    run: &str,
    words: &str,
    after: i64,
    cancelled: &AtomicBool,
) -> Result<Vec<u8>, RunStoreError> {
    let store = RunStore::open(path)?;
    let head = store.find(run)?;
    // The text is searched in its JSON form.
    let written = serde_json::to_string(words).unwrap_or_default();
    let pattern = regex_syntax::escape(written.trim_start_matches('"').trim_end_matches('"'));
    let pattern = Regex::builder().syntax(syntax::Config::new().case_insensitive(true)).build(&pattern);
    let (mut found, mut position) = (Vec::new(), after);
    while !cancelled.load(Ordering::Relaxed) {
        let reached = store.changes(&head, position, MAX_CASES_PER_ANSWER, &mut |change| {
            let CaseChange::Ended(outcome) = change else { return };
            let whole = to_json(&CaseRecord::new(&outcome, &head.metadata.setting));
            if pattern.as_ref().is_ok_and(|pattern| pattern.is_match(&whole)) {
                found.push(outcome.case_ref.index);
            }
        })?;
        position = reached.position;
        if !reached.more {
            break;
        }
    }
    Ok(to_json(&SearchResult { found, position }))
}

/// Serialises a record; records have no keys or values that JSON cannot represent.
fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}
