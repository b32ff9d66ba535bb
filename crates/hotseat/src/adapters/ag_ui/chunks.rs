//! Chunk events, expanded into the start, content and end events that they stand for.
//!
//! A producer that streams chunks never says where a message or call ends; the next thing it does says so.
//! Work of sub-agents is interleaved, so each sub-agent (and the agent itself) has a lane of its own, with
//! at most one open message, call or piece of reasoning.

use std::sync::Arc;

use super::wire::{
    Ended, Event, ReasoningDelta, Span, TextChunk, TextDelta, TextStart, ToolArgs, ToolChunk, ToolEnd,
    ToolStart,
};

type Lane = Option<Arc<str>>;

/// How many lanes may have something open at once: each chunk looks through them.
const MOST_LANES: usize = 1000;

/// A lane with something open.
#[derive(Debug)]
struct OpenLane {
    lane: Lane,
    open: Open,
    /// Something else came in between. What is open may still go on, but only under its id.
    interrupted: bool,
}

/// What a lane has open.
#[derive(Debug, Clone, PartialEq)]
enum Open {
    Text { id: Arc<str>, role: Option<String> },
    Tool { id: Arc<str>, name: Arc<str> },
    Reasoning { id: Arc<str> },
}

/// Turns chunk events into the events they stand for and lets all others through.
#[derive(Debug, Default)]
pub struct Expander {
    lanes: Vec<OpenLane>,
}

impl Expander {
    /// Adds to `out` what `event` stands for.
    ///
    /// # Errors
    /// When a chunk cannot be attributed; the error is worded for people.
    pub fn expand(&mut self, event: Event, out: &mut Vec<Event>) -> Result<(), String> {
        match event {
            Event::TextChunk(chunk) => return self.text(chunk, out),
            Event::ToolChunk(chunk) => return self.tool(chunk, out),
            Event::ReasoningChunk(chunk) => return self.reasoning(chunk, out),
            _ if self.lanes.is_empty() => {}
            // These say nothing about whether a message goes on.
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
            // These belong to no open message, so one that goes on after them under its id is the same message.
            Event::ToolResult(_)
            | Event::Custom(_)
            | Event::StateSnapshot(_)
            | Event::StateDelta(_)
            | Event::StepStarted(_)
            | Event::StepFinished(_) => {
                let lane = lane_of(&event);
                let open = self.lanes.iter_mut().filter(|open| open.lane.as_ref() == lane);
                open.for_each(|open| open.interrupted = true);
            }
            ref other => {
                let lane = lane_of(other).cloned();
                self.close(&lane, out);
            }
        }
        out.push(event);
        Ok(())
    }

    /// Closes whatever is open: the stream has ended.
    pub fn close_all(&mut self, out: &mut Vec<Event>) {
        out.extend(self.lanes.drain(..).map(OpenLane::end));
    }

    fn text(&mut self, chunk: TextChunk, out: &mut Vec<Event>) -> Result<(), String> {
        let lane = self.lane("TEXT_MESSAGE_CHUNK", &chunk.subagent_run_id, |open| match open {
            Open::Text { id, .. } => chunk.message_id.as_ref().is_none_or(|wanted| wanted == id),
            _ => false,
        })?;
        let message_id = match (self.going_on(&lane, chunk.message_id.is_some()), chunk.message_id) {
            (Some(Open::Text { id, role }), wanted) if wanted.as_ref().is_none_or(|wanted| wanted == id) => {
                let first = role.as_deref().unwrap_or("assistant");
                if let Some(other) = chunk.role.filter(|other| other != first) {
                    return Err(format!(
                        "a TEXT_MESSAGE_CHUNK of message {id} has the role {other}, its first one {first}"
                    ));
                }
                id.clone()
            }
            (_, None) => return Err("the first TEXT_MESSAGE_CHUNK of a message has no messageId".to_string()),
            (_, Some(message_id)) => {
                self.close(&lane, out);
                self.open(&lane, Open::Text { id: message_id.clone(), role: chunk.role.clone() })?;
                out.push(Event::TextStart(TextStart {
                    message_id: message_id.clone(),
                    role: chunk.role,
                    name: chunk.name,
                    subagent_run_id: lane.clone(),
                    metadata: None,
                }));
                message_id
            }
        };
        let (delta, metadata) = (chunk.delta, chunk.metadata);
        out.push(Event::TextContent(TextDelta { message_id, delta, subagent_run_id: lane, metadata }));
        Ok(())
    }

    fn tool(&mut self, chunk: ToolChunk, out: &mut Vec<Event>) -> Result<(), String> {
        let lane = self.lane("TOOL_CALL_CHUNK", &chunk.subagent_run_id, |open| match open {
            Open::Tool { id, .. } => chunk.tool_call_id.as_ref().is_none_or(|wanted| wanted == id),
            _ => false,
        })?;
        let tool_call_id = match (self.going_on(&lane, chunk.tool_call_id.is_some()), chunk.tool_call_id) {
            (Some(Open::Tool { id, name }), wanted) if wanted.as_ref().is_none_or(|wanted| wanted == id) => {
                if let Some(other) = chunk.tool_call_name.filter(|other| other != name) {
                    return Err(format!(
                        "a TOOL_CALL_CHUNK of call {id} names the tool {other}, its first one {name}"
                    ));
                }
                id.clone()
            }
            (_, None) => return Err("the first TOOL_CALL_CHUNK of a call has no toolCallId".to_string()),
            (_, Some(tool_call_id)) => {
                let Some(tool_call_name) = chunk.tool_call_name else {
                    return Err(format!(
                        "the first TOOL_CALL_CHUNK of call {tool_call_id} has no toolCallName"
                    ));
                };
                self.close(&lane, out);
                self.open(&lane, Open::Tool { id: tool_call_id.clone(), name: tool_call_name.clone() })?;
                out.push(Event::ToolStart(ToolStart {
                    tool_call_id: tool_call_id.clone(),
                    tool_call_name,
                    parent_message_id: chunk.parent_message_id,
                    subagent_run_id: lane.clone(),
                    metadata: None,
                }));
                tool_call_id
            }
        };
        let (delta, metadata) = (chunk.delta, chunk.metadata);
        out.push(Event::ToolArgs(ToolArgs { tool_call_id, delta, subagent_run_id: lane, metadata }));
        Ok(())
    }

    fn reasoning(&mut self, chunk: TextChunk, out: &mut Vec<Event>) -> Result<(), String> {
        let lane = self.lane("REASONING_MESSAGE_CHUNK", &chunk.subagent_run_id, |open| match open {
            Open::Reasoning { id } => chunk.message_id.as_ref().is_none_or(|wanted| wanted == id),
            _ => false,
        })?;
        let message_id = match (self.going_on(&lane, chunk.message_id.is_some()), chunk.message_id) {
            (Some(Open::Reasoning { id }), wanted) if wanted.as_ref().is_none_or(|wanted| wanted == id) => {
                id.clone()
            }
            (_, None) => {
                return Err("the first REASONING_MESSAGE_CHUNK of a message has no messageId".to_string());
            }
            (_, Some(message_id)) => {
                self.close(&lane, out);
                self.open(&lane, Open::Reasoning { id: message_id.clone() })?;
                out.push(Event::ReasoningMessageStart(Span {
                    message_id: Some(message_id.clone()),
                    subagent_run_id: lane.clone(),
                    metadata: None,
                }));
                message_id
            }
        };
        if chunk.delta.is_empty() {
            // Producers before 1.0 end a piece of reasoning with an empty chunk.
            self.close(&lane, out);
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

    /// What a chunk of this lane may go on with. One without an id cannot go on with what was interrupted.
    fn going_on(&mut self, lane: &Lane, named: bool) -> Option<&Open> {
        let open = self.lanes.iter_mut().find(|open| open.lane == *lane)?;
        if open.interrupted && !named {
            return None;
        }
        open.interrupted = false;
        Some(&open.open)
    }

    /// The lane of a chunk: its tag, or the one lane that an untagged chunk can only mean.
    fn lane(&self, what: &str, tag: &Lane, goes_on: impl Fn(&Open) -> bool) -> Result<Lane, String> {
        if tag.is_some() || self.lanes.iter().any(|open| open.lane.is_none() && goes_on(&open.open)) {
            return Ok(tag.clone());
        }
        let mut candidates = self.lanes.iter().filter(|open| goes_on(&open.open));
        match (candidates.next(), candidates.next()) {
            (None, _) => Ok(None),
            (Some(open), None) => Ok(open.lane.clone()),
            (Some(_), Some(_)) => Err(format!("a {what} without subagentRunId fits several open messages")),
        }
    }

    fn open(&mut self, lane: &Lane, open: Open) -> Result<(), String> {
        if self.lanes.len() >= MOST_LANES {
            return Err(format!("more than {MOST_LANES} sub-agents have something open at once"));
        }
        self.lanes.push(OpenLane { lane: lane.clone(), open, interrupted: false });
        Ok(())
    }

    fn close(&mut self, lane: &Lane, out: &mut Vec<Event>) {
        if let Some(place) = self.lanes.iter().position(|open| open.lane == *lane) {
            out.push(self.lanes.remove(place).end());
        }
    }
}

impl OpenLane {
    /// The event that ends what is open.
    fn end(self) -> Event {
        let (subagent_run_id, metadata) = (self.lane, None);
        match self.open {
            Open::Text { id, .. } => Event::TextEnd(Ended { message_id: id, subagent_run_id, metadata }),
            Open::Tool { id, .. } => Event::ToolEnd(ToolEnd { tool_call_id: id, subagent_run_id, metadata }),
            Open::Reasoning { id } => {
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
        // Producers before 1.0 have no sub-agents; the rest never asks for its lane.
        _ => None,
    }
}
