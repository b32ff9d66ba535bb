//! Tool calls: each counts once, however often it is announced.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use hotseat_model::ArgumentsProgress;
use hotseat_trace::{CUT_ARGUMENTS, Origin, ToolArguments, ToolInvocation};
use serde_json::Value;

use super::super::history::ResultMessage;
use super::super::known_call::{KnownArguments, ResultSource};
use super::super::wire::{self, merge_metadata};
use super::run::{CallSighting, OpenCall, RunFold, UnansweredCall};
use crate::message::json_text::{arguments_note, joined, unknown_arguments_note};
use crate::message::{ToolReply, is_content_parts, parse_content_output, shown_id};

impl RunFold<'_> {
    /// Processes the announcement of a call. Within a turn an id means one call, even if a resumed run
    /// announces it again; in a later turn it is a new call, since some servers restart their numbering.
    pub(super) fn tool_start(&mut self, e: wire::ToolStart) {
        let id = self.thread.known_id(e.tool_call_id);
        let again = self.open_calls.get(&id).and_then(|open| open.reannounced.as_ref());
        if again.is_some_and(|again| again.is_of_other_message(e.parent_message_id.as_ref()))
            && self.is_made_by_other_message(&id)
        {
            self.record_call_again(&id);
        }
        let known = self.thread.call_of_turn(&id);
        let is_known = known.is_some();
        let open = self.open_calls.remove(&id);
        let goes_on = open
            .as_ref()
            .is_some_and(|open| !open.is_complete && KnownArguments::is_incomplete(&open.arguments));
        // An empty id names no call, so it is none that is announced again. Only a chunk may continue one.
        let is_unnamed = id.is_empty() && !(e.is_implied && goes_on);
        // A run does not announce a call again after its result: the agent calls the tool once more.
        let is_other = known.is_some_and(|call| {
            call.name != e.tool_call_name || is_unnamed || call.result_source == Some(self.answering())
        });
        // A later run may announce the call again with arguments that a human edited.
        let is_complete_in_run = open.is_none() && self.calls_in_run.contains_key(&id);
        let mut open = open.unwrap_or_default();
        let is_answered = known.is_some_and(|call| call.result_source.is_some());
        let seen = CallSighting {
            subagent: e.subagent_run_id.clone(),
            message_id: e.parent_message_id.clone(),
            started_us: Some(self.start_time()),
            ..CallSighting::default()
        };
        match is_known {
            // Arguments received before the announcement belong to the call.
            false => {
                self.record_new_call(&id, &e.tool_call_name, seen);
                self.add_call_to_reply(&id, e.subagent_run_id.as_ref());
            }
            true if is_other => {
                self.open_calls.insert(id.clone(), std::mem::take(&mut open));
                self.close_call(&id);
                self.record_second_call(&id, &e.tool_call_name, seen);
            }
            true => {
                // An open call continues, unless its arguments are complete: then they are sent again.
                let is_complete = !goes_on && !open.arguments.text().is_empty();
                let again = (is_answered || is_complete_in_run || is_complete).then_some(seen);
                if is_complete {
                    self.open_calls.insert(id.clone(), std::mem::take(&mut open));
                    self.tool_end(&id);
                }
                let arguments = if goes_on { open.arguments } else { ArgumentsProgress::default() };
                open = OpenCall { arguments, reannounced: again, ..OpenCall::default() };
            }
        }
        let (parent, subagent) = (e.parent_message_id.as_ref(), e.subagent_run_id.as_ref());
        self.thread.add_call_entry(&id, &e.tool_call_name, parent, subagent);
        self.add_call_metadata(&id, e.metadata);
        self.add_to_run(&id);
        open.last_part = Some(self.now);
        self.last_calls.push(id.clone());
        self.open_calls.insert(id, open);
    }

    /// Records the calls of a run that repeat another one and get no result, though the agent calls the tool again: the client
    /// answered the first and the agent waits, or another message of the run makes the call. An agent that only repeats a
    /// call of the client goes on with the answer; one that only repeats its own call then sends the result.
    pub(super) fn record_calls_again(&mut self) {
        for id in std::mem::take(&mut self.last_calls) {
            let known = self.thread.call_of_turn(&id);
            if known.is_some_and(|known| known.result_source == Some(ResultSource::Client)) {
                self.record_call_again(&id);
            }
        }
        for number in 0..self.calls_in_order.len() {
            let id = self.calls_in_order[number].clone();
            if self.is_made_by_other_message(&id) {
                self.record_call_again(&id);
            }
        }
    }

    /// Returns true if a call without a result was announced again for another message.
    fn is_made_by_other_message(&self, id: &Arc<str>) -> bool {
        let known = self.thread.call_of_turn(id).filter(|known| known.result_source.is_none());
        let again = self.open_calls.get(id).and_then(|open| open.reannounced.as_ref());
        known.zip(again).is_some_and(|(known, again)| again.is_of_other_message(known.message_id.as_ref()))
    }

    /// Records a call that was announced again as a second one.
    fn record_call_again(&mut self, id: &Arc<str>) {
        let Some(mut open) = self.open_calls.remove(id) else { return };
        let Some(known) = self.thread.call_of_turn(id) else { return };
        if let Some(again) = open.reannounced.take() {
            let arguments = open.known_arguments();
            self.record_second_call(id, &known.name.clone(), again);
            self.set_arguments(id, arguments, Some(open));
        }
    }

    /// Notes that a call started or continued in this run.
    pub(super) fn add_to_run(&mut self, id: &Arc<str>) {
        if self.calls_in_run.insert(id.clone(), ()).is_none() {
            self.calls_in_order.push(id.clone());
        }
    }

    pub(super) fn add_call_metadata(&mut self, id: &Arc<str>, metadata: wire::EventMetadata) {
        if metadata.is_some()
            && let Some(Value::Object(entry)) = self.thread.history.call_entry(id)
        {
            merge_metadata(entry, metadata);
        }
    }

    /// Adds a new call to the thread and the trace.
    pub(super) fn record_new_call(&mut self, id: &Arc<str>, name: &Arc<str>, seen: CallSighting) {
        let CallSighting { origin, started_us, subagent, message_id } = seen;
        let started = started_us.unwrap_or_else(|| self.start_time());
        let started_us = (started != self.now).then_some(started);
        let tool_call_id = self.thread.add_call(id, name, origin, started);
        if let Some(call) = self.thread.calls.get_mut(id) {
            call.message_id.clone_from(&message_id);
        }
        self.emit(ToolInvocation {
            turn_id: self.turn_id(),
            tool_call_id,
            tool_name: name.clone(),
            started_us,
            origin,
            subagent,
            message_id,
            ..ToolInvocation::default()
        });
    }

    pub(super) fn tool_arguments(&mut self, e: wire::ToolArgs) {
        let id = self.thread.known_id(e.tool_call_id);
        self.add_call_metadata(&id, e.metadata);
        if let Some(open) = self.open_calls.get_mut(&id) {
            open.arguments.add(&e.delta);
            open.is_complete = false;
            open.last_part = Some(self.now);
            return;
        }
        // Arguments after the end of a call still belong to it; for an unknown call they wait for its
        // announcement.
        let known = self.thread.call_of_turn(&id).map(|call| &call.arguments);
        let before = match known {
            Some(KnownArguments::Invalid(text)) => text.clone(),
            _ => String::new(),
        };
        let is_late = known.is_some_and(KnownArguments::is_whole);
        let arguments = ArgumentsProgress::from(before + &e.delta);
        self.open_calls
            .insert(id, OpenCall { arguments, last_part: Some(self.now), is_late, ..OpenCall::default() });
    }

    /// Completes the arguments of a call.
    pub(super) fn tool_end(&mut self, id: &Arc<str>) {
        let Some(known) = self.thread.call_of_turn(id) else { return };
        let Some(mut open) = self.open_calls.remove(id) else { return };
        open.arguments = joined(open.arguments.into_text()).into();
        let arguments = open.known_arguments();
        // Announced again without arguments, or with empty ones in the same run: the known ones are kept.
        let are_known = !matches!(known.arguments, KnownArguments::Unknown | KnownArguments::Cut);
        let silent = are_known && open.arguments.text().is_empty();
        let is_again = open.is_late || open.reannounced.is_some();
        let removes = is_again && known.arguments.is_whole() && arguments.is_empty();
        let same = silent || removes || known.arguments == arguments;
        match open.reannounced.take() {
            // Complete arguments are never replaced: that would hide what the call did.
            None if open.is_late && known.arguments.contradicts(&arguments) => {
                self.record_second_call(id, &known.name.clone(), CallSighting::default());
                self.set_arguments(id, arguments, Some(open));
            }
            // Announced again after its end or its result, with different arguments: a second call.
            Some(again) if known.arguments.contradicts(&arguments) => {
                self.record_second_call(id, &known.name.clone(), again);
                self.set_arguments(id, arguments, Some(open));
            }
            Some(again) => {
                if !same {
                    self.set_arguments(id, arguments, Some(open.clone()));
                }
                // It may still get a second result.
                self.open_calls
                    .insert(id.clone(), OpenCall { is_complete: true, reannounced: Some(again), ..open });
            }
            None if same => {}
            None => self.set_arguments(id, arguments, Some(open)),
        }
    }

    /// Notes that a repeated id is a second call.
    pub(super) fn note_second_call(&mut self, id: &Arc<str>) {
        let id = if id.is_empty() { "\"\"" } else { id };
        self.note(format!("tool call id {id} is used for two calls; both are counted"));
    }

    /// Records that a repeated id is a second call.
    fn record_second_call(&mut self, id: &Arc<str>, name: &Arc<str>, seen: CallSighting) {
        self.note_second_call(id);
        let first = self.thread.call_of_turn(id).filter(|call| call.result_source.is_none());
        if let Some(first) = first.filter(|_| self.calls_in_run.contains_key(id)) {
            self.waiting_calls.entry(id.clone()).or_default().push_back(first.trace_id.clone());
        }
        let subagent = seen.subagent.clone();
        self.record_new_call(id, name, seen);
        self.thread.add_second_call_entry(id, name, subagent.as_ref());
    }

    /// Sets the arguments of a call; `streamed` contains the agent's text, if the history does not have it yet.
    pub(super) fn set_arguments(
        &mut self,
        id: &Arc<str>,
        arguments: KnownArguments,
        streamed: Option<OpenCall>,
    ) {
        let Some(call) = self.thread.calls.get_mut(id) else { return };
        if call.arguments == arguments {
            return;
        }
        if matches!(arguments, KnownArguments::Invalid(_))
            && !matches!(call.arguments, KnownArguments::Invalid(_))
            && !call.arguments.is_empty()
        {
            let id = shown_id(id);
            self.note(format!("tool call {id} was announced again with arguments that cannot be read as JSON; the first ones are used"));
            return;
        }
        call.arguments = arguments.clone();
        let tool_call_id = call.trace_id.clone();
        let ended_us = streamed.as_ref().and_then(|streamed| streamed.last_part);
        let text = streamed.map(|streamed| streamed.arguments.into_text()).filter(|text| !text.is_empty());
        if let Some(text) = text {
            self.thread.history.set_call_arguments(id, text);
        }
        let (input, text) = match arguments {
            KnownArguments::Json(value) => (Some(value), None),
            KnownArguments::Invalid(text) => {
                self.note(arguments_note(id, &text));
                (None, Some(text))
            }
            KnownArguments::Cut => {
                self.note(unknown_arguments_note(id, CUT_ARGUMENTS));
                (None, Some(CUT_ARGUMENTS.to_string()))
            }
            KnownArguments::Unknown => (None, None),
        };
        self.emit(ToolArguments {
            turn_id: self.turn_id(),
            tool_call_id,
            input,
            text,
            ended_us,
            message_id: None,
        });
    }

    pub(super) fn tool_result(&mut self, mut e: wire::ToolResult, origin: Origin) {
        self.last_calls.clear();
        let id = self.thread.known_id(e.tool_call_id);
        e.tool_call_id = id.clone();
        if let Some(again) = self.open_calls.get(&id).and_then(|open| open.reannounced.clone()) {
            self.process_repeated_result(&id, again, &e);
        }
        self.tool_end(&id);
        let Some(call) = self.thread.calls.get(&id) else {
            self.orphan_results.push(e);
            return;
        };
        let (repeated, streamed) = (call.result_source, call.streamed_result);
        // Calls that share an id get their results in the order of the calls.
        let waiting = self.waiting_calls.get_mut(&id).filter(|_| origin == Origin::Stream);
        if let Some(first) = waiting.and_then(VecDeque::pop_front) {
            self.thread.turn.first_results.insert((id.clone(), result_hash(&e)));
            self.add_result(&id, first, e, origin);
            return;
        }
        if origin == Origin::Snapshot
            && self.thread.turn.first_results.contains(&(id.clone(), result_hash(&e)))
        {
            return;
        }
        let is_known = self.is_known_result(&id, &e);
        if repeated.is_some() && (is_known || streamed == Some(result_hash(&e))) {
            // Servers may repeat known results.
            return;
        }
        if repeated.is_some() && call.turn != self.thread.turn.number {
            // A result for an unannounced call with the id of an older call.
            self.orphan_results.push(e);
            return;
        }
        if repeated == Some(ResultSource::Client) {
            let keeps_answer = origin == Origin::Snapshot || self.repeats_answer(&id, &e.content);
            let used = if keeps_answer { "the client's result" } else { "the result of the agent" };
            self.note(format!(
                "tool call {} was answered by the client and got another result; {used} is used",
                shown_id(&id)
            ));
            if keeps_answer {
                return;
            }
        } else if streamed.is_some() {
            self.contradicted_call.get_or_insert(id);
            return;
        } else if repeated.is_some() && origin == Origin::Stream {
            self.note(format!("tool call {} got another result; the last one is used", shown_id(&id)));
        }
        self.record_result(&id, e, origin);
    }

    /// The source of results that this request brings.
    pub(super) fn answering(&self) -> ResultSource {
        ResultSource::Agent { request: self.request.number }
    }

    /// Processes a result of a call that already had one when it was announced again. If the tool evidently
    /// ran twice, there are two calls.
    fn process_repeated_result(&mut self, id: &Arc<str>, again: CallSighting, result: &wire::ToolResult) {
        // With different arguments, the end of the arguments creates the second call.
        self.tool_end(id);
        if self.open_calls.get(id).is_none_or(|open| open.reannounced.is_none()) {
            return;
        }
        let Some(mut open) = self.open_calls.remove(id) else { return };
        let Some(known) = self.thread.call_of_turn(id) else { return };
        // A resumed run may repeat results of an earlier one.
        let is_answered = matches!(known.result_source, Some(ResultSource::Agent { .. }));
        if !is_answered || self.is_known_result(id, result) {
            return;
        }
        // A resumed run may announce a call again without its arguments.
        let arguments = match open.arguments.text().is_empty() {
            true => known.arguments.clone(),
            false => KnownArguments::parse(open.arguments.text()),
        };
        if arguments.is_empty() {
            open.arguments = "{}".to_string().into();
        }
        self.record_second_call(id, &known.name.clone(), again);
        self.set_arguments(id, arguments, Some(open));
    }

    /// Returns true if the history already has this result. One that is repeated without its error is the same.
    fn is_known_result(&self, id: &Arc<str>, result: &wire::ToolResult) -> bool {
        let known_error = self.thread.calls.get(id).and_then(|call| call.error.as_deref());
        self.thread.history.result(&self.thread.id_in_history(id)) == Some(&message_content(&result.content))
            && (result.error().is_none() || result.error() == known_error)
    }

    /// Returns true if a result of a call only repeats the client's answer, as it is or wrapped.
    fn repeats_answer(&self, id: &Arc<str>, content: &Value) -> bool {
        let Some(answer) = self.thread.history.result(&self.thread.id_in_history(id)) else { return false };
        let name = self.thread.calls.get(id).map_or("", |call| &call.name);
        wraps_answer(&parse_content_output(content), &parse_content_output(answer), [id, name])
    }

    pub(super) fn record_result(&mut self, id: &Arc<str>, e: wire::ToolResult, origin: Origin) {
        if origin == Origin::Stream {
            self.add_result_to_reply(id);
        }
        let source = self.answering();
        let Some(call) = self.thread.calls.get_mut(id) else { return };
        call.result_source = Some(source);
        if origin == Origin::Stream {
            call.streamed_result = Some(result_hash(&e));
        }
        let tool_call_id = call.trace_id.clone();
        call.error = e.error().map(str::to_string);
        self.add_result(id, tool_call_id, e, origin);
    }

    /// Adds a result to the history and the trace.
    fn add_result(&mut self, id: &Arc<str>, tool_call_id: Arc<str>, e: wire::ToolResult, origin: Origin) {
        let error = e.error().map(str::to_string);
        if origin != Origin::Snapshot {
            let result = ResultMessage {
                id: e.message_id.unwrap_or_else(|| Arc::from(format!("result-{id}"))),
                call_id: self.thread.id_in_history(id),
                content: message_content(&e.content),
                error: error.clone(),
            };
            let slot = self.thread.history.insert_result(result);
            self.thread.history.set_subagent(slot, e.subagent_run_id.as_ref());
            if e.metadata.is_some() {
                merge_metadata(self.thread.history.message_mut(slot), e.metadata);
            }
        }
        let turn_id = self.turn_id();
        let reply = match error {
            Some(error) => ToolReply::failed(error, &wire::text(Some(&e.content))),
            None => ToolReply::Content(parse_content_output(&e.content)),
        };
        self.emit(reply.into_payload(turn_id, tool_call_id, origin));
    }

    /// Completes the arguments of all calls. Those of a call whose end was not sent are unknown if none of their text was.
    pub(super) fn close_calls(&mut self) {
        if self.open_calls.is_empty() {
            return;
        }
        for number in 0..self.calls_in_order.len() {
            let id = self.calls_in_order[number].clone();
            self.close_call(&id);
        }
        // Arguments may also have arrived for calls of an earlier run.
        let mut others: Vec<Arc<str>> = self.open_calls.keys().cloned().collect();
        others.sort();
        for id in others {
            self.close_call(&id);
        }
    }

    fn close_call(&mut self, id: &Arc<str>) {
        if let Some(open) = self.open_calls.get_mut(id) {
            open.is_cut = !open.is_complete && open.arguments.text().trim().is_empty();
        }
        self.tool_end(id);
    }

    /// Returns a result or arguments of a call whose tool is unknown.
    pub(super) fn orphan(&self) -> Option<(&'static str, &Arc<str>)> {
        let result = self.orphan_results.first().map(|result| &result.tool_call_id);
        if let Some(id) = result.or(self.unannounced_result.as_ref()) {
            return Some(("a result", id));
        }
        let unknown = self.open_calls.keys().filter(|id| self.thread.call_of_turn(id).is_none());
        unknown.min().map(|id| ("arguments", id))
    }

    /// Returns an awaited call that was never announced.
    pub(super) fn unknown_awaited(&self) -> Option<&Arc<str>> {
        self.awaited_calls
            .iter()
            .find(|id| !self.thread.calls.contains_key(&self.thread.known_id((*id).clone())))
    }

    /// Returns the calls of this run without a result; only the awaited ones, if the agent lists them.
    pub(super) fn unanswered(&self) -> Vec<UnansweredCall> {
        let awaited: HashSet<Arc<str>> =
            self.awaited_calls.iter().map(|id| self.thread.known_id(id.clone())).collect();
        let held_up: HashSet<&Arc<str>> =
            self.interrupts.iter().filter_map(|interrupt| interrupt.call.as_ref()).collect();
        // An agent may still await a call of an earlier run.
        let mut earlier: Vec<&Arc<str>> =
            awaited.iter().filter(|id| !self.calls_in_run.contains_key(id)).collect();
        earlier.sort();
        let calls = self.calls_in_order.iter().chain(earlier);
        let calls = calls.filter_map(|id| Some((id, self.thread.calls.get(id)?)));
        let open = calls.filter(|(id, call)| call.result_source.is_none() && !held_up.contains(id));
        let meant = open.filter(|(id, _)| awaited.is_empty() || awaited.contains(*id));
        meant
            .map(|(id, call)| UnansweredCall {
                id: id.clone(),
                trace_id: call.trace_id.clone(),
                name: call.name.clone(),
                arguments: match &call.arguments {
                    KnownArguments::Json(value) => value.clone(),
                    KnownArguments::Invalid(text) => Value::String(text.clone()),
                    KnownArguments::Cut => Value::String(CUT_ARGUMENTS.to_string()),
                    KnownArguments::Unknown => Value::Null,
                },
                is_awaited: !awaited.is_empty(),
            })
            .collect()
    }
}

impl OpenCall {
    fn known_arguments(&self) -> KnownArguments {
        if self.is_cut { KnownArguments::Cut } else { KnownArguments::parse(self.arguments.text()) }
    }
}

/// Returns true if a result is the answer, or an object with the answer and otherwise only members that say nothing
/// else: success, or the id or the tool of the call.
fn wraps_answer(result: &Value, answer: &Value, call: [&str; 2]) -> bool {
    let says_nothing = |member: &Value| match member {
        Value::Null | Value::Bool(true) => true,
        Value::String(text) => {
            matches!(text.as_str(), "" | "ok" | "success" | "completed") || call.contains(&text.as_str())
        }
        _ => false,
    };
    match result {
        result if result == answer => true,
        Value::String(_) => parse_content_output(result) == *answer,
        // A result that is a number is kept as its text.
        Value::Number(number) => *answer == number.to_string(),
        Value::Object(members) => {
            let (answers, others): (Vec<&Value>, Vec<&Value>) =
                members.values().partition(|member| wraps_answer(member, answer, call));
            !answers.is_empty() && others.into_iter().all(says_nothing)
        }
        _ => false,
    }
}

/// Returns the same number for equal results.
fn result_hash(result: &wire::ToolResult) -> u64 {
    let mut hasher = DefaultHasher::new();
    (message_content(&result.content), result.error()).hash(&mut hasher);
    hasher.finish()
}

/// Returns a result as message content: text or parts.
fn message_content(content: &Value) -> Value {
    match content {
        Value::String(_) => content.clone(),
        Value::Array(items) if is_content_parts(items) => content.clone(),
        other => Value::String(other.to_string()),
    }
}
