//! Ordering rules for the events of a trace: a checker, and the rules as data.

use std::collections::BTreeMap;

use super::InvariantViolation;
use super::violation::ViolationCollector;
use crate::{ConversationView, Payload};

/// Selects the events that a rule applies to. Returns a key; events with equal keys are compared.
pub type EventSelector = fn(&Payload) -> Option<String>;

/// One ordering rule.
#[derive(Debug, Clone, Copy)]
pub struct OrderRule {
    /// The rule as text.
    pub name: &'static str,
    /// The required order.
    pub constraint: OrderConstraint,
}

/// The order that a rule requires among events with the same key.
#[derive(Debug, Clone, Copy)]
pub enum OrderConstraint {
    /// Every `then` is preceded by a `first`.
    RequiresEarlier(EventSelector, EventSelector),
    /// The k-th `then` is preceded by at least k `first`.
    RequiresPair(EventSelector, EventSelector),
    /// If any `first` exists, one precedes every `then`.
    PrecedesIfPresent(EventSelector, EventSelector),
    /// No `first` follows a `then`.
    AllPrecede(EventSelector, EventSelector),
    /// The third event never occurs between an opening and its closing event.
    NoneBetween(EventSelector, EventSelector, EventSelector),
}

/// Declares rules: the text, the required order and its event selectors.
macro_rules! rules {
    ($($name:literal: $constraint:ident($($selector:ident),+);)+) => {
        &[$(OrderRule { name: $name, constraint: OrderConstraint::$constraint($($selector),+) }),+]
    };
}

/// Rules for every conversation of the runtime.
const RULES: &[OrderRule] = rules! {
    "turn.started is the first event of its turn": RequiresEarlier(turn_started, in_turn);
    "turn.started < message.user": RequiresEarlier(turn_started, user_message);
    "message.user < context_assembly.started": RequiresEarlier(user_message, assembly_started);
    "context_assembly.started < its outcome": RequiresPair(assembly_run, assembly_outcome_run);
    "context_assembly.completed < llm.call.started": RequiresEarlier(assembly_completed, llm_started);
    "no llm.call.started while context is assembled":
        NoneBetween(assembly_started, assembly_outcome, llm_started);
    "k-th context_assembly.failed < attempt after it":
        RequiresPair(assembly_failed_attempt, assembly_next_attempt);
    "k-th memory_extraction.failed < attempt after it":
        RequiresPair(extraction_failed_attempt, extraction_next_attempt);
    "llm.call.started < its outcome": RequiresPair(llm_started, llm_outcome);
    "llm.call.completed < message.assistant": RequiresEarlier(llm_completed, assistant_message);
    "llm.call.completed < tool.invoked": RequiresEarlier(llm_completed, tool_invoked_turn);
    "llm.call.completed < move.recorded": RequiresEarlier(llm_completed, move_recorded);
    "message.assistant < move.recorded of a text reply": RequiresEarlier(assistant_text, text_move);
    "tool.invoked < turn.waiting or turn.async_tracked": RequiresEarlier(tool_invoked, taken_up);
    "turn.waiting or turn.async_tracked < executor.task.started": PrecedesIfPresent(taken_up, task_started);
    "executor.task.started < executor.task.completed or failed": RequiresPair(task_started, task_ended);
    "executor.task.completed or failed < tool outcome": PrecedesIfPresent(task_ended, tool_outcome);
    "turn.waiting or turn.async_tracked < workflow.started": PrecedesIfPresent(taken_up, workflow_started);
    "workflow.started < workflow.completed or failed": RequiresPair(workflow_started, workflow_ended);
    "workflow.completed or failed < tool outcome": PrecedesIfPresent(workflow_ended, tool_outcome);
    "tool outcome < move.recorded with its result": RequiresEarlier(tool_outcome, move_with_result);
    "move.recorded < turn.resumed": RequiresEarlier(move_of_call, turn_resumed);
    "turn.waiting < turn.resumed": RequiresPair(turn_waiting, turn_resumed);
    "no llm.call.started between turn.waiting and turn.resumed":
        NoneBetween(waiting_turn, resumed_turn, llm_started);
    "turn.async_tracked < turn.async_completed": RequiresEarlier(async_tracked, async_completed);
    "tool outcome < turn.async_completed": RequiresEarlier(tool_outcome, async_completed);
    "tool.invoked < interrupt.raised": RequiresEarlier(tool_invoked, asked_for_call);
    "interrupt.raised < interrupt.answered": RequiresPair(asked, answered);
    "no llm.call.started between interrupt.raised and interrupt.answered":
        NoneBetween(asking_turn, answered_turn, llm_started);
    "interrupt.answered < turn.waiting or turn.async_tracked": PrecedesIfPresent(answered, taken_up);
    "tool.invoked < agent.call.started": RequiresEarlier(tool_invoked, agent_started);
    "agent.call.started < agent.call.context": RequiresEarlier(agent_started, agent_context);
    "agent.call.context < turn.waiting or turn.async_tracked": PrecedesIfPresent(agent_context, taken_up);
    "agent.call.started < its outcome": RequiresPair(agent_started, agent_outcome);
    "agent call outcome < tool outcome": PrecedesIfPresent(agent_outcome, tool_outcome);
    "last move < memory_extraction.started": AllPrecede(move_recorded, extraction_started);
    "last message.assistant < memory_extraction.started": AllPrecede(assistant_message, extraction_started);
    "memory_extraction.started < turn.completed": RequiresEarlier(extraction_started, turn_completed);
    "memory extraction settles < turn.completed": AllPrecede(extraction_event, turn_completed);
};

/// The ordering rules are satisfied.
pub(super) fn ordered(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    found.violations.extend(order_violations(view, RULES));
}

/// Returns the violations of `rules` in one conversation.
pub fn order_violations(view: &ConversationView<'_>, rules: &[OrderRule]) -> Vec<InvariantViolation> {
    rules.iter().flat_map(|rule| rule_violations(view, rule)).collect()
}

fn rule_violations(view: &ConversationView<'_>, rule: &OrderRule) -> Vec<InvariantViolation> {
    let mut violations = Vec::new();
    let mut report = |key: &str, sequences: Vec<u64>| {
        violations.push(InvariantViolation {
            invariant: "ordered",
            message: format!("{} ({key})", rule.name),
            sequences,
        });
    };
    match rule.constraint {
        OrderConstraint::RequiresEarlier(first, then) => {
            for (key, first, then) in pairs_by_key(view, first, then) {
                let late = then.iter().filter(|then| first.first().is_none_or(|first| first >= *then));
                late.for_each(|sequence| report(&key, vec![*sequence]));
            }
        }
        OrderConstraint::RequiresPair(first, then) => {
            for (key, first, then) in pairs_by_key(view, first, then) {
                let pairs = then.iter().enumerate().map(|(index, then)| (first.get(index), then));
                let late = pairs.filter(|(first, then)| first.is_none_or(|first| first >= *then));
                late.for_each(|(_, sequence)| report(&key, vec![*sequence]));
            }
        }
        OrderConstraint::PrecedesIfPresent(first, then) => {
            for (key, first, then) in pairs_by_key(view, first, then) {
                if let (Some(first), Some(then)) = (first.first(), then.first())
                    && first > then
                {
                    report(&key, vec![*first, *then]);
                }
            }
        }
        OrderConstraint::AllPrecede(first, then) => {
            for (key, first, then) in pairs_by_key(view, first, then) {
                if let (Some(last), Some(then)) = (first.last(), then.first())
                    && last > then
                {
                    report(&key, vec![*then, *last]);
                }
            }
        }
        OrderConstraint::NoneBetween(open, close, forbidden) => {
            let mut openings: BTreeMap<String, u32> = BTreeMap::new();
            for record in view.records() {
                if let Some(key) = open(&record.payload) {
                    *openings.entry(key).or_default() += 1;
                }
                if let Some(count) = close(&record.payload).and_then(|key| openings.get_mut(&key)) {
                    *count = count.saturating_sub(1);
                }
                if let Some(key) = forbidden(&record.payload)
                    && openings.get(&key).is_some_and(|count| *count > 0)
                {
                    report(&key, vec![record.sequence]);
                }
            }
        }
    }
    violations
}

/// Returns the keys of the events that `then` selects, each with the sequence numbers of both kinds of events.
fn pairs_by_key(
    view: &ConversationView<'_>,
    first: EventSelector,
    then: EventSelector,
) -> impl Iterator<Item = (String, Vec<u64>, Vec<u64>)> {
    let mut first = sequences_by_key(view, first);
    let then = sequences_by_key(view, then).into_iter();
    then.map(move |(key, then)| (key.clone(), first.remove(&key).unwrap_or_default(), then))
}

/// Returns the sequence numbers of the selected events, by key.
fn sequences_by_key(view: &ConversationView<'_>, point: EventSelector) -> BTreeMap<String, Vec<u64>> {
    let mut found: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for record in view.records() {
        if let Some(key) = point(&record.payload) {
            found.entry(key).or_default().push(record.sequence);
        }
    }
    found
}

/// Declares event selectors: name, event types and key.
macro_rules! points {
    ($($name:ident: $($variant:ident)|+ => |$p:ident| $key:expr;)+) => {
        $(
            fn $name(payload: &Payload) -> Option<String> {
                match payload {
                    $(Payload::$variant($p) => $key,)+
                    _ => None,
                }
            }
        )+
    };
}

points! {
    turn_started: TurnStarted => |p| Some(p.turn_id.to_string());
    turn_completed: TurnCompleted => |p| Some(p.turn_id.to_string());
    user_message: UserMessage => |p| Some(p.turn_id.to_string());
    assistant_message: AssistantMessage => |p| Some(p.turn_id.to_string());
    assistant_text: AssistantMessage => |p| Some(format!("{} {}", p.turn_id, p.content));
    text_move: MoveRecorded => |p| match (&p.tool_call, &p.reasoning) {
        (None, Some(text)) if !text.is_empty() => Some(format!("{} {text}", p.turn_id)),
        _ => None,
    };
    assembly_started: ContextAssemblyStarted => |p| Some(p.turn_id.to_string());
    assembly_completed: ContextAssemblyCompleted => |p| Some(p.turn_id.to_string());
    assembly_run: ContextAssemblyStarted => |p| Some(p.run_id.to_string());
    assembly_failed_attempt: ContextAssemblyFailed => |p| Some(format!("{} {}", p.turn_id, p.attempt + 1));
    assembly_next_attempt: ContextAssemblyStarted =>
        |p| (p.attempt > 1).then(|| format!("{} {}", p.turn_id, p.attempt));
    extraction_started: MemoryExtractionStarted => |p| Some(p.turn_id.to_string());
    extraction_failed_attempt: MemoryExtractionFailed => |p| Some(format!("{} {}", p.turn_id, p.attempt + 1));
    extraction_next_attempt: MemoryExtractionStarted =>
        |p| (p.attempt > 1).then(|| format!("{} {}", p.turn_id, p.attempt));
    llm_started: LlmCallStarted => |p| Some(p.turn_id.to_string());
    llm_completed: LlmCallCompleted => |p| Some(p.turn_id.to_string());
    tool_invoked: ToolInvoked => |p| Some(p.tool_call_id.to_string());
    tool_invoked_turn: ToolInvoked => |p| Some(p.turn_id.to_string());
    move_recorded: MoveRecorded => |p| Some(p.turn_id.to_string());
    move_of_call: MoveRecorded => |p| p.tool_call.as_ref().map(|call| call.tool_call_id.to_string());
    move_with_result: MoveRecorded => |p| p.tool_result.as_ref().map(|result| result.tool_call_id.to_string());
    turn_waiting: TurnWaiting => |p| Some(p.operation_id.to_string());
    waiting_turn: TurnWaiting => |p| Some(p.turn_id.to_string());
    turn_resumed: TurnResumed => |p| Some(p.operation_id.to_string());
    resumed_turn: TurnResumed => |p| Some(p.turn_id.to_string());
    taken_up: TurnWaiting | AsyncTracked => |p| Some(p.operation_id.to_string());
    async_tracked: AsyncTracked => |p| Some(p.operation_id.to_string());
    async_completed: AsyncCompleted => |p| Some(p.operation_id.to_string());
    asked: InterruptRaised => |p| Some(p.interrupt_id.to_string());
    asked_for_call: InterruptRaised => |p| p.tool_call_id.as_ref().map(ToString::to_string);
    asking_turn: InterruptRaised => |p| Some(p.turn_id.to_string());
    answered: InterruptAnswered => |p| Some(p.interrupt_id.to_string());
    answered_turn: InterruptAnswered => |p| Some(p.turn_id.to_string());
    task_started: TaskStarted => |p| Some(p.run_id.to_string());
    workflow_started: WorkflowStarted => |p| Some(p.run_id.to_string());
    agent_started: AgentCallStarted => |p| Some(p.call_id.to_string());
    agent_context: AgentCallContext => |p| Some(p.call_id.to_string());
    assembly_outcome: ContextAssemblyCompleted | ContextAssemblyFailed => |p| Some(p.turn_id.to_string());
    assembly_outcome_run: ContextAssemblyCompleted | ContextAssemblyFailed => |p| Some(p.run_id.to_string());
    extraction_event: MemoryExtractionStarted | MemoryExtractionCompleted | MemoryExtractionFailed =>
        |p| Some(p.turn_id.to_string());
    llm_outcome: LlmCallCompleted | LlmCallFailed => |p| Some(p.turn_id.to_string());
    tool_outcome: ToolCompleted | ToolFailed => |p| Some(p.tool_call_id.to_string());
    task_ended: TaskCompleted | TaskFailed => |p| Some(p.run_id.to_string());
    workflow_ended: WorkflowCompleted | WorkflowFailed => |p| Some(p.run_id.to_string());
    agent_outcome: AgentCallCompleted | AgentCallFailed => |p| Some(p.call_id.to_string());
}

/// Selects every event of a turn except the first.
fn in_turn(payload: &Payload) -> Option<String> {
    match payload {
        Payload::TurnStarted(_) | Payload::RuntimeError(_) | Payload::InputIgnored(_) => None,
        other => other.turn_id().map(ToString::to_string),
    }
}
