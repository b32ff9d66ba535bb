//! Variables in case and project files: `${NAME}` and `${ENV.NAME}`.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde_json::Value as Json;

use super::assertions::ASSERTION;
use super::shape::AWAITING;
use super::topic_shape::TRIGGER;
use hotseat_checks::Pattern;
use hotseat_document::{
    Diagnostic, Diagnostics, DocumentNode, Kind, MapKey, NodeValue, SourceSpan, SourceText,
};
use hotseat_targets::recorder::SecretRedactor;
use hotseat_targets::target::template::Placeholder;
use hotseat_trace::filled_text;

/// Environment variables, read once by the main function.
pub type Environment = Arc<BTreeMap<String, String>>;

/// Values of variables.
#[derive(Debug, Clone, Copy)]
pub struct VariableScope<'a> {
    /// Environment variables, for `${ENV.NAME}`.
    pub environment: &'a BTreeMap<String, String>,
    /// Variables set by hooks, for `${NAME}`.
    pub hook_variables: &'a BTreeMap<String, Json>,
    /// Addresses of MCP servers, for `${MCP.NAME.url}`.
    pub mcp: McpAddresses<'a>,
    /// True if hooks may still set variables: undefined ones then stay unresolved.
    pub allow_undefined: bool,
    /// Redactor for values in assertions, which are compared with redacted conversations.
    pub redactor: &'a SecretRedactor,
}

/// Variables of a place that no hook precedes.
static NO_HOOK_VARIABLES: BTreeMap<String, Json> = BTreeMap::new();

impl<'a> VariableScope<'a> {
    /// Creates a scope without hooks, where every variable must be defined.
    pub fn new(environment: &'a BTreeMap<String, String>, redactor: &'a SecretRedactor) -> VariableScope<'a> {
        VariableScope {
            environment,
            hook_variables: &NO_HOOK_VARIABLES,
            mcp: McpAddresses::Unknown,
            allow_undefined: false,
            redactor,
        }
    }
}

/// Start of the names of served models among addresses. Names of MCP servers contain no slash.
pub const MODEL_PREFIX: &str = "models/";

/// Addresses of MCP servers, which are known while a conversation runs.
#[derive(Debug, Clone, Copy)]
pub enum McpAddresses<'a> {
    /// Not known yet: variables stay unresolved.
    Unknown,
    /// Any server has an address, to validate the settings of an agent before a conversation runs.
    Example,
    /// Addresses by the name of the server.
    Known(&'a BTreeMap<String, String>),
}

/// A variable refers to a server or model that the case does not have.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnknownServerError {
    #[error("`${{MODELS.{0}.url}}`: this case has no served model `{0}`")]
    Model(String),
    #[error("`${{MCP.{0}.url}}`: this case has no MCP server `{0}`")]
    Mcp(String),
}

impl McpAddresses<'_> {
    /// Example of an address of a server.
    pub fn example(server: &str) -> String {
        format!("http://127.0.0.1:1/mcp/{server}/example")
    }

    /// Returns the address of a server; `Ok(None)` if it is not known yet. Fails if the case has no such
    /// server or model.
    pub(crate) fn address(self, server: &str) -> Result<Option<String>, UnknownServerError> {
        match self {
            McpAddresses::Unknown => Ok(None),
            McpAddresses::Example => Ok(Some(Self::example(server))),
            McpAddresses::Known(known) => match (known.get(server), server.strip_prefix(MODEL_PREFIX)) {
                (Some(address), _) => Ok(Some(address.clone())),
                (None, Some(model)) => Err(UnknownServerError::Model(model.to_string())),
                (None, None) => Err(UnknownServerError::Mcp(server.to_string())),
            },
        }
    }
}

/// A part of a text with variables.
#[derive(Debug, PartialEq)]
enum TextPart<'t> {
    Text(&'t str),
    /// `$${`, an escaped `${`.
    Escaped,
    Given(&'t str),
    Environment(&'t str),
    /// The address of an MCP server.
    Mcp(&'t str),
    /// The address of a served model.
    Model(&'t str),
}

impl TextPart<'_> {
    /// The name of a variable as it is written.
    fn name(&self) -> String {
        match self {
            TextPart::Text(_) | TextPart::Escaped => String::new(),
            TextPart::Given(name) => (*name).to_string(),
            TextPart::Environment(name) => format!("ENV.{name}"),
            TextPart::Mcp(server) => format!("MCP.{server}.url"),
            TextPart::Model(model) => format!("MODELS.{model}.url"),
        }
    }
}

/// Resolves variables in all texts below `node`, guided by the expected kind: in a pattern a value is matched
/// literally; a JSON value that consists of a single variable becomes the value of that variable.
pub fn interpolate(
    node: &mut DocumentNode,
    kind: &Kind,
    variables: VariableScope<'_>,
    source: &Arc<SourceText>,
    diagnostics: &mut Diagnostics,
) {
    let fill = |text: &str, kind: &Kind, text_use: TextUse| match hook_number(text, kind, variables) {
        Some(number) => Ok(FilledValue::Json(number.clone())),
        None => fill_variables(text, text_kind(kind), text_use, variables),
    };
    fill_texts(node, kind, &fill, source, diagnostics);
    redact_assertions(node, kind, variables.redactor);
}

/// Keys of assertions whose texts are compared with no conversation: names of the test, and what others receive.
const UNCOMPARED_KEYS: [&str; 8] =
    ["criteria", "criterion", "judge", "message", "options", "server", "topic", "use"];

/// Removes secrets from the assertions below `node`, as they are removed from conversations: otherwise a text that the
/// agent must not say would never be found.
pub(super) fn redact_assertions(node: &mut DocumentNode, kind: &Kind, redactor: &SecretRedactor) {
    if redactor.is_empty() {
        return;
    }
    visit_scalars(node, kind, TextUse::Elsewhere, &mut Vec::new(), &mut |node, expected, text_use| {
        let escaped = |text: &str| {
            redactor
                .replace_secrets(text, |mark, _, out| out.push_str(&hotseat_checks::escape(mark)))
                .into_owned()
        };
        match (&mut node.value, text_use, text_kind(expected)) {
            (_, TextUse::Elsewhere, _) => {}
            (NodeValue::String(text), TextUse::Assertion, kind) if is_pattern(text, kind) => {
                *text = escaped(text)
            }
            (
                NodeValue::String(text),
                TextUse::Assertion,
                Kind::Text
                | Kind::NonEmptyText
                | Kind::JsonPath
                | Kind::Json
                | Kind::JsonMap
                | Kind::ExpectedJson
                | Kind::JsonSchema,
            ) => *text = redactor.text(text).into_owned(),
            (
                NodeValue::Number(_),
                TextUse::Assertion,
                Kind::Json | Kind::JsonMap | Kind::ExpectedJson | Kind::JsonSchema,
            ) => {
                let value = redactor.json(node.to_json());
                node.value = from_json(value, &node.span);
            }
            // Arguments are compared with patterns or numbers.
            (NodeValue::Number(number), TextUse::Assertion, Kind::Pattern) if accepts_numbers(expected) => {
                if let Some(mark) = redactor.number(number) {
                    node.value = NodeValue::String(format!("^{}$", hotseat_checks::escape(mark)));
                }
            }
            _ => {}
        }
    });
}

/// A text whose variables are being replaced by values.
pub(super) struct TextFiller<'t> {
    text: &'t str,
    kind: &'t Kind,
    text_use: TextUse,
    redactor: &'t SecretRedactor,
    filled: String,
    empty_variables: Vec<String>,
    errors: Vec<String>,
}

impl<'t> TextFiller<'t> {
    /// Begins to fill a text of an expected kind.
    pub(super) fn new(
        text: &'t str,
        kind: &'t Kind,
        text_use: TextUse,
        redactor: &'t SecretRedactor,
    ) -> TextFiller<'t> {
        TextFiller {
            text,
            kind: text_kind(kind),
            text_use,
            redactor,
            filled: String::with_capacity(text.len()),
            empty_variables: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// Appends a part of the filled text.
    pub(super) fn push(&mut self, part: &str) {
        self.filled.push_str(part);
    }

    /// Adds an error.
    pub(super) fn report(&mut self, message: String) {
        self.errors.push(message);
    }

    /// Returns the value of a variable as the next part of the text, or `None` after reporting an error. Patterns match it
    /// literally; a JSON path takes it as a name, unless it is the whole path. `after` is the text behind the variable.
    pub(super) fn text_of(&mut self, name: &str, value: &Json, after: &str) -> Option<String> {
        // No agent says what an absent value would be.
        if value.is_null() && self.text_use == TextUse::Assertion {
            self.report(format!("variable `{name}` is null, expected a value for a text"));
            return None;
        }
        let value = filled_text(value);
        if value.is_empty() {
            self.empty_variables.push(name.to_string());
        }
        match self.kind {
            Kind::JsonPath if !self.filled.is_empty() || !after.is_empty() => {
                let key = hotseat_checks::name_in_path(&self.filled, &value);
                if key.is_none() {
                    self.report(format!(
                        "variable `{name}` is no plain name; within a JSON path write `['${{{name}}}']`"
                    ));
                }
                key
            }
            kind if is_pattern(self.text, kind) => {
                Some(escape_in_pattern(&value, (&self.filled, after), self.text_use, self.redactor))
            }
            _ => Some(value),
        }
    }

    /// Returns the filled text.
    ///
    /// # Errors
    /// All errors of its variables.
    pub(super) fn finish(mut self) -> Result<FilledValue, Vec<String>> {
        if let [name, ..] = self.empty_variables.as_slice()
            && is_pattern(self.text, self.kind)
            && Pattern::is_universal(self.filled.strip_prefix(PATTERN_PREFIX).unwrap_or(&self.filled))
        {
            let message = format!("variable `{name}` is empty, so that every text matches this pattern");
            self.report(message);
        }
        if self.errors.is_empty() { Ok(FilledValue::Text(self.filled)) } else { Err(self.errors) }
    }
}

/// Returns a value as a part of a pattern that matches it literally, between the texts around it.
fn escape_in_pattern(
    value: &str,
    (before, after): (&str, &str),
    text_use: TextUse,
    redactor: &SecretRedactor,
) -> String {
    let escaped = match text_use {
        TextUse::Assertion => hotseat_checks::escape(&redactor.text(value)),
        TextUse::Elsewhere => hotseat_checks::escape(value),
    };
    let is_repeated = after.starts_with(['?', '*', '+', '{']) && !ends_in_class(before);
    match is_repeated && value.chars().count() != 1 {
        // A quantifier repeats the whole value, not its last character.
        true => format!("(?:{escaped})"),
        false => escaped,
    }
}

/// True if a pattern ends within a character class, which contains single characters.
fn ends_in_class(pattern: &str) -> bool {
    let (mut depth, mut is_escaped) = (0_usize, false);
    for byte in pattern.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'[' => depth += 1,
            b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    depth > 0
}

/// Start of a pattern among expected values.
const PATTERN_PREFIX: &str = "regex:";

/// True for regular expressions, also for those among expected values.
fn is_pattern(text: &str, kind: &Kind) -> bool {
    match kind {
        Kind::Pattern => true,
        Kind::ExpectedJson => text.starts_with(PATTERN_PREFIX),
        _ => false,
    }
}

/// Returns an expected value that matches only the value of a variable: its texts are no patterns.
fn literal_json(value: &Json) -> Json {
    match value {
        Json::String(text) if text.starts_with(PATTERN_PREFIX) => {
            format!("{PATTERN_PREFIX}^{}$", hotseat_checks::escape(text)).into()
        }
        Json::Array(items) => items.iter().map(literal_json).collect(),
        Json::Object(members) => {
            members.iter().map(|(key, value)| (key.clone(), literal_json(value))).collect()
        }
        other => other.clone(),
    }
}

/// What a text is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextUse {
    /// It is compared with conversations, from which secrets are removed.
    Assertion,
    /// It is sent, or compared with what arrives.
    Elsewhere,
}

/// Replaces a text by another text or a value, for the expected kind. Returns messages if variables are
/// undefined.
pub(super) type Fill<'f> = dyn Fn(&str, &Kind, TextUse) -> Result<FilledValue, Vec<String>> + 'f;

/// Applies `fill` to every text below `node` that contains a variable.
pub(super) fn fill_texts(
    node: &mut DocumentNode,
    kind: &Kind,
    fill: &Fill<'_>,
    source: &Arc<SourceText>,
    diagnostics: &mut Diagnostics,
) {
    let mut repeated_keys = Vec::new();
    visit_scalars(node, kind, TextUse::Elsewhere, &mut repeated_keys, &mut |node, kind, text_use| {
        let NodeValue::String(text) = &node.value else { return };
        if !text.contains("${") {
            return;
        }
        match fill(text, kind, text_use) {
            Ok(FilledValue::Text(text)) => node.value = NodeValue::String(text),
            Ok(FilledValue::Json(json)) => node.value = from_json(json, &node.span),
            Err(all) => {
                let place = node.place(source);
                diagnostics.extend(all.into_iter().map(|words| Diagnostic::new(words).at(place.clone())));
                // A placeholder prevents follow-up errors.
                node.value = NodeValue::String("undefined".to_string());
            }
        }
    });
    for MapKey { text, span } in repeated_keys {
        let message = format!("the variables of this key make it a second `{text}`");
        let place = SourceSpan::new(source, span);
        diagnostics.push(Diagnostic::new(message).at(place).help("give each key once"));
    }
}

/// Calls `visit` for each text and number below `node`, with its expected kind. Adds keys that equal another key of their
/// mapping after the visit.
fn visit_scalars(
    node: &mut DocumentNode,
    kind: &Kind,
    text_use: TextUse,
    repeated_keys: &mut Vec<MapKey>,
    visit: &mut dyn FnMut(&mut DocumentNode, &Kind, TextUse),
) {
    match (&mut node.value, kind) {
        (NodeValue::String(_) | NodeValue::Number(_), kind) => visit(node, kind, text_use),
        (_, Kind::OneOf(kinds)) => {
            if let Some(kind) = kinds.iter().find(|kind| kind.accepts_type_of(&node.value)) {
                visit_scalars(node, kind, text_use, repeated_keys, visit);
            }
        }
        (NodeValue::List(nodes), kind) => {
            let kind = match kind {
                Kind::List(kind) | Kind::NonEmptyList(kind) => kind,
                Kind::ExpectedJson | Kind::JsonSchema => kind,
                _ => &Kind::Json,
            };
            nodes.iter_mut().for_each(|node| visit_scalars(node, kind, text_use, repeated_keys, visit));
        }
        (NodeValue::Map(_), kind) => {
            let shape = match kind {
                Kind::Shape(shape) => Some(*shape),
                Kind::Tagged(tagged) => tagged.shape_of(node),
                _ => None,
            };
            let text_use = match (kind, shape) {
                // Functions and judges receive the values that the test means for them.
                (_, Some(shape)) if shape.field("use").is_some() => TextUse::Elsewhere,
                (Kind::Tagged(tagged), _) if std::ptr::eq(*tagged, &ASSERTION) => TextUse::Assertion,
                (_, Some(shape)) if [&AWAITING, &TRIGGER].iter().any(|own| std::ptr::eq(shape, *own)) => {
                    TextUse::Assertion
                }
                _ => text_use,
            };
            let NodeValue::Map(entries) = &mut node.value else { return };
            let mut has_filled_key = false;
            for entry in &mut *entries {
                let kind = match (kind, shape) {
                    (Kind::Map(kind), _) => kind,
                    (Kind::ExpectedJson, _) => kind,
                    (Kind::JsonSchema, _) => schema_member(&entry.key.text, &entry.value.value),
                    (_, Some(shape)) => shape.field(&entry.key.text).map_or(&Kind::Json, |field| &field.kind),
                    (_, None) => &Kind::Json,
                };
                // Names of arguments, such as those of `args_match`.
                if text_use == TextUse::Assertion && shape.is_none() {
                    has_filled_key |= entry.key.text.contains("${");
                    let text = std::mem::take(&mut entry.key.text);
                    let (value, span) = (NodeValue::String(text), entry.key.span.clone());
                    let mut key = DocumentNode { value, span, plain: false };
                    visit(&mut key, &Kind::Text, text_use);
                    if let NodeValue::String(text) = key.value {
                        entry.key.text = text;
                    }
                }
                let is_compared = shape.is_none() || !UNCOMPARED_KEYS.contains(&&*entry.key.text);
                let text_use = if is_compared { text_use } else { TextUse::Elsewhere };
                visit_scalars(&mut entry.value, kind, text_use, repeated_keys, visit);
            }
            if has_filled_key {
                let mut seen = HashSet::new();
                let repeated = entries.iter().map(|entry| &entry.key).filter(|key| !seen.insert(&*key.text));
                repeated_keys.extend(repeated.cloned());
            }
        }
        _ => {}
    }
}

/// Returns the kind of a member of a JSON Schema. A mapping below `pattern` describes a property of this name.
fn schema_member(key: &str, value: &NodeValue) -> &'static Kind {
    match (key, value) {
        ("pattern", NodeValue::String(_)) => &Kind::Pattern,
        ("const" | "enum" | "default" | "examples", _) => &Kind::Json,
        _ => &Kind::JsonSchema,
    }
}

/// Escapes a text, so that it contains no variables.
pub fn escape(text: &str) -> String {
    text.replace("${", "$${")
}

/// Variables that a text refers to; `true` marks environment variables. Malformed ones are ignored.
pub fn references(text: &str) -> Vec<(&str, bool)> {
    let parts = parse_parts(text).unwrap_or_default();
    let names = parts.into_iter().filter_map(|part| match part {
        TextPart::Given(name) => Some((name, false)),
        TextPart::Environment(name) => Some((name, true)),
        TextPart::Mcp(_) | TextPart::Model(_) | TextPart::Text(_) | TextPart::Escaped => None,
    });
    names.collect()
}

/// True if texts below a node use variables set by hooks.
pub fn uses_hook_variables(node: &DocumentNode) -> bool {
    match &node.value {
        NodeValue::String(text) => references(text).iter().any(|(_, is_environment)| !is_environment),
        NodeValue::List(nodes) => nodes.iter().any(uses_hook_variables),
        NodeValue::Map(entries) => entries.iter().any(|entry| {
            let is_of_hook = |(_, is_environment): &(&str, bool)| !is_environment;
            references(&entry.key.text).iter().any(is_of_hook) || uses_hook_variables(&entry.value)
        }),
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) => false,
    }
}

/// Names of the MCP servers whose addresses a text contains. Malformed ones are ignored.
pub fn mcp_references(text: &str) -> Vec<String> {
    let parts = parse_parts(text).unwrap_or_default();
    let names = parts.into_iter().filter_map(|part| match part {
        TextPart::Mcp(name) => Some(name.to_string()),
        TextPart::Model(name) => Some(format!("{MODEL_PREFIX}{name}")),
        _ => None,
    });
    names.collect()
}

/// Names of the MCP servers whose addresses the texts below a node contain, each with the first of these texts.
pub fn node_mcp_references(node: &DocumentNode) -> BTreeMap<String, &DocumentNode> {
    fn collect<'n>(node: &'n DocumentNode, names: &mut BTreeMap<String, &'n DocumentNode>) {
        match &node.value {
            NodeValue::String(text) => {
                mcp_references(text).into_iter().for_each(|name| _ = names.entry(name).or_insert(node));
            }
            NodeValue::List(nodes) => nodes.iter().for_each(|node| collect(node, names)),
            NodeValue::Map(entries) => entries.iter().for_each(|entry| collect(&entry.value, names)),
            NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) => {}
        }
    }
    let mut names = BTreeMap::new();
    collect(node, &mut names);
    names
}

/// Replacement of a text.
pub(super) enum FilledValue {
    Text(String),
    /// A value.
    Json(Json),
}

/// Returns true if a number is one of several kinds.
fn accepts_numbers(kind: &Kind) -> bool {
    matches!(kind, Kind::OneOf(kinds) if kinds.iter().any(|kind| matches!(kind, Kind::Number)))
}

/// Returns the number of a text that consists of one variable, where a number or a text is expected.
fn hook_number<'v>(text: &str, kind: &Kind, variables: VariableScope<'v>) -> Option<&'v Json> {
    if !accepts_numbers(kind) || !matches!(text_kind(kind), Kind::NonEmptyText) {
        return None;
    }
    match parse_parts(text).ok()?.as_slice() {
        [part] => hook_variable(part, variables).filter(|value| value.is_number()),
        _ => None,
    }
}

fn fill_variables(
    text: &str,
    kind: &Kind,
    text_use: TextUse,
    variables: VariableScope<'_>,
) -> Result<FilledValue, Vec<String>> {
    let parts = parse_parts(text).map_err(|words| vec![words])?;
    if let [part] = parts.as_slice()
        && let Some(value) = hook_variable(part, variables)
    {
        match kind {
            Kind::Json | Kind::JsonMap | Kind::JsonSchema => return Ok(FilledValue::Json(value.clone())),
            Kind::ExpectedJson => return Ok(FilledValue::Json(literal_json(value))),
            _ => {}
        }
    }
    let mut filler = TextFiller::new(text, kind, text_use, variables.redactor);
    for (at, part) in parts.iter().enumerate() {
        let value = match part {
            TextPart::Text(text) => {
                filler.push(text);
                continue;
            }
            part => part_value(part, kind, variables),
        };
        let after = match parts.get(at + 1) {
            Some(TextPart::Text(text)) => text,
            _ => "",
        };
        match value {
            Ok(value) => {
                if let Some(text) = filler.text_of(&part.name(), &value, after) {
                    filler.push(&text);
                }
            }
            Err(message) => filler.report(message),
        }
    }
    let mut of_hooks = parts.iter().filter(|part| hook_variable(part, variables).is_some());
    // The shape was checked before hooks set their variables. No tool has an empty name, so none would be forbidden.
    if let (Kind::NonEmptyText, "", [], Some(part)) =
        (kind, filler.filled.trim(), filler.errors.as_slice(), of_hooks.next())
    {
        filler.report(format!("variable `{}` is empty, expected a text that is not empty", part.name()));
    }
    filler.finish()
}

/// Returns the value of a variable.
///
/// # Errors
/// If it is not defined.
fn part_value(part: &TextPart<'_>, kind: &Kind, variables: VariableScope<'_>) -> Result<Json, String> {
    let unresolved = || Json::from(format!("${{{}}}", part.name()));
    let address = |server: &str| match variables.mcp.address(server) {
        Ok(address) => Ok(address.map_or_else(unresolved, Json::from)),
        Err(error) => Err(error.to_string()),
    };
    match *part {
        TextPart::Text(text) => Ok(text.into()),
        TextPart::Escaped => Ok("${".into()),
        TextPart::Environment(name) => match variables.environment.get(name) {
            Some(value) => Ok(value.as_str().into()),
            None => Err(format!("environment variable `{name}` is not set")),
        },
        TextPart::Mcp(server) => address(server),
        TextPart::Model(model) => address(&format!("{MODEL_PREFIX}{model}")),
        TextPart::Given(name) => match hook_variable(part, variables) {
            Some(value) => Ok(value.clone()),
            // A hook may set a plain name.
            None if variables.allow_undefined && matches!(kind, Kind::JsonPath) => Ok("undefined".into()),
            None if variables.allow_undefined => Ok(unresolved()),
            None => Err(undefined_message(name, variables)),
        },
    }
}

fn hook_variable<'v>(part: &TextPart<'_>, variables: VariableScope<'v>) -> Option<&'v Json> {
    match part {
        TextPart::Given(name) => variables.hook_variables.get(*name),
        _ => None,
    }
}

fn undefined_message(name: &str, variables: VariableScope<'_>) -> String {
    if variables.environment.contains_key(name) {
        return format!(
            "variable `{name}` is not defined; for the environment variable write `${{ENV.{name}}}`"
        );
    }
    if Placeholder::from_name(name).is_some() {
        return format!("variable `{name}` is not defined; in a template write `{{{{{name}}}}}`");
    }
    let known: Vec<&str> = variables.hook_variables.keys().map(String::as_str).collect();
    match known.as_slice() {
        [] => format!("variable `{name}` is not defined: no hook sets it"),
        known => format!("variable `{name}` is not defined: hooks set {}", known.join(", ")),
    }
}

/// Parses the name of an address: `MCP.NAME.url` or `MODELS.NAME.url`.
fn parse_address(name: &str) -> Option<TextPart<'_>> {
    let name = name.strip_suffix(".url")?;
    let is_name = |name: &&str| {
        let is_name_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        !name.is_empty() && name.chars().all(is_name_char)
    };
    match name.strip_prefix("MCP.").filter(is_name) {
        Some(server) => Some(TextPart::Mcp(server)),
        None => name.strip_prefix("MODELS.").filter(is_name).map(TextPart::Model),
    }
}

/// True for the name of a variable: letters, digits and `_`, not first a digit.
pub fn is_variable_name(name: &str) -> bool {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(is_valid) && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// Splits a text into its parts.
fn parse_parts(text: &str) -> Result<Vec<TextPart<'_>>, String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let escaped = rest[..at].ends_with('$');
        let before = &rest[..at - usize::from(escaped)];
        if !before.is_empty() {
            parts.push(TextPart::Text(before));
        }
        rest = &rest[at + 2..];
        if escaped {
            parts.push(TextPart::Escaped);
            continue;
        }
        let Some(end) = rest.find('}') else {
            return Err("`${` without a closing `}`; write `$${` for a literal `${`".to_string());
        };
        let name = &rest[..end];
        if let Some(address) = parse_address(name) {
            parts.push(address);
            rest = &rest[end + 1..];
            continue;
        }
        let part = match name.strip_prefix("ENV.") {
            Some(name) => TextPart::Environment(name),
            None => TextPart::Given(name),
        };
        if name.starts_with("scenario.") {
            return Err(format!(
                "`${{{name}}}`: this case has no scenarios; list them under `scenarios`, or write `$${{` for a literal `${{`"
            ));
        }
        if !is_variable_name(name.strip_prefix("ENV.").unwrap_or(name)) {
            return Err(format!(
                "`${{{name}}}` is not a valid variable: names consist of letters, digits and `_`; write `$${{` for a literal `${{`"
            ));
        }
        parts.push(part);
        rest = &rest[end + 1..];
    }
    if !rest.is_empty() {
        parts.push(TextPart::Text(rest));
    }
    Ok(parts)
}

/// Returns the kind for a text if several kinds are allowed.
fn text_kind(kind: &Kind) -> &Kind {
    match kind {
        Kind::OneOf(kinds) => {
            let text = NodeValue::String(String::new());
            kinds.iter().find(|kind| kind.accepts_type_of(&text)).map_or(kind, text_kind)
        }
        kind => kind,
    }
}

/// Converts a JSON value to nodes, all placed at the variable.
pub(super) fn from_json(json: Json, span: &std::ops::Range<usize>) -> NodeValue {
    let node = |json| DocumentNode { value: from_json(json, span), span: span.clone(), plain: false };
    match json {
        Json::Null => NodeValue::Null,
        Json::Bool(truth) => NodeValue::Bool(truth),
        Json::Number(number) => NodeValue::Number(number),
        Json::String(text) => NodeValue::String(text),
        Json::Array(items) => NodeValue::List(items.into_iter().map(node).collect()),
        Json::Object(members) => {
            let entries = members.into_iter().map(|(key, value)| hotseat_document::MapEntry {
                key: MapKey { text: key, span: span.clone() },
                value: node(value),
            });
            NodeValue::Map(entries.collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fill(text: &str, kind: &Kind) -> Result<Json, Vec<String>> {
        let environment = BTreeMap::from([("HOST".to_string(), "a.b".to_string())]);
        let hook_variables = BTreeMap::from([
            ("ID".to_string(), json!("x.1")),
            ("N".to_string(), json!(5)),
            ("S".to_string(), json!("secret value")),
            ("O".to_string(), json!({"a": 1})),
            ("R".to_string(), json!("regex:x.")),
        ]);
        let mcp = BTreeMap::from([
            ("my-bank".to_string(), "http://h/mcp".to_string()),
            ("models/main".to_string(), "http://h/main".to_string()),
        ]);
        let redactor = SecretRedactor::new([("N".to_string(), "secret value".to_string())]);
        let variables = VariableScope {
            hook_variables: &hook_variables,
            mcp: McpAddresses::Known(&mcp),
            ..VariableScope::new(&environment, &redactor)
        };
        fill_variables(text, kind, TextUse::Assertion, variables).map(|filled| match filled {
            FilledValue::Text(text) => json!(text),
            FilledValue::Json(json) => json,
        })
    }

    #[test]
    fn replaces_variables() {
        for (text, kind, expected) in [
            ("id ${ID}!", Kind::Text, json!("id x.1!")),
            ("${ENV.HOST}/${N}", Kind::Text, json!("a.b/5")),
            ("${O}", Kind::Text, json!("{\"a\":1}")),
            ("at ${MCP.my-bank.url}/", Kind::Text, json!("at http://h/mcp/")),
            ("at ${MODELS.main.url}/", Kind::Text, json!("at http://h/main/")),
            ("${O}", Kind::Json, json!({"a": 1})),
            ("${N}", Kind::Json, json!(5)),
            ("n=${N}", Kind::Json, json!("n=5")),
            ("^${ID}$", Kind::Pattern, json!(r"^x\.1$")),
            ("^${S}$", Kind::Pattern, json!(r"^\[redacted:N\]$")),
            ("^${ID}?$", Kind::Pattern, json!(r"^(?:x\.1)?$")),
            ("${ID}{2} ${N}+", Kind::Pattern, json!(r"(?:x\.1){2} 5+")),
            (r"\[[${ID}*]${ID}*", Kind::Pattern, json!(r"\[[x\.1*](?:x\.1)*")),
            ("regex:${ID}", Kind::ExpectedJson, json!(r"regex:x\.1")),
            ("${R}", Kind::ExpectedJson, json!(r"regex:^regex:x\.$")),
            ("${R}", Kind::Json, json!("regex:x.")),
            ("regex: ${ID}", Kind::Json, json!("regex: x.1")),
            ("${S}", Kind::Text, json!("secret value")),
            ("$${ID} and $${", Kind::Text, json!("${ID} and ${")),
            ("$5 {a} $x", Kind::Text, json!("$5 {a} $x")),
            (&escape("${ID} $${ID} $$${ ${"), Kind::Text, json!("${ID} $${ID} $$${ ${")),
        ] {
            assert_eq!(fill(text, &kind), Ok(expected), "{text}");
        }
    }

    #[test]
    fn rejects_undefined_and_malformed_names() {
        for (text, words) in [
            ("${NOPE}", "variable `NOPE` is not defined: hooks set ID, N, O, R, S"),
            ("${HOST}", "write `${ENV.HOST}`"),
            ("${ENV.NOPE}", "environment variable `NOPE` is not set"),
            ("${a-b}", "`${a-b}` is not a valid variable"),
            ("${MCP.crm.url}", "this case has no MCP server `crm`"),
            ("${MODELS.gpt.url}", "this case has no served model `gpt`"),
            ("${scenario.item}", "`${scenario.item}`: this case has no scenarios"),
            ("${MODELS.gpt}", "`${MODELS.gpt}` is not a valid variable"),
            ("${MCP.crm}", "`${MCP.crm}` is not a valid variable"),
            ("${}", "`${}` is not a valid variable"),
            ("${1A}", "`${1A}` is not a valid variable"),
            ("${OPEN", "`${` without a closing `}`"),
        ] {
            let error = fill(text, &Kind::Text).unwrap_err();
            assert!(error.len() == 1 && error[0].contains(words), "{text}: {error:?}");
        }
    }
}
