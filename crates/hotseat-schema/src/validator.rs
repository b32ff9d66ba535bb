//! Schemas, compiled.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use serde_json::Value;

use crate::JsonSchemaError;

/// Maximum duration of one validation.
const TIME_LIMIT: Duration = Duration::from_secs(5);
/// Stack of a validation: values and schemas may be nested.
const STACK_BYTES: usize = 8 * 1024 * 1024;
/// Number of abandoned validations at which nothing is validated any more.
const MAX_ABANDONED: usize = 8;

/// Validations that exceeded their time and still run.
static ABANDONED: AtomicUsize = AtomicUsize::new(0);

/// Compiled JSON Schema.
#[derive(Clone)]
pub struct JsonSchema(Arc<jsonschema::Validator>);

impl JsonSchema {
    /// Compiles a schema: draft 2020-12 unless `$schema` sets another. Remote references are not fetched, and
    /// patterns are matched in linear time, because schemas and values come from agents, too. Fails if the
    /// schema is invalid.
    pub fn compile(schema: &Value) -> Result<JsonSchema, JsonSchemaError> {
        let options = jsonschema::options().with_pattern_options(jsonschema::PatternOptions::regex());
        let invalid = |error: jsonschema::ValidationError<'_>| JsonSchemaError::Invalid {
            message: error.to_string(),
            pointer: error.instance_path().to_string(),
        };
        options.build(schema).map(|validator| JsonSchema(Arc::new(validator))).map_err(invalid)
    }

    /// Returns what a value violates, each with its place in the value, up to a number of violations. Fails
    /// if it takes too long. The validator cannot be interrupted, so it has a thread, which is abandoned
    /// then.
    pub fn violations(&self, value: &Value, max: usize) -> Result<Vec<String>, JsonSchemaError> {
        if ABANDONED.load(Ordering::SeqCst) >= MAX_ABANDONED {
            return Err(JsonSchemaError::TakesTooLong(TIME_LIMIT));
        }
        let (validator, value) = (self.0.clone(), value.clone());
        let (sender, receiver) = mpsc::channel();
        // Set by the first of both: the end of the validation, or of its time.
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = is_over.clone();
        let validation = move || {
            // Fails if nobody waits any more.
            let _ = sender.send(find_violations(&validator, &value, max));
            if ends.swap(true, Ordering::SeqCst) {
                ABANDONED.fetch_sub(1, Ordering::SeqCst);
            }
        };
        std::thread::Builder::new()
            .name("json-schema".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(validation)
            .map_err(|error| JsonSchemaError::Invalid {
                message: format!("no thread for the validator: {error}"),
                pointer: String::new(),
            })?;
        receiver.recv_timeout(TIME_LIMIT).map_err(|_| {
            ABANDONED.fetch_add(1, Ordering::SeqCst);
            if is_over.swap(true, Ordering::SeqCst) {
                ABANDONED.fetch_sub(1, Ordering::SeqCst);
            }
            JsonSchemaError::TakesTooLong(TIME_LIMIT)
        })
    }
}

fn find_violations(validator: &jsonschema::Validator, value: &Value, max: usize) -> Vec<String> {
    let errors = validator.iter_errors(value).take(max);
    let described = errors.map(|error| match error.instance_path().as_str() {
        "" => error.to_string(),
        place => format!("{place}: {error}"),
    });
    described.collect()
}

impl fmt::Debug for JsonSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JsonSchema")
    }
}
