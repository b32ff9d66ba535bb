//! `grounded`: claims of the agent are grounded in tool results.

use super::claims::describe_kinds;

/// Every claim of the given kinds is grounded in tool results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroundedClaims {
    /// Kinds of claims to check, for example prices or opening hours.
    pub types: Vec<String>,
    /// Tools whose results count; empty for all tools.
    pub from_tools: Vec<String>,
}

impl GroundedClaims {
    pub(super) fn describe(&self) -> String {
        let from = match self.from_tools.as_slice() {
            [] => "tool results".to_string(),
            tools => format!("results of {}", tools.join(", ")),
        };
        format!("claims about {} to be grounded in {from}", describe_kinds(&self.types))
    }
}
