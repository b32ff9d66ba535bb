//! Answers interrupts and calls of client-side tools by the script of the turn.

use std::sync::Arc;

use hotseat_schema::JsonSchemaError;
use hotseat_trace::{
    AttemptFailure, ErrorInfo, FailureKind, InterruptAnswered, Note, Origin, Payload, ToolCompleted,
    ToolFailed,
};
use serde_json::{Value, json};

use super::AgUiSession;
use super::fold::{OpenInterrupt, UnansweredCall};
use super::history::ResultMessage;
use super::known_call::ResultSource;
use super::thread::ResumeAnswers;
use crate::connection::{TurnError, TurnLimits};
use crate::message::{
    InterruptReply, InterruptRequest, ScriptedAnswers, ToolReply, response_schema_errors, unique_id,
};
use crate::recorder::TraceRecorder;
use crate::target::client_tools;
use crate::target::client_tools::ClientCall;
use crate::target::{check_unoffered_call, unanswered_interrupt};

impl AgUiSession {
    /// Answers the interrupts of a run by the script.
    pub(super) fn answer_interrupts(
        &mut self,
        interrupts: &[OpenInterrupt],
        script: &mut ScriptedAnswers,
        recorder: &mut TraceRecorder,
    ) -> Result<ResumeAnswers, AttemptFailure> {
        let mut answers = ResumeAnswers::default();
        for interrupt in interrupts {
            let asked = InterruptRequest {
                reason: interrupt.reason.as_deref(),
                message: interrupt.message.as_deref(),
                tool: interrupt.tool.as_deref(),
            };
            let Some(reply) = script.interrupt_reply(&asked) else {
                return Err(unanswered_interrupt(&asked, &interrupt.value));
            };
            if let (InterruptReply::Resolved(_), Some(expired)) = (&reply, expiry_failure(interrupt)) {
                return Err(expired);
            }
            if let InterruptReply::Resolved(payload) = &reply {
                self.check_response_schema(interrupt, payload, recorder)?;
            }
            recorder.clear_arrival();
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
                (Some(id), payload) => answers.resume.push(resume_entry(id, interrupt, status, payload)),
                // The older channel cannot cancel; producers with both channels accept it here.
                (None, None) => {
                    answers.resume.push(json!({"interruptId": interrupt.trace_id, "status": status}))
                }
                (None, Some(payload)) => {
                    if answers.command.replace(payload).is_some() {
                        let message = "the agent raised two interrupts at once on a channel that allows one answer (`on_interrupt`)";
                        return Err(AttemptFailure::new(FailureKind::TestError, message));
                    }
                }
            }
        }
        Ok(answers)
    }

    /// Checks an answer against the JSON Schema of the interrupt, if it has one.
    fn check_response_schema(
        &self,
        interrupt: &OpenInterrupt,
        payload: &Value,
        recorder: &mut TraceRecorder,
    ) -> Result<(), AttemptFailure> {
        let schema = interrupt.value.get("responseSchema").filter(|schema| !schema.is_null());
        let Some(schema) = schema else { return Ok(()) };
        match response_schema_errors(schema, payload) {
            Ok(mistakes) if mistakes.is_empty() => Ok(()),
            Ok(mistakes) => {
                let message = "the answer to the interrupt (`resume`) does not match its `responseSchema`";
                let detail = format!("{}\nanswer: {payload}\nresponseSchema: {schema}", mistakes.join("\n"));
                Err(AttemptFailure::new(FailureKind::TestError, message).with_detail(detail))
            }
            Err(missing @ JsonSchemaError::NoValidator) => {
                let message = format!("the agent asks with a `responseSchema`: {missing}");
                Err(AttemptFailure::new(FailureKind::TestError, message))
            }
            Err(
                error @ (JsonSchemaError::Invalid { .. }
                | JsonSchemaError::TooManySteps(_)
                | JsonSchemaError::UnsupportedPattern { .. }),
            ) => {
                let message = match error {
                    JsonSchemaError::Invalid { message, .. } => {
                        format!("the `responseSchema` of an interrupt is not a valid JSON Schema: {message}")
                    }
                    error => format!("the `responseSchema` of an interrupt is not applied: {error}"),
                };
                recorder.emit(Note { turn_id: self.thread.turn.id.clone(), message, event: None });
                Ok(())
            }
        }
    }

    /// Answers the calls of client-side tools by the script. Returns true if there were any.
    pub(super) async fn answer_calls(
        &mut self,
        unanswered: &[UnansweredCall],
        script: &mut ScriptedAnswers,
        limits: TurnLimits<'_>,
        recorder: &mut TraceRecorder,
    ) -> Result<bool, TurnError> {
        let mut answered = false;
        for call in unanswered {
            if !script.has_tool(&call.name) {
                if call.is_awaited {
                    check_unoffered_call(&call.name, script)?;
                }
                continue;
            }
            let asked = ClientCall { id: &call.id, name: &call.name, arguments: &call.arguments };
            recorder.clear_arrival();
            let reply = client_tools::answer_call(asked, script, &self.http, limits).await?;
            answered = true;
            let id: Arc<str> = unique_id().into();
            let (turn_id, tool_call_id) = (self.thread.turn.id.clone(), call.trace_id.clone());
            let call_id = self.thread.id_in_history(&call.id);
            let event: Payload = match reply {
                ToolReply::Content(output) => {
                    let content = match &output {
                        Value::String(text) => text.clone(),
                        other => other.to_string(),
                    };
                    let content = Value::String(content);
                    self.thread.history.insert_result(ResultMessage { id, call_id, content, error: None });
                    ToolCompleted { turn_id, tool_call_id, output, origin: Origin::Client }.into()
                }
                ToolReply::Error(message) => {
                    let content = Value::String(message.clone());
                    let error = Some(message.clone());
                    self.thread.history.insert_result(ResultMessage { id, call_id, content, error });
                    let error = ErrorInfo { code: None, message, retriable: None };
                    ToolFailed { turn_id, tool_call_id, error, origin: Origin::Client }.into()
                }
            };
            if let Some(known) = self.thread.calls.get_mut(&call.id) {
                known.result_source = Some(ResultSource::Client);
            }
            recorder.emit(event);
        }
        Ok(answered)
    }
}

/// Returns the entry of `resume` that answers an interrupt. Its metadata is sent back: AG2 recognises by a proof in it that the
/// answer is to its interrupt.
fn resume_entry(id: &str, interrupt: &OpenInterrupt, status: &str, payload: Option<Value>) -> Value {
    let mut entry = json!({"interruptId": id, "status": status});
    let metadata = interrupt.value.get("metadata").filter(|metadata| !metadata.is_null());
    for (key, value) in [("payload", payload), ("metadata", metadata.cloned())] {
        if let Some(value) = value {
            entry[key] = value;
        }
    }
    entry
}

/// Returns the failure of answering an expired interrupt.
fn expiry_failure(interrupt: &OpenInterrupt) -> Option<AttemptFailure> {
    let said = interrupt.expires_at.as_deref()?;
    let expires: jiff::Timestamp = said.parse().ok()?;
    let now = jiff::Timestamp::from_millisecond(crate::recorder::wall_millis()).ok()?;
    (expires < now).then(|| {
        let message =
            format!("the interrupt expired at {said}; it can only be answered with `status: cancelled`");
        AttemptFailure::new(FailureKind::TestError, message)
    })
}
