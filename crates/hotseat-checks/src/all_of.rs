//! A criterion that consists of other checks.

use hotseat_trace::{CallComparison, ComparisonLine, MissingCall, TurnScope};

use super::calls::NamedTools;
use super::{Check, CheckBehavior, CheckDecision, CheckOutcome, ForbiddenTexts, format_list};

/// All nested checks pass.
#[derive(Debug, Clone)]
pub struct AllOf {
    /// Description of the criterion.
    pub text: String,
    /// The nested checks.
    pub checks: Vec<Check>,
}

type BrokenChecks<'a> = [(&'a Check, CheckDecision)];

impl AllOf {
    /// Returns the nested check that cannot be decided, with the reason, if the others do not decide.
    pub(super) fn undecided_part(&self, scope: TurnScope<'_>) -> Option<(&Check, String)> {
        let CheckOutcome::NotApplicable = self.decide(scope).outcome else { return None };
        self.checks.iter().find_map(|check| check.undecided_part(scope))
    }

    /// Combines the comparisons of the failed checks.
    fn compare(&self, broken: &BrokenChecks<'_>) -> CallComparison {
        let summary = format!("{} of {} checks failed", broken.len(), self.checks.len());
        let mut whole = CallComparison { summary, missing: Vec::new(), lines: Vec::new(), omitted: 0 };
        for (check, decision) in broken {
            match (&decision.comparison, check.negated) {
                (Some(comparison), false) => {
                    let expected = check.describe();
                    whole.missing.extend(comparison.missing.iter().map(|missing| MissingCall {
                        expected: Some(match &missing.expected {
                            Some(call) => format!("{call} ({expected})"),
                            None => expected.clone(),
                        }),
                        nearest: missing.nearest.clone(),
                    }));
                    whole.lines.extend(comparison.lines.iter().cloned());
                    whole.omitted += comparison.omitted;
                }
                (None, _) | (_, true) => {
                    let text = format!("expected {}, got {}", check.describe(), decision.actual);
                    whole.lines.push(ComparisonLine { text, unexpected: false });
                }
            }
        }
        whole
    }
}

impl CheckBehavior for AllOf {
    fn forbidden_texts(&self, negated: bool) -> ForbiddenTexts {
        let texts = |check: &Check| check.kind.behavior().forbidden_texts(check.negated != negated);
        self.checks.iter().map(texts).fold(ForbiddenTexts::default(), ForbiddenTexts::or)
    }

    fn describe(&self) -> String {
        self.text.clone()
    }

    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        let mut broken = Vec::new();
        let mut unjudged = Vec::new();
        for check in &self.checks {
            let decision = check.decision(scope);
            match (&decision.outcome, check.negated) {
                (CheckOutcome::NotApplicable, _) => {
                    unjudged.push(format!("expected {}, error: {}", check.describe(), decision.actual));
                }
                (CheckOutcome::Satisfied, true) | (CheckOutcome::Violated, false) => {
                    broken.push((check, decision));
                }
                (CheckOutcome::Satisfied, false) | (CheckOutcome::Violated, true) => {}
            }
        }
        match (broken.as_slice(), unjudged.as_slice()) {
            ([], []) => CheckDecision::new(true, "all checks passed".to_string()),
            ([], unjudged) => CheckDecision::not_applicable(format_list(unjudged)),
            (broken, _) if broken.iter().any(|(_, decision)| decision.comparison.is_some()) => {
                CheckDecision::violated(self.compare(broken))
            }
            (broken, _) => {
                let line = |(check, decision): &(&Check, CheckDecision)| {
                    format!("expected {}, got {}", check.describe(), decision.actual)
                };
                CheckDecision::new(false, format_list(&broken.iter().map(line).collect::<Vec<_>>()))
            }
        }
    }

    fn lasting_outcome(&self, scope: TurnScope<'_>) -> Option<CheckOutcome> {
        let mut results = self.checks.iter().map(|check| check.lasting_result(scope));
        match results.clone().any(|result| result == Some(false)) {
            true => Some(CheckOutcome::Violated),
            false => results.all(|result| result == Some(true)).then_some(CheckOutcome::Satisfied),
        }
    }

    fn reads_calls(&self) -> bool {
        self.checks.iter().any(Check::reads_calls)
    }

    fn named_tools(&self) -> Vec<NamedTools<'_>> {
        self.checks.iter().flat_map(Check::named_tools).collect()
    }

    fn is_timing(&self) -> bool {
        self.checks.iter().any(Check::is_timing)
    }

    fn may_take_long(&self) -> bool {
        self.checks.iter().any(Check::may_take_long)
    }

    fn read_all_turns(&mut self) {
        self.checks.iter_mut().for_each(|check| check.kind.behavior_mut().read_all_turns());
    }
}
