//! `after`: a tool is called only after another tool.

use hotseat_trace::{ConversationTurn, TurnScope};

use super::call_text::format_call;
use super::calls::{CallFilter, NamedTools};
use super::{CheckBehavior, CheckDecision, CheckOutcome, ForbiddenTexts, format_list};

/// Every matching call starts after a call of another tool has started. Parallel calls count in the order in
/// which they started, at an MCP server of the test in that of their arrival. If both tools are the same, a second call is required.
#[derive(Debug, Clone)]
pub struct CalledAfter {
    /// Selects the calls to check.
    pub calls: CallFilter,
    /// Name of the tool that must be called first.
    pub after: String,
}

impl CalledAfter {
    /// Explains that the other tool was called before the evaluated turns, which the check does not read.
    fn earlier_call_hint(&self, scope: TurnScope<'_>) -> Option<String> {
        let (all, evaluated) = (scope.turns_up_to_end(), scope.turns());
        let earlier = &all[..all.len() - evaluated.len()];
        let has_call =
            |turn: &&ConversationTurn| turn.tool_calls.iter().any(|call| call.is_named(&self.after));
        let called_in = earlier.iter().rev().find(has_call)?.number;
        let evaluated = match evaluated {
            [] => return None,
            [only] => format!("turn {}", only.number),
            [first, .., last] => format!("turns {} to {}", first.number, last.number),
        };
        Some(format!(
            "no earlier call of {} in {evaluated}, only in turn {called_in}, which this assertion does not evaluate; \
             move `after` to `assert` of the case, which evaluates all turns",
            self.after
        ))
    }
}

fn with_calls(first: &str, calls: &[String]) -> String {
    calls.iter().fold(first.to_string(), |text, call| format!("{text}\n- {call}"))
}

impl CheckBehavior for CalledAfter {
    fn forbidden_texts(&self, negated: bool) -> ForbiddenTexts {
        ForbiddenTexts::in_calls(!negated && self.calls.reads_texts())
    }

    fn describe(&self) -> String {
        format!("{} to be called only after {}", self.calls.describe(), self.after)
    }

    fn lasting_outcome(&self, _: TurnScope<'_>) -> Option<CheckOutcome> {
        Some(CheckOutcome::Violated)
    }

    fn named_tools(&self) -> Vec<NamedTools<'_>> {
        vec![self.calls.named_tools()]
    }

    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        let mut seen = false;
        let (mut early, mut late, mut unknown) = (Vec::new(), 0, Vec::new());
        for (turn, call) in scope.calls() {
            match (self.calls.matches(call), seen) {
                (true, true) => late += 1,
                (true, false) => early.push(format_call(turn, call)),
                // After the other tool was called, an unknown call makes no difference, unless a second call
                // is required.
                (false, false) if self.calls.is_undecided(call) => unknown.push((turn, call)),
                (false, true) if self.calls.is_undecided(call) && *self.after == *self.calls.name => {
                    unknown.push((turn, call));
                }
                (false, _) => {}
            }
            seen |= call.is_named(&self.after);
        }
        let earlier = self.earlier_call_hint(scope);
        if *self.after == *self.calls.name {
            // The first call cannot come after another one; a second call is required.
            let actual = match &earlier {
                _ if late > 0 => "called again".to_string(),
                Some(hint) => with_calls(hint, &early),
                None => format_list(&early),
            };
            return match late == 0 && !unknown.is_empty() {
                true => CheckDecision::undecided_calls(&unknown),
                false => CheckDecision::new(late > 0, actual),
            };
        }
        if early.is_empty() && !unknown.is_empty() {
            return CheckDecision::undecided_calls(&unknown);
        }
        let actual = match (early.as_slice(), seen) {
            ([], _) => "in order".to_string(),
            (early, _) if earlier.is_some() => with_calls(&earlier.unwrap_or_default(), early),
            (early, true) => format!("calls before {}: {}", self.after, format_list(early)),
            (early, false) => format!("no call of {}, but {}", self.after, format_list(early)),
        };
        CheckDecision::new(early.is_empty(), actual)
    }
}
