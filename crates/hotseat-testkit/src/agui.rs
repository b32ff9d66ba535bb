//! AG-UI from the agent's side: what a request asks for, and the events of a run.
//!
//! A run is written down in the order in which it is sent:
//!
//! ```
//! use hotseat_testkit::{FakeAgent, agui::Run};
//! use serde_json::json;
//! let agent = FakeAgent::start(|request| {
//!     Run::of(request)
//!         .started()
//!         .tool("call-1", "charge_card", &json!({"amount": 42.5}), Some(json!({"status": "approved"})))
//!         .text("Payment approved.")
//!         .finished()
//! });
//! # drop(agent);
//! ```

use std::time::Duration;

use serde_json::{Value, json};

use crate::reply::{Reply, Step};
use crate::request::Request;

/// Text is sent in deltas of this many characters, so that a client has to put it together.
const DELTA: usize = 12;

/// What the body of a run request says.
#[derive(Debug, Clone)]
pub struct Input {
    value: Value,
    /// The conversation.
    pub thread_id: String,
    /// This run of it.
    pub run_id: String,
}

/// The result of a tool call, as the history of a conversation holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// The call.
    pub call_id: String,
    /// The tool, or nothing if the history holds no call of this id.
    pub name: String,
    /// Text as it is; anything else as JSON.
    pub content: String,
}

impl Input {
    /// Reads the body of a request: a `RunAgentInput`, or the envelope that holds one as `body`.
    pub fn read(request: &Request) -> Result<Input, String> {
        let mut body: Value = serde_json::from_slice(&request.body)
            .map_err(|error| format!("the body is not JSON: {error}"))?;
        if body.get("method").is_some() {
            body = body["body"].take();
        }
        Input::of(body)
    }

    /// Reads a `RunAgentInput`.
    pub fn of(body: Value) -> Result<Input, String> {
        let id = |name: &str| match body.get(name) {
            Some(Value::String(id)) => Ok(id.clone()),
            Some(other) => Err(format!("`{name}` is not a string: {other}")),
            None => Err(format!("`{name}` is missing")),
        };
        let (thread_id, run_id) = (id("threadId")?, id("runId")?);
        if !body["messages"].is_array() {
            return Err("`messages` is not a list".to_owned());
        }
        Ok(Input { value: body, thread_id, run_id })
    }

    /// The whole input.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The messages so far.
    pub fn messages(&self) -> &[Value] {
        self.list("messages")
    }

    /// The answers to interrupts.
    pub fn resume(&self) -> &[Value] {
        self.list("resume")
    }

    fn list(&self, name: &str) -> &[Value] {
        self.value[name].as_array().map_or(&[], Vec::as_slice)
    }

    /// The texts of all user messages.
    pub fn user_texts(&self) -> Vec<String> {
        let users = self.messages().iter().filter(|message| message["role"] == "user");
        users.map(|message| text_of(&message["content"])).collect()
    }

    /// The text of the last user message; empty without one.
    pub fn last_user_text(&self) -> String {
        self.user_texts().pop().unwrap_or_default()
    }

    /// The names of the tools that the client offers.
    pub fn client_tools(&self) -> Vec<String> {
        let names = self.list("tools").iter().filter_map(|tool| tool["name"].as_str());
        names.map(str::to_owned).collect()
    }

    /// The tool results after the last user message, in order.
    pub fn tool_results_since_last_user(&self) -> Vec<ToolResult> {
        let recent = self.messages().rsplit(|message| message["role"] == "user").next().unwrap_or(&[]);
        let results = recent.iter().filter(|message| message["role"] == "tool");
        results
            .map(|message| {
                let call_id = message["toolCallId"].as_str().unwrap_or_default();
                let call = self.tool_call(call_id);
                ToolResult {
                    call_id: call_id.to_owned(),
                    name: call
                        .and_then(|call| call["function"]["name"].as_str())
                        .unwrap_or_default()
                        .to_owned(),
                    content: text_of(&message["content"]),
                }
            })
            .collect()
    }

    /// The tool call of this id, as an assistant message holds it.
    pub fn tool_call(&self, id: &str) -> Option<&Value> {
        let calls = self.messages().iter().filter_map(|message| message["toolCalls"].as_array()).flatten();
        calls.rev().find(|call| call["id"] == id)
    }
}

/// The text of a message's content: a string, or the text parts of a list.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            texts.join(" ")
        }
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

impl Request {
    /// The request as the start of an AG-UI run.
    ///
    /// # Panics
    /// If it is none; in a handler that fails the test.
    pub fn input(&self) -> Input {
        Input::read(self).unwrap_or_else(|why| panic!("{} {} starts no run: {why}", self.method, self.path))
    }

    /// [`Input::last_user_text`] of this request.
    pub fn last_user_text(&self) -> String {
        self.input().last_user_text()
    }

    /// [`Input::user_texts`] of this request.
    pub fn user_texts(&self) -> Vec<String> {
        self.input().user_texts()
    }

    /// [`Input::tool_results_since_last_user`] of this request.
    pub fn tool_results_since_last_user(&self) -> Vec<ToolResult> {
        self.input().tool_results_since_last_user()
    }

    /// [`Input::resume`] of this request.
    pub fn resume(&self) -> Vec<Value> {
        self.input().resume().to_vec()
    }
}

/// The events of one run, with waits and cuts between them.
#[derive(Debug, Clone)]
#[must_use = "a run does nothing until it is given as a reply"]
pub struct Run {
    thread_id: String,
    run_id: String,
    ids: usize,
    steps: Vec<Step>,
}

impl Run {
    /// A run with the ids of the request, still without events.
    ///
    /// # Panics
    /// If the request starts no run (see [`Request::input`]).
    pub fn of(request: &Request) -> Run {
        Run::new(&request.input())
    }

    /// A run with the ids of the input, still without events.
    pub fn new(input: &Input) -> Run {
        Run { thread_id: input.thread_id.clone(), run_id: input.run_id.clone(), ids: 0, steps: Vec::new() }
    }

    /// An id that no other message or call of the conversation has.
    pub fn fresh_id(&mut self, kind: &str) -> String {
        self.ids += 1;
        format!("{}-{kind}-{}", self.run_id, self.ids)
    }

    /// Any event, as it is.
    pub fn raw_event(mut self, event: Value) -> Run {
        self.steps.push(Step::Event(event));
        self
    }

    /// Anything that is not an event: a pause, a gate, a cut, bytes.
    pub fn step(mut self, step: Step) -> Run {
        self.steps.push(step);
        self
    }

    /// [`Step::Pause`], for tests about time only.
    pub fn pause(self, time: Duration) -> Run {
        self.step(Step::Pause(time))
    }

    /// [`Step::Gate`]
    pub fn gate(self, name: &str) -> Run {
        self.step(Step::Gate(name.to_owned()))
    }

    /// [`Step::Hang`]
    pub fn hang(self) -> Run {
        self.step(Step::Hang)
    }

    /// [`Step::Cut`]
    pub fn cut(self) -> Run {
        self.step(Step::Cut)
    }

    /// `RUN_STARTED`
    pub fn started(self) -> Run {
        let event = json!({
            "type": "RUN_STARTED",
            "threadId": self.thread_id,
            "runId": self.run_id,
            "protocolVersion": "1.0",
        });
        self.raw_event(event)
    }

    /// One assistant message: `TEXT_MESSAGE_START`, the text in several deltas, `TEXT_MESSAGE_END`.
    pub fn text(mut self, text: &str) -> Run {
        let id = self.fresh_id("message");
        let mut run =
            self.raw_event(json!({"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"}));
        for delta in deltas(text) {
            run = run.raw_event(json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": delta}));
        }
        run.raw_event(json!({"type": "TEXT_MESSAGE_END", "messageId": id}))
    }

    /// One assistant message as `TEXT_MESSAGE_CHUNK`s, of which only the first names it.
    pub fn text_chunks(mut self, text: &str) -> Run {
        let id = self.fresh_id("message");
        let mut run = self;
        for (index, delta) in deltas(text).into_iter().enumerate() {
            run = run.raw_event(match index {
                0 => json!({"type": "TEXT_MESSAGE_CHUNK", "messageId": id, "role": "assistant", "delta": delta}),
                _ => json!({"type": "TEXT_MESSAGE_CHUNK", "delta": delta}),
            });
        }
        run
    }

    /// A thought: a reasoning span around one reasoning message.
    pub fn reasoning(mut self, text: &str) -> Run {
        let id = self.fresh_id("reasoning");
        let mut run = self
            .raw_event(json!({"type": "REASONING_START", "messageId": id}))
            .raw_event(json!({"type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning"}));
        for delta in deltas(text) {
            run =
                run.raw_event(json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": id, "delta": delta}));
        }
        run.raw_event(json!({"type": "REASONING_MESSAGE_END", "messageId": id}))
            .raw_event(json!({"type": "REASONING_END", "messageId": id}))
    }

    /// A tool call, and its result if there is one.
    ///
    /// The id is the call's for the whole conversation: two turns with the same id are one call.
    pub fn tool(self, id: &str, name: &str, args: &Value, result: Option<Value>) -> Run {
        let run = self.tool_call(id, name, args);
        match result {
            Some(result) => run.tool_result(id, &result),
            None => run,
        }
    }

    /// `TOOL_CALL_START`, the arguments in two deltas, `TOOL_CALL_END`.
    pub fn tool_call(self, id: &str, name: &str, args: &Value) -> Run {
        let args = args.to_string();
        let (first, second) = halves(&args);
        self.raw_event(json!({"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": name}))
            .raw_event(json!({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": first}))
            .raw_event(json!({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": second}))
            .raw_event(json!({"type": "TOOL_CALL_END", "toolCallId": id}))
    }

    /// A tool call as two `TOOL_CALL_CHUNK`s, of which only the first names it.
    pub fn tool_chunks(self, id: &str, name: &str, args: &Value, result: Option<Value>) -> Run {
        let args = args.to_string();
        let (first, second) = halves(&args);
        let run = self
            .raw_event(
                json!({"type": "TOOL_CALL_CHUNK", "toolCallId": id, "toolCallName": name, "delta": first}),
            )
            .raw_event(json!({"type": "TOOL_CALL_CHUNK", "delta": second}));
        match result {
            Some(result) => run.tool_result(id, &result),
            None => run,
        }
    }

    /// `TOOL_CALL_RESULT`: a string as it is, anything else as JSON text.
    pub fn tool_result(mut self, id: &str, result: &Value) -> Run {
        let message_id = self.fresh_id("result");
        let content = match result {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        self.raw_event(json!({
            "type": "TOOL_CALL_RESULT",
            "messageId": message_id,
            "toolCallId": id,
            "role": "tool",
            "content": content,
        }))
    }

    /// `STATE_SNAPSHOT`
    pub fn state(self, snapshot: Value) -> Run {
        self.raw_event(json!({"type": "STATE_SNAPSHOT", "snapshot": snapshot}))
    }

    /// `STATE_DELTA`: a JSON patch.
    pub fn delta(self, patch: Value) -> Run {
        self.raw_event(json!({"type": "STATE_DELTA", "delta": patch}))
    }

    /// `MESSAGES_SNAPSHOT`
    pub fn messages_snapshot(self, messages: Vec<Value>) -> Run {
        self.raw_event(json!({"type": "MESSAGES_SNAPSHOT", "messages": messages}))
    }

    /// `CUSTOM`
    pub fn custom(self, name: &str, value: Value) -> Run {
        self.raw_event(json!({"type": "CUSTOM", "name": name, "value": value}))
    }

    /// `RUN_FINISHED` with success.
    pub fn finished(self) -> Run {
        self.ended(json!({"type": "success"}))
    }

    /// `RUN_FINISHED` with success, naming the calls that the client has to answer.
    pub fn pending(self, call_ids: &[String]) -> Run {
        self.ended(json!({"type": "success", "pendingToolCallIds": call_ids}))
    }

    /// `RUN_FINISHED` with interrupts: `{"id": …, "reason": …, "message": …, "toolCallId": …}`.
    pub fn interrupted(self, interrupts: Vec<Value>) -> Run {
        self.ended(json!({"type": "interrupt", "interrupts": interrupts}))
    }

    fn ended(self, outcome: Value) -> Run {
        let event = json!({
            "type": "RUN_FINISHED",
            "threadId": self.thread_id,
            "runId": self.run_id,
            "outcome": outcome,
        });
        self.raw_event(event)
    }

    /// `RUN_ERROR`
    pub fn error(self, message: &str, code: Option<&str>) -> Run {
        let mut event = json!({"type": "RUN_ERROR", "message": message});
        if let Some(code) = code {
            event["code"] = json!(code);
        }
        self.raw_event(event)
    }

    /// The events as a reply of `text/event-stream`.
    pub fn reply(self) -> Reply {
        Reply { body: self.steps, ..Reply::sse() }
    }
}

impl From<Run> for Reply {
    fn from(run: Run) -> Reply {
        run.reply()
    }
}

fn deltas(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(DELTA).map(|part| part.iter().collect()).collect()
}

fn halves(text: &str) -> (&str, &str) {
    text.split_at(text.floor_char_boundary(text.len() / 2))
}
