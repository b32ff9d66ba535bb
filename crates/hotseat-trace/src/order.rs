//! What must come before what in a trace: one checker, and the rules as data.

use std::collections::BTreeMap;

use crate::{Payload, View, Violation};

/// Finds the events that a rule speaks of, and says which of them belong together: those with the same key.
pub type Point = fn(&Payload) -> Option<String>;

/// One rule of order.
#[derive(Debug, Clone, Copy)]
pub struct OrderRule {
    /// The rule in words.
    pub name: &'static str,
    /// What it demands.
    pub demand: Demand,
}

/// What a rule of order demands, among events with the same key.
#[derive(Debug, Clone, Copy)]
pub enum Demand {
    /// Before every `then` there is a `first`.
    Needed(Point, Point),
    /// Before the k-th `then` there are at least k `first`.
    Paired(Point, Point),
    /// Where there is a `first` at all, one comes before every `then`.
    IfBoth(Point, Point),
    /// No `first` comes after a `then`.
    AllBefore(Point, Point),
    /// Between an opening and its closing there is none of the third.
    NoneBetween(Point, Point, Point),
}

/// The rules that every conversation of the runtime keeps.
pub(crate) const RULES: &[OrderRule] = &[
    rule("turn.started is the first event of its turn", Demand::Needed(turn_started, in_turn)),
    rule("turn.started < message.user", Demand::Needed(turn_started, user_message)),
    rule("message.user < context_assembly.started", Demand::Needed(user_message, assembly_started)),
    rule("context_assembly.started < its outcome", Demand::Paired(assembly_run, assembly_outcome_run)),
    rule("context_assembly.completed < llm.call.started", Demand::Needed(assembly_completed, llm_started)),
    rule(
        "no llm.call.started while context is assembled",
        Demand::NoneBetween(assembly_started, assembly_outcome, llm_started),
    ),
    rule(
        "k-th context_assembly.failed < attempt after it",
        Demand::Paired(assembly_failed_attempt, assembly_next_attempt),
    ),
    rule(
        "k-th memory_extraction.failed < attempt after it",
        Demand::Paired(extraction_failed_attempt, extraction_next_attempt),
    ),
    rule("llm.call.started < its outcome", Demand::Paired(llm_started, llm_outcome)),
    rule("llm.call.completed < message.assistant", Demand::Needed(llm_completed, assistant_message)),
    rule("llm.call.completed < tool.invoked", Demand::Needed(llm_completed, tool_invoked_turn)),
    rule("llm.call.completed < move.recorded", Demand::Needed(llm_completed, move_recorded)),
    rule("message.assistant < move.recorded of a text reply", Demand::Needed(assistant_text, text_move)),
    rule("tool.invoked < turn.waiting or turn.async_tracked", Demand::Needed(tool_invoked, taken_up)),
    rule(
        "turn.waiting or turn.async_tracked < executor.task.started",
        Demand::IfBoth(taken_up, task_started),
    ),
    rule(
        "executor.task.started < executor.task.completed or failed",
        Demand::Paired(task_started, task_ended),
    ),
    rule("executor.task.completed or failed < tool outcome", Demand::IfBoth(task_ended, tool_outcome)),
    rule("turn.waiting or turn.async_tracked < workflow.started", Demand::IfBoth(taken_up, workflow_started)),
    rule("workflow.started < workflow.completed or failed", Demand::Paired(workflow_started, workflow_ended)),
    rule("workflow.completed or failed < tool outcome", Demand::IfBoth(workflow_ended, tool_outcome)),
    rule("tool outcome < move.recorded with its result", Demand::Needed(tool_outcome, move_with_result)),
    rule("move.recorded < turn.resumed", Demand::Needed(move_of_call, turn_resumed)),
    rule("turn.waiting < turn.resumed", Demand::Paired(turn_waiting, turn_resumed)),
    rule(
        "no llm.call.started between turn.waiting and turn.resumed",
        Demand::NoneBetween(waiting_turn, resumed_turn, llm_started),
    ),
    rule("turn.async_tracked < turn.async_completed", Demand::Needed(async_tracked, async_completed)),
    rule("tool outcome < turn.async_completed", Demand::Needed(tool_outcome, async_completed)),
    rule("tool.invoked < interrupt.raised", Demand::Needed(tool_invoked, asked_for_call)),
    rule("interrupt.raised < interrupt.answered", Demand::Paired(asked, answered)),
    rule(
        "no llm.call.started between interrupt.raised and interrupt.answered",
        Demand::NoneBetween(asking_turn, answered_turn, llm_started),
    ),
    rule("interrupt.answered < turn.waiting or turn.async_tracked", Demand::IfBoth(answered, taken_up)),
    rule("tool.invoked < agent.call.started", Demand::Needed(tool_invoked, agent_started)),
    rule("agent.call.started < agent.call.context", Demand::Needed(agent_started, agent_context)),
    rule("agent.call.context < turn.waiting or turn.async_tracked", Demand::IfBoth(agent_context, taken_up)),
    rule("agent.call.started < its outcome", Demand::Paired(agent_started, agent_outcome)),
    rule("agent call outcome < tool outcome", Demand::IfBoth(agent_outcome, tool_outcome)),
    rule("last move < memory_extraction.started", Demand::AllBefore(move_recorded, extraction_started)),
    rule(
        "last message.assistant < memory_extraction.started",
        Demand::AllBefore(assistant_message, extraction_started),
    ),
    rule("memory_extraction.started < turn.completed", Demand::Needed(extraction_started, turn_completed)),
    rule("memory extraction settles < turn.completed", Demand::AllBefore(extraction_event, turn_completed)),
];

const fn rule(name: &'static str, demand: Demand) -> OrderRule {
    OrderRule { name, demand }
}

/// Where one conversation breaks a rule.
pub fn order_violations(view: &View<'_>, rules: &[OrderRule]) -> Vec<Violation> {
    rules.iter().flat_map(|rule| broken(view, rule)).collect()
}

fn broken(view: &View<'_>, rule: &OrderRule) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut report = |key: &str, sequences: Vec<u64>| {
        violations.push(Violation {
            invariant: "ordered",
            message: format!("{} ({key})", rule.name),
            sequences,
        });
    };
    match rule.demand {
        Demand::Needed(first, then) => {
            let first = places(view, first);
            for (key, sequences) in places(view, then) {
                let earliest = first.get(&key).and_then(|found| found.first());
                let late =
                    sequences.iter().filter(|sequence| earliest.is_none_or(|first| first >= *sequence));
                late.for_each(|sequence| report(&key, vec![*sequence]));
            }
        }
        Demand::Paired(first, then) => {
            let first = places(view, first);
            for (key, sequences) in places(view, then) {
                for (index, sequence) in sequences.iter().enumerate() {
                    let partner = first.get(&key).and_then(|found| found.get(index));
                    if partner.is_none_or(|first| first >= sequence) {
                        report(&key, vec![*sequence]);
                    }
                }
            }
        }
        Demand::IfBoth(first, then) => {
            let then = places(view, then);
            for (key, sequences) in places(view, first) {
                let (Some(first), Some(then)) =
                    (sequences.first(), then.get(&key).and_then(|found| found.first()))
                else {
                    continue;
                };
                if first > then {
                    report(&key, vec![*first, *then]);
                }
            }
        }
        Demand::AllBefore(first, then) => {
            let first = places(view, first);
            for (key, sequences) in places(view, then) {
                let (Some(then), Some(last)) =
                    (sequences.first(), first.get(&key).and_then(|found| found.last()))
                else {
                    continue;
                };
                if last > then {
                    report(&key, vec![*then, *last]);
                }
            }
        }
        Demand::NoneBetween(open, close, forbidden) => {
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

/// Where the events of a point stand, by key.
fn places(view: &View<'_>, point: Point) -> BTreeMap<String, Vec<u64>> {
    let mut found: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for record in view.records() {
        if let Some(key) = point(&record.payload) {
            found.entry(key).or_default().push(record.sequence);
        }
    }
    found
}

/// Declares points: a name, the event types, and the key.
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
}

/// Any event of a turn but its first.
fn in_turn(payload: &Payload) -> Option<String> {
    match payload {
        Payload::TurnStarted(_) | Payload::RuntimeError(_) | Payload::InputIgnored(_) => None,
        other => other.turn_id().map(ToString::to_string),
    }
}

fn assembly_outcome(payload: &Payload) -> Option<String> {
    match payload {
        Payload::ContextAssemblyCompleted(_) | Payload::ContextAssemblyFailed(_) => {
            payload.turn_id().map(ToString::to_string)
        }
        _ => None,
    }
}

fn assembly_outcome_run(payload: &Payload) -> Option<String> {
    match payload {
        Payload::ContextAssemblyCompleted(p) => Some(p.run_id.to_string()),
        Payload::ContextAssemblyFailed(p) => Some(p.run_id.to_string()),
        _ => None,
    }
}

fn extraction_event(payload: &Payload) -> Option<String> {
    match payload {
        Payload::MemoryExtractionStarted(_)
        | Payload::MemoryExtractionCompleted(_)
        | Payload::MemoryExtractionFailed(_) => payload.turn_id().map(ToString::to_string),
        _ => None,
    }
}

fn llm_outcome(payload: &Payload) -> Option<String> {
    match payload {
        Payload::LlmCallCompleted(_) | Payload::LlmCallFailed(_) => {
            payload.turn_id().map(ToString::to_string)
        }
        _ => None,
    }
}

fn tool_outcome(payload: &Payload) -> Option<String> {
    match payload {
        Payload::ToolCompleted(p) => Some(p.tool_call_id.to_string()),
        Payload::ToolFailed(p) => Some(p.tool_call_id.to_string()),
        _ => None,
    }
}

fn task_ended(payload: &Payload) -> Option<String> {
    match payload {
        Payload::TaskCompleted(p) => Some(p.run_id.to_string()),
        Payload::TaskFailed(p) => Some(p.run_id.to_string()),
        _ => None,
    }
}

fn workflow_ended(payload: &Payload) -> Option<String> {
    match payload {
        Payload::WorkflowCompleted(p) => Some(p.run_id.to_string()),
        Payload::WorkflowFailed(p) => Some(p.run_id.to_string()),
        _ => None,
    }
}

fn agent_outcome(payload: &Payload) -> Option<String> {
    match payload {
        Payload::AgentCallCompleted(p) => Some(p.call_id.to_string()),
        Payload::AgentCallFailed(p) => Some(p.call_id.to_string()),
        _ => None,
    }
}
