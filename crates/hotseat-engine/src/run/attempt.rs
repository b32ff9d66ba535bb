//! One attempt at one case: hooks, then the conversation, then the verdict.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use hotseat_mcp::{BRIDGE_VARIABLE, McpConversation};
use hotseat_trace::{AttemptFailure, FailureKind, Verdict};
use serde_json::Value;

use super::attempt_result::Attempt;
use super::attempt_services::{AttemptMcp, AttemptModels};
use super::cancellation::CancellationSignal;
use super::case_roles::{CaseScope, open_roles};
use super::context::{EventRetention, RunContext, set_identity_env};
use super::hooks::HookOutput;
use super::plan::SelectedCase;
use super::recheck;
use crate::cases::{McpAddresses, TestCase, VariableScope};
use crate::config::BoundTarget;
use crate::session::test_error;
use crate::session::{
    ScriptToolFunctions, Session, SessionRoles, SessionTimeouts, cancelled_failure, run_conversation,
    run_hook,
};
use hotseat_targets::message::{ScriptedAnswers, ToolFunctionCaller};
use hotseat_targets::recorder::{SecretRedactor, TraceRecorder, TrafficMeter};

/// Runs attempt `number` (from 1) of a case. If the run is cancelled, the conversation ends immediately; the
/// `after` hook still gets [`CLEANUP_LIMIT`](super::CLEANUP_LIMIT).
pub(super) async fn run_attempt(
    mut selected: SelectedCase,
    number: usize,
    outside: &Arc<RunContext>,
    cancellation: &CancellationSignal,
) -> Attempt {
    let mut attempt =
        Attempt::not_started(selected.case_ref.clone(), number, Verdict::failed(cancelled_failure()));
    if let Some(kept) = &outside.recheck {
        let recheck = Box::pin(recheck::recheck_attempt(selected, number, outside, kept));
        return cancellation.run_until_cancelled(recheck).await.unwrap_or(attempt);
    }
    if let Some(reason) = &selected.case.skip {
        attempt.result.verdict = Verdict::skipped(reason.clone());
        return attempt;
    }
    if let Some(failure) = selected.agent.as_ref().and_then(|agent| outside.start_failure(agent)) {
        return attempt.failed(failure.clone());
    }
    match outside.open_cassette(&selected, number) {
        Ok(cassette) => selected.cassette = cassette,
        Err(failure) => return attempt.failed(failure),
    }
    let started = tokio::time::Instant::now();
    let mcp = match outside.open_mcp(&selected) {
        Ok(mcp) => mcp,
        Err(failure) => return attempt.failed(failure),
    };
    let models = match outside.open_models(&selected) {
        Ok(models) => models,
        Err(failure) => return attempt.failed(failure),
    };
    let addresses = service_addresses(mcp.as_ref(), models.as_ref());
    let known = known_addresses(addresses.as_ref());
    let before =
        match cancellation.run_until_cancelled(outside.run_before_hook((&selected, number), known)).await {
            Some(Ok(before)) => before,
            Some(Err(failure)) => {
                attempt.result.duration = started.elapsed();
                return attempt.failed(failure);
            }
            None => {
                attempt.result.duration = started.elapsed();
                return attempt;
            }
        };
    attempt.result.logs.extend(before.console.iter().cloned());
    let services = (mcp, models);
    // The future is large and would be copied several times.
    let is_complete =
        Box::pin(run_case_conversation(&mut attempt, &selected, &before, services, outside, cancellation))
            .await;
    attempt.result.warnings.extend(outside.close_cassette(&selected, is_complete));
    attempt.result.duration = started.elapsed();
    let after = outside.run_after_hook(&attempt, &selected, &before, known);
    match cancellation.clean_up(after).await {
        Ok(Ok(lines)) => attempt.result.logs.extend(lines),
        Ok(Err(error)) => attempt.result.warnings.push(format!("after script failed: {error}")),
        Err(error) => attempt.result.warnings.push(format!("after script failed: {error}")),
    }
    attempt
}

/// Addresses of the MCP servers of a conversation. Nothing listens at those of a conversation that is replayed.
fn known_addresses(addresses: Option<&BTreeMap<String, String>>) -> McpAddresses<'_> {
    addresses.map_or(McpAddresses::Example, McpAddresses::Known)
}

/// Opens the agent session and runs the conversation of an attempt. Returns true if it reached its end.
async fn run_case_conversation(
    attempt: &mut Attempt,
    selected: &SelectedCase,
    before: &HookOutput,
    (mcp, models): (Option<AttemptMcp>, Option<AttemptModels>),
    outside: &Arc<RunContext>,
    cancellation: &CancellationSignal,
) -> bool {
    let addresses = service_addresses(mcp.as_ref(), models.as_ref());
    let known = known_addresses(addresses.as_ref());
    let prepared = prepare_case((selected, attempt.number), before, known, outside, &mut attempt.redactor);
    match cancellation.run_until_cancelled(prepared).await.unwrap_or_else(|| Err(cancelled_failure())) {
        Err(failure) => {
            attempt.result.verdict = Verdict::failed(failure);
            false
        }
        Ok(PreparedCase { case, target, redactor, timeouts, partners, functions, hook_variables }) => {
            let target = target.for_case(&case.target).for_attempt(attempt.number);
            let target = target.with_case_name(&selected.suite_name, &selected.case.id);
            let speaks =
                outside.project.call_settings().connector.clone().or_else(|| target.summary().connector);
            let mut env = outside.target_env.clone();
            env.http = Arc::new(env.http.for_conversation());
            if let Some(mcp) = &mcp {
                let bridge = mcp.conversation().map(McpConversation::bridge_address);
                let bridge = bridge.map(|address| (BRIDGE_VARIABLE.to_string(), address));
                Arc::make_mut(&mut env.environment).extend(bridge);
            }
            let mut agent = target.open(&env);
            if let Some(mcp) = mcp {
                agent = match outside.attach_mcp(mcp, selected, &case, functions.as_ref(), &redactor, agent) {
                    Ok(agent) => agent,
                    Err(failure) => {
                        attempt.result.verdict = Verdict::failed(redactor.failure(failure));
                        return false;
                    }
                };
            }
            if let Some(models) = models {
                agent = outside.attach_models(models, selected, &case, agent);
            }
            let prices = target.prices(&outside.prices).with_default_model(speaks);
            let caller = functions.clone().map(|all| Arc::new(all) as Arc<dyn ToolFunctionCaller>);
            let is_only_source = target.tools.is_empty() && case.mcp.is_empty() && case.models.is_empty();
            let script = ScriptedAnswers::new(target.tools).with_functions(caller);
            let traffic = TrafficMeter::new(outside.traffic.clone());
            let recorder = TraceRecorder::new(redactor.clone(), outside.retention != EventRetention::Nothing);
            let recorder = recorder.with_prices(prices).with_traffic(traffic);
            let index = selected.case_ref.index;
            let _running = recorder
                .shared_events()
                .map(|events| outside.running.add(index, attempt.number, events.clone()));
            let session = Session::open(&case, &mut *agent, script, timeouts, partners, recorder);
            let result = run_conversation(session, selected.body.as_deref(), cancellation.cancelled()).await;
            // Dropping the agent's session ends it at once.
            cancellation.run_until_cancelled(agent.close()).await;
            let is_complete = result.is_complete;
            attempt.apply_result(result);
            if is_complete {
                outside.note_proxies(&case, &attempt.conversation.services);
                if let Some(agent) = selected.agent.as_ref().filter(|_| is_only_source) {
                    outside.shown_calls.note(agent, attempt);
                }
            }
            attempt.result.logs.extend(functions.iter().flat_map(ScriptToolFunctions::take_console));
            attempt.result.hook_variables = hook_variables;
            attempt.result.agent_diagnostics =
                agent.diagnostic_output().map(|words| redactor.message(&words).into_owned());
            attempt.append_agent_diagnostics();
            is_complete
        }
    }
}

/// Addresses of the MCP servers and served models of an attempt; `None` if it has neither.
fn service_addresses(
    mcp: Option<&AttemptMcp>,
    models: Option<&AttemptModels>,
) -> Option<BTreeMap<String, String>> {
    match (mcp.map(AttemptMcp::addresses), models.map(AttemptModels::addresses)) {
        (None, None) => None,
        (of_mcp, of_models) => {
            Some(of_mcp.into_iter().flatten().chain(of_models.into_iter().flatten()).collect())
        }
    }
}

/// A case with all variables resolved, ready to run.
struct PreparedCase {
    case: Arc<TestCase>,
    target: BoundTarget,
    redactor: SecretRedactor,
    timeouts: SessionTimeouts,
    partners: SessionRoles,
    /// Functions that answer tools, if the case has any.
    functions: Option<ScriptToolFunctions>,
    hook_variables: BTreeMap<String, Value>,
}

/// Runs the hooks of a case and resolves its variables. `known` learns the secrets of the case, also if it fails.
async fn prepare_case(
    (selected, number): (&SelectedCase, usize),
    before: &HookOutput,
    mcp: McpAddresses<'_>,
    outside: &Arc<RunContext>,
    known: &mut SecretRedactor,
) -> Result<PreparedCase, AttemptFailure> {
    let case = &selected.case;
    let Some(agent) = &selected.agent else {
        let message = outside.project.missing_target().message;
        return Err(AttemptFailure::new(FailureKind::TestError, message));
    };
    let bound = outside.bound_target(agent);
    let of_target = bound.map_or(&[][..], |(target, _)| &target.secrets);
    let mut hook_variables = before.variables.clone();
    *known = match bound {
        Some((_, redactor)) if hook_variables.is_empty() => redactor.clone(),
        Some(_) | None => outside.redactor(of_target, &hook_variables),
    };
    let folder = match &outside.project.file {
        Some(_) => &outside.project.root,
        None => &selected.suite.folder,
    };
    for index in 0..case.hooks {
        let identity = outside.project.call_settings().identity_before_hooks(case, number);
        let variables = VariableScope { mcp, ..outside.case_variables(&hook_variables) };
        let mut hook = case.hook(index, variables).map_err(test_error)?;
        set_identity_env(&identity, &mut hook);
        let (environment, servers) = (outside.project.environment(), outside.target_env.servers);
        let run =
            Box::pin(run_hook("hook", &hook, folder, environment, servers, None, &outside.project.secrets))
                .await;
        hook_variables.extend(run.map_err(|failure| {
            let message = format!("{} ({})", failure.message, hook.place);
            known.failure(AttemptFailure { message, ..failure })
        })?);
        *known = outside.redactor(of_target, &hook_variables);
    }
    let named = CaseScope { case, suite: &selected.suite, agent: Some(agent), attempt: number };
    let cassette = selected.cassette.as_ref().map(|cassette| cassette.roles.clone());
    let (partners, of_helpers) =
        open_roles(outside, named, &hook_variables, None, cassette).map_err(test_error)?;
    let (target, redactor) = match bound {
        // Hook variables and role agents may contain secrets as well.
        Some((target, _)) if !hook_variables.is_empty() || !of_helpers.is_empty() => {
            let secrets = [target.secrets.as_slice(), &of_helpers].concat();
            (target.clone(), outside.redactor(&secrets, &hook_variables))
        }
        Some((target, redactor)) => (target.clone(), redactor.clone()),
        None => outside.bind_agent(agent, &hook_variables, mcp).map_err(test_error)?,
    };
    known.clone_from(&redactor);
    let variables = VariableScope { redactor: &redactor, mcp, ..outside.case_variables(&hook_variables) };
    let redacted = |error| redactor.failure(test_error(error));
    let case = case.bind(variables).map_err(redacted)?;
    let of_servers = case.server_secrets();
    let redactor = match of_servers.is_empty() {
        true => redactor,
        false => {
            let secrets = [target.secrets.as_slice(), &of_helpers, &of_servers].concat();
            outside.redactor(&secrets, &hook_variables)
        }
    };
    known.clone_from(&redactor);
    let folders = [selected.suite.folder.as_path(), outside.project.root.as_path(), Path::new("")];
    let case = case
        .with_attachments(&folders)
        .map_err(|error| redactor.failure(AttemptFailure::new(FailureKind::TestError, error.to_string())))?;
    let applied = outside.project.apply_call_settings((agent, number), &case, target);
    let (case, target) = applied.map_err(|error| redactor.failure(test_error(error)))?;
    let timeouts = SessionTimeouts { case: outside.case_timeout, ..agent.timeouts };
    let case = outside.overrides.apply_to(case);
    let functions = outside.tool_functions(named, &target, &hook_variables);
    let hook_variables =
        hook_variables.into_iter().map(|(name, value)| (name, redactor.json(value))).collect();
    Ok(PreparedCase { case, target, redactor, timeouts, partners, functions, hook_variables })
}
