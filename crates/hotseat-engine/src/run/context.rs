//! Shared environment of all attempts of a run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hotseat_trace::AttemptFailure;
use serde_json::Value;

use super::attempt_services::RunModels;
use super::backlog::ReportBacklog;
use super::cassettes::RunCassettes;
use super::mcp_servers::RunMcp;
use super::recheck_source::RecheckSource;
use super::running::RunningConversations;
use super::shown_calls::ShownCalls;
use crate::cases::{
    HookCommand, HumanInput, McpAddresses, OnMissingInput, PromptPolicy, TestCase, VariableScope,
};
use crate::config::{BoundTarget, Project, ProjectAgent, TargetEnv, TargetSummary, named_secrets};
use crate::session::HumanPrompter;
use hotseat_document::{Diagnostic, Diagnostics};
use hotseat_http::check_proxies;
use hotseat_targets::connection::http::HttpClient;
use hotseat_targets::message::RequestIdentity;
use hotseat_targets::process::ProjectServers;
use hotseat_targets::recorder::{ModelPrices, RunTraffic, SecretRedactor, collect_secrets};

/// Everything an attempt needs besides its case.
pub struct RunContext {
    /// The project.
    pub project: Arc<Project>,
    /// Default time limit for all turns of a case.
    pub case_timeout: Option<Duration>,
    /// Retention of events.
    pub retention: EventRetention,
    /// Token prices.
    pub(super) prices: ModelPrices,
    /// Limits and totals of the network traffic of all agents.
    pub(super) traffic: Arc<RunTraffic>,
    /// Overrides from the command line.
    pub overrides: CaseOverrides,
    /// Saved conversations to evaluate instead of contacting agents.
    pub recheck: Option<RecheckSource>,
    /// Source of human input, if available.
    pub human: Option<Arc<dyn HumanPrompter>>,
    /// Backlog of events that reporters have not handled yet.
    pub backlog: Arc<ReportBacklog>,
    /// Conversations that are running now.
    pub running: Arc<RunningConversations>,
    /// MCP servers of the run, if a case has any.
    pub(super) mcp: Option<RunMcp>,
    /// Proxied MCP servers of conversations that ended. True if an agent connected to it.
    pub(super) watched_servers: Mutex<BTreeMap<Arc<str>, bool>>,
    /// Agents that may hide their calls.
    pub shown_calls: ShownCalls,
    /// Served models of the run, if a case has any.
    pub(super) models: Option<RunModels>,
    /// Cassettes of the cases, if the run records or replays them.
    pub cassettes: Option<RunCassettes>,
    /// Resources for opening targets.
    pub(super) target_env: TargetEnv,
    /// Targets that are the same for every case, with their redactors.
    bound_targets: Vec<(Arc<ProjectAgent>, BoundTarget, SecretRedactor)>,
    /// Agents of the run whose `start` command failed, and how.
    pub(super) failed_starts: Vec<(Arc<ProjectAgent>, AttemptFailure)>,
}

/// Retention of conversation events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventRetention {
    /// No events, only results.
    Nothing,
    /// Events.
    Events,
    /// Events, and the raw data received.
    Raw,
}

/// Command-line options that override every case.
#[derive(Debug, Clone, Copy, Default)]
pub struct CaseOverrides {
    /// Action when the agent waits for input that no source provides.
    pub on_missing_input: Option<OnMissingInput>,
    /// Overrides when a human is asked.
    pub human: Option<HumanPolicy>,
    /// True for a sweep of faults: assertions about other faults than that of the conversation are left out.
    pub is_sweep: bool,
}

/// Policy for asking a human, regardless of the case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HumanPolicy {
    /// Never.
    Never,
    /// In every case, in this way.
    Always(PromptPolicy),
}

impl RunContext {
    /// Creates the context of a run with these agents. Agents that do not depend on hook variables are
    /// resolved immediately.
    ///
    /// # Errors
    /// The diagnostics of invalid agents, and of a proxy of the environment that cannot be used.
    pub fn new<'a>(
        project: Arc<Project>,
        agents: impl Iterator<Item = &'a Arc<ProjectAgent>>,
        http: Arc<HttpClient>,
        case_timeout: Option<Duration>,
        keep: EventRetention,
    ) -> Result<Self, Diagnostics> {
        check_proxies(project.environment()).map_err(Diagnostic::new)?;
        let means = TargetEnv {
            http,
            environment: project.environment().clone(),
            servers: ProjectServers::new(&project.root),
            keep_raw: keep == EventRetention::Raw,
        };
        let mut outside = RunContext {
            prices: project.prices(),
            traffic: Arc::new(RunTraffic::new(project.limits)),
            project,
            case_timeout,
            retention: keep,
            overrides: CaseOverrides::default(),
            recheck: None,
            human: None,
            backlog: Arc::default(),
            running: Arc::default(),
            mcp: None,
            watched_servers: Mutex::default(),
            shown_calls: ShownCalls::default(),
            models: None,
            cassettes: None,
            target_env: means,
            bound_targets: Vec::new(),
            failed_starts: Vec::new(),
        };
        for agent in agents.filter(|agent| agent.is_same_for_all()) {
            let (target, redactor) = outside.bind_agent(agent, &BTreeMap::new(), McpAddresses::Unknown)?;
            outside.bound_targets.push((agent.clone(), target, redactor));
        }
        Ok(outside)
    }

    /// Displayable description of an agent's target. `None` if it differs between cases in more than the addresses
    /// of MCP servers.
    pub fn target_summary(&self, agent: &Arc<ProjectAgent>) -> Option<TargetSummary> {
        let (target, redactor) = match self.bound_target(agent) {
            Some((target, redactor)) => (target.clone(), redactor.clone()),
            None if agent.uses_hook_variables => return None,
            None => self.bind_agent(agent, &BTreeMap::new(), McpAddresses::Example).ok()?,
        };
        let harmless = |text: String| agent.hide_example_addresses(&redactor.text(&text));
        let TargetSummary { id, path, connector, label: shown } = target.summary();
        Some(TargetSummary {
            id: id.map(harmless),
            path: harmless(path),
            connector: connector.map(harmless),
            label: harmless(shown),
        })
    }

    pub(super) fn bound_target(&self, agent: &Arc<ProjectAgent>) -> Option<(&BoundTarget, &SecretRedactor)> {
        let bound = self.bound_targets.iter().find(|(known, ..)| Arc::ptr_eq(known, agent));
        bound.map(|(_, target, redactor)| (target, redactor))
    }

    /// Failure of the `start` command of an agent.
    pub(super) fn start_failure(&self, agent: &Arc<ProjectAgent>) -> Option<&AttemptFailure> {
        let failed = self.failed_starts.iter().find(|(known, _)| Arc::ptr_eq(known, agent));
        failed.map(|(_, failure)| failure)
    }

    pub(super) fn case_variables<'a>(
        &'a self,
        hook_variables: &'a BTreeMap<String, Value>,
    ) -> VariableScope<'a> {
        VariableScope { hook_variables, mcp: McpAddresses::Example, ..self.project.variables() }
    }

    /// Resolves an agent with hook variables and creates the redactor for its secrets.
    pub(super) fn bind_agent(
        &self,
        agent: &ProjectAgent,
        hook_variables: &BTreeMap<String, Value>,
        mcp: McpAddresses<'_>,
    ) -> Result<(BoundTarget, SecretRedactor), Diagnostics> {
        let target = agent.bind(VariableScope { mcp, ..self.case_variables(hook_variables) })?;
        let redactor = self.redactor(&target.secrets, hook_variables);
        Ok((target, redactor))
    }

    /// Creates a redactor for the secrets of the project, a target, and hook variables.
    pub(super) fn redactor(
        &self,
        of_target: &[(String, String)],
        hook_variables: &BTreeMap<String, Value>,
    ) -> SecretRedactor {
        let (environment, named) = (self.project.environment(), &self.project.secrets);
        let mut of_hooks = Vec::new();
        for (name, value) in hook_variables {
            collect_secrets(name, value, named.contains(name), &mut of_hooks);
        }
        let of_target = of_target.iter().cloned();
        SecretRedactor::new(
            of_target
                .chain(named_secrets(environment, named))
                .chain(self.project.header_secrets())
                .chain(of_hooks),
        )
    }
}

/// Sets the environment variables of a hook that identify the user.
pub(super) fn set_identity_env(identity: &RequestIdentity, hook: &mut HookCommand) {
    for (name, word) in [("USER", &identity.user), ("TEAM", &identity.team), ("LOCALE", &identity.locale)] {
        hook.env.entry(format!("HOTSEAT_{name}")).or_insert_with(|| word.text.to_string());
    }
}

impl CaseOverrides {
    /// Applies the overrides to a case.
    pub(super) fn apply_to(self, case: Arc<TestCase>) -> Arc<TestCase> {
        if let CaseOverrides { on_missing_input: None, human: None, is_sweep: false } = self {
            return case;
        }
        let CaseOverrides { on_missing_input, human: person, is_sweep } = self;
        let on_missing_input = on_missing_input.unwrap_or(case.on_missing_input);
        let interactive = match (person, &case.interactive) {
            (None, own) => own.clone(),
            (Some(HumanPolicy::Never), _) => None,
            (Some(HumanPolicy::Always(policy)), Some(own)) => Some(HumanInput { policy, ..own.clone() }),
            (Some(HumanPolicy::Always(policy)), None) => Some(HumanInput::new(policy, case.place.clone())),
        };
        let mut case = case;
        let own = Arc::make_mut(&mut case);
        (own.on_missing_input, own.interactive, own.is_swept) = (on_missing_input, interactive, is_sweep);
        case
    }
}
