//! Protocol rules about the order of events.
//!
//! The target's strictness decides if a violation is an error or a note: real producers break some of these
//! rules although their meaning is clear.

use std::collections::HashSet;
use std::sync::Arc;

use super::id_map::IdMap;
use super::wire::Event;

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
    texts: StartedEntities,
    calls: StartedEntities,
    spans: StartedEntities,
    thoughts: StartedEntities,
    steps: HashSet<(String, Owner)>,
    subagents: HashSet<Arc<str>>,
    ended_subagents: HashSet<Arc<str>>,
}

/// Started entities of one kind, open or ended. Ids are unique per kind only.
#[derive(Debug, Default)]
struct StartedEntities(IdMap<StartedEntity>);

#[derive(Debug)]
struct StartedEntity {
    owner: Owner,
    open: bool,
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
            Event::TextStart(e) => {
                self.texts.start(&e.message_id, &e.subagent_run_id, "TEXT_MESSAGE_START", "message")
            }
            Event::TextContent(e) => self.texts.continue_entity(
                &e.message_id,
                &e.subagent_run_id,
                "TEXT_MESSAGE_CONTENT",
                "message",
            ),
            Event::TextEnd(e) => {
                self.texts.end(&e.message_id, &e.subagent_run_id, "TEXT_MESSAGE_END", "message")
            }
            Event::ToolStart(e) => {
                let opened =
                    self.calls.start(&e.tool_call_id, &e.subagent_run_id, "TOOL_CALL_START", "tool call");
                opened.or_else(|| {
                    let parent = self.texts.0.get(e.parent_message_id.as_ref()?)?;
                    parent.is_claimed_by(&e.subagent_run_id).then(|| {
                        format!(
                            "TOOL_CALL_START for tool call {} names a message of another agent",
                            e.tool_call_id
                        )
                    })
                })
            }
            Event::ToolArgs(e) => {
                self.calls.continue_entity(&e.tool_call_id, &e.subagent_run_id, "TOOL_CALL_ARGS", "tool call")
            }
            Event::ToolEnd(e) => {
                self.calls.end(&e.tool_call_id, &e.subagent_run_id, "TOOL_CALL_END", "tool call")
            }
            Event::ReasoningStart(e) => {
                self.spans.start(e.message_id.as_ref()?, &e.subagent_run_id, "REASONING_START", "reasoning")
            }
            Event::ReasoningEnd(e) => {
                self.spans.end(e.message_id.as_ref()?, &e.subagent_run_id, "REASONING_END", "reasoning")
            }
            Event::ReasoningMessageStart(e) => {
                let (id, what) = (e.message_id.as_ref()?, "reasoning message");
                self.thoughts.start(id, &e.subagent_run_id, "REASONING_MESSAGE_START", what)
            }
            Event::ReasoningContent(e) => {
                let (id, what) = (e.message_id.as_ref()?, "reasoning message");
                self.thoughts.continue_entity(id, &e.subagent_run_id, "REASONING_MESSAGE_CONTENT", what)
            }
            Event::ReasoningMessageEnd(e) => {
                let (id, what) = (e.message_id.as_ref()?, "reasoning message");
                self.thoughts.end(id, &e.subagent_run_id, "REASONING_MESSAGE_END", what)
            }
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
            Event::SubagentFinished(e) => {
                self.subagent_ended(e.subagent_run_id.as_ref(), "SUBAGENT_FINISHED")
            }
            Event::SubagentError(e) => self.subagent_ended(e.subagent_run_id.as_ref(), "SUBAGENT_ERROR"),
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
            _ => None,
        }
    }

    fn subagent_ended(&mut self, id: Option<&Arc<str>>, what: &str) -> Option<String> {
        let Some(id) = id else { return Some(format!("{what} without subagentRunId")) };
        self.ended_subagents.insert(id.clone());
        (!self.subagents.remove(id)).then(|| format!("{what} for sub-agent {id}, which is not open"))
    }

    /// Describes the open entities, sorted for stable output.
    pub fn open_entities(&self) -> Vec<String> {
        let kinds = [
            (&self.texts, "message"),
            (&self.calls, "tool call"),
            (&self.spans, "reasoning"),
            (&self.thoughts, "reasoning message"),
        ];
        let ids =
            kinds.iter().flat_map(|(begun, what)| begun.open_ids().map(move |id| format!("{what} {id}")));
        let subagents = self.subagents.iter().map(|id| format!("sub-agent {id}"));
        let steps = self.steps.iter().map(|(name, _)| format!("step {name}"));
        let mut words: Vec<String> = ids.chain(subagents).chain(steps).collect();
        words.sort();
        words
    }
}

impl StartedEntities {
    fn start(&mut self, id: &Arc<str>, owner: &Owner, event: &str, what: &str) -> Option<String> {
        let before = self.0.insert(id.clone(), StartedEntity { owner: owner.clone(), open: true });
        let open = before.is_some_and(|entity| entity.open);
        open.then(|| format!("{event} for {what} {id}, which is already open"))
    }

    fn continue_entity(&mut self, id: &Arc<str>, owner: &Owner, event: &str, what: &str) -> Option<String> {
        match self.0.get(id) {
            Some(entity) if entity.open => entity.check_owner(owner, id, event, what),
            _ => Some(format!("{event} for {what} {id}, which is not open")),
        }
    }

    fn end(&mut self, id: &Arc<str>, owner: &Owner, event: &str, what: &str) -> Option<String> {
        match self.0.get_mut(id) {
            Some(entity) if entity.open => {
                entity.open = false;
                entity.check_owner(owner, id, event, what)
            }
            _ => Some(format!("{event} for {what} {id}, which is not open")),
        }
    }

    fn open_ids(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.iter().filter(|(_, entity)| entity.open).map(|(id, _)| id)
    }
}

impl StartedEntity {
    /// Returns true if another agent claims this entity. An event without an agent claims nothing.
    fn is_claimed_by(&self, other: &Owner) -> bool {
        other.is_some() && *other != self.owner
    }

    fn check_owner(&self, owner: &Owner, id: &str, event: &str, what: &str) -> Option<String> {
        self.is_claimed_by(owner).then(|| format!("{event} for {what} {id}, which another agent started"))
    }
}
