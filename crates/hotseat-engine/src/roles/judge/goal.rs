//! Judgement of the user's goal.

use serde_json::Value;

use super::{Judgement, boolean_judgement};
use hotseat_checks::GoalAchieved;

pub(super) fn instructions(goal: &GoalAchieved) -> String {
    format!("# The goal\n{}", goal.text.as_deref().unwrap_or_default())
}

pub(super) fn parse_judgement(answer: &Value) -> Judgement {
    boolean_judgement(answer["achieved"] == true, ["achieved", "not achieved"], answer)
}
