//! Schemas, compiled.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::JsonSchemaError;

/// Compiled JSON Schema.
#[derive(Clone)]
pub struct JsonSchema(Arc<jsonschema::Validator>);

impl JsonSchema {
    /// Compiles a schema: draft 2020-12 unless `$schema` sets another. Remote references are not fetched, and patterns are
    /// matched in linear time, because schemas and values come from agents, too.
    ///
    /// # Errors
    /// If the schema is invalid.
    pub fn compile(schema: &Value) -> Result<JsonSchema, JsonSchemaError> {
        let options = jsonschema::options().with_pattern_options(jsonschema::PatternOptions::regex());
        let invalid = |error: jsonschema::ValidationError<'_>| JsonSchemaError::Invalid {
            message: error.to_string(),
            pointer: error.instance_path().to_string(),
        };
        options.build(schema).map(|validator| JsonSchema(Arc::new(validator))).map_err(invalid)
    }

    /// Returns what a value violates, each with its place in the value.
    pub fn violations<'a>(&'a self, value: &'a Value) -> impl Iterator<Item = String> + 'a {
        self.0.iter_errors(value).map(|error| match error.instance_path().as_str() {
            "" => error.to_string(),
            place => format!("{place}: {error}"),
        })
    }
}

impl fmt::Debug for JsonSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JsonSchema")
    }
}
