//! What was spent, as it is written to report files.

use hotseat_trace::Spent;
use serde::Serialize;

use super::is_false;

/// Tokens and their cost.
#[derive(Debug, Serialize)]
pub struct SpentRecord {
    #[serde(skip_serializing_if = "Option::is_none")]
    input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_tokens: Option<u64>,
    total_tokens: u64,
    /// By the prices of the project; absent where a part has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
    /// Whether some of it is an estimate.
    #[serde(skip_serializing_if = "is_false")]
    estimated: bool,
}

impl SpentRecord {
    pub fn of(spent: Spent) -> Self {
        let Spent { input_tokens, output_tokens, total_tokens, cost, unpriced: _, estimated } = spent;
        // Sums of fractions are not exact, and nobody pays for parts of a millionth of a millionth.
        let cost = cost.map(|cost| (cost * 1e12).round() / 1e12);
        SpentRecord { input_tokens, output_tokens, total_tokens, cost, estimated }
    }
}
