//! Schemas, compiled.

use std::any::Any;
use std::fmt;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use serde_json::{Value, json};

use crate::JsonSchemaError;
use crate::patterns::{WithoutPatterns, looks_unsupported, without_patterns};
use crate::steps::{
    COUNTING_KEYWORD, CountedStep, StepsExhausted, count_steps, with_counted_steps, without_steps,
};

/// Stack of a validation: values and schemas may be nested.
const STACK_BYTES: usize = 64 * 1024 * 1024;
/// Maximum number of values in a schema. A chain of references is followed on the stack.
const MAX_SCHEMA_PARTS: usize = 50_000;
/// Maximum number of steps of a validation, and of further steps for each part of the value. A step is a part of the value
/// with a part of the schema. Schemas that refer to themselves can take a number that is exponential in the depth of the value.
const MAX_STEPS: usize = 200_000;
const MAX_STEPS_PER_PART: usize = 50;
/// Maximum number of steps of a validation, however large the value is. They take some seconds.
const MAX_STEPS_OF_LARGE_VALUES: usize = 100_000_000;
/// Maximum number of steps to find out what is wrong. Each may leave a violation with its place in memory.
const MAX_DESCRIBING_STEPS: usize = 100_000;

/// Compiled JSON Schema.
#[derive(Clone)]
pub struct JsonSchema(Arc<Validators>);

struct Validators {
    /// Validates all that can be validated.
    validator: jsonschema::Validator,
    /// If the schema has patterns that are not supported: a validator that no text matches where they apply, and the first one.
    refusing: Option<(jsonschema::Validator, JsonSchemaError)>,
}

impl JsonSchema {
    /// Compiles a schema: draft 2020-12 unless `$schema` sets another. Remote references are not fetched, and
    /// patterns are matched in linear time, because schemas and values come from agents, too. Fails if the
    /// schema is invalid, or has a pattern that cannot be matched so.
    pub fn compile(schema: &Value) -> Result<JsonSchema, JsonSchemaError> {
        match compile_patterns(schema)? {
            (_, Some((_, unsupported))) => Err(unsupported),
            validators => Ok(JsonSchema::new(validators)),
        }
    }

    /// Compiles a schema that the user of Hotseat cannot change. Patterns with look-around or back-references are ignored, unless they
    /// alone decide about a value. Fails if the schema is invalid.
    pub fn compile_foreign(schema: &Value) -> Result<JsonSchema, JsonSchemaError> {
        compile_patterns(schema).map(JsonSchema::new)
    }

    fn new(
        (validator, refusing): (jsonschema::Validator, Option<(jsonschema::Validator, JsonSchemaError)>),
    ) -> JsonSchema {
        JsonSchema(Arc::new(Validators { validator, refusing }))
    }

    /// Returns what a value violates, each with its place in the value, up to a number of violations. Fails
    /// if it takes too many steps, or if a pattern that is not supported decides.
    pub fn violations(&self, value: &Value, max: usize) -> Result<Vec<String>, JsonSchemaError> {
        let validation = || find_violations(&self.0, value, max);
        thread::scope(|scope| {
            let thread = thread::Builder::new()
                .name("json-schema".to_owned())
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, validation)
                .map_err(|error| JsonSchemaError::Invalid {
                    message: format!("no thread for the validator: {error}"),
                    pointer: String::new(),
                })?;
            thread.join().unwrap_or_else(|panic: Box<dyn Any + Send>| resume_unwind(panic))
        })
    }
}

/// Compiles a schema without the patterns that are not supported. If there are some, also returns the validator that no text matches
/// where they apply, and the first of them.
fn compile_patterns(
    schema: &Value,
) -> Result<(jsonschema::Validator, Option<(jsonschema::Validator, JsonSchemaError)>), JsonSchemaError> {
    if count_parts(schema) > MAX_SCHEMA_PARTS {
        let message = format!("the schema has more than {MAX_SCHEMA_PARTS} values");
        return Err(JsonSchemaError::Invalid { message, pointer: String::new() });
    }
    let is_supported = |pattern: &str| options().build(&json!({"pattern": pattern})).is_ok();
    match without_patterns(schema, is_supported) {
        None => Ok((build(schema)?, None)),
        Some(WithoutPatterns { ignoring, refusing, first }) => {
            Ok((build(&ignoring)?, Some((build(&refusing)?, first))))
        }
    }
}

fn options() -> jsonschema::ValidationOptions<'static> {
    jsonschema::options()
        .with_pattern_options(jsonschema::PatternOptions::regex())
        .with_keyword(COUNTING_KEYWORD, |_, _, _| Ok(Box::new(CountedStep)))
}

/// Compiles a schema whose steps are counted.
fn build(schema: &Value) -> Result<jsonschema::Validator, JsonSchemaError> {
    let invalid = |error: jsonschema::ValidationError<'_>| {
        let pointer = error.instance_path().to_string();
        match error.instance().as_str() {
            // The name of a member of `patternProperties`.
            Some(pattern) if looks_unsupported(pattern) => {
                JsonSchemaError::UnsupportedPattern { pattern: pattern.to_owned(), pointer }
            }
            _ => JsonSchemaError::Invalid { message: error.to_string(), pointer },
        }
    };
    // Errors are about the schema as it is written.
    options().build(schema).map_err(invalid)?;
    options().build(&with_counted_steps(schema)?).map_err(invalid)
}

/// Finds the violations on a thread of its own.
fn find_violations(
    Validators { validator, refusing }: &Validators,
    value: &Value,
    max: usize,
) -> Result<Vec<String>, JsonSchemaError> {
    let most = MAX_STEPS.saturating_add(MAX_STEPS_PER_PART.saturating_mul(count_parts(value)));
    let most = most.min(MAX_STEPS_OF_LARGE_VALUES);
    let is_valid = |validator: &jsonschema::Validator| {
        let decided = count_steps(most, || validator.is_valid(value));
        decided.map_err(|StepsExhausted| JsonSchemaError::TooManySteps(most))
    };
    let is_accepted = is_valid(validator)?;
    if let Some((refusing, unsupported)) = refusing
        && is_valid(refusing)? != is_accepted
    {
        return Err(unsupported.clone());
    }
    if is_accepted {
        return Ok(Vec::new());
    }
    let describe = |error: jsonschema::ValidationError<'_>| {
        let words = without_steps(error.to_string());
        match error.instance_path().as_str() {
            "" => words,
            place => format!("{place}: {words}"),
        }
    };
    let all = || validator.iter_errors(value).take(max).map(describe).collect::<Vec<_>>();
    let first = || validator.validate(value).err().map(describe).into_iter().collect::<Vec<_>>();
    let found = count_steps(MAX_DESCRIBING_STEPS, all);
    let found = found.or_else(|StepsExhausted| count_steps(MAX_DESCRIBING_STEPS, first));
    Ok(found.unwrap_or_else(|StepsExhausted| vec!["the value does not match the schema".to_owned()]))
}

/// Returns the number of values in a value.
fn count_parts(value: &Value) -> usize {
    let mut count = 0;
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        count += 1;
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(members) => open.extend(members.values()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    count
}

impl fmt::Debug for JsonSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JsonSchema")
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn violations(schema: &Value, value: &Value) -> Result<Vec<String>, JsonSchemaError> {
        JsonSchema::compile(schema).expect("a schema").violations(value, 10)
    }

    /// An object with this number of objects inside each other.
    fn nested(depth: usize) -> Value {
        (0..depth).fold(json!({"b": 1}), |inner, _| json!({"a": inner, "b": 1}))
    }

    #[test]
    fn exponential_work_ends_after_a_bounded_number_of_steps() {
        let doubled = |leaf: Value| {
            let mut definitions: serde_json::Map<String, Value> = (0..40)
                .map(|n| {
                    let next = format!("#/$defs/d{}", n + 1);
                    (format!("d{n}"), json!({"anyOf": [{"$ref": next}, {"$ref": next}]}))
                })
                .collect();
            definitions.insert("d40".to_owned(), leaf);
            json!({"$ref": "#/$defs/d0", "$defs": definitions})
        };
        let recursive = |keyword: &str| {
            let branch = |b: u8| json!({"properties": {"a": {"$ref": "#/$defs/n"}, "b": {"const": b}}, "required": ["zz"]});
            json!({"$defs": {"n": {keyword: [branch(2), branch(3)]}}, "$ref": "#/$defs/n"})
        };
        let patterns = json!({"$defs": {"n": {"patternProperties": {"^a": {"$ref": "#/$defs/n"}, "a$": {"$ref": "#/$defs/n"}}}}, "$ref": "#/$defs/n"});
        let negated = json!({"$defs": {"n": {"not": {"anyOf": [
            {"properties": {"a": {"$ref": "#/$defs/n"}}, "required": ["zz"]}, {"properties": {"a": {"not": {"$ref": "#/$defs/n"}}}, "required": ["yy"]}
        ]}}}, "$ref": "#/$defs/n"});
        for schema in
            [doubled(json!({"type": "string"})), recursive("anyOf"), recursive("oneOf"), patterns, negated]
        {
            let started = Instant::now();
            let found = violations(&schema, &nested(60));
            assert!(started.elapsed() < Duration::from_secs(30), "{schema}: {found:?}");
        }
        let found = violations(&doubled(json!(false)), &json!(1));
        assert!(matches!(found, Err(JsonSchemaError::TooManySteps(_))), "{found:?}");
    }

    #[test]
    fn endless_recursion_does_not_end_the_process() {
        let schema = json!({"$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"});
        assert_eq!(violations(&schema, &json!(1)).expect("validated"), Vec::<String>::new());
    }

    #[test]
    fn long_chains_of_references_do_not_end_the_process() {
        let chain = |length| {
            let mut definitions: serde_json::Map<String, Value> = (0..length)
                .map(|n| (format!("d{n}"), json!({"allOf": [{"$ref": format!("#/$defs/d{}", n + 1)}]})))
                .collect();
            definitions.insert(format!("d{length}"), json!({"type": "string"}));
            json!({"$ref": "#/$defs/d0", "$defs": definitions})
        };
        assert!(JsonSchema::compile(&chain(15_000)).is_err());
        let schema = chain(10_000);
        assert_eq!(violations(&schema, &json!(1)).expect("validated"), ["1 is not of type \"string\""]);
    }

    #[test]
    fn large_values_have_more_steps_and_name_what_is_wrong() {
        let schema = json!({"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}});
        let mut value = Value::Array((0..100_000).map(|n| json!({"n": n})).collect());
        assert_eq!(violations(&schema, &value).expect("validated"), Vec::<String>::new());
        value[7] = json!({"n": "seven"});
        let found = violations(&schema, &value).expect("validated");
        assert_eq!(found, ["/7/n: \"seven\" is not of type \"integer\""]);
        let wrong = Value::Array(vec![json!(0); 300_000]);
        assert!(!violations(&schema, &wrong).expect("validated").is_empty());
    }

    #[test]
    fn messages_show_the_schema_as_it_is_written() {
        let schema = json!({"anyOf": [{"type": "string"}, {"type": "object", "required": ["a"]}], "not": {"const": 1}});
        let found = violations(&schema, &json!(1)).expect("validated").join("\n");
        assert!(found.contains(r#"{"const":1}"#) && !found.contains(COUNTING_KEYWORD), "{found}");
    }

    #[test]
    fn patterns_with_look_around_are_undecided_where_they_decide() {
        let email =
            json!({"type": "string", "format": "email", "pattern": r"^(?!\.)(?!.*\.\.)[a-z.]+@[a-z.]+$"});
        let schema = json!({"properties": {"email": email, "n": {"type": "integer"}}, "required": ["n"]});
        let strict = JsonSchema::compile(&schema).expect_err("not supported").to_string();
        assert!(
            strict.starts_with("look-around and back-references are not supported in patterns: `^(?!"),
            "{strict}"
        );
        assert!(strict.ends_with("` at /properties/email/pattern"), "{strict}");
        let foreign = JsonSchema::compile_foreign(&schema).expect("a schema");
        let violations = |value: Value| foreign.violations(&value, 10);
        assert_eq!(violations(json!({"n": 1})).expect("decided"), Vec::<String>::new());
        assert_eq!(
            violations(json!({"n": 1, "email": 5})).expect("decided"),
            ["/email: 5 is not of type \"string\""]
        );
        assert_eq!(
            violations(json!({"email": "a@b.co"})).expect("decided"),
            ["\"n\" is a required property"]
        );
        let undecided = violations(json!({"n": 1, "email": "a@b.co"}));
        assert!(matches!(undecided, Err(JsonSchemaError::UnsupportedPattern { .. })), "{undecided:?}");
        // Names and constants are no patterns, and a bracket may be optional.
        let data =
            json!({"properties": {"pattern": {"const": {"pattern": "(?!a)"}}, "a": {"pattern": r"^\(?=$"}}});
        let data = JsonSchema::compile(&data).expect("a schema");
        assert_eq!(
            data.violations(&json!({"pattern": {"pattern": "(?!a)"}, "a": "(="}), 10).expect("decided"),
            Vec::<String>::new()
        );
        let names = json!({"patternProperties": {"^(?!x)": true}, "additionalProperties": false});
        let names = JsonSchema::compile_foreign(&names).expect_err("not supported").to_string();
        assert!(names.contains("not supported in patterns: `^(?!x)`"), "{names}");
    }
}
