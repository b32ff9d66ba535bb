//! Calls and results count in every form and event type.

use std::time::Duration;

use hotseat_targets::ag_ui::TimingSource;
use hotseat_testkit::agui::FakeRun;
use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest};
use hotseat_trace::FailureKind::{Assertion, ProtocolError, TestError};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::fixture::{
    ConversationOutcome, TestConversation, WAIT_LIMIT, agent, messages, run_turn_with, scripted_agent,
};

/// Event form of a call and its result.
#[derive(Debug, Clone, Copy)]
enum EventForm {
    Streamed,
    Chunked,
    Snapshot,
    ResultInSnapshot,
}

const EVENT_FORMS: [EventForm; 4] =
    [EventForm::Streamed, EventForm::Chunked, EventForm::Snapshot, EventForm::ResultInSnapshot];

/// An agent that calls `pay` with these raw arguments and reports its result.
fn paying_agent(way: EventForm, arguments: String, content: Option<Value>) -> FakeAgent {
    FakeAgent::start(move |request: &FakeRequest| -> FakeReply {
        let event = |run: FakeRun, event: Value| run.raw_event(event);
        let mut run = FakeRun::for_request(request).started();
        let mut all = messages(request);
        all.push(json!({"id": "a", "role": "assistant", "toolCalls": [{"id": "c", "type": "function", "function": {"name": "pay", "arguments": arguments}}]}));
        run = match way {
            EventForm::Snapshot => run,
            EventForm::Chunked => event(
                run,
                json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "pay", "delta": arguments}),
            ),
            EventForm::Streamed | EventForm::ResultInSnapshot => {
                let run = event(
                    run,
                    json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "pay", "parentMessageId": "a"}),
                );
                let run =
                    event(run, json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": arguments}));
                event(run, json!({"type": "TOOL_CALL_END", "toolCallId": "c"}))
            }
        };
        let in_snapshot = matches!(way, EventForm::Snapshot | EventForm::ResultInSnapshot);
        if let Some(content) = &content {
            match in_snapshot {
                true => all.push(json!({"id": "t", "role": "tool", "toolCallId": "c", "content": content})),
                false => {
                    run = event(
                        run,
                        json!({"type": "TOOL_CALL_RESULT", "messageId": "t", "toolCallId": "c", "content": content}),
                    )
                }
            }
        }
        if in_snapshot {
            run = run.messages_snapshot(all);
        }
        run.text("Done.").finished().into()
    })
}

fn run_payment(
    way: EventForm,
    arguments: &str,
    content: Option<Value>,
    asserted: Value,
) -> ConversationOutcome {
    let agent = paying_agent(way, arguments.to_string(), content);
    TestConversation::new(&agent).turn(json!({"user": "pay", "assert": {"tools": asserted}})).run()
}

/// A list is multi-part content only if all entries are known parts.
#[test]
fn result_resembling_content_parts_is_kept() {
    let forbidden = json!({"forbid_calls": [{"name": "pay", "result_match": "declined"}]});
    for content in [
        json!([{"type": "payment", "status": "declined"}]),
        json!([{"type": "text", "status": "declined"}]),
        json!([{"type": "text", "text": "ok"}, {"type": "payment", "status": "declined"}]),
        json!([{"type": "text", "text": "ok", "status": "declined"}]),
        json!([{"type": "image", "status": "declined"}]),
        json!({"type": "text", "status": "declined"}),
        json!([{"type": "text", "text": "declined"}]),
        json!("[{\"type\": \"payment\", \"status\": \"declined\"}]"),
    ] {
        for way in EVENT_FORMS {
            run_payment(way, "{}", Some(content.clone()), forbidden.clone()).failed(Assertion, "declined");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// A word in a tool result is found for any JSON and event form.
    #[test]
    fn result_text_is_found_in_every_form(
        keys in prop::collection::vec(prop::sample::select(vec!["type", "text", "status", "source", "id"]), 1..3),
        kind in prop::sample::select(vec!["text", "image", "payment", "file", "binary", "tool_result"]),
        list in any::<bool>(),
        way in prop::sample::select(EVENT_FORMS.to_vec()),
    ) {
        let mut entry = serde_json::Map::from_iter([("type".to_string(), json!(kind))]);
        for key in keys {
            entry.insert(key.to_string(), json!("declined"));
        }
        prop_assume!(entry.values().any(|value| value == "declined"));
        let content = if list { json!([entry]) } else { json!(entry) };
        let told = run_payment(way, "{}", Some(content), json!({"forbid_calls": [{"name": "pay", "result_match": "declined"}]}));
        told.failed(Assertion, "declined");
    }
}

/// Assertions about a missing result are undecidable, also negated.
#[test]
fn missing_result_passes_no_check() {
    for way in [EventForm::Streamed, EventForm::Chunked, EventForm::Snapshot] {
        for asserted in [
            json!({"forbid_calls": [{"name": "pay", "result_match": "declined"}]}),
            json!({"require": [{"name": "pay", "result_not_match": "declined"}]}),
            json!({"require": [{"name": "pay", "result_match": "approved"}]}),
            json!({"require": [{"name": "pay", "result_match": "declined", "count": {"exact": 0}}]}),
            json!({"require": [{"name": "pay", "result_match": "declined", "count": {"max": 0}}]}),
        ] {
            run_payment(way, "{}", None, asserted).failed(Assertion, "no result of the agent");
        }
        // Independent assertions are decided.
        let decided = json!({"require": [{"name": "pay", "count": {"exact": 1}}], "forbid": ["refund"]});
        run_payment(way, "{}", None, decided).passed();
        run_payment(way, "{}", None, json!({"forbid": ["pay"]})).failed(Assertion, "pay");
    }
    for negate in [false, true] {
        let agent = paying_agent(EventForm::Streamed, "{}".to_string(), None);
        let check = json!([{"type": "tool_result", "name": "pay", "result": "declined", "negate": negate}]);
        TestConversation::new(&agent)
            .turn(json!({"user": "pay", "assert": check}))
            .run()
            .failed(Assertion, "no result");
    }
}

/// Missing arguments in any form are an empty object.
#[test]
fn call_without_arguments_has_empty_object() {
    for way in EVENT_FORMS {
        for written in ["", "{}", " "] {
            let told = run_payment(way, written, Some(json!("paid")), json!({"require": [{"name": "pay"}]}))
                .passed();
            assert_eq!(told.calls(), ["1 pay {} → paid"], "{way:?} {written:?}");
        }
    }
}

/// Integers beyond 64 bits keep their digits.
#[test]
fn numbers_keep_all_digits() {
    let (one, other) = ("123456789012345678901234567890", "123456789012345678901234567891");
    for way in EVENT_FORMS {
        let arguments = format!("{{\"id\":{one}}}");
        let with = |id: &str| json!({"require": [{"name": "pay", "args_match": {"id": format!("^{id}$")}}]});
        run_payment(way, &arguments, Some(json!("ok")), with(one)).passed();
        run_payment(way, &arguments, Some(json!("ok")), with(other)).failed(Assertion, "pay");
    }
    // Also as a JSON value of the event, not only inside text.
    let agent = agent(move |run| {
        let text = format!(
            r#"{{"type":"TOOL_CALL_RESULT","messageId":"t","toolCallId":"c","content":{{"id":{one}}}}}"#
        );
        let head = run.started().tool_call("c", "pay", &json!({}));
        FakeReply::from(head).bytes(format!("data: {text}\n\n")).event(json!({"type": "RUN_FINISHED"}))
    });
    let told = TestConversation::new(&agent).user_says("pay").run().passed();
    assert_eq!(told.calls(), [format!(r#"1 pay {{}} → {{"id":"{one}"}}"#)]);
}

/// A UTF-16 surrogate pair may be split between two events.
#[test]
fn surrogate_halves_are_joined() {
    let agent = agent(|run| {
        let mut reply = FakeReply::from(run.started());
        for event in [
            r#"{"type":"TEXT_MESSAGE_START","messageId":"m"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a \ud83d"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"\ude00 b"}"#,
            r#"{"type":"TEXT_MESSAGE_END","messageId":"m"}"#,
            r#"{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"say"}"#,
            r#"{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{\"t\":\"\ud83d"}"#,
            r#"{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"\ude00\"}"}"#,
            r#"{"type":"TOOL_CALL_END","toolCallId":"c"}"#,
            r#"{"type":"TOOL_CALL_START","toolCallId":"d","toolCallName":"say"}"#,
            r#"{"type":"TOOL_CALL_ARGS","toolCallId":"d","delta":"{\"t\":\"\\ud83d\"}"}"#,
            r#"{"type":"TOOL_CALL_END","toolCallId":"d"}"#,
            r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"n","delta":"\ud83d"}"#,
            r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"n","delta":"\ude00"}"#,
            r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"o","delta":"alone \ud83d"}"#,
        ] {
            reply = reply.bytes(format!("data: {event}\n\n"));
        }
        reply.event(json!({"type": "RUN_FINISHED"}))
    });
    let told = TestConversation::new(&agent).user_says("hello").run().passed();
    assert_eq!(told.texts(), ["1 a 😀 b", "1 😀", "1 alone \u{FFFD}"]);
    let alone = "1 say {\"t\":\"\u{FFFD}\"} → nothing";
    assert_eq!(told.calls(), [r#"1 say {"t":"😀"} → nothing"#, alone]);
}

/// A267: the last event may lack its blank line if it is complete; otherwise the stream is truncated.
#[test]
fn last_event_may_lack_blank_line() {
    for (last, is_whole) in [
        (r#"data: {"type":"RUN_FINISHED"}"#, true),
        ("data: {\"type\":\"RUN_FINISHED\"}\n", true),
        (r#"data: {"type":"RUN_FINISHED""#, false),
        ("data: {\"type\":\n", false),
    ] {
        let agent = agent(move |run| FakeReply::from(run.started().text("Hi.")).bytes(last.to_string()));
        let told = TestConversation::new(&agent).user_says("hello").run();
        match is_whole {
            true => drop(told.passed()),
            false => drop(told.failed(ProtocolError, "without RUN_FINISHED")),
        }
    }
}

/// A duplicate `type` would be ambiguous.
#[test]
fn rejects_event_with_two_types() {
    let agent = agent(|run| {
        let event = r#"{"type":"CUSTOM","name":"x","value":1,"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"delete"}"#;
        FakeReply::from(run.started())
            .bytes(format!("data: {event}\n\n"))
            .event(json!({"type": "RUN_FINISHED"}))
    });
    TestConversation::new(&agent).user_says("hello").run().failed(ProtocolError, "duplicate field `type`");
}

fn call_message(id: &str, arguments: &str) -> Value {
    let call =
        json!({"id": "call_0", "type": "function", "function": {"name": "pay", "arguments": arguments}});
    json!({"id": id, "role": "assistant", "toolCalls": [call]})
}

fn result_message(id: &str, content: &str) -> Value {
    json!({"id": id, "role": "tool", "toolCallId": "call_0", "content": content})
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// A server that sends everything in snapshots and restarts its call ids in every message: each call
    /// counts once with its own result, over all turns and any number of snapshots.
    #[test]
    fn ids_reused_in_other_messages_are_other_calls(
        turns in prop::collection::vec(prop::collection::vec(0_u8..2, 1..4), 1..4),
        growing in any::<bool>(),
        own_user_ids in any::<bool>(),
    ) {
        let (script, expected) = (turns.clone(), turns.clone());
        let agent = FakeAgent::with_run(move |mut run, request| {
let mut all = messages(request);
            if own_user_ids {
                for (place, message) in all.iter_mut().enumerate().filter(|(_, message)| message["role"] == "user") {
                    message["id"] = json!(format!("server-{place}"));
                }
            }
            for (number, argument) in script[request.index].iter().enumerate() {
                let id = format!("{}-{number}", request.index);
                all.push(call_message(&format!("a{id}"), &format!("{{\"n\":{argument}}}")));
                if growing {
                    run = run.messages_snapshot(all.clone());
                }
                all.push(result_message(&format!("t{id}"), &format!("paid {id}")));
            }
            run.messages_snapshot(all).finished()
});
        let talk = (0..turns.len()).fold(TestConversation::new(&agent), |talk, turn| talk.user_says(&format!("pay {turn}")));
        let told = talk.run().passed();
        let expected: Vec<String> = expected.iter().enumerate().flat_map(|(turn, calls)| {
            calls.iter().enumerate().map(move |(number, n)| format!("{} pay {{\"n\":{n}}} → paid {turn}-{number}", turn + 1))
        }).collect();
        prop_assert_eq!(told.calls(), expected);
    }
}

/// The agent waits for an unanswered call: it either awaits the user, or the test lacks a tool.
#[test]
fn pending_call_is_answered_or_fails() {
    let waiting = |tool: &'static str| {
        agent(move |run| run.started().tool_call("c", tool, &json!({})).pending(&["c".to_string()]))
    };
    let told = TestConversation::new(&waiting("pick")).user_says("hello").run();
    told.failed(
        TestError,
        "the agent called tool pick and awaits its result, but the test does not offer this tool",
    );
    let told = TestConversation::new(&waiting("ask_user")).user_says("hello").run().passed();
    assert_eq!(told.calls(), ["1 ask_user {} → nothing"]);

    let agent = scripted_agent(vec![
        |run| run.started().tool_call("c", "pick", &json!({})).pending(&["c".to_string()]),
        |run| run.started().text("Red it is.").finished(),
    ]);
    let tools = json!([{"name": "pick", "answers": [{"content": "red"}]}]);
    let told = TestConversation::new(&agent).case("tools", tools).user_says("hello").run().passed();
    assert_eq!(told.calls(), ["1 pick {} → red"]);

    let unknown = super::fixture::agent(|run| run.started().text("Hi.").pending(&["nobody".to_string()]));
    TestConversation::new(&unknown)
        .user_says("hello")
        .run()
        .failed(ProtocolError, "RUN_FINISHED lists the pending tool call nobody, which was never announced");
}

/// Events shortly after the end of a run count if the connection stays open.
#[test]
fn events_after_end_are_checked_or_noted() {
    let late = |event: Value| {
        agent(move |run| FakeReply::from(run.started().text("Hi.").finished()).event(event.clone()).hang())
    };
    let failed = TestConversation::new(&late(json!({"type": "RUN_ERROR", "message": "the disk is full"})))
        .user_says("hello")
        .run();
    failed.failed(hotseat_trace::FailureKind::AgentError, "the disk is full");

    let calling = late(json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "delete"}));
    let forbidden = json!({"user": "hello", "assert": {"tools": {"forbid": ["delete"]}}});
    TestConversation::new(&calling).turn(forbidden.clone()).run().failed(Assertion, "delete");

    let second = agent(|run| {
        let first = run.started().text("Hi.").finished();
        let reply =
            FakeReply::from(first).event(json!({"type": "RUN_STARTED", "threadId": "t", "runId": "second"}));
        let reply = reply.pause(Duration::from_millis(400));
        reply
            .event(json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "delete"}))
            .event(json!({"type": "TOOL_CALL_END", "toolCallId": "c"}))
            .event(json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "second"}))
    });
    TestConversation::new(&second).turn(forbidden).run().failed(Assertion, "delete");

    let cut = agent(|run| {
        FakeReply::from(run.started().text("Hi.").finished()).bytes("data: {\"type\":\"TOOL").hang()
    });
    TestConversation::new(&cut)
        .user_says("hello")
        .run()
        .passed()
        .assert_note("after its end the answer still had an incomplete event: data: ");
}

/// A409: the answer to an interrupt must match the schema of the interrupt.
#[test]
fn interrupt_answer_matches_schema() {
    let schema =
        json!({"type": "object", "properties": {"approved": {"type": "boolean"}}, "required": ["approved"]});
    let asking = |schema: Value| {
        FakeAgent::with_run(move |run, request| match request.index {
            0 => run.interrupted(vec![json!({"id": "i", "reason": "confirm", "responseSchema": schema})]),
            _ => run.text("Done.").finished(),
        })
    };
    for (payload, fits) in [
        (json!({"approved": true}), true),
        (json!({"approved": "yes"}), false),
        (json!({}), false),
        (json!(true), false),
    ] {
        let agent = asking(schema.clone());
        let told = TestConversation::new(&agent)
            .turn(json!({"user": "pay", "resume": [{"payload": payload}]}))
            .run();
        match fits {
            true => drop(told.passed()),
            false => drop(told.failed(TestError, "does not match its `responseSchema`")),
        }
        assert_eq!(agent.requests().len(), if fits { 2 } else { 1 }, "{payload}");
    }
    // A rejection has no payload, and an invalid schema is noted.
    let agent = asking(schema);
    let refused = json!({"user": "pay", "resume": [{"status": "cancelled"}]});
    TestConversation::new(&agent).turn(refused).run().passed();
    let agent = asking(json!({"type": 7}));
    let told = TestConversation::new(&agent).turn(json!({"user": "pay", "resume": [{"payload": 1}]})).run();
    told.passed().assert_note("is not a valid JSON Schema");
}

/// A137, A138: the target selects which times count.
#[test]
fn times_come_from_arrival_or_events() {
    /// Two calls that arrive together with timestamps this long before their arrival, in milliseconds.
    fn timed_agent(unit: i64, ago: [i64; 2]) -> FakeAgent {
        FakeAgent::with_run(move |run, _| -> FakeReply {
            let mut reply = FakeReply::from(run).pause(Duration::from_millis(600));
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
            // The pause follows.
            let end = i64::try_from(now).unwrap() + 600;
            for (id, ago) in [("c1", ago[0]), ("c2", ago[1])] {
                let stamp = (end - ago) / unit;
                for event in [
                    json!({"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": "look", "timestamp": stamp}),
                    json!({"type": "TOOL_CALL_END", "toolCallId": id, "timestamp": stamp}),
                    json!({"type": "TOOL_CALL_RESULT", "messageId": id, "toolCallId": id, "content": "ok", "timestamp": stamp}),
                ] {
                    reply = reply.event(event);
                }
            }
            reply.event(json!({"type": "RUN_FINISHED"}))
        })
    }
    let gap = |told: &ConversationOutcome| {
        let calls = &told.0.conversation.turns[0].tool_calls;
        assert!(calls.windows(2).all(|pair| pair[0].ended <= pair[1].started));
        (calls[1].started - calls[0].ended).as_millis()
    };
    let held = |agent: &FakeAgent, timing| {
        TestConversation::new(agent).target(|target| target.timing = timing).user_says("hello").run().passed()
    };

    let agent = timed_agent(1, [500, 100]);
    assert!(gap(&held(&agent, TimingSource::Arrival)) < 200);
    let told = held(&agent, TimingSource::Events);
    assert!((350..=450).contains(&gap(&told)), "{}", gap(&told));
    assert!(told.0.conversation.turns[0].duration() >= Duration::from_millis(600));
    // Seconds, a clock that is an hour slow, and times that go back: arrival times are used, with a note.
    let hour = 3_600_000;
    for (unit, ago) in [(1000, [500, 100]), (1, [hour + 500, hour + 100]), (1, [100, 500])] {
        let distrusted = timed_agent(unit, ago);
        let told = held(&distrusted, TimingSource::Events);
        assert!(gap(&told) < 200);
        told.assert_note("arrival times are used from here on");
    }
    let limit = json!({"user": "hello", "assert": {"timing": {"max_gap_ms": 200}}});
    let judged = |timing| {
        TestConversation::new(&agent)
            .target(|target| target.timing = timing)
            .timeouts(WAIT_LIMIT, WAIT_LIMIT)
            .turn(limit.clone())
            .run()
    };
    judged(TimingSource::Arrival).passed();
    judged(TimingSource::Events).failed(Assertion, "between two tool calls");
}

/// The agent's description of the end of its run is recorded.
#[test]
fn reports_cancelled_run() {
    let told = run_turn_with(|run| {
        run.started().text("Hi.").raw_event(json!({"type": "RUN_FINISHED", "outcome": {"type": "cancelled"}}))
    });
    assert_eq!(told.passed().0.conversation.turns[0].run_outcome.as_deref(), Some("cancelled"));
}

/// Producers also write an empty error for a tool that succeeded.
#[test]
fn an_empty_error_is_no_failure() {
    for (error, shown) in [
        (json!(null), "paid"),
        (json!(false), "paid"),
        (json!(""), "paid"),
        (json!({}), "paid"),
        (json!([]), "paid"),
        (json!("no"), "failed: no: paid"),
        (json!({"code": 5}), r#"failed: {"code":5}: paid"#),
    ] {
        let told = run_turn_with(move |run| {
            let result = json!({"type": "TOOL_CALL_RESULT", "messageId": "r", "toolCallId": "c", "content": "paid", "error": error});
            run.started().tool_call("c", "pay", &json!({})).raw_event(result).finished()
        });
        assert_eq!(told.passed().calls(), [format!("1 pay {{}} → {shown}")]);
    }
}
