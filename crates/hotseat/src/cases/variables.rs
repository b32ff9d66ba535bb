//! `${NAME}` and `${ENV.NAME}` in what people write.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::checks;
use crate::session::Redactor;
use hotseat_document::{Diagnostic, Diagnostics, Kind, Node, Place, Source, Value};

/// The environment variables of the process, read once by whoever starts it.
pub type Environment = Arc<BTreeMap<String, String>>;

/// What variables stand for.
#[derive(Debug, Clone, Copy)]
pub struct Variables<'a> {
    /// The environment, for `${ENV.NAME}`.
    pub environment: &'a BTreeMap<String, String>,
    /// What hooks have given, for `${NAME}`.
    pub given: &'a BTreeMap<String, Json>,
    /// Whether hooks may still give more: then what is not known stays as it is written.
    pub more_to_come: bool,
    /// What takes secrets out of traces: patterns are matched against what is left, so it changes them alike.
    pub redactor: &'a Redactor,
}

/// A part of a text with variables.
#[derive(Debug, PartialEq)]
enum Part<'t> {
    Text(&'t str),
    /// `$${`, which stands for `${`.
    Escaped,
    Given(&'t str),
    Environment(&'t str),
}

/// Puts values in place of variables in every text below `node`, guided by what may stand where: in a pattern a
/// value is taken literally; a text that may be any JSON and is one variable as a whole becomes that value.
pub fn interpolate(
    node: &mut Node,
    kind: &Kind,
    variables: Variables<'_>,
    source: &Arc<Source>,
    mistakes: &mut Diagnostics,
) {
    let fill = |text: &str, kind: &Kind| filled(text, of_text(kind), variables);
    fill_texts(node, kind, &fill, source, mistakes);
}

/// What makes another text or a value of a text, for the kind of value that may stand there; or everything that is wrong.
pub(super) type Fill<'f> = dyn Fn(&str, &Kind) -> Result<Filled, Vec<String>> + 'f;

/// Puts what `fill` makes of it in place of every text below `node` that has a variable in it. It is told what may stand
/// there.
pub(super) fn fill_texts(
    node: &mut Node,
    kind: &Kind,
    fill: &Fill<'_>,
    source: &Arc<Source>,
    mistakes: &mut Diagnostics,
) {
    let place = node.place(source);
    match (&mut node.value, kind) {
        (Value::String(text), kind) if text.contains("${") => match fill(text, kind) {
            Ok(Filled::Text(text)) => node.value = Value::String(text),
            Ok(Filled::Json(json)) => node.value = from_json(json, &node.span),
            Err(all) => {
                mistakes.extend(all.into_iter().map(|words| Diagnostic::new(words).at(place.clone())));
                // Whatever this text should become, what it is now would only be complained about once more.
                node.value = Value::String("undefined".to_string());
            }
        },
        (_, Kind::OneOf(kinds)) => {
            if let Some(kind) = kinds.iter().find(|kind| may_be(&node.value, kind)) {
                fill_texts(node, kind, fill, source, mistakes);
            }
        }
        (Value::List(nodes), kind) => {
            let kind = match kind {
                Kind::List(kind) | Kind::NonEmptyList(kind) => kind,
                _ => &Kind::Json,
            };
            nodes.iter_mut().for_each(|node| fill_texts(node, kind, fill, source, mistakes));
        }
        (Value::Map(_), kind) => {
            let shape = match kind {
                Kind::Shape(shape) => Some(*shape),
                Kind::Tagged(tagged) => tagged.shape_of(node),
                _ => None,
            };
            let Value::Map(entries) = &mut node.value else { return };
            for entry in entries {
                let kind = match (kind, shape) {
                    (Kind::Map(kind), _) => kind,
                    (_, Some(shape)) => shape.field(&entry.key.text).map_or(&Kind::Json, |field| &field.kind),
                    (_, None) => &Kind::Json,
                };
                fill_texts(&mut entry.value, kind, fill, source, mistakes);
            }
        }
        _ => {}
    }
}

/// A text that means itself: what looks like a variable in it is none.
pub fn literal(text: &str) -> String {
    text.replace("${", "$${")
}

/// The variables that a text refers to: with `true` those of the environment. Malformed ones are passed over.
pub fn references(text: &str) -> Vec<(&str, bool)> {
    let parts = parts(text).unwrap_or_default();
    let names = parts.into_iter().filter_map(|part| match part {
        Part::Given(name) => Some((name, false)),
        Part::Environment(name) => Some((name, true)),
        Part::Text(_) | Part::Escaped => None,
    });
    names.collect()
}

/// What comes in place of a text.
pub(super) enum Filled {
    /// Another text.
    Text(String),
    /// A value.
    Json(Json),
}

fn filled(text: &str, kind: &Kind, variables: Variables<'_>) -> Result<Filled, Vec<String>> {
    let parts = parts(text).map_err(|words| vec![words])?;
    let mut missing = Vec::new();
    if let ([Part::Given(name)], Kind::Json | Kind::JsonMap, Some(value)) =
        (parts.as_slice(), kind, parts.first().and_then(|part| given(part, variables)))
        && !name.is_empty()
    {
        return Ok(Filled::Json(value.clone()));
    }
    let mut out = String::with_capacity(text.len());
    for part in parts {
        let value = match part {
            Part::Text(text) => {
                out.push_str(text);
                continue;
            }
            Part::Escaped => "${".to_string(),
            Part::Environment(name) => match variables.environment.get(name) {
                Some(value) => value.clone(),
                None => {
                    missing.push(format!("environment variable `{name}` is not set"));
                    continue;
                }
            },
            Part::Given(name) => match given(&part, variables) {
                Some(Json::String(value)) => value.clone(),
                Some(other) => other.to_string(),
                None if variables.more_to_come => format!("${{{name}}}"),
                None => {
                    missing.push(undefined(name, variables));
                    continue;
                }
            },
        };
        match kind {
            Kind::Pattern => out.push_str(&checks::escape(&variables.redactor.text(&value))),
            _ => out.push_str(&value),
        }
    }
    if missing.is_empty() { Ok(Filled::Text(out)) } else { Err(missing) }
}

fn given<'v>(part: &Part<'_>, variables: Variables<'v>) -> Option<&'v Json> {
    match part {
        Part::Given(name) => variables.given.get(*name),
        _ => None,
    }
}

fn undefined(name: &str, variables: Variables<'_>) -> String {
    if variables.environment.contains_key(name) {
        return format!(
            "variable `{name}` is not defined; for the environment variable write `${{ENV.{name}}}`"
        );
    }
    let known: Vec<&str> = variables.given.keys().map(String::as_str).collect();
    match known.as_slice() {
        [] => format!("variable `{name}` is not defined: no hook gives it"),
        known => format!("variable `{name}` is not defined: hooks gave {}", known.join(", ")),
    }
}

/// Takes a text apart.
fn parts(text: &str) -> Result<Vec<Part<'_>>, String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let escaped = rest[..at].ends_with('$');
        let before = &rest[..at - usize::from(escaped)];
        if !before.is_empty() {
            parts.push(Part::Text(before));
        }
        rest = &rest[at + 2..];
        if escaped {
            parts.push(Part::Escaped);
            continue;
        }
        let Some(end) = rest.find('}') else {
            return Err("`${` without its `}`; to mean the text itself write `$${`".to_string());
        };
        let name = &rest[..end];
        let part = match name.strip_prefix("ENV.") {
            Some(name) => Part::Environment(name),
            None => Part::Given(name),
        };
        let bare = name.strip_prefix("ENV.").unwrap_or(name);
        let valid = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if bare.is_empty() || !bare.chars().all(valid) || bare.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(format!(
                "`${{{name}}}` is not a variable: names have letters, digits and `_`; for the text itself write `$${{`"
            ));
        }
        parts.push(part);
        rest = &rest[end + 1..];
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest));
    }
    Ok(parts)
}

/// What a text is where several kinds of values may stand.
pub(super) fn of_text(kind: &Kind) -> &Kind {
    match kind {
        Kind::OneOf(kinds) => {
            let text = Value::String(String::new());
            kinds.iter().find(|kind| may_be(&text, kind)).map_or(kind, of_text)
        }
        kind => kind,
    }
}

pub(super) fn may_be(value: &Value, kind: &Kind) -> bool {
    match kind {
        Kind::Json => true,
        Kind::Null => matches!(value, Value::Null),
        Kind::Bool | Kind::False => matches!(value, Value::Bool(_)),
        Kind::Integer { .. } | Kind::Number => matches!(value, Value::Number(_)),
        Kind::Text | Kind::NonEmptyText | Kind::Pattern | Kind::Url | Kind::Choice(_) => {
            matches!(value, Value::String(_))
        }
        Kind::List(_) | Kind::NonEmptyList(_) => matches!(value, Value::List(_)),
        Kind::JsonMap | Kind::Map(_) | Kind::Shape(_) | Kind::Tagged(_) => matches!(value, Value::Map(_)),
        Kind::OneOf(kinds) => kinds.iter().any(|kind| may_be(value, kind)),
    }
}

/// A JSON value as nodes that all stand where the variable stood.
pub(super) fn from_json(json: Json, span: &std::ops::Range<usize>) -> Value {
    let node = |json| Node { value: from_json(json, span), span: span.clone(), plain: false };
    match json {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Bool(truth),
        Json::Number(number) => Value::Number(number),
        Json::String(text) => Value::String(text),
        Json::Array(items) => Value::List(items.into_iter().map(node).collect()),
        Json::Object(members) => {
            let entries = members.into_iter().map(|(key, value)| hotseat_document::Entry {
                key: hotseat_document::Key { text: key, span: span.clone() },
                value: node(value),
            });
            Value::Map(entries.collect())
        }
    }
}

/// A mistake at a place.
pub(super) fn mistake(place: Option<Place>, message: impl Into<String>) -> Diagnostic {
    let diagnostic = Diagnostic::new(message);
    match place {
        Some(place) => diagnostic.at(place),
        None => diagnostic,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fill(text: &str, kind: &Kind) -> Result<Json, Vec<String>> {
        let environment = BTreeMap::from([("HOST".to_string(), "a.b".to_string())]);
        let given = BTreeMap::from([
            ("ID".to_string(), json!("x.1")),
            ("N".to_string(), json!(5)),
            ("S".to_string(), json!("secret value")),
            ("O".to_string(), json!({"a": 1})),
        ]);
        let redactor = Redactor::new([("N".to_string(), "secret value".to_string())]);
        let variables =
            Variables { environment: &environment, given: &given, more_to_come: false, redactor: &redactor };
        filled(text, kind, variables).map(|filled| match filled {
            Filled::Text(text) => json!(text),
            Filled::Json(json) => json,
        })
    }

    #[test]
    fn values_are_put_in_place() {
        for (text, kind, expected) in [
            ("id ${ID}!", Kind::Text, json!("id x.1!")),
            ("${ENV.HOST}/${N}", Kind::Text, json!("a.b/5")),
            ("${O}", Kind::Text, json!("{\"a\":1}")),
            ("${O}", Kind::Json, json!({"a": 1})),
            ("${N}", Kind::Json, json!(5)),
            ("n=${N}", Kind::Json, json!("n=5")),
            ("^${ID}$", Kind::Pattern, json!(r"^x\.1$")),
            ("^${S}$", Kind::Pattern, json!(r"^\[redacted:N\]$")),
            ("${S}", Kind::Text, json!("secret value")),
            ("$${ID} and $${", Kind::Text, json!("${ID} and ${")),
            ("$5 {a} $x", Kind::Text, json!("$5 {a} $x")),
            (&literal("${ID} $${ID} $$${ ${"), Kind::Text, json!("${ID} $${ID} $$${ ${")),
        ] {
            assert_eq!(fill(text, &kind), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_not_defined_or_not_a_name_is_refused() {
        for (text, words) in [
            ("${NOPE}", "variable `NOPE` is not defined: hooks gave ID, N, O, S"),
            ("${HOST}", "write `${ENV.HOST}`"),
            ("${ENV.NOPE}", "environment variable `NOPE` is not set"),
            ("${a-b}", "not a variable"),
            ("${}", "not a variable"),
            ("${1A}", "not a variable"),
            ("${OPEN", "without its `}`"),
        ] {
            let error = fill(text, &Kind::Text).unwrap_err();
            assert!(error.len() == 1 && error[0].contains(words), "{text}: {error:?}");
        }
    }
}
