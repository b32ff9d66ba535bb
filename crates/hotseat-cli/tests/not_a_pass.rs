//! Nothing passes by accident: what is not a pass, how it is called, and how the exit code tells.
#![cfg(unix)]

mod common;

use hotseat_testkit::agui::Run;
use hotseat_testkit::{FakeAgent, Reply, Request, Step};
use serde_json::{Value, json};

use common::{Lifeline, Project, Tested, echo_agent, nobody};

/// Holds the cases of a suite with an agent.
#[track_caller]
fn held<R: Into<Reply>>(agent: impl Fn(&Request) -> R + Send + Sync + 'static, suite: &str) -> Tested {
    Project::of(&FakeAgent::start(agent)).suite("a", suite).test(&[])
}

/// No case passed: each failed in this way and said these words, and so did the console. What a check expected
/// stands there beside its place, and not in the line that names the failure.
#[track_caller]
fn not_a_pass(tested: &Tested, code: i32, kind: &str, words: &str) {
    let Tested { output, report } = tested;
    let results = report["results"].as_array().expect("a list of results");
    assert!(!results.is_empty(), "{output}");
    for result in results {
        let message = result["failure"]["message"].as_str().unwrap_or_default();
        assert_eq!(result["status"], "failed", "{}\n{output}", result["name"]);
        assert_eq!(result["failure"]["kind"], kind, "{}\n{output}", result["name"]);
        assert!(message.contains(words), "{}: {words:?} is not in {message:?}\n{output}", result["name"]);
    }
    let shown = words.trim_start_matches("does not hold: ");
    assert!(in_one_line(&output.stdout).contains(shown), "{shown:?} is not on the console\n{output}");
    assert!(output.stdout.contains(&format!("└─ {kind}: ")), "{output}");
    assert!(
        output.stdout.contains("TESTS FAILED") && !output.stdout.contains("ALL TESTS PASSED"),
        "{output}"
    );
    let passed = output.stdout.lines().any(|line| line.starts_with("► ") && line.contains(" PASSED "));
    assert!(!passed, "{output}");
    assert_eq!(output.code, code, "{output}");
}

/// A text without its line breaks and margins: the console wraps long lines.
fn in_one_line(text: &str) -> String {
    text.split_whitespace().filter(|word| !matches!(*word, "│" | "|")).collect::<Vec<_>>().join(" ")
}

/// Refused before anything was contacted.
#[track_caller]
fn refused(project: Project, args: &[&str], words: &[&str]) {
    let output = project.hotseat(&[&["test"], args].concat());
    assert_eq!(output.code, 2, "{output}");
    for words in words {
        assert!(in_one_line(&output.stderr).contains(words), "{words:?} is not in\n{output}");
    }
    assert!(!output.stdout.contains("passed"), "{output}");
}

fn charge(id: &str, run: Run, result: Option<Value>) -> Run {
    run.tool(id, "charge_card", &json!({"amount": 42.5}), result)
}

fn declined() -> Value {
    json!({"status": "declined", "reason": "insufficient funds"})
}

fn approved() -> Value {
    json!({"status": "approved"})
}

// Tools.

/// Three ways to ask for the same thing.
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
fn a_result_in_content_is_seen() {
    let tested = held(
        |request| charge("c", Run::of(request).started(), Some(declined())).text("Done.").finished(),
        NO_DECLINED_CHARGE,
    );
    not_a_pass(&tested, 1, "assertion", "does not hold: ");
    let call = &tested.case("forbidden call")["turns"][0]["tool_calls"][0];
    assert_eq!((&call["name"], &call["result"]), (&json!("charge_card"), &declined()));
}

#[test]
fn a_result_that_only_a_snapshot_holds_is_seen() {
    let agent = |request: &Request| {
        let call = json!({
            "id": "c", "type": "function",
            "function": {"name": "charge_card", "arguments": "{\"amount\":42.5}"},
        });
        Run::of(request)
            .started()
            .messages_snapshot(vec![
                json!({"id": "u", "role": "user", "content": "pay"}),
                json!({"id": "a", "role": "assistant", "content": "", "toolCalls": [call]}),
                json!({"id": "t", "role": "tool", "toolCallId": "c", "content": declined().to_string()}),
            ])
            .finished()
    };
    not_a_pass(&held(agent, NO_DECLINED_CHARGE), 1, "assertion", "does not hold: ");
}

#[test]
fn calls_and_words_as_chunks_are_seen() {
    let chunks = |request: &Request| {
        let run = Run::of(request).started();
        run.tool_chunks("c", "charge_card", &json!({"amount": 42.5}), Some(declined()))
            .text_chunks("Declined.")
            .finished()
    };
    not_a_pass(&held(chunks, NO_DECLINED_CHARGE), 1, "assertion", "does not hold: ");

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
    not_a_pass(&held(chunks, never), 1, "assertion", "does not hold: ");
}

#[test]
fn a_call_without_a_result_was_made_all_the_same() {
    let agent = |request: &Request| {
        Run::of(request)
            .started()
            .tool_call("c", "delete_order", &json!({"id": "o-9"}))
            .text("Done.")
            .finished()
    };
    let tested = held(
        agent,
        "
name: forbidden
turns: [{ user: delete }]
assert: { tools: { forbid: [delete_order] } }
",
    );
    not_a_pass(&tested, 1, "assertion", "delete_order is never called");
    assert!(
        in_one_line(&tested.output.stdout).contains(r#"delete_order({"id":"o-9"}) → no result"#),
        "{}",
        tested.output
    );
}

#[test]
fn a_call_without_a_result_has_none_that_could_fit() {
    let agent = |request: &Request| charge("c", Run::of(request).started(), None).text("Done.").finished();
    let tested = held(
        agent,
        "
name: approved
turns: [{ user: pay }]
assert: { tools: { require: [{ name: charge_card, result_match: '.*' }] } }
",
    );
    not_a_pass(&tested, 1, "assertion", "with a result that fits /.*/ is called");
}

#[test]
fn never_means_never() {
    let suite = "
name: never
turns: [{ user: pay }]
assert: { tools: { require: [{ name: charge_card, count: { exact: 0 } }] } }
";
    let once = |request: &Request| charge("c", Run::of(request).started(), Some(approved())).finished();
    not_a_pass(&held(once, suite), 1, "assertion", "charge_card is never called");
    held(|request: &Request| Run::of(request).started().text("No.").finished(), suite).all_passed();
}

#[test]
fn one_call_does_not_come_after_itself() {
    let suite = "
name: again
turns: [{ user: pay }]
assert: { tools: { require: [{ name: charge_card, after: charge_card }] } }
";
    let once = |request: &Request| charge("c", Run::of(request).started(), Some(approved())).finished();
    not_a_pass(&held(once, suite), 1, "assertion", "charge_card is called only after charge_card");
    let twice = |request: &Request| {
        let run = charge("c-1", Run::of(request).started(), Some(approved()));
        charge("c-2", run, Some(approved())).finished()
    };
    held(twice, suite).all_passed();
}

#[test]
fn one_bad_result_of_two_is_one_too_many() {
    let agent = |request: &Request| {
        let run = charge("c-1", Run::of(request).started(), Some(approved()));
        charge("c-2", run, Some(declined())).finished()
    };
    let tested = held(
        agent,
        "
name: every result
turns: [{ user: pay }]
assert: { tools: { require: [{ name: charge_card, result_not_match: declined }] } }
",
    );
    not_a_pass(&tested, 1, "assertion", "no result of charge_card fits /declined/");
}

#[test]
fn numbers_are_compared_as_numbers_are_written() {
    let agent = |request: &Request| charge("c", Run::of(request).started(), Some(approved())).finished();
    let suite = |pattern: &str| {
        format!(
            "
name: amount
turns: [{{ user: pay }}]
assert: {{ tools: {{ require: [{{ name: charge_card, args_match: {{ amount: '{pattern}' }} }}] }} }}
"
        )
    };
    not_a_pass(&held(agent, &suite("^42$")), 1, "assertion", "amount /^42$/ is called");
    held(agent, &suite(r"^42\.5$")).all_passed();
}

/// What is asserted of the whole case counts over all turns, whatever the turns assert.
#[test]
fn exactly_once_over_three_turns_holds() {
    let agent = |request: &Request| {
        let run = Run::of(request).started();
        let run = if request.last_user_text() == "pay" { charge("c", run, Some(approved())) } else { run };
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
    held(agent, suite).all_passed();

    // The same over two payments does not, although every turn alone does.
    let again =
        suite.replace("user: leave, assert: { tools: { forbid: [charge_card] },", "user: pay, assert: {");
    assert_ne!(suite, again);
    let agent = |request: &Request| {
        let run = Run::of(request).started();
        let id = format!("c-{}", request.user_texts().len());
        let run = if request.last_user_text() == "pay" { charge(&id, run, Some(approved())) } else { run };
        run.text("Very well.").finished()
    };
    not_a_pass(&held(agent, &again), 1, "assertion", "charge_card is called exactly once");
}

// Streams.

/// Passes with every agent that answers at all.
const ANYTHING: &str = "
name: anything
turns: [{ user: hello }]
assert: { tools: { forbid: [delete_order] }, text: { must_not_match: impossible } }
";

/// The cuts are tried as a clean end of the body, a closed and a reset connection.
#[track_caller]
fn cut(stream: impl Fn(&Request) -> Run + Clone + Send + Sync + 'static, words: &str) {
    for step in [Step::End, Step::Cut, Step::Reset] {
        let stream = stream.clone();
        let tested = held(move |request: &Request| stream(request).step(step.clone()), ANYTHING);
        not_a_pass(&tested, 1, "protocol_error", words);
    }
    let until_close = held(move |request: &Request| stream(request).reply().until_close(), ANYTHING);
    not_a_pass(&until_close, 1, "protocol_error", words);
}

#[test]
fn a_stream_cut_in_the_middle_of_an_event() {
    let half = |request: &Request| {
        let run = Run::of(request).started().text("Hello.");
        run.step(Step::Bytes("data: {\"type\":\"RUN_FINI".into()))
    };
    cut(half, "after 4 events, without RUN_FINISHED or RUN_ERROR");
}

/// The event is whole, and only the blank line after it is missing: it counts if the stream ends in order.
#[test]
fn a_stream_that_breaks_off_before_the_blank_line_of_its_last_event() {
    let almost = |request: &Request| {
        let run = Run::of(request).started().text("Hello.");
        run.step(Step::Bytes("data: {\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r\"}\n".into()))
    };
    for step in [Step::Cut, Step::Reset] {
        let tested = held(move |request: &Request| almost(request).step(step.clone()), ANYTHING);
        not_a_pass(&tested, 1, "protocol_error", "after 4 events, without RUN_FINISHED or RUN_ERROR");
    }
    held(move |request: &Request| almost(request).step(Step::End), ANYTHING).all_passed();
}

#[test]
fn a_stream_cut_in_the_middle_of_a_message() {
    let half = |request: &Request| {
        Run::of(request)
            .started()
            .raw_event(json!({"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"}))
            .raw_event(json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Hel"}))
    };
    cut(half, "after 3 events, without RUN_FINISHED or RUN_ERROR");
}

#[test]
fn a_stream_cut_in_the_middle_of_a_call() {
    let half = |request: &Request| {
        Run::of(request)
            .started()
            .raw_event(json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "charge_card"}))
            .raw_event(json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{\"amo"}))
    };
    cut(half, "after 3 events, without RUN_FINISHED or RUN_ERROR");
}

#[test]
fn a_stream_cut_before_its_terminal_event() {
    cut(|request| Run::of(request).started().text("Hello."), "without RUN_FINISHED or RUN_ERROR");
}

#[test]
fn a_stream_cut_before_its_first_event() {
    cut(Run::of, "without a single event");
}

#[test]
fn an_answer_without_a_body() {
    not_a_pass(&held(|_| Reply::status(200), ANYTHING), 1, "protocol_error", "without a single event");
    not_a_pass(&held(|_| Reply::status(204), ANYTHING), 1, "protocol_error", "without a single event");
    let keep_alives = |_: &Request| Reply::sse().bytes(": still here\n\n: still here\n\n");
    not_a_pass(&held(keep_alives, ANYTHING), 1, "protocol_error", "without a single event");
}

#[test]
fn a_web_page() {
    let page = |_: &Request| Reply::status(200).header("content-type", "text/html").bytes("<h1>Welcome</h1>");
    let tested = held(page, ANYTHING);
    not_a_pass(&tested, 1, "protocol_error", "content type text/html is not a stream of events");
    assert!(tested.output.stdout.contains("<h1>Welcome</h1>"), "{}", tested.output);
    // Called a stream, it is still none.
    let page = |_: &Request| Reply::sse().bytes("<h1>Welcome</h1>\n\n");
    not_a_pass(&held(page, ANYTHING), 1, "protocol_error", "without a single event");
}

#[test]
fn an_event_that_is_none() {
    for (data, words) in [
        ("data: {\"type\":\n\n", "event 2"),
        ("data: []\n\n", "event 2"),
        ("data: {\"messageId\":\"m\"}\n\n", "event 2"),
        ("data: {\"type\":\"TOOL_CALL_START\",\"toolCallId\":\"c\"}\n\n", "event 2"),
    ] {
        let agent =
            move |request: &Request| Run::of(request).started().step(Step::Bytes(data.into())).finished();
        not_a_pass(&held(agent, ANYTHING), 1, "protocol_error", words);
    }
}

/// A result of a call that nobody has announced could be that of a forbidden tool.
#[test]
fn a_result_of_an_unknown_call() {
    let agent = |request: &Request| Run::of(request).started().tool_result("c", &declined()).finished();
    not_a_pass(&held(agent, ANYTHING), 1, "protocol_error", "no event says which tool that is");
}

#[test]
fn a_refusal() {
    let agent = |_: &Request| Reply::json(401, &json!({"detail": "no token"}));
    let tested = held(agent, ANYTHING);
    not_a_pass(&tested, 1, "agent_error", "answered HTTP 401 Unauthorized; check target.headers");
    assert!(tested.output.stdout.contains("no token"), "{}", tested.output);
}

#[test]
fn a_redirect_and_a_server_error() {
    let moved = |_: &Request| Reply::status(307).header("location", "http://127.0.0.1:1/new");
    not_a_pass(&held(moved, ANYTHING), 1, "agent_error", "set target.endpoint to http://127.0.0.1:1/new");
    not_a_pass(&held(|_| Reply::text(500, "oops"), ANYTHING), 1, "agent_error", "answered HTTP 500");
}

#[test]
fn nobody_there() {
    let project = Project::with(&format!("target: {{ endpoint: '{}' }}\n", nobody())).suite("a", ANYTHING);
    not_a_pass(&project.test(&[]), 3, "unreachable", "cannot reach http://127.0.0.1:");
}

#[test]
fn a_server_that_closes_instead_of_answering() {
    not_a_pass(&held(|_| Reply::refused(), ANYTHING), 1, "protocol_error", "gave no answer");
}

#[test]
fn an_agent_that_says_it_failed() {
    let agent =
        |request: &Request| Run::of(request).started().text("Hello.").error("model exploded", Some("BOOM"));
    not_a_pass(&held(agent, ANYTHING), 1, "agent_error", "the agent failed: model exploded (BOOM)");
}

#[test]
fn an_error_that_was_expected_and_did_not_come() {
    let agent = |request: &Request| {
        let run = Run::of(request).started();
        if request.last_user_text() == "crash" {
            run.error("out of stock", None)
        } else {
            run.text("Fine.").finished()
        }
    };
    let tested = held(
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
    not_a_pass(&tested, 1, "assertion", "expected was an error");
}

// Time.

#[test]
fn a_server_that_hangs_before_its_head() {
    let suite = ANYTHING.replace("user: hello", "user: hello, timeout_ms: 150");
    not_a_pass(&held(|_| Reply::never(), &suite), 1, "timeout", "the turn timed out after 150 ms");
}

#[test]
fn a_server_that_hangs_in_its_stream() {
    let agent = |request: &Request| Run::of(request).started().text("Hello.").hang();
    let suite = ANYTHING.replace("user: hello", "user: hello, timeout_ms: 1000");
    let tested = held(agent, &suite);
    not_a_pass(&tested, 1, "timeout", "the turn timed out after 1000 ms");
    assert_eq!(tested.case("anything")["turns"][0]["output"], "Hello.", "what came is kept");
}

#[test]
fn a_server_that_sends_nothing_for_too_long() {
    let agent = FakeAgent::start(|request| Run::of(request).started().hang());
    let project = format!("target: {{ endpoint: '{}', idle_timeout_ms: 150 }}\n", agent.url());
    let tested = Project::with(&project).suite("a", ANYTHING).test(&[]);
    not_a_pass(&tested, 1, "timeout", "the agent sent nothing for 150 ms (target.idle_timeout_ms)");
}

#[test]
fn a_case_that_takes_too_long() {
    // Each turn alone is fast enough.
    let agent = |request: &Request| match request.last_user_text().as_str() {
        "hello" => Run::of(request).started().text("Hello.").finished(),
        _ => Run::of(request).started().hang(),
    };
    let turns = ANYTHING.replace("[{ user: hello }]", "[{ user: hello }, { user: wait }]");
    let limited = turns.replace("turns:", "timeout_ms: 150\nturns:");
    not_a_pass(&held(agent, &limited), 1, "timeout", "the case timed out after 150 ms");
    let flagged = Project::of(&FakeAgent::start(agent)).suite("a", &turns).test(&["--timeout", "150ms"]);
    not_a_pass(&flagged, 1, "timeout", "the case timed out after 150 ms");
    // What the case says goes before what the command line says.
    let both = Project::of(&FakeAgent::start(agent)).suite("a", &limited).test(&["--timeout", "1h"]);
    not_a_pass(&both, 1, "timeout", "the case timed out after 150 ms");
}

#[test]
fn a_limit_on_the_duration_ends_an_agent_that_hangs() {
    let agent = |request: &Request| Run::of(request).started().text("Hello.").hang();
    let tested = held(
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
    not_a_pass(&tested, 1, "assertion", "it takes at most 150 ms");
    assert_eq!(tested.case("the case")["total_turns"], 1);
}

#[test]
fn an_agent_that_is_idle_for_too_long() {
    let agent = |request: &Request| {
        let run = charge("c-1", Run::of(request).started(), Some(approved()));
        charge("c-2", run.pause(std::time::Duration::from_millis(120)), Some(approved())).finished()
    };
    let tested = held(
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
    not_a_pass(&tested, 1, "assertion", "at most 50 ms");
}

// What the agent asks the client for.

fn interrupted(request: &Request) -> Run {
    let run = Run::of(request).started();
    match request.resume().is_empty() {
        true => run.interrupted(vec![json!({"id": "i", "reason": "approval", "message": "Refund?"})]),
        false => run.text("Refunded.").finished(),
    }
}

#[test]
fn an_interrupt_that_nobody_answers() {
    let suite = ANYTHING.replace("user: hello", "user: hello, resume: [{ reason: other, payload: 1 }]");
    for suite in [ANYTHING, &suite] {
        let tested = held(interrupted, suite);
        not_a_pass(&tested, 1, "test_error", "asked for an answer that the turn does not script (`resume`)");
    }
}

#[test]
fn an_answer_that_nobody_asked_for() {
    let suite = ANYTHING.replace("user: hello", "user: hello, resume: [{ payload: 1 }]");
    held(interrupted, &suite).all_passed();
    let asks_nothing = |request: &Request| Run::of(request).started().text("Hello.").finished();
    not_a_pass(
        &held(asks_nothing, &suite),
        1,
        "assertion",
        "the agent never paused for the answer at a.test.yaml:3",
    );
}

#[test]
fn a_client_tool_without_an_answer() {
    let agent = |request: &Request| {
        Run::of(request)
            .started()
            .tool_call("c", "confirm", &json!({"what": "refund"}))
            .pending(&["c".to_string()])
    };
    for answers in ["", ", answers: [{ args_match: { what: payment }, content: yes }]"] {
        let suite = format!("{ANYTHING}tools: [{{ name: confirm{answers} }}]\n");
        let words = r#"client tool confirm was called with {"what":"refund"} and no scripted answer fits"#;
        not_a_pass(&held(agent, &suite), 1, "test_error", words);
    }
}

// Files.

fn offline() -> Project {
    Project::with("target: { endpoint: 'http://127.0.0.1:9/' }\n")
}

#[test]
fn a_pattern_that_does_not_compile() {
    let suite =
        "name: a\nturns:\n  - user: hello\n    assert:\n      text:\n        must_not_match: '(unclosed'\n";
    for args in [&["--dry-run"][..], &[]] {
        refused(offline().suite("a", suite), args, &["unclosed group", "--> a.test.yaml:6:25"]);
    }
}

#[test]
fn a_variable_that_is_not_defined() {
    let hook = "name: a\nturns: [{ user: 'order ${ORDER}' }]\n";
    refused(
        offline().suite("a", hook),
        &[],
        &["variable `ORDER` is not defined: no hook gives it", "a.test.yaml:2:17"],
    );
    let env = "name: a\nturns: [{ user: 'order ${ENV.ORDER}' }]\n";
    refused(offline().suite("a", env), &[], &["environment variable `ORDER` is not set", "a.test.yaml:2:17"]);
    let target = Project::with("target: { endpoint: '${ENV.URL}' }\n").suite("a", ANYTHING);
    refused(target, &["--dry-run"], &["environment variable `URL` is not set", "hotseat.yaml:1:21"]);
    // Set to nothing is set; not text is not.
    let in_pattern = "name: a\nturns: [{ user: a, assert: { text: { must_not_match: '${ENV.ORDER}' } } }]\n";
    refused(offline().suite("a", in_pattern), &["--dry-run"], &["environment variable `ORDER` is not set"]);
}

#[test]
fn a_variable_that_the_hooks_do_not_give() {
    let suite = "
name: a
hooks: [{ cmd: [echo, '{\"OTHER\":1}'] }]
turns: [{ user: 'order ${ORDER}' }]
";
    let agent = echo_agent();
    let tested = Project::of(&agent).suite("a", suite).test(&[]);
    not_a_pass(
        &tested,
        1,
        "test_error",
        "variable `ORDER` is not defined: hooks gave OTHER (a.test.yaml:4:17)",
    );
    assert_eq!(agent.requests().len(), 0);
}

#[test]
fn a_misspelt_key() {
    let suite = "name: a\nturns:\n  - user: a\n    assert: { tool: { forbid: [b] } }\n";
    refused(
        offline().suite("a", suite),
        &[],
        &["unknown key `tool`", "did you mean `tools`?", "a.test.yaml:4:15"],
    );
}

#[test]
fn an_empty_suite() {
    for text in ["", "\n\n", "# nothing yet\n", "---\n---\n"] {
        refused(offline().suite("a", text), &[], &["a.test.yaml"]);
    }
}

#[test]
fn a_block_that_asserts_nothing() {
    for block in ["{ tools: {} }", "{ text: {} }", "{ timing: {} }"] {
        let suite = format!("name: a\nturns: [{{ user: a }}]\nassert: {block}\n");
        refused(offline().suite("a", &suite), &[], &["asserts nothing", "a.test.yaml:3:"]);
    }
}

// Hooks.

#[track_caller]
fn hooked(hook: &str, words: &str) -> Tested {
    let agent = echo_agent();
    let suite = format!("name: hooked\nhooks: [{hook}]\nturns: [{{ user: hello }}]\n");
    let tested = Project::of(&agent).suite("a", &suite).test(&[]);
    not_a_pass(&tested, 1, "hook_error", words);
    assert_eq!(agent.requests().len(), 0, "nobody talks to the agent after a hook has failed");
    tested
}

#[test]
fn a_hook_that_prints_no_json() {
    let tested =
        hooked("{ cmd: [echo, 'ORDER=1'] }", "hook `echo ORDER=1` printed something that is not JSON");
    assert!(tested.output.stdout.contains("ORDER=1"), "{}", tested.output);
    hooked("{ cmd: [echo, '[1]'] }", "printed JSON that is not an object");
    hooked("{ cmd: [echo, '{} {}'] }", "printed something that is not JSON");
}

#[test]
fn a_hook_that_fails() {
    let tested = hooked("{ cmd: [sh, '-c', 'echo out; echo err >&2; exit 7'] }", "failed (exit status: 7)");
    let detail = tested.failure("hooked")["detail"].as_str().expect("what it printed");
    assert!(detail.contains("out") && detail.contains("err"), "{detail}");
    hooked("{ cmd: [sh, '-c', 'echo {}; kill -9 $$'] }", "signal: 9");
}

#[test]
fn a_hook_that_is_not_there() {
    hooked("{ cmd: [no-such-program] }", "hook `no-such-program` cannot be started");
    hooked("{ cmd: ['true'], cwd: no/such/folder }", "hook `true` cannot be started");
}

#[test]
fn a_hook_that_hangs_dies_with_what_it_started() {
    let agent = echo_agent();
    let project = Project::of(&agent)
        .file("hang.sh", "exec 3>alive\nsh -c 'sleep 1000 & sleep 1000' &\nwait\n")
        .suite("a", "name: a\nhooks: [{ cmd: [sh, hang.sh], timeout_ms: 1000 }]\nturns: [{ user: hello }]\n");
    let alive = Lifeline::new(&project.workspace, "alive");
    not_a_pass(&project.test(&[]), 1, "hook_error", "hook `sh hang.sh` timed out after 1000 ms");
    alive.wait_for_end();
}

/// What a hook leaves behind ends with it, and does not hold up the case.
#[test]
fn a_hook_that_ends_takes_with_it_what_it_started() {
    let agent = echo_agent();
    let project = Project::of(&agent)
        .file("leave.sh", "exec 3>alive\nsleep 1000 &\necho '{\"A\": \"b\"}'\n")
        .suite("a", "name: a\nhooks: [{ cmd: [sh, leave.sh] }]\nturns: [{ user: '${A}', assert: { text: { must_match: b } } }]\n");
    let alive = Lifeline::new(&project.workspace, "alive");
    project.test(&[]).all_passed();
    alive.wait_for_end();
}
