//! Runs the selected examples, as `hotseat test` runs cases.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotseat_document::{Diagnostic, Diagnostics};
use hotseat_trace::VerdictStatus;

use super::super::agents::{AgentChoice, InProgramAgent};
use super::super::example_body::ExampleBody;
use super::super::example_facts::ExampleFacts;
use super::super::tree::ExampleSpec;
use super::arguments::{ColorMode, HarnessArguments, IgnoredMode};
use super::{Harness, exit, format_list};
use hotseat_checks::RoleReference;
use hotseat_engine::cases::{CaseProgram, CaseSimulator, SimulatorBrief, Suite, TestCase};
use hotseat_engine::config::{Project, ProjectAgent, ScriptScope, display_path, redact_diagnostic};
use hotseat_engine::run::{
    CaseSelection, EventRetention, ExecutionOptions, PlannedSuite, RequestedOptions, RerunCommands,
    RunChoices, RunContext, RunEvent, RunPlan, RunSettings,
};
use hotseat_engine::session::DrivenCase;
use hotseat_report::reporters::{
    self, ConsoleOptions, ConsoleReporter, ReportFormat, ReportWriteError, Reporter, TraceReporter,
};
use hotseat_report::runner::{FinishedRun, ReporterSet, RunBuilder, RunnerError};
use hotseat_targets::code_agent::CodeAgent;
use hotseat_targets::connection::http::HttpClient;
use hotseat_targets::recorder::SecretRedactor;

/// A requested report file.
struct HarnessReportFile<'a> {
    path: &'a Path,
    format: ReportFormat,
}

impl Harness {
    /// Runs the examples and returns the exit code.
    pub(super) fn run_selected(
        &self,
        examples: Vec<Arc<ExampleSpec>>,
        arguments: &HarnessArguments,
    ) -> Result<u8, u8> {
        let project = self.project(arguments)?;
        let options = self.options(arguments, &project)?;
        let outputs = self.report_files(arguments)?;
        let suites = self.build_suites(&examples, &project)?;
        let failed = arguments.last_failed.then(|| self.last_failed(&project)).transpose()?;
        let selection = CaseSelection { failed, ..CaseSelection::default() };
        let mut plan = RunPlan::load_with(suites, selection, &project).map_err(|found| {
            let clean = |wrong| redact_diagnostic(wrong, project.redactor());
            self.usage_error(found.into_iter().map(clean))
        })?;
        if plan.selected == 0 {
            self.print_remark(
                "no examples selected: none of the examples that failed in the last run matches",
            );
            return Ok(exit::NOTHING_SELECTED);
        }
        if arguments.list {
            let cases = plan.cases(&project).collect::<Result<Vec<_>, _>>();
            let cases = cases.map_err(|found| self.usage_error(found))?;
            let names = cases.iter().map(|selected| &*selected.case.name);
            return Ok(self.print(&format_list(names, arguments.format)));
        }
        if plan.lacks_agent() {
            return Err(self.usage_error([project.missing_target()]));
        }
        project.check_endpoint(plan.agents()).map_err(|wrong| self.usage_error([wrong]))?;
        if !plan.faultless_checks.is_empty() {
            return Err(self.usage_error(std::mem::take(&mut plan.faultless_checks)));
        }
        let is_kept =
            cfg!(feature = "store") && project.store.enabled && project.file.is_some() && !arguments.no_store;
        let keep = match arguments.trace {
            Some(_) => EventRetention::Raw,
            None if is_kept || outputs.iter().any(|output| output.format.needs_events()) => {
                EventRetention::Events
            }
            None => EventRetention::Nothing,
        };
        let (project, http) = (Arc::new(project), Arc::new(HttpClient::default()));
        let context = RunContext::new(project, plan.contacted_agents(), http, arguments.timeout, keep);
        let context = context.map_err(|found| self.usage_error(found))?;
        let choices = RunChoices {
            options,
            parallel_asked: arguments.parallel.is_some(),
            outputs: outputs.iter().map(|output| output.path.display().to_string()).collect(),
            agent: arguments.agent.clone(),
            rerun: rerun_commands(self.file, arguments, is_kept),
            ..RunChoices::default()
        };
        let setting = Arc::new(RunSettings::new(&plan, &context, choices));
        let mut reporters = self.reporters(arguments, outputs, &setting)?;
        let saver = match is_kept.then(|| self.run_saver(&context.project, &plan, &setting)) {
            Some(Ok(saver)) => Some(saver),
            Some(Err(reason)) => {
                reporters.warnings.push(format!("this run is not saved: {reason}"));
                None
            }
            None => None,
        };
        self.note_agents_in_program(&examples, arguments);
        let finished = match RunBuilder::new(plan, context, options, reporters).saved_by(saver).run() {
            Ok(finished) => finished,
            Err(RunnerError::Start(error)) => return Err(self.run_error(format!("cannot start: {error}"))),
            Err(RunnerError::OutputStuck) => return Ok(exit::INTERRUPTED),
        };
        let FinishedRun { ended, reporters } = finished;
        for words in &reporters.warnings {
            self.print_remark(&format!("warning: {words}"));
        }
        let summary = ended.map_err(|mistakes| {
            self.print_diagnostics(mistakes);
            exit::RUN_ERROR
        })?;
        self.print_errors(&reporters.errors);
        let lost: Vec<String> = examples.iter().flat_map(|example| example.facts.lost.take()).collect();
        self.print_errors(&lost);
        Ok(match () {
            () if !lost.is_empty() => exit::RUN_ERROR,
            () if summary.interrupted => exit::INTERRUPTED,
            () if !reporters.errors.is_empty() => exit::RUN_ERROR,
            () if summary.never_reached() => exit::RUN_ERROR,
            () if summary.failed > 0 => exit::FAILED,
            () => exit::PASSED,
        })
    }

    pub(super) fn run_error(&self, words: String) -> u8 {
        self.print_diagnostics([Diagnostic::new(words)]);
        exit::RUN_ERROR
    }

    /// Loads the project: the file of `--config`, the nearest one, or an empty project.
    fn project(&self, arguments: &HarnessArguments) -> Result<Project, u8> {
        let environment = self.context.environment.clone();
        let file = match &arguments.config {
            Some(config) => Some((self.resolve_path(config), config.clone())),
            None => Project::find(&self.context.folder).map(|path| {
                let name = display_path(&path, &self.context.folder);
                (path, name)
            }),
        };
        let mut project = match file {
            Some((path, name)) => {
                let project = match arguments.no_env_file {
                    true => Project::read(&path, &name, environment),
                    false => Project::read_with_env_file(&path, &name, environment),
                };
                project.map_err(|found| self.usage_error(found))?
            }
            None => Project::without_file(self.context.folder.clone(), environment),
        };
        if let Some(name) = &arguments.agent {
            let chosen = match name.strip_prefix("replay:") {
                Some(from) => project.replay_from(from, &self.context.folder),
                None => project.override_with(name).map_err(Into::into),
            };
            chosen.map_err(|found| self.usage_error(found))?;
        }
        if let Some(endpoint) = &arguments.endpoint {
            project.override_endpoint(endpoint).map_err(|found| self.usage_error(found))?;
        }
        if let Some(written) = &arguments.simulator {
            let who =
                RoleReference::parse(written).map_err(|words| self.usage_error([Diagnostic::new(words)]))?;
            let whose = ScriptScope { folder: &self.context.folder, agent: None };
            project.find_role(&who, None, whose).map_err(|found| self.usage_error(found))?;
            (project.simulator, project.simulator_place) = (Some(who), None);
        }
        Ok(project)
    }

    fn options(&self, arguments: &HarnessArguments, project: &Project) -> Result<ExecutionOptions, u8> {
        let requested = RequestedOptions {
            parallel: arguments.parallel,
            runs: arguments.runs,
            min_pass_rate: arguments.min_pass_rate,
            retries: arguments.retries,
            fail_fast: arguments.fail_fast,
            ..RequestedOptions::default()
        };
        requested.resolve(project).map_err(|wrong| self.usage_error([wrong]))
    }

    /// Returns the requested report files. They are created when the run starts: a run that is refused leaves
    /// the reports of the last one.
    fn report_files<'a>(&self, arguments: &'a HarnessArguments) -> Result<Vec<HarnessReportFile<'a>>, u8> {
        let file = |path: &'a PathBuf| match ReportFormat::from_path(path) {
            Some(format) => match reporters::check_report_name("--output", path) {
                Ok(()) => Ok(HarnessReportFile { path, format }),
                Err(wrong) => Err(self.usage_error([wrong])),
            },
            None => {
                let (name, known) = (path.display(), reporters::REPORT_EXTENSIONS);
                let message = format!("--output {name}: unknown extension, expected one of {known}");
                Err(self.usage_error([Diagnostic::new(message)]))
            }
        };
        arguments.outputs.iter().map(file).collect()
    }

    /// Opens a file with a function of [`reporters`].
    fn open_file<F>(&self, path: &Path, open: fn(&Path) -> io::Result<F>) -> Result<F, u8> {
        let file = open(&self.context.folder.join(path));
        file.map_err(|error| self.run_error(ReportWriteError::new(path, error).to_string()))
    }

    /// Groups the examples into suites: one for each sequence of examples with the same agent.
    fn build_suites(
        &self,
        examples: &[Arc<ExampleSpec>],
        project: &Project,
    ) -> Result<Vec<PlannedSuite>, u8> {
        let mut agents = ProgramAgents::default();
        let mut suites: Vec<(Vec<DrivenCase>, Option<Arc<ProjectAgent>>)> = Vec::new();
        let mut mistakes = Vec::new();
        for example in examples {
            let agent = match agents.agent_for(example, project, Path::new(self.file)) {
                Ok(agent) => agent,
                Err(wrong) => {
                    mistakes.push(wrong);
                    continue;
                }
            };
            let case = match case_from_example(example, project, agent.as_deref()) {
                Ok(case) => case,
                Err(found) => {
                    // An invalid declaration of a group is reported once, not for each example.
                    let said = |wrong: &Diagnostic, known: &Diagnostic| {
                        wrong.message == known.message && wrong.place == known.place
                    };
                    for wrong in found {
                        if !mistakes.iter().any(|known| said(&wrong, known)) {
                            mistakes.push(wrong);
                        }
                    }
                    continue;
                }
            };
            match suites.last_mut() {
                Some((cases, last)) if is_same_agent(last.as_ref(), agent.as_ref()) => cases.push(case),
                _ => suites.push((vec![case], agent)),
            }
        }
        if !mistakes.is_empty() {
            return Err(self.usage_error(mistakes));
        }
        let suite = Arc::new(Suite::from_program(self.file, self.context.folder.clone()));
        let planned = suites.into_iter().map(|(cases, agent)| PlannedSuite {
            suite: suite.clone(),
            agent,
            declared: Some(cases.into()),
        });
        Ok(planned.collect())
    }

    fn reporters(
        &self,
        arguments: &HarnessArguments,
        outputs: Vec<HarnessReportFile<'_>>,
        setting: &Arc<RunSettings>,
    ) -> Result<ReporterSet, u8> {
        let mut all = ReporterSet::default();
        for HarnessReportFile { path, format } in outputs {
            let name = path.display().to_string();
            let report = reporters::open_report(
                self.open_file(path, reporters::open_output_file)?,
                format,
                &name,
                setting.clone(),
            );
            let report =
                report.map_err(|error| self.run_error(ReportWriteError::new(path, error).to_string()))?;
            all.reporters.push((name, report));
        }
        if let Some(path) = &arguments.trace {
            all.add(
                path.display().to_string(),
                TraceReporter::new(self.open_file(path, reporters::create_file)?),
            );
        }
        let look = ConsoleOptions {
            color: match arguments.color {
                ColorMode::Auto => self.context.color,
                ColorMode::Always => true,
                ColorMode::Never => false,
            },
            width: self.context.width,
            progress: false,
            verbose: arguments.verbose,
            wraps: self.context.environment.contains_key("COLUMNS"),
        };
        let console = ConsoleReporter::new(self.context.output.results(), look, setting.clone());
        let console: Box<dyn Reporter> =
            if arguments.quiet { Box::new(QuietReporter(console)) } else { Box::new(console) };
        all.reporters.push(("standard output".to_string(), console));
        Ok(all)
    }

    /// Notes that `--agent` does not replace agents in the test program.
    fn note_agents_in_program(&self, examples: &[Arc<ExampleSpec>], arguments: &HarnessArguments) {
        let Some(name) = &arguments.agent else { return };
        let is_in_program =
            |example: &&Arc<ExampleSpec>| matches!(example.settings.agent, Some(AgentChoice::InProgram(_)));
        match examples.iter().filter(is_in_program).count() {
            0 => {}
            count => self.print_remark(&format!(
                "note: --agent {name}: {} of {} examples test an agent in the test program and are not affected",
                count,
                examples.len()
            )),
        }
    }
}

/// Commands that run examples of a test file again. `None` if options of the run would be missing.
fn rerun_commands(file: &str, arguments: &HarnessArguments, is_kept: bool) -> Option<RerunCommands> {
    let target = Path::new(file).file_stem()?.to_str()?;
    let has_options = arguments.agent.is_some()
        || arguments.endpoint.is_some()
        || arguments.no_env_file
        || arguments.config.is_some()
        || arguments.simulator.is_some()
        || arguments.runs.is_some()
        || arguments.ignored != IgnoredMode::Skipped;
    if has_options || Path::new(file).parent()?.file_name()? != "tests" {
        return None;
    }
    let command = format!("cargo test --test {target} --");
    let is_whole = arguments.filters.is_empty() && arguments.skip.is_empty();
    Some(RerunCommands {
        failed: (is_kept && is_whole).then(|| format!("{command} --lf")),
        any: command.clone(),
        suites: command,
        trace: None,
    })
}

/// Hides examples that passed or were skipped.
struct QuietReporter<R>(R);

impl<R: Reporter> Reporter for QuietReporter<R> {
    fn report(&mut self, event: &RunEvent) -> io::Result<()> {
        match event {
            RunEvent::CaseEnded(outcome)
                if outcome.verdict.status != VerdictStatus::Failed && !outcome.is_flaky() =>
            {
                Ok(())
            }
            event => self.0.report(event),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Agents of the examples, each created once.
#[derive(Default)]
struct ProgramAgents {
    in_program: Vec<(Arc<InProgramAgent>, Arc<ProjectAgent>)>,
}

impl ProgramAgents {
    fn agent_for(
        &mut self,
        example: &ExampleSpec,
        project: &Project,
        file: &Path,
    ) -> Result<Option<Arc<ProjectAgent>>, Diagnostic> {
        let program = match &example.settings.agent {
            None => return Ok(project.agent_of(&project.root.join(file))),
            Some(AgentChoice::Named(name)) => {
                let tested =
                    project.tested_agent(name).map_err(|wrong| wrong.at(example.facts.at.place()))?;
                return Ok(Some(tested));
            }
            Some(AgentChoice::InProgram(program)) => program,
        };
        if let Some((_, agent)) = self.in_program.iter().find(|(known, _)| Arc::ptr_eq(known, program)) {
            return Ok(Some(agent.clone()));
        }
        let in_code: Arc<dyn CodeAgent> = program.clone();
        let agent = Arc::new(ProjectAgent::in_code(in_code));
        self.in_program.push((program.clone(), agent.clone()));
        Ok(Some(agent))
    }
}

fn is_same_agent(one: Option<&Arc<ProjectAgent>>, other: Option<&Arc<ProjectAgent>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// Converts an example to a case: its declarations become keys of a case file, and its body drives the
/// session.
fn case_from_example(
    example: &Arc<ExampleSpec>,
    project: &Project,
    agent: Option<&ProjectAgent>,
) -> Result<DrivenCase, Diagnostics> {
    let facts = &example.facts;
    let mut written = example.settings.to_json(&facts.name);
    let criteria = facts.criteria.values().filter_map(|own| Some((own.name.clone(), own.to_json()?)));
    let criteria: serde_json::Map<String, serde_json::Value> = criteria.collect();
    if !criteria.is_empty() {
        written["criteria"] = criteria.into();
    }
    let place = facts.at.place();
    let case =
        TestCase::from_program(&written, CaseProgram::default(), &place, project.decode_settings(agent))?;
    let unsound = invalid_topics(facts, &case);
    if !unsound.is_empty() {
        return Err(unsound);
    }
    let player = facts.simulators.iter().rev().find_map(|brief| brief.simulator_reference());
    let simulator = player.map(|who| {
        let brief = SimulatorBrief { reference: Some(who), ..SimulatorBrief::default() };
        CaseSimulator::from_brief(brief, place)
    });
    let case = case.with_simulator(simulator);
    let case = match &facts.scenario {
        Some(scenario) => case.with_scenario((*scenario.inner).clone(), project.redactor()),
        None => case,
    };
    Ok(DrivenCase { case: Arc::new(case), body: Some(Arc::new(ExampleBody(example.clone()))) })
}

/// Returns the errors in the declared topics, including topics that no graph uses.
fn invalid_topics(example: &ExampleFacts, case: &TestCase) -> Diagnostics {
    let mut found = Diagnostics::new();
    for topic in &example.topics {
        match topic.to_case_topic(&example.criteria, &SecretRedactor::default()) {
            Ok(declared) => found.extend(declared.unknown_criteria(&case.vocabulary)),
            Err((words, at)) => {
                let message = format!("topic `{}`: {words}", topic.name);
                found.push(Diagnostic::new(message).at(at.place()));
            }
        }
    }
    found
}
