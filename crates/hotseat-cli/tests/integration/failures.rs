//! Failures that must never be reported as passed, with their kind and exit code.
use hotseat_testkit::agui::FakeRun;
use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest, ReplyStep};
use serde_json::{Value, json};

use crate::common::{Lifeline, Project, TestRun, echo_agent, unreachable_address};

/// Runs the cases of a suite with an agent.
#[track_caller]
fn run_suite<R: Into<FakeReply>>(
    agent: impl Fn(&FakeRequest) -> R + Send + Sync + 'static,
    suite: &str,
) -> TestRun {
    Project::with_agent(&FakeAgent::start(agent)).suite("a", suite).test(&[])
}

/// Asserts that every case failed with this kind and message, also on the console. Details of a check are
/// next to its location, not in the failure line.
#[track_caller]
fn assert_failed(tested: &TestRun, code: i32, kind: &str, words: &str) {
    let TestRun { output, report } = tested;
    let results = report["results"].as_array().expect("a list of results");
    assert!(!results.is_empty(), "{output}");
    for result in results {
        let message = result["failure"]["message"].as_str().unwrap_or_default();
        assert_eq!(result["status"], "failed", "{}\n{output}", result["name"]);
        assert_eq!(result["failure"]["kind"], kind, "{}\n{output}", result["name"]);
        assert!(message.contains(words), "{}: {words:?} is not in {message:?}\n{output}", result["name"]);
    }
    assert!(unwrap_lines(&output.stdout).contains(words), "{words:?} is not on the console\n{output}");
    assert!(output.stdout.contains(&format!("└─ {kind}: ")), "{output}");
    assert!(
        output.stdout.contains("TESTS FAILED") && !output.stdout.contains("ALL TESTS PASSED"),
        "{output}"
    );
    let passed = output.stdout.lines().any(|line| line.starts_with("► ") && line.contains(" PASSED "));
    assert!(!passed, "{output}");
    assert_eq!(output.code, code, "{output}");
}

/// Text without line breaks and margins, since the console wraps lines.
fn unwrap_lines(text: &str) -> String {
    text.split_whitespace().filter(|word| !matches!(*word, "│" | "|")).collect::<Vec<_>>().join(" ")
}

/// Asserts that the run was rejected before any agent was contacted.
#[track_caller]
fn assert_rejected(project: Project, args: &[&str], words: &[&str]) {
    let output = project.hotseat(&[&["test"], args].concat());
    assert_eq!(output.code, 2, "{output}");
    for words in words {
        assert!(unwrap_lines(&output.stderr).contains(words), "{words:?} is not in\n{output}");
    }
    assert!(!output.stdout.contains("passed"), "{output}");
}

fn charge_call(id: &str, run: FakeRun, result: Option<Value>) -> FakeRun {
    run.tool(id, "charge_card", &json!({"amount": 42.5}), result)
}

fn declined() -> Value {
    json!({"status": "declined", "reason": "insufficient funds"})
}

fn approved() -> Value {
    json!({"status": "approved"})
}

// Tools.

/// Three equivalent assertions.
const NO_DECLINED_CHARGE: &str = r#"
name: forbidden call
turns: [{ user: pay }]
assert: { tools: { forbid_calls: [{ name: charge_card, result_match: "declined|insufficient" }] } }
---
name: result that must fit
turns: [{ user: pay }]
assert: { tools: { require: [{ name: charge_card, result_match: approved }] } }
---
name: result that must not fit
turns: [{ user: pay }]
assert: { tools: { require: [{ name: charge_card, result_not_match: declined }] } }
"#;

#[test]
fn sees_result_in_content() {
    let tested = run_suite(
        |request| {
            charge_call("c", FakeRun::for_request(request).started(), Some(declined()))
                .text("Done.")
                .finished()
        },
        NO_DECLINED_CHARGE,
    );
    assert_failed(&tested, 1, "assertion", "expected ");
    let call = &tested.case("forbidden call")["turns"][0]["tool_calls"][0];
    assert_eq!((&call["name"], &call["result"]), (&json!("charge_card"), &declined()));
}

#[test]
fn sees_result_only_in_snapshot() {
    let agent = |request: &FakeRequest| {
        let call = json!({
            "id": "c", "type": "function",
            "function": {"name": "charge_card", "arguments": "{\"amount\":42.5}"},
        });
        FakeRun::for_request(request)
            .started()
            .messages_snapshot(vec![
                json!({"id": "u", "role": "user", "content": "pay"}),
                json!({"id": "a", "role": "assistant", "content": "", "toolCalls": [call]}),
                json!({"id": "t", "role": "tool", "toolCallId": "c", "content": declined().to_string()}),
            ])
            .finished()
    };
    assert_failed(&run_suite(agent, NO_DECLINED_CHARGE), 1, "assertion", "expected ");
}

#[test]
fn sees_chunked_calls_and_text() {
    let chunks = |request: &FakeRequest| {
        let run = FakeRun::for_request(request).started();
        run.tool_chunks("c", "charge_card", &json!({"amount": 42.5}), Some(declined()))
            .text_chunks("Declined.")
            .finished()
    };
    assert_failed(&run_suite(chunks, NO_DECLINED_CHARGE), 1, "assertion", "expected ");

    let never = "
name: never called
turns: [{ user: pay }]
assert: { tools: { forbid: [charge_card] } }
---
name: never with such arguments
turns: [{ user: pay }]
assert: { tools: { forbid_calls: [{ name: charge_card, args_match: { amount: '^42[.]5$' } }] } }
---
name: never said
turns: [{ user: pay }]
assert: { text: { must_not_match: 'Declined[.]' } }
";
    assert_failed(&run_suite(chunks, never), 1, "assertion", "expected ");
}

#[test]
fn call_without_result_counts_as_called() {
    let agent = |request: &FakeRequest| {
        FakeRun::for_request(request)
            .started()
            .tool_call("c", "delete_order", &json!({"id": "o-9"}))
            .text("Done.")
            .finished()
    };
    let tested = run_suite(
        agent,
        "
name: forbidden
turns: [{ user: delete }]
assert: { tools: { forbid: [delete_order] } }
",
    );
    assert_failed(&tested, 1, "assertion", "delete_order never to be called");
    assert!(
        unwrap_lines(&tested.output.stdout).contains(r#"delete_order({"id":"o-9"}) → no result"#),
        "{}",
        tested.output
    );
}

#[test]
fn call_without_result_matches_no_result() {
    let agent = |request: &FakeRequest| {
        charge_call("c", FakeRun::for_request(request).started(), None).text("Done.").finished()
    };
    let tested = run_suite(
        agent,
        "
name: approved
turns: [{ user: pay }]
assert: { tools: { require: [{ name: charge_card, result_match: '.*' }] } }
",
    );
    assert_failed(&tested, 1, "assertion", "with a result that matches /.*/ to be called");
}

#[test]
fn forbidden_tool_is_never_allowed() {
    let suite = "
name: never
turns: [{ user: pay }]
assert: { tools: { require: [{ name: charge_card, count: { exact: 0 } }] } }
";
    let once = |request: &FakeRequest| {
        charge_call("c", FakeRun::for_request(request).started(), Some(approved())).finished()
    };
    assert_failed(&run_suite(once, suite), 1, "assertion", "charge_card never to be called");
    run_suite(|request: &FakeRequest| FakeRun::for_request(request).started().text("No.").finished(), suite)
        .assert_all_passed();
}

#[test]
fn single_call_does_not_follow_itself() {
    let suite = "
name: again
turns: [{ user: pay }]
assert: { tools: { require: [{ name: charge_card, after: charge_card }] } }
";
    let once = |request: &FakeRequest| {
        charge_call("c", FakeRun::for_request(request).started(), Some(approved())).finished()
    };
    assert_failed(&run_suite(once, suite), 1, "assertion", "charge_card to be called only after charge_card");
    let twice = |request: &FakeRequest| {
        let run = charge_call("c-1", FakeRun::for_request(request).started(), Some(approved()));
        charge_call("c-2", run, Some(approved())).finished()
    };
    run_suite(twice, suite).assert_all_passed();
}

#[test]
fn one_bad_result_of_two_fails() {
    let agent = |request: &FakeRequest| {
        let run = charge_call("c-1", FakeRun::for_request(request).started(), Some(approved()));
        charge_call("c-2", run, Some(declined())).finished()
    };
    let tested = run_suite(
        agent,
        "
name: every result
turns: [{ user: pay }]
assert: { tools: { require: [{ name: charge_card, result_not_match: declined }] } }
",
    );
    assert_failed(&tested, 1, "assertion", "no result of charge_card to match /declined/");
}

#[test]
fn numbers_compare_as_written() {
    let agent = |request: &FakeRequest| {
        charge_call("c", FakeRun::for_request(request).started(), Some(approved())).finished()
    };
    let suite = |pattern: &str| {
        format!(
            "
name: amount
turns: [{{ user: pay }}]
assert: {{ tools: {{ require: [{{ name: charge_card, args_match: {{ amount: '{pattern}' }} }}] }} }}
"
        )
    };
    assert_failed(&run_suite(agent, &suite("^42$")), 1, "assertion", "amount /^42$/ to be called");
    run_suite(agent, &suite(r"^42\.5$")).assert_all_passed();
}

/// Case-level assertions count over all turns, independently of turn-level ones.
#[test]
fn exactly_once_covers_all_turns() {
    let agent = |request: &FakeRequest| {
        let run = FakeRun::for_request(request).started();
        let run =
            if request.last_user_text() == "pay" { charge_call("c", run, Some(approved())) } else { run };
        run.text("Very well.").finished()
    };
    let suite = "
name: once
turns:
  - { user: look, assert: { tools: { forbid: [charge_card] } } }
  - { user: pay, assert: { tools: { require: [{ name: charge_card, count: { exact: 1 } }] } } }
  - { user: leave, assert: { tools: { forbid: [charge_card] }, text: { must_match: well } } }
assert: { tools: { require: [{ name: charge_card, count: { exact: 1 } }] } }
";
    run_suite(agent, suite).assert_all_passed();

    // Over two payments it fails, although each turn passes.
    let again =
        suite.replace("user: leave, assert: { tools: { forbid: [charge_card] },", "user: pay, assert: {");
    assert_ne!(suite, again);
    let agent = |request: &FakeRequest| {
        let run = FakeRun::for_request(request).started();
        let id = format!("c-{}", request.user_texts().len());
        let run =
            if request.last_user_text() == "pay" { charge_call(&id, run, Some(approved())) } else { run };
        run.text("Very well.").finished()
    };
    assert_failed(&run_suite(agent, &again), 1, "assertion", "charge_card to be called exactly once");
}

// Streams.

/// Passes with every agent that answers.
const ANYTHING: &str = "
name: anything
turns: [{ user: hello }]
assert: { tools: { forbid: [delete_order] }, text: { must_not_match: impossible } }
";

/// Tries each cut as clean end of the body, closed connection and reset connection.
#[track_caller]
fn assert_cut_fails(stream: impl Fn(&FakeRequest) -> FakeRun + Clone + Send + Sync + 'static, words: &str) {
    for step in [ReplyStep::End, ReplyStep::Cut, ReplyStep::Reset] {
        let stream = stream.clone();
        let tested = run_suite(move |request: &FakeRequest| stream(request).step(step.clone()), ANYTHING);
        assert_failed(&tested, 1, "protocol_error", words);
    }
    let until_close = run_suite(move |request: &FakeRequest| stream(request).reply().until_close(), ANYTHING);
    assert_failed(&until_close, 1, "protocol_error", words);
}

#[test]
fn stream_cut_inside_event() {
    let half = |request: &FakeRequest| {
        let run = FakeRun::for_request(request).started().text("Hello.");
        run.step(ReplyStep::Bytes("data: {\"type\":\"RUN_FINI".into()))
    };
    assert_cut_fails(half, "after 4 events, without RUN_FINISHED or RUN_ERROR");
}

/// A complete last event without its blank line counts if the stream ends cleanly.
#[test]
fn stream_cut_before_final_blank_line() {
    let almost = |request: &FakeRequest| {
        let run = FakeRun::for_request(request).started().text("Hello.");
        run.step(ReplyStep::Bytes(
            "data: {\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r\"}\n".into(),
        ))
    };
    for step in [ReplyStep::Cut, ReplyStep::Reset] {
        let tested = run_suite(move |request: &FakeRequest| almost(request).step(step.clone()), ANYTHING);
        assert_failed(&tested, 1, "protocol_error", "after 4 events, without RUN_FINISHED or RUN_ERROR");
    }
    run_suite(move |request: &FakeRequest| almost(request).step(ReplyStep::End), ANYTHING)
        .assert_all_passed();
}

#[test]
fn stream_cut_inside_message() {
    let half = |request: &FakeRequest| {
        FakeRun::for_request(request)
            .started()
            .raw_event(json!({"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"}))
            .raw_event(json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Hel"}))
    };
    assert_cut_fails(half, "after 3 events, without RUN_FINISHED or RUN_ERROR");
}

#[test]
fn stream_cut_inside_call() {
    let half = |request: &FakeRequest| {
        FakeRun::for_request(request)
            .started()
            .raw_event(json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "charge_card"}))
            .raw_event(json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{\"amo"}))
    };
    assert_cut_fails(half, "after 3 events, without RUN_FINISHED or RUN_ERROR");
}

#[test]
fn stream_cut_before_terminal_event() {
    assert_cut_fails(
        |request| FakeRun::for_request(request).started().text("Hello."),
        "without RUN_FINISHED or RUN_ERROR",
    );
}

#[test]
fn stream_cut_before_first_event() {
    assert_cut_fails(FakeRun::for_request, "without a single event");
}

#[test]
fn response_without_body() {
    assert_failed(
        &run_suite(|_| FakeReply::status(200), ANYTHING),
        1,
        "protocol_error",
        "without a single event",
    );
    assert_failed(
        &run_suite(|_| FakeReply::status(204), ANYTHING),
        1,
        "protocol_error",
        "without a single event",
    );
    let keep_alives = |_: &FakeRequest| FakeReply::sse().bytes(": still here\n\n: still here\n\n");
    assert_failed(&run_suite(keep_alives, ANYTHING), 1, "protocol_error", "without a single event");
}

#[test]
fn html_response() {
    let page = |_: &FakeRequest| {
        FakeReply::status(200).header("content-type", "text/html").bytes("<h1>Welcome</h1>")
    };
    let tested = run_suite(page, ANYTHING);
    assert_failed(&tested, 1, "protocol_error", "content type text/html is not a stream of events");
    assert!(tested.output.stdout.contains("<h1>Welcome</h1>"), "{}", tested.output);
    // A server of another protocol is named.
    let completion = |_: &FakeRequest| {
        let answer = r#"{"object":"chat.completion","choices":[{"message":{"content":"Hello"}}]}"#;
        FakeReply::status(200).header("content-type", "application/json").bytes(answer)
    };
    assert_failed(&run_suite(completion, ANYTHING), 1, "protocol_error", "set `type: openai` and `base_url`");
    // The content type alone does not make it a stream.
    let page = |_: &FakeRequest| FakeReply::sse().bytes("<h1>Welcome</h1>\n\n");
    assert_failed(&run_suite(page, ANYTHING), 1, "protocol_error", "without a single event");
}

#[test]
fn invalid_event() {
    for (data, words) in [
        ("data: {\"type\":\n\n", "event 2"),
        ("data: []\n\n", "event 2"),
        ("data: {\"messageId\":\"m\"}\n\n", "event 2"),
        ("data: {\"type\":\"TOOL_CALL_START\",\"toolCallId\":\"c\"}\n\n", "event 2"),
    ] {
        let agent = move |request: &FakeRequest| {
            FakeRun::for_request(request).started().step(ReplyStep::Bytes(data.into())).finished()
        };
        assert_failed(&run_suite(agent, ANYTHING), 1, "protocol_error", words);
    }
}

/// A result of an unannounced call could belong to a forbidden tool.
#[test]
fn result_for_unknown_call() {
    let agent = |request: &FakeRequest| {
        FakeRun::for_request(request).started().tool_result("c", &declined()).finished()
    };
    assert_failed(&run_suite(agent, ANYTHING), 1, "protocol_error", "but no event names its tool");
}

#[test]
fn http_rejection() {
    let agent = |_: &FakeRequest| FakeReply::json(401, &json!({"detail": "no token"}));
    let tested = run_suite(agent, ANYTHING);
    assert_failed(&tested, 1, "agent_error", "answered HTTP 401 Unauthorized; check `headers` of the agent");
    assert!(tested.output.stdout.contains("no token"), "{}", tested.output);
}

#[test]
fn redirect_and_server_error() {
    let moved = |_: &FakeRequest| FakeReply::status(307).header("location", "http://127.0.0.1:1/new");
    assert_failed(
        &run_suite(moved, ANYTHING),
        1,
        "agent_error",
        "set `endpoint` of the agent to http://127.0.0.1:1/new",
    );
    assert_failed(
        &run_suite(|_| FakeReply::text(500, "oops"), ANYTHING),
        1,
        "agent_error",
        "answered HTTP 500",
    );
}

#[test]
fn unreachable_agent() {
    let project = Project::with_config(&format!("target: {{ endpoint: '{}' }}\n", unreachable_address()))
        .suite("a", ANYTHING);
    assert_failed(&project.test(&[]), 3, "unreachable", "cannot reach http://127.0.0.1:");
}

#[test]
fn server_closes_without_response() {
    assert_failed(&run_suite(|_| FakeReply::refused(), ANYTHING), 1, "protocol_error", "did not answer");
}

#[test]
fn agent_reports_failure() {
    let agent = |request: &FakeRequest| {
        FakeRun::for_request(request).started().text("Hello.").error("model exploded", Some("BOOM"))
    };
    assert_failed(&run_suite(agent, ANYTHING), 1, "agent_error", "the agent failed: model exploded (BOOM)");
}

#[test]
fn expected_error_does_not_occur() {
    let agent = |request: &FakeRequest| {
        let run = FakeRun::for_request(request).started();
        if request.last_user_text() == "crash" {
            run.error("out of stock", None)
        } else {
            run.text("Fine.").finished()
        }
    };
    let tested = run_suite(
        agent,
        "
name: none came
turns: [{ user: hello, expect_error: stock }]
---
name: another came
turns: [{ user: crash, expect_error: network }]
---
name: it had no code
turns: [{ user: crash, expect_error: { code: '.' } }]
",
    );
    assert_failed(&tested, 1, "assertion", "expected an error");
    // In a case of several turns it is the place that tells which.
    for (case, place) in [
        ("none came", "got a regular end of the turn (a.test.yaml:3:38)"),
        ("another came", "expected an error that matches /network/ (a.test.yaml:6:38)"),
    ] {
        tested.assert_failure(case, "assertion", &[place]);
    }
}

#[test]
fn an_expected_error_is_an_assertion() {
    let agent = |request: &FakeRequest| FakeRun::for_request(request).started().error("out of stock", None);
    let tested = run_suite(agent, "name: a\nturns: [{ user: crash, expect_error: stock }]\n");
    tested.assert_all_passed();
    assert!(!tested.output.stdout.contains("nothing was asserted"), "{}", tested.output);
}

// Time limits.

#[test]
fn server_hangs_before_headers() {
    let suite = ANYTHING.replace("user: hello", "user: hello, timeout_ms: 150");
    assert_failed(
        &run_suite(|_| FakeReply::never(), &suite),
        1,
        "timeout",
        "the turn timed out after 150 ms",
    );
}

#[test]
fn server_hangs_during_stream() {
    let agent = |request: &FakeRequest| FakeRun::for_request(request).started().text("Hello.").hang();
    let suite = ANYTHING.replace("user: hello", "user: hello, timeout_ms: 1000");
    let tested = run_suite(agent, &suite);
    assert_failed(&tested, 1, "timeout", "the turn timed out after 1000 ms");
    assert_eq!(tested.case("anything")["turns"][0]["output"], "Hello.", "what came is kept");
}

#[test]
fn server_exceeds_idle_limit() {
    let agent = FakeAgent::with_run(|run, _| run.hang());
    let project = format!("target: {{ endpoint: '{agent}', idle_timeout_ms: 150 }}\n");
    let tested = Project::with_config(&project).suite("a", ANYTHING).test(&[]);
    assert_failed(&tested, 1, "timeout", "the agent sent nothing for 150 ms (target.idle_timeout_ms)");
}

#[test]
fn case_exceeds_time_limit() {
    // Each turn alone is within the limit.
    let agent = |request: &FakeRequest| match request.last_user_text().as_str() {
        "hello" => FakeRun::for_request(request).started().text("Hello.").finished(),
        _ => FakeRun::for_request(request).started().hang(),
    };
    let turns = ANYTHING.replace("[{ user: hello }]", "[{ user: hello }, { user: wait }]");
    let limited = turns.replace("turns:", "timeout_ms: 150\nturns:");
    assert_failed(&run_suite(agent, &limited), 1, "timeout", "the case timed out after 150 ms");
    let flagged =
        Project::with_agent(&FakeAgent::start(agent)).suite("a", &turns).test(&["--timeout", "150ms"]);
    assert_failed(&flagged, 1, "timeout", "the case timed out after 150 ms");
    // The case overrides the command line.
    let both = Project::with_agent(&FakeAgent::start(agent)).suite("a", &limited).test(&["--timeout", "1h"]);
    assert_failed(&both, 1, "timeout", "the case timed out after 150 ms");
}

#[test]
fn duration_limit_stops_hanging_agent() {
    let agent = |request: &FakeRequest| FakeRun::for_request(request).started().text("Hello.").hang();
    let tested = run_suite(
        agent,
        "
name: the turn
turns: [{ user: hello, assert: { timing: { max_duration_ms: 150 } } }]
---
name: the case
turns: [{ user: hello }, { user: never sent }]
assert: { timing: { max_duration_ms: 150 } }
",
    );
    assert_failed(&tested, 1, "assertion", "a duration of at most 150 ms");
    assert_eq!(tested.case("the case")["total_turns"], 1);
}

#[test]
fn agent_exceeds_idle_limit() {
    let agent = |request: &FakeRequest| {
        let run = charge_call("c-1", FakeRun::for_request(request).started(), Some(approved()));
        charge_call("c-2", run.pause(std::time::Duration::from_millis(120)), Some(approved())).finished()
    };
    let tested = run_suite(
        agent,
        "
name: gap
turns: [{ user: pay }]
assert: { timing: { max_gap_ms: 50 } }
---
name: idle
turns: [{ user: pay }]
assert: { timing: { max_idle_ms: 50 } }
",
    );
    assert_failed(&tested, 1, "assertion", "at most 50 ms");
}

// Client requests of the agent.

fn interrupting_run(request: &FakeRequest) -> FakeRun {
    let run = FakeRun::for_request(request).started();
    match request.resume().is_empty() {
        true => run.interrupted(vec![json!({"id": "i", "reason": "approval", "message": "Refund?"})]),
        false => run.text("Refunded.").finished(),
    }
}

#[test]
fn unanswered_interrupt() {
    let suite = ANYTHING.replace("user: hello", "user: hello, resume: [{ reason: other, payload: 1 }]");
    for suite in [ANYTHING, &suite] {
        let tested = run_suite(interrupting_run, suite);
        assert_failed(
            &tested,
            1,
            "test_error",
            "the agent paused for an answer that the turn does not define (add it to `resume`)",
        );
    }
}

#[test]
fn unused_interrupt_answer() {
    let suite = ANYTHING.replace("user: hello", "user: hello, resume: [{ payload: 1 }]");
    run_suite(interrupting_run, &suite).assert_all_passed();
    let asks_nothing =
        |request: &FakeRequest| FakeRun::for_request(request).started().text("Hello.").finished();
    assert_failed(
        &run_suite(asks_nothing, &suite),
        1,
        "assertion",
        "the agent never asked for the answer at a.test.yaml:3",
    );
    // An expected error is no reason for an answer that was never used.
    let breaks = |request: &FakeRequest| FakeRun::for_request(request).started().error("paid already", None);
    let expected = suite.replace("resume:", "expect_error: paid, resume:");
    assert_failed(
        &run_suite(breaks, &expected),
        1,
        "assertion",
        "the agent never asked for the answer at a.test.yaml:3",
    );
}

#[test]
fn unanswered_client_tool() {
    let agent = |request: &FakeRequest| {
        FakeRun::for_request(request)
            .started()
            .tool_call("c", "confirm", &json!({"what": "refund"}))
            .pending(&["c".to_string()])
    };
    for (answers, nearest) in [
        ("", "the tool has no answers"),
        (
            ", answers: [{ args_match: { what: payment }, content: yes }]",
            "answer 1 of 1 for confirm: it needs what /payment/",
        ),
    ] {
        let suite = format!("{ANYTHING}tools: [{{ name: confirm{answers} }}]\n");
        let words = format!(
            r#"client tool confirm was called with {{"what":"refund"}}, but no scripted answer matches; nearest: {nearest}"#
        );
        let tested = run_suite(agent, &suite);
        assert_failed(&tested, 1, "test_error", &words);
        let detail = tested.failure("anything")["detail"].as_str().unwrap_or_default().to_string();
        let line = suite.lines().count();
        for part in [
            format!("--> a.test.yaml:{line}:17"),
            format!("{line} | tools: [{{ name: confirm"),
            "add an answer under `answers` of the tool".to_string(),
        ] {
            assert!(detail.contains(&part), "{part:?} is not in {detail}");
        }
    }
}

// Files.

fn offline_project() -> Project {
    Project::with_config("target: { endpoint: 'http://127.0.0.1:9/' }\n")
}

#[test]
fn invalid_pattern() {
    let suite =
        "name: a\nturns:\n  - user: hello\n    assert:\n      text:\n        must_not_match: '(unclosed'\n";
    for args in [&["--dry-run"][..], &[]] {
        assert_rejected(
            offline_project().suite("a", suite),
            args,
            &["unclosed group", "--> a.test.yaml:6:25"],
        );
    }
}

#[test]
fn undefined_variable() {
    let hook = "name: a\nturns: [{ user: 'order ${ORDER}' }]\n";
    assert_rejected(
        offline_project().suite("a", hook),
        &[],
        &["variable `ORDER` is not defined: no hook sets it", "a.test.yaml:2:17"],
    );
    let env = "name: a\nturns: [{ user: 'order ${ENV.ORDER}' }]\n";
    assert_rejected(
        offline_project().suite("a", env),
        &[],
        &["environment variable `ORDER` is not set", "a.test.yaml:2:17"],
    );
    let target = Project::with_config("target: { endpoint: '${ENV.URL}' }\n").suite("a", ANYTHING);
    assert_rejected(target, &["--dry-run"], &["environment variable `URL` is not set", "hotseat.yaml:1:21"]);
    // A placeholder of a template is written differently.
    let target = "target: { type: http, endpoint: 'http://127.0.0.1:1/', body: { text: '${message}' } }\n";
    assert_rejected(
        Project::with_config(target).suite("a", ANYTHING),
        &[],
        &["variable `message` is not defined; in a template write `{{message}}`", "hotseat.yaml:1:"],
    );
    // An empty variable counts as set; a non-text one does not.
    let in_pattern = "name: a\nturns: [{ user: a, assert: { text: { must_not_match: '${ENV.ORDER}' } } }]\n";
    assert_rejected(
        offline_project().suite("a", in_pattern),
        &["--dry-run"],
        &["environment variable `ORDER` is not set"],
    );
}

#[test]
fn variable_missing_from_hook_output() {
    let suite = "
name: a
hooks: [{ cmd: [echo, '{\"OTHER\":1}'] }]
turns: [{ user: 'order ${ORDER}' }]
";
    let agent = echo_agent();
    let tested = Project::with_agent(&agent).suite("a", suite).test(&[]);
    assert_failed(
        &tested,
        1,
        "test_error",
        "variable `ORDER` is not defined: hooks set OTHER (a.test.yaml:4:17)",
    );
    assert_eq!(agent.requests().len(), 0);
}

#[test]
fn misspelled_key() {
    let suite = "name: a\nturns:\n  - user: a\n    assert: { tool: { forbid: [b] } }\n";
    assert_rejected(
        offline_project().suite("a", suite),
        &[],
        &["unknown key `tool`", "did you mean `tools`?", "a.test.yaml:4:15"],
    );
}

#[test]
fn empty_suite() {
    for text in ["", "\n\n", "# nothing yet\n", "---\n---\n"] {
        assert_rejected(offline_project().suite("a", text), &[], &["a.test.yaml"]);
    }
}

#[test]
fn empty_assertion_block() {
    for block in ["{ tools: {} }", "{ text: {} }", "{ timing: {} }"] {
        let suite = format!("name: a\nturns: [{{ user: a }}]\nassert: {block}\n");
        assert_rejected(offline_project().suite("a", &suite), &[], &["asserts nothing", "a.test.yaml:3:"]);
    }
}

// Hooks.

#[track_caller]
fn run_with_hook(hook: &str, words: &str) -> TestRun {
    let agent = echo_agent();
    let suite = format!("name: hooked\nhooks: [{hook}]\nturns: [{{ user: hello }}]\n");
    let tested = Project::with_agent(&agent).suite("a", &suite).test(&[]);
    assert_failed(&tested, 1, "hook_error", words);
    assert_eq!(agent.requests().len(), 0, "the agent is not contacted after a failed hook");
    tested
}

#[test]
fn hook_prints_invalid_json() {
    let tested =
        run_with_hook("{ cmd: [echo, 'ORDER=1'] }", "hook `echo ORDER=1` printed something that is not JSON");
    assert!(tested.output.stdout.contains("ORDER=1"), "{}", tested.output);
    run_with_hook("{ cmd: [echo, '[1]'] }", "printed JSON that is not an object");
    run_with_hook("{ cmd: [echo, '{} {}'] }", "printed something that is not JSON");
    run_with_hook(
        r#"{ cmd: [echo, '{"ORDER": 1, "ORDER": 2}'] }"#,
        r#"printed something that has a duplicate key "ORDER""#,
    );
}

#[test]
fn hook_output_keeps_digits_and_ignores_a_byte_order_mark() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent)
        .file("order.sh", r#"printf '\357\273\277{"ORDER": 123456789012345678901234567890}'"#)
        .suite("a", "name: a\nhooks: [{ cmd: [sh, order.sh] }]\nturns: [{ user: 'order ${ORDER}', assert: { text: { must_match: order } } }]\n");
    project.test(&[]).assert_all_passed();
    assert_eq!(agent.requests()[0].last_user_text(), "order 123456789012345678901234567890");
}

#[test]
fn hook_fails() {
    let tested =
        run_with_hook("{ cmd: [sh, '-c', 'echo out; echo err >&2; exit 7'] }", "failed (exit status: 7)");
    let detail = tested.failure("hooked")["detail"].as_str().expect("what it printed");
    assert!(detail.contains("out") && detail.contains("err"), "{detail}");
    run_with_hook("{ cmd: [sh, '-c', 'echo {}; kill -9 $$'] }", "signal: 9");
}

#[test]
fn hook_does_not_exist() {
    run_with_hook("{ cmd: [no-such-program] }", "hook `no-such-program` cannot be started");
    run_with_hook("{ cmd: ['true'], cwd: no/such/folder }", "hook `true` cannot be started");
}

#[test]
fn hanging_hook_is_killed_with_children() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent)
        .file("hang.sh", "exec 3>alive\nsh -c 'sleep 1000 & sleep 1000' &\nwait\n")
        .suite("a", "name: a\nhooks: [{ cmd: [sh, hang.sh], timeout_ms: 1000 }]\nturns: [{ user: hello }]\n");
    let alive = Lifeline::new(&project.workspace, "alive");
    assert_failed(&project.test(&[]), 1, "hook_error", "hook `sh hang.sh` timed out after 1000 ms");
    alive.wait_for_end();
}

/// Children of a hook end with it and do not delay the case.
#[test]
fn hook_children_end_with_hook() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent)
        .file("leave.sh", "exec 3>alive\nsleep 1000 &\necho '{\"A\": \"b\"}'\n")
        .suite("a", "name: a\nhooks: [{ cmd: [sh, leave.sh] }]\nturns: [{ user: '${A}', assert: { text: { must_match: b } } }]\n");
    let alive = Lifeline::new(&project.workspace, "alive");
    project.test(&[]).assert_all_passed();
    alive.wait_for_end();
}

#[test]
fn expected_error_that_every_text_matches_is_rejected() {
    for pattern in ["'.*'", "{ code: '.*' }"] {
        let suite = format!("name: a\nturns: [{{ user: crash, expect_error: {pattern} }}]\n");
        let output = Project::with_agent(&crate::common::echo_agent()).suite("a", &suite).hotseat(&["test"]);
        assert!(output.code == 2 && output.stderr.contains("every text"), "{pattern}: {output}");
    }
}
