//! Runs are joined into one, or written into a file of their own.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::StoreError;
use super::head::{About, Origin, RunHead, State};
use super::keeping::Keeping;
use super::prune::Limits;
use super::reading::Store;
use crate::run::{RunEvent, Setting, Summary};

/// How many events are written together.
const TOGETHER: usize = 256;
/// How many cases are named that are missing or there twice.
const NAMED: usize = 5;

/// Joins runs of parts of the same cases, and keeps what they come to together in a store. Each case has to be in one of
/// them, and in no other. Says the id of the new run.
///
/// # Errors
/// When they do not fit together, or cannot be read or written.
pub fn merge(runs: &[(Store, RunHead)], into: &Path, limits: Limits) -> Result<String, StoreError> {
    let Some(((_, first), others)) = runs.split_first() else {
        return Err(StoreError::NoSuchRun("there is no run to join".to_string()));
    };
    fit_together(first, others)?;
    let (mut places, mut summary) = (HashMap::new(), Summary::begin(first.about.setting.choices.options));
    for (store, head) in runs {
        for outcome in store.outcomes(head)? {
            let outcome = outcome?;
            let (index, id) = (outcome.selected.index, &outcome.selected.case.id);
            if let Some(other) = places.insert(index, head.short()) {
                let words = format!("case `{id}` is in both of the runs {other} and {}", head.short());
                return Err(StoreError::NoSuchRun(words));
            }
            summary.count(&outcome);
        }
    }
    let all = first.about.of_all;
    if places.len() < all {
        let (missing, parts) = (all - places.len(), missing_parts(runs));
        let words = format!("{missing} of {all} cases are in none of these runs{parts}");
        return Err(StoreError::NoSuchRun(words));
    }
    let came_to = || runs.iter().filter_map(|(_, head)| head.summary.as_ref());
    summary.started_at = runs.iter().map(|(_, head)| head.began).min().unwrap_or_default();
    summary.ended_at = came_to().map(|summary| summary.ended_at).max().unwrap_or_default();
    // They may have run side by side, and on the same machine one after the other: it took as long as the longest.
    summary.duration = came_to().map(|summary| summary.duration).max().unwrap_or_default();
    let about = About {
        setting: Arc::new(setting(runs, first)),
        total: all,
        command: Vec::new(),
        origin: Origin::Merged { of: runs.iter().map(|(_, head)| head.id.clone()).collect() },
        shard: None,
        ..first.about.clone()
    };
    let started = RunEvent::Started { total: all, parallel: about.parallel, at: summary.started_at };
    let mut keeping = Keeping::told(into, None, about, first.commit.clone(), limits)?;
    keeping.keep(&[started])?;
    for (store, head) in runs {
        write(store, head, &mut keeping, |event| {
            !matches!(event, RunEvent::Started { .. } | RunEvent::Ended(_))
        })?;
    }
    keeping.keep(&[RunEvent::Ended(summary)])?;
    Ok(keeping.id().to_string())
}

/// Writes a run into a file of its own, which is a store with nothing else in it.
///
/// # Errors
/// When the file is there already, or something cannot be read or written.
pub fn export(store: &Store, head: &RunHead, to: &Path) -> Result<(), StoreError> {
    if to.exists() {
        return Err(StoreError::NoSuchRun(format!("{} is there already", to.display())));
    }
    let (id, limits) = (Some(head.id.clone()), Limits { keep: None, max_size: None });
    let mut keeping = Keeping::told(to, id, head.about.clone(), head.commit.clone(), limits)?;
    write(store, head, &mut keeping, |_| true)
}

fn write(
    store: &Store,
    head: &RunHead,
    keeping: &mut Keeping,
    wanted: fn(&RunEvent) -> bool,
) -> Result<(), StoreError> {
    let (mut events, mut kept) = (Vec::new(), Ok(()));
    store.replay(head, &mut |event| {
        if wanted(&event) {
            events.push(event);
        }
        if events.len() >= TOGETHER && kept.is_ok() {
            kept = keeping.keep(&std::mem::take(&mut events));
        }
    })?;
    kept.and_then(|()| keeping.keep(&events))
}

/// Whether runs are of parts of the same cases, and have come to their ends.
fn fit_together(first: &RunHead, others: &[(Store, RunHead)]) -> Result<(), StoreError> {
    for head in others.iter().map(|(_, head)| head).chain([first]) {
        let (id, one) = (head.short(), first.short());
        let words = match (&head.about.origin, head.state) {
            _ if head.about.cases != first.about.cases || head.about.of_all != first.about.of_all => {
                format!(
                    "the runs {one} and {id} are not of the same cases: other suites, other patterns, or changed since"
                )
            }
            (_, State::Running) => format!("run {id} goes on"),
            (_, State::Killed | State::Interrupted) => {
                format!("run {id} did not come to its end: `hotseat resume {id}` runs what is left")
            }
            (Origin::Merged { .. } | Origin::Held | Origin::Rechecked { .. }, State::Ended) => continue,
        };
        return Err(StoreError::NoSuchRun(words));
    }
    Ok(())
}

/// Which parts are missing, where that says it all.
fn missing_parts(runs: &[(Store, RunHead)]) -> String {
    let parts: Vec<_> = runs.iter().filter_map(|(_, head)| head.about.shard).collect();
    let Some(of) = parts.first().map(|shard| shard.of).filter(|of| parts.iter().all(|part| part.of == *of))
    else {
        return String::new();
    };
    let missing = (1..=of).filter(|number| !parts.iter().any(|part| part.number == *number));
    let missing: Vec<String> = missing.map(|number| format!("{number}/{of}")).collect();
    match missing.len() {
        0 => String::new(),
        n if n > NAMED => format!(": {n} parts are missing"),
        _ => format!(": {} missing", missing.join(", ")),
    }
}

/// What the runs together were carried out with.
fn setting(runs: &[(Store, RunHead)], first: &RunHead) -> Setting {
    let mut setting = (*first.about.setting).clone();
    setting.selected = first.about.of_all;
    setting.choices.outputs = Vec::new();
    for (_, head) in runs {
        setting.modes.join(&head.about.setting.modes);
    }
    setting
}
