//! Extracts messages and tool calls from a response by JSONPath, and records them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hotseat_checks::BoundedPath;
use hotseat_document::excerpt;
use hotseat_trace::{AttemptFailure, ErrorInfo, FailureKind, Origin, TimeOffset, plain_text};
use serde_json::Value;

use crate::connection::TurnError;
use crate::connection::http::display_body;
use crate::connection::lines::check_value_count;
use crate::message::json_text::{read_json, read_piece};
use crate::message::{FinishReason, ToolReply, parse_content_output};
use crate::target::{
    CallArguments, TurnRecorder, error_event_data, parse_error, parse_error_event, protocol_error,
};

/// A JSONPath and its configuration key, for error messages.
#[derive(Debug, Clone)]
pub struct MappingPath {
    key: &'static str,
    text: String,
    path: BoundedPath,
    /// Path of the list of which the path selects all entries.
    list: Option<BoundedPath>,
    /// The path up to the first part that may select nothing in a right answer: entries of a list, or what a filter selects.
    container: Option<BoundedPath>,
}

/// Paths of the values in a response.
#[derive(Debug, Clone)]
pub struct ResponseMapping {
    /// The agent's reply.
    pub reply: MappingPath,
    /// Its tool calls.
    pub calls: Option<CallPaths>,
    /// Awaiting state of the agent.
    pub awaiting: Option<AwaitingRule>,
    /// Description of the awaited input.
    pub hint: Option<MappingPath>,
    /// Conversation id assigned by the server.
    pub conversation_id: Option<MappingPath>,
    /// Usage of the turn.
    pub usage: Option<MappingPath>,
    /// Finish reason.
    pub finish_reason: Option<MappingPath>,
    /// Error.
    pub error: Option<MappingPath>,
    /// Rule for the last event of a stream.
    pub done: Option<LastEventRule>,
}

/// Rule that detects the last event of a stream.
#[derive(Debug, Clone)]
pub struct LastEventRule {
    /// Path of the value.
    pub path: MappingPath,
    /// Expected value; without one, anything but null and false.
    pub equals: Option<Value>,
}

/// Paths of tool calls and of the values in each call.
#[derive(Debug, Clone)]
pub struct CallPaths {
    /// The calls, or a list of them.
    pub calls: MappingPath,
    /// Name of the tool.
    pub name: MappingPath,
    /// Its arguments.
    pub arguments: MappingPath,
    /// Its result.
    pub result: MappingPath,
    /// Its error.
    pub error: MappingPath,
    /// Id of the call.
    pub id: MappingPath,
}

/// Rule that detects if an agent awaits input.
#[derive(Debug, Clone)]
pub struct AwaitingRule {
    /// Path of the value.
    pub path: MappingPath,
    /// Expected value; without one, the value is a boolean.
    pub equals: Option<Value>,
}

/// Values read from a response.
#[derive(Default)]
pub(super) struct MappedResponse {
    pub(super) conversation_id: Option<Value>,
    pub(super) finish_reason: FinishReason,
    /// The message that is being received in pieces.
    open_message: Option<(String, TimeOffset)>,
    /// True if the response arrives as a whole.
    is_whole: bool,
    /// True if there was any text.
    has_text: bool,
    /// True if there was any tool call.
    has_calls: bool,
    /// The last call of each id of the agent.
    calls: HashMap<String, ReportedCall>,
    /// Number of lists of calls so far.
    call_lists: usize,
    awaiting: Option<bool>,
    hint: Option<String>,
}

/// A call that later events may continue, and later turns repeat.
#[derive(Debug)]
struct ReportedCall {
    /// Its id in the trace.
    id: Arc<str>,
    name: String,
    /// The arguments, once they are JSON.
    arguments: Option<Value>,
    is_answered: bool,
    /// Number of the last list that contains the call.
    list: usize,
}

/// Calls of earlier turns of a conversation, by the agent's ids, with the number of their turn.
#[derive(Debug, Default)]
pub(super) struct EarlierCalls(HashMap<String, (usize, ReportedCall)>);

impl EarlierCalls {
    /// Adds the calls of a turn. Fails if an earlier turn made one of them in the same way, unless its id is one that a
    /// server may use again: then it has a note.
    pub(super) fn add(
        &mut self,
        heard: &mut MappedResponse,
        turn: usize,
        telling: &mut TurnRecorder<'_>,
    ) -> Result<(), AttemptFailure> {
        let mut calls: Vec<(String, ReportedCall)> = heard.calls.drain().collect();
        calls.sort_by(|(one, _), (other, _)| one.cmp(other));
        let restarted = restarted_ids(calls.iter().map(|(id, _)| id.as_str()));
        let mut repeated = None;
        for (id, call) in calls {
            if let Some((earlier, known)) = self.0.get(&id)
                && known.name == call.name
                && known.arguments == call.arguments
            {
                let is_unique = id != call.name && !restarted.contains(&id);
                match &repeated {
                    Some((true, _)) => {}
                    Some((false, _)) if !is_unique => {}
                    _ => {
                        repeated = Some((is_unique, format!("call `{}` of turn {earlier}", excerpt(&id, 60))))
                    }
                }
            }
            self.0.insert(id, (turn, call));
        }
        match repeated {
            None => Ok(()),
            Some((true, call)) => Err(AttemptFailure::new(
                FailureKind::ProtocolError,
                format!("the answer repeats {call}: let `map.tool_calls` select only the calls of this turn"),
            )),
            Some((false, call)) => {
                telling.record_note(format!("a call equals {call}, also in its id; it counts as a new call"));
                Ok(())
            }
        }
    }
}

/// Returns the ids of a turn that come from a counter which begins again with every turn: the numbers behind one word, or
/// without one, begin with 0 or 1 and have no gaps.
fn restarted_ids<'i>(ids: impl Iterator<Item = &'i str>) -> HashSet<String> {
    let mut by_word: HashMap<&str, Vec<(u32, &str)>> = HashMap::new();
    for id in ids {
        let word = id.trim_end_matches(|character: char| character.is_ascii_digit());
        let digits = &id[word.len()..];
        // A number with zeros before it is of a fixed length, and more likely a random one.
        if let Ok(number) = digits.parse::<u32>()
            && digits == number.to_string()
        {
            by_word.entry(word).or_default().push((number, id));
        }
    }
    let has_restarted = |numbered: &Vec<(u32, &str)>| {
        let first = numbered[0].0;
        first <= 1 && (first..).zip(numbered).all(|(expected, (number, _))| *number == expected)
    };
    by_word.values_mut().for_each(|numbered| numbered.sort_unstable());
    let restarted = by_word.into_values().filter(has_restarted).flatten();
    restarted.map(|(_, id)| id.to_string()).collect()
}

impl MappedResponse {
    /// Records the message received in pieces.
    pub(super) fn end_message(&mut self, telling: &mut TurnRecorder<'_>) {
        if let Some((text, began)) = self.open_message.take() {
            telling.record_message(text, Some(began), None);
        }
    }

    /// Records whether the agent awaits input.
    fn end_awaiting(&mut self, telling: &mut TurnRecorder<'_>) {
        if let Some(awaiting) = self.awaiting {
            telling.record_awaiting(awaiting, self.hint.take());
        }
    }

    /// Records an error of the agent, which counts more than a value beside it that is invalid (`read`).
    fn fail(
        &mut self,
        error: ErrorInfo,
        read: Result<(), TurnError>,
        telling: &mut TurnRecorder<'_>,
    ) -> TurnError {
        self.end_message(telling);
        self.end_awaiting(telling);
        if let Err(TurnError::Failed(failure)) = read {
            telling.record_unread_beside_error(&failure);
        }
        telling.run_failed(&error);
        TurnError::Run(error)
    }
}

/// A text that is no JSONPath.
#[derive(Debug, thiserror::Error)]
#[error("`{text}` is not a JSONPath: {source}")]
pub struct MappingPathError {
    text: String,
    source: serde_json_path::ParseError,
}

impl MappingPath {
    /// Compiles a path written under `key`. Fails if it is not a JSONPath.
    pub fn compile(key: &'static str, text: &str) -> Result<MappingPath, MappingPathError> {
        match BoundedPath::parse(text) {
            Ok(path) => {
                let list = text.strip_suffix("[*]").filter(|list| selects_one(list));
                let list = list.and_then(|list| BoundedPath::parse(list).ok());
                let container = BoundedPath::parse(container_path(text)).ok();
                Ok(MappingPath { key, text: text.to_string(), path, list, container })
            }
            Err(source) => Err(MappingPathError { text: text.to_string(), source }),
        }
    }

    /// Returns all selected values. [`ResponseMapping::check_cost`] has found that they are not too many.
    fn all<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        self.path.query(value).unwrap_or_default()
    }

    /// True if the value lacks what the path selects from: the path may be wrong.
    fn misses_container(&self, value: &Value) -> bool {
        let selected = self.container.as_ref().map(|container| container.query(value));
        selected.is_some_and(|selected| selected.is_ok_and(|found| found.is_empty()))
    }

    /// Returns a text, a number or a boolean in place of the list whose entries the path selects.
    fn scalar_list<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        let lists = self.list.as_ref()?.query(value).ok()?;
        lists.into_iter().find(|list| matches!(list, Value::String(_) | Value::Number(_) | Value::Bool(_)))
    }

    /// Returns the selected values that are not null.
    fn values<'v>(&self, value: &'v Value) -> impl Iterator<Item = &'v Value> {
        self.all(value).into_iter().filter(|value| !value.is_null())
    }

    /// Returns the first selected value that is not null.
    fn first<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        self.values(value).next()
    }

    /// Returns the selected value, or a list if there are several: one of them must not look like all. Nulls are no values.
    fn whole(&self, value: &Value) -> Option<Value> {
        match self.values(value).collect::<Vec<_>>().as_slice() {
            [] => None,
            [value] => Some((*value).clone()),
            values => Some(values.iter().copied().cloned().collect()),
        }
    }

    /// Returns the first error among the selected values.
    fn error(&self, value: &Value) -> Option<ErrorInfo> {
        self.all(value).into_iter().find_map(parse_error)
    }

    fn describe(&self) -> String {
        format!("`{}` ({})", self.key, self.text)
    }

    /// Returns the failure of a path that selects a value of the wrong type.
    fn type_error(&self, found: &Value, needed: &str) -> TurnError {
        let found = match found {
            Value::Null => "null".to_string(),
            Value::Bool(truth) => truth.to_string(),
            Value::Number(number) => format!("the number {number}"),
            Value::String(text) => format!("the text {:?}", excerpt(text, 60)),
            Value::Array(_) => "a list".to_string(),
            Value::Object(_) => "an object".to_string(),
        };
        protocol_error(format!("{} selects {found}, expected {needed}", self.describe()))
    }
}

impl ResponseMapping {
    /// Records a whole response. `has_id` is true if the conversation already has an id.
    pub(super) fn read_response(
        &self,
        body: &str,
        has_id: bool,
        keep_raw: bool,
        heard: &mut MappedResponse,
        telling: &mut TurnRecorder<'_>,
    ) -> Result<(), TurnError> {
        check_value_count(body).map_err(|words| protocol_error(format!("the answer {words}")))?;
        let answer: Value = read_json(body)
            .map_err(|error| protocol_error(format!("the answer {error}: {}", excerpt(body, 200))))?;
        if keep_raw {
            telling.record_raw(answer.clone());
        }
        heard.is_whole = true;
        self.check_cost(&answer)?;
        self.read_value(&answer, &answer, heard, telling)?;
        if let Some(calls) = &self.calls
            && calls.calls.misses_container(&answer)
        {
            // A wrong path must not look like an agent that made no calls.
            let named = calls.calls.describe();
            telling.record_note(format!(
                "{named} selects nothing in the answer, so no tool calls were recorded"
            ));
        }
        self.read_finish_reason(&answer, heard);
        self.finish(heard, has_id, Some(body), telling)
    }

    /// Records the event number `number` of a stream; returns true if it is the last one.
    pub(super) fn read_event(
        &self,
        data: &str,
        number: u64,
        heard: &mut MappedResponse,
        telling: &mut TurnRecorder<'_>,
    ) -> Result<bool, TurnError> {
        check_value_count(data).map_err(|words| protocol_error(format!("event {number} {words}")))?;
        let wrong = |error| protocol_error(format!("event {number} {error}: {}", excerpt(data, 200)));
        let event: Value = read_json(data).map_err(wrong)?;
        // The next event may continue half of a surrogate pair in the reply.
        let pieces = data.contains(r"\u").then(|| read_piece(data)).transpose().map_err(wrong)?;
        self.check_cost(&event)?;
        self.read_value(&event, pieces.as_ref().unwrap_or(&event), heard, telling)?;
        self.read_finish_reason(&event, heard);
        let Some(LastEventRule { path, equals }) = &self.done else { return Ok(false) };
        Ok(path.values(&event).any(|found| match equals {
            Some(equals) => found == equals,
            None => tells_end(found),
        }))
    }

    /// Fails if a path costs too much for a value of the agent.
    fn check_cost(&self, value: &Value) -> Result<(), TurnError> {
        let ResponseMapping {
            reply,
            calls,
            awaiting,
            hint,
            conversation_id,
            usage,
            finish_reason,
            error,
            done,
        } = self;
        let optional = [hint, conversation_id, usage, finish_reason, error].into_iter().flatten();
        let ruled = awaiting.iter().map(|rule| &rule.path).chain(done.iter().map(|rule| &rule.path));
        let of_calls = calls.iter().flat_map(|paths| {
            let CallPaths { calls, name, arguments, result, error, id } = paths;
            [calls, name, arguments, result, error, id]
        });
        for path in std::iter::once(reply).chain(optional).chain(ruled).chain(of_calls) {
            let checked = path.path.check_cost(value);
            checked.map_err(|error| protocol_error(format!("{}: {error}", path.describe())))?;
        }
        Ok(())
    }

    /// Reads an event that is named as an error: `map.error` selects it, or its data is one or contains it as `error`.
    pub(super) fn read_error(
        &self,
        data: &str,
        heard: &mut MappedResponse,
        telling: &mut TurnRecorder<'_>,
    ) -> TurnError {
        let told = error_event_data(data);
        let mapped = self.error.as_ref().and_then(|path| path.error(&told));
        let error = mapped.or_else(|| parse_error(&told["error"]));
        let read = self.check_cost(&told).and_then(|()| {
            let read = self.read_members(&told, heard, telling);
            // The texts of data that is itself the error are not the agent's reply.
            if error.is_some() { read.and(self.read_texts(&told, heard, telling)) } else { read }
        });
        heard.fail(error.unwrap_or_else(|| parse_error_event(&told)), read, telling)
    }

    /// Reads everything except the finish reason. Fails with the error of the agent, if there is one, after the rest is recorded.
    fn read_value(
        &self,
        answer: &Value,
        texts: &Value,
        heard: &mut MappedResponse,
        telling: &mut TurnRecorder<'_>,
    ) -> Result<(), TurnError> {
        let members = self.read_members(answer, heard, telling);
        let read = members.and(self.read_texts(texts, heard, telling));
        match self.error.as_ref().and_then(|path| path.error(answer)) {
            Some(error) => Err(heard.fail(error, read, telling)),
            None => read,
        }
    }

    /// Reads everything except the reply text, the finish reason and the error. An invalid value does not hide the others.
    fn read_members(
        &self,
        answer: &Value,
        heard: &mut MappedResponse,
        telling: &mut TurnRecorder<'_>,
    ) -> Result<(), TurnError> {
        let calls = self.calls.as_ref().map_or(Ok(()), |calls| calls.read_calls(answer, heard, telling));
        // One sign is enough, in whichever event.
        let awaiting = self.read_awaiting(answer).map(|sign| heard.awaiting = sign.max(heard.awaiting));
        let hint = self.hint.as_ref().and_then(|path| path.first(answer)).map(plain_text);
        heard.hint = hint.or(heard.hint.take());
        let id = self
            .read_conversation_id(answer)
            .map(|id| heard.conversation_id = id.or(heard.conversation_id.take()));
        if let Some(usage) = self.read_usage(answer) {
            telling.add_usage(usage);
        }
        calls.and(awaiting).and(id)
    }

    /// Reads the finish reason, which follows the text of its event.
    fn read_finish_reason(&self, answer: &Value, heard: &mut MappedResponse) {
        let reason = self.finish_reason.as_ref().and_then(|path| path.whole(answer));
        heard.finish_reason.add(reason.map(|reason| plain_text(&reason).into()));
    }

    /// Records the remaining data and checks that nothing is missing. `whole` is the response, if it is not a
    /// stream.
    pub(super) fn finish(
        &self,
        heard: &mut MappedResponse,
        has_id: bool,
        whole: Option<&str>,
        telling: &mut TurnRecorder<'_>,
    ) -> Result<(), TurnError> {
        heard.end_message(telling);
        let place = if whole.is_some() { "the answer" } else { "any event" };
        let detail = whole.map(|body| display_body(body.as_bytes())).unwrap_or_default();
        let missing = |path: &MappingPath, more: &str| {
            let message = format!("{} selects nothing in {place}{more}", path.describe());
            TurnError::from(
                AttemptFailure::new(FailureKind::ProtocolError, message).with_detail(detail.clone()),
            )
        };
        if !heard.has_text && !heard.has_calls {
            return Err(missing(&self.reply, ""));
        }
        heard.end_awaiting(telling);
        match &self.conversation_id {
            Some(path) if !has_id && heard.conversation_id.is_none() => {
                Err(missing(path, " to the first message"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Records the texts of the reply.
    fn read_texts(
        &self,
        answer: &Value,
        heard: &mut MappedResponse,
        telling: &mut TurnRecorder<'_>,
    ) -> Result<(), TurnError> {
        let mut read = Ok(());
        for selected in self.reply.all(answer) {
            let text = match selected {
                Value::Null => continue,
                Value::String(text) => text.clone(),
                // A structured reply is kept as JSON text for checks that read JSON.
                Value::Object(_) | Value::Array(_) => selected.to_string(),
                Value::Bool(_) | Value::Number(_) => {
                    read = read.and(Err(self.reply.type_error(selected, "a text, an object or a list")));
                    continue;
                }
            };
            heard.has_text = true;
            if heard.is_whole {
                telling.record_message(text, None, None);
            } else {
                heard.finish_reason.follow_with(&text);
                heard.open_message.get_or_insert_with(|| (String::new(), telling.now())).0.push_str(&text);
            }
        }
        read
    }

    fn read_awaiting(&self, answer: &Value) -> Result<Option<bool>, TurnError> {
        let Some(AwaitingRule { path, equals }) = &self.awaiting else { return Ok(None) };
        let mut awaiting = None;
        for found in path.values(answer) {
            let is_sign = match (equals, found) {
                (Some(equals), found) => found == equals,
                (None, Value::Bool(awaiting)) => *awaiting,
                (None, other) => {
                    let needed = "true or false (or `awaiting: { path: …, equals: … }`)";
                    return Err(path.type_error(other, needed));
                }
            };
            awaiting = Some(is_sign || awaiting == Some(true));
        }
        Ok(awaiting)
    }

    /// Returns the selected usage: a list, if the path selects several values, since each is a part of it.
    fn read_usage(&self, answer: &Value) -> Option<Value> {
        let path = self.usage.as_ref()?;
        match path.all(answer).as_slice() {
            parts if parts.iter().all(|part| part.is_null()) => None,
            [usage] => Some((*usage).clone()),
            parts => Some(parts.iter().copied().cloned().collect()),
        }
    }

    fn read_conversation_id(&self, answer: &Value) -> Result<Option<Value>, TurnError> {
        let Some(path) = &self.conversation_id else { return Ok(None) };
        match path.first(answer) {
            // An empty text identifies no conversation.
            Some(Value::String(id)) if id.trim().is_empty() => Ok(None),
            Some(id @ (Value::String(_) | Value::Number(_))) => Ok(Some(id.clone())),
            Some(other) => Err(path.type_error(other, "a text or a number")),
            None => Ok(None),
        }
    }
}

impl ReportedCall {
    /// Returns true if data with the id of this call belongs to it: it has no other name, no contradicting
    /// arguments and no second result.
    fn continues_with(&self, name: Option<&str>, arguments: Option<&Value>, has_reply: bool) -> bool {
        let contradicts = match (&self.arguments, arguments) {
            // Arguments may grow while they are written.
            (Some(Value::Object(known)), Some(Value::Object(new))) => {
                known.iter().any(|(key, value)| new.get(key) != Some(value))
            }
            _ => false,
        };
        name.is_none_or(|name| name == self.name) && !contradicts && !(has_reply && self.is_answered)
    }

    /// Returns true if data with the id of this call has something that is not known of it.
    fn lacks(&self, arguments: Option<&Value>, has_reply: bool) -> bool {
        (has_reply && !self.is_answered) || (arguments.is_some() && self.arguments.is_none())
    }
}

impl CallPaths {
    /// Records the tool calls of a response or an event.
    fn read_calls(
        &self,
        answer: &Value,
        heard: &mut MappedResponse,
        telling: &mut TurnRecorder<'_>,
    ) -> Result<(), TurnError> {
        // A list in another form must not look like an agent that made no calls.
        if let Some(scalar) = self.calls.scalar_list(answer) {
            return Err(self.calls.type_error(scalar, "a list of calls"));
        }
        let calls = self.calls.all(answer).into_iter().flat_map(|selected| match selected {
            Value::Array(calls) => calls.as_slice(),
            // In place of the list. An entry of it that is null is no call.
            Value::Null if self.calls.list.is_none() => &[],
            call => std::slice::from_ref(call),
        });
        let calls: Vec<&Value> = calls.collect();
        heard.call_lists += 1;
        let origin = if heard.is_whole || calls.len() > 1 { Origin::Snapshot } else { Origin::Stream };
        let mut read = Ok(());
        for call in calls {
            heard.end_message(telling);
            read = read.and(self.read_call(call, origin, heard, telling));
            heard.has_calls = true;
        }
        read
    }

    fn read_call(
        &self,
        call: &Value,
        origin: Origin,
        heard: &mut MappedResponse,
        telling: &mut TurnRecorder<'_>,
    ) -> Result<(), TurnError> {
        if !call.is_object() {
            return Err(self.calls.type_error(call, "an object for each call"));
        }
        let own_id = self.id.first(call).map(plain_text).unwrap_or_default();
        let several = || format!("{} selects several values in a tool call", self.arguments.describe());
        let written = match self.arguments.values(call).collect::<Vec<_>>().as_slice() {
            [] => None,
            [value] => Some(CallArguments::from_json((*value).clone())),
            _ => Some(CallArguments::Unread(several())),
        };
        let json = match &written {
            Some(known @ (CallArguments::Missing | CallArguments::Json(_))) => Some(known.to_value()),
            Some(CallArguments::Invalid(_) | CallArguments::Unread(_)) | None => None,
        };
        let reply = match (self.error.error(call), self.result.whole(call)) {
            (Some(error), _) => Some(ToolReply::Error(error.message)),
            (None, Some(result)) => Some(ToolReply::Content(parse_content_output(&result))),
            (None, None) => None,
        };
        // An agent may report a call several times: its start and its result. Entries of one list that say the same are two calls.
        let list = heard.call_lists;
        let known = heard.calls.get_mut(&own_id);
        let known = known.filter(|known| {
            let name = self.name.first(call).and_then(Value::as_str);
            known.continues_with(name, json.as_ref(), reply.is_some())
                && (known.list != list || known.lacks(json.as_ref(), reply.is_some()))
        });
        let is_unknown = known.as_ref().is_none_or(|known| known.arguments.is_none());
        let arguments = written.or_else(|| if is_unknown { self.unread_arguments(call) } else { None });
        let id = match known {
            Some(known) => {
                known.arguments = json.or(known.arguments.take());
                known.is_answered |= reply.is_some();
                known.list = list;
                known.id.clone()
            }
            None => {
                let name = self.name(call)?;
                let origin = if reply.is_some() { Origin::Snapshot } else { origin };
                let id = telling.record_call(&own_id, name, origin, None);
                if !own_id.is_empty() {
                    let reported = ReportedCall {
                        id: id.clone(),
                        name: name.to_string(),
                        arguments: json,
                        is_answered: reply.is_some(),
                        list,
                    };
                    heard.calls.insert(own_id, reported);
                }
                id
            }
        };
        if let Some(arguments) = arguments {
            telling.record_arguments(&id, arguments);
        }
        if let Some(reply) = reply {
            telling.record_result(&id, reply, Origin::Stream);
        }
        Ok(())
    }

    /// Returns unknown arguments if their path selects nothing, but the call has members that no path reads: a wrong path must
    /// not look like a call without arguments.
    fn unread_arguments(&self, call: &Value) -> Option<CallArguments> {
        if !self.arguments.all(call).is_empty() {
            return None;
        }
        let paths = [&self.name, &self.id, &self.result, &self.error];
        let read = paths.iter().flat_map(|path| path.all(call)).map(std::ptr::from_ref).collect();
        let mut unread = Vec::new();
        collect_unread(call, &read, &mut unread);
        // It says what the object is.
        unread.retain(|name| *name != "type");
        let missing = CallArguments::missing(&self.arguments.describe(), &unread);
        (!unread.is_empty()).then_some(missing)
    }

    fn name<'v>(&self, call: &'v Value) -> Result<&'v str, TurnError> {
        match self.name.first(call) {
            Some(Value::String(name)) if !name.is_empty() => Ok(name),
            Some(other) => Err(self.name.type_error(other, "the name of a tool")),
            None => {
                let message = format!("{} selects nothing in a tool call", self.name.describe());
                let failure = AttemptFailure::new(FailureKind::ProtocolError, message);
                Err(failure.with_detail(display_body(call.to_string().as_bytes())).into())
            }
        }
    }
}

/// Adds the names of the members that are not read, and returns true if a part of the value is.
fn collect_unread<'v>(value: &'v Value, read: &HashSet<*const Value>, unread: &mut Vec<&'v str>) -> bool {
    if read.contains(&std::ptr::from_ref(value)) {
        return true;
    }
    let mut is_read = false;
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let before = unread.len();
                if collect_unread(member, read, unread) {
                    is_read = true;
                } else {
                    unread.truncate(before);
                    unread.push(name);
                }
            }
        }
        Value::Array(values) => {
            for value in values {
                is_read |= collect_unread(value, read, unread);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    is_read
}

/// Returns the path before the first wildcard, filter, slice or list of selectors.
fn container_path(path: &str) -> &str {
    match path.find(['*', '?', ':', ',']) {
        Some(several) => {
            path[..several].rfind(['[', '.']).map_or(path, |end| path[..end].trim_end_matches('.'))
        }
        None => path,
    }
}

/// Returns true if a path selects at most one value.
fn selects_one(path: &str) -> bool {
    !path.contains(['*', '?', ':', ',']) && !path.contains("..")
}

/// Returns true unless a value of `done` is empty: servers send such values with every event.
fn tells_end(found: &Value) -> bool {
    match found {
        Value::Null | Value::Bool(false) => false,
        Value::Bool(true) => true,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(entries) => !entries.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}
