//! Finds the rule that answers a request.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use hotseat_document::{Diagnostic, Diagnostics, Source, shorten, yaml};

use super::builder::ScriptBuilder;
use super::compiled::{Compiled, RuleId};
use super::condition::Found;
use super::mistakes::Mistakes;
use super::read;
use super::surrogates::without_surrogates;
use super::template::Templates;
use super::used::Used;
use crate::{ErrorKind, Message, ModelError, PureModel, Reply, Request, Timed};

/// How many rules an error shows that nearly fit.
const NEAR_MISSES: usize = 3;

/// A list of rules that answers as a model does.
#[derive(Debug)]
pub struct Script {
    pub(super) name: String,
    pub(super) rules: Vec<Compiled>,
    pub(super) templates: Templates,
}

impl Script {
    /// A script that is built in code.
    pub fn builder(name: impl Into<String>) -> ScriptBuilder {
        ScriptBuilder::new(name)
    }

    /// Reads a script. `file` is what its places are shown with.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(file: &str, text: &str) -> Result<Script, Diagnostics> {
        Script::read(&Source::new(file, text, 1))
    }

    /// Reads a script from the text of a file.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn read(source: &Arc<Source>) -> Result<Script, Diagnostics> {
        // JSON is read as the YAML that it is.
        let joined = match without_surrogates(&source.text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(text) => Some(Source::new(Arc::clone(&source.name), text, source.first_line)),
        };
        let source = joined.as_ref().unwrap_or(source);
        let node = yaml::parse(source)?;
        let mut mistakes = Mistakes::default();
        let script = read::script(&node, source, &mut mistakes).compile(&mut mistakes);
        mistakes.or(script)
    }

    /// Reads a script from a file.
    ///
    /// # Errors
    /// When the file cannot be read, or everything that is wrong with it.
    pub fn load(path: &Path) -> Result<Script, Diagnostics> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| Diagnostic::new(format!("{file} cannot be read: {error}")))?;
        Script::parse(&file, &text)
    }

    /// What the model is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Answers a request, and remembers in `used` which rule did. The same request with the same memory gets the
    /// same answer; no clock is read and nothing is left to chance.
    ///
    /// A position that was answered before gets the rule that answered it then, as long as that still fits: a call
    /// that is made again after a restart does not use up the next rule.
    pub fn answer(&self, request: &Request, used: &mut Used) -> Timed<Result<Reply, ModelError>> {
        let Some((index, found)) = self.choose(request, used) else {
            return Timed::now(Err(self.unanswered(request, used)));
        };
        used.add(&request.position, index);
        let rule = &self.rules[index];
        Timed { delay: rule.delay, value: rule.answer(request, found, &self.templates) }
    }

    /// The rules that have answered nothing, in order.
    pub fn unused(&self, used: &Used) -> Vec<&RuleId> {
        self.rules
            .iter()
            .enumerate()
            .filter(|(index, _)| !used.ever(*index))
            .map(|(_, rule)| &rule.id)
            .collect()
    }

    fn choose<'r>(&self, request: &'r Request, used: &Used) -> Option<(usize, Found<'r>)> {
        let again = used.at(&request.position).filter(|index| *index < self.rules.len());
        let first = again.and_then(|index| Some((index, self.rules[index].fits(request)?)));
        first.or_else(|| {
            self.rules
                .iter()
                .enumerate()
                .filter(|(index, rule)| self.is_free(*index, rule, request, used))
                .find_map(|(index, rule)| Some((index, rule.fits(request)?)))
        })
    }

    fn is_free(&self, index: usize, rule: &Compiled, request: &Request, used: &Used) -> bool {
        rule.always || !used.in_conversation(&request.position.conversation, index)
    }

    fn unanswered(&self, request: &Request, used: &Used) -> ModelError {
        let mut message = format!("no rule of {} answers {}", self.name, request.position);
        // Writing to a string cannot fail.
        let _ = match request.messages.last() {
            Some(last) => write!(message, "\n  last message: {}", described(last)),
            None => write!(message, "\n  there are no messages"),
        };
        if !request.tools.is_empty() {
            let names: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
            let _ = write!(message, "\n  tools offered: {}", names.join(", "));
        }
        let mut near: Vec<(usize, &Compiled, Vec<String>)> = Vec::new();
        for (index, rule) in self.rules.iter().enumerate() {
            let mut misses = Compiled::misses(&rule.when, request);
            if !self.is_free(index, rule, request, used) {
                misses.push("it answered before (use: once)".to_owned());
            }
            near.push((misses.len(), rule, misses));
        }
        near.sort_by_key(|(misses, _, _)| *misses);
        for (_, rule, misses) in near.iter().take(NEAR_MISSES) {
            let _ = write!(message, "\n  not {}: {}", rule.id, misses.join("; "));
        }
        if near.len() > NEAR_MISSES {
            let _ = write!(message, "\n  nor {} others, which fit no better", near.len() - NEAR_MISSES);
        }
        ModelError::new(ErrorKind::Unanswered, message)
    }
}

/// A message in one line.
fn described(message: &Message) -> String {
    let text = message.text();
    let text = shorten(&text);
    match message {
        Message::User { .. } => format!("user {text:?}"),
        Message::Notice { .. } => format!("notice {text:?}"),
        Message::Tool(result) if result.is_error => format!("tool `{}` failed with {text:?}", result.name),
        Message::Tool(result) => format!("tool `{}` gave {text:?}", result.name),
        Message::Assistant { tool_calls, .. } if tool_calls.is_empty() => format!("assistant {text:?}"),
        Message::Assistant { tool_calls, .. } => {
            let names: Vec<&str> = tool_calls.iter().map(|call| call.name.as_str()).collect();
            format!("assistant {text:?}, which calls {}", names.join(", "))
        }
    }
}

/// A script and its memory: a model.
#[derive(Debug, Clone)]
pub struct Scripted {
    script: Arc<Script>,
    used: Used,
}

impl Scripted {
    /// A model that has answered nothing yet.
    pub fn new(script: impl Into<Arc<Script>>) -> Self {
        Scripted { script: script.into(), used: Used::new() }
    }

    /// The same model with the memory of an earlier one.
    pub fn with_used(self, used: Used) -> Self {
        Scripted { used, ..self }
    }

    /// The script.
    pub fn script(&self) -> &Script {
        &self.script
    }

    /// What has been used.
    pub fn used(&self) -> &Used {
        &self.used
    }

    /// Forgets a conversation that has ended.
    pub fn forget(&mut self, conversation: &str) {
        self.used.forget(conversation);
    }

    /// The rules that have answered nothing, in order.
    pub fn unused(&self) -> Vec<&RuleId> {
        self.script.unused(&self.used)
    }
}

impl PureModel for Scripted {
    fn name(&self) -> &str {
        self.script.name()
    }

    fn answer(&mut self, request: &Request) -> Timed<Result<Reply, ModelError>> {
        self.script.answer(request, &mut self.used)
    }

    fn unused(&self) -> Vec<String> {
        self.script.unused(&self.used).into_iter().map(ToString::to_string).collect()
    }
}
