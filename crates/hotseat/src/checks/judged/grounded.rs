//! `grounded`: what the agent claims is grounded in what its tools returned.

use super::claims::kinds;

/// Every claim of some kinds is grounded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grounded {
    /// The kinds of claims that are looked at: prices, opening hours.
    pub types: Vec<String>,
    /// Only results of these tools count; none means those of all tools.
    pub from_tools: Vec<String>,
}

impl Grounded {
    pub(super) fn describe(&self) -> String {
        let from = match self.from_tools.as_slice() {
            [] => "what tools returned".to_string(),
            tools => format!("what {} returned", tools.join(", ")),
        };
        format!("claims about {} are grounded in {from}", kinds(&self.types))
    }
}
