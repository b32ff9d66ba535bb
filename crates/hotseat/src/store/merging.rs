//! Runs are joined into one, or written into a file of their own.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::StoreError;
use super::head::{About, Origin, RunHead, State};
use super::keeping::Keeping;
use super::prune::Limits;
use super::reading::Store;
use crate::run::{Options, RunEvent, Setting, Summary};

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
        only_failed: false,
        ..first.about.clone()
    };
    let project = about.project.clone();
    let started = RunEvent::Started { total: all, parallel: about.parallel, at: summary.started_at };
    let mut keeping = Keeping::told(into, None, about, first.commit.clone(), limits)?;
    keeping.keep(&[started])?;
    for (store, head) in runs {
        write(store, head, &project, &mut keeping, |event| {
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
    // The file has its name only once it is whole.
    let fail = |error: std::io::Error| StoreError::io(to, &error);
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(fail)?;
    let beside = tempfile::Builder::new().prefix(".export-").tempdir_in(folder).map_err(fail)?;
    let unfinished = beside.path().join("run.db");
    let (id, limits) = (Some(head.id.clone()), Limits { keep: None, max_size: None });
    let mut keeping = Keeping::told(&unfinished, id, head.about.clone(), head.commit.clone(), limits)?;
    write(store, head, &head.about.project, &mut keeping, |_| true)?;
    keeping.close_file()?;
    std::fs::rename(&unfinished, to).map_err(fail)
}

fn write(
    store: &Store,
    head: &RunHead,
    project: &Path,
    keeping: &mut Keeping,
    wanted: fn(&RunEvent) -> bool,
) -> Result<(), StoreError> {
    let (mut events, mut kept) = (Vec::new(), Ok(()));
    store.replay_in(head, project, &mut |event| {
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
            _ if tested(head) != tested(first) => {
                format!(
                    "the runs {one} and {id} are not of the same agent: {} and {}",
                    names(first),
                    names(head)
                )
            }
            _ if options(head) != options(first) => {
                format!(
                    "the runs {one} and {id} were carried out with other options, such as --runs or --retries"
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

/// The agents that a run tests, as far as it does not matter on which machine.
fn tested(head: &RunHead) -> Vec<(&str, Option<&str>)> {
    head.about.setting.agents().map(|agent| (&*agent.id, agent.connector.as_deref())).collect()
}

fn names(head: &RunHead) -> String {
    let name = |(id, connector): (&str, Option<&str>)| match connector {
        Some(connector) => format!("{id} with {connector}"),
        None => id.to_string(),
    };
    tested(head).into_iter().map(name).collect::<Vec<_>>().join(", ")
}

/// What decides what cases come to. How many conversations are held at once does not, and machines differ in it.
fn options(head: &RunHead) -> Options {
    Options { parallel: 1, ..head.about.setting.choices.options }
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
