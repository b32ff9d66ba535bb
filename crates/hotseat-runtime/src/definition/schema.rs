//! JSON Schema, as far as tools and tasks need it: says what is wrong with a value, and makes values up.

use serde_json::{Map, Number, Value, json};

use crate::random::Random;

/// The keywords that are understood. Any other is refused, so that none is passed over in silence.
const KEYWORDS: &[&str] = &[
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
/// Further keywords of JSON Schema. Nothing is checked by them here, so only schemas of others may use them: a client
/// checks what its tools are given by itself.
const CARRIED: &[&str] = &[
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
/// How deep a schema may be nested.
const DEPTH: usize = 64;

/// An object with exactly these members, all of them required.
pub fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    let required: Vec<_> = members.iter().map(|(name, _)| *name).collect();
    let properties: Map<String, Value> =
        members.iter().map(|(name, schema)| ((*name).to_string(), schema.clone())).collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

/// A text.
pub fn string() -> Value {
    json!({"type": "string"})
}

/// A number.
pub fn number() -> Value {
    json!({"type": "number"})
}

/// A whole number.
pub fn integer() -> Value {
    json!({"type": "integer"})
}

/// True or false.
pub fn boolean() -> Value {
    json!({"type": "boolean"})
}

/// A list of these.
pub fn array(items: &Value) -> Value {
    json!({"type": "array", "items": items})
}

/// Whether this is a schema that can be used.
///
/// # Errors
/// Says which keyword is not understood or has a value that it cannot have.
pub fn check(schema: &Value) -> Result<(), String> {
    check_at(schema, DEPTH, &[KEYWORDS])
}

/// Whether this is a schema that can be used for a tool of somebody else, who checks more than is checked here.
///
/// # Errors
/// Says which keyword is not understood or has a value that it cannot have.
pub fn check_foreign(schema: &Value) -> Result<(), String> {
    check_at(schema, DEPTH, &[KEYWORDS, CARRIED])
}

fn check_at(schema: &Value, depth: usize, known: &[&[&str]]) -> Result<(), String> {
    let Some(depth) = depth.checked_sub(1) else { return Err("it is nested too deeply".to_string()) };
    let keywords = match schema {
        Value::Bool(_) => return Ok(()),
        Value::Object(keywords) => keywords,
        _ => return Err("a JSON Schema is an object".to_string()),
    };
    for (keyword, value) in keywords {
        if !known.iter().any(|known| known.contains(&keyword.as_str())) {
            return Err(format!("the keyword `{keyword}` is not understood"));
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
            return Err(format!("`{keyword}` cannot be {value}"));
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

/// Everything that is wrong with a value, each with the place in it.
pub fn violations(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    validate(schema, value, "", &mut found);
    found
}

fn validate(schema: &Value, value: &Value, place: &str, found: &mut Vec<String>) {
    let keywords = match schema {
        Value::Bool(true) => return,
        Value::Bool(false) => return found.push(at(place, "nothing may stand here")),
        Value::Object(keywords) => keywords,
        _ => return,
    };
    if let Some(names) = keywords.get("type").and_then(types)
        && !names.iter().any(|name| is_of(value, name))
    {
        return found.push(at(place, &format!("expected {}, found {}", names.join(" or "), kind(value))));
    }
    if let Some(values) = keywords.get("enum").and_then(Value::as_array)
        && !values.iter().any(|allowed| equal(allowed, value))
    {
        let allowed: Vec<_> = values.iter().map(Value::to_string).collect();
        found.push(at(place, &format!("expected one of {}, found {value}", allowed.join(", "))));
    }
    if let Some(constant) = keywords.get("const")
        && !equal(constant, value)
    {
        found.push(at(place, &format!("expected {constant}, found {value}")));
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
                let doubled = items
                    .iter()
                    .enumerate()
                    .any(|(n, item)| items[..n].iter().any(|other| equal(other, item)));
                if doubled {
                    found.push(at(place, "items must differ from each other"));
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
            found.push(at(place, &words));
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
        found.push(at(place, &format!("{size} {what} are too few or too many")));
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
            found.push(at(place, &format!("`{name}` is missing")));
        }
    }
    let properties = keywords.get("properties").and_then(Value::as_object);
    for (name, value) in members {
        let inner = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
        match properties.and_then(|properties| properties.get(name)) {
            Some(schema) => validate(schema, value, &inner, found),
            None => match keywords.get("additionalProperties") {
                Some(Value::Bool(false)) => found.push(at(place, &format!("`{name}` is not expected"))),
                Some(schema) => validate(schema, value, &inner, found),
                None => {}
            },
        }
    }
}

fn at(place: &str, words: &str) -> String {
    if place.is_empty() { words.to_string() } else { format!("{place}: {words}") }
}

fn is_of(value: &Value, name: &str) -> bool {
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

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Whether two values are the same; numbers are compared as numbers.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| equal(a, b)))
        }
        (a, b) => a == b,
    }
}

/// Makes up a value that fits the schema; every declared member is there.
pub fn made_up(schema: &Value, random: &mut Random) -> Value {
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
            Value::Object(members.map(|(name, schema)| (name.clone(), made_up(schema, random))).collect())
        }
        Some("array") => {
            let items = keywords.get("items").unwrap_or(&Value::Null);
            let unique = keywords.get("uniqueItems") == Some(&Value::Bool(true));
            let mut made: Vec<Value> = Vec::new();
            for _ in 0..size("minItems", "maxItems", 2) {
                // Few values may fit, so a list of different ones is tried for a while and then left shorter.
                let next =
                    (0..32).map(|_| made_up(items, random)).find(|item| !unique || !made.contains(item));
                made.extend(next);
            }
            Value::Array(made)
        }
        Some("string") => {
            let letter = |random: &mut Random| char::from(b'a' + u8::try_from(random.below(26)).unwrap_or(0));
            Value::String((0..size("minLength", "maxLength", 8)).map(|_| letter(random)).collect())
        }
        Some("integer") => json!(made_up_number(keywords, random).round() as i64),
        Some("number") => json!(made_up_number(keywords, random)),
        Some("boolean") => Value::Bool(random.below(2) == 1),
        Some(_) | None => Value::Null,
    }
}

fn made_up_number(keywords: &Map<String, Value>, random: &mut Random) -> f64 {
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
    fn every_violation_is_listed_with_its_place() {
        let schema = object([("text", string()), ("items", array(&integer()))]);
        let found = violations(&schema, &json!({"items": [1, "2"], "more": true}));
        assert_eq!(
            found,
            ["`text` is missing", "items[1]: expected integer, found string", "`more` is not expected"]
        );
    }

    #[test]
    fn a_schema_without_a_type_accepts_anything() {
        assert!(violations(&json!({}), &json!([1, "two"])).is_empty());
    }

    #[test]
    fn a_keyword_that_is_not_understood_is_refused() {
        assert_eq!(check(&json!({"typ": "string"})), Err("the keyword `typ` is not understood".to_string()));
        assert!(check(&json!({"type": "strng"})).is_err());
    }

    #[test]
    fn what_is_made_up_fits() {
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
                let value = made_up(&schema, &mut Random::new(seed));
                assert_eq!(violations(&schema, &value), [""; 0], "{schema} {value}");
            }
        }
    }
}
