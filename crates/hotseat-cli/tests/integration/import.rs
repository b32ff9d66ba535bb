//! Import: external conversations become a suite and recordings.
use hotseat_testkit::ProgramOutput;
use serde_json::{Value, json};

use crate::common::{Project, echo_agent};

/// A short refund conversation with text next to a call.
fn refund_conversation() -> Value {
    json!([
        {"role": "system", "content": "You work for a shop."},
        {"role": "user", "content": "I want my money back for order 7."},
        {"role": "assistant", "content": "Let me see.", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "find_order", "arguments": "{\"id\": 7}"}},
            {"id": "c2", "type": "function", "function": {"name": "log", "arguments": ""}},
        ]},
        {"role": "tool", "tool_call_id": "c1", "name": "find_order", "content": "{\"id\": 7, \"price\": 12.50}"},
        {"role": "tool", "tool_call_id": "c2", "content": "ok"},
        {"role": "assistant", "content": "Shall I pay 12.50 back?"},
        {"role": "user", "content": "Yes, ${please} and $${ thanks"},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "refund", "arguments": {"id": 7.0, "note": "${N}"}}},
        ]},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "paid"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "It is "}, {"type": "text", "text": "paid."}]},
        {"role": "user", "content": "Bye"},
    ])
}

fn run_import(project: &Project, args: &[&str]) -> ProgramOutput {
    project.hotseat(&[&["import", "openai-transcripts"], args].concat())
}

/// The cases of a suite.
fn cases(project: &Project, path: &str) -> Vec<Value> {
    project.workspace.read(path).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Runs a suite on its recordings.
fn replay(project: &Project, suite: &str) -> crate::common::TestRun {
    let folder = suite.rsplit_once('/').unwrap().0;
    project.test(&["-n", &format!("replay:{folder}/recordings"), suite])
}

#[test]
fn conversation_becomes_case_and_recording() {
    let project = Project::empty().file("shop.json", &refund_conversation().to_string());
    let output = run_import(&project, &["shop.json", "-o", "out"]);
    assert_eq!(output.code, 0, "{output}");
    insta::assert_snapshot!(output.stdout, @r"
    1 conversation with 2 turns from shop.json
    - 1 instruction to the agent (`system`, `developer`) omitted
    - 1 input omitted: last message of the conversation, not answered by the agent
    - 1 conversation: the data lists no expected calls, so nothing is asserted

    Next:
      hotseat test -n replay:out/recordings out/shop.test.jsonl
    ");
    let quoted = run_import(&project, &["shop.json", "-o", "my tests"]).stdout;
    assert!(quoted.contains("-n 'replay:my tests/recordings' 'my tests/shop.test.jsonl'"), "{quoted}");
    assert_eq!(
        cases(&project, "out/shop.test.jsonl"),
        [json!({"id": "conversation-1", "turns": [
            {"user": "I want my money back for order 7."},
            {"user": "Yes, $${please} and $$${ thanks"},
        ]})]
    );
    let tested = replay(&project, "out/shop.test.jsonl");
    tested.assert_all_passed();
    let turns = &tested.case("conversation-1")["turns"];
    assert_eq!(turns[1]["input"], "Yes, ${please} and $${ thanks");
    assert_eq!(turns[0]["messages"], json!(["Let me see.", "Shall I pay 12.50 back?"]));
    assert_eq!(turns[1]["messages"], json!(["It is paid."]));
    let calls: Vec<(&Value, &Value, &Value, &Value)> = turns
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|turn| turn["tool_calls"].as_array().unwrap())
        .map(|call| (&call["id"], &call["name"], &call["args"], &call["result"]))
        .collect();
    assert_eq!(
        json!(calls),
        json!([
            ["c1", "find_order", {"id": 7}, {"id": 7, "price": 12.5}],
            ["c2", "log", {}, "ok"],
            // A reused id is another call.
            ["c1#2", "refund", {"id": 7.0, "note": "${N}"}, "paid"],
        ])
    );
}

/// Programs cut texts between the halves of an emoji; such a half becomes U+FFFD, as in the text of an agent.
#[test]
fn lone_surrogates_are_replaced() {
    let good = r#"[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]"#;
    let cut = r#"[{"role": "user", "content": "Hi \ude00"}, {"role": "assistant", "content": "Cut \ud83d"}]"#;
    let whole = r#"[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "\ud83d\ude00"}]"#;
    let project = Project::empty().file("a.jsonl", &format!("{good}\n{cut}\n{whole}\n"));
    run_import(&project, &["a.jsonl", "-o", "out"]).assert_code(0);
    assert_eq!(cases(&project, "out/a.test.jsonl")[1]["turns"], json!([{"user": "Hi \u{FFFD}"}]));
    let tested = replay(&project, "out/a.test.jsonl");
    tested.assert_all_passed();
    for (case, text) in [("conversation-2", "Cut \u{FFFD}"), ("conversation-3", "😀")] {
        assert_eq!(tested.case(case)["turns"][0]["messages"], json!([text]));
    }
}

#[test]
fn reads_several_file_formats() {
    let one = |said: &str| json!([{"role": "user", "content": said}, {"role": "assistant", "content": said}]);
    let lines = |values: &[Value]| values.iter().map(|value| format!("{value}\n")).collect::<String>();
    let message = |value: &Value| value.as_array().unwrap().clone();
    for (name, text, expected) in [
        ("list.json", one("a").to_string(), vec!["conversation-1"]),
        ("messages.json", json!({"messages": one("a")}).to_string(), vec!["conversation-1"]),
        ("id.json", json!({"id": "x y", "conversation": one("a")}).to_string(), vec!["x y"]),
        (
            "traj.json",
            json!([{"task_id": 3, "trial": 1, "traj": one("a")}, {"task_id": 4, "traj": one("b")}])
                .to_string(),
            vec!["task-3-trial-1", "task-4"],
        ),
        ("lists.json", json!([one("a"), one("b")]).to_string(), vec!["conversation-1", "conversation-2"]),
        (
            "wrapped.json",
            json!({"conversations": [one("a"), one("b")]}).to_string(),
            vec!["conversation-1", "conversation-2"],
        ),
        (
            "lines.jsonl",
            lines(&[json!({"messages": one("a")}), one("b"), json!({"id": 7, "messages": one("c")})]),
            vec!["conversation-1", "conversation-2", "7"],
        ),
        (
            "bare.jsonl",
            lines(&[one("a"), one("b"), json!({"messages": one("c")})]),
            vec!["conversation-1", "conversation-2", "conversation-3"],
        ),
        ("loose.jsonl", lines(&message(&one("a"))), vec!["conversation-1"]),
        (
            "same.jsonl",
            lines(&[
                json!({"id": "a", "messages": one("a")}),
                json!({"id": "a", "messages": one("b")}),
                json!({"id": "a-2", "messages": one("c")}),
            ]),
            vec!["a", "a-2", "a-2-2"],
        ),
        (
            "pretty.json",
            serde_json::to_string_pretty(&json!({"messages": one("a"), "score": 0.1})).unwrap(),
            vec!["conversation-1"],
        ),
    ] {
        let project = Project::empty().file(name, &text);
        let output = run_import(&project, &[name, "-o", "out"]);
        assert_eq!(output.code, 0, "{name}: {output}");
        let suite = format!("out/{}.test.jsonl", name.split_once('.').unwrap().0);
        let ids: Vec<Value> = cases(&project, &suite).iter().map(|case| case["id"].clone()).collect();
        assert_eq!(json!(ids), json!(expected), "{name}");
        let tested = replay(&project, &suite);
        tested.assert_all_passed();
        // Each case replays its own conversation.
        for result in tested.results() {
            assert_eq!(result["turns"][0]["input"], result["turns"][0]["output"], "{name}");
        }
    }
}

#[test]
fn replaced_ids_are_noted() {
    let said = json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": "a"}]);
    let ids = [
        json!("a\u{1b}"),
        json!("a\u{1b}"),
        json!(" "),
        json!({"x": 1}),
        json!("a\u{1b}"),
        json!(null),
        json!(7),
    ];
    let lines = ids.map(|id| json!({"id": id, "messages": said}).to_string());
    let project = Project::empty().file("s.jsonl", &lines.join("\n"));
    let output = run_import(&project, &["s.jsonl", "-o", "out", "--expect", "none"]);
    insta::assert_snapshot!(output.stdout, @"
    7 conversations with 7 turns from s.jsonl
    - 2 conversations renamed, because an earlier one has the same id: `a␛` became `a␛-2`
    - 2 conversations numbered, because the id in the data is empty or no text and no number: the first is `conversation-3`

    Next:
      hotseat test -n replay:out/recordings out/s.test.jsonl
    ");
    let unique = Project::empty().file("s.jsonl", &json!({"id": "a", "messages": said}).to_string());
    let output = run_import(&unique, &["s.jsonl", "-o", "out", "--expect", "none"]);
    assert!(!output.stdout.contains("- "), "{output}");
}

#[test]
fn imports_messages_outside_turns() {
    let text = json!([
        {"role": "assistant", "content": "Welcome!", "tool_calls": [{"id": "g", "name": "greet", "arguments": "{}"}]},
        {"role": "tool", "tool_call_id": "g", "content": "done"},
        {"role": "user", "content": "Hello"},
        {"role": "user", "content": "Are you there?"},
        {"role": "assistant", "content": ""},
        {"role": "assistant", "reasoning_content": "They wait.", "refusal": "I cannot help."},
        {"role": "assistant", "tool_calls": [{"function": {"name": "leave", "arguments": "not json"}}]},
        {"role": "developer", "content": "Be brief."},
    ]);
    let project = Project::empty().file("a.json", &text.to_string());
    let output = run_import(&project, &["a.json", "-o", "out"]);
    assert!(output.stdout.contains("1 message of the agent omitted: no text and no tool call"), "{output}");
    assert_eq!(
        cases(&project, "out/a.test.jsonl"),
        [json!({"id": "conversation-1", "messages": [
            {"role": "assistant", "content": "Welcome!", "tool_calls": [{"id": "g", "name": "greet", "arguments": "{}"}]},
            {"role": "tool", "tool_call_id": "g", "content": "done"},
        ], "turns": [{"user": "Hello\n\nAre you there?"}]})]
    );
    let tested = replay(&project, "out/a.test.jsonl");
    tested.assert_all_passed();
    let turn = &tested.case("conversation-1")["turns"][0];
    assert_eq!((&turn["reasoning"], &turn["messages"]), (&json!(["They wait."]), &json!(["I cannot help."])));
    assert_eq!(turn["tool_calls"][0]["args_broken"], true);
}

/// Four conversations of one task: as expected, in another order, with an extra call, with a missing call.
fn four_conversations() -> String {
    let calls = |names: &[&str]| {
        let calls = names.iter().enumerate().map(|(number, name)| {
            json!({"id": format!("c{number}"), "function": {"name": name, "arguments": "{\"id\": 1, \"q\": \"${x}\"}"}})
        });
        json!([{"role": "user", "content": "Go"}, {"role": "assistant", "tool_calls": calls.collect::<Value>()}])
    };
    let wanted = json!([{"name": "find", "kwargs": {"q": "${x}", "id": 1.0}}, {"name": "pay", "arguments": {"id": 1, "q": "${x}"}}]);
    let made = [&["find", "look", "pay"][..], &["pay", "find"], &["find", "pay", "pay"], &["find"]];
    let lines = made.iter().zip(["same", "turned", "more", "less"]).map(|(names, id)| {
        json!({"id": id, "reward": 0.5, "traj": calls(names), "info": {"task": {"actions": wanted}}})
            .to_string()
            + "\n"
    });
    let nothing = json!({"id": "nothing", "traj": calls(&["pay"]), "info": {"task": {"actions": []}}});
    lines.collect::<String>() + &nothing.to_string()
}

#[test]
fn imports_expectations_as_assertions() {
    for (flags, passing, notes) in [
        (&[][..], &["same", "turned", "more", "nothing"][..], "1 conversation: no calls are expected"),
        (&["--expect", "order"], &["same", "more", "nothing"], "1 conversation: no calls are expected"),
        (&["--expect", "none"], &["same", "turned", "more", "less", "nothing"], "Next"),
        (&["--writes", "pay,cancel"], &["same", "turned"], "Next"),
        (&["--expect", "order", "--writes", "pay"], &["same"], "Next"),
    ] {
        let project = Project::empty().file("four.jsonl", &four_conversations());
        let output = run_import(&project, &[&["four.jsonl", "-o", "out"], flags].concat());
        assert!(output.code == 0 && output.stdout.contains(notes), "{flags:?}: {output}");
        assert_eq!(output.stdout.contains("no calls are expected"), notes != "Next", "{output}");
        let unknown = output.stdout.contains("--writes: no conversation calls or expects `cancel`\n");
        assert_eq!(unknown, flags.contains(&"pay,cancel"), "{output}");
        let tested = replay(&project, "out/four.test.jsonl");
        for result in tested.results() {
            let name = result["name"].as_str().unwrap();
            assert_eq!(result["status"] == "passed", passing.contains(&name), "{flags:?} {name}: {result:#}");
            assert!(result["status"] == "passed" || result["failure"]["kind"] == "assertion", "{result:#}");
        }
        assert_eq!(tested.case("same")["metadata"], json!({"reward": 0.5}));
    }
}

#[test]
fn suite_can_target_another_agent() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).file("four.jsonl", &four_conversations());
    let output = run_import(&project, &["four.jsonl", "-o", "out", "--cases-only"]);
    assert!(output.stdout.contains("hotseat test out/four.test.jsonl"), "{output}");
    assert!(!project.workspace.path("out/recordings").exists());
    // It contains user text but no tool calls.
    let tested = project.test(&["out/four.test.jsonl"]);
    assert_eq!((tested.count("passed"), tested.count("failed")), (1, 4));
}

/// The results of a call that cannot be read are no further mistakes.
#[test]
fn mistakes_of_calls_are_reported_once() {
    let call = json!({"id": "c", "function": "pay", "args": {}});
    let messages = json!([
        {"role": "user", "content": "Pay."},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "paid"},
        {"role": "assistant", "content": "Done."},
    ]);
    let project = Project::empty().file("a.json", &messages.to_string());
    let output = run_import(&project, &["a.json", "-o", "out"]);
    output.assert_stderr(2, &["this call has no tool name", "write it as `name`"]);
    assert_eq!(output.stderr.matches("error:").count(), 1, "{output}");
}

#[test]
fn reports_errors_with_location_and_writes_nothing() {
    for (text, place, words) in [
        ("", "", "no conversations found in a.jsonl"),
        ("{\"messages\": []}", "1:14", "this conversation has no user message with a reply"),
        ("7", "1:1", "this is not a conversation"),
        ("{\"id\": 1}", "1:1", "neither a message nor a conversation"),
        ("{\"messages\": {}}", "1:14", "the messages of a conversation must be a list"),
        ("{\"messages\": [7]}", "1:15", "an object with a `role`"),
        ("[[{\"content\": \"x\"}]]", "1:3", "has no `role`"),
        ("[[\n {\"role\": \"robot\"}]]", "2:11", "system, developer, user, assistant, tool"),
        ("{\"role\": \"user\"}", "1:1", "has no `content`"),
        ("{\"role\": \"user\", \"content\": 7}", "1:29", "must be text or a list of parts"),
        (
            "{\"role\": \"user\", \"content\": [{\"type\": \"image_url\", \"image_url\": {}}]}",
            "1:30",
            "only text parts can be imported",
        ),
        ("{\"role\": \"user\", \"content\": [{\"type\": \"text\"}]}", "1:30", "this text part has no `text`"),
        ("{\"role\": \"tool\", \"content\": \"x\"}", "1:1", "no `tool_call_id`"),
        (
            "{\"role\": \"tool\", \"tool_call_id\": \"c\", \"content\": \"x\"}",
            "1:1",
            "no earlier call has the id",
        ),
        ("{\"role\": \"assistant\", \"tool_calls\": {}}", "1:37", "`tool_calls` must be a list"),
        ("{\"role\": \"assistant\", \"tool_calls\": [{}]}", "1:38", "this call has no tool name"),
        ("{\"role\": \"assistant\", \"function_call\": {\"name\": \"x\"}}", "1:40", "`tool_calls`"),
        ("{\"messages\": [], \"task\": {\"actions\": {}}}", "1:38", "the expected calls must be a list"),
        ("{\"messages\": [], \"task\": {\"actions\": [{}]}}", "1:39", "has no `name`"),
        (
            "{\"messages\": [], \"expected_calls\": [{\"name\": \"x\", \"arguments\": 1}]}",
            "1:64",
            "the arguments of an expected call must be an object",
        ),
        (
            "{\"messages\": [], \"expected_calls\": [{\"name\": \"x\", \"inputs\": {\"id\": 8}}]}",
            "1:61",
            "this expected call has an object `inputs`, but no arguments",
        ),
        (
            "{\"role\": \"assistant\", \"tool_calls\": [{\"name\": \"x\", \"parameters\": {\"id\": 8}}]}",
            "1:66",
            "this call has an object `parameters`, but no arguments",
        ),
        (
            "{\"role\": \"assistant\", \"tool_calls\": [{\"function\": {\"name\": \"x\", \"params\": \"{}\"}}]}",
            "1:75",
            "this call has an object `params`, but no arguments",
        ),
        (
            "{\"role\": \"assistant\", \"tool_calls\": [{\"name\": \"x\", \"arguments\": {}, \"args\": {\"id\": 8}}]}",
            "1:77",
            "the arguments of this call are given twice",
        ),
        (
            "{\"messages\": [], \"expected_calls\": [{\"name\": \"x\", \"arguments\": {}, \"kwargs\": {\"id\": 8}}]}",
            "1:64",
            "are given twice",
        ),
        (
            "{\"messages\": [], \"expected_calls\": [], \"task\": {\"actions\": [{\"name\": \"x\"}]}}",
            "1:36",
            "`task.actions` and `expected_calls` both give the expected calls",
        ),
        (
            "{\"messages\": [], \"score\": 123456789012345678901234567890}",
            "1:27",
            "this number is too large to be kept exactly",
        ),
        ("{\"messages\": [], \"messages\": []}", "1:18", "the key `messages` is written twice"),
    ] {
        let good =
            r#"{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}"#;
        let project = Project::empty().file("a.jsonl", text);
        let output = run_import(&project, &["a.jsonl", "-o", "out"]);
        assert!(output.code == 2 && output.stderr.contains(words), "{text}: {output}");
        assert!(
            place.is_empty() || output.stderr.contains(&format!("a.jsonl:{place}\n")),
            "{text} {place}: {output}"
        );
        assert!(!project.workspace.path("out").exists(), "{text}");
        // It can be skipped on request if there are others.
        if !place.is_empty() {
            project.workspace.file("a.jsonl", &format!("{good}\n{text}\n{good}\n"));
            let output = run_import(&project, &["a.jsonl", "-o", "out"]);
            assert!(
                output.code == 2 && output.stderr.contains("a.jsonl:2:") || text.contains('\n'),
                "{text}: {output}"
            );
            let output = run_import(&project, &["a.jsonl", "-o", "out", "--skip-invalid"]);
            assert!(
                output.code == 0 && output.stdout.contains("1 conversation omitted as invalid"),
                "{text}: {output}"
            );
            assert!(output.stdout.starts_with("2 conversations"), "{text}: {output}");
            replay(&project, "out/a.test.jsonl").assert_all_passed();
        }
    }
}

/// A list of messages on a line of its own is a whole conversation.
#[test]
fn a_list_with_a_number_that_is_too_large_is_skipped() {
    let good = r#"{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}"#;
    let text = r#"[{"role": "user", "content": "a", "n": 1e999}]"#;
    let project = Project::empty().file("a.jsonl", &format!("{good}\n{text}\n{good}\n"));
    run_import(&project, &["a.jsonl", "-o", "out"]).assert_stderr(2, &["a.jsonl:2:40\n"]);
    run_import(&project, &["a.jsonl", "-o", "out", "--skip-invalid"])
        .assert_stdout(0, &["1 conversation omitted as invalid"]);
    // The ids are those of the file.
    let written = project.workspace.read("out/a.test.jsonl");
    assert!(written.contains("conversation-1") && written.contains("conversation-3"), "{written}");
}

#[test]
fn arguments_are_found_under_their_usual_names() {
    let arguments = json!({"id": 8});
    for call in [
        json!({"function": {"name": "refund", "arguments": arguments}}),
        json!({"function": {"name": "refund", "args": arguments.to_string()}}),
        json!({"function": {"name": "refund"}, "arguments": arguments.to_string()}),
        json!({"name": "refund", "args": arguments, "type": "tool_call"}),
        json!({"name": "refund", "kwargs": arguments}),
        json!({"name": "refund", "input": arguments}),
    ] {
        let conversation = json!({
            "messages": [
                {"role": "user", "content": "a"},
                {"role": "assistant", "content": "b", "tool_calls": [call]},
            ],
            "expected_calls": [{"name": "refund", "input": {"id": 8}}],
        });
        let project = Project::empty().file("a.json", &conversation.to_string());
        let output = run_import(&project, &["a.json", "-o", "out"]);
        assert_eq!(output.code, 0, "{conversation}: {output}");
        let asserted = cases(&project, "out/a.test.jsonl")[0].to_string();
        assert!(asserted.contains(r#"{"id":8}"#), "{asserted}");
        replay(&project, "out/a.test.jsonl").assert_all_passed();
    }
}

#[test]
fn never_skips_unreadable_input() {
    let good = "[{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": \"b\"}]";
    let broken = [
        format!("[{good} {good}]"),
        format!("{good}\n, {good}"),
        format!("[{good},"),
        format!("{good}\n{{\"messages\": [}}\n{good}"),
        // Nothing tells to which conversation the message belongs.
        "{\"role\": \"user\", \"content\": \"a\"}\n{\"role\": \"assistant\", \"content\": \"b\", \"n\": 1e999}".to_string(),
    ];
    for text in broken {
        let project = Project::empty().file("a.json", &text);
        let output = run_import(&project, &["a.json", "-o", "out", "--skip-invalid"]);
        assert!(output.code == 2 && output.stderr.contains("a.json:"), "{text}: {output}");
        assert!(!project.workspace.path("out").exists(), "{text}");
    }
}

#[test]
fn truncates_long_error_lists() {
    let project = Project::empty().file("a.jsonl", &"7\n".repeat(50));
    let output = run_import(&project, &["a.jsonl", "-o", "out"]);
    output.assert_stderr(2, &["… and 30 mistakes more"]);
    assert_eq!(output.stderr.matches("this is not a conversation").count(), 20);
}

#[test]
fn keeps_existing_suite() {
    let project =
        Project::empty().file("a.json", &refund_conversation().to_string()).file("out/a.test.jsonl", "mine");
    run_import(&project, &["a.json", "-o", "out"]).assert_stderr(2, &["out/a.test.jsonl already exists"]);
    assert_eq!(project.workspace.read("out/a.test.jsonl"), "mine");
    assert_eq!(run_import(&project, &["a.json", "-o", "out", "--force"]).code, 0);
    replay(&project, "out/a.test.jsonl").assert_all_passed();
}

/// The first suite would be replayed on conversations of the second.
#[test]
fn keeps_recordings_of_another_import() {
    let conversation = |id: &str, answer: &str| json!({"id": id, "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": answer}]});
    let project = Project::empty()
        .file("a.json", &json!([conversation("new", "x"), conversation("same", "A")]).to_string())
        .file("b.json", &json!([conversation("other", "y"), conversation("same", "B")]).to_string())
        .file("copy.json", &conversation("same", "A").to_string());
    assert_eq!(run_import(&project, &["a.json", "-o", "out"]).code, 0);
    let files = || {
        let folder = std::fs::read_dir(project.workspace.path("out/recordings")).unwrap();
        let mut files: Vec<_> =
            folder.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap()).collect();
        files.sort();
        files
    };
    let before = files();
    run_import(&project, &["b.json", "-o", "out"]).assert_stderr(
        2,
        &["out/recordings/same--", "records another conversation with the id `same`", "pass --force"],
    );
    assert!(files() == before && !project.workspace.path("out/b.test.jsonl").exists());
    assert_eq!(run_import(&project, &["copy.json", "-o", "out"]).code, 0);
    assert_eq!(run_import(&project, &["b.json", "-o", "out", "--cases-only"]).code, 0);
    assert_eq!(files(), before);
    assert_eq!(run_import(&project, &["b.json", "-o", "out", "--force"]).code, 0);
    assert_ne!(files(), before);
}

#[test]
fn rejects_invalid_usage() {
    let project = Project::empty().file("a.json", &refund_conversation().to_string()).file("taken", "");
    for (args, code, words) in [
        (&["nowhere.json", "-o", "out"][..], 2, "cannot read nowhere.json"),
        (&[".", "-o", "out"], 2, "it is a folder"),
        (&["a.json"], 2, "--output"),
        (&["a.json", "-o", "out", "--expect", "none", "--writes", "x"], 2, "--expect none"),
        (&["a.json", "-o", "taken"], 3, "cannot write"),
    ] {
        let output = run_import(&project, args);
        assert!(output.code == code && output.stderr.contains(words), "{args:?}: {output}");
    }
}

#[test]
fn unknown_times_fail_time_assertions() {
    let shop = json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]);
    let mut project = Project::empty().file("shop.json", &json!({"id": "t", "messages": shop}).to_string());
    assert_eq!(run_import(&project, &["shop.json", "-o", "out"]).code, 0);
    let slow = "{ timing: { maxDurationMs: 60000 } }";
    for (script, turns) in [
        (format!("user.says('Hi'); evaluate(agent).toHold({slow});"), 1),
        (format!("user.says('Hi'); expect(conversation).toHold({slow});"), 1),
        (format!("user.says({{ user: 'Hi', assert: {slow} }});"), 0),
    ] {
        let imports = "import { it, user, agent, conversation, expect, evaluate } from 'hotseat';";
        project = project.file("out/a_test.ts", &format!("{imports}\nit('t', () => {{ {script} }});"));
        let tested = project.test(&["-n", "replay:out/recordings", "out/a_test.ts"]);
        let failure = tested.failure("t");
        assert_eq!(failure["kind"], "test_error", "{script}: {failure:#}");
        assert!(failure["message"].as_str().unwrap().contains("the times of this conversation are unknown"));
        assert_eq!(tested.case("t")["turns"].as_array().unwrap().len(), turns, "{script}");
    }
}

/// Expected calls are compared with calls before the first user message in linear time, and calls get their results, also if all
/// have one id: pairs would take minutes.
#[test]
fn many_early_calls_are_compared_in_linear_time() {
    const CALLS: usize = 40_000;
    let early: Vec<Value> = (0..CALLS)
        .map(|n| json!({"id": "c", "type": "function", "function": {"name": "load", "arguments": format!("{{\"id\": {n}}}")}}))
        .collect();
    let results = (0..CALLS).map(|_| json!({"role": "tool", "tool_call_id": "c", "content": "ok"}));
    let mut messages = vec![json!({"role": "assistant", "content": null, "tool_calls": early})];
    messages.extend(results);
    messages
        .extend([json!({"role": "user", "content": "hi"}), json!({"role": "assistant", "content": "Hi."})]);
    // Calls of other arguments stay, and one without arguments is any call.
    let mut expected: Vec<Value> =
        (0..CALLS - 1).rev().map(|n| json!({"name": "load", "arguments": {"id": n}})).collect();
    expected.extend([json!({"name": "load", "arguments": {"id": -1}}), json!({"name": "load"})]);
    let conversation = json!({"id": "many", "messages": messages, "expected_calls": expected});
    let project = Project::empty().file("early.json", &conversation.to_string());
    let begun = std::time::Instant::now();
    let output = run_import(&project, &["early.json", "-o", "out"]);
    assert!(output.stdout.contains("- 40000 expected calls not asserted"), "{output}");
    assert!(begun.elapsed().as_secs() < 30, "{:?}", begun.elapsed());
    let cases = cases(&project, "out/early.test.jsonl");
    assert_eq!(cases[0]["assert"][0]["calls"], json!([{"name": "load", "arguments": {"id": -1}}]));
}

/// Each call costs the same, whether its id is that of others or its result comes last: pairs would take minutes.
#[test]
fn many_calls_of_one_id_and_results_in_another_order_are_imported() {
    const CALLS: usize = 20_000;
    let call =
        |id: String| json!({"id": id, "type": "function", "function": {"name": "load", "arguments": "{}"}});
    let result = |id: String| json!({"role": "tool", "tool_call_id": id, "content": "ok"});
    let equal = (0..CALLS).map(|_| "c".to_string());
    let others = (0..CALLS).map(|n| format!("call_{n}"));
    let calls: Vec<Value> = equal.clone().chain(others.clone()).map(call).collect();
    let mut messages = vec![
        json!({"role": "user", "content": "hi"}),
        json!({"role": "assistant", "content": null, "tool_calls": calls}),
    ];
    messages.extend(equal.chain(others.rev()).map(result));
    let conversation = json!({"id": "many", "messages": messages, "expected_calls": []});
    let project = Project::empty().file("many.json", &conversation.to_string());
    let output = run_import(&project, &["many.json", "-o", "out"]);
    output.assert_code(0);
    assert!(!output.stdout.contains("result"), "{output}");
    let recordings = std::fs::read_dir(project.workspace.path("out/recordings")).unwrap();
    let recorded: String =
        recordings.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap()).collect();
    for id in [format!("c#{CALLS}"), "call_0".to_string()] {
        assert_eq!(recorded.matches(&format!("\"{id}\"")).count(), 2, "{id}");
    }
}

/// What the agent says and does before the first user message is history. What does not fit there is named.
#[test]
fn messages_before_the_first_user_message_become_history() {
    let call = |id: &str, name: &str, arguments: &str| {
        json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}},
        ]})
    };
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "ok"});
    let says = |role: &str, text: &str| json!({"role": role, "content": text});
    let conversations = [
        json!({"id": "calls", "messages": [
            says("assistant", "Welcome!"), call("c1", "load", "{\"id\": 7}"), result("c1"), says("user", "hi"),
            call("c2", "find", "{}"), result("c2"), says("assistant", "Found."),
        ], "expected_calls": [{"name": "load", "arguments": {"id": 7}}, {"name": "find", "arguments": {}}]}),
        json!({"id": "thought", "messages": [
            {"role": "assistant", "content": null, "reasoning_content": "A new user."}, says("user", "hi"), says("assistant", "Yes?"),
        ]}),
        json!({"id": "late", "messages": [
            call("c1", "load", "{\"id\":"), says("user", "hi"), result("c1"), says("assistant", "Yes?"),
        ]}),
    ];
    let project = Project::empty().file("early.json", &json!(conversations).to_string());
    let output = run_import(&project, &["early.json", "-o", "out"]);
    insta::assert_snapshot!(output.stdout, @r"
    3 conversations with 3 turns from early.json
    - 1 reasoning text before the first user message omitted
    - 1 tool call before the first user message imported without arguments: they are not valid JSON
    - 1 expected call not asserted: the agent made it before the first user message
    - 2 conversations: the data lists no expected calls, so nothing is asserted

    Next:
      hotseat test -n replay:out/recordings out/early.test.jsonl
    ");
    let cases = cases(&project, "out/early.test.jsonl");
    assert_eq!(cases[0]["messages"][0], says("assistant", "Welcome!"));
    assert_eq!(cases[0]["messages"].as_array().map(Vec::len), Some(3));
    assert_eq!(cases[0]["assert"][0]["calls"], json!([{"name": "find", "arguments": {}}]));
    assert_eq!(cases[1].get("messages"), None);
    assert_eq!(cases[2]["messages"][1], result("c1"));
    replay(&project, "out/early.test.jsonl").assert_all_passed();
}
