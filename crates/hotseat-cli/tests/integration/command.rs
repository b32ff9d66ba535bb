//! Agents that are programs, run from the binary. The programs are small shell scripts.
use hotseat_testkit::{FakeAgent, FakeReply};
use serde_json::{Value, json};

use crate::common::{Lifeline, Project};

const HELLO: &str = "name: a\nturns: [{ user: hello }]\n";

/// A project whose target is a script that prints lines for each line it reads.
fn script_project(text: &str) -> Project {
    script_project_with(text, "")
}

fn script_project_with(text: &str, more: &str) -> Project {
    let target = format!("target:\n  type: command\n  command: [sh, agent.sh]\n{more}");
    Project::with_config(&target).file("agent.sh", text)
}

/// A script that answers every message with these lines.
fn answer_script(lines: &[Value]) -> String {
    let printed: String = lines.iter().map(|line| format!("  echo '{line}'\n")).collect();
    format!("while read -r message; do\n  printf '%s\\n' \"$message\" >> seen.jsonl\n{printed}done\n")
}

fn answer_with_text(text: &str) -> String {
    answer_script(&[json!({"type": "text", "text": text}), json!({"type": "done"})])
}

/// Messages that the script received.
fn received_messages(project: &Project) -> Vec<Value> {
    let seen = project.workspace.read("seen.jsonl");
    seen.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

// Requests and answers.

/// Python's `splitlines` and Node's `readline` end a line at other characters, too; JSON may contain them as they are.
#[test]
fn a_message_is_one_line_for_every_program() {
    let said = "a\u{85}b\u{2028}c\u{2029}d";
    let case = json!({"id": "a", "name": said, "input": said, "assert": [{"type": "equals", "value": said}]});
    let project = script_project(&answer_with_text(said)).file("a.test.json", &case.to_string());
    let tested = project.test(&["--trace", "trace.jsonl"]);
    tested.assert_all_passed();
    assert_eq!(project.hotseat(&["test", "--dry-run", "-o", "cases.jsonl"]).code, 0);
    for file in ["seen.jsonl", "trace.jsonl", "cases.jsonl"] {
        let text = project.workspace.read(file);
        assert!(text.contains("\\u2028") && !text.contains(['\u{85}', '\u{2028}', '\u{2029}']), "{text:?}");
    }
    assert_eq!(received_messages(&project)[0]["text"], said);
    // So are the lines of events and of the list.
    for arguments in [&["test", "--json"][..], &["list", "--json"]] {
        let output = project.command(arguments).run();
        assert!(!output.stdout.contains(['\u{85}', '\u{2028}', '\u{2029}']), "{:?}", output.stdout);
        let named = |line: &str| serde_json::from_str::<Value>(line).expect("a line is JSON")["name"] == said;
        assert!(output.stdout.lines().any(named), "{output}");
    }
}

#[test]
fn process_lives_for_whole_conversation() {
    let agent = "n=0\nwhile read -r message; do\n  n=$((n+1))\n  printf '%s\\n' \"$message\" >> seen.jsonl\n  echo \"{\\\"type\\\":\\\"text\\\",\\\"text\\\":\\\"message $n\\\"}\"\n  echo '{\"type\":\"done\"}'\ndone\n";
    let suite = "name: a\nthreadId: t-1\nstate: { cart: [] }\nturns:\n  - user: 'say \"hi\"'\n  - { user: two, assert: { text: { must_match: '^message 2$' } } }\n";
    let project = script_project(agent).suite("a", suite);
    project.test(&[]).assert_all_passed();
    assert_eq!(
        received_messages(&project),
        [
            json!({"type": "message", "conversation_id": "t-1", "turn": 1, "text": "say \"hi\"", "state": {"cart": []}}),
            json!({"type": "message", "conversation_id": "t-1", "turn": 2, "text": "two", "state": {"cart": []}}),
        ]
    );
}

/// As over AG-UI, a message contains the state that the agent told last.
#[test]
fn messages_contain_the_last_known_state() {
    let agent = answer_script(&[
        json!({"type": "state", "state": {"cart": ["tea"]}}),
        json!({"type": "text", "text": "hi"}),
        json!({"type": "done"}),
    ]);
    let suite = "name: a\nstate: { cart: [] }\nturns: [{ user: one }, { user: two }]\n";
    let project = script_project(&agent).suite("a", suite);
    project.test(&[]).assert_all_passed();
    let states: Vec<Value> =
        received_messages(&project).iter().map(|message| message["state"].clone()).collect();
    assert_eq!(states, [json!({"cart": []}), json!({"cart": ["tea"]})]);
}

#[test]
fn stateless_process_receives_history() {
    let suite = "name: a\nturns: [{ user: one }, { user: two }]\n";
    let project = script_project_with(&answer_with_text("fine"), "  history: full\n").suite("a", suite);
    project.test(&[]).assert_all_passed();
    let seen = received_messages(&project);
    assert_eq!(seen[0]["history"], json!([]));
    assert_eq!(
        seen[1]["history"],
        json!([{"role": "user", "content": "one"}, {"role": "assistant", "content": "fine"}])
    );
}

/// The conversation continues after an expected error: its messages are kept, and nothing is sent twice.
#[test]
fn a_turn_with_an_expected_error_is_remembered() {
    let said = |role: &str, content: &str| json!({"role": role, "content": content});
    let agent = answer_script(&[
        json!({"type": "text", "text": "half"}),
        json!({"type": "error", "message": "nope"}),
    ]);
    let suite = "name: a\nmessages: [{ role: user, content: before }]\nturns: [{ user: one, expect_error: nope }, { user: two, expect_error: nope }]\n";
    let (before, one) = (said("user", "before"), said("user", "one"));
    for (history, second) in
        [("full", Some(json!([before, one, said("assistant", "half")]))), ("delta", None)]
    {
        let project = script_project_with(&agent, &format!("  history: {history}\n")).suite("a", suite);
        project.test(&[]).assert_all_passed();
        let seen = received_messages(&project);
        assert_eq!(seen[0]["history"], json!([before]), "{history}");
        assert_eq!(seen[1].get("history"), second.as_ref(), "{history}");
    }
}

#[test]
fn messages_carry_history_attachments_and_options() {
    let case = json!({
        "id": "a", "options": {"connector": "large", "skip": {"history": false}}, "metadata": {"owner": "me"},
        "messages": [
            {"role": "user", "content": "Book it"},
            {"role": "assistant", "tool_calls": [{"id": "c1", "name": "book", "arguments": {"to": "Rome"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "ok"},
        ],
        "turns": [
            {"input": "And this?", "attachments": [{"type": "image", "source": "file://a.png"}]},
            {"input": "Thanks"},
        ],
    });
    let lines = answer_script(&[
        json!({"type": "text", "text": "One moment."}),
        json!({"type": "tool_call", "id": "s1", "name": "file", "arguments": {"n": 1}, "result": {"ok": true}}),
        json!({"type": "text", "text": "Done."}),
        json!({"type": "done"}),
    ]);
    let run = |more: &str| {
        let project =
            script_project_with(&lines, more).file("a.test.json", &case.to_string()).file("a.png", "PNG");
        project.test(&[]).assert_all_passed();
        received_messages(&project)
    };
    let call = json!({"id": "c1", "type": "function", "function": {"name": "book", "arguments": "{\"to\":\"Rome\"}"}});
    let opening = vec![
        json!({"role": "user", "content": "Book it"}),
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": "c1", "content": "ok"}),
    ];
    let image = json!({"type": "image", "name": "a.png", "mimeType": "image/png", "data": "UE5H"});

    // A stateful program receives the history once.
    let told = run("");
    assert_eq!(told[0]["history"], Value::Array(opening.clone()));
    assert_eq!(told[0]["attachments"], json!([image]));
    assert_eq!(
        told[0]["options"],
        json!({"connector": "large", "skip": {"history": false}, "metadata": {"owner": "me"}})
    );
    assert_eq!((told[1].get("history"), told[1].get("attachments")), (None, None));

    let told = run("  history: full\n");
    let call =
        json!({"id": "s1", "type": "function", "function": {"name": "file", "arguments": "{\"n\":1}"}});
    let turn = vec![
        json!({"role": "user", "content": [{"type": "text", "text": "And this?"}, image]}),
        json!({"role": "assistant", "content": "One moment.", "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": "s1", "content": "{\"ok\":true}"}),
        json!({"role": "assistant", "content": "Done."}),
    ];
    assert_eq!(told[1]["history"], Value::Array([opening, turn].concat()));
}

#[test]
fn records_every_line_type() {
    let agent = answer_script(&[
        json!({"type": "reasoning", "text": "Let me see."}),
        json!({"type": "tool_call", "id": "c1", "name": "search", "arguments": {"q": "shoes"}}),
        json!({"type": "text", "delta": "One mo"}),
        json!({"type": "text", "delta": "ment."}),
        json!({"type": "tool_result", "id": "c1", "result": {"total": 3}}),
        json!({"type": "tool_call", "name": "pay", "arguments": "{\"amount\": 5}", "error": "declined"}),
        json!({"type": "tool_call", "name": "log", "result": null}),
        json!({"type": "state", "state": {"step": 2}}),
        json!({"type": "text", "text": "How much?", "turn": 1}),
        json!({"type": "usage", "usage": {"tokens": 12}}),
        json!({"type": "done", "awaiting_input": true, "input_hint": "an amount", "finish_reason": "stop"}),
    ]);
    let project = script_project(&agent).suite("a", HELLO);
    let tested = project.test(&["--trace", "out/trace.jsonl"]);
    tested.assert_all_passed();
    let turn = &tested.case("a")["turns"][0];
    assert_eq!(turn["messages"], json!(["One moment.", "How much?"]));
    assert_eq!(turn["reasoning"], json!(["Let me see."]));
    assert_eq!(turn["usage"], json!([{"tokens": 12}]));
    let calls = turn["tool_calls"].as_array().expect("a list");
    assert_eq!((&calls[0]["args"], &calls[0]["result"]), (&json!({"q": "shoes"}), &json!({"total": 3})));
    assert_eq!((&calls[1]["args"], &calls[1]["error"]), (&json!({"amount": 5}), &json!("declined")));
    assert_eq!(calls[2]["result"], Value::Null);
    assert!(calls[2].as_object().is_some_and(|call| call.contains_key("result")));
    let trace = project.workspace.read("out/trace.jsonl");
    assert!(trace.contains(r#""type":"agent.awaiting_input","payload":{"turnId":"turn-1","awaiting":true,"hint":"an amount"}"#), "{trace}");
    assert!(
        trace.contains(r#""finishReason":"stop""#) && trace.contains(r#""type":"state.snapshot""#),
        "{trace}"
    );
}

/// A reply that ended with an error is none, whatever it says.
#[test]
fn reply_that_ended_with_an_error_fails() {
    for done in [
        json!({"type": "done", "finish_reason": "error"}),
        json!({"type": "done", "error": "overloaded"}),
        json!({"type": "done", "error": {"message": "overloaded", "code": "529"}}),
    ] {
        let agent = answer_script(&[json!({"type": "text", "text": "ok"}), done.clone()]);
        let tested = script_project(&agent).suite("a", HELLO).test(&[]);
        let words = if done.get("error").is_some() { "overloaded" } else { "finish_reason error" };
        tested.assert_failure("a", "agent_error", &[words]);
    }
    // The text of an exception may be empty.
    for error in [json!(""), json!([]), json!({})] {
        let done = json!({"type": "done", "error": error});
        let agent = answer_script(&[json!({"type": "text", "text": "ok"}), done]);
        let tested = script_project(&agent).suite("a", HELLO).test(&[]);
        tested.assert_failure("a", "agent_error", &["the agent failed: `done` has the error"]);
    }
    for error in [json!(null), json!(false)] {
        let done = json!({"type": "done", "error": error});
        let agent = answer_script(&[json!({"type": "text", "text": "ok"}), done]);
        script_project(&agent).suite("a", HELLO).test(&[]).assert_all_passed();
    }
    let cut = json!({"type": "done", "finish_reason": "length", "error": null});
    let agent = answer_script(&[json!({"type": "text", "text": "ok"}), cut]);
    let tested = script_project(&agent).suite("a", HELLO).test(&[]);
    tested.assert_all_passed();
    let notes = tested.case("a")["turns"][0]["notes"].to_string();
    assert!(notes.contains("truncated at its token limit"), "{notes}");
}

#[test]
fn a_program_that_awaits_a_result_names_the_tool() {
    for reason in ["tool_calls", "tool_use", "TOOL_CALLS"] {
        let call = json!({"type": "tool_call", "id": "1", "name": "pay", "arguments": {}});
        let agent = answer_script(&[call, json!({"type": "done", "finish_reason": reason})]);
        let tested = script_project(&agent).suite("a", HELLO).test(&[]);
        tested.assert_failure("a", "test_error", &["the agent called tool pay and awaits its result"]);
    }
}

/// An agent that waits for the user may finish its call later, however it says that it waits.
#[test]
fn awaiting_agent_may_leave_a_call_open() {
    let call = json!({"type": "tool_call", "id": "1", "name": "pay", "arguments": {}});
    let awaits = json!({"type": "awaiting_input"});
    let goes_on = json!({"type": "awaiting_input", "awaiting": false});
    let done = json!({"type": "done"});
    for (lines, passes) in [
        (vec![call.clone(), done.clone()], false),
        (vec![call.clone(), awaits.clone(), done.clone()], true),
        (vec![call.clone(), json!({"type": "done", "awaiting_input": true})], true),
        (vec![call.clone(), awaits.clone(), goes_on, done.clone()], false),
        (vec![call.clone(), awaits, json!({"type": "done", "awaiting_input": false})], false),
    ] {
        let tested = script_project(&answer_script(&lines)).suite("a", HELLO).test(&[]);
        match passes {
            true => tested.assert_all_passed(),
            false => tested.assert_failure("a", "protocol_error", &["no result came before `done`"]),
        }
    }
}

#[test]
fn misspelt_arguments_are_unknown() {
    let assert_outcome = |call: Value, passes: bool| {
        let agent = answer_script(&[call, json!({"type": "done"})]);
        let suite = "name: a\nturns: [{ user: hi, assert: { tools: { forbid_calls: [{ name: pay, args_match: { amount: '9' } }] } } }]\n";
        let tested = script_project(&agent).suite("a", suite).test(&[]);
        match passes {
            true => tested.assert_all_passed(),
            false => tested.assert_failure("a", "assertion", &["the call has no `arguments`, but `args`"]),
        }
    };
    let called = json!({"type": "tool_call", "name": "pay", "turn": 1});
    assert_outcome(called.clone(), true);
    let with = |name: &str, value: Value| {
        let mut call = called.clone();
        call[name] = value;
        call
    };
    assert_outcome(with("arguments", Value::Null), true);
    assert_outcome(with("args", json!({"amount": 9})), false);
}

#[test]
fn client_tools_are_answered_by_case() {
    let agent = r#"
read -r message; printf '%s\n' "$message" >> seen.jsonl
echo '{"type":"tool_call","id":"c","name":"confirm","arguments":{"what":"pay"}}'
read -r answer; printf '%s\n' "$answer" >> seen.jsonl
echo '{"type":"tool_call","name":"confirm","arguments":{"what":"delete"}}'
read -r answer; printf '%s\n' "$answer" >> seen.jsonl
echo '{"type":"text","text":"Paid."}'
echo '{"type":"done"}'
"#;
    let suite = "
name: a
tools:
  - name: confirm
    answers: [{ args_match: { what: pay }, content: { ok: true } }, { error: no }]
turns: [{ user: pay }]
assert: { tools: { require: [{ name: confirm, result_match: ok, count: { exact: 1 } }] } }
";
    let project = script_project(agent).suite("a", suite);
    project.test(&[]).assert_all_passed();
    let seen = received_messages(&project);
    assert_eq!(seen[0]["tools"][0]["name"], "confirm");
    assert_eq!(seen[1], json!({"type": "tool_result", "id": "c", "result": {"ok": true}}));
    assert_eq!(seen[2], json!({"type": "tool_result", "id": "call", "error": "no"}));
}

#[test]
fn client_tools_are_answered_by_server() {
    let tools = FakeAgent::start(|_| FakeReply::json(200, &json!({"ok": 1})));
    let agent = "
read -r message
echo '{\"type\":\"tool_call\",\"id\":\"c\",\"name\":\"confirm\"}'
read -r answer; printf '%s\\n' \"$answer\" >> seen.jsonl
echo '{\"type\":\"text\",\"text\":\"Done.\"}'
echo '{\"type\":\"done\"}'
";
    let suite = format!("name: a\ntools: [{{ name: confirm, url: '{tools}' }}]\nturns: [{{ user: go }}]\n");
    let project = script_project(agent).suite("a", &suite);
    project.test(&[]).assert_all_passed();
    assert_eq!(received_messages(&project), [json!({"type": "tool_result", "id": "c", "result": {"ok": 1}})]);
    assert_eq!(tools.requests()[0].json(), json!({"id": "c", "name": "confirm", "arguments": {}}));
}

#[test]
fn early_output_does_not_block_process() {
    let long = "x".repeat(300_000);
    let agent = r#"head -c 400000 /dev/zero | tr '\0' ' '
echo
read -r message
echo '{"type":"text","text":"read"}'
echo '{"type":"done"}'
"#;
    let suite = format!("name: a\nturns: [{{ user: {long} }}]\nassert: {{ text: {{ must_match: read }} }}\n");
    script_project(agent).suite("a", &suite).test(&[]).assert_all_passed();
}

#[test]
fn uses_configured_working_directory_and_environment() {
    let agent = "read -r message\necho \"{\\\"type\\\":\\\"text\\\",\\\"text\\\":\\\"$(basename \"$PWD\") $COLOUR $FROM_OUTSIDE\\\"}\"\necho '{\"type\":\"done\"}'\n";
    let target = "target:\n  type: command\n  command: [sh, ../agent.sh]\n  cwd: inner\n  env: { COLOUR: '${ENV.FROM_OUTSIDE}-blue' }\n";
    let suite =
        "name: a\nturns: [{ user: hello }]\nassert: { text: { must_match: '^inner dark-blue dark$' } }\n";
    let project = Project::with_config(target).file("agent.sh", agent).file("inner/x", "").suite("a", suite);
    project.test_in(&[("FROM_OUTSIDE", "dark")], &[]).assert_all_passed();
}

// End of the program.

#[test]
fn process_exits_cleanly() {
    let agent = format!("exec 3>alive\ntrap 'echo bye > ended' EXIT\n{}sleep 0\n", answer_with_text("fine"));
    let project = script_project(&agent).suite("a", HELLO);
    let alive = Lifeline::new(&project.workspace, "alive");
    project.test(&[]).assert_all_passed();
    alive.wait_for_end();
    assert_eq!(project.workspace.read("ended"), "bye\n");
}

#[test]
fn descendants_end_with_process() {
    for agent in [
        // Exits on request but leaves a child; does not exit; fails in between.
        format!("exec 3>alive\nsleep 1000 &\n{}", answer_with_text("fine")),
        format!(
            "exec 3>alive\ntrap '' TERM\nsleep 1000 &\n{}while :; do sleep 1000; done\n",
            answer_with_text("fine")
        ),
        "exec 3>alive\nsleep 1000 &\nread -r message\necho nonsense\nsleep 1000\n".to_string(),
    ] {
        let project = script_project(&agent).suite("a", HELLO);
        let alive = Lifeline::new(&project.workspace, "alive");
        project.test(&[]);
        alive.wait_for_end();
    }
}

// Failures.

#[test]
fn reports_unknown_lines() {
    let done = json!({"type": "done"}).to_string();
    for (line, words) in [
        ("hello", "line 1 of the program's output is not JSON"),
        ("[1]", "is not a JSON object: [1]"),
        ("{\"text\": \"x\"}", "missing field `type`"),
        ("{\"type\": \"txt\", \"text\": \"x\"}", "unknown variant `txt`"),
        ("{\"type\": \"text\"}", "needs either `text` or `delta`"),
        (
            "{\"type\": \"text\", \"text\": 5}",
            "is not a known event (invalid type: integer `5`, expected a string)",
        ),
        ("{\"type\": \"tool_call\"}", "missing field `name`"),
        (
            "{\"type\": \"text\", \"text\": \"x\", \"tool_calls\": [{\"name\": \"a\"}]}",
            "has tool calls, which need lines of their own",
        ),
        ("{\"type\": \"tool_call\", \"name\": \"\"}", "calls a tool without a name"),
        ("{\"type\": \"tool_call\", \"name\": \" \"}", "calls a tool without a name"),
        (
            "{\"type\": \"tool_call\", \"name\": \"a\", \"result\": 1, \"error\": \"b\"}",
            "both `result` and `error`",
        ),
        ("{\"type\": \"tool_result\", \"id\": \"c\"}", "needs either `result` or `error`"),
        (
            "{\"type\": \"tool_result\", \"id\": \"c\", \"result\": 1}",
            "a result of tool call c, which was never announced",
        ),
        ("{\"type\": \"text\", \"text\": \"x\", \"turn\": 2}", "has turn 2, expected 1"),
        (&done, "the agent's answer is empty: no text and no tool call"),
        (
            "{\"type\": \"text\", \"text\": \" \\n\"}\n{\"type\": \"done\"}",
            "the agent's answer is empty: no text and no tool call",
        ),
    ] {
        let agent = format!("read -r message\ncat <<'END'\n{line}\nEND\nread -r message\n");
        script_project(&agent).suite("a", HELLO).test(&[]).assert_failed(1, "protocol_error", words);
    }
    let twice = answer_script(&[
        json!({"type": "tool_call", "id": "c", "name": "a", "result": 1}),
        json!({"type": "tool_result", "id": "c", "result": 2}),
    ]);
    script_project(&twice).suite("a", HELLO).test(&[]).assert_failed(
        1,
        "protocol_error",
        "which already has one",
    );
    let call = |name: &str| json!({"type": "tool_call", "id": "c", "name": name});
    let result = |content: &str| json!({"type": "tool_result", "id": "c", "result": content});
    let mut lines = vec![call("a"), call("b"), result("one"), result("two"), json!({"type": "done"})];
    let tested = script_project(&answer_script(&lines)).suite("a", HELLO).test(&[]);
    tested.assert_all_passed();
    let calls = tested.case("a")["turns"][0]["tool_calls"].clone();
    assert_eq!([&calls[0]["result"], &calls[1]["result"]], ["one", "two"], "{calls:#}");
    lines.insert(4, result("three"));
    script_project(&answer_script(&lines)).suite("a", HELLO).test(&[]).assert_failed(
        1,
        "protocol_error",
        "a result of tool call c, the id of 2 calls that already have one each",
    );
    let binary = "read -r message\nprintf '\\377\\376\\n'\nread -r message\n";
    script_project(binary).suite("a", HELLO).test(&[]).assert_failed(1, "protocol_error", "not UTF-8");
}

#[test]
fn early_exit_reports_exit_status() {
    for (agent, words) in [
        ("exit 3\n", "the program ended (exit status: 3) without a single line"),
        ("read -r message\nexit 0\n", "the program ended (exit status: 0) without a single line"),
        (
            "read -r message\necho '{\"type\":\"text\",\"text\":\"half\"}'\nkill -9 $$\n",
            "the program ended (signal: 9 (SIGKILL)) after 1 line(s), without `done`",
        ),
        ("read -r message\nprintf '{\"type\":\"te'\nexit 1\n", "is not JSON"),
        ("read -r message\nexec >&-\nsleep 1000\n", "the program closed its output without a single line"),
    ] {
        script_project(agent).suite("a", HELLO).test(&[]).assert_failed(1, "protocol_error", words);
    }
}

/// The child has the output of the program, so the output has no end.
#[test]
fn a_program_that_ends_while_its_child_runs_has_ended() {
    let said = "echo '{\"type\":\"text\",\"text\":\"half\"}'\n";
    for agent in
        [format!("sleep 60 &\n{said}exit 3\n"), format!("read -r message\nsleep 60 &\n{said}exit 3\n")]
    {
        let words = "the program ended (exit status: 3) after 1 line(s), without `done`";
        let tested = script_project(&agent)
            .suite("a", "name: a\nturns: [{ user: hello, timeout_ms: 30000 }]\n")
            .test(&[]);
        tested.assert_failed(1, "protocol_error", words);
    }
}

/// A reply that ends for a call and has none is not complete.
#[test]
fn a_turn_that_ends_for_calls_needs_one() {
    let text = json!({"type": "text", "text": "One moment."});
    let call = json!({"type": "tool_call", "name": "pay", "arguments": {}, "result": "ok"});
    for reason in ["tool_calls", "TOOL_USE"] {
        let done = json!({"type": "done", "finish_reason": reason});
        let tested =
            script_project(&answer_script(&[text.clone(), done.clone()])).suite("a", HELLO).test(&[]);
        let words = format!("the reply ends with finish_reason {reason} but has no tool call");
        tested.assert_failed(1, "protocol_error", &words);
        let agent = answer_script(&[call.clone(), text.clone(), done]);
        script_project(&agent).suite("a", HELLO).test(&[]).assert_all_passed();
    }
}

#[test]
fn process_that_exited_between_turns_fails_next_turn() {
    let agent = "read -r message\necho '{\"type\":\"text\",\"text\":\"fine\"}'\necho '{\"type\":\"done\"}'\n";
    let suite = "name: a\nturns: [{ user: one }, { user: two }]\n";
    script_project(agent).suite("a", suite).test(&[]).assert_failed(
        1,
        "protocol_error",
        "the program ended (exit status: 0)",
    );
}

#[test]
fn output_after_done_is_not_in_next_turn() {
    // Both lines are written at once, so the second is available before the next message is sent.
    let agent = "read -r message\nprintf '%s\\n%s\\n%s\\n' '{\"type\":\"text\",\"text\":\"a\"}' '{\"type\":\"done\"}' '{\"type\":\"text\",\"text\":\"late\"}'\nread -r message\necho '{\"type\":\"done\"}'\nread -r message\n";
    let suite = "name: a\nturns: [{ user: one }, { user: two }]\n";
    let tested = script_project(agent).suite("a", suite).test(&[]);
    tested.assert_failed(
        1,
        "protocol_error",
        "the program printed something after `done`: {\"type\":\"text\",\"text\":\"late\"}",
    );
}

/// Lines of a program whose user asks for `book`, and which deletes everything after `done`.
const DELETE_AFTER_DONE: [&str; 3] = [
    r#"{"type":"tool_call","name":"book","arguments":{},"result":"ok"}"#,
    r#"{"type":"done"}"#,
    r#"{"type":"tool_call","name":"delete_everything","arguments":{},"result":"ok"}"#,
];

/// The output arrives too late for the turn itself.
#[test]
fn output_after_the_last_turn_fails_again_in_recheck_and_replay() {
    let [call, done, late] = DELETE_AFTER_DONE;
    let agent = format!(
        "while read -r message; do\n  echo '{call}'\n  echo '{done}'\ndone\nsleep 0.1\necho '{late}'\n"
    );
    let suite = "name: a
turns: [{ user: hello, assert: { tools: { forbid: [delete_everything] } } }]
";
    let project = script_project(&agent).suite("a", suite);
    let words = "the program printed something after `done`: {\"type\":\"tool_call\"";
    project.test(&["--record", "rec", "--trace", "trace.jsonl"]).assert_failed(1, "protocol_error", words);
    assert!(project.workspace.read("trace.jsonl").contains("\"conversation.failed\""));
    project.hotseat(&["recheck", "last"]).assert_stdout(1, &["printed something after `done`"]);
    // The new run contains the failure, too.
    project.hotseat(&["recheck", "last"]).assert_stdout(1, &["printed something after `done`"]);
    let replayed = project.test(&["-n", "replay:rec", "--record", "rec2"]);
    replayed.assert_failed(1, "protocol_error", words);
    project.test(&["-n", "replay:rec2"]).assert_failed(1, "protocol_error", words);
}

/// The agent waits for an answer that the test does not have.
#[test]
fn output_after_a_question_that_skips_the_case_fails() {
    let [_, _, late] = DELETE_AFTER_DONE;
    let agent = format!(
        "read -r message\necho '{{\"type\":\"text\",\"text\":\"Which one?\"}}'\necho '{{\"type\":\"done\",\"awaiting_input\":true}}'\nread -r message\necho '{late}'\n"
    );
    let case = json!({"id": "a", "turns": [{"input": "hello"}], "on_missing_input": "skip"});
    let project = script_project(&agent).file("a.test.jsonl", &case.to_string());
    project.test(&[]).assert_failed(1, "protocol_error", "printed something after `done`");
    project.hotseat(&["recheck", "last"]).assert_stdout(1, &["printed something after `done`"]);
}

/// The late line is written on its own, so it may arrive when the next message is about to be sent. A busy machine may pause the
/// program before it for longer than Hotseat waits.
#[test]
fn output_soon_after_done_belongs_to_its_turn() {
    let [call, done, late] = DELETE_AFTER_DONE;
    let agent = format!(
        "while read -r message; do\n  echo '{call}'\n  echo '{done}'\n  [ -e late ] || echo '{late}'\n  :> late\ndone\n"
    );
    let suite = "name: a\nturns: [{ user: one }, { user: two }]\n";
    let is_noticed = |_: &usize| {
        let tested = script_project(&agent).suite("a", suite).test(&[]);
        let turns = tested.case("a")["turns"].as_array().map_or(0, Vec::len);
        turns == 1 && tested.failure("a")["kind"] == "protocol_error"
    };
    let noticed = (0..10).filter(is_noticed).count();
    assert!(noticed >= 8, "noticed {noticed} times of 10");
}

#[test]
fn failures_include_last_stderr_lines() {
    let crash = "read -r message\necho 'Traceback: no such key KEY-123456' >&2\nexit 1\n";
    let tested = script_project(crash).suite("a", HELLO).test_in(&[("MY_SECRET", "KEY-123456")], &[]);
    tested.assert_failed(1, "protocol_error", "the program ended (exit status: 1)");
    let detail = tested.failure("a")["detail"].as_str().expect("a detail").to_string();
    assert!(
        detail.contains("standard error of the agent:\nTraceback: no such key [redacted:ENV.MY_SECRET]"),
        "{detail}"
    );
    assert!(tested.output.stdout.contains("Traceback"), "{}", tested.output);

    let wrong = format!("echo 'starting' >&2\n{}", answer_with_text("no"));
    let suite = "name: a\nturns: [{ user: hello }]\nassert: { text: { must_match: yes } }\n";
    let project = script_project(&wrong).suite("a", suite);
    let tested = project.test(&["-o", "summary.md"]);
    tested.assert_failed(1, "assertion", "expected the agent to say something that matches /yes/");
    assert!(tested.failure("a")["detail"].as_str().is_some_and(|detail| detail.contains("starting")));
    assert!(tested.output.stdout.contains("standard error of the agent:"), "{}", tested.output);
    let summary = project.workspace.read("summary.md");
    assert!(summary.contains("```text\nstandard error of the agent:\nstarting\n```"), "{summary}");
}

#[test]
fn no_part_of_a_secret_is_shown_beside_json_or_where_a_text_is_cut() {
    let secret = "sk-proj-12345678";
    let said = format!("{secret} sent {{\"ok\": true}}");
    let not_json = format!("{}{secret}{}", "x".repeat(190), "y".repeat(100));
    let crash = format!("read -r message\nyes {secret} | head -n 3000 >&2\nexit 1\n");
    for agent in [answer_with_text(&said), format!("read -r message\necho '{not_json}'\n"), crash] {
        let project = script_project(&agent).suite("a", HELLO);
        let tested = project.test_in(&[("MY_SECRET", secret)], &["-v", "-o", "a.jsonl", "-o", "a.md"]);
        for (shown, text) in [
            ("console", tested.output.to_string()),
            ("JSON", tested.report.to_string()),
            ("JSON lines", project.workspace.read("a.jsonl")),
            ("Markdown", project.workspace.read("a.md")),
        ] {
            let shows_part = (4..=secret.len()).any(|length| {
                let (head, tail) = (&secret[..length], &secret[secret.len() - length..]);
                text.contains(head) || text.contains(tail)
            });
            assert!(!shows_part, "{shown}: {text}");
        }
        assert!(tested.report.to_string().contains("[redacted:ENV.MY_SECRET]"), "{:#}", tested.report);
    }
}

#[test]
fn error_line_is_an_agent_error() {
    let agent = answer_script(&[json!({"type": "error", "message": "out of stock", "code": "E7"})]);
    let project = script_project(&agent).suite("a", HELLO);
    project.test(&[]).assert_failed(1, "agent_error", "the agent failed: out of stock (E7)");
    let expected = "name: a\nturns: [{ user: hello, expect_error: { message: out of, code: ^E7$ } }]\n";
    script_project(&agent).suite("a", expected).test(&[]).assert_all_passed();
}

/// Programs whose loop ends every turn with `done` print it after an error, too: at once, or when the next message has come.
#[test]
fn one_done_may_follow_an_error() {
    let error = "echo '{\"type\":\"error\",\"message\":\"out of stock\"}'";
    let done = "echo '{\"type\":\"done\"}'";
    let text = "echo '{\"type\":\"text\",\"text\":\"fine\"}'";
    let suite = "name: a\nturns: [{ user: one, expect_error: out of }, { user: two }, { user: three }]\n";
    let run = |first: &str| {
        let agent =
            format!("read -r m\n{first}\nread -r m\n{text}\n{done}\nread -r m\n{text}\n{done}\nread -r m\n");
        script_project(&agent).suite("a", suite).test(&[])
    };
    for first in [
        error.to_string(),
        format!("{error}\n{done}"),
        format!("{error}\nsleep 0.1\n{done}"),
        // All in one piece.
        format!("({error}; {done}) | cat"),
    ] {
        let tested = run(&first);
        tested.assert_all_passed();
        let turns = tested.case("a")["turns"].clone();
        assert_eq!((&turns[1]["output"], &turns[2]["output"]), (&json!("fine"), &json!("fine")), "{first}");
    }
    run(&format!("({error}; {done}; {done}) | cat")).assert_failed(1, "protocol_error", "");
}

#[test]
fn silent_slow_and_endless_processes_time_out() {
    let tested = script_project_with("read -r message\nsleep 1000\n", "  idle_timeout_ms: 100\n")
        .suite("a", HELLO)
        .test(&[]);
    tested.assert_failed(1, "timeout", "the agent sent nothing for 100 ms");
    let chatter = "read -r message\nwhile :; do echo; sleep 0.01; done\n";
    let tested = script_project_with(chatter, "  timeout_ms: 200\n").suite("a", HELLO).test(&[]);
    tested.assert_failed(1, "timeout", "the turn timed out after 200 ms");
    let endless = "read -r message\nhead -c 20000000 /dev/zero | tr '\\0' x\nsleep 1000\n";
    let tested = script_project(endless).suite("a", HELLO).test(&[]);
    tested.assert_failed(1, "protocol_error", "a line longer than 16777216 bytes");
    let asks =
        "read -r message\nwhile :; do echo '{\"type\":\"tool_call\",\"name\":\"t\"}'; read -r answer; done\n";
    let listed = "read -r message\necho '{\"type\":\"tool_call\",\"name\":\"t\",\"arguments\":[1],\"result\":1}'\necho '{\"type\":\"done\"}'\n";
    let suite =
        "name: a\nturns: [{ user: hello, assert: { type: tool_called, name: t, arguments: { a: 1 } } }]\n";
    let tested = script_project(listed).suite("a", suite).test(&[]);
    let words = "undecided for 1 whose arguments are unknown or no JSON object";
    assert!(tested.output.stdout.contains(words), "{}", tested.output);
    for (case, words) in [
        (json!({"id": "a", "input": [{"content": "x"}, {"content": "y"}]}), "messages before the first turn"),
        (json!({"id": "a", "input": "x", "options": {"mode": "y"}}), "`options.mode`"),
        (
            json!({"id": "a", "input": {"content": [{"type": "image", "source": "data:image/png;base64,AA"}]}}),
            "`attachments`",
        ),
    ] {
        let output = text_command("[cat]").file("a.test.json", &case.to_string()).hotseat(&["test"]);
        let words = format!("this case sets {words}, which its agent does not support");
        assert!(output.code == 2 && output.stderr.contains(&words), "{words}: {output}");
    }
    // Input with a placeholder in the arguments can be passed.
    let case = json!({"id": "a", "options": {"connector": "large"}, "messages": [{"content": "one"}], "turns": [{"input": "two"}]});
    let tested = text_command("[echo, '{{options.connector}} {{history.0.content}} {{message}}']")
        .file("a.test.json", &case.to_string())
        .test(&[]);
    tested.assert_all_passed();
    assert_eq!(tested.case("a")["turns"][0]["output"], "large one two");
    let suite = "name: a\ntools: [{ name: t, answers: [{ content: ok }] }]\nturns: [{ user: hello }]\n";
    script_project(asks).suite("a", suite).test(&[]).assert_failed(
        1,
        "limit",
        "the agent made more than 25 requests to the client in one turn",
    );
}

#[test]
fn reports_process_that_cannot_start() {
    let target = "target: { type: command, command: [./no-such-program] }\n";
    let tested = Project::with_config(target).suite("a", HELLO).test(&[]);
    tested.assert_failed(3, "unreachable", "the program `./no-such-program` cannot be started");
    let stdout = tested.output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let next =
        "Next: install the program of the agent, or correct its `command` and `cwd` in the project file";
    assert!(stdout.contains(next), "{}", tested.output);
    let tested = script_project_with("", "  cwd: nowhere\n").suite("a", HELLO).test(&[]);
    tested.assert_failed(3, "unreachable", "there is no folder");
}

// Plain text.

fn text_command(command: &str) -> Project {
    Project::with_config(&format!(
        "target: {{ type: command, protocol: text, command: {command}, timeout_ms: 5000 }}\n"
    ))
}

#[test]
fn plain_text_mode_uses_whole_output() {
    let suite = "name: a\nturns:\n  - { user: hello, assert: { text: { must_match: '^HELLO$' } } }\n  - { user: two, assert: { text: { must_match: '^TWO$' } } }\n";
    text_command("[tr, a-z, A-Z]").suite("a", suite).test(&[]).assert_all_passed();
    let suite = "name: a\nthreadId: t\nturns: [{ user: 'a b' }, { user: c, assert: { text: { must_match: '^t 2 <c> .{3}role' } } }]\n";
    text_command("[echo, '{{conversation_id}} {{turn}} <{{message}}>', '{{history}}']")
        .suite("a", suite)
        .test(&[])
        .assert_all_passed();
}

/// A process that the program leaves behind may keep its output open for ever.
#[test]
fn plain_text_ends_with_the_program() {
    let suite = "name: a\nturns: [{ user: hello, assert: { text: { must_match: '^hello$' } } }]\n";
    text_command("[sh, -c, 'sleep 1000 & echo hello']").suite("a", suite).test(&[]).assert_all_passed();
}

#[test]
fn plain_text_process_fails_or_prints_nothing() {
    let tested = text_command("[sh, -c, 'echo half; echo broken >&2; exit 4']").suite("a", HELLO).test(&[]);
    tested.assert_failed(1, "agent_error", "the program failed (exit status: 4)");
    assert!(tested.failure("a")["detail"].as_str().is_some_and(|detail| detail.contains("broken")));
    assert_eq!(tested.case("a")["turns"][0]["output"], "half");
    let expected = "name: a\nturns: [{ user: hello, expect_error: 'exit status: 4' }]\n";
    text_command("[sh, -c, 'echo broken >&2; exit 4']").suite("a", expected).test(&[]).assert_all_passed();
    let tested = text_command("['true']").suite("a", HELLO).test(&[]);
    tested.assert_failed(1, "protocol_error", "the agent's answer is empty: no text and no tool call");
    let tested = text_command("[sh, -c, 'sleep 1000']")
        .suite("a", "name: a\nturns: [{ user: hello, timeout_ms: 100 }]\n")
        .test(&[]);
    tested.assert_failed(1, "timeout", "the turn timed out after 100 ms");
}

#[test]
fn a_message_that_fits_no_argument_belongs_on_standard_input() {
    for said in ["a\0b".to_string(), "x".repeat(200_000)] {
        let case = json!({"id": "a", "name": "a", "input": said});
        let run = |command: &str| text_command(command).file("a.test.json", &case.to_string()).test(&[]);
        let tested = run("[echo, '{{message}}']");
        tested.assert_failed(
            1,
            "test_error",
            "the message cannot be an argument of the program `echo {{message}}`",
        );
        tested.assert_failed(1, "test_error", "send it on standard input: remove `{{message}}`");
        run("[cat]").assert_all_passed();
    }
}

#[test]
fn rejects_conflicting_settings() {
    for (target, words) in [
        ("{ type: command }", "`target` has no `command`"),
        ("{ type: command, command: [] }", "`command` must be a list that is not empty"),
        (
            "{ type: command, command: [echo, '{{message}}'] }",
            "placeholders in the arguments require `protocol: text`",
        ),
        ("{ type: command, protocol: text, command: [echo, '{{mesage}}'] }", "did you mean `{{message}}`?"),
        (
            "{ type: command, protocol: text, command: [echo, '{{attachments}}', '{{message}}'] }",
            "`{{attachments}}` is not supported here",
        ),
        (
            "{ type: command, protocol: text, command: [cat], history: full }",
            "`history: full` requires `protocol: json_lines`",
        ),
        (
            "{ type: command, protocol: text, command: [cat], tools: [{ name: a }] }",
            "`tools` require `protocol: json_lines`",
        ),
    ] {
        Project::with_config(&format!("target: {target}\n"))
            .suite("a", HELLO)
            .hotseat(&["test"])
            .assert_stderr(2, &[words]);
    }
    let suite = "name: a\ntools: [{ name: t, answers: [{ content: ok }] }]\nturns: [{ user: hello }]\n";
    let output = text_command("[cat]").suite("a", suite).hotseat(&["test"]);
    assert!(
        output.code == 2
            && output.stderr.contains("this case sets `tools`, which its agent does not support"),
        "{output}"
    );
}
