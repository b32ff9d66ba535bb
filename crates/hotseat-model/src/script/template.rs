//! Templates in replies, filled from the request.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use hotseat_document::json::read_value;
use hotseat_document::{Diagnostic, DocumentNode, SourceSpan, SourceText, nearest_or, shorten};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde_json::Value;

use super::condition::{ConditionMatches, new_results};
use super::diagnostics::ScriptDiagnostics;
use super::rule::{SourceJson, SourceValue};
use super::template_filters::{UnknownName, json_text, unknown_names, write_json_in_filters};
use super::template_syntax::{VARIABLES, is_template};
use crate::{ModelMessage, ModelRequest, ModelToolResult};

/// A text with or without `{{ … }}`.
#[derive(Debug)]
pub(super) enum TextTemplate {
    Plain(String),
    /// Source of a template; also its name in the environment.
    Template(String),
}

/// A JSON value whose strings may be templates.
#[derive(Debug)]
pub(super) enum JsonTemplate {
    Plain(Value),
    Text(TextTemplate),
    /// A string that is a single `{{ expression }}`: its value keeps its type.
    Expression(String),
    List(Vec<JsonTemplate>),
    Map(Vec<(String, JsonTemplate)>),
}

/// Maximum number of steps of a template: rendering cannot be interrupted.
const MAX_TEMPLATE_STEPS: u64 = 1_000_000;

/// The compiled templates of a script.
pub(super) struct TemplateSet {
    environment: Environment<'static>,
}

impl fmt::Debug for TemplateSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TemplateSet")
    }
}

impl TemplateSet {
    pub(super) fn new() -> Self {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_fuel(Some(MAX_TEMPLATE_STEPS));
        let mut syntax = SyntaxConfig::default().to_builder();
        syntax.keep_trailing_newline(true);
        environment.set_syntax(syntax.build().unwrap_or_default());
        // Replies are not HTML.
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        // Values that are no text are written as agents send them.
        environment.set_formatter(|out, state, value| match json_text(value)? {
            Some(json) => out.write_str(&json).map_err(minijinja::Error::from),
            None => minijinja::escape_formatter(out, state, value),
        });
        write_json_in_filters(&mut environment);
        TemplateSet { environment }
    }

    /// Compiles a text. `captures` are the names of the rule's capture groups.
    pub(super) fn compile_text(
        &mut self,
        written: &SourceValue<String>,
        captures: &BTreeSet<String>,
        mistakes: &mut ScriptDiagnostics,
    ) -> TextTemplate {
        if !is_template(&written.value) {
            return TextTemplate::Plain(written.value.clone());
        }
        let (source, place) = (&written.value, written.place.as_ref());
        match self.environment.add_template_owned(source.clone(), source.clone()) {
            Ok(()) => {
                let used = self
                    .environment
                    .get_template(source)
                    .map(|template| template.undeclared_variables(false));
                self.check_variables(used.unwrap_or_default(), captures, place, mistakes);
                let unknown = unknown_names(source, &self.environment, |text| {
                    self.environment.template_from_str(text).is_ok()
                });
                report_unknown_names(unknown, source, place, mistakes);
            }
            Err(error) => report_syntax_error(&error, source, place, mistakes),
        }
        TextTemplate::Template(source.clone())
    }

    /// Compiles the strings of a JSON value.
    pub(super) fn compile_json(
        &mut self,
        written: &SourceJson,
        captures: &BTreeSet<String>,
        mistakes: &mut ScriptDiagnostics,
    ) -> JsonTemplate {
        self.compile_node(&written.node, written.source.as_ref(), captures, mistakes)
    }

    fn compile_node(
        &mut self,
        node: &DocumentNode,
        file: Option<&Arc<SourceText>>,
        captures: &BTreeSet<String>,
        mistakes: &mut ScriptDiagnostics,
    ) -> JsonTemplate {
        match &node.value {
            hotseat_document::NodeValue::Null
            | hotseat_document::NodeValue::Bool(_)
            | hotseat_document::NodeValue::Number(_) => JsonTemplate::Plain(node.to_json()),
            hotseat_document::NodeValue::String(text) => {
                let place = file.map(|file| node.place(file));
                let Some(source) = single_expression(text) else {
                    let written = SourceValue { value: text.clone(), place };
                    return JsonTemplate::Text(self.compile_text(&written, captures, mistakes));
                };
                match self.environment.compile_expression(source) {
                    Ok(compiled) => {
                        let used = compiled.undeclared_variables(false);
                        self.check_variables(used, captures, place.as_ref(), mistakes);
                        let unknown = unknown_names(source, &self.environment, |text| {
                            self.environment.compile_expression(text).is_ok()
                        });
                        report_unknown_names(unknown, source, place.as_ref(), mistakes);
                    }
                    Err(error) => report_syntax_error(&error, source, place.as_ref(), mistakes),
                }
                JsonTemplate::Expression(source.to_owned())
            }
            hotseat_document::NodeValue::List(nodes) => JsonTemplate::List(
                nodes.iter().map(|node| self.compile_node(node, file, captures, mistakes)).collect(),
            ),
            hotseat_document::NodeValue::Map(entries) => JsonTemplate::Map(
                entries
                    .iter()
                    .map(|entry| {
                        (entry.key.text.clone(), self.compile_node(&entry.value, file, captures, mistakes))
                    })
                    .collect(),
            ),
        }
    }

    fn check_variables(
        &self,
        used: impl IntoIterator<Item = String>,
        captures: &BTreeSet<String>,
        place: Option<&SourceSpan>,
        mistakes: &mut ScriptDiagnostics,
    ) {
        let known: Vec<&str> = VARIABLES.iter().copied().chain(captures.iter().map(String::as_str)).collect();
        let is_function = |name: &str| self.environment.globals().any(|(global, _)| global == name);
        let unknown: BTreeSet<String> =
            used.into_iter().filter(|name| !known.contains(&name.as_str()) && !is_function(name)).collect();
        for name in unknown {
            let list = || format!("the variables are `{}`", known.join("`, `"));
            let advice = nearest_or(&name, known.iter().copied(), list);
            let mistake = Diagnostic::new(format!("this template uses `{name}`, which is not defined"));
            mistakes.push(place, mistake.help(advice));
        }
    }

    /// Renders a text. Fails if a template uses a value that the request does not have.
    pub(super) fn render_text(
        &self,
        text: &TextTemplate,
        context: &TemplateContext,
    ) -> Result<String, TemplateError> {
        match text {
            TextTemplate::Plain(text) => Ok(text.clone()),
            TextTemplate::Template(source) => {
                let template = self.environment.get_template(source).map_err(TemplateError::Syntax)?;
                template.render(context.value()).map_err(|error| render_error(source, error))
            }
        }
    }

    /// Renders the strings of a JSON value. Fails if a template uses a value that the request does not have.
    pub(super) fn render_json(
        &self,
        tree: &JsonTemplate,
        context: &TemplateContext,
    ) -> Result<Value, TemplateError> {
        Ok(match tree {
            JsonTemplate::Plain(value) => value.clone(),
            JsonTemplate::Text(text) => Value::String(self.render_text(text, context)?),
            JsonTemplate::Expression(source) => {
                let compiled = self.environment.compile_expression(source).map_err(TemplateError::Syntax)?;
                let value = compiled.eval(context.value()).map_err(|error| render_error(source, error))?;
                if value.is_undefined() {
                    return Err(TemplateError::NoValue(source.clone()));
                }
                let no_json = |error| TemplateError::NoJson { expression: source.clone(), source: error };
                serde_json::to_value(&value).map_err(no_json)?
            }
            JsonTemplate::List(trees) => Value::Array(
                trees.iter().map(|tree| self.render_json(tree, context)).collect::<Result<_, _>>()?,
            ),
            JsonTemplate::Map(members) => Value::Object(
                members
                    .iter()
                    .map(|(key, tree)| Ok((key.clone(), self.render_json(tree, context)?)))
                    .collect::<Result<_, _>>()?,
            ),
        })
    }
}

/// A template that cannot be rendered for a request.
#[derive(Debug, thiserror::Error)]
pub(super) enum TemplateError {
    #[error("{}", error_text(.0))]
    Syntax(#[source] minijinja::Error),
    #[error("{0:?} uses a value that this request does not have")]
    Undefined(String),
    #[error("{0:?} takes more than {MAX_TEMPLATE_STEPS} steps: its loops are too long")]
    TooLong(String),
    #[error("{template:?}: {}", error_text(.source))]
    Rendering { template: String, source: minijinja::Error },
    #[error("`{{{{{0}}}}}` has no value in this request")]
    NoValue(String),
    #[error("`{{{{{expression}}}}}` is not JSON: {source}")]
    NoJson { expression: String, source: serde_json::Error },
}

/// Values of a request for templates, computed on first use.
pub(super) struct TemplateContext<'r> {
    request: &'r ModelRequest,
    found: ConditionMatches<'r>,
    value: std::cell::OnceCell<minijinja::Value>,
}

impl<'r> TemplateContext<'r> {
    pub(super) fn new(request: &'r ModelRequest, found: ConditionMatches<'r>) -> Self {
        TemplateContext { request, found, value: std::cell::OnceCell::new() }
    }

    fn value(&self) -> minijinja::Value {
        self.value.get_or_init(|| self.build_value()).clone()
    }

    fn build_value(&self) -> minijinja::Value {
        let ModelRequest { position, system, messages, tools, .. } = self.request;
        let result = self.found.result.or_else(|| new_results(self.request).next());
        let last_notice = messages.iter().rev().find_map(|message| match message {
            ModelMessage::Notice { text } => Some(text.as_str()),
            ModelMessage::User { .. } | ModelMessage::Assistant { .. } | ModelMessage::Tool(_) => None,
        });
        let results: BTreeMap<&str, Value> = messages
            .iter()
            .filter_map(|message| match message {
                ModelMessage::Tool(result) => Some((result.name.as_str(), result_as_json(result))),
                ModelMessage::User { .. } | ModelMessage::Assistant { .. } | ModelMessage::Notice { .. } => {
                    None
                }
            })
            .collect();
        let texts: Vec<BTreeMap<&str, String>> = messages
            .iter()
            .map(|message| {
                BTreeMap::from([
                    ("role", role_name(message).to_owned()),
                    ("text", message.text().into_owned()),
                ])
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
        members
            .extend(result.map(|result| ("result", minijinja::Value::from(Serde(result_as_json(result))))));
        members.extend(self.found.captures.iter().map(|(name, text)| (name.as_str(), text.as_str().into())));
        minijinja::Value::from_pairs(members)
    }
}

/// Returns the content of a tool result; a string with a JSON object or array is parsed.
fn result_as_json(result: &ModelToolResult) -> Value {
    match &result.content {
        Value::String(text) => match read_value(text) {
            Ok(value @ (Value::Object(_) | Value::Array(_))) => value,
            Ok(_) | Err(_) => result.content.clone(),
        },
        content => content.clone(),
    }
}

fn role_name(message: &ModelMessage) -> &'static str {
    match message {
        ModelMessage::User { .. } => "user",
        ModelMessage::Assistant { .. } => "assistant",
        ModelMessage::Tool(_) => "tool",
        ModelMessage::Notice { .. } => "notice",
    }
}

/// Returns the expression of a text that is a single `{{ … }}`.
fn single_expression(text: &str) -> Option<&str> {
    let inside = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    let is_alone = !is_template(inside) && !inside.contains("}}");
    is_alone.then(|| inside.trim_matches('-'))
}

fn report_unknown_names(
    unknown: Vec<UnknownName>,
    source: &str,
    place: Option<&SourceSpan>,
    mistakes: &mut ScriptDiagnostics,
) {
    for UnknownName { kind, name, part } in unknown {
        let kind_name = kind.describe();
        let list = || {
            format!(
                "the {kind_name}s are those of minijinja: https://docs.rs/minijinja/3/minijinja/{kind_name}s/"
            )
        };
        let advice = nearest_or(&name, kind.known_names().iter().copied(), list);
        let message = format!("this template uses the {kind_name} `{name}`, which does not exist");
        let place = place.map(|place| place.within(source, part));
        mistakes.push(place.as_ref(), Diagnostic::new(message).help(advice));
    }
}

fn report_syntax_error(
    error: &minijinja::Error,
    source: &str,
    place: Option<&SourceSpan>,
    mistakes: &mut ScriptDiagnostics,
) {
    let line = error.line().and_then(|line| source.lines().nth(line.checked_sub(1)?));
    let part = place.zip(line).map(|(place, line)| {
        let start = line.as_ptr() as usize - source.as_ptr() as usize;
        place.within(source, start..start + line.len())
    });
    mistakes.add(part.as_ref().or(place), format!("this template is invalid: {}", error_text(error)));
}

/// Formats an error without the template name, which is the whole template text.
fn error_text(error: &minijinja::Error) -> String {
    match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    }
}

fn render_error(template: &str, error: minijinja::Error) -> TemplateError {
    let template = shorten(template.trim()).to_string();
    match error.kind() {
        minijinja::ErrorKind::UndefinedError => TemplateError::Undefined(template),
        minijinja::ErrorKind::OutOfFuel => TemplateError::TooLong(template),
        _ => TemplateError::Rendering { template, source: error },
    }
}
