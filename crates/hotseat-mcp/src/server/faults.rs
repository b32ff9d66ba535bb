//! Selects the calls that get a fault, and changes their answers.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use super::outbound::AnswerDelivery;
use crate::canonical::canonical_text;
use crate::fault::{FaultKind, FaultRule, FaultTrigger, UnreachedFault};
use crate::lock;

/// Maximum size of the answer of a fault.
const MAX_HUGE_BYTES: usize = 256 * 1024 * 1024;
/// Text of an answer that is no JSON.
const GARBAGE: &str = "\u{1}}{ this is not JSON: 0x00ff <html>";

/// Counters of the fault rules of one server in one conversation.
pub(super) struct FaultCounters {
    rules: Vec<RuleCounter>,
}

#[derive(Default)]
struct RuleCounter {
    matching: AtomicU64,
    injected: AtomicU64,
    /// Numbers of equal calls, for selection at random. At most one entry for each call.
    equal_calls: Mutex<HashMap<u64, u64>>,
    /// Results of the last calls by tool, for stale answers.
    previous: Mutex<HashMap<String, Value>>,
}

/// The fault of one call.
pub(super) struct SelectedFault {
    pub(super) rule: usize,
    pub(super) kind: FaultKind,
    /// Result of the previous call, for a stale answer.
    pub(super) previous: Option<Value>,
}

impl FaultCounters {
    pub(super) fn new(rules: &[FaultRule]) -> FaultCounters {
        FaultCounters { rules: rules.iter().map(|_| RuleCounter::default()).collect() }
    }

    /// Counts a call for all rules, and returns the fault of the first rule that selects it.
    pub(super) fn select(&self, rules: &[FaultRule], tool: &str, arguments: &Value) -> Option<SelectedFault> {
        let mut selected = None;
        for (index, (rule, counter)) in rules.iter().zip(&self.rules).enumerate() {
            let applies = rule.tool.as_deref().is_none_or(|name| name == tool)
                && rule.arguments.as_ref().is_none_or(|condition| condition.matches(arguments));
            if !applies {
                continue;
            }
            let number = counter.matching.fetch_add(1, Ordering::Relaxed) + 1;
            let is_due = match rule.trigger {
                FaultTrigger::Nth(nth) => number == nth,
                FaultTrigger::Every(every) => number.is_multiple_of(every.max(1)),
                FaultTrigger::Rate { seed, rate } => counter.is_drawn(seed, rate, tool, arguments),
            };
            let previous = match rule.kind {
                FaultKind::Stale => lock(&counter.previous).get(tool).cloned(),
                _ => None,
            };
            let is_possible = rule.kind != FaultKind::Stale || previous.is_some();
            if is_due && is_possible && selected.is_none() {
                counter.injected.fetch_add(1, Ordering::Relaxed);
                selected = Some(SelectedFault { rule: index, kind: rule.kind.clone(), previous });
            }
        }
        selected
    }

    /// Stores the result of a call for rules that answer with it later.
    pub(super) fn remember(&self, rules: &[FaultRule], tool: &str, result: &Value) {
        for (rule, counter) in rules.iter().zip(&self.rules) {
            if rule.kind == FaultKind::Stale && rule.tool.as_deref().is_none_or(|name| name == tool) {
                lock(&counter.previous).insert(tool.to_string(), result.clone());
            }
        }
    }

    /// Returns the rules that selected no call.
    pub(super) fn unreached(&self, server: &str, rules: &[FaultRule]) -> Vec<UnreachedFault> {
        let unreached = rules.iter().zip(&self.rules).enumerate();
        unreached
            .filter(|(_, (_, counter))| counter.injected.load(Ordering::Relaxed) == 0)
            .map(|(index, (rule, counter))| UnreachedFault {
                server: server.to_string(),
                rule: index,
                tool: rule.tool.clone(),
                kind: rule.kind.clone(),
                matching_calls: counter.matching.load(Ordering::Relaxed),
            })
            .collect()
    }
}

impl RuleCounter {
    /// Whether a call is selected at random. Depends on the seed, the call and the number of equal calls before it, and not on
    /// the order of different calls.
    fn is_drawn(&self, seed: u64, rate: f64, tool: &str, arguments: &Value) -> bool {
        let call = draw(&[&seed.to_string(), tool, &canonical_text(arguments)]);
        let number = {
            let mut equal_calls = lock(&self.equal_calls);
            let count = equal_calls.entry(call).or_default();
            *count += 1;
            *count
        };
        // 53 bits are exact in a float.
        let drawn = (draw(&[&call.to_string(), &number.to_string()]) >> 11) as f64 / (1_u64 << 53) as f64;
        drawn < rate
    }
}

/// Returns a number that looks random, from texts.
fn draw(texts: &[&str]) -> u64 {
    let hash = digest(&SHA256, texts.join("\0").as_bytes());
    hash.as_ref().iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Changes the result of a call after its effect, and returns how to deliver it.
pub(super) fn break_answer(fault: &SelectedFault, result: &mut Value) -> AnswerDelivery {
    match &fault.kind {
        FaultKind::Empty => set_content(result, json!([])),
        FaultKind::SchemaViolation => {
            set_content(result, json!({"type": "text", "text": 1}));
            result["structuredContent"] = json!([{"hotseat": "schema violation"}]);
        }
        FaultKind::Huge { bytes } => {
            let text = "0123456789abcdef".repeat(bytes.min(&MAX_HUGE_BYTES).div_ceil(16));
            set_content(result, json!([{"type": "text", "text": text}]));
        }
        FaultKind::Stale => {
            if let Some(previous) = &fault.previous {
                *result = previous.clone();
            }
        }
        FaultKind::Garbage => return AnswerDelivery::Bytes(GARBAGE.into()),
        FaultKind::Truncate => return AnswerDelivery::Truncated,
        FaultKind::LostAnswer => return AnswerDelivery::Abort,
        FaultKind::DuplicateAnswer => return AnswerDelivery::Twice,
        FaultKind::SlowStream(duration) => return AnswerDelivery::Slow(*duration),
        _ => {}
    }
    AnswerDelivery::Plain
}

fn set_content(result: &mut Value, content: Value) {
    if let Some(result) = result.as_object_mut() {
        result.shift_remove("structuredContent");
        result.insert("content".to_string(), content);
    }
}

/// Returns the delay of a fault before its effect.
pub(super) fn delay(kind: &FaultKind) -> Option<Duration> {
    match kind {
        FaultKind::Delay(delay) => Some(*delay),
        _ => None,
    }
}
