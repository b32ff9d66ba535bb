//! The conversations, identical for all measured programs.

/// The tool that the agent calls in every turn.
pub const TOOL: &str = "lookup_order";
/// Arguments of the tool call.
pub const ARGUMENTS: &str = r#"{"id":"A-17","quantity":2}"#;
/// Result of the tool.
pub const RESULT: &str = r#"{"status":"shipped"}"#;

/// Number, length and parallelism of conversations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workload {
    /// Number of conversations.
    pub cases: usize,
    /// User messages per conversation.
    pub turns: usize,
    /// Number of parallel conversations.
    pub parallel: usize,
}

impl Workload {
    /// Returns the number of requests.
    pub fn requests(self) -> u64 {
        (self.cases * self.turns) as u64
    }
}

/// Returns text that is unique to this turn. Markers have equal lengths for up to a million cases, and none
/// is part of another.
pub fn marker(case: usize, turn: usize) -> String {
    format!("order-{case:06}-{turn}")
}

/// Returns the user message.
pub fn question(case: usize, turn: usize) -> String {
    format!("Where is {}?", marker(case, turn))
}

/// Returns the agent's reply, which repeats the question to reveal mixed-up replies.
pub fn answer(question: &str) -> String {
    format!(
        "You said: {question} It has left our house, costs 42 EUR and 50 cents, and will be with you on Friday morning. Bye."
    )
}
