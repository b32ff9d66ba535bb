//! Token usage and cost per turn, from the reports of agents and models.

use std::collections::HashMap;
use std::sync::Arc;

use hotseat_model::UsageReport;
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

    /// Computes the cost. `connector` is the model of a report that names none, instead of the default one.
    fn totals(&self, report: UsageReport, connector: Option<&String>) -> UsageTotals {
        let UsageReport { model, input, cached, output, total, cost, is_cost_unknown, estimated } = report;
        let model = model
            .filter(|model| !model.is_empty())
            .or_else(|| connector.or(self.default_model.as_ref()).cloned())
            .unwrap_or_default();
        let priced = match (self.by_name.get(&model), input, output) {
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
            && UsageReport::model_name(members).is_none()
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
                let spent = self.prices.totals(report, None);
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
                run.usage.iter().for_each(|usage| self.add_reports(usage));
                self.is_partial |= self.reports.len() == known;
            }
            Payload::AgentRunFailed(run) => run.usage.iter().for_each(|usage| self.add_reports(usage)),
            _ => {}
        }
    }

    /// Adds usage that the agent reported.
    pub fn add_reports(&mut self, usage: &Value) {
        for report in UsageReport::parse_all(usage) {
            match report {
                Some(report) => self.reports.push(self.prices.totals(report, self.connector.as_ref())),
                None => self.is_partial = true,
            }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn prices_cached_tokens() {
        let mut prices = ModelPrices::default();
        prices.add("m", TokenPrice { input: 3.0, output: 15.0, cached_input: 0.3 });
        let prices = prices.with_default_model(Some("m".to_string()));
        let totals = |usage: &Value| prices.totals(UsageReport::parse_all(usage).remove(0).unwrap(), None);
        let usage = json!({"prompt_tokens": 1_000_000, "completion_tokens": 100_000,
            "prompt_tokens_details": {"cached_tokens": 500_000}});
        let spent = totals(&usage);
        assert_eq!(spent.cost, Some(1.5 + 0.15 + 1.5));
        assert_eq!(spent.total_tokens, 1_100_000);
        for cost in [json!("50.0"), json!(-5)] {
            let unknown = json!({"prompt_tokens": 1, "completion_tokens": 1, "cost": cost});
            let spent = totals(&unknown);
            assert_eq!((spent.cost, spent.unpriced), (None, vec!["m".to_string()]), "{unknown}");
        }
        let other = json!({"model": "other", "prompt_tokens": 1, "completion_tokens": 1});
        let spent = totals(&other);
        assert_eq!((spent.cost, spent.unpriced), (None, vec!["other".to_string()]));
    }
}
