//! Token usage and cost per turn, read from the reports of agents and models in their various formats.

use std::collections::HashMap;
use std::sync::Arc;

use hotseat_runtime::files::TokenPrice;
use hotseat_trace::{Payload, UNREADABLE_REPLY, UsageTotals};
use serde_json::Value;

/// Prices of models, by name.
#[derive(Debug, Clone, Default)]
pub struct ModelPrices {
    by_name: HashMap<String, TokenPrice>,
    /// The model assumed for reports without a model name.
    default_model: Option<String>,
}

impl ModelPrices {
    /// Adds the price of a model. The first price of a name is used.
    pub fn add(&mut self, name: &str, price: TokenPrice) {
        self.by_name.entry(name.to_string()).or_insert(price);
    }

    /// Adds prices of models that have none yet.
    #[must_use]
    pub fn with_others(mut self, others: &ModelPrices) -> ModelPrices {
        others.by_name.iter().for_each(|(name, price)| self.add(name, *price));
        self
    }

    /// Sets the model that is assumed for reports without a model name.
    #[must_use]
    pub fn with_default_model(self, usual: Option<String>) -> ModelPrices {
        ModelPrices { default_model: usual, ..self }
    }
}

/// Sums token usage and cost of turns.
#[derive(Debug, Default)]
pub(crate) struct SpendingMeter {
    prices: ModelPrices,
    /// Connector that the options of the turn select.
    connector: Option<String>,
    /// Usage of model calls since the last completed turn.
    calls: Vec<UsageTotals>,
    /// Usage that the agent reported since the last completed turn.
    reports: Vec<UsageTotals>,
    /// True if a run of the agent since the last completed turn has usage that cannot be counted.
    is_partial: bool,
    /// True if the reply of a model call since the last completed turn could not be read.
    has_unread_reply: bool,
    /// Running model calls: model and estimated input tokens.
    open: HashMap<(Arc<str>, u32), (Arc<str>, u64)>,
}

impl SpendingMeter {
    pub fn new(prices: ModelPrices) -> Self {
        SpendingMeter { prices, ..SpendingMeter::default() }
    }

    /// Adds a model to a usage report that names none, if the model has a price.
    pub fn name_model(&self, mut usage: Value, model: &str) -> Value {
        if let Value::Object(members) = &mut usage
            && self.prices.by_name.contains_key(model)
            && !MODEL_KEYS.iter().any(|key| members.get(*key).is_some_and(Value::is_string))
        {
            members.insert("model".to_string(), model.into());
        }
        usage
    }

    /// Reads the usage of an event.
    pub fn observe(&mut self, payload: &Payload) {
        match payload {
            Payload::UserMessage(message) => {
                let options = message.options.as_ref();
                self.connector =
                    options.and_then(|options| Some(options.get("connector")?.as_str()?.to_string()));
            }
            Payload::LlmCallStarted(call) => {
                let started = (call.model_profile_id.clone(), call.input_tokens);
                self.open.insert((call.turn_id.clone(), call.call_no), started);
            }
            Payload::LlmCallCompleted(call) => {
                let started = self.open.remove(&(call.turn_id.clone(), call.call_no));
                let (model, estimate) = started.unwrap_or_default();
                let report = UsageReport {
                    model: Some(model.to_string()),
                    input: Some(call.input_tokens.unwrap_or(estimate)),
                    output: Some(call.output_tokens),
                    cached: call.cached_tokens.unwrap_or_default(),
                    ..UsageReport::default()
                };
                let spent = report.into_totals(&self.prices, None);
                self.calls.push(UsageTotals {
                    estimated: call.input_tokens.is_none(),
                    partial: call.usage_unreported,
                    ..spent
                });
            }
            Payload::LlmCallFailed(call) => {
                self.has_unread_reply |= call.error.code.as_deref() == Some(UNREADABLE_REPLY);
            }
            Payload::AgentRunFinished(run) => {
                let known = self.reports.len();
                for report in run.usage.iter().flat_map(UsageReport::parse_all) {
                    match report {
                        Some(report) => {
                            self.reports.push(report.into_totals(&self.prices, self.connector.as_ref()));
                        }
                        None => self.is_partial = true,
                    }
                }
                self.is_partial |= self.reports.len() == known;
            }
            _ => {}
        }
    }

    /// Returns and resets the usage since the last completed turn. If the model calls are known, the report of the agent is
    /// about the same tokens.
    pub fn take(&mut self) -> Option<UsageTotals> {
        let (calls, reports) = (std::mem::take(&mut self.calls), std::mem::take(&mut self.reports));
        let is_partial = std::mem::take(&mut self.is_partial);
        let has_unread_reply = std::mem::take(&mut self.has_unread_reply);
        if calls.is_empty() {
            UsageTotals::sum(&reports).map(|spent| UsageTotals { partial: is_partial, ..spent })
        } else {
            UsageTotals::sum(&calls)
                .map(|spent| UsageTotals { partial: spent.partial || has_unread_reply, ..spent })
        }
    }
}

/// Reported usage of one model.
#[derive(Debug, Default, PartialEq)]
struct UsageReport {
    model: Option<String>,
    input: Option<u64>,
    cached: u64,
    output: Option<u64>,
    total: Option<u64>,
    cost: Option<f64>,
    /// True if the report has a cost that cannot be read.
    is_cost_unknown: bool,
    estimated: bool,
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
const COST_KEYS: [&str; 5] = ["cost", "total_cost", "totalCost", "cost_usd", "costUsd"];
const MODEL_KEYS: [&str; 3] = ["model", "model_name", "modelName"];
const CACHED_TOKEN_PATHS: [&[&str]; 6] = [
    &["cached_tokens"],
    &["cachedTokens"],
    &["prompt_tokens_details", "cached_tokens"],
    &["input_tokens_details", "cached_tokens"],
    &["cachedInputTokens"],
    &["cachedContentTokenCount"],
];
/// Keys of the tokens that were read from a cache, beside the other input.
const CACHE_READ_KEYS: [&str; 2] = ["cache_read_input_tokens", "cacheReadInputTokens"];
/// Keys of the tokens that were written to a cache, beside the other input.
const CACHE_WRITE_KEYS: [&str; 3] =
    ["cache_creation_input_tokens", "cacheCreationInputTokens", "cacheWriteInputTokens"];

/// Counts above this one, written with a decimal point, are not whole numbers for sure.
const MAX_COUNT: f64 = 9_007_199_254_740_992.0;

/// Returns the input and output tokens of a usage report; `None` unless it has both.
pub fn reported_tokens(usage: &Value) -> Option<(u64, u64)> {
    let reports = UsageReport::parse_all(usage);
    let of = |report: &Option<UsageReport>| {
        let report = report.as_ref()?;
        Some((report.input?, report.output?))
    };
    let mut each = reports.iter().map(of);
    let first = each.next()??;
    each.try_fold(first, |(input, output), report| {
        let (more_input, more_output) = report?;
        Some((input.saturating_add(more_input), output.saturating_add(more_output)))
    })
}

/// True if a usage report counts no token of a reply.
pub(crate) fn reports_no_output(usage: &Value) -> bool {
    let reports = UsageReport::parse_all(usage);
    let is_zero = |report: &Option<UsageReport>| {
        report.as_ref().is_some_and(|report| report.output == Some(0) || report.total == Some(0))
    };
    !reports.is_empty() && reports.iter().all(is_zero)
}

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

/// Adds a usage report of a turn to the earlier ones: several are a list, whose tokens are added.
pub(crate) fn add_usage(earlier: Option<Value>, usage: Value) -> Value {
    let parts = |usage: Value| match usage {
        Value::Array(parts) => parts,
        part => vec![part],
    };
    match earlier {
        None => usage,
        Some(earlier) => {
            let mut all = parts(earlier);
            all.extend(parts(usage));
            Value::Array(all)
        }
    }
}

impl UsageReport {
    /// Parses a usage report of one model or a list of them. `None` stands for one whose counts are missing, contradict each other
    /// or cannot be read. Tokens of the total that are neither input nor output count as output.
    fn parse_all(usage: &Value) -> Vec<Option<UsageReport>> {
        match usage {
            Value::Array(parts) => parts.iter().flat_map(UsageReport::parse_all).collect(),
            Value::Object(members) => {
                // Comparing few short names is faster than hashing each of them.
                let member =
                    |name: &str| members.iter().find(|(key, _)| *key == name).map(|(_, value)| value);
                let mut counts = TokenCounts { is_unreadable: false };
                let mut number = |names: &[&str]| names.iter().find_map(|name| counts.read(member(name)?));
                let (read, written) = (number(&CACHE_READ_KEYS), number(&CACHE_WRITE_KEYS));
                let (input, output) = (number(&INPUT_TOKEN_KEYS), number(&OUTPUT_TOKEN_KEYS));
                let total = number(&TOTAL_TOKEN_KEYS);
                let cached = CACHED_TOKEN_PATHS.iter().find_map(|path| {
                    let (first, rest) = path.split_first()?;
                    counts.read(rest.iter().try_fold(member(first)?, |at, key| at.get(key))?)
                });
                let told = COST_KEYS.iter().filter_map(|name| member(name)).find(|cost| !cost.is_null());
                let cost = told.and_then(Value::as_f64).filter(|cost| cost.is_finite() && *cost >= 0.0);
                let mut report = UsageReport {
                    model: MODEL_KEYS.iter().find_map(|name| member(name)?.as_str()).map(str::to_string),
                    input,
                    cached: cached.unwrap_or_default(),
                    output,
                    total,
                    cost,
                    is_cost_unknown: told.is_some() && cost.is_none(),
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
                vec![(is_counted && !counts.is_unreadable).then_some(report)]
            }
            _ => vec![None],
        }
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

    /// Computes the cost. `connector` is the model of a report that names none, instead of the default one.
    fn into_totals(self, prices: &ModelPrices, connector: Option<&String>) -> UsageTotals {
        let UsageReport { model, input, cached, output, total, cost, is_cost_unknown, estimated } = self;
        let model = model
            .filter(|model| !model.is_empty())
            .or_else(|| connector.or(prices.default_model.as_ref()).cloned())
            .unwrap_or_default();
        let priced = match (prices.by_name.get(&model), input, output) {
            (Some(price), Some(input), Some(output)) => {
                let cached = cached.min(input);
                let input_cost = (input - cached) as f64 * price.input + cached as f64 * price.cached_input;
                Some((input_cost + output as f64 * price.output) / 1e6)
            }
            _ => None,
        };
        let cost = cost.or(priced.filter(|_| !is_cost_unknown));
        UsageTotals {
            input_tokens: input,
            output_tokens: output,
            total_tokens: total.unwrap_or_else(|| input.unwrap_or(0).saturating_add(output.unwrap_or(0))),
            cost,
            unpriced: if cost.is_none() { vec![model] } else { Vec::new() },
            estimated,
            partial: false,
        }
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
            assert_eq!(report.into_totals(&ModelPrices::default(), None).total_tokens, input + 1, "{usage}");
        }
    }

    #[test]
    fn prices_cached_tokens() {
        let mut prices = ModelPrices::default();
        prices.add("m", TokenPrice { input: 3.0, output: 15.0, cached_input: 0.3 });
        let prices = prices.with_default_model(Some("m".to_string()));
        let usage = json!({"prompt_tokens": 1_000_000, "completion_tokens": 100_000,
            "prompt_tokens_details": {"cached_tokens": 500_000}});
        let spent = UsageReport::parse_all(&usage).remove(0).unwrap().into_totals(&prices, None);
        assert_eq!(spent.cost, Some(1.5 + 0.15 + 1.5));
        assert_eq!(spent.total_tokens, 1_100_000);
        for cost in [json!("50.0"), json!(-5)] {
            let unknown = json!({"prompt_tokens": 1, "completion_tokens": 1, "cost": cost});
            let spent = UsageReport::parse_all(&unknown).remove(0).unwrap().into_totals(&prices, None);
            assert_eq!((spent.cost, spent.unpriced), (None, vec!["m".to_string()]), "{unknown}");
        }
        let other = json!({"model": "other", "prompt_tokens": 1, "completion_tokens": 1});
        let spent = UsageReport::parse_all(&other).remove(0).unwrap().into_totals(&prices, None);
        assert_eq!((spent.cost, spent.unpriced), (None, vec!["other".to_string()]));
    }
}
