//! What a run will do: every suite is read and checked before anything is contacted.

use std::sync::Arc;

use crate::cases::{Case, Suite};
use crate::checks::{Check, Pattern};
use crate::config::Project;
use hotseat_document::Diagnostic;

/// How many selected cases are kept from the first reading. If there are more, none is kept and all are read again
/// while the run goes on, so that memory does not grow with the number of cases.
const KEPT: usize = 1_000;
/// How many notes are kept.
const NOTES: usize = 100;

/// Which cases are meant.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Only cases whose id or name fits.
    pub run: Option<Pattern>,
}

/// A case that is selected, and the suite it comes from.
#[derive(Debug, Clone)]
pub struct Selected {
    /// Its place in the run, from 0.
    pub index: usize,
    /// The case.
    pub case: Arc<Case>,
    /// Its suite.
    pub suite: Arc<Suite>,
}

/// The cases of a run.
#[derive(Debug)]
pub struct Plan {
    suites: Vec<Arc<Suite>>,
    selection: Selection,
    kept: Vec<Selected>,
    /// How many cases the suites hold.
    pub total: usize,
    /// How many of them are selected.
    pub selected: usize,
    /// How many suites hold a selected case.
    pub selected_suites: usize,
    /// Notes for people, for instance about cases that assert nothing.
    pub notes: Vec<Diagnostic>,
    /// Whether a selected case has no hooks.
    without_hooks: bool,
}

impl Plan {
    /// Reads and checks every case of every suite.
    ///
    /// # Errors
    /// Everything that is wrong in any of them.
    pub fn load(
        suites: Vec<Suite>,
        selection: Selection,
        project: &Project,
    ) -> Result<Plan, Vec<Diagnostic>> {
        let mut plan = Plan {
            suites: suites.into_iter().map(Arc::new).collect(),
            selection,
            kept: Vec::new(),
            total: 0,
            selected: 0,
            selected_suites: 0,
            notes: Vec::new(),
            without_hooks: false,
        };
        let mut mistakes = Vec::new();
        for suite in plan.suites.clone() {
            let before = plan.selected;
            for case in suite.cases(project.decoding()) {
                match case {
                    Ok(case) => plan.count(case, &suite),
                    Err(found) => mistakes.extend(found),
                }
            }
            plan.selected_suites += usize::from(plan.selected > before);
        }
        if plan.without_hooks && project.target_varies() {
            // A case without hooks has no variables but those of the environment.
            mistakes.extend(project.bind_without_hooks().err().into_iter().flatten());
        }
        if mistakes.is_empty() { Ok(plan) } else { Err(mistakes) }
    }

    fn count(&mut self, case: Case, suite: &Arc<Suite>) {
        self.total += 1;
        if !self.selection.fits(&case) {
            return;
        }
        self.without_hooks |= case.hooks == 0 && case.skip.is_none();
        if case.skip.is_none()
            && !case.checks.iter().chain(&case.final_checks).any(Check::is_hard)
            && !case.checkpoints.iter().any(|checkpoint| checkpoint.required)
            && case
                .turns
                .iter()
                .all(|turn| !turn.checks.iter().any(Check::is_hard) && turn.expect_error.is_none())
        {
            let note =
                Diagnostic::new("this case asserts nothing: it passes if the agent answers without an error");
            if self.notes.len() < NOTES {
                self.notes.push(note.at(case.place.clone()));
            }
        }
        match self.selected < KEPT {
            true => {
                self.kept.push(Selected { index: self.selected, case: Arc::new(case), suite: suite.clone() })
            }
            false => self.kept = Vec::new(),
        }
        self.selected += 1;
    }

    /// The selected cases, in order. Those that were not kept are read again; a file that has changed in between
    /// gives what it holds now, and an entry that is no longer a case is left out with its mistakes.
    pub fn cases<'a>(
        &'a self,
        project: &'a Project,
    ) -> Box<dyn Iterator<Item = Result<Selected, Vec<Diagnostic>>> + Send + 'a> {
        if self.selected == self.kept.len() {
            return Box::new(self.kept.iter().cloned().map(Ok));
        }
        let read = self.suites.iter().flat_map(move |suite| {
            let cases = suite.cases(project.decoding());
            cases.map(move |case| (suite, case.map_err(|found| found.into_iter().collect::<Vec<_>>())))
        });
        let selected = read.filter(|(_, case)| case.as_ref().map_or(true, |case| self.selection.fits(case)));
        Box::new(selected.enumerate().map(|(index, (suite, case))| {
            case.map(|case| Selected { index, case: Arc::new(case), suite: suite.clone() })
        }))
    }

    /// The suites, whether they hold a selected case or not.
    pub fn suites(&self) -> &[Arc<Suite>] {
        &self.suites
    }
}

impl Selection {
    fn fits(&self, case: &Case) -> bool {
        self.run.as_ref().is_none_or(|pattern| pattern.fits(&case.id) || pattern.fits(&case.name))
    }
}
