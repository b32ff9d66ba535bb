//! Reads scripts from files.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use hotseat_document::{
    Diagnostic, Diagnostics, DocumentNode, FromDocument, Kind, MapView, NodeView, SourceText, check, yaml,
};

use super::builder::ScriptBuilder;
use super::diagnostics::ScriptDiagnostics;
use super::model_script::ModelScript;
use super::rule::{RULE, Rule};
use super::shape::SCRIPT;
use super::surrogates::join_surrogates;

impl ModelScript {
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
        let script = read_script(&node, source, &mut mistakes).compile(&mut mistakes);
        mistakes.into_result(script)
    }

    /// Reads a script that is part of another file: a node with the members of [`SCRIPT`].
    ///
    /// # Errors
    /// All problems of the script.
    pub fn from_node(
        name: &str,
        node: &DocumentNode,
        source: &Arc<SourceText>,
    ) -> Result<ModelScript, Diagnostics> {
        let mut mistakes = ScriptDiagnostics::default();
        let Some(map) = MapView::from_node(node, source, &SCRIPT) else {
            return Err(Diagnostic::new(format!("the script of `{name}` is no mapping")).into());
        };
        let script = read_rules(ScriptBuilder::new(name), &map, &mut mistakes).compile(&mut mistakes);
        mistakes.into_result(script)
    }

    /// Reads a script from a file.
    ///
    /// # Errors
    /// If the file cannot be read, or all problems of the script.
    pub fn load(path: &Path) -> Result<ModelScript, Diagnostics> {
        let file = path.display().to_string();
        let text = hotseat_document::read_text_file(path)
            .map_err(|error| Diagnostic::new(format!("{file} cannot be read: {error}")))?;
        ModelScript::parse(&file, &text)
    }
}

/// Reads a whole script. Problems are added to `mistakes`.
fn read_script(
    node: &DocumentNode,
    source: &Arc<SourceText>,
    mistakes: &mut ScriptDiagnostics,
) -> ScriptBuilder {
    let mut misfits = Diagnostics::new();
    check(node, &Kind::Shape(&SCRIPT), source, &mut misfits);
    mistakes.extend(misfits);
    let Some(map) = MapView::from_node(node, source, &SCRIPT) else {
        return ScriptBuilder::new(&*source.name);
    };
    read_rules(ScriptBuilder::new(map.text("name").unwrap_or(&source.name)), &map, mistakes)
}

/// Reads the rules of a script.
fn read_rules(
    mut builder: ScriptBuilder,
    map: &MapView<'_>,
    mistakes: &mut ScriptDiagnostics,
) -> ScriptBuilder {
    builder.always = map.text("use") == Some("always");
    for view in map.list("rules").into_iter().flatten() {
        builder.rules.push(rule(view, mistakes));
    }
    builder
}

/// Reads a rule. A reply that says nothing is a problem.
fn rule(view: NodeView<'_>, mistakes: &mut ScriptDiagnostics) -> Rule {
    let reply = view.map(&RULE).and_then(|map| map.map("reply"));
    if let Some(reply) = reply
        && !["text", "json", "tool_calls"].into_iter().any(|key| reply.has(key))
        && !mistakes.has_within(Some(&reply.place()))
    {
        mistakes.add(
            Some(&reply.place()),
            "`reply` is empty: it needs `text`, `json` or `tool_calls` (an empty reply is `reply: \"\"`)",
        );
    }
    Rule::from_view(view).unwrap_or_else(|| Rule { place: Some(view.place()), ..Rule::default() })
}
