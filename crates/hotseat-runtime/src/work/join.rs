//! Joins branches and combines their outputs.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::WorkflowBranch;
use super::scope::WorkScope;
use crate::definition::{BranchMerge, JoinRule};

/// Returns true if the join is complete: `arrived` branches have arrived and `running` are still running.
pub(super) fn is_complete(join: JoinRule, arrived: usize, running: usize) -> bool {
    match join {
        JoinRule::All => running == 0,
        JoinRule::Any => arrived >= 1,
        JoinRule::Count(needed) => arrived >= needed as usize || running == 0,
    }
}

/// Combines branch outputs in the scope of the workflow, in branch order.
pub(super) fn merge(scope: &mut WorkScope, merging: Option<&BranchMerge>, mut branches: Vec<WorkflowBranch>) {
    branches.sort_by_key(|branch| branch.index);
    let mut outputs = branches.iter().map(|branch| (*branch.output).clone());
    let (path, value) = match merging {
        None => return,
        Some(BranchMerge::Append(path)) => {
            let items = outputs.flat_map(|output| match output {
                Value::Array(items) => items,
                other => vec![other],
            });
            (path, Value::Array(items.collect()))
        }
        Some(BranchMerge::Collect(path)) => (path, Value::Array(outputs.collect())),
        Some(BranchMerge::MergeObject(path)) => {
            let mut members = Map::new();
            for output in outputs {
                if let Value::Object(more) = output {
                    members.extend(more);
                }
            }
            (path, Value::Object(members))
        }
        Some(BranchMerge::KeyedByBranch(path)) => {
            let keyed = branches.iter().map(|branch| (branch.index.to_string(), (*branch.output).clone()));
            (path, Value::Object(keyed.collect()))
        }
        Some(BranchMerge::LastWins(path)) => (path, outputs.next_back().unwrap_or(Value::Null)),
    };
    scope.set_at_path(path, Arc::new(value));
}
