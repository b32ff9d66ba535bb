//! Calls and results are counted alike in every adapter, and missing ones are reported.
use std::time::Duration;

use crate::common::{HOTSEAT, Project, TEST_TIMEOUT, TestRun};
use hotseat_testkit::agui::FakeRun;
use hotseat_testkit::completions::{ChatCompletion, chunk, complete_reply};
use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest};
use serde_json::{Value, json};

/// A project whose agent is a script that answers each message with these lines.
fn line_project(lines: &[Value]) -> Project {
    let printed: String = lines.iter().map(|line| format!("  cat <<'END'\n{line}\nEND\n")).collect();
    Project::with_config("target: { type: command, command: [sh, agent.sh] }\n")
        .file("agent.sh", &format!("while read -r message; do\n{printed}done\n"))
}

/// A project whose agent uses chat completions.
fn chat_project(server: &FakeAgent) -> Project {
    Project::with_config(&format!("target: {{ type: openai, base_url: '{server}v1', model: small }}\n"))
}

/// A suite with one turn.
fn suite(asserted: &str) -> String {
    format!("name: a\nturns:\n  - user: pay\n    assert:\n{asserted}")
}

const HELLO: &str = "name: a\nturns: [{ user: hello }]\n";
const NO_DECLINED_PAYMENT: &str = "      tools: { forbid_calls: [{ name: pay, result_match: declined }] }\n";

/// A call of `pay` with this result, sent through every adapter.
fn run_in_every_adapter(arguments: &Value, result: &Value, test: &str) -> Vec<(&'static str, TestRun)> {
    let mut told = Vec::new();
    let (own, written) = (result.clone(), arguments.clone());
    let streamed = FakeAgent::with_run(move |run, _| {
        let run = run.tool_call("c", "pay", &written);
        let result = json!({"type": "TOOL_CALL_RESULT", "messageId": "t", "toolCallId": "c", "content": own});
        run.raw_event(result).text("Done.").finished()
    });
    told.push(("AG-UI", Project::with_agent(&streamed).suite("a", test).test(&["--record", "made"])));

    let (own, written) = (result.clone(), arguments.clone());
    let snapshot = FakeAgent::with_run(move |run, request| {
        let mut all = request.input().messages().to_vec();
        let call = json!({"id": "c", "type": "function", "function": {"name": "pay", "arguments": written.to_string()}});
        all.push(json!({"id": "a", "role": "assistant", "toolCalls": [call]}));
        all.push(json!({"id": "t", "role": "tool", "toolCallId": "c", "content": own}));
        run.messages_snapshot(all).text("Done.").finished()
    });
    let project = Project::with_agent(&snapshot).suite("a", test);
    told.push(("snapshots", project.test(&["--record", "made"])));
    told.push(("a recording", project.test(&["-n", "replay:made"])));

    let (own, written) = (result.clone(), arguments.clone());
    let server = FakeAgent::start(move |_: &FakeRequest| {
        ChatCompletion::new()
            .tool(0, "c", "pay", &written)
            .chunk(chunk(json!({"role": "tool", "tool_call_id": "c", "content": own}), None))
            .text("Done.")
            .finish("stop")
    });
    told.push(("chat completions", chat_project(&server).suite("a", test).test(&[])));

    let project = line_project(&[
        json!({"type": "tool_call", "id": "c", "name": "pay", "arguments": arguments}),
        json!({"type": "tool_result", "id": "c", "result": result}),
        json!({"type": "text", "text": "Done."}),
        json!({"type": "done"}),
    ]);
    told.push(("JSON lines", project.suite("a", test).test(&[])));

    let call = json!({"id": "c", "type": "function", "function": {"name": "pay", "arguments": arguments.to_string()}});
    let transcript = json!([{"id": "a", "messages": [
        {"role": "user", "content": "pay"},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": result},
        {"role": "assistant", "content": "Done."},
    ]}]);
    let project = Project::empty().file("held.json", &transcript.to_string());
    project.hotseat(&["import", "openai-transcripts", "held.json", "-o", "in"]).assert_code(0);
    let project = project.file("a.test.yaml", test);
    told.push(("a transcript", project.test(&["-n", "replay:in/recordings", "a.test.yaml"])));
    told
}

#[test]
fn result_is_counted_alike_in_every_adapter() {
    for result in [
        json!("declined"),
        json!({"status": "declined"}),
        json!([{"type": "payment", "status": "declined"}]),
        json!([{"type": "text", "text": "declined"}]),
        json!([{"type": "text", "text": "ok"}, {"type": "payment", "status": "declined"}]),
    ] {
        for (way, tested) in run_in_every_adapter(&json!({}), &result, &suite(NO_DECLINED_PAYMENT)) {
            let failure = tested.failure("a");
            assert_eq!(failure["kind"], "assertion", "{way} {result}: {failure:#}");
            assert!(failure.to_string().contains("declined"), "{way} {result}: {failure:#}");
        }
    }
    let once = "      tools: { require: [{ name: pay, result_match: '^true$', count: { exact: 1 } }] }\n";
    for (way, tested) in run_in_every_adapter(&json!({"n": 1}), &json!("true"), &suite(once)) {
        assert_eq!(tested.case("a")["status"], "passed", "{way}: {}", tested.output);
        assert_eq!(tested.case("a")["turns"][0]["tool_calls"][0]["args"], json!({"n": 1}), "{way}");
    }
}

/// Some protocols pass on a number as its text.
#[test]
fn patterns_of_numbers_match_alike_in_every_adapter() {
    let matching = "      - { type: tool_result, tool: pay, result: 'regex:^100$' }
      - { type: tool_result, tool: pay, result: 'regex:^100[.]0$' }
      - tools: { require: [{ name: pay, result_match: ['^100$', '^100[.]0$'] }] }
";
    let forbidding = "      - tools: { forbid_calls: [{ name: pay, result_match: '^100$' }] }
      - tools: { require: [{ name: pay, result_not_match: '^100$' }] }
";
    let calls = answered("c", "pay", json!({}), json!(100.0));
    line_project(&[&calls[..], &[json!({"type": "done"})]].concat())
        .suite("a", &suite(matching))
        .test(&[])
        .assert_all_passed();
    for (way, tested) in run_in_every_adapter(&json!({}), &json!("100.0"), &suite(matching)) {
        assert_eq!(tested.case("a")["status"], "passed", "{way}: {}", tested.output);
    }
    for (way, tested) in run_in_every_adapter(&json!({}), &json!("100.0"), &suite(forbidding)) {
        let checks = tested.case("a")["turns"][0]["assertions"].as_array().expect("a list").clone();
        let about_results = checks.iter().filter(|check| check["expected"].to_string().contains("/^100$/"));
        let passed: Vec<_> = about_results.map(|check| check["passed"].clone()).collect();
        assert_eq!(passed, [false, false], "{way}: {checks:#?}");
    }
}

#[test]
fn missing_arguments_are_an_empty_object() {
    let empty = "      - { type: tool_called, name: pay, arguments: {} }\n";
    for (way, tested) in run_in_every_adapter(&json!({}), &json!("ok"), &suite(empty)) {
        assert_eq!(tested.case("a")["turns"][0]["tool_calls"][0]["args"], json!({}), "{way}");
    }
    let call = |arguments: Value| {
        FakeAgent::start(move |_: &FakeRequest| {
            let call = json!({"index": 0, "id": "c", "function": {"name": "pay", "arguments": arguments}});
            ChatCompletion::new().chunk(chunk(json!({"tool_calls": [call]}), None)).finish("stop")
        })
    };
    for (way, tested) in run_in_every_adapter(&Value::Null, &json!("ok"), &suite(empty)) {
        assert_eq!(tested.case("a")["turns"][0]["tool_calls"][0]["args"], json!({}), "{way}");
        assert_eq!(tested.case("a")["status"], "passed", "{way}: {}", tested.output);
    }
    for arguments in [json!(""), json!("{}"), json!("null"), json!({}), Value::Null, json!(" ")] {
        let tested = chat_project(&call(arguments.clone())).suite("a", &suite(empty)).test(&[]);
        assert_eq!(tested.case("a")["turns"][0]["tool_calls"][0]["args"], json!({}), "{arguments}");
    }
    let bare = line_project(&[json!({"type": "tool_call", "name": "pay"}), json!({"type": "done"})]);
    let tested = bare.suite("a", &suite(empty)).test(&[]);
    assert_eq!(tested.case("a")["turns"][0]["tool_calls"][0]["args"], json!({}));
}

#[test]
fn preserves_digits_and_surrogate_pairs() {
    let (one, other) = ("123456789012345678901234567890", "123456789012345678901234567891");
    let with = |id: &str| {
        suite(&format!(
            "      tools: {{ require: [{{ name: pay, args_match: {{ id: '^{id}$', t: '^😀$' }} }}] }}\n      text: {{ must_match: '^a😀b$' }}\n"
        ))
    };
    let server = FakeAgent::start(move |_: &FakeRequest| {
        let mut reply = FakeReply::sse();
        for data in [
            r#"{"choices":[{"delta":{"content":"a\ud83d"}}]}"#.to_string(),
            r#"{"choices":[{"delta":{"content":"\ude00b"}}]}"#.to_string(),
            format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{{"index":0,"id":"c","function":{{"name":"pay","arguments":"{{\"id\":{one},\"t\":\"\ud83d"}}}}]}}}}]}}"#),
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\ude00\"}"}}]},"finish_reason":"stop"}]}"#.to_string(),
            // The last event lacks its blank line.
        ] {
            reply = reply.bytes(format!("data: {data}\n\n"));
        }
        reply.bytes("data: [DONE]")
    });
    chat_project(&server).suite("a", &with(one)).test(&[]).assert_all_passed();
    chat_project(&server).suite("a", &with(other)).test(&[]).assert_failure("a", "assertion", &["pay"]);

    let agent = format!(
        "while read -r message; do\n  cat <<'END'\n{{\"type\":\"text\",\"delta\":\"a\\ud83d\"}}\n{{\"type\":\"text\",\"delta\":\"\\ude00b\"}}\n{{\"type\":\"tool_call\",\"name\":\"pay\",\"arguments\":{{\"id\":{one},\"t\":\"\\ud83d\\ude00\"}}}}\n{{\"type\":\"done\"}}\nEND\ndone\n"
    );
    let project = |test: String| {
        Project::with_config("target: { type: command, command: [sh, agent.sh] }\n")
            .file("agent.sh", &agent)
            .suite("a", &test)
    };
    project(with(one)).test(&[]).assert_all_passed();
    project(with(other)).test(&[]).assert_failure("a", "assertion", &["pay"]);
}

/// Half of a surrogate pair is U+FFFD, also in keys. Only the text of a reply may continue it.
#[test]
fn half_surrogate_pairs_are_replaced_in_keys_and_values() {
    let expected = suite(
        r#"      tools: { require: [{ name: pay, args_match: { "n\uFFFD": "^x\uFFFD$", delta: "^y\uFFFD$" } }] }
      text: { must_match: '^a😀$' }
"#,
    );
    let (arguments, result) = (r#"{"n\ud83d":"x\ud83d","delta":"y\ud83d"}"#, r#"{"r\ud83d":["\ud83d"]}"#);
    let call = format!(r#"{{"type":"tool_call","name":"pay","arguments":{arguments},"result":{result}}}"#);
    let (half, other) = (r#"{"type":"text","delta":"a\ud83d"}"#, r#"{"type":"text","delta":"\ude00"}"#);
    let lines = format!("{half}\n{other}\n{call}\n{{\"type\":\"done\"}}");
    let command = Project::with_config("target: { type: command, command: [sh, agent.sh] }\n")
        .file("agent.sh", &format!("while read -r message; do\n  cat <<'END'\n{lines}\nEND\ndone\n"));

    let events = format!("{half}\n{other}\n{{\"call\":{call}}}\n{{\"type\":\"done\"}}\n");
    let server = FakeAgent::start(move |_: &FakeRequest| {
        FakeReply::status(200).header("content-type", "application/x-ndjson").bytes(events.clone())
    });
    let call = "{ path: $.call, name: $.name, arguments: $.arguments, result: $.result }";
    let http = Project::with_config(&format!(
        "target:\n  type: http\n  endpoint: '{server}'\n  body: '{{{{message}}}}'\n  stream: ndjson\n  \
         map: {{ reply: $.delta, tool_calls: {call}, done: {{ path: $.type, equals: done }} }}\n"
    ));
    for project in [command, http] {
        let tested = project.suite("a", &expected).test(&[]);
        tested.assert_all_passed();
        let call = &tested.case("a")["turns"][0]["tool_calls"][0];
        assert_eq!(call["args"], json!({"n\u{FFFD}": "x\u{FFFD}", "delta": "y\u{FFFD}"}));
        assert_eq!(call["result"], json!({"r\u{FFFD}": ["\u{FFFD}"]}));
    }
}

// Unanswered calls.

#[test]
fn announced_result_must_arrive() {
    let open = |tool: &str, done: Value| {
        line_project(&[
            json!({"type": "tool_call", "id": "c", "name": tool}),
            json!({"type": "text", "text": "ok"}),
            done,
        ])
    };
    let tested = open("pay", json!({"type": "done"})).suite("a", HELLO).test(&[]);
    tested.assert_failure("a", "protocol_error", &["no result came before `done`"]);
    // A tool that asks the user, or an agent that waits, leaves the call open.
    open("ask_user", json!({"type": "done"})).suite("a", HELLO).test(&[]).assert_all_passed();
    open("pay", json!({"type": "done", "awaiting_input": true}))
        .suite("a", HELLO)
        .test(&[])
        .assert_all_passed();
}

#[test]
fn pending_call_waits_or_fails() {
    let waiting = |tool: &'static str| {
        FakeAgent::start(move |_: &FakeRequest| {
            ChatCompletion::new().tool(0, "c", tool, &json!({})).finish("tool_calls")
        })
    };
    let tested = chat_project(&waiting("pick")).suite("a", HELLO).test(&[]);
    tested.assert_failure("a", "test_error", &["awaits its result, but the test does not offer this tool"]);
    let tested = chat_project(&waiting("ask_user")).suite("a", HELLO).test(&["-v"]);
    tested.assert_all_passed();
    let turn = &tested.case("a")["turns"][0];
    assert_eq!(turn["awaiting_reason"], "tool_requires_confirmation");
    assert_eq!(turn["tool_calls"][0]["unanswered"], true);
    assert!(tested.output.stdout.contains("no result"), "{}", tested.output);
}

#[test]
fn imported_call_without_result_never_passes() {
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "pay", "arguments": ""}});
    let transcript = json!({"id": "a", "messages": [
        {"role": "user", "content": "pay"},
        {"role": "assistant", "content": null, "tool_calls": [call("c"), call("d")]},
        {"role": "tool", "tool_call_id": "c", "content": "ok"},
        {"role": "assistant", "content": "Done."},
    ]});
    let project = Project::empty().file("held.json", &transcript.to_string());
    let imported = project.hotseat(&["import", "openai-transcripts", "held.json", "-o", "in"]);
    assert!(imported.stdout.contains("1 tool call without a result"), "{imported}");
    let project = project.file("a.test.yaml", &suite(NO_DECLINED_PAYMENT));
    let tested = project.test(&["-n", "replay:in/recordings", "a.test.yaml"]);
    tested.assert_failure("a", "assertion", &["no result of the agent: turn 1: pay"]);
    let calls = &tested.case("a")["turns"][0]["tool_calls"];
    assert_eq!((&calls[0]["unanswered"], &calls[1]["unanswered"]), (&Value::Null, &json!(true)));
}

const CLERK: &str = "\
name: Clerk
system: You are a clerk.
tools:
  - { name: pick, client: true, description: Asks which }
  - { name: ask_user, client: true, description: Asks the user }
connectors: { clerk: { type: scripted, script: clerk.script.yaml } }
connector: clerk
";
const CLERK_SCRIPT: &str = "\
use: always
rules:
  - when: { user: which }
    reply: { tool_calls: [pick] }
  - when: { user: ask }
    reply: { tool_calls: [ask_user] }
  - when: { tool_result: { tool: pick } }
    reply: 'You picked {{ result }}'
  - reply: Hello.
";

/// The case answers a tool that the agent file leaves to its client, embedded and served.
#[test]
fn case_answers_client_tool_calls() {
    let answered = "name: a\ntools: [{ name: pick, answers: [{ content: red }] }]\nturns:\n  - user: which\n    assert:\n      tools: { require: [{ name: pick, result_match: '^red$', count: { exact: 1 } }] }\n      text: { must_match: '^You picked red$' }\n";
    let unanswered = "name: a\nturns: [{ user: which }]\n";
    let awaiting =
        "name: a\nturns: [{ user: ask }, { user: blue, assert: { text: { must_match: '^Hello' } } }]\n";
    let project =
        Project::empty().file("clerk/agent.yaml", CLERK).file("clerk/clerk.script.yaml", CLERK_SCRIPT);
    let mut running = project.command(&["serve", "clerk", "--port", "0"]).timeout(TEST_TIMEOUT).spawn();
    let printed = running.wait_for_stdout("Ctrl-C stops it.");
    let address = printed.split_whitespace().nth(2).expect("an address").to_string();
    for target in [
        format!("target: {{ endpoint: '{address}/' }}\n"),
        format!("target: {{ type: openai, base_url: '{address}/v1', model: clerk }}\n"),
        format!("target: {{ type: command, command: ['{HOTSEAT}', serve, clerk, --stdio] }}\n"),
        "target: { type: embedded, agent: clerk }\n".to_string(),
    ] {
        project.workspace.file("hotseat.yaml", &target);
        let test = |text: &str| {
            project.workspace.file("a.test.yaml", text);
            project.test(&["a.test.yaml"])
        };
        let tested = test(answered);
        assert_eq!(tested.output.code, 0, "{target}{}", tested.output);
        test(unanswered).assert_failure(
            "a",
            "test_error",
            &["pick and awaits its result, but the test does not offer this tool"],
        );
        let tested = test(awaiting);
        assert_eq!(tested.output.code, 0, "{target}{}", tested.output);
        let turn = &tested.case("a")["turns"][0];
        assert_eq!(turn["awaiting_reason"], "tool_requires_confirmation", "{target}");
    }
    running.interrupt();
    running.wait();
}

// Events after the end.

#[test]
fn output_after_last_turn_never_passes() {
    let late = [
        json!({"type": "text", "text": "ok"}),
        json!({"type": "done"}),
        json!({"type": "tool_call", "name": "delete"}),
    ];
    let forbidden = "name: a\nturns: [{ user: hello, assert: { tools: { forbid: [delete] } } }]\n";
    let tested = line_project(&late).suite("a", forbidden).test(&[]);
    tested.assert_failure("a", "protocol_error", &["printed something after `done`"]);
    // One program prints it later, another when its input ends.
    for late in ["sleep 0.3; ", "cat > /dev/null; "] {
        let agent = format!(
            "read -r message\necho '{{\"type\":\"text\",\"text\":\"ok\"}}'\necho '{{\"type\":\"done\"}}'\n{late}echo '{{\"type\":\"tool_call\",\"name\":\"delete\"}}'\n"
        );
        let project = Project::with_config("target: { type: command, command: [sh, agent.sh] }\n")
            .file("agent.sh", &agent);
        project.suite("a", forbidden).test(&[]).assert_failure(
            "a",
            "protocol_error",
            &["printed something after `done`"],
        );
    }
}

#[test]
fn rejects_line_with_two_types() {
    let agent = "read -r message\necho '{\"type\":\"note\",\"type\":\"text\",\"text\":\"ok\"}'\necho '{\"type\":\"done\"}'\n";
    let project =
        Project::with_config("target: { type: command, command: [sh, agent.sh] }\n").file("agent.sh", agent);
    project.suite("a", HELLO).test(&[]).assert_failure(
        "a",
        "protocol_error",
        &[r#"has a duplicate key \"type\""#],
    );
}

#[test]
fn comments_after_end_do_not_hold_turn_open() {
    let server = FakeAgent::start(|_: &FakeRequest| {
        let done = ChatCompletion::new().text("Hi.").finish("stop").streamed();
        (0..200).fold(done, |reply, _| reply.bytes(": ping\n\n").pause(Duration::from_millis(50)))
    });
    let tested = chat_project(&server).suite("a", HELLO).test(&[]);
    tested.assert_all_passed();
    let took = tested.case("a")["turns"][0]["duration_ms"].as_f64().expect("a duration");
    assert!(took < 5000.0, "{took} ms");
}

#[test]
fn chunk_after_end_is_recorded() {
    let server = FakeAgent::start(|_: &FakeRequest| {
        let done = ChatCompletion::new().text("Hi.").finish("stop").streamed();
        let call = json!({"index": 0, "id": "c", "function": {"name": "delete", "arguments": "{}"}});
        done.event(chunk(json!({"tool_calls": [call]}), None))
    });
    let forbidden = "name: a\nturns: [{ user: hello, assert: { tools: { forbid: [delete] } } }]\n";
    chat_project(&server).suite("a", forbidden).test(&[]).assert_failure("a", "assertion", &["delete"]);
}

#[test]
fn console_shows_cancelled_run() {
    let agent = FakeAgent::with_run(|run, _| {
        let cancelled = json!({"type": "RUN_FINISHED", "outcome": {"type": "cancelled"}});
        run.text("Hi.").raw_event(cancelled)
    });
    let forbidden = "name: a\nturns: [{ user: hello, assert: { text: { must_match: nothing } } }]\n";
    let tested = Project::with_agent(&agent).suite("a", forbidden).test(&[]);
    assert!(tested.output.stdout.contains("cancelled"), "{}", tested.output);
    assert_eq!(tested.case("a")["turns"][0]["run_outcome"], "cancelled");
    let passed = Project::with_agent(&agent).suite("a", HELLO).test(&[]);
    assert!(passed.output.stdout.contains("cancelled"), "{}", passed.output);
}

/// Empty or repeated call ids work in recordings.
#[test]
fn replays_recordings_with_any_call_ids() {
    let agent = FakeAgent::with_run(|run, _| {
        run.tool("", "pay", &json!({}), Some(json!("ok")))
            .tool("", "pay", &json!({"n": 2}), Some(json!("ok")))
            .text("Hi.")
            .finished()
    });
    let twice = suite("      tools: { require: [{ name: pay, count: { exact: 2 } }] }\n");
    let project = Project::with_agent(&agent).suite("a", &twice);
    project.test(&["--record", "made"]).assert_all_passed();
    project.test(&["-n", "replay:made"]).assert_all_passed();
}

// What nobody knows decides nothing.

/// A call of a program, without an id.
fn call(tool: &str, arguments: Value) -> Value {
    json!({"type": "tool_call", "name": tool, "arguments": arguments})
}

/// A call of a program and its result.
fn answered(id: &str, tool: &str, arguments: Value, result: Value) -> [Value; 2] {
    [
        json!({"type": "tool_call", "id": id, "name": tool, "arguments": arguments}),
        json!({"type": "tool_result", "id": id, "result": result}),
    ]
}

/// Asserts whether each assertion passes, and whether its negation does, if an agent makes these calls.
#[track_caller]
fn assert_outcomes(calls: &[Value], rows: &[(Value, bool, bool)]) {
    let end = [json!({"type": "text", "text": "ok"}), json!({"type": "done"})];
    let lines: Vec<Value> = calls.iter().cloned().chain(end).collect();
    let cases = rows.iter().enumerate().flat_map(|(number, (assertion, ..))| {
        [false, true].map(|negate| {
            let mut assertion = assertion.clone();
            assertion["negate"] = negate.into();
            json!({"id": format!("{number}-{negate}"), "input": "go", "assert": [assertion]}).to_string()
        })
    });
    let cases: Vec<String> = cases.collect();
    let tested = line_project(&lines).file("a.test.jsonl", &cases.join("\n")).test(&[]);
    for (number, (assertion, passes, negation_passes)) in rows.iter().enumerate() {
        let passed = |negate: bool| tested.case(&format!("{number}-{negate}"))["status"] == "passed";
        assert_eq!(
            (passed(false), passed(true)),
            (*passes, *negation_passes),
            "{assertion}: {}",
            tested.output
        );
    }
}

#[test]
fn a_call_without_a_result_may_have_taken_effect() {
    let once = json!({"type": "idempotent", "tool": "pay", "key": "order"});
    let pay = |order: Value| call("pay", json!({"order": order}));
    let paid = |id: &str, order: u32, result: Value| answered(id, "pay", json!({"order": order}), result);
    let failed = json!({"type": "tool_result", "id": "2", "error": "declined"});
    let unknown =
        [vec![pay(json!(1)), pay(json!(1))], [&paid("1", 1, json!("ok"))[..], &[pay(json!(1))]].concat()];
    for calls in &unknown {
        assert_outcomes(calls, &[(once.clone(), false, false)]);
    }
    // Without the argument nobody knows either.
    assert_outcomes(&[pay(json!(1)), call("pay", json!("oops"))], &[(once.clone(), false, false)]);
    let twice = [paid("1", 1, json!("ok")), paid("2", 1, json!("ok"))].concat();
    assert_outcomes(&[twice, vec![pay(json!(1))]].concat(), &[(once.clone(), false, true)]);
    for calls in [
        vec![pay(json!(1)), pay(json!(2))],
        [&paid("1", 1, json!("ok"))[..], &[pay(json!(2))]].concat(),
        vec![pay(json!(1)), paid("2", 1, json!(0))[0].clone(), failed],
    ] {
        assert_outcomes(&calls, &[(once.clone(), true, false)]);
    }
}

#[test]
fn patterns_match_objects_and_lists_as_compact_json() {
    let result = |result: Value| json!({"type": "tool_result", "tool": "pay", "result": result});
    let calls =
        answered("1", "pay", json!({}), json!({"error": "card declined", "codes": [1, 2], "at": null}));
    assert_outcomes(
        &calls,
        &[
            (result(json!("regex:declined")), true, false),
            (result(json!("regex:^\\{\"error\":")), true, false),
            (result(json!({"codes": "regex:^\\[1,2\\]$"})), true, false),
            (result(json!({"at": "regex:^null$"})), true, false),
            (result(json!("regex:accepted")), false, true),
        ],
    );
}

#[test]
fn incomparable_and_unknown_arguments_are_counted_together() {
    let called = |count: Value| json!({"type": "tool_called", "name": "a", "where": {"x": {"at_most": 5}}, "count": count});
    assert_outcomes(
        &[call("a", json!({"x": null})), call("a", json!("oops"))],
        &[
            (called(json!({"max": 1})), false, false),
            (called(json!({"exact": 2})), false, false),
            (called(json!({"max": 2})), true, false),
            (called(json!({"min": 3})), false, true),
        ],
    );
}

/// The one-line errors of failed checks, which reports contain.
#[test]
fn one_line_errors_name_the_reason() {
    let declined = json!({"type": "tool_result", "id": "1", "error": "card declined"});
    let nested = json!({"cart": {"city": "Rome", "items": [{"sku": "A"}]}, "s": ""});
    let lines = [
        json!({"type": "tool_call", "id": "1", "name": "pay", "arguments": {"amount": 5}}),
        declined,
        call("book", nested),
        call("list", json!(["Rome"])),
        json!({"type": "text", "text": "ok"}),
        json!({"type": "done"}),
    ];
    for (check, words) in [
        (
            r#"{ type: tool_result, tool: pay, result: "card declined" }"#,
            r#"expected a call of pay to return "card declined", got pay in turn 1, where the result is "card declined" (the call failed)"#,
        ),
        (
            "{ type: tool_called, name: list, arguments: { to: Rome }, count: { max: 0 } }",
            r#"got arguments that are unknown or no JSON object: turn 1: list(["Rome"])"#,
        ),
        (
            "{ type: tool_called, name: book, arguments: { cart.city: Rome } }",
            r#"cart.city is missing (`arguments` compares members by name, not by path: write `cart: { city: "Rome" }`, or use `where`)"#,
        ),
        (
            "{ type: tool_called, name: book, arguments: { cart.items.0.sku: A } }",
            "cart.items.0.sku is missing (`arguments` compares members by name, not by path: use `where`)",
        ),
        (
            "{ type: tool_called, name: book, arguments: { cart.town: Rome } }",
            "got book in turn 1, where cart.town is missing",
        ),
        (
            "{ type: tool_called, name: book, where: { s: { more_than: 3 } } }",
            r#"the argument `s` is the text "", which cannot be compared with 3"#,
        ),
        (
            "{ type: tool_called, name: book, where: { cart: { more_than: 3 } } }",
            "the argument `cart` is an object, which cannot be compared with 3",
        ),
        ("budget: { max_tool_calls: 1 }", "tools to be called at most once"),
    ] {
        let tested = line_project(&lines).suite("a", &suite(&format!("      {check}\n"))).test(&[]);
        let message = tested.case("a")["error"].as_str().unwrap_or_default().to_string();
        assert!(message.contains(words), "{words:?} is not in {message:?}");
        // The place of a path is no difference that a help explains.
        assert!(words.contains("compares") || !message.contains("compares"), "{message}");
    }
}

#[test]
fn arguments_that_are_no_object_match_no_pattern() {
    let agent = || {
        line_project(&[call("a", json!([1])), json!({"type": "text", "text": "ok"}), json!({"type": "done"})])
    };
    for (asserted, kind) in [
        ("require: [{ name: a, args_match: { '0': 1 } }]", "assertion"),
        ("forbid_calls: [{ name: a, args_match: { '0': 2 } }]", "assertion"),
        ("require: [{ name: a, args_not_match: { '0': 2 } }]", "assertion"),
    ] {
        let tested = agent().suite("a", &suite(&format!("      tools: {{ {asserted} }}\n"))).test(&[]);
        tested.assert_failure("a", kind, &["are unknown or no JSON object"]);
    }
    agent().suite("a", &suite("      tools: { require: [a] }\n")).test(&[]).assert_all_passed();
}

/// A prohibition at such a path would always hold.
#[test]
fn json_paths_are_no_paths_of_arguments() {
    let agent = || {
        let arguments = json!({"items": [1, 2], "cart": {"total": 900}});
        line_project(&[
            call("pay", arguments),
            json!({"type": "text", "text": "ok"}),
            json!({"type": "done"}),
        ])
    };
    for (path, help) in [
        ("$.cart.total", "write `cart.total`"),
        ("items[1]", "write `items.1`"),
        ("items.*", "a path names one value"),
        ("cart ", "write `cart`"),
    ] {
        for asserted in [
            format!("{{ tools: {{ forbid_calls: [{{ name: pay, args_match: {{ '{path}': 1 }} }}] }} }}"),
            format!("{{ type: idempotent, tool: pay, key: '{path}' }}"),
        ] {
            let suite = format!("name: a\nturns: [{{ user: hello, assert: {asserted} }}]\n");
            let output = agent().suite("a", &suite).hotseat(&["test"]);
            assert_eq!(output.code, 2, "{output}");
            let message = format!("no argument has the path `{path}`");
            assert!(output.stderr.contains(&message) && output.stderr.contains(help), "{output}");
        }
    }
    let nested = "{ type: tool_called, name: pay, where: { cart.total: { more_than: 500 } }, negate: true }";
    let suite = format!("name: a\nturns: [{{ user: hello, assert: {nested} }}]\n");
    agent().suite("a", &suite).test(&[]).assert_failure("a", "assertion", &["pay"]);
}

#[test]
fn unknown_arguments_do_not_matter_if_other_calls_decide() {
    let sequence =
        |order: &str, calls: Value| json!({"type": "tool_sequence", "order": order, "calls": calls});
    let x = json!({"name": "a", "arguments": {"x": 1}});
    assert_outcomes(
        &[call("a", json!("oops"))],
        &[
            (sequence("in_order", json!(["zz", x])), false, true),
            (sequence("strict", json!([x, "zz"])), false, true),
            (sequence("superset", json!([x, x])), false, true),
            (sequence("strict", json!([x])), false, false),
            (sequence("subset", json!([x, "zz"])), false, false),
        ],
    );
}

/// A server that runs its tools itself shows several messages of the agent in one answer.
#[test]
fn a_result_within_a_completion_separates_messages() {
    let server = FakeAgent::start(|_: &FakeRequest| {
        ChatCompletion::new()
            .text("Let me look")
            .tool(0, "c", "look", &json!({}))
            .chunk(chunk(json!({"role": "tool", "tool_call_id": "c", "content": "found"}), None))
            .text("ok")
            .finish("stop")
    });
    let tested = chat_project(&server).suite("a", &suite("      - { type: equals, value: ok }\n")).test(&[]);
    tested.assert_all_passed();
    assert_eq!(tested.case("a")["turns"][0]["messages"], json!(["Let me look", "ok"]));
}

/// Expected calls are assigned to actual ones in any order: equal ones cost as much as one, and different ones little more.
#[test]
fn thousands_of_interchangeable_calls_are_compared_quickly() {
    const COUNT: usize = 6_000;
    let made = |place: usize, shift: usize| json!({"n": (place + shift) % COUNT});
    let lines =
        (0..COUNT).map(|place| json!({"type": "tool_call", "name": "pay", "arguments": made(place, 0)}));
    let lines: Vec<Value> = lines.chain([json!({"type": "done"})]).collect();
    let with_arguments: Vec<Value> =
        (0..COUNT).map(|place| json!({"name": "pay", "arguments": made(place, 1)})).collect();
    let check = |order: &str, calls: Value, arguments: &str| json!({"type": "tool_sequence", "order": order, "calls": calls, "arguments": arguments});
    let names = |count: usize| json!(vec!["pay"; count]);
    let rows = [
        (check("unordered", names(COUNT), "exact"), ""),
        (check("unordered", json!(with_arguments), "exact"), ""),
        (check("superset", names(COUNT + 1), "exact"), "1 of 6001 expected calls missing"),
        (
            check("subset", json!(with_arguments), "subset"),
            "6000 calls that differ from 6000 expected calls in too many ways to be compared in any order; use \
             `order: strict` or `in_order`, or compare fewer calls, with `only` or in a single turn",
        ),
    ];
    let cases = rows.iter().enumerate().map(|(number, (check, _))| {
        json!({"id": number.to_string(), "input": "pay", "assert": [check]}).to_string()
    });
    let cases: Vec<String> = cases.collect();
    let tested = line_project(&lines).file("a.test.jsonl", &cases.join("\n")).test(&[]);
    for (number, (_, words)) in rows.iter().enumerate() {
        let case = tested.case(&number.to_string());
        let expected = if words.is_empty() { "passed" } else { "failed" };
        assert_eq!(case["status"], expected, "{case:#}");
        assert!(case.to_string().contains(words), "{words}: {}", case["error"]);
    }
}

/// A result goes to the first call with its id that has none, without a search among all calls of that id.
#[test]
fn thousands_of_calls_may_share_an_id() {
    const COUNT: usize = 40_000;
    let call = |n: usize| json!({"type": "tool_call", "id": "c", "name": "pay", "arguments": {"n": n}});
    let calls = (0..COUNT).map(call);
    let results = (0..COUNT).map(|n| json!({"type": "tool_result", "id": "c", "result": n}));
    let lines = calls.chain(results).chain([json!({"type": "done"})]);
    let lines: String = lines.map(|line| format!("{line}\n")).collect();
    let last = suite(
        "      tools: { require: [{ name: pay, args_match: { n: ^39999$ }, result_match: ^39999$ }] }\n",
    );
    Project::with_config("target: { type: command, command: [sh, agent.sh] }\n")
        .file("agent.sh", "while read -r message; do cat lines.jsonl; done\n")
        .file("lines.jsonl", &lines)
        .suite("a", &last)
        .test(&[])
        .assert_all_passed();
}

/// A reply that is cut before the arguments of its last call does not tell that they are empty.
#[test]
fn arguments_that_were_cut_off_decide_nothing() {
    let checks = "      - { type: tool_called, name: pay, arguments: { amount: 9000 }, negate: true }
      - { type: tool_called, name: pay, arguments: {} }
      - tools: { forbid_calls: [{ name: pay, args_match: { amount: '9000' } }] }
      - { type: tool_called, name: pay }
";
    let start = json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "pay"});
    let end = json!({"type": "TOOL_CALL_END", "toolCallId": "c"});
    let ag_ui = |events: &[&Value]| {
        let events: Vec<Value> = events.iter().map(|event| (*event).clone()).collect();
        let server = FakeAgent::start(move |request: &FakeRequest| {
            let run = FakeRun::for_request(request).started().text("Wait.");
            events.iter().cloned().fold(run, FakeRun::raw_event).finished()
        });
        Project::with_agent(&server).suite("a", &suite(checks)).test(&["--record", "made"])
    };
    let completion = |arguments: Value, rest: &[Value], reason: &'static str| {
        let call = json!({"index": 0, "id": "c", "function": {"name": "pay", "arguments": arguments}});
        let reply = ChatCompletion::new().chunk(chunk(json!({"tool_calls": [call]}), None));
        let reply = rest.iter().cloned().fold(reply, ChatCompletion::chunk).finish(reason);
        let server = FakeAgent::start(move |_: &FakeRequest| reply.clone());
        chat_project(&server).suite("a", &suite(checks)).test(&[])
    };
    let over_http = |call: Value, reason: &str| {
        let answer = json!({"calls": [call], "reason": reason});
        let server = FakeAgent::start(move |_: &FakeRequest| FakeReply::json(200, &answer));
        let map = "map: { reply: $.reply, finish_reason: $.reason, tool_calls: { path: $.calls, name: $.name, arguments: $.arguments } }";
        let config = format!(
            "target: {{ type: http, endpoint: '{}', body: {{ text: '{{{{message}}}}' }}, {map} }}\n",
            server.url()
        );
        Project::with_config(&config).suite("a", &suite(checks)).test(&[])
    };
    let lines = |call: Value, reason: &str| {
        let project = line_project(&[call, json!({"type": "done", "finish_reason": reason})]);
        project.suite("a", &suite(checks)).test(&[])
    };
    let line = json!({"type": "tool_call", "name": "pay", "arguments": ""});
    let result = chunk(json!({"role": "tool", "tool_call_id": "c", "content": "paid"}), None);
    for (way, tested) in [
        ("an open call", ag_ui(&[&start])),
        (
            "an open call before another one",
            ag_ui(&[
                &start,
                &json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "look"}),
                &end,
            ]),
        ),
        ("a token limit", completion(json!(""), &[], "length")),
        ("a content filter", completion(json!(""), &[], "content_filter")),
        ("an http agent", over_http(json!({"name": "pay", "arguments": ""}), "length")),
        ("an http agent without arguments", over_http(json!({"name": "pay"}), "max_tokens")),
        ("a program", lines(line.clone(), "length")),
    ] {
        let turn = tested.case("a")["turns"][0].clone();
        let passed: Vec<&Value> =
            turn["assertions"].as_array().unwrap().iter().map(|check| &check["passed"]).collect();
        assert_eq!(passed, [false, false, false, true], "{way}: {turn:#}");
        let notes = turn["notes"].to_string();
        assert!(notes.contains("are unknown: the reply was cut before the arguments"), "{way}: {turn:#}");
    }
    for (way, tested) in [
        ("a closed call", ag_ui(&[&start, &end])),
        ("a complete reply", completion(json!(""), &[], "stop")),
        ("complete arguments", completion(json!("{}"), &[], "length")),
        ("a call with a result", completion(json!(""), &[result], "length")),
        ("a complete answer", over_http(json!({"name": "pay", "arguments": ""}), "stop")),
        ("a program", lines(line, "stop")),
    ] {
        assert_eq!(tested.case("a")["status"], "passed", "{way}: {}", tested.output);
    }
}

/// What arrives together is in the order in which the agent sent it.
#[test]
fn a_text_before_a_call_stands_before_it() {
    let call =
        json!({"index": 0, "id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}});
    let said = [
        json!({"content": "I look it up."}),
        json!({"tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": "c", "content": "found"}),
        json!({"role": "assistant", "content": "Here it is."}),
    ];
    let events = |deltas: &[Value]| -> String {
        let chunks = deltas.iter().map(|delta| format!("data: {}\n\n", chunk(delta.clone(), None)));
        let end = format!("data: {}\n\ndata: [DONE]\n\n", chunk(json!({}), Some("stop")));
        chunks.chain([end]).collect()
    };
    let whole = json!({"role": "assistant", "content": "I look it up.", "tool_calls": [call]});
    let texts = "I look it up.";
    for (way, reply, first, second) in [
        ("a stream", FakeReply::sse().bytes(events(&said)), texts, "look("),
        ("a call first", FakeReply::sse().bytes(events(&[said[1].clone(), said[0].clone()])), "look(", texts),
        ("a whole reply", complete_reply(whole, "stop"), texts, "look("),
    ] {
        let server = FakeAgent::start(move |_: &FakeRequest| reply.clone());
        let project = chat_project(&server).suite("a", HELLO);
        let tested = project.test(&["-v", "--record", "made"]);
        tested.assert_all_passed();
        let shown = tested.output.stdout;
        let place = |words: &str| shown.find(words).unwrap_or_else(|| panic!("{way}: {words} in {shown}"));
        assert!(place(first) < place(second), "{way}: {shown}");
        assert!(way != "a stream" || place("look(") < place("Here it is."), "{shown}");
        let replayed = project.test(&["-v", "-n", "replay:made"]);
        replayed.assert_all_passed();
        let again = replayed.output.stdout;
        assert!(again.find(first) < again.find(second), "{way}: {again}");
    }
}
