//! Report record of token usage.

use hotseat_trace::{UsageTotals, optional_members};
use serde::Serialize;

optional_members! {
    /// Tokens and their cost.
    #[derive(Debug, Serialize)]
    pub struct SpentRecord {
        input_tokens?: Option<u64>,
        output_tokens?: Option<u64>,
        pub total_tokens: u64,
        /// Cost by the prices of the project; absent if a part has no price.
        pub cost?: Option<f64>,
        /// True if a part is estimated.
        estimated?: bool,
    }
}

impl SpentRecord {
    pub fn new(spent: UsageTotals) -> Self {
        let UsageTotals { input_tokens, output_tokens, total_tokens, cost, estimated, .. } = spent;
        // Rounds away the error of floating-point sums.
        let cost = cost.map(|cost| (cost * 1e12).round() / 1e12);
        SpentRecord { input_tokens, output_tokens, total_tokens, cost, estimated }
    }
}
