//! From the pieces of a reply to the whole.

use serde_json::{Map, Value};

use crate::{Delta, Reply, StopReason, ToolCall};

/// Puts the pieces of a reply together, in the order in which they arrive.
///
/// Clients build their replies with it, so what a watcher saw and what the caller got cannot differ.
///
/// ```
/// use hotseat_model::{Assembly, Delta};
///
/// let mut assembly = Assembly::default();
/// assembly.add(&Delta::ToolCallStarted { index: 0, id: "call_1".into(), name: "search".into() });
/// assembly.add(&Delta::ToolCallArguments { index: 0, text: r#"{"query":"#.into() });
/// assembly.add(&Delta::ToolCallArguments { index: 0, text: r#""shoes"}"#.into() });
/// let reply = assembly.reply();
/// assert_eq!(reply.tool_calls[0].arguments["query"], "shoes");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Assembly {
    text: String,
    reasoning: String,
    calls: Vec<Call>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Call {
    id: String,
    name: String,
    arguments: String,
}

impl Assembly {
    /// Adds the next piece. Arguments of a call that never began are passed over.
    pub fn add(&mut self, delta: &Delta) {
        match delta {
            Delta::Text { text } => self.text.push_str(text),
            Delta::Reasoning { text } => self.reasoning.push_str(text),
            // The index of a call that begins is its place among the calls: they begin in order.
            Delta::ToolCallStarted { index: _, id, name } => {
                self.calls.push(Call { id: id.clone(), name: name.clone(), arguments: String::new() });
            }
            Delta::ToolCallArguments { index, text } => {
                if let Some(call) = self.calls.get_mut(*index) {
                    call.arguments.push_str(text);
                }
            }
            Delta::Restarted => *self = Assembly::default(),
        }
    }

    /// Whether nothing has arrived.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.reasoning.is_empty() && self.calls.is_empty()
    }

    /// How many tool calls have begun.
    pub fn calls_begun(&self) -> usize {
        self.calls.len()
    }

    /// What has arrived, as a reply that ends in order and of which no figures are known.
    pub fn reply(self) -> Reply {
        let tool_calls: Vec<ToolCall> = self.calls.into_iter().map(Call::whole).collect();
        let stop = if tool_calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse };
        Reply { text: self.text, reasoning: self.reasoning, tool_calls, stop, ..Reply::default() }
    }
}

impl Call {
    /// The call with its arguments as JSON: nothing is an empty object, and what is not JSON stays the text it is.
    fn whole(self) -> ToolCall {
        let arguments = if self.arguments.trim().is_empty() {
            Value::Object(Map::new())
        } else {
            serde_json::from_str(&self.arguments).unwrap_or(Value::String(self.arguments))
        };
        ToolCall { id: self.id, name: self.name, arguments }
    }
}
