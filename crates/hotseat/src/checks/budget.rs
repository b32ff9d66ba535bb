//! `max_tokens`, `max_cost`, `max_tool_calls`: a turn, or the whole conversation, does not spend more than this.

use hotseat_trace::{Scope, Spent, Turn};

use super::{Decided, listed};

/// The most that may be spent. The limit itself is allowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Budget {
    /// Tokens of requests and replies.
    Tokens(u64),
    /// What they cost, by the prices of the project.
    Cost(f64),
    /// Calls of tools.
    ToolCalls(u64),
}

impl Budget {
    /// What is asserted, in words.
    pub fn describe(&self) -> String {
        match self {
            Budget::Tokens(limit) => format!("it spends at most {limit} tokens"),
            Budget::Cost(limit) => format!("it costs at most {limit}"),
            Budget::ToolCalls(limit) => format!("tools are called at most {limit} times"),
        }
    }

    pub(super) fn decide(&self, scope: Scope<'_>) -> Decided {
        match *self {
            Budget::ToolCalls(limit) => {
                let calls: Vec<String> =
                    scope.calls().map(|(turn, call)| format!("turn {turn}: {}", call.name)).collect();
                let found = format!("{}: {}", calls.len(), listed(&calls));
                Decided::of(calls.len() as u64 <= limit, found)
            }
            Budget::Tokens(limit) => {
                let spent = tokens_in(scope);
                self.spent(spent <= limit, format!("{spent} tokens"), scope)
            }
            Budget::Cost(limit) => {
                let spent = cost_in(scope);
                self.spent(is_within(spent, limit), format!("{spent:.6}"), scope)
            }
        }
    }

    /// What is known to be spent decides when it is too much already; otherwise all of it has to be known.
    fn spent(self, is_within: bool, found: String, scope: Scope<'_>) -> Decided {
        match self.unknown(scope) {
            Some(words) if is_within => Decided::nothing(words),
            Some(_) => Decided::of(false, format!("{found}, and there is more")),
            None => Decided::of(is_within, found),
        }
    }

    /// Why it cannot be known whether it holds; none where it can.
    pub(super) fn undecided(self, scope: Scope<'_>) -> Option<String> {
        let is_exceeded = match self {
            Budget::ToolCalls(_) => return None,
            Budget::Tokens(limit) => tokens_in(scope) > limit,
            Budget::Cost(limit) => !is_within(cost_in(scope), limit),
        };
        if is_exceeded { None } else { self.unknown(scope) }
    }

    /// What is not known of what was spent.
    fn unknown(self, scope: Scope<'_>) -> Option<String> {
        if scope.turns().is_empty() {
            return Some("no turn was held".to_string());
        }
        let silent = scope.turns().iter().find(|turn| turn.spent.is_none());
        if let Some(turn) = silent {
            return Some(format!("neither the agent nor a model says what turn {} has spent", turn.number));
        }
        if !matches!(self, Budget::Cost(_)) {
            return None;
        }
        let turn = scope.turns().iter().find(|turn| cost(turn).is_none())?;
        let unpriced = turn.spent.iter().flat_map(|spent| &spent.unpriced).next();
        Some(match unpriced.map(String::as_str) {
            Some("") | None => format!(
                "nobody says which model the tokens of turn {} are of, or what they cost",
                turn.number
            ),
            Some(model) => format!(
                "the tokens of `{model}` have no price; give its connector a `price`, or add a connector with this `model`"
            ),
        })
    }
}

fn tokens_in(scope: Scope<'_>) -> u64 {
    let tokens = scope.turns().iter().filter_map(|turn| Some(turn.spent.as_ref()?.total_tokens));
    tokens.fold(0, u64::saturating_add)
}

fn cost_in(scope: Scope<'_>) -> f64 {
    scope.turns().iter().filter_map(cost).sum()
}

/// Sums of fractions are not exact.
fn is_within(cost: f64, limit: f64) -> bool {
    cost <= limit * (1.0 + f64::EPSILON * 16.0)
}

fn cost(turn: &Turn) -> Option<f64> {
    turn.spent.as_ref().and_then(|spent: &Spent| spent.cost)
}
