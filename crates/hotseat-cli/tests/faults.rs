//! Whose fault it is: what the environment, the test or a judge have spoiled is no attempt of the agent, in any mode.
#![cfg(unix)]

mod common;

use std::time::{Duration, Instant};

use hotseat_testkit::FakeAgent;
use hotseat_testkit::agui::Run;
use hotseat_testkit::completions::Completion;
use serde_json::{Value, json};

use common::letters::{lettered, spoiled, with};
use common::{LONG, Project, Tested, echo_agent, nobody};

/// How a run is made: what is said on the command line, and what the case says.
const MODES: [(&str, &[&str], &str); 7] = [
    ("once", &[], ""),
    ("retries", &["--retries", "2"], ""),
    ("runs", &["--runs", "8"], ""),
    ("runs without redraws", &["--runs", "4", "--redraws", "0"], ""),
    ("a rate", &["--runs", "8", "--min-pass-rate", "0.3"], ""),
    ("reliability", &[], "reliability: { rate: 0.5, confidence: 0.9 }\n"),
    (
        "reliability at once",
        &["--parallel", "6"],
        "reliability: { rate: 0.5, confidence: 0.9, max_runs: 8 }\n",
    ),
];

/// What spoils every run: its name, project and case, whose fault it is, and how the program ends.
fn faults(agent: &FakeAgent, other: &FakeAgent) -> Vec<(&'static str, String, String, &'static str, i32)> {
    let target = format!("target: {{ endpoint: '{}' }}\n", agent.url());
    let helpers = format!("{target}agents: {{ other: {{ endpoint: '{}' }} }}\n", other.url());
    let gone = format!("{target}agents: {{ other: {{ endpoint: '{}' }} }}\n", nobody());
    let asserting = |assertion: &str| format!("input: hello\nassert: [{assertion}]\n");
    vec![
        (
            "unreachable",
            format!("target: {{ endpoint: '{}' }}\n", nobody()),
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
fn what_others_spoil_is_no_attempt_of_the_agent_in_any_mode() {
    let agent = echo_agent();
    let other = FakeAgent::start(|request| Run::of(request).started().text(r#"{"answer": "?"}"#).finished());
    for (fault, project, case, whose, code) in faults(&agent, &other) {
        for (mode, arguments, said) in MODES {
            let project = Project::with(&project)
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

/// What the agent does is counted as if nothing had been spoiled between.
#[test]
fn spoiled_runs_change_no_figure_of_the_agent() {
    let figures = |tested: &Tested, case: &str| {
        let result = tested.case(case);
        json!(["status", "runs", "passed", "failed", "pass_rate", "stability_class"].map(|key| &result[key]))
    };
    for letters in ["pppp", "ffff", "pfpf", "fppp"] {
        let alone = lettered();
        let whole = common::letters::project(&alone, &with(letters, ""));
        let expected = figures(&whole.test(&["--runs", "4", "--parallel", "1"]), letters);
        for (number, spoilt) in ["1", "2|3", "1|4|6", "5"].into_iter().enumerate() {
            let agent = lettered();
            let case = with(letters, &spoiled(&agent, "runs", spoilt));
            let project = Project::with("target: { endpoint: '${url}' }\n").suite("a", &case);
            let tested = project.test(&["--runs", "4", "--parallel", "1"]);
            assert_eq!(figures(&tested, letters), expected, "{number}: {}", tested.output);
        }
    }
}

#[test]
fn a_retry_that_the_machine_has_spoiled_is_neither_a_failure_nor_flaky() {
    // Letters are what the agent does, and which attempts are spoiled; the case is tried twice more.
    for (letters, spoilt, status, flaky, attempts) in [
        ("p", "1", "passed", false, 2),
        ("p", "1|2", "passed", false, 3),
        ("fp", "2", "passed", true, 3),
        ("fff", "1|3", "failed", false, 5),
        ("f", "2|3|4|5", "failed", false, 4),
    ] {
        let agent = lettered();
        let case = with(letters, &spoiled(&agent, "runs", spoilt));
        let project = Project::with("target: { endpoint: '${url}' }\n").suite("a", &case);
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
fn what_a_judge_could_not_decide_is_not_counted_as_a_check_that_failed() {
    let (agent, judge) = (echo_agent(), echo_agent());
    let project = Project::with(&format!(
        "target: {{ endpoint: '{}' }}\nagents: {{ judge: {{ endpoint: '{}' }} }}\n",
        agent.url(),
        judge.url()
    ));
    let case = "name: a\ninput: hello\nassert:\n  - { type: agent, use: 'agents:judge', criteria: kind }\n  - { type: contains, value: bye }\n  - { type: contains, value: hello }\n";
    let tested = project.suite("a", case).test(&[]);
    let failure = tested.failure("a");
    assert_eq!(failure["kind"], "assertion");
    let message = failure["message"].as_str().unwrap();
    assert!(
        message.starts_with("does not hold: ") && message.ends_with("; 1 could not be decided"),
        "{message}"
    );
    let words = "1 of 3 checks does not hold, 1 could not be decided";
    assert!(tested.output.stdout.contains(words), "{}", tested.output);
}

// Scripts that do not end.

#[test]
fn a_loop_of_assertions_ends_at_the_time_limit_of_the_script() {
    let agent = echo_agent();
    for (body, words) in [
        ("for (;;) t.assert.True(true);", ["script_error", "did not end within 1000 ms"]),
        (
            "for (;;) { let n = 0; while (n < 1e4) n++; t.assert.Equal(n, 1e4); }",
            ["script_error", "did not end within 1000 ms"],
        ),
    ] {
        let project = Project::with(&format!(
            "target: {{ endpoint: '{}' }}\nscripts: {{ timeout_ms: 1000 }}\n",
            agent.url()
        ))
        .file("a_test.ts", &format!("export function TestLoop(t) {{ {body} }}\n"));
        let begun = Instant::now();
        let tested = project.test(&["a_test.ts"]);
        let took = begun.elapsed();
        let failure = tested.failure("TestLoop");
        let told = (failure["kind"].as_str().unwrap(), failure["message"].as_str().unwrap());
        let is_limit = told.0 == words[0] && told.1.contains("1000 ms");
        // A fast machine may reach the other bound first.
        assert!(is_limit || told.1.contains("asserts more than 10000 times"), "{failure:#}");
        assert!(took < Duration::from_secs(15), "{took:?}");
    }
}

#[test]
fn a_program_has_a_bounded_number_of_checks_decided() {
    let agent = echo_agent();
    for body in ["t.assert.True(true)", "t.assert.JSONPath({ a: 1 }, '$.a', 1)"] {
        let project = Project::with(&format!(
            "target: {{ endpoint: '{}' }}\nscripts: {{ timeout_ms: 300000 }}\n",
            agent.url()
        ))
        .file("a_test.ts", &format!("export function TestLoop(t) {{ for (;;) {body}; }}\n"));
        let output = project.command(&["test", "a_test.ts", "-o", "out.json"]).timeout(4 * LONG).run();
        let report: Value = serde_json::from_str(&project.workspace.read("out.json")).unwrap();
        let result = &report["results"][0];
        assert_eq!(result["failure"]["kind"], "test_error", "{output}");
        assert_eq!(result["failure"]["message"], "the test asserts more than 10000 times");
        assert_eq!(result["assertions"].as_array().map(Vec::len), Some(10_000));
    }
}

// Who waits.

#[test]
fn an_agent_behind_chat_completions_that_asks_by_a_tool_waits_for_the_user() {
    let server = FakeAgent::start(|request| {
        let messages = request.json()["messages"].as_array().unwrap().clone();
        let asked = messages.iter().any(|message| message["role"] == "tool");
        match asked {
            false => Completion::new()
                .tool(0, "call-1", "ask_user", &json!({"question": "How much?"}))
                .finish("tool_calls"),
            true => Completion::new().text("Submitted.").finish("stop"),
        }
    });
    let target = format!("target: {{ type: openai, base_url: '{}v1', model: m }}\n", server.url());
    let case = "name: a\ntype: multi_turn\nturns:\n  - { user: pay, assertions: [{ type: tool_called, name: ask_user }] }\n  - { user: '250', assertions: [{ type: contains, value: Submitted }] }\n";
    let tested = Project::with(&target).suite("a", case).test(&[]);
    tested.all_passed();
    let turns = &tested.case("a")["turns"];
    let reasons = [0, 1].map(|turn| (&turns[turn]["awaiting_reason"], &turns[turn]["finish_reason"]));
    assert_eq!(
        reasons,
        [(&json!("tool_requires_confirmation"), &json!("tool_calls")), (&json!("completed"), &json!("stop"))]
    );
    // The protocol wants each call answered before anything else is said.
    let sent = server.requests()[1].json()["messages"].as_array().unwrap().clone();
    let roles: Vec<&str> = sent.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "user"]);
    assert_eq!(sent[1]["tool_calls"][0]["id"], sent[2]["tool_call_id"]);
    assert_eq!(sent[3]["content"], "250");

    // Where nobody answers, the case is skipped as over any other protocol.
    let open = "name: a\ntype: multi_turn\nturns: [{ user: pay }]\n";
    let tested = Project::with(&target).suite("a", open).test(&[]);
    assert_eq!(tested.case("a")["status"], "skipped", "{}", tested.output);
    // A call of any other tool that nobody offers is still a mistake of the test.
    let unknown = "name: a\nawaiting: { tools: [confirm] }\nturns: [{ user: pay }]\n";
    let tested = Project::with(&target).suite("a", unknown).test(&[]);
    assert_eq!(tested.failure("a")["kind"], "test_error", "{}", tested.output);
}

#[test]
fn the_default_simulator_answers_in_cases_that_name_none() {
    let agent = FakeAgent::start(|request| {
        let text = match request.last_user_text().as_str() {
            "250" => "Submitted.",
            _ => "How much is it?",
        };
        Run::of(request).started().text(text).finished()
    });
    let user = FakeAgent::start(|request| {
        Run::of(request).started().text(r#"{"input": "250", "goal_achieved": false}"#).finished()
    });
    let project = Project::with(&format!(
        "target: {{ endpoint: '{}' }}\nagents: {{ user: {{ endpoint: '{}' }} }}\n",
        agent.url(),
        user.url()
    ));
    let cases = [
        json!({"id": "plain", "input": "pay"}),
        json!({"id": "turns", "turns": [{"input": "pay"}], "final_assertions": [{"type": "contains", "value": "Submitted"}]}),
        json!({"id": "multi", "type": "multi_turn", "input": "pay"}),
        json!({"id": "single", "type": "single_turn", "input": "pay"}),
    ];
    let suite: Vec<String> = cases.iter().map(Value::to_string).collect();
    let project = project.file("a.test.jsonl", &suite.join("\n"));
    let held = |tested: &Tested| {
        ["plain", "turns", "multi", "single"].map(|id| {
            // A case of one turn has no list of them.
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
    tested.all_passed();
    let answered = || vec!["static".to_string(), "simulated".to_string()];
    assert_eq!(held(&tested), [answered(), answered(), answered(), vec!["static".to_string()]]);
    // Without the flag nobody answers in them.
    let tested = project.test(&[]);
    assert_eq!(held(&tested), [(); 4].map(|()| vec!["static".to_string()]), "{}", tested.output);
}

// The end of a run.

fn cleaning(agent: &FakeAgent, after: &str) -> Project {
    let text = format!(
        "target: {{ endpoint: '{}' }}\nhooks:\n  set_up: {{ cmd: [sh, -c, 'touch set-up'] }}\n  clean_up: {{ cmd: [sh, -c, '{after}'] }}\n",
        agent.url()
    );
    let case = "name: a\nbefore: set_up\nafter: clean_up\nturns: [{ user: hello }]\n";
    Project::with(&text).suite("a", case)
}

#[test]
fn hooks_behind_cases_run_when_a_run_is_cancelled() {
    let agent = FakeAgent::start(|request| Run::of(request).started().gate("never").text("hi").finished());
    let project = cleaning(&agent, "touch cleaned-up");
    let mut running = project.command(&["test", "-o", "out.json", "--after", "clean_up"]).spawn();
    agent.wait_for_requests(1, LONG);
    running.press_ctrl_c();
    running.wait_for_stdout("no new cases");
    let begun = Instant::now();
    running.press_ctrl_c();
    let output = running.wait();
    agent.release("never");
    assert_eq!(output.code, 130, "{output}");
    assert!(common::exists(&project.workspace, "cleaned-up"), "{output}");
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    let report: Value = serde_json::from_str(&project.workspace.read("out.json")).expect("a whole report");
    assert_eq!(report["results"][0]["failure"]["kind"], "cancelled");
}

#[test]
fn a_hook_that_hangs_holds_a_cancelled_run_up_for_a_bounded_time() {
    let agent = FakeAgent::start(|request| Run::of(request).started().gate("never").text("hi").finished());
    let project = cleaning(&agent, "touch begun; sleep 1000");
    let mut running = project.command(&["test", "-o", "out.json"]).timeout(2 * LONG).spawn();
    agent.wait_for_requests(1, LONG);
    running.press_ctrl_c();
    running.wait_for_stdout("no new cases");
    running.press_ctrl_c();
    let begun = Instant::now();
    let output = running.wait();
    agent.release("never");
    assert_eq!(output.code, 130, "{output}");
    assert!(common::exists(&project.workspace, "begun"));
    assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
    assert!(output.stdout.contains("given up 10000 ms after the run was cancelled"), "{output}");
}
