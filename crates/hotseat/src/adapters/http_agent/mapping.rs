//! Where things stand in an answer, and what is recorded of it.

use std::collections::HashMap;
use std::sync::Arc;

use hotseat_trace::{ErrorInfo, Failure, FailureKind, Offset, Origin};
use serde_json::Value;
use serde_json_path::JsonPath;

use crate::adapters::http::shown_body;
use crate::adapters::json_text::readable;
use crate::adapters::lines::check_values;
use crate::adapters::telling::{Arguments, Telling};
use crate::adapters::{TurnError, excerpt};
use crate::session::{ToolReply, output_of_content};

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
    /// Which event of a stream is its last one.
    pub done: Option<Done>,
}

/// Which event of a stream is its last one.
#[derive(Debug, Clone)]
pub struct Done {
    /// Selects a value.
    pub path: Path,
    /// What it is equal to in the last event; without one it is anything but null and false.
    pub equals: Option<Value>,
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

/// What was heard of an answer, and is not in the trace yet or not for the trace alone.
#[derive(Default)]
pub(super) struct Heard {
    pub(super) conversation_id: Option<String>,
    pub(super) usage: Option<Value>,
    pub(super) finish_reason: Option<Arc<str>>,
    /// The message whose pieces are coming in.
    arriving: Option<(String, Offset)>,
    /// Whether anything was said.
    said: bool,
    /// Whether a tool was called.
    called: bool,
    /// The calls so far, by the ids that the agent gives them.
    calls: HashMap<String, Arc<str>>,
    awaiting: Option<bool>,
    hint: Option<String>,
}

impl Heard {
    /// Records the message whose pieces have come in.
    pub(super) fn end_message(&mut self, telling: &mut Telling<'_>) {
        if let Some((text, began)) = self.arriving.take() {
            telling.message(text, Some(began), None);
        }
    }
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
    ) -> Result<Heard, TurnError> {
        check_values(body).map_err(|words| protocol_error(format!("the answer {words}")))?;
        let answer: Value = serde_json::from_str(&readable(body)).map_err(|error| {
            protocol_error(format!("the answer is not JSON ({error}): {}", excerpt(body, 200)))
        })?;
        if keep_raw {
            telling.raw(answer.clone());
        }
        let mut heard = Heard::default();
        self.look_at(&answer, &mut heard, telling)?;
        if let Some(calls) = &self.calls
            && calls.calls.all(&answer).is_empty()
            && is_single(&calls.calls.text)
        {
            // Where calls are missing because the path is wrong, nobody should think that none were made.
            let named = calls.calls.named();
            telling.note(format!("{named} selects nothing in the answer: no tool calls were seen"));
        }
        for text in self.texts(&answer)? {
            heard.said = true;
            telling.message(text, None, None);
        }
        self.end(&mut heard, has_id, Some(body), telling)?;
        Ok(heard)
    }

    /// Records what the `number`th event of a stream says; says whether it is the last one.
    pub(super) fn read_event(
        &self,
        data: &str,
        number: u64,
        heard: &mut Heard,
        telling: &mut Telling<'_>,
    ) -> Result<bool, TurnError> {
        check_values(data).map_err(|words| protocol_error(format!("event {number} {words}")))?;
        let event: Value = serde_json::from_str(&readable(data)).map_err(|error| {
            protocol_error(format!("event {number} is not JSON ({error}): {}", excerpt(data, 200)))
        })?;
        self.look_at(&event, heard, telling)?;
        for piece in self.texts(&event)? {
            heard.said = true;
            heard.arriving.get_or_insert_with(|| (String::new(), telling.now())).0.push_str(&piece);
        }
        let Some(Done { path, equals }) = &self.done else { return Ok(false) };
        Ok(match (path.first(&event), equals) {
            (Some(found), Some(equals)) => found == equals,
            (Some(found), None) => *found != Value::Bool(false),
            (None, _) => false,
        })
    }

    /// Everything but what the agent says, which comes whole or in pieces.
    fn look_at(&self, answer: &Value, heard: &mut Heard, telling: &mut Telling<'_>) -> Result<(), TurnError> {
        if let Some(error) = self.error.as_ref().and_then(|path| path.first(answer)).and_then(error_info) {
            heard.end_message(telling);
            telling.run_failed(&error);
            return Err(TurnError::Run(error));
        }
        if let Some(calls) = &self.calls {
            calls.read(answer, heard, telling)?;
        }
        let first = |path: &Option<Path>| path.as_ref().and_then(|path| path.first(answer)).cloned();
        heard.awaiting = self.awaits(answer)?.or(heard.awaiting);
        heard.hint = first(&self.hint).map(|hint| plain_text(&hint)).or(heard.hint.take());
        heard.conversation_id = self.id(answer)?.or(heard.conversation_id.take());
        heard.usage = first(&self.usage).or(heard.usage.take());
        let reason = first(&self.finish_reason).map(|reason| plain_text(&reason).into());
        heard.finish_reason = reason.or(heard.finish_reason.take());
        Ok(())
    }

    /// Records what is left, and says what is missing. `whole` is the answer, where it did not come in pieces.
    pub(super) fn end(
        &self,
        heard: &mut Heard,
        has_id: bool,
        whole: Option<&str>,
        telling: &mut Telling<'_>,
    ) -> Result<(), TurnError> {
        heard.end_message(telling);
        let place = if whole.is_some() { "the answer" } else { "any event" };
        let detail = whole.map(|body| shown_body(body.as_bytes())).unwrap_or_default();
        let missing = |path: &Path, more: &str| {
            let message = format!("{} selects nothing in {place}{more}", path.named());
            TurnError::from(Failure::new(FailureKind::ProtocolError, message).with_detail(detail.clone()))
        };
        if !heard.said && !heard.called {
            return Err(missing(&self.reply, ""));
        }
        if let Some(awaiting) = heard.awaiting {
            telling.awaiting(awaiting, heard.hint.take());
        }
        match &self.conversation_id {
            Some(path) if !has_id && heard.conversation_id.is_none() => {
                Err(missing(path, " to the first message"))
            }
            Some(_) | None => Ok(()),
        }
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

    fn id(&self, answer: &Value) -> Result<Option<String>, TurnError> {
        let Some(path) = &self.conversation_id else { return Ok(None) };
        match path.first(answer) {
            Some(Value::String(id)) => Ok(Some(id.clone())),
            Some(Value::Number(id)) => Ok(Some(id.to_string())),
            Some(other) => Err(path.misfit(other, "a text or a number")),
            None => Ok(None),
        }
    }
}

impl CallPaths {
    /// Records the tool calls of an answer, or of an event.
    fn read(&self, answer: &Value, heard: &mut Heard, telling: &mut Telling<'_>) -> Result<(), TurnError> {
        for selected in self.calls.all(answer) {
            let calls = match selected {
                Value::Array(calls) => calls.as_slice(),
                Value::Null => &[],
                call => std::slice::from_ref(call),
            };
            for call in calls {
                heard.end_message(telling);
                self.call(call, heard, telling)?;
                heard.called = true;
            }
        }
        Ok(())
    }

    fn call(&self, call: &Value, heard: &mut Heard, telling: &mut Telling<'_>) -> Result<(), TurnError> {
        if !call.is_object() {
            return Err(self.calls.misfit(call, "an object for each call"));
        }
        let own_id = self.id.first(call).map(plain_text).unwrap_or_default();
        // A stream may tell of a call more than once: that it began, and what came of it.
        let id = match heard.calls.get(&own_id) {
            Some(known) => known.clone(),
            None => {
                let id = telling.call(&own_id, self.name(call)?, None);
                if !own_id.is_empty() {
                    heard.calls.insert(own_id, id.clone());
                }
                id
            }
        };
        if let Some(arguments) = self.arguments.first(call) {
            telling.arguments(&id, Arguments::of_json(arguments.clone()));
        }
        let reply = match (self.error.first(call).and_then(error_info), self.result.first(call)) {
            (Some(error), _) => Some(ToolReply::Error(error.message)),
            (None, Some(result)) => Some(ToolReply::Content(output_of_content(result))),
            (None, None) => None,
        };
        if let Some(reply) = reply {
            telling.result(&id, reply, Origin::Stream);
        }
        Ok(())
    }

    fn name<'v>(&self, call: &'v Value) -> Result<&'v str, TurnError> {
        match self.name.first(call) {
            Some(Value::String(name)) if !name.is_empty() => Ok(name),
            Some(other) => Err(self.name.misfit(other, "the name of a tool")),
            None => {
                let message = format!("{} selects nothing in a tool call", self.name.named());
                let failure = Failure::new(FailureKind::ProtocolError, message);
                Err(failure.with_detail(shown_body(call.to_string().as_bytes())).into())
            }
        }
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
