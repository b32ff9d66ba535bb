//! Token usage and cost of a turn, conversation or run, as reported.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Maximum number of models without a price that a sum names. Agents report the names.
const MAX_UNPRICED_MODELS: usize = 100;

/// Keys of the cost in usage reports.
const COST_KEYS: [&str; 5] = ["cost", "total_cost", "totalCost", "cost_usd", "costUsd"];

/// A cost in a usage report.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReportedCost<'u> {
    /// Its key.
    pub key: &'static str,
    /// Its value as reported.
    pub value: &'u Value,
}

impl<'u> ReportedCost<'u> {
    /// Finds the cost in the usage report of one model; `null` is none.
    pub fn find(members: &'u Map<String, Value>) -> Option<ReportedCost<'u>> {
        // Comparing few short names is faster than hashing each of them.
        let member = |name: &str| members.iter().find(|(key, _)| *key == name).map(|(_, value)| value);
        let mut costs = COST_KEYS.iter().filter_map(|&key| Some(ReportedCost { key, value: member(key)? }));
        costs.find(|cost| !cost.value.is_null())
    }

    /// Finds the first cost that cannot be used in a usage report of one model, or of several.
    pub fn find_unusable(usage: &'u Value) -> Option<ReportedCost<'u>> {
        match usage {
            Value::Array(parts) => parts.iter().find_map(ReportedCost::find_unusable),
            Value::Object(members) => ReportedCost::find(members).filter(|cost| cost.amount().is_none()),
            _ => None,
        }
    }

    /// Returns the cost as a number; `None` if it is not a number of at least 0.
    pub fn amount(self) -> Option<f64> {
        self.value.as_f64().filter(|cost| cost.is_finite() && *cost >= 0.0)
    }
}

optional_members! {
    /// Token counts and cost.
    #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub struct UsageTotals {
        /// Tokens of requests, if counted separately.
        pub input_tokens?: Option<u64>,
        /// Tokens of replies, if counted separately.
        pub output_tokens?: Option<u64>,
        /// All tokens.
        pub total_tokens: u64,
        /// Cost in the currency of the configured prices. None if any part has no price.
        pub cost?: Option<f64>,
        /// Names of models without a price, at most a hundred. An empty string stands for an unnamed
        /// model.
        pub unpriced?: Vec<String>,
        /// True if some of the counts are estimates.
        pub estimated?: bool,
        /// True if a part of the usage is unknown: these are the known counts.
        pub partial?: bool,
    }
}

impl UsageTotals {
    /// Returns the sum of all entries; None if there are none. If any entry has no cost, the sum has none.
    pub fn sum<'a>(all: impl IntoIterator<Item = &'a UsageTotals>) -> Option<UsageTotals> {
        let mut all = all.into_iter();
        let mut sum = all.next()?.clone();
        for other in all {
            let both = |a: Option<u64>, b: Option<u64>| match (a, b) {
                (None, None) => None,
                (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
            };
            sum.input_tokens = both(sum.input_tokens, other.input_tokens);
            sum.output_tokens = both(sum.output_tokens, other.output_tokens);
            sum.total_tokens = sum.total_tokens.saturating_add(other.total_tokens);
            sum.cost = sum.cost.zip(other.cost).map(|(a, b)| a + b);
            for model in &other.unpriced {
                if sum.unpriced.len() < MAX_UNPRICED_MODELS && !sum.unpriced.contains(model) {
                    sum.unpriced.push(model.clone());
                }
            }
            sum.estimated |= other.estimated;
            sum.partial |= other.partial;
        }
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sum_has_cost_only_if_all_parts_have() {
        let part =
            |total_tokens, cost: Option<f64>| UsageTotals { total_tokens, cost, ..UsageTotals::default() };
        assert_eq!(UsageTotals::sum([]), None);
        let priced = UsageTotals::sum(&[part(10, Some(0.5)), part(5, Some(0.25))]).unwrap();
        assert_eq!((priced.total_tokens, priced.cost), (15, Some(0.75)));
        let unpriced = UsageTotals::sum(&[part(10, Some(0.5)), part(5, None)]).unwrap();
        assert_eq!((unpriced.total_tokens, unpriced.cost), (15, None));
    }

    #[test]
    fn sum_names_a_bounded_number_of_models() {
        let of = |model: usize| UsageTotals { unpriced: vec![model.to_string()], ..UsageTotals::default() };
        let all: Vec<UsageTotals> = (0..MAX_UNPRICED_MODELS * 2).chain(0..1).map(of).collect();
        assert_eq!(UsageTotals::sum(&all).unwrap().unpriced.len(), MAX_UNPRICED_MODELS);
    }
}
