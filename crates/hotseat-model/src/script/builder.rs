//! Compiles rules to a script.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hotseat_document::{Diagnostic, Diagnostics, NodeValue};

use super::ModelScript;
use super::compiled::{
    CompiledRule, ContentTemplate, ErrorTemplate, ReplyTemplate, RuleAnswer, RuleId, ToolCallTemplate,
};
use super::condition::{self, RuleCondition};
use super::diagnostics::ScriptDiagnostics;
use super::rule::{Rule, RuleError, RuleReply};
use super::template::TemplateSet;
use super::template_syntax::{VARIABLES, is_template};
use crate::ModelErrorKind;

/// Collects the rules of a script.
#[derive(Debug, Clone)]
pub struct ScriptBuilder {
    name: String,
    /// True if rules without their own setting may answer any number of times.
    pub(super) always: bool,
    pub(super) rules: Vec<Rule>,
}

impl ModelScript {
    /// Creates a builder for a script in code.
    pub fn builder(name: impl Into<String>) -> ScriptBuilder {
        ScriptBuilder::new(name)
    }
}

impl ScriptBuilder {
    pub(super) fn new(name: impl Into<String>) -> Self {
        ScriptBuilder { name: name.into(), always: false, rules: Vec::new() }
    }

    /// Adds a rule. The first rule that matches a request answers it.
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Lets rules without their own setting answer any number of times.
    pub fn always(mut self) -> Self {
        self.always = true;
        self
    }

    /// Checks the rules and builds the script.
    ///
    /// # Errors
    /// All problems of the rules.
    pub fn build(self) -> Result<ModelScript, Diagnostics> {
        let mut mistakes = ScriptDiagnostics::default();
        if self.rules.is_empty() {
            mistakes.add(None, "a script needs at least one rule");
        }
        let script = self.compile(&mut mistakes);
        mistakes.into_result(script)
    }

    pub(super) fn compile(self, mistakes: &mut ScriptDiagnostics) -> ModelScript {
        let mut templates = TemplateSet::new();
        let mut rules: Vec<CompiledRule> = Vec::new();
        let mut names = BTreeMap::new();
        for (index, written) in self.rules.iter().enumerate() {
            mistakes.rule = Some(index + 1);
            if let Some(name) = &written.name
                && let Some(first) = names.insert(&name.value, index + 1)
            {
                let message = format!("the name `{}` belongs to rule {first} already", name.value);
                mistakes.add(name.place.as_ref(), message);
            }
            let before = rules.iter().find(|rule| rule.always && rule.when.is_empty());
            if let Some(before) = before {
                let message = format!("this rule can never answer: {} answers everything", before.id);
                mistakes.add(written.place.as_ref(), message);
            }
            rules.push(compile_rule(index, written, self.always, &mut templates, mistakes));
            mistakes.rule = None;
        }
        ModelScript { name: self.name, rules, templates }
    }
}

fn compile_rule(
    index: usize,
    written: &Rule,
    always: bool,
    templates: &mut TemplateSet,
    mistakes: &mut ScriptDiagnostics,
) -> CompiledRule {
    let name = written.name.as_ref().map(|name| Arc::from(name.value.as_str()));
    let when = condition::compile_conditions(&written.when, mistakes);
    let expect = condition::compile_conditions(&written.expect, mistakes);
    let captures = captures(&when, &expect, written, mistakes);
    let answer = match (&written.reply, &written.error) {
        (Some(reply), None) => RuleAnswer::Reply(reply_template(reply, &captures, templates, mistakes)),
        (None, Some(error)) => RuleAnswer::Error(error_template(error, &captures, templates, mistakes)),
        (Some(_), Some(_)) => {
            mistakes.add(written.place.as_ref(), "a rule has `reply` or `error`, not both");
            RuleAnswer::Reply(ReplyTemplate::default())
        }
        (None, None) => {
            // An invalid rule may have contained one of them.
            if !mistakes.affects_rule(written.place.as_ref()) {
                mistakes.add(written.place.as_ref(), "a rule needs `reply` or `error`");
            }
            RuleAnswer::Reply(ReplyTemplate::default())
        }
    };
    CompiledRule {
        id: RuleId { number: index + 1, name, place: written.place.clone() },
        when,
        expect,
        always: written.always.unwrap_or(always),
        delay: written.delay,
        answer,
    }
}

/// Returns the capture names that the templates of a rule can use besides the variables.
fn captures(
    when: &[RuleCondition],
    expect: &[RuleCondition],
    written: &Rule,
    mistakes: &mut ScriptDiagnostics,
) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for name in when.iter().chain(expect).flat_map(RuleCondition::capture_names) {
        if VARIABLES.contains(&name) {
            mistakes.add(
                written.place.as_ref(),
                format!("a capture group cannot be named `{name}`: templates already use that name"),
            );
        } else if !names.insert(name.to_owned()) {
            mistakes.add(written.place.as_ref(), format!("two capture groups are named `{name}`"));
        }
    }
    names
}

fn reply_template(
    written: &RuleReply,
    captures: &BTreeSet<String>,
    templates: &mut TemplateSet,
    mistakes: &mut ScriptDiagnostics,
) -> ReplyTemplate {
    let words = match (&written.text, &written.json) {
        (Some(text), None) => ContentTemplate::Text(templates.compile_text(text, captures, mistakes)),
        (None, Some(json)) => ContentTemplate::Json(templates.compile_json(json, captures, mistakes)),
        (None, None) => ContentTemplate::None,
        (Some(text), Some(_)) => {
            mistakes.add(text.place.as_ref(), "a reply has `text` or `json`, not both");
            ContentTemplate::None
        }
    };
    let reasoning = written.reasoning.as_ref().map(|text| templates.compile_text(text, captures, mistakes));
    let calls = written.tool_calls.iter().map(|call| {
        if call.name.is_empty() && !mistakes.has_within(call.place.as_ref()) {
            mistakes.add(call.place.as_ref(), "a tool call needs the name of a tool");
        }
        for (key, text) in [("name", Some(&call.name)), ("id", call.id.as_ref())] {
            if let Some(text) = text.filter(|text| is_template(text)) {
                let words = format!("the `{key}` of a tool call cannot be a template: {text}");
                let help = "write a rule for each tool; the values in `arguments` may be templates";
                mistakes.push(call.place.as_ref(), Diagnostic::new(words).help(help));
            }
        }
        // A string is not a template: it simulates arguments that are not JSON.
        let arguments = match &call.arguments.node.value {
            NodeValue::String(_) => super::template::JsonTemplate::Plain(call.arguments.node.to_json()),
            _ => templates.compile_json(&call.arguments, captures, mistakes),
        };
        ToolCallTemplate { name: call.name.clone(), id: call.id.clone(), arguments }
    });
    ReplyTemplate {
        content: words,
        reasoning,
        calls: calls.collect(),
        stop: written.stop.clone(),
        usage: written.usage,
    }
}

fn error_template(
    written: &RuleError,
    captures: &BTreeSet<String>,
    templates: &mut TemplateSet,
    mistakes: &mut ScriptDiagnostics,
) -> ErrorTemplate {
    ErrorTemplate {
        kind: written.kind,
        message: written.message.as_ref().map(|text| templates.compile_text(text, captures, mistakes)),
        status: written.status.or(default_status(written.kind)),
        retry_after: written.retry_after,
        body: written.body.clone(),
        after: written.after.as_ref().map(|text| templates.compile_text(text, captures, mistakes)),
    }
}

/// Returns the usual HTTP status for a kind of failure.
fn default_status(kind: ModelErrorKind) -> Option<u16> {
    match kind {
        ModelErrorKind::RateLimit => Some(429),
        ModelErrorKind::Server => Some(503),
        ModelErrorKind::Auth => Some(401),
        ModelErrorKind::BadRequest | ModelErrorKind::ContextTooLong => Some(400),
        ModelErrorKind::Network
        | ModelErrorKind::Timeout
        | ModelErrorKind::Decode
        | ModelErrorKind::Configuration
        | ModelErrorKind::Unanswered => None,
    }
}
