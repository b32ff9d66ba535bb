//! Decodes workflows, their nodes and transitions.

use std::collections::BTreeSet;
use std::sync::Arc;

use hotseat_document::{Diagnostic, MapView, NodeView, SourceSpan, nearest_or};

use super::loader::{AgentLoader, DefinitionKind, FileLocation, canonical};
use super::shape::{NODE, TRANSITION, WORKFLOW};
use super::{expressions, millis, number, schemas, task};
use crate::definition::{
    BranchJoin, BranchMerge, BranchPerItem, DefinitionRef, JoinRule, NodeTransition, NodeWork, OnJoinTimeout,
    WorkflowDefinition, WorkflowNode, transition, workflow,
};
use crate::expression::Expression;

/// Names available in all expressions of a workflow.
const SCOPE: [&str; 3] = ["input", "state", "output"];

/// Loads the workflow that a view names or contains.
pub(super) fn load(
    loader: &mut AgentLoader,
    view: NodeView<'_>,
    name: &str,
    site: &FileLocation,
) -> Option<Arc<WorkflowDefinition>> {
    let Some(reference) = view.text() else {
        return Some(decode(loader, &view.map(&WORKFLOW)?, name, site));
    };
    let path = loader.resolve_reference(DefinitionKind::Workflow, reference, view.place(), site)?;
    let key = canonical(&path);
    if let Some(known) = loader.workflows.get(&key) {
        return known.clone();
    }
    if loader.open_workflows.contains(&key) {
        loader.report(
            view.place(),
            format!("the workflow `{reference}` contains itself, which would never end"),
        );
        return None;
    }
    loader.open_workflows.push(key.clone());
    let document = loader.load_document(&path, &WORKFLOW);
    let workflow = document.as_ref().and_then(|document| {
        let map = MapView::from_node(&document.node, &document.source, &WORKFLOW)?;
        Some(decode(loader, &map, &document.site.stem(), &document.site))
    });
    loader.open_workflows.pop();
    loader.workflows.insert(key, workflow.clone());
    workflow
}

/// Decodes a workflow. `name` is used if the workflow has no name.
fn decode(
    loader: &mut AgentLoader,
    map: &MapView<'_>,
    name: &str,
    site: &FileLocation,
) -> Arc<WorkflowDefinition> {
    let mut made = workflow(map.text("name").unwrap_or(name));
    made.input_schema = map.get("input").map(|view| schemas::read(loader, view));
    made.output_schema = map.get("output").map(|view| schemas::read(loader, view));
    made.output_mapping = decode_returns(loader, map);
    made.initial = map.text("initial").map(str::to_owned);

    let nodes: Vec<MapView<'_>> = map.maps("nodes", &NODE).collect();
    let transition_maps: Vec<MapView<'_>> = map.maps("transitions", &TRANSITION).collect();
    let item_names = decode_item_names(loader, &transition_maps);
    let scope: Vec<&str> =
        SCOPE.into_iter().chain(["branch"]).chain(item_names.iter().map(String::as_str)).collect();
    for map in &nodes {
        if let Some(node) = decode_node(loader, map, &made.name, &scope, site) {
            made.nodes.push(node);
        }
    }
    made.transitions = transition_maps.iter().map(|map| decode_transition(loader, map, &scope)).collect();

    // Consistency checks need all parts to be decoded without errors.
    if !loader.diagnostics.any_within(&map.place()) {
        check_names(loader, map, &nodes, &transition_maps);
        check_groups(loader, &transition_maps, &made);
        check_counted(loader, &transition_maps, &made);
    }
    if !loader.diagnostics.any_within(&map.place()) {
        check_reached(loader, &nodes, &made);
    }
    loader.add_workflow(made, map.place_near("name"))
}

/// Decodes the result: one expression, or members.
fn decode_returns(loader: &mut AgentLoader, map: &MapView<'_>) -> Vec<(String, Expression)> {
    match map.get("returns") {
        None => Vec::new(),
        Some(view) if view.text().is_some() => {
            let whole = expressions::parse(loader, view, &SCOPE);
            whole.map(|expression| (String::new(), expression)).into_iter().collect()
        }
        Some(view) => {
            report_empty(loader, view, "remove `returns` to return the `output`");
            expressions::members(loader, view, &SCOPE)
        }
    }
}

fn report_empty(loader: &mut AgentLoader, view: NodeView<'_>, help: &str) {
    if view.entries().is_some_and(|entries| entries.len() == 0) {
        loader.report_diagnostic(Diagnostic::new("this mapping is empty").at(view.place()).help(help));
    }
}

/// Decodes the names of list items in branches.
fn decode_item_names(loader: &mut AgentLoader, ways: &[MapView<'_>]) -> Vec<String> {
    let mut items = Vec::new();
    for each in ways.iter().filter_map(|way| way.map("for_each")) {
        let (Some(item), Some(place)) = (each.text("item"), each.place_of("item")) else { continue };
        if SCOPE.contains(&item) || ["branch", "result"].contains(&item) {
            loader.report(place, format!("the item name `{item}` is reserved for expressions"));
        }
        items.push(item.to_owned());
    }
    items
}

fn decode_node(
    loader: &mut AgentLoader,
    map: &MapView<'_>,
    workflow: &str,
    scope: &[&str],
    site: &FileLocation,
) -> Option<WorkflowNode> {
    let name = map.text("name")?;
    let own_name = format!("{workflow} {name}");
    let missing = || format!("the node `{name}` has no work: add `task`, `workflow` or `agent`");
    let kinds = ["task", "workflow", "agent"];
    let key = loader.only_key(map, &kinds, "a node has exactly one kind of work", missing);
    let work = key.and_then(|key| decode_work(loader, key, map.get(key)?, &own_name, site));
    let with_result: Vec<&str> = scope.iter().copied().chain(["result"]).collect();
    let (input, output) = (map.get("input"), map.get("output"));
    if let Some(view) = input {
        report_empty(loader, view, "remove `input` to pass the input of the workflow");
    }
    if let Some(view) = output {
        report_empty(loader, view, "remove `output` to use the result as output");
    }
    let input_mapping = match input {
        None => Vec::new(),
        Some(view) if view.entries().is_none() => {
            let whole = expressions::parse(loader, view, scope);
            whole.map(|expression| ("*".to_owned(), expression)).into_iter().collect()
        }
        Some(view) => expressions::inputs(loader, view, scope),
    };
    let output_mapping =
        output.map(|view| expressions::outputs(loader, view, &with_result)).unwrap_or_default();
    Some(WorkflowNode { name: name.into(), work: work?, input_mapping, output_mapping })
}

fn decode_work(
    loader: &mut AgentLoader,
    key: &str,
    view: NodeView<'_>,
    name: &str,
    site: &FileLocation,
) -> Option<NodeWork> {
    match key {
        "task" => task::load(loader, view, name, site).map(NodeWork::Task),
        "workflow" => {
            let workflow = load(loader, view, name, site)?;
            Some(NodeWork::Workflow(DefinitionRef::Embedded(workflow)))
        }
        _ => loader.queue_agent(view, site).map(|id| NodeWork::Agent(DefinitionRef::Id(id.0))),
    }
}

fn decode_transition(loader: &mut AgentLoader, map: &MapView<'_>, scope: &[&str]) -> NodeTransition {
    let (from, to) = (map.text("from").unwrap_or_default(), map.text("to").unwrap_or_default());
    let defaults = transition(from, to);
    if let Some(place) = map.key_place("spawn").filter(|_| map.has("for_each")) {
        loader.report(place, "`for_each` determines the number of branches: remove `spawn`");
    }
    if let Some(place) = map.key_place("for_each").filter(|_| !map.has("group")) {
        loader.report(place, "the branches of `for_each` need a `group`");
    }
    NodeTransition {
        name: map.text("name").map_or(defaults.name.clone(), str::to_owned),
        priority: number(map, "priority").unwrap_or(defaults.priority),
        condition: map.get("when").and_then(|view| expressions::parse(loader, view, scope)),
        spawn_count: number(map, "spawn").unwrap_or(defaults.spawn_count),
        for_each: map.map("for_each").and_then(|map| {
            Some(BranchPerItem {
                collection: expressions::parse(loader, map.get("collection")?, scope)?,
                item: map.text("item")?.to_owned(),
            })
        }),
        sibling_group: map.text("group").map(str::to_owned),
        fan_in: map.map("fan_in").and_then(|map| decode_fan_in(loader, &map)),
        max_iterations: number(map, "max_iterations"),
        ..defaults
    }
}

fn decode_fan_in(loader: &mut AgentLoader, map: &MapView<'_>) -> Option<BranchJoin> {
    if let Some(place) = map.key_place("on_timeout").filter(|_| !map.has("timeout_ms")) {
        loader.report(place, "`on_timeout` requires `timeout_ms`");
    }
    let then = match map.text("on_timeout") {
        Some("proceed") => OnJoinTimeout::Proceed,
        _ => OnJoinTimeout::Fail,
    };
    Some(BranchJoin {
        sibling_group: map.text("group")?.to_owned(),
        join: match (map.text("join"), number(map, "join")) {
            (Some("any"), _) => JoinRule::Any,
            (_, Some(count)) => JoinRule::Count(count),
            _ => JoinRule::All,
        },
        merge: map.map("merge").and_then(|map| decode_branch_merge(loader, &map)),
        timeout: millis(map, "timeout_ms").map(|millis| (millis, then)),
    })
}

fn decode_branch_merge(loader: &mut AgentLoader, map: &MapView<'_>) -> Option<BranchMerge> {
    type Make = fn(String) -> BranchMerge;
    let ways: [(&str, Make); 5] = [
        ("append", BranchMerge::Append),
        ("collect", BranchMerge::Collect),
        ("merge_object", BranchMerge::MergeObject),
        ("keyed_by_branch", BranchMerge::KeyedByBranch),
        ("last_wins", BranchMerge::LastWins),
    ];
    let given: Vec<(&str, Make)> = ways.into_iter().filter(|(key, _)| map.has(key)).collect();
    let [(key, make)] = given.as_slice() else {
        let words = "one of `append`, `collect`, `merge_object`, `keyed_by_branch` and `last_wins`";
        loader.report(map.place(), format!("`merge` needs {words}"));
        return None;
    };
    let path = map.text(key)?;
    expressions::check_path(loader, path, map.place_of(key)?);
    Some(make(path.to_owned()))
}

/// Reports duplicate and unknown node names.
fn check_names(
    loader: &mut AgentLoader,
    workflow: &MapView<'_>,
    nodes: &[MapView<'_>],
    ways: &[MapView<'_>],
) {
    let mut names: Vec<(&str, SourceSpan)> = Vec::new();
    for (name, place) in nodes.iter().filter_map(|node| Some((node.text("name")?, node.place_of("name")?))) {
        match names.iter().find(|(known, _)| *known == name) {
            Some((_, first)) => loader.report_diagnostic(
                Diagnostic::new(format!("duplicate node name `{name}`"))
                    .at(place)
                    .with_related(first.clone(), "the first"),
            ),
            None => names.push((name, place)),
        }
    }
    let ends = ways.iter().flat_map(|way| ["from", "to"].map(|key| (way, key)));
    let used = std::iter::once((workflow, "initial")).chain(ends);
    for (name, place) in used.filter_map(|(map, key)| Some((map.text(key)?, map.place_of(key)?))) {
        if names.iter().any(|(known, _)| *known == name) {
            continue;
        }
        let known = || names.iter().map(|(known, _)| *known);
        let list = || known().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let help = nearest_or(name, known(), || format!("there are {}", list()));
        loader.report_diagnostic(Diagnostic::new(format!("unknown node `{name}`")).at(place).help(help));
    }
}

/// Reports joins of groups that no transition creates.
fn check_groups(loader: &mut AgentLoader, ways: &[MapView<'_>], made: &WorkflowDefinition) {
    let groups: BTreeSet<&str> =
        made.transitions.iter().filter_map(|way| way.sibling_group.as_deref()).collect();
    for (group, place) in ways
        .iter()
        .filter_map(|way| way.map("fan_in"))
        .filter_map(|fan_in| Some((fan_in.text("group")?, fan_in.place_of("group")?)))
    {
        if !groups.contains(group) {
            let add = || "add a transition with this `group`".to_owned();
            let help = nearest_or(group, groups.iter().copied(), add);
            let message = format!("no transition creates branches of the group `{group}`");
            loader.report_diagnostic(Diagnostic::new(message).at(place).help(help));
        }
    }
}

/// Reports transitions with `max_iterations` that share their name, because transitions are counted by name.
fn check_counted(loader: &mut AgentLoader, ways: &[MapView<'_>], made: &WorkflowDefinition) {
    for (map, way) in ways.iter().zip(&made.transitions).filter(|(_, way)| way.max_iterations.is_some()) {
        if made.transitions.iter().filter(|other| other.name == way.name).count() > 1 {
            let place = map.place_near("max_iterations");
            let message = format!(
                "duplicate transition name `{}`: `max_iterations` would count both together",
                way.name
            );
            loader.report_diagnostic(Diagnostic::new(message).at(place).help("give one of them a `name`"));
        }
    }
}

/// Reports unreachable nodes.
fn check_reached(loader: &mut AgentLoader, nodes: &[MapView<'_>], made: &WorkflowDefinition) {
    let Some(first) = made.initial.as_deref().or(made.nodes.first().map(|node| &*node.name)) else {
        return;
    };
    let mut reached = BTreeSet::from([first]);
    if made.transitions.is_empty() {
        let names = made.nodes.iter().map(|node| &*node.name);
        reached.extend(names.skip_while(|name| *name != first));
    }
    loop {
        let before = reached.len();
        for way in &made.transitions {
            if reached.contains(way.from.as_str()) {
                reached.insert(&way.to);
            }
        }
        if reached.len() == before {
            break;
        }
    }
    for map in nodes {
        let Some(name) = map.text("name").filter(|name| !reached.contains(name)) else { continue };
        let place = map.place_near("name");
        let message = format!("the node `{name}` is not reachable from `{first}`");
        loader.report_diagnostic(
            Diagnostic::new(message).at(place).help("add a transition, or remove the node"),
        );
    }
}
