//! Order of written turns: agents that finish early, failing turns, expected answers.

use hotseat_testkit::FakeAgent;
use serde_json::{Value, json};

use crate::common::Project;

/// An agent that asks once and then finishes.
fn agent() -> FakeAgent {
    FakeAgent::with_run(|run, request| {
        match request.last_user_text().as_str() {
            "ask" => run.text("Which one?"),
            "json" => run.text("{\"b\": 1.0, \"a\": [1, 2]}"),
            said => run.text(&format!("Done: {said}.")),
        }
        .finished()
    })
}

#[test]
fn agent_finishes_before_all_turns_are_sent() {
    let agent = agent();
    let case = |id: &str, how: Value| {
        let mut case = json!({"id": id, "turns": [{"input": "ask"}, {"input": "one"}, {"input": "two"}],
            "final_assertions": [{"type": "contains", "value": "Done: one."}]});
        case.as_object_mut().unwrap().extend(how.as_object().unwrap().clone());
        case
    };
    let case_with = |policy: &str| case(policy, json!({"on_complete": policy}));
    let cases = [case("usual", json!({})), case_with("continue"), case_with("stop"), case_with("fail")];
    let tested = Project::with_agent(&agent).cases(&cases).test(&[]);
    for (name, status, turns) in
        [("usual", "failed", 3), ("continue", "failed", 3), ("stop", "passed", 2), ("fail", "failed", 2)]
    {
        let case = tested.case(name);
        assert_eq!((&case["status"], &case["total_turns"]), (&json!(status), &json!(turns)), "{name}");
    }
    for (case, words) in [("stop", Some("PASSED")), ("fail", Some("└─ Turn 3: not run")), ("continue", None)]
    {
        let stdout = Project::with_agent(&agent).cases(&[case_with(case)]).test(&[]).output.stdout;
        let line = stdout.lines().find(|line| line.contains("urn 3: not run"));
        assert_eq!(line.is_some(), words.is_some(), "{stdout}");
        assert!(words.is_none_or(|words| line.is_some_and(|line| line.contains(words))), "{stdout}");
    }
    // All reports name the turns that were not sent.
    for (name, rest) in [
        ("continue", Value::Null),
        ("stop", json!({"first": 3, "last": 3})),
        ("fail", json!({"first": 3, "last": 3})),
    ] {
        assert_eq!(tested.case(name)["turns_not_run"], rest, "{name}");
    }
    let mut long = case_with("fail");
    long["turns"].as_array_mut().unwrap().push(json!({"input": "three"}));
    let project = Project::with_agent(&agent).file("a.test.jsonl", &long.to_string());
    let reports = ["-o", "out.md", "-o", "out.xml", "-o", "out.html", "-o", "out.jsonl"];
    project.test(&reports);
    for (file, words) in [
        ("out.md", "\nTurns 3-4: not run\n</details>"),
        ("out.xml", "\nTurns 3-4: not run\n"),
        ("out.html", r#""turns_not_run":{"first":3,"last":4}"#),
        ("out.jsonl", r#""turns_not_run":{"first":3,"last":4}"#),
    ] {
        let text = project.workspace.read(file);
        assert!(text.contains(words), "{file}: {text}");
    }
    let error = tested.case("fail")["error"].as_str().unwrap();
    assert_eq!(
        error,
        "the agent completed after turn 2, but `on_complete: fail` requires it to await turn 3"
    );
}

#[test]
fn failed_turn_ends_conversation_by_default() {
    let agent = agent();
    let turns = json!([
        {"input": "first", "assert": [{"type": "contains", "value": "nowhere"}]},
        {"input": "second", "assert": [{"type": "contains", "value": "second"}]},
        {"input": "third", "assert": [{"type": "contains", "value": "nowhere"}]}
    ]);
    let last = json!([{"type": "contains", "value": "third"}]);
    let tested = Project::with_agent(&agent)
        .cases(&[
            json!({"id": "ends", "turns": turns, "final_assertions": last}),
            json!({"id": "goes on", "turns": turns, "final_assertions": last, "continue_on_failure": true}),
        ])
        .test(&[]);
    let ends = tested.case("ends");
    assert_eq!((&ends["status"], &ends["total_turns"]), (&json!("failed"), &json!(1)));
    assert_eq!(ends.get("final_assertions"), None);
    let goes_on = tested.case("goes on");
    assert_eq!((&goes_on["status"], &goes_on["total_turns"]), (&json!("failed"), &json!(3)));
    assert_eq!(goes_on["final_assertions"][0]["passed"], true);
    let statuses: Vec<&Value> =
        goes_on["turns"].as_array().unwrap().iter().map(|turn| &turn["status"]).collect();
    assert_eq!(statuses, ["failed", "passed", "failed"]);
    assert_eq!(goes_on["assertion_errors"].as_array().unwrap().len(), 2);
    assert_eq!(agent.requests().len(), 4);
}

#[test]
fn agent_error_always_ends_conversation() {
    let agent = FakeAgent::with_run(|run, _| run.error("out of order", None));
    let case = json!({"id": "a", "turns": [{"input": "x"}, {"input": "y"}], "continue_on_failure": true});
    let tested = Project::with_agent(&agent).cases(&[case]).test(&[]);
    assert_eq!(tested.failure("a")["kind"], "agent_error");
    assert_eq!(agent.requests().len(), 1);
}

#[test]
fn matches_whole_answer() {
    let agent = agent();
    let wrong = "nothing of the kind";
    let tested = Project::with_agent(&agent).cases(&[
        json!({"id": "text", "input": "x", "expected": "Done: x."}),
        json!({"id": "not this", "input": "x", "expected": "Done: y."}),
        json!({"id": "json", "input": "json", "expected": {"a": [1, 2], "b": 1}}),
        json!({"id": "decided otherwise", "input": "x", "expected": wrong, "assert": [{"type": "contains", "value": "x"}]}),
        json!({"id": "by a turn", "turns": [{"input": "x", "assert": [{"type": "contains", "value": "x"}]}], "expected": wrong}),
    ]).test(&[]);
    for (name, status) in [
        ("text", "passed"),
        ("not this", "failed"),
        ("json", "passed"),
        ("decided otherwise", "passed"),
        ("by a turn", "passed"),
    ] {
        assert_eq!(tested.case(name)["status"], status, "{name}: {:#}", tested.case(name));
    }
    let measured = &tested.case("decided otherwise")["assertions"][1];
    assert_eq!((&measured["passed"], &measured["soft"]), (&json!(false), &json!(true)));
}
