//! A trace folded into turns, messages and tool calls: what checks and reports read.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::{
    ErrorInfo, Event, Millis, Offset, Origin, PatchAllowance, Payload, RoleAnswered, SimulationEnded, Spent,
    TopicGraph, TopicStep, TopicWhy, apply_patch,
};

/// A conversation as far as its events tell.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    /// Its turns, in order.
    pub turns: Vec<Turn>,
    /// The state the agent shares, as last seen.
    pub state: Option<Arc<Value>>,
    /// Which topics may follow which, where topics are followed.
    pub topics: Option<Arc<TopicGraph>>,
    /// The topic that it is in, where topics are followed.
    pub current_topic: Option<Arc<str>>,
    /// The stretches in which a user was simulated, as far as that was declared.
    pub simulations: Vec<Simulation>,
    /// What patches of the state may still copy.
    patching: PatchAllowance,
    /// Where each tool call stands: turn and place in the turn.
    calls: HashMap<Arc<str>, (usize, usize)>,
    /// Turns of agents that were looped in: each is part of the turn that called, with the agent that speaks in it.
    within: HashMap<Arc<str>, (usize, Option<Arc<str>>)>,
}

/// One user input and everything until the agent was done.
#[derive(Debug, Clone)]
pub struct Turn {
    /// Its id in the trace.
    pub id: Arc<str>,
    /// Its place in the conversation, from 1.
    pub number: usize,
    /// Who gave the input: `hotseat` where it is written in the case, `simulator`, `person`; elsewhere the id of a user.
    pub caller: Arc<str>,
    /// What the user said.
    pub user: Option<String>,
    /// What was attached to it, as it is called.
    pub attachments: Vec<String>,
    /// When the input was sent.
    pub started: Offset,
    /// When the agent was done, or the turn was given up.
    pub ended: Option<Offset>,
    /// When the input was sent, on the wall clock.
    pub started_at: Millis,
    /// When the agent was done, on the wall clock.
    pub ended_at: Option<Millis>,
    /// How it ended.
    pub outcome: TurnOutcome,
    /// What the agent said, message by message.
    pub messages: Vec<Message>,
    /// What the agent thought, where it shows that.
    pub reasoning: Vec<Reasoning>,
    /// Its tool calls, in the order in which they began.
    pub tool_calls: Vec<ToolCall>,
    /// Its interrupts, in order.
    pub interrupts: Vec<Interrupt>,
    /// How the agent says that its last run ended, where that is neither success nor an interrupt.
    pub run_outcome: Option<Arc<str>>,
    /// The error the agent reported for its run.
    pub run_error: Option<ErrorInfo>,
    /// What the agent says its runs cost, one entry a run.
    pub usage: Vec<Value>,
    /// What the turn has spent, with its sub-agents; none where nobody says so.
    pub spent: Option<Spent>,
    /// Why the agent's last reply ends where it does: in the word of its protocol, or in that of chat completions.
    pub finish_reason: Option<Arc<str>>,
    /// What the agent said of whether it waits for an input of the user; none where it said nothing.
    pub awaiting: Option<Awaiting>,
    /// What a person should know about the protocol.
    pub notes: Vec<String>,
    /// The state the agent shared, as last seen in this turn.
    pub state: Option<Arc<Value>>,
    /// What its last run returned, where a protocol has that.
    pub result: Option<Value>,
    /// What helpers said of the turn, or to begin it.
    pub roles: Vec<RoleAnswered>,
    /// The topic it belongs to, where topics are followed: the one that the conversation is in when it is over.
    pub topic: Option<Arc<str>>,
    /// Why it belongs to that topic; none where nothing but the topic before says so.
    pub topic_step: Option<TopicStep>,
}

/// Turns that a simulated user has begun.
#[derive(Debug, Clone, PartialEq)]
pub struct Simulation {
    /// The number of its first turn, from 1.
    pub first_turn: usize,
    /// What the user wants.
    pub goal: Option<String>,
    /// How many inputs it may give.
    pub max_turns: usize,
    /// How it ended; none while it goes on.
    pub ended: Option<SimulationEnded>,
}

/// What an agent said of whether it waits for an input of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Awaiting {
    /// Whether it waits.
    pub awaiting: bool,
    /// What it waits for, in its words.
    pub hint: Option<String>,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnOutcome {
    /// It has not ended.
    Open,
    /// The agent was done.
    Completed,
    /// It could not be held to its end.
    Failed(ErrorInfo),
}

/// Something the agent said.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Its id.
    pub id: Arc<str>,
    /// The whole text.
    pub content: String,
    /// When its first part arrived, where that is known.
    pub started: Option<Offset>,
    /// When it was complete.
    pub ended: Offset,
    /// The sub-agent that said it.
    pub subagent: Option<Arc<str>>,
    /// Whether the same message called tools, as far as that was known when it ended.
    pub has_tool_use: Option<bool>,
}

/// Something the agent thought.
#[derive(Debug, Clone, PartialEq)]
pub struct Reasoning {
    /// Its id.
    pub id: Arc<str>,
    /// The whole text.
    pub content: String,
}

/// One call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// Its id, unique in the conversation.
    pub id: Arc<str>,
    /// Name of the tool.
    pub name: Arc<str>,
    /// The arguments as JSON; text where what the agent sent is not JSON; null where it sent none.
    pub arguments: Value,
    /// Whether `arguments` is text only because it could not be read as JSON.
    pub arguments_broken: bool,
    /// What the tool returned.
    pub result: Option<ToolResult>,
    /// When the call began.
    pub started: Offset,
    /// When its result arrived; without a result, when its arguments were complete.
    pub ended: Offset,
    /// When its result arrived, on the wall clock.
    pub completed_at: Option<Millis>,
    /// Where it was first seen.
    pub origin: Origin,
    /// The sub-agent that called.
    pub subagent: Option<Arc<str>>,
    /// The message that called, where the agent says.
    pub message_id: Option<Arc<str>>,
}

/// What a tool returned.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// JSON where it is JSON, otherwise text; for a failed tool its error message.
    pub value: Value,
    /// Whether the tool failed.
    pub failed: bool,
    /// Who gave it.
    pub origin: Origin,
}

impl ToolResult {
    /// The text that patterns are matched against: text as it is, everything else as compact JSON.
    pub fn text(&self) -> String {
        match &self.value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }
}

/// A pause of the agent that waits for an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Interrupt {
    /// Its id.
    pub id: Arc<str>,
    /// Why the agent waits, as a short name.
    pub reason: Option<String>,
    /// What a person is asked.
    pub message: Option<String>,
    /// The tool call it holds up.
    pub tool_call_id: Option<Arc<str>>,
    /// The answer: status and payload.
    pub answer: Option<(Arc<str>, Option<Value>)>,
}

impl Conversation {
    /// Folds a whole trace of one conversation. Of a trace that holds several, [`Trace::conversation`](crate::Trace)
    /// passes on the events of the right one.
    pub fn of<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut conversation = Conversation::default();
        for event in events {
            conversation.apply(event);
        }
        conversation
    }

    /// Adds the next event of the trace. Events of turns that never began are passed over.
    pub fn apply(&mut self, event: &Event) {
        let (at, wall) = (event.offset, event.timestamp);
        match &event.payload {
            Payload::TurnStarted(p) => {
                let caller = p.caller_turn_id.as_ref().and_then(|id| self.turn_index(id));
                if let Some(caller) = caller {
                    self.within.insert(p.turn_id.clone(), (caller, p.agent_id.clone()));
                    return;
                }
                let number = self.turns.len() + 1;
                let mut turn = Turn::begun(p.turn_id.clone(), p.caller_id.clone(), number, at, wall);
                turn.topic.clone_from(&self.current_topic);
                self.turns.push(turn);
            }
            Payload::TurnCompleted(p) => self.end_turn(&p.turn_id, TurnOutcome::Completed, at, wall),
            Payload::TurnFailed(p) => {
                self.end_turn(&p.turn_id, TurnOutcome::Failed(p.error.clone()), at, wall)
            }
            // What an agent asks another one is the input of a call, not something a user said.
            Payload::UserMessage(p) if self.within.contains_key(&p.turn_id) => {}
            Payload::UserMessage(p) => self.in_turn(&p.turn_id, |turn| {
                turn.user = Some(p.content.clone());
                turn.attachments.clone_from(&p.attachments);
            }),
            Payload::AssistantMessage(p) => self.in_turn(&p.turn_id, |turn| {
                turn.messages.push(Message {
                    id: p.message_id.clone(),
                    content: p.content.clone(),
                    started: p.started_us,
                    ended: at,
                    subagent: p.subagent.clone(),
                    has_tool_use: p.has_tool_use,
                });
            }),
            Payload::ReasoningMessage(p) => self.in_turn(&p.turn_id, |turn| {
                turn.reasoning.push(Reasoning { id: p.message_id.clone(), content: p.content.clone() });
            }),
            Payload::ToolInvoked(p) => {
                let call = ToolCall {
                    id: p.tool_call_id.clone(),
                    name: p.tool_name.clone(),
                    arguments: p.input.clone().unwrap_or(Value::Null),
                    arguments_broken: false,
                    result: None,
                    started: p.started_us.unwrap_or(at),
                    ended: p.started_us.unwrap_or(at),
                    completed_at: None,
                    origin: p.origin,
                    subagent: p.subagent.clone().or_else(|| self.speaker(&p.turn_id)),
                    message_id: p.message_id.clone(),
                };
                if let Some(turn) = self.turn_index(&p.turn_id) {
                    self.calls.insert(call.id.clone(), (turn, self.turns[turn].tool_calls.len()));
                    self.turns[turn].tool_calls.push(call);
                }
            }
            Payload::ToolArguments(p) => self.in_call(&p.tool_call_id, |call| {
                call.arguments_broken = p.input.is_none();
                call.arguments = match (&p.input, &p.text) {
                    (Some(input), _) => input.clone(),
                    (None, Some(text)) => Value::String(text.clone()),
                    (None, None) => Value::Null,
                };
                if call.result.is_none() {
                    call.ended = at;
                }
            }),
            Payload::ToolCompleted(p) => self.in_call(&p.tool_call_id, |call| {
                call.result = Some(ToolResult { value: p.output.clone(), failed: false, origin: p.origin });
                (call.ended, call.completed_at) = (at, Some(wall));
            }),
            Payload::ToolFailed(p) => self.in_call(&p.tool_call_id, |call| {
                let value = Value::String(p.error.message.clone());
                call.result = Some(ToolResult { value, failed: true, origin: p.origin });
                (call.ended, call.completed_at) = (at, Some(wall));
            }),
            Payload::StateSnapshot(p) => self.set_state(p.state.clone()),
            Payload::StateDelta(p) => match &p.state {
                Some(state) => self.set_state(state.clone()),
                None if p.applied => self.patch_state(&p.patch),
                None => {}
            },
            Payload::AgentRunFinished(p) => self.in_turn(&p.turn_id, |turn| {
                turn.usage.extend(p.usage.clone());
                let is_usual = matches!(&*p.outcome, "success" | "interrupt");
                turn.run_outcome = Some(p.outcome.clone()).filter(|_| !is_usual);
                turn.result.clone_from(&p.result);
                turn.finish_reason.clone_from(&p.finish_reason);
            }),
            Payload::TurnSpent(p) => self.in_turn(&p.turn_id, |turn| {
                turn.spent = Spent::sum(turn.spent.iter().chain([&p.spent]));
            }),
            Payload::LlmCallCompleted(p) => self.in_turn(&p.turn_id, |turn| {
                turn.finish_reason = Some(finish_reason(&p.stop_reason));
            }),
            Payload::AwaitingInput(p) => self.in_turn(&p.turn_id, |turn| {
                turn.awaiting = Some(Awaiting { awaiting: p.awaiting, hint: p.hint.clone() });
            }),
            Payload::AgentRunFailed(p) => {
                self.in_turn(&p.turn_id, |turn| turn.run_error = Some(p.error.clone()))
            }
            Payload::InterruptRaised(p) => self.in_turn(&p.turn_id, |turn| {
                turn.interrupts.push(Interrupt {
                    id: p.interrupt_id.clone(),
                    reason: p.reason.clone(),
                    message: p.message.clone(),
                    tool_call_id: p.tool_call_id.clone(),
                    answer: None,
                });
            }),
            Payload::InterruptAnswered(p) => self.in_turn(&p.turn_id, |turn| {
                let open = turn.interrupts.iter_mut().rev().find(|i| i.id == p.interrupt_id);
                if let Some(interrupt) = open {
                    interrupt.answer = Some((p.status.clone(), p.payload.clone()));
                }
            }),
            Payload::TopicsDeclared(p) => {
                self.topics = Some(Arc::new(TopicGraph::of_declared(&p.topics)));
                self.current_topic = None;
                for turn in &mut self.turns {
                    (turn.topic, turn.topic_step) = (None, None);
                }
            }
            Payload::TopicChanged(p) | Payload::TopicKept(p) => self.set_topic(p),
            Payload::SimulationStarted(p) => self.simulations.push(Simulation {
                first_turn: p.turn,
                goal: p.goal.clone(),
                max_turns: p.max_turns,
                ended: None,
            }),
            Payload::SimulationEnded(p) => {
                if let Some(simulation) = self.simulations.last_mut() {
                    simulation.ended = Some(p.clone());
                }
            }
            Payload::RoleAnswered(p) => self.in_turn(&p.turn_id, |turn| turn.roles.push(p.clone())),
            Payload::Note(p) => self.in_turn(&p.turn_id, |turn| turn.notes.push(p.message.clone())),
            // The runtime's own workings; what matters of them is in the turns, messages and calls above.
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
            | Payload::LlmCallStarted(_)
            | Payload::LlmCallFailed(_)
            | Payload::AgentCallStarted(_)
            | Payload::AgentCallContext(_)
            | Payload::AgentCallCompleted(_)
            | Payload::AgentCallFailed(_)
            | Payload::ParticipantAdded(_)
            | Payload::ParticipantRemoved(_)
            | Payload::ConversationCreated(_)
            | Payload::ConversationClosed(_)
            | Payload::DefinitionChanged(_)
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

    /// The call with this id.
    pub fn call(&self, id: &str) -> Option<&ToolCall> {
        self.calls.get(id).map(|&(turn, place)| &self.turns[turn].tool_calls[place])
    }

    /// What its turns have spent, as far as somebody says so.
    pub fn spent(&self) -> Option<Spent> {
        Spent::sum(self.turns.iter().filter_map(|turn| turn.spent.as_ref()))
    }

    /// All turns as one scope.
    pub fn scope(&self) -> Scope<'_> {
        Scope { so_far: &self.turns, first: 0 }
    }

    /// One turn, by its place from 0, as a scope.
    pub fn turn_scope(&self, index: usize) -> Option<Scope<'_>> {
        self.turns_scope(index..index + 1)
    }

    /// Some turns in a row, by their places from 0, as a scope.
    pub fn turns_scope(&self, turns: Range<usize>) -> Option<Scope<'_>> {
        let so_far = self.turns.get(..turns.end)?;
        (turns.start <= turns.end).then_some(Scope { so_far, first: turns.start })
    }

    /// Turns of which nothing else is said belong to the topic of the turn before.
    fn set_topic(&mut self, step: &TopicStep) {
        let turn = step.turn_id.as_ref().and_then(|id| self.turn_index(id));
        let first = turn.unwrap_or(0);
        for turn in &mut self.turns[first..] {
            turn.topic = Some(step.to.clone());
        }
        if let Some(turn) = turn {
            self.turns[turn].topic_step = Some(step.clone());
        }
        if turn.is_some() || step.why == TopicWhy::Initial {
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

    /// A turn keeps the state that it ends with, so a state is copied once a turn and not once a patch.
    fn patch_state(&mut self, patch: &Value) {
        let Some(mut state) = self.state.take() else { return };
        let turn = self.turns.last_mut();
        let kept = turn.and_then(|turn| turn.state.take());
        drop(kept);
        // What does not apply has changed nothing; the agent's own copy and this one differ in secrets only.
        let _ = apply_patch(Arc::make_mut(&mut state), patch, &mut self.patching);
        if let Some(turn) = self.turns.last_mut() {
            turn.state = Some(state.clone());
        }
        self.state = Some(state);
    }

    fn turn_index(&self, id: &str) -> Option<usize> {
        let within = self.within.get(id).map(|&(turn, _)| turn);
        within.or_else(|| self.turns.iter().rposition(|turn| &*turn.id == id))
    }

    /// The agent that was looped in for this turn.
    fn speaker(&self, turn_id: &str) -> Option<Arc<str>> {
        self.within.get(turn_id).and_then(|(_, agent)| agent.clone())
    }

    fn in_turn(&mut self, id: &str, change: impl FnOnce(&mut Turn)) {
        if let Some(index) = self.turn_index(id) {
            change(&mut self.turns[index]);
        }
    }

    fn in_call(&mut self, id: &str, change: impl FnOnce(&mut ToolCall)) {
        if let Some(&(turn, place)) = self.calls.get(id) {
            change(&mut self.turns[turn].tool_calls[place]);
        }
    }

    fn end_turn(&mut self, id: &str, outcome: TurnOutcome, at: Offset, wall: Millis) {
        if self.within.contains_key(id) {
            return;
        }
        self.in_turn(id, |turn| {
            turn.outcome = outcome;
            (turn.ended, turn.ended_at) = (Some(at), Some(wall));
        });
    }
}

impl Turn {
    fn begun(id: Arc<str>, caller: Arc<str>, number: usize, started: Offset, started_at: Millis) -> Self {
        Turn {
            id,
            number,
            caller,
            user: None,
            attachments: Vec::new(),
            started,
            ended: None,
            started_at,
            ended_at: None,
            outcome: TurnOutcome::Open,
            messages: Vec::new(),
            reasoning: Vec::new(),
            tool_calls: Vec::new(),
            interrupts: Vec::new(),
            run_outcome: None,
            run_error: None,
            usage: Vec::new(),
            spent: None,
            finish_reason: None,
            awaiting: None,
            notes: Vec::new(),
            state: None,
            result: None,
            roles: Vec::new(),
            topic: None,
            topic_step: None,
        }
    }

    /// How long it took from sending the input to the end; what has passed so far is not counted.
    pub fn duration(&self) -> Duration {
        self.ended.map_or(Duration::ZERO, |ended| ended - self.started)
    }

    /// Which of its messages called tools, as far as that is told.
    pub fn calling_messages(&self) -> CallingMessages<'_> {
        let named = self.tool_calls.iter().filter_map(|call| call.message_id.as_deref()).collect();
        let every_call_is_told = self.tool_calls.iter().all(|call| call.message_id.is_some());
        CallingMessages { named, every_call_is_told }
    }

    /// The last message of the agent, which is its answer.
    pub fn answer(&self) -> Option<&str> {
        self.messages.last().map(|message| message.content.as_str())
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
    /// Whether a message of the turn called tools too; none where nobody has said so or the contrary.
    pub fn calls_tools(&self, message: &Message) -> Option<bool> {
        if message.has_tool_use == Some(true) || self.named.contains(&*message.id) {
            return Some(true);
        }
        // What every call says of itself cannot be another message's.
        message.has_tool_use.or(self.every_call_is_told.then_some(false))
    }
}

/// The turns that a check looks at: one of them, some in a row, or all.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// All turns up to the last one that is looked at.
    so_far: &'a [Turn],
    /// The place of the first one that is looked at.
    first: usize,
}

impl<'a> Scope<'a> {
    /// The turns.
    pub fn turns(self) -> &'a [Turn] {
        &self.so_far[self.first..]
    }

    /// All turns of the conversation up to the last one that is looked at.
    pub fn so_far(self) -> &'a [Turn] {
        self.so_far
    }

    /// Every tool call with the number of its turn, in the order in which the calls began.
    pub fn calls(self) -> impl Iterator<Item = (usize, &'a ToolCall)> + Clone {
        self.turns().iter().flat_map(|turn| turn.tool_calls.iter().map(|call| (turn.number, call)))
    }

    /// Every message of the agent, joined by line ends.
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

    /// The state the agent shared, as last seen in these turns.
    pub fn state(self) -> Option<&'a Value> {
        self.turns().iter().rev().find_map(|turn| turn.state.as_deref())
    }

    /// The last turn alone.
    #[must_use]
    pub fn last_turn(self) -> Scope<'a> {
        Scope { first: self.first.max(self.so_far.len().saturating_sub(1)), ..self }
    }

    /// When the first turn began.
    pub fn started(self) -> Offset {
        self.turns().first().map_or(Offset(0), |turn| turn.started)
    }

    /// When the last turn ended.
    pub fn ended(self) -> Offset {
        self.turns().iter().filter_map(|turn| turn.ended).max().unwrap_or_else(|| self.started())
    }

    /// From the start of the first turn to the end of the last.
    pub fn duration(self) -> Duration {
        self.ended() - self.started()
    }
}
/// Why a model's reply ends, in the word that chat completions have for it.
fn finish_reason(stop: &Arc<str>) -> Arc<str> {
    match &**stop {
        "end_turn" | "stop_sequence" => "stop".into(),
        "max_tokens" => "length".into(),
        "tool_use" => "tool_calls".into(),
        "refusal" => "content_filter".into(),
        _ => stop.clone(),
    }
}
