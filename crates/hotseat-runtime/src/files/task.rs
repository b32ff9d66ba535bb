//! Decodes tasks, steps and actions.

use std::collections::BTreeMap;
use std::sync::Arc;

use hotseat_document::{MapView, NodeView};

use super::loader::{AgentLoader, DefinitionKind, FileLocation, canonical};
use super::shape::{STEP, TASK};
use super::{expressions, millis, number, schemas};
use crate::definition::{
    AssembleAction, BackoffGrowth, ContextAction, DefinitionRef, FailAction, MemberMerge, MemoryAction,
    MockAction, StepAction, StepBranch, StepCondition, StepDefinition, StepFailurePolicy, TaskDefinition,
    TaskRetry, task,
};
use crate::expression::Expression;
use crate::failure::{ErrorCode, InfrastructureKind, WorkFailure};

/// Names available in expressions of a step, and in those that take its result.
const SCOPE: &[&str] = &["input", "state", "output"];
const SCOPE_WITH_RESULT: &[&str] = &["input", "state", "output", "result"];

/// Loads the task that a view names or contains.
pub(super) fn load(
    loader: &mut AgentLoader,
    view: NodeView<'_>,
    name: &str,
    site: &FileLocation,
) -> Option<Arc<TaskDefinition>> {
    let Some(reference) = view.text() else {
        return Some(decode(loader, &view.map(&TASK)?, name, site));
    };
    let path = loader.resolve_reference(DefinitionKind::Task, reference, view.place(), site)?;
    let key = canonical(&path);
    if let Some(known) = loader.tasks.get(&key) {
        return known.clone();
    }
    let document = loader.load_document(&path, &TASK);
    let task = document.as_ref().and_then(|document| {
        let map = MapView::from_node(&document.node, &document.source, &TASK)?;
        Some(decode(loader, &map, &document.site.stem(), &document.site))
    });
    loader.tasks.insert(key, task.clone());
    task
}

/// Decodes a task. `name` is used if the task has no name.
fn decode(
    loader: &mut AgentLoader,
    map: &MapView<'_>,
    name: &str,
    site: &FileLocation,
) -> Arc<TaskDefinition> {
    let mut made = task(map.text("name").unwrap_or(name));
    made.input_schema = map.get("input").map(|view| schemas::read(loader, view));
    made.output_schema = map.get("output").map(|view| schemas::read(loader, view));
    made.timeout_ms = millis(map, "timeout_ms");
    made.retry = map.map("retry").map_or_else(TaskRetry::default, |map| decode_retry(&map));
    for view in map.items("steps") {
        let Some(map) = view.map(&STEP) else { continue };
        let Some(step) = decode_step(loader, &map, made.steps.len(), site) else { continue };
        if made.steps.iter().any(|other| other.name == step.name) {
            let place = map.place_near("name");
            loader.report(place, format!("duplicate step name `{}`", step.name));
        }
        if let Some(place) = map
            .place_of("on_failure")
            .filter(|_| step.on_failure == StepFailurePolicy::Retry && made.retry.max_attempts < 2)
        {
            loader.report(place, "this task has a single attempt: add `retry` with `max_attempts`");
        }
        made.steps.push(step);
    }
    loader.add_task(made, map.place_near("name"))
}

fn decode_retry(map: &MapView<'_>) -> TaskRetry {
    let defaults = TaskRetry::default();
    TaskRetry {
        max_attempts: number(map, "max_attempts").unwrap_or(defaults.max_attempts),
        backoff: map.text("backoff").and_then(BackoffGrowth::from_name).unwrap_or(BackoffGrowth::None),
        initial_delay_ms: millis(map, "delay_ms").unwrap_or(defaults.initial_delay_ms),
        max_delay_ms: millis(map, "max_delay_ms").unwrap_or(defaults.max_delay_ms),
    }
}

fn decode_step(
    loader: &mut AgentLoader,
    map: &MapView<'_>,
    number: usize,
    site: &FileLocation,
) -> Option<StepDefinition> {
    let action = decode_action(loader, map, site)?;
    Some(StepDefinition {
        name: map.text("name").map_or_else(|| format!("step-{number}").into(), Arc::from),
        action,
        input_mapping: decode_input(loader, map),
        output_mapping: decode_output(loader, map),
        on_failure: map.text("on_failure").and_then(StepFailurePolicy::from_name).unwrap_or_default(),
        condition: map.get("when").and_then(|view| decode_condition(loader, view, map)),
    })
}

/// Decodes the input mapping; defaults to the whole input.
fn decode_input(loader: &mut AgentLoader, map: &MapView<'_>) -> BTreeMap<String, Expression> {
    let whole = |expression| BTreeMap::from([("*".to_owned(), expression)]);
    let Some(view) = map.get("input") else { return whole(Expression::parse_static("input")) };
    if view.text().is_some() {
        return expressions::parse(loader, view, SCOPE).map(whole).unwrap_or_default();
    }
    expressions::inputs(loader, view, SCOPE).into_iter().collect()
}

/// Decodes the output mapping; defaults to the result as output.
fn decode_output(loader: &mut AgentLoader, map: &MapView<'_>) -> Vec<(String, Expression)> {
    let whole = |expression| vec![("output".to_owned(), expression)];
    match map.get("output") {
        None => whole(Expression::parse_static("result")),
        Some(view) if view.text().is_some() => {
            expressions::parse(loader, view, SCOPE_WITH_RESULT).map(whole).unwrap_or_default()
        }
        Some(view) => expressions::outputs(loader, view, SCOPE_WITH_RESULT),
    }
}

fn decode_condition(
    loader: &mut AgentLoader,
    view: NodeView<'_>,
    step: &MapView<'_>,
) -> Option<StepCondition> {
    let Some(map) = step.map("when").filter(|_| view.text().is_none()) else {
        let condition = expressions::parse(loader, view, SCOPE)?;
        return Some(StepCondition { condition, then: StepBranch::Continue, otherwise: StepBranch::Skip });
    };
    let branch = |key: &str, usual| map.text(key).and_then(StepBranch::from_name).unwrap_or(usual);
    Some(StepCondition {
        condition: expressions::parse(loader, map.get("condition")?, SCOPE)?,
        then: branch("then", StepBranch::Continue),
        otherwise: branch("else", StepBranch::Skip),
    })
}

const ACTION_KEYS: [&str; 7] = ["mock", "echo", "fail", "context", "assemble", "memory", "agent"];

fn decode_action(loader: &mut AgentLoader, map: &MapView<'_>, site: &FileLocation) -> Option<StepAction> {
    let missing = || {
        "this step has no action: add one of `mock`, `echo`, `fail`, `context`, `assemble`, `memory` and `agent`".to_owned()
    };
    match loader.only_key(map, &ACTION_KEYS, "a step has exactly one action", missing)? {
        "mock" => map.map("mock").map(|map| decode_mock(loader, &map).into()),
        "echo" => Some(StepAction::Echo),
        "fail" => decode_failure(loader, map, "fail").map(|failure| StepAction::Fail(FailAction { failure })),
        "context" => {
            map.map("context").map(|map| StepAction::Context(ContextAction { merge: decode_merge(&map) }))
        }
        "assemble" => {
            let map = map.map("assemble")?;
            let append_system = map.text("append_system").map(str::to_owned);
            Some(StepAction::Assemble(AssembleAction { append_system }))
        }
        "agent" => {
            loader.queue_agent(map.get("agent")?, site).map(|id| StepAction::Agent(DefinitionRef::Id(id.0)))
        }
        _ => MemoryAction::from_name(map.text("memory")?).map(StepAction::Memory),
    }
}

fn decode_merge(map: &MapView<'_>) -> Option<MemberMerge> {
    let map = map.map("merge")?;
    Some(MemberMerge {
        target: map.text("target")?.to_owned(),
        sources: map.list("sources")?.filter_map(NodeView::text).map(str::to_owned).collect(),
        flatten: map.bool("flatten").unwrap_or(false),
    })
}

fn decode_mock(loader: &mut AgentLoader, map: &MapView<'_>) -> MockAction {
    let values: Vec<&str> =
        ["returns", "computes", "schema"].into_iter().filter(|key| map.has(key)).collect();
    if let [first, second, ..] = values.as_slice() {
        let place = map.key_place(second).unwrap_or_else(|| map.place());
        loader.report(
            place,
            format!("a mock has exactly one result, but this one has `{first}` and `{second}`"),
        );
    }
    let always_fails = map.has("fails") && !map.has("first_attempts");
    match (values.first(), always_fails) {
        (None, false) => {
            loader.report(
                map.place(),
                "this mock has no result: add `returns`, `computes`, `schema` or `fails`",
            );
        }
        (Some(key), true) => {
            let place = map.key_place(key).unwrap_or_else(|| map.place());
            let message = format!(
                "a mock that always fails never uses `{key}`; limit its failures with `first_attempts`"
            );
            loader.report(place, message);
        }
        (None, true) | (Some(_), false) => {}
    }
    if let Some(place) = map.key_place("first_attempts").filter(|_| !map.has("fails")) {
        loader.report(place, "`first_attempts` requires `fails`");
    }
    let returns = match map.get("computes") {
        Some(view) => expressions::parse(loader, view, &["input"]),
        None => map.json("returns").map(Expression::constant),
    };
    MockAction {
        schema: map.get("schema").map(|view| schemas::read(loader, view)),
        returns,
        failure: decode_failure(loader, map, "fails"),
        failing_attempts: number(map, "first_attempts"),
        delay_ms: decode_delay(loader, map),
        seed: map.integer("seed").and_then(|seed| u64::try_from(seed).ok()).unwrap_or(0),
    }
}

/// Decodes a duration or a range of durations.
fn decode_delay(loader: &mut AgentLoader, map: &MapView<'_>) -> (u64, u64) {
    let Some(view) = map.get("delay_ms") else { return (0, 0) };
    let times: Vec<u64> = view
        .one_or_many()
        .filter_map(NodeView::integer)
        .filter_map(|time| u64::try_from(time).ok())
        .collect();
    match times.as_slice() {
        [time] => (*time, *time),
        [from, to] if from <= to => (*from, *to),
        [_, _] => {
            loader.report(view.place(), "the first of two times must be the shorter one");
            (0, 0)
        }
        _ => {
            loader.report(
                view.place(),
                "`delay_ms` must be one time, or a list of the shortest and the longest",
            );
            (0, 0)
        }
    }
}

/// Decodes a failure: a message or a mapping.
fn decode_failure(loader: &mut AgentLoader, owner: &MapView<'_>, key: &str) -> Option<WorkFailure> {
    let view = owner.get(key)?;
    if let Some(message) = view.text() {
        return Some(WorkFailure::execution(message));
    }
    let map = owner.map(key)?;
    if let Some(place) = map.key_place("kind").filter(|_| map.has("code")) {
        loader.report(place, "a failure has either `kind` (infrastructure) or `code` (business), not both");
    }
    let message = map.text("message").unwrap_or_default();
    if let Some(kind) = map.text("kind").and_then(InfrastructureKind::from_name) {
        return Some(WorkFailure::infrastructure(kind, message));
    }
    let code = map.text("code").and_then(ErrorCode::from_name).unwrap_or(ErrorCode::ExecutionFailed);
    Some(WorkFailure::business(code, message))
}
