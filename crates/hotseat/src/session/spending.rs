//! What is spent, turn by turn: read from what agents and models report, in the words that they have for it.

use std::collections::HashMap;
use std::sync::Arc;

use hotseat_runtime::files::Price;
use hotseat_trace::{Payload, Spent};
use serde_json::Value;

/// What models cost, by their names.
#[derive(Debug, Clone, Default)]
pub struct Prices {
    by_name: HashMap<String, Price>,
    /// The model that speaks where a report names none.
    usual: Option<String>,
}

impl Prices {
    /// The price of a model. Of several under one name the first counts.
    pub fn add(&mut self, name: &str, price: Price) {
        self.by_name.entry(name.to_string()).or_insert(price);
    }

    /// The same prices for an agent that is said to speak with this model.
    #[must_use]
    pub fn speaking_with(&self, usual: Option<String>) -> Prices {
        Prices { usual, ..self.clone() }
    }
}

/// Follows what is spent.
#[derive(Debug, Default)]
pub(super) struct Meter {
    prices: Prices,
    /// What was spent since the last turn that ended.
    pending: Vec<Spent>,
    /// Model calls that go on: the model, and the size of the request as it was estimated.
    open: HashMap<(Arc<str>, u32), (Arc<str>, u64)>,
}

impl Meter {
    pub fn new(prices: Prices) -> Self {
        Meter { prices, ..Meter::default() }
    }

    /// Takes note of an event.
    pub fn see(&mut self, payload: &Payload) {
        match payload {
            Payload::LlmCallStarted(call) => {
                let asked = (call.model_profile_id.clone(), call.input_tokens);
                self.open.insert((call.turn_id.clone(), call.call_no), asked);
            }
            Payload::LlmCallCompleted(call) => {
                let asked = self.open.remove(&(call.turn_id.clone(), call.call_no));
                let (model, estimate) = asked.unwrap_or_default();
                let report = Report {
                    model: Some(model.to_string()),
                    input: Some(call.input_tokens.unwrap_or(estimate)),
                    output: Some(call.output_tokens),
                    ..Report::default()
                };
                let spent = report.spent(&self.prices);
                self.pending.push(Spent { estimated: call.input_tokens.is_none(), ..spent });
            }
            Payload::AgentRunFinished(run) => {
                for report in run.usage.iter().flat_map(Report::read) {
                    self.pending.push(report.spent(&self.prices));
                }
            }
            _ => {}
        }
    }

    /// What was spent until now, for the turn that ends.
    pub fn take(&mut self) -> Option<Spent> {
        Spent::sum(&std::mem::take(&mut self.pending))
    }
}

/// What somebody reports of one model.
#[derive(Debug, Default, PartialEq)]
struct Report {
    model: Option<String>,
    input: Option<u64>,
    cached: u64,
    output: Option<u64>,
    total: Option<u64>,
    cost: Option<f64>,
}

/// What the figures are called: by chat completions, messages, AG-UI, and others.
const INPUT: [&str; 6] =
    ["input_tokens", "prompt_tokens", "inputTokens", "promptTokens", "promptTokenCount", "prompt_eval_count"];
const OUTPUT: [&str; 6] = [
    "output_tokens",
    "completion_tokens",
    "outputTokens",
    "completionTokens",
    "candidatesTokenCount",
    "eval_count",
];
const TOTAL: [&str; 3] = ["total_tokens", "totalTokens", "totalTokenCount"];
const COST: [&str; 5] = ["cost", "total_cost", "totalCost", "cost_usd", "costUsd"];
const MODEL: [&str; 3] = ["model", "model_name", "modelName"];
const CACHED: [&str; 6] = [
    "/cached_tokens",
    "/cachedTokens",
    "/prompt_tokens_details/cached_tokens",
    "/input_tokens_details/cached_tokens",
    "/cachedInputTokens",
    "/cachedContentTokenCount",
];

/// The tokens of the requests and of the replies that a report of usage names; none where it does not name both.
pub fn reported_tokens(usage: &Value) -> Option<(u64, u64)> {
    let reports = Report::read(usage);
    let of = |report: &Report| Some((report.input?, report.output?));
    let mut each = reports.iter().map(of);
    let first = each.next()??;
    each.try_fold(first, |(input, output), report| {
        let (more_input, more_output) = report?;
        Some((input.saturating_add(more_input), output.saturating_add(more_output)))
    })
}

impl Report {
    /// What is understood of a report: of one model, or of a list of them. What does not say how many tokens there were
    /// in all is passed over.
    fn read(usage: &Value) -> Vec<Report> {
        match usage {
            Value::Array(parts) => parts.iter().flat_map(Report::read).collect(),
            Value::Object(members) => {
                let number = |names: &[&str]| names.iter().find_map(|name| members.get(*name)?.as_u64());
                let report = Report {
                    model: MODEL.iter().find_map(|name| members.get(*name)?.as_str()).map(str::to_string),
                    input: number(&INPUT),
                    cached: CACHED.iter().find_map(|path| usage.pointer(path)?.as_u64()).unwrap_or_default(),
                    output: number(&OUTPUT),
                    total: number(&TOTAL),
                    cost: COST
                        .iter()
                        .find_map(|name| members.get(*name)?.as_f64())
                        .filter(|cost| cost.is_finite() && *cost >= 0.0),
                };
                // Half of a sum is no sum.
                let is_counted = report.total.or(report.input.and(report.output)).is_some();
                if is_counted { vec![report] } else { Vec::new() }
            }
            _ => Vec::new(),
        }
    }

    fn spent(self, prices: &Prices) -> Spent {
        let Report { model, input, cached, output, total, cost } = self;
        let model =
            model.filter(|model| !model.is_empty()).or_else(|| prices.usual.clone()).unwrap_or_default();
        let priced = match (prices.by_name.get(&model), input, output) {
            (Some(price), Some(input), Some(output)) => {
                let cached = cached.min(input);
                let asked = (input - cached) as f64 * price.input + cached as f64 * price.cached_input;
                Some((asked + output as f64 * price.output) / 1e6)
            }
            _ => None,
        };
        let cost = cost.or(priced);
        Spent {
            input_tokens: input,
            output_tokens: output,
            total_tokens: total.unwrap_or_else(|| input.unwrap_or(0).saturating_add(output.unwrap_or(0))),
            cost,
            unpriced: if cost.is_none() { vec![model] } else { Vec::new() },
            estimated: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn figures(usage: &Value) -> Vec<(Option<u64>, Option<u64>, Option<u64>)> {
        Report::read(usage).iter().map(|report| (report.input, report.output, report.total)).collect()
    }

    #[test]
    fn reports_are_read_in_the_words_of_many() {
        for usage in [
            json!({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}),
            json!({"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}),
            json!([{"model": "m", "inputTokens": 10, "outputTokens": 2, "totalTokens": 12}]),
            json!({"promptTokenCount": 10, "candidatesTokenCount": 2, "totalTokenCount": 12}),
        ] {
            assert_eq!(figures(&usage), [(Some(10), Some(2), Some(12))], "{usage}");
        }
        for usage in [json!(null), json!({}), json!({"prompt_tokens": "10"}), json!("12"), json!({"cost": 1})]
            .into_iter()
            .chain([json!({"output_tokens": 2}), json!({"prompt_tokens": 10, "cost": 1})])
        {
            assert_eq!(figures(&usage), [], "{usage}");
        }
    }

    #[test]
    fn tokens_of_a_cache_have_a_price_of_their_own() {
        let mut prices = Prices::default();
        prices.add("m", Price { input: 3.0, output: 15.0, cached_input: 0.3 });
        let prices = prices.speaking_with(Some("m".to_string()));
        let usage = json!({"prompt_tokens": 1_000_000, "completion_tokens": 100_000,
            "prompt_tokens_details": {"cached_tokens": 500_000}});
        let spent = Report::read(&usage).remove(0).spent(&prices);
        assert_eq!(spent.cost, Some(1.5 + 0.15 + 1.5));
        assert_eq!(spent.total_tokens, 1_100_000);
        let other = json!({"model": "other", "prompt_tokens": 1, "completion_tokens": 1});
        let spent = Report::read(&other).remove(0).spent(&prices);
        assert_eq!((spent.cost, spent.unpriced), (None, vec!["other".to_string()]));
    }
}
