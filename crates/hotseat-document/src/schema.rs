//! JSON Schemas and reference pages, generated from shapes.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::shape::{Field, Kind, Shape};

/// Returns the JSON Schema (draft 2020-12) of a shape. Referenced shapes become `$defs` under their names.
pub fn json_schema(shape: &'static Shape, title: &str, id: &str) -> Value {
    let mut schema = Map::new();
    schema.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    schema.insert("$id".into(), json!(id));
    schema.insert("title".into(), json!(title));
    schema.append(&mut shape_schema(shape, shape));
    let inner = shape.all().into_iter().skip(1);
    let definitions: Map<_, _> =
        inner.map(|inner| (inner.name.to_owned(), Value::Object(shape_schema(inner, shape)))).collect();
    if !definitions.is_empty() {
        schema.insert("$defs".into(), Value::Object(definitions));
    }
    Value::Object(schema)
}

fn shape_schema(shape: &Shape, root: &Shape) -> Map<String, Value> {
    let mut properties = Map::new();
    let mut required = Vec::new();
    let mut rules = Vec::new();
    for field in shape.fields {
        properties.insert(field.key.to_owned(), field_schema(field, root));
        for alias in field.aliases {
            let mut schema = kind_schema(&field.kind, root);
            schema.insert("description".into(), json!(format!("Another spelling of `{}`.", field.key)));
            properties.insert((*alias).to_owned(), Value::Object(schema));
        }
        let spellings: Vec<_> = field.spellings().collect();
        match (field.required, spellings.as_slice()) {
            (true, [key]) => required.push(json!(key)),
            (true, spellings) => {
                let one: Vec<_> =
                    spellings.iter().map(|spelling| json!({ "required": [spelling] })).collect();
                rules.push(json!({ "oneOf": one }));
            }
            (false, spellings) => {
                for (number, second) in spellings.iter().enumerate() {
                    let both = |first| json!({ "not": { "required": [first, second] } });
                    rules.extend(spellings[..number].iter().map(both));
                }
            }
        }
    }
    let mut schema = Map::new();
    schema.insert("description".into(), json!(shape.doc));
    schema.insert("type".into(), json!("object"));
    schema.insert("properties".into(), Value::Object(properties));
    schema.insert("additionalProperties".into(), json!(false));
    if !required.is_empty() {
        schema.insert("required".into(), Value::Array(required));
    }
    if !rules.is_empty() {
        schema.insert("allOf".into(), Value::Array(rules));
    }
    schema
}

fn field_schema(field: &Field, root: &Shape) -> Value {
    let mut schema = kind_schema(&field.kind, root);
    schema.insert("description".into(), json!(field.doc));
    if let Some(default) = field.default_json() {
        schema.insert("default".into(), default);
    }
    Value::Object(schema)
}

fn kind_schema(kind: &Kind, root: &Shape) -> Map<String, Value> {
    let schema = match kind {
        Kind::Null => json!({ "type": "null" }),
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::False => json!({ "const": false }),
        Kind::Text => json!({ "type": "string" }),
        Kind::NonEmptyText => json!({ "type": "string", "pattern": "\\S" }),
        Kind::Integer { min, max } => {
            let mut schema = Map::new();
            schema.insert("type".into(), json!("integer"));
            if *min != i64::MIN {
                schema.insert("minimum".into(), json!(min));
            }
            if *max != i64::MAX {
                schema.insert("maximum".into(), json!(max));
            }
            return schema;
        }
        Kind::Number => json!({ "type": "number" }),
        Kind::Pattern => json!({ "type": "string", "minLength": 1 }),
        Kind::Json => json!({}),
        Kind::JsonMap => json!({ "type": "object" }),
        Kind::Url => json!({ "type": "string", "pattern": URL_PATTERN }),
        Kind::Choice([word]) => json!({ "const": word }),
        Kind::Choice(words) => json!({ "enum": words }),
        Kind::List(kind) => json!({ "type": "array", "items": kind_schema(kind, root) }),
        Kind::NonEmptyList(kind) => {
            json!({ "type": "array", "items": kind_schema(kind, root), "minItems": 1 })
        }
        Kind::Map(kind) => json!({ "type": "object", "additionalProperties": kind_schema(kind, root) }),
        Kind::Shape(shape) if std::ptr::eq(*shape, root) => json!({ "$ref": "#" }),
        Kind::Shape(shape) => json!({ "$ref": format!("#/$defs/{}", shape.name) }),
        Kind::Tagged(tagged) => {
            let shapes = tagged.all().map(|shape| kind_schema(&Kind::Shape(shape), root));
            json!({ "anyOf": shapes.collect::<Vec<_>>() })
        }
        Kind::OneOf(kinds) => {
            json!({ "anyOf": kinds.iter().map(|kind| kind_schema(kind, root)).collect::<Vec<_>>() })
        }
    };
    match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

/// Accepts the same texts as the check of [`Kind::Url`].
const URL_PATTERN: &str = r"^(https?://[^\s/?#:]\S*|\S*\$\{\S*)$";

/// Returns a Markdown reference page with a section and a table for the shape and each shape it refers to.
pub fn reference_markdown(shape: &'static Shape) -> String {
    let mut page = String::new();
    for shape in shape.all() {
        if !page.is_empty() {
            page.push('\n');
        }
        // Writing to a string cannot fail.
        let _ = write!(page, "## {}\n\n{}\n\n", shape.name, shape.doc);
        page.push_str("| key | type | default | meaning |\n|---|---|---|---|\n");
        for field in shape.fields {
            page.push_str(&field_row(field));
        }
    }
    page
}

fn field_row(field: &Field) -> String {
    let keys = field.spellings().map(|spelling| format!("`{spelling}`")).collect::<Vec<_>>().join(", ");
    let default = match field.default {
        Some(default) => format!("`{default}`"),
        None if field.required => "required".to_owned(),
        None => String::new(),
    };
    let cells = [keys, type_markdown(&field.kind), default, field.doc.to_owned()];
    let cells = cells.map(|cell| cell.replace('|', "\\|").replace('\n', " "));
    format!("| {} |\n", cells.join(" | "))
}

fn type_markdown(kind: &Kind) -> String {
    match kind {
        Kind::Null => "nothing".to_owned(),
        Kind::Bool => "true or false".to_owned(),
        Kind::False => "`false`".to_owned(),
        Kind::Text | Kind::NonEmptyText => "text".to_owned(),
        Kind::Integer { .. } | Kind::Pattern | Kind::Url | Kind::Number => {
            let words = kind.describe();
            words.trim_start_matches("a ").to_owned()
        }
        Kind::Json => "any value".to_owned(),
        Kind::JsonMap => "mapping".to_owned(),
        Kind::Choice(_) => kind.describe(),
        Kind::List(kind) | Kind::NonEmptyList(kind) => format!("list of {}", type_markdown(kind)),
        Kind::Map(kind) => format!("mapping of names to {}", type_markdown(kind)),
        Kind::Shape(shape) => format!("[{}](#{})", shape.name, anchor(shape.name)),
        Kind::Tagged(tagged) => {
            let shapes = tagged.all().map(|shape| type_markdown(&Kind::Shape(shape)));
            shapes.collect::<Vec<_>>().join(" or ")
        }
        Kind::OneOf(kinds) => kinds.iter().map(type_markdown).collect::<Vec<_>>().join(" or "),
    }
}

/// Returns the anchor that Markdown renderers give to a heading.
fn anchor(heading: &str) -> String {
    heading
        .chars()
        .filter_map(|character| match character {
            ' ' => Some('-'),
            '-' | '_' => Some(character),
            _ if character.is_alphanumeric() => Some(character.to_ascii_lowercase()),
            _ => None,
        })
        .collect()
}
