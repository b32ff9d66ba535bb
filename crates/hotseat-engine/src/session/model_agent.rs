//! An agent whose language models are served by the test: its calls of models become events of its turns.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use hotseat_document::nearest_or;
use hotseat_model::serve::{ServedConversation, ServedModelEvent, ServedModelEventKind};
use hotseat_model::{CallPosition, ModelError, ModelErrorKind, ModelReply, ModelToolCall, ModelToolResult};
use hotseat_targets::AgentSession;
use hotseat_trace::{
    AttemptFailure, CUT_ARGUMENTS, CallVisibility, ErrorInfo, FailureKind, LlmCallCompleted, LlmCallFailed,
    LlmCallStarted, LlmFaultInjected, Payload, UNREADABLE_REPLY, format_first,
};
use serde_json::Map;

use super::model_tool_calls::ModelToolCalls;
use super::service_agent::{ConversationSlot, ServiceAgent, ServiceObserver, TurnEvents, drain};
use crate::cases::MODEL_PREFIX;

/// Maximum number of unused rules that a note lists.
const MAX_LISTED_RULES: usize = 10;

/// A session with an agent, and its conversation with the models that the test serves.
pub type ModelAgent = ServiceAgent<ModelObserver>;

impl ModelAgent {
    /// Adds a conversation with served models to a session. The conversation is returned to `home`.
    pub fn new(
        agent: Box<dyn AgentSession>,
        conversation: ServedConversation,
        home: Option<ConversationSlot<ServedConversation>>,
    ) -> ModelAgent {
        let replayed = conversation.models().filter(|model| conversation.is_replay(model));
        let observer = ModelObserver {
            replayed: replayed.map(str::to_string).collect(),
            tool_calls: (agent.capabilities().calls != CallVisibility::Protocol)
                .then(ModelToolCalls::default),
            ..ModelObserver::default()
        };
        ServiceAgent::with_observer(agent, conversation, observer, home)
    }
}

/// Turns events of served models into events of the trace.
#[derive(Default)]
pub struct ModelObserver {
    events: TurnEvents,
    /// Number of calls in the turn.
    calls_in_turn: u32,
    /// Calls without a reply.
    open: HashMap<u64, OpenModelCall>,
    /// Models that answer from recordings.
    replayed: BTreeSet<String>,
    /// Set if the models show the tool calls of the agent.
    tool_calls: Option<ModelToolCalls>,
    /// Replies that the agent received whole, but for their end. Whether it accepted the calls in them is known once it sends a
    /// result, or its request again.
    undecided: HashMap<RequestKey, LlmCallFailed>,
    /// Requests of the calls in these replies, by the model and its id of the call.
    undecided_calls: HashMap<(Arc<str>, String), RequestKey>,
    /// Requests that the agent repeated after a reply without an end: its client does not accept such replies.
    repeated: HashSet<RequestKey>,
}

/// What a request and its repetitions have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct RequestKey {
    model: Arc<str>,
    /// The position without the number of the attempt.
    position: CallPosition,
    messages: usize,
    input_tokens: u64,
}

/// A call without a reply.
struct OpenModelCall {
    turn_id: Arc<str>,
    /// Number in the turn.
    call_no: u32,
    /// True if the model may call tools.
    offers_tools: bool,
    request: RequestKey,
}

impl ServiceObserver for ModelObserver {
    type Conversation = ServedConversation;
    type Event = ServedModelEvent;

    fn next_event(
        conversation: &mut ServedConversation,
    ) -> impl Future<Output = Option<ServedModelEvent>> + Send {
        conversation.next_event()
    }

    fn try_next_event(conversation: &mut ServedConversation) -> Option<ServedModelEvent> {
        conversation.try_next_event()
    }

    fn addresses(conversation: &ServedConversation) -> Vec<(String, String)> {
        let named = |name: &str| Some((format!("{MODEL_PREFIX}{name}"), conversation.url(name)?));
        conversation.models().filter_map(named).collect()
    }

    fn turn_events(&mut self) -> &mut TurnEvents {
        &mut self.events
    }

    fn has_open_calls(&self) -> bool {
        !self.open.is_empty()
    }

    fn begin_turn(&mut self) {
        self.calls_in_turn = 0;
    }

    /// Tools that a reply calls after the end of the turn would be called unseen.
    fn end_turn(&mut self) {
        if self.tool_calls.is_none() {
            return;
        }
        for (_, OpenModelCall { turn_id, call_no, .. }) in self.open.extract_if(|_, call| call.offers_tools) {
            let message = "the turn ended before the model replied, which may still call tools".to_string();
            let error = ErrorInfo { code: Some(UNREADABLE_REPLY.to_string()), message, retriable: None };
            // If the conversation exceeds a limit, the turn fails anyway.
            let _ = self.events.emit(
                Instant::now(),
                LlmCallFailed { turn_id, call_no, attempt: 1, error, will_retry: false },
            );
        }
        self.end_undecided();
        self.note_unrequested();
    }

    fn end_conversation(&mut self, conversation: &mut ServedConversation) -> Result<(), AttemptFailure> {
        // Replies after the last turn.
        drain(self, conversation)?;
        self.end_undecided();
        self.note_unused(conversation)?;
        let saved = conversation.save_recordings();
        saved.map_err(|error| AttemptFailure::new(FailureKind::TestError, error.to_string()))
    }

    fn process(&mut self, event: ServedModelEvent) -> Result<(), AttemptFailure> {
        let ServedModelEvent { at, model, kind } = event;
        match kind {
            ServedModelEventKind::CallReceived {
                call,
                position,
                requested,
                input_tokens,
                messages,
                tools,
                results,
                answered,
                ..
            } => {
                // Calls before the first turn, for instance to test the connection, belong to no turn.
                let Some(turn_id) = self.events.turn.clone() else { return Ok(()) };
                self.complete_tools(at, &model, &turn_id, results)?;
                if let Some(tool_calls) = &mut self.tool_calls {
                    tool_calls.add_answered(answered);
                }
                let position = CallPosition { attempt: 0, ..position };
                let request = RequestKey { model, position, messages, input_tokens };
                if self.fail_undecided(at, &request)? {
                    self.repeated.insert(request.clone());
                }
                self.calls_in_turn += 1;
                let open = OpenModelCall {
                    turn_id: turn_id.clone(),
                    call_no: self.calls_in_turn,
                    offers_tools: tools > 0,
                    request,
                };
                self.open.insert(call, open);
                let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
                let started = LlmCallStarted {
                    turn_id,
                    model_profile_id: requested.into(),
                    input_tokens,
                    call_no: self.calls_in_turn,
                    attempt: 1,
                    message_count: count(messages),
                    tool_count: count(tools),
                };
                self.events.emit(at, started)
            }
            ServedModelEventKind::CallAnswered { call, reply, duration, .. } => {
                let duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
                self.complete_call(at, &model, call, *reply, duration_ms)
            }
            ServedModelEventKind::CallFailed { call, error, may_be_accepted, .. } => {
                let failed = self.fail_call(at, &model, call, &error, may_be_accepted);
                if error.kind != ModelErrorKind::Unanswered {
                    return failed;
                }
                let (first, rest) = error.message.split_once('\n').unwrap_or((&error.message, ""));
                let message = format!("the served model `{model}` has no reply: {first}");
                let help = match self.replayed.contains(&*model) {
                    true => "record the case again with `type: relay`, or `ignore` what may differ",
                    false => "add a rule to the script of the model",
                };
                let detail = if rest.is_empty() { help.to_string() } else { format!("{rest}\n{help}") };
                Err(AttemptFailure::new(FailureKind::TestError, message).with_detail(detail))
            }
            ServedModelEventKind::UnofferedTool { tool, offered } => {
                let advice =
                    nearest_or(&tool, offered.iter().map(String::as_str), || match offered.is_empty() {
                        true => "it offers no tools".to_string(),
                        false => format!("it offers {}", format_first(&offered, MAX_LISTED_RULES)),
                    });
                let call = format!("the served model `{model}` calls the tool `{tool}`");
                self.events.note(at, format!("{call}, which its request does not offer; {advice}"))
            }
            ServedModelEventKind::UnreadAnswer { path } => self.fail_unread(at, &model, &path),
            ServedModelEventKind::FaultInjected { call, rule, fault } => {
                let Some(OpenModelCall { turn_id, call_no, .. }) = self.open.get(&call) else {
                    return Ok(());
                };
                let (turn_id, call_no) = (turn_id.clone(), *call_no);
                let fault = fault.to_string().into();
                self.events.emit(at, LlmFaultInjected { turn_id, call_no, model, fault, rule })
            }
            ServedModelEventKind::Refused { message } => {
                self.events.note(at, format!("the served model `{model}` refused a request: {message}"))
            }
        }
    }
}

impl ModelObserver {
    fn complete_call(
        &mut self,
        at: Instant,
        model: &Arc<str>,
        call: u64,
        mut reply: ModelReply,
        duration_ms: u64,
    ) -> Result<(), AttemptFailure> {
        let Some(OpenModelCall { turn_id, call_no, .. }) = self.open.remove(&call) else { return Ok(()) };
        let called = turn_id.clone();
        let completed = LlmCallCompleted {
            turn_id,
            call_no,
            input_tokens: (!reply.usage.estimated).then_some(reply.usage.input_tokens),
            output_tokens: reply.usage.output_tokens,
            cached_tokens: Some(reply.usage.cached_tokens).filter(|cached| *cached > 0),
            usage_unreported: reply.usage.unreported,
            has_tool_use: !reply.tool_calls.is_empty(),
            stop_reason: reply.stop.as_str().into(),
            duration_ms,
        };
        self.events.emit(at, completed)?;
        let Some(tool_calls) = &mut self.tool_calls else { return Ok(()) };
        let is_bare = |call: &&mut ModelToolCall| call.arguments.as_object().is_some_and(Map::is_empty);
        if reply.stop.is_cut()
            && let Some(call) = reply.tool_calls.last_mut().filter(is_bare)
        {
            call.arguments = CUT_ARGUMENTS.into();
        }
        let invoked: Vec<Payload> =
            reply.tool_calls.into_iter().map(|call| tool_calls.invoke(model, &called, call)).collect();
        invoked.into_iter().try_for_each(|payload| self.events.emit(at, payload))
    }

    /// Reports an answer in a protocol that is not read as a reply that could not be read.
    fn fail_unread(&mut self, at: Instant, model: &Arc<str>, path: &str) -> Result<(), AttemptFailure> {
        let message = format!(
            "the answer of the model `{model}` at `{path}` has a protocol that Hotseat does not read"
        );
        self.hide_calls(at, model, message)
    }

    /// Reports a reply that could not be read, so that calls may be missing.
    fn hide_calls(&mut self, at: Instant, model: &Arc<str>, message: String) -> Result<(), AttemptFailure> {
        let Some(turn_id) = self.events.turn.clone() else { return Ok(()) };
        self.calls_in_turn += 1;
        let call_no = self.calls_in_turn;
        let started = LlmCallStarted {
            turn_id: turn_id.clone(),
            model_profile_id: model.clone(),
            input_tokens: 0,
            call_no,
            attempt: 1,
            message_count: 0,
            tool_count: 0,
        };
        self.events.emit(at, started)?;
        let error = ErrorInfo { code: Some(UNREADABLE_REPLY.to_string()), message, retriable: None };
        self.events.emit(at, LlmCallFailed { turn_id, call_no, attempt: 1, error, will_retry: false })
    }

    /// Reports the results of tool calls that a request contains.
    fn complete_tools(
        &mut self,
        at: Instant,
        model: &Arc<str>,
        turn_id: &Arc<str>,
        results: Vec<ModelToolResult>,
    ) -> Result<(), AttemptFailure> {
        for result in &results {
            let call = (model.clone(), result.call_id.clone());
            if let Some(request) = self.undecided_calls.remove(&call) {
                self.fail_undecided(at, &request)?;
            }
        }
        for result in results {
            let Some(tool_calls) = &mut self.tool_calls else { return Ok(()) };
            match tool_calls.complete(model, turn_id, result) {
                Ok(mut completed) => completed.try_for_each(|payload| self.events.emit(at, payload))?,
                Err(message) => self.hide_calls(at, model, message)?,
            }
        }
        Ok(())
    }

    fn fail_call(
        &mut self,
        at: Instant,
        model: &Arc<str>,
        call: u64,
        error: &ModelError,
        may_be_accepted: bool,
    ) -> Result<(), AttemptFailure> {
        let Some(OpenModelCall { turn_id, call_no, request, .. }) = self.open.remove(&call) else {
            return Ok(());
        };
        let mut is_undecided = false;
        if let Some((tool_calls, partial)) = self.tool_calls.as_mut().zip(error.partial.as_ref()) {
            is_undecided =
                may_be_accepted && !partial.tool_calls.is_empty() && !self.repeated.contains(&request);
            for call in &partial.tool_calls {
                if is_undecided {
                    self.undecided_calls.insert((model.clone(), call.id.clone()), request.clone());
                }
                tool_calls.add_broken(model, call.clone());
            }
        }
        let error = ErrorInfo {
            code: Some(error.kind.to_string()),
            message: error.message.clone(),
            retriable: Some(error.can_retry()),
        };
        let failed = LlmCallFailed { turn_id, call_no, attempt: 1, error, will_retry: false };
        match is_undecided {
            // Of equal requests at the same time, the last reply stands for all.
            true => {
                self.undecided.insert(request, failed).map_or(Ok(()), |before| self.events.emit(at, before))
            }
            false => self.events.emit(at, failed),
        }
    }

    /// The agent sends neither results nor its requests again.
    fn end_undecided(&mut self) {
        let mut all: Vec<LlmCallFailed> = self.undecided.drain().map(|(_, failed)| failed).collect();
        all.sort_by_key(|failed| failed.call_no);
        for mut failed in all {
            failed.error.code = Some(UNREADABLE_REPLY.to_string());
            failed.error.message += ", and the agent may have carried out its calls";
            // If the conversation exceeds a limit, the turn fails anyway.
            let _ = self.events.emit(Instant::now(), failed);
        }
        self.undecided_calls.clear();
    }

    /// Reports that a reply without an end failed, once it is known what the agent made of it. Returns false if there is none.
    fn fail_undecided(&mut self, at: Instant, request: &RequestKey) -> Result<bool, AttemptFailure> {
        let Some(failed) = self.undecided.remove(request) else { return Ok(false) };
        self.events.emit(at, failed).map(|()| true)
    }

    /// Notes the calls that the agent sent to models, although none of them made the call.
    fn note_unrequested(&mut self) {
        let calls = self.tool_calls.as_mut().map(ModelToolCalls::take_unrequested);
        for (id, tool) in calls.into_iter().flatten() {
            let sent = format!("the agent sent a model the result of a call of `{tool}` (`{id}`)");
            let message = format!(
                "{sent}, which no reply of a model contains: assertions see the call only if an MCP server of the test received it"
            );
            // If the conversation exceeds a limit, the turn fails anyway.
            let _ = self.events.note(Instant::now(), message);
        }
    }

    /// Notes the rules that answered no call.
    fn note_unused(&mut self, conversation: &ServedConversation) -> Result<(), AttemptFailure> {
        for (model, unused) in conversation.unused_answers() {
            let listed = format_first(&unused, MAX_LISTED_RULES);
            self.events.note(Instant::now(), format!("the served model `{model}` did not use {listed}"))?;
        }
        Ok(())
    }
}
