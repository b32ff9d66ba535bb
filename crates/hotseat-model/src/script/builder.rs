//! From rules as they are written to a script that answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hotseat_document::{Diagnostics, Value};

use super::Script;
use super::compiled::{Answer, Call, Compiled, Failure, RuleId, Speech, Words};
use super::condition::{self, Condition};
use super::mistakes::Mistakes;
use super::rule::{Rule, WrittenError, WrittenReply};
use super::template::{Templates, VARIABLES};
use crate::ErrorKind;

/// Collects the rules of a script.
#[derive(Debug, Clone)]
pub struct ScriptBuilder {
    name: String,
    /// Whether rules that do not say otherwise may answer any number of times.
    pub(super) always: bool,
    pub(super) rules: Vec<Rule>,
}

impl ScriptBuilder {
    pub(super) fn new(name: impl Into<String>) -> Self {
        ScriptBuilder { name: name.into(), always: false, rules: Vec::new() }
    }

    /// Adds a rule. Of several that fit a request, the first one answers.
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Rules may answer any number of times, where they do not say otherwise.
    pub fn always(mut self) -> Self {
        self.always = true;
        self
    }

    /// The script, checked.
    ///
    /// # Errors
    /// Everything that is wrong with the rules.
    pub fn build(self) -> Result<Script, Diagnostics> {
        let mut mistakes = Mistakes::default();
        if self.rules.is_empty() {
            mistakes.add(None, "a script needs at least one rule");
        }
        let script = self.compile(&mut mistakes);
        mistakes.or(script)
    }

    pub(super) fn compile(self, mistakes: &mut Mistakes) -> Script {
        let mut templates = Templates::new();
        let mut rules: Vec<Compiled> = Vec::new();
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
            rules.push(rule(index, written, self.always, &mut templates, mistakes));
            mistakes.rule = None;
        }
        Script { name: self.name, rules, templates }
    }
}

fn rule(
    index: usize,
    written: &Rule,
    always: bool,
    templates: &mut Templates,
    mistakes: &mut Mistakes,
) -> Compiled {
    let name = written.name.as_ref().map(|name| Arc::from(name.value.as_str()));
    let when = condition::compile(&written.when, mistakes);
    let expect = condition::compile(&written.expect, mistakes);
    let captures = captures(&when, &expect, written, mistakes);
    let answer = match (&written.reply, &written.error) {
        (Some(reply), None) => Answer::Reply(speech(reply, &captures, templates, mistakes)),
        (None, Some(error)) => Answer::Error(failure(error, &captures, templates, mistakes)),
        (Some(_), Some(_)) => {
            mistakes
                .add(written.place.as_ref(), "a rule answers with `reply` or with `error`, not with both");
            Answer::Reply(Speech::default())
        }
        (None, None) => {
            // A rule that is wrong already may have meant one of them.
            if !mistakes.concern_rule(written.place.as_ref()) {
                mistakes.add(written.place.as_ref(), "a rule needs `reply` or `error`");
            }
            Answer::Reply(Speech::default())
        }
    };
    Compiled {
        id: RuleId { number: index + 1, name, place: written.place.clone() },
        when,
        expect,
        always: written.always.unwrap_or(always),
        delay: written.delay,
        answer,
    }
}

/// The names that templates of the rule can use besides the variables.
fn captures(
    when: &[Condition],
    expect: &[Condition],
    written: &Rule,
    mistakes: &mut Mistakes,
) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for name in when.iter().chain(expect).flat_map(Condition::capture_names) {
        if VARIABLES.contains(&name) {
            mistakes.add(
                written.place.as_ref(),
                format!("a group cannot be called `{name}`: templates use that name"),
            );
        } else if !names.insert(name.to_owned()) {
            mistakes.add(written.place.as_ref(), format!("two groups are called `{name}`"));
        }
    }
    names
}

fn speech(
    written: &WrittenReply,
    captures: &BTreeSet<String>,
    templates: &mut Templates,
    mistakes: &mut Mistakes,
) -> Speech {
    let words = match (&written.text, &written.json) {
        (Some(text), None) => Words::Text(templates.text(text, captures, mistakes)),
        (None, Some(json)) => Words::Json(templates.tree(json, captures, mistakes)),
        (None, None) => Words::None,
        (Some(text), Some(_)) => {
            mistakes.add(text.place.as_ref(), "a reply has `text` or `json`, not both");
            Words::None
        }
    };
    let reasoning = written.reasoning.as_ref().map(|text| templates.text(text, captures, mistakes));
    let calls = written.tool_calls.iter().map(|call| {
        if call.name.is_empty() && !mistakes.within(call.place.as_ref()) {
            mistakes.add(call.place.as_ref(), "a tool call needs the name of a tool");
        }
        // A text is no template: it stands for what a model wrote that is not JSON.
        let arguments = match &call.arguments.node.value {
            Value::String(_) => super::template::Tree::Plain(call.arguments.node.to_json()),
            _ => templates.tree(&call.arguments, captures, mistakes),
        };
        Call { name: call.name.clone(), id: call.id.clone(), arguments }
    });
    Speech { words, reasoning, calls: calls.collect(), stop: written.stop.clone(), usage: written.usage }
}

fn failure(
    written: &WrittenError,
    captures: &BTreeSet<String>,
    templates: &mut Templates,
    mistakes: &mut Mistakes,
) -> Failure {
    Failure {
        kind: written.kind,
        message: written.message.as_ref().map(|text| templates.text(text, captures, mistakes)),
        status: written.status.or(usual_status(written.kind)),
        retry_after: written.retry_after,
        body: written.body.clone(),
        after: written.after.as_ref().map(|text| templates.text(text, captures, mistakes)),
    }
}

/// The status with which a provider fails in this way.
fn usual_status(kind: ErrorKind) -> Option<u16> {
    match kind {
        ErrorKind::RateLimit => Some(429),
        ErrorKind::Server => Some(503),
        ErrorKind::Auth => Some(401),
        ErrorKind::BadRequest | ErrorKind::ContextTooLong => Some(400),
        ErrorKind::Network
        | ErrorKind::Timeout
        | ErrorKind::Decode
        | ErrorKind::Configuration
        | ErrorKind::Unanswered => None,
    }
}
