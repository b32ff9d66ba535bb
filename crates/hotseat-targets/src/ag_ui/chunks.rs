//! Expands chunk events into the start, content and end events that they represent.
//!
//! A producer of chunks does not mark the end of a message or call; its next event implies it. Sub-agents may
//! interleave, so each sub-agent (and the agent itself) has its own lane with at most one open message, call
//! or reasoning.

use std::sync::Arc;

use hotseat_trace::named;

use super::wire::{
    Ended, Event, ReasoningDelta, Span, TextChunk, TextDelta, TextStart, ToolArgs, ToolChunk, ToolEnd,
    ToolStart,
};

type Lane = Option<Arc<str>>;

/// Maximum number of lanes with an open item; each chunk searches them.
const MAX_OPEN_LANES: usize = 1000;

/// A lane with an open item.
#[derive(Debug)]
struct OpenLane {
    lane: Lane,
    open: OpenItem,
    /// True after an unrelated event. The open item then continues only if its id is given.
    is_interrupted: bool,
}

/// The open item of a lane.
#[derive(Debug)]
struct OpenItem {
    kind: ItemKind,
    id: Arc<str>,
    /// The role of a text, or the tool of a call, which no further chunk may change.
    label: Option<Arc<str>>,
    /// True for a call that has its result. A chunk with a name then starts another call.
    is_answered: bool,
}

named! {
    /// Kinds of open items, with the chunks that continue them.
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum ItemKind {
        Text = "TEXT_MESSAGE_CHUNK",
        Tool = "TOOL_CALL_CHUNK",
        Reasoning = "REASONING_MESSAGE_CHUNK",
    }
}

/// Expands chunk events and passes all others on.
#[derive(Debug, Default)]
pub struct ChunkExpander {
    lanes: Vec<OpenLane>,
}

/// A chunk that cannot be assigned to an item.
#[derive(Debug, thiserror::Error)]
pub enum ChunkError {
    #[error("a TEXT_MESSAGE_CHUNK of message {id} has the role {role}, its first one {first}")]
    OtherRole { id: Arc<str>, role: String, first: String },
    #[error("a TOOL_CALL_CHUNK of call {id} names the tool {name}, its first one {first}")]
    OtherTool { id: Arc<str>, name: Arc<str>, first: Arc<str> },
    #[error("the first {0} of a message has no messageId")]
    NoMessageId(&'static str),
    #[error("the first TOOL_CALL_CHUNK of a call has no toolCallId")]
    NoCallId,
    #[error("the first TOOL_CALL_CHUNK of call {0} has no toolCallName")]
    NoToolName(Arc<str>),
    #[error("a {0} without subagentRunId matches several open messages")]
    Ambiguous(&'static str),
    #[error("more than {MAX_OPEN_LANES} sub-agents have open items at once")]
    TooManyLanes,
}

impl ChunkExpander {
    /// Returns true if `event` represents only itself and no item is open.
    pub fn passes_on(&self, event: &Event) -> bool {
        let is_chunk = matches!(event, Event::TextChunk(_) | Event::ToolChunk(_) | Event::ReasoningChunk(_));
        self.lanes.is_empty() && !is_chunk
    }

    /// Appends the events that `event` represents to `out`. Fails if a chunk cannot be assigned to an item.
    pub fn expand(&mut self, event: Event, out: &mut Vec<Event>) -> Result<(), ChunkError> {
        match event {
            Event::TextChunk(chunk) => return self.expand_text(chunk, out),
            Event::ToolChunk(chunk) => return self.expand_tool(chunk, out),
            Event::ReasoningChunk(chunk) => return self.expand_reasoning(chunk, out),
            // These events do not end a message.
            Event::Raw(_)
            | Event::ActivitySnapshot(_)
            | Event::ActivityDelta(_)
            | Event::EncryptedValue(_)
            | Event::SubagentStarted(_)
            | Event::Unknown(_) => {}
            Event::RunStarted(_)
            | Event::RunFinished(_)
            | Event::RunError(_)
            | Event::MessagesSnapshot(_) => {
                self.close_all(out);
            }
            // These events belong to no open message, which may continue after them under its id.
            Event::ToolResult(_)
            | Event::Custom(_)
            | Event::StateSnapshot(_)
            | Event::StateDelta(_)
            | Event::StepStarted(_)
            | Event::StepFinished(_) => {
                let lane = event.subagent();
                let open = self.lanes.iter_mut().filter(|open| open.lane.as_ref() == lane);
                open.for_each(|open| open.is_interrupted = true);
                if let Event::ToolResult(result) = &event {
                    for OpenLane { open, .. } in &mut self.lanes {
                        open.is_answered |= open.kind == ItemKind::Tool && open.id == result.tool_call_id;
                    }
                }
            }
            ref other => {
                let lane = other.subagent().cloned();
                self.close_lane(&lane, out);
            }
        }
        out.push(event);
        Ok(())
    }

    /// Closes all open items at the end of the stream.
    pub fn close_all(&mut self, out: &mut Vec<Event>) {
        out.extend(self.lanes.drain(..).map(OpenLane::end_event));
    }

    fn expand_text(&mut self, chunk: TextChunk, out: &mut Vec<Event>) -> Result<(), ChunkError> {
        let kind = ItemKind::Text;
        let (lane, open) = self.find_item(kind, &chunk.subagent_run_id, chunk.message_id.as_ref())?;
        let message_id = match (open, chunk.message_id) {
            (Some(OpenItem { id, label, .. }), _) => {
                let first = label.as_deref().unwrap_or("assistant");
                if let Some(role) = chunk.role.filter(|other| other != first) {
                    return Err(ChunkError::OtherRole { id: id.clone(), role, first: first.to_string() });
                }
                id.clone()
            }
            (None, None) => return Err(ChunkError::NoMessageId(kind.name())),
            (None, Some(message_id)) => {
                let label = chunk.role.as_deref().map(Arc::from);
                self.open_item(
                    &lane,
                    OpenItem { kind, id: message_id.clone(), label, is_answered: false },
                    out,
                )?;
                out.push(Event::TextStart(TextStart {
                    message_id: message_id.clone(),
                    role: chunk.role,
                    name: chunk.name,
                    subagent_run_id: lane.clone(),
                    ..TextStart::default()
                }));
                message_id
            }
        };
        let (delta, metadata) = (chunk.delta, chunk.metadata);
        out.push(Event::TextContent(TextDelta { message_id, delta, subagent_run_id: lane, metadata }));
        Ok(())
    }

    fn expand_tool(&mut self, mut chunk: ToolChunk, out: &mut Vec<Event>) -> Result<(), ChunkError> {
        // Some servers send an empty name with the later chunks of a call.
        chunk.tool_call_name = chunk.tool_call_name.filter(|name| !name.is_empty());
        // An empty id is none. With a name, it starts a call without an id.
        let starts_call = chunk.tool_call_name.is_some();
        chunk.tool_call_id = chunk.tool_call_id.filter(|id| !id.is_empty() || starts_call);
        let kind = ItemKind::Tool;
        let (lane, open) = self.find_item(kind, &chunk.subagent_run_id, chunk.tool_call_id.as_ref())?;
        let is_unnamed = chunk.tool_call_id.as_deref() == Some("");
        let is_other = |open: &OpenItem| is_unnamed || (starts_call && open.is_answered);
        let open = open.filter(|open| !is_other(open));
        let tool_call_id = match (open, chunk.tool_call_id) {
            (Some(OpenItem { id, label, .. }), _) => {
                let renamed = chunk.tool_call_name.zip(label.clone()).filter(|(other, first)| other != first);
                if let Some((name, first)) = renamed {
                    return Err(ChunkError::OtherTool { id: id.clone(), name, first });
                }
                id.clone()
            }
            (None, None) => return Err(ChunkError::NoCallId),
            (None, Some(tool_call_id)) => {
                let Some(tool_call_name) = chunk.tool_call_name else {
                    return Err(ChunkError::NoToolName(tool_call_id));
                };
                let label = Some(tool_call_name.clone());
                self.open_item(
                    &lane,
                    OpenItem { kind, id: tool_call_id.clone(), label, is_answered: false },
                    out,
                )?;
                out.push(Event::ToolStart(ToolStart {
                    tool_call_id: tool_call_id.clone(),
                    tool_call_name,
                    parent_message_id: chunk.parent_message_id,
                    subagent_run_id: lane.clone(),
                    is_implied: true,
                    ..ToolStart::default()
                }));
                tool_call_id
            }
        };
        let (delta, metadata) = (chunk.delta, chunk.metadata);
        out.push(Event::ToolArgs(ToolArgs { tool_call_id, delta, subagent_run_id: lane, metadata }));
        Ok(())
    }

    fn expand_reasoning(&mut self, chunk: TextChunk, out: &mut Vec<Event>) -> Result<(), ChunkError> {
        let kind = ItemKind::Reasoning;
        let (lane, open) = self.find_item(kind, &chunk.subagent_run_id, chunk.message_id.as_ref())?;
        let message_id = match (open, chunk.message_id) {
            (Some(open), _) => open.id.clone(),
            (None, None) => return Err(ChunkError::NoMessageId(kind.name())),
            (None, Some(message_id)) => {
                self.open_item(
                    &lane,
                    OpenItem { kind, id: message_id.clone(), label: None, is_answered: false },
                    out,
                )?;
                out.push(Event::ReasoningMessageStart(Span {
                    message_id: Some(message_id.clone()),
                    subagent_run_id: lane.clone(),
                    metadata: None,
                }));
                message_id
            }
        };
        if chunk.delta.is_empty() {
            // Producers before 1.0 end reasoning with an empty chunk.
            self.close_lane(&lane, out);
            return Ok(());
        }
        let (message_id, delta, metadata) = (Some(message_id), chunk.delta, chunk.metadata);
        out.push(Event::ReasoningContent(ReasoningDelta {
            message_id,
            delta,
            subagent_run_id: lane,
            metadata,
        }));
        Ok(())
    }

    /// Returns the lane of a chunk, and the open item that it continues.
    fn find_item(
        &mut self,
        kind: ItemKind,
        tag: &Lane,
        id: Option<&Arc<str>>,
    ) -> Result<(Lane, Option<&OpenItem>), ChunkError> {
        let goes_on = |open: &OpenItem| open.kind == kind && id.is_none_or(|id| *id == open.id);
        let lane = self.find_lane(kind, tag, goes_on)?;
        let open = self.continued_item(&lane, id.is_some()).filter(|open| goes_on(open));
        Ok((lane, open))
    }

    /// Returns the open item that a chunk may continue. A chunk without an id cannot continue an interrupted
    /// item.
    fn continued_item(&mut self, lane: &Lane, named: bool) -> Option<&OpenItem> {
        let open = self.lanes.iter_mut().find(|open| open.lane == *lane)?;
        if open.is_interrupted && !named {
            return None;
        }
        open.is_interrupted = false;
        Some(&open.open)
    }

    /// Returns the lane of a chunk: its tag, or the only lane that an untagged chunk can belong to.
    fn find_lane(
        &self,
        kind: ItemKind,
        tag: &Lane,
        goes_on: impl Fn(&OpenItem) -> bool,
    ) -> Result<Lane, ChunkError> {
        if tag.is_some() || self.lanes.iter().any(|open| open.lane.is_none() && goes_on(&open.open)) {
            return Ok(tag.clone());
        }
        let mut candidates = self.lanes.iter().filter(|open| goes_on(&open.open));
        match (candidates.next(), candidates.next()) {
            (None, _) => Ok(None),
            (Some(open), None) => Ok(open.lane.clone()),
            (Some(_), Some(_)) => Err(ChunkError::Ambiguous(kind.name())),
        }
    }

    /// Closes the lane, and opens an item in it.
    fn open_item(&mut self, lane: &Lane, open: OpenItem, out: &mut Vec<Event>) -> Result<(), ChunkError> {
        self.close_lane(lane, out);
        if self.lanes.len() >= MAX_OPEN_LANES {
            return Err(ChunkError::TooManyLanes);
        }
        self.lanes.push(OpenLane { lane: lane.clone(), open, is_interrupted: false });
        Ok(())
    }

    fn close_lane(&mut self, lane: &Lane, out: &mut Vec<Event>) {
        if let Some(place) = self.lanes.iter().position(|open| open.lane == *lane) {
            out.push(self.lanes.remove(place).end_event());
        }
    }
}

impl OpenLane {
    /// Returns the event that ends the open item.
    fn end_event(self) -> Event {
        let (id, subagent_run_id, metadata) = (self.open.id, self.lane, None);
        match self.open.kind {
            ItemKind::Text => Event::TextEnd(Ended { message_id: id, subagent_run_id, metadata }),
            ItemKind::Tool => {
                Event::ToolEnd(ToolEnd { tool_call_id: id, subagent_run_id, metadata, is_implied: true })
            }
            ItemKind::Reasoning => {
                Event::ReasoningMessageEnd(Span { message_id: Some(id), subagent_run_id, metadata })
            }
        }
    }
}
