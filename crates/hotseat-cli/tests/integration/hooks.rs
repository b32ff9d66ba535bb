//! Hooks: their input, their output, and its use.
use std::collections::BTreeSet;

use hotseat_testkit::FakeAgent;
use serde_json::json;

use crate::common::{Project, TestRun, echo, echo_agent, exists};

/// Runs a suite against an echo agent; returns the texts that it received.
#[track_caller]
fn received_texts(project: impl FnOnce(Project) -> Project) -> Vec<String> {
    let agent = echo_agent();
    let tested = project(Project::with_agent(&agent)).test_in(&[("FROM_OUTSIDE", "outside")], &[]);
    tested.assert_all_passed();
    agent.user_texts()
}

// Before the conversation.

#[test]
fn hooks_run_in_order() {
    let agent = echo_agent();
    let suite = "
name: a
hooks:
  - cmd: [sh, '-c', 'echo first >> order']
  - cmd: [sh, '-c', 'echo second >> order']
  - cmd: [sh, '-c', 'echo third >> order']
turns: [{ user: hello, assert: { text: { must_match: hello } } }]
";
    let project = Project::with_agent(&agent).suite("a", suite);
    project.test(&[]).assert_all_passed();
    assert_eq!(project.workspace.read("order"), "first\nsecond\nthird\n");
}

#[test]
fn agent_is_contacted_after_last_before_hook() {
    let project = Project::empty();
    let done = project.workspace.path("done");
    let agent = FakeAgent::start(move |request| {
        assert_eq!(std::fs::read_to_string(&done).expect("the hooks have run"), "1\n2\n");
        echo(request)
    });
    let suite = "
name: a
hooks: [{ cmd: [sh, '-c', 'echo 1 >> done'] }, { cmd: [sh, '-c', 'echo 2 >> done'] }]
turns: [{ user: hello, assert: { text: { must_match: hello } } }, { user: bye }]
";
    let project = project.file("hotseat.yaml", &format!("target: {{ endpoint: '{agent}' }}\n"));
    project.suite("a", suite).test(&[]).assert_all_passed();
    assert_eq!(agent.requests().len(), 2);
}

#[test]
fn failing_hook_ends_only_its_case() {
    let agent = echo_agent();
    let suite = "
name: fails
hooks: [{ cmd: [sh, '-c', 'touch first'] }, { cmd: ['false'] }, { cmd: [sh, '-c', 'touch third'] }]
turns: [{ user: never sent }]
---
name: goes on
hooks: [{ cmd: [echo, '{\"WORD\":\"hello\"}'] }]
turns: [{ user: '${WORD}', assert: { text: { must_match: hello } } }]
";
    let project = Project::with_agent(&agent).suite("a", suite);
    let tested = project.test(&["--parallel", "1"]);
    assert_eq!(tested.failure("fails")["kind"], "hook_error");
    assert_eq!(tested.failure("fails")["fault"], "test");
    assert_eq!(tested.case("goes on")["status"], "passed");
    assert_eq!(tested.output.code, 1);
    assert!(
        exists(&project.workspace, "first") && !exists(&project.workspace, "third"),
        "no hook runs after one failed"
    );
    assert_eq!(agent.requests().len(), 1);
}

#[test]
fn skipped_case_runs_no_hooks() {
    let agent = echo_agent();
    let suite = "name: a\nskip: later\nhooks: [{ cmd: [touch, ran] }]\nturns: [{ user: hello }]\n";
    let project = Project::with_agent(&agent).suite("a", suite);
    assert_eq!(project.test(&[]).output.code, 0);
    assert!(!exists(&project.workspace, "ran"));
}

// Input of hooks.

#[test]
fn hook_has_environment_and_own_variables() {
    let said = received_texts(|project| {
        project.file("env.sh", r#"printf '{"SAID":"%s %s %s"}' "$FROM_OUTSIDE" "$OWN" "$FROM_SUITE""#).suite(
            "a",
            "
name: a
hooks: [{ cmd: [sh, env.sh], env: { OWN: own, FROM_SUITE: '${ENV.FROM_OUTSIDE}!' } }]
turns: [{ user: '${SAID}' }]
---
name: b
hooks: [{ cmd: [sh, env.sh], env: { FROM_OUTSIDE: mine } }]
turns: [{ user: '${SAID}' }]
",
        )
    });
    let said: BTreeSet<&str> = said.iter().map(|text| text.trim_end()).collect();
    assert_eq!(said, BTreeSet::from(["outside own outside!", "mine"]));
}

#[test]
fn hook_runs_in_project_folder() {
    let agent = echo_agent();
    let where_am_i = r#"printf '{"WHERE":"%s"}' "$(pwd)""#;
    let project =
        Project::with_agent(&agent).file("where.sh", where_am_i).file("scripts/here.sh", where_am_i).file(
            "deep/down/a.test.yaml",
            "
name: default
hooks: [{ cmd: [sh, where.sh] }]
turns: [{ user: '${WHERE}' }]
---
name: its own
hooks: [{ cmd: [sh, here.sh], cwd: scripts }]
turns: [{ user: '${WHERE}' }]
",
        );
    // Independent of the working directory.
    for folder in [".", "deep/down"] {
        project.command(&["test", "--parallel", "1"]).cwd(folder).run().assert_code(0);
    }
    let said = agent.user_texts();
    let root = project.workspace.root().display().to_string();
    let scripts = format!("{root}/scripts");
    assert_eq!(said, [root.clone(), scripts.clone(), root, scripts]);
}

#[test]
fn command_words_bypass_shell() {
    let words = r#"$HOME * ~ `id` $(id) ; | & > x 'single' !"#;
    let said = received_texts(|project| {
        let suite = format!(
            "name: a\nhooks: [{{ cmd: [printf, '{{\"SAID\":\"%s\"}}', {words:?}] }}]\nturns: [{{ user: '${{SAID}}' }}]\n"
        );
        project.suite("a", &suite)
    });
    assert_eq!(said, [words]);
}

/// A hook that reads stdin does not block.
#[test]
fn hook_stdin_is_empty() {
    assert_eq!(
        received_texts(
            |project| project.suite("a", "name: a\nhooks: [{ cmd: [cat] }]\nturns: [{ user: hello }]\n")
        ),
        ["hello"]
    );
}

#[test]
fn hook_output_is_available_to_next_hook() {
    let said = received_texts(|project| {
        project.file("next.sh", r#"printf '{"BOTH":"%s-%s"}' "$1" "$ID""#).suite(
            "a",
            "
name: a
hooks:
  - { cmd: [echo, '{\"ID\":\"x 1\",\"PART\":\"a b\"}'] }
  - { cmd: [sh, next.sh, '${PART}'], env: { ID: '${ID}' } }
turns: [{ user: '${BOTH}' }]
",
        )
    });
    assert_eq!(said, ["a b-x 1"]);
}

#[test]
fn first_hook_cannot_use_hook_variables() {
    let project = Project::with_agent(&echo_agent())
        .suite("a", "name: a\nhooks: [{ cmd: [echo, '${ID}'] }]\nturns: [{ user: hello }]\n");
    project.hotseat(&["test"]).assert_stderr(2, &["variable `ID` is not defined"]);
}

// Output of hooks.

#[test]
fn later_variables_override_earlier_ones() {
    let said = received_texts(|project| {
        project.suite(
            "a",
            "
name: a
hooks: [{ cmd: [echo, '{\"A\":\"1\",\"B\":\"1\"}'] }, { cmd: ['true'] }, { cmd: [echo, '{\"B\":\"2\",\"C\":\"2\"}'] }]
turns: [{ user: '${A}${B}${C}' }]
",
        )
    });
    assert_eq!(said, ["122"]);
}

#[test]
fn values_of_every_type_interpolate_into_text() {
    let said = received_texts(|project| {
        let values = r#"{"TEXT":"two words","NUMBER":42.50,"TRUTH":true,"NOTHING":null,"LIST":[1,"a"],"MAP":{"a":{"b":1}}}"#;
        let suite = format!(
            "name: a\nhooks: [{{ cmd: [echo, {values:?}] }}]\nturns: [{{ user: '${{TEXT}} ${{NUMBER}} ${{TRUTH}} ${{NOTHING}} ${{LIST}} ${{MAP}} $${{TEXT}}' }}]\n"
        );
        project.suite("a", &suite)
    });
    assert_eq!(said, [r#"two words 42.5 true null [1,"a"] {"a":{"b":1}} ${TEXT}"#]);
}

/// Values are text and are not interpolated again.
#[test]
fn values_are_interpolated_once() {
    let said = received_texts(|project| {
        project.suite(
            "a",
            "name: a\nhooks: [{ cmd: [printf, '%s', '{\"A\":\"$${B} $${ENV.HOME}\",\"B\":\"b\"}'] }]\nturns: [{ user: '${A}' }]\n",
        )
    });
    assert_eq!(said, ["${B} ${ENV.HOME}"]);
}

#[test]
fn values_are_escaped_in_patterns() {
    let agent = echo_agent();
    let suite = |id: &str| {
        format!(
            "
name: a
hooks: [{{ cmd: [echo, '{{\"ID\":\"a.c+(\"}}'] }}]
turns: [{{ user: 'is it {id}', assert: {{ text: {{ must_match: 'is it ${{ID}}$' }} }} }}]
"
        )
    };
    Project::with_agent(&agent).suite("a", &suite("a.c+(")).test(&[]).assert_all_passed();
    let tested = Project::with_agent(&agent).suite("a", &suite("abcc(")).test(&[]);
    assert_eq!(tested.failure("a")["kind"], "assertion");
}

/// A quantifier after a value would repeat its last character only, and a schema would take its dot for any character.
#[test]
fn values_in_patterns_are_whole_and_literal() {
    let agent = echo_agent();
    let schema =
        "assert: { type: schema, schema: { required: [v], properties: { v: { pattern: '^${V}$' } } } }";
    for (value, user, check, status) in [
        ("A-17", "order A-1", "assert: { type: regex, pattern: 'order ${V}?$' }", "failed"),
        ("A-17", "order", "assert: { type: regex, pattern: 'order ?${V}?$' }", "passed"),
        ("ab", "x: abab", "assert: { text: { must_not_match: 'x: ${V}{2}$' } }", "failed"),
        ("1.2", "{\"v\":\"1.2\"}", schema, "passed"),
        ("1.2", "{\"v\":\"152\"}", schema, "failed"),
        ("a.b", "regex:a.b", "assert: { type: not_contains, value: 'regex:${V}' }", "failed"),
    ] {
        let suite = format!(
            "name: a\nhooks: [{{ cmd: [echo, '{{\"V\": \"{value}\"}}'] }}]\nturns: [{{ user: '{user}', {check} }}]\n"
        );
        let tested = Project::with_agent(&agent).suite("a", &suite).test(&[]);
        assert_eq!(tested.case("a")["status"], status, "{check}: {user}{}", tested.output);
    }
}

/// Targets with files are read before hooks set variables.
#[test]
fn patterns_of_embedded_agents_use_variables_of_hooks() {
    let suite = "name: a\nhooks: [{ cmd: [echo, '{\"V\":\"secret\"}'] }]\nturns: [{ user: hi }]\n";
    let script = |reply: &str| format!("use: always\nrules: [{{ reply: '{reply}' }}]\n");
    for (reply, status) in [("hello", "passed"), ("my secret", "failed")] {
        let project = Project::with_config(
            "target: { type: embedded, agent: agent.yaml, assert: { text: { must_not_match: '${V}' } } }\n",
        );
        let tested = project
            .file("agent.yaml", "name: A\n")
            .file("script.yaml", &script(reply))
            .suite("a", suite)
            .test(&[]);
        assert_eq!(tested.case("a")["status"], status, "{}", tested.output);
    }
}

#[test]
fn state_values_keep_their_type() {
    let agent = echo_agent();
    let suite = "
name: a
hooks: [{ cmd: [echo, '{\"CART\":{\"items\":[1,2]},\"N\":5,\"TEXT\":\"5\",\"NO\":false}'] }]
state: { cart: '${CART}', n: '${N}', text: '${TEXT}', no: '${NO}', mixed: 'n=${N}', deep: [{ n: '${N}' }] }
forwardedProps: { n: '${N}' }
context: [{ description: cart, value: '${CART}' }]
turns: [{ user: hello }]
";
    Project::with_agent(&agent).suite("a", suite).test(&[]).assert_all_passed();
    let input = agent.requests()[0].json();
    let state = json!({
        "cart": {"items": [1, 2]}, "n": 5, "text": "5", "no": false, "mixed": "n=5", "deep": [{"n": 5}],
    });
    assert_eq!(input["state"], state);
    assert_eq!(input["forwardedProps"], json!({"n": 5}));
    assert_eq!(input["context"], json!([{"description": "cart", "value": "{\"items\":[1,2]}"}]));
}

#[test]
fn target_values_differ_per_case() {
    let agent = echo_agent();
    let target = format!(
        "target: {{ endpoint: '{agent}shops/${{SHOP}}', threadId: 'of-${{SHOP}}', headers: {{ X-Shop: '${{SHOP}}', Authorization: 'Bearer ${{KEY}}' }} }}\n"
    );
    let case = |shop: &str| {
        format!(
            "name: {shop}\nhooks: [{{ cmd: [echo, '{{\"SHOP\":\"{shop}\",\"KEY\":\"key-of-{shop}\"}}'] }}]\nturns: [{{ user: hello }}]\n"
        )
    };
    let suite = [case("one"), case("two")].join("---\n");
    Project::with_config(&target).suite("a", &suite).test(&["--parallel", "1"]).assert_all_passed();
    let seen: Vec<_> = agent
        .requests()
        .iter()
        .map(|request| {
            let header = |name| request.header(name).unwrap_or_default().to_string();
            (request.path.clone(), header("x-shop"), header("authorization"), request.input().thread_id)
        })
        .collect();
    let of = |shop: &str| {
        (format!("/shops/{shop}"), shop.to_string(), format!("Bearer key-of-{shop}"), format!("of-{shop}"))
    };
    assert_eq!(seen, [of("one"), of("two")]);
}

#[test]
fn inherited_assertions_use_variables_of_each_case() {
    let agent = echo_agent();
    let target = |settings: &str| format!("target: {{ endpoint: '{agent}', {settings} }}\n");
    let case = |word: &str| {
        format!(
            "name: {word}\nhooks: [{{ cmd: [echo, '{{\"V\":\"{word}\"}}'] }}]\nturns: [{{ user: a.c }}]\n"
        )
    };
    let suite = [case("a.c"), case("a+c"), case("abc")].join("---\n");
    let outcomes = |settings: &str| {
        let tested = Project::with_config(&target(settings)).suite("a", &suite).test(&[]);
        ["a.c", "a+c", "abc"].map(|name| tested.case(name)["status"] == "passed")
    };
    for level in ["assert", "turn_assert"] {
        let forbidden = format!("{level}: {{ text: {{ must_not_match: '${{V}}' }} }}");
        assert_eq!(outcomes(&forbidden), [false, true, true], "{level}");
        let required = format!("{level}: {{ text: {{ must_match: '${{V}}' }} }}");
        assert_eq!(outcomes(&required), [true, false, false], "{level}");
    }
}

#[test]
fn variable_without_value_in_inherited_assertion_is_refused_before_run() {
    let agent = echo_agent();
    let target = format!("target: {{ endpoint: '{agent}' }}\n");
    let inherited = target.replace(" }", ", assert: { text: { must_not_match: '${V}' } } }");
    let without = "name: a\nturns: [{ user: hello }]\n";
    let with = "name: a\nhooks: [{ cmd: [echo, '{\"V\":\"x\"}'] }]\nturns: [{ user: hello }]\n";
    let criteria = "criteria: { calm: { match: { text: { must_not_match: '${V}' } } } }\n";
    let simulate = "simulate: { never_says: ['${V}'] }\n";
    let mcp = "mcp: { bank: { type: mock, tools: [{ name: pay, answers: [{ content: '${V}' }] }] } }\n";
    let models = "models: { m: { rules: [{ reply: '${V}' }] } }\n";
    let shared = [criteria, simulate, mcp, models].map(|shared| (format!("{target}{shared}"), with));
    for (config, suite) in [(inherited, without)].into_iter().chain(shared) {
        let output = Project::with_config(&config).suite("a", suite).hotseat(&["test"]);
        assert_eq!(output.code, 2, "{config}{output}");
        assert!(output.stderr.contains("variable `V` is not defined"), "{config}{output}");
        assert!(output.stderr.contains("hotseat.yaml:"), "{config}{output}");
    }
    assert_eq!(agent.requests().len(), 0);
}

#[test]
fn slashes_of_a_value_enclose_no_pattern() {
    let suite = "
name: a
hooks: [{ cmd: [echo, '{\"V\": \"/HELLO/i\", \"L\": [\"pay\"]}'] }]
turns: [{ user: 'say /HELLO/i', assert: { text: { must_match: '${V}' } } }, { user: hello, assert: { text: { must_not_match: '${V}' } } }]
---
name: b
hooks: [{ cmd: [echo, '{\"L\": [\"pay\"]}'] }]
turns: [{ user: hello, assert: { tools: { forbid: ['${L}'] } } }]
";
    let agent = echo_agent();
    let tested = Project::with_agent(&agent).suite("a", suite).test(&[]);
    assert_eq!(tested.case("a")["status"], "passed", "{}", tested.output);
    tested.assert_failure("b", "test_error", &["cannot be the name of a tool"]);
}

/// With such a pattern, an assertion would hold for every order.
#[test]
fn an_empty_variable_makes_no_pattern_universal() {
    let turns = [
        "assert: { tools: { require: [{ name: a, args_match: { id: '^${T}' } }] } }",
        "assert: { tools: { require: [{ name: a, args_not_match: { id: '${T}$' } }] } }",
        "assert: { tools: { require: [{ name: a, result_match: '${T}' }] } }",
        "assert: { text: { must_match: '${T}.*' } }",
        "assert: { text: { must_not_match: '^${T}' } }",
        "assert: [{ type: regex, pattern: '^${T}' }]",
        "assert: [{ type: tool_called, name: a, where: { id: { regex: '^${T}' } } }]",
        "assert: [{ type: tool_result, tool: a, result: { id: 'regex:^${T}' } }]",
        "assert: [{ type: schema, schema: { type: string, pattern: '^${T}' } }]",
        "expect_error: '${T}'",
    ];
    let mut suite = String::new();
    for (number, turn) in turns.iter().enumerate() {
        suite += &format!(
            "name: p{number}\nhooks: [{{ cmd: [echo, '{{\"T\": \"\"}}'] }}]\nturns: [{{ user: hi, {turn} }}]\n---\n"
        );
    }
    suite += "name: trigger
hooks: [{ cmd: [echo, '{\"T\": \"\"}'] }]
turns: [{ user: hi }]
graph: { t: { characteristic: x, triggers: { on_response_match: '^${T}' } } }
---
name: part
hooks: [{ cmd: [echo, '{\"T\": \"\"}'] }]
turns: [{ user: hi, assert: { text: { must_match: 'said${T}' } } }]
";
    let agent = echo_agent();
    let tested = Project::with_agent(&agent).suite("a", &suite).test(&[]);
    let names = (0..turns.len()).map(|number| format!("p{number}")).chain(["trigger".to_string()]);
    for name in names {
        let words = "variable `T` is empty, so that every text matches this pattern";
        tested.assert_failure(&name, "test_error", &[words]);
    }
    assert_eq!(tested.case("part")["status"], "passed", "{}", tested.output);
    // Variables of the environment are known before the run.
    let suite = "name: a\nturns: [{ user: hi, assert: { tools: { require: [{ name: a, args_match: { id: '^${ENV.EMPTY}' } }] } } }]\n";
    let project = Project::with_agent(&agent).suite("a", suite);
    project.command(&["test"]).env("EMPTY", "").run().assert_stderr(2, &["variable `ENV.EMPTY` is empty"]);
}

/// The condition would compare the argument with the whole list.
#[test]
fn a_list_is_no_entry_of_a_condition() {
    let case = |name: &str, condition: &str, more: &str| {
        format!(
            "name: {name}\nhooks: [{{ cmd: [echo, '{{\"L\": [\"a\"], \"V\": \"a\"}}'] }}]\nturns: [{{ user: hi, assert: [{{ type: tool_called, name: book, where: {{ id: {{ {condition} }} }}{more} }}] }}]\n"
        )
    };
    let suite = [
        case("list", "one_of: ['${L}']", ""),
        case("negated", "one_of: ['${L}', b]", ", negate: true"),
        case("contained", "contains_any: ['${L}']", ", negate: true"),
        case("value", "one_of: ['${V}']", ", negate: true"),
        case("nested", "one_of: [['${V}']]", ", negate: true"),
    ];
    let agent = echo_agent();
    let tested = Project::with_agent(&agent).suite("a", &suite.join("---\n")).test(&[]);
    for name in ["list", "negated", "contained"] {
        let words = ["the value of this variable is a list, but stands for one value"];
        tested.assert_failure(name, "test_error", &words);
    }
    for name in ["value", "nested"] {
        assert_eq!(tested.case(name)["status"], "passed", "{}", tested.output);
    }
}

#[test]
fn an_empty_variable_is_no_name_of_a_tool() {
    let checks = [
        ("forbid", "{ tools: { forbid: ['${T}'] } }"),
        ("require", "{ tools: { require: [{ name: '${T}', count: { max: 0 } }] } }"),
        ("called", "{ type: tool_called, name: '${T}', negate: true }"),
        ("listed", "{ type: tool_called, value: [pay, '${T}'], negate: true }"),
    ];
    for empty in ["", " "] {
        let case = |(name, check): (&str, &str)| {
            format!(
                "name: {name}\nhooks: [{{ cmd: [echo, '{{\"T\": \"{empty}\"}}'] }}]\nturns: [{{ user: hi, assert: {check} }}]\n"
            )
        };
        let agent = echo_agent();
        let suite = checks.into_iter().map(case).collect::<Vec<_>>().join("---\n");
        let tested = Project::with_agent(&agent).suite("a", &suite).test(&[]);
        for (name, _) in checks {
            tested.assert_failure(name, "test_error", &["variable `T` is empty"]);
        }
        assert_eq!(agent.requests().len(), 0, "the agent was contacted: {}", tested.output);
    }
}

#[test]
fn rejects_address_made_invalid_by_variable() {
    let target = "target: { endpoint: '${URL}' }\n";
    let case = |name: &str, url: &str| {
        format!(
            "name: {name}\nhooks: [{{ cmd: [echo, '{{\"URL\":\"{url}\"}}'] }}]\nturns: [{{ user: hello }}]\n"
        )
    };
    let suite = [case("no address", "nowhere"), case("no protocol", "ftp://127.0.0.1/")].join("---\n");
    let tested: TestRun = Project::with_config(target).suite("a", &suite).test(&[]);
    for name in ["no address", "no protocol"] {
        assert_eq!(tested.failure(name)["kind"], "test_error", "{}", tested.output);
        let message = tested.failure(name)["message"].as_str().unwrap_or_default();
        assert!(message.contains("`endpoint` is not") && message.contains("hotseat.yaml:1:21"), "{message}");
    }
}

#[test]
fn concurrent_cases_have_separate_variables() {
    const CASES: usize = 8;
    // All conversations are open at the same time.
    let agent = FakeAgent::with_run(|run, request| {
        let said = request.last_user_text();
        run.gate("all are here").text(&format!("You said: {said}")).finished()
    });
    let case = |n: usize| {
        format!(
            "
name: case {n}
hooks: [{{ cmd: [echo, '{{\"ID\":\"id-{n}.\",\"N\":{n}}}'] }}]
threadId: 'thread-${{ID}}'
state: {{ n: '${{N}}' }}
turns: [{{ user: 'I am ${{ID}}', assert: {{ text: {{ must_match: '^You said: I am ${{ID}}$' }} }} }}]
"
        )
    };
    let cases: Vec<String> = (0..CASES).map(case).collect();
    let project = Project::with_agent(&agent).suite("a", &cases.join("---\n"));
    let running = project.command(&["test", "-o", "out.json", "--parallel", "8"]).spawn();
    let requests = agent.wait_for_requests(CASES, crate::common::TEST_TIMEOUT);
    agent.release("all are here");
    running.wait().assert_code(0);

    let told = requests.iter().map(|request| {
        let n = request.json()["state"]["n"].as_u64();
        (request.last_user_text(), request.input().thread_id, n.expect("the number stays a number"))
    });
    let expected = (0..CASES).map(|n| (format!("I am id-{n}."), format!("thread-id-{n}."), n as u64));
    assert_eq!(told.collect::<BTreeSet<_>>(), expected.collect());
}

#[test]
fn hook_output_is_limited() {
    let agent = echo_agent();
    let suite = "name: a\nhooks: [{ cmd: [head, '-c', '9000000', /dev/zero] }]\nturns: [{ user: hello }]\n";
    let tested = Project::with_agent(&agent).suite("a", suite).test(&[]);
    assert_eq!(tested.failure("a")["kind"], "hook_error");
    assert!(
        tested.failure("a")["message"]
            .as_str()
            .unwrap_or_default()
            .contains("printed more than 8388608 bytes")
    );
}

/// As a pattern, `.*` would match any result, and a text in which null was written is found in none.
#[test]
fn variables_in_expected_values_are_texts() {
    let suite = |variable: &str, check: &str| {
        format!(
            "name: a\nhooks: [{{ cmd: [echo, '{{\"V\": {variable}}}'] }}]\nturns: [{{ user: hi, assert: {check} }}]\n"
        )
    };
    let agent = FakeAgent::with_run(|run, _| {
        run.tool("c", "book", &json!({}), Some(json!("ok"))).text("hi").finished()
    });
    let result = "{ type: tool_result, tool: book, result: 'regex:^${V}$' }";
    for (variable, passes) in [("\".*\"", false), ("\"ok\"", true)] {
        let tested = Project::with_agent(&agent).suite("a", &suite(variable, result)).test(&[]);
        assert_eq!(tested.case("a")["status"] == "passed", passes, "{}", tested.output);
    }
    let value = "{ type: tool_result, tool: book, result: '${V}' }";
    let tested = Project::with_agent(&agent).suite("a", &suite("\"regex:.\"", value)).test(&[]);
    tested.assert_failure("a", "assertion", &["book"]);
    for check in [
        "{ type: not_contains, value: 'x${V}' }",
        "{ tools: { forbid: ['${V}'] } }",
        "{ text: { must_not_match: '${V}' } }",
    ] {
        let tested = Project::with_agent(&agent).suite("a", &suite("null", check)).test(&[]);
        tested.assert_failure("a", "test_error", &["variable `V` is null"]);
    }
}

/// The agent repeats the number as it was sent.
#[test]
fn number_of_a_hook_has_one_text() {
    for number in ["100.0", "1e21", "2.5"] {
        let case = |name: &str, check: &str| {
            format!(
                "name: {name}\nhooks: [{{ cmd: [echo, '{{\"N\": {number}}}'] }}]\nturns: [{{ user: 'pay ${{N}}', assert: [{{ type: {check}, value: '${{N}}' }}] }}]\n"
            )
        };
        let suite = format!("{}---\n{}", case("said", "contains"), case("forbidden", "not_contains"));
        let tested = Project::with_agent(&echo_agent()).suite("a", &suite).test(&[]);
        assert_eq!(tested.case("said")["status"], "passed", "{}", tested.output);
        tested.assert_failure("forbidden", "assertion", &["pay "]);
    }
}

/// As a text, the number would be compared with no number.
#[test]
fn number_of_a_hook_is_a_limit_of_a_condition() {
    let agent = FakeAgent::with_run(|run, _| {
        run.tool("c", "book", &json!({"seats": 6}), Some(json!("ok"))).text("hi").finished()
    });
    for (variable, condition, status) in [
        ("5", "at_least: '${N}'", "passed"),
        ("7", "at_least: '${N}'", "failed"),
        ("6.5", "less_than: '${N}'", "passed"),
        ("6", "equals: '${N}'", "passed"),
    ] {
        let suite = format!(
            "name: a\nhooks: [{{ cmd: [echo, '{{\"N\": {variable}}}'] }}]\nturns: [{{ user: hi, assert: {{ type: tool_called, name: book, where: {{ seats: {{ {condition} }} }} }} }}]\n"
        );
        let tested = Project::with_agent(&agent).suite("a", &suite).test(&[]);
        assert_eq!(tested.case("a")["status"], status, "{}", tested.output);
        assert_ne!(tested.case("a")["failure"]["kind"], "test_error", "{}", tested.output);
    }
}

/// An argument with another name would be missing in every call, so a prohibition of its value would hold.
#[test]
fn variables_in_names_of_arguments_are_filled_in() {
    let agent = FakeAgent::with_run(|run, _| {
        run.tool("c", "book", &json!({"x": "aaa"}), Some(json!("ok"))).text("hi").finished()
    });
    let twice = "name: a\nhooks: [{ cmd: [echo, '{\"V\": \"x\"}'] }]\nturns: [{ user: hi, assert: { type: tool_called, name: book, arguments: { '${V}': bbb, x: aaa } } }]\n";
    let tested = Project::with_agent(&agent).suite("a", twice).test(&[]);
    tested.assert_failure("a", "test_error", &["make it a second `x`", "a.test.yaml:3"]);
    for check in [
        "{ tools: { forbid_calls: [{ name: book, args_match: { '${V}': aaa } }] } }",
        "{ type: tool_called, name: book, arguments: { '${V}': aaa }, negate: true }",
        "{ type: tool_called, name: book, where: { '${V}': { equals: aaa } }, negate: true }",
    ] {
        let suite = format!(
            "name: a\nhooks: [{{ cmd: [echo, '{{\"V\": \"x\"}}'] }}]\nturns: [{{ user: hi, assert: {check} }}]\n"
        );
        let tested = Project::with_agent(&agent).suite("a", &suite).test(&[]);
        tested.assert_failure("a", "assertion", &["book"]);
    }
}

/// Agents write 100 for 100.0, which most languages print for a whole float.
#[test]
fn whole_floats_are_filled_into_texts_as_integers() {
    let agent = echo_agent();
    let suite = "name: a
hooks: [{ cmd: [echo, '{\"A\": 100.0, \"B\": 0.5}'] }]
turns: [{ user: '${A} ${B}', assert: { text: { must_match: '100 ${B}$' } } }]
---
name: b
hooks: [{ cmd: [echo, '{\"A\": 100.0}'] }]
turns: [{ user: 'pay 100', assert: { text: { must_match: 'pay ${A}$' } } }]
---
name: c
scenarios: [{ id: s, name: s, goal: pays, amount: 100.0 }]
turns: [{ user: 'pay 100', assert: { text: { must_match: 'pay ${scenario.amount}$' } } }]
";
    Project::with_agent(&agent).suite("a", suite).test(&[]).assert_all_passed();
}

#[test]
fn variables_in_json_paths_are_names() {
    let agent = FakeAgent::with_run(|run, _| {
        let items = json!({"items": {"o'1": {"id": 1}, "a\"b\\": 2, "plain": 3, "x": 4}});
        run.text(&items.to_string()).finished()
    });
    let suite = |variable: &str, path: &str, value: u64| {
        let set = json!({"V": variable}).to_string().replace('\'', "'\\''");
        let hook = json!(["sh", "-c", format!("printf %s '{set}'")]);
        let assertion = json!({"type": "json_path", "path": path, "value": value});
        format!("name: a\nhooks: [{{ cmd: {hook} }}]\nturns: [{{ user: hi, assert: {assertion} }}]\n")
    };
    for (variable, path, value) in [
        ("o'1", "$.items['${V}'].id", 1),
        ("a\"b\\", "$.items[\"${V}\"]", 2),
        ("plain", "$.items.${V}", 3),
        ("plain", "items.${V}", 3),
        ("$.items['x']", "${V}", 4),
    ] {
        let tested = Project::with_agent(&agent).suite("a", &suite(variable, path, value)).test(&[]);
        assert_eq!(tested.case("a")["status"], "passed", "{variable} {path}: {}", tested.output);
    }
    // These would select other values.
    let other = suite("no'] , $.items['x", "$.items['${V}']", 4);
    Project::with_agent(&agent).suite("a", &other).test(&[]).assert_failure(
        "a",
        "assertion",
        &["selects nothing"],
    );
    for variable in ["*", "items['x']", "a.b", ""] {
        let tested = Project::with_agent(&agent).suite("a", &suite(variable, "$.items.${V}", 4)).test(&[]);
        tested.assert_failure("a", "test_error", &["variable `V`", "['${V}']", "a.test.yaml:3"]);
    }
}

/// A hook that fails, or whose output is refused, sets no variables. Its output is shown without those that are secrets.
#[test]
fn refused_output_is_shown_without_secrets() {
    let agent = echo_agent();
    let suite = "name: a\nhooks: [{ cmd: [sh, login.sh] }]\nturns: [{ user: hello }]\n";
    let (token, pin) = ("tok-abcdefgh-1234", "4711");
    let object = format!(r#"{{"SESSION_TOKEN": "{token}", "PIN": {pin}, "ORDER": "o-12345678"}}"#);
    let numbers: Vec<String> = (0..1500).map(|number| format!("-{number:x}")).collect();
    let long =
        format!(r#"{{"ORDER": "o-12345678", "SESSION_TOKEN": "{}"}}"#, token.to_string() + &numbers.concat());
    for (script, what) in [
        (format!("echo '{object}'; exit 1"), "it fails"),
        (format!("echo '{object}'; echo 'logged in with {token}' >&2; exit 1"), "it repeats the token"),
        (format!("echo 'logged in: \"\"\"'; echo '{object}'"), "text before"),
        (format!("echo '[{object}]'"), "a list"),
        (
            format!(
                r#"echo '{{"SESSION_TOKEN": "tok-other-1234", "PIN": 4711, "ORDER": "o-12345678", {}'"#,
                &object[1..]
            ),
            "keys twice",
        ),
        (
            r#"echo '{"ORDER": "o-12345678", "PIN": 4711, "SESSION_TOKEN": "tok-abcdefgh-12'"#.to_string(),
            "a part",
        ),
        (format!("echo '{long}'; exit 1"), "a long output"),
    ] {
        let project = Project::with_agent(&agent).suite("a", suite).file("login.sh", &script);
        let settings = project.workspace.read("hotseat.yaml") + "secrets: [PIN]\nscripts: {}\n";
        let settings = settings + "hooks: { login: { cmd: [sh, login.sh] } }\n";
        let project = project.file("hotseat.yaml", &settings);
        let run = project.test(&["-o", "r.xml", "-o", "r.html"]);
        assert_eq!(run.failure("a")["kind"], "hook_error", "{what}");
        let shown = ["r.xml", "r.html", ".hotseat/runs.db"].map(|path| {
            String::from_utf8_lossy(&std::fs::read(project.workspace.path(path)).unwrap()).into_owned()
        });
        let before = project.hotseat(&["test", "--before", "login", "--no-store"]);
        let shown = [&run.output.stdout, &run.output.stderr, &before.stderr].into_iter().chain(&shown);
        for (place, shown) in shown.enumerate() {
            assert!(!shown.contains("tok-"), "{what}, {place}: {shown}");
            assert!(!shown.contains("PIN\": 4711"), "{what}, {place}: {shown}");
        }
        for shown in [run.failure("a")["detail"].as_str().unwrap(), &before.stderr] {
            assert!(shown.contains("[redacted:SESSION_TOKEN]"), "{what}: {shown}");
            assert!(shown.contains("o-12345678"), "{what}: {shown}");
        }
    }
}
