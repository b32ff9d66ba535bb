//! Report record of token usage.

use hotseat_trace::UsageTotals;
use serde::Serialize;

/// Tokens and their cost.
#[derive(Debug, Serialize)]
pub struct SpentRecord {
    #[serde(skip_serializing_if = "Option::is_none")]
    input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_tokens: Option<u64>,
    pub total_tokens: u64,
    /// Cost by the prices of the project; absent if a part has no price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// True if a part is estimated.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    estimated: bool,
}

impl SpentRecord {
    pub fn new(spent: UsageTotals) -> Self {
        let UsageTotals { input_tokens, output_tokens, total_tokens, cost, unpriced: _, estimated } = spent;
        // Rounds away the error of floating-point sums.
        let cost = cost.map(|cost| (cost * 1e12).round() / 1e12);
        SpentRecord { input_tokens, output_tokens, total_tokens, cost, estimated }
    }
}
