//! Every call and every result counts the same, whatever an agent speaks, and what is missing is told.
#![cfg(unix)]

mod common;

use std::time::Duration;

use common::{LONG, Project, Tested};
use hotseat_testkit::agui::Run;
use hotseat_testkit::completions::{Completion, chunk};
use hotseat_testkit::{FakeAgent, Reply, Request};
use serde_json::{Value, json};

/// No pass: it failed in this way, with these words.
#[track_caller]
fn not_a_pass(tested: &Tested, kind: &str, words: &str) {
    let failure = tested.failure("a");
    assert_eq!(failure["kind"], kind, "{failure:#}");
    let said = failure.to_string();
    assert!(said.contains(words), "{words:?} is not in {failure:#}");
    assert_ne!(tested.output.code, 0, "{}", tested.output);
}

/// A project whose agent is a script that answers each message with these lines.
fn lines(lines: &[Value]) -> Project {
    let printed: String = lines.iter().map(|line| format!("  cat <<'END'\n{line}\nEND\n")).collect();
    Project::with("target: { type: command, command: [sh, agent.sh] }\n")
        .file("agent.sh", &format!("while read -r message; do\n{printed}done\n"))
}

/// A project whose agent speaks chat completions.
fn completions(server: &FakeAgent) -> Project {
    Project::with(&format!("target: {{ type: openai, base_url: '{}v1', model: small }}\n", server.url()))
}

/// A suite of one turn.
fn suite(asserted: &str) -> String {
    format!("name: a\nturns:\n  - user: pay\n    assert:\n{asserted}")
}

const HELLO: &str = "name: a\nturns: [{ user: hello }]\n";
const NOT_DECLINED: &str = "      tools: { forbid_calls: [{ name: pay, result_match: declined }] }\n";

/// A call of `pay` with this result, told in every way in which an agent can be reached.
fn told_everywhere(arguments: &Value, result: &Value, test: &str) -> Vec<(&'static str, Tested)> {
    let mut told = Vec::new();
    let (own, written) = (result.clone(), arguments.clone());
    let streamed = FakeAgent::start(move |request: &Request| {
        let run = Run::of(request).started().tool_call("c", "pay", &written);
        let result = json!({"type": "TOOL_CALL_RESULT", "messageId": "t", "toolCallId": "c", "content": own});
        run.raw_event(result).text("Done.").finished()
    });
    told.push(("AG-UI", Project::of(&streamed).suite("a", test).test(&["--record", "made"])));

    let (own, written) = (result.clone(), arguments.clone());
    let snapshot = FakeAgent::start(move |request: &Request| {
        let mut all = request.input().messages().to_vec();
        let call = json!({"id": "c", "type": "function", "function": {"name": "pay", "arguments": written.to_string()}});
        all.push(json!({"id": "a", "role": "assistant", "toolCalls": [call]}));
        all.push(json!({"id": "t", "role": "tool", "toolCallId": "c", "content": own}));
        Run::of(request).started().messages_snapshot(all).text("Done.").finished()
    });
    let project = Project::of(&snapshot).suite("a", test);
    told.push(("snapshots", project.test(&["--record", "made"])));
    told.push(("a recording", project.test(&["-n", "replay:made"])));

    let (own, written) = (result.clone(), arguments.clone());
    let server = FakeAgent::start(move |_: &Request| {
        Completion::new()
            .tool(0, "c", "pay", &written)
            .chunk(chunk(json!({"role": "tool", "tool_call_id": "c", "content": own}), None))
            .text("Done.")
            .finish("stop")
    });
    told.push(("chat completions", completions(&server).suite("a", test).test(&[])));

    let project = lines(&[
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
    let imported = project.hotseat(&["import", "openai-transcripts", "held.json", "-o", "in"]);
    assert_eq!(imported.code, 0, "{imported}");
    let project = project.file("a.test.yaml", test);
    told.push(("a transcript", project.test(&["-n", "replay:in/recordings", "a.test.yaml"])));
    told
}

#[test]
fn a_result_counts_the_same_in_every_shape_over_every_protocol() {
    for result in [
        json!("declined"),
        json!({"status": "declined"}),
        json!([{"type": "payment", "status": "declined"}]),
        json!([{"type": "text", "text": "declined"}]),
        json!([{"type": "text", "text": "ok"}, {"type": "payment", "status": "declined"}]),
    ] {
        for (way, tested) in told_everywhere(&json!({}), &result, &suite(NOT_DECLINED)) {
            let failure = tested.failure("a");
            assert_eq!(failure["kind"], "assertion", "{way} {result}: {failure:#}");
            assert!(failure.to_string().contains("declined"), "{way} {result}: {failure:#}");
        }
    }
    let once = "      tools: { require: [{ name: pay, result_match: '^true$', count: { exact: 1 } }] }\n";
    for (way, tested) in told_everywhere(&json!({"n": 1}), &json!("true"), &suite(once)) {
        assert_eq!(tested.case("a")["status"], "passed", "{way}: {}", tested.output);
        assert_eq!(tested.case("a")["turns"][0]["tool_calls"][0]["args"], json!({"n": 1}), "{way}");
    }
}

#[test]
fn no_arguments_are_an_empty_object_over_every_protocol() {
    let empty = "      - { type: tool_called, name: pay, arguments: {} }\n";
    for (way, tested) in told_everywhere(&json!({}), &json!("ok"), &suite(empty)) {
        assert_eq!(tested.case("a")["turns"][0]["tool_calls"][0]["args"], json!({}), "{way}");
    }
    let call = |arguments: Value| {
        FakeAgent::start(move |_: &Request| {
            let call = json!({"index": 0, "id": "c", "function": {"name": "pay", "arguments": arguments}});
            Completion::new().chunk(chunk(json!({"tool_calls": [call]}), None)).finish("stop")
        })
    };
    for arguments in [json!(""), json!("{}"), json!({}), Value::Null, json!(" ")] {
        let tested = completions(&call(arguments.clone())).suite("a", &suite(empty)).test(&[]);
        assert_eq!(tested.case("a")["turns"][0]["tool_calls"][0]["args"], json!({}), "{arguments}");
    }
    let bare = lines(&[json!({"type": "tool_call", "name": "pay"}), json!({"type": "done"})]);
    let tested = bare.suite("a", &suite(empty)).test(&[]);
    assert_eq!(tested.case("a")["turns"][0]["tool_calls"][0]["args"], json!({}));
}

#[test]
fn digits_and_halves_of_characters_are_kept_over_chat_completions_and_json_lines() {
    let (one, other) = ("123456789012345678901234567890", "123456789012345678901234567891");
    let with = |id: &str| {
        suite(&format!(
            "      tools: {{ require: [{{ name: pay, args_match: {{ id: '^{id}$', t: '^😀$' }} }}] }}\n      text: {{ must_match: '^a😀b$' }}\n"
        ))
    };
    let server = FakeAgent::start(move |_: &Request| {
        let mut reply = Reply::sse();
        for data in [
            r#"{"choices":[{"delta":{"content":"a\ud83d"}}]}"#.to_string(),
            r#"{"choices":[{"delta":{"content":"\ude00b"}}]}"#.to_string(),
            format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{{"index":0,"id":"c","function":{{"name":"pay","arguments":"{{\"id\":{one},\"t\":\"\ud83d"}}}}]}}}}]}}"#),
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\ude00\"}"}}]},"finish_reason":"stop"}]}"#.to_string(),
            // The last event lacks its empty line.
        ] {
            reply = reply.bytes(format!("data: {data}\n\n"));
        }
        reply.bytes("data: [DONE]")
    });
    completions(&server).suite("a", &with(one)).test(&[]).all_passed();
    not_a_pass(&completions(&server).suite("a", &with(other)).test(&[]), "assertion", "pay");

    let agent = format!(
        "while read -r message; do\n  cat <<'END'\n{{\"type\":\"text\",\"delta\":\"a\\ud83d\"}}\n{{\"type\":\"text\",\"delta\":\"\\ude00b\"}}\n{{\"type\":\"tool_call\",\"name\":\"pay\",\"arguments\":{{\"id\":{one},\"t\":\"\\ud83d\\ude00\"}}}}\n{{\"type\":\"done\"}}\nEND\ndone\n"
    );
    let project = |test: String| {
        Project::with("target: { type: command, command: [sh, agent.sh] }\n")
            .file("agent.sh", &agent)
            .suite("a", &test)
    };
    project(with(one)).test(&[]).all_passed();
    not_a_pass(&project(with(other)).test(&[]), "assertion", "pay");
}

// Calls that nobody answered.

#[test]
fn a_program_that_announces_a_result_gives_it() {
    let open = |tool: &str, done: Value| {
        lines(&[
            json!({"type": "tool_call", "id": "c", "name": tool}),
            json!({"type": "text", "text": "ok"}),
            done,
        ])
    };
    let tested = open("pay", json!({"type": "done"})).suite("a", HELLO).test(&[]);
    not_a_pass(&tested, "protocol_error", "no result came before `done`");
    // A tool that asks the user, or an agent that says that it waits, leaves the call open.
    open("ask_user", json!({"type": "done"})).suite("a", HELLO).test(&[]).all_passed();
    open("pay", json!({"type": "done", "awaiting_input": true})).suite("a", HELLO).test(&[]).all_passed();
}

#[test]
fn a_call_that_is_waited_for_is_awaiting_or_no_pass() {
    let waiting = |tool: &'static str| {
        FakeAgent::start(move |_: &Request| {
            Completion::new().tool(0, "c", tool, &json!({})).finish("tool_calls")
        })
    };
    let tested = completions(&waiting("pick")).suite("a", HELLO).test(&[]);
    not_a_pass(&tested, "test_error", "waits for its result; the test does not offer such a tool");
    let tested = completions(&waiting("ask_user")).suite("a", HELLO).test(&["-v"]);
    tested.all_passed();
    let turn = &tested.case("a")["turns"][0];
    assert_eq!(turn["awaiting_reason"], "tool_requires_confirmation");
    assert_eq!(turn["tool_calls"][0]["unanswered"], true);
    assert!(tested.output.stdout.contains("no result"), "{}", tested.output);
}

#[test]
fn import_counts_calls_without_a_result_and_nothing_passes_by_them() {
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
    let project = project.file("a.test.yaml", &suite(NOT_DECLINED));
    let tested = project.test(&["-n", "replay:in/recordings", "a.test.yaml"]);
    not_a_pass(&tested, "assertion", "the agent gave no result");
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

/// A tool that an agent's own file leaves to its client is answered by the case, in process and served.
#[test]
fn a_tool_that_an_agent_leaves_to_its_client_is_answered_by_the_case() {
    let answered = "name: a\ntools: [{ name: pick, answers: [{ content: red }] }]\nturns:\n  - user: which\n    assert:\n      tools: { require: [{ name: pick, result_match: '^red$', count: { exact: 1 } }] }\n      text: { must_match: '^You picked red$' }\n";
    let unanswered = "name: a\nturns: [{ user: which }]\n";
    let awaiting =
        "name: a\nturns: [{ user: ask }, { user: blue, assert: { text: { must_match: '^Hello' } } }]\n";
    let project =
        Project::empty().file("clerk/agent.yaml", CLERK).file("clerk/clerk.script.yaml", CLERK_SCRIPT);
    let mut running = project.command(&["serve", "clerk", "--port", "0"]).timeout(LONG).spawn();
    let printed = running.wait_for_stdout("Ctrl-C stops it.");
    let address = printed.split_whitespace().nth(2).expect("an address").to_string();
    for target in [
        format!("target: {{ endpoint: '{address}/' }}\n"),
        format!("target: {{ type: openai, base_url: '{address}/v1', model: clerk }}\n"),
        "target: { type: embedded, agent: clerk }\n".to_string(),
    ] {
        project.workspace.file("hotseat.yaml", &target);
        let test = |text: &str| {
            project.workspace.file("a.test.yaml", text);
            project.test(&["a.test.yaml"])
        };
        let tested = test(answered);
        assert_eq!(tested.output.code, 0, "{target}{}", tested.output);
        not_a_pass(
            &test(unanswered),
            "test_error",
            "pick and waits for its result; the test does not offer such a tool",
        );
        let tested = test(awaiting);
        assert_eq!(tested.output.code, 0, "{target}{}", tested.output);
        let turn = &tested.case("a")["turns"][0];
        assert_eq!(turn["awaiting_reason"], "tool_requires_confirmation", "{target}");
    }
    running.interrupt();
    running.wait();
}

// What comes after the end.

#[test]
fn what_a_program_prints_after_the_last_turn_is_no_pass() {
    let late = [
        json!({"type": "text", "text": "ok"}),
        json!({"type": "done"}),
        json!({"type": "tool_call", "name": "delete"}),
    ];
    let forbidden = "name: a\nturns: [{ user: hello, assert: { tools: { forbid: [delete] } } }]\n";
    let tested = lines(&late).suite("a", forbidden).test(&[]);
    not_a_pass(&tested, "protocol_error", "printed something after `done`");
    // One that prints it a while later, and one that does so when its input ends.
    for late in ["sleep 0.3; ", "cat > /dev/null; "] {
        let agent = format!(
            "read -r message\necho '{{\"type\":\"text\",\"text\":\"ok\"}}'\necho '{{\"type\":\"done\"}}'\n{late}echo '{{\"type\":\"tool_call\",\"name\":\"delete\"}}'\n"
        );
        let project =
            Project::with("target: { type: command, command: [sh, agent.sh] }\n").file("agent.sh", &agent);
        not_a_pass(
            &project.suite("a", forbidden).test(&[]),
            "protocol_error",
            "printed something after `done`",
        );
    }
}

#[test]
fn a_line_with_two_types_is_refused() {
    let agent = "read -r message\necho '{\"type\":\"note\",\"type\":\"text\",\"text\":\"ok\"}'\necho '{\"type\":\"done\"}'\n";
    let project =
        Project::with("target: { type: command, command: [sh, agent.sh] }\n").file("agent.sh", agent);
    not_a_pass(&project.suite("a", HELLO).test(&[]), "protocol_error", "has `type` twice");
}

#[test]
fn comments_after_the_end_do_not_keep_a_chat_turn_open() {
    let server = FakeAgent::start(|_: &Request| {
        let done = Completion::new().text("Hi.").finish("stop").streamed();
        (0..200).fold(done, |reply, _| reply.bytes(": ping\n\n").pause(Duration::from_millis(50)))
    });
    let tested = completions(&server).suite("a", HELLO).test(&[]);
    tested.all_passed();
    let took = tested.case("a")["turns"][0]["duration_ms"].as_f64().expect("a duration");
    assert!(took < 5000.0, "{took} ms");
}

#[test]
fn a_chunk_after_the_end_counts() {
    let server = FakeAgent::start(|_: &Request| {
        let done = Completion::new().text("Hi.").finish("stop").streamed();
        let call = json!({"index": 0, "id": "c", "function": {"name": "delete", "arguments": "{}"}});
        done.event(chunk(json!({"tool_calls": [call]}), None))
    });
    let forbidden = "name: a\nturns: [{ user: hello, assert: { tools: { forbid: [delete] } } }]\n";
    not_a_pass(&completions(&server).suite("a", forbidden).test(&[]), "assertion", "delete");
}

#[test]
fn a_cancelled_run_shows_on_the_console() {
    let agent = FakeAgent::start(|request: &Request| {
        let cancelled = json!({"type": "RUN_FINISHED", "outcome": {"type": "cancelled"}});
        Run::of(request).started().text("Hi.").raw_event(cancelled)
    });
    let forbidden = "name: a\nturns: [{ user: hello, assert: { text: { must_match: nothing } } }]\n";
    let tested = Project::of(&agent).suite("a", forbidden).test(&[]);
    assert!(tested.output.stdout.contains("cancelled"), "{}", tested.output);
    assert_eq!(tested.case("a")["turns"][0]["run_outcome"], "cancelled");
    let passed = Project::of(&agent).suite("a", HELLO).test(&[]);
    assert!(passed.output.stdout.contains("cancelled"), "{}", passed.output);
}

/// Ids that are empty, or that come again, are as good as any in a recording.
#[test]
fn what_is_recorded_can_be_replayed_whatever_ids_calls_have() {
    let agent = FakeAgent::start(|request: &Request| {
        let run = Run::of(request).started();
        run.tool("", "pay", &json!({}), Some(json!("ok")))
            .tool("", "pay", &json!({"n": 2}), Some(json!("ok")))
            .text("Hi.")
            .finished()
    });
    let twice = suite("      tools: { require: [{ name: pay, count: { exact: 2 } }] }\n");
    let project = Project::of(&agent).suite("a", &twice);
    project.test(&["--record", "made"]).all_passed();
    project.test(&["-n", "replay:made"]).all_passed();
}
