//! Interrupts of a run, on the current and the older channel.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hotseat_trace::{Custom, InterruptRaised};
use serde_json::Value;

use super::super::wire;
use super::error::{EventProblem, ProtocolViolation};
use super::run::{OpenInterrupt, RunFold};

impl RunFold<'_> {
    /// Processes a custom event. Before outcomes existed, a paused graph sent one, often with JSON in a
    /// string.
    pub(super) fn custom(&mut self, e: wire::CustomEvent) {
        if e.name == "on_interrupt" {
            let value = match &e.value {
                Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| e.value.clone()),
                other => other.clone(),
            };
            let said = |member: &str| {
                let text = value.get(member).and_then(Value::as_str).filter(|text| !text.is_empty());
                text.map(str::to_string)
            };
            let message = said("message").unwrap_or_else(|| match wire::text(Some(&value)) {
                text if text.is_empty() => value.to_string(),
                text => text,
            });
            self.legacy_interrupts.push(OpenInterrupt {
                id: None,
                trace_id: self.interrupt_id(self.legacy_interrupts.len()),
                reason: said("reason").or(Some("on_interrupt".to_string())),
                message: Some(message),
                call: None,
                tool: None,
                expires_at: None,
                value,
            });
        }
        self.emit(Custom { turn_id: self.turn_id(), name: e.name, value: e.value });
    }

    /// Returns the interrupts of an outcome. If a producer uses both channels, the newer one is used.
    pub(super) fn interrupts_of(
        &mut self,
        outcome: &wire::WireOutcome,
    ) -> Result<Vec<OpenInterrupt>, ProtocolViolation> {
        let legacy = std::mem::take(&mut self.legacy_interrupts);
        match outcome.r#type.as_str() {
            "success" => {}
            "cancelled" | "canceled" => self.note("the agent reports that the run was cancelled".to_string()),
            "interrupt" if outcome.interrupts.is_empty() && legacy.is_empty() => {
                return Err(self.at_event(EventProblem::NoInterrupts));
            }
            "interrupt" if outcome.interrupts.is_empty() => {}
            "interrupt" => {
                if outcome.interrupts.iter().any(|interrupt| interrupt.text("id").is_none()) {
                    self.note("an interrupt has no `id`, so the answer cannot name it; it is sent in `forwardedProps.command.resume`".to_string());
                }
                let asked = outcome.interrupts.iter().enumerate();
                return Ok(asked.map(|(number, interrupt)| self.open_interrupt(number, interrupt)).collect());
            }
            other => self.note(format!("unknown run outcome {other}; read as success")),
        }
        Ok(legacy)
    }

    fn open_interrupt(&self, number: usize, interrupt: &wire::WireInterrupt) -> OpenInterrupt {
        let id: Option<Arc<str>> = interrupt.text("id").map(Arc::from);
        let call = interrupt.text("toolCallId").map(|id| self.thread.known_id(id.into()));
        OpenInterrupt {
            trace_id: id.clone().unwrap_or_else(|| self.interrupt_id(number)),
            id,
            reason: interrupt.text("reason").map(str::to_string),
            message: interrupt.text("message").map(str::to_string),
            tool: call.as_ref().and_then(|id| self.thread.calls.get(id)).map(|call| call.name.clone()),
            call,
            expires_at: interrupt.text("expiresAt").map(str::to_string),
            value: Value::Object(interrupt.0.clone()),
        }
    }

    /// Returns an id, unique in the trace, for an interrupt without one.
    fn interrupt_id(&self, number: usize) -> Arc<str> {
        Arc::from(format!("interrupt-{}-{}", self.request.number, self.interrupts.len() + number + 1))
    }

    /// Records that the agent awaits answers to these interrupts.
    pub(super) fn raise(&mut self, asked: Vec<OpenInterrupt>) {
        // A later run of the same stream may repeat an interrupt; it is answered once.
        let again: HashSet<Arc<str>> = asked.iter().filter_map(|interrupt| interrupt.id.clone()).collect();
        self.interrupts.retain(|known| known.id.as_ref().is_none_or(|id| !again.contains(id)));
        let mut last: HashMap<Arc<str>, usize> = HashMap::new();
        for interrupt in asked {
            self.emit(InterruptRaised {
                turn_id: self.turn_id(),
                interrupt_id: interrupt.trace_id.clone(),
                reason: interrupt.reason.clone(),
                message: interrupt.message.clone(),
                tool_call_id: interrupt.call.as_ref().map(|id| {
                    let known = self.thread.calls.get(id);
                    known.map_or_else(|| id.clone(), |call| call.trace_id.clone())
                }),
                server: None,
                value: interrupt.value.clone(),
            });
            let known = interrupt.id.clone().and_then(|id| last.insert(id, self.interrupts.len()));
            match known {
                // Repeated in one outcome: the first position is kept.
                Some(place) => {
                    last.extend(interrupt.id.clone().map(|id| (id, place)));
                    self.interrupts[place] = interrupt;
                }
                None => self.interrupts.push(interrupt),
            }
        }
    }
}
