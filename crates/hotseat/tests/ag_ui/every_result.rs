//! Every call and every result counts, whatever shape it has and wherever it is told.

use std::time::Duration;

use hotseat::adapters::ag_ui::TimingSource;
use hotseat_testkit::agui::Run;
use hotseat_testkit::{FakeAgent, Reply, Request};
use hotseat_trace::FailureKind::{Assertion, ProtocolError, TestError};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::talk::{LONG, Talk, Told, agent, agent_of, hears, messages};

/// How a call and its result are told.
#[derive(Debug, Clone, Copy)]
enum Way {
    Streamed,
    Chunked,
    Snapshot,
    ResultInSnapshot,
}

const WAYS: [Way; 4] = [Way::Streamed, Way::Chunked, Way::Snapshot, Way::ResultInSnapshot];

/// An agent that calls `pay` with these arguments as it writes them, and tells its result.
fn paying(way: Way, arguments: String, content: Option<Value>) -> FakeAgent {
    FakeAgent::start(move |request: &Request| -> Reply {
        let event = |run: Run, event: Value| run.raw_event(event);
        let mut run = Run::of(request).started();
        let mut all = messages(request);
        all.push(json!({"id": "a", "role": "assistant", "toolCalls": [{"id": "c", "type": "function", "function": {"name": "pay", "arguments": arguments}}]}));
        run = match way {
            Way::Snapshot => run,
            Way::Chunked => event(
                run,
                json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "pay", "delta": arguments}),
            ),
            Way::Streamed | Way::ResultInSnapshot => {
                let run = event(
                    run,
                    json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "pay", "parentMessageId": "a"}),
                );
                let run =
                    event(run, json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": arguments}));
                event(run, json!({"type": "TOOL_CALL_END", "toolCallId": "c"}))
            }
        };
        let in_snapshot = matches!(way, Way::Snapshot | Way::ResultInSnapshot);
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

fn pays(way: Way, arguments: &str, content: Option<Value>, asserted: Value) -> Told {
    let agent = paying(way, arguments.to_string(), content);
    Talk::with(&agent).turn(json!({"user": "pay", "assert": {"tools": asserted}})).held()
}

/// A list is content in parts only if all of its entries are parts of known kinds.
#[test]
fn a_result_that_looks_like_parts_does_not_vanish() {
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
        for way in WAYS {
            pays(way, "{}", Some(content.clone()), forbidden.clone()).failed(Assertion, "declined");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whatever JSON a tool returns, and however it is told: a word in it is found.
    #[test]
    fn a_word_of_a_result_is_found_in_every_shape(
        keys in prop::collection::vec(prop::sample::select(vec!["type", "text", "status", "source", "id"]), 1..3),
        kind in prop::sample::select(vec!["text", "image", "payment", "file", "binary", "tool_result"]),
        list in any::<bool>(),
        way in prop::sample::select(WAYS.to_vec()),
    ) {
        let mut entry = serde_json::Map::from_iter([("type".to_string(), json!(kind))]);
        for key in keys {
            entry.insert(key.to_string(), json!("declined"));
        }
        prop_assume!(entry.values().any(|value| value == "declined"));
        let content = if list { json!([entry]) } else { json!(entry) };
        let told = pays(way, "{}", Some(content), json!({"forbid_calls": [{"name": "pay", "result_match": "declined"}]}));
        told.failed(Assertion, "declined");
    }
}

/// An assertion about a result that never came is not known to hold, and neither is its contrary.
#[test]
fn nothing_passes_because_a_result_is_missing() {
    for way in [Way::Streamed, Way::Chunked, Way::Snapshot] {
        for asserted in [
            json!({"forbid_calls": [{"name": "pay", "result_match": "declined"}]}),
            json!({"require": [{"name": "pay", "result_not_match": "declined"}]}),
            json!({"require": [{"name": "pay", "result_match": "approved"}]}),
            json!({"require": [{"name": "pay", "result_match": "declined", "count": {"exact": 0}}]}),
            json!({"require": [{"name": "pay", "result_match": "declined", "count": {"max": 0}}]}),
        ] {
            pays(way, "{}", None, asserted).failed(Assertion, "gave no result");
        }
        // What does not depend on it is decided.
        let decided = json!({"require": [{"name": "pay", "count": {"exact": 1}}], "forbid": ["refund"]});
        pays(way, "{}", None, decided).passed();
        pays(way, "{}", None, json!({"forbid": ["pay"]})).failed(Assertion, "pay");
    }
    for negate in [false, true] {
        let agent = paying(Way::Streamed, "{}".to_string(), None);
        let check = json!([{"type": "tool_result", "name": "pay", "result": "declined", "negate": negate}]);
        Talk::with(&agent)
            .turn(json!({"user": "pay", "assert": check}))
            .held()
            .failed(Assertion, "no result");
    }
}

/// No arguments, however they are written, are an empty object.
#[test]
fn a_call_without_arguments_has_an_empty_object() {
    for way in WAYS {
        for written in ["", "{}", " "] {
            let told =
                pays(way, written, Some(json!("paid")), json!({"require": [{"name": "pay"}]})).passed();
            assert_eq!(told.calls(), ["1 pay {} → paid"], "{way:?} {written:?}");
        }
    }
}

/// Integers beyond 64 bits keep their digits.
#[test]
fn digits_are_not_rounded() {
    let (one, other) = ("123456789012345678901234567890", "123456789012345678901234567891");
    for way in WAYS {
        let arguments = format!("{{\"id\":{one}}}");
        let with = |id: &str| json!({"require": [{"name": "pay", "args_match": {"id": format!("^{id}$")}}]});
        pays(way, &arguments, Some(json!("ok")), with(one)).passed();
        pays(way, &arguments, Some(json!("ok")), with(other)).failed(Assertion, "pay");
    }
    // In an event itself, too: not as text that holds JSON.
    let agent = agent(move |run| {
        let text = format!(
            r#"{{"type":"TOOL_CALL_RESULT","messageId":"t","toolCallId":"c","content":{{"id":{one}}}}}"#
        );
        let head = run.started().tool_call("c", "pay", &json!({}));
        Reply::from(head).bytes(format!("data: {text}\n\n")).event(json!({"type": "RUN_FINISHED"}))
    });
    let told = Talk::with(&agent).says("pay").held().passed();
    assert_eq!(told.calls(), [format!(r#"1 pay {{}} → {{"id":"{one}"}}"#)]);
}

/// A character of two UTF-16 units may be cut between two events.
#[test]
fn halves_of_a_character_are_joined() {
    let agent = agent(|run| {
        let mut reply = Reply::from(run.started());
        for event in [
            r#"{"type":"TEXT_MESSAGE_START","messageId":"m"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a \ud83d"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"\ude00 b"}"#,
            r#"{"type":"TEXT_MESSAGE_END","messageId":"m"}"#,
            r#"{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"say"}"#,
            r#"{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{\"t\":\"\ud83d"}"#,
            r#"{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"\ude00\"}"}"#,
            r#"{"type":"TOOL_CALL_END","toolCallId":"c"}"#,
            r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"n","delta":"\ud83d"}"#,
            r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"n","delta":"\ude00"}"#,
            r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"o","delta":"alone \ud83d"}"#,
        ] {
            reply = reply.bytes(format!("data: {event}\n\n"));
        }
        reply.event(json!({"type": "RUN_FINISHED"}))
    });
    let told = Talk::with(&agent).says("hello").held().passed();
    assert_eq!(told.texts(), ["1 a 😀 b", "1 😀", "1 alone \u{FFFD}"]);
    assert_eq!(told.calls(), [r#"1 say {"t":"😀"} → nothing"#]);
}

/// A267: the last event may lack its empty line, where it is whole; anything else is a stream that was cut.
#[test]
fn the_last_event_may_lack_its_empty_line() {
    for (last, is_whole) in [
        (r#"data: {"type":"RUN_FINISHED"}"#, true),
        ("data: {\"type\":\"RUN_FINISHED\"}\n", true),
        (r#"data: {"type":"RUN_FINISHED""#, false),
        ("data: {\"type\":\n", false),
    ] {
        let agent = agent(move |run| Reply::from(run.started().text("Hi.")).bytes(last.to_string()));
        let told = Talk::with(&agent).says("hello").held();
        match is_whole {
            true => drop(told.passed()),
            false => drop(told.failed(ProtocolError, "without RUN_FINISHED")),
        }
    }
}

/// A second `type` says something else to whoever reads the other one.
#[test]
fn an_event_with_two_types_is_refused() {
    let agent = agent(|run| {
        let event = r#"{"type":"CUSTOM","name":"x","value":1,"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"delete"}"#;
        Reply::from(run.started()).bytes(format!("data: {event}\n\n")).event(json!({"type": "RUN_FINISHED"}))
    });
    Talk::with(&agent).says("hello").held().failed(ProtocolError, "duplicate field `type`");
}

fn makes(id: &str, arguments: &str) -> Value {
    let call =
        json!({"id": "call_0", "type": "function", "function": {"name": "pay", "arguments": arguments}});
    json!({"id": id, "role": "assistant", "toolCalls": [call]})
}

fn returned(id: &str, content: &str) -> Value {
    json!({"id": id, "role": "tool", "toolCallId": "call_0", "content": content})
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// A server that tells everything in snapshots and counts its calls from zero in every message: each call counts once
    /// with its own result, over all turns, however often and in however many pieces the snapshots tell it.
    #[test]
    fn ids_that_come_again_in_other_messages_are_other_calls(
        turns in prop::collection::vec(prop::collection::vec(0_u8..2, 1..4), 1..4),
        growing in any::<bool>(),
        own_user_ids in any::<bool>(),
    ) {
        let (script, expected) = (turns.clone(), turns.clone());
        let agent = FakeAgent::start(move |request: &Request| -> Reply {
            let mut all = messages(request);
            if own_user_ids {
                for (place, message) in all.iter_mut().enumerate().filter(|(_, message)| message["role"] == "user") {
                    message["id"] = json!(format!("server-{place}"));
                }
            }
            let mut run = Run::of(request).started();
            for (number, argument) in script[request.index].iter().enumerate() {
                let id = format!("{}-{number}", request.index);
                all.push(makes(&format!("a{id}"), &format!("{{\"n\":{argument}}}")));
                if growing {
                    run = run.messages_snapshot(all.clone());
                }
                all.push(returned(&format!("t{id}"), &format!("paid {id}")));
            }
            run.messages_snapshot(all).finished().into()
        });
        let talk = (0..turns.len()).fold(Talk::with(&agent), |talk, turn| talk.says(&format!("pay {turn}")));
        let told = talk.held().passed();
        let expected: Vec<String> = expected.iter().enumerate().flat_map(|(turn, calls)| {
            calls.iter().enumerate().map(move |(number, n)| format!("{} pay {{\"n\":{n}}} → paid {turn}-{number}", turn + 1))
        }).collect();
        prop_assert_eq!(told.calls(), expected);
    }
}

/// The agent says that it waits for a call that nobody answers: it awaits the user, or the test lacks a tool.
#[test]
fn a_call_that_the_agent_waits_for_is_answered_or_no_pass() {
    let waiting = |tool: &'static str| {
        agent(move |run| run.started().tool_call("c", tool, &json!({})).pending(&["c".to_string()]))
    };
    let told = Talk::with(&waiting("pick")).says("hello").held();
    told.failed(
        TestError,
        "the agent called tool pick and waits for its result; the test does not offer such a tool",
    );
    let told = Talk::with(&waiting("ask_user")).says("hello").held().passed();
    assert_eq!(told.calls(), ["1 ask_user {} → nothing"]);

    let agent = agent_of(vec![
        |run| run.started().tool_call("c", "pick", &json!({})).pending(&["c".to_string()]),
        |run| run.started().text("Red it is.").finished(),
    ]);
    let tools = json!([{"name": "pick", "answers": [{"content": "red"}]}]);
    let told = Talk::with(&agent).case("tools", tools).says("hello").held().passed();
    assert_eq!(told.calls(), ["1 pick {} → red"]);

    let unknown = super::talk::agent(|run| run.started().text("Hi.").pending(&["nobody".to_string()]));
    Talk::with(&unknown)
        .says("hello")
        .held()
        .failed(ProtocolError, "waits for tool call nobody, which was never announced");
}

/// What comes soon after the end of a run counts, on a connection that stays open.
#[test]
fn what_comes_after_the_end_is_judged_or_noted() {
    let late = |event: Value| {
        agent(move |run| Reply::from(run.started().text("Hi.").finished()).event(event.clone()).hang())
    };
    let failed =
        Talk::with(&late(json!({"type": "RUN_ERROR", "message": "the disk is full"}))).says("hello").held();
    failed.failed(hotseat_trace::FailureKind::AgentError, "the disk is full");

    let calling = late(json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "delete"}));
    let forbidden = json!({"user": "hello", "assert": {"tools": {"forbid": ["delete"]}}});
    Talk::with(&calling).turn(forbidden.clone()).held().failed(Assertion, "delete");

    let second = agent(|run| {
        let first = run.started().text("Hi.").finished();
        let reply =
            Reply::from(first).event(json!({"type": "RUN_STARTED", "threadId": "t", "runId": "second"}));
        let reply = reply.pause(Duration::from_millis(400));
        reply
            .event(json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "delete"}))
            .event(json!({"type": "TOOL_CALL_END", "toolCallId": "c"}))
            .event(json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "second"}))
    });
    Talk::with(&second).turn(forbidden).held().failed(Assertion, "delete");

    let cut =
        agent(|run| Reply::from(run.started().text("Hi.").finished()).bytes("data: {\"type\":\"TOOL").hang());
    Talk::with(&cut).says("hello").held().passed().noting("in the middle of an event");
}

/// A409: the answer to an interrupt fits the schema that the interrupt states.
#[test]
fn an_answer_to_an_interrupt_fits_its_schema() {
    let schema =
        json!({"type": "object", "properties": {"approved": {"type": "boolean"}}, "required": ["approved"]});
    let asking = |schema: Value| {
        FakeAgent::start(move |request: &Request| {
            let run = Run::of(request).started();
            match request.index {
                0 => run.interrupted(vec![json!({"id": "i", "reason": "confirm", "responseSchema": schema})]),
                _ => run.text("Done.").finished(),
            }
        })
    };
    for (payload, fits) in [
        (json!({"approved": true}), true),
        (json!({"approved": "yes"}), false),
        (json!({}), false),
        (json!(true), false),
    ] {
        let agent = asking(schema.clone());
        let told = Talk::with(&agent).turn(json!({"user": "pay", "resume": [{"payload": payload}]})).held();
        match fits {
            true => drop(told.passed()),
            false => drop(told.failed(TestError, "does not fit its `responseSchema`")),
        }
        assert_eq!(agent.requests().len(), if fits { 2 } else { 1 }, "{payload}");
    }
    // An answer that refuses has no payload, and a schema that is none is noted.
    let agent = asking(schema);
    let refused = json!({"user": "pay", "resume": [{"status": "cancelled"}]});
    Talk::with(&agent).turn(refused).held().passed();
    let agent = asking(json!({"type": 7}));
    let told = Talk::with(&agent).turn(json!({"user": "pay", "resume": [{"payload": 1}]})).held();
    told.passed().noting("is no JSON Schema");
}

/// A137, A138: which times count is what the target says.
#[test]
fn times_are_those_of_arrival_or_of_events() {
    /// Two calls that arrive together, and whose timestamps are 400 ms apart.
    fn calling(unit: i64, ago: i64) -> FakeAgent {
        FakeAgent::start(move |request: &Request| -> Reply {
            let mut reply = Reply::from(Run::of(request).started()).pause(Duration::from_millis(600));
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
            // The pause is still to come.
            let end = i64::try_from(now).unwrap() + 600 - ago;
            for (id, at) in [("c1", end - 500), ("c2", end - 100)] {
                let stamp = at / unit;
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
    let gap = |told: &Told| {
        let calls = &told.0.conversation.turns[0].tool_calls;
        assert!(calls.windows(2).all(|pair| pair[0].ended <= pair[1].started));
        (calls[1].started - calls[0].ended).as_millis()
    };
    let held = |agent: &FakeAgent, timing| {
        Talk::with(agent).target(|target| target.timing = timing).says("hello").held().passed()
    };

    let agent = calling(1, 0);
    assert!(gap(&held(&agent, TimingSource::Arrival)) < 200);
    let told = held(&agent, TimingSource::Events);
    assert!((350..=450).contains(&gap(&told)), "{}", gap(&told));
    assert!(told.0.conversation.turns[0].duration() >= Duration::from_millis(600));
    // Seconds, and a clock that is an hour slow: arrival counts, and that is noted.
    for distrusted in [calling(1000, 0), calling(1, 3_600_000)] {
        let told = held(&distrusted, TimingSource::Events);
        assert!(gap(&told) < 200);
        told.noting("from here on times of arrival count");
    }
    let limit = json!({"user": "hello", "assert": {"timing": {"max_gap_ms": 200}}});
    let judged = |timing| {
        Talk::with(&agent)
            .target(|target| target.timing = timing)
            .timeouts(LONG, LONG)
            .turn(limit.clone())
            .held()
    };
    judged(TimingSource::Arrival).passed();
    judged(TimingSource::Events).failed(Assertion, "between two tool calls");
}

/// What an agent said of how its run ended is kept.
#[test]
fn a_cancelled_run_is_told() {
    let told = hears(|run| {
        run.started().text("Hi.").raw_event(json!({"type": "RUN_FINISHED", "outcome": {"type": "cancelled"}}))
    });
    assert_eq!(told.passed().0.conversation.turns[0].run_outcome.as_deref(), Some("cancelled"));
}
