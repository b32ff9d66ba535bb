//! What the client answers, from the script of the turn: interrupts of a run, and calls of client-side tools.

use hotseat_trace::{
    ErrorInfo, Failure, FailureKind, InterruptAnswered, Note, Origin, Payload, ToolCompleted, ToolFailed,
};
use serde_json::{Value, json};

use super::Session;
use super::fold::{OpenInterrupt, UnansweredCall};
use super::thread::Answered;
use crate::adapters::client_tools::{self, ClientCall};
use crate::adapters::{Limits, TurnError, not_offered, unanswered_interrupt};
use crate::session::{AskedInterrupt, InterruptReply, Recorder, ToolReply, TurnScript, response_mistakes};

/// What the next run answers.
#[derive(Debug, Default)]
pub(super) struct Answers {
    pub(super) resume: Vec<Value>,
    /// The answer on the channel of producers before 1.0, which goes into `forwardedProps.command.resume`.
    pub(super) command: Option<Value>,
}

impl Session {
    /// Answers the interrupts of a run from the script.
    pub(super) fn resume(
        &mut self,
        interrupts: &[OpenInterrupt],
        script: &mut TurnScript,
        recorder: &mut Recorder,
    ) -> Result<Answers, Failure> {
        let mut answers = Answers::default();
        for interrupt in interrupts {
            let asked = AskedInterrupt {
                reason: interrupt.reason.as_deref(),
                message: interrupt.message.as_deref(),
                tool: interrupt.tool.as_deref(),
            };
            let Some(reply) = script.interrupt_reply(&asked) else {
                return Err(unanswered_interrupt(&asked, &interrupt.value));
            };
            if let (InterruptReply::Resolved(_), Some(expired)) = (&reply, expired(interrupt)) {
                return Err(expired);
            }
            if let InterruptReply::Resolved(payload) = &reply {
                self.fits_schema(interrupt, payload, recorder)?;
            }
            recorder.as_of_now();
            let (status, payload) = match reply {
                InterruptReply::Resolved(payload) => ("resolved", Some(payload)),
                InterruptReply::Cancelled => ("cancelled", None),
            };
            recorder.emit(InterruptAnswered {
                turn_id: self.thread.turn.id.clone(),
                interrupt_id: interrupt.trace_id.clone(),
                status: status.into(),
                payload: payload.clone(),
            });
            match (&interrupt.id, payload) {
                (Some(id), Some(payload)) => {
                    answers.resume.push(json!({"interruptId": id, "status": status, "payload": payload}));
                }
                // The older channel has no way to refuse; producers of both kinds take it here.
                (_, None) => {
                    answers.resume.push(json!({"interruptId": interrupt.trace_id, "status": status}))
                }
                (None, Some(payload)) => {
                    if answers.command.replace(payload).is_some() {
                        let message = "the agent asked two questions at once on a channel that takes one answer (`on_interrupt`)";
                        return Err(Failure::new(FailureKind::TestError, message));
                    }
                }
            }
        }
        Ok(answers)
    }

    /// Whether an answer is one that the interrupt allows, where it says so.
    fn fits_schema(
        &self,
        interrupt: &OpenInterrupt,
        payload: &Value,
        recorder: &mut Recorder,
    ) -> Result<(), Failure> {
        let schema = interrupt.value.get("responseSchema").filter(|schema| !schema.is_null());
        let Some(schema) = schema else { return Ok(()) };
        match response_mistakes(schema, payload) {
            Ok(mistakes) if mistakes.is_empty() => Ok(()),
            Ok(mistakes) => {
                let message = "the answer to the interrupt (`resume`) does not fit its `responseSchema`";
                let detail = format!("{}\nanswer: {payload}\nresponseSchema: {schema}", mistakes.join("\n"));
                Err(Failure::new(FailureKind::TestError, message).with_detail(detail))
            }
            Err(words) => {
                let message = format!("the `responseSchema` of an interrupt is no JSON Schema: {words}");
                recorder.emit(Note { turn_id: self.thread.turn.id.clone(), message, event: None });
                Ok(())
            }
        }
    }

    /// Answers the calls of client-side tools from the script. Says whether there were any.
    pub(super) async fn answer(
        &mut self,
        unanswered: &[UnansweredCall],
        script: &mut TurnScript,
        limits: Limits<'_>,
        recorder: &mut Recorder,
    ) -> Result<bool, TurnError> {
        let mut answered = false;
        for call in unanswered {
            if !script.has_tool(&call.name) {
                if call.awaited {
                    not_offered(&call.name, script)?;
                }
                continue;
            }
            let asked = ClientCall { id: &call.id, name: &call.name, arguments: &call.arguments };
            recorder.as_of_now();
            let reply = client_tools::answer(asked, script, &self.http, limits).await?;
            answered = true;
            let message_id = uuid::Uuid::new_v4().to_string();
            let (turn_id, tool_call_id) = (self.thread.turn.id.clone(), call.trace_id.clone());
            let in_history = self.thread.id_in_history(&call.id);
            let event: Payload = match reply {
                ToolReply::Content(output) => {
                    let content = match &output {
                        Value::String(text) => text.clone(),
                        other => other.to_string(),
                    };
                    self.thread.put_result(&message_id, &in_history, Value::String(content), None);
                    ToolCompleted { turn_id, tool_call_id, output, origin: Origin::Client }.into()
                }
                ToolReply::Error(message) => {
                    let content = Value::String(message.clone());
                    self.thread.put_result(&message_id, &in_history, content, Some(&message));
                    let error = ErrorInfo { code: None, message, retriable: None };
                    ToolFailed { turn_id, tool_call_id, error, origin: Origin::Client }.into()
                }
            };
            if let Some(known) = self.thread.calls.get_mut(&call.id) {
                known.answered = Some(Answered::ByClient);
            }
            recorder.emit(event);
        }
        Ok(answered)
    }
}

/// The failure of answering an interrupt whose time is over.
fn expired(interrupt: &OpenInterrupt) -> Option<Failure> {
    let said = interrupt.expires_at.as_deref()?;
    let expires: jiff::Timestamp = said.parse().ok()?;
    let now = jiff::Timestamp::from_millisecond(crate::session::wall_millis()).ok()?;
    (expires < now).then(|| {
        let message = format!("the interrupt expired at {said}; only `status: cancelled` can answer it");
        Failure::new(FailureKind::TestError, message)
    })
}
