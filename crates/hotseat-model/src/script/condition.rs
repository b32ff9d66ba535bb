//! Conditions of rules on a request.

use std::collections::BTreeMap;

use hotseat_document::shorten;

use super::diagnostics::ScriptDiagnostics;
use super::pattern::RulePattern;
use super::rule::RuleConditions;
use crate::{ModelMessage, ModelRequest, ModelToolResult};

/// A condition on a request.
#[derive(Debug)]
pub(super) enum RuleCondition {
    Conversation(String),
    Agent(String),
    Turn(u32),
    Call(u32),
    Attempt(u32),
    System(RulePattern),
    /// Pattern for the last user message.
    User(RulePattern),
    /// The user sent a message since the last reply.
    UserIsNew,
    /// Pattern for a notice since the last reply.
    Notice(RulePattern),
    /// Tool result since the last reply.
    ToolResult {
        tool: Option<String>,
        matches: Option<RulePattern>,
        failed: Option<bool>,
    },
    Offered(String),
}

/// Values found by the conditions of a rule, for its templates.
#[derive(Debug, Default)]
pub(super) struct ConditionMatches<'r> {
    /// Captures of named groups.
    pub(super) captures: BTreeMap<String, String>,
    pub(super) result: Option<&'r ModelToolResult>,
    pub(super) notice: Option<&'r str>,
}

pub(super) fn compile_conditions(
    written: &RuleConditions,
    mistakes: &mut ScriptDiagnostics,
) -> Vec<RuleCondition> {
    let mut conditions = Vec::new();
    // Cheap conditions first.
    conditions.extend(written.conversation.clone().map(RuleCondition::Conversation));
    conditions.extend(written.agent.clone().map(RuleCondition::Agent));
    conditions.extend(written.turn.map(RuleCondition::Turn));
    conditions.extend(written.call.map(RuleCondition::Call));
    conditions.extend(written.attempt.map(RuleCondition::Attempt));
    conditions.extend(written.offered.iter().cloned().map(RuleCondition::Offered));
    let says_where = written.call.is_some() || written.tool_result.is_some() || written.notice.is_some();
    if written.user.is_some() && !says_where {
        conditions.push(RuleCondition::UserIsNew);
    }
    if let Some(written) = &written.system {
        conditions.extend(RulePattern::parse(written, "system", mistakes).map(RuleCondition::System));
    }
    if let Some(written) = &written.user {
        conditions.extend(RulePattern::parse(written, "user", mistakes).map(RuleCondition::User));
    }
    if let Some(written) = &written.notice {
        conditions.extend(RulePattern::parse(written, "notice", mistakes).map(RuleCondition::Notice));
    }
    if let Some(written) = &written.tool_result {
        let matches =
            written.matches.as_ref().and_then(|matches| RulePattern::parse(matches, "tool_result", mistakes));
        let (tool, failed) = (written.tool.clone(), written.failed);
        conditions.push(RuleCondition::ToolResult { tool, matches, failed });
    }
    conditions
}

impl RuleCondition {
    /// Returns true if the condition matches, and adds its matches to `found`.
    pub(super) fn is_met<'r>(&self, request: &'r ModelRequest, found: &mut ConditionMatches<'r>) -> bool {
        let position = &request.position;
        match self {
            RuleCondition::Conversation(id) => position.conversation == *id,
            RuleCondition::Agent(name) => position.agent == *name,
            RuleCondition::Turn(turn) => position.turn == *turn,
            RuleCondition::Call(call) => position.call == *call,
            RuleCondition::Attempt(attempt) => position.attempt == *attempt,
            RuleCondition::System(pattern) => capture_groups(pattern, request.system.as_deref(), found),
            RuleCondition::User(pattern) => capture_groups(pattern, request.last_user_text(), found),
            RuleCondition::UserIsNew => {
                request.new_messages().iter().any(|message| matches!(message, ModelMessage::User { .. }))
            }
            RuleCondition::Notice(pattern) => {
                let notice = new_notices(request).find(|text| pattern.matches(text));
                found.notice = notice.or(found.notice);
                capture_groups(pattern, notice, found)
            }
            RuleCondition::ToolResult { tool, matches: pattern, failed } => {
                let fits = |result: &&ModelToolResult| {
                    tool.as_ref().is_none_or(|tool| result.name == *tool)
                        && failed.is_none_or(|failed| result.is_error == failed)
                        && pattern.as_ref().is_none_or(|pattern| pattern.matches(&result.text()))
                };
                let Some(result) = new_results(request).find(fits) else { return false };
                found.result = Some(result);
                pattern.as_ref().is_none_or(|pattern| capture_groups(pattern, Some(&result.text()), found))
            }
            RuleCondition::Offered(tool) => request.tool(tool).is_some(),
        }
    }

    /// Returns why the condition does not match, as a sentence without a full stop.
    pub(super) fn describe_mismatch(&self, request: &ModelRequest) -> String {
        let position = &request.position;
        match self {
            RuleCondition::Conversation(id) => format!("the conversation is not {id:?}"),
            RuleCondition::Agent(name) => format!("the agent is {:?}, not {name:?}", position.agent),
            RuleCondition::Turn(turn) => format!("the turn is {}, not {turn}", position.turn),
            RuleCondition::Call(call) => format!("the call is {}, not {call}", position.call),
            RuleCondition::Attempt(attempt) => format!("the attempt is {}, not {attempt}", position.attempt),
            RuleCondition::System(pattern) => match &request.system {
                Some(system) => format!("the system prompt {:?} does not match {pattern}", shorten(system)),
                None => "there is no system prompt".to_owned(),
            },
            RuleCondition::User(pattern) => match request.last_user_text() {
                Some(text) => format!("the user's {:?} does not match {pattern}", shorten(text)),
                None => "there is no user message".to_owned(),
            },
            RuleCondition::UserIsNew => {
                "the last user message was already answered (add `call`, `tool_result` or `notice` to match a later call)"
                    .to_owned()
            }
            RuleCondition::Notice(pattern) => format!("no new notice matches {pattern}"),
            RuleCondition::ToolResult { tool, matches, failed } => {
                let mut wanted = match failed {
                    Some(true) => "no new failed tool result".to_owned(),
                    Some(false) => "no new successful tool result".to_owned(),
                    None => "no new tool result".to_owned(),
                };
                if let Some(tool) = tool {
                    wanted.push_str(&format!(" of `{tool}`"));
                }
                if let Some(pattern) = matches {
                    wanted.push_str(&format!(" matches {pattern}"));
                }
                let new: Vec<String> = new_results(request)
                    .map(|result| format!("`{}` gave {:?}", result.name, shorten(&result.text())))
                    .collect();
                if new.is_empty() { wanted } else { format!("{wanted}; {}", new.join(", ")) }
            }
            RuleCondition::Offered(tool) => format!("the tool `{tool}` is not offered"),
        }
    }

    /// Returns the names of the capture groups of this condition.
    pub(super) fn capture_names(&self) -> impl Iterator<Item = &str> {
        let pattern = match self {
            RuleCondition::System(pattern)
            | RuleCondition::User(pattern)
            | RuleCondition::Notice(pattern) => Some(pattern),
            RuleCondition::ToolResult { matches, .. } => matches.as_ref(),
            RuleCondition::Conversation(_)
            | RuleCondition::Agent(_)
            | RuleCondition::Turn(_)
            | RuleCondition::Call(_)
            | RuleCondition::Attempt(_)
            | RuleCondition::UserIsNew
            | RuleCondition::Offered(_) => None,
        };
        pattern.into_iter().flat_map(|pattern| pattern.names.iter().map(String::as_str))
    }
}

fn capture_groups(pattern: &RulePattern, text: Option<&str>, found: &mut ConditionMatches<'_>) -> bool {
    let Some(captures) = text.and_then(|text| pattern.regex()?.captures(text)) else { return false };
    for name in &pattern.names {
        if let Some(group) = captures.name(name) {
            found.captures.insert(name.clone(), group.as_str().to_owned());
        }
    }
    true
}

fn new_notices(request: &ModelRequest) -> impl Iterator<Item = &str> {
    request.new_messages().iter().rev().filter_map(|message| match message {
        ModelMessage::Notice { text } => Some(text.as_str()),
        ModelMessage::User { .. } | ModelMessage::Assistant { .. } | ModelMessage::Tool(_) => None,
    })
}

/// Returns the tool results since the last reply, latest first.
pub(super) fn new_results(request: &ModelRequest) -> impl Iterator<Item = &ModelToolResult> {
    request.new_messages().iter().rev().filter_map(|message| match message {
        ModelMessage::Tool(result) => Some(result),
        ModelMessage::User { .. } | ModelMessage::Assistant { .. } | ModelMessage::Notice { .. } => None,
    })
}
