//! Expands chunk events into the start, content and end events that they represent.
//!
//! A producer of chunks does not mark the end of a message or call; its next event implies it. Sub-agents may
//! interleave, so each sub-agent (and the agent itself) has its own lane with at most one open message, call
//! or reasoning.

use std::sync::Arc;

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
#[derive(Debug, Clone, PartialEq)]
enum OpenItem {
    Text { id: Arc<str>, role: Option<String> },
    Tool { id: Arc<str>, name: Arc<str> },
    Reasoning { id: Arc<str> },
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
                let lane = lane_of(&event);
                let open = self.lanes.iter_mut().filter(|open| open.lane.as_ref() == lane);
                open.for_each(|open| open.is_interrupted = true);
            }
            ref other => {
                let lane = lane_of(other).cloned();
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
        let lane = self.find_lane("TEXT_MESSAGE_CHUNK", &chunk.subagent_run_id, |open| match open {
            OpenItem::Text { id, .. } => chunk.message_id.as_ref().is_none_or(|wanted| wanted == id),
            _ => false,
        })?;
        let message_id = match (self.continued_item(&lane, chunk.message_id.is_some()), chunk.message_id) {
            (Some(OpenItem::Text { id, role }), wanted)
                if wanted.as_ref().is_none_or(|wanted| wanted == id) =>
            {
                let first = role.as_deref().unwrap_or("assistant");
                if let Some(role) = chunk.role.filter(|other| other != first) {
                    return Err(ChunkError::OtherRole { id: id.clone(), role, first: first.to_string() });
                }
                id.clone()
            }
            (_, None) => return Err(ChunkError::NoMessageId("TEXT_MESSAGE_CHUNK")),
            (_, Some(message_id)) => {
                self.close_lane(&lane, out);
                self.open_item(&lane, OpenItem::Text { id: message_id.clone(), role: chunk.role.clone() })?;
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
        let lane = self.find_lane("TOOL_CALL_CHUNK", &chunk.subagent_run_id, |open| match open {
            OpenItem::Tool { id, .. } => chunk.tool_call_id.as_ref().is_none_or(|wanted| wanted == id),
            _ => false,
        })?;
        let tool_call_id =
            match (self.continued_item(&lane, chunk.tool_call_id.is_some()), chunk.tool_call_id) {
                (Some(OpenItem::Tool { id, name }), wanted)
                    if wanted.as_ref().is_none_or(|wanted| wanted == id && !wanted.is_empty()) =>
                {
                    if let Some(other) = chunk.tool_call_name.filter(|other| other != name) {
                        let (id, first) = (id.clone(), name.clone());
                        return Err(ChunkError::OtherTool { id, name: other, first });
                    }
                    id.clone()
                }
                (_, None) => return Err(ChunkError::NoCallId),
                (_, Some(tool_call_id)) => {
                    let Some(tool_call_name) = chunk.tool_call_name else {
                        return Err(ChunkError::NoToolName(tool_call_id));
                    };
                    self.close_lane(&lane, out);
                    self.open_item(
                        &lane,
                        OpenItem::Tool { id: tool_call_id.clone(), name: tool_call_name.clone() },
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
        let lane = self.find_lane("REASONING_MESSAGE_CHUNK", &chunk.subagent_run_id, |open| match open {
            OpenItem::Reasoning { id } => chunk.message_id.as_ref().is_none_or(|wanted| wanted == id),
            _ => false,
        })?;
        let message_id = match (self.continued_item(&lane, chunk.message_id.is_some()), chunk.message_id) {
            (Some(OpenItem::Reasoning { id }), wanted)
                if wanted.as_ref().is_none_or(|wanted| wanted == id) =>
            {
                id.clone()
            }
            (_, None) => return Err(ChunkError::NoMessageId("REASONING_MESSAGE_CHUNK")),
            (_, Some(message_id)) => {
                self.close_lane(&lane, out);
                self.open_item(&lane, OpenItem::Reasoning { id: message_id.clone() })?;
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
        let (delta, metadata) = (chunk.delta, chunk.metadata);
        let message_id = Some(message_id);
        out.push(Event::ReasoningContent(ReasoningDelta {
            message_id,
            delta,
            subagent_run_id: lane,
            metadata,
        }));
        Ok(())
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
        what: &'static str,
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
            (Some(_), Some(_)) => Err(ChunkError::Ambiguous(what)),
        }
    }

    fn open_item(&mut self, lane: &Lane, open: OpenItem) -> Result<(), ChunkError> {
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
        let (subagent_run_id, metadata) = (self.lane, None);
        match self.open {
            OpenItem::Text { id, .. } => Event::TextEnd(Ended { message_id: id, subagent_run_id, metadata }),
            OpenItem::Tool { id, .. } => {
                Event::ToolEnd(ToolEnd { tool_call_id: id, subagent_run_id, metadata, is_implied: true })
            }
            OpenItem::Reasoning { id } => {
                Event::ReasoningMessageEnd(Span { message_id: Some(id), subagent_run_id, metadata })
            }
        }
    }
}

fn lane_of(event: &Event) -> Option<&Arc<str>> {
    match event {
        Event::TextStart(e) => e.subagent_run_id.as_ref(),
        Event::TextContent(e) => e.subagent_run_id.as_ref(),
        Event::TextEnd(e) => e.subagent_run_id.as_ref(),
        Event::ToolStart(e) => e.subagent_run_id.as_ref(),
        Event::ToolArgs(e) => e.subagent_run_id.as_ref(),
        Event::ToolEnd(e) => e.subagent_run_id.as_ref(),
        Event::ToolResult(e) => e.subagent_run_id.as_ref(),
        Event::Custom(e) => e.subagent_run_id.as_ref(),
        Event::StateSnapshot(e) => e.subagent_run_id.as_ref(),
        Event::StateDelta(e) => e.subagent_run_id.as_ref(),
        Event::StepStarted(e) | Event::StepFinished(e) => e.subagent_run_id.as_ref(),
        Event::ReasoningStart(e)
        | Event::ReasoningEnd(e)
        | Event::ReasoningMessageStart(e)
        | Event::ReasoningMessageEnd(e) => e.subagent_run_id.as_ref(),
        Event::ReasoningContent(e) => e.subagent_run_id.as_ref(),
        Event::SubagentFinished(e) => e.subagent_run_id.as_ref(),
        Event::SubagentError(e) => e.subagent_run_id.as_ref(),
        // Producers before 1.0 have no sub-agents; other events need no lane.
        _ => None,
    }
}
