//! A rule that can answer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hotseat_document::Place;

use super::condition::{Condition, Found};
use super::template::{Context, Templates, Text, Tree};
use crate::{ErrorKind, ModelError, Reply, Request, StopReason, ToolCall, Usage};

/// Which rule of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleId {
    /// Its number, from 1.
    pub number: usize,
    /// Its name, where it has one.
    pub name: Option<Arc<str>>,
    /// Where it is written; nowhere if it was built in code.
    pub place: Option<Place>,
}

impl fmt::Display for RuleId {
    /// For instance ``rule 3 `refund` (checkout.yaml:12:5)``.
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
pub(super) struct Compiled {
    pub(super) id: RuleId,
    pub(super) when: Vec<Condition>,
    pub(super) expect: Vec<Condition>,
    pub(super) always: bool,
    pub(super) delay: Duration,
    pub(super) answer: Answer,
}

#[derive(Debug)]
pub(super) enum Answer {
    Reply(Speech),
    Error(Failure),
}

#[derive(Debug, Default)]
pub(super) struct Speech {
    pub(super) words: Words,
    pub(super) reasoning: Option<Text>,
    pub(super) calls: Vec<Call>,
    pub(super) stop: Option<StopReason>,
    pub(super) usage: Option<Usage>,
}

#[derive(Debug, Default)]
pub(super) enum Words {
    #[default]
    None,
    Text(Text),
    Json(Tree),
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) id: Option<String>,
    pub(super) arguments: Tree,
}

#[derive(Debug)]
pub(super) struct Failure {
    pub(super) kind: ErrorKind,
    pub(super) message: Option<Text>,
    pub(super) status: Option<u16>,
    pub(super) retry_after: Option<Duration>,
    pub(super) body: Option<String>,
    pub(super) after: Option<Text>,
}

impl Compiled {
    /// What the conditions find, if all of them hold.
    pub(super) fn fits<'r>(&self, request: &'r Request) -> Option<Found<'r>> {
        let mut found = Found::default();
        self.when.iter().all(|condition| condition.holds(request, &mut found)).then_some(found)
    }

    /// Why conditions do not hold, one sentence each.
    pub(super) fn misses(conditions: &[Condition], request: &Request) -> Vec<String> {
        let holds = |condition: &Condition| condition.holds(request, &mut Found::default());
        let mut missed: Vec<&Condition> = conditions.iter().filter(|condition| !holds(condition)).collect();
        // That the user's words are old matters only if they are the right ones.
        if missed.iter().any(|condition| matches!(condition, Condition::User(_))) {
            missed.retain(|condition| !matches!(condition, Condition::UserIsNew));
        }
        missed.into_iter().map(|condition| condition.miss(request)).collect()
    }

    /// The answer to a request that the rule fits.
    pub(super) fn answer<'r>(
        &self,
        request: &'r Request,
        mut found: Found<'r>,
        templates: &Templates,
    ) -> Result<Reply, ModelError> {
        if !self.expect.iter().all(|condition| condition.holds(request, &mut found)) {
            let misses = Compiled::misses(&self.expect, request).join("; ");
            let message =
                format!("{} answers {}, and expects something else: {misses}", self.id, request.position);
            return Err(ModelError::new(ErrorKind::Unanswered, message));
        }
        let context = Context::new(request, found);
        let filled = match &self.answer {
            Answer::Reply(speech) => speech.fill(request, &context, templates).map(Ok),
            Answer::Error(failure) => failure.fill(&self.id, &context, templates).map(Err),
        };
        filled.unwrap_or_else(|reason| {
            let message = format!("{} cannot be filled in for {}: {reason}", self.id, request.position);
            Err(ModelError::new(ErrorKind::Unanswered, message))
        })
    }
}

impl Speech {
    fn fill(&self, request: &Request, context: &Context<'_>, templates: &Templates) -> Result<Reply, String> {
        let text = match &self.words {
            Words::None => String::new(),
            Words::Text(text) => templates.fill_text(text, context)?,
            Words::Json(tree) => templates.fill_tree(tree, context)?.to_string(),
        };
        let reasoning = match &self.reasoning {
            Some(text) => templates.fill_text(text, context)?,
            None => String::new(),
        };
        let mut tool_calls = Vec::new();
        for (index, call) in self.calls.iter().enumerate() {
            let id = call.id.clone().unwrap_or_else(|| request.call_id(index));
            let arguments = templates.fill_tree(&call.arguments, context)?;
            tool_calls.push(ToolCall { id, name: call.name.clone(), arguments });
        }
        let usual_stop = if tool_calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse };
        let stop = self.stop.clone().unwrap_or(usual_stop);
        let mut reply = Reply { text, reasoning, tool_calls, stop, ..Reply::default() };
        reply.usage = self.usage.unwrap_or_else(|| Usage::estimate(request, &reply));
        Ok(reply)
    }
}

impl Failure {
    fn fill(
        &self,
        rule: &RuleId,
        context: &Context<'_>,
        templates: &Templates,
    ) -> Result<ModelError, String> {
        let message = match &self.message {
            Some(text) => templates.fill_text(text, context)?,
            None => format!("{rule} plays a failure: {}", self.kind),
        };
        let partial = match &self.after {
            Some(text) => Some(Box::new(Reply::text(templates.fill_text(text, context)?))),
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
