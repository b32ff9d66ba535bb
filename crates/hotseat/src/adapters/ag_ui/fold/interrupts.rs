//! Questions of a paused run, on both channels on which agents ask.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hotseat_trace::{Custom, InterruptRaised};
use serde_json::Value;

use super::super::wire;
use super::{Run, Sink};

/// A question of a paused run.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenInterrupt {
    /// Its id on the wire; none for the channel that producers before 1.0 use.
    pub id: Option<Arc<str>>,
    /// Its id in the trace.
    pub trace_id: Arc<str>,
    /// Why, as a short name.
    pub reason: Option<String>,
    /// What a person is asked.
    pub message: Option<String>,
    /// The call it holds up: the id by which it is known, where it is known.
    pub call: Option<Arc<str>>,
    /// The tool of that call.
    pub tool: Option<Arc<str>>,
    /// When it stops accepting answers, as the agent wrote it.
    pub expires_at: Option<String>,
    /// Everything the agent said of it.
    pub value: Value,
}

impl Run<'_> {
    /// A custom event. Before outcomes existed, a paused graph said so in one, its value often JSON in a string.
    pub(super) fn custom(&mut self, e: wire::CustomEvent, out: Sink<'_>) {
        if e.name == "on_interrupt" {
            let value = match &e.value {
                Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| e.value.clone()),
                other => other.clone(),
            };
            let said = |member: &str| value.get(member).and_then(Value::as_str).map(str::to_string);
            self.legacy_interrupts.push(OpenInterrupt {
                id: None,
                trace_id: self.name_of_interrupt(self.legacy_interrupts.len()),
                reason: said("reason").or(Some("on_interrupt".to_string())),
                message: said("message").or_else(|| Some(wire::text(Some(&value)))),
                call: None,
                tool: None,
                expires_at: None,
                value,
            });
        }
        out(Custom { turn_id: self.turn_id(), name: e.name, value: e.value }.into());
    }

    /// What an outcome asks. A producer that speaks both ways asks the same question twice; the newer way decides.
    pub(super) fn asked_in(
        &mut self,
        outcome: &wire::Outcome,
        out: Sink<'_>,
    ) -> Result<Vec<OpenInterrupt>, String> {
        let legacy = std::mem::take(&mut self.legacy_interrupts);
        match outcome.r#type.as_str() {
            "success" => {}
            "cancelled" => self.note(out, "the agent says that the run was cancelled".to_string()),
            "interrupt" if outcome.interrupts.is_empty() && legacy.is_empty() => {
                return Err(
                    self.at_event("RUN_FINISHED says that the agent waits for an answer, but not to what")
                );
            }
            "interrupt" if outcome.interrupts.is_empty() => {}
            "interrupt" => {
                let asked = outcome.interrupts.iter().enumerate();
                return Ok(asked.map(|(number, interrupt)| self.interrupt(number, interrupt)).collect());
            }
            other => self.note(out, format!("unknown run outcome {other}; read as success")),
        }
        Ok(legacy)
    }

    fn interrupt(&self, number: usize, interrupt: &wire::Interrupt) -> OpenInterrupt {
        let id: Option<Arc<str>> = interrupt.text("id").map(Arc::from);
        let call = interrupt.text("toolCallId").map(|id| self.thread.known_id(id.into()));
        OpenInterrupt {
            trace_id: id.clone().unwrap_or_else(|| self.name_of_interrupt(number)),
            id,
            reason: interrupt.text("reason").map(str::to_string),
            message: interrupt.text("message").map(str::to_string),
            tool: call.as_ref().and_then(|id| self.thread.calls.get(id)).map(|call| call.name.clone()),
            call,
            expires_at: interrupt.text("expiresAt").map(str::to_string),
            value: Value::Object(interrupt.0.clone()),
        }
    }

    /// An id for an interrupt that has none, unique in the trace.
    fn name_of_interrupt(&self, number: usize) -> Arc<str> {
        Arc::from(format!("interrupt-{}-{}", self.asked.request, self.interrupts.len() + number + 1))
    }

    /// The agent waits for answers to these.
    pub(super) fn raise(&mut self, asked: Vec<OpenInterrupt>, out: Sink<'_>) {
        // A later run of the same stream may ask again; one answer is enough.
        let again: HashSet<Arc<str>> = asked.iter().filter_map(|interrupt| interrupt.id.clone()).collect();
        self.interrupts.retain(|known| known.id.as_ref().is_none_or(|id| !again.contains(id)));
        let mut last: HashMap<Arc<str>, usize> = HashMap::new();
        for interrupt in asked {
            out(InterruptRaised {
                turn_id: self.turn_id(),
                interrupt_id: interrupt.trace_id.clone(),
                reason: interrupt.reason.clone(),
                message: interrupt.message.clone(),
                tool_call_id: interrupt.call.as_ref().map(|id| {
                    let known = self.thread.calls.get(id);
                    known.map_or_else(|| id.clone(), |call| call.trace_id.clone())
                }),
                value: interrupt.value.clone(),
            }
            .into());
            let known = interrupt.id.clone().and_then(|id| last.insert(id, self.interrupts.len()));
            match known {
                // The same one twice in one answer: the first place keeps it.
                Some(place) => {
                    last.extend(interrupt.id.clone().map(|id| (id, place)));
                    self.interrupts[place] = interrupt;
                }
                None => self.interrupts.push(interrupt),
            }
        }
    }
}
