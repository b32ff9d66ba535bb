//! `schema`: the answer, or a value inside it, matches a JSON Schema.

use std::cell::Cell;

use hotseat_document::nearest;
use hotseat_schema::{JsonSchema, JsonSchemaError, SCHEMA_MAPS};
use hotseat_trace::TurnScope;
use serde_json::Value;

use super::answer::{answer, format_text};
use super::call_text::truncate;
use super::json_answer::{AnswerContent, find_json};
use super::json_path::{JsonPathQuery, PathSelection};
use super::{CheckBehavior, CheckDecision, ForbiddenTexts, format_list};

/// Maximum number of violations in a check result.
const MAX_VIOLATIONS: usize = 10;

/// Compiled JSON Schema of a check.
#[derive(Debug, Clone)]
pub struct CompiledSchema {
    schema: JsonSchema,
    /// The schema as written, which says what it names and forbids.
    source: Value,
}

/// An invalid schema.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say the same")]
pub enum CompiledSchemaError {
    #[error("this schema accepts every value")]
    AcceptsEverything,
    #[error("`{keyword}` is no keyword of JSON Schema{place}; did you mean `{near}`?", place = place_suffix(.pointer))]
    Misspelt { keyword: String, near: &'static str, pointer: String },
    #[error("this is not a JSON Schema: {message}{place}", place = place_suffix(.pointer))]
    Invalid { message: String, pointer: String },
    #[error("{0}")]
    UnsupportedPattern(JsonSchemaError),
    #[error("{}", JsonSchemaError::NoValidator)]
    NoValidator,
}

fn place_suffix(pointer: &str) -> String {
    if pointer.is_empty() { String::new() } else { format!(" at {pointer}") }
}

impl From<JsonSchemaError> for CompiledSchemaError {
    fn from(error: JsonSchemaError) -> Self {
        match error {
            JsonSchemaError::Invalid { message, pointer } => {
                CompiledSchemaError::Invalid { message, pointer }
            }
            JsonSchemaError::TooManySteps(_) => {
                CompiledSchemaError::Invalid { message: error.to_string(), pointer: String::new() }
            }
            JsonSchemaError::UnsupportedPattern { .. } => CompiledSchemaError::UnsupportedPattern(error),
            JsonSchemaError::NoValidator => CompiledSchemaError::NoValidator,
        }
    }
}

impl CompiledSchema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// If the schema is invalid, has a misspelt keyword, or evidently accepts every value.
    pub fn compile(schema: &Value) -> Result<CompiledSchema, CompiledSchemaError> {
        let has_formats = schema.get("$schema").is_some();
        let reader = SchemaReader { root: schema, has_formats, read_schemas: Cell::new(0) };
        if reader.accepts_everything(schema, 0) {
            return Err(CompiledSchemaError::AcceptsEverything);
        }
        if let Some(misspelt) = reader.misspelt_keyword(schema, "", 0) {
            return Err(misspelt);
        }
        Ok(CompiledSchema { schema: JsonSchema::compile(schema)?, source: schema.clone() })
    }

    /// Lists the violations of a value. Fails if that takes too long.
    fn violations(&self, value: &Value) -> Result<Vec<String>, JsonSchemaError> {
        let found = self.schema.violations(value, MAX_VIOLATIONS)?;
        Ok(found.iter().map(|violation| truncate(violation)).collect())
    }
}

/// Keywords that can reject a secret and accept its mark: the mark is a text of another length, in place of a number or a name, too.
const FORBIDDING_KEYWORDS: [&str; 12] = [
    "exclusiveMaximum",
    "exclusiveMinimum",
    "if",
    "maxContains",
    "maxLength",
    "maximum",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "patternProperties",
    "propertyNames",
];

/// Returns true if a schema contains a keyword that forbids values.
fn forbids_values(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            FORBIDDING_KEYWORDS.iter().any(|keyword| members.contains_key(*keyword))
                || members.values().any(forbids_values)
        }
        Value::Array(entries) => entries.iter().any(forbids_values),
        _ => false,
    }
}

/// Maximum depth of nested and referred schemas, and maximum number of schemas that are read. Schemas may refer to themselves.
const MAX_DEPTH: usize = 64;
const MAX_READ_SCHEMAS: usize = 10_000;

/// Finds what validators accept, although it asserts nothing.
struct SchemaReader<'a> {
    root: &'a Value,
    /// True if the schema names its draft: older ones check `format`.
    has_formats: bool,
    read_schemas: Cell<usize>,
}

impl SchemaReader<'_> {
    /// Returns true if a schema evidently accepts every value.
    fn accepts_everything(&self, schema: &Value, depth: usize) -> bool {
        self.read_schemas.update(|read| read + 1);
        match schema {
            Value::Bool(accepts) => *accepts,
            Value::Object(members) if depth < MAX_DEPTH && self.read_schemas.get() <= MAX_READ_SCHEMAS => {
                let has_branch = members.contains_key("then") || members.contains_key("else");
                members.iter().all(|(keyword, value)| match keyword.as_str() {
                    "if" => !has_branch,
                    _ => self.asserts_nothing(keyword, value, depth + 1),
                })
            }
            _ => false,
        }
    }

    fn asserts_nothing(&self, keyword: &str, value: &Value, depth: usize) -> bool {
        let is_open = |schema: &Value| self.accepts_everything(schema, depth);
        let all_open = |schemas: &[Value]| schemas.iter().all(is_open);
        match (keyword, value) {
            ("$ref", Value::String(target)) => {
                let target = target.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
                target.is_some_and(is_open)
            }
            ("format", _) => !self.has_formats,
            ("required", Value::Array(names)) => names.is_empty(),
            ("minLength" | "minItems" | "minProperties", value) => value.as_f64() == Some(0.0),
            ("properties" | "patternProperties" | "dependentSchemas", Value::Object(schemas)) => {
                schemas.values().all(is_open)
            }
            ("allOf" | "prefixItems" | "items", Value::Array(schemas)) => all_open(schemas),
            ("anyOf", Value::Array(schemas)) => schemas.iter().any(is_open),
            (keyword, schema) if PART_SCHEMAS.contains(&keyword) => is_open(schema),
            ("not", Value::Bool(accepts)) => !accepts,
            ("not", Value::Object(members)) => members.get("not").is_some_and(is_open),
            (keyword, _) => !ASSERTING_KEYWORDS.contains(&keyword),
        }
    }

    /// Returns the first keyword of a schema, or of one within it, that is unknown and similar to one that asserts.
    fn misspelt_keyword(&self, schema: &Value, pointer: &str, depth: usize) -> Option<CompiledSchemaError> {
        let members = schema.as_object().filter(|_| depth < MAX_DEPTH)?;
        members.iter().find_map(|(keyword, value)| {
            let is_known =
                [ASSERTING_KEYWORDS, OTHER_KEYWORDS].iter().any(|known| known.contains(&keyword.as_str()));
            if !is_known {
                let near = nearest(keyword, ASSERTING_KEYWORDS.iter().copied())?;
                let pointer = pointer.to_string();
                return Some(CompiledSchemaError::Misspelt { keyword: keyword.clone(), near, pointer });
            }
            let pointer = format!("{pointer}/{keyword}");
            let read = |key: &str, schema: &Value| {
                self.misspelt_keyword(schema, &format!("{pointer}/{key}"), depth + 1)
            };
            match (keyword.as_str(), value) {
                (keyword, Value::Object(schemas)) if SCHEMA_MAPS.contains(&keyword) => {
                    schemas.iter().find_map(|(key, schema)| read(key, schema))
                }
                ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Value::Array(schemas)) => {
                    schemas.iter().enumerate().find_map(|(at, schema)| read(&at.to_string(), schema))
                }
                ("not" | "if" | "then" | "else" | "contains", schema) => {
                    self.misspelt_keyword(schema, &pointer, depth + 1)
                }
                (keyword, schema) if PART_SCHEMAS.contains(&keyword) => {
                    self.misspelt_keyword(schema, &pointer, depth + 1)
                }
                _ => None,
            }
        })
    }
}

/// Keywords whose value is a schema of parts of a value, such as the items of a list.
const PART_SCHEMAS: [&str; 6] = [
    "items",
    "additionalItems",
    "additionalProperties",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Keywords that reject nothing themselves, also of OpenAPI.
const OTHER_KEYWORDS: &[&str] = &[
    "$anchor",
    "$comment",
    "$defs",
    "$dynamicAnchor",
    "$id",
    "$recursiveAnchor",
    "$schema",
    "$vocabulary",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "definitions",
    "deprecated",
    "description",
    "discriminator",
    "else",
    "example",
    "examples",
    "externalDocs",
    "id",
    "nullable",
    "readOnly",
    "then",
    "title",
    "writeOnly",
    "xml",
];

/// Keywords that can reject a value; all other keywords only describe.
const ASSERTING_KEYWORDS: &[&str] = &[
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "disallow",
    "divisibleBy",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "extends",
    "format",
    "if",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "required",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
];

/// The answer, or each value at a path, matches a schema.
#[derive(Debug, Clone)]
pub struct JsonSchemaCheck {
    /// The schema to match.
    pub schema: CompiledSchema,
    /// Path of the value to check; `None` for the whole answer.
    pub path: Option<JsonPathQuery>,
}

impl CheckBehavior for JsonSchemaCheck {
    fn forbidden_texts(&self, negated: bool) -> ForbiddenTexts {
        let has_filter = self.path.as_ref().is_some_and(JsonPathQuery::has_filter);
        ForbiddenTexts::in_json(negated || forbids_values(&self.schema.source) || has_filter)
    }

    fn describe(&self) -> String {
        match &self.path {
            Some(path) => format!("{} to match the schema", path.source()),
            None => "the answer to match the schema".to_string(),
        }
    }

    fn may_take_long(&self) -> bool {
        true
    }

    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        let not_json = |why: &str| {
            CheckDecision::not_applicable(format!("the answer {why}: {}", format_text(answer(scope))))
        };
        let (found, at) = match &self.path {
            None => match find_json(answer(scope)) {
                AnswerContent::Json(value, place) => (vec![value], place.to_string()),
                AnswerContent::Text => return not_json("is not JSON"),
                AnswerContent::Malformed(why) => {
                    return not_json(&format!("cannot be read as JSON: it {why}"));
                }
            },
            Some(path) => match path.select(scope) {
                PathSelection::Values(found, at) => (found, at),
                PathSelection::Nothing(words)
                | PathSelection::NoJson(words)
                | PathSelection::TooCostly(words) => {
                    return CheckDecision::not_applicable(words);
                }
            },
        };
        let mistakes: Result<Vec<Vec<String>>, JsonSchemaError> =
            found.iter().map(|value| self.schema.violations(value)).collect();
        let mistakes = match mistakes {
            Ok(mistakes) => mistakes.concat(),
            Err(error) => return CheckDecision::not_applicable(format!("{error}, in {at}")),
        };
        match mistakes.as_slice() {
            [] => CheckDecision::new(true, format!("{at} matches")),
            mistakes => CheckDecision::new(false, format!("in {at}: {}", format_list(mistakes))),
        }
    }
}
