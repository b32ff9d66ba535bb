//! JSON Schemas and reference pages, generated from shapes.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::shape::{Field, Kind, Shape};

/// Variables that may stand in place of values that are no text.
#[derive(Debug, Clone, Copy)]
pub struct SchemaVariable {
    /// Name of its definition in the schema. No shape has this name.
    pub name: &'static str,
    /// Description for the reader of the schema.
    pub doc: &'static str,
    /// Regular expression of a text that is such a variable.
    pub pattern: &'static str,
}

/// What the schemas of kinds depend on.
#[derive(Clone, Copy)]
struct SchemaContext<'s> {
    root: &'s Shape,
    variable: Option<SchemaVariable>,
}

/// Returns the JSON Schema (draft 2020-12) of a shape. Referenced shapes become `$defs` under their names. A variable is
/// accepted in place of every value.
pub fn json_schema(shape: &'static Shape, title: &str, id: &str, variable: Option<SchemaVariable>) -> Value {
    let context = SchemaContext { root: shape, variable };
    let mut schema = Map::new();
    schema.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    schema.insert("$id".into(), json!(id));
    schema.insert("title".into(), json!(title));
    schema.append(&mut shape_schema(shape, context));
    let inner = shape.all().into_iter().skip(1);
    let mut definitions: Map<_, _> =
        inner.map(|inner| (inner.name.to_owned(), Value::Object(shape_schema(inner, context)))).collect();
    if let Some(SchemaVariable { name, doc, pattern }) = variable {
        let definition = json!({ "description": doc, "type": "string", "pattern": pattern });
        definitions.insert(name.to_owned(), definition);
    }
    if !definitions.is_empty() {
        schema.insert("$defs".into(), Value::Object(definitions));
    }
    Value::Object(schema)
}

fn shape_schema(shape: &Shape, context: SchemaContext<'_>) -> Map<String, Value> {
    let mut properties = Map::new();
    let mut required = Vec::new();
    let mut rules = Vec::new();
    for field in shape.fields {
        properties.insert(field.key.to_owned(), field_schema(field, context));
        for alias in field.aliases {
            let mut schema = kind_schema(&field.kind, context);
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

fn field_schema(field: &Field, context: SchemaContext<'_>) -> Value {
    let mut schema = kind_schema(&field.kind, context);
    schema.insert("description".into(), json!(field.doc));
    if let Some(default) = field.default_json() {
        schema.insert("default".into(), default);
    }
    Value::Object(schema)
}

/// Returns the schema of a kind, with the variable in place of its values.
fn kind_schema(kind: &Kind, context: SchemaContext<'_>) -> Map<String, Value> {
    let mut schema = value_schema(kind, context);
    // Editors tell shapes apart by their constants, so these stay as they are.
    let needs_variable = !accepts_variables(kind) && !matches!(kind, Kind::Choice([_]));
    let Some(variable) = context.variable.filter(|_| needs_variable) else { return schema };
    let variable = json!({ "$ref": format!("#/$defs/{}", variable.name) });
    match schema.get_mut("anyOf") {
        Some(Value::Array(kinds)) => kinds.push(variable),
        _ => schema = Map::from_iter([("anyOf".to_owned(), json!([schema, variable]))]),
    }
    schema
}

fn accepts_variables(kind: &Kind) -> bool {
    match kind {
        Kind::Text
        | Kind::NonEmptyText
        | Kind::Pattern
        | Kind::Duration
        | Kind::JsonPath
        | Kind::Json
        | Kind::ExpectedJson
        | Kind::Url => true,
        Kind::OneOf(kinds) => kinds.iter().any(accepts_variables),
        _ => false,
    }
}

/// Returns the schema of the values of a kind.
fn value_schema(kind: &Kind, context: SchemaContext<'_>) -> Map<String, Value> {
    let root = context.root;
    let schema = match kind {
        Kind::Null => json!({ "type": "null" }),
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::False => json!({ "const": false }),
        Kind::Text => json!({ "type": "string" }),
        Kind::NonEmptyText | Kind::Duration | Kind::JsonPath => json!({ "type": "string", "pattern": "\\S" }),
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
        Kind::Json | Kind::ExpectedJson => json!({}),
        Kind::JsonMap | Kind::JsonSchema => json!({ "type": "object" }),
        Kind::Url => json!({ "type": "string", "pattern": URL_PATTERN }),
        Kind::Choice([word]) => json!({ "const": word }),
        Kind::Choice(words) => json!({ "enum": words }),
        Kind::List(kind) => json!({ "type": "array", "items": kind_schema(kind, context) }),
        Kind::NonEmptyList(kind) => {
            json!({ "type": "array", "items": kind_schema(kind, context), "minItems": 1 })
        }
        Kind::Map(kind) => json!({ "type": "object", "additionalProperties": kind_schema(kind, context) }),
        Kind::Shape(shape) if std::ptr::eq(*shape, root) => json!({ "$ref": "#" }),
        Kind::Shape(shape) => json!({ "$ref": format!("#/$defs/{}", shape.name) }),
        Kind::Tagged(tagged) => {
            let shapes = tagged.all().map(|shape| value_schema(&Kind::Shape(shape), context));
            json!({ "anyOf": shapes.collect::<Vec<_>>() })
        }
        Kind::OneOf(kinds) => {
            json!({ "anyOf": kinds.iter().map(|kind| value_schema(kind, context)).collect::<Vec<_>>() })
        }
    };
    match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

/// Accepts the same texts as the check of [`Kind::Url`].
const URL_PATTERN: &str = r"^([Hh][Tt][Tt][Pp][Ss]?://[^\s/?#:]\S*|\S*\$\{\S*)$";

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
        Kind::Text | Kind::NonEmptyText | Kind::JsonPath => "text".to_owned(),
        Kind::Duration => "duration".to_owned(),
        Kind::Integer { .. } | Kind::Pattern | Kind::Url | Kind::Number => {
            let words = kind.describe();
            words.trim_start_matches("a ").to_owned()
        }
        Kind::Json | Kind::ExpectedJson => "any value".to_owned(),
        Kind::JsonMap | Kind::JsonSchema => "mapping".to_owned(),
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
