//! The plan of a run: every suite is read and validated before anything is contacted.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::case_filter::{CaseFilter, CaseLabels};
use super::case_roles::{CaseScope, case_roles, check_functions, missing_tool_functions};
use super::cassettes::AttemptCassette;
use super::execution_options::ExecutionOptions;
use super::judging_digests::judging_digests;
use super::known_labels::KnownLabels;
use super::mcp_servers::SweptFault;
use super::mode::RunModes;
use super::results::{CaseInfo, CaseRef, JudgingDigests};
use super::shard::{PlanDigest, Shard};
use crate::cases::{DecodeSettings, ReliabilitySetting, Suite, TestCase, TestFocus};
use crate::config::{AgentIdentity, Project, ProjectAgent, ResolvedRole, ScriptScope};
use crate::session::{CaseBody, DrivenCase};
use crate::typescript;
use hotseat_checks::Check;
use hotseat_document::{Diagnostic, Diagnostics, SourceSpan};

/// Maximum number of selected cases held in memory. With more cases, all are read again during the run, so
/// memory use does not grow with their number.
const MAX_CASES_IN_MEMORY: usize = 1_000;
/// Maximum number of notes.
const MAX_NOTES: usize = 100;

/// Cases that failed when an agent last ran them: suite name, case id and agent.
pub type FailedCases = BTreeSet<(String, String, AgentIdentity)>;

/// Selects the cases of a run.
#[derive(Debug, Clone, Default)]
pub struct CaseSelection {
    /// Only cases with these names, texts and tags.
    pub filter: CaseFilter,
    /// In these suites, by name, only these cases.
    pub parts: BTreeMap<String, SelectedParts>,
    /// Only these cases, by suite name and case id.
    pub among: Option<BTreeSet<(String, String)>>,
    /// Only these cases that failed.
    pub failed: Option<FailedCases>,
    /// Only one shard of the remaining cases.
    pub shard: Option<Shard>,
    /// If true, `only` markers are an error.
    pub forbid_only: bool,
}

/// The selected cases of one suite: those at these lines, and those with these ids or names.
#[derive(Debug, Clone, Default)]
pub struct SelectedParts {
    /// Lines of the file.
    pub lines: BTreeSet<u32>,
    /// Ids or names.
    pub names: BTreeSet<String>,
}

impl SelectedParts {
    /// True if a case is selected.
    pub fn contains(&self, case: &TestCase) -> bool {
        self.lines.range(case.lines()).next().is_some()
            || [&case.id, &case.name].into_iter().any(|name| self.names.contains(name))
            || (!self.names.is_empty()
                && case.names_without_scenario().iter().any(|name| self.names.contains(name)))
    }
}

/// A selected case with its suite.
#[derive(Debug, Clone)]
pub struct SelectedCase {
    /// Index in the run, from 0. With shards, the index among the cases of all shards.
    pub index: usize,
    /// The case.
    pub case: Arc<TestCase>,
    /// Its suite.
    pub suite: Arc<Suite>,
    /// Name of the suite in recordings.
    pub suite_name: Arc<str>,
    /// The tested agent. `None` if the project does not set one.
    pub agent: Option<Arc<ProjectAgent>>,
    /// The program that runs the conversation, unless its turns are written.
    pub body: Option<Arc<dyn CaseBody>>,
    /// Serialisable reference to the case, for reports.
    pub case_ref: Arc<CaseRef>,
    /// During a recheck: number of saved attempts.
    pub saved_attempts: Option<usize>,
    /// The fault of this attempt in a sweep.
    pub swept_fault: Option<Arc<SweptFault>>,
    /// The cassette of the attempt, once it has begun.
    pub(super) cassette: Option<Arc<AttemptCassette>>,
}

impl SelectedCase {
    /// True if an attempt contacts its agent.
    pub(super) fn contacts_agent(&self) -> bool {
        self.agent.as_ref().is_some_and(|agent| !agent.is_replayed())
    }
}

/// A suite of a run, and the agent it tests unless its cases name others.
#[derive(Debug, Clone)]
pub struct PlannedSuite {
    /// The suite.
    pub suite: Arc<Suite>,
    /// The tested agent. `None` if the project does not set one.
    pub agent: Option<Arc<ProjectAgent>>,
    /// Its cases, if the running program declares them; `None` if they are read from the file of the suite.
    pub declared: Option<Arc<[DrivenCase]>>,
}

/// Numbers of cases by where their reliability is declared.
#[derive(Debug, Default)]
struct DeclaredReliability {
    /// They declare one.
    by_case: usize,
    /// They leave it to the project.
    by_project: usize,
}

impl DeclaredReliability {
    fn count(&mut self, case: &TestCase) {
        match case.reliability {
            _ if case.skip.is_some() => {}
            ReliabilitySetting::Here(_) => self.by_case += 1,
            ReliabilitySetting::Inherited => self.by_project += usize::from(case.retries.is_none()),
            ReliabilitySetting::Nothing => {}
        }
    }

    /// Number of cases to which a declaration applies.
    fn applicable(&self, options: &ExecutionOptions) -> usize {
        match (options.as_declared, options.reliability) {
            (false, _) => 0,
            (true, None) => self.by_case,
            (true, Some(_)) => self.by_case + self.by_project,
        }
    }
}

/// The cases of a run.
#[derive(Debug, Default)]
pub struct RunPlan {
    suites: Vec<PlannedSuite>,
    /// Tested agents, without duplicates.
    agents: Vec<Arc<ProjectAgent>>,
    /// True if a case has no agent to test.
    lacks_agent: bool,
    selection: CaseSelection,
    cached_cases: Vec<SelectedCase>,
    /// Number of cases in the suites.
    pub total: usize,
    /// Number of selected cases.
    pub selected: usize,
    /// Number of selected cases in all shards.
    pub selected_in_all_shards: usize,
    /// Digest of the selected cases and their content.
    pub digest: String,
    /// Digests of the suites with a selected case, by name.
    pub suite_digests: BTreeMap<String, String>,
    /// Number of suites with a selected case.
    pub selected_suites: usize,
    /// Conversation modes of the selected cases.
    pub modes: RunModes,
    /// Files that the selected cases read, each with what it is.
    pub case_files: BTreeMap<PathBuf, &'static str>,
    /// The first selected case with MCP servers.
    first_with_mcp: Option<Arc<TestCase>>,
    /// Place of the first topics whose assertions are not checked, and the number of cases with such topics.
    unchecked_topics: Option<(SourceSpan, usize)>,
    /// The first selected case with served models.
    first_with_models: Option<Arc<TestCase>>,
    /// Notes for the user, for example about cases without assertions.
    pub notes: Vec<Diagnostic>,
    /// Diagnostics of assertions about faults in cases that inject none. Errors, unless the run is a sweep of faults.
    pub faultless_checks: Vec<Diagnostic>,
    /// Selected cases by where their reliability is declared, for agents that run, and for those that recordings replace.
    declared: DeclaredReliability,
    replayed: DeclaredReliability,
    /// Cases that set a number of retries, and those that set none.
    retried: usize,
    without_retries: usize,
    /// True if a case asks a human.
    pub needs_human: bool,
    /// Agents used for roles, without duplicates.
    role_agents: Vec<Arc<ProjectAgent>>,
}

impl RunPlan {
    /// Reads and validates every case of every suite.
    ///
    /// # Errors
    /// All diagnostics of all suites.
    pub fn load(
        suites: Vec<Suite>,
        selection: CaseSelection,
        project: &Project,
    ) -> Result<RunPlan, Vec<Diagnostic>> {
        let suites = suites.into_iter().map(|suite| {
            let agent = project.agent_of(&suite.path);
            PlannedSuite { suite: Arc::new(suite), agent, declared: None }
        });
        RunPlan::load_with(suites.collect(), selection, project)
    }

    /// Like [`RunPlan::load`], for suites that name the agents they test.
    ///
    /// # Errors
    /// All diagnostics of all suites.
    pub fn load_with(
        suites: Vec<PlannedSuite>,
        selection: CaseSelection,
        project: &Project,
    ) -> Result<RunPlan, Vec<Diagnostic>> {
        let mut plan = RunPlan { suites, selection, ..RunPlan::default() };
        let mut diagnostics = Vec::new();
        let mut without_hooks: Vec<Arc<ProjectAgent>> = Vec::new();
        let mut digest = PlanDigest::default();
        for planned in plan.suites.clone() {
            let before = plan.selected;
            let (suite, agent) = (&planned.suite, planned.agent.as_ref());
            let name: Arc<str> = project.suite_name(&suite.path).into();
            digest.begin_suite();
            let selected_before = plan.selected_in_all_shards;
            // Unreadable sources are reported as errors of their cases.
            program_sources(&planned, project).iter().for_each(|source| digest.add_part(source));
            for case in cases_of(&planned, project, Suite::cases) {
                match case.map_err(Vec::from_iter).and_then(|driven| resolve_agent(driven, agent, project)) {
                    Ok((DrivenCase { case, body }, agent)) => {
                        let agent = agent.as_ref();
                        if case.focus == TestFocus::Marked && plan.selection.forbid_only {
                            let message = format!(
                                "`{}` is marked `only`: all other tests of its file are skipped",
                                case.name
                            );
                            let wrong = Diagnostic::new(message).at(case.place.clone());
                            diagnostics.push(
                                wrong.help("remove `only` from this test or its group before committing"),
                            );
                        }
                        let fits = plan.selection.matches(&name, &case, agent);
                        let judging = match fits {
                            true => {
                                judging_digests(project, CaseScope { case: &case, suite, agent, attempt: 1 })
                            }
                            false => JudgingDigests::default(),
                        };
                        if fits {
                            digest.add_case(&name, &case, &judging);
                            plan.add_tested_agent(agent);
                        }
                        let is_selected = fits && plan.selection.is_in_shard(&name, &case);
                        if is_selected && case.skip.is_none() {
                            let named = CaseScope { case: &case, suite, agent, attempt: 1 };
                            diagnostics.extend(plan.check_selected(named, project));
                            without_hooks.extend(agent.filter(|_| !case.has_hooks()).cloned());
                            without_hooks.dedup_by(|a, b| Arc::ptr_eq(a, b));
                        }
                        plan.total += 1;
                        let place = plan.selected_in_all_shards;
                        plan.selected_in_all_shards += usize::from(fits);
                        if is_selected {
                            let folders = [suite.folder.as_path(), project.root.as_path(), Path::new("")];
                            plan.case_files.extend(case.files(&folders));
                            plan.add_case(place, DrivenCase { case, body }, (suite, &name), agent, judging);
                        }
                    }
                    Err(found) => diagnostics.extend(found),
                }
            }
            plan.selected_suites += usize::from(plan.selected > before);
            if plan.selected_in_all_shards > selected_before {
                plan.suite_digests.insert(name.to_string(), digest.of_suite());
            }
        }
        let (wrong, notes) = plan.check_agents(project);
        diagnostics.splice(0..0, wrong);
        plan.notes.splice(0..0, notes.into_iter().chain(plan.unchecked_topics_note()));
        if let Some(id) = project.call_settings().chat_id().filter(|_| plan.selected > 1) {
            let note = format!(
                "`chat_id` of --ctx: all cases of this run use the conversation id {id}, further attempts {id}-2 and so on"
            );
            plan.notes.push(Diagnostic::new(note));
        }
        for helper in &plan.role_agents {
            if !plan.agents().any(|agent| Arc::ptr_eq(agent, helper)) {
                diagnostics.extend(helper.usage_errors().cloned());
            }
        }
        // A case without hooks has environment variables only.
        for agent in plan
            .agents()
            .filter(|agent| !agent.is_same_for_all() && agent.missing_variables().next().is_none())
        {
            if without_hooks.iter().any(|other| Arc::ptr_eq(other, agent)) {
                diagnostics.extend(project.bind_without_hooks(agent).err().into_iter().flatten());
            }
        }
        plan.digest = digest.finish();
        // What several cases inherit is reported once.
        let mut reported = HashSet::new();
        diagnostics.retain(|wrong| {
            let place = wrong.place.as_ref().map(|place| (Arc::as_ptr(&place.source), place.span.clone()));
            place.is_none_or(|place| reported.insert((place, wrong.message.clone())))
        });
        if diagnostics.is_empty() { Ok(plan) } else { Err(diagnostics) }
    }

    /// Checks a case that will run, and adds the roles that it needs.
    fn check_selected(&mut self, named: CaseScope<'_>, project: &Project) -> Vec<Diagnostic> {
        let CaseScope { case, suite, agent, .. } = named;
        let unsupported = agent.into_iter().flat_map(|agent| project.unsupported_parts(agent, case));
        let mut diagnostics: Vec<Diagnostic> = unsupported.collect();
        let whose = ScriptScope { folder: &suite.folder, agent: agent.map(|agent| &**agent) };
        diagnostics.extend(project.check_case_hooks(case, whose));
        diagnostics.extend(check_functions(project, named).err().into_iter().flatten());
        diagnostics.extend(missing_tool_functions(project, named));
        self.needs_human |= case.interactive.is_some();
        if let Some(faultless) = case.faultless_check() {
            add_note(&mut self.faultless_checks, faultless);
        }
        match case_roles(project, named) {
            Ok(found) => self.add_roles(found.into_iter().map(|(_, helper)| helper)),
            Err(wrong) => diagnostics.extend(wrong),
        }
        diagnostics
    }

    fn add_tested_agent(&mut self, agent: Option<&Arc<ProjectAgent>>) {
        match agent {
            Some(agent) if self.agents.iter().any(|known| Arc::ptr_eq(known, agent)) => {}
            Some(agent) => self.agents.push(agent.clone()),
            None => self.lacks_agent = true,
        }
    }

    /// Returns errors and notes about the tested agents.
    fn check_agents(&self, project: &Project) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
        let mut diagnostics = Vec::new();
        let mut notes: Vec<Diagnostic> =
            project.call_settings().notes().into_iter().map(Diagnostic::new).collect();
        for agent in self.agents() {
            diagnostics.extend(agent.usage_errors().cloned());
            let (wrong, unheard) = project.check_call_settings(agent);
            diagnostics.extend(wrong);
            notes.extend(unheard);
        }
        (diagnostics, notes)
    }

    /// Adds an agent that performs a role for the run as a whole.
    pub fn add_role(&mut self, helper: ResolvedRole) {
        self.add_roles(vec![helper]);
    }

    fn add_roles(&mut self, found: impl IntoIterator<Item = ResolvedRole>) {
        for helper in found {
            if let ResolvedRole::Agent(agent) = helper
                && !self.role_agents.iter().any(|known| Arc::ptr_eq(known, &agent))
            {
                self.role_agents.push(agent);
            }
        }
    }

    /// Returns the note about topics whose assertions are not checked, once for all cases.
    fn unchecked_topics_note(&self) -> Option<Diagnostic> {
        let (place, cases) = self.unchecked_topics.clone()?;
        let whose = match cases {
            1 => "this case has no simulated user".to_string(),
            _ => format!("{cases} cases have no simulated user"),
        };
        let note = Diagnostic::new(format!("the assertions of these topics are not checked: {whose}"));
        Some(note.at(place).help("`decide_topics: always` checks them in every conversation"))
    }

    fn add_case(
        &mut self,
        place: usize,
        driven: DrivenCase,
        suite: (&Arc<Suite>, &Arc<str>),
        agent: Option<&Arc<ProjectAgent>>,
        judging: JudgingDigests,
    ) {
        let case = &driven.case;
        self.modes.add_case(case);
        if self.first_with_mcp.is_none() && case.skip.is_none() && !case.mcp.is_empty() {
            self.first_with_mcp = Some(case.clone());
        }
        if self.first_with_models.is_none() && case.skip.is_none() && !case.models.is_empty() {
            self.first_with_models = Some(case.clone());
        }
        if let Some(topics) = case.topics_with_ignored_checks().filter(|_| case.skip.is_none()) {
            self.unchecked_topics.get_or_insert((topics.place.clone(), 0)).1 += 1;
        }
        match agent.is_some_and(|agent| agent.is_replayed()) {
            false => self.declared.count(case),
            true => self.replayed.count(case),
        }
        match case.retries {
            _ if case.skip.is_some() => {}
            Some(retries) => self.retried += usize::from(retries > 0),
            None => self.without_retries += 1,
        }
        if case.skip.is_none()
            && case.program.is_none()
            && !case.checks.iter().chain(&case.final_checks).any(Check::is_hard)
            && !case.checkpoints.iter().any(|checkpoint| checkpoint.required)
            && !case.topics_affect_verdict()
            && case
                .turns
                .iter()
                .all(|turn| !turn.checks.iter().any(Check::is_hard) && turn.expect_error.is_none())
            && !case.uses_hook_variables()
        {
            let has_input = !case.turns.is_empty() || case.simulator.is_some() || case.interactive.is_some();
            let note = Diagnostic::new(match has_input {
                true => "this case asserts nothing: it passes if the agent answers without an error",
                false => {
                    "this case has no `turns` and asserts nothing: it fails unless a human types a message"
                }
            });
            add_note(&mut self.notes, note.at(case.place.clone()));
        }
        match self.selected < MAX_CASES_IN_MEMORY {
            true => {
                let selected = self.select(place, driven, suite, agent, judging);
                self.cached_cases.push(selected);
            }
            false => self.cached_cases = Vec::new(),
        }
        self.selected += 1;
    }

    /// Wraps a case with its index, its suite and the name of that, and its agent.
    fn select(
        &self,
        index: usize,
        driven: DrivenCase,
        suite: (&Arc<Suite>, &Arc<str>),
        agent: Option<&Arc<ProjectAgent>>,
        judging: JudgingDigests,
    ) -> SelectedCase {
        let (DrivenCase { case, body }, (suite, suite_name)) = (driven, suite);
        let number = agent.and_then(|agent| self.agents.iter().position(|known| Arc::ptr_eq(known, agent)));
        let case_ref =
            CaseRef { index, case: CaseInfo::new(&case, judging), suite: suite.clone(), agent: number };
        let case_ref = Arc::new(case_ref);
        SelectedCase {
            index,
            case,
            suite: suite.clone(),
            suite_name: suite_name.clone(),
            agent: agent.cloned(),
            body,
            case_ref,
            saved_attempts: None,
            swept_fault: None,
            cassette: None,
        }
    }

    /// The selected cases, if they are held in memory.
    pub(super) fn cached_cases(&self) -> Option<&[SelectedCase]> {
        (self.selected == self.cached_cases.len()).then_some(&*self.cached_cases)
    }

    /// Iterates over the selected cases in order, reading them again unless they are held in memory. Yields
    /// diagnostics if the suites have changed since planning, at an entry that is no longer valid or at the end.
    pub fn cases<'a>(
        &'a self,
        project: &'a Project,
    ) -> Box<dyn Iterator<Item = Result<SelectedCase, Vec<Diagnostic>>> + Send + 'a> {
        if let Some(kept) = self.cached_cases() {
            return Box::new(kept.iter().cloned().map(Ok));
        }
        let mut read = self.suites.iter().flat_map(move |planned| {
            let cases = cases_of(planned, project, Suite::cases_sequential);
            let name: Arc<str> = project.suite_name(&planned.suite.path).into();
            let first = (planned, name.clone(), None);
            let cases = cases.map(move |case| (planned, name.clone(), Some(case)));
            std::iter::once(first).chain(cases)
        });
        let (mut digest, mut place) = (Some(PlanDigest::default()), 0);
        Box::new(std::iter::from_fn(move || {
            loop {
                let Some((planned, name, case)) = read.next() else {
                    let again = digest.take()?.finish();
                    return (again != self.digest).then(|| Err(vec![suites_changed()]));
                };
                let digest = digest.as_mut()?;
                match case {
                    None => {
                        digest.begin_suite();
                        program_sources(planned, project).iter().for_each(|source| digest.add_part(source));
                    }
                    Some(Ok(driven)) => {
                        let tested = resolve_agent(driven, planned.agent.as_ref(), project);
                        let (driven, agent) = match tested {
                            Ok(tested) => tested,
                            Err(diagnostics) => return Some(Err(reread_errors(planned, diagnostics))),
                        };
                        let (suite, agent) = (&planned.suite, agent.as_ref());
                        if !self.selection.matches(&name, &driven.case, agent) {
                            continue;
                        }
                        let is_selected = self.selection.is_in_shard(&name, &driven.case);
                        let scope = CaseScope { case: &driven.case, suite, agent, attempt: 1 };
                        let judging = judging_digests(project, scope);
                        digest.add_case(&name, &driven.case, &judging);
                        place += 1;
                        if is_selected {
                            let selected = self.select(place - 1, driven, (suite, &name), agent, judging);
                            return Some(Ok(selected));
                        }
                    }
                    Some(Err(diagnostics)) => {
                        return Some(Err(reread_errors(planned, diagnostics.into_iter().collect())));
                    }
                }
            }
        }))
    }

    /// Iterates over all cases, each with the name of its suite, whether they are selected or not. Skips invalid
    /// ones.
    pub fn all_cases<'a>(
        &'a self,
        project: &'a Project,
    ) -> Box<dyn Iterator<Item = (Arc<str>, Arc<TestCase>)> + 'a> {
        if let Some(kept) = self.cached_cases().filter(|_| self.selected == self.total) {
            return Box::new(
                kept.iter().map(|selected| (selected.suite_name.clone(), selected.case.clone())),
            );
        }
        Box::new(self.suites.iter().flat_map(move |planned| {
            let name: Arc<str> = project.suite_name(&planned.suite.path).into();
            let cases = cases_of(planned, project, Suite::cases_sequential);
            cases.filter_map(move |case| Some((name.clone(), case.ok()?.case)))
        }))
    }

    /// Labels of all cases, for suggestions.
    pub fn known_labels(&self, project: &Project) -> KnownLabels {
        let mut known = KnownLabels::default();
        for (suite, case) in self.all_cases(project) {
            known.add(CaseLabels { id: &case.id, name: &case.name, suite: &suite, tags: &case.tags });
        }
        known
    }

    /// Number of selected cases with an applicable declared reliability.
    pub fn declared_count(&self, options: &ExecutionOptions) -> usize {
        self.declared.applicable(options)
    }

    /// Number of selected cases whose declared reliability would apply, if their agent were not replaced by recordings.
    pub fn replayed_count(&self, options: &ExecutionOptions) -> usize {
        self.replayed.applicable(options)
    }

    /// Number of selected cases that have retries if they are not repeated.
    pub fn retried_count(&self, options: &ExecutionOptions) -> usize {
        self.retried + if options.default_retries > 0 { self.without_retries } else { 0 }
    }

    /// All suites, including those without a selected case.
    pub fn suites(&self) -> impl ExactSizeIterator<Item = &Arc<Suite>> {
        self.suites.iter().map(|planned| &planned.suite)
    }

    /// Scopes for resolving scripts of the run as a whole: all suites in order.
    pub fn script_scopes(&self) -> Vec<ScriptScope<'_>> {
        self.suites
            .iter()
            .map(|planned| ScriptScope { folder: &planned.suite.folder, agent: planned.agent.as_deref() })
            .collect()
    }

    /// The tested agents, without duplicates.
    pub fn agents(&self) -> impl Iterator<Item = &Arc<ProjectAgent>> {
        self.agents.iter()
    }

    /// All agents that are contacted: tested agents and those used for roles.
    pub fn contacted_agents(&self) -> impl Iterator<Item = &Arc<ProjectAgent>> {
        let tested = |agent: &&Arc<ProjectAgent>| self.agents().any(|other| Arc::ptr_eq(other, agent));
        self.agents().chain(self.role_agents.iter().filter(move |agent| !tested(agent)))
    }

    /// The first selected case with served models.
    pub(super) fn first_case_with_models(&self) -> Option<&TestCase> {
        self.first_with_models.as_deref()
    }

    /// The first selected case with MCP servers.
    pub(super) fn first_case_with_mcp(&self) -> Option<&TestCase> {
        self.first_with_mcp.as_deref()
    }

    /// True if a case has no agent to test.
    pub fn lacks_agent(&self) -> bool {
        self.lacks_agent
    }
}

type DecodedCase = Result<DrivenCase, Diagnostics>;
type CaseIterator<'a> = Box<dyn Iterator<Item = DecodedCase> + Send + 'a>;

/// Adds a note, unless a case of the same document, such as another scenario of it, has the same one.
fn add_note(notes: &mut Vec<Diagnostic>, note: Diagnostic) {
    if notes.len() < MAX_NOTES && !notes.contains(&note) {
        notes.push(note);
    }
}

/// The cases of a suite: its entries or, for a program, its declared tests.
fn cases_of<'a, I: Iterator<Item = Result<Arc<TestCase>, Diagnostics>> + Send + 'a>(
    planned: &'a PlannedSuite,
    project: &'a Project,
    written: impl FnOnce(&'a Suite, DecodeSettings<'a>) -> I,
) -> CaseIterator<'a> {
    if let Some(declared) = &planned.declared {
        return Box::new(declared.iter().cloned().map(Ok));
    }
    let (suite, agent) = (&*planned.suite, planned.agent.as_deref());
    let decoding = project.decode_settings(agent);
    match suite.is_program() {
        true => {
            let places = project.script_places(ScriptScope { folder: &suite.folder, agent });
            Box::new(typescript::cases(suite, project.scripts(), &places, decoding).into_iter())
        }
        false => Box::new(written(suite, decoding).map(|case| case.map(DrivenCase::from))),
    }
}

/// A case with the agent it tests.
fn resolve_agent(
    driven: DrivenCase,
    of_suite: Option<&Arc<ProjectAgent>>,
    project: &Project,
) -> Result<(DrivenCase, Option<Arc<ProjectAgent>>), Vec<Diagnostic>> {
    let agent = project.agent_of_case(&driven.case, of_suite).map_err(|wrong| vec![wrong])?;
    Ok((driven, agent))
}

/// Source text of a program suite and its imports.
fn program_sources(planned: &PlannedSuite, project: &Project) -> Vec<String> {
    let suite = &planned.suite;
    if !suite.is_program() {
        return Vec::new();
    }
    let places =
        project.script_places(ScriptScope { folder: &suite.folder, agent: planned.agent.as_deref() });
    typescript::sources(suite, project.scripts(), &places).unwrap_or_default()
}

/// Returns the diagnostics for a suite with errors that it did not have during planning: it changed, unless it cannot be read now.
fn reread_errors(planned: &PlannedSuite, found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    match planned.suite.is_readable() {
        true => vec![suites_changed()],
        false => found,
    }
}

/// Diagnostic for suites that changed during the run.
fn suites_changed() -> Diagnostic {
    Diagnostic::new("the suites changed during the run: its results mix two versions")
        .help("run the tests again without editing suites during the run")
}

impl CaseSelection {
    fn matches(&self, suite: &str, case: &TestCase, agent: Option<&Arc<ProjectAgent>>) -> bool {
        let labels = CaseLabels { id: &case.id, name: &case.name, suite, tags: &case.tags };
        let is_among = |few: &BTreeSet<(String, String)>| few.contains(&(suite.to_string(), case.id.clone()));
        let has_failed = |failed: &FailedCases| {
            let agent = agent.map(|agent| agent.identity()).unwrap_or_default();
            failed.contains(&(suite.to_string(), case.id.clone(), agent))
        };
        self.parts.get(suite).is_none_or(|parts| parts.contains(case))
            && self.filter.matches(labels)
            && self.among.as_ref().is_none_or(is_among)
            && self.failed.as_ref().is_none_or(has_failed)
    }

    fn is_in_shard(&self, suite: &str, case: &TestCase) -> bool {
        self.shard.is_none_or(|shard| shard.contains(suite, &case.id))
    }
}
