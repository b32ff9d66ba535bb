//! Counts the steps of a validation, and ends it after too many.
//!
//! The validator cannot be interrupted. So each part of a schema gets a keyword of ours that counts, as one more condition
//! of its `allOf`, which the validator evaluates before the conditions that can multiply its work.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use jsonschema::{Keyword, ValidationError};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

use crate::{JsonSchemaError, SCHEMA_MAPS};

/// Name of the keyword that counts.
pub(crate) const COUNTING_KEYWORD: &str = "hotseat:step";

/// Keywords whose value is data, and decides what is valid.
pub(crate) const DATA_KEYWORDS: [&str; 2] = ["const", "enum"];
/// Keywords whose value is an object or a list without schemas.
const PLAIN_KEYWORDS: [&str; 2] = ["$vocabulary", "dependentRequired"];
/// Keywords whose value refers to another schema.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

thread_local! {
    /// Steps that the validation of this thread may still take.
    static REMAINING_STEPS: Cell<usize> = const { Cell::new(0) };
}

/// A validation took too many steps.
#[derive(Debug)]
pub(crate) struct StepsExhausted;

/// Keyword that every value matches, and that counts.
pub(crate) struct CountedStep;

impl CountedStep {
    fn count() {
        match REMAINING_STEPS.get().checked_sub(1) {
            Some(rest) => REMAINING_STEPS.set(rest),
            // Unlike a panic, this prints nothing.
            None => resume_unwind(Box::new(StepsExhausted)),
        }
    }
}

impl<'i> Keyword<'i> for CountedStep {
    fn validate(&self, _: &'i Value) -> Result<(), ValidationError<'i>> {
        CountedStep::count();
        Ok(())
    }

    fn is_valid(&self, _: &'i Value) -> bool {
        CountedStep::count();
        true
    }
}

/// Runs a validation with at most this number of steps.
pub(crate) fn count_steps<T>(most: usize, validate: impl FnOnce() -> T) -> Result<T, StepsExhausted> {
    REMAINING_STEPS.set(most);
    catch_unwind(AssertUnwindSafe(validate)).map_err(|panic| match panic.downcast::<StepsExhausted>() {
        Ok(exhausted) => *exhausted,
        Err(panic) => resume_unwind(panic),
    })
}

/// Returns the schema with a counting keyword in each of its parts. Fails if a reference leads into data, where nothing
/// could be counted.
pub(crate) fn with_counted_steps(schema: &Value) -> Result<Value, JsonSchemaError> {
    let mut schema = schema.clone();
    add_to_schema(&mut schema)?;
    Ok(schema)
}

/// Removes the keywords from a message that shows a part of the schema.
pub(crate) fn without_steps(message: String) -> String {
    if !message.contains(COUNTING_KEYWORD) {
        return message;
    }
    let step = json!({ COUNTING_KEYWORD: true }).to_string();
    let own = format!("\"allOf\":[{step}]");
    [format!(",{own}"), own, format!(",{step}")]
        .iter()
        .fold(message, |message, part| message.replace(part, ""))
}

fn add_to_schema(schema: &mut Value) -> Result<(), JsonSchemaError> {
    match schema {
        Value::Object(members) => {
            add_to_members(members)?;
            let step = json!({ COUNTING_KEYWORD: true });
            // Anything but a list is no schema, but an example.
            if let Value::Array(conditions) =
                members.entry("allOf").or_insert_with(|| Value::Array(Vec::new()))
            {
                conditions.push(step);
            }
        }
        Value::Array(schemas) => schemas.iter_mut().try_for_each(add_to_schema)?,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    Ok(())
}

/// Adds the keyword to the parts of a schema. A reference may lead to the value of any keyword, also of an unknown one.
fn add_to_members(members: &mut Map<String, Value>) -> Result<(), JsonSchemaError> {
    for (keyword, value) in members {
        match (keyword.as_str(), &mut *value) {
            (keyword, Value::String(target)) if REFERENCES.contains(&keyword) => check_reference(target)?,
            (keyword, _) if DATA_KEYWORDS.contains(&keyword) || PLAIN_KEYWORDS.contains(&keyword) => {}
            (keyword, Value::Object(named)) if SCHEMA_MAPS.contains(&keyword) => {
                named.values_mut().try_for_each(add_to_schema)?;
            }
            (_, value) => add_to_schema(value)?,
        }
    }
    Ok(())
}

/// Fails if a reference leads into the value of `const` or `enum`.
fn check_reference(target: &str) -> Result<(), JsonSchemaError> {
    let fragment = target.split_once('#').map_or("", |(_, fragment)| fragment);
    let names: Vec<String> =
        fragment.split('/').map(|name| percent_decode_str(name).decode_utf8_lossy().into_owned()).collect();
    let leads_into_data = names
        .windows(2)
        .any(|pair| DATA_KEYWORDS.contains(&pair[1].as_str()) && !SCHEMA_MAPS.contains(&pair[0].as_str()));
    match leads_into_data {
        true => Err(JsonSchemaError::Invalid {
            message: format!("the reference {target} leads into data, not to a schema"),
            pointer: String::new(),
        }),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_counts_and_data_stays_as_it_is() {
        let schema = json!({
            "properties": {"enum": {"type": "string"}, "b": true},
            "dependentRequired": {"a": ["b"]},
            "anyOf": [{"const": {"a": 1}}, {"allOf": [{"$ref": "#/x/y"}]}],
            "x": {"y": {"enum": [{"properties": {}}]}},
        });
        let step = json!({"hotseat:step": true});
        let counted = json!({
            "properties": {"enum": {"type": "string", "allOf": [step]}, "b": true},
            "dependentRequired": {"a": ["b"]},
            "anyOf": [{"const": {"a": 1}, "allOf": [step]}, {"allOf": [{"$ref": "#/x/y", "allOf": [step]}, step]}],
            "x": {"y": {"enum": [{"properties": {}}], "allOf": [step]}, "allOf": [step]},
            "allOf": [step],
        });
        assert_eq!(with_counted_steps(&schema).expect("a schema"), counted);
    }

    #[test]
    fn references_into_data_are_refused() {
        for target in ["#/enum/0", "#/properties/a/const", "a.json#/%63onst"] {
            assert!(with_counted_steps(&json!({"items": {"$ref": target}})).is_err(), "{target}");
        }
        for target in ["#/properties/enum", "#/$defs/const/items", "#", "#constant", "a.json"] {
            assert!(with_counted_steps(&json!({"items": {"$ref": target}})).is_ok(), "{target}");
        }
    }
}
