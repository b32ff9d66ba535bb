//! State of a workflow run: one token for each active position.

use std::collections::BTreeMap;
use std::sync::Arc;

use hotseat_trace::TokenStatus;
use serde_json::Value;

use super::TaskRun;
use crate::ids::TokenId;

/// Active position in a workflow run.
#[derive(Debug, Clone)]
pub struct WorkflowToken {
    /// Number of the token.
    pub id: TokenId,
    /// Its name in events, which is unique in the trace.
    pub name: Arc<str>,
    /// Current node.
    pub node: Arc<str>,
    /// Current status.
    pub status: TokenStatus,
    /// The token that created this one.
    pub parent: Option<TokenId>,
    /// Path among nested branches.
    pub path: Arc<str>,
    /// The branch that the token belongs to.
    pub branch: Option<WorkflowBranch>,
    /// Number of times each transition was taken on the path.
    pub taken: BTreeMap<String, u32>,
    /// The running task.
    pub task: Option<Box<TaskRun>>,
}

/// One of several parallel branches of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkflowBranch {
    /// Group of the branches.
    pub group: String,
    /// The token at which the branches started.
    pub origin: TokenId,
    /// Path of that token.
    pub path: Arc<str>,
    /// Number of times each transition was taken on the path to that token.
    pub taken: BTreeMap<String, u32>,
    /// Index of the branch, from 0.
    pub index: u32,
    /// Number of branches.
    pub total: u32,
    /// Name and value of the list item.
    pub item: Option<(String, Arc<Value>)>,
    /// Output of the branch so far.
    pub output: Arc<Value>,
    /// The enclosing branch. All branches within it share it: in a cycle, each has as many around it as there were rounds.
    pub outer: Option<Arc<WorkflowBranch>>,
}

impl WorkflowBranch {
    /// Returns true if both branches started at the same token and belong to the same group.
    pub fn is_sibling(&self, other: &WorkflowBranch) -> bool {
        self.group == other.group && self.origin == other.origin
    }
}
