//! Where a token goes when its work is done.

use serde_json::Value;

use crate::definition::{Transition, Workflow, transition};
use crate::expression::EvaluateError;

/// A transition that is taken, and for what.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Taken {
    pub transition: Transition,
    /// How many branches it makes.
    pub count: u32,
    /// The items they are for.
    pub items: Option<Vec<Value>>,
}

/// The transitions that are taken from a node: of the first priority of which any holds, all that hold.
///
/// `taken` says how often a transition was taken on the way here.
pub(super) fn route(
    workflow: &Workflow,
    node: &str,
    scope: &Value,
    taken: impl Fn(&str) -> u32,
) -> Result<Vec<Taken>, EvaluateError> {
    let mut ways: Vec<Transition> = if workflow.transitions.is_empty() {
        let place = workflow.nodes.iter().position(|other| other.name == node);
        let next = place.and_then(|place| workflow.nodes.get(place + 1));
        next.map(|next| transition(node, &next.name)).into_iter().collect()
    } else {
        workflow.transitions.iter().filter(|way| way.from == node).cloned().collect()
    };
    ways.sort_by_key(|way| way.priority);
    let mut found: Vec<Taken> = Vec::new();
    for way in ways {
        if found.first().is_some_and(|first| first.transition.priority != way.priority) {
            break;
        }
        let often = way.max_iterations.is_some_and(|most| taken(&way.name) >= most);
        let holds = match &way.condition {
            Some(condition) => condition.holds(scope)?,
            None => true,
        };
        if often || !holds {
            continue;
        }
        let items = match &way.for_each {
            Some(each) => Some(match each.collection.evaluate(scope)? {
                Value::Array(items) => items,
                other => vec![other],
            }),
            None => None,
        };
        let count =
            items.as_ref().map_or(way.spawn_count, |items| u32::try_from(items.len()).unwrap_or(u32::MAX));
        found.push(Taken { transition: way, count, items });
    }
    Ok(found)
}
