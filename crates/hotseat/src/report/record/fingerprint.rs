//! What stands for a case in comparisons: whether two runs asked and checked the same.

use ring::digest::{SHA256, digest};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::run::CaseFacts;

/// Two short texts: cases that have the same ones ask the same and check the same. The order of keys and assertions does
/// not matter, nor does the file format, what the case is called, or how often and how long it is tried.
#[derive(Debug, Serialize)]
pub struct Fingerprints {
    /// Stands for what the user says and what the agent is told.
    pub asked: String,
    /// Stands for what is asserted.
    pub checked: String,
}

/// Keys of cases and turns that assert something.
const CHECKS: [&str; 10] = [
    "assert",
    "assertions",
    "turn_assert",
    "final_assertions",
    "evaluate",
    "checkpoints",
    "criteria",
    "judge",
    "expected",
    "expect_error",
];
/// Keys that neither ask nor check.
const NEITHER: [&str; 11] = [
    "id",
    "name",
    "version",
    "description",
    "skip",
    "tags",
    "retries",
    "reliability",
    "timeout",
    "timeout_ms",
    "type",
];

impl Fingerprints {
    /// None of what is not written as a mapping.
    pub fn of(case: &CaseFacts) -> Option<Fingerprints> {
        let Value::Object(written) = case.to_json() else { return None };
        let (mut asked, mut checked) = (Map::new(), Map::new());
        for (key, value) in written {
            match (&*key, value) {
                ("turns", Value::Array(turns)) => {
                    let (said, checks): (Vec<Value>, Vec<Value>) = turns.into_iter().map(turn).unzip();
                    asked.insert(key, Value::Array(said));
                    // How many turns there are is no check.
                    for (number, check) in
                        checks.into_iter().enumerate().filter(|(_, check)| *check != json!({}))
                    {
                        checked.insert(format!("turn {}", number + 1), check);
                    }
                }
                (check, value) if CHECKS.contains(&check) => {
                    checked.insert(one_spelling(check).to_string(), unordered(value));
                }
                (neither, _) if NEITHER.contains(&neither) => {}
                (_, value) => {
                    asked.insert(key, value);
                }
            }
        }
        Some(Fingerprints { asked: short(Value::Object(asked)), checked: short(Value::Object(checked)) })
    }
}

/// What a turn asks, and what it checks.
fn turn(turn: Value) -> (Value, Value) {
    let Value::Object(members) = turn else { return (turn, json!({})) };
    let (mut asked, mut checked) = (Map::new(), Map::new());
    for (key, value) in members {
        match CHECKS.contains(&&*key) {
            true => checked.insert(one_spelling(&key).to_string(), unordered(value)),
            false => asked.insert(key, value),
        };
    }
    (Value::Object(asked), Value::Object(checked))
}

fn one_spelling(key: &str) -> &str {
    if key == "assertions" { "assert" } else { key }
}

/// Assertions hold in any order.
fn unordered(value: Value) -> Value {
    match sorted(value) {
        Value::Array(mut all) => {
            all.sort_by_cached_key(Value::to_string);
            Value::Array(all)
        }
        other => other,
    }
}

/// The same with the keys of all mappings in order.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<(String, Value)> =
                members.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            members.sort_by(|(a, _), (b, _)| a.cmp(b));
            Value::Object(members.into_iter().collect())
        }
        Value::Array(all) => Value::Array(all.into_iter().map(sorted).collect()),
        other => other,
    }
}

fn short(value: Value) -> String {
    let whole = digest(&SHA256, sorted(value).to_string().as_bytes());
    whole.as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}
