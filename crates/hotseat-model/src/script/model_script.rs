//! Selects the rule that answers a request.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use hotseat_document::{Diagnostic, Diagnostics, SourceText, shorten, yaml};

use super::builder::ScriptBuilder;
use super::compiled::{CompiledRule, RuleId};
use super::condition::ConditionMatches;
use super::diagnostics::ScriptDiagnostics;
use super::memory::ScriptMemory;
use super::reader;
use super::surrogates::join_surrogates;
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
    /// Creates a builder for a script in code.
    pub fn builder(name: impl Into<String>) -> ScriptBuilder {
        ScriptBuilder::new(name)
    }

    /// Parses a script. `file` is the file name used in diagnostics.
    ///
    /// # Errors
    /// All problems of the script.
    pub fn parse(file: &str, text: &str) -> Result<ModelScript, Diagnostics> {
        ModelScript::from_source(&SourceText::new(file, text, 1))
    }

    /// Parses a script from a source.
    ///
    /// # Errors
    /// All problems of the script.
    pub fn from_source(source: &Arc<SourceText>) -> Result<ModelScript, Diagnostics> {
        // JSON is parsed as YAML.
        let joined = match join_surrogates(&source.text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(text) => Some(SourceText::new(Arc::clone(&source.name), text, source.first_line)),
        };
        let source = joined.as_ref().unwrap_or(source);
        let node = yaml::parse(source)?;
        let mut mistakes = ScriptDiagnostics::default();
        let script = reader::read_script(&node, source, &mut mistakes).compile(&mut mistakes);
        mistakes.into_result(script)
    }

    /// Reads a script from a file.
    ///
    /// # Errors
    /// If the file cannot be read, or all problems of the script.
    pub fn load(path: &Path) -> Result<ModelScript, Diagnostics> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| Diagnostic::new(format!("{file} cannot be read: {error}")))?;
        ModelScript::parse(&file, &text)
    }

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
        let mut near: Vec<(usize, &CompiledRule, Vec<String>)> = Vec::new();
        for (index, rule) in self.rules.iter().enumerate() {
            let mut misses = CompiledRule::mismatches(&rule.when, request);
            if !self.is_available(index, rule, request, used) {
                misses.push("it was already used (use: once)".to_owned());
            }
            near.push((misses.len(), rule, misses));
        }
        near.sort_by_key(|(misses, _, _)| *misses);
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

    /// Replaces the memory.
    pub fn with_memory(self, used: ScriptMemory) -> Self {
        ScriptedModel { memory: used, ..self }
    }

    /// Returns the script.
    pub fn script(&self) -> &ModelScript {
        &self.script
    }

    /// Returns the memory.
    pub fn memory(&self) -> &ScriptMemory {
        &self.memory
    }

    /// Removes a finished conversation from the memory.
    pub fn forget(&mut self, conversation: &str) {
        self.memory.forget(conversation);
    }

    /// Returns the rules that were never used, in order.
    pub fn unused(&self) -> Vec<&RuleId> {
        self.script.unused(&self.memory)
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
