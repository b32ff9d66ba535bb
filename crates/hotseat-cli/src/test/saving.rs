//! Saving a run to the run store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hotseat_document::Diagnostic;
use hotseat_engine::config::Project;
use hotseat_engine::run::{ResumeState, RunPlan, RunSettings};
use hotseat_report::store::{RunMetadata, RunStore, RunStoreError, RunWriter, store_path};

use super::ResumedRun;
use crate::args::TestArgs;
use crate::context::CliContext;
use crate::exit::ExitStatus;
use crate::input::TestInput;
use crate::store_location::prune_limits;
use crate::view::ViewServerThread;

/// Returns true if the run is to be saved.
pub fn should_save(args: &TestArgs, project: &Project) -> bool {
    project.store.enabled && !args.no_store
}

/// Checks that the page of the run can be served: the page reads the saved run. Fails if runs are not stored.
pub fn check_viewable(args: &TestArgs, project: &Project) -> Result<(), Diagnostic> {
    if !args.view || should_save(args, project) {
        return Ok(());
    }
    let what = if args.no_store { "--no-store" } else { "`store: false` in the project file" };
    let message = format!("--view needs a saved run, and {what} disables saving");
    Err(Diagnostic::new(message).help("use `-o report.html` to write the page after the run"))
}

/// Serves the page of a run that will be saved. Errors have been printed.
pub fn serve_page(
    keeping: Option<&RunWriter>,
    project: &Project,
    context: &CliContext,
) -> Result<Option<ViewServerThread>, ExitStatus> {
    let Some(keeping) = keeping else {
        context.print_warning("--view: there is no page, because this run is not saved");
        return Ok(None);
    };
    let viewing =
        ViewServerThread::start(store_path(&project.root), keeping.id(), context).map_err(|error| {
            context.fail(ExitStatus::RunError, format!("--view: cannot serve the page: {error}"))
        })?;
    context.print_message(&format!("view: http://{}/", viewing.address()));
    Ok(Some(viewing))
}

/// Returns the metadata to save with the run.
pub fn run_metadata(
    args: &TestArgs,
    project: &Project,
    plan: &RunPlan,
    setting: &Arc<RunSettings>,
    context: &CliContext,
) -> RunMetadata {
    let about = RunMetadata { shard: args.select.shard, ..RunMetadata::new(project, plan, setting) };
    let command: Vec<String> = context.arguments.iter().flatten().cloned().collect();
    about.started_by(&command, &context.folder, project.redactor())
}

/// Prepares to save the run. A failure is only a warning.
pub fn start_saving(
    args: &TestArgs,
    project: &Project,
    about: RunMetadata,
    warnings: &mut Vec<String>,
) -> Option<RunWriter> {
    if !should_save(args, project) {
        return None;
    }
    let keeping = RunWriter::new(&store_path(&project.root), about, prune_limits(&project.store));
    let keeping = keeping.map(|keeping| keeping.with_redactor(project.redactor()));
    keeping.map_err(|error| warnings.push(format!("this run is not saved: {error}"))).ok()
}

/// True if cases of a saved run have not ended, or its sweep of faults was interrupted.
pub fn has_remaining_cases(id: &str, project: &Project, sweeps: bool) -> bool {
    let head = RunStore::open(&store_path(&project.root)).and_then(|store| store.find(id));
    head.is_ok_and(|head| {
        let is_interrupted = head.summary.as_ref().is_some_and(|summary| summary.interrupted);
        head.unfinished() > 0 || (sweeps && is_interrupted)
    })
}

/// Checks that an interrupted run still has the same cases. Fails if the suites changed since the run, or its
/// cases were generated or typed.
pub fn check_unchanged(
    resumed: &ResumedRun,
    plan: &RunPlan,
    input: Option<&TestInput>,
) -> Result<(), Diagnostic> {
    let id = resumed.head.short_id();
    if input.is_some_and(TestInput::makes_cases) {
        let message = format!(
            "the cases of run {id} were generated or typed during the run and are not saved in a suite"
        );
        return Err(Diagnostic::new(message));
    }
    if plan.digest != resumed.head.metadata.cases {
        let changed = changed_suites(&resumed.head.metadata.suites, &plan.suite_digests);
        let message = format!(
            "{changed} changed since run {id} started, or functions or judges in use there, so it cannot be resumed"
        );
        return Err(Diagnostic::new(message).help("start a new run with `hotseat test`"));
    }
    Ok(())
}

/// Maximum number of changed suites that are listed.
const MAX_LISTED_SUITES: usize = 5;

/// Names the suites that differ, are new or are gone, with their verb: `the suites a.test.yaml and b.test.yaml have`.
fn changed_suites(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> String {
    let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let changed: Vec<&str> =
        names.into_iter().filter(|name| before.get(*name) != now.get(*name)).map(String::as_str).collect();
    let listed = changed[..changed.len().min(MAX_LISTED_SUITES)].join(", ");
    match changed.len() {
        // An earlier version saved no digests of suites.
        _ if before.is_empty() => "the suites have".to_string(),
        0 => "the order of the suites has".to_string(),
        1 => format!("the suite {listed} has"),
        2..=MAX_LISTED_SUITES => format!("the suites {listed} have"),
        all => format!("the suites {listed} and {} more have", all - MAX_LISTED_SUITES),
    }
}

/// Prepares to save the remaining cases of an interrupted run. Returns also what it had completed.
pub fn resume_saving(
    resumed: ResumedRun,
    project: &Project,
) -> Result<(RunWriter, ResumeState), RunStoreError> {
    let ResumedRun { path, store, head, .. } = resumed;
    let limits = prune_limits(&project.store);
    let (writer, attempts) =
        RunWriter::resume(&path, head.clone(), limits, |head| store.kept_attempts(head))?;
    let finished = store.finished_cases(&head)?;
    let outcomes = store.into_outcomes(&head)?;
    let earlier = ResumeState {
        finished,
        attempts,
        outcomes: Box::new(
            outcomes.map(|outcome| outcome.map_err(|error| Diagnostic::new(error.to_string()))),
        ),
        started_at: head.started_at,
        duration: head.summary.as_ref().map(|summary| summary.duration),
    };
    Ok((writer.with_redactor(project.redactor()), earlier))
}
