//! A criterion that consists of other checks.

use hotseat_trace::TurnScope;

use super::{Check, CheckBehavior, CheckDecision, CheckOutcome, format_list};

/// All nested checks pass.
#[derive(Debug, Clone)]
pub struct AllOf {
    /// Description of the criterion.
    pub text: String,
    /// The nested checks.
    pub checks: Vec<Check>,
}

impl CheckBehavior for AllOf {
    fn describe(&self) -> String {
        self.text.clone()
    }

    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        let mut broken = Vec::new();
        let mut unjudged = Vec::new();
        for check in &self.checks {
            let CheckDecision { outcome, actual } = check.kind.behavior().decide(scope);
            let label = if matches!(outcome, CheckOutcome::NotApplicable) { "error:" } else { "got" };
            let words = format!("expected {}, {label} {actual}", check.describe());
            match (outcome, check.negated) {
                (CheckOutcome::NotApplicable, _) => unjudged.push(words),
                (CheckOutcome::Satisfied, true) | (CheckOutcome::Violated, false) => broken.push(words),
                (CheckOutcome::Satisfied, false) | (CheckOutcome::Violated, true) => {}
            }
        }
        match (broken.as_slice(), unjudged.as_slice()) {
            ([], []) => CheckDecision::new(true, "all checks passed".to_string()),
            ([], unjudged) => CheckDecision::not_applicable(format_list(unjudged)),
            (broken, _) => CheckDecision::new(false, format_list(broken)),
        }
    }

    fn undecided_reason(&self, scope: TurnScope<'_>) -> Option<String> {
        let CheckOutcome::NotApplicable = self.decide(scope).outcome else { return None };
        self.checks.iter().find_map(|check| check.undecided_reason(scope))
    }

    fn reads_calls(&self) -> bool {
        self.checks.iter().any(Check::reads_calls)
    }

    fn servers(&self) -> Vec<&str> {
        self.checks.iter().flat_map(Check::servers).collect()
    }

    fn is_timing(&self) -> bool {
        self.checks.iter().any(Check::is_timing)
    }

    fn read_all_turns(&mut self) {
        self.checks.iter_mut().for_each(|check| check.kind.behavior_mut().read_all_turns());
    }
}
