//! JSON Schema subset for tools and tasks: validates and generates values.

use std::collections::HashSet;

use hotseat_trace::{canonical_text, json_equal};
use serde_json::{Map, Number, Value, json};

use crate::random::DeterministicRandom;

/// Supported keywords. All others are rejected, so that none is silently ignored.
const SUPPORTED_KEYWORDS: &[&str] = &[
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "default",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "title",
    "description",
    "format",
    "$schema",
];
/// Further keywords, accepted without validation. Only client tools may use them, because a client validates
/// the input of its tools itself.
const UNCHECKED_KEYWORDS: &[&str] = &[
    "$ref",
    "$defs",
    "definitions",
    "$id",
    "$anchor",
    "$comment",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "prefixItems",
    "contains",
    "minContains",
    "maxContains",
    "pattern",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentEncoding",
    "contentMediaType",
    "deprecated",
    "examples",
    "readOnly",
    "writeOnly",
    "nullable",
];
const TYPES: &[&str] = &["object", "array", "string", "number", "integer", "boolean", "null"];
/// Maximum nesting depth of a schema.
const MAX_DEPTH: usize = 64;

/// Returns the schema of an object with exactly these members, all required.
pub fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    let required: Vec<_> = members.iter().map(|(name, _)| *name).collect();
    let properties: Map<String, Value> =
        members.iter().map(|(name, schema)| ((*name).to_string(), schema.clone())).collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

/// Returns the schema of a string.
pub fn string() -> Value {
    json!({"type": "string"})
}

/// Returns the schema of a number.
pub fn number() -> Value {
    json!({"type": "number"})
}

/// Returns the schema of an integer.
pub fn integer() -> Value {
    json!({"type": "integer"})
}

/// Returns the schema of a boolean.
pub fn boolean() -> Value {
    json!({"type": "boolean"})
}

/// Returns the schema of a list.
pub fn array(items: &Value) -> Value {
    json!({"type": "array", "items": items})
}

/// A schema that is invalid, or not supported.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say the same")]
pub enum SchemaError {
    #[error("the schema is nested too deeply")]
    TooDeep,
    #[error("a JSON Schema must be an object")]
    NoObject,
    #[error("the keyword `{0}` is not supported")]
    Unsupported(String),
    #[error("`{0}` cannot be {1}")]
    InvalidValue(String, Value),
}

impl SchemaError {
    /// Returns the keyword that is not supported or has an invalid value.
    pub fn keyword(&self) -> Option<&str> {
        match self {
            SchemaError::TooDeep | SchemaError::NoObject => None,
            SchemaError::Unsupported(keyword) | SchemaError::InvalidValue(keyword, _) => Some(keyword),
        }
    }
}

/// Checks that a schema is valid and supported.
///
/// # Errors
/// If a keyword is not supported or has an invalid value.
pub fn check(schema: &Value) -> Result<(), SchemaError> {
    check_at(schema, MAX_DEPTH, &[SUPPORTED_KEYWORDS])
}

/// Checks the schema of a client tool, which may use keywords that are not validated here.
///
/// # Errors
/// If a keyword is not supported or has an invalid value.
pub fn check_client_schema(schema: &Value) -> Result<(), SchemaError> {
    check_at(schema, MAX_DEPTH, &[SUPPORTED_KEYWORDS, UNCHECKED_KEYWORDS])
}

fn check_at(schema: &Value, depth: usize, known: &[&[&str]]) -> Result<(), SchemaError> {
    let Some(depth) = depth.checked_sub(1) else { return Err(SchemaError::TooDeep) };
    let keywords = match schema {
        Value::Bool(_) => return Ok(()),
        Value::Object(keywords) => keywords,
        _ => return Err(SchemaError::NoObject),
    };
    for (keyword, value) in keywords {
        if !known.iter().any(|known| known.contains(&keyword.as_str())) {
            return Err(SchemaError::Unsupported(keyword.clone()));
        }
        let fits = match keyword.as_str() {
            "type" => types(value).is_some_and(|names| names.iter().all(|name| TYPES.contains(name))),
            "properties" => value.is_object(),
            "required" => value.as_array().is_some_and(|names| names.iter().all(Value::is_string)),
            "additionalProperties" => value.is_boolean() || value.is_object(),
            "enum" => value.as_array().is_some_and(|values| !values.is_empty()),
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
            "multipleOf" => value.as_f64().is_some_and(|step| step > 0.0),
            "minLength" | "maxLength" | "minItems" | "maxItems" => value.is_u64(),
            "uniqueItems" => value.is_boolean(),
            _ => true,
        };
        if !fits {
            return Err(SchemaError::InvalidValue(keyword.clone(), value.clone()));
        }
    }
    let members = keywords.get("properties").and_then(Value::as_object);
    for inner in members.into_iter().flat_map(Map::values) {
        check_at(inner, depth, known)?;
    }
    ["items", "additionalProperties"]
        .iter()
        .filter_map(|name| keywords.get(*name))
        .try_for_each(|s| check_at(s, depth, known))
}

fn types(value: &Value) -> Option<Vec<&str>> {
    match value {
        Value::String(name) => Some(vec![name]),
        Value::Array(names) => names.iter().map(Value::as_str).collect(),
        _ => None,
    }
}

/// Returns all violations of a schema, each with its position in the value.
pub fn violations(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    validate(schema, value, "", &mut found);
    found
}

fn validate(schema: &Value, value: &Value, place: &str, found: &mut Vec<String>) {
    let keywords = match schema {
        Value::Bool(true) => return,
        Value::Bool(false) => return found.push(violation(place, "no value is allowed here")),
        Value::Object(keywords) => keywords,
        _ => return,
    };
    if let Some(names) = keywords.get("type").and_then(types)
        && !names.iter().any(|name| has_type(value, name))
    {
        return found
            .push(violation(place, &format!("expected {}, got {}", names.join(" or "), type_name(value))));
    }
    if let Some(values) = keywords.get("enum").and_then(Value::as_array)
        && !values.iter().any(|allowed| json_equal(allowed, value))
    {
        let allowed: Vec<_> = values.iter().map(Value::to_string).collect();
        let one_of = if allowed.len() > 1 { "one of " } else { "" };
        found.push(violation(place, &format!("expected {one_of}{}, got {value}", allowed.join(", "))));
    }
    if let Some(constant) = keywords.get("const")
        && !json_equal(constant, value)
    {
        found.push(violation(place, &format!("expected {constant}, got {value}")));
    }
    match value {
        Value::Number(number) => validate_number(keywords, number, place, found),
        Value::String(text) => {
            validate_size(
                keywords,
                ("minLength", "maxLength"),
                text.chars().count(),
                "characters",
                place,
                found,
            );
        }
        Value::Array(items) => {
            validate_size(keywords, ("minItems", "maxItems"), items.len(), "items", place, found);
            if keywords.get("uniqueItems") == Some(&Value::Bool(true)) {
                let distinct: HashSet<String> = items.iter().map(canonical_text).collect();
                if distinct.len() < items.len() {
                    found.push(violation(place, "items must be unique"));
                }
            }
            if let Some(inner) = keywords.get("items") {
                for (index, item) in items.iter().enumerate() {
                    validate(inner, item, &format!("{place}[{index}]"), found);
                }
            }
        }
        Value::Object(members) => validate_members(keywords, members, place, found),
        Value::Null | Value::Bool(_) => {}
    }
}

fn validate_number(keywords: &Map<String, Value>, number: &Number, place: &str, found: &mut Vec<String>) {
    let Some(number) = number.as_f64() else { return };
    let limit = |name: &str| keywords.get(name).and_then(Value::as_f64);
    let mut breaks = |broken: bool, words: String| {
        if broken {
            found.push(violation(place, &words));
        }
    };
    if let Some(least) = limit("minimum") {
        breaks(number < least, format!("{number} is less than {least}"));
    }
    if let Some(most) = limit("maximum") {
        breaks(number > most, format!("{number} is more than {most}"));
    }
    if let Some(least) = limit("exclusiveMinimum") {
        breaks(number <= least, format!("{number} is not more than {least}"));
    }
    if let Some(most) = limit("exclusiveMaximum") {
        breaks(number >= most, format!("{number} is not less than {most}"));
    }
    if let Some(step) = limit("multipleOf") {
        let times = number / step;
        breaks((times - times.round()).abs() > 1e-9, format!("{number} is not a multiple of {step}"));
    }
}

fn validate_size(
    keywords: &Map<String, Value>,
    (least, most): (&str, &str),
    size: usize,
    what: &str,
    place: &str,
    found: &mut Vec<String>,
) {
    let limit =
        |name: &str| keywords.get(name).and_then(Value::as_u64).and_then(|limit| usize::try_from(limit).ok());
    if limit(least).is_some_and(|least| size < least) || limit(most).is_some_and(|most| size > most) {
        found.push(violation(place, &format!("{size} {what} is outside the allowed range")));
    }
}

fn validate_members(
    keywords: &Map<String, Value>,
    members: &Map<String, Value>,
    place: &str,
    found: &mut Vec<String>,
) {
    for name in
        keywords.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    {
        if !members.contains_key(name) {
            found.push(violation(place, &format!("`{name}` is missing")));
        }
    }
    let properties = keywords.get("properties").and_then(Value::as_object);
    for (name, value) in members {
        let inner = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
        match properties.and_then(|properties| properties.get(name)) {
            Some(schema) => validate(schema, value, &inner, found),
            None => match keywords.get("additionalProperties") {
                Some(Value::Bool(false)) => {
                    found.push(violation(place, &format!("`{name}` is not expected")))
                }
                Some(schema) => validate(schema, value, &inner, found),
                None => {}
            },
        }
    }
}

fn violation(place: &str, words: &str) -> String {
    if place.is_empty() { words.to_string() } else { format!("{place}: {words}") }
}

fn has_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => false,
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Generates a value that matches the schema and contains every declared member.
pub fn generate(schema: &Value, random: &mut DeterministicRandom) -> Value {
    let Value::Object(keywords) = schema else { return Value::Null };
    if let Some(value) = keywords.get("const").or_else(|| keywords.get("default")) {
        return value.clone();
    }
    if let Some(values) = keywords.get("enum").and_then(Value::as_array)
        && !values.is_empty()
    {
        return values[random.below(values.len())].clone();
    }
    let name = keywords.get("type").and_then(types).and_then(|names| names.first().copied());
    let size = |least: &str, most: &str, usual: usize| {
        let limit =
            |name: &str| keywords.get(name).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
        let least = limit(least).unwrap_or(0);
        usual.clamp(least, limit(most).unwrap_or(usize::MAX).max(least))
    };
    match name {
        Some("object") => {
            let members = keywords.get("properties").and_then(Value::as_object);
            let members = members.into_iter().flatten();
            Value::Object(members.map(|(name, schema)| (name.clone(), generate(schema, random))).collect())
        }
        Some("array") => {
            let items = keywords.get("items").unwrap_or(&Value::Null);
            let unique = keywords.get("uniqueItems") == Some(&Value::Bool(true));
            let mut made: Vec<Value> = Vec::new();
            for _ in 0..size("minItems", "maxItems", 2) {
                // Lists of unique items become shorter if no new item is found after a number of attempts.
                let next =
                    (0..32).map(|_| generate(items, random)).find(|item| !unique || !made.contains(item));
                made.extend(next);
            }
            Value::Array(made)
        }
        Some("string") => {
            let letter = |random: &mut DeterministicRandom| {
                char::from(b'a' + u8::try_from(random.below(26)).unwrap_or(0))
            };
            Value::String((0..size("minLength", "maxLength", 8)).map(|_| letter(random)).collect())
        }
        Some("integer") => json!(generate_number(keywords, random).round() as i64),
        Some("number") => json!(generate_number(keywords, random)),
        Some("boolean") => Value::Bool(random.below(2) == 1),
        Some(_) | None => Value::Null,
    }
}

fn generate_number(keywords: &Map<String, Value>, random: &mut DeterministicRandom) -> f64 {
    let limit = |name: &str| keywords.get(name).and_then(Value::as_f64);
    let whole = keywords.get("type") == Some(&json!("integer"));
    let step = limit("multipleOf").unwrap_or(if whole { 1.0 } else { 0.5 });
    let least = limit("minimum").or_else(|| limit("exclusiveMinimum").map(|n| n + step / 2.0));
    let most = limit("maximum").or_else(|| limit("exclusiveMaximum").map(|n| n - step / 2.0));
    let from = least.unwrap_or_else(|| most.map_or(0.0, |most| most.min(0.0) - 100.0 * step));
    let to = most.unwrap_or(from + 100.0 * step);
    let (first, last) = ((from / step).ceil(), (to / step).floor());
    let choices = (last - first).max(0.0) as usize;
    (first + random.below(choices + 1) as f64) * step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_every_violation_with_its_position() {
        let schema = object([("text", string()), ("items", array(&integer()))]);
        let found = violations(&schema, &json!({"items": [1, "2"], "more": true}));
        assert_eq!(
            found,
            ["`text` is missing", "items[1]: expected integer, got string", "`more` is not expected"]
        );
    }

    #[test]
    fn a_schema_without_a_type_accepts_anything() {
        assert!(violations(&json!({}), &json!([1, "two"])).is_empty());
    }

    #[test]
    fn rejects_unsupported_keywords() {
        let error = check(&json!({"typ": "string"})).unwrap_err();
        assert_eq!(
            (error.keyword(), &*error.to_string()),
            (Some("typ"), "the keyword `typ` is not supported")
        );
        assert!(check(&json!({"type": "strng"})).is_err());
    }

    #[test]
    fn generated_values_match_the_schema() {
        let schemas = [
            object([("a", string()), ("b", integer()), ("c", array(&boolean()))]),
            json!({"type": "integer", "minimum": 3, "maximum": 9, "multipleOf": 3}),
            json!({"type": "number", "exclusiveMaximum": -1}),
            json!({"type": "string", "minLength": 20, "maxLength": 30}),
            json!({"enum": ["x", 2, null]}),
            json!({"type": "array", "items": integer(), "minItems": 5, "uniqueItems": true}),
        ];
        for schema in schemas {
            for seed in 0..50 {
                let value = generate(&schema, &mut DeterministicRandom::new(seed));
                assert_eq!(violations(&schema, &value), [""; 0], "{schema} {value}");
            }
        }
    }
}
