//! Templates of a build without them: they are refused, and other texts are rendered as they are.

use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::sync::Arc;

use hotseat_document::{Diagnostic, DocumentNode, NodeValue, SourceSpan, SourceText};
use serde_json::Value;

use super::condition::ConditionMatches;
use super::diagnostics::ScriptDiagnostics;
use super::rule::{SourceJson, SourceValue};
use super::template_syntax::is_template;
use crate::ModelRequest;

/// A text without templates.
#[derive(Debug)]
pub(super) struct TextTemplate(String);

/// A JSON value without templates.
#[derive(Debug)]
pub(super) enum JsonTemplate {
    Plain(Value),
}

/// The templates of a script: none.
#[derive(Debug)]
pub(super) struct TemplateSet(());

/// A template that cannot be rendered. There is none.
#[derive(Debug, thiserror::Error)]
pub(super) enum TemplateError {}

/// Values of a request for templates: none.
pub(super) struct TemplateContext<'r>(PhantomData<&'r ModelRequest>);

impl<'r> TemplateContext<'r> {
    pub(super) fn new(_: &'r ModelRequest, _: ConditionMatches<'r>) -> Self {
        TemplateContext(PhantomData)
    }
}

impl TemplateSet {
    pub(super) fn new() -> Self {
        TemplateSet(())
    }

    /// Takes a text, unless it is a template.
    pub(super) fn compile_text(
        &mut self,
        written: &SourceValue<String>,
        _: &BTreeSet<String>,
        mistakes: &mut ScriptDiagnostics,
    ) -> TextTemplate {
        refuse_template(&written.value, written.place.as_ref(), mistakes);
        TextTemplate(written.value.clone())
    }

    /// Takes a JSON value, unless it contains a template.
    pub(super) fn compile_json(
        &mut self,
        written: &SourceJson,
        _: &BTreeSet<String>,
        mistakes: &mut ScriptDiagnostics,
    ) -> JsonTemplate {
        refuse_templates(&written.node, written.source.as_ref(), mistakes);
        JsonTemplate::Plain(written.node.to_json())
    }

    pub(super) fn render_text(
        &self,
        text: &TextTemplate,
        _: &TemplateContext,
    ) -> Result<String, TemplateError> {
        Ok(text.0.clone())
    }

    /// Renders a JSON value.
    pub(super) fn render_json(
        &self,
        JsonTemplate::Plain(value): &JsonTemplate,
        _: &TemplateContext,
    ) -> Result<Value, TemplateError> {
        Ok(value.clone())
    }
}

fn refuse_templates(node: &DocumentNode, file: Option<&Arc<SourceText>>, mistakes: &mut ScriptDiagnostics) {
    match &node.value {
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) => {}
        NodeValue::String(text) => {
            let place = file.map(|file| node.place(file));
            refuse_template(text, place.as_ref(), mistakes);
        }
        NodeValue::List(nodes) => nodes.iter().for_each(|node| refuse_templates(node, file, mistakes)),
        NodeValue::Map(entries) => {
            entries.iter().for_each(|entry| refuse_templates(&entry.value, file, mistakes));
        }
    }
}

fn refuse_template(text: &str, place: Option<&SourceSpan>, mistakes: &mut ScriptDiagnostics) {
    if is_template(text) {
        let missing = Diagnostic::new(
            "templates in replies of a model need the feature `models` of the crate `hotseat`",
        );
        let help = "add the feature `models` to the dependency `hotseat` in Cargo.toml";
        mistakes.push(place, missing.help(help));
    }
}
