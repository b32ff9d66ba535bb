//! Workflows: nodes and the ways between them.

use std::collections::BTreeSet;
use std::sync::Arc;

use hotseat_document::{Diagnostic, Map, Place, View, nearest};

use super::loader::{Loader, Site};
use super::shape::{NODE, TRANSITION};
use super::{expressions, millis, number, schemas};
use crate::definition::{
    FanIn, ForEach, Join, Merging, Node, NodeWork, OnJoinTimeout, Reference, Transition, Workflow,
    transition, workflow,
};
use crate::expression::Expression;

/// The names that every expression of a workflow can use.
const SCOPE: [&str; 3] = ["input", "state", "output"];

/// Reads a workflow that is called `name` if it does not say otherwise.
pub(super) fn read(loader: &mut Loader, map: &Map<'_>, name: &str, site: &Site) -> Arc<Workflow> {
    let mut made = workflow(map.text("name").unwrap_or(name));
    made.input_schema = map.get("input").map(|view| schemas::read(loader, view));
    made.output_schema = map.get("output").map(|view| schemas::read(loader, view));
    made.output_mapping = returns(loader, map);
    made.initial = map.text("initial").map(str::to_owned);

    let nodes: Vec<Map<'_>> =
        map.list("nodes").into_iter().flatten().filter_map(|view| view.map(&NODE)).collect();
    let ways: Vec<Map<'_>> =
        map.list("transitions").into_iter().flatten().filter_map(|view| view.map(&TRANSITION)).collect();
    let items = items(loader, &ways);
    let scope: Vec<&str> =
        SCOPE.into_iter().chain(["branch"]).chain(items.iter().map(String::as_str)).collect();
    for map in &nodes {
        if let Some(node) = node(loader, map, &made.name, &scope, site) {
            made.nodes.push(node);
        }
    }
    made.transitions = ways.iter().map(|map| way(loader, map, &scope)).collect();

    // Who is missing or doubled shows only if all could be read.
    if !loader.mistakes.any_within(&map.place()) {
        check_names(loader, map, &nodes, &ways);
        check_groups(loader, &ways, &made);
        check_counted(loader, &ways, &made);
    }
    if !loader.mistakes.any_within(&map.place()) {
        check_reached(loader, &nodes, &made);
    }
    loader.add_workflow(made, map.place_of("name").unwrap_or_else(|| map.place()))
}

/// A whole value, or members.
fn returns(loader: &mut Loader, map: &Map<'_>) -> Vec<(String, Expression)> {
    match map.get("returns") {
        None => Vec::new(),
        Some(view) if view.text().is_some() => {
            let whole = expressions::read(loader, view, &SCOPE);
            whole.map(|expression| (String::new(), expression)).into_iter().collect()
        }
        Some(view) => {
            refuse_empty(loader, view, "leave `returns` out to return the `output`");
            expressions::members(loader, view, &SCOPE)
        }
    }
}

fn refuse_empty(loader: &mut Loader, view: View<'_>, help: &str) {
    if view.entries().is_some_and(|entries| entries.len() == 0) {
        loader.wrong(
            Diagnostic::new("this mapping is empty, and would say nothing").at(view.place()).help(help),
        );
    }
}

/// What items of lists are called in branches.
fn items(loader: &mut Loader, ways: &[Map<'_>]) -> Vec<String> {
    let mut items = Vec::new();
    for each in ways.iter().filter_map(|way| way.map("for_each")) {
        let (Some(item), Some(place)) = (each.text("item"), each.place_of("item")) else { continue };
        if SCOPE.contains(&item) || ["branch", "result"].contains(&item) {
            loader.mistake(place, format!("an item cannot be called `{item}`: expressions use that name"));
        }
        items.push(item.to_owned());
    }
    items
}

fn node(loader: &mut Loader, map: &Map<'_>, workflow: &str, scope: &[&str], site: &Site) -> Option<Node> {
    let name = map.text("name")?;
    let own_name = format!("{workflow} {name}");
    let given: Vec<&str> = ["task", "workflow", "agent"].into_iter().filter(|key| map.has(key)).collect();
    let work = match given.as_slice() {
        [key] => map.get(key).and_then(|view| work(loader, key, view, &own_name, site)),
        [] => {
            let message =
                format!("nothing is done at the node `{name}`: it needs `task`, `workflow` or `agent`");
            loader.mistake(map.place(), message);
            None
        }
        [first, second, ..] => {
            let place = map.key_place(second).unwrap_or_else(|| map.place());
            loader.mistake(
                place,
                format!("one thing is done at a node, and this one has `{first}` and `{second}`"),
            );
            None
        }
    };
    let with_result: Vec<&str> = scope.iter().copied().chain(["result"]).collect();
    let (input, output) = (map.get("input"), map.get("output"));
    if let Some(view) = input {
        refuse_empty(loader, view, "leave `input` out to give what the workflow was given");
    }
    if let Some(view) = output {
        refuse_empty(loader, view, "leave `output` out to make the result the output");
    }
    let input_mapping = match input {
        None => Vec::new(),
        Some(view) if view.entries().is_none() => {
            let whole = expressions::read(loader, view, scope);
            whole.map(|expression| ("*".to_owned(), expression)).into_iter().collect()
        }
        Some(view) => expressions::inputs(loader, view, scope),
    };
    let output_mapping =
        output.map(|view| expressions::outputs(loader, view, &with_result)).unwrap_or_default();
    Some(Node { name: name.to_owned(), work: work?, input_mapping, output_mapping })
}

fn work(loader: &mut Loader, key: &str, view: View<'_>, name: &str, site: &Site) -> Option<NodeWork> {
    match key {
        "task" => loader.task(view, name, site).map(NodeWork::Task),
        "workflow" => {
            let workflow = loader.workflow(view, name, site)?;
            Some(NodeWork::Workflow(Reference::Embedded(workflow)))
        }
        _ => loader.agent(view, site).map(|id| NodeWork::Agent(Reference::Id(id.0))),
    }
}

fn way(loader: &mut Loader, map: &Map<'_>, scope: &[&str]) -> Transition {
    let (from, to) = (map.text("from").unwrap_or_default(), map.text("to").unwrap_or_default());
    let usual = transition(from, to);
    if let Some(place) = map.key_place("spawn").filter(|_| map.has("for_each")) {
        loader.mistake(place, "`for_each` says how many branches there are: leave `spawn` out");
    }
    if let Some(place) = map.key_place("for_each").filter(|_| !map.has("group")) {
        loader.mistake(place, "the branches of `for_each` need a `group`");
    }
    Transition {
        name: map.text("name").map_or(usual.name.clone(), str::to_owned),
        priority: number(map, "priority").unwrap_or(usual.priority),
        condition: map.get("when").and_then(|view| expressions::read(loader, view, scope)),
        spawn_count: number(map, "spawn").unwrap_or(usual.spawn_count),
        for_each: map.map("for_each").and_then(|map| {
            Some(ForEach {
                collection: expressions::read(loader, map.get("collection")?, scope)?,
                item: map.text("item")?.to_owned(),
            })
        }),
        sibling_group: map.text("group").map(str::to_owned),
        fan_in: map.map("fan_in").and_then(|map| fan_in(loader, &map)),
        max_iterations: number(map, "max_iterations"),
        ..usual
    }
}

fn fan_in(loader: &mut Loader, map: &Map<'_>) -> Option<FanIn> {
    if let Some(place) = map.key_place("on_timeout").filter(|_| !map.has("timeout_ms")) {
        loader.mistake(
            place,
            "`on_timeout` says what happens after a time, and nothing says which: add `timeout_ms`",
        );
    }
    let then = match map.text("on_timeout") {
        Some("proceed") => OnJoinTimeout::Proceed,
        _ => OnJoinTimeout::Fail,
    };
    Some(FanIn {
        sibling_group: map.text("group")?.to_owned(),
        join: match (map.text("join"), number(map, "join")) {
            (Some("any"), _) => Join::Any,
            (_, Some(count)) => Join::Count(count),
            _ => Join::All,
        },
        merge: map.map("merge").and_then(|map| merging(loader, &map)),
        timeout: millis(map, "timeout_ms").map(|millis| (millis, then)),
    })
}

fn merging(loader: &mut Loader, map: &Map<'_>) -> Option<Merging> {
    type Make = fn(String) -> Merging;
    let ways: [(&str, Make); 5] = [
        ("append", Merging::Append),
        ("collect", Merging::Collect),
        ("merge_object", Merging::MergeObject),
        ("keyed_by_branch", Merging::KeyedByBranch),
        ("last_wins", Merging::LastWins),
    ];
    let given: Vec<(&str, Make)> = ways.into_iter().filter(|(key, _)| map.has(key)).collect();
    let [(key, make)] = given.as_slice() else {
        let words = "one of `append`, `collect`, `merge_object`, `keyed_by_branch` and `last_wins`";
        loader.mistake(map.place(), format!("`merge` needs {words}"));
        return None;
    };
    let path = map.text(key)?;
    expressions::check_path(loader, path, map.place_of(key)?);
    Some(make(path.to_owned()))
}

/// Nodes that are there twice or not at all.
fn check_names(loader: &mut Loader, workflow: &Map<'_>, nodes: &[Map<'_>], ways: &[Map<'_>]) {
    let mut names: Vec<(&str, Place)> = Vec::new();
    for (name, place) in nodes.iter().filter_map(|node| Some((node.text("name")?, node.place_of("name")?))) {
        match names.iter().find(|(known, _)| *known == name) {
            Some((_, first)) => loader.wrong(
                Diagnostic::new(format!("two nodes are called `{name}`"))
                    .at(place)
                    .also(first.clone(), "the first"),
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
        let help = match nearest(name, names.iter().map(|(known, _)| *known)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                let known: Vec<String> = names.iter().map(|(known, _)| format!("`{known}`")).collect();
                format!("there are {}", known.join(", "))
            }
        };
        loader.wrong(Diagnostic::new(format!("there is no node `{name}`")).at(place).help(help));
    }
}

/// Branches that nobody makes never come together.
fn check_groups(loader: &mut Loader, ways: &[Map<'_>], made: &Workflow) {
    let groups: BTreeSet<&str> =
        made.transitions.iter().filter_map(|way| way.sibling_group.as_deref()).collect();
    for (group, place) in ways
        .iter()
        .filter_map(|way| way.map("fan_in"))
        .filter_map(|fan_in| Some((fan_in.text("group")?, fan_in.place_of("group")?)))
    {
        if !groups.contains(group) {
            let help = match nearest(group, groups.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "a transition with `group` makes branches".to_owned(),
            };
            let message = format!("no transition makes branches of the group `{group}`");
            loader.wrong(Diagnostic::new(message).at(place).help(help));
        }
    }
}

/// Transitions are counted by their names.
fn check_counted(loader: &mut Loader, ways: &[Map<'_>], made: &Workflow) {
    for (map, way) in ways.iter().zip(&made.transitions).filter(|(_, way)| way.max_iterations.is_some()) {
        if made.transitions.iter().filter(|other| other.name == way.name).count() > 1 {
            let place = map.place_of("max_iterations").unwrap_or_else(|| map.place());
            let message = format!("two transitions are called `{}`, and would be counted together", way.name);
            loader.wrong(Diagnostic::new(message).at(place).help("give one of them a `name`"));
        }
    }
}

/// Nodes at which no token can arrive.
fn check_reached(loader: &mut Loader, nodes: &[Map<'_>], made: &Workflow) {
    let Some(first) = made.initial.as_deref().or(made.nodes.first().map(|node| node.name.as_str())) else {
        return;
    };
    let mut reached = BTreeSet::from([first]);
    if made.transitions.is_empty() {
        let names = made.nodes.iter().map(|node| node.name.as_str());
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
        let place = map.place_of("name").unwrap_or_else(|| map.place());
        let message = format!("no way leads from `{first}` to the node `{name}`");
        loader.wrong(Diagnostic::new(message).at(place).help("add a transition, or take the node out"));
    }
}
