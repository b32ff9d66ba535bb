//! Known weaknesses of the predecessor of the case files, and the behaviour required instead.
//!
//! The weaknesses are numbered W1 to W25. Other tests that cover them:
//!
//! | | covered by |
//! |---|---|
//! | W1 | `failures::misspelled_key`, `errors::unknown_keys_suggest_similar_key`, `case_files::rejects_unreachable_or_empty_checkpoints` |
//! | W2 | `assertions::equals` |
//! | W3 | `assertions` (each table also runs negated), `roles::invalid_judge_answer_is_judge_error` |
//! | W4 | `assertions::tool_called`, `assertions::tool_result` |
//! | W5 | `assertions::json_path`, `assertions::value_type`, `assertions::schema` |
//! | W7 | `roles::achieved_goal_ends_conversation`, `repeats::consistency_measures_answer_agreement` |
//! | W10 | `inputs::generates_cases`, `samples::commands` |
//! | W11 | `roles::default_simulator_applies_to_all_cases`, `roles::simulated_user_is_asked_only_if_agent_waits`, `human`, `samples::tables` |
//! | W13 | `reports::json_lines_are_written_as_cases_finish`, `console_layouts::concurrent_conversations_are_not_interleaved` |
//! | W14 | `identity::merges_metadata_from_all_levels` |
//! | W15 | `failures::hanging_hook_is_killed_with_children`, `roles::unresponsive_simulated_user_ends_with_case` |
//! | W16 | `runner::fail_fast_finishes_running_cases`, `roles::simulated_user_receives_full_context` |
//! | W17 | `runner::skipped_cases_are_counted_and_do_not_fail_run`, `identity::reports_contain_user_identity`, `errors::rejects_unwritable_report` |
//! | W18 | `errors::rejects_duplicate_case_names` |
//! | W19 | `inputs::generated_cases_can_be_saved_and_rerun` |
//! | W20 | `agents`, `http_agent`, `openai`, `command`, `replay`, `samples` |
//! | W21 | `assertions::tool_sequence`, `reports::junit_is_well_formed_with_correct_counts` |
//! | W22 | `roles::invalid_judge_answer_is_judge_error` |
//! | W23 | `samples::documents`: the same conversation as a history and turn by turn |
//! | W24 | `case_files::reports_waiting_agent`, `samples::tables::signs_of_waiting` |
//! | W25 | `roles::conversation_ends_at_turn_limit`, `roles::dynamic_case_runs_until_checkpoints_are_reached`, `simulate::out_of_role_user_makes_attempt_invalid`, `simulate::end_of_simulation_is_recorded` |
//!
//! W9 is about scripts; W12 is tested here for hooks that are commands.
use hotseat_testkit::agui::FakeRun;
use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest};
use serde_json::{Value, json};

use crate::common::{Project, TestRun, echo_agent};

/// An agent that repeats the user text verbatim.
fn echo_verbatim() -> FakeAgent {
    FakeAgent::with_run(|run, request| run.text(&request.last_user_text()).finished())
}

fn status<'a>(tested: &'a TestRun, case: &str) -> &'a str {
    tested.case(case)["status"].as_str().unwrap()
}

// W1
#[test]
fn assertions_work_under_every_name_and_location() {
    let agent = echo_agent();
    let wrong = json!([{"type": "contains", "value": "nowhere"}]);
    let mut cases = Vec::new();
    for name in ["assertions", "assert"] {
        cases.push(json!({"id": format!("case {name}"), "input": "hi", name: wrong}));
        cases.push(json!({"id": format!("one {name}"), "input": "hi", name: wrong[0]}));
        cases.push(json!({"id": format!("turn {name}"), "turns": [{"input": "hi", name: wrong}]}));
    }
    cases.push(json!({"id": "final", "turns": [{"input": "hi"}], "final_assertions": wrong}));
    for name in ["assertion", "assert"] {
        let checkpoint = json!([{"id": "x", name: wrong[0]}]);
        cases.push(json!({"id": format!("checkpoint {name}"), "turns": [{"input": "hi"}], "checkpoints": checkpoint}));
    }
    let tested = Project::with_agent(&agent).cases(&cases).test(&[]);
    for case in &cases {
        assert_eq!(status(&tested, case["id"].as_str().unwrap()), "failed", "{case}");
    }
    for (case, words) in [
        (json!({"id": "a", "input": "hi", "assertions": wrong, "assert": wrong}), "assert"),
        (json!({"id": "a", "input": "hi", "assert": "contains"}), "assert"),
        (json!({"id": "a", "input": "hi", "asserts": wrong}), "did you mean"),
    ] {
        Project::with_agent(&agent)
            .file("a.test.jsonl", &case.to_string())
            .hotseat(&["test"])
            .assert_stderr(2, &[words]);
    }
}

// W2
#[test]
fn object_equality_ignores_key_order() {
    let given = r#"{"a": {"x": 1, "y": [1, 2], "z": null}, "b": 2.0, "c": "three"}"#;
    let orders = [
        r#"{"c": "three", "b": 2, "a": {"z": null, "y": [1, 2.0], "x": 1}}"#,
        r#"{"b": 2.0, "a": {"y": [1, 2], "x": 1.0, "z": null}, "c": "three"}"#,
        r#"{"a": {"x": 1, "z": null, "y": [1, 2]}, "c": "three", "b": 2}"#,
    ];
    let agent = FakeAgent::with_run(move |run, _| {
        let value: Value = serde_json::from_str(given).unwrap();
        run.tool("c1", "take", &value, Some(json!("ok"))).text(given).finished()
    });
    // Text values, so that key order is preserved.
    let cases = orders.iter().enumerate().map(|(number, order)| {
        format!(
            r#"{{"id": "equals {number}", "input": "x", "assertions": [{{"type": "equals", "value": {order}}}]}}
{{"id": "expected {number}", "input": "x", "expected": {order}}}
{{"id": "arguments {number}", "input": "x", "assertions": [{{"type": "tool_called", "name": "take", "arguments": {order}, "match": "exact"}}]}}
{{"id": "not {number}", "input": "x", "assertions": [{{"type": "equals", "value": {order}, "negate": true}}]}}"#
        )
    });
    let text = cases.collect::<Vec<_>>().join("\n");
    let tested = Project::with_agent(&agent).file("a.test.jsonl", &text).test(&[]);
    for number in 0..orders.len() {
        for name in ["equals", "expected", "arguments"] {
            assert_eq!(status(&tested, &format!("{name} {number}")), "passed", "{}", tested.output);
        }
        assert_eq!(status(&tested, &format!("not {number}")), "failed");
    }
}

// W3
#[test]
fn undecidable_checks_fail_even_if_negated() {
    let agent = echo_verbatim();
    for wrong in [
        json!({"type": "contain", "value": "x"}),
        json!({"type": "regex", "pattern": "("}),
        json!({"type": "json_path", "path": "$["}),
        json!({"type": "agent", "use": "agents:nobody", "criteria": "x"}),
    ] {
        for negate in [false, true] {
            let mut wrong = wrong.clone();
            wrong["negate"] = json!(negate);
            let case = json!({"id": "a", "input": "x", "assertions": [wrong]}).to_string();
            let output = Project::with_agent(&agent).file("a.test.jsonl", &case).hotseat(&["test"]);
            assert_eq!(output.code, 2, "{case}\n{output}");
        }
    }
    assert_eq!(agent.requests().len(), 0);
}

// W4
#[test]
fn tool_names_match_exactly_and_every_call_is_checked() {
    let agent = FakeAgent::with_run(|run, _| {
        run.tool("c1", "repay_loan", &json!({}), Some(json!({"status": "declined"})))
            .tool("c2", "repay_loan", &json!({}), Some(json!({"status": "paid"})))
            .text("Done.")
            .finished()
    });
    let asserting = |id: &str, assertion: Value| json!({"id": id, "input": "x", "assertions": [assertion]});
    let tested = Project::with_agent(&agent)
        .cases(&[
            asserting("part", json!({"type": "tool_called", "name": "pay"})),
            asserting("whole", json!({"type": "tool_called", "name": "repay_loan"})),
            asserting(
                "second",
                json!({"type": "tool_result", "tool": "repay_loan", "result": {"status": "paid"}}),
            ),
            asserting(
                "neither",
                json!({"type": "tool_result", "tool": "repay_loan", "result": {"status": "lost"}}),
            ),
            asserting("part of a result", json!({"type": "tool_result", "tool": "pay"})),
        ])
        .test(&[]);
    for (case, expected) in [
        ("part", "failed"),
        ("whole", "passed"),
        ("second", "passed"),
        ("neither", "failed"),
        ("part of a result", "failed"),
    ] {
        assert_eq!(status(&tested, case), expected, "{case}");
    }
}

// W5
#[test]
fn json_paths_follow_rfc_and_missing_is_not_null() {
    let agent = echo_verbatim();
    let said = r#"{"list": [{"n": 1}, {"n": 2}], "a key": true, "nothing": null, "count": 3}"#;
    let path = |id: &str, path: &str, value: Value| json!({"id": id, "input": said, "assertions": [{"type": "json_path", "path": path, "value": value}]});
    let kind = |id: &str, path: &str| json!({"id": id, "input": said, "assertions": [{"type": "type", "path": path, "value": "number"}]});
    let tested = Project::with_agent(&agent).cases(&[
        path("index", "$.list[0].n", json!(1)),
        path("from the end", "$.list[-1].n", json!(2)),
        path("filter", "$.list[?@.n > 1].n", json!(2)),
        path("quoted", "$['a key']", json!(true)),
        path("null", "$.nothing", Value::Null),
        path("missing", "$.missing", Value::Null),
        kind("type at a path", "$.count"),
        kind("another type at a path", "$.list"),
        json!({"id": "first of a list", "input": "[5, 6]", "assertions": [{"type": "json_path", "path": "$[0]", "value": 5}]}),
    ]).test(&[]);
    for case in ["index", "from the end", "filter", "quoted", "null", "type at a path", "first of a list"] {
        assert_eq!(status(&tested, case), "passed", "{:#}", tested.case(case));
    }
    for case in ["missing", "another type at a path"] {
        assert_eq!(status(&tested, case), "failed", "{:#}", tested.case(case));
    }
}

/// `expected` decides unless there are assertions, so keys without any do not switch it off.
#[test]
fn expected_decides_beside_keys_without_assertions() {
    let optional = json!([{"id": "c", "required": false, "assertion": {"type": "contains", "value": "zzz"}}]);
    let rows = [
        (json!({"assert": false}), "failed"),
        (json!({"assert": {"tools": false}}), "failed"),
        (json!({"checkpoints": []}), "failed"),
        (json!({"checkpoints": optional}), "failed"),
        (json!({"assert": {"text": {"must_match": "a"}}}), "passed"),
        (json!({"final_assertions": {"type": "contains", "value": "a"}}), "passed"),
        (json!({"turns": [{"input": "a", "assert": {"type": "contains", "value": "a"}}]}), "passed"),
    ];
    let cases: Vec<Value> = rows
        .iter()
        .enumerate()
        .map(|(number, (more, _))| {
            let mut case = json!({"id": number.to_string(), "expected": "b"});
            let members = case.as_object_mut().unwrap();
            members.extend(more.as_object().unwrap().clone());
            members.entry("turns").or_insert(json!([{"input": "a"}]));
            case
        })
        .collect();
    let tested = Project::with_agent(&echo_verbatim()).cases(&cases).test(&[]);
    for (number, (more, expected)) in rows.iter().enumerate() {
        assert_eq!(status(&tested, &number.to_string()), *expected, "{more}");
    }
}

/// A case that is skipped since nobody answers the agent fails if the agent has done what it never may.
#[test]
fn a_skip_does_not_hide_what_the_agent_did() {
    let agent = FakeAgent::with_run(|run, _| {
        run.tool("c", "delete", &json!({"id": 7}), Some(json!("gone"))).text("Anything else?").finished()
    });
    let satisfy = |checks: Value| json!([{"type": "satisfy", "criteria": [{"description": "is careful", "match": checks}]}]);
    let never_deletes = json!({"type": "tool_called", "name": "delete", "negate": true});
    let rows = [
        (json!({"tools": {"forbid": ["delete"]}}), "failed"),
        (json!({"tools": {"forbid_calls": [{"name": "delete", "args_match": {"id": "7"}}]}}), "failed"),
        (json!([{"type": "tool_called", "name": "delete", "negate": true}]), "failed"),
        (json!({"text": {"must_not_match": "Anything"}}), "failed"),
        (json!({"text": {"must_not_match": "\\bother\\b|Any\\w+ else\\?"}}), "failed"),
        (json!({"text": {"must_not_match": "/else.$/m"}}), "failed"),
        (json!([{"type": "tool_called", "name": "delete", "count": {"exact": 0}}]), "failed"),
        (json!([{"type": "tool_result", "tool": "delete", "result": "gone", "negate": true}]), "failed"),
        (json!([{"type": "tool_sequence", "calls": [{"name": "refund"}], "order": "subset"}]), "failed"),
        (json!([{"type": "max_tool_calls", "value": 0}]), "failed"),
        (json!([{"type": "value", "of": "tool_names", "contains": ["delete"], "negate": true}]), "failed"),
        (satisfy(json!([{"type": "tool_called", "name": "refund"}, never_deletes])), "failed"),
        // A further turn could still satisfy these.
        (json!({"tools": {"require": ["refund"]}}), "skipped"),
        (json!([{"type": "tool_called", "name": "delete", "count": {"exact": 2}}]), "skipped"),
        (json!({"text": {"must_match": "Goodbye"}}), "skipped"),
        (json!({"text": {"must_not_match": "else\\?$"}}), "skipped"),
        (json!({"text": {"must_not_match": "(else\\?|\\d)$"}}), "skipped"),
        (json!([{"type": "tool_sequence", "calls": [{"name": "refund"}], "order": "superset"}]), "skipped"),
        (satisfy(json!([{"type": "tool_called", "name": "refund"}])), "skipped"),
        (json!({"tools": {"forbid": ["refund"]}}), "skipped"),
    ];
    let cases: Vec<Value> = rows
        .iter()
        .enumerate()
        .map(|(number, (assert, _))| {
            json!({"id": number.to_string(), "type": "multi_turn", "turns": [{"input": "hi"}], "assert": assert})
        })
        .collect();
    let tested = Project::with_agent(&agent).cases(&cases).test(&[]);
    for (number, (assert, expected)) in rows.iter().enumerate() {
        assert_eq!(status(&tested, &number.to_string()), *expected, "{assert}");
    }
}

// W6
#[test]
fn prose_is_not_data_and_embedded_data_is_found() {
    let agent = echo_verbatim();
    let path = |id: &str, said: &str| json!({"id": id, "input": said, "assertions": [{"type": "json_path", "path": "$.Note"}]});
    let tested = Project::with_agent(&agent).cases(&[
        path("prose", "Note: buy milk"),
        path("whole", r#"{"Note": "buy milk"}"#),
        path("fenced", "Here it is:\n```json\n{\"Note\": \"buy milk\"}\n```"),
        path("in prose", "Here: {\"Note\": \"buy milk\"} as you wanted."),
        json!({"id": "text", "input": "Note: buy milk", "assertions": [{"type": "type", "value": "string"}, {"type": "equals", "value": "Note: buy milk"}]}),
    ]).test(&[]);
    for (case, expected) in [
        ("prose", "failed"),
        ("whole", "passed"),
        ("fenced", "passed"),
        ("in prose", "passed"),
        ("text", "passed"),
    ] {
        assert_eq!(status(&tested, case), expected, "{:#}", tested.case(case));
    }
    // A simulated user may use these words.
    let user = FakeAgent::with_text("Note: it was $250");
    let project = Project::with_config(&format!(
        "target: {{ endpoint: '{agent}' }}\nagents: {{ user: {{ endpoint: '{user}' }} }}\n"
    ));
    let case = json!({"id": "said", "simulator": {"use": "user"}, "checkpoints": [{"id": "x", "assertion": {"type": "equals", "value": "Note: it was $250"}}]});
    project.file("a.test.jsonl", &case.to_string()).test(&[]).assert_all_passed();
}

// W8
#[test]
fn text_next_to_data_is_kept_unchanged() {
    let agent = FakeAgent::start(|request: &FakeRequest| match request.last_user_text().as_str() {
        "both" => {
            let asked = request.json();
            FakeRun::for_request(request).started().text("It is done.").raw_event(json!({
                "type": "RUN_FINISHED", "threadId": asked["threadId"], "runId": asked["runId"],
                "result": {"status": "ok"},
            }))
        }
        _ => FakeRun::for_request(request).started().text(r#"{"html": "a & b <c>"}"#).finished(),
    });
    let contains = |id: &str, said: &str, value: Value| json!({"id": id, "input": said, "assertions": [{"type": "contains", "value": value}]});
    let tested = Project::with_agent(&agent).cases(&[
        contains("signs", "signs", json!("a & b <c>")),
        contains("escaped", "signs", json!("\\u0026")),
        contains("words", "both", json!("It is done.")),
        json!({"id": "data", "input": "both", "assertions": [{"type": "json_path", "path": "$.status", "value": "ok"}]}),
    ]).test(&[]);
    for (case, expected) in
        [("signs", "passed"), ("escaped", "failed"), ("words", "passed"), ("data", "passed")]
    {
        assert_eq!(status(&tested, case), expected, "{:#}", tested.case(case));
    }
}

// W12
#[test]
fn hooks_are_found_for_any_agent_and_location() {
    let agent = echo_agent();
    let config = format!(
        "agents:\n  one: {{ endpoint: '{agent}' }}\n  two: {{ endpoint: '{agent}' }}\ntarget: one\nhooks:\n  note: {{ cmd: [sh, -c, 'read -r told; echo \"$told\" >> log'] }}\n"
    );
    let case = json!({"id": "a", "input": "hi", "before": "note"});
    let project = Project::with_config(&config).file("deep/tests/a.test.jsonl", &case.to_string());
    for args in [
        &["test", "-i", "a.test.jsonl"][..],
        &["test", "-n", "two", "-i", "a.test.jsonl", "-u", "ada", "-t", "blue"],
    ] {
        project.command(args).cwd("deep/tests").run().assert_code(0);
    }
    let log = project.workspace.read("log");
    let told: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let who = |told: &Value| {
        let authorized = &told["ctx"]["authorized"];
        json!([authorized["user_id"], authorized["team_id"]])
    };
    assert_eq!(
        told.iter().map(who).collect::<Vec<_>>(),
        [json!(["test-user", "test-team"]), json!(["ada", "blue"])]
    );
}

// W14
#[test]
fn agent_receives_case_data_unchanged() {
    let agent = echo_agent();
    let options = json!({
        "skip": {"history": false, "trace": true}, "search": {"engine": "local", "depth": 2}, "mode": "chat",
        "metadata": {"scenario": "edge"}
    });
    let case = json!({"id": "a", "input": "hi", "metadata": {"owner": "me"}, "options": options});
    Project::with_agent(&agent).cases(&[case]).test(&[]).assert_all_passed();
    let told = agent.requests()[0].json()["forwardedProps"]["options"].clone();
    for key in ["skip", "search", "mode"] {
        assert_eq!(told[key], options[key], "{told:#}");
    }
    assert_eq!(told["metadata"], json!({"owner": "me", "scenario": "edge"}));
}

// W15
#[test]
fn limits_apply_inside_turns_and_judgements() {
    let agent = FakeAgent::start(|request: &FakeRequest| -> FakeReply {
        match request.last_user_text().as_str() {
            "hang" => FakeRun::for_request(request).started().hang().into(),
            _ => crate::common::echo(request),
        }
    });
    let silent = FakeAgent::start(|_: &FakeRequest| FakeReply::never());
    let project = Project::with_config(&format!(
        "target: {{ endpoint: '{agent}' }}\nagents: {{ silent: {{ endpoint: '{silent}', timeout_ms: 400 }} }}\n"
    ));
    let never = json!([{"id": "x", "assertion": {"type": "contains", "value": "nowhere"}}]);
    let judged = json!([{"type": "agent", "use": "agents:silent", "criteria": "x"}]);
    let cases = [
        json!({"id": "dynamic", "input": "hang", "simulator": {"use": "silent"}, "checkpoints": never, "timeout": "300ms"}),
        json!({"id": "standard", "input": "hang", "timeout": "300ms"}),
        json!({"id": "judge", "input": "hi", "assertions": judged}),
        json!({"id": "next", "input": "hi"}),
    ];
    let tested = project.cases(&cases).test(&["--parallel", "1"]);
    for case in ["dynamic", "standard"] {
        assert_eq!(tested.case(case)["error"], "timeout after 300ms", "{:#}", tested.case(case));
    }
    assert_eq!(tested.case("judge")["error_kind"], "judge_error");
    assert_eq!(status(&tested, "next"), "passed", "the run continues");
}

// W16
#[test]
fn parallel_cases_are_isolated() {
    let agent = echo_verbatim();
    let user = FakeAgent::with_run(|run, request| {
        let told = request.last_user_json();
        run.text(&format!("I am {}", told["test_id"].as_str().unwrap())).finished()
    });
    let project = Project::with_config(&format!(
        "target: {{ endpoint: '{agent}' }}\nagents: {{ user: {{ endpoint: '{user}' }} }}\nhooks:\n  note: {{ cmd: [sh, -c, 'read -r told; echo ran >> log'] }}\n"
    ));
    let cases: Vec<String> = (0..40)
        .map(|number| {
            let id = format!("c{number}");
            let says = json!([{"id": "x", "assertion": {"type": "equals", "value": format!("I am {id}")}}]);
            json!({"id": id, "before": "note", "after": "note", "simulator": {"use": "user"}, "checkpoints": says}).to_string()
        })
        .collect();
    let project = project.file("a.test.jsonl", &cases.join("\n"));
    project.test(&["--parallel", "10"]).assert_all_passed();
    assert_eq!(project.workspace.read("log").lines().count(), 80);
    let mut threads: Vec<String> = user.requests().iter().map(|r| r.json()["threadId"].to_string()).collect();
    threads.sort();
    threads.dedup();
    assert_eq!(threads.len(), 40, "conversations are separate");
}

// W17
#[test]
fn unselected_cases_are_not_counted_and_skipped_are_listed() {
    let agent = echo_verbatim();
    let case = |id: &str, value: &str| json!({"id": id, "input": "hi", "assertions": [{"type": "contains", "value": value}]});
    let left_out = json!({"id": "left out", "input": "hi", "skip": true});
    let cases = [case("good", "hi"), case("bad", "no"), case("good too", "hi"), left_out];
    let chosen = Project::with_agent(&agent).cases(&cases).test(&["--run", "^good$"]);
    assert_eq!((chosen.count("total"), chosen.count("passed"), chosen.count("skipped")), (1, 1, 0));
    assert_eq!(chosen.report["summary"]["pass_rate"], json!(100.0));
    assert!(chosen.output.stdout.contains("Pass Rate: 100.0%"), "{}", chosen.output);
    let all = Project::with_agent(&agent).cases(&cases).test(&[]);
    assert_eq!(status(&all, "left out"), "skipped");
    assert_eq!(
        (all.count("total"), all.count("passed"), all.count("failed"), all.count("skipped")),
        (4, 2, 1, 1)
    );
    assert_eq!(all.report["summary"]["pass_rate"], json!(66.7), "of those that ran");
    // Every way to end has its own code.
    let project = Project::with_agent(&agent).file("a.test.jsonl", &cases[0].to_string());
    for (args, code) in [
        (&["test"][..], 0),
        (&["test", "--run", "nobody"], 4),
        (&["test", "--no-such-flag"], 2),
        (&["test", "-o", "/dev/null/x.json"], 3),
    ] {
        assert_eq!(project.hotseat(args).code, code, "{args:?}");
    }
}

// W18
#[test]
fn large_files_are_validated_before_run() {
    let agent = echo_verbatim();
    for (cases, words) in [
        ("{\"id\": \"a\", \"input\": \"1\"}\n{\"id\": \"a\", \"input\": \"2\"}", "`a`"),
        ("{\"id\": \"a\", \"input\": \"1\", \"timeout\": \"soon\"}", "timeout"),
        ("{\"id\": \"a\", \"input\": \"1\"}\n{\"id\": \"b\", input: 2}", "a.test.jsonl:2:"),
    ] {
        let output = Project::with_agent(&agent).file("a.test.jsonl", cases).hotseat(&["test"]);
        assert!(output.code == 2 && output.stderr.contains(words), "{words}\n{output}");
    }
    assert_eq!(agent.requests().len(), 0);
    let long = "人工智能和机器学习正在改变我们的世界。".repeat(60_000);
    let tested = Project::with_agent(&agent)
        .cases(&[json!({"id": "long", "input": long, "assertions": [{"type": "equals", "value": long}]})])
        .test(&[]);
    tested.assert_all_passed();
    // Truncation happens between characters.
    assert!(!tested.output.stdout.contains('\u{FFFD}'), "{}", tested.output);
    assert!(tested.output.stdout.lines().all(|line| line.chars().count() <= 100), "{}", tested.output);
}

// W19
#[test]
fn generated_cases_lose_nothing() {
    let agent = echo_verbatim();
    let made_up = json!({"cases": [
        {"id": "expected", "input": "{\"a\": 1}", "expected": {"a": 2}},
        {"id": "told", "input": "hi", "metadata": {"owner": "me"}, "options": {"metadata": {"tone": "friendly"}}, "assert": [{"type": "contains", "value": "no"}]}
    ]});
    let generator = FakeAgent::with_text(made_up.to_string());
    let project = Project::with_config(&format!(
        "agents: {{ mock: {{ endpoint: '{agent}' }}, gen: {{ endpoint: '{generator}' }} }}\n"
    ));
    let tested = project.test(&["-i", "agents:gen", "-n", "mock"]);
    for (case, expected) in [("expected", "failed"), ("told", "failed")] {
        assert_eq!(status(&tested, case), expected, "{:#}", tested.case(case));
    }
    assert_eq!(tested.case("told")["metadata"], json!({"owner": "me"}));
}

#[test]
fn generated_cases_choose_no_agent_and_no_model() {
    for part in [
        json!({"agent": "other"}),
        json!({"retries": 9}),
        json!({"reliability": 0.5}),
        json!({"options": {"connector": "dear"}}),
        json!({"turns": [{"input": "hi", "options": {"connector": "dear"}}]}),
        json!({"options": {"model": "dear"}}),
        json!({"options": {"metadata": {"tone": "friendly"}, "temperature": 2}}),
        json!({"turns": [{"input": "hi", "options": {"model": "dear"}}]}),
        json!({"simulator": {"options": {"model": "dear"}}}),
        json!({"simulate": {"goal": "x", "options": {"model": "dear"}}}),
        json!({"assert": [{"type": "agent", "criteria": "x", "options": {"model": "dear"}}]}),
        json!({"checkpoints": [{"id": "c", "assertion": {"type": "agent", "criteria": "x", "options": {"model": "dear"}}}]}),
    ] {
        let mut case = json!({"id": "a", "input": "hi"});
        case.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
        let agent = echo_verbatim();
        let generator = FakeAgent::with_run(move |run, _| {
            let cases = json!({"cases": [case.clone()]});
            run.text(&cases.to_string()).finished()
        });
        let config = format!(
            "agents: {{ mock: {{ endpoint: '{agent}' }}, other: {{ endpoint: '{agent}' }}, gen: {{ endpoint: '{generator}' }} }}\n"
        );
        let output = Project::with_config(&config).hotseat(&["test", "-i", "agents:gen", "-n", "mock"]);
        assert!(
            output.code == 3 && output.stderr.contains("agents:gen wrote a case with `"),
            "{part}: {output}"
        );
        assert!(agent.requests().is_empty(), "{part}");
    }
}

// W24
#[test]
fn awaiting_signals_are_configurable() {
    let agent = FakeAgent::start(|request: &FakeRequest| match request.last_user_text().as_str() {
        tool @ ("confirm_it" | "ask_user") => FakeRun::for_request(request)
            .started()
            .tool("c1", tool, &json!({}), Some(json!("asked")))
            .finished(),
        said => FakeRun::for_request(request).started().text(said).finished(),
    });
    let case = |id: &str, input: &str, more: Value| {
        let mut case = json!({"id": id, "input": input});
        case.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        case.to_string()
    };
    let tools = json!({"awaiting": {"tools": ["confirm_it"]}});
    let words = json!({"awaiting": {"questions": false}});
    let cases = [
        case("usual tool", "ask_user", json!({})),
        case("other tool", "confirm_it", json!({})),
        case("its tool", "confirm_it", tools.clone()),
        case("no longer", "ask_user", tools.clone()),
        case("question", "And then?", tools),
        case("no question", "And then?", words.clone()),
        case("declared", "{\"awaiting_input\": true}", words),
    ];
    let reasons = |tested: &TestRun| -> Vec<Value> {
        let results = tested.results();
        results.iter().map(|case| case["turns"][0]["awaiting_reason"].clone()).collect()
    };
    let asks = "tool_requires_confirmation";
    let project = Project::with_agent(&agent).file("a.test.jsonl", &cases.join("\n"));
    assert_eq!(
        reasons(&project.test(&[])),
        [asks, "completed", asks, "completed", "content_is_question", "completed", "agent_declared"]
    );
    let of_agent =
        format!("target: {{ endpoint: '{agent}', awaiting: {{ tools: [confirm_it], questions: false }} }}\n");
    project.workspace.file("hotseat.yaml", &of_agent);
    assert_eq!(
        reasons(&project.test(&[])),
        ["completed", asks, asks, "completed", "completed", "completed", "agent_declared"]
    );
    // Without a signal that the agent waits, the conversation does not continue.
    let quiet = r#"{"id": "quiet", "type": "multi_turn", "turns": [{"input": "And then?"}]}"#;
    project.workspace.file("a.test.jsonl", quiet);
    project.test(&[]).assert_all_passed();
}

// W24
#[test]
fn questions_are_recognized_in_several_languages() {
    let agent = echo_verbatim();
    let asked = [
        "This requires manager approval. Please provide PO number.",
        "Bitte nennen Sie mir den Betrag.",
        "Veuillez indiquer la date.",
        "金额是多少？",
        "¿Cuál es el importe?",
    ];
    let cases: Vec<Value> = asked.iter().map(|said| json!({"id": said, "input": said})).collect();
    let tested = Project::with_agent(&agent).cases(&cases).test(&[]);
    for said in asked {
        assert_eq!(tested.case(said)["turns"][0]["awaiting_reason"], "content_is_question", "{said}");
    }
}
