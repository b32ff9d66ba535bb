//! Tool calls: each counts once, however often it is announced.

use std::collections::HashSet;
use std::sync::Arc;

use hotseat_trace::{ErrorInfo, Offset, Origin, ToolArguments, ToolCompleted, ToolFailed, ToolInvoked};
use serde_json::{Map, Value};

use super::super::thread::{Answered, Arguments};
use super::super::wire;
use super::{Run, Sink, UnansweredCall, merge_metadata};
use crate::adapters::json_text::joined;
use crate::session::{is_parts, output_of_content};

/// A call whose arguments are being streamed, or that may prove to be made twice.
#[derive(Debug, Default)]
pub(super) struct OpenCall {
    /// Its arguments so far.
    text: String,
    /// Whether the arguments are complete. Only a call with `again` stays here then.
    whole: bool,
    /// It had its result already when it was announced again.
    again: Option<Again>,
}

/// Where and how a call that was not known was seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) origin: Origin,
    /// When, where that was before now.
    pub(super) started_us: Option<Offset>,
    pub(super) subagent: Option<Arc<str>>,
    /// The message that makes it.
    pub(super) message_id: Option<Arc<str>>,
}

/// What is needed to make a second call of an id that is announced again, should it prove to be one.
#[derive(Debug, Clone)]
struct Again {
    name: Arc<str>,
    subagent: Option<Arc<str>>,
}

impl Run<'_> {
    /// A call is announced. Within a turn an id means one call, also when a resumed run announces it again; in a
    /// later turn it is another call: some servers number their calls by position and start over.
    pub(super) fn tool_start(&mut self, e: wire::ToolStart, out: Sink<'_>) {
        let id = self.thread.known_id(e.tool_call_id);
        let known = self.thread.call_of_turn(&id);
        let other_tool = known.is_some_and(|call| call.name != e.tool_call_name);
        let mut open = self.calls.remove(&id).unwrap_or_default();
        match known {
            // Arguments that came before their call was announced are its own.
            None => {
                let (subagent, message_id) = (e.subagent_run_id, e.parent_message_id.clone());
                let seen = Seen { subagent, message_id, ..Seen::default() };
                self.new_call(&id, &e.tool_call_name, seen, out);
            }
            Some(_) if other_tool => {
                self.calls.insert(id.clone(), std::mem::take(&mut open));
                self.tool_end(&id, out);
                self.second_call(
                    &id,
                    Again { name: e.tool_call_name.clone(), subagent: e.subagent_run_id },
                    out,
                );
            }
            Some(call) => {
                let again = Again { name: e.tool_call_name.clone(), subagent: e.subagent_run_id };
                let again = call.answered.is_some().then_some(again);
                // A call that was still open goes on, unless its arguments are whole: then they come again.
                let goes_on = !open.whole && matches!(Arguments::parse(&open.text), Arguments::Broken(_));
                if !goes_on && !open.text.is_empty() {
                    self.calls.insert(id.clone(), std::mem::take(&mut open));
                    self.tool_end(&id, out);
                }
                let text = if goes_on { open.text } else { String::new() };
                open = OpenCall { text, whole: false, again };
            }
        }
        self.thread.put_call(&id, &e.tool_call_name, e.parent_message_id.as_deref());
        self.add_call_metadata(&id, e.metadata);
        self.is_of_run(&id);
        self.calls.insert(id, open);
    }

    /// Notes that a call began or went on in this run.
    pub(super) fn is_of_run(&mut self, id: &Arc<str>) {
        if self.in_run.insert(id.clone()) {
            self.run_calls.push(id.clone());
        }
    }

    pub(super) fn add_call_metadata(&mut self, id: &Arc<str>, metadata: Option<Map<String, Value>>) {
        if metadata.is_some()
            && let Some(Value::Object(entry)) = self.thread.call_entry(id)
        {
            merge_metadata(entry, metadata);
        }
    }

    /// A call that is not known: it joins the thread and the trace.
    pub(super) fn new_call(&mut self, id: &Arc<str>, name: &Arc<str>, seen: Seen, out: Sink<'_>) {
        let Seen { origin, started_us, subagent, message_id } = seen;
        let tool_call_id = self.thread.add_call(id, name);
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
            message_id,
        }
        .into());
    }

    pub(super) fn tool_arguments(&mut self, e: wire::ToolArgs) {
        let id = self.thread.known_id(e.tool_call_id);
        self.add_call_metadata(&id, e.metadata);
        if let Some(open) = self.calls.get_mut(&id) {
            open.text.push_str(&e.delta);
            open.whole = false;
            return;
        }
        // What comes after the end of its call still belongs to it. For a call that nobody has announced it waits.
        let before = match self.thread.call_of_turn(&id).map(|call| &call.arguments) {
            Some(Arguments::Broken(text)) => text.clone(),
            _ => String::new(),
        };
        self.calls.insert(id, OpenCall { text: before + &e.delta, ..OpenCall::default() });
    }

    /// The arguments of a call are complete.
    pub(super) fn tool_end(&mut self, id: &Arc<str>, out: Sink<'_>) {
        let Some(known) = self.thread.call_of_turn(id) else { return };
        let Some(mut open) = self.calls.remove(id) else { return };
        open.text = joined(open.text);
        let arguments = Arguments::parse(&open.text);
        // Announced again without its arguments: what is known stays.
        let silent = known.arguments != Arguments::Unknown && open.text.is_empty();
        let same = silent || known.arguments == arguments;
        match open.again.take() {
            // Announced again after its result and with other arguments: that is another call.
            Some(again) if !silent && known.arguments.contradict(&arguments) => {
                self.second_call(id, again, out);
                self.set_arguments(id, arguments, Some(open.text), out);
            }
            Some(again) => {
                if !same {
                    self.set_arguments(id, arguments, Some(open.text.clone()), out);
                }
                // It may still get a second result.
                self.calls.insert(id.clone(), OpenCall { whole: true, again: Some(again), ..open });
            }
            None if silent => {}
            None => self.set_arguments(id, arguments, Some(open.text), out),
        }
    }

    /// An id that was announced again proves to be a second call.
    fn second_call(&mut self, id: &Arc<str>, again: Again, out: Sink<'_>) {
        self.note(out, format!("tool call id {id} is used for two calls; both count"));
        self.new_call(id, &again.name, Seen { subagent: again.subagent, ..Seen::default() }, out);
        self.thread.put_second_call(id, &again.name);
    }

    /// Arguments as they are known now, and as the agent wrote them where the history has yet to learn of them.
    pub(super) fn set_arguments(
        &mut self,
        id: &Arc<str>,
        arguments: Arguments,
        written: Option<String>,
        out: Sink<'_>,
    ) {
        let Some(call) = self.thread.calls.get_mut(id) else { return };
        if call.arguments == arguments {
            return;
        }
        if matches!(arguments, Arguments::Broken(_))
            && !matches!(call.arguments, Arguments::Broken(_))
            && !call.arguments.is_empty()
        {
            self.note(out, format!("tool call {id} was announced again with arguments that are not JSON; the first ones count"));
            return;
        }
        call.arguments = arguments.clone();
        let tool_call_id = call.trace_id.clone();
        if let Some(text) = written.filter(|text| !text.is_empty()) {
            self.thread.put_arguments(id, text);
        }
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

    pub(super) fn tool_result(&mut self, mut e: wire::ToolResult, origin: Origin, out: Sink<'_>) {
        let id = self.thread.known_id(e.tool_call_id);
        e.tool_call_id = id.clone();
        if let Some(again) = self.calls.get(&id).and_then(|open| open.again.clone()) {
            self.result_of_reopened(&id, again, &e.content, out);
        }
        self.tool_end(&id, out);
        let Some(call) = self.thread.calls.get(&id) else {
            self.orphan_results.push(e);
            return;
        };
        let repeated = call.answered;
        if repeated.is_some() && self.is_result(&id, &e.content) {
            // Servers may tell again what is known.
            return;
        }
        if repeated.is_some() && call.turn != self.thread.turn.number {
            // The result of a call that has the id of an older one and was not announced.
            self.orphan_results.push(e);
            return;
        }
        if repeated == Some(Answered::ByClient) {
            self.note(
                out,
                format!(
                    "tool call {id} was answered by the client and got another result; the client's counts"
                ),
            );
            return;
        }
        if repeated.is_some() && origin == Origin::Stream {
            self.note(out, format!("tool call {id} got another result; the last one counts"));
        }
        self.take_result(&id, e, origin, out);
    }

    /// A result for a call that had one when it was announced again. Where that is evidence that the tool ran
    /// twice, there are two calls.
    fn result_of_reopened(&mut self, id: &Arc<str>, again: Again, content: &Value, out: Sink<'_>) {
        // With other arguments the end of the arguments makes the second call.
        self.tool_end(id, out);
        let Some(open) = self.calls.get_mut(id) else { return };
        open.again = None;
        let Some(known) = self.thread.call_of_turn(id) else { return };
        let ran_twice = match known.answered {
            None | Some(Answered::ByClient) => false,
            // A resumed run may tell again what an earlier one did; a run does not repeat itself.
            Some(Answered::ByAgent { request }) => {
                request == self.asked.request || !self.is_result(id, content)
            }
        };
        let arguments = known.arguments.clone();
        self.calls.remove(id);
        if ran_twice {
            self.second_call(id, again, out);
            self.set_arguments(id, arguments, None, out);
        }
    }

    /// Whether this is the result that the history holds already.
    fn is_result(&self, id: &Arc<str>, content: &Value) -> bool {
        self.thread.result(&self.thread.id_in_history(id)) == Some(&content_of_message(content))
    }

    fn take_result(&mut self, id: &Arc<str>, e: wire::ToolResult, origin: Origin, out: Sink<'_>) {
        let Some(call) = self.thread.calls.get_mut(id) else { return };
        call.answered = Some(Answered::ByAgent { request: self.asked.request });
        let tool_call_id = call.trace_id.clone();
        if origin != Origin::Snapshot {
            let message_id = e.message_id.unwrap_or_else(|| Arc::from(format!("result-{id}")));
            let in_history = self.thread.id_in_history(id);
            let content = content_of_message(&e.content);
            let message = self.thread.put_result(&message_id, &in_history, content, e.error.as_deref());
            merge_metadata(message, e.metadata);
        }
        let turn_id = self.turn_id();
        match e.error {
            Some(error) => {
                let said = wire::text(Some(&e.content));
                let message = if said.is_empty() { error } else { said };
                let error = ErrorInfo { code: None, message, retriable: None };
                out(ToolFailed { turn_id, tool_call_id, error, origin }.into());
            }
            None => {
                out(ToolCompleted { turn_id, tool_call_id, output: output_of_content(&e.content), origin }
                    .into())
            }
        }
    }

    /// The arguments of every call are complete.
    pub(super) fn close_calls(&mut self, out: Sink<'_>) {
        if self.calls.is_empty() {
            return;
        }
        for number in 0..self.run_calls.len() {
            let id = self.run_calls[number].clone();
            self.tool_end(&id, out);
        }
        // Arguments may also have come for calls of an earlier run.
        let mut others: Vec<Arc<str>> = self.calls.keys().cloned().collect();
        others.sort();
        for id in others {
            self.tool_end(&id, out);
        }
    }

    /// Something that belongs to a call of which nobody knows the tool.
    pub(super) fn orphan(&self) -> Option<(&'static str, &Arc<str>)> {
        if let Some(result) = self.orphan_results.first() {
            return Some(("a result", &result.tool_call_id));
        }
        let unknown = self.calls.keys().filter(|id| self.thread.call_of_turn(id).is_none());
        unknown.min().map(|id| ("arguments", id))
    }

    /// A call that the agent says it waits for and that nobody has announced.
    pub(super) fn unknown_awaited(&self) -> Option<&Arc<str>> {
        self.awaited.iter().find(|id| !self.thread.calls.contains_key(&self.thread.known_id((*id).clone())))
    }

    /// Calls of this run without a result. Where the agent says which ones it waits for, only those.
    pub(super) fn unanswered(&self) -> Vec<UnansweredCall> {
        let awaited: HashSet<Arc<str>> =
            self.awaited.iter().map(|id| self.thread.known_id(id.clone())).collect();
        let held_up: HashSet<&Arc<str>> =
            self.interrupts.iter().filter_map(|interrupt| interrupt.call.as_ref()).collect();
        // An agent may still wait for a call of an earlier run.
        let of_run: HashSet<&Arc<str>> = self.run_calls.iter().collect();
        let mut earlier: Vec<&Arc<str>> = awaited.iter().filter(|id| !of_run.contains(id)).collect();
        earlier.sort();
        let calls = self.run_calls.iter().chain(earlier);
        let calls = calls.filter_map(|id| Some((id, self.thread.calls.get(id)?)));
        let open = calls.filter(|(id, call)| call.answered.is_none() && !held_up.contains(id));
        let meant = open.filter(|(id, _)| awaited.is_empty() || awaited.contains(*id));
        meant
            .map(|(id, call)| UnansweredCall {
                id: id.clone(),
                trace_id: call.trace_id.clone(),
                name: call.name.clone(),
                arguments: match &call.arguments {
                    Arguments::Json(value) => value.clone(),
                    Arguments::Broken(text) => Value::String(text.clone()),
                    Arguments::Unknown => Value::Null,
                },
                awaited: !awaited.is_empty(),
            })
            .collect()
    }
}

/// A result as the content of a message: text, or parts.
fn content_of_message(content: &Value) -> Value {
    match content {
        Value::String(_) => content.clone(),
        Value::Array(items) if is_parts(items) => content.clone(),
        other => Value::String(other.to_string()),
    }
}
