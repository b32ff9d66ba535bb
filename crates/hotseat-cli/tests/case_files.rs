//! Case files in JSON: the forms of a case, what is sent for it, how a conversation goes on or ends, and what reports
//! hold of it.
#![cfg(unix)]

mod common;

use hotseat_testkit::agui::Run;
use hotseat_testkit::{FakeAgent, Reply, Request};
use serde_json::{Value, json};

use common::{Project, Tested, echo, echo_agent};

/// Runs cases, one JSON value to a line.
#[track_caller]
fn held(agent: &FakeAgent, cases: &[Value]) -> Tested {
    let lines: Vec<String> = cases.iter().map(Value::to_string).collect();
    Project::of(agent).file("a.test.jsonl", &lines.join("\n")).test(&[])
}

/// What is sent to the agent, request by request.
fn sent(agent: &FakeAgent) -> Vec<Value> {
    agent.requests().iter().map(|request| request.input().value().clone()).collect()
}

/// The messages of a request without their ids.
fn messages(request: &Value) -> Vec<Value> {
    let messages = request["messages"].as_array().expect("messages").iter().cloned();
    messages
        .map(|mut message| {
            message.as_object_mut().expect("a message").shift_remove("id");
            message
        })
        .collect()
}

/// Refused before anything is contacted.
#[track_caller]
fn refused(file: &str, text: &str, words: &[&str]) {
    let project = Project::with("target:\n  endpoint: http://127.0.0.1:9/\n").file(file, text);
    let output = project.hotseat(&["test"]);
    assert_eq!(output.code, 2, "{output}");
    let stderr = output.stderr.split_whitespace().filter(|word| *word != "|").collect::<Vec<_>>().join(" ");
    for words in words {
        assert!(stderr.contains(words), "{words:?} is not in {output}");
    }
}

#[track_caller]
fn refused_case(case: Value, words: &str) {
    refused("a.test.json", &case.to_string(), &[words]);
}

// Files.

/// The samples of the documents, as they are printed there.
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
fn a_stream_a_list_and_a_wrapped_list_hold_the_same_cases() {
    let agent = echo_agent();
    let list = "[{\"id\": \"T001\", \"input\": \"a\"},\n // second\n {\"id\": \"T002\", \"input\": \"b\"}]";
    let project = Project::of(&agent)
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
    project.test(&[]).all_passed();
    let named = project.hotseat(&["list", "tests/other.jsonl"]);
    assert_eq!(named.stdout, "tests/other.jsonl:1 not found by its name\n", "{named}");
}

#[test]
fn a_mistake_stops_everything_and_has_its_line() {
    let fine = "{\"id\": \"a\", \"input\": \"x\"}";
    refused(
        "a.test.jsonl",
        &format!("{fine}\n{{\"id\": \"b\", \"input\": }}\n{fine}"),
        &["a.test.jsonl:2:22", "the key `input` has no value", "another case in this file is called `a`"],
    );
    refused(
        "a.test.jsonl",
        &format!("{fine}\n{{\"id\": \"b\" \"input\": \"x\"}}"),
        &["a.test.jsonl:2:12", "`,` or `}` is missing"],
    );
    refused("a.test.json", "", &["no test cases found in a.test.json"]);
    refused("a.test.json", "{\"cases\": []}", &["no test cases found in a.test.json"]);
    refused("a.test.json", "{\"cases\": [], \"x\": 1}", &["beside `cases` there is no other key"]);
    refused("a.test.json", "[1]", &["this document must be a mapping, found the number 1"]);
    refused(
        "a.test.jsonl",
        "{\"id\": \"a\", \"id\": \"b\", \"input\": \"x\"}",
        &["the key `id` is written twice"],
    );
    refused_case(json!({"input": "x"}), "this case has neither `name` nor `id`");
    refused_case(json!({"id": 7, "input": "x"}), "`id` must be a text that is not empty, found the number 7");
}

// What the user says.

#[test]
fn input_as_text_message_and_list_are_one_request() {
    let agent = FakeAgent::start(echo);
    held(
        &agent,
        &[
            json!({"id": "text", "input": "x"}),
            json!({"id": "message", "input": {"role": "user", "content": "x"}}),
            json!({"id": "no role", "input": {"content": "x"}}),
            json!({"id": "list", "input": [{"role": "user", "content": "x"}]}),
            json!({"id": "parts", "input": {"content": [{"type": "text", "text": "x"}]}}),
            json!({"id": "turn", "turns": [{"input": "x"}]}),
            json!({"id": "yaml key", "turns": [{"user": "x"}]}),
            json!({"id": "message in turn", "turns": [{"input": {"role": "user", "content": "x"}}]}),
        ],
    )
    .all_passed();
    let sent = sent(&agent);
    assert_eq!(sent.len(), 8);
    for request in &sent {
        assert_eq!(messages(request), [json!({"role": "user", "content": "x"})]);
    }
    let threads: std::collections::HashSet<String> =
        sent.iter().map(|sent| sent["threadId"].to_string()).collect();
    assert_eq!(threads.len(), 8, "each case has a conversation of its own");
}

#[test]
fn a_history_is_sent_unchanged_in_one_request() {
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
    let tested = held(
        &agent,
        &[
            json!({"id": "input", "input": history, "assertions": [{"type": "contains", "value": "No"}, {"type": "tool_called", "name": "book", "negate": true}]}),
            json!({"id": "messages", "messages": before, "turns": [{"input": "No"}, {"input": "Bye"}]}),
        ],
    );
    tested.all_passed();
    let expected = [
        json!({"role": "system", "content": "Be brief."}),
        json!({"role": "developer", "content": "No jokes."}),
        json!({"role": "user", "content": "Book it", "name": "Ann"}),
        json!({"role": "assistant", "content": "", "toolCalls": [{"id": "c1", "type": "function", "function": {"name": "book", "arguments": "{\"to\":\"Rome\"}"}}]}),
        json!({"role": "tool", "content": "{\"ok\": true}", "toolCallId": "c1"}),
        json!({"role": "assistant", "content": "Booked. Anything else?"}),
        json!({"role": "user", "content": "No"}),
    ];
    let sent = sent(&agent);
    assert_eq!(sent.len(), 3);
    let first: Vec<Vec<Value>> = sent.iter().map(messages).filter(|messages| messages.len() == 7).collect();
    assert_eq!(first, [expected.to_vec(), expected.to_vec()]);
    // What was said before is no turn, and its calls are none of this conversation.
    assert_eq!(tested.case("input")["total_turns"], 1);
    assert_eq!(tested.case("input")["input"], history);
    assert_eq!(tested.case("input")["output"], "You said: No");
}

#[test]
fn calls_of_a_history_do_not_count_when_a_snapshot_repeats_them() {
    let agent = FakeAgent::start(|request: &Request| {
        let mut all = request.input().messages().to_vec();
        all.push(json!({"id": "a", "role": "assistant", "content": "Done."}));
        Run::of(request).started().messages_snapshot(all).finished()
    });
    let history = json!([
        {"role": "user", "content": "Book it"},
        {"role": "assistant", "tool_calls": [{"id": "c1", "name": "book", "arguments": "{}"}]},
        {"role": "tool", "tool_call_id": "c1", "content": "ok"},
        {"role": "user", "content": "Thanks"},
    ]);
    let tested = held(
        &agent,
        &[
            json!({"id": "a", "input": history, "assertions": [{"type": "tool_sequence", "calls": []}, {"type": "equals", "value": "Done."}]}),
        ],
    );
    tested.all_passed();
}

#[test]
fn what_is_no_input_is_refused() {
    refused_case(
        json!({"id": "a", "input": 7}),
        "`input` must be text, a mapping or a list that is not empty, found the number 7",
    );
    refused_case(
        json!({"id": "a", "input": [1]}),
        "an entry of `input` must be a mapping, found the number 1",
    );
    refused_case(json!({"id": "a", "input": []}), "found an empty list");
    refused_case(json!({"id": "a", "input": [{"role": "user"}]}), "message 0 has no `content`");
    refused_case(
        json!({"id": "a", "input": [{"role": "robot", "content": "x"}]}),
        "`role` must be `system`, `developer`, `user`, `assistant` or `tool`",
    );
    refused_case(
        json!({"id": "a", "input": [{"role": "assistant", "content": "x"}]}),
        "is what the agent answers, so it is the user's",
    );
    refused_case(
        json!({"id": "a", "input": [{"role": "tool", "content": "x"}, {"content": "y"}]}),
        "message 0 is the result of a tool, and has no `tool_call_id`",
    );
    refused_case(
        json!({"id": "a", "input": "x", "turns": [{"input": "y"}]}),
        "both say what the user says first",
    );
    refused_case(
        json!({"id": "a", "turns": [{"input": "x"}, {"assertions": [{"type": "contains", "value": "x"}]}]}),
        "an entry of `turns` has no `user` or `input`",
    );
    refused_case(json!({"id": "a", "turns": [{"input": "x", "user": "y"}]}), "are two spellings of one key");
    refused_case(
        json!({"id": "a", "turns": [{"input": {"role": "assistant", "content": "x"}}]}),
        "in a turn it is the user who speaks",
    );
    refused_case(
        json!({"id": "a", "type": "multiturn", "input": "x"}),
        "`type` must be `single_turn` or `multi_turn`",
    );
    refused_case(
        json!({"id": "a", "type": "single_turn", "turns": [{"input": "x"}, {"input": "y"}]}),
        "`type` says that there is one",
    );
    refused_case(
        json!({"id": "a", "input": "x", "before": "env_test.Before"}),
        "or functions of scripts; looked for env_test.ts",
    );
    refused_case(json!({"id": "a", "input": "x", "max_turns": 0}), "`max_turns` must be a whole number");
    refused_case(
        json!({"id": "a", "max_turns": 1, "turns": [{"input": "x"}, {"input": "y"}]}),
        "there are 2 turns, and `max_turns` is 1",
    );
    refused_case(json!({"id": "a", "input": "x", "timeout": "soon"}), "this is not a duration");
    refused_case(json!({"id": "a", "input": "x", "timeout": "0s"}), "this is not a duration");
    refused_case(
        json!({"id": "a", "input": "x", "timeout": "30s", "timeout_ms": 5}),
        "two spellings of one limit",
    );
    refused_case(
        json!({"id": "a", "input": "x", "on_missing_input": "stop"}),
        "`on_missing_input` must be `skip`, `fail` or `end`",
    );
}

#[test]
fn attachments_are_sent_where_they_belong() {
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
    let project = Project::of(&agent)
        .file("tests/a.test.jsonl", &lines.join("\n"))
        .file("tests/fixtures/receipt.jpg", "JPEG")
        .file("tests/fixtures/notes.txt", "notes");
    let tested = project.test(&["--parallel", "1"]);
    let sent: Vec<Vec<Value>> = sent(&agent).iter().map(messages).collect();
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
        (json!({"type": "image", "source": "receipt.jpg"}), "this is not the address of something attached"),
        (json!({"type": "image", "source": "file://"}), "`file://` names no file"),
        (json!({"type": "image", "source": "data:image/png,xyz"}), "is not in base64"),
        (json!({"type": "picture", "source": "file://x"}), "`type` must be one of `text`, `image`"),
    ] {
        refused_case(json!({"id": "a", "input": {"content": [part]}}), words);
    }
}

#[test]
fn options_go_with_each_turn_and_its_own_come_on_top() {
    let agent = FakeAgent::start(echo);
    let case = json!({"id": "a", "options": {"connector": "one", "metadata": {"scenario": "x", "level": 1}},
        "turns": [{"input": "1"}, {"input": "2", "options": {"connector": "two", "metadata": {"level": 2}}}, {"input": "3"}]});
    let project =
        Project::with(&format!("target:\n  endpoint: {}\n  forwardedProps: {{ tenant: T }}\n", agent.url()));
    project.file("a.test.json", &case.to_string()).test(&[]).all_passed();
    let forwarded: Vec<Value> = sent(&agent).into_iter().map(|sent| sent["forwardedProps"].clone()).collect();
    let one =
        json!({"tenant": "T", "options": {"connector": "one", "metadata": {"scenario": "x", "level": 1}}});
    let two =
        json!({"tenant": "T", "options": {"connector": "two", "metadata": {"scenario": "x", "level": 2}}});
    assert_eq!(forwarded, [one.clone(), two, one]);
}

// How a conversation goes on.

/// An agent that answers what a script says, by what the user says.
fn scripted(script: &'static [(&'static str, &'static str)]) -> FakeAgent {
    FakeAgent::start(move |request: &Request| {
        let said = request.last_user_text();
        let answer = script.iter().find(|(user, _)| *user == said).map_or("Fine.", |(_, answer)| answer);
        Run::of(request).started().text(answer).finished()
    })
}

#[test]
fn an_agent_that_waits_when_the_turns_are_over() {
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
    let tested = held(
        &agent,
        &[
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
        ],
    );
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
    assert_eq!(statuses, ["passed", "skipped"], "what was said is kept");
    assert_eq!(turns[1]["skip_reason"], skipped["skip_reason"]);
    assert_eq!(skipped["total_turns"], 1);
    assert_eq!(skipped.get("final_assertions"), None, "what is asserted at the end is not judged");
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
fn how_waiting_shows() {
    let answers: &[(&str, Value, &str)] = &[
        ("declares", json!({"content": "The amount", "awaiting_input": true}), "agent_declared"),
        ("denies", json!({"content": "Anything else?", "awaiting_input": false}), "agent_declared_done"),
        ("needs", json!({"status": "need_input", "question": "Amount"}), "agent_declared"),
        ("asks", json!({"content": "How much?"}), "content_is_question"),
        ("done", json!({"content": "Submitted."}), "completed"),
    ];
    let agent = FakeAgent::start(|request: &Request| {
        let said = request.last_user_text();
        let run = Run::of(request).started();
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
    let tested = held(&agent, &cases);
    let told = |id: &str| tested.case(id)["turns"][0]["awaiting_reason"].clone();
    for (id, _, reason) in answers {
        assert_eq!(told(id), *reason, "{id}");
    }
    assert_eq!(told("tool"), "tool_requires_confirmation");
    assert_eq!(told("state"), "agent_declared");
}

#[test]
fn a_turn_is_judged_by_its_own_answer_and_the_next_is_not_sent_when_it_fails() {
    let agent = scripted(&[("1", "one"), ("2", "two"), ("3", "three")]);
    let turn = |input: &str, value: &str| json!({"input": input, "assertions": [{"type": "contains", "value": value}]});
    let tested = held(
        &agent,
        &[
            json!({"id": "passes", "turns": [turn("1", "one"), turn("2", "two"), turn("3", "three")], "final_assertions": [{"type": "contains", "value": "three"}, {"type": "contains", "value": "one", "negate": true}]}),
            json!({"id": "fails", "turns": [turn("1", "two"), turn("2", "two")], "final_assertions": [{"type": "contains", "value": "two"}]}),
            json!({"id": "fails at the end", "turns": [turn("1", "one")], "final_assertions": [{"type": "contains", "value": "two"}]}),
        ],
    );
    assert_eq!(tested.case("passes")["status"], "passed");
    assert_eq!(tested.case("passes")["total_turns"], 3);
    let failed = tested.case("fails");
    assert_eq!((&failed["status"], &failed["total_turns"]), (&json!("failed"), &json!(1)));
    assert_eq!(
        failed["turns"][0]["assertion_errors"],
        json!(["expected what the agent says contains \"two\"; found \"one\""])
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
fn checkpoints_are_reached_in_their_order_whatever_the_order_of_the_list() {
    let agent = scripted(&[("ab", "alpha beta"), ("a", "alpha"), ("b", "beta"), ("c", "gamma")]);
    let turns = |said: &[&str]| -> Vec<Value> { said.iter().map(|said| json!({"input": said})).collect() };
    let ordered = json!([checkpoint("second", &["first"], "beta"), checkpoint("first", &[], "alpha")]);
    let tested = held(
        &agent,
        &[
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
        ],
    );
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
    assert!(why.contains("in turn 2: expected what the agent says contains \"beta\""), "{why}");
    let optional = &tested.case("optional")["checkpoints"][1];
    assert_eq!(
        (&optional["required"], &optional["passed"], &optional["description"]),
        (&json!(false), &json!(false), &json!("nice to have"))
    );
    assert_eq!(tested.case("several at once")["checkpoints"][0]["reached_at_turn"], 2);
    assert_eq!(tested.failure("and final")["kind"], "assertion");
    assert!(tested.output.stdout.contains("  └─ missing checkpoints: second\n"), "{}", tested.output);
}

#[test]
fn a_checkpoint_that_cannot_be_reached_or_asserts_nothing_is_refused() {
    let case = |checkpoints: Value| json!({"id": "a", "input": "x", "checkpoints": checkpoints});
    let fine = checkpoint("a", &[], "x");
    refused_case(case(json!([fine, fine])), "another checkpoint is called `a`");
    refused_case(case(json!([checkpoint("a", &["b"], "x")])), "no checkpoint is called `b`");
    refused_case(case(json!([checkpoint("a", &["a"], "x")])), "these checkpoints wait for each other: a");
    refused_case(
        case(json!([fine, checkpoint("b", &["c"], "x"), checkpoint("c", &["b"], "x")])),
        "these checkpoints wait for each other: b, c",
    );
    refused_case(case(json!([{"id": "a"}])), "has no `assertion`");
    refused_case(case(json!([{"id": "a", "assertion": {}}])), "this checkpoint asserts nothing");
    refused_case(
        case(json!([{"id": "a", "assertion": [{"type": "contain", "value": "x"}]}])),
        "did you mean `contains`?",
    );
    refused_case(case(json!([{"id": "a", "asserts": {"type": "contains", "value": "x"}}])), "did you mean");
}

#[test]
fn checkpoints_show_in_the_tree() {
    let agent = scripted(&[("a", "alpha"), ("b", "beta")]);
    let case = json!({"id": "a", "name": "Coverage", "turns": [{"input": "a"}, {"input": "b"}], "checkpoints": [checkpoint("first", &[], "alpha"), checkpoint("second", &["first"], "beta")]});
    let tested = Project::of(&agent).file("a.test.json", &case.to_string()).test(&["-v"]);
    tested.all_passed();
    let lines: Vec<&str> =
        tested.output.stdout.lines().map(str::trim).filter(|line| line.contains("checkpoint")).collect();
    assert_eq!(lines[..2], ["│    ✓ checkpoint: first", "✓ checkpoint: second"], "{}", tested.output);
    assert!(lines[2].ends_with(" - 2 turns, 2/2 checkpoints"), "{}", tested.output);
}

// Reports.

#[test]
fn errors_have_the_words_of_the_tables() {
    let agent = FakeAgent::start(|request: &Request| -> Reply {
        match request.last_user_text().as_str() {
            "hang" => Run::of(request).started().hang().into(),
            "break" => Run::of(request).started().error("model exploded", None).into(),
            _ => echo(request),
        }
    });
    let tested = held(
        &agent,
        &[
            json!({"id": "slow", "input": "hang", "timeout": "1s"}),
            json!({"id": "slow turn", "turns": [{"input": "hang", "timeout": "1s"}]}),
            json!({"id": "broken", "input": "break"}),
            json!({"id": "asserted", "input": "x", "assertions": [{"type": "contains", "value": "y"}]}),
        ],
    );
    for (id, error, kind) in [
        ("slow", "timeout after 1s", "timeout"),
        ("slow turn", "timeout after 1s", "timeout"),
        ("broken", "agent error: model exploded", "agent_error"),
        ("asserted", "does not hold: what the agent says contains \"y\"", "assertion"),
    ] {
        let case = tested.case(id);
        assert_eq!((&case["error"], &case["error_kind"]), (&json!(error), &json!(kind)), "{case:#}");
    }
}

#[test]
fn a_result_line_has_the_documented_members() {
    let agent = FakeAgent::start(|request: &Request| {
        Run::of(request)
            .started()
            .tool(
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
    let project = Project::of(&agent).file("a.test.json", &case.to_string());
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
fn what_yaml_has_works_in_json_and_the_other_way_round() {
    let agent = FakeAgent::start(|request: &Request| {
        Run::of(request)
            .started()
            .tool("c", "pay", &json!({"amount": 3}), Some(json!("approved")))
            .text("Paid.")
            .finished()
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
    let tested = Project::of(&agent).suite("a", yaml).file("b.test.json", &json.to_string()).test(&[]);
    assert_eq!(tested.case("in json")["status"], "passed", "{}", tested.output);
    let case = tested.case("in yaml");
    // The schema finds no JSON, so nothing holds; all else does.
    let turn = &case["turns"][0]["assertions"];
    assert_eq!(
        (&turn[0]["passed"], &turn[1]["passed"], &turn[2]["passed"]),
        (&json!(true), &json!(false), &json!(false))
    );
    assert_eq!(case["turns"][0]["assertion_errors"], json!(["no"]));
    assert_eq!(case["checkpoints"][0]["passed"], true);
}

/// The whole multi-turn sample of the documents, with everything in it that a case can have.
#[test]
fn the_whole_sample_runs() {
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
    let agent = FakeAgent::start(|request: &Request| {
        let run = Run::of(request).started();
        match request.user_texts().len() {
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
        }
    });
    let simulator = FakeAgent::start(echo);
    let agents = format!(
        "target: {{ endpoint: '{}' }}\nagents:\n  workers.test.user-simulator: {{ endpoint: '{}' }}\n",
        agent.url(),
        simulator.url()
    );
    let tested = Project::with(&agents).file("a.test.jsonl", sample).test(&[]);
    tested.all_passed();
    assert_eq!(simulator.requests().len(), 0, "the agent waits for nothing");
    let turns = tested.case("Expense Reimbursement Flow")["turns"].as_array().unwrap().clone();
    let awaiting: Vec<bool> = turns.iter().map(|turn| turn["awaiting_input"].as_bool().unwrap()).collect();
    assert_eq!(awaiting, [true, false, false]);
    assert_eq!(turns[1]["output"], Value::Null);
}
