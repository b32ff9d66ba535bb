//! Compiled rules.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hotseat_document::SourceSpan;
use serde_json::Value;

use super::condition::{ConditionMatches, RuleCondition};
use super::template::{JsonTemplate, TemplateContext, TemplateError, TemplateSet, TextTemplate};
use crate::types::parse_arguments;
use crate::{ModelError, ModelErrorKind, ModelReply, ModelRequest, ModelToolCall, StopReason, TokenUsage};

/// Identifies a rule of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleId {
    /// Number of the rule, from 1.
    pub number: usize,
    /// Name of the rule, if any.
    pub name: Option<Arc<str>>,
    /// Place in the file. None for rules built in code.
    pub place: Option<SourceSpan>,
}

impl fmt::Display for RuleId {
    /// Formats the id, for instance ``rule 3 `refund` (checkout.yaml:12:5)``.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {}", self.number)?;
        if let Some(name) = &self.name {
            write!(f, " `{name}`")?;
        }
        if let Some(place) = &self.place {
            write!(f, " ({place})")?;
        }
        Ok(())
    }
}

#[derive(Debug)]
pub(super) struct CompiledRule {
    pub(super) id: RuleId,
    pub(super) when: Vec<RuleCondition>,
    pub(super) expect: Vec<RuleCondition>,
    pub(super) always: bool,
    pub(super) delay: Duration,
    pub(super) answer: RuleAnswer,
}

#[derive(Debug)]
pub(super) enum RuleAnswer {
    Reply(ReplyTemplate),
    Error(ErrorTemplate),
}

#[derive(Debug, Default)]
pub(super) struct ReplyTemplate {
    pub(super) content: ContentTemplate,
    pub(super) reasoning: Option<TextTemplate>,
    pub(super) calls: Vec<ToolCallTemplate>,
    pub(super) stop: Option<StopReason>,
    pub(super) usage: Option<TokenUsage>,
}

#[derive(Debug, Default)]
pub(super) enum ContentTemplate {
    #[default]
    None,
    Text(TextTemplate),
    Json(JsonTemplate),
}

#[derive(Debug)]
pub(super) struct ToolCallTemplate {
    pub(super) name: String,
    pub(super) id: Option<String>,
    pub(super) arguments: JsonTemplate,
}

#[derive(Debug)]
pub(super) struct ErrorTemplate {
    pub(super) kind: ModelErrorKind,
    pub(super) message: Option<TextTemplate>,
    pub(super) status: Option<u16>,
    pub(super) retry_after: Option<Duration>,
    pub(super) body: Option<String>,
    pub(super) after: Option<TextTemplate>,
}

impl CompiledRule {
    /// Returns the matches of the conditions if all of them match.
    pub(super) fn matches<'r>(&self, request: &'r ModelRequest) -> Option<ConditionMatches<'r>> {
        let mut found = ConditionMatches::default();
        self.when.iter().all(|condition| condition.is_met(request, &mut found)).then_some(found)
    }

    /// Returns the reasons why conditions do not match, one sentence each.
    pub(super) fn mismatches(conditions: &[RuleCondition], request: &ModelRequest) -> Vec<String> {
        let holds = |condition: &RuleCondition| condition.is_met(request, &mut ConditionMatches::default());
        let mut missed: Vec<&RuleCondition> =
            conditions.iter().filter(|condition| !holds(condition)).collect();
        // A stale user message is only relevant if its text matches.
        if missed.iter().any(|condition| matches!(condition, RuleCondition::User(_))) {
            missed.retain(|condition| !matches!(condition, RuleCondition::UserIsNew));
        }
        missed.into_iter().map(|condition| condition.describe_mismatch(request)).collect()
    }

    /// Returns the answer to a request that matches the rule.
    pub(super) fn answer<'r>(
        &self,
        request: &'r ModelRequest,
        mut found: ConditionMatches<'r>,
        templates: &TemplateSet,
    ) -> Result<ModelReply, ModelError> {
        if !self.expect.iter().all(|condition| condition.is_met(request, &mut found)) {
            let misses = CompiledRule::mismatches(&self.expect, request).join("; ");
            let message = format!(
                "{} answers {}, but its `expect` does not match: {misses}",
                self.id, request.position
            );
            return Err(ModelError::new(ModelErrorKind::Unanswered, message));
        }
        let context = TemplateContext::new(request, found);
        let filled = match &self.answer {
            RuleAnswer::Reply(speech) => speech.render(request, &context, templates).map(Ok),
            RuleAnswer::Error(failure) => failure.render(&self.id, &context, templates).map(Err),
        };
        filled.unwrap_or_else(|reason| {
            let message = format!(
                "{} has a template that cannot be rendered for {}: {reason}",
                self.id, request.position
            );
            Err(ModelError::new(ModelErrorKind::Unanswered, message))
        })
    }
}

impl ReplyTemplate {
    fn render(
        &self,
        request: &ModelRequest,
        context: &TemplateContext<'_>,
        templates: &TemplateSet,
    ) -> Result<ModelReply, TemplateError> {
        let text = match &self.content {
            ContentTemplate::None => String::new(),
            ContentTemplate::Text(text) => templates.render_text(text, context)?,
            ContentTemplate::Json(tree) => templates.render_json(tree, context)?.to_string(),
        };
        let reasoning = match &self.reasoning {
            Some(text) => templates.render_text(text, context)?,
            None => String::new(),
        };
        let mut tool_calls = Vec::new();
        for (index, call) in self.calls.iter().enumerate() {
            let id = call.id.clone().unwrap_or_else(|| request.call_id(index));
            let arguments = match templates.render_json(&call.arguments, context)? {
                Value::String(text) => parse_arguments(text),
                arguments => arguments,
            };
            tool_calls.push(ModelToolCall {
                id,
                name: call.name.clone(),
                arguments,
                ..ModelToolCall::default()
            });
        }
        let usual_stop = if tool_calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse };
        let stop = self.stop.clone().unwrap_or(usual_stop);
        let mut reply = ModelReply { text, reasoning, tool_calls, stop, ..ModelReply::default() };
        reply.usage = self.usage.unwrap_or_else(|| TokenUsage::estimate(request, &reply));
        Ok(reply)
    }
}

impl ErrorTemplate {
    fn render(
        &self,
        rule: &RuleId,
        context: &TemplateContext<'_>,
        templates: &TemplateSet,
    ) -> Result<ModelError, TemplateError> {
        let message = match &self.message {
            Some(text) => templates.render_text(text, context)?,
            None => format!("{rule} simulates a failure: {}", self.kind),
        };
        let partial = match &self.after {
            Some(text) => Some(Box::new(ModelReply::text(templates.render_text(text, context)?))),
            None => None,
        };
        Ok(ModelError {
            kind: self.kind,
            message,
            status: self.status,
            retry_after: self.retry_after,
            body: self.body.clone(),
            partial,
        })
    }
}
