//! One test written three times: as a case file, in TypeScript and in Rust. What is recorded of it is the same.

mod common;

use std::sync::Arc;

use hotseat::dsl::{Harness, Output, World};
use serde_json::Value;

use common::records::{same, title, told, unordered};
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
