//! Reads a reply, streamed or whole.
//!
//! Servers differ in how they number the pieces of tool calls. A piece belongs to the call of its index, unless it
//! brings another id; without an index to the call of its id; without either it begins a call if it has a name, and
//! continues the last one if not.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hotseat_trace::{ErrorInfo, Failure, FailureKind, Offset, Origin};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::adapters::json_text::readable;
use crate::adapters::lines::check_values;
use crate::adapters::telling::{Arguments, Telling};
use crate::adapters::{TurnError, excerpt};
use crate::session::{ToolReply, output_of_content};

/// A chunk of a stream, or a whole completion.
#[derive(Debug, Deserialize)]
struct Chunk {
    choices: Option<Vec<Choice>>,
    usage: Option<Value>,
    error: Option<Value>,
    awaiting_input: Option<bool>,
    input_hint: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Choice {
    index: Option<u64>,
    delta: Option<WireMessage>,
    message: Option<WireMessage>,
    finish_reason: Option<String>,
}

#[derive(Debug, Deserialize)]
struct WireMessage {
    role: Option<String>,
    tool_call_id: Option<String>,
    content: Option<Value>,
    refusal: Option<String>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    tool_calls: Option<Vec<WireCall>>,
    /// The form before tool calls.
    function_call: Option<Value>,
    awaiting_input: Option<bool>,
    input_hint: Option<String>,
}

#[derive(Debug, Deserialize)]
struct WireCall {
    index: Option<u64>,
    id: Option<String>,
    function: Option<Function>,
}

#[derive(Debug, Deserialize)]
struct Function {
    name: Option<String>,
    /// Text; some servers send the object itself.
    arguments: Option<Value>,
}

/// A reply that was read to its end.
pub(super) struct Reply {
    pub(super) text: String,
    pub(super) calls: Vec<Call>,
    pub(super) usage: Option<Value>,
    pub(super) finish_reason: Option<Arc<str>>,
}

/// A tool call of a reply.
pub(super) struct Call {
    /// Its id, as results refer to it.
    pub(super) id: String,
    /// Its id in the trace.
    pub(super) trace_id: Arc<str>,
    pub(super) name: String,
    pub(super) arguments: Arguments,
    /// The arguments as they were received.
    written: String,
}

impl Call {
    /// The call as it stands in the history of later requests.
    pub(super) fn as_sent(&self) -> Value {
        let arguments = if self.written.trim().is_empty() { "{}" } else { &self.written };
        json!({"id": self.id, "type": "function", "function": {"name": self.name, "arguments": arguments}})
    }
}

/// A tool call that is arriving.
struct Arriving {
    id: String,
    /// Its name and its id in the trace, once the name is known.
    begun: Option<(String, Arc<str>)>,
    arguments: String,
}

/// Reads one reply.
pub(super) struct Reading {
    keep_raw: bool,
    chunks: u64,
    text: String,
    text_began: Option<Offset>,
    reasoning: String,
    calls: Vec<Arriving>,
    /// The last call of each index.
    by_index: HashMap<u64, usize>,
    /// The last call of each id.
    by_id: HashMap<String, usize>,
    finish_reason: Option<Arc<str>>,
    usage: Option<Value>,
    awaiting: Option<bool>,
    hint: Option<String>,
    has_choice: bool,
    done: bool,
}

impl Reading {
    pub(super) fn new(keep_raw: bool) -> Self {
        Reading {
            keep_raw,
            chunks: 0,
            text: String::new(),
            text_began: None,
            reasoning: String::new(),
            calls: Vec::new(),
            by_index: HashMap::new(),
            by_id: HashMap::new(),
            finish_reason: None,
            usage: None,
            awaiting: None,
            hint: None,
            has_choice: false,
            done: false,
        }
    }

    /// Whether the server said that the reply is over.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// How many chunks have come.
    pub(super) fn chunks(&self) -> u64 {
        self.chunks
    }

    /// Why the reply ends, as far as that is known.
    pub(super) fn finish_reason(&self) -> Option<&str> {
        self.finish_reason.as_deref()
    }

    /// Takes in the data of the next event of a stream.
    pub(super) fn chunk(&mut self, data: &str, telling: &mut Telling<'_>) -> Result<(), TurnError> {
        if data.trim() == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        self.chunks += 1;
        if self.done {
            telling.note(format!("chunk {} came after `[DONE]`; it counts", self.chunks));
        }
        self.take_in(data, &format!("chunk {}", self.chunks), telling)
    }

    /// Takes in a whole completion.
    pub(super) fn whole(&mut self, body: &str, telling: &mut Telling<'_>) -> Result<(), TurnError> {
        self.take_in(body, "the answer", telling)?;
        self.done = true;
        Ok(())
    }

    fn take_in(&mut self, data: &str, what: &str, telling: &mut Telling<'_>) -> Result<(), TurnError> {
        if self.keep_raw {
            let received = serde_json::from_str(data).unwrap_or_else(|_| Value::String(data.to_string()));
            telling.raw(received);
        }
        check_values(data).map_err(|words| protocol_error(format!("{what} {words}")))?;
        let chunk: Chunk = serde_json::from_str(&readable(data)).map_err(|error| {
            let words = if error.is_data() { "is not a chat completion" } else { "is not JSON" };
            protocol_error(format!("{what} {words} ({error}): {}", excerpt(data, 200)))
        })?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            let error = error_info(&error);
            telling.run_failed(&error);
            return Err(TurnError::Run(error));
        }
        // Where several chunks have figures, each has the total so far.
        self.usage = chunk.usage.filter(|usage| !usage.is_null()).or(self.usage.take());
        self.awaiting = chunk.awaiting_input.or(self.awaiting);
        self.hint = chunk.input_hint.or(self.hint.take());
        // Further choices are other replies, which nobody asked for.
        let choices = chunk.choices.unwrap_or_default().into_iter();
        for choice in choices.filter(|choice| choice.index.unwrap_or(0) == 0) {
            self.has_choice = true;
            if let Some(message) = choice.delta.or(choice.message) {
                self.message(message, what, telling)?;
            }
            let reason = choice.finish_reason.filter(|reason| !reason.is_empty());
            self.finish_reason = reason.map(Arc::from).or(self.finish_reason.take());
        }
        Ok(())
    }

    fn message(
        &mut self,
        message: WireMessage,
        what: &str,
        telling: &mut Telling<'_>,
    ) -> Result<(), TurnError> {
        if message.function_call.is_some_and(|call| !call.is_null()) {
            let message = format!("{what} has a `function_call`, the form before `tool_calls`");
            return Err(protocol_error(message));
        }
        self.awaiting = message.awaiting_input.or(self.awaiting);
        self.hint = message.input_hint.or(self.hint.take());
        self.reasoning.extend(message.reasoning_content.or(message.reasoning));
        // A server that runs its tools itself may tell what they returned.
        if let (Some("tool"), Some(id)) = (message.role.as_deref(), &message.tool_call_id) {
            return self.result(id, &message.content.unwrap_or(Value::String(String::new())), telling);
        }
        let content = message.content.as_ref().map(|content| text_of_content(content, what)).transpose()?;
        let content = content.into_iter().chain(message.refusal).collect::<String>();
        match content.is_empty() {
            true => {}
            false => {
                self.text_began.get_or_insert_with(|| telling.now());
                self.text.push_str(&content);
            }
        }
        for call in message.tool_calls.into_iter().flatten() {
            self.call(call, telling);
        }
        Ok(())
    }

    /// The result of a call that the server has answered itself.
    fn result(&mut self, id: &str, content: &Value, telling: &mut Telling<'_>) -> Result<(), TurnError> {
        let call = self.by_id.get(id).and_then(|place| self.calls[*place].begun.as_ref());
        let Some((_, trace_id)) = call else {
            return Err(protocol_error(format!("a result of tool call {id}, which was never announced")));
        };
        let trace_id = trace_id.clone();
        telling.result(&trace_id, ToolReply::Content(output_of_content(content)), Origin::Stream);
        Ok(())
    }

    fn call(&mut self, wire: WireCall, telling: &mut Telling<'_>) {
        let id = wire.id.unwrap_or_default();
        let (name, arguments) = match wire.function {
            Some(function) => {
                (function.name.unwrap_or_default(), function.arguments.map(text_of).unwrap_or_default())
            }
            None => (String::new(), String::new()),
        };
        let place = self.place(wire.index, &id, &name);
        let call = &mut self.calls[place];
        if call.begun.is_none() && !name.is_empty() {
            // A call counts from its name on, also if the stream is cut before its arguments are whole.
            let began = telling.now();
            call.begun = Some((name.clone(), telling.call(&call.id, &name, Some(began))));
        }
        call.arguments.push_str(&arguments);
    }

    /// The place of the call that a piece belongs to; a new one if it begins one.
    fn place(&mut self, index: Option<u64>, id: &str, name: &str) -> usize {
        let known = match index {
            Some(index) => self.by_index.get(&index).copied(),
            None if !id.is_empty() => self.by_id.get(id).copied(),
            None if name.is_empty() => self.calls.len().checked_sub(1),
            None => None,
        };
        let same = known.filter(|place| {
            let call = &self.calls[*place];
            id.is_empty() || call.id.is_empty() || call.id == id
        });
        if let Some(place) = same {
            if self.calls[place].id.is_empty() && !id.is_empty() {
                self.calls[place].id = id.to_owned();
                let last = self.by_id.entry(id.to_owned()).or_insert(place);
                *last = place.max(*last);
            }
            return place;
        }
        if let Some(index) = index {
            self.by_index.insert(index, self.calls.len());
        }
        if !id.is_empty() {
            self.by_id.insert(id.to_owned(), self.calls.len());
        }
        self.calls.push(Arriving { id: id.to_owned(), begun: None, arguments: String::new() });
        self.calls.len() - 1
    }

    /// Records what has come that was not recorded yet, and returns the reply.
    ///
    /// # Errors
    /// When it is none.
    pub(super) fn reply(self, telling: &mut Telling<'_>) -> Result<Reply, TurnError> {
        telling.reasoning(self.reasoning);
        telling.message(self.text.clone(), self.text_began, Some(!self.calls.is_empty()));
        let mut calls: Vec<Call> = Vec::new();
        let mut nameless = None;
        let mut ids: HashSet<String> = HashSet::new();
        for arriving in self.calls {
            let Some((name, trace_id)) = arriving.begun else {
                nameless = Some(arriving.arguments);
                continue;
            };
            let arguments = Arguments::of_text(arriving.arguments.clone());
            telling.arguments(&trace_id, arguments.clone());
            // Results refer to calls by their ids, so each needs one of its own.
            let is_usable = !arriving.id.is_empty() && !ids.contains(&arriving.id);
            let id = if is_usable { arriving.id } else { trace_id.to_string() };
            ids.insert(id.clone());
            calls.push(Call { id, trace_id, name, arguments, written: arriving.arguments });
        }
        if let Some(awaiting) = self.awaiting {
            telling.awaiting(awaiting, self.hint);
        }
        if let Some(arguments) = nameless {
            let message = format!("a tool call has no name; its arguments are {}", excerpt(&arguments, 200));
            return Err(protocol_error(message));
        }
        if !self.has_choice {
            return Err(protocol_error("the reply holds no choice (`choices`)".to_string()));
        }
        match self.finish_reason.as_deref() {
            Some("error") => {
                let message = "the reply ends with finish_reason error".to_string();
                let error = ErrorInfo { code: Some("error".to_string()), message, retriable: None };
                telling.run_failed(&error);
                return Err(TurnError::Run(error));
            }
            Some("length") => telling.note("the reply was cut at its token limit (finish_reason length)"),
            Some("content_filter") => {
                telling.note("the reply was stopped by a content filter (finish_reason content_filter)");
            }
            Some(_) | None => {}
        }
        Ok(Reply { text: self.text, calls, usage: self.usage, finish_reason: self.finish_reason })
    }
}

/// What a content says: a text, or the texts of its parts. Parts that are no text say nothing.
fn text_of_content(content: &Value, what: &str) -> Result<String, TurnError> {
    match content {
        Value::String(text) => Ok(text.clone()),
        Value::Array(parts) => Ok(parts.iter().filter_map(|part| part.get("text")?.as_str()).collect()),
        Value::Null => Ok(String::new()),
        other => Err(protocol_error(format!(
            "{what} has a `content` that is no text: {}",
            excerpt(&other.to_string(), 200)
        ))),
    }
}

fn text_of(arguments: Value) -> String {
    match arguments {
        Value::String(text) => text,
        Value::Null => String::new(),
        arguments => arguments.to_string(),
    }
}

fn protocol_error(message: String) -> TurnError {
    Failure::new(FailureKind::ProtocolError, message).into()
}

/// An error in the words of the server: a text, or an object with a `message` and maybe a `code` or `type`.
fn error_info(error: &Value) -> ErrorInfo {
    let text = |key: &str| match error.get(key) {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    let message = match error {
        Value::String(text) => text.clone(),
        other => text("message").unwrap_or_else(|| other.to_string()),
    };
    ErrorInfo { code: text("code").or_else(|| text("type")), message, retriable: None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::session::{Recorder, Redactor};

    /// What comes of chunks: the error, or text and calls with their arguments.
    fn read(chunks: &[String]) -> Result<(String, Vec<(String, Value)>), TurnError> {
        let mut recorder = Recorder::new(Redactor::default(), false);
        let mut telling = Telling::new("turn-1".into(), &mut recorder);
        let mut reading = Reading::new(false);
        for chunk in chunks {
            reading.chunk(chunk, &mut telling)?;
        }
        let reply = reading.reply(&mut telling)?;
        let calls = reply.calls.into_iter().map(|call| (call.name, call.arguments.value()));
        Ok((reply.text, calls.collect()))
    }

    fn chunk(delta: Value) -> String {
        json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}).to_string()
    }

    #[test]
    fn servers_number_the_pieces_of_calls_in_their_own_ways() {
        let piece = |call: Value| chunk(json!({"tool_calls": [call]}));
        let named = |id: &str, name: &str, arguments: &str| json!({"id": id, "function": {"name": name, "arguments": arguments}});
        let calls = [("a".to_string(), json!({"x": 1})), ("b".to_string(), json!({"y": 2}))];
        let ways: [Vec<String>; 5] = [
            // Whole calls, without an index.
            vec![piece(named("1", "a", "{\"x\":1}")), piece(named("2", "b", "{\"y\":2}"))],
            // All calls in one chunk.
            vec![chunk(json!({"tool_calls": [named("1", "a", "{\"x\":1}"), named("2", "b", "{\"y\":2}")]}))],
            // No ids and no index: a name begins a call, what has none goes on.
            vec![
                piece(json!({"function": {"name": "a", "arguments": "{\"x\""}})),
                piece(json!({"function": {"arguments": ":1}"}})),
                piece(json!({"function": {"name": "b", "arguments": "{\"y\":2}"}})),
            ],
            // Every call has the index 0, and an id of its own.
            vec![
                piece(json!({"index": 0, "id": "1", "function": {"name": "a", "arguments": "{\"x\":1}"}})),
                piece(json!({"index": 0, "id": "2", "function": {"name": "b", "arguments": "{\"y\""}})),
                piece(json!({"index": 0, "function": {"arguments": ":2}"}})),
            ],
            // Arguments as an object, and before the name.
            vec![
                piece(json!({"index": 0, "function": {"arguments": {"x": 1}}})),
                piece(json!({"index": 1, "id": "2", "function": {"name": "b", "arguments": "{\"y\":2}"}})),
                piece(json!({"index": 0, "id": "1", "function": {"name": "a"}})),
            ],
        ];
        for way in ways {
            assert_eq!(read(&way), Ok((String::new(), calls.to_vec())), "{way:?}");
        }
    }

    proptest! {
        /// However the pieces of several calls and of the text are cut and mixed, nothing is lost, doubled or merged.
        #[test]
        fn pieces_may_be_cut_and_mixed_in_any_way(
            text in "[a-z ]{0,20}",
            calls in prop::collection::vec(("[a-z]{1,8}", prop::collection::vec("[a-zé\"\\\\ ]{0,8}", 0..4)), 0..4),
            cuts in prop::collection::vec(1_usize..5, 64),
            order in prop::collection::vec(any::<u8>(), 256),
        ) {
            let mut cuts = cuts.into_iter().cycle();
            let mut cut = |text: &str| {
                let characters: Vec<char> = text.chars().collect();
                let mut rest = characters.as_slice();
                let mut pieces = Vec::new();
                while !rest.is_empty() {
                    let (piece, more) = rest.split_at(cuts.next().unwrap_or(1).min(rest.len()));
                    pieces.push(piece.iter().collect::<String>());
                    rest = more;
                }
                pieces
            };
            // Each call and the text are a sequence; the sequences are mixed.
            let mut sequences: Vec<Vec<Value>> = vec![cut(&text).into_iter().map(|piece| json!({"content": piece})).collect()];
            let mut expected = Vec::new();
            for (index, (name, arguments)) in calls.iter().enumerate() {
                let arguments = json!(arguments);
                expected.push((name.clone(), arguments.clone()));
                let begin = json!({"tool_calls": [{"index": index, "id": format!("c{index}"), "function": {"name": name}}]});
                let pieces = cut(&arguments.to_string()).into_iter().map(|piece| {
                    json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
                });
                sequences.push(std::iter::once(begin).chain(pieces).collect());
            }
            let mut chunks = Vec::new();
            let mut order = order.into_iter().cycle();
            while sequences.iter().any(|sequence| !sequence.is_empty()) {
                let filled: Vec<usize> = (0..sequences.len()).filter(|&at| !sequences[at].is_empty()).collect();
                let at = filled[usize::from(order.next().unwrap_or(0)) % filled.len()];
                chunks.push(chunk(sequences[at].remove(0)));
            }
            chunks.push(chunk(json!({})));
            let (said, mut called) = read(&chunks).expect("the chunks are whole");
            // Calls are in the order in which they began.
            called.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.to_string().cmp(&b.1.to_string())));
            expected.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.to_string().cmp(&b.1.to_string())));
            prop_assert_eq!((said, called), (text, expected));
        }

        #[test]
        fn no_chunk_makes_it_panic(chunks in prop::collection::vec("[\\[\\]{}:,\"a-z0-9]{0,40}", 0..4)) {
            let _ = read(&chunks);
        }
    }
}
