//! What a run will do: every suite is read and checked before anything is contacted.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::dispatcher::Options;
use super::mode::Modes;
use super::partners::{Naming, functions, helpers};
use super::shard::{Digest, Shard};
use super::told::{CaseFacts, Told};
use crate::cases::{Case, Declared, Decoding, Suite};
use crate::checks::{Check, Pattern};
use crate::config::{Agent, Helper, Project, Whose};
use crate::typescript;
use hotseat_document::{Diagnostic, Diagnostics};

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
    /// Only these, by the names of their suites within the project and by their ids.
    pub among: Option<BTreeSet<(String, String)>>,
    /// Of all these only the ones of one part.
    pub shard: Option<Shard>,
    /// Whether no test may be marked so that the others of its file are left out.
    pub forbid_only: bool,
}

/// A case that is selected, and the suite it comes from.
#[derive(Debug, Clone)]
pub struct Selected {
    /// Its place in the run, from 0; where cases are divided, its place among all of them.
    pub index: usize,
    /// The case.
    pub case: Arc<Case>,
    /// Its suite.
    pub suite: Arc<Suite>,
    /// The agent that it tests; none where the project does not say.
    pub agent: Option<Arc<Agent>>,
    /// What is told of it.
    pub told: Arc<Told>,
    /// Where it is decided again: how many attempts at it are kept.
    pub kept: Option<usize>,
}

/// The cases of a run.
#[derive(Debug)]
pub struct Plan {
    suites: Vec<(Arc<Suite>, Option<Arc<Agent>>)>,
    /// The agents that their cases test, each once.
    agents: Vec<Arc<Agent>>,
    /// Whether some case has no agent to test.
    lacks_agent: bool,
    selection: Selection,
    kept: Vec<Selected>,
    /// How many cases the suites hold.
    pub total: usize,
    /// How many of them are selected.
    pub selected: usize,
    /// How many are selected in all parts together, where they are divided.
    pub of_all: usize,
    /// What these are, in one number: of other cases, or of cases that are written otherwise, it is another one.
    pub digest: String,
    /// How many suites hold a selected case.
    pub selected_suites: usize,
    /// Which kinds of conversations there are among them.
    pub modes: Modes,
    /// Notes for people, for instance about cases that assert nothing.
    pub notes: Vec<Diagnostic>,
    /// How many selected cases say themselves how reliable the agent has to be, and how many say nothing of it.
    declared: usize,
    undeclared: usize,
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
            (suite, agent)
        });
        Plan::load_with(suites.collect(), selection, project)
    }

    /// The same for suites that say themselves which agents they test.
    ///
    /// # Errors
    /// Everything that is wrong in any of them.
    pub fn load_with(
        suites: Vec<(Suite, Option<Arc<Agent>>)>,
        selection: Selection,
        project: &Project,
    ) -> Result<Plan, Vec<Diagnostic>> {
        let suites: Vec<_> = suites.into_iter().map(|(suite, agent)| (Arc::new(suite), agent)).collect();
        let mut plan = Plan {
            suites,
            agents: Vec::new(),
            lacks_agent: false,
            selection,
            kept: Vec::new(),
            total: 0,
            selected: 0,
            of_all: 0,
            digest: String::new(),
            selected_suites: 0,
            modes: Modes::default(),
            notes: Vec::new(),
            declared: 0,
            undeclared: 0,
            asks_person: false,
            helpers: Vec::new(),
        };
        let mut mistakes = Vec::new();
        let mut without_hooks: Vec<Arc<Agent>> = Vec::new();
        let mut digest = Digest::new();
        for (suite, agent) in plan.suites.clone() {
            let before = plan.selected;
            let agent = agent.as_ref();
            let name = project.suite_name(&suite.path);
            // What cannot be read is a mistake of its cases.
            for source in sources_of(&suite, agent, project) {
                digest.part(&source);
            }
            for case in cases_of(&suite, agent, project, Suite::cases) {
                match case.map_err(Vec::from_iter).and_then(|case| with_agent(case, agent, project)) {
                    Ok((case, agent)) => {
                        let agent = agent.as_ref();
                        if case.only && plan.selection.forbid_only {
                            let message = format!(
                                "`{}` is marked `only`: other tests of its file are left out",
                                case.name
                            );
                            let wrong = Diagnostic::new(message).at(case.place.clone());
                            mistakes.push(
                                wrong.help("take `only` out here, or around it, before this is checked in"),
                            );
                        }
                        let fits = plan.selection.fits(&name, &case);
                        if fits {
                            digest.add(&name, &case);
                            plan.tests(agent);
                        }
                        let is_selected = fits && plan.selection.is_in_part(&name, &case);
                        if is_selected && case.skip.is_none() {
                            mistakes
                                .extend(agent.into_iter().flat_map(|agent| project.deaf_to(agent, &case)));
                            let whose = Whose { folder: &suite.folder, agent: agent.map(|agent| &**agent) };
                            mistakes.extend(project.wrong_hooks(&case, whose));
                            let named = Naming { case: &case, suite: &suite, agent };
                            mistakes.extend(functions(project, named).err().into_iter().flatten());
                            plan.asks_person |= case.interactive.is_some();
                            match helpers(project, named) {
                                Ok(found) => plan.add_helpers(found.into_iter().map(|(_, helper)| helper)),
                                Err(wrong) => mistakes.extend(wrong),
                            }
                            without_hooks.extend(agent.filter(|_| !case.has_hooks()).cloned());
                            without_hooks.dedup_by(|a, b| Arc::ptr_eq(a, b));
                        }
                        plan.total += 1;
                        let place = plan.of_all;
                        plan.of_all += usize::from(fits);
                        if is_selected {
                            plan.add(place, case, &suite, agent);
                        }
                    }
                    Err(found) => mistakes.extend(found),
                }
            }
            plan.selected_suites += usize::from(plan.selected > before);
        }
        let (wrong, notes) = plan.unusable_agents(project);
        mistakes.splice(0..0, wrong);
        plan.notes.splice(0..0, notes);
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
        plan.digest = digest.finish();
        if mistakes.is_empty() { Ok(plan) } else { Err(mistakes) }
    }

    /// Takes note of the agent that a case tests.
    fn tests(&mut self, agent: Option<&Arc<Agent>>) {
        match agent {
            Some(agent) if self.agents.iter().any(|known| Arc::ptr_eq(known, agent)) => {}
            Some(agent) => self.agents.push(agent.clone()),
            None => self.lacks_agent = true,
        }
    }

    /// What is wrong with the agents that are tested, and what a person may want to know of them.
    fn unusable_agents(&self, project: &Project) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
        let mut mistakes = Vec::new();
        let mut notes: Vec<Diagnostic> = project.calling().notes().into_iter().map(Diagnostic::new).collect();
        for agent in self.agents() {
            mistakes.extend(agent.unset().cloned());
            let (wrong, unheard) = project.mishears(agent);
            mistakes.extend(wrong);
            notes.extend(unheard);
        }
        (mistakes, notes)
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

    fn add(&mut self, place: usize, case: Case, suite: &Arc<Suite>, agent: Option<&Arc<Agent>>) {
        self.modes.add(&case);
        if let Some(topics) =
            case.topics.as_ref().filter(|topics| case.skip.is_none() && topics.is_mute(&case))
        {
            let note =
                Diagnostic::new("what these topics assert is not decided: no user is simulated in this case");
            let help = "`decide_topics: always` decides it in every conversation";
            if self.notes.len() < NOTES {
                self.notes.push(note.at(topics.place.clone()).help(help));
            }
        }
        match case.reliability {
            _ if case.skip.is_some() => {}
            Declared::Here(_) => self.declared += 1,
            Declared::Inherited => self.undeclared += usize::from(case.retries.is_none()),
            Declared::Nothing => {}
        }
        if case.skip.is_none()
            && case.body.is_none()
            && !case.checks.iter().chain(&case.final_checks).any(Check::is_hard)
            && !case.checkpoints.iter().any(|checkpoint| checkpoint.required)
            && !case.topics.as_ref().is_some_and(|topics| topics.decide(&case))
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
                let selected = self.place(place, case, suite, agent);
                self.kept.push(selected);
            }
            false => self.kept = Vec::new(),
        }
        self.selected += 1;
    }

    /// A case in its place.
    fn place(&self, index: usize, case: Case, suite: &Arc<Suite>, agent: Option<&Arc<Agent>>) -> Selected {
        let number = agent.and_then(|agent| self.agents.iter().position(|known| Arc::ptr_eq(known, agent)));
        let told = Told { index, case: CaseFacts::of(&case), suite: suite.clone(), agent: number };
        let (told, case) = (Arc::new(told), Arc::new(case));
        Selected { index, case, suite: suite.clone(), agent: agent.cloned(), told, kept: None }
    }

    /// The selected cases, where they were kept.
    pub(super) fn kept(&self) -> Option<&[Selected]> {
        (self.selected == self.kept.len()).then_some(&*self.kept)
    }

    /// The selected cases, in order. Those that were not kept are read again. An entry that is no longer a case gives its
    /// mistakes, and so does the end where the cases are no longer those of which the plan was made.
    pub fn cases<'a>(
        &'a self,
        project: &'a Project,
    ) -> Box<dyn Iterator<Item = Result<Selected, Vec<Diagnostic>>> + Send + 'a> {
        if let Some(kept) = self.kept() {
            return Box::new(kept.iter().cloned().map(Ok));
        }
        let mut read = self.suites.iter().flat_map(move |suite| {
            let cases = cases_of(&suite.0, suite.1.as_ref(), project, Suite::cases_in_turn);
            let name: Arc<str> = project.suite_name(&suite.0.path).into();
            let first = (suite, name.clone(), None);
            let cases = cases.map(move |case| (suite, name.clone(), Some(case)));
            std::iter::once(first).chain(cases)
        });
        let (mut digest, mut place) = (Some(Digest::new()), 0);
        Box::new(std::iter::from_fn(move || {
            loop {
                let Some(((suite, agent), name, case)) = read.next() else {
                    let again = digest.take()?.finish();
                    return (again != self.digest).then(|| Err(vec![changed()]));
                };
                let digest = digest.as_mut()?;
                match case {
                    None => sources_of(suite, agent.as_ref(), project)
                        .iter()
                        .for_each(|source| digest.part(source)),
                    Some(Ok(case)) if !self.selection.fits(&name, &case) => {}
                    Some(Ok(case)) => {
                        digest.add(&name, &case);
                        place += 1;
                        if self.selection.is_in_part(&name, &case) {
                            let tested = with_agent(case, agent.as_ref(), project);
                            return Some(
                                tested
                                    .map(|(case, agent)| self.place(place - 1, case, suite, agent.as_ref())),
                            );
                        }
                    }
                    Some(Err(mistakes)) => return Some(Err(mistakes.into_iter().collect())),
                }
            }
        }))
    }

    /// For how many selected cases a reliability is declared that counts.
    pub fn declared(&self, options: &Options) -> usize {
        match (options.as_declared, options.reliability) {
            (false, _) => 0,
            (true, None) => self.declared,
            (true, Some(_)) => self.declared + self.undeclared,
        }
    }

    /// The suites, whether they hold a selected case or not.
    pub fn suites(&self) -> impl ExactSizeIterator<Item = &Arc<Suite>> {
        self.suites.iter().map(|(suite, _)| suite)
    }

    /// For whose sake scripts are looked for that belong to the run as a whole: all its suites, in order.
    pub fn whose(&self) -> Vec<Whose<'_>> {
        self.suites
            .iter()
            .map(|(suite, agent)| Whose { folder: &suite.folder, agent: agent.as_deref() })
            .collect()
    }

    /// The agents that its cases test, each once.
    pub fn agents(&self) -> impl Iterator<Item = &Arc<Agent>> {
        self.agents.iter()
    }

    /// The agents that are spoken with: those that are tested, and those that help.
    pub fn reached(&self) -> impl Iterator<Item = &Arc<Agent>> {
        let tested = |agent: &&Arc<Agent>| self.agents().any(|other| Arc::ptr_eq(other, agent));
        self.agents().chain(self.helpers.iter().filter(move |agent| !tested(agent)))
    }

    /// Whether some case has no agent to test.
    pub fn lacks_agent(&self) -> bool {
        self.lacks_agent
    }
}

type Decoded = Result<Case, Diagnostics>;
type Cases<'a> = Box<dyn Iterator<Item = Decoded> + Send + 'a>;

/// The cases of a suite: those that are written in it, or the tests that it declares.
fn cases_of<'a, I: Iterator<Item = Decoded> + Send + 'a>(
    suite: &'a Suite,
    agent: Option<&'a Arc<Agent>>,
    project: &'a Project,
    written: impl FnOnce(&'a Suite, Decoding<'a>) -> I,
) -> Cases<'a> {
    let agent = agent.map(|agent| &**agent);
    let decoding = project.decoding(agent);
    match suite.is_program() {
        true => {
            let places = project.places(Whose { folder: &suite.folder, agent });
            Box::new(typescript::cases(suite, project.scripts(), &places, decoding).into_iter())
        }
        false => Box::new(written(suite, decoding)),
    }
}

/// A case and the agent that it tests.
fn with_agent(
    case: Case,
    of_suite: Option<&Arc<Agent>>,
    project: &Project,
) -> Result<(Case, Option<Arc<Agent>>), Vec<Diagnostic>> {
    let agent = project.agent_tested(&case, of_suite).map_err(|wrong| vec![wrong])?;
    Ok((case, agent))
}

/// What a suite that is a program says, with what it imports.
fn sources_of(suite: &Suite, agent: Option<&Arc<Agent>>, project: &Project) -> Vec<String> {
    if !suite.is_program() {
        return Vec::new();
    }
    let places = project.places(Whose { folder: &suite.folder, agent: agent.map(|agent| &**agent) });
    typescript::sources(suite, project.scripts(), &places).unwrap_or_default()
}

/// What is to be said of cases that are not those of which the plan was made.
fn changed() -> Diagnostic {
    Diagnostic::new(
        "the suites have changed since the run began: what it came to is of neither version as a whole",
    )
    .help("run it again, and leave the suites alone while it goes on")
}

impl Selection {
    fn fits(&self, suite: &str, case: &Case) -> bool {
        let named = |pattern: &Pattern| pattern.fits(&case.id) || pattern.fits(&case.name);
        let is_among = |few: &BTreeSet<(String, String)>| few.contains(&(suite.to_string(), case.id.clone()));
        self.run.as_ref().is_none_or(named) && self.among.as_ref().is_none_or(is_among)
    }

    fn is_in_part(&self, suite: &str, case: &Case) -> bool {
        self.shard.is_none_or(|shard| shard.has(suite, &case.id))
    }
}
