//! Every event type, in protocol 1.0 and earlier forms, with its effect.

use hotseat_testkit::agui::FakeRun;
use hotseat_trace::FailureKind::ProtocolError;
use serde_json::{Value, json};

use super::fixture::{ConversationOutcome, run_strict_turn, run_turn_with};

/// Runs these events inside a run; asserts that it passes in strict mode without notes.
#[track_caller]
fn assert_passes(events: &[Value]) -> ConversationOutcome {
    let events = events.to_vec();
    run_strict_turn(move |run| with_events(run.started(), &events).finished()).passed().assert_no_notes()
}

fn with_events(run: FakeRun, events: &[Value]) -> FakeRun {
    events.iter().cloned().fold(run, FakeRun::raw_event)
}

/// A281–A283: the role may be omitted, a delta may be empty.
#[test]
fn text_messages() {
    let told = assert_passes(&[
        json!({"type": "TEXT_MESSAGE_START", "messageId": "m1"}),
        json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "Hel"}),
        json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": ""}),
        json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "lo"}),
        json!({"type": "TEXT_MESSAGE_END", "messageId": "m1"}),
        json!({"type": "TEXT_MESSAGE_START", "messageId": "m2", "role": "assistant", "name": "Ann"}),
        json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m2", "delta": "!"}),
        json!({"type": "TEXT_MESSAGE_END", "messageId": "m2"}),
    ]);
    assert_eq!(told.texts(), ["1 Hello", "1 !"]);
    assert_eq!(told.0.conversation.turns[0].answer(), Some("!"));
}

/// A71: messages of other roles are not agent text.
#[test]
fn only_assistant_messages_count_as_agent_text() {
    for role in ["user", "system", "developer"] {
        let told = assert_passes(&[
            json!({"type": "TEXT_MESSAGE_START", "messageId": "m", "role": role}),
            json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Not me."}),
            json!({"type": "TEXT_MESSAGE_END", "messageId": "m"}),
        ]);
        assert!(told.texts().is_empty(), "{role}");
    }
}

/// A284, A288, A306: the chunk forms; `chunks.rs` tests their other rules.
#[test]
fn chunks() {
    let told = assert_passes(&[
        json!({"type": "REASONING_MESSAGE_CHUNK", "messageId": "r", "delta": "Hm."}),
        json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "look", "delta": "{}"}),
        json!({"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "role": "assistant", "delta": "Hi."}),
    ]);
    assert_eq!((told.reasoning_texts(), told.texts()), (vec!["Hm.".to_string()], vec!["1 Hi.".to_string()]));
    assert_eq!(told.calls(), ["1 look {} → nothing"]);
}

/// A285–A289, A62–A64, A67: a call is recorded at its start; its arguments are parsed when complete; its
/// result is JSON if it parses as such.
#[test]
fn tool_calls() {
    let told = assert_passes(&[
        json!({"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "pay", "parentMessageId": null}),
        json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": "{\"amount"}),
        json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": ""}),
        json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": "\": 42.50}"}),
        json!({"type": "TOOL_CALL_END", "toolCallId": "c1"}),
        json!({"type": "TOOL_CALL_RESULT", "messageId": "r1", "toolCallId": "c1", "role": "tool", "content": "{\"ok\": true}"}),
    ]);
    assert_eq!(told.calls(), [r#"1 pay {"amount":42.5} → {"ok":true}"#]);
    let types: Vec<&str> = told.0.events.iter().map(|event| event.payload.type_name()).collect();
    let of_tools: Vec<&str> = types.into_iter().filter(|name| name.starts_with("tool.")).collect();
    assert_eq!(of_tools, ["tool.invoked", "tool.arguments", "tool.completed"]);
}

/// A66: a call without result and without end. If no part of its arguments arrived, they are unknown.
#[test]
fn unfinished_call_counts_as_call() {
    let start = json!({"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "delete_order"});
    let args = json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": "{\"id\":7}"});
    let only = start.clone();
    assert_eq!(
        run_turn_with(move |run| run.started().raw_event(only.clone()).finished()).passed().calls(),
        [r#"1 delete_order "the reply was cut before the arguments" → nothing"#]
    );
    let told =
        run_turn_with(move |run| run.started().raw_event(start.clone()).raw_event(args.clone()).finished())
            .passed();
    assert_eq!(told.calls(), [r#"1 delete_order {"id":7} → nothing"#]);
    told.assert_note("RUN_FINISHED while open: tool call c1");
}

/// A67
#[test]
fn non_json_arguments_are_kept_as_text() {
    let told = run_turn_with(|run| {
        run.started()
            .raw_event(json!({"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "pay"}))
            .raw_event(
                json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": "ayment of 42.50 EUR\"}"}),
            )
            .raw_event(json!({"type": "TOOL_CALL_END", "toolCallId": "c1"}))
            .finished()
    });
    let told = told.passed().assert_note(
        "the text of the arguments of tool call c1 is not JSON (expected value at line 1 column 1)",
    );
    let call = &told.0.conversation.turns[0].tool_calls[0];
    assert!(call.arguments_broken && call.arguments == json!("ayment of 42.50 EUR\"}"));
}

#[test]
fn arguments_with_a_number_that_is_too_large_are_kept_as_text() {
    let told = run_turn_with(|run| {
        run.started()
            .raw_event(json!({"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "pay"}))
            .raw_event(json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": r#"{"n": 1e400}"#}))
            .raw_event(json!({"type": "TOOL_CALL_END", "toolCallId": "c1"}))
            .finished()
    });
    let told = told.passed().assert_note(
        "the text of the arguments of tool call c1 has a number that is too large (number out of range at line 1 column 11)",
    );
    let call = &told.0.conversation.turns[0].tool_calls[0];
    assert!(call.arguments_broken && call.arguments == json!(r#"{"n": 1e400}"#));
}

/// A63, A112, A118, A119: forms of a result.
#[test]
fn results_are_parsed_by_content() {
    for (content, text) in [
        (json!("plain words"), "plain words"),
        (json!(""), ""),
        (json!("{\"a\": [1, 2]}"), r#"{"a":[1,2]}"#),
        (json!("\"stored color\""), "stored color"),
        (json!("\"{\\\"a\\\": 1}\""), r#"{"a":1}"#),
        (json!("1.50"), "1.50"),
        (json!("007"), "007"),
        (json!("true"), "true"),
        (
            json!([{"type": "text", "text": "one "}, {"type": "image", "source": {}}, {"type": "text", "text": "two"}]),
            "one two",
        ),
        (json!({"a": 1}), r#"{"a":1}"#),
        (json!([{"id": 1}, {"id": 2}]), r#"[{"id":1},{"id":2}]"#),
        (json!(7), "7"),
        (json!(null), "null"),
    ] {
        let told = assert_passes(&[
            json!({"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "get"}),
            json!({"type": "TOOL_CALL_END", "toolCallId": "c1"}),
            json!({"type": "TOOL_CALL_RESULT", "messageId": "r1", "toolCallId": "c1", "content": content}),
        ]);
        let result = told.0.conversation.turns[0].tool_calls[0].result.clone().expect("it has a result");
        assert_eq!(result.text(), text, "{content}");
    }
}

/// The error of a tool message in every position that servers use.
#[test]
fn result_may_be_an_error() {
    for (error, content, shown) in [
        (json!("out of stock"), "", "failed: out of stock"),
        (json!("E7"), "out of stock", "failed: E7: out of stock"),
        (json!({"code": 7}), "", r#"failed: {"code":7}"#),
        (json!(null), "fine", "fine"),
    ] {
        let told = assert_passes(&[
            json!({"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "get"}),
            json!({"type": "TOOL_CALL_END", "toolCallId": "c1"}),
            json!({"type": "TOOL_CALL_RESULT", "messageId": "r1", "toolCallId": "c1", "content": content, "error": error}),
        ]);
        assert_eq!(told.calls(), [format!("1 get {{}} → {shown}")]);
    }
}

/// A293–A296, A381, A383
#[test]
fn activity_raw_and_custom_events() {
    let patch = |path: &str| json!([{"op": "replace", "path": path, "value": 2}]);
    let told = run_turn_with(move |run| {
        let activity = |content: Value| json!({"type": "ACTIVITY_SNAPSHOT", "messageId": "a", "activityType": "PLAN", "content": content});
        let mut unchanged = activity(json!({"step": 9}));
        unchanged["replace"] = json!(false);
        run.started()
            .raw_event(json!({"type": "RAW", "event": {"anything": [null]}, "source": "x"}))
            .raw_event(json!({"type": "RAW", "event": null}))
            .custom("note", Value::Null)
            .raw_event(json!({"type": "CUSTOM", "name": "bare"}))
            .raw_event(activity(json!({"step": 1})))
            .raw_event(unchanged)
            .raw_event(json!({"type": "ACTIVITY_DELTA", "messageId": "a", "activityType": "PLAN", "patch": patch("/step")}))
            .raw_event(json!({"type": "ACTIVITY_DELTA", "messageId": "a", "activityType": "PLAN", "patch": patch("/nowhere/x")}))
            .raw_event(json!({"type": "ACTIVITY_DELTA", "messageId": "stranger", "activityType": "PLAN", "patch": patch("/step")}))
            .finished()
    });
    let told = told.passed().assert_note("ACTIVITY_DELTA does not apply");
    let names: Vec<Value> = told.events("custom").iter().map(|event| event["name"].clone()).collect();
    assert_eq!(names, ["note", "bare", "activity.snapshot", "activity.snapshot", "activity.delta"]);
    assert_eq!(told.events("custom")[4]["value"]["patch"], patch("/step"));
    assert_eq!(told.notes().len(), 1);
}

/// A382
#[test]
fn activity_with_message_id_is_noted_and_changes_nothing() {
    let told = run_turn_with(|run| {
        run.started()
            .raw_event(json!({"type": "TEXT_MESSAGE_START", "messageId": "m"}))
            .raw_event(json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Hi."}))
            .raw_event(json!({"type": "TEXT_MESSAGE_END", "messageId": "m"}))
            .raw_event(
                json!({"type": "ACTIVITY_SNAPSHOT", "messageId": "m", "activityType": "PLAN", "content": {}}),
            )
            .finished()
    });
    assert_eq!(told.passed().assert_note("ACTIVITY_SNAPSHOT has the id of a message: m").texts(), ["1 Hi."]);
}

/// A297, A298, A385, A386
#[test]
fn run_endings() {
    let told = run_strict_turn(|run| {
        run.raw_event(json!({"type": "RUN_STARTED", "parentRunId": "p", "input": {"messages": [{"id": "old", "role": "assistant", "content": "Echo."}]}}))
            .raw_event(json!({"type": "RUN_FINISHED", "result": {"done": 1}, "usage": [{"provider": "x", "inputTokens": 3}]}))
    });
    let told = told.passed().assert_no_notes();
    // A369: the echo of a sent message is not agent text.
    assert!(told.texts().is_empty());
    assert_eq!(told.events("agent.run.finished")[0]["result"], json!({"done": 1}));
    assert_eq!(told.0.conversation.turns[0].reported_usage, [json!([{"provider": "x", "inputTokens": 3}])]);
}

/// A300, A301
#[test]
fn steps() {
    let told = assert_passes(&[
        json!({"type": "STEP_STARTED", "stepName": "plan"}),
        json!({"type": "STEP_FINISHED", "stepName": "plan"}),
        json!({"type": "STEP_STARTED", "stepName": "plan"}),
        json!({"type": "STEP_FINISHED", "stepName": "plan"}),
    ]);
    assert_eq!((told.events("step.started").len(), told.events("step.finished").len()), (2, 2));
}

/// A302–A308, A70, A338, A340: reasoning is not text; a span is optional and may share the id of its message.
#[test]
fn reasoning() {
    let told = assert_passes(&[
        json!({"type": "REASONING_START", "messageId": "r"}),
        json!({"type": "REASONING_MESSAGE_START", "messageId": "r", "role": "reasoning"}),
        json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": "r", "delta": "Let me "}),
        json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": "r", "delta": ""}),
        json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": "r", "delta": "think."}),
        json!({"type": "REASONING_MESSAGE_END", "messageId": "r"}),
        json!({"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "r", "encryptedValue": "x"}),
        json!({"type": "REASONING_END", "messageId": "r"}),
        json!({"type": "REASONING_MESSAGE_START", "messageId": "r2", "role": "assistant"}),
        json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": "r2", "delta": "Again."}),
        json!({"type": "REASONING_MESSAGE_END", "messageId": "r2"}),
    ]);
    assert_eq!(told.reasoning_texts(), ["Let me think.", "Again."]);
    assert!(told.texts().is_empty());
}

/// A312–A316: the legacy names, without ids.
#[test]
fn thinking_events_are_legacy_reasoning() {
    let told = run_strict_turn(|run| {
        run.started()
            .raw_event(json!({"type": "THINKING_START", "title": "Planning"}))
            .raw_event(json!({"type": "THINKING_TEXT_MESSAGE_START"}))
            .raw_event(json!({"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "Let me "}))
            .raw_event(json!({"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "think."}))
            .raw_event(json!({"type": "THINKING_TEXT_MESSAGE_END"}))
            .raw_event(json!({"type": "THINKING_END"}))
            .text("Hi.")
            .finished()
    });
    let told = told.passed();
    assert_eq!(
        (told.reasoning_texts(), told.texts()),
        (vec!["Let me think.".to_string()], vec!["1 Hi.".to_string()])
    );
    assert_eq!(told.notes().len(), 1, "said once");
    told.assert_note("THINKING");
}

/// A317: unknown types pass even in strict mode, and each is noted once.
#[test]
fn unknown_event_types_are_noted() {
    let told = run_strict_turn(|run| {
        let strange = json!({"type": "META_EVENT", "metaType": "thumbs_up", "payload": {}});
        let newer = json!({"type": "SOMETHING_NEW", "delta": 5, "messageId": []});
        run.raw_event(strange.clone()).started().raw_event(newer).raw_event(strange).text("Hi.").finished()
    });
    assert_eq!(told.passed().assert_note("META_EVENT").assert_note("SOMETHING_NEW").notes().len(), 2);
}

/// A318, A319, A321, A433: members allowed on any event, and placeholders of older producers.
#[test]
fn irrelevant_members_are_ignored() {
    for extra in [
        json!({"timestamp": 1_700_000_000_000_i64}),
        json!({"timestamp": 1_700_000_000}),
        json!({"timestamp": -1.5}),
        json!({"timestamp": null, "rawEvent": null, "parentMessageId": null, "name": null, "role": null, "outcome": null}),
        json!({"result": null, "usage": null, "code": null, "protocolVersion": null, "metadata": null}),
        json!({"rawEvent": {"deep": [{"type": "TEXT_MESSAGE_START"}]}, "metadata": {"a": {"b": 1}}, "zzz": [1, {}]}),
    ] {
        let told = assert_passes_with(&extra);
        assert_eq!(
            (told.texts(), told.calls()),
            (vec!["1 Hi.".into()], vec!["1 look {} → seen".into()]),
            "{extra}"
        );
    }
}

/// A complete run with these members on each event.
fn assert_passes_with(extra: &Value) -> ConversationOutcome {
    let extra = extra.clone();
    let told = run_strict_turn(move |run| {
        let events = [
            json!({"type": "RUN_STARTED"}),
            json!({"type": "TEXT_MESSAGE_START", "messageId": "m"}),
            json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Hi."}),
            json!({"type": "TEXT_MESSAGE_END", "messageId": "m"}),
            json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "look"}),
            json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{}"}),
            json!({"type": "TOOL_CALL_END", "toolCallId": "c"}),
            json!({"type": "TOOL_CALL_RESULT", "messageId": "r", "toolCallId": "c", "content": "seen"}),
            json!({"type": "STEP_STARTED", "stepName": "s"}),
            json!({"type": "STEP_FINISHED", "stepName": "s"}),
            json!({"type": "STATE_SNAPSHOT", "snapshot": {}}),
            json!({"type": "RUN_FINISHED"}),
        ];
        let extend = |mut event: Value| {
            let members = event.as_object_mut().expect("an event must be an object");
            members.extend(extra.as_object().expect("a mapping").clone());
            event
        };
        events.into_iter().map(extend).fold(run, FakeRun::raw_event)
    });
    told.passed().assert_no_notes()
}

/// A345
#[test]
fn null_sub_agent_is_a_protocol_error() {
    let run = |run: FakeRun| {
        run.started()
            .raw_event(json!({"type": "CUSTOM", "name": "x", "value": 1, "subagentRunId": null}))
            .finished()
    };
    run_turn_with(run).passed().assert_note("`subagentRunId` is null");
    run_strict_turn(run).failed(ProtocolError, "event 2: `subagentRunId` is null");
}

/// What follows a second start is said in its role.
#[test]
fn a_second_start_may_change_the_role() {
    let start = |role: &str| json!({"type": "TEXT_MESSAGE_START", "messageId": "m", "role": role});
    let text = |delta: &str| json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": delta});
    let events = [start("user"), text("a question"), start("assistant"), text("a secret")];
    let told =
        run_turn_with(move |run| events.iter().cloned().fold(run.started(), FakeRun::raw_event).finished());
    assert_eq!(told.passed().texts(), ["1 a secret"]);
}

/// Arguments or text in a member that no client reads would be lost without a word.
#[test]
fn arguments_and_text_in_other_members_are_invalid() {
    let calls = |event: Value| run_turn_with(move |run| run.started().raw_event(event.clone()).finished());
    for member in ["arguments", "args", "input", "parameters"] {
        for (value, is_invalid) in [
            (json!({"n": 1}), true),
            (json!("{\"n\":1}"), true),
            (json!({}), false),
            (json!(""), false),
            (json!(null), false),
        ] {
            // Only the end of the run ends the call that has started.
            let cut = r#"1 pay "the reply was cut before the arguments" → nothing"#;
            for (kind, none) in [("TOOL_CALL_START", cut), ("TOOL_CALL_CHUNK", "1 pay {} → nothing")] {
                let words =
                    format!("event 2: {kind}: the arguments of a call belong in `delta` of TOOL_CALL_ARGS");
                let mut event = json!({"type": kind, "toolCallId": "c", "toolCallName": "pay"});
                event[member] = value.clone();
                let told = calls(event);
                match is_invalid {
                    true => drop(told.failed(ProtocolError, &words)),
                    false => assert_eq!(told.passed().calls(), [none], "{kind} {member}"),
                }
            }
        }
    }
    for member in ["content", "text"] {
        for kind in ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CHUNK"] {
            let words =
                format!("event 2: {kind}: the text of a message belongs in `delta` of TEXT_MESSAGE_CONTENT");
            for (value, is_invalid) in [(json!("Hi."), true), (json!(""), false), (json!(null), false)] {
                let mut event = json!({"type": kind, "messageId": "m", "role": "assistant"});
                event[member] = value;
                let told = calls(event);
                match is_invalid {
                    true => drop(told.failed(ProtocolError, &words)),
                    false => assert!(told.passed().texts().is_empty(), "{kind} {member}"),
                }
            }
        }
    }
}
