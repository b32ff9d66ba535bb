//! Fingerprints of cases, which show if two runs have the same inputs and the same checks.

use serde::Serialize;
use serde_json::{Map, Value, json};

use hotseat_engine::run::{CaseDriver, CaseOutcome};
use hotseat_engine::short_digest;

/// Digests of a case: equal digests mean equal inputs and equal checks. The order of keys and assertions,
/// the file format, the name of the case, and its repeats and time limits do not matter.
#[derive(Debug, Serialize)]
pub struct CaseFingerprints {
    /// Digest of the user inputs and the agent context.
    pub asked: String,
    /// Digest of the checks.
    pub checked: String,
    /// Digest of the script functions that judge the case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub functions: Option<String>,
    /// Digest of the settings of its judges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judges: Option<String>,
}

/// Keys of cases and turns that contain checks.
const CHECK_KEYS: [&str; 10] = [
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
/// Keys that are neither inputs nor checks.
const IGNORED_KEYS: [&str; 11] = [
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

/// Keys of cases that contain inputs as well as checks.
const MIXED_KEYS: [&str; 3] = ["topics", "graph", "simulate"];
/// Stop conditions count as checks, because they decide which turns are checked.
const STOP_KEY: &str = "stop_when";

impl CaseFingerprints {
    /// Returns `None` for a case that is not written as an object, and for a program whose source is unknown.
    /// Secrets are masked, as in saved runs.
    pub fn for_case(outcome: &CaseOutcome) -> Option<CaseFingerprints> {
        let case = outcome.case_ref.case.masked(outcome.attempts.iter().map(|attempt| &attempt.redactor));
        // The list of scenarios contains those of other cases, or is only the name of a file.
        let Value::Object(written) = case.to_filled_json() else { return None };
        let (mut asked, mut checked) = (Map::new(), Map::new());
        match &case.driven {
            CaseDriver::Written => {}
            CaseDriver::Program(source) => drop(checked.insert("program".to_string(), json!(source))),
            CaseDriver::Unknown => return None,
        }
        // A program may send anything from its scenario.
        if let (CaseDriver::Program(_), Some(scenario)) = (&case.driven, &case.scenario) {
            asked.insert("scenario".to_string(), json!(scenario.fingerprint));
        }
        if let Some(around) = &case.judged_from_around {
            checked.insert("from around".to_string(), json!(around));
        }
        for (key, value) in written {
            match (&*key, value) {
                ("turns", Value::Array(turns)) => {
                    let (said, checks): (Vec<Value>, Vec<Value>) = turns.into_iter().map(split_turn).unzip();
                    asked.insert(key, Value::Array(said));
                    // The number of turns is not a check.
                    for (number, check) in
                        checks.into_iter().enumerate().filter(|(_, check)| *check != json!({}))
                    {
                        checked.insert(format!("turn {}", number + 1), check);
                    }
                }
                (check, value) if CHECK_KEYS.contains(&check) => {
                    checked.insert(canonical_key(check).to_string(), sort_entries(value));
                }
                (neither, _) if IGNORED_KEYS.contains(&neither) => {}
                (mixed, value) if MIXED_KEYS.contains(&mixed) => {
                    let said = extract_checks(value, mixed, &mut checked);
                    asked.insert(key, said);
                }
                (_, value) => {
                    asked.insert(key, value);
                }
            }
        }
        Some(CaseFingerprints {
            asked: digest(Value::Object(asked)),
            checked: digest(Value::Object(checked)),
            functions: case.function_digest,
            judges: case.judge_digest,
        })
    }
}

/// Splits a turn into its inputs and its checks.
fn split_turn(turn: Value) -> (Value, Value) {
    let Value::Object(members) = turn else { return (turn, json!({})) };
    let (mut asked, mut checked) = (Map::new(), Map::new());
    for (key, value) in members {
        match &*key {
            check if CHECK_KEYS.contains(&check) => {
                checked.insert(canonical_key(check).to_string(), sort_entries(value));
            }
            neither if IGNORED_KEYS.contains(&neither) => {}
            _ => {
                asked.insert(key, value);
            }
        }
    }
    (Value::Object(asked), Value::Object(checked))
}

/// Removes all checks from a value and adds them to the other checks, keyed by their path.
fn extract_checks(value: Value, path: &str, checked: &mut Map<String, Value>) -> Value {
    match value {
        Value::Object(members) => {
            let mut left = Map::new();
            for (key, value) in members {
                if CHECK_KEYS.contains(&&*key) || key == STOP_KEY {
                    checked.insert(format!("{path}.{}", canonical_key(&key)), sort_entries(value));
                } else {
                    let value = extract_checks(value, &format!("{path}.{key}"), checked);
                    left.insert(key, value);
                }
            }
            Value::Object(left)
        }
        Value::Array(all) => {
            let all = all.into_iter().enumerate();
            all.map(|(at, value)| extract_checks(value, &format!("{path}.{at}"), checked)).collect()
        }
        other => other,
    }
}

fn canonical_key(key: &str) -> &str {
    if key == "assertions" { "assert" } else { key }
}

/// The order of assertions does not matter.
fn sort_entries(mut value: Value) -> Value {
    value.sort_all_objects();
    match value {
        Value::Array(mut all) => {
            all.sort_by_cached_key(Value::to_string);
            Value::Array(all)
        }
        other => other,
    }
}

fn digest(mut value: Value) -> String {
    value.sort_all_objects();
    short_digest(&value.to_string(), 8)
}
