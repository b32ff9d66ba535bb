//! AG-UI from the agent's side: what a request asks for, and the events of a run.
//!
//! A run lists its events in sending order:
//!
//! ```
//! use hotseat_testkit::FakeAgent;
//! use serde_json::json;
//! let agent = FakeAgent::with_run(|run, _| {
//!     run.tool("call-1", "charge_card", &json!({"amount": 42.5}), Some(json!({"status": "approved"})))
//!         .text("Payment approved.")
//!         .finished()
//! });
//! # drop(agent);
//! ```

use std::time::Duration;

use serde_json::{Value, json};

use crate::error::TestkitError;
use crate::fake_agent::FakeAgent;
use crate::reply::{FakeReply, ReplyStep};
use crate::request::FakeRequest;

/// Number of characters per text delta, so that clients must join several.
const DELTA_CHARS: usize = 12;

/// The body of a run request.
#[derive(Debug, Clone)]
pub struct RunAgentInput {
    value: Value,
    /// Id of the conversation.
    pub thread_id: String,
    /// Id of the run.
    pub run_id: String,
}

/// A tool result in the message history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryToolResult {
    /// Id of the call.
    pub call_id: String,
    /// Name of the tool, or empty if the history has no call of this id.
    pub name: String,
    /// Text as it is, anything else as JSON.
    pub content: String,
}

impl RunAgentInput {
    /// Reads the body of a request: a `RunAgentInput`, or the envelope that holds one as `body`.
    pub fn from_request(request: &FakeRequest) -> Result<RunAgentInput, TestkitError> {
        let mut body: Value = serde_json::from_slice(&request.body).map_err(TestkitError::NotJson)?;
        if body.get("method").is_some() {
            body = body["body"].take();
        }
        RunAgentInput::from_json(body)
    }

    /// Reads a `RunAgentInput`.
    pub fn from_json(body: Value) -> Result<RunAgentInput, TestkitError> {
        let id = |name: &str| match body.get(name) {
            Some(Value::String(id)) => Ok(id.clone()),
            Some(other) => Err(TestkitError::NotText(name.to_string(), other.clone())),
            None => Err(TestkitError::Missing(name.to_string())),
        };
        let (thread_id, run_id) = (id("threadId")?, id("runId")?);
        if !body["messages"].is_array() {
            return Err(TestkitError::NoMessages);
        }
        Ok(RunAgentInput { value: body, thread_id, run_id })
    }

    /// Returns the whole input.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Returns the message history.
    pub fn messages(&self) -> &[Value] {
        self.list("messages")
    }

    /// Returns the answers to interrupts.
    pub fn resume(&self) -> &[Value] {
        self.list("resume")
    }

    fn list(&self, name: &str) -> &[Value] {
        self.value[name].as_array().map_or(&[], Vec::as_slice)
    }

    /// Returns the texts of all user messages.
    pub fn user_texts(&self) -> Vec<String> {
        let users = self.messages().iter().filter(|message| message["role"] == "user");
        users.map(|message| text_of(&message["content"])).collect()
    }

    /// Returns the text of the last user message, or an empty string.
    pub fn last_user_text(&self) -> String {
        self.user_texts().pop().unwrap_or_default()
    }

    /// Returns the names of the tools that the client offers.
    pub fn client_tools(&self) -> Vec<String> {
        let names = self.list("tools").iter().filter_map(|tool| tool["name"].as_str());
        names.map(str::to_owned).collect()
    }

    /// Returns the tool results after the last user message, in order.
    pub fn tool_results_since_last_user(&self) -> Vec<HistoryToolResult> {
        let recent = self.messages().rsplit(|message| message["role"] == "user").next().unwrap_or(&[]);
        let results = recent.iter().filter(|message| message["role"] == "tool");
        results
            .map(|message| {
                let call_id = message["toolCallId"].as_str().unwrap_or_default();
                let call = self.tool_call(call_id);
                HistoryToolResult {
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

    /// Returns the tool call of this id from an assistant message.
    pub fn tool_call(&self, id: &str) -> Option<&Value> {
        let calls = self.messages().iter().filter_map(|message| message["toolCalls"].as_array()).flatten();
        calls.rev().find(|call| call["id"] == id)
    }
}

/// Returns the text of a message content: a string, or the text parts of a list.
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

impl FakeRequest {
    /// Parses the request as the start of an AG-UI run. Panics if it is not one. A panic in a handler fails
    /// the test.
    pub fn input(&self) -> RunAgentInput {
        RunAgentInput::from_request(self)
            .unwrap_or_else(|why| panic!("{} {} is not a run request: {why}", self.method, self.path))
    }

    /// [`RunAgentInput::last_user_text`] of this request.
    pub fn last_user_text(&self) -> String {
        self.input().last_user_text()
    }

    /// Parses the last user text as JSON; roles are asked so. Panics if it is not JSON.
    pub fn last_user_json(&self) -> Value {
        let text = self.last_user_text();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text:?} is not JSON: {error}"))
    }

    /// [`RunAgentInput::user_texts`] of this request.
    pub fn user_texts(&self) -> Vec<String> {
        self.input().user_texts()
    }

    /// [`RunAgentInput::tool_results_since_last_user`] of this request.
    pub fn tool_results_since_last_user(&self) -> Vec<HistoryToolResult> {
        self.input().tool_results_since_last_user()
    }

    /// [`RunAgentInput::resume`] of this request.
    pub fn resume(&self) -> Vec<Value> {
        self.input().resume().to_vec()
    }
}

impl FakeAgent {
    /// Starts an agent that continues the started run of each request. Panics as [`FakeAgent::start`] and
    /// [`FakeRun::for_request`].
    pub fn with_run<R: Into<FakeReply>>(
        handler: impl Fn(FakeRun, &FakeRequest) -> R + Send + Sync + 'static,
    ) -> FakeAgent {
        FakeAgent::start(move |request| handler(FakeRun::for_request(request).started(), request))
    }

    /// Starts an agent that answers every message with this text. Panics as [`FakeAgent::with_run`].
    pub fn with_text(text: impl Into<String>) -> FakeAgent {
        let text = text.into();
        FakeAgent::with_run(move |run, _| run.text(&text).finished())
    }

    /// Returns the last user text of each request so far. Panics as [`FakeRequest::input`].
    pub fn user_texts(&self) -> Vec<String> {
        self.requests().iter().map(FakeRequest::last_user_text).collect()
    }
}

/// Events of a run, with pauses and connection failures between them.
#[derive(Debug, Clone)]
#[must_use = "a run does nothing until it is given as a reply"]
pub struct FakeRun {
    thread_id: String,
    run_id: String,
    ids: usize,
    steps: Vec<ReplyStep>,
}

impl FakeRun {
    /// Creates a run with the ids of the request and no events. Panics if the request does not start a run
    /// (see [`FakeRequest::input`]).
    pub fn for_request(request: &FakeRequest) -> FakeRun {
        FakeRun::new(&request.input())
    }

    /// Creates a run with the ids of the input and no events.
    pub fn new(input: &RunAgentInput) -> FakeRun {
        FakeRun {
            thread_id: input.thread_id.clone(),
            run_id: input.run_id.clone(),
            ids: 0,
            steps: Vec::new(),
        }
    }

    /// Returns an id that is unique in the conversation.
    pub fn fresh_id(&mut self, kind: &str) -> String {
        self.ids += 1;
        format!("{}-{kind}-{}", self.run_id, self.ids)
    }

    /// Adds an event as it is.
    pub fn raw_event(mut self, event: Value) -> FakeRun {
        self.steps.push(ReplyStep::Event(event));
        self
    }

    /// Adds a step that is not an event: a pause, gate, cut or bytes.
    pub fn step(mut self, step: ReplyStep) -> FakeRun {
        self.steps.push(step);
        self
    }

    /// Adds a [`ReplyStep::Pause`]; only for tests of timing.
    pub fn pause(self, time: Duration) -> FakeRun {
        self.step(ReplyStep::Pause(time))
    }

    /// [`ReplyStep::Gate`]
    pub fn gate(self, name: &str) -> FakeRun {
        self.step(ReplyStep::Gate(name.to_owned()))
    }

    /// [`ReplyStep::Hang`]
    pub fn hang(self) -> FakeRun {
        self.step(ReplyStep::Hang)
    }

    /// [`ReplyStep::Cut`]
    pub fn cut(self) -> FakeRun {
        self.step(ReplyStep::Cut)
    }

    /// `RUN_STARTED`
    pub fn started(self) -> FakeRun {
        let event = json!({
            "type": "RUN_STARTED",
            "threadId": self.thread_id,
            "runId": self.run_id,
            "protocolVersion": "1.0",
        });
        self.raw_event(event)
    }

    /// Adds an assistant message: `TEXT_MESSAGE_START`, the text in several deltas, `TEXT_MESSAGE_END`.
    pub fn text(mut self, text: &str) -> FakeRun {
        let id = self.fresh_id("message");
        let mut run =
            self.raw_event(json!({"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"}));
        for delta in deltas(text) {
            run = run.raw_event(json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": delta}));
        }
        run.raw_event(json!({"type": "TEXT_MESSAGE_END", "messageId": id}))
    }

    /// Adds an assistant message as `TEXT_MESSAGE_CHUNK`s; only the first one has its id.
    pub fn text_chunks(mut self, text: &str) -> FakeRun {
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

    /// Adds reasoning: a span around one reasoning message.
    pub fn reasoning(mut self, text: &str) -> FakeRun {
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

    /// Adds a tool call, and its result if given.
    ///
    /// The id identifies the call in the whole conversation: two turns with the same id share one call.
    pub fn tool(self, id: &str, name: &str, args: &Value, result: Option<Value>) -> FakeRun {
        let run = self.tool_call(id, name, args);
        match result {
            Some(result) => run.tool_result(id, &result),
            None => run,
        }
    }

    /// Adds `TOOL_CALL_START`, the arguments in two deltas, and `TOOL_CALL_END`.
    pub fn tool_call(self, id: &str, name: &str, args: &Value) -> FakeRun {
        let args = args.to_string();
        let (first, second) = halves(&args);
        self.raw_event(json!({"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": name}))
            .raw_event(json!({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": first}))
            .raw_event(json!({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": second}))
            .raw_event(json!({"type": "TOOL_CALL_END", "toolCallId": id}))
    }

    /// Adds a tool call as two `TOOL_CALL_CHUNK`s; only the first one has its name.
    pub fn tool_chunks(self, id: &str, name: &str, args: &Value, result: Option<Value>) -> FakeRun {
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

    /// Adds `TOOL_CALL_RESULT`: a string as it is, anything else as JSON text.
    pub fn tool_result(mut self, id: &str, result: &Value) -> FakeRun {
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
    pub fn state(self, snapshot: Value) -> FakeRun {
        self.raw_event(json!({"type": "STATE_SNAPSHOT", "snapshot": snapshot}))
    }

    /// Adds `STATE_DELTA`, a JSON patch.
    pub fn delta(self, patch: Value) -> FakeRun {
        self.raw_event(json!({"type": "STATE_DELTA", "delta": patch}))
    }

    /// `MESSAGES_SNAPSHOT`
    pub fn messages_snapshot(self, messages: Vec<Value>) -> FakeRun {
        self.raw_event(json!({"type": "MESSAGES_SNAPSHOT", "messages": messages}))
    }

    /// `CUSTOM`
    pub fn custom(self, name: &str, value: Value) -> FakeRun {
        self.raw_event(json!({"type": "CUSTOM", "name": name, "value": value}))
    }

    /// Adds `RUN_FINISHED` with success.
    pub fn finished(self) -> FakeRun {
        self.ended(json!({"type": "success"}))
    }

    /// Adds `RUN_FINISHED` with success and the calls that the client must answer.
    pub fn pending(self, call_ids: &[String]) -> FakeRun {
        self.ended(json!({"type": "success", "pendingToolCallIds": call_ids}))
    }

    /// Adds `RUN_FINISHED` with interrupts: `{"id": …, "reason": …, "message": …, "toolCallId": …}`.
    pub fn interrupted(self, interrupts: Vec<Value>) -> FakeRun {
        self.ended(json!({"type": "interrupt", "interrupts": interrupts}))
    }

    fn ended(self, outcome: Value) -> FakeRun {
        let event = json!({
            "type": "RUN_FINISHED",
            "threadId": self.thread_id,
            "runId": self.run_id,
            "outcome": outcome,
        });
        self.raw_event(event)
    }

    /// `RUN_ERROR`
    pub fn error(self, message: &str, code: Option<&str>) -> FakeRun {
        let mut event = json!({"type": "RUN_ERROR", "message": message});
        if let Some(code) = code {
            event["code"] = json!(code);
        }
        self.raw_event(event)
    }

    /// Converts the run to a reply of type `text/event-stream`.
    pub fn reply(self) -> FakeReply {
        FakeReply { body: self.steps, ..FakeReply::sse() }
    }
}

impl From<FakeRun> for FakeReply {
    fn from(run: FakeRun) -> FakeReply {
        run.reply()
    }
}

fn deltas(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(DELTA_CHARS).map(|part| part.iter().collect()).collect()
}

fn halves(text: &str) -> (&str, &str) {
    text.split_at(text.floor_char_boundary(text.len() / 2))
}
