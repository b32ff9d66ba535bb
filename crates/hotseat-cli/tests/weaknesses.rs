//! What the forerunner of the case files is known to get wrong, and what must hold here instead.
//!
//! Its weaknesses are numbered W1 to W25. Those that other tests cover as well:
//!
//! | | covered by |
//! |---|---|
//! | W1 | `not_a_pass::a_misspelt_key`, `errors::unknown_keys_come_with_the_one_that_was_meant`, `case_files::a_checkpoint_that_cannot_be_reached_or_asserts_nothing_is_refused` |
//! | W2 | `assertions::equals` |
//! | W3 | `assertions` (each table is run negated, too), `roles::what_is_no_judgement_is_an_error_of_the_judge` |
//! | W4 | `assertions::tool_called`, `assertions::tool_result` |
//! | W5 | `assertions::json_path`, `assertions::value_type`, `assertions::schema` |
//! | W7 | `roles::a_goal_that_is_achieved_ends_the_conversation`, `runs::consistency_is_agreement_of_answers_and_not_the_pass_rate` |
//! | W10 | `inputs::cases_can_be_made_up`, `samples::commands` |
//! | W11 | `roles::who_simulates_can_be_said_for_all_cases`, `roles::the_simulated_user_is_asked_only_if_the_agent_waits`, `people`, `samples::tables` |
//! | W13 | `reports::json_lines_are_written_as_cases_end`, `shapes::conversations_side_by_side_are_never_mixed` |
//! | W14 | `identity::metadata_comes_from_the_file_the_case_its_options_and_the_turn` |
//! | W15 | `not_a_pass::a_hook_that_hangs_dies_with_what_it_started`, `roles::a_simulated_user_that_never_answers_ends_with_the_case` |
//! | W16 | `runner::fail_fast_lets_what_runs_come_to_its_end`, `roles::a_simulated_user_is_told_all_there_is` |
//! | W17 | `runner::what_is_skipped_is_counted_and_does_not_fail_the_run`, `identity::reports_say_who_spoke`, `errors::a_report_that_cannot_be_written` |
//! | W18 | `errors::two_cases_with_one_name` |
//! | W19 | `inputs::what_was_made_up_can_be_kept_and_run_again` |
//! | W20 | `agents`, `http_agent`, `openai`, `command`, `replay`, `samples` |
//! | W21 | `assertions::tool_sequence`, `reports::junit_is_well_formed_and_adds_up` |
//! | W22 | `roles::what_is_no_judgement_is_an_error_of_the_judge` |
//! | W23 | `samples::documents`: the same conversation as a history and turn by turn |
//! | W24 | `case_files::how_waiting_shows`, `samples::tables::signs_of_waiting` |
//! | W25 | `roles::conversations_end_at_the_last_turn_that_they_may_have`, `roles::a_dynamic_case_goes_on_until_its_checkpoints_are_reached`, `simulate::a_user_that_does_not_behave_as_one_makes_the_attempt_invalid`, `simulate::what_ends_a_simulation_is_recorded` |
//!
//! W9 is about scripts, W12 is tested here as far as hooks are commands.
#![cfg(unix)]

mod common;

use hotseat_testkit::agui::Run;
use hotseat_testkit::{FakeAgent, Reply, Request};
use serde_json::{Value, json};

use common::{Project, Tested, echo_agent};

/// Holds cases with an agent.
fn held(agent: &FakeAgent, cases: &[Value], args: &[&str]) -> Tested {
    let lines: Vec<String> = cases.iter().map(Value::to_string).collect();
    Project::of(agent).file("a.test.jsonl", &lines.join("\n")).test(args)
}

/// An agent that says what it is told, word for word.
fn parrot() -> FakeAgent {
    FakeAgent::start(|request: &Request| {
        Run::of(request).started().text(&request.last_user_text()).finished()
    })
}

fn status<'a>(tested: &'a Tested, case: &str) -> &'a str {
    tested.case(case)["status"].as_str().unwrap()
}

// W1
#[test]
fn an_assertion_is_judged_under_each_of_its_names_and_in_each_of_its_places() {
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
    let tested = held(&agent, &cases, &[]);
    for case in &cases {
        assert_eq!(status(&tested, case["id"].as_str().unwrap()), "failed", "{case}");
    }
    for (case, words) in [
        (json!({"id": "a", "input": "hi", "assertions": wrong, "assert": wrong}), "assert"),
        (json!({"id": "a", "input": "hi", "assert": "contains"}), "assert"),
        (json!({"id": "a", "input": "hi", "asserts": wrong}), "did you mean"),
    ] {
        let output = Project::of(&agent).file("a.test.jsonl", &case.to_string()).hotseat(&["test"]);
        assert!(output.code == 2 && output.stderr.contains(words), "{output}");
    }
}

// W2
#[test]
fn objects_are_equal_whatever_the_order_of_their_keys() {
    let given = r#"{"a": {"x": 1, "y": [1, 2], "z": null}, "b": 2.0, "c": "three"}"#;
    let orders = [
        r#"{"c": "three", "b": 2, "a": {"z": null, "y": [1, 2.0], "x": 1}}"#,
        r#"{"b": 2.0, "a": {"y": [1, 2], "x": 1.0, "z": null}, "c": "three"}"#,
        r#"{"a": {"x": 1, "z": null, "y": [1, 2]}, "c": "three", "b": 2}"#,
    ];
    let agent = FakeAgent::start(move |request: &Request| {
        let value: Value = serde_json::from_str(given).unwrap();
        Run::of(request).started().tool("c1", "take", &value, Some(json!("ok"))).text(given).finished()
    });
    // Texts, so that the keys stay in their order.
    let cases = orders.iter().enumerate().map(|(number, order)| {
        format!(
            r#"{{"id": "equals {number}", "input": "x", "assertions": [{{"type": "equals", "value": {order}}}]}}
{{"id": "expected {number}", "input": "x", "expected": {order}}}
{{"id": "arguments {number}", "input": "x", "assertions": [{{"type": "tool_called", "name": "take", "arguments": {order}, "match": "exact"}}]}}
{{"id": "not {number}", "input": "x", "assertions": [{{"type": "equals", "value": {order}, "negate": true}}]}}"#
        )
    });
    let text = cases.collect::<Vec<_>>().join("\n");
    let tested = Project::of(&agent).file("a.test.jsonl", &text).test(&[]);
    for number in 0..orders.len() {
        for name in ["equals", "expected", "arguments"] {
            assert_eq!(status(&tested, &format!("{name} {number}")), "passed", "{}", tested.output);
        }
        assert_eq!(status(&tested, &format!("not {number}")), "failed");
    }
}

// W3
#[test]
fn what_cannot_be_judged_is_refused_or_fails_negated_or_not() {
    let agent = parrot();
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
            let output = Project::of(&agent).file("a.test.jsonl", &case).hotseat(&["test"]);
            assert_eq!(output.code, 2, "{case}\n{output}");
        }
    }
    assert_eq!(agent.requests().len(), 0);
}

// W4
#[test]
fn tools_are_known_by_their_whole_names_and_all_of_their_calls_are_looked_at() {
    let agent = FakeAgent::start(|request: &Request| {
        Run::of(request)
            .started()
            .tool("c1", "repay_loan", &json!({}), Some(json!({"status": "declined"})))
            .tool("c2", "repay_loan", &json!({}), Some(json!({"status": "paid"})))
            .text("Done.")
            .finished()
    });
    let asserting = |id: &str, assertion: Value| json!({"id": id, "input": "x", "assertions": [assertion]});
    let tested = held(
        &agent,
        &[
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
        ],
        &[],
    );
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
fn paths_are_those_of_the_standard_and_what_is_missing_is_not_null() {
    let agent = parrot();
    let said = r#"{"list": [{"n": 1}, {"n": 2}], "a key": true, "nothing": null, "count": 3}"#;
    let path = |id: &str, path: &str, value: Value| json!({"id": id, "input": said, "assertions": [{"type": "json_path", "path": path, "value": value}]});
    let kind = |id: &str, path: &str| json!({"id": id, "input": said, "assertions": [{"type": "type", "path": path, "value": "number"}]});
    let tested = held(
        &agent,
        &[
            path("index", "$.list[0].n", json!(1)),
            path("from the end", "$.list[-1].n", json!(2)),
            path("filter", "$.list[?@.n > 1].n", json!(2)),
            path("quoted", "$['a key']", json!(true)),
            path("null", "$.nothing", Value::Null),
            path("missing", "$.missing", Value::Null),
            kind("type at a path", "$.count"),
            kind("another type at a path", "$.list"),
            json!({"id": "first of a list", "input": "[5, 6]", "assertions": [{"type": "json_path", "path": "$[0]", "value": 5}]}),
        ],
        &[],
    );
    for case in ["index", "from the end", "filter", "quoted", "null", "type at a path", "first of a list"] {
        assert_eq!(status(&tested, case), "passed", "{:#}", tested.case(case));
    }
    for case in ["missing", "another type at a path"] {
        assert_eq!(status(&tested, case), "failed", "{:#}", tested.case(case));
    }
}

// W6
#[test]
fn prose_is_never_taken_for_data_and_data_in_prose_is_found() {
    let agent = parrot();
    let path = |id: &str, said: &str| json!({"id": id, "input": said, "assertions": [{"type": "json_path", "path": "$.Note"}]});
    let tested = held(
        &agent,
        &[
            path("prose", "Note: buy milk"),
            path("whole", r#"{"Note": "buy milk"}"#),
            path("fenced", "Here it is:\n```json\n{\"Note\": \"buy milk\"}\n```"),
            path("in prose", "Here: {\"Note\": \"buy milk\"} as you wanted."),
            json!({"id": "text", "input": "Note: buy milk", "assertions": [{"type": "type", "value": "string"}, {"type": "equals", "value": "Note: buy milk"}]}),
        ],
        &[],
    );
    for (case, expected) in [
        ("prose", "failed"),
        ("whole", "passed"),
        ("fenced", "passed"),
        ("in prose", "passed"),
        ("text", "passed"),
    ] {
        assert_eq!(status(&tested, case), expected, "{:#}", tested.case(case));
    }
    // A simulated user who says such words says them.
    let user =
        FakeAgent::start(|request: &Request| Run::of(request).started().text("Note: it was $250").finished());
    let project = Project::with(&format!(
        "target: {{ endpoint: '{}' }}\nagents: {{ user: {{ endpoint: '{}' }} }}\n",
        agent.url(),
        user.url()
    ));
    let case = json!({"id": "said", "simulator": {"use": "user"}, "checkpoints": [{"id": "x", "assertion": {"type": "equals", "value": "Note: it was $250"}}]});
    project.file("a.test.jsonl", &case.to_string()).test(&[]).all_passed();
}

// W8
#[test]
fn words_are_seen_beside_data_and_signs_stay_as_they_are() {
    let agent = FakeAgent::start(|request: &Request| match request.last_user_text().as_str() {
        "both" => {
            let asked = request.json();
            Run::of(request).started().text("It is done.").raw_event(json!({
                "type": "RUN_FINISHED", "threadId": asked["threadId"], "runId": asked["runId"],
                "result": {"status": "ok"},
            }))
        }
        _ => Run::of(request).started().text(r#"{"html": "a & b <c>"}"#).finished(),
    });
    let contains = |id: &str, said: &str, value: Value| json!({"id": id, "input": said, "assertions": [{"type": "contains", "value": value}]});
    let tested = held(
        &agent,
        &[
            contains("signs", "signs", json!("a & b <c>")),
            contains("escaped", "signs", json!("\\u0026")),
            contains("words", "both", json!("It is done.")),
            json!({"id": "data", "input": "both", "assertions": [{"type": "json_path", "path": "$.status", "value": "ok"}]}),
        ],
        &[],
    );
    for (case, expected) in
        [("signs", "passed"), ("escaped", "failed"), ("words", "passed"), ("data", "passed")]
    {
        assert_eq!(status(&tested, case), expected, "{:#}", tested.case(case));
    }
}

// W12
#[test]
fn hooks_are_found_whatever_agent_is_named_and_from_wherever() {
    let agent = echo_agent();
    let config = format!(
        "agents:\n  one: {{ endpoint: '{0}' }}\n  two: {{ endpoint: '{0}' }}\ntarget: one\nhooks:\n  note: {{ cmd: [sh, -c, 'read -r told; echo \"$told\" >> log'] }}\n",
        agent.url()
    );
    let case = json!({"id": "a", "input": "hi", "before": "note"});
    let project = Project::with(&config).file("deep/tests/a.test.jsonl", &case.to_string());
    for args in [
        &["test", "-i", "a.test.jsonl"][..],
        &["test", "-n", "two", "-i", "a.test.jsonl", "-u", "ada", "-t", "blue"],
    ] {
        let output = project.command(args).cwd("deep/tests").run();
        assert_eq!(output.code, 0, "{output}");
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
fn what_a_case_tells_its_agent_arrives_as_it_is_written() {
    let agent = echo_agent();
    let options = json!({
        "skip": {"history": false, "trace": true}, "search": {"engine": "local", "depth": 2}, "mode": "chat",
        "metadata": {"scenario": "edge"}
    });
    let case = json!({"id": "a", "input": "hi", "metadata": {"owner": "me"}, "options": options});
    held(&agent, &[case], &[]).all_passed();
    let told = agent.requests()[0].json()["forwardedProps"]["options"].clone();
    for key in ["skip", "search", "mode"] {
        assert_eq!(told[key], options[key], "{told:#}");
    }
    assert_eq!(told["metadata"], json!({"owner": "me", "scenario": "edge"}));
}

// W15
#[test]
fn limits_hold_inside_of_turns_and_judgements() {
    let agent = FakeAgent::start(|request: &Request| -> Reply {
        match request.last_user_text().as_str() {
            "hang" => Run::of(request).started().hang().into(),
            _ => common::echo(request),
        }
    });
    let silent = FakeAgent::start(|_: &Request| Reply::never());
    let project = Project::with(&format!(
        "target: {{ endpoint: '{}' }}\nagents: {{ silent: {{ endpoint: '{}', timeout_ms: 400 }} }}\n",
        agent.url(),
        silent.url()
    ));
    let never = json!([{"id": "x", "assertion": {"type": "contains", "value": "nowhere"}}]);
    let judged = json!([{"type": "agent", "use": "agents:silent", "criteria": "x"}]);
    let cases = [
        json!({"id": "dynamic", "input": "hang", "simulator": {"use": "silent"}, "checkpoints": never, "timeout": "300ms"}),
        json!({"id": "standard", "input": "hang", "timeout": "300ms"}),
        json!({"id": "judge", "input": "hi", "assertions": judged}),
        json!({"id": "next", "input": "hi"}),
    ];
    let lines: Vec<String> = cases.iter().map(Value::to_string).collect();
    let tested = project.file("a.test.jsonl", &lines.join("\n")).test(&["--parallel", "1"]);
    for case in ["dynamic", "standard"] {
        assert_eq!(tested.case(case)["error"], "timeout after 300ms", "{:#}", tested.case(case));
    }
    assert_eq!(tested.case("judge")["error_kind"], "judge_error");
    assert_eq!(status(&tested, "next"), "passed", "the run goes on");
}

// W16
#[test]
fn many_cases_at_once_do_not_disturb_each_other() {
    let agent = parrot();
    let user = FakeAgent::start(|request: &Request| {
        let told: Value = serde_json::from_str(&request.last_user_text()).unwrap();
        Run::of(request).started().text(&format!("I am {}", told["test_id"].as_str().unwrap())).finished()
    });
    let project = Project::with(&format!(
        "target: {{ endpoint: '{}' }}\nagents: {{ user: {{ endpoint: '{}' }} }}\nhooks:\n  note: {{ cmd: [sh, -c, 'read -r told; echo ran >> log'] }}\n",
        agent.url(),
        user.url()
    ));
    let cases: Vec<String> = (0..40)
        .map(|number| {
            let id = format!("c{number}");
            let says = json!([{"id": "x", "assertion": {"type": "equals", "value": format!("I am {id}")}}]);
            json!({"id": id, "before": "note", "after": "note", "simulator": {"use": "user"}, "checkpoints": says}).to_string()
        })
        .collect();
    let project = project.file("a.test.jsonl", &cases.join("\n"));
    project.test(&["--parallel", "10"]).all_passed();
    assert_eq!(project.workspace.read("log").lines().count(), 80);
    let mut threads: Vec<String> = user.requests().iter().map(|r| r.json()["threadId"].to_string()).collect();
    threads.sort();
    threads.dedup();
    assert_eq!(threads.len(), 40, "nobody shares a conversation");
}

// W17
#[test]
fn what_was_not_selected_is_not_counted_and_what_was_skipped_is_listed() {
    let agent = parrot();
    let case = |id: &str, value: &str| json!({"id": id, "input": "hi", "assertions": [{"type": "contains", "value": value}]});
    let left_out = json!({"id": "left out", "input": "hi", "skip": true});
    let cases = [case("good", "hi"), case("bad", "no"), case("good too", "hi"), left_out];
    let chosen = held(&agent, &cases, &["--run", "^good$"]);
    assert_eq!((chosen.count("total"), chosen.count("passed"), chosen.count("skipped")), (1, 1, 0));
    assert_eq!(chosen.report["summary"]["pass_rate"], json!(100.0));
    assert!(chosen.output.stdout.contains("Pass Rate: 100.0%"), "{}", chosen.output);
    let all = held(&agent, &cases, &[]);
    assert_eq!(status(&all, "left out"), "skipped");
    assert_eq!(
        (all.count("total"), all.count("passed"), all.count("failed"), all.count("skipped")),
        (4, 2, 1, 1)
    );
    assert_eq!(all.report["summary"]["pass_rate"], json!(66.7), "of those that ran");
    // Each way to end has a code of its own.
    let project = Project::of(&agent).file("a.test.jsonl", &cases[0].to_string());
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
fn files_are_looked_at_before_anything_runs_and_may_be_large() {
    let agent = parrot();
    for (cases, words) in [
        ("{\"id\": \"a\", \"input\": \"1\"}\n{\"id\": \"a\", \"input\": \"2\"}", "`a`"),
        ("{\"id\": \"a\", \"input\": \"1\", \"timeout\": \"soon\"}", "timeout"),
        ("{\"id\": \"a\", \"input\": \"1\"}\n{\"id\": \"b\", input: 2}", "a.test.jsonl:2:"),
    ] {
        let output = Project::of(&agent).file("a.test.jsonl", cases).hotseat(&["test"]);
        assert!(output.code == 2 && output.stderr.contains(words), "{words}\n{output}");
    }
    assert_eq!(agent.requests().len(), 0);
    let long = "人工智能和机器学习正在改变我们的世界。".repeat(60_000);
    let tested = held(
        &agent,
        &[json!({"id": "long", "input": long, "assertions": [{"type": "equals", "value": long}]})],
        &[],
    );
    tested.all_passed();
    // What is shown of it is cut between characters.
    assert!(!tested.output.stdout.contains('\u{FFFD}'), "{}", tested.output);
    assert!(tested.output.stdout.lines().all(|line| line.chars().count() <= 100), "{}", tested.output);
}

// W19
#[test]
fn cases_that_are_made_up_lose_nothing() {
    let agent = parrot();
    let made_up = json!({"cases": [
        {"id": "skipped", "input": "hi", "skip": true},
        {"id": "expected", "input": "{\"a\": 1}", "expected": {"a": 2}},
        {"id": "told", "input": "hi", "metadata": {"owner": "me"}, "assert": [{"type": "contains", "value": "no"}]}
    ]});
    let generator = FakeAgent::start(move |request: &Request| {
        Run::of(request).started().text(&made_up.to_string()).finished()
    });
    let project = Project::with(&format!(
        "agents: {{ mock: {{ endpoint: '{}' }}, gen: {{ endpoint: '{}' }} }}\n",
        agent.url(),
        generator.url()
    ));
    let tested = project.test(&["-i", "agents:gen", "-n", "mock"]);
    for (case, expected) in [("skipped", "skipped"), ("expected", "failed"), ("told", "failed")] {
        assert_eq!(status(&tested, case), expected, "{:#}", tested.case(case));
    }
    assert_eq!(tested.case("told")["metadata"], json!({"owner": "me"}));
}

// W24
#[test]
fn what_shows_that_an_agent_waits_can_be_said_for_it_and_for_a_case() {
    let agent = FakeAgent::start(|request: &Request| match request.last_user_text().as_str() {
        tool @ ("confirm_it" | "ask_user") => {
            Run::of(request).started().tool("c1", tool, &json!({}), Some(json!("asked"))).finished()
        }
        said => Run::of(request).started().text(said).finished(),
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
    let reasons = |tested: &Tested| -> Vec<Value> {
        let results = tested.report["results"].as_array().unwrap();
        results.iter().map(|case| case["turns"][0]["awaiting_reason"].clone()).collect()
    };
    let asks = "tool_requires_confirmation";
    let project = Project::of(&agent).file("a.test.jsonl", &cases.join("\n"));
    assert_eq!(
        reasons(&project.test(&[])),
        [asks, "completed", asks, "completed", "content_is_question", "completed", "agent_declared"]
    );
    let of_agent = format!(
        "target: {{ endpoint: '{}', awaiting: {{ tools: [confirm_it], questions: false }} }}\n",
        agent.url()
    );
    project.workspace.file("hotseat.yaml", &of_agent);
    assert_eq!(
        reasons(&project.test(&[])),
        ["completed", asks, asks, "completed", "completed", "completed", "agent_declared"]
    );
    // Nobody goes on where nothing shows that the agent waits.
    let quiet = r#"{"id": "quiet", "type": "multi_turn", "turns": [{"input": "And then?"}]}"#;
    project.workspace.file("a.test.jsonl", quiet);
    project.test(&[]).all_passed();
}

// W24
#[test]
fn questions_are_understood_in_several_languages() {
    let agent = parrot();
    let asked = [
        "This requires manager approval. Please provide PO number.",
        "Bitte nennen Sie mir den Betrag.",
        "Veuillez indiquer la date.",
        "金额是多少？",
        "¿Cuál es el importe?",
    ];
    let cases: Vec<Value> = asked.iter().map(|said| json!({"id": said, "input": said})).collect();
    let tested = held(&agent, &cases, &[]);
    for said in asked {
        assert_eq!(tested.case(said)["turns"][0]["awaiting_reason"], "content_is_question", "{said}");
    }
}
