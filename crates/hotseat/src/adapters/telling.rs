//! What an agent says and does in a turn, recorded in the same way by every adapter whose protocol has no events of
//! its own for it.

use std::collections::HashMap;
use std::sync::Arc;

use hotseat_trace::{
    AgentRunFailed, AgentRunFinished, AgentRunStarted, AssistantMessage, AwaitingInput, ErrorInfo, Failure,
    FailureKind, Note, Offset, Origin, Raw, ReasoningMessage, StateSnapshot, ToolArguments, ToolCompleted,
    ToolFailed, ToolInvoked,
};
use serde_json::Value;
use tokio::time::Instant;

use super::json_text::{joined, readable};

use crate::session::{Message, MessageCall, Part, Recorder, Role, ToolReply};

/// Records what an agent says and does in one turn.
pub(super) struct Telling<'a> {
    turn_id: Arc<str>,
    recorder: &'a mut Recorder,
    /// What it has said and done so far, as messages of a conversation.
    told: Vec<Message>,
    /// Where in these each call stands: message, and place among its calls.
    places: HashMap<Arc<str>, (usize, usize)>,
    /// How often each id was given to a call that had to get another one.
    numbers: HashMap<String, usize>,
}

/// The arguments of a call as they were received. None at all are an empty object.
#[derive(Clone)]
pub(super) enum Arguments {
    Json(Value),
    /// What should have been JSON and is not.
    Broken(String),
}

impl<'a> Telling<'a> {
    pub(super) fn new(turn_id: Arc<str>, recorder: &'a mut Recorder) -> Self {
        Telling { turn_id, recorder, told: Vec::new(), places: HashMap::new(), numbers: HashMap::new() }
    }

    pub(super) fn now(&self) -> Offset {
        self.recorder.now()
    }

    /// What is told from now on arrived then.
    pub(super) fn as_of(&mut self, at: Instant) {
        self.recorder.as_of(at);
    }

    /// What is told from now on happens when it is told.
    pub(super) fn as_of_now(&mut self) {
        self.recorder.as_of_now();
    }

    pub(super) fn raw(&mut self, event: Value) {
        self.recorder.emit(Raw { turn_id: self.turn_id.clone(), event });
    }

    pub(super) fn run_started(&mut self, run_id: &Arc<str>) {
        let turn_id = self.turn_id.clone();
        self.recorder.emit(AgentRunStarted { turn_id, run_id: run_id.clone(), protocol_version: None });
    }

    pub(super) fn run_finished(
        &mut self,
        run_id: &Arc<str>,
        usage: Option<Value>,
        finish_reason: Option<Arc<str>>,
    ) {
        self.recorder.emit(AgentRunFinished {
            turn_id: self.turn_id.clone(),
            run_id: run_id.clone(),
            outcome: "success".into(),
            result: None,
            usage,
            finish_reason,
        });
    }

    /// Records an error that the agent told of itself.
    pub(super) fn run_failed(&mut self, error: &ErrorInfo) {
        self.recorder.emit(AgentRunFailed { turn_id: self.turn_id.clone(), error: error.clone() });
    }

    /// Records a message that began at `started`, and whether it called tools too, where that is known. An empty one is
    /// none.
    pub(super) fn message(&mut self, content: String, started: Option<Offset>, has_tool_use: Option<bool>) {
        let content = joined(content);
        if content.is_empty() {
            return;
        }
        self.told.push(message(Role::Assistant, &content));
        self.recorder.emit(AssistantMessage {
            turn_id: self.turn_id.clone(),
            message_id: uuid::Uuid::new_v4().to_string().into(),
            content,
            has_tool_use,
            started_us: started,
            origin: Origin::Stream,
            subagent: None,
        });
    }

    pub(super) fn reasoning(&mut self, content: String) {
        if content.is_empty() {
            return;
        }
        let message_id = uuid::Uuid::new_v4().to_string().into();
        let (turn_id, content) = (self.turn_id.clone(), joined(content));
        self.recorder.emit(ReasoningMessage { turn_id, message_id, content, subagent: None });
    }

    /// Records that a call began, and returns its id in the trace: the agent's, unless an earlier call has it.
    pub(super) fn call(&mut self, id: &str, name: &str, started: Option<Offset>) -> Arc<str> {
        let known = |id: &str| self.recorder.conversation().call(id).is_some();
        let id = if id.is_empty() { "call" } else { id };
        let mut tool_call_id = id.to_string();
        if known(id) {
            let number = self.numbers.entry(id.to_string()).or_insert(1);
            while known(&tool_call_id) {
                *number += 1;
                tool_call_id = format!("{id}#{number}");
            }
        }
        let called =
            MessageCall { id: tool_call_id.clone(), name: name.to_string(), arguments: "{}".to_string() };
        match self.told.last_mut() {
            Some(last) if last.role == Role::Assistant => last.tool_calls.push(called),
            _ => {
                let calling =
                    Message { tool_calls: vec![called], content: Vec::new(), ..message(Role::Assistant, "") };
                self.told.push(calling);
            }
        }
        let tool_call_id: Arc<str> = tool_call_id.into();
        if let Some(message) = self.told.last() {
            let place = (self.told.len() - 1, message.tool_calls.len() - 1);
            self.places.insert(tool_call_id.clone(), place);
        }
        self.recorder.emit(ToolInvoked {
            turn_id: self.turn_id.clone(),
            tool_call_id: tool_call_id.clone(),
            tool_name: name.into(),
            target_type: None,
            target_id: None,
            r#async: false,
            input: None,
            started_us: started,
            origin: Origin::Stream,
            subagent: None,
            message_id: None,
        });
        tool_call_id
    }

    pub(super) fn arguments(&mut self, tool_call_id: &Arc<str>, arguments: Arguments) {
        if let Some(&(message, place)) = self.places.get(tool_call_id) {
            self.told[message].tool_calls[place].arguments = arguments.text();
        }
        let (input, text) = match arguments {
            Arguments::Json(input) => (Some(input), None),
            Arguments::Broken(text) => {
                self.note(format!("the arguments of tool call {tool_call_id} are not JSON"));
                (None, Some(text))
            }
        };
        let (turn_id, tool_call_id) = (self.turn_id.clone(), tool_call_id.clone());
        self.recorder.emit(ToolArguments { turn_id, tool_call_id, input, text });
    }

    pub(super) fn result(&mut self, tool_call_id: &Arc<str>, reply: ToolReply, origin: Origin) {
        let (turn_id, tool_call_id) = (self.turn_id.clone(), tool_call_id.clone());
        let said = match &reply {
            ToolReply::Content(output) => message(Role::Tool, &text_of_output(output)),
            ToolReply::Error(error) => message(Role::Tool, error),
        };
        self.told.push(Message { tool_call_id: Some(tool_call_id.to_string()), ..said });
        match reply {
            ToolReply::Content(output) => {
                self.recorder.emit(ToolCompleted { turn_id, tool_call_id, output, origin });
            }
            ToolReply::Error(message) => {
                let error = ErrorInfo { code: None, message, retriable: None };
                self.recorder.emit(ToolFailed { turn_id, tool_call_id, error, origin });
            }
        }
    }

    /// Whether a call has a result.
    pub(super) fn is_answered(&self, tool_call_id: &str) -> bool {
        self.recorder.conversation().call(tool_call_id).is_some_and(|call| call.result.is_some())
    }

    pub(super) fn awaiting(&mut self, awaiting: bool, hint: Option<String>) {
        self.recorder.emit(AwaitingInput { turn_id: self.turn_id.clone(), awaiting, hint });
    }

    pub(super) fn state(&mut self, state: Value) {
        self.recorder.emit(StateSnapshot { turn_id: self.turn_id.clone(), state });
    }

    pub(super) fn note(&mut self, message: impl Into<String>) {
        let (turn_id, message) = (self.turn_id.clone(), message.into());
        self.recorder.emit(Note { turn_id, message, event: None });
    }

    /// What the agent has said and done in this turn, as messages of a conversation.
    ///
    /// # Errors
    /// When that is nothing, and it has not called a tool either: an answer that is empty is none.
    pub(super) fn told(self) -> Result<Vec<Message>, Failure> {
        if !self.told.iter().any(|message| message.role == Role::Assistant) {
            let message = "the agent answered with nothing: no text and no tool call";
            return Err(Failure::new(FailureKind::ProtocolError, message));
        }
        Ok(self.told)
    }
}

fn message(role: Role, said: &str) -> Message {
    let content = vec![Part::Text(said.to_string())];
    Message { role, content, name: None, tool_calls: Vec::new(), tool_call_id: None }
}

impl Arguments {
    fn none() -> Self {
        Arguments::Json(Value::Object(serde_json::Map::new()))
    }

    /// Arguments that were received as text. No text at all means no arguments, which is an empty object.
    pub(super) fn of_text(text: String) -> Self {
        let text = joined(text);
        if text.trim().is_empty() {
            return Arguments::none();
        }
        match hotseat_document::json::read_value(&readable(&text)) {
            Ok(value) => Arguments::Json(value),
            Err(_) => Arguments::Broken(text),
        }
    }

    /// Arguments that were received as JSON, or as JSON in a text.
    pub(super) fn of_json(value: Value) -> Self {
        match value {
            Value::Null => Arguments::none(),
            Value::String(text) => Arguments::of_text(text),
            value => Arguments::Json(value),
        }
    }

    /// The arguments as messages of a conversation have them.
    fn text(&self) -> String {
        match self {
            Arguments::Json(value) => value.to_string(),
            Arguments::Broken(text) => text.clone(),
        }
    }

    /// The arguments as checks and scripted answers see them.
    pub(super) fn value(&self) -> Value {
        match self {
            Arguments::Json(value) => value.clone(),
            Arguments::Broken(text) => Value::String(text.clone()),
        }
    }
}

/// A result as the text that goes over a wire that knows only text.
pub(super) fn text_of_output(output: &Value) -> String {
    match output {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
