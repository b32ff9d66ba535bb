//! Fault attribution: attempts invalidated by the environment, the test or a judge do not count against the
//! agent, in any mode.
use std::time::{Duration, Instant};

use hotseat_testkit::FakeAgent;
use hotseat_testkit::completions::ChatCompletion;
use serde_json::json;

use crate::common::letters::{letter_agent, unreachable_hook, with};
use crate::common::{Project, TEST_TIMEOUT, TestRun, echo_agent, unreachable_address};

/// Run modes: name, command line flags, and keys of the case.
const MODES: [(&str, &[&str], &str); 7] = [
    ("once", &[], ""),
    ("retries", &["--retries", "2"], ""),
    ("runs", &["--runs", "8"], ""),
    ("runs without replacements", &["--runs", "4", "--max-invalid", "0"], ""),
    ("a rate", &["--runs", "8", "--min-pass-rate", "0.3"], ""),
    ("reliability", &[], "reliability: { rate: 0.5, confidence: 0.9 }\n"),
    (
        "reliability at once",
        &["--parallel", "6"],
        "reliability: { rate: 0.5, confidence: 0.9, max_runs: 8 }\n",
    ),
];

/// Faults that invalidate every run: name, project, case, fault, and exit code.
fn faults(agent: &FakeAgent, other: &FakeAgent) -> Vec<(&'static str, String, String, &'static str, i32)> {
    let target = format!("target: {{ endpoint: '{agent}' }}\n");
    let helpers = format!("{target}agents: {{ other: {{ endpoint: '{other}' }} }}\n");
    let gone = format!("{target}agents: {{ other: {{ endpoint: '{}' }} }}\n", unreachable_address());
    let asserting = |assertion: &str| format!("input: hello\nassert: [{assertion}]\n");
    vec![
        (
            "unreachable",
            format!("target: {{ endpoint: '{}' }}\n", unreachable_address()),
            asserting("{ type: contains, value: hello }"),
            "infrastructure",
            3,
        ),
        (
            "a judge that babbles",
            helpers.clone(),
            asserting("{ type: agent, use: 'agents:other', criteria: kind }"),
            "judge",
            1,
        ),
        (
            "a judge that is not there",
            gone.clone(),
            asserting("{ type: agent, use: 'agents:other', criteria: kind }"),
            "judge",
            1,
        ),
        (
            "a user that babbles",
            helpers,
            "simulator: { use: 'agents:other' }\ncheckpoints: [{ id: c, assertion: { type: contains, value: x } }]\n"
                .to_string(),
            "simulator",
            1,
        ),
        (
            "a hook",
            target.clone(),
            format!("hooks: [{{ cmd: ['false'] }}]\n{}", asserting("{ type: contains, value: hello }")),
            "test",
            1,
        ),
        (
            "a script",
            target,
            asserting("{ type: script, use: 'scripts:checks.broken' }"),
            "test",
            1,
        ),
    ]
}

#[test]
fn external_faults_are_invalid_attempts() {
    let agent = echo_agent();
    let other = FakeAgent::with_text(r#"{"answer": "?"}"#);
    for (fault, project, case, whose, code) in faults(&agent, &other) {
        for (mode, arguments, said) in MODES {
            let project = Project::with_config(&project)
                .file("src/checks.ts", "export function broken() { throw new Error('mine') }\n")
                .suite("a", &format!("name: a\n{said}{case}"));
            let tested = project.test(arguments);
            let result = tested.case("a");
            let context = format!("{fault}, {mode}: {result:#}\n{}", tested.output);
            assert_eq!(result["status"], "failed", "{context}");
            assert_eq!(result["failure"]["fault"], whose, "{context}");
            assert_eq!(tested.output.code, code, "{context}");
            assert!(!result["flaky"].as_bool().unwrap_or_default(), "{context}");
            if !result["runs"].is_null() {
                let counts = ["runs", "passed", "failed", "skipped"].map(|key| &result[key]);
                assert_eq!(json!(counts), json!([0, 0, 0, 0]), "{context}");
                assert!(result["invalid"].as_u64() > Some(0), "{context}");
                assert!(result["pass_rate"].is_null() && result["stability_class"].is_null(), "{context}");
                let summary = &tested.report["summary"];
                assert_eq!(
                    (&summary["total_runs"], &summary["unstable_cases"]),
                    (&json!(0), &json!(0)),
                    "{context}"
                );
            }
            for words in ["0% (", "Unstable cases:    1", "Highly Unstable", "FLAKY"] {
                assert!(!tested.output.stdout.contains(words), "{words:?} in {context}");
            }
        }
    }
}

/// Statistics of the agent are the same as without invalid attempts.
#[test]
fn invalid_attempts_change_no_statistics() {
    let figures = |tested: &TestRun, case: &str| {
        let result = tested.case(case);
        json!(["status", "runs", "passed", "failed", "pass_rate", "stability_class"].map(|key| &result[key]))
    };
    for letters in ["pppp", "ffff", "pfpf", "fppp"] {
        let alone = letter_agent();
        let whole = crate::common::letters::project(&alone, &with(letters, ""));
        let expected = figures(&whole.test(&["--runs", "4", "--parallel", "1"]), letters);
        for (number, spoilt) in ["1", "2|3", "1|4|6", "5"].into_iter().enumerate() {
            let agent = letter_agent();
            let case = with(letters, &unreachable_hook(&agent, "runs", spoilt));
            let project = Project::with_config("target: { endpoint: '${url}' }\n").suite("a", &case);
            let tested = project.test(&["--runs", "4", "--parallel", "1"]);
            assert_eq!(figures(&tested, letters), expected, "{number}: {}", tested.output);
        }
    }
}

/// The valid attempts decide what a case is that never passed, not one that was replaced.
#[test]
fn replaced_attempts_do_not_decide() {
    for (policy, status, kind, code) in
        [("skip", "skipped", None, 0), ("fail", "failed", Some("no_input"), 1)]
    {
        let agent = letter_agent();
        let more = format!("on_missing_input: {policy}\n{}", unreachable_hook(&agent, "runs", "2"));
        let other = with("ppp", &unreachable_hook(&agent, "others", "0"));
        let suite = format!("{}---\n{other}", with("www", &more));
        let project = Project::with_config("target: { endpoint: '${url}' }\n").suite("a", &suite);
        let tested = project.test(&["--runs", "3", "--parallel", "1", "--fail-fast"]);
        let result = tested.case("www");
        assert_eq!((&result["runs"], &result["redrawn"]), (&json!(3), &json!(1)), "{}", tested.output);
        assert_eq!((&result["status"], &result["error_kind"]), (&json!(status), &json!(kind)), "{result:#}");
        let next = if status == "skipped" { "passed" } else { "skipped" };
        assert_eq!(tested.case("ppp")["status"], next, "{}", tested.output);
        let is_skipped = tested.output.stdout.contains("0% (0/3) Skipped");
        assert_eq!((tested.output.code, is_skipped), (code, status == "skipped"), "{}", tested.output);
    }
}

#[test]
fn invalid_retry_is_neither_failed_nor_flaky() {
    // Each letter is one attempt, valid or invalid; the case is retried twice.
    for (letters, spoilt, status, flaky, attempts) in [
        ("p", "1", "passed", false, 2),
        ("p", "1|2", "passed", false, 3),
        ("fp", "2", "passed", true, 3),
        ("fff", "1|3", "failed", false, 5),
        ("f", "2|3|4|5", "failed", false, 4),
    ] {
        let agent = letter_agent();
        let case = with(letters, &unreachable_hook(&agent, "runs", spoilt));
        let project = Project::with_config("target: { endpoint: '${url}' }\n").suite("a", &case);
        let tested = project.test(&["--retries", "2", "--parallel", "1"]);
        let result = tested.case(letters);
        let found = (
            result["status"].as_str().unwrap(),
            result["flaky"].as_bool().unwrap_or_default(),
            result["attempts"].as_array().map_or(1, Vec::len),
        );
        assert_eq!(found, (status, flaky, attempts), "{letters} {spoilt}: {}", tested.output);
        if status == "failed" {
            assert_eq!(result["failure"]["fault"], "agent", "the agent has failed once: {result:#}");
        }
    }
}

#[test]
fn undecided_check_is_not_counted_as_failed() {
    let (agent, judge) = (echo_agent(), echo_agent());
    let project = Project::with_config(&format!(
        "target: {{ endpoint: '{agent}' }}\nagents: {{ judge: {{ endpoint: '{judge}' }} }}\n"
    ));
    let case = "name: a\ninput: hello\nassert:\n  - { type: agent, use: 'agents:judge', criteria: kind }\n  - { type: contains, value: bye }\n  - { type: contains, value: hello }\n";
    let tested = project.suite("a", case).test(&[]);
    let failure = tested.failure("a");
    assert_eq!(failure["kind"], "assertion");
    let message = failure["message"].as_str().unwrap();
    assert!(message.starts_with("expected ") && message.ends_with("; 1 errored"), "{message}");
    let words = "1 of 3 checks failed, 1 errored";
    assert!(tested.output.stdout.contains(words), "{}", tested.output);
}

// Endless scripts.

#[test]
fn assertion_loop_hits_script_time_limit() {
    let agent = echo_agent();
    for (body, words) in [
        ("for (;;) t.assert.True(true);", ["script_error", "did not finish within 1000 ms"]),
        (
            "for (;;) { let n = 0; while (n < 1e4) n++; t.assert.Equal(n, 1e4); }",
            ["script_error", "did not finish within 1000 ms"],
        ),
    ] {
        let project = Project::with_config(&format!(
            "target: {{ endpoint: '{agent}' }}\nscripts: {{ timeout_ms: 1000 }}\n"
        ))
        .file("a_test.ts", &format!("export function TestLoop(t) {{ {body} }}\n"));
        let begun = Instant::now();
        let tested = project.test(&["a_test.ts"]);
        let took = begun.elapsed();
        let failure = tested.failure("TestLoop");
        let told = (failure["kind"].as_str().unwrap(), failure["message"].as_str().unwrap());
        let is_limit = told.0 == words[0] && told.1.contains(words[1]);
        // A fast machine may reach the other limit first.
        assert!(is_limit || told.1.contains("makes more than 10000 checks"), "{failure:#}");
        assert!(took < Duration::from_secs(15), "{took:?}");
    }
}

#[test]
fn program_check_count_is_limited() {
    let agent = echo_agent();
    for body in ["t.assert.True(true)", "t.assert.JSONPath({ a: 1 }, '$.a', 1)"] {
        let project = Project::with_config(&format!(
            "target: {{ endpoint: '{agent}' }}\nscripts: {{ timeout_ms: 300000 }}\n"
        ))
        .file("a_test.ts", &format!("export function TestLoop(t) {{ for (;;) {body}; }}\n"));
        let output =
            project.command(&["test", "a_test.ts", "-o", "out.json"]).timeout(4 * TEST_TIMEOUT).run();
        let report = project.workspace.read_json("out.json");
        let result = &report["results"][0];
        assert_eq!(result["failure"]["kind"], "test_error", "{output}");
        assert_eq!(result["failure"]["message"], "the test makes more than 10000 checks");
        assert_eq!(result["assertions"].as_array().map(Vec::len), Some(10_000));
    }
}

// Waiting agents.

#[test]
fn chat_agent_asking_by_tool_waits_for_user() {
    let server = FakeAgent::start(|request| {
        let messages = request.json()["messages"].as_array().unwrap().clone();
        let asked = messages.iter().any(|message| message["role"] == "tool");
        match asked {
            false => ChatCompletion::new()
                .tool(0, "call-1", "ask_user", &json!({"question": "How much?"}))
                .finish("tool_calls"),
            true => ChatCompletion::new().text("Submitted.").finish("stop"),
        }
    });
    let target = format!("target: {{ type: openai, base_url: '{server}v1', model: m }}\n");
    let case = "name: a\ntype: multi_turn\nturns:\n  - { user: pay, assertions: [{ type: tool_called, name: ask_user }] }\n  - { user: '250', assertions: [{ type: contains, value: Submitted }] }\n";
    let tested = Project::with_config(&target).suite("a", case).test(&[]);
    tested.assert_all_passed();
    let turns = &tested.case("a")["turns"];
    let reasons = [0, 1].map(|turn| (&turns[turn]["awaiting_reason"], &turns[turn]["finish_reason"]));
    assert_eq!(
        reasons,
        [(&json!("tool_requires_confirmation"), &json!("tool_calls")), (&json!("completed"), &json!("stop"))]
    );
    // The protocol requires an answer to every call before further messages.
    let sent = server.requests()[1].json()["messages"].as_array().unwrap().clone();
    let roles: Vec<&str> = sent.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "user"]);
    assert_eq!(sent[1]["tool_calls"][0]["id"], sent[2]["tool_call_id"]);
    assert_eq!(sent[3]["content"], "250");

    // Without an answer the case is skipped, as in every other adapter.
    let open = "name: a\ntype: multi_turn\nturns: [{ user: pay }]\n";
    let tested = Project::with_config(&target).suite("a", open).test(&[]);
    assert_eq!(tested.case("a")["status"], "skipped", "{}", tested.output);
    // A call of another tool that is not offered remains a test error.
    let unknown = "name: a\nawaiting: { tools: [confirm] }\nturns: [{ user: pay }]\n";
    let tested = Project::with_config(&target).suite("a", unknown).test(&[]);
    assert_eq!(tested.failure("a")["kind"], "test_error", "{}", tested.output);
}

#[test]
fn default_simulator_is_used_by_unnamed_cases() {
    let agent = FakeAgent::with_run(|run, request| {
        let text = match request.last_user_text().as_str() {
            "250" => "Submitted.",
            _ => "How much is it?",
        };
        run.text(text).finished()
    });
    let user = FakeAgent::with_text(r#"{"input": "250", "goal_achieved": false}"#);
    let project = Project::with_config(&format!(
        "target: {{ endpoint: '{agent}' }}\nagents: {{ user: {{ endpoint: '{user}' }} }}\n"
    ));
    let cases = [
        json!({"id": "plain", "input": "pay"}),
        json!({"id": "turns", "turns": [{"input": "pay"}], "final_assertions": [{"type": "contains", "value": "Submitted"}]}),
        json!({"id": "multi", "type": "multi_turn", "input": "pay"}),
        json!({"id": "single", "type": "single_turn", "input": "pay"}),
    ];
    let project = project.cases(&cases);
    let held = |tested: &TestRun| {
        ["plain", "turns", "multi", "single"].map(|id| {
            // A single-turn case has no list of turns.
            let turns = tested.case(id)["turns"]
                .as_array()
                .cloned()
                .unwrap_or(vec![json!({"input_source": "static"})]);
            turns
                .iter()
                .filter_map(|turn| turn["input_source"].as_str().map(str::to_string))
                .collect::<Vec<_>>()
        })
    };
    let tested = project.test(&["--simulator", "agents:user"]);
    tested.assert_all_passed();
    let answered = || vec!["static".to_string(), "simulated".to_string()];
    assert_eq!(held(&tested), [answered(), answered(), answered(), vec!["static".to_string()]]);
    // Without the flag there is no answer.
    let tested = project.test(&[]);
    assert_eq!(held(&tested), [(); 4].map(|()| vec!["static".to_string()]), "{}", tested.output);
}

// End of a run.

fn project_with_after_hook(agent: &FakeAgent, after: &str) -> Project {
    let text = format!(
        "target: {{ endpoint: '{agent}' }}\nhooks:\n  set_up: {{ cmd: [sh, -c, 'touch set-up'] }}\n  clean_up: {{ cmd: [sh, -c, '{after}'] }}\n"
    );
    let case = "name: a\nbefore: set_up\nafter: clean_up\nturns: [{ user: hello }]\n";
    Project::with_config(&text).suite("a", case)
}

#[test]
fn after_hooks_run_when_run_is_cancelled() {
    let agent = FakeAgent::with_run(|run, _| run.gate("never").text("hi").finished());
    let project = project_with_after_hook(&agent, "touch cleaned-up");
    let mut running = project.command(&["test", "-o", "out.json", "--after", "clean_up"]).spawn();
    agent.wait_for_requests(1, TEST_TIMEOUT);
    running.press_ctrl_c();
    running.wait_for_stdout("no new cases");
    let begun = Instant::now();
    running.press_ctrl_c();
    let output = running.wait();
    agent.release("never");
    assert_eq!(output.code, 130, "{output}");
    assert!(crate::common::exists(&project.workspace, "cleaned-up"), "{output}");
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    let report = project.workspace.read_json("out.json");
    assert_eq!(report["results"][0]["failure"]["kind"], "cancelled");
}

#[test]
fn hanging_hook_delays_cancellation_for_bounded_time() {
    let agent = FakeAgent::with_run(|run, _| run.gate("never").text("hi").finished());
    let project = project_with_after_hook(&agent, "touch begun; sleep 1000");
    let mut running = project.command(&["test", "-o", "out.json"]).timeout(2 * TEST_TIMEOUT).spawn();
    agent.wait_for_requests(1, TEST_TIMEOUT);
    running.press_ctrl_c();
    running.wait_for_stdout("no new cases");
    running.press_ctrl_c();
    let begun = Instant::now();
    let output = running.wait();
    agent.release("never");
    assert_eq!(output.code, 130, "{output}");
    assert!(crate::common::exists(&project.workspace, "begun"));
    assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
    assert!(output.stdout.contains("stopped 10000 ms after the run was cancelled"), "{output}");
}
