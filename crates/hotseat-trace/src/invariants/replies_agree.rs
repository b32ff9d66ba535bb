//! All events about the replies of a turn agree: model calls, messages, moves, hooks and issues.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::violation::{EventViolation, ViolationCollector, require};
use crate::{ConversationView, HookFailed, HookStarted, Payload, TurnIssues, WorkOrigin};

/// State of one turn while its events are checked.
#[derive(Default)]
struct TurnProgress {
    /// Number and attempt of the open or most recent model call.
    call: (u32, u32),
    /// True if the last attempt failed and a retry follows.
    will_retry: Option<bool>,
    replies: u32,
    /// True if the last reply calls tools.
    calls_tools: bool,
    message_texts: Vec<String>,
    move_texts: Vec<String>,
    moves: u32,
    /// Number of calls that were made or rejected.
    call_moves: u32,
    invocations: u32,
    /// True if tools are offered.
    offers_tools: bool,
    /// True if a model call is open.
    model_open: bool,
    /// True if the last reply was written as a message; `has_worked` is true once work has started for it.
    is_said: bool,
    has_worked: bool,
    /// Call ids: synchronous calls the turn waits for, asynchronous calls, calls awaiting approval, and calls
    /// whose result was just added to their move.
    waiting_calls: BTreeSet<Arc<str>>,
    async_calls: BTreeSet<Arc<str>>,
    approval_calls: BTreeSet<Arc<str>>,
    added_results: BTreeSet<Arc<str>>,
    hooks: BTreeMap<&'static str, (u32, Option<bool>)>,
    issues: TurnIssues,
}

pub(super) fn check(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    let mut turns: BTreeMap<Arc<str>, TurnProgress> = BTreeMap::new();
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
                found.add(format!("message {message} is not numbered consecutively"), [record.sequence]);
            }
        }
        let Some(turn) = record.payload.turn_id() else { continue };
        let seen = turns.entry(turn.clone()).or_default();
        if let Err(problem) = seen.apply(&record.payload) {
            found.add(format!("turn {turn}: {problem}"), [record.sequence]);
        }
    }
}

impl TurnProgress {
    fn apply(&mut self, payload: &Payload) -> Result<(), EventViolation> {
        self.check_position(payload)?;
        match payload {
            Payload::LlmCallStarted(p) => {
                let expected = match self.will_retry.take() {
                    Some(true) => (self.call.0, self.call.1 + 1),
                    _ => (self.call.0 + 1, 1),
                };
                if p.attempt == 1 {
                    self.check_reply_recorded()?;
                }
                self.call = (p.call_no, p.attempt);
                self.offers_tools = p.tool_count > 0;
                expect_equal("the number of a model call", (p.call_no, p.attempt), expected)
            }
            Payload::LlmCallFailed(p) => {
                self.will_retry = Some(p.will_retry);
                expect_equal("the number of a model call", (p.call_no, p.attempt), self.call)
            }
            Payload::LlmCallCompleted(p) => {
                self.replies += 1;
                self.calls_tools = p.has_tool_use;
                (self.moves, self.call_moves, self.invocations) = (0, 0, 0);
                expect_equal("the number of a model call", p.call_no, self.call.0)
            }
            Payload::AssistantMessage(p) => {
                self.message_texts.push(p.content.to_string());
                require(
                    p.has_tool_use != Some(true) || self.calls_tools,
                    || "a message claims tool calls that the reply does not have",
                )?;
                require(
                    p.has_tool_use != Some(false) || self.invocations == 0,
                    || "a message denies the tool calls of its reply",
                )
            }
            Payload::ToolInvoked(_) => {
                self.invocations += 1;
                require(self.calls_tools, || "a reply without tool calls made a call")
            }
            Payload::ToolFailed(_) => {
                self.issues.tool_failures += 1;
                Ok(())
            }
            Payload::MoveRecorded(p) => {
                self.moves += 1;
                self.call_moves += u32::from(p.tool_call.is_some());
                self.move_texts.extend(p.reasoning.clone().filter(|text| !text.is_empty()));
                require(*p.move_id == *format!("{}-v{}", p.turn_id, p.sequence), || {
                    format!("move {} does not have an id made from its number", p.move_id)
                })?;
                let is_of_reply = p.iteration + 1 == self.replies;
                require(is_of_reply, || format!("move {} belongs to an unknown reply", p.move_id))
            }
            Payload::ContextAssemblyStarted(p) => self.start_hook("context assembly", p),
            Payload::ContextAssemblyFailed(p) => self.fail_hook("context assembly", p),
            Payload::ContextAssemblyCompleted(_) => self.complete_hook("context assembly"),
            Payload::MemoryExtractionStarted(p) => {
                self.check_reply_recorded()?;
                self.start_hook("memory extraction", p)
            }
            Payload::MemoryExtractionFailed(p) => {
                self.issues.memory_extraction_failed = p.retries_exhausted;
                self.fail_hook("memory extraction", p)
            }
            Payload::MemoryExtractionCompleted(_) => self.complete_hook("memory extraction"),
            Payload::TurnCompleted(p) => {
                let last = self.hooks.get("memory extraction");
                require(
                    last.is_none_or(|(_, state)| *state != Some(false)),
                    || "the retry of memory extraction is missing",
                )?;
                let told = p.issues.clone().unwrap_or_default();
                expect_equal("number of tool failures", told.tool_failures, self.issues.tool_failures)?;
                let (told, seen) = (told.memory_extraction_failed, self.issues.memory_extraction_failed);
                expect_equal("failure of memory extraction", told, seen)
            }
            Payload::TurnFailed(p) if p.error.code.as_deref() == Some("CONTEXT_ASSEMBLY_FAILED") => {
                let last = self.hooks.get("context assembly").and_then(|(_, state)| *state);
                expect_equal("end of context assembly retries", last, Some(true))
            }
            _ => Ok(()),
        }
    }

    /// Checks that an event of a reply occurs in a valid position.
    fn check_position(&mut self, payload: &Payload) -> Result<(), EventViolation> {
        let early = match payload {
            Payload::LlmCallStarted(_) => {
                self.model_open = true;
                !self.waiting_calls.is_empty() || !self.added_results.is_empty()
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
                !self.waiting_calls.is_empty() || !self.added_results.is_empty()
            }
            Payload::AssistantMessage(_) => {
                let twice = std::mem::replace(&mut self.is_said, true);
                twice || self.model_open || self.has_worked
            }
            Payload::ToolInvoked(_) => self.model_open || self.is_said,
            Payload::InterruptRaised(p) => {
                self.approval_calls.insert(p.interrupt_id.clone());
                self.is_said
            }
            Payload::TurnWaiting(p) => {
                self.waiting_calls.insert(p.operation_id.clone());
                self.is_said && !self.approval_calls.contains(&p.operation_id)
            }
            Payload::TurnResumed(p) => !self.waiting_calls.remove(&p.operation_id),
            Payload::AsyncTracked(p) => {
                let again = !self.async_calls.insert(p.operation_id.clone());
                again || (self.is_said && !self.approval_calls.contains(&p.operation_id))
            }
            Payload::MoveResult(p) => !self.added_results.insert(p.tool_result.tool_call_id.clone()),
            Payload::AsyncCompleted(p) => !self.added_results.remove(&p.operation_id),
            Payload::MoveRecorded(p) => {
                let of_async = match (&p.tool_call, &p.tool_result) {
                    // A declined approval makes no call.
                    (Some(call), None) if &*call.tool_id != "decline" => Some(&call.tool_call_id),
                    _ => None,
                };
                self.model_open
                    || of_async.is_some_and(|call| {
                        !self.async_calls.contains(call)
                            || (self.is_said && !self.approval_calls.contains(call))
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
        require(!early, || format!("{} occurs at the wrong point", payload.type_name()))
    }

    /// Checks that the text of the last reply is recorded both in a message and in a move before the next
    /// reply.
    fn check_reply_recorded(&mut self) -> Result<(), EventViolation> {
        if self.replies == 0 {
            return Ok(());
        }
        require(self.moves > 0, || "a reply has no move")?;
        require(
            self.call_moves > 0 || !self.calls_tools || !self.offers_tools,
            || "a reply with tool calls made none",
        )?;
        let (mut said, mut reasoned) = (self.message_texts.clone(), self.move_texts.clone());
        said.sort();
        reasoned.sort();
        expect_equal("texts of messages and moves", said, reasoned)
    }

    fn start_hook(&mut self, hook: &'static str, start: &HookStarted) -> Result<(), EventViolation> {
        let (attempt, state) = self.hooks.get(hook).copied().unwrap_or((0, Some(true)));
        require(state.is_some(), || format!("{hook} is already running"))?;
        self.hooks.insert(hook, (start.attempt, None));
        // A retry follows a failed attempt that was not the last.
        let expected = if state == Some(false) { attempt + 1 } else { 1 };
        expect_equal(&format!("the attempt at {hook}"), start.attempt, expected)
    }

    fn fail_hook(&mut self, hook: &'static str, failed: &HookFailed) -> Result<(), EventViolation> {
        let attempt = self.hooks.get(hook).map_or(0, |(attempt, _)| *attempt);
        self.hooks.insert(hook, (attempt, Some(failed.retries_exhausted)));
        expect_equal(&format!("the attempt at {hook}"), failed.attempt, attempt)
    }

    fn complete_hook(&mut self, hook: &'static str) -> Result<(), EventViolation> {
        self.hooks.insert(hook, (0, Some(true)));
        Ok(())
    }
}

fn expect_equal<T: PartialEq + std::fmt::Debug>(
    what: &str,
    found: T,
    expected: T,
) -> Result<(), EventViolation> {
    require(found == expected, || format!("{what}: expected {expected:?}, got {found:?}"))
}
