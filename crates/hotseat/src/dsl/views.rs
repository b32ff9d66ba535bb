//! What was said and done, as tests read it. Everything here is a copy of what had been recorded when it was asked for.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hotseat_trace as trace;
use serde_json::Value;

use super::line::OptionsOfTurns;
use crate::checks::Strength;
use crate::session::Checked;

/// Who said a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The user: written, simulated, or a person.
    User,
    /// The agent.
    Agent,
    /// A tool that the agent called; agents in the program hear what it returned.
    Tool,
    /// Whoever set the agent up; agents in the program hear it where a case begins with it.
    System,
}

/// A message of the conversation.
///
/// ```no_run
/// # use hotseat::dsl::prelude::*;
/// # fn a(g: &mut Group) {
/// g.it("lets the agent have the last word", async |t| {
///     t.user.says("Hi").await;
///     let last = t.conversation.messages().pop().unwrap();
///     expect!(last.role, eq(Role::Agent));
///     expect!(last.content, not(is_empty()));
/// });
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Who said it.
    pub role: Role,
    /// What was said.
    pub content: String,
    /// When the user began, or the agent was done; none where nobody knows.
    pub timestamp: Option<SystemTime>,
    /// The tools that were called in the turn of this message; only the last message of a turn of the agent has them.
    pub tool_calls: Vec<ToolCall>,
    /// What was told beside it: of what the user says, the options that it was said with; null where there are none.
    pub metadata: Value,
}

impl Message {
    /// Whether the user said it.
    pub fn is_user(&self) -> bool {
        self.role == Role::User
    }

    /// Whether the agent said it.
    pub fn is_agent(&self) -> bool {
        self.role == Role::Agent
    }

    /// Whether a tool of this name was called with it.
    pub fn has_tool_call(&self, name: &str) -> bool {
        self.tool_calls.iter().any(|call| call.name == name)
    }
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// Its id, unique in the conversation.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments as JSON; text where what the agent sent is not JSON.
    pub arguments: Value,
    /// What the tool returned; none where that is not known, or the tool failed.
    pub result: Option<Value>,
    /// Why the tool failed, if it did.
    pub error: Option<String>,
}

impl ToolCall {
    /// One of its arguments; null where it has none of this name.
    ///
    /// ```
    /// use hotseat::dsl::ToolCall;
    /// use serde_json::json;
    ///
    /// let call = ToolCall {
    ///     id: "1".into(),
    ///     name: "book_room".into(),
    ///     arguments: json!({"room": "Blue Room"}),
    ///     result: None,
    ///     error: None,
    /// };
    /// assert_eq!(call.argument("room"), "Blue Room");
    /// assert!(call.argument("time").is_null());
    /// ```
    pub fn argument(&self, name: &str) -> Value {
        self.arguments.get(name).cloned().unwrap_or(Value::Null)
    }

    fn of(call: &trace::ToolCall) -> ToolCall {
        let text = |result: &trace::ToolResult| result.text();
        let (failed, fine): (Option<_>, Option<_>) = match &call.result {
            Some(result) if result.failed => (Some(text(result)), None),
            Some(result) => (None, Some(result.value.clone())),
            None => (None, None),
        };
        ToolCall {
            id: call.id.to_string(),
            name: call.name.to_string(),
            arguments: call.arguments.clone(),
            result: fine,
            error: failed,
        }
    }
}

/// One input of the user and everything that the agent did until it was done.
#[derive(Clone)]
pub struct Turn {
    turn: Arc<trace::Turn>,
    /// What the agent was told beside what the user said; null where that is nothing.
    options: Value,
}

impl Turn {
    pub(super) fn new(turn: Arc<trace::Turn>, options: &OptionsOfTurns) -> Turn {
        let options = options.get(&turn.number).cloned();
        Turn { turn, options: options.unwrap_or(Value::Null) }
    }

    /// Its place in the conversation, from 1.
    pub fn number(&self) -> usize {
        self.turn.number
    }

    /// The topic that it belongs to; none where topics are not followed.
    pub fn topic(&self) -> Option<String> {
        self.turn.topic.as_deref().map(str::to_string)
    }

    /// What the user said.
    pub fn user_message(&self) -> Message {
        Message {
            role: Role::User,
            content: self.turn.user.clone().unwrap_or_default(),
            timestamp: time(self.turn.started_at),
            tool_calls: Vec::new(),
            metadata: self.options.clone(),
        }
    }

    /// What the agent answered.
    pub fn agent_response(&self) -> Response {
        Response { turn: self.clone() }
    }

    /// Everything that the agent said in it, message by message, joined by line ends.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.turn.messages.iter().map(|message| message.content.as_str()).collect();
        texts.join("\n")
    }

    /// The tools that the agent called, in the order in which the calls began.
    pub fn tool_calls(&self) -> Vec<ToolCall> {
        self.turn.tool_calls.iter().map(ToolCall::of).collect()
    }

    /// Whether the agent called this tool.
    pub fn has_tool_call(&self, name: &str) -> bool {
        self.turn.tool_calls.iter().any(|call| *call.name == *name)
    }

    /// All calls of this tool.
    pub fn tool_calls_for(&self, name: &str) -> Vec<ToolCall> {
        self.turn.tool_calls.iter().filter(|call| *call.name == *name).map(ToolCall::of).collect()
    }

    /// The first call of this tool.
    pub fn tool_call(&self, name: &str) -> Option<ToolCall> {
        self.turn.tool_calls.iter().find(|call| *call.name == *name).map(ToolCall::of)
    }

    /// How long it took, from the input to the end.
    pub fn duration(&self) -> Duration {
        self.turn.duration()
    }

    /// The turn as it was recorded, with everything that is known of it.
    pub fn recorded(&self) -> &trace::Turn {
        &self.turn
    }

    /// What the user said and what the agent said, as messages.
    pub fn messages(&self) -> Vec<Message> {
        let mut messages = Vec::new();
        if self.turn.user.is_some() {
            messages.push(self.user_message());
        }
        let mut contents: Vec<String> =
            self.turn.messages.iter().map(|message| message.content.clone()).collect();
        if contents.is_empty() && !self.turn.tool_calls.is_empty() {
            contents.push(String::new());
        }
        let mut said: Vec<Message> = contents
            .into_iter()
            .map(|content| Message {
                role: Role::Agent,
                content,
                timestamp: time(self.turn.ended_at.unwrap_or(self.turn.started_at)),
                tool_calls: Vec::new(),
                metadata: Value::Null,
            })
            .collect();
        if let Some(last) = said.last_mut() {
            last.tool_calls = self.tool_calls();
        }
        messages.extend(said);
        messages
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calls: Vec<&str> = self.turn.tool_calls.iter().map(|call| &*call.name).collect();
        f.debug_struct("Turn")
            .field("number", &self.turn.number)
            .field("user", &self.turn.user)
            .field("agent", &self.text())
            .field("tool_calls", &calls)
            .finish()
    }
}

/// What the agent answered in a turn.
#[derive(Debug, Clone)]
pub struct Response {
    turn: Turn,
}

impl Response {
    /// Everything that the agent said, joined by line ends.
    pub fn text(&self) -> String {
        self.turn.text()
    }

    /// How many characters that is.
    pub fn len(&self) -> usize {
        self.text().chars().count()
    }

    /// Whether the agent said nothing.
    pub fn is_empty(&self) -> bool {
        self.text().is_empty()
    }

    /// The tools that it called.
    pub fn tool_calls(&self) -> Vec<ToolCall> {
        self.turn.tool_calls()
    }

    /// Whether it called this tool.
    pub fn has_tool_call(&self, name: &str) -> bool {
        self.turn.has_tool_call(name)
    }

    /// All calls of this tool.
    pub fn tool_calls_for(&self, name: &str) -> Vec<ToolCall> {
        self.turn.tool_calls_for(name)
    }

    /// Whether it said this, in these letters.
    pub fn includes(&self, text: &str) -> bool {
        self.text().contains(text)
    }

    /// The turn that it ends.
    pub fn turn(&self) -> &Turn {
        &self.turn
    }
}

impl fmt::Display for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// Turns in a row that belong to one topic.
#[derive(Debug, Clone)]
pub struct TopicVisit {
    /// The topic.
    pub topic: String,
    /// Which visit of this topic it is, from 1.
    pub number: usize,
    /// Its turns.
    pub turns: Vec<Turn>,
}

/// What a check came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// Whether it was `expect!`, which decides, or `evaluate!`, which is only measured.
    pub hard: bool,
    /// What was asserted.
    pub description: String,
    /// Whether it holds.
    pub passed: bool,
    /// What was found; of a check that a judge decided, its reasoning.
    pub found: String,
    /// Why it could not be decided, if it could not.
    pub error: Option<String>,
    /// The turn that it looked at, from 1; none for the whole conversation and for plain values.
    pub turn: Option<usize>,
    /// The topic that asserts it, where one does.
    pub topic: Option<String>,
    /// Why a judge has decided as it did, where one has.
    pub reasoning: Option<String>,
}

impl Evaluation {
    pub(super) fn of(checked: &Checked) -> Evaluation {
        Evaluation {
            hard: checked.check.strength == Strength::Hard,
            description: checked.verdict.expected.clone(),
            passed: checked.verdict.passed,
            found: checked.verdict.actual.clone(),
            error: checked.error.clone(),
            turn: checked.turn,
            topic: checked.topic.as_ref().map(|visit| visit.topic.to_string()),
            reasoning: checked.opinion.as_ref().and_then(|opinion| opinion.reasoning.clone()),
        }
    }
}

fn time(millis: trace::Millis) -> Option<SystemTime> {
    let millis = u64::try_from(millis).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(millis))
}
