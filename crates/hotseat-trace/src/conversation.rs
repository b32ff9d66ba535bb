//! A trace folded into turns, messages and tool calls, for checks and reports.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::server_calls::{
    InjectedFault, ServerCall, canonical_arguments, is_reported_tool_name, join_server_calls,
    reported_tool_names, tool_at,
};
use crate::{
    AgentRunFinished, AssistantMessage, AwaitingInput, ErrorInfo, Event, InterruptAnswered, InterruptRaised,
    LlmFaultInjected, McpAnswerLost, McpArgumentsInvalid, McpFaultInjected, Millis, Origin, PatchBudget,
    Payload, ReasoningMessage, RoleAnswered, SimulationEnded, SimulationStarted, StateDelta, TimeOffset,
    ToolArguments, ToolCompleted, ToolFailed, ToolInvocation, TopicGraph, TopicReason, TopicStep,
    TopicsDeclared, TurnSpent, TurnStart, UsageTotals, UserMessage, apply_patch, plain_text,
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
    /// Position of each tool call: turn index and index in the turn.
    calls: HashMap<Arc<str>, (usize, usize)>,
    /// Position of each call at an MCP server that is not joined yet: turn index and index in the turn.
    server_calls: HashMap<Arc<str>, (usize, usize)>,
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
    /// Tool calls, in start order. Calls that only an MCP server saw are added when the turn ends.
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
}

impl ConversationTurn {
    /// True if the agent called a tool, also if only an MCP server of the test saw it.
    pub fn has_calls(&self) -> bool {
        !self.tool_calls.is_empty() || !self.server_calls.is_empty()
    }
}

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

    /// Returns true if its times are known. The agent tells those of a call after the fact together with others, unless the
    /// client answers it or an MCP server of the test receives it.
    pub fn has_times(&self) -> bool {
        let is_answered_here = self.result.as_ref().is_some_and(|result| result.origin == Origin::Client);
        self.origin != Origin::Snapshot || is_answered_here || self.server_call.is_some()
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

impl ToolResult {
    /// Returns the text that patterns are matched against: strings unchanged, other values as compact JSON.
    pub fn text(&self) -> String {
        plain_text(&self.value)
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
    /// Folds the events of one conversation. For a trace with several conversations, use
    /// [`Trace::conversation`](crate::Trace), which selects the events of the root.
    pub fn from_events<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut conversation = TracedConversation::default();
        for event in events {
            conversation.apply(event);
        }
        conversation.settle();
        conversation
    }

    /// Joins calls at MCP servers in turns that never ended. Called after the last event.
    pub fn settle(&mut self) {
        for turn in 0..self.turns.len() {
            self.join_server_calls(turn);
        }
    }

    /// Applies the next event of the trace. Events of unknown turns are ignored.
    pub fn apply(&mut self, event: &Event) {
        let (at, wall) = (event.offset, event.timestamp);
        match &event.payload {
            Payload::TurnStarted(p) => self.start_turn(p, event),
            Payload::TurnCompleted(p) => self.end_turn(&p.turn_id, TurnOutcome::Completed, at, wall),
            Payload::TurnFailed(p) => {
                self.end_turn(&p.turn_id, TurnOutcome::Failed(p.error.clone()), at, wall)
            }
            // An input to a sub-agent is the input of a call, not a user message.
            Payload::UserMessage(p) if self.subagent_turns.contains_key(&p.turn_id) => {}
            Payload::UserMessage(p) => self.set_user_message(p),
            Payload::AssistantMessage(p) => self.add_message(p, event),
            Payload::ReasoningMessage(p) => self.add_reasoning(p),
            Payload::McpConnected(connected) => {
                self.services.connected.insert(connected.server.clone());
            }
            Payload::LlmCallStarted(_) => self.services.has_called_model = true,
            Payload::LlmCallFailed(p) => self.services.add_failure(&p.error),
            Payload::ToolInvoked(p) if p.server.is_some() => self.add_server_call(p, event),
            Payload::ToolInvoked(p) => self.add_call(p, event),
            Payload::ToolArguments(p) => self.set_arguments(p, at),
            Payload::ToolCompleted(p) => self.end_call(&p.tool_call_id, ToolResult::completed(p), at, wall),
            Payload::ToolFailed(p) => self.end_call(&p.tool_call_id, ToolResult::failed(p), at, wall),
            Payload::McpArgumentsInvalid(p) => self.add_argument_errors(p),
            Payload::McpArgumentsUnchecked(p) => {
                self.update_server_call(&p.tool_call_id, |call| call.arguments_unchecked = true);
            }
            Payload::McpFaultInjected(p) => self.add_fault(p, at),
            Payload::McpAnswerLost(p) => self.lose_answer(p, at),
            Payload::StateSnapshot(p) => self.set_state(p.state.clone()),
            Payload::StateDelta(p) => self.apply_delta(p),
            Payload::AgentRunFinished(p) => self.finish_run(p),
            Payload::TurnSpent(p) => self.add_usage(p),
            Payload::LlmCallCompleted(p) => {
                self.update_turn(&p.turn_id, |turn| turn.finish_reason = Some(finish_reason(&p.stop_reason)))
            }
            Payload::LlmFaultInjected(p) => {
                self.update_turn(&p.turn_id, |turn| turn.model_faults.push(p.clone()))
            }
            Payload::AwaitingInput(p) => self.set_awaiting(p),
            Payload::AgentRunFailed(p) => {
                self.update_turn(&p.turn_id, |turn| turn.run_error = Some(p.error.clone()))
            }
            Payload::InterruptRaised(p) => self.raise_interrupt(p),
            Payload::InterruptAnswered(p) => self.answer_interrupt(p),
            Payload::TopicsDeclared(p) => self.declare_topics(p),
            Payload::TopicChanged(p) | Payload::TopicKept(p) => self.set_topic(p),
            Payload::SimulationStarted(p) => self.start_simulation(p),
            Payload::SimulationEnded(p) => self.end_simulation(p),
            Payload::RoleAnswered(p) => self.update_turn(&p.turn_id, |turn| turn.roles.push((**p).clone())),
            Payload::Note(p) => self.update_turn(&p.turn_id, |turn| turn.notes.push(p.message.clone())),
            // The effects of internal events of the runtime are in the turns, messages and calls above.
            Payload::TurnWaiting(_)
            | Payload::TurnResumed(_)
            | Payload::AsyncTracked(_)
            | Payload::AsyncCompleted(_)
            | Payload::AsyncCancelled(_)
            | Payload::MoveRecorded(_)
            | Payload::MoveResult(_)
            | Payload::ToolRetry(_)
            | Payload::ContextAssemblyStarted(_)
            | Payload::ContextAssemblyCompleted(_)
            | Payload::ContextAssemblyFailed(_)
            | Payload::MemoryExtractionStarted(_)
            | Payload::MemoryExtractionCompleted(_)
            | Payload::MemoryExtractionFailed(_)
            | Payload::AgentCallStarted(_)
            | Payload::AgentCallContext(_)
            | Payload::AgentCallCompleted(_)
            | Payload::AgentCallFailed(_)
            | Payload::DefinitionChanged(_)
            | Payload::ParticipantAdded(_)
            | Payload::ParticipantRemoved(_)
            | Payload::ConversationCreated(_)
            | Payload::ConversationClosed(_)
            | Payload::WorkflowStarted(_)
            | Payload::WorkflowCompleted(_)
            | Payload::WorkflowFailed(_)
            | Payload::TokenCreated(_)
            | Payload::TokenStatusChanged(_)
            | Payload::TaskStarted(_)
            | Payload::TaskCompleted(_)
            | Payload::TaskFailed(_)
            | Payload::TaskStepStarted(_)
            | Payload::TaskStepCompleted(_)
            | Payload::ActionStarted(_)
            | Payload::ActionCompleted(_)
            | Payload::ActionFailed(_)
            | Payload::MemoryWritten(_)
            | Payload::MemoryRead(_)
            | Payload::MemoryDeleted(_)
            | Payload::MemorySearched(_)
            | Payload::RuntimeError(_)
            | Payload::InputIgnored(_)
            | Payload::AgentRunStarted(_)
            | Payload::StepStarted(_)
            | Payload::StepFinished(_)
            | Payload::SubagentStarted(_)
            | Payload::SubagentFinished(_)
            | Payload::SubagentFailed(_)
            | Payload::Custom(_)
            | Payload::Raw(_)
            | Payload::Other(..) => {}
        }
    }

    fn set_user_message(&mut self, p: &UserMessage) {
        self.update_turn(&p.turn_id, |turn| {
            turn.user = Some(p.content.clone());
            turn.attachments.clone_from(&p.attachments);
        });
    }

    fn add_reasoning(&mut self, p: &ReasoningMessage) {
        self.update_turn(&p.turn_id, |turn| {
            turn.reasoning.push(ReasoningText { id: p.message_id.clone(), content: p.content.clone() });
        });
    }

    fn add_usage(&mut self, p: &TurnSpent) {
        self.update_turn(&p.turn_id, |turn| {
            turn.usage_totals = UsageTotals::sum(turn.usage_totals.iter().chain([&p.spent]));
        });
    }

    fn add_argument_errors(&mut self, p: &McpArgumentsInvalid) {
        self.update_server_call(&p.tool_call_id, |call| {
            call.argument_errors.extend(p.errors.iter().cloned())
        });
    }

    fn apply_delta(&mut self, p: &StateDelta) {
        match &p.state {
            Some(state) => self.set_state(state.clone()),
            None if p.applied => self.patch_state(&p.patch),
            None => {}
        }
    }

    fn add_fault(&mut self, p: &McpFaultInjected, at: TimeOffset) {
        self.update_server_call(&p.tool_call_id, |call| {
            call.faults.push(InjectedFault { kind: p.fault.clone(), rule: p.rule, effect: p.effect, at });
        });
    }

    fn lose_answer(&mut self, p: &McpAnswerLost, at: TimeOffset) {
        self.update_server_call(&p.tool_call_id, |call| {
            call.lost_success = Some(p.success);
            call.ended = Some(at);
        });
    }

    fn set_awaiting(&mut self, p: &AwaitingInput) {
        self.update_turn(&p.turn_id, |turn| {
            turn.awaiting = Some(AwaitingReport { awaiting: p.awaiting, hint: p.hint.clone() });
        });
    }

    fn answer_interrupt(&mut self, p: &InterruptAnswered) {
        self.update_turn(&p.turn_id, |turn| {
            let open = turn.interrupts.iter_mut().rev().find(|i| i.id == p.interrupt_id);
            if let Some(interrupt) = open {
                interrupt.answer = Some((p.status.clone(), p.payload.clone()));
            }
        });
    }

    fn start_simulation(&mut self, p: &SimulationStarted) {
        self.simulations.push(SimulationSpan {
            first_turn: p.turn,
            goal: p.goal.clone(),
            max_turns: p.max_turns,
            ended: None,
        });
    }

    fn end_simulation(&mut self, p: &SimulationEnded) {
        if let Some(simulation) = self.simulations.last_mut() {
            simulation.ended = Some(p.clone());
        }
    }

    fn raise_interrupt(&mut self, p: &InterruptRaised) {
        self.update_turn(&p.turn_id, |turn| {
            turn.interrupts.push(AgentInterrupt {
                id: p.interrupt_id.clone(),
                reason: p.reason.clone(),
                message: p.message.clone(),
                tool_call_id: p.tool_call_id.clone(),
                server: p.server.clone(),
                answer: None,
            });
        });
    }

    fn finish_run(&mut self, p: &AgentRunFinished) {
        self.update_turn(&p.turn_id, |turn| {
            turn.reported_usage.extend(p.usage.clone());
            let is_usual = matches!(&*p.outcome, "success" | "interrupt");
            turn.run_outcome = Some(p.outcome.clone()).filter(|_| !is_usual);
            turn.result.clone_from(&p.result);
            turn.finish_reason.clone_from(&p.finish_reason);
        });
    }

    fn declare_topics(&mut self, p: &TopicsDeclared) {
        self.topics = Some(Arc::new(TopicGraph::from_declared(&p.topics)));
        self.current_topic = None;
        for turn in &mut self.turns {
            (turn.topic, turn.topic_step) = (None, None);
        }
    }

    fn start_turn(&mut self, p: &TurnStart, event: &Event) {
        let caller = p.caller_turn_id.as_ref().and_then(|id| self.turn_index(id));
        if let Some(caller) = caller {
            self.subagent_turns.insert(p.turn_id.clone(), (caller, p.agent_id.clone()));
            return;
        }
        let number = self.turns.len() + 1;
        let mut turn = ConversationTurn::new(
            p.turn_id.clone(),
            p.caller_id.clone(),
            number,
            event.offset,
            event.timestamp,
        );
        turn.topic.clone_from(&self.current_topic);
        self.turns.push(turn);
    }

    fn add_message(&mut self, p: &AssistantMessage, event: &Event) {
        self.update_turn(&p.turn_id, |turn| {
            turn.messages.push(AgentMessage {
                sequence: event.sequence,
                id: p.message_id.clone(),
                content: p.content.clone(),
                started: p.started_us,
                ended: event.offset,
                subagent: p.subagent.clone(),
                has_tool_use: p.has_tool_use,
            });
        });
    }

    /// Adds the view that an MCP server has of a call.
    fn add_server_call(&mut self, p: &ToolInvocation, event: &Event) {
        let Some(turn) = self.turn_index(&p.turn_id) else { return };
        let Some(call) = ServerCall::new(p, event.sequence, event.offset) else { return };
        self.server_calls.insert(call.id.clone(), (turn, self.turns[turn].server_calls.len()));
        self.turns[turn].server_calls.push(call);
        if self.turns[turn].outcome != TurnOutcome::Open {
            self.join_server_calls(turn);
        }
    }

    fn add_call(&mut self, p: &ToolInvocation, event: &Event) {
        let arguments = p.input.clone().unwrap_or(Value::Null);
        let call = AgentToolCall {
            sequence: event.sequence,
            id: p.tool_call_id.clone(),
            name: p.tool_name.clone(),
            arguments_broken: are_unreadable(&arguments),
            arguments,
            started: p.started_us.unwrap_or(event.offset),
            ended: p.started_us.unwrap_or(event.offset),
            origin: p.origin,
            subagent: p
                .subagent
                .clone()
                .or_else(|| self.subagent_turns.get(&p.turn_id).and_then(|(_, agent)| agent.clone())),
            message_id: p.message_id.clone(),
            is_reported: true,
            test_servers: self.test_servers.clone(),
            ..AgentToolCall::default()
        };
        if let Some(turn) = self.turn_index(&p.turn_id) {
            self.calls.insert(call.id.clone(), (turn, self.turns[turn].tool_calls.len()));
            self.turns[turn].tool_calls.push(call);
        }
    }

    fn set_arguments(&mut self, p: &ToolArguments, at: TimeOffset) {
        self.update_call(&p.tool_call_id, |call| {
            call.arguments = match (&p.input, &p.text) {
                (Some(input), _) => input.clone(),
                (None, Some(text)) => Value::String(text.clone()),
                (None, None) => Value::Null,
            };
            call.arguments_broken = p.input.is_none() || are_unreadable(&call.arguments);
            if call.result.is_none() {
                call.ended = p.ended_us.unwrap_or(at);
            }
        });
    }

    /// Returns the call with this id.
    pub fn call(&self, id: &str) -> Option<&AgentToolCall> {
        self.calls.get(id).map(|&(turn, index)| &self.turns[turn].tool_calls[index])
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

    /// Returns a scope with all turns.
    pub fn scope(&self) -> TurnScope<'_> {
        TurnScope { conversation: self, first: 0, end: self.turns.len(), is_condition: false }
    }

    /// Returns a scope with one turn, by index.
    pub fn turn_scope(&self, index: usize) -> Option<TurnScope<'_>> {
        self.turns_scope(index..index + 1)
    }

    /// Returns a scope with a range of turns, by index.
    pub fn turns_scope(&self, turns: Range<usize>) -> Option<TurnScope<'_>> {
        let exists = turns.start <= turns.end && turns.end <= self.turns.len();
        let (first, end) = (turns.start, turns.end);
        exists.then_some(TurnScope { conversation: self, first, end, is_condition: false })
    }

    /// Sets the topic of a turn and of all later turns.
    fn set_topic(&mut self, step: &TopicStep) {
        let turn = step.turn_id.as_ref().and_then(|id| self.turn_index(id));
        let first = turn.unwrap_or(0);
        for turn in &mut self.turns[first..] {
            turn.topic = Some(step.to.clone());
        }
        if let Some(turn) = turn {
            self.turns[turn].topic_step = Some(step.clone());
        }
        if turn.is_some() || step.why == TopicReason::Initial {
            self.current_topic = Some(step.to.clone());
        }
    }

    fn set_state(&mut self, state: Value) {
        let state = Arc::new(state);
        if let Some(turn) = self.turns.last_mut() {
            turn.state = Some(state.clone());
        }
        self.state = Some(state);
    }

    /// Applies a patch to the state of the current turn. The state is copied once per turn, not once per
    /// patch.
    fn patch_state(&mut self, patch: &Value) {
        let Some(mut state) = self.state.take() else { return };
        let turn = self.turns.last_mut();
        let kept = turn.and_then(|turn| turn.state.take());
        drop(kept);
        // A patch that fails changes nothing; the agent's copy differs from this one in redacted secrets
        // only.
        let _ = apply_patch(Arc::make_mut(&mut state), patch, &mut self.patch_budget);
        if let Some(turn) = self.turns.last_mut() {
            turn.state = Some(state.clone());
        }
        self.state = Some(state);
    }

    fn turn_index(&self, id: &str) -> Option<usize> {
        let within = self.subagent_turns.get(id).map(|&(turn, _)| turn);
        within.or_else(|| self.turns.iter().rposition(|turn| &*turn.id == id))
    }

    fn update_turn(&mut self, id: &str, change: impl FnOnce(&mut ConversationTurn)) {
        if let Some(index) = self.turn_index(id) {
            change(&mut self.turns[index]);
        }
    }

    fn update_call(&mut self, id: &str, change: impl FnOnce(&mut AgentToolCall)) {
        if let Some(&(turn, place)) = self.calls.get(id) {
            change(&mut self.turns[turn].tool_calls[place]);
        }
    }

    /// Ends a call with its result: of the agent's stream, or of an MCP server.
    fn end_call(&mut self, id: &str, result: ToolResult, at: TimeOffset, wall: Millis) {
        let answered = |call: &mut ServerCall, result: ToolResult| {
            (call.result, call.ended, call.completed_at) = (Some(result), Some(at), Some(wall));
        };
        if let Some(&(turn, place)) = self.server_calls.get(id) {
            answered(&mut self.turns[turn].server_calls[place], result);
            return;
        }
        self.update_call(id, |call| match &mut call.server_call {
            Some(server_call) if *server_call.id == *id => {
                answered(server_call, result);
                call.use_server_result();
            }
            _ => {
                call.result = Some(result);
                (call.ended, call.completed_at) = (at, Some(wall));
            }
        });
    }

    fn update_server_call(&mut self, id: &str, change: impl FnOnce(&mut ServerCall)) {
        match self.server_calls.get(id) {
            Some(&(turn, place)) => change(&mut self.turns[turn].server_calls[place]),
            None => self.update_call(id, |call| {
                if let Some(server_call) = &mut call.server_call {
                    change(server_call);
                }
            }),
        }
    }

    /// Joins the calls that MCP servers saw in a turn with those that the agent reports.
    fn join_server_calls(&mut self, turn: usize) {
        let joined = &mut self.turns[turn];
        if joined.server_calls.is_empty() {
            return;
        }
        let seen = std::mem::take(&mut joined.server_calls);
        for call in &seen {
            self.server_calls.remove(&call.id);
        }
        let joined = &mut self.turns[turn];
        joined.tool_calls = join_server_calls(std::mem::take(&mut joined.tool_calls), seen);
        for (place, call) in joined.tool_calls.iter().enumerate() {
            let of_server = call.server_call.as_ref().map(|call| call.id.clone());
            for id in [Some(call.id.clone()), of_server].into_iter().flatten() {
                self.calls.insert(id, (turn, place));
            }
        }
    }

    fn end_turn(&mut self, id: &str, outcome: TurnOutcome, at: TimeOffset, wall: Millis) {
        if self.subagent_turns.contains_key(id) {
            return;
        }
        self.update_turn(id, |turn| {
            turn.outcome = outcome;
            (turn.ended, turn.ended_at) = (Some(at), Some(wall));
        });
        if let Some(turn) = self.turn_index(id) {
            self.join_server_calls(turn);
        }
    }
}

impl ConversationTurn {
    fn new(id: Arc<str>, caller: Arc<str>, number: usize, started: TimeOffset, started_at: Millis) -> Self {
        ConversationTurn { id, number, caller, started, started_at, ..ConversationTurn::default() }
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
            TurnItem::Message(message) => (message.started.unwrap_or(message.ended), message.sequence),
            TurnItem::Call(call) => (call.started, call.sequence),
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

/// The turns that a check is evaluated on: one, a range, or all.
#[derive(Debug, Clone, Copy)]
pub struct TurnScope<'a> {
    conversation: &'a TracedConversation,
    /// Index of the first turn of the scope.
    first: usize,
    /// Index after the last turn of the scope.
    end: usize,
    /// True for a condition that decides how the conversation goes on: the agent may still use a service of the test.
    is_condition: bool,
}

impl<'a> TurnScope<'a> {
    /// Returns the turns of the scope.
    pub fn turns(self) -> &'a [ConversationTurn] {
        &self.conversation.turns[self.first..self.end]
    }

    /// Returns all turns of the conversation up to the last turn of the scope.
    pub fn turns_up_to_end(self) -> &'a [ConversationTurn] {
        &self.conversation.turns[..self.end]
    }

    /// Returns the conversation, also with later turns.
    pub fn conversation(self) -> &'a TracedConversation {
        self.conversation
    }

    /// Copies the conversation, with other texts of the agent in the turns of the scope: in messages, and in arguments and
    /// results of calls.
    pub fn with_texts(self, text: impl Fn(&str) -> String) -> TracedConversation {
        let mut copy = self.conversation.clone();
        for turn in &mut copy.turns[self.first..self.end] {
            for message in &mut turn.messages {
                message.content = text(&message.content).into();
            }
            for call in &mut turn.tool_calls {
                map_json_texts(&mut call.arguments, &text);
                call.result.iter_mut().for_each(|result| map_json_texts(&mut result.value, &text));
            }
        }
        copy
    }

    /// The same scope of a copy of the conversation.
    pub fn of_copy<'b>(self, copy: &'b TracedConversation) -> TurnScope<'b> {
        TurnScope { conversation: copy, first: self.first, end: self.end, is_condition: self.is_condition }
    }

    /// Marks the scope as that of a condition, which decides how the conversation goes on.
    #[must_use]
    pub fn for_condition(self) -> TurnScope<'a> {
        TurnScope { is_condition: true, ..self }
    }

    /// True for the scope of a condition.
    pub fn is_condition(self) -> bool {
        self.is_condition
    }

    /// Returns why the tool calls of the agent are not visible, if they are not. In a condition, an agent that used no
    /// service of the test so far has called nothing so far.
    pub fn unseen_calls(self) -> Option<UnseenCalls<'a>> {
        let unseen = self.conversation.unseen_calls()?;
        (!self.is_condition || unseen != UnseenCalls::UnusedServices).then_some(unseen)
    }

    /// Returns all tool calls with their turn numbers, in start order.
    pub fn calls(self) -> impl Iterator<Item = (usize, &'a AgentToolCall)> + Clone {
        self.turns().iter().flat_map(|turn| turn.tool_calls.iter().map(|call| (turn.number, call)))
    }

    /// Returns the messages of the agent, joined by newlines.
    pub fn text(self) -> String {
        let mut text = String::new();
        for message in self.turns().iter().flat_map(|turn| &turn.messages) {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&message.content);
        }
        text
    }

    /// Returns the agent's shared state at the end of the scope: it stays until the agent sends another one.
    pub fn state(self) -> Option<&'a Value> {
        self.turns_up_to_end().iter().rev().find_map(|turn| turn.state.as_deref())
    }

    /// Restricts the scope to its last turn.
    #[must_use]
    pub fn last_turn(self) -> TurnScope<'a> {
        TurnScope { first: self.first.max(self.end.saturating_sub(1)), ..self }
    }

    /// Returns the start of the first turn.
    pub fn started(self) -> TimeOffset {
        self.turns().first().map_or(TimeOffset(0), |turn| turn.started)
    }

    /// Returns the end of the last turn.
    pub fn ended(self) -> TimeOffset {
        self.turns().iter().filter_map(|turn| turn.ended).max().unwrap_or_else(|| self.started())
    }

    /// Returns the time from the start of the first turn to the end of the last.
    pub fn duration(self) -> Duration {
        self.ended() - self.started()
    }

    /// Returns the clock of the agent.
    pub fn agent_clock(self) -> AgentClock {
        let mut before = Duration::ZERO;
        let spans = self.turns().iter().map(|turn| {
            let span = AgentSpan { started: turn.started, length: turn.duration(), before };
            before += span.length;
            span
        });
        AgentClock { spans: spans.collect(), total: before }
    }
}

/// A clock that runs only within turns: between them, simulated users, judges, people and hooks take their time.
#[derive(Debug, Clone)]
pub struct AgentClock {
    /// The turns, in order.
    spans: Vec<AgentSpan>,
    total: Duration,
}

#[derive(Debug, Clone, Copy)]
struct AgentSpan {
    started: TimeOffset,
    length: Duration,
    /// Time of the turns before.
    before: Duration,
}

impl AgentClock {
    /// The time of all turns.
    pub fn total(&self) -> Duration {
        self.total
    }

    /// The time of the agent up to `at`, since the start of the first turn.
    pub fn at(&self, at: TimeOffset) -> Duration {
        let started = self.spans.partition_point(|span| span.started <= at);
        let Some(span) = started.checked_sub(1).map(|last| self.spans[last]) else { return Duration::ZERO };
        span.before + (at - span.started).min(span.length)
    }
}

/// Replaces all strings of a JSON value, also the names of members.
fn map_json_texts(value: &mut Value, text: &impl Fn(&str) -> String) {
    match value {
        Value::String(string) => *string = text(string),
        Value::Array(entries) => entries.iter_mut().for_each(|entry| map_json_texts(entry, text)),
        Value::Object(members) => {
            let entries = std::mem::take(members);
            members.extend(entries.into_iter().map(|(name, mut member)| {
                map_json_texts(&mut member, text);
                (text(&name), member)
            }));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Maps a stop reason of a model to the finish reason of chat completions.
fn finish_reason(stop: &Arc<str>) -> Arc<str> {
    match &**stop {
        "end_turn" | "stop_sequence" => "stop".into(),
        "max_tokens" => "length".into(),
        "tool_use" => "tool_calls".into(),
        "refusal" => "content_filter".into(),
        _ => stop.clone(),
    }
}
