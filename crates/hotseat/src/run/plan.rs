//! What a run will do: every suite is read and checked before anything is contacted.

use std::sync::Arc;

use super::mode::Modes;
use super::partners::{Naming, functions, helpers};
use crate::cases::{Case, Suite};
use crate::checks::{Check, Pattern};
use crate::config::{Agent, Helper, Project, Whose};
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
    /// The agent that it tests; none where the project does not say.
    pub agent: Option<Arc<Agent>>,
}

/// The cases of a run.
#[derive(Debug)]
pub struct Plan {
    suites: Vec<(Arc<Suite>, Option<Arc<Agent>>)>,
    selection: Selection,
    kept: Vec<Selected>,
    /// How many cases the suites hold.
    pub total: usize,
    /// How many of them are selected.
    pub selected: usize,
    /// How many suites hold a selected case.
    pub selected_suites: usize,
    /// Which kinds of conversations there are among them.
    pub modes: Modes,
    /// Notes for people, for instance about cases that assert nothing.
    pub notes: Vec<Diagnostic>,
    /// Whether some case wants a person asked.
    pub asks_person: bool,
    /// The agents that help, each once.
    helpers: Vec<Arc<Agent>>,
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
        let suites = suites.into_iter().map(|suite| {
            let agent = project.agent_of(&suite.path);
            (Arc::new(suite), agent)
        });
        let mut plan = Plan {
            suites: suites.collect(),
            selection,
            kept: Vec::new(),
            total: 0,
            selected: 0,
            selected_suites: 0,
            modes: Modes::default(),
            notes: Vec::new(),
            asks_person: false,
            helpers: Vec::new(),
        };
        let mut mistakes = Vec::new();
        let mut notes: Vec<Diagnostic> = project.calling().notes().into_iter().map(Diagnostic::new).collect();
        for agent in plan.agents() {
            mistakes.extend(agent.unset().cloned());
            let (wrong, unheard) = project.mishears(agent);
            mistakes.extend(wrong);
            notes.extend(unheard);
        }
        plan.notes = notes;
        let mut without_hooks: Vec<Arc<Agent>> = Vec::new();
        for (suite, agent) in plan.suites.clone() {
            let before = plan.selected;
            let agent = agent.as_ref();
            for case in suite.cases(project.decoding(agent.map(|agent| &**agent))) {
                match case {
                    Ok(case) => {
                        if plan.selection.fits(&case) && case.skip.is_none() {
                            mistakes
                                .extend(agent.into_iter().flat_map(|agent| project.deaf_to(agent, &case)));
                            let whose = Whose { suite: &suite, agent: agent.map(|agent| &**agent) };
                            mistakes.extend(project.wrong_hooks(&case, whose));
                            let named = Naming { case: &case, suite: &suite, agent };
                            mistakes.extend(functions(project, named).err().into_iter().flatten());
                            plan.asks_person |= case.interactive.is_some();
                            match helpers(project, &case) {
                                Ok(found) => plan.add_helpers(found.into_iter().map(|(_, helper)| helper)),
                                Err(wrong) => mistakes.extend(wrong),
                            }
                            without_hooks.extend(agent.filter(|_| !case.has_hooks()).cloned());
                            without_hooks.dedup_by(|a, b| Arc::ptr_eq(a, b));
                        }
                        plan.count(case, &suite, agent);
                    }
                    Err(found) => mistakes.extend(found),
                }
            }
            plan.selected_suites += usize::from(plan.selected > before);
        }
        if let Some(id) = project.calling().chat_id().filter(|_| plan.selected > 1) {
            let note = format!("`chat_id` of --ctx: conversations of several cases are all called {id}");
            plan.notes.push(Diagnostic::new(note));
        }
        for helper in &plan.helpers {
            if !plan.agents().any(|agent| Arc::ptr_eq(agent, helper)) {
                mistakes.extend(helper.unset().cloned());
            }
        }
        // A case without hooks has no variables but those of the environment.
        for agent in plan.agents().filter(|agent| agent.varies && agent.unset().next().is_none()) {
            if without_hooks.iter().any(|other| Arc::ptr_eq(other, agent)) {
                mistakes.extend(project.bind_without_hooks(agent).err().into_iter().flatten());
            }
        }
        if mistakes.is_empty() { Ok(plan) } else { Err(mistakes) }
    }

    /// Takes note of an agent that helps with the run as a whole.
    pub fn add_helper(&mut self, helper: Helper) {
        self.add_helpers(vec![helper]);
    }

    fn add_helpers(&mut self, found: impl IntoIterator<Item = Helper>) {
        for helper in found {
            if let Helper::Agent(agent) = helper
                && !self.helpers.iter().any(|known| Arc::ptr_eq(known, &agent))
            {
                self.helpers.push(agent);
            }
        }
    }

    fn count(&mut self, case: Case, suite: &Arc<Suite>, agent: Option<&Arc<Agent>>) {
        self.total += 1;
        if !self.selection.fits(&case) {
            return;
        }
        self.modes.add(&case);
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
            true => self.kept.push(Selected {
                index: self.selected,
                case: Arc::new(case),
                suite: suite.clone(),
                agent: agent.cloned(),
            }),
            false => self.kept = Vec::new(),
        }
        self.selected += 1;
    }

    /// The selected cases, where they were kept.
    pub(super) fn kept(&self) -> Option<&[Selected]> {
        (self.selected == self.kept.len()).then_some(&*self.kept)
    }

    /// The selected cases, in order. Those that were not kept are read again; a file that has changed in between
    /// gives what it holds now, and an entry that is no longer a case is left out with its mistakes.
    pub fn cases<'a>(
        &'a self,
        project: &'a Project,
    ) -> Box<dyn Iterator<Item = Result<Selected, Vec<Diagnostic>>> + Send + 'a> {
        if let Some(kept) = self.kept() {
            return Box::new(kept.iter().cloned().map(Ok));
        }
        let read = self.suites.iter().flat_map(move |suite| {
            let cases = suite.0.cases_in_turn(project.decoding(suite.1.as_deref()));
            cases.map(move |case| (suite, case.map_err(|found| found.into_iter().collect::<Vec<_>>())))
        });
        let selected = read.filter(|(_, case)| case.as_ref().map_or(true, |case| self.selection.fits(case)));
        Box::new(selected.enumerate().map(|(index, ((suite, agent), case))| {
            case.map(|case| Selected {
                index,
                case: Arc::new(case),
                suite: suite.clone(),
                agent: agent.clone(),
            })
        }))
    }

    /// The suites, whether they hold a selected case or not.
    pub fn suites(&self) -> impl ExactSizeIterator<Item = &Arc<Suite>> {
        self.suites.iter().map(|(suite, _)| suite)
    }

    /// For whose sake scripts are looked for that belong to the run as a whole: all its suites, in order.
    pub fn whose(&self) -> Vec<Whose<'_>> {
        self.suites.iter().map(|(suite, agent)| Whose { suite, agent: agent.as_deref() }).collect()
    }

    /// The agents that its suites test, each once.
    pub fn agents(&self) -> impl Iterator<Item = &Arc<Agent>> {
        let all = || self.suites.iter().filter_map(|(_, agent)| agent.as_ref());
        let seen_before = move |number: usize, agent: &Arc<Agent>| {
            all().take(number).any(|other| Arc::ptr_eq(other, agent))
        };
        all().enumerate().filter(move |(number, agent)| !seen_before(*number, agent)).map(|(_, agent)| agent)
    }

    /// The agents that are spoken with: those that are tested, and those that help.
    pub fn reached(&self) -> impl Iterator<Item = &Arc<Agent>> {
        let tested = |agent: &&Arc<Agent>| self.agents().any(|other| Arc::ptr_eq(other, agent));
        self.agents().chain(self.helpers.iter().filter(move |agent| !tested(agent)))
    }

    /// Whether some suite has no agent to test.
    pub fn lacks_agent(&self) -> bool {
        self.suites.iter().any(|(_, agent)| agent.is_none())
    }
}

impl Selection {
    fn fits(&self, case: &Case) -> bool {
        self.run.as_ref().is_none_or(|pattern| pattern.fits(&case.id) || pattern.fits(&case.name))
    }
}
