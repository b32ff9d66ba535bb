//! How branches come together, and what becomes of what they have brought.

use serde_json::{Map, Value};

use super::Branch;
use crate::definition::{Join, Merging};
use crate::expression::put;

/// Whether branches have come together: `arrived` of `total` are there and `running` still work.
pub(super) fn is_complete(join: Join, arrived: usize, running: usize) -> bool {
    match join {
        Join::All => running == 0,
        Join::Any => arrived >= 1,
        Join::Count(needed) => arrived >= needed as usize || running == 0,
    }
}

/// Puts what branches have brought into the scope of the workflow, in the order of the branches.
pub(super) fn merge(scope: &mut Value, merging: Option<&Merging>, mut branches: Vec<Branch>) {
    branches.sort_by_key(|branch| branch.index);
    let mut outputs = branches.iter().map(|branch| branch.output.clone());
    let (path, value) = match merging {
        None => return,
        Some(Merging::Append(path)) => {
            let items = outputs.flat_map(|output| match output {
                Value::Array(items) => items,
                other => vec![other],
            });
            (path, Value::Array(items.collect()))
        }
        Some(Merging::Collect(path)) => (path, Value::Array(outputs.collect())),
        Some(Merging::MergeObject(path)) => {
            let mut members = Map::new();
            for output in outputs {
                if let Value::Object(more) = output {
                    members.extend(more);
                }
            }
            (path, Value::Object(members))
        }
        Some(Merging::KeyedByBranch(path)) => {
            let keyed = branches.iter().map(|branch| (branch.index.to_string(), branch.output.clone()));
            (path, Value::Object(keyed.collect()))
        }
        Some(Merging::LastWins(path)) => (path, outputs.next_back().unwrap_or(Value::Null)),
    };
    put(scope, path, value);
}
