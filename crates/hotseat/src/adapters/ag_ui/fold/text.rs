//! What the agent says and thinks.

use std::sync::Arc;

use hotseat_trace::{AssistantMessage, Offset, Origin, ReasoningMessage};
use serde_json::{Map, Value};

use super::super::wire;
use super::{Run, Sink, merge_metadata};
use crate::adapters::json_text::joined;

/// A message that is being streamed.
#[derive(Debug)]
pub(super) struct OpenText {
    role: String,
    /// What the message said before, when a producer opens it again.
    before: String,
    text: String,
    started: Offset,
    subagent: Option<Arc<str>>,
}

/// A piece of reasoning that is being streamed. Producers before 1.0 give it no id.
#[derive(Debug)]
pub(super) struct Thought {
    id: Option<Arc<str>>,
    text: String,
    subagent: Option<Arc<str>>,
}

impl Run<'_> {
    pub(super) fn text_start(&mut self, e: wire::TextStart, at: Offset) {
        let role = e.role.unwrap_or_else(|| "assistant".to_string());
        let message = self.thread.message(&e.message_id, &role);
        if let Some(name) = e.name {
            message.insert("name".to_string(), Value::String(name));
        }
        merge_metadata(message, e.metadata);
        let before = wire::text(message.get("content"));
        let open = OpenText { role, before, text: String::new(), started: at, subagent: e.subagent_run_id };
        self.texts.entry(e.message_id).or_insert(open);
    }

    pub(super) fn text_content(&mut self, e: wire::TextDelta, at: Offset) {
        if let Some(open) = self.texts.get_mut(&e.message_id) {
            open.text.push_str(&e.delta);
        } else {
            let (message_id, subagent_run_id) = (e.message_id.clone(), e.subagent_run_id);
            self.text_start(wire::TextStart { message_id, subagent_run_id, ..Default::default() }, at);
            if let Some(open) = self.texts.get_mut(&e.message_id) {
                open.text = e.delta;
            }
        }
        if e.metadata.is_some()
            && let Some(open) = self.texts.get(&e.message_id)
        {
            merge_metadata(self.thread.message(&e.message_id, &open.role), e.metadata);
        }
    }

    pub(super) fn text_end(&mut self, id: &Arc<str>, metadata: Option<Map<String, Value>>, out: Sink<'_>) {
        let Some(mut open) = self.texts.remove(id) else { return };
        open.text = joined(open.text);
        let message = self.thread.message(id, &open.role);
        merge_metadata(message, metadata);
        if open.text.is_empty() {
            return;
        }
        // Whoever opens a message again goes on with it, or says it again from its beginning.
        let content = match open.text.starts_with(&open.before) {
            true => open.text,
            false => open.before + &open.text,
        };
        match message.get("content") {
            // A snapshot has come in the meantime and knows the message already.
            Some(Value::String(known)) if known.starts_with(&content) => {}
            Some(Value::Array(_)) => {}
            _ => {
                message.insert("content".to_string(), Value::String(content.clone()));
            }
        }
        if open.role != "assistant" {
            return;
        }
        // A call that comes later may still be made by this message.
        let has_tool_use = message.contains_key("toolCalls").then_some(true);
        if !self.thread.turn.texts.add(id, &content) {
            return;
        }
        out(AssistantMessage {
            turn_id: self.turn_id(),
            message_id: id.clone(),
            content,
            has_tool_use,
            started_us: Some(open.started),
            origin: Origin::Stream,
            subagent: open.subagent,
        }
        .into());
    }

    pub(super) fn thought_start(&mut self, id: Option<Arc<str>>, subagent: Option<Arc<str>>) {
        self.open_thought(Thought { id, text: String::new(), subagent });
    }

    fn open_thought(&mut self, thought: Thought) {
        self.thought_places.entry(thought.id.clone()).or_default().push(self.thoughts.len());
        self.thoughts.push(Some(thought));
    }

    /// The piece of reasoning with this id that was begun last.
    fn open_place(&self, id: Option<&Arc<str>>) -> Option<usize> {
        self.thought_places.get(&id.cloned())?.last().copied()
    }

    pub(super) fn thought_content(&mut self, e: wire::ReasoningDelta) {
        let place = self.open_place(e.message_id.as_ref());
        match place.and_then(|place| self.thoughts[place].as_mut()) {
            Some(thought) => thought.text.push_str(&e.delta),
            None => {
                let (id, subagent) = (e.message_id, e.subagent_run_id);
                self.open_thought(Thought { id, text: e.delta, subagent });
            }
        }
    }

    pub(super) fn thought_end(&mut self, id: Option<&Arc<str>>, out: Sink<'_>) {
        let place = self.thought_places.get_mut(&id.cloned()).and_then(Vec::pop);
        if let Some(thought) = place.and_then(|place| self.thoughts[place].take()) {
            self.thought_is_whole(thought, out);
        }
    }

    fn thought_is_whole(&mut self, thought: Thought, out: Sink<'_>) {
        let Thought { id, text, subagent } = thought;
        let content = joined(text);
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

    /// A value that only the agent can read, to be sent back with what it belongs to.
    pub(super) fn encrypted_value(&mut self, e: wire::EncryptedValue) {
        let value = Value::String(e.encrypted_value);
        if e.subtype == "tool-call" {
            let id = self.thread.known_id(e.entity_id);
            if let Some(Value::Object(call)) = self.thread.call_entry(&id) {
                call.insert("encryptedValue".to_string(), value);
            }
            return;
        }
        let open = self.open_place(Some(&e.entity_id)).is_some();
        let known = if open { None } else { self.thread.any_message(&e.entity_id) };
        if let Some(message) = known {
            message.insert("encryptedValue".to_string(), value);
            return;
        }
        // Reasoning of which nothing but this may become known; servers ask for a content all the same.
        let message = self.thread.message(&e.entity_id, "reasoning");
        message.entry("content").or_insert_with(|| Value::String(String::new()));
        message.insert("encryptedValue".to_string(), value);
    }

    /// Everything that is being said or thought is complete.
    pub(super) fn close_texts(&mut self, out: Sink<'_>) {
        let mut open: Vec<(Offset, Arc<str>)> =
            self.texts.iter().map(|(id, text)| (text.started, id.clone())).collect();
        open.sort();
        for (_, id) in open {
            self.text_end(&id, None, out);
        }
        self.thought_places.clear();
        for thought in std::mem::take(&mut self.thoughts).into_iter().flatten() {
            self.thought_is_whole(thought, out);
        }
    }
}
