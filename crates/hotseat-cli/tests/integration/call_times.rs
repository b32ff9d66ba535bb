//! Times of tool calls, as far as protocols show them.
use std::time::Duration;

use hotseat_testkit::agui::FakeRun;
use hotseat_testkit::completions::complete_reply;
use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest, ReplyStep};
use serde_json::{Value, json};

use crate::common::http_agents::bank_client;
use crate::common::{Project, TestRun};
use crate::mcp::BANK;

/// Longer than the limit that the agents exceed.
const PAUSE: Duration = Duration::from_millis(150);
const SUITE: &str = "name: short gap
turns: [{ user: hello, assert: { timing: { max_gap_ms: 50 } } }]
---
name: long gap
turns: [{ user: hello, assert: { timing: { max_gap_ms: 60000 } } }]
---
name: short idle time
turns: [{ user: hello, assert: { timing: { max_idle_ms: 50 } } }]
---
name: long idle time
turns: [{ user: hello, assert: { timing: { max_idle_ms: 60000 } } }]
";

fn run(target: &str) -> TestRun {
    Project::with_config(target).suite("a", SUITE).test(&[])
}

/// Asserts that short times are undecided, and that long ones pass: the turn itself is shorter.
#[track_caller]
fn assert_unknown(tested: &TestRun) {
    for name in ["short gap", "short idle time"] {
        let words = ["the time of the call of search in turn 1 is unknown"];
        tested.assert_failure(name, "test_error", &words);
    }
    for name in ["long gap", "long idle time"] {
        assert_eq!(tested.case(name)["status"], "passed", "{}", tested.output);
    }
}

#[test]
fn calls_of_one_document_have_no_times() {
    let answer = json!({"reply": "Done.", "calls": [{"name": "search"}, {"name": "pay"}]});
    let http = FakeAgent::start(move |_| FakeReply::json(200, &answer).first(ReplyStep::Pause(PAUSE)));
    let target = format!(
        "target: {{ type: http, endpoint: '{http}', body: '{{{{message}}}}', map: {{ reply: $.reply, tool_calls: $.calls }} }}\n"
    );
    assert_unknown(&run(&target));
    let call =
        |name: &str| json!({"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}});
    let message = json!({"role": "assistant", "content": null, "tool_calls": [call("search"), call("pay")]});
    let chat =
        FakeAgent::start(move |_| complete_reply(message.clone(), "stop").first(ReplyStep::Pause(PAUSE)));
    assert_unknown(&run(&format!(
        "target: {{ type: openai, base_url: '{chat}', model: m, stream: false }}\n"
    )));
}

/// Such an agent may have worked all the time.
#[test]
fn idle_times_are_unknown_if_nothing_shows_calls() {
    let agent = FakeAgent::start(move |_| {
        FakeReply::json(200, &json!({"reply": "Done."})).first(ReplyStep::Pause(PAUSE))
    });
    let suite = "name: short
turns: [{ user: hello, assert: { timing: { max_idle_ms: 50 } } }]
---
name: long
turns: [{ user: hello, assert: { timing: { max_idle_ms: 60000 } } }]
";
    let target = format!(
        "target: {{ type: http, endpoint: '{agent}', body: '{{{{message}}}}', map: {{ reply: $.reply }} }}\n"
    );
    let tested = Project::with_config(&target).suite("a", suite).test(&[]);
    let words = ["nothing shows the tool calls of the agent", "max_duration_ms"];
    tested.assert_failure("short", "test_error", &words);
    assert_eq!(tested.case("long")["status"], "passed", "{}", tested.output);
}

#[test]
fn calls_of_a_program_that_flushes_at_the_end_have_no_times() {
    let program = |between: &str| {
        let call =
            |name: &str| format!("{{\"type\":\"tool_call\",\"name\":\"{name}\",\"arguments\":{{}}}}\\n");
        let (search, pay) = (call("search"), call("pay"));
        let program =
            format!("read -r line; sleep 0.15; printf '{search}{between}{pay}{{\"type\":\"done\"}}\\n'\n");
        Project::with_config("target: { type: command, command: [sh, agent.sh] }\n")
            .file("agent.sh", &program)
            .suite("a", SUITE)
            .test(&[])
    };
    assert_unknown(&program(""));
    let flushed = program("'; sleep 0.15; printf '");
    flushed.assert_failure("short gap", "assertion", &["between search and pay"]);
    assert_eq!(flushed.case("long gap")["status"], "passed", "{}", flushed.output);
}

/// The tool may have run all the time before its result. What follows the result is idle.
#[test]
fn calls_that_arrive_with_their_results_have_no_start() {
    let answered = |name: &str| json!({"type": "tool_call", "name": name, "arguments": {}, "result": "ok"});
    let open = |name: &str| json!({"type": "tool_call", "name": name, "arguments": {}});
    let run_all = |first: Value, second: Value| {
        let done = "{\"type\":\"done\"}";
        let program =
            format!("read -r line; printf '{first}\\n'; sleep 0.15; printf '{second}\\n{done}\\n'\n");
        let command = Project::with_config("target: { type: command, command: [sh, agent.sh] }\n")
            .file("agent.sh", &program)
            .suite("a", SUITE)
            .test(&[]);
        let agent = FakeAgent::start(move |_| {
            let first = FakeReply::sse().event(json!({"call": first})).pause(PAUSE);
            first.event(json!({"call": second})).event(json!({"text": "Done.", "end": true}))
        });
        let http = run(&format!(
            "target: {{ type: http, endpoint: '{agent}', body: '{{{{message}}}}', stream: sse, map: {{ reply: $.text, tool_calls: $.call, done: $.end }} }}\n"
        ));
        [command, http]
    };
    for tested in run_all(answered("search"), answered("pay")) {
        assert_unknown(&tested);
    }
    for tested in run_all(answered("search"), open("pay")) {
        tested.assert_failure("short gap", "assertion", &["ms between search and pay"]);
        assert_eq!(tested.case("long gap")["status"], "passed", "{}", tested.output);
    }
}

/// Neither a criterion nor its negation decides what its part cannot decide.
#[test]
fn unknown_times_decide_no_criterion() {
    let answer =
        json!({"reply": "Done.", "calls": [{"name": "search", "args": {"n": "3"}}, {"name": "pay"}]});
    let http = FakeAgent::start(move |_| FakeReply::json(200, &answer).first(ReplyStep::Pause(PAUSE)));
    let target = format!(
        "target: {{ type: http, endpoint: '{http}', body: '{{{{message}}}}', map: {{ reply: $.reply, tool_calls: {{ path: $.calls, arguments: $.args }} }} }}\n"
    );
    let parts = [
        (
            "time",
            "timing: { max_gap_ms: 50 }",
            "test error: the time of the call of search in turn 1 is unknown",
        ),
        ("arguments", "{ type: tool_called, name: search, where: { n: { more_than: 2 } } }", "test error: "),
        ("usage", "budget: { max_tokens: 5 }", "usage is not known: "),
    ];
    let mut suite = String::new();
    for (name, part, _) in &parts {
        for negate in [false, true] {
            suite += &format!(
                "name: {name} {negate}\ncriteria: {{ c: {{ match: [{part}] }} }}\nturns: [{{ user: hello, assert: [{{ type: satisfy, criteria: c, negate: {negate} }}] }}]\n---\n"
            );
        }
    }
    let tested = Project::with_config(&target).suite("a", suite.trim_end_matches("---\n")).test(&[]);
    for (name, _, words) in &parts {
        let kind = if *name == "usage" { "usage_error" } else { "test_error" };
        for negate in [false, true] {
            tested.assert_failure(&format!("{name} {negate}"), kind, &[*words]);
        }
    }
}

#[test]
fn one_call_has_no_gap() {
    let answer = json!({"reply": "Done.", "calls": [{"name": "search"}]});
    let http = FakeAgent::start(move |_| FakeReply::json(200, &answer).first(ReplyStep::Pause(PAUSE)));
    let target = format!(
        "target: {{ type: http, endpoint: '{http}', body: '{{{{message}}}}', map: {{ reply: $.reply, tool_calls: $.calls }} }}\n"
    );
    assert_eq!(run(&target).case("short gap")["status"], "passed");
}

#[test]
fn a_server_of_the_test_knows_the_times_of_its_calls() {
    let agent = FakeAgent::start(|request: &FakeRequest| {
        let bank = bank_client(request);
        let call = |order: &str| {
            let arguments = json!({"order_id": order, "amount": 5});
            let result = bank.call("charge_card", &arguments).expect("an answer");
            json!({"name": "charge_card", "arguments": arguments, "result": result})
        };
        let first = call("o-1");
        let second = call("o-1");
        FakeReply::json(200, &json!({"reply": "Paid.", "calls": [first, second]}))
            .first(ReplyStep::Pause(PAUSE))
    });
    let target = format!(
        "target:\n  type: http\n  endpoint: {agent}\n  headers: {{ x-bank: '${{MCP.bank.url}}' }}\n  body: '{{{{message}}}}'\n  map: {{ reply: $.reply, tool_calls: $.calls }}\n{BANK}"
    );
    let tested = run(&target);
    for name in ["long gap", "long idle time"] {
        assert_eq!(tested.case(name)["status"], "passed", "{}", tested.output);
    }
    tested.assert_failure("short idle time", "assertion", &["ms between charge_card and the end"]);
}

/// What follows a call without an end says nothing about its time.
#[test]
fn calls_without_an_end_last_until_their_last_part() {
    let start =
        |id: &str, name: &str| json!({"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": name});
    let arguments = |id: &str| json!({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": "{\"a\":1}"});
    let chunks = |run: FakeRun| {
        let run = run.tool_chunks("c1", "search", &json!({"a": 1}), None).pause(PAUSE);
        run.tool_chunks("c2", "pay", &json!({"a": 1}), None)
    };
    let open = move |run: FakeRun| {
        let run = run.raw_event(start("c1", "search")).raw_event(arguments("c1")).pause(PAUSE);
        run.raw_event(start("c2", "pay")).raw_event(arguments("c2"))
    };
    let runs: [Box<dyn Fn(FakeRun) -> FakeRun + Send + Sync>; 2] = [Box::new(chunks), Box::new(open)];
    for calls in runs {
        let agent = FakeAgent::with_run(move |run, _| calls(run).text("Done.").finished());
        let tested = Project::with_agent(&agent).suite("a", SUITE).test(&[]);
        tested.assert_failure("short gap", "assertion", &["ms between search and pay"]);
        assert_eq!(tested.case("long gap")["status"], "passed", "{}", tested.output);
    }
}

#[test]
fn calls_of_a_message_snapshot_have_no_times() {
    let call = |id: &str, name: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}});
    let messages = move |request: &FakeRequest| -> Vec<Value> {
        let mut messages = request.input().messages().to_vec();
        messages.push(json!({"id": "a", "role": "assistant", "content": "Done.", "toolCalls": [call("c1", "search"), call("c2", "pay")]}));
        messages
    };
    let agent = FakeAgent::with_run(move |run, request| {
        run.pause(PAUSE).messages_snapshot(messages(request)).finished()
    });
    assert_unknown(&Project::with_agent(&agent).suite("a", SUITE).test(&[]));
}

#[test]
fn a_replay_knows_when_the_arguments_of_a_call_ended() {
    let agent = FakeAgent::with_run(|run, _| {
        let event = |kind: &str, more: Value| {
            let mut event = json!({"type": kind, "toolCallId": "c1"});
            event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            event
        };
        run.raw_event(event("TOOL_CALL_START", json!({"toolCallName": "search"})))
            .raw_event(event("TOOL_CALL_ARGS", json!({"delta": "{\"a\":1}"})))
            .pause(PAUSE)
            .text("Done.")
            .finished()
    });
    let project = Project::with_agent(&agent).suite("a", SUITE);
    let time = |tested: &TestRun| {
        let call = &tested.case("long gap")["turns"][0]["tool_calls"][0];
        call["duration_ms"].as_f64().expect("a duration")
    };
    let live = time(&project.test(&["--record", "rec"]));
    assert!(live < 100.0, "{live}");
    assert_eq!(time(&project.test(&["-n", "replay:rec"])), live);
}
