//! Whether and how a run is kept.

use std::collections::BTreeSet;
use std::sync::Arc;

use hotseat::config::Project;
use hotseat::document::Diagnostic;
use hotseat::run::{Earlier, Plan, Setting};
use hotseat::store::{About, Keeping, Origin, Store, StoreError, store_of};

use super::Resumed;
use crate::args::TestArgs;
use crate::exit::Exit;
use crate::input::Input;
use crate::kept::{limits, refuse};
use crate::view::Viewing;
use crate::world::World;

/// Whether the run is to be kept.
pub fn wanted(args: &TestArgs, project: &Project) -> bool {
    project.store.on && !args.no_store
}

/// Whether the page of the run can be served: it shows what is kept.
///
/// # Errors
/// That nothing will be.
pub fn can_be_viewed(args: &TestArgs, project: &Project) -> Result<(), Diagnostic> {
    if !args.view || wanted(args, project) {
        return Ok(());
    }
    let what = if args.no_store { "--no-store" } else { "`store: false` in the project file" };
    let message = format!("--view shows what is kept of a run, and {what} keeps nothing");
    Err(Diagnostic::new(message).help("`-o report.html` writes the page when the run is over"))
}

/// Serves the page of a run that is to be kept. What is wrong has been said when this fails.
pub fn view(keeping: Option<&Keeping>, project: &Project, world: &World) -> Result<Option<Viewing>, Exit> {
    // Why it is not kept is said by whoever was to keep it.
    let Some(keeping) = keeping else { return Ok(None) };
    let viewing = Viewing::begin(store_of(&project.root), keeping.id(), world).map_err(|error| {
        world.complain_of(format!("--view: the page cannot be served: {error}"));
        Exit::Broken
    })?;
    world.say(&format!("view: http://{}/", viewing.address()));
    Ok(Some(viewing))
}

/// The cases that failed in the last run that is kept, or in the one before a run that is gone on with, by the names of their suites and by their ids. What keeps them
/// from being known has been said when this fails.
pub fn last_failed(
    project: &Project,
    resumed: Option<&Resumed>,
    world: &World,
) -> Result<BTreeSet<(String, String)>, Exit> {
    let found = Store::open(&store_of(&project.root)).and_then(|store| {
        let head = store.last_of(None, resumed.map(|resumed| &resumed.head))?;
        let failed = store.failed(&head)?;
        Ok((head, failed))
    });
    let (head, failed) = found.map_err(|error| refuse(&error, world))?;
    if failed.is_empty() {
        world.complain_of(format!("nothing selected: nothing failed in the last run, {}", head.short()));
        return Err(Exit::NothingSelected);
    }
    Ok(failed)
}

/// What is kept of the run as a whole.
pub fn about(
    args: &TestArgs,
    project: &Project,
    plan: &Plan,
    setting: &Arc<Setting>,
    world: &World,
) -> About {
    let redactor = project.redactor();
    About {
        setting: setting.clone(),
        total: plan.selected,
        parallel: setting.choices.options.parallel,
        hotseat: env!("CARGO_PKG_VERSION").to_string(),
        folder: world.folder.clone(),
        project: project.root.clone(),
        command: world
            .arguments
            .iter()
            .flatten()
            .map(|argument| redactor.text(argument).into_owned())
            .collect(),
        cases: plan.digest.clone(),
        origin: Origin::Held,
        shard: args.shard,
        of_all: plan.of_all,
        only_failed: args.last_failed,
        program: None,
    }
}

/// Prepares to keep the run. That it cannot be kept is a warning and nothing more.
pub fn begin(
    args: &TestArgs,
    project: &Project,
    about: About,
    warnings: &mut Vec<String>,
) -> Option<Keeping> {
    if !wanted(args, project) {
        return None;
    }
    let keeping = Keeping::new(&store_of(&project.root), about, limits(&project.store));
    let keeping = keeping.map(|keeping| keeping.hiding(project.redactor()));
    keeping.map_err(|error| warnings.push(format!("this run is not kept: {error}"))).ok()
}

/// Whether a run that was broken off has other cases now.
///
/// # Errors
/// That it has.
pub fn has_changed(resumed: &Resumed, plan: &Plan, input: Option<&Input>) -> Result<(), Diagnostic> {
    let id = resumed.head.short();
    if matches!(input, Some(Input::Generated(..) | Input::Lines)) {
        let message =
            format!("the cases of run {id} were made up or typed while it ran, and are nowhere written");
        return Err(Diagnostic::new(message));
    }
    if plan.digest != resumed.head.about.cases {
        let message = format!("the suites have changed since run {id} began, so it cannot be gone on with");
        return Err(Diagnostic::new(message).help("run them anew with `hotseat test`"));
    }
    Ok(())
}

/// Prepares to keep what is left of a run.
pub fn resume(resumed: &Resumed, project: &Project) -> Result<Keeping, StoreError> {
    let keeping = Keeping::resume(&resumed.path, resumed.head.clone(), limits(&project.store))?;
    Ok(keeping.hiding(project.redactor()))
}

/// What of a run had ended before it was broken off.
pub fn earlier(resumed: &Resumed) -> Result<Earlier<'_>, StoreError> {
    let Resumed { store, head, .. } = resumed;
    let outcomes = store.outcomes(head)?;
    Ok(Earlier {
        ended: store.ended(head)?,
        outcomes: Box::new(
            outcomes.map(|outcome| outcome.map_err(|error| Diagnostic::new(error.to_string()))),
        ),
        began: head.began,
        took: head.summary.as_ref().map(|summary| summary.duration),
    })
}
