//! Assembles a reply from its pieces.

use crate::types::parse_arguments;
use crate::{ModelReply, ModelToolCall, ReplyDelta, ReplySink, StopReason};

/// Assembles the pieces of a reply in the order of arrival.
///
/// Clients build their replies with it, so watchers and callers cannot see different content.
///
/// ```
/// use hotseat_model::{ReplyAssembler, ReplyDelta};
///
/// let mut assembly = ReplyAssembler::default();
/// assembly.add(&ReplyDelta::ToolCallStarted { index: 0, id: "call_1".into(), name: "search".into() });
/// assembly.add(&ReplyDelta::ToolCallArguments { index: 0, text: r#"{"query":"#.into() });
/// assembly.add(&ReplyDelta::ToolCallArguments { index: 0, text: r#""shoes"}"#.into() });
/// let reply = assembly.into_reply();
/// assert_eq!(reply.tool_calls[0].arguments["query"], "shoes");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplyAssembler {
    text: String,
    reasoning: String,
    calls: Vec<PartialToolCall>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct PartialToolCall {
    id: String,
    name: String,
    arguments: String,
}

impl ReplyAssembler {
    /// Adds the next piece. Arguments of a call that has not started are ignored.
    pub fn add(&mut self, delta: &ReplyDelta) {
        match delta {
            ReplyDelta::Text { text } => self.text.push_str(text),
            ReplyDelta::Reasoning { text } => self.reasoning.push_str(text),
            // Calls start in order, so the index of a new call is the number of calls so far.
            ReplyDelta::ToolCallStarted { index: _, id, name } => {
                self.calls.push(PartialToolCall {
                    id: id.clone(),
                    name: name.clone(),
                    arguments: String::new(),
                });
            }
            ReplyDelta::ToolCallArguments { index, text } => {
                if let Some(call) = self.calls.get_mut(*index) {
                    call.arguments.push_str(text);
                }
            }
        }
    }

    /// Adds the next piece and passes it on.
    pub(crate) fn pass_on(&mut self, delta: ReplyDelta, sink: &mut dyn ReplySink) {
        self.add(&delta);
        sink.delta(delta);
    }

    /// Returns the text that has arrived.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the reasoning that has arrived.
    pub(crate) fn reasoning(&self) -> &str {
        &self.reasoning
    }

    /// Returns true if nothing has arrived.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.reasoning.is_empty() && self.calls.is_empty()
    }

    /// Returns the number of tool calls that have started.
    pub fn started_calls(&self) -> usize {
        self.calls.len()
    }

    /// Returns a reply with everything that has arrived, a default stop reason and no usage.
    pub fn into_reply(self) -> ModelReply {
        let tool_calls: Vec<ModelToolCall> =
            self.calls.into_iter().map(PartialToolCall::into_tool_call).collect();
        let stop = if tool_calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse };
        ModelReply { text: self.text, reasoning: self.reasoning, tool_calls, stop, ..ModelReply::default() }
    }
}

impl PartialToolCall {
    fn into_tool_call(self) -> ModelToolCall {
        ModelToolCall {
            id: self.id,
            name: self.name,
            arguments: parse_arguments(self.arguments),
            ..ModelToolCall::default()
        }
    }
}
