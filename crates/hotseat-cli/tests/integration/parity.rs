//! Parity: one test as case file, in TypeScript and in Rust records the same results.

use serde_json::Value;

use crate::common::records::{assert_same, comparable, title, unordered};
use crate::common::{Project, example};

#[path = "../../../../examples/booking/booking_test.rs"]
mod booking;

/// Recorded results of each front end, in the order of the test names.
struct Recorded {
    data: Vec<Value>,
    typescript: Vec<Value>,
    rust: Vec<Value>,
}

/// Runs all three.
#[track_caller]
fn run_front_ends(project: &Project) -> Recorded {
    let report = |path: &str| {
        let report = project.workspace.read_json(path);
        let mut results = report["results"].as_array().unwrap().clone();
        results.sort_by_key(|result| title(result).to_string());
        results
    };
    let data = project.test(&["booking.test.yaml"]).output;
    std::fs::rename(project.workspace.path("out/report.json"), project.workspace.path("data.json")).unwrap();
    let typescript = project.test(&["booking_test.ts"]).output;
    let (harness, _) = project.harness("booking_test.rs", &["-o", "rust.json", "--quiet"]);
    let rust = harness.run(booking::declare);
    assert_eq!((data.code, typescript.code), (i32::from(rust), i32::from(rust)), "{data}\n{typescript}");
    Recorded { data: report("data.json"), typescript: report("out/report.json"), rust: report("rust.json") }
}

/// A project whose agent misbehaves: these phrases of its script are replaced.
#[track_caller]
fn faulty_project(mistakes: &[(&str, &str)]) -> Project {
    let project = example("booking");
    let mut script = project.workspace.read("script.yaml");
    for (right, wrong) in mistakes {
        assert_eq!(script.matches(right).count(), 1, "{right}");
        script = script.replace(right, wrong);
    }
    project.file("script.yaml", &script)
}

/// Asserts that all three record the same results and that these tests fail.
#[track_caller]
fn assert_all_same(recorded: &Recorded, failing: &[&str]) {
    let Recorded { data, typescript, rust } = recorded;
    assert_eq!((data.len(), typescript.len(), rust.len()), (5, 5, 5));
    for ((data, typescript), rust) in data.iter().zip(typescript).zip(rust) {
        let status = if failing.contains(&title(rust)) { "failed" } else { "passed" };
        assert_eq!(rust["status"], status, "{rust:#}");
        assert_same(&comparable(typescript), &comparable(rust));
        let (mut data, mut rust) = (unordered(&comparable(data)), unordered(&comparable(rust)));
        if rust["total_turns"] == 1 {
            // A program that ends in its first turn has not declared later turns.
            for told in [&mut data, &mut rust] {
                ["mode", "input", "output"]
                    .iter()
                    .for_each(|key| drop(told.as_object_mut().unwrap().shift_remove(*key)));
            }
        }
        assert_same(&data, &rust);
    }
}

/// Informational checks that failed.
fn failed_soft_checks(results: &[Value]) -> Vec<&str> {
    let turns = results.iter().flat_map(|result| result["turns"].as_array().unwrap());
    let checks = turns.flat_map(|turn| turn["assertions"].as_array().unwrap());
    let failed = checks.filter(|check| check["soft"] == true && check["passed"] == false);
    failed.filter_map(|check| check["criterion"].as_str()).collect()
}

#[test]
fn front_ends_record_the_same_trace() {
    let recorded = run_front_ends(&example("booking"));
    assert_all_same(&recorded, &[]);
    assert_eq!(failed_soft_checks(&recorded.rust), [""; 0]);
    // Judgements, topic assertions and informational checks are included in the comparison.
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
fn informational_failures_have_the_same_messages() {
    let project = faulty_project(&[("reply: Gladly! Which room would", "reply: Which room would")]);
    let recorded = run_front_ends(&project);
    assert_all_same(&recorded, &[]);
    assert_eq!(failed_soft_checks(&recorded.data), ["friendly"]);
}

#[test]
fn faulty_agent_fails_with_the_same_messages() {
    let project = faulty_project(&[
        ("reply: Welcome! I am happy", "reply: Welcome! The hall is free, and I am happy"),
        ("reply: Gladly! Which room would", "reply: The Blue Room is free. Which room would"),
        ("(?<room>\\\\w+ room) for (?<capacity>", "(?<room>\\\\w+ hall) for (?<capacity>"),
    ]);
    let failing = [
        "handles standard venue search",
        "handles booking with modification",
        "progresses through booking flow",
    ];
    assert_all_same(&run_front_ends(&project), &failing);
}

/// A program stops at the first failed check; a case file also evaluates the other checks of the turn.
#[test]
fn case_file_finishes_turn_after_failed_check() {
    let project = faulty_project(&[(
        "{ tool_calls: [{ name: book_room, arguments: { room: Blue Room, time: 3pm } }] }",
        "It is booked.",
    )]);
    let Recorded { data, typescript, rust } = run_front_ends(&project);
    for ((data, typescript), rust) in data.iter().zip(&typescript).zip(&rust) {
        let (data, typescript, rust) =
            (unordered(&comparable(data)), comparable(typescript), comparable(rust));
        assert_same(&typescript, &rust);
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
