//! Schemas of a build without a validator: they cannot be compiled.

use std::convert::Infallible;

use serde_json::Value;

use crate::JsonSchemaError;

/// A schema that cannot be compiled, because this build has no validator.
#[derive(Debug, Clone)]
pub struct JsonSchema(Infallible);

impl JsonSchema {
    /// Returns the error that this build has no validator. Always fails.
    pub fn compile(_: &Value) -> Result<JsonSchema, JsonSchemaError> {
        Err(JsonSchemaError::NoValidator)
    }

    /// Returns the error that this build has no validator. Always fails.
    pub fn compile_foreign(_: &Value) -> Result<JsonSchema, JsonSchemaError> {
        Err(JsonSchemaError::NoValidator)
    }

    /// Returns what a value violates.
    pub fn violations(&self, _: &Value, _: usize) -> Result<Vec<String>, JsonSchemaError> {
        match self.0 {}
    }
}
