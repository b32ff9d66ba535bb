//! Roles of a case (simulator and judges), resolved and ready to be asked.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use super::context::RunContext;
use super::script_processes::OverheardTurnLog;
use crate::cases::{McpAddresses, ProgramInputError, Suite, TestCase};
use crate::config::{BoundTarget, Project, ProjectAgent, ResolvedRole, RoleKind, RoleQuery, ScriptScope};
use crate::roles::{RecordedAnswers, RoleCassette, RoleCassetteHandle, RoleClient};
use crate::scripts::{BoundFunction, ScriptCapabilities, ScriptFunction};
use crate::session::{RoleLookup, ScriptToolFunctions, SessionRoles};
use hotseat_checks::{JudgeCriterion, JudgeSelector, JudgedCheck, RoleReference, ScriptCheck};
use hotseat_document::{Diagnostic, Diagnostics, SourceSpan};
use hotseat_targets::message::{ScriptedAnswers, ToolAnswer, ToolFunction};

/// Time limit for an answer of a model or a function, the same as the default turn timeout.
const ROLE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(120);

/// A role that a case needs.
struct RoleRequest<'c> {
    query: RoleQuery<'c>,
    /// The judge as checks refer to it. `None` for simulators.
    judge_ref: Option<JudgeSelector>,
}

/// Lists the roles that a case needs, without duplicates.
fn role_requests<'c>(project: &'c Project, named: CaseScope<'c>) -> Vec<RoleRequest<'c>> {
    let (case, whose) = (named.case, named.script_scope());
    let usual = case.vocabulary.judging();
    let of_case = RoleQuery {
        kind: RoleKind::Judge,
        reference: usual.judge.as_ref(),
        connector: usual.connector.as_deref(),
        is_option: false,
        place: usual.place.as_ref().unwrap_or(&case.place),
        scope: whose,
    };
    let mut all = Vec::new();
    if let Some(simulator) = &case.simulator {
        let wanted = RoleQuery {
            kind: RoleKind::Simulator,
            reference: simulator.reference.as_ref(),
            connector: simulator.options.get("connector").and_then(Value::as_str),
            is_option: true,
            place: &simulator.place,
            scope: whose,
        };
        all.push(RoleRequest { query: wanted, judge_ref: None });
    }
    if case.program.is_some() && case.simulator.is_none() && project.simulator.is_some() {
        // A program may simulate a user at run time.
        let wanted = RoleQuery {
            kind: RoleKind::Simulator,
            reference: None,
            connector: None,
            place: &case.place,
            ..of_case
        };
        all.push(RoleRequest { query: wanted, judge_ref: None });
    }
    let is_known = usual.judge.is_some() || usual.connector.is_some() || project.judge.judge.is_some();
    if case.program.is_some() && is_known {
        // A program may evaluate judged checks at run time.
        all.push(RoleRequest { query: of_case, judge_ref: Some(usual.selector()) });
    }
    if let Some(topics) = case.topics.as_ref().filter(|topics| topics.may_ask_judge()) {
        let wanted = RoleQuery { place: usual.place.as_ref().unwrap_or(&topics.place), ..of_case };
        all.push(RoleRequest { query: wanted, judge_ref: Some(usual.selector()) });
    }
    for check in case.every_check() {
        let Some(judged) = check.as_judged() else { continue };
        let judging = &judged.settings;
        if !is_known && judging.judge.is_none() && judging.connector.is_none() && is_named_by_hook(judged) {
            continue;
        }
        let whom = Some(judging.selector());
        let is_option = judged.has_connector_option();
        let is_same = |known: &RoleRequest<'_>| known.judge_ref == whom && known.query.is_option == is_option;
        if all.iter().any(is_same) {
            continue;
        }
        let (reference, connector) = (judging.judge.as_ref(), judging.connector.as_deref());
        let place = judging.place.as_ref().unwrap_or(&check.place);
        let wanted = RoleQuery { reference, connector, is_option, place, ..of_case };
        all.push(RoleRequest { query: wanted, judge_ref: whom });
    }
    all
}

/// True if the criterion is a variable that a hook sets: it may be the name of one that needs no judge, or has its own.
fn is_named_by_hook(judged: &JudgedCheck) -> bool {
    let JudgeCriterion::Criterion(criterion) = &judged.criterion else { return false };
    let variable = criterion.text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    variable.is_some_and(|name| !name.contains("${"))
}

/// A case with the folders and the agent that its script references are resolved against.
#[derive(Clone, Copy)]
pub struct CaseScope<'a> {
    /// The case.
    pub case: &'a TestCase,
    /// Its suite.
    pub suite: &'a Suite,
    /// The tested agent.
    pub agent: Option<&'a Arc<ProjectAgent>>,
    /// Number of the attempt, from 1.
    pub attempt: usize,
}

impl<'a> CaseScope<'a> {
    /// Scope for resolving scripts.
    pub fn script_scope(self) -> ScriptScope<'a> {
        ScriptScope { folder: &self.suite.folder, agent: self.agent.map(|agent| &**agent) }
    }
}

/// Diagnostics of functions that answer tools of a case and do not exist.
pub fn missing_tool_functions(project: &Project, named: CaseScope<'_>) -> Vec<Diagnostic> {
    let missing = |function: &ToolFunction| {
        let found = project.find_function(&function.reference, named.script_scope());
        Some(found.err()?.at_reference(&function.place))
    };
    named.case.tool_functions().filter_map(missing).collect()
}

impl RunContext {
    /// The functions that answer tools of a case, with their permissions; `None` if there are none.
    pub(super) fn tool_functions(
        self: &Arc<Self>,
        named: CaseScope<'_>,
        target: &BoundTarget,
        hook_variables: &BTreeMap<String, Value>,
    ) -> Option<ScriptToolFunctions> {
        let case = named.case;
        let of_target = target.tools.iter().flat_map(|tool| &tool.answers).filter_map(ToolAnswer::function);
        case.tool_functions().chain(of_target).next()?;
        let identity = self.project.call_settings().identity_before_hooks(case, named.attempt);
        let permissions = self.script_permissions(&[named.script_scope()], hook_variables, &identity);
        Some(ScriptToolFunctions::new(permissions, &case.id))
    }
}

/// Resolves the script functions called by the checks of a case, without duplicates. Fails if a function does
/// not exist.
pub fn check_functions(
    project: &Project,
    named: CaseScope<'_>,
) -> Result<Vec<(String, ScriptFunction)>, Diagnostics> {
    let (case, whose) = (named.case, named.script_scope());
    let mut diagnostics = Diagnostics::new();
    let mut found: Vec<(String, ScriptFunction)> = Vec::new();
    for check in case.every_check() {
        let Some(ScriptCheck { function, .. }) = check.as_script() else { continue };
        let reference = function.to_string();
        if found.iter().any(|(known, _)| *known == reference) {
            continue;
        }
        match project.find_function(&reference, whose) {
            Ok(function) => found.push((reference, function)),
            Err(wrong) => diagnostics.push(wrong.at_reference(&check.place)),
        }
    }
    if diagnostics.is_empty() { Ok(found) } else { Err(diagnostics) }
}

/// Resolves the roles of a case. Fails if a referenced role does not exist.
pub fn case_roles(
    project: &Project,
    named: CaseScope<'_>,
) -> Result<Vec<(RoleReference, ResolvedRole)>, Diagnostics> {
    let mut diagnostics = Diagnostics::new();
    let mut found = Vec::new();
    for request in role_requests(project, named) {
        match project.resolve_role(request.query) {
            Ok(helper) => found.push(helper),
            Err(wrong) => diagnostics.extend(wrong),
        }
    }
    if diagnostics.is_empty() { Ok(found) } else { Err(diagnostics) }
}

/// Returns the settings of the judges of a case.
pub fn judge_settings(project: &Project, named: CaseScope<'_>) -> Vec<String> {
    let judges = role_requests(project, named).into_iter().filter(|request| request.judge_ref.is_some());
    judges.map(|request| project.role_settings(request.query)).collect()
}

/// Prepares the roles of a case and returns the secrets of those that are agents. During a recheck only
/// judges may be asked, and only if enabled and without a stored answer. A cassette records the answers of
/// all roles, or replaces them. Fails if a role is misconfigured.
pub fn open_roles(
    outside: &Arc<RunContext>,
    named: CaseScope<'_>,
    hook_variables: &BTreeMap<String, Value>,
    answers: Option<Arc<RecordedAnswers>>,
    cassette: Option<Arc<RoleCassette>>,
) -> Result<(SessionRoles, Vec<(String, String)>), Diagnostics> {
    let case = named.case;
    let cassette = cassette
        .map(|cassette| RoleCassetteHandle { cassette, redactor: outside.redactor(&[], hook_variables) });
    let functions = check_functions(&outside.project, named)?;
    let requests = role_requests(&outside.project, named);
    let names_at_run_time = case.program.is_some() || !hook_variables.is_empty();
    if !names_at_run_time && functions.is_empty() && requests.is_empty() {
        let (human, judging) = (outside.human.clone(), outside.project.judge.clone());
        return Ok((SessionRoles { human, judging, answers, ..SessionRoles::default() }, Vec::new()));
    }
    let identity = outside.project.call_settings().identity_before_hooks(case, named.attempt);
    let powers = outside.script_permissions(&[named.script_scope()], hook_variables, &identity);
    let own = if answers.is_some() { powers.clone().offline() } else { powers.clone() };
    let functions = functions.into_iter().map(|(name, function)| (name, own.bind(function))).collect();
    let mut partners = SessionRoles {
        human: outside.human.clone(),
        functions,
        judging: outside.project.judge.clone(),
        answers: answers.clone(),
        ..SessionRoles::default()
    };
    if case.program.is_some() {
        let noted = OverheardTurnLog { turns: partners.direct_turns.clone(), tested: named.agent.cloned() };
        let own = outside.script_permissions_with_log(
            &[named.script_scope()],
            hook_variables,
            &identity,
            Some(noted),
        );
        partners.permissions = Some(if answers.is_some() { own.offline() } else { own });
    }
    if names_at_run_time {
        let (outside, powers) = (outside.clone(), powers.clone());
        let (folder, agent) = (named.suite.folder.clone(), named.agent.cloned());
        partners.role_lookup = Some(Arc::new(RoleResolver {
            outside,
            powers,
            folder,
            agent,
            hook_variables: hook_variables.clone(),
            answers: answers.clone(),
            cassette: cassette.clone(),
        }));
    }
    let mut secrets = Vec::new();
    for RoleRequest { query: wanted, judge_ref: whom } in requests {
        let found = outside.project.resolve_role(wanted)?;
        let role = match &answers {
            Some(answers) if whom.is_none() || !answers.may_ask() => RoleClient::offline(&found.0),
            None if is_replay(cassette.as_ref()) => RoleClient::offline(&found.0),
            _ => open_role(outside, &powers, &found, Some(wanted), hook_variables, &mut secrets)?,
        };
        let role = role
            .with_connector(agent_connector(&outside.project, &found, wanted))
            .with_cassette(cassette.clone());
        match whom {
            None => partners.simulators.push((wanted.reference.cloned(), role)),
            Some(whom) => partners.judges.push((whom, Ok(role))),
        }
    }
    Ok((partners, secrets))
}

/// Resolves roles and functions that only the conversation names.
struct RoleResolver {
    outside: Arc<RunContext>,
    powers: ScriptCapabilities,
    /// Folder of the suite and the tested agent, for resolving scripts.
    folder: PathBuf,
    agent: Option<Arc<ProjectAgent>>,
    /// Variables set by hooks.
    hook_variables: BTreeMap<String, Value>,
    /// Stored answers of judges, during a recheck.
    answers: Option<Arc<RecordedAnswers>>,
    cassette: Option<RoleCassetteHandle>,
}

/// True if roles are answered from a cassette.
fn is_replay(cassette: Option<&RoleCassetteHandle>) -> bool {
    cassette.is_some_and(|handle| handle.cassette.is_replay())
}

impl RoleLookup for RoleResolver {
    fn function(&self, reference: &str, place: &SourceSpan) -> Result<BoundFunction, ProgramInputError> {
        let found = self.outside.project.find_function(reference, self.script_scope());
        let function = found.map_err(|wrong| Diagnostics::from(wrong.at_reference(place)))?;
        let powers = self.powers.clone();
        let powers = if self.answers.is_some() { powers.offline() } else { powers };
        Ok(powers.bind(function))
    }

    fn judge(&self, whom: &JudgeSelector, place: &SourceSpan) -> Result<RoleClient, ProgramInputError> {
        self.resolve_role(RoleQuery {
            kind: RoleKind::Judge,
            reference: whom.judge.as_ref(),
            connector: whom.connector.as_deref(),
            is_option: true,
            place,
            scope: self.script_scope(),
        })
    }

    fn simulator(
        &self,
        reference: Option<&RoleReference>,
        place: &SourceSpan,
    ) -> Result<RoleClient, ProgramInputError> {
        self.resolve_role(RoleQuery {
            kind: RoleKind::Simulator,
            reference,
            connector: None,
            is_option: false,
            place,
            scope: self.script_scope(),
        })
    }
}

impl RoleResolver {
    fn script_scope(&self) -> ScriptScope<'_> {
        ScriptScope { folder: &self.folder, agent: self.agent.as_deref() }
    }

    fn resolve_role(&self, wanted: RoleQuery<'_>) -> Result<RoleClient, ProgramInputError> {
        let is_silent = self.answers.as_ref().is_some_and(|answers| !answers.may_ask())
            || is_replay(self.cassette.as_ref());
        let found = self.outside.project.resolve_role(wanted)?;
        let role = match is_silent {
            true => RoleClient::offline(&found.0),
            false => open_role(
                &self.outside,
                &self.powers,
                &found,
                Some(wanted),
                &self.hook_variables,
                &mut Vec::new(),
            )?,
        };
        let connector = agent_connector(&self.outside.project, &found, wanted);
        Ok(role.with_connector(connector).with_cassette(self.cassette.clone()))
    }
}

/// The connector that a role receives in its options: that of an agent.
fn agent_connector<'a>(
    project: &'a Project,
    (_, helper): &(RoleReference, ResolvedRole),
    wanted: RoleQuery<'a>,
) -> Option<&'a str> {
    project.role_connector(wanted).filter(|_| matches!(helper, ResolvedRole::Agent(_)))
}

/// Prepares a role. `powers` are the permissions of its script. Fails if the role is misconfigured.
pub fn open_role(
    outside: &RunContext,
    powers: &ScriptCapabilities,
    (reference, helper): &(RoleReference, ResolvedRole),
    wanted: Option<RoleQuery<'_>>,
    hook_variables: &BTreeMap<String, Value>,
    secrets: &mut Vec<(String, String)>,
) -> Result<RoleClient, Diagnostics> {
    match helper {
        ResolvedRole::Script(function) => {
            Ok(RoleClient::script(reference, powers.bind(function.clone()), ROLE_TIMEOUT))
        }
        ResolvedRole::Connector(name) => {
            Ok(RoleClient::model(reference, outside.project.open_connector(name)?, ROLE_TIMEOUT))
        }
        ResolvedRole::Agent(agent) => {
            if let Some(failure) = outside.start_failure(agent) {
                return Ok(RoleClient::unavailable(reference, &failure.message));
            }
            let target = match outside.bound_target(agent) {
                Some((target, _)) => target.clone(),
                None => outside.bind_agent(agent, hook_variables, McpAddresses::Example)?.0,
            };
            let named = wanted.and_then(|wanted| {
                Some((outside.project.role_connector(wanted)?, Some(wanted.place.clone())))
            });
            let target = outside.project.with_connectors(agent, target, named)?;
            secrets.extend(target.secrets.iter().cloned());
            let means = outside.target_env.clone();
            let open = Arc::new(move || (target.open(&means), ScriptedAnswers::new(target.tools.clone())));
            Ok(RoleClient::agent(reference, open, agent.timeouts.turn, agent.timeouts.idle))
        }
    }
}
