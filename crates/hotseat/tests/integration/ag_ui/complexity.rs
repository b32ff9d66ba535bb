//! The cost of a turn is linear in its number of events.

use std::time::{Duration, Instant};

use hotseat_targets::ag_ui::{ProtocolStrictness, fold_streams};
use hotseat_trace::Payload;
use serde_json::{Value, json};

fn start(n: usize) -> Value {
    json!({"type": "TOOL_CALL_START", "toolCallId": format!("c{n}"), "toolCallName": "look"})
}

fn arguments(n: usize) -> Value {
    json!({"type": "TOOL_CALL_ARGS", "toolCallId": format!("c{n}"), "delta": format!("{{\"n\":{n}}}")})
}

fn end(n: usize) -> Value {
    json!({"type": "TOOL_CALL_END", "toolCallId": format!("c{n}")})
}

fn result(n: usize) -> Value {
    json!({"type": "TOOL_CALL_RESULT", "messageId": format!("r{n}"), "toolCallId": format!("c{n}"), "content": format!("{n}")})
}

fn listed(id: String, n: usize) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "look", "arguments": format!("{{\"n\":{n}}}")}})
}

fn snapshot(messages: Vec<Value>) -> Value {
    json!({"type": "MESSAGES_SNAPSHOT", "messages": messages})
}

/// Name of an event pattern, and the events of a turn of size `n`.
type TurnShape = (&'static str, fn(usize) -> Vec<Value>);

/// Event patterns of size `n` in every order that requires searching.
fn shapes() -> Vec<TurnShape> {
    vec![
        ("calls one after the other", |n| {
            (0..n).flat_map(|n| [start(n), arguments(n), end(n), result(n)]).collect()
        }),
        ("calls at once, results backwards", |n| {
            (0..n)
                .map(start)
                .chain((0..n).map(arguments))
                .chain((0..n).rev().map(end))
                .chain((0..n).rev().map(result))
                .collect()
        }),
        ("calls of one message", |n| {
            let start = |n: usize| {
                let mut start = start(n);
                start["parentMessageId"] = json!("m");
                start
            };
            (0..n).flat_map(|n| [start(n), arguments(n), end(n)]).chain((0..n).map(result)).collect()
        }),
        ("calls of a snapshot", |n| {
            let messages = (0..n).flat_map(|n| {
                [
                    json!({"id": format!("m{n}"), "role": "assistant", "toolCalls": [listed(format!("c{n}"), n)]}),
                    json!({"id": format!("r{n}"), "role": "tool", "toolCallId": format!("c{n}"), "content": "ok"}),
                ]
            });
            vec![snapshot(messages.collect())]
        }),
        ("calls that a snapshot names anew", |n| {
            let streamed = (0..n).flat_map(|n| [start(n), arguments(n), end(n), result(n)]);
            let calls: Vec<Value> = (0..n).rev().map(|n| listed(format!("other{n}"), n)).collect();
            streamed
                .chain([snapshot(vec![json!({"id": "m", "role": "assistant", "toolCalls": calls})])])
                .collect()
        }),
        ("results before their calls", |n| (0..n).map(result).chain((0..n).map(start)).collect()),
        ("messages", |n| {
            let message = |n: usize| {
                [
                    json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": format!("m{n}"), "delta": format!("word {n}")}),
                    json!({"type": "TEXT_MESSAGE_END", "messageId": format!("m{n}")}),
                ]
            };
            (0..n).flat_map(message).collect()
        }),
        ("messages that a snapshot leaves out", |n| {
            let told = |what: &str| {
                snapshot(
                    (0..n).map(|n| json!({"role": "assistant", "content": format!("{what} {n}")})).collect(),
                )
            };
            vec![told("one"), told("two")]
        }),
        ("reasoning at once", |n| {
            let begun =
                (0..n).map(|n| json!({"type": "REASONING_MESSAGE_START", "messageId": format!("t{n}")}));
            let said = (0..n).map(
                |n| json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": format!("t{n}"), "delta": "so"}),
            );
            let ended =
                (0..n).map(|n| json!({"type": "REASONING_MESSAGE_END", "messageId": format!("t{n}")}));
            begun.chain(said).chain(ended).collect()
        }),
        ("changes of a state", |n| {
            let state = json!({"type": "STATE_SNAPSHOT", "snapshot": {"list": vec![0; n], "n": 0}});
            let change = |n: usize| json!({"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "/n", "value": n}]});
            std::iter::once(state).chain((0..n).map(change)).collect()
        }),
    ]
}

fn fold(events: Vec<Value>) -> (Vec<Payload>, Duration) {
    let events = [json!({"type": "RUN_STARTED", "threadId": "thread", "runId": "run"})]
        .into_iter()
        .chain(events)
        .chain([json!({"type": "RUN_FINISHED", "threadId": "thread", "runId": "run"})]);
    let stream: String = events.map(|event| format!("data: {event}\n\n")).collect();
    let turns = [vec![stream.into_bytes()]];
    let begun = Instant::now();
    let (recorded, _) = fold_streams(&turns, ProtocolStrictness::Lenient);
    (recorded, begun.elapsed())
}

/// Allows a factor of sixteen for eightfold input, since machines vary; quadratic cost would be a factor of
/// sixty-four.
#[test]
fn processing_time_is_linear() {
    for (name, events) in shapes() {
        let measured = |n: usize| (0..3).map(|_| fold(events(n)).1).min().expect("it was measured");
        let ratio = (0..3).map(|_| {
            let few = measured(500).max(Duration::from_micros(500));
            measured(4000).as_secs_f64() / few.as_secs_f64()
        });
        // A busy machine only increases the time.
        let least = ratio.into_iter().find(|ratio| *ratio < 20.0);
        assert!(least.is_some(), "{name}: eight times as much takes more than twenty times as long");
    }
}

#[test]
fn many_calls_are_neither_lost_nor_duplicated() {
    for (name, events) in shapes() {
        let (recorded, _) = fold(events(300));
        let count = |wanted: fn(&Payload) -> bool| recorded.iter().filter(|payload| wanted(payload)).count();
        let calls = count(|payload| matches!(payload, Payload::ToolInvoked(_)));
        let results = count(|payload| matches!(payload, Payload::ToolCompleted(_)));
        let expected = if name.contains("call") { 300 } else { 0 };
        assert_eq!((calls, results), (expected, expected), "{name}");
    }
}
