//! From the events of AG-UI to the events of the trace: one run of the agent, received event by event.
//!
//! Nothing here waits or asks the time. What decides whether a verdict can be trusted is decided here:
//! a call counts once however often it is seen (as events, in a snapshot, again after an interrupt), and
//! what is seen only in a snapshot counts too.

mod calls;
mod interrupts;
mod snapshot;
mod text;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hotseat_trace::{
    AgentRunFailed, AgentRunFinished, AgentRunStarted, Custom, ErrorInfo, Note, Offset, Origin, Payload, Raw,
    StateDelta, StateSnapshot, Step, Subagent, apply_patch,
};
use serde_json::{Value, json};

use self::calls::OpenCall;
pub use self::interrupts::OpenInterrupt;
use self::snapshot::Snapshot;
use self::text::{OpenText, Thought};
use super::chunks::Expander;
use super::sequence::Rules;
use super::thread::Thread;
use super::wire::{self, Event};
use crate::adapters::lines::check_values;

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

/// Which request a run answers.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Its number in the session.
    pub request: usize,
    /// The id that it gave to the run.
    pub run_id: String,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub enum RunEnd {
    /// In order.
    Finished(Finished),
    /// The agent reported an error.
    Failed(ErrorInfo),
    /// The stream ended and the run did not.
    Cut,
}

/// What the agent waits for at the end of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// Questions that must be answered before the agent goes on.
    pub interrupts: Vec<OpenInterrupt>,
    /// Calls of this run that have no result, in order: client-side tools among them want an answer.
    pub unanswered: Vec<UnansweredCall>,
}

/// A call without a result.
#[derive(Debug, Clone, PartialEq)]
pub struct UnansweredCall {
    /// The id by which it is known.
    pub id: Arc<str>,
    /// Its id in the trace.
    pub trace_id: Arc<str>,
    /// Its tool.
    pub name: Arc<str>,
    /// Its arguments.
    pub arguments: Value,
    /// Whether the agent says that it waits for this one.
    pub awaited: bool,
}

/// One run: from the request to the end of its answer. The answer may hold several runs of the protocol, one
/// after the other; together they are this one.
pub struct Run<'t> {
    thread: &'t mut Thread,
    asked: Asked,
    options: RunOptions,
    expander: Expander,
    /// What the expander made of the current event; kept for its memory.
    expanded: Vec<Event>,
    rules: Rules,
    received: u64,
    /// How often a run of the protocol began or ended.
    borders: usize,
    started: bool,
    /// The agent has said that it is done, and has not begun anew.
    ended: bool,
    /// The first error that the agent reported. No later run takes it back.
    failed: Option<ErrorInfo>,
    texts: HashMap<Arc<str>, OpenText>,
    /// Pieces of reasoning in the order in which they began; none in the place of one that is whole.
    thoughts: Vec<Option<Thought>>,
    /// Where those that are open stand.
    thought_places: HashMap<Option<Arc<str>>, Vec<usize>>,
    calls: HashMap<Arc<str>, OpenCall>,
    /// Calls that began or went on in this run, in order.
    run_calls: Vec<Arc<str>>,
    /// The same, to be asked for.
    in_run: HashSet<Arc<str>>,
    /// Results of calls that nobody has announced; an event or a snapshot may still do so.
    orphan_results: Vec<wire::ToolResult>,
    /// Snapshots of the messages until they are compared with what was seen as events: the last one, and of
    /// those before it what later ones left out.
    snapshots: Vec<Snapshot>,
    /// How many bytes of snapshots were searched for what earlier ones told.
    searched: usize,
    /// Questions on the channel of producers before 1.0 whose run has not ended.
    legacy_interrupts: Vec<OpenInterrupt>,
    interrupts: Vec<OpenInterrupt>,
    /// Calls that the agent says it waits for.
    awaited: Vec<Arc<str>>,
    /// What was noted: the same is not said twice.
    noted: HashSet<String>,
}

/// How often runs may begin and end in one answer: each time everything that is open is looked through.
const MOST_BORDERS: usize = 200;

/// Where the trace events go.
pub type Sink<'a> = &'a mut dyn FnMut(Payload);

impl<'t> Run<'t> {
    /// A run about which nothing is known.
    pub fn new(thread: &'t mut Thread, asked: Asked, options: RunOptions) -> Self {
        Run {
            thread,
            asked,
            options,
            expander: Expander::default(),
            expanded: Vec::new(),
            rules: Rules::default(),
            received: 0,
            borders: 0,
            started: false,
            ended: false,
            failed: None,
            texts: HashMap::new(),
            thoughts: Vec::new(),
            thought_places: HashMap::new(),
            calls: HashMap::new(),
            run_calls: Vec::new(),
            in_run: HashSet::new(),
            orphan_results: Vec::new(),
            snapshots: Vec::new(),
            searched: 0,
            legacy_interrupts: Vec::new(),
            interrupts: Vec::new(),
            awaited: Vec::new(),
            noted: HashSet::new(),
        }
    }

    /// How many events have come.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Whether the agent has said how the run ended, and has not begun another.
    pub fn has_ended(&self) -> bool {
        self.ended
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
        if self.options.keep_raw {
            let event = serde_json::from_str(data).unwrap_or_else(|_| Value::String(data.to_string()));
            out(Raw { turn_id: self.turn_id(), event }.into());
        }
        if data == "[DONE]" {
            self.note(out, "`[DONE]` is not an event of this protocol; passed over".to_string());
            return Ok(());
        }
        check_values(data).map_err(|words| self.at_event(&format!("it {words}")))?;
        let received = Event::parse(data).map_err(|error| self.at_event(&error))?;
        if received.null_subagent {
            self.broken("`subagentRunId` is null; it is left out or names a sub-agent".to_string(), out)?;
        }
        let mut expanded = std::mem::take(&mut self.expanded);
        let expansion = self.expander.expand(received.event, &mut expanded);
        let followed = expanded.drain(..).try_for_each(|event| self.follow(event, at, out));
        self.expanded = expanded;
        followed?;
        expansion.map_err(|error| self.at_event(&error))
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
        if !self.ended {
            return Ok(RunEnd::Cut);
        }
        if let Some(error) = self.failed {
            return Ok(RunEnd::Failed(error));
        }
        if let Some((what, id)) = self.orphan() {
            return Err(format!("{what} came for tool call {id}, but no event says which tool that is"));
        }
        if let Some(id) = self.unknown_awaited() {
            return Err(format!(
                "RUN_FINISHED says that the agent waits for tool call {id}, which was never announced"
            ));
        }
        let unanswered = self.unanswered();
        Ok(RunEnd::Finished(Finished { interrupts: self.interrupts, unanswered }))
    }

    fn turn_id(&self) -> Arc<str> {
        self.thread.turn.id.clone()
    }

    fn at_event(&self, words: &str) -> String {
        format!("event {}: {words}", self.received)
    }

    fn note(&mut self, out: Sink<'_>, message: String) {
        if self.noted.contains(&message) {
            return;
        }
        out(Note { turn_id: self.turn_id(), message: message.clone(), event: Some(self.received) }.into());
        self.noted.insert(message);
    }

    /// A rule of the protocol is broken.
    fn broken(&mut self, rule: String, out: Sink<'_>) -> Result<(), String> {
        match self.options.strictness {
            Strictness::Strict => Err(self.at_event(&rule)),
            Strictness::Lenient => {
                self.note(out, rule);
                Ok(())
            }
        }
    }

    /// One event, chunks already expanded.
    fn follow(&mut self, event: Event, at: Offset, out: Sink<'_>) -> Result<(), String> {
        if matches!(event, Event::RunStarted(_) | Event::RunFinished(_) | Event::RunError(_)) {
            self.borders += 1;
            if self.borders > MOST_BORDERS {
                return Err(self
                    .at_event(&format!("runs begin and end more than {MOST_BORDERS} times in one answer")));
            }
        }
        if let Some(rule) = self.rules.check(&event) {
            self.broken(rule, out)?;
        }
        let turn_id = self.turn_id();
        match event {
            Event::TextStart(e) => self.text_start(e, at),
            Event::TextContent(e) => self.text_content(e, at),
            Event::TextEnd(e) => self.text_end(&e.message_id, e.metadata, out),
            Event::ToolStart(e) => self.tool_start(e, out),
            Event::ToolArgs(e) => self.tool_arguments(e),
            Event::ToolEnd(e) => {
                let id = self.thread.known_id(e.tool_call_id);
                self.add_call_metadata(&id, e.metadata);
                self.tool_end(&id, out);
            }
            Event::ToolResult(e) => self.tool_result(e, Origin::Stream, out),
            Event::StateSnapshot(e) => {
                self.thread.state = e.snapshot.clone();
                self.thread.state_told = true;
                out(StateSnapshot { turn_id, state: e.snapshot }.into());
            }
            Event::StateDelta(e) => {
                let thread = &mut *self.thread;
                let applied = apply_patch(&mut thread.state, &e.delta, &mut thread.patching);
                let (applied, state) = match applied {
                    Ok(()) if std::mem::replace(&mut thread.state_told, true) => (true, None),
                    // What the request sent is not in the trace yet.
                    Ok(()) => (true, Some(thread.state.clone())),
                    Err(error) => {
                        self.note(out, format!("STATE_DELTA does not apply and changes nothing: {error}"));
                        (false, None)
                    }
                };
                out(StateDelta { turn_id, patch: e.delta, applied, state }.into());
            }
            Event::MessagesSnapshot(e) => {
                return self.messages_snapshot(e.messages, at).map_err(|words| self.at_event(&words));
            }
            Event::ActivitySnapshot(e) => self.activity_snapshot(e, out),
            Event::ActivityDelta(e) => self.activity_delta(e, out),
            Event::Raw(_) => {}
            Event::Custom(e) => self.custom(e, out),
            Event::RunStarted(e) => self.run_started(e, out),
            Event::RunFinished(e) => return self.run_finished(e, out),
            Event::RunError(e) => {
                self.settle(out);
                let error = ErrorInfo { code: e.code, message: e.message, retriable: None };
                out(AgentRunFailed { turn_id, error: error.clone() }.into());
                self.failed.get_or_insert(error);
                self.ended = true;
            }
            Event::StepStarted(e) => out(Payload::StepStarted(Step { turn_id, name: e.step_name })),
            Event::StepFinished(e) => out(Payload::StepFinished(Step { turn_id, name: e.step_name })),
            Event::ReasoningMessageStart(e) => self.thought_start(e.message_id, e.subagent_run_id),
            Event::ReasoningContent(e) => self.thought_content(e),
            Event::ReasoningMessageEnd(e) => self.thought_end(e.message_id.as_ref(), out),
            Event::ReasoningStart(_) | Event::ReasoningEnd(_) => {}
            Event::ThinkingStart(_) | Event::ThinkingEnd(_) => self.note_thinking(out),
            Event::ThinkingMessageStart(_) => {
                self.note_thinking(out);
                self.thought_start(None, None);
            }
            Event::ThinkingContent(e) => {
                self.note_thinking(out);
                self.thought_content(wire::ReasoningDelta { message_id: None, ..e });
            }
            Event::ThinkingMessageEnd(_) => self.thought_end(None, out),
            Event::EncryptedValue(e) => self.encrypted_value(e),
            Event::SubagentStarted(e) => {
                let subagent = e.subagent_run_id.unwrap_or_default();
                out(Payload::SubagentStarted(Subagent {
                    turn_id,
                    subagent,
                    name: e.name,
                    result: None,
                    error: None,
                }));
            }
            Event::SubagentFinished(e) => {
                let subagent = e.subagent_run_id.unwrap_or_default();
                out(Payload::SubagentFinished(Subagent {
                    turn_id,
                    subagent,
                    name: None,
                    result: e.result,
                    error: None,
                }));
            }
            Event::SubagentError(e) => {
                let subagent = e.subagent_run_id.unwrap_or_default();
                let error = Some(ErrorInfo { code: e.code, message: e.message, retriable: None });
                out(Payload::SubagentFailed(Subagent { turn_id, subagent, name: None, result: None, error }));
            }
            Event::Unknown(name) => self.note(out, format!("unknown event type {name}; it has no effect")),
            // The expander lets no chunk through.
            Event::TextChunk(_) | Event::ToolChunk(_) | Event::ReasoningChunk(_) => {}
        }
        Ok(())
    }

    fn note_thinking(&mut self, out: Sink<'_>) {
        self.note(out, "THINKING events are those of older producers; read as REASONING".to_string());
    }

    fn run_started(&mut self, e: wire::RunStarted, out: Sink<'_>) {
        self.note_other_thread("RUN_STARTED", e.thread_id.as_deref(), out);
        // Only the first run of a stream is the one that was asked for.
        let first = !std::mem::replace(&mut self.started, true);
        if let Some(run_id) = e.run_id.as_deref().filter(|id| first && **id != *self.asked.run_id) {
            self.note(out, format!("RUN_STARTED says run {run_id}, the request said {}", self.asked.run_id));
        }
        if let Some(version) = e.protocol_version.as_deref().filter(|version| !is_known(version)) {
            self.note(out, format!("the agent speaks protocol version {version}, which is not known here"));
        }
        self.ended = false;
        let run_id = e.run_id.unwrap_or_default();
        out(AgentRunStarted { turn_id: self.turn_id(), run_id, protocol_version: e.protocol_version }.into());
    }

    fn run_finished(&mut self, e: wire::RunFinished, out: Sink<'_>) -> Result<(), String> {
        self.note_other_thread("RUN_FINISHED", e.thread_id.as_deref(), out);
        self.settle(out);
        let outcome = e.outcome.unwrap_or(wire::Outcome {
            r#type: "success".to_string(),
            interrupts: Vec::new(),
            pending_tool_call_ids: Vec::new(),
        });
        let asked = self.asked_in(&outcome, out)?;
        let run_id = e.run_id.unwrap_or_default();
        let word: Arc<str> = outcome.r#type.into();
        out(AgentRunFinished {
            turn_id: self.turn_id(),
            run_id,
            outcome: word,
            result: e.result,
            usage: e.usage,
            finish_reason: None,
        }
        .into());
        self.raise(asked, out);
        self.awaited.extend(outcome.pending_tool_call_ids);
        self.ended = true;
        Ok(())
    }

    fn note_other_thread(&mut self, event: &str, thread: Option<&str>, out: Sink<'_>) {
        if let Some(thread) = thread.filter(|thread| **thread != *self.thread.id) {
            self.note(out, format!("{event} says thread {thread}, the request said {}", self.thread.id));
        }
    }

    fn activity_snapshot(&mut self, e: wire::ActivitySnapshot, out: Sink<'_>) {
        let taken =
            self.thread.any_message(&e.message_id).is_some_and(|message| wire::role(message) != "activity");
        if taken {
            self.note(out, format!("ACTIVITY_SNAPSHOT has the id of a message: {}", e.message_id));
        }
        let value = json!({"messageId": e.message_id, "activityType": e.activity_type, "content": e.content});
        if e.replace != Some(false) || !self.thread.activities.contains_key(&e.message_id) {
            self.thread.activities.insert(e.message_id, e.content);
        }
        out(Custom { turn_id: self.turn_id(), name: "activity.snapshot".to_string(), value }.into());
    }

    fn activity_delta(&mut self, e: wire::ActivityDelta, out: Sink<'_>) {
        let thread = &mut *self.thread;
        // A delta for an activity that nobody has announced changes nothing.
        let Some(content) = thread.activities.get_mut(&e.message_id) else { return };
        match apply_patch(content, &e.patch, &mut thread.patching) {
            Ok(()) => {
                let value =
                    json!({"messageId": e.message_id, "activityType": e.activity_type, "patch": e.patch});
                out(Custom { turn_id: self.turn_id(), name: "activity.delta".to_string(), value }.into());
            }
            Err(error) => {
                self.note(out, format!("ACTIVITY_DELTA does not apply and changes nothing: {error}"))
            }
        }
    }

    /// What is still open is complete now, and what only snapshots tell joins the trace.
    fn settle(&mut self, out: Sink<'_>) {
        self.close_texts(out);
        self.close_calls(out);
        if !self.snapshots.is_empty() {
            let snapshots = std::mem::take(&mut self.snapshots);
            self.reconcile(&snapshots, out);
        }
        for result in std::mem::take(&mut self.orphan_results) {
            self.tool_result(result, Origin::Stream, out);
        }
    }
}

/// Whether a version of the protocol is one that is understood here: all before 1.0, and 1.
fn is_known(version: &str) -> bool {
    let (major, rest) = version.split_once('.').unwrap_or((version, ""));
    let numbers = rest.split('.').all(|part| part.chars().all(|c| c.is_ascii_digit()));
    numbers && matches!(major, "0" | "1")
}

/// Metadata is merged member by member; the last write wins.
fn merge_metadata(into: &mut wire::Message, metadata: Option<serde_json::Map<String, Value>>) {
    let Some(metadata) = metadata else { return };
    match into.get_mut("metadata") {
        Some(Value::Object(known)) => known.extend(metadata),
        _ => {
            into.insert("metadata".to_string(), Value::Object(metadata));
        }
    }
}
