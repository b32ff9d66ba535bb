//! Messages, calls and reasoning in chunks: what a chunk belongs to, and what ends it.

use hotseat_testkit::agui::Run;
use hotseat_trace::FailureKind::ProtocolError;
use serde_json::{Value, json};

use super::talk::{Told, hears, hears_strictly};

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

fn by(subagent: &str, mut event: Value) -> Value {
    event["subagentRunId"] = json!(subagent);
    event
}

fn played(events: Vec<Value>) -> impl Fn(Run) -> Run + Send + Sync + 'static {
    move |run| events.iter().cloned().fold(run.started(), Run::raw_event).finished()
}

#[track_caller]
fn holds(events: Vec<Value>) -> Told {
    hears_strictly(played(events)).passed().quietly()
}

#[track_caller]
fn fails(events: Vec<Value>, words: &str) {
    hears(played(events)).failed(ProtocolError, words);
}

/// A350, A353: the first chunk says what it is; later ones need not.
#[test]
fn the_first_chunk_names_what_it_belongs_to() {
    assert_eq!(
        holds(vec![text(Some("m"), "Hel"), text(None, "lo"), text(Some("m"), "!")]).texts(),
        ["1 Hello!"]
    );
    let told =
        holds(vec![call(Some(("c", "pay")), "{\"a\""), call(None, ":1"), call(Some(("c", "pay")), "}")]);
    assert_eq!(told.calls(), [r#"1 pay {"a":1} → nothing"#]);
    fails(vec![text(None, "Hi")], "event 2: the first TEXT_MESSAGE_CHUNK of a message has no messageId");
    fails(vec![call(None, "{}")], "event 2: the first TOOL_CALL_CHUNK of a call has no toolCallId");
    fails(
        vec![json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "c"})],
        "the first TOOL_CALL_CHUNK of call c has no toolCallName",
    );
    fails(
        vec![json!({"type": "REASONING_MESSAGE_CHUNK", "delta": "x"})],
        "the first REASONING_MESSAGE_CHUNK of a message has no messageId",
    );
}

/// A354, A355
#[test]
fn one_chunk_may_be_all_and_may_be_empty() {
    assert_eq!(holds(vec![call(Some(("c", "pay")), "{\"a\":1}")]).calls(), [r#"1 pay {"a":1} → nothing"#]);
    assert_eq!(
        holds(vec![json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "pay"})]).calls(),
        ["1 pay {} → nothing"]
    );
    assert_eq!(
        holds(vec![
            json!({"type": "TEXT_MESSAGE_CHUNK", "messageId": "m"}),
            text(None, "Hi"),
            text(None, "")
        ])
        .texts(),
        ["1 Hi"]
    );
    assert!(
        holds(vec![json!({"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": null})])
            .texts()
            .is_empty()
    );
}

/// A351: each of these ends what is open, so that a chunk without an id has nothing to go on with.
#[test]
fn what_comes_in_between_ends_what_is_open() {
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
        // Another chunk of a call would go on with that call.
        if name != "TOOL_CALL_CHUNK" {
            fails(open_call, "the first TOOL_CALL_CHUNK of a call has no toolCallId");
        }
    }
}

/// A352: these do not.
#[test]
fn what_says_nothing_about_a_message_leaves_it_open() {
    let others = [
        json!({"type": "RAW", "event": 1}),
        json!({"type": "ACTIVITY_SNAPSHOT", "messageId": "a", "activityType": "t", "content": {}}),
        json!({"type": "ACTIVITY_DELTA", "messageId": "a", "activityType": "t", "patch": []}),
        json!({"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "e", "encryptedValue": "x"}),
        json!({"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "n"}),
        json!({"type": "SOMETHING_NEW"}),
    ];
    for other in others {
        let told = hears(played(vec![text(Some("m"), "Hel"), other.clone(), text(None, "lo")])).passed();
        assert_eq!(told.texts(), ["1 Hello"], "{other}");
    }
}

/// A message or call that goes on under its id after news of something else is still one.
#[test]
fn what_goes_on_under_its_id_is_one() {
    let others = [
        json!({"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/a", "value": 1}]}),
        json!({"type": "STATE_SNAPSHOT", "snapshot": {}}),
        json!({"type": "CUSTOM", "name": "progress", "value": 1}),
        json!({"type": "STEP_STARTED", "stepName": "s"}),
    ];
    for other in others {
        let told = hears(played(vec![
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

/// A351: the end of the stream ends what is open too.
#[test]
fn the_end_of_a_run_completes_what_is_open() {
    for end in [json!({"type": "RUN_FINISHED"}), json!({"type": "RUN_ERROR", "message": "boom"})] {
        let told = hears(move |run| {
            run.started().raw_event(call(Some(("c", "pay")), "{\"a\":1}")).raw_event(end.clone())
        });
        assert_eq!(told.calls(), [r#"1 pay {"a":1} → nothing"#]);
    }
    let cut = hears(|run| run.started().raw_event(text(Some("m"), "Hi")).cut());
    assert_eq!(cut.failed(ProtocolError, "without RUN_FINISHED").texts(), ["1 Hi"]);
}

/// A356: each sub-agent has a lane of its own.
#[test]
fn sub_agents_interleave_in_lanes_of_their_own() {
    let told = holds(vec![
        by("a", text(Some("m1"), "One")),
        by("b", text(Some("m2"), "Two")),
        text(Some("m3"), "Three"),
        by("a", text(None, " one.")),
        by("b", text(None, " two.")),
        text(None, " three."),
    ]);
    let mut texts = told.texts();
    texts.sort();
    assert_eq!(texts, ["1 One one.", "1 Three three.", "1 Two two."]);
    // Without a tag it belongs to the one lane it can belong to.
    assert_eq!(holds(vec![by("a", text(Some("m"), "Hel")), text(None, "lo")]).texts(), ["1 Hello"]);
    assert_eq!(
        holds(vec![by("a", text(Some("m"), "Hel")), by("b", text(Some("n"), "Hi")), text(Some("m"), "lo")])
            .texts()
            .len(),
        2
    );
    fails(
        vec![by("a", text(Some("m1"), "One")), by("b", text(Some("m2"), "Two")), text(None, "?")],
        "a TEXT_MESSAGE_CHUNK without subagentRunId fits several open messages",
    );
}

/// A357
#[test]
fn what_a_chunk_repeats_must_agree() {
    fails(
        vec![call(Some(("c", "pay")), "{"), call(Some(("c", "search")), "}")],
        "of call c names the tool search, its first one pay",
    );
    let with_role =
        |role: &str| json!({"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "role": role, "delta": "x"});
    holds(vec![text(Some("m"), "x"), with_role("assistant")]);
    fails(
        vec![text(Some("m"), "x"), with_role("user")],
        "of message m has the role user, its first one assistant",
    );
}

/// A306: producers before 1.0 end a piece of reasoning with an empty chunk.
#[test]
fn an_empty_chunk_ends_a_piece_of_reasoning() {
    let thought = |delta: &str| json!({"type": "REASONING_MESSAGE_CHUNK", "messageId": "r", "delta": delta});
    let told = holds(vec![thought("One."), thought(""), thought("Two.")]);
    assert_eq!(told.thoughts(), ["One.", "Two."]);
}

/// A359, A360: the same run in both styles, and in both at once, is the same.
#[test]
fn styles_may_be_mixed_and_say_the_same() {
    let args = json!({"amount": 42.5});
    let pay = move |run: Run, chunks: bool| {
        let result = Some(json!({"status": "approved"}));
        if chunks {
            run.tool_chunks("c1", "pay", &args, result)
        } else {
            run.tool("c1", "pay", &args, result)
        }
    };
    let say = |run: Run, chunks: bool| {
        if chunks {
            run.text_chunks("Payment approved, thank you.")
        } else {
            run.text("Payment approved, thank you.")
        }
    };
    for (first, second) in [(false, false), (false, true), (true, false), (true, true)] {
        let pay = pay.clone();
        let told =
            hears_strictly(move |run| say(pay(run.started(), first), second).finished()).passed().quietly();
        assert_eq!(told.calls(), [r#"1 pay {"amount":42.5} → {"status":"approved"}"#]);
        assert_eq!(told.texts(), ["1 Payment approved, thank you."]);
    }
}
