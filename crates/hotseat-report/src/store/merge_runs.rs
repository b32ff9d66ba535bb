//! Merges runs into one, and exports a run to a file.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use super::RunStoreError;
use super::prune::StoreLimits;
use super::run_store::RunStore;
use super::run_writer::RunWriter;
use super::stored_run::{RunMetadata, RunOrigin, RunState, StoredRun};
use hotseat_engine::run::{RunEvent, RunSettings, RunSummary, SweepReport, TestedAgent};

/// Number of events per transaction.
const EVENTS_PER_WRITE: usize = 256;
/// Maximum number of missing shards that an error names.
const MAX_NAMED: usize = 5;

/// Merges runs of shards of the same cases and saves the result in a store. Each case must be in exactly one
/// of the runs. Returns the id of the new run. Fails if the runs do not fit together, or cannot be read or
/// written.
pub fn merge(
    runs: &[(RunStore, StoredRun)],
    into: &Path,
    limits: StoreLimits,
) -> Result<String, RunStoreError> {
    let Some(((_, first), others)) = runs.split_first() else {
        return Err(RunStoreError::NoSuchRun("there are no runs to merge".to_string()));
    };
    check_distinct(runs)?;
    check_compatible(first, others)?;
    let (mut places, mut summary) = (HashMap::new(), RunSummary::new(first.metadata.setting.choices.options));
    for (store, head) in runs {
        for outcome in store.outcomes(head)? {
            let outcome = outcome?;
            let (index, id) = (outcome.case_ref.index, &outcome.case_ref.case.id);
            if let Some(other) = places.insert(index, head.short_id()) {
                let words = format!("case `{id}` is in both runs {other} and {}", head.short_id());
                return Err(RunStoreError::NoSuchRun(words));
            }
            summary.count_outcome(&outcome);
        }
    }
    if let Some(sweep) = SweepReport::joined(sweeps(runs)) {
        summary.add_sweep(Arc::new(sweep), true);
    }
    let all = first.metadata.of_all;
    if places.len() < all {
        let (missing, parts) = (all - places.len(), missing_parts(runs));
        let words = format!("{missing} of {all} cases are in none of these runs{parts}");
        return Err(RunStoreError::NoSuchRun(words));
    }
    let came_to = || runs.iter().filter_map(|(_, head)| head.summary.as_ref());
    summary.started_at = runs.iter().map(|(_, head)| head.started_at).min().unwrap_or_default();
    summary.ended_at = came_to().map(|summary| summary.ended_at).max().unwrap_or_default();
    // The runs may have been parallel or on one machine in sequence; the duration is that of the longest run.
    summary.duration = came_to().map(|summary| summary.duration).max().unwrap_or_default();
    let about = RunMetadata {
        setting: Arc::new(merged_setting(runs, first)),
        total: all,
        command: Vec::new(),
        origin: RunOrigin::Merged { of: runs.iter().map(|(_, head)| head.id.clone()).collect() },
        shard: None,
        ..first.metadata.clone()
    };
    let project = about.project.clone();
    let started = RunEvent::Started { total: all, parallel: about.parallel, at: summary.started_at };
    let mut keeping = RunWriter::for_replay(into, None, about, first.commit.clone(), limits)?;
    keeping.write_events(&[started])?;
    for (store, head) in runs {
        copy_events(store, head, &project, &mut keeping, |event| {
            !matches!(
                event,
                RunEvent::Started { .. }
                    | RunEvent::SweepStarted { .. }
                    | RunEvent::SweepEnded(_)
                    | RunEvent::Ended(_)
            )
        })?;
    }
    keeping.write_events(&[RunEvent::Ended(Box::new(summary))])?;
    Ok(keeping.id().to_string())
}

/// Exports a run to a new store file that contains only this run. Fails if the file exists, or something
/// cannot be read or written.
pub fn export(store: &RunStore, head: &StoredRun, to: &Path) -> Result<(), RunStoreError> {
    if to.exists() {
        return Err(RunStoreError::NoSuchRun(format!("{} already exists", to.display())));
    }
    // The file gets its name only when it is complete.
    let fail = |error: std::io::Error| RunStoreError::from_io(to, &error);
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(fail)?;
    let beside = tempfile::Builder::new().prefix(".export-").tempdir_in(folder).map_err(fail)?;
    let unfinished = beside.path().join("run.db");
    let (id, limits) = (Some(head.id.clone()), StoreLimits { max_age: None, max_size: None });
    let mut keeping =
        RunWriter::for_replay(&unfinished, id, head.metadata.clone(), head.commit.clone(), limits)?;
    copy_events(store, head, &head.metadata.project, &mut keeping, |_| true)?;
    keeping.close_file()?;
    std::fs::rename(&unfinished, to).map_err(fail)
}

fn copy_events(
    store: &RunStore,
    head: &StoredRun,
    project: &Path,
    keeping: &mut RunWriter,
    wanted: fn(&RunEvent) -> bool,
) -> Result<(), RunStoreError> {
    let (mut events, mut kept) = (Vec::new(), Ok(()));
    store.replay_in(head, project, &mut |event| {
        if wanted(&event) {
            events.push(event);
        }
        if events.len() >= EVENTS_PER_WRITE && kept.is_ok() {
            kept = keeping.write_events(&std::mem::take(&mut events));
        }
    })?;
    kept.and_then(|()| keeping.write_events(&events))
}

/// Checks that no run is named twice: by its id, and by a file that it was exported to.
fn check_distinct(runs: &[(RunStore, StoredRun)]) -> Result<(), RunStoreError> {
    let mut known = HashSet::new();
    match runs.iter().find(|(_, head)| !known.insert(&head.id)) {
        None => Ok(()),
        Some((_, twice)) => Err(RunStoreError::NoSuchRun(format!(
            "run {} is named twice: name the run of each shard once",
            twice.short_id()
        ))),
    }
}

/// Checks that runs are complete and are shards of the same cases.
fn check_compatible(first: &StoredRun, others: &[(RunStore, StoredRun)]) -> Result<(), RunStoreError> {
    for head in others.iter().map(|(_, head)| head).chain([first]) {
        let (id, one) = (head.short_id(), first.short_id());
        let words = match (&head.metadata.origin, head.state) {
            // Assertions of agents are a part of their cases.
            _ if tested_agents(head) != tested_agents(first) => {
                format!("the runs {one} and {id} did not test the same agent: {}", agent_names(first, head))
            }
            _ if head.metadata.cases != first.metadata.cases
                || head.metadata.of_all != first.metadata.of_all =>
            {
                format!(
                    "the runs {one} and {id} do not have the same cases: their suites or patterns differ, or the suites have changed"
                )
            }
            _ if !head.metadata.setting.has_context_of(&first.metadata.setting) => {
                format!(
                    "the runs {one} and {id} used different context files (`--ctx`), or different `limits` of the project"
                )
            }
            _ if let differing = head.metadata.setting.differing_options(&first.metadata.setting)
                && !differing.is_empty() =>
            {
                format!("the runs {one} and {id} used different options: {}", differing.join(", "))
            }
            (_, RunState::Running) => format!("run {id} is still running"),
            _ if sweeps_faults(head) != sweeps_faults(first) => {
                format!("of the runs {one} and {id}, only one has a sweep of faults")
            }
            (_, RunState::Killed | RunState::Interrupted) if broken(head).is_some() => {
                format!("run {id} could not be carried out: {}", broken(head).unwrap_or_default())
            }
            (_, RunState::Killed | RunState::Interrupted | RunState::Incomplete) => {
                format!("run {id} is incomplete: `hotseat resume {id}` runs the remaining cases")
            }
            (RunOrigin::Merged { .. } | RunOrigin::Held | RunOrigin::Rechecked { .. }, RunState::Ended) => {
                continue;
            }
        };
        return Err(RunStoreError::NoSuchRun(words));
    }
    Ok(())
}

fn broken(head: &StoredRun) -> Option<&str> {
    head.summary.as_ref()?.broken.as_deref()
}

/// Returns the sweeps of faults of all runs.
fn sweeps(runs: &[(RunStore, StoredRun)]) -> impl Iterator<Item = &SweepReport> {
    runs.iter().filter_map(|(_, head)| head.summary.as_ref()?.sweep.as_deref())
}

/// True if a run that has ended swept faults.
fn sweeps_faults(head: &StoredRun) -> bool {
    head.summary.as_ref().is_some_and(|summary| summary.sweep.is_some())
}

/// Returns the tested agents, without members that depend on the machine.
fn tested_agents(head: &StoredRun) -> Vec<(&str, Option<&str>, Option<String>)> {
    let agents = head.metadata.setting.agents();
    agents
        .map(|agent| {
            let address = agent.stable_address();
            // An agent without a name has its address as its id.
            let id =
                if agent.path.as_ref() == Some(&agent.id) && address.is_some() { "" } else { &*agent.id };
            (id, agent.connector.as_deref(), address)
        })
        .collect()
}

/// Names the tested agents of two runs; with their addresses if only these differ.
fn agent_names(first: &StoredRun, other: &StoredRun) -> String {
    let names = |head: &StoredRun, with_address: bool| {
        let name = |agent: &TestedAgent| {
            let connector = agent.connector.as_ref().map(|connector| format!(" with {connector}"));
            let address =
                agent.path.as_ref().filter(|_| with_address).map(|address| format!(" at {address}"));
            format!("{}{}{}", agent.id, connector.unwrap_or_default(), address.unwrap_or_default())
        };
        head.metadata.setting.agents().map(name).collect::<Vec<_>>().join(", ")
    };
    let with_address = names(first, false) == names(other, false);
    format!("{} and {}", names(first, with_address), names(other, with_address))
}

/// Names the missing shards, if all runs are shards of one division.
fn missing_parts(runs: &[(RunStore, StoredRun)]) -> String {
    let parts: Vec<_> = runs.iter().filter_map(|(_, head)| head.metadata.shard).collect();
    let Some(of) = parts.first().map(|shard| shard.of).filter(|of| parts.iter().all(|part| part.of == *of))
    else {
        return String::new();
    };
    let missing = (1..=of).filter(|number| !parts.iter().any(|part| part.number == *number));
    let missing: Vec<String> = missing.map(|number| format!("{number}/{of}")).collect();
    match missing.len() {
        0 => String::new(),
        n if n > MAX_NAMED => format!(": {n} parts are missing"),
        _ => format!(": {} missing", missing.join(", ")),
    }
}

fn merged_setting(runs: &[(RunStore, StoredRun)], first: &StoredRun) -> RunSettings {
    let mut setting = (*first.metadata.setting).clone();
    setting.selected = first.metadata.of_all;
    setting.choices.outputs = Vec::new();
    for (_, head) in runs {
        setting.modes.merge(&head.metadata.setting.modes);
    }
    setting
}
