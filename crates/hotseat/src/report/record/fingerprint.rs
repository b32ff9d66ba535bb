//! What stands for a case in comparisons: whether two runs asked and checked the same.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::run::{CaseFacts, Driven, short_digest};

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

/// Keys of cases under which somebody is described, and what is asserted of it beside that.
const MIXED: [&str; 3] = ["topics", "graph", "simulate"];
/// What ends a conversation decides which turns are looked at.
const STOP: &str = "stop_when";

impl Fingerprints {
    /// None of what is not written as a mapping, and of a program of which only is known that it is one.
    pub fn of(case: &CaseFacts) -> Option<Fingerprints> {
        let Value::Object(written) = case.to_json() else { return None };
        let (mut asked, mut checked) = (Map::new(), Map::new());
        match &case.driven {
            Driven::Written => {}
            Driven::Program(source) => drop(checked.insert("program".to_string(), json!(source))),
            Driven::Unknown => return None,
        }
        if let Some(around) = &case.judged_from_around {
            checked.insert("from around".to_string(), json!(around));
        }
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
                (mixed, value) if MIXED.contains(&mixed) => {
                    let said = without_checks(value, mixed, &mut checked);
                    asked.insert(key, said);
                }
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
        match &*key {
            check if CHECKS.contains(&check) => {
                checked.insert(one_spelling(check).to_string(), unordered(value));
            }
            neither if NEITHER.contains(&neither) => {}
            _ => {
                asked.insert(key, value);
            }
        }
    }
    (Value::Object(asked), Value::Object(checked))
}

/// What is left of a value when all that asserts something is taken out, wherever it stands; that is put beside the other
/// checks, by its path.
fn without_checks(value: Value, path: &str, checked: &mut Map<String, Value>) -> Value {
    match value {
        Value::Object(members) => {
            let mut left = Map::new();
            for (key, value) in members {
                if CHECKS.contains(&&*key) || key == STOP {
                    checked.insert(format!("{path}.{}", one_spelling(&key)), unordered(value));
                } else {
                    let value = without_checks(value, &format!("{path}.{key}"), checked);
                    left.insert(key, value);
                }
            }
            Value::Object(left)
        }
        Value::Array(all) => {
            let all = all.into_iter().enumerate();
            all.map(|(at, value)| without_checks(value, &format!("{path}.{at}"), checked)).collect()
        }
        other => other,
    }
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
    short_digest(&sorted(value).to_string())
}
