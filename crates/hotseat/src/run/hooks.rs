//! Hooks of the project around cases and around the whole run.

use std::collections::BTreeMap;

use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::{Failure, FailureKind};
use serde_json::{Map, Value, json};

use super::attempt::{Attempt, undefined};
use super::outcome::Outcome;
use super::outside::{Outside, on_behalf_of};
use super::plan::{Plan, Selected};
use crate::cases::{Hook, NamedHook};
use crate::config::{NamedBy, Whose};
use crate::scripts::{Callable, Called};
use crate::session::{Identity, run_hook};

/// What a hook that ran before something has given.
#[derive(Debug, Clone, Default)]
pub struct Before {
    /// What the hook after it is told: `data` of what it printed, or all of it.
    pub data: Value,
    /// Variables.
    pub(super) given: BTreeMap<String, Value>,
    /// What a function said to `console`.
    pub said: Vec<String>,
}

/// How long a function of a script may take where nobody says so.
const PATIENCE: Duration = Duration::from_secs(30);

/// What functions are told, in the order of their arguments; each is told of these what there is.
const ARGUMENTS: [&str; 6] = ["ctx", "test_case", "test_cases", "result", "results", "before_data"];

impl Outside {
    /// Runs a hook: a command reads what it is told from its standard input, as JSON; a function gets it as arguments.
    ///
    /// # Errors
    /// When there is none of this name, or it fails.
    pub async fn run_named(
        self: &Arc<Self>,
        name: &str,
        told: &Value,
        given: &BTreeMap<String, Value>,
        identity: &Identity,
        whose: &[Whose<'_>],
    ) -> Result<Before, Failure> {
        match self.project.hook(name, given, whose).map_err(undefined)? {
            NamedBy::Command(hook) => self.run_command(hook, told, given, identity).await,
            NamedBy::Function(function, timeout) => {
                let function = self.powers(whose, given, identity).over(function);
                self.call_function(name, &function, timeout, told, given).await
            }
        }
    }

    async fn call_function(
        &self,
        name: &str,
        function: &Callable,
        timeout: Option<Duration>,
        told: &Value,
        given: &BTreeMap<String, Value>,
    ) -> Result<Before, Failure> {
        let arguments = ARGUMENTS.iter().filter_map(|key| told.get(key).cloned()).collect();
        let Called { result, said } = function.call(arguments, timeout, PATIENCE).await;
        let redactor = self.redactor(&[], given);
        let said: Vec<String> = said.iter().map(|line| redactor.text(line).into_owned()).collect();
        match result {
            Ok(returned) => {
                let data = match returned.get("data") {
                    Some(data) => data.clone(),
                    None => returned.clone(),
                };
                let given = match returned {
                    Value::Object(members) => members.into_iter().collect(),
                    _ => BTreeMap::new(),
                };
                Ok(Before { data, given, said })
            }
            Err(error) => {
                let place = error.place.as_ref().map_or_else(String::new, |place| format!(" ({place})"));
                let message = format!("hook `{name}` failed: {}{place}", error.message);
                let mut detail = error.diagnostic().render(false, 100);
                if !said.is_empty() {
                    detail = format!("{detail}\nconsole:\n{}", said.join("\n"));
                }
                let failure = Failure::new(FailureKind::HookError, message).with_detail(detail);
                Err(redactor.failure(failure))
            }
        }
    }

    async fn run_command(
        &self,
        mut hook: Hook,
        told: &Value,
        given: &BTreeMap<String, Value>,
        identity: &Identity,
    ) -> Result<Before, Failure> {
        on_behalf_of(identity, &mut hook);
        let (root, environment) = (&self.project.root, self.project.environment());
        let ran = run_hook(&hook, root, environment, self.means.servers, Some(told)).await;
        let given = ran.map_err(|failure| self.redactor(&[], given).failure(failure))?;
        let data = match given.get("data") {
            Some(data) => data.clone(),
            None => Value::Object(given.clone().into_iter().collect()),
        };
        Ok(Before { data, given, said: Vec::new() })
    }

    /// Runs a hook of the project around the whole run. It is told this, and on whose behalf agents are spoken to.
    ///
    /// # Errors
    /// As [`Outside::run_named`] does.
    pub async fn run_around(
        self: &Arc<Self>,
        name: &str,
        mut told: Value,
        plan: &Plan,
    ) -> Result<Before, Failure> {
        let identity = self.project.calling().identity();
        if let Value::Object(members) = &mut told {
            members.insert("ctx".to_string(), (*identity.ctx).clone());
        }
        self.run_named(name, &told, &BTreeMap::new(), &identity, &plan.whose()).await
    }

    /// Runs the hook that a case names under `before`.
    ///
    /// # Errors
    /// As [`Outside::run_named`] does.
    pub(super) async fn before(self: &Arc<Self>, selected: &Selected) -> Result<Before, Failure> {
        let case = &selected.case;
        let Some(NamedHook { name, .. }) = &case.before else { return Ok(Before::default()) };
        let identity = self.project.calling().identity_before_hooks(case);
        let told = json!({"test_case": case.to_json(), "ctx": identity.ctx});
        let failed = |mut failure: Failure| {
            failure.message = format!("before script failed: {}", failure.message);
            failure
        };
        self.run_named(name, &told, &BTreeMap::new(), &identity, &[whose(selected)]).await.map_err(failed)
    }

    /// Runs the hook that a case names under `after`, and returns what it said to `console`.
    ///
    /// # Errors
    /// When it fails, in words. That changes no verdict.
    pub(super) async fn after(
        self: &Arc<Self>,
        attempt: &Attempt,
        selected: &Selected,
        before: &Before,
    ) -> Result<Vec<String>, String> {
        let Some(NamedHook { name, .. }) = &selected.case.after else { return Ok(Vec::new()) };
        let case = &selected.case;
        let identity = self.project.calling().identity_before_hooks(case);
        let told = json!({
            "test_case": case.to_json(),
            "result": of_attempt(attempt),
            "before_data": before.data,
            "ctx": identity.ctx,
        });
        let ran = self.run_named(name, &told, &before.given, &identity, &[whose(selected)]).await;
        ran.map(|after| after.said).map_err(|failure| failure.message)
    }
}

fn whose(selected: &Selected) -> Whose<'_> {
    Whose { folder: &selected.suite.folder, agent: selected.agent.as_deref() }
}

/// What a case came to, as hooks are told: what the attempt that tells most came to, and how steady the case is.
pub fn result(outcome: &Outcome) -> Value {
    let mut told = of_attempt(outcome.telling());
    let failure = outcome.verdict.failure.as_ref();
    told["status"] = json!(outcome.verdict.status);
    told["error"] = json!(failure.map(|failure| &failure.message));
    told["error_kind"] = json!(failure.map(|failure| failure.kind.name()));
    if outcome.is_flaky() {
        told["flaky"] = json!(true);
    }
    if let Some(stability) = &outcome.stability {
        told["runs"] = json!(stability.runs);
        told["passed"] = json!(stability.passed);
    }
    told
}

/// What an attempt came to, as hooks are told.
fn of_attempt(attempt: &Attempt) -> Value {
    let case = &attempt.selected.case;
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
