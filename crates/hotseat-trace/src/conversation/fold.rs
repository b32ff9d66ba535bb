//! Applies the events of a conversation.

use std::sync::Arc;

use serde_json::Value;

use super::{
    AgentInterrupt, AgentMessage, AgentToolCall, AwaitingReport, ConversationTurn, ReasoningText,
    SimulationSpan, ToolResult, TracedConversation, TurnOutcome, are_unreadable,
};
use crate::server_calls::{InjectedFault, ServerCall, join_server_calls};
use crate::{
    AgentRunFailed, AgentRunFinished, AssistantMessage, AwaitingInput, Event, InterruptAnswered,
    InterruptRaised, McpAnswerLost, McpArgumentsInvalid, McpFaultInjected, Millis, Origin, Payload,
    ReasoningMessage, SimulationEnded, SimulationStarted, StateDelta, TimeOffset, ToolArguments,
    ToolInvocation, TopicGraph, TopicReason, TopicStep, TopicsDeclared, TurnSpent, TurnStart, UsageTotals,
    UserMessage, apply_patch,
};

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
            Payload::ToolInvoked(p) if let Some(server) = &p.server => {
                // Clients of servers without sessions may call without a handshake.
                self.services.connected.insert(server.clone());
                self.add_server_call(p, event);
            }
            Payload::ToolInvoked(p) => self.add_call(p, event),
            Payload::ToolArguments(p) => self.set_arguments(p, at),
            Payload::ToolCompleted(p) => self.end_call(&p.tool_call_id, ToolResult::completed(p), at, wall),
            Payload::ToolFailed(p) => self.end_call(&p.tool_call_id, ToolResult::failed(p), at, wall),
            Payload::McpArgumentsInvalid(p) => self.add_argument_errors(p),
            Payload::McpArgumentsUnchecked(p) => {
                self.update_server_call(&p.tool_call_id, |call| {
                    call.arguments_unchecked = true;
                    call.schema_problem.clone_from(&p.problem);
                });
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
            Payload::AgentRunFailed(p) => self.fail_run(p),
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
            | Payload::ConversationFailed(_)
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

    fn fail_run(&mut self, p: &AgentRunFailed) {
        self.update_turn(&p.turn_id, |turn| {
            turn.reported_usage.extend(p.usage.clone());
            turn.run_error = Some(p.error.clone());
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
            if let Some(message) = &p.message_id {
                call.message_id = Some(message.clone());
                if p.input.is_none() && p.text.is_none() {
                    return;
                }
            }
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
        // Older traces do not mark the results of servers.
        if result.origin != Origin::Server && self.calls.contains_key(id) {
            self.update_call(id, |call| {
                call.result = Some(result);
                (call.ended, call.completed_at) = (at, Some(wall));
            });
            return;
        }
        self.update_server_call(id, |call| {
            (call.result, call.ended, call.completed_at) = (Some(result), Some(at), Some(wall));
        });
        if let Some(&(turn, place)) = self.joined_server_calls.get(id) {
            self.turns[turn].tool_calls[place].use_server_result();
        }
    }

    fn update_server_call(&mut self, id: &str, change: impl FnOnce(&mut ServerCall)) {
        if let Some(&(turn, place)) = self.server_calls.get(id) {
            change(&mut self.turns[turn].server_calls[place]);
        } else if let Some(&(turn, place)) = self.joined_server_calls.get(id)
            && let Some(call) = &mut self.turns[turn].tool_calls[place].server_call
        {
            change(call);
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
            if call.is_reported {
                self.calls.insert(call.id.clone(), (turn, place));
            }
            if let Some(server_call) = &call.server_call {
                self.joined_server_calls.insert(server_call.id.clone(), (turn, place));
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
            self.order_by_start(turn);
            self.join_server_calls(turn);
        }
    }

    /// Puts what the agent said and did in a turn into the order in which it began: the trace has a message at its end, and a
    /// snapshot reports afterwards what it alone has.
    fn order_by_start(&mut self, turn: usize) {
        let ordered = &mut self.turns[turn];
        ordered.messages.sort_by_key(AgentMessage::begun);
        if ordered.tool_calls.is_sorted_by_key(AgentToolCall::begun) {
            return;
        }
        ordered.tool_calls.sort_by_key(AgentToolCall::begun);
        for (place, call) in ordered.tool_calls.iter().enumerate() {
            self.calls.insert(call.id.clone(), (turn, place));
        }
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
