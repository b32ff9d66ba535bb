//! Agents and their tools.

use std::collections::BTreeMap;

use hotseat_document::{Diagnostic, Map, Place, View};
use hotseat_trace::InvocationMode;

use super::loader::{Document, Loader, Site};
use super::shape::{AGENT, TOOL};
use super::{expressions, millis, number, schemas};
use crate::definition::{
    Approval, ContextPolicy, Limits, ModelProfile, Persona, Reference, Retry, Target, Tool, ToolRetry,
    Workflow, persona, tool,
};
use crate::expression::Expression;
use crate::ids::AgentId;

/// An agent as its file says it, before it is known which model speaks for it.
pub(super) struct WrittenAgent {
    pub(super) persona: Persona,
    pub(super) description: Option<String>,
    pub(super) limits: Limits,
    /// The connector that it names.
    pub(super) connector: Option<(String, Place)>,
}

/// Reads an agent.
pub(super) fn read(loader: &mut Loader, document: &Document, id: &AgentId) -> Option<WrittenAgent> {
    let map = Map::of(&document.node, &document.source, &AGENT)?;
    let site = &Site { owner: Some(id.clone()), ..document.site.clone() };
    let name = map.text("name").map_or_else(|| site.stem(), str::to_owned);
    let mut made = persona(&name);
    made.system_prompt = map.text("system").unwrap_or_default().to_owned();
    made.profile = ModelProfile {
        temperature: map.number("temperature").and_then(serde_json::Number::as_f64),
        max_tokens: number(&map, "max_tokens"),
        ..made.profile
    };
    made.context_assembly = hook(loader, &map, "context", &name, site);
    made.memory_extraction = hook(loader, &map, "memory", &name, site);
    made.context_policy = match map.text("context_policy") {
        Some("per_turn") => ContextPolicy::PerTurn,
        _ => ContextPolicy::PerModelCall,
    };
    made.may_decline = map.bool("may_decline").unwrap_or(false);
    let written = map.map("limits");
    if let Some(limits) = &written {
        made.max_moves_per_turn = number(limits, "max_moves");
        let recent = limits.integer("recent_turns").and_then(|number| usize::try_from(number).ok());
        made.recent_turns_limit = recent.unwrap_or(made.recent_turns_limit);
    }
    let mut names: Vec<(String, Place)> = Vec::new();
    for map in map.list("tools").into_iter().flatten().filter_map(|view| view.map(&TOOL)) {
        let place = map.place_of("name").unwrap_or_else(|| map.place());
        let Some(tool) = read_tool(loader, &map, site) else { continue };
        match names.iter().find(|(known, _)| *known == tool.name) {
            Some((_, first)) => {
                let mistake = Diagnostic::new(format!("two tools are called `{}`", tool.name)).at(place);
                loader.wrong(mistake.also(first.clone(), "the first"));
            }
            None => names.push((tool.name.clone(), place)),
        }
        made.tools.push(tool);
    }
    Some(WrittenAgent {
        persona: made,
        description: map.text("description").map(str::to_owned),
        limits: written.map_or_else(Limits::default, |limits| read_limits(&limits)),
        connector: map.text("connector").map(str::to_owned).zip(map.place_of("connector")),
    })
}

/// A workflow that serves an agent.
fn hook(
    loader: &mut Loader,
    map: &Map<'_>,
    key: &str,
    agent: &str,
    site: &Site,
) -> Option<Reference<Workflow>> {
    let workflow = loader.workflow(map.get(key)?, &format!("{agent} {key}"), site)?;
    Some(Reference::Embedded(workflow))
}

fn read_limits(map: &Map<'_>) -> Limits {
    let usual = Limits::default();
    let attempts = |key: &str, usual: Retry| match map.map(key) {
        None => usual,
        Some(map) => Retry {
            attempts: number(&map, "attempts").unwrap_or(usual.attempts),
            backoff_ms: millis(&map, "backoff_ms").unwrap_or(usual.backoff_ms),
            timeout_ms: millis(&map, "timeout_ms").unwrap_or(usual.timeout_ms),
        },
    };
    let decisions = map.integer("decisions").and_then(|number| usize::try_from(number).ok());
    Limits {
        context: attempts("context", usual.context),
        model: attempts("model", usual.model),
        extraction: attempts("memory", usual.extraction),
        depth: number(map, "depth").unwrap_or(usual.depth),
        decisions: decisions.unwrap_or(usual.decisions),
    }
}

fn read_tool(loader: &mut Loader, map: &Map<'_>, site: &Site) -> Option<Tool> {
    let name = map.text("name")?;
    let mut made = tool(name);
    made.description = map.text("description").unwrap_or_default().to_owned();
    if let Some(view) = map.get("input") {
        made.input_schema = schemas::read(loader, view);
    }
    made.target = target(loader, map, name, site);
    made.is_async = map.bool("async").unwrap_or(false);
    made.mode = mode(loader, map);
    made.input_mapping = map.get("map").map(mapping);
    made.reads = members(loader, map, "reads", &["input", "state"]);
    made.writes = members(loader, map, "writes", &["input", "result", "state"]);
    made.approval = map.text("approval").map(|message| Approval { message: message.to_owned() });
    made.retry = retry(map);
    Some(made)
}

/// Members or paths with expressions over these names.
fn members(loader: &mut Loader, map: &Map<'_>, key: &str, names: &[&str]) -> Vec<(String, Expression)> {
    map.get(key).map(|view| expressions::members(loader, view, names)).unwrap_or_default()
}

const TARGETS: [&str; 4] = ["task", "workflow", "agent", "client"];

fn target(loader: &mut Loader, map: &Map<'_>, name: &str, site: &Site) -> Option<Target> {
    let given: Vec<&str> = TARGETS.into_iter().filter(|key| map.has(key)).collect();
    let key = match given.as_slice() {
        [key] => *key,
        [] => {
            let message = format!(
                "nothing is behind the tool `{name}`: it needs `task`, `workflow`, `agent` or `client`"
            );
            loader.mistake(map.place(), message);
            return None;
        }
        [first, second, ..] => {
            let place = map.key_place(second).unwrap_or_else(|| map.place());
            loader.mistake(
                place,
                format!("one thing is behind a tool, and this one has `{first}` and `{second}`"),
            );
            return None;
        }
    };
    let view = map.get(key)?;
    Some(match key {
        "task" => Target::Task(Reference::Embedded(loader.task(view, name, site)?)),
        "workflow" => Target::Workflow(Reference::Embedded(loader.workflow(view, name, site)?)),
        "agent" => Target::Agent(Reference::Id(loader.agent(view, site)?.0)),
        _ => {
            if view.bool() == Some(false) {
                loader.mistake(view.place(), "`client: false` says nothing: leave it out");
            }
            Target::Client
        }
    })
}

fn mode(loader: &mut Loader, map: &Map<'_>) -> InvocationMode {
    if let Some(place) = map.key_place("mode").filter(|_| !map.has("agent")) {
        loader.mistake(place, "`mode` says how an agent takes part, and there is no agent behind this tool");
    }
    if map.text("mode") != Some("loop_in") {
        return InvocationMode::Delegate;
    }
    if let Some(place) = map.key_place("async").filter(|_| map.bool("async") == Some(true)) {
        loader.mistake(place, "an agent that is looped in joins at once, so the tool cannot be asynchronous");
    }
    for key in ["writes", "retry", "timeout_ms"] {
        if let Some(place) = map.key_place(key) {
            loader.mistake(
                place,
                format!("an agent that is looped in joins at once: `{key}` has nothing to wait for"),
            );
        }
    }
    InvocationMode::LoopIn
}

fn mapping(view: View<'_>) -> BTreeMap<String, String> {
    let entries = view.entries().into_iter().flatten();
    entries.filter_map(|(target, _, source)| Some((target.to_owned(), source.text()?.to_owned()))).collect()
}

fn retry(map: &Map<'_>) -> ToolRetry {
    let usual = ToolRetry::default();
    let written = map.map("retry");
    let (attempts, backoff) = match &written {
        Some(map) => (number(map, "max_attempts"), millis(map, "backoff_ms")),
        None => (None, None),
    };
    ToolRetry {
        max_attempts: attempts.unwrap_or(usual.max_attempts),
        backoff_ms: backoff.unwrap_or(usual.backoff_ms),
        timeout_ms: match map.get("timeout_ms") {
            // A person may take their time.
            None if map.has("client") => None,
            None => usual.timeout_ms,
            Some(view) => view.integer().and_then(|limit| u64::try_from(limit).ok()),
        },
    }
}
