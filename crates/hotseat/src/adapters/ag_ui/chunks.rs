//! Chunk events, expanded into the start, content and end events that they stand for.
//!
//! A producer that streams chunks never says where a message or call ends; the next thing it does says so.
//! Work of sub-agents is interleaved, so each sub-agent (and the agent itself) has a lane of its own, with
//! at most one open message, call or piece of reasoning.

use std::sync::Arc;

use super::wire::{
    Ended, Event, ReasoningDelta, Span, TextChunk, TextDelta, TextStart, ToolArgs, ToolChunk, ToolEnd, ToolStart,
};

type Lane = Option<Arc<str>>;

/// What a lane has open.
#[derive(Debug, Clone, PartialEq)]
enum Open {
    Text(Arc<str>),
    Tool { id: Arc<str>, name: Arc<str> },
    Reasoning(Arc<str>),
}

/// Turns chunk events into the events they stand for and lets all others through.
#[derive(Debug, Default)]
pub struct Expander {
    lanes: Vec<(Lane, Open)>,
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
            // These say nothing about whether a message goes on.
            Event::Raw(_)
            | Event::ActivitySnapshot(_)
            | Event::ActivityDelta(_)
            | Event::EncryptedValue(_)
            | Event::SubagentStarted(_)
            | Event::Unknown(_) => {}
            Event::RunStarted(_) | Event::RunFinished(_) | Event::RunError(_) | Event::MessagesSnapshot(_) => {
                self.close_all(out);
            }
            ref other => {
                if !self.lanes.is_empty() {
                    self.close(&lane_of(other), out);
                }
            }
        }
        out.push(event);
        Ok(())
    }

    /// Closes whatever is open: the stream has ended.
    pub fn close_all(&mut self, out: &mut Vec<Event>) {
        for (lane, open) in std::mem::take(&mut self.lanes) {
            out.push(end_of(open, lane));
        }
    }

    fn text(&mut self, chunk: TextChunk, out: &mut Vec<Event>) -> Result<(), String> {
        let lane = self.lane("TEXT_MESSAGE_CHUNK", &chunk.subagent_run_id, |open| match open {
            Open::Text(id) => chunk.message_id.as_ref().is_none_or(|wanted| wanted == id),
            _ => false,
        })?;
        let message_id = match (self.open(&lane), chunk.message_id) {
            (Some(Open::Text(id)), None) => id.clone(),
            (Some(Open::Text(id)), Some(wanted)) if *id == wanted => wanted,
            (_, None) => return Err("the first TEXT_MESSAGE_CHUNK of a message has no messageId".to_string()),
            (_, Some(message_id)) => {
                self.close(&lane, out);
                out.push(Event::TextStart(TextStart {
                    message_id: message_id.clone(),
                    role: chunk.role,
                    name: chunk.name,
                    subagent_run_id: lane.clone(),
                    metadata: chunk.metadata.clone(),
                }));
                self.lanes.push((lane.clone(), Open::Text(message_id.clone())));
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
        let tool_call_id = match (self.open(&lane), chunk.tool_call_id) {
            (Some(Open::Tool { id, name }), wanted) if wanted.as_ref().is_none_or(|wanted| wanted == id) => {
                if let Some(other) = chunk.tool_call_name.filter(|other| other != name) {
                    return Err(format!("a TOOL_CALL_CHUNK of call {id} names the tool {other}, its first one {name}"));
                }
                id.clone()
            }
            (_, Some(tool_call_id)) => {
                let Some(tool_call_name) = chunk.tool_call_name else {
                    return Err(format!("the first TOOL_CALL_CHUNK of call {tool_call_id} has no toolCallName"));
                };
                self.close(&lane, out);
                out.push(Event::ToolStart(ToolStart {
                    tool_call_id: tool_call_id.clone(),
                    tool_call_name: tool_call_name.clone(),
                    parent_message_id: chunk.parent_message_id,
                    subagent_run_id: lane.clone(),
                    metadata: chunk.metadata.clone(),
                }));
                self.lanes.push((lane.clone(), Open::Tool { id: tool_call_id.clone(), name: tool_call_name }));
                tool_call_id
            }
            (_, None) => return Err("the first TOOL_CALL_CHUNK of a call has no toolCallId".to_string()),
        };
        let (delta, metadata) = (chunk.delta, chunk.metadata);
        out.push(Event::ToolArgs(ToolArgs { tool_call_id, delta, subagent_run_id: lane, metadata }));
        Ok(())
    }

    fn reasoning(&mut self, chunk: TextChunk, out: &mut Vec<Event>) -> Result<(), String> {
        let lane = self.lane("REASONING_MESSAGE_CHUNK", &chunk.subagent_run_id, |open| match open {
            Open::Reasoning(id) => chunk.message_id.as_ref().is_none_or(|wanted| wanted == id),
            _ => false,
        })?;
        let message_id = match (self.open(&lane), chunk.message_id) {
            (Some(Open::Reasoning(id)), wanted) if wanted.as_ref().is_none_or(|wanted| wanted == id) => id.clone(),
            (_, Some(message_id)) => {
                self.close(&lane, out);
                let (subagent_run_id, metadata) = (lane.clone(), chunk.metadata.clone());
                let message = Some(message_id.clone());
                out.push(Event::ReasoningMessageStart(Span { message_id: message, subagent_run_id, metadata }));
                self.lanes.push((lane.clone(), Open::Reasoning(message_id.clone())));
                message_id
            }
            (_, None) => return Err("the first REASONING_MESSAGE_CHUNK of a message has no messageId".to_string()),
        };
        if chunk.delta.is_empty() {
            // Producers before 1.0 end a piece of reasoning with an empty chunk.
            self.close(&lane, out);
            return Ok(());
        }
        let (delta, metadata) = (chunk.delta, chunk.metadata);
        out.push(Event::ReasoningContent(ReasoningDelta {
            message_id: Some(message_id),
            delta,
            subagent_run_id: lane,
            metadata,
        }));
        Ok(())
    }

    fn open(&self, lane: &Lane) -> Option<&Open> {
        self.lanes.iter().find(|(other, _)| other == lane).map(|(_, open)| open)
    }

    /// The lane of a chunk: its tag, or the one lane that an untagged chunk can only mean.
    fn lane(&self, what: &str, tag: &Lane, goes_on: impl Fn(&Open) -> bool) -> Result<Lane, String> {
        if tag.is_some() || self.lanes.iter().any(|(lane, open)| lane.is_none() && goes_on(open)) {
            return Ok(tag.clone());
        }
        let mut candidates = self.lanes.iter().filter(|(_, open)| goes_on(open));
        match (candidates.next(), candidates.next()) {
            (None, _) => Ok(None),
            (Some((lane, _)), None) => Ok(lane.clone()),
            (Some(_), Some(_)) => Err(format!("a {what} without subagentRunId fits several open messages")),
        }
    }

    fn close(&mut self, lane: &Lane, out: &mut Vec<Event>) {
        if let Some(place) = self.lanes.iter().position(|(other, _)| other == lane) {
            let (lane, open) = self.lanes.remove(place);
            out.push(end_of(open, lane));
        }
    }
}

fn end_of(open: Open, subagent_run_id: Lane) -> Event {
    match open {
        Open::Text(message_id) => Event::TextEnd(Ended { message_id, subagent_run_id, metadata: None }),
        Open::Tool { id, .. } => Event::ToolEnd(ToolEnd { tool_call_id: id, subagent_run_id, metadata: None }),
        Open::Reasoning(id) => {
            Event::ReasoningMessageEnd(Span { message_id: Some(id), subagent_run_id, metadata: None })
        }
    }
}

fn lane_of(event: &Event) -> Lane {
    match event {
        Event::TextStart(e) => e.subagent_run_id.clone(),
        Event::TextContent(e) => e.subagent_run_id.clone(),
        Event::TextEnd(e) => e.subagent_run_id.clone(),
        Event::ToolStart(e) => e.subagent_run_id.clone(),
        Event::ToolArgs(e) => e.subagent_run_id.clone(),
        Event::ToolEnd(e) => e.subagent_run_id.clone(),
        Event::ToolResult(e) => e.subagent_run_id.clone(),
        Event::Custom(e) => e.subagent_run_id.clone(),
        Event::StateSnapshot(e) => e.subagent_run_id.clone(),
        Event::StateDelta(e) => e.subagent_run_id.clone(),
        Event::StepStarted(e) | Event::StepFinished(e) => e.subagent_run_id.clone(),
        Event::ReasoningStart(e)
        | Event::ReasoningEnd(e)
        | Event::ReasoningMessageStart(e)
        | Event::ReasoningMessageEnd(e) => e.subagent_run_id.clone(),
        Event::ReasoningContent(e) => e.subagent_run_id.clone(),
        Event::SubagentFinished(e) => e.subagent_run_id.clone(),
        Event::SubagentError(e) => e.subagent_run_id.clone(),
        // Producers before 1.0 have no sub-agents; the rest never asks for its lane.
        _ => None,
    }
}
