//! Project hooks that run before and after cases and the whole run.

use std::collections::BTreeMap;

use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::{AttemptFailure, FailureKind};
use serde_json::{Map, Value, json};

use super::attempt_result::Attempt;
use super::context::{RunContext, set_identity_env};
use super::outcome::CaseOutcome;
use super::plan::{RunPlan, SelectedCase};
use crate::cases::{HookCommand, McpAddresses, NamedHook};
use crate::config::{ResolvedHook, ScriptScope};
use crate::scripts::{BoundFunction, ScriptOutput};
use crate::session::run_hook;
use crate::session::test_error;
use hotseat_document::excerpt;
use hotseat_targets::message::RequestIdentity;
use hotseat_targets::recorder::{SecretRedactor, printed_secrets};

/// Output of a hook.
#[derive(Debug, Clone, Default)]
pub struct HookOutput {
    /// Data passed to the matching `after` hook: the `data` member of the output, or the whole output.
    pub data: Value,
    /// Variables set by the hook.
    pub(super) variables: BTreeMap<String, Value>,
    /// Lines that a script function wrote to `console`.
    pub console: Vec<String>,
}

/// Default timeout of a script function.
const DEFAULT_HOOK_TIMEOUT: Duration = Duration::from_secs(30);

/// Arguments of hook functions, in order. A function receives those that apply to its hook.
const ARGUMENTS: [&str; 6] = ["ctx", "test_case", "test_cases", "result", "results", "before_data"];

impl RunContext {
    /// Runs a hook. A command receives its input as JSON on standard input; a function receives it as
    /// arguments. Fails if no hook has this name, or it fails.
    async fn run_named_hook(
        self: &Arc<Self>,
        name: &str,
        input: &Value,
        hook_variables: &BTreeMap<String, Value>,
        mcp: McpAddresses<'_>,
        identity: &RequestIdentity,
        whose: &[ScriptScope<'_>],
    ) -> Result<HookOutput, AttemptFailure> {
        match self.project.resolve_hook(name, hook_variables, mcp, whose).map_err(test_error)? {
            ResolvedHook::Command(hook) => {
                self.run_command(name, hook, input, hook_variables, identity).await
            }
            ResolvedHook::Function(function, timeout) => {
                let function = self.script_permissions(whose, hook_variables, identity).bind(function);
                self.call_function(name, &function, timeout, input, hook_variables).await
            }
        }
    }

    async fn call_function(
        &self,
        name: &str,
        function: &BoundFunction,
        timeout: Option<Duration>,
        input: &Value,
        hook_variables: &BTreeMap<String, Value>,
    ) -> Result<HookOutput, AttemptFailure> {
        let arguments = ARGUMENTS.iter().filter_map(|key| input.get(key).cloned()).collect();
        let ScriptOutput { result, console } = function.call(arguments, timeout, DEFAULT_HOOK_TIMEOUT).await;
        let redactor = self.redactor(&[], hook_variables);
        let console: Vec<String> = console.iter().map(|line| redactor.text(line).into_owned()).collect();
        // The members become variables. The value of an `after` hook is not used.
        let is_before = input.get("result").or(input.get("results")).is_none();
        match result {
            Ok(returned) if is_before && !returned.is_null() && !returned.is_object() => {
                let returned = returned.to_string();
                let own = SecretRedactor::new(printed_secrets(&returned, &self.project.secrets));
                let shown = own.message(&excerpt(&returned, 100)).into_owned();
                let message = format!("hook `{name}` returned {shown}, not an object");
                Err(redactor.failure(AttemptFailure::new(FailureKind::HookError, message)))
            }
            Ok(returned) => {
                let data = match returned.get("data") {
                    Some(data) => data.clone(),
                    None => returned.clone(),
                };
                let variables = match returned {
                    Value::Object(members) => members.into_iter().collect(),
                    _ => BTreeMap::new(),
                };
                Ok(HookOutput { data, variables, console })
            }
            Err(error) => {
                let place = error.place.as_ref().map_or_else(String::new, |place| format!(" ({place})"));
                let message = format!("hook `{name}` failed: {}{place}", error.message);
                let mut detail = error.diagnostic().to_detail();
                if !console.is_empty() {
                    detail = format!("{detail}\nconsole:\n{}", console.join("\n"));
                }
                let failure = AttemptFailure::new(FailureKind::HookError, message).with_detail(detail);
                Err(redactor.failure(failure))
            }
        }
    }

    async fn run_command(
        &self,
        name: &str,
        mut hook: HookCommand,
        input: &Value,
        hook_variables: &BTreeMap<String, Value>,
        identity: &RequestIdentity,
    ) -> Result<HookOutput, AttemptFailure> {
        set_identity_env(identity, &mut hook);
        let (root, environment) = (&self.project.root, self.project.environment());
        let ran = run_hook(
            &format!("hook `{name}`:"),
            &hook,
            root,
            environment,
            self.target_env.servers,
            Some(input),
            &self.project.secrets,
        )
        .await;
        let variables = ran.map_err(|failure| self.redactor(&[], hook_variables).failure(failure))?;
        let data = match variables.get("data") {
            Some(data) => data.clone(),
            None => Value::Object(variables.clone().into_iter().collect()),
        };
        Ok(HookOutput { data, variables, console: Vec::new() })
    }

    /// Runs a project hook before or after the whole run. The user identity is added to its input as `ctx`.
    /// Fails if no hook has this name, or it fails.
    pub async fn run_project_hook(
        self: &Arc<Self>,
        name: &str,
        mut input: Value,
        plan: &RunPlan,
    ) -> Result<HookOutput, AttemptFailure> {
        let identity = self.project.call_settings().identity();
        if let Value::Object(members) = &mut input {
            members.insert("ctx".to_string(), (*identity.ctx).clone());
        }
        let (none, no_servers) = (BTreeMap::new(), BTreeMap::new());
        let mcp = McpAddresses::Known(&no_servers);
        self.run_named_hook(name, &input, &none, mcp, &identity, &plan.script_scopes()).await
    }

    /// Runs the `before` hook of a case, if it has one. Fails if no hook has this name, or it fails.
    pub(super) async fn run_before_hook(
        self: &Arc<Self>,
        (selected, number): (&SelectedCase, usize),
        mcp: McpAddresses<'_>,
    ) -> Result<HookOutput, AttemptFailure> {
        let case = &selected.case;
        let Some(NamedHook { name, .. }) = &case.before else { return Ok(HookOutput::default()) };
        let identity = self.project.call_settings().identity_before_hooks(case, number);
        let input = json!({"test_case": case.to_hook_json(), "ctx": identity.ctx});
        let failed = |mut failure: AttemptFailure| {
            failure.message = format!("before script failed: {}", failure.message);
            failure
        };
        let (variables, scopes) = (BTreeMap::new(), [script_scope(selected)]);
        Box::pin(self.run_named_hook(name, &input, &variables, mcp, &identity, &scopes)).await.map_err(failed)
    }

    /// Runs the `after` hook of a case, if it has one, and returns its console output.
    ///
    /// # Errors
    /// A message if it fails. The failure does not change the verdict.
    pub(super) async fn run_after_hook(
        self: &Arc<Self>,
        attempt: &Attempt,
        selected: &SelectedCase,
        before: &HookOutput,
        mcp: McpAddresses<'_>,
    ) -> Result<Vec<String>, String> {
        let Some(NamedHook { name, .. }) = &selected.case.after else { return Ok(Vec::new()) };
        let case = &selected.case;
        let identity = self.project.call_settings().identity_before_hooks(case, attempt.number);
        let input = json!({
            "test_case": case.to_hook_json(),
            "result": attempt_result(attempt),
            "before_data": before.data,
            "ctx": identity.ctx,
        });
        let scopes = [script_scope(selected)];
        let ran =
            Box::pin(self.run_named_hook(name, &input, &before.variables, mcp, &identity, &scopes)).await;
        ran.map(|after| after.console).map_err(|failure| failure.message)
    }
}

fn script_scope(selected: &SelectedCase) -> ScriptScope<'_> {
    ScriptScope { folder: &selected.suite.folder, agent: selected.agent.as_deref() }
}

/// Result of a case as passed to hooks: its representative attempt and, for repeated cases, the pass counts.
pub fn hook_result(outcome: &CaseOutcome) -> Value {
    let mut result = attempt_result(outcome.representative());
    let failure = outcome.verdict.failure.as_ref();
    result["status"] = json!(outcome.verdict.status);
    result["error"] = json!(failure.map(|failure| &failure.message));
    result["error_kind"] = json!(failure.map(|failure| failure.kind.name()));
    if outcome.is_flaky() {
        result["flaky"] = json!(true);
    }
    if let Some(stability) = &outcome.stability {
        result["runs"] = json!(stability.runs);
        result["passed"] = json!(stability.passed);
    }
    result
}

/// Result of one attempt as passed to hooks.
fn attempt_result(attempt: &Attempt) -> Value {
    let case = &attempt.case_ref.case;
    let failure = attempt.verdict.failure.as_ref();
    let mut members = Map::new();
    let mut add = |key: &str, value: Value| members.insert(key.to_string(), value);
    add("id", json!(case.id));
    add("name", json!(case.name));
    add("status", json!(attempt.verdict.status));
    add("error", json!(failure.map(|failure| &failure.message)));
    add("error_kind", json!(failure.map(|failure| failure.kind.name())));
    add("input", json!(case.input));
    add("output", json!(attempt.conversation.turns.last().and_then(|turn| turn.answer())));
    add("total_turns", json!(attempt.conversation.turns.len()));
    add("duration_ms", json!(attempt.duration.as_millis()));
    let assertions = attempt.checks.iter().map(|finding| {
        json!({
            "passed": finding.verdict.passed,
            "expected": finding.verdict.expected,
            "actual": finding.verdict.actual,
            "error": finding.error,
            "message": finding.check.message,
            "turn": finding.turn,
        })
    });
    add("assertions", assertions.collect());
    Value::Object(members)
}
