//! What a turn, a conversation or a run has spent, as far as somebody says so.

use serde::{Deserialize, Serialize};

/// Tokens and their cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spent {
    /// Tokens of requests, where they are counted apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens of replies, where they are counted apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// All tokens.
    pub total_tokens: u64,
    /// What they cost, in the currency of the prices; absent where a part of them has no price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The models that have no price, by what they are called; an empty name is a model that nobody names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unpriced: Vec<String>,
    /// Whether some of it is an estimate, for nobody has counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

impl Spent {
    /// All of them together; none where there is none. What has no cost leaves the sum without one.
    pub fn sum<'a>(all: impl IntoIterator<Item = &'a Spent>) -> Option<Spent> {
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
                if !sum.unpriced.contains(model) {
                    sum.unpriced.push(model.clone());
                }
            }
            sum.estimated |= other.estimated;
        }
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_has_a_cost_only_if_all_of_it_has_one() {
        let part = |total_tokens, cost: Option<f64>| Spent { total_tokens, cost, ..Spent::default() };
        assert_eq!(Spent::sum([]), None);
        let priced = Spent::sum(&[part(10, Some(0.5)), part(5, Some(0.25))]).unwrap();
        assert_eq!((priced.total_tokens, priced.cost), (15, Some(0.75)));
        let unpriced = Spent::sum(&[part(10, Some(0.5)), part(5, None)]).unwrap();
        assert_eq!((unpriced.total_tokens, unpriced.cost), (15, None));
    }
}
