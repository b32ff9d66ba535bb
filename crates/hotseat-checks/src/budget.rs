//! `max_tokens`, `max_cost`, `max_tool_calls`: usage limits of a turn or of the whole conversation.

use hotseat_document::excerpt;
use hotseat_trace::{ConversationTurn, ReportedCost, TurnScope, UsageTotals};

use super::count::times;
use super::{CheckBehavior, CheckDecision, CheckOutcome, format_list};

/// Upper limit of usage, inclusive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum UsageBudget {
    /// Tokens of requests and replies together.
    Tokens(u64),
    /// Cost of the tokens, by the prices of the project.
    Cost(f64),
    /// Number of tool calls.
    ToolCalls(u64),
}

impl UsageBudget {
    /// Fails if the known usage exceeds the limit. Otherwise the usage of every turn must be known.
    fn decide_usage(self, is_within: bool, found: String, scope: TurnScope<'_>) -> CheckDecision {
        match self.unknown_usage(scope) {
            Some(words) if is_within => CheckDecision::not_applicable(words),
            Some(_) => CheckDecision::new(false, format!("{found} or more")),
            None => CheckDecision::new(is_within, found),
        }
    }

    /// Describes the part of the usage that is unknown, if any.
    fn unknown_usage(self, scope: TurnScope<'_>) -> Option<String> {
        if scope.turns().is_empty() {
            return Some("the conversation has no turns".to_string());
        }
        let silent = scope.turns().iter().find(|turn| turn.usage_totals.is_none());
        if let Some(turn) = silent.filter(|turn| !turn.reported_usage.is_empty()) {
            return Some(format!(
                "the reported usage of turn {} cannot be used: it needs a total, or both input and output tokens, as whole numbers, and a total not below them",
                turn.number
            ));
        }
        if let Some(turn) = silent {
            return Some(format!(
                "neither the agent nor a model reports the usage of turn {}; a report of zero tokens for a reply does not count",
                turn.number
            ));
        }
        let is_partial = |turn: &&ConversationTurn| turn.usage_totals.iter().any(|spent| spent.partial);
        if let Some(turn) = scope.turns().iter().find(is_partial) {
            return Some(format!(
                "a part of the usage of turn {} is unknown: the agent or a model reports none for it, or not both its input and output tokens",
                turn.number
            ));
        }
        if !matches!(self, UsageBudget::Cost(_)) {
            return None;
        }
        let turn = scope.turns().iter().find(|turn| cost(turn).is_none())?;
        if let Some(cost) = turn.reported_usage.iter().find_map(ReportedCost::find_unusable) {
            return Some(format!(
                "`usage.{}` of turn {} is {}, expected a number of at least 0",
                cost.key,
                turn.number,
                excerpt(&cost.value.to_string(), 60)
            ));
        }
        let unpriced = turn.usage_totals.iter().flat_map(|spent| &spent.unpriced).next();
        Some(match unpriced.map(String::as_str) {
            Some("") | None => {
                format!("the model and the price of the tokens of turn {} are unknown", turn.number)
            }
            Some(model) => format!(
                "the tokens of `{model}` have no price; give its connector a `price`, or add a connector with this `model`, and report input and output tokens"
            ),
        })
    }
}

impl CheckBehavior for UsageBudget {
    fn describe(&self) -> String {
        match self {
            UsageBudget::Tokens(limit) => format!("at most {limit} tokens"),
            UsageBudget::Cost(limit) => format!("a cost of at most {limit}"),
            UsageBudget::ToolCalls(limit) => format!("tools to be called at most {}", times(*limit)),
        }
    }

    fn lasting_outcome(&self, _: TurnScope<'_>) -> Option<CheckOutcome> {
        Some(CheckOutcome::Violated)
    }

    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        match *self {
            UsageBudget::ToolCalls(limit) => {
                let calls: Vec<String> =
                    scope.calls().map(|(turn, call)| format!("turn {turn}: {}", call.name)).collect();
                let found = format!("{}: {}", calls.len(), format_list(&calls));
                CheckDecision::new(calls.len() as u64 <= limit, found)
            }
            UsageBudget::Tokens(limit) => {
                let spent = tokens_in(scope);
                self.decide_usage(spent <= limit, format!("{spent} tokens"), scope)
            }
            UsageBudget::Cost(limit) => {
                let spent = cost_in(scope);
                self.decide_usage(is_within(spent, limit), format!("{spent:.6}"), scope)
            }
        }
    }

    fn reads_calls(&self) -> bool {
        matches!(self, UsageBudget::ToolCalls(_))
    }

    fn undecided_reason(&self, scope: TurnScope<'_>) -> Option<String> {
        let is_exceeded = match *self {
            UsageBudget::ToolCalls(_) => return None,
            UsageBudget::Tokens(limit) => tokens_in(scope) > limit,
            UsageBudget::Cost(limit) => !is_within(cost_in(scope), limit),
        };
        if is_exceeded { None } else { self.unknown_usage(scope) }
    }
}

fn tokens_in(scope: TurnScope<'_>) -> u64 {
    let tokens = scope.turns().iter().filter_map(|turn| Some(counted(turn)?.total_tokens));
    tokens.fold(0, u64::saturating_add)
}

fn cost_in(scope: TurnScope<'_>) -> f64 {
    scope.turns().iter().filter_map(|turn| counted(turn)?.cost).sum()
}

/// The usage of a turn. An estimate in place of a missing report exceeds no limit.
fn counted(turn: &ConversationTurn) -> Option<&UsageTotals> {
    turn.usage_totals.as_ref().filter(|spent| !(spent.partial && spent.estimated))
}

/// Tolerates the rounding error of sums of fractions.
fn is_within(cost: f64, limit: f64) -> bool {
    cost <= limit * (1.0 + f64::EPSILON * 16.0)
}

fn cost(turn: &ConversationTurn) -> Option<f64> {
    turn.usage_totals.as_ref().and_then(|spent: &UsageTotals| spent.cost)
}
