//! Turns as the page draws them: their events and calls in order, and the time spans of their parts.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;

use hotseat_trace::{
    AgentRunFailed, EventRecord, ExecutionInfo, ExecutionKind, Payload, Subagent, TimeOffset,
    TracedConversation, TurnFailed, TurnStart, WorkOrigin, optional_members,
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::reporters::record::ToolCallRecord;

/// Turn of a conversation.
#[derive(Debug, Serialize)]
pub struct PageTurn<'a> {
    /// Start and end, like all times of the page in microseconds since the start of the conversation.
    pub start: TimeOffset,
    pub end: TimeOffset,
    pub items: Vec<PageItem<'a>>,
    spans: Vec<PageSpan<'a>>,
    /// Called agent, and the call that it answers, unless this is a turn of the tested agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    callee: Option<(&'a str, &'a str)>,
    #[serde(skip)]
    last_error: Option<&'a str>,
}

optional_members! {
    /// Event of a turn that the page shows, or a call.
    #[derive(Debug, Serialize)]
    pub struct PageItem<'a> {
        /// Number of its first event, which has its content.
        pub sequence: u64,
        /// Source of an input, or the called agent that it is from.
        pub from?: Option<&'a str>,
        /// Index among the calls of the turn in the result; record of a call that is not in the result.
        pub call?: Option<Value>,
    }

    /// Time span of a part of a turn.
    #[derive(Debug, Serialize)]
    struct PageSpan<'a> {
        kind: &'static str,
        label: Cow<'a, str>,
        start: TimeOffset,
        end: TimeOffset,
        /// 0 for the tested agent, more for parts of its calls.
        depth: usize,
        /// Number of its first event.
        sequence: u64,
        failed?: bool,
        unfinished?: bool,
    }
}

/// Names an open span: its kind, up to two ids and a number.
type SpanKey<'a> = (&'static str, &'a str, &'a str, u32);

/// Effect of an event on the spans of its turn.
enum SpanChange<'a> {
    Start(SpanKey<'a>, &'a str),
    /// With true if the part failed.
    End(SpanKey<'a>, bool),
    Whole(&'static str, Cow<'a, str>, TimeOffset),
}

/// Place of the events of a turn.
#[derive(Clone, Copy)]
struct TurnPlace<'a> {
    turn: usize,
    /// Turn of the tested agent that has the spans.
    whole: usize,
    caller: &'a str,
    /// Called agent that answers.
    agent: Option<&'a str>,
    /// True if the turn is that of a sub-agent within another turn.
    is_within: bool,
}

/// Collects turns from events, also those of conversations with called agents.
#[derive(Default)]
struct TurnCollector<'a> {
    turns: Vec<PageTurn<'a>>,
    places: HashMap<&'a str, TurnPlace<'a>>,
    /// Conversations of the executions that are not of the tested agent.
    owners: HashMap<&'a str, Option<&'a str>>,
    /// Agent and call of each conversation that a call opened.
    callees: HashMap<&'a str, (&'a str, &'a str)>,
    folded: HashMap<&'a str, TracedConversation>,
    /// Turn and index of each open span.
    open: HashMap<SpanKey<'a>, (usize, usize)>,
}

impl<'a> PageTurn<'a> {
    /// Builds the turns of a conversation from its events, with its calls.
    pub fn from_events(
        conversation: &'a TracedConversation,
        events: &[&'a EventRecord],
    ) -> Vec<PageTurn<'a>> {
        let mut collector = TurnCollector::default();
        let end = events.last().map_or(TimeOffset(0), |record| record.offset);
        events.iter().for_each(|record| collector.apply(record, end));
        for inner in std::mem::take(&mut collector.folded).values_mut() {
            inner.settle();
            collector.add_calls(inner, |_, record| json!(record));
        }
        collector.add_calls(conversation, |index, _| json!(index));
        collector.turns.iter_mut().for_each(PageTurn::finish);
        collector.turns
    }

    /// Orders the items and spans, and ends open spans with the turn.
    fn finish(&mut self) {
        self.items.sort_by_key(|item| item.sequence);
        for span in self.spans.iter_mut().filter(|span| span.unfinished) {
            span.end = self.end.max(span.start);
        }
        self.spans.sort_by_key(|span| (span.start, span.kind != "model"));
        // A message is part of the model step that writes it.
        let mut model_end = None;
        self.spans.retain(|span| {
            model_end = model_end.max((span.kind == "model").then_some(span.end));
            span.kind != "message" || model_end.is_none_or(|end| end < span.start)
        });
        self.spans.sort_by_key(|span| (span.start, span.depth, Reverse(span.end)));
    }
}

impl<'a> TurnCollector<'a> {
    fn apply(&mut self, record: &'a EventRecord, end: TimeOffset) {
        let own = record.execution.as_ref().and_then(|execution| self.owner(execution));
        if let Some(own) = own {
            self.folded.entry(own).or_default().apply(&record.event);
        }
        match &record.payload {
            Payload::ConversationCreated(p) => {
                let callee = p.parent.as_ref().map(|parent| (&*p.agent_id, &*parent.call_id));
                self.callees.extend(callee.map(|callee| (&*p.conversation_id, callee)));
            }
            Payload::TurnStarted(p) => self.start_turn(p, record, own, end),
            payload => {
                if let Some(place) = payload.turn_id().and_then(|id| self.places.get(&**id)) {
                    self.add_item(*place, record);
                }
                self.change_spans(record, own);
            }
        }
    }

    /// Returns the conversation of an execution, unless it is that of the tested agent.
    fn owner(&mut self, execution: &'a ExecutionInfo) -> Option<&'a str> {
        let own = match execution.kind {
            ExecutionKind::Conversation => Some(&*execution.id),
            ExecutionKind::Workflow => *self.owners.get(execution.parent.as_deref()?)?,
        };
        *self.owners.entry(&execution.id).or_insert(own)
    }

    fn start_turn(&mut self, p: &'a TurnStart, record: &EventRecord, own: Option<&str>, end: TimeOffset) {
        let caller = p.caller_turn_id.as_deref().and_then(|id| self.places.get(id).copied());
        let place = match (caller, own) {
            (Some(caller), None) => TurnPlace { agent: p.agent_id.as_deref(), is_within: true, ..caller },
            (None, None) if record.execution.is_some() => return,
            (caller, own) => {
                let turn = self.turns.len();
                let callee = own.map(|own| self.callees.get(own).copied().unwrap_or_default());
                let (items, spans, start) = (Vec::new(), Vec::new(), record.offset);
                self.turns.push(PageTurn { start, end, items, spans, callee, last_error: None });
                let whole = caller.map_or(turn, |caller| caller.whole);
                let agent = p.agent_id.as_deref().filter(|_| own.is_some());
                TurnPlace { turn, whole, caller: &p.caller_id, agent, is_within: false }
            }
        };
        self.places.insert(&p.turn_id, place);
    }

    /// Adds the item of an event that the page shows.
    fn add_item(&mut self, place: TurnPlace<'a>, record: &'a EventRecord) {
        let turn = &mut self.turns[place.turn];
        if matches!(&record.payload, Payload::TurnCompleted(_) | Payload::TurnFailed(_)) && !place.is_within {
            turn.end = record.offset;
        }
        let is_shown = match &record.payload {
            Payload::UserMessage(_) | Payload::TurnFailed(_) if place.is_within => false,
            Payload::AssistantMessage(p) => !p.content.is_empty(),
            Payload::AwaitingInput(p) => p.awaiting,
            // The error of a run is often that of its turn too.
            Payload::AgentRunFailed(AgentRunFailed { error, .. })
            | Payload::TurnFailed(TurnFailed { error, .. }) => {
                turn.last_error.replace(&error.message).is_none_or(|last| last != error.message)
            }
            Payload::UserMessage(_)
            | Payload::ReasoningMessage(_)
            | Payload::InterruptRaised(_)
            | Payload::LlmCallFailed(_)
            | Payload::LlmFaultInjected(_) => true,
            payload => matches!(payload.category(), "custom" | "protocol" | "role" | "state" | "subagent"),
        };
        if is_shown {
            let is_input = matches!(&record.payload, Payload::UserMessage(_));
            let from = if is_input { Some(place.caller) } else { place.agent };
            turn.items.push(PageItem { sequence: record.sequence, from, call: None });
        }
    }

    /// Starts, ends or adds the span of an event.
    fn change_spans(&mut self, record: &'a EventRecord, own: Option<&str>) {
        let execution = record.execution.as_ref();
        let Some(change) = SpanChange::new(record) else { return };
        let (key, kind, label, start) = match change {
            SpanChange::End(key, failed) => {
                if let Some((turn, index)) = self.open.remove(&key) {
                    let span = &mut self.turns[turn].spans[index];
                    (span.end, span.failed, span.unfinished) = (record.offset, failed, false);
                }
                return;
            }
            SpanChange::Start(key, label) => (Some(key), key.0, label.into(), record.offset),
            SpanChange::Whole(kind, label, start) => (None, kind, label, start),
        };
        let place = record.payload.turn_id().and_then(|id| self.places.get(&**id));
        let Some(spans) = place.map(|place| &mut self.turns[place.whole].spans) else { return };
        let is_workflow = execution.is_some_and(|execution| execution.kind == ExecutionKind::Workflow);
        let depth = usize::from(own.is_some()) + usize::from(is_workflow);
        let (sequence, end) = (record.sequence, record.offset);
        self.open.extend(key.zip(place.map(|place| (place.whole, spans.len()))));
        spans.push(PageSpan {
            kind,
            label,
            start,
            end,
            depth,
            sequence,
            failed: false,
            unfinished: key.is_some(),
        });
    }

    /// Adds the calls of a conversation with their spans.
    fn add_calls(
        &mut self,
        folded: &TracedConversation,
        content: impl Fn(usize, ToolCallRecord<'_>) -> Value,
    ) {
        for turn in &folded.turns {
            let Some(place) = self.places.get(&*turn.id).copied() else { continue };
            for (index, call) in turn.tool_calls.iter().enumerate() {
                let (sequence, result) = (call.sequence, call.result.as_ref());
                let record = Some(content(index, ToolCallRecord::new(call, turn)));
                self.turns[place.turn].items.push(PageItem { sequence, from: place.agent, call: record });
                self.turns[place.whole].spans.push(PageSpan {
                    kind: "tool",
                    label: call.name.to_string().into(),
                    start: call.started,
                    end: call.ended,
                    depth: usize::from(place.whole != place.turn),
                    sequence,
                    failed: result.is_some_and(|result| result.failed),
                    unfinished: result.is_none(),
                });
            }
        }
    }
}

impl<'a> SpanChange<'a> {
    fn new(record: &'a EventRecord) -> Option<SpanChange<'a>> {
        use SpanChange::{End, Start, Whole};
        let execution = record.execution.as_ref().map_or("", |execution| &execution.id);
        let name = |p: &'a Subagent| p.name.as_deref().unwrap_or(&p.subagent);
        Some(match &record.payload {
            Payload::AssistantMessage(p) => Whole("message", "message".into(), p.started_us?),
            Payload::RoleAnswered(p) => {
                let label = format!("{}: {}", p.role, p.agent).into();
                Whole("helper", label, TimeOffset(record.offset.0.saturating_sub(p.duration_us)))
            }
            Payload::LlmCallStarted(p) => {
                Start(("model", execution, &p.turn_id, p.call_no), &p.model_profile_id)
            }
            Payload::LlmCallCompleted(p) => End(("model", execution, &p.turn_id, p.call_no), false),
            Payload::LlmCallFailed(p) => End(("model", execution, &p.turn_id, p.call_no), true),
            Payload::AgentCallStarted(p) => Start(("agent", &p.call_id, "call", 0), &p.agent_id),
            Payload::AgentCallCompleted(p) => End(("agent", &p.call_id, "call", 0), false),
            Payload::AgentCallFailed(p) => End(("agent", &p.call_id, "call", 0), true),
            Payload::SubagentStarted(p) => Start(("agent", &p.subagent, "", 0), name(p)),
            Payload::SubagentFinished(p) => End(("agent", &p.subagent, "", 0), false),
            Payload::SubagentFailed(p) => End(("agent", &p.subagent, "", 0), true),
            Payload::TaskStarted(p) if matches!(p.origin, WorkOrigin::Tool | WorkOrigin::Workflow) => {
                Start(("task", &p.run_id, "", 0), &p.task_id)
            }
            Payload::TaskCompleted(p) => End(("task", &p.run_id, "", 0), false),
            Payload::TaskFailed(p) => End(("task", &p.run_id, "", 0), true),
            Payload::ContextAssemblyStarted(p) => Start(("work", &p.run_id, "", 0), "builds the request"),
            Payload::MemoryExtractionStarted(p) => Start(("work", &p.run_id, "", 0), "extracts memory"),
            Payload::ContextAssemblyCompleted(p) => End(("work", &p.run_id, "", 0), false),
            Payload::MemoryExtractionCompleted(p) => End(("work", &p.run_id, "", 0), false),
            Payload::ContextAssemblyFailed(p) | Payload::MemoryExtractionFailed(p) => {
                End(("work", &p.run_id, "", 0), true)
            }
            Payload::InterruptRaised(p) => {
                Start(("wait", &p.interrupt_id, "", 0), p.reason.as_deref().unwrap_or("waits for an answer"))
            }
            Payload::InterruptAnswered(p) => End(("wait", &p.interrupt_id, "", 0), false),
            Payload::StepStarted(p) => Start(("step", &p.turn_id, &p.name, 0), &p.name),
            Payload::StepFinished(p) => End(("step", &p.turn_id, &p.name, 0), false),
            _ => return None,
        })
    }
}
