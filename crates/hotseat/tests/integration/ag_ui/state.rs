//! The shared state: replaced by snapshots, patched by deltas, sent back with the next request.

use hotseat_testkit::FakeAgent;
use hotseat_testkit::agui::FakeRun;
use hotseat_trace::FailureKind::{Limit, ProtocolError};
use hotseat_trace::TracedConversation;
use serde_json::{Value, json};

use super::fixture::{ConversationOutcome, TestConversation, run_turn_with};

/// State after a turn with these events, as the next request sends it.
fn state_after(first: Value, events: Vec<Value>) -> (Value, ConversationOutcome) {
    let agent = FakeAgent::with_run(move |run, request| match request.index {
        0 => events.iter().cloned().fold(run, FakeRun::raw_event).finished(),
        _ => run.finished(),
    });
    let told = TestConversation::new(&agent)
        .target(|target| target.state = first)
        .user_says("one")
        .user_says("two")
        .run()
        .passed();
    (agent.requests()[1].json()["state"].clone(), told)
}

fn snapshot(state: Value) -> Value {
    json!({"type": "STATE_SNAPSHOT", "snapshot": state})
}

fn delta(patch: Value) -> Value {
    json!({"type": "STATE_DELTA", "delta": patch})
}

/// A208, A254
#[test]
fn test_state_is_initial_and_unchanged_without_updates() {
    assert_eq!(state_after(json!({"cart": [1]}), vec![]).0, json!({"cart": [1]}));
}

/// A372, A377, A290: nothing is merged, and any JSON value can be a state.
#[test]
fn snapshot_replaces_whole_state() {
    for state in [json!({"b": 1}), json!(null), json!(false), json!(0), json!([]), json!("text")] {
        assert_eq!(state_after(json!({"a": 1}), vec![snapshot(state.clone())]).0, state);
    }
    assert_eq!(
        state_after(json!({}), vec![snapshot(json!({"a": 1})), snapshot(json!({"b": 2}))]).0,
        json!({"b": 2})
    );
}

/// A373, A376: operations with their paths and escapes; unknown members are ignored.
#[test]
fn deltas_are_json_patches() {
    for (before, patch, expected) in [
        (json!({}), json!([{"op": "add", "path": "/a", "value": 1, "zzz": true}]), json!({"a": 1})),
        (json!({"l": [1]}), json!([{"op": "add", "path": "/l/-", "value": 2}]), json!({"l": [1, 2]})),
        (json!({"l": [1, 3]}), json!([{"op": "add", "path": "/l/1", "value": 2}]), json!({"l": [1, 2, 3]})),
        (json!({"a": 1, "b": 2}), json!([{"op": "remove", "path": "/a"}]), json!({"b": 2})),
        (json!({"a": 1}), json!([{"op": "replace", "path": "/a", "value": null}]), json!({"a": null})),
        (json!({"a": 1}), json!([{"op": "move", "from": "/a", "path": "/b"}]), json!({"b": 1})),
        (json!({"a": [1]}), json!([{"op": "copy", "from": "/a", "path": "/b"}]), json!({"a": [1], "b": [1]})),
        (
            json!({"a": 1}),
            json!([{"op": "test", "path": "/a", "value": 1}, {"op": "remove", "path": "/a"}]),
            json!({}),
        ),
        (
            json!({"a/b": 1, "m~n": 2}),
            json!([{"op": "replace", "path": "/a~1b", "value": 3}, {"op": "remove", "path": "/m~0n"}]),
            json!({"a/b": 3}),
        ),
        (
            json!({"a": 1}),
            json!([{"op": "replace", "path": "", "value": {"new": true}}]),
            json!({"new": true}),
        ),
        (
            json!({"a": 1, "b": [2]}),
            json!([{"op": "test", "path": "", "value": {"a": 1.0, "b": [2.0]}}, {"op": "remove", "path": "/a"}]),
            json!({"b": [2]}),
        ),
        (
            json!({"a": 1}),
            json!([{"op": "remove", "path": ""}, {"op": "add", "path": "", "value": {"b": 2}}]),
            json!({"b": 2}),
        ),
        (json!({"a": 1}), json!([{"op": "remove", "path": ""}]), json!(null)),
        (json!({}), json!([]), json!({})),
    ] {
        let (state, told) = state_after(before, vec![delta(patch.clone())]);
        assert_eq!(state, expected, "{patch}");
        told.assert_no_notes();
    }
}

/// A374: a patch applies completely or not, and the turn continues.
#[test]
fn inapplicable_patch_changes_nothing_and_is_noted() {
    for patch in [
        json!([{"op": "add", "path": "/b", "value": 2}, {"op": "test", "path": "/a", "value": 9}]),
        json!([{"op": "add", "path": "/b", "value": 2}, {"op": "remove", "path": "/nowhere"}]),
        json!([{"op": "add", "path": "/l/7", "value": 2}]),
    ] {
        let (state, told) = state_after(json!({"a": 1, "l": []}), vec![delta(patch.clone())]);
        assert_eq!(state, json!({"a": 1, "l": []}), "{patch}");
        told.assert_note("STATE_DELTA does not apply and changes nothing");
    }
}

/// Assertions would read the state before the patch.
#[test]
fn patch_beyond_a_limit_fails_the_turn() {
    let shifts = vec![json!({"op": "add", "path": "/log/0", "value": 1}); 24_000];
    let deep = (0..60).fold(json!(1), |inner, _| json!({"a": inner}));
    for (patch, words) in [
        (json!(shifts), "the patches of this conversation copied or moved more than 64 MB"),
        (json!([{"op": "add", "path": "/log/0", "value": deep}]), "at most 60 is allowed"),
    ] {
        let delta = delta(patch);
        run_turn_with(move |run| {
            run.started().state(json!({"log": []})).raw_event(delta.clone()).text("Done.").finished()
        })
        .failed(Limit, words);
    }
}

/// A320, A376: a patch that is none for any document is a protocol error, also where an earlier operation does not apply.
#[test]
fn malformed_patch_is_a_protocol_error() {
    for patch in [
        json!([{"op": "add", "path": "/b", "value": 2}, {"op": "frob", "path": "/a"}]),
        json!([{"op": "remove", "path": "/nowhere"}, {"op": "frob", "path": "/a"}]),
        json!([{"op": "add", "path": "/b"}]),
        json!([{"op": "move", "path": "/b"}]),
        json!([{"op": "remove", "path": "a"}]),
        json!([{"path": "/a"}]),
        json!([7]),
        json!({"op": "add", "path": "/b", "value": 2}),
        json!({"a": 1}),
        json!(null),
    ] {
        let of_state = delta(patch.clone());
        let activity = json!({"type": "ACTIVITY_SNAPSHOT", "messageId": "a", "activityType": "PLAN", "content": {"a": 1}});
        let of_activity =
            json!({"type": "ACTIVITY_DELTA", "messageId": "a", "activityType": "PLAN", "patch": patch});
        for (events, words) in [
            (vec![of_state], "STATE_DELTA has an invalid patch"),
            (vec![activity, of_activity], "ACTIVITY_DELTA has an invalid patch"),
        ] {
            let told = run_turn_with(move |run| {
                let started = run.started().state(json!({"a": 1}));
                events
                    .iter()
                    .fold(started, |run, event| run.raw_event(event.clone()))
                    .text("Done.")
                    .finished()
            });
            told.failed(ProtocolError, words);
        }
    }
}

/// A375, A378: a delta applies to the sent state; the trace contains every intermediate state.
#[test]
fn every_intermediate_state_is_recorded() {
    let add = |path: &str| delta(json!([{"op": "add", "path": path, "value": true}]));
    let (state, told) = state_after(
        json!({"first": 1}),
        vec![add("/a"), snapshot(json!({})), add("/b"), add("/no/where"), add("/c")],
    );
    assert_eq!(state, json!({"b": true, "c": true}));
    // The trace contains each: the first in full, since the sent state is not in it, the others as changes.
    let mut conversation = TracedConversation::default();
    let mut states = Vec::new();
    for record in &told.0.events {
        conversation.apply(&record.event);
        if record.event.payload.type_name().starts_with("state.") {
            states.push(conversation.state.as_deref().cloned());
        }
    }
    let of_state = [
        json!({"first": 1, "a": true}),
        json!({}),
        json!({"b": true}),
        json!({"b": true}),
        json!({"b": true, "c": true}),
    ];
    assert_eq!(states, of_state.map(Some));
    let deltas = told.events("state.delta");
    let whole: Vec<bool> = deltas.iter().map(|event| event.get("state").is_some()).collect();
    let applied: Vec<bool> = deltas.iter().map(|event| event.get("applied") == Some(&json!(true))).collect();
    assert_eq!((whole, applied), (vec![true, false, false, false], vec![true, true, false, true]));
    assert_eq!(told.0.conversation.state.as_deref(), Some(&json!({"b": true, "c": true})));
}
