//! Case files in JSON: forms of a case, the requests they produce, how conversations continue or end, and
//! their reports.
use hotseat_testkit::agui::FakeRun;
use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest};
use serde_json::{Value, json};

use crate::common::{Project, echo, echo_agent};

/// Request bodies that the agent received.
fn request_bodies(agent: &FakeAgent) -> Vec<Value> {
    agent.requests().iter().map(|request| request.input().value().clone()).collect()
}

/// Messages of a request without their ids.
fn messages(request: &Value) -> Vec<Value> {
    let messages = request["messages"].as_array().expect("messages").iter().cloned();
    messages
        .map(|mut message| {
            message.as_object_mut().expect("a message").shift_remove("id");
            message
        })
        .collect()
}

/// Asserts that the file is rejected before any agent is contacted.
#[track_caller]
fn assert_rejected(file: &str, text: &str, words: &[&str]) {
    let project = Project::with_config("target:\n  endpoint: http://127.0.0.1:9/\n").file(file, text);
    let output = project.hotseat(&["test"]);
    assert_eq!(output.code, 2, "{output}");
    let stderr = output.stderr.split_whitespace().filter(|word| *word != "|").collect::<Vec<_>>().join(" ");
    for words in words {
        assert!(stderr.contains(words), "{words:?} is not in {output}");
    }
}

#[track_caller]
fn assert_case_rejected(case: Value, words: &str) {
    assert_rejected("a.test.json", &case.to_string(), &[words]);
}

// Files.

/// The samples of the documentation, verbatim.
const SAMPLES: &str = r#"// Simple string input
{"id": "T001", "input": "Hello", "assertions": [{"type": "contains", "value": "said"}]}

// Equivalent to array format
{
  "id": "T002",
  "name": "Expense submission - final confirmation",
  "input": [
    {
      "role": "user",
      "content": "I want to submit an expense"
    },
    {
      "role": "assistant",
      "content": "What type of expense would you like to submit?"
    },
    {
      "role": "user",
      "content": "Yes, confirm"
    }
  ],
  "assertions": [
    {
      "type": "contains",
      "value": "confirm"
    }
  ]
}
/* Two on one line. */
{"id": "T003", "type": "single_turn", "turns": [{"input": "Hello"}]} {"id": "T004", "turns": [{"input": "a"}, {"input": "b"}]}
"#;

#[test]
fn stream_list_and_wrapped_list_are_equivalent() {
    let agent = echo_agent();
    let list = "[{\"id\": \"T001\", \"input\": \"a\"},\n // second\n {\"id\": \"T002\", \"input\": \"b\"}]";
    let project = Project::with_agent(&agent)
        .file("stream.test.jsonl", SAMPLES)
        .file("list.test.json", list)
        .file("wrapped.test.json", &format!("{{\"cases\": {list}}}"))
        .file("tests/other.jsonl", "{\"id\": \"not found by its name\", \"input\": \"x\"}")
        .suite("yaml", "id: T001\ninput: a\n");
    let output = project.hotseat(&["list"]);
    let listed: Vec<&str> = output.stdout.lines().collect();
    assert_eq!(
        listed,
        [
            "list.test.json:1 T001",
            "list.test.json:3 T002",
            "stream.test.jsonl:2 T001",
            "stream.test.jsonl:7 Expense submission - final confirmation",
            "stream.test.jsonl:30 T003",
            "stream.test.jsonl:30 T004",
            "wrapped.test.json:1 T001",
            "wrapped.test.json:3 T002",
            "yaml.test.yaml:1 T001",
        ],
        "{output}"
    );
    project.test(&[]).assert_all_passed();
    let named = project.hotseat(&["list", "tests/other.jsonl"]);
    assert_eq!(named.stdout, "tests/other.jsonl:1 not found by its name\n", "{named}");
}

#[test]
fn file_error_stops_run_and_reports_line() {
    let fine = "{\"id\": \"a\", \"input\": \"x\"}";
    assert_rejected(
        "a.test.jsonl",
        &format!("{fine}\n{{\"id\": \"b\", \"input\": }}\n{fine}"),
        &["a.test.jsonl:2:22", "the key `input` has no value", "duplicate case id `a` in this file"],
    );
    assert_rejected(
        "a.test.jsonl",
        &format!("{fine}\n{{\"id\": \"b\" \"input\": \"x\"}}"),
        &["a.test.jsonl:2:12", "`,` or `}` is missing"],
    );
    assert_rejected("a.test.json", "", &["no test cases found in a.test.json"]);
    assert_rejected("a.test.json", "{\"cases\": []}", &["no test cases found in a.test.json"]);
    assert_rejected("a.test.json", "{\"cases\": [], \"x\": 1}", &["`cases` must be the only key"]);
    assert_rejected("a.test.json", "[1]", &["this document must be a mapping, found the number 1"]);
    assert_rejected(
        "a.test.jsonl",
        "{\"id\": \"a\", \"id\": \"b\", \"input\": \"x\"}",
        &["the key `id` is written twice"],
    );
    assert_case_rejected(json!({"input": "x"}), "this case has neither `name` nor `id`");
    assert_case_rejected(
        json!({"id": 7, "input": "x"}),
        "`id` must be a text that is not empty, found the number 7",
    );
}

// User input.

#[test]
fn text_message_and_list_inputs_are_equivalent() {
    let agent = FakeAgent::start(echo);
    Project::with_agent(&agent)
        .cases(&[
            json!({"id": "text", "input": "x"}),
            json!({"id": "message", "input": {"role": "user", "content": "x"}}),
            json!({"id": "no role", "input": {"content": "x"}}),
            json!({"id": "list", "input": [{"role": "user", "content": "x"}]}),
            json!({"id": "parts", "input": {"content": [{"type": "text", "text": "x"}]}}),
            json!({"id": "turn", "turns": [{"input": "x"}]}),
            json!({"id": "yaml key", "turns": [{"user": "x"}]}),
            json!({"id": "message in turn", "turns": [{"input": {"role": "user", "content": "x"}}]}),
        ])
        .test(&[])
        .assert_all_passed();
    let sent = request_bodies(&agent);
    assert_eq!(sent.len(), 8);
    for request in &sent {
        assert_eq!(messages(request), [json!({"role": "user", "content": "x"})]);
    }
    let threads: std::collections::HashSet<String> =
        sent.iter().map(|sent| sent["threadId"].to_string()).collect();
    assert_eq!(threads.len(), 8, "each case has a conversation of its own");
}

#[test]
fn history_is_sent_unchanged_in_one_request() {
    let agent = FakeAgent::start(echo);
    let history = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": "No jokes."},
        {"role": "user", "name": "Ann", "content": "Book it"},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "book", "arguments": {"to": "Rome"}}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "{\"ok\": true}"},
        {"role": "assistant", "content": "Booked. Anything else?"},
        {"role": "user", "content": "No"},
    ]);
    let before: Vec<Value> = history.as_array().unwrap()[..6].to_vec();
    let tested = Project::with_agent(&agent).cases(&[
        json!({"id": "input", "input": history, "assertions": [{"type": "contains", "value": "No"}, {"type": "tool_called", "name": "book", "negate": true}]}),
        json!({"id": "messages", "messages": before, "turns": [{"input": "No"}, {"input": "Bye"}]}),
    ]).test(&[]);
    tested.assert_all_passed();
    let expected = [
        json!({"role": "system", "content": "Be brief."}),
        json!({"role": "developer", "content": "No jokes."}),
        json!({"role": "user", "content": "Book it", "name": "Ann"}),
        json!({"role": "assistant", "content": "", "toolCalls": [{"id": "c1", "type": "function", "function": {"name": "book", "arguments": "{\"to\":\"Rome\"}"}}]}),
        json!({"role": "tool", "content": "{\"ok\": true}", "toolCallId": "c1"}),
        json!({"role": "assistant", "content": "Booked. Anything else?"}),
        json!({"role": "user", "content": "No"}),
    ];
    let sent = request_bodies(&agent);
    assert_eq!(sent.len(), 3);
    let first: Vec<Vec<Value>> = sent.iter().map(messages).filter(|messages| messages.len() == 7).collect();
    assert_eq!(first, [expected.to_vec(), expected.to_vec()]);
    // History is not a turn, and its calls do not belong to this conversation.
    assert_eq!(tested.case("input")["total_turns"], 1);
    assert_eq!(tested.case("input")["input"], history);
    assert_eq!(tested.case("input")["output"], "You said: No");
}

/// Providers return null for what is not there, and people paste what they got.
#[test]
fn history_of_a_provider_may_contain_null_and_refusals() {
    let agent = FakeAgent::start(echo);
    let call = json!({"id": "c1", "type": "function", "function": {"name": "book", "arguments": "{\"to\":\"Rome\"}"}});
    let history = json!([
        {"role": "user", "content": "Book it"},
        {"role": "assistant", "content": null, "refusal": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "ok"},
        {"role": "assistant", "content": null, "refusal": "I cannot pay."},
        {"role": "user", "content": "Why?"},
    ]);
    Project::with_agent(&agent).cases(&[json!({"id": "a", "input": history})]).test(&[]).assert_all_passed();
    let sent = messages(&request_bodies(&agent)[0]);
    assert_eq!(sent[1]["toolCalls"], json!([call]));
    assert_eq!(sent[3], json!({"role": "assistant", "content": "I cannot pay."}));
    assert_case_rejected(
        json!({"id": "a", "input": [{"role": "assistant", "content": null}, {"content": "x"}]}),
        "message 0 has no `content`",
    );
    assert_case_rejected(
        json!({"id": "a", "input": [{"content": "x", "refusal": "y"}]}),
        "message 0 has `refusal`, which only assistant messages may have",
    );
}

#[test]
fn repeated_history_calls_are_not_counted() {
    let agent = FakeAgent::with_run(|run, request| {
        let mut all = request.input().messages().to_vec();
        all.push(json!({"id": "a", "role": "assistant", "content": "Done."}));
        run.messages_snapshot(all).finished()
    });
    let history = json!([
        {"role": "user", "content": "Book it"},
        {"role": "assistant", "tool_calls": [{"id": "c1", "name": "book", "arguments": "{}"}]},
        {"role": "tool", "tool_call_id": "c1", "content": "ok"},
        {"role": "user", "content": "Thanks"},
    ]);
    let tested = Project::with_agent(&agent).cases(&[
        json!({"id": "a", "input": history, "assertions": [{"type": "tool_sequence", "calls": []}, {"type": "equals", "value": "Done."}]}),
    ]).test(&[]);
    tested.assert_all_passed();
}

#[test]
fn rejects_invalid_inputs() {
    assert_case_rejected(
        json!({"id": "a", "input": 7}),
        "`input` must be text, a mapping or a list that is not empty, found the number 7",
    );
    assert_case_rejected(
        json!({"id": "a", "input": [1]}),
        "an entry of `input` must be a mapping, found the number 1",
    );
    assert_case_rejected(json!({"id": "a", "input": []}), "found an empty list");
    assert_case_rejected(json!({"id": "a", "input": [{"role": "user"}]}), "message 0 has no `content`");
    assert_case_rejected(
        json!({"id": "a", "input": [{"role": "robot", "content": "x"}]}),
        "`role` must be `system`, `developer`, `user`, `assistant` or `tool`",
    );
    assert_case_rejected(
        json!({"id": "a", "input": [{"role": "assistant", "content": "x"}]}),
        "the last message of `input` must have the role `user`",
    );
    assert_case_rejected(
        json!({"id": "a", "input": [{"role": "tool", "content": "x"}, {"content": "y"}]}),
        "message 0 is a tool result without `tool_call_id`",
    );
    assert_case_rejected(
        json!({"id": "a", "input": "x", "turns": [{"input": "y"}]}),
        "`input` and `turns` both define the first user input",
    );
    assert_case_rejected(
        json!({"id": "a", "turns": [{"input": "x"}, {"assertions": [{"type": "contains", "value": "x"}]}]}),
        "an entry of `turns` has no `user` or `input`",
    );
    assert_case_rejected(
        json!({"id": "a", "turns": [{"input": "x", "user": "y"}]}),
        "are two spellings of one key",
    );
    assert_case_rejected(
        json!({"id": "a", "turns": [{"input": {"role": "assistant", "content": "x"}}]}),
        "the message of a turn must have the role `user`",
    );
    assert_case_rejected(
        json!({"id": "a", "type": "multiturn", "input": "x"}),
        "`type` must be `single_turn` or `multi_turn`",
    );
    assert_case_rejected(
        json!({"id": "a", "type": "single_turn", "turns": [{"input": "x"}, {"input": "y"}]}),
        "there are 2 turns, but `type` allows only one",
    );
    for (key, source) in [
        ("simulator", json!({"use": "scripts:a.b"})),
        ("simulate", json!({"goal": "x", "use": "scripts:a.b"})),
        ("interactive", json!({"enabled": true})),
    ] {
        assert_case_rejected(
            json!({"id": "a", "type": "single_turn", "input": "x", key: source}),
            &format!("`{key}` adds turns, but `type` allows only one"),
        );
    }
    assert_case_rejected(
        json!({"id": "a", "input": "x", "before": "env_test.Before"}),
        "or use a script function; looked for env_test.ts",
    );
    assert_case_rejected(
        json!({"id": "a", "input": "x", "max_turns": 0}),
        "`max_turns` must be a whole number",
    );
    assert_case_rejected(
        json!({"id": "a", "max_turns": 1, "turns": [{"input": "x"}, {"input": "y"}]}),
        "there are 2 turns, but `max_turns` is 1",
    );
    for (timeout, words) in [
        (json!(30), "`timeout` must be a duration such as `30s`, found the number 30"),
        (json!(30), "write `30s` to mean seconds, or `30ms` to mean milliseconds"),
        (json!("30"), "invalid duration: a number needs a unit: write 30s for seconds"),
        (
            json!("soon"),
            "invalid duration: expected numbers with the units h, m, s and ms, such as 500ms, 30s or 1m30s, at most one week (168h)",
        ),
        (json!("0s"), "invalid duration: it must be more than zero and at most one week (168h)"),
        (json!("200h"), "invalid duration: it must be more than zero and at most one week (168h)"),
    ] {
        assert_case_rejected(json!({"id": "a", "input": "x", "timeout": timeout}), words);
        assert_case_rejected(json!({"id": "a", "input": "x", "interactive": {"timeout": timeout}}), words);
    }
    assert_case_rejected(
        json!({"id": "a", "input": "x", "timeout": "30s", "timeout_ms": 5}),
        "`timeout` and `timeout_ms` set the same limit",
    );
    assert_case_rejected(
        json!({"id": "a", "input": "x", "on_missing_input": "stop"}),
        "`on_missing_input` must be `skip`, `fail` or `end`",
    );
}

#[test]
fn sends_attachments_per_adapter() {
    let agent = FakeAgent::start(echo);
    let cases = [
        json!({"id": "input", "input": [{"role": "user", "content": [
            {"type": "text", "text": "What's in this receipt?"},
            {"type": "image", "source": "file://./fixtures/receipt.jpg"},
        ]}]}),
        json!({"id": "turn", "turns": [
            {"input": "Here", "attachments": [
                {"type": "image", "source": "file://./tests/fixtures/receipt.jpg", "name": "r.jpg"},
                {"type": "file", "source": "file://fixtures/notes.txt"},
                {"type": "audio", "url": "https://example.com/a.mp3", "mimeType": "audio/mpeg"},
            ]},
            {"input": "The amount is $150"},
        ]}),
        json!({"id": "encoded", "input": {"content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]}}),
        json!({"id": "missing", "input": {"content": [{"type": "image", "source": "file://nowhere.png"}]}}),
    ];
    let lines: Vec<String> = cases.iter().map(Value::to_string).collect();
    let project = Project::with_agent(&agent)
        .file("tests/a.test.jsonl", &lines.join("\n"))
        .file("tests/fixtures/receipt.jpg", "JPEG")
        .file("tests/fixtures/notes.txt", "notes");
    let tested = project.test(&["--parallel", "1"]);
    let sent: Vec<Vec<Value>> = request_bodies(&agent).iter().map(messages).collect();
    let image = json!({"type": "data", "value": "SlBFRw==", "mimeType": "image/jpeg"});
    assert_eq!(
        sent[0],
        [json!({"role": "user", "content": [
            {"type": "text", "text": "What's in this receipt?"},
            {"type": "image", "source": image, "metadata": {"filename": "receipt.jpg"}},
        ]})]
    );
    assert_eq!(
        sent[1],
        [json!({"role": "user", "content": [
            {"type": "text", "text": "Here"},
            {"type": "image", "source": image, "metadata": {"filename": "r.jpg"}},
            {"type": "document", "source": {"type": "data", "value": "bm90ZXM=", "mimeType": "text/plain"}, "metadata": {"filename": "notes.txt"}},
            {"type": "audio", "source": {"type": "url", "value": "https://example.com/a.mp3", "mimeType": "audio/mpeg"}},
        ]})]
    );
    assert_eq!(sent[2][2], json!({"role": "user", "content": "The amount is $150"}));
    assert_eq!(
        sent[3][0]["content"][0]["source"],
        json!({"type": "data", "value": "AAAA", "mimeType": "image/png"})
    );
    assert_eq!(sent.len(), 4, "for a file that is missing nothing is sent");
    assert!(tested.output.stdout.contains("no such file: nowhere.png; tried "), "{}", tested.output);
    assert_eq!(tested.failure("missing")["kind"], "test_error");
    assert_eq!(tested.case("turn")["turns"][0]["notes"][0], "attached: r.jpg");

    for (part, words) in [
        (json!({"type": "image"}), "has no `source`"),
        (json!({"type": "image", "source": "receipt.jpg"}), "invalid address of an attachment"),
        (json!({"type": "image", "source": "file://"}), "`file://` needs a path"),
        (json!({"type": "image", "source": "data:image/png,xyz"}), "the content of `data:` is not base64"),
        (
            json!({"type": "image", "source": "data:image/png;base64,!!!"}),
            "the content of `data:` is not base64",
        ),
        (json!({"type": "picture", "source": "file://x"}), "`type` must be one of `text`, `image`"),
    ] {
        assert_case_rejected(json!({"id": "a", "input": {"content": [part]}}), words);
    }
}

#[test]
fn a_folder_is_no_attachment() {
    let agent = FakeAgent::start(echo);
    let attached = json!({"type": "document", "source": "file://receipts"});
    let case = json!({"id": "a", "turns": [{"input": "hi", "attachments": [attached]}]});
    let project = Project::with_agent(&agent).file("receipts/a.txt", "a");
    let tested = project.file("a.test.json", &case.to_string()).test(&[]);
    tested.assert_failure("a", "test_error", &["receipts is a folder; an attachment is a file"]);
    let project = Project::with_agent(&agent);
    let tested = project.file("a.test.json", &case.to_string().replace("receipts", "/dev/null")).test(&[]);
    tested.assert_failure("a", "test_error", &["/dev/null is a device or a pipe; an attachment is a file"]);
}

#[test]
fn turn_options_extend_case_options() {
    let agent = FakeAgent::start(echo);
    let case = json!({"id": "a", "options": {"connector": "one", "metadata": {"scenario": "x", "level": 1}},
        "turns": [{"input": "1"}, {"input": "2", "options": {"connector": "two", "metadata": {"level": 2}}}, {"input": "3"}]});
    let project =
        Project::with_config(&format!("target:\n  endpoint: {agent}\n  forwardedProps: {{ tenant: T }}\n"));
    project.file("a.test.json", &case.to_string()).test(&[]).assert_all_passed();
    let forwarded: Vec<Value> =
        request_bodies(&agent).into_iter().map(|sent| sent["forwardedProps"].clone()).collect();
    let one =
        json!({"tenant": "T", "options": {"connector": "one", "metadata": {"scenario": "x", "level": 1}}});
    let two =
        json!({"tenant": "T", "options": {"connector": "two", "metadata": {"scenario": "x", "level": 2}}});
    assert_eq!(forwarded, [one.clone(), two, one]);
}

// Continuing a conversation.

/// An agent that answers by the user text, from a table.
fn scripted(script: &'static [(&'static str, &'static str)]) -> FakeAgent {
    FakeAgent::with_run(move |run, request| {
        let said = request.last_user_text();
        let answer = script.iter().find(|(user, _)| *user == said).map_or("Fine.", |(_, answer)| answer);
        run.text(answer).finished()
    })
}

#[test]
fn agent_still_waiting_after_last_turn() {
    let agent = scripted(&[
        ("buy", "This requires manager approval. Please provide PO number."),
        ("pay", "Paid. Reference: EXP-1."),
    ]);
    let asks = |id: &str, more: Value| {
        let mut case = json!({"id": id, "turns": [{"input": "buy"}], "final_assertions": [{"type": "contains", "value": "approval"}]});
        for (key, value) in more.as_object().unwrap() {
            case[key] = value.clone();
        }
        case
    };
    let tested = Project::with_agent(&agent).cases(&[
        asks("multi", json!({"type": "multi_turn"})),
        asks("skip", json!({"on_missing_input": "skip"})),
        asks("fail", json!({"on_missing_input": "fail"})),
        asks("end", json!({"type": "multi_turn", "on_missing_input": "end"})),
        asks(
            "end fails",
            json!({"type": "multi_turn", "on_missing_input": "end", "final_assertions": [{"type": "contains", "value": "nowhere"}]}),
        ),
        asks("plain", json!({})),
        asks("person", json!({"interactive": {"enabled": true}})),
        asks("nobody", json!({"interactive": {"enabled": false}})),
        json!({"id": "done", "type": "multi_turn", "turns": [{"input": "pay"}], "final_assertions": [{"type": "contains", "value": "EXP-1"}]}),
        json!({"id": "answered", "type": "multi_turn", "turns": [{"input": "buy"}, {"input": "pay"}]}),
        json!({"id": "nothing"}),
    ]).test(&[]);
    for (name, status, kind) in [
        ("multi", "skipped", ""),
        ("skip", "skipped", ""),
        ("fail", "failed", "no_input"),
        ("end", "passed", ""),
        ("end fails", "failed", "assertion"),
        ("plain", "passed", ""),
        ("person", "skipped", ""),
        ("nobody", "skipped", ""),
        ("done", "passed", ""),
        ("answered", "passed", ""),
        ("nothing", "failed", "no_input"),
    ] {
        let case = tested.case(name);
        assert_eq!(case["status"], status, "{name}: {case:#}");
        assert_eq!(case["error_kind"].as_str().unwrap_or_default(), kind, "{name}");
    }
    let skipped = tested.case("skip");
    assert_eq!(skipped["skip_reason"], "Agent awaiting input, no next turn defined");
    let turns = skipped["turns"].as_array().unwrap();
    let statuses: Vec<&Value> = turns.iter().map(|turn| &turn["status"]).collect();
    assert_eq!(statuses, ["passed", "skipped"], "held turns are recorded");
    assert_eq!(turns[1]["skip_reason"], skipped["skip_reason"]);
    assert_eq!(skipped["total_turns"], 1);
    assert_eq!(skipped.get("final_assertions"), None, "final assertions are not evaluated");
    assert_eq!(
        (&skipped["turns"][0]["awaiting_input"], &skipped["turns"][0]["awaiting_reason"]),
        (&json!(true), &json!("content_is_question"))
    );
    assert_eq!(tested.case("done")["turns"][0]["awaiting_reason"], "completed");
    assert_eq!(tested.case("fail")["error"], "Agent awaiting input, no next turn defined");
    assert_eq!(tested.case("nothing")["error"], "no initial input");
    let shown = &tested.output.stdout;
    for line in [
        "  ├─ Turn 2: SKIPPED",
        "Reason: Agent awaiting input, no next turn defined",
        "Agent asked: \"This requires manager approval. Please provide PO number.\"",
        "  └─ Result: SKIPPED",
    ] {
        assert!(shown.contains(line), "{line}\n{}", tested.output);
    }
}

#[test]
fn reports_waiting_agent() {
    let answers: &[(&str, Value, &str)] = &[
        ("declares", json!({"content": "The amount", "awaiting_input": true}), "agent_declared"),
        ("denies", json!({"content": "Anything else?", "awaiting_input": false}), "agent_declared_done"),
        ("needs", json!({"status": "need_input", "question": "Amount"}), "agent_declared"),
        ("asks", json!({"content": "How much?"}), "content_is_question"),
        ("done", json!({"content": "Submitted."}), "completed"),
    ];
    let agent = FakeAgent::with_run(|run, request| {
        let said = request.last_user_text();
        match said.as_str() {
            "tool" => run.tool("c", "ask_user", &json!({"q": "x"}), Some(json!("shown"))).finished(),
            "state" => run.state(json!({"awaiting_input": true})).text("Tell me.").finished(),
            other => run.text(other).finished(),
        }
    });
    let mut cases: Vec<Value> =
        answers.iter().map(|(id, answer, _)| json!({"id": id, "input": answer.to_string()})).collect();
    cases.push(json!({"id": "tool", "input": "tool"}));
    cases.push(json!({"id": "state", "input": "state"}));
    let tested = Project::with_agent(&agent).cases(&cases).test(&[]);
    let told = |id: &str| tested.case(id)["turns"][0]["awaiting_reason"].clone();
    for (id, _, reason) in answers {
        assert_eq!(told(id), *reason, "{id}");
    }
    assert_eq!(told("tool"), "tool_requires_confirmation");
    assert_eq!(told("state"), "agent_declared");

    let line = r#"{"type":"done","awaiting_input":true,"input_hint":"the amount"}"#;
    let target = "target: { type: command, command: [sh, agent.sh] }\n";
    let script =
        format!("read line\necho '{{\"type\":\"tool_call\",\"id\":\"1\",\"name\":\"a\"}}'\necho '{line}'\n");
    let suite = "name: hint\ntype: multi_turn\nturns: [{ input: go }]\n";
    let tested = Project::with_config(target).file("agent.sh", &script).suite("a", suite).test(&[]);
    assert!(tested.output.stdout.contains("Agent asked: \"the amount\""), "{}", tested.output);
}

#[test]
fn failed_turn_assertion_stops_conversation() {
    let agent = scripted(&[("1", "one"), ("2", "two"), ("3", "three")]);
    let turn = |input: &str, value: &str| json!({"input": input, "assertions": [{"type": "contains", "value": value}]});
    let tested = Project::with_agent(&agent).cases(&[
        json!({"id": "passes", "turns": [turn("1", "one"), turn("2", "two"), turn("3", "three")], "final_assertions": [{"type": "contains", "value": "three"}, {"type": "contains", "value": "one", "negate": true}]}),
        json!({"id": "fails", "turns": [turn("1", "two"), turn("2", "two")], "final_assertions": [{"type": "contains", "value": "two"}]}),
        json!({"id": "fails at the end", "turns": [turn("1", "one")], "final_assertions": [{"type": "contains", "value": "two"}]}),
    ]).test(&[]);
    assert_eq!(tested.case("passes")["status"], "passed");
    assert_eq!(tested.case("passes")["total_turns"], 3);
    let failed = tested.case("fails");
    assert_eq!((&failed["status"], &failed["total_turns"]), (&json!("failed"), &json!(1)));
    assert_eq!(
        failed["turns"][0]["assertion_errors"],
        json!(["expected the agent's text to contain \"two\", got \"one\""])
    );
    assert_eq!(failed.get("final_assertions"), None);
    let at_the_end = tested.case("fails at the end");
    assert_eq!(at_the_end["turns"][0]["status"], "passed");
    assert_eq!(at_the_end["final_assertions"][0]["passed"], false);
}

// Checkpoints.

fn checkpoint(id: &str, after: &[&str], value: &str) -> Value {
    json!({"id": id, "after": after, "assertion": {"type": "contains", "value": value}})
}

#[test]
fn checkpoints_follow_conversation_order() {
    let agent = scripted(&[("ab", "alpha beta"), ("a", "alpha"), ("b", "beta"), ("c", "gamma")]);
    let turns = |said: &[&str]| -> Vec<Value> { said.iter().map(|said| json!({"input": said})).collect() };
    let ordered = json!([checkpoint("second", &["first"], "beta"), checkpoint("first", &[], "alpha")]);
    let tested = Project::with_agent(&agent).cases(&[
        json!({"id": "same turn", "turns": turns(&["ab"]), "checkpoints": ordered}),
        json!({"id": "in order", "turns": turns(&["a", "c", "b"]), "checkpoints": ordered}),
        json!({"id": "wrong order", "turns": turns(&["b", "a"]), "checkpoints": ordered}),
        json!({"id": "again", "turns": turns(&["b", "a", "b"]), "checkpoints": ordered}),
        json!({"id": "optional", "turns": turns(&["a"]), "checkpoints": [
            checkpoint("first", &[], "alpha"),
            {"id": "extra", "required": false, "description": "nice to have", "assert": {"type": "contains", "value": "delta"}},
        ]}),
        json!({"id": "several at once", "turns": turns(&["a", "ab"]), "checkpoints": [
            {"id": "both", "assertion": [{"type": "contains", "value": "alpha"}, {"type": "contains", "value": "beta"}]},
        ]}),
        json!({"id": "and final", "turns": turns(&["a"]), "checkpoints": [checkpoint("first", &[], "alpha")], "final_assertions": [{"type": "contains", "value": "beta"}]}),
    ]).test(&[]);
    let reached = |case: &str| -> Vec<(String, Value)> {
        let all = tested.case(case)["checkpoints"].as_array().unwrap();
        all.iter()
            .map(|checkpoint| {
                (checkpoint["id"].as_str().unwrap().to_string(), checkpoint["reached_at_turn"].clone())
            })
            .collect()
    };
    let at = |second: Value, first: Value| vec![("second".to_string(), second), ("first".to_string(), first)];
    assert_eq!(reached("same turn"), at(json!(1), json!(1)));
    assert_eq!(reached("in order"), at(json!(3), json!(1)));
    assert_eq!(reached("wrong order"), at(Value::Null, json!(2)));
    assert_eq!(reached("again"), at(json!(3), json!(2)));
    for (case, status) in [
        ("same turn", "passed"),
        ("in order", "passed"),
        ("wrong order", "failed"),
        ("again", "passed"),
        ("optional", "passed"),
        ("several at once", "passed"),
        ("and final", "failed"),
    ] {
        assert_eq!(tested.case(case)["status"], status, "{case}\n{}", tested.output);
    }
    let wrong = tested.case("wrong order");
    assert_eq!(
        (&wrong["error"], &wrong["error_kind"]),
        (&json!("missing checkpoints: second"), &json!("missing_checkpoints"))
    );
    assert_eq!(wrong["failure"]["fault"], "agent");
    assert_eq!(wrong["checkpoints"][0]["passed"], false);
    let why = wrong["checkpoints"][0]["message"].as_str().unwrap();
    assert!(why.contains("in turn 2: expected the agent's text to contain \"beta\""), "{why}");
    let optional = &tested.case("optional")["checkpoints"][1];
    assert_eq!(
        (&optional["required"], &optional["passed"], &optional["description"]),
        (&json!(false), &json!(false), &json!("nice to have"))
    );
    assert_eq!(tested.case("several at once")["checkpoints"][0]["reached_at_turn"], 2);
    assert_eq!(tested.failure("and final")["kind"], "assertion");
    assert!(tested.output.stdout.contains("  └─ missing checkpoints: second\n"), "{}", tested.output);
}

/// Reading them takes time that grows with their number, and not with its square.
/// What nobody knows in one turn may be known in a later one.
#[test]
fn an_undecided_checkpoint_stays_open() {
    let agent = FakeAgent::with_run(|run, request| {
        let messages = request.input().messages().to_vec();
        let x: Value = serde_json::from_str(messages.last().unwrap()["content"].as_str().unwrap()).unwrap();
        run.tool("c", "a", &json!({"x": x}), Some(json!(1))).text("ok").finished()
    });
    let case = |id: &str, inputs: [&str; 2], required: bool| {
        let asserted = json!({"type": "tool_called", "name": "a", "where": {"x": {"at_least": 5}}});
        let checkpoint = json!({"id": "large", "required": required, "assertion": asserted});
        let next = json!({"id": "next", "required": required, "after": ["large"], "assertion": {"type": "contains", "value": "ok"}});
        json!({"id": id, "turns": [{"input": inputs[0]}, {"input": inputs[1]}], "checkpoints": [checkpoint, next]})
    };
    let cases = [
        case("later", ["null", "7"], true),
        case("never", ["null", "3"], true),
        case("optional", ["null", "3"], false),
        case("certain", ["2", "3"], true),
    ];
    let tested = Project::with_agent(&agent).cases(&cases).test(&[]);
    for id in ["later", "optional"] {
        assert_eq!(tested.case(id)["status"], "passed", "{id}: {}", tested.output);
    }
    let never = tested.failure("never");
    assert_eq!(never["kind"], "test_error", "{never:#}");
    let message = never["message"].as_str().unwrap();
    assert!(message.starts_with("checkpoint large failed: the argument `x` is"), "{message}");
    assert_eq!(tested.case("never")["turns"].as_array().unwrap().len(), 2);
    assert_eq!(tested.failure("certain")["kind"], "missing_checkpoints");
}

#[test]
fn a_case_may_have_thousands_of_checkpoints() {
    let chain = |last: &str| {
        let after = |number: usize| match number {
            0 => last.to_string(),
            number => format!("c{}", number - 1),
        };
        let all = (0..20_000).map(|number| {
            let after = Some(after(number)).filter(|name| !name.is_empty());
            json!({"id": format!("c{number}"), "after": after.into_iter().collect::<Vec<_>>(), "assertion": {"type": "contains", "value": "x"}})
        });
        json!({"id": "a", "input": "x", "checkpoints": all.collect::<Vec<_>>()}).to_string()
    };
    let project = Project::with_agent(&echo_agent());
    let project = project.file("a.test.json", &chain("")).file("b.test.json", &chain("c19999"));
    let listed = project.hotseat(&["list", "a.test.json"]);
    assert!(listed.stderr.ends_with("1 of 1 case in 1 suite\n"), "{listed}");
    let refused = project.hotseat(&["list", "b.test.json"]);
    assert!(
        refused.stderr.contains("these checkpoints depend on each other in a cycle: c0, c1, "),
        "{refused}"
    );
}

#[test]
fn rejects_unreachable_or_empty_checkpoints() {
    let case = |checkpoints: Value| json!({"id": "a", "input": "x", "checkpoints": checkpoints});
    let fine = checkpoint("a", &[], "x");
    assert_case_rejected(case(json!([fine, fine])), "duplicate checkpoint id `a`");
    assert_case_rejected(case(json!([checkpoint("a", &["b"], "x")])), "unknown checkpoint `b`");
    assert_case_rejected(
        case(json!([checkpoint("a", &["a"], "x")])),
        "these checkpoints depend on each other in a cycle: a",
    );
    assert_case_rejected(
        case(json!([fine, checkpoint("b", &["c"], "x"), checkpoint("c", &["b"], "x")])),
        "these checkpoints depend on each other in a cycle: b, c",
    );
    assert_case_rejected(case(json!([{"id": "a"}])), "has no `assertion`");
    assert_case_rejected(case(json!([{"id": "a", "assertion": {}}])), "this checkpoint asserts nothing");
    for prohibition in [
        json!({"type": "tool_called", "name": "refund", "negate": true}),
        json!({"type": "not_contains", "value": "error"}),
        json!({"tools": {"forbid": ["refund"]}}),
        json!({"type": "value", "of": "turn_count", "at_least": 1}),
        json!({"type": "satisfy", "criteria": "harmless"}),
        json!([{"type": "satisfy", "criteria": "harmless"}, {"type": "not_contains", "value": "error"}]),
    ] {
        let mut case = case(json!([{"id": "a", "assertion": prohibition}]));
        case["criteria"] = json!({"harmless": {"match": [{"type": "not_contains", "value": "refund"}]}});
        assert_case_rejected(case, "the checkpoint `a` is reached by a turn in which nothing happens");
    }
    let turn_count = |key: &str, number: u64| {
        case(json!([{"id": "a", "assertion": {"type": "value", "of": "turn_count", key: number}}]))
    };
    for (key, number) in [("equals", 2), ("at_least", 2), ("equals", 0), ("at_most", 0)] {
        let words = format!("no turn can reach the checkpoint `a`: it needs a `turn_count` of {number}");
        assert_case_rejected(turn_count(key, number), &words);
    }
    let mut longer = turn_count("equals", 3);
    longer["max_turns"] = json!(2);
    longer["type"] = json!("multi_turn");
    assert_case_rejected(longer, "the case has at most 2 turns");
    assert_case_rejected(
        case(json!([{"id": "a", "assertion": [{"type": "contain", "value": "x"}]}])),
        "did you mean `contains`?",
    );
    assert_case_rejected(
        case(json!([{"id": "a", "asserts": {"type": "contains", "value": "x"}}])),
        "did you mean",
    );
}

#[test]
fn a_checkpoint_may_name_a_criterion() {
    let criteria = json!({
        "booked": {"match": [{"type": "contains", "value": "alpha"}]},
        "harmless": {"match": [{"type": "not_contains", "value": "refund"}]},
    });
    let reached =
        |id: &str, criteria: Value| json!({"id": id, "assertion": {"type": "satisfy", "criteria": criteria}});
    let case = json!({
        "id": "a", "turns": [{"input": "a"}, {"input": "b"}], "criteria": criteria,
        "checkpoints": [
            reached("one", json!("booked")),
            reached("both", json!(["booked", "harmless"])),
            {"id": "late", "assertion": {"type": "value", "of": "turn_count", "at_least": 2}},
        ],
    });
    let agent = scripted(&[("a", "alpha"), ("b", "beta")]);
    Project::with_agent(&agent).cases(&[case]).test(&[]).assert_all_passed();
}

#[test]
fn console_shows_checkpoints() {
    let agent = scripted(&[("a", "alpha"), ("b", "beta")]);
    let case = json!({"id": "a", "name": "Coverage", "turns": [{"input": "a"}, {"input": "b"}], "checkpoints": [checkpoint("first", &[], "alpha"), checkpoint("second", &["first"], "beta")]});
    let tested = Project::with_agent(&agent).file("a.test.json", &case.to_string()).test(&["-v"]);
    tested.assert_all_passed();
    let lines: Vec<&str> =
        tested.output.stdout.lines().map(str::trim).filter(|line| line.contains("checkpoint")).collect();
    assert_eq!(lines[..2], ["│    ✓ checkpoint: first", "✓ checkpoint: second"], "{}", tested.output);
    assert!(lines[2].ends_with(" - 2 turns, 2/2 checkpoints"), "{}", tested.output);
}

// Reports.

#[test]
fn file_errors_use_documented_messages() {
    let agent = FakeAgent::start(|request: &FakeRequest| -> FakeReply {
        match request.last_user_text().as_str() {
            "hang" => FakeRun::for_request(request).started().hang().into(),
            "break" => FakeRun::for_request(request).started().error("model exploded", None).into(),
            _ => echo(request),
        }
    });
    let tested = Project::with_agent(&agent)
        .cases(&[
            json!({"id": "slow", "input": "hang", "timeout": "1s"}),
            json!({"id": "slow turn", "turns": [{"input": "hang", "timeout": "1s"}]}),
            json!({"id": "broken", "input": "break"}),
            json!({"id": "asserted", "input": "x", "assertions": [{"type": "contains", "value": "y"}]}),
        ])
        .test(&[]);
    for (id, error, kind) in [
        ("slow", "timeout after 1s", "timeout"),
        ("slow turn", "timeout after 1s", "timeout"),
        ("broken", "agent error: model exploded", "agent_error"),
        ("asserted", "expected the agent's text to contain \"y\", got \"You said: x\"", "assertion"),
    ] {
        let case = tested.case(id);
        assert_eq!((&case["error"], &case["error_kind"]), (&json!(error), &json!(kind)), "{case:#}");
    }
}

#[test]
fn result_lines_have_documented_members() {
    let agent = FakeAgent::with_run(|run, _| {
        run.tool(
            "c",
            "create_expense",
            &json!({"amount": 3500}),
            Some(json!({"expense": {"status": "submitted"}})),
        )
        .text("Please confirm?")
        .finished()
    });
    let case = json!({"id": "T001", "name": "Flow", "tags": ["smoke"], "metadata": {"owner": "ann"}, "turns": [
        {"input": "Business travel, $3500", "assertions": [{"type": "tool_called", "name": "create_expense"}]},
    ], "final_assertions": [{"type": "json_path", "path": "$.expense.status", "value": "submitted"}]});
    let project = Project::with_agent(&agent).file("a.test.json", &case.to_string());
    let output = project.hotseat(&["test", "-o", "r.jsonl"]);
    assert_eq!(output.code, 0, "{output}");
    let text = std::fs::read_to_string(project.workspace.path("r.jsonl")).unwrap();
    let result: Value = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .find(|line| line["type"] == "result")
        .unwrap();
    for (path, expected) in [
        ("/id", json!("T001")),
        ("/name", json!("Flow")),
        ("/status", json!("passed")),
        ("/tags", json!(["smoke"])),
        ("/metadata/owner", json!("ann")),
        ("/total_turns", json!(1)),
        ("/turns/0/turn", json!(1)),
        ("/turns/0/input", json!("Business travel, $3500")),
        ("/turns/0/input_source", json!("static")),
        ("/turns/0/output", json!("Please confirm?")),
        ("/turns/0/tool_calls/0/name", json!("create_expense")),
        ("/turns/0/tool_calls/0/args", json!({"amount": 3500})),
        ("/turns/0/awaiting_input", json!(true)),
        ("/turns/0/assertions/0/type", json!("tool_called")),
        ("/turns/0/assertions/0/name", json!("create_expense")),
        ("/turns/0/assertions/0/passed", json!(true)),
        ("/final_assertions/0/type", json!("json_path")),
        ("/final_assertions/0/path", json!("$.expense.status")),
        ("/final_assertions/0/value", json!("submitted")),
        ("/final_assertions/0/passed", json!(true)),
    ] {
        assert_eq!(result.pointer(path), Some(&expected), "{path}\n{result:#}");
    }
    assert!(result["duration_ms"].is_number() && result["turns"][0]["duration_ms"].is_number());
}

#[test]
fn yaml_and_json_support_the_same_features() {
    let agent = FakeAgent::with_run(|run, _| {
        run.tool("c", "pay", &json!({"amount": 3}), Some(json!("approved"))).text("Paid.").finished()
    });
    let yaml = r#"
name: in yaml
id: Y
tags: [smoke]
timeout: 30s
messages:
  - { role: user, content: Hi }
  - { role: assistant, content: Hello }
turns:
  - input: pay
    assertions:
      - { type: tool_called, name: pay, arguments: { amount: 3 } }
      - { type: schema, path: "$", schema: { type: string }, negate: true, message: no }
    evaluate: { type: contains, value: "!" }
checkpoints:
  - { id: paid, assertion: { tools: { require: [{ name: pay, result_match: approved }] } } }
final_assertions: { type: contains, value: Paid }
"#;
    let json = json!({
        "name": "in json",
        "hooks": [{"cmd": ["echo", "{\"AMOUNT\": \"3\"}"]}],
        "turns": [{"user": "pay", "assert": {"tools": {"require": [{"name": "pay", "args_match": {"amount": "^${AMOUNT}$"}}]}}}],
        "assert": {"timing": {"max_duration_ms": 60000}, "text": {"must_match": "Paid"}},
    });
    let tested =
        Project::with_agent(&agent).suite("a", yaml).file("b.test.json", &json.to_string()).test(&[]);
    assert_eq!(tested.case("in json")["status"], "passed", "{}", tested.output);
    let case = tested.case("in yaml");
    // The answer contains no JSON for the schema check, so that one fails; all others pass.
    let turn = &case["turns"][0]["assertions"];
    assert_eq!(
        (&turn[0]["passed"], &turn[1]["passed"], &turn[2]["passed"]),
        (&json!(true), &json!(false), &json!(false))
    );
    assert_eq!(case["turns"][0]["assertion_errors"], json!(["no"]));
    assert_eq!(case["checkpoints"][0]["passed"], true);
}

/// The complete multi-turn sample of the documentation, which uses every feature of a case.
#[test]
fn full_sample_suite_runs() {
    let sample = r#"{
  "id": "T001",
  "name": "Expense Reimbursement Flow",
  "type": "multi_turn",
  "options": {
    "connector": "openai-gpt4",
    "skip": {
      "history": true
    },
    "metadata": {
      "test_scenario": "happy-path"
    }
  },
  "turns": [
    {
      "input": "I want to submit an expense report",
      "assertions": [
        {
          "type": "contains",
          "value": "type of expense"
        }
      ]
    },
    {
      "input": "Business travel to Beijing, flight $2000, hotel $1500",
      "assertions": [
        {
          "type": "tool_called",
          "name": "create_expense"
        }
      ]
    },
    {
      "input": "Yes, confirm",
      "assertions": [
        {
          "type": "contains",
          "value": "submitted"
        }
      ]
    }
  ],
  "simulator": {
    "use": "agents:workers.test.user-simulator",
    "options": {
      "metadata": {
        "persona": "New employee unfamiliar with expense process",
        "goal": "Submit a $3500 travel expense",
        "max_turns": 10
      }
    }
  },
  "interactive": {
    "enabled": false,
    "timeout": "5m"
  },
  "on_missing_input": "skip",
  "final_assertions": [
    {
      "type": "json_path",
      "path": "$.expense.status",
      "value": "submitted"
    }
  ]
}"#;
    let agent = FakeAgent::with_run(|run, request| match request.user_texts().len() {
        1 => run.text("What type of expense would you like to submit?").finished(),
        2 => run
            .tool(
                "c1",
                "create_expense",
                &json!({"amount": 3500, "type": "travel"}),
                Some(json!({"expense": {"status": "draft"}})),
            )
            .finished(),
        _ => run
            .tool("c2", "submit_expense", &json!({}), Some(json!({"expense": {"status": "submitted"}})))
            .text("Expense submitted. Reference: EXP-2025-001")
            .finished(),
    });
    let simulator = FakeAgent::start(echo);
    let agents = format!(
        "target: {{ endpoint: '{agent}' }}\nagents:\n  workers.test.user-simulator: {{ endpoint: '{simulator}' }}\n"
    );
    let tested = Project::with_config(&agents).file("a.test.jsonl", sample).test(&[]);
    tested.assert_all_passed();
    assert_eq!(simulator.requests().len(), 0, "the agent waits for nothing");
    let turns = tested.case("Expense Reimbursement Flow")["turns"].as_array().unwrap().clone();
    let awaiting: Vec<bool> = turns.iter().map(|turn| turn["awaiting_input"].as_bool().unwrap()).collect();
    assert_eq!(awaiting, [true, false, false]);
    assert_eq!(turns[1]["output"], Value::Null);
}

/// Nobody answers the agent, so the case is skipped, unless the agent has done what it must not.
#[test]
fn a_violated_prohibition_is_not_skipped() {
    let agent = FakeAgent::with_run(|run, _| {
        run.tool("c", "refund", &json!({}), Some(json!("paid")))
            .text("The password is 1. Shall I go on?")
            .finished()
    });
    let case = |id: &str, key: &str, assertion: Value| json!({"id": id, "type": "multi_turn", "turns": [{"input": "hi"}], key: assertion});
    let violated = [
        ("final", "final_assertions", json!({"tools": {"forbid": ["refund"]}})),
        ("sequence", "assert", json!({"type": "tool_sequence", "calls": []})),
        (
            "strict",
            "assert",
            json!({"type": "tool_sequence", "order": "strict", "calls": ["look", "refund"]}),
        ),
        ("text", "assert", json!({"type": "not_contains", "value": "password", "turns": "all"})),
        (
            "pattern",
            "assert",
            json!({"type": "regex", "pattern": "password", "negate": true, "turns": "all"}),
        ),
    ];
    let open = case(
        "open",
        "assert",
        json!({"type": "tool_sequence", "order": "strict", "calls": ["refund", "look"]}),
    );
    let cases: Vec<Value> =
        violated.iter().map(|(id, key, assertion)| case(id, key, assertion.clone())).chain([open]).collect();
    let tested = Project::with_agent(&agent).cases(&cases).test(&[]);
    for (id, ..) in &violated {
        assert_eq!(tested.failure(id)["kind"], "assertion", "{id}: {}", tested.output);
    }
    assert_eq!(tested.case("open")["status"], "skipped", "{}", tested.output);
}

#[test]
fn empty_variables_skip_no_case() {
    for value in ["", "0", "no"] {
        let project = Project::with_agent(&echo_agent())
            .file(".env", &format!("BROKEN=\"{value}\"\n"))
            .suite("a.test.yaml", "name: x\nskip: '${ENV.BROKEN}'\nturns: [{ user: hi }]\n");
        let output = project.hotseat(&["test", "--no-store"]);
        assert!(output.code == 2 && output.stderr.contains("would skip the case"), "{value}: {output}");
    }
}
