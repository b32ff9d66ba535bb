//! Converts the trace of a conversation to recorded turns.
//!
//! Events provide order and times; their content comes from the folded conversation, so a call has its final
//! arguments.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::{
    self as trace, AgentMessage, CallingMessages, EventRecord, FailureKind, Origin, Payload, TimeOffset,
    TracedConversation, TurnOutcome,
};
use serde_json::{Value, json};

use super::{RecordedArguments, RecordedEvent, RecordedEventKind, RecordedTurn};
use crate::message::{ATTACHMENT_NOTE_PREFIX, ToolReply};

/// Returns the recorded turns of a conversation.
pub fn turns_of(events: &[EventRecord], conversation: &TracedConversation) -> Vec<RecordedTurn> {
    let mut turns: Vec<TurnBuilder<'_>> = conversation.turns.iter().map(TurnBuilder::new).collect();
    let mut places: HashMap<Arc<str>, usize> = HashMap::new();
    let mut known = EmittedIds::default();
    for record in events.iter().filter(|record| record.execution.is_none()) {
        if let Payload::TurnStarted(start) = &record.payload {
            // A turn of a sub-agent is part of the turn that called it.
            let place = match start.caller_turn_id.as_ref().and_then(|caller| places.get(caller)) {
                Some(&caller) => caller,
                None => places.values().max().map_or(0, |last| last + 1),
            };
            places.insert(start.turn_id.clone(), place);
        }
        let place = record.payload.turn_id().and_then(|turn| places.get(turn));
        if let Some(told) = place.and_then(|&place| turns.get_mut(place)) {
            told.add(record, conversation, &mut known);
        }
    }
    turns.into_iter().map(TurnBuilder::finish).collect()
}

/// Ids of recorded calls and interrupts that later events may refer to.
#[derive(Default)]
struct EmittedIds {
    calls: HashSet<Arc<str>>,
    /// Calls that MCP servers of the test saw.
    server_calls: HashSet<Arc<str>>,
    /// Questions of these servers to the user.
    server_questions: HashSet<Arc<str>>,
    interrupts: HashSet<Arc<str>>,
}

impl EmittedIds {
    /// True if a result is that of a call at an MCP server. Older traces mark only the calls.
    fn is_of_server(&self, call: &Arc<str>, origin: Origin) -> bool {
        origin == Origin::Server || (self.server_calls.contains(call) && !self.calls.contains(call))
    }
}

/// Builds a recorded turn from its events.
struct TurnBuilder<'c> {
    turn: &'c trace::ConversationTurn,
    calling: CallingMessages<'c>,
    events: Vec<RecordedEvent>,
    /// The messages of the turn by the number of their event.
    messages: HashMap<u64, &'c AgentMessage>,
    /// Time of the last event.
    last: Duration,
    /// Index of the state event.
    state: Option<usize>,
    /// Error of the protocol after the turn.
    trailing_error: Option<String>,
}

impl<'c> TurnBuilder<'c> {
    fn new(turn: &'c trace::ConversationTurn) -> Self {
        let messages = turn.messages.iter().map(|message| (message.sequence, message)).collect();
        TurnBuilder {
            turn,
            calling: turn.calling_messages(),
            events: Vec::new(),
            messages,
            last: Duration::ZERO,
            state: None,
            trailing_error: None,
        }
    }

    fn add(&mut self, record: &EventRecord, conversation: &TracedConversation, known: &mut EmittedIds) {
        // Other failures at the end are those of the test.
        if let Payload::ConversationFailed(failed) = &record.payload
            && failed.error.code.as_deref() == Some(FailureKind::ProtocolError.name())
        {
            self.trailing_error = Some(failed.error.message.clone());
        }
        let Some((what, started)) = self.convert(record, conversation, known) else { return };
        // Starts that tell the order of what arrived together may be a little later than their events.
        let started = started.map(|started| self.since(started));
        let at = self.since(record.offset).max(self.last).max(started.unwrap_or_default());
        self.last = at;
        let started = started.filter(|started| *started < at);
        let call = match &what {
            RecordedEventKind::ToolCall { id, .. } => conversation.call(id),
            _ => None,
        };
        // The time of a result is that of its own event.
        let ended = call.filter(|call| call.result.is_none()).map(|call| self.since(call.ended));
        let ended = ended.filter(|ended| *ended != at && *ended >= started.unwrap_or(at));
        // Only the last state is recorded, at its own position.
        if let (RecordedEventKind::State { .. }, Some(place)) = (&what, self.state) {
            self.events.remove(place);
        }
        if matches!(what, RecordedEventKind::State { .. }) {
            self.state = Some(self.events.len());
        }
        self.events.push(RecordedEvent { at: Some(at), started, ended, kind: what, place: None });
    }

    fn since(&self, offset: TimeOffset) -> Duration {
        if offset < self.turn.started { Duration::ZERO } else { offset - self.turn.started }
    }

    /// Converts an event, with its start time. Most events are internal to the agent or protocol and are
    /// skipped.
    fn convert(
        &mut self,
        record: &EventRecord,
        conversation: &TracedConversation,
        known: &mut EmittedIds,
    ) -> Option<(RecordedEventKind, Option<TimeOffset>)> {
        let payload = &record.payload;
        let text = |text: &Option<Arc<str>>| text.as_ref().map(|text| text.to_string());
        if let Some(event) = mcp_event(payload, known) {
            return Some((event, None));
        }
        let what = match payload {
            Payload::AssistantMessage(_) => {
                let message = self.messages.get(&record.sequence)?;
                let what = RecordedEventKind::Message {
                    text: message.content.to_string(),
                    calls_tools: self.calling.calls_tools(message),
                    subagent: text(&message.subagent),
                };
                return Some((what, message.started)).filter(|_| !message.content.is_empty());
            }
            Payload::ReasoningMessage(thought) if thought.content.is_empty() => return None,
            Payload::ReasoningMessage(thought) => {
                RecordedEventKind::Reasoning { text: thought.content.to_string() }
            }
            Payload::ToolInvoked(invoked) => {
                let call = conversation.call(&invoked.tool_call_id)?;
                if !known.calls.insert(call.id.clone()) {
                    return None;
                }
                let what = RecordedEventKind::ToolCall {
                    id: call.id.to_string(),
                    tool: call.name.to_string(),
                    arguments: arguments(call),
                    origin: call.origin,
                    subagent: text(&call.subagent),
                };
                return Some((what, Some(call.started)));
            }
            // Skips results and answers of unrecorded calls and interrupts.
            Payload::ToolCompleted(done) if !known.calls.contains(&done.tool_call_id) => return None,
            Payload::ToolFailed(failed) if !known.calls.contains(&failed.tool_call_id) => return None,
            Payload::InterruptAnswered(answered) if !known.interrupts.contains(&answered.interrupt_id) => {
                return None;
            }
            Payload::ToolCompleted(done) => RecordedEventKind::ToolResult {
                id: done.tool_call_id.to_string(),
                result: ToolReply::Content(done.output.clone()),
                origin: done.origin,
            },
            Payload::ToolFailed(failed) => RecordedEventKind::ToolResult {
                id: failed.tool_call_id.to_string(),
                result: ToolReply::Error(failed.error.message.clone()),
                origin: failed.origin,
            },
            Payload::InterruptRaised(raised) => {
                known.interrupts.insert(raised.interrupt_id.clone());
                RecordedEventKind::Interrupt {
                    id: raised.interrupt_id.to_string(),
                    reason: raised.reason.clone(),
                    message: raised.message.clone(),
                    tool: tool_of(raised, conversation),
                    tool_call_id: text(&raised.tool_call_id),
                    value: raised.value.clone(),
                }
            }
            Payload::InterruptAnswered(answered) => RecordedEventKind::InterruptAnswer {
                id: answered.interrupt_id.to_string(),
                payload: match &*answered.status {
                    "cancelled" => None,
                    _ => Some(answered.payload.clone().unwrap_or_default()),
                },
            },
            // A state may be large and its changes many: the one that is kept is copied at the end.
            Payload::StateSnapshot(_) | Payload::StateDelta(_) => {
                self.turn.state.as_ref()?;
                RecordedEventKind::State { state: Value::Null }
            }
            Payload::AwaitingInput(said) => {
                RecordedEventKind::AwaitingInput { awaiting: said.awaiting, hint: said.hint.clone() }
            }
            // Attachments are recorded with the user input.
            Payload::Note(note) if self.is_attachment_note(&note.message) => return None,
            Payload::Note(note) => RecordedEventKind::Note { text: note.message.clone() },
            Payload::AgentRunFinished(finished) => RecordedEventKind::Finished {
                outcome: finished.outcome.to_string(),
                result: finished.result.clone(),
                usage: finished.usage.clone(),
                finish_reason: text(&finished.finish_reason),
            },
            Payload::AgentRunFailed(failed) => RecordedEventKind::Error {
                message: failed.error.message.clone(),
                code: failed.error.code.clone(),
                usage: failed.usage.clone(),
            },
            _ => return None,
        };
        Some((what, None))
    }

    fn is_attachment_note(&self, note: &str) -> bool {
        let name = note.strip_prefix(ATTACHMENT_NOTE_PREFIX);
        name.is_some_and(|name| self.turn.attachments.iter().any(|attached| attached == name))
    }

    fn finish(mut self) -> RecordedTurn {
        if let (Some(place), Some(state)) = (self.state, &self.turn.state) {
            self.events[place].kind = RecordedEventKind::State { state: (**state).clone() };
        }
        let last = self.events.last().and_then(|last| last.at);
        let error = self.ending_error();
        let failed = match (&self.turn.outcome, error) {
            (TurnOutcome::Completed, error) => {
                self.events.extend(error.map(to_note));
                None
            }
            (TurnOutcome::Failed(_), Some(error)) => {
                // An error must be the last event of its turn.
                self.events.push(RecordedEvent { at: error.at.max(last), ..error });
                None
            }
            (TurnOutcome::Failed(error), None) if error.message.trim().is_empty() => {
                Some("it failed".to_string())
            }
            (TurnOutcome::Failed(error), None) => Some(error.message.clone()),
            (TurnOutcome::Open, error) => {
                self.events.extend(error.map(to_note));
                Some("it was abandoned".to_string())
            }
        };
        // In-process agents report the finish reason and the usage without an event.
        let is_reported = |event: &RecordedEvent| {
            matches!(
                event.kind,
                RecordedEventKind::Finished { .. } | RecordedEventKind::Error { usage: Some(_), .. }
            )
        };
        let turn = Some(self.turn).filter(|_| !self.events.iter().any(is_reported));
        let finish_reason = turn.and_then(|turn| Some(turn.finish_reason.as_ref()?.to_string()));
        let usage = turn.and_then(|turn| Some(usage_report(turn.usage_totals.as_ref()?)));
        if (self.events.is_empty() || finish_reason.is_some() || usage.is_some()) && failed.is_none() {
            let outcome = "success".to_string();
            let ended = RecordedEventKind::Finished { outcome, result: None, usage, finish_reason };
            self.events.push(RecordedEvent { at: last, ..RecordedEvent::untimed(ended) });
        }
        self.events.sort_by_key(|event| event.at);
        RecordedTurn {
            user: self.turn.user.clone().unwrap_or_default(),
            attachments: self.turn.attachments.clone(),
            // Includes events after the end of the turn, or in a turn that never ended.
            duration: Some(self.turn.duration().max(last.unwrap_or_default())),
            unfinished: failed,
            trailing_error: self.trailing_error,
            events: self.events,
            place: None,
        }
    }
}

impl TurnBuilder<'_> {
    /// Removes and returns the first error that the agent reported. Later ones become notes.
    fn ending_error(&mut self) -> Option<RecordedEvent> {
        let place =
            self.events.iter().position(|event| matches!(event.kind, RecordedEventKind::Error { .. }))?;
        let error = self.events.remove(place);
        for event in &mut self.events[place..] {
            if matches!(event.kind, RecordedEventKind::Error { .. }) {
                *event = to_note(event.clone());
            }
        }
        Some(error)
    }
}

/// Returns the usage of a turn as agents report it. An empty report stands for a part that is unknown.
fn usage_report(spent: &trace::UsageTotals) -> Value {
    let mut report = json!({"total_tokens": spent.total_tokens});
    let numbers = [("input_tokens", spent.input_tokens), ("output_tokens", spent.output_tokens)];
    for (name, tokens) in numbers.into_iter().filter_map(|(name, tokens)| Some((name, tokens?))) {
        report[name] = tokens.into();
    }
    if let Some(cost) = spent.cost {
        report["cost"] = cost.into();
    }
    if let [model] = &*spent.unpriced {
        report["model"] = model.as_str().into();
    }
    if spent.estimated {
        report["estimated"] = true.into();
    }
    if spent.partial { json!([report, {}]) } else { report }
}

/// Converts an event that an MCP server or a served model of the test observed.
fn mcp_event(payload: &Payload, known: &mut EmittedIds) -> Option<RecordedEventKind> {
    match payload {
        Payload::ToolInvoked(invoked) if invoked.server.is_some() => {
            known.server_calls.insert(invoked.tool_call_id.clone());
        }
        Payload::ToolCompleted(done) if known.is_of_server(&done.tool_call_id, done.origin) => {}
        Payload::ToolFailed(failed) if known.is_of_server(&failed.tool_call_id, failed.origin) => {}
        Payload::InterruptRaised(raised) if raised.server.is_some() => {
            known.server_questions.insert(raised.interrupt_id.clone());
        }
        Payload::InterruptAnswered(answered) if known.server_questions.contains(&answered.interrupt_id) => {}
        Payload::McpConnected(_)
        | Payload::McpArgumentsInvalid(_)
        | Payload::McpArgumentsUnchecked(_)
        | Payload::McpFaultInjected(_)
        | Payload::McpAnswerLost(_)
        | Payload::LlmFaultInjected(_) => {}
        _ => return None,
    }
    let mut members = payload.to_json().ok()?;
    members.as_object_mut()?.shift_remove("turnId");
    Some(RecordedEventKind::Mcp { event: payload.type_name().to_string(), payload: members })
}

/// Converts an error that did not end its turn to a note.
fn to_note(event: RecordedEvent) -> RecordedEvent {
    let text = match &event.kind {
        RecordedEventKind::Error { message, code: Some(code), .. } => {
            format!("the agent reported an error: {message} ({code})")
        }
        RecordedEventKind::Error { message, code: None, .. } => {
            format!("the agent reported an error: {message}")
        }
        _ => return event,
    };
    RecordedEvent { kind: RecordedEventKind::Note { text }, ..event }
}

fn arguments(call: &trace::AgentToolCall) -> RecordedArguments {
    match (&call.arguments, call.arguments_broken) {
        (Value::Null, _) => RecordedArguments::None,
        (Value::String(text), true) => RecordedArguments::Broken(text.clone()),
        (value, _) => RecordedArguments::Json(value.clone()),
    }
}

/// Returns the tool whose call an interrupt holds: from the call, or as reported by the agent.
fn tool_of(raised: &trace::InterruptRaised, conversation: &TracedConversation) -> Option<String> {
    let call = raised.tool_call_id.as_ref().and_then(|id| conversation.call(id));
    let said = raised.value.get("toolName").and_then(|name| name.as_str());
    call.map(|call| call.name.to_string()).or_else(|| said.map(str::to_string))
}
