//! Checks that a judge decides.
//!
//! Such a check is data like all other checks, but it cannot decide itself: the session asks the judge and
//! uses the judgement as the verdict. Without a judgement the check neither passes nor fails.

mod claims;
mod criterion;
mod free_form;
mod goal;
mod grounded;
mod intent;
mod settings;

pub use claims::ForbiddenClaims;
pub use criterion::{CriterionExample, ExampleQuality, ResponseCriterion};
pub use free_form::FreeFormCriterion;
pub use goal::GoalAchieved;
pub use grounded::GroundedClaims;
pub use intent::AgentIntent;
pub use settings::{EvidenceLimit, EvidenceOverflow, JudgeSelector, JudgeSettings};

use super::{CheckBehavior, CheckDecision};

/// Check that a judge decides.
#[derive(Debug, Clone)]
pub struct JudgedCheck {
    /// Criterion to judge.
    pub criterion: JudgeCriterion,
    /// Settings of the judge, as far as the case sets them.
    pub settings: JudgeSettings,
}

/// Criterion that a judge evaluates.
#[derive(Debug, Clone)]
pub enum JudgeCriterion {
    /// Free-form criterion; the judge receives the text of the test unchanged.
    FreeForm(FreeFormCriterion),
    /// The response of the agent satisfies a criterion.
    Criterion(ResponseCriterion),
    /// The claims of the agent are grounded in tool results.
    Grounded(GroundedClaims),
    /// The agent makes no claims of given kinds.
    Claims(ForbiddenClaims),
    /// The agent pursues an intent.
    Intent(AgentIntent),
    /// A goal is achieved.
    Goal(GoalAchieved),
}

impl JudgedCheck {
    /// True if the options for the judge name a connector.
    pub fn has_connector_option(&self) -> bool {
        matches!(&self.criterion, JudgeCriterion::FreeForm(open) if open.options.contains_key("connector"))
    }
}

impl CheckBehavior for JudgedCheck {
    fn describe(&self) -> String {
        match &self.criterion {
            JudgeCriterion::FreeForm(matter) => matter.describe(),
            JudgeCriterion::Criterion(matter) => matter.describe(),
            JudgeCriterion::Grounded(matter) => matter.describe(),
            JudgeCriterion::Claims(matter) => matter.describe(),
            JudgeCriterion::Intent(matter) => matter.describe(),
            JudgeCriterion::Goal(matter) => matter.describe(),
        }
    }

    fn decide(&self, _: hotseat_trace::TurnScope<'_>) -> CheckDecision {
        CheckDecision::not_applicable("no judge was asked".to_string())
    }

    fn needs_answer(&self) -> bool {
        true
    }

    /// Claims are compared with the results of calls.
    fn reads_calls(&self) -> bool {
        match &self.criterion {
            JudgeCriterion::Grounded(_) => true,
            JudgeCriterion::Claims(claims) => !claims.absolute,
            JudgeCriterion::FreeForm(_)
            | JudgeCriterion::Criterion(_)
            | JudgeCriterion::Intent(_)
            | JudgeCriterion::Goal(_) => false,
        }
    }
}
