//! Selects the rule that answers a request.

use std::fmt::Write as _;
use std::sync::Arc;

use hotseat_document::shorten;

use super::compiled::{CompiledRule, RuleId};
use super::condition::ConditionMatches;
use super::memory::ScriptMemory;
use super::template::TemplateSet;
use crate::{ModelError, ModelErrorKind, ModelMessage, ModelReply, ModelRequest, PureModel, TimedValue};

/// Maximum number of near misses listed in an error.
const MAX_NEAR_MISSES: usize = 3;

/// A list of rules that answer as a model.
#[derive(Debug)]
pub struct ModelScript {
    pub(super) name: String,
    pub(super) rules: Vec<CompiledRule>,
    pub(super) templates: TemplateSet,
}

impl ModelScript {
    /// Returns the name of the model.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Answers a request and records the rule in `used`. The result depends only on the request and on
    /// `used`; there is no clock and no randomness.
    ///
    /// A position that was answered before gets the same rule again if it still matches, so a call repeated
    /// after a restart does not consume the next rule.
    pub fn answer(
        &self,
        request: &ModelRequest,
        used: &mut ScriptMemory,
    ) -> TimedValue<Result<ModelReply, ModelError>> {
        let Some((index, found)) = self.choose(request, used) else {
            return TimedValue::now(Err(self.unanswered_error(request, used)));
        };
        used.record(&request.position, index);
        let rule = &self.rules[index];
        TimedValue { delay: rule.delay, value: rule.answer(request, found, &self.templates) }
    }

    /// Returns the rules that were never used, in order.
    pub fn unused(&self, used: &ScriptMemory) -> Vec<&RuleId> {
        self.rules
            .iter()
            .enumerate()
            .filter(|(index, _)| !used.was_used(*index))
            .map(|(_, rule)| &rule.id)
            .collect()
    }

    fn choose<'r>(
        &self,
        request: &'r ModelRequest,
        used: &ScriptMemory,
    ) -> Option<(usize, ConditionMatches<'r>)> {
        let again = used.rule_at(&request.position).filter(|index| *index < self.rules.len());
        let first = again.and_then(|index| Some((index, self.rules[index].matches(request)?)));
        first.or_else(|| {
            self.rules
                .iter()
                .enumerate()
                .filter(|(index, rule)| self.is_available(*index, rule, request, used))
                .find_map(|(index, rule)| Some((index, rule.matches(request)?)))
        })
    }

    fn is_available(
        &self,
        index: usize,
        rule: &CompiledRule,
        request: &ModelRequest,
        used: &ScriptMemory,
    ) -> bool {
        rule.always || !used.was_used_in(&request.position.conversation, index)
    }

    fn unanswered_error(&self, request: &ModelRequest, used: &ScriptMemory) -> ModelError {
        let mut message = format!("no rule of {} answers {}", self.name, request.position);
        // Writing to a string cannot fail.
        let _ = match request.messages.last() {
            Some(last) => write!(message, "\n  last message: {}", describe_message(last)),
            None => write!(message, "\n  there are no messages"),
        };
        if !request.tools.is_empty() {
            let names: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
            let _ = write!(message, "\n  tools offered: {}", names.join(", "));
        }
        let mut near: Vec<((usize, usize), &CompiledRule, Vec<String>)> = Vec::new();
        for (index, rule) in self.rules.iter().enumerate() {
            let mut misses = CompiledRule::mismatches(&rule.when, request);
            // A rule that would match, but is used, is the nearest; otherwise a used one is further.
            let conditions = misses.len();
            if !self.is_available(index, rule, request, used) {
                misses.push("it was already used (use: once)".to_owned());
            }
            near.push(((conditions, misses.len()), rule, misses));
        }
        near.sort_by_key(|(distance, _, _)| *distance);
        for (_, rule, misses) in near.iter().take(MAX_NEAR_MISSES) {
            let _ = write!(message, "\n  not {}: {}", rule.id, misses.join("; "));
        }
        if near.len() > MAX_NEAR_MISSES {
            let _ = write!(message, "\n  nor {} others, which match no better", near.len() - MAX_NEAR_MISSES);
        }
        ModelError::new(ModelErrorKind::Unanswered, message)
    }
}

/// Describes a message in one line.
fn describe_message(message: &ModelMessage) -> String {
    let text = message.text();
    let text = shorten(&text);
    match message {
        ModelMessage::User { .. } => format!("user {text:?}"),
        ModelMessage::Notice { .. } => format!("notice {text:?}"),
        ModelMessage::Tool(result) if result.is_error => {
            format!("tool `{}` failed with {text:?}", result.name)
        }
        ModelMessage::Tool(result) => format!("tool `{}` gave {text:?}", result.name),
        ModelMessage::Assistant { tool_calls, .. } if tool_calls.is_empty() => format!("assistant {text:?}"),
        ModelMessage::Assistant { tool_calls, .. } => {
            let names: Vec<&str> = tool_calls.iter().map(|call| call.name.as_str()).collect();
            format!("assistant {text:?}, which calls {}", names.join(", "))
        }
    }
}

/// A script with its memory, usable as a model.
#[derive(Debug, Clone)]
pub struct ScriptedModel {
    script: Arc<ModelScript>,
    memory: ScriptMemory,
}

impl ScriptedModel {
    /// Creates a model without memory.
    pub fn new(script: impl Into<Arc<ModelScript>>) -> Self {
        ScriptedModel { script: script.into(), memory: ScriptMemory::new() }
    }
}

impl PureModel for ScriptedModel {
    fn name(&self) -> &str {
        self.script.name()
    }

    fn answer(&mut self, request: &ModelRequest) -> TimedValue<Result<ModelReply, ModelError>> {
        self.script.answer(request, &mut self.memory)
    }

    fn unused(&self) -> Vec<String> {
        self.script.unused(&self.memory).into_iter().map(ToString::to_string).collect()
    }
}
