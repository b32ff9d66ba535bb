//! A run whose conversations are decided again: what of it counts for the run that decides them.

use std::collections::BTreeSet;
use std::sync::Arc;

use hotseat::config::Project;
use hotseat::document::Diagnostic;
use hotseat::run::{Options, Plan, Recheck, Setting};
use hotseat::store::{About, KeptRun, Origin, RunHead};

use super::Rechecked;
use crate::exit::Exit;
use crate::input::Input;
use crate::kept::refuse;
use crate::world::World;

/// How many cases are named that are kept and no longer written.
const NAMED: usize = 10;

/// A run whose conversations are decided again.
pub struct Rechecking {
    head: RunHead,
    kept: Arc<KeptRun>,
    judge: bool,
}

/// Whether the cases of a run are written somewhere.
///
/// # Errors
/// That they are not.
pub fn is_written(head: &RunHead, input: Option<&Input>) -> Result<(), Diagnostic> {
    match input {
        Some(Input::Generated(..) | Input::Lines) => {
            let id = head.short();
            let message =
                format!("the cases of run {id} were made up or typed while it ran, and are nowhere written");
            Err(Diagnostic::new(message).help("name the suites by which its conversations are decided"))
        }
        Some(Input::File(_) | Input::ScriptTests(_) | Input::Message(_)) | None => Ok(()),
    }
}

impl Rechecking {
    /// Reads which cases the run has. What is wrong has been said when this fails.
    pub fn begin(rechecked: Rechecked, project: &Project, world: &World) -> Result<Rechecking, Exit> {
        let Rechecked { store, head, judge } = rechecked;
        let kept = KeptRun::of(store, &head, |suite| project.suite_name(suite));
        let kept = Arc::new(kept.map_err(|error| refuse(&error, world))?);
        Ok(Rechecking { head, kept, judge })
    }

    /// The cases of the run, by the names of their suites and by their ids.
    pub fn cases(&self) -> BTreeSet<(String, String)> {
        self.kept.cases().cloned().collect()
    }

    /// The cases of the run that the suites do not have any more: of all suites, or of these alone. What is wrong has been
    /// said when this fails.
    pub fn gone(
        &self,
        plan: &Plan,
        of_all: bool,
        project: &Project,
        world: &World,
    ) -> Result<Vec<Diagnostic>, Exit> {
        let suites: BTreeSet<String> = plan.suites().map(|suite| project.suite_name(&suite.path)).collect();
        let mut gone = self.cases();
        gone.retain(|(suite, _)| of_all || suites.contains(suite));
        for selected in plan.cases(project) {
            let selected = selected.map_err(|wrong| world.refuse(wrong))?;
            gone.remove(&(project.suite_name(&selected.suite.path), selected.case.id.clone()));
        }
        let run = self.head.short();
        let named = gone.iter().take(NAMED).map(|(suite, id)| {
            Diagnostic::new(format!("run {run} holds `{id}` of {suite}, which is no case any more"))
        });
        let more = gone.len().saturating_sub(NAMED);
        let more = (more > 0)
            .then(|| Diagnostic::new(format!("run {run} holds {more} more that are no cases any more")));
        Ok(named.chain(more).collect())
    }

    /// What the run holds.
    pub fn conversations(&self) -> Recheck {
        Recheck { conversations: self.kept.clone(), asks_judges: self.judge }
    }

    /// How it is carried out: as the run was, by the reliability that the project declares now.
    pub fn options(&self, project: &Project) -> Options {
        let kept = self.head.about.setting.choices.options;
        Options { fail_fast: false, reliability: project.reliability, ..kept }
    }

    /// What reports tell of it: the agents are those of the run.
    pub fn setting(&self, setting: Setting) -> Setting {
        setting.of_kept(self.head.short(), &self.head.about.setting)
    }

    /// What is kept of the run that decides.
    pub fn about(&self, project: &Project, plan: &Plan, setting: &Arc<Setting>) -> About {
        About {
            setting: setting.clone(),
            total: plan.selected,
            hotseat: env!("CARGO_PKG_VERSION").to_string(),
            project: project.root.clone(),
            cases: plan.digest.clone(),
            origin: Origin::Rechecked { of: self.head.id.clone() },
            of_all: plan.of_all,
            ..self.head.about.clone()
        }
    }
}
