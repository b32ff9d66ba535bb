//! Where a workflow run stands: one token for each place where something goes on.

use std::collections::BTreeMap;

use hotseat_trace::TokenStatus;
use serde_json::Value;

use super::TaskRun;

/// The number of a token in its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct TokenId(pub u32);

/// One place where something goes on.
#[derive(Debug, Clone)]
pub struct Token {
    /// Its number.
    pub id: TokenId,
    /// The node it stands at.
    pub node: String,
    /// Where it stands.
    pub status: TokenStatus,
    /// The token it came from.
    pub parent: Option<TokenId>,
    /// Where it stands among nested branches.
    pub path: String,
    /// The branch it is part of.
    pub branch: Option<Branch>,
    /// How often each transition was taken on the way here.
    pub taken: BTreeMap<String, u32>,
    /// The task it runs.
    pub task: Option<Box<TaskRun>>,
}

/// One of several ways that a run goes at once.
#[derive(Debug, Clone, PartialEq)]
pub struct Branch {
    /// What the branches are called together.
    pub group: String,
    /// The token at which they parted.
    pub origin: TokenId,
    /// The path of that token.
    pub path: String,
    /// How often each transition was taken on the way to it.
    pub taken: BTreeMap<String, u32>,
    /// Its place, from 0.
    pub index: u32,
    /// How many there are.
    pub total: u32,
    /// The item of a list it is for, with its name.
    pub item: Option<(String, Value)>,
    /// What it has brought so far.
    pub output: Value,
    /// The branch within which they parted.
    pub outer: Option<Box<Branch>>,
}

impl Branch {
    /// Whether two are of the same parting.
    pub fn is_sibling(&self, other: &Branch) -> bool {
        self.group == other.group && self.origin == other.origin
    }
}
