//! Protocol rules about the order of events.
//!
//! The target's strictness decides if a violation is an error or a note: real producers break some of these
//! rules although their meaning is clear.

use std::collections::HashSet;
use std::sync::Arc;

use hotseat_trace::named;

use super::id_map::IdMap;
use super::wire::Event;
use crate::message::shown_id;

/// The sub-agent of an entity; `None` for the agent itself.
type Owner = Option<Arc<str>>;

/// Phase of the stream.
#[derive(Debug, Default, PartialEq)]
enum RunPhase {
    #[default]
    Before,
    Running,
    Finished,
    Failed,
}

/// Entities of the current run, used to check the order of events.
#[derive(Debug, Default)]
pub struct SequenceRules {
    phase: RunPhase,
    run_id: Option<Arc<str>>,
    /// Started entities of each kind, open or ended.
    entities: [IdMap<StartedEntity>; EntityKind::ALL.len()],
    steps: HashSet<(String, Owner)>,
    subagents: HashSet<Arc<str>>,
    ended_subagents: HashSet<Arc<str>>,
}

named! {
    /// Kinds of entities that events start, continue and end. Ids are unique per kind only.
    #[derive(Debug, Clone, Copy)]
    enum EntityKind {
        Message = "message",
        ToolCall = "tool call",
        Reasoning = "reasoning",
        ReasoningMessage = "reasoning message",
    }
}

/// What an event does with an entity.
#[derive(PartialEq)]
enum EntityStep {
    Start,
    Continue,
    End,
    /// Adds to an entity, open or not.
    Complete,
}

#[derive(Debug)]
struct StartedEntity {
    owner: Owner,
    open: bool,
}

/// Returns the entity that an event is about, and what it does with it.
fn entity_step(event: &Event) -> Option<(EntityKind, &Arc<str>, EntityStep)> {
    use EntityKind::{Message, Reasoning, ReasoningMessage, ToolCall};
    Some(match event {
        Event::TextStart(e) => (Message, &e.message_id, EntityStep::Start),
        Event::TextContent(e) => (Message, &e.message_id, EntityStep::Continue),
        Event::TextEnd(e) => (Message, &e.message_id, EntityStep::End),
        Event::ToolStart(e) => (ToolCall, &e.tool_call_id, EntityStep::Start),
        Event::ToolArgs(e) => (ToolCall, &e.tool_call_id, EntityStep::Continue),
        Event::ToolEnd(e) => (ToolCall, &e.tool_call_id, EntityStep::End),
        Event::ReasoningStart(e) => (Reasoning, e.message_id.as_ref()?, EntityStep::Start),
        Event::ReasoningEnd(e) => (Reasoning, e.message_id.as_ref()?, EntityStep::End),
        Event::ReasoningMessageStart(e) => (ReasoningMessage, e.message_id.as_ref()?, EntityStep::Start),
        Event::ReasoningContent(e) => (ReasoningMessage, e.message_id.as_ref()?, EntityStep::Continue),
        Event::ReasoningMessageEnd(e) => (ReasoningMessage, e.message_id.as_ref()?, EntityStep::End),
        Event::ToolResult(e) => (ToolCall, &e.tool_call_id, EntityStep::Complete),
        Event::EncryptedValue(e) if e.subtype == "tool-call" => {
            (ToolCall, &e.entity_id, EntityStep::Complete)
        }
        Event::EncryptedValue(e) => (ReasoningMessage, &e.entity_id, EntityStep::Complete),
        _ => return None,
    })
}

impl SequenceRules {
    /// Processes an event (with expanded chunks) and returns the violated rule, if any.
    pub fn check(&mut self, event: &Event) -> Option<String> {
        match event {
            Event::RunStarted(e) => {
                let running = self.phase == RunPhase::Running;
                *self = SequenceRules {
                    phase: RunPhase::Running,
                    run_id: e.run_id.clone(),
                    ..SequenceRules::default()
                };
                return running.then(|| "RUN_STARTED while a run is active".to_string());
            }
            Event::RunError(_) => {
                let failed = self.phase == RunPhase::Failed;
                self.phase = RunPhase::Failed;
                return failed.then(|| "RUN_ERROR after RUN_ERROR".to_string());
            }
            // The order of unknown events is not checked.
            Event::Unknown(_) => return None,
            _ => {}
        }
        let misplaced = match self.phase {
            RunPhase::Before => Some("an event before RUN_STARTED"),
            RunPhase::Finished => Some("an event after RUN_FINISHED"),
            RunPhase::Failed => Some("an event after RUN_ERROR"),
            RunPhase::Running => None,
        };
        let broken = self.check_in_run(event);
        misplaced.map(str::to_string).or(broken)
    }

    fn check_in_run(&mut self, event: &Event) -> Option<String> {
        match event {
            Event::ToolStart(e) => self.check_entity(event).or_else(|| {
                let messages = &self.entities[EntityKind::Message as usize];
                let parent = messages.get(e.parent_message_id.as_ref()?)?;
                parent.is_claimed_by(e.subagent_run_id.as_ref()).then(|| {
                    let id = shown_id(&e.tool_call_id);
                    format!("TOOL_CALL_START for tool call {id} names a message of another agent")
                })
            }),
            Event::StepStarted(e) => {
                let new = self.steps.insert((e.step_name.clone(), e.subagent_run_id.clone()));
                (!new).then(|| format!("STEP_STARTED {} while that step is active", e.step_name))
            }
            Event::StepFinished(e) => {
                let known = self.steps.remove(&(e.step_name.clone(), e.subagent_run_id.clone()));
                (!known).then(|| format!("STEP_FINISHED {} without its STEP_STARTED", e.step_name))
            }
            Event::SubagentStarted(e) => {
                let Some(id) = &e.subagent_run_id else {
                    return Some("SUBAGENT_STARTED without subagentRunId".into());
                };
                if self.ended_subagents.contains(id) {
                    return Some(format!("SUBAGENT_STARTED {id}, which has already ended in this run"));
                }
                let parent = e.parent_subagent_run_id.as_ref();
                let stranger =
                    parent.filter(|id| !self.subagents.contains(*id) && !self.ended_subagents.contains(*id));
                if !self.subagents.insert(id.clone()) {
                    return Some(format!("SUBAGENT_STARTED for sub-agent {id}, which is already open"));
                }
                stranger.map(|parent| {
                    format!("SUBAGENT_STARTED {id} names a parent that never started: {parent}")
                })
            }
            Event::SubagentFinished(_) | Event::SubagentError(_) => self.end_subagent(event),
            Event::RunFinished(e) => {
                self.phase = RunPhase::Finished;
                let open = self.open_entities();
                if !open.is_empty() {
                    return Some(format!("RUN_FINISHED while open: {}", open.join(", ")));
                }
                match (&e.run_id, &self.run_id) {
                    (Some(ended), Some(begun)) if ended != begun => {
                        Some(format!("RUN_FINISHED has run {ended}, RUN_STARTED has {begun}"))
                    }
                    _ => None,
                }
            }
            _ => self.check_entity(event),
        }
    }

    /// Checks an event that starts, continues or ends an entity.
    fn check_entity(&mut self, event: &Event) -> Option<String> {
        let (kind, id, step) = entity_step(event)?;
        let (name, owner, shown) = (event.type_name(), event.subagent(), shown_id(id));
        let entities = &mut self.entities[kind as usize];
        if step == EntityStep::Start {
            let before = entities.insert(id.clone(), StartedEntity { owner: owner.cloned(), open: true });
            let is_open = before.is_some_and(|entity| entity.open);
            return is_open.then(|| format!("{name} for {kind} {shown}, which is already open"));
        }
        let known = entities.get_mut(id);
        if step == EntityStep::Complete {
            let is_of_other = known.is_some_and(|entity| entity.is_claimed_by(owner));
            return is_of_other.then(|| format!("{name} for {kind} {shown}, which another agent started"));
        }
        let Some(entity) = known.filter(|entity| entity.open) else {
            return Some(format!("{name} for {kind} {shown}, which is not open"));
        };
        entity.open = step != EntityStep::End;
        let is_of_other = entity.is_claimed_by(owner);
        is_of_other.then(|| format!("{name} for {kind} {shown}, which another agent started"))
    }

    fn end_subagent(&mut self, event: &Event) -> Option<String> {
        let name = event.type_name();
        let Some(id) = event.subagent() else { return Some(format!("{name} without subagentRunId")) };
        self.ended_subagents.insert(id.clone());
        (!self.subagents.remove(id)).then(|| format!("{name} for sub-agent {id}, which is not open"))
    }

    /// Describes the open entities, sorted for stable output.
    pub fn open_entities(&self) -> Vec<String> {
        let ids = EntityKind::ALL.iter().zip(&self.entities).flat_map(|(kind, entities)| {
            let open = entities.iter().filter(|(_, entity)| entity.open);
            open.map(move |(id, _)| format!("{kind} {}", shown_id(id)))
        });
        let subagents = self.subagents.iter().map(|id| format!("sub-agent {id}"));
        let steps = self.steps.iter().map(|(name, _)| format!("step {name}"));
        let mut words: Vec<String> = ids.chain(subagents).chain(steps).collect();
        words.sort();
        words
    }
}

impl StartedEntity {
    /// Returns true if another agent claims this entity. An event without an agent claims nothing.
    fn is_claimed_by(&self, other: Option<&Arc<str>>) -> bool {
        other.is_some() && other != self.owner.as_ref()
    }
}
