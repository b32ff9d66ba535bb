//! Text and reasoning of the agent.

use std::sync::Arc;

use hotseat_trace::{AssistantMessage, Origin, ReasoningMessage, TimeOffset};
use serde_json::Value;

use super::super::recorded_texts::MAX_CONTINUED_BYTES;
use super::super::wire::{self, MessageObject, merge_metadata, set_subagent};
use super::run::{OpenReasoning, OpenText, RunFold};
use crate::message::json_text::{append_piece, joined};

impl RunFold<'_> {
    pub(super) fn text_start(&mut self, e: wire::TextStart) {
        let role = e.role.unwrap_or_else(|| "assistant".to_string());
        // What follows is said in the new role.
        if self.open_texts.get(&e.message_id).is_some_and(|open| open.role != role) {
            self.text_end(&e.message_id, None);
        }
        let message = self.thread.message_mut(&e.message_id, &role);
        if let Some(name) = e.name {
            message.insert("name".to_string(), Value::String(name));
        }
        set_subagent(message, e.subagent_run_id.as_ref());
        if role != "assistant" {
            // Servers require the member, and the text may be empty.
            message.entry("content").or_insert_with(|| Value::String(String::new()));
        }
        merge_metadata(message, e.metadata);
        let before = wire::text(message.get("content"));
        if self.open_texts.contains_key(&e.message_id) {
            return;
        }
        if role == "assistant" {
            self.reply.begin_text();
            self.open_answers.insert(e.message_id.clone());
        }
        let open = OpenText {
            role,
            earlier_text: before,
            text: String::new(),
            started: self.start_time(),
            subagent: e.subagent_run_id,
        };
        self.open_texts.insert(e.message_id, open);
    }

    pub(super) fn text_content(&mut self, e: wire::TextDelta) {
        self.last_calls.clear();
        if let Some(open) = self.open_texts.get_mut(&e.message_id) {
            append_piece(&mut open.text, &e.delta);
        } else {
            let (message_id, subagent_run_id) = (e.message_id.clone(), e.subagent_run_id);
            self.text_start(wire::TextStart { message_id, subagent_run_id, ..Default::default() });
            if let Some(open) = self.open_texts.get_mut(&e.message_id) {
                open.text = e.delta;
            }
        }
        if e.metadata.is_some()
            && let Some(open) = self.open_texts.get(&e.message_id)
        {
            merge_metadata(self.thread.message_mut(&e.message_id, &open.role), e.metadata);
        }
    }

    pub(super) fn text_end(&mut self, id: &Arc<str>, metadata: wire::EventMetadata) {
        let Some(mut open) = self.open_texts.remove(id) else { return };
        self.open_answers.remove(id);
        open.text = joined(open.text);
        let message = self.thread.message_mut(id, &open.role);
        merge_metadata(message, metadata);
        if open.text.is_empty() {
            return;
        }
        // A message is also reopened by its id: clients append to the message with that id. Some servers repeat its text from
        // the beginning instead.
        let new_text: Arc<str> = open.text.into();
        let content: Arc<str> = match new_text.starts_with(&open.earlier_text) {
            true => new_text.clone(),
            false => (open.earlier_text.clone() + &new_text).into(),
        };
        match message.get("content") {
            // A snapshot received meanwhile already contains the message.
            Some(Value::String(known)) if known.starts_with(&*content) => {}
            Some(Value::Array(_)) => {}
            // No request follows, and the text may be very long.
            _ if self.is_abandoned => {}
            _ => {
                message.insert("content".to_string(), Value::String(content.to_string()));
            }
        }
        if open.role != "assistant" {
            return;
        }
        // A later call may still belong to this message.
        let has_tool_use = message.contains_key("toolCalls").then_some(true);
        let turn = &mut self.thread.turn;
        // The trace has the earlier text, unless a snapshot brought it.
        let is_continued = turn.continued_bytes < MAX_CONTINUED_BYTES
            && turn.recorded_texts.has_text_of(id, &open.earlier_text);
        if !turn.recorded_texts.add(id, &content, open.started) {
            return;
        }
        if is_continued {
            turn.continued_bytes = turn.continued_bytes.saturating_add(content.len());
        }
        self.emit(AssistantMessage {
            turn_id: self.turn_id(),
            message_id: id.clone(),
            content: if is_continued { new_text } else { content },
            has_tool_use,
            started_us: Some(open.started),
            origin: Origin::Stream,
            subagent: open.subagent,
        });
    }

    pub(super) fn reasoning_start(&mut self, e: wire::Span) {
        let wire::Span { message_id, subagent_run_id, metadata } = e;
        self.open_reasoning(
            OpenReasoning { id: message_id, text: String::new(), subagent: subagent_run_id },
            metadata,
        );
    }

    /// Opens a reasoning. Its message stands in the history where it began.
    fn open_reasoning(&mut self, thought: OpenReasoning, metadata: wire::EventMetadata) {
        if let Some(message) = self.reasoning_message(thought.id.as_ref()) {
            set_subagent(message, thought.subagent.as_ref());
            merge_metadata(message, metadata);
        }
        self.open_reasonings.entry(thought.id.clone()).or_default().push(self.reasonings.len());
        self.reasonings.push(Some(thought));
    }

    /// Returns the message of a reasoning in the history. Only producers with reasoning ids know messages of that role, and without
    /// a further request none is needed.
    fn reasoning_message(&mut self, id: Option<&Arc<str>>) -> Option<&mut MessageObject> {
        let id = id.filter(|_| !self.is_abandoned)?;
        let message = self.thread.message_mut(id, "reasoning");
        // Servers require the member.
        message.entry("content").or_insert_with(|| Value::String(String::new()));
        Some(message)
    }

    /// Returns the index of the last opened reasoning with this id.
    fn open_reasoning_index(&self, id: Option<&Arc<str>>) -> Option<usize> {
        self.open_reasonings.get(&id.cloned())?.last().copied()
    }

    pub(super) fn reasoning_content(&mut self, e: wire::ReasoningDelta) {
        let place = self.open_reasoning_index(e.message_id.as_ref());
        match place.and_then(|place| self.reasonings[place].as_mut()) {
            Some(thought) => {
                append_piece(&mut thought.text, &e.delta);
                self.add_reasoning_metadata(e.message_id.as_ref(), e.metadata);
            }
            None => {
                let (id, subagent) = (e.message_id, e.subagent_run_id);
                self.open_reasoning(OpenReasoning { id, text: e.delta, subagent }, e.metadata);
            }
        }
    }

    pub(super) fn reasoning_end(&mut self, e: wire::Span) {
        let place = self.open_reasonings.get_mut(&e.message_id).and_then(Vec::pop);
        if let Some(thought) = place.and_then(|place| self.reasonings[place].take()) {
            self.complete_reasoning(thought);
            self.add_reasoning_metadata(e.message_id.as_ref(), e.metadata);
        }
    }

    fn add_reasoning_metadata(&mut self, id: Option<&Arc<str>>, metadata: wire::EventMetadata) {
        if metadata.is_some()
            && let Some(message) = self.reasoning_message(id)
        {
            merge_metadata(message, metadata);
        }
    }

    fn complete_reasoning(&mut self, thought: OpenReasoning) {
        let OpenReasoning { id, text, subagent } = thought;
        let content: Arc<str> = joined(text).into();
        if content.is_empty() {
            return;
        }
        if let Some(message) = self.reasoning_message(id.as_ref()) {
            message.insert("content".to_string(), Value::String(content.to_string()));
            set_subagent(message, subagent.as_ref());
        }
        let message_id = id.unwrap_or_default();
        self.emit(ReasoningMessage { turn_id: self.turn_id(), message_id, content, subagent });
    }

    /// Stores an encrypted value, which is sent back with its message or call.
    pub(super) fn store_encrypted_value(&mut self, e: wire::EncryptedValue) {
        let value = Value::String(e.encrypted_value);
        if e.subtype == "tool-call" {
            let id = self.thread.known_id(e.entity_id);
            if let Some(Value::Object(call)) = self.thread.history.call_entry(&id) {
                call.insert("encryptedValue".to_string(), value);
            }
            return;
        }
        let open = self.open_reasoning_index(Some(&e.entity_id)).is_some();
        let known = if open { None } else { self.thread.last_message_mut(&e.entity_id) };
        if let Some(message) = known {
            message.insert("encryptedValue".to_string(), value);
            return;
        }
        // The reasoning may have no other content.
        if let Some(message) = self.reasoning_message(Some(&e.entity_id)) {
            set_subagent(message, e.subagent_run_id.as_ref());
            message.insert("encryptedValue".to_string(), value);
        }
    }

    /// Completes all open text and reasoning.
    pub(super) fn close_texts(&mut self) {
        let mut open: Vec<(TimeOffset, Arc<str>)> =
            self.open_texts.iter().map(|(id, text)| (text.started, id.clone())).collect();
        open.sort();
        for (_, id) in open {
            self.text_end(&id, None);
        }
        self.open_reasonings.clear();
        for thought in std::mem::take(&mut self.reasonings).into_iter().flatten() {
            self.complete_reasoning(thought);
        }
    }
}
