//! Settings of a run as shown in reports.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use url::Url;

use super::results::{CaseInfo, CaseRef};
use super::{ExecutionOptions, RunContext, RunModes, RunPlan};
use crate::cases::OnMissingInput;
use crate::config::{AgentIdentity, Project, ProjectAgent};
use crate::digest::short_digest;
use hotseat_checks::RoleReference;
use hotseat_http::is_loopback;
use hotseat_targets::message::RequestIdentity;
use hotseat_targets::recorder::TrafficLimits;
use hotseat_trace::{canonical_text, optional_members};

optional_members! {
    /// Settings of a run.
    #[derive(Debug, Clone, Serialize, Deserialize)]
    pub struct RunSettings {
        agents: Vec<TestedAgent>,
        /// Displayable paths of the suites.
        pub inputs: Vec<Arc<str>>,
        /// Number of cases in the suites.
        pub total: usize,
        /// Number of selected cases.
        pub selected: usize,
        /// Number of cases with a declared reliability, which run until it is confirmed or refuted.
        #[serde(default)]
        pub declared: usize,
        /// Conversation modes of the selected cases.
        pub modes: RunModes,
        /// Default simulator.
        simulator: Option<RoleReference>,
        /// Default time limit for all turns of a case.
        pub case_timeout: Option<Duration>,
        /// Default turn timeout. `None` if agents have different ones.
        pub turn_timeout: Option<Duration>,
        /// Default user identity.
        pub environment: UserIdentity,
        /// Digest of the context file and of the `limits` of the project; absent without both.
        context_digest?: Option<Arc<str>>,
        /// Currency of costs, if the project names it.
        pub currency?: Option<Arc<str>>,
        /// Options chosen for this run.
        pub choices: RunChoices,
        /// Id of the original run, if this is a recheck.
        pub rechecked?: Option<Arc<str>>,
    }
}

/// User identity sent to agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserIdentity {
    /// The user.
    pub user: Arc<str>,
    /// The user's team.
    pub team: Arc<str>,
    /// Language and region.
    pub locale: Arc<str>,
}

optional_members! {
    /// Options chosen on the command line or in the project file.
    #[derive(Debug, Clone, Default, Serialize, Deserialize)]
    pub struct RunChoices {
        /// Execution options.
        pub options: ExecutionOptions,
        /// True if `parallel` was set explicitly.
        pub parallel_asked: bool,
        /// Pattern for ids or names of cases.
        pub run: Option<String>,
        /// Agent that replaces the agents set in the project file.
        pub agent: Option<String>,
        /// Connector that overrides all others.
        pub connector: Option<String>,
        /// What happens in every case if the agent waits for input that no source provides.
        pub on_missing_input?: Option<OnMissingInput>,
        /// True if no human may be asked.
        pub skip_interactive?: bool,
        /// Displayable paths of the report files.
        pub outputs: Vec<String>,
        /// Commands that run cases of this run again, if it was started by a command line.
        pub rerun?: Option<RerunCommands>,
    }

    /// Commands that run cases again as they ran, quoted for a shell.
    #[derive(Debug, Clone, Default, Serialize, Deserialize)]
    pub struct RerunCommands {
        /// Selects nothing; a case can be named by its file and line.
        pub any: String,
        /// Selects the suites of the run; cases can be selected with `--run`.
        pub suites: String,
        /// Selects the cases of the run that failed, if it is saved.
        pub failed: Option<String>,
        /// Writes the trace of the run, if the commands above do not support `--trace`.
        pub trace?: Option<String>,
    }
}

/// A tested agent as shown in reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestedAgent {
    /// Name in the project, if it has one.
    pub name: Option<String>,
    /// Name in the project, own id, or address: the first one available.
    pub id: String,
    /// Address, command or file. `None` if it differs between cases.
    pub path: Option<String>,
    /// Connector of the language model, if the agent names one.
    pub connector: Option<String>,
    /// Short description for display.
    pub shown: String,
    /// Digest of the recordings or the address that the command line gave in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replaced_by: Option<String>,
}

/// Returns the digest of the context file and of the limits of a project, if it has one of them.
fn context_digest(project: &Project) -> Option<Arc<str>> {
    let context = project.call_settings().context.as_ref().map(|file| file.members().clone());
    if context.is_none() && project.limits == TrafficLimits::default() {
        return None;
    }
    // Machines may have different secrets.
    let context = canonical_text(&project.redactor().json(context.unwrap_or_default()));
    Some(short_digest(&format!("{context}\n{:?}", project.limits), 8).into())
}

impl RunSettings {
    /// Creates the settings of a run.
    pub fn new(plan: &RunPlan, outside: &RunContext, choices: RunChoices) -> Self {
        let agents = plan.agents().map(|agent| TestedAgent::from_agent(agent, outside)).collect();
        let mut limits = plan.agents().map(|agent| agent.timeouts.turn);
        let first = limits.next();
        let clean = |text: &str| -> Arc<str> { outside.project.redactor().text(text).into() };
        let RequestIdentity { user, team, locale, .. } = outside.project.call_settings().identity();
        RunSettings {
            inputs: plan.suites().map(|suite| clean(&suite.shown)).collect(),
            total: plan.total,
            selected: plan.selected,
            declared: plan.declared_count(&choices.options),
            modes: plan.modes.clone(),
            simulator: outside.project.simulator.clone(),
            case_timeout: outside.case_timeout,
            turn_timeout: first.filter(|first| limits.all(|limit| limit == *first)),
            environment: UserIdentity {
                user: clean(&user.text),
                team: clean(&team.text),
                locale: clean(&locale.text),
            },
            context_digest: context_digest(&outside.project),
            currency: outside.project.currency.as_deref().map(clean),
            choices: RunChoices {
                run: choices.run.map(|run| clean(&run).to_string()),
                rerun: choices.rerun.map(|rerun| RerunCommands {
                    any: clean(&rerun.any).to_string(),
                    suites: clean(&rerun.suites).to_string(),
                    failed: rerun.failed.map(|failed| clean(&failed).to_string()),
                    trace: rerun.trace.map(|trace| clean(&trace).to_string()),
                }),
                ..choices
            },
            agents,
            rechecked: None,
        }
    }

    /// Settings of a recheck: agents and limits come from the original run.
    #[must_use]
    pub fn with_recorded_agents(self, of: &str, kept: &RunSettings) -> RunSettings {
        RunSettings {
            agents: kept.agents.clone(),
            simulator: kept.simulator.clone(),
            case_timeout: kept.case_timeout,
            turn_timeout: kept.turn_timeout,
            environment: kept.environment.clone(),
            context_digest: kept.context_digest.clone(),
            rechecked: Some(of.into()),
            ..self
        }
    }

    /// The tested agents, in the order of the suites.
    pub fn agents(&self) -> impl ExactSizeIterator<Item = &TestedAgent> {
        self.agents.iter()
    }

    /// True if the agents got the same context and were limited alike.
    pub fn has_context_of(&self, other: &RunSettings) -> bool {
        self.context_digest == other.context_digest
    }

    /// Names of the options that differ and can give the same cases other verdicts. The number of parallel conversations
    /// and the folders of agents do not matter, and machines differ in them.
    pub fn differing_options(&self, other: &RunSettings) -> Vec<&'static str> {
        let (choices, others) = (&self.choices, &other.choices);
        let ExecutionOptions {
            parallel: _,
            fail_fast,
            runs,
            min_pass_rate,
            as_declared,
            reliability,
            max_invalid,
            retries,
            default_retries,
            fail_on_skip,
        } = choices.options;
        let (theirs, identity, their_identity) = (others.options, &self.environment, &other.environment);
        let same = [
            ("--runs", (runs, as_declared) == (theirs.runs, theirs.as_declared)),
            ("--min-pass-rate", min_pass_rate == theirs.min_pass_rate),
            ("--max-invalid", max_invalid == theirs.max_invalid),
            ("--retries", retries == theirs.retries),
            ("`retries` of the project", default_retries == theirs.default_retries),
            ("`reliability` of the project", reliability == theirs.reliability),
            ("--fail-fast", fail_fast == theirs.fail_fast),
            ("--fail-on-skip", fail_on_skip == theirs.fail_on_skip),
            ("--connector", choices.connector == others.connector),
            ("--on-missing-input", choices.on_missing_input == others.on_missing_input),
            ("--skip-interactive", choices.skip_interactive == others.skip_interactive),
            ("--timeout", self.case_timeout == other.case_timeout),
            ("the timeout of turns", self.turn_timeout == other.turn_timeout),
            ("--user", identity.user == their_identity.user),
            ("--team", identity.team == their_identity.team),
            ("--locale", identity.locale == their_identity.locale),
            ("--simulator", self.simulator == other.simulator),
        ];
        same.into_iter().filter(|(_, is_same)| !is_same).map(|(name, _)| name).collect()
    }

    /// The agent tested by a case.
    pub fn agent_of_case(&self, case_ref: &CaseRef) -> Option<&TestedAgent> {
        self.agents.get(case_ref.agent?)
    }

    /// Displayable names of the simulators.
    pub fn simulators(&self) -> Vec<String> {
        let mut all: Vec<String> =
            self.modes.simulators.iter().map(|reference| self.role_name(reference.as_ref())).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Displayable name of the simulator of a case.
    pub fn simulator_name(&self, case: &CaseInfo) -> Option<String> {
        case.simulator.as_ref().map(|simulator| self.role_name(simulator.reference.as_ref()))
    }

    /// Displayable name of a role. An agent is named without a prefix.
    fn role_name(&self, reference: Option<&RoleReference>) -> String {
        match reference.or(self.simulator.as_ref()) {
            Some(RoleReference::Agent(id)) => id.clone(),
            Some(other) => other.to_string(),
            None => "simulator".to_string(),
        }
    }

    /// Effective number of concurrent conversations.
    pub fn effective_parallelism(&self) -> usize {
        match self.choices.parallel_asked {
            true => self.choices.options.parallel,
            // With declared reliabilities the number of attempts is not known in advance.
            false if self.declared > 0 => self.choices.options.parallel,
            false => self.choices.options.parallel.min(self.selected * self.choices.options.runs),
        }
    }

    /// Connectors of the agents without duplicates, or only the connector that overrides them.
    pub fn connectors(&self) -> Vec<&str> {
        if let Some(connector) = &self.choices.connector {
            return vec![connector];
        }
        let mut all: Vec<&str> = self.agents().filter_map(|agent| agent.connector.as_deref()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

impl TestedAgent {
    /// Its identity in other runs.
    pub fn identity(&self) -> AgentIdentity {
        AgentIdentity { name: self.name.clone(), replaced_by: self.replaced_by.clone() }
    }

    /// Address of an agent at a server, or the command of a program. The port on this machine and the folders of absolute
    /// paths can differ from run to run, so they are left out.
    pub fn stable_address(&self) -> Option<String> {
        let path = self.path.as_deref()?;
        if path.starts_with('`') {
            let words = path.trim_matches('`').split(' ').map(|word| match Path::new(word) {
                path if path.is_absolute() => path.file_name().and_then(|name| name.to_str()).unwrap_or(word),
                _ => word,
            });
            return Some(words.collect::<Vec<_>>().join(" "));
        }
        let mut address = Url::parse(path).ok().filter(Url::has_host)?;
        if is_loopback(&address) {
            address.set_port(None).ok()?;
        }
        Some(address.into())
    }

    fn from_agent(agent: &Arc<ProjectAgent>, outside: &RunContext) -> TestedAgent {
        let bound = outside.target_summary(agent);
        let (own_id, path, connector, shown) = match bound {
            Some(bound) => (bound.id, Some(bound.path), bound.connector, bound.label),
            None => (None, None, None, "a different target per case".to_string()),
        };
        let AgentIdentity { name, replaced_by } = agent.identity();
        let shown = match (&name, &own_id) {
            // The project name replaces the agent's own id.
            (Some(name), Some(own_id)) => shown.replacen(own_id.as_str(), name, 1),
            (Some(name), None) => format!("{name} ({shown})"),
            (None, _) => shown,
        };
        let id = name.clone().or(own_id).or_else(|| path.clone()).unwrap_or_else(|| "target".to_string());
        TestedAgent { name, id, path, connector, shown, replaced_by }
    }
}
