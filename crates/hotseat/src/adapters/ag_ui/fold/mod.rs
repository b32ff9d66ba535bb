//! From the events of AG-UI to the events of the trace: one run of the agent, received event by event.
//!
//! Nothing here waits or asks the time. What decides whether a verdict can be trusted is decided here:
//! a call counts once however often it is seen (as events, in a snapshot, again after an interrupt), and
//! what is seen only in a snapshot counts too.

use std::collections::HashMap;
use std::sync::Arc;

use hotseat_trace::{
    AgentRunFailed, AgentRunFinished, AgentRunStarted, AssistantMessage, Custom, ErrorInfo, InterruptRaised, Note, Offset,
    Origin, Payload, Raw, ReasoningMessage, StateDelta, StateSnapshot, Step, Subagent, ToolArguments, ToolCompleted,
    ToolFailed, ToolInvoked,
};
use serde_json::{Value, json};

use super::chunks::Expander;
use super::sequence::Rules;
use super::thread::{Arguments, Thread};
use super::wire::{self, Event, Message};

/// How strictly the rules of the protocol are taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Strictness {
    /// A broken rule is noted.
    #[default]
    Lenient,
    /// A broken rule is an error.
    Strict,
}

/// What a run is told about the target.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunOptions {
    /// How strictly the rules of the protocol are taken.
    pub strictness: Strictness,
    /// Whether every event is kept in the trace as received.
    pub keep_raw: bool,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub enum RunEnd {
    /// In order; with what the agent waits for.
    Finished {
        /// Questions that must be answered before the agent goes on.
        interrupts: Vec<OpenInterrupt>,
        /// Calls of this run that have no result, in order: client-side tools among them want an answer.
        unanswered: Vec<UnansweredCall>,
    },
    /// The agent reported an error.
    Failed(ErrorInfo),
    /// The stream ended and the run did not.
    Cut,
}

/// A question of a paused run.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenInterrupt {
    /// Its id on the wire; none for the channel that producers before 1.0 use.
    pub id: Option<Arc<str>>,
    /// Its id in the trace.
    pub trace_id: Arc<str>,
    /// Why, as a short name.
    pub reason: Option<String>,
    /// What a person is asked.
    pub message: Option<String>,
    /// The tool whose call it holds up.
    pub tool: Option<Arc<str>>,
    /// When it stops accepting answers, as the agent wrote it.
    pub expires_at: Option<String>,
    /// Everything the agent said of it.
    pub value: Value,
}

/// A call without a result.
#[derive(Debug, Clone, PartialEq)]
pub struct UnansweredCall {
    /// Its id on the wire.
    pub id: Arc<str>,
    /// Its id in the trace.
    pub trace_id: Arc<str>,
    /// Its tool.
    pub name: Arc<str>,
    /// Its arguments.
    pub arguments: Value,
}

/// A message that is being streamed.
#[derive(Debug)]
struct OpenText {
    role: String,
    text: String,
    started: Offset,
    subagent: Option<Arc<str>>,
}

/// A call whose arguments are being streamed.
#[derive(Debug, Default)]
struct OpenCall {
    text: String,
    /// The call had its result already when this id was opened again in the same run.
    again: Option<Again>,
}

/// What is needed to make a second call of an id that is opened again, should it prove to be one.
#[derive(Debug, Clone)]
struct Again {
    name: Arc<str>,
    subagent: Option<Arc<str>>,
}

/// The last snapshot of the messages, kept until the run ends.
#[derive(Debug)]
struct Snapshot {
    messages: Vec<Message>,
    seen: Offset,
}

/// One run: from the request to the end of its answer.
pub struct Run<'t> {
    thread: &'t mut Thread,
    request: usize,
    options: RunOptions,
    expander: Expander,
    rules: Rules,
    received: u64,
    end: Option<RunEnd>,
    texts: HashMap<Arc<str>, OpenText>,
    calls: HashMap<Arc<str>, OpenCall>,
    thoughts: Vec<(Option<Arc<str>>, String)>,
    /// Calls that began or went on in this run, in order.
    run_calls: Vec<Arc<str>>,
    /// Arguments and results of calls that nobody has announced; a snapshot may still do so.
    orphan_results: Vec<wire::ToolResult>,
    orphan_arguments: Vec<Arc<str>>,
    snapshot: Option<Snapshot>,
    legacy_interrupts: Vec<OpenInterrupt>,
}

/// Where the trace events go.
pub type Sink<'a> = &'a mut dyn FnMut(Payload);

impl<'t> Run<'t> {
    /// A run about which nothing is known. `request` is the number of the request in its session.
    pub fn new(thread: &'t mut Thread, request: usize, options: RunOptions) -> Self {
        Run {
            thread,
            request,
            options,
            expander: Expander::default(),
            rules: Rules::default(),
            received: 0,
            end: None,
            texts: HashMap::new(),
            calls: HashMap::new(),
            thoughts: Vec::new(),
            run_calls: Vec::new(),
            orphan_results: Vec::new(),
            orphan_arguments: Vec::new(),
            snapshot: None,
            legacy_interrupts: Vec::new(),
        }
    }

    /// How many events have come.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Whether the agent has said how the run ended, and has not begun another.
    pub fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// What is open, in words.
    pub fn still_open(&self) -> Vec<String> {
        self.rules.still_open()
    }

    /// Takes in one event.
    ///
    /// # Errors
    /// When it is not an event of the protocol, or breaks a rule that is taken strictly. Worded for people.
    pub fn receive(&mut self, data: &str, at: Offset, out: Sink<'_>) -> Result<(), String> {
        self.received += 1;
        let number = self.received;
        if self.options.keep_raw {
            let event = serde_json::from_str(data).unwrap_or_else(|_| Value::String(data.to_string()));
            out(Raw { turn_id: self.thread.turn.id.clone(), event }.into());
        }
        if data == "[DONE]" {
            self.note(out, "`[DONE]` is not an event of this protocol; passed over".to_string());
            return Ok(());
        }
        let event = Event::parse(data).map_err(|error| format!("event {number}: {error}"))?;
        let mut expanded = Vec::new();
        self.expander.expand(event, &mut expanded).map_err(|error| format!("event {number}: {error}"))?;
        for event in expanded {
            self.follow(event, at, out)?;
        }
        Ok(())
    }

    /// The stream has ended, in whichever way: closes what is open and says how the run ended.
    ///
    /// # Errors
    /// When the run ended in order and yet there are results or arguments of a call that nobody has announced.
    pub fn finish(mut self, at: Offset, out: Sink<'_>) -> Result<RunEnd, String> {
        let mut closed = Vec::new();
        self.expander.close_all(&mut closed);
        for event in closed {
            self.follow(event, at, out)?;
        }
        self.settle(out);
        let Some(end) = self.end.take() else { return Ok(RunEnd::Cut) };
        let orphan = self.orphan_results.iter().map(|result| ("a result", &result.tool_call_id));
        let orphan = orphan.chain(self.orphan_arguments.iter().map(|id| ("arguments", id))).next();
        match (end, orphan) {
            (RunEnd::Finished { .. }, Some((what, id))) => {
                Err(format!("{what} came for tool call {id}, but no event says which tool that is"))
            }
            (RunEnd::Finished { interrupts, .. }, None) => {
                let unanswered = self.unanswered();
                Ok(RunEnd::Finished { interrupts, unanswered })
            }
            (other, _) => Ok(other),
        }
    }

    fn unanswered(&self) -> Vec<UnansweredCall> {
        let calls = self.run_calls.iter().filter_map(|id| Some((id, self.thread.calls.get(id)?)));
        let open = calls.filter(|(_, call)| !call.answered);
        open.map(|(id, call)| UnansweredCall {
            id: id.clone(),
            trace_id: call.trace_id.clone(),
            name: call.name.clone(),
            arguments: match &call.arguments {
                Arguments::Json(value) => value.clone(),
                Arguments::Broken(text) => Value::String(text.clone()),
                Arguments::Unknown => Value::Null,
            },
        })
        .collect()
    }

    fn turn_id(&self) -> Arc<str> {
        self.thread.turn.id.clone()
    }

    fn note(&self, out: Sink<'_>, message: String) {
        out(Note { turn_id: self.turn_id(), message, event: Some(self.received) }.into());
    }

    /// One event, chunks already expanded.
    fn follow(&mut self, event: Event, at: Offset, out: Sink<'_>) -> Result<(), String> {
        if let Some(broken) = self.rules.check(&event) {
            match self.options.strictness {
                Strictness::Strict => return Err(format!("event {}: {broken}", self.received)),
                Strictness::Lenient => self.note(out, broken),
            }
        }
        let turn_id = self.turn_id();
        match event {
            Event::TextStart(e) => self.text_start(e, at),
            Event::TextContent(e) => {
                let open = self.texts.entry(e.message_id).or_insert_with(|| OpenText::assistant(at, e.subagent_run_id));
                open.text.push_str(&e.delta);
            }
            Event::TextEnd(e) => self.text_end(&e.message_id, out),
            Event::ToolStart(e) => self.tool_start(e, out),
            Event::ToolArgs(e) => self.tool_arguments(&e, out),
            Event::ToolEnd(e) => self.tool_end(&e.tool_call_id, out),
            Event::ToolResult(e) => self.tool_result(e, Origin::Stream, out),
            Event::StateSnapshot(e) => {
                self.thread.state = e.snapshot.clone();
                out(StateSnapshot { turn_id, state: e.snapshot }.into());
            }
            Event::StateDelta(e) => {
                let state = self.patched(&self.thread.state.clone(), &e.delta, "STATE_DELTA", out);
                if let Some(state) = &state {
                    self.thread.state = state.clone();
                }
                out(StateDelta { turn_id, patch: e.delta, state }.into());
            }
            Event::MessagesSnapshot(e) => {
                self.thread.take_over(&e.messages);
                self.snapshot = Some(Snapshot { messages: e.messages, seen: at });
            }
            Event::ActivitySnapshot(e) => {
                let keep = e.replace == Some(false) && self.thread.activities.contains_key(&e.message_id);
                if !keep {
                    self.thread.activities.insert(e.message_id.clone(), e.content.clone());
                }
                let value = json!({"messageId": e.message_id, "activityType": e.activity_type, "content": e.content});
                out(Custom { turn_id, name: "activity.snapshot".to_string(), value }.into());
            }
            Event::ActivityDelta(e) => {
                // A delta for an activity that nobody has announced changes nothing.
                if let Some(content) = self.thread.activities.get(&e.message_id).cloned()
                    && let Some(content) = self.patched(&content, &e.patch, "ACTIVITY_DELTA", out)
                {
                    let value = json!({"messageId": e.message_id, "activityType": e.activity_type, "content": content});
                    self.thread.activities.insert(e.message_id, content);
                    out(Custom { turn_id, name: "activity.delta".to_string(), value }.into());
                }
            }
            Event::Raw(_) => {}
            Event::Custom(e) => self.custom(e, out),
            Event::RunStarted(e) => self.run_started(e, out),
            Event::RunFinished(e) => self.run_finished(e, out),
            Event::RunError(e) => {
                self.settle(out);
                let error = ErrorInfo { code: e.code, message: e.message, retriable: None };
                out(AgentRunFailed { turn_id, error: error.clone() }.into());
                self.end = Some(RunEnd::Failed(error));
            }
            Event::StepStarted(e) => out(Payload::StepStarted(Step { turn_id, name: e.step_name })),
            Event::StepFinished(e) => out(Payload::StepFinished(Step { turn_id, name: e.step_name })),
            Event::ReasoningMessageStart(e) => self.thought_start(e.message_id),
            Event::ReasoningContent(e) => self.thought_content(e.message_id.as_ref(), &e.delta),
            Event::ReasoningMessageEnd(e) => self.thought_end(e.message_id.as_ref(), e.subagent_run_id, out),
            Event::ThinkingMessageStart(_) => self.thought_start(None),
            Event::ThinkingContent(e) => self.thought_content(None, &e.delta),
            Event::ThinkingMessageEnd(e) => self.thought_end(None, e.subagent_run_id, out),
            Event::ReasoningStart(_) | Event::ReasoningEnd(_) | Event::ThinkingStart(_) | Event::ThinkingEnd(_) => {}
            Event::EncryptedValue(e) => self.encrypted_value(&e),
            Event::SubagentStarted(e) => {
                let subagent = e.subagent_run_id.unwrap_or_default();
                out(Payload::SubagentStarted(Subagent { turn_id, subagent, name: e.name, result: None, error: None }));
            }
            Event::SubagentFinished(e) => {
                let subagent = e.subagent_run_id.unwrap_or_default();
                out(Payload::SubagentFinished(Subagent { turn_id, subagent, name: None, result: e.result, error: None }));
            }
            Event::SubagentError(e) => {
                let subagent = e.subagent_run_id.unwrap_or_default();
                let error = Some(ErrorInfo { code: e.code, message: e.message, retriable: None });
                out(Payload::SubagentFailed(Subagent { turn_id, subagent, name: None, result: None, error }));
            }
            Event::Unknown(name) => self.note(out, format!("unknown event type {name}; kept, without effect")),
            // The expander lets no chunk through.
            Event::TextChunk(_) | Event::ToolChunk(_) | Event::ReasoningChunk(_) => {}
        }
        Ok(())
    }

    fn run_started(&mut self, e: wire::RunStarted, out: Sink<'_>) {
        if let Some(thread) = e.thread_id.filter(|thread| *thread != self.thread.id) {
            self.note(out, format!("RUN_STARTED says thread {thread}, the request said {}", self.thread.id));
        }
        self.end = None;
        let run_id = e.run_id.unwrap_or_default();
        out(AgentRunStarted { turn_id: self.turn_id(), run_id, protocol_version: e.protocol_version }.into());
    }

    fn run_finished(&mut self, e: wire::RunFinished, out: Sink<'_>) {
        self.settle(out);
        let outcome = e.outcome.unwrap_or(wire::Outcome {
            r#type: "success".to_string(),
            interrupts: Vec::new(),
            pending_tool_call_ids: Vec::new(),
        });
        let mut interrupts = std::mem::take(&mut self.legacy_interrupts);
        match outcome.r#type.as_str() {
            "success" | "cancelled" => {}
            "interrupt" => {
                // A producer that speaks both ways asks the same question twice; the newer way decides.
                interrupts.clear();
                interrupts.extend(outcome.interrupts.iter().enumerate().map(|(n, i)| self.interrupt(n, i)));
            }
            other => self.note(out, format!("unknown run outcome {other}; read as success")),
        }
        let run_id = e.run_id.unwrap_or_default();
        let word: Arc<str> = outcome.r#type.as_str().into();
        out(AgentRunFinished { turn_id: self.turn_id(), run_id, outcome: word, result: e.result, usage: e.usage }.into());
        for interrupt in &interrupts {
            out(InterruptRaised {
                turn_id: self.turn_id(),
                interrupt_id: interrupt.trace_id.clone(),
                reason: interrupt.reason.clone(),
                message: interrupt.message.clone(),
                tool_call_id: interrupt.value.get("toolCallId").and_then(Value::as_str).map(Arc::from),
                value: interrupt.value.clone(),
            }
            .into());
        }
        self.end = Some(RunEnd::Finished { interrupts, unanswered: Vec::new() });
    }

    fn interrupt(&self, number: usize, interrupt: &wire::Interrupt) -> OpenInterrupt {
        let id: Option<Arc<str>> = interrupt.text("id").map(Arc::from);
        let held = interrupt.text("toolCallId").and_then(|id| self.thread.calls.get(id));
        OpenInterrupt {
            trace_id: id.clone().unwrap_or_else(|| Arc::from(format!("interrupt-{}-{}", self.request, number + 1))),
            id,
            reason: interrupt.text("reason").map(str::to_string),
            message: interrupt.text("message").map(str::to_string),
            tool: held.map(|call| call.name.clone()),
            expires_at: interrupt.text("expiresAt").map(str::to_string),
            value: Value::Object(interrupt.0.clone()),
        }
    }

    fn custom(&mut self, e: wire::CustomEvent, out: Sink<'_>) {
        if e.name == "on_interrupt" {
            // Before outcomes existed, a paused graph said so in a custom event, its value often JSON in a string.
            let value = match &e.value {
                Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| e.value.clone()),
                other => other.clone(),
            };
            let number = self.legacy_interrupts.len() + 1;
            let said = |member: &str| value.get(member).and_then(Value::as_str).map(str::to_string);
            self.legacy_interrupts.push(OpenInterrupt {
                id: None,
                trace_id: Arc::from(format!("interrupt-{}-{number}", self.request)),
                reason: said("reason").or(Some("on_interrupt".to_string())),
                message: said("message").or_else(|| Some(wire::text(Some(&value)))),
                tool: None,
                expires_at: None,
                value,
            });
        }
        out(Custom { turn_id: self.turn_id(), name: e.name, value: e.value }.into());
    }

    // ---- text ------------------------------------------------------------------------------------------

    fn text_start(&mut self, e: wire::TextStart, at: Offset) {
        let role = e.role.unwrap_or_else(|| "assistant".to_string());
        let message = self.thread.message(&e.message_id, &role);
        if let Some(name) = e.name {
            message.insert("name".to_string(), Value::String(name));
        }
        merge_metadata(message, e.metadata);
        let open = OpenText { role, text: String::new(), started: at, subagent: e.subagent_run_id };
        self.texts.entry(e.message_id).or_insert(open);
    }

    fn text_end(&mut self, id: &Arc<str>, out: Sink<'_>) {
        let Some(open) = self.texts.remove(id) else { return };
        if open.text.is_empty() {
            return;
        }
        let message = self.thread.message(id, &open.role);
        // A message that a producer opens again goes on where it stopped.
        let before = wire::text(message.get("content"));
        message.insert("content".to_string(), Value::String(before + &open.text));
        if open.role != "assistant" {
            return;
        }
        let has_tool_use = message.contains_key("toolCalls");
        self.thread.turn.texts.push((id.clone(), open.text.clone()));
        out(AssistantMessage {
            turn_id: self.turn_id(),
            message_id: id.clone(),
            content: open.text,
            has_tool_use,
            started_us: Some(open.started),
            origin: Origin::Stream,
            subagent: open.subagent,
        }
        .into());
    }

    // ---- reasoning -------------------------------------------------------------------------------------

    fn thought_start(&mut self, id: Option<Arc<str>>) {
        self.thoughts.push((id, String::new()));
    }

    fn thought_content(&mut self, id: Option<&Arc<str>>, delta: &str) {
        match self.thoughts.iter_mut().rfind(|(open, _)| open.as_ref() == id) {
            Some((_, text)) => text.push_str(delta),
            None => self.thoughts.push((id.cloned(), delta.to_string())),
        }
    }

    fn thought_end(&mut self, id: Option<&Arc<str>>, subagent: Option<Arc<str>>, out: Sink<'_>) {
        let Some(place) = self.thoughts.iter().rposition(|(open, _)| open.as_ref() == id) else { return };
        let (id, content) = self.thoughts.remove(place);
        if content.is_empty() {
            return;
        }
        if let Some(id) = &id {
            // Only producers that name their reasoning know messages of that role.
            let message = self.thread.message(id, "reasoning");
            message.insert("content".to_string(), Value::String(content.clone()));
        }
        let message_id = id.unwrap_or_default();
        out(ReasoningMessage { turn_id: self.turn_id(), message_id, content, subagent }.into());
    }

    fn encrypted_value(&mut self, e: &wire::EncryptedValue) {
        let value = Value::String(e.encrypted_value.clone());
        if e.subtype == "tool-call" {
            if let Some(Value::Object(call)) = self.thread.call_entry(&e.entity_id) {
                call.insert("encryptedValue".to_string(), value);
            }
        } else {
            self.thread.message(&e.entity_id, "reasoning").insert("encryptedValue".to_string(), value);
        }
    }

    // ---- tool calls ------------------------------------------------------------------------------------

    fn tool_start(&mut self, e: wire::ToolStart, out: Sink<'_>) {
        let id = e.tool_call_id;
        let known = self.thread.calls.get(&id);
        // Within a turn an id means one call, also when a resumed run announces it again. In a later turn it is
        // another call: some servers number their calls by position and start over.
        let same = known.filter(|call| call.turn == self.thread.turn.number);
        let mut open = OpenCall::default();
        match same {
            Some(call) => {
                if call.answered && call.request == self.request {
                    let again = Again { name: e.tool_call_name.clone(), subagent: e.subagent_run_id.clone() };
                    open.again = Some(again);
                }
            }
            None => self.new_call(&id, &e.tool_call_name, Origin::Stream, None, e.subagent_run_id, out),
        }
        self.thread.put_call(&id, &e.tool_call_name, e.parent_message_id.as_deref());
        if let Some(Value::Object(entry)) = self.thread.call_entry(&id) {
            merge_metadata(entry, e.metadata);
        }
        if !self.run_calls.contains(&id) {
            self.run_calls.push(id.clone());
        }
        self.calls.insert(id, open);
    }

    /// A call that is not known: it joins the thread and the trace.
    fn new_call(
        &mut self,
        id: &Arc<str>,
        name: &Arc<str>,
        origin: Origin,
        started_us: Option<Offset>,
        subagent: Option<Arc<str>>,
        out: Sink<'_>,
    ) {
        let tool_call_id = self.thread.add_call(id, name, self.request);
        if origin == Origin::Stream {
            self.thread.turn.calls.push(id.clone());
        }
        out(ToolInvoked {
            turn_id: self.turn_id(),
            tool_call_id,
            tool_name: name.clone(),
            target_type: None,
            target_id: None,
            r#async: false,
            input: None,
            started_us,
            origin,
            subagent,
        }
        .into());
    }

    fn tool_arguments(&mut self, e: &wire::ToolArgs, out: Sink<'_>) {
        if let Some(open) = self.calls.get_mut(&e.tool_call_id) {
            open.text.push_str(&e.delta);
        } else if let Some(call) = self.thread.calls.get(&e.tool_call_id) {
            // Arguments that come after the end of their call still belong to it.
            let before = match &call.arguments {
                Arguments::Broken(text) => text.clone(),
                _ => String::new(),
            };
            self.calls.insert(e.tool_call_id.clone(), OpenCall { text: before + &e.delta, again: None });
            self.tool_end(&e.tool_call_id, out);
        } else {
            self.orphan_arguments.push(e.tool_call_id.clone());
        }
    }

    fn tool_end(&mut self, id: &Arc<str>, out: Sink<'_>) {
        let Some(open) = self.calls.remove(id) else { return };
        let arguments = Arguments::parse(&open.text);
        let Some(known) = self.thread.calls.get(id) else { return };
        let reopened = known.arguments != Arguments::Unknown;
        if reopened && open.text.is_empty() {
            // Announced again without its arguments: what is known stays. It may still get a second result.
            if open.again.is_some() {
                self.calls.insert(id.clone(), open);
            }
            return;
        }
        if let Some(again) = &open.again {
            if known.arguments == arguments {
                self.calls.insert(id.clone(), open);
                return;
            }
            // Announced again after its result and with other arguments: that is another call.
            let again = again.clone();
            self.second_call(id, again, out);
        }
        self.set_arguments(id, arguments, out);
    }

    /// An id that was opened again after its result proves to be a second call.
    fn second_call(&mut self, id: &Arc<str>, again: Again, out: Sink<'_>) {
        self.note(out, format!("tool call id {id} is used for two calls; both count"));
        self.new_call(id, &again.name, Origin::Stream, None, again.subagent, out);
    }

    fn set_arguments(&mut self, id: &Arc<str>, arguments: Arguments, out: Sink<'_>) {
        let Some(call) = self.thread.calls.get_mut(id) else { return };
        if call.arguments == arguments {
            return;
        }
        call.arguments = arguments.clone();
        let tool_call_id = call.trace_id.clone();
        self.thread.put_arguments(id, &arguments);
        let (input, text) = match arguments {
            Arguments::Json(value) => (Some(value), None),
            Arguments::Broken(text) => {
                self.note(out, format!("the arguments of tool call {id} are not JSON"));
                (None, Some(text))
            }
            Arguments::Unknown => (None, None),
        };
        out(ToolArguments { turn_id: self.turn_id(), tool_call_id, input, text }.into());
    }

    fn tool_result(&mut self, e: wire::ToolResult, origin: Origin, out: Sink<'_>) {
        let id = e.tool_call_id.clone();
        let reopened = self.calls.get(&id).and_then(|open| open.again.clone());
        if let Some(again) = reopened {
            // A second result for an id that was opened again: the tool ran twice.
            let arguments = self.calls.remove(&id).map(|open| open.text);
            let before = self.thread.calls.get(&id).map(|call| call.arguments.clone());
            self.second_call(&id, again, out);
            match arguments.filter(|text| !text.is_empty()) {
                Some(text) => self.set_arguments(&id, Arguments::parse(&text), out),
                None => self.set_arguments(&id, before.unwrap_or(Arguments::Unknown), out),
            }
        }
        self.tool_end(&id, out);
        let Some(call) = self.thread.calls.get_mut(&id) else {
            self.orphan_results.push(e);
            return;
        };
        let repeated = std::mem::replace(&mut call.answered, true);
        let tool_call_id = call.trace_id.clone();
        if repeated && origin == Origin::Stream {
            self.note(out, format!("tool call {id} got another result; the last one counts"));
        }
        let message_id = e.message_id.unwrap_or_else(|| Arc::from(format!("result-{id}")));
        let content = match &e.content {
            Value::String(_) | Value::Array(_) => e.content.clone(),
            other => Value::String(other.to_string()),
        };
        if origin != Origin::Snapshot {
            self.thread.put_result(&message_id, &id, content, e.error.as_deref());
        }
        let turn_id = self.turn_id();
        match e.error {
            Some(error) => {
                let said = wire::text(Some(&e.content));
                let message = if said.is_empty() { error } else { said };
                let error = ErrorInfo { code: None, message, retriable: None };
                out(ToolFailed { turn_id, tool_call_id, error, origin }.into());
            }
            None => out(ToolCompleted { turn_id, tool_call_id, output: output(&e.content), origin }.into()),
        }
    }

    // ---- snapshots -------------------------------------------------------------------------------------

    /// What is still open is complete now, and what only the last snapshot tells joins the trace.
    fn settle(&mut self, out: Sink<'_>) {
        let mut closed = Vec::new();
        self.expander.close_all(&mut closed);
        for event in closed {
            match event {
                Event::TextEnd(e) => self.text_end(&e.message_id, out),
                Event::ToolEnd(e) => self.tool_end(&e.tool_call_id, out),
                Event::ReasoningMessageEnd(e) => self.thought_end(e.message_id.as_ref(), e.subagent_run_id, out),
                _ => {}
            }
        }
        let mut open: Vec<(Offset, Arc<str>)> = self.texts.iter().map(|(id, text)| (text.started, id.clone())).collect();
        open.sort();
        for (_, id) in open {
            self.text_end(&id, out);
        }
        for id in self.run_calls.clone() {
            self.tool_end(&id, out);
        }
        while let Some((id, _)) = self.thoughts.last().cloned() {
            let before = self.thoughts.len();
            self.thought_end(id.as_ref(), None, out);
            debug_assert!(self.thoughts.len() < before);
        }
        if let Some(snapshot) = self.snapshot.take() {
            self.reconcile(&snapshot, out);
        }
        for result in std::mem::take(&mut self.orphan_results) {
            self.tool_result(result, Origin::Stream, out);
        }
        self.orphan_arguments.retain(|id| !self.thread.calls.contains_key(id));
    }

    /// Compares the last snapshot with what was seen as events and adds what is missing.
    fn reconcile(&mut self, snapshot: &Snapshot, out: Sink<'_>) {
        let messages = &snapshot.messages;
        let ours = &messages[self.turn_begins(messages)..];
        let listed: Vec<wire::CallInMessage> = ours.iter().flat_map(wire::calls).collect();

        // Calls that the snapshot names by the ids of the events, anywhere in it.
        for call in messages.iter().flat_map(wire::calls) {
            if let Some((id, _)) = self.thread.calls.get_key_value(call.id) {
                self.complete_arguments(&id.clone(), call.arguments, out);
            }
        }
        // A producer may give its calls other ids in a snapshot: those are found by tool and arguments.
        let mut unmatched: Vec<Arc<str>> = self.thread.turn.calls.clone();
        unmatched.retain(|id| !listed.iter().any(|call| call.id == &**id));
        let mut aliases: HashMap<&str, Arc<str>> = HashMap::new();
        for call in &listed {
            if self.thread.calls.contains_key(call.id) {
                continue;
            }
            let arguments = Arguments::parse(call.arguments);
            let twin = unmatched.iter().position(|id| self.is_twin(id, call.name, &arguments));
            if let Some(place) = twin {
                let id = unmatched.remove(place);
                self.complete_arguments(&id, call.arguments, out);
                aliases.insert(call.id, id);
                continue;
            }
            let id: Arc<str> = call.id.into();
            self.new_call(&id, &call.name.into(), Origin::Snapshot, Some(snapshot.seen), None, out);
            self.set_arguments(&id, arguments, out);
            self.run_calls.push(id);
        }
        for message in messages.iter().filter(|message| wire::role(message) == "tool") {
            let Some(id) = message.get("toolCallId").and_then(Value::as_str) else { continue };
            let id = aliases.get(id).cloned().unwrap_or_else(|| id.into());
            if self.thread.calls.get(&id).is_some_and(|call| !call.answered) {
                let result = wire::ToolResult {
                    tool_call_id: id,
                    content: message.get("content").cloned().unwrap_or(Value::Null),
                    message_id: None,
                    error: message.get("error").and_then(Value::as_str).map(str::to_string),
                    ..Default::default()
                };
                self.tool_result(result, Origin::Snapshot, out);
            }
        }
        for message in ours.iter().filter(|message| wire::role(message) == "assistant") {
            self.text_of_snapshot(message, snapshot.seen, out);
        }
    }

    /// Where the messages of the current turn begin in a snapshot: behind its last user message. If that is not
    /// the current turn's, the snapshot was taken before the turn and tells nothing new.
    fn turn_begins(&self, messages: &[Message]) -> usize {
        let Some(last) = messages.iter().rposition(|message| wire::role(message) == "user") else { return 0 };
        let message = &messages[last];
        let turn = &self.thread.turn;
        let current = wire::id(message) == Some(&turn.user_message) || wire::text(message.get("content")) == turn.user_text;
        if current { last + 1 } else { messages.len() }
    }

    /// Whether a call seen as events is the one that a snapshot lists under another id.
    fn is_twin(&self, id: &Arc<str>, name: &str, arguments: &Arguments) -> bool {
        self.thread.calls.get(id).is_some_and(|call| {
            &*call.name == name && (call.arguments == *arguments || matches!(call.arguments, Arguments::Broken(_)))
        })
    }

    /// A snapshot knows the arguments of a call whole, a stream may have lost part of them.
    fn complete_arguments(&mut self, id: &Arc<str>, text: &str, out: Sink<'_>) {
        let Some(call) = self.thread.calls.get(id) else { return };
        let arguments = Arguments::parse(text);
        if call.turn != self.thread.turn.number || call.arguments == arguments {
            return;
        }
        // An empty object in a snapshot may be older than the arguments that were streamed.
        let empty = arguments == Arguments::parse("");
        let known = matches!(&call.arguments, Arguments::Json(_));
        if matches!(arguments, Arguments::Broken(_)) || (empty && known) {
            return;
        }
        let message = format!("the arguments of tool call {id} differ between stream and snapshot; the snapshot counts");
        self.note(out, message);
        self.set_arguments(id, arguments, out);
    }

    fn text_of_snapshot(&mut self, message: &Message, seen: Offset, out: Sink<'_>) {
        let content = wire::text(message.get("content"));
        let id = wire::id(message).unwrap_or("");
        let texts = &self.thread.turn.texts;
        let known = texts.iter().any(|(known, text)| &**known == id || text.trim() == content.trim());
        if content.trim().is_empty() || known {
            return;
        }
        let message_id: Arc<str> = id.into();
        self.thread.turn.texts.push((message_id.clone(), content.clone()));
        out(AssistantMessage {
            turn_id: self.turn_id(),
            message_id,
            content,
            has_tool_use: message.contains_key("toolCalls"),
            started_us: Some(seen),
            origin: Origin::Snapshot,
            subagent: None,
        }
        .into());
    }

    /// A document with a patch applied whole; none, with a note, when it does not apply.
    fn patched(&self, document: &Value, patch: &Value, what: &str, out: Sink<'_>) -> Option<Value> {
        let mut patched = document.clone();
        let applied = serde_json::from_value::<json_patch::Patch>(patch.clone())
            .map_err(|error| error.to_string())
            .and_then(|patch| json_patch::patch(&mut patched, &patch).map_err(|error| error.to_string()));
        match applied {
            Ok(()) => Some(patched),
            Err(error) => {
                self.note(out, format!("{what} does not apply and changes nothing: {error}"));
                None
            }
        }
    }
}

impl OpenText {
    fn assistant(started: Offset, subagent: Option<Arc<str>>) -> Self {
        OpenText { role: "assistant".to_string(), text: String::new(), started, subagent }
    }
}

/// What a tool returned, read as JSON where it is JSON: servers differ in spacing and in how often they encode.
fn output(content: &Value) -> Value {
    let text = match content {
        Value::String(text) => text.clone(),
        Value::Array(_) => wire::text(Some(content)),
        other => return other.clone(),
    };
    match serde_json::from_str::<Value>(&text) {
        Ok(Value::String(inner)) => match serde_json::from_str(&inner) {
            Ok(value @ (Value::Object(_) | Value::Array(_))) => value,
            _ => Value::String(inner),
        },
        Ok(value @ (Value::Object(_) | Value::Array(_) | Value::Bool(_) | Value::Null)) => value,
        // A number is kept as it was written: `1.50` and `007` are not `1.5` and `7` to whoever matches them.
        Ok(Value::Number(_)) | Err(_) => Value::String(text),
    }
}

/// Metadata is merged member by member; the last write wins.
fn merge_metadata(into: &mut Message, metadata: Option<serde_json::Map<String, Value>>) {
    let Some(metadata) = metadata else { return };
    match into.get_mut("metadata") {
        Some(Value::Object(known)) => known.extend(metadata),
        _ => {
            into.insert("metadata".to_string(), Value::Object(metadata));
        }
    }
}
