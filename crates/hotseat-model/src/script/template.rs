//! Texts of a reply that take up what the request says.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use hotseat_document::{Diagnostic, Node, Place, Source, nearest, shorten};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, ValueKind};
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde_json::Value;

use super::condition::{Found, new_results};
use super::mistakes::Mistakes;
use super::rule::{Written, WrittenTree};
use crate::{Message, Request, ToolResult};

/// What every template can name. Some have no value in some requests; to use them there is an error.
pub(super) const VARIABLES: &[&str] = &[
    "user",
    "system",
    "notice",
    "result",
    "results",
    "messages",
    "tools",
    "conversation",
    "agent",
    "turn",
    "call",
    "attempt",
];

/// A text, with or without `{{ … }}`.
#[derive(Debug)]
pub(super) enum Text {
    Plain(String),
    /// The source; the environment knows it by this name.
    Template(String),
}

/// A value whose texts may be templates.
#[derive(Debug)]
pub(super) enum Tree {
    Plain(Value),
    Text(Text),
    /// A text that is one `{{ expression }}`: its value keeps its type.
    Expression(String),
    List(Vec<Tree>),
    Map(Vec<(String, Tree)>),
}

/// The templates of a script.
pub(super) struct Templates {
    environment: Environment<'static>,
}

impl fmt::Debug for Templates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Templates")
    }
}

impl Templates {
    pub(super) fn new() -> Self {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        let mut syntax = SyntaxConfig::default().to_builder();
        syntax.keep_trailing_newline(true);
        environment.set_syntax(syntax.build().unwrap_or_default());
        // Replies are no web pages.
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_formatter(|out, state, value| match value.kind() {
            ValueKind::Map | ValueKind::Seq => {
                let json = serde_json::to_string(value).map_err(|error| {
                    minijinja::Error::new(minijinja::ErrorKind::BadSerialization, error.to_string())
                })?;
                out.write_str(&json).map_err(minijinja::Error::from)
            }
            _ => minijinja::escape_formatter(out, state, value),
        });
        Templates { environment }
    }

    /// Compiles a text. `captures` are the names that the patterns of the rule capture.
    pub(super) fn text(
        &mut self,
        written: &Written<String>,
        captures: &BTreeSet<String>,
        mistakes: &mut Mistakes,
    ) -> Text {
        if !is_template(&written.value) {
            return Text::Plain(written.value.clone());
        }
        let (source, place) = (&written.value, written.place.as_ref());
        match self.environment.add_template_owned(source.clone(), source.clone()) {
            Ok(()) => {
                let used = self
                    .environment
                    .get_template(source)
                    .map(|template| template.undeclared_variables(false));
                self.check_variables(used.unwrap_or_default(), captures, place, mistakes);
            }
            Err(error) => unreadable(&error, source, place, mistakes),
        }
        Text::Template(source.clone())
    }

    /// Compiles the texts of a value.
    pub(super) fn tree(
        &mut self,
        written: &WrittenTree,
        captures: &BTreeSet<String>,
        mistakes: &mut Mistakes,
    ) -> Tree {
        self.node(&written.node, written.source.as_ref(), captures, mistakes)
    }

    fn node(
        &mut self,
        node: &Node,
        file: Option<&Arc<Source>>,
        captures: &BTreeSet<String>,
        mistakes: &mut Mistakes,
    ) -> Tree {
        match &node.value {
            hotseat_document::Value::Null
            | hotseat_document::Value::Bool(_)
            | hotseat_document::Value::Number(_) => Tree::Plain(node.to_json()),
            hotseat_document::Value::String(text) => {
                let place = file.map(|file| node.place(file));
                let Some(source) = expression(text) else {
                    let written = Written { value: text.clone(), place };
                    return Tree::Text(self.text(&written, captures, mistakes));
                };
                match self.environment.compile_expression(source) {
                    Ok(compiled) => {
                        let used = compiled.undeclared_variables(false);
                        self.check_variables(used, captures, place.as_ref(), mistakes);
                    }
                    Err(error) => unreadable(&error, source, place.as_ref(), mistakes),
                }
                Tree::Expression(source.to_owned())
            }
            hotseat_document::Value::List(nodes) => {
                Tree::List(nodes.iter().map(|node| self.node(node, file, captures, mistakes)).collect())
            }
            hotseat_document::Value::Map(entries) => Tree::Map(
                entries
                    .iter()
                    .map(|entry| (entry.key.text.clone(), self.node(&entry.value, file, captures, mistakes)))
                    .collect(),
            ),
        }
    }

    fn check_variables(
        &self,
        used: impl IntoIterator<Item = String>,
        captures: &BTreeSet<String>,
        place: Option<&Place>,
        mistakes: &mut Mistakes,
    ) {
        let known: Vec<&str> = VARIABLES.iter().copied().chain(captures.iter().map(String::as_str)).collect();
        let is_function = |name: &str| self.environment.globals().any(|(global, _)| global == name);
        let unknown: BTreeSet<String> =
            used.into_iter().filter(|name| !known.contains(&name.as_str()) && !is_function(name)).collect();
        for name in unknown {
            let advice = match nearest(&name, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are `{}`", known.join("`, `")),
            };
            let mistake = Diagnostic::new(format!("this template uses `{name}`, which nothing defines"));
            mistakes.push(place, mistake.help(advice));
        }
    }

    /// Fills in a text.
    ///
    /// # Errors
    /// When a template uses what the request does not have, in words.
    pub(super) fn fill_text(&self, text: &Text, context: &Context) -> Result<String, String> {
        match text {
            Text::Plain(text) => Ok(text.clone()),
            Text::Template(source) => {
                let template = self.environment.get_template(source).map_err(|error| words(&error))?;
                template.render(context.value()).map_err(|error| failed(source, &error))
            }
        }
    }

    /// Fills in the texts of a value.
    ///
    /// # Errors
    /// When a template uses what the request does not have, in words.
    pub(super) fn fill_tree(&self, tree: &Tree, context: &Context) -> Result<Value, String> {
        Ok(match tree {
            Tree::Plain(value) => value.clone(),
            Tree::Text(text) => Value::String(self.fill_text(text, context)?),
            Tree::Expression(source) => {
                let compiled = self.environment.compile_expression(source).map_err(|error| words(&error))?;
                let value = compiled.eval(context.value()).map_err(|error| failed(source, &error))?;
                if value.is_undefined() {
                    return Err(format!("`{{{{{source}}}}}` has no value in this request"));
                }
                serde_json::to_value(&value)
                    .map_err(|error| format!("`{{{{{source}}}}}` is not JSON: {error}"))?
            }
            Tree::List(trees) => Value::Array(
                trees.iter().map(|tree| self.fill_tree(tree, context)).collect::<Result<_, _>>()?,
            ),
            Tree::Map(members) => Value::Object(
                members
                    .iter()
                    .map(|(key, tree)| Ok((key.clone(), self.fill_tree(tree, context)?)))
                    .collect::<Result<_, String>>()?,
            ),
        })
    }
}

/// What templates see of a request. Made when the first template asks for it.
pub(super) struct Context<'r> {
    request: &'r Request,
    found: Found<'r>,
    value: std::cell::OnceCell<minijinja::Value>,
}

impl<'r> Context<'r> {
    pub(super) fn new(request: &'r Request, found: Found<'r>) -> Self {
        Context { request, found, value: std::cell::OnceCell::new() }
    }

    fn value(&self) -> minijinja::Value {
        self.value.get_or_init(|| self.make()).clone()
    }

    fn make(&self) -> minijinja::Value {
        let Request { position, system, messages, tools, .. } = self.request;
        let result = self.found.result.or_else(|| new_results(self.request).next());
        let last_notice = messages.iter().rev().find_map(|message| match message {
            Message::Notice { text } => Some(text.as_str()),
            Message::User { .. } | Message::Assistant { .. } | Message::Tool(_) => None,
        });
        let results: BTreeMap<&str, Value> = messages
            .iter()
            .filter_map(|message| match message {
                Message::Tool(result) => Some((result.name.as_str(), as_json(result))),
                Message::User { .. } | Message::Assistant { .. } | Message::Notice { .. } => None,
            })
            .collect();
        let texts: Vec<BTreeMap<&str, String>> = messages
            .iter()
            .map(|message| {
                BTreeMap::from([("role", role(message).to_owned()), ("text", message.text().into_owned())])
            })
            .collect();
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();

        let mut members: BTreeMap<&str, minijinja::Value> = BTreeMap::from([
            ("conversation", position.conversation.as_str().into()),
            ("agent", position.agent.as_str().into()),
            ("turn", position.turn.into()),
            ("call", position.call.into()),
            ("attempt", position.attempt.into()),
            ("results", minijinja::Value::from(Serde(&results))),
            ("messages", minijinja::Value::from(Serde(&texts))),
            ("tools", minijinja::Value::from(Serde(&names))),
        ]);
        members.extend(self.request.last_user_text().map(|text| ("user", text.into())));
        members.extend(system.as_deref().map(|text| ("system", text.into())));
        members.extend(self.found.notice.or(last_notice).map(|text| ("notice", text.into())));
        members.extend(result.map(|result| ("result", minijinja::Value::from(Serde(as_json(result))))));
        members.extend(self.found.captures.iter().map(|(name, text)| (name.as_str(), text.as_str().into())));
        minijinja::Value::from_pairs(members)
    }
}

/// What a tool answered, as the value it is even if it was written as a text of JSON.
fn as_json(result: &ToolResult) -> Value {
    match &result.content {
        Value::String(text) => match serde_json::from_str(text) {
            Ok(value @ (Value::Object(_) | Value::Array(_))) => value,
            Ok(_) | Err(_) => result.content.clone(),
        },
        content => content.clone(),
    }
}

fn role(message: &Message) -> &'static str {
    match message {
        Message::User { .. } => "user",
        Message::Assistant { .. } => "assistant",
        Message::Tool(_) => "tool",
        Message::Notice { .. } => "notice",
    }
}

fn is_template(text: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|mark| text.contains(mark))
}

/// The inside of a text that is one `{{ … }}` and nothing else.
fn expression(text: &str) -> Option<&str> {
    let inside = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    let is_alone = !is_template(inside) && !inside.contains("}}");
    is_alone.then(|| inside.trim_matches('-'))
}

fn unreadable(error: &minijinja::Error, source: &str, place: Option<&Place>, mistakes: &mut Mistakes) {
    let line = error.line().and_then(|line| source.lines().nth(line.checked_sub(1)?));
    let part = place.zip(line).map(|(place, line)| {
        let start = line.as_ptr() as usize - source.as_ptr() as usize;
        place.within(source, start..start + line.len())
    });
    mistakes.add(part.as_ref().or(place), format!("this template cannot be read: {}", words(error)));
}

/// An error of the template engine without the name of the template, which is its whole text.
fn words(error: &minijinja::Error) -> String {
    match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    }
}

fn failed(source: &str, error: &minijinja::Error) -> String {
    let source = shorten(source.trim());
    match error.kind() {
        minijinja::ErrorKind::UndefinedError => format!("{source:?} uses what this request does not have"),
        _ => format!("{source:?}: {}", words(error)),
    }
}
