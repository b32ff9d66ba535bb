//! Read-only views of the conversation for tests: snapshots of the recorded data.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hotseat_document::is_blank;
use hotseat_trace as trace;
use serde_json::Value;

use hotseat_checks::CheckStrength;
use hotseat_engine::session::CheckResult;

/// What the trace does not contain about turns, by their numbers.
#[derive(Debug, Clone, Default)]
pub(super) struct TurnNotes {
    /// Options that were sent to the agent.
    pub options: BTreeMap<usize, Value>,
    /// Turns for which an agent in the test program returned an error in place of its tool calls.
    pub without_calls: BTreeSet<usize>,
}

/// Notes about turns, shared with what is read from them.
pub(super) type SharedTurnNotes = Arc<TurnNotes>;

impl TurnNotes {
    /// Returns why the tool calls of some turn are unknown, if they are.
    pub(super) fn unknown_calls(&self, turns: RangeInclusive<usize>) -> Option<String> {
        let turn = self.without_calls.iter().find(|number| turns.contains(number))?;
        Some(format!(
            "the tool calls of turn {turn} are unknown, because the agent returned an error in place of them: let it return `CodeAgentAnswer::default()` with its calls and `.ending_with_error(…)`"
        ))
    }
}

/// Why tool calls cannot be read at the moment, if they cannot.
pub(super) type UnseenReason = Option<Arc<str>>;

/// Returns a list of tool calls. Panics if they cannot be read.
#[track_caller]
fn readable<'a, T>(calls: &'a [T], unseen: &UnseenReason) -> &'a [T] {
    match unseen {
        None => calls,
        Some(reason) => panic!("{reason}"),
    }
}

/// Author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The user: written, simulated or human.
    User,
    /// The agent.
    Agent,
    /// A tool result. Only agents in the test program receive it.
    Tool,
    /// A system message. Only agents in the test program receive it, if the case has initial messages.
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
    /// The author.
    pub role: Role,
    /// The text.
    pub content: String,
    /// Start of the user turn or end of the agent turn; none if unknown.
    pub timestamp: Option<SystemTime>,
    /// Options that were sent with a user message; null if there are none.
    pub metadata: Value,
    pub(super) tool_calls: Vec<ToolCall>,
    pub(super) unseen_calls: UnseenReason,
}

impl Message {
    /// Returns true if the user is the author.
    pub fn is_user(&self) -> bool {
        self.role == Role::User
    }

    /// Returns true if the agent is the author.
    pub fn is_agent(&self) -> bool {
        self.role == Role::Agent
    }

    /// Returns the tool calls of the turn. Only the last message of an agent turn has them.
    ///
    /// # Panics
    /// If they are not visible, as [`Turn::tool_calls`].
    #[track_caller]
    pub fn tool_calls(&self) -> &[ToolCall] {
        readable(&self.tool_calls, &self.unseen_calls)
    }

    /// Returns true if it has a call of this tool.
    ///
    /// # Panics
    /// If tool calls are not visible, as [`Turn::tool_calls`].
    #[track_caller]
    pub fn has_tool_call(&self, name: &str) -> bool {
        self.tool_calls().iter().any(|call| call.is_named(name))
    }
}

/// A tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// Identifier, unique in the conversation.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Arguments as JSON; a string if the agent sent invalid JSON.
    pub arguments: Value,
    /// Result of the tool; none if unknown or if the tool failed.
    pub result: Option<Value>,
    /// Error of the tool, if it failed.
    pub error: Option<String>,
    /// The MCP server of the test that received the call, and its tool there.
    pub server_tool: Option<ServerTool>,
    /// Names under which agents report this tool of an MCP server of the test, as `mcp__bank__charge_card`.
    pub other_names: Vec<String>,
}

/// A tool of an MCP server of the test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerTool {
    /// Name of the server.
    pub server: String,
    /// Name of the tool at the server.
    pub tool: String,
}

impl ToolCall {
    /// Returns an argument, or null if it is missing.
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
    ///     server_tool: None,
    ///     other_names: Vec::new(),
    /// };
    /// assert_eq!(call.argument("room"), "Blue Room");
    /// assert!(call.argument("time").is_null());
    /// ```
    pub fn argument(&self, name: &str) -> Value {
        self.arguments.get(name).cloned().unwrap_or(Value::Null)
    }

    /// Returns true if this tool was called: by the name that the agent reports, or by another name of the tool.
    pub fn is_named(&self, tool: &str) -> bool {
        self.name == tool || self.other_names.iter().any(|name| name == tool)
    }

    fn from_trace(call: &trace::AgentToolCall) -> ToolCall {
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
            server_tool: call.server_call.as_ref().map(|received| ServerTool {
                server: received.server.to_string(),
                tool: received.tool.to_string(),
            }),
            other_names: call.other_names(),
        }
    }
}

/// A user input and everything that the agent did in response.
///
/// Reading the tool calls panics if they are not visible: if neither the protocol of the agent nor a service of the
/// test shows them. An empty list would say that there were none.
#[derive(Clone)]
pub struct Turn {
    turn: Arc<trace::ConversationTurn>,
    /// Options that were sent with the user message; null if there are none.
    options: Value,
    unseen_calls: UnseenReason,
}

impl Turn {
    pub(super) fn new(
        turn: Arc<trace::ConversationTurn>,
        notes: &SharedTurnNotes,
        unseen_calls: UnseenReason,
    ) -> Turn {
        let options = notes.options.get(&turn.number).cloned().unwrap_or(Value::Null);
        let unknown = || Some(notes.unknown_calls(turn.number..=turn.number)?.into());
        let unseen_calls = unseen_calls.or_else(unknown);
        Turn { turn, options, unseen_calls }
    }

    #[track_caller]
    fn calls(&self) -> &[trace::AgentToolCall] {
        readable(&self.turn.tool_calls, &self.unseen_calls)
    }

    /// Returns the number of the turn, from 1.
    pub fn number(&self) -> usize {
        self.turn.number
    }

    /// Returns the topic, or none if topics are not tracked.
    pub fn topic(&self) -> Option<String> {
        self.turn.topic.as_deref().map(str::to_string)
    }

    /// Returns the user message.
    pub fn user_message(&self) -> Message {
        Message {
            role: Role::User,
            content: self.turn.user.clone().unwrap_or_default(),
            timestamp: system_time(self.turn.started_at),
            metadata: self.options.clone(),
            tool_calls: Vec::new(),
            unseen_calls: None,
        }
    }

    /// Returns the response of the agent.
    pub fn agent_response(&self) -> AgentResponse {
        AgentResponse { turn: self.clone() }
    }

    /// Returns the texts of all agent messages, joined by newlines.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.turn.messages.iter().map(|message| &*message.content).collect();
        texts.join("\n")
    }

    /// Returns the tool calls, in the order in which they started.
    #[track_caller]
    pub fn tool_calls(&self) -> Vec<ToolCall> {
        self.calls().iter().map(ToolCall::from_trace).collect()
    }

    /// Returns true if the agent called this tool.
    #[track_caller]
    pub fn has_tool_call(&self, name: &str) -> bool {
        self.calls().iter().any(|call| call.is_named(name))
    }

    /// Returns all calls of this tool.
    #[track_caller]
    pub fn tool_calls_for(&self, name: &str) -> Vec<ToolCall> {
        self.calls().iter().filter(|call| call.is_named(name)).map(ToolCall::from_trace).collect()
    }

    /// Returns the first call of this tool.
    #[track_caller]
    pub fn tool_call(&self, name: &str) -> Option<ToolCall> {
        self.calls().iter().find(|call| call.is_named(name)).map(ToolCall::from_trace)
    }

    /// Returns the duration from the input to the end of the turn.
    pub fn duration(&self) -> Duration {
        self.turn.duration()
    }

    /// Returns the recorded turn with all its data.
    pub fn recorded(&self) -> &trace::ConversationTurn {
        &self.turn
    }

    /// Returns the messages of user and agent.
    pub fn messages(&self) -> Vec<Message> {
        let mut messages = Vec::new();
        if self.turn.user.is_some() {
            messages.push(self.user_message());
        }
        let mut contents: Vec<String> =
            self.turn.messages.iter().map(|message| message.content.to_string()).collect();
        if contents.is_empty() && !self.turn.tool_calls.is_empty() {
            contents.push(String::new());
        }
        let mut said: Vec<Message> = contents
            .into_iter()
            .map(|content| Message {
                role: Role::Agent,
                content,
                timestamp: system_time(self.turn.ended_at.unwrap_or(self.turn.started_at)),
                metadata: Value::Null,
                tool_calls: Vec::new(),
                unseen_calls: self.unseen_calls.clone(),
            })
            .collect();
        if let Some(last) = said.last_mut() {
            last.tool_calls = self.turn.tool_calls.iter().map(ToolCall::from_trace).collect();
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

/// The response of the agent in a turn.
#[derive(Debug, Clone)]
pub struct AgentResponse {
    turn: Turn,
}

impl AgentResponse {
    /// Returns the texts of all messages, joined by newlines.
    pub fn text(&self) -> String {
        self.turn.text()
    }

    /// Returns the number of characters.
    pub fn len(&self) -> usize {
        self.text().chars().count()
    }

    /// Returns true if the agent sent no text with a visible character.
    pub fn is_empty(&self) -> bool {
        is_blank(&self.text())
    }

    /// Returns the tool calls.
    #[track_caller]
    pub fn tool_calls(&self) -> Vec<ToolCall> {
        self.turn.tool_calls()
    }

    /// Returns true if the agent called this tool.
    #[track_caller]
    pub fn has_tool_call(&self, name: &str) -> bool {
        self.turn.has_tool_call(name)
    }

    /// Returns all calls of this tool.
    #[track_caller]
    pub fn tool_calls_for(&self, name: &str) -> Vec<ToolCall> {
        self.turn.tool_calls_for(name)
    }

    /// Returns true if the text contains `text`, case-sensitively.
    pub fn includes(&self, text: &str) -> bool {
        self.text().contains(text)
    }

    /// Returns the turn of the response.
    pub fn turn(&self) -> &Turn {
        &self.turn
    }
}

impl fmt::Display for AgentResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// Consecutive turns in one topic.
#[derive(Debug, Clone)]
pub struct TopicVisit {
    /// The topic.
    pub topic: String,
    /// Number of the visit to this topic, from 1.
    pub number: usize,
    /// The turns.
    pub turns: Vec<Turn>,
}

/// Result of a check.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// True for `expect!`, false for `evaluate!`.
    pub hard: bool,
    /// Description of the assertion.
    pub description: String,
    /// True if the check passed.
    pub passed: bool,
    /// Actual value; for a judged check, the reasoning of the judge.
    pub found: String,
    /// Error, if the check could not be evaluated.
    pub error: Option<String>,
    /// Turn of the check, from 1; none for the whole conversation and plain values.
    pub turn: Option<usize>,
    /// Topic that declares the assertion, if any.
    pub topic: Option<String>,
    /// Reasoning of the judge, if any.
    pub reasoning: Option<String>,
}

impl Evaluation {
    pub(super) fn from_result(checked: &CheckResult) -> Evaluation {
        Evaluation {
            hard: checked.check.strength == CheckStrength::Hard,
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

fn system_time(millis: trace::Millis) -> Option<SystemTime> {
    let millis = u64::try_from(millis).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(millis))
}
