//! `schema`: the answer, or a value inside it, matches a JSON Schema.

use std::fmt;
use std::sync::Arc;

use hotseat_trace::TurnScope;
use serde_json::Value;

use super::answer::{answer, format_text};
use super::call_text::truncate;
use super::json_answer::{AnswerContent, find_json};
use super::json_path::{JsonPathQuery, PathSelection};
use super::{CheckBehavior, CheckDecision, format_list};

/// Maximum number of violations in a check result.
const MAX_VIOLATIONS: usize = 10;

/// Compiled JSON Schema. Remote references are not fetched.
#[derive(Clone)]
pub struct CompiledSchema(Arc<jsonschema::Validator>);

/// An invalid schema.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say the same")]
pub enum CompiledSchemaError {
    #[error("this schema accepts every value")]
    AcceptsEverything,
    #[error("this is not a JSON Schema: {0}{place}", place = place_suffix(.0))]
    Invalid(#[source] Box<jsonschema::ValidationError<'static>>),
}

fn place_suffix(error: &jsonschema::ValidationError<'_>) -> String {
    let at = error.instance_path().to_string();
    if at.is_empty() { at } else { format!(" at {at}") }
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
        // Patterns are matched in linear time because they run on untrusted text of an agent.
        let options = jsonschema::options().with_pattern_options(jsonschema::PatternOptions::regex());
        match options.build(schema) {
            Ok(validator) => Ok(CompiledSchema(Arc::new(validator))),
            Err(error) => Err(CompiledSchemaError::Invalid(Box::new(error))),
        }
    }

    /// Lists the violations of a value.
    pub fn violations(&self, value: &Value) -> Vec<String> {
        let errors = self.0.iter_errors(value).map(|error| {
            let at = error.instance_path().to_string();
            truncate(&if at.is_empty() { error.to_string() } else { format!("{at}: {error}") })
        });
        errors.take(MAX_VIOLATIONS).collect()
    }
}

impl fmt::Debug for CompiledSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Schema")
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

    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        let not_json = |why: &str| {
            CheckDecision::not_applicable(format!(
                "the answer is not JSON{why}: {}",
                format_text(answer(scope))
            ))
        };
        let (found, at) = match &self.path {
            None => match find_json(answer(scope)) {
                AnswerContent::Json(value, place) => (vec![value], place.to_string()),
                AnswerContent::Text => return not_json(""),
                AnswerContent::Malformed(why) => return not_json(&format!(": it {why}")),
            },
            Some(path) => match path.select(scope) {
                PathSelection::Values(found, at) => (found, at),
                PathSelection::Nothing(words) | PathSelection::NoJson(words) => {
                    return CheckDecision::not_applicable(words);
                }
            },
        };
        let mistakes: Vec<String> = found.iter().flat_map(|value| self.schema.violations(value)).collect();
        match mistakes.as_slice() {
            [] => CheckDecision::new(true, format!("{at} matches")),
            mistakes => CheckDecision::new(false, format!("in {at}: {}", format_list(mistakes))),
        }
    }
}
