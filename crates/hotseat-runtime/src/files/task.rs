//! Tasks, their steps and what those do.

use std::collections::BTreeMap;
use std::sync::Arc;

use hotseat_document::{Map, View};

use super::loader::{Loader, Site};
use super::shape::STEP;
use super::{expressions, millis, number, schemas};
use crate::definition::{
    Action, Assemble, Backoff, Context, Fail, Memory, Merge, Mock, OnFailure, Reference, Step, StepBranch,
    StepCondition, Task, TaskRetry, task,
};
use crate::expression::Expression;
use crate::failure::{ErrorCode, Failure, InfrastructureKind};

/// What expressions of a step see, and what those see that take its result.
const SCOPE: &[&str] = &["input", "state", "output"];
const WITH_RESULT: &[&str] = &["input", "state", "output", "result"];

/// Reads a task that is called `name` if it does not say otherwise.
pub(super) fn read(loader: &mut Loader, map: &Map<'_>, name: &str, site: &Site) -> Arc<Task> {
    let mut made = task(map.text("name").unwrap_or(name));
    made.input_schema = map.get("input").map(|view| schemas::read(loader, view));
    made.output_schema = map.get("output").map(|view| schemas::read(loader, view));
    made.timeout_ms = millis(map, "timeout_ms");
    made.retry = map.map("retry").map_or_else(TaskRetry::default, |map| retry(&map));
    for view in map.list("steps").into_iter().flatten() {
        let Some(map) = view.map(&STEP) else { continue };
        let Some(step) = step(loader, &map, made.steps.len(), site) else { continue };
        if made.steps.iter().any(|other| other.name == step.name) {
            let place = map.place_of("name").unwrap_or_else(|| map.place());
            loader.mistake(place, format!("two steps are called `{}`", step.name));
        }
        if let Some(place) = map
            .place_of("on_failure")
            .filter(|_| step.on_failure == OnFailure::Retry && made.retry.max_attempts < 2)
        {
            loader
                .mistake(place, "this task is tried once: `retry` with `max_attempts` says how often it is");
        }
        made.steps.push(step);
    }
    loader.add_task(made, map.place_of("name").unwrap_or_else(|| map.place()))
}

fn retry(map: &Map<'_>) -> TaskRetry {
    let usual = TaskRetry::default();
    TaskRetry {
        max_attempts: number(map, "max_attempts").unwrap_or(usual.max_attempts),
        backoff: match map.text("backoff") {
            Some("linear") => Backoff::Linear,
            Some("exponential") => Backoff::Exponential,
            _ => Backoff::None,
        },
        initial_delay_ms: millis(map, "delay_ms").unwrap_or(usual.initial_delay_ms),
        max_delay_ms: millis(map, "max_delay_ms").unwrap_or(usual.max_delay_ms),
    }
}

fn step(loader: &mut Loader, map: &Map<'_>, number: usize, site: &Site) -> Option<Step> {
    let action = action(loader, map, site)?;
    Some(Step {
        name: map.text("name").map_or_else(|| format!("step-{number}"), str::to_owned),
        action,
        input_mapping: input(loader, map),
        output_mapping: output(loader, map),
        on_failure: match map.text("on_failure") {
            Some("retry") => OnFailure::Retry,
            Some("continue") => OnFailure::Continue,
            _ => OnFailure::Abort,
        },
        condition: map.get("when").and_then(|view| condition(loader, view, map)),
    })
}

/// The whole input, unless members are named.
fn input(loader: &mut Loader, map: &Map<'_>) -> BTreeMap<String, Expression> {
    let whole = |expression| BTreeMap::from([("*".to_owned(), expression)]);
    let Some(view) = map.get("input") else { return whole(Expression::written("input")) };
    if view.text().is_some() {
        return expressions::read(loader, view, SCOPE).map(whole).unwrap_or_default();
    }
    expressions::inputs(loader, view, SCOPE).into_iter().collect()
}

/// The result as the output, unless paths are named.
fn output(loader: &mut Loader, map: &Map<'_>) -> Vec<(String, Expression)> {
    let whole = |expression| vec![("output".to_owned(), expression)];
    match map.get("output") {
        None => whole(Expression::written("result")),
        Some(view) if view.text().is_some() => {
            expressions::read(loader, view, WITH_RESULT).map(whole).unwrap_or_default()
        }
        Some(view) => expressions::outputs(loader, view, WITH_RESULT),
    }
}

fn condition(loader: &mut Loader, view: View<'_>, step: &Map<'_>) -> Option<StepCondition> {
    let Some(map) = step.map("when").filter(|_| view.text().is_none()) else {
        let condition = expressions::read(loader, view, SCOPE)?;
        return Some(StepCondition { condition, then: StepBranch::Continue, otherwise: StepBranch::Skip });
    };
    let branch = |key: &str, usual: StepBranch| match map.text(key) {
        Some("continue") => StepBranch::Continue,
        Some("skip") => StepBranch::Skip,
        Some("succeed") => StepBranch::Succeed,
        Some("fail") => StepBranch::Fail,
        _ => usual,
    };
    Some(StepCondition {
        condition: expressions::read(loader, map.get("condition")?, SCOPE)?,
        then: branch("then", StepBranch::Continue),
        otherwise: branch("else", StepBranch::Skip),
    })
}

const ACTIONS: [&str; 7] = ["mock", "echo", "fail", "context", "assemble", "memory", "agent"];

fn action(loader: &mut Loader, map: &Map<'_>, site: &Site) -> Option<Action> {
    let given: Vec<&str> = ACTIONS.into_iter().filter(|key| map.has(key)).collect();
    let key = match given.as_slice() {
        [key] => *key,
        [] => {
            loader.mistake(
                map.place(),
                "this step does nothing: it needs one of `mock`, `echo`, `fail`, `context`, `assemble`, `memory` and `agent`",
            );
            return None;
        }
        [first, second, ..] => {
            let place = map.key_place(second).unwrap_or_else(|| map.place());
            loader
                .mistake(place, format!("a step does one thing, and this one has `{first}` and `{second}`"));
            return None;
        }
    };
    match key {
        "mock" => map.map("mock").map(|map| mock(loader, &map).into()),
        "echo" => Some(Action::Echo),
        "fail" => failure(loader, map, "fail").map(|failure| Action::Fail(Fail { failure })),
        "context" => map.map("context").map(|map| Action::Context(Context { merge: merge(&map) })),
        "assemble" => {
            let map = map.map("assemble")?;
            let append_system = map.text("append_system").map(str::to_owned);
            Some(Action::Assemble(Assemble { append_system }))
        }
        "agent" => loader.agent(map.get("agent")?, site).map(|id| Action::Agent(Reference::Id(id.0))),
        _ => Some(Action::Memory(match map.text("memory")? {
            "write" => Memory::Write,
            "read" => Memory::Read,
            "search" => Memory::Search,
            "list" => Memory::List,
            "delete" => Memory::Delete,
            _ => return None,
        })),
    }
}

fn merge(map: &Map<'_>) -> Option<Merge> {
    let map = map.map("merge")?;
    Some(Merge {
        target: map.text("target")?.to_owned(),
        sources: map.list("sources")?.filter_map(View::text).map(str::to_owned).collect(),
        flatten: map.bool("flatten").unwrap_or(false),
    })
}

fn mock(loader: &mut Loader, map: &Map<'_>) -> Mock {
    let values: Vec<&str> =
        ["returns", "computes", "schema"].into_iter().filter(|key| map.has(key)).collect();
    if let [first, second, ..] = values.as_slice() {
        let place = map.key_place(second).unwrap_or_else(|| map.place());
        loader.mistake(place, format!("a mock returns one thing, and this one has `{first}` and `{second}`"));
    }
    let fails_for_ever = map.has("fails") && !map.has("first_attempts");
    match (values.first(), fails_for_ever) {
        (None, false) => {
            loader.mistake(
                map.place(),
                "this mock returns nothing: it needs `returns`, `computes`, `schema` or `fails`",
            );
        }
        (Some(key), true) => {
            let place = map.key_place(key).unwrap_or_else(|| map.place());
            let message = format!(
                "a mock that always fails never comes to `{key}`; `first_attempts` says how often it fails"
            );
            loader.mistake(place, message);
        }
        (None, true) | (Some(_), false) => {}
    }
    if let Some(place) = map.key_place("first_attempts").filter(|_| !map.has("fails")) {
        loader.mistake(
            place,
            "`first_attempts` says how many attempts fail, and nothing says how: add `fails`",
        );
    }
    let returns = match map.get("computes") {
        Some(view) => expressions::read(loader, view, &["input"]),
        None => map.json("returns").map(Expression::constant),
    };
    Mock {
        schema: map.get("schema").map(|view| schemas::read(loader, view)),
        returns,
        failure: failure(loader, map, "fails"),
        failing_attempts: number(map, "first_attempts"),
        delay_ms: delay(loader, map),
        seed: map.integer("seed").and_then(|seed| u64::try_from(seed).ok()).unwrap_or(0),
    }
}

/// One time, or the shortest and the longest.
fn delay(loader: &mut Loader, map: &Map<'_>) -> (u64, u64) {
    let Some(view) = map.get("delay_ms") else { return (0, 0) };
    let times: Vec<u64> =
        view.one_or_many().filter_map(View::integer).filter_map(|time| u64::try_from(time).ok()).collect();
    match times.as_slice() {
        [time] => (*time, *time),
        [from, to] if from <= to => (*from, *to),
        [_, _] => {
            loader.mistake(view.place(), "the first of two times is the shorter one");
            (0, 0)
        }
        _ => {
            loader.mistake(view.place(), "`delay_ms` is one time, or a list of the shortest and the longest");
            (0, 0)
        }
    }
}

/// A message, or a mapping that says more.
fn failure(loader: &mut Loader, owner: &Map<'_>, key: &str) -> Option<Failure> {
    let view = owner.get(key)?;
    if let Some(message) = view.text() {
        return Some(Failure::business(ErrorCode::ExecutionFailed, message));
    }
    let map = owner.map(key)?;
    if let Some(place) = map.key_place("kind").filter(|_| map.has("code")) {
        loader.mistake(
            place,
            "a failure has `kind` or `code`, not both: either the means fail or the thing itself",
        );
    }
    let message = map.text("message").unwrap_or_default();
    let means = match map.text("kind") {
        Some("network") => Some(InfrastructureKind::Network),
        Some("timeout") => Some(InfrastructureKind::Timeout),
        Some("rate_limit") => Some(InfrastructureKind::RateLimit),
        Some("server") => Some(InfrastructureKind::Server),
        _ => None,
    };
    if let Some(kind) = means {
        return Some(Failure::infrastructure(kind, message));
    }
    let code = match map.text("code") {
        Some("TIMEOUT") => ErrorCode::Timeout,
        Some("NOT_FOUND") => ErrorCode::NotFound,
        Some("PERMISSION_DENIED") => ErrorCode::PermissionDenied,
        Some("INVALID_INPUT") => ErrorCode::InvalidInput,
        Some("AGENT_DECLINED") => ErrorCode::AgentDeclined,
        Some("INTERNAL_ERROR") => ErrorCode::InternalError,
        _ => ErrorCode::ExecutionFailed,
    };
    Some(Failure::business(code, message))
}
