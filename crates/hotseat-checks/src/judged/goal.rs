//! `goal`: the goal of the user is achieved.

use crate::call_text::truncate;

/// The user has achieved a goal by the end of the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoalAchieved {
    /// Text of the goal; `None` for the goal of the case before it is resolved.
    pub text: Option<String>,
}

impl GoalAchieved {
    pub(super) fn describe(&self) -> String {
        match &self.text {
            Some(text) => format!("the goal to be achieved: {}", truncate(text)),
            None => "the stated goal to be achieved".to_string(),
        }
    }
}
