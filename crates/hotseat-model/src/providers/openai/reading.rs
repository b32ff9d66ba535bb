//! Reads chat completions, streamed and whole.
//!
//! Servers differ in how they number the pieces of tool calls. The rules here lose none, double none and merge none:
//! a piece belongs to the call of its index, unless it brings another id; without an index to the call of its id;
//! without either it begins a call if it has a name, and continues the last one if not.

use serde::Deserialize;
use serde_json::Value;

use crate::providers::call::{Reading, cut, not_understood};
use crate::providers::failure;
use crate::{Assembly, Delta, ModelError, Reply, Request, Sink, StopReason, Usage};

/// A chunk of a stream, or a whole completion.
#[derive(Debug, Deserialize)]
struct Chunk {
    choices: Option<Vec<Choice>>,
    usage: Option<WireUsage>,
    /// Where Groq puts the usage.
    x_groq: Option<Groq>,
    model: Option<String>,
    error: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Groq {
    usage: Option<WireUsage>,
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
    content: Option<Content>,
    refusal: Option<String>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    tool_calls: Option<Vec<WireCall>>,
    /// The form before tool calls.
    function_call: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

/// A part of a content; those that are no text are passed over.
#[derive(Debug, Deserialize)]
struct Part {
    text: Option<String>,
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

#[derive(Debug, Deserialize)]
struct WireUsage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<Details>,
}

#[derive(Debug, Deserialize)]
struct Details {
    cached_tokens: Option<u64>,
}

/// A tool call that is arriving.
struct Call {
    index: Option<u64>,
    id: String,
    /// Its place among the calls of the reply, once its name is known.
    place: Option<usize>,
    /// Arguments that came before the name.
    held: String,
}

/// Reads one reply.
pub(in crate::providers) struct OpenAiReading<'r> {
    url: String,
    request: &'r Request,
    assembly: Assembly,
    calls: Vec<Call>,
    /// The ids of the calls that have begun.
    ids: Vec<String>,
    finish: Option<String>,
    refused: bool,
    /// The stream said that it is over.
    done: bool,
    has_choice: bool,
    usage: Option<Usage>,
    model: Option<String>,
}

impl<'r> OpenAiReading<'r> {
    pub(in crate::providers) fn new(url: String, request: &'r Request) -> Self {
        OpenAiReading {
            url,
            request,
            assembly: Assembly::default(),
            calls: Vec::new(),
            ids: Vec::new(),
            finish: None,
            refused: false,
            done: false,
            has_choice: false,
            usage: None,
            model: None,
        }
    }

    fn chunk(&mut self, data: &str, sink: &mut dyn Sink) -> Result<(), ModelError> {
        let chunk: Chunk = serde_json::from_str(data)
            .map_err(|error| not_understood(&self.url, &error.to_string(), data))?;
        if let Some(error) = chunk.error {
            return Err(failure::of_event(&self.url, &error));
        }
        if let Some(usage) = chunk.usage.or(chunk.x_groq.and_then(|groq| groq.usage)) {
            // Where several chunks have figures, each has the total so far.
            self.usage = usage.counted().or(self.usage);
        }
        self.model = self.model.take().or(chunk.model.filter(|model| !model.is_empty()));
        // Further choices are other replies, which nobody asked for.
        for choice in
            chunk.choices.unwrap_or_default().into_iter().filter(|choice| choice.index.unwrap_or(0) == 0)
        {
            self.has_choice = true;
            if let Some(message) = choice.delta.or(choice.message) {
                self.message(message, data, sink)?;
            }
            self.finish = choice.finish_reason.filter(|reason| !reason.is_empty()).or(self.finish.take());
        }
        Ok(())
    }

    fn message(&mut self, message: WireMessage, data: &str, sink: &mut dyn Sink) -> Result<(), ModelError> {
        if message.function_call.is_some_and(|call| !call.is_null()) {
            return Err(not_understood(
                &self.url,
                "it has a `function_call`, the form before tool calls",
                data,
            ));
        }
        let reasoning = message.reasoning_content.or(message.reasoning).filter(|text| !text.is_empty());
        if let Some(text) = reasoning {
            self.add(Delta::Reasoning { text }, sink);
        }
        self.refused |= message.refusal.as_ref().is_some_and(|refusal| !refusal.is_empty());
        let said = message.content.map(Content::text).into_iter().chain(message.refusal);
        for text in said.filter(|text| !text.is_empty()) {
            self.add(Delta::Text { text }, sink);
        }
        for call in message.tool_calls.into_iter().flatten() {
            self.call(call, sink);
        }
        Ok(())
    }

    fn call(&mut self, wire: WireCall, sink: &mut dyn Sink) {
        let id = wire.id.unwrap_or_default();
        let (name, arguments) = match wire.function {
            Some(function) => {
                (function.name.unwrap_or_default(), function.arguments.map(text_of).unwrap_or_default())
            }
            None => (String::new(), String::new()),
        };
        let number = self.number(wire.index, &id, &name);
        let place = match self.calls[number].place {
            Some(place) => place,
            None if name.is_empty() => {
                self.calls[number].held.push_str(&arguments);
                return;
            }
            None => self.begin(number, name, sink),
        };
        if !arguments.is_empty() {
            self.add(Delta::ToolCallArguments { index: place, text: arguments }, sink);
        }
    }

    /// The call that a piece belongs to, from 0; a new one if it begins one.
    fn number(&mut self, index: Option<u64>, id: &str, name: &str) -> usize {
        let known = match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index),
            None if !id.is_empty() => self.calls.iter().rposition(|call| call.id == id),
            None if name.is_empty() => self.calls.len().checked_sub(1),
            None => None,
        };
        let same = known.filter(|number| {
            let call = &self.calls[*number];
            id.is_empty() || call.id.is_empty() || call.id == id
        });
        match same {
            Some(number) => {
                if self.calls[number].id.is_empty() {
                    self.calls[number].id = id.to_owned();
                }
                number
            }
            None => {
                self.calls.push(Call { index, id: id.to_owned(), place: None, held: String::new() });
                self.calls.len() - 1
            }
        }
    }

    /// Begins a call whose name is known, with the arguments that came before it.
    fn begin(&mut self, number: usize, name: String, sink: &mut dyn Sink) -> usize {
        let index = self.assembly.calls_begun();
        let call = &mut self.calls[number];
        call.place = Some(index);
        let held = std::mem::take(&mut call.held);
        // Results refer to calls by their ids, so each needs one of its own.
        let is_usable = !call.id.is_empty() && !self.ids.contains(&call.id);
        let id = if is_usable { call.id.clone() } else { self.request.call_id(index) };
        self.ids.push(id.clone());
        self.add(Delta::ToolCallStarted { index, id, name }, sink);
        if !held.is_empty() {
            self.add(Delta::ToolCallArguments { index, text: held }, sink);
        }
        index
    }

    fn add(&mut self, delta: Delta, sink: &mut dyn Sink) {
        self.assembly.add(&delta);
        sink.delta(delta);
    }
}

impl Reading for OpenAiReading<'_> {
    fn event(&mut self, data: &str, sink: &mut dyn Sink) -> Result<bool, ModelError> {
        if data.trim() == "[DONE]" {
            self.done = true;
            return Ok(true);
        }
        if !data.trim().is_empty() {
            self.chunk(data, sink)?;
        }
        Ok(false)
    }

    fn whole(&mut self, body: &str, sink: &mut dyn Sink) -> Result<(), ModelError> {
        self.chunk(body, sink)?;
        self.done = true;
        Ok(())
    }

    fn has_ended(&self) -> bool {
        self.done || self.finish.is_some()
    }

    fn assembly(&self) -> &Assembly {
        &self.assembly
    }

    fn reply(&mut self) -> Result<(Reply, Option<Usage>), ModelError> {
        if !self.has_ended() {
            return Err(cut(&self.url));
        }
        if self.finish.as_deref() == Some("error") {
            return Err(failure::of_event(&self.url, &Value::Null));
        }
        if !self.has_choice {
            return Err(not_understood(&self.url, "it holds no choice", ""));
        }
        if let Some(call) = self.calls.iter().find(|call| call.place.is_none()) {
            return Err(not_understood(&self.url, "a tool call has no name", &call.held));
        }
        let mut reply = self.assembly.clone().reply();
        reply.stop = self.stop(&reply);
        reply.model = self.model.clone();
        Ok((reply, self.usage))
    }
}

impl OpenAiReading<'_> {
    fn stop(&self, reply: &Reply) -> StopReason {
        match self.finish.as_deref() {
            _ if self.refused => StopReason::Refusal,
            // Some servers say `stop` where they mean that the calls are to be made.
            Some("stop" | "tool_calls" | "function_call") | None => reply.stop.clone(),
            Some("length") => StopReason::MaxTokens,
            Some("content_filter") => StopReason::Refusal,
            Some(other) => StopReason::Other(other.to_owned()),
        }
    }
}

impl Content {
    fn text(self) -> String {
        match self {
            Content::Text(text) => text,
            Content::Parts(parts) => parts.into_iter().filter_map(|part| part.text).collect(),
        }
    }
}

fn text_of(arguments: Value) -> String {
    match arguments {
        Value::String(text) => text,
        Value::Null => String::new(),
        arguments => arguments.to_string(),
    }
}

impl WireUsage {
    /// The figures; none if the provider sent none, as some do in every chunk but the last.
    fn counted(self) -> Option<Usage> {
        let cached = self.prompt_tokens_details.and_then(|details| details.cached_tokens);
        (self.prompt_tokens.is_some() || self.completion_tokens.is_some()).then(|| Usage {
            input_tokens: self.prompt_tokens.unwrap_or(0),
            output_tokens: self.completion_tokens.unwrap_or(0),
            cached_tokens: cached.unwrap_or(0),
            estimated: false,
        })
    }
}
