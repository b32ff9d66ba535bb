//! What must hold of a request for a rule to answer it.

use std::collections::BTreeMap;

use hotseat_document::shorten;

use super::mistakes::Mistakes;
use super::pattern::Pattern;
use super::rule::Conditions;
use crate::{Message, Request, ToolResult};

/// One condition.
#[derive(Debug)]
pub(super) enum Condition {
    Conversation(String),
    Agent(String),
    Turn(u32),
    Call(u32),
    Attempt(u32),
    System(Pattern),
    /// What the user said last.
    User(Pattern),
    /// The user said something since the model last replied.
    UserIsNew,
    /// Among what came since the model last replied.
    Notice(Pattern),
    /// Among what came since the model last replied.
    ToolResult {
        tool: Option<String>,
        matches: Option<Pattern>,
        failed: Option<bool>,
    },
    Offered(String),
}

/// What the conditions of a rule found, for its templates.
#[derive(Debug, Default)]
pub(super) struct Found<'r> {
    /// What the named groups of the patterns captured.
    pub(super) captures: BTreeMap<String, String>,
    pub(super) result: Option<&'r ToolResult>,
    pub(super) notice: Option<&'r str>,
}

/// Compiles conditions. `key` is the one under which they are written.
pub(super) fn compile(written: &Conditions, mistakes: &mut Mistakes) -> Vec<Condition> {
    let mut conditions = Vec::new();
    // The cheap ones first.
    conditions.extend(written.conversation.clone().map(Condition::Conversation));
    conditions.extend(written.agent.clone().map(Condition::Agent));
    conditions.extend(written.turn.map(Condition::Turn));
    conditions.extend(written.call.map(Condition::Call));
    conditions.extend(written.attempt.map(Condition::Attempt));
    conditions.extend(written.offered.iter().cloned().map(Condition::Offered));
    let says_where = written.call.is_some() || written.tool_result.is_some() || written.notice.is_some();
    if written.user.is_some() && !says_where {
        conditions.push(Condition::UserIsNew);
    }
    if let Some(written) = &written.system {
        conditions.extend(Pattern::read(written, "system", mistakes).map(Condition::System));
    }
    if let Some(written) = &written.user {
        conditions.extend(Pattern::read(written, "user", mistakes).map(Condition::User));
    }
    if let Some(written) = &written.notice {
        conditions.extend(Pattern::read(written, "notice", mistakes).map(Condition::Notice));
    }
    if let Some(written) = &written.tool_result {
        let matches =
            written.matches.as_ref().and_then(|matches| Pattern::read(matches, "tool_result", mistakes));
        let (tool, failed) = (written.tool.clone(), written.failed);
        conditions.push(Condition::ToolResult { tool, matches, failed });
    }
    conditions
}

impl Condition {
    /// Whether the condition holds. What it finds is added to `found`.
    pub(super) fn holds<'r>(&self, request: &'r Request, found: &mut Found<'r>) -> bool {
        let position = &request.position;
        match self {
            Condition::Conversation(id) => position.conversation == *id,
            Condition::Agent(name) => position.agent == *name,
            Condition::Turn(turn) => position.turn == *turn,
            Condition::Call(call) => position.call == *call,
            Condition::Attempt(attempt) => position.attempt == *attempt,
            Condition::System(pattern) => matches(pattern, request.system.as_deref(), found),
            Condition::User(pattern) => matches(pattern, request.last_user_text(), found),
            Condition::UserIsNew => {
                request.news().iter().any(|message| matches!(message, Message::User { .. }))
            }
            Condition::Notice(pattern) => {
                let notice = new_notices(request).find(|text| pattern.matches(text));
                found.notice = notice.or(found.notice);
                matches(pattern, notice, found)
            }
            Condition::ToolResult { tool, matches: pattern, failed } => {
                let fits = |result: &&ToolResult| {
                    tool.as_ref().is_none_or(|tool| result.name == *tool)
                        && failed.is_none_or(|failed| result.is_error == failed)
                        && pattern.as_ref().is_none_or(|pattern| pattern.matches(&result.text()))
                };
                let Some(result) = new_results(request).find(fits) else { return false };
                found.result = Some(result);
                pattern.as_ref().is_none_or(|pattern| matches(pattern, Some(&result.text()), found))
            }
            Condition::Offered(tool) => request.tool(tool).is_some(),
        }
    }

    /// Why the condition does not hold of a request, as a sentence without a full stop.
    pub(super) fn miss(&self, request: &Request) -> String {
        let position = &request.position;
        match self {
            Condition::Conversation(id) => format!("the conversation is not {id:?}"),
            Condition::Agent(name) => format!("the agent is {:?}, not {name:?}", position.agent),
            Condition::Turn(turn) => format!("the turn is {}, not {turn}", position.turn),
            Condition::Call(call) => format!("the call is {}, not {call}", position.call),
            Condition::Attempt(attempt) => format!("the attempt is {}, not {attempt}", position.attempt),
            Condition::System(pattern) => match &request.system {
                Some(system) => format!("the system prompt {:?} does not match {pattern}", shorten(system)),
                None => "there is no system prompt".to_owned(),
            },
            Condition::User(pattern) => match request.last_user_text() {
                Some(text) => format!("the user's {:?} does not match {pattern}", shorten(text)),
                None => "the user has said nothing".to_owned(),
            },
            Condition::UserIsNew => {
                "what the user said was answered before (`call`, `tool_result` or `notice` would say what comes after)"
                    .to_owned()
            }
            Condition::Notice(pattern) => format!("no new notice matches {pattern}"),
            Condition::ToolResult { tool, matches, failed } => {
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
            Condition::Offered(tool) => format!("the tool `{tool}` is not offered"),
        }
    }

    /// The names of the groups that the pattern of this condition captures.
    pub(super) fn capture_names(&self) -> impl Iterator<Item = &str> {
        let pattern = match self {
            Condition::System(pattern) | Condition::User(pattern) | Condition::Notice(pattern) => {
                Some(pattern)
            }
            Condition::ToolResult { matches, .. } => matches.as_ref(),
            Condition::Conversation(_)
            | Condition::Agent(_)
            | Condition::Turn(_)
            | Condition::Call(_)
            | Condition::Attempt(_)
            | Condition::UserIsNew
            | Condition::Offered(_) => None,
        };
        pattern.into_iter().flat_map(|pattern| pattern.names.iter().map(String::as_str))
    }
}

fn matches(pattern: &Pattern, text: Option<&str>, found: &mut Found<'_>) -> bool {
    let Some(captures) = text.and_then(|text| pattern.regex()?.captures(text)) else { return false };
    for name in &pattern.names {
        if let Some(group) = captures.name(name) {
            found.captures.insert(name.clone(), group.as_str().to_owned());
        }
    }
    true
}

fn new_notices(request: &Request) -> impl Iterator<Item = &str> {
    request.news().iter().rev().filter_map(|message| match message {
        Message::Notice { text } => Some(text.as_str()),
        Message::User { .. } | Message::Assistant { .. } | Message::Tool(_) => None,
    })
}

/// The results since the model last replied, the latest first.
pub(super) fn new_results(request: &Request) -> impl Iterator<Item = &ToolResult> {
    request.news().iter().rev().filter_map(|message| match message {
        Message::Tool(result) => Some(result),
        Message::User { .. } | Message::Assistant { .. } | Message::Notice { .. } => None,
    })
}
