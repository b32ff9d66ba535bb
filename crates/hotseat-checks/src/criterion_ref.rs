//! `satisfy` with the name of a criterion, before the name is resolved.

use std::sync::Arc;

use super::{CheckBehavior, CheckDecision, JudgeSettings};

/// Reference to a criterion by name. It is replaced by the definition when the case is read.
#[derive(Debug, Clone)]
pub struct CriterionRef {
    /// Name of the criterion.
    pub name: Arc<str>,
    /// Settings of the judge, as far as the assertion sets them.
    pub settings: JudgeSettings,
}

impl CheckBehavior for CriterionRef {
    fn describe(&self) -> String {
        format!("the agent to satisfy {}", self.name)
    }

    fn decide(&self, _: hotseat_trace::TurnScope<'_>) -> CheckDecision {
        CheckDecision::not_applicable(format!("the criterion `{}` is not defined", self.name))
    }

    fn needs_answer(&self) -> bool {
        true
    }
}
