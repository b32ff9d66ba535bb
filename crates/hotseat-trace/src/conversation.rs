//! A trace folded into turns, messages and tool calls, for checks and reports.

mod fold;
mod scope;

pub use scope::{AgentClock, TurnScope};

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::server_calls::{
    ServerCall, canonical_arguments, is_reported_tool_name, reported_tool_names, tool_at,
};
use crate::{
    ErrorInfo, LlmFaultInjected, Millis, Origin, PatchBudget, RoleAnswered, SimulationEnded, TimeOffset,
    ToolCompleted, ToolFailed, TopicGraph, TopicStep, UsageTotals, plain_text,
};

/// Code of a call of a model whose reply could not be read.
pub const UNREADABLE_REPLY: &str = "decode";

/// State of one conversation, folded from its events.
#[derive(Debug, Clone, Default)]
pub struct TracedConversation {
    /// Turns in order.
    pub turns: Vec<ConversationTurn>,
    /// The agent's shared state, as last seen.
    pub state: Option<Arc<Value>>,
    /// The declared topic graph. None if topics are not tracked.
    pub topics: Option<Arc<TopicGraph>>,
    /// The current topic. None if topics are not tracked.
    pub current_topic: Option<Arc<str>>,
    /// Declared spans of simulated users.
    pub simulations: Vec<SimulationSpan>,
    /// Use of the MCP servers and models of the test.
    pub services: ServiceUse,
    /// What shows the tool calls of the agent.
    pub call_visibility: CallVisibility,
    /// Names of the MCP servers of the test.
    pub test_servers: Arc<[Arc<str>]>,
    /// Remaining budget for copies made by state patches.
    patch_budget: PatchBudget,
    /// Position of each reported tool call: turn index and index in the turn.
    calls: HashMap<Arc<str>, (usize, usize)>,
    /// Position of each call at an MCP server that is not joined yet: turn index and index in the turn.
    server_calls: HashMap<Arc<str>, (usize, usize)>,
    /// Position of each joined call at an MCP server: turn index and index in the turn. The agent may use the same ids.
    joined_server_calls: HashMap<Arc<str>, (usize, usize)>,
    /// Turns of sub-agents, mapped to the index of the calling turn and the sub-agent's id.
    subagent_turns: HashMap<Arc<str>, (usize, Option<Arc<str>>)>,
}

/// What shows the tool calls of an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CallVisibility {
    /// Its protocol.
    #[default]
    Protocol,
    /// The MCP servers and models of the test, as far as the agent uses them.
    Services,
    /// Nothing.
    Hidden,
}

/// Why the tool calls of an agent are not visible. A list of them would be empty, as if there were none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnseenCalls<'a> {
    /// Nothing shows them.
    Hidden,
    /// Only services of the test show them, and the agent used none of them so far.
    UnusedServices,
    /// A reply of a model, which could not be read, may have had some: the problem.
    UnreadableReply(&'a str),
}

/// What the agent used of the MCP servers and models of the test. They show its tool calls if its protocol does not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServiceUse {
    /// Names of the MCP servers to which the agent has connected.
    pub connected: BTreeSet<Arc<str>>,
    /// True once the agent has called a model.
    pub has_called_model: bool,
    /// Problem of the first reply of a model that could not be read.
    pub unreadable_reply: Option<String>,
}

impl ServiceUse {
    /// Remembers the failure of a call of a model if the reply could not be read.
    fn add_failure(&mut self, error: &ErrorInfo) {
        if error.code.as_deref() == Some(UNREADABLE_REPLY) {
            self.unreadable_reply.get_or_insert_with(|| error.message.clone());
        }
    }
}

/// One user input and everything up to the end of the agent's answer.
#[derive(Debug, Clone, Default)]
pub struct ConversationTurn {
    /// Id in the trace.
    pub id: Arc<str>,
    /// Number in the conversation, from 1.
    pub number: usize,
    /// Source of the input: `hotseat` (written in the case), `simulator`, `person`, or the id of a user.
    pub caller: Arc<str>,
    /// Text of the user input.
    pub user: Option<String>,
    /// Names of the attachments.
    pub attachments: Vec<String>,
    /// When the input was sent.
    pub started: TimeOffset,
    /// When the turn ended or was abandoned.
    pub ended: Option<TimeOffset>,
    /// When the input was sent, on the wall clock.
    pub started_at: Millis,
    /// When the turn ended, on the wall clock.
    pub ended_at: Option<Millis>,
    /// Outcome of the turn.
    pub outcome: TurnOutcome,
    /// Messages of the agent, in order.
    pub messages: Vec<AgentMessage>,
    /// Reasoning of the agent, if it reports any.
    pub reasoning: Vec<ReasoningText>,
    /// Tool calls in the order in which they began. When the turn ends, calls that only an MCP server saw are added, and those that
    /// servers saw are put into the order of their arrival.
    pub tool_calls: Vec<AgentToolCall>,
    /// Calls at MCP servers of the test, until the turn ends.
    server_calls: Vec<ServerCall>,
    /// Interrupts, in order.
    pub interrupts: Vec<AgentInterrupt>,
    /// Outcome that the agent reported for its last run, if neither success nor an interrupt.
    pub run_outcome: Option<Arc<str>>,
    /// The error the agent reported for its run.
    pub run_error: Option<ErrorInfo>,
    /// Usage as reported by the agent, one entry per run.
    pub reported_usage: Vec<Value>,
    /// Token usage of the turn including sub-agents. None if not reported.
    pub usage_totals: Option<UsageTotals>,
    /// Finish reason of the agent's last reply, as sent by its protocol or mapped to the chat completions
    /// names.
    pub finish_reason: Option<Arc<str>>,
    /// Awaiting-input report of the agent. None if it sent none.
    pub awaiting: Option<AwaitingReport>,
    /// Faults that served models injected into calls, in order.
    pub model_faults: Vec<LlmFaultInjected>,
    /// Protocol notes for the user.
    pub notes: Vec<String>,
    /// The agent's shared state, as last seen in this turn.
    pub state: Option<Arc<Value>>,
    /// Result of the last run, if the protocol has results.
    pub result: Option<Value>,
    /// Answers of roles (simulator, judges) for this turn.
    pub roles: Vec<RoleAnswered>,
    /// Topic of the turn. None if topics are not tracked.
    pub topic: Option<Arc<str>>,
    /// Reason for the topic. None if it was inherited from the previous turn.
    pub topic_step: Option<TopicStep>,
}

/// Turns started by a simulated user.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulationSpan {
    /// Number of the first turn, from 1.
    pub first_turn: usize,
    /// Goal of the user.
    pub goal: Option<String>,
    /// Maximum number of inputs.
    pub max_turns: usize,
    /// How the simulation ended. None while it is running.
    pub ended: Option<SimulationEnded>,
}

/// Report of an agent on whether it waits for user input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwaitingReport {
    /// True if the agent waits.
    pub awaiting: bool,
    /// Expected input, in the agent's words.
    pub hint: Option<String>,
}

/// Outcome of a turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum TurnOutcome {
    /// The turn has not ended.
    #[default]
    Open,
    /// The agent finished the turn.
    Completed,
    /// The turn could not be completed.
    Failed(ErrorInfo),
}

/// A message of the agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentMessage {
    /// Number of its event in the trace.
    pub sequence: u64,
    /// Its id.
    pub id: Arc<str>,
    /// The whole text.
    pub content: Arc<str>,
    /// Arrival of the first part, if known.
    pub started: Option<TimeOffset>,
    /// When it was complete.
    pub ended: TimeOffset,
    /// Id of the sub-agent that wrote the message.
    pub subagent: Option<Arc<str>>,
    /// True if the message also called tools; None if unknown when it ended.
    pub has_tool_use: Option<bool>,
}

impl AgentMessage {
    /// Its place among what the agent said and did: its start, and its event.
    fn begun(&self) -> (TimeOffset, u64) {
        (self.started.unwrap_or(self.ended), self.sequence)
    }
}

/// A message or a tool call of a turn.
#[derive(Debug, Clone, Copy)]
pub enum TurnItem<'a> {
    /// A message of the agent.
    Message(&'a AgentMessage),
    /// A tool call.
    Call(&'a AgentToolCall),
}

/// A piece of the agent's reasoning.
#[derive(Debug, Clone, PartialEq)]
pub struct ReasoningText {
    /// Its id.
    pub id: Arc<str>,
    /// The whole text.
    pub content: Arc<str>,
}

/// One call of a tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentToolCall {
    /// Number of its first event in the trace.
    pub sequence: u64,
    /// Its id, unique in the conversation.
    pub id: Arc<str>,
    /// Name of the tool.
    pub name: Arc<str>,
    /// Arguments as JSON; a string if the agent sent invalid JSON; null if it sent none.
    pub arguments: Value,
    /// True if `arguments` is a string: invalid JSON, or JSON within JSON. No tool takes a string as its arguments, and checks
    /// of single arguments would find each of them missing.
    pub arguments_broken: bool,
    /// Result, if the tool returned.
    pub result: Option<ToolResult>,
    /// Start of the call.
    pub started: TimeOffset,
    /// Arrival of the result. Without a result, the end of the arguments.
    pub ended: TimeOffset,
    /// Arrival of the result, on the wall clock.
    pub completed_at: Option<Millis>,
    /// Source of the first event for this call.
    pub origin: Origin,
    /// Id of the sub-agent that made the call.
    pub subagent: Option<Arc<str>>,
    /// Id of the calling message, if the agent reports it.
    pub message_id: Option<Arc<str>>,
    /// True if the agent reported the call in its own protocol, or a served model decided on it.
    pub is_reported: bool,
    /// The call as an MCP server of the test saw it.
    pub server_call: Option<ServerCall>,
    /// Names of the MCP servers of the test, with which agents report their tools.
    test_servers: Arc<[Arc<str>]>,
}

/// Result of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// JSON if the tool returned JSON, otherwise text. For a failed tool, its error message.
    pub value: Value,
    /// True if the tool failed.
    pub failed: bool,
    /// Source of the result.
    pub origin: Origin,
}

impl ToolResult {
    fn completed(p: &ToolCompleted) -> ToolResult {
        ToolResult { value: p.output.clone(), failed: false, origin: p.origin }
    }

    fn failed(p: &ToolFailed) -> ToolResult {
        ToolResult { value: Value::String(p.error.message.clone()), failed: true, origin: p.origin }
    }

    /// Returns the text that patterns are matched against: strings unchanged, other values as compact JSON.
    pub fn text(&self) -> String {
        plain_text(&self.value)
    }
}

/// The arguments of a call in a trace if the reply of the agent was cut before them.
pub const CUT_ARGUMENTS: &str = "the reply was cut before the arguments";

/// Describes arguments whose members are unknown, after `the arguments are` or `arguments that are`.
pub const UNREADABLE_ARGUMENTS: &str = "unknown or no JSON object";

/// True for arguments that are no object: nothing says which value belongs to which name.
fn are_unreadable(arguments: &Value) -> bool {
    !matches!(arguments, Value::Object(_) | Value::Null)
}

impl AgentToolCall {
    /// Creates a call that only an MCP server of the test saw.
    pub(crate) fn from_server_call(call: ServerCall) -> Self {
        AgentToolCall {
            sequence: call.sequence,
            id: call.id.clone(),
            name: call.tool.clone(),
            arguments: call.arguments.clone(),
            arguments_broken: are_unreadable(&call.arguments),
            result: call.result.clone(),
            started: call.started,
            ended: call.ended.unwrap_or(call.started),
            completed_at: call.completed_at,
            server_call: Some(call),
            ..AgentToolCall::default()
        }
    }

    /// Returns true if a tool is the called one: by the name that the agent reports, or by a name that agents use for the
    /// tool of the MCP server. A call that no server received may still have the name of one.
    pub fn is_named(&self, tool: &str) -> bool {
        *self.name == *tool
            || match &self.server_call {
                Some(call) => is_reported_tool_name(&call.server, &call.tool, tool),
                None => {
                    self.test_servers.iter().any(|server| is_reported_tool_name(server, tool, &self.name))
                }
            }
    }

    /// Returns the names under which agents report the called tool, beside the one that was reported, as far as they are known.
    pub fn other_names(&self) -> Vec<String> {
        match &self.server_call {
            Some(call) => reported_tool_names(&call.server, &call.tool),
            None => {
                let tools = self
                    .test_servers
                    .iter()
                    .filter_map(|server| Some((server, tool_at(server, &self.name)?)));
                tools.flat_map(|(server, tool)| reported_tool_names(server, tool)).collect()
            }
        }
    }

    /// Its place among what the agent said and did: its start, and its event.
    fn begun(&self) -> (TimeOffset, u64) {
        (self.started, self.sequence)
    }

    /// Returns true if its times are known. The agent tells those of a call after the fact together with others, unless the
    /// client answers it or an MCP server of the test receives it.
    pub fn has_times(&self) -> bool {
        let answer = self.result.as_ref().map(|result| result.origin);
        let is_told_later = self.origin == Origin::Snapshot || answer == Some(Origin::Snapshot);
        !is_told_later || answer == Some(Origin::Client) || self.server_call.is_some()
    }

    /// Returns the MCP server of the test that received the call.
    pub fn server(&self) -> Option<&str> {
        self.server_call.as_ref().map(|call| &*call.server)
    }

    /// Describes the MCP server that received the call, and the faults that it injected: ` at bank [lost_answer]`.
    /// Empty if none received it.
    pub fn server_label(&self) -> String {
        let Some(call) = &self.server_call else { return String::new() };
        let mut marks: Vec<&str> = call.faults.iter().map(|fault| &*fault.kind).collect();
        if !call.argument_errors.is_empty() {
            marks.push("invalid arguments");
        }
        let marks = if marks.is_empty() { String::new() } else { format!(" [{}]", marks.join(", ")) };
        format!(" at {}{marks}", call.server)
    }

    /// Sources that saw the call: `agent` or a served `model`, `mcp`, or two of them.
    pub fn sources(&self) -> &'static [&'static str] {
        match (self.is_reported, &self.server_call) {
            (true, Some(_)) if self.origin == Origin::Model => &["model", "mcp"],
            (true, Some(_)) => &["agent", "mcp"],
            (false, Some(_)) => &["mcp"],
            (_, None) if self.origin == Origin::Model => &["model"],
            (_, None) => &["agent"],
        }
    }

    /// Attaches the view of an MCP server. The result that the agent reports takes precedence. Arguments that the
    /// client changed are those that the server received.
    pub(crate) fn attach_server_call(&mut self, call: ServerCall) {
        self.started = self.started.min(call.started);
        let has_id = call.agent_call_id.as_deref() == Some(&*self.id);
        if has_id || canonical_arguments(&call.arguments) != canonical_arguments(&self.arguments) {
            self.arguments = call.arguments.clone();
            self.arguments_broken = are_unreadable(&self.arguments);
        }
        self.server_call = Some(call);
        self.use_server_result();
    }

    /// Uses the result of the MCP server if the agent reports none. A call that failed at the server has failed, also if the protocol
    /// of the agent shows the error as a result.
    fn use_server_result(&mut self) {
        if let (Some(call), Some(result)) = (&self.server_call, &mut self.result) {
            result.failed |= call.has_failed();
        }
        if let Some(call) = &self.server_call
            && self.result.is_none()
            && call.result.is_some()
        {
            self.result.clone_from(&call.result);
            self.ended = call.ended.unwrap_or(self.ended);
            self.completed_at = call.completed_at;
        } else if let Some(call) = &self.server_call
            && self.origin == Origin::Snapshot
        {
            self.ended = call.ended.unwrap_or(self.ended);
        }
    }
}

/// A pause of the agent until an answer arrives.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentInterrupt {
    /// Its id.
    pub id: Arc<str>,
    /// Short name of the reason.
    pub reason: Option<String>,
    /// Question shown to the human.
    pub message: Option<String>,
    /// Id of the tool call that is paused.
    pub tool_call_id: Option<Arc<str>>,
    /// MCP server of the test that asks the user. None if the agent asks.
    pub server: Option<Arc<str>>,
    /// Status and payload of the answer.
    pub answer: Option<(Arc<str>, Option<Value>)>,
}

impl TracedConversation {
    /// Returns the call with this id: one that the agent reports, otherwise one at an MCP server.
    pub fn call(&self, id: &str) -> Option<&AgentToolCall> {
        let place = self.calls.get(id).or_else(|| self.joined_server_calls.get(id));
        place.map(|&(turn, index)| &self.turns[turn].tool_calls[index])
    }

    /// Returns why the tool calls of the agent are not visible so far, if they are not.
    pub fn unseen_calls(&self) -> Option<UnseenCalls<'_>> {
        match (self.call_visibility, &self.services.unreadable_reply) {
            (CallVisibility::Protocol, _) => None,
            (CallVisibility::Hidden, _) => Some(UnseenCalls::Hidden),
            (CallVisibility::Services, Some(problem)) => Some(UnseenCalls::UnreadableReply(problem)),
            (CallVisibility::Services, None) => {
                let has_used = !self.services.connected.is_empty() || self.services.has_called_model;
                (!has_used).then_some(UnseenCalls::UnusedServices)
            }
        }
    }

    /// Returns the total usage of all turns that report one.
    pub fn usage_totals(&self) -> Option<UsageTotals> {
        UsageTotals::sum(self.turns.iter().filter_map(|turn| turn.usage_totals.as_ref()))
    }
}

impl ConversationTurn {
    fn new(id: Arc<str>, caller: Arc<str>, number: usize, started: TimeOffset, started_at: Millis) -> Self {
        ConversationTurn { id, number, caller, started, started_at, ..ConversationTurn::default() }
    }

    /// True if the agent called a tool, also if only an MCP server of the test saw it.
    pub fn has_calls(&self) -> bool {
        !self.tool_calls.is_empty() || !self.server_calls.is_empty()
    }

    /// Returns the time from sending the input to the end of the turn; zero for a turn that has not ended.
    pub fn duration(&self) -> Duration {
        self.ended.map_or(Duration::ZERO, |ended| ended - self.started)
    }

    /// Which of its messages called tools, as far as that is told.
    pub fn calling_messages(&self) -> CallingMessages<'_> {
        let named = self.tool_calls.iter().filter_map(|call| call.message_id.as_deref()).collect();
        let every_call_is_told = self.tool_calls.iter().all(|call| call.message_id.is_some());
        CallingMessages { named, every_call_is_told }
    }

    /// Returns messages and tool calls in the order in which they began. Those that began at the same time
    /// are in the order of their events, so the order depends on nothing but the trace.
    pub fn items(&self) -> Vec<TurnItem<'_>> {
        let messages = self.messages.iter().map(TurnItem::Message);
        let mut items: Vec<TurnItem<'_>> =
            messages.chain(self.tool_calls.iter().map(TurnItem::Call)).collect();
        items.sort_by_key(|item| match item {
            TurnItem::Message(message) => message.begun(),
            TurnItem::Call(call) => call.begun(),
        });
        items
    }

    /// Returns the last message of the agent, which is its answer.
    pub fn answer(&self) -> Option<&str> {
        self.messages.last().map(|message| &*message.content)
    }
}

/// The messages of a turn that its calls name as theirs.
#[derive(Debug, Clone)]
pub struct CallingMessages<'a> {
    named: HashSet<&'a str>,
    /// Whether every call of the turn names its message.
    every_call_is_told: bool,
}

impl CallingMessages<'_> {
    /// Whether a message of the turn called tools too, or none if unknown.
    pub fn calls_tools(&self, message: &AgentMessage) -> Option<bool> {
        if message.has_tool_use == Some(true) || self.named.contains(&*message.id) {
            return Some(true);
        }
        // What every call says of itself cannot be another message's.
        message.has_tool_use.or(self.every_call_is_told.then_some(false))
    }
}
