//! Every type of event is accepted, in the form of protocol 1.0 and in those before it, and does what it stands for.

use hotseat_testkit::agui::Run;
use hotseat_trace::FailureKind::ProtocolError;
use serde_json::{Value, json};

use super::talk::{Told, hears, hears_strictly};

/// What becomes of a run with these events between its first and its last, which must pass by the strictest rules
/// and be quiet.
#[track_caller]
fn holds(events: &[Value]) -> Told {
    let events = events.to_vec();
    hears_strictly(move |run| with(run.started(), &events).finished()).passed().quietly()
}

fn with(run: Run, events: &[Value]) -> Run {
    events.iter().cloned().fold(run, Run::raw_event)
}

/// A281–A283: the role may be left out, a delta may be empty.
#[test]
fn text_messages() {
    let told = holds(&[
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

/// A71: what an agent streams in the name of others is not what it says.
#[test]
fn only_the_assistant_speaks_for_the_agent() {
    for role in ["user", "system", "developer"] {
        let told = holds(&[
            json!({"type": "TEXT_MESSAGE_START", "messageId": "m", "role": role}),
            json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Not me."}),
            json!({"type": "TEXT_MESSAGE_END", "messageId": "m"}),
        ]);
        assert!(told.texts().is_empty(), "{role}");
    }
}

/// A284, A288, A306: the chunk forms; the rest of their rules has a file of its own.
#[test]
fn chunks() {
    let told = holds(&[
        json!({"type": "REASONING_MESSAGE_CHUNK", "messageId": "r", "delta": "Hm."}),
        json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "look", "delta": "{}"}),
        json!({"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "role": "assistant", "delta": "Hi."}),
    ]);
    assert_eq!((told.thoughts(), told.texts()), (vec!["Hm.".to_string()], vec!["1 Hi.".to_string()]));
    assert_eq!(told.calls(), ["1 look {} → nothing"]);
}

/// A285–A289, A62–A64, A67: a call is recorded at its start; its arguments are read whole; its result is JSON
/// where it is JSON.
#[test]
fn tool_calls() {
    let told = holds(&[
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

/// A66: nobody answers, and nobody even ends it.
#[test]
fn a_call_without_result_or_end_is_a_call() {
    let start = json!({"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "delete_order"});
    let args = json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": "{\"id\":7}"});
    let only = start.clone();
    assert_eq!(
        hears(move |run| run.started().raw_event(only.clone()).finished()).passed().calls(),
        ["1 delete_order {} → nothing"]
    );
    let told =
        hears(move |run| run.started().raw_event(start.clone()).raw_event(args.clone()).finished()).passed();
    assert_eq!(told.calls(), [r#"1 delete_order {"id":7} → nothing"#]);
    told.noting("RUN_FINISHED while open: tool call c1");
}

/// A67
#[test]
fn arguments_that_are_not_json_are_kept_as_text() {
    let told = hears(|run| {
        run.started()
            .raw_event(json!({"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "pay"}))
            .raw_event(
                json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": "ayment of 42.50 EUR\"}"}),
            )
            .raw_event(json!({"type": "TOOL_CALL_END", "toolCallId": "c1"}))
            .finished()
    });
    let told = told.passed().noting("the arguments of tool call c1 are not JSON");
    let call = &told.0.conversation.turns[0].tool_calls[0];
    assert!(call.arguments_broken && call.arguments == json!("ayment of 42.50 EUR\"}"));
}

/// A63, A112, A118, A119: what a result may look like.
#[test]
fn results_are_read_as_what_they_are() {
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
        let told = holds(&[
            json!({"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "get"}),
            json!({"type": "TOOL_CALL_END", "toolCallId": "c1"}),
            json!({"type": "TOOL_CALL_RESULT", "messageId": "r1", "toolCallId": "c1", "content": content}),
        ]);
        let result = told.0.conversation.turns[0].tool_calls[0].result.clone().expect("it has a result");
        assert_eq!(result.text(), text, "{content}");
    }
}

/// The error of a tool message, wherever a server puts it.
#[test]
fn a_result_may_be_an_error() {
    for (error, content, shown) in [
        (json!("out of stock"), "", "failed: out of stock"),
        (json!("E7"), "out of stock", "failed: out of stock"),
        (json!({"code": 7}), "", r#"failed: {"code":7}"#),
        (json!(null), "fine", "fine"),
    ] {
        let told = holds(&[
            json!({"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "get"}),
            json!({"type": "TOOL_CALL_END", "toolCallId": "c1"}),
            json!({"type": "TOOL_CALL_RESULT", "messageId": "r1", "toolCallId": "c1", "content": content, "error": error}),
        ]);
        assert_eq!(told.calls(), [format!("1 get {{}} → {shown}")]);
    }
}

/// A293–A296, A381, A383
#[test]
fn activities_raw_and_custom_events() {
    let patch = |path: &str| json!([{"op": "replace", "path": path, "value": 2}]);
    let told = hears(move |run| {
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
    let told = told.passed().noting("ACTIVITY_DELTA does not apply");
    let names: Vec<Value> = told.events("custom").iter().map(|event| event["name"].clone()).collect();
    assert_eq!(names, ["note", "bare", "activity.snapshot", "activity.snapshot", "activity.delta"]);
    assert_eq!(told.events("custom")[4]["value"]["patch"], patch("/step"));
    assert_eq!(told.notes().len(), 1);
}

/// A382
#[test]
fn an_activity_with_the_id_of_a_message_is_noted_and_takes_nothing_away() {
    let told = hears(|run| {
        run.started()
            .raw_event(json!({"type": "TEXT_MESSAGE_START", "messageId": "m"}))
            .raw_event(json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Hi."}))
            .raw_event(json!({"type": "TEXT_MESSAGE_END", "messageId": "m"}))
            .raw_event(
                json!({"type": "ACTIVITY_SNAPSHOT", "messageId": "m", "activityType": "PLAN", "content": {}}),
            )
            .finished()
    });
    assert_eq!(told.passed().noting("ACTIVITY_SNAPSHOT has the id of a message: m").texts(), ["1 Hi."]);
}

/// A297, A298, A385, A386
#[test]
fn the_ends_of_a_run() {
    let told = hears_strictly(|run| {
        run.raw_event(json!({"type": "RUN_STARTED", "parentRunId": "p", "input": {"messages": [{"id": "old", "role": "assistant", "content": "Echo."}]}}))
            .raw_event(json!({"type": "RUN_FINISHED", "result": {"done": 1}, "usage": [{"provider": "x", "inputTokens": 3}]}))
    });
    let told = told.passed().quietly();
    // A369: the echo of what was sent is not something the agent says.
    assert!(told.texts().is_empty());
    assert_eq!(told.events("agent.run.finished")[0]["result"], json!({"done": 1}));
    assert_eq!(told.0.conversation.turns[0].usage, [json!([{"provider": "x", "inputTokens": 3}])]);
}

/// A300, A301
#[test]
fn steps() {
    let told = holds(&[
        json!({"type": "STEP_STARTED", "stepName": "plan"}),
        json!({"type": "STEP_FINISHED", "stepName": "plan"}),
        json!({"type": "STEP_STARTED", "stepName": "plan"}),
        json!({"type": "STEP_FINISHED", "stepName": "plan"}),
    ]);
    assert_eq!((told.events("step.started").len(), told.events("step.finished").len()), (2, 2));
}

/// A302–A308, A70, A338, A340: reasoning is not text; a span is not needed and may share the id of its message.
#[test]
fn reasoning() {
    let told = holds(&[
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
    assert_eq!(told.thoughts(), ["Let me think.", "Again."]);
    assert!(told.texts().is_empty());
}

/// A312–A316: the older names, without ids.
#[test]
fn thinking_is_the_older_word_for_reasoning() {
    let told = hears_strictly(|run| {
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
        (told.thoughts(), told.texts()),
        (vec!["Let me think.".to_string()], vec!["1 Hi.".to_string()])
    );
    assert_eq!(told.notes().len(), 1, "said once");
    told.noting("THINKING");
}

/// A317: unknown types pass, even by the strictest rules, and each is noted once.
#[test]
fn unknown_types_are_notes() {
    let told = hears_strictly(|run| {
        let strange = json!({"type": "META_EVENT", "metaType": "thumbs_up", "payload": {}});
        let newer = json!({"type": "SOMETHING_NEW", "delta": 5, "messageId": []});
        run.raw_event(strange.clone()).started().raw_event(newer).raw_event(strange).text("Hi.").finished()
    });
    assert_eq!(told.passed().noting("META_EVENT").noting("SOMETHING_NEW").notes().len(), 2);
}

/// A318, A319, A321, A433: what may stand on any event, and what older producers write where there is nothing.
#[test]
fn members_that_decide_nothing_are_passed_over() {
    for extra in [
        json!({"timestamp": 1_700_000_000_000_i64}),
        json!({"timestamp": 1_700_000_000}),
        json!({"timestamp": -1.5}),
        json!({"timestamp": null, "rawEvent": null, "parentMessageId": null, "name": null, "role": null, "outcome": null}),
        json!({"result": null, "usage": null, "code": null, "protocolVersion": null, "metadata": null}),
        json!({"rawEvent": {"deep": [{"type": "TEXT_MESSAGE_START"}]}, "metadata": {"a": {"b": 1}}, "zzz": [1, {}]}),
    ] {
        let told = holds_with(&extra);
        assert_eq!(
            (told.texts(), told.calls()),
            (vec!["1 Hi.".into()], vec!["1 look {} → seen".into()]),
            "{extra}"
        );
    }
}

/// A run with all that matters, and these members on each of its events.
fn holds_with(extra: &Value) -> Told {
    let extra = extra.clone();
    let told = hears_strictly(move |run| {
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
            let members = event.as_object_mut().expect("an event is an object");
            members.extend(extra.as_object().expect("a mapping").clone());
            event
        };
        events.into_iter().map(extend).fold(run, Run::raw_event)
    });
    told.passed().quietly()
}

/// A345
#[test]
fn a_sub_agent_that_is_null_is_against_the_rules() {
    let run = |run: Run| {
        run.started()
            .raw_event(json!({"type": "CUSTOM", "name": "x", "value": 1, "subagentRunId": null}))
            .finished()
    };
    hears(run).passed().noting("`subagentRunId` is null");
    hears_strictly(run).failed(ProtocolError, "event 2: `subagentRunId` is null");
}
