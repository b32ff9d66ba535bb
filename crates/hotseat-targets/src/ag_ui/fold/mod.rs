//! Folds AG-UI events into trace events: one run of the agent, event by event.
//!
//! Does no I/O and reads no clock. This code decides how calls are counted: a call counts once however often
//! it is reported (in events, in a snapshot, again after an interrupt), and a call reported only in a
//! snapshot counts as well.

mod calling_message;
mod calls;
mod earlier_turns;
mod error;
mod interrupts;
mod later_messages;
mod run;
mod snapshot;
mod snapshot_times;
mod text;

use std::sync::Arc;

use hotseat_document::excerpt;
use hotseat_http::SseEvent;
use hotseat_trace::{
    AgentRunFailed, AgentRunFinished, AgentRunStarted, Custom, ErrorInfo, Note, Origin, Payload, Raw,
    StateDelta, StateSnapshot, Step, Subagent, TimeOffset, apply_patch, is_malformed_patch,
};
use serde_json::{Value, json};

use self::error::{EventProblem, MAX_RUN_BOUNDARIES, ProtocolViolation};
use self::run::RunProgress;
pub use self::run::{
    FinishedRun, FoldOptions, OpenInterrupt, ProtocolStrictness, RunEnd, RunFold, RunRequest, UnansweredCall,
};
use super::known_call::KnownArguments;
use super::wire::{self, Event, Received};
use crate::connection::lines::check_value_count;
use crate::target::{error_event_data, parse_error_event};

impl RunFold<'_> {
    /// Returns the number of received events.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Returns true if the agent has ended its run and has not started another.
    pub fn has_ended(&self) -> bool {
        self.progress == RunProgress::Ended
    }

    /// Returns true if no end of a run stands.
    pub fn is_running(&self) -> bool {
        self.progress == RunProgress::Running
    }

    /// Ends the run without its rest: no request of the conversation follows.
    pub fn abandon(&mut self) {
        self.is_abandoned = true;
    }

    /// Describes the open items.
    pub fn open_items(&self) -> Vec<String> {
        self.rules.open_entities()
    }

    /// Takes the trace payloads since the last call, in order.
    pub fn take_payloads(&mut self) -> impl Iterator<Item = Payload> {
        self.payloads.drain(..)
    }

    /// Processes one event. Fails if it is not a valid event, or violates a rule under strict rules. One that is named as an error
    /// is an error of the agent, unless its data is an event of the protocol.
    pub fn receive(
        &mut self,
        SseEvent { data, is_error }: SseEvent<'_>,
        at: TimeOffset,
    ) -> Result<(), ProtocolViolation> {
        self.received += 1;
        if self.options.keep_raw {
            let event = serde_json::from_str(data).unwrap_or_else(|_| Value::String(data.to_string()));
            self.emit(Raw { turn_id: self.turn_id(), event });
        }
        if data == "[DONE]" && !is_error {
            self.note("`[DONE]` is not an event of this protocol; ignored".to_string());
            return Ok(());
        }
        check_value_count(data).map_err(|error| self.at_event(error.into()))?;
        let received = match Event::parse(data) {
            Err(_) | Ok(Received { event: Event::Unknown(_), .. }) if is_error => {
                let ErrorInfo { code, message, .. } = parse_error_event(&error_event_data(data));
                let failed = wire::RunError { message, code, ..Default::default() };
                Received { event: Event::RunError(failed), null_subagent: false }
            }
            parsed => parsed.map_err(|error| self.at_event(error.into()))?,
        };
        if received.null_subagent {
            self.report_violation(
                "`subagentRunId` is null; omit it or set it to the id of a sub-agent".to_string(),
            )?;
        }
        if self.expander.passes_on(&received.event) {
            return self.process(received.event, at);
        }
        let mut expanded = std::mem::take(&mut self.expanded);
        let expansion = self.expander.expand(received.event, &mut expanded);
        let followed = expanded.drain(..).try_for_each(|event| self.process(event, at));
        self.expanded = expanded;
        followed?;
        expansion.map_err(|error| self.at_event(error.into()))
    }

    /// Ends the run at the end of the stream: closes open items and returns how the run ended. Fails if the
    /// run ended regularly but has results or arguments of an unknown call.
    pub fn finish(&mut self, at: TimeOffset) -> Result<RunEnd, ProtocolViolation> {
        let mut closed = Vec::new();
        self.expander.close_all(&mut closed);
        for event in closed {
            self.process(event, at)?;
        }
        self.settle();
        if self.progress == RunProgress::Running {
            return Ok(RunEnd::Truncated);
        }
        if let Some(error) = self.failed.take() {
            return Ok(RunEnd::Failed(error));
        }
        if let Some((part, id)) = self.orphan() {
            return Err(ProtocolViolation::UnknownCall { part, id: id.clone() });
        }
        if let Some(id) = self.contradicted_call.take() {
            let is_shared = self.thread.turn.repeated.contains_key(&id);
            let violation =
                if is_shared { ProtocolViolation::TooManyResults } else { ProtocolViolation::SecondResult };
            return Err(violation(id));
        }
        if let Some(id) = self.unknown_awaited() {
            return Err(ProtocolViolation::UnknownPendingCall(id.clone()));
        }
        let unanswered = self.unanswered();
        Ok(RunEnd::Finished(FinishedRun { interrupts: std::mem::take(&mut self.interrupts), unanswered }))
    }

    fn turn_id(&self) -> Arc<str> {
        self.thread.turn.id.clone()
    }

    /// Returns the start of a text or call, or the arrival of a snapshot, that arrives now.
    fn start_time(&mut self) -> TimeOffset {
        self.thread.turn.starts.next(self.now)
    }

    fn at_event(&self, problem: EventProblem) -> ProtocolViolation {
        ProtocolViolation::Event { number: self.received, problem }
    }

    fn emit(&mut self, payload: impl Into<Payload>) {
        self.payloads.push(payload.into());
    }

    fn note(&mut self, message: String) {
        if self.recorded_notes.contains(&message) {
            return;
        }
        self.emit(Note { turn_id: self.turn_id(), message: message.clone(), event: Some(self.received) });
        self.recorded_notes.insert(message);
    }

    fn report_violation(&mut self, rule: String) -> Result<(), ProtocolViolation> {
        match self.options.strictness {
            ProtocolStrictness::Strict => Err(self.at_event(EventProblem::Rule(rule))),
            ProtocolStrictness::Lenient => {
                self.note(rule);
                Ok(())
            }
        }
    }

    /// Checks that all that the agent says and does in the messages of a snapshot will be read.
    fn check_snapshot(&mut self, messages: &[wire::MessageObject]) -> Result<(), ProtocolViolation> {
        if let Some(call) = messages.iter().find_map(wire::invalid_call) {
            let shown = excerpt(&call.to_string(), 200).into_owned();
            return Err(self.at_event(EventProblem::InvalidCall(shown)));
        }
        let mut roles = messages.iter().map(wire::role);
        if let Some(role) = roles.clone().find(|role| wire::is_misspelt_assistant(role)) {
            let (event, role) = ("a message of MESSAGES_SNAPSHOT", role.to_string());
            return Err(self.at_event(EventProblem::UnknownRole { event, role }));
        }
        if let Some(role) = roles.find(|role| !role.is_empty() && !wire::ROLES.contains(role)) {
            let role = excerpt(role, 200);
            self.note(format!("MESSAGES_SNAPSHOT has messages of the unknown role `{role}`; not read"));
        }
        Ok(())
    }

    /// Processes one event after chunk expansion.
    fn process(&mut self, event: Event, at: TimeOffset) -> Result<(), ProtocolViolation> {
        self.now = at;
        if matches!(event, Event::RunStarted(_) | Event::RunFinished(_) | Event::RunError(_)) {
            self.boundaries += 1;
            if self.boundaries > MAX_RUN_BOUNDARIES {
                return Err(self.at_event(EventProblem::TooManyRuns));
            }
        }
        if let Some(rule) = self.rules.check(&event) {
            self.report_violation(rule)?;
        }
        let turn_id = self.turn_id();
        match event {
            Event::TextStart(wire::TextStart { role: Some(role), .. })
                if !wire::ROLES.contains(&role.as_str()) =>
            {
                return Err(self.at_event(EventProblem::UnknownRole { event: "a text message", role }));
            }
            Event::TextStart(e) => self.text_start(e),
            Event::TextContent(e) => self.text_content(e),
            Event::TextEnd(e) => self.text_end(&e.message_id, e.metadata),
            Event::ToolStart(e) if e.tool_call_name.is_empty() => {
                return Err(self.at_event(EventProblem::NamelessCall("TOOL_CALL_START")));
            }
            Event::ToolStart(e) => self.tool_start(e),
            Event::ToolArgs(e) => self.tool_arguments(e),
            Event::ToolEnd(e) => {
                let id = self.thread.known_id(e.tool_call_id);
                self.add_call_metadata(&id, e.metadata);
                match self.open_calls.get_mut(&id) {
                    // Chunks of several calls may interleave: the call continues with its next chunk, or ends with the run.
                    Some(open) if e.is_implied && KnownArguments::is_incomplete(&open.arguments) => {
                        return Ok(());
                    }
                    Some(open) if !e.is_implied => open.last_part = None,
                    _ => {}
                }
                self.tool_end(&id);
            }
            Event::ToolResult(e) => self.tool_result(*e, Origin::Stream),
            Event::StateSnapshot(e) => self.state_snapshot(e),
            Event::StateDelta(e) => return self.state_delta(e),
            Event::MessagesSnapshot(e) => {
                self.check_snapshot(&e.messages)?;
                return self.messages_snapshot(e.messages).map_err(|error| self.at_event(error.into()));
            }
            Event::ActivitySnapshot(e) => self.activity_snapshot(*e),
            Event::ActivityDelta(e) => return self.activity_delta(*e),
            Event::Raw(_) => {}
            Event::Custom(e) => self.custom(*e),
            Event::RunStarted(e) => self.run_started(e),
            Event::RunFinished(e) => return self.run_finished(*e),
            Event::RunError(e) => self.run_failed(e),
            Event::StepStarted(e) => self.emit(Payload::StepStarted(Step { turn_id, name: e.step_name })),
            Event::StepFinished(e) => self.emit(Payload::StepFinished(Step { turn_id, name: e.step_name })),
            Event::ReasoningMessageStart(e) => self.reasoning_start(e),
            Event::ReasoningContent(e) => self.reasoning_content(e),
            Event::ReasoningMessageEnd(e) => self.reasoning_end(e),
            Event::ReasoningStart(_) | Event::ReasoningEnd(_) => {}
            Event::ThinkingStart(_) | Event::ThinkingEnd(_) => self.note_thinking(),
            Event::ThinkingMessageStart(_) => {
                self.note_thinking();
                self.reasoning_start(wire::Span::default());
            }
            Event::ThinkingContent(e) => {
                self.note_thinking();
                self.reasoning_content(wire::ReasoningDelta { message_id: None, ..e });
            }
            Event::ThinkingMessageEnd(_) => self.reasoning_end(wire::Span::default()),
            Event::EncryptedValue(e) => self.store_encrypted_value(e),
            Event::SubagentStarted(e) => {
                let subagent = e.subagent_run_id.unwrap_or_default();
                let started = Subagent { turn_id, subagent, name: e.name, ..Subagent::default() };
                self.emit(Payload::SubagentStarted(started));
            }
            Event::SubagentFinished(e) => {
                let subagent = e.subagent_run_id.unwrap_or_default();
                let finished = Subagent { turn_id, subagent, result: e.result, ..Subagent::default() };
                self.emit(Payload::SubagentFinished(finished));
            }
            Event::SubagentError(e) => {
                let error = Some(ErrorInfo { code: e.code, message: e.message, retriable: None });
                let subagent = e.subagent_run_id.unwrap_or_default();
                let failed = Subagent { turn_id, subagent, error, ..Subagent::default() };
                self.emit(Payload::SubagentFailed(failed));
            }
            Event::Unknown(name) => self.note(format!("unknown event type {name}; ignored")),
            // The expander passes no chunk events on.
            Event::TextChunk(_) | Event::ToolChunk(_) | Event::ReasoningChunk(_) => {}
        }
        Ok(())
    }

    fn state_snapshot(&mut self, e: wire::StateSnapshot) {
        self.thread.state = e.snapshot.clone();
        self.thread.is_state_recorded = true;
        self.emit(StateSnapshot { turn_id: self.turn_id(), state: e.snapshot });
    }

    fn state_delta(&mut self, e: wire::StateDelta) -> Result<(), ProtocolViolation> {
        let thread = &mut *self.thread;
        let applied = apply_patch(&mut thread.state, &e.delta, &mut thread.patching);
        let (applied, state) = match applied {
            Ok(()) if std::mem::replace(&mut thread.is_state_recorded, true) => (true, None),
            // The state of the request is not in the trace yet.
            Ok(()) => (true, Some(thread.state.clone())),
            Err(error) if is_malformed_patch(&e.delta) => {
                return Err(self.at_event(EventProblem::Patch("STATE_DELTA", error)));
            }
            Err(error) => {
                self.note(format!("STATE_DELTA does not apply and changes nothing: {error}"));
                (false, None)
            }
        };
        self.emit(StateDelta { turn_id: self.turn_id(), patch: e.delta, applied, state });
        Ok(())
    }

    fn run_failed(&mut self, e: wire::RunError) {
        self.settle();
        let error = ErrorInfo { code: e.code, message: e.message, retriable: None };
        self.emit(AgentRunFailed { turn_id: self.turn_id(), error: error.clone(), usage: e.usage });
        self.failed.get_or_insert(error);
        self.open_runs.clear();
        self.progress = RunProgress::Ended;
    }

    fn note_thinking(&mut self) {
        self.note("THINKING events of older producers are read as REASONING".to_string());
    }

    fn run_started(&mut self, mut e: wire::RunStarted) {
        self.note_other_thread("RUN_STARTED", e.thread_id.as_deref());
        // Only the first run of a stream is the requested one.
        let first = !std::mem::replace(&mut self.started, true);
        if let Some(run_id) = e.run_id.as_deref().filter(|id| first && **id != *self.request.run_id) {
            self.note(format!("RUN_STARTED has run {run_id}, the request has {}", self.request.run_id));
        }
        if let Some(version) = e.protocol_version.as_deref().filter(|version| !is_supported_version(version))
        {
            self.note(format!("the agent uses the unknown protocol version {version}"));
        }
        if first {
            self.thread.add_unknown_messages(e.take_messages());
        }
        self.progress = RunProgress::Running;
        let run_id = e.run_id.unwrap_or_default();
        if !self.open_runs.contains(&run_id) {
            self.open_runs.push(run_id.clone());
        }
        self.emit(AgentRunStarted { turn_id: self.turn_id(), run_id, protocol_version: e.protocol_version });
    }

    fn run_finished(&mut self, e: wire::RunFinished) -> Result<(), ProtocolViolation> {
        self.note_other_thread("RUN_FINISHED", e.thread_id.as_deref());
        if let Some(ErrorInfo { code, message, .. }) = e.failure() {
            self.run_failed(wire::RunError { message, code, usage: e.usage, ..Default::default() });
            return Ok(());
        }
        let run_id = e.run_id.unwrap_or_default();
        let progress = self.end_run(&run_id);
        let ended = progress != RunProgress::Running;
        // A snapshot tells whether the server knows one call or two.
        let has_snapshot = !self.snapshots.is_empty();
        if ended {
            self.settle();
        }
        let success = || wire::WireOutcome { r#type: "success".to_string(), ..Default::default() };
        let outcome = e.outcome.unwrap_or_else(success);
        let asked = self.interrupts_of(&outcome)?;
        if ended && !has_snapshot && asked.is_empty() {
            self.record_calls_again();
        }
        let word: Arc<str> = outcome.r#type.into();
        self.emit(AgentRunFinished {
            turn_id: self.turn_id(),
            run_id,
            outcome: word,
            result: e.result,
            usage: e.usage,
            finish_reason: None,
        });
        self.raise(asked);
        self.awaited_calls.extend(outcome.pending_tool_call_ids);
        self.progress = progress;
        Ok(())
    }

    /// Ends the run with this id, or the last one. A run within another one leaves that open.
    fn end_run(&mut self, id: &Arc<str>) -> RunProgress {
        let place = self.open_runs.iter().rposition(|open| open == id);
        let is_other = place.is_none()
            && !id.is_empty()
            && **id != *self.request.run_id
            && self.open_runs.iter().any(|open| !open.is_empty());
        match place.or(self.open_runs.len().checked_sub(1)) {
            Some(inner @ 1..) => drop(self.open_runs.remove(inner)),
            Some(0) | None => self.open_runs.clear(),
        }
        match self.open_runs.is_empty() {
            false => RunProgress::Running,
            true if is_other => RunProgress::OtherEnded,
            true => RunProgress::Ended,
        }
    }

    fn note_other_thread(&mut self, event: &str, thread: Option<&str>) {
        if let Some(thread) = thread.filter(|thread| **thread != *self.thread.id) {
            self.note(format!("{event} has thread {thread}, the request has {}", self.thread.id));
        }
    }

    fn activity_snapshot(&mut self, e: wire::ActivitySnapshot) {
        let taken = self
            .thread
            .last_message_mut(&e.message_id)
            .is_some_and(|message| wire::role(message) != "activity");
        if taken {
            self.note(format!("ACTIVITY_SNAPSHOT has the id of a message: {}", e.message_id));
        }
        let value = json!({"messageId": e.message_id, "activityType": e.activity_type, "content": e.content});
        if e.replace != Some(false) || !self.thread.activities.contains_key(&e.message_id) {
            self.thread.activities.insert(e.message_id, e.content);
        }
        self.emit(Custom { turn_id: self.turn_id(), name: "activity.snapshot".to_string(), value });
    }

    fn activity_delta(&mut self, e: wire::ActivityDelta) -> Result<(), ProtocolViolation> {
        let thread = &mut *self.thread;
        // A delta of an unknown activity is ignored.
        let Some(content) = thread.activities.get_mut(&e.message_id) else { return Ok(()) };
        match apply_patch(content, &e.patch, &mut thread.patching) {
            Ok(()) => {
                let value =
                    json!({"messageId": e.message_id, "activityType": e.activity_type, "patch": e.patch});
                self.emit(Custom { turn_id: self.turn_id(), name: "activity.delta".to_string(), value });
            }
            Err(error) if is_malformed_patch(&e.patch) => {
                return Err(self.at_event(EventProblem::Patch("ACTIVITY_DELTA", error)));
            }
            Err(error) => {
                self.note(format!("ACTIVITY_DELTA does not apply and changes nothing: {error}"));
            }
        }
        Ok(())
    }

    /// Completes open items and reconciles the snapshots.
    fn settle(&mut self) {
        self.close_texts();
        self.close_calls();
        if !self.snapshots.is_empty() {
            let snapshots = std::mem::take(&mut self.snapshots);
            self.reconcile(&snapshots);
        }
        self.tell_calling_messages();
        for result in std::mem::take(&mut self.orphan_results) {
            self.tool_result(result, Origin::Stream);
        }
    }
}

/// Returns true for supported protocol versions: all before 1.0, and 1.
fn is_supported_version(version: &str) -> bool {
    let (major, rest) = version.split_once('.').unwrap_or((version, ""));
    let numbers = rest.split('.').all(|part| part.chars().all(|c| c.is_ascii_digit()));
    numbers && matches!(major, "0" | "1")
}
