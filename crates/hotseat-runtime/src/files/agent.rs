//! Decodes agents and their tools.

use std::collections::BTreeMap;

use hotseat_document::{Diagnostic, MapView, NodeView, SourceSpan};
use hotseat_trace::InvocationMode;

use super::loader::{AgentLoader, FileLocation, LoadedDocument};
use super::shape::{AGENT, TOOL};
use super::{expressions, millis, number, schemas, task, workflow};
use crate::definition::{
    ApprovalPolicy, AttemptLimits, ContextPolicy, DefinitionRef, ModelProfile, Persona, RuntimeLimits,
    ToolDefinition, ToolRetry, ToolTarget, WorkflowDefinition, persona, tool,
};
use crate::expression::Expression;
use crate::ids::AgentId;

/// Agent decoded from its file, before its model is assigned.
pub(super) struct DecodedAgent {
    pub(super) persona: Persona,
    pub(super) description: Option<String>,
    pub(super) limits: RuntimeLimits,
    /// Name of the connector and its position.
    pub(super) connector: Option<(String, SourceSpan)>,
}

/// Decodes an agent.
pub(super) fn decode(
    loader: &mut AgentLoader,
    document: &LoadedDocument,
    id: &AgentId,
) -> Option<DecodedAgent> {
    let map = MapView::from_node(&document.node, &document.source, &AGENT)?;
    let site = &FileLocation { owner: Some(id.clone()), ..document.site.clone() };
    let name = map.text("name").map_or_else(|| site.stem(), str::to_owned);
    let mut made = persona(&name);
    made.system_prompt = map.text("system").unwrap_or_default().to_owned();
    made.profile = ModelProfile {
        temperature: map.number("temperature").and_then(serde_json::Number::as_f64),
        max_tokens: number(&map, "max_tokens"),
        ..made.profile
    };
    made.context_assembly = decode_hook(loader, &map, "context", &name, site);
    made.memory_extraction = decode_hook(loader, &map, "memory", &name, site);
    made.context_policy = match map.text("context_policy") {
        Some("per_turn") => ContextPolicy::PerTurn,
        _ => ContextPolicy::PerModelCall,
    };
    made.may_decline = map.bool("may_decline").unwrap_or(false);
    let written = map.map("limits");
    if let Some(limits) = &written {
        made.max_moves_per_turn = number(limits, "max_moves");
        let recent = limits.size("recent_turns");
        made.recent_turns_limit = recent.unwrap_or(made.recent_turns_limit);
    }
    let mut names: Vec<(String, SourceSpan)> = Vec::new();
    for map in map.maps("tools", &TOOL) {
        let place = map.place_near("name");
        let Some(tool) = decode_tool(loader, &map, site) else { continue };
        match names.iter().find(|(known, _)| *known == tool.name) {
            Some((_, first)) => {
                let mistake = Diagnostic::new(format!("duplicate tool name `{}`", tool.name)).at(place);
                loader.report_diagnostic(mistake.with_related(first.clone(), "the first"));
            }
            None => names.push((tool.name.clone(), place)),
        }
        made.tools.push(tool);
    }
    Some(DecodedAgent {
        persona: made,
        description: map.text("description").map(str::to_owned),
        limits: written.map_or_else(RuntimeLimits::default, |limits| decode_limits(&limits)),
        connector: map.text("connector").map(str::to_owned).zip(map.place_of("connector")),
    })
}

/// Decodes a hook workflow of an agent.
fn decode_hook(
    loader: &mut AgentLoader,
    map: &MapView<'_>,
    key: &str,
    agent: &str,
    site: &FileLocation,
) -> Option<DefinitionRef<WorkflowDefinition>> {
    let workflow = workflow::load(loader, map.get(key)?, &format!("{agent} {key}"), site)?;
    Some(DefinitionRef::Embedded(workflow))
}

fn decode_limits(map: &MapView<'_>) -> RuntimeLimits {
    let defaults = RuntimeLimits::default();
    let attempts = |key: &str, usual: AttemptLimits| match map.map(key) {
        None => usual,
        Some(map) => AttemptLimits {
            attempts: number(&map, "attempts").unwrap_or(usual.attempts),
            backoff_ms: millis(&map, "backoff_ms").unwrap_or(usual.backoff_ms),
            timeout_ms: millis(&map, "timeout_ms").unwrap_or(usual.timeout_ms),
        },
    };
    let decisions = map.size("decisions");
    RuntimeLimits {
        context: attempts("context", defaults.context),
        model: attempts("model", defaults.model),
        extraction: attempts("memory", defaults.extraction),
        depth: number(map, "depth").unwrap_or(defaults.depth),
        decisions: decisions.unwrap_or(defaults.decisions),
    }
}

fn decode_tool(loader: &mut AgentLoader, map: &MapView<'_>, site: &FileLocation) -> Option<ToolDefinition> {
    let name = map.text("name")?;
    let mut made = tool(name);
    made.description = map.text("description").unwrap_or_default().to_owned();
    if let Some(view) = map.get("input") {
        made.input_schema = schemas::read(loader, view);
    }
    made.target = decode_target(loader, map, name, site);
    made.is_async = map.bool("async").unwrap_or(false);
    made.mode = decode_mode(loader, map);
    made.input_mapping = map.get("map").map(decode_mapping);
    made.reads = members(loader, map, "reads", &["input", "state"]);
    made.writes = members(loader, map, "writes", &["input", "result", "state"]);
    made.approval = map.text("approval").map(|message| ApprovalPolicy { message: message.to_owned() });
    made.retry = decode_retry(map);
    Some(made)
}

/// Decodes members or paths with expressions over these names.
fn members(
    loader: &mut AgentLoader,
    map: &MapView<'_>,
    key: &str,
    names: &[&str],
) -> Vec<(String, Expression)> {
    map.get(key).map(|view| expressions::members(loader, view, names)).unwrap_or_default()
}

const TARGET_KEYS: [&str; 4] = ["task", "workflow", "agent", "client"];

fn decode_target(
    loader: &mut AgentLoader,
    map: &MapView<'_>,
    name: &str,
    site: &FileLocation,
) -> Option<ToolTarget> {
    let missing = || format!("the tool `{name}` has no target: add `task`, `workflow`, `agent` or `client`");
    let key = loader.only_key(map, &TARGET_KEYS, "a tool has exactly one target", missing)?;
    let view = map.get(key)?;
    Some(match key {
        "task" => ToolTarget::Task(DefinitionRef::Embedded(task::load(loader, view, name, site)?)),
        "workflow" => {
            ToolTarget::Workflow(DefinitionRef::Embedded(workflow::load(loader, view, name, site)?))
        }
        "agent" => ToolTarget::Agent(DefinitionRef::Id(loader.queue_agent(view, site)?.0)),
        _ => {
            if view.bool() == Some(false) {
                loader.report(view.place(), "`client: false` has no effect: remove it");
            }
            ToolTarget::Client
        }
    })
}

fn decode_mode(loader: &mut AgentLoader, map: &MapView<'_>) -> InvocationMode {
    if let Some(place) = map.key_place("mode").filter(|_| !map.has("agent")) {
        loader.report(place, "`mode` requires `agent`, and this tool has no agent");
    }
    if map.text("mode") != Some("loop_in") {
        return InvocationMode::Delegate;
    }
    if let Some(place) = map.key_place("async").filter(|_| map.bool("async") == Some(true)) {
        loader.report(place, "a looped-in agent joins immediately, so the tool cannot be asynchronous");
    }
    for key in ["writes", "retry", "timeout_ms"] {
        if let Some(place) = map.key_place(key) {
            loader.report(place, format!("a looped-in agent joins immediately: `{key}` has no effect"));
        }
    }
    InvocationMode::LoopIn
}

fn decode_mapping(view: NodeView<'_>) -> BTreeMap<String, String> {
    let entries = view.entries().into_iter().flatten();
    entries.filter_map(|(target, _, source)| Some((target.to_owned(), source.text()?.to_owned()))).collect()
}

fn decode_retry(map: &MapView<'_>) -> ToolRetry {
    let defaults = ToolRetry::default();
    let written = map.map("retry");
    let (attempts, backoff) = match &written {
        Some(map) => (number(map, "max_attempts"), millis(map, "backoff_ms")),
        None => (None, None),
    };
    ToolRetry {
        max_attempts: attempts.unwrap_or(defaults.max_attempts),
        backoff_ms: backoff.unwrap_or(defaults.backoff_ms),
        timeout_ms: match map.get("timeout_ms") {
            // Clients may need any amount of time.
            None if map.has("client") => None,
            None => defaults.timeout_ms,
            Some(view) => view.integer().and_then(|limit| u64::try_from(limit).ok()),
        },
    }
}
