//! Selects the transitions of a token whose work is done.

use std::sync::Arc;

use serde_json::Value;

use super::scope::WorkScope;
use crate::definition::{NodeTransition, WorkflowDefinition, transition};
use crate::expression::EvaluateError;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct TakenTransition {
    pub transition: NodeTransition,
    /// Number of branches to start.
    pub count: u32,
    /// Items of the branches.
    pub items: Option<Vec<Arc<Value>>>,
}

/// Returns the transitions taken from a node: all matching ones of the first priority that has a match.
///
/// `taken` returns how often a transition was taken on the current path.
pub(super) fn select_transitions(
    workflow: &WorkflowDefinition,
    node: &str,
    scope: &WorkScope,
    taken: impl Fn(&str) -> u32,
) -> Result<Vec<TakenTransition>, EvaluateError> {
    let mut candidates: Vec<NodeTransition> = if workflow.transitions.is_empty() {
        let place = workflow.nodes.iter().position(|other| &*other.name == node);
        let next = place.and_then(|place| workflow.nodes.get(place + 1));
        next.map(|next| transition(node, &next.name)).into_iter().collect()
    } else {
        workflow.transitions.iter().filter(|way| way.from == node).cloned().collect()
    };
    candidates.sort_by_key(|way| way.priority);
    let mut found: Vec<TakenTransition> = Vec::new();
    for way in candidates {
        if found.first().is_some_and(|first| first.transition.priority != way.priority) {
            break;
        }
        let limit_reached = way.max_iterations.is_some_and(|most| taken(&way.name) >= most);
        let holds = match &way.condition {
            Some(condition) => condition.is_truthy(scope)?,
            None => true,
        };
        if limit_reached || !holds {
            continue;
        }
        let items = match &way.for_each {
            Some(each) => Some(match each.collection.evaluate(scope)? {
                Value::Array(items) => items.into_iter().map(Arc::new).collect(),
                other => vec![Arc::new(other)],
            }),
            None => None,
        };
        let count =
            items.as_ref().map_or(way.spawn_count, |items| u32::try_from(items.len()).unwrap_or(u32::MAX));
        found.push(TakenTransition { transition: way, count, items });
    }
    Ok(found)
}
