//! Selects the calls that get a fault, and changes their answers.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use hotseat_serve::{FaultCounters, GARBAGE};
use hotseat_trace::canonical_text;
use serde_json::{Value, json};

use super::outbound::AnswerDelivery;
use crate::event::McpEventKind;
use crate::fault::{FaultKind, FaultRule};
use crate::lock;

/// Maximum size of the answer of a fault.
const MAX_HUGE_BYTES: usize = 256 * 1024 * 1024;

/// State of the fault rules of one server in one conversation.
pub(super) struct FaultState {
    counters: FaultCounters,
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

impl SelectedFault {
    /// The event that reports it.
    pub(super) fn event(&self, call: u64) -> McpEventKind {
        McpEventKind::FaultInjected { call, rule: self.rule, fault: self.kind.clone() }
    }
}

impl FaultState {
    pub(super) fn new(rules: &[FaultRule]) -> FaultState {
        FaultState { counters: FaultCounters::new(rules.len()), previous: Mutex::default() }
    }

    /// Counts a call for all rules, and returns the fault of the first rule that selects it.
    pub(super) fn select(&self, rules: &[FaultRule], tool: &str, arguments: &Value) -> Option<SelectedFault> {
        let counted = rules.iter().enumerate().filter(|(_, rule)| {
            rule.is_about(tool)
                && rule.arguments.as_ref().is_none_or(|condition| condition.matches(arguments))
        });
        let is_possible =
            |rule: usize| rules[rule].kind != FaultKind::Stale || lock(&self.previous).contains_key(tool);
        let rule =
            self.counters.select(counted.map(|(index, rule)| (index, rule.trigger)), is_possible, || {
                format!("{tool}\0{}", canonical_text(arguments))
            })?;
        self.resume(rules, tool, rule)
    }

    /// Returns the fault of a rule that has selected a call.
    pub(super) fn resume(&self, rules: &[FaultRule], tool: &str, rule: usize) -> Option<SelectedFault> {
        let kind = rules.get(rule)?.kind.clone();
        let previous = match kind {
            FaultKind::Stale => lock(&self.previous).get(tool).cloned(),
            _ => None,
        };
        Some(SelectedFault { rule, kind, previous })
    }

    /// Stores the result of a call for rules that answer with it later.
    pub(super) fn remember(&self, rules: &[FaultRule], tool: &str, result: &Value) {
        if rules.iter().any(|rule| rule.kind == FaultKind::Stale && rule.is_about(tool)) {
            lock(&self.previous).insert(tool.to_string(), result.clone());
        }
    }
}

impl FaultRule {
    fn is_about(&self, tool: &str) -> bool {
        self.tool.as_deref().is_none_or(|name| name == tool)
    }
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
            // Clients validate `structuredContent`, which stays.
            result["content"] = json!([{"type": "text", "text": text}]);
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
