//! The message that makes a call, if the agent does not report it: told by a snapshot, or by the order of the stream.

use std::sync::Arc;

use hotseat_trace::ToolArguments;

use super::super::reply_order::{CallingMessage, ReplyCall};
use super::super::wire::{self, MessageObject};
use super::run::RunFold;

impl RunFold<'_> {
    /// Adds a new call to the reply. If a text of the same agent is open, the call belongs to its message.
    pub(super) fn add_call_to_reply(&mut self, id: &Arc<str>, subagent: Option<&Arc<str>>) {
        let Some(call) = self.thread.calls.get(id) else { return };
        self.reply.begin_call(id);
        if call.message_id.is_some() {
            return;
        }
        let call = ReplyCall { id: id.clone(), trace_id: call.trace_id.clone() };
        let is_of_agent = |message: &&Arc<str>| {
            self.open_texts.get(message).is_some_and(|text| text.subagent.as_ref() == subagent)
        };
        let mut open = self.open_answers.iter();
        match (open.next().filter(is_of_agent), open.next()) {
            (Some(message), None) => {
                self.thread.turn.calling_messages.push(CallingMessage { call, message: message.clone() });
            }
            _ => self.reply.add_unknown(call),
        }
    }

    /// Ends the reply if this was the last missing result of its calls.
    pub(super) fn add_result_to_reply(&mut self, id: &str) {
        if self.reply.add_result(id) {
            let has_text = !self.open_answers.is_empty();
            self.thread.turn.calling_messages.extend(self.reply.end(has_text));
        }
    }

    /// Records the messages of calls that nothing but the order of the stream shows. Without a text, it shows nothing of interest.
    pub(super) fn tell_calling_messages(&mut self) {
        let turn = &mut self.thread.turn;
        turn.calling_messages.extend(self.reply.end(false));
        if turn.recorded_texts.is_empty() {
            return;
        }
        for CallingMessage { call, message } in std::mem::take(&mut turn.calling_messages) {
            if self.thread.calls.get(&call.id).is_some_and(|known| known.trace_id == call.trace_id) {
                self.tell_calling_message(&call.id, message);
            }
        }
    }

    /// Records the message of a call as a snapshot lists it. A snapshot with other ids tells it by the text of the message.
    pub(super) fn tell_message_of_snapshot(&mut self, id: &Arc<str>, message: &MessageObject) {
        let text = wire::text(message.get("content"));
        let known = self.thread.turn.recorded_texts.message_of(wire::id(message).unwrap_or(""), &text);
        if let Some(message) = known {
            self.tell_calling_message(id, message);
        }
    }

    fn tell_calling_message(&mut self, id: &Arc<str>, message: Arc<str>) {
        let Some(call) = self.thread.calls.get_mut(id) else { return };
        if call.message_id.is_some() {
            return;
        }
        call.message_id = Some(message.clone());
        let tool_call_id = call.trace_id.clone();
        self.emit(ToolArguments {
            turn_id: self.turn_id(),
            tool_call_id,
            input: None,
            text: None,
            ended_us: None,
            message_id: Some(message),
        });
    }
}
