//! Reads scripts from files.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hotseat_document::{
    Diagnostic, Diagnostics, DocumentNode, Kind, MapView, NodeView, SourceText, check, yaml,
};

use super::builder::ScriptBuilder;
use super::diagnostics::ScriptDiagnostics;
use super::model_script::ModelScript;
use super::rule::{
    ResultCondition, Rule, RuleConditions, RuleError, RuleReply, RuleToolCall, SourceJson, SourceValue,
};
use super::shape::{CALL, RULE, SCRIPT};
use super::surrogates::join_surrogates;
use crate::{ModelErrorKind, StopReason, TokenUsage};

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
        let text = std::fs::read_to_string(path)
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
    builder.always = map.text("use").is_some_and(is_always);
    for view in map.list("rules").into_iter().flatten() {
        builder.rules.push(rule(view, mistakes));
    }
    builder
}

fn is_always(word: &str) -> bool {
    word == "always"
}

fn rule(view: NodeView<'_>, mistakes: &mut ScriptDiagnostics) -> Rule {
    let place = Some(view.place());
    let Some(map) = view.map(&RULE) else { return Rule { place, ..Rule::default() } };
    Rule {
        place,
        name: written(&map, "name"),
        always: map.text("use").map(is_always),
        delay: millis(&map, "delay_ms").unwrap_or(Duration::ZERO),
        when: map.map("when").map(|map| conditions(&map)).unwrap_or_default(),
        expect: map.map("expect").map(|map| conditions(&map)).unwrap_or_default(),
        reply: map.get("reply").map(|view| reply(view, map.map("reply").as_ref(), mistakes)),
        error: map.get("error").map(|view| error(view, map.map("error").as_ref())),
    }
}

fn conditions(map: &MapView<'_>) -> RuleConditions {
    let text = |key: &str| map.text(key).map(str::to_owned);
    let ordinal = |key: &str| map.integer(key).and_then(|number| u32::try_from(number).ok());
    let offered = map.get("offered").into_iter().flat_map(NodeView::one_or_many).filter_map(NodeView::text);
    RuleConditions {
        conversation: text("conversation"),
        agent: text("agent"),
        turn: ordinal("turn"),
        call: ordinal("call"),
        attempt: ordinal("attempt"),
        system: written(map, "system"),
        user: written(map, "user"),
        notice: written(map, "notice"),
        tool_result: map.has("tool_result").then(|| result_condition(map)),
        offered: offered.map(str::to_owned).collect(),
    }
}

/// Reads a pattern, or a mapping with more conditions.
fn result_condition(conditions: &MapView<'_>) -> ResultCondition {
    match conditions.map("tool_result") {
        None => ResultCondition { matches: written(conditions, "tool_result"), ..ResultCondition::default() },
        Some(map) => ResultCondition {
            tool: map.text("tool").map(str::to_owned),
            matches: written(&map, "matches"),
            failed: map.bool("failed"),
        },
    }
}

/// Reads a text, or a mapping with more members.
fn reply(view: NodeView<'_>, map: Option<&MapView<'_>>, mistakes: &mut ScriptDiagnostics) -> RuleReply {
    let Some(map) = map else { return RuleReply { text: text_of(view), ..RuleReply::default() } };
    let says_something = ["text", "json", "tool_calls"].into_iter().any(|key| map.has(key));
    if !says_something && !mistakes.has_within(Some(&view.place())) {
        mistakes.add(
            Some(&view.place()),
            "`reply` is empty: it needs `text`, `json` or `tool_calls` (an empty reply is `reply: \"\"`)",
        );
    }
    RuleReply {
        text: written(map, "text"),
        json: map.get("json").map(tree_of),
        reasoning: written(map, "reasoning"),
        tool_calls: map.list("tool_calls").into_iter().flatten().map(tool_call).collect(),
        stop: map.text("stop").map(|stop| StopReason::from(stop.to_owned())),
        usage: map.map("usage").map(|map| usage(&map)),
    }
}

/// Reads a mapping, or the name of a tool without arguments.
fn tool_call(view: NodeView<'_>) -> RuleToolCall {
    let map = view.map(&CALL);
    let field = |key: &str| map.as_ref().and_then(|map| map.get(key));
    let text = |key: &str| field(key).and_then(NodeView::text).map(str::to_owned);
    let nothing = || serde_json::Value::Object(serde_json::Map::new()).into();
    RuleToolCall {
        name: view.text().map(str::to_owned).or_else(|| text("name")).unwrap_or_default(),
        id: text("id"),
        arguments: field("arguments").map_or_else(nothing, tree_of),
        place: Some(view.place()),
    }
}

fn usage(map: &MapView<'_>) -> TokenUsage {
    let tokens = |key: &str| map.integer(key).and_then(|number| u64::try_from(number).ok()).unwrap_or(0);
    TokenUsage {
        input_tokens: tokens("input_tokens"),
        output_tokens: tokens("output_tokens"),
        cached_tokens: tokens("cached_tokens"),
        estimated: false,
    }
}

/// Reads a kind of error, or a mapping with more members.
fn error(view: NodeView<'_>, map: Option<&MapView<'_>>) -> RuleError {
    // Other names have already been reported.
    let kind =
        |name: Option<&str>| name.and_then(ModelErrorKind::from_name).unwrap_or(ModelErrorKind::Server);
    let Some(map) = map else { return RuleError::new(kind(view.text())) };
    RuleError {
        kind: kind(map.text("kind")),
        message: written(map, "message"),
        status: map.integer("status").and_then(|status| u16::try_from(status).ok()),
        retry_after: millis(map, "retry_after_ms"),
        body: map.text("body").map(str::to_owned),
        after: written(map, "after"),
    }
}

fn written(map: &MapView<'_>, key: &str) -> Option<SourceValue<String>> {
    map.get(key).and_then(text_of)
}

fn text_of(view: NodeView<'_>) -> Option<SourceValue<String>> {
    Some(SourceValue { value: view.text()?.to_owned(), place: Some(view.place()) })
}

fn tree_of(view: NodeView<'_>) -> SourceJson {
    SourceJson { node: view.node.clone(), source: Some(Arc::clone(view.source)) }
}

fn millis(map: &MapView<'_>, key: &str) -> Option<Duration> {
    map.integer(key).and_then(|millis| u64::try_from(millis).ok()).map(Duration::from_millis)
}
