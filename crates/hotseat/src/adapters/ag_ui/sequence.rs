//! The rules of the protocol about which event may follow which.
//!
//! A violation is worded for people. Whether it is an error or a note is the target's setting: real
//! producers break some of these rules while everything they did is plain to see.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::wire::Event;

/// The sub-agent that something belongs to; none for the agent itself.
type Owner = Option<Arc<str>>;

/// Where the stream stands.
#[derive(Debug, Default, PartialEq)]
enum Phase {
    #[default]
    Before,
    Running,
    Finished,
    Failed,
}

/// What has begun in the current run.
#[derive(Debug, Default)]
pub struct Rules {
    phase: Phase,
    run_id: Option<Arc<str>>,
    texts: Begun,
    calls: Begun,
    spans: Begun,
    thoughts: Begun,
    steps: HashSet<(String, Owner)>,
    subagents: HashSet<Arc<str>>,
    ended_subagents: HashSet<Arc<str>>,
}

/// Everything of one kind that has begun, whether it has ended or not. Ids are unique per kind only.
#[derive(Debug, Default)]
struct Begun(HashMap<Arc<str>, Entity>);

#[derive(Debug)]
struct Entity {
    owner: Owner,
    open: bool,
}

impl Rules {
    /// Takes note of an event (chunks already expanded) and says which rule it breaks.
    pub fn check(&mut self, event: &Event) -> Option<String> {
        match event {
            Event::RunStarted(e) => {
                let running = self.phase == Phase::Running;
                *self = Rules { phase: Phase::Running, run_id: e.run_id.clone(), ..Rules::default() };
                return running.then(|| "RUN_STARTED while a run is going on".to_string());
            }
            Event::RunError(_) => {
                let failed = self.phase == Phase::Failed;
                self.phase = Phase::Failed;
                return failed.then(|| "RUN_ERROR after RUN_ERROR".to_string());
            }
            // Nobody knows where an event of a later version may stand.
            Event::Unknown(_) => return None,
            _ => {}
        }
        let misplaced = match self.phase {
            Phase::Before => Some("an event before RUN_STARTED"),
            Phase::Finished => Some("an event after RUN_FINISHED"),
            Phase::Failed => Some("an event after RUN_ERROR"),
            Phase::Running => None,
        };
        let broken = self.follow(event);
        misplaced.map(str::to_string).or(broken)
    }

    fn follow(&mut self, event: &Event) -> Option<String> {
        match event {
            Event::TextStart(e) => {
                self.texts.open(&e.message_id, &e.subagent_run_id, "TEXT_MESSAGE_START", "message")
            }
            Event::TextContent(e) => {
                self.texts.go_on(&e.message_id, &e.subagent_run_id, "TEXT_MESSAGE_CONTENT", "message")
            }
            Event::TextEnd(e) => {
                self.texts.end(&e.message_id, &e.subagent_run_id, "TEXT_MESSAGE_END", "message")
            }
            Event::ToolStart(e) => {
                let opened =
                    self.calls.open(&e.tool_call_id, &e.subagent_run_id, "TOOL_CALL_START", "tool call");
                opened.or_else(|| {
                    let parent = self.texts.0.get(e.parent_message_id.as_ref()?)?;
                    parent.claimed_by(&e.subagent_run_id).then(|| {
                        format!(
                            "TOOL_CALL_START for tool call {} names a message of another agent",
                            e.tool_call_id
                        )
                    })
                })
            }
            Event::ToolArgs(e) => {
                self.calls.go_on(&e.tool_call_id, &e.subagent_run_id, "TOOL_CALL_ARGS", "tool call")
            }
            Event::ToolEnd(e) => {
                self.calls.end(&e.tool_call_id, &e.subagent_run_id, "TOOL_CALL_END", "tool call")
            }
            Event::ReasoningStart(e) => {
                self.spans.open(e.message_id.as_ref()?, &e.subagent_run_id, "REASONING_START", "reasoning")
            }
            Event::ReasoningEnd(e) => {
                self.spans.end(e.message_id.as_ref()?, &e.subagent_run_id, "REASONING_END", "reasoning")
            }
            Event::ReasoningMessageStart(e) => {
                let (id, what) = (e.message_id.as_ref()?, "reasoning message");
                self.thoughts.open(id, &e.subagent_run_id, "REASONING_MESSAGE_START", what)
            }
            Event::ReasoningContent(e) => {
                let (id, what) = (e.message_id.as_ref()?, "reasoning message");
                self.thoughts.go_on(id, &e.subagent_run_id, "REASONING_MESSAGE_CONTENT", what)
            }
            Event::ReasoningMessageEnd(e) => {
                let (id, what) = (e.message_id.as_ref()?, "reasoning message");
                self.thoughts.end(id, &e.subagent_run_id, "REASONING_MESSAGE_END", what)
            }
            Event::StepStarted(e) => {
                let new = self.steps.insert((e.step_name.clone(), e.subagent_run_id.clone()));
                (!new).then(|| format!("STEP_STARTED {} while that step is going on", e.step_name))
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
                    return Some(format!("SUBAGENT_STARTED for sub-agent {id}, which is open already"));
                }
                stranger
                    .map(|parent| format!("SUBAGENT_STARTED {id} names a parent that never began: {parent}"))
            }
            Event::SubagentFinished(e) => {
                self.subagent_ended(e.subagent_run_id.as_ref(), "SUBAGENT_FINISHED")
            }
            Event::SubagentError(e) => self.subagent_ended(e.subagent_run_id.as_ref(), "SUBAGENT_ERROR"),
            Event::RunFinished(e) => {
                self.phase = Phase::Finished;
                let open = self.still_open();
                if !open.is_empty() {
                    return Some(format!("RUN_FINISHED while open: {}", open.join(", ")));
                }
                match (&e.run_id, &self.run_id) {
                    (Some(ended), Some(begun)) if ended != begun => {
                        Some(format!("RUN_FINISHED says run {ended}, RUN_STARTED said {begun}"))
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

    /// What has begun and not ended, in words; sorted, so that two runs read alike.
    pub fn still_open(&self) -> Vec<String> {
        let kinds = [
            (&self.texts, "message"),
            (&self.calls, "tool call"),
            (&self.spans, "reasoning"),
            (&self.thoughts, "reasoning message"),
        ];
        let ids =
            kinds.iter().flat_map(|(begun, what)| begun.still_open().map(move |id| format!("{what} {id}")));
        let subagents = self.subagents.iter().map(|id| format!("sub-agent {id}"));
        let steps = self.steps.iter().map(|(name, _)| format!("step {name}"));
        let mut words: Vec<String> = ids.chain(subagents).chain(steps).collect();
        words.sort();
        words
    }
}

impl Begun {
    fn open(&mut self, id: &Arc<str>, owner: &Owner, event: &str, what: &str) -> Option<String> {
        let before = self.0.insert(id.clone(), Entity { owner: owner.clone(), open: true });
        let open = before.is_some_and(|entity| entity.open);
        open.then(|| format!("{event} for {what} {id}, which is open already"))
    }

    fn go_on(&mut self, id: &Arc<str>, owner: &Owner, event: &str, what: &str) -> Option<String> {
        match self.0.get(id) {
            Some(entity) if entity.open => entity.disagrees(owner, id, event, what),
            _ => Some(format!("{event} for {what} {id}, which is not open")),
        }
    }

    fn end(&mut self, id: &Arc<str>, owner: &Owner, event: &str, what: &str) -> Option<String> {
        match self.0.get_mut(id) {
            Some(entity) if entity.open => {
                entity.open = false;
                entity.disagrees(owner, id, event, what)
            }
            _ => Some(format!("{event} for {what} {id}, which is not open")),
        }
    }

    fn still_open(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.iter().filter(|(_, entity)| entity.open).map(|(id, _)| id)
    }
}

impl Entity {
    /// Whether another agent says that this is its own. Who says nothing claims nothing.
    fn claimed_by(&self, other: &Owner) -> bool {
        other.is_some() && *other != self.owner
    }

    fn disagrees(&self, owner: &Owner, id: &str, event: &str, what: &str) -> Option<String> {
        self.claimed_by(owner).then(|| format!("{event} for {what} {id}, which another agent began"))
    }
}
