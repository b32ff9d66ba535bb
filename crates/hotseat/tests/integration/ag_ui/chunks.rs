//! Messages, calls and reasoning in chunks: their assignment and their ends.

use std::time::{Duration, Instant};

use hotseat_testkit::agui::FakeRun;
use hotseat_trace::FailureKind::ProtocolError;
use serde_json::{Value, json};

use super::fixture::{ConversationOutcome, run_strict_turn, run_turn_with};

fn text(id: Option<&str>, delta: &str) -> Value {
    let mut event = json!({"type": "TEXT_MESSAGE_CHUNK", "delta": delta});
    if let Some(id) = id {
        event["messageId"] = json!(id);
    }
    event
}

fn call(opener: Option<(&str, &str)>, delta: &str) -> Value {
    let mut event = json!({"type": "TOOL_CALL_CHUNK", "delta": delta});
    if let Some((id, name)) = opener {
        (event["toolCallId"], event["toolCallName"]) = (json!(id), json!(name));
    }
    event
}

fn with_subagent(subagent: &str, mut event: Value) -> Value {
    event["subagentRunId"] = json!(subagent);
    event
}

fn play_events(events: Vec<Value>) -> impl Fn(FakeRun) -> FakeRun + Send + Sync + 'static {
    move |run| events.iter().cloned().fold(run.started(), FakeRun::raw_event).finished()
}

#[track_caller]
fn assert_passes(events: Vec<Value>) -> ConversationOutcome {
    run_strict_turn(play_events(events)).passed().assert_no_notes()
}

#[track_caller]
fn assert_fails(events: Vec<Value>, words: &str) {
    run_turn_with(play_events(events)).failed(ProtocolError, words);
}

/// A350, A353: the first chunk identifies itself; later ones may omit that.
#[test]
fn first_chunk_identifies_message() {
    assert_eq!(
        assert_passes(vec![text(Some("m"), "Hel"), text(None, "lo"), text(Some("m"), "!")]).texts(),
        ["1 Hello!"]
    );
    let told = assert_passes(vec![
        call(Some(("c", "pay")), "{\"a\""),
        call(None, ":1"),
        call(Some(("c", "pay")), "}"),
    ]);
    assert_eq!(told.calls(), [r#"1 pay {"a":1} → nothing"#]);
    assert_fails(
        vec![text(None, "Hi")],
        "event 2: the first TEXT_MESSAGE_CHUNK of a message has no messageId",
    );
    assert_fails(vec![call(None, "{}")], "event 2: the first TOOL_CALL_CHUNK of a call has no toolCallId");
    assert_fails(
        vec![json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "c"})],
        "the first TOOL_CALL_CHUNK of call c has no toolCallName",
    );
    // An empty name is none.
    assert_fails(
        vec![json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": ""})],
        "the first TOOL_CALL_CHUNK of call c has no toolCallName",
    );
    let told = assert_passes(vec![call(Some(("c", "pay")), "{\"a\""), call(Some(("c", "")), ":1}")]);
    assert_eq!(told.calls(), [r#"1 pay {"a":1} → nothing"#]);
    assert_fails(
        vec![json!({"type": "REASONING_MESSAGE_CHUNK", "delta": "x"})],
        "the first REASONING_MESSAGE_CHUNK of a message has no messageId",
    );
}

/// With a name, a chunk without an id starts a call, unless the arguments before it are incomplete.
#[test]
fn an_empty_call_id_is_none() {
    let calls = |events: Vec<Value>| run_turn_with(play_events(events)).passed().calls();
    let unnamed = |delta: &str| call(Some(("", "pay")), delta);
    let one = r#"1 pay {"n":1} → nothing"#;
    assert_eq!(calls(vec![unnamed("{\"n\":1}"), unnamed("{\"n\":1}")]), [one, one]);
    assert_eq!(calls(vec![unnamed(""), unnamed("")]), ["1 pay {} → nothing", "1 pay {} → nothing"]);
    let continued = json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "", "delta": ":1}"});
    for events in [
        vec![unnamed("{\"n\""), unnamed(":1}")],
        vec![unnamed("{\"n\""), continued.clone()],
        vec![call(Some(("c", "pay")), "{\"n\""), continued.clone()],
    ] {
        assert_eq!(calls(events.clone()), [one], "{events:?}");
    }
    assert_fails(vec![continued], "the first TOOL_CALL_CHUNK of a call has no toolCallId");
}

/// A354, A355
#[test]
fn single_chunk_may_be_complete_or_empty() {
    assert_eq!(
        assert_passes(vec![call(Some(("c", "pay")), "{\"a\":1}")]).calls(),
        [r#"1 pay {"a":1} → nothing"#]
    );
    assert_eq!(
        assert_passes(vec![json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "pay"})])
            .calls(),
        ["1 pay {} → nothing"]
    );
    assert_eq!(
        assert_passes(vec![
            json!({"type": "TEXT_MESSAGE_CHUNK", "messageId": "m"}),
            text(None, "Hi"),
            text(None, "")
        ])
        .texts(),
        ["1 Hi"]
    );
    assert!(
        assert_passes(vec![json!({"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": null})])
            .texts()
            .is_empty()
    );
}

/// A351: each of these events ends the open item, so a following chunk without an id is an error.
#[test]
fn other_event_ends_open_chunks() {
    let user = json!({"id": "u", "role": "user", "content": "hello"});
    let others = [
        text(Some("other"), "x"),
        call(Some(("c", "look")), "{}"),
        json!({"type": "TEXT_MESSAGE_START", "messageId": "n"}),
        json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "look"}),
        json!({"type": "REASONING_START", "messageId": "r"}),
        json!({"type": "MESSAGES_SNAPSHOT", "messages": [user]}),
        json!({"type": "STATE_SNAPSHOT", "snapshot": {}}),
        json!({"type": "STATE_DELTA", "delta": []}),
        json!({"type": "STEP_STARTED", "stepName": "s"}),
        json!({"type": "CUSTOM", "name": "x", "value": 1}),
        json!({"type": "RUN_FINISHED"}),
    ];
    for other in others {
        let name = other["type"].as_str().unwrap_or_default().to_string();
        let open_call = vec![call(Some(("o", "pay")), "{"), other, call(None, "}")];
        // Another chunk of the call would continue it.
        if name != "TOOL_CALL_CHUNK" {
            assert_fails(open_call, "the first TOOL_CALL_CHUNK of a call has no toolCallId");
        }
    }
}

/// A352: these events do not end it.
#[test]
fn unrelated_events_leave_message_open() {
    let others = [
        json!({"type": "RAW", "event": 1}),
        json!({"type": "ACTIVITY_SNAPSHOT", "messageId": "a", "activityType": "t", "content": {}}),
        json!({"type": "ACTIVITY_DELTA", "messageId": "a", "activityType": "t", "patch": []}),
        json!({"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "e", "encryptedValue": "x"}),
        json!({"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "n"}),
        json!({"type": "SOMETHING_NEW"}),
    ];
    for other in others {
        let told = run_turn_with(play_events(vec![text(Some("m"), "Hel"), other.clone(), text(None, "lo")]))
            .passed();
        assert_eq!(told.texts(), ["1 Hello"], "{other}");
    }
}

/// A message or call that continues under its id after other events is still one.
#[test]
fn chunks_with_same_id_are_joined() {
    let others = [
        json!({"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/a", "value": 1}]}),
        json!({"type": "STATE_SNAPSHOT", "snapshot": {}}),
        json!({"type": "CUSTOM", "name": "progress", "value": 1}),
        json!({"type": "STEP_STARTED", "stepName": "s"}),
    ];
    for other in others {
        let told = run_turn_with(play_events(vec![
            text(Some("m"), "Hel"),
            other.clone(),
            text(Some("m"), "lo"),
            call(Some(("c", "pay")), "{\"a\""),
            other.clone(),
            json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "delta": ":1}"}),
        ]));
        let told = told.passed();
        assert_eq!(
            (told.texts(), told.calls()),
            (vec!["1 Hello".into()], vec![r#"1 pay {"a":1} → nothing"#.into()]),
            "{other}"
        );
    }
}

/// Models that call several tools at once may send their arguments in turns.
#[test]
fn interleaved_chunks_of_calls_are_joined() {
    let (one, two) = (Some(("k1", "get")), Some(("k2", "put")));
    let told = assert_passes(vec![
        call(one, "{\"a\""),
        call(two, "{\"b\":{}"),
        call(one, ":1"),
        call(two, ",\"c\":2}"),
        call(one, "}"),
    ]);
    assert_eq!(told.calls(), [r#"1 get {"a":1} → nothing"#, r#"1 put {"b":{},"c":2} → nothing"#]);
    let told = assert_passes(vec![call(one, "{\"a\""), text(Some("m"), "Hi"), call(one, ":1}")]);
    assert_eq!(told.calls(), [r#"1 get {"a":1} → nothing"#]);
    // Complete arguments are those of a call of their own.
    let events = vec![call(one, "{\"a\":1}"), call(two, "{}"), call(one, "{\"a\":2}")];
    let told = run_turn_with(play_events(events)).passed();
    let mut calls = told.calls();
    calls.sort();
    assert_eq!(calls, [r#"1 get {"a":1} → nothing"#, r#"1 get {"a":2} → nothing"#, "1 put {} → nothing"]);
    // Arguments that stay incomplete are noted.
    let told = run_turn_with(play_events(vec![call(one, "{\"a\""), call(two, "{}")])).passed();
    assert_eq!(told.calls().len(), 2);
}

/// Each chunk may complete the arguments, so that they are asked for with each one.
#[test]
fn many_interleaved_chunks_are_read_in_linear_time() {
    const PIECES: usize = 20_000;
    let (one, two) = (Some(("k1", "get")), Some(("k2", "put")));
    let mut events = vec![call(one, "{\"a\":[{}"), call(two, "{\"a\":[{}")];
    events.extend((0..PIECES).flat_map(|_| [call(one, ",{}"), call(two, ",{}")]));
    events.extend([call(one, "]}"), call(two, "]}")]);
    let began = Instant::now();
    let told = assert_passes(events);
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    let calls = told.calls();
    assert!(calls.len() == 2 && calls.iter().all(|call| call.matches("{}").count() == PIECES + 1));
}

/// A351: the end of the stream also ends open items.
#[test]
fn end_of_run_completes_open_chunks() {
    for end in [json!({"type": "RUN_FINISHED"}), json!({"type": "RUN_ERROR", "message": "boom"})] {
        let told = run_turn_with(move |run| {
            run.started().raw_event(call(Some(("c", "pay")), "{\"a\":1}")).raw_event(end.clone())
        });
        assert_eq!(told.calls(), [r#"1 pay {"a":1} → nothing"#]);
    }
    let cut = run_turn_with(|run| run.started().raw_event(text(Some("m"), "Hi")).cut());
    assert_eq!(cut.failed(ProtocolError, "without RUN_FINISHED").texts(), ["1 Hi"]);
}

/// A356: sub-agents have separate open items.
#[test]
fn sub_agent_chunks_interleave() {
    let told = assert_passes(vec![
        with_subagent("a", text(Some("m1"), "One")),
        with_subagent("b", text(Some("m2"), "Two")),
        text(Some("m3"), "Three"),
        with_subagent("a", text(None, " one.")),
        with_subagent("b", text(None, " two.")),
        text(None, " three."),
    ]);
    let mut texts = told.texts();
    texts.sort();
    assert_eq!(texts, ["1 One one.", "1 Three three.", "1 Two two."]);
    // Without a tag it belongs to the only open item.
    assert_eq!(
        assert_passes(vec![with_subagent("a", text(Some("m"), "Hel")), text(None, "lo")]).texts(),
        ["1 Hello"]
    );
    assert_eq!(
        assert_passes(vec![
            with_subagent("a", text(Some("m"), "Hel")),
            with_subagent("b", text(Some("n"), "Hi")),
            text(Some("m"), "lo")
        ])
        .texts()
        .len(),
        2
    );
    assert_fails(
        vec![
            with_subagent("a", text(Some("m1"), "One")),
            with_subagent("b", text(Some("m2"), "Two")),
            text(None, "?"),
        ],
        "a TEXT_MESSAGE_CHUNK without subagentRunId matches several open messages",
    );
}

/// A357
#[test]
fn repeated_chunk_fields_must_agree() {
    assert_fails(
        vec![call(Some(("c", "pay")), "{"), call(Some(("c", "search")), "}")],
        "of call c names the tool search, its first one pay",
    );
    let with_role =
        |role: &str| json!({"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "role": role, "delta": "x"});
    assert_passes(vec![text(Some("m"), "x"), with_role("assistant")]);
    assert_fails(
        vec![text(Some("m"), "x"), with_role("user")],
        "of message m has the role user, its first one assistant",
    );
}

/// A306: producers before 1.0 end reasoning with an empty chunk.
#[test]
fn empty_chunk_ends_reasoning() {
    let thought = |delta: &str| json!({"type": "REASONING_MESSAGE_CHUNK", "messageId": "r", "delta": delta});
    let told = assert_passes(vec![thought("One."), thought(""), thought("Two.")]);
    assert_eq!(told.reasoning_texts(), ["One.", "Two."]);
}

/// A359, A360: both styles, and a mixture, give the same result.
#[test]
fn chunk_and_start_end_styles_are_equivalent() {
    let args = json!({"amount": 42.5});
    let pay = move |run: FakeRun, chunks: bool| {
        let result = Some(json!({"status": "approved"}));
        if chunks {
            run.tool_chunks("c1", "pay", &args, result)
        } else {
            run.tool("c1", "pay", &args, result)
        }
    };
    let say = |run: FakeRun, chunks: bool| {
        if chunks {
            run.text_chunks("Payment approved, thank you.")
        } else {
            run.text("Payment approved, thank you.")
        }
    };
    for (first, second) in [(false, false), (false, true), (true, false), (true, true)] {
        let pay = pay.clone();
        let told = run_strict_turn(move |run| say(pay(run.started(), first), second).finished())
            .passed()
            .assert_no_notes();
        assert_eq!(told.calls(), [r#"1 pay {"amount":42.5} → {"status":"approved"}"#]);
        assert_eq!(told.texts(), ["1 Payment approved, thank you."]);
    }
}
