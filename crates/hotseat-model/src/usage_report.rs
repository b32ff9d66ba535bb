//! Token usage in the reports of agents and of providers, in their various formats.

use hotseat_trace::ReportedCost;
use serde_json::{Map, Value};

use crate::TokenUsage;

/// Reported usage of one model.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct UsageReport {
    /// The model, if the report names one.
    pub model: Option<String>,
    /// Tokens of the request, including cached ones.
    pub input: Option<u64>,
    /// Tokens of the request that were read from a cache.
    pub cached: u64,
    /// Tokens of the reply.
    pub output: Option<u64>,
    /// The total that the report has.
    pub total: Option<u64>,
    /// The cost that the report has.
    pub cost: Option<f64>,
    /// True if the report has a cost that cannot be read.
    pub is_cost_unknown: bool,
    /// True if the report says that its counts are an estimate.
    pub estimated: bool,
}

/// Keys of usage figures in chat completions, messages, AG-UI and others.
const INPUT_TOKEN_KEYS: [&str; 6] =
    ["input_tokens", "prompt_tokens", "inputTokens", "promptTokens", "promptTokenCount", "prompt_eval_count"];
const OUTPUT_TOKEN_KEYS: [&str; 6] = [
    "output_tokens",
    "completion_tokens",
    "outputTokens",
    "completionTokens",
    "candidatesTokenCount",
    "eval_count",
];
const TOTAL_TOKEN_KEYS: [&str; 3] = ["total_tokens", "totalTokens", "totalTokenCount"];
const MODEL_KEYS: [&str; 3] = ["model", "model_name", "modelName"];
const CACHED_TOKEN_PATHS: [&[&str]; 7] = [
    &["cached_tokens"],
    &["cachedTokens"],
    &["prompt_tokens_details", "cached_tokens"],
    &["input_tokens_details", "cached_tokens"],
    &["cachedInputTokens"],
    &["cachedContentTokenCount"],
    &["prompt_cache_hit_tokens"],
];
/// Keys of the tokens that were read from a cache, beside the other input.
const CACHE_READ_KEYS: [&str; 2] = ["cache_read_input_tokens", "cacheReadInputTokens"];
/// Keys of the tokens that were written to a cache, beside the other input.
const CACHE_WRITE_KEYS: [&str; 3] =
    ["cache_creation_input_tokens", "cacheCreationInputTokens", "cacheWriteInputTokens"];

/// Counts above this one, written with a decimal point, are not whole numbers for sure.
const MAX_COUNT: f64 = 9_007_199_254_740_992.0;

/// Reads the counts of a report.
struct TokenCounts {
    /// True if a count has another form than a whole number.
    is_unreadable: bool,
}

impl TokenCounts {
    fn read(&mut self, count: &Value) -> Option<u64> {
        let whole =
            || count.as_f64().filter(|count| count.fract() == 0.0 && (0.0..MAX_COUNT).contains(count));
        let number = count.as_u64().or_else(|| whole().map(|count| count as u64));
        self.is_unreadable |= number.is_none() && !count.is_null();
        number
    }
}

impl UsageReport {
    /// Parses a usage report of one model or a list of them. `None` stands for one whose counts are missing, contradict each other
    /// or cannot be read. Tokens of the total that are neither input nor output count as output.
    pub fn parse_all(usage: &Value) -> Vec<Option<UsageReport>> {
        match usage {
            Value::Array(parts) => parts.iter().flat_map(UsageReport::parse_all).collect(),
            Value::Object(members) => vec![UsageReport::parse(members)],
            _ => vec![None],
        }
    }

    /// Parses a usage report of one model; `None` as above.
    pub fn parse(members: &Map<String, Value>) -> Option<UsageReport> {
        // Comparing few short names is faster than hashing each of them.
        let member = |name: &str| members.iter().find(|(key, _)| *key == name).map(|(_, value)| value);
        let mut counts = TokenCounts { is_unreadable: false };
        let mut number = |names: &[&str]| names.iter().find_map(|name| counts.read(member(name)?));
        let (read, written) = (number(&CACHE_READ_KEYS), number(&CACHE_WRITE_KEYS));
        let (input, output) = (number(&INPUT_TOKEN_KEYS), number(&OUTPUT_TOKEN_KEYS));
        let total = number(&TOTAL_TOKEN_KEYS);
        let cached = CACHED_TOKEN_PATHS.iter().find_map(|path| {
            let (first, rest) = path.split_first()?;
            counts.read(rest.iter().try_fold(member(first)?, |at, key| at.get(key))?)
        });
        let reported = ReportedCost::find(members);
        let cost = reported.and_then(ReportedCost::amount);
        let mut report = UsageReport {
            model: UsageReport::model_name(members).map(str::to_string),
            input,
            cached: cached.unwrap_or_default(),
            output,
            total,
            cost,
            is_cost_unknown: reported.is_some() && cost.is_none(),
            estimated: member("estimated").and_then(Value::as_bool).unwrap_or(false),
        };
        // Without a total, both summands are needed. A total below them contradicts them.
        let parts = report.input.unwrap_or(0).saturating_add(report.output.unwrap_or(0));
        let is_counted = match report.total {
            Some(total) => total >= parts,
            None => report.input.and(report.output).is_some(),
        };
        report.add_separate_cache(read, written);
        if let (Some(input), Some(total)) = (report.input, report.total) {
            report.output = report.output.map(|output| output.max(total.saturating_sub(input)));
        }
        (is_counted && !counts.is_unreadable).then_some(report)
    }

    /// Returns the model that a usage report names.
    pub fn model_name(members: &Map<String, Value>) -> Option<&str> {
        MODEL_KEYS.iter().find_map(|key| members.get(*key)?.as_str())
    }

    /// True if a usage report has a count of input, output or a total: some servers send empty reports with each chunk.
    pub fn has_counts(report: &Value) -> bool {
        let keys = [&INPUT_TOKEN_KEYS[..], &OUTPUT_TOKEN_KEYS, &TOTAL_TOKEN_KEYS].concat();
        keys.into_iter().any(|key| !report[key].is_null())
    }

    /// Returns the counts of one call of a model; `None` unless the report has those of the request and of the reply.
    pub fn to_usage(&self) -> Option<TokenUsage> {
        Some(TokenUsage {
            input_tokens: self.input?,
            output_tokens: self.output?,
            cached_tokens: self.cached,
            ..TokenUsage::default()
        })
    }

    /// Adds tokens of a cache that the report counts beside the other input, as in messages. A total tells whether
    /// it does.
    fn add_separate_cache(&mut self, read: Option<u64>, written: Option<u64>) {
        let (Some(input), Some(output), Some(cached)) =
            (self.input, self.output, read.or(written.map(|_| 0)))
        else {
            return;
        };
        let input = input.saturating_add(cached).saturating_add(written.unwrap_or(0));
        if self.total.is_none_or(|total| total == input.saturating_add(output)) {
            self.input = Some(input);
        }
        self.cached = self.cached.max(cached);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn figures(usage: &Value) -> Vec<(Option<u64>, Option<u64>, Option<u64>)> {
        UsageReport::parse_all(usage)
            .iter()
            .flatten()
            .map(|report| (report.input, report.output, report.total))
            .collect()
    }

    #[test]
    fn parses_usage_formats() {
        for usage in [
            json!({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}),
            json!({"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}),
            json!([{"model": "m", "inputTokens": 10, "outputTokens": 2, "totalTokens": 12}]),
            json!({"promptTokenCount": 10, "candidatesTokenCount": 2, "totalTokenCount": 12}),
            json!({"promptTokenCount": 10.0, "candidatesTokenCount": 1, "thoughtsTokenCount": 1, "totalTokenCount": 12}),
        ] {
            assert_eq!(figures(&usage), [(Some(10), Some(2), Some(12))], "{usage}");
        }
        for usage in [json!(null), json!({}), json!({"prompt_tokens": "10"}), json!("12"), json!({"cost": 1})]
            .into_iter()
            .chain([json!({"output_tokens": 2}), json!({"prompt_tokens": 10, "cost": 1})])
            .chain([json!({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 11})])
            .chain([json!({"prompt_tokens": "10", "completion_tokens": 2, "total_tokens": 12})])
            .chain([json!({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": -5})])
            .chain([json!({"input_tokens": 10, "output_tokens": 2, "cache_read_input_tokens": "9"})])
        {
            assert_eq!(figures(&usage), [], "{usage}");
        }
    }

    #[test]
    fn adds_tokens_of_a_separate_cache() {
        for (usage, input) in [
            (
                json!({"input_tokens": 1, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 50, "output_tokens": 1}),
                151,
            ),
            (
                json!({"inputTokens": 1, "cacheReadInputTokens": 100, "outputTokens": 1, "totalTokens": 102}),
                101,
            ),
            (
                json!({"input_tokens": 1, "cache_creation_input_tokens": 50, "cache_read_input_tokens": null, "output_tokens": 1}),
                51,
            ),
            // The total says that the input includes the cache.
            (
                json!({"prompt_tokens": 101, "cache_read_input_tokens": 100, "completion_tokens": 1, "total_tokens": 102}),
                101,
            ),
        ] {
            let report = UsageReport::parse_all(&usage).remove(0).unwrap();
            assert_eq!(report.input, Some(input), "{usage}");
            assert_eq!(report.output, Some(1), "{usage}");
        }
    }
}
