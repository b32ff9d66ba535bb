//! What is recorded of a turn's replies in several places is the same: model calls, messages, moves, hooks and issues.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Found, InvariantOptions};
use crate::{HookFailed, HookStarted, Issues, Payload, View, WorkOrigin};

/// What was seen of one turn.
#[derive(Default)]
struct TurnSeen {
    /// The call and attempt of the model that is open or was last.
    call: (u32, u32),
    /// Whether the last attempt failed and another one is to follow.
    again: Option<bool>,
    replies: u32,
    /// Whether the last reply calls tools, and what was said and done with it.
    calls_tools: bool,
    said: Vec<String>,
    reasoned: Vec<String>,
    moves: u32,
    /// The calls that were made or refused.
    called: u32,
    invoked: u32,
    /// Whether tools are offered.
    offers: bool,
    /// Whether a reply is awaited.
    model_open: bool,
    /// Whether the last reply was said in a message, and whether work has begun for it.
    is_said: bool,
    has_worked: bool,
    /// The calls that the turn waits for, that are asynchronous, that a person was asked about, and whose result was
    /// added to their move a moment ago.
    waits: BTreeSet<Arc<str>>,
    tracked: BTreeSet<Arc<str>>,
    asked: BTreeSet<Arc<str>>,
    added: BTreeSet<Arc<str>>,
    hooks: BTreeMap<&'static str, (u32, Option<bool>)>,
    issues: Issues,
}

pub(super) fn check(view: &View<'_>, _options: &InvariantOptions, found: &mut Found) {
    let mut turns: BTreeMap<Arc<str>, TurnSeen> = BTreeMap::new();
    let (mut messages, id) = (0, view.id().unwrap_or_default().to_string());
    for record in view.records() {
        if let Payload::UserMessage(_) | Payload::AssistantMessage(_) = &record.payload {
            messages += 1;
            let message = match &record.payload {
                Payload::UserMessage(p) => &p.message_id,
                Payload::AssistantMessage(p) => &p.message_id,
                _ => continue,
            };
            if !id.is_empty() && **message != *format!("{id}-m{messages}") {
                found.add(format!("message {message} is not the next one"), [record.sequence]);
            }
        }
        let Some(turn) = record.payload.turn_id() else { continue };
        let seen = turns.entry(turn.clone()).or_default();
        if let Err(problem) = seen.take(&record.payload) {
            found.add(format!("turn {turn}: {problem}"), [record.sequence]);
        }
    }
}

impl TurnSeen {
    fn take(&mut self, payload: &Payload) -> Result<(), String> {
        self.in_order(payload)?;
        match payload {
            Payload::LlmCallStarted(p) => {
                let expected = match self.again.take() {
                    Some(true) => (self.call.0, self.call.1 + 1),
                    _ => (self.call.0 + 1, 1),
                };
                if p.attempt == 1 {
                    self.settle()?;
                }
                self.call = (p.call_no, p.attempt);
                self.offers = p.tool_count > 0;
                same("the number of a model call", (p.call_no, p.attempt), expected)
            }
            Payload::LlmCallFailed(p) => {
                self.again = Some(p.will_retry);
                same("the number of a model call", (p.call_no, p.attempt), self.call)
            }
            Payload::LlmCallCompleted(p) => {
                self.replies += 1;
                self.calls_tools = p.has_tool_use;
                (self.moves, self.called, self.invoked) = (0, 0, 0);
                same("the number of a model call", p.call_no, self.call.0)
            }
            Payload::AssistantMessage(p) => {
                self.said.push(p.content.clone());
                match p.has_tool_use {
                    Some(true) if !self.calls_tools => Err("a message says that it calls tools".to_string()),
                    Some(false) if self.invoked > 0 => {
                        Err("a message says that it calls nothing".to_string())
                    }
                    _ => Ok(()),
                }
            }
            Payload::ToolInvoked(_) => {
                self.invoked += 1;
                match self.calls_tools {
                    true => Ok(()),
                    false => Err("a reply that calls nothing has called".to_string()),
                }
            }
            Payload::ToolFailed(_) => {
                self.issues.tool_failures += 1;
                Ok(())
            }
            Payload::MoveRecorded(p) => {
                self.moves += 1;
                self.called += u32::from(p.tool_call.is_some());
                self.reasoned.extend(p.reasoning.clone().filter(|text| !text.is_empty()));
                if *p.move_id != *format!("{}-v{}", p.turn_id, p.sequence) {
                    return Err(format!("move {} is not called by its number", p.move_id));
                }
                match p.iteration + 1 == self.replies {
                    true => Ok(()),
                    false => Err(format!("move {} is of a reply that is not there", p.move_id)),
                }
            }
            Payload::ContextAssemblyStarted(p) => self.begin("context assembly", p),
            Payload::ContextAssemblyFailed(p) => self.fail("context assembly", p),
            Payload::ContextAssemblyCompleted(_) => self.complete("context assembly"),
            Payload::MemoryExtractionStarted(p) => {
                self.settle()?;
                self.begin("memory extraction", p)
            }
            Payload::MemoryExtractionFailed(p) => {
                self.issues.memory_extraction_failed = p.retries_exhausted;
                self.fail("memory extraction", p)
            }
            Payload::MemoryExtractionCompleted(_) => self.complete("memory extraction"),
            Payload::TurnCompleted(p) => {
                if self.hooks.get("memory extraction").is_some_and(|(_, state)| *state == Some(false)) {
                    return Err("memory extraction was to be tried again".to_string());
                }
                let told = p.issues.clone().unwrap_or_default();
                same("failures of tools", told.tool_failures, self.issues.tool_failures)?;
                let (told, seen) = (told.memory_extraction_failed, self.issues.memory_extraction_failed);
                same("whether memory extraction failed", told, seen)
            }
            Payload::TurnFailed(p) if p.error.code.as_deref() == Some("CONTEXT_ASSEMBLY_FAILED") => {
                let last = self.hooks.get("context assembly").and_then(|(_, state)| *state);
                same("whether context assembly was given up", last, Some(true))
            }
            _ => Ok(()),
        }
    }

    /// Whether an event of a reply comes where it belongs.
    fn in_order(&mut self, payload: &Payload) -> Result<(), String> {
        let early = match payload {
            Payload::LlmCallStarted(_) => {
                self.model_open = true;
                !self.waits.is_empty() || !self.added.is_empty()
            }
            Payload::LlmCallFailed(_) => {
                self.model_open = false;
                false
            }
            Payload::LlmCallCompleted(_) => {
                (self.model_open, self.is_said, self.has_worked) = (false, false, false);
                false
            }
            Payload::ContextAssemblyStarted(_) | Payload::MemoryExtractionStarted(_) => {
                !self.waits.is_empty() || !self.added.is_empty()
            }
            Payload::AssistantMessage(_) => {
                let twice = std::mem::replace(&mut self.is_said, true);
                twice || self.model_open || self.has_worked
            }
            Payload::ToolInvoked(_) => self.model_open || self.is_said,
            Payload::InterruptRaised(p) => {
                self.asked.insert(p.interrupt_id.clone());
                self.is_said
            }
            Payload::TurnWaiting(p) => {
                self.waits.insert(p.operation_id.clone());
                self.is_said && !self.asked.contains(&p.operation_id)
            }
            Payload::TurnResumed(p) => !self.waits.remove(&p.operation_id),
            Payload::AsyncTracked(p) => {
                let again = !self.tracked.insert(p.operation_id.clone());
                again || (self.is_said && !self.asked.contains(&p.operation_id))
            }
            Payload::MoveResult(p) => !self.added.insert(p.tool_result.tool_call_id.clone()),
            Payload::AsyncCompleted(p) => !self.added.remove(&p.operation_id),
            Payload::MoveRecorded(p) => {
                let of_async = match (&p.tool_call, &p.tool_result) {
                    // Who declines what it was asked calls nothing.
                    (Some(call), None) if &*call.tool_id != "decline" => Some(&call.tool_call_id),
                    _ => None,
                };
                self.model_open
                    || of_async.is_some_and(|call| {
                        !self.tracked.contains(call) || (self.is_said && !self.asked.contains(call))
                    })
            }
            Payload::TaskStarted(p) if p.origin == WorkOrigin::Tool => {
                self.has_worked = true;
                false
            }
            Payload::WorkflowStarted(p) if p.origin == WorkOrigin::Tool => {
                self.has_worked = true;
                false
            }
            _ => false,
        };
        match early {
            true => Err(format!("{} is out of place", payload.type_name())),
            false => Ok(()),
        }
    }

    /// Before the next reply, everything that the last one said stands in a message and in a move.
    fn settle(&mut self) -> Result<(), String> {
        if self.replies == 0 {
            return Ok(());
        }
        if self.moves == 0 {
            return Err("a reply has no move".to_string());
        }
        if self.called == 0 && self.calls_tools && self.offers {
            return Err("a reply that calls tools has called none".to_string());
        }
        let (mut said, mut reasoned) = (self.said.clone(), self.reasoned.clone());
        said.sort();
        reasoned.sort();
        same("what was said, beside what moves say", said, reasoned)
    }

    fn begin(&mut self, hook: &'static str, start: &HookStarted) -> Result<(), String> {
        let (attempt, state) = self.hooks.get(hook).copied().unwrap_or((0, Some(true)));
        if state.is_none() {
            return Err(format!("{hook} goes on already"));
        }
        self.hooks.insert(hook, (start.attempt, None));
        // An attempt follows one that failed and was not the last.
        let expected = if state == Some(false) { attempt + 1 } else { 1 };
        same(&format!("the attempt at {hook}"), start.attempt, expected)
    }

    fn fail(&mut self, hook: &'static str, failed: &HookFailed) -> Result<(), String> {
        let attempt = self.hooks.get(hook).map_or(0, |(attempt, _)| *attempt);
        self.hooks.insert(hook, (attempt, Some(failed.retries_exhausted)));
        same(&format!("the attempt at {hook}"), failed.attempt, attempt)
    }

    fn complete(&mut self, hook: &'static str) -> Result<(), String> {
        self.hooks.insert(hook, (0, Some(true)));
        Ok(())
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), String> {
    match found == expected {
        true => Ok(()),
        false => Err(format!("{what}: {found:?}, not {expected:?}")),
    }
}
