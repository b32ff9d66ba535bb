//! Counting of calls that are announced, answered or reported more than once: the same call counts once,
//! another call counts separately, and no call is lost.

use hotseat_testkit::FakeAgent;
use hotseat_testkit::agui::FakeRun;
use hotseat_trace::FailureKind::{Assertion, ProtocolError};
use serde_json::{Value, json};

use super::fixture::{ConversationOutcome, TestConversation, run_strict_turn, run_turn_with, scripted_agent};

fn start(id: &str, name: &str) -> Value {
    json!({"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": name})
}

fn args(id: &str, delta: &str) -> Value {
    json!({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": delta})
}

fn end(id: &str) -> Value {
    json!({"type": "TOOL_CALL_END", "toolCallId": id})
}

fn result(id: &str, content: &str) -> Value {
    json!({"type": "TOOL_CALL_RESULT", "messageId": format!("r-{content}"), "toolCallId": id, "content": content})
}

/// A call of `pay` under the id `c` in a message.
fn call_of(message: &str, arguments: &str) -> Vec<Value> {
    let mut start = start("c", "pay");
    start["parentMessageId"] = message.into();
    vec![start, args("c", arguments), end("c")]
}

/// A turn with these events inside its run.
fn run_turn(events: Vec<Value>) -> ConversationOutcome {
    run_turn_with(move |run| events.iter().cloned().fold(run.started(), FakeRun::raw_event).finished())
}

/// A68, A77, A332: parallel calls keep their arguments apart and are in start order.
#[test]
fn parallel_calls_are_separate() {
    let told = run_strict_turn(|run| {
        let events = [
            start("a", "first"),
            start("b", "second"),
            args("b", "{\"n\""),
            args("a", "{\"n\":"),
            args("b", ":2}"),
            result("b", "two"),
            end("b"),
            args("a", "1}"),
            end("a"),
            result("a", "one"),
        ];
        events.into_iter().fold(run.started().text("Before."), FakeRun::raw_event).text("After.").finished()
    });
    let told = told.passed().assert_no_notes();
    assert_eq!(told.calls(), [r#"1 first {"n":1} → one"#, r#"1 second {"n":2} → two"#]);
    assert_eq!(told.texts(), ["1 Before.", "1 After."]);
}

/// A349, A411: a resumed run may announce a call again; it is the same call.
#[test]
fn repeated_announcement_is_one_call() {
    let again = |events: Vec<Value>| run_turn(events).passed().calls();
    let once = [r#"1 pay {"n":1} → paid"#];
    let call = || vec![start("c", "pay"), args("c", "{\"n\":1}"), end("c")];
    assert_eq!(again([call(), call(), vec![result("c", "paid")]].concat()), once);
    assert_eq!(again([call(), vec![start("c", "pay"), end("c"), result("c", "paid")]].concat()), once);
    // Also under another message, if the result follows.
    let of = |message: &str| call_of(message, "{\"n\":1}");
    assert_eq!(again([of("m1"), of("m2"), vec![result("c", "paid")]].concat()), once);
    // An agent that names no other message may repeat a call that has no result.
    let unanswered = [r#"1 pay {"n":1} → nothing"#];
    assert_eq!(again([call(), call()].concat()), unanswered);
    assert_eq!(again([of("m1"), of("m1")].concat()), unanswered);
    assert_eq!(again([of("m1"), call()].concat()), unanswered);
    // While it is still open: partial data is kept and repeated data is not duplicated.
    assert_eq!(
        again(vec![
            start("c", "pay"),
            args("c", "{\"n\""),
            start("c", "pay"),
            args("c", ":1}"),
            end("c"),
            result("c", "paid")
        ]),
        once
    );
    assert_eq!(
        again([vec![start("c", "pay"), args("c", "{\"n\":1}")], call(), vec![result("c", "paid")]].concat()),
        once
    );
    assert_eq!(
        again(vec![
            start("c", "pay"),
            args("c", "{\"n\":1}"),
            start("c", "pay"),
            end("c"),
            result("c", "paid")
        ]),
        once
    );
}

/// A tool that ran twice under one id is two calls.
#[test]
fn two_executions_under_one_id_are_two_calls() {
    let call = |n: u8| vec![start("c", "pay"), args("c", &format!("{{\"n\":{n}}}")), end("c")];
    for (second, calls) in [
        // A different result.
        ([call(1), vec![result("c", "b")]].concat(), [r#"1 pay {"n":1} → a"#, r#"1 pay {"n":1} → b"#]),
        // The same result in the same run: runs do not repeat events.
        ([call(1), vec![result("c", "a")]].concat(), [r#"1 pay {"n":1} → a"#, r#"1 pay {"n":1} → a"#]),
        // Without arguments, or with empty ones.
        (vec![start("c", "pay"), result("c", "b"), end("c")], [r#"1 pay {"n":1} → a"#, "1 pay {} → b"]),
        (
            vec![start("c", "pay"), args("c", "{}"), end("c"), result("c", "b")],
            [r#"1 pay {"n":1} → a"#, "1 pay {} → b"],
        ),
        // With arguments that are no JSON.
        (
            vec![start("c", "pay"), args("c", "{\"n\":"), end("c"), result("c", "b")],
            [r#"1 pay {"n":1} → a"#, r#"1 pay "{\"n\":" → b"#],
        ),
        // Different arguments, with and without a result.
        ([call(2), vec![result("c", "a")]].concat(), [r#"1 pay {"n":1} → a"#, r#"1 pay {"n":2} → a"#]),
        (call(2), [r#"1 pay {"n":1} → a"#, r#"1 pay {"n":2} → nothing"#]),
        // A different tool, answered or not.
        (vec![start("c", "delete_order"), end("c")], [r#"1 pay {"n":1} → a"#, "1 delete_order {} → nothing"]),
    ] {
        let told = run_turn([call(1), vec![result("c", "a")], second].concat()).passed();
        assert_eq!(told.calls(), calls);
        told.assert_note("tool call id c is used for two calls");
    }
    // The first without arguments.
    let first = vec![start("c", "pay"), end("c"), result("c", "all")];
    let told = run_turn([first, call(1), vec![result("c", "a")]].concat()).passed();
    assert_eq!(told.calls(), ["1 pay {} → all", r#"1 pay {"n":1} → a"#]);
    // Both before any result, one after the other and in parallel.
    let open = |n: u8| vec![start("c", "pay"), args("c", &format!("{{\"n\":{n}}}"))];
    for parallel in [[call(1), call(2)].concat(), [open(1), open(2), vec![end("c")]].concat()] {
        // The results belong to them in order.
        for (results, calls) in [
            (vec!["a"], [r#"1 pay {"n":1} → a"#, r#"1 pay {"n":2} → nothing"#]),
            (vec!["a", "b"], [r#"1 pay {"n":1} → a"#, r#"1 pay {"n":2} → b"#]),
            (vec!["a", "a", "a"], [r#"1 pay {"n":1} → a"#, r#"1 pay {"n":2} → a"#]),
        ] {
            let results = results.into_iter().map(|content| result("c", content)).collect();
            let told = run_turn([parallel.clone(), results].concat()).passed();
            assert_eq!(told.calls(), calls);
            told.assert_note("tool call id c is used for two calls");
        }
        let results = ["a", "b", "d"].map(|content| result("c", content)).to_vec();
        let words = "several tool calls share the id \"c\", and it has more results than calls";
        run_turn([parallel, results].concat()).failed(ProtocolError, words);
    }
    let tools = vec![start("c", "search"), end("c"), start("c", "refund"), end("c")];
    let told = run_turn([tools, vec![result("c", "found"), result("c", "refunded")]].concat()).passed();
    assert_eq!(told.calls(), ["1 search {} → found", "1 refund {} → refunded"]);
    // Arguments after the end of the call, or after its result.
    let late = |rest: &[Value]| [&call(1)[..], rest].concat();
    for (events, calls) in [
        (
            late(&[args("c", "{\"n\""), args("c", ":2}")]),
            [r#"1 pay {"n":1} → nothing"#, r#"1 pay {"n":2} → nothing"#],
        ),
        (
            late(&[args("c", "{\"n\":2}"), end("c")]),
            [r#"1 pay {"n":1} → nothing"#, r#"1 pay {"n":2} → nothing"#],
        ),
        (
            late(&[result("c", "a"), args("c", "{\"n\":2}")]),
            [r#"1 pay {"n":1} → a"#, r#"1 pay {"n":2} → nothing"#],
        ),
    ] {
        let told = run_turn(events).passed();
        assert_eq!(told.calls(), calls);
        told.assert_note("TOOL_CALL_ARGS for tool call c, which is not open");
    }
    let told = run_turn(vec![
        start("c", "search"),
        args("c", "{\"q\":1}"),
        start("c", "delete_order"),
        args("c", "{\"id\":7}"),
        end("c"),
    ]);
    assert_eq!(
        told.passed().calls(),
        [r#"1 search {"q":1} → nothing"#, r#"1 delete_order {"id":7} → nothing"#]
    );
}

/// Arguments after the end of a call remove nothing.
#[test]
fn late_arguments_remove_no_arguments() {
    let call = [start("c", "pay"), args("c", "{\"n\":1}"), end("c")];
    for late in [
        vec![args("c", "{}")],
        vec![args("c", ",\"m\":2}")],
        vec![start("c", "pay"), args("c", "{}"), end("c")],
    ] {
        let told = run_turn([&call[..], &late].concat()).passed();
        assert_eq!(told.calls(), [r#"1 pay {"n":1} → nothing"#], "{late:?}");
    }
}

/// A model may restart its ids with each message. A call that is announced after the result of another one, or for another
/// message without any result, is a second call, also with the same arguments.
#[test]
fn a_call_of_another_message_is_another_call() {
    let one = |message: &str| call_of(message, "{\"n\":1}");
    let chunk = |message: &str| json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "pay", "parentMessageId": message, "delta": "{\"n\":1}"});
    let text = |id: &str| json!({"type": "TEXT_MESSAGE_CHUNK", "messageId": id, "delta": "Once more."});
    let paid = || result("c", "paid");
    let (answered, open) = (r#"1 pay {"n":1} → paid"#, r#"1 pay {"n":1} → nothing"#);
    for (events, calls) in [
        ([one("m1"), vec![paid()], one("m2")].concat(), vec![answered, open]),
        ([one("m1"), vec![paid(), text("t")], one("m2")].concat(), vec![answered, open]),
        ([one("m1"), vec![paid()], one("m1")].concat(), vec![answered, open]),
        ([one("m1"), vec![paid(), chunk("m2")]].concat(), vec![answered, open]),
        (vec![chunk("m1"), paid(), chunk("m2")], vec![answered, open]),
        (vec![chunk("m1"), paid(), chunk("m2"), paid()], vec![answered, answered]),
        (
            [one("m1"), vec![paid(), start("c", "pay"), end("c")]].concat(),
            vec![answered, "1 pay {} → nothing"],
        ),
        ([one("m1"), vec![paid()], one("m2"), one("m3")].concat(), vec![answered, open, open]),
        ([one("m1"), one("m2")].concat(), vec![open, open]),
        ([one("m1"), vec![text("t")], one("m2"), vec![text("u")]].concat(), vec![open, open]),
        ([one("m1"), one("m2"), one("m3")].concat(), vec![open, open, open]),
        (vec![chunk("m1"), text("t"), chunk("m2")], vec![open, open]),
    ] {
        let told = run_turn(events.clone()).passed();
        assert_eq!(told.calls(), calls, "{events:?}");
        told.assert_note("tool call id c is used for two calls");
    }
}

/// Three executions count three times.
#[test]
fn constant_ids_are_still_counted() {
    let call = |n: u8| {
        vec![
            start("id", "pay"),
            args("id", &format!("{{\"n\":{n}}}")),
            end("id"),
            result("id", &format!("paid {n}")),
        ]
    };
    let told = run_turn([call(1), call(2), call(3)].concat()).passed();
    assert_eq!(
        told.calls(),
        [r#"1 pay {"n":1} → paid 1"#, r#"1 pay {"n":2} → paid 2"#, r#"1 pay {"n":3} → paid 3"#]
    );
}

/// An empty id names no call: each start is a call of its own.
#[test]
fn every_start_with_an_empty_id_is_a_call() {
    let call = || vec![start("", "pay"), args("", "{\"n\":1}"), end("")];
    let open = || vec![start("", "pay"), args("", "{\"n\":1}")];
    let cut = || vec![start("", "pay"), args("", "{\"n\"")];
    let one = r#"1 pay {"n":1} → nothing"#;
    let last = r#"1 pay {"n":1} → paid"#;
    let unknown = r#"1 pay "the reply was cut before the arguments" → nothing"#;
    for (events, calls) in [
        ([call(), call()].concat(), [one, one]),
        ([open(), open()].concat(), [one, one]),
        ([cut(), call()].concat(), [r#"1 pay "{\"n\"" → nothing"#, one]),
        (vec![start("", "pay"), end(""), start("", "pay"), end("")], ["1 pay {} → nothing"; 2]),
        (vec![start("", "pay"), start("", "pay")], [unknown; 2]),
        ([call(), call(), vec![result("", "paid")]].concat(), [last, one]),
        ([call(), vec![result("", "paid")], call()].concat(), [last, one]),
        ([call(), vec![result("", "paid")], call(), vec![result("", "paid")]].concat(), [last, last]),
    ] {
        let told = run_turn(events.clone()).passed();
        assert_eq!(told.calls(), calls, "{events:?}");
        told.assert_note("tool call id \"\" is used for two calls");
    }
    let results = ["paid", "refused"].map(|content| result("", content)).to_vec();
    let words = "tool call with an empty id has two different results";
    run_turn([call(), results].concat()).failed(ProtocolError, words);
    let entry = json!({"id": "", "type": "function", "function": {"name": "pay", "arguments": "{\"n\":1}"}});
    let snapshot = json!({"type": "MESSAGES_SNAPSHOT", "messages": [
        {"id": "u", "role": "user", "content": "hello"},
        {"id": "a", "role": "assistant", "toolCalls": [entry, entry]},
    ]});
    for events in [
        vec![snapshot.clone()],
        vec![snapshot.clone(), snapshot.clone()],
        [call(), vec![snapshot.clone()]].concat(),
        [call(), call(), vec![snapshot]].concat(),
    ] {
        assert_eq!(run_turn(events.clone()).passed().calls(), [one, one], "{events:?}");
    }
}

/// An id reused in a later turn is another call with its own data.
#[test]
fn reused_id_from_earlier_turn_is_another_call() {
    fn turn(run: FakeRun) -> FakeRun {
        run.started().tool("call_1_0", "pay", &json!({"n": 1}), Some(json!("paid"))).finished()
    }
    let agent = scripted_agent(vec![turn, turn, |run| {
        run.started().tool("call_1_0", "pay", &json!({"n": 2}), None).finished()
    }]);
    let told = TestConversation::new(&agent)
        .user_says("one")
        .user_says("two")
        .user_says("three")
        .run()
        .passed()
        .assert_no_notes();
    assert_eq!(
        told.calls(),
        [r#"1 pay {"n":1} → paid"#, r#"2 pay {"n":1} → paid"#, r#"3 pay {"n":2} → nothing"#]
    );
    let ids: Vec<&str> = told.0.conversation.scope().calls().map(|(_, call)| &*call.id).collect();
    assert_eq!(ids.len(), ids.iter().collect::<std::collections::HashSet<_>>().len(), "{ids:?}");
}

/// A120: a repeated result is harmless, another one would hide what the tool answered first.
#[test]
fn a_second_result_must_repeat_the_first() {
    let call = vec![start("c", "pay"), end("c"), result("c", "first")];
    let told = run_turn([call.clone(), vec![result("c", "first")]].concat()).passed().assert_no_notes();
    assert_eq!(told.calls(), ["1 pay {} → first"]);
    let failed = json!({"type": "TOOL_CALL_RESULT", "messageId": "r", "toolCallId": "c", "content": "first", "error": "declined"});
    let mut failed_again = failed.clone();
    failed_again["error"] = "expired".into();
    let first_failed = vec![start("c", "pay"), end("c"), failed.clone()];
    for events in [
        [call.clone(), vec![result("c", "second")]].concat(),
        [call, vec![failed]].concat(),
        [first_failed, vec![failed_again]].concat(),
    ] {
        run_turn(events).failed(
            ProtocolError,
            "tool call c has two different results; a tool that runs again is another call",
        );
    }
}

/// A snapshot may shorten a result; its event may still be repeated.
#[test]
fn a_result_may_be_repeated_after_a_snapshot_shortened_it() {
    let snapshot = json!({"type": "MESSAGES_SNAPSHOT", "messages": [
        {"id": "u", "role": "user", "content": "hello"},
        {"id": "a", "role": "assistant", "toolCalls": [{"id": "c", "type": "function", "function": {"name": "pay", "arguments": "{}"}}]},
        {"id": "r-paid in full", "role": "tool", "toolCallId": "c", "content": "paid"},
    ]});
    let call = vec![start("c", "pay"), end("c"), result("c", "paid in full"), snapshot];
    let told = run_turn([call, vec![result("c", "paid in full")]].concat()).passed().assert_no_notes();
    assert_eq!(told.calls(), ["1 pay {} → paid in full"]);
}

/// A resumed run that executes a tool again and reports only the result.
#[test]
fn a_second_result_in_a_resumed_run_must_repeat_the_first() {
    for (second, is_same) in [("paid 1", true), ("paid 2", false)] {
        let agent = scripted_agent(vec![
            |run| {
                let interrupt = json!([{"id": "i", "reason": "confirm"}]);
                run.started()
                    .tool("c", "pay", &json!({}), Some(json!("paid 1")))
                    .raw_event(json!({"type": "RUN_FINISHED", "outcome": {"type": "interrupt", "interrupts": interrupt}}))
            },
            match is_same {
                true => |run| run.started().raw_event(result("c", "paid 1")).text("Done.").finished(),
                false => |run| run.started().raw_event(result("c", "paid 2")).text("Done.").finished(),
            },
        ]);
        let told =
            TestConversation::new(&agent).turn(json!({"user": "pay", "resume": [{"payload": true}]})).run();
        match is_same {
            true => assert_eq!(told.passed().calls(), ["1 pay {} → paid 1"], "{second}"),
            false => drop(told.failed(ProtocolError, "tool call c has two different results")),
        }
    }
}

/// A resumed run may send a whole call again with its result: that is one call, unless the error of the result differs.
#[test]
fn a_resumed_run_repeats_a_call_with_the_same_result() {
    let told = |first: Value, second: Value| {
        let agent = FakeAgent::with_run(move |run, request| {
            let run = run.tool_call("c", "pay", &json!({"n": 1}));
            match request.index {
                0 => run.raw_event(first.clone()).interrupted(vec![json!({"id": "i", "reason": "confirm"})]),
                _ => run.raw_event(second.clone()).text("Done.").finished(),
            }
        });
        TestConversation::new(&agent).turn(json!({"user": "pay", "resume": [{"payload": true}]})).run()
    };
    let failed = |error: &str| {
        let mut failed = result("c", "no");
        failed["error"] = error.into();
        failed
    };
    for (event, calls) in [
        (result("c", "paid"), [r#"1 pay {"n":1} → paid"#]),
        (failed("declined"), [r#"1 pay {"n":1} → failed: declined: no"#]),
    ] {
        assert_eq!(told(event.clone(), event).passed().assert_no_notes().calls(), calls);
    }
    assert_eq!(
        told(failed("declined"), failed("expired")).passed().calls(),
        [r#"1 pay {"n":1} → failed: declined: no"#, r#"1 pay {"n":1} → failed: expired: no"#]
    );
    assert_eq!(
        told(result("c", "no"), failed("declined")).passed().calls(),
        [r#"1 pay {"n":1} → no"#, r#"1 pay {"n":1} → failed: declined: no"#]
    );
}

/// A334: the order within a call does not matter if all events arrive.
#[test]
fn call_parts_may_arrive_in_any_order() {
    let whole = [r#"1 pay {"n":1} → paid"#];
    for events in [
        vec![result("c", "paid"), start("c", "pay"), args("c", "{\"n\":1}"), end("c")],
        vec![args("c", "{\"n\""), start("c", "pay"), args("c", ":1}"), end("c"), result("c", "paid")],
        vec![start("c", "pay"), end("c"), args("c", "{\"n\""), args("c", ":1}"), result("c", "paid")],
        vec![start("c", "pay"), result("c", "paid"), args("c", "{\"n\":1}"), end("c")],
        vec![start("c", "pay"), end("c"), result("c", "paid"), args("c", "{\"n\":1}")],
        vec![start("c", "pay"), args("c", "{\"n\":1}"), result("c", "paid")],
    ] {
        assert_eq!(run_turn(events.clone()).passed().calls(), whole, "{events:?}");
    }
}

/// Broken repeated arguments do not replace valid ones.
#[test]
fn broken_arguments_never_replace_valid_ones() {
    let told = run_turn(vec![
        start("c", "pay"),
        args("c", "{\"n\":1}"),
        end("c"),
        start("c", "pay"),
        args("c", "1}"),
        end("c"),
    ]);
    assert_eq!(told.passed().calls(), [r#"1 pay {"n":1} → nothing"#]);
}

/// A result or arguments without a call reveal a hidden call, and such a run fails.
#[test]
fn orphaned_call_events_are_errors() {
    run_turn(vec![result("ghost", "x")]).failed(ProtocolError, "a result arrived for tool call ghost");
    run_turn(vec![args("ghost", "{}")]).failed(ProtocolError, "arguments arrived for tool call ghost");
    run_turn(vec![args("ghost", "{}"), end("ghost")])
        .failed(ProtocolError, "arguments arrived for tool call ghost");
    let told = run_turn_with(|run| run.started().raw_event(result("ghost", "x")).error("boom", None));
    told.failed(hotseat_trace::FailureKind::AgentError, "boom");
}

/// An id of an earlier turn is unknown in this one.
#[test]
fn hidden_call_under_reused_id_is_detected() {
    for hidden in [vec![args("c", "{\"n\":2}"), end("c")], vec![result("c", "paid again")]] {
        let agent = FakeAgent::with_run(move |run, request| match request.index {
            0 => run.tool("c", "pay", &json!({"n": 1}), Some(json!("paid"))).finished(),
            _ => hidden.iter().cloned().fold(run, FakeRun::raw_event).finished(),
        });
        let told = TestConversation::new(&agent)
            .user_says("one")
            .user_says("two")
            .run()
            .failed(ProtocolError, "arrived for tool call c, but no event names its tool");
        assert_eq!(told.calls(), [r#"1 pay {"n":1} → paid"#], "the earlier call stays as it was");
    }
}

/// A result that arrives a turn late belongs to its pending call; a repeated result is ignored.
#[test]
fn late_result_belongs_to_its_call() {
    let agent = scripted_agent(vec![
        |run| {
            run.started()
                .tool("slow", "ship", &json!({}), None)
                .tool("fast", "pay", &json!({}), Some(json!("paid")))
                .finished()
        },
        |run| run.started().raw_event(result("slow", "shipped")).raw_event(result("fast", "paid")).finished(),
    ]);
    let told =
        TestConversation::new(&agent).user_says("one").user_says("two").run().passed().assert_no_notes();
    assert_eq!(told.calls(), ["1 ship {} → shipped", "1 pay {} → paid"]);
}

/// A80, A83: assertions see all recorded calls, in every event form.
#[test]
fn assertions_see_every_call() {
    let agent = scripted_agent(vec![|run| run.started().raw_event(start("c", "delete_order")).finished()]);
    let turn = json!({"user": "hi", "assert": {"tools": {"forbid": ["delete_order"]}}});
    TestConversation::new(&agent).turn(turn).run().failed(Assertion, "delete_order never to be called");
}
