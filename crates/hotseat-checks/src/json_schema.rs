//! `schema`: the answer, or a value inside it, matches a JSON Schema.

use hotseat_schema::{JsonSchema, JsonSchemaError};
use hotseat_trace::TurnScope;
use serde_json::Value;

use super::answer::{answer, format_text};
use super::call_text::truncate;
use super::json_answer::{AnswerContent, find_json};
use super::json_path::{JsonPathQuery, PathSelection};
use super::{CheckBehavior, CheckDecision, format_list};

/// Maximum number of violations in a check result.
const MAX_VIOLATIONS: usize = 10;

/// Compiled JSON Schema of a check.
#[derive(Debug, Clone)]
pub struct CompiledSchema(JsonSchema);

/// An invalid schema.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say the same")]
pub enum CompiledSchemaError {
    #[error("this schema accepts every value")]
    AcceptsEverything,
    #[error("this is not a JSON Schema: {message}{place}", place = place_suffix(.pointer))]
    Invalid { message: String, pointer: String },
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
            JsonSchemaError::NoValidator => CompiledSchemaError::NoValidator,
        }
    }
}

impl CompiledSchema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// If the schema is invalid, or accepts every value.
    pub fn compile(schema: &Value) -> Result<CompiledSchema, CompiledSchemaError> {
        let says_nothing = match schema {
            Value::Bool(fits) => *fits,
            Value::Object(members) => {
                !members.keys().any(|keyword| ASSERTING_KEYWORDS.contains(&keyword.as_str()))
            }
            _ => false,
        };
        if says_nothing {
            return Err(CompiledSchemaError::AcceptsEverything);
        }
        Ok(CompiledSchema(JsonSchema::compile(schema)?))
    }

    /// Lists the violations of a value. Fails if that takes too long.
    fn violations(&self, value: &Value) -> Result<Vec<String>, JsonSchemaError> {
        let found = self.0.violations(value, MAX_VIOLATIONS)?;
        Ok(found.iter().map(|violation| truncate(violation)).collect())
    }
}

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
