//! `schema`: the answer, or a value inside it, fits a JSON Schema.

use std::fmt;
use std::sync::Arc;

use hotseat_trace::Scope;
use serde_json::Value;

use super::answer::{answer, shown};
use super::calls::cut;
use super::json_answer::{AnswerContent, find_json};
use super::json_path::{Path, Selected};
use super::{Decided, listed};

/// How many mistakes are shown.
const SHOWN: usize = 10;

/// A compiled JSON Schema. Nothing is fetched for it.
#[derive(Clone)]
pub struct Schema(Arc<jsonschema::Validator>);

impl Schema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// When it is none, or when it fits everything.
    pub fn compile(schema: &Value) -> Result<Schema, String> {
        let says_nothing = match schema {
            Value::Bool(fits) => *fits,
            Value::Object(members) => !members.keys().any(|keyword| ASSERTS.contains(&keyword.as_str())),
            _ => false,
        };
        if says_nothing {
            return Err("this schema fits everything".to_string());
        }
        // Patterns are matched in linear time: what is matched is what an agent says.
        let options = jsonschema::options().with_pattern_options(jsonschema::PatternOptions::regex());
        match options.build(schema) {
            Ok(validator) => Ok(Schema(Arc::new(validator))),
            Err(error) => {
                let at = error.instance_path().to_string();
                let place = if at.is_empty() { String::new() } else { format!(" at {at}") };
                Err(format!("this is not a JSON Schema: {error}{place}"))
            }
        }
    }

    /// What is wrong with a value.
    pub fn mistakes(&self, value: &Value) -> Vec<String> {
        let errors = self.0.iter_errors(value).map(|error| {
            let at = error.instance_path().to_string();
            cut(&if at.is_empty() { error.to_string() } else { format!("{at}: {error}") })
        });
        errors.take(SHOWN).collect()
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Schema")
    }
}

/// The keywords that refuse something; all others only describe.
const ASSERTS: &[&str] = &[
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

/// The answer, or each value at a path, fits a schema.
#[derive(Debug, Clone)]
pub struct JsonSchema {
    /// The schema.
    pub schema: Schema,
    /// Where to look.
    pub path: Option<Path>,
}

impl JsonSchema {
    /// What is asserted, in words.
    pub fn describe(&self) -> String {
        match &self.path {
            Some(path) => format!("{} fits the schema", path.written()),
            None => "the answer fits the schema".to_string(),
        }
    }

    pub(super) fn decide(&self, scope: Scope<'_>) -> Decided {
        let not_json =
            |why: &str| Decided::nothing(format!("the answer is not JSON{why}: {}", shown(answer(scope))));
        let (found, at) = match &self.path {
            None => match find_json(answer(scope)) {
                AnswerContent::Json(value, place) => (vec![value], place.to_string()),
                AnswerContent::Text => return not_json(""),
                AnswerContent::Malformed(why) => return not_json(&format!(": it {why}")),
            },
            Some(path) => match path.select(scope) {
                Selected::Values(found, at) => (found, at),
                Selected::Nothing(words) | Selected::NoJson(words) => return Decided::nothing(words),
            },
        };
        let mistakes: Vec<String> = found.iter().flat_map(|value| self.schema.mistakes(value)).collect();
        match mistakes.as_slice() {
            [] => Decided::of(true, format!("{at} fits")),
            mistakes => Decided::of(false, format!("in {at}: {}", listed(mistakes))),
        }
    }
}
