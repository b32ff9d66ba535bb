//! Validation of JSON by JSON Schemas, with the settings of all of Hotseat.
//!
//! The validator is the feature `validator`. Without it, [`JsonSchema::compile`] names the feature that is missing.

#[cfg(feature = "validator")]
mod patterns;
#[cfg(feature = "validator")]
mod steps;
#[cfg_attr(not(feature = "validator"), path = "no_validator.rs")]
mod validator;

pub use validator::JsonSchema;

/// Keywords whose value maps names to schemas.
pub const SCHEMA_MAPS: [&str; 6] =
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];

/// A schema that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonSchemaError {
    /// The schema is invalid.
    #[error("{message}")]
    Invalid {
        /// What is wrong.
        message: String,
        /// JSON pointer to the wrong part; empty for the whole schema.
        pointer: String,
    },
    /// The validation did not end within this number of steps: schemas that refer to themselves can take exponential time.
    #[error("validating the value by its schema takes more than {0} steps")]
    TooManySteps(usize),
    /// A pattern of the schema is valid, but cannot be matched in linear time.
    #[error("look-around and back-references are not supported in patterns: `{pattern}` at {pointer}")]
    UnsupportedPattern {
        /// The pattern.
        pattern: String,
        /// JSON pointer to the pattern.
        pointer: String,
    },
    /// This build has no validator.
    #[error("JSON Schemas need the feature `json-schema` of the crate `hotseat`")]
    NoValidator,
}
