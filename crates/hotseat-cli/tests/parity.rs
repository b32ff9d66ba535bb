//! One test written three times: as a case file, in TypeScript and in Rust. What is recorded of it is the same.

mod common;

use std::sync::Arc;

use hotseat::dsl::{Harness, Output, World};
use serde_json::{Value, json};

use common::{Project, example};

#[path = "../../../examples/booking/booking_test.rs"]
mod booking;

/// What is recorded of tests by each of the front-ends, test by test in the order of their names.
struct Recorded {
    data: Vec<Value>,
    typescript: Vec<Value>,
    rust: Vec<Value>,
}

/// Runs the three.
#[track_caller]
fn record(project: &Project) -> Recorded {
    let report = |path: &str| {
        let report = serde_json::from_str::<Value>(&project.workspace.read(path)).unwrap();
        let mut results = report["results"].as_array().unwrap().clone();
        results.sort_by_key(|result| title(result).to_string());
        results
    };
    let data = project.test(&["booking.test.yaml"]).output;
    std::fs::rename(project.workspace.path("out/report.json"), project.workspace.path("data.json")).unwrap();
    let typescript = project.test(&["booking_test.ts"]).output;
    let harness = Harness {
        arguments: ["-o", "rust.json", "--quiet"].map(str::to_string).to_vec(),
        world: World {
            environment: Arc::default(),
            folder: project.workspace.path("."),
            color: false,
            width: 100,
            output: Output::Standard,
        },
        file: "booking_test.rs",
    };
    let rust = harness.run(booking::declare);
    assert_eq!((data.code, typescript.code), (i32::from(rust), i32::from(rust)), "{data}\n{typescript}");
    Recorded { data: report("data.json"), typescript: report("out/report.json"), rust: report("rust.json") }
}

/// What a test is called, without the groups around it.
fn title(result: &Value) -> &str {
    let name = result["name"].as_str().unwrap();
    name.rsplit(" > ").next().and_then(|name| name.rsplit("::").next()).unwrap()
}

/// A result without what cannot be the same: where it is written, what its groups are called, what a case file asks and a
/// program does not say beforehand, when it was, and how long the name is that helpers are told.
fn told(result: &Value) -> Value {
    let mut told = without(result);
    let members = told.as_object_mut().unwrap();
    for key in ["index", "id", "stable_id"] {
        assert!(members.shift_remove(key).is_some(), "no {key}");
    }
    // Nobody knows what a program in Rust says before it is run.
    members.shift_remove("fingerprints");
    members.insert("name".to_string(), title(result).into());
    for turn in members["turns"].as_array_mut().unwrap() {
        for call in turn["tool_calls"].as_array_mut().unwrap() {
            call.as_object_mut().unwrap().shift_remove("id");
        }
        for said in turn["roles"].as_array_mut().into_iter().flatten() {
            // A scripted model reports no usage, so there is none to differ.
            assert!(said["role"] != "simulator" || said["usage"].is_null(), "{said}");
        }
    }
    told
}

fn without(value: &Value) -> Value {
    const LEFT_OUT: [&str; 9] = [
        "file",
        "line",
        "column",
        "started_at",
        "duration_ms",
        "start_ts",
        "end_ts",
        "timestamp",
        "started_ms",
    ];
    match value {
        Value::Object(members) => {
            let is_value = members.get("type").is_some_and(|kind| kind == "value");
            // A program computes a value and compares it; a case file names both.
            let names_both = ["of", "equals", "at_least", "at_most", "contains"];
            let left_out = |key: &str| LEFT_OUT.contains(&key) || is_value && names_both.contains(&key);
            let mut kept: Vec<_> = members.iter().filter(|(key, _)| !left_out(key)).collect();
            kept.sort_by_key(|(key, _)| *key);
            kept.into_iter().map(|(key, value)| (key.clone(), without(&one_or_many(key, value)))).collect()
        }
        Value::Array(entries) => entries.iter().map(without).collect(),
        Value::String(words) => {
            words.lines().map(|line| without_value(without_place(line))).collect::<Vec<_>>().join("\n").into()
        }
        other => other.clone(),
    }
}

/// A case file may name one thing without a list.
fn one_or_many(key: &str, value: &Value) -> Value {
    match (key, value) {
        ("forbid" | "types" | "from_tools", Value::String(one)) => json!([one]),
        _ => value.clone(),
    }
}

/// A line of a failure, without the place that it begins with.
fn without_place(line: &str) -> &str {
    line.split_once(": expected ")
        .filter(|(place, _)| place.contains("booking"))
        .map_or(line, |(_, words)| words)
}

/// Words about a value, whatever it is called there: `turn_count`, `conversation.turns.length`.
fn without_value(words: &str) -> String {
    let named = words.find('`').and_then(|open| {
        let close = open + 1 + words[open + 1..].find('`')?;
        words[close..].starts_with("` to ").then_some((open, close))
    });
    match named {
        Some((open, close)) => format!("{}`…`{}", &words[..open], &words[close + 1..]),
        None => words.to_string(),
    }
}

/// The same in no order within a turn: a case file does not say in which order a turn is judged.
fn unordered(told: &Value) -> Value {
    let sorted = |key: &str, value: &Value| match (key, value) {
        ("assertions" | "roles" | "assertion_errors", Value::Array(entries)) => {
            let mut entries: Vec<Value> = entries.iter().map(unordered).collect();
            entries.sort_by_key(Value::to_string);
            entries.into()
        }
        (_, value) => unordered(value),
    };
    match told {
        Value::Object(members) => {
            members.iter().map(|(key, value)| (key.clone(), sorted(key, value))).collect()
        }
        Value::Array(entries) => entries.iter().map(unordered).collect(),
        other => other.clone(),
    }
}

#[track_caller]
fn same(one: &Value, other: &Value) {
    let (one, other) = (format!("{one:#}"), format!("{other:#}"));
    let differs = one.lines().zip(other.lines()).position(|(one, other)| one != other);
    if let Some(first) = differs.or((one.len() != other.len()).then_some(0)) {
        let around =
            |text: &str| text.lines().skip(first.saturating_sub(12)).take(30).collect::<Vec<_>>().join("\n");
        panic!("not the same:\n{}\n----- and -----\n{}", around(&one), around(&other));
    }
}

/// A project whose agent makes mistakes: each of these words of its script is replaced.
#[track_caller]
fn faulty(mistakes: &[(&str, &str)]) -> Project {
    let project = example("booking");
    let mut script = project.workspace.read("script.yaml");
    for (right, wrong) in mistakes {
        assert_eq!(script.matches(right).count(), 1, "{right}");
        script = script.replace(right, wrong);
    }
    project.file("script.yaml", &script)
}

/// The same is recorded by all three, and these tests fail.
#[track_caller]
fn all_the_same(recorded: &Recorded, failing: &[&str]) {
    let Recorded { data, typescript, rust } = recorded;
    assert_eq!((data.len(), typescript.len(), rust.len()), (5, 5, 5));
    for ((data, typescript), rust) in data.iter().zip(typescript).zip(rust) {
        let status = if failing.contains(&title(rust)) { "failed" } else { "passed" };
        assert_eq!(rust["status"], status, "{rust:#}");
        same(&told(typescript), &told(rust));
        let (mut data, mut rust) = (unordered(&told(data)), unordered(&told(rust)));
        if rust["total_turns"] == 1 {
            // A program that ends in its first turn has not said that there would have been more.
            for told in [&mut data, &mut rust] {
                ["mode", "input", "output"]
                    .iter()
                    .for_each(|key| drop(told.as_object_mut().unwrap().shift_remove(*key)));
            }
        }
        same(&data, &rust);
    }
}

/// What was measured only, and did not hold.
fn measured(results: &[Value]) -> Vec<&str> {
    let turns = results.iter().flat_map(|result| result["turns"].as_array().unwrap());
    let checks = turns.flat_map(|turn| turn["assertions"].as_array().unwrap());
    let failed = checks.filter(|check| check["soft"] == true && check["passed"] == false);
    failed.filter_map(|check| check["criterion"].as_str()).collect()
}

#[test]
fn the_same_is_recorded_of_case_files_typescript_and_rust() {
    let recorded = record(&example("booking"));
    all_the_same(&recorded, &[]);
    assert_eq!(measured(&recorded.rust), [""; 0]);
    // What a judge said, what was asserted of topics and what was measured is there to be compared.
    let told = recorded.rust.iter().map(Value::to_string).collect::<String>();
    for word in [
        "claims.v1",
        "\"type\":\"grounded\"",
        "goal_progress",
        "topic_reason",
        "topic_visits",
        "\"soft\":true",
    ] {
        assert!(told.contains(word), "{word}: {told}");
    }
}

#[test]
fn what_is_only_measured_fails_in_the_same_words() {
    let project = faulty(&[("reply: Gladly! Which room would", "reply: Which room would")]);
    let recorded = record(&project);
    all_the_same(&recorded, &[]);
    assert_eq!(measured(&recorded.data), ["friendly"]);
}

#[test]
fn a_faulty_agent_fails_in_the_same_words() {
    let project = faulty(&[
        ("reply: Welcome! I am happy", "reply: Welcome! The hall is free, and I am happy"),
        ("reply: Gladly! Which room would", "reply: The Blue Room is free. Which room would"),
        ("(?<room>\\\\w+ room) for (?<capacity>", "(?<room>\\\\w+ hall) for (?<capacity>"),
    ]);
    let failing = [
        "handles standard venue search",
        "handles booking with modification",
        "progresses through booking flow",
    ];
    all_the_same(&record(&project), &failing);
}

/// A program ends with the first check that does not hold; a case file has the others of that turn decided, too.
#[test]
fn behind_a_failure_only_a_case_file_goes_on_to_the_end_of_the_turn() {
    let project = faulty(&[(
        "{ tool_calls: [{ name: book_room, arguments: { room: Blue Room, time: 3pm } }] }",
        "It is booked.",
    )]);
    let Recorded { data, typescript, rust } = record(&project);
    for ((data, typescript), rust) in data.iter().zip(&typescript).zip(&rust) {
        let (data, typescript, rust) = (unordered(&told(data)), told(typescript), told(rust));
        same(&typescript, &rust);
        let rust = unordered(&rust);
        let failure = |of: &Value| (of["status"].clone(), of["failure"]["kind"].clone());
        assert_eq!(failure(&data), failure(&rust));
        for (data, rust) in data["turns"].as_array().unwrap().iter().zip(rust["turns"].as_array().unwrap()) {
            let checks = |of: &Value| of["assertions"].as_array().unwrap().clone();
            let (data, rust) = (checks(data), checks(rust));
            assert!(rust.iter().all(|check| data.contains(check)), "{rust:#?}\n{data:#?}");
        }
    }
    let failed = rust.iter().filter(|result| result["status"] == "failed").map(title).collect::<Vec<_>>();
    assert_eq!(failed, ["handles booking with modification", "progresses through booking flow"]);
}
