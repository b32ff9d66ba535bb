//! Measures the cost of recording a turn with very many tool calls, over AG-UI (streamed, and in a snapshot)
//! and chat completions.
#![allow(clippy::print_stdout)]

use std::time::{Duration, Instant};

use hotseat_targets::ag_ui::{ProtocolStrictness, fold_streams};
use hotseat_targets::openai::fold_chunks;
use serde_json::{Value, json};

/// Name and benchmark of a way to send tool calls.
type TransferMode = (&'static str, fn(usize) -> Duration);

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let sizes: &[usize] = if quick { &[1_000, 4_000] } else { &[1_000, 4_000, 20_000, 100_000] };
    let ways: [TransferMode; 4] = [
        ("AG-UI, streamed", |n| ag_ui((0..n).flat_map(streamed))),
        ("AG-UI, all begun at once", |n| {
            let (mut begun, mut rest) = (Vec::new(), Vec::new());
            for [start, arguments, end, result] in (0..n).map(streamed) {
                begun.push(start);
                rest.extend([arguments, end, result]);
            }
            ag_ui(begun.into_iter().chain(rest))
        }),
        ("AG-UI, in a snapshot", |n| {
            ag_ui([
                json!({"type": "MESSAGES_SNAPSHOT", "messages": (0..n).flat_map(listed).collect::<Vec<_>>()}),
            ])
        }),
        ("chat completions", chat),
    ];
    for (name, cost) in ways {
        for &size in sizes {
            println!("{name}: {size} calls in {:.3} s", cost(size).as_secs_f64());
        }
    }
}

fn ag_ui(events: impl IntoIterator<Item = Value>) -> Duration {
    let border = |kind: &str| json!({"type": kind, "threadId": "thread", "runId": "run"});
    let events = [border("RUN_STARTED")].into_iter().chain(events).chain([border("RUN_FINISHED")]);
    let turns = [vec![stream(events)]];
    let begun = Instant::now();
    let recorded = fold_streams(&turns, ProtocolStrictness::Lenient).0;
    assert!(!recorded.is_empty(), "something was recorded");
    begun.elapsed()
}

fn chat(calls: usize) -> Duration {
    let call = |n: usize| json!({"index": n, "id": format!("c{n}"), "function": {"name": "look", "arguments": format!("{{\"n\":{n}}}")}});
    let chunks = (0..calls).map(|n| json!({"choices": [{"index": 0, "delta": {"tool_calls": [call(n)]}}]}));
    let stream = stream(chunks);
    let begun = Instant::now();
    assert!(!fold_chunks(&stream).is_empty(), "something was recorded");
    begun.elapsed()
}

fn stream(events: impl IntoIterator<Item = Value>) -> Vec<u8> {
    events.into_iter().flat_map(|event| format!("data: {event}\n\n").into_bytes()).collect()
}

fn streamed(n: usize) -> [Value; 4] {
    let id = format!("c{n}");
    [
        json!({"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": "look"}),
        json!({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": format!("{{\"n\":{n}}}")}),
        json!({"type": "TOOL_CALL_END", "toolCallId": id}),
        json!({"type": "TOOL_CALL_RESULT", "messageId": format!("r{n}"), "toolCallId": id, "content": "ok"}),
    ]
}

fn listed(n: usize) -> [Value; 2] {
    let call =
        json!({"id": format!("c{n}"), "type": "function", "function": {"name": "look", "arguments": "{}"}});
    [
        json!({"id": format!("m{n}"), "role": "assistant", "toolCalls": [call]}),
        json!({"id": format!("r{n}"), "role": "tool", "toolCallId": format!("c{n}"), "content": "ok"}),
    ]
}
