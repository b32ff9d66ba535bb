//! The examples that are selected are carried out: as `hotseat test` carries out its cases.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

use hotseat_document::{Diagnostic, Diagnostics};
use hotseat_trace::Status;
use tokio::sync::watch;

use super::super::agents::{AgentChoice, Program};
use super::super::hold::Held;
use super::super::line::lost;
use super::super::tree::Example;
use super::arguments::{Arguments, Color};
use super::{Harness, exit};
use crate::adapters::http::Http;
use crate::adapters::in_code::InCode;
use crate::cases::{Brief, Case, Suite};
use crate::checks::Reference;
use crate::config::{Agent, Project, Whose, shown};
use crate::report::{self, Console, Format, Look, NotWritable, Reporter, TraceLines};
use crate::run::{
    self, Choices, Control, Keep, Options, Outside, PassRate, Plan, RunEvent, Selection, Setting, Signals,
    Summary, execute,
};
use crate::store::{About, Keeping, Limits, Origin, Store, StoreError, store_of};

/// How many conversations are held at once where nobody says.
const PARALLEL: usize = 8;

/// A report file that is still empty.
struct Output {
    name: String,
    file: std::fs::File,
    format: Format,
}

/// A suite and the agent that it tests.
type Tested = (Suite, Option<Arc<Agent>>);

impl Harness {
    /// Runs examples; the exit code.
    pub(super) fn carry_out(&self, examples: Vec<Arc<Example>>, arguments: &Arguments) -> Result<u8, u8> {
        let project = self.project(arguments)?;
        let options = self.options(arguments, &project)?;
        let outputs = self.outputs(arguments)?;
        let suites = self.suites(&examples, &project)?;
        let among = arguments.last_failed.then(|| self.last_failed(&project)).transpose()?;
        let selection = Selection { among, ..Selection::default() };
        let plan = Plan::load_with(suites, selection, &project).map_err(|found| self.refuse(found))?;
        if plan.selected == 0 {
            self.say("no examples: none of those that failed in the last run is selected");
            return Ok(exit::NOTHING_SELECTED);
        }
        if plan.lacks_agent() {
            return Err(self.refuse([project.no_target()]));
        }
        let is_kept = project.store.on && project.file.is_some() && !arguments.no_store;
        let keep = match arguments.trace {
            Some(_) => Keep::Raw,
            None if is_kept => Keep::Events,
            None => Keep::Nothing,
        };
        let (project, http) = (Arc::new(project), Arc::new(Http::default()));
        let outside = Outside::new(project, plan.reached(), http, arguments.timeout, keep);
        let outside = Arc::new(outside.map_err(|found| self.refuse(found))?);
        let choices = Choices {
            options,
            parallel_asked: arguments.parallel.is_some(),
            outputs: outputs.iter().map(|output| output.name.clone()).collect(),
            agent: arguments.agent.clone(),
            ..Choices::default()
        };
        let setting = Arc::new(Setting::new(&plan, &outside, choices));
        let mut reporters = self.reporters(arguments, outputs, &setting)?;
        if is_kept {
            reporters.kept = self.keeping(arguments, &outside.project, &plan, &setting);
        }
        self.note_agents_in_program(&examples, arguments);
        let plan = Arc::new(plan);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| self.broken(format!("cannot start: {error}")))?;
        let ended = runtime.block_on(async {
            let (wishes, control) = watch::channel(Control::Run);
            let signals =
                Signals::new().map_err(|error| vec![Diagnostic::new(format!("cannot start: {error}"))])?;
            for words in run::end_orphans(&outside, &control).await {
                self.say(&format!("warning: {words}"));
            }
            tokio::select! {
                ended = hold_all(&plan, outside, options, control, &mut reporters) => ended,
                () = signals.pass_on(wishes) => Ok(Summary { interrupted: true, ..Summary::default() }),
            }
        });
        // Examples that are stuck in something uninterruptible must not keep the program.
        runtime.shutdown_background();
        let summary = ended.map_err(|mistakes| {
            self.complain(mistakes);
            exit::BROKEN
        })?;
        if let Err(error) = &reporters.kept {
            self.say(&format!("warning: this run is not kept: {error}"));
        }
        for words in &reporters.errors {
            self.say(&format!("error: {words}"));
        }
        let lost = lost();
        for words in &lost {
            self.say(&format!("error: {words}"));
        }
        Ok(match () {
            () if !lost.is_empty() => exit::BROKEN,
            () if summary.interrupted => exit::INTERRUPTED,
            () if !reporters.errors.is_empty() => exit::BROKEN,
            () if summary.never_reached() => exit::BROKEN,
            () if summary.failed > 0 => exit::FAILED,
            () => exit::PASSED,
        })
    }

    fn broken(&self, words: String) -> u8 {
        self.complain([Diagnostic::new(words)]);
        exit::BROKEN
    }

    /// The project: the file that is named, the nearest one upwards, or none at all.
    fn project(&self, arguments: &Arguments) -> Result<Project, u8> {
        let environment = self.world.environment.clone();
        let file = match &arguments.config {
            Some(config) => Some((self.path(config), config.clone())),
            None => Project::find(&self.world.folder).map(|path| {
                let name = shown(&path, &self.world.folder);
                (path, name)
            }),
        };
        let mut project = match file {
            Some((path, name)) => {
                Project::read(&path, &name, environment).map_err(|found| self.refuse(found))?
            }
            None => Project::without_file(self.world.folder.clone(), environment),
        };
        if let Some(name) = &arguments.agent {
            let chosen = match name.strip_prefix("replay:") {
                Some(from) => project.replay(from, &self.world.folder),
                None => project.choose(name).map_err(Into::into),
            };
            chosen.map_err(|found| self.refuse(found))?;
        }
        if let Some(written) = &arguments.simulator {
            let who = Reference::parse(written).map_err(|words| self.refuse([Diagnostic::new(words)]))?;
            let whose = Whose { folder: &self.world.folder, agent: None };
            project.find_helper(&who, None, whose).map_err(|found| self.refuse(found))?;
            project.simulator = Some(who);
        }
        Ok(project)
    }

    fn options(&self, arguments: &Arguments, project: &Project) -> Result<Options, u8> {
        let runs = arguments.runs.or(project.runs).unwrap_or(1);
        if runs > 1 && arguments.retries.is_some_and(|retries| retries > 0) {
            let message = format!("--retries and {runs} runs of each example: one of the two");
            return Err(self.refuse([Diagnostic::new(message)]));
        }
        let rate = arguments.min_pass_rate.or(project.min_pass_rate).and_then(PassRate::new);
        Ok(Options {
            parallel: arguments.parallel.or(project.parallel).unwrap_or(PARALLEL),
            fail_fast: arguments.fail_fast,
            runs,
            min_pass_rate: rate.unwrap_or(PassRate::ALL),
            // Whoever says how many runs there are does not want as many as it takes.
            as_declared: arguments.runs.is_none(),
            reliability: project.reliability,
            redraws: project.redraws,
            retries: arguments.retries,
            default_retries: project.retries,
            fail_on_skip: false,
        })
    }

    /// Report files that are still empty.
    fn outputs(&self, arguments: &Arguments) -> Result<Vec<Output>, u8> {
        let mut outputs = Vec::new();
        for path in &arguments.outputs {
            let name = path.display().to_string();
            let Some(format) = Format::of(path) else {
                let message =
                    format!("--output {name}: the ending names the format, one of {}", report::ENDINGS);
                return Err(self.refuse([Diagnostic::new(message)]));
            };
            let file = report::create(&self.world.folder.join(path));
            let file = file.map_err(|error| self.broken(NotWritable::new(path, error).to_string()))?;
            outputs.push(Output { name, file, format });
        }
        Ok(outputs)
    }

    /// The examples as suites: one for each stretch of examples that test the same agent.
    fn suites(&self, examples: &[Arc<Example>], project: &Project) -> Result<Vec<Tested>, u8> {
        let mut agents = Agents::default();
        let mut suites: Vec<(Vec<Case>, Option<Arc<Agent>>)> = Vec::new();
        let mut mistakes = Vec::new();
        for example in examples {
            let agent = match agents.of(example, project, Path::new(self.file)) {
                Ok(agent) => agent,
                Err(wrong) => {
                    mistakes.push(wrong);
                    continue;
                }
            };
            let case = match case(example, project, agent.as_deref()) {
                Ok(case) => case,
                Err(found) => {
                    // What a group declares is wrong once, and not for each of its examples.
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
                Some((cases, last)) if same(last.as_ref(), agent.as_ref()) => cases.push(case),
                _ => suites.push((vec![case], agent)),
            }
        }
        if !mistakes.is_empty() {
            return Err(self.refuse(mistakes));
        }
        let suite = |cases| Suite::in_program(cases, self.file, self.world.folder.clone());
        Ok(suites.into_iter().map(|(cases, agent)| (suite(cases), agent)).collect())
    }

    fn reporters(
        &self,
        arguments: &Arguments,
        outputs: Vec<Output>,
        setting: &Arc<Setting>,
    ) -> Result<Reporters, u8> {
        let mut all: Vec<(String, Box<dyn Reporter>)> = Vec::new();
        for Output { name, file, format } in outputs {
            let report = report::open(file, format, &name, setting.clone());
            let report =
                report.map_err(|error| self.broken(NotWritable::new(Path::new(&name), error).to_string()))?;
            all.push((name, report));
        }
        if let Some(path) = &arguments.trace {
            let file = report::create(&self.world.folder.join(path));
            let file = file.map_err(|error| self.broken(NotWritable::new(path, error).to_string()))?;
            all.push((path.display().to_string(), Box::new(TraceLines::new(file))));
        }
        let look = Look {
            color: match arguments.color {
                Color::Auto => self.world.color,
                Color::Always => true,
                Color::Never => false,
            },
            width: self.world.width,
            progress: false,
            verbose: arguments.verbose,
        };
        let console = Console::new(self.world.output.results(), look, setting.clone());
        let console: Box<dyn Reporter> =
            if arguments.quiet { Box::new(Quiet(console)) } else { Box::new(console) };
        all.push(("standard output".to_string(), console));
        Ok(Reporters { all, errors: Vec::new(), kept: Ok(None) })
    }

    /// Says that an agent of the command line does not take the place of those in the program.
    fn note_agents_in_program(&self, examples: &[Arc<Example>], arguments: &Arguments) {
        let Some(name) = &arguments.agent else { return };
        let is_in_program =
            |example: &&Arc<Example>| matches!(example.settings.agent, Some(AgentChoice::InProgram(_)));
        match examples.iter().filter(is_in_program).count() {
            0 => {}
            count => self.say(&format!(
                "note: --agent {name}: {} of {} examples test an agent in the program all the same",
                count,
                examples.len()
            )),
        }
    }

    /// The examples that failed in the last run of this test file, by the names of their suites and by their names.
    fn last_failed(&self, project: &Project) -> Result<BTreeSet<(String, String)>, u8> {
        let found = Store::open(&store_of(&project.root)).and_then(|store| {
            let head = store.last_of(Some(self.file), None)?;
            Ok((store.failed(&head)?, head))
        });
        let (failed, head) = found.map_err(|error| match error {
            StoreError::NothingKept(_) | StoreError::NoSuchRun(_) => {
                self.refuse([Diagnostic::new(error.to_string())])
            }
            StoreError::Unusable(_) => self.broken(error.to_string()),
        })?;
        if failed.is_empty() {
            self.say(&format!("nothing selected: nothing failed in the last run, {}", head.short()));
            return Err(exit::NOTHING_SELECTED);
        }
        Ok(failed)
    }

    /// Prepares to keep the run beside the project file.
    ///
    /// # Errors
    /// Why it cannot be kept.
    fn keeping(
        &self,
        arguments: &Arguments,
        project: &Project,
        plan: &Plan,
        setting: &Arc<Setting>,
    ) -> Result<Option<Keeping>, StoreError> {
        let redactor = project.redactor();
        let about = About {
            setting: setting.clone(),
            total: plan.selected,
            parallel: setting.choices.options.parallel,
            hotseat: env!("CARGO_PKG_VERSION").to_string(),
            folder: self.world.folder.clone(),
            project: project.root.clone(),
            command: self.arguments.iter().map(|argument| redactor.text(argument).into_owned()).collect(),
            cases: plan.digest.clone(),
            origin: Origin::Held,
            shard: None,
            of_all: plan.of_all,
            only_failed: arguments.last_failed,
            program: Some(self.file.to_string()),
        };
        let limits = Limits::or_usual(project.store.keep, project.store.max_size);
        let keeping = Keeping::new(&store_of(&project.root), about, limits)?;
        Ok(Some(keeping.hiding(redactor)))
    }
}

async fn hold_all(
    plan: &Arc<Plan>,
    outside: Arc<Outside>,
    options: Options,
    control: watch::Receiver<Control>,
    reporters: &mut Reporters,
) -> Result<Summary, Vec<Diagnostic>> {
    let mut agents = match run::start(plan, &outside, &control).await {
        Ok(agents) => agents,
        Err(None) => return Ok(Summary { interrupted: true, ..Summary::default() }),
        Err(Some(failure)) => {
            let wrong = Diagnostic::new(failure.message);
            return Err(vec![match failure.detail {
                Some(detail) => wrong.help(detail),
                None => wrong,
            }]);
        }
    };
    let mut report = |event: RunEvent| reporters.report(&event);
    let ended = execute(plan, outside, options, control, &mut agents, None, &mut report).await;
    run::stop(agents).await;
    ended
}

/// Says nothing of examples that passed or were left out.
struct Quiet<R>(R);

impl<R: Reporter> Reporter for Quiet<R> {
    fn report(&mut self, event: &RunEvent) -> io::Result<()> {
        match event {
            RunEvent::CaseEnded(outcome)
                if outcome.verdict.status != Status::Failed && !outcome.is_flaky() =>
            {
                Ok(())
            }
            event => self.0.report(event),
        }
    }
}

/// Everybody who is told of the run. One that cannot write is dropped; the run goes on, and its exit code tells.
struct Reporters {
    all: Vec<(String, Box<dyn Reporter>)>,
    errors: Vec<String>,
    /// Who keeps the run, if it is kept, or why it is not.
    kept: Result<Option<Keeping>, StoreError>,
}

impl Reporters {
    fn report(&mut self, event: &RunEvent) {
        // What anybody was told of is there after a kill.
        if let Ok(Some(keeping)) = &mut self.kept
            && let Err(error) = keeping.keep(std::slice::from_ref(event))
        {
            self.kept = Err(error);
        }
        let errors = &mut self.errors;
        self.all.retain_mut(|(name, reporter)| match reporter.report(event) {
            Ok(()) => true,
            Err(error) => {
                // Whoever read our output has read enough.
                if error.kind() != io::ErrorKind::BrokenPipe {
                    errors.push(format!("cannot write {name}: {error}"));
                }
                false
            }
        });
    }
}

/// The agents of examples, each once.
#[derive(Default)]
struct Agents {
    in_program: Vec<(Arc<Program>, Arc<Agent>)>,
}

impl Agents {
    fn of(
        &mut self,
        example: &Example,
        project: &Project,
        file: &Path,
    ) -> Result<Option<Arc<Agent>>, Diagnostic> {
        let program = match &example.settings.agent {
            None => return Ok(project.agent_of(&project.root.join(file))),
            Some(AgentChoice::Named(name)) => {
                let tested = project.tested(name).map_err(|wrong| wrong.at(example.at.place()))?;
                return Ok(Some(tested));
            }
            Some(AgentChoice::InProgram(program)) => program,
        };
        if let Some((_, agent)) = self.in_program.iter().find(|(known, _)| Arc::ptr_eq(known, program)) {
            return Ok(Some(agent.clone()));
        }
        let in_code: Arc<dyn InCode> = program.clone();
        let agent = Arc::new(Agent::in_code(in_code));
        self.in_program.push((program.clone(), agent.clone()));
        Ok(Some(agent))
    }
}

fn same(one: Option<&Arc<Agent>>, other: Option<&Arc<Agent>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// An example as a case: what it declares is what a case file would say, and its body drives the session.
fn case(example: &Arc<Example>, project: &Project, agent: Option<&Agent>) -> Result<Case, Diagnostics> {
    let mut written = example.settings.written(&example.name);
    let criteria = example.criteria.values().filter_map(|own| Some((own.name.clone(), own.written()?)));
    let criteria: serde_json::Map<String, serde_json::Value> = criteria.collect();
    if !criteria.is_empty() {
        written["criteria"] = criteria.into();
    }
    let place = example.at.place();
    let body = Arc::new(Held(example.clone()));
    let case = Case::of_program(&written, body, &place, project.decoding(agent))?;
    let unsound = unsound_topics(example, &case);
    if !unsound.is_empty() {
        return Err(unsound);
    }
    let player = example.simulators.iter().rev().find_map(|brief| brief.player());
    let simulator = player.map(|who| Brief { reference: Some(who), ..Brief::default() }.simulator(place));
    let case = case.with_simulator(simulator);
    Ok(match &example.scenario {
        Some(scenario) => case.held_with((*scenario.inner).clone(), project.redactor()),
        None => case,
    })
}

/// What is wrong with the topics that are declared for an example, whether a graph has them or not.
fn unsound_topics(example: &Example, case: &Case) -> Diagnostics {
    let mut found = Diagnostics::new();
    for topic in &example.topics {
        match topic.declared(example) {
            Ok(declared) => found.extend(declared.unknown_criteria(&case.vocabulary)),
            Err((words, at)) => {
                let message = format!("topic `{}`: {words}", topic.name);
                found.push(Diagnostic::new(message).at(at.place()));
            }
        }
    }
    found
}
