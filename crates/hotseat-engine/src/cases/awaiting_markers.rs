//! Markers by which an agent that awaits input is detected.

use serde::{Deserialize, Serialize};

/// Markers of an agent that awaits input without declaring it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwaitingMarkers {
    /// Tools that ask the user for input.
    pub tools: Vec<String>,
    /// True if the agent's text is searched for questions.
    pub questions: bool,
}

impl Default for AwaitingMarkers {
    fn default() -> Self {
        let tools = ["request_confirmation", "ask_user", "get_user_input"].map(str::to_string);
        AwaitingMarkers { tools: tools.to_vec(), questions: true }
    }
}
