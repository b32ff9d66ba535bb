//! Tables of the documentation: modes, awaiting signals, assertions, errors.

use serde_json::{Value, json};

use super::adapters::{ADAPTERS, SampleProject, sample};
use crate::common::TestRun;

fn run_table(suite: &str) -> TestRun {
    let name = format!("{suite}.jsonl");
    SampleProject::create()
        .with_test_file(&name, &sample(&format!("suites/{name}")))
        .run_with_every_adapter(&name, &[])
}

/// Selected members of each case, in file order.
fn case_members(tested: &TestRun, members: &[&str]) -> Vec<Value> {
    let results = tested.results();
    results.iter().map(|case| members.iter().map(|member| case[*member].clone()).collect()).collect()
}

#[test]
fn conversation_modes() {
    let tested = run_table("modes");
    let sources = |case: &str| -> Vec<Value> {
        let turns = tested.case(case)["turns"].as_array().cloned().unwrap_or_default();
        turns.iter().map(|turn| turn["input_source"].clone()).collect()
    };
    assert_eq!(
        case_members(&tested, &["id", "status", "total_turns"]),
        [
            json!(["standard", "passed", 1]),
            json!(["message", "passed", 1]),
            json!(["static", "passed", 3]),
            json!(["hybrid", "passed", 3]),
            json!(["dynamic", "passed", 3]),
            json!(["goal", "passed", 1]),
            json!(["skip", "skipped", 1]),
            json!(["fail", "failed", 1]),
            json!(["end", "passed", 1]),
            json!(["left out", "skipped", 0]),
        ]
    );
    assert_eq!(sources("hybrid"), ["static", "simulated", "simulated"]);
    assert_eq!(sources("dynamic"), ["simulated"; 3]);
    let reached: Vec<Value> = tested.case("dynamic")["checkpoints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|checkpoint| json!([checkpoint["id"], checkpoint["reached_at_turn"]]))
        .collect();
    assert_eq!(reached, [json!(["late", 3]), json!(["early", 1]), json!(["never", null])]);
}

/// A human answers on stdin, with every adapter.
#[test]
fn human_continues_conversation() {
    let case = json!({"id": "typed", "turns": [{"input": "I want to submit an expense"}], "interactive": {"enabled": true},
        "final_assertions": [{"type": "contains", "value": "submitted"}]});
    let house = SampleProject::create().with_test_file("typed.jsonl", &case.to_string());
    for door in ADAPTERS {
        let config = format!("{door}.yaml");
        let report = format!("{door}.json");
        house
            .command(&["test", "--config", &config, "-i", "tests/typed.jsonl", "-o", &report])
            .stdin("Travel, $80\nYes\n")
            .run()
            .assert_code(0);
        let report = house.project.workspace.read_json(&report);
        let sources: Vec<&Value> = report["results"][0]["turns"]
            .as_array()
            .unwrap()
            .iter()
            .map(|turn| &turn["input_source"])
            .collect();
        assert_eq!(sources, ["static", "interactive", "interactive"], "{door}");
    }
}

#[test]
fn awaiting_signals() {
    let tested = run_table("awaiting");
    let reasons: Vec<Value> = tested
        .results()
        .iter()
        .map(|case| {
            json!([case["id"], case["turns"][0]["awaiting_input"], case["turns"][0]["awaiting_reason"]])
        })
        .collect();
    assert_eq!(
        reasons,
        [
            json!(["declared", true, "agent_declared"]),
            json!(["declared done", false, "agent_declared_done"]),
            json!(["request_confirmation", true, "tool_requires_confirmation"]),
            json!(["ask_user", true, "tool_requires_confirmation"]),
            json!(["get_user_input", true, "tool_requires_confirmation"]),
            json!(["another tool", false, "completed"]),
            json!(["a tool that there is not", false, "completed"]),
            json!(["a tool that fails", false, "completed"]),
            json!(["question mark", true, "content_is_question"]),
            json!(["full-width mark", true, "content_is_question"]),
            json!(["a word that asks", true, "content_is_question"]),
            json!(["please", true, "content_is_question"]),
            json!(["confirm", true, "content_is_question"]),
            json!(["completed", false, "completed"]),
        ]
    );
}

/// Calling a missing tool is a failed call, and every adapter reports the failure.
#[test]
fn failing_calls() {
    let cases = ["nothing", "break"]
        .map(|tool| json!({"id": tool, "input": format!("call {tool}"), "assertions": [{"type": "tool_result", "tool": if tool == "nothing" { "no_such_tool" } else { tool }}]}).to_string());
    let house = SampleProject::create().with_test_file("failing.jsonl", &cases.join("\n"));
    for door in ADAPTERS {
        let tested = house.run_with(door, "failing.jsonl", &[]);
        for (id, words) in [("nothing", "unknown tool no_such_tool"), ("break", "it is broken")] {
            let case = tested.case(id);
            let call = &case["turns"][0]["tool_calls"][0];
            assert!(call["error"].as_str().is_some_and(|said| said.contains(words)), "{door}: {call}");
            assert_eq!(case["status"], "failed", "{door}");
        }
    }
}

/// AG-UI has no finish reason, so there alone a truncated reply is treated as the question it resembles.
#[test]
fn truncated_reply() {
    let house = SampleProject::create()
        .with_test_file("cut.jsonl", &json!({"id": "cut", "input": "cut"}).to_string());
    for door in ADAPTERS {
        let tested = house.run_with(door, "cut.jsonl", &[]);
        let expected = if door == "ag_ui" { "content_is_question" } else { "finish_reason" };
        assert_eq!(tested.case("cut")["turns"][0]["awaiting_reason"], expected, "{door}");
    }
}

#[test]
fn assertion_table() {
    let tested = run_table("assertions");
    let results = tested.results();
    for case in results {
        let id = case["id"].as_str().unwrap();
        let expected = if id.ends_with(", not") || id == "all must hold" { "failed" } else { "passed" };
        assert_eq!(case["status"], expected, "{case:#}");
    }
    let failed = |id: &str| tested.case(id)["assertion_errors"].as_array().unwrap().len();
    assert_eq!(failed("all must hold"), 2, "every failed assertion is reported");
    for (id, words) in [
        ("contains, not", "success"),
        ("equals, not", "OK"),
        ("regex, not", "order-"),
        ("json_path, not", "$.status"),
        ("tool_called, not", "create_expense"),
        ("type, not", "number"),
        ("agent, not", "Nobody apologizes"),
    ] {
        let case = tested.case(id);
        assert!(case["assertion_errors"][0].as_str().unwrap().contains(words), "{case:#}");
    }
}

#[test]
fn error_table() {
    let tested = run_table("errors");
    let outcome = |id: &str, status: &str, error: Value, kind: Value| json!([id, status, error, kind]);
    let out_of_order = "agent error: the model is out of order (LLM_FAILED)";
    assert_eq!(
        case_members(&tested, &["id", "status", "error", "error_kind"])
            .into_iter()
            .map(|mut case| {
                // Assertion messages are checked in the assertion tests.
                if case[3] == "assertion" {
                    case[2] = Value::Null;
                }
                case
            })
            .collect::<Vec<_>>(),
        [
            outcome("agent timeout", "failed", json!("timeout after 400ms"), json!("timeout")),
            outcome("agent error", "failed", json!(out_of_order), json!("agent_error")),
            outcome("assertion failed", "failed", Value::Null, json!("assertion")),
            outcome("simulator error", "skipped", Value::Null, Value::Null),
            outcome("no initial input", "failed", json!("no initial input"), json!("no_input")),
            outcome("max turns exceeded", "failed", json!("max turns (20) exceeded"), json!("max_turns")),
            outcome("all turns passed", "passed", Value::Null, Value::Null),
            outcome("any turn failed", "failed", Value::Null, json!("assertion")),
            outcome("skipped due to missing input", "skipped", Value::Null, Value::Null),
            outcome("standard timeout", "failed", json!("timeout after 400ms"), json!("timeout")),
            outcome("standard agent error", "failed", json!(out_of_order), json!("agent_error")),
            outcome("standard assertion failed", "failed", Value::Null, json!("assertion")),
            outcome("all checkpoints reached", "passed", Value::Null, Value::Null),
            outcome(
                "checkpoints missing",
                "failed",
                json!("missing checkpoints: a, b"),
                json!("missing_checkpoints")
            ),
            outcome(
                "dynamic max turns",
                "failed",
                json!("max turns (20) exceeded; missing checkpoints: a"),
                json!("max_turns")
            ),
            outcome("dynamic timeout", "failed", json!("timeout after 400ms"), json!("timeout")),
            outcome(
                "dynamic simulator error",
                "failed",
                json!("simulator error: nobody is there"),
                json!("simulator_error")
            ),
            outcome(
                "checkpoint failed",
                "failed",
                json!("checkpoint X failed: nobody is there (asked 3 times)"),
                json!("judge_error")
            ),
        ]
    );
    let turn = |id: &str, number: usize| &tested.case(id)["turns"][number];
    for (id, words) in [
        ("agent timeout", json!("timeout after 400ms")),
        ("agent error", json!(out_of_order)),
        ("assertion failed", Value::Null),
    ] {
        assert_eq!((&turn(id, 0)["status"], &turn(id, 0)["error"]), (&json!("failed"), &words), "{id}");
    }
    let skipped = tested.case("simulator error");
    assert!(skipped["skip_reason"].as_str().unwrap().starts_with("simulator error"), "{skipped:#}");
    assert_eq!(turn("simulator error", 1)["status"], "skipped");
    assert!(turn("simulator error", 1)["skip_reason"].as_str().unwrap().starts_with("simulator error"));
    let statuses: Vec<&Value> = (0..3).map(|number| &turn("any turn failed", number)["status"]).collect();
    assert_eq!(statuses[..2], ["passed", "failed"]);
    for id in ["assertion failed", "standard assertion failed"] {
        let told = tested.case(id)["assertion_errors"][0].as_str().unwrap();
        assert!(told.contains("Bye"), "{told}");
    }
    let skipped = tested.case("skipped due to missing input");
    assert!(skipped["skip_reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{skipped:#}");
    // The tables count timeouts and agent errors as failures.
    assert_eq!(
        tested.count("failed") + tested.count("passed") + tested.count("skipped"),
        tested.count("total")
    );
    assert_eq!(tested.output.code, 1);
}
