//! Reads Anthropic's messages, streamed and whole.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use crate::providers::call::{Reading, cut, not_understood};
use crate::providers::failure;
use crate::{Assembly, Delta, ModelError, Reply, Request, Sink, StopReason, Usage};

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Head,
    },
    ContentBlockStart {
        index: u64,
        content_block: Block,
    },
    ContentBlockDelta {
        index: u64,
        delta: BlockDelta,
    },
    ContentBlockStop {
        index: u64,
    },
    MessageDelta {
        delta: Tail,
        usage: Option<WireUsage>,
    },
    MessageStop,
    Error {
        error: Value,
    },
    /// Pings, and what is added to the protocol later.
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
struct Head {
    model: Option<String>,
    usage: Option<WireUsage>,
}

/// A whole message.
#[derive(Debug, Deserialize)]
struct Whole {
    model: Option<String>,
    usage: Option<WireUsage>,
    content: Option<Vec<Block>>,
    stop_reason: Option<String>,
    error: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        text: Option<String>,
    },
    Thinking {
        thinking: Option<String>,
    },
    ToolUse {
        id: Option<String>,
        name: String,
        input: Option<Value>,
    },
    /// Blocks that say nothing to a user and call no tool of ours.
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BlockDelta {
    TextDelta {
        text: String,
    },
    ThinkingDelta {
        thinking: String,
    },
    InputJsonDelta {
        partial_json: String,
    },
    /// Signatures and citations.
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
struct Tail {
    stop_reason: Option<String>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
struct WireUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
}

/// A tool call that is arriving.
struct Call {
    place: usize,
    /// The input that came with the beginning; used if no pieces follow.
    input: Option<Value>,
}

/// Reads one reply.
pub(in crate::providers) struct AnthropicReading<'r> {
    url: String,
    request: &'r Request,
    assembly: Assembly,
    /// The calls whose blocks are open, by the numbers of the blocks.
    calls: BTreeMap<u64, Call>,
    /// The numbers of blocks that are none of ours.
    passed_over: BTreeSet<u64>,
    stop: Option<String>,
    usage: Option<WireUsage>,
    model: Option<String>,
}

impl<'r> AnthropicReading<'r> {
    pub(in crate::providers) fn new(url: String, request: &'r Request) -> Self {
        AnthropicReading {
            url,
            request,
            assembly: Assembly::default(),
            calls: BTreeMap::new(),
            passed_over: BTreeSet::new(),
            stop: None,
            usage: None,
            model: None,
        }
    }

    fn head(&mut self, head: Head) {
        self.model = head.model.filter(|model| !model.is_empty());
        self.count(head.usage);
    }

    /// Takes in figures. Later ones are totals, not additions, and may leave out what has not changed.
    fn count(&mut self, usage: Option<WireUsage>) {
        let Some(new) = usage else { return };
        let old = self.usage.unwrap_or_default();
        self.usage = Some(WireUsage {
            input_tokens: new.input_tokens.or(old.input_tokens),
            output_tokens: new.output_tokens.or(old.output_tokens),
            cache_creation_input_tokens: new.cache_creation_input_tokens.or(old.cache_creation_input_tokens),
            cache_read_input_tokens: new.cache_read_input_tokens.or(old.cache_read_input_tokens),
        });
    }

    fn block(&mut self, index: u64, block: Block, sink: &mut dyn Sink) {
        match block {
            Block::Text { text } => self.text(text.unwrap_or_default(), sink),
            Block::Thinking { thinking } => self.thinking(thinking.unwrap_or_default(), sink),
            Block::ToolUse { id, name, input } => {
                let place = self.assembly.calls_begun();
                let id = id.filter(|id| !id.is_empty()).unwrap_or_else(|| self.request.call_id(place));
                self.add(Delta::ToolCallStarted { index: place, id, name }, sink);
                self.calls.insert(index, Call { place, input });
            }
            Block::Other => drop(self.passed_over.insert(index)),
        }
    }

    fn piece(
        &mut self,
        index: u64,
        delta: BlockDelta,
        data: &str,
        sink: &mut dyn Sink,
    ) -> Result<(), ModelError> {
        match delta {
            BlockDelta::TextDelta { text } => self.text(text, sink),
            BlockDelta::ThinkingDelta { thinking } => self.thinking(thinking, sink),
            BlockDelta::InputJsonDelta { partial_json } => {
                let Some(call) = self.calls.get_mut(&index) else {
                    // Tools that run at the provider stream their input as well.
                    if self.passed_over.contains(&index) {
                        return Ok(());
                    }
                    return Err(not_understood(&self.url, "a piece of a tool call belongs to none", data));
                };
                if !partial_json.is_empty() {
                    call.input = None;
                    let place = call.place;
                    self.add(Delta::ToolCallArguments { index: place, text: partial_json }, sink);
                }
            }
            BlockDelta::Other => {}
        }
        Ok(())
    }

    /// Ends a block: a call whose input came with its beginning has it now.
    fn end_block(&mut self, index: u64, sink: &mut dyn Sink) {
        let Some(Call { place, input: Some(input) }) = self.calls.remove(&index) else { return };
        let is_empty = match &input {
            Value::Object(members) => members.is_empty(),
            Value::Null => true,
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
        };
        if !is_empty {
            self.add(Delta::ToolCallArguments { index: place, text: input.to_string() }, sink);
        }
    }

    fn text(&mut self, text: String, sink: &mut dyn Sink) {
        if !text.is_empty() {
            self.add(Delta::Text { text }, sink);
        }
    }

    fn thinking(&mut self, text: String, sink: &mut dyn Sink) {
        if !text.is_empty() {
            self.add(Delta::Reasoning { text }, sink);
        }
    }

    fn add(&mut self, delta: Delta, sink: &mut dyn Sink) {
        self.assembly.add(&delta);
        sink.delta(delta);
    }
}

impl Reading for AnthropicReading<'_> {
    fn event(&mut self, data: &str, sink: &mut dyn Sink) -> Result<bool, ModelError> {
        let event: Event = serde_json::from_str(data)
            .map_err(|error| not_understood(&self.url, &error.to_string(), data))?;
        match event {
            Event::MessageStart { message } => self.head(message),
            Event::ContentBlockStart { index, content_block } => self.block(index, content_block, sink),
            Event::ContentBlockDelta { index, delta } => self.piece(index, delta, data, sink)?,
            Event::ContentBlockStop { index } => self.end_block(index, sink),
            Event::MessageDelta { delta, usage } => {
                self.stop = delta.stop_reason.or(self.stop.take());
                // Some gateways leave out the ends of blocks.
                while let Some((&index, _)) = self.calls.first_key_value() {
                    self.end_block(index, sink);
                }
                self.count(usage);
            }
            Event::MessageStop => return Ok(true),
            Event::Error { error } => return Err(failure::of_event(&self.url, &error)),
            Event::Other => {}
        }
        Ok(false)
    }

    fn whole(&mut self, body: &str, sink: &mut dyn Sink) -> Result<(), ModelError> {
        let whole: Whole = serde_json::from_str(body)
            .map_err(|error| not_understood(&self.url, &error.to_string(), body))?;
        if let Some(error) = whole.error {
            return Err(failure::of_event(&self.url, &error));
        }
        self.head(Head { model: whole.model, usage: whole.usage });
        for (index, block) in (0..).zip(whole.content.unwrap_or_default()) {
            self.block(index, block, sink);
            self.end_block(index, sink);
        }
        self.stop = whole.stop_reason;
        Ok(())
    }

    fn has_ended(&self) -> bool {
        self.stop.is_some()
    }

    fn assembly(&self) -> &Assembly {
        &self.assembly
    }

    fn reply(&mut self) -> Result<(Reply, Option<Usage>), ModelError> {
        let Some(stop) = self.stop.take() else { return Err(cut(&self.url)) };
        let mut reply = self.assembly.clone().reply();
        reply.stop = match stop.as_str() {
            "end_turn" | "tool_use" => reply.stop,
            // The reply is cut there as well.
            "model_context_window_exceeded" => StopReason::MaxTokens,
            _ => StopReason::from(stop),
        };
        reply.model = self.model.clone();
        Ok((reply, self.usage.map(WireUsage::counted)))
    }
}

impl WireUsage {
    /// The figures. The protocol counts what is read from and written to a cache beside the rest of the input.
    fn counted(self) -> Usage {
        let cached = self.cache_read_input_tokens.unwrap_or(0);
        let written = self.cache_creation_input_tokens.unwrap_or(0);
        Usage {
            input_tokens: self.input_tokens.unwrap_or(0).saturating_add(cached).saturating_add(written),
            output_tokens: self.output_tokens.unwrap_or(0),
            cached_tokens: cached,
            estimated: false,
        }
    }
}
