//! Whether a goal is achieved.

use serde_json::Value;

use super::{Judgement, plain};
use crate::checks::Goal;

pub(super) fn told(goal: &Goal) -> String {
    format!("# The goal\n{}", goal.text.as_deref().unwrap_or_default())
}

pub(super) fn read(answer: &Value) -> Judgement {
    plain(answer["achieved"] == true, ["achieved", "not achieved"], answer)
}
