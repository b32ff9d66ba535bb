//! What is said in the conversations: the same by every contestant.

/// The tool that the agent calls in every turn.
pub const TOOL: &str = "lookup_order";
/// What it calls it with.
pub const ARGUMENTS: &str = r#"{"id":"A-17","quantity":2}"#;
/// What the tool returns.
pub const RESULT: &str = r#"{"status":"shipped"}"#;

/// How many conversations there are, how long they are, and how many of them are held at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workload {
    /// Conversations.
    pub cases: usize,
    /// User messages in each.
    pub turns: usize,
    /// How many conversations are held at once.
    pub parallel: usize,
}

impl Workload {
    /// How many requests it takes.
    pub fn requests(self) -> u64 {
        (self.cases * self.turns) as u64
    }
}

/// The words that only this turn of this case holds. They are equally long for up to a million cases, and none of
/// them is a part of another.
pub fn marker(case: usize, turn: usize) -> String {
    format!("order-{case:06}-{turn}")
}

/// What the user says.
pub fn question(case: usize, turn: usize) -> String {
    format!("Where is {}?", marker(case, turn))
}

/// What the agent answers: it repeats the question, so that an answer to another one is noticed.
pub fn answer(question: &str) -> String {
    format!(
        "You said: {question} It has left our house, costs 42 EUR and 50 cents, and will be with you on Friday morning. Bye."
    )
}
