//! The rules of the protocol about which event may follow which.
//!
//! A violation is worded for people. Whether it is an error or a note is the target's setting: real
//! producers break some of these rules while everything they did is plain to see.

use std::collections::HashSet;
use std::sync::Arc;

use super::wire::Event;

/// Where the stream stands.
#[derive(Debug, Default, PartialEq)]
enum Phase {
    #[default]
    Before,
    Running,
    Finished,
    Failed,
}

/// What is open in the current run.
#[derive(Debug, Default)]
pub struct Rules {
    phase: Phase,
    texts: HashSet<Arc<str>>,
    calls: HashSet<Arc<str>>,
    spans: HashSet<Arc<str>>,
    thoughts: HashSet<Arc<str>>,
    steps: HashSet<(String, Option<Arc<str>>)>,
    subagents: HashSet<Arc<str>>,
    ended_subagents: HashSet<Arc<str>>,
}

impl Rules {
    /// Takes note of an event (chunks already expanded) and says which rule it breaks.
    pub fn check(&mut self, event: &Event) -> Option<String> {
        match event {
            Event::RunStarted(_) => {
                let running = self.phase == Phase::Running;
                *self = Rules { phase: Phase::Running, ..Rules::default() };
                return running.then(|| "RUN_STARTED while a run is going on".to_string());
            }
            Event::RunError(_) => {
                let failed = self.phase == Phase::Failed;
                self.phase = Phase::Failed;
                return failed.then(|| "RUN_ERROR after RUN_ERROR".to_string());
            }
            Event::Raw(_) | Event::Unknown(_) => return None,
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
            Event::TextStart(e) => opened(&mut self.texts, &e.message_id, "TEXT_MESSAGE_START", "message"),
            Event::TextContent(e) => needs(&self.texts, &e.message_id, "TEXT_MESSAGE_CONTENT", "message"),
            Event::TextEnd(e) => closed(&mut self.texts, &e.message_id, "TEXT_MESSAGE_END", "message"),
            Event::ToolStart(e) => opened(&mut self.calls, &e.tool_call_id, "TOOL_CALL_START", "tool call"),
            Event::ToolArgs(e) => needs(&self.calls, &e.tool_call_id, "TOOL_CALL_ARGS", "tool call"),
            Event::ToolEnd(e) => closed(&mut self.calls, &e.tool_call_id, "TOOL_CALL_END", "tool call"),
            Event::ReasoningStart(e) => {
                let id = e.message_id.as_ref()?;
                opened(&mut self.spans, id, "REASONING_START", "reasoning")
            }
            Event::ReasoningEnd(e) => closed(&mut self.spans, e.message_id.as_ref()?, "REASONING_END", "reasoning"),
            Event::ReasoningMessageStart(e) => {
                let id = e.message_id.as_ref()?;
                opened(&mut self.thoughts, id, "REASONING_MESSAGE_START", "reasoning message")
            }
            Event::ReasoningContent(e) => {
                let id = e.message_id.as_ref()?;
                needs(&self.thoughts, id, "REASONING_MESSAGE_CONTENT", "reasoning message")
            }
            Event::ReasoningMessageEnd(e) => {
                let id = e.message_id.as_ref()?;
                closed(&mut self.thoughts, id, "REASONING_MESSAGE_END", "reasoning message")
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
                let Some(id) = &e.subagent_run_id else { return Some("SUBAGENT_STARTED without subagentRunId".into()) };
                if self.ended_subagents.contains(id) {
                    return Some(format!("SUBAGENT_STARTED {id}, which has already ended in this run"));
                }
                opened(&mut self.subagents, id, "SUBAGENT_STARTED", "sub-agent")
            }
            Event::SubagentFinished(e) => self.subagent_ended(e.subagent_run_id.as_ref(), "SUBAGENT_FINISHED"),
            Event::SubagentError(e) => self.subagent_ended(e.subagent_run_id.as_ref(), "SUBAGENT_ERROR"),
            Event::RunFinished(_) => {
                self.phase = Phase::Finished;
                let open = self.still_open();
                (!open.is_empty()).then(|| format!("RUN_FINISHED while open: {}", open.join(", ")))
            }
            _ => None,
        }
    }

    fn subagent_ended(&mut self, id: Option<&Arc<str>>, what: &str) -> Option<String> {
        let Some(id) = id else { return Some(format!("{what} without subagentRunId")) };
        self.ended_subagents.insert(id.clone());
        closed(&mut self.subagents, id, what, "sub-agent")
    }

    /// What has begun and not ended, in words; sorted, so that two runs read alike.
    pub fn still_open(&self) -> Vec<String> {
        let kinds = [
            (&self.texts, "message"),
            (&self.calls, "tool call"),
            (&self.spans, "reasoning"),
            (&self.thoughts, "reasoning message"),
            (&self.subagents, "sub-agent"),
        ];
        let ids = kinds.iter().flat_map(|(open, what)| open.iter().map(move |id| format!("{what} {id}")));
        let mut words: Vec<String> = ids.chain(self.steps.iter().map(|(name, _)| format!("step {name}"))).collect();
        words.sort();
        words
    }
}

fn opened(open: &mut HashSet<Arc<str>>, id: &Arc<str>, event: &str, what: &str) -> Option<String> {
    let new = open.insert(id.clone());
    (!new).then(|| format!("{event} for {what} {id}, which is open already"))
}

fn needs(open: &HashSet<Arc<str>>, id: &Arc<str>, event: &str, what: &str) -> Option<String> {
    (!open.contains(id)).then(|| format!("{event} for {what} {id}, which is not open"))
}

fn closed(open: &mut HashSet<Arc<str>>, id: &Arc<str>, event: &str, what: &str) -> Option<String> {
    (!open.remove(id)).then(|| format!("{event} for {what} {id}, which is not open"))
}
