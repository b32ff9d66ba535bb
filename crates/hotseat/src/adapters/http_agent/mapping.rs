//! Where things stand in an answer, and what is recorded of it.

use std::sync::Arc;

use hotseat_trace::{ErrorInfo, Failure, FailureKind, Origin};
use serde_json::Value;
use serde_json_path::JsonPath;

use crate::adapters::http::shown_body;
use crate::adapters::telling::{Arguments, Telling, output_of_text};
use crate::adapters::{TurnError, excerpt};
use crate::session::ToolReply;

/// A JSONPath and where it was written, for messages.
#[derive(Debug, Clone)]
pub struct Path {
    key: &'static str,
    text: String,
    path: JsonPath,
}

/// Where things stand in an answer.
#[derive(Debug, Clone)]
pub struct Mapping {
    /// What the agent says.
    pub reply: Path,
    /// Its tool calls.
    pub calls: Option<CallPaths>,
    /// Whether it waits for an input.
    pub awaiting: Option<Awaits>,
    /// What it waits for.
    pub hint: Option<Path>,
    /// The id that the server gives the conversation.
    pub conversation_id: Option<Path>,
    /// What the turn cost.
    pub usage: Option<Path>,
    /// Why the reply ends where it does.
    pub finish_reason: Option<Path>,
    /// An error.
    pub error: Option<Path>,
}

/// Where tool calls stand, and what stands where in each.
#[derive(Debug, Clone)]
pub struct CallPaths {
    /// Selects the calls, or their list.
    pub calls: Path,
    /// Name of the tool.
    pub name: Path,
    /// Its arguments.
    pub arguments: Path,
    /// What it returned.
    pub result: Path,
    /// Why it failed.
    pub error: Path,
    /// Id of the call.
    pub id: Path,
}

/// When an agent waits for an input.
#[derive(Debug, Clone)]
pub struct Awaits {
    /// Selects a value.
    pub path: Path,
    /// What it is equal to when the agent waits; without one it is `true` or `false`.
    pub equals: Option<Value>,
}

/// What of an answer is not for the trace alone.
pub(super) struct Read {
    pub(super) conversation_id: Option<String>,
    pub(super) usage: Option<Value>,
    pub(super) finish_reason: Option<Arc<str>>,
}

impl Path {
    /// Compiles a path that was written under `key`.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn compile(key: &'static str, text: &str) -> Result<Path, String> {
        match JsonPath::parse(text) {
            Ok(path) => Ok(Path { key, text: text.to_string(), path }),
            Err(error) => Err(format!("`{text}` is not a JSONPath: {error}")),
        }
    }

    /// What it selects.
    fn all<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        self.path.query(value).all()
    }

    /// The first thing it selects; what is null is not there.
    fn first<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        self.all(value).into_iter().find(|value| !value.is_null())
    }

    fn named(&self) -> String {
        format!("`{}` ({})", self.key, self.text)
    }

    /// The failure of a path that selects what it must not.
    fn misfit(&self, found: &Value, needed: &str) -> TurnError {
        let found = match found {
            Value::Null => "null".to_string(),
            Value::Bool(truth) => truth.to_string(),
            Value::Number(number) => format!("the number {number}"),
            Value::String(text) => format!("the text {:?}", excerpt(text, 60)),
            Value::Array(_) => "a list".to_string(),
            Value::Object(_) => "an object".to_string(),
        };
        protocol_error(format!("{} selects {found}; {needed} is needed", self.named()))
    }
}

impl Mapping {
    /// Records what an answer says. `has_id` says whether the conversation has an id already.
    pub(super) fn read(
        &self,
        body: &str,
        has_id: bool,
        keep_raw: bool,
        telling: &mut Telling<'_>,
    ) -> Result<Read, TurnError> {
        let answer: Value = serde_json::from_str(body).map_err(|error| {
            protocol_error(format!("the answer is not JSON ({error}): {}", excerpt(body, 200)))
        })?;
        if keep_raw {
            telling.raw(answer.clone());
        }
        if let Some(error) = self.error.as_ref().and_then(|path| path.first(&answer)).and_then(error_info) {
            telling.run_failed(&error);
            return Err(TurnError::Run(error));
        }
        let called = match &self.calls {
            Some(calls) => calls.read(&answer, telling)?,
            None => false,
        };
        let texts = self.texts(&answer)?;
        if texts.is_empty() && !called {
            let message = format!("{} selects nothing in the answer", self.reply.named());
            let failure = Failure::new(FailureKind::ProtocolError, message);
            return Err(failure.with_detail(shown_body(body.as_bytes())).into());
        }
        for text in texts {
            telling.message(text, None, called);
        }
        if let Some(awaiting) = self.awaits(&answer)? {
            let hint = self.hint.as_ref().and_then(|path| path.first(&answer)).map(plain_text);
            telling.awaiting(awaiting, hint);
        }
        Ok(Read {
            conversation_id: self.id(&answer, body, has_id)?,
            usage: self.usage.as_ref().and_then(|path| path.first(&answer)).cloned(),
            finish_reason: self
                .finish_reason
                .as_ref()
                .and_then(|path| path.first(&answer))
                .map(|reason| plain_text(reason).into()),
        })
    }

    /// What the agent says, message by message.
    fn texts(&self, answer: &Value) -> Result<Vec<String>, TurnError> {
        let mut texts = Vec::new();
        for selected in self.reply.all(answer) {
            match selected {
                Value::Null => {}
                Value::String(text) => texts.push(text.clone()),
                // A structured answer is looked into by checks that know JSON.
                Value::Object(_) | Value::Array(_) => texts.push(selected.to_string()),
                Value::Bool(_) | Value::Number(_) => {
                    return Err(self.reply.misfit(selected, "a text, an object or a list"));
                }
            }
        }
        Ok(texts)
    }

    fn awaits(&self, answer: &Value) -> Result<Option<bool>, TurnError> {
        let Some(Awaits { path, equals }) = &self.awaiting else { return Ok(None) };
        let found = path.first(answer);
        match (equals, found) {
            (Some(equals), found) => Ok(found.map(|found| found == equals)),
            (None, None) => Ok(None),
            (None, Some(Value::Bool(awaiting))) => Ok(Some(*awaiting)),
            (None, Some(other)) => {
                Err(path.misfit(other, "true or false (or `awaiting: { path: …, equals: … }`)"))
            }
        }
    }

    fn id(&self, answer: &Value, body: &str, has_id: bool) -> Result<Option<String>, TurnError> {
        let Some(path) = &self.conversation_id else { return Ok(None) };
        match path.first(answer) {
            Some(Value::String(id)) => Ok(Some(id.clone())),
            Some(Value::Number(id)) => Ok(Some(id.to_string())),
            Some(other) => Err(path.misfit(other, "a text or a number")),
            None if has_id => Ok(None),
            None => {
                let message = format!("{} selects nothing in the answer to the first message", path.named());
                let failure = Failure::new(FailureKind::ProtocolError, message);
                Err(failure.with_detail(shown_body(body.as_bytes())).into())
            }
        }
    }
}

impl CallPaths {
    /// Records the tool calls of an answer; says whether there were any.
    fn read(&self, answer: &Value, telling: &mut Telling<'_>) -> Result<bool, TurnError> {
        let selected = self.calls.all(answer);
        if selected.is_empty() && is_single(&self.calls.text) {
            // Where calls are missing because the path is wrong, nobody should think that none were made.
            telling.note(format!(
                "{} selects nothing in the answer: no tool calls were seen",
                self.calls.named()
            ));
        }
        let mut called = false;
        for selected in selected {
            let calls = match selected {
                Value::Array(calls) => calls.as_slice(),
                Value::Null => &[],
                call => std::slice::from_ref(call),
            };
            for call in calls {
                self.call(call, telling)?;
                called = true;
            }
        }
        Ok(called)
    }

    fn call(&self, call: &Value, telling: &mut Telling<'_>) -> Result<(), TurnError> {
        if !call.is_object() {
            return Err(self.calls.misfit(call, "an object for each call"));
        }
        let name = match self.name.first(call) {
            Some(Value::String(name)) if !name.is_empty() => name,
            Some(other) => return Err(self.name.misfit(other, "the name of a tool")),
            None => {
                let message = format!("{} selects nothing in a tool call", self.name.named());
                let failure = Failure::new(FailureKind::ProtocolError, message);
                return Err(failure.with_detail(shown_body(call.to_string().as_bytes())).into());
            }
        };
        let id = self.id.first(call).map(plain_text).unwrap_or_default();
        let id = telling.call(&id, name, None);
        telling
            .arguments(&id, Arguments::of_json(self.arguments.first(call).cloned().unwrap_or(Value::Null)));
        let reply = match (self.error.first(call).and_then(error_info), self.result.first(call)) {
            (Some(error), _) => Some(ToolReply::Error(error.message)),
            (None, Some(Value::String(text))) => Some(ToolReply::Content(output_of_text(text.clone()))),
            (None, Some(result)) => Some(ToolReply::Content(result.clone())),
            (None, None) => None,
        };
        if let Some(reply) = reply {
            telling.result(&id, reply, Origin::Stream);
        }
        Ok(())
    }
}

/// Whether a path can select no more than one thing.
fn is_single(path: &str) -> bool {
    !path.contains(['*', '?', ':', ',']) && !path.contains("..")
}

fn plain_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// An error as people word it; what is null, false or empty is none.
fn error_info(error: &Value) -> Option<ErrorInfo> {
    let message = match error {
        Value::Null | Value::Bool(false) => return None,
        Value::String(text) if text.is_empty() => return None,
        Value::Object(members) if members.is_empty() => return None,
        Value::Object(members) => {
            members.get("message").and_then(Value::as_str).map_or_else(|| error.to_string(), str::to_string)
        }
        other => plain_text(other),
    };
    let code = error.get("code").filter(|code| !code.is_null()).map(plain_text);
    Some(ErrorInfo { code, message, retriable: None })
}

fn protocol_error(message: String) -> TurnError {
    Failure::new(FailureKind::ProtocolError, message).into()
}
