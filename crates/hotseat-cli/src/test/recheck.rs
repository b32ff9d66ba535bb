//! A recheck: the saved run and the settings taken from it.

use std::collections::BTreeSet;
use std::sync::Arc;

use hotseat_document::Diagnostic;
use hotseat_engine::config::Project;
use hotseat_engine::run::{ExecutionOptions, RecheckSource, RerunCommands, RunPlan, RunSettings};
use hotseat_report::reporters::format_count;
use hotseat_report::store::{RunMetadata, RunOrigin, RunStore, SavedRunConversations, StoredRun};

use crate::args::SelectionArgs;
use crate::context::CliContext;
use crate::exit::ExitStatus;
use crate::input::TestInput;
use crate::selection::{CaseRestriction, CaseSet};
use crate::store_location::report_store_error;

/// Number of missing cases that are listed by name.
const MAX_LISTED_CASES: usize = 10;

/// A run to re-evaluate.
pub struct RecheckRequest {
    pub store: RunStore,
    pub head: StoredRun,
    /// True if judges are asked questions that the run has no answer for.
    pub ask_judges: bool,
    /// True if the filters of the run are not repeated, so that they cannot say which cases it has.
    pub replaces_filters: bool,
    /// Commands that recheck cases of the run, if the user can repeat them in the current folder.
    pub rerun: Option<RerunCommands>,
}

/// A saved run that is being re-evaluated.
pub struct RecheckContext {
    head: StoredRun,
    kept: Arc<SavedRunConversations>,
    judge: bool,
    replaces_filters: bool,
    rerun: Option<RerunCommands>,
}

/// Checks that the cases of a run exist in a suite. Fails if they were generated or typed.
pub fn check_suite_exists(head: &StoredRun, input: Option<&TestInput>) -> Result<(), Diagnostic> {
    match input {
        Some(TestInput::Generated(..) | TestInput::StandardInput) => {
            let id = head.short_id();
            let message = format!(
                "the cases of run {id} were generated or typed during the run and are not saved in a suite"
            );
            Err(Diagnostic::new(message).help("name the suites to evaluate: `hotseat recheck RUN SUITE`"))
        }
        Some(TestInput::SuiteFile(_) | TestInput::ScriptTests(_) | TestInput::Message(_)) | None => Ok(()),
    }
}

impl RecheckContext {
    /// Reads the case ids of the run. Errors have been printed.
    pub fn load(
        rechecked: RecheckRequest,
        project: &Project,
        context: &CliContext,
    ) -> Result<RecheckContext, ExitStatus> {
        let RecheckRequest { store, head, ask_judges: judge, replaces_filters, rerun } = rechecked;
        let kept = SavedRunConversations::new(store, &head, |suite| project.suite_name(suite));
        let kept = Arc::new(kept.map_err(|error| report_store_error(&error, context))?);
        Ok(RecheckContext { head, kept, judge, replaces_filters, rerun })
    }

    /// Returns suite names and ids of the cases of the run.
    fn cases(&self) -> CaseSet {
        self.kept.cases().cloned().collect()
    }

    /// Returns the restriction to the cases of the run, if it selected them in a way that is not repeated. Other cases are
    /// errors: they have no conversation.
    pub fn restriction(&self, select: &SelectionArgs) -> CaseRestriction {
        match self.replaces_filters || select.last_failed || select.cases.is_some() {
            true => CaseRestriction::Saved(self.cases()),
            false => CaseRestriction::None,
        }
    }

    /// Returns a note for each case of the run that no longer exists: in any suite if `of_all`, else in the
    /// suites of the plan.
    pub fn missing_cases(&self, plan: &RunPlan, of_all: bool, project: &Project) -> Vec<Diagnostic> {
        let suites: BTreeSet<String> = plan.suites().map(|suite| project.suite_name(&suite.path)).collect();
        let mut gone = self.cases();
        gone.retain(|(suite, _)| of_all || suites.contains(suite));
        for (suite, case) in plan.all_cases(project) {
            gone.remove(&(suite.to_string(), case.id.clone()));
        }
        let run = self.head.short_id();
        let named = gone.iter().take(MAX_LISTED_CASES).map(|(suite, id)| {
            Diagnostic::new(format!("run {run} has `{id}` of {suite}, which no longer exists"))
        });
        let more = gone.len().saturating_sub(MAX_LISTED_CASES);
        let more = (more > 0)
            .then(|| Diagnostic::new(format!("run {run} has {more} more cases that no longer exist")));
        named.chain(more).collect()
    }

    /// Returns a note if the run swept faults.
    pub fn sweep_note(&self) -> Option<Diagnostic> {
        let summary = self.head.summary.as_ref().filter(|summary| summary.sweep.is_some())?;
        let message = match summary.sweep_failures {
            0 => "the sweep of faults is not rechecked".to_string(),
            failures => {
                format!("the sweep of faults, with {}, is not rechecked", format_count(failures, "failure"))
            }
        };
        Some(Diagnostic::new(message).help("conversations with a fault are not saved"))
    }

    /// Returns the commands that recheck cases of the run.
    pub fn rerun_commands(&self) -> Option<RerunCommands> {
        self.rerun.clone()
    }

    /// Returns the conversations of the run.
    pub fn conversations(&self) -> RecheckSource {
        RecheckSource { conversations: self.kept.clone(), asks_judges: self.judge }
    }

    /// Returns the options of the original run with the reliability that the project declares now.
    pub fn options(&self, project: &Project) -> ExecutionOptions {
        let kept = self.head.metadata.setting.choices.options;
        ExecutionOptions { fail_fast: false, reliability: project.reliability, ..kept }
    }

    /// Returns the setting for reports, with the agents of the original run.
    pub fn setting(&self, setting: RunSettings) -> RunSettings {
        setting.with_recorded_agents(self.head.short_id(), &self.head.metadata.setting)
    }

    /// Returns the metadata to save with the recheck.
    pub fn run_metadata(&self, project: &Project, plan: &RunPlan, setting: &Arc<RunSettings>) -> RunMetadata {
        let saved = &self.head.metadata;
        RunMetadata {
            origin: RunOrigin::Rechecked { of: self.head.id.clone() },
            parallel: saved.parallel,
            folder: saved.folder.clone(),
            command: saved.command.clone(),
            shard: saved.shard,
            program: saved.program.clone(),
            ..RunMetadata::new(project, plan, setting)
        }
    }
}
